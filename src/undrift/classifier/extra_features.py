"""Extra blocks: further columns of the same rows, a user's own embeddings say, beside those of X.

Inner products of a concatenation add, whatever the columns are: ``K = sum_t K_t + sum_b K_b``. A block is
centred by domain like a layer, and scaled to the mean square norm that X has in that sum. A block that is
denoised has a stack of its own, each layer of which counts as much as the same layer of X.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_array

from .._core import (
    ROUNDING,
    Array,
    Blocks,
    Grown,
    Layer,
    Moments,
    Rows,
    Scatter,
    SingularSystem,
    add_domain_centred_gram,
    arithmetic,
    denoise,
    domain_centred_gram,
    grow,
    mean_square,
    moments,
    pooled_scatter,
)
from .._inputs import canonical, fetched, on_cluster, retold, sound_tensor

LENGTH = 5.0  # of the rows that a block's own first layer is learnt from, whatever the units of the block


def checked_blocks(
    blocks: Any,
    n: int,
    *,
    dtype: Any,
    widths: Sequence[int] | None = None,
    of: str = "X",
    name: str = "blocks",
) -> list[Rows]:
    """Validate extra blocks of n rows: one matrix, or a list of them.

    Parameters
    ----------
    widths : sequence of int, optional
        How many columns each of fit's blocks has, if they must match.
    of, name : str
        Whose rows they belong to, and the parameter that holds them, for messages.
    """
    matrices = _listed(blocks, name)
    if widths is not None and len(matrices) != len(widths):
        remedy = f"pass as many in {name}, in their order" if widths else f"leave {name} out"
        raise ValueError(
            f"fit saw {len(widths)} extra block(s) with X, and {of} comes with {len(matrices)}: {remedy}"
        )
    checked = [_checked_block(E, f"block {b} of {of}", n, dtype) for b, E in enumerate(matrices, start=1)]
    for b, (E, width) in enumerate(zip(checked, widths or (), strict=False), start=1):
        if E.shape[1] != width:
            raise ValueError(
                f"block {b} of {of} has {E.shape[1]} columns, but {width} in fit's X: "
                "pass the same columns, in their order"
            )
    return checked


def _listed(blocks: Any, name: str) -> list[Any]:
    if blocks is None:
        return []
    if hasattr(type(blocks), "shape"):
        return [blocks]
    if isinstance(blocks, list | tuple):
        return list(blocks)
    raise TypeError(f"{name} must be a matrix or a list of matrices, got a {type(blocks).__name__}")


def _checked_block(E: Any, name: str, n: int, dtype: Any) -> Rows:
    """Validate one block: finite numbers in two dimensions, one row for each row of X."""
    if on_cluster(E):
        raise TypeError(f"{name} is a {type(E).__name__} of Dask, which is not accepted: compute it first")
    tensor = sound_tensor(E)
    E = fetched(E) if tensor is None else tensor
    try:
        if tensor is None:
            E = check_array(E, accept_sparse=("csr", "csc"), dtype=[np.float64, np.float32])
    except (ValueError, TypeError) as error:
        raise ValueError(f"{name}: {retold(error, E)}") from None
    if E.shape[0] != n:
        raise ValueError(f"{name} has {E.shape[0]} rows, but there are {n} to go with: pass one for each")
    return arithmetic(E).cast(canonical(E), dtype)


def as_given(E: Rows) -> Rows:
    """What the first layer sees of rows that are not binarised: those of a block never are."""
    return E


@dataclass(frozen=True)
class Branch:
    """What one extra block adds to a stack: itself, and the layers of its own stack if it is denoised."""

    layers: list[Layer]
    means: list[np.ndarray] | None  # for the block and every layer: (n_domains, d_t)
    shares: list[float]  # what the inner products of each are multiplied by


@dataclass(frozen=True)
class ExtraBlock:
    """An extra block: its rows of every domain, and of the anchors, where the arithmetic is done."""

    name: str
    domains: list[Blocks]
    upper: list[Blocks]  # what upper layers, and the means of hidden rows, are learnt from
    anchors: Rows  # (n_anchors, d)
    anchor_domain: np.ndarray  # (n_anchors,) position of each row's domain among the means
    center: bool
    denoised: bool
    share: float  # what it counts, as a multiple of what X does

    @cached_property
    def _moments(self) -> list[Moments]:
        return [blocks.total(moments) for blocks in self.domains]

    @cached_property
    def _scatter(self) -> Scatter:
        return pooled_scatter(self.domains)

    def start(self, K: Array, norm: float) -> tuple[Array, Branch]:
        """Add the block itself to `K`, in which X has the mean square norm `norm`."""
        empty = Branch([], [] if self.center else None, [])
        return self._counted(K, self.anchors, self._moments, norm, empty)

    def growing(self, branch: Branch, options: dict[str, Any], n_layers: int) -> Growing:
        """Begin the block's own stack of one noise level."""
        stack = self._stack(options, n_layers) if self.denoised else iter(())
        return Growing(self, branch, self.anchors, stack)

    def grown(self, K: Array, branch: Branch, layer: Layer, H: Array, own: list[Moments], norm: float) -> Any:
        """Add the hidden rows after one more layer to `K`, where X's have the mean square norm `norm`."""
        return self._counted(K, H, own, norm, replace(branch, layers=[*branch.layers, layer]))

    def _counted(
        self, K: Array, H: Rows, own: list[Moments], norm: float, branch: Branch
    ) -> tuple[Array, Branch]:
        means = np.stack([domain.mean for domain in own]) if self.center else None
        square = mean_square(own, self.center)
        share = self.share * norm / square if square > 0 else 0.0
        if sp.issparse(H):
            K += share * domain_centred_gram(H, means, self.anchor_domain)
        else:
            K = add_domain_centred_gram(K, H + 0, means, self.anchor_domain, share)  # which overwrites H
        more = None if branch.means is None or means is None else [*branch.means, means]
        return K, Branch(branch.layers, more, [*branch.shares, share])

    def _stack(self, options: dict[str, Any], n_layers: int) -> Iterator[Grown]:
        """Grow the block's own stack."""
        try:
            first = self._first_layer(options)
            yield from grow(self.upper, n_layers, partial(denoise, **options), first)
        except SingularSystem as error:
            raise ValueError(f"{self.name}: {error}") from None

    def _first_layer(self, options: dict[str, Any]) -> Layer:
        """Learn a layer from the block less its mean, scaled to a length of `LENGTH`, for the block as it is.

        Noise then puts the mean in the place of a value, and neither the units nor the origin of a block
        matter: ``h = squash(s (x - m) W + b)`` has the coefficients ``s W`` and the intercept ``b - s m W``.
        """
        stats = self._scatter
        ops, mean = arithmetic(stats.gram), stats.mean
        gram = ops.centred(stats.gram, stats.n, mean, mean)
        varies = ops.cast(ops.diagonal(gram) > ROUNDING * stats.energy, gram.dtype)
        gram = gram * varies[:, None] * varies  # of a constant only rounding is left, which may be negative
        energy = float(ops.diagonal(gram).sum()) / stats.n
        scale = LENGTH / energy**0.5 if energy > 0 else 1.0
        layer = denoise(Scatter(stats.n, 0 * stats.total, scale**2 * gram), **options)
        coef = scale * layer.coef
        return replace(layer, coef=coef, intercept=layer.intercept - ops.cast(mean, coef.dtype) @ coef)


@dataclass
class Growing:
    """The own stack of a block, which grows beside that of X."""

    block: ExtraBlock
    branch: Branch
    H: Rows  # of the anchors, as far as it has grown
    stack: Iterator[Grown]

    def add_layer(self, K: Array, norm: float) -> Array:
        """Return `K` with the next layer's inner products, if the block is denoised."""
        for grown in self.stack:
            self.H = grown.layer(self.H)
            own = [blocks.total(moments) for blocks in grown.domains]
            K, self.branch = self.block.grown(K, self.branch, grown.layer, self.H, own, norm)
            break
        return K
