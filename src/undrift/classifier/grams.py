"""Gram matrices of ``[h^0, ..., h^l]``, which is never built: inner products of its layers add up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from .._core import (
    Array,
    Layer,
    Moments,
    Rows,
    add_domain_centred_gram,
    array_ops,
    domain_centred_gram,
    mean_square,
)


def layer_share(domains: Sequence[Moments], center: bool) -> float:
    """What makes the mean square norm of a layer's rows 1, over the rows of all domains."""
    return 1 / (mean_square(domains, center) or 1.0)


@dataclass(frozen=True)
class Stack:
    """Input columns and the layers on them, with what centres and scales each of ``h^0, ..., h^l``."""

    layers: tuple[Layer, ...]
    means: tuple[np.ndarray, ...] | None  # each (n_domains, d_t); None without centring
    shares: tuple[float, ...]  # what the inner products of each are multiplied by

    def add_layer(self, layer: Layer, means: np.ndarray | None, share: float) -> Stack:
        """Return the stack with one more layer on top."""
        more = None if self.means is None or means is None else (*self.means, means)
        return Stack((*self.layers, layer), more, (*self.shares, share))

    def replace_top_means(self, means: np.ndarray) -> Stack:
        """Return the stack with other means of its last layer's outputs."""
        return self if self.means is None else replace(self, means=(*self.means[:-1], means))


@dataclass(frozen=True)
class CentredRows:
    """Rows of one domain less its mean; sparse rows stay sparse, with the mean still to be subtracted."""

    rows: Rows
    mean: Array | None = None


def centre_rows(rows: Rows, mean: Array | None) -> CentredRows:
    """Subtract the mean of a domain from some of its rows, if there is one to subtract."""
    if mean is None or sp.issparse(rows):
        return CentredRows(rows, mean)
    return CentredRows(rows - array_ops(rows).like(mean, rows))


def inner_products(left: CentredRows, right: CentredRows) -> Array:
    """Inner products of every row on the left with every row on the right, dense."""
    A, B = left.rows, right.rows
    K = np.asarray((A @ B.T).toarray()) if sp.issparse(A) else A @ B.T
    if left.mean is None or right.mean is None:
        return K
    # (a - m)(b - n)' = ab' - an' - mb' + mn', in float64: the terms nearly cancel
    K = K - (A @ right.mean)[:, None] - (B @ left.mean)[None, :] + left.mean @ right.mean
    return K.astype(A.dtype)


class RunningGram:
    """A Gram matrix summed layer by layer: ``K = sum_t share_t h^t h^t'``.

    Owns the sum and adds to it in place. What :meth:`peek` returns is valid until the next addition; what
    :meth:`hold` returns never changes, because the next addition then starts from a copy.
    """

    def __init__(self) -> None:
        self._sum: Array = None  # until the first addition
        self._is_held = False
        self.mean_products: np.ndarray | None = None  # (n, n_domains) of centred rows and the domains' means

    def add_rows(self, H: Rows, means: np.ndarray | None, domain: np.ndarray, share: float = 1.0) -> None:
        """Add `share` times the inner products of rows among themselves, less the means of their domains.

        `domain` says which row of `means` belongs to each row. From the second addition on, dense rows are
        centred where they are: `H` is overwritten.
        """
        if means is not None:
            products = share * _products_with_means(H, means, domain)
            self.mean_products = products if self.mean_products is None else self.mean_products + products
        if self._sum is not None and not sp.issparse(H):
            self._sum = add_domain_centred_gram(self._writable(), H, means, domain, share)
        else:
            self._add(domain_centred_gram(H, means, domain), share)

    def add_products(self, left: CentredRows, right: CentredRows, share: float = 1.0) -> None:
        """Add `share` times the inner products of two sets of rows, such as a target's and a source's."""
        self._add(inner_products(left, right), share)

    def _add(self, K: Array, share: float) -> None:
        if share != 1.0:
            K *= share
        if self._sum is None:
            self._sum = K
        else:
            self._sum = self._writable()
            self._sum += K

    def _writable(self) -> Array:
        K = self._sum + 0 if self._is_held else self._sum
        self._is_held = False
        return K

    def peek(self) -> Array:
        """Return the sum to read from until the next addition, where it is: on a device or not."""
        return self._sum

    def hold(self) -> Array:
        """Return the sum for good: the next addition copies it first."""
        self._is_held = True
        return self._sum

    def copy(self) -> RunningGram:
        """Return another sum that starts from a copy of this one."""
        other = RunningGram()
        other._sum, other.mean_products = self._sum + 0, self.mean_products
        return other


def _products_with_means(H: Rows, means: np.ndarray, domain: np.ndarray) -> np.ndarray:
    """Inner products of rows, less the means of their domains, with the mean of every domain."""
    ops = array_ops(H)
    return ops.to_numpy(H @ ops.like(means.T, H)) - (means @ means.T)[domain]
