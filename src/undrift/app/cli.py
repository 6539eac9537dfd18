"""The commands: what they are for, and the functions that do the work.

Options are the fields of a job. A command imports its work when it runs, so that help and errors of options
are immediate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import MISSING, fields, replace
from functools import partial
from inspect import Parameter, Signature, cleandoc
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import typer

from .. import __version__
from ..errors import UndriftError
from . import terminal
from .job import RUNNING, AdaptJob, AskJob, DistillJob, LabelJob, PredictJob, UpdateJob, flag, option
from .streams import AnyJob, open_streams

app = typer.Typer(
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    help="Train here, predict there: closed-form domain adaptation for text.",
)

Json = Annotated[bool, flag("--json", "Print a machine-readable summary on standard output.", RUNNING)]
Verbose = Annotated[
    bool | None, flag("--verbose/--quiet -v/-q", "Print more; or warnings and errors alone.", RUNNING)
]


def command(
    kind: type[AnyJob], files: str, metavar: str, *, epilog: str | None = None
) -> Callable[[Callable[[AnyJob, bool], int | None]], None]:
    """Make a command of a function that runs a job; its options are the fields of the job.

    Files without an option fill the fields that `files` names, in order; the last takes all that are left if
    it begins with *. The function is told whether to print JSON, and may return an exit status.
    """
    hints = get_type_hints(kind, include_extras=True)
    parsers = {name: get_args(hint)[2] for name, hint in hints.items() if len(get_args(hint)) > 2}

    def decorate(run: Callable[[AnyJob, bool], int | None]) -> None:
        def run_command(
            context: typer.Context,
            rest: list[Path] | None,
            verbose: bool | None,
            as_json: bool = False,
            **given: Any,
        ) -> None:
            terminal.set_verbosity(verbose)
            place_files(files.split(), rest or [], given)
            known = {name: value for name, value in given.items() if value is not None}
            known |= {name: parse(known[name]) for name, parse in parsers.items() if name in known}
            known |= {"command": context.obj} if "command" in hints else {}
            with open_streams(kind(**known), as_json=as_json) as job:
                status = run(job, as_json)
            if status:
                raise typer.Exit(status)

        rest = Annotated[list[Path] | None, typer.Argument(metavar=metavar, hidden=True)]
        hidden = [("context", typer.Context, Parameter.empty), ("rest", rest, None)]
        shown = [("as_json", Json, False), ("verbose", Verbose, None)][kind is LabelJob :]
        declared = [*hidden, *list_options(kind, files.replace("*", "").split()), *shown]
        run_command.__annotations__ = {name: hint for name, hint, _ in declared}
        run_command.__signature__ = Signature(  # type: ignore[attr-defined]
            [
                Parameter(name, Parameter.KEYWORD_ONLY, annotation=hint, default=default)
                for name, hint, default in declared
            ]
        )
        run_command.__name__, run_command.__doc__ = run.__name__, run.__doc__
        app.command(epilog=epilog)(run_command)

    return decorate


def list_options(kind: type, files: Sequence[str]) -> Iterator[tuple[str, Any, Any]]:
    """Yield name, type and default of the options of a job, as typer needs them; those of files first."""
    hints = get_type_hints(kind, include_extras=True)
    for each in sorted(fields(kind), key=lambda each: each.name not in files):
        if get_origin(hints[each.name]) is not Annotated:
            continue
        value, about, *parser = get_args(hints[each.name])
        if parser or get_origin(value) is Sequence:  # may be repeated
            value = list[str] if parser else list[get_args(value)[0]]  # type: ignore[misc]
        default = each.default
        if each.name in files or default == () or each.default_factory is not MISSING:
            default = None
        yield each.name, Annotated[value, about], Parameter.empty if default is MISSING else default


def place_files(names: Sequence[str], files: Sequence[Path], given: dict[str, Any]) -> None:
    """Fill the options that are missing by files without an option, in order; refuse files that are left."""
    if given.get("teacher") and not given["sources"] and len(files) + bool(given["targets"]) < 2:
        names, given["sources"] = ["targets"], []  # a teacher needs no source
    for each in names:
        name, is_list = each.removeprefix("*"), each.removeprefix("*") in ("sources", "targets")
        if given[name] or (name == "labels" and given["input"]):  # a batch without labels
            continue
        if not files:
            option = f"--{name.removesuffix('s') if is_list else name}"
            raise UndriftError(f"Missing option '{option}' (or the file as an argument)")
        n_taken = len(files) if name != each else 1
        given[name], files = files[:n_taken] if is_list else files[0], files[n_taken:]
    if files:
        extra = " ".join(map(str, files))
        raise UndriftError(f"Got unexpected extra argument{'s' * (len(files) > 1)} ({extra})")


@app.callback(invoke_without_command=True)
def show_version(
    show: Annotated[
        bool, option("Print the version and stop.", "", names="--version -V", is_eager=True)
    ] = False,
) -> None:
    """Print the version, if that is asked for."""
    if show:
        print(f"undrift {__version__}")
        raise typer.Exit


@app.command()
def demo(
    context: typer.Context,
    out: Annotated[Path, option("Folder to write to.", "DIR")] = Path("undrift-demo"),
    as_json: Json = False,
    verbose: Verbose = None,
) -> None:
    """Do the whole job on the built-in corpus of synthetic reviews: adapt, score, explain, report.

    Writes reviews of two products as CSV files, learns from labels of the first, and predicts the second.
    Shows the words that made the difference, and writes a report: one HTML page.
    """
    terminal.set_verbosity(verbose)
    with terminal.show_start():
        from .demo import run_demo
    run_demo(out, context.obj, as_json=as_json)


@command(
    AdaptJob,
    "sources targets",
    "SOURCE TARGET",
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
    "chooses one.",
)
def adapt(job: AdaptJob, as_json: bool) -> None:
    """Learn from labelled source files and unlabelled target files; predict the target.

    Example (books.csv has the columns review and stars, kitchen.csv has review):

        undrift adapt books.csv kitchen.csv --label stars --out predicted.csv

    Add --model FILE --updatable to label rows afterwards, with `undrift label`.
    """
    with terminal.show_start():
        from .adapt import show_adapt
    show_adapt(job, as_json=as_json)


@command(PredictJob, "model input", "MODEL FILE")
def predict(job: PredictJob, as_json: bool) -> int:
    """Apply a saved model to new rows, in bounded memory.

    Example:

        undrift predict kitchen.safetensors may.csv --out predicted.csv

    The file is taken as a batch of its own: its class shares are estimated, and the decision threshold
    follows. Files of fewer than 200 rows with known words are predicted as fitted. The columns added are
    those of `adapt`, and `known_terms`. A folder, or a pattern in quotes ('month-*.csv'), gives one file of
    predictions with a column `file`; each file is a batch.
    """
    with terminal.show_start():
        from .predict import run_predict
    job = replace(job, check=job.check or job.fail_on_drift)
    summary = terminal.run_job(partial(run_predict, job))
    terminal.show_summary(summary, as_json=as_json)
    return 3 if job.fail_on_drift and summary.facts["check"]["drifted"] else 0


@command(AskJob, "model input", "MODEL FILE")
def ask(job: AskJob, as_json: bool) -> None:
    """Choose the rows most worth labelling, and write them with an empty column `label`.

    Example: label 50 rows in a spreadsheet, then let the model learn them.

        undrift ask kitchen.safetensors kitchen.csv --out ask.csv

        undrift update kitchen.safetensors ask.csv --out kitchen-2.safetensors

    The model must have been saved with `adapt --updatable`.
    """
    with terminal.show_start():
        from .ask import run_ask
    terminal.show_summary(terminal.run_job(partial(run_ask, job)), as_json=as_json)


@command(LabelJob, "model input", "MODEL FILE")
def label(job: LabelJob, _: bool) -> None:
    """Label rows on a page of this machine; the model learns as you go, and the page shows the error.

    Example:

        undrift label kitchen.safetensors kitchen.csv

    Every answer is saved at once. Press Finish or Ctrl-C to write the updated model and the predictions. Run
    it again to go on. The model must have been saved with `adapt --updatable` to learn.
    """
    with terminal.show_start():
        from .label import run_label
    run_label(job)


@command(UpdateJob, "model labels", "MODEL LABELS")
def update(job: UpdateJob, as_json: bool) -> None:
    """Update a saved model at once: by labels of target rows, or by a new batch without labels.

    For example:

        undrift update kitchen.safetensors ask.csv --out kitchen-2.safetensors

        undrift update kitchen.safetensors --target may.csv --out may.safetensors

    Rows without a label are skipped. A new label of a text replaces its old one.
    """
    if job.input and job.labels:
        raise typer.BadParameter("give either --labels FILE or --target FILE")
    with terminal.show_start():
        from .update import run_update
    terminal.show_summary(terminal.run_job(partial(run_update, job)), as_json=as_json)


@command(DistillJob, "model *targets", "MODEL FILE")
def distill(job: DistillJob, as_json: bool) -> None:
    """Make a small, fast model for predicting from one that `adapt` saved.

    Example:

        undrift distill kitchen.safetensors kitchen.csv --out small.safetensors

    The result is a linear model on words and pairs of words, learnt from the scores that the full model
    gives the rows. It takes a few megabytes, and `predict` and `explain` take it like any model. A tenth of
    the rows is held out to say how often the two agree.
    """
    with terminal.show_start():
        from .distill import run_distill
    terminal.show_summary(terminal.run_job(partial(run_distill, job)), as_json=as_json)


@app.command()
def explain(
    words: Annotated[list[str] | None, typer.Argument(metavar="MODEL [WORD]", hidden=True)] = None,
    model: Annotated[Path | None, option("Model that `adapt` saved; may come first.", "FILE")] = None,
    document: Annotated[list[str] | None, option("A document to explain; may be repeated.", "TEXT")] = None,
    top: Annotated[int, option("How many terms to list.", "N", min=1)] = 10,
    as_json: Json = False,
    verbose: Verbose = None,
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
    clear: Annotated[bool, flag("--clear", "Remove the vectors.")] = False,
    as_json: Json = False,
    verbose: Verbose = None,
) -> None:
    """Show the folder that keeps sentence vectors for another run with --bridge, or clear it.

    Example:

        undrift cache --clear

    UNDRIFT_CACHE names another folder.
    """
    from .vectors import run_cache

    terminal.set_verbosity(verbose)
    terminal.show_summary(run_cache(clear=clear), as_json=as_json)


for each in app.registered_commands:  # as help: one line for each paragraph, and examples as they are
    paragraphs = cleandoc((each.callback and each.callback.__doc__) or "").split("\n\n")
    each.help = "\n\n".join(text if text.startswith(" ") else " ".join(text.split()) for text in paragraphs)
