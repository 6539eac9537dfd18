"""Terms of a report: how the vocabulary shifts, and which terms made the difference."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

from ..core import array_ops, stack_rows
from ..method import ask_teacher, distill
from .data import ReportData

MOST_DRAWN = 240  # points of the map: more hide one another
SNIPPET = 90  # characters shown on either side of a term
MOST_DISTILLED = 1_500  # target rows that the weights of the box are learnt from
LEAST_DISTILLED = 40
MOST_BYTES = 400_000  # of the box in the page
RARE = 0.25  # a term is rare if its share of labelled rows is below this part of its share of the target


def shares(X: Any) -> np.ndarray:
    """Share of rows in which each column is not zero."""
    return array_ops(X).nonzero_counts(X) / max(X.shape[0], 1)


def term_statistics(given: ReportData) -> dict[str, np.ndarray]:
    """Everything about every term that is a number, as columns."""
    source, target = (
        shares(stack_rows([domain.X for domain in domains])) for domains in (given.sources, given.target_rows)
    )
    weights = given.weights
    speaks_for = weights.argmax(axis=1)
    return {
        "source": source,
        "target": target,
        "class": speaks_for,
        "weight": weights[np.arange(len(weights)), speaks_for],
        "n_labelled": np.asarray(given.classifier.labelled_counts_),
    }


def map_points(given: ReportData, table: dict[str, np.ndarray]) -> list[dict[str, Any]]:
    """List the strongest new, shared and vanished terms in turn, for the map; plain words get names."""
    source, target = table["source"], table["target"]
    strength = np.abs(table["weight"]) * np.sqrt(np.maximum(source, target))
    is_plain = np.array([_dullness(term) == (0, 1) for term in given.terms])
    turns = []
    for group in (source == 0, (source > 0) & (target > 0), target == 0):
        terms = np.flatnonzero(group)
        terms = terms[np.argsort(-strength[terms], kind="stable")][: MOST_DRAWN // 3]
        turns += list(enumerate(terms.tolist()))
    chosen = [j for _, j in sorted(turns)]
    return [
        {
            "term": given.terms[j],
            "is_named": bool(is_plain[j]),
            "source": round(float(table["source"][j]), 6),
            "target": round(float(table["target"][j]), 6),
            "code": int(table["class"][j]),
            "weight": round(float(table["weight"][j]), 4),
            "n_labelled": int(table["n_labelled"][j]),
        }
        for j in chosen
    ]


def pattern_of(term: str) -> re.Pattern[str]:
    """Where a term stands in a document as it was written: in any case, whole or cut, signs between."""
    parts = [re.escape(word) for word in term.split(" ")]
    # "didn't" may be written "did n't" or "didn’t"
    parts = [re.sub(r"(n?)'", r"\\s?\1['’]", part) for part in parts]
    return re.compile(r"(?<!\w)" + r"[\W_]+".join(parts) + r"(?!\w)", re.IGNORECASE)


def snippet(document: str, term: str) -> str:
    """Cut a piece out of a document around a term, with `SNIPPET` characters to either side."""
    match = pattern_of(term).search(document)
    middle = match.span() if match else (0, 0)
    start, end = max(0, middle[0] - SNIPPET), min(len(document), middle[1] + SNIPPET)
    piece = " ".join(document[start:end].split())
    return ("…" if start else "") + piece + ("…" if end < len(document) else "")


def difference_terms(given: ReportData, table: dict[str, np.ndarray], k: int = 16) -> dict[str, Any]:
    """Say which terms pushed the changed rows to their new labels, and what part of it came from new ones.

    For a row that went from class a to class b, a term in it pushes by its value, less its mean over the
    domain, times the difference of its weights for b and for a. A term counts for what it pushes beyond
    what source-only gave it, and for no more than it pushes now; scores are compared in their standard
    deviations. A push is given as a share of all of them.
    """
    shape = (len(given.terms), len(given.classes))
    adapted, before = np.zeros(shape), np.zeros(shape)  # pushes toward each class
    for target in given.targets:
        X, old, new = target.rows.X, target.baseline, target.codes
        weights = [_in_deviations(w, X) for w in (given.weights, given.baseline_weights)]
        mean = np.asarray(X.mean(axis=0)).ravel()
        for a, b in np.unique(np.column_stack([old, new])[old != new], axis=0).tolist():
            rows = X[np.flatnonzero((old == a) & (new == b))]
            excess = np.asarray(rows.sum(axis=0)).ravel() - shares(rows) * rows.shape[0] * mean
            adapted[:, b] += excess * (weights[0][:, b] - weights[0][:, a])
            before[:, b] += excess * (weights[1][:, b] - weights[1][:, a])
    toward = np.minimum(adapted, adapted - before).clip(0)
    total = toward.sum(axis=1)
    forward = float(total.sum()) or 1.0
    kind = rarity(given, table)
    return {
        "new_share": float(total[kind > 0].sum()) / forward,
        "terms": [
            {
                "term": given.terms[j],
                "push": round(float(total[j]) / forward, 5),
                "class": given.classes[int(toward[j].argmax())],
                "code": int(toward[j].argmax()),
                "n_labelled": int(table["n_labelled"][j]),
                "rarity": int(kind[j]),
                "is_dull": _dullness(given.terms[j])[0] == len(given.terms[j].split(" ")),
                "target": round(float(table["target"][j]), 6),
            }
            for j in _distinct(np.argsort(-total, kind="stable"), given.terms, table, k)
            if total[j] > 0
        ],
    }


def _in_deviations(weights: np.ndarray, X: Any) -> np.ndarray:
    """Scale weights so that the scores they give to `X` have standard deviation 1."""
    deviation = float(np.mean(np.std(X @ weights, axis=0)))
    return weights / (deviation if deviation > 0 else 1.0)


def rarity(given: ReportData, table: dict[str, np.ndarray]) -> np.ndarray:
    """Say 2 for a term in no labelled row, 1 for one far rarer in them than in the target, else 0."""
    n_labelled = sum(int(domain.known.sum()) for domain in given.sources)
    labelled = table["n_labelled"] / max(n_labelled, 1)
    return np.where(table["n_labelled"] == 0, 2, np.where(labelled < RARE * table["target"], 1, 0))


def _distinct(order: np.ndarray, terms: Sequence[str], table: dict[str, np.ndarray], k: int) -> list[int]:
    """Take k terms from the front, one of those that stand in the same rows: "piping" for "stays piping"."""
    groups: dict[tuple[float, ...], list[int]] = {}
    for j in map(int, order):
        key = tuple(round(float(table[name][j]), 5) for name in ("source", "target", "weight", "n_labelled"))
        groups.setdefault(key, []).append(j)
    return [min(group, key=lambda j: _dullness(terms[j])) for group in list(groups.values())[:k]]


def _dullness(term: str) -> tuple[int, int]:
    """Number of stop words and of words: the fewer, the more a term tells alone."""
    parts = term.split(" ")
    return sum(part in ENGLISH_STOP_WORDS for part in parts), len(parts)


def find_idea(
    given: ReportData, table: dict[str, np.ndarray], difference: dict[str, Any]
) -> dict[str, Any] | None:
    """Choose the words of the picture: a labelled word, words it goes with, and a new word with its weight.

    The new word is one of those that moved predictions. The words between are labelled ones of the same class
    that the first layer expects in documents with the new word; the labelled word makes it expect them too.
    """
    stack, terms = given.classifier.representation_, given.terms
    coef, pivots = stack.layers_[0].coef, getattr(stack, "pivots_", np.arange(len(terms)))
    if given.fell_back:
        return None
    is_plain = np.array([_dullness(term) == (0, 1) and len(term) > 2 for term in terms])
    n_labelled = table["n_labelled"]
    columns = {term: j for j, term in enumerate(terms)}
    best: tuple[tuple[bool, float], int, int, list[int]] | None = None
    for j in [columns[row["term"]] for row in difference["terms"] if not row["n_labelled"]]:
        weight = given.weights[:, table["class"][j]]
        is_between = (is_plain & (n_labelled > 0))[pivots]
        links = np.where(is_between, coef[j].clip(0) * weight[pivots].clip(0), 0)
        between = [int(i) for i in np.argsort(-links, kind="stable")[:3] if links[i] > 0]
        shared = coef[:, between].clip(0) @ weight[pivots[between]]
        shared = np.where(is_plain, shared * weight.clip(0) ** 2 * np.sqrt(n_labelled), 0)
        shared[pivots[between]] = 0
        known, strength = int(shared.argmax()), (bool(is_plain[j]), float(links[between].sum()))
        if between and shared[known] > 0 and (best is None or strength > best[0]):
            best = strength, j, known, between
    if best is None:
        return None
    _, j, known, between = best
    code = int(table["class"][j])
    return {
        "class": given.classes[code],
        "code": code,
        "labelled": {"term": terms[known], "n_labelled": int(n_labelled[known])},
        "between": [
            {
                "term": terms[pivots[i]],
                "n_labelled": int(n_labelled[pivots[i]]),
                "from_labelled": round(float(coef[known, i]), 4),
                "from_new": round(float(coef[j, i]), 4),
            }
            for i in between
        ],
        "new": {"term": terms[j], "weight": round(float(table["weight"][j]), 4)},
        "example": _find_example(given, j, pivots[between].tolist()),
    }


def _find_example(given: ReportData, new: int, others: list[int]) -> str | None:
    """Return a piece of the target document with the new word in which most of the other words stand."""
    best, example = -1, None
    for target in given.target_rows:
        if target.documents is None or not sparse.issparse(target.X):
            continue
        rows = np.unique(target.X[:, [new]].nonzero()[0])[:200]
        counts = np.asarray((target.X[rows][:, others] != 0).sum(axis=1)).ravel()
        if len(rows) and counts.max() > best:
            best, example = counts.max(), target.documents[int(rows[counts.argmax()])]
    return None if example is None else snippet(example, given.terms[new])


def pack_sentence_model(given: ReportData) -> dict[str, Any] | None:
    """Pack distilled weights of all terms, with which the page scores a sentence; None where they do not fit.

    Terms are in the order of their document frequencies, which are packed as runs. Weights are whole numbers
    of a thousandth of the largest.
    """
    vectorizer, target = given.vectorizer, given.targets[0]
    is_cut_alike = getattr(vectorizer, "tokens_", None) == "words" and tuple(vectorizer.ngram_range) == (1, 2)
    if not is_cut_alike or given.fell_back or len(target.rows) < LEAST_DISTILLED:
        return None
    rows = np.sort(np.random.default_rng(0).permutation(len(target.rows))[:MOST_DISTILLED])
    X = target.rows.X[rows]
    taught = ask_teacher(given.classifier, X, target.domain)
    model, held_out, codes = distill(X / vectorizer.length, taught)
    step = float(np.abs(model.coef_).max()) / 999 or 1.0
    runs = np.unique(-vectorizer.document_frequency_, return_counts=True)
    k = model.find_target(None)
    packed = {
        "terms": "\n".join(given.terms),
        "runs": [[int(-n), int(size)] for n, size in zip(*runs, strict=True)],
        "n_documents": int(vectorizer.n_documents_),
        "weights": np.rint(model.coef_.T / step).astype(int).tolist(),
        "step": step,
        "intercept": [float(value) for value in model.intercept_[k] + model.prior_[k]],
        "temperature": float(model.temperature_),
        "classes": given.classes,
        "new": np.flatnonzero(np.asarray(given.classifier.labelled_counts_) == 0).tolist(),
        "agreement": float(np.mean(codes == taught.predicted[held_out])),
        "n_held_out": len(held_out),
    }
    return packed if len(json.dumps(packed, ensure_ascii=False).encode()) <= MOST_BYTES else None
