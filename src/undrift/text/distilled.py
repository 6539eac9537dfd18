"""DistilledText: a small linear model on terms that imitates a TextAdapter."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NoReturn

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from ..inputs import spell_label
from .distill import DistilledClassifier, Taught, distill
from .model import TextModel
from .terms import TermVectorizer, count_documents, rank_terms
from .tokens import CHARACTER_NGRAMS, choose_pattern

MOST_BYTES = 5_000_000  # of a model file, about
TERM_BYTES = 52  # of a term in a file: its name, document weight and count
MOST_TERMS = 80_000


class DistilledText(TextModel):
    """Linear model on terms that imitates a :class:`TextAdapter`; ``adapter.distill`` makes it.

    It is a few megabytes in a file, predicts as fast as scikit-learn counts terms, and can leave as a
    scikit-learn pipeline. It cannot be fitted, updated with labels or distilled again: the adapter can.

    Attributes
    ----------
    terms_ : list of str
        Uni- and bigrams of the documents given to `distill`, at most 80,000.
    idf_ : ndarray of shape (n_terms,)
        Their document weights.
    analysis_ : dict
        Options of scikit-learn's `TfidfVectorizer` that say how documents become terms.
    classifier_ : DistilledClassifier
        Weights of the terms, an intercept for each target domain, and the temperature of probabilities.
    classes_ : ndarray
        The labels.
    vectorizer_ : TfidfVectorizer
        Of scikit-learn, with these terms.
    target_shares_, target_shares_interval_, expected_error_ : list
        Of every target, as the adapter had them; of the batch, after `align`.
    fidelity_ : dict
        On `n_held_out` documents that the weights were not learnt from: `agreement` (share that gets the
        adapter's label); and of those with labels, `n_scored`, `error` and `adapted_error`, of the adapter.

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

    classifier_: DistilledClassifier
    idf_: np.ndarray
    analysis_: dict[str, Any]

    @property
    def vectorizer_(self) -> TfidfVectorizer:
        """The vectoriser of scikit-learn with these terms."""
        check_is_fitted(self)
        if not hasattr(self, "_cached_vectorizer"):
            vectorizer = TfidfVectorizer(vocabulary=self.terms_, sublinear_tf=True, **self.analysis_)
            self._cached_vectorizer = vectorizer.fit([""])
            self._cached_vectorizer.idf_ = self.idf_
        return self._cached_vectorizer

    def fit(self, *arguments: object, **options: object) -> NoReturn:
        """Refuse, as do `update` and `ask`: a distilled model learns from an adapter alone."""
        raise ValueError(
            "a distilled model cannot be fitted, updated or asked for rows to label: do so with the "
            "TextAdapter that it was distilled from, and distill that again"
        )

    update = ask = fit

    def to_sklearn(self, target: str | None = None) -> Pipeline:
        """Return the same model as a scikit-learn pipeline that needs no undrift: it predicts the same.

        It can be pickled. Its `decision_function` gives log odds: the scores here over the temperature.
        With ``border="balanced"`` its probabilities are those of classes that are equally frequent. Those of
        a document without a known term follow from the intercept alone.

        Parameters
        ----------
        target : str, optional
            Name of the target that it is for, where there are several.

        Returns
        -------
        Pipeline
            `TfidfVectorizer` and `LogisticRegression`. The former refuses NaN: replace it by empty text.
        """
        check_is_fitted(self)
        linear = self.classifier_
        intercept = linear.decision_function(self.vectorizer_.transform([""]), target=target)
        classifier = LogisticRegression()
        classifier.classes_ = self.classes_
        classifier.coef_ = linear.coef_[0].T
        classifier.intercept_ = np.ravel(intercept)
        classifier.n_features_in_ = linear.n_features_in_
        return Pipeline([("tfidf", self.vectorizer_), ("classifier", classifier)])


def distill_text(
    documents: Sequence[str],
    taught: Taught,
    labels: Sequence[Hashable] | None,
    vectorizer: TermVectorizer,
    seed: int,
) -> DistilledText:
    """Learn weights of terms from the scores that an adapter gives the documents."""
    model = DistilledText()
    model.facts_ = {}
    n_numbers = 2 * taught.scores.shape[1] + len(taught.targets)  # weights, twice; means that checks need
    model.analysis_ = {"analyzer": "char_wb", "ngram_range": CHARACTER_NGRAMS}
    if vectorizer.tokens_ == "words":  # cut about as the adapter does
        options = {"token_pattern": choose_pattern(documents)}
        model.analysis_ = {"ngram_range": (1, 2), **options}
    model.terms_, model.idf_ = choose_terms(documents, model.analysis_, n_numbers)
    X = model.vectorizer_.transform(documents)
    model.classifier_, held_out, codes = distill(X, taught, seed)
    model.classes_ = taught.classes
    model.fidelity_ = measure_fidelity(taught.select(held_out), codes, labels, held_out)
    return model


def choose_terms(
    documents: Sequence[str], analysis: dict[str, Any], n_numbers: int
) -> tuple[list[str], np.ndarray]:
    """Choose the terms of most documents that a small file has room for, and their document weights."""
    n_terms = min(MOST_TERMS, MOST_BYTES // (TERM_BYTES + 4 * n_numbers))
    counts = count_documents(documents, TfidfVectorizer(**analysis).build_analyzer()).counts
    terms = rank_terms(counts, n_terms)
    if not terms:
        raise ValueError(f"no words in the {len(documents)} documents: distillation needs some")
    frequencies = np.array([counts[term] for term in terms])
    return terms, 1 + np.log((1 + len(documents)) / (1 + frequencies))


def measure_fidelity(
    taught: Taught, codes: np.ndarray, labels: Sequence[Hashable] | None, held_out: np.ndarray
) -> dict[str, float | None]:
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
