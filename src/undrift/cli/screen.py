"""What the commands show: a progress bar on a terminal, tables, one line a warning."""

from __future__ import annotations

import json
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Table

from ..errors import UndriftWarning

output = Console(highlight=False)
messages = Console(stderr=True, highlight=False)


class LayerBar:
    """A bar that follows a fit, as a scikit-learn callback: one step for each layer."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._task: Any = None

    def setup(self, estimator: Any, context: Any) -> None:
        """Start the bar."""
        self._task = self._progress.add_task("layers", total=context.max_subtasks)

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        """Do nothing."""

    def on_fit_task_end(self, estimator: Any, context: Any) -> bool:
        """Move on by one layer."""
        if context.task_name == "layer":
            self._progress.advance(self._task)
        return False

    def teardown(self, estimator: Any, context: Any) -> None:
        """Stop the bar."""
        self._progress.remove_task(self._task)


@contextmanager
def progress_bar() -> Iterator[Progress]:
    """Progress on standard error, with the time left; silent where that is not a terminal."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=messages, transient=True, disable=not messages.is_terminal) as progress:
        yield progress


def stages(progress: Progress) -> Callable[[str, float | None], None]:
    """Return what shows the stage of a job, and the share of it that is done: one bar, used again."""
    task, current = progress.add_task("", total=None), [""]

    def tell(stage: str, share: float | None = None) -> None:
        if current[0] != stage:  # the clock, and with it the time left, starts again
            current[0] = stage
            progress.reset(task, description=stage, total=None if share is None else 1.0)
        progress.update(task, completed=share or 0)

    return tell


@contextmanager
def warnings_shown() -> Iterator[None]:
    """Show the library's warnings, one line each, when the work inside is done."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UndriftWarning)
        yield
    for own in caught:
        if issubclass(own.category, UndriftWarning):
            warn(str(own.message))


def follow(estimator: Any, progress: Progress) -> Any:
    """Let the bar follow the fit of `estimator`, where scikit-learn has callbacks."""
    if hasattr(estimator, "set_callbacks"):
        estimator.set_callbacks(LayerBar(progress))
    return estimator


@contextmanager
def follow_cluster(progress: Progress, client: Any) -> Iterator[None]:
    """Show how many of the tasks known to the scheduler of `client` are done, while there are any."""
    done, task = Event(), progress.add_task("cluster tasks", total=None)

    def look() -> None:
        while not done.wait(0.5):
            states = client.sync(client.scheduler.get_task_prefix_states)
            counts = Counter[str]()
            for own in states.values():
                counts.update(own)
            waiting = counts["waiting"] + counts["processing"]
            finished = counts["memory"] + counts["released"]
            progress.update(task, completed=finished, total=finished + waiting)

    thread = Thread(target=look, daemon=True)
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
    """Print a table; numbers stand to the right."""
    table = Table(title=title, title_justify="left", title_style="bold", header_style="")
    for i, column in enumerate(columns):
        numeric = bool(rows) and isinstance(rows[0][i], int | float)
        table.add_column(column, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*(shown(value) for value in row))
    output.print(table)


def shown(value: Any) -> str:
    """A cell: thousands separated, floats to three digits, nothing for None."""
    if value is None:
        return ""
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return f"{value:.3g}" if isinstance(value, float) else escaped(str(value))


def escaped(text: str) -> str:
    """Text from data, which must not be read as markup."""
    from rich.markup import escape

    return escape(text)


def percent(share: float | None) -> str | None:
    """A fraction as per cent."""
    return None if share is None else f"{100 * share:.1f} %"


def show_json(data: Any) -> None:
    """Print machine-readable output."""
    print(json.dumps(data, ensure_ascii=False, indent=2, default=str), file=sys.stdout)


def warn(message: str) -> None:
    """Print one line of warning on standard error."""
    messages.print(f"[yellow]warning:[/] {escaped(message)}", soft_wrap=True)
