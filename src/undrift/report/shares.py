"""Class shares of the targets and the error to expect there: what a fit estimates without a target label."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._inputs import spell_label
from ..jobs import error_interval
from .inputs import DomainRows, Evidence


def describe_target(evidence: Evidence, target: DomainRows) -> dict[str, Any]:
    """Return a target's class shares, predicted and estimated (or given), and the error to expect.

    The keys are those of ``undrift adapt --json``; None where the fit did not estimate.
    """
    classifier, codes = evidence.classifier, evidence.adapted_codes[target.number]
    numbers = [number for number in classifier.domains_ if number < 0]
    k = numbers.index(target.number) if target.number in numbers else None
    fitted = (classifier.target_shares_, classifier.target_shares_interval_, classifier.expected_error_)
    shares, intervals, expected = ({} if k is None else dict(values[k] or {}) for values in fitted)
    predicted = np.bincount(codes, minlength=len(evidence.classes)) / max(len(codes), 1)
    return {
        "predicted_shares": dict(zip(evidence.classes, predicted.tolist(), strict=True)),
        "target_shares": {spell_label(label): float(share) for label, share in shares.items()} or None,
        "target_shares_interval": {
            spell_label(label): list(map(float, ends)) for label, ends in intervals.items()
        }
        or None,
        "labelled_shares": _labelled_shares(evidence, target),
        "are_shares_given": bool(shares) and classifier.target_shares is not None,
        "expected_error": {name: float(value) for name, value in expected.items()} or None,
    }


def _labelled_shares(evidence: Evidence, target: DomainRows) -> dict[str, float] | None:
    """Return the class shares of a target's scored rows, by their weights; None where there are none."""
    truth, weight = evidence.truth[target.number], evidence.weight_of(target)
    known, n_classes = truth >= 0, len(evidence.classes)
    sums = np.bincount(truth[known], weight[known], n_classes + 1)  # the last: labels that the source lacks
    if not sums[:-1].sum():
        return None
    return dict(zip(evidence.classes, (sums[:-1] / sums.sum()).tolist(), strict=True))


def pool_targets(evidence: Evidence, key: str) -> dict[str, float] | None:
    """Return the class shares or the expected error of all targets together; None where one has none.

    Targets are weighted by their rows, labelled shares by the labelled ones. The ends of an interval are
    weighted alike: what makes one target's estimate wrong is likely to make the others' wrong in the same
    direction.
    """
    values = [describe_target(evidence, target)[key] for target in evidence.targets]
    if not values or None in values:
        return None
    n_rows = [float(target.n_rows or len(target)) for target in evidence.targets]
    if key == "labelled_shares":
        n_rows = [evidence.weight_of(t)[evidence.truth[t.number] >= 0].sum() for t in evidence.targets]
    weight = np.array(n_rows) / sum(n_rows)
    return {name: float(weight @ [each[name] for each in values]) for name in values[0]}


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


def most_frequent(card: dict[str, Any]) -> dict[str, Any] | None:
    """Return the most frequent class of a target by its estimated shares, and whether it clearly is."""
    shares, intervals = card["target_shares"], card["target_shares_interval"]
    if not shares:
        return None
    label = max(shares, key=shares.get)
    low, high = intervals[label]
    others = [(shares[other], intervals[other][1]) for other in shares if other != label]
    is_clear = all(shares[label] > share and low > end + 0.01 for share, end in others)
    return {"label": label, "share": shares[label], "low": low, "high": high, "is_clear": is_clear}


def most_labelled(card: dict[str, Any]) -> dict[str, Any]:
    """Return the most frequent class of a target's labelled rows, and whether it clearly is, by 95%."""
    (label, share), *others = sorted(card["labelled_shares"].items(), key=lambda item: -item[1])
    low, _ = error_interval(share, card["n_labelled"])
    is_clear = all(low > error_interval(other, card["n_labelled"])[1] for _, other in others)
    return {"label": label, "share": share, "is_clear": is_clear}
