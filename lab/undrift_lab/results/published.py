"""Numbers that others have published, read from `published.toml`, to be laid beside ours."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

_DATA = tomllib.loads(Path(__file__).with_name("published.toml").read_text(encoding="utf-8"))
N_TASKS = {"small": 12, "dimensions": 12, "full": 380}  # of the plans that the statements are about
HIGH_DIMENSION = 30_000  # features, of the paper's times in section 5


@dataclass(frozen=True)
class Series:
    """Transfer errors by task, from a table of accuracies; `method` is the one of ours that does the same."""

    label: str
    reference: str
    protocol: str
    test_rows: str  # whether they are among the unlabelled rows: "seen", "unseen" or "not stated"
    errors: dict[str, float]
    method: str | None = None

    @property
    def mean(self) -> float:
        """Mean transfer error."""
        return sum(self.errors.values()) / len(self.errors)


@dataclass(frozen=True)
class Statement:
    """What the paper's text says of a quantity that we measure too."""

    text: str
    value: str
    plan: str
    method: str
    measure: str
    than: str | None = None
    seconds: float | None = None


def _read_series(accuracies: list[float], **about: str) -> Series:
    errors = [round(1 - accuracy / 100, 4) for accuracy in accuracies]
    return Series(errors=dict(zip(_DATA["tasks"], errors, strict=True)), **about)


# tasks of amazon-bow, tested on the rows that ours are tested on
AMAZON = tuple(_read_series(**table) for table in _DATA["series"])
SAME_ROWS = AMAZON[0].protocol  # the same rows to learn from, too
PAPER = tuple(Statement(**table) for table in _DATA["statements"])


def has_same_rows(frame: pd.DataFrame) -> bool:
    """Tell whether rows are of all test rows of amazon-bow, so that `AMAZON` may stand beside them."""
    is_amazon = frame["corpus"] == "amazon-bow"
    return bool(
        len(frame) and (is_amazon & (frame["n_test"] == frame["target"].map(_DATA["test_rows"]))).all()
    )
