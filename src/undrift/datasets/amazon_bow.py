"""The four-domain benchmark of the 2012 paper as bags of words, in svmlight files."""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np
from scipy import sparse

from ..corpora import Corpus, Domain
from .files import corpus_of, dataset_folder, find_file, make_line_error, numbered_lines, stems

_NUMBER = r"\d+(?:\.\d*)?(?:[eE][+-]?\d+)?"
_ROW = re.compile(rf"([+-]?1(?:\.0*)?)((?:[ \t]+\d{{1,9}}:{_NUMBER})*)[ \t]*(?:#.*)?")


def load_amazon_bow(folder: str | os.PathLike[str] | None = None) -> Corpus:
    r"""Load reviews as raw counts of the most frequent uni- and bigrams (section 5).

    Reads ``<domain>_train.svmlight`` and ``<domain>_test.svmlight`` (or ``.gz``) of every domain in
    `folder`: label +1 or -1, then ``index:count`` with indices from 0. The words are not in the files.

    Parameters
    ----------
    folder : path, optional
        Default: ``amazon-bow`` in the folder named by the environment variable ``UNDRIFT_DATA``, or, where
        that is not set, where `fetch` puts it.

    Returns
    -------
    Corpus
        `X` holds counts (CSR, float32, in which they are exact), `y` is -1 or +1. All rows have labels;
        the `test` rows are those the paper calls unlabelled, so `unlabelled` is empty.

    See Also
    --------
    undrift.datasets.fetch : Download the files.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from undrift.datasets import load_amazon_bow
    >>> with TemporaryDirectory() as folder:
    ...     for domain in ("books", "dvd"):
    ...         for part in ("train", "test"):
    ...             text = "+1 0:2 3:1\n-1 1:1\n"
    ...             _ = Path(folder, f"{domain}_{part}.svmlight").write_text(text)
    ...     corpus = load_amazon_bow(folder)
    >>> corpus.domains["books"].X.toarray()[0].tolist(), corpus.domains["books"].y.tolist()
    ([2.0, 0.0, 0.0, 1.0], [1, -1, 1, -1])
    """
    folder = dataset_folder(folder, "amazon-bow")
    names = stems(folder, "_train.svmlight")
    parts = {
        name: [_read_svmlight(find_file(folder, f"{name}_{part}.svmlight")) for part in ("train", "test")]
        for name in names
    }
    width = max(X.shape[1] for pair in parts.values() for X, _ in pair)
    return corpus_of("amazon-bow", [_domain(name, parts[name], width) for name in names])


def _domain(name: str, parts: list[tuple[sparse.csr_array, np.ndarray]], width: int) -> Domain:
    """One domain from its train and test rows, with `width` columns."""
    wide = [sparse.csr_array((X.data, X.indices, X.indptr), shape=(X.shape[0], width)) for X, _ in parts]
    X = sparse.vstack(wide, format="csr")
    n_train = wide[0].shape[0]
    return Domain(
        name,
        X=X,
        y=np.concatenate([y for _, y in parts]),
        train=np.arange(n_train),
        test=np.arange(n_train, X.shape[0]),
    )


def _read_svmlight(path: Path) -> tuple[sparse.csr_array, np.ndarray]:
    """Read counts and labels of one file; its width is its largest index and one."""
    labels, entries, lines = [], [], []
    for number, line in numbered_lines(path):
        if not line.strip():
            continue
        row = _ROW.fullmatch(line)
        if row is None:
            raise make_line_error(
                path, number, f"expected '+1 index:count ...' or '-1 ...', got {line[:40]!r}."
            )
        labels.append(float(row[1]))
        entries.append(row[2])
        lines.append(number)
    if not lines:
        raise ValueError(f"{path} has no rows.")
    # One conversion for the whole file: every number has matched the pattern.
    flat = np.array(" ".join(entries).replace(":", " ").split(), dtype=np.float64).reshape(-1, 2)
    indices = flat[:, 0].astype(np.int32)
    indptr = np.cumsum([0] + [entry.count(":") for entry in entries], dtype=np.int32)
    rows = np.repeat(np.arange(len(lines)), np.diff(indptr))  # of each entry
    _check_increasing(path, lines, indices, rows)
    _check_counts(path, lines, flat[:, 1], rows)
    shape = (len(lines), int(indices.max(initial=0)) + 1)
    X = sparse.csr_array((flat[:, 1].astype(np.float32), indices, indptr), shape=shape)
    return X, np.array(labels, dtype=np.int64)


def _check_increasing(path: Path, lines: list[int], indices: np.ndarray, row: np.ndarray) -> None:
    """Refuse a row whose indices repeat or go down, naming its line."""
    faults = np.flatnonzero((np.diff(indices) <= 0) & (np.diff(row) == 0))
    if len(faults):
        before, after = indices[faults[0]], indices[faults[0] + 1]
        what = f"index {after} follows {before}; indices must increase."
        raise make_line_error(path, lines[row[faults[0]]], what)


def _check_counts(path: Path, lines: list[int], counts: np.ndarray, row: np.ndarray) -> None:
    """Refuse a count that float32 cannot hold, naming its line."""
    faults = np.flatnonzero(counts > np.finfo(np.float32).max)
    if len(faults):
        what = f"a count is {counts[faults[0]]:g}, more than a float32 can hold; write it smaller."
        raise make_line_error(path, lines[row[faults[0]]], what)
