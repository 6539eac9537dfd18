"""`undrift distill`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from . import options, terminal
from .options import option

HELP = """Make a small, fast model for predicting from one that `adapt` saved.

Example:

    undrift distill --model kitchen.safetensors --target kitchen.csv --text review --out small.safetensors

The result is a linear model on words and pairs of words, learnt from the scores that the full model gives the
rows of --target: a few megabytes, which `predict` and `explain` take like any model. A tenth of the rows
is held out to say how often the two agree; with --target-label also which error each has there.

--pipeline FILE writes the same model as a pickled scikit-learn pipeline, which needs no undrift:
joblib.load(FILE).predict(texts). --terms FILE writes its terms and weights as a table.
"""


@dataclass(kw_only=True)
class DistillOptions(options.TableOptions):
    model: Path = option(..., "Model saved by `adapt --model`.", metavar="FILE")
    target: list[Path] = option(..., "Rows of the target; may be repeated.", metavar="FILE")
    out: Path = option(..., "Where to save the distilled model.", metavar="FILE")
    domain: list[str] = option(
        [],
        "Which of the model's targets a --target holds, once for each. Default: by the file's name.",
        metavar="NAME",
    )
    target_label: str | None = option(None, "Column of labels, for scoring only.", metavar="COL")
    terms: Path | None = option(None, "Write terms and weights here, as a table.", metavar="FILE")
    pipeline: Path | None = option(None, "Pickle the scikit-learn pipeline here.", metavar="FILE")
    device: str | None = option(None, "Where to compute the scores: cpu, or cuda.")
    seed: int = option(0, "Seed of the choice of held-out rows.")


FIRST = ("model", "target", "text", "out", "domain", "target_label", "terms", "pipeline")


@options.command(DistillOptions, HELP, FIRST)
def distill(given: DistillOptions, context: typer.Context) -> None:
    from ..jobs import DistillJob, run_distill

    job = DistillJob(**options.pick(DistillJob, given, targets=given.target, domains=given.domain))
    summary = terminal.run_job(run_distill, job, given.as_json)
    if given.as_json:
        return
    terminal.say_line(format_distilled(summary))
    for name in ("terms", "pipeline"):
        if summary[name]:
            terminal.say_line(f"{name.capitalize()}: {summary[name]}")


def format_distilled(summary: dict[str, Any]) -> str:
    """Say where a distilled model is, its size, and how well it agrees with the full one."""
    fidelity = summary["fidelity"]
    size, n_held_out = f"{summary['bytes'] / 1e6:.1f} MB", fidelity["n_held_out"]
    line = f"Distilled model: {summary['out']}, {size}, {summary['vocabulary']:,} terms; it agrees with the "
    line += f"full model on {fidelity['agreement']:.1%} of {n_held_out:,} held-out rows"
    if fidelity["n_scored"]:
        line += (
            f" and is wrong on {fidelity['error']:.1%} of the {fidelity['n_scored']:,} labelled ones, "
            f"the full model on {fidelity['adapted_error']:.1%}"
        )
    return f"{line}."
