"""`undrift adapt`."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from . import options, terminal
from .options import option
from .summary import show_summary

if TYPE_CHECKING:
    from ..jobs import AdaptJob
    from ..text import TextAdapter

HELP = """Learn from labelled source files and unlabelled target files; predict the target.

Example (books.csv has the columns review and stars, kitchen.csv has review):

    undrift adapt --source books.csv --target kitchen.csv \\
        --text review --label stars --out predicted.csv
"""

EPILOG = """[bold]Files[/] end in .csv, .tsv, .jsonl or .json, all of them also with .gz, .bz2, .xz or .zst,
or in .parquet or .xlsx; - is standard input or output, with --format. Each file is a domain; so is a
folder, or a pattern in quotes ('reviews-*.csv'), whose files are read in the order of their names. Source
rows whose label is empty serve as unlabelled rows. With --dask the workers read the files, and --out may be
a folder, where the predictions of each target file are a file of the same name.

[bold]Output[/]: every column and row of the target, in order, with `prediction`, `score` and `probability`
(of the predicted label) added. With two labels a positive score means the second of them in sorted order;
with more the score is that of the predicted one. Several targets follow one another, with a column
`domain`.

[bold]Class shares[/] of the target are estimated without labels; predictions err as seldom as possible
under these shares, and with --border balanced errors in all classes count alike, so that rare classes are
predicted more.

[bold]Selection[/]: --noise, --layers and --C take one value, or several separated by commas, among which
--selection chooses without seeing a target label: --noise 0.5,0.6,0.7,0.8,0.9 --layers 1,3,5 --C 0.1,0.3,1

[bold]Fallback[/]: where diagnostics that need no target label say that adaptation will not help, a warning
says so and the predictions are those of a classifier trained on the source alone; --no-fallback adapts all
the same.

docs/tutorial.md has more of each."""


@dataclass(kw_only=True)
class AdaptOptions(options.PredictionOptions):
    source: list[Path] = option(..., "Labelled rows; may be repeated.", metavar="FILE")
    target: list[Path] = option(..., "Rows to predict; may be repeated.", metavar="FILE")
    label: str = option(..., "Column of the source's labels.", metavar="COL")
    model: Path | None = option(None, "Save the model here, to explain and update.", metavar="FILE")
    distilled: Path | None = option(
        None, "Save a small model here, to predict with.", options.LEARNING, metavar="FILE"
    )
    report: Path | None = option(None, "Write a report here, an HTML page.", metavar="FILE")
    target_label: str | None = option(None, "Column of the target's labels.", metavar="COL")
    features: list[str] = option(
        [],
        "Columns of numbers to learn from in place of a text, or a pattern such as 'col*'. Default without "
        "--text: every column of numbers.",
        options.FILES,
        metavar="COL",
    )
    task: str | None = option(
        None,
        "What labels are: classes; rating, numbers such as stars; tags, several in a label. Default: guessed "
        "where it is plain.",
        options.LEARNING,
        metavar="TASK",
    )
    separator: str = option("|", "Between the tags of a label.", options.LEARNING)
    tidy_labels: bool = option(
        False, "Make labels one that differ in case or spaces alone.", options.LEARNING
    )
    labels: Path | None = option(
        None,
        "Labelled rows of the target in a file of their own, matched by text.",
        options.LABELS,
        metavar="FILE",
    )
    use_labels: str = option(
        "score",
        "What the target's labels are for: score the predictions, train, or both (scored by cross-fitting).",
        options.LABELS,
    )
    update_state: bool = option(
        True, "Keep the training rows in the model that `ask` and `update` need.", options.LABELS
    )
    target_shares: list[str] = option(
        [],
        "Share of every class in the target, if you know it: no=0.2,yes=0.8; labels that contain , or = as "
        """JSON: '{"a,b": 0.2, "c": 0.8}'. Once for all, or once per --target. Default: estimated.""",
        options.SHARES,
        metavar="SHARES",
    )
    border: str = option(
        "error",
        "error: as few errors as possible; balanced: errors in every class count alike.",
        options.SHARES,
    )
    center: str | None = option(
        None,
        "How the domains are brought together: classes (default) aligns the target's classes with the "
        "source's, whatever their shares; domains subtracts each domain's mean, which assumes that all "
        "domains have the same class shares.",
        options.SHARES,
        metavar="HOW",
    )
    no_center: bool = option(False, "Leave the domains where they are.", options.SHARES)
    noise: str = option("0.7", "Share of features to corrupt; of several one is chosen.", options.LEARNING)
    layers: str = option("5", "Number of layers; of several one is chosen.", options.LEARNING)
    C: str | None = option(
        None,
        "Weight of the training errors; of several one is chosen. Default: 1; for ratings the best of five.",
        options.LEARNING,
        flags="--C",
    )
    max_features: int | None = option(
        None, "Size of the vocabulary. Default: 20,000 terms, 40,000 with --thorough.", options.LEARNING
    )
    fast: bool = option(False, "Sooner, and somewhat less accurate: smaller layers.", options.LEARNING)
    thorough: bool = option(False, "Later: more terms and larger layers.", options.LEARNING)
    weighting: str = option("tfidf", "tfidf, counts or binary.", options.LEARNING)
    tokens: str = option(
        "auto",
        "What terms are made of: words, or characters (n-grams inside words); auto takes characters where a "
        "script has no spaces or words hardly repeat.",
        options.LEARNING,
    )
    classifier: str = option("least-squares", "least-squares or hinge.", options.LEARNING)
    selection: str = option(
        "one-se",
        "How to choose, never seeing target labels: one-se (cross-validation on the source; the first of "
        "several unless another is clearly better), source-cv, reverse, importance-cv.",
        options.LEARNING,
    )
    self_training: bool = option(
        True,
        "Add the most confident target rows, with their pseudo-labels, to the training set.",
        options.LEARNING,
    )
    fallback: bool = option(
        True, "Use the source-only classifier where adaptation is likely not to help.", options.LEARNING
    )
    dask: str | None = option(
        None, "Work on a cluster: local, local:N or tcp://host:port.", metavar="CLUSTER"
    )
    device: str = option("cpu", "Where to compute: cpu, or cuda with a GPU.")
    seed: int = option(0, "Seed of the random numbers.")


FIRST = ("source", "target", "text", "label", "out", "model", "report", "target_label")


@options.command(AdaptOptions, HELP, FIRST, EPILOG)
def adapt(given: AdaptOptions, context: typer.Context) -> None:
    from ..jobs import AdaptJob

    if given.text and given.features:
        raise typer.BadParameter("--features is for files without a text: drop --text or --features")
    adapter = build_adapter(given)
    shares = options.parse_shares(given.target_shares, len(given.target))
    same = options.pick(AdaptJob, given, sources=given.source, targets=given.target, target_shares=shares)
    summary = run_job(AdaptJob(**same), adapter, context, cluster=given.dask)
    show_summary(summary, given.as_json)


def build_adapter(given: AdaptOptions) -> TextAdapter:
    """Return the adapter that the options describe, once they are checked."""
    from ..classifier import SELECTIONS, SOLVERS
    from ..jobs import TASKS, USES
    from ..text import (
        MANY_TERMS,
        N_TERMS,
        TFIDF_LENGTH,
        TOKENS,
        WEIGHTINGS,
        TermVectorizer,
        TextAdapter,
        text_classifier,
    )

    if given.fast and given.thorough:
        raise typer.BadParameter("--fast and --thorough contradict each other: drop one")
    n_terms = given.max_features
    if n_terms is None:
        n_terms = MANY_TERMS if given.thorough else N_TERMS
    if n_terms < 1:
        raise typer.BadParameter(f"--max-features {given.max_features}: at least one term is needed")
    options.check_option("--classifier", given.classifier, SOLVERS)
    options.check_option("--selection", given.selection, SELECTIONS)
    options.check_option("--weighting", given.weighting, WEIGHTINGS)
    options.check_option("--tokens", given.tokens, TOKENS)
    options.check_option("--border", given.border, ("error", "balanced"))
    options.check_option("--use-labels", given.use_labels, USES)
    options.check_confidence(given.min_confidence)
    options.check_option("--task", given.task, TASKS)
    if not given.separator.strip():
        raise typer.BadParameter("--separator must be a sign such as | or ;")
    centring = choose_centring(given.center, given.no_center, bool(given.target_shares), given.border)
    C = options.parse_numbers("1" if given.C is None else given.C, "--C", float)
    return TextAdapter(
        TermVectorizer(n_terms, weighting=given.weighting, length=TFIDF_LENGTH, tokens=given.tokens),
        text_classifier(
            n_layers=options.parse_numbers(given.layers, "--layers", int),
            noise=options.parse_numbers(given.noise, "--noise", float),
            C=C if given.C is None or isinstance(C, list) else [C],  # a list, so that it is known as given
            n_pivots="few" if given.fast else "many" if given.thorough else "auto",
            classifier=given.classifier,
            selection=given.selection,
            center=centring,
            border=given.border,
            self_training=given.self_training,
            fallback=given.fallback,
            device=given.device,
            random_state=given.seed,
        ),
    )


def choose_centring(center: str | None, no_center: bool, has_shares: bool, border: str) -> str | bool:
    """Return the classifier's `center`, from options that must agree."""
    options.check_option("--center", center, ("classes", "domains"))
    if center is not None and no_center:
        raise typer.BadParameter(f"--center {center} and --no-center contradict each other: drop one")
    if no_center or center == "domains":
        given = "--no-center" if no_center else "--center domains"
        others = {"--target-shares": has_shares, "--border balanced": border == "balanced"}
        wanted = next((option for option, is_given in others.items() if is_given), None)
        if wanted is not None:
            raise typer.BadParameter(f"{wanted} needs --center classes, which is the default: drop {given}")
    return False if no_center else center or "classes"


def run_job(
    job: AdaptJob, adapter: TextAdapter, context: typer.Context, cluster: str | None = None
) -> dict[str, Any]:
    """Run an adapt job with progress bars, write its report if it asks for one, and return its summary."""
    from ..jobs import run_adapt

    with terminal.show_progress() as progress:
        show_stage = terminal.StageBar(progress)
        terminal.follow_fit(adapter.classifier, show_stage)
        watch = partial(terminal.follow_cluster, show_stage)
        result = run_adapt(job, adapter, show_stage, cluster=cluster, watch=watch)
        if job.report is not None:
            from ..report import job_report

            show_stage("writing the report", None)
            job_report(job, result, format_command(context)).save(job.report)
    return result.summary


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
