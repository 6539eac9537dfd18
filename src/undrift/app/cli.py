"""The commands: their options, and the functions that do the work.

A command imports its work when it runs, so that help and errors of options are immediate.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Literal

import typer

from .. import __version__
from . import terminal
from .job import AdaptJob, AskJob, DistillJob, LabelJob, PredictJob, Summary, UpdateJob
from .options import Arguments, parse_merges, parse_reading, parse_target_shares
from .streams import DASH, AnyJob, open_streams

app = typer.Typer(
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    help="Train here, predict there: closed-form domain adaptation for text.",
)


def option(
    default: Any,
    help: str,
    metavar: str | None = None,
    panel: str | None = None,
    names: str = "",
    **more: Any,
) -> Any:
    """Declare an option; without `names`, separated by spaces, it is called as its parameter."""
    more |= {"help": help, "metavar": metavar, "rich_help_panel": panel}
    return typer.Option(default, *names.split(), **more)


def flag(names: str, help: str, panel: str | None = None, default: bool | None = False) -> Any:
    """Declare an option without a value."""
    return option(default, help, "", panel, names, show_default=default or False)


def argument(metavar: str) -> Any:
    """Declare files that come without a name; the help of their options says so."""
    return typer.Argument(None, metavar=metavar, hidden=True)


def run_job(job: AnyJob, run: Callable[..., Summary], *, as_json: bool) -> Summary:
    """Run a job with a progress bar; show and return its summary."""
    with open_streams(job, as_json=as_json) as opened:
        summary: Summary = terminal.run_job(partial(run, opened))
        terminal.show_summary(summary, as_json=as_json)
    return summary


LABELS, SHARES, LEARNING = "Labels of the target", "Class shares", "Learning"
OUTPUT, RUNNING = "Output", "Running"

# options of several commands
COLUMNS = option(None, "Column of the text; may be repeated. Default: the only one.", "COL")
DEVICE = option(None, "Where to compute: cpu, or cuda.", "WHERE", RUNNING)
DOMAIN = option(None, "Target of the rows, if the model has several.", "NAME")
FORMATS = option(
    None,
    "How files are read: csv, tsv or jsonl for standard input and output (-), encoding=NAME, sheet=NAME, "
    "skip-bad (skip and count unreadable rows). And written: safe-cells (an apostrophe before text in CSV "
    "that looks like a formula). May be repeated.",
    "HOW",
    RUNNING,
    "--format",
)
INPUT = option(None, "File of rows; may come second.", "FILE", names="--input --target")
JSON = flag("--json", "Print a machine-readable summary on standard output.", RUNNING)
MIN_CONFIDENCE = option(
    None, "Leave `prediction` empty where its probability is below P, such as 0.8.", "P", OUTPUT, min=0, max=1
)
MODEL = option(None, "Model that `adapt` saved; may come first.", "FILE")
PREDICTIONS = option(..., "Where predictions are written.", "FILE")
PROBABILITIES = flag("--probabilities", "Add a column p_LABEL for each class, with its probability.", OUTPUT)
REPORT = option(None, "Write a report here, an HTML page.", "FILE")
VERBOSE = flag("--verbose/--quiet -v/-q", "Print more; or warnings and errors alone.", RUNNING, default=None)


@app.callback(invoke_without_command=True)
def show_version(
    show: bool = option(False, "Print the version and stop.", "", names="--version -V", is_eager=True),
) -> None:
    """Print the version, if that is asked for."""
    if show:
        print(f"undrift {__version__}")
        raise typer.Exit


@app.command()
def demo(
    context: typer.Context,
    out: Path = option("undrift-demo", "Folder to write to.", "DIR"),
    as_json: bool = JSON,
    verbose: bool | None = VERBOSE,
) -> None:
    """Do the whole job on the built-in corpus of synthetic reviews: adapt, score, explain, report.

    Writes reviews of two products as CSV files, learns from labels of the first, and predicts the second.
    Shows the words that made the difference, and writes a report: one HTML page.
    """
    with terminal.show_start(verbose):
        from .demo import run_demo
    run_demo(out, context.obj, as_json=as_json)


@app.command(
    epilog="[bold]Files[/] end in .csv, .tsv, .jsonl or .json, all of them also with .gz, .bz2, .xz or .zst, "
    "or in .parquet or .xlsx; - is standard input or output, with --format. --source and --target may be "
    "repeated: each file is a domain. So is a folder, or a pattern in quotes ('reviews-*.csv'): its files "
    "are read in the order of their names. "
    "Source rows without a label serve as unlabelled rows.\n\n"
    "[bold]Output[/]: every column and row of the target, in order, with `prediction`, `score` and "
    "`probability` (of the predicted label) added. With two labels a positive score means the second of them "
    "in sorted order. With more, the score is that of the predicted one. Several targets follow one another, "
    "with a column `domain`. With --teacher, `teacher_disagrees` says whether the model alone predicts "
    "another label than the teacher.\n\n"
    "[bold]Settings[/] of the method: --set noise=0.5 --set layers=3 --set C=0.3 --set seed=1 --set "
    "center=domains. Of several values, as in --set noise=0.5,0.7,0.9, cross-validation on the source "
    "chooses one."
)
def adapt(
    context: typer.Context,
    label: str | None = option(None, "Column of the source's labels.", "COL"),
    out: Path = PREDICTIONS,
    files: list[Path] | None = argument("SOURCE TARGET"),
    sources: list[Path] | None = option(
        None, "Labelled rows, or the first argument.", "FILE", names="--source"
    ),
    targets: list[Path] | None = option(
        None, "Rows to predict, or the second argument.", "FILE", names="--target"
    ),
    text: list[str] | None = COLUMNS,
    target_text: list[str] | None = option(
        None, "Column of the target's text, where it has another name. May be repeated.", "COL"
    ),
    model: Path | None = option(None, "Save the model here.", "FILE"),
    report: Path | None = REPORT,
    target_label: str | None = option(None, "Column of the target's labels.", "COL"),
    labels: Path | None = option(
        None, "Labelled rows of the target in a file of their own, matched by text.", "FILE", LABELS
    ),
    use_labels: Literal["score", "train", "both"] = option(
        "score",
        "What the target's labels are for: score the predictions, train, or both (scored by cross-fitting).",
        panel=LABELS,
    ),
    updatable: bool = flag(
        "--updatable", "Keep the training rows in the model that `label`, `ask` and `update` need.", LABELS
    ),
    teacher: str | None = option(
        None,
        "Column of labels by another model, which may be wrong, or empty for most rows. Then --source is "
        "optional.",
        "COL",
        LABELS,
    ),
    teacher_confidence: str | None = option(
        None, "Column with the probability of the teacher's labels.", "COL", LABELS
    ),
    target_shares: list[str] | None = option(
        None,
        "Share of every class in the target, if you know it: no=0.2,yes=0.8, or JSON, or same (as in the "
        "source). Once for all, or once per --target. Default: estimated.",
        "SHARES",
        SHARES,
    ),
    border: Literal["error", "balanced"] = option(
        "error",
        "error: as few errors as possible; balanced: errors in every class count alike.",
        panel=SHARES,
    ),
    is_fast: bool | None = flag(
        "--fast/--thorough",
        "Sooner, with smaller layers; or later, with more terms and larger layers.",
        LEARNING,
        default=None,
    ),
    max_features: int | None = option(
        None, "Size of the vocabulary. Default: 20,000 terms, 40,000 with --thorough.", "N", LEARNING, min=1
    ),
    tokens: Literal["auto", "words", "characters"] = option(
        "auto",
        "What terms are made of: words, or characters (n-grams inside words). auto takes characters where a "
        "script has no spaces or words hardly repeat.",
        panel=LEARNING,
    ),
    bridge: bool = flag(
        "--bridge",
        "Source and target are in different languages: sentence vectors carry the labels over. Needs "
        "undrift[languages].",
        LEARNING,
    ),
    merge: list[str] | None = option(
        None,
        "Join labels into a class, as in 1,2,3=bad; may be repeated.",
        "LABELS=CLASS",
        panel=LABELS,
    ),
    dry_run: bool = flag("--dry-run", "Read the files, say what is in them, and stop.", RUNNING),
    settings: list[str] | None = option(
        None,
        "A setting of the method, such as layers=3; may be repeated. See below.",
        "NAME=VALUE",
        LEARNING,
        "--set",
    ),
    distilled: Path | None = option(None, "Save a small model here, to predict with.", "FILE", OUTPUT),
    probabilities: bool = PROBABILITIES,
    min_confidence: float | None = MIN_CONFIDENCE,
    reading: list[str] | None = FORMATS,
    device: str = option(
        "cpu",
        "Where to compute: cpu, cuda, or a Dask cluster (local, local:N or tcp://host:port), whose workers "
        "read the files.",
        "WHERE",
        RUNNING,
    ),
    as_json: bool = JSON,
    verbose: bool | None = VERBOSE,
) -> None:
    """Learn from labelled source files and unlabelled target files; predict the target.

    Example (books.csv has the columns review and stars, kitchen.csv has review):

        undrift adapt books.csv kitchen.csv --label stars --out predicted.csv

    Add --model FILE --updatable to label rows afterwards, with `undrift label`.
    """
    arguments = Arguments(files)
    has_source = not teacher or sources or len(files or []) + bool(targets) > 1
    job = AdaptJob(
        sources=arguments.take_several("--source", sources, takes_rest=False) if has_source else [],
        targets=arguments.take_several("--target", targets, takes_rest=not has_source),
        text=tuple(text or ()),
        target_text=tuple(target_text or ()),
        merges=parse_merges(merge),
        label=label or "label",
        out=out,
        model=model,
        report=report,
        distilled=distilled,
        target_label=target_label,
        labels=labels,
        teacher=teacher,
        teacher_confidence=teacher_confidence,
        use_labels=use_labels,
        updatable=updatable,
        target_shares=parse_target_shares(target_shares),
        probabilities=probabilities,
        min_confidence=min_confidence,
        reading=parse_reading(reading),
        command=context.obj,
        bridge=bridge,
    )
    arguments.refuse_rest()
    with terminal.show_start(verbose):
        from .adapt import build_adapter, run_adapt, run_dry, show_adapt
        from .domains import open_rows
        from .summary import describe_dry
    with open_streams(job, as_json=as_json) as opened:
        if has_source and label is None:
            first = opened.sources[0]
            columns = ", ".join(open_rows(first, job.reading).columns)
            raise typer.BadParameter(f"Missing option '--label': {first} has the columns {columns}")
        if dry_run:
            summary = terminal.run_job(partial(run_dry, opened))
            for message in summary.warnings:
                terminal.show_warning(message)
            told = Summary(summary.to_dict(), [*describe_dry(summary)])
            terminal.show_summary(told, as_json=as_json)
            return
        cluster = device if device.startswith(("local", "tcp://", "tls://")) else None
        adapter = build_adapter(max_features, tokens, is_fast, border, "cpu" if cluster else device, settings)
        run: Any = run_adapt
        if cluster:
            from .on_dask import run_on_cluster

            run = partial(run_on_cluster, cluster)
        show_adapt(run, opened, adapter, as_json=as_json)


@app.command()
def predict(
    context: typer.Context,
    files: list[Path] | None = argument("MODEL FILE"),
    model: Path | None = MODEL,
    input: Path | None = INPUT,
    text: list[str] | None = COLUMNS,
    out: Path = PREDICTIONS,
    report: Path | None = REPORT,
    domain: str | None = DOMAIN,
    as_fitted: bool = flag(
        "--as-fitted", "Keep the model's class shares and threshold: for single rows, and answers row by row."
    ),
    by: str | None = option(None, "Align the rows of each value of this column apart.", "COL"),
    together: bool = flag("--together", "Take all files of a pattern as one batch."),
    check: bool = flag("--check", "Warn where the rows are not what the model was adapted to."),
    fail_on_drift: bool = flag("--fail-on-drift", "Exit with status 3 then; implies --check."),
    probabilities: bool = PROBABILITIES,
    min_confidence: float | None = MIN_CONFIDENCE,
    reading: list[str] | None = FORMATS,
    device: str | None = DEVICE,
    as_json: bool = JSON,
    verbose: bool | None = VERBOSE,
) -> None:
    """Apply a saved model to new rows, in bounded memory.

    Example:

        undrift predict kitchen.safetensors may.csv --out predicted.csv

    The file is taken as a batch of its own: its class shares are estimated, and the decision threshold
    follows. Files of fewer than 200 rows with known words are predicted as fitted. The columns added are
    those of `adapt`, and `known_terms`. A folder, or a pattern in quotes ('month-*.csv'), gives one file of
    predictions with a column `file`; each file is a batch.
    """
    arguments = Arguments(files)
    job = PredictJob(
        model=arguments.take_model(model),
        input=arguments.take("--input", input),
        out=out,
        text=tuple(text or ()),
        domain=domain,
        as_fitted=as_fitted,
        by=by,
        together=together,
        check=check or fail_on_drift,
        report=report,
        command=context.obj,
        probabilities=probabilities,
        min_confidence=min_confidence,
        reading=parse_reading(reading),
        device=device,
    )
    arguments.refuse_rest()
    with terminal.show_start(verbose):
        from .predict import run_predict
    summary = run_job(job, run_predict, as_json=as_json)
    if fail_on_drift and summary.facts["check"]["drifted"]:
        raise typer.Exit(3)


@app.command()
def ask(
    files: list[Path] | None = argument("MODEL FILE"),
    model: Path | None = MODEL,
    input: Path | None = INPUT,
    text: list[str] | None = COLUMNS,
    n: int = option(50, "How many rows to ask for.", "N", names="--n", min=1),
    purpose: Literal["predictions", "estimate", "source"] = option(
        "predictions",
        "predictions: five rows that decide between readings, then rows drawn at random, doubtful ones more "
        "often; estimate: drawn rows alone, half of them among changed predictions; source: rows of a "
        "source file whose labels look wrong.",
        names="--for",
    ),
    out: Path = option(..., "Where the rows are written.", "FILE"),
    domain: str | None = DOMAIN,
    reading: list[str] | None = FORMATS,
    device: str | None = DEVICE,
    seed: int = option(0, "Seed of the random numbers.", "N", RUNNING),
    as_json: bool = JSON,
    verbose: bool | None = VERBOSE,
) -> None:
    """Choose the rows most worth labelling, and write them with an empty column `label`.

    Example: label 50 rows in a spreadsheet, then let the model learn them.

        undrift ask kitchen.safetensors kitchen.csv --out ask.csv

        undrift update kitchen.safetensors ask.csv --out kitchen-2.safetensors

    The model must have been saved with `adapt --updatable`.
    """
    arguments = Arguments(files)
    job = AskJob(
        model=arguments.take_model(model),
        input=arguments.take("--input", input),
        out=out,
        text=tuple(text or ()),
        domain=domain,
        n=n,
        purpose=purpose,
        seed=seed,
        reading=parse_reading(reading),
        device=device,
    )
    arguments.refuse_rest()
    with terminal.show_start(verbose):
        from .ask import run_ask
    run_job(job, run_ask, as_json=as_json)


@app.command()
def label(
    files: list[Path] | None = argument("MODEL FILE"),
    model: Path | None = MODEL,
    input: Path | None = INPUT,
    labels: Path | None = option(
        None, "CSV file of the labels, also of earlier ones. Default: beside FILE.", "CSV"
    ),
    port: int = option(0, "Port of the page; 0 takes a free one.", "N", min=0, max=65535),
    opens_browser: bool = flag("--browser/--no-browser", "Open the page in the browser.", default=True),
    text: list[str] | None = COLUMNS,
    domain: str | None = DOMAIN,
    reading: list[str] | None = FORMATS,
    verbose: bool | None = VERBOSE,
) -> None:
    """Label rows on a page of this machine; the model learns as you go, and the page shows the error.

    Example:

        undrift label kitchen.safetensors kitchen.csv

    Every answer is saved at once. Press Finish or Ctrl-C to write the updated model and the predictions. Run
    it again to go on. The model must have been saved with `adapt --updatable` to learn.
    """
    arguments = Arguments(files)
    job = LabelJob(
        model=arguments.take_model(model),
        input=arguments.take("--input", input),
        labels=labels,
        port=port,
        opens_browser=opens_browser,
        text=tuple(text or ()),
        domain=domain,
        reading=parse_reading(reading),
    )
    arguments.refuse_rest()
    if DASH in (job.input, job.labels):
        raise typer.BadParameter("labels are kept beside the rows: give a file instead of -")
    with terminal.show_start(verbose):
        from .label import run_label
    with open_streams(job, as_json=False):
        run_label(job)


@app.command()
def update(
    files: list[Path] | None = argument("MODEL LABELS"),
    model: Path | None = MODEL,
    labels: Path | None = option(None, "Labelled rows of the target; may come second.", "FILE"),
    input: Path | None = option(None, "A new batch without labels.", "FILE", names="--target --input"),
    text: list[str] | None = COLUMNS,
    label: str = option("label", "Column of the labels.", "COL"),
    out: Path = option(..., "Where the new model is written.", "MODEL"),
    domain: str | None = DOMAIN,
    reading: list[str] | None = FORMATS,
    device: str | None = DEVICE,
    as_json: bool = JSON,
    verbose: bool | None = VERBOSE,
) -> None:
    """Update a saved model at once: by labels of target rows, or by a new batch without labels.

    For example:

        undrift update kitchen.safetensors ask.csv --out kitchen-2.safetensors

        undrift update kitchen.safetensors --target may.csv --out may.safetensors

    Rows without a label are skipped. A new label of a text replaces its old one.
    """
    if input and labels:
        raise typer.BadParameter("give either --labels FILE or --target FILE")
    arguments = Arguments(files)
    job = UpdateJob(
        model=arguments.take_model(model),
        labels=None if input else arguments.take("--labels", labels),
        input=input,
        out=out,
        text=tuple(text or ()),
        label=label,
        domain=domain,
        reading=parse_reading(reading),
        device=device,
    )
    arguments.refuse_rest()
    with terminal.show_start(verbose):
        from .update import run_update
    run_job(job, run_update, as_json=as_json)


@app.command()
def distill(
    files: list[Path] | None = argument("MODEL FILE"),
    model: Path | None = MODEL,
    targets: list[Path] | None = option(
        None, "Rows of the target; may be repeated.", "FILE", names="--target --input"
    ),
    text: list[str] | None = COLUMNS,
    out: Path = option(..., "Where to save the distilled model.", "FILE"),
    domains: list[str] | None = option(
        None,
        "Which of the model's targets a file holds, once for each. Default: by the file's name.",
        "NAME",
        names="--domain",
    ),
    target_label: str | None = option(None, "Column of labels, for scoring only.", "COL"),
    reading: list[str] | None = FORMATS,
    device: str | None = DEVICE,
    as_json: bool = JSON,
    verbose: bool | None = VERBOSE,
) -> None:
    """Make a small, fast model for predicting from one that `adapt` saved.

    Example:

        undrift distill kitchen.safetensors kitchen.csv --out small.safetensors

    The result is a linear model on words and pairs of words, learnt from the scores that the full model
    gives the rows. It takes a few megabytes, and `predict` and `explain` take it like any model. A tenth of
    the rows is held out to say how often the two agree.
    """
    arguments = Arguments(files)
    job = DistillJob(
        model=arguments.take_model(model),
        targets=arguments.take_several("--target", targets, takes_rest=True),
        out=out,
        text=tuple(text or ()),
        domains=tuple(domains or ()),
        target_label=target_label,
        reading=parse_reading(reading),
        device=device,
    )
    arguments.refuse_rest()
    with terminal.show_start(verbose):
        from .distill import run_distill
    run_job(job, run_distill, as_json=as_json)


@app.command()
def explain(
    words: list[str] | None = argument("MODEL [WORD]"),
    model: Path | None = MODEL,
    document: list[str] | None = option(None, "A document to explain; may be repeated.", "TEXT"),
    top: int = option(10, "How many terms to list.", "N", min=1),
    as_json: bool = JSON,
    verbose: bool | None = VERBOSE,
) -> None:
    """Show which terms reconstruct a term, and its weight, whether or not the labelled source contains it.

    For example:

        undrift explain kitchen.safetensors "energy efficient" sturdy

        undrift explain kitchen.safetensors --document "The lid broke"

    Without words or documents: the strongest terms of each label.
    """
    from .explain import run_explain

    terminal.set_verbosity(verbose)
    terms = list(words or [])
    path = Path(terms.pop(0)) if model is None and terms else model
    if path is None:
        raise typer.BadParameter("Missing option '--model'")
    run_explain(path, terms, document or [], top, as_json=as_json)


@app.command()
def cache(
    clear: bool = flag("--clear", "Remove the vectors."),
    as_json: bool = JSON,
    verbose: bool | None = VERBOSE,
) -> None:
    """Show the folder that keeps sentence vectors for another run with --bridge, or clear it.

    Example:

        undrift cache --clear

    UNDRIFT_CACHE names another folder.
    """
    from .vectors import run_cache

    terminal.set_verbosity(verbose)
    terminal.show_summary(run_cache(clear=clear), as_json=as_json)


def join_lines(doc: str) -> str:
    """Return a docstring as help: one line for each paragraph, and examples as they are."""
    paragraphs = inspect.cleandoc(doc).split("\n\n")
    return "\n\n".join(text if text.startswith(" ") else " ".join(text.split()) for text in paragraphs)


for command in app.registered_commands:
    command.help = join_lines((command.callback and command.callback.__doc__) or "")
