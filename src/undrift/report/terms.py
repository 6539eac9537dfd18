"""Terms of a report: how the vocabulary shifts, which terms made the difference, and all about each."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

from .._core import array_ops, stack_rows
from .inputs import Evidence

MOST_DRAWN = 240  # points of the map: more hide one another
SNIPPET = 90  # characters shown on either side of a term
MOST_LISTED = 2_000  # terms that can be looked up, which travel with the page
N_PARTNERS = 4
RARE = 0.25  # a term is rare if its share of labelled rows is below this part of its share of the target


def shares(X: Any) -> np.ndarray:
    """Share of rows in which each column is not zero."""
    return array_ops(X).nonzero_counts(X) / max(X.shape[0], 1)


def term_statistics(evidence: Evidence) -> dict[str, np.ndarray]:
    """Everything about every term that is a number, as columns."""
    source, target = (
        shares(stack_rows([domain.X for domain in domains]))
        for domains in (evidence.sources, evidence.targets)
    )
    weights = evidence.weights
    speaks_for = weights.argmax(axis=1)
    return {
        "source": source,
        "target": target,
        "class": speaks_for,
        "weight": weights[np.arange(len(weights)), speaks_for],
        "n_labelled": np.asarray(evidence.classifier.labelled_counts_),
        # what a term can do to the target's predictions: a strong rare word does little
        "reach": weights.max(axis=1) * np.sqrt(target),
    }


def map_points(evidence: Evidence, table: dict[str, np.ndarray]) -> list[dict[str, Any]]:
    """List the strongest new, shared and vanished terms in turn, for the map; plain words get names."""
    source, target = table["source"], table["target"]
    strength = np.abs(table["weight"]) * np.sqrt(np.maximum(source, target))
    is_plain = np.array([_dullness(term) == (0, 1) for term in evidence.terms])
    turns = []
    for group in (source == 0, (source > 0) & (target > 0), target == 0):
        terms = np.flatnonzero(group)
        terms = terms[np.argsort(-strength[terms], kind="stable")][: MOST_DRAWN // 3]
        turns += list(enumerate(terms.tolist()))
    chosen = [j for _, j in sorted(turns)]
    return [
        {
            "term": evidence.terms[j],
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


def difference_terms(evidence: Evidence, table: dict[str, np.ndarray], k: int = 16) -> dict[str, Any]:
    """Say which terms pushed the changed rows to their new labels, and what part of it came from new ones.

    For a row that went from class a to class b, a term in it pushes by its value, less its mean over the
    domain, times the difference of its weights for b and for a. A term counts for what it pushes beyond
    what source-only gave it, and for no more than it pushes now; scores are compared in their standard
    deviations. A push is given as a share of all of them.
    """
    shape = (len(evidence.terms), len(evidence.classes))
    adapted, before = np.zeros(shape), np.zeros(shape)  # pushes toward each class
    for target in evidence.targets:
        old, new = evidence.source_only_codes[target.number], evidence.adapted_codes[target.number]
        weights = [_in_deviations(w, target.X) for w in (evidence.weights, evidence.source_only_weights)]
        mean = np.asarray(target.X.mean(axis=0)).ravel()
        for a, b in np.unique(np.column_stack([old, new])[old != new], axis=0).tolist():
            rows = target.X[np.flatnonzero((old == a) & (new == b))]
            excess = np.asarray(rows.sum(axis=0)).ravel() - shares(rows) * rows.shape[0] * mean
            adapted[:, b] += excess * (weights[0][:, b] - weights[0][:, a])
            before[:, b] += excess * (weights[1][:, b] - weights[1][:, a])
    toward = np.minimum(adapted, adapted - before).clip(0)
    total = toward.sum(axis=1)
    forward = float(total.sum()) or 1.0
    kind = rarity(evidence, table)
    return {
        "new_share": float(total[kind > 0].sum()) / forward,
        "terms": [
            {
                "term": evidence.terms[j],
                "push": round(float(total[j]) / forward, 5),
                "class": evidence.classes[int(toward[j].argmax())],
                "code": int(toward[j].argmax()),
                "n_labelled": int(table["n_labelled"][j]),
                "rarity": int(kind[j]),
                "is_dull": _dullness(evidence.terms[j])[0] == len(evidence.terms[j].split(" ")),
                "target": round(float(table["target"][j]), 6),
            }
            for j in _distinct(np.argsort(-total, kind="stable"), evidence.terms, table, k)
            if total[j] > 0
        ],
    }


def _in_deviations(weights: np.ndarray, X: Any) -> np.ndarray:
    """Scale weights so that the scores they give to `X` have standard deviation 1."""
    deviation = float(np.mean(np.std(X @ weights, axis=0)))
    return weights / (deviation if deviation > 0 else 1.0)


def rarity(evidence: Evidence, table: dict[str, np.ndarray]) -> np.ndarray:
    """Say 2 for a term in no labelled row, 1 for one far rarer in them than in the target, else 0."""
    n_labelled = sum(int(domain.known.sum()) for domain in evidence.sources)
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


def term_browser(evidence: Evidence, table: dict[str, np.ndarray]) -> dict[str, Any]:
    """Pack the terms of the browser: names once, partners by their number among the names."""
    order = np.argsort(-table["reach"], kind="stable")[:MOST_LISTED]
    stack = evidence.classifier.representation_
    coef, pivots = stack.layers_[0].coef, getattr(stack, "pivots_", np.arange(len(evidence.terms)))
    names: dict[int, int] = {int(j): i for i, j in enumerate(order)}
    column = {int(j): i for i, j in enumerate(pivots)}
    every = np.arange(len(evidence.terms))
    sources = {j: _strongest(coef[:, column[j]], every, j) for j in map(int, order) if j in column}
    reached = {j: _strongest(coef[j], pivots, j) for j in map(int, order)}

    def pack(partners: list[tuple[int, float]]) -> list[float]:
        return [
            number for j, weight in partners for number in (names.setdefault(j, len(names)), round(weight, 3))
        ]

    rows = [
        [
            int(table["class"][j]),
            round(float(table["weight"][j]), 4),
            int(table["n_labelled"][j]),
            float(f"{table['source'][j]:.3g}"),
            float(f"{table['target'][j]:.3g}"),
            pack(sources.get(j, [])),
            pack(reached.get(j, [])),
        ]
        for j in map(int, order)
    ]
    return {
        "n_terms": len(evidence.terms),
        "n_listed": len(rows),
        "reconstructs": len(pivots) == len(evidence.terms),
        "classes": evidence.classes,
        "names": [evidence.terms[j] for j in names],
        "rows": rows,
    }


def _strongest(weights: np.ndarray, features: np.ndarray, excluded: int) -> list[tuple[int, float]]:
    """Return the features of the largest positive weights, with these; without the feature `excluded`."""
    k = min(N_PARTNERS + 1, len(weights))
    rounded = weights.round(5)  # so that equal ones are in one order on every machine, that of `explain`
    best = np.flatnonzero(rounded >= np.partition(rounded, -k)[-k])
    best = best[np.argsort(-rounded[best], kind="stable")][:k]
    pairs = [(int(features[i]), float(weights[i])) for i in best if weights[i] > 0]
    return [pair for pair in pairs if pair[0] != excluded][:N_PARTNERS]


def strongest_terms(
    evidence: Evidence, table: dict[str, np.ndarray], browser: dict[str, Any], k: int = 20
) -> list[dict[str, Any]]:
    """List far-reaching terms of each class, half of them in no labelled row: for use without a script."""
    rows, order = [], np.argsort(-table["reach"], kind="stable")[:MOST_LISTED]
    place = {int(j): i for i, j in enumerate(order)}
    for code in range(len(evidence.classes)):
        terms = order[table["class"][order] == code]
        is_new = table["n_labelled"][terms] == 0
        for group in (terms[~is_new], terms[is_new]):
            for j in _distinct(group, evidence.terms, table, k // 2):
                _, weight, n_labelled, source, target, partners, _ = browser["rows"][place[j]]
                names = [browser["names"][partner] for partner in partners[::2]]
                rows.append(
                    {
                        "term": evidence.terms[j], "class": evidence.classes[code], "weight": weight,
                        "n_labelled": n_labelled, "source": source, "target": target, "from": names,
                    }
                )  # fmt: skip
    return rows


def find_idea(
    evidence: Evidence, table: dict[str, np.ndarray], difference: dict[str, Any]
) -> dict[str, Any] | None:
    """Choose the words of the picture: a labelled word, words it goes with, and a new word with its weight.

    The new word is one of those that moved predictions. The words between are labelled ones of the same class
    that the first layer expects in documents with the new word; the labelled word makes it expect them too.
    """
    stack, terms = evidence.classifier.representation_, evidence.terms
    coef, pivots = stack.layers_[0].coef, getattr(stack, "pivots_", np.arange(len(terms)))
    if evidence.fell_back:
        return None
    is_plain = np.array([_dullness(term) == (0, 1) and len(term) > 2 for term in terms])
    n_labelled = table["n_labelled"]
    columns = {term: j for j, term in enumerate(terms)}
    best: tuple[tuple[bool, float], int, int, list[int]] | None = None
    for j in [columns[row["term"]] for row in difference["terms"] if not row["n_labelled"]]:
        weight = evidence.weights[:, table["class"][j]]
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
        "class": evidence.classes[code],
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
        "example": _find_example(evidence, j, pivots[between].tolist()),
    }


def _find_example(evidence: Evidence, new: int, others: list[int]) -> str | None:
    """Return a piece of the target document with the new word in which most of the other words stand."""
    best, example = -1, None
    for target in evidence.targets:
        if target.documents is None or not sparse.issparse(target.X):
            continue
        rows = np.unique(target.X[:, [new]].nonzero()[0])[:200]
        counts = np.asarray((target.X[rows][:, others] != 0).sum(axis=1)).ravel()
        if len(rows) and counts.max() > best:
            best, example = counts.max(), target.documents[int(rows[counts.argmax()])]
    return None if example is None else snippet(example, evidence.terms[new])
