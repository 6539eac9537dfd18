"""TextAdapter: raw text in, predictions out, vocabulary included."""

from __future__ import annotations

import sys
from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Literal, Self, TypedDict, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from ..core import Rows
from ..inputs import Column, all_or_nothing, settle_labels
from ..method import TARGET, Given, MSDAClassifier, Name, Purpose, ReadingFacts, TargetFacts
from .bridge import Crossing, cross_languages
from .distill import ask_teacher
from .distilled import DistilledText, distill_text
from .model import TextModel
from .terms import N_TERMS, TermVectorizer
from .tokens import check_documents

Documents = Iterable[str]
Targets = Documents | Mapping[str, Documents]
Labels = Column | Mapping[str, Column]  # of rows of the target, or of several by name
Teaching = Labels | Mapping[str, Given] | Mapping[str, dict[str, Given]]  # or by story


class FitOptions(TypedDict, total=False):
    """Options of :meth:`MSDAClassifier.fit`."""

    y_target: Labels | None
    teacher: Teaching | None
    teacher_confidence: Labels | None
    sample_domain: ArrayLike | None
    sample_weight: ArrayLike | None
    keeps_state: bool


class TextAdapter(TextModel):
    """Classifier of raw documents in a domain without labels.

    Counts terms over one vocabulary shared by all domains (:class:`TermVectorizer`) and hands the rows to
    :class:`MSDAClassifier`.

    Parameters
    ----------
    n_terms : int, default=20_000
        Size of the vocabulary, at most.
    tokens : {"auto", "words", "characters"}, default="auto"
        The units of terms; see :class:`TermVectorizer`.
    classifier : MSDAClassifier, optional
        Settings of the method, if not its defaults.
    verbose : bool, optional
        Whether to print a line to standard error after each layer; by default in a notebook.
    bridge : bool, default=False
        Whether source and target are in different languages. Sentence vectors then carry the labels over, and
        the classifier learns from the target's text alone. `fit` needs the extra ``languages``, and
        `predict` does not.

    Attributes
    ----------
    vectorizer_ : TermVectorizer
        Fitted on the documents of all domains.
    terms_ : list of str
        One for each column of the rows.
    classifier_ : MSDAClassifier
        Fitted on their rows.
    classes_ : ndarray
        The labels.
    targets_ : dict
        For every target, by name: `shares`, `shares_interval`, `expected_error`, `by_class`, `confusion`,
        `warnings` and their `codes`.
    readings_ : dict
        For every target, by name: what its readings say. Both dicts are those of :class:`MSDAClassifier`.
    target_shares_, target_shares_interval_, expected_error_ : list
        Of `targets_`, in the order of the targets.

    Examples
    --------
    >>> from undrift import TextAdapter
    >>> books = ["a gripping page turner", "gripping and moving", "dull and boring", "boring prose"]
    >>> kitchen = ["gripping handle, sturdy", "sturdy pan", "boring and flimsy", "flimsy lid"]
    >>> adapter = TextAdapter().fit(books, ["good", "good", "bad", "bad"], kitchen)
    >>> adapter.predict(["a sturdy pot"])
    array(['good'], dtype='<U4')
    """

    def __init__(
        self,
        n_terms: int = N_TERMS,
        *,
        tokens: str = "auto",
        classifier: MSDAClassifier | None = None,
        verbose: bool | None = None,
        bridge: bool = False,
    ):
        self.n_terms = n_terms
        self.tokens = tokens
        self.classifier = classifier
        self.verbose = verbose
        self.bridge = bridge

    @all_or_nothing
    def fit(
        self,
        documents: Documents | None,
        y: Column | None,
        target: Targets | None = None,
        *,
        y_target: Labels | None = None,
        teacher: Labels | None = None,
        teacher_confidence: Labels | None = None,
        sample_weight: ArrayLike | None = None,
        keeps_state: bool = True,
    ) -> Self:
        """Learn from labelled source documents and unlabelled documents of one or several targets.

        Parameters
        ----------
        documents : iterable of str
            Source documents. With a teacher, they and `y` may be None.
        y : array-like
            Their labels; None or NaN for documents that have none.
        target : iterable of str, or dict of such, optional
            Unlabelled documents of the target; of several targets by name.
        y_target : array-like, or dict of such, optional
            Labels of some target documents, None or NaN for the others; by name if `target` is.
        teacher, teacher_confidence, sample_weight, keeps_state : optional
            As for :meth:`MSDAClassifier.fit`; rows are documents.

        Returns
        -------
        TextAdapter
            Itself.
        """
        options: FitOptions = {
            "y_target": y_target,
            "teacher": teacher,
            "teacher_confidence": teacher_confidence,
            "sample_weight": sample_weight,
            "keeps_state": keeps_state,
        }
        vectorizer, targets = self.new_vectorizer(), _read_targets(target)
        if self.bridge:
            given = {name for name, value in options.items() if value is not None}
            refused = sorted(given - {"y_target", "keeps_state"})
            if refused:
                raise ValueError(f"bridge=True makes a teacher itself: drop {', '.join(refused)}")
            if documents is None or y is None or not targets:
                raise ValueError("bridge=True needs labelled documents of one language, a target of another")
            texts, labels = list(check_documents(documents)), np.asarray(settle_labels(y))
            if len(texts) != len(labels):
                raise ValueError(f"y must have a label for each of {len(texts)} documents; got {len(labels)}")
            crossing = cross_languages(texts, labels, targets, vectorizer)
            return self.fit_crossing(crossing, is_named=isinstance(target, Mapping), **options)
        source = [] if documents is None else documents
        source = list(source) if isinstance(source, Iterator) else source  # to be read twice
        (X, *others), _ = vectorizer.fit_domains([source, *targets.values()])
        rows = dict(zip(targets, others, strict=True))
        X_target = rows if isinstance(target, Mapping) else rows.get(TARGET)
        return self.fit_rows(vectorizer, None if documents is None else X, y, X_target, **options)

    def fit_crossing(self, crossing: Crossing, *, is_named: bool, **options: Unpack[FitOptions]) -> Self:
        """Fit the classifier to rows of the targets, which a source in another language labelled."""
        X_target = crossing.rows if is_named else crossing.rows[TARGET]
        options["teacher"] = crossing.teacher if is_named else crossing.teacher[TARGET]
        vectorizer, shares = crossing.vectorizer, crossing.shares
        self.fit_rows(vectorizer, None, None, X_target, source_shares=shares, **options)
        self.remember(bridge=crossing.facts)
        return self

    def new_vectorizer(self) -> TermVectorizer:
        """Return a vectoriser with this adapter's settings, not fitted."""
        return TermVectorizer(self.n_terms, tokens=self.tokens)

    def fit_rows(
        self,
        vectorizer: TermVectorizer,
        X: Rows | None,
        y: Column | None,
        X_target: Rows | Mapping[str, Rows] | None = None,
        *,
        source_shares: Mapping[Hashable, float] | None = None,
        **options: Unpack[FitOptions],
    ) -> Self:
        """Fit the classifier to rows of a fitted vectoriser; parameters as of :meth:`MSDAClassifier.fit`.

        `source_shares` are those of a source whose rows are not given.
        """
        self.vectorizer_ = vectorizer
        classifier = MSDAClassifier() if self.classifier is None else clone(self.classifier)
        if source_shares is not None and isinstance(classifier.target_shares, str):
            classifier.set_params(target_shares=source_shares)
        is_verbose = "ipykernel" in sys.modules if self.verbose is None else self.verbose
        if is_verbose:
            classifier.set_params(verbose=True)
        self.classifier_ = classifier.fit(X, None if y is None else settle_labels(y), X_target, **options)
        self.classes_, self.facts_ = self.classifier_.classes_, {}
        return self

    @property
    def targets_(self) -> dict[Name, TargetFacts]:
        """Results for every target by its name, as of :class:`MSDAClassifier`."""
        return self.classifier_.targets_

    @property
    def readings_(self) -> dict[Name, list[ReadingFacts]]:
        """Readings of every target by its name, as of :class:`MSDAClassifier`."""
        return self.classifier_.readings_

    @property
    def terms_(self) -> list[str]:  # type: ignore[override]
        """The term of each column of the rows."""
        check_is_fitted(self)
        return self.vectorizer_.get_feature_names_out().tolist()

    def update(self, documents: Documents, y: Column, *, target: str | None = None) -> Self:
        """Learn labels `y` of a few target documents at once. As for :meth:`MSDAClassifier.update`.

        Returns
        -------
        TextAdapter
            Itself.
        """
        self.classifier_.update(self._count_terms(documents), settle_labels(y), target=target)
        return self

    def update_target(self, documents: Documents, *, target: str | None = None) -> Self:
        """Take a batch of documents into the model. As for :meth:`MSDAClassifier.update_target`.

        Returns
        -------
        TextAdapter
            Itself.
        """
        self.classifier_.update_target(self._count_terms(documents), target=target)
        return self

    def predict_held_out(self, documents: Documents) -> tuple[np.ndarray, np.ndarray]:
        """Predict documents that `fit` had with labels, as if they had none.

        Returns
        -------
        labels : ndarray of shape (n,)
            Predictions.
        probabilities : ndarray of shape (n, n_classes)
            Those of the classes.
        """
        return self.classifier_.predict_held_out(self._count_terms(documents))

    @overload
    def ask(
        self,
        documents: Documents,
        n: int,
        purpose: Purpose = ...,
        *,
        target: str | None = ...,
        return_weights: Literal[False] = ...,
        random_state: int | np.random.RandomState | None = ...,
    ) -> np.ndarray: ...
    @overload
    def ask(
        self,
        documents: Documents,
        n: int,
        purpose: Purpose = ...,
        *,
        target: str | None = ...,
        return_weights: Literal[True],
        random_state: int | np.random.RandomState | None = ...,
    ) -> tuple[np.ndarray, np.ndarray]: ...
    def ask(
        self,
        documents: Documents,
        n: int,
        purpose: Purpose = "predictions",
        *,
        target: str | None = None,
        return_weights: bool = False,
        random_state: int | np.random.RandomState | None = None,
    ) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
        """Return the positions of the n documents most worth labelling. As for :meth:`MSDAClassifier.ask`.

        Returns
        -------
        ndarray of shape (n,)
            Positions; with `return_weights` a pair of these and of their weights.
        """
        rows = self._count_terms(documents)
        return self.classifier_.ask(
            rows, n, purpose, target=target, return_weights=return_weights, random_state=random_state
        )

    def distill(
        self, documents: Targets | None = None, labels: Labels | None = None, *, random_state: int = 0
    ) -> DistilledText:
        """Return a small linear model on terms that imitates this one.

        It is learnt from the scores that this model gives the documents, its ridge chosen on held-out ones.

        Parameters
        ----------
        documents : iterable of str, or dict of such
            Documents of the target, best the ones given to `fit`: some thousand, 10 at least. With several
            targets, by name.
        labels : sequence, or dict of such, optional
            Their labels where known, else None: only to measure the error on held-out documents.
        random_state : int, default=0
            Seed of the choice of held-out documents.

        Returns
        -------
        DistilledText
        """
        check_is_fitted(self)
        if documents is None:
            raise ValueError("distill needs documents of the target: a model keeps none of those it has seen")
        by_target = _read_targets(documents)
        every_document = [document for own in by_target.values() for document in own]
        names = [name for name, own in by_target.items() for _ in own]
        truth: list[Hashable] | None = None
        if labels is not None:
            given = [labels[name] for name in by_target] if isinstance(labels, Mapping) else [labels]
            truth = [label for each in given for label in np.asarray(each, dtype=object).tolist()]
        if truth is not None and len(truth) != len(every_document):
            raise ValueError(
                f"labels must be as many as the documents, {len(every_document)}; got {len(truth)}"
            )
        rows = self._count_terms(every_document)
        taught = ask_teacher(self.classifier_, rows, names if isinstance(documents, Mapping) else None)
        model = distill_text(every_document, taught, truth, self.vectorizer_, random_state)
        counts = dict(zip(self.terms_, self.classifier_.labelled_counts_.tolist(), strict=True))
        known = [counts.get(term, -1) for term in model.terms_]
        model.classifier_.labelled_counts_ = np.array(known, dtype=np.int32)
        return model


def _read_targets(target: Targets | None) -> dict[str, list[str]]:
    """Return the documents of every target by name."""
    if target is None:
        return {}
    if isinstance(target, str):
        raise ValueError("target must be an iterable of documents, or a dict of such; got one str")
    if not isinstance(target, Mapping):
        check_documents(target)  # refuses a table, which list() would make names of columns
        target = {TARGET: list(target)}
        if target[TARGET] and isinstance(target[TARGET][0], list | tuple | np.ndarray):
            raise ValueError("several targets need names: pass a dict of name and documents")
    return {name: list(check_documents(documents)) for name, documents in target.items()}
