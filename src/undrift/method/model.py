"""The model: weights of every reading on the layers, and the votes of the readings for every domain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np

from ..core import Layer, Rows, array_ops, hidden_rows, row_slices
from ..inputs import Place, dtype_of
from .jury import mix, weigh
from .scores import LEAST_SHARE, class_probabilities, shift_probabilities


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
    prior: np.ndarray  # (n_domains + 1, n_classes) log shares that predictions ignore: 0 for fewest errors
    teacher_weight: np.ndarray  # (n_domains + 1,) of a teacher's log odds, where predictions are of both

    @property
    def n_outputs(self) -> int:
        """Number of scores of a reading."""
        return self.intercept.shape[2]

    @property
    def source_only(self) -> int | None:
        """Number of the reading of the input alone, which comes last; None where there is none."""
        return len(self.names) - 1 if self.coef[0].shape[1] > self.coef[1].shape[1] else None

    @property
    def is_balanced(self) -> bool:
        """Whether predictions are of classes that count alike."""
        return bool(self.prior.any())

    def score(self, X: Rows, layers: Sequence[Layer], place: Place) -> np.ndarray:
        """Return scores of rows, without an intercept: (n_readings, n, n_outputs)."""
        layers, dtype = place.move_layers(layers), dtype_of(X)
        placed = [place.move_rows(w.astype(dtype, copy=False)) for w in self.coef]
        width = max((len(layer.intercept) for layer in layers), default=X.shape[1])
        scores = np.zeros((X.shape[0], self.coef[0].shape[1]))
        with place.set_precision():
            for rows in row_slices(X.shape[0], width):
                x = place.move_rows(X[rows])
                for H, w in zip(chain([x], hidden_rows(layers, x)), placed, strict=True):
                    scores[rows, : w.shape[1]] += array_ops(H).to_numpy(H @ w)
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
        return self.move(p, domain)

    def move(self, p: np.ndarray, domain: np.ndarray | int) -> np.ndarray:
        """Return the mixture's probabilities as they are since the last batch."""
        return shift_probabilities(p, self.shift[domain])

    def mix(self, p: np.ndarray, domain: int) -> np.ndarray:
        """Return the mixture of the readings' probabilities `p` of rows of one domain: (n, n_classes)."""
        return mix(self.votes[domain], p)

    def weigh(self, p: np.ndarray, codes: np.ndarray, domain: int, doubt: float) -> np.ndarray:
        """Return the votes in one domain after labels of rows, to which the readings gave `p`."""
        given = p[:, np.arange(len(codes)), codes]
        return weigh(self.votes[domain], given, p.shape[2], doubt)

    def weigh_classes(self, p: np.ndarray, domain: np.ndarray | int) -> np.ndarray:
        """Return log probabilities less the log shares that predictions ignore: the largest is predicted."""
        return np.log(np.maximum(p, 1e-12)) - self.prior[domain]

    def decide(self, p: np.ndarray, domain: np.ndarray | int) -> np.ndarray:
        """Return scores: (n,) for two classes, positive for the second, else (n, n_classes)."""
        logs = self.weigh_classes(p, domain)
        return logs[:, 1] - logs[:, 0] if logs.shape[1] == 2 else logs

    def align(self, domain: int, shift: np.ndarray, shares: np.ndarray) -> Model:
        """Return the model with the log probabilities of one domain shifted, whose class shares are these."""
        shifts, priors = self.shift.copy(), self.prior.copy()
        shifts[domain] = shift
        if self.is_balanced:
            priors[domain] = take_log_shares(shares)
        return replace(self, shift=shifts, prior=priors)


def take_log_shares(shares: np.ndarray) -> np.ndarray:
    """Return the logarithms of class shares, finite where a share is 0."""
    return np.log(np.maximum(shares, LEAST_SHARE))
