"""Rows to label in the page: a fair sample that measures the error, and doubtful rows to learn from."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core import stack_rows
from .inputs import DomainRows, Evidence

N_ESTIMATE, N_PREDICTIONS = 60, 40
N_COMPARED = 160  # of the least certain rows
MOST_CHARACTERS = 250_000  # of the texts of a deck, which travel with the page


def make_decks(evidence: Evidence) -> dict[str, Any] | None:
    """Draw the rows of both decks from the target rows without a label; None where there are none.

    A row of a deck is its text, its predicted class, the baseline's, and its weight: how many rows of the
    targets it stands for in an estimate. That is 0 for rows of the second deck.
    """
    pools = [_pool(target) for target in evidence.targets]
    if not sum(map(len, pools)):
        return None
    estimate = _draw_estimate(evidence, pools)
    asked = _draw_asked(evidence, pools, {(k, i) for k, i, _ in estimate})
    n_rows = sum(map(len, pools))
    changed = sum(int(_is_changed(evidence, k)[pool].sum()) for k, pool in enumerate(pools))
    return {
        "columns": evidence.about.get("text_columns", ["text"]),
        "classes": evidence.classes,
        "n_rows": n_rows,
        "changed_share": changed / n_rows,
        "estimate": [_card(evidence, *drawn) for drawn in _limit(evidence, estimate)],
        "predictions": [_card(evidence, *drawn) for drawn in _limit(evidence, asked)],
    }


def _pool(target: DomainRows) -> np.ndarray:
    """Return the rows of a target that can be labelled: those with a text and without a label."""
    if target.documents is None:
        return np.empty(0, dtype=int)
    return np.array(
        [i for i in np.flatnonzero(~target.known).tolist() if target.documents[i].strip()], dtype=int
    )


def _is_changed(evidence: Evidence, k: int) -> np.ndarray:
    number = evidence.targets[k].number
    return evidence.source_only_codes[number] != evidence.adapted_codes[number]


def _draw_estimate(evidence: Evidence, pools: list[np.ndarray]) -> list[tuple[int, int, float]]:
    """Draw a random sample, stratified by target and by whether the prediction changed.

    Changed rows alone tell whether adaptation helped, all rows how many are wrong: a stratum's part of the
    sample is half way between its share of the rows and an equal part for changed and unchanged ones. The
    order is such that every beginning of the deck holds the strata in about these parts.
    """
    rng, n_rows = np.random.default_rng(0), sum(map(len, pools))
    strata = [
        (k, pool[_is_changed(evidence, k)[pool] == is_changed], is_changed)
        for k, pool in enumerate(pools)
        for is_changed in (False, True)
    ]
    sizes = {side: sum(len(rows) for _, rows, s in strata if s == side) for side in (False, True)}
    n_sides = sum(size > 0 for size in sizes.values())
    places = []
    for k, rows, is_changed in strata:
        if not len(rows):
            continue
        part = len(rows) / n_rows / 2 + len(rows) / sizes[is_changed] / n_sides / 2
        n = min(len(rows), max(1, round(N_ESTIMATE * part)))
        drawn = rng.choice(rows, n, replace=False)
        places += [((j + rng.random()) / n, k, int(i), len(rows) / n) for j, i in enumerate(drawn)]
    return [(k, i, weight) for _, k, i, weight in sorted(places)]


def _draw_asked(
    evidence: Evidence, pools: list[np.ndarray], taken: set[tuple[int, int]]
) -> list[tuple[int, int, float]]:
    """Take the rows most worth learning from, each text once, none of the other deck.

    Among the least certain rows the classifier is asked; where it cannot say, they are taken as they are.
    """
    certainty = [evidence.certainty(target.number) for target in evidence.targets]
    order = sorted(
        (float(certainty[k][i]), k, i)
        for k, pool in enumerate(pools)
        for i in pool.tolist()
        if (k, i) not in taken
    )[:N_COMPARED]
    by_text = {evidence.targets[k].documents[i]: (k, i, 0.0) for _, k, i in reversed(order)}
    rows = list(by_text.values())[::-1]
    if getattr(evidence.classifier, "update_state_", None) is None or len(rows) <= N_PREDICTIONS:
        return rows[:N_PREDICTIONS]
    X = stack_rows([evidence.targets[k].X[[i]] for k, i, _ in rows])
    numbers = np.array([evidence.targets[k].number for k, _, _ in rows])
    asked = evidence.classifier.ask(X, N_PREDICTIONS, sample_domain=numbers, random_state=0)
    return [rows[i] for i in asked.tolist()]


def _limit(evidence: Evidence, drawn: list[tuple[int, int, float]]) -> list[tuple[int, int, float]]:
    """Cut a deck where its texts become too long for a page."""
    lengths = np.cumsum([len(evidence.targets[k].documents[i]) for k, i, _ in drawn])  # type: ignore[index]
    return drawn[: max(1, int(np.searchsorted(lengths, MOST_CHARACTERS)))] if drawn else []


def _card(evidence: Evidence, k: int, i: int, weight: float) -> list[Any]:
    target = evidence.targets[k]
    codes = (int(of[target.number][i]) for of in (evidence.adapted_codes, evidence.source_only_codes))
    return [target.documents[i], *codes, round(weight, 4)]  # type: ignore[index]
