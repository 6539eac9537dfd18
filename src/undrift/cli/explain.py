"""`undrift explain`."""

from __future__ import annotations

from itertools import zip_longest
from pathlib import Path
from typing import Any

import typer

from . import options

HELP = """Show which terms reconstruct a term and what weight it gets, seen in the labelled source or not.

Examples:

    undrift explain --model kitchen.safetensors "energy efficient" sturdy

    undrift explain --model kitchen.safetensors --document "The lid broke after a week"

Without words or documents: the terms that speak most for each label.
"""


def explain(
    words: list[str] = typer.Argument(None, metavar="WORD...", help="Terms to explain; quote bigrams."),
    model: Path = typer.Option(..., "--model", metavar="FILE", help="Model saved by `adapt --model`."),
    document: list[str] = typer.Option([], "--document", metavar="TEXT", help="A document to explain."),
    top: int = typer.Option(10, "--top", min=1, help="How many terms to list."),
    as_json: bool = options.JSON,
) -> None:
    from ..explain import document_terms, reconstruction, term_weight, top_terms
    from ..text import load_adapter
    from ..text import words as words_of
    from . import screen

    adapter = load_adapter(model)
    classifier, terms = adapter.classifier_, adapter.terms_
    stack = classifier.representation_
    pivots = getattr(stack, "pivots_", None)
    asked = [" ".join(words_of(word)) or word for word in words or []]
    found: dict[str, Any] = {
        "words": [
            {
                **term_weight(classifier, terms, term),
                **reconstruction(stack.layers_[0], terms, term, top, pivots=pivots),
            }
            for term in asked
        ],
        "documents": [
            {
                "document": text,
                "prediction": adapter.predict([text]).tolist()[0],
                "terms": document_terms(classifier, terms, adapter.vectorizer_.transform([text]), top),
            }
            for text in document
        ],
    }
    if not asked and not document:
        found["top"] = top_terms(classifier, terms, top)
    if as_json:
        screen.show_json(found)
        return
    for word in found["words"]:
        _show_word(word)
    for own in found["documents"]:
        _show_document(own)
    if "top" in found:
        rows = [[t["class"], t["term"], t["weight"], _seen(t["n_labelled"])] for t in found["top"]]
        screen.show_table("Terms that speak most for each label", ["label", "term", "weight", "source"], rows)


def _seen(n_labelled: int) -> str:
    return f"in {n_labelled:,} labelled rows" if n_labelled else "never seen labelled"


def _show_word(word: dict[str, Any]) -> None:
    from . import screen

    screen.output.print(f"[bold]{screen.escaped(word['term'])}[/]: {_seen(word['n_labelled'])}")
    for output in word["outputs"]:
        screen.output.print(
            f"  weight {output['weight']:+.4g} for {screen.escaped(str(output['class']))!s} "
            f"(its own column {output['direct']:+.4g}), rank {output['rank']:,}"
        )
    nothing = [None, None]
    rows = [[*f, *t] for f, t in zip_longest(word["from"], word["to"], fillvalue=nothing)]
    screen.show_table("", ["is expected from", "weight", "makes expected", "weight"], rows)


def _show_document(own: dict[str, Any]) -> None:
    from . import screen

    screen.output.print(
        f"{screen.escaped(own['document'])}\n  → [bold]{screen.escaped(str(own['prediction']))}[/]"
    )
    if not own["terms"]:
        screen.output.print("  none of its words is among the model's terms")
        return
    rows = [[t["term"], t["effect"], _seen(t["n_labelled"])] for t in own["terms"]]
    screen.show_table(
        "What moved it (score with the term less score without)", ["term", "effect", "source"], rows
    )
