"""Errors of every class: share, precision and recall, and what is taken for what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..results import (
    Mistake,
    Rates,
    confuse,
    confuse_labels,
    list_mistakes,
    measure_classes,
    rate_classes,
)
from .data import PredictedRows, ReportData

MOST_MISTAKES = 12  # pairs of classes that are listed
DIGITS = 5


@dataclass(frozen=True)
class ClassErrors:
    """Errors of a target by class: expected, and measured where there are labels."""

    name: str
    n_labelled: int
    predicted: Sequence[int]  # rows of every class
    expected: Mapping[str, Mapping[str, object]]
    measured: Mapping[str, Rates] | None
    confusion: Mapping[str, list[list[float]] | None]  # shares of rows, expected and measured
    basis: str  # expected or measured
    mistakes: Sequence[Mistake]


def describe_classes(given: ReportData) -> list[ClassErrors]:
    """Describe the errors of every target by class: expected, and measured where there are labels."""
    return [_describe_target(given, target) for target in given.targets]


def _describe_target(given: ReportData, target: PredictedRows) -> ClassErrors:
    """Describe one target: rates of every class, and shares of rows by true and predicted class."""
    classes, known, about = given.classes, target.is_scored, given.known_of(target)
    expected = confuse(target.P, target.codes)
    measured = rates = None
    if known.any():
        labelled = target.truth[known], target.codes[known], target.weight[known]
        measured, rates = confuse_labels(*labelled, classes), measure_classes(*labelled, classes)
    shown = expected if measured is None else measured
    return ClassErrors(
        name=target.rows.name,
        n_labelled=int(known.sum()),
        predicted=[int(n) for n in np.bincount(target.codes, minlength=len(classes))],
        expected=about.by_class if about else rate_classes(expected, classes),
        measured=rates,
        confusion={
            "expected": expected.round(DIGITS).tolist(),
            "measured": None if measured is None else measured.round(DIGITS).tolist(),
        },
        basis="expected" if measured is None else "measured",
        mistakes=list_mistakes(shown, classes, MOST_MISTAKES),
    )
