"""Terms and rows that a report shows: how the vocabulary shifts, what changed predictions, rows to label."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

from ..core import Rows, array_ops, stack_rows
from ..explain import score_contributions
from ..method import choose_for_estimate, predict_codes
from ..results import bound_shares, measure_margins
from ..text import ask_teacher, distill
from .data import PredictedRows, ReportData

MOST_DISTILLED = 1_500  # target rows that the weights of the box are learnt from
LEAST_DISTILLED = 40
MOST_BYTES = 380_000  # of its terms and weights in the page
WEIGHT_BYTES = 8 / 3  # of one weight: two bytes in base64
LEAST_WORD_ROWS = 10  # labelled rows with a word of the picture
CLEAR_WORD, CLEAR_BETWEEN = (
    0.5,
    0.2,
)  # part of the way from the class's share to 1 that a word's share has gone
RARE = 0.25  # a term is rare if its share of labelled rows is below this part of its share of the target
MOST_DOCUMENTS = 6
MOST_SHOWN = 560  # characters of a changed document
N_DIFFERENCE = 16  # terms that pushed changed rows
N_NAMED = 5  # words whose contribution is written out
DIGITS = 3
N_ESTIMATE, N_PREDICTIONS = 60, 40
N_COMPARED = 160  # of the least certain rows
MOST_CHARACTERS = 250_000  # of the texts of a deck, which travel with the page


@dataclass(frozen=True)
class MovingTerm:
    """A term that moved predictions, and its shares of the rows of source and target."""

    term: str
    push: float  # share of the whole effect
    class_: str  # that it moves toward
    code: int
    n_labelled: int
    rarity: int  # 2 in no labelled row, 1 in few, else 0
    is_dull: bool  # made of stop words
    source: float
    target: float


@dataclass(frozen=True)
class Difference:
    """Terms that moved the changed predictions, and the part of new terms in it."""

    new_share: float
    terms: Sequence[MovingTerm]


@dataclass(frozen=True)
class KnownWord:
    """A word of labelled rows."""

    term: str
    n_labelled: int


@dataclass(frozen=True)
class BetweenWord:
    """A word that goes with the labelled word and with the new one, by weights of the first layer."""

    term: str
    n_labelled: int
    from_labelled: float
    from_new: float


@dataclass(frozen=True)
class NewWord:
    """A word without labels, and its weight."""

    term: str
    weight: float


@dataclass(frozen=True)
class Idea:
    """How a new word gets its weight: from a labelled word, by words that both go with."""

    class_: str
    code: int
    n_classes: int
    labelled: KnownWord
    between: Sequence[BetweenWord]
    new: NewWord


@dataclass(frozen=True)
class SentenceModel:
    """Packed weights of terms, with which the page scores a sentence."""

    terms: str  # one a line
    runs: Sequence[Sequence[int]]  # document frequencies of the terms, and how many have each
    n_documents: int
    weights: str
    n_outputs: int
    step: float
    intercept: Sequence[float]
    temperature: float
    classes: Sequence[str]
    new: Sequence[int]  # places of terms in no labelled row
    agreement: float
    n_held_out: int


@dataclass(frozen=True)
class Word:
    """A term of a document, and what it adds to the score."""

    term: str
    contribution: float
    code: int  # of the class that it speaks for
    is_new: bool


@dataclass(frozen=True)
class Piece:
    """A part of a document: text, or a term with its look."""

    text: str
    word: Word | None = None
    strength: int = 0

    def to_dict(self) -> dict[str, object]:
        """Return it ready for JSON."""
        word = self.word
        look = {"code": word.code, "strength": self.strength, "is_new": word.is_new} if word else {}
        return {"text": self.text, **look}


@dataclass(frozen=True)
class Change:
    """A document whose prediction changed, and its score divided among its words."""

    domain: str
    row: int  # from 1
    codes: Sequence[int]  # of the classes before and after
    from_: str
    to: str
    probability: float
    outcome: str | None
    start: float  # score of an empty document
    words: Sequence[Word]
    n_others: int
    others: float
    score: float
    pieces: Sequence[Piece]
    is_cut: bool


DeckRow = tuple[str, int, int, float]  # text, class predicted, class by the baseline, weight


@dataclass(frozen=True)
class Decks:
    """Rows to label: drawn at random, to measure the error; doubtful ones, to learn from."""

    columns: Sequence[str]  # of the text
    classes: Sequence[str]
    n_rows: int
    changed_share: float
    estimate: Sequence[DeckRow]
    predictions: Sequence[DeckRow]


def shares(X: Rows) -> np.ndarray:
    """Return the share of rows with each term."""
    return array_ops(X).nonzero_counts(X) / max(X.shape[0], 1)


def term_statistics(given: ReportData) -> dict[str, np.ndarray]:
    """Compute all statistics of every term, one array for each."""
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


def pattern_of(term: str) -> re.Pattern[str]:
    """Build the pattern that finds a term in a document, in any case, with signs between its words."""
    parts = [re.escape(word) for word in term.split(" ")]
    # "didn't" may be written "did n't" or "didn’t"
    parts = [re.sub(r"(n?)'", r"\\s?\1['’]", part) for part in parts]
    return re.compile(r"(?<!\w)" + r"[\W_]+".join(parts) + r"(?!\w)", re.IGNORECASE)


def difference_terms(given: ReportData, table: dict[str, np.ndarray]) -> Difference:
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
    kind = rarity(given, table)
    return Difference(
        float(total[kind > 0].sum()) / forward,
        [
            MovingTerm(
                term=given.terms[j],
                push=round(float(total[j]) / forward, 5),
                class_=given.classes[int(toward[j].argmax())],
                code=int(toward[j].argmax()),
                n_labelled=int(table["n_labelled"][j]),
                rarity=int(kind[j]),
                is_dull=_dullness(given.terms[j])[0] == len(given.terms[j].split(" ")),
                source=round(float(table["source"][j]), 6),
                target=round(float(table["target"][j]), 6),
            )
            for j in _distinct(np.argsort(-total, kind="stable"), given.terms, table)
            if total[j] > 0
        ],
    )


def rarity(given: ReportData, table: dict[str, np.ndarray]) -> np.ndarray:
    """Say 2 for a term in no labelled row, 1 for one far rarer in them than in the target, else 0."""
    n_labelled = sum(int(domain.known.sum()) for domain in given.sources)
    labelled = table["n_labelled"] / max(n_labelled, 1)
    return np.where(table["n_labelled"] == 0, 2, np.where(labelled < RARE * table["target"], 1, 0))


def _distinct(order: np.ndarray, terms: Sequence[str], table: dict[str, np.ndarray]) -> list[int]:
    """Take terms from the front, one of those that stand in the same rows: "piping" for "stays piping"."""
    groups: dict[tuple[float, ...], list[int]] = {}
    for j in map(int, order):
        key = tuple(round(float(table[name][j]), 5) for name in ("source", "target", "weight", "n_labelled"))
        groups.setdefault(key, []).append(j)
    return [min(group, key=lambda j: _dullness(terms[j])) for group in list(groups.values())[:N_DIFFERENCE]]


def _dullness(term: str) -> tuple[int, int]:
    """Count the stop words and words of a term; a term with few is more informative."""
    parts = term.split(" ")
    return sum(part in ENGLISH_STOP_WORDS for part in parts), len(parts)


def find_idea(given: ReportData, table: dict[str, np.ndarray], difference: Difference) -> Idea | None:
    """Choose the words of the picture: a labelled word, words it goes with, and a new word with its weight.

    The new word is one of those that moved predictions. The words between are labelled ones of the same class
    that the first layer expects in documents with the new word; the labelled word makes it expect them too.
    Labelled words stand in enough labelled rows, most of them of that class, and no word is a stop word. None
    where there are no such words.
    """
    stack, terms = given.classifier.representation_, given.terms
    coef, pivots = stack.layers_[0].coef, getattr(stack, "pivots_", np.arange(len(terms)))
    is_plain = np.array([_dullness(term) == (0, 1) and len(term) > 2 and term.isalpha() for term in terms])
    columns = {term: j for j, term in enumerate(terms)}
    new = [columns[row.term] for row in difference.terms if not row.n_labelled]
    for j in [j for j in new if is_plain[j]]:
        code = int(table["class"][j])
        n_rows, least, share = count_words(given, code)
        is_enough = is_plain & (n_rows >= LEAST_WORD_ROWS)
        weight = given.weights[:, code]
        is_between = (is_enough & (least >= share + CLEAR_BETWEEN * (1 - share)))[pivots]
        links = np.where(is_between, coef[j].clip(0) * weight[pivots].clip(0), 0)
        between = [int(i) for i in np.argsort(-links, kind="stable")[:3] if links[i] > 0]
        shared = coef[:, between].clip(0) @ weight[pivots[between]]
        is_known = is_enough & (least >= share + CLEAR_WORD * (1 - share))
        shared = np.where(is_known, shared * weight.clip(0) ** 2 * np.sqrt(n_rows), 0)
        shared[pivots[between]] = 0
        known = int(shared.argmax())
        if len(between) > 1 and shared[known] > 0:
            break
    else:
        return None
    return Idea(
        class_=given.classes[code],
        code=code,
        n_classes=len(given.classes),
        labelled=KnownWord(terms[known], int(n_rows[known])),
        between=[
            BetweenWord(
                term=terms[pivots[i]],
                n_labelled=int(n_rows[pivots[i]]),
                from_labelled=round(float(coef[known, i]), 4),
                from_new=round(float(coef[j, i]), 4),
            )
            for i in between
        ],
        new=NewWord(terms[j], round(float(table["weight"][j]), 4)),
    )


def count_words(given: ReportData, code: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Count for every term the labelled source rows with it, and bound the share of them that is of a class.

    The bound is the lower end of the 95% interval. The last number is the share of all labelled source rows.
    """
    X = stack_rows([domain.X[np.flatnonzero(domain.known)] for domain in given.sources])
    is_of_class = np.concatenate([domain.known_labels() for domain in given.sources]) == given.classes[code]
    n_rows, n_of_class = (
        array_ops(rows).nonzero_counts(rows) for rows in (X, X[np.flatnonzero(is_of_class)])
    )
    n = np.maximum(n_rows, 1)
    return n_rows, bound_shares(n_of_class / n, n)[0], float(is_of_class.mean())


def pack_sentence_model(given: ReportData) -> SentenceModel | None:
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
    model, held_out, codes = distill(X / vectorizer.length, taught)
    kept = _choose_terms(given.terms, model.coef_)
    step = float(np.abs(model.coef_).max()) / 32_767 or 1.0
    runs = np.unique(-vectorizer.document_frequency_[kept], return_counts=True)
    k = model.find_target(None)
    intercept = model.intercept_[k]
    whole, cut = (
        predict_codes(_score_unit_rows(X[held_out][:, terms], model.coef_[terms]) + intercept)
        for terms in (np.arange(len(given.terms)), kept)
    )
    is_right = (codes == taught.predicted[held_out]) & (whole == cut)
    return SentenceModel(
        terms="\n".join(given.terms[j] for j in kept),
        runs=[[int(-n), int(size)] for n, size in zip(*runs, strict=True)],
        n_documents=int(vectorizer.n_documents_),
        weights=pack_numbers(model.coef_[kept].T / step),
        n_outputs=model.coef_.shape[1],
        step=step,
        intercept=[float(value) for value in intercept],
        temperature=float(model.temperature_),
        classes=given.classes,
        new=np.flatnonzero(np.asarray(given.classifier.labelled_counts_)[kept] == 0).tolist(),
        agreement=float(np.mean(is_right)),
        n_held_out=len(held_out),
    )


def _choose_terms(terms: Sequence[str], weights: np.ndarray) -> np.ndarray:
    """Choose the terms with the largest weights, as many as fit into the page, in their order."""
    order = np.argsort(-np.abs(weights).max(axis=1), kind="stable")
    sizes = np.array([len(terms[j].encode()) + 1 for j in order]) + WEIGHT_BYTES * weights.shape[1]
    return np.sort(order[np.cumsum(sizes) <= MOST_BYTES])


def _score_unit_rows(X: Rows, weights: np.ndarray) -> np.ndarray:
    """Return the scores of sparse rows that are scaled to length 1, as the page does."""
    lengths = np.sqrt(np.asarray(X.multiply(X).sum(axis=1), dtype=float))
    return np.asarray(X @ weights) / np.maximum(lengths, 1e-12).reshape(-1, 1)


def pack_numbers(values: np.ndarray) -> str:
    """Write numbers as base64, each rounded to 16 bits, the low byte first."""
    return base64.b64encode(np.rint(values).astype("<i2").tobytes()).decode()


def explain_changes(given: ReportData) -> list[Change]:
    """Choose a few documents with changed predictions, the surest first, and divide their scores."""
    shown: list[Change] = []
    for target in given.targets:
        chosen = _choose_rows(target, MOST_DOCUMENTS // len(given.targets) or 1)
        shown += _explain_rows(given, target, np.array(chosen)) if chosen else []
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


def _explain_rows(given: ReportData, target: PredictedRows, rows: np.ndarray) -> list[Change]:
    """Divide the score of every row among its words: with two classes the score, else its lead."""
    n_classes, old, new = len(given.classes), target.baseline[rows], target.codes[rows]
    identity = np.ones((2, 1)) * [[-1], [1]] / 2 if n_classes == 2 else np.eye(n_classes)
    direction = identity[new] - identity[old]
    base, parts = score_contributions(given.classifier, target.rows.X[rows], direction, target=target.domain)
    return [_describe_row(given, target, int(i), float(base[k]), parts[k]) for k, i in enumerate(rows)]


def _describe_row(
    given: ReportData, target: PredictedRows, i: int, base: float, contributions: np.ndarray
) -> Change:
    codes = int(target.baseline[i]), int(target.codes[i])
    words = [
        Word(
            given.terms[j],
            round(float(contributions[j]), DIGITS),
            codes[int(contributions[j] > 0)],
            not given.classifier.labelled_counts_[j],
        )
        for j in np.argsort(-np.abs(contributions), kind="stable")
        if contributions[j] != 0
    ]
    score, start = round(base + float(contributions.sum()), DIGITS), round(base, DIGITS)
    rest = score - start - sum(word.contribution for word in words[:N_NAMED])
    document = None if target.rows.documents is None else target.rows.documents[i]
    return Change(
        domain=target.rows.name,
        row=i + 1,
        codes=codes,
        from_=given.classes[codes[0]],
        to=given.classes[codes[1]],
        probability=float(target.certainty[i]),
        outcome=_name_outcome(target, i),
        start=start,
        words=words[:N_NAMED],
        n_others=max(len(words) - N_NAMED, 0),
        others=round(rest, DIGITS),
        score=score,
        pieces=[] if document is None else cut_pieces(document[:MOST_SHOWN], words),
        is_cut=document is not None and len(document) > MOST_SHOWN,
    )


def cut_pieces(document: str, words: Sequence[Word]) -> list[Piece]:
    """Cut a document into plain pieces and its terms; a stronger term goes before a weaker one."""
    largest = max((abs(word.contribution) for word in words), default=0) or 1
    taken: list[tuple[int, int, Piece]] = []
    for word in words:
        strength = abs(word.contribution) / largest
        if strength < 0.08:
            break
        for match in pattern_of(word.term).finditer(document):
            start, end = match.span()
            if all(end <= other_start or start >= other_end for other_start, other_end, _ in taken):
                level = 3 if strength > 0.6 else 2 if strength > 0.25 else 1
                taken.append((start, end, Piece(match[0], word, level)))
    pieces, place = [], 0
    for start, end, piece in sorted(taken, key=lambda match: match[0]):
        pieces += [Piece(document[place:start]), piece]
        place = end
    return [piece for piece in [*pieces, Piece(document[place:])] if piece.text]


Drawn = tuple[PredictedRows, int, float]  # a row of a target, and how many rows it stands for


def make_decks(given: ReportData) -> Decks | None:
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
    estimate = _draw_estimate(pools, n_rows)
    asked = _draw_doubtful(given, pools, {(id(target), i) for target, i, _ in estimate})
    return Decks(
        columns=list(given.facts.text_columns),
        classes=given.classes,
        n_rows=n_rows,
        changed_share=sum(int(target.is_changed[pool].sum()) for target, pool in pools) / n_rows,
        estimate=_write_deck(estimate),
        predictions=_write_deck(asked),
    )


def _draw_estimate(pools: list[tuple[PredictedRows, np.ndarray]], n_rows: int) -> list[Drawn]:
    """Draw a random sample, stratified by target and by whether the prediction changed."""
    rng, drawn = np.random.RandomState(0), list[Drawn]()
    for target, pool in pools:
        if len(pool):
            n, once = max(round(N_ESTIMATE * len(pool) / n_rows), 2), np.ones(len(pool))
            rows, weights = choose_for_estimate(target.is_changed[pool], once, n, rng)
            drawn += zip([target] * len(rows), pool[rows].tolist(), weights.tolist(), strict=True)
    return [drawn[i] for i in rng.permutation(len(drawn))]


def _draw_doubtful(
    given: ReportData, pools: list[tuple[PredictedRows, np.ndarray]], taken: set[tuple[int, int]]
) -> list[Drawn]:
    """Take the rows most worth learning from, each text once, none of the other deck."""
    rows: list[Drawn] = []
    n = N_PREDICTIONS // len(pools) or 1
    for target, pool in pools:
        free, margins = [i for i in pool.tolist() if (id(target), i) not in taken], measure_margins(target.P)
        order = sorted(free, key=lambda i: margins[i])[: N_COMPARED // len(pools)]
        documents = target.rows.documents or []
        first = np.array(list({documents[i]: i for i in reversed(order)}.values())[::-1], dtype=int)
        if len(first) > n and given.classifier.memory_ is not None:
            asked = given.classifier.ask(target.rows.X[first], n, target=target.domain, random_state=0)
            first = first[asked]
        rows += [(target, int(i), 0.0) for i in first[:n]]
    return rows


def _write_deck(drawn: list[Drawn]) -> list[DeckRow]:
    """Write the rows of a deck; it ends where its texts become too long for a page."""
    deck: list[DeckRow] = []
    n_characters = 0
    for target, i, weight in drawn:
        text = target.rows.documents[i]  # type: ignore[index]
        n_characters += len(text)
        if n_characters > MOST_CHARACTERS and deck:
            break
        deck.append((text, int(target.codes[i]), int(target.baseline[i]), round(weight, 4)))
    return deck
