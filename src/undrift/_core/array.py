"""The array seam: which library does the arithmetic.

The mathematics above this file calls the verbs of :func:`array_ops` and never asks what
its arrays are. A library is one module with the same verbs: :mod:`.numpy_ops` (NumPy and
SciPy sparse) and :mod:`.torch_ops`.
"""

from __future__ import annotations

import sys
from typing import Any, TypeAlias

Array: TypeAlias = Any  # numpy.ndarray or torch.Tensor
Rows: TypeAlias = Any  # an Array or a SciPy sparse matrix or array, one sample a row


class NotPositiveDefinite(ArithmeticError):
    """A factorisation met a pivot that is not positive; `column` says where."""

    def __init__(self, column: int) -> None:
        super().__init__(f"pivot {column} is not positive")
        self.column = column


def array_ops(array: Rows) -> Any:
    """Return the module whose verbs act on `array`."""
    torch = sys.modules.get("torch")  # a tensor of a library nobody imported cannot exist
    if torch is not None and isinstance(array, torch.Tensor):
        from .torch import ops as torch_ops

        return torch_ops
    from . import numpy_ops

    return numpy_ops
