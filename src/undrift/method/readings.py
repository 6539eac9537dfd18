"""Readings: what the target says under a story of how it differs from the source.

From unlabelled rows alone it cannot be told whether words changed their meaning or the mix of classes moved.
A story assumes an answer. Every story is read by the same steps: its move of the target's rows, its shares,
and rounds of pseudo-labels. Layers, Gram matrix and the labelled rows' classifier are those of all stories.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from scipy.optimize import brentq
from sklearn.linear_model import LogisticRegression

from ..core import Array, Rows, array_ops, shifted_solve
from ..errors import warn
from ..inputs import to_host
from .anchors import Anchors, Facts, class_directions
from .least_squares import Conditioned, Gram, LeastSquares, multiply
from .scores import (
    SourceScores,
    as_logits,
    class_probabilities,
    find_border,
    find_midpoint,
    find_offset,
    fit_temperature,
    measure_auc,
    predict_codes,
    signs,
)
from .settings import Settings
from .stories import SOURCE_ONLY, Story
from .teacher import Lesson, learn_lesson, measure_size

_MOST_STEPS, _TOLERANCE = 1_000, 1e-6  # of logistic regression
# Scores of the directions add up to zero over the classes, but for the rounding of float32. Directions that
# scores hardly tell apart, by this part of the others, would be followed a thousand class distances far.
_LEAST_SLOPE = 1e-3
_LEAST_AGREEMENT = 0.4  # area under the ROC curve of the source's scores for a teacher's classes
_FARTHEST = 8.0  # logarithm of the factor by which a teacher's doubt changes a temperature, at most


@dataclass(frozen=True)
class Evidence:
    """What the labelled rows and the teachers say of the targets, before any story."""

    anchors: Anchors
    facts: Facts
    conditioned: Conditioned
    source: SourceScores  # of held-out labelled rows
    temperature: float  # divisor that turns these scores into log odds
    C: float
    lessons: list[dict[str, Lesson]]  # of every target, by teacher

    @property
    def held_out(self) -> np.ndarray:
        """Class probabilities of the labelled rows by classifiers that have not seen them."""
        logits = as_logits(self.source.scores) / self.temperature
        return class_probabilities(logits + find_offset(logits, self.source.shares), 1.0)

    @property
    def codes(self) -> np.ndarray:
        """Classes of the target anchors, `UNLABELLED` for most."""
        return self.anchors.target_codes

    @property
    def centres(self) -> range:
        """Positions of the targets' centres among the directions."""
        return range(self.facts.n_sources, len(self.facts.names))

    @cached_property
    def groups(self) -> list[np.ndarray]:
        """The anchors of every target, counted from the first target anchor."""
        domain = self.anchors.domain[self.anchors.n_labelled :]
        return [np.flatnonzero(domain == k) for k in self.centres]

    @cached_property
    def raw_scores(self) -> list[np.ndarray]:
        """Scores of every target's anchors as they come, not centred."""
        scores, m = self.conditioned.scores, self.conditioned.n_targets
        pairs = zip(self.groups, self.centres, strict=True)
        return [scores[group] + scores[m + centre] for group, centre in pairs]


def learn_labelled(anchors: Anchors, gram: Gram, C: float) -> LeastSquares:
    """Train on the labelled anchors, all classes alike."""
    n = gram.n_labelled
    K, codes = gram.products[:n, :n], anchors.codes[:n]
    with array_ops(K).full_precision():
        return LeastSquares.fit(K, signs(codes, codes.max() + 1), C / gram.scale, anchors.weight)


def measure_accuracy(anchors: Anchors, gram: Gram, C: float, folds: Sequence[np.ndarray]) -> float:
    """Return the accuracy on labelled anchors that are held out."""
    scores = learn_labelled(anchors, gram, C).score_held_out(folds)
    return float(np.mean(predict_codes(scores) == anchors.codes[: gram.n_labelled]))


def gather_evidence(anchors: Anchors, facts: Facts, gram: Gram, C: float, settings: Settings) -> Evidence:
    """Score held-out labelled rows, condition the targets on the labelled rows, and review teachers."""
    gram = gram.suit(C, settings.rounds.label_weight)
    source, n, n_classes = learn_labelled(anchors, gram, C), gram.n_labelled, len(facts.classes)
    codes, folds = anchors.codes[:n], anchors.draw_folds(settings.anchors.n_folds, facts.seed)
    scores = source.scores if folds is None else source.score_held_out(folds)
    conditioned = Conditioned.of(gram, source, class_directions(codes, n_classes))
    temperature = fit_temperature(scores, codes, anchors.weight)
    held_out = SourceScores(scores, codes, n_classes)
    evidence = Evidence(anchors, facts, conditioned, held_out, temperature, C / gram.scale, [])
    lessons = []
    pairs = zip(facts.taught, evidence.groups, strict=True)
    for i, (told, group) in enumerate(pairs):
        given = evidence.C, n_classes, settings
        by_teacher = {name: learn_lesson(gram, n + group, words, *given) for name, words in told.items()}
        lessons.append(by_teacher)
        for words in told.values() if facts.has_source else ():
            auc = measure_auc(evidence.raw_scores[i][words.taught], words.codes[words.taught])
            if auc < _LEAST_AGREEMENT:
                warn(
                    f"the teacher contradicts the source in {facts.targets[i]!r}: scores of the source order "
                    f"its classes with an area under the ROC curve of {auc:.2f}, where 0.5 is chance; do the "
                    "labels mean the same?",
                    code="teacher-contradicts",
                )
    return replace(evidence, lessons=lessons)


@dataclass(frozen=True)
class Start:
    """The target's rows moved, before any of their labels or pseudo-labels."""

    scores: np.ndarray  # (m, n_outputs)
    covariance: Array  # (m, m)


@dataclass(frozen=True)
class Moved:
    """A classifier by coefficients of target anchors and directions, beside those of the labelled rows."""

    coef: np.ndarray  # (m + n_directions, n_outputs)
    moves: np.ndarray  # (n_directions, n_targets) that were added to the rows of the targets


@dataclass(frozen=True)
class Linear:
    """A classifier of the input, without layers."""

    weights: np.ndarray  # (d, n_outputs)
    intercept: np.ndarray  # (n_outputs,)


@dataclass(frozen=True)
class Reading:
    """The targets as read under one story."""

    story: Story
    scores: np.ndarray  # (m, n_outputs) of the target anchors
    borders: np.ndarray  # (n_targets, n_outputs) added to scores: 0 is then the decision threshold
    natural: np.ndarray  # (n_outputs,) the same for rows of the source
    temperature: float
    classifier: Moved | Linear
    teacher_weight: np.ndarray  # (n_targets,) of the log odds of the story's teacher, beside these

    def find_probabilities(self, groups: Sequence[np.ndarray]) -> np.ndarray:
        """Return the class probabilities of the target anchors, (m, n_classes)."""
        scores = self.scores.copy()
        for group, border in zip(groups, self.borders, strict=True):
            scores[group] += border
        return class_probabilities(scores, self.temperature)


def read_source_only(
    story: Story, X: Rows, codes: np.ndarray, weight: np.ndarray, targets: Rows, n_targets: int, C: float
) -> Reading:
    """Read the targets by logistic regression on the labelled rows, scaled to a mean square norm of 1."""
    size = float(np.sqrt((X.multiply(X).sum() if sp.issparse(X) else np.square(X).sum()) / X.shape[0])) or 1.0
    learner = LogisticRegression(C=C, max_iter=_MOST_STEPS, tol=_TOLERANCE)
    learner.fit(X / size, codes, sample_weight=weight)
    weights, intercept = learner.coef_.T / size, learner.intercept_
    scores = targets @ weights + intercept
    borders = np.zeros((n_targets, len(intercept)))
    return Reading(story, scores, borders, borders[0], 1.0, Linear(weights, intercept), np.zeros(n_targets))


def read(evidence: Evidence, story: Story, settings: Settings, *, learns: bool = False) -> Reading:
    """Read the targets under one story: move their rows, then train in rounds of pseudo-labels.

    With `learns`, target rows of known classes are trained on as well. In the story of a teacher
    pseudo-labels are those of student and teacher together.
    """
    anchors, groups, source = evidence.anchors, evidence.groups, evidence.source
    if story.name == SOURCE_ONLY:
        n, X = anchors.n_labelled, to_host(anchors.X)
        given = X[:n], anchors.codes[:n], anchors.given_weight, X[n:], len(groups)
        return read_source_only(story, *given, settings.votes.source_only_C)
    conditioned, midpoints = evidence.conditioned, None
    if story.shares is not None:
        pairs = zip(evidence.raw_scores, story.shares, strict=True)
        midpoints = [find_midpoint(raw, source, shares, settings.shares) for raw, shares in pairs]
    moves = choose_moves(conditioned, evidence.centres, midpoints, is_centred=story.is_centred)
    start = move_targets(conditioned, groups, moves)
    factor = 1.0 if source.n_classes == 2 else settings.shares.many_class_temperature
    temperature = evidence.temperature * factor
    natural = find_border(source.scores, temperature, source.shares)

    def find_borders(scores: np.ndarray) -> list[np.ndarray]:
        if story.shares is None:
            return [natural] * len(groups)
        pairs = zip(groups, story.shares, strict=True)
        return [find_border(scores[group], temperature, shares) for group, shares in pairs]

    is_known = anchors.is_known if learns else np.zeros(len(evidence.codes), dtype=bool)
    known_weight = np.where(is_known, settings.rounds.label_weight, 0.0)
    coef, scores = learn(start, evidence.codes, known_weight, source.n_classes, evidence.C)
    lessons = [each.get(story.name) for each in evidence.lessons]
    is_taught = any(lessons)
    seen = add_students(scores, groups, lessons)
    rounds = settings.teacher if is_taught else settings.rounds
    for portion in rounds.portions if groups else ():
        codes, weight = evidence.codes.copy(), known_weight.copy()
        for group, border, lesson in zip(groups, find_borders(seen), lessons, strict=True):
            both = seen[group] + border
            if lesson is not None:
                both = both + lesson.weigh(both) * lesson.words.scores
            guesses, chosen = find_surest(both, temperature, portion)
            is_new = ~is_known[group]
            codes[group[is_new]] = guesses[is_new]
            weight[group[chosen[is_new[chosen]]]] = rounds.weight
        coef, scores = learn(start, codes, weight, source.n_classes, evidence.C)
        seen = scores
    if is_taught:
        temperature = match_doubt(scores, groups, find_borders(scores), lessons, temperature)
    moved = Moved(np.vstack([coef, sum_moves(coef, groups, moves)]), moves)
    borders = np.reshape(find_borders(scores), (len(groups), scores.shape[1]))
    trust = np.zeros(len(groups))
    for i, (group, lesson) in enumerate(zip(groups, lessons, strict=True)):
        if lesson is not None:
            trust[i] = lesson.weigh(scores[group] + borders[i]) / temperature
    return Reading(story, scores, borders, natural, temperature, moved, trust)


def learn(
    start: Start, codes: np.ndarray, weight: np.ndarray, n_classes: int, C: float
) -> tuple[np.ndarray, np.ndarray]:
    """Train on target anchors with classes and weights, beside the labelled rows.

    Returns the coefficients of the target anchors, and their scores.
    """
    S, counted, coef = start.covariance, np.flatnonzero(weight), np.zeros(start.scores.shape)
    if not len(counted):
        return coef, start.scores
    gaps = signs(codes[counted], n_classes) - start.scores[counted]
    coef[counted] = shifted_solve(S, 1 / (C * weight[counted]), gaps, counted)
    return coef, start.scores + multiply(S, coef)


def add_students(
    scores: np.ndarray, groups: Sequence[np.ndarray], lessons: Sequence[Lesson | None]
) -> np.ndarray:
    """Add the scores of students that were held out to those of the source's classifier."""
    both = scores.copy()
    for group, lesson in zip(groups, lessons, strict=True):
        if lesson is not None:
            both[group] += measure_size(scores[group]) / measure_size(lesson.scores) * lesson.scores
    return both


def match_doubt(
    scores: np.ndarray,
    groups: Sequence[np.ndarray],
    borders: Sequence[np.ndarray],
    lessons: Sequence[Lesson | None],
    temperature: float,
) -> float:
    """Return the temperature at which the mean doubt is what students and teacher together leave."""
    pairs = [
        (scores[group] + border, lesson)
        for group, border, lesson in zip(groups, borders, lessons, strict=True)
    ]
    taught = [(shifted, lesson.doubt) for shifted, lesson in pairs if lesson is not None]

    def find_excess(log_factor: float) -> float:
        T = temperature * np.exp(log_factor)
        return float(
            np.mean(
                [1 - class_probabilities(shifted, T).max(axis=1).mean() - doubt for shifted, doubt in taught]
            )
        )

    if find_excess(-_FARTHEST) > 0:
        return temperature * float(np.exp(-_FARTHEST))
    if find_excess(_FARTHEST) < 0:
        return temperature * float(np.exp(_FARTHEST))
    return temperature * float(np.exp(brentq(find_excess, -_FARTHEST, _FARTHEST, xtol=1e-9)))


def sum_moves(coef: np.ndarray, groups: Sequence[np.ndarray], moves: np.ndarray) -> np.ndarray:
    """Return the coefficients of the directions that moved rows of these coefficients stand for."""
    sums = [coef[group].sum(axis=0) for group in groups]
    return moves @ np.reshape(sums, (len(groups), coef.shape[1]))


def move_targets(conditioned: Conditioned, groups: Sequence[np.ndarray], moves: np.ndarray) -> Start:
    """Move the rows of every target by a combination of directions: (n_directions, n_targets)."""
    S, m, directions = conditioned.covariance, conditioned.n_targets, conditioned.directions
    ops = array_ops(S)
    owner = np.empty(m, dtype=int)
    for i, group in enumerate(groups):
        owner[group] = i
    by_row = moves[:, owner]  # (n_directions, m)
    scores = conditioned.scores[:m] + by_row.T @ conditioned.scores[directions]
    among = multiply(S[directions, directions], moves)  # (n_directions, n_targets)
    cross = multiply(S[:m, directions], moves)[:, owner]  # row i with the move of row j
    cross = ops.like(cross, S)
    both = ops.like((moves.T @ among)[owner][:, owner], S)
    return Start(scores, S[:m, :m] + cross + cross.T + both)


def choose_moves(
    conditioned: Conditioned,
    centres: Sequence[int],
    midpoints: Sequence[np.ndarray] | None,
    *,
    is_centred: bool,
) -> np.ndarray:
    """Return the move of every target, (n_directions, n_targets).

    With `midpoints`, scores at which the classes of the targets meet, these come to lie on the decision
    boundary. Else a target stays at its own centre, or with `is_centred` at that of the source.
    """
    scores = conditioned.scores[conditioned.directions]
    n_classes = conditioned.combined.shape[1]
    moves = np.zeros((len(scores), len(centres)))
    for i, centre in enumerate(centres):
        if midpoints is not None:
            change = scores[centre] - midpoints[i]
            moves[-n_classes:, i] = choose_move(scores[-n_classes:], change)
        elif not is_centred:
            moves[centre, i] = 1.0
    return moves


def choose_move(slopes: np.ndarray, change: np.ndarray) -> np.ndarray:
    """Return the shortest combination of class directions, (n_classes,), that changes scores by `change`.

    `slopes`, (n_classes, n_outputs), are the scores of the directions.
    """
    return np.linalg.lstsq(slopes.T, change, rcond=_LEAST_SLOPE)[0]


def find_surest(scores: np.ndarray, temperature: float, portion: float) -> tuple[np.ndarray, np.ndarray]:
    """Return predicted classes, and the surest rows: of every predicted class, this portion of its rows."""
    p, codes, rows = class_probabilities(scores, temperature), predict_codes(scores), []
    for code in np.unique(codes):
        members = np.flatnonzero(codes == code)
        rows.append(members[np.argsort(-p[members, code], kind="stable")[: int(portion * len(members))]])
    return codes, np.concatenate(rows)
