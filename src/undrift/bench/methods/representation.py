"""Representations of a corpus: learnt once for all variants and, where that takes long, for all runs."""

from __future__ import annotations

import json
import os
import threading
import warnings
import zipfile
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..._core import Rows
from ...errors import UndriftWarning


@dataclass(frozen=True)
class Candidate:
    """One size of a representation: the columns that it has and the size before it has not."""

    params: Mapping[str, Any]
    rows: Mapping[str, Rows]  # by domain


@dataclass(frozen=True)
class Representation:
    """Rows of every domain, in one or several sizes to choose from, and the time it took to learn them."""

    candidates: Sequence[Candidate]
    seconds: float
    details: Mapping[str, Any] = field(default_factory=dict)


class Memory:
    """Representations that several variants use.

    Those that have a name are also written to files beside the results, so that a run that goes on
    classifies the very rows whose learning time is in its records. Their rows must be dense.

    Parameters
    ----------
    beside : Path, optional
        What the names of the files begin with; by default there are none.
    origin : str
        All that decides the rows. A file of another origin is not used.
    """

    def __init__(self, beside: Path | None = None, origin: str = "") -> None:
        self._beside, self._origin = beside, origin
        self._known: dict[Hashable, Representation] = {}
        self._closed = False
        self._writing = threading.Lock()

    def recalled(
        self, key: Hashable, learn: Callable[[], Representation], name: str | None = None
    ) -> Representation:
        """Return what is known by `key`, or in the file of that `name`; or else learn it."""
        if key not in self._known:
            path = self._path(name)
            found = None if path is None else _loaded(path, self._origin)
            if found is None:
                found = learn()
                if path is not None:
                    self._write(found, path)
            self._known[key] = found
        return self._known[key]

    def forget(self, name: str) -> None:
        """Remove the file of a representation that nobody needs any more."""
        path = self._path(name)
        if path is not None:
            path.unlink(missing_ok=True)
            _unfinished(path).unlink(missing_ok=True)

    def close(self) -> None:
        """Let a file that is being written be finished, and write no more."""
        with self._writing:
            self._closed = True

    def _path(self, name: str | None) -> Path | None:
        if self._beside is None or name is None:
            return None
        return self._beside.with_name(f"{self._beside.name}.{name}.npz")

    def _write(self, representation: Representation, path: Path) -> None:
        with self._writing:
            if self._closed:
                return
            try:
                _save(representation, path, self._origin)
            except OSError as error:
                _unfinished(path).unlink(missing_ok=True)
                warnings.warn(
                    f"{path} cannot be written ({error.strerror}): if this run is stopped before all tasks "
                    "that need it are done, it will be learnt again",
                    UndriftWarning,
                    stacklevel=2,
                )


def file_name(method: str, width: int) -> str:
    """Name of the representation that a method learns from rows of `width` columns."""
    return f"{method}-{width}"


def _unfinished(path: Path) -> Path:
    return path.with_name(f"{path.name}.part")


def _save(representation: Representation, path: Path, origin: str) -> None:
    """Write a whole file, or none."""
    about = {
        "origin": origin,
        "seconds": representation.seconds,
        "details": dict(representation.details),
        "candidates": [[dict(own.params), list(own.rows)] for own in representation.candidates],
    }
    rows = {
        f"{i}-{j}": np.asarray(rows)
        for i, own in enumerate(representation.candidates)
        for j, rows in enumerate(own.rows.values())
    }
    with _unfinished(path).open("wb") as file:
        np.savez(file, about=np.array(json.dumps(about)), **rows)  # type: ignore[arg-type]
        file.flush()
        os.fsync(file.fileno())
    _unfinished(path).replace(path)


def _loaded(path: Path, origin: str) -> Representation | None:
    """What a file holds; nothing if it is not there, damaged, or of something else."""
    try:
        with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            about = json.loads(str(file["about"]))
            if about["origin"] != origin:
                return None
            candidates = [
                Candidate(params, {name: file[f"{i}-{j}"] for j, name in enumerate(names)})
                for i, (params, names) in enumerate(about["candidates"])
            ]
        return Representation(candidates, about["seconds"], about["details"])
    except (OSError, ValueError, LookupError, EOFError, zipfile.BadZipFile):
        return None
