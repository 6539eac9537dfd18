"""Align classes instead of means: move the rows of a target until its classes meet where the source's do.

A source is centred on the mean of its class means, a target on its mean. The mean of a target depends on its
class shares, so that the point midway between its classes is then off the source's decision boundary. This
module moves all rows of the target along the differences of the source's class means until that point lies
on the boundary.
"""

from __future__ import annotations

import numpy as np

# Scores of the directions add up to zero over the classes, but for the rounding of float32. Directions that
# scores hardly tell apart, by this part of the others, would be followed a thousand class distances far.
_LEAST_SLOPE = 1e-3


def average_classes(is_class: np.ndarray) -> np.ndarray:
    """Combine rows into the mean of each class that has any: (n, n_classes)."""
    return is_class / np.maximum(is_class.sum(axis=0), 1)


def class_directions(codes: np.ndarray, n_classes: int) -> np.ndarray:
    """Combine labelled rows into the mean of each class less the mean of all class means: (n, n_classes)."""
    means = average_classes(codes[:, None] == np.arange(n_classes))
    return means - means.mean(axis=1, keepdims=True)


def combine_midpoints(codes: np.ndarray, domain: np.ndarray) -> dict[int, np.ndarray]:
    """Combine labelled rows into the point midway between the classes, for every source: (n,).

    That is the mean of the source's class means. Of a source that lacks a class it is the mean over the
    classes that it has, and from there the way to the mean over all classes in the complete sources, or in
    all together.
    """
    is_class = codes[:, None] == np.arange(codes.max() + 1)
    n_classes = is_class.shape[1]
    sources = {k: domain == k for k in np.unique(domain).tolist()}
    has_class = {k: is_class[is_member].any(axis=0) for k, is_member in sources.items()}
    complete = [sources[k] for k, present in has_class.items() if present.all()]
    reference = complete or [np.ones(len(codes), dtype=bool)]
    common = np.zeros(is_class.shape)  # class means of the reference
    if len(complete) < len(sources):
        for is_member in reference:
            common += average_classes(is_class & is_member[:, None]) / len(reference)
    combinations = {}
    for k, is_member in sources.items():
        present = has_class[k] / has_class[k].sum()
        combinations[k] = average_classes(is_class & is_member[:, None]) @ present
        if not has_class[k].all():
            combinations[k] += common @ (1 / n_classes - present)
    return combinations


def choose_move(slopes: np.ndarray, change: np.ndarray) -> np.ndarray:
    """Return the shortest combination of class directions, (n_classes,), that changes scores by `change`.

    `slopes`, (n_classes, n_outputs), are the scores of the directions.
    """
    return np.linalg.lstsq(slopes.T, change, rcond=_LEAST_SLOPE)[0]
