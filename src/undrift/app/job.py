"""The job of each command: a field for every option, with the words of its help; and what it returns.

`cli` makes the command line of them. A function in the annotation turns the texts of an option that may be
repeated into the value of the field.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import typer

from .options import Reading, parse_merges, parse_reading, parse_target_shares

ShowStage = Callable[[str, float | None], None]  # name of the stage, and the share of it that is done
LABELS, SHARES, LEARNING = "Labels of the target", "Class shares", "Learning"
OUTPUT, RUNNING = "Output", "Running"


def ignore_stage(stage: str, share: float | None = None) -> None:
    """Show nothing."""


class Summary(NamedTuple):
    """What a command did: facts, ready for JSON, and the lines that it prints."""

    facts: Mapping[str, Any]
    lines: Sequence[str]


class Facts:
    """Facts of a dataclass, ready for JSON; a field that is None by default is left out where it is None."""

    def to_dict(self) -> dict[str, object]:
        """Return them."""
        known = {each: getattr(self, each.name) for each in fields(self)}  # type: ignore[arg-type]
        given = {each.name: v for each, v in known.items() if v is not None or each.default is not None}
        return dict(json.loads(json.dumps(given, default=_to_plain)))


def _to_plain(value: object) -> object:
    """Return a part of facts in a form that JSON knows."""
    if isinstance(value, Facts):
        return value.to_dict()
    if isinstance(value, PathLike):
        return str(value)
    return asdict(value)  # type: ignore[call-overload]


def option(
    help: str, metavar: str | None = None, panel: str | None = None, names: str = "", **more: Any
) -> Any:
    """Describe an option; without `names`, separated by spaces, it is called as its field."""
    return typer.Option(*names.split(), help=help, metavar=metavar, rich_help_panel=panel, **more)


def flag(names: str, help: str, panel: str | None = None, *, show_default: bool = False) -> Any:
    """Describe an option without a value."""
    return option(help, "", panel, names, show_default=show_default)


# options of several commands
Columns = Annotated[
    Sequence[str], option("Column of the text; may be repeated. Default: the only one.", "COL")
]
Device = Annotated[str | None, option("Where to compute: cpu, or cuda.", "WHERE", RUNNING)]
Formats = Annotated[
    Reading,
    option(
        "How files are read: csv, tsv or jsonl for standard input and output (-), encoding=NAME, sheet=NAME, "
        "skip-bad (skip and count unreadable rows). And written: safe-cells (an apostrophe before text in "
        "CSV that looks like a formula). May be repeated.",
        "HOW",
        RUNNING,
        "--format",
    ),
    parse_reading,
]
Input = Annotated[Path, option("File of rows; may come second.", "FILE", names="--input --target")]
MinConfidence = Annotated[
    float | None,
    option(
        "Leave `prediction` empty where its probability is below P, such as 0.8.", "P", OUTPUT, min=0, max=1
    ),
]
Probabilities = Annotated[
    bool, flag("--probabilities", "Add a column p_LABEL for each class, with its probability.", OUTPUT)
]
Report = Annotated[Path | None, option("Write a report here, an HTML page.", "FILE")]


@dataclass(frozen=True)
class AdaptJob:
    """Learn from labelled sources and unlabelled targets, and predict the targets."""

    sources: Annotated[
        Sequence[Path], option("Labelled rows, or the first argument.", "FILE", names="--source")
    ]
    targets: Annotated[
        Sequence[Path], option("Rows to predict, or the second argument.", "FILE", names="--target")
    ]
    text: Columns = ()
    label: Annotated[str | None, option("Column of the source's labels.", "COL")] = None
    out: Annotated[Path | None, option("Where predictions are written.", "FILE")] = None
    target_text: Annotated[
        Sequence[str],
        option("Column of the target's text, where it has another name. May be repeated.", "COL"),
    ] = ()
    model: Annotated[Path | None, option("Save the model here.", "FILE")] = None
    report: Report = None
    target_label: Annotated[str | None, option("Column of the target's labels.", "COL")] = None
    labels: Annotated[
        Path | None,
        option("Labelled rows of the target in a file of their own, matched by text.", "FILE", LABELS),
    ] = None
    use_labels: Annotated[
        Literal["score", "train", "both"],
        option(
            "What the target's labels are for: score the predictions, train, or both (scored by "
            "cross-fitting).",
            panel=LABELS,
        ),
    ] = "score"
    updatable: Annotated[
        bool,
        flag(
            "--updatable",
            "Keep the training rows in the model that `label`, `ask` and `update` need.",
            LABELS,
        ),
    ] = False
    teacher: Annotated[
        str | None,
        option(
            "Column of labels by another model, which may be wrong, or empty for most rows. Then --source is "
            "optional.",
            "COL",
            LABELS,
        ),
    ] = None
    teacher_confidence: Annotated[
        str | None, option("Column with the probability of the teacher's labels.", "COL", LABELS)
    ] = None
    target_shares: Annotated[
        Sequence[dict[str, float]] | Literal["source"],
        option(
            "Share of every class in the target, if you know it: no=0.2,yes=0.8, or JSON, or same (as in the "
            "source). Once for all, or once per --target. Default: estimated.",
            "SHARES",
            SHARES,
        ),
        parse_target_shares,
    ] = ()
    border: Annotated[
        Literal["error", "balanced"],
        option(
            "error: as few errors as possible; balanced: errors in every class count alike.", panel=SHARES
        ),
    ] = "error"
    is_fast: Annotated[
        bool | None,
        flag(
            "--fast/--thorough",
            "Sooner, with smaller layers; or later, with more terms and larger layers.",
            LEARNING,
        ),
    ] = None
    max_features: Annotated[
        int | None,
        option(
            "Size of the vocabulary. Default: 20,000 terms, 40,000 with --thorough.", "N", LEARNING, min=1
        ),
    ] = None
    tokens: Annotated[
        Literal["auto", "words", "characters"],
        option(
            "What terms are made of: words, or characters (n-grams inside words). auto takes characters "
            "where a script has no spaces or words hardly repeat.",
            panel=LEARNING,
        ),
    ] = "auto"
    bridge: Annotated[
        bool,
        flag(
            "--bridge",
            "Source and target are in different languages: sentence vectors carry the labels over. Needs "
            "undrift[languages].",
            LEARNING,
        ),
    ] = False
    merges: Annotated[
        Mapping[str, str],  # label -> the class that it is joined into
        option(
            "Join labels into a class, as in 1,2,3=bad; may be repeated.", "LABELS=CLASS", LABELS, "--merge"
        ),
        parse_merges,
    ] = field(default_factory=dict)
    dry_run: Annotated[
        bool, flag("--dry-run", "Read the files, say what is in them, and stop; needs no --out.", RUNNING)
    ] = False
    settings: Annotated[
        Sequence[str],
        option(
            "A setting of the method, such as layers=3; may be repeated. See below.",
            "NAME=VALUE",
            LEARNING,
            "--set",
        ),
    ] = ()
    distilled: Annotated[Path | None, option("Save a small model here, to predict with.", "FILE", OUTPUT)] = (
        None
    )
    probabilities: Probabilities = False
    min_confidence: MinConfidence = None
    reading: Formats = field(default_factory=Reading)
    device: Annotated[
        str,
        option(
            "Where to compute: cpu, cuda, or a Dask cluster (local, local:N or tcp://host:port), whose "
            "workers read the files.",
            "WHERE",
            RUNNING,
        ),
    ] = "cpu"
    command: str | None = None  # the command line, which a report shows

    @property
    def on_cluster(self) -> bool:
        """Tell whether the device is a cluster."""
        return self.device.startswith(("local", "tcp://", "tls://"))

    @property
    def target_labels(self) -> tuple[str | None, ...]:
        """Columns of a target: its labels, those of a teacher, and their probabilities."""
        return self.target_label, self.teacher, self.teacher_confidence

    @property
    def needs_state(self) -> bool:
        """Tell whether the fitted classifier is updated or asked, now or when it is loaded."""
        is_saved = self.model is not None and self.updatable
        return is_saved or self.report is not None or self.use_labels != "score"


@dataclass(frozen=True, kw_only=True)
class ModelJob:
    """A job that needs a saved model; each of its commands adds the rest."""

    model: Annotated[Path, option("Model that `adapt` saved; may come first.", "FILE")]
    text: Annotated[
        Sequence[str], option("Column of the text; may be repeated. Default: that of the model.", "COL")
    ] = ()
    domain: Annotated[str | None, option("Target of the rows, if the model has several.", "NAME")] = None
    device: Device = None
    reading: Formats = field(default_factory=Reading)


@dataclass(frozen=True, kw_only=True)
class PredictJob(ModelJob):
    """Predict new rows."""

    input: Input
    out: Annotated[Path, option("Where predictions are written.", "FILE")]
    report: Report = None
    as_fitted: Annotated[
        bool,
        flag(
            "--as-fitted",
            "Keep the model's class shares and threshold: for single rows, and answers row by row.",
        ),
    ] = False
    together: Annotated[bool, flag("--together", "Take all files of a pattern as one batch.")] = False
    check: Annotated[bool, flag("--check", "Warn where the rows are not what the model was adapted to.")] = (
        False
    )
    fail_on_drift: Annotated[bool, flag("--fail-on-drift", "Exit with status 3 then; implies --check.")] = (
        False
    )
    probabilities: Probabilities = False
    min_confidence: MinConfidence = None
    command: str | None = None  # the command line, which a report shows


@dataclass(frozen=True, kw_only=True)
class AskJob(ModelJob):
    """Choose rows to label."""

    input: Input
    n: Annotated[int, option("How many rows to ask for.", "N", names="--n", min=1)] = 50
    purpose: Annotated[
        Literal["predictions", "estimate", "source"],
        option(
            "predictions: five rows that decide between readings, then rows drawn at random, doubtful ones "
            "more often; estimate: drawn rows alone, half of them among changed predictions; source: rows "
            "of a source file whose labels look wrong.",
            names="--for",
        ),
    ] = "predictions"
    out: Annotated[Path, option("Where the rows are written.", "FILE")]


@dataclass(frozen=True, kw_only=True)
class LabelJob(ModelJob):
    """Label rows on a page."""

    input: Input
    labels: Annotated[
        Path | None, option("CSV file of the labels, also of earlier ones. Default: beside FILE.", "CSV")
    ] = None
    port: Annotated[int, option("Port of the page; 0 takes a free one.", "N", min=0, max=65535)] = 0
    opens_browser: Annotated[
        bool, flag("--browser/--no-browser", "Open the page in the browser.", show_default=True)
    ] = True
    device: str | None = None


@dataclass(frozen=True, kw_only=True)
class UpdateJob(ModelJob):
    """Learn labels of target rows, or take a new batch without labels."""

    labels: Annotated[Path | None, option("Labelled rows of the target; may come second.", "FILE")] = None
    input: Annotated[Path | None, option("A new batch without labels.", "FILE", names="--target --input")] = (
        None
    )
    label: Annotated[str, option("Column of the labels.", "COL")] = "label"
    out: Annotated[Path, option("Where the new model is written.", "MODEL")]

    @property
    def rows(self) -> Path:
        """The file to update by."""
        path = self.labels or self.input
        assert path is not None
        return path


@dataclass(frozen=True, kw_only=True)
class DistillJob(ModelJob):
    """Make a small model."""

    targets: Annotated[
        Sequence[Path], option("Rows of the target; may be repeated.", "FILE", names="--target --input")
    ]
    out: Annotated[Path, option("Where to save the distilled model.", "FILE")]
    domain: str | None = None
    domains: Annotated[
        Sequence[str],
        option(
            "Which of the model's targets a file holds, once for each. Default: by the file's name.",
            "NAME",
            names="--domain",
        ),
    ] = ()
    target_label: Annotated[str | None, option("Column of labels, for scoring only.", "COL")] = None
