"""Memory does not grow with the length of a line."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import undrift

MIB = 1 << 20

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="peak memory is read from /proc"
)

# Not ru_maxrss: a new process takes that over from the one that starts it.
PEAK = """
def peak():
    with open("/proc/self/status") as status:
        return next(1024 * int(line.split()[1]) for line in status if line.startswith("VmHWM"))
"""

REFUSE = """
import sys
from undrift.app.tables import TableError, open_table

before = peak()
try:
    for rows in open_table(sys.argv[1]):
        pass
except TableError as error:
    print(error)
table = open_table(sys.argv[1], skip_bad=True)
print(sum(map(len, table)), table.n_bad)
print(peak() - before)
"""


def output_of(script, *arguments):
    """What a script prints in a process of its own, whose peak memory is its own."""
    source = str(Path(undrift.__file__).parents[1])
    command = [sys.executable, "-c", PEAK + script, *map(str, arguments)]
    environment = os.environ | {"PYTHONPATH": source}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    ("name", "n_mib", "before", "start", "fault"),
    [
        ("line.csv", 200, b"text,label\na,1\n", b"", "line.csv:3: the line has more than"),
        ("line.jsonl", 80, b'{"text": "a"}\n\n', b'{"text": "', "line.jsonl:3: the line has more than"),
        (
            "quote.csv",
            80,
            b"text,label\na,1\n",
            b'"',
            "quote.csv:3: a quoted field that starts here is never",
        ),
    ],
)
def test_an_endless_row_is_refused_in_little_memory(tmp_path, name, n_mib, before, start, fault):
    filler = (b"word " * 200 + b"\n") * 100 if name == "quote.csv" else b"word " * 20_020
    with open(tmp_path / name, "wb") as file:
        file.write(before + start)
        for _ in range(n_mib * MIB // len(filler)):
            file.write(filler)
    message, counts, growth = output_of(REFUSE, tmp_path / name)
    assert fault in message
    n_rows, n_bad = map(int, counts.split())
    assert n_rows == 1
    assert n_bad >= 1
    # a line of 16 Mi characters is held twice; csv holds a field at 4 bytes a character
    assert int(growth) < (128 if name == "quote.csv" else 64) * MIB


def test_text_tables_do_without_pyarrow(tmp_path):
    script = (
        "import sys; sys.modules['pyarrow'] = None  # as if it were not installed\n"
        "import undrift.app.tables as t; print(sum(1 for _ in t.open_table(sys.argv[1])) > 0)"
    )
    (tmp_path / "t.csv").write_text("text,id\na review,1\n")
    assert output_of(script, tmp_path / "t.csv") == ["True"]
