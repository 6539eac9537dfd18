"""`undrift adapt`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import typer

from . import options
from .report import require_report, write_report

HELP = """Learn from labelled source files and unlabelled target files; write predictions for the target.

Example (books.csv has the columns review and stars, kitchen.csv has review):

    undrift adapt --source books.csv --target kitchen.csv --text review --label stars --out predicted.csv

[bold]Files[/] end in .csv, .tsv, .jsonl or .parquet, all but the last also with .gz. Each file is a domain.
Source rows whose label is empty serve as unlabelled rows; labels in the target are never learnt from.

[bold]Output[/]: every column and row of the target, in order, with `prediction` and `score` added. With two
labels a positive score speaks for the second of them in order; with more it is the winner's.
Several targets follow one another in one file, with a column `domain`.

[bold]Choosing[/]: --noise, --layers and --C take one value, or several separated by commas, among which
--selection chooses without seeing a target label: --noise 0.5,0.6,0.7,0.8,0.9 --layers 1,3,5 --C 0.1,0.3,1
By default noise is 0.7 unless 0.6 or 0.8 is clearly better in cross-validation on the source (one-se).

[bold]Scoring[/]: if the target has labels after all, --target-label COL shows the error of the baseline (a
linear SVM trained on the source) beside that of the predictions; they are used for nothing else.

[bold]No harm[/]: where signs that need no label speak against adapting (nothing shared with the source, no
way back from the target's predictions) a warning says so, and the predictions are those of
a classifier trained on the source alone; --no-fallback adapts all the same.

[bold]Looking[/]: --report FILE writes one HTML page: did it help, how sure is that, which words made the
difference, what to try next. It needs no network and holds some of the documents.

A pattern in quotes ('reviews-*.csv') is one domain in many files. With --dask the workers read them, and
--out may be a folder, where each file of the target gets its predictions under its own name.
"""


def adapt(
    context: typer.Context,
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
    out: Path = typer.Option(
        ..., "--out", metavar="FILE", help="Where predictions go; its ending says the format."
    ),
    model: Path | None = typer.Option(
        None, "--model", metavar="FILE", help="Save the model here, for `predict`."
    ),
    report: Path | None = typer.Option(
        None, "--report", metavar="FILE", help="Write a report here: one HTML page that shows what happened."
    ),
    target_label: str | None = typer.Option(
        None,
        "--target-label",
        metavar="COL",
        help="Column with the target's labels: for scoring, nothing else.",
    ),
    noise: str = typer.Option(
        "0.7,0.6,0.8", "--noise", help="Share of features to corrupt; several: choose among them."
    ),
    layers: str = typer.Option("5", "--layers", help="Number of layers; several: choose among them."),
    C: str = typer.Option("1", "--C", help="Weight of the training errors; several: choose among them."),
    max_features: int = typer.Option(5000, "--max-features", help="Size of the vocabulary."),
    weighting: str = typer.Option("tfidf", "--weighting", help="tfidf, counts or binary."),
    classifier: str = typer.Option("least-squares", "--classifier", help="least-squares or hinge."),
    selection: str = typer.Option(
        "one-se",
        "--selection",
        help="How to choose, never seeing target labels: one-se (cross-validation on the source; the first "
        "of several unless another is clearly better), source-cv, reverse, importance-cv.",
    ),
    center: bool = typer.Option(True, "--center/--no-center", help="Subtract each domain's mean."),
    self_training: bool = typer.Option(
        True,
        "--self-training/--no-self-training",
        help="Let the most confident target rows, labelled as predicted, join the training set.",
    ),
    fallback: bool = typer.Option(
        True,
        "--fallback/--no-fallback",
        help="Use the source-only classifier where adaptation is likely not to help.",
    ),
    dask: str | None = typer.Option(
        None, "--dask", metavar="CLUSTER", help="Work on a cluster: local, local:N or tcp://host:port."
    ),
    device: str = typer.Option("cpu", "--device", help="Where to compute: cpu, or cuda with a GPU."),
    seed: int = typer.Option(0, "--seed", help="Seed of whatever is random."),
    encoding: str | None = options.ENCODING,
    skip_bad: bool = options.SKIP_BAD,
    prefix: str = options.PREFIX,
    as_json: bool = options.JSON,
) -> None:
    from ..jobs import AdaptJob, run_adapt
    from . import screen

    choices = weighting, classifier, selection
    adapter = options.text_adapter(
        noise, layers, C, max_features, *choices, center, self_training, device, seed, fallback
    )
    job = AdaptJob(source, target, text, label, out, model, target_label, encoding, skip_bad, prefix, report)
    require_report(report)
    with screen.progress_bar() as progress:
        screen.follow(adapter.classifier, progress)
        show_stage = screen.stages(progress)
        watch = partial(screen.follow_cluster, progress)
        result = run_adapt(job, adapter, show_stage, cluster=dask, watch=watch)
        write_report(job, result, context, show_stage)
    show_summary(result.summary, as_json)


def show_summary(summary: dict[str, Any], as_json: bool) -> None:
    """Print what a job found."""
    from . import screen

    for warning in summary["warnings"]:
        screen.warn(warning)
    if as_json:
        screen.show_json(summary)
        return
    _show_files(summary)
    chosen = ", ".join(f"{name} {value:g}" for name, value in summary["chosen"].items())
    rule = "fixed" if summary["rule"] == "fixed" else f"{summary['rule']} over {summary['n_candidates']}"
    labels = ", ".join(f"{label} ({n:,})" for label, n in list(summary["labels"].items())[:10])
    screen.output.print(screen.escaped(f"Labels: {labels}."), soft_wrap=True)
    screen.output.print(f"Vocabulary: {summary['vocabulary']:,} terms. Chosen: {chosen} ({rule}).")
    caution = summary["caution"]
    if caution["fell_back"]:
        screen.output.print("Fell back: the predictions are those of the source-only classifier.")
    _show_errors([own for own in summary["targets"] if own.get("scored")])
    doubts = [
        text for text in caution["reasons"] if not caution["fell_back"] or text not in caution["blocking"]
    ]
    for note in [*summary["selection_notes"], *summary["notes"], *doubts]:
        screen.output.print(f"Note: {screen.escaped(note)}.", soft_wrap=True)
    n_bad = sum(own["bad_rows"] for own in (*summary["sources"], *summary["targets"]))
    if n_bad:
        screen.output.print(f"Left out {n_bad:,} rows that could not be read.")
    out = screen.escaped(summary["out"])
    screen.output.print(f"Predictions: {out}, after {summary['seconds']:.0f} s.", soft_wrap=True)
    for name in ("model", "report"):
        if summary[name]:
            screen.output.print(f"{name.capitalize()}: {screen.escaped(summary[name])}", soft_wrap=True)


def _show_files(summary: dict[str, Any]) -> None:
    """Show the rows of every file and how far the targets are."""
    from . import screen

    screen.show_table(
        "Files (distance: 0 where the domains look alike, 2 where they can be told apart without fail)",
        ["file", "rows", "labelled", "unlabelled", "words unseen in source", "distance"],
        [[s["file"], s["rows"], s["labelled"], s["unlabelled"], None, None] for s in summary["sources"]]
        + [
            [t["file"], t["rows"], 0, t["rows"], screen.percent(t["unseen_share"]), t["distance_before"]]
            for t in summary["targets"]
        ],
    )


def _show_errors(scored: list[dict[str, Any]]) -> None:
    """Show both errors of every target that has labels."""
    from . import screen

    if not scored:
        return
    rows = [
        [t["file"], t["scored"], screen.percent(t["baseline_error"]), screen.percent(t["adapted_error"])]
        for t in scored
    ]
    title = "Error on the target's labelled rows (baseline: a linear SVM trained on the source)"
    name = "source only (fallback)" if any(t["fell_back"] for t in scored) else "adapted"
    screen.show_table(title, ["file", "rows", "baseline", name], rows)
