"""`undrift predict`."""

from __future__ import annotations

from pathlib import Path

import typer

from . import options

HELP = """Apply a saved model to new rows, in bounded memory.

Example:

    undrift predict --model kitchen.safetensors --input new.csv --text review --out predicted.csv

A model of several targets predicts rows of one of them as `adapt` did with --domain NAME, where NAME is the
target's file name as in the column `domain`.

The columns added are those of `adapt`: `prediction`, `score` and `probability` (of the predicted label), with
--probabilities also one of each label. They assume that the new rows have the class shares of the target.
"""


def predict(
    model: Path = typer.Option(..., "--model", metavar="FILE", help="Model saved by `adapt --model`."),
    input: Path = typer.Option(..., "--input", metavar="FILE", help="Rows to predict."),
    text: str = options.TEXT,
    out: Path = typer.Option(
        ..., "--out", metavar="FILE", help="Where to write predictions; the ending is the format."
    ),
    domain: str | None = typer.Option(
        None, "--domain", metavar="NAME", help="Target domain of the rows, if the model has several."
    ),
    device: str | None = typer.Option(
        None,
        "--device",
        help="Where to compute: cpu, or cuda. Default: where the model was fitted, else cpu.",
    ),
    encoding: str | None = options.ENCODING,
    skip_bad: bool = options.SKIP_BAD,
    prefix: str = options.PREFIX,
    probabilities: bool = options.PROBABILITIES,
    min_confidence: float | None = options.MIN_CONFIDENCE,
    as_json: bool = options.JSON,
) -> None:
    from ..jobs import PredictProgress, run_predict
    from ..tables import open_table
    from ..text import load_adapter
    from . import terminal
    from .adapt import format_doubtful

    options.check_confidence(min_confidence)
    adapter = load_adapter(model)
    if device is not None:
        adapter.classifier_.set_params(device=device)
    written = PredictProgress(0, 0.0)
    with terminal.show_warnings(), terminal.show_progress() as progress:
        table = open_table(input, text=text, encoding=encoding, skip_bad=skip_bad)
        table.require_rows()
        show_stage = terminal.track_stages(progress)
        for written in run_predict(
            adapter,
            table,
            text,
            out,
            prefix,
            domain,
            probabilities=probabilities,
            min_confidence=min_confidence,
        ):
            show_stage(f"predicting {input.name}", written.share_read)
    summary = {"input": str(input), "out": str(out), "rows": written.n_rows, "bad_rows": table.n_bad}
    if min_confidence is not None:
        summary["n_doubtful"] = written.n_doubtful
    if as_json:
        terminal.show_json(summary)
        return
    bad = f", {table.n_bad:,} skipped" if table.n_bad else ""
    terminal.output.print(f"Predictions of {written.n_rows:,} rows{bad}: {terminal.escape(str(out))}")
    if min_confidence is not None:
        line = format_doubtful(written.n_doubtful, written.n_rows, str(input))
        terminal.output.print(terminal.escape(line), soft_wrap=True)
