"""No harm: signs, seen without a target label, that adaptation cannot help, and what to do about it.

The thresholds come from `benchmarks/safeguard.py`, which prints every signal beside the true gain, on real
pairs of domains and on cases made so that nothing can be gained.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._core import Array, Rows, array_ops, primal_weights
from .._inputs import on_cluster
from ..errors import UndriftWarning
from .linear import confidence, winners
from .selection import Problem
from .self_training import LEAST_RETAINED, round_trip

FEW_ROWS = 100  # in a target
MANY_EMPTY = 0.3  # of the target's rows
FAR_APART, NOTHING_SHARED = 0.5, 0.95  # of what target rows hold, never seen with a label
SURE_DISAGREEMENT = 0.15
LOPSIDED_SHIFT, LOPSIDED_LOST = 0.17, 0.33


@dataclass(frozen=True)
class Signals:
    """What can be seen of a fit without target labels; None where it was not measured."""

    n_target: int  # rows of the smallest target
    empty: float  # share of target rows that hold nothing
    unseen: float  # share of the target's nonzero entries in features that no labelled row has
    disagreement: float | None = None  # share of target rows that adapted and source-only put apart
    sure_disagreement: float | None = None  # the same among the half of which source-only is surer
    class_shift: float | None = None  # half the sum of how far the classes' shares among predictions moved
    retained: float | None = None  # of what is known of the source's labels, after the round trip
    source_only_retained: float | None = None  # the same for the source-only classifier


@dataclass(frozen=True)
class Reason:
    """One line: what is wrong, and what to do. A grave one is a reason to fall back."""

    text: str
    grave: bool


@dataclass(frozen=True)
class SourceOnly:
    """The classifier of the input alone, which no target row has touched, and how it fares on the target."""

    weights: np.ndarray  # (d, n_outputs)
    intercept: np.ndarray  # (n_outputs,) of rows whose domain's mean has been subtracted
    offset: np.ndarray  # (n_outputs,) score of the sources' mean, which target rows are centred on as well
    scores: np.ndarray  # (n_target_anchors, n_outputs)
    retained: float


def source_only(
    K: Array,
    problem: Problem,
    C: float,
    X: Rows,
    means: np.ndarray | None,
    domain: np.ndarray,
    share: float,
) -> SourceOnly:
    """Train on the labelled rows as they are.

    Subtracting a mean from all training rows moves the intercept and nothing else, so that with one
    source this is the classifier of its rows, never centred. Target rows are centred on the sources.

    Parameters
    ----------
    K : array of shape (n_anchors, n_anchors)
        `share` times the inner products of the anchors `X`, domains centred on `means` if given.
    domain : int array of shape (n_anchors,)
        Row of `means` that belongs to each anchor.
    """
    n = len(problem.codes)
    C = C / (float(K.diagonal()[:n].mean()) or 1.0)
    dual = problem.fitted(K[:n, :n], np.arange(n), C)
    weights = primal_weights(X[:n], means, domain[:n], dual.coef * share)
    offset = np.zeros(weights.shape[1]) if means is None else (means @ weights)[domain[:n]].mean(axis=0)
    ops = array_ops(X)
    scores = ops.to_numpy(X[n:] @ ops.like(weights, X)) - offset + dual.intercept
    knows = problem.accuracy(dual.scores(K[:n, :n]))
    trip = round_trip(K, problem, C, winners(scores))
    return SourceOnly(weights, dual.intercept, offset, scores, retained(trip, knows, problem))


def retained(trip: float, knows: float, problem: Problem) -> float:
    """What a round trip keeps of what is known of the source's labels, both beyond guessing."""
    guess = problem.guess
    return (trip - guess) / (knows - guess) if knows > guess else 0.0


def seen_of(targets: Sequence[Rows], labelled_counts: np.ndarray) -> Signals | None:
    """Signals that need the rows alone; `labelled_counts` says in how many labelled rows each feature is."""
    if not targets:
        return None
    found = np.sum([_occupied(X) for X in targets], axis=0)
    counts, n_rows = found[:-1], [X.shape[0] for X in targets]
    unseen = counts[labelled_counts == 0].sum() / max(counts.sum(), 1)
    return Signals(min(n_rows), float(1 - found[-1] / max(sum(n_rows), 1)), float(unseen))


def _occupied(X: Rows) -> np.ndarray:
    """In how many rows each feature is not zero, and how many rows hold something: they add."""
    if on_cluster(X):
        return X.total(_occupied)
    ops = array_ops(X)
    if sp.issparse(X):
        n_something = len(np.unique(X.nonzero()[0]))
    else:
        n_something = int(np.count_nonzero(ops.to_numpy(X.any(axis=1))))
    return np.append(ops.to_numpy(ops.nonzero_counts(X)), n_something)


def compared(signals: Signals, scores: np.ndarray, kept: float, without: SourceOnly) -> Signals:
    """Add what the adapted classifier's scores on the target anchors, and its round trip, say."""
    before, after = winners(without.scores), winners(scores)
    apart = before != after
    surer = np.argsort(-confidence(without.scores), kind="stable")[: max(len(apart) // 2, 1)]
    n_classes = max(scores.shape[1], 2)
    shares = [np.bincount(own, minlength=n_classes) / len(own) for own in (before, after)]
    return Signals(
        signals.n_target,
        signals.empty,
        signals.unseen,
        disagreement=float(apart.mean()),
        sure_disagreement=float(apart[surer].mean()),
        class_shift=float(np.abs(shares[1] - shares[0]).sum() / 2),
        retained=kept,
        source_only_retained=without.retained,
    )


def reasons(signals: Signals) -> list[Reason]:
    """Say what speaks against adapting, the grave first; nothing where all is well."""
    found = [*_grave(signals), *_doubts(signals)]
    return [Reason(text, grave) for text, grave in found]


def _grave(own: Signals) -> list[tuple[str, bool]]:
    found = []
    if own.unseen > NOTHING_SHARED:
        found.append(
            f"{own.unseen:.0%} of what target rows hold is in no labelled row: there is nothing to "
            "hold on to; check that both are in one language, or label rows from in between"
        )
    elif (
        own.n_target >= FEW_ROWS and _near(own) and own.retained is not None and own.retained < LEAST_RETAINED
    ):
        found.append(
            f"a classifier trained on the target's predictions keeps {max(own.retained, 0):.0%} of what is "
            f"known of the source's labels (below {LEAST_RETAINED:.0%}): the labels do not reach the target; "
            "check that both are about one question, or add target rows"
        )
    return [(text, True) for text in found]


def _near(own: Signals) -> bool:
    """Tell whether domains share most words: further away source-only knows still less than adaptation."""
    return own.unseen <= FAR_APART


def _lopsided(own: Signals) -> bool:
    shift, kept = own.class_shift, own.source_only_retained
    if shift is None or kept is None or not _near(own):
        return False
    return shift > LOPSIDED_SHIFT and kept < LOPSIDED_LOST


def _doubts(own: Signals) -> list[tuple[str, bool]]:
    found = []
    if _lopsided(own):  # no more than a doubt: a source that leans by its words alone looks the same
        found.append(
            f"adaptation moves {own.class_shift:.0%} of the target from class to class, most of one class by "
            "what the source alone says: the classes may be less even there than adaptation makes them; "
            "try center=False (--no-center), or label a few target rows to see"
        )
    if own.n_target < FEW_ROWS:
        found.append(
            f"a target of {own.n_target} rows (fewer than {FEW_ROWS}) shows little of how its features go "
            "together: add unlabelled rows"
        )
    if own.empty > MANY_EMPTY:
        found.append(
            f"{own.empty:.0%} of the target's rows are empty, and all of them get one label: look at them, "
            "or leave them out"
        )
    if FAR_APART < own.unseen <= NOTHING_SHARED:
        found.append(
            f"{own.unseen:.0%} of what target rows hold is in no labelled row: expect many mistakes; add a "
            "source, or unlabelled rows, from in between"
        )
    elif own.sure_disagreement is not None and own.sure_disagreement > SURE_DISAGREEMENT:
        found.append(
            f"adapted and source-only disagree on {own.sure_disagreement:.0%} of the target rows of which "
            "source-only is surer: label some of these to see who is right"
        )
    return [(text, False) for text in found]


def caution(signals: Signals, can_fall_back: bool, is_all: bool = True) -> dict[str, Any]:
    """Return what a classifier remembers: signals, reasons in words, the grave ones, and what was done.

    Nothing is grave where the rows that were looked at are not all there is (`is_all`): extra blocks may
    have in common what they have not.
    """
    found = reasons(signals)
    grave = [own.text for own in found if own.grave and is_all]
    return {
        "signals": asdict(signals),
        "reasons": [own.text for own in found],
        "grave": grave,
        "fell_back": bool(grave) and can_fall_back,
    }


def fell_back(found: dict[str, Any] | None) -> bool:
    """Tell whether a classifier with this caution is the source-only one."""
    return found is not None and found["fell_back"]


def warn_of(found: dict[str, Any] | None) -> None:
    """Warn of grave reasons."""
    if found is None:
        return
    done = "used the source-only classifier instead" if found["fell_back"] else "adapted all the same"
    for text in found["grave"]:
        message = f"adaptation is likely not to help ({done}): {text}"
        warnings.warn(message, UndriftWarning, stacklevel=5)
