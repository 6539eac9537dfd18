"""The job of each command: the files, columns and options that the user named; and what it returns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

ShowStage = Callable[[str, float | None], None]  # name of the stage, and the share of it that is done


def ignore_stage(stage: str, share: float | None = None) -> None:
    """Show nothing."""


class Summary(NamedTuple):
    """What a command did: facts, ready for JSON, and the lines that it prints."""

    facts: Mapping[str, Any]
    lines: Sequence[str]


@dataclass(frozen=True)
class Reading:
    """How files of rows are read and written."""

    encoding: str | None = None
    sheet: str | None = None  # of a spreadsheet that has several
    skip_bad: bool = False
    safe_cells: bool = False  # whether cells of CSV output that look like a formula get an apostrophe
    stream: str | None = None  # format of standard input and output


@dataclass(frozen=True)
class AdaptJob:
    """Learn from labelled sources and unlabelled targets, and predict the targets."""

    sources: Sequence[Path]
    targets: Sequence[Path]
    text: Sequence[str] = ()  # columns of the sources, joined; empty: the only column of text
    label: str = "label"
    out: Path = Path()
    model: Path | None = None  # where the model is saved
    report: Path | None = None
    distilled: Path | None = None
    target_label: str | None = None
    labels: Path | None = None  # labelled target rows, matched by text
    teacher: str | None = None  # column of the target with labels by another model
    teacher_confidence: str | None = None  # column with their probabilities
    use_labels: str = "score"  # labels of the target: "score", "train" or "both"
    updatable: bool = False  # whether the model holds what `update` needs
    # label -> share, one for all targets or one for each; "source": as there
    target_shares: Sequence[dict[str, float]] | Literal["source"] = ()
    probabilities: bool = False  # a column with the probability of each class
    min_confidence: float | None = None  # predictions whose probability is below are left empty
    reading: Reading = field(default_factory=Reading)
    command: str | None = None  # the command line, which a report shows
    target_text: Sequence[str] = ()  # columns of the targets; empty: those of the sources
    merges: Mapping[str, str] = field(default_factory=dict)  # label -> the class that it is joined into
    bridge: bool = False  # whether sources and targets are in different languages

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

    model: Path
    text: Sequence[str] = ()  # columns, which are joined; empty: the model's, or the only column of text
    domain: str | None = None  # target of the model
    device: str | None = None
    reading: Reading = field(default_factory=Reading)


@dataclass(frozen=True, kw_only=True)
class PredictJob(ModelJob):
    """Predict new rows."""

    input: Path
    out: Path
    as_fitted: bool = False  # whether class shares and threshold stay those of the fit
    by: str | None = None  # a column: each of its values is aligned apart
    together: bool = False  # whether the files of a pattern are one batch
    check: bool = False  # whether rows are compared with those of the fit
    report: Path | None = None
    command: str | None = None  # the command line, which a report shows
    probabilities: bool = False  # a column with the probability of each class
    min_confidence: float | None = None  # predictions whose probability is below are left empty


@dataclass(frozen=True, kw_only=True)
class AskJob(ModelJob):
    """Choose rows to label."""

    input: Path
    out: Path
    n: int = 50
    purpose: Literal["predictions", "estimate", "source"] = "predictions"
    seed: int = 0


@dataclass(frozen=True, kw_only=True)
class LabelJob(ModelJob):
    """Label rows on a page."""

    input: Path
    labels: Path | None = None  # by default beside the rows
    port: int = 0  # 0: any that is free
    opens_browser: bool = True


@dataclass(frozen=True, kw_only=True)
class UpdateJob(ModelJob):
    """Learn labels of target rows, or take a new batch without labels."""

    out: Path
    labels: Path | None = None
    label: str = "label"
    input: Path | None = None  # the batch

    @property
    def rows(self) -> Path:
        """The file to update by."""
        path = self.labels or self.input
        assert path is not None
        return path


@dataclass(frozen=True, kw_only=True)
class DistillJob(ModelJob):
    """Make a small model."""

    targets: Sequence[Path]
    out: Path
    domains: Sequence[str] = ()  # the model's name for each target; by default the name of its file
    target_label: str | None = None
