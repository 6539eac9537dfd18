"""Documents whose prediction changed, and what every word contributes to their scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from ..explain import score_contributions
from .inputs import DomainRows, Evidence
from .terms import pattern_of

MOST_DOCUMENTS = 6
MOST_CHARACTERS = 560
N_NAMED = 5  # words whose contribution is written out
DIGITS = 3


def changed_documents(evidence: Evidence) -> dict[str, Any]:
    """Choose a few of the changed documents, the surest first, and say what each word contributes."""
    n_changed, shown = 0, []
    for target in evidence.targets:
        old, new = evidence.source_only_codes[target.number], evidence.adapted_codes[target.number]
        changed = np.flatnonzero(old != new)
        n_changed += len(changed)
        chosen = _choose_rows(evidence, target, changed, MOST_DOCUMENTS // len(evidence.targets) or 1)
        if chosen:
            shown += _explain_rows(evidence, target, np.array(chosen), old[chosen], new[chosen])
    return {"n_changed": n_changed, "documents": shown}


def _choose_rows(evidence: Evidence, target: DomainRows, changed: np.ndarray, n: int) -> list[int]:
    """Choose rows to show: surest first, of middling length, each text once, outcomes in true proportion."""
    by_certainty = changed[np.argsort(-evidence.certainty(target.number)[changed], kind="stable")].tolist()
    order = [i for i in by_certainty if 6 <= _n_terms(target.X, i) <= 110] or by_certainty
    known = [i for i in order if evidence.truth[target.number][i] >= 0]
    if known:
        spoilt = [i for i in known if _outcome(evidence, target, i) == "became wrong"]
        others = [i for i in known if i not in set(spoilt)]
        places = [((k + 0.5) / len(group), i) for group in (others, spoilt) for k, i in enumerate(group)]
        order = [i for _, i in sorted(places)]
    if target.documents is not None:
        order = list({target.documents[i]: i for i in reversed(order)}.values())[::-1]
    return order[:n]


def _n_terms(X: Any, i: int) -> int:
    return int(X.indptr[i + 1] - X.indptr[i]) if sparse.issparse(X) else int(np.count_nonzero(X[i]))


def _outcome(evidence: Evidence, target: DomainRows, i: int) -> str | None:
    """Say what became of a row whose truth is known: corrected, became wrong, or still wrong."""
    truth, *codes = (
        of[target.number][i] for of in (evidence.truth, evidence.adapted_codes, evidence.source_only_codes)
    )
    if truth < 0:
        return None
    return "corrected" if truth == codes[0] else "became wrong" if truth == codes[1] else "still wrong"


def _explain_rows(
    evidence: Evidence, target: DomainRows, rows: np.ndarray, old: np.ndarray, new: np.ndarray
) -> list[dict[str, Any]]:
    """Divide the score of every row among its words: with two classes the score, else its lead over `old`."""
    X, n_classes = target.X[rows], len(evidence.classes)
    identity = np.ones((2, 1)) * [[-1], [1]] / 2 if n_classes == 2 else np.eye(n_classes)
    direction = identity[new] - identity[old]
    base, contributions = score_contributions(
        evidence.classifier, X, direction, sample_domain=evidence.domain_of(target, len(rows))
    )
    return [
        _describe(evidence, target, int(i), float(base[k]), contributions[k], (int(old[k]), int(new[k])))
        for k, i in enumerate(rows)
    ]


def _describe(
    evidence: Evidence,
    target: DomainRows,
    i: int,
    base: float,
    contributions: np.ndarray,
    codes: tuple[int, int],
) -> dict[str, Any]:
    n_labelled = evidence.classifier.labelled_counts_
    words = [
        {
            "term": evidence.terms[j],
            "contribution": round(float(contributions[j]), DIGITS),
            "code": codes[int(contributions[j] > 0)],
            "is_new": not n_labelled[j],
        }
        for j in np.argsort(-np.abs(contributions), kind="stable")
        if contributions[j] != 0
    ]
    score, start = round(base + float(contributions.sum()), DIGITS), round(base, DIGITS)
    rest = score - start - sum(word["contribution"] for word in words[:N_NAMED])
    document = None if target.documents is None else target.documents[i]
    return {
        "domain": target.name,
        "row": i + 1,
        "codes": list(codes),
        "from": evidence.classes[codes[0]],
        "to": evidence.classes[codes[1]],
        "probability": float(evidence.certainty(target.number)[i]),
        "outcome": _outcome(evidence, target, i),
        "start": start,
        "words": words[:N_NAMED],
        "n_others": max(len(words) - N_NAMED, 0),
        "others": round(rest, DIGITS),
        "score": score,
        "pieces": [] if document is None else pieces(document[:MOST_CHARACTERS], words),
        "is_cut": document is not None and len(document) > MOST_CHARACTERS,
    }


def pieces(document: str, words: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
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
