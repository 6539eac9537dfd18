"""Types reach users: checkers of types accept a script, and refuse its mistakes."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import undrift

ROOT = Path(__file__).parent.parent
SOURCE = Path(undrift.__file__).parents[1]
SCRIPT = Path(__file__).parent / "data" / "user_script.py"
LINES = SCRIPT.read_text(encoding="utf-8").splitlines()
REFUSED = [number for number, line in enumerate(LINES, start=1) if line.endswith("# refused")]


def check(*command: str | Path) -> str:
    """Run a checker that has to find errors; returns what it printed."""
    environment = os.environ | {"MYPYPATH": str(SOURCE)}
    program = [sys.executable, "-m", *command]
    done = subprocess.run(program, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stdout


def test_the_script_has_lines_to_refuse():
    assert len(REFUSED) > 10


@pytest.mark.slow
def test_mypy_refuses_the_mistakes_and_nothing_else():
    said = check("mypy", SCRIPT)
    errors = re.findall(r"^tests.data.user_script\.py:(\d+): error", said, re.MULTILINE)
    assert sorted({int(number) for number in errors}) == REFUSED, said


@pytest.mark.slow
def test_pyright_refuses_the_mistakes_and_nothing_else(tmp_path):
    shutil.copy(SCRIPT, tmp_path)  # an included path has to be below the settings
    settings = {"include": [SCRIPT.name], "extraPaths": [str(SOURCE)]}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    said = check("pyright", "--outputjson", "--pythonpath", sys.executable, "-p", tmp_path)
    found = json.loads(said)["generalDiagnostics"]
    lines = {each["range"]["start"]["line"] + 1 for each in found if each["severity"] == "error"}
    assert sorted(lines) == REFUSED, found
