"""`undrift update`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from ..errors import count
from . import options, terminal
from .options import option
from .summary import describe_model, list_shares

HELP = """Update a saved model at once: by labels of target rows, or by a new batch without labels.

Examples:

    undrift update --model m.safetensors --labels ask.csv --text review \\\\
        --label label --out m2.safetensors
    undrift update --model m.safetensors --target may.csv --text review \\\\
        --out may.safetensors
"""

EPILOG = """[bold]Labels[/] are those of a table, or what Label Studio (JSON) or Prodigy (JSON lines) exports;
rows without one are skipped. A new label of a text replaces its old one. Labels drawn for an estimate first
measure the error of the model as it was.

[bold]A new batch[/] changes class shares, border and expected error; no layer is learnt again. A warning says
when that is not enough.

The new model holds training rows, as the old one does; --no-update-state leaves them out."""


@dataclass(kw_only=True)
class UpdateOptions(options.RowOptions):
    model: Path = option(..., "Model saved by `adapt --model`.", metavar="FILE")
    labels: Path | None = option(None, "Labelled rows of the target.", metavar="FILE")
    label: str = option("label", "Column of the labels.", metavar="COL")
    target: Path | None = option(None, "A new batch of the target.", metavar="FILE")
    out: Path = option(..., "Where the new model is written.", metavar="MODEL")
    domain: str | None = option(None, "Target domain of the rows, if the model has several.", metavar="NAME")
    update_state: bool = option(True, "Keep the training rows that updates need in the model.")
    device: str | None = option(None, "Where to compute: cpu, or cuda.")


FIRST = ("model", "labels", "text", "label", "target", "out", "domain")


@options.command(UpdateOptions, HELP, FIRST, EPILOG)
def update(given: UpdateOptions, context: typer.Context) -> None:
    from ..jobs import UpdateJob, run_update

    summary = terminal.run_job(run_update, UpdateJob(**options.pick(UpdateJob, given)), given.as_json)
    if given.as_json:
        return
    for line in describe_update(summary):
        terminal.say(line)


def describe_update(summary: dict[str, Any]) -> Iterator[str]:
    """Say what was learnt, what that changed, and how large the model is."""
    if "n_labels" in summary:
        yield f"Learnt {count(summary['n_labels'], 'label')}."
    else:
        yield f"Took {count(summary['rows'], 'row')} of {summary['target']} as the new batch."
    if measured := summary.get("measured"):
        yield (
            "Before, {error:.1%} of the predictions were wrong (95% interval {low:.1%} to {high:.1%}), "
            "measured on {0} drawn for an estimate."
        ).format(count(measured["rows"], "label"), **measured)
    before, after = summary["expected_error_before"], summary["expected_error"]
    if after:
        line = "By scores alone, about {error:.0%} wrong (90% interval {low:.0%} to {high:.0%}) now".format(
            **after
        )
        yield line + (f"; {before['error']:.0%} before." if before else ".")
    if summary["target_shares"]:
        shares = list_shares(summary["target_shares"], summary["target_shares_interval"])
        yield f"Class shares: {shares}."
    yield describe_model(summary["out"], summary["update_rows"])
