"""Spreadsheets, JSON arrays, compressed files and folders: what they hold, how broken ones are refused."""

import bz2
import datetime
import gzip
import json
import lzma
import random
import sys
import zipfile

import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.tables.test_bad_input import refusal
from tests.tables.test_reading import rows_of, saved
from undrift.tables import MISSING, Rows, TableError, json_lines, lines, open_table, shard_paths, write_table
from undrift.tables import spreadsheet as sheets

COLUMNS = ("text", "n", "x", "b")
VALUES = (
    ['a, "q"\nline', "=1+1", "好👍", None],
    [1, 2, 3, None],
    [0.5, 1.5, 2.5, 3.5],
    [True, False, None, True],
)
KINDS = {"text": "str", "n": "int", "x": "float", "b": "bool"}
COMPRESS = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": lambda content: pa.Codec("zstd").compress(content, asbytes=True),
}


def sheet_of(path, *sheets):
    """Write a spreadsheet, given by (title, rows)."""
    book = openpyxl.Workbook()
    book.remove(book.active)
    for title, rows in sheets:
        sheet = book.create_sheet(title)
        for row in rows:
            sheet.append(row)
    book.save(path)
    return path


@pytest.mark.parametrize("compression", ["", *COMPRESS])
@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl", "json"])
def test_every_text_format_holds_the_same(tmp_path, kind, compression):
    path = tmp_path / f"t.{kind}{compression}"
    with write_table(path, COLUMNS, kinds=KINDS) as out:
        out.write(Rows(COLUMNS, VALUES))
    (rows,) = open_table(path, text="text")
    assert [rows.texts(name) for name in COLUMNS] == [
        ['a, "q"\nline', "=1+1", "好👍", ""],
        ["1", "2", "3", ""],
        ["0.5", "1.5", "2.5", "3.5"],
        ["true", "false", "", "true"],
    ]
    assert [inside.name for inside in tmp_path.iterdir()] == [path.name]


def test_spreadsheets_hold_the_same_and_formulas_in_text_stay_text(tmp_path):
    path = tmp_path / "t.xlsx"
    with write_table(path, COLUMNS) as out:
        out.write(Rows(COLUMNS, VALUES))
        out.write(Rows(("text",), (["bell \x07"],)))
    table = open_table(path)
    assert dict(table.kinds) == KINDS
    assert rows_of(table)[:4] == [list(row) for row in zip(*VALUES, strict=True)]
    assert rows_of(table)[4] == ["bell \ufffd", None, None, None]
    assert openpyxl.load_workbook(path).active["A3"].data_type == "s"


def test_dates_of_a_spreadsheet_are_text(tmp_path):
    day, moment = datetime.date(2024, 2, 29), datetime.datetime(2024, 2, 29, 13, 5)
    rows = [[], ["text", "when", 3], ["a", day, 1], [], ["b", moment], ["c", datetime.time(8, 30), 2.5]]
    table = open_table(sheet_of(tmp_path / "t.xlsx", ("only", rows)))
    assert rows_of(table) == [
        ["a", "2024-02-29", 1],
        ["b", "2024-02-29T13:05:00", None],
        ["c", "08:30:00", 2.5],
    ]
    assert dict(table.kinds) == {"text": "str", "when": "str", "3": "float"}


def test_several_sheets_are_named_with_the_option(tmp_path):
    first, second = ("one", [["text"], ["a"]]), ("two", [["text"], ["b"]])
    path = sheet_of(tmp_path / "t.xlsx", first, second, ("blank", []))
    assert refusal(path).endswith("t.xlsx has 2 sheets: one, two; choose one with --sheet")
    assert rows_of(open_table(path, sheet="two")) == [["b"]]
    assert "has no sheet 'three'; it has one, two, blank" in refusal(path, sheet="three")
    assert "sheet 'blank' is empty" in refusal(path, sheet="blank")
    assert rows_of(open_table(sheet_of(path, first, ("blank", [])))) == [["a"]]


def test_formulas_without_a_saved_value_are_refused(tmp_path):
    path = sheet_of(tmp_path / "t.xlsx", ("s", [["text", "n"], ["a", 1], ["b", "=B2+1"]]))
    assert "t.xlsx:3: column 2 of sheet 's' is a formula without a saved value; open the file" in refusal(
        path
    )
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    (name,) = [name for name in parts if "sheet1" in name]
    parts[name] = (
        parts[name]
        .replace(b"<v></v>", b"<v>2</v>")
        .replace(b"<v />", b"<v>2</v>")
        .replace(b"<v/>", b"<v>2</v>")
    )
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    assert rows_of(open_table(path)) == [["a", 1], ["b", 2]]


def test_bad_rows_and_columns_of_a_spreadsheet(tmp_path):
    path = sheet_of(tmp_path / "t.xlsx", ("s", [["text", "n"], ["a", 1, "beyond"], ["b", 2]]))
    assert "t.xlsx:2: the row has a value to the right of the 2 columns; fix it" in refusal(path)
    table = open_table(path, skip_bad=True)
    assert rows_of(table) == [["b", 2]]
    assert table.n_bad == 1
    assert "column 1 of sheet 's' has no name in row 1" in refusal(
        sheet_of(path, ("s", [[None, "n"], ["a", 1]]))
    )
    assert "two columns called 'n'" in refusal(sheet_of(path, ("s", [["n", "n"]])))


def test_broken_spreadsheets(tmp_path):
    path = sheet_of(tmp_path / "t.xlsx", ("s", [["text"], *[[f"row {i}"] for i in range(100)]]))
    whole = path.read_bytes()
    for broken in (whole[:-50], whole[:2000], b"text\na\n", whole[:300] + b"?" * 400 + whole[700:]):
        path.write_bytes(broken)
        assert "is truncated or not a spreadsheet (" in refusal(path)
    path.write_bytes(b"")
    assert refusal(path).endswith("t.xlsx is empty")


def test_what_a_spreadsheet_cannot_hold_is_refused_and_nothing_is_left(tmp_path, monkeypatch):
    monkeypatch.setattr(sheets, "_MOST_ROWS", 3)
    for values, message in (
        (["x" * 32_768], "at most 32,767 characters, and row 2 has"),
        (["a"] * 3, "at most 3 rows"),
    ):
        with pytest.raises(TableError, match=message), write_table(tmp_path / "t.xlsx", ["text"]) as out:
            out.write(Rows(("text",), (values,)))
    assert list(tmp_path.iterdir()) == []


def test_a_missing_package_names_the_extra(tmp_path, monkeypatch):
    path = sheet_of(tmp_path / "t.xlsx", ("s", [["text"]]))
    for module, name in ("openpyxl", "t.xlsx"), ("pyarrow", "t.csv.zst"):
        monkeypatch.setitem(sys.modules, module, None)
        saved(tmp_path, "t.csv.zst", b"")
        assert "the `data` extra: pip install 'undrift[data]'" in refusal(path.with_name(name))


@pytest.mark.parametrize("chunk", [3, 1 << 18])
def test_json_arrays_are_read_as_a_stream(tmp_path, monkeypatch, chunk):
    monkeypatch.setattr(json_lines, "_CHUNK", chunk)
    monkeypatch.setattr(json_lines, "BLOCK_ROWS", 2)
    objects = [{"text": 'a "]," b', "n": 1}, {"text": "é\u2028", "deep": {"a": [1, {}]}}, {}, {"n": 12345}]
    for content in (json.dumps(objects), json.dumps(objects, indent=2), f"\ufeff \n{json.dumps(objects)}\n "):
        table = open_table(saved(tmp_path, "t.json", content.encode()))
        assert dict(table.kinds) == {"text": "str", "n": "int", "deep": "str"}
        assert [len(rows) for rows in table] == [2, 2]
        assert [value for rows in table for value in rows.values[1]] == [1, MISSING, MISSING, 12345]
    assert refusal(saved(tmp_path, "t.json", b"[ ]")).endswith("t.json is empty")


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b'[\n{"a": 1},\n{"a": 2', "t.json:3: not valid JSON (Expecting ',' delimiter)"),
        (b'[\n{"a": 1},\n', "t.json:3: not valid JSON (Expecting value)"),
        (b'[{"a": 1}\n', "t.json:2: the array has no end; is the file truncated?"),
        (b'[{"a": 1}\n{"a": 2}]', "t.json:2: not valid JSON (, or ] is needed, not '{')"),
        (b'[{"a": 1}]\n[]', "t.json:2: more after the end of the array"),
        (b'[{"a": 1},\n7]', "t.json:2: an array of objects is needed, and this is none; fix it, or skip"),
        (b'[\n{"a": 1, "a": 2}]', "t.json:2: not usable JSON (the key 'a' is there twice)"),
    ],
)
def test_broken_json_arrays(tmp_path, content, fault):
    assert fault in refusal(saved(tmp_path, "t.json", content))


def test_values_that_are_no_objects_can_be_skipped(tmp_path):
    table = open_table(saved(tmp_path, "t.json", b'[{"a": 1}, 7, null, {"a": 2}]'), skip_bad=True)
    assert rows_of(table) == [[1], [2]]
    assert table.n_bad == 2


def test_an_endless_value_of_an_array_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(json_lines, "LINE_LIMIT", 1000)
    monkeypatch.setattr(json_lines, "_CHUNK", 64)
    path = saved(tmp_path, "t.json", b'[{"a": 1},\n{"a": "%s"}]' % (b"x" * 5000))
    assert "t.json:2: the value has more than 1,000 characters" in refusal(path)


@pytest.mark.parametrize("compression", COMPRESS)
def test_broken_compressed_files(tmp_path, compression):
    whole = COMPRESS[compression](random.Random(1).randbytes(50_000).hex().encode())
    for broken in (whole[:-9], whole[:5000], b"text,label\na,b\n"):
        (tmp_path / f"t.csv{compression}").write_bytes(broken)
        message = refusal(tmp_path / f"t.csv{compression}", skip_bad=True)
        assert f"is truncated or not a {lines.COMPRESSIONS[compression]} file (" in message
        assert f"drop {compression}" in message


@pytest.mark.parametrize("compression", COMPRESS)
def test_decompression_bombs_are_refused(tmp_path, compression, monkeypatch):
    monkeypatch.setattr(lines, "_BOMB_BYTES", 1 << 18)
    bomb = COMPRESS[compression](b"text,label\n" + b"good,1\n" * 500_000)
    assert len(bomb) < 15_000
    (tmp_path / f"t.csv{compression}").write_bytes(bomb)
    message = refusal(tmp_path / f"t.csv{compression}")
    assert "is over 200 times as large when decompressed" in message
    (tmp_path / f"t.csv{compression}").write_bytes(COMPRESS[compression](b"text\n" + b"a\n" * 100_000))
    assert sum(map(len, open_table(tmp_path / f"t.csv{compression}"))) == 100_000


def test_a_spreadsheet_that_is_a_bomb_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(sheets, "_BOMB_BYTES", 1 << 20)
    path = sheet_of(tmp_path / "t.xlsx", ("s", [["text"], ["a"]]))
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/bomb.xml", b" " * 50_000_000)
    assert "is over 200 times as large when decompressed (50," in refusal(path)


def test_what_is_compressed_or_a_spreadsheet_under_another_name(tmp_path):
    names = {".bz2": "add .bz2", ".xz": "add .xz", ".zst": "add .zst"}
    for compression, truth in names.items():
        assert truth in refusal(saved(tmp_path, "t.csv", COMPRESS[compression](b"a,b\n")))
    assert "save it as .xlsx" in refusal(saved(tmp_path, "t.csv", b"\xd0\xcf\x11\xe0\xa1\xb1"))
    assert "drop .xz" in refusal(tmp_path / "t.xlsx.xz")


def test_a_folder_is_one_table_in_the_order_of_names(tmp_path):
    folder = tmp_path / "reviews"
    for name in ("data/train-00010-of-00011.parquet", "data/train-00002-of-00011.parquet"):
        (folder / "data").mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"text": [name[11:16]]}), folder / name)
    for name in ("README.md", ".hidden.csv", "_success.csv", "dataset_infos.json"):
        (folder / name).write_text("{}")
    (folder / "a.csv").write_text("text,label\na,1\n")
    (folder / ".cache").mkdir()
    (folder / ".cache" / "b.csv").write_text("text\nno\n")
    assert [path.name[:9] for path in shard_paths(folder)] == ["a.csv", "train-000", "train-000"]
    table = open_table(folder, text="text")
    assert rows_of(table) == [["a", "1"], ["00002", None], ["00010", None]]
    (folder / "z.csv.gz").write_bytes(b"broken")
    with pytest.raises(TableError, match=r"z\.csv\.gz is truncated or not a gzip file"):
        open_table(folder)


def test_several_text_columns_are_joined():
    rows = Rows(("title", "body"), (["a", "", None], ["b", "c", ""]))
    assert rows.texts(["title", "body"]) == ["a\nb", "c", ""]
    assert rows.texts(["body"]) == ["b", "c", ""]
