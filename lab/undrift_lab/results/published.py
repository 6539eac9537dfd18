"""Numbers that others have published, read from `published.toml`, to be laid beside ours."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from .frame import Where, average_tasks

_DATA = tomllib.loads(Path(__file__).with_name("published.toml").read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Published:
    """A published time, or errors by task, and where ours are recorded."""

    text: str
    plan: str
    variant: str
    method: str
    value: str = ""
    than: str | None = None  # the method that a time is divided by
    seconds: float | None = None
    accuracies: list[float] = field(default_factory=list)
    has_same_rows: bool = False
    test_rows: str = ""  # whether they are among the unlabelled rows: "seen", "unseen" or "not stated"

    @property
    def errors(self) -> dict[str, float]:
        """Transfer errors by task; none where a time was published."""
        errors = [round(1 - accuracy / 100, 4) for accuracy in self.accuracies]
        return dict(zip(_DATA["tasks"], errors, strict=False))

    @property
    def mean(self) -> float:
        """Mean transfer error."""
        return sum(self.errors.values()) / len(self.errors)

    def find_ours(self, frame: pd.DataFrame) -> str:
        """Return our number for it, over all its tasks; nothing where there is none."""
        own = Where(self.plan, self.variant, self.method).of(frame)
        if self.errors:
            is_whole = has_same_rows(own) and own["task"].nunique() == len(self.errors)
            return f"{average_tasks(own).mean():.2%}" if is_whole else ""
        name = "represent_seconds"
        there = Where(self.plan, self.variant, self.than or self.method).of(frame)
        both = pd.concat([average_tasks(own, name), average_tasks(there, name)], axis=1).dropna()
        if len(both) < len(_DATA["tasks"]):
            return ""
        mean, other = both.mean()
        return f"{mean:.3g} s" if self.than is None else f"{mean / other:,.0f} ×"


@dataclass(frozen=True)
class Experiment:
    """One of the paper's experiments: its mean error in per cent and its time, where it has them."""

    text: str
    plan: str
    variant: str
    method: str
    error: float | None = None
    time: str = ""
    n_tasks: int = 12


TIMES = tuple(Published(**table) for table in _DATA["times"])
ERRORS = tuple(Published(**table) for table in _DATA["errors"])
EXPERIMENTS = tuple(Experiment(**table) for table in _DATA["experiments"])


def has_same_rows(frame: pd.DataFrame) -> bool:
    """Tell whether rows are of all test rows of amazon-bow, so that `ERRORS` may stand beside them."""
    is_amazon = frame["corpus"] == "amazon-bow"
    return bool(
        len(frame) and (is_amazon & (frame["n_test"] == frame["target"].map(_DATA["test_rows"]))).all()
    )
