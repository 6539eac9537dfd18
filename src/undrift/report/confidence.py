"""How sure the predictions are, whether that can be relied on, and which classes are confused."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from .inputs import Evidence
from .shares import pool_targets
from .verdict import find_mistakes, measure_error

N_BINS = 20  # of the histogram, from 0 to 1
LEAST_IN_BIN = 10  # labelled rows that a point of the reliability diagram stands for
COVERAGES = np.arange(1, 21) / 20


def confidence_data(evidence: Evidence) -> dict[str, Any]:
    """Describe the probabilities of all targets' predictions."""
    P, codes, truth = (
        np.concatenate([values[target.number] for target in evidence.targets])
        for values in (evidence.probabilities, evidence.adapted_codes, evidence.truth)
    )
    weight = np.concatenate([evidence.weight_of(target) for target in evidence.targets])
    p = np.take_along_axis(P, codes[:, None], axis=1)[:, 0]
    expected = pool_targets(evidence, "expected_error")
    if not (truth >= 0).any() and (mistakes := list(find_mistakes(evidence).values())):  # of cross-fitting
        expected = measure_error(*(np.concatenate(masks) for masks in list(zip(*mistakes, strict=True))[1:]))
    # the expected error knows of the loss from one domain to the other, probabilities do not
    scale = expected["error"] / max(float(np.mean(1 - p)), 1e-9) if expected else 1.0
    return {
        "histogram": _histogram(p, codes, len(evidence.classes)),
        "coverage": _coverage(p, codes, truth, weight, scale),
        "reliability": _reliability(p[truth >= 0], (codes != truth)[truth >= 0], weight[truth >= 0]),
        "confusion": _confusion(P, codes, truth, weight, scale),
    }


def _histogram(p: np.ndarray, codes: np.ndarray, n_classes: int) -> dict[str, Any]:
    """Count rows by the probability of their predicted class."""
    edges = np.linspace(0, 1, N_BINS + 1)
    edges = edges[max(0, int(np.searchsorted(edges, p.min(), side="right")) - 1) :]
    counts = [np.histogram(p[codes == code], edges)[0].tolist() for code in range(n_classes)]
    return {"edges": [round(float(edge), 4) for edge in edges], "counts": counts}


def _coverage(
    p: np.ndarray, codes: np.ndarray, truth: np.ndarray, weight: np.ndarray, scale: float
) -> list[dict[str, Any]]:
    """Say of the surest predictions, for growing shares of them, how many are wrong or expected to be."""
    order = np.argsort(-p, kind="stable")
    rows = []
    for coverage in COVERAGES:
        kept = order[: max(1, round(coverage * len(p)))]
        known = kept[truth[kept] >= 0]
        row: dict[str, Any] = {
            "coverage": float(coverage),
            "threshold": float(p[kept[-1]]),
            "expected": min(1.0, scale * float(np.mean(1 - p[kept]))),
            "measured": None,
        }
        if len(known) >= LEAST_IN_BIN:
            row["measured"] = measure_error(codes[known] != truth[known], weight[known])
        rows.append(row)
    return rows


def _reliability(p: np.ndarray, is_wrong: np.ndarray, weight: np.ndarray) -> list[dict[str, Any]]:
    """Compare probabilities with the share that is right, in groups of similar probability."""
    rows = []
    for start, end in pairwise(np.linspace(0, 1, N_BINS // 2 + 1)):
        chosen = (p >= start) & ((p < end) | (end == 1))
        n = int(chosen.sum())
        if n >= LEAST_IN_BIN:
            wrong = measure_error(is_wrong[chosen], weight[chosen])
            rows.append(
                {
                    "probability": float(p[chosen].mean()), "right": 1 - wrong["error"],
                    "low": 1 - wrong["high"], "high": 1 - wrong["low"], "n_rows": n,
                }
            )  # fmt: skip
    return rows


def _confusion(
    P: np.ndarray, codes: np.ndarray, truth: np.ndarray, weight: np.ndarray, scale: float
) -> dict[str, Any]:
    """Count rows by true and predicted class; without labels, by the probabilities of the true class."""
    known = (truth >= 0) & (truth < P.shape[1])
    is_measured = bool(known.any())
    counts = np.zeros((P.shape[1], P.shape[1]))
    if is_measured:
        np.add.at(counts, (truth[known], codes[known]), weight[known] / weight[known].mean())
    else:
        for code in range(len(counts)):
            counts[:, code] = scale * P[codes == code].sum(axis=0)
            counts[code, code] += (codes == code).sum() - counts[:, code].sum()
    return {"is_measured": is_measured, "counts": [[round(float(n), 1) for n in row] for row in counts]}
