"""TermVectorizer: documents to rows, uni- and bigrams over one shared vocabulary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from numbers import Integral
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.preprocessing import normalize
from sklearn.utils.validation import check_is_fitted

from .._inputs import check_count, check_positive, savable
from ..errors import warn
from .tokens import SAMPLE_DOCUMENTS, TOKENS, build_analyser, check_documents, choose_tokens

WEIGHTINGS = ("tfidf", "counts", "binary")


@savable
class TermVectorizer(TransformerMixin, BaseEstimator):
    """Documents to weighted counts of the terms that occur in most documents.

    The vocabulary is the `max_features` terms of highest document frequency over everything given to
    `fit`, ties in alphabetical order; fit it on the documents of all domains to share it among them.
    Documents may be any iterable of strings, also a generator: they are read one at a time, and one
    block of rows at a time is counted (by scikit-learn's ``CountVectorizer``).

    Parameters
    ----------
    max_features : int, default=5000
        Size of the vocabulary, at most.
    weighting : {"tfidf", "counts", "binary"}, default="tfidf"
        "tfidf" is ``(1 + log count) * idf``, each row scaled to `length`, with
        ``idf = 1 + log((1 + n_documents) / (1 + document frequency))``.
    length : float, default=1.0
        Euclidean length of tf-idf rows. It sets how far the squashing functions of a stack bend:
        :class:`TextAdapter` uses 5.
    ngram_range : (int, int), default=(1, 2)
        Shortest and longest term, in words.
    tokens : {"auto", "words", "characters"}, default="auto"
        What terms are made of. "words" are cut by Unicode's rules, with every character of a script without
        spaces as a word; "characters" gives n-grams of 2 to 4 characters inside words, whatever
        `ngram_range`. "auto" takes characters where most letters are of scripts without spaces or words
        hardly repeat.
    max_counted : int, default=2_000_000
        Most distinct terms kept while counting (some 100 bytes each), at least twice `max_features`. When
        there are more, the rarer half is forgotten: see `n_missed_`.
    dtype : {"float32", "float64"}, default="float32"
        Type of the rows.

    Attributes
    ----------
    terms_ : list of str
        The vocabulary, by decreasing document frequency; the words of a longer term are joined by a space.
    document_frequency_ : ndarray of int64, shape (n_terms,)
        Number of documents that contain each term.
    idf_ : ndarray of float64, shape (n_terms,)
        Inverse document frequency of each term, whatever the weighting.
    tokens_ : {"words", "characters"}
        What was chosen; models saved before there was a choice do not have it, and keep their words.
    tokens_reason_ : str
        Why.
    n_documents_ : int
        Number of documents in `fit`.
    n_missed_ : int
        Every document frequency is short by at most this. 0 unless there were more than `max_counted`
        distinct terms: each time the rarer half is forgotten, its highest count is added here.

    Examples
    --------
    >>> vectorizer = TermVectorizer(weighting="counts").fit(["It did n't break", "It didn't"])
    >>> vectorizer.terms_
    ["didn't", 'it', "it didn't", 'break', "didn't break"]
    >>> vectorizer.transform(["didn’t! didn’t!"]).toarray()
    array([[2., 0., 0., 0., 0.]], dtype=float32)
    """

    def __init__(
        self,
        max_features: int = 5000,
        *,
        weighting: str = "tfidf",
        length: float = 1.0,
        ngram_range: tuple[int, int] = (1, 2),
        tokens: str = "auto",
        max_counted: int = 2_000_000,
        dtype: Any = "float32",
    ):
        self.max_features = max_features
        self.weighting = weighting
        self.length = length
        self.ngram_range = ngram_range
        self.tokens = tokens
        self.max_counted = max_counted
        self.dtype = dtype

    def fit(self, documents: Iterable[str], y: Any = None) -> TermVectorizer:
        """Choose the vocabulary, in one pass over the documents."""
        self._check_parameters()
        rest = check_documents(documents)
        head = list(islice(rest, SAMPLE_DOCUMENTS))
        if isinstance(documents, list | tuple):
            self.choose_tokens(documents[:: 1 + len(documents) // SAMPLE_DOCUMENTS])
        else:
            self.choose_tokens(head)
        return self.fit_frequencies(self.frequencies(chain(head, rest)))

    def choose_tokens(self, documents: Iterable[str]) -> TermVectorizer:
        """Settle what terms are made of, from the first 1,000 documents given; `fit` does so by itself."""
        self.tokens_, self.tokens_reason_ = (
            choose_tokens(check_documents(documents)) if self.tokens == "auto" else (self.tokens, "given")
        )
        return self

    def frequencies(
        self, documents: Iterable[str], only: Collection[str] | None = None
    ) -> DocumentFrequencies:
        """Document frequencies of the terms (of those in `only`, if given), which add over documents."""
        self._check_parameters()
        analyse = build_analyser(self._settle_tokens(), self.ngram_range)
        return count_documents(check_documents(documents), analyse, self.max_counted, only)

    def _settle_tokens(self) -> str:
        """Return what terms are made of: words, if neither documents nor the user have said."""
        return self.tokens_ if hasattr(self, "tokens_") else self.choose_tokens([]).tokens_

    def fit_frequencies(self, frequencies: DocumentFrequencies) -> TermVectorizer:
        """Choose the vocabulary, given the :meth:`frequencies` of all documents."""
        self._check_parameters()
        n_documents, n_missed = frequencies.n_documents, frequencies.n_missed
        ranked = frequencies.rank(self.max_features)
        if not ranked:
            raise ValueError(f"no words in the {n_documents} documents: a vocabulary needs at least one")
        if n_missed >= ranked[-1][1]:
            warn(
                f"the vocabulary may lack terms of up to {n_missed} documents: more than "
                f"max_counted={self.max_counted} distinct terms; raise it or lower max_features",
            )
        self._settle_tokens()
        self.terms_ = [term for term, _ in ranked]
        self.document_frequency_ = np.array([count for _, count in ranked], dtype=np.int64)
        self.idf_ = 1 + np.log((1 + n_documents) / (1 + self.document_frequency_))
        self.n_documents_ = n_documents
        self.n_missed_ = n_missed
        return self

    def fit_transform(self, documents: Iterable[str], y: Any = None) -> sparse.csr_array:
        """Choose the vocabulary and give the rows; a generator is held in memory, to be read twice."""
        if isinstance(documents, Iterator):
            documents = list(documents)
        return self.fit(documents).transform(documents)

    def transform(self, documents: Iterable[str]) -> sparse.csr_array:
        """Rows of the documents, shape (n_documents, n_terms); all zero where no term occurs."""
        check_is_fitted(self, "terms_")
        empty = sparse.csr_array((0, len(self.terms_)), dtype=np.dtype(self.dtype))
        return sparse.vstack([empty, *self.blocks(documents)], format="csr")

    def blocks(self, documents: Iterable[str], block_size: int = 2048) -> Iterator[sparse.csr_array]:
        """Yield the rows of `transform` in blocks, holding one at a time."""
        check_is_fitted(self, "terms_")
        self._check_parameters()
        counter = CountVectorizer(
            analyzer=self.build_analyser(), vocabulary=self.terms_, dtype=np.dtype(self.dtype)
        )
        rest = check_documents(documents)
        while block := list(islice(rest, block_size)):
            yield self._weight(sparse.csr_array(counter.transform(block)))

    def build_analyser(self) -> Callable[[str], list[str]]:
        """Return the function that lists the terms of a document."""
        return build_analyser(getattr(self, "tokens_", None), self.ngram_range)

    def _weight(self, counts: sparse.csr_array) -> sparse.csr_array:
        """Weight the counts of one block, in place."""
        if self.weighting == "binary":
            counts.data.fill(1)
        elif self.weighting == "tfidf":
            counts.data = ((1 + np.log(counts.data)) * self.idf_[counts.indices]).astype(counts.dtype)
            normalize(counts, copy=False)
            counts.data *= self.length
        return counts

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Give the terms as scikit-learn wants them; `input_features` is ignored."""
        check_is_fitted(self, "terms_")
        return np.asarray(self.terms_, dtype=object)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags

    def _check_parameters(self) -> None:
        if self.weighting not in WEIGHTINGS:
            raise ValueError(f"weighting must be one of {', '.join(WEIGHTINGS)}; got {self.weighting!r}")
        if self.tokens not in TOKENS:
            raise ValueError(f"tokens must be one of {', '.join(TOKENS)}; got {self.tokens!r}")
        check_positive(self.length, "length")
        max_features = check_count(self.max_features, "max_features")
        if check_count(self.max_counted, "max_counted") < 2 * max_features:
            raise ValueError(
                f"max_counted must be at least twice max_features={self.max_features}; got {self.max_counted}"
            )
        if not _is_float(self.dtype):
            raise ValueError(f"dtype must be float32 or float64; got {self.dtype!r}")
        if not _is_range(self.ngram_range):
            raise ValueError(f"ngram_range must be (shortest, longest), from 1 up; got {self.ngram_range}")


def _is_float(dtype: Any) -> bool:
    """Tell whether `dtype` means float32 or float64."""
    try:
        return np.dtype(dtype) in (np.dtype("float32"), np.dtype("float64"))
    except TypeError:
        return False


def _is_range(value: Any) -> bool:
    """Tell whether `value` is a pair of counts, the smaller first."""
    if not isinstance(value, tuple | list) or len(value) != 2:
        return False
    return all(isinstance(bound, Integral) for bound in value) and 1 <= value[0] <= value[1]


@dataclass(frozen=True)
class DocumentFrequencies:
    """In how many of some documents each term occurs; those of disjoint documents add.

    Holds at most `limit` terms (lossy counting, Manku and Motwani 2002): a term forgotten n times,
    each time at or below that time's threshold, has lost no more than their sum.
    """

    counts: Counter[str]
    n_documents: int
    n_missed: int  # the most that any count may be short by, also that of a term not held
    limit: int

    def __add__(self, other: DocumentFrequencies) -> DocumentFrequencies:
        n_documents, n_missed = self.n_documents + other.n_documents, self.n_missed + other.n_missed
        counts, forgotten = _prune(self.counts + other.counts, self.limit)
        return DocumentFrequencies(counts, n_documents, n_missed + forgotten, self.limit)

    def rank(self, k: int) -> list[tuple[str, int]]:
        """Return the `k` terms of highest count, ties in alphabetical order."""
        return sorted(self.counts.items(), key=lambda item: (-item[1], item[0]))[:k]

    def candidates(self, k: int) -> set[str]:
        """Return the terms that may be among the `k` of highest true frequency.

        None is missing from them if `n_missed` is below the k-th highest count.
        """
        ranked = self.rank(k)
        least = ranked[-1][1] - self.n_missed if ranked else 0
        return {term for term, count in self.counts.items() if count >= least}


def count_documents(
    documents: Iterable[str],
    analyse: Callable[[str], list[str]],
    limit: int,
    only: Collection[str] | None = None,
) -> DocumentFrequencies:
    """Count the documents that contain each term, for at most `limit` terms at a time."""
    counts: Counter[str] = Counter()
    n_documents = n_missed = 0
    for document in documents:
        terms = set(analyse(document))
        counts.update(terms if only is None else terms.intersection(only))
        n_documents += 1
        counts, forgotten = _prune(counts, limit)
        n_missed += forgotten
    return DocumentFrequencies(counts, n_documents, n_missed, limit)


def _prune(counts: Counter[str], limit: int) -> tuple[Counter[str], int]:
    """Forget the rarer half of more than `limit` terms; also return the highest count forgotten."""
    if len(counts) <= limit:
        return counts, 0
    threshold = _nth_highest(counts, limit // 2)
    return Counter({term: count for term, count in counts.items() if count > threshold}), threshold


def _nth_highest(counts: Counter[str], n: int) -> int:
    """Find the lowest count that at most `n` terms exceed."""
    values = np.fromiter(counts.values(), dtype=np.int64, count=len(counts))
    return int(np.partition(values, len(values) - n - 1)[len(values) - n - 1])
