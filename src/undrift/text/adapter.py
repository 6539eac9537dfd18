"""TextAdapter: raw text in, predictions out, vocabulary included."""

from __future__ import annotations

from collections.abc import Iterator
from os import PathLike
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from .._inputs import CallbackSupportMixin, savable, share_callbacks, with_callbacks
from ..classifier import MSDAClassifier, MSDARegressor, accept_old_names, ask_teacher
from ..persist import ModelFileError, load_model
from .distilled import DistilledText, TextModel, distill_text
from .tokens import check_documents, interleave
from .vectorizer import TermVectorizer

TEXT_NOISE = 0.7
N_TERMS, MANY_TERMS = 20_000, 40_000  # more than the pivots that the first layer reconstructs (section 4)
TFIDF_LENGTH = 5.0  # how long tf-idf rows should be for the squashing to bend them as it should


def text_classifier(**changes: Any) -> MSDAClassifier:
    """MSDAClassifier with the settings that adapt text best, one set for all corpora.

    Noise 0.7, five layers that all count alike, the first of which reconstructs the 5,000 most frequent terms
    (section 4), classes aligned, least squares, self-training, and a fallback to the source alone where
    label-free diagnostics say that adaptation will not help. `docs/beyond.md` has
    what each of these buys.

    Parameters
    ----------
    **changes
        Parameters of :class:`MSDAClassifier` to set otherwise; from lists of values one is chosen by the
        one-standard-error rule.

    Returns
    -------
    MSDAClassifier
        Not fitted.

    Examples
    --------
    >>> from undrift import TextAdapter, text_classifier
    >>> adapter = TextAdapter(classifier=text_classifier(n_layers=3, border="balanced"))
    >>> adapter.classifier.noise
    0.7
    """
    settings: dict[str, Any] = {"n_layers": 5, "noise": TEXT_NOISE, "C": 1.0, "selection": "one-se"}
    settings |= {"balance_layers": True, "self_training": True, "fallback": True, "n_pivots": "auto"}
    return MSDAClassifier(**(settings | changes))


def text_regressor(**changes: Any) -> MSDARegressor:
    """MSDARegressor with the settings that adapt ratings of text best: those of :func:`text_classifier`.

    Parameters
    ----------
    **changes
        Parameters of :class:`MSDARegressor` to set otherwise.

    Returns
    -------
    MSDARegressor
        Not fitted.

    Examples
    --------
    >>> from undrift import TextAdapter, text_regressor
    >>> adapter = TextAdapter(classifier=text_regressor(target_mean=3.9))
    >>> adapter.classifier.target_mean
    3.9
    """
    settings: dict[str, Any] = {"n_layers": 5, "noise": TEXT_NOISE, "balance_layers": True}
    return MSDARegressor(**(settings | {"n_pivots": "auto", "dtype": "float32"} | changes))


@savable
class TextAdapter(CallbackSupportMixin, TextModel):
    """Classifier of raw documents in a domain without labels.

    Counts terms over one vocabulary shared by all domains and hands the rows to
    :class:`MSDAClassifier`.

    Parameters
    ----------
    vectorizer : TermVectorizer, CountVectorizer or TfidfVectorizer, optional
        How documents become rows; by default the 20,000 most frequent uni- and bigrams, tf-idf of
        length 5. Those of scikit-learn can be saved if their parameters are plain values.
    classifier : MSDAClassifier or MSDARegressor, optional
        What is fitted on the rows; by default :func:`text_classifier`. :func:`text_regressor` is for ratings.
    tokens : {"auto", "words", "characters"}, default="auto"
        What the terms of the default vectoriser are made of; see :class:`TermVectorizer`.

    Attributes
    ----------
    vectorizer_ : as `vectorizer`
        Fitted on the documents of all domains.
    terms_ : list of str
        One for each column of the rows.
    classifier_ : MSDAClassifier
        Fitted on their rows.
    classes_ : ndarray
        The labels; nothing for a regressor. After `undrift adapt`, the tags, or the scale of ratings.
    domain_names_ : list of str
        Names of the target domains -1, -2, ...; there only if `undrift adapt` fitted the model.

    Examples
    --------
    >>> from undrift import TextAdapter
    >>> books = ["a gripping page turner", "gripping and moving", "dull and boring", "boring prose"]
    >>> kitchen = ["gripping handle, sturdy", "sturdy pan", "boring and flimsy", "flimsy lid"]
    >>> adapter = TextAdapter().fit(books, ["good", "good", "bad", "bad"], kitchen)
    >>> adapter.predict(["a sturdy pot"])
    array(['good'], dtype='<U4')
    """

    __metadata_request__fit = {"sample_domain": True, "extra": True, "blocks": True}
    __metadata_request__predict = {"sample_domain": True, "extra": True, "blocks": True}
    __metadata_request__score = {"sample_domain": True, "extra": True}

    def __init__(self, vectorizer=None, classifier=None, tokens="auto"):
        self.vectorizer = vectorizer
        self.classifier = classifier
        self.tokens = tokens

    @accept_old_names
    def fit(
        self, documents, y, target=None, *, y_target=None, sample_domain=None, extra=None, extra_target=None
    ):
        """Learn from labelled source documents and unlabelled documents of any domain.

        Parameters
        ----------
        documents : sequence of str
            Source documents; or, with `sample_domain`, the documents of all domains.
        y : array-like
            Labels; None or NaN for documents that have none.
        target : sequence of str, or list of such sequences, optional
            Unlabelled documents of the target domain, or of several.
        y_target : array-like, or list of array-likes, optional
            Labels of some target documents, None or NaN for the others, as for :class:`MSDAClassifier`.
        sample_domain : int array, optional
            Domain of each document: sources >= 0, targets < 0.
        extra, extra_target : optional
            Further columns, such as embeddings of the documents, as for :class:`MSDAClassifier`.
        """
        documents, (targets, several) = _read_once(documents), _target_documents(target)
        self.fit_vocabulary(interleave([documents, *targets]))
        transform = self.vectorizer_.transform
        X_target = [transform(domain) for domain in targets] or None
        if not several and extra_target is not None:
            extra_target = [extra_target]
        if not several and y_target is not None:
            y_target = [y_target]
        features = {"extra": extra, "extra_target": extra_target, "y_target": y_target}
        return self.fit_rows(transform(documents), y, X_target, sample_domain=sample_domain, **features)

    def fit_vocabulary(self, documents):
        """First half of `fit`: choose the terms, from the documents of all domains."""
        default = TermVectorizer(N_TERMS, length=TFIDF_LENGTH, tokens=self.tokens)
        self.vectorizer_ = default if self.vectorizer is None else clone(self.vectorizer)
        self.vectorizer_.fit(check_documents(documents))
        return self

    @with_callbacks
    @accept_old_names
    def fit_rows(
        self,
        X,
        y,
        X_target=None,
        *,
        y_target=None,
        sample_domain=None,
        extra=None,
        extra_target=None,
        keeps_state=True,
    ):
        """Second half of `fit`, for those who keep the rows that `vectorizer_` made of the documents.

        Without `keeps_state` the classifier can be neither updated nor asked, and takes less memory.
        """
        classifier = text_classifier() if self.classifier is None else clone(self.classifier)
        features = {"extra": extra, "extra_target": extra_target}
        features |= {} if y_target is None else {"y_target": y_target}
        if not keeps_state and isinstance(classifier, MSDAClassifier):
            features["keeps_state"] = False
        with share_callbacks(self, classifier):
            self.classifier_ = classifier.fit(X, y, X_target, sample_domain=sample_domain, **features)
        self.classes_: np.ndarray = getattr(self.classifier_, "classes_", np.empty(0))
        return self

    def update(self, documents, y, *, sample_domain=None, extra=None):
        """Learn labels of a few target documents at once, as :meth:`MSDAClassifier.update`."""
        self._require_classes("updated")
        X = self._rows(_read_once(documents))
        self.classifier_.update(X, y, sample_domain=sample_domain, extra=extra)
        return self

    def update_target(self, documents, *, sample_domain=None, extra=None):
        """Take a new batch of unlabelled documents, as :meth:`MSDAClassifier.update_target`."""
        self._require_classes("updated")
        X = self._rows(_read_once(documents))
        self.classifier_.update_target(X, sample_domain=sample_domain, extra=extra)
        return self

    def ask(self, documents, n, purpose="predictions", **options):
        """Return the positions of the n documents most worth labelling, as :meth:`MSDAClassifier.ask`."""
        self._require_classes("updated")
        return self.classifier_.ask(self._rows(_read_once(documents)), n, purpose, **options)

    def _require_classes(self, what: str) -> None:
        check_is_fitted(self)
        if isinstance(self.classifier_, MSDARegressor) or self.classifier_._has_tags:
            raise ValueError(f"only models of classes can be {what}, and this one predicts ratings or tags")

    @accept_old_names
    def decision_function(self, documents, *, sample_domain=None, recenter=False, extra=None):
        """Scores: of shape (n,) for two classes (positive for the second), else (n, n_classes).

        Parameters
        ----------
        documents : iterable of str
            Documents, of the target unless `sample_domain` says otherwise.
        sample_domain, recenter, extra
            As for :class:`MSDAClassifier`.
        """
        X, options = self._rows(documents), {"recenter": recenter, "extra": extra}
        return self.classifier_.decision_function(X, sample_domain=sample_domain, **options)

    @accept_old_names
    def predict(self, documents, *, sample_domain=None, recenter=False, extra=None):
        """Predict labels; the parameters are those of `decision_function`."""
        X, options = self._rows(documents), {"recenter": recenter, "extra": extra}
        return self.classifier_.predict(X, sample_domain=sample_domain, **options)

    @accept_old_names
    def predict_proba(self, documents, *, sample_domain=None, recenter=False, extra=None):
        """Calibrated probabilities of the classes; the parameters are those of `decision_function`."""
        X, options = self._rows(documents), {"recenter": recenter, "extra": extra}
        return self.classifier_.predict_proba(X, sample_domain=sample_domain, **options)

    def score(self, documents, y, sample_weight=None, *, sample_domain=None, extra=None):
        """Accuracy of `predict`, or R^2 of a regressor; the parameters are those of `decision_function`."""
        X, options = self._rows(documents), {"sample_domain": sample_domain, "extra": extra}
        return self.classifier_.score(X, y, sample_weight, **options)

    def distill(self, documents=None, labels=None, *, sample_domain=None, random_state=0) -> DistilledText:
        """Return a small linear model on terms that predicts what this one does, for new documents.

        It is learnt from the scores that this model gives the documents, its ridge chosen on held-out ones.

        Parameters
        ----------
        documents : iterable of str
            Documents of the target, best those that were given to `fit`: some thousand, 10 at least.
        labels : sequence, optional
            Their labels where known, else None: only to measure the error on held-out documents.
        sample_domain : int or int array, optional
            Where there are several targets, that of each document: -1, -2, ...
        random_state : int, default=0
            Seed of the choice of held-out documents.
        """
        self._require_classes("distilled")
        if documents is None:
            raise ValueError("distill needs documents of the target: a model keeps none of those it has seen")
        documents, labels = list(check_documents(documents)), None if labels is None else list(labels)
        if labels is not None and len(labels) != len(documents):
            raise ValueError(f"labels must be as many as the documents, {len(documents)}; got {len(labels)}")
        taught = ask_teacher(self.classifier_, self._rows(documents), sample_domain)
        model = distill_text(documents, taught, labels, self.vectorizer_, random_state)
        has_terms = hasattr(self.vectorizer_, "get_feature_names_out")
        counts = dict(
            zip(self.terms_ if has_terms else [], self.classifier_.labelled_counts_.tolist(), strict=False)
        )
        known = [counts.get(term, -1) for term in model.terms_]
        model.classifier_.labelled_counts_ = np.array(known, dtype=np.int32)
        for name in ("target_shares_", "target_shares_interval_", "expected_error_"):
            setattr(model.classifier_, name, getattr(self.classifier_, name))
        if hasattr(self, "domain_names_"):
            model.domain_names_ = self.domain_names_
        return model


def _read_once(documents: Any) -> Any:
    """Return documents that can be read again: those of a generator as a list."""
    return list(documents) if isinstance(documents, Iterator) else documents


def _target_documents(target: Any) -> tuple[list[Any], bool]:
    """Return a list of domains, each a sequence of documents; and whether the user gave such a list."""
    if target is None:
        return [], False
    if isinstance(target, str):
        raise ValueError("target must be a sequence of documents, or a list of such; got one str")
    target = list(target)
    if not target or any(isinstance(document, str) for document in target):
        return [target], False
    return [_read_once(domain) for domain in target], True


def load_adapter(path: str | PathLike[str]) -> TextAdapter:
    """Load a saved TextAdapter, and nothing else."""
    model = load_text_model(path)
    if isinstance(model, DistilledText):
        raise ModelFileError(
            f"{path} holds a distilled model, which can predict and explain and no more: give the model "
            "that it was distilled from"
        )
    return model


def load_text_model(path: str | PathLike[str]) -> TextAdapter | DistilledText:
    """Load a saved TextAdapter or DistilledText, and nothing else."""
    model = load_model(path)
    if not isinstance(model, TextAdapter | DistilledText):
        raise ModelFileError(
            f"{path} holds a {type(model).__name__}, not a text model saved by `undrift adapt`"
        )
    return model
