"""Bags of words of four domains, as svmlight files: the benchmark of section 5."""

from __future__ import annotations

import os
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.datasets import load_svmlight_file

from .corpus import Corpus, Domain
from .files import corpus_of, dataset_folder, find_file, shorten_indices, stems


def load_amazon_bow(folder: str | os.PathLike[str] | None = None) -> Corpus:
    """Load reviews as raw counts of the most frequent uni- and bigrams (section 5).

    Reads ``<domain>_train.svmlight`` and ``<domain>_test.svmlight`` (or ``.gz``) of every domain in `folder`:
    label +1 or -1, then ``index:count`` with indices from 0. The words are not in the files. The default
    folder is ``amazon-bow`` in the data folder. `X` holds counts (CSR, float32, in which they are exact), `y`
    is -1 or +1. All rows have labels; the `test` rows are those the paper calls unlabelled.
    """
    folder = dataset_folder(folder, "amazon-bow")
    names = stems(folder, "_train.svmlight")
    parts = {
        name: [_read_svmlight(find_file(folder, f"{name}_{part}.svmlight")) for part in ("train", "test")]
        for name in names
    }
    width = max(X.shape[1] for pair in parts.values() for X, _ in pair)
    return corpus_of("amazon-bow", [_make_domain(name, parts[name], width) for name in names])


def _make_domain(name: str, parts: list[tuple[Any, np.ndarray]], width: int) -> Domain:
    """Return one domain from its train and test rows, with `width` columns."""
    for X, _ in parts:
        X.resize(X.shape[0], width)
    X, y = (
        shorten_indices(sparse.vstack([X for X, _ in parts], format="csr")),
        np.concatenate([y for _, y in parts]),
    )
    train, test = np.split(np.arange(len(y)), [len(parts[0][1])])
    return Domain(name, X=X, y=y, train=train, test=test)


def _read_svmlight(path: Path) -> tuple[Any, np.ndarray]:
    """Read counts and labels of one file; its width is its largest index and one."""
    try:
        X, y = load_svmlight_file(str(path), dtype=np.float32, zero_based=True)
    except (ValueError, EOFError, OSError, zlib.error) as error:
        raise ValueError(f"{path} is not a file of '+1 index:count ...' lines ({error}).") from None
    if not len(y):
        raise ValueError(f"{path} has no rows.")
    if not np.isin(y, (-1, 1)).all() or not np.isfinite(X.data).all():
        raise ValueError(f"{path} has labels other than -1 and +1, or counts that are not finite.")
    return X, y.astype(np.int64)
