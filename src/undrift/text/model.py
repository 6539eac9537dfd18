"""TextModel, the base of models of raw documents: a vectoriser, and a classifier of its rows."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from ..core import Rows
from ..errors import count, warn
from ..inputs import spell_label
from ..method import ExpectedError, MSDAClassifier
from ..results import Score, list_shares
from .distill import DistilledClassifier
from .tokens import check_documents

if TYPE_CHECKING:
    import pandas as pd

LEAST_KNOWN = 200  # documents with a known term from which `undrift predict` aligns a file


class TextModel(ClassifierMixin, BaseEstimator):
    """Predict labels of documents, and summarise every target."""

    classifier_: MSDAClassifier | DistilledClassifier
    classes_: np.ndarray
    terms_: list[str]
    facts_: dict[str, Any]
    vectorizer_: Any  # which counts terms: an attribute here, a property there

    def remember(self, **facts: Any) -> None:
        """Keep facts about the data, such as the names of text columns, with the model and in its file.

        Parameters
        ----------
        **facts
            Plain values, by name.
        """
        self.facts_ = {**self.facts_, **facts}

    def decision_function(
        self,
        documents: Iterable[str],
        *,
        target: str | None = None,
        teacher: ArrayLike | None = None,
        teacher_confidence: ArrayLike | None = None,
    ) -> np.ndarray:
        """Return scores: of shape (n,) for two classes (positive for the second), else (n, n_classes).

        Parameters
        ----------
        documents : iterable of str
            Documents of the target; None and NaN are empty ones.
        target : str, optional
            Name of their target, where there are several.
        teacher, teacher_confidence : array-like, optional
            Labels of these documents by the teacher that `fit` had: the scores are then those of both.

        Returns
        -------
        ndarray of shape (n,) or (n, n_classes)
        """
        return self.classifier_.decision_function(
            self._count_terms(documents),
            target=target,
            teacher=teacher,
            teacher_confidence=teacher_confidence,
        )

    def predict(
        self,
        documents: Iterable[str],
        *,
        target: str | None = None,
        teacher: ArrayLike | None = None,
        teacher_confidence: ArrayLike | None = None,
    ) -> np.ndarray:
        """Predict labels; the parameters are those of `decision_function`.

        Returns
        -------
        ndarray of shape (n,)
        """
        rows = self._count_terms(documents)
        return self.classifier_.predict(
            rows, target=target, teacher=teacher, teacher_confidence=teacher_confidence
        )

    def predict_proba(
        self,
        documents: Iterable[str],
        *,
        target: str | None = None,
        teacher: ArrayLike | None = None,
        teacher_confidence: ArrayLike | None = None,
    ) -> np.ndarray:
        """Return calibrated probabilities of the classes; the parameters are those of `decision_function`.

        Those of a document without a known term are the class shares of its target, or else of the source.

        Returns
        -------
        ndarray of shape (n, n_classes)
        """
        rows = self._count_terms(documents)
        p = self.classifier_.predict_proba(
            rows, target=target, teacher=teacher, teacher_confidence=teacher_confidence
        )
        return self.classifier_.fill_unknown(p, rows, target) if teacher is None else p

    def predict_frame(self, documents: Iterable[str], *, target: str | None = None) -> pd.DataFrame:
        """Return predictions as a table, with the columns that `undrift predict` adds to a file.

        Parameters
        ----------
        documents : iterable of str
            Documents of the target. The index of a pandas Series is that of the table.
        target : str, optional
            Name of their target, where there are several.

        Returns
        -------
        pandas.DataFrame
            `prediction`, missing for a document without a known term; its `probability`; `known_terms`, their
            number; and ``p_LABEL``, the probability of every class.
        """
        import pandas as pd

        index = documents.index if isinstance(documents, pd.Series) else None
        listed = list(documents)
        p, rows = self.predict_proba(listed, target=target), self._count_terms(listed)
        n_known = np.diff(rows.indptr)
        labels = self.classifier_.predict(rows, target=target).astype(object)
        codes = np.searchsorted(self.classes_, labels.astype(self.classes_.dtype))
        labels[n_known == 0] = None
        columns = {
            "prediction": labels,
            "probability": np.take_along_axis(p, codes[:, None], axis=1)[:, 0],
            "known_terms": n_known,
        }
        columns |= {f"p_{spell_label(label)}": p[:, k] for k, label in enumerate(self.classes_)}
        return pd.DataFrame(columns, index=index)

    def score(
        self,
        documents: Iterable[str],
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        target: str | None = None,
    ) -> float:
        """Return the accuracy of `predict` for labels `y`, each counted `sample_weight` times.

        Other parameters are those of `decision_function`.

        Returns
        -------
        float
        """
        return accuracy_score(y, self.predict(documents, target=target), sample_weight=sample_weight)

    def align(self, documents: Iterable[str], *, target: str | None = None) -> Self:
        """Return a copy for a later batch of a target: its class shares, threshold and expected error.

        ``model.align(batch).predict(batch)`` predicts a batch as `undrift predict` does a file, where
        ``model.predict(batch)`` keeps the class shares of the fit. Documents without a known term are left
        out. The command keeps the shares of the fit for fewer than 200 others, and for documents whose labels
        the model has learnt.

        Parameters
        ----------
        documents : iterable of str
            Documents of the batch, or some that were drawn at random: 200 or more.
        target : str, optional
            Name of their target, where there are several.

        Returns
        -------
        TextAdapter or DistilledText
        """
        rows = self._count_terms(documents)
        known = np.flatnonzero(np.diff(rows.indptr) > 0)
        if not len(known):
            raise ValueError(
                "no document of the batch has a term that the model knows: fit again with it as target"
            )
        if len(known) < LEAST_KNOWN:
            warn(
                f"{count(len(known), 'document')} of the batch with a known term cannot tell its shares; "
                f"{LEAST_KNOWN} are needed: use `predict` without `align`",
                "small-batch",
            )
        aligned = copy(self)
        aligned.classifier_ = self.classifier_.align(rows[known], target=target)
        return aligned

    def _count_terms(self, documents: Iterable[str]) -> Rows:
        check_is_fitted(self)
        return self.vectorizer_.transform(check_documents(documents))

    @property
    def target_shares_(self) -> list[dict[Any, float]]:
        """Share of every class in every target, as of :class:`MSDAClassifier`."""
        return self.classifier_.target_shares_

    @property
    def target_shares_interval_(self) -> list[dict[Any, tuple[float, float]]]:
        """A 90% interval of these shares, as of :class:`MSDAClassifier`."""
        return self.classifier_.target_shares_interval_

    @property
    def expected_error_(self) -> list[ExpectedError]:
        """Error to expect on every target, as of :class:`MSDAClassifier`; of the adapter, once distilled."""
        return self.classifier_.expected_error_

    def summary(self) -> str:
        """Return the error to expect and the class shares of every target, as `undrift adapt` prints them.

        Returns
        -------
        str
        """
        check_is_fitted(self)
        lines = []
        facts = self.expected_error_, self.target_shares_, self.target_shares_interval_
        for name, expected, shares, interval in zip(self.classifier_.target_names_, *facts, strict=True):
            lines.append(f"{name}: {Score.expect(expected).say()}, expected")
            lines += [f"  class shares: {list_shares(shares, interval)}"] if shares else []
        warnings = [text for known in self.classifier_.targets_.values() for text in known["warnings"]]
        lines += [f"warning: {text}" for text in dict.fromkeys(warnings)]
        return "\n".join(lines or [f"no target; classes {', '.join(map(str, self.classes_.tolist()))}"])

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags
