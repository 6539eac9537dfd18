"""Photographs as counts of visual words: one ``<domain>.npz`` a domain, with CSR parts and class names."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import numpy as np
from scipy import sparse

from .corpus import Corpus, Domain
from .files import corpus_of, dataset_folder

NAME = "office_caltech_surf"
PARTS = ("data", "indices", "indptr", "shape", "y")


def load_office_caltech_surf(folder: str | os.PathLike[str] | None = None) -> Corpus:
    """Load photographs of ten objects from four sources, as counts of 800 visual words.

    The default folder is ``office_caltech_surf`` in the data folder. `y` has the numbers of the classes in
    `classes`. All rows are both the train and the test part.
    """
    path = dataset_folder(folder, NAME)
    files = sorted(path.glob("*.npz"))
    if not files:
        raise FileNotFoundError(f"{path} holds no *.npz; is it the right folder?")
    read = {file.stem: _read(file) for file in files}
    classes = sorted({label for _, labels in read.values() for label in labels.tolist()})
    if len(classes) < 2:
        raise ValueError(f"{path}: all labels are {classes[0]}; two classes are needed.")
    domains = []
    for name, (X, labels) in read.items():
        rows = np.arange(X.shape[0])
        domains.append(Domain(name, X=X, y=np.searchsorted(classes, labels), train=rows, test=rows))
    corpus = corpus_of(NAME, domains)
    return Corpus(corpus.name, corpus.domains, classes=classes)


def _read(path: Path) -> tuple[sparse.csr_array, np.ndarray]:
    """Read the rows and labels of a domain; a file that does not hold them is refused."""
    parts = _read_parts(path)
    missing = [part for part in PARTS if part not in parts]
    if missing:
        raise ValueError(f"{path} lacks {', '.join(missing)}; it must hold {', '.join(PARTS)}.")
    try:
        shape = tuple(int(n) for n in parts["shape"])
        triple = parts["data"].astype(np.float32), parts["indices"], parts["indptr"]
        X = sparse.csr_array(triple, shape=shape)
        X.check_format(full_check=True)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path}: its parts are no sparse matrix ({error}).") from None
    y, n = parts["y"], X.shape[0]
    if y.shape != (n,) or y.dtype.kind != "U" or n == 0:
        raise ValueError(f"{path}: {n} rows, but y is {y.dtype} of shape {y.shape}; a name a row.")
    if not np.isfinite(X.data).all() or (X.data < 0).any():
        raise ValueError(f"{path}: data holds values that are no counts.")
    return X, y


def _read_parts(path: Path) -> dict[str, np.ndarray]:
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as stored:
            return {part: stored[part] for part in stored.files}
    except (zipfile.BadZipFile, EOFError, ValueError, TypeError) as error:  # TypeError: a bare array
        raise ValueError(f"{path} is not a NumPy archive of plain arrays ({error}).") from None
