"""`Readout`: a linear classifier of all layers, as weights of each, and how to fit one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .self_training import Round, SelfTraining
from .shares import SEVERAL_DOMAINS, Transfer
from .targets import BorderOptions, Target
from .updating import UpdateState


@dataclass(frozen=True)
class Readout:
    """``score(x) = sum_t h^t(x) weights_t + intercept``, for rows whose domain's mean has been subtracted."""

    weights: list[np.ndarray]  # of h^0, ..., h^l: (d_t, n_outputs)
    extra_weights: list[np.ndarray]  # of every matrix of extra features
    intercept: np.ndarray  # (n_outputs,)
    offsets: np.ndarray  # (n_domains, n_outputs) to subtract: the score of the domain's mean, less its shift
    rounds: list[Round]  # of self-training
    labelled_counts: np.ndarray  # (d,) in how many labelled rows each feature is not zero
    temperature: Any  # float, or an array with one for each tag
    targets: list[Target] | None = None  # None where they are not aligned
    transfer: Transfer = SEVERAL_DOMAINS
    caution: dict[str, Any] | None = None  # with a target: what speaks against adapting, and what was done
    state: UpdateState | None = None  # with a target and least squares: what labels are added to
    label_weight: float | None = None  # of a target label, where some were learnt

    @property
    def source_temperature(self) -> float:
        """Temperature of rows of the sources: without what scores lose in another domain."""
        loss = 1.0 if self.targets is None else self.transfer.before_self_training
        return self.temperature / loss


@dataclass(frozen=True)
class ReadoutOptions:
    """How to fit the classifier of a chosen stack."""

    loss: str  # for the primal; the solver on inner products is that of the problem
    self_training: SelfTraining | None
    border: BorderOptions
    has_fallback: bool  # whether a blocking reason against adapting leaves the source-only classifier
    memory_budget: float
    n_folds: int
    random_state: Any
    keeps_state: bool = True  # whether labels of target rows can be added afterwards
