"""The demo: the whole job on the built-in corpus of synthetic reviews."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import typer

from ..datasets import Domain, make_reviews
from ..explain import top_terms
from . import terminal
from .adapt import build_adapter, run_adapt
from .inputs import AdaptJob
from .summary import show_summary
from .tables import write_table

N_REVIEWS = 1000  # of each product
N_TERMS = 1500


def run_demo(out: Path, source: str, target: str, *, as_json: bool, command: str) -> None:
    """Write two files of reviews, adapt from one to the other, and show which words made the difference."""
    corpus = make_reviews(N_REVIEWS, unlabelled_share=0.0, style="mixed", random_state=0)
    for name in (source, target):
        if name not in corpus.domains:
            raise typer.BadParameter(f"{name!r}: the built-in corpus has {', '.join(corpus.domains)}")
    out.mkdir(parents=True, exist_ok=True)
    for name in (source, target):
        _write_reviews(out / f"{name}.csv", corpus.domains[name], "label" if name == source else "truth")
    job = AdaptJob(
        sources=[out / f"{source}.csv"],
        targets=[out / f"{target}.csv"],
        text=("text",),
        label="label",
        target_label="truth",
        out=out / "predictions.csv",
        model=out / "model.safetensors",
        report=out / "report.html",
        command=command,
    )
    adapter = build_adapter(N_TERMS)
    result = terminal.run_job(lambda show: run_adapt(job, adapter, show), adapter)
    show_summary(result.summary, as_json=as_json)
    if as_json:
        return
    unseen = top_terms(adapter.classifier_, adapter.terms_, 6, only_new=True)
    terminal.say(
        f"Words of {target} that no labelled review of {source} contains, by the label they indicate:"
    )
    for label in dict.fromkeys(row["class"] for row in unseen):
        terminal.say(f"  {label}: {', '.join(row['term'] for row in unseen if row['class'] == label)}")
    word = next((row["term"] for row in unseen if " " not in row["term"]), "")
    terminal.say_line(f"Why: undrift explain {job.model} {word}")


def _write_reviews(path: Path, domain: Domain, column: str) -> None:
    """Write a domain as CSV, its labels in a column."""
    names = {0.0: "negative", 1.0: "positive"}
    labels = [names.get(float(y), "") for y in domain.y]
    frame = pd.DataFrame({"text": list(domain.texts or []), column: labels}, dtype=object)
    with write_table(path, {"text": {str}, column: {str}}) as write:
        write(frame)
