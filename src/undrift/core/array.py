"""Choice of the array library: NumPy and SciPy sparse, or torch.

The mathematics calls the functions of the module that :func:`array_ops` returns and never asks what its
arrays are. Each library has one module with the same functions: :mod:`.numpy_ops` and :mod:`.torch.ops`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType
from typing import Any, TypeAlias

Array: TypeAlias = Any  # numpy.ndarray or torch.Tensor
Rows: TypeAlias = Any  # an Array or a SciPy sparse matrix or array, one sample a row


class NotPositiveDefinite(ArithmeticError):
    """A Cholesky factorisation met a pivot that is not positive, in `column`."""

    def __init__(self, column: int) -> None:
        super().__init__(f"pivot {column} is not positive")
        self.column = column


def array_ops(array: Rows) -> ModuleType:
    """Return the operations of the library that `array` belongs to."""
    torch = sys.modules.get("torch")  # without torch imported there are no tensors
    is_tensor = torch is not None and isinstance(array, torch.Tensor)
    return import_module("undrift.core.torch.ops" if is_tensor else "undrift.core.numpy_ops")


def stack_rows(blocks: Sequence[Rows]) -> Rows:
    """Stack row blocks of one library, sparse if any of them is; a single block is returned itself."""
    return blocks[0] if len(blocks) == 1 else array_ops(blocks[0]).stack(blocks)
