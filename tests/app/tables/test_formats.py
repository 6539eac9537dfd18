"""Spreadsheets, JSON arrays, compressed files and folders: what they hold, how broken ones are refused."""

import bz2
import datetime
import gzip
import lzma
import sys
import zipfile

import openpyxl
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.app.tables.test_bad_input import refusal
from tests.app.tables.test_reading import rows_of, saved
from undrift.app.tables import TableError, list_texts, open_table, shard_paths, write_table
from undrift.errors import UndriftWarning

COLUMNS = ("text", "n", "x", "b")
VALUES = (
    ['a, "q"\nline', "=1+1", "好👍", None],
    [1, 2, 3, None],
    [0.5, 1.5, 2.5, 3.5],
    [True, False, None, True],
)
KINDS = {"text": {str}, "n": {int}, "x": {float}, "b": {bool}}
FRAME = pd.DataFrame(dict(zip(COLUMNS, VALUES, strict=True)), dtype=object)
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
    with write_table(path, KINDS) as write:
        write(FRAME)
    (frame,) = open_table(path, text="text")
    assert [list_texts(frame, name) for name in COLUMNS] == [
        ['a, "q"\nline', "=1+1", "好👍", ""],
        ["1", "2", "3", ""],
        ["0.5", "1.5", "2.5", "3.5"],
        ["true", "false", "", "true"],
    ]
    assert [inside.name for inside in tmp_path.iterdir()] == [path.name]


def test_spreadsheets_hold_the_same_and_formulas_in_text_stay_text(tmp_path):
    path = tmp_path / "t.xlsx"
    with write_table(path, KINDS) as write:
        write(FRAME)
        write(pd.DataFrame({"text": ["bell \x07"]}))
    table = open_table(path)
    assert table.kinds == KINDS
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
    assert table.kinds == {"text": {str}, "when": {str}, "3": {int, float}}


def test_a_title_above_the_header_of_a_spreadsheet_is_left_out(tmp_path):
    rows = [["Reviews of May"], [], ["text", "n"], ["a", 1], ["b"]]
    path = sheet_of(tmp_path / "t.xlsx", ("s", rows))
    said = "'Reviews of May' is taken as a title; the header is row 3"
    with pytest.warns(UndriftWarning, match=said):
        table = open_table(path)
    assert table.columns == ("text", "n")
    assert rows_of(table) == [["a", 1], ["b", None]]
    bad = sheet_of(path, ("s", [["text"], ["a", "beyond"]]))
    assert "column 2 has no name in row 1" in refusal(bad)


def test_several_sheets_and_bad_columns_of_a_spreadsheet(tmp_path):
    first, second = ("one", [["text"], ["a"]]), ("two", [["text"], ["b"]])
    path = sheet_of(tmp_path / "t.xlsx", first, second, ("blank", []))
    assert refusal(path).endswith("t.xlsx has 2 sheets: one, two; choose one with --format sheet=NAME")
    assert rows_of(open_table(path, sheet="two")) == [["b"]]
    assert "has no sheet 'three'; it has one, two, blank" in refusal(path, sheet="three")
    assert "the sheet is empty" in refusal(path, sheet="blank")
    assert rows_of(open_table(sheet_of(path, first, ("blank", [])))) == [["a"]]
    path = sheet_of(tmp_path / "t.xlsx", ("s", [["text", "n"], ["a", 1, "beyond"], ["b", 2]]))
    assert "t.xlsx: column 3 has no name in row 1" in refusal(path)
    assert "column 1 has no name in row 1" in refusal(sheet_of(path, ("s", [[None, "n"], ["a", 1]])))
    assert "two columns called 'n'" in refusal(sheet_of(path, ("s", [["n", "n"]])))


def test_what_a_spreadsheet_cannot_hold_is_refused_and_nothing_is_left(tmp_path, set_limits):
    set_limits(_MOST_ROWS=3)
    for values, message in (
        (["x" * 32_768], "at most 32,767 characters, and row 2 has"),
        (["a"] * 3, "at most 3 rows"),
    ):
        kinds = {"text": {str}}
        with pytest.raises(TableError, match=message), write_table(tmp_path / "t.xlsx", kinds) as write:
            write(pd.DataFrame({"text": values}))
    assert list(tmp_path.iterdir()) == []


def test_a_missing_package_names_the_extra(tmp_path, monkeypatch):
    path = sheet_of(tmp_path / "t.xlsx", ("s", [["text"]]))
    for module, name in ("openpyxl", "t.xlsx"), ("pyarrow", "t.csv.zst"), ("pyarrow.parquet", "t.parquet"):
        monkeypatch.setitem(sys.modules, module, None)
        (tmp_path / name).touch()
        assert "the `data` extra: pip install 'undrift[data]'" in refusal(path.with_name(name))


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b'[\n{"a": 1},\n{"a": 2', "t.json:3: not valid JSON (Expecting ',' delimiter)"),
        (b'[\n{"a": 1},\n', "t.json:3: not valid JSON (Expecting value)"),
        (b'[{"a": 1}\n', "t.json:2: not valid JSON (Expecting ',' delimiter)"),
        (b'[{"a": 1}\n{"a": 2}]', "t.json:2: not valid JSON (Expecting ',' delimiter)"),
        (b'[{"a": 1}]\n[]', "t.json:2: not valid JSON (Extra data)"),
        (
            b'[{"a": 1},\n7]',
            "t.json:2: an array of objects is needed, and this element is none; fix it, or skip",
        ),
        (b'[\n{"a": 1, "a": 2}]', "t.json: not usable JSON (the key 'a' is there twice)"),
    ],
)
def test_broken_json_arrays(tmp_path, content, fault):
    assert fault in refusal(saved(tmp_path, "t.json", content))


def test_values_that_are_no_objects_can_be_skipped(tmp_path):
    table = open_table(saved(tmp_path, "t.json", b'[{"a": 1}, 7, null, {"a": 2}]'), skip_bad=True)
    assert rows_of(table) == [[1], [2]]
    assert table.n_bad == 2


@pytest.mark.parametrize("compression", COMPRESS)
def test_decompression_bombs_are_refused(tmp_path, compression, set_limits):
    set_limits(_BOMB_BYTES=1 << 18)
    bomb = COMPRESS[compression](b"text,label\n" + b"good,1\n" * 500_000)
    assert len(bomb) < 15_000
    (tmp_path / f"t.csv{compression}").write_bytes(bomb)
    message = refusal(tmp_path / f"t.csv{compression}")
    assert "is over 200 times as large when decompressed" in message
    (tmp_path / f"t.csv{compression}").write_bytes(COMPRESS[compression](b"text\n" + b"a\n" * 100_000))
    assert sum(map(len, open_table(tmp_path / f"t.csv{compression}"))) == 100_000


def test_a_spreadsheet_that_is_a_bomb_is_refused(tmp_path, set_limits):
    set_limits(_BOMB_BYTES=1 << 20)
    path = sheet_of(tmp_path / "t.xlsx", ("s", [["text"], ["a"]]))
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/bomb.xml", b" " * 50_000_000)
    assert "is over 200 times as large when decompressed (50," in refusal(path)


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
    for name, kind in (("z.csv.gz", "gzip"), ("b.parquet", "Parquet")):
        (folder / name).write_bytes(b"PAR1 broken")
        with pytest.raises(TableError, match=rf"{name} is truncated or not a {kind} file"):
            open_table(folder)


def test_several_text_columns_are_joined():
    frame = pd.DataFrame({"title": ["a", "", None], "body": ["b", "c", ""]}, dtype=object)
    assert list_texts(frame, ["title", "body"]) == ["a\nb", "c", ""]
    assert list_texts(frame, ["body"]) == ["b", "c", ""]
