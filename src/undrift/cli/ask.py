"""`undrift ask`."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

import typer

from ..errors import count
from . import options, terminal
from .options import option

HELP = """Choose the rows most worth labelling, and write them with an empty column `label`.

Example: label 50 rows in a spreadsheet, then let the model learn them.

    undrift ask --model m.safetensors --input kitchen.csv --text review \\\\
        --for predictions --out ask.csv
    undrift update --model m.safetensors --labels ask.csv --text review \\\\
        --label label --out m2.safetensors
"""

EPILOG = """[bold]For predictions[/]: the rows whose labels would change predictions most. They are unlike the
others, so that errors on them say nothing of the error on the target, and no command counts them in one.

[bold]For an estimate[/]: rows drawn at random, half of them among those whose prediction adaptation changed.
The column `weight` says how many rows each one stands for; scores are weighted by it.

[bold]Tools[/]: a table opens in a spreadsheet; --tool label-studio writes the JSON, --tool prodigy the JSON
lines that these import. What they export is read by `update --labels` and `adapt --labels`."""


@dataclass(kw_only=True)
class AskOptions(options.RowOptions):
    model: Path = option(..., "Model saved by `adapt --model`.", metavar="FILE")
    input: Path = option(..., "Rows of the target.", metavar="FILE")
    n: int = option(50, "How many rows to ask for.", flags="--n", min=1)
    purpose: str = option("predictions", "What the labels are for: predictions, or estimate.", flags="--for")
    out: Path = option(..., "Where the rows are written.", metavar="FILE")
    tool: str = option("table", "What opens the file: table, label-studio or prodigy.")
    domain: str | None = option(None, "Target domain of the rows, if the model has several.", metavar="NAME")
    prefix: str = option(
        "", "Put this before the names of the columns added.", options.COLUMNS, metavar="TEXT"
    )
    device: str | None = option(None, "Where to compute: cpu, or cuda.")
    seed: int = option(0, "Seed of what is drawn at random.")


@options.command(
    AskOptions, HELP, ("model", "input", "text", "n", "purpose", "out", "tool", "domain"), EPILOG
)
def ask(given: AskOptions, context: typer.Context) -> None:
    from ..jobs import PURPOSES, TOOLS, AskJob, run_ask

    options.check_option("--for", given.purpose, PURPOSES)
    options.check_option("--tool", given.tool, TOOLS)
    summary = terminal.run_job(run_ask, AskJob(**options.pick(AskJob, given)), given.as_json)
    if given.as_json:
        return
    why = "to improve predictions" if given.purpose == "predictions" else "to estimate the error"
    rows = count(summary["rows"], "row")
    terminal.say(f"Wrote {summary['out']}: {summary['asked']:,} of {rows} to label, {why}.")
    label, updated = f"{given.prefix}label", given.model.with_stem(f"{given.model.stem}-updated")
    command = ["undrift", "update", "--model", str(given.model), "--labels", summary["out"]]
    for name in [given.text] if isinstance(given.text, str) else given.text:
        command += ["--text", name]
    command += ["--embedding", given.embedding] if given.embedding else []
    command += ["--domain", given.domain] if given.domain else []
    command += ["--label", label, "--out", str(updated)]
    terminal.say(f"Next: fill in the column `{label}`, then")
    terminal.say_line(f"  {shlex.join(command)}")
