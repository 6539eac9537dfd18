"""Class shares of the targets and the error to expect there: what a fit estimates without a target label."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._inputs import spell_label
from .inputs import DomainRows, Evidence


def describe_target(evidence: Evidence, target: DomainRows) -> dict[str, Any]:
    """Return a target's class shares, predicted and estimated (or given), and the error to expect.

    The keys are those of ``undrift adapt --json``; None where the fit did not estimate.
    """
    classifier = evidence.classifier
    numbers = [number for number in classifier.domains_ if number < 0]
    k = numbers.index(target.number) if target.number in numbers else None
    shares, interval, expected = (
        None if k is None else values[k]
        for values in (
            classifier.target_shares_,
            classifier.target_shares_interval_,
            classifier.expected_error_,
        )
    )
    codes = evidence.adapted_codes[target.number]
    predicted = np.bincount(codes, minlength=len(evidence.classes)) / max(len(codes), 1)
    return {
        "predicted_shares": dict(zip(evidence.classes, predicted.tolist(), strict=True)),
        "target_shares": shares and {spell_label(label): float(share) for label, share in shares.items()},
        "target_shares_interval": interval
        and {spell_label(label): [float(low), float(high)] for label, (low, high) in interval.items()},
        "are_shares_given": shares is not None and classifier.target_shares is not None,
        "expected_error": expected and {name: float(value) for name, value in expected.items()},
    }


def pool_expected_errors(evidence: Evidence) -> dict[str, float] | None:
    """Return the expected error of all targets together, weighted by rows; None where one has none.

    The ends of the interval are weighted alike: what makes one target's estimate wrong is likely to make the
    others' wrong in the same direction.
    """
    expected = [describe_target(evidence, target)["expected_error"] for target in evidence.targets]
    n_rows = np.array([target.n_rows or len(target) for target in evidence.targets], dtype=float)
    if not expected or None in expected:
        return None
    weight = n_rows / n_rows.sum() if n_rows.sum() else np.full(len(n_rows), 1 / len(n_rows))
    return {name: float(weight @ [entry[name] for entry in expected]) for name in ("error", "low", "high")}


def pool_shares(evidence: Evidence) -> dict[str, float] | None:
    """Return the class shares of all targets together, weighted by rows; None where one has none."""
    shares = [describe_target(evidence, target)["target_shares"] for target in evidence.targets]
    if not shares or None in shares:
        return None
    n_rows = [target.n_rows or len(target) for target in evidence.targets]
    total = sum(n_rows) or 1
    return {
        label: sum(n * each[label] for n, each in zip(n_rows, shares, strict=True)) / total
        for label in shares[0]
    }


def find_share_doubt(evidence: Evidence) -> str | None:
    """Return the reason why class shares are uncertain, with what to do; None where they are not."""
    caution = evidence.classifier.caution_ or {}
    reasons = dict(zip(caution.get("codes", []), caution.get("reasons", []), strict=False))
    return None if evidence.fell_back else reasons.get("uncertain-shares")


def write_percent(share: float, size: float | None = None) -> str:
    """Write a share in whole per cent; with one decimal where it, or the `size` beside it, is below 10%."""
    return f"{share:.{int((share if size is None else size) < 0.0995)}%}"


def write_estimate(share: float, low: float, high: float) -> tuple[str, str]:
    """Write a share, and the ends of its interval with as many digits."""
    return write_percent(share), f"{write_percent(low, share)} to {write_percent(high, share)}"


def headline_expected_error(expected: dict[str, float]) -> str:
    """Say what error to expect, with its interval."""
    error, interval = write_estimate(expected["error"], expected["low"], expected["high"])
    return f"About {error} of these predictions are expected to be wrong (90% interval {interval})."


def most_frequent(card: dict[str, Any]) -> dict[str, Any] | None:
    """Return the most frequent class of a target by its estimated shares, and whether it clearly is."""
    shares, intervals = card["target_shares"], card["target_shares_interval"]
    if not shares:
        return None
    label = max(shares, key=shares.get)
    others = [high for other, (_, high) in intervals.items() if other != label]
    low, high = intervals[label]
    is_clear = shares[label] > max((share for other, share in shares.items() if other != label), default=0)
    return {
        "label": label,
        "share": shares[label],
        "low": low,
        "high": high,
        "is_clear": is_clear and low >= max(others, default=0.0),
    }
