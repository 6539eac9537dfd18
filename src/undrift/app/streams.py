"""Standard input and output in place of files: `-` stands for a temporary file."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from ..errors import UndriftError, escape_controls
from . import terminal
from .job import AdaptJob, ModelJob

DASH = Path("-")
AnyJob = TypeVar("AnyJob", bound=AdaptJob | ModelJob)


class StreamPath(type(Path())):  # type: ignore[misc]
    """Path of a temporary file that messages call `title`."""

    title = ""

    def __fspath__(self) -> str:
        return super().__str__()

    def __str__(self) -> str:
        return self.title or super().__str__()

    @property
    def name(self) -> str:
        """Name for messages."""
        return self.title or super().name


@contextmanager
def open_streams(job: AnyJob, *, as_json: bool) -> Iterator[AnyJob]:
    """Give the job with a temporary file in place of each ``-``.

    Standard input is copied to a file, since files are read twice. Standard output is written last.
    """
    if getattr(job, "report", None) == DASH:
        raise UndriftError("--report -: only rows are read or written by -; give a file")
    files = {each.name: _list_paths(getattr(job, each.name)) for each in fields(job)}
    n_inputs = sum(paths.count(DASH) for name, paths in files.items() if name != "out")
    has_output = DASH in files["out"] if "out" in files else False
    _check_streams(job.reading.stream, n_inputs, has_output, as_json)
    if not n_inputs and not has_output:
        yield job
        return
    with TemporaryDirectory(prefix="undrift-") as folder:
        source, out = (StreamPath(folder, f"{name}.{job.reading.stream}") for name in ("input", "output"))
        source.title, out.title = "standard input", "standard output"
        if n_inputs:
            with source.open("wb") as file:
                shutil.copyfileobj(sys.stdin.buffer, file, 1 << 20)
        opened: dict[str, Any] = {}
        for name, paths in files.items():
            placed = [(out if name == "out" else source) if path == DASH else path for path in paths]
            if DASH in paths:
                opened[name] = placed[0] if isinstance(getattr(job, name), Path) else placed
        terminal.output.stderr = has_output
        try:
            yield replace(job, **opened)
        finally:
            terminal.output.stderr = False
        _send(out)


def _list_paths(value: Any) -> list[Path]:
    """Return the paths in the value of a field: itself, or those of a list."""
    values = value if isinstance(value, list) else [value]
    return [each for each in values if isinstance(each, Path)]


def _check_streams(stream: str | None, n_inputs: int, has_output: bool, as_json: bool) -> None:
    """Refuse more than standard input and output can do."""
    problem = None
    if not n_inputs and not has_output:
        if stream is not None:
            what = f"--format {stream} is for standard input and output (-)"
            problem = f"{what}: files say it by their names"
    elif stream is None:
        name = "input" if n_inputs else "output"
        problem = f"standard {name} has no name that says its format: add --format csv, tsv or jsonl"
    elif n_inputs > 1:
        problem = "standard input can be one file only: - is given twice"
    elif has_output and as_json:
        problem = "--json and --out - would both write to standard output: drop one"
    if problem:
        raise UndriftError(problem)


def _send(path: Path) -> None:
    """Write a finished file to standard output."""
    if not path.exists():
        return
    if sys.stdout.isatty():
        with path.open(encoding="utf-8", errors="replace", newline="\n") as lines:
            sys.stdout.writelines(map(escape_controls, lines))
        return
    with path.open("rb") as file:
        shutil.copyfileobj(file, sys.stdout.buffer, 1 << 20)
    sys.stdout.buffer.flush()
