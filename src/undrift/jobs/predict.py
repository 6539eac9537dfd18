"""Predictions as columns, and the job that applies a saved model to new rows."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from .._core import Rows as Matrix
from ..errors import UndriftWarning
from ..tables import Table, with_added, write_table
from ..text import TextAdapter
from .inputs import name_added_columns, refuse_overwriting


def predict_columns(
    adapter: TextAdapter, X: Matrix, number: int | None = None, prefix: str = "", domain: str | None = None
) -> dict[str, list[Any]]:
    """Predict rows of the target `number`; returns the columns to add, with `domain` if it is named."""
    scores = adapter.classifier_.decision_function(X, sample_domain=number)
    if scores.ndim == 1:
        winners = (scores > 0).astype(int)
    else:
        winners = scores.argmax(axis=1)
        scores = scores.max(axis=1)
    columns = [adapter.classes_[winners].tolist(), np.round(scores, 6).tolist()]
    columns += [] if domain is None else [[domain] * len(scores)]
    return dict(zip(name_added_columns(prefix, len(columns) - 1), columns, strict=True))


def run_predict(
    adapter: TextAdapter, table: Table, text: str, out: Path, prefix: str = "", domain: str | None = None
) -> Iterator[tuple[int, float]]:
    """Predict a table block by block; yields the rows written so far and the share of the table read.

    Rows are predicted as those of the target `domain`. Without it, a model of several targets uses the
    average of their intercepts, and a warning says so.
    """
    number = _find_domain(adapter, domain)
    refuse_overwriting(out, [table.path])
    columns = with_added(table.path, table.columns, name_added_columns(prefix))
    with write_table(out, columns, kinds=table.kinds) as writer:
        for rows in table:
            X = adapter.vectorizer_.transform(rows.texts(text))
            writer.write(rows.with_columns(predict_columns(adapter, X, number, prefix)))
            yield writer.n_rows, rows.share_read


def _find_domain(adapter: TextAdapter, name: str | None) -> int | None:
    """Return the number of the target called `name`; without a name None, and a warning if it matters."""
    names = getattr(adapter, "domain_names_", [])
    if name in names:
        return -1 - names.index(name)
    if name is not None:
        known = f"its target domains are {', '.join(names)}" if names else "it does not name its domains"
        raise ValueError(f"the model has no target domain {name!r}: {known}")
    n_targets = sum(number < 0 for number in adapter.classifier_.domains_)
    if n_targets > 1:
        choice = f"choose one with --domain: {', '.join(names)}" if names else "it does not name them"
        warnings.warn(
            f"the model was adapted to {n_targets} target domains, and the rows are predicted with the "
            f"average of their intercepts; {choice}",
            UndriftWarning,
            stacklevel=3,
        )
    return None
