"""A folder of vectors that were made before: one file for every list of texts, named by a hash of it.

The folder is ``vectors`` in ``UNDRIFT_CACHE``, or else in undrift's part of the user's cache folder. It may
be cleared at any time. Files are safetensors: reading one cannot run code. One that does not fit is not used.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path

import numpy as np
import safetensors.numpy
from safetensors import SafetensorError

from ..files import replace_file

SUFFIX = ".safetensors"


def find_cache() -> Path:
    """Return the folder of vectors."""
    if given := os.environ.get("UNDRIFT_CACHE"):
        return Path(given).expanduser() / "vectors"
    home = Path.home()
    variable, usual = {
        "darwin": ("", home / "Library" / "Caches"),
        "win32": ("LOCALAPPDATA", home / "AppData" / "Local"),
    }.get(sys.platform, ("XDG_CACHE_HOME", home / ".cache"))
    return Path(os.environ.get(variable) or usual) / "undrift" / "vectors"


def list_vectors() -> list[Path]:
    """List the files of the folder."""
    return sorted(find_cache().glob(f"*{SUFFIX}"))


def clear_vectors() -> int:
    """Remove all vectors; return the number of files."""
    files = list_vectors()
    for path in files:
        path.unlink(missing_ok=True)
    return len(files)


def hash_texts(encoder: str, texts: Iterable[str]) -> str:
    """Hash texts and the name of the encoder that reads them."""
    digest = blake2b(encoder.encode(), digest_size=16)
    for text in texts:
        data = text.encode()
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()


def find_vectors(key: str, shape: tuple[int, int]) -> np.ndarray | None:
    """Return kept vectors; None where there are none, or a file does not hold what it should."""
    path = find_cache() / f"{key}{SUFFIX}"
    try:
        stored = safetensors.numpy.load_file(path).get("vectors")
    except (OSError, ValueError, KeyError, SafetensorError):
        return None
    if stored is None or stored.shape != shape or stored.dtype != np.float16 or np.isinf(stored).any():
        return None
    return stored


def keep_vectors(key: str, vectors: np.ndarray) -> None:
    """Keep vectors for another run; without a folder that can be written nothing is kept."""
    folder = find_cache()
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        with replace_file(folder / f"{key}{SUFFIX}") as new:
            safetensors.numpy.save_file({"vectors": vectors}, new)
