"""The summary of an adapt job: JSON-ready, the same keys, notes and warnings wherever it was computed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from .._inputs import spell_label
from ..errors import UndriftWarning, warn
from ..tables import NumberColumns
from ..text import FAR_APART, FeatureScaler, TextAdapter, collect_words, unseen_share
from .inputs import AdaptJob, JobDomain
from .scoring import error_interval, gain_interval
from .tasks import LabelTask

ONE_CLASS = 0.97  # share of a target's rows above which a note says that one class is nearly all there is


def summarize_domains(
    job: AdaptJob, sources: Sequence[JobDomain], targets: Sequence[JobDomain], tokens: str
) -> dict[str, Any]:
    """Begin a summary: what was read, and how many words of each target do not occur in the source."""
    known = collect_words(chain.from_iterable(source.documents for source in sources), tokens)
    shares = [unseen_share(target.documents, known, tokens) for target in targets]
    if isinstance(job.text, NumberColumns):
        shares = [float("nan")] * len(targets)
    notes = []
    for target, share in zip(targets, shares, strict=True):
        name = target.path.name
        if target.labels is None and job.label in target.kinds:
            notes.append(f"{name} has a column {job.label!r}: ignored (score with --target-label)")
        if target.labels is not None and target.n_labelled == 0:
            notes.append(f"{name} has no label to score with")
        if share > FAR_APART:
            warn(
                f"{share:.0%} of the {tokens} of {name} never occur in the source (overlap {1 - share:.0%}): "
                f"with so few {tokens} in common, expect little from adaptation",
                code="far-apart",
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
        "notes": notes,
        "text": [] if isinstance(job.text, NumberColumns) else job.text,
        "out": str(job.out),
        "model": None if job.model is None else str(job.model),
        "report": None if job.report is None else str(job.report),
    }


def keep_warnings(given: Sequence[UndriftWarning], targets: Sequence[dict[str, Any]]) -> list[str]:
    """Return every warning once, without doubts in adaptation where labels show that it helped.

    Also without those of a fallback that labels have ended: its reasons are notes then.
    """
    dropped = set() if any(t["fell_back"] for t in targets) else {"fell-back"}
    if all(t.get("scored") and t.get("gain_interval", [0])[0] > 0 for t in targets):
        dropped.add("far-apart")
    return list(dict.fromkeys(str(warning) for warning in given if warning.code not in dropped))


def summarize_features(scaler: FeatureScaler) -> dict[str, Any]:
    """Say which columns of numbers were learnt from, and how they were scaled."""
    return {"features": list(scaler.columns), "feature_kind": scaler.kind_}


def count_labels(task: LabelTask, labels: Sequence[Any]) -> dict[str, int]:
    """Count the labelled rows of every class, number or tag."""
    given = [label for label in labels if label is not None]
    if task.name == "tags":
        given = [tag for label in given for tag in task.split(label)]
    return dict(Counter(_write_label(label) for label in given))


def _write_label(label: Any) -> str:
    """Write a label for the summary: stars without the zero of 5.0."""
    return spell_label(label) if isinstance(label, float) else str(label)


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
        "classes": adapter.classes_.tolist(),
        "vocabulary": len(adapter.terms_),
        "tokens": getattr(adapter.vectorizer_, "tokens_", None),
        "tokens_reason": getattr(adapter.vectorizer_, "tokens_reason_", None),
        "pivots": classifier.representation_.layers_[0].coef.shape[1],
        "chosen": dict(classifier.best_params_),
        "rule": classifier.selection if len(classifier.selection_results_) > 1 else "fixed",
        "n_candidates": len(classifier.selection_results_),
        "selection_notes": list(classifier.selection_notes_),
        "caution": dict(classifier.caution_),
        "self_training": [dict(entry) for entry in classifier.self_training_rounds_],
    }


def summarize_shares(
    summary: dict[str, Any], adapter: TextAdapter, counts: Sequence[np.ndarray], job: AdaptJob
) -> None:
    """Add to every target's entry its class shares and expected error, and notes where one class is all.

    `counts` are sums over the rows of every target, as `Predictions.count` returns them.
    """
    classifier, labels = adapter.classifier_, [_write_label(label) for label in adapter.classes_.tolist()]
    for i, (entry, target_counts) in enumerate(zip(summary["targets"], counts, strict=True)):
        shares, interval = classifier.target_shares_[i], classifier.target_shares_interval_[i]
        per_class = target_counts[: len(labels)]
        n_predicted = entry["rows"] if summary["task"] == "tags" else per_class.sum()
        predicted = (per_class / n_predicted).tolist()
        entry["predicted_shares"] = dict(zip(labels, predicted, strict=True))
        entry["target_shares"] = shares and dict(zip(labels, shares.values(), strict=True))
        entry["target_shares_interval"] = interval and dict(
            zip(labels, map(list, interval.values()), strict=True)
        )
        entry["target_shares_given"] = bool(shares and classifier.target_shares)
        entry["border"] = getattr(classifier, "border", "error")
        has_classes = summary["task"] == "classes"
        entry["expected_error"] = classifier.expected_error_[i] if has_classes else None
        if job.min_confidence is not None:
            entry["n_doubtful"] = int(target_counts[len(labels)])
        summary["notes"] += _note_one_class(entry) if has_classes else []


def _note_one_class(entry: dict[str, Any]) -> list[str]:
    """Say where (nearly) all rows of a target are of one class."""
    name, is_scored = Path(entry["file"]).name, bool(entry.get("scored"))
    label, share = max(entry["predicted_shares"].items(), key=itemgetter(1))
    if share == 1 and entry["rows"] > 1:
        is_certain = is_scored or entry["target_shares_given"]
        hint = "" if is_certain else "; if other classes occur there, label about 30 random rows to see"
        return [f"every prediction for {name} is {label!r}{hint}"]
    label, share = max((entry["target_shares"] or {"": 0.0}).items(), key=itemgetter(1))
    if share > ONE_CLASS:
        source = "given" if entry["target_shares_given"] else "estimated"
        return [f"nearly every row of {name} is {label!r} (its {source} share is {share:.1%})"]
    return []


def summarize_errors(counts: Sequence[float] | None = None) -> dict[str, Any]:
    """Return the errors of the baseline and of the predictions, None where no row could be scored.

    `counts` are those of `count_mistakes`; weights make the rows count as fewer than they are.
    `source_only_error` is the older name of `baseline_error`.
    """
    n_scored, total, squares, first, second, both = counts if counts is not None else [0] * 6
    if not total:
        names = ("baseline_error", "source_only_error", "adapted_error")
        return {"scored": 0, **dict.fromkeys(names)}
    n, baseline, adapted = total**2 / squares, first / total, second / total
    return {
        "scored": int(n_scored),
        "baseline_error": baseline,
        "source_only_error": baseline,
        "adapted_error": adapted,
        "adapted_error_interval": error_interval(adapted, n),
        "gain_interval": gain_interval((first - both) / total, (second - both) / total, n),
    }
