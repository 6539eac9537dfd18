"""`undrift demo`, and what README, tutorial and the page on the day after show of it and of what follows."""

import os
import re
import shlex
from pathlib import Path

import numpy as np

from tests.helpers.commands import check_refused
from tests.helpers.review_files import read_csv
from tests.helpers.transcripts import check_shown, list_commands

ROOT = Path(__file__).parents[2]


def test_the_demo_and_the_ten_minutes_print_what_is_shown(tmp_path, monkeypatch, undrift):
    monkeypatch.chdir(tmp_path)
    readme, tutorial = (
        (ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "docs/tutorial.md")
    )
    (first,) = [block for block in re.findall(r"```text\n(.*?)```", readme, re.S) if "undrift demo" in block]
    steps = re.findall(r"```text\n(.*?)```", tutorial.partition("## Two files")[0], re.S)
    commands = [pair for block in [first, *steps] for pair in list_commands(block)]
    assert len(commands) == 8
    for command, shown in commands:
        name, *arguments = shlex.split(command)
        if name == "head":
            n_lines, paths = int(arguments[0][1:]), arguments[1:]
            texts = [
                "".join(Path(path).read_text("utf-8").splitlines(keepends=True)[:n_lines]) for path in paths
            ]
            titles = [f"==> {path} <==\n" if len(paths) > 1 else "" for path in paths]
            printed = "\n".join(title + text for title, text in zip(titles, texts, strict=True))
        else:
            status, printed, err = undrift(*arguments)
            assert (status, err) == (0, "")
            assert all(len(line) <= 80 or line.startswith("  undrift ") for line in printed.splitlines())
        check_shown(shown, printed)
    page = (ROOT / "docs/day-after.md").read_text(encoding="utf-8")
    (program,) = re.findall(r"```python\n(.*?)```", page, re.S)
    exec(compile(program, "docs/day-after.md", "exec"), {})
    commands = [
        pair for block in re.findall(r"```text\n(.*?)```", page, re.S) for pair in list_commands(block)
    ]
    assert len(commands) == 3
    for command, shown in commands:
        status, printed, err = undrift(*shlex.split(command)[1:])
        assert status == 0
        check_shown(shown, printed + err)
    written = ["books.csv", "kitchen.csv", "model.safetensors", "predictions.csv", "report.html"]
    assert sorted(os.listdir("demo")) == written
    rows = [row for row in read_csv("demo/predictions.csv") if row["truth"]]
    assert np.mean([row["truth"] != row["prediction"] for row in rows]) < 0.15


def test_demo_of_unknown_products(folder, undrift):
    assert "the built-in corpus has books, kitchen" in check_refused(
        undrift, folder, ["demo", "--source", "cars"]
    )
