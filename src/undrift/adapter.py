"""TextAdapter: raw text in, predictions out, vocabulary included."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, islice
from os import PathLike
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from .classifier import MSDAClassifier
from .persist import ModelFileError, load_model
from .text import TermVectorizer

TFIDF_LENGTH = 5.0  # how long tf-idf rows should be for the squashing to bend them as it should
BLOCK_DOCUMENTS = 4096  # documents that are rows at the same time in prediction


class TextAdapter(ClassifierMixin, BaseEstimator):
    """Classifier of raw documents in a domain without labels.

    Counts terms over one vocabulary shared by all domains and hands the rows to
    :class:`MSDAClassifier`.

    Parameters
    ----------
    vectorizer : TermVectorizer, optional
        How documents become rows; by default the 5,000 most frequent uni- and bigrams, tf-idf of
        length 5.
    classifier : MSDAClassifier, optional
        What is fitted on the rows.

    Attributes
    ----------
    vectorizer_ : TermVectorizer
        Fitted on the documents of all domains.
    classifier_ : MSDAClassifier
        Fitted on their rows.
    classes_ : ndarray
        The labels.

    Examples
    --------
    >>> from undrift import TextAdapter
    >>> books = ["a gripping page turner", "gripping and moving", "dull and boring", "boring prose"]
    >>> kitchen = ["gripping handle, sturdy", "sturdy pan", "boring and flimsy", "flimsy lid"]
    >>> adapter = TextAdapter().fit(books, ["good", "good", "bad", "bad"], kitchen)
    >>> adapter.predict(["a sturdy pot"])
    array(['good'], dtype='<U4')
    """

    __metadata_request__fit = {"sample_domain": True}

    def __init__(self, vectorizer=None, classifier=None):
        self.vectorizer = vectorizer
        self.classifier = classifier

    def fit(self, documents, y, target=None, *, sample_domain=None):
        """Learn from labelled source documents and unlabelled documents of any domain.

        Parameters
        ----------
        documents : sequence of str
            Source documents; or, with `sample_domain`, the documents of all domains.
        y : array-like
            Labels; None or NaN for documents that have none.
        target : sequence of str, or list of such sequences, optional
            Unlabelled documents of the target domain, or of several.
        sample_domain : int array, optional
            Domain of each document: sources >= 0, targets < 0.
        """
        targets = _target_documents(target)
        vectorizer = (
            TermVectorizer(length=TFIDF_LENGTH) if self.vectorizer is None else clone(self.vectorizer)
        )
        self.vectorizer_ = vectorizer.fit(chain(documents, *targets))
        classifier = MSDAClassifier() if self.classifier is None else clone(self.classifier)
        for callback in getattr(self.classifier, "_skl_callbacks", []):
            classifier.set_callbacks(callback)
        X_target = [vectorizer.transform(own) for own in targets] or None
        self.classifier_ = classifier.fit(
            vectorizer.transform(documents), y, X_target, sample_domain=sample_domain
        )
        self.classes_ = self.classifier_.classes_
        return self

    def _blocks(self, documents: Any) -> Iterator[Any]:
        """Yield the rows of `documents`, a block at a time."""
        check_is_fitted(self)
        documents = iter(documents)
        while block := list(islice(documents, BLOCK_DOCUMENTS)):
            yield self.vectorizer_.transform(block)

    def decision_function(self, documents):
        """Scores: of shape (n,) for two classes (positive for the second), else (n, n_classes)."""
        return np.concatenate([self.classifier_.decision_function(X) for X in self._blocks(documents)])

    def predict(self, documents):
        """Predict labels of documents of the target domain."""
        return np.concatenate([self.classifier_.predict(X) for X in self._blocks(documents)])

    @available_if(lambda self: getattr(self.classifier, "probability", False))
    def predict_proba(self, documents):
        """Calibrated probabilities; needs a classifier with ``probability=True``."""
        return np.concatenate([self.classifier_.predict_proba(X) for X in self._blocks(documents)])

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags


def _target_documents(target: Any) -> list[Sequence[str]]:
    """Return a list of domains, each a sequence of documents."""
    if target is None:
        return []
    target = list(target)
    return (
        [target] if all(isinstance(document, str) for document in target) else [list(own) for own in target]
    )


def load_adapter(path: str | PathLike[str]) -> TextAdapter:
    """Load a saved TextAdapter, and nothing else."""
    model = load_model(path)
    if not isinstance(model, TextAdapter):
        raise ModelFileError(
            f"{path} holds a {type(model).__name__}, not a text model saved by `undrift adapt`"
        )
    return model
