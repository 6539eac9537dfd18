"""Options that several commands share, declared once, and the parsing of their values."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer

from ..errors import escape_controls
from . import terminal
from .job import Job, Reading

LABELS, SHARES, LEARNING = "Labels of the target", "Class shares", "Learning"
OUTPUT, RUNNING = "Output", "Running"

Device = Annotated[
    str | None, typer.Option(help="Where to compute: cpu, or cuda.", rich_help_panel=RUNNING, metavar="WHERE")
]
Domain = Annotated[
    str | None, typer.Option(help="Target of the rows, if the model has several.", metavar="NAME")
]
Formats = Annotated[
    list[str] | None,
    typer.Option(
        "--format",
        help="How files are read: csv, tsv or jsonl for standard input and output (-), encoding=NAME, "
        "sheet=NAME, skip-bad (skip and count unreadable rows). May be repeated.",
        metavar="HOW",
        rich_help_panel=RUNNING,
    ),
]
Json = Annotated[
    bool,
    typer.Option(
        "--json",
        help="Print a machine-readable summary on standard output.",
        rich_help_panel=RUNNING,
        metavar="",
    ),
]
MinConfidence = Annotated[
    float | None,
    typer.Option(
        help="Leave `prediction` empty where its probability is below P, such as 0.8.",
        min=0,
        max=1,
        metavar="P",
        rich_help_panel=OUTPUT,
    ),
]
Probabilities = Annotated[
    bool,
    typer.Option(
        "--probabilities",
        metavar="",
        help="Add a column p_LABEL for each class, with its probability.",
        rich_help_panel=OUTPUT,
    ),
]
Seed = Annotated[int, typer.Option(help="Seed of the random numbers.", rich_help_panel=RUNNING, metavar="N")]
Text = Annotated[
    list[str] | None,
    typer.Option(
        help="Column of the text. If repeated, the columns are joined. Default: the model's column, or the "
        "only column of text.",
        metavar="COL",
    ),
]
Verbose = Annotated[
    bool | None,
    typer.Option(
        "--verbose/--quiet",
        "-v/-q",
        metavar="",
        help="Print more; or warnings and errors alone.",
        show_default=False,
        rich_help_panel=RUNNING,
    ),
]

FORMATS, TOOLS = ("csv", "tsv", "jsonl"), ("label-studio",)
NUMBERS = ("noise", "layers", "n_layers", "C", "ridge", "seed", "random_state")  # settings
_DASH = Path("-")
_FILES = ("sources", "targets", "input", "labels")  # options that are read as files of rows


def parse_reading(values: Sequence[str] | None, tools: Sequence[str] = ()) -> Reading:
    """Return how files are read, from the values of --format; `tools` are accepted too."""
    given: dict[str, Any] = {}
    for value in [part.strip() for item in values or [] for part in item.split(",")]:
        name, _, setting = value.partition("=")
        if value in FORMATS:
            given["stream"] = value
        elif value in tools:
            given["tool"] = value
        elif value == "skip-bad":
            given["skip_bad"] = True
        elif name in ("encoding", "sheet") and setting:
            given[name] = setting
        else:
            raise typer.BadParameter(
                f"--format {value!r}: choose one of {', '.join((*FORMATS, *tools))}, encoding=NAME, "
                "sheet=NAME, skip-bad"
            )
    return Reading(**given)


class StreamPath(type(Path())):  # type: ignore[misc]
    """Path of a temporary file that messages call `title`."""

    title = ""

    def __fspath__(self) -> str:
        return super().__str__()

    def __str__(self) -> str:
        return self.title or super().__str__()

    @property
    def name(self) -> str:
        """Name for messages."""
        return self.title or super().name


@contextmanager
def open_job(given: dict[str, Any], needed: Sequence[str] = (), tools: Sequence[str] = ()) -> Iterator[Job]:
    """Give the job that the parameters of a command describe; files of `needed` may have come unnamed."""
    terminal.set_verbosity(given["verbose"])
    reading = parse_reading(given["reading"], tools)
    given = given | place_files(given.get("files"), {name: given[name] for name in needed})
    known = {each.name for each in fields(Job)} - {"reading"}
    values = {name: value for name, value in given.items() if name in known and value is not None}
    given_files = [values[name] for name in _FILES if name in values]
    inputs = [path for each in given_files for path in (each if isinstance(each, list) else [each])]
    as_json, out = given.get("as_json", False), values.get("out")
    with open_streams(reading, inputs, out, as_json=as_json) as place:
        for name in {*_FILES, "out"} & values.keys():
            value = values[name]
            values[name] = [place(each) for each in value] if isinstance(value, list) else place(value)
        yield Job(**values, reading=reading)


def place_files(files: list[Path] | None, given: dict[str, Any]) -> dict[str, Any]:
    """Return the files of every option: arguments without a name fill the options that are missing.

    `targets` takes all arguments that are left, unless a source may come without a name too.
    """
    rest, placed = list(files or []), dict[str, Any]()
    options = {"sources": "--source", "targets": "--target"}
    for name, path in given.items():
        if not path and not rest:
            raise typer.BadParameter(f"Missing option '{options.get(name, f'--{name}')}'")
        n_taken = 0 if path else len(rest) if name == "targets" and "sources" not in given else 1
        placed[name] = path or (rest[:n_taken] if name in options else rest[0])
        rest = rest[n_taken:]
    if placed.get("model") == _DASH:
        raise typer.BadParameter("--model -: only rows are read or written by -; give a file")
    if rest:
        names = " ".join(map(str, rest))
        raise typer.BadParameter(f"Got unexpected extra argument{'s' * (len(rest) > 1)} ({names})")
    return placed


@contextmanager
def open_streams(
    reading: Reading, inputs: Sequence[Path], out: Path | None, *, as_json: bool
) -> Iterator[Callable[[Path], Path]]:
    """Give a function that returns the path to use for a path: a temporary file for ``-``.

    Standard input is copied to a file, since files are read twice. Standard output is written last.
    """
    n_inputs, has_output = list(inputs).count(_DASH), out == _DASH
    _check_streams(reading, n_inputs, has_output, as_json)
    if not n_inputs and not has_output:
        yield lambda path: path
        return
    with TemporaryDirectory(prefix="undrift-") as folder:
        paths = {}
        for name in ("input", "output"):
            paths[name] = StreamPath(folder, f"{name}.{reading.stream}")
            paths[name].title = f"standard {name}"
        if n_inputs:
            with paths["input"].open("wb") as file:
                shutil.copyfileobj(sys.stdin.buffer, file, 1 << 20)
        terminal.output.stderr = has_output
        try:
            yield lambda path: paths["output" if path is out else "input"] if path == _DASH else path
        except typer.Exit:  # as by --fail-on-drift, when predictions are written
            _send(paths["output"])
            raise
        finally:
            terminal.output.stderr = False
        _send(paths["output"])


def _check_streams(reading: Reading, n_inputs: int, has_output: bool, as_json: bool) -> None:
    """Refuse more than standard input and output can do."""
    problem = None
    if not n_inputs and not has_output:
        if reading.stream is not None:
            what = f"--format {reading.stream} is for standard input and output (-)"
            problem = f"{what}: files say it by their names"
    elif reading.stream is None:
        name = "input" if n_inputs else "output"
        problem = f"standard {name} has no name that says its format: add --format csv, tsv or jsonl"
    elif n_inputs > 1:
        problem = "standard input can be one file only: - is given twice"
    elif has_output and as_json:
        problem = "--json and --out - would both write to standard output: drop one"
    if problem:
        raise typer.BadParameter(problem)


def _send(path: Path) -> None:
    """Write a finished file to standard output."""
    if not path.exists():
        return
    if sys.stdout.isatty():
        with path.open(encoding="utf-8", errors="replace", newline="\n") as lines:
            sys.stdout.writelines(map(escape_controls, lines))
        return
    with path.open("rb") as file:
        shutil.copyfileobj(file, sys.stdout.buffer, 1 << 20)
    sys.stdout.buffer.flush()


def parse_settings(values: Sequence[str] | None, known: Sequence[str]) -> dict[str, Any]:
    """Return the parameters of the classifier in values of --set, such as noise=0.5,0.7."""
    settings: dict[str, Any] = {}
    names = {"layers": "n_layers", "seed": "random_state", **{name: name for name in known}}
    for value in values or []:
        name, sign, text = value.partition("=")
        if not sign or name not in names:
            listed = ", ".join(sorted(set(names) - {"n_layers", "random_state"}))
            raise typer.BadParameter(f"--set {value!r}: write NAME=VALUE; names are {listed}")
        parts = [_parse_value(part) for part in text.split(",")]
        if name in NUMBERS and not all(isinstance(part, int | float) for part in parts):
            raise typer.BadParameter(
                f"--set {value!r}: write a number, or several that are separated by commas"
            )
        settings[names[name]] = parts if len(parts) > 1 else parts[0]
    return settings


def _parse_value(text: str) -> Any:
    """Return a number, true, false or null as such, and other text as it is."""
    try:
        return json.loads(text.lower() if text.lower() in ("true", "false", "none") else text)
    except ValueError:
        return None if text.lower() == "none" else text


def parse_shares(values: Sequence[str] | None, n_targets: int) -> list[dict[str, float]]:
    """Return the class shares in every --target-shares: one for all targets, or one for each."""
    values = values or []
    if len(values) > 1 and len(values) != n_targets:
        raise typer.BadParameter(
            f"--target-shares is given {len(values)} times and --target {n_targets} times: "
            "give it once for all, or once for each --target, in their order"
        )
    return [_parse_share_list(value) for value in values]


def _parse_share_list(value: str) -> dict[str, float]:
    """Return the label -> share of one option, written negative=0.2,positive=0.8 or as JSON."""
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
    return dict(shares)


def _read_json_pairs(value: str) -> list[tuple[str, Any]]:
    """Return the pairs of a JSON object, repeated names among them."""
    pairs = json.loads(value, object_pairs_hook=list)
    if not all(isinstance(share, int | float) for _, share in pairs):
        raise ValueError("a share is not a number")
    return pairs
