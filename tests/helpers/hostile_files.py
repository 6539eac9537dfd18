"""Data files that are wrong in some way: generated, the same bytes every time.

What `undrift predict` must say of each is in tests/data/hostile_lines.tsv, `read` where it is to be read.
"""

import bz2
import gzip
import io
import json
import lzma
import random
import re
import zipfile
from pathlib import Path

LINES = Path(__file__).parents[1] / "data" / "hostile_lines.tsv"
ROWS = [f"the {word} handle of this pan is {word}, {number} of 60" for number, word in enumerate(
    ["sturdy", "flimsy", "gripping", "boring", "heavy", "cheap"] * 10
)]  # fmt: skip
WRONG = [
    b"\0", b"\xff\xfe", b'"', b"\n", b"\xed\xa0\x80", b"\x1b[2J", b"{", b"\\", b",,,,", b"\xef\xbb\xbf",
]  # fmt: skip


def list_formats() -> dict[str, bytes]:
    """Return the same table in every format, by the ending of its name."""
    import openpyxl
    import pyarrow

    text = "".join(["review,stars\n", *(f'"{row}",\n' for row in ROWS)]).encode()
    objects = [{"review": row, "stars": None} for row in ROWS]
    book, sheet = openpyxl.Workbook(), io.BytesIO()
    for row in ["review", *ROWS]:
        book.active.append([row, "stars" if row == "review" else ""])
    book.save(sheet)
    return {
        ".csv": text,
        ".tsv": text.replace(b",\n", b"\t\n").replace(b"review,", b"review\t"),
        ".jsonl": "".join(json.dumps(row) + "\n" for row in objects).encode(),
        ".json": json.dumps(objects).encode(),
        ".csv.gz": gzip.compress(text, mtime=0),
        ".csv.bz2": bz2.compress(text),
        ".csv.xz": lzma.compress(text),
        ".csv.zst": pyarrow.compress(text, codec="zstd", asbytes=True),
        ".xlsx": _without_times(sheet.getvalue()),
        ".parquet": LINES.with_name("rows.parquet").read_bytes(),  # versions of pyarrow write other bytes
    }


def _without_times(content: bytes) -> bytes:
    """Return a zip file whose members have no times and are not compressed."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(made, "w") as new:
        for name in sorted(old.namelist()):
            data = re.sub(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", b"2020-01-01T00:00:00Z", old.read(name))
            new.writestr(zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0)), data)
    return made.getvalue()


def change_bytes(content: bytes, rng: random.Random) -> bytes:
    """Return a file that is cut, overwritten, or has something too much or too little at a random place."""
    place, action = rng.randrange(len(content)), rng.randrange(4)
    if action == 0:
        return content[:place]
    if action == 1:
        return content[:place] + bytes([rng.randrange(256)]) + content[place + 1 :]
    if action == 2:
        return content[:place] + rng.choice(WRONG) + content[place:]
    return content[:place] + content[place + rng.randrange(1, 200) :]


def list_changed_files(n_each: int) -> dict[str, bytes]:
    """Return files with something wrong at a random place, so many of each format."""
    return {
        f"changed-{seed}{ending}": change_bytes(content, random.Random(f"{ending}{seed}"))
        for ending, content in list_formats().items()
        for seed in range(n_each)
    }


def list_written_files() -> dict[str, bytes]:
    """Return files that somebody thought of."""
    formats = list_formats()
    text = formats[".csv"]
    lines = text.decode()
    wide = ",".join(f"c{number}" for number in range(100_000))
    return {
        "empty.csv": b"",
        "empty.parquet": b"",
        "empty.xlsx": b"",
        "empty.csv.gz": b"",
        "empty array.json": b"[]",
        "newline.csv": b"\n",
        "header.csv": b"review,stars\n",
        "nul.csv": b"\0" * 1000,
        "nul in a field.csv": b"review,stars\ngood\0pan,\n",
        "nul in a field.jsonl": b'{"review": "good\\u0000pan"}\n',
        "bom.csv": b"\xef\xbb\xbf" + text,
        "two boms.csv": b"\xef\xbb\xbf\xef\xbb\xbf" + text,
        "utf-16.csv": lines.encode("utf-16"),
        "utf-16-le.csv": lines.encode("utf-16-le"),
        "utf-16 odd.csv": lines.encode("utf-16")[:-1],
        "utf-32.csv": lines.encode("utf-32"),
        "utf-7.csv": "review,stars\nré,\n".encode("utf-7"),
        "latin-1.csv": "review,stars\nchaud-froid réussi,\n".encode("latin-1"),
        "shift-jis.csv": "review,stars\n日本語の文章です。とても良い,\n".encode("shift-jis"),
        "surrogate.jsonl": b'{"review": "\\ud800 lone"}\n',
        "surrogate column.jsonl": b'{"review": "a", "\\udfff": 1}\n',
        "surrogate bytes.csv": b"review,stars\n\xed\xa0\x80,\n",
        "no column.csv": b"a,b\n1,2\n",
        "no column.jsonl": b'{"text": "a"}\n',
        "wide.csv": f"review,{wide}\nx\n".encode(),
        "wide and whole.csv": f"review,{wide}\nx{',1' * 100_000}\n".encode(),
        "wide.jsonl": json.dumps({"review": "x", **{f"c{i}": i for i in range(100_000)}}).encode() + b"\n",
        "long field.csv": b'review\n"' + b"x " * 9_000_000 + b'"\n',
        "long line.jsonl": b'{"review": "' + b"y" * 20_000_000 + b'"}\n',
        "long value.json": b'[{"review": "' + b"y" * 20_000_000 + b'"}]\n',
        "long name.csv": b"review," + b"n" * 100_000 + b"\na,b\n",
        "quote.csv": b'review,stars\n"never closed,\n' * 3,
        "ragged.csv": b"review,stars\na,b,c,d\ne\n",
        "nested.jsonl": b'{"review": {"a": [1]}}\n',
        "number.jsonl": b'{"review": 5}\n{"review": null}\n{"review": true}\n',
        "mixed.jsonl": b'{"review": "a", "x": 1}\n{"review": "b", "x": "y"}\n{"review": "c", "x": [1.5]}\n',
        "long number.jsonl": b'{"review": ' + b"9" * 5000 + b"}\n",
        "array.jsonl": b"[1, 2]\n",
        "same keys.jsonl": b'{"review": "a", "review": "b"}\n',
        "deep.json": b"[" * 100_000,
        "deep.jsonl": b'{"review": ' + b"[" * 100_000 + b"\n",
        "dates.csv": b"review,stars\n2024-01-01,2024\n",
        "text.parquet": text,
        "text.xlsx": text,
        "text.csv.gz": text,
        "text.csv.xz": text,
        "text.csv.bz2": text,
        "text.csv.zst": text,
        "parquet.csv": b"PAR1" + bytes(100) + b"PAR1",
        "parquet.parquet": b"PAR1" + bytes(100) + b"PAR1",
        "compressed.csv": formats[".csv.gz"],
        "bzip2.csv": formats[".csv.bz2"],
        "xz.csv": formats[".csv.xz"],
        "zstandard.csv": formats[".csv.zst"],
        "old spreadsheet.csv": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(16),
        "json.csv": b'{"review": "a", "stars": 1}\n',
        "csv.jsonl": text,
        "object.json": b'{\n"review": "a"}\n',
        "control characters.csv": bytes(range(1, 9)) * 500,
        "spreadsheet.csv": formats[".xlsx"],
        "two streams.csv.gz": formats[".csv.gz"] + gzip.compress(b'"and more",\n', mtime=0),
        "and rubbish.csv.gz": formats[".csv.gz"] + b"rubbish",
        "crlf.csv": text.replace(b"\n", b"\r\n"),
        "cr.csv": text.replace(b"\n", b"\r"),
        "same names.csv": b"review,review\na,b\n",
        "blank header.csv": b",,\na,b,c\n",
        "prediction.csv": b"review,prediction\na,b\n",
        "infinity.json": b'[{"review": Infinity}]',
        "escape.csv": b"review,stars\n\x1b]0;title\x07\x1b[31mred,\n",
        "escape column.csv": b"\x1b[2Jreview,stars\na,\n",
        "zeros.xlsx": b"PK\3\4" + bytes(200),
        "zip.xlsx": _zip({"a.txt": b"a"}),
        "bomb.xlsx": _zip({"xl/workbook.xml": bytes(1000), "[Content_Types].xml": b""}),
        "zst.csv.zst": b"\x28\xb5\x2f\xfd" + bytes(50),
    }


def _zip(members: dict[str, bytes]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0)), content)
    return made.getvalue()


def describe_outcome(status: int, said: str) -> str:
    """Return what a command made of a file: `read`, or the line it said, less what a library adds to it."""
    if status == 0:
        return "read"
    lines = [line for line in said.splitlines() if line.startswith("undrift: ")]
    line = lines[0] if len(lines) == 1 else f"{len(lines)} lines, status {status}"
    line = re.sub(r"\(.*", "(...", line.removeprefix("undrift: "))
    return line.encode("unicode_escape").decode()


def read_expected() -> dict[str, str]:
    """Return what must be said of every file."""
    pairs = (line.split("\t", 1) for line in LINES.read_text(encoding="utf-8").splitlines())
    return dict(pairs)  # type: ignore[arg-type]
