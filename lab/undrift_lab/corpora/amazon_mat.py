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

from undrift.datasets import Corpus, Domain

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

    The file holds ``xx`` (terms x documents, sparse), ``yy`` (a label per document) and ``offset``
    (where each domain begins, from 0, and after the last one the number of documents).

    Parameters
    ----------
    path : path, optional
        The file, or its folder. Default: ``amazon-mat/amazon.mat`` in the folder named by the environment
        variable ``UNDRIFT_DATA``, or, where that is not set, in undrift's folder in the user's cache folder.
    max_features : int, optional
        Keep this many columns, the first: terms are in decreasing frequency. The authors use 5,000.
    n_train : int, default=2000
        The first rows of each domain, to train on; the others are test rows (the authors' protocol).
    names : sequence of str
        Names of the domains, in the file's order.

    Returns
    -------
    Corpus
        `X` holds counts (CSR, float32); `y` is as in the file, as integers.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> from scipy import io, sparse
    >>> from undrift_lab.corpora import load_amazon_mat
    >>> with TemporaryDirectory() as folder:
    ...     content = {"xx": sparse.csc_matrix(np.eye(4)), "yy": [1, -1, 1, -1], "offset": [0, 2, 4]}
    ...     io.savemat(Path(folder, "amazon.mat"), content)
    ...     corpus = load_amazon_mat(folder, n_train=1, names=["books", "dvd"])
    >>> corpus.domains["dvd"].y.tolist()
    [1, -1]
    """
    path = dataset_folder(path, "amazon-mat")
    path = path / "amazon.mat" if path.is_dir() else path
    content = _read_mat(path)
    X = sparse.csr_array(content["xx"].T, dtype=np.float32)[:, :max_features]
    y = np.asarray(content["yy"]).ravel()
    offset = np.asarray(content["offset"]).ravel().astype(np.int64)
    _check(path, X, y, offset, names)
    bounds = zip(names, offset[:-1], offset[1:], strict=True)
    domains = [_domain(name, X[start:end], y[start:end], n_train) for name, start, end in bounds]
    return corpus_of("amazon-mat", domains)


def _domain(name: str, X: sparse.csr_array, y: np.ndarray, n_train: int) -> Domain:
    rows = np.arange(len(y))
    return Domain(name, X=X, y=y.astype(np.int64), train=rows[:n_train], test=rows[n_train:])


def _read_mat(path: Path) -> dict[str, Any]:
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
    return content


def _check(path: Path, X: sparse.csr_array, y: np.ndarray, offset: np.ndarray, names: Sequence[str]) -> None:
    """Refuse a file whose three variables do not fit together."""
    n_rows = X.shape[0]
    if len(y) != n_rows:
        raise ValueError(f"{path}: xx has {n_rows} columns (documents) but yy has {len(y)} labels.")
    if not np.isfinite(X.data).all() or not np.isfinite(y).all() or (y != np.rint(y)).any():
        raise ValueError(f"{path}: xx holds counts, or yy labels, that are not whole numbers.")
    is_rising = offset[0] == 0 and offset[-1] == n_rows and (np.diff(offset) > 0).all()
    if len(offset) != len(names) + 1 or not is_rising:
        raise ValueError(
            f"{path}: offset is {offset.tolist()}; it must rise from 0 to {n_rows} documents, with "
            f"{len(names) + 1} entries for {len(names)} domains."
        )
