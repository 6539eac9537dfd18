"""The problem: the rows of every domain by name, with the labels that are known of them.

`check_problem` makes them once, at the boundary. Every step of the method takes them as they are.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from numbers import Real
from typing import Any, Literal, TypeAlias, TypeVar, cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, DTypeLike
from sklearn.base import BaseEstimator
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, column_or_1d

from ..core import Array, Rows, stack_rows
from ..errors import count, warn
from ..inputs import (
    Column,
    check_precision,
    check_rows,
    find_accelerator,
    gather_rows,
    is_missing,
    missing_mask,
    on_cluster,
    to_host,
)

UNLABELLED = -1  # instead of a class code
SOURCE, TARGET = "source", "target"  # names of domains that the user did not name
Name: TypeAlias = Hashable  # of a domain
Label: TypeAlias = Hashable
Shares: TypeAlias = Mapping[Any, float]  # of the classes
KnownShares: TypeAlias = Shares | Mapping[Any, Shares]  # of all targets, or by target
Targets: TypeAlias = Rows | Mapping[str, Rows] | None
Values = TypeVar("Values")  # of the rows of a target
RowKey = tuple[int | bytes, ...]  # a row's domain and content


@dataclass(frozen=True)
class Words:
    """Scores that a teacher gives to the rows of one target."""

    scores: np.ndarray  # (n, n_outputs) log odds, or signs where it gives labels alone; 0 where it is silent
    codes: np.ndarray  # (n,) its labels, `UNLABELLED` where it is silent
    story: str = ""  # the assumption under which they are right
    error: float = 0.0  # share of them that is known to be wrong, at least

    @property
    def taught(self) -> np.ndarray:
        """Numbers of the rows that have a label of the teacher."""
        return np.flatnonzero(self.codes != UNLABELLED)

    def take(self, rows: np.ndarray) -> Words:
        """Return the words for some of the rows."""
        return replace(self, scores=self.scores[rows], codes=self.codes[rows])

    def lengthen(self, n: int) -> Words:
        """Return the words for n rows, silent on those that are added at the end."""
        added = n - len(self.codes)
        scores = np.pad(self.scores, ((0, added), (0, 0)))
        return replace(self, scores=scores, codes=np.pad(self.codes, (0, added), constant_values=UNLABELLED))


@dataclass(frozen=True)
class Problem:
    """Rows by domain, sources first, the codes of their classes, and what the user knows of the targets."""

    rows: dict[Name, Rows]
    codes: dict[Name, np.ndarray]  # (n_k,) of the rows of each domain, `UNLABELLED` where none is known
    n_sources: int
    classes: np.ndarray
    weight: np.ndarray  # (n,) of the labelled source rows, given by the user, else ones
    taught: dict[Name, dict[str, Words]] = field(default_factory=dict)  # of some targets, by teacher
    has_source: bool = True  # False where the source is target rows that a teacher labelled
    shares: dict[Name, np.ndarray] = field(default_factory=dict)  # of some targets, those of the classes
    assumes_same: bool = False  # whether the mix of classes is said to be the source's
    is_balanced: bool = False  # whether predictions are of classes that count alike

    @property
    def names(self) -> list[Name]:
        """Names of all domains."""
        return list(self.rows)

    @property
    def targets(self) -> list[Name]:
        """Names of the target domains."""
        return self.names[self.n_sources :]

    @property
    def target_positions(self) -> list[int]:
        """Positions of the target domains among all domains."""
        return list(range(self.n_sources, len(self.rows)))

    @property
    def sizes(self) -> list[int]:
        """Numbers of rows."""
        return [X.shape[0] for X in self.rows.values()]

    @cached_property
    def labelled(self) -> Rows:
        """Labelled rows of all sources, one after another: (n, d)."""
        parts = [take_rows(self.rows[name], is_known) for name, is_known in self._known()]
        return stack_rows([gather_rows(part) for part in parts])

    @cached_property
    def y(self) -> np.ndarray:
        """Class codes of the labelled rows."""
        return np.concatenate([self.codes[name][is_known] for name, is_known in self._known()])

    @cached_property
    def domain(self) -> np.ndarray:
        """Positions of the domains of the labelled rows."""
        return np.repeat(np.arange(self.n_sources), [is_known.sum() for _, is_known in self._known()])

    @cached_property
    def position(self) -> np.ndarray:
        """Row numbers of the labelled rows within their domains."""
        return np.concatenate([np.flatnonzero(is_known) for _, is_known in self._known()])

    def _known(self) -> Iterator[tuple[Name, np.ndarray]]:
        for name in self.names[: self.n_sources]:
            yield name, self.codes[name] != UNLABELLED

    def balanced_weight(self) -> np.ndarray:
        """Weights of the labelled rows with which all classes count alike."""
        totals = np.bincount(self.y, self.weight)
        return self.weight * (self.weight.sum() / (len(totals) * totals))[self.y]


def check_problem(
    estimator: BaseEstimator,
    X: Rows | None,
    y: Column | None,
    X_target: Targets = None,
    y_target: Column | Mapping[str, Column] | None = None,
    sample_domain: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    *,
    dtype: DTypeLike = np.float32,
) -> Problem:
    """Check the arguments of `fit` and return the domains.

    Targets are in `X_target`; or all rows are in `X`, and `sample_domain` or missing labels say which are
    targets. A row of weight 0 counts as one without a label.
    """
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None: "
            "give the labels of X, with None or NaN for rows that have none"
        )
    X, y = check_rows(estimator, X, reset=True, dtype=dtype), _check_column(y)
    check_consistent_length(X, y)
    targets = {
        name: check_rows(estimator, Z, reset=False, dtype=dtype) for name, Z in name_targets(X_target).items()
    }
    for Z in targets.values():
        if not on_cluster(Z):
            check_precision(Z, "X_target")
    X, *others = matrices = [X, *targets.values()]
    if any(find_accelerator(matrix) is None for matrix in matrices):  # on a GPU if all are
        X, *others = map(to_host, matrices)
    else:
        others = [matrix.to(X.device) for matrix in others]
    weight, has_label = _check_weights(sample_weight, X.shape[0]), ~missing_mask(y)
    number, names = _number_rows(sample_domain, has_label, bool(targets))
    has_label &= number >= 0  # labels of target rows are ignored, whatever they hold
    lost = set(y[has_label].tolist()) - set(y[has_label & (weight > 0)].tolist())
    if lost:
        raise ValueError(
            f"sample_weight is zero for every row of class {min(lost, key=str)!r}, so it cannot be learnt: "
            "give some of them a weight, or leave the class out of y"
        )
    has_label &= weight > 0
    classes, codes = np.unique(_check_labels(y[has_label]), return_inverse=True)
    all_codes = np.full(len(y), UNLABELLED)
    all_codes[has_label] = codes
    members = {name: number == k for k, name in names.items()}
    rows = {name: take_rows(X, is_member) for name, is_member in members.items()}
    rows |= dict(zip(targets, others, strict=True))
    by_name = {name: all_codes[is_member] for name, is_member in members.items()}
    by_name |= {name: np.full(Z.shape[0], UNLABELLED) for name, Z in targets.items()}
    of_rows = np.concatenate([weight[is_member & has_label] for is_member in members.values()])
    given: Mapping[Name, Column] = {}
    if y_target is not None and sample_domain is not None and not targets:
        column = np.asarray(y_target, dtype=object)
        given = {name: column[members[name]] for k, name in names.items() if k < 0}
    elif y_target is not None:
        given = name_values(y_target, "y_target", X_target)
    for name, labels in given.items():
        title = "y_target" if name == TARGET else f"y_target[{name!r}]"
        found = check_target_labels(labels, rows[name].shape[0], classes, title)
        if (found != UNLABELLED).any():
            by_name[name] = _label_once(rows[name], found, title)
    return Problem(rows, by_name, sum(k >= 0 for k in names), classes, of_rows)


def _number_rows(
    sample_domain: ArrayLike | None, has_label: np.ndarray, has_targets: bool
) -> tuple[np.ndarray, dict[int, Name]]:
    """Return the domain number of every row of X, and the name of each number, sources first."""
    number = np.where(has_label | has_targets, 0, -1)
    if sample_domain is not None:
        number = check_domain_numbers(sample_domain, len(has_label))
        if has_targets and (number < 0).any():
            raise ValueError(
                "sample_domain puts rows of X into a target: leave X_target out, or pass sources"
            )
    order = sorted(set(number.tolist()), key=lambda k: (k < 0, abs(k)))
    return number, {k: k if sample_domain is not None else TARGET if k < 0 else SOURCE for k in order}


def name_targets(X_target: Targets) -> dict[Name, Rows]:
    """Return the targets by name; one matrix is one target without a name of its own."""
    if X_target is None:
        return {}
    if isinstance(X_target, list | tuple) and any(hasattr(type(rows), "shape") for rows in X_target):
        raise TypeError("X_target is a list of matrices: pass a dict that names them, {'kitchen': rows, ...}")
    targets = X_target if isinstance(X_target, dict) else {TARGET: X_target}
    if SOURCE in targets:
        raise ValueError(f"X_target names a domain {SOURCE!r}, which is the name of X: choose another one")
    return targets


def name_values(given: Values | Mapping[str, Values], title: str, X_target: Targets) -> dict[Name, Values]:
    """Return the values of the rows of every target, such as labels, by its name."""
    if X_target is None:
        raise ValueError(f"{title} goes with X_target, which is missing: leave it out, or pass X_target")
    if not isinstance(X_target, dict):
        return {TARGET: cast(Values, given)}
    if not isinstance(given, dict) or set(given) - set(X_target):
        seen = f"the names {list(given)}" if isinstance(given, dict) else type(given).__name__
        raise ValueError(
            f"X_target is a dict, so {title} must be one too, with values for some of {list(X_target)}; "
            f"got {seen}"
        )
    return given


def take_rows(X: Rows, is_taken: np.ndarray) -> Rows:
    """Return some of the rows; all of them without a copy where they are sparse: nothing writes to those."""
    return X if sp.issparse(X) and is_taken.all() else X[is_taken]


def check_domain_numbers(sample_domain: ArrayLike, n: int) -> np.ndarray:
    """Return one domain number per row."""
    number = np.asarray(to_host(sample_domain))
    if number.ndim == 0:
        number = np.full(n, number)
    if number.shape != (n,) or number.dtype.kind not in "iu":
        raise ValueError(
            f"sample_domain must hold one integer for each of the {n} rows of X, at least 0 for a source and "
            f"negative for a target; got shape {number.shape} of {number.dtype}"
        )
    return number


def check_target_labels(y: Column | None, n: int, classes: np.ndarray, title: str) -> np.ndarray:
    """Return the class codes of n rows from labels of some of them, `UNLABELLED` for the others.

    A label of no class of the source cannot be learnt: it is left out, with a warning.
    """
    codes, unknown = find_codes(y, n, classes, title)
    if unknown:
        named = ", ".join(map(repr, list(dict.fromkeys(unknown))[:5]))
        warn(
            f"{title}: {count(len(unknown), 'label')} left out, of classes that the source lacks ({named}); "
            "to predict these, label source rows of them and fit again",
            code="unknown-class",
        )
    return codes


def find_codes(y: Column | None, n: int, classes: np.ndarray, title: str) -> tuple[np.ndarray, list[Label]]:
    """Return the class codes of n rows, `UNLABELLED` for many, and the labels that are no class."""
    codes, unknown = np.full(n, UNLABELLED), list[Label]()
    if y is None:
        return codes, unknown
    y = _check_column(y)
    if len(y) != n:
        raise ValueError(
            f"{title} has {len(y)} entries for {n} target rows; give one for each, None or NaN where there "
            "is no label"
        )
    known = {label: code for code, label in enumerate(classes.tolist())}
    for i in np.flatnonzero(~missing_mask(y)):
        label = y[i].item() if isinstance(y[i], np.generic) else y[i]
        codes[i] = known.get(label, UNLABELLED)
        if label not in known:
            unknown.append(label)
    return codes, unknown


def list_row_keys(X: Rows, domain: np.ndarray) -> list[RowKey]:
    """Return a key for every row, made of its domain and its content: equal rows have equal keys."""
    X = sp.csr_array(X, copy=True)
    X.sum_duplicates()
    X.eliminate_zeros()
    indices, data = X.indices.astype(np.int64), X.data
    edges = zip(X.indptr[:-1], X.indptr[1:], strict=True)
    contents = [indices[a:b].tobytes() + data[a:b].tobytes() for a, b in edges]
    return list(zip(domain.tolist(), contents, strict=True))


def find_equal_rows(X: Rows) -> np.ndarray:
    """Return for every row the number of the first row that equals it."""
    if find_accelerator(X) is not None:
        _, groups = X.unique(dim=0, return_inverse=True)
        _, first, group = np.unique(to_host(groups), return_index=True, return_inverse=True)
        return first[group]
    seen: dict[RowKey, int] = {}
    keys = list_row_keys(to_host(X), np.zeros(X.shape[0], dtype=int))
    return np.array([seen.setdefault(key, i) for i, key in enumerate(keys)], dtype=int)


def _label_once(X: Rows, codes: np.ndarray, title: str) -> np.ndarray:
    """Return the labels of target rows, of equal rows the first one's alone; none where they contradict."""
    labelled = np.flatnonzero(codes != UNLABELLED)
    first = labelled[find_equal_rows(gather_rows(X[labelled]))]
    once = np.full(len(codes), UNLABELLED)
    once[first] = codes[first]
    contradicting = np.unique(first[codes[labelled] != codes[first]])
    once[contradicting] = UNLABELLED
    if len(contradicting):
        some = ", ".join(map(str, labelled[first == contradicting[0]][:5]))
        warn(
            f"{title}: {count(len(contradicting), 'set')} of equal rows with contradicting labels, none of "
            f"which is taken, such as rows {some}"
        )
    return once


def _check_weights(sample_weight: ArrayLike | None, n: int) -> np.ndarray:
    """Return one weight for each of n rows, ones where none are given."""
    weight = np.asarray(1.0 if sample_weight is None else to_host(sample_weight), dtype=float)
    weight = np.full(n, weight) if weight.ndim == 0 else weight
    if weight.shape != (n,):
        raise ValueError(
            f"sample_weight must hold one number for each of the {n} rows of X, got shape {weight.shape}"
        )
    bad = np.flatnonzero(~(np.isfinite(weight) & (weight >= 0)))
    if len(bad):
        raise ValueError(
            f"sample_weight of row {bad[0]} is {weight[bad[0]]:g}; weights are finite and at least 0"
        )
    return weight


def _check_column(y: Column) -> np.ndarray:
    column: Array = y
    y = to_host(column.compute() if on_cluster(column) else column)
    if isinstance(y, list | tuple) and any(np.ndim(label) == 0 and is_missing(label) for label in y):
        y = np.array(y, dtype=object)
    return column_or_1d(y, warn=True)


def _check_labels(y: np.ndarray) -> np.ndarray:
    if len(y) == 0:
        raise ValueError("no row has a label: y is None or NaN, or sample_domain negative, for all of them")
    if y.dtype == object:
        y = np.array(y.tolist())  # labels of one kind, now that None and NaN are gone
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise ValueError("Input y contains infinity; labels must be finite, or NaN for rows that have none")
    check_classification_targets(y)
    if len(np.unique(y)) < 2:
        raise ValueError(
            f"the labelled rows have only 1 class, {y.tolist()[0]!r}; a classifier needs at least two classes"
        )
    return y


def check_shares(
    given: KnownShares | Literal["source"] | None, classes: np.ndarray, targets: Sequence[Name]
) -> list[list[float] | None]:
    """Return the known shares of every target in class order, None where they are not given as numbers.

    They are given as class -> share for all targets, or name of a target -> such a dict for some of them.
    """
    if given is None or (isinstance(given, str) and given == "source"):
        return [None] * len(targets)
    if not targets:
        raise ValueError(
            "target_shares needs target rows, and there are none: pass X_target, or leave it out"
        )
    if isinstance(given, str):
        raise ValueError(f"target_shares={given!r} is not known; pass 'source', or a dict: class -> share")
    if not isinstance(given, dict):
        raise TypeError(
            "target_shares must be a dict, class -> share, or name of a target -> such a dict, or 'source'; "
            f"got {given!r}"
        )
    if not any(isinstance(shares, dict) for shares in given.values()):
        return [_order_shares(given, classes.tolist())] * len(targets)
    unknown = [name for name in given if name not in targets]
    if unknown:
        names = ", ".join(map(repr, targets))
        raise ValueError(
            f"target_shares names {unknown[0]!r}, which is not a target; the targets are {names}"
        )
    return [_order_shares(given[name], classes.tolist()) if name in given else None for name in targets]


def _order_shares(shares: Shares, labels: list[Label]) -> list[float]:
    names = ", ".join(map(repr, labels))
    unknown = [label for label in shares if label not in labels]
    if unknown:
        raise ValueError(f"target_shares names {unknown[0]!r}, which is not a class; the classes are {names}")
    missing = [label for label in labels if label not in shares]
    if missing:
        raise ValueError(f"target_shares lacks {missing[0]!r}; give the share of every class: {names}")
    values = [shares[label] for label in labels]
    for label, value in zip(labels, values, strict=True):
        if not isinstance(value, Real) or not 0 <= value <= 1:
            raise ValueError(f"target_shares of {label!r} is {value!r}; shares are numbers between 0 and 1")
    if abs(sum(values) - 1) > 0.01:
        raise ValueError(f"target_shares sum to {sum(values):g}, not to 1: {shares!r}")
    return [float(value) / sum(values) for value in values]
