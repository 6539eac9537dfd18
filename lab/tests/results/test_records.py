"""Records survive whatever happens between two of them."""

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.tests.helpers.corpus import transfer
from undrift_lab.results.records import Damaged, InUse, Unwritable, journal, merge_records, read

numbers = st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
plain = st.recursive(
    st.none() | st.booleans() | numbers | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@settings(deadline=None)  # it waits for the disk
@given(records=st.lists(st.dictionaries(st.text(), plain, max_size=4), max_size=4))
def test_records_come_back_as_they_were(tmp_path_factory, records):
    path = tmp_path_factory.mktemp("round") / "results.jsonl"
    with journal(path) as book:
        for record in records:
            book.append(record)
        assert book.records == records
    assert read(path) == records


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


def test_what_json_cannot_hold_is_refused_before_anything_is_written(tmp_path):
    path = tmp_path / "results.jsonl"
    with journal(path) as book:
        for value in (math.nan, object()):
            with pytest.raises((TypeError, ValueError)):
                book.append({"value": value})
        book.append({"value": 1})
    assert [json.loads(line) for line in path.read_text().splitlines()] == [{"value": 1}]


def test_a_file_of_something_else_or_of_another_run_is_left_alone(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("not results, and no line end")
    with pytest.raises(Damaged, match="does not hold results"), journal(path):
        pass
    assert path.read_text() == "not results, and no line end"
    path = tmp_path / "results.jsonl"
    with journal(path), pytest.raises(InUse, match="another run"), journal(path):
        pass
    with journal(path) as book:  # and the lock goes with its holder
        book.append({"number": 1})
    assert len(read(path)) == 1


def fail_after(path, n_records):
    with journal(path) as records:
        for _ in range(n_records):
            records.append({"kind": "any"})
        raise ValueError("no data")


def test_a_run_that_records_nothing_leaves_no_new_file(tmp_path):
    new, old, begun = (tmp_path / f"{name}.jsonl" for name in ("new", "old", "begun"))
    old.touch()
    for path, n_records in ((new, 0), (old, 0), (begun, 1)):
        with pytest.raises(ValueError, match="no data"):
            fail_after(path, n_records)
    assert not new.exists()
    assert old.exists()
    assert len(read(begun)) == 1


GOOD = {
    "transfer": {"transfer_error": 0.2, "baseline_in_domain_error": 0},
    "distance": {
        **dict.fromkeys(("distance_before", "distance_before_low", "distance_before_high"), 1.0),
        **dict.fromkeys(("distance_after", "distance_after_low", "distance_after_high"), 1.5),
    },
    "grid": {
        **{"source": "a", "fitted_on": "all", "noise": 0.5, "depth": 1, "C": 1.0, "seconds": 0.1},
        "score": 0.75,
    },
    "in-domain": {"target": "a", "error": 0.1},
}
CELL = {"method": "svm", "source": "a", "target": "b"}


def good(kind):
    own = CELL if kind in ("transfer", "distance") else {}
    return {"kind": kind, "plan": "p", "variant": "v", **own, **GOOD[kind], "seed": 0}


def written(path, *records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


@pytest.mark.parametrize("kind", GOOD)
def test_what_a_record_must_have_is_asked_for_with_file_and_line(tmp_path, kind):
    path, whole = tmp_path / "r.jsonl", good(kind)
    assert read(written(path, whole)) == [whole]
    for name in set(whole) - {"kind", "seed"}:
        lacking = {key: value for key, value in whole.items() if key != name}
        with pytest.raises(Damaged, match=rf"r\.jsonl, line 2: {name} is missing;"):
            read(written(path, whole, lacking))
        with pytest.raises(Damaged, match=rf"r\.jsonl, line 1: {name}=True: input should be "):
            read(written(path, {**whole, name: True}))
    with pytest.raises(Damaged, match=r"line 1: seed=\[0\]: input should be a valid integer"):
        read(written(path, {**whole, "seed": [0]}))


def test_a_failure_has_no_numbers(tmp_path):
    failed = {"kind": "transfer", "plan": "p", "variant": "v", **CELL, "failed": "out of luck"}
    assert read(written(tmp_path / "r.jsonl", failed)) == [failed]
    with pytest.raises(Damaged, match="source is missing"):
        read(written(tmp_path / "r.jsonl", {key: failed[key] for key in failed if key != "source"}))


def test_records_without_a_kind_are_what_the_reader_takes_them_for(tmp_path):
    bare = {**CELL, **GOOD["transfer"]}
    path = written(tmp_path / "r.jsonl", bare)
    assert read(path, "transfer") == read(path) == [bare]
    written(path, bare, {"number": 1})
    assert read(path) == [bare, {"number": 1}]
    with pytest.raises(Damaged, match="line 2: method is missing"):
        read(path, "transfer")


class Failing:
    """A file whose disk is full in the middle of a line, or whose writer is interrupted there."""

    def __init__(self, file, error):
        self._file, self._error = file, error

    def write(self, line):
        if self._error is None:
            return self._file.write(line)
        if len(line) > 4:
            return self._file.write(line[:4])
        raise self._error

    def __getattr__(self, name):
        return getattr(self._file, name)


@pytest.mark.parametrize(
    ("error", "raised"),
    [(OSError(28, "No space left on device"), Unwritable), (KeyboardInterrupt(), KeyboardInterrupt)],
)
def test_half_a_record_is_taken_back(tmp_path, error, raised):
    path = tmp_path / "r.jsonl"
    with journal(path) as book:
        book.append({"number": 1})
        file, book._file = book._file, Failing(book._file, error)
        with pytest.raises(raised) as told:
            book.append({"number": 2})
        assert path.read_text() == '{"number": 1}\n'
        book._file = file
        book.append({"number": 3})
        assert book.records == [{"number": 1}, {"number": 3}]
    assert read(path) == [{"number": 1}, {"number": 3}]
    if raised is Unwritable:
        assert str(told.value) == f"{path} cannot be written: No space left on device"


def test_merged_records_are_the_last_of_each_and_short():
    first = transfer("svm", "a", "b", 0.3)
    again = {**first, "transfer_error": 1 / 3, "params": {"C": [0.1 + 0.2]}}
    other, grid = {**first, "seed": 5}, {"kind": "grid", "plan": "p", "noise": 0.5}
    lines = merge_records([first, other, grid, again]).splitlines()
    assert len(lines) == 3
    merged = [json.loads(line) for line in lines]
    assert set(merged[0]) == set(again)
    assert (merged[0]["transfer_error"], merged[0]["params"]) == (0.333333, {"C": [0.3]})
    assert (merged[1]["seed"], merged[2]) == (5, grid)
    assert ": " not in lines[0]
