"""The Gram matrix: inner products of the anchors and of the domains' centres, summed over the layers.

Inner products of ``[h^0, ..., h^l]``, which is never built, are sums over its layers. At every layer the rows
of a domain are less the centre of that domain, and scaled so that their mean square norm is 1: all layers
then count alike. The centres themselves are further rows, so that a story that moves a domain needs no row
again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from ..core import Array, Layer, Rows, add_domain_centred_gram, array_ops, domain_centred_gram, stack_rows
from ..inputs import dtype_of

_MOST_ROUNDING = 0.1  # of posterior covariances, against the noise of rows


@dataclass(frozen=True)
class Stack:
    """Layers on the input, and the centre and the scale of each of ``h^0, ..., h^l``."""

    layers: tuple[Layer, ...]
    means: tuple[np.ndarray, ...]  # of every depth, (n_domains, d_t): the centres
    shares: tuple[float, ...]  # of every depth, the factor of its inner products
    origin: np.ndarray  # (n_domains,) weights of the centres: their mean is where centres are measured from

    def grow(self, layer: Layer, means: np.ndarray, share: float) -> Stack:
        """Return the stack with one more layer."""
        return Stack((*self.layers, layer), (*self.means, means), (*self.shares, share), self.origin)


@dataclass(frozen=True)
class Gram:
    """Inner products of labelled anchors, target anchors and centres, in this order. Nothing writes to it."""

    products: Array  # (n, n)
    n_labelled: int
    domain: np.ndarray  # (n_anchors,) position of each anchor's domain

    @property
    def scale(self) -> float:
        """Mean square norm of the labelled anchors."""
        return float(self.products.diagonal()[: self.n_labelled].mean()) or 1.0

    @property
    def n_targets(self) -> int:
        """Number of target anchors."""
        return len(self.domain) - self.n_labelled

    def suit(self, C: float, weight: float) -> Gram:
        """Return the products in float64 where C, and the weight of rows, are too large for float32.

        Least squares adds ``noise = 1 / (C weight)`` to a diagonal of mean 1. Posterior covariances are
        differences of products whose rounding is about ``eps n / noise``, and are used with noise added.
        """
        ops, eps = array_ops(self.products), np.finfo(dtype_of(self.products)).eps
        if eps * len(self.products) * (C * weight) ** 2 <= _MOST_ROUNDING:
            return self
        return replace(self, products=ops.cast(self.products, ops.float64))


def start_gram(X: Rows, domain: np.ndarray, stack: Stack) -> Array:
    """Return the inner products at the input."""
    means, rows, owner = _add_centres(X, domain, stack)
    with array_ops(X).full_precision():
        K = domain_centred_gram(rows, means, owner)
    K *= stack.shares[0]
    return K


def add_layer(K: Array, H: Array, domain: np.ndarray, stack: Stack) -> Array:
    """Add the inner products of the deepest layer of a stack, in the memory of `K`.

    `H` has the anchors and one more row for each domain; it is overwritten.
    """
    ops, n, means = array_ops(H), len(domain), stack.means[-1]
    H[n:] = ops.like(means, H)
    centres, owner = _find_centres(means, domain, stack.origin)
    with ops.full_precision():  # so that no rounding makes the matrix indefinite
        return add_domain_centred_gram(K, H, centres, owner, stack.shares[-1])


def _add_centres(X: Rows, domain: np.ndarray, stack: Stack) -> tuple[np.ndarray, Rows, np.ndarray]:
    means = stack.means[0]
    added = sp.csr_array(means.astype(X.dtype)) if sp.issparse(X) else array_ops(X).like(means, X)
    centres, owner = _find_centres(means, domain, stack.origin)
    return centres, stack_rows([X, added]), owner


def _find_centres(means: np.ndarray, domain: np.ndarray, origin: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return what is subtracted: for anchors the centre of their domain, for centres the origin."""
    owner = np.concatenate([domain, np.full(len(means), len(means))])
    return np.vstack([means, origin @ means]), owner


def score_centres(centres: Sequence[np.ndarray], weights: Sequence[np.ndarray]) -> np.ndarray:
    """Score the centre of each domain: (n_domains, n_outputs)."""
    return np.sum([centre @ w for centre, w in zip(centres, weights, strict=True)], axis=0, dtype=float)
