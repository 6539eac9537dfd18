"""What `MSDAClassifier.fit` is given, in whichever form, as one noun: rows of domains, some labelled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, column_or_1d

from .._core import Rows, array_ops
from .._inputs import check_rows, find_accelerator, gather_rows, is_missing, missing_mask, on_cluster, to_host
from .extra_features import checked_blocks

SOURCE, TARGET = 0, -1  # domain numbers where the user gave none; further targets are -2, -3, ...


@dataclass(frozen=True)
class TrainingRows:
    """Rows by domain, and the labelled ones among them apart."""

    domains: dict[int, Rows]  # domain number -> all its rows; sources are >= 0, targets negative
    labelled: Rows  # (n, d) the labelled rows of all sources
    y: np.ndarray  # (n,)   their labels
    domain: np.ndarray  # (n,)   their domain numbers
    position: np.ndarray  # (n,)   their row numbers within their domains
    blocks: tuple[TrainingRows, ...] = ()  # the same rows of every extra block

    @property
    def matrices(self) -> list[Rows]:
        """Rows of every domain, and those of the extra blocks."""
        return [own for view in (self, *self.blocks) for own in view.domains.values()]

    @property
    def targets(self) -> list[int]:
        """Numbers of the target domains, in the order given."""
        return [number for number in self.domains if number < 0]


def training_rows(
    estimator: Any,
    X: Any,
    y: Any,
    X_target: Any = None,
    sample_domain: Any = None,
    dtype: Any = np.float32,
    blocks: Any = None,
    blocks_target: Any = None,
) -> TrainingRows:
    """Sort out the two forms of the contract: targets apart in `X_target`, or all rows stacked in `X`."""
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None: "
            "give the labels of X, with None or NaN for rows that have none"
        )
    X = check_rows(estimator, X, reset=True, dtype=dtype)
    y = _column(y.compute() if on_cluster(y) else y)
    check_consistent_length(X, y)
    has_label = ~missing_mask(y)
    if sample_domain is not None:
        if X_target is not None:
            raise ValueError("pass either X_target or sample_domain (with all rows in X), not both")
        domain = checked_domain(sample_domain, X.shape[0])
        has_label &= domain >= 0  # labels of target rows are ignored, whatever they hold
    else:
        unlabelled = SOURCE if X_target is not None else TARGET
        domain = np.where(has_label, SOURCE, unlabelled)
    targets = [check_rows(estimator, Z, reset=False, dtype=dtype) for Z in _target_matrices(X_target)]
    views = extra_views(X, targets, blocks, blocks_target, X_target, dtype)
    y, own_domain, position = _checked_labels(y[has_label]), domain[has_label], _positions(domain)[has_label]
    rows, *others = (
        TrainingRows(_by_domain(own, more, domain), gather_rows(own[has_label]), y, own_domain, position)
        for own, *more in map(_alike, [(X, targets), *views])
    )
    return replace(rows, blocks=tuple(others))


def _alike(view: tuple[Rows, list[Rows]]) -> list[Rows]:
    """Rows of a view, and of its targets: on a GPU if all of them are, and else all of them on the host."""
    matrices = [view[0], *view[1]]
    if any(find_accelerator(own) is None for own in matrices):
        return [to_host(own) for own in matrices]
    return [own.to(matrices[0].device) for own in matrices]


def _positions(domain: np.ndarray) -> np.ndarray:
    """Number of each row within its domain."""
    position = np.empty(len(domain), dtype=int)
    for number in np.unique(domain):
        position[domain == number] = np.arange(np.sum(domain == number))
    return position


def _by_domain(X: Rows, targets: Sequence[Rows], domain: np.ndarray) -> dict[int, Rows]:
    """Rows by domain number; those of `targets` take the next numbers below 0."""
    domains = {int(number): X[domain == number] for number in _ordered(domain)}
    for rows in targets:
        domains[min(min(domains), 0) - 1] = rows
    return domains


def extra_views(
    X: Rows, targets: Sequence[Rows], blocks: Any, blocks_target: Any, X_target: Any, dtype: Any
) -> list[tuple[Rows, list[Rows]]]:
    """Validate extra blocks: for each, its rows that go with `X` and with every target."""
    if blocks_target is not None and not targets:
        raise ValueError("blocks_target goes with X_target, which is missing: leave it out, or pass X_target")
    if blocks is None and blocks_target is None:
        return []
    if any(on_cluster(own) for own in (X, *targets)):
        raise ValueError("rows of Dask cannot have extra blocks: pass rows that are here, X.compute() say")
    own = checked_blocks(blocks, X.shape[0], dtype=dtype)
    theirs = [
        checked_blocks(
            more, Z.shape[0], dtype=dtype, widths=[E.shape[1] for E in own], of=name, name="blocks_target"
        )
        for name, more, Z in _target_blocks(blocks_target, X_target, targets)
    ]
    return [(E, [more[b] for more in theirs]) for b, E in enumerate(own)]


def _target_blocks(blocks_target: Any, X_target: Any, targets: Sequence[Rows]) -> list[tuple[str, Any, Rows]]:
    """Name of every target, the blocks given for it, and its rows."""
    if not _is_list_of_matrices(X_target):
        return [("X_target", blocks_target, Z) for Z in targets]
    given = [None] * len(targets) if blocks_target is None else blocks_target
    if not isinstance(given, list | tuple) or len(given) != len(targets):
        found = f"{len(given)} entries" if isinstance(given, list | tuple) else f"a {type(given).__name__}"
        raise ValueError(
            f"X_target is a list of {len(targets)} domains, so blocks_target must be one too, each entry the "
            f"block or the list of blocks of that domain; got {found}"
        )
    return [(f"X_target[{i}]", more, Z) for i, (more, Z) in enumerate(zip(given, targets, strict=True))]


def _column(y: Any) -> np.ndarray:
    y = to_host(y)
    if isinstance(y, list | tuple) and any(np.ndim(label) == 0 and is_missing(label) for label in y):
        y = np.array(y, dtype=object)
    return column_or_1d(y, warn=True)


def checked_domain(sample_domain: Any, n: int) -> np.ndarray:
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


def _ordered(domain: np.ndarray) -> np.ndarray:
    """Domain numbers, sources first, then targets from -1 downwards."""
    numbers = np.unique(domain)
    return np.concatenate([numbers[numbers >= 0], numbers[numbers < 0][::-1]])


def _target_matrices(X_target: Any) -> list[Any]:
    if X_target is None:
        return []
    return list(X_target) if _is_list_of_matrices(X_target) else [X_target]


def _is_list_of_matrices(X_target: Any) -> bool:
    # hasattr on the class: a delayed value claims to have everything
    return isinstance(X_target, list | tuple) and all(hasattr(type(rows), "shape") for rows in X_target)


def _checked_labels(y: np.ndarray) -> np.ndarray:
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


def stack_rows(blocks: list[Rows]) -> Rows:
    """Stack row blocks, all of one library, sparse or dense."""
    return blocks[0] if len(blocks) == 1 else array_ops(blocks[0]).stacked(blocks)
