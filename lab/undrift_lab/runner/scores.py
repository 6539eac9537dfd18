"""An archive of class probabilities: arrays of many tasks in one compressed file that NumPy reads."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np

Keep = Callable[[str, Mapping[str, np.ndarray]], None]


@contextmanager
def score_archive(path: Path | None) -> Iterator[Keep]:
    """Open an archive; the function that it gives adds arrays as ``task|name``. Without a path, none."""
    if path is None:
        yield lambda task, arrays: None
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:

        def keep(task: str, arrays: Mapping[str, np.ndarray]) -> None:
            for name, values in arrays.items():
                with archive.open(f"{task}|{name}.npy", "w") as file:
                    np.lib.format.write_array(file, np.asarray(values), allow_pickle=False)

        yield keep
