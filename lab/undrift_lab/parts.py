"""From the corpus of a plan to counts: load, count terms, take fewer rows or columns."""

from __future__ import annotations

from dataclasses import replace
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.feature_extraction.text import CountVectorizer

from undrift.text import TermVectorizer

from .corpora import LOADERS
from .corpora.corpus import Corpus, Domain, Rows
from .plan import CorpusSpec

Part = tuple[str, str]  # domain, and "train", "test" or "all"


def part_rows(corpus: Corpus, part: Part) -> np.ndarray:
    """Row numbers of a part within its domain, ascending."""
    domain = corpus.domains[part[0]]
    return np.arange(len(domain)) if part[1] == "all" else np.sort(getattr(domain, part[1]))


def part_labels(corpus: Corpus, domain: str, part: str) -> np.ndarray:
    """Labels of the rows of a part, in the order of `part_rows`."""
    return np.asarray(corpus.domains[domain].y)[part_rows(corpus, (domain, part))]


def load_corpus(
    spec: CorpusSpec, data: str | Path | None, max_features: int, inductive: bool = False
) -> Corpus:
    """Load the corpus as counts, with `max_features` columns at most, the most frequent first.

    Files are looked for in the folder `data`, by default the one named by ``UNDRIFT_DATA``, or, where
    that is not set, where ``undrift-lab fetch`` puts them. The vocabulary of an `inductive` corpus of texts
    is chosen without the test rows; the columns of counted files are given.
    """
    corpus = load_rows(spec, data, max_features)
    return take_columns(count_terms(corpus, max_features, inductive), max_features)


def load_rows(spec: CorpusSpec, data: str | Path | None, max_features: int) -> Corpus:
    """Load the corpus as its files have it, texts or counts; some files hold more columns than are wanted."""
    folder = [] if spec.loader == "reviews" else [None if data is None else Path(data) / spec.loader]
    width = {"max_features": max_features} if spec.loader == "processed_acl" else {}
    return take_rows(LOADERS[spec.loader](*folder, **width), spec.max_rows)


def count_terms(corpus: Corpus, max_features: int, inductive: bool = False) -> Corpus:
    """Count the terms of texts, over one vocabulary for all domains; counts stay as they are."""
    if next(iter(corpus.domains.values())).texts is None:
        return corpus
    texts = rows_to_learn_from(corpus, inductive)
    vectorizer = TermVectorizer(max_features).fit(texts)
    options = {"analyzer": vectorizer.build_analyzer(), "dtype": np.float32}
    counter = CountVectorizer(vocabulary=vectorizer.terms_, **options)
    return corpus.map(lambda own: csr_array(counter.transform(own)), terms=list(vectorizer.terms_))


def rows_to_learn_from(corpus: Corpus, inductive: bool) -> Any:
    """All rows of all domains, stacked; where it is `inductive`, all but the test rows."""
    rows, _ = corpus.rows()
    if not inductive:
        return rows
    is_kept = np.concatenate(
        [~np.isin(np.arange(len(domain)), domain.test) for domain in corpus.domains.values()]
    )
    return list(compress(rows, is_kept)) if isinstance(rows, list) else rows[np.flatnonzero(is_kept)]


def take_columns(corpus: Corpus, n: int | None) -> Corpus:
    """Keep the first n columns, which are the most frequent terms."""
    width = next(iter(corpus.domains.values())).X.shape[1]
    if n is None or n >= width:
        return corpus
    return corpus.map(lambda X: X[:, :n], terms=None if corpus.terms is None else corpus.terms[:n])


def rank_columns(corpus: Corpus, n: int | None) -> Corpus:
    """Keep the n columns that most rows of these domains have, in that order."""
    counts = sum(np.asarray((domain.X > 0).sum(axis=0)).ravel() for domain in corpus.domains.values())
    order = np.argsort(-np.asarray(counts), kind="stable")[:n]
    order = order[np.asarray(counts)[order] > 0]
    terms = None if corpus.terms is None else [corpus.terms[j] for j in order]
    return corpus.map(lambda X: X[:, order], terms=terms)


def take_pair(corpus: Corpus, source: str, target: str, *, has_whole_source: bool) -> Corpus:
    """Leave two domains; of the source all rows, or the train rows that other packages see."""
    given = corpus.domains[source]
    if not has_whole_source:
        given = _pick(given, given.train, train=np.arange(len(given.train)))
    return replace(corpus, domains={source: given, target: corpus.domains[target]})


def take_rows(corpus: Corpus, max_rows: int | None) -> Corpus:
    """Keep `max_rows` of each part of each domain, evenly spaced."""
    if max_rows is None:
        return corpus
    return replace(
        corpus, domains={name: _take_domain_rows(domain, max_rows) for name, domain in corpus.domains.items()}
    )


def sample_target(
    corpus: Corpus, target: str, share: float, max_rows: int, seed: int
) -> tuple[Corpus, np.ndarray]:
    """Put a sample of the target's labelled rows, train and test, in place of the domain; all are test rows.

    Rows of either class come in an order that the seed decides, so that samples of several shares overlap.
    Their numbers in the domain are returned too.

    Parameters
    ----------
    share : float
        Share of the second of the two classes in the sample.
    """
    domain, random_state = corpus.domains[target], np.random.RandomState(seed)
    labelled = np.union1d(domain.train, domain.test)
    y = np.asarray(domain.y)[labelled]
    classes = np.unique(y)
    if len(classes) != 2:
        raise ValueError(
            f"domain {target}: target_share needs rows of two classes, but it has {len(classes)}"
        )
    groups = [random_state.permutation(labelled[y == label]) for label in classes]
    n = min(max_rows, int(len(groups[0]) / (1 - share) + 1e-9), int(len(groups[1]) / share + 1e-9))
    n_second = round(share * n)
    if not 0 < n_second < n:
        raise ValueError(f"domain {target}: too few rows for a share of {share:g}")
    rows = np.sort(np.concatenate([groups[0][: n - n_second], groups[1][:n_second]]))
    return replace(corpus, domains={**corpus.domains, target: _pick(domain, rows, test=np.arange(n))}), rows


def take_labelled(domain: Domain, part: str, max_rows: int) -> tuple[Rows, np.ndarray]:
    """Return labelled rows of a domain and their labels, evenly spaced: of "train", or of "all" parts."""
    labelled = np.sort(domain.train) if part == "train" else np.union1d(domain.train, domain.test)
    picked = _pick(domain, space_evenly(labelled, max_rows))
    return picked.rows, np.asarray(picked.y)


def _take_domain_rows(domain: Domain, max_rows: int) -> Domain:
    parts = {part: space_evenly(getattr(domain, part), max_rows) for part in ("train", "test", "unlabelled")}
    rows = np.unique(np.concatenate(list(parts.values())))
    return _pick(domain, rows, **{part: np.searchsorted(rows, index) for part, index in parts.items()})


def _pick(domain: Domain, rows: np.ndarray, **parts: Any) -> Domain:
    """Leave some rows of a domain, with these parts."""
    texts = None if domain.texts is None else [domain.texts[i] for i in rows]
    X = None if domain.X is None else domain.X[rows]
    return Domain(domain.name, X=X, texts=texts, y=np.asarray(domain.y)[rows], **parts)


def space_evenly(index: np.ndarray, n: int) -> np.ndarray:
    """Return at most n of some row numbers, evenly spaced."""
    return index if len(index) <= n else index[np.linspace(0, len(index) - 1, n).round().astype(int)]
