"""How predictions are scored, in numbers and words: the baseline, errors, gains, chance, class shares."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy import stats
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.svm import LinearSVC

from .errors import write_shares
from .inputs import spell_label
from .method import ExpectedError, ReadingFacts, Readings

MOST_LABELS = 10  # that a line names
WIDE_INTERVAL = 0.3  # of a share: from here on its middle says little
MOST_TOLD = 5  # classes that a story names
OTHER_LABELS = "labels that the source lacks"


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
    return [float(end[0]) for end in bound_shares(np.array([error]), np.array([n]))]


def bound_shares(share: np.ndarray, n: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the ends of the 95% intervals of shares measured on n rows each, by Wilson's method."""
    z2 = stats.norm.ppf(0.975) ** 2
    middle = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = np.sqrt(z2 * (share * (1 - share) / n + z2 / (4 * n**2))) / (1 + z2 / n)
    return np.maximum(middle - half, 0.0), np.minimum(middle + half, 1.0)


def gain_interval(corrected: float, spoilt: float, n: float) -> list[float]:
    """Return the 95% interval of the gain of one model over another on n rows (Agresti and Min, 2005).

    `corrected` and `spoilt` are the shares of rows on which only the second, or only the first, is right.
    """
    differing = (n * (corrected + spoilt) + 1) / (n + 2)
    middle = n * (corrected - spoilt) / (n + 2)
    half = stats.norm.ppf(0.975) * np.sqrt((differing - middle**2) / (n + 2))
    return [max(float(middle - half), -1.0), min(float(middle + half), 1.0)]


def measure_gain(before: np.ndarray, after: np.ndarray, weight: np.ndarray) -> dict[str, float]:
    """Return the gain of one model over another, with its 95% interval, by their mistakes on equal rows."""
    outcomes = before & ~after, after & ~before
    corrected, spoilt = (float(np.average(rows, weights=weight)) for rows in outcomes)
    low, high = gain_interval(corrected, spoilt, count_effective(weight))
    return {"gain": corrected - spoilt, "low": low, "high": high}


def describe_gain(gain: Mapping[str, float]) -> str:
    """Say what labels changed; neither "lowered" nor "raised" where the interval contains 0."""
    middle, low, high = (100 * gain[name] for name in ("gain", "low", "high"))
    if low > 0:
        return f"The labels lowered the error by {middle:.1f} points ({low:.1f} to {high:.1f})."
    if high < 0:
        return f"The labels raised the error by {-middle:.1f} points ({-high:.1f} to {-low:.1f})."
    return f"Whether the labels lowered the error is not certain: by {low:.1f} to {high:.1f} points."


def measure_error(is_wrong: np.ndarray, weight: np.ndarray) -> dict[str, float]:
    """Return the weighted share of mistakes, with its 95% interval.

    Rows of unequal weight count as fewer rows: the effective number is the smaller of Kish's formula and the
    number that the variance of the weighted mean implies. The page's script does the same.
    """
    p = float(np.average(is_wrong, weights=weight))
    variance = float(np.sum((weight * (is_wrong - p)) ** 2) / weight.sum() ** 2)
    n = count_effective(weight)
    low, high = error_interval(p, min(n, p * (1 - p) / variance) if variance > 0 else n)
    return {"error": p, "low": low, "high": high}


def confuse(P: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Return for every true class and predicted class the share of rows that have both.

    `P` holds a row's probability of every true class: 0 or 1 times its weight where the class is known.
    `codes` are predictions, as positions among the first classes of `P`.
    """
    is_predicted = codes[:, None] == np.arange(P.shape[1])
    return (P.T @ is_predicted) / (P.sum() or 1.0)


def rate_classes(confusion: np.ndarray, classes: Sequence[str]) -> dict[str, dict[str, float | None]]:
    """Return the share, precision and recall of every class, None where it has no row to count.

    A class beyond `classes` is of labels that cannot be predicted.
    """
    hits, predicted, true = np.diag(confusion), confusion.sum(axis=0), confusion.sum(axis=1)
    return {
        label: {
            "share": float(true[k]),
            "precision": float(hits[k] / predicted[k]) if predicted[k] else None,
            "recall": float(hits[k] / true[k]) if true[k] else None,
        }
        for k, label in enumerate(classes)
    }


def measure_classes(
    truth: np.ndarray, codes: np.ndarray, weight: np.ndarray, classes: Sequence[str]
) -> dict[str, dict[str, Any]]:
    """Measure share, precision and recall of every class on labelled rows, with 95% intervals.

    `truth` and `codes` are positions among the classes; a true one beyond them cannot be predicted.
    """
    rates: dict[str, dict[str, Any]] = dict(
        rate_classes(confuse_labels(truth, codes, weight, classes), classes)
    )
    for k, (label, found) in enumerate(rates.items()):
        for name, of in (("precision", codes == k), ("recall", truth == k)):
            found[f"{name}_interval"] = None
            if found[name] is not None:
                found[f"{name}_interval"] = error_interval(found[name], count_effective(weight[of]))
        rates[label] = {"n": int((truth == k).sum()), **found}
    return rates


def confuse_labels(
    truth: np.ndarray, codes: np.ndarray, weight: np.ndarray, classes: Sequence[str]
) -> np.ndarray:
    """Return the shares of labelled rows by true and predicted class, as `confuse` does."""
    known = (truth[:, None] == np.arange(len(classes) + 1)) * weight[:, None]
    return confuse(known, codes)


def count_effective(weight: np.ndarray) -> float:
    """Return how many rows of equal weight tell as much, by Kish's formula."""
    return float(weight.sum() ** 2 / np.sum(weight**2))


def list_mistakes(confusion: np.ndarray, classes: Sequence[str], most: int) -> list[dict[str, Any]]:
    """List the most frequent mistakes: the true class, the predicted one, and their share of all rows."""
    names, wrong = [*classes, OTHER_LABELS], confusion.copy()
    np.fill_diagonal(wrong, 0)
    order = np.argsort(-wrong, axis=None, kind="stable")[:most]
    places = [divmod(place, wrong.shape[1]) for place in order.tolist()]
    return [
        {"truth": names[i], "predicted": names[j], "share": float(wrong[i, j])}
        for i, j in places
        if wrong[i, j] > 0
    ]


def measure_margins(P: np.ndarray) -> np.ndarray:
    """Return by how much the probability of the first class of every row exceeds that of the second.

    The rows with the smallest margins are the doubtful ones.
    """
    second, first = np.partition(P, -2, axis=1)[:, -2:].T
    return first - second


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
    """Return what is known of a target: class shares, the expected error, whole and by class, readings."""
    known = classifier.targets_[target]
    shares, intervals, by_class = known["shares"], known["shares_interval"], known.get("by_class")
    return {
        "target_shares": shares and {spell_label(label): float(share) for label, share in shares.items()},
        "target_shares_interval": intervals
        and {spell_label(label): [float(end) for end in ends] for label, ends in intervals.items()},
        "expected_error": known["expected_error"],
        "by_class": by_class and {spell_label(label): dict(rates) for label, rates in by_class.items()},
        "readings": spell_readings(getattr(classifier, "readings_", {}).get(target, [])),
    }


def spell_readings(readings: Readings) -> list[ReadingFacts]:
    """Return the readings of a target, ready for JSON."""
    return [
        {**reading, "shares": {spell_label(label): share for label, share in reading["shares"].items()}}
        for reading in readings
    ]


def describe_expected(expected: ExpectedError | Mapping[str, Any] | None, when: str = "expected") -> str:
    """Say how many predictions are expected to be wrong, or how much can be said of it."""
    if expected is None:
        return "how many predictions are wrong cannot be said without labels"
    low, high = f"{expected['low']:.0%}", f"{expected['high']:.0%}"
    if expected["error"] is None:
        return (
            f"how many are wrong is not known, {low} to {high}: label about 30 rows (undrift label) to know"
        )
    return f"about {expected['error']:.0%} wrong (90% interval {low} to {high}), {when}"


def pick_shares(readings: Readings) -> list[dict[Any, float]]:
    """Return of every reading the shares of the same few classes: those on which the readings differ most."""
    shares = [reading["shares"] for reading in readings]
    labels = list(shares[0]) if shares else []
    spans = {label: np.ptp([mix[label] for mix in shares]) for label in labels}
    widest = sorted(labels, key=lambda label: -spans[label])[:MOST_TOLD]
    return [{label: mix[label] for label in labels if label in widest} for mix in shares]


def write_class(label: Any) -> str:
    """Write a label before its number; one that ends in a digit gets a colon."""
    name = str(label)
    return f"{name}:" if name[-1:].isdigit() else name


def pick_frequent(shares: Mapping[Any, float]) -> list[Any]:
    """Return the classes that a line or a table names: the most frequent ones, in their order."""
    most = sorted(shares, key=lambda label: -shares[label])[:MOST_LABELS]
    return [label for label in shares if label in most]


def write_share(share: float, interval: Sequence[float] | None) -> str:
    """Write a class share with its interval, if it has one; a wide interval without its middle.

    Share and ends are rounded alike, so that the share lies between them.
    """
    if interval is None:
        return f"{share:.1%}"
    low, high = interval
    digits = int(high - low < 0.02)  # the ends of a narrow one would be equal
    between = f"{low:.{digits}%} to {high:.{digits}%}"
    is_wide = high - low >= WIDE_INTERVAL
    return between if is_wide else f"{min(max(share, low), high):.{digits}%} ({between})"


def list_shares(shares: Mapping[Any, float], interval: Mapping[Any, Any] | None = None) -> str:
    """Write class shares in words, those of the ten most frequent classes at most."""
    written = dict(zip(shares, write_shares(shares.values()), strict=True))
    if interval is not None:
        written = {label: write_share(share, interval[label]) for label, share in shares.items()}
    told = pick_frequent(shares)
    rest = [f"{len(shares) - len(told):,} more"] if len(shares) > len(told) else []
    return ", ".join([*(f"{write_class(label)} {written[label]}" for label in told), *rest])
