"""The model: weights of every reading on the layers, and the votes of the readings for every domain."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
from scipy.special import softmax

from ..core import Layer, Rows, array_ops, hidden_rows, primal_weights, row_slices
from ..inputs import Place, dtype_of
from .calibrate import class_probabilities
from .gram import Stack, score_centres
from .judge import Facts, Verdict
from .least_squares import Conditioned, LeastSquares, multiply
from .readings import Linear, Moved

_LEAST = 1e-6  # probability, so that log odds stay finite
_MOST_STEPS = 1_000  # of the shares of a batch


@dataclass(frozen=True)
class Model:
    """Readings that vote; all arrays are on the host.

    ``score(x) = sum_t h^t coef_t + intercept``, of every reading. Readings of the input alone come last, and
    have no weights of deeper layers.
    """

    coef: list[np.ndarray]  # of h^0, ..., h^l: (d_t, n_readings n_outputs)
    intercept: np.ndarray  # (n_readings, n_domains + 1, n_outputs), the mean of the sources last
    temperature: np.ndarray  # (n_readings,)
    votes: np.ndarray  # (n_domains + 1, n_readings), rows sum to 1
    shift: np.ndarray  # (n_domains + 1, n_classes) added to log probabilities
    names: list[str]  # of the readings
    sentences: list[str]  # their stories

    @property
    def n_outputs(self) -> int:
        """Number of scores of a reading."""
        return self.intercept.shape[2]

    def score(self, X: Rows, layers: Sequence[Layer], place: Place) -> np.ndarray:
        """Return scores of rows, without an intercept: (n_readings, n, n_outputs)."""
        scores = score_rows(X, layers, self.coef, place)
        return scores.reshape(len(scores), -1, self.n_outputs).transpose(1, 0, 2)

    def read(self, scores: np.ndarray, domain: np.ndarray) -> np.ndarray:
        """Return the readings' class probabilities, (n_readings, n, n_classes), of rows of these domains."""
        return np.array(
            [
                class_probabilities(raw + intercept[domain], temperature)
                for raw, intercept, temperature in zip(scores, self.intercept, self.temperature, strict=True)
            ]
        )

    def predict(self, scores: np.ndarray, domain: np.ndarray) -> np.ndarray:
        """Return class probabilities, (n, n_classes), from `score`."""
        p = np.einsum("nr,rnc->nc", self.votes[domain], self.read(scores, domain))
        return shift_probabilities(p, self.shift[domain])

    def align(self, domain: int, shift: np.ndarray) -> Model:
        """Return the model with the log probabilities of one domain shifted."""
        shifts = self.shift.copy()
        shifts[domain] = shift
        return replace(self, shift=shifts)


def shift_probabilities(p: np.ndarray, shift: np.ndarray) -> np.ndarray:
    """Return probabilities whose logarithms are shifted."""
    return softmax(np.log(np.maximum(p, _LEAST)) + shift, axis=-1) if np.any(shift) else p


def find_shift(p: np.ndarray, shares: np.ndarray, n_prior: float) -> np.ndarray:
    """Return the shift of log probabilities under which a batch has the most probable mix of classes.

    Classes look as they did, and only their shares differ from `shares`, under which the probabilities `p` of
    the rows were found. Expectation maximisation finds the shares of the batch (Saerens, Latinne and
    Decaestecker, 2002), with `n_prior` rows of the mix before.
    """
    before = np.maximum(shares, _LEAST)
    current = before
    for _ in range(_MOST_STEPS):
        weighed = p * (current / before)
        after = (weighed / weighed.sum(axis=1, keepdims=True)).sum(axis=0) + n_prior * before
        after /= after.sum()
        if np.abs(after - current).max() < 1e-7:
            break
        current = after
    return np.log(current) - np.log(before)


def build_model(
    stack: Stack,
    rows_at_depths: Iterable[Rows],
    domain: np.ndarray,
    source: LeastSquares,
    conditioned: Conditioned,
    verdict: Verdict,
    facts: Facts,
) -> Model:
    """Return the model of a verdict; `rows_at_depths` are the anchors at the input and at every layer.

    Prediction needs no training row: ``w_t = sum_i coef_i h^t(x_i)`` for every layer.
    """
    is_linear = [isinstance(reading.classifier, Linear) for reading in verdict.readings]
    order = np.argsort(is_linear, kind="stable")
    readings = [verdict.readings[r] for r in order]
    deep = [reading.classifier for reading in readings if isinstance(reading.classifier, Moved)]
    linear = [reading.classifier for reading in readings if isinstance(reading.classifier, Linear)]
    coef, intercepts = combine_layers(stack, rows_at_depths, domain, source, conditioned, deep)
    for classifier in linear:
        coef[0] = np.hstack([coef[0], classifier.weights])
        intercepts.append(np.tile(classifier.intercept, (len(facts.names), 1)))
    intercept = np.array(intercepts)
    intercept[:, facts.n_sources :] += np.array([reading.borders for reading in readings])
    intercept[:, : facts.n_sources] += np.array([reading.natural for reading in readings])[:, None]
    sizes = np.array(facts.sizes[: facts.n_sources])
    mean = sizes @ intercept[:, : facts.n_sources] / sizes.sum()
    intercept = np.concatenate([intercept, mean[:, None]], axis=1)
    votes = verdict.votes[:, order]
    of_sources = votes.mean(axis=0) if len(votes) else np.ones(len(readings))
    return Model(
        coef=coef,
        intercept=intercept,
        temperature=np.array([reading.temperature for reading in readings]),
        votes=np.vstack([np.tile(of_sources, (facts.n_sources, 1)), votes, of_sources[None]]),
        shift=np.zeros((len(facts.names) + 1, len(facts.classes))),
        names=[reading.story.name for reading in readings],
        sentences=[reading.story.sentence for reading in readings],
    )


def combine_layers(
    stack: Stack,
    rows_at_depths: Iterable[Rows],
    domain: np.ndarray,
    source: LeastSquares,
    conditioned: Conditioned,
    classifiers: Sequence[Moved],
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Return the weights of every layer, classifiers side by side, and their intercepts by domain."""
    m, n_domains = conditioned.n_targets, len(stack.origin)
    changed = [conditioned.change_source(source, classifier.coef) for classifier in classifiers]
    anchors = np.hstack(
        [
            np.vstack([labelled, each.coef[:m]])
            for (labelled, _), each in zip(changed, classifiers, strict=True)
        ]
    )
    centres = np.hstack([classifier.coef[m : m + n_domains] for classifier in classifiers])
    coef = []
    for H, means, share in zip(rows_at_depths, stack.means, stack.shares, strict=True):
        w = primal_weights(H, means, domain, anchors) + (means - stack.origin @ means).T @ centres
        coef.append((share * w).astype(np.float32))
    offsets = np.split(score_centres(stack.means, coef), len(classifiers), axis=1)
    intercepts = []
    for (_, intercept), classifier, offset in zip(changed, classifiers, offsets, strict=True):
        by_domain = intercept - offset
        scores = conditioned.scores[conditioned.directions] + multiply(
            conditioned.covariance[conditioned.directions], classifier.coef
        )
        by_domain[n_domains - classifier.moves.shape[1] :] += classifier.moves.T @ scores
        intercepts.append(by_domain)
    return coef, intercepts


def score_rows(X: Rows, layers: Sequence[Layer], weights: Sequence[np.ndarray], place: Place) -> np.ndarray:
    """Return scores ``sum_t h^t w_t`` of rows, without an intercept, in row blocks.

    Weights of a deeper layer may lack the last columns of those of the input.
    """
    layers, dtype = place.move_layers(layers), dtype_of(X)
    placed = [place.move_rows(w.astype(dtype, copy=False)) for w in weights]
    width = max((len(layer.intercept) for layer in layers), default=X.shape[1])
    scores = np.zeros((X.shape[0], weights[0].shape[1]))
    with place.set_precision():
        for rows in row_slices(X.shape[0], width):
            x = place.move_rows(X[rows])
            for H, w in zip(chain([x], hidden_rows(layers, x)), placed, strict=True):
                scores[rows, : w.shape[1]] += array_ops(H).to_numpy(H @ w)
    return scores
