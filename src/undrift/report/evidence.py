"""Words and documents of a report: what moved predictions, how a new word gets its weight, what changed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

from ..core import array_ops
from ..explain import score_contributions
from ..results import bound_shares
from .data import PredictedRows, ReportData, Word, shares

N_DIFFERENCE = 16  # terms that pushed changed rows
LEAST_WORD_ROWS = 10  # labelled rows with a word of the picture
CLEAR_WORD, CLEAR_BETWEEN = 0.5, 0.2  # of the way from the class's share to 1, by a word's share
MOST_DOCUMENTS = 6
MOST_SHOWN = 560  # characters of a changed document
N_NAMED = 5  # words whose contribution is written out
LEAST_STRENGTH = 0.08  # of a word that is marked in a document, beside the strongest


@dataclass(frozen=True)
class Difference:
    """Terms that moved the changed predictions, and the part of new terms in it."""

    new_share: float
    terms: Sequence[Word]  # the effect is a share of the whole one


def difference_terms(given: ReportData) -> Difference:
    """List the terms that moved the changed predictions, and the part of new terms in it.

    For a row that went from class a to class b, a term in it pushes by its value, less its mean over the
    domain, times the difference of its weights for b and for a. A term counts for what it pushes beyond
    what source-only gave it, and for no more than it pushes now; scores are compared in their standard
    deviations. A push is given as a share of all of them.
    """
    shape = (len(given.terms), len(given.classes))
    adapted, before = np.zeros(shape), np.zeros(shape)  # pushes toward each class
    for target in given.targets:
        X, old, new = target.rows.X, target.baseline, target.codes
        both = given.weights, given.baseline_weights
        weights = [w / (float(np.mean(np.std(X @ w, axis=0))) or 1.0) for w in both]
        mean = np.asarray(X.mean(axis=0)).ravel()
        for a, b in np.unique(np.column_stack([old, new])[old != new], axis=0).tolist():
            rows = X[np.flatnonzero((old == a) & (new == b))]
            excess = np.asarray(rows.sum(axis=0)).ravel() - shares(rows) * rows.shape[0] * mean
            adapted[:, b] += excess * (weights[0][:, b] - weights[0][:, a])
            before[:, b] += excess * (weights[1][:, b] - weights[1][:, a])
    toward = np.minimum(adapted, adapted - before).clip(0)
    total = toward.sum(axis=1)
    forward = float(total.sum()) or 1.0
    # of terms that stand in the same rows one is told: "piping" for "stays piping"
    table = given.statistics
    columns = [table["source"], table["target"], given.weights.max(axis=1), table["n_labelled"]]
    groups: dict[tuple[float, ...], list[int]] = {}
    for j in np.argsort(-total, kind="stable").tolist():
        groups.setdefault(tuple(round(float(column[j]), 5) for column in columns), []).append(j)
    told = [min(group, key=lambda j: measure_dullness(given.terms[j])) for group in groups.values()]
    return Difference(
        float(total[table["rarity"] > 0].sum()) / forward,
        [
            given.word(j, int(toward[j].argmax()), round(float(total[j]) / forward, 5))
            for j in told[:N_DIFFERENCE]
            if total[j] > 0
        ],
    )


def measure_dullness(term: str) -> tuple[int, int]:
    """Count the stop words and words of a term; a term with few is more informative."""
    parts = term.split(" ")
    return sum(part in ENGLISH_STOP_WORDS for part in parts), len(parts)


@dataclass(frozen=True)
class Idea:
    """How a new word gets its weight: from a labelled word, by words that both go with."""

    code: int  # of the class that all speak for
    labelled: Word
    between: Sequence[Word]
    new: Word
    links: Sequence[tuple[float, float]]  # of the labelled and of the new word with each one between


def find_idea(given: ReportData, difference: Difference) -> Idea | None:
    """Choose the words of the picture: a labelled word, words it goes with, and a new word with its weight.

    The new word is one of those that moved predictions. The words between are labelled ones of the same class
    that the first layer expects in documents with the new word; the labelled word makes it expect them too.
    Labelled words stand in enough labelled rows, most of them of that class, and no word is a stop word. None
    where there are no such words.
    """
    stack, terms = given.classifier.representation_, given.terms
    coef, pivots = stack.layers_[0].coef, getattr(stack, "pivots_", np.arange(len(terms)))
    is_plain = np.array(
        [measure_dullness(term) == (0, 1) and len(term) > 2 and term.isalpha() for term in terms]
    )
    columns = {term: j for j, term in enumerate(terms)}
    for j in [columns[word.term] for word in difference.terms if not word.n_labelled]:
        if not is_plain[j]:
            continue
        code = int(given.weights[j].argmax())
        weight = given.weights[:, code]
        n_rows, least, share = count_words(given, code)
        is_enough = is_plain & (n_rows >= LEAST_WORD_ROWS)
        is_between = (is_enough & (least >= share + CLEAR_BETWEEN * (1 - share)))[pivots]
        links = np.where(is_between, coef[j].clip(0) * weight[pivots].clip(0), 0)
        between = [int(i) for i in np.argsort(-links, kind="stable")[:3] if links[i] > 0]
        shared = coef[:, between].clip(0) @ weight[pivots[between]]
        is_known = is_enough & (least >= share + CLEAR_WORD * (1 - share))
        shared = np.where(is_known, shared * weight.clip(0) ** 2 * np.sqrt(n_rows), 0)
        shared[pivots[between]] = 0
        known = int(shared.argmax())
        if len(between) > 1 and shared[known] > 0:
            labelled, *middle, new = (
                given.word(i, code, round(float(weight[i]), 4)) for i in (known, *pivots[between].tolist(), j)
            )
            both = [(round(float(coef[known, i]), 4), round(float(coef[j, i]), 4)) for i in between]
            return Idea(code, labelled, middle, new, both)
    return None


def count_words(given: ReportData, code: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Count for every term the labelled source rows with it, and bound the share of them that is of a class.

    The bound is the lower end of the 95% interval. The last number is the share of all labelled source rows.
    """
    X, y = given.labelled_rows
    is_of_class = y == given.classes[code]
    n_rows, n_of_class = (
        array_ops(rows).nonzero_counts(rows) for rows in (X, X[np.flatnonzero(is_of_class)])
    )
    n = np.maximum(n_rows, 1)
    return n_rows, bound_shares(n_of_class / n, n)[0], float(is_of_class.mean())


def explain_changes(given: ReportData) -> list[dict[str, object]]:
    """Choose a few documents with changed predictions, the surest first, and divide their scores.

    With two classes the score is divided among the words, with more the lead of the new class over the old.
    """
    shown = []
    n_classes = len(given.classes)
    outputs = np.ones((2, 1)) * [[-1], [1]] / 2 if n_classes == 2 else np.eye(n_classes)
    for target in given.targets:
        rows = np.array(_choose_rows(target, MOST_DOCUMENTS // len(given.targets) or 1), dtype=int)
        if not len(rows):
            continue
        direction = outputs[target.codes[rows]] - outputs[target.baseline[rows]]
        X = target.rows.X[rows]
        base, parts = score_contributions(given.classifier, X, direction, target=target.domain)
        shown += [
            _describe_change(given, target, i, float(base[k]), parts[k]) for k, i in enumerate(rows.tolist())
        ]
    return shown


def _choose_rows(target: PredictedRows, n: int) -> list[int]:
    """Choose rows to show: surest first, each text once, outcomes in true proportion."""
    changed = np.flatnonzero(target.is_changed)
    order = changed[np.argsort(-target.certainty[changed], kind="stable")].tolist()
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


def _name_outcome(target: PredictedRows, i: int) -> str | None:
    """Say what became of a row whose truth is known: corrected, became wrong, or still wrong."""
    if not target.is_scored[i]:
        return None
    if target.truth[i] == target.codes[i]:
        return "corrected"
    return "became wrong" if target.truth[i] == target.baseline[i] else "still wrong"


def _describe_change(
    given: ReportData, target: PredictedRows, i: int, base: float, contributions: np.ndarray
) -> dict[str, object]:
    """Describe a document whose prediction changed; what is written of its score adds up."""
    codes = int(target.baseline[i]), int(target.codes[i])
    words = [
        given.word(j, codes[int(contributions[j] > 0)], round(float(contributions[j]), 3))
        for j in np.argsort(-np.abs(contributions), kind="stable").tolist()
        if contributions[j] != 0
    ]
    score, start = round(base + float(contributions.sum()), 3), round(base, 3)
    document = None if target.rows.documents is None else _close_gaps(target.rows.documents[i])
    return {
        "domain": target.name,
        "row": i + 1,
        "codes": codes,
        "from": given.classes[codes[0]],
        "to": given.classes[codes[1]],
        "probability": float(target.certainty[i]),
        "outcome": _name_outcome(target, i),
        "start": start,  # score of an empty document
        "words": words[:N_NAMED],
        "n_others": max(len(words) - N_NAMED, 0),
        "others": round(score - start - sum(word.effect for word in words[:N_NAMED]), 3),
        "score": score,
        "pieces": [] if document is None else cut_pieces(document[:MOST_SHOWN], words),
        "is_cut": document is not None and len(document) > MOST_SHOWN,
    }


def _close_gaps(document: str) -> str:
    """Return a document without empty lines, which would push the rest from the screen."""
    return re.sub(r"\s*\n\s*", "\n", document.strip())


def cut_pieces(document: str, words: Sequence[Word]) -> list[dict[str, object]]:
    """Cut a document into plain pieces and its terms; a stronger term goes before a weaker one."""
    largest = max((abs(word.effect) for word in words), default=0) or 1
    taken: dict[tuple[int, int], dict[str, object]] = {}
    for word in words:
        strength = abs(word.effect) / largest
        if strength < LEAST_STRENGTH:
            break
        look = {
            "code": word.code,
            "strength": 3 if strength > 0.6 else 2 if strength > 0.25 else 1,
            "is_new": not word.n_labelled,
        }
        for match in pattern_of(word.term).finditer(document):
            start, end = match.span()
            if all(end <= other_start or start >= other_end for other_start, other_end in taken):
                taken[start, end] = {"text": match[0], **look}
    pieces: list[dict[str, object]] = []
    place = 0
    for (start, end), piece in sorted(taken.items(), key=lambda item: item[0]):
        pieces += [{"text": document[place:start]}, piece]
        place = end
    pieces.append({"text": document[place:]})
    return [piece for piece in pieces if piece["text"]]


def pattern_of(term: str) -> re.Pattern[str]:
    """Build the pattern that finds a term in a document, in any case, with signs between its words."""
    parts = [re.escape(word) for word in term.split(" ")]
    # "didn't" may be written "did n't" or "didn’t"
    parts = [re.sub(r"(n?)'", r"\\s?\1['’]", part) for part in parts]
    return re.compile(r"(?<!\w)" + r"[\W_]+".join(parts) + r"(?!\w)", re.IGNORECASE)
