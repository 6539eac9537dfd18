"""The job of a command: the files, columns and options that the user named."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ..errors import UndriftError, escape_controls
from . import terminal

ShowStage = Callable[[str, float | None], None]  # name of the stage, and the share of it that is done

FORMATS, TOOLS = ("csv", "tsv", "jsonl"), ("label-studio",)
NUMBERS = ("noise", "layers", "n_layers", "C", "ridge", "seed", "random_state")  # settings
_DASH = Path("-")
_FILES = ("sources", "targets", "input", "labels", "out")  # options that - may stand for


def ignore_stage(stage: str, share: float | None = None) -> None:
    """Show nothing."""


@dataclass(frozen=True)
class Reading:
    """How files of rows are read."""

    encoding: str | None = None
    sheet: str | None = None  # of a spreadsheet that has several
    skip_bad: bool = False
    stream: str | None = None  # format of standard input and output
    tool: str | None = None  # that labels rows: label-studio


@dataclass(frozen=True)
class Job:
    """The files, columns and options of a command, as the user named them; each command has its own."""

    sources: list[Path] = field(default_factory=list)
    targets: list[Path] = field(default_factory=list)
    text: Sequence[str] = ()  # columns, which are joined; empty: the model's, or the only column of text
    label: str = "label"
    out: Path = Path()
    model: Any = None  # path of the model, which `adapt` saves and other commands load
    report: Path | None = None
    distilled: Path | None = None
    target_label: str | None = None
    labels: Path | None = None  # labelled target rows, matched by text
    teacher: str | None = None  # column of the target with labels by another model
    teacher_confidence: str | None = None  # column with their probabilities
    use_labels: str = "score"  # labels of the target: "score", "train" or "both"
    updatable: bool = False  # whether the model holds what `update` needs
    target_shares: Sequence[dict[str, float]] = ()  # label -> share: one for all targets, or one for each
    probabilities: bool = False  # a column with the probability of each class
    min_confidence: float | None = None  # predictions whose probability is below are left empty
    reading: Reading = Reading()
    command: str | None = None  # the command line, which a report shows
    input: Path = Path()  # rows for a saved model
    domain: str | None = None  # target of a saved model
    domains: Sequence[str] = ()  # the model's name for each target; by default the name of its file
    as_fitted: bool = False  # whether class shares and threshold stay those of the fit
    by: str | None = None  # a column: each of its values is aligned apart
    check: bool = False  # whether rows are compared with those of the fit
    n: int = 50  # rows to ask for
    purpose: str = "predictions"
    seed: int = 0
    device: str | None = None
    port: int = 0  # 0: any that is free
    opens_browser: bool = True

    @property
    def target_labels(self) -> tuple[str | None, ...]:
        """Columns of a target: its labels, those of a teacher, and their probabilities."""
        return self.target_label, self.teacher, self.teacher_confidence

    @property
    def needs_state(self) -> bool:
        """Tell whether the fitted classifier is updated or asked, now or when it is loaded."""
        is_saved = self.model is not None and self.updatable
        return is_saved or self.report is not None or self.use_labels != "score"


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
            listed = ", ".join((*FORMATS, *tools))
            raise UndriftError(
                f"--format {value!r}: choose one of {listed}, encoding=NAME, sheet=NAME, skip-bad"
            )
    return Reading(**given)


def parse_settings(values: Sequence[str] | None, known: Sequence[str]) -> dict[str, Any]:
    """Return the parameters of the classifier in values of --set, such as noise=0.5,0.7."""
    settings: dict[str, Any] = {}
    names = {"layers": "n_layers", "seed": "random_state", **{name: name for name in known}}
    for value in values or []:
        name, sign, text = value.partition("=")
        if not sign or name not in names:
            listed = ", ".join(sorted(set(names) - {"n_layers", "random_state"}))
            raise UndriftError(f"--set {value!r}: write NAME=VALUE; names are {listed}")
        parts = [_parse_value(part) for part in text.split(",")]
        if name in NUMBERS and not all(isinstance(part, int | float) for part in parts):
            raise UndriftError(f"--set {value!r}: write a number, or several that are separated by commas")
        settings[names[name]] = parts if len(parts) > 1 else parts[0]
    return settings


def _parse_value(text: str) -> Any:
    """Return a number, true, false or none as such, and other text as it is."""
    try:
        return json.loads("null" if text.lower() == "none" else text.lower())
    except ValueError:
        return text


def parse_shares(value: str) -> dict[str, float]:
    """Return the label -> share of one --target-shares, written negative=0.2,positive=0.8 or as JSON."""
    is_json = value.lstrip().startswith("{")
    try:
        pairs = [part.split("=") for part in value.split(",")]
        if is_json:
            pairs = json.loads(value, object_pairs_hook=list)
        shares = [(str(label).strip(), float(share)) for label, share in pairs]
        is_text = is_json and any(isinstance(share, str) for _, share in pairs)
        if is_text or len(dict(shares)) < len(shares):
            raise ValueError("a share is not a number, or a class is there twice")
    except (TypeError, ValueError):
        raise UndriftError(
            f"--target-shares {value!r}: write label=share once for every class, as in "
            "negative=0.2,positive=0.8; "
            """labels that contain , or = are written as JSON: '{"a,b": 0.2, "c": 0.8}'"""
        ) from None
    return dict(shares)


@contextmanager
def open_job(given: dict[str, Any], needed: Sequence[str] = (), tools: Sequence[str] = ()) -> Iterator[Job]:
    """Give the job that the parameters of a command describe; files of `needed` may have come unnamed."""
    terminal.set_verbosity(given["verbose"])
    reading = parse_reading(given["reading"], tools)
    given = given | place_files(given["files"], {name: given[name] for name in needed})
    known = {each.name for each in fields(Job)} - {"reading"}
    values = {name: value for name, value in given.items() if name in known and value is not None}
    files = {name: values[name] for name in _FILES if name in values}
    with open_streams(files, reading, as_json=given.get("as_json", False)) as opened:
        yield Job(**values | opened, reading=reading)


def run_command(
    given: dict[str, Any], needed: Sequence[str], run: Any, describe: Any, tools: Sequence[str] = ()
) -> dict[str, Any]:
    """Run the job that the parameters of a command describe; show and return its summary."""
    with open_job(given, needed, tools) as job:
        summary = terminal.run_job(partial(run, job))
        terminal.show_summary(summary, describe, as_json=given["as_json"])
    return summary


def place_files(files: list[Path] | None, given: dict[str, Any]) -> dict[str, Any]:
    """Return the files of every option: arguments without a name fill the options that are missing.

    `targets` takes all arguments that are left, unless a source may come without a name too.
    """
    rest, placed = list(files or []), dict[str, Any]()
    options = {"sources": "--source", "targets": "--target"}
    for name, path in given.items():
        if not path and not rest:
            option = options.get(name, f"--{name}")
            raise UndriftError(f"Missing option '{option}' (or the file as an argument)")
        n_taken = 0 if path else len(rest) if name == "targets" and "sources" not in given else 1
        placed[name] = path or (rest[:n_taken] if name in options else rest[0])
        rest = rest[n_taken:]
    if placed.get("model") == _DASH:
        raise UndriftError("--model -: only rows are read or written by -; give a file")
    if rest:
        names = " ".join(map(str, rest))
        raise UndriftError(f"Got unexpected extra argument{'s' * (len(rest) > 1)} ({names})")
    return placed


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
def open_streams(files: dict[str, Any], reading: Reading, *, as_json: bool) -> Iterator[dict[str, Any]]:
    """Give the files of every option, a temporary one for each ``-``.

    Standard input is copied to a file, since files are read twice. Standard output is written last.
    """
    inputs = [path for name, value in files.items() if name != "out" for path in _list_paths(value)]
    n_inputs, has_output = inputs.count(_DASH), files.get("out") == _DASH
    _check_streams(reading, n_inputs, has_output, as_json)
    if not n_inputs and not has_output:
        yield files
        return
    with TemporaryDirectory(prefix="undrift-") as folder:
        streams = [StreamPath(folder, f"{name}.{reading.stream}") for name in ("input", "output")]
        source, out = streams
        source.title, out.title = "standard input", "standard output"
        if n_inputs:
            with source.open("wb") as file:
                shutil.copyfileobj(sys.stdin.buffer, file, 1 << 20)
        opened: dict[str, Any] = {}
        for name, value in files.items():
            placed = [streams[name == "out"] if path == _DASH else path for path in _list_paths(value)]
            opened[name] = placed if isinstance(value, list) else placed[0]
        terminal.output.stderr = has_output
        try:
            yield opened
        finally:
            terminal.output.stderr = False
        _send(out)


def _list_paths(value: Path | list[Path]) -> list[Path]:
    return value if isinstance(value, list) else [value]


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
        raise UndriftError(problem)


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
