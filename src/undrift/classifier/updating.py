"""Learn labels of target rows at once: the state that a fitted classifier keeps, and what labels change.

Layers, alignment and pseudo-labels stay as they are. Labels tell more of the class shares (`shares`), and by
a weight that cross-validation chooses they correct the classifier (`posterior`). A fit with target labels
ends with the same step, so that updating equals fitting again with the same layers, alignment and
pseudo-labels.

Rows that are centred on their domain and moved are rows less a vector of their domain, `UpdateState.means`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import scipy.sparse as sp

from .._core import (
    Array,
    NotPositiveDefinite,
    Rows,
    array_ops,
    primal_weights,
    row_slices,
    stack_rows,
    submatrix,
)
from .._inputs import OnHost, Place, to_host
from .calibration import class_probabilities, find_border
from .data import UNLABELLED, RowKey, list_row_keys
from .linear import signs
from .posterior import (
    FEW_LABELS,
    TARGET_PART,
    Conditioned,
    Learning,
    Posterior,
    choose_label_weight,
    learn_evidence,
    log_loss,
    remove_rows,
    take_source_rows,
    weigh_evidence,
)
from .shares import Labelled, Rescored, Shares, estimate_shares
from .targets import BorderOptions, HeldOut, Target, describe_target

LARGE_COLUMNS = 2**23  # bytes of hidden rows of a layer that are saved in 16 bits
_OF_ROWS = ("domain", "codes", "anchor", "is_current", "is_learnt")


@dataclass(frozen=True)
class LabelledRows:
    """Target rows whose labels are learnt."""

    columns: list[Rows]  # their input, hidden rows and extra features
    domain: np.ndarray  # (n,) position of their domain
    codes: np.ndarray  # (n,) classes
    anchor: np.ndarray  # (n,) the anchor that a row is, or -1
    is_current: np.ndarray  # (n,) False for rows of a batch that another one has replaced
    is_learnt: np.ndarray  # (n,) whether a row's label is part of the classifier that labels are added to
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


@dataclass(frozen=True)
class UpdateState:
    """What is kept of a fit, so that labels can be added to it: training rows among it."""

    columns: list[Rows]  # of the anchors: input, hidden rows of every layer, extra features
    domain: np.ndarray  # (n_anchors,) position of each anchor's domain
    codes: np.ndarray  # (n_anchors,) classes, or pseudo-labels
    weight: np.ndarray  # (n_anchors,) 0 for anchors that were not trained on
    inverse: np.ndarray  # (n_train, n_train) P over the anchors that were
    means: list[np.ndarray]  # of every layer, (n_domains, d_t): what is subtracted from rows of a domain
    shares: list[float]  # of every layer, what its inner products are multiplied by
    C: float  # in units of the inner products
    n_classes: int
    weights: list[np.ndarray]  # of every layer, (d_t, n_outputs): the classifier without target labels
    intercept: np.ndarray
    first_weights: list[np.ndarray]  # the classifier trained on the source alone
    first_intercept: np.ndarray
    scores: np.ndarray  # (n_target_anchors, n_outputs) of the classifier without target labels
    first_scores: np.ndarray  # (n_target_anchors, n_outputs) of the classifier trained on the source alone
    held_out: HeldOut  # labelled rows
    target_positions: list[int]  # of the target domains
    temperature: float
    gain: float  # what self-training leaves of the errors
    is_aligned: bool  # center="classes"
    is_balanced: bool  # border="balanced"
    known_shares: Sequence[Sequence[float] | None]  # of every target; None where they are estimated
    has_learnt_labels: bool = False  # whether labels that the fit was given are part of the classifier
    baseline_weights: np.ndarray | None = None  # (d, n_outputs) of the source-only classifier
    baseline_intercept: np.ndarray | None = None
    labelled: LabelledRows | None = None
    batches: dict[int, list[Rows]] = field(default_factory=dict)  # by position, rows in place of a target

    def rows_of(self, k: int) -> np.ndarray:
        """Return which target anchors are of the domain at position k."""
        return self.domain[self.n_source :] == k

    def input_of(self, k: int, n_layers: int) -> list[Rows]:
        """Return the rows that stand for the target at position k, of its last batch or of the fit.

        Their input and their extra features, which come after that and the hidden rows: `n_layers` columns.
        """
        given = self.batches.get(k, self.columns)
        rows = slice(None) if k in self.batches else self.n_source + np.flatnonzero(self.rows_of(k))
        return [A[rows] for A in _take_views(given, len(given) - n_layers + 1)]

    def first_scores_of(self, k: int) -> np.ndarray:
        """Return the scores of these rows by the classifier trained on the source alone."""
        if k in self.batches:
            return score_columns(self.batches[k], self.first_weights) + self.first_intercept
        return self.first_scores[self.rows_of(k)]

    def shrink(self) -> UpdateState:
        """Return the state as it is saved: large hidden rows in 16 bits, half of the inverse in 32."""
        labelled = self.labelled
        if labelled is not None:
            columns = _shrink_columns(labelled.columns, self.columns)
            products = labelled.products.astype(np.float32)
            labelled = replace(labelled, columns=columns, products=products)
        return replace(
            self,
            columns=_shrink_columns(self.columns, self.columns),
            inverse=np.concatenate([row[: i + 1] for i, row in enumerate(self.inverse.astype(np.float32))]),
            batches={k: _shrink_columns(columns, self.columns) for k, columns in self.batches.items()},
            labelled=labelled,
        )

    def expand(self) -> UpdateState:
        """Return the state that was saved, with the whole inverse; refuse parts that do not fit together."""
        n, packed, state = int((self.weight > 0).sum()), self.inverse, self
        if packed.shape == (n * (n + 1) // 2,):  # earlier files have all of it
            inverse = np.empty((n, n), dtype=packed.dtype)
            for i, end in enumerate(np.cumsum(np.arange(1, n + 1)).tolist()):
                inverse[i, : i + 1] = inverse[: i + 1, i] = packed[end - i - 1 : end]
            state = replace(self, inverse=inverse)
        state.check()
        return state

    def check(self) -> None:
        """Raise ValueError where parts do not fit together."""
        n, n_train, widths = len(self.domain), int((self.weight > 0).sum()), [len(w) for w in self.weights]
        n_layers, n_domains = len(widths), len(self.means[0])
        labelled = [] if self.labelled is None else [(self.labelled.columns, len(self.labelled.domain))]
        batches = [(columns, columns[0].shape[0]) for columns in self.batches.values()]
        for columns, n_rows in [(self.columns, n), *labelled, *batches]:
            if [A.shape for A in columns] != [(n_rows, width) for width in widths]:
                raise ValueError("rows of an update state whose shapes do not fit")
        is_sound = (
            len(self.shares) == len(self.means) == n_layers
            and all(m.shape == (n_domains, width) for m, width in zip(self.means, widths, strict=True))
            and self.inverse.shape == (n_train, n_train)
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

    def label_anchors(self, target_codes: np.ndarray) -> UpdateState:
        """Return the state with the labels of target anchors, `UNLABELLED` for those without."""
        anchor = self.n_source + np.flatnonzero(target_codes != UNLABELLED)
        columns, codes = [A[anchor] for A in self.columns], target_codes[anchor - self.n_source]
        if len(anchor) == 0:
            return self
        return self._add_rows(columns, self.domain[anchor], codes, anchor, self.has_learnt_labels)

    def _add_rows(
        self,
        columns: list[Rows],
        domain: np.ndarray,
        codes: np.ndarray,
        anchor: np.ndarray,
        is_learnt: bool = False,
    ) -> UpdateState:
        flags = np.ones(len(codes), dtype=bool), np.full(len(codes), is_learnt)
        added = LabelledRows(columns, domain, codes, anchor, *flags, self.find_products(columns, domain))
        return replace(self, labelled=added if self.labelled is None else self.labelled.join(added))

    def find_anchors(self, views: Sequence[Rows], domain: np.ndarray) -> np.ndarray:
        """Return the target anchor that every row equals, with its extra features; -1 where there is none."""
        A, anchors = self.columns[0][self.n_source :], dict[RowKey, int]()
        sums, wanted = (np.asarray(abs(rows).sum(axis=1)).ravel() for rows in (A, views[0]))
        wanted, slack = np.sort(wanted), 1e-4 * (1 + sums)  # of equal rows, whose sums may be rounded
        nearest = wanted[np.minimum(np.searchsorted(wanted, sums - slack), len(wanted) - 1)]
        near = self.n_source + np.flatnonzero(np.abs(nearest - sums) <= slack)
        known = [rows[near] for rows in _take_views(self.columns, len(views))]
        for i, key in zip(near.tolist(), self.list_keys(known, self.domain[near]), strict=True):
            anchors.setdefault(key, i)
        return np.array([anchors.get(key, -1) for key in self.list_keys(views, domain)])

    def list_keys(self, views: Sequence[Rows], domain: np.ndarray) -> list[RowKey]:
        """Return what tells rows apart, in the form and the precision of the anchors."""
        pairs = zip(views, _take_views(self.columns, len(views)), strict=True)
        return list_row_keys([_convert_like(rows, A) for rows, A in pairs], domain)

    def set_labels(
        self,
        columns: list[Rows],
        domain: np.ndarray,
        codes: np.ndarray,
        anchor: np.ndarray,
        n_views: int = 1,
    ) -> UpdateState:
        """Return the state with labels of these rows added, changed, or, where `UNLABELLED`, withdrawn.

        `anchor` is which anchor a row is, or -1; `n_views` counts X and the matrices of extra features.
        """
        state, keys = self, self.list_keys(_take_views(columns, n_views), domain)
        wanted = dict(zip(keys, codes.tolist(), strict=True))
        for key, code in zip(keys, codes.tolist(), strict=True):
            if wanted[key] != code:
                raise ValueError("a row is given twice, with different labels: give it once")
        if self.labelled is not None:
            known = self.list_keys(_take_views(self.labelled.columns, n_views), self.labelled.domain)
            pairs = zip(known, self.labelled.codes.tolist(), strict=True)
            after = np.array([wanted.get(key, code) for key, code in pairs], dtype=int)
            if (self.labelled.is_learnt & (after == UNLABELLED)).any():
                raise ValueError(
                    "labels that were given to a fit of so many rows can be changed but not withdrawn: fit "
                    "again without them"
                )
            labelled = replace(self.labelled, codes=after)
            state = replace(self, labelled=labelled.take(np.flatnonzero(after != UNLABELLED)))
            for key in known:
                wanted.pop(key, None)
        new = [i for i, key in enumerate(keys) if wanted.pop(key, UNLABELLED) != UNLABELLED]
        if not new:
            return state
        return state._add_rows([A[new] for A in columns], domain[new], codes[new], anchor[new])

    def find_labelled(self, views: Sequence[Rows], domain: np.ndarray) -> np.ndarray:
        """Tell which rows, given as X and their extra features, have a label."""
        known = self._list_labelled_keys(len(views))
        return np.array([key in known for key in self.list_keys(views, domain)], dtype=bool)

    def _list_labelled_keys(self, n_views: int) -> set[RowKey]:
        if self.labelled is None:
            return set()
        return set(self.list_keys(_take_views(self.labelled.columns, n_views), self.labelled.domain))

    def list_unlabelled(self, views: Sequence[Rows], domain: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows without a label, of equal ones the first, and how many rows equal each."""
        groups: dict[RowKey, list[int]] = {}
        known = self._list_labelled_keys(len(views))
        for row, key in enumerate(self.list_keys(views, domain)):
            if key not in known:
                groups.setdefault(key, []).append(row)
        first, counts = [group[0] for group in groups.values()], [len(group) for group in groups.values()]
        return np.array(first, dtype=int), np.array(counts, dtype=int)

    def replace_target(self, k: int, columns: list[Rows]) -> UpdateState:
        """Return the state with other rows in place of the target at position k, to find its border for."""
        labelled = self.labelled
        if labelled is not None:
            labelled = replace(labelled, is_current=labelled.is_current & (labelled.domain != k))
        return replace(self, batches={**self.batches, k: columns}, labelled=labelled)

    def find_products(
        self, columns: Sequence[Rows], domain: np.ndarray, place: Place | None = None
    ) -> np.ndarray:
        """Inner products of the anchors with other rows, of shape (n_anchors, n), all moved."""
        place, K = place or OnHost(), np.zeros((len(self.domain), len(domain)))
        for A, B, means, share in zip(self.columns, columns, self.means, self.shares, strict=True):
            centred = _centre(B, means, domain)
            there = place.move_rows(centred).T
            for rows in row_slices(len(self.domain), A.shape[1]):
                K[rows] += share * to_host(place.move_rows(_lift(A[rows])) @ there)
            K -= share * (means @ centred.T)[self.domain]
        return K

    def find_products_among(self, columns: Sequence[Rows], domain: np.ndarray) -> np.ndarray:
        """Inner products of some rows among themselves, moved."""
        K = np.zeros((len(domain), len(domain)))
        for B, means, share in zip(columns, self.means, self.shares, strict=True):
            centred = _centre(B, means, domain)
            K += share * (centred @ centred.T)
        return K

    def find_covariance(
        self, columns: Sequence[Rows], domain: np.ndarray, products: np.ndarray
    ) -> np.ndarray:
        """Posterior covariance of rows, whose `products` with the anchors are given, among themselves."""
        rows = Posterior(self.inverse).condition(products[np.flatnonzero(self.weight)])
        return rows.covariance(rows, self.find_products_among(columns, domain))

    def combine(self, coef: np.ndarray, labelled: LabelledRows, g: np.ndarray) -> list[np.ndarray]:
        """Weights of every layer from coefficients of the anchors and of labelled rows."""
        weights, parts = [], zip(self.columns, labelled.columns, self.means, self.shares, strict=True)
        for A, B, means, share in parts:
            w = np.zeros((A.shape[1], coef.shape[1]))
            for rows in row_slices(len(coef), A.shape[1]):
                w += primal_weights(_lift(A[rows]), means, self.domain[rows], share * coef[rows])
            weights.append(w + share * (_centre(B, means, labelled.domain).T @ g))
        return weights


def invert_gram(K: Array, C: float, weight: np.ndarray) -> np.ndarray:
    """``(K + diag(1 / (C weight)))^-1`` over the rows that have a weight."""
    train = np.flatnonzero(weight)
    ops, shift = array_ops(K), 1 / (C * weight[train])
    for dtype in ("same", "float64"):
        M = submatrix(K, train, train)
        if dtype != "same":
            M = ops.cast(M, np.dtype(np.float64))
        diagonal = np.arange(len(train))
        M[diagonal, diagonal] += ops.like(shift, M)
        try:
            return np.asarray(to_host(ops.spd_inverse(M)))
        except NotPositiveDefinite as error:
            failed = error
    raise failed


def _take_views(columns: Sequence[Rows], n_views: int) -> list[Rows]:
    """Return what identifies rows: their input, and their extra features, which come last."""
    return [columns[0], *columns[len(columns) - n_views + 1 :]]


def _convert_like(X: Rows, A: Rows) -> Rows:
    """Return rows in the form, sparse or dense, and the precision of others."""
    X = X.astype(A.dtype)
    if sp.issparse(A):
        return sp.csr_array(X)
    return X.toarray() if sp.issparse(X) else X


def _shrink_columns(columns: Sequence[Rows], anchors: Sequence[Rows]) -> list[Rows]:
    """Return rows of every layer, all but the input in 16 bits where they are large and bounded.

    And where the anchors are too: extra features are compared in the precision of the anchors.
    """
    shrunk = list(columns[:1])
    for A, B in zip(columns[1:], anchors[1:], strict=True):
        is_large = _is_large(A) and _is_large(B)
        shrunk.append(A.astype(np.float16) if is_large else A)
    return shrunk


def _is_large(A: Rows) -> bool:
    return not sp.issparse(A) and A.nbytes > LARGE_COLUMNS and bool(np.abs(A).max() <= 1)


def _lift(A: Rows) -> Rows:
    """Rows as they can be multiplied: those of a file are in 16 bits."""
    return A.astype(np.float32) if A.dtype == np.float16 else A


def _centre(B: Rows, means: np.ndarray, domain: np.ndarray) -> np.ndarray:
    """Dense rows less the vector of their domain, in their precision."""
    dense = B.toarray() if sp.issparse(B) else _lift(B)
    return dense - means.astype(dense.dtype)[domain]


@dataclass(frozen=True)
class Learnt:
    """A classifier that has learnt target labels."""

    weights: list[np.ndarray]
    intercept: np.ndarray
    offsets: np.ndarray  # (n_domains, n_outputs) to subtract from the intercept; without the targets' shifts
    targets: list[Target] | None
    label_weight: float  # of a target label, against a labelled source row

    def shifted_offsets(self, state: UpdateState) -> np.ndarray:
        """Return the offsets with the shifts of the targets' borders."""
        offsets = self.offsets.copy()
        for k, target in zip(state.target_positions, self.targets or [], strict=False):
            offsets[k] -= target.shift
        return offsets


def learn_labels(state: UpdateState) -> Learnt:
    """Return the classifier of a state with its labels learnt: shares and borders, and the weights."""
    labelled, scores = state.labelled, state.scores
    shares = _estimate_all(state, partial(_take_first, state))
    weights, intercept, chosen, left_out = state.weights, state.intercept, 0.0, None
    if labelled is not None and len(labelled.codes):
        train = np.flatnonzero(state.weight)
        posterior = Posterior(state.inverse)
        rows = posterior.condition(labelled.products[train])
        chosen, learning, g = _choose_change(state, labelled, posterior, rows, shares)
        left_out, particular = learning.left_out, TARGET_PART * learning.g
        dual = rows.spread_change(g)
        coef = np.zeros((len(state.domain), g.shape[1]))
        coef[train] = dual.coef
        changes = state.combine(coef, labelled, g + particular)
        weights = [w + change for w, change in zip(weights, changes, strict=True)]
        intercept = intercept + dual.intercept
        scores = _score_target_anchors(state, weights, intercept, coef, labelled.products @ particular)
    offsets = _find_offsets(state, weights)
    if shares is None:
        return Learnt(weights, intercept, offsets, None, chosen)
    groups = _score_targets(state, weights, intercept, scores)
    if labelled is not None and left_out is not None:
        again = partial(_take_left_out, state.temperature, labelled.codes, left_out, groups)
        shares = _estimate_all(state, again) or []
    targets = _describe_all(state, groups, shares)
    return Learnt(weights, intercept, offsets, targets, chosen)


def _score_targets(
    state: UpdateState, weights: Sequence[np.ndarray], intercept: np.ndarray, scores: np.ndarray
) -> dict[int, np.ndarray]:
    """Scores of the rows that stand for every target, by position: of its last batch, else of the anchors."""
    groups = {k: scores[state.rows_of(k)] for k in state.target_positions}
    if state.batches:
        offsets = _find_offsets(state, weights)
        groups |= {k: score_columns(A, weights) + intercept - offsets[k] for k, A in state.batches.items()}
    return groups


def score_columns(columns: Sequence[Rows], weights: Sequence[np.ndarray]) -> np.ndarray:
    """Scores of rows from their columns of every layer, without an intercept."""
    scores = np.zeros((columns[0].shape[0], weights[0].shape[1]))
    for A, w in zip(columns, weights, strict=True):
        for rows in row_slices(len(scores), A.shape[1]):
            block = _lift(A[rows])
            scores[rows] += block @ w.astype(block.dtype)
    return scores


def _find_offsets(state: UpdateState, weights: Sequence[np.ndarray]) -> np.ndarray:
    """Return the scores of what is subtracted from the rows of every domain."""
    return np.sum([means @ w for means, w in zip(state.means, weights, strict=True)], axis=0)


def _estimate_all(state: UpdateState, take: Callable[[int, np.ndarray], Labelled]) -> list[Shares] | None:
    """Estimate the shares of every target from the first scores and the labels; None without alignment.

    `take` takes some of the labelled rows, those of the target at a position.
    """
    if not state.is_aligned:
        return None
    held_out, labelled, estimates = state.held_out, state.labelled, []
    for k, known in zip(state.target_positions, state.known_shares, strict=True):
        seen = None
        if labelled is not None and (chosen := (labelled.domain == k) & labelled.is_current).any():
            seen = take(k, np.flatnonzero(chosen))
        given = state.first_scores_of(k), held_out.scores, held_out.codes, state.n_classes, known, seen
        grids = {} if k in state.batches else held_out.grids.setdefault(k, {})
        estimates.append(estimate_shares(*given, held_out.transfer, grids))
    return estimates


def _take_first(state: UpdateState, k: int, rows: np.ndarray) -> Labelled:
    """Take labelled rows as the classifier trained on the source alone scores them."""
    labelled = state.labelled
    assert labelled is not None  # there are rows
    scores = score_columns([B[rows] for B in labelled.columns], state.first_weights) + state.first_intercept
    return Labelled(scores, labelled.codes[rows])


def _take_left_out(
    temperature: float,
    codes: np.ndarray,
    left_out: np.ndarray,
    groups: dict[int, np.ndarray],
    k: int,
    rows: np.ndarray,
) -> Labelled:
    """Take labelled rows as the classifier scores them that has learnt the other labels."""

    def find_odds(scores: np.ndarray) -> np.ndarray:
        p = np.clip(class_probabilities(scores, temperature), 1e-12, 1 - 1e-12)
        return np.log(p / (1 - p))[:, -scores.shape[1] :]  # of two classes the second

    return Rescored(find_odds(left_out[rows]), codes[rows], find_odds(groups[k]))


def _choose_change(
    state: UpdateState,
    labelled: LabelledRows,
    posterior: Posterior,
    rows: Conditioned,
    shares: Sequence[Shares] | None,
) -> tuple[float, Learning, np.ndarray]:
    """Return the weight of the labels, what is learnt with it, and the coefficients of the labelled rows.

    A row with a label has no pseudo-label, whatever the weight of labels is.
    """
    K = state.find_products_among(labelled.columns, labelled.domain)
    covariance = rows.covariance(rows, K)
    scores = score_columns(labelled.columns, state.weights) + state.intercept
    scores -= _find_offsets(state, state.weights)[labelled.domain]
    is_anchor = labelled.anchor >= 0
    before = state.C * np.where(is_anchor, state.weight[labelled.anchor], 0.0)
    evidence = before[:, None] * signs(state.codes[labelled.anchor], state.n_classes)
    border = np.zeros(scores.shape)
    base = _score_targets(state, state.weights, state.intercept, state.scores)
    for k, target_shares in zip(state.target_positions, shares or [], strict=False):
        border[labelled.domain == k] = find_border(base[k], state.temperature, target_shares.mean)
    apart = remove_rows(covariance, scores, before, evidence)
    seen = weigh_evidence(apart.scores + border, labelled.codes, state.temperature, state.C)
    learn = partial(learn_evidence, apart.covariance + TARGET_PART * K, apart.scores, seen)
    learnings, weight = dict[float, Learning](), 0.0
    if len(labelled.codes) >= FEW_LABELS:
        train = np.flatnonzero(state.weight)
        codes, n = state.codes[train], int((train < state.n_source).sum())
        source = take_source_rows(posterior, rows, signs(codes, state.n_classes), n)

        def measure(weight: float) -> tuple[np.ndarray, np.ndarray]:
            learning = learn(weight)
            learnings[weight] = replace(learning, inverses=[])  # which are large
            of_target = learning.left_out + border, labelled.codes, state.temperature
            of_source = source.score_left_out(apart, learning), codes[:n], state.held_out.temperature
            return log_loss(*of_target), log_loss(*of_source)

        weight = choose_label_weight(measure)
    learning = learnings.get(weight) or learn(weight)
    return weight, learning, apart.restore(learning.g)


def _score_target_anchors(
    state: UpdateState,
    weights: Sequence[np.ndarray],
    intercept: np.ndarray,
    change: np.ndarray,
    particular: np.ndarray,
) -> np.ndarray:
    """Score the target anchors by new weights.

    With ``K + diag(1 / (C weight))`` times the `change` of dual coefficients known, scores of training rows
    change by ``-change / (C weight)``, and by what is `particular` to targets, given for all anchors.
    """
    n, scores = state.n_source, state.scores.copy()
    weight, domain = state.weight[n:], state.domain[n:]
    is_trained = weight > 0
    scores[is_trained] += particular[n:][is_trained]
    scores[is_trained] -= change[n:][is_trained] / (state.C * weight[is_trained, None])
    others = np.flatnonzero(~is_trained)
    columns = [A[n + others] for A in state.columns]
    offsets = _find_offsets(state, weights)[domain[others]]
    scores[others] = score_columns(columns, weights) + intercept - offsets
    return scores


def _describe_all(
    state: UpdateState, groups: dict[int, np.ndarray], shares: Sequence[Shares]
) -> list[Target]:
    """Find border and expected error of every target from the scores of its rows."""
    border, targets = BorderOptions(state.is_balanced), []
    for k, target_shares in zip(state.target_positions, shares, strict=True):
        parts = groups[k], state.temperature, state.first_scores_of(k), state.held_out
        targets.append(describe_target(*parts, target_shares, border, state.gain))
    return targets
