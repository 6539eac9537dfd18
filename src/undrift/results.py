"""Results, in numbers and in words: how many predictions are wrong, measured or expected, and of which class.

Terminal, report, label page and JSON take them from here. Labels are text, in one spelling.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, replace
from typing import TypeAlias, TypeVar

import numpy as np
from scipy import stats
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.svm import LinearSVC

from .core import Rows
from .errors import write_shares
from .inputs import spell_label
from .method import (
    MOST_STORIES,
    MUCH_DISAGREEMENT,
    ExpectedError,
    Name,
    Predictor,
    ReadingFacts,
    Readings,
    describe_torn,
    is_open,
    list_heard,
    measure_disagreement,
)

MOST_LABELS = 10  # that a line names
WIDE_INTERVAL = 0.3  # of a share: from here on its middle says little
MOST_TOLD = 5  # classes that a story names
OTHER_LABELS = "labels that the source lacks"
DRIFTS = {  # what a check of new rows says
    "unseen_terms": "{batch:.0%} of the terms of a row are unknown to the model; {fit:.0%} were in the fit",
    "difference": "the words are not those of the fit: {batch:.0%} of the rows lie beyond its median; 50% "
    "would without drift",
}

Label: TypeAlias = str | int | float | bool  # of a file; None stands for a row without one
Baseline: TypeAlias = LinearSVC | GridSearchCV
Rates: TypeAlias = dict[str, float | list[float] | None]  # of a class: share, precision and recall
Key = TypeVar("Key")
Value = TypeVar("Value")


@dataclass(frozen=True)
class Score:
    """How many predictions are wrong, with an interval: of 95% if measured, of 90% if expected."""

    error: float
    low: float
    high: float
    n_rows: int = 0  # labelled rows that measured it; 0 if it is expected

    @classmethod
    def expect(cls, said: ExpectedError) -> Score:
        """Return the expected error that `targets_` has of a target."""
        return cls(said["error"], said["low"], said["high"])

    @classmethod
    def measure(cls, is_wrong: np.ndarray, weight: np.ndarray) -> Score:
        """Measure the weighted share of mistakes."""
        return Comparison.count(is_wrong, is_wrong, weight).after

    def say(self) -> str:
        """Say the error with its interval."""
        if not self.n_rows:
            return f"about {self.error:.0%} wrong (90% interval {self.low:.0%} to {self.high:.0%})"
        return f"{self.error:.1%} wrong (95% interval {self.low:.1%} to {self.high:.1%})"

    def to_dict(self) -> dict[str, float]:
        """Return the error and the ends of its interval, ready for JSON."""
        return {"error": self.error, "low": self.low, "high": self.high}


@dataclass(frozen=True)
class Gain:
    """By how much one model errs less than another on the same rows, with a 95% interval."""

    gain: float
    low: float
    high: float

    @property
    def answer(self) -> str:
        """Tell whether the second is better: "yes", "no" or, where these rows cannot tell, "unclear"."""
        return "yes" if self.low > 0 else "no" if self.high < 0 else "unclear"

    def say(self) -> str:
        """Say what labels changed; neither "lowered" nor "raised" where the interval contains 0."""
        middle, low, high = (100 * points for points in (self.gain, self.low, self.high))
        if self.answer == "yes":
            return f"The labels lowered the error by {middle:.1f} points ({low:.1f} to {high:.1f})."
        if self.answer == "no":
            return f"The labels raised the error by {-middle:.1f} points ({-high:.1f} to {-low:.1f})."
        return f"Whether the labels lowered the error is not certain: by {low:.1f} to {high:.1f} points."


@dataclass(frozen=True)
class Comparison:
    """Mistakes of two models on the same labelled rows, as sums: those of other rows are added by `+`.

    The first model comes before: the baseline, or the model before any label.
    """

    n_rows: int = 0
    weight: float = 0.0  # of the rows
    squares: float = 0.0  # of their weights
    wrong_before: float = 0.0  # weight of the first model's mistakes
    squares_before: float = 0.0  # of these weights
    wrong_after: float = 0.0  # of the second model's
    squares_after: float = 0.0
    wrong_both: float = 0.0
    n_corrected: int = 0  # rows that the second model alone has right
    n_spoilt: int = 0
    distance_before: float = 0.0  # sums of distances from the label, NaN where labels are no numbers
    distance_after: float = 0.0

    @classmethod
    def count(cls, before: np.ndarray, after: np.ndarray, weight: np.ndarray) -> Comparison:
        """Sum the mistakes of rows: `before` and `after` tell which predictions are wrong."""
        squares = weight**2
        return cls(
            n_rows=len(before),
            weight=float(weight.sum()),
            squares=float(squares.sum()),
            wrong_before=float(weight @ before),
            squares_before=float(squares @ before),
            wrong_after=float(weight @ after),
            squares_after=float(squares @ after),
            wrong_both=float(weight @ (before & after)),
            n_corrected=int((before & ~after).sum()),
            n_spoilt=int((after & ~before).sum()),
            distance_before=np.nan,
            distance_after=np.nan,
        )

    @classmethod
    def of_labels(
        cls, truth: Sequence[Label], weight: np.ndarray, before: Sequence[Label], after: Sequence[Label]
    ) -> Comparison:
        """Compare two models' labels of rows with the true ones: 1, 1.0 and "1" are the same."""
        spelt, first, second = (np.array([*map(spell_label, each)]) for each in (truth, before, after))
        values, *guessed = (np.array([*map(_read_number, each)]) for each in (truth, before, after))
        distances = [float(weight @ np.abs(each - values)) for each in guessed]
        compared = cls.count(first != spelt, second != spelt, weight)
        return replace(compared, distance_before=distances[0], distance_after=distances[1])

    def __add__(self, other: Comparison) -> Comparison:
        """Return the sums over the rows of both."""
        return Comparison(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))

    @property
    def n_effective(self) -> float:
        """How many rows of equal weight tell as much, by Kish's formula."""
        return self.weight**2 / self.squares

    @property
    def before(self) -> Score:
        """The first model's error."""
        return self._score(self.wrong_before, self.squares_before)

    @property
    def after(self) -> Score:
        """The second model's error."""
        return self._score(self.wrong_after, self.squares_after)

    def _score(self, wrong: float, wrong_squares: float) -> Score:
        """Return an error with its interval; nothing else measures one.

        Rows of unequal weight count as fewer rows: the effective number is the smaller of Kish's formula and
        the number that the variance of the weighted mean implies. The page's script does the same.
        """
        p, n = wrong / self.weight, self.n_effective
        variance = (wrong_squares * (1 - p) ** 2 + (self.squares - wrong_squares) * p**2) / self.weight**2
        low, high = error_interval(p, min(n, p * (1 - p) / variance) if variance > 0 else n)
        return Score(p, low, high, self.n_rows)

    @property
    def gain(self) -> Gain:
        """By how much the second model errs less."""
        corrected = (self.wrong_before - self.wrong_both) / self.weight
        spoilt = (self.wrong_after - self.wrong_both) / self.weight
        return Gain(corrected - spoilt, *gain_interval(corrected, spoilt, self.n_effective))

    @property
    def mean_distances(self) -> tuple[float, float] | None:
        """Mean distance of either model from the label, where labels are numbers."""
        if not np.isfinite(self.distance_after):
            return None
        return self.distance_before / self.weight, self.distance_after / self.weight


@dataclass(frozen=True)
class Chance:
    """The one answer that is best for all rows, and its error: no more than chance."""

    label: str
    error: float

    @classmethod
    def find(cls, shares: Mapping[str, float] | None, *, is_balanced: bool) -> Chance | None:
        """Find it by the class shares; None where it is always right, and where all classes count alike."""
        if not shares or max(shares.values()) > 1 - 1e-9 or is_balanced:
            return None
        label = max(shares, key=lambda name: shares[name])
        return cls(label, 1 - shares[label])

    def is_as_good(self, error: float) -> bool:
        """Tell whether predictions with this error are no better."""
        return bool(error > self.error - 1e-9)  # rounding is no gain


@dataclass(frozen=True)
class Target:
    """What is known of a target: class shares, expected error, whole and by class, readings."""

    shares: Mapping[str, float]
    intervals: Mapping[str, list[float]]
    expected: Score
    by_class: Mapping[str, Mapping[str, object]]  # share, precision and recall
    readings: Readings  # empty of a distilled model

    @classmethod
    def of(cls, classifier: Predictor, name: Name) -> Target:
        """Return what a fitted classifier knows of a target."""
        known = classifier.targets_[name]
        readings = spell_readings(getattr(classifier, "readings_", {}).get(name, []))
        intervals = {label: list(ends) for label, ends in _spell(known["shares_interval"]).items()}
        expected, by_class = Score.expect(known["expected_error"]), _spell(known["by_class"])
        return cls(_spell(known["shares"]), intervals, expected, by_class, readings)

    def to_dict(self, *, is_foreign: bool = False) -> dict[str, object]:
        """Return everything, ready for JSON; of foreign rows no error is stated."""
        return {
            "target_shares": dict(self.shares),
            "target_shares_interval": dict(self.intervals),
            "expected_error": None if is_foreign else self.expected.to_dict() | {"known": True},
            "by_class": None if is_foreign else dict(self.by_class),
            "readings": list(self.readings),
        }


@dataclass(frozen=True, eq=False)
class Counts:
    """Counts of predictions, which add up over rows."""

    classes: Sequence[Label]
    per_class: np.ndarray  # rows of every predicted class
    n_doubtful: int | None = None  # left empty by --min-confidence; None without it
    unknown_rows: int = 0  # without a known word: they have no prediction
    bad_rows: int = 0  # that could not be read

    @classmethod
    def none(cls, classes: Sequence[Label], min_confidence: float | None) -> Counts:
        """Return the counts of no row."""
        return cls(classes, np.zeros(len(classes), dtype=int), None if min_confidence is None else 0)

    @property
    def rows(self) -> int:
        """Rows that were read."""
        return int(self.per_class.sum()) + self.unknown_rows

    @property
    def predicted_shares(self) -> dict[str, float]:
        """Share of every class among the predictions."""
        shares = (self.per_class / max(self.per_class.sum(), 1)).tolist()
        return dict(zip(map(spell_label, self.classes), shares, strict=True))

    def __add__(self, other: Counts) -> Counts:
        """Return the counts of both."""
        return Counts(
            self.classes,
            self.per_class + other.per_class,
            None if self.n_doubtful is None else self.n_doubtful + (other.n_doubtful or 0),
            self.unknown_rows + other.unknown_rows,
            self.bad_rows + other.bad_rows,
        )

    def to_dict(self) -> dict[str, object]:
        """Return the counts, ready for JSON."""
        doubtful = {} if self.n_doubtful is None else {"n_doubtful": self.n_doubtful}
        numbers = {"rows": self.rows, "bad_rows": self.bad_rows, "unknown_rows": self.unknown_rows}
        return {**numbers, **doubtful, "predicted_shares": self.predicted_shares}


@dataclass(frozen=True)
class Measure:
    """A number of a batch, that of the fit, and whether a test tells them apart."""

    batch: float
    fit: float
    p: float
    drifted: bool


@dataclass(frozen=True)
class Drift:
    """Whether rows are like those of the fit, and why not."""

    measures: Mapping[str, Measure]

    @property
    def drifted(self) -> bool:
        """Tell whether any measure differs."""
        return bool(self.reasons)

    @property
    def reasons(self) -> list[str]:
        """Say what differs."""
        differing = {name: measure for name, measure in self.measures.items() if measure.drifted}
        return [DRIFTS[name].format(**asdict(measure)) for name, measure in differing.items()]

    def to_dict(self) -> dict[str, object]:
        """Return everything, ready for JSON."""
        measures = {name: asdict(measure) for name, measure in self.measures.items()}
        return {"drifted": self.drifted, "reasons": self.reasons, **measures}


@dataclass(frozen=True)
class Batch:
    """New rows that are aligned together: their predictions, what is known of them, and what a check said."""

    name: str
    counts: Counts
    known: Target
    reason: str | None = None  # why they are predicted as fitted; None where they were aligned
    check: Drift | None = None

    @property
    def is_foreign(self) -> bool:
        """Tell whether the check found rows that are not like those of the fit."""
        return self.check is not None and self.check.drifted

    @property
    def error(self) -> Score | None:
        """The expected error; None of foreign rows, and of rows that are predicted as fitted."""
        return None if self.is_foreign or self.reason is not None else self.known.expected

    def to_dict(self) -> dict[str, object]:
        """Return everything, ready for JSON."""
        aligned = {"aligned": self.reason is None, "as_fitted_because": self.reason}
        made = self.counts.to_dict() | aligned | self.known.to_dict(is_foreign=self.is_foreign)
        return made | ({"check": self.check.to_dict()} if self.check else {})


def _spell(values: Mapping[Key, Value]) -> dict[str, Value]:
    """Write the labels that are keys as text."""
    return {spell_label(label): value for label, value in values.items()}


def _read_number(label: Label) -> float:
    """Return a label as a number, NaN for one that is none."""
    try:
        return float(label)
    except ValueError:
        return np.nan


@dataclass(frozen=True)
class Mistake:
    """What is taken for what, and the share of all rows that are."""

    truth: str
    predicted: str
    share: float


def linear_svm(*, n_folds: int = 5, random_state: int | None = None) -> GridSearchCV:
    """Build a linear SVM that chooses C by cross-validation on its training rows.

    C runs over ten values between 1e-4 and 3, logarithmically: the best for tf-idf rows and for raw counts
    both lie within.
    """
    svm = LinearSVC(dual="auto", random_state=random_state, max_iter=5000)
    folds = StratifiedKFold(n_folds, shuffle=True, random_state=random_state)
    return GridSearchCV(svm, {"C": np.logspace(-4, 0.5, 10)}, cv=folds)


def fitted_svm(X: Rows, y: np.ndarray) -> Baseline:
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


def confuse(P: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Return for every true class and predicted class the share of rows that have both.

    `P` holds a row's probability of every true class: 0 or 1 times its weight where the class is known.
    `codes` are predictions, as positions among the first classes of `P`.
    """
    is_predicted = codes[:, None] == np.arange(P.shape[1])
    return (P.T @ is_predicted) / (P.sum() or 1.0)


def rate_classes(confusion: np.ndarray, classes: Sequence[str]) -> dict[str, Rates]:
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
) -> dict[str, Rates]:
    """Measure share, precision and recall of every class on labelled rows, with 95% intervals.

    `truth` and `codes` are positions among the classes; a true one beyond them cannot be predicted.
    """
    rates = rate_classes(confuse_labels(truth, codes, weight, classes), classes)
    for k, (label, found) in enumerate(rates.items()):
        for name, of in (("precision", codes == k), ("recall", truth == k)):
            rate, ends = found[name], None
            if isinstance(rate, float):
                ends = error_interval(rate, weight[of].sum() ** 2 / np.sum(weight[of] ** 2))  # Kish's formula
            found[f"{name}_interval"] = ends
        rates[label] = {"n": int((truth == k).sum()), **found}
    return rates


def confuse_labels(
    truth: np.ndarray, codes: np.ndarray, weight: np.ndarray, classes: Sequence[str]
) -> np.ndarray:
    """Return the shares of labelled rows by true and predicted class, as `confuse` does."""
    known = (truth[:, None] == np.arange(len(classes) + 1)) * weight[:, None]
    return confuse(known, codes)


def list_mistakes(confusion: np.ndarray, classes: Sequence[str], most: int) -> list[Mistake]:
    """List the most frequent mistakes: the true class, the predicted one, and their share of all rows."""
    names, wrong = [*classes, OTHER_LABELS], confusion.copy()
    np.fill_diagonal(wrong, 0)
    order = np.argsort(-wrong, axis=None, kind="stable")[:most]
    places = [divmod(place, wrong.shape[1]) for place in order.tolist()]
    return [Mistake(names[i], names[j], float(wrong[i, j])) for i, j in places if wrong[i, j] > 0]


def find_suspects(y: Sequence[Label | None], p: np.ndarray, classes: Sequence[Label]) -> np.ndarray:
    """Return the rows whose label is not the most probable one, the least probable label first.

    `y` and `p` are what `predict_held_out` returns.
    """
    position = {spell_label(label): k for k, label in enumerate(classes)}
    known = np.array([i for i, label in enumerate(y) if label is not None], dtype=int)
    codes = np.array([position[spell_label(y[i])] for i in known], dtype=int)
    doubted = p[known].argmax(axis=1) != codes
    return known[doubted][np.argsort(p[known, codes][doubted], kind="stable")]


def measure_margins(P: np.ndarray) -> np.ndarray:
    """Return by how much the probability of the first class of every row exceeds that of the second.

    The rows with the smallest margins are the doubtful ones.
    """
    second, first = np.partition(P, -2, axis=1)[:, -2:].T
    return first - second


def spell_readings(readings: Readings) -> list[ReadingFacts]:
    """Return the readings of a target, their classes as text."""
    return [
        {**reading, "shares": {spell_label(label): share for label, share in reading["shares"].items()}}
        for reading in readings
    ]


def pick_shares(readings: Readings) -> list[dict[Hashable, float]]:
    """Return of every reading the shares of the same few classes: those on which the readings differ most."""
    shares = [reading["shares"] for reading in readings]
    labels = list(shares[0]) if shares else []
    spans = {label: np.ptp([mix[label] for mix in shares]) for label in labels}
    widest = sorted(labels, key=lambda label: -spans[label])[:MOST_TOLD]
    return [{label: mix[label] for label in labels if label in widest} for mix in shares]


def describe_readings(readings: Readings, file: str, fitted: str | None = None) -> Iterator[str]:
    """Say which class shares follow from every story, where the readings of a file differ.

    The stories are of the target of the fit, which `fitted` names if the file is another one.
    """
    if not is_open(readings):
        return
    share, heard = measure_disagreement(readings), list_heard(readings)
    told = pick_shares(heard[:MOST_STORIES])
    n_classes = len(heard[0]["shares"])
    rest = f" Of {n_classes} classes these differ most:" if n_classes > len(told[0]) else ""
    what = "its class shares" if share > MUCH_DISAGREEMENT else f"the share of {describe_torn(readings)}"
    yield (
        f"The text of {file} alone does not tell {what}: readings differ on up to {share:.0%} of the "
        f"rows.{rest}"
    )
    condition = f"if this holds of {fitted}" if fitted and fitted != file else "if"
    for reading, shares in zip(heard, told, strict=False):
        yield f"- {list_shares(shares)}, {condition}: {reading['story']}"


def name_winner(readings: Readings) -> str:
    """Say which story has most votes, and how many; nothing without readings."""
    if not readings:
        return ""
    winner = max(readings, key=lambda each: each["weight"])
    return f"Most likely ({winner['weight']:.0%} of the votes): {winner['story']}"


def write_class(label: object) -> str:
    """Write a label before its number; one that ends in a digit gets a colon."""
    name = str(label)
    return f"{name}:" if name[-1:].isdigit() else name


def pick_frequent(shares: Mapping[Key, float]) -> list[Key]:
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


def list_shares(shares: Mapping[Key, float], interval: Mapping[Key, Sequence[float]] | None = None) -> str:
    """Write class shares in words, those of the ten most frequent classes at most."""
    written = dict(zip(shares, write_shares(shares.values()), strict=True))
    if interval is not None:
        written = {label: write_share(share, interval[label]) for label, share in shares.items()}
    told = pick_frequent(shares)
    rest = [f"{len(shares) - len(told):,} more"] if len(shares) > len(told) else []
    return ", ".join([*(f"{write_class(label)} {written[label]}" for label in told), *rest])


def tabulate_shares(
    predicted: Mapping[Key, float],
    known: Mapping[Key, float],
    interval: Mapping[Key, Sequence[float]] | None,
) -> Iterator[str]:
    """Write a line for each of the ten most frequent classes: its predicted share, and the known one."""
    told = pick_frequent(known)
    width = max(len(str(label)) for label in told)
    for label, written in zip(predicted, write_shares(predicted.values()), strict=True):
        if label in told:
            share = write_share(known[label], interval[label] if interval else None)
            yield f"  {label!s:<{width}}  {written:>6}  {share}"
    if len(known) > len(told):
        yield f"  and {len(known) - len(told):,} more classes (--json has all)"
