"""Options declared once, as fields of dataclasses; those that several commands share; checks of values."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields
from difflib import get_close_matches
from inspect import Parameter, Signature
from pathlib import Path
from typing import Any, get_type_hints

import typer

from . import terminal
from .streams import open_streams

LABELS, SHARES, LEARNING = "Labels of the target", "Class shares", "Learning"
COLUMNS, FILES, RUNNING = "Columns of the output", "Files", "Running"
PANELS = (LABELS, SHARES, LEARNING, COLUMNS, FILES, RUNNING)  # of the help, after the options needed most

JSON = typer.Option(False, "--json", help="Print a machine-readable summary on standard output.")


WITHOUT_TEXT = ("adapt", "ask", "predict", "update")  # commands that take columns of numbers as well


def option(
    default: Any,
    help: str,
    panel: str = RUNNING,
    *,
    flags: str = "",
    is_argument: bool = False,
    **settings: Any,
) -> Any:
    """Declare an option, once, as a field of a dataclass: the field `target_label` is ``--target-label``.

    Parameters
    ----------
    default : any
        ... means that the option is required.
    panel : str
        Where the help lists it.
    flags : str
        How it is written, if not as its name.
    is_argument : bool
        Whether it is written without a name.
    settings
        Of typer, such as `metavar`.
    """
    declared = {"help": help, "rich_help_panel": panel, **settings}
    declared |= {"flags": flags, "is_argument": is_argument}
    if default is ...:
        return field(metadata=declared)
    if isinstance(default, list):
        return field(default_factory=default.copy, metadata=declared)
    return field(default=default, metadata=declared)


def command(kind: type, help: str, first: Sequence[str], epilog: str = "") -> Any:
    """Make a function a command whose options are the fields of the dataclass `kind`.

    The function is called with an object of that kind and the context. `first` names the options that the
    help shows first; the others follow by `PANELS`.
    """
    hints, declared = get_type_hints(kind), {item.name: item for item in fields(kind)}
    rest = [name for name in declared if name not in first]
    rest.sort(key=lambda name: PANELS.index(declared[name].metadata["rich_help_panel"]))
    parameters = [_as_parameter(declared[name], hints[name], name in first) for name in (*first, *rest)]
    context_parameter = Parameter("context", Parameter.KEYWORD_ONLY, annotation=typer.Context)

    def decorate(function: Callable[[Any, typer.Context], None]) -> Callable[..., None]:
        def run(context: typer.Context, **values: Any) -> None:
            terminal.output.quiet = values.get("quiet", False)
            given = kind(**values)
            if values.get("text") == [] and context.info_name not in WITHOUT_TEXT:
                raise typer.BadParameter("Missing option '--text'")
            if isinstance(values.get("text"), list) and len(values["text"]) == 1:
                given.text = values["text"][0]
            try:
                with open_streams(given):
                    function(given, context)
            except BrokenPipeError:  # with its number typer would exit with status 1
                raise BrokenPipeError from None

        run.__signature__ = Signature([context_parameter, *parameters])  # type: ignore[attr-defined]
        run.__annotations__ = {item.name: item.annotation for item in (context_parameter, *parameters)}
        run.settings = {  # type: ignore[attr-defined]
            "name": function.__name__, "help": _unwrap(help), "epilog": _unwrap(epilog) or None
        }  # fmt: skip
        return run

    return decorate


def _as_parameter(item: Field[Any], annotation: Any, is_first: bool) -> Parameter:
    """Return the parameter that typer reads an option from."""
    declared, flag = dict(item.metadata), item.name.replace("_", "-")
    default = item.default if item.default is not MISSING else ...
    if item.default_factory is not MISSING:
        default = item.default_factory()
    flags = declared.pop("flags") or (f"--{flag}/--no-{flag}" if default is True else f"--{flag}")
    if is_first:
        declared["rich_help_panel"] = None
    if declared.pop("is_argument"):
        value = typer.Argument(default, **declared)
    else:
        declared.setdefault(
            "show_default", isinstance(default, str | int | float) and default not in ("", False)
        )
        value = typer.Option(default, *flags.split(), **declared)
    return Parameter(item.name, Parameter.KEYWORD_ONLY, default=value, annotation=annotation)


def _unwrap(text: str) -> str:
    """Join the lines of every paragraph that is not indented, for the terminal to wrap."""
    paragraphs = text.strip("\n").split("\n\n")
    return "\n\n".join(part if part.startswith(" ") else " ".join(part.split()) for part in paragraphs)


def read_config(context: typer.Context, path: Path | None) -> Path | None:
    """Take the options in a TOML file as defaults: those at its top, then those in the command's table."""
    if path is None:
        return None
    try:
        config = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise typer.BadParameter(f"--config {path} cannot be read: {error}") from None
    top = {name: value for name, value in config.items() if not isinstance(value, dict)}
    given = top | config.get(context.info_name or "", {})
    options = {
        name: item.name for item in context.command.params for name in (*item.opts, *item.secondary_opts)
    }
    defaults = {}
    for name, value in given.items():
        flag = f"--{name.replace('_', '-')}"
        if flag not in options:
            near = get_close_matches(flag, options, n=1)
            hint = f"; did you mean {near[0][2:]!r}?" if near else ""
            raise typer.BadParameter(f"{path}: {name!r} is no option of {context.command_path}{hint}")
        is_list = any(item.name == options[flag] and item.multiple for item in context.command.params)
        defaults[options[flag]] = [value] if is_list and not isinstance(value, list) else value
    context.default_map = {**(context.default_map or {}), **defaults}
    return path


@dataclass(kw_only=True)
class SummaryOptions:
    """How a command says what it did, and where else its options may stand."""

    config: Path | None = option(
        None,
        'Read options from a TOML file: text = "review" at its top, or in a table such as \\[adapt].',
        metavar="FILE",
        is_eager=True,
        callback=read_config,
    )
    as_json: bool = option(False, "Print a machine-readable summary on standard output.", flags="--json")
    quiet: bool = option(
        False, "Print no summary and no progress; warnings and errors alone.", flags="--quiet -q"
    )


@dataclass(kw_only=True)
class TableOptions(SummaryOptions):
    """How files of rows are read."""

    text: list[str] = option(
        [], "Column that holds the text; if repeated, the columns are joined.", FILES, metavar="COL"
    )
    format: str | None = option(
        None, "Format of standard input and output, which are written -: csv, tsv or jsonl.", FILES
    )
    sheet: str | None = option(None, "Sheet of .xlsx files that have several.", FILES, metavar="NAME")
    encoding: str | None = option(
        None, "Encoding of the files. Default: UTF-8, or Windows-1252 with a warning.", FILES
    )
    skip_bad: bool = option(False, "Skip rows that cannot be read, and count them.", FILES)


@dataclass(kw_only=True)
class RowOptions(TableOptions):
    """Which columns a model reads."""

    embedding: str | None = option(
        None, "Column of lists of numbers, such as embeddings, to use beside the text.", FILES, metavar="COL"
    )


@dataclass(kw_only=True)
class PredictionOptions(RowOptions):
    """Which columns predictions are written to."""

    out: Path = option(..., "Where predictions are written.", COLUMNS, metavar="FILE")
    prefix: str = option(
        "", "Put this before the names of the columns added, if they clash.", COLUMNS, metavar="TEXT"
    )
    probabilities: bool = option(False, "Add a column p_LABEL for each class, with its probability.", COLUMNS)
    min_confidence: float | None = option(
        None, "Leave `prediction` empty where its probability is below P, such as 0.8.", COLUMNS, metavar="P"
    )


def pick(kind: type, given: Any, **others: Any) -> dict[str, Any]:
    """Return the fields of the dataclass `kind` that options of the same name have, and `others`."""
    names = {item.name for item in fields(kind)} & {item.name for item in fields(given)}
    return {name: getattr(given, name) for name in names} | others


def parse_numbers(value: str, name: str, kind: type) -> Any:
    """Return the number in an option, or the list of numbers where commas separate several."""
    try:
        numbers = [kind(part) for part in value.split(",")]
    except ValueError:
        raise typer.BadParameter(
            f"{name} {value!r}: write a number, or several separated by commas"
        ) from None
    return numbers if len(numbers) > 1 else numbers[0]


def check_option(name: str, value: str | None, choices: Iterable[str]) -> None:
    """Refuse a value that is none of the choices; None is that of an option which was not given."""
    if value is not None and value not in choices:
        raise typer.BadParameter(f"{name} {value!r}: choose one of {', '.join(choices)}")


def check_confidence(min_confidence: float | None) -> None:
    """Refuse a probability that is none."""
    if min_confidence is not None and not 0 <= min_confidence <= 1:
        raise typer.BadParameter(f"--min-confidence {min_confidence:g}: a probability is between 0 and 1")


def parse_shares(values: Sequence[str], n_targets: int) -> list[dict[str, float]]:
    """Return the class shares in every --target-shares: one for all targets, or one for each."""
    if len(values) > 1 and len(values) != n_targets:
        raise typer.BadParameter(
            f"--target-shares is given {len(values)} times and --target {n_targets} times: "
            "give it once for all, or once for each --target, in their order"
        )
    return [_parse_share_list(value) for value in values]


def _parse_share_list(value: str) -> dict[str, float]:
    """Return the label -> share of one option, written negative=0.2,positive=0.8 or as JSON."""
    import numpy as np

    from ..classifier import check_shares

    try:
        is_json = value.lstrip().startswith("{")
        pairs = _read_json_pairs(value) if is_json else [part.split("=") for part in value.split(",")]
        shares = [(str(label).strip(), float(share)) for label, share in pairs]
    except (TypeError, ValueError):
        raise typer.BadParameter(
            f"--target-shares {value!r}: write label=share for every class, as in negative=0.2,positive=0.8; "
            """labels that contain , or = are written as JSON: '{"a,b": 0.2, "c": 0.8}'"""
        ) from None
    labels = [label for label, _ in shares]
    repeated = [label for label in labels if labels.count(label) > 1]
    if repeated:
        raise typer.BadParameter(f"--target-shares {value!r} names {repeated[0]!r} twice")
    try:
        check_shares(dict(shares), np.array(labels, dtype=object), 1)
    except ValueError as error:
        raise typer.BadParameter(f"--{str(error).replace('_', '-', 1)}") from None
    return dict(shares)


def _read_json_pairs(value: str) -> list[tuple[str, Any]]:
    """Return the pairs of a JSON object, repeated names among them."""
    pairs = json.loads(value, object_pairs_hook=list)
    if not all(isinstance(share, int | float) for _, share in pairs):
        raise ValueError("a share is not a number")
    return pairs
