"""What the parameters of `MSDAClassifier` may be."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core import ACTIVATIONS
from .._inputs import check_choice, check_count, check_positive
from .grid import Grid, checked_grid
from .linear import SOLVERS
from .selection import SELECTIONS
from .self_training import checked_self_training


def checked_settings(classifier: Any) -> tuple[Grid, dict[str, Any]]:
    """Return the grid to choose from and the options of every layer; refuse what cannot be meant."""
    check_choice(classifier.classifier, "classifier", tuple(SOLVERS))
    check_choice(classifier.selection, "selection", SELECTIONS)
    check_choice(classifier.dtype, "dtype", ("float32", "float64"))
    if not isinstance(classifier.center, bool | np.bool_):
        raise TypeError(f"center={classifier.center!r} must be True or False")
    if isinstance(classifier.class_weight, dict):
        for label, weight in classifier.class_weight.items():
            check_positive(weight, f"class_weight of {label!r}", zero=True)
    if check_count(classifier.n_folds, "n_folds") < 2:
        raise ValueError(f"n_folds={classifier.n_folds!r} must be at least 2: a fold is scored by the others")
    checked_self_training(classifier.self_training)
    grid = checked_grid(classifier.noise, classifier.n_layers, classifier.C)
    options = {
        "ridge": check_positive(classifier.ridge, "ridge", zero=True, hint="the paper uses 1e-5"),
        "activation": check_choice(classifier.activation, "activation", ACTIVATIONS),
    }
    return grid, options
