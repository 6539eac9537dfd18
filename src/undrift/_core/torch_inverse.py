"""Symmetric products and the inverse of a Cholesky factor, made of large matrix products.

A library's ``potri`` works column by column and leaves a GPU idle. Here only the factorisation
itself is the library's; what follows is a handful of matrix products. With d columns and all blocks
dense, the flops are d^3/3 (factor), 2/3 d^3 (inverse of the factor, by halving) and, in five stripes,
0.56 d^3 (``L^-T L^-1``): 1.56 d^3, where d^3 is the least possible. Inverting by Schur complements
(2 x 2 blocks, recursively) is 1.33 d^3, but a chain of small factorisations each waiting for the last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch

STRIPE = 1024  # rows of a symmetric product computed at once: 60 % of the flops of all of it at d = 5,000
FACTOR = 8192  # the widest matrix that the library factors in one go
BLOCK = 64  # the widest triangular block inverted by substitution, all of them in one batch
N_STREAMS = 2  # stripes in flight: the last wave of one leaves room for the first of the next


@dataclass(frozen=True)
class InverseFactor:
    """The inverse of a Cholesky factor, with what tells whether it is to be trusted."""

    inverse: torch.Tensor  # (d, d) lower triangular, zeros above
    pivots: torch.Tensor  # (d,) squares of the factor's diagonal
    failed: torch.Tensor  # the column at which a factorisation stopped, or d; on the device


def stripes(n: int, size: int = 0) -> list[slice]:
    """Cut ``range(n)`` into slices of at most `size`, by default `STRIPE`."""
    size = size or STRIPE
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def lower_product(X: torch.Tensor, *, triangular: bool = False) -> torch.Tensor:
    """Lower triangle of ``X'X``, a stripe of rows at a time, up to the diagonal tile only.

    With `triangular`, `X` is lower triangular, and the rows above a stripe, which are zero there, are
    left out.
    """
    G = X.new_empty((X.shape[1], X.shape[1]))

    def fill(stripe: slice) -> None:
        rows = X[stripe.start :] if triangular else X
        torch.mm(rows[:, stripe].T, rows[:, : stripe.stop], out=G[stripe, : stripe.stop])

    side_by_side(fill, reversed(stripes(len(G))), X.device)  # the longest first
    return G


def side_by_side(task: Callable[[slice], None], jobs: Iterable[slice], device: torch.device) -> None:
    """Run independent tasks on `N_STREAMS` streams of a GPU, or one after the other elsewhere."""
    jobs = list(jobs)
    if device.type != "cuda" or N_STREAMS == 1 or len(jobs) == 1:
        for job in jobs:
            task(job)
        return
    here = torch.cuda.current_stream(device)
    streams = [here, *_side_streams(device)]
    for stream in streams[1:]:
        stream.wait_stream(here)
    for i, job in enumerate(jobs):
        with torch.cuda.stream(streams[i % len(streams)]):
            task(job)
    for stream in streams[1:]:  # so memory freed after this is not reused too early
        here.wait_stream(stream)


_STREAMS: dict[torch.device, list[torch.cuda.Stream]] = {}


def _side_streams(device: torch.device) -> list[torch.cuda.Stream]:
    """Return the streams beside the current one; kept, since each brings a workspace of its own."""
    streams = _STREAMS.setdefault(device, [])
    while len(streams) < N_STREAMS - 1:
        streams.append(torch.cuda.Stream(device))
    return streams[: N_STREAMS - 1]


def mirror(A: torch.Tensor) -> torch.Tensor:
    """Fill the tiles above the diagonal from those below it, in place; diagonal tiles are full already."""
    for stripe in stripes(len(A)):
        A[: stripe.start, stripe] = A[stripe, : stripe.start].T
    return A


def inverse_factor(A: torch.Tensor) -> InverseFactor:
    """``L^-1`` with ``A = L L'``, from the lower triangle of `A`, which is used up.

    Matrices wider than `FACTOR` are halved: ``L21 = A21 L11^-T``, then the Schur complement
    ``A22 - L21 L21'``, and ``(L^-1)21 = -L22^-1 L21 L11^-1``.
    """
    n = len(A)
    if n <= FACTOR:
        L, info = torch.linalg.cholesky_ex(A)
        failed = torch.where(info > 0, info - 1, n)
        return InverseFactor(lower_inverse(L), L.diagonal().square(), failed)
    half = min(n - 1, -(-n // 16) * 8)  # aligned as tensor cores want their operands
    first = inverse_factor(A[:half, :half])
    L21 = A[half:, :half] @ first.inverse.T
    second = inverse_factor(A[half:, half:].addmm_(L21, L21.T, alpha=-1))
    inverse = torch.zeros_like(A)
    inverse[:half, :half], inverse[half:, half:] = first.inverse, second.inverse
    inverse[half:, :half] = -(second.inverse @ (L21 @ first.inverse))
    failed = torch.where(first.failed < half, first.failed, half + second.failed)
    return InverseFactor(inverse, torch.cat([first.pivots, second.pivots]), failed)


def lower_inverse(L: torch.Tensor) -> torch.Tensor:
    """Inverse of a lower triangular matrix, pairs of diagonal blocks merged, all pairs in one batch.

    ``[[L11, 0], [L21, L22]]^-1`` has ``-L22^-1 L21 L11^-1`` in the corner. The matrix is padded with
    an identity to ``block * 2**k`` columns.
    """
    n, n_blocks = len(L), 1
    while n > n_blocks * BLOCK:
        n_blocks *= 2
    block = -(-n // (8 * n_blocks)) * 8
    width = block * n_blocks
    padded, inverse = L.new_zeros((width, width)), L.new_zeros((width, width))
    padded[:n, :n] = L
    padded.diagonal()[n:] = 1
    identity = torch.eye(block, dtype=L.dtype, device=L.device).expand(n_blocks, block, block)
    diagonal_tiles(inverse, block).copy_(
        torch.linalg.solve_triangular(diagonal_tiles(padded, block), identity, upper=False)
    )
    while block < width:
        inner, outer = diagonal_tiles(inverse, 2 * block), diagonal_tiles(padded, 2 * block)
        corner = outer[:, block:, :block] @ inner[:, :block, :block]
        inner[:, block:, :block].baddbmm_(inner[:, block:, block:], corner, beta=0, alpha=-1)
        block *= 2
    return inverse[:n, :n]


def diagonal_tiles(A: torch.Tensor, size: int) -> torch.Tensor:
    """View the tiles on the diagonal of a contiguous matrix as (n_tiles, size, size)."""
    width = len(A)
    return A.as_strided((width // size, size, size), (size * (width + 1), width, 1))
