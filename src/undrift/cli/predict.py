"""`undrift predict`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from ..errors import write_shares
from . import options, terminal
from .options import option
from .summary import describe_file, format_doubtful

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
    check: bool = option(False, "Warn where the rows are not what the model was adapted to.")
    fail_on_drift: bool = option(False, "Exit with status 3 then; implies --check.")
    device: str | None = option(
        None, "Where to compute: cpu, or cuda. Default: where the model was fitted, else cpu."
    )


@options.command(PredictOptions, HELP, ("model", "input", "text", "out", "domain", "check", "fail_on_drift"))
def predict(given: PredictOptions, context: typer.Context) -> None:
    from ..jobs import Batch, PredictProgress, check_batch, find_domain, run_predict
    from ..tables import open_table
    from ..text import load_text_model

    options.check_confidence(given.min_confidence)
    adapter = load_text_model(given.model)
    if given.device is not None and "device" in adapter.classifier_.get_params():  # not if it is distilled
        adapter.classifier_.set_params(device=given.device)
    is_checked = given.check or given.fail_on_drift
    written = PredictProgress(0, 0.0)
    with terminal.show_warnings(), terminal.show_progress() as progress:
        batch = Batch(adapter, find_domain(adapter, given.domain)) if is_checked else None
        table = open_table(
            given.input,
            text=given.text or None,
            encoding=given.encoding,
            skip_bad=given.skip_bad,
            sheet=given.sheet,
        )
        table.require_rows()
        show_stage = terminal.StageBar(progress)
        for written in run_predict(
            adapter,
            table,
            given.text,
            given.out,
            given.prefix,
            given.domain,
            probabilities=given.probabilities,
            min_confidence=given.min_confidence,
            batch=batch,
            embedding=given.embedding,
        ):
            show_stage(f"predicting {given.input.name}", written.share_read)
    files = {"input": str(given.input), "out": str(given.out)}
    summary: dict[str, Any] = {**files, "rows": written.n_rows, "bad_rows": table.n_bad}
    if given.min_confidence is not None:
        summary["n_doubtful"] = written.n_doubtful
    if batch is not None:
        summary["check"] = check_batch(batch)
    if given.as_json:
        terminal.show_json(summary)
    else:
        _show_summary(summary)
    if batch is not None and summary["check"]["drifted"]:
        for reason in summary["check"]["reasons"]:
            terminal.show_warning(reason)
        if given.fail_on_drift:
            raise typer.Exit(3)


def _show_summary(summary: dict[str, Any]) -> None:
    bad = f", {summary['bad_rows']:,} skipped as unreadable" if summary["bad_rows"] else ""
    terminal.say(f"Read {summary['input']}: {summary['rows']:,} rows{bad}")
    if "n_doubtful" in summary:
        terminal.say(format_doubtful(summary["n_doubtful"], summary["rows"], summary["input"]))
    terminal.say(describe_file(summary["out"]))
    if "check" in summary:
        _show_check(summary["check"])


def _show_check(check: dict[str, Any]) -> None:
    """Show every measure of a check beside that of the fit, and its limit."""
    measures = {
        name.replace("_", " "): measure for name, measure in check.items() if isinstance(measure, dict)
    }
    shares, keys, rows = measures.pop("predicted shares"), ("batch", "fit", "limit"), []
    for name, measure in measures.items():
        write = "{:.2f}".format if name == "distance" else "{:.1%}".format
        rows.append([name, *(write(measure[key]) for key in keys)])
    columns = [write_shares(measure[key] for measure in shares.values()) for key in keys]
    rows += [[f"predicted {label}", *row] for label, *row in zip(shares, *columns, strict=True)]
    terminal.show_table("", ["", "these rows", "the fit", "limit"], rows)
    terminal.say(
        "Drift: the rows are not what the model was adapted to."
        if check["drifted"]
        else "No drift: the rows are like those that the model was adapted to."
    )
