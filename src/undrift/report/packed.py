"""Data that a page's script works on: rows to label, and weights that score a sentence."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

from ..core import Rows
from ..method import choose_for_estimate, predict_codes
from ..results import measure_margins
from ..text import ask_teacher, distill
from .data import PredictedRows, ReportData

N_ESTIMATE, N_PREDICTIONS = 60, 40  # rows of the two decks
N_COMPARED = 160  # of the least certain rows
MOST_CHARACTERS = 250_000  # of the texts of a deck
MOST_DISTILLED = 1_500  # target rows that the weights of the box are learnt from
LEAST_DISTILLED = 40
MOST_BYTES = 380_000  # of its terms and weights
WEIGHT_BYTES = 8 / 3  # of one weight: two bytes in base64

Drawn = tuple[PredictedRows, int, float]  # a row of a target, and how many rows it stands for


def make_decks(given: ReportData) -> dict[str, Any] | None:
    """Draw rows to label from the target rows without a label; None where there are none.

    The deck "estimate" is a random sample that measures the error, the deck "predictions" has doubtful rows
    to learn from. A row is its text, its predicted class, the baseline's, and its weight: the number of
    target rows that it stands for in an estimate, 0 for rows of the second deck.
    """
    pools = []
    for target in given.targets:
        texts = target.rows.documents or []
        rows = np.flatnonzero(~target.rows.known[: len(texts)]).tolist()
        pools.append((target, np.array([i for i in rows if texts[i].strip()], dtype=int)))
    n_rows = sum(len(pool) for _, pool in pools)
    if not n_rows:
        return None
    rng, estimate, doubtful = np.random.RandomState(0), list[Drawn](), list[Drawn]()
    for target, pool in pools:
        if not len(pool):
            continue
        n, once = max(round(N_ESTIMATE * len(pool) / n_rows), 2), np.ones(len(pool))
        places, weights = choose_for_estimate(target.is_changed[pool], once, n, rng)
        estimate += zip([target] * len(places), pool[places].tolist(), weights.tolist(), strict=True)
        free = np.delete(pool, places)
        doubtful += [(target, i, 0.0) for i in _choose_doubtful(given, target, free, len(pools))]
    return {
        "columns": list(given.facts.text_columns),
        "classes": given.classes,
        "n_rows": n_rows,
        "changed_share": sum(int(target.is_changed[pool].sum()) for target, pool in pools) / n_rows,
        "estimate": _write_deck([estimate[i] for i in rng.permutation(len(estimate))]),
        "predictions": _write_deck(doubtful),
    }


def _choose_doubtful(given: ReportData, target: PredictedRows, free: np.ndarray, n_targets: int) -> list[int]:
    """Choose the rows most worth learning from, each text once."""
    n, documents = N_PREDICTIONS // n_targets or 1, target.rows.documents or []
    order = free[np.argsort(measure_margins(target.P)[free], kind="stable")][: N_COMPARED // n_targets]
    first = np.array(list({documents[i]: i for i in reversed(order.tolist())}.values())[::-1], dtype=int)
    if len(first) > n and given.classifier.memory_ is not None:
        asked = given.classifier.ask(target.rows.X[first], n, target=target.domain, random_state=0)
        first = first[asked]
    return first[:n].tolist()


def _write_deck(drawn: list[Drawn]) -> list[tuple[str, int, int, float]]:
    """Write the rows of a deck; it ends where its texts become too long for a page."""
    deck: list[tuple[str, int, int, float]] = []
    n_characters = 0
    for target, i, weight in drawn:
        text = (target.rows.documents or [])[i]
        n_characters += len(text)
        if n_characters > MOST_CHARACTERS and deck:
            break
        deck.append((text, int(target.codes[i]), int(target.baseline[i]), round(weight, 4)))
    return deck


def pack_sentence_model(given: ReportData) -> dict[str, object] | None:
    """Pack distilled weights of the terms, with which the page scores a sentence.

    Terms are in the order of their document frequencies, which are packed as runs. Weights are whole numbers
    of 16 bits, in units of `step`. The terms with the smallest weights are left out where all are too many.
    None where the text is not cut as the page cuts it, or where there are too few rows.
    """
    vectorizer, target = given.vectorizer, given.targets[0]
    if vectorizer is None or vectorizer.tokens_ != "words":
        return None
    if len(target.rows) < LEAST_DISTILLED:
        return None
    rows = np.sort(np.random.default_rng(0).permutation(len(target.rows))[:MOST_DISTILLED])
    X = target.rows.X[rows]
    taught = ask_teacher(given.classifier, X, target.domain)
    distilled, held_out, codes = distill(X / vectorizer.length, taught)
    model = distilled.model_
    coef = model.coef[0]
    strongest = np.argsort(-np.abs(coef).max(axis=1), kind="stable")
    names = np.array([len(given.terms[j].encode()) + 1 for j in strongest])
    kept = np.sort(strongest[np.cumsum(names + WEIGHT_BYTES * coef.shape[1]) <= MOST_BYTES])
    step = float(np.abs(coef).max()) / 32_767 or 1.0
    units = np.rint(coef[kept].T / step).astype("<i2")  # the low byte first
    runs = np.unique(-vectorizer.document_frequency_[kept], return_counts=True)
    intercept = model.intercept[0, distilled.find_target(None)]
    whole, cut = (
        predict_codes(_score_unit_rows(X[held_out][:, terms], coef[terms]) + intercept)
        for terms in (np.arange(len(given.terms)), kept)
    )
    return {
        "terms": "\n".join(given.terms[j] for j in kept),
        "runs": [[int(-n), int(size)] for n, size in zip(*runs, strict=True)],
        "n_documents": int(vectorizer.n_documents_),
        "weights": base64.b64encode(units.tobytes()).decode(),
        "n_outputs": coef.shape[1],
        "step": step,
        "intercept": [float(value) for value in intercept],
        "temperature": float(model.temperature[0]),
        "classes": given.classes,
        "new": np.flatnonzero(given.statistics["n_labelled"][kept] == 0).tolist(),
        "agreement": float(np.mean((codes == taught.predicted[held_out]) & (whole == cut))),
        "n_held_out": len(held_out),
    }


def _score_unit_rows(X: Rows, weights: np.ndarray) -> np.ndarray:
    """Return the scores of sparse rows that are scaled to length 1, as the page does."""
    lengths = np.sqrt(np.asarray(X.multiply(X).sum(axis=1), dtype=float))
    return np.asarray(X @ weights) / np.maximum(lengths, 1e-12).reshape(-1, 1)
