"""`undrift demo`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from . import options, terminal
from .adapt import run_job
from .options import option
from .summary import show_summary

if TYPE_CHECKING:
    from ..corpora import Domain

HELP = """Do the whole job on the built-in corpus of synthetic reviews: adapt, score, explain, report.

Writes the reviews of two products as CSV files, learns from the labels of the first, predicts the second,
shows which words made the difference, and writes a report: one HTML page.
"""


@dataclass(kw_only=True)
class DemoOptions(options.SummaryOptions):
    out: Path = option(Path("undrift-demo"), "Folder to write to.", metavar="DIR", show_default=True)
    source: str = option("books", "Product whose reviews have labels.")
    target: str = option("kitchen", "Product whose reviews have none.")


@options.command(DemoOptions, HELP, ("out", "source", "target"))
def demo(given: DemoOptions, context: typer.Context) -> None:
    from ..datasets import make_reviews
    from ..explain import new_terms
    from ..jobs import AdaptJob
    from ..text import TFIDF_LENGTH, TermVectorizer, TextAdapter, text_classifier

    out, source, target = given.out, given.source, given.target
    corpus = make_reviews(random_state=0)
    for name in (source, target):
        if name not in corpus.domains:
            raise typer.BadParameter(f"{name!r}: the built-in corpus has {', '.join(corpus.domains)}")
    out.mkdir(parents=True, exist_ok=True)
    for name in (source, target):
        _write_reviews(out / f"{name}.csv", corpus.domains[name], labelled=name == source)
    job = AdaptJob(
        [out / f"{source}.csv"], [out / f"{target}.csv"], "text", "label", out / "predictions.csv",
        out / "model.safetensors", "truth", report=out / "report.html",
    )  # fmt: skip
    adapter = TextAdapter(
        TermVectorizer(1500, length=TFIDF_LENGTH),
        text_classifier(noise=[0.6, 0.7, 0.8], selection="reverse", random_state=0),
    )
    show_summary(run_job(job, adapter, context), given.as_json)
    if given.as_json:
        return
    unseen = new_terms(adapter.classifier_, adapter.terms_, 6)
    terminal.say(
        f"Words of {target} that no labelled review of {source} contains, by the label they indicate:"
    )
    for label in dict.fromkeys(row["class"] for row in unseen):
        terminal.say(f"  {label}: {', '.join(row['term'] for row in unseen if row['class'] == label)}")
    word = next((row["term"] for row in unseen if " " not in row["term"]), "")
    terminal.say(f"Why: undrift explain --model {job.model} {word}")


def _write_reviews(path: Path, domain: Domain, *, labelled: bool) -> None:
    """Write a domain as CSV: with labels, or with the true labels in a column for scoring."""
    from ..tables import Rows, write_table

    names = {0.0: "negative", 1.0: "positive"}
    labels = [names.get(float(y), "") for y in domain.y]
    columns = ("text", "label" if labelled else "truth")
    with write_table(path, columns) as out:
        out.write(Rows(columns, (list(domain.texts or []), labels)))
