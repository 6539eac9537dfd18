"""Prediction: a forward pass over row blocks, and the intercept of each row's domain."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._core import Layer, Rows, decision_scores, row_slices
from .._inputs import Place, load_cluster
from .data import check_domain_numbers


def keep_rows(X: Rows) -> Rows:
    """Return what the first layer sees of rows that are not binarised: the rows."""
    return X


@dataclass(frozen=True)
class Pass:
    """Rows, the layers that they go through, and the weights of the rows and of every layer."""

    X: Rows
    layers: Sequence[Layer]
    weights: Sequence[Any]  # of h^0, ..., h^l: (d_t, n_outputs)
    first: Callable[[Rows], Rows] = keep_rows

    @property
    def width(self) -> int:
        """Columns of the widest rows that are computed."""
        return max((layer.coef.shape[1] for layer in self.layers), default=self.X.shape[1])

    def move_to(self, place: Place) -> Pass:
        """Return the same pass with layers and weights at `place`."""
        return replace(
            self, layers=place.move_layers(self.layers), weights=[place.move_rows(w) for w in self.weights]
        )

    def scores(self, rows: slice, place: Place) -> np.ndarray:
        """``sum_t h^t w_t`` of some of the rows."""
        X = self.X[rows]
        return decision_scores(place.move_rows(X), place.move_rows(self.first(X)), self.layers, self.weights)


def row_scores(passes: Sequence[Pass], place: Place) -> np.ndarray:
    """Scores of shape (n, n_outputs), without an intercept, that add up over passes of the same rows."""
    passes = [forward.move_to(place) for forward in passes]
    n = passes[0].X.shape[0]
    scores = np.zeros((n, passes[0].weights[0].shape[1]))
    with place.set_precision():
        for rows in row_slices(n, max(forward.width for forward in passes)):
            for forward in passes:
                scores[rows] += forward.scores(rows, place)
    return scores


def domain_intercepts(
    domains: Sequence[int], sizes: Sequence[int], intercept: np.ndarray, sample_domain: Any, n: int
) -> np.ndarray:
    """Intercept of each of n rows by its domain; the target's where the user does not say.

    Parameters
    ----------
    domains, sizes : sequences of int
        Numbers of the domains that `fit` saw, and how many rows each had.
    intercept : array of shape (n_domains, n_outputs)
    """
    if sample_domain is None:
        targets = [i for i, number in enumerate(domains) if number < 0]
        if targets and len(targets) < len(domains) and _is_cross_validated():
            raise ValueError(
                "cross-validation of scikit-learn scores rows of the source, which would be taken for the "
                "target's: pass scoring=lambda model, X, y: model.score(X, y, sample_domain=0), or give "
                "noise, n_layers and C as lists to choose from"
            )
        pooled = targets or list(range(len(domains)))
        shares = np.array(sizes)[pooled]
        return shares @ intercept[pooled] / shares.sum()
    domain = check_domain_numbers(sample_domain, n)
    unknown = sorted(set(domain.tolist()) - set(domains))
    if unknown:
        raise ValueError(
            f"sample_domain holds {unknown[:5]}, but fit saw only the domains {list(domains)}; "
            "leave it out for rows of the target"
        )
    position = {number: i for i, number in enumerate(domains)}
    return intercept[[position[number] for number in domain.tolist()]]


def _is_cross_validated() -> bool:
    """Tell whether scikit-learn's cross-validation is among the callers, such as that of GridSearchCV."""
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_globals.get("__name__") == "sklearn.model_selection._validation":
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False


def predict_lazily(
    classifier: Any, method: str, X: Any, sample_domain: Any, recenter: bool, extra: Any = None
) -> Any:
    """Return a lazy Dask array: a method of a fitted classifier on rows of Dask, block by block."""
    if recenter or np.ndim(sample_domain) > 0:
        raise ValueError(
            "rows of Dask are predicted block by block: leave recenter out, and give one sample_domain"
        )
    if extra is not None or classifier.n_extra_features_in_:
        raise ValueError("rows of Dask cannot have extra features: predict X.compute()")
    shape, dtype = _shape_of_outputs(classifier, method)
    return load_cluster().blockwise(
        classifier, method, X, shape=shape, dtype=dtype, sample_domain=sample_domain
    )


def _shape_of_outputs(model: Any, method: str) -> tuple[tuple[int, ...], np.dtype]:
    """Return the shape of what a method gives for one row, and its dtype."""
    if not hasattr(model, "classes_"):  # a regressor
        return (), np.dtype(np.float64)
    n_classes = len(model.classes_)
    width = {"predict": 0, "predict_proba": n_classes}.get(method, n_classes if n_classes > 2 else 0)
    width = n_classes if model._has_tags else width
    dtype = model.classes_.dtype if method == "predict" else np.dtype(np.float64)
    return (width,) if width else (), dtype
