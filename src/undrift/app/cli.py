"""The commands: their options, and the functions that do the work.

A command imports its work when it runs, so that help and errors of options are immediate.
"""

from __future__ import annotations

import inspect
import shlex
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from .. import __version__
from . import options, terminal
from .options import LABELS, LEARNING, OUTPUT, RUNNING, SHARES, open_job

app = typer.Typer(
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    help="Train here, predict there: closed-form domain adaptation for text.",
)


@app.callback(invoke_without_command=True)
def show_version(
    show: Annotated[
        bool, typer.Option("--version", "-V", help="Print the version and stop.", is_eager=True, metavar="")
    ] = False,
) -> None:
    """Print the version, if that is asked for."""
    if show:
        print(f"undrift {__version__}")
        raise typer.Exit


Model = Annotated[Path | None, typer.Option(help="Model that `adapt` saved; may come first.", metavar="FILE")]
Input = Annotated[
    Path | None,
    typer.Option("--input", "--target", help="File of rows; may come second.", metavar="FILE"),
]
Files = Annotated[list[Path] | None, typer.Argument(metavar="MODEL FILE", hidden=True)]


@app.command()
def demo(
    context: typer.Context,
    out: Annotated[Path, typer.Option(help="Folder to write to.", metavar="DIR")] = Path("undrift-demo"),
    as_json: options.Json = False,
    verbose: options.Verbose = None,
) -> None:
    """Do the whole job on the built-in corpus of synthetic reviews: adapt, score, explain, report.

    Writes reviews of two products as CSV files, learns from labels of the first, and predicts the second.
    Shows the words that made the difference, and writes a report: one HTML page.
    """
    with terminal.show_start(verbose):
        from .demo import run_demo
    run_demo(out, format_command(context), as_json=as_json)


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
    *,
    label: Annotated[str | None, typer.Option(help="Column of the source's labels.", metavar="COL")] = None,
    out: Annotated[Path, typer.Option(help="Where predictions are written.", metavar="FILE")],
    files: Annotated[list[Path] | None, typer.Argument(metavar="SOURCE TARGET", hidden=True)] = None,
    sources: Annotated[
        list[Path] | None,
        typer.Option("--source", help="Labelled rows, or the first argument.", metavar="FILE"),
    ] = None,
    targets: Annotated[
        list[Path] | None,
        typer.Option("--target", help="Rows to predict, or the second argument.", metavar="FILE"),
    ] = None,
    text: options.Text = None,
    model: Annotated[Path | None, typer.Option(help="Save the model here.", metavar="FILE")] = None,
    report: Annotated[
        Path | None, typer.Option(help="Write a report here, an HTML page.", metavar="FILE")
    ] = None,
    target_label: Annotated[
        str | None, typer.Option(help="Column of the target's labels.", metavar="COL")
    ] = None,
    labels: Annotated[
        Path | None,
        typer.Option(
            help="Labelled rows of the target in a file of their own, matched by text.",
            metavar="FILE",
            rich_help_panel=LABELS,
        ),
    ] = None,
    use_labels: Annotated[
        Literal["score", "train", "both"],
        typer.Option(
            help="What the target's labels are for: score the predictions, train, or both (scored by "
            "cross-fitting).",
            rich_help_panel=LABELS,
        ),
    ] = "score",
    updatable: Annotated[
        bool,
        typer.Option(
            "--updatable",
            metavar="",
            help="Keep the training rows in the model that `ask` and `update` need.",
            rich_help_panel=LABELS,
        ),
    ] = False,
    teacher: Annotated[
        str | None,
        typer.Option(
            help="Column of labels by another model, which may be wrong, or empty for most rows. Then "
            "--source is optional.",
            metavar="COL",
            rich_help_panel=LABELS,
        ),
    ] = None,
    teacher_confidence: Annotated[
        str | None,
        typer.Option(
            help="Column with the probability of the teacher's labels.", metavar="COL", rich_help_panel=LABELS
        ),
    ] = None,
    target_shares: Annotated[
        list[str] | None,
        typer.Option(
            help="Share of every class in the target, if you know it: no=0.2,yes=0.8, or JSON. Once for all, "
            "or once per --target. Default: estimated.",
            metavar="SHARES",
            rich_help_panel=SHARES,
        ),
    ] = None,
    border: Annotated[
        Literal["error", "balanced"],
        typer.Option(
            help="error: as few errors as possible; balanced: errors in every class count alike.",
            rich_help_panel=SHARES,
        ),
    ] = "error",
    is_fast: Annotated[
        bool | None,
        typer.Option(
            "--fast/--thorough",
            metavar="",
            help="Sooner, with smaller layers; or later, with more terms and larger layers.",
            show_default=False,
            rich_help_panel=LEARNING,
        ),
    ] = None,
    max_features: Annotated[
        int | None,
        typer.Option(
            help="Size of the vocabulary. Default: 20,000 terms, 40,000 with --thorough.",
            min=1,
            metavar="N",
            rich_help_panel=LEARNING,
        ),
    ] = None,
    tokens: Annotated[
        Literal["auto", "words", "characters"],
        typer.Option(
            help="What terms are made of: words, or characters (n-grams inside words). auto takes characters "
            "where a script has no spaces or words hardly repeat.",
            rich_help_panel=LEARNING,
        ),
    ] = "auto",
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="A setting of the method, such as layers=3; may be repeated. See below.",
            metavar="NAME=VALUE",
            rich_help_panel=LEARNING,
        ),
    ] = None,
    distilled: Annotated[
        Path | None,
        typer.Option(
            help="Save a small model here, to predict with.", metavar="FILE", rich_help_panel=OUTPUT
        ),
    ] = None,
    probabilities: options.Probabilities = False,
    min_confidence: options.MinConfidence = None,
    reading: options.Formats = None,
    device: Annotated[
        str,
        typer.Option(
            help="Where to compute: cpu, cuda, or a Dask cluster (local, local:N or tcp://host:port), whose "
            "workers read the files.",
            metavar="WHERE",
            rich_help_panel=RUNNING,
        ),
    ] = "cpu",
    as_json: options.Json = False,
    verbose: options.Verbose = None,
) -> None:
    """Learn from labelled source files and unlabelled target files; predict the target.

    Example (books.csv has the columns review and stars, kitchen.csv has review):

        undrift adapt books.csv kitchen.csv --label stars --out predicted.csv

    Add --model FILE --updatable to label rows afterwards, with `undrift label`.
    """
    given = locals() | {"command": format_command(context)}
    has_source = not teacher or sources or len(files or []) + bool(targets) > 1
    needed = {"sources": sources, "targets": targets} if has_source else {"targets": targets}
    given |= {"sources": []} | options.place_files(files, needed) | {"files": None}
    sources, targets = given["sources"], given["targets"]
    if has_source and label is None:
        raise typer.BadParameter("Missing option '--label'")
    given["target_shares"] = options.parse_shares(target_shares, len(targets))
    cluster = device if device.startswith(("local", "tcp://", "tls://")) else None
    if cluster and Path("-") in (*sources, *targets, labels, out):
        raise typer.BadParameter("workers of --device cannot read or write -; give files")
    with terminal.show_start(verbose):
        from .adapt import build_adapter, list_stages, run_adapt
        from .summary import describe_summary
    with open_job(given) as job:
        adapter = build_adapter(max_features, tokens, is_fast, border, "cpu" if cluster else device, settings)
        stages = {} if cluster else list_stages(job)
        result = terminal.run_job(
            lambda show: run_adapt(job, adapter, show, cluster=cluster), adapter, stages
        )
        describe = partial(describe_summary, is_verbose=bool(verbose))
        terminal.show_summary(result.summary, describe, as_json=as_json)


@app.command()
def predict(
    *,
    files: Files = None,
    model: Model = None,
    input: Input = None,
    text: options.Text = None,
    out: Annotated[Path, typer.Option(help="Where predictions are written.", metavar="FILE")],
    domain: options.Domain = None,
    as_fitted: Annotated[
        bool,
        typer.Option(
            "--as-fitted",
            metavar="",
            help="Keep the model's class shares and threshold: for single rows, and answers row by row.",
        ),
    ] = False,
    by: Annotated[
        str | None, typer.Option(help="Align the rows of each value of this column apart.", metavar="COL")
    ] = None,
    check: Annotated[
        bool,
        typer.Option(
            "--check", help="Warn where the rows are not what the model was adapted to.", metavar=""
        ),
    ] = False,
    fail_on_drift: Annotated[
        bool, typer.Option("--fail-on-drift", help="Exit with status 3 then; implies --check.", metavar="")
    ] = False,
    probabilities: options.Probabilities = False,
    min_confidence: options.MinConfidence = None,
    reading: options.Formats = None,
    device: options.Device = None,
    as_json: options.Json = False,
    verbose: options.Verbose = None,
) -> None:
    """Apply a saved model to new rows, in bounded memory.

    Example:

        undrift predict kitchen.model may.csv --out predicted.csv

    The file is taken as a batch of its own: its class shares are estimated, and the decision threshold
    follows. Files of fewer than 200 rows with known words are predicted as fitted. The columns added are
    those of `adapt`, and `known_terms`.
    """
    with terminal.show_start(verbose):
        from .predict import describe_predict, run_predict
    with open_job(locals() | {"check": check or fail_on_drift}, ["model", "input"]) as job:
        summary = terminal.run_job(lambda show: run_predict(job, show))
        terminal.show_summary(summary, describe_predict, as_json=as_json)
        if fail_on_drift and summary["check"]["drifted"]:
            raise typer.Exit(3)


@app.command()
def ask(
    *,
    files: Files = None,
    model: Model = None,
    input: Input = None,
    text: options.Text = None,
    n: Annotated[int, typer.Option("--n", help="How many rows to ask for.", min=1, metavar="N")] = 50,
    purpose: Annotated[
        Literal["predictions", "estimate"],
        typer.Option(
            "--for",
            help="predictions: rows whose labels change predictions most; estimate: rows drawn at random, "
            "to measure the error.",
        ),
    ] = "predictions",
    out: Annotated[Path, typer.Option(help="Where the rows are written.", metavar="FILE")],
    domain: options.Domain = None,
    reading: options.Formats = None,
    device: options.Device = None,
    seed: options.Seed = 0,
    as_json: options.Json = False,
    verbose: options.Verbose = None,
) -> None:
    """Choose the rows most worth labelling, and write them with an empty column `label`.

    Example: label 50 rows in a spreadsheet, then let the model learn them.

        undrift ask kitchen.model kitchen.csv --out ask.csv

        undrift update kitchen.model ask.csv --out kitchen-2.model

    The model must have been saved with `adapt --updatable`. Labels of rows asked for predictions are never
    counted in an error. --format label-studio writes a file that Label Studio imports.
    """
    from .update import describe_ask, run_ask

    with open_job(locals(), ["model", "input"], options.TOOLS) as job:
        summary = terminal.run_job(lambda show: run_ask(job, show))
        terminal.show_summary(summary, describe_ask, as_json=as_json)


@app.command()
def label(
    files: Files = None,
    model: Model = None,
    input: Input = None,
    labels: Annotated[
        Path | None,
        typer.Option(
            help="CSV file of the labels, also of earlier ones. Default: beside FILE.", metavar="CSV"
        ),
    ] = None,
    port: Annotated[
        int, typer.Option(help="Port of the page; 0 takes a free one.", min=0, max=65535, metavar="N")
    ] = 0,
    opens_browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the page in the browser.", metavar="")
    ] = True,
    text: options.Text = None,
    domain: options.Domain = None,
    reading: options.Formats = None,
    verbose: options.Verbose = None,
) -> None:
    """Label rows on a page of this machine; the model learns as you go, and the page shows the error.

    Example:

        undrift label kitchen.model kitchen.csv

    Every answer is saved at once. Press Finish or Ctrl-C to write the updated model and the predictions. Run
    it again to go on. The model must have been saved with `adapt --updatable` to learn.
    """
    with terminal.show_start(verbose):
        from .label_server import run_label
    with open_job(locals(), ["model", "input"]) as job:
        if isinstance(job.input, options.StreamPath):
            raise typer.BadParameter("labels are kept beside the rows: give a file instead of -")
        run_label(job)


@app.command()
def update(
    *,
    files: Annotated[list[Path] | None, typer.Argument(metavar="MODEL LABELS", hidden=True)] = None,
    model: Model = None,
    labels: Annotated[
        Path | None,
        typer.Option(help="Labelled rows of the target; may come second.", metavar="FILE"),
    ] = None,
    input: Annotated[
        Path | None, typer.Option("--target", "--input", help="A new batch without labels.", metavar="FILE")
    ] = None,
    text: options.Text = None,
    label: Annotated[str, typer.Option(help="Column of the labels.", metavar="COL")] = "label",
    out: Annotated[Path, typer.Option(help="Where the new model is written.", metavar="MODEL")],
    domain: options.Domain = None,
    reading: options.Formats = None,
    device: options.Device = None,
    as_json: options.Json = False,
    verbose: options.Verbose = None,
) -> None:
    """Update a saved model at once: by labels of target rows, or by a new batch without labels.

    For example:

        undrift update kitchen.model ask.csv --out kitchen-2.model

        undrift update kitchen.model --target may.csv --out may.model

    Labels are those of a table, or an export of Label Studio (JSON). Rows without a
    label are skipped. A new label of a text replaces its old one.
    """
    from .update import describe_update, run_update

    if input and labels:
        raise typer.BadParameter("give either --labels FILE or --target FILE")
    with open_job(locals(), ["model"] if input else ["model", "labels"]) as job:
        summary = terminal.run_job(lambda show: run_update(job, show))
        terminal.show_summary(summary, describe_update, as_json=as_json)


@app.command()
def distill(
    *,
    files: Annotated[list[Path] | None, typer.Argument(metavar="MODEL FILE", hidden=True)] = None,
    model: Model = None,
    targets: Annotated[
        list[Path] | None,
        typer.Option("--target", "--input", help="Rows of the target; may be repeated.", metavar="FILE"),
    ] = None,
    text: options.Text = None,
    out: Annotated[Path, typer.Option(help="Where to save the distilled model.", metavar="FILE")],
    domains: Annotated[
        list[str] | None,
        typer.Option(
            "--domain",
            help="Which of the model's targets a file holds, once for each. Default: by the file's name.",
            metavar="NAME",
        ),
    ] = None,
    target_label: Annotated[
        str | None, typer.Option(help="Column of labels, for scoring only.", metavar="COL")
    ] = None,
    reading: options.Formats = None,
    device: options.Device = None,
    as_json: options.Json = False,
    verbose: options.Verbose = None,
) -> None:
    """Make a small, fast model for predicting from one that `adapt` saved.

    Example:

        undrift distill kitchen.model kitchen.csv --out small.model

    The result is a linear model on words and pairs of words, learnt from the scores that the full model
    gives the rows. It takes a few megabytes, and `predict` and `explain` take it like any model. A tenth of
    the rows is held out to say how often the two agree.
    """
    from .distill import describe_distilled, run_distill

    with open_job(locals(), ["model", "targets"]) as job:
        summary = terminal.run_job(lambda show: run_distill(job, show))
        terminal.show_summary(summary, describe_distilled, as_json=as_json)


@app.command()
def explain(
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="MODEL [WORD]", hidden=True),
    ] = None,
    model: Model = None,
    document: Annotated[
        list[str] | None,
        typer.Option(help="A document to explain; may be repeated.", metavar="TEXT"),
    ] = None,
    top: Annotated[int, typer.Option(help="How many terms to list.", min=1, metavar="N")] = 10,
    as_json: options.Json = False,
    verbose: options.Verbose = None,
) -> None:
    """Show which terms reconstruct a term, and its weight, whether or not the labelled source contains it.

    For example:

        undrift explain kitchen.model "energy efficient" sturdy

        undrift explain kitchen.model --document "The lid broke after a week"

    Without words or documents: the strongest terms of each label.
    """
    from .explain import run_explain

    terminal.set_verbosity(verbose)
    terms = list(words or [])
    path = Path(terms.pop(0)) if model is None and terms else model
    if path is None:
        raise typer.BadParameter("Missing option '--model'")
    run_explain(path, terms, document or [], top, as_json=as_json)


def format_command(context: typer.Context) -> str:
    """Return the command that is running, with the options that are not their defaults."""
    words = context.command_path.split()
    for parameter in sorted(context.command.params, key=lambda each: each.param_type_name):
        value: Any = context.params.get(parameter.name or "")
        if value is None or value == parameter.get_default(context):
            continue
        if parameter.param_type_name == "argument":
            words += map(str, value)
            continue
        if isinstance(value, bool):
            words += [parameter.opts[0] if value else (parameter.secondary_opts or parameter.opts)[0]]
            continue
        for item in value if isinstance(value, list | tuple) else [value]:
            words += [parameter.opts[0], str(item)]
    return shlex.join(words)


def join_lines(doc: str) -> str:
    """Return a docstring as help: one line for each paragraph, and examples as they are."""
    paragraphs = inspect.cleandoc(doc).split("\n\n")
    return "\n\n".join(text if text.startswith(" ") else " ".join(text.split()) for text in paragraphs)


for command in app.registered_commands:
    command.help = join_lines((command.callback and command.callback.__doc__) or "")
