"""Representations of a corpus: learnt once for all variants and, where that takes long, for all runs."""

from __future__ import annotations

import json
import threading
import zipfile
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..._core import Rows
from ..._files import replace_file
from ...errors import warn


@dataclass(frozen=True)
class Candidate:
    """One form of a representation; one that `extends` the candidate before it has its columns too."""

    params: Mapping[str, Any]
    rows: Mapping[str, Rows]  # by domain
    extends: bool = False


@dataclass(frozen=True)
class Representation:
    """Rows of every domain, in one or several forms to choose from, and the time it took to learn them."""

    candidates: Sequence[Candidate]
    seconds: float
    details: Mapping[str, Any] = field(default_factory=dict)


class RepresentationCache:
    """Representations that several variants use; one thread learns, the others wait for it.

    Those that have a name are also written to files beside the results, so that a run that is resumed
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
        self._known: dict[Hashable, Representation | Exception] = {}
        self._is_closed = False
        self._learning, self._writing = threading.Lock(), threading.Lock()

    def get(
        self, key: Hashable, learn: Callable[[], Representation], name: str | None = None
    ) -> Representation:
        """Return what is known by `key`, or in the file of that `name`; or else learn it.

        What `learn` raises is raised whenever the key is asked for.
        """
        with self._learning:
            if key not in self._known:
                try:
                    self._known[key] = self._read_or_learn(learn, self._path(name))
                except Exception as error:
                    self._known[key] = error
            known = self._known[key]
        if isinstance(known, Exception):
            raise known
        return known

    def remove(self, name: str) -> None:
        """Remove the file of a representation that no task needs any more."""
        path = self._path(name)
        if path is not None:
            path.unlink(missing_ok=True)

    def close(self) -> None:
        """Let a file that is being written be finished, and write no more."""
        with self._writing:
            self._is_closed = True

    def _path(self, name: str | None) -> Path | None:
        if self._beside is None or name is None:
            return None
        return self._beside.with_name(f"{self._beside.name}.{name}.npz")

    def _read_or_learn(self, learn: Callable[[], Representation], path: Path | None) -> Representation:
        if path is None:
            return learn()
        representation = _read(path, self._origin)
        if representation is None:
            representation = learn()
            self._write(representation, path)
        return representation

    def _write(self, representation: Representation, path: Path) -> None:
        with self._writing:
            if self._is_closed:
                return
            try:
                _write(representation, path, self._origin)
            except OSError as error:
                warn(
                    f"{path} cannot be written ({error.strerror}): if this run is stopped before all tasks "
                    "that need it are done, it will be learnt again",
                )


def file_name(method: str, width: int, is_tuned: bool = False) -> str:
    """Name of what a method learns from rows of `width` columns, in one form or several."""
    return f"{method}-{width}{'-tuned' if is_tuned else ''}"


def _write(representation: Representation, path: Path, origin: str) -> None:
    about = {
        "origin": origin,
        "seconds": representation.seconds,
        "details": dict(representation.details),
        "candidates": [
            [dict(each.params), list(each.rows), each.extends] for each in representation.candidates
        ],
    }
    rows = {
        f"{i}-{j}": np.asarray(rows)
        for i, candidate in enumerate(representation.candidates)
        for j, rows in enumerate(candidate.rows.values())
    }
    with replace_file(path) as new, new.open("wb") as file:
        np.savez(file, about=np.array(json.dumps(about)), **rows)  # type: ignore[arg-type]


def _read(path: Path, origin: str) -> Representation | None:
    """What a file holds; nothing if it is not there, damaged, or of something else."""
    try:
        with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            about = json.loads(str(file["about"]))
            if about["origin"] != origin:
                return None
            candidates = [
                Candidate(params, {name: file[f"{i}-{j}"] for j, name in enumerate(names)}, extends)
                for i, (params, names, extends) in enumerate(about["candidates"])
            ]
        return Representation(candidates, about["seconds"], about["details"])
    except (OSError, ValueError, LookupError, EOFError, zipfile.BadZipFile):
        return None
