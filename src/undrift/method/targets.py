"""What is known of a target after a fit, as users see it: shares, error, readings, doubts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NotRequired, TypedDict

import numpy as np
import scipy.sparse as sp

from ..core import Rows, array_ops
from ..errors import count
from ..inputs import on_cluster
from .jury import Estimate, estimate, mix
from .problem import Label
from .scores import SourceScores, find_shift, measure_auc, shift_probabilities
from .settings import VoteSettings

_FEW_ROWS = 100  # of a target
_FEW_OF_A_CLASS = 5  # labelled rows
_MANY_EMPTY = 0.3  # share of a target's rows
_FAR_APART, _NOTHING_SHARED = 0.5, 0.95  # of a target's nonzero entries, in features without a label
_OTHER_SCALE = 2.0  # ratio of the lengths of rows
_SURE = 0.8  # probability that some row of a class has, where the class is there and known by its features
_LEAST_AUC = 0.65  # area under the ROC curve of held-out labelled rows
MUCH_DISAGREEMENT = 0.1  # share of rows on which readings of at least these votes differ from the jury
_SOME_VOTES = 0.1
_TORN, _LEAST_SPAN = 2.0, 0.02  # ratio and difference of the shares of one of several classes, by readings
MOST_STORIES = 4  # that are told
MOST_TOLD = 4  # classes that a doubt names


class ExpectedError(TypedDict):
    """Error to expect of a target's predictions, with a 90% interval; fractions."""

    error: float
    low: float
    high: float
    known: bool


class ClassFacts(TypedDict):
    """Expected share, precision and recall of a class; None where it is not predicted or not there."""

    share: float
    precision: float | None
    recall: float | None


class TargetFacts(TypedDict):
    """What is known of a target, as `targets_` has it."""

    shares: dict[Label, float]
    shares_interval: dict[Label, tuple[float, float]]
    expected_error: ExpectedError
    by_class: dict[Label, ClassFacts]
    confusion: list[list[float]]  # share of rows by true and predicted class
    warnings: NotRequired[list[str]]
    codes: NotRequired[list[str]]  # of the warnings
    teacher_noise: NotRequired[float | dict[str, float]]  # by name of several teachers


class ReadingFacts(TypedDict):
    """A reading of a target, as `readings_` has it."""

    name: str
    story: str
    weight: float
    shares: dict[Label, float]
    agreement: float  # share of rows on which it predicts as the jury does


Readings = Sequence[ReadingFacts]


def estimate_batch(
    p: np.ndarray, before: TargetFacts, settings: VoteSettings, *, is_balanced: bool
) -> tuple[np.ndarray, Estimate]:
    """Return the shift of log probabilities that a batch asks for, and its estimate; `p` are those before."""
    shift = find_shift(p, np.array(list(before["shares"].values())), settings.batch)
    none = np.zeros((0, p.shape[1])), np.zeros(0, dtype=int)
    return shift, estimate(shift_probabilities(p, shift), *none, settings, is_balanced=is_balanced)


def describe_target(classes: Sequence[Label], estimate: Estimate) -> TargetFacts:
    """Return the results of a target in the form of `targets_`, but for its doubts."""
    shares, intervals = estimate.shares.tolist(), estimate.shares_interval.tolist()
    predicted, right = estimate.confusion.sum(axis=0), estimate.confusion.diagonal()
    true = estimate.confusion.sum(axis=1)
    by_class: dict[Label, ClassFacts] = {
        label: {
            "share": shares[k],
            "precision": float(right[k] / predicted[k]) if predicted[k] > 0 else None,
            "recall": float(right[k] / true[k]) if true[k] > 0 else None,
        }
        for k, label in enumerate(classes)
    }
    return {
        "shares": dict(zip(classes, shares, strict=True)),
        "shares_interval": dict(zip(classes, map(tuple, intervals), strict=True)),
        "expected_error": {
            "error": estimate.error,
            "low": estimate.low,
            "high": estimate.high,
            "known": True,
        },
        "by_class": by_class,
        "confusion": estimate.confusion.tolist(),
    }


def list_readings(
    classes: Sequence[Label], names: Sequence[str], sentences: Sequence[str], votes: np.ndarray, p: np.ndarray
) -> list[ReadingFacts]:
    """Return the readings of a target in the form of `readings_`; `p` is (n_readings, n_rows, n_classes)."""
    guesses = mix(votes, p).argmax(axis=1)
    return [
        {
            "name": name,
            "story": sentence,
            "weight": float(weight),
            "shares": dict(zip(classes, each.mean(axis=0).tolist(), strict=True)),
            "agreement": float(np.mean(each.argmax(axis=1) == guesses)),
        }
        for name, sentence, weight, each in zip(names, sentences, votes, p, strict=True)
    ]


def list_heard(readings: Readings) -> list[ReadingFacts]:
    """Return the readings that have some votes, the heaviest first."""
    heard = [reading for reading in readings if reading["weight"] >= _SOME_VOTES]
    return sorted(heard, key=lambda reading: -reading["weight"])


def measure_disagreement(readings: Readings) -> float:
    """Return the largest share of rows on which a reading that is heard differs from all together."""
    return max((1 - reading["agreement"] for reading in list_heard(readings)), default=0.0)


def list_torn(readings: Readings) -> dict[Label, tuple[float, float]]:
    """Return those of several classes whose shares differ much by reading: class -> (least, most).

    A rare class may be torn where readings agree on nearly all rows. Of two classes either tells the other.
    """
    heard = list_heard(readings)
    if not heard or len(heard[0]["shares"]) == 2:
        return {}
    by_class = {label: [reading["shares"][label] for reading in heard] for label in heard[0]["shares"]}
    spans = {label: (min(shares), max(shares)) for label, shares in by_class.items()}
    return {
        label: (low, high)
        for label, (low, high) in spans.items()
        if high - low >= _LEAST_SPAN and high >= _TORN * low
    }


def is_open(readings: Readings) -> bool:
    """Tell whether readings differ on so many rows, or so much on a class, that labels should decide."""
    return measure_disagreement(readings) > MUCH_DISAGREEMENT or bool(list_torn(readings))


def describe_torn(readings: Readings) -> str:
    """Name the classes whose shares differ much by reading, with the least and the most."""
    torn = sorted(list_torn(readings).items(), key=lambda item: item[1][0] - item[1][1])
    return ", ".join(f"{label} ({low:.0%} to {high:.0%})" for label, (low, high) in torn[:MOST_TOLD])


@dataclass(frozen=True)
class Coverage:
    """How much of a target the labelled rows can speak of."""

    n_rows: int
    empty: float  # share of rows that are all zero
    unseen: float  # share of nonzero entries in features that no labelled row has
    length: float  # of rows that are not empty, the root mean square, over that of labelled rows


def measure_coverage(X: Rows, labelled: np.ndarray) -> Coverage:
    """Measure a target against the labelled rows, of which `labelled` are the `sum_rows`."""
    sums = sum_rows(X)
    unseen = sums[:-2][labelled[:-2] == 0].sum() / max(sums[:-2].sum(), 1)
    square, labelled_square = (each[-1] / max(each[-2], 1) for each in (sums, labelled))
    length = np.sqrt(square / labelled_square) if square and labelled_square else 1.0
    return Coverage(X.shape[0], float(1 - sums[-2] / max(X.shape[0], 1)), float(unseen), float(length))


def sum_rows(X: Rows) -> np.ndarray:
    """Count the rows in which each feature is not zero, then the rows that are not empty; sum the squares."""
    if on_cluster(X):
        return X.total(sum_rows)
    ops = array_ops(X)
    if sp.issparse(X):
        n_nonempty = len(np.unique(X.nonzero()[0]))
    else:
        n_nonempty = int(np.count_nonzero(ops.to_numpy(X.any(axis=1))))
    energy = float(ops.to_numpy(ops.column_energies(X)).sum())
    return np.append(ops.to_numpy(ops.nonzero_counts(X)).astype(float), [n_nonempty, energy])


def list_doubts(
    coverage: Coverage,
    source: SourceScores,
    classes: Sequence[Label],
    readings: Readings,
    p: np.ndarray,
) -> dict[str, str]:
    """Return what a user should know of the fit for one target, and what to do: text by code.

    `p` are the class probabilities of its rows, by all readings.
    """
    doubts = dict[str, str]()
    counts = np.bincount(source.codes, minlength=source.n_classes)
    if len(source.codes) >= _FEW_ROWS and (auc := measure_auc(source.scores, source.codes)) < _LEAST_AUC:
        doubts["not-learnable"] = (
            "labels can hardly be predicted even in the source: the area under the ROC curve of held-out "
            f"rows is {auc:.2f}, and 0.5 is chance; check the columns of text and labels"
        )
    rare = [repr(label) for label, n in zip(classes, counts, strict=True) if n < _FEW_OF_A_CLASS]
    if rare and len(source.codes) >= _FEW_ROWS:
        doubts["few-of-a-class"] = (
            f"few labelled rows are of {', '.join(rare)}: label {_FEW_OF_A_CLASS} at least, or merge classes"
        )
    unseen = [repr(label) for label, most in zip(classes, p.max(axis=0), strict=True) if most < _SURE]
    if unseen and len(classes) > 2 and coverage.n_rows >= _FEW_ROWS:
        rest = f" and {len(unseen) - MOST_TOLD:,} more" if len(unseen) > MOST_TOLD else ""
        doubts["class-unseen"] = (
            f"no row of the target is surely {', '.join(unseen[:MOST_TOLD])}{rest}: such a class may be "
            f"missing there, or look different (no probability reaches {_SURE:.0%}); label some of its rows"
        )
    if coverage.unseen > _NOTHING_SHARED:
        doubts["nothing-shared"] = (
            f"the domains share almost no vocabulary: {coverage.unseen:.0%} of the target's entries are "
            "features (words of a text) that no labelled row has; if they are in two languages, add a bridge "
            "(--bridge, or TextAdapter(bridge=True)), else label rows of an intermediate domain"
        )
    elif coverage.unseen > _FAR_APART:
        doubts["far-apart"] = (
            f"{coverage.unseen:.0%} of the target's entries are features (words of a text) that no labelled "
            "row has: add rows of an intermediate domain, labelled or not"
        )
    if not 1 / _OTHER_SCALE <= coverage.length <= _OTHER_SCALE:
        doubts["other-scale"] = (
            f"rows of the target are {coverage.length:.2g} times as long as labelled ones: scale all rows to "
            "one length before (sklearn.preprocessing.normalize)"
        )
    if coverage.n_rows < _FEW_ROWS:
        doubts["few-rows"] = (
            f"the target has {count(coverage.n_rows, 'row')}, too few to learn which features occur together "
            f"({_FEW_ROWS} are better): add unlabelled rows"
        )
    if coverage.empty > _MANY_EMPTY:
        doubts["empty-rows"] = (
            f"{coverage.empty:.0%} of the target's rows are empty, and get one label: check or remove them"
        )
    if is_open(readings):
        rows = f"differ on up to {measure_disagreement(readings):.0%} of its rows"
        torn = describe_torn(readings)
        shares = f", and on the share of {torn}" if torn else ""
        doubts["readings-differ"] = (
            f"readings of the target {rows}{shares}: label five rows that decide between them, or give the "
            "class shares if you know them"
        )
    return doubts
