"""`--report`, and `undrift bench report`."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from ..jobs import AdaptJob, AdaptResult, ShowStage

BENCH_HELP = """Show benchmark results as one HTML page: the paper's figures, the task matrix, every record.

Example:

    undrift bench report results.jsonl --out results.html
"""


def require_report(path: Path | None) -> None:
    """Fail before the work starts rather than after it, where a report cannot be made."""
    if path is None:
        return
    try:
        import jinja2  # noqa: F401
    except ImportError:
        raise ValueError("a report needs the `report` extra: pip install 'undrift[report]'") from None


def write_report(job: AdaptJob, result: AdaptResult, context: typer.Context, show_stage: ShowStage) -> None:
    """Write the report of a finished job that asks for one."""
    if job.report is None:
        return
    from ..report import job_report

    show_stage("writing the report", None)
    job_report(job, result, command_line(context)).save(job.report)


def command_line(context: typer.Context) -> str:
    """Return the command that is running, with the options that are not their defaults."""
    words = context.command_path.split()
    for parameter in context.command.params:
        value = context.params.get(parameter.name or "")
        if value is None or value == parameter.get_default(context):
            continue
        words += _words(parameter, value)
    return shlex.join(words)


def _words(parameter: Any, value: Any) -> list[str]:
    if isinstance(value, bool):
        return [parameter.opts[0] if value else (parameter.secondary_opts or parameter.opts)[0]]
    values = value if isinstance(value, list | tuple) else [value]
    return [word for own in values for word in (parameter.opts[0], str(own))]


def bench_report(
    results: list[Path] = typer.Argument(
        ..., metavar="RESULTS", help="JSON lines that `bench run` wrote; may be several."
    ),
    out: Path = typer.Option(..., "--out", metavar="FILE", help="Where the page goes."),
) -> None:
    from ..report import benchmark_report
    from . import screen

    require_report(out)
    benchmark_report(results).save(out)
    screen.output.print(f"Report: {screen.escaped(str(out))}")
