"""`undrift explain`."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

import typer

from . import options, terminal
from .options import option

HELP = """Show which terms reconstruct a term, and its weight, whether or not the labelled source contains it.

Examples:

    undrift explain --model kitchen.safetensors "energy efficient" sturdy

    undrift explain --model kitchen.safetensors --document "The lid broke after a week"

Without words or documents: the strongest terms of each label.
"""


@dataclass(kw_only=True)
class ExplainOptions(options.SummaryOptions):
    words: list[str] = option([], "Terms to explain; quote bigrams.", metavar="WORD...", is_argument=True)
    model: Path = option(..., "Model saved by `adapt` or `distill`.", metavar="FILE")
    document: list[str] = option([], "A document to explain; may be repeated.", metavar="TEXT")
    top: int = option(10, "How many terms to list.", min=1)


@options.command(ExplainOptions, HELP, ("words", "model", "document", "top"))
def explain(given: ExplainOptions, context: typer.Context) -> None:
    from ..explain import document_terms, term_weight, top_terms
    from ..jobs import predict_rows
    from ..text import load_text_model
    from ..text import words as words_of

    adapter = load_text_model(given.model)
    classifier, terms = adapter.classifier_, adapter.terms_
    is_cut = getattr(adapter.vectorizer_, "tokens_", None) == "characters"
    queries = [word if is_cut else " ".join(words_of(word)) or word for word in given.words]
    queries, unknown = _split_unknown(queries, terms)
    explanation: dict[str, Any] = {
        "unknown": unknown,
        "words": [
            {**term_weight(classifier, terms, term), **_reconstruct(classifier, terms, term, given.top)}
            for term in queries
        ],
        "documents": [
            {
                "document": text,
                "prediction": predict_rows(adapter, adapter.vectorizer_.transform([text])).labels[0],
                "terms": document_terms(classifier, terms, adapter.vectorizer_.transform([text]), given.top),
            }
            for text in given.document
        ],
    }
    if not queries and not given.document:
        explanation["top"] = top_terms(classifier, terms, given.top)
    for message in unknown:
        terminal.show_warning(message)
    if given.as_json:
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


def _split_unknown(words: list[str], terms: list[str]) -> tuple[list[str], list[str]]:
    """Return the words that are terms, and a line for each that is none; refuse if none is."""
    from ..explain import position_of

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


def _reconstruct(classifier: Any, terms: list[str], term: str, top: int) -> dict[str, Any]:
    """Return the terms that reconstruct a term, and those that it does; a distilled model has none."""
    from ..explain import reconstruction

    stack = getattr(classifier, "representation_", None)
    if stack is None:
        return {"from": [], "to": []}
    return reconstruction(stack, terms, term, top)


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
        parts = f" ({direct:.3g} by itself, {weight - direct:.3g} through terms that it makes expected)"
        terminal.say(f"  speaks {speaks}: weight {weight:.3g}{parts if weight != direct else ''}")
    if not (word["from"] or word["to"]):  # a distilled model
        return
    rows = [[*f, *t] for f, t in zip_longest(word["from"], word["to"], fillvalue=[None, None])]
    terminal.say(f"  Terms that make {term!r} expected where they occur, and terms that it makes expected:")
    terminal.show_table("", ["expected from", "weight", "makes expected", "weight"], rows)


def _show_document(entry: dict[str, Any]) -> None:
    document, prediction = (terminal.escape(str(entry[name])) for name in ("document", "prediction"))
    terminal.output.print(f"{document}\n  → [bold]{prediction}[/]")
    if not entry["terms"]:
        terminal.say("  the model knows none of its words")
        return
    terminal.say(f"  Effect: the score for {entry['prediction']} with the term less that without it.")
    rows = []
    for t in entry["terms"]:
        speaks = f"{'for' if t['effect'] > 0 else 'against'} {entry['prediction']}"
        rows.append([t["term"], t["effect"], speaks, _count_labelled(t["n_labelled"])])
    terminal.show_table("", ["term", "effect", "speaks", "source"], rows)
