"""Ask for labels: target rows that are most worth one, or rows of the source whose label looks wrong."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

import numpy as np

from ..errors import count
from ..inputs import spell_label
from ..results import find_suspects
from ..text import TextAdapter
from .domains import read_domains, refuse_overwriting
from .job import AskJob, ShowStage, Summary, ignore_stage
from .labels import ESTIMATE, PREDICTIONS, SAMPLED, WEIGHT
from .models import choose_text, load_model, load_updatable, open_model, suggest
from .tables import Style, TableError, with_added, write_table

QUESTIONS: Mapping[str, set[Hashable]] = {"label": {str}, SAMPLED: {str}, WEIGHT: {float}}
SUSPECTS: Mapping[str, set[Hashable]] = {
    "row": {int},
    "learnt_label": {str},
    "suggested": {str},
    "probability": {float},
}


def run_ask(job: AskJob, show_stage: ShowStage = ignore_stage) -> Summary:
    """Write the chosen rows with all their columns, and what is known of their labels."""
    refuse_overwriting(job.out, [job.model, job.input])
    is_source = job.purpose == "source"
    if is_source:  # the source is of no target
        adapter, target = load_model(job, load_updatable), None
        text = choose_text(adapter, job, job.input, "source_columns")
    else:
        adapter, target, text = open_model(job, job.input, load_updatable)
    (file,) = read_domains([job.input], job.reading, text, show_stage)
    assert file.frame is not None
    kinds = with_added(file.path, file.kinds, SUSPECTS if is_source else QUESTIONS)
    show_stage("choosing rows", None)
    if job.purpose == "source":
        rows, known, n_rows = _find_suspects(adapter, file.documents, job)
        what = f"{len(rows):,} of {count(n_rows, 'label')} of {job.input}"
        n_questions = 0
        lines = [
            f"Wrote {job.out}: {what} that the other labels contradict, the most doubtful first.",
            f"Next: correct those that are wrong in {job.input}, and run undrift adapt again.",
        ]
    else:
        rows, weights = adapter.ask(
            file.documents, job.n, job.purpose, return_weights=True, target=target, random_state=0
        )
        known = {
            SAMPLED: [ESTIMATE if w else PREDICTIONS for w in weights],
            WEIGHT: [round(float(w), 6) if w else None for w in weights],
        }
        n_rows, n_questions = file.n_rows, int(np.sum(weights == 0))
        lines = _describe_questions(job, len(rows), n_rows, n_questions)
    with write_table(job.out, kinds, Style(file.delimiter, job.reading.safe_cells)) as write:
        write(file.frame.iloc[rows].assign(**known))
    facts = {
        **{"model": str(job.model), "input": str(job.input), "out": str(job.out)},
        **{"rows": n_rows, "bad_rows": file.n_bad, "asked": len(rows), "questions": n_questions},
        **{"purpose": job.purpose, "domain": job.domain},
    }
    return Summary(facts, lines)


def _find_suspects(
    adapter: TextAdapter, documents: Sequence[str], job: AskJob
) -> tuple[np.ndarray, dict[str, list[object]], int]:
    """Find the rows of the source whose labels the others contradict, the most doubtful first.

    Returns them, what is known of their labels, and the number of labels.
    """
    y, p = adapter.predict_held_out(documents)
    n_labels = sum(label is not None for label in y)
    if not n_labels:
        raise TableError(f"{job.input}: no row is a labelled one of the fit: give a file of the source")
    classes = adapter.classes_.tolist()
    rows = find_suspects(y.tolist(), p, classes)[: job.n]
    known = {
        "row": (rows + 1).tolist(),
        "learnt_label": [spell_label(y[i]) for i in rows],
        "suggested": [spell_label(classes[k]) for k in p[rows].argmax(axis=1)],
        "probability": p[rows].max(axis=1).round(3).tolist(),
    }
    return rows, known, n_labels


def _describe_questions(job: AskJob, n_asked: int, n_rows: int, n_questions: int) -> list[str]:
    """Say where the rows are, and the command that learns their labels."""
    drawn = "drawn at random to measure the error"
    if n_questions:
        n_drawn = n_asked - n_questions
        rest = f", and {count(n_drawn, 'row')} {drawn}" if n_drawn else ""
        drawn = f"{count(n_questions, 'question')} to decide between readings{rest}"
    updated = job.model.with_stem(f"{job.model.stem}-updated")
    return [
        f"Wrote {job.out}: {n_asked:,} of {count(n_rows, 'row')} to label, {drawn}.",
        "Next: fill in the column `label`, then",
        suggest("update", job, job.model, job.out, "--out", updated),
    ]
