"""What is in data is shown on a terminal, and never obeyed by it."""

import json
import os
import random
import re
import subprocess
import sys

import pytest

from tests.helpers.review_files import write_csv
from undrift.app import terminal
from undrift.errors import escape_controls

# a colour, the same by one byte, a bell, the start of the line, a window's title, text from right to left
HOSTILE = "\x1b[31m\x9b2J\x07\r\x1b]0;title\x07\u202e"
SHOWN = "\\u001b[31m\\u009b2J\\u0007"
OBEYED = ("\x1b[31m", "\x9b", "\x07", "\x1b]0", "\u202e")


def test_control_characters_are_shown_as_json_writes_them():
    assert escape_controls(HOSTILE).startswith(SHOWN)
    assert escape_controls("é 漢字 🏴‍☠️ שלום\n\ttext") == "é 漢字 🏴‍☠️ שלום\n\ttext"
    assert escape_controls("\ud800\x7f\x00").encode() == rb"\ud800\u007f\u0000"


def test_json_stays_json(capsys):
    data = {HOSTILE: [HOSTILE, "\udfff"]}
    terminal.show_json(data)
    said = capsys.readouterr().out
    assert not any(each in said for each in OBEYED)
    assert json.loads(said) == data


def run_on_terminal(folder, *arguments):
    """Return what a command wrote to a terminal, and its status."""
    reader, writer = os.openpty()
    environment = {**os.environ, "TERM": "xterm", "NO_COLOR": "1"}
    command = [sys.executable, "-m", "undrift", *arguments]
    streams = {"stdin": subprocess.DEVNULL, "stdout": writer, "stderr": writer}
    with subprocess.Popen(command, cwd=folder, env=environment, **streams) as process:
        os.close(writer)
        said = b""
        try:
            while piece := os.read(reader, 1 << 16):
                said += piece
        except OSError:  # the end of a terminal
            pass
        os.close(reader)
    return said.decode(), process.returncode


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Tables with control sequences in their names, columns, labels and texts."""
    folder, rng = tmp_path_factory.mktemp("hostile"), random.Random(0)
    words = {f"pos{HOSTILE}": ["good", "fine"], f"neg{HOSTILE}": ["bad", "dull"]}
    for name, nouns in (("books", ["page", "plot"]), ("pans", ["lid", "handle"])):
        labels = rng.choices(list(words), k=60)
        texts = [" ".join(rng.choices([*words[label], *nouns], k=40)) for label in labels]
        columns = {f"text{HOSTILE}": [texts[0] + HOSTILE, *texts[1:]], f"label{HOSTILE}": labels}
        write_csv(folder / f"{name}{HOSTILE}.csv", columns)
    return folder


@pytest.mark.posix
def test_a_terminal_obeys_nothing_that_is_in_data(folder):
    books, pans = (f"{name}{HOSTILE}.csv" for name in ("books", "pans"))
    text = ["--text", f"text{HOSTILE}"]
    adapt = ["adapt", "--source", books, "--target", pans, *text, "--label", f"label{HOSTILE}"]
    predict = ["predict", "--model", "m", "--input", pans]
    runs = {
        "summary and progress": (
            [*adapt, "--set", "layers=1", "--model", "m", "--out", f"out{HOSTILE}.csv"],
            0,
        ),
        "rows": ([*predict, *text, "--out", "-", "--format", "csv"], 0),
        "no such column": ([*predict, "--text", "none", "--out", "out.csv"], 2),
        "no such file": (["predict", "--model", f"m{HOSTILE}", "--input", pans, *text, "--out", "o.csv"], 2),
    }
    for name, (arguments, expected) in runs.items():
        said, status = run_on_terminal(folder, *arguments)
        assert status == expected, said
        assert not any(each in said for each in OBEYED), name
        assert SHOWN in said or r"\u{1b}[31m" in said  # as older safetensors says it


@pytest.mark.posix
def test_messages_on_a_terminal_break_between_words(tmp_path):
    """A refusal, and the note that predictions alone are kept, which comes before the work."""
    names = [f"the column number {i}" for i in range(12)]
    for name in ("books.csv", "pans.csv"):
        write_csv(tmp_path / name, {"text": ["some words"] * 40, **{each: ["x"] * 40 for each in names}})
    command = ["adapt", "books.csv", "pans.csv", "--text", "text", "--out", "o.csv", "--label"]
    said, status = run_on_terminal(tmp_path, *command, "stars")
    assert status == 2
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", said).splitlines()  # without what moves the cursor
    lines = [line for line in shown if "undrift: " in line or "column" in line]
    assert len(lines) > 3
    assert all(len(line) <= 80 for line in lines)
    assert "books.csv has no column 'stars'. Columns: text, the column number 0, the" in " ".join(lines)
    assert "note: predictions alone are kept; --model FILE --updatable keeps the model too" in said
    assert "note: " not in run_on_terminal(tmp_path, *command, "stars", "--model", "m")[0]
