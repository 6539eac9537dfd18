"""The authors' release of the four-domain benchmark: the MATLAB file `amazon.mat`."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from scipy.io import loadmat
from scipy.io.matlab import MatReadError

from .corpus import Corpus, Domain
from .files import corpus_of, dataset_folder

_DOMAINS = ("books", "dvd", "electronics", "kitchen")


def load_amazon_mat(
    path: str | os.PathLike[str] | None = None,
    *,
    max_features: int | None = None,
    n_train: int = 2000,
    names: Sequence[str] = _DOMAINS,
) -> Corpus:
    """Load the authors' bags of words.

    The file holds ``xx`` (terms x documents, sparse), ``yy`` (a label per document) and ``offset`` (where
    each domain begins, from 0, and after the last one the number of documents). `path` is the file or its
    folder, by default ``amazon-mat/amazon.mat`` in the data folder. The first `max_features` columns are
    kept: terms are in decreasing frequency, and the authors use 5,000. The first `n_train` rows of each
    domain are train rows, the others test rows (the authors' protocol). `names` are the domains in the
    file's order.
    """
    path = dataset_folder(path, "amazon-mat")
    path = path / "amazon.mat" if path.is_dir() else path
    xx, yy, offset = _read_mat(path)
    X = sparse.csr_array(xx.T, dtype=np.float32)[:, :max_features]
    y, offset = np.asarray(yy).ravel(), np.asarray(offset).ravel().astype(np.int64)
    n = X.shape[0]
    is_rising = offset[0] == 0 and offset[-1] == n and (np.diff(offset) > 0).all()
    if len(y) != n or len(offset) != len(names) + 1 or not is_rising:
        raise ValueError(
            f"{path}: xx has {n} documents and yy {len(y)} labels; offset is {offset.tolist()}, "
            f"and must rise from 0 to {n}, with {len(names) + 1} entries."
        )
    if not np.isfinite(X.data).all() or not np.isfinite(y).all() or (y != np.rint(y)).any():
        raise ValueError(f"{path}: xx holds counts, or yy labels, that are not whole numbers.")
    domains = []
    for name, start, end in zip(names, offset[:-1], offset[1:], strict=True):
        train, test = np.split(np.arange(end - start), [n_train])
        own = {"X": X[start:end], "y": y[start:end].astype(np.int64), "train": train, "test": test}
        domains.append(Domain(name, **own))
    return corpus_of("amazon-mat", domains)


def _read_mat(path: Path) -> list[Any]:
    """Read the three variables of the file."""
    wanted = ["xx", "yy", "offset"]
    if not path.is_file():
        raise FileNotFoundError(f"There is no {path}; pass the path of the authors' amazon.mat.")
    try:
        with warnings.catch_warnings():
            # SciPy is about to return sparse arrays instead of matrices; either is converted
            warnings.simplefilter("ignore", DeprecationWarning)
            content = loadmat(path, variable_names=wanted)
    except (NotImplementedError, ValueError, TypeError, MatReadError, EOFError) as error:
        raise ValueError(f"{path} is not a MATLAB file of version 7 or before ({error}).") from error
    missing = [name for name in wanted if name not in content]
    if missing:
        raise ValueError(f"{path} lacks {', '.join(missing)}; amazon.mat holds xx, yy and offset.")
    return [content[name] for name in wanted]
