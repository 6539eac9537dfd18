"""The state that a fitted classifier keeps, so that labels of target rows can be added at once.

Rows that are centred on their domain and moved are rows less a vector of their domain, `UpdateState.means`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state

from ..core import Rows, primal_weights, row_slices, stack_rows, submatrix
from ..inputs import OnHost, Place, savable, to_host
from . import constants
from .calibrate import HeldOut
from .choose import Base
from .domains import UNLABELLED, RowKey, list_row_keys
from .solve import Conditioned, Posterior, draw_labelled_rows
from .train import Fit, Readout

LARGE_COLUMNS = 2**23  # bytes of hidden rows of a layer that are saved in 16 bits
_OF_ROWS = ("domain", "codes", "anchor", "is_current")


@savable
@dataclass(frozen=True)
class LabelledRows:
    """Target rows with labels to learn."""

    columns: list[Rows]  # their input and hidden rows
    domain: np.ndarray  # (n,) position of their domain
    codes: np.ndarray  # (n,) classes
    anchor: np.ndarray  # (n,) the anchor that a row is, or -1
    is_current: np.ndarray  # (n,) False for rows of a batch that another one has replaced
    products: np.ndarray  # (n_anchors, n) inner products with the anchors

    def take(self, rows: np.ndarray) -> LabelledRows:
        """Return some of the rows."""
        kept = {name: getattr(self, name)[rows] for name in _OF_ROWS}
        columns, products = [A[rows] for A in self.columns], self.products[:, rows]
        return LabelledRows(columns=columns, products=products, **kept)

    def join(self, other: LabelledRows) -> LabelledRows:
        """Return these rows and others."""
        both = {name: np.concatenate([getattr(self, name), getattr(other, name)]) for name in _OF_ROWS}
        columns = [stack_rows(pair) for pair in zip(self.columns, other.columns, strict=True)]
        products = np.hstack([self.products, other.products])
        return LabelledRows(columns=columns, products=products, **both)


@savable
@dataclass(frozen=True)
class UpdateState:
    """Parts of a fit that labels are added to, training rows among them."""

    columns: list[Rows]  # of the anchors: input, and hidden rows of every layer
    domain: np.ndarray  # (n_anchors,) position of each anchor's domain
    codes: np.ndarray  # (n_anchors,) classes, or pseudo-labels
    weight: np.ndarray  # (n_anchors,) 0 for anchors that were not trained on
    inverse: np.ndarray  # (n_train, n_train) P over the anchors that were
    means: list[np.ndarray]  # of every layer, (n_domains, d_t): subtracted from the rows of a domain
    shares: list[float]  # of every layer, the factor of its inner products
    C: float  # in units of the inner products
    n_classes: int
    readout: Readout  # the classifier without target labels
    first_weights: list[np.ndarray]  # the classifier trained on the source alone
    first_intercept: np.ndarray
    scores: np.ndarray  # (n_target_anchors, n_outputs) of the classifier without target labels
    first_scores: np.ndarray  # (n_target_anchors, n_outputs) of the classifier trained on the source alone
    held_out: HeldOut  # labelled rows
    target_positions: list[int]  # of the target domains
    is_aligned: bool  # center="classes"
    is_balanced: bool  # border="balanced"
    known_shares: Sequence[Sequence[float] | None]  # of every target; None where they are estimated
    baseline_weights: np.ndarray | None = None  # (d, n_outputs) of the source-only classifier
    baseline_intercept: np.ndarray | None = None
    labelled: LabelledRows | None = None
    batches: dict[int, list[Rows]] = field(default_factory=dict)  # by position, rows in place of a target

    def rows_of(self, k: int) -> np.ndarray:
        """Return which target anchors are of the domain at position k."""
        return self.domain[self.n_source :] == k

    def input_of(self, k: int) -> Rows:
        """Return the rows that stand for the target at position k, of its last batch or of the fit."""
        if k in self.batches:
            return self.batches[k][0]
        return self.columns[0][self.n_source + np.flatnonzero(self.rows_of(k))]

    def first_scores_of(self, k: int) -> np.ndarray:
        """Return the scores of these rows by the classifier trained on the source alone."""
        if k in self.batches:
            return score_columns(self.batches[k], self.first_weights) + self.first_intercept
        return self.first_scores[self.rows_of(k)]

    def shrink(self) -> UpdateState:
        """Return the state as it is saved: large hidden rows in 16 bits, half of the inverse in 32."""
        labelled = self.labelled
        if labelled is not None:
            columns = _shrink_columns(labelled.columns)
            products = labelled.products.astype(np.float32)
            labelled = replace(labelled, columns=columns, products=products)
        return replace(
            self,
            columns=_shrink_columns(self.columns),
            inverse=np.concatenate([row[: i + 1] for i, row in enumerate(self.inverse.astype(np.float32))]),
            batches={k: _shrink_columns(columns) for k, columns in self.batches.items()},
            labelled=labelled,
        )

    def lift(self) -> UpdateState:
        """Return the state with hidden rows that can be multiplied many times: 16 bits are slow."""
        return replace(self, columns=[lift(A) for A in self.columns])

    def expand(self) -> UpdateState:
        """Return the state that was saved, with the whole inverse; refuse parts that do not fit together."""
        n, packed = int((self.weight > 0).sum()), self.inverse
        if packed.shape != (n * (n + 1) // 2,):
            raise ValueError("an update state whose parts do not fit")
        inverse = np.empty((n, n), dtype=packed.dtype)
        for i, end in enumerate(np.cumsum(np.arange(1, n + 1)).tolist()):
            inverse[i, : i + 1] = inverse[: i + 1, i] = packed[end - i - 1 : end]
        self._check_shapes()
        return replace(self, inverse=inverse)

    def _check_shapes(self) -> None:
        n, widths = len(self.domain), [len(w) for w in self.readout.weights]
        n_layers, n_domains = len(widths), len(self.means[0])
        labelled = [] if self.labelled is None else [(self.labelled.columns, len(self.labelled.domain))]
        batches = [(columns, columns[0].shape[0]) for columns in self.batches.values()]
        for columns, n_rows in [(self.columns, n), *labelled, *batches]:
            if [A.shape for A in columns] != [(n_rows, width) for width in widths]:
                raise ValueError("rows of an update state whose shapes do not fit")
        is_sound = (
            len(self.shares) == len(self.means) == n_layers
            and all(m.shape == (n_domains, width) for m, width in zip(self.means, widths, strict=True))
            and len(self.codes) == len(self.weight) == n >= len(self.scores) == len(self.first_scores)
            and self.domain.min() >= 0
            and self.domain.max() < n_domains
        )
        if not is_sound:
            raise ValueError("an update state whose parts do not fit")

    @property
    def n_source(self) -> int:
        """Number of anchors of the sources, which come first."""
        return len(self.domain) - len(self.scores)

    @property
    def train(self) -> np.ndarray:
        """Numbers of the anchors that were trained on."""
        return np.flatnonzero(self.weight)

    def condition(self, products: np.ndarray) -> Conditioned:
        """Return other rows as the training rows see them, from their inner products with the anchors."""
        return Posterior(self.inverse).condition(products[self.train])

    def add_rows(
        self, columns: list[Rows], domain: np.ndarray, codes: np.ndarray, anchor: np.ndarray
    ) -> UpdateState:
        """Return the state with these labels; `anchor` is which anchor a row is, or -1."""
        products, is_current = self.find_products(columns, domain), np.ones(len(codes), dtype=bool)
        added = LabelledRows(columns, domain, codes, anchor, is_current, products)
        return replace(self, labelled=added if self.labelled is None else self.labelled.join(added))

    def find_anchors(self, X: Rows, domain: np.ndarray) -> np.ndarray:
        """Return the target anchor that every row equals; -1 where there is none."""
        A, anchors = self.columns[0][self.n_source :], dict[RowKey, int]()
        sums, wanted = (np.asarray(abs(rows).sum(axis=1)).ravel() for rows in (A, X))
        wanted, slack = np.sort(wanted), 1e-4 * (1 + sums)  # of equal rows, whose sums may be rounded
        nearest = wanted[np.minimum(np.searchsorted(wanted, sums - slack), len(wanted) - 1)]
        near = self.n_source + np.flatnonzero(np.abs(nearest - sums) <= slack)
        known = self.list_keys(self.columns[0][near], self.domain[near])
        for i, key in zip(near.tolist(), known, strict=True):
            anchors.setdefault(key, i)
        return np.array([anchors.get(key, -1) for key in self.list_keys(X, domain)])

    def list_keys(self, X: Rows, domain: np.ndarray) -> list[RowKey]:
        """Return a key for every row, in the precision of the anchors."""
        return list_row_keys(X.astype(self.columns[0].dtype), domain)

    def set_labels(
        self, columns: list[Rows], domain: np.ndarray, codes: np.ndarray, anchor: np.ndarray
    ) -> UpdateState:
        """Return the state with labels of these rows added, changed, or, where `UNLABELLED`, withdrawn.

        `anchor` is which anchor a row is, or -1.
        """
        state, keys = self, self.list_keys(columns[0], domain)
        wanted = dict(zip(keys, codes.tolist(), strict=True))
        for key, code in zip(keys, codes.tolist(), strict=True):
            if wanted[key] != code:
                raise ValueError("a row is given twice, with different labels: give it once")
        if self.labelled is not None:
            known = self.list_keys(self.labelled.columns[0], self.labelled.domain)
            pairs = zip(known, self.labelled.codes.tolist(), strict=True)
            after = np.array([wanted.get(key, code) for key, code in pairs], dtype=int)
            labelled = replace(self.labelled, codes=after)
            state = replace(self, labelled=labelled.take(np.flatnonzero(after != UNLABELLED)))
            for key in known:
                wanted.pop(key, None)
        new = [i for i, key in enumerate(keys) if wanted.pop(key, UNLABELLED) != UNLABELLED]
        if not new:
            return state
        return state.add_rows([A[new] for A in columns], domain[new], codes[new], anchor[new])

    def list_unlabelled(self, X: Rows, domain: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows without a label, of equal ones the first, and how many rows equal each."""
        groups: dict[RowKey, list[int]] = {}
        labelled = self.labelled
        known = set() if labelled is None else set(self.list_keys(labelled.columns[0], labelled.domain))
        for row, key in enumerate(self.list_keys(X, domain)):
            if key not in known:
                groups.setdefault(key, []).append(row)
        first, counts = [group[0] for group in groups.values()], [len(group) for group in groups.values()]
        return np.array(first, dtype=int), np.array(counts, dtype=int)

    def replace_target(self, k: int, columns: list[Rows]) -> UpdateState:
        """Return the state with a new batch as the target at position k, to find its threshold."""
        labelled = self.labelled
        if labelled is not None:
            labelled = replace(labelled, is_current=labelled.is_current & (labelled.domain != k))
        return replace(self, batches={**self.batches, k: columns}, labelled=labelled)

    def find_products(
        self, columns: Sequence[Rows], domain: np.ndarray, place: Place | None = None
    ) -> np.ndarray:
        """Return inner products of the anchors with other rows, of shape (n_anchors, n), all moved."""
        place, K = place or OnHost(), np.zeros((len(self.domain), len(domain)))
        for A, B, means, share in zip(self.columns, columns, self.means, self.shares, strict=True):
            centred = _centre(B, means, domain)
            there = place.move_rows(centred).T
            for rows in row_slices(len(self.domain), A.shape[1]):
                K[rows] += share * to_host(place.move_rows(lift(A[rows])) @ there)
            K -= share * (means @ centred.T)[self.domain]
        return K

    def find_products_among(self, columns: Sequence[Rows], domain: np.ndarray) -> np.ndarray:
        """Return inner products of some rows with each other, moved."""
        K = np.zeros((len(domain), len(domain)))
        for B, means, share in zip(columns, self.means, self.shares, strict=True):
            centred = _centre(B, means, domain)
            K += share * (centred @ centred.T)
        return K

    def combine(self, coef: np.ndarray, labelled: LabelledRows, g: np.ndarray) -> list[np.ndarray]:
        """Combine coefficients of anchors and labelled rows into weights of every layer."""
        weights, parts = [], zip(self.columns, labelled.columns, self.means, self.shares, strict=True)
        for A, B, means, share in parts:
            w = np.zeros((A.shape[1], coef.shape[1]))
            for rows in row_slices(len(coef), A.shape[1]):
                w += primal_weights(lift(A[rows]), means, self.domain[rows], share * coef[rows])
            weights.append(w + share * (_centre(B, means, labelled.domain).T @ g))
        return weights


def _shrink_columns(columns: Sequence[Rows]) -> list[Rows]:
    """Return rows of every layer, all but the input in 16 bits where they are many: tanh bounds them."""
    return [columns[0], *(A.astype(np.float16) if A.nbytes > LARGE_COLUMNS else A for A in columns[1:])]


def lift(A: Rows) -> Rows:
    """Return rows in a precision that can be multiplied; a file stores 16 bits."""
    return A.astype(np.float32) if A.dtype == np.float16 else A


def _centre(B: Rows, means: np.ndarray, domain: np.ndarray) -> np.ndarray:
    """Dense rows less the vector of their domain, in their precision."""
    dense = B.toarray() if sp.issparse(B) else lift(B)
    return dense - means.astype(dense.dtype)[domain]


def score_columns(columns: Sequence[Rows], weights: Sequence[np.ndarray]) -> np.ndarray:
    """Score rows from their hidden rows at every layer, without an intercept."""
    scores = np.zeros((columns[0].shape[0], weights[0].shape[1]))
    for A, w in zip(columns, weights, strict=True):
        for rows in row_slices(len(scores), A.shape[1]):
            block = lift(A[rows])
            scores[rows] += block @ w.astype(block.dtype)
    return scores


def draw_state_rows(base: Base, seed: Any) -> tuple[np.ndarray, np.ndarray]:
    """Choose the anchors that a state keeps, and return also how many rows each one stands for.

    All of them, up to `ANCHOR_LIMIT`; else samples of the labelled rows and of the target rows, in which
    target rows with a label are.
    """
    n, target_codes = base.anchors.n_labelled, base.anchors.target_codes
    n_all, n_anchors = len(base.domains.y), n + len(target_codes)
    if n == n_all and n_anchors <= constants.ANCHOR_LIMIT:
        return np.arange(n_anchors), np.ones(n_anchors)
    random_state = check_random_state(seed)
    drawn = draw_labelled_rows(base.labels.codes, min(n, constants.STATE_ROWS), random_state)
    rank = np.where(target_codes == UNLABELLED, random_state.uniform(size=len(target_codes)), -1)
    targets = np.sort(np.argsort(rank)[: max(constants.STATE_ROWS, int((rank < 0).sum()))])
    growth = np.full(len(targets), len(target_codes) / max(len(targets), 1))
    growth[target_codes[targets] != UNLABELLED] = 1.0
    rows = np.concatenate([drawn, n + targets])
    return rows, np.concatenate([np.full(len(drawn), n_all / len(drawn)), growth])


def keep_state(fit: Fit, readout: Readout, rows: np.ndarray, growth: np.ndarray) -> UpdateState:
    """Return the state of a fit with the anchors and growth of `draw_state_rows`, and the target labels."""
    base, held_out, aligned, trained = fit.base, fit.held_out, fit.aligned, fit.trained
    anchors, chosen, labels, weights = base.anchors, base.chosen, base.labels, fit.weights
    first_scores, center = (trained.scores, 0.0) if aligned is None else (aligned.scores, aligned.center)
    targets = rows[rows >= anchors.n_labelled] - anchors.n_labelled
    weight = np.concatenate([labels.weight, trained.weight])[rows] * growth
    is_trained = weight > 0
    train = rows[is_trained]
    K = chosen.K if len(train) == len(chosen.K) else submatrix(chosen.K, train, train)
    is_complete, baseline = len(targets) == len(first_scores), base.source_only
    state = UpdateState(
        columns=weights.columns,
        domain=anchors.domain[rows],
        codes=np.concatenate([labels.codes, trained.codes])[rows],
        weight=weight,
        inverse=np.asarray(to_host(Posterior.invert(K, chosen.C, weight[is_trained]).inverse)),
        means=chosen.stack.move_means(weights.moves),
        shares=list(chosen.stack.shares),
        C=chosen.C,
        n_classes=labels.n_classes,
        readout=replace(readout, targets=None),
        first_weights=weights.first,
        first_intercept=weights.first_intercept - center,
        scores=trained.scores[targets],
        first_scores=first_scores[targets],
        held_out=held_out if is_complete else replace(held_out),  # without grids of all rows
        target_positions=base.domains.target_positions,
        is_aligned=aligned is not None,
        is_balanced=fit.is_balanced,
        known_shares=list(fit.known_shares),
        baseline_weights=None if baseline is None else baseline.weights,
        baseline_intercept=None if baseline is None else baseline.intercept - baseline.offset,
    )
    codes = anchors.target_codes[targets]
    anchor = state.n_source + np.flatnonzero(codes != UNLABELLED)
    if len(anchor) == 0:
        return state
    columns = [A[anchor] for A in state.columns]
    return state.add_rows(columns, state.domain[anchor], codes[anchor - state.n_source], anchor)
