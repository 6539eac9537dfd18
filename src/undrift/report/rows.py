"""Rows that the page shows: documents whose prediction changed, and rows to label."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from ..explain import score_contributions
from ..method import choose_for_estimate
from .data import ReportData, Target
from .terms import pattern_of

MOST_DOCUMENTS = 6
MOST_SHOWN = 560  # characters of a changed document
N_NAMED = 5  # words whose contribution is written out
DIGITS = 3
N_ESTIMATE, N_PREDICTIONS = 60, 40
N_COMPARED = 160  # of the least certain rows
MOST_CHARACTERS = 250_000  # of the texts of a deck, which travel with the page


def explain_changes(given: ReportData) -> dict[str, Any]:
    """Choose a few documents whose prediction changed, the surest first, and divide their scores."""
    shown = []
    for target in given.targets:
        chosen = _choose_rows(target, MOST_DOCUMENTS // len(given.targets) or 1)
        shown += _explain_rows(given, target, np.array(chosen)) if chosen else []
    n_changed = sum(int(target.is_changed.sum()) for target in given.targets)
    return {"n_changed": n_changed, "documents": shown}


def _choose_rows(target: Target, n: int) -> list[int]:
    """Choose rows to show: surest first, of middling length, each text once, outcomes in true proportion."""
    changed = np.flatnonzero(target.is_changed)
    by_certainty = changed[np.argsort(-target.certainty[changed], kind="stable")].tolist()
    order = [i for i in by_certainty if 6 <= _count_terms(target.rows.X, i) <= 110] or by_certainty
    known = [i for i in order if target.is_scored[i]]
    if known:
        spoilt = [i for i in known if _name_outcome(target, i) == "became wrong"]
        others = [i for i in known if i not in set(spoilt)]
        places = [((k + 0.5) / len(group), i) for group in (others, spoilt) for k, i in enumerate(group)]
        order = [i for _, i in sorted(places)]
    documents = target.rows.documents
    if documents is not None:
        order = list({documents[i]: i for i in reversed(order)}.values())[::-1]
    return order[:n]


def _count_terms(X: Any, i: int) -> int:
    return int(X.indptr[i + 1] - X.indptr[i]) if sparse.issparse(X) else int(np.count_nonzero(X[i]))


def _name_outcome(target: Target, i: int) -> str | None:
    """Say what became of a row whose truth is known: corrected, became wrong, or still wrong."""
    if not target.is_scored[i]:
        return None
    if target.truth[i] == target.codes[i]:
        return "corrected"
    return "became wrong" if target.truth[i] == target.baseline[i] else "still wrong"


def _explain_rows(given: ReportData, target: Target, rows: np.ndarray) -> list[dict[str, Any]]:
    """Divide the score of every row among its words: with two classes the score, else its lead."""
    n_classes, old, new = len(given.classes), target.baseline[rows], target.codes[rows]
    identity = np.ones((2, 1)) * [[-1], [1]] / 2 if n_classes == 2 else np.eye(n_classes)
    direction = identity[new] - identity[old]
    base, parts = score_contributions(given.classifier, target.rows.X[rows], direction, target=target.domain)
    return [_describe_row(given, target, int(i), float(base[k]), parts[k]) for k, i in enumerate(rows)]


def _describe_row(
    given: ReportData, target: Target, i: int, base: float, contributions: np.ndarray
) -> dict[str, Any]:
    codes = int(target.baseline[i]), int(target.codes[i])
    words = [
        {
            "term": given.terms[j],
            "contribution": round(float(contributions[j]), DIGITS),
            "code": codes[int(contributions[j] > 0)],
            "is_new": not given.classifier.labelled_counts_[j],
        }
        for j in np.argsort(-np.abs(contributions), kind="stable")
        if contributions[j] != 0
    ]
    score, start = round(base + float(contributions.sum()), DIGITS), round(base, DIGITS)
    rest = score - start - sum(word["contribution"] for word in words[:N_NAMED])
    document = None if target.rows.documents is None else target.rows.documents[i]
    return {
        "domain": target.rows.name,
        "row": i + 1,
        "codes": list(codes),
        "from": given.classes[codes[0]],
        "to": given.classes[codes[1]],
        "probability": float(target.certainty[i]),
        "outcome": _name_outcome(target, i),
        "start": start,
        "words": words[:N_NAMED],
        "n_others": max(len(words) - N_NAMED, 0),
        "others": round(rest, DIGITS),
        "score": score,
        "pieces": [] if document is None else cut_pieces(document[:MOST_SHOWN], words),
        "is_cut": document is not None and len(document) > MOST_SHOWN,
    }


def cut_pieces(document: str, words: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Cut a document into plain pieces and its terms; a stronger term goes before a weaker one."""
    largest = max((abs(word["contribution"]) for word in words), default=0) or 1
    taken: list[tuple[int, int, dict[str, Any]]] = []
    for word in words:
        strength = abs(word["contribution"]) / largest
        if strength < 0.08:
            break
        for match in pattern_of(word["term"]).finditer(document):
            start, end = match.span()
            if all(end <= other_start or start >= other_end for other_start, other_end, _ in taken):
                level = 3 if strength > 0.6 else 2 if strength > 0.25 else 1
                taken.append((start, end, word | {"strength": level}))
    parts, place = [], 0
    for start, end, word in sorted(taken, key=lambda match: match[0]):
        look = {name: word[name] for name in ("code", "strength", "is_new")}
        parts += [{"text": document[place:start]}, {"text": document[start:end], **look}]
        place = end
    return [piece for piece in [*parts, {"text": document[place:]}] if piece["text"]]


Drawn = tuple[Target, int, float]  # a row of a target, and how many rows it stands for


def make_decks(given: ReportData) -> dict[str, Any] | None:
    """Draw rows to label from the target rows without a label; None where there are none.

    The deck "estimate" is a random sample that measures the error, the deck "predictions" has doubtful rows
    to learn from. A row is its text, its predicted class, the baseline's, and its weight: the number of
    target rows that it stands for in an estimate, 0 for rows of the second deck.
    """
    pools = [(target, _list_unlabelled(target)) for target in given.targets]
    n_rows = sum(len(pool) for _, pool in pools)
    if not n_rows:
        return None
    estimate = _draw_estimate(pools, n_rows)
    asked = _draw_doubtful(given, pools, {(id(target), i) for target, i, _ in estimate})
    return {
        "columns": list(given.facts.text_columns),
        "classes": given.classes,
        "n_rows": n_rows,
        "changed_share": sum(int(target.is_changed[pool].sum()) for target, pool in pools) / n_rows,
        "estimate": _write_deck(estimate),
        "predictions": _write_deck(asked),
    }


def _list_unlabelled(target: Target) -> np.ndarray:
    """Return the rows of a target that have a text and no label."""
    documents = target.rows.documents
    rows = [] if documents is None else np.flatnonzero(~target.rows.known).tolist()
    return np.array([i for i in rows if documents[i].strip()], dtype=int)  # type: ignore[index]


def _draw_estimate(pools: list[tuple[Target, np.ndarray]], n_rows: int) -> list[Drawn]:
    """Draw a random sample, stratified by target and by whether the prediction changed.

    Changed rows tell whether adaptation helped, all rows tell how many are wrong.
    """
    rng, drawn = np.random.RandomState(0), list[Drawn]()
    for target, pool in pools:
        if len(pool):
            n, once = max(round(N_ESTIMATE * len(pool) / n_rows), 2), np.ones(len(pool))
            rows, weights = choose_for_estimate(target.is_changed[pool], once, n, rng)
            drawn += zip([target] * len(rows), pool[rows].tolist(), weights.tolist(), strict=True)
    return [drawn[i] for i in rng.permutation(len(drawn))]


def _draw_doubtful(
    given: ReportData, pools: list[tuple[Target, np.ndarray]], taken: set[tuple[int, int]]
) -> list[Drawn]:
    """Take the rows most worth learning from, each text once, none of the other deck.

    The classifier chooses among the least certain rows of each target; where it cannot, these are taken.
    """
    rows: list[Drawn] = []
    n = N_PREDICTIONS // len(pools) or 1
    for target, pool in pools:
        free = [i for i in pool.tolist() if (id(target), i) not in taken]
        order = sorted(free, key=lambda i: target.certainty[i])[: N_COMPARED // len(pools)]
        documents = target.rows.documents or []
        first = np.array(list({documents[i]: i for i in reversed(order)}.values())[::-1], dtype=int)
        if len(first) > n and getattr(given.classifier, "update_state_", None) is not None:
            asked = given.classifier.ask(target.rows.X[first], n, target=target.domain, random_state=0)
            first = first[asked]
        rows += [(target, int(i), 0.0) for i in first[:n]]
    return rows


def _write_deck(drawn: list[Drawn]) -> list[list[Any]]:
    """Write the rows of a deck; it ends where its texts become too long for a page."""
    deck: list[list[Any]] = []
    n_characters = 0
    for target, i, weight in drawn:
        text = target.rows.documents[i]  # type: ignore[index]
        n_characters += len(text)
        if n_characters > MOST_CHARACTERS and deck:
            break
        deck.append([text, int(target.codes[i]), int(target.baseline[i]), round(weight, 4)])
    return deck
