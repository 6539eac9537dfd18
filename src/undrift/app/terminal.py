"""Print for commands: progress bars on a terminal, tables, JSON, one line for each warning."""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, TypeVar

from rich import markup
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from ..errors import escape_controls, record_warnings, wrap_line
from .job import Summary

Result = TypeVar("Result")


class SafeConsole(Console):
    """A console on which no text from data can move the cursor, change a colour or hide a line."""

    is_verbose = False

    def render_str(self, text: str, **options: Any) -> Text:
        """Return text to be shown, its control characters made visible."""
        return super().render_str(escape_controls(text), **options)


output = SafeConsole(highlight=False)
messages = SafeConsole(stderr=True, highlight=False)


def set_verbosity(verbose: bool | None) -> None:
    """Print everything, or (False) warnings and errors alone, or (None) the usual."""
    output.is_verbose, output.quiet = verbose is True, verbose is False


class StageBar:
    """The one progress bar of a job: its stage, and the share of the stage that is done if that is known."""

    def __init__(self, progress: Progress) -> None:
        self.stage = ""
        self._progress, self._task = progress, progress.add_task("starting", total=None)

    def __call__(self, stage: str, share: float | None = None) -> None:
        """Show a stage; where `share` is None the bar moves back and forth."""
        total = None if share is None else 1.0
        if self.stage != stage:  # a new task: its clock starts, from which the time left is estimated
            self.stage = stage
            self._progress.remove_task(self._task)
            self._task = self._progress.add_task(escape(stage), total=total)
        self._progress.update(self._task, completed=share or 0, total=total)

    def show_layers(self, n_done: int, n_layers: int) -> None:
        """Show how many layers are learnt; the classifier comes after the last."""
        if n_done < n_layers:
            self("learning layers", n_done / n_layers)
        else:
            self("fitting the classifier")


@contextmanager
def show_progress() -> Iterator[Progress]:
    """Show progress bars on standard error, with the time left; nothing where that is not a terminal."""
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    is_hidden = output.quiet or not messages.is_terminal
    progress = Progress(*columns, console=messages, transient=True, disable=is_hidden)
    with nullcontext() if is_hidden else progress:  # rich before 15 ends a line even if it shows none
        yield progress


@contextmanager
def show_start() -> Iterator[None]:
    """Show that a command has started, while it imports its work."""
    with show_progress() as progress:
        StageBar(progress)
        yield


def run_job(run: Callable[[StageBar], Result]) -> Result:
    """Run a job with a progress bar, which follows its fits; then print its warnings."""
    from ..inputs import follow_steps

    with record_warnings() as caught, show_progress() as progress:
        bar = StageBar(progress)
        with follow_steps(bar.show_layers):
            result = run(bar)
    for message in dict.fromkeys(map(str, caught)):
        show_warning(message)
    return result


def show_summary(summary: Summary, *, as_json: bool) -> None:
    """Print a summary: as JSON, or in lines, those with an indent as they are."""
    if as_json:
        show_json(dict(summary.facts))
    else:
        say_lines(summary.lines)


def say_lines(lines: Iterable[str]) -> None:
    """Print lines on standard output; those with an indent are left whole."""
    for line in lines:
        (say_line if line.startswith("  ") else say)(line)


def say(line: str, **options: Any) -> None:
    """Print a line on standard output, wrapped at spaces; a long path is left whole."""
    indent = " " * (len(line) - len(line.lstrip()))
    options = {"soft_wrap": True, "markup": False, **options}
    output.print(
        textwrap.fill(
            line, output.width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
        ),
        **options,
    )


def say_line(line: str) -> None:
    """Print a line as it is, however long: it ends in a path, or is a command to copy."""
    output.print(line, soft_wrap=True, markup=False)


def show_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print a table, numbers aligned to the right."""
    table = Table(title=title, title_justify="left", title_style="bold", header_style="")
    for i, column in enumerate(columns):
        numeric = bool(rows) and isinstance(rows[0][i], int | float)
        table.add_column(column, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*(format_cell(value) for value in row))
    output.print(table)


def format_cell(value: Any) -> str:
    """Format a cell: thousands separated, floats to three digits, nothing for None."""
    if value is None:
        return ""
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return f"{value:.3g}" if isinstance(value, float) else escape(str(value))


def escape(text: str) -> str:
    """Escape text from data, so that it is neither read as markup nor obeyed by the terminal."""
    return markup.escape(escape_controls(text))


def show_json(data: Any) -> None:
    """Print machine-readable output."""
    print(escape_controls(json.dumps(data, ensure_ascii=False, indent=2, default=str)), file=sys.stdout)


def show_warning(message: str) -> None:
    """Print a warning on standard error, in one line."""
    line = f"warning: {escape_controls(message)}"
    line = wrap_line(line, messages.width) if messages.is_terminal else line
    text = Text(line)
    text.stylize("yellow", 0, len("warning:"))
    messages.print(text, soft_wrap=True)


def show_hint(message: str) -> None:
    """Print on a terminal, before long work, what the user may want to do otherwise."""
    if messages.is_terminal and not output.quiet:
        messages.print(Text(wrap_line(f"note: {message}", messages.width)), soft_wrap=True)


def describe_file(path: str) -> str:
    """Name a file and its size."""
    place = Path(path)
    return f"{path} ({format_size(place.stat().st_size)})" if place.exists() else path


def format_size(n_bytes: int) -> str:
    """Format a size in bytes, kB or MB."""
    if n_bytes < 1000:
        return f"{n_bytes} bytes"
    return f"{n_bytes / 1e3:.0f} kB" if n_bytes < 1e6 else f"{n_bytes / 1e6:.1f} MB"
