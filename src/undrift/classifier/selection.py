"""Choosing noise, depth and C without target labels.

A rule scores candidates from inner products alone, so that all depths and all C of one noise level
share one stack and its running Gram matrices. Rules see the labels of the source and no others.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold

from .._core import Array, submatrix
from ..errors import UndriftWarning
from .linear import (
    Dual,
    Solver,
    held_out_least_squares,
    least_squares,
    signs,
    solved_path,
    winners,
)


@dataclass(frozen=True)
class Problem:
    """A labelled classification problem whose rows are known by their inner products.

    The first ``len(codes)`` rows of a Gram matrix are the labelled ones; target rows may follow.
    """

    codes: np.ndarray  # (n,) class codes of the labelled rows
    n_classes: int
    weight: np.ndarray  # (n,) weight of each labelled row
    folds: list[tuple[np.ndarray, np.ndarray]]  # train and test rows among the labelled
    solver: Solver

    @property
    def guess(self) -> float:
        """Accuracy of calling every labelled row by the commonest class."""
        return float(np.bincount(self.codes).max() / len(self.codes))

    def accuracy(self, scores: np.ndarray) -> float:
        """Share of the labelled rows that scores put into the right class."""
        return float(np.mean(winners(scores) == self.codes))

    def fitted(self, K: Array, rows: np.ndarray, C: float) -> Dual:
        """Classifier trained on the labelled `rows`, whose Gram matrix is `K`."""
        return self.solver(K, signs(self.codes[rows], self.n_classes), C, self.weight[rows])

    def fitted_path(self, K: Array, rows: np.ndarray, Cs: Sequence[float]) -> list[Dual]:
        """Classifiers trained on the labelled `rows`, whose Gram matrix is `K`, for each C."""
        Y = signs(self.codes[rows], self.n_classes)
        return solved_path(self.solver, K, Y, Cs, self.weight[rows])


Rule = Callable[[Array, Problem, Sequence[float]], np.ndarray]


def folds(codes: np.ndarray, n_folds: int, random_state: Any) -> list[tuple[np.ndarray, np.ndarray]]:
    """Stratified folds, fewer where a class is too small for as many."""
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
    Y, n = signs(problem.codes, problem.n_classes), len(problem.codes)
    if problem.solver is least_squares and isinstance(K, np.ndarray) and problem.weight.all():
        parts = [test for _, test in problem.folds]
        return [held_out_least_squares(K[:n, :n], Y, C, problem.weight, parts) for C in Cs]
    scores = [np.empty(Y.shape) for _ in Cs]
    for train, test in problem.folds:
        duals = problem.fitted_path(submatrix(K, train, train), train, Cs)
        K_test = submatrix(K, test, train)
        for own, dual in zip(scores, duals, strict=True):
            own[test] = dual.scores(K_test)
    return scores


def source_cv(K: Array, problem: Problem, Cs: Sequence[float]) -> np.ndarray:
    """Accuracy in cross-validation on the labelled source, for each C (section 3.4; the paper's rule)."""
    found = held_out_scores(K, problem, Cs)
    return np.array([problem.accuracy(scores) for scores in found])


def reverse(K: Array, problem: Problem, Cs: Sequence[float]) -> np.ndarray:
    """Reverse validation, for each C.

    Train on the source, label the target rows with the result, train on those alone, and score on
    source rows held out from the start: a representation in which the two domains do not meet
    cannot find the way back.
    """
    n, correct = len(problem.codes), np.zeros(len(Cs))
    K_target = K[n:, n:]
    for train, test in problem.folds:
        K_train, K_there, K_back = submatrix(K, train, train), K[n:][:, train], K[test][:, n:]
        duals = problem.fitted_path(K_train, train, Cs)
        for i, (C, dual) in enumerate(zip(Cs, duals, strict=True)):
            there = winners(dual.scores(K_there))
            back = _trained_back(K_target, K_back, there, problem, C)
            correct[i] += np.sum(back == problem.codes[test])
    return correct / n


def _trained_back(K: Array, K_back: Array, codes: np.ndarray, problem: Problem, C: float) -> np.ndarray:
    """Predictions of a classifier trained on self-labelled target rows."""
    if len(np.unique(codes)) == 1:  # everything got one label: so does everything on the way back
        return np.full(len(K_back), codes[0])
    dual = problem.solver(K, signs(codes, problem.n_classes), C, np.ones(len(codes)))
    return winners(dual.scores(K_back))


def importance_cv(K: Array, problem: Problem, Cs: Sequence[float]) -> np.ndarray:
    """Cross-validated accuracy on the source, rows weighted by how much they look like the target.

    The weight of a source row is the odds of target against source given by a least-squares domain
    classifier that has not seen the row, at most `LARGEST_ODDS` times the mean.
    """
    found = held_out_scores(K, problem, Cs)
    odds = target_odds(K, len(problem.codes), Cs[len(Cs) // 2])
    return np.array([odds @ (winners(scores) == problem.codes) for scores in found]) / odds.sum()


LARGEST_ODDS = 20.0


def target_odds(K: Array, n: int, C: float) -> np.ndarray:
    """Odds of being a target row, for each of the n labelled rows; halves judge each other."""
    halves = [np.arange(len(K))[start::2] for start in (0, 1)]
    is_target, scores = np.where(np.arange(len(K)) < n, -1.0, 1.0)[:, None], np.zeros(len(K))
    for half, other in (halves, halves[::-1]):
        judge = least_squares(submatrix(K, half, half), is_target[half], C, np.ones(len(half)))
        scores[other] = judge.scores(submatrix(K, other, half))[:, 0]
    odds = np.exp(2 * scores[:n])  # least squares on +-1 estimates 2 P - 1, so this is about P / (1 - P)
    return np.minimum(odds, LARGEST_ODDS * odds.mean())


RULES: dict[str, Rule] = {
    "source-cv": source_cv,
    "reverse": reverse,
    "importance-cv": importance_cv,
}
NEED_TARGET = ("reverse", "importance-cv")
ONE_SE = "one-se"
SELECTIONS = (*RULES, ONE_SE)


def scoring(selection: str) -> Rule:
    """Return what scores candidates: a rule itself, or the one that its caution is built on."""
    return source_cv if selection == ONE_SE else RULES[selection]


def clearly_better(best: float, preferred: float, n: int) -> bool:
    """Tell whether an accuracy over n rows is above another by more than its standard error.

    The one-standard-error rule: differences that the noise of n rows explains are no reason to leave what was
    preferred beforehand.
    """
    return best - preferred > float(np.sqrt(best * (1 - best) / n))


@dataclass(frozen=True)
class Candidate:
    """One point of the grid and what the rule gave it; NaN where there was nothing to choose.

    Candidates are visited from less noise, fewer layers and smaller C upwards, and the first of equals
    is taken.
    """

    noise: float
    n_layers: int
    C: float
    score: float = float("nan")


def chosen_one(
    candidates: Sequence[Candidate], selection: str, preferred: tuple[float, int, float], n: int
) -> Candidate:
    """Return the candidate of highest score, the first of equals.

    With "one-se" that is the preferred one unless another is clearly better; n labelled rows were scored.
    """
    best = max(candidates, key=lambda own: own.score)
    if selection != ONE_SE:
        return best
    own = next(own for own in candidates if (own.noise, own.n_layers, own.C) == preferred)
    return best if clearly_better(best.score, own.score, n) else own


def notes_on_choice(
    chosen: Candidate, candidates: Sequence[Candidate], kept: tuple[float, int, float] | None = None
) -> list[str]:
    """Say where the choice was a tie, or lies at the edge of what was offered.

    Values `kept`, because nothing was clearly better, are where their user put them: no edge.
    """
    notes, best = [], max(other.score for other in candidates)
    tied = [other for other in candidates if other.score == chosen.score == best]
    if len(tied) > 1:
        taken = "the simplest was taken" if tied[0] is chosen else "what was preferred was kept"
        notes.append(f"{len(tied) - 1} other candidate(s) tied with the chosen one; {taken}")
    if (chosen.noise, chosen.n_layers, chosen.C) == kept:
        return notes
    for name in ("noise", "n_layers", "C"):
        values, value = sorted({getattr(other, name) for other in candidates}), getattr(chosen, name)
        nothing_beyond = name == "n_layers" and value == 1
        if len(values) > 1 and value in (values[0], values[-1]) and not nothing_beyond:
            notes.append(f"the chosen {name}={value:g} is at the edge of {[float(f'{v:g}') for v in values]}")
    return notes


def warn_of_edges(notes: Sequence[str]) -> None:
    """Warn of choices at the edge of the grid: the best value may lie beyond."""
    for note in notes:
        if "edge" in note:
            warnings.warn(
                f"{note}: a better value may lie beyond; widen the grid", UndriftWarning, stacklevel=5
            )
