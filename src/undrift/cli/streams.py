"""`-`: standard input, kept in a temporary file since it is read twice, and standard output, written last."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import typer

from ..errors import escape_controls
from . import terminal

FORMATS = ("csv", "tsv", "jsonl")
_DASH = Path("-")
_INPUTS = ("source", "target", "input", "labels")


class StreamPath(type(Path())):  # type: ignore[misc]
    """Path of a temporary file that messages call `title`."""

    title = ""

    def __fspath__(self) -> str:
        return super().__str__()

    def __str__(self) -> str:
        return self.title or super().__str__()

    @property
    def name(self) -> str:
        return self.title or super().name


@contextmanager
def open_streams(given: Any) -> Iterator[None]:
    """Let options that are ``-`` name temporary files: one that holds standard input, one for the output."""
    names = [item.name for item in fields(given) if _DASH in _list_values(given, item.name)]
    _check_streams(given, names)
    if not names:
        yield
        return
    with TemporaryDirectory(prefix="undrift-") as folder:
        for name in names:
            path = StreamPath(folder, f"{name}.{given.format}")
            path.title = "standard output" if name == "out" else "standard input"
            value = getattr(given, name)
            is_list = isinstance(value, list)
            setattr(given, name, [path if each == _DASH else each for each in value] if is_list else path)
            if name != "out":
                with path.open("wb") as file:
                    shutil.copyfileobj(sys.stdin.buffer, file, 1 << 20)
        terminal.output.stderr = "out" in names
        try:
            yield
        except typer.Exit:  # such as that of --fail-on-drift, whose predictions are written
            _send(given, names)
            raise
        finally:
            terminal.output.stderr = False
        _send(given, names)


def _list_values(given: Any, name: str) -> list[Any]:
    value = getattr(given, name)
    return value if isinstance(value, list) else [value]


def _check_streams(given: Any, names: list[str]) -> None:
    """Refuse what cannot be read from standard input, or written to standard output."""
    format = getattr(given, "format", None)
    others = [name for name in names if name not in (*_INPUTS, "out")]
    if others:
        raise typer.BadParameter(f"--{others[0]} -: only rows are read or written by -; give a file")
    if format is not None and format not in FORMATS:
        raise typer.BadParameter(f"--format {format!r}: choose one of {', '.join(FORMATS)}")
    if not names:
        if format is not None:
            raise typer.BadParameter(
                "--format is for standard input and output (-); files say it by their names"
            )
        return
    if format is None:
        what = "output" if names == ["out"] else "input"
        raise typer.BadParameter(
            f"standard {what} has no name that says its format: add --format csv, tsv or jsonl"
        )
    if sum(_list_values(given, name).count(_DASH) for name in names if name != "out") > 1:
        raise typer.BadParameter("standard input can be one file only: - is given twice")
    if "out" in names and getattr(given, "as_json", False):
        raise typer.BadParameter("--json and --out - would both write to standard output: drop one")
    if getattr(given, "dask", None) is not None:
        raise typer.BadParameter("--dask: its workers cannot read or write -; give files")


def _send(given: Any, names: list[str]) -> None:
    """Write the output, now that it is complete, to standard output."""
    if "out" in names and given.out.exists():
        if sys.stdout.isatty():
            with given.out.open(encoding="utf-8", errors="replace", newline="\n") as lines:
                sys.stdout.writelines(map(escape_controls, lines))
            return
        with given.out.open("rb") as file:
            shutil.copyfileobj(file, sys.stdout.buffer, 1 << 20)
        sys.stdout.buffer.flush()
