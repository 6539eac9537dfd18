"""`undrift predict`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import typer

from . import options
from .options import option

HELP = """Apply a saved model to new rows, in bounded memory.

Example:

    undrift predict --model kitchen.safetensors --input new.csv --text review --out predicted.csv

A model of several targets predicts rows of one of them as `adapt` did with --domain NAME, where NAME is the
target's file name as in the column `domain`.

The columns added are those of `adapt`: `prediction`, `score` and `probability` (of the predicted label), with
--probabilities also one of each label. They assume that the new rows have the class shares of the target.
"""


@dataclass(kw_only=True)
class PredictOptions(options.PredictionOptions):
    model: Path = option(..., "Model saved by `adapt` or `distill`.", metavar="FILE")
    input: Path = option(..., "Rows to predict.", metavar="FILE")
    domain: str | None = option(None, "Target domain of the rows, if the model has several.", metavar="NAME")
    device: str | None = option(
        None, "Where to compute: cpu, or cuda. Default: where the model was fitted, else cpu."
    )


@options.command(PredictOptions, HELP, ("model", "input", "text", "out", "domain"))
def predict(given: PredictOptions, context: typer.Context) -> None:
    from ..jobs import PredictProgress, run_predict
    from ..tables import open_table
    from ..text import load_text_model
    from . import terminal
    from .adapt import format_doubtful

    options.check_confidence(given.min_confidence)
    adapter = load_text_model(given.model)
    if given.device is not None and "device" in adapter.classifier_.get_params():  # not if it is distilled
        adapter.classifier_.set_params(device=given.device)
    written = PredictProgress(0, 0.0)
    with terminal.show_warnings(), terminal.show_progress() as progress:
        table = open_table(given.input, text=given.text, encoding=given.encoding, skip_bad=given.skip_bad)
        table.require_rows()
        show_stage = terminal.track_stages(progress)
        for written in run_predict(
            adapter,
            table,
            given.text,
            given.out,
            given.prefix,
            given.domain,
            probabilities=given.probabilities,
            min_confidence=given.min_confidence,
        ):
            show_stage(f"predicting {given.input.name}", written.share_read)
    summary = {
        "input": str(given.input),
        "out": str(given.out),
        "rows": written.n_rows,
        "bad_rows": table.n_bad,
    }
    if given.min_confidence is not None:
        summary["n_doubtful"] = written.n_doubtful
    if given.as_json:
        terminal.show_json(summary)
        return
    bad = f", {table.n_bad:,} skipped" if table.n_bad else ""
    terminal.output.print(f"Predictions of {written.n_rows:,} rows{bad}: {terminal.escape(str(given.out))}")
    if given.min_confidence is not None:
        line = format_doubtful(written.n_doubtful, written.n_rows, str(given.input))
        terminal.output.print(terminal.escape(line), soft_wrap=True)
