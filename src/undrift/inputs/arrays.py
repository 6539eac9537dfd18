"""Arrays of other libraries: their device, and conversion to tensors and to NumPy arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core import Array, array_ops, numpy_ops

HOST = (1, 3, 11)  # DLPack's kDLCPU, kDLCUDAHost and kDLROCMHost: memory that NumPy can read
CUDA = (2, 13)  # DLPack's kDLCUDA and kDLCUDAManaged


def find_accelerator(X: Any) -> str | None:
    """Return torch's name for the device of an array outside the host's memory; None for all others."""
    device = getattr(X, "__dlpack_device__", None)
    if device is None or isinstance(X, np.ndarray):
        return None
    kind, index = device()
    if kind in HOST:
        return None
    return f"cuda:{index}" if kind in CUDA else str(X.device)


def dense_tensor(X: Any) -> Array:
    """View an array as a tensor without a gradient; floats of 16 bits become float32."""
    try:
        import torch
    except ImportError:
        raise ImportError(
            f"a {type(X).__name__} on a GPU needs the `torch` extra: pip install 'undrift[torch]'; "
            "or pass it as a NumPy array"
        ) from None
    X = (X if isinstance(X, torch.Tensor) else torch.from_dlpack(X)).detach()
    if X.layout is not torch.strided:
        raise TypeError(
            f"a sparse tensor ({X.layout}) is not accepted: pass a SciPy sparse matrix, or X.to_dense()"
        )
    return X.float() if X.is_floating_point() and X.itemsize < 4 else X


def check_tensor(X: Any) -> Array | None:
    """Return rows on an accelerator as a float32 or float64 tensor there.

    None for rows of the host, and for anything but a finite real matrix, which the checks for NumPy arrays
    then refuse.
    """
    if find_accelerator(X) is None:
        return None
    X = dense_tensor(X)
    if X.ndim != 2 or 0 in X.shape or X.is_complex():
        return None
    X = X if X.is_floating_point() else X.double()
    # the sum of finite values hardly ever overflows, and is quick to compute
    return X if bool(X.sum().isfinite()) or bool(X.isfinite().all()) else None


def to_host(A: Any) -> Any:
    """Return an array of any library as a NumPy array; anything else is returned unchanged."""
    if isinstance(A, np.ndarray) or not hasattr(A, "__dlpack_device__"):
        return A
    if find_accelerator(A) is None and array_ops(A) is numpy_ops:
        return np.asarray(A)
    A = dense_tensor(A)
    return array_ops(A).to_numpy(A)
