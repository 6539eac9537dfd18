"""TextModel, the base of models of raw documents: a vectoriser, and a classifier of its rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_is_fitted

from ..scoring import describe_expected, list_shares
from .tokens import check_documents


class TextModel(ClassifierMixin, BaseEstimator):
    """Predict labels of documents, and summarise every target."""

    vectorizer_: Any
    classifier_: Any
    classes_: np.ndarray
    terms_: list[str]
    facts_: dict[str, Any]

    def remember(self, **facts: Any) -> None:
        """Keep facts about the data, such as the names of text columns, with the model and in its file."""
        self.facts_ = {**self.facts_, **facts}

    def decision_function(
        self, documents: Iterable[str], *, target: str | None = None, **teacher: Any
    ) -> np.ndarray:
        """Return scores: of shape (n,) for two classes (positive for the second), else (n, n_classes).

        Parameters
        ----------
        documents : iterable of str
            Documents of the target.
        target : str, optional
            Name of their target, where there are several.
        teacher, teacher_confidence : array-like, optional
            Labels of these documents by the teacher that `fit` had: the scores are then those of both.
        """
        rows = self._count_terms(documents)
        return self.classifier_.decision_function(rows, target=target, **teacher)

    def predict(self, documents: Iterable[str], *, target: str | None = None, **teacher: Any) -> np.ndarray:
        """Predict labels; the parameters are those of `decision_function`."""
        rows = self._count_terms(documents)
        return self.classifier_.predict(rows, target=target, **teacher)

    def predict_proba(
        self, documents: Iterable[str], *, target: str | None = None, **teacher: Any
    ) -> np.ndarray:
        """Return calibrated probabilities of the classes; the parameters are those of `decision_function`.

        Those of a document without a known term are the class shares of its target, or else of the source.
        """
        rows = self._count_terms(documents)
        p = self.classifier_.predict_proba(rows, target=target, **teacher)
        return p if teacher else self.classifier_.fill_unknown(p, rows, target)

    def score(self, documents, y, sample_weight=None, *, target: str | None = None) -> float:
        """Return the accuracy of `predict`; the parameters are those of `decision_function`."""
        return accuracy_score(y, self.predict(documents, target=target), sample_weight=sample_weight)

    def _count_terms(self, documents: Iterable[str]) -> Any:
        check_is_fitted(self)
        return self.vectorizer_.transform(check_documents(documents))

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

    def summary(self) -> str:
        """Return the error to expect and the class shares of every target, as `undrift adapt` prints them."""
        check_is_fitted(self)
        lines = []
        facts = self.expected_error_, self.target_shares_, self.target_shares_interval_
        for name, expected, shares, interval in zip(self.classifier_.target_names_, *facts, strict=True):
            lines.append(f"{name}: {describe_expected(expected)}")
            lines += [f"  class shares: {list_shares(shares, interval)}"] if shares else []
        caution = getattr(self.classifier_, "caution_", None) or {}
        lines += [f"warning: {reason}" for reason in caution.get("reasons", [])]
        return "\n".join(lines or [f"no target; classes {', '.join(map(str, self.classes_.tolist()))}"])

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags
