"""DistilledText: a small linear model on terms that predicts what a TextAdapter would."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from .._inputs import savable, spell_label
from ..classifier import Taught, distill
from .tokens import CHARACTER_NGRAMS, check_documents, choose_pattern
from .vectorizer import count_documents

MOST_BYTES = 5_000_000  # of a model file, about
TERM_BYTES = 52  # of a term in a file: its name, document weight and count
MOST_TERMS = 80_000
MOST_COUNTED = 2_000_000
# what a vectoriser of scikit-learn says of how documents become terms
ANALYSIS = ("analyzer", "lowercase", "ngram_range", "stop_words", "strip_accents", "token_pattern")


class TextModel(ClassifierMixin, BaseEstimator):
    """What models of raw documents share: a vectoriser, and a classifier of its rows."""

    vectorizer_: Any
    classifier_: Any

    def _rows(self, documents: Any) -> Any:
        check_is_fitted(self)
        return self.vectorizer_.transform(check_documents(documents))

    @property
    def terms_(self) -> list[str]:
        """The term that each column of the rows stands for."""
        check_is_fitted(self)
        if not hasattr(self.vectorizer_, "get_feature_names_out"):
            raise ValueError(
                f"{type(self.vectorizer_).__name__} keeps no term names, so it cannot be explained by term: "
                "use TermVectorizer, CountVectorizer or TfidfVectorizer"
            )
        return self.vectorizer_.get_feature_names_out().tolist()

    @property
    def target_shares_(self) -> list[dict[Any, float] | None]:
        """Share of every class in every target, as of :class:`MSDAClassifier`."""
        return self.classifier_.target_shares_

    @property
    def target_shares_interval_(self) -> list[dict[Any, tuple[float, float]] | None]:
        """A 90% interval of these shares, as of :class:`MSDAClassifier`."""
        return self.classifier_.target_shares_interval_

    @property
    def expected_error_(self) -> list[dict[str, float] | None]:
        """Error to expect on every target, as of :class:`MSDAClassifier`; of the adapter, once distilled."""
        return self.classifier_.expected_error_

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags


@savable
class DistilledText(TextModel):
    """Linear model on terms that predicts what a :class:`TextAdapter` would; ``adapter.distill`` makes it.

    It is a few megabytes in a file, predicts as fast as scikit-learn counts terms, and can leave as a
    scikit-learn pipeline. It cannot be fitted, updated with labels or distilled again: the adapter can.

    Attributes
    ----------
    vectorizer_ : TfidfVectorizer
        Uni- and bigrams of the documents given to `distill`, at most 80,000.
    classifier_ : DistilledClassifier
        Weights of the terms, an intercept for each target domain, and the temperature of probabilities.
    classes_ : ndarray
        The labels.
    fidelity_ : dict
        On documents that the weights were not learnt from: `n_held_out` of them, `agreement` (share that
        gets the adapter's label); and of those with labels, `n_scored`, `error` and `adapted_error`, of the
        adapter (None where there are none). The weights were then learnt from all documents.
    domain_names_ : list of str
        Names of the target domains -1, -2, ...; there only if `undrift` made the model from files.

    Examples
    --------
    >>> from undrift import TextAdapter
    >>> books = ["a gripping page turner", "gripping and moving", "dull and boring", "boring prose"]
    >>> kitchen = ["gripping handle, sturdy", "sturdy pan", "boring and flimsy", "flimsy lid"]
    >>> adapter = TextAdapter().fit(books, ["good", "good", "bad", "bad"], kitchen)
    >>> small = adapter.distill(kitchen * 5)
    >>> small.predict(["a sturdy pot"]), small.to_sklearn().predict(["a sturdy pot"])
    (array(['good'], dtype='<U4'), array(['good'], dtype='<U4'))
    """

    def fit(self, *arguments, **options):
        """Refuse, as do `update` and `ask`: a distilled model learns from an adapter alone."""
        raise ValueError(
            "a distilled model cannot be fitted, updated or asked for rows to label: do so with the "
            "TextAdapter that it was distilled from, and distill that again"
        )

    update = ask = fit

    def decision_function(self, documents, *, sample_domain=None):
        """Scores: of shape (n,) for two classes (positive for the second), else (n, n_classes).

        Parameters
        ----------
        documents : iterable of str
            Documents of the target.
        sample_domain : int or int array of shape (n,), optional
            Where there are several targets, that of each document: -1, -2, ...
        """
        X = self._rows(documents)
        return self.classifier_.decision_function(X, sample_domain=sample_domain)

    def predict(self, documents, *, sample_domain=None):
        """Predict labels; the parameters are those of `decision_function`."""
        X = self._rows(documents)
        return self.classifier_.predict(X, sample_domain=sample_domain)

    def predict_proba(self, documents, *, sample_domain=None):
        """Calibrated probabilities of the classes; the parameters are those of `decision_function`."""
        X = self._rows(documents)
        return self.classifier_.predict_proba(X, sample_domain=sample_domain)

    def to_sklearn(self, sample_domain: int | None = None) -> Pipeline:
        """Return the same model as a scikit-learn pipeline that needs no undrift: it predicts the same.

        It can be pickled. Its `decision_function` gives log odds: the scores here over the temperature.
        With ``border="balanced"`` its probabilities are those of classes that are equally frequent.

        Parameters
        ----------
        sample_domain : int, optional
            Which of several targets it is for; by default the average of their intercepts.
        """
        check_is_fitted(self)
        linear, temperature = self.classifier_, self.classifier_.temperature_
        no_terms = self.vectorizer_.transform([""])
        intercept = linear.decision_function(no_terms, sample_domain=sample_domain)
        classifier = LogisticRegression()
        classifier.classes_ = self.classes_
        classifier.coef_ = linear.coef_.T.astype(np.float64) / temperature
        classifier.intercept_ = np.ravel(intercept) / temperature
        classifier.n_features_in_ = linear.coef_.shape[0]
        return Pipeline([("tfidf", self.vectorizer_), ("classifier", classifier)])

    def term_weights(self) -> dict[str, list[Any]]:
        """Return the model as a table, by column: `term`, `idf`, and the weight of each term for each class.

        With two classes there is one column `weight`, positive for the second; with more, one of each class.
        """
        check_is_fitted(self)
        weights = self.classifier_.coef_
        labels = [f"weight_{label}" for label in self.classes_.tolist()]
        names = ["weight"] if weights.shape[1] == 1 else labels
        columns = dict(zip(names, weights.T.tolist(), strict=True))
        return {"term": self.terms_, "idf": self.vectorizer_.idf_.tolist(), **columns}


def distill_text(
    documents: Sequence[str], taught: Taught, labels: Sequence[Any] | None, vectorizer: Any, seed: int
) -> DistilledText:
    """Learn weights of terms from what an adapter says of the documents."""
    model = DistilledText()
    n_numbers = taught.scores.shape[1] + len(taught.numbers)  # weights; means that `--check` needs
    model.vectorizer_ = fit_terms(documents, vectorizer, n_numbers)
    X = model.vectorizer_.transform(documents)
    model.classifier_, held_out, codes = distill(X, taught, seed)
    model.classes_ = taught.classes
    model.fidelity_ = measure_fidelity(taught.select(held_out), codes, labels, held_out)
    return model


def fit_terms(documents: Sequence[str], like: Any, n_numbers: int) -> TfidfVectorizer:
    """Choose the terms of most documents, counted by scikit-learn: as `like` does if that is possible."""
    n_terms = min(MOST_TERMS, MOST_BYTES // (TERM_BYTES + 4 * n_numbers))
    analysis: dict[str, Any] = {"ngram_range": tuple(getattr(like, "ngram_range", (1, 2)))}
    analysis["token_pattern"] = choose_pattern(documents)
    if getattr(like, "tokens_", "words") == "characters":
        analysis = {"analyzer": "char_wb", "ngram_range": CHARACTER_NGRAMS}
    if isinstance(like, CountVectorizer):
        params = {name: like.get_params()[name] for name in ANALYSIS}
        if not any(callable(value) for value in (*params.values(), like.tokenizer, like.preprocessor)):
            analysis = params
    vectorizer = TfidfVectorizer(sublinear_tf=True, **analysis)
    counted = count_documents(documents, vectorizer.build_analyzer(), MOST_COUNTED).rank(n_terms)
    if not counted:
        raise ValueError(f"no words in the {len(documents)} documents: distillation needs some")
    vectorizer.set_params(vocabulary=[term for term, _ in counted]).fit([""])
    vectorizer.idf_ = 1 + np.log((1 + len(documents)) / (1 + np.array([count for _, count in counted])))
    return vectorizer


def measure_fidelity(
    taught: Taught, codes: np.ndarray, labels: Sequence[Any] | None, held_out: np.ndarray
) -> dict[str, Any]:
    """Compare predictions of held-out documents with the adapter's, and both with labels where known."""
    adapted = taught.classes[taught.predicted]
    distilled = taught.classes[codes]
    truth = [None if labels is None else labels[i] for i in held_out]
    scored = [i for i, label in enumerate(truth) if label is not None and label == label]

    def error(predicted: np.ndarray) -> float | None:
        wrong = [spell_label(predicted[i]) != spell_label(truth[i]) for i in scored]
        return sum(wrong) / len(wrong) if wrong else None

    return {
        "n_held_out": len(held_out),
        "agreement": float(np.mean(codes == taught.predicted)),
        "n_scored": len(scored),
        "error": error(distilled),
        "adapted_error": error(adapted),
    }
