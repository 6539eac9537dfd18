"""Stored scores of encoders: log odds for all rows of a corpus, by an encoder taught on each domain."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

KINDS = ("frozen", "finetuned")
ABOUT = ("domains", "sizes", "digests")


@dataclass(frozen=True)
class TeacherScores:
    """Scores of all rows of a corpus by the encoders of its domains."""

    domains: tuple[str, ...]  # in the order of the rows and of the encoders
    sizes: tuple[int, ...]  # rows of each domain
    digests: tuple[str, ...]  # of each domain's texts: a test compares them with the corpus
    scores: Mapping[str, np.ndarray]  # by kind: log odds of the second class, NaN without an encoder

    def find(self, kind: str, source: str, target: str) -> np.ndarray:
        """Return the log odds of the rows of `target` by the encoder taught on `source`."""
        for name in (source, target):
            if name not in self.domains:
                raise ValueError(f"there are no scores of {name}; known are {', '.join(self.domains)}")
        i, j = self.domains.index(source), self.domains.index(target)
        start = sum(self.sizes[:j])
        found = self.scores[kind][i, start : start + self.sizes[j]].astype(np.float64)
        if np.isnan(found).any():
            raise ValueError(f"the encoder of {source} was not trained; run lab/scripts/teachers.py again")
        return found


def fingerprint(texts: Sequence[str]) -> str:
    """Return a short digest of texts in their order."""
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]


def write_scores(path: Path, teachers: TeacherScores) -> None:
    """Write scores as float16, so that a reader never sees half a file."""
    partial = path.with_suffix(".part.npz")
    arrays: dict[str, np.ndarray] = {k: values.astype(np.float16) for k, values in teachers.scores.items()}
    arrays |= {name: np.array(getattr(teachers, name)) for name in ABOUT}
    np.savez_compressed(partial, **arrays)  # type: ignore[arg-type]
    partial.replace(path)


def read_scores(path: Path) -> TeacherScores:
    """Read what `write_scores` wrote."""
    with np.load(path) as stored:
        about = {name: tuple(stored[name].tolist()) for name in ABOUT}
        return TeacherScores(**about, scores={kind: stored[kind] for kind in KINDS})
