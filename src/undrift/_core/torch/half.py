"""Products of float32 matrices with 16-bit operands and float32 sums, instead of TF32.

FP16 has the 11 significant bits of TF32 and twice its rate on a GPU, but a narrow exponent. So columns are
first multiplied by powers of two, which is exact, such that the largest entry of each lies in
[2^14, 2^15), where rounding cannot overflow. An entry is then rounded exactly as for TF32 unless it is
more than 2^28 times smaller than the largest of its column. Those lie below FP16's normal range, and
their error is at most 2^-25 before the scale is undone: 2^-39 of the largest entry of the column. In an
inner product of columns each error is thus either TF32's or below 2^-39 of the columns' largest entries,
when float32 sums have a rounding of 2^-24 themselves. Undoing the scale is exact again.

Rows that an activation has bounded by 1 need no search for the largest entries: one scale serves all columns,
and an entry below 2^-28 has an error of at most 2^-39. Such rows are hidden rows, which a scatter reads first
and the next layer again, so that the 16-bit values are kept with them in between (`mark_bounded`).

Scales are computed and undone on the device; nothing here waits for it.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from .inverse import rounds_products, side_by_side, stripes

DEVICES = {"cuda"}  # those with a faster 16-bit product that sums in float32
# torch before 2.8 has no float32 sums for 16-bit operands, and ROCm has no reliable ones
KNOWN = "dtype" in torch.ops.aten.mm.overloads() and torch.version.hip is None


@dataclass(frozen=True)
class Halved:
    """A matrix in FP16, its columns scaled by powers of two, and what undoes that."""

    values: torch.Tensor  # (n, d) float16
    undo: torch.Tensor  # (d,) float32: column j is values[:, j] * undo[j]


def pays(*operands: torch.Tensor) -> bool:
    """Tell whether products of these matrices should have 16-bit operands."""
    fit = all(part.dtype == torch.float32 and part.device.type in DEVICES for part in operands)
    return fit and KNOWN and rounds_products()


def mark_bounded(H: torch.Tensor) -> None:
    """Note that no entry of `H` is larger than 1: its 16-bit values are kept with it once they are needed."""
    H.kept_half = (H._version, None)  # type: ignore[attr-defined]


def release_half(H: torch.Tensor, n_bytes: float) -> int:
    """Free the 16-bit values kept with `H` if they take more than `n_bytes`; return how many they take."""
    _, kept = getattr(H, "kept_half", (0, None))
    if kept is not None and kept.values.nbytes > n_bytes:
        mark_bounded(H)
        return 0
    return 0 if kept is None else kept.values.nbytes


def halve(X: torch.Tensor) -> Halved:
    """Round `X` to FP16 after scaling its columns: one pass for the largest entries, one for the rest."""
    version, kept = getattr(X, "kept_half", (None, None))
    is_bounded = version == X._version
    if is_bounded and kept is not None:
        return kept
    values = torch.empty_like(X, dtype=torch.float16)
    if is_bounded:
        torch.mul(X, 2.0**14, out=values)
        result = Halved(values, X.new_full(X.shape[1:], 2.0**-14))
        X.kept_half = (version, result)  # type: ignore[attr-defined]
        return result
    largest = torch.linalg.vector_norm(X, float("inf"), dim=0)
    # a float32 is 2^(biased - 127) times [1, 2): the scale is 2^(14 + 127 - biased), made of its bits; within
    # these bounds its inverse is a normal number too
    biased = (14 + 2 * 127 - (largest.view(torch.int32) >> 23)).clamp_(1, 253)
    torch.mul(X, (biased << 23).view(torch.float32), out=values)
    return Halved(values, ((254 - biased) << 23).view(torch.float32))


def half_product(A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
    """``A B`` of FP16 matrices with float32 sums, as float32."""
    if A.device.type == "cuda":
        product: torch.Tensor = torch.mm(A, B, out_dtype=torch.float32)
        return product
    return A.float() @ B.float()


def half_gram(X: torch.Tensor) -> torch.Tensor:
    """Lower triangle of ``X'X``, a stripe of rows at a time, up to the diagonal tile only."""
    K, G = halve(X), X.new_empty((X.shape[1], X.shape[1]))

    def fill(stripe: slice) -> None:
        left = slice(None, stripe.stop)
        product = half_product(K.values[:, stripe].T, K.values[:, left])
        # one factor after the other: their product may overflow where the result does not
        torch.mul(product, K.undo[stripe, None], out=G[stripe, left]).mul_(K.undo[left])

    side_by_side(fill, reversed(stripes(len(G))), X.device)  # the longest first
    return G


def half_affine(
    X: torch.Tensor, coef: torch.Tensor, intercept: torch.Tensor, out: torch.Tensor | None = None
) -> torch.Tensor:
    """``X coef + intercept``, into `out` if given.

    What undoes the scale of a column of `X` goes into the same row of `coef`, whose columns are then scaled
    in turn; theirs is undone where the intercept is added.
    """
    K = halve(X)
    C = halve(coef * K.undo[:, None])
    H = half_product(K.values, C.values)
    result: torch.Tensor = torch.addcmul(intercept, H, C.undo, out=H if out is None else out)
    return result
