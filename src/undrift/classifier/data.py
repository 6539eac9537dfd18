"""Normalise the two calling conventions of `MSDAClassifier.fit` into `TrainingRows`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, column_or_1d

from .._core import Rows
from .._inputs import (
    check_precision,
    check_rows,
    find_accelerator,
    gather_rows,
    is_missing,
    missing_mask,
    on_cluster,
    to_host,
)
from ..errors import count, warn
from .extra_features import check_extra

UNLABELLED = -1  # instead of a class code
RowKey = tuple[int | bytes, ...]  # a row's domain and content
SOURCE, TARGET = 0, -1  # domain numbers where the user gave none; further targets are -2, -3, ...


@dataclass(frozen=True)
class TrainingRows:
    """Rows by domain, and the labelled ones among them apart."""

    domains: dict[int, Rows]  # domain number -> all its rows; sources are >= 0, targets negative
    labelled: Rows  # (n, d) the labelled rows of all sources
    y: np.ndarray  # (n,) their labels; (n, n_tags) where these are tags
    domain: np.ndarray  # (n,)   their domain numbers
    position: np.ndarray  # (n,)   their row numbers within their domains
    extra: tuple[TrainingRows, ...] = ()  # the same rows of every matrix of extra features
    weight: np.ndarray = field(default_factory=lambda: np.ones(0))  # (n,) given by the user, else ones
    # classes of the rows of targets that have labels, by number; UNLABELLED for most
    target_codes: dict[int, np.ndarray] = field(default_factory=dict)

    @property
    def matrices(self) -> list[Rows]:
        """Rows of every domain, and their extra features."""
        return [rows for view in (self, *self.extra) for rows in view.domains.values()]

    @property
    def targets(self) -> list[int]:
        """Numbers of the target domains, in the order given."""
        return [number for number in self.domains if number < 0]

    @property
    def target_positions(self) -> list[int]:
        """Positions of the target domains among all domains."""
        return [k for k, number in enumerate(self.domains) if number < 0]


def check_training_rows(
    estimator: Any,
    X: Any,
    y: Any,
    X_target: Any = None,
    sample_domain: Any = None,
    dtype: Any = np.float32,
    extra: Any = None,
    extra_target: Any = None,
    y_target: Any = None,
    sample_weight: Any = None,
    *,
    is_numeric: bool = False,
) -> TrainingRows:
    """Return the rows of a fit by domain: targets apart in `X_target`, or all rows stacked in `X`.

    `y_target` are labels of target rows: of `X_target`, or, where all rows are in `X`, one for each of these.
    Labels are classes, or tags where `y` has several columns; numbers where `is_numeric`.
    """
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None: "
            "give the labels of X, with None or NaN for rows that have none"
        )
    X = check_rows(estimator, X, reset=True, dtype=dtype)
    y = y.compute() if on_cluster(y) else y
    y = _check_tags(y) if has_tags(y) and not is_numeric else _check_column(y)
    check_consistent_length(X, y)
    has_label = ~missing_mask(y)
    if sample_domain is None:
        domain = np.where(has_label, SOURCE, TARGET if X_target is None else SOURCE)
    else:
        if X_target is not None:
            raise ValueError("pass either X_target or sample_domain (with all rows in X), not both")
        domain = check_domain_numbers(sample_domain, X.shape[0])
        has_label &= domain >= 0  # labels of target rows are ignored, whatever they hold
    targets = [check_rows(estimator, Z, reset=False, dtype=dtype) for Z in _list_targets(X_target)]
    for Z in targets:
        if not on_cluster(Z):
            check_precision(Z, "X_target")
    views = _check_extra_of_domains(X, targets, extra, extra_target, X_target, dtype)
    check = _check_numbers if is_numeric else _check_labels
    labels = check(y[has_label]), domain[has_label], _number_within_domains(domain)[has_label]
    rows, *extra_rows = (
        TrainingRows(_split_by_domain(first, others, domain), gather_rows(labelled), *labels)
        for first, *others in map(_align_libraries, [(X, targets), *views])
        for labelled in [_take_rows(first, has_label)]
    )
    weight = _check_weights(sample_weight, X.shape[0])[has_label]
    if sample_weight is not None and not is_numeric and rows.y.ndim == 1:
        _check_class_weights(weight, rows.y)
    rows = replace(rows, extra=tuple(extra_rows), weight=weight)
    if y_target is None:
        return rows
    return _add_target_labels(rows, y_target, X_target, None if sample_domain is None else domain)


def _add_target_labels(
    rows: TrainingRows, y_target: Any, X_target: Any, domain: np.ndarray | None
) -> TrainingRows:
    """Add labels of target rows: of `X_target`, or of the rows of all domains, whose `domain` is given."""
    if rows.y.ndim == 2:
        raise ValueError("y_target holds classes, but y holds tags: leave it out, or fit one tag at a time")
    if X_target is None and domain is None:
        raise ValueError("y_target goes with X_target, which is missing: leave it out, or pass X_target")
    if domain is not None:
        y_target = np.asarray(y_target, dtype=object)
        given = [("y_target", y_target[domain == number]) for number in rows.targets]
    else:
        given = _name_target_labels(y_target, X_target, len(rows.targets))
    classes, target_codes = np.unique(rows.y), {}
    for number, (name, labels) in zip(rows.targets, given, strict=True):
        codes = check_target_labels(labels, rows.domains[number].shape[0], classes, name)
        if (codes != UNLABELLED).any():
            views = [view.domains[number] for view in (rows, *rows.extra)]
            target_codes[number] = _label_once(views, codes, name)
    return replace(rows, target_codes=target_codes)


def _label_once(views: Sequence[Rows], codes: np.ndarray, name: str) -> np.ndarray:
    """Return the labels of target rows, of equal rows the first one's alone; none where they contradict."""
    labelled, codes = np.flatnonzero(codes != UNLABELLED), codes.copy()
    given = [to_host(gather_rows(rows[labelled])) for rows in views]
    groups: dict[RowKey, list[int]] = {}
    keys = list_row_keys(given, np.zeros(len(labelled), dtype=int))
    for row, key in zip(labelled.tolist(), keys, strict=True):
        groups.setdefault(key, []).append(row)
    contradicting = [group for group in groups.values() if len(set(codes[group].tolist())) > 1]
    if contradicting:
        some = ", ".join(map(str, contradicting[0][:5]))
        warn(
            f"{name}: {count(len(contradicting), 'set')} of equal rows with contradicting labels, none of "
            f"which is taken, such as rows {some}"
        )
    for group in groups.values():
        codes[group[1:]] = UNLABELLED
    for group in contradicting:
        codes[group] = UNLABELLED
    return codes


def list_row_keys(views: Sequence[Rows], domain: np.ndarray) -> list[RowKey]:
    """Return what tells rows apart: their domain, and their content in X and in all extra features."""
    return list(zip(domain.tolist(), *map(_list_contents, views), strict=True))


def _list_contents(X: Rows) -> list[bytes]:
    if not sp.issparse(X):
        return [row.tobytes() for row in np.ascontiguousarray(X + 0.0)]  # where -0.0 is 0.0
    X = sp.csr_array(X, copy=True)
    X.sum_duplicates()
    X.eliminate_zeros()
    indices, data = X.indices.astype(np.int64), X.data
    edges = zip(X.indptr[:-1], X.indptr[1:], strict=True)
    return [indices[a:b].tobytes() + data[a:b].tobytes() for a, b in edges]


def _check_weights(sample_weight: Any, n: int) -> np.ndarray:
    """Return one weight for each of n rows, ones where none are given."""
    if sample_weight is None:
        return np.ones(n)
    weight = np.asarray(to_host(sample_weight), dtype=float)
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


def _check_class_weights(weight: np.ndarray, y: np.ndarray) -> None:
    """Refuse weights that leave nothing of a class."""
    for label in np.unique(y):
        if weight.any() and not weight[y == label].any():
            name = label.item()
            raise ValueError(
                f"sample_weight is 0 for every row of class {name!r}, so it cannot be learnt: give some of "
                "them a weight, or leave the class out of y"
            )


def _name_target_labels(y_target: Any, X_target: Any, n_targets: int) -> list[tuple[str, Any]]:
    """Return, for every target, the name of its labels in messages, and the labels."""
    if not _is_list_of_matrices(X_target):
        return [("y_target", y_target)]
    if not isinstance(y_target, list | tuple) or len(y_target) != n_targets:
        seen = f"{len(y_target)} entries" if isinstance(y_target, list | tuple) else type(y_target).__name__
        raise ValueError(
            f"X_target is a list of {n_targets} domains, so y_target must be one too, each entry the labels "
            f"of that domain, or None; got {seen}"
        )
    return [(f"y_target[{i}]", labels) for i, labels in enumerate(y_target)]


def check_target_labels(y: Any, n: int, classes: np.ndarray, name: str) -> np.ndarray:
    """Return the class codes of n rows from labels of some of them, `UNLABELLED` for the others."""
    if y is None:
        return np.full(n, UNLABELLED)
    y = _check_column(y.compute() if on_cluster(y) else y)
    if len(y) != n:
        raise ValueError(
            f"{name} has {len(y)} entries for {n} target rows; give one for each, None or NaN where there is "
            "no label"
        )
    codes, known = np.full(n, UNLABELLED), {label: code for code, label in enumerate(classes.tolist())}
    for i in np.flatnonzero(~missing_mask(y)):
        label = y[i].item() if isinstance(y[i], np.generic) else y[i]
        if label not in known:
            names = ", ".join(map(repr, known))
            raise ValueError(
                f"{name} holds {label!r}, which is not a class of the source; the classes are {names}"
            )
        codes[i] = known[label]
    return codes


def _align_libraries(view: tuple[Rows, list[Rows]]) -> list[Rows]:
    """Rows of a view, and of its targets: on a GPU if all of them are, and else all of them on the host."""
    matrices = [view[0], *view[1]]
    if any(find_accelerator(matrix) is None for matrix in matrices):
        return [to_host(matrix) for matrix in matrices]
    return [matrix.to(matrices[0].device) for matrix in matrices]


def _number_within_domains(domain: np.ndarray) -> np.ndarray:
    """Return the number of each row within its domain."""
    position = np.empty(len(domain), dtype=int)
    for number in np.unique(domain):
        position[domain == number] = np.arange(np.sum(domain == number))
    return position


def _take_rows(X: Rows, is_taken: np.ndarray) -> Rows:
    """Return some of the rows; all of them without a copy where they are sparse: nothing writes to those."""
    return X if sp.issparse(X) and is_taken.all() else X[is_taken]


def _split_by_domain(X: Rows, targets: Sequence[Rows], domain: np.ndarray) -> dict[int, Rows]:
    """Return rows by domain number; those of `targets` take the next numbers below 0."""
    domains = {int(number): _take_rows(X, domain == number) for number in _order_domains(domain)}
    for rows in targets:
        domains[min(min(domains), 0) - 1] = rows
    return domains


def _check_extra_of_domains(
    X: Rows, targets: Sequence[Rows], extra: Any, extra_target: Any, X_target: Any, dtype: Any
) -> list[tuple[Rows, list[Rows]]]:
    """Validate extra features: for each matrix, its rows that go with `X` and with every target."""
    if extra_target is not None and not targets:
        raise ValueError("extra_target goes with X_target, which is missing: leave it out, or pass X_target")
    if extra is None and extra_target is None:
        return []
    if any(on_cluster(rows) for rows in (X, *targets)):
        raise ValueError("rows of Dask cannot have extra features: pass X.compute(), or leave them out")
    source = check_extra(extra, X.shape[0], dtype=dtype)
    widths = [E.shape[1] for E in source]
    of_targets = [
        check_extra(given, Z.shape[0], dtype=dtype, widths=widths, of=name, name="extra_target")
        for name, given, Z in _name_targets(extra_target, X_target, targets)
    ]
    return [(E, [matrices[i] for matrices in of_targets]) for i, E in enumerate(source)]


def _name_targets(extra_target: Any, X_target: Any, targets: Sequence[Rows]) -> list[tuple[str, Any, Rows]]:
    """Return the name of every target, the extra features given for it, and its rows."""
    if not _is_list_of_matrices(X_target):
        return [("X_target", extra_target, Z) for Z in targets]
    given = [None] * len(targets) if extra_target is None else extra_target
    if not isinstance(given, list | tuple) or len(given) != len(targets):
        seen = f"{len(given)} entries" if isinstance(given, list | tuple) else f"a {type(given).__name__}"
        raise ValueError(
            f"X_target is a list of {len(targets)} domains, so extra_target must be one too, each entry the "
            f"matrix or the list of matrices of that domain; got {seen}"
        )
    return [(f"X_target[{i}]", extra, Z) for i, (extra, Z) in enumerate(zip(given, targets, strict=True))]


def _check_column(y: Any) -> np.ndarray:
    y = to_host(y)
    if isinstance(y, list | tuple) and any(np.ndim(label) == 0 and is_missing(label) for label in y):
        y = np.array(y, dtype=object)
    return column_or_1d(y, warn=True)


def has_tags(y: Any) -> bool:
    """Tell whether labels are an indicator matrix: a column for each of several tags."""
    shape = getattr(y, "shape", None) or np.shape(y[:1] if isinstance(y, list | tuple) else 0)
    return len(shape) == 2 and shape[1] > 1


def _check_tags(y: Any) -> np.ndarray:
    """Return an indicator matrix of 0 and 1; rows of NaN have no label."""
    y = y.toarray() if sp.issparse(y) else np.asarray(to_host(y))
    y = y if y.dtype.kind in "biu" else y.astype(float)
    is_known = ~missing_mask(y)
    if not np.isin(y[is_known], (0, 1)).all():
        raise ValueError(
            f"y has {y.shape[1]} columns, so they are tags, which are 0 or 1 (NaN in all columns of a row "
            f"without a label); got {y[is_known][~np.isin(y[is_known], (0, 1))][0]!r}"
        )
    return y


def check_domain_numbers(sample_domain: Any, n: int) -> np.ndarray:
    """Return one domain number per row."""
    domain = np.asarray(to_host(sample_domain))
    if domain.ndim == 0:
        domain = np.full(n, domain)
    if domain.shape != (n,) or domain.dtype.kind not in "iu":
        raise ValueError(
            f"sample_domain must hold one integer for each of the {n} rows of X, at least 0 for a source and "
            f"negative for a target; got shape {domain.shape} of {domain.dtype}"
        )
    return domain


def _order_domains(domain: np.ndarray) -> np.ndarray:
    """Return the domain numbers, sources first, then targets from -1 downwards."""
    numbers = np.unique(domain)
    return np.concatenate([numbers[numbers >= 0], numbers[numbers < 0][::-1]])


def _list_targets(X_target: Any) -> list[Any]:
    if X_target is None:
        return []
    return list(X_target) if _is_list_of_matrices(X_target) else [X_target]


def _is_list_of_matrices(X_target: Any) -> bool:
    # hasattr on the class: a delayed value claims to have everything
    return isinstance(X_target, list | tuple) and all(hasattr(type(rows), "shape") for rows in X_target)


def _check_present(y: np.ndarray) -> np.ndarray:
    if len(y) == 0:
        raise ValueError("no row has a label: y is None or NaN, or sample_domain negative, for all of them")
    if y.dtype == object:
        y = np.array(y.tolist())  # labels of one kind, now that None and NaN are gone
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise ValueError("Input y contains infinity; labels must be finite, or NaN for rows that have none")
    return y


def _check_numbers(y: np.ndarray) -> np.ndarray:
    y = _check_present(y)
    if len(y) == 1:
        raise ValueError("1 sample has a label; a regressor needs at least two")
    try:
        return y.astype(np.float64)
    except ValueError:
        raise ValueError(f"the labels of a regressor are numbers; got {y.tolist()[0]!r}") from None


def _check_labels(y: np.ndarray) -> np.ndarray:
    y = _check_present(y)
    if y.ndim == 2:
        return y.astype(int)
    check_classification_targets(y)
    if len(np.unique(y)) < 2:
        raise ValueError(
            f"the labelled rows have only 1 class, {y.tolist()[0]!r}; a classifier needs at least two classes"
        )
    return y
