"""Domains, the transfer tasks between them, and the corpus that holds them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import chain, permutations
from typing import Any

import numpy as np

from undrift.core import stack_rows
from undrift.inputs import missing_mask

# Rows are an (n, d) array or sparse matrix, or a list of n texts.
Rows = Any


def _no_rows() -> np.ndarray:
    return np.empty(0, dtype=np.intp)


@dataclass(frozen=True, eq=False)
class Domain:
    """Rows of one domain and their labels, and which of them are train, test and unlabelled rows.

    Parameters
    ----------
    name : str
    X, texts : {array, sparse matrix} of shape (n, d), or list of str
        The rows, one of the two.
    y : array of shape (n,)
        Labels, NaN where unknown.
    train, test, unlabelled : array of int
        Numbers of the labelled rows to learn from, of those to score when it is the target, and of the
        unlabelled ones, which serve the layers alone. Parts may overlap.
    """

    name: str
    X: Rows = field(default=None, kw_only=True)
    texts: list[str] | None = field(default=None, kw_only=True)
    y: np.ndarray = field(kw_only=True)
    train: np.ndarray = field(default_factory=_no_rows, kw_only=True)
    test: np.ndarray = field(default_factory=_no_rows, kw_only=True)
    unlabelled: np.ndarray = field(default_factory=_no_rows, kw_only=True)

    def __post_init__(self) -> None:
        if (self.X is None) == (self.texts is None):
            raise ValueError(f"domain {self.name!r} needs either X or texts, and not both")
        y = np.asarray(self.y)
        if y.shape != (len(self),):
            raise ValueError(
                f"domain {self.name!r} has {len(self)} rows but y of shape {y.shape}; give one label per row"
            )
        object.__setattr__(self, "y", y)
        for part in ("train", "test", "unlabelled"):
            object.__setattr__(self, part, self._indices(part))
        for part in ("train", "test"):
            if missing_mask(y[getattr(self, part)]).any():
                raise ValueError(f"domain {self.name!r}: {part} rows without a label; mark them unlabelled")

    def __len__(self) -> int:
        return len(self.texts) if self.texts is not None else self.X.shape[0]

    @property
    def rows(self) -> Rows:
        """`X` or `texts`, whichever this domain has."""
        return self.X if self.texts is None else self.texts

    def with_rows(self, rows: Rows) -> Domain:
        """Return the same domain with other rows in the same order: features, or a list of texts."""
        if isinstance(rows, list):
            return replace(self, X=None, texts=rows)
        return replace(self, X=rows, texts=None)

    def _indices(self, part: str) -> np.ndarray:
        index = np.asarray(getattr(self, part))
        if index.size == 0:
            return _no_rows()
        if index.ndim != 1 or index.dtype.kind not in "iu":
            raise ValueError(f"domain {self.name!r}: {part} must be a list of row numbers")
        if index.min() < 0 or index.max() >= len(self):
            raise ValueError(f"domain {self.name!r}: {part} has row numbers outside 0 ... {len(self) - 1}")
        return index.astype(np.intp)


@dataclass(frozen=True, eq=False)
class Task:
    """Train on `source`, predict on `target`."""

    source: Domain
    target: Domain

    @property
    def name(self) -> str:
        """The two domains, as in ``"books->kitchen"``."""
        return f"{self.source.name}->{self.target.name}"


@dataclass(frozen=True, eq=False)
class Corpus:
    """Domains that share one feature space, whose columns `terms` may name, or are all texts.

    Where labels are names, `classes` has them, and `y` of every domain holds their numbers.
    """

    name: str
    domains: dict[str, Domain]
    terms: list[str] | None = None
    classes: list[str] | None = None

    def __post_init__(self) -> None:
        if not self.domains:
            raise ValueError(f"corpus {self.name!r} has no domains")
        widths = {k: None if v.X is None else v.X.shape[1] for k, v in self.domains.items()}
        if len(set(widths.values())) > 1:
            raise ValueError(f"corpus {self.name!r}: domains differ in their number of columns: {widths}")
        width = next(iter(widths.values()))
        if self.terms is not None and len(self.terms) != width:
            raise ValueError(f"corpus {self.name!r} has {len(self.terms)} terms for {width} columns")

    def tasks(self) -> list[Task]:
        """Every ordered pair of domains, source by source (section 5: 4 domains give 12 tasks)."""
        return [Task(source, target) for source, target in permutations(self.domains.values(), 2)]

    def map(self, f: Callable[[Rows], Rows], *, terms: list[str] | None = None) -> Corpus:
        """Return this corpus with `f` applied to the rows of every domain, whose columns are then `terms`."""
        domains = {name: domain.with_rows(f(domain.rows)) for name, domain in self.domains.items()}
        return Corpus(self.name, domains, terms, self.classes)

    def rows(self) -> tuple[Rows, np.ndarray]:
        """Return all rows of all domains, stacked (texts: chained), and the position of each row's domain."""
        parts = [domain.rows for domain in self.domains.values()]
        domain = np.repeat(np.arange(len(parts)), [len(d) for d in self.domains.values()])
        rows = list(chain.from_iterable(parts)) if isinstance(parts[0], list) else stack_rows(parts)
        return rows, domain
