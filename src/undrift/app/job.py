"""The job of a command: what the user asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ShowStage = Callable[[str, float | None], None]  # name of the stage, and the share of it that is done


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
    def needs_state(self) -> bool:
        """Tell whether the fitted classifier is updated or asked, now or when it is loaded."""
        is_saved = self.model is not None and self.updatable
        return is_saved or self.report is not None or self.use_labels != "score"
