"""Reviews as counted terms, in the `processed_acl` format of Blitzer et al. (2007)."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.feature_extraction import DictVectorizer

from .corpus import Corpus, Domain
from .files import (
    corpus_of,
    dataset_folder,
    find_file,
    make_line_error,
    numbered_lines,
    optional_file,
    shorten_indices,
)

_LABELS = {"negative": 0.0, "positive": 1.0}
_MARK = "#label#:"
_Review = tuple[Counter[str], float]  # counts of terms, label (NaN where unknown)


def load_processed_acl(
    folder: str | os.PathLike[str] | None = None, max_features: int | None = None
) -> Corpus:
    """Load reviews as counts of uni- and bigrams, with their words.

    Reads ``<domain>/positive.review`` and ``negative.review`` (or ``.gz``), and ``unlabeled.review`` where
    there is one. A line is ``term:count term:count ... #label#:positive``. The default folder is
    ``processed_acl`` in the data folder. `max_features` keeps the terms in most reviews of all domains;
    columns are in decreasing document frequency, ties in alphabetical order.

    `y` is 1 for positive and 0 for negative. All labelled reviews are `train` rows. The unlabelled files of
    the public archive carry labels, and such rows are the `test` rows, as in the paper; where there are none,
    the labelled reviews are the test rows as well. In these files a line may also have no label, or
    ``#label#:unknown``.
    """
    if max_features is not None and max_features < 1:
        raise ValueError(f"max_features is {max_features}; give at least 1, or None for all terms.")
    folder = dataset_folder(folder, "processed_acl")
    names = [path.name for path in sorted(folder.iterdir()) if optional_file(path, "positive.review")]
    if not names:
        raise FileNotFoundError(f"{folder} has no <domain>/positive.review[.gz]; is it the right folder?")
    parts = {name: _read_domain(folder / name) for name in names}
    vectorizer = DictVectorizer(dtype=np.float32)  # its columns are in alphabetical order
    reviews = [review for pair in parts.values() for part in pair for review in part]
    X = sparse.csr_array(vectorizer.fit_transform([counts for counts, _ in reviews]))
    order = np.argsort(-np.bincount(X.indices, minlength=X.shape[1]), kind="stable")[:max_features]
    X, start, domains = shorten_indices(X[:, order].sorted_indices()), 0, []
    for name, (labelled, others) in parts.items():
        y = np.array([label for _, label in (*labelled, *others)])
        domains.append(_make_domain(name, X[start : start + len(y)], y, len(labelled)))
        start += len(y)
    return corpus_of("processed_acl", domains, [vectorizer.feature_names_[j] for j in order])


def _read_domain(folder: Path) -> tuple[list[_Review], list[_Review]]:
    """Read the labelled reviews of one domain, and those of its unlabelled file (perhaps none)."""
    labelled = [
        _read_reviews(find_file(folder, f"{label}.review"), label) for label in ("positive", "negative")
    ]
    unlabelled = optional_file(folder, "unlabeled.review")
    return [*labelled[0], *labelled[1]], _read_reviews(unlabelled, None) if unlabelled else []


def _make_domain(name: str, X: sparse.csr_array, y: np.ndarray, n_labelled: int) -> Domain:
    train, rest = np.split(np.arange(len(y)), [n_labelled])
    unknown = np.isnan(y[rest])
    return Domain(
        name,
        X=X,
        y=y if unknown.any() else y.astype(np.int64),
        train=train,
        test=train if unknown.all() else rest[~unknown],
        unlabelled=rest[unknown],
    )


def _read_reviews(path: Path, expected: str | None) -> list[_Review]:
    """Read the reviews of a file, all of which have the label that is expected, if any."""
    reviews = []
    for number, line in numbered_lines(path):
        tokens = [token for token in line.split(" ") if token]
        if not tokens:
            continue
        label = tokens.pop().removeprefix(_MARK) if tokens[-1].startswith(_MARK) else "unknown"
        if label != expected if expected else label not in (*_LABELS, "unknown"):
            raise make_line_error(path, number, f"expected '{_MARK}{expected or 'positive'}', got {label!r}.")
        counts: Counter[str] = Counter()
        for token in tokens:
            term, _, count = token.rpartition(":")
            if not term or not count.isascii() or not count.isdigit() or not 0 < len(count) < 10:
                raise make_line_error(path, number, f"expected 'term:count', got {token[:40]!r}.")
            counts[term] += int(count)
        reviews.append((counts, _LABELS.get(label, np.nan)))
    if expected and not reviews:
        raise ValueError(f"{path} has no reviews; the data set is not complete: fetch it again.")
    return reviews
