"""Errors of every class: share, precision and recall, and what is taken for what."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..scoring import confuse, confuse_labels, list_mistakes, measure_classes, rate_classes
from .data import ReportData, Target

MOST_MISTAKES = 12  # pairs of classes that are listed
DIGITS = 5


def describe_classes(given: ReportData) -> list[dict[str, Any]]:
    """Describe the errors of every target by class: expected, and measured where there are labels."""
    return [_describe_target(given, target) for target in given.targets]


def _describe_target(given: ReportData, target: Target) -> dict[str, Any]:
    """Describe one target: rates of every class, and shares of rows by true and predicted class."""
    classes, known = given.classes, target.is_scored
    expected = confuse(target.P, target.codes)
    measured = rates = None
    if known.any():
        labelled = target.truth[known], target.codes[known], target.weight[known]
        measured, rates = confuse_labels(*labelled, classes), measure_classes(*labelled, classes)
    shown = expected if measured is None else measured
    return {
        "name": target.rows.name,
        "n_labelled": int(known.sum()),
        "predicted": [int(n) for n in np.bincount(target.codes, minlength=len(classes))],
        "expected": given.estimates_of(target)["by_class"] or rate_classes(expected, classes),
        "measured": rates,
        "confusion": {
            "expected": expected.round(DIGITS).tolist(),
            "measured": None if measured is None else measured.round(DIGITS).tolist(),
        },
        "basis": "expected" if measured is None else "measured",
        "mistakes": list_mistakes(shown, classes, MOST_MISTAKES),
    }
