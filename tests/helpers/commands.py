"""Commands for tests of the command line: their arguments, and how they are refused."""

import json
import shlex
import subprocess
import sys
from pathlib import Path

from typer.testing import CliRunner

from undrift.app.cli import app

SMALL = ["--max-features", "120", "--set", "layers=2"]
ADAPT = ["adapt", "--source", "books.csv", "--target", "kitchen.csv", "--text", "review", "--label", "stars"]
ADAPT += ["--out", "out.csv", *SMALL]
PREDICT = ["predict", "--input", "kitchen.csv", "--text", "review", "--out", "out.csv"]


def change_options(arguments: list, **options) -> list:
    """Return the same command with other values; None takes an option out."""
    arguments = list(arguments)
    for name, value in options.items():
        option = f"--{name.replace('_', '-')}"
        if option in arguments:
            place = arguments.index(option)
            del arguments[place : place + 2]
        if value is not None:
            arguments += [option, value]
    return arguments


def predict(model, /, **options) -> list:
    """Return the command that predicts kitchen.csv, with other options if these are given."""
    return change_options([*PREDICT, "--model", model], **options)


def check_refused(undrift, folder: Path, arguments: list) -> str:
    """Return the one line with which a command is refused; it must leave nothing behind."""
    before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    status, out, err = undrift(*arguments)
    assert status == 2
    assert out == ""
    assert err.startswith("undrift: ")
    assert err.count("\n") == 1, err
    assert "Traceback" not in err
    assert {path.name: path.stat().st_mtime_ns for path in folder.iterdir()} == before
    return err.removeprefix("undrift: ").rstrip("\n")


def run_command(*arguments) -> dict:
    """Run a command in this process, and return the JSON that it prints."""
    words = [*map(str, arguments), "--json"]
    done = CliRunner().invoke(app, words, catch_exceptions=False, obj=shlex.join(["undrift", *words]))
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def run_program(*arguments, **options) -> subprocess.CompletedProcess:
    """Run the command line as a subprocess."""
    command = [sys.executable, "-m", "undrift", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)
