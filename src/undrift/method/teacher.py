"""Learn from a teacher: labels or probabilities of target rows by another model, which may be wrong.

A student of the teacher's labels is held out fold by fold, so that it scores every row by the labels of other
rows. Labels are the classes of these scores, a share of them exchanged at random:

    P(label k | scores) = (1 - noise) p_k + noise (1 - p_k) / (n_classes - 1),    p = softmax(a scores + b)

`noise` shows where the student is sure and the teacher says otherwise. The more there is, the less the
teacher weighs. The shares of its labels less the noise are the class shares of the target. As far as the
teacher was silent, and there is a source, they are averaged with the shares that the source's scores show. In
the rounds of pseudo-labels rows are chosen by the sum of student and teacher: rows that the teacher is unsure
of, or that contradict their neighbours, come last. Systematic errors of a teacher are no noise, and cannot be
seen. Several teachers are read one by one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import DTypeLike
from scipy.optimize import minimize
from scipy.special import expit, softmax
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from ..core import Array, Rows, stack_rows, submatrix
from ..errors import count
from ..inputs import Column, as_array, check_rows, gather_rows, missing_mask, to_host
from .least_squares import Gram, LeastSquares
from .problem import TARGET, UNLABELLED, Name, Problem, Targets, Words, find_codes, name_targets, name_values
from .scores import as_logits, signs
from .settings import Settings, TeacherSettings

_LEAST_WORD = 0.001  # probability of a teacher, that lower ones are raised to
_N_FOLDS = 5

ONE = "teacher"  # name of a teacher that the user did not name


@dataclass(frozen=True)
class Given:
    """What a teacher says of the rows of one target, as it was given."""

    labels: Array  # or probabilities of all classes
    confidence: Array | None = None  # probabilities of the labels
    story: str = ""  # the assumption under which the labels are right
    error: float = 0.0  # share of the labels that is known to be wrong, at least


def check_words(words: Words, classes: np.ndarray, name: Name, least: int) -> None:
    """Refuse a teacher that says too little to learn from."""
    n, seen, title = len(words.taught), np.unique(words.codes[words.taught]), _title(name)
    if n < least:
        raise ValueError(
            f"{title} has labels for {count(n, 'row')}, and a student needs at least {least}: "
            "have it label more rows, or give these labels as y_target if they are true"
        )
    if len(seen) < 2:
        raise ValueError(
            f"{title} gives every row the label {classes[seen[0]].item()!r}: nothing can be learnt from "
            "one class; have it label rows of the others"
        )


Told: TypeAlias = Column | Given  # of one target, by one teacher
Teacher: TypeAlias = Told | Mapping[str, Told | Mapping[str, Told]]  # by target, by name of several


def _title(name: Name) -> str:
    return "teacher" if name == TARGET else f"teacher[{name!r}]"


def measure_size(scores: np.ndarray) -> float:
    """Root mean square of scores, or 1 where they are 0."""
    return float(np.sqrt(np.mean(scores**2))) or 1.0


def name_words(
    teacher: Teacher | None, confidence: Column | Mapping[str, Column] | None, X_target: Targets
) -> dict[Name, dict[str, Given]]:
    """Return what every teacher says of every target that it was asked about: by target, then by teacher."""
    if teacher is None:
        return {}
    labels = name_values(teacher, "teacher", X_target)
    sure = {} if confidence is None else name_values(confidence, "teacher_confidence", X_target)
    named = {}
    for name, labelled in labels.items():
        several = labelled if isinstance(labelled, Mapping) else {ONE: labelled}
        if len(several) > 1 and name in sure:
            raise ValueError(
                "teacher_confidence goes with one teacher: give probabilities of several instead"
            )
        named[name] = {
            teacher: told if isinstance(told, Given) else Given(told, sure.get(name))
            for teacher, told in several.items()
        }
    return named


def list_taught_classes(given: Mapping[Name, Mapping[str, Given]]) -> np.ndarray:
    """Return the classes of a teacher's labels; of probabilities, the numbers of their columns."""
    told = [each.labels for several in given.values() for each in several.values()]
    widths = [np.shape(labels)[1] for labels in told if np.ndim(labels) == 2]
    if widths:
        return np.arange(max(widths))
    columns = [np.asarray(to_host(labels), dtype=object) for labels in told]
    known = [label for column in columns for label in column[~missing_mask(column)].tolist()]
    return np.unique(np.array(known))


def read_words(given: Given, n: int, classes: np.ndarray, name: Name = TARGET) -> Words:
    """Check a teacher's labels or probabilities of n target rows, and return them as scores.

    Labels are None or NaN, and rows of probabilities NaN, where the teacher is silent.
    """
    labels, confidence = given.labels, given.confidence
    if np.ndim(labels) == 2:
        p = np.asarray(to_host(labels), dtype=float)
        if p.shape != (n, len(classes)) or (p < 0).any():
            raise ValueError(
                f"{_title(name)} of shape {p.shape} must be probabilities, one row for each of {n} target "
                f"rows and one column for each of {len(classes)} classes"
            )
        is_silent = np.isnan(p).any(axis=1)
        p = np.where(is_silent[:, None], 1.0, p)
        return Words(_log_odds(p), np.where(is_silent, UNLABELLED, np.argmax(p, axis=1)))
    codes, unknown = find_codes(labels, n, classes, _title(name))
    if unknown:
        names = ", ".join(map(repr, classes.tolist()))
        raise ValueError(
            f"{_title(name)} holds {unknown[0]!r}, which is not a class; the classes are {names}"
        )
    scores = signs(codes, len(classes)) if confidence is None else _weigh(codes, confidence, len(classes))
    scores = np.where((codes == UNLABELLED)[:, None], 0.0, scores)
    return Words(scores, codes, given.story, given.error)


def _weigh(codes: np.ndarray, confidence: Column, n_classes: int) -> np.ndarray:
    """Return scores of labels from their probabilities; the other classes share the rest alike."""
    given = [np.nan if value is None else value for value in np.asarray(to_host(confidence), dtype=object)]
    sure = np.nan_to_num(np.array(given, dtype=float), nan=1.0)
    if len(sure) != len(codes) or ((sure < 0) | (sure > 1)).any():
        raise ValueError("teacher_confidence must hold one number from 0 to 1 for every target row")
    is_label = codes[:, None] == np.arange(n_classes)
    return _log_odds(np.where(is_label, sure[:, None], (1 - sure)[:, None] / (n_classes - 1)))


def _log_odds(p: np.ndarray) -> np.ndarray:
    """Return log odds of the second of two classes, or centred log probabilities of several."""
    least = _LEAST_WORD
    log_p = np.log(np.maximum(p / np.maximum(p.sum(axis=1, keepdims=True), least), least))
    return log_p[:, 1:] - log_p[:, :1] if p.shape[1] == 2 else log_p - log_p.mean(axis=1, keepdims=True)


def hear_teachers(
    problem: Problem, given: Mapping[Name, Mapping[str, Given]], least: int
) -> dict[Name, dict[str, Words]]:
    """Return the teachers' scores of target rows: by target, then by teacher."""
    taught = dict[Name, dict[str, Words]]()
    for name, several in given.items():
        n, taught[name] = problem.rows[name].shape[0], {}
        for teacher, told in several.items():
            taught[name][teacher] = words = read_words(told, n, problem.classes, name)
            check_words(words, problem.classes, name, least)
    return taught


@dataclass(frozen=True)
class Noise:
    """Model of a teacher's labels: a student's scores, and labels exchanged at random."""

    share: float  # of the labels that were exchanged
    slope: float
    offset: np.ndarray  # (n_classes,)

    def find_probabilities(self, scores: np.ndarray) -> np.ndarray:
        """Return the probabilities of the classes, of shape (n, n_classes)."""
        return softmax(self.slope * as_logits(scores) + self.offset, axis=1)

    def find_trust(self, settings: TeacherSettings) -> float:
        """Return the weight of the teacher in a sum with a student, both over their root mean squares."""
        return float(min(settings.most_trust, np.log((1 - self.share) / self.share) / settings.full_trust))

    def remove(self, codes: np.ndarray) -> np.ndarray:
        """Return the shares of the classes among labels, less the noise."""
        n_classes, other = len(self.offset), self.share / (len(self.offset) - 1)
        shares = np.bincount(codes, minlength=n_classes) / len(codes)
        shares = np.maximum((shares - other) / (1 - self.share - other), 0.5 / len(codes))
        return shares / shares.sum()


def measure_noise(parameters: np.ndarray, logits: np.ndarray, codes: np.ndarray) -> tuple[float, np.ndarray]:
    """Return the loss of noise, and its gradient: log slope, log odds of twice the share, and offsets.

    It is the mean negative log likelihood of the labels, with a wide prior around a share of 2%.
    """
    is_class, others = codes[:, None] == np.arange(logits.shape[1]), logits.shape[1] - 1
    slope, share, offset = np.exp(parameters[0]), 0.5 * expit(parameters[1]), parameters[2:]
    p = softmax(slope * logits + offset, axis=1)
    named, kept = p[is_class], 1 - share - share / others
    likelihood, prior = share / others + kept * named, (parameters[1] + 3) / 3
    by_logits = (kept * named / likelihood)[:, None] * (p - is_class) / len(codes)
    by_share = float(np.mean(((1 + 1 / others) * named - 1 / others) / likelihood))
    by_odds = by_share * share * (1 - 2 * share) + prior / (3 * len(codes))
    gradient = [slope * (by_logits * logits).sum(), by_odds, *by_logits.sum(axis=0)]
    return prior**2 / (2 * len(codes)) - float(np.log(likelihood).mean()), np.array(gradient)


def fit_noise(scores: np.ndarray, codes: np.ndarray, n_classes: int) -> Noise:
    """Fit noise to a student's scores and the labels."""
    size = measure_size(scores)
    given = as_logits(scores / size), codes
    bounds = [(-3.0, 5.0), (-8.0, 4.0)] + [(-10.0, 10.0)] * n_classes
    starts = [np.array([1.0, odds, *np.zeros(n_classes)]) for odds in (-1.0, -4.0)]
    fits = [minimize(measure_noise, start, given, jac=True, bounds=bounds) for start in starts]
    best = min(fits, key=lambda fit: fit.fun).x
    return Noise(float(0.5 * expit(best[1])), float(np.exp(best[0])) / size, best[2:])


def review_labels(K: Array, C: float, words: Words, n_classes: int) -> tuple[LeastSquares, np.ndarray, Noise]:
    """Train a student; return it, scores of rows by students of the others' labels, and the labels' noise."""
    n = len(words.codes)
    folds = np.array_split(check_random_state(0).permutation(n), _N_FOLDS)
    student = LeastSquares.fit(K, signs(words.codes, n_classes), C, np.ones(n))
    scores = student.score_held_out(folds)
    return student, scores, fit_noise(scores, words.codes, n_classes)


def take_taught_rows(
    estimator: BaseEstimator,
    X_target: Targets,
    given: Mapping[Name, Mapping[str, Given]],
    dtype: DTypeLike,
    settings: TeacherSettings,
) -> tuple[Rows, np.ndarray]:
    """Return target rows with the labels of a teacher, or of the mean of several, in place of a source."""
    targets, classes, parts, codes = name_targets(X_target), list_taught_classes(given), [], []
    for i, (name, several) in enumerate(given.items()):
        X = check_rows(estimator, targets[name], reset=i == 0, dtype=dtype)
        told = [read_words(labels, X.shape[0], classes, name) for labels in several.values()]
        words = average_words(told)
        check_words(words, classes, name, settings.least)
        rows = choose_source(X, words, len(classes), settings)
        order = np.argsort(rows)  # rows of a cluster are taken in their order
        parts.append(gather_rows(X[rows[order]])[np.argsort(order)])
        codes.append(words.codes[rows])
    return stack_rows(parts), classes[np.concatenate(codes)]


def average_words(told: Sequence[Words]) -> Words:
    """Return the mean scores of several teachers, silent where all of them are."""
    if len(told) == 1:
        return told[0]
    scores = np.mean([words.scores for words in told], axis=0)
    is_silent = np.all([words.codes == UNLABELLED for words in told], axis=0)
    guesses = (scores[:, 0] > 0).astype(int) if scores.shape[1] == 1 else scores.argmax(axis=1)
    return Words(scores, np.where(is_silent, UNLABELLED, guesses))


def choose_source(X: Rows, words: Words, n_classes: int, settings: TeacherSettings) -> np.ndarray:
    """Choose rows of a target that serve as labelled source.

    They are the rows of every class that teacher and student, here of the input alone, are surest of.
    """
    rows = _draw_rows(words.taught, settings.reviewed)
    inputs, said, chosen = gather_rows(X[rows]), words.take(rows), []
    K = as_array(inputs @ inputs.T)
    _, scores, noise = review_labels(K, 1 / (float(K.diagonal().mean()) or 1.0), said, n_classes)
    trust = noise.find_trust(settings)
    both = as_logits(scores / measure_size(scores) + trust * said.scores / measure_size(said.scores))
    support = both[np.arange(len(rows)), said.codes] - both.mean(axis=1)
    portion = min(settings.portions[0], settings.sure_rows / len(rows))
    for code in np.unique(said.codes):
        members = np.flatnonzero(said.codes == code)
        surest = members[np.argsort(-support[members], kind="stable")]
        chosen.append(rows[surest[: max(int(portion * len(members)), 2)]])
    return np.concatenate(chosen)


def _draw_rows(rows: np.ndarray, most: int) -> np.ndarray:
    """Draw at most so many of the rows."""
    if len(rows) <= most:
        return rows
    return np.sort(check_random_state(0).choice(rows, most, replace=False))


@dataclass(frozen=True)
class Lesson:
    """Result of a teacher's labels for one target."""

    words: Words  # for the anchors of the target
    scores: np.ndarray  # (n, n_outputs) of these anchors, by students that have not seen their labels
    noise: Noise
    shares: np.ndarray  # (n_classes,) of the target
    trust: float
    doubt: float  # error to expect of students and teacher together, if they err independently

    @property
    def coverage(self) -> float:
        """Share of the rows that have a label of the teacher."""
        return len(self.words.taught) / len(self.words.codes)

    def weigh(self, scores: np.ndarray) -> float:
        """Return the factor of the teacher's scores in a sum with these, which are at their threshold."""
        return measure_size(scores) * self.trust / measure_size(self.words.scores[self.words.taught])


def learn_lesson(
    gram: Gram, anchors: np.ndarray, words: Words, C: float, n_classes: int, settings: Settings
) -> Lesson:
    """Review a teacher's labels of one target on its anchors, given by their positions in the Gram matrix.

    `words` are those of the anchors.
    """
    K, rows = gram.products, _draw_rows(words.taught, settings.teacher.reviewed)
    among, sample = submatrix(K, anchors[rows], anchors[rows]), words.take(rows)
    student, held_out, noise = review_labels(among, C, sample, n_classes)
    scores = student.score(submatrix(K, anchors, anchors[rows]))
    scores[rows] = held_out
    shares, is_silent = noise.remove(words.codes[words.taught]), np.ones(len(anchors), dtype=bool)
    is_silent[words.taught] = False
    if is_silent.any():
        part = is_silent.mean()
        shares = (1 - part) * shares + part * noise.find_probabilities(scores[is_silent]).mean(axis=0)
    doubt = max(_expect_error(noise, held_out, sample.codes), words.error)
    return Lesson(words, scores, noise, shares, noise.find_trust(settings.teacher), doubt)


def _expect_error(noise: Noise, scores: np.ndarray, codes: np.ndarray) -> float:
    """Return the error to expect of held-out students and of the teacher's labels `codes` together."""
    p, others = noise.find_probabilities(scores), len(noise.offset) - 1
    is_label = codes[:, None] == np.arange(others + 1)
    both = p * np.where(is_label, 1 - noise.share, noise.share / others)
    return float(1 - (both.max(axis=1) / both.sum(axis=1)).mean())
