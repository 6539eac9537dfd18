"""Choosing noise, depth and C without target labels.

A rule scores candidates from inner products alone, so that all depths and all C of one noise level
share one stack and its running Gram matrices. Rules see the labels of the source and no others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold

from .._core import Array, submatrix
from .._inputs import check_count, check_noise, check_positive
from ..errors import warn
from .linear import Dual, Solver, held_out_least_squares, least_squares, predict_codes, signs, solve_path

TINY = 1e-12  # least variance of an output, so that a constant one divides by more than 0


@dataclass(frozen=True)
class Grid:
    """The candidates: values of noise, depth and C in ascending order, and those that were named first."""

    noises: tuple[float, ...]
    depths: tuple[int, ...]
    Cs: tuple[float, ...]
    preferred: tuple[float, int, float]  # noise, depth, C

    @property
    def n_candidates(self) -> int:
        """Number of points."""
        return len(self.noises) * len(self.depths) * len(self.Cs)


def check_grid(noise: Any, n_layers: Any, C: Any) -> Grid:
    """Return the grid that a user gave: for each parameter a value, or a list to choose from."""
    noises = [check_noise(value) for value in _list_values(noise, "noise")]
    depths = [check_count(value, "n_layers") for value in _list_values(n_layers, "n_layers")]
    Cs = [check_positive(value, "C") for value in _list_values(C, "C")]
    preferred = noises[0], depths[0], Cs[0]
    return Grid(tuple(sorted(noises)), tuple(sorted(depths)), tuple(sorted(Cs)), preferred)


def single_candidate(noise: float, n_layers: int, C: float) -> Grid:
    """Return a grid that leaves no choice."""
    return Grid((noise,), (n_layers,), (C,), (noise, n_layers, C))


def _list_values(value: Any, name: str) -> Sequence[Any]:
    if isinstance(value, list | tuple | np.ndarray):
        if len(value) == 0:
            raise ValueError(f"{name}={value!r} is empty; give a value or a list of values")
        return [item.item() if isinstance(item, np.generic) else item for item in value]
    return [value]


def restrict_grid(grid: Grid, selection: str, codes: np.ndarray, has_target: bool) -> Grid:
    """Return the candidates that a rule can compare; refuse a rule that lacks what it needs.

    With a single row of a class there is no cross-validation: "one-se" then takes what is preferred.
    """
    if grid.n_candidates > 1 and selection in NEED_TARGET and not has_target:
        raise ValueError(
            f'selection="{selection}" needs target rows: pass X_target, or selection="source-cv"'
        )
    has_singleton_class = np.bincount(codes).min() < 2
    return single_candidate(*grid.preferred) if selection == ONE_SE and has_singleton_class else grid


@dataclass(frozen=True)
class Problem:
    """A labelled problem, of classes or of numbers, whose rows are known by their inner products.

    The first ``len(codes)`` rows of a Gram matrix are the labelled ones; target rows may follow.
    """

    codes: np.ndarray  # (n,) class codes of the labelled rows
    n_classes: int
    weight: np.ndarray  # (n,) weight of each labelled row
    folds: list[tuple[np.ndarray, np.ndarray]]  # train and test rows among the labelled
    solver: Solver
    outputs: np.ndarray | None = None  # (n, n_outputs) numbers, or tags as +-1, to predict instead of classes

    @property
    def Y(self) -> np.ndarray:
        """What scores should be, of shape (n, n_outputs)."""
        return signs(self.codes, self.n_classes) if self.outputs is None else self.outputs

    def take(self, rows: np.ndarray, folds: list[tuple[np.ndarray, np.ndarray]]) -> Problem:
        """Return the problem of some of the labelled rows, with these folds."""
        outputs = None if self.outputs is None else self.outputs[rows]
        return replace(self, codes=self.codes[rows], weight=self.weight[rows], folds=folds, outputs=outputs)

    def score(self, scores: np.ndarray) -> float:
        """Share of the labelled rows that scores put into the right class; of numbers, the R^2."""
        if self.outputs is None:
            return float(np.mean(predict_codes(scores) == self.codes))
        spread = np.maximum(np.average((self.outputs - self.outputs.mean(axis=0)) ** 2, axis=0), TINY)
        return float(np.mean(1 - np.mean((scores - self.outputs) ** 2, axis=0) / spread))

    def fit(self, K: Array, rows: np.ndarray, C: float) -> Dual:
        """Train a classifier on the labelled `rows`, whose Gram matrix is `K`."""
        return self.solver(K, self.Y[rows], C, self.weight[rows])

    def fit_path(self, K: Array, rows: np.ndarray, Cs: Sequence[float]) -> list[Dual]:
        """Train classifiers on the labelled `rows`, whose Gram matrix is `K`, for each C."""
        return solve_path(self.solver, K, self.Y[rows], Cs, self.weight[rows])


Rule = Callable[[Array, Problem, Sequence[float]], np.ndarray]


def draw_folds(codes: np.ndarray, n_folds: int, random_state: Any) -> list[tuple[np.ndarray, np.ndarray]]:
    """Draw stratified folds, fewer where a class is too small for as many."""
    smallest = int(np.bincount(codes).min())
    if smallest < 2:
        raise ValueError(
            "choosing among candidates needs at least 2 labelled rows of every class; "
            "give single values for noise, n_layers and C, or label more rows"
        )
    splitter = StratifiedKFold(min(n_folds, smallest), shuffle=True, random_state=random_state)
    return list(splitter.split(codes, codes))


def held_out_scores(K: Array, problem: Problem, Cs: Sequence[float]) -> list[np.ndarray]:
    """Scores of every labelled row by a classifier that has not seen its fold: (n, n_outputs) for each C."""
    Y, n = problem.Y, len(problem.codes)
    if problem.solver is least_squares and isinstance(K, np.ndarray) and problem.weight.all():
        parts = [test for _, test in problem.folds]
        return [held_out_least_squares(K[:n, :n], Y, C, problem.weight, parts) for C in Cs]
    scores = [np.empty(Y.shape) for _ in Cs]
    for train, test in problem.folds:
        duals = problem.fit_path(submatrix(K, train, train), train, Cs)
        K_test = submatrix(K, test, train)
        for scores_at_C, dual in zip(scores, duals, strict=True):
            scores_at_C[test] = dual.scores(K_test)
    return scores


def source_cv(K: Array, problem: Problem, Cs: Sequence[float]) -> np.ndarray:
    """Accuracy in cross-validation on the labelled source, for each C (section 3.4; the paper's rule)."""
    return np.array([problem.score(scores) for scores in held_out_scores(K, problem, Cs)])


def reverse(K: Array, problem: Problem, Cs: Sequence[float]) -> np.ndarray:
    """Reverse validation, for each C.

    Train on the source, give the target rows pseudo-labels, train on those alone, and score on source
    rows held out from the start: where a representation keeps the domains apart, the pseudo-labels teach
    little about the source.
    """
    n, n_correct = len(problem.codes), np.zeros(len(Cs))
    K_target = K[n:, n:]
    for train, test in problem.folds:
        K_train, K_there, K_back = submatrix(K, train, train), K[n:][:, train], K[test][:, n:]
        duals = problem.fit_path(K_train, train, Cs)
        for i, (C, dual) in enumerate(zip(Cs, duals, strict=True)):
            pseudo_labels = predict_codes(dual.scores(K_there))
            predicted = _predict_from_target(K_target, K_back, pseudo_labels, problem, C)
            n_correct[i] += np.sum(predicted == problem.codes[test])
    return n_correct / n


def _predict_from_target(
    K: Array, K_back: Array, pseudo_labels: np.ndarray, problem: Problem, C: float
) -> np.ndarray:
    """Predict source rows by a classifier that is trained on target rows with pseudo-labels."""
    if len(np.unique(pseudo_labels)) == 1:
        return np.full(len(K_back), pseudo_labels[0])
    dual = problem.solver(K, signs(pseudo_labels, problem.n_classes), C, np.ones(len(pseudo_labels)))
    return predict_codes(dual.scores(K_back))


def importance_cv(K: Array, problem: Problem, Cs: Sequence[float]) -> np.ndarray:
    """Cross-validated accuracy on the source, rows weighted by how much they look like the target.

    The weight of a source row is the odds of target against source given by a least-squares domain
    classifier that has not seen the row, at most `LARGEST_ODDS` times the mean.
    """
    scores = held_out_scores(K, problem, Cs)
    odds = target_odds(K, len(problem.codes), Cs[len(Cs) // 2])
    right = [predict_codes(scores_at_C) == problem.codes for scores_at_C in scores]
    return np.array([odds @ is_right for is_right in right]) / odds.sum()


LARGEST_ODDS = 20.0


def target_odds(K: Array, n: int, C: float) -> np.ndarray:
    """Odds of being a target row, for each of the n labelled rows, from the half that the row is not in."""
    halves = [np.arange(len(K))[start::2] for start in (0, 1)]
    is_target, scores = np.where(np.arange(len(K)) < n, -1.0, 1.0)[:, None], np.zeros(len(K))
    for half, other in (halves, halves[::-1]):
        dual = least_squares(submatrix(K, half, half), is_target[half], C, np.ones(len(half)))
        scores[other] = dual.scores(submatrix(K, other, half))[:, 0]
    odds = np.exp(2 * scores[:n])  # least squares on +-1 estimates 2 P - 1, so this is about P / (1 - P)
    return np.minimum(odds, LARGEST_ODDS * odds.mean())


RULES: dict[str, Rule] = {"source-cv": source_cv, "reverse": reverse, "importance-cv": importance_cv}
NEED_TARGET = ("reverse", "importance-cv")
ONE_SE = "one-se"
SELECTIONS = (*RULES, ONE_SE)


def find_rule(selection: str) -> Rule:
    """Return what scores candidates: a rule, or the cross-validation that "one-se" compares by."""
    return source_cv if selection == ONE_SE else RULES[selection]


def is_clearly_better(best: float, preferred: float, n: int) -> bool:
    """Tell whether an accuracy over n rows is above another by more than its standard error.

    The one-standard-error rule: differences that the noise of n rows explains are no reason to leave what was
    preferred beforehand.
    """
    return best - preferred > float(np.sqrt(max(best * (1 - best), 0) / n))


@dataclass(frozen=True)
class Candidate:
    """One point of the grid and its score by the rule; NaN where there was nothing to choose.

    Candidates are visited from less noise, fewer layers and smaller C upwards, and the first of equals
    is taken.
    """

    noise: float
    n_layers: int
    C: float
    score: float = float("nan")

    @property
    def point(self) -> tuple[float, int, float]:
        """Noise, depth and C."""
        return self.noise, self.n_layers, self.C


def choose_candidate(
    candidates: Sequence[Candidate], selection: str, preferred: tuple[float, int, float], n: int
) -> Candidate:
    """Return the candidate of highest score, the first of equals.

    With "one-se" that is the preferred one unless another is clearly better; n labelled rows were scored.
    """
    best = max(candidates, key=lambda candidate: candidate.score)
    if selection != ONE_SE:
        return best
    default = next(candidate for candidate in candidates if candidate.point == preferred)
    return best if is_clearly_better(best.score, default.score, n) else default


@dataclass(frozen=True)
class Tie:
    """Other candidates scored as high as the chosen one."""

    n_others: int
    is_first: bool  # whether the first of the equals was chosen

    def __str__(self) -> str:
        kept = "the simplest was taken" if self.is_first else "the preferred one was kept"
        others = "1 other candidate" if self.n_others == 1 else f"{self.n_others} other candidates"
        return f"{others} tied with the chosen one; {kept}"


@dataclass(frozen=True)
class Edge:
    """The chosen value of a parameter is the smallest or the largest that was offered."""

    parameter: str
    value: float
    values: tuple[float, ...]

    def __str__(self) -> str:
        values = [float(f"{value:g}") for value in self.values]
        return f"the chosen {self.parameter}={self.value:g} is at the edge of {values}"


def note_ties_and_edges(
    chosen: Candidate, candidates: Sequence[Candidate], default: tuple[float, int, float] | None = None
) -> list[Tie | Edge]:
    """Return notes on a choice that was a tie, or lies at the edge of what was offered.

    The `default`, kept because nothing was clearly better, is no edge: the user chose it.
    """
    notes: list[Tie | Edge] = []
    best = max(candidate.score for candidate in candidates)
    tied = [candidate for candidate in candidates if candidate.score == chosen.score == best]
    if len(tied) > 1:
        notes.append(Tie(len(tied) - 1, tied[0] is chosen))
    if chosen.point == default:
        return notes
    for name in ("noise", "n_layers", "C"):
        values = tuple(sorted({getattr(candidate, name) for candidate in candidates}))
        value = getattr(chosen, name)
        has_nothing_beyond = name == "n_layers" and value == 1
        if len(values) > 1 and value in (values[0], values[-1]) and not has_nothing_beyond:
            notes.append(Edge(name, value, values))
    return notes


def warn_of_edges(notes: Sequence[Tie | Edge]) -> None:
    """Warn of choices at the edge of the grid: the best value may lie beyond."""
    for note in notes:
        if isinstance(note, Edge):
            message = f"{note}: a better value may lie beyond; widen the grid"
            warn(message)
