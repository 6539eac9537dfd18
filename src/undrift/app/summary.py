"""The summary of an adapt job: ready for JSON, and the lines that the command prints."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..errors import UndriftWarning, count, warn, write_shares
from ..explain import score_contributions
from ..inputs import gather_rows, spell_label
from ..method import is_open
from ..scoring import (
    MOST_LABELS,
    MOST_TOLD,
    describe_expected,
    describe_shares,
    error_interval,
    find_chance,
    gain_interval,
    is_no_better,
    list_shares,
    pick_frequent,
    write_class,
    write_share,
)
from ..text import FAR_APART, TextAdapter, collect_words, unseen_share
from .distill import describe_distilled
from .domains import JobDomain
from .job import AdaptJob
from .options import SAME
from .predictions import Predictions
from .stories import tell_stories
from .terminal import describe_file, format_size

DIFFERENT = "readings-differ"  # code of a warning
MOST_EXAMPLES = 3  # classes in an example of an option
EXPLAINED_ROWS, N_WORDS = 10, 5  # that say where and why a student disagrees with its teacher


def summarize_domains(
    job: AdaptJob, sources: Sequence[JobDomain], targets: Sequence[JobDomain], tokens: str
) -> dict[str, Any]:
    """Begin a summary: rows and labels of each file, and the share of words that the source lacks."""
    known = collect_words(chain.from_iterable(source.documents for source in sources), tokens)
    compares = bool(sources) and not job.bridge
    shares = [unseen_share(t.documents, known, tokens) if compares else float("nan") for t in targets]
    notes = []
    for target, share in zip(targets, shares, strict=True):
        name = target.path.name
        labels = [column for column in target.kinds if column.strip().casefold() == job.label.casefold()]
        if target.labels is None and labels:
            remedy = f"add --target-label {shlex.quote(labels[0])} to measure the error"
            notes.append(f"{name} has a column {labels[0]!r}: ignored ({remedy})")
        if target.labels is not None and target.n_labelled == 0:
            notes.append(f"{name} has no label to score with")
        if share > FAR_APART:
            warn(
                f"{share:.0%} of the {tokens} of {name} never occur in the source (overlap {1 - share:.0%}): "
                f"with so few {tokens} in common, expect little from adaptation; add --bridge if they are in "
                "different languages",
                code="far-apart",
            )
    return {
        "sources": [
            {**FileRows.of(source).to_dict(), "unlabelled": source.n_rows - source.n_labelled}
            for source in sources
        ],
        "targets": [
            {**FileRows.of(target).to_dict(), "unseen_share": None if share != share else share}
            for target, share in zip(targets, shares, strict=True)
        ],
        "notes": notes,
        "text": list(job.text),
        "target_text": list(job.target_text),
        "out": str(job.out),
        "model": None if job.model is None else str(job.model),
        "report": None if job.report is None else str(job.report),
    }


FEW_TAUGHT = 400  # labels of a teacher below which the prior decides about their noise


def is_undecided(target: dict[str, Any]) -> bool:
    """Tell whether the readings of a target differ, and nobody gave its class shares."""
    return not target["target_shares_given"] and is_open(target["readings"])


def keep_warnings(given: Sequence[UndriftWarning], targets: Sequence[dict[str, Any]]) -> list[str]:
    """Return every warning once. Warnings about adaptation go if labels show that it helped."""
    dropped = {DIFFERENT}  # stories are told instead
    if all(t.get("scored") and t.get("gain_interval", [0])[0] > 0 for t in targets):
        dropped.add("far-apart")
    return list(dict.fromkeys(str(warning) for warning in given if warning.code not in dropped))


@dataclass(frozen=True)
class FileRows:
    """Rows of a file."""

    file: str
    rows: int
    empty: int  # without text
    bad_rows: int  # skipped as unreadable
    labelled: int

    @classmethod
    def of(cls, domain: JobDomain) -> FileRows:
        """Count the rows of a domain."""
        return cls(str(domain.path), domain.n_rows, domain.n_empty, domain.n_bad, domain.n_labelled)

    def to_dict(self) -> dict[str, Any]:
        """Return the counts, ready for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class DrySummary:
    """What a job would read."""

    sources: Sequence[FileRows]
    targets: Sequence[FileRows]
    text: Sequence[str]  # columns
    target_text: Sequence[str]
    labels: dict[str, int]  # labelled rows of every class
    notes: Sequence[str]
    warnings: Sequence[str]

    def to_dict(self) -> dict[str, Any]:
        """Return everything, ready for JSON."""
        return asdict(self)


def describe_dry(summary: DrySummary) -> Iterator[str]:
    """Say what would be read, file by file, and that nothing was written."""
    for file in summary.sources:
        yield f"Source {describe_rows(file, summary.text)}, {count(file.labelled, 'label')}."
    yield f"{len(summary.labels)} classes: {list_counts(summary.labels)}."
    for file in summary.targets:
        labels = f", {count(file.labelled, 'label')}" if file.labelled else ""
        yield f"Target {describe_rows(file, summary.target_text)}{labels}."
    yield from (f"Note: {note}." for note in summary.notes)
    yield "Nothing was fitted or written (--dry-run)."


def summarize_choices(adapter: TextAdapter) -> dict[str, Any]:
    """Summarise the chosen settings and the decision of the safeguard."""
    classifier = adapter.classifier_
    n_candidates = len(classifier.selection_results_)
    known = classifier.targets_.values()
    doubts = [pair for each in known for pair in zip(each["codes"], each["warnings"], strict=True)]
    return {
        "classes": adapter.classes_.tolist(),
        "vocabulary": len(adapter.terms_),
        "tokens": adapter.vectorizer_.tokens_,
        "tokens_reason": adapter.vectorizer_.tokens_reason_,
        "pivots": classifier.representation_.layers_[0].coef.shape[1],
        "chosen": dict(classifier.best_params_),
        "rule": "source-cv" if n_candidates > 1 else "fixed",
        "n_candidates": n_candidates,
        "form": classifier.representation_.form_,
        "notes": list(dict.fromkeys(text for code, text in doubts if code != DIFFERENT)),
    }


def summarize_shares(
    summary: dict[str, Any], adapter: TextAdapter, counts: Sequence[np.ndarray], job: AdaptJob
) -> None:
    """Add to every target's entry its class shares and expected error.

    `counts` are sums over the rows of every target, as `Predictions.count` returns them.
    """
    classifier, labels = adapter.classifier_, [spell_label(label) for label in adapter.classes_.tolist()]
    for i, (entry, target_counts) in enumerate(zip(summary["targets"], counts, strict=True)):
        known = describe_shares(classifier, classifier.target_names_[i])
        per_class = target_counts[: len(labels)]
        predicted = (per_class / max(per_class.sum(), 1)).tolist()
        entry["predicted_shares"] = dict(zip(labels, predicted, strict=True))
        is_given = bool(known["target_shares"] and classifier.target_shares)
        entry |= known | {"target_shares_given": is_given, "border": classifier.border}
        entry["unknown_rows"] = int(target_counts[-1])
        if job.min_confidence is not None:
            entry["n_doubtful"] = int(target_counts[len(labels)])


def sum_mistakes(y: Sequence[Any], weight: np.ndarray, *predicted: Sequence[Any]) -> np.ndarray:
    """Sum rows with the labels y, and the mistakes of two models, by weight.

    Returns the number of rows; sums of their weights, of the squares of these, of the weights of the first
    model's mistakes, of the second's, and of those of both; and sums of the distances of either from the
    label, NaN where labels are no numbers.
    """
    truth = np.array([spell_label(label) for label in y])
    first, second = (np.array([spell_label(label) for label in labels]) != truth for labels in predicted)
    sums = [weight.sum(), (weight**2).sum(), weight @ first, weight @ second, weight @ (first & second)]
    values, *guessed = (_read_numbers(labels) for labels in (y, *predicted))
    return np.array([len(truth), *sums, *(weight @ np.abs(each - values) for each in guessed)])


def _read_numbers(labels: Sequence[Any]) -> np.ndarray:
    """Return labels as numbers, NaN for one that is none."""
    return pd.to_numeric(pd.Series(map(spell_label, labels), dtype=object), errors="coerce").to_numpy(float)


def summarize_errors(counts: Sequence[float] | None = None) -> dict[str, Any]:
    """Return the errors of the baseline and of the predictions, None where no row could be scored.

    `counts` are those of `sum_mistakes`; weights make the rows count as fewer than they are.
    """
    n_scored, total, squares, first, second, both, *distances = counts if counts is not None else [0] * 8
    if not total:
        names = ("baseline_error", "adapted_error")
        return {"scored": 0, **dict.fromkeys(names)}
    n, baseline, adapted = total**2 / squares, first / total, second / total
    return {
        "scored": int(n_scored),
        "baseline_error": baseline,
        "adapted_error": adapted,
        "adapted_error_interval": error_interval(adapted, n),
        "gain_interval": gain_interval((first - both) / total, (second - both) / total, n),
        "mean_distance": distances[1] / total if np.isfinite(distances[1]) else None,
        "baseline_distance": distances[0] / total if np.isfinite(distances[0]) else None,
    }


def summarize_teacher(predicted: Predictions, target: JobDomain, noise: float) -> dict[str, Any]:
    """Count a teacher's labels, its probable mistakes, and the rows where the student disagrees.

    Labels that were exchanged at random are wrong, and half of the others that the student contradicts.
    With true labels, measure the errors of teacher, student and both on the rows that the teacher labelled.
    """
    taught = [i for i, answer in enumerate(predicted.disagrees) if answer is not None]
    truth = target.truth if target.n_scored else np.full((target.n_rows, 2), None)
    scored = [i for i in taught if truth[i, 0] is not None]
    entry: dict[str, Any] = {"n_labels": len(taught), "n_disagreeing": sum(map(bool, predicted.disagrees))}
    entry |= {"noise": noise, "n_scored": len(scored)}
    n_exchanged = noise * len(taught)
    n_wrong = round((n_exchanged + max(entry["n_disagreeing"], n_exchanged)) / 2)
    entry["n_probably_wrong"] = n_wrong if len(taught) >= FEW_TAUGHT else None
    views = {"teacher": target.teacher["teacher"], "student": predicted.student, "both": predicted.labels}
    for name, labels in views.items() if scored else ():
        wrong = np.array([spell_label(labels[i]) != spell_label(truth[i, 0]) for i in scored])
        entry[f"{name}_error"] = float(np.average(wrong, weights=truth[scored, 1].astype(float)))
    return entry


def explain_disagreement(
    adapter: TextAdapter, X: Any, target: JobDomain, predicted: Predictions
) -> dict[str, list[Any]]:
    """Return the surest rows where the student disagrees with its teacher, and the words that decide them."""
    classifier, codes = adapter.classifier_, {label: k for k, label in enumerate(adapter.classes_.tolist())}
    rows = [i for i, answer in enumerate(predicted.disagrees) if answer]
    if not rows:
        return {"surest_rows": [], "words": []}
    surest = sorted(rows, key=lambda i: -predicted.student_margin[i])[:EXPLAINED_ROWS]
    taken = sorted(surest)  # rows of a cluster are taken in their order
    unit = np.array([[-1.0], [1.0]]) if len(codes) == 2 else np.eye(len(codes))
    views = predicted.student, target.teacher["teacher"]
    own, other = (unit[[codes[labels[i]] for i in taken]] for labels in views)
    X = gather_rows(X[taken])
    parts = score_contributions(classifier, X, own - other, target=target.name)[1].sum(axis=0)
    order = np.argsort(-parts.round(3), kind="stable")  # terms that always occur together differ by rounding
    words = [adapter.terms_[j] for j in order[:N_WORDS] if parts[j] > 0]
    return {"surest_rows": [i + 1 for i in surest], "words": words}


def describe_summary(summary: dict[str, Any], is_verbose: bool = False) -> Iterator[str]:
    """Say what a job did, and what to do next."""
    yield from describe_adapt(summary)
    if is_verbose:
        yield from describe_details(summary)
    yield from choose_next(summary)


def describe_adapt(summary: dict[str, Any]) -> Iterator[str]:
    """Say what was read, how many predictions are wrong, the class shares, and what was written."""
    yield _describe_files(summary)
    yield from describe_bridge(summary)
    for target in summary["targets"]:
        yield describe_error(target, summary)
        yield from describe_class_shares(target)
        if "n_doubtful" in target:
            rows = f"{target['n_doubtful']:,} of {count(target['rows'], 'prediction')} for {target['file']}"
            yield f"Left empty as doubtful (--min-confidence): {rows}."
        if is_undecided(target):
            yield from tell_stories(target["readings"], Path(target["file"]).name)
    yield from describe_teachers(summary)
    for note in summary["notes"]:
        if not any(warning.startswith(note) for warning in summary["warnings"]):
            yield f"Note: {note}."
    outputs = [summary["out"], summary["report"], summary.get("distilled", {}).get("out")]
    written = [describe_file(path) for path in outputs if path]
    if summary["model"]:
        written.insert(1, _describe_model(summary))
    yield f"Wrote {', '.join(written)}."


def describe_bridge(summary: dict[str, Any]) -> Iterator[str]:
    """Say from which language labels came, and what the model reads."""
    if "bridge" in summary:
        languages = " and ".join(dict.fromkeys(summary["bridge"]["languages"].values()))
        source = summary["bridge"]["source_language"]
        yield (
            f"Labels came from {source} by sentence vectors; the model reads {languages} alone. The expected "
            f"error takes it that the vectors err as on {source}: label some rows to measure it."
        )


def _describe_model(summary: dict[str, Any]) -> str:
    """Name the model file, its size, the size of its parts, and whether it can learn labels."""
    file = summary["model_file"]
    sizes = [f"{name.replace('_', ' ')} {format_size(size)}" for name, size in file["parts"].items() if size]
    learns = "" if summary["updatable"] else "; --updatable adds the training rows to learn labels with"
    return f"{summary['model']} ({format_size(file['bytes'])}: {', '.join(sizes)}{learns})"


def _describe_files(summary: dict[str, Any]) -> str:
    sources, targets = (
        [FileRows(**{each.name: entry[each.name] for each in fields(FileRows)}) for entry in summary[side]]
        for side in ("sources", "targets")
    )
    parts = [f"{describe_rows(file, summary['text'])}, {file.labelled:,} labels" for file in sources]
    if parts:
        parts[-1] += f" ({list_counts(summary['labels'])})"
    parts += [describe_rows(file, summary["target_text"]) for file in targets]
    return f"Read {'; '.join(parts)}."


def list_counts(labels: Mapping[str, int]) -> str:
    """Write the number of rows of every class, those of ten classes at most."""
    counts = [f"{write_class(label)} {n:,}" for label, n in sorted(labels.items())]
    rest = [f"{len(counts) - MOST_LABELS:,} more"] if len(counts) > MOST_LABELS else []
    return ", ".join([*counts[:MOST_LABELS], *rest])


def describe_rows(file: FileRows, text: Sequence[str]) -> str:
    """Count the rows of a file, those that are empty or could not be read too, and name its text."""
    empty = f", {file.empty:,} empty" if file.empty else ""
    bad = f", {file.bad_rows:,} skipped as unreadable" if file.bad_rows else ""
    return f"{file.file}: {count(file.rows, 'row')}{empty}{bad}, text = {', '.join(text)}"


def describe_teachers(summary: dict[str, Any]) -> Iterator[str]:
    """Say of every target how many labels the teacher gave, and how many are probably wrong."""
    for target in [entry for entry in summary["targets"] if "teacher" in entry]:
        said = target["teacher"]
        name, n_wrong = Path(target["file"]).name, said["n_probably_wrong"]
        wrong = (
            "too few to say how many are wrong" if n_wrong is None else f"about {n_wrong:,} probably wrong"
        )
        line = f"Teacher of {name}: {count(said['n_labels'], 'label')}, {wrong}; "
        line += f"the student disagrees on {count(said['n_disagreeing'], 'row')} (teacher_disagrees)."
        if said["words"]:
            surest = said["surest_rows"][:3]
            rows = f"row{'s' if len(surest) > 1 else ''} {', '.join(f'{row:,}' for row in surest)}"
            line += f" It is surest in {rows}, by the words {', '.join(said['words'])}."
        if said["n_scored"]:
            errors = [f"{who} {said[f'{who}_error']:.1%}" for who in ("teacher", "student", "both")]
            line += f" Wrong on {count(said['n_scored'], 'labelled row')}: {', '.join(errors)}."
        yield line


def describe_details(summary: dict[str, Any]) -> Iterator[str]:
    """Say the rest: the text, the vocabulary, the settings, predictions left empty, notes."""
    is_less = summary["pivots"] < summary["vocabulary"]
    pivots = f", {summary['pivots']:,} of them reconstructed" if is_less else ""
    tokens = f"{summary['tokens']} ({summary['tokens_reason']})"
    yield f"Vocabulary: {summary['vocabulary']:,} terms of {tokens}{pivots}."
    chosen = ", ".join(f"{name} {value:g}" for name, value in summary["chosen"].items())
    rule = "fixed" if summary["rule"] == "fixed" else f"{summary['rule']} over {summary['n_candidates']}"
    yield f"Settings: {chosen} ({rule}). Took {summary['seconds']:.0f} s."
    if summary.get("n_learnt"):
        yield f"Learnt {count(summary['n_learnt'], 'label')} of the target too."
    for target in summary["targets"]:
        if target["unseen_share"] is not None:
            yield f"{target['file']}: {target['unseen_share']:.0%} of its words are not in the source."
        if target["unknown_rows"]:
            yield f"{target['file']}: {target['unknown_rows']:,} rows have no known word and no prediction."
    if summary.get("distilled"):
        yield from describe_distilled(summary["distilled"])


def name_labels(summary: dict[str, Any]) -> str:
    """Name the labels that the baseline is trained on."""
    if "bridge" in summary:
        return "the bridge's labels"
    return "the teacher's labels" if summary.get("sources") == [] else "the source"


def describe_error(t: dict[str, Any], summary: dict[str, Any]) -> str:
    """Say in one sentence how many predictions of a target are wrong, measured or expected."""
    name, expected = Path(t["file"]).name, t["expected_error"]
    how = ", each predicted without its label" if summary.get("n_learnt") else ""
    if t.get("scored"):
        low, high = t["adapted_error_interval"]
        baseline = f"{t['baseline_error']:.1%} with a linear SVM trained on {name_labels(summary)}"
        least, most = t["gain_interval"]
        gain = "adaptation hurt" if most < 0 else "too few labels to tell whether adaptation helped"
        verdict = ": adaptation helped" if least > 0 else f": {gain}"
        verdict = _compare_with_chance(t["adapted_error"], t) or verdict
        verdict += _describe_distance(t, summary)
        return (
            f"{name}: {t['adapted_error']:.1%} wrong (95% interval {low:.1%} to {high:.1%}) on "
            f"{count(t['scored'], 'labelled row')}{how}, {baseline}{verdict}."
        )
    n_learnt = summary.get("n_learnt")
    when = f"measured with {count(n_learnt, 'label')}" if n_learnt else "expected without labels"
    if expected and expected["error"] is not None:
        when += _compare_with_chance(expected["error"], t)
    return f"{name}: {describe_expected(expected, when)}."


def _describe_distance(target: dict[str, Any], summary: dict[str, Any]) -> str:
    """Say how far predictions are from their labels, where more than two classes are numbers."""
    distance, baseline = target["mean_distance"], target["baseline_distance"]
    if distance is None or len(summary["labels"]) < 3:
        return ""
    return f"; on average {distance:.2f} away from the label, the SVM {baseline:.2f}"


def _compare_with_chance(error: float, target: dict[str, Any]) -> str:
    """Say so where predictions are no better than one answer for all rows."""
    chance = find_chance(target)
    if chance is None or not is_no_better(error, chance):
        return ""
    return f": no better than chance (always answering {chance['label']} is wrong for {chance['error']:.1%})"


def describe_class_shares(t: dict[str, Any]) -> Iterator[str]:
    """Say which classes were predicted, and which shares they were given or estimated to have.

    More than a few classes are told one a line.
    """
    head, shares, known = f"Class shares of {t['file']}", t["predicted_shares"], t["target_shares"]
    interval = None if t["target_shares_given"] else t["target_shares_interval"]
    how = "given" if t["target_shares_given"] else "estimated"
    is_unknown = interval and all(high - low > 0.9 for low, high in interval.values())
    if len(shares) <= MOST_TOLD or not known or is_unknown:
        line = f"{head}: predicted {list_shares(shares)}"
        if is_unknown:
            line += "; the estimate is uncertain"
        elif known:
            line += f"; {how} {list_shares(known, interval)}"
        yield f"{line}."
        return
    yield f"{head}, predicted and {how}:"
    told = pick_frequent(known)
    width = max(map(len, told))
    for label, predicted in zip(shares, write_shares(shares.values()), strict=True):
        if label in told:
            share = write_share(known[label], interval and interval[label])
            yield f"  {label:<{width}}  {predicted:>6}  {share}"
    if len(shares) > len(told):
        yield f"  and {len(shares) - len(told):,} more classes (--json, or the report)"


def choose_next(summary: dict[str, Any]) -> Iterator[str]:
    """Say what to do next, and the command for it: look at the report, label rows, predict new rows."""
    target, is_scored = summary["targets"][0], any(t.get("scored") for t in summary["targets"])
    model = summary["model"] or summary.get("distilled", {}).get("out")
    if summary["report"] and is_scored:
        yield f"Next: open {summary['report']}"
        return
    is_open_question = any(map(is_undecided, summary["targets"]))
    if is_open_question:
        labels = list(target["predicted_shares"])
        shares = ",".join(f"{label}=..." for label in labels[:MOST_EXAMPLES])
        shares += f",... for all {len(labels)} classes" if len(labels) > MOST_EXAMPLES else ""
        yield (
            f"Do you know the class shares? Add --target-shares {SAME} (as in the source), or numbers: "
            f"--target-shares {shares}"
        )
    if not model:
        questions = " Five answers there decide between the readings." if is_open_question else ""
        yield f"Next: add --model FILE --updatable, for `undrift predict` and `undrift label`.{questions}"
        return
    domain = ["--domain", Path(target["file"]).name] if len(summary["targets"]) > 1 else []
    if is_scored or not summary["model"]:
        yield "Next: predict new rows:"
        command = ["predict", model, "NEW.csv", *domain, "--out", "FILE"]
    else:
        learn = ", and to learn from them" if summary["updatable"] else ""
        decide = "answer five questions, which decide between the readings"
        start = f"Next: {decide}" if is_open_question else "Next: label some rows"
        yield f"{start}, to measure the error{learn}:"
        command = ["label", model, target["file"], *domain]
    yield f"  {shlex.join(['undrift', *command])}"
