"""Learn from a teacher: labels or probabilities of target rows by another model, which may be wrong.

A student of the teacher's labels is held out fold by fold, so that it scores every row by the labels of other
rows. Labels are the classes of these scores, a share of them exchanged at random:

    P(label k | scores) = (1 - noise) p_k + noise (1 - p_k) / (n_classes - 1),    p = softmax(a scores + b)

`noise` shows where the student is sure and the teacher says otherwise. The more there is, the less the
teacher weighs. The shares of its labels less the noise are the class shares of the target. With a source they
are averaged with the shares that its scores show. In the rounds of pseudo-labels rows are chosen by the sum
of student and teacher: rows that the teacher is unsure of, or that contradict their neighbours, come last.
Systematic errors of a teacher are no noise, and cannot be seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, ndtri, softmax
from sklearn.utils import check_random_state

from ..core import Array, Rows, stack_rows, submatrix
from ..errors import count, warn
from ..inputs import as_array, check_rows, gather_rows, missing_mask, to_host
from . import constants
from .align import estimate_target, find_first_scores
from .calibrate import ExpectedError, HeldOut, Target, as_logits
from .domains import TARGET, UNLABELLED, Domains, Name, check_target_labels, name_targets, name_values
from .self_train import Plan, Trained
from .shares import Shares
from .solve import Posterior, least_squares, mean_auc, signs

if TYPE_CHECKING:
    from .choose import Base
    from .train import Readout, Trainer

Given = tuple[Any, Any]  # labels and their probabilities, or probabilities of all classes and None


@dataclass(frozen=True)
class Words:
    """Scores that a teacher gives to the rows of one target."""

    scores: np.ndarray  # (n, n_outputs) log odds, or signs where it gives labels alone; 0 where it is silent
    codes: np.ndarray  # (n,) its labels, `UNLABELLED` where it is silent

    @property
    def taught(self) -> np.ndarray:
        """Numbers of the rows that have a label of the teacher."""
        return np.flatnonzero(self.codes != UNLABELLED)

    def take(self, rows: np.ndarray) -> Words:
        """Return the words for some of the rows."""
        return Words(self.scores[rows], self.codes[rows])

    def check(self, classes: np.ndarray, name: Name) -> Words:
        """Return the words; refuse a teacher that says too little to learn from."""
        n, seen, title = len(self.taught), np.unique(self.codes[self.taught]), _title(name)
        if n < (least := constants.LEAST_TAUGHT):
            raise ValueError(
                f"{title} has labels for {count(n, 'row')}, and a student needs at least {least}: "
                "have it label more rows, or give these labels as y_target if they are true"
            )
        if len(seen) < 2:
            raise ValueError(
                f"{title} gives every row the label {classes[seen[0]].item()!r}: nothing can be learnt from "
                "one class; have it label rows of the others"
            )
        return self


def _title(name: Name) -> str:
    return "teacher" if name == TARGET else f"teacher[{name!r}]"


def _measure_size(scores: np.ndarray) -> float:
    """Root mean square of scores, or 1 where they are 0."""
    return float(np.sqrt(np.mean(scores**2))) or 1.0


def name_words(teacher: Any, confidence: Any, X_target: Any) -> dict[Name, Given]:
    """Return the teacher's labels and confidences for every target that it was asked about, by name."""
    if teacher is None:
        return {}
    labels = name_values(teacher, "teacher", X_target)
    sure = {} if confidence is None else name_values(confidence, "teacher_confidence", X_target)
    return {name: (own, sure.get(name)) for name, own in labels.items()}


def list_taught_classes(given: dict[Name, Given]) -> np.ndarray:
    """Return the classes of a teacher's labels; of probabilities, the numbers of their columns."""
    widths = [np.shape(labels)[1] for labels, _ in given.values() if np.ndim(labels) == 2]
    if widths:
        return np.arange(max(widths))
    columns = [np.asarray(to_host(labels), dtype=object) for labels, _ in given.values()]
    known = [label for column in columns for label in column[~missing_mask(column)].tolist()]
    return np.unique(np.array(known))


def read_words(given: Given, n: int, classes: np.ndarray, name: Name = TARGET) -> Words:
    """Check a teacher's labels or probabilities of n target rows, and return them as scores.

    Labels are None or NaN, and rows of probabilities NaN, where the teacher is silent.
    """
    labels, confidence = given
    if np.ndim(labels) == 2:
        return _read_probabilities(np.asarray(to_host(labels), dtype=float), n, len(classes), _title(name))
    codes = check_target_labels(labels, n, classes, _title(name))
    is_silent = (codes == UNLABELLED)[:, None]
    scores = signs(codes, len(classes)) if confidence is None else _weigh(codes, confidence, len(classes))
    return Words(np.where(is_silent, 0.0, scores), codes)


def _read_probabilities(p: np.ndarray, n: int, n_classes: int, title: str) -> Words:
    if p.shape != (n, n_classes) or (p < 0).any():
        raise ValueError(
            f"{title} of shape {p.shape} must be probabilities, one row for each of {n} target rows and one "
            f"column for each of {n_classes} classes"
        )
    is_silent = np.isnan(p).any(axis=1)
    p = np.where(is_silent[:, None], 1.0, p)
    return Words(_log_odds(p), np.where(is_silent, UNLABELLED, np.argmax(p, axis=1)))


def _weigh(codes: np.ndarray, confidence: Any, n_classes: int) -> np.ndarray:
    """Return scores of labels from their probabilities; the other classes share the rest alike."""
    given = [np.nan if value is None else value for value in np.asarray(to_host(confidence), dtype=object)]
    sure = np.nan_to_num(np.array(given, dtype=float), nan=1.0)
    if len(sure) != len(codes) or ((sure < 0) | (sure > 1)).any():
        raise ValueError("teacher_confidence must hold one number from 0 to 1 for every target row")
    is_label = codes[:, None] == np.arange(n_classes)
    return _log_odds(np.where(is_label, sure[:, None], (1 - sure)[:, None] / (n_classes - 1)))


def _log_odds(p: np.ndarray) -> np.ndarray:
    """Return log odds of the second of two classes, or centred log probabilities of several."""
    least = constants.LEAST_WORD
    log_p = np.log(np.maximum(p / np.maximum(p.sum(axis=1, keepdims=True), least), least))
    return log_p[:, 1:] - log_p[:, :1] if p.shape[1] == 2 else log_p - log_p.mean(axis=1, keepdims=True)


def add_words(domains: Domains, given: dict[Name, Given]) -> None:
    """Add a teacher's scores of target rows to their domains."""
    for name, labels in given.items():
        words = read_words(labels, domains.rows[name].shape[0], domains.classes, name)
        domains.words[name] = words.check(domains.classes, name)


@dataclass(frozen=True)
class Noise:
    """Model of a teacher's labels: a student's scores, and labels exchanged at random."""

    share: float  # of the labels that were exchanged
    slope: float
    offset: np.ndarray  # (n_classes,)

    def find_probabilities(self, scores: np.ndarray) -> np.ndarray:
        """Return the probabilities of the classes, of shape (n, n_classes)."""
        return softmax(self.slope * as_logits(scores) + self.offset, axis=1)

    @property
    def trust(self) -> float:
        """Weight of the teacher in a sum with a student, both in units of their root mean squares."""
        return float(min(constants.MOST_TRUST, np.log((1 - self.share) / self.share) / constants.FULL_TRUST))

    def remove(self, codes: np.ndarray) -> np.ndarray:
        """Return the shares of the classes among labels, less the noise."""
        n_classes, other = len(self.offset), self.share / (len(self.offset) - 1)
        shares = np.bincount(codes, minlength=n_classes) / len(codes)
        shares = np.maximum((shares - other) / (1 - self.share - other), 0.5 / len(codes))
        return shares / shares.sum()


def fit_noise(scores: np.ndarray, codes: np.ndarray, n_classes: int) -> Noise:
    """Fit noise by maximum likelihood, with a wide prior around 2% on the log odds of twice its share."""
    size = _measure_size(scores)
    logits, rows = as_logits(scores / size), np.arange(len(codes))
    is_class, others = codes[:, None] == np.arange(n_classes), n_classes - 1

    def log_loss(parameters: np.ndarray) -> tuple[float, np.ndarray]:
        slope, share, offset = np.exp(parameters[0]), 0.5 * expit(parameters[1]), parameters[2:]
        p = softmax(slope * logits + offset, axis=1)
        own, kept = p[rows, codes], 1 - share - share / others
        likelihood, prior = share / others + kept * own, (parameters[1] + 3) / 3
        by_logits = (kept * own / likelihood)[:, None] * (p - is_class) / len(codes)
        by_share = float(np.mean(((1 + 1 / others) * own - 1 / others) / likelihood))
        by_odds = by_share * share * (1 - 2 * share) + prior / (3 * len(codes))
        gradient = [slope * (by_logits * logits).sum(), by_odds, *by_logits.sum(axis=0)]
        return prior**2 / (2 * len(codes)) - float(np.log(likelihood).mean()), np.array(gradient)

    bounds = [(-3.0, 5.0), (-8.0, 4.0)] + [(-10.0, 10.0)] * n_classes
    starts = [np.array([1.0, odds, *np.zeros(n_classes)]) for odds in (-1.0, -4.0)]
    fits = [minimize(log_loss, start, jac=True, bounds=bounds) for start in starts]
    best = min(fits, key=lambda fit: fit.fun).x
    return Noise(float(0.5 * expit(best[1])), float(np.exp(best[0])) / size, best[2:])


def review_labels(K: Array, C: float, words: Words, n_classes: int) -> tuple[np.ndarray, Noise]:
    """Score rows by students of the labels of other rows; return the scores, and the noise in the labels."""
    n = len(words.codes)
    folds = np.array_split(check_random_state(0).permutation(n), constants.N_FOLDS)
    scores = Posterior.invert(K, C, np.ones(n)).score_held_out(signs(words.codes, n_classes), folds)
    return scores, fit_noise(scores, words.codes, n_classes)


def take_taught_rows(
    estimator: Any, X_target: Any, given: dict[Name, Given], dtype: Any
) -> tuple[Rows, np.ndarray]:
    """Return target rows with the labels of a teacher, in place of a source."""
    targets, classes, parts, codes = name_targets(X_target), list_taught_classes(given), [], []
    for i, (name, labels) in enumerate(given.items()):
        X = check_rows(estimator, targets[name], reset=i == 0, dtype=dtype)
        words = read_words(labels, X.shape[0], classes, name).check(classes, name)
        rows = choose_source(X, words, len(classes))
        order = np.argsort(rows)  # rows of a cluster are taken in their order
        parts.append(gather_rows(X[rows[order]])[np.argsort(order)])
        codes.append(words.codes[rows])
    return stack_rows(parts), classes[np.concatenate(codes)]


def choose_source(X: Rows, words: Words, n_classes: int) -> np.ndarray:
    """Choose rows of a target that serve as labelled source.

    They are the rows of every class that teacher and student, here of the input alone, are surest of.
    """
    rows = _draw_rows(words.taught)
    inputs, said, chosen = gather_rows(X[rows]), words.take(rows), []
    K = as_array(inputs @ inputs.T)
    scores, noise = review_labels(K, 1 / (float(K.diagonal().mean()) or 1.0), said, n_classes)
    both = as_logits(scores / _measure_size(scores) + noise.trust * said.scores / _measure_size(said.scores))
    support = both[np.arange(len(rows)), said.codes] - both.mean(axis=1)
    portion = min(constants.SURE_PORTION, constants.SURE_ROWS / len(rows))
    for code in np.unique(said.codes):
        members = np.flatnonzero(said.codes == code)
        surest = members[np.argsort(-support[members], kind="stable")]
        chosen.append(rows[surest[: max(int(portion * len(members)), 2)]])
    return np.concatenate(chosen)


def _draw_rows(rows: np.ndarray) -> np.ndarray:
    """Draw at most `REVIEWED_ROWS` of the rows."""
    if len(rows) <= constants.REVIEWED_ROWS:
        return rows
    return np.sort(check_random_state(0).choice(rows, constants.REVIEWED_ROWS, replace=False))


@dataclass(frozen=True)
class Lesson:
    """Result of a teacher's labels for one target."""

    words: Words  # for the anchors of the target
    scores: np.ndarray  # (n, n_outputs) of these anchors, by students that have not seen their labels
    noise: Noise
    shares: np.ndarray  # (n_classes,) class shares of the target
    expected_error: ExpectedError  # of student and teacher together

    def weigh(self, scores: np.ndarray) -> float:
        """Return the factor of the teacher's scores in a sum with these, which are at their threshold."""
        taught = self.words.scores[self.words.taught]
        return _measure_size(scores) * self.noise.trust / _measure_size(taught)


@dataclass(frozen=True)
class Lessons:
    """Results of a teacher's labels for every target."""

    groups: list[np.ndarray]  # target anchors of every target, counted from the first target anchor
    lessons: list[Lesson | None]  # None where the teacher was silent

    def fill_shares(self, known: Sequence[list[float] | None]) -> list[list[float] | None]:
        """Return the class shares given by the user, else those by the teacher."""
        told = [None if lesson is None else lesson.shares.tolist() for lesson in self.lessons]
        return [other if shares is None else shares for shares, other in zip(known, told, strict=True)]

    def add_words(self, scores: np.ndarray) -> None:
        """Add the teacher's scores to those of the target anchors, which are at their thresholds."""
        for group, lesson in zip(self.groups, self.lessons, strict=True):
            if lesson is not None:
                scores[group] += lesson.weigh(scores[group]) * lesson.words.scores

    def plan_rounds(self, first: np.ndarray) -> Plan:
        """Return the rounds, which start from the source's scores plus those of held-out students."""
        start = first.copy()
        for group, lesson in zip(self.groups, self.lessons, strict=True):
            if lesson is not None:
                size = _measure_size(first[group]) / _measure_size(lesson.scores)
                start[group] += size * lesson.scores
        return Plan(constants.TAUGHT_PORTIONS, constants.TAUGHT_WEIGHT, start, needs_round_trip=False)

    def measure_weights(self, trained: Trained, readout: Readout) -> list[float]:
        """Return, for every target, the factor of the teacher's scores in a sum with the student's."""
        shifts = [0.0] * len(self.groups) if readout.targets is None else [t.shift for t in readout.targets]
        triples = zip(self.groups, self.lessons, shifts, strict=True)
        return [0.0 if k is None else k.weigh(trained.scores[group] + shift) for group, k, shift in triples]

    def describe(self, readout: Readout) -> Readout:
        """Return a readout with intervals of shares and expected errors of targets with a teacher."""
        if readout.targets is None:
            return readout
        pairs = zip(readout.targets, self.lessons, strict=True)
        targets = [target if lesson is None else _describe(target, lesson) for target, lesson in pairs]
        return replace(readout, targets=targets)


def _describe(target: Target, lesson: Lesson) -> Target:
    """Return the results of a target with the uncertainty of shares that a teacher told."""
    mean = target.shares.mean
    rest = mean * (np.arange(len(mean)) != np.argmax(mean))
    tilt = (np.arange(len(mean)) == np.argmax(mean)) - rest / max(rest.sum(), 1e-9)
    steps = constants.TAUGHT_SHARE_SPREAD * ndtri((np.arange(constants.N_DRAWS) + 0.5) / constants.N_DRAWS)
    limit = min(float(mean.max()), float(rest.sum()))  # so that draws are from 0 to 1, around the mean
    draws = mean + np.clip(steps, -limit, limit)[:, None] * tilt
    return replace(target, shares=Shares(draws, target.shares.midpoint), expected_error=lesson.expected_error)


def learn_teacher(base: Base, trainer: Trainer, held_out: HeldOut, unseen: float) -> Lessons | None:
    """Review a teacher's labels in every target; None without a teacher.

    `unseen` is as in `align_targets`.
    """
    domains, anchors = base.domains, base.anchors
    if not domains.words:
        return None
    groups, lessons = anchors.list_target_rows(domains), []
    first = find_first_scores(base, trainer)[1]
    for name, group in zip(domains.targets, groups, strict=True):
        lesson = None
        if name in domains.words:
            lesson = _learn_lesson(base, domains.words[name], anchors.n_labelled + group)
            if domains.has_source:
                _compare_with_source(first[group], lesson.words, name)
                estimate = estimate_target(base, held_out, first, group, unseen)
                lesson = replace(lesson, shares=_average_shares(lesson.shares, estimate))
        lessons.append(lesson)
    return Lessons(groups, lessons)


def _average_shares(told: np.ndarray, estimate: Shares) -> np.ndarray:
    """Average the class shares of teacher and source; those of the teacher where the source's say nothing."""
    return told if estimate.is_assumed or estimate.is_doubtful else (told + estimate.mean) / 2


def _learn_lesson(base: Base, said: Words, anchors: np.ndarray) -> Lesson:
    """Review a teacher's labels of one target on its anchors."""
    K, C, n_classes = base.chosen.K, base.chosen.C, base.labels.n_classes
    words = said.take(base.anchors.position[anchors])
    rows = _draw_rows(words.taught)
    among, sample = submatrix(K, anchors[rows], anchors[rows]), words.take(rows)
    held_out, noise = review_labels(among, C, sample, n_classes)
    student = least_squares(among, signs(sample.codes, n_classes), C, np.ones(len(rows)))
    scores = student.scores(submatrix(K, anchors, anchors[rows]))
    scores[rows] = held_out
    shares, is_silent = noise.remove(said.codes[said.taught]), np.ones(len(anchors), dtype=bool)
    is_silent[words.taught] = False
    if is_silent.any():
        part = 1 - len(said.taught) / len(said.codes)
        shares = (1 - part) * shares + part * noise.find_probabilities(scores[is_silent]).mean(axis=0)
    return Lesson(words, scores, noise, shares, _expect_error(noise, held_out, sample.codes))


def _expect_error(noise: Noise, scores: np.ndarray, codes: np.ndarray) -> ExpectedError:
    """Expect the error of a held-out student; at best that of both, if they err independently.

    Of few labels bounds alone are known: the upper one is at least the share of labels that it contradicts.
    """
    p, others = noise.find_probabilities(scores), len(noise.offset) - 1
    is_label = codes[:, None] == np.arange(others + 1)
    both = p * np.where(is_label, 1 - noise.share, noise.share / others)
    low = float(1 - (both.max(axis=1) / both.sum(axis=1)).mean())
    error = float(1 - p.max(axis=1).mean())
    low, high = min(low, error), min(constants.TAUGHT_HIGH * error, 1.0)
    if len(codes) < constants.FEW_TAUGHT:
        return ExpectedError(None, low, max(high, float(np.mean(p.argmax(axis=1) != codes))))
    return ExpectedError(error, low, high)


def _compare_with_source(scores: np.ndarray, words: Words, name: Any) -> None:
    """Warn if the source's scores order the teacher's classes the other way round."""
    auc = mean_auc(scores[words.taught], words.codes[words.taught])
    if auc < constants.LEAST_AGREEMENT:
        warn(
            f"the teacher contradicts the source in {name!r}: scores of the source order its classes with an "
            f"area under the ROC curve of {auc:.2f}, where 0.5 is chance; do the labels mean the same?",
            code="teacher-contradicts",
        )
