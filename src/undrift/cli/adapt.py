"""`undrift adapt`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import typer

from . import options

HELP = """Learn from labelled source files and unlabelled target files; write predictions for the target.

Example:

    undrift adapt --source books.csv --target kitchen.csv --text review --label stars --out predicted.csv

Files are CSV, TSV, JSON lines or Parquet, also .gz, and each file is a domain. Source rows whose label is
empty serve as unlabelled rows. The output keeps every column and the order of the target's rows and adds
`prediction` and `score` (how strongly: with two labels, positive speaks for the second in alphabetical order;
with more, the winner's score). Several targets follow one another in one file, with a column `domain`.

A pattern in quotes ('reviews-*.csv') is one domain in many files. With --dask the workers read them, and
--out may be a folder, where each file of the target gets its predictions under its own name.
"""


def adapt(
    source: list[Path] = typer.Option(
        ..., "--source", metavar="FILE", help="Labelled file, or a quoted pattern; may be repeated."
    ),
    target: list[Path] = typer.Option(
        ..., "--target", metavar="FILE", help="Unlabelled file to predict, or a pattern; may be repeated."
    ),
    text: str = options.TEXT,
    label: str = typer.Option(
        ..., "--label", metavar="COL", help="Column of the source that holds the label."
    ),
    out: Path = typer.Option(..., "--out", metavar="FILE", help="Where predictions go; the ending says how."),
    model: Path | None = typer.Option(
        None, "--model", metavar="FILE", help="Save the model here, for `predict`."
    ),
    target_label: str | None = typer.Option(
        None,
        "--target-label",
        metavar="COL",
        help="Column with the target's labels: for scoring, nothing else.",
    ),
    noise: str = typer.Option(
        "0.7", "--noise", help="Share of features to corrupt; several: choose among them."
    ),
    layers: str = typer.Option("5", "--layers", help="Number of layers; several: choose among them."),
    C: str = typer.Option("0.3", "--C", help="Weight of the losses; several: choose among them."),
    max_features: int = typer.Option(5000, "--max-features", help="Size of the vocabulary."),
    weighting: str = typer.Option("tfidf", "--weighting", help="tfidf, counts or binary."),
    classifier: str = typer.Option("least-squares", "--classifier", help="least-squares or hinge."),
    selection: str = typer.Option(
        "source-cv", "--selection", help="How to choose, never seeing target labels: source-cv or reverse."
    ),
    center: bool = typer.Option(True, "--center/--no-center", help="Subtract each domain's mean."),
    dask: str | None = typer.Option(
        None, "--dask", metavar="CLUSTER", help="Work on a cluster: local, local:N or tcp://host:port."
    ),
    device: str = typer.Option("cpu", "--device", help="Where to compute."),
    seed: int = typer.Option(0, "--seed", help="Seed of whatever is random."),
    encoding: str | None = options.ENCODING,
    skip_bad: bool = options.SKIP_BAD,
    as_json: bool = options.JSON,
) -> None:
    from ..jobs import AdaptJob, run_adapt
    from . import screen

    adapter = options.text_adapter(
        noise, layers, C, max_features, weighting, classifier, selection, center, device, seed
    )
    job = AdaptJob(source, target, text, label, out, model, target_label, encoding, skip_bad)
    with screen.progress_bar() as progress:
        screen.follow(adapter.classifier, progress)
        if dask is None:
            summary = run_adapt(job, adapter).summary
        else:
            from ..sharded import run_adapt_on

            summary = run_adapt_on(dask, job, adapter, partial(screen.follow_cluster, progress)).summary
    show_summary(summary, as_json)


def show_summary(summary: dict[str, Any], as_json: bool) -> None:
    """Print what a job found."""
    from . import screen

    for warning in summary["warnings"]:
        screen.warn(warning)
    if as_json:
        screen.show_json(summary)
        return
    screen.show_table(
        "Files",
        ["file", "rows", "labelled", "unseen words", "distance"],
        [[s["file"], s["rows"], s["labelled"], None, None] for s in summary["sources"]]
        + [
            [t["file"], t["rows"], None, screen.percent(t["unseen_share"]), t["distance_before"]]
            for t in summary["targets"]
        ],
    )
    chosen = ", ".join(f"{name} {value:g}" for name, value in summary["chosen"].items())
    rule = "fixed" if summary["rule"] == "fixed" else f"{summary['rule']} over {summary['n_candidates']}"
    screen.output.print(f"Vocabulary: {summary['vocabulary']:,} terms. Chosen: {chosen} ({rule}).")
    scored = [t for t in summary["targets"] if "adapted_error" in t]
    if scored:
        screen.show_table(
            "Error on the target's labelled rows (never used for fitting)",
            ["file", "rows", "source only", "adapted"],
            [
                [
                    t["file"],
                    t["scored"],
                    screen.percent(t["source_only_error"]),
                    screen.percent(t["adapted_error"]),
                ]
                for t in scored
            ],
        )
    for note in summary["notes"]:
        screen.output.print(f"Note: {screen.escaped(note)}.")
    bad = sum(own["bad_rows"] for own in (*summary["sources"], *summary["targets"]))
    if bad:
        screen.output.print(f"Left out {bad:,} rows that could not be read.")
    screen.output.print(f"Predictions: {screen.escaped(summary['out'])}, after {summary['seconds']:.0f} s.")
    if summary["model"]:
        screen.output.print(f"Model: {screen.escaped(summary['model'])}")
