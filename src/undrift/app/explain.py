"""The explain command: which terms reconstruct a term, and the weights of terms."""

from __future__ import annotations

from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any

from ..explain import document_terms, position_of, reconstruction, term_weight, top_terms
from ..persist import load_text_model
from ..text import DistilledText, TextAdapter
from ..text import words as words_of
from . import terminal
from .models import refuse_table
from .predictions import predict_rows


def run_explain(model: Path, words: list[str], documents: list[str], top: int, *, as_json: bool) -> None:
    """Explain terms and documents, or without any the strongest terms, and print that."""
    refuse_table(model)
    adapter = load_text_model(model)
    explanation = explain_words(adapter, words, documents, top)
    for message in explanation["unknown"]:
        terminal.show_warning(message)
    if as_json:
        terminal.show_json(explanation)
        return
    for word in explanation["words"]:
        _show_word(word)
    for entry in explanation["documents"]:
        _show_document(entry)
    if "top" in explanation:
        rows = [
            [t["class"], t["term"], t["weight"], _count_labelled(t["n_labelled"])] for t in explanation["top"]
        ]
        columns = ["label", "term", "weight for it", "source"]
        terminal.show_table("Strongest terms of each label", columns, rows)


def explain_words(
    adapter: TextAdapter | DistilledText, words: list[str], documents: list[str], top: int
) -> dict[str, Any]:
    """Return the explanations, ready for JSON."""
    classifier, terms = adapter.classifier_, adapter.terms_
    is_cut = getattr(adapter.vectorizer_, "tokens_", None) == "characters"
    queries = [word if is_cut else " ".join(words_of(word)) or word for word in words]
    queries, unknown = _split_unknown(queries, terms)
    target, stack = str(classifier.target_names_[0]), getattr(classifier, "representation_", None)
    nothing: dict[str, Any] = {"from": [], "to": []}  # of a distilled model
    reconstruct: Any = partial(reconstruction, stack) if stack else lambda **_: nothing
    explanation: dict[str, Any] = {"unknown": unknown, "documents": []}
    explanation["words"] = [
        {**term_weight(classifier, terms, term), **reconstruct(terms=terms, term=term, k=top)}
        for term in queries
    ]
    for text in documents:
        X = adapter.vectorizer_.transform([text])
        (prediction,) = predict_rows(classifier, X, target).columns(["prediction"])["prediction"]
        found = document_terms(classifier, terms, X, top)
        explanation["documents"].append({"document": text, "prediction": prediction, "terms": found})
    if not queries and not documents:
        explanation["top"] = top_terms(classifier, terms, top)
    return explanation


def _split_unknown(words: list[str], terms: list[str]) -> tuple[list[str], list[str]]:
    """Return the words that are terms, and a line for each that is none; refuse if none is."""
    known, messages = [], []
    for word in words:
        try:
            position_of(word, terms)
            known.append(word)
        except LookupError as error:
            messages.append(str(error.args[0]))
    if messages and not known:
        raise LookupError("; ".join(messages))
    return known, messages


def _count_labelled(n_labelled: int | None) -> str:
    if n_labelled is None:
        return "in no count of labelled rows"
    return f"in {n_labelled:,} labelled row{'s' * (n_labelled > 1)}" if n_labelled else "in no labelled row"


def _show_word(word: dict[str, Any]) -> None:
    term = word["term"]
    terminal.say(f"{term}: {_count_labelled(word['n_labelled'])}", style="bold")
    for output in word["outputs"]:
        speaks = f"for {output['favours']}" if output["favours"] is not None else f"against {output['class']}"
        weight, direct = abs(output["weight"]), output["direct"] * (1 if output["weight"] >= 0 else -1)
        parts = f" ({direct:.3g} by itself, {weight - direct:.3g} through terms that it suggests)"
        terminal.say(f"  speaks {speaks}: weight {weight:.3g}{parts if weight != direct else ''}")
    if not (word["from"] or word["to"]):  # a distilled model
        return
    rows = [[*f, *t] for f, t in zip_longest(word["from"], word["to"], fillvalue=[None, None])]
    terminal.say(f"  Terms that suggest {term!r}, and terms that it suggests:")
    terminal.show_table("", ["suggested by", "weight", "suggests", "weight"], rows)


def _show_document(entry: dict[str, Any]) -> None:
    terminal.output.print(terminal.escape(entry["document"]))
    if not entry["terms"]:
        terminal.say("  the model knows none of its words, and predicts nothing")
        return
    terminal.output.print(f"  → [bold]{terminal.escape(str(entry['prediction']))}[/]")
    terminal.say(f"  Effect: how much the term changes the score for {entry['prediction']}.")
    rows = []
    for t in entry["terms"]:
        speaks = f"{'for' if t['effect'] > 0 else 'against'} {entry['prediction']}"
        rows.append([t["term"], t["effect"], speaks, _count_labelled(t["n_labelled"])])
    terminal.show_table("", ["term", "effect", "speaks", "source"], rows)
