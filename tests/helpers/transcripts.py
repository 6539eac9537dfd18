"""Commands that pages show, and what they print. `python -m tests.helpers.transcripts` writes it anew."""

import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = ("docs/tutorial.md", "docs/day-after.md")  # in one folder, in this order
PROGRAMS = (  # pages of programs that need no file
    "docs/teacher.md",
    *sorted(f"docs/how-to/{path.name}" for path in (ROOT / "docs/how-to").glob("*.md")),
)
BLOCK = re.compile(r"```(python|text)\n(.*?)```", re.DOTALL)
PROGRAM = re.compile(  # and what it prints
    r"```python\n(?P<program>.*?)```\n(?P<shown>\n```text\n(?!undrift |\$ ).*?```)?", re.DOTALL
)
BORDERS = re.compile("[\u2500-\u257f]")
TIMES = re.compile(r"Took \d+ s\.")


def rewrite_page(page: str, run: Callable[..., str]) -> str:
    """Run the commands of a page, `$ COMMAND`, and return its text with the output of each.

    Programs between them are run too: they make files. Parts on Python are left as they are.
    """

    def rewrite_block(block: re.Match) -> str:
        kind, content = block.groups()
        commands = re.findall(r"^\$ (.*)$", content, flags=re.MULTILINE)
        if kind == "python":
            exec(compile(content, page, "exec"), {})
        if kind == "python" or not commands:
            return block[0]
        shown = "\n".join(f"$ {command}\n{run(*shlex.split(command))}" for command in commands)
        return f"```text\n{shown}```"

    text = (ROOT / page).read_text(encoding="utf-8")
    n_head = re.search(r"^## .*Python$|\Z", text, flags=re.MULTILINE).start()
    return BLOCK.sub(rewrite_block, text[:n_head]) + text[n_head:]


def print_heads(n_lines: int, *paths: str) -> str:
    """Return what `head` prints."""
    heads = ["".join(Path(path).read_text("utf-8").splitlines(keepends=True)[:n_lines]) for path in paths]
    titles = [f"==> {path} <==\n" if len(paths) > 1 else "" for path in paths]
    return "\n".join(title + text for title, text in zip(titles, heads, strict=True))


def split_output(text: str) -> tuple[list[str], list[str]]:
    """Return the words of a text, 0 for every number, and the numbers, without borders of tables."""
    text = TIMES.sub("", BORDERS.sub(" ", text))
    number = r"\d[\d,]*(?:\.\d+)?"
    return re.sub(number, "0", text).split(), [digits.replace(",", "") for digits in re.findall(number, text)]


def check_shown(shown: str, printed: str) -> None:
    """Fail unless the words are the same, and numbers within what another processor may round otherwise."""
    (words, numbers), (printed_words, printed_numbers) = split_output(shown), split_output(printed)
    assert words == printed_words
    for number, printed_number in zip(numbers, printed_numbers, strict=True):
        last_digit = 10.0 ** -len(number.partition(".")[2])
        allowed = max(0.05 * float(number), 2 * last_digit)
        assert abs(float(number) - float(printed_number)) <= allowed, (number, printed_number)


def _run(name: str, *arguments: str) -> str:
    if name == "head":
        return print_heads(int(arguments[0][1:]), *arguments[1:])
    command = [sys.executable, "-m", name, *arguments]
    environment = os.environ | {"COLUMNS": "80"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return done.stdout + done.stderr


def rewrite_programs(text: str) -> str:
    """Run the programs of a page, and return its text with what they print below those that show it."""
    names: dict = {}

    def rewrite(part: re.Match) -> str:
        printed = io.StringIO()
        with redirect_stdout(printed):
            exec(compile(part["program"], "a program of a page", "exec"), names)
        return f"```python\n{part['program']}```\n" + (
            f"\n```text\n{printed.getvalue()}```" if part["shown"] else ""
        )

    return PROGRAM.sub(rewrite, text)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(action="ignore"):
        os.chdir(folder)
        for page in PAGES:
            (ROOT / page).write_text(rewrite_page(page, _run), encoding="utf-8")
        for page in ["README.md", *PAGES, *PROGRAMS]:
            head, mark, text = (ROOT / page).read_text(encoding="utf-8").rpartition("## The same in Python")
            (ROOT / page).write_text(head + mark + rewrite_programs(text), encoding="utf-8")
