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

    Parameters
    ----------
    n_folds : int, default=5
        Folds of the cross-validation.
    random_state : int, RandomState or None, default=None
        Seed of the folds.

    Returns
    -------
    GridSearchCV
        Not fitted.

    Examples
    --------
    >>> from undrift.baselines import linear_svm
    >>> svm = linear_svm(n_folds=2, random_state=0).fit([[1.0], [0.9], [0.1], [0.0]] * 5, [1, 1, 0, 0] * 5)
    >>> svm.predict([[1.0], [0.0]]).tolist()
    [1, 0]
    """
    svm = LinearSVC(dual="auto", random_state=random_state, max_iter=5000)
    folds = StratifiedKFold(n_folds, shuffle=True, random_state=random_state)
    return GridSearchCV(svm, {"C": np.logspace(-4, 0.5, 10)}, cv=folds)


def fitted_svm(X: Any, y: np.ndarray) -> Any:
    """Fit `linear_svm` with as many folds, up to five, as the smallest class has rows; one leaves C at 1.

    Parameters
    ----------
    X : {array, sparse matrix} of shape (n, d)
        Rows of the source.
    y : array of shape (n,)
        Their labels.

    Returns
    -------
    estimator
        Fitted.

    Examples
    --------
    >>> import numpy as np
    >>> from undrift.baselines import fitted_svm
    >>> fitted_svm([[1.0], [0.9], [0.1], [0.0]], np.array([1, 1, 0, 0])).predict([[1.0], [0.0]]).tolist()
    [1, 0]
    """
    smallest = min(Counter(y.tolist()).values())
    if smallest == 1:
        return LinearSVC(random_state=0).fit(X, y)
    return linear_svm(n_folds=min(5, smallest), random_state=0).fit(X, y)
