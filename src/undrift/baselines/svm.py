"""The baseline: a linear SVM trained on the source and applied to the target as it is."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.svm import LinearSVC


def linear_svm(*, n_folds: int = 5, random_state: Any = None) -> GridSearchCV:
    """Linear SVM whose C is chosen by cross-validation on the rows it is fitted on.

    C runs over ten values between 1e-4 and 3, logarithmically: rows of tf-idf and raw counts both find
    theirs within.
    """
    svm = LinearSVC(dual="auto", random_state=random_state, max_iter=5000)
    folds = StratifiedKFold(n_folds, shuffle=True, random_state=random_state)
    return GridSearchCV(svm, {"C": np.logspace(-4, 0.5, 10)}, cv=folds)


def fitted_svm(X: Any, y: np.ndarray) -> Any:
    """Fit `linear_svm` with as many folds, up to five, as the smallest class has rows; one leaves C at 1."""
    smallest = min(Counter(y.tolist()).values())
    if smallest == 1:
        return LinearSVC(random_state=0).fit(X, y)
    return linear_svm(n_folds=min(5, smallest), random_state=0).fit(X, y)
