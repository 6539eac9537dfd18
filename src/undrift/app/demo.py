"""The demo: the whole job on the built-in corpus of synthetic reviews."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from ..datasets import Domain, make_reviews
from ..explain import top_terms
from . import terminal
from .adapt import build_adapter, show_adapt
from .job import AdaptJob
from .tables import write_table

SOURCE, TARGET = "books", "kitchen"
N_REVIEWS = 1000  # of each product
N_TERMS = 1500


def run_demo(out: Path, command: str | None, *, as_json: bool) -> None:
    """Write two files of reviews, adapt from one to the other, and show which words made the difference."""
    corpus = make_reviews(
        N_REVIEWS, domains=(SOURCE, TARGET), unlabelled_share=0.0, style="mixed", random_state=0
    )
    out.mkdir(parents=True, exist_ok=True)
    _write_reviews(out / f"{SOURCE}.csv", corpus.domains[SOURCE], "label")
    _write_reviews(out / f"{TARGET}.csv", corpus.domains[TARGET], "truth")
    job = AdaptJob(
        sources=[out / f"{SOURCE}.csv"],
        targets=[out / f"{TARGET}.csv"],
        text=("text",),
        label="label",
        target_label="truth",
        out=out / "predictions.csv",
        model=out / "model.safetensors",
        report=out / "report.html",
        max_features=N_TERMS,
        command=command,
    )
    adapter = build_adapter(job)
    show_adapt(job, adapter, as_json=as_json)
    if as_json:
        return
    unseen = top_terms(adapter.classifier_, adapter.terms_, 6, only_new=True)
    terminal.say(
        f"Words of {TARGET} that no labelled review of {SOURCE} contains, by the label they indicate:"
    )
    for label in dict.fromkeys(row["class"] for row in unseen):
        terminal.say(f"  {label}: {', '.join(row['term'] for row in unseen if row['class'] == label)}")
    word = next((row["term"] for row in unseen if " " not in row["term"]), "")
    terminal.say(f"Why: undrift explain {job.model} {word}")


def _write_reviews(path: Path, domain: Domain, column: str) -> None:
    """Write a domain as CSV, its labels in a column."""
    names = {0.0: "negative", 1.0: "positive"}
    labels = [names.get(float(y), "") for y in domain.y]
    frame = pd.DataFrame({"text": list(domain.texts or []), column: labels}, dtype=object)
    with write_table(path, {"text": {str}, column: {str}}) as write:
        write(frame)
