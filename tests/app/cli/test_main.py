"""The program as a whole: version, help, exit status."""

import contextlib
import io
import json
import os
import signal
import struct
import subprocess
import sys

import pytest
from rich.console import Console
from rich.progress import Progress

from tests.helpers.commands import ADAPT, change_options, run_program
from undrift import __version__
from undrift.app.terminal import StageBar


def test_version_and_help(undrift, succeed):
    assert undrift("--version") == (0, f"undrift {__version__}\n", "")
    out = succeed("--help")
    for command in ("adapt", "demo", "explain", "predict"):
        assert command in out
        assert undrift(command, "--help")[0] == 0
    assert refused_outright(undrift("adpat"))


def refused_outright(result):
    status, out, err = result
    return status == 2 and out == "" and err.count("\n") == 1


def test_as_a_program(folder):
    done = run_program(*ADAPT, "--json", "--set", "noise=0.7,0.6,0.8")
    assert (done.returncode, done.stderr) == (0, "")  # quiet where there is no terminal
    summary = json.loads(done.stdout)
    assert (summary["rule"], summary["n_candidates"]) == ("source-cv", 3)
    wrong = run_program(*change_options(ADAPT, text="no such"))
    assert wrong.returncode == 2
    assert wrong.stdout == ""
    assert wrong.stderr.count("\n") == 1
    assert "Traceback" not in wrong.stderr


@pytest.mark.parametrize(
    ("error", "status", "says"),
    [
        (SystemExit(None), 0, ""),
        (SystemExit(3), 3, ""),
        (SystemExit("no luck"), 1, "undrift: no luck\n"),
        (SystemExit(""), 1, "undrift: \n"),
        (KeyboardInterrupt(), 130, "undrift: interrupted; nothing was written\n"),
    ],
)
def test_a_text_to_exit_with_and_an_interrupt_are_one_line(undrift, fail, error, status, says):
    fail("pathlib.Path.mkdir", error)
    assert undrift("demo") == (status, "", says)


@pytest.mark.posix
def test_an_interrupt_during_an_import_is_one_line(folder, heeded_interrupts):
    """A package that takes long to import stands for scikit-learn."""
    (folder / "slow" / "sklearn").mkdir(parents=True)
    (folder / "slow" / "sklearn" / "__init__.py").write_text(
        "print(1, flush=True)\nimport time\ntime.sleep(60)"
    )
    path = os.pathsep.join([str(folder / "slow"), *sys.path])
    command = [sys.executable, "-m", "undrift", *ADAPT]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, text=True, env={**os.environ, "PYTHONPATH": path}, **pipes) as program:
        assert program.stdout.readline() == "1\n"
        program.send_signal(signal.SIGINT)
        assert program.wait(600) == 130
        assert program.stderr.read() == "undrift: interrupted; nothing was written\n"


def test_quiet_prints_nothing_but_json(folder, undrift):
    assert undrift(*ADAPT, "--quiet") == (0, "", "")
    status, out, _ = undrift(*ADAPT, "-q", "--json")
    assert (status, json.loads(out)["rule"]) == (0, "fixed")
    assert "Read books.csv" in undrift(*ADAPT)[1]  # it does not stay quiet


def test_short_names_and_the_first_screen_of_help(undrift, succeed, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert undrift("-V") == undrift("--version")
    out = succeed("adapt", "-h")
    lines = out.splitlines()
    assert max(map(len, lines)) <= 80
    first = " ".join(lines[:24])
    names = ("source", "target", "text", "label", "out", "model", "report", "target-label")
    assert all(f"--{name} " in first for name in names)
    for panel in ("Labels of the target", "Class shares", "Learning", "Output", "Running"):
        assert f"─ {panel} ─" in out
    for fact in ("undrift adapt books.csv kitchen.csv", "score|train|both", "error|balanced", ".parquet"):
        assert fact in " ".join(out.split())
    assert "--install-completion" in undrift("--help")[1]


def test_a_reader_that_closes_the_pipe_is_no_error(folder):
    for arguments in (["adapt", "--help"], [*ADAPT, "--json"], ADAPT):
        command = [sys.executable, "-m", "undrift", *arguments]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            process.stdout.close()
            assert process.wait(600) == 0
            assert process.stderr.read() == b""


@pytest.mark.posix
def test_after_an_interrupt_tasks_of_asyncio_are_not_reported():
    """Those of a client of Dask that are given up would each be a traceback."""
    program = """
import asyncio, gc, signal
from undrift import app as cli
async def fail(): raise OSError("a task that nobody waits for")
async def give_up():
    task = asyncio.ensure_future(fail())
    await asyncio.sleep(0)
    del task
    gc.collect()
try: cli._interrupt(signal.SIGINT, None)
except KeyboardInterrupt: pass
asyncio.run(give_up())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr == ""


def test_an_interrupt_says_what_was_written():
    from undrift import app as cli
    from undrift import files

    files.WRITTEN.clear()
    assert cli._describe_interrupt() == "undrift: interrupted; nothing was written"
    files.WRITTEN.append("a.csv")
    assert cli._describe_interrupt() == "undrift: interrupted; already written: a.csv"
    files.WRITTEN.clear()


def test_an_interrupt_when_all_is_done_is_no_traceback():
    program = """
import os, signal, sys
from undrift import app as cli
class Output:
    def flush(self): os.kill(os.getpid(), signal.SIGINT)
    def __getattr__(self, name): return getattr(sys.__stdout__, name)
sys.stdout = Output()
signal.signal(signal.SIGINT, signal.default_int_handler)
cli.main(["--version"])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.posix
def test_a_terminal_shows_a_bar_at_once(folder):
    """Before scikit-learn is imported, which takes most of the first second."""
    import fcntl
    import pty
    import termios

    read, write = pty.openpty()
    fcntl.ioctl(write, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
    script = "import os, sys; from undrift.app import main, terminal; bar = terminal.StageBar.__init__\n"
    script += "def show(*given):\n    os.write(1, b'%d ' % ('sklearn' in sys.modules)); bar(*given)\n"
    script += f"terminal.StageBar.__init__ = show; main({ADAPT!r})"
    environment = {**os.environ, "TERM": "xterm"}
    command = [sys.executable, "-c", script]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=write, env=environment) as process:
        os.close(write)
        shown = b""
        with contextlib.suppress(OSError):  # at its end
            while part := os.read(read, 65536):
                shown += part
        said = process.stdout.read()
    os.close(read)
    assert said.startswith(b"0 1 Read books.csv")
    assert shown.index(b"starting") < shown.index(b"counting terms")


def test_one_bar_names_its_stage_and_moves():
    progress = Progress(console=Console(file=io.StringIO()))
    bar = StageBar(progress)
    seen = []
    for step in (
        lambda: bar("reading books.csv", 0.5),
        lambda: bar.show_layers(0, 2),
        lambda: bar.show_layers(1, 2),
        lambda: bar.show_layers(2, 2),
        lambda: bar("saving the model"),
    ):
        step()
        (task,) = progress.tasks
        seen.append((task.description, task.total, task.completed))
    assert seen == [
        ("reading books.csv", 1.0, 0.5),
        ("learning layers", 1.0, 0.0),
        ("learning layers", 1.0, 0.5),
        ("fitting the classifier", None, 0),  # the bar moves back and forth
        ("saving the model", None, 0),
    ]
