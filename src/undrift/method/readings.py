"""Readings: what the target says under a story of how it differs from the source.

From unlabelled rows alone it cannot be told whether words changed their meaning or the mix of classes moved.
A story assumes an answer. Every story is read by the same steps: its move of the target's rows, its shares,
and rounds of pseudo-labels. Layers, Gram matrix and the labelled rows' classifier are those of all stories.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.optimize import brentq
from sklearn.linear_model import LogisticRegression

from ..core import Array, Rows, array_ops, shifted_solve
from .align import choose_move
from .calibrate import class_probabilities, find_border
from .least_squares import Conditioned, multiply, predict_codes, signs
from .problem import UNLABELLED
from .settings import Settings
from .shares import SourceScores, find_midpoint
from .stories import Story
from .teacher import Lesson, measure_size

_MOST_STEPS, _TOLERANCE = 1_000, 1e-6  # of logistic regression


@dataclass(frozen=True)
class Evidence:
    """What the labelled rows say of the targets, before any story."""

    conditioned: Conditioned
    source: SourceScores  # of held-out labelled rows
    temperature: float  # divisor that turns these scores into log odds
    groups: list[np.ndarray]  # the anchors of every target, counted from the first target anchor
    centres: list[int]  # positions of the targets' centres among the directions
    codes: np.ndarray  # (m,) classes of target anchors, `UNLABELLED` for most
    C: float

    def list_raw_scores(self) -> list[np.ndarray]:
        """Return the scores of every target's anchors as they come, not centred."""
        scores, m = self.conditioned.scores, self.conditioned.n_targets
        return [
            scores[group] + scores[m + centre]
            for group, centre in zip(self.groups, self.centres, strict=True)
        ]


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
    return Reading(story, scores, borders, borders[0], 1.0, Linear(weights, intercept))


def read(
    evidence: Evidence,
    story: Story,
    settings: Settings,
    lessons: Sequence[Lesson | None] | None = None,
    *,
    learns: bool = False,
) -> Reading:
    """Read the targets under one story: move their rows, then train in rounds of pseudo-labels.

    With `learns`, target rows of known classes are trained on as well. With `lessons` of a teacher, which has
    one for some of the targets, pseudo-labels are those of student and teacher together.
    """
    conditioned, source = evidence.conditioned, evidence.source
    groups, midpoints, n_classes = evidence.groups, None, source.n_classes
    if story.shares is not None:
        pairs = zip(evidence.list_raw_scores(), story.shares, strict=True)
        midpoints = [find_midpoint(raw, source, shares, settings.shares) for raw, shares in pairs]
    moves = choose_moves(conditioned, evidence.centres, midpoints, is_centred=story.is_centred)
    start = move_targets(conditioned, groups, moves)
    factor = 1.0 if n_classes == 2 else settings.shares.many_class_temperature
    temperature = evidence.temperature * factor
    natural = find_border(source.scores, temperature, source.shares)

    def find_borders(scores: np.ndarray) -> list[np.ndarray]:
        if story.shares is None:
            return [natural] * len(groups)
        pairs = zip(groups, story.shares, strict=True)
        return [find_border(scores[group], temperature, shares) for group, shares in pairs]

    known = evidence.codes if learns else np.full(len(evidence.codes), UNLABELLED)
    is_known = known != UNLABELLED
    weight, codes = np.where(is_known, settings.rounds.label_weight, 0.0), known
    learner = Learner(start, n_classes, evidence.C)
    coef, scores = learner.train(codes, weight)
    taught = lessons or [None] * len(groups)
    rounds = settings.rounds if lessons is None else settings.teacher
    seen = scores if lessons is None else add_students(scores, groups, lessons)
    for portion in rounds.portions if groups else ():
        codes, weight = known.copy(), np.where(is_known, settings.rounds.label_weight, 0.0)
        for group, border, lesson in zip(groups, find_borders(seen), taught, strict=True):
            both = seen[group] + border
            if lesson is not None:
                both = both + lesson.weigh(both) * lesson.words.scores
            guesses, chosen = find_surest(both, temperature, portion)
            is_new = ~is_known[group]
            codes[group[is_new]] = guesses[is_new]
            weight[group[chosen[is_new[chosen]]]] = rounds.weight
        coef, scores = learner.train(codes, weight)
        seen = scores
    if lessons is not None:
        temperature = match_doubt(scores, groups, find_borders(scores), lessons, temperature)
    moved = Moved(np.vstack([coef, sum_moves(coef, groups, moves)]), moves)
    borders = np.reshape(find_borders(scores), (len(groups), scores.shape[1]))
    return Reading(story, scores, borders, natural, temperature, moved)


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

    if find_excess(-3.0) > 0:
        return temperature * float(np.exp(-3.0))
    if find_excess(3.0) < 0:
        return temperature * float(np.exp(3.0))
    return temperature * float(np.exp(brentq(find_excess, -3.0, 3.0, xtol=1e-9)))


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


def find_surest(scores: np.ndarray, temperature: float, portion: float) -> tuple[np.ndarray, np.ndarray]:
    """Return predicted classes, and the surest rows: of every predicted class, this portion of its rows."""
    p, codes, rows = class_probabilities(scores, temperature), predict_codes(scores), []
    for code in np.unique(codes):
        members = np.flatnonzero(codes == code)
        rows.append(members[np.argsort(-p[members, code], kind="stable")[: int(portion * len(members))]])
    return codes, np.concatenate(rows)


@dataclass(frozen=True)
class Learner:
    """Trains on target anchors with classes and weights, beside the labelled rows."""

    start: Start
    n_classes: int
    C: float

    def train(self, codes: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the coefficients of the target anchors, and their scores."""
        S, counted = self.start.covariance, np.flatnonzero(weight)
        coef = np.zeros(self.start.scores.shape)
        if not len(counted):
            return coef, self.start.scores
        gaps = signs(codes[counted], self.n_classes) - self.start.scores[counted]
        coef[counted] = shifted_solve(S, 1 / (self.C * weight[counted]), gaps, counted)
        return coef, self.start.scores + multiply(S, coef)
