"""Reading of tables that are as they should be."""

import codecs
import csv
import gzip
import json
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from undrift.app.tables import (
    Table,
    TableError,
    join_kinds,
    list_texts,
    list_values,
    open_table,
    with_added,
)
from undrift.errors import UndriftWarning

LINES = b'text,label\n"a, ""quoted""\ntext",1.0\n  blanks  ,\nNA,007\n'
ROWS = [['a, "quoted"\ntext', "1.0"], ["  blanks  ", ""], ["NA", "007"]]


def rows_of(table):
    """Every row of a table, as lists."""
    return [
        list(row)
        for frame in table
        for row in zip(*(list_values(frame, name) for name in frame), strict=True)
    ]


def saved(folder, name, content):
    path = folder / name
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return path


@pytest.mark.parametrize("name", ["t.csv", "T.CSV", "t.csv.gz"])
def test_csv_values_stay_strings_just_as_given(tmp_path, name):
    table = open_table(saved(tmp_path, name, LINES), text="text")
    assert table.columns == ("text", "label")
    next(iter(table))
    assert rows_of(table) == rows_of(table) == ROWS  # it can be read again
    assert table.n_bad == 0
    one = open_table(saved(tmp_path, "one.csv", b'text\nHello world\n\n""\n'))
    assert rows_of(one) == [["Hello world"], [""]]  # an empty line is no row, an empty field is


@pytest.mark.parametrize("name", ["t.tsv", "t.csv"])
def test_tabs_separate_where_the_header_says_so(tmp_path, name):
    table = open_table(saved(tmp_path, name, b'text\tlabel\n"a\tb, c; d"\t1\n'))
    assert table.columns == ("text", "label")
    assert rows_of(table) == [["a\tb, c; d", "1"]]


@pytest.mark.parametrize("header", [b"text;label;id", b'"text";"label";"id"', b'"te,xt";label;id'])
def test_semicolons_separate_where_the_header_says_so(tmp_path, header):
    table = open_table(saved(tmp_path, "t.csv", header + b"\n1,5;2;3\n"))
    assert len(table.columns) == 3
    assert rows_of(table) == [["1,5", "2", "3"]]
    assert open_table(saved(tmp_path, "c.csv", b"text,a;b;c\n1,2\n")).columns == ("text", "a;b;c")


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_every_line_end_ends_a_row_and_no_other_character_does(tmp_path, end):
    odd = "a\x85b\u2028c\u2029d\x0be\x0cf\x1cg"
    lines = [b"text,label", f"{odd},1".encode(), b'"x\r\ny\rz\n",2']
    table = open_table(saved(tmp_path, "t.csv", end.join(lines) + end))
    assert rows_of(table) == [[odd, "1"], ["x\r\ny\rz\n", "2"]]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r", b""])
def test_json_lines_do_not_end_at_unicode_separators(tmp_path, end):
    first, second = '{"text": "a\x85b\u2028c"}'.encode(), b'{"text": "d"}'
    table = open_table(saved(tmp_path, "t.jsonl", first + (end or b"\n") + second + end))
    assert rows_of(table) == [["a\x85b\u2028c"], ["d"]]


@pytest.mark.parametrize("name", ["t.jsonl", "t.ndjson", "t.json", "t.jsonl.gz"])
def test_json_values_keep_their_types_and_absent_keys_stay_absent(tmp_path, name):
    objects = [
        {"text": "é", "n": 1, "x": 1.0, "deep": {"a": [1, None]}},
        {"n": None, "late": True, "text": ""},
        {"text": None, "x": 3},
    ]
    content = "\n\n".join(json.dumps(one) for one in objects).encode()
    table = open_table(saved(tmp_path, name, content))
    assert table.columns == ("text", "n", "x", "deep", "late")
    assert table.kinds == {"text": {str}, "n": {int}, "x": {float, int}, "deep": {str}, "late": {bool}}
    (frame,) = table
    assert frame["n"].tolist()[:2] == [1, None]
    assert np.isnan(frame["n"].tolist()[2])  # the key is absent
    assert [type(value) for value in list_values(frame, "x")] == [float, type(None), int]
    assert list_values(frame, "deep") == [{"a": [1, None]}, None, None]
    assert list_texts(frame, "deep") == ['{"a": [1, null]}', "", ""]
    assert list_texts(frame, "late") == ["", "true", ""]
    assert list_texts(frame, "x") == ["1.0", "", "3"]


def test_kinds_of_mixed_and_missing_json_values(tmp_path):
    content = b'{"a": 1, "b": null, "c": 1, "d": true}\n{"a": "x", "c": 9223372036854775808, "d": 1}\n'
    table = open_table(saved(tmp_path, "t.jsonl", content))
    assert table.kinds == {"a": {int, str}, "b": set(), "c": {int, str}, "d": {bool, int}}


def test_parquet_values_keep_their_types(tmp_path):
    frame = pd.DataFrame(
        {"text": ["a", None], "when": pd.to_datetime(["2020-01-02", "2021-03-04"]), "n": [1, 2]}
    )
    frame.to_parquet(tmp_path / "t.parquet", index=False)
    table = open_table(tmp_path / "t.parquet", text="text")
    (rows,) = table
    assert table.columns == ("text", "when", "n")
    assert list_values(rows, "text") == ["a", None]
    assert list_texts(rows, "n") == ["1", "2"]
    assert list_texts(rows, "when")[0].startswith("2020-01-02")


@pytest.mark.parametrize(
    ("mark", "codec"),
    [
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
        (codecs.BOM_UTF32_LE, "utf-32-le"),
        (b"", "utf-8"),
    ],
)
@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
def test_marks_say_the_encoding_and_are_no_part_of_the_text(tmp_path, mark, codec, name):
    table = open_table(saved(tmp_path, name, mark + "tëxt,l\n“é”\U0001f600,1\n".encode(codec)))
    assert table.columns == ("tëxt", "l")
    assert rows_of(table) == [["“é”\U0001f600", "1"]]


def test_other_bytes_are_read_as_windows_1252_and_said_so_once_or_as_given(tmp_path):
    content = "text,label\nplain,1\r\n“café” \x81€,2\n".encode("cp1252", "replace").replace(b"?", b"\x81")
    path = saved(tmp_path, "t.csv", content)
    with pytest.warns(
        UndriftWarning, match=r"t\.csv:3: byte 0x93 is not UTF-8; such bytes are .* Windows-1252"
    ) as seen:
        table = open_table(path)
    assert len(seen) == 1
    assert seen[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert rows_of(table) == [["plain", "1"], ["“café” \x81€", "2"]]
    path = saved(tmp_path, "t.csv", "text,label\nçà et là,é\n".encode() + b"caf\xe9,\xe2\x80\n")
    with pytest.warns(UndriftWarning, match=r"t\.csv:3: byte 0xE9 .* such bytes are decoded as Windows-1252"):
        table = open_table(path)
    assert rows_of(table) == [["çà et là", "é"], ["café", "â€"]]
    path = saved(tmp_path, "t.csv", "текст,l\nда,1\n".encode("cp1251"))
    assert rows_of(open_table(path, text="текст", encoding="cp1251")) == [["да", "1"]]
    marked = saved(tmp_path, "m.csv", codecs.BOM_UTF8 + b"text\nx\n")
    assert open_table(marked, encoding="UTF8").columns == ("text",)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_the_odd_byte_is_found_beyond_the_first_chunk(tmp_path, end):
    good = f"{'é' * 50},1{end}" * 30_000  # 3 MB: characters and line ends straddle chunks
    path = saved(tmp_path, "t.csv", f"text,label{end}{good}".encode() + b"\xff,2" + end.encode())
    with pytest.warns(UndriftWarning, match=r"t\.csv:30002: byte 0xFF"):
        table = open_table(path)
    *_, last = table
    assert last["text"].tolist()[-2:] == ["é" * 50, "ÿ"]
    assert last["label"].tolist()[-1] == "2"


def test_fields_longer_than_the_csv_modules_limit_are_read(tmp_path):
    before = csv.field_size_limit()
    long = "word " * 100_000
    assert len(long) > before
    assert rows_of(open_table(saved(tmp_path, "t.csv", f"text,l\n{long},1\n".encode()))) == [[long, "1"]]
    assert csv.field_size_limit() == before


def test_blocks_are_bounded_by_rows_and_by_characters(tmp_path):
    many = open_table(saved(tmp_path, "many.csv", b"a,b\n" + b"x,y\n" * 10_000))
    assert [len(rows) for rows in many] == [4096, 4096, 1808]
    big = json.dumps({"text": "x" * (1 << 22)}) + "\n"
    assert [len(rows) for rows in open_table(saved(tmp_path, "big.jsonl", big.encode() * 5))] == [2, 2, 1]
    big = b'"' + b"x" * (1 << 22) + b'"\n'
    assert [len(rows) for rows in open_table(saved(tmp_path, "big.csv", b"text\n" + big * 5))] == [2, 2, 1]
    pq.write_table(pa.table({"text": [f"{i}" * 100_000 for i in range(300)]}), tmp_path / "big.parquet")
    assert max(len(rows) for rows in open_table(tmp_path / "big.parquet")) < 100


def test_the_share_read_grows_to_one(tmp_path):
    table = open_table(saved(tmp_path, "t.csv", b"a,b\n" + b"xxxxxxxxxx,y\n" * 100_000))
    shares = [table.share_read for _ in table]
    assert shares == sorted(shares)
    assert shares[0] < 0.5
    assert shares[-1] == 1.0


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ("txt", "reviews.csv has no column 'txt'; did you mean 'text'? Columns: text, Label, 'id '"),
        ("label", "reviews.csv has no column 'label'; did you mean 'Label'? Columns: text, Label, 'id '"),
        ("id", "reviews.csv has no column 'id'; did you mean 'id '? Columns: text, Label, 'id '"),
        ("LABEL", "reviews.csv has no column 'LABEL'; did you mean 'Label'? Columns: text, Label, 'id '"),
        ("zzz", "reviews.csv has no column 'zzz'. Columns: text, Label, 'id '"),
    ],
)
def test_a_mistyped_column_gets_a_suggestion(asked, message):
    table = Table(Path("reviews.csv"))
    table.kinds = {"text": {str}, "Label": {str}, "id ": {str}}
    with pytest.raises(TableError) as caught:
        table.require_column(asked)
    assert str(caught.value) == message
    table.kinds = {f"c{i}": {str} for i in range(100)}
    with pytest.raises(TableError, match=r"c19, and 80 more$"):
        table.require_column(asked)


def test_added_columns_must_be_new_and_the_union_keeps_all_types():
    kinds, added = {"a": {str}, "b": {int}}, {"score": {float}}
    assert with_added("t.csv", kinds, added) == {"a": {str}, "b": {int}, "score": {float}}
    with pytest.raises(TableError, match=r"t\.csv already has a column 'score'.*rename it"):
        with_added("t.csv", kinds | added, {"prediction": {str}} | added)
    tables = [{"b": {str}, "a": set(), "n": {int}}, {"c": {int}, "n": {float}, "a": {bool}}]
    union = join_kinds(tables)
    assert list(union.items()) == [("b", {str}), ("a", {bool}), ("n", {int, float}), ("c", {int})]
