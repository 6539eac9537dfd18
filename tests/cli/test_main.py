"""The program as a whole: version, help, exit status."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from tests.helpers.commands import ADAPT, change_options, run_program
from undrift import __version__


def test_version_and_help(undrift):
    assert undrift("--version") == (0, f"undrift {__version__}\n", "")
    status, out, _ = undrift("--help")
    assert status == 0
    for command in ("adapt", "demo", "explain", "predict"):
        assert command in out
        assert undrift(command, "--help")[0] == 0
    assert refused_outright(undrift("adpat"))


def refused_outright(result):
    status, out, err = result
    return status == 2 and out == "" and err.count("\n") == 1


def test_as_a_program(folder):
    done = run_program(*ADAPT, "--json", "--noise", "0.7,0.6,0.8")
    assert (done.returncode, done.stderr) == (0, "")  # quiet where there is no terminal
    summary = json.loads(done.stdout)
    assert (summary["rule"], summary["n_candidates"]) == ("one-se", 3)
    wrong = run_program(*change_options(ADAPT, text="no such"))
    assert wrong.returncode == 2
    assert wrong.stdout == ""
    assert wrong.stderr.count("\n") == 1
    assert "Traceback" not in wrong.stderr


@pytest.mark.parametrize(
    ("code", "status", "says"),
    [(None, 0, ""), (0, 0, ""), (3, 3, ""), ("no luck", 1, "undrift: no luck\n"), ("", 1, "undrift: \n")],
)
def test_a_text_to_exit_with_is_an_error_and_is_printed(undrift, monkeypatch, code, status, says):
    def ended(*args, **options):
        raise SystemExit(code)

    monkeypatch.setattr("undrift.bench.write_domains", ended)
    assert undrift("bench", "generate", "anywhere") == (status, "", says)


def test_the_version_is_shown_in_half_of_the_time_that_scikit_learn_takes():
    def measure(*arguments: str) -> float:
        start = time.perf_counter()
        subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
        return time.perf_counter() - start

    ratios = [
        measure("-m", "undrift", "--version") / measure("-c", "import sklearn.linear_model") for _ in range(3)
    ]
    assert min(ratios) < 0.5


def test_an_interrupt_during_an_import_is_one_line(folder):
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
        assert program.wait(30) == 130
        assert program.stderr.read() == "undrift: interrupted; nothing was written\n"
