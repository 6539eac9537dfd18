"""What commands print: progress bars on a terminal, tables, JSON, one line for each warning."""

from __future__ import annotations

import json
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any

from rich import markup
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Table

from ..errors import UndriftWarning

output = Console(highlight=False)
messages = Console(stderr=True, highlight=False)


class LayerBar:
    """A progress bar of a fit, as a scikit-learn callback: one step for each layer."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._task: Any = None

    def setup(self, estimator: Any, context: Any) -> None:
        """Start the bar."""
        self._task = self._progress.add_task("layers", total=context.max_subtasks)

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        """Do nothing."""

    def on_fit_task_end(self, estimator: Any, context: Any) -> bool:
        """Advance by one layer."""
        if context.task_name == "layer":
            self._progress.advance(self._task)
        return False

    def teardown(self, estimator: Any, context: Any) -> None:
        """Stop the bar."""
        self._progress.remove_task(self._task)


@contextmanager
def show_progress() -> Iterator[Progress]:
    """Show progress bars on standard error, with the time left; nothing where that is not a terminal."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
    )
    with Progress(
        *columns, console=messages, transient=True, disable=output.quiet or not messages.is_terminal
    ) as progress:
        yield progress


def track_stages(progress: Progress) -> Callable[[str, float | None], None]:
    """Return a function that shows the stage of a job and the share of it that is done, on one bar."""
    task, current = progress.add_task("", total=None), [""]

    def show_stage(stage: str, share: float | None = None) -> None:
        if current[0] != stage:  # restart the clock, from which the time left is estimated
            current[0] = stage
            progress.reset(task, description=stage, total=None if share is None else 1.0)
        progress.update(task, completed=share or 0)

    return show_stage


@contextmanager
def show_warnings() -> Iterator[None]:
    """Print the library's warnings, one line each, when the context ends."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UndriftWarning)
        yield
    for item in caught:
        if issubclass(item.category, UndriftWarning):
            show_warning(str(item.message))


def follow_fit(estimator: Any, progress: Progress) -> None:
    """Show a bar during the fit of `estimator`, if this scikit-learn has callbacks."""
    if hasattr(estimator, "set_callbacks"):
        estimator.set_callbacks(LayerBar(progress))


@contextmanager
def follow_cluster(progress: Progress, client: Any) -> Iterator[None]:
    """Show how many of the tasks that the scheduler of `client` knows are done."""
    done, task = Event(), progress.add_task("cluster tasks", total=None)

    def update() -> None:
        while not done.wait(0.5):
            states = client.sync(client.scheduler.get_task_prefix_states)
            counts = Counter[str]()
            for prefix_states in states.values():
                counts.update(prefix_states)
            waiting = counts["waiting"] + counts["processing"]
            finished = counts["memory"] + counts["released"]
            progress.update(task, completed=finished, total=finished + waiting)

    thread = Thread(target=update, daemon=True)
    if progress.disable:
        yield
        return
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        progress.remove_task(task)


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
    """Escape text from data, so that it is not read as markup."""
    return markup.escape(text)


def format_percent(share: float | None) -> str | None:
    """Format a fraction as a percentage."""
    return None if share is None else f"{100 * share:.1f}%"


def show_json(data: Any) -> None:
    """Print machine-readable output."""
    print(json.dumps(data, ensure_ascii=False, indent=2, default=str), file=sys.stdout)


def show_warning(message: str) -> None:
    """Print a warning on standard error, in one line."""
    messages.print(f"[yellow]warning:[/] {escape(message)}", soft_wrap=True)
