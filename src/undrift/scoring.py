"""How predictions are scored, in numbers and words: the baseline, errors, gains, chance, class shares."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from scipy import stats
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.svm import LinearSVC

from .errors import write_shares
from .inputs import spell_label

MOST_LABELS = 10  # that a line names
WIDE_INTERVAL = 0.3  # of a share: from here on its middle says little


def linear_svm(*, n_folds: int = 5, random_state: Any = None) -> GridSearchCV:
    """Build a linear SVM that chooses C by cross-validation on its training rows.

    C runs over ten values between 1e-4 and 3, logarithmically: the best for tf-idf rows and for raw counts
    both lie within.
    """
    svm = LinearSVC(dual="auto", random_state=random_state, max_iter=5000)
    folds = StratifiedKFold(n_folds, shuffle=True, random_state=random_state)
    return GridSearchCV(svm, {"C": np.logspace(-4, 0.5, 10)}, cv=folds)


def fitted_svm(X: Any, y: np.ndarray) -> Any:
    """Fit `linear_svm` with as many folds, up to five, as the smallest class has rows; one leaves C at 1."""
    smallest = min(Counter(y.tolist()).values())
    if smallest == 1:
        return LinearSVC(random_state=0).fit(X, y)
    return linear_svm(n_folds=min(5, smallest), random_state=0).fit(X, y)


def error_interval(error: float, n: float) -> list[float]:
    """Return the 95% interval of an error on n rows, by Wilson's method; n need not be whole."""
    z2 = stats.norm.ppf(0.975) ** 2
    middle = (error + z2 / (2 * n)) / (1 + z2 / n)
    half = np.sqrt(z2 * (error * (1 - error) / n + z2 / (4 * n**2))) / (1 + z2 / n)
    return [max(float(middle - half), 0.0), min(float(middle + half), 1.0)]


def gain_interval(corrected: float, spoilt: float, n: float) -> list[float]:
    """Return the 95% interval of the gain of one model over another on n rows (Agresti and Min, 2005).

    `corrected` and `spoilt` are the shares of rows on which only the second, or only the first, is right.
    """
    differing = (n * (corrected + spoilt) + 1) / (n + 2)
    middle = n * (corrected - spoilt) / (n + 2)
    half = stats.norm.ppf(0.975) * np.sqrt((differing - middle**2) / (n + 2))
    return [max(float(middle - half), -1.0), min(float(middle + half), 1.0)]


def measure_error(is_wrong: np.ndarray, weight: np.ndarray) -> dict[str, float]:
    """Return the weighted share of mistakes, with its 95% interval.

    Rows of unequal weight count as fewer rows: the effective number is the smaller of Kish's formula and the
    number that the variance of the weighted mean implies. The page's script does the same.
    """
    p = float(np.average(is_wrong, weights=weight))
    variance = float(np.sum((weight * (is_wrong - p)) ** 2) / weight.sum() ** 2)
    n = float(weight.sum() ** 2 / np.sum(weight**2))
    low, high = error_interval(p, min(n, p * (1 - p) / variance) if variance > 0 else n)
    return {"error": p, "low": low, "high": high}


def find_chance(target: dict[str, Any]) -> dict[str, Any] | None:
    """Return the one answer that is best for all rows of a target, and its error: no more than chance.

    The class shares are those of its labelled rows, else the estimated ones. None where one answer is right
    for all rows, and where all classes count alike (`border` "balanced").
    """
    shares = target.get("labelled_shares") or target.get("target_shares")
    if not shares or max(shares.values()) > 1 - 1e-9 or target.get("border") == "balanced":
        return None
    label = max(shares, key=lambda name: shares[name])
    return {"label": label, "error": 1 - shares[label]}


def is_no_better(error: float, chance: dict[str, Any]) -> bool:
    """Tell whether predictions with this error are no better than one answer for all rows."""
    return bool(error > chance["error"] - 1e-9)  # rounding is no gain


def describe_shares(classifier: Any, target: Any) -> dict[str, Any]:
    """Return the class shares of a target, their intervals and its expected error, ready for JSON."""
    known = classifier.targets_[target]
    shares, intervals = known["shares"], known["shares_interval"]
    return {
        "target_shares": shares and {spell_label(label): float(share) for label, share in shares.items()},
        "target_shares_interval": intervals
        and {spell_label(label): [float(end) for end in ends] for label, ends in intervals.items()},
        "expected_error": known["expected_error"],
    }


def describe_expected(expected: dict[str, Any] | None, when: str = "expected") -> str:
    """Say how many predictions are expected to be wrong, or how much can be said of it."""
    if expected is None:
        return "how many predictions are wrong cannot be said without labels"
    low, high = f"{expected['low']:.0%}", f"{expected['high']:.0%}"
    if expected["error"] is None:
        return (
            f"how many are wrong is not known, {low} to {high}: label about 30 rows (undrift label) to know"
        )
    return f"about {expected['error']:.0%} wrong (90% interval {low} to {high}), {when}"


def write_class(label: Any) -> str:
    """Write a label before its number; one that ends in a digit gets a colon."""
    name = str(label)
    return f"{name}:" if name[-1:].isdigit() else name


def list_shares(shares: dict[Any, float], interval: dict[Any, Any] | None = None) -> str:
    """Write class shares in words, those of ten classes at most; a wide interval without its middle."""
    parts = []
    for label, share in list(zip(shares, write_shares(shares.values()), strict=True))[:MOST_LABELS]:
        low, high = interval[label] if interval is not None else (0.0, 0.0)
        digits = int(high - low < 0.02)  # the ends of a narrow one would be equal
        between = f"{low:.{digits}%} to {high:.{digits}%}"
        if interval is None:
            parts.append(f"{write_class(label)} {share}")
        elif high - low >= WIDE_INTERVAL:
            parts.append(f"{write_class(label)} uncertain, {between}")
        else:
            parts.append(f"{write_class(label)} {share} ({between})")
    return ", ".join([*parts, *([f"{len(shares) - len(parts):,} more"] if len(shares) > MOST_LABELS else [])])
