"""Records survive whatever happens between two of them."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from undrift.bench import read
from undrift.bench.records import Damaged, InUse, journal

numbers = st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
plain = st.recursive(
    st.none() | st.booleans() | numbers | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(records=st.lists(st.dictionaries(st.text(), plain, max_size=4), max_size=4))
def test_records_come_back_as_they_were(tmp_path_factory, records):
    path = tmp_path_factory.mktemp("round") / "results.jsonl"
    with journal(path) as book:
        for record in records:
            book.append(record)
        assert book.records == records
    assert read(path) == records


def test_a_run_adds_to_what_is_there(tmp_path):
    path = tmp_path / "new" / "results.jsonl"
    for number in (1, 2):
        with journal(path) as book:
            book.append({"number": number, "array": np.array([1.5]), "count": np.int64(2)})
    assert [record["number"] for record in read(path)] == [1, 2]
    assert read(path)[0] == {"number": 1, "array": [1.5], "count": 2}


@pytest.mark.parametrize("torn", ['{"numb', '{"number": 3}', " "])
def test_a_torn_last_line_is_left_out_and_cut_off(tmp_path, torn):
    path = tmp_path / "results.jsonl"
    path.write_text('{"number": 1}\n{"number": 2}\n' + torn)
    assert [record["number"] for record in read(path)] == [1, 2]
    with journal(path) as book:
        book.append({"number": 4})
    assert path.read_text() == '{"number": 1}\n{"number": 2}\n{"number": 4}\n'


@pytest.mark.parametrize("line", ['{"numb', "[1]", "3"])
def test_a_damaged_line_in_the_middle_is_named(tmp_path, line):
    path = tmp_path / "results.jsonl"
    path.write_text(f'{{"number": 1}}\n{line}\n{{"number": 2}}\n')
    with pytest.raises(Damaged, match=r"results\.jsonl, line 2 is not a record"):
        read(path)


def test_two_runs_cannot_write_to_one_file(tmp_path):
    path = tmp_path / "results.jsonl"
    with journal(path), pytest.raises(InUse, match="another run"), journal(path):
        pass
    with journal(path) as book:  # and the lock goes with its holder
        book.append({"number": 1})
    assert len(read(path)) == 1


def test_what_json_cannot_hold_is_refused_before_anything_is_written(tmp_path):
    path = tmp_path / "results.jsonl"
    with journal(path) as book:
        for value in (math.nan, object()):
            with pytest.raises((TypeError, ValueError)):
                book.append({"value": value})
        book.append({"value": 1})
    assert [json.loads(line) for line in path.read_text().splitlines()] == [{"value": 1}]


def test_a_file_of_something_else_is_left_alone(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("not results, and no line end")
    with pytest.raises(Damaged, match="does not hold results"), journal(path):
        pass
    assert path.read_text() == "not results, and no line end"
