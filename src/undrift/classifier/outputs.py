"""Outputs other than classes: numbers by least squares, and tags, each of them a problem of two classes.

All outputs share one search, its layers and its Gram matrix; an output adds a solution on that matrix.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils.class_weight import compute_sample_weight

from .linear import SOLVERS, Dual
from .readout import Readout, ReadoutOptions
from .search import SearchResult
from .selection import Problem
from .self_training import LEAST_RETAINED, Round, SelfTraining, Trained, fit_dual, train_in_rounds
from .targets import list_target_rows
from .weights import read_out, score_held_out


def fit_numbers(result: SearchResult, options: ReadoutOptions, known_means: Sequence[float] = ()) -> Readout:
    """Fit least squares to the numbers of the labelled rows, then to pseudo-labels of target rows as well.

    Least squares shrinks what it does not know towards the mean, and knows less of another domain. So the
    predictions of a target are first stretched to the spread that held-out predictions of the source have.

    Parameters
    ----------
    known_means : sequence of float
        The mean number of every target, if known; empty: the source's.
    """
    chosen, problem, n = result.chosen, result.spec.problem, len(result.spec.problem.codes)
    dual, rounds = result.start, list[Round]()
    if options.self_training is not None and len(chosen.K) > n:
        trained = _self_train_numbers(result, dual, options.self_training, options)
        dual, rounds = trained.model, trained.rounds
    readout = replace(read_out(result, dual), rounds=rounds)
    if not known_means:
        return readout
    offsets = readout.offsets.copy()
    offsets[result.spec.rows.target_positions] -= np.array(known_means)[:, None] - problem.Y.mean()
    return replace(readout, offsets=offsets)


def _self_train_numbers(
    result: SearchResult, start: Dual, rule: SelfTraining, options: ReadoutOptions
) -> Trained:
    """Train in rounds on ever more target rows, those furthest from the middle first.

    A round is kept if numbers that are learnt from the target's pseudo-labels alone still agree with the
    labels of the source: their correlation is at least `LEAST_RETAINED` of that of the start.
    """
    chosen, problem = result.chosen, result.spec.problem
    K, y, n = chosen.K, problem.Y, len(problem.codes)
    groups = [group - n for group in list_target_rows(result) if len(group)]
    spread = float(score_held_out(K, chosen.C, problem, options).scores.std())
    train, first = _correlate(start.scores(K[:n, :n]), y), start.scores(K[n:, :n])

    def choose(scores: np.ndarray, portion: float) -> tuple[np.ndarray, np.ndarray]:
        pseudo_labels = stretch(scores, groups, spread, y)
        distance = np.abs(pseudo_labels - np.median(pseudo_labels))[:, 0]
        return pseudo_labels, np.argsort(-distance, kind="stable")[: round(portion * len(scores))]

    def retrain(pseudo_labels: np.ndarray, target_weight: np.ndarray) -> tuple[Dual, np.ndarray]:
        weight = np.concatenate([problem.weight, target_weight])
        dual = problem.solver(K, np.concatenate([y, pseudo_labels]), chosen.C, weight)
        return dual, dual.scores(K[n:])

    def evaluate(scores: np.ndarray, n_labelled: int) -> Round:
        pseudo_labels = stretch(scores, groups, spread, y)
        back = problem.solver(K[n:, n:], pseudo_labels, chosen.C, np.ones(len(scores)))
        trip = _correlate(back.scores(K[:n, n:]), y)
        moved = float(np.mean(np.abs(scores - first)) / (spread or 1.0))
        return Round(n_labelled, trip, moved, trip >= LEAST_RETAINED * train)

    no_rounds = Trained(start, first, first, np.zeros(len(first)), [])
    return train_in_rounds(no_rounds, rule, choose, retrain, evaluate)


def stretch(scores: np.ndarray, groups: Sequence[np.ndarray], spread: float, y: np.ndarray) -> np.ndarray:
    """Give the scores of every group the mean of the labels `y` and this spread, within the labels' range."""
    stretched = np.empty_like(scores)
    for group in groups:
        deviation = scores[group] - scores[group].mean()
        stretched[group] = y.mean() + deviation * (spread / (deviation.std() or 1.0))
    return np.clip(stretched, y.min(), y.max())


def _correlate(predicted: np.ndarray, y: np.ndarray) -> float:
    if np.ptp(predicted) == 0 or np.ptp(y) == 0:
        return 0.0
    return float(np.corrcoef(predicted[:, 0], y[:, 0])[0, 1])


@dataclass(frozen=True)
class _Tag:
    """The classifier of one tag, and the shift of its scores in every domain."""

    dual: Dual
    shifts: np.ndarray  # (n_domains,)
    temperature: float
    rounds: Sequence[Round] = ()


def fit_tags(result: SearchResult, options: ReadoutOptions, class_weight: Any) -> Readout:
    """Fit a classifier for every tag, self-trained as one of two classes is.

    Domains are centred on their means; a source that has a tag in every row, where it would be with rows that
    lack it. With ``center="classes"`` as many rows of every target get a tag as in the source: how frequent a
    tag is elsewhere cannot be estimated from scores of so few rows. Each tag has a temperature.
    """
    outputs = result.spec.problem.Y.T
    tags = [_fit_tag(result, output > 0, options, class_weight) for output in outputs]
    n = max(len(tag.dual.coef) for tag in tags)
    coef = np.hstack([np.pad(tag.dual.coef, ((0, n - len(tag.dual.coef)), (0, 0))) for tag in tags])
    readout = read_out(result, Dual(coef, np.concatenate([tag.dual.intercept for tag in tags])))
    return replace(
        readout,
        offsets=readout.offsets - np.column_stack([tag.shifts for tag in tags]),
        temperature=np.array([tag.temperature for tag in tags]),
        rounds=[r for tag in tags for r in tag.rounds],
    )


def _fit_tag(result: SearchResult, has_tag: np.ndarray, options: ReadoutOptions, class_weight: Any) -> _Tag:
    chosen, codes, n = result.chosen, has_tag.astype(int), len(has_tag)
    shifts = np.zeros(len(result.spec.rows.domains))
    if has_tag.all() or not has_tag.any():  # in no row, or in all of them: so it is predicted
        # with a probability of (n + 1) / (n + 2), by Laplace's rule
        return _Tag(Dual(np.zeros((n, 1)), np.where(has_tag[:1], 1.0, -1.0)), shifts, 1 / np.log(n + 1))
    weight = compute_sample_weight(class_weight, codes)
    problem = Problem(codes, 2, weight, [], SOLVERS[options.loss])
    held_out = score_held_out(chosen.K, chosen.C, problem, options, len(shifts))
    trained = fit_dual(chosen.K, problem, chosen.C, options.self_training)
    if result.spec.center == "classes" and len(chosen.K) > n:
        domain = result.spec.anchors.domain[n:]
        scores = trained.scores[:, 0]
        for k in np.unique(domain):
            shifts[k] = -np.quantile(scores[domain == k], 1 - has_tag.mean())
    return _Tag(trained.model, shifts, held_out.temperature, trained.rounds)
