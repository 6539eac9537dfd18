"""Stored scores of an encoder that was taught on the source: as a method, and as a teacher of ours."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from ..catalogue import ENCODERS
from ..parts import part_labels, part_rows
from ..teachers import read_scores
from .cells import Bench, Cell, Finding, Outcome, attempt

RESULTS = Path(__file__).resolve().parents[2] / "results"  # of a checkout


def take_scores(bench: Bench, cell: Cell, kind: str) -> np.ndarray:
    """Return the log odds of all rows of the target, by the encoder that was taught on the source."""
    path = RESULTS / f"teachers-{bench.corpus.name}.npz"
    if not path.exists():
        raise FileNotFoundError(
            f"there are no stored scores of {bench.corpus.name}: run lab/scripts/teachers.py"
        )
    scores = read_scores(path).find(kind, cell.source, cell.target)
    n_rows = len(bench.corpus.domains[cell.target])
    rows = bench.row_numbers.get(cell.target, np.arange(n_rows))
    if cell.target not in bench.row_numbers and len(scores) != n_rows:
        raise ValueError(f"the stored scores are of {len(scores)} rows of {cell.target}, but it has {n_rows}")
    return scores[rows]


def score_by_encoders(bench: Bench, cells: Sequence[Cell]) -> Iterator[Finding]:
    """Predict by the sign of the stored scores; their time is not known."""
    for cell in cells:
        yield from attempt([cell], _predict, bench, cell)


def _predict(bench: Bench, cell: Cell) -> Outcome:
    scores = take_scores(bench, cell, ENCODERS[cell.method])
    classes = np.unique(part_labels(bench.corpus, cell.source, "train"))
    test = part_rows(bench.corpus, (cell.target, "test"))
    return Outcome(cell, classes[(scores[test] > 0).astype(int)], {}, 0.0, 0.0)
