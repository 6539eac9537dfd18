"""Layers as a file holds them: what follows from the rest is left out, and weights have fewer bits.

========  =====================================  ======================================================
form      what is kept                           what follows from it
========  =====================================  ======================================================
rows      the inverse R, and the rows of the     rows of upper layers: they are the output of the layers
          fit before the first layer             below
terms     the damping D, and ``D^1/2 A^-1        ``coef = (I - A^-1 D) / keep``
          D^1/2``
matrix    all coefficients                       nothing
========  =====================================  ======================================================

A symmetric matrix is its diagonal and the rows of its lower triangle, divided by the roots of the diagonal.
A row has a scale. Its numbers are in half precision, or codes of 8 bits, in the first two layers and in the
form *rows* of 12: a number is ``(code / largest)^2`` of the scale with the code's sign, as most are small
beside the largest. With 32 bits all is kept as it is: *terms* as a matrix, and rows of upper layers too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import scipy.sparse as sp

from .array import Array, Rows
from .denoise import Layer, System
from .numpy_ops import ACTIVATIONS, mirror, squash, stripes
from .row_form import CentredRows, RowCoef, see_rows

Bits: TypeAlias = Literal[32, 16, 8]
LARGEST = {8: 127, 12: 2047}  # code of so many bits


@dataclass(frozen=True)
class PackedRows:
    """Rows of numbers, one after another."""

    numbers: np.ndarray  # as they are, float16, or int8: the upper 8 bits of codes
    lower: np.ndarray  # uint8: the lower 4 bits of codes of 12, two in a byte; else empty
    scale: np.ndarray  # (n_rows,) float32, of float16 and codes; else empty

    @classmethod
    def of(cls, rows: Iterable[np.ndarray], bits: int) -> PackedRows:
        """Pack rows with 32, 16, 12 or 8 bits a number."""
        parts, scales = list[np.ndarray](), list[float]()
        for row in rows:
            if bits < 32:
                scales.append(float(np.abs(row).max(initial=0)) or 1.0)
                row = row / np.float32(scales[-1])
            parts.append(_encode(row, bits))
        numbers: np.ndarray = np.concatenate([_encode(np.zeros(0, np.float32), bits), *parts])
        lower: np.ndarray = np.zeros(0, np.uint8)
        if bits == 12:
            nibbles = np.pad(numbers & 15, (0, len(numbers) % 2)).astype(np.uint8)
            lower, numbers = nibbles[::2] | nibbles[1::2] << 4, numbers >> 4
        return cls(numbers.astype(np.int8) if bits < 16 else numbers, lower, np.array(scales, np.float32))

    def unpack(self, lengths: Sequence[int]) -> Iterator[np.ndarray]:
        """Yield the rows, of these lengths."""
        n, is_coded, is_scaled = sum(lengths), self.numbers.dtype == np.int8, len(self.scale) > 0
        bits = 12 if len(self.lower) else 8
        expected = (n,), ((n + 1) // 2 if bits == 12 else 0,), (len(lengths) if is_scaled else 0,)
        if (self.numbers.shape, self.lower.shape, self.scale.shape) != expected:
            raise ValueError(f"{self.numbers.shape} packed numbers for rows of {n}")
        if self.lower.dtype != np.uint8 or not (is_coded or self.numbers.dtype.kind == "f"):
            raise ValueError(f"packed numbers of type {self.numbers.dtype}")
        start = 0
        for i, length in enumerate(lengths):
            stop = start + length
            row = self.numbers[start:stop]
            if is_coded:
                codes = row.astype(np.float32)
                if bits == 12:
                    places = np.arange(start, stop)
                    codes = 16 * codes + (self.lower[places // 2] >> (4 * (places % 2)) & 15)
                codes /= LARGEST[bits]
                row = codes * np.abs(codes)
            yield row * self.scale[i] if is_scaled else row
            start = stop


def _encode(row: np.ndarray, bits: int) -> np.ndarray:
    """Return numbers from -1 to 1 as codes, or in half precision; with 32 bits as they are."""
    if bits < 16:
        return np.rint(np.sign(row) * np.sqrt(np.abs(row)) * LARGEST[bits]).astype(np.int16)
    return row if bits == 32 else row.astype(np.float16)


@dataclass(frozen=True)
class PackedLayer:
    """A layer as it is kept."""

    form: str  # "rows", "terms" or "matrix"
    numbers: PackedRows  # of the lower triangle without the diagonal, or of the matrix
    intercept: np.ndarray
    activation: str
    system: System | None
    diagonal: np.ndarray  # (n,) of the symmetric matrix; else empty
    scale: np.ndarray  # (d_in,) of the form rows; else empty
    rows: Rows | None  # of the fit, as `CentredRows` has them; None where they are the layer's before
    mean: np.ndarray | None
    targets: np.ndarray | None

    @property
    def bits(self) -> Bits:
        """Bits of a weight, as `of` took them."""
        bits: Bits = 8 if self.numbers.numbers.dtype == np.int8 else 32
        return 16 if self.numbers.numbers.dtype == np.float16 else bits

    @classmethod
    def of(cls, layer: Layer, before: Layer | None, bits: int) -> PackedLayer:
        """Pack a layer with 32, 16, 12 or 8 bits a number; `before` is the one before it."""
        coef, system, none = layer.coef, layer.system, np.zeros(0, np.float32)
        if isinstance(coef, RowCoef):
            diagonal, rows = coef.inverse.diagonal(), enumerate(coef.inverse)
            root = np.sqrt(diagonal)
            lower = (row[:i] if bits == 32 else row[:i] / (root[i] * root[:i]) for i, row in rows)
            numbers, kept = PackedRows.of(lower, bits), coef.given
            if bits < 32 and before is not None and isinstance(before.coef, RowCoef):
                kept = CentredRows(None)
            given = diagonal, coef.scale, kept.rows, kept.mean, coef.targets
            return cls("rows", numbers, layer.intercept, layer.activation, system, *given)
        d = 0 if system is None else len(system.damping)
        if bits == 32 or system is None or coef.shape != (d, d) or not (system.damping > 0).all():
            numbers, diagonal, form = PackedRows.of(coef, bits), none, "matrix"
        else:
            diagonal, form = 1 - system.keep * coef.diagonal(), "terms"
            damping, root = np.sqrt(system.damping).astype(coef.dtype), np.sqrt(diagonal)
            left, right = -system.keep * damping / root, damping * root
            lower = (row[:i] * left[i] / right[:i] for i, row in enumerate(coef))
            numbers = PackedRows.of(lower, bits)
        given = diagonal, none, None, None, None
        return cls(form, numbers, layer.intercept, layer.activation, system, *given)

    def unpack(self, before: Layer | None = None) -> Layer:
        """Return the layer; `before` is the one before it. Refuses parts that do not fit together."""
        if self.activation not in ACTIVATIONS or self.intercept.ndim != 1 or self.intercept.dtype.kind != "f":
            raise ValueError(f"layer of {self.activation!r} and an intercept of shape {self.intercept.shape}")
        coef: Array
        if self.form == "rows":
            coef = self._read_rows(before)
        else:
            coef = self._read_terms() if self.form == "terms" else self._read_matrix()
        if coef.shape[1] != len(self.intercept):
            raise ValueError(f"layer of shapes {coef.shape} and {self.intercept.shape}")
        return Layer(coef, self.intercept, self.activation, self.system)

    def _read_matrix(self) -> np.ndarray:
        width = max(len(self.intercept), 1)
        n = len(self.numbers.scale) or self.numbers.numbers.size // width
        matrix = np.empty((n, width), self.intercept.dtype)
        for i, row in enumerate(self.numbers.unpack([width] * n)):
            matrix[i] = row
        return matrix

    def _read_terms(self) -> np.ndarray:
        system, A = self._check_system(len(self.intercept)), self._read_symmetric()
        diagonal, damping = (1 - A.diagonal()) / system.keep, np.sqrt(system.damping).astype(A.dtype)
        for part in stripes(len(A), 64):
            A[part] *= damping / (-system.keep * damping[part, None])
        np.fill_diagonal(A, diagonal)
        return A

    def _read_rows(self, before: Layer | None) -> RowCoef:
        inverse = self._read_symmetric()
        n, d = len(inverse), len(self.scale)
        if self.rows is not None:
            given = CentredRows(self.rows, self.mean)
        elif before is not None and isinstance(before.coef, RowCoef) and before.system is not None:
            seen = see_rows(before.coef, before.system, before.intercept)
            centre = self._check_system(d).centre
            given = CentredRows.subtract(squash(seen, before.activation), centre)
        else:
            raise ValueError("a layer without the rows that it was fitted on")
        shapes, expected = (given.rows.shape, self.scale.shape), ((n, d), (d,))
        if shapes != expected or given.rows.dtype.kind != "f" or self.scale.dtype.kind != "f":
            raise ValueError(f"factors of {n} rows and {d} columns that do not fit together")
        if sp.issparse(given.rows) != (given.mean is not None and given.mean.shape == (d,)):
            raise ValueError("sparse rows without a mean, or dense rows with one")
        if self.targets is not None and not set(self.targets.tolist()) <= set(range(d)):
            raise ValueError(f"targets beyond the {d} columns")
        return RowCoef(given, self.scale, inverse, self.targets)

    def _read_symmetric(self) -> np.ndarray:
        """Return the symmetric matrix."""
        diagonal = self.diagonal.astype(self.intercept.dtype)
        n, root = len(diagonal), np.sqrt(np.maximum(diagonal, 0))
        A, is_scaled = np.empty((n, n), diagonal.dtype), len(self.numbers.scale) > 0
        for i, row in enumerate(self.numbers.unpack(range(n))):
            A[i, :i] = row * (root[i] * root[:i]) if is_scaled else row
        np.fill_diagonal(A, diagonal)
        return mirror(A)

    def _check_system(self, d: int) -> System:
        """Return the system, if it is one of d columns."""
        system = self.system
        if system is None or not 0 < system.keep <= 1:
            raise ValueError("a layer without the system that it solves")
        if system.damping.shape != (d,) or system.centre.shape != (d,) or not (system.damping > 0).all():
            raise ValueError(f"a system that is not one of {d} columns")
        return system


def pack_layers(layers: Sequence[Layer], bits: Bits) -> list[PackedLayer]:
    """Return the layers of a stack as they are kept. Errors of the lower ones pass through all others."""
    packed: list[PackedLayer] = []
    for t, layer in enumerate(layers):
        needs_more = bits == 8 and (t < 2 or isinstance(layer.coef, RowCoef))
        packed.append(PackedLayer.of(layer, layers[t - 1] if t else None, 12 if needs_more else bits))
    return packed


def unpack_layers(packed: Sequence[PackedLayer]) -> list[Layer]:
    """Return the layers of a stack."""
    layers: list[Layer] = []
    for each in packed:
        layers.append(each.unpack(layers[-1] if layers else None))
    return layers
