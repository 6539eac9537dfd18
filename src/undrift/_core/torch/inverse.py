"""Symmetric products and the inverse of a symmetric matrix, made of large matrix products.

A library's ``potri`` works column by column and leaves a GPU idle. Here only the factorisation itself is
the library's, of at most `FACTOR` columns; the rest is a handful of matrix products. With d columns and
all blocks dense, the flops of one such inverse are d^3/3 (factor), 2/3 d^3 (inverse of the factor, by
halving) and, in stripes, 0.56 d^3 or more (``L^-T L^-1``), where d^3 is the least possible. Wider
matrices are halved by Schur complements, for the sake of the factorisation, which is bound by latency.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch

STRIPE = 1024  # rows of a symmetric product computed at once: 60% of the flops of all of it at d = 5,000
FACTOR = 2560  # the widest matrix that the library factors in one go: twice the width takes 3.4 times as long
BLOCK = 64  # the widest triangular block inverted by substitution, all of them in one batch
N_STREAMS = 2  # stripes in flight: the last wave of one leaves room for the first of the next


@dataclass(frozen=True)
class Inverse:
    """The inverse of a symmetric matrix, with what is needed to check it."""

    matrix: torch.Tensor  # (d, d), full
    pivots: torch.Tensor  # (d,) squares of the diagonal of the Cholesky factor
    failed: torch.Tensor  # the column at which a factorisation stopped, or d; on the device


@contextmanager
def precision(name: str) -> Iterator[None]:
    """Let float32 products round their operands to 11 bits ("high"), or not ("highest"), inside.

    The setting is that of the whole process; it is restored at the end.
    """
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(name)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def rounds_products() -> bool:
    """Tell whether float32 products may round their operands."""
    return torch.get_float32_matmul_precision() != "highest"


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
    """Return the streams beside the current one; they are reused, since each has a separate workspace."""
    streams = _STREAMS.setdefault(device, [])
    while len(streams) < N_STREAMS - 1:
        streams.append(torch.cuda.Stream(device))
    return streams[: N_STREAMS - 1]


def mirror(A: torch.Tensor) -> torch.Tensor:
    """Fill the tiles above the diagonal from those below it, in place; diagonal tiles are full already."""
    for stripe in stripes(len(A)):
        A[: stripe.start, stripe] = A[stripe, : stripe.start].T
    return A


def symmetric_inverse(A: torch.Tensor) -> Inverse:
    """``A^-1`` from the lower triangle of `A`, which is left as it is.

    Matrices wider than `FACTOR` are halved, with ``T = A21 A11^-1`` and ``S = A22 - T A21'``::

        A^-1 = [[A11^-1 + T' S^-1 T, -T' S^-1], [-S^-1 T, S^-1]]

    The operands of S are not rounded to 11 bits: the complement is a small difference of large numbers, and
    the error would spread to everything computed from it.
    """
    n = len(A)
    if n <= FACTOR:
        return _factored_inverse(A)
    half = min(n - 1, -(-n // 16) * 8)  # aligned as tensor cores want their operands
    A21 = A[half:, :half]
    with precision("highest"):
        first = symmetric_inverse(A[:half, :half])
    T = careful_product(A21, first.matrix)
    second = symmetric_inverse(A[half:, half:] - careful_product(T, A21.T))
    B = torch.empty_like(A)
    B[half:, half:] = second.matrix
    corner = torch.mm(second.matrix, T).neg_()
    B[half:, :half], B[:half, half:] = corner, corner.T
    B[:half, :half] = torch.addmm(first.matrix, T.T, corner, alpha=-1)
    failed = torch.where(first.failed < half, first.failed, half + second.failed)
    return Inverse(B, torch.cat([first.pivots, second.pivots]), failed)


def _factored_inverse(A: torch.Tensor) -> Inverse:
    """``A^-1 = L^-T L^-1`` with ``A = L L'``, factored by the library in one go."""
    L, info = torch.linalg.cholesky_ex(A)
    matrix = mirror(lower_product(lower_inverse(L), triangular=True))
    return Inverse(matrix, L.diagonal().square(), torch.where(info > 0, info - 1, len(A)))


def careful_product(A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
    """``A B`` to 21 bits at least, where single products keep 11.

    Operands are cut into their leading 11 bits and the rest; the product of the two rests is left out.
    One product of three times the depth, at the rate of TF32: three eighths of full float32's time.
    """
    if A.dtype != torch.float32 or not rounds_products():
        return A @ B
    a, b = leading_bits(A), leading_bits(B)
    return torch.cat([a, A - a, a], dim=1) @ torch.cat([b, b, B - b])


def leading_bits(A: torch.Tensor) -> torch.Tensor:
    """Round float32 numbers to the 11 bits of TF32."""
    return ((A.contiguous().view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32)


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
