"""The summary of an adapt job: JSON-ready, the same keys, notes and warnings wherever it was computed."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence
from itertools import chain
from typing import Any

from ..errors import UndriftWarning
from ..text import FAR_APART, TextAdapter, collect_words, unseen_share
from .inputs import AdaptJob, JobDomain


def summarize_domains(
    job: AdaptJob, sources: Sequence[JobDomain], targets: Sequence[JobDomain], labels: Sequence[Any]
) -> dict[str, Any]:
    """Begin a summary: what was read, and how many words of each target do not occur in the source."""
    known = collect_words(chain.from_iterable(source.documents for source in sources))
    shares = [unseen_share(target.documents, known) for target in targets]
    notes = []
    for target, share in zip(targets, shares, strict=True):
        name = target.path.name
        if target.labels is None and job.label in target.kinds:
            notes.append(f"{name} has a column {job.label!r}: ignored (score with --target-label)")
        if target.labels is not None and target.n_labelled == 0:
            notes.append(f"{name} has no label to score with")
        if share > FAR_APART:
            warnings.warn(
                f"{share:.0%} of the words of {name} never occur in the source (overlap {1 - share:.0%}): "
                "with so few words in common, expect little from adaptation",
                UndriftWarning,
                stacklevel=2,
            )
    return {
        "sources": [
            _count_rows(source)
            | {"labelled": source.n_labelled, "unlabelled": source.n_rows - source.n_labelled}
            for source in sources
        ],
        "targets": [
            _count_rows(target) | {"unseen_share": None if share != share else share}
            for target, share in zip(targets, shares, strict=True)
        ],
        "labels": dict(Counter(str(label) for label in labels if label is not None)),
        "notes": notes,
        "out": str(job.out),
        "model": None if job.model is None else str(job.model),
        "report": None if job.report is None else str(job.report),
    }


def _count_rows(domain: JobDomain) -> dict[str, Any]:
    return {
        "file": str(domain.path),
        "rows": domain.n_rows,
        "empty": domain.n_empty,
        "bad_rows": domain.n_bad,
    }


def summarize_choices(adapter: TextAdapter) -> dict[str, Any]:
    """Say what was chosen, by which rule, and what the safeguard made of it."""
    classifier = adapter.classifier_
    return {
        "classes": classifier.classes_.tolist(),
        "vocabulary": len(adapter.terms_),
        "chosen": dict(classifier.best_params_),
        "rule": classifier.selection if len(classifier.selection_results_) > 1 else "fixed",
        "n_candidates": len(classifier.selection_results_),
        "selection_notes": list(classifier.selection_notes_),
        "caution": dict(classifier.caution_),
        "self_training": [dict(entry) for entry in classifier.self_training_rounds_],
    }


def summarize_errors(n_scored: int, *n_wrong: int) -> dict[str, Any]:
    """Return the errors of the baseline and of the predictions, None where no row could be scored.

    `source_only_error` is the older name of `baseline_error`.
    """
    baseline, adapted = (count / n_scored for count in n_wrong) if n_scored else (None, None)
    return {
        "scored": n_scored,
        "baseline_error": baseline,
        "source_only_error": baseline,
        "adapted_error": adapted,
    }
