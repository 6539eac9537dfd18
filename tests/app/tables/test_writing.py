"""Writing: every value as it was, the whole file or none."""

import csv
import datetime
import decimal
import errno
import gzip
import io
import json
import os

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.app.tables.test_reading import rows_of, saved
from undrift.app.tables import (
    Style,
    TableError,
    check_table,
    join_kinds,
    open_table,
    with_added,
    write_table,
)
from undrift.app.tables.files import find_kinds

NAMES = ["t.csv", "t.tsv", "t.jsonl", "t.parquet", "t.csv.gz", "t.tsv.gz", "t.jsonl.gz"]
ROWS = pd.DataFrame({"text": ['a, "b"\n\tc', "é", ""], "label": ["1.0", "x\ry", "07"]}, dtype=object)
KINDS = {"text": {str}, "label": {str}}


def written(path, *frames, kinds=None):
    with write_table(path, kinds or find_kinds(frames[0])) as write:
        for frame in frames:
            write(frame)
    return path


def copied(source, path):
    """A table written anew with a prediction and a score for each row."""
    table = open_table(source)
    kinds = with_added(table.path, table.kinds, {"prediction": {str}, "score": {float}})
    with write_table(path, kinds) as write:
        for frame in table:
            write(frame.assign(prediction="pos", score=0.1 + 0.2))
    return path


def opened(path):
    """The text of a file, by the standard library alone."""
    content = path.read_bytes()
    return (gzip.decompress(content) if path.suffix == ".gz" else content).decode()


def read_cells(path, delimiter):
    with path.open(newline="") as file:
        return list(csv.reader(file, delimiter=delimiter))


def test_cells_that_look_like_a_formula_are_quoted_on_request(tmp_path):
    cells = ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\tx", "-3.5", "+7", "plain", "a=b", ""]
    frame = pd.DataFrame({"=name": cells, "score": [-0.5] * len(cells)}, dtype=object)
    kinds = {"=name": {str}, "score": {float}}
    for name, delimiter in (("t.csv", ";"), ("t.tsv", "\t")):
        with write_table(tmp_path / name, kinds, Style(";", is_safe=True)) as write:
            write(frame)
        rows = read_cells(tmp_path / name, delimiter)
        assert rows[0] == ["'=name", "score"]
        assert [row[0] for row in rows[1:]] == [*(f"'{cell}" for cell in cells[:5]), *cells[5:]]
        assert {row[1] for row in rows[1:]} == {"-0.5"}
    written(tmp_path / "raw.csv", frame, kinds=kinds)
    assert [row[0] for row in read_cells(tmp_path / "raw.csv", ",")] == ["=name", *cells]


def test_csv_text_is_what_the_standard_says(tmp_path):
    path = written(tmp_path / "t.csv", ROWS)
    assert path.read_bytes() == 'text,label\n"a, ""b""\n\tc",1.0\né,"x\ry"\n,07\n'.encode()
    assert path.stat().st_mode & 0o777 == 0o666 & ~umask()
    content = written(tmp_path / "a.csv.gz", ROWS).read_bytes()
    assert content[4:8] == bytes(4)  # where gzip keeps the time


def umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=5),
    names=st.lists(TEXT, min_size=2, max_size=2, unique=True),
)
@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.jsonl"])
def test_any_text_survives(tmp_path_factory, name, rows, names):
    path = tmp_path_factory.getbasetemp() / name
    written(path, pd.DataFrame(rows, columns=names, dtype=object))
    if name == "t.jsonl":
        read = [tuple(json.loads(line).values()) for line in path.read_bytes().decode().split("\n")[:-1]]
    else:
        delimiter = "\t" if name == "t.tsv" else ","
        read = [
            tuple(row)
            for row in csv.reader(io.StringIO(path.read_bytes().decode(), newline=""), delimiter=delimiter)
        ]
        assert read.pop(0) == tuple(names)
    assert read == rows


@pytest.mark.parametrize("name", ["o.csv", "o.csv.gz"])
def test_csv_values_are_kept_in_a_copy(tmp_path, name):
    lines = 'id;stars;text\r\n007;4.50;"é ""x"""\r\n;1e5;\r\n'
    path = copied(saved(tmp_path, "t.csv", lines.encode()), tmp_path / name)
    assert opened(path).split("\n")[:-1] == [
        "id,stars,text,prediction,score",
        '007,4.50,"é ""x""",pos,0.30000000000000004',
        ",1e5,,pos,0.30000000000000004",
    ]


def test_json_values_are_kept_in_a_copy(tmp_path):
    objects = [
        {"text": "é\u2028\ud83d", "n": 1, "x": 1.0, "deep": {"a": [None, "ü"]}},
        {"n": None, "big": 10**30, "on": True},
    ]
    source = saved(tmp_path, "t.jsonl", "\n".join(map(json.dumps, objects)).encode())
    text = opened(copied(source, tmp_path / "o.jsonl"))
    added = {"prediction": "pos", "score": 0.1 + 0.2}
    read = [json.loads(line) for line in text.split("\n")[:-1]]
    assert read == [one | added for one in objects]
    assert '"x": 1.0' in text
    assert "é" in text


def test_json_values_as_parquet(tmp_path):
    objects = [
        {"n": 1, "x": 1, "mixed": 1, "deep": [1], "text": "\ud83d", "none": None},
        {"x": 0.5, "mixed": "a", "deep": None, "on": False},
    ]
    source = saved(tmp_path, "t.jsonl", "\n".join(map(json.dumps, objects)).encode())
    read = pq.read_table(copied(source, tmp_path / "o.parquet"))
    assert {field.name: str(field.type) for field in read.schema} == {
        **dict.fromkeys(["mixed", "deep", "text", "none", "prediction"], "string"),
        **{"n": "int64", "x": "double", "on": "bool", "score": "double"},
    }
    assert read.drop_columns(["prediction", "score"]).to_pylist() == [
        {"n": 1, "x": 1.0, "mixed": "1", "deep": "[1]", "text": "\\ud83d", "none": None, "on": None},
        {"n": None, "x": 0.5, "mixed": "a", "deep": None, "text": None, "none": None, "on": False},
    ]


def test_parquet_values_are_kept_in_a_copy(tmp_path):
    table = pa.table(
        {
            "when": pa.array([1, 2, None], pa.timestamp("ns", "UTC")),  # nanoseconds fit no Python date
            "small": pa.array([1, None, 3], pa.int8()),
            "money": pa.array([decimal.Decimal("1.50"), None, decimal.Decimal("2.25")]),
            "kind": pa.array(["a", "b", "a"]).dictionary_encode(),
            "deep": [{"x": [1]}, {"x": []}, None],
            "raw": [b"\xff", b"", None],
            "text": pa.array(["é", "", None], pa.large_string()),
        }
    )
    pq.write_table(pa.concat_tables([table] * 3000), tmp_path / "t.parquet")
    read = pq.read_table(copied(tmp_path / "t.parquet", tmp_path / "o.parquet"))
    assert read.drop_columns(["prediction", "score"]).equals(pq.read_table(tmp_path / "t.parquet"))
    assert read.num_rows == 9000
    assert pq.ParquetFile(tmp_path / "o.parquet").num_row_groups == 1  # not one for every block


def test_parquet_values_as_text(tmp_path):
    values = {
        "day": [datetime.date(2020, 1, 2)],
        "raw": [b"a\xff"],
        "deep": [{"d": datetime.date(2020, 1, 2)}],
        "on": [True],
    }
    pq.write_table(pa.table(values), tmp_path / "t.parquet")
    read = pd.read_csv(copied(tmp_path / "t.parquet", tmp_path / "o.csv"), dtype=str)
    assert read.iloc[0, :4].tolist() == ["2020-01-02", "a\\xff", '{"d": "2020-01-02"}', "true"]
    line = json.loads(opened(copied(tmp_path / "t.parquet", tmp_path / "o.jsonl")))
    assert line["day"] == "2020-01-02"
    assert line["on"] is True


def test_row_groups_are_of_many_rows_but_bounded(tmp_path):
    block = pd.DataFrame({"x": range(10_000)})
    path = written(tmp_path / "t.parquet", *[block] * 15)
    groups = pq.ParquetFile(path).metadata
    assert [groups.row_group(i).num_rows for i in range(groups.num_row_groups)] == [70_000, 70_000, 10_000]


def test_parquet_refuses_values_that_do_not_go_together(tmp_path):
    with pytest.raises(
        TableError, match=r"t\.parquet: column 'x' has values .* write \.jsonl or \.csv instead"
    ):
        written(tmp_path / "t.parquet", pd.DataFrame({"x": [1]}), pd.DataFrame({"x": ["a"]}))
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("name", NAMES)
def test_no_rows_leave_the_header(tmp_path, name):
    path = written(tmp_path / name, pd.DataFrame({"text": [], "n": []}))
    if "jsonl" in name:
        assert opened(path) == ""
    else:
        table = open_table(path)
        assert (table.columns, rows_of(table)) == (("text", "n"), [])


@pytest.mark.parametrize("name", ["o.csv", "o.jsonl", "o.parquet"])
def test_tables_of_different_columns_follow_one_another(tmp_path, name):
    one = open_table(saved(tmp_path, "a.csv", b"text,stars\na,5\n"))
    other = open_table(saved(tmp_path, "b.jsonl", b'{"id": 7, "text": "b"}\n'))
    kinds = join_kinds([one.kinds, other.kinds])
    with write_table(tmp_path / name, kinds) as write:
        for table in (one, other):
            for frame in table:
                write(frame)
    read = [dict(zip(kinds, row, strict=True)) for row in rows_of(open_table(tmp_path / name))]
    empty, seven = ("", "7") if name == "o.csv" else (None, 7)
    assert read == [{"text": "a", "stars": "5", "id": empty}, {"text": "b", "stars": empty, "id": seven}]
    if name == "o.jsonl":
        assert (tmp_path / name).read_text().splitlines()[1] == '{"text": "b", "id": 7}'


def test_missing_and_none_are_different_in_json_alone(tmp_path):
    rows = pd.DataFrame({"a": [None, np.nan], "b": [1, 2]}, dtype=object)
    assert opened(written(tmp_path / "t.jsonl", rows)) == '{"a": null, "b": 1}\n{"b": 2}\n'
    assert opened(written(tmp_path / "t.csv", rows)) == "a,b\n,1\n,2\n"


def fail_after_writing(path, write, trouble):
    for _ in range(3):
        write(pd.concat([ROWS] * 10_000))
    assert len(os.listdir(path.parent)) == 2
    raise trouble


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("trouble", [ValueError, KeyboardInterrupt])
def test_trouble_leaves_nothing_new_and_what_was_there(tmp_path, name, trouble):
    path = saved(tmp_path, name, b"before")
    before = path.read_bytes()
    with pytest.raises(trouble), write_table(path, KINDS) as write:
        fail_after_writing(path, write, trouble)
    assert os.listdir(tmp_path) == [name]
    assert path.read_bytes() == before


def test_the_readers_error_is_told_and_not_the_writers(tmp_path):
    source = saved(tmp_path, "t.csv", b"a,b\n1,2\n1\n")
    with pytest.raises(TableError, match=r"t\.csv:3: the row has 1 field"):
        copied(source, tmp_path / "o.csv")
    with pytest.raises(FileNotFoundError, match="elsewhere"), write_table(tmp_path / "o.csv", {"a": {str}}):
        raise FileNotFoundError("elsewhere")
    assert os.listdir(tmp_path) == ["t.csv"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("n_blocks", [1, 40])
def test_a_full_disk_is_one_error(tmp_path, monkeypatch, name, n_blocks):
    """A file whose disk takes 50 bytes: the trouble shows up on writing, or only at the end."""
    real = open

    class Full(io.FileIO):
        n_left = 50

        def write(self, data):
            if len(data) > self.n_left:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            self.n_left -= len(data)
            return super().write(data)

    def opened_full(path, mode="r", **options):
        return io.BufferedWriter(Full(path, "w")) if mode == "wb" else real(path, mode, **options)

    monkeypatch.setattr("builtins.open", opened_full)
    block = pd.DataFrame({"text": [os.urandom(50).hex() for _ in range(4000)]})
    with pytest.raises(TableError, match=rf"{name} cannot be written: No space left on device$"):
        written(tmp_path / name, *[block] * n_blocks)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("step", ["replace", "fsync"])
def test_a_failing_last_step_leaves_nothing(tmp_path, fail, step):
    fail(f"os.{step}", PermissionError(errno.EPERM, "Operation not permitted"))
    with pytest.raises(TableError, match=r"t\.csv cannot be written: Operation not permitted"):
        written(tmp_path / "t.csv", ROWS)
    assert os.listdir(tmp_path) == []


@pytest.mark.posix
@pytest.mark.parametrize("attempt", [check_table, lambda path: written(path, ROWS)])
def test_places_that_cannot_be_written(tmp_path, attempt):
    (tmp_path / "d.csv").mkdir()
    (tmp_path / "null.csv").symlink_to("/dev/null")
    for path, fault in [
        ("d.csv", "is a folder"),
        ("none/t.csv", "there is no folder"),
        ("null.csv", "not a regular file"),
        ("t.xls", "cannot tell the format"),
        ("x" * 300 + ".csv", "File name too long"),
    ]:
        with pytest.raises(TableError, match=fault):
            attempt(tmp_path / path)
    check_table(tmp_path / "new.parquet")
    assert sorted(os.listdir(tmp_path)) == ["d.csv", "null.csv"]
