"""`undrift adapt`."""

from __future__ import annotations

import shlex
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from . import options

if TYPE_CHECKING:
    from ..jobs import AdaptJob
    from ..text import TextAdapter

HELP = """Learn from labelled source files and unlabelled target files; write predictions for the target.

Example (books.csv has the columns review and stars, kitchen.csv has review):

    undrift adapt --source books.csv --target kitchen.csv --text review --label stars --out predicted.csv

[bold]Files[/] end in .csv, .tsv, .jsonl or .parquet, all but the last also with .gz. Each file is a domain.
Source rows whose label is empty serve as unlabelled rows; labels in the target are never learnt from.

[bold]Output[/]: every column and row of the target, in order, with `prediction`, `score` and `probability`
added. With two labels a positive score means the second of them in sorted order; with more labels the score
is that of the predicted one. The probability is that of the predicted label; --probabilities adds one of each
label, and --min-confidence 0.8 leaves predictions that are less probable empty. Several targets follow one
another in one file, with a column `domain`.

[bold]Class shares[/]: the target may have more rows of one class than the source has. By default its classes
are aligned with the source's, and their shares are estimated without labels. If you know them, say so:

    --target-shares negative=0.2,positive=0.8

Give it once for all targets, or once for each --target. Predictions err as seldom as possible under these
shares; with --border balanced errors in all classes count alike, so that rare classes are predicted more.

[bold]Selection[/]: --noise, --layers and --C take one value, or several separated by commas, among which
--selection chooses without seeing a target label: --noise 0.5,0.6,0.7,0.8,0.9 --layers 1,3,5 --C 0.1,0.3,1

[bold]Scoring[/]: if the target has labels after all, --target-label COL shows the error of the baseline (a
linear SVM trained on the source) beside that of the predictions; they are used for nothing else. Without
labels the summary says which error to expect.

[bold]Fallback[/]: where diagnostics that need no target label say that adaptation will not help (the labels
can hardly be predicted in the source itself, the domains share almost no vocabulary, or the target's
pseudo-labels do not recover the source's), a warning says so and the predictions are those of a classifier
trained on the source alone; --no-fallback adapts all the same.

[bold]Report[/]: --report FILE writes one HTML page: did it help, how certain is that, which words made the
difference, what to try next. It needs no network and contains some of the documents.

A pattern in quotes ('reviews-*.csv') is one domain in many files. With --dask the workers read them, and
--out may be a folder, where the predictions of each target file are a file of the same name.
"""

MOST_LABELS = 10  # that a line names


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
        ..., "--out", metavar="FILE", help="Where to write predictions; the ending is the format."
    ),
    model: Path | None = typer.Option(
        None, "--model", metavar="FILE", help="Save the model here, for `predict`."
    ),
    report: Path | None = typer.Option(
        None, "--report", metavar="FILE", help="Write a report here: one HTML page."
    ),
    target_label: str | None = typer.Option(
        None,
        "--target-label",
        metavar="COL",
        help="Column with the target's labels, used for scoring only.",
    ),
    noise: str = typer.Option(
        "0.7", "--noise", help="Share of features to corrupt; of several one is chosen."
    ),
    layers: str = typer.Option("5", "--layers", help="Number of layers; of several one is chosen."),
    C: str = typer.Option("1", "--C", help="Weight of the training errors; of several one is chosen."),
    max_features: int = typer.Option(5000, "--max-features", help="Size of the vocabulary."),
    weighting: str = typer.Option("tfidf", "--weighting", help="tfidf, counts or binary."),
    classifier: str = typer.Option("least-squares", "--classifier", help="least-squares or hinge."),
    selection: str = typer.Option(
        "one-se",
        "--selection",
        help="How to choose, never seeing target labels: one-se (cross-validation on the source; the first "
        "of several unless another is clearly better), source-cv, reverse, importance-cv.",
    ),
    center: str | None = typer.Option(
        None,
        "--center",
        metavar="HOW",
        help="How the domains are brought together: classes (default) aligns the target's classes with the "
        "source's, whatever their shares; domains subtracts each domain's mean, which assumes that all "
        "domains have the same class shares.",
    ),
    no_center: bool = typer.Option(False, "--no-center", help="Leave the domains where they are."),
    target_shares: list[str] = typer.Option(
        [],
        "--target-shares",
        metavar="SHARES",
        help="Share of every class in the target, if you know it: no=0.2,yes=0.8; labels that contain , or = "
        """as JSON: '{"a,b": 0.2, "c": 0.8}'. Once for all, or once per --target. Default: estimated.""",
    ),
    border: str = typer.Option(
        "error",
        "--border",
        help="error: as few errors as possible; balanced: errors in every class count alike.",
    ),
    self_training: bool = typer.Option(
        True,
        "--self-training/--no-self-training",
        help="Add the most confident target rows, with their pseudo-labels, to the training set.",
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
    seed: int = typer.Option(0, "--seed", help="Seed of the random numbers."),
    encoding: str | None = options.ENCODING,
    skip_bad: bool = options.SKIP_BAD,
    prefix: str = options.PREFIX,
    probabilities: bool = options.PROBABILITIES,
    min_confidence: float | None = options.MIN_CONFIDENCE,
    as_json: bool = options.JSON,
) -> None:
    from ..classifier import SELECTIONS, SOLVERS
    from ..jobs import AdaptJob
    from ..text import TFIDF_LENGTH, WEIGHTINGS, TermVectorizer, TextAdapter, text_classifier

    if max_features < 1:
        raise typer.BadParameter(f"--max-features {max_features}: at least one term is needed")
    options.check_option("--classifier", classifier, SOLVERS)
    options.check_option("--selection", selection, SELECTIONS)
    options.check_option("--weighting", weighting, WEIGHTINGS)
    options.check_option("--border", border, ("error", "balanced"))
    options.check_confidence(min_confidence)
    centring = choose_centring(center, no_center, bool(target_shares), border)
    shares = options.parse_shares(target_shares, len(target))
    adapter = TextAdapter(
        TermVectorizer(max_features, weighting=weighting, length=TFIDF_LENGTH),
        text_classifier(
            n_layers=options.parse_numbers(layers, "--layers", int),
            noise=options.parse_numbers(noise, "--noise", float),
            C=options.parse_numbers(C, "--C", float),
            classifier=classifier,
            selection=selection,
            center=centring,
            border=border,
            self_training=self_training,
            fallback=fallback,
            device=device,
            random_state=seed,
        ),
    )
    job = AdaptJob(
        source, target, text, label, out, model, target_label, encoding, skip_bad, prefix, report,
        probabilities, min_confidence, shares,
    )  # fmt: skip
    summary = run_job(job, adapter, context, cluster=dask)
    show_summary(summary, as_json)


def choose_centring(center: str | None, no_center: bool, has_shares: bool, border: str) -> str | bool:
    """Return the classifier's `center`, from options that must agree."""
    if center is not None:
        options.check_option("--center", center, ("classes", "domains"))
        if no_center:
            raise typer.BadParameter(f"--center {center} and --no-center contradict each other: drop one")
    if no_center or center == "domains":
        given = "--no-center" if no_center else "--center domains"
        for option, is_given in (
            ("--target-shares", has_shares),
            ("--border balanced", border == "balanced"),
        ):
            if is_given:
                raise typer.BadParameter(
                    f"{option} needs --center classes, which is the default: drop {given}"
                )
    return False if no_center else center or "classes"


def run_job(
    job: AdaptJob, adapter: TextAdapter, context: typer.Context, cluster: str | None = None
) -> dict[str, Any]:
    """Run an adapt job with progress bars, write its report if it asks for one, and return its summary."""
    from ..jobs import run_adapt
    from . import terminal

    if job.report is not None:
        check_report_extra()
    with terminal.show_progress() as progress:
        terminal.follow_fit(adapter.classifier, progress)
        show_stage = terminal.track_stages(progress)
        watch = partial(terminal.follow_cluster, progress)
        result = run_adapt(job, adapter, show_stage, cluster=cluster, watch=watch)
        if job.report is not None:
            from ..report import job_report

            show_stage("writing the report", None)
            job_report(job, result, format_command(context)).save(job.report)
    return result.summary


def check_report_extra() -> None:
    """Refuse a report, before the work starts, if the library that writes it is not installed."""
    try:
        import jinja2  # noqa: F401
    except ImportError:
        raise ValueError("a report needs the `report` extra: pip install 'undrift[report]'") from None


def format_command(context: typer.Context) -> str:
    """Return the command that is running, with the options that are not their defaults."""
    words = context.command_path.split()
    for parameter in context.command.params:
        value = context.params.get(parameter.name or "")
        if value is None or value == parameter.get_default(context):
            continue
        if isinstance(value, bool):
            words += [parameter.opts[0] if value else (parameter.secondary_opts or parameter.opts)[0]]
            continue
        for item in value if isinstance(value, list | tuple) else [value]:
            words += [parameter.opts[0], str(item)]
    return shlex.join(words)


def show_summary(summary: dict[str, Any], as_json: bool) -> None:
    """Print the summary of a job."""
    from . import terminal

    for warning in summary["warnings"]:
        terminal.show_warning(warning)
    if as_json:
        terminal.show_json(summary)
        return
    _show_files(summary)
    chosen = ", ".join(f"{name} {value:g}" for name, value in summary["chosen"].items())
    rule = "fixed" if summary["rule"] == "fixed" else f"{summary['rule']} over {summary['n_candidates']}"
    labels = ", ".join(f"{label} ({n:,})" for label, n in list(summary["labels"].items())[:MOST_LABELS])
    terminal.output.print(terminal.escape(f"Labels: {labels}."), soft_wrap=True)
    terminal.output.print(f"Vocabulary: {summary['vocabulary']:,} terms. Chosen: {chosen} ({rule}).")
    caution = summary["caution"]
    if caution["fell_back"]:
        terminal.output.print("Fell back: the predictions are those of the source-only classifier.")
    _show_shares(summary["targets"])
    _show_errors([target for target in summary["targets"] if target.get("scored")])
    _show_expected_error([target for target in summary["targets"] if not target.get("scored")])
    for note in [*summary["selection_notes"], *summary["notes"], *list_doubts(summary)]:
        terminal.output.print(f"Note: {terminal.escape(note)}.", soft_wrap=True)
    n_bad = sum(domain["bad_rows"] for domain in (*summary["sources"], *summary["targets"]))
    if n_bad:
        terminal.output.print(f"Skipped {n_bad:,} rows that could not be read.")
    out = terminal.escape(summary["out"])
    terminal.output.print(f"Predictions: {out}, after {summary['seconds']:.0f} s.", soft_wrap=True)
    for name in ("model", "report"):
        if summary[name]:
            terminal.output.print(f"{name.capitalize()}: {terminal.escape(summary[name])}", soft_wrap=True)


def list_doubts(summary: dict[str, Any]) -> list[str]:
    """Return the reasons against adapting that no warning has shown.

    Where labels show that it helped on every target, those of its rows alone are left.
    """
    caution, targets = summary["caution"], summary["targets"]
    has_helped = all(t.get("scored") and t["adapted_error"] <= t["baseline_error"] for t in targets)
    return [
        text
        for text, code in zip(caution["reasons"], caution["codes"], strict=True)
        if not (caution["fell_back"] and text in caution["blocking"])
        and not (has_helped and code not in ("few-rows", "empty-rows"))
    ]


def _show_files(summary: dict[str, Any]) -> None:
    """Show the rows of every file, and how far each target is from the source."""
    from . import terminal

    terminal.show_table(
        "Files (distance from the source: 0 if indistinguishable, 2 if a classifier never confuses them)",
        ["file", "rows", "labelled", "unlabelled", "words not in source", "distance"],
        [[s["file"], s["rows"], s["labelled"], s["unlabelled"], None, None] for s in summary["sources"]]
        + [
            [
                t["file"],
                t["rows"],
                0,
                t["rows"],
                terminal.format_percent(t["unseen_share"]),
                t["distance_before"],
            ]
            for t in summary["targets"]
        ],
    )


def _show_shares(targets: list[dict[str, Any]]) -> None:
    """Show which classes were predicted, which shares they were expected to have, and what was left empty."""
    from . import terminal

    for t in targets:
        line = f"Class shares of {t['file']}: predicted {_list_shares(t['predicted_shares'])}"
        if t["target_shares_given"]:
            line += f"; given {_list_shares(t['target_shares'])}"
        elif t["target_shares"]:
            line += f"; estimated {_list_shares(t['target_shares'], t['target_shares_interval'])}"
        terminal.output.print(terminal.escape(f"{line}."), soft_wrap=True)
        if "n_doubtful" in t:
            terminal.output.print(
                terminal.escape(format_doubtful(t["n_doubtful"], t["rows"], t["file"])), soft_wrap=True
            )


def _list_shares(shares: dict[str, float], interval: dict[str, list[float]] | None = None) -> str:
    """Write class shares in words, those of ten classes at most."""
    parts = []
    for label, share in list(shares.items())[:MOST_LABELS]:
        between = "" if interval is None else " ({:.0%} to {:.0%})".format(*interval[label])
        parts.append(f"{label} {share:.1%}{between}")
    return ", ".join([*parts, *(["..."] if len(shares) > MOST_LABELS else [])])


def format_doubtful(n_doubtful: int, n_rows: int, file: str) -> str:
    """Say how many predictions were left empty."""
    return f"Left empty as doubtful (--min-confidence): {n_doubtful:,} of {n_rows:,} predictions for {file}."


def _show_expected_error(unscored: list[dict[str, Any]]) -> None:
    """Show the errors to expect of targets without labels, and how good such estimates have been."""
    from ..classifier import EXPECTED_ERROR_RECORD
    from . import terminal

    errors = [
        "{}: {error:.1%} (90% interval {low:.1%} to {high:.1%})".format(t["file"], **t["expected_error"])
        for t in unscored
        if t["expected_error"]
    ]
    if errors:
        line = f"Expected error, without labels: {', '.join(errors)}; {EXPECTED_ERROR_RECORD}."
        terminal.output.print(terminal.escape(line), soft_wrap=True)


def _show_errors(scored: list[dict[str, Any]]) -> None:
    """Show both errors of every target that has labels."""
    from . import terminal

    if not scored:
        return
    rows = [
        [
            t["file"],
            t["scored"],
            terminal.format_percent(t["baseline_error"]),
            terminal.format_percent(t["adapted_error"]),
        ]
        for t in scored
    ]
    title = "Error on the target's labelled rows (baseline: a linear SVM trained on the source)"
    name = "source only (fallback)" if any(t["fell_back"] for t in scored) else "adapted"
    terminal.show_table(title, ["file", "rows", "baseline", name], rows)
