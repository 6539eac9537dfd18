"""TermVectorizer: documents to rows, uni- and bigrams over one shared vocabulary."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from ..errors import warn
from ..inputs import all_or_nothing, check_choice, check_count, check_positive
from .tokens import (
    SAMPLE_DOCUMENTS,
    TOKENS,
    build_analyser,
    check_documents,
    choose_tokens,
    count_words,
    interleave,
)

N_TERMS = 20_000  # more than the pivots that the first layer reconstructs (section 4)
TFIDF_LENGTH = 5.0  # of rows: how far the squashing functions of the layers bend them


class TermVectorizer(TransformerMixin, BaseEstimator):
    """Turn documents into tf-idf rows of the terms that occur in most documents.

    An entry is ``(1 + log count) * idf``, scaled so that every row has the same length, with
    ``idf = 1 + log((1 + n_documents) / (1 + document frequency))``.

    The vocabulary is the `n_terms` terms of highest document frequency over everything given to `fit`, ties
    in alphabetical order; fit it on the documents of all domains to share it among them. Documents may be any
    iterable of strings, also a generator: they are read one at a time.

    Parameters
    ----------
    n_terms : int, default=20_000
        Size of the vocabulary, at most.
    tokens : {"auto", "words", "characters"}, default="auto"
        The units of terms. "words" gives words and pairs of words. They are cut by Unicode's rules, with
        every character of a script without spaces as a word. "characters" gives n-grams of 2 to 4 characters
        inside words. "auto" takes characters where most letters are of scripts without spaces or words
        hardly repeat.
    length : float, default=5.0
        Euclidean length of the rows. It sets how far the squashing functions of the layers bend.
    dtype : {"float32", "float64"}, default="float32"
        Type of the rows.

    Attributes
    ----------
    terms_ : list of str
        The vocabulary, by decreasing document frequency; the words of a longer term are joined by a space.
    document_frequency_ : ndarray of int64, shape (n_terms,)
        Number of documents that contain each term.
    idf_ : ndarray of float64, shape (n_terms,)
        Inverse document frequency of each term.
    tokens_ : {"words", "characters"}
        The units of the terms.
    tokens_reason_ : str
        The reason for that choice.
    n_documents_ : int
        Number of documents in `fit`.
    n_missed_ : int
        The most that a document frequency may be short by. It is 0 up to two million distinct terms. With
        more, the rarer half is forgotten, and its highest count is added here.

    Examples
    --------
    >>> vectorizer = TermVectorizer().fit(["It did n't break", "It didn't"])
    >>> vectorizer.terms_
    ["didn't", 'it', "it didn't", 'break', "didn't break"]
    >>> vectorizer.transform(["didn’t! didn’t!"]).toarray()
    array([[5., 0., 0., 0., 0.]], dtype=float32)
    """

    max_counted = 2_000_000  # distinct terms that are held while counting, some 100 bytes each

    def __init__(
        self,
        n_terms: int = N_TERMS,
        *,
        tokens: str = "auto",
        length: float = TFIDF_LENGTH,
        dtype: str = "float32",
    ):
        self.n_terms = n_terms
        self.tokens = tokens
        self.length = length
        self.dtype = dtype

    @all_or_nothing
    def fit(self, documents: Iterable[str], y: object = None) -> TermVectorizer:
        """Choose the vocabulary, in one pass over the documents.

        Parameters
        ----------
        documents : iterable of str
            Documents of all domains; None and NaN are empty ones.
        y : object
            Ignored.

        Returns
        -------
        TermVectorizer
            Itself.
        """
        self._check_parameters()
        rest = check_documents(documents)
        head = list(islice(rest, SAMPLE_DOCUMENTS))
        if isinstance(documents, list | tuple):
            self.choose_tokens(documents[:: 1 + len(documents) // SAMPLE_DOCUMENTS])
        else:
            self.choose_tokens(head)
        return self.fit_frequencies(self.frequencies(chain(head, rest)))

    def choose_tokens(self, documents: Iterable[str]) -> TermVectorizer:
        """Choose the units of terms from the first 1,000 documents given; `fit` does so by itself."""
        self._check_parameters()
        self.tokens_, self.tokens_reason_ = (
            choose_tokens(check_documents(documents)) if self.tokens == "auto" else (self.tokens, "given")
        )
        return self

    def frequencies(self, documents: Iterable[str]) -> DocumentFrequencies:
        """Count the documents of each term; counts add over documents."""
        return count_documents(check_documents(documents), self.build_analyzer(), self.max_counted)

    def fit_frequencies(self, frequencies: DocumentFrequencies) -> TermVectorizer:
        """Choose the vocabulary, given the :meth:`frequencies` of all documents."""
        n_documents, n_missed = frequencies.n_documents, frequencies.n_missed
        ranked = rank_terms(frequencies.counts, self.n_terms)
        if not ranked:
            raise ValueError(f"no words in the {n_documents} documents: a vocabulary needs at least one")
        held_by = [frequencies.counts[term] for term in ranked]
        if n_missed >= held_by[-1]:
            warn(
                f"the vocabulary may lack terms of up to {n_missed} documents: there are more than "
                f"{frequencies.limit:,} distinct terms; lower n_terms"
            )
        self.terms_ = ranked
        self.document_frequency_ = np.array(held_by, dtype=np.int64)
        self.idf_ = 1 + np.log((1 + n_documents) / (1 + self.document_frequency_))
        self.n_documents_ = n_documents
        self.n_missed_ = n_missed
        return self

    def fit_domains(
        self, domains: Sequence[Iterable[str]]
    ) -> tuple[list[sparse.csr_array], list[Counter[str]]]:
        """Choose the vocabulary of several domains; return the rows and the words of each.

        Documents are cut into terms once, and the counts of all terms are held meanwhile. With more than two
        million distinct terms, documents are cut again instead. Words, or n-grams of characters, come with
        the number of times that they occur.
        """
        self.choose_tokens(interleave(domains))
        numbers = NumberedTerms(self.max_counted)
        try:
            counts = [self._count_terms(documents, numbers) for documents in domains]
        except TooManyTerms:
            self.fit_frequencies(self.frequencies(interleave(domains)))
            words = [count_words(documents, self.tokens_) for documents in domains]
            return [self.transform(documents) for documents in domains], words
        for X in counts:
            X.resize((X.shape[0], len(numbers)))
        n_documents = sum(X.shape[0] for X in counts)
        held_by = np.sum([np.bincount(X.indices, minlength=len(numbers)) for X in counts], axis=0)
        frequencies = Counter(dict(zip(numbers, held_by.tolist(), strict=True)))
        self.fit_frequencies(DocumentFrequencies(frequencies, n_documents, 0, self.max_counted))
        chosen = [numbers[term] for term in self.terms_]
        names = np.array(list(numbers), dtype=object)
        is_word = [self.tokens_ == "characters" or " " not in term for term in names]
        words = []
        for total in (X.sum(axis=0) * is_word for X in counts):
            found = np.flatnonzero(total)
            words.append(Counter(dict(zip(names[found], total[found].astype(int).tolist(), strict=True))))
        return [self._weigh(X[:, chosen]) for X in counts], words

    def fit_transform(self, documents: Iterable[str], y: object = None) -> sparse.csr_array:
        """Choose the vocabulary and return the rows; the parameters are those of `fit`.

        A generator is held in memory, to be read twice.

        Returns
        -------
        csr_array of shape (n_documents, n_terms)
        """
        if isinstance(documents, Iterator):
            documents = list(documents)
        return self.fit(documents).transform(documents)

    def transform(self, documents: Iterable[str]) -> sparse.csr_array:
        """Return the rows of documents, zero where no term occurs.

        Parameters
        ----------
        documents : iterable of str
            Documents of any domain; None and NaN are empty ones.

        Returns
        -------
        csr_array of shape (n_documents, n_terms)
        """
        check_is_fitted(self, "terms_")
        self._check_parameters()
        known = KnownTerms(zip(self.terms_, range(len(self.terms_)), strict=True))
        return self._weigh(self._count_terms(documents, known)[:, : len(known)])

    def _count_terms(self, documents: Iterable[str], numbers: NumberedTerms | KnownTerms) -> sparse.csr_array:
        """Count the terms of documents, in the columns of their numbers."""
        analyse = self.build_analyzer()
        columns, counts, ends = array("i"), array("i"), array("q", [0])
        for document in check_documents(documents):
            found = Counter(analyse(document))
            columns.extend(map(numbers.__getitem__, found))
            counts.extend(found.values())
            ends.append(len(columns))
        fits = "int32" if len(columns) < 2**31 else "int64"
        parts = np.array(counts, dtype=self.dtype), np.array(columns), np.array(ends, dtype=fits)
        return sparse.csr_array(parts, shape=(len(ends) - 1, len(numbers) + 1))

    def _weigh(self, counts: sparse.csr_array) -> sparse.csr_array:
        """Return the rows of counted terms of the vocabulary."""
        weights = TfidfTransformer(sublinear_tf=True)
        weights.idf_ = self.idf_
        counts.sort_indices()
        if counts.shape[0]:  # scikit-learn refuses none
            counts = weights.transform(counts, copy=False)
        return sparse.csr_array(counts) * self.length

    def build_analyzer(self) -> Callable[[str], list[str]]:
        """Return the function that lists the terms of a document."""
        check_is_fitted(self, "tokens_")
        return build_analyser(self.tokens_)

    def get_feature_names_out(self, input_features: object = None) -> np.ndarray:
        """Return the terms as scikit-learn wants them; `input_features` is ignored.

        Returns
        -------
        ndarray of str, of shape (n_terms,)
        """
        check_is_fitted(self, "terms_")
        return np.asarray(self.terms_, dtype=object)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags

    def _check_parameters(self) -> None:
        check_count(self.n_terms, "n_terms")
        check_choice(self.tokens, "tokens", TOKENS)
        check_choice(self.dtype, "dtype", ("float32", "float64"))
        check_positive(self.length, "length")


class TooManyTerms(Exception):
    """More distinct terms than can be held."""


class NumberedTerms(dict[str, int]):
    """Numbers of terms in the order in which they are first asked for, at most `limit`."""

    def __init__(self, limit: int) -> None:
        super().__init__()
        self.limit = limit

    def __missing__(self, term: str) -> int:
        number = len(self)
        if number >= self.limit:
            raise TooManyTerms
        self[term] = number
        return number


class KnownTerms(dict[str, int]):
    """Numbers of the terms of a vocabulary; all others have the next one."""

    def __missing__(self, term: str) -> int:
        return len(self)


@dataclass(frozen=True)
class DocumentFrequencies:
    """Numbers of documents that contain each term; those of disjoint documents add.

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


def rank_terms(counts: Mapping[str, int], k: int) -> list[str]:
    """Return the `k` terms of highest count, ties in alphabetical order."""
    values = np.fromiter(counts.values(), dtype=np.int64, count=len(counts))
    least = np.partition(values, -k)[-k] if k < len(values) else 0  # most terms are rare, and need no order
    ranked = sorted(term for term, n in counts.items() if n >= least)
    ranked.sort(key=counts.__getitem__, reverse=True)
    return ranked[:k]


def count_documents(
    documents: Iterable[str],
    analyse: Callable[[str], list[str]],
    limit: int = TermVectorizer.max_counted,
) -> DocumentFrequencies:
    """Count the documents that contain each term, for at most `limit` terms at a time."""
    counts: Counter[str] = Counter()
    n_documents = n_missed = 0
    for document in documents:
        counts.update(set(analyse(document)))
        n_documents += 1
        counts, forgotten = _prune(counts, limit)
        n_missed += forgotten
    return DocumentFrequencies(counts, n_documents, n_missed, limit)


def _prune(counts: Counter[str], limit: int) -> tuple[Counter[str], int]:
    """Forget the rarer half of more than `limit` terms; also return the highest count forgotten."""
    if len(counts) <= limit:
        return counts, 0
    values = np.fromiter(counts.values(), dtype=np.int64, count=len(counts))
    rank = len(values) - limit // 2 - 1
    threshold = int(np.partition(values, rank)[rank])
    return Counter({term: count for term, count in counts.items() if count > threshold}), threshold
