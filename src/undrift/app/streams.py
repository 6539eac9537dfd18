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
from .job import AdaptJob, LabelJob, ModelJob

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
    given = {each.name: getattr(job, each.name) for each in fields(job)}
    for name in ("model", "report", "distilled"):
        if given.get(name) == DASH:
            raise UndriftError(f"--{name} -: only rows are read or written by -; give a file")
    if isinstance(job, LabelJob) and DASH in (job.input, job.labels):
        raise UndriftError("labels are kept beside the rows: give a file instead of -")
    n_inputs = sum(list_values(value).count(DASH) for name, value in given.items() if name != "out")
    has_output, stream = given.get("out") == DASH, job.reading.stream
    if not n_inputs and not has_output:
        if stream is not None:
            what = f"--format {stream} is for standard input and output (-)"
            raise UndriftError(f"{what}: files say it by their names")
        yield job
        return
    if stream is None:
        name = "input" if n_inputs else "output"
        what = f"standard {name} has no name that says its format"
        raise UndriftError(f"{what}: add --format csv, tsv or jsonl")
    if n_inputs > 1:
        raise UndriftError("standard input can be one file only: - is given twice")
    if has_output and as_json:
        raise UndriftError("--json and --out - would both write to standard output: drop one")
    with TemporaryDirectory(prefix="undrift-") as folder:
        source, out = (StreamPath(folder, f"{name}.{stream}") for name in ("input", "output"))
        source.title, out.title = "standard input", "standard output"
        if n_inputs:
            with source.open("wb") as file:
                shutil.copyfileobj(sys.stdin.buffer, file, 1 << 20)
        opened: dict[str, Any] = {"out": out} if has_output else {}
        for name, value in given.items():
            if DASH in list_values(value) and name != "out":
                opened[name] = source if value == DASH else [source if v == DASH else v for v in value]
        terminal.output.stderr = has_output
        try:
            yield replace(job, **opened)
        finally:
            terminal.output.stderr = False
        _send(out)


def list_values(value: Any) -> list[Any]:
    """Return the values of a list, or the one of another field."""
    return value if isinstance(value, list) else [value]


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
