"""Documents whose prediction changed, and the words that moved it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from .._inputs import spell_label
from ..explain import document_terms
from .inputs import DomainRows, Evidence
from .terms import pattern_of

MOST_DOCUMENTS = 12
MOST_TERMS = 600  # of all documents together: each costs one pass through all layers
MOST_CHARACTERS = 1_200
N_MOVERS = 8


def changed_documents(evidence: Evidence) -> dict[str, Any]:
    """Choose a few of the changed documents, and mark in each the words that moved it."""
    n_changed, shown, budget = 0, [], MOST_TERMS
    for target in evidence.targets:
        old, new = evidence.source_only_codes[target.number], evidence.adapted_codes[target.number]
        changed = np.flatnonzero(old != new)
        n_changed += len(changed)
        quota = MOST_DOCUMENTS // len(evidence.targets) or 1
        seen: set[str] = set()
        for i in _rank_rows(evidence, target, changed):
            n_terms = _n_terms(target.X, i)
            if quota == 0 or n_terms > budget:
                break
            if target.documents is not None and target.documents[i] in seen:
                continue
            seen.add(str(i) if target.documents is None else target.documents[i])
            explained = _explain_row(evidence, target, int(i), int(old[i]), int(new[i]))
            if explained:
                shown.append(explained)
                quota, budget = quota - 1, budget - n_terms
    return {"n_changed": n_changed, "documents": shown}


def _n_terms(X: Any, i: int) -> int:
    return int(X.indptr[i + 1] - X.indptr[i]) if sparse.issparse(X) else int(np.count_nonzero(X[i]))


def _rank_rows(evidence: Evidence, target: DomainRows, changed: np.ndarray) -> list[int]:
    """Order changed rows for reading: most certain first, of middling length, both outcomes mixed."""
    certainty = np.abs(evidence.scores[target.number][changed])
    sizes = np.array([_n_terms(target.X, i) for i in changed])
    order = [int(i) for i in changed[np.argsort(-certainty, kind="stable")]]
    readable = {int(i) for i, size in zip(changed, sizes, strict=True) if 6 <= size <= 110}
    order = [i for i in order if i in readable] or order
    known = [i for i in order if target.known[i]]
    return _interleave(evidence, target, known) if known else order


def _interleave(evidence: Evidence, target: DomainRows, order: list[int]) -> list[int]:
    """Mix corrected rows and rows that became wrong in their true proportion."""
    corrected = [i for i in order if _outcome(evidence, target, i) != "became wrong"]
    spoilt = [i for i in order if _outcome(evidence, target, i) == "became wrong"]
    places = [((n + 0.5) / len(part), i) for part in (corrected, spoilt) for n, i in enumerate(part)]
    return [i for _, i in sorted(places)]


def _outcome(evidence: Evidence, target: DomainRows, i: int) -> str | None:
    """Say what became of a row whose truth is known: corrected, became wrong, or still wrong."""
    truth = _truth(target, i)
    if truth is None:
        return None
    if truth == evidence.classes[evidence.adapted_codes[target.number][i]]:
        return "corrected"
    return (
        "became wrong"
        if truth == evidence.classes[evidence.source_only_codes[target.number][i]]
        else "still wrong"
    )


def _truth(target: DomainRows, i: int) -> str | None:
    return spell_label(target.labels[i]) if target.labels is not None and target.known[i] else None


def _explain_row(evidence: Evidence, target: DomainRows, i: int, old: int, new: int) -> dict[str, Any] | None:
    x = target.X[[i]]
    if len(evidence.targets) > 1 and spell_label(evidence.classifier.predict(x)[0]) != evidence.classes[new]:
        return None  # explanations are of the targets pooled, where this row is on the other side
    movers = document_terms(evidence.classifier, evidence.terms, x, 2 * N_MOVERS)
    movers = [mover | {"effect": round(mover["effect"], 4)} for mover in movers]
    document = None if target.documents is None else target.documents[i]
    return {
        "domain": target.name,
        "row": i + 1,
        "from": evidence.classes[old],
        "to": evidence.classes[new],
        "score": round(float(evidence.scores[target.number][i]), 3),
        "truth": _truth(target, i),
        "outcome": _outcome(evidence, target, i),
        "movers": movers[:N_MOVERS],
        "pieces": [] if document is None else pieces(document[:MOST_CHARACTERS], movers),
        "cut": document is not None and len(document) > MOST_CHARACTERS,
    }


def pieces(document: str, movers: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Cut a document into plain pieces and terms that moved it; a stronger term goes before a weaker one."""
    taken: list[tuple[int, int, dict[str, Any]]] = []
    for mover in movers:
        for match in pattern_of(mover["term"]).finditer(document):
            start, end = match.span()
            if all(end <= other_start or start >= other_end for other_start, other_end, _ in taken):
                taken.append((start, end, mover))
    largest = max((abs(mover["effect"]) for mover in movers), default=0) or 1
    parts: list[dict[str, Any]] = []
    place = 0
    for start, end, mover in sorted(taken, key=lambda match: match[0]):
        strength = abs(mover["effect"]) / largest
        parts.append({"text": document[place:start]})
        parts.append(
            {
                "text": document[start:end],
                "effect": mover["effect"],
                "strength": 3 if strength > 0.6 else 2 if strength > 0.25 else 1,
                "new": not mover["n_labelled"],
            }
        )
        place = end
    return [piece for piece in [*parts, {"text": document[place:]}] if piece["text"]]
