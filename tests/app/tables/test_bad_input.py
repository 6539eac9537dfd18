"""What cannot be read is one clear line, or is skipped and counted."""

import errno
import os
import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.app.tables.test_reading import rows_of, saved
from undrift.app.tables import TableError, open_table
from undrift.app.tables.reading import BLOCK_CHARACTERS


def refusal(path, **options):
    """The message with which a table is refused, on opening or on reading."""
    with pytest.raises(TableError) as caught:
        rows_of(open_table(path, **options))
    message = str(caught.value)
    assert "\n" not in message
    assert path.name in message
    return message


@pytest.mark.posix
def test_missing_file_folder_and_pipe(tmp_path):
    assert refusal(tmp_path / "t.csv").endswith("t.csv does not exist")
    table = open_table(saved(tmp_path, "t.csv", b"a,b\n1,2\n"))
    (tmp_path / "t.csv").unlink()
    with pytest.raises(TableError, match=r"t\.csv does not exist"):
        rows_of(table)
    assert "drop .gz" in refusal(tmp_path / "t.parquet.gz")
    (tmp_path / "d.csv").mkdir()
    (tmp_path / "d.csv" / "README.md").touch()
    assert "d.csv has no file that ends in .csv, .tsv," in refusal(tmp_path / "d.csv")
    os.mkfifo(tmp_path / "p.csv")
    assert "read only once" in refusal(tmp_path / "p.csv")


def test_forbidden_file(tmp_path, fail):
    path = saved(tmp_path, "t.csv", b"a,b\n")
    # what the system answers to anyone but root after chmod 0
    fail("builtins.open", PermissionError(errno.EACCES, os.strerror(errno.EACCES), "t.csv"))
    assert "cannot be read: Permission denied" in refusal(path)


@pytest.mark.parametrize("name", ["t.xls", "t", "t.gz", "t.txt.gz"])
def test_unknown_format(tmp_path, name):
    assert "cannot tell the format from the name; use one of .csv, .tsv," in refusal(tmp_path / name)


def test_a_header_without_rows_is_for_the_caller_to_judge(tmp_path):
    table = open_table(saved(tmp_path, "t.csv", b"text,label\n\n"))
    assert rows_of(table) == []
    with pytest.raises(TableError, match=r"t\.csv has a header but no rows$"):
        table.require_rows()
    pq.write_table(pa.table({"text": pa.array([], pa.string())}), tmp_path / "t.parquet")
    with pytest.raises(TableError, match=r"no rows"):
        open_table(tmp_path / "t.parquet").require_rows()
    full = open_table(saved(tmp_path, "f.csv", b"text,label\na,b\n"))
    assert full.require_rows() is None


def test_a_table_of_bad_rows_alone_has_no_rows(tmp_path):
    table = open_table(saved(tmp_path, "t.csv", b"text,label\na\nb\n"), skip_bad=True)
    with pytest.raises(
        TableError, match=r"no good row; .*t\.csv:2: the row has 1 field, the header 2 fields"
    ):
        table.require_rows()
    assert "no good row" in refusal(saved(tmp_path, "t.jsonl", b"nothing\n"), skip_bad=True)


def test_two_columns_of_one_name_and_text_that_is_not_utf_8(tmp_path):
    message = refusal(saved(tmp_path, "t.csv", b"text,label,text\n"))
    assert message.endswith("has two columns called 'text' (numbers 1 and 3); rename one")
    pq.write_table(pa.table([[1], [2]], names=["a", "a"]), tmp_path / "t.parquet")
    assert "two columns called 'a'" in refusal(tmp_path / "t.parquet")
    assert "t.jsonl:1: the key 'a' is there twice" in refusal(saved(tmp_path, "t.jsonl", b'{"a": 1, "a": 2}'))
    offsets, texts = (0).to_bytes(4, "little") + (4).to_bytes(4, "little"), b"caf\xe9"
    column = pa.Array.from_buffers(pa.string(), 1, [None, pa.py_buffer(offsets), pa.py_buffer(texts)])
    pq.write_table(pa.table({"review": column}), tmp_path / "bad.parquet")
    with pytest.raises(TableError, match=r"bad\.parquet is truncated or not a Parquet file .*UTF8"):
        list(open_table(tmp_path / "bad.parquet"))


def test_encodings_that_are_unknown_or_wrong(tmp_path):
    path = saved(tmp_path, "t.csv", "text\nab\ncafé\n".encode("cp1252"))
    assert "no encoding is called 'utf-99'" in refusal(path, encoding="utf-99")
    assert "no encoding is called 'base64'" in refusal(path, encoding="base64")
    assert "t.csv:3: byte 0xE9 is not UTF-8" in refusal(path, encoding="utf-8")
    half_a_pair = b"\x00\xdc\n\x00"
    odd = saved(tmp_path, "o.csv", b"\xff\xfe" + "\u0a0a\n".encode("utf-16-le") + half_a_pair)
    assert "o.csv:2: byte 0x00 is not UTF-16" in refusal(odd)


BAD_CSV = (
    b"text,label\n"
    b'"two\nlines",1\n'  # lines 2 and 3
    b"too,many,fields\n"  # line 4
    b"few\n"
    b'"closed" early,1\n'  # line 6
    b"\n"
    b"good,2\n"  # line 8
    b'"open,3\n'  # line 9: takes the rest of the file for its field
    b"fine,4\n"
    b"last,5\n"
)


def test_the_line_of_a_bad_csv_row_is_where_it_starts(tmp_path):
    path = saved(tmp_path, "t.csv", BAD_CSV)
    assert "t.csv:4: the row has 3 fields, the header 2 fields; fix it" in refusal(path)
    lines = BAD_CSV.split(b"\n")
    for number, fault in [(5, "1 field"), (6, "goes on after its closing quote"), (9, "is never closed")]:
        only = lines[:3] + [b""] * (number - 4) + lines[number - 1 :]
        assert f"t.csv:{number}: " in refusal(saved(tmp_path, "t.csv", b"\n".join(only)))
        assert fault in refusal(tmp_path / "t.csv")
    header = saved(tmp_path, "t.csv", b'"text,label\na,b\n')  # no row to skip
    assert "t.csv:1: a quoted field that starts here" in refusal(header, skip_bad=True)


@pytest.mark.parametrize("filler", ["", "x" * BLOCK_CHARACTERS], ids=["one-block", "blocks"])
def test_bad_csv_rows_are_skipped_and_counted(tmp_path, filler):
    """Though every good row may end a block."""
    content = re.sub(rb"^(.*),(\d)$", rb"\1,\2" + filler.encode(), BAD_CSV, flags=re.MULTILINE)
    table = open_table(saved(tmp_path, "t.csv", content), skip_bad=True)
    rows = [["two\nlines", "1"], ["good", "2"], ["fine", "4"], ["last", "5"]]
    expected = [[text, label + filler] for text, label in rows]
    assert rows_of(table) == expected
    assert (table.n_bad, table.first_bad.rpartition("/")[2]) == (
        4,
        "t.csv:4: the row has 3 fields, the header 2 fields",
    )
    assert rows_of(table) == expected
    assert table.n_bad == 4  # of one reading, not of both


BAD_JSON = b'{"a": 1}\n\n{"a": 2\n[1, 2]\n"text"\n{"a": 3, "b": %s}\n{"a": %s}\n{"a": 4}\n' % (
    b"[" * 100_000,
    b"9" * 5_000,
)


def test_bad_json_lines_are_told_or_skipped_and_counted(tmp_path):
    first, _, *bad, last, _ = BAD_JSON.split(b"\n")
    faults = [
        "not valid JSON at column 8 (Expecting ',' delimiter)",
        "an array where an object is needed",
        "a single value where an object is needed",
        "not usable JSON (maximum recursion",
        "not usable JSON (Exceeds the limit",
    ]
    for line, fault in zip(bad, faults, strict=True):
        message = refusal(saved(tmp_path, "t.jsonl", b"\n".join([first, b"", line, last])))
        assert f"t.jsonl:3: {fault}" in message
    table = open_table(saved(tmp_path, "t.jsonl", BAD_JSON), skip_bad=True)
    assert rows_of(table) == [[1], [4]]
    assert table.n_bad == 5
    assert "t.jsonl:3: not valid JSON" in table.first_bad


@pytest.fixture
def short_limit(set_limits):
    set_limits(LINE_LIMIT=1000)


@pytest.mark.usefixtures("short_limit")
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_long_lines_are_skipped_and_counted(tmp_path, end):
    long = [b"x" * 3_000_000 + b",1", b"y" * 1000 + b",2"]
    content = end.join([b"text,label", b"a,1", *long, b"z" * (998 - len(end)) + b",2", b"b,3", b""])
    path = saved(tmp_path, "t.csv", content)
    assert "t.csv:3: the line has more than 1,000 characters" in refusal(path)
    table = open_table(path, skip_bad=True)
    assert [row[0][0] for row in rows_of(table)] == ["a", "z", "b"]
    assert table.n_bad == 2
    path = saved(
        tmp_path, "t.jsonl", end.join([b'{"a": 1}', b'{"a": "' + long[0] + b'"}', b"?", b'{"a": 2}'])
    )
    table = open_table(path, skip_bad=True)
    assert rows_of(table) == [[1], [2]]
    assert table.n_bad == 2
    assert "t.jsonl:2: the line has more" in table.first_bad


@pytest.mark.usefixtures("short_limit")
def test_a_quoted_field_that_does_not_close_is_given_up(tmp_path):
    rows = b"".join(b"row %d,1\n" % i for i in range(1000))
    path = saved(tmp_path, "t.csv", b'text,label\na,1\n"open,1\n' + rows)
    assert "t.csv:3: a quoted field that starts here is never closed" in refusal(path)
    table = open_table(path, skip_bad=True)
    assert [row[0] for row in rows_of(table)] == ["a", *(f"row {i}" for i in range(1000))]
    assert table.n_bad == 1
    path = saved(tmp_path, "t.csv", b'text,label\n"open,1\n' + b"x" * 5000 + b",2\nb,3\n")
    table = open_table(path, skip_bad=True)
    assert rows_of(table) == [["b", "3"]]
    assert table.n_bad == 2
