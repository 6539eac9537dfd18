"""Memory does not grow with the number of rows, nor with the length of a line."""

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

COPY = """
import sys
from undrift.app.tables import open_table, with_added, write_table

def copy(source, target):
    table = open_table(source, text="text")
    n_rows = 0
    with write_table(target, with_added(source, table.kinds, {"score": {float}})) as write:
        for frame in table:
            write(frame.assign(score=0.5))
            n_rows += len(frame)
    return n_rows

few, many, target = sys.argv[1:]
copy(few, target)  # imports and caches
n_few, before = copy(few, target), peak()
n_many, after = copy(many, target), peak()
print(n_few, n_many, after - before)
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
    done = subprocess.run(
        [sys.executable, "-c", PEAK + script, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": source},
    )
    return done.stdout.splitlines()


def rows_in(path, n_rows):
    """A file of short rows, 45 bytes each; ten times that as Python objects."""
    row = {
        ".csv": "this is a short review of something,{},4.5\n",
        ".jsonl": '{{"text": "a short review", "id": {}}}\n',
        ".json": '{{"text": "a short review", "id": {}}},\n',
    }
    start, end = {".csv": ("text,id,stars\n", ""), ".json": ("[", "{}]")}.get(path.suffix, ("", ""))
    with open(path, "w") as file:
        file.write(start)
        file.writelines(row[path.suffix].format(i) for i in range(n_rows))
        file.write(end)
    return path


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_ten_times_the_rows_need_no_more_memory(tmp_path, suffix):
    n_rows = {".csv": 20_000}.get(suffix, 10_000)
    few, many = rows_in(tmp_path / f"few{suffix}", n_rows), rows_in(tmp_path / f"many{suffix}", 10 * n_rows)
    n_few, n_many, growth = map(int, output_of(COPY, few, many, tmp_path / f"out{suffix}")[0].split())
    assert (n_few, n_many) == (n_rows, 10 * n_rows)
    assert growth < 6 * MIB  # the rows as Python objects take 25 or more


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
            "quote.csv:3: a quoted field that starts here is never closed",
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
    assert output_of(script, rows_in(tmp_path / "t.csv", 3)) == ["True"]
