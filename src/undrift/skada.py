"""Estimators that run in skada's pipelines and scorers; skada itself is not imported."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._registry import savable
from .classifier import MSDAClassifier, MSDARegressor

__all__ = ["SkadaClassifier", "SkadaRegressor"]

_REQUEST = {"sample_domain": True, "allow_source": True}


class _TakesSkadasMetadata:
    """Methods that accept what skada routes to them, and place rows where skada means them to be."""

    __metadata_request__predict = _REQUEST
    __metadata_request__score = _REQUEST | {"sample_weight": True}

    domains_: list[int]
    domain_sizes_: list[int]

    def predict(self, X, *, sample_domain=None, allow_source=True, **options):
        """Predict labels; `options` are those of undrift's estimator, and source rows are always allowed."""
        return super().predict(X, sample_domain=sample_domain, **options)  # type: ignore[misc]

    def score(self, X, y, sample_weight=None, *, sample_domain=None, allow_source=True, **options):
        """Accuracy of a classifier, R^2 of a regressor."""
        return super().score(X, y, sample_weight, sample_domain=sample_domain, **options)  # type: ignore[misc]

    def _by_domain(self, values: np.ndarray, sample_domain: Any, n: int) -> np.ndarray:
        """Return what `values` has for each row's domain; the targets' mean for none, or for a new target."""
        known = np.array(self.domains_)
        numbers = known.min() - 1 if sample_domain is None else np.asarray(sample_domain)
        is_new = (numbers < 0) & ~np.isin(numbers, known)
        placed = super()._by_domain(values, np.where(is_new, known[0], numbers), n)  # type: ignore[misc]
        pooled = known < 0 if known.min() < 0 else known >= 0
        mean = np.average(values[pooled], axis=0, weights=np.array(self.domain_sizes_)[pooled])
        return np.where(np.broadcast_to(is_new, n)[:, None], mean, placed)


@savable
class SkadaClassifier(_TakesSkadasMetadata, MSDAClassifier):
    """`MSDAClassifier` as a step of skada's pipelines, which skada's scorers can score.

    Its methods take what skada passes: `sample_domain`, `sample_weight` of a step that weighs rows, and
    `allow_source`, which changes nothing, since source rows can always be predicted. skada masks labels of
    target rows by -1, so -1 cannot be a class. Rows without a domain, or of a target that `fit` has not
    seen, are placed where the target is.

    Parameters
    ----------
    n_layers, noise, C, classifier, selection, center, target_shares, border, ridge, activation,
    n_pivots, binarize, max_upper_rows, class_weight, balance_layers, self_training, fallback,
    n_folds, dtype, device, precision, memory_budget, verbose, random_state
        As for :class:`undrift.MSDAClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> from undrift.skada import SkadaClassifier
    >>> X = np.array([[1, 0, 1], [1, 0, 0], [0, 1, 1], [0, 1, 0], [1, 0, 1], [0, 1, 1]])
    >>> domains = np.array([1, 1, 1, 1, -2, -2])
    >>> model = SkadaClassifier(n_layers=1).fit(X, np.array([1, 1, 0, 0, -1, -1]), sample_domain=domains)
    >>> model.predict(X[4:], sample_domain=domains[4:])
    array([1, 0])
    """

    __metadata_request__fit = {"sample_domain": True, "sample_weight": True}
    __metadata_request__predict_proba = _REQUEST
    __metadata_request__decision_function = _REQUEST

    def predict_proba(self, X, *, sample_domain=None, allow_source=True, **options):
        """Calibrated probabilities of the classes."""
        return super().predict_proba(X, sample_domain=sample_domain, **options)

    def decision_function(self, X, *, sample_domain=None, allow_source=True, **options):
        """Scores, as of :class:`undrift.MSDAClassifier`."""
        return super().decision_function(X, sample_domain=sample_domain, **options)


@savable
class SkadaRegressor(_TakesSkadasMetadata, MSDARegressor):
    """`MSDARegressor` as a step of skada's pipelines; what is said of `SkadaClassifier` holds for it too.

    skada masks labels of target rows by NaN. Steps that weigh rows cannot come before it.

    Parameters
    ----------
    n_layers, noise, C, center, target_mean, self_training, clip, ridge, activation, n_pivots,
    binarize, max_upper_rows, balance_layers, n_folds, dtype, device, precision, memory_budget,
    verbose, random_state
        As for :class:`undrift.MSDARegressor`.

    Examples
    --------
    >>> import numpy as np
    >>> from undrift.skada import SkadaRegressor
    >>> X, stars = np.random.default_rng(0).random((60, 4)), np.linspace(1, 5, 40)
    >>> domains, y = np.repeat([1, -2], [40, 20]), np.append(stars, np.full(20, np.nan))
    >>> model = SkadaRegressor(n_layers=1).fit(X, y, sample_domain=domains)
    >>> model.predict(X[40:], sample_domain=domains[40:]).shape
    (20,)
    """

    __metadata_request__fit = {"sample_domain": True}
