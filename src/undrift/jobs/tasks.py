"""What the labels of a job are: classes, ratings or tags. Guessed where that is plain; how each is scored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import spearmanr
from sklearn.linear_model import RidgeCV
from sklearn.metrics import f1_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import MultiLabelBinarizer
from sklearn.svm import LinearSVC

from .._inputs import spell_label
from ..classifier import NEED_TARGET, MSDAClassifier, MSDARegressor
from ..tables import TableError
from ..text import text_regressor

TASKS = ("classes", "rating", "tags")
MOST_SPELLINGS = 3  # that a note names
SCALES = (5, 10)  # highest number of stars


@dataclass(frozen=True)
class LabelTask:
    """What labels are, and what predictions are made of."""

    name: str
    classes: Sequence[Any]  # labels or tags, sorted; of ratings, the scale
    separator: str = "|"

    def encode(self, labels: Sequence[Any]) -> np.ndarray:
        """Return labels as `fit` takes them; None stays for a row without."""
        if self.name != "tags":
            return np.array(list(labels), dtype=object)
        y = np.full((len(labels), len(self.classes)), np.nan)
        is_known = np.array([label is not None for label in labels])
        binarizer = MultiLabelBinarizer(classes=list(self.classes))
        known = [self.split(label) & set(self.classes) for label in labels if label is not None]
        y[is_known] = binarizer.fit_transform(known)
        return y

    def split(self, label: Any) -> set[str]:
        """Return the tags in a label."""
        return {tag.strip() for tag in str(label).split(self.separator)} - {""}


def choose_task(
    labels: Sequence[Any], task: str | None = None, separator: str = "|"
) -> tuple[LabelTask, list[Any], str | None]:
    """Return what labels are, the labels in the form that task needs, and a note on what was guessed.

    Two distinct labels are always classes. Ratings are stars: whole or half numbers from 1 to 5 or from 1 to
    10, where both ends occur and at least three values. Tags are labels that contain the separator and are
    fewer apart than together.
    """
    distinct = {label for label in labels if label is not None}
    numbers = [_parse_number(label) for label in distinct]
    note = None
    if task is None:
        task = _guess_task(distinct, numbers, separator)
        if task != "classes":
            kind = "stars" if task == "rating" else f"tags separated by {separator!r}"
            note = (
                f"the labels look like {kind}, so that this is --task {task}; --task classes takes them as "
                "unrelated classes"
            )
    if task == "rating":
        wrong = [label for label, number in zip(distinct, numbers, strict=True) if number is None]
        if wrong:
            raise TableError(f"--task rating needs numbers as labels, and {min(wrong)!r} is none")
        parsed = [None if label is None else _parse_number(label) for label in labels]
        return LabelTask(task, list_scale([number for number in numbers if number is not None])), parsed, note
    if task == "tags":
        given = LabelTask(task, (), separator)
        tags = sorted(set().union(*(given.split(label) for label in distinct)))
        if len(tags) < 2:
            raise TableError(f"--task tags needs at least two tags, and the labels hold {len(tags)}")
        return LabelTask(task, tags, separator), list(labels), note
    return LabelTask("classes", sorted(distinct)), list(labels), None


def _guess_task(distinct: set[Any], numbers: Sequence[float | None], separator: str) -> str:
    if len(distinct) < 3:
        return "classes"
    stars = {number for number in numbers if number is not None}
    if len(stars) == len(numbers) and all((2 * number).is_integer() for number in stars):
        is_scale = min(stars) == 1 and any(max(stars) == top for top in SCALES)
        return "rating" if is_scale else "classes"
    joined = [label for label in distinct if separator in str(label)]
    tags = set().union(*(LabelTask("tags", (), separator).split(label) for label in distinct))
    return "tags" if len(joined) > 1 and len(tags) < len(distinct) else "classes"


def _parse_number(label: Any) -> float | None:
    try:
        number = float(label)
    except (TypeError, ValueError):
        return None
    return number if np.isfinite(number) and not isinstance(label, bool) else None


def list_scale(numbers: Sequence[float]) -> list[float]:
    """Return the values that predicted numbers are counted by: whole ones, or five from lowest to highest."""
    low, high = min(numbers), max(numbers)
    if low.is_integer() and high.is_integer() and high - low <= SCALES[-1]:
        return [float(value) for value in range(int(low), int(high) + 1)]
    return np.linspace(low, high, 5).tolist()


def tidy_labels(
    labels: Sequence[Any], is_tidied: bool, separator: str | None = None
) -> tuple[dict[Any, Any], str | None]:
    """Return how labels are rewritten, and a note on those that differ in case and spaces alone.

    Each becomes its most frequent spelling, if `is_tidied`. With a separator, the tags in a label do.
    """
    split = (lambda label: str(label).split(separator)) if separator else (lambda label: [label])
    counts = Counter(part for label in labels if isinstance(label, str) for part in split(label))
    spellings: dict[str, list[str]] = {}
    for label, _ in counts.most_common():
        spellings.setdefault(" ".join(label.split()).casefold(), []).append(label)
    several = [names for names in spellings.values() if len(names) > 1]
    if not several:
        return {}, None
    shown = "; ".join(
        ", ".join(f"{n!r} ({counts[n]:,})" for n in names) for names in several[:MOST_SPELLINGS]
    )
    more = "; ..." if len(several) > MOST_SPELLINGS else ""
    if not is_tidied:
        return {}, f"labels that differ in case or spaces alone: {shown}{more} (--tidy-labels makes them one)"
    best = {name: names[0] for names in several for name in names}
    rewritten = {
        label: (separator or "").join(best.get(part, part) for part in split(label))
        for label in {label for label in labels if isinstance(label, str)}
    }
    return rewritten, f"labels made one by --tidy-labels: {shown}{more}"


def build_regressor(classifier: MSDAClassifier, means: Sequence[float]) -> MSDARegressor:
    """Return a regressor with the settings of a classifier; `means` are the known means of the targets.

    A C of 1, but not one in a list, is the classifier's default: it leaves the regressor its choice.
    """
    if classifier.classifier != "least-squares" or classifier.border != "error":
        raise TableError("ratings are learnt by least squares: drop --classifier and --border")
    if classifier.selection in NEED_TARGET:
        raise TableError(f"ratings are chosen by cross-validation: drop --selection {classifier.selection}")
    names = set(MSDARegressor._get_param_names()) - ({"C"} if classifier.C == 1.0 else set())
    same = {name: value for name, value in classifier.get_params().items() if name in names}
    return text_regressor(**same | {"center": bool(classifier.center), "target_mean": list(means) or None})


def fit_task_baseline(task: LabelTask, X: Any, y: np.ndarray) -> Any:
    """Fit what predictions are compared with, on the source alone: ridge, or a linear SVM for every tag."""
    if task.name == "rating":
        return RidgeCV(np.logspace(-2, 3, 11)).fit(X, y.astype(float))
    return OneVsRestClassifier(LinearSVC(random_state=0)).fit(X, y)


def score_task(task: LabelTask, truth: Sequence[Any], *predicted: np.ndarray) -> dict[str, Any]:
    """Return the scores of the baseline and of the predictions on the rows of a target that have labels."""
    known = [label is not None for label in truth]
    y = task.encode([label for label in truth if label is not None])
    nothing = dict.fromkeys(("baseline_error", "source_only_error", "adapted_error"))
    summary: dict[str, Any] = {"scored": sum(known), **nothing}
    for name, values in zip(("baseline", "adapted"), predicted, strict=True):
        if task.name == "rating":
            scores = _score_rating(y.astype(float), np.clip(values[known], task.classes[0], task.classes[-1]))
        else:
            scores = {
                f"{average}_f1": float(f1_score(y, values[known], average=average, zero_division=0))
                for average in ("micro", "macro")
            }
        summary |= {f"{name}_{measure}": value for measure, value in scores.items()}
    return summary


def _score_rating(y: np.ndarray, predicted: np.ndarray) -> dict[str, float | None]:
    is_constant = len(y) < 2 or np.ptp(y) == 0 or np.ptp(predicted) == 0
    return {
        "mae": float(np.mean(np.abs(y - predicted))),
        "rank_correlation": None if is_constant else float(spearmanr(y, predicted)[0]),
    }


def parse_ratings(labels: Sequence[Any]) -> list[float | None]:
    """Return target labels as numbers; text that is none is refused."""
    numbers = [None if label is None else _parse_number(label) for label in labels]
    for label, number in zip(labels, numbers, strict=True):
        if label is not None and number is None:
            raise TableError(f"--task rating needs numbers to score with, and {label!r} is none")
    return numbers


def count_same(first: np.ndarray, second: np.ndarray) -> int:
    """Count the rows that two models predict alike: numbers to a hundredth, tags all of them."""
    is_same = np.abs(first - second) < 0.01 if first.dtype.kind == "f" else first == second
    return int(is_same.reshape(len(first), -1).all(axis=1).sum())


def is_rating(model: Any) -> bool:
    """Tell whether a fitted model predicts numbers."""
    return isinstance(model, MSDARegressor)


def has_classes(model: Any) -> bool:
    """Tell whether a fitted model predicts classes, not numbers or tags."""
    return not is_rating(model) and not getattr(model, "multilabel_", False)


def average_shares(given: Sequence[dict[Any, float]]) -> list[float]:
    """Return the mean rating of every target that shares of stars were given for."""
    for shares in given:
        wrong = [label for label in shares if _parse_number(label) is None]
        if wrong:
            raise TableError(f"--target-shares names {spell_label(wrong[0])!r}, which is no number of stars")
    return [sum(float(label) * share for label, share in shares.items()) for shares in given]
