"""Distance of each target from the source: by its terms, and by what the classifier sees of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .._core import Rows, domain_centred_gram, hidden_rows, moments, stack_rows
from .._inputs import binarize_rows
from ..classifier import MSDAClassifier, layer_share
from ..metrics import gram_distance_interval
from .inputs import DomainRows, Evidence

DISTANCE_ROWS = 250  # of each domain
MEAN_ROWS = 2_000  # of each domain, for the mean that is subtracted
DISTANCE_C = (1e-3, 1e-2, 1e-1, 1.0)


def domain_distances(evidence: Evidence) -> dict[int, dict[str, Any]]:
    """Measure the proxy A-distance of each target from the source, before and after adaptation.

    Before, rows are their terms; after, they are what the classifier sees: terms and layers, with centring
    and balancing as it was fitted. Alignment of classes (``center="classes"``) centres every domain first and
    then moves each target as a whole: the distance is that of the centred rows, before this step, which a
    linear classifier of domains would see and which says nothing of their contents. A classifier that fell
    back sees terms alone and has no "after".
    """
    distances: dict[int, dict[str, Any]] = {}
    sources, origin = stack_rows([domain.X for domain in evidence.sources]), _origins(evidence.sources)
    drawn = _draw_rows(sources.shape[0], DISTANCE_ROWS)
    for target in evidence.targets:
        rows = target.X[_draw_rows(len(target), DISTANCE_ROWS)]
        n = min(len(drawn), rows.shape[0])
        if n < 20:
            continue
        X = stack_rows([sources[drawn[:n]], rows[:n]])
        domain = np.append(origin[drawn[:n]], np.full(n, len(evidence.sources)))
        before = _distance(domain_centred_gram(X.astype(np.float64), None, domain), n)
        after = None
        if not evidence.fell_back:
            after = _distance(seen_gram(evidence.classifier, X, domain, [*evidence.sources, target]), n)
        distances[target.number] = {"before": before, "after": after, "distance_rows": n}
    return distances


def seen_gram(
    classifier: MSDAClassifier, X: Rows, domain: np.ndarray, domains: list[DomainRows]
) -> np.ndarray:
    """Compute the inner products of rows as the fitted classifier sees them.

    These are the inner products of the terms and of every layer, each less the mean of its domain
    (`center`) and scaled to one mean square norm (`balance_layers`), added up. The step that moves a target
    as a whole (``center="classes"``) is left out.

    Parameters
    ----------
    X : rows of shape (n, d)
    domain : int array of shape (n,)
        Position of each row's domain in `domains`.
    domains : list of DomainRows
        Where the means are taken from.
    """
    reference = [domain.X[_draw_rows(len(domain), MEAN_ROWS)] for domain in domains]
    K = np.zeros((X.shape[0],) * 2)
    for H, *others in zip(*(_levels(classifier, rows) for rows in (X, *reference)), strict=True):
        by_domain = [moments(other) for other in others]
        means = np.stack([each.mean for each in by_domain]) if classifier.center else None
        share = layer_share(by_domain, bool(classifier.center)) if classifier.balance_layers else 1.0
        K += share * domain_centred_gram(H.astype(np.float64), means, domain)
    return K


def _levels(classifier: MSDAClassifier, X: Rows) -> Iterator[Rows]:
    """Yield the rows, and their values at every layer."""
    X = X.astype(classifier.dtype)
    yield X
    yield from hidden_rows(classifier.representation_.layers_, binarize_rows(X) if classifier.binarize else X)


def _origins(domains: list[DomainRows]) -> np.ndarray:
    """Return the position of each stacked row's domain."""
    return np.repeat(np.arange(len(domains)), [len(domain) for domain in domains])


def _draw_rows(n_rows: int, n: int) -> np.ndarray:
    """Draw `n` row numbers at random, in order; all of them where there are no more."""
    if n_rows <= n:
        return np.arange(n_rows)
    return np.sort(np.random.default_rng(0).choice(n_rows, n, replace=False))


def _distance(K: np.ndarray, n: int) -> dict[str, float]:
    """Measure the distance of the first `n` rows from the others, given all inner products."""
    interval = gram_distance_interval(K, n, C=DISTANCE_C, clip=True, random_state=0)
    return {name: round(value, 3) for name, value in vars(interval).items()}
