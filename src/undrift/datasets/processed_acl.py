"""Reviews as counted terms, in the `processed_acl` format of Blitzer et al. (2007)."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np
from scipy import sparse

from ..corpora import Corpus, Domain
from .files import corpus_of, dataset_folder, find_file, make_line_error, numbered_lines, optional_file

_LABELS = {"negative": 0, "positive": 1}
_MARK = "#label#:"
_MOST_DIGITS = 9  # of a count; a review has not that many words


@dataclass(frozen=True)
class _Bags:
    """Bags of words of some reviews, one after the other."""

    terms: list[str]  # of every entry
    counts: list[int]  # of every entry
    lengths: list[int]  # entries of each review
    labels: list[float]  # of each review; NaN where unknown


def load_processed_acl(
    folder: str | os.PathLike[str] | None = None, max_features: int | None = None
) -> Corpus:
    r"""Load reviews as counts of uni- and bigrams, with their words.

    Reads ``<domain>/positive.review`` and ``negative.review`` (or ``.gz``), and ``unlabeled.review``
    where there is one. A line is ``term:count term:count ... #label#:positive``.

    Parameters
    ----------
    folder : path, optional
        Default: ``processed_acl`` in the folder named by the environment variable ``UNDRIFT_DATA``, or,
        where that is not set, where `fetch` puts it.
    max_features : int, optional
        Keep this many terms, those in most reviews (of all domains together); by default all. Columns
        are in decreasing document frequency, ties in alphabetical order, so that fewer features are
        always the first columns of more.

    Returns
    -------
    Corpus
        `X` holds counts (CSR, float32), `y` is 1 for positive and 0 for negative, `terms` names the
        columns. All labelled reviews are `train` rows. The unlabelled files of the public archive carry
        labels, and such rows are the `test` rows, as in the paper; where there are none, the labelled
        reviews are the test rows as well. In these files a line may also have no label, or
        ``#label#:unknown``.

    See Also
    --------
    undrift.datasets.fetch : Download the public archive.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from undrift.datasets import load_processed_acl
    >>> with TemporaryDirectory() as folder:
    ...     for domain in ("books", "dvd"):
    ...         Path(folder, domain).mkdir()
    ...         for label, term in (("positive", "gripping"), ("negative", "dull")):
    ...             text = f"{term}:2 prose:1 #label#:{label}\n"
    ...             _ = Path(folder, domain, f"{label}.review").write_text(text)
    ...     corpus = load_processed_acl(folder)
    >>> corpus.terms, corpus.domains["books"].X.toarray().tolist()
    (['prose', 'dull', 'gripping'], [[1.0, 0.0, 2.0], [1.0, 2.0, 0.0]])
    """
    if max_features is not None and max_features < 1:
        raise ValueError(f"max_features is {max_features}; give at least 1, or None for all terms.")
    folder = dataset_folder(folder, "processed_acl")
    names = [path.name for path in sorted(folder.iterdir()) if optional_file(path, "positive.review")]
    if not names:
        raise FileNotFoundError(f"{folder} has no <domain>/positive.review[.gz]; is it the right folder?")
    parts = {name: _domain_bags(folder / name) for name in names}
    X, terms = _frequent(parts, max_features)
    domains = [_domain(name, X[name], *parts[name]) for name in names]
    return corpus_of("processed_acl", domains, terms)


def _domain_bags(folder: Path) -> tuple[_Bags, _Bags]:
    """Read the labelled reviews of one domain, and those of its unlabelled file (perhaps none)."""
    labelled = _read_reviews([find_file(folder, "positive.review"), find_file(folder, "negative.review")])
    unlabelled = optional_file(folder, "unlabeled.review")
    return labelled, _read_reviews([unlabelled] if unlabelled else [])


def _domain(name: str, X: sparse.csr_array, labelled: _Bags, unlabelled: _Bags) -> Domain:
    y = np.array(labelled.labels + unlabelled.labels)
    train, rest = np.split(np.arange(len(y)), [len(labelled.labels)])
    unknown = np.isnan(y[rest])
    return Domain(
        name,
        X=X,
        y=y if unknown.any() else y.astype(np.int64),
        train=train,
        test=train if unknown.all() else rest[~unknown],
        unlabelled=rest[unknown],
    )


def _read_reviews(paths: list[Path]) -> _Bags:
    bags = _Bags([], [], [], [])
    for path in paths:
        n_before = len(bags.labels)
        expected = path.name.split(".")[0]  # positive, negative or unlabeled
        for number, line in numbered_lines(path):
            tokens = [token for token in line.split(" ") if token]
            if not tokens:
                continue
            label = tokens.pop().removeprefix(_MARK) if tokens[-1].startswith(_MARK) else None
            bags.labels.append(_label(label, expected, path, number))
            bags.lengths.append(len(tokens))
            for token in tokens:
                term, count = _term_and_count(token, path, number)
                bags.terms.append(sys.intern(term))  # most terms occur many times
                bags.counts.append(count)
        if expected in _LABELS and len(bags.labels) == n_before:
            raise ValueError(f"{path} has no reviews; the data set is not complete: fetch it again.")
    return bags


def _term_and_count(token: str, path: Path, number: int) -> tuple[str, int]:
    term, _, count = token.rpartition(":")
    whole = count.isascii() and count.isdigit() and len(count) <= _MOST_DIGITS
    if not term or not whole or not int(count):
        raise make_line_error(path, number, f"expected 'term:count', got {token[:40]!r}.")
    return term, int(count)


def _label(label: str | None, expected: str, path: Path, number: int) -> float:
    """Label of one review: as its file says, or, in the unlabelled file, as the line says."""
    if expected in _LABELS and label != expected:
        raise make_line_error(
            path, number, f"expected the line to end in '{_MARK}{expected}', got {label!r}."
        )
    if label in (None, "unknown"):
        return np.nan
    if label not in _LABELS:
        what = f"expected '{_MARK}positive', '{_MARK}negative', '{_MARK}unknown' or no label, got {label!r}."
        raise make_line_error(path, number, what)
    return _LABELS[label]


def _frequent(
    domains: dict[str, tuple[_Bags, _Bags]], max_features: int | None
) -> tuple[dict[str, sparse.csr_array], list[str]]:
    """Count the `max_features` terms in most reviews; columns in that order, ties alphabetical."""
    seen = dict.fromkeys(chain.from_iterable(bags.terms for parts in domains.values() for bags in parts))
    column = {term: i for i, term in enumerate(seen)}
    X = {name: _counts(parts, column) for name, parts in domains.items()}
    frequency = np.bincount(np.concatenate([part.indices for part in X.values()]), minlength=len(column))
    rank = dict(zip(column, (-frequency).tolist(), strict=True))
    terms = sorted(column, key=lambda term: (rank[term], term))[:max_features]
    kept = np.array([column[term] for term in terms])
    return {name: part[:, kept].sorted_indices() for name, part in X.items()}, terms


def _counts(parts: tuple[_Bags, _Bags], column: dict[str, int]) -> sparse.csr_array:
    """Count terms, of shape (reviews, columns); a term that a review lists twice is added up."""
    terms = [term for bags in parts for term in bags.terms]
    counts = np.array([count for bags in parts for count in bags.counts], dtype=np.float32)
    lengths = np.array([length for bags in parts for length in bags.lengths])
    indices = np.fromiter(map(column.__getitem__, terms), np.int32, len(terms))
    row = np.repeat(np.arange(len(lengths), dtype=np.int32), lengths)
    return sparse.coo_array((counts, (row, indices)), shape=(len(lengths), len(column))).tocsr()
