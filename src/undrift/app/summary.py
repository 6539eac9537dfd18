"""The summary of an adapt job: ready for JSON, and the lines that the command prints."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from ..core import Rows
from ..errors import UndriftWarning, count, warn
from ..explain import score_contributions
from ..inputs import gather_rows, spell_label
from ..method import is_open
from ..results import (
    MOST_LABELS,
    MOST_TOLD,
    Chance,
    Comparison,
    Label,
    Score,
    Target,
    list_shares,
    tabulate_shares,
    write_class,
)
from ..text import FAR_APART, TextAdapter, unseen_share
from .distill import DistilledFile
from .domains import JobDomain
from .job import AdaptJob
from .options import SAME
from .predictions import Counts, Predictions
from .stories import tell_stories
from .terminal import describe_file, format_size

DIFFERENT = "readings-differ"  # code of a warning
MOST_EXAMPLES = 3  # classes in an example of an option
EXPLAINED_ROWS, N_WORDS = 10, 5  # that say where and why a student disagrees with its teacher
FEW_TAUGHT = 400  # labels of a teacher below which the prior decides about their noise


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

    def describe(self, text: Sequence[str]) -> str:
        """Count the rows, those that are empty or could not be read too, and name the text."""
        empty = f", {self.empty:,} empty" if self.empty else ""
        bad = f", {self.bad_rows:,} skipped as unreadable" if self.bad_rows else ""
        return f"{self.file}: {count(self.rows, 'row')}{empty}{bad}, text = {', '.join(text)}"


@dataclass(frozen=True)
class DrySummary:
    """What a job would read."""

    sources: Sequence[FileRows]
    targets: Sequence[FileRows]
    text: Sequence[str]  # columns
    target_text: Sequence[str]
    labels: Mapping[str, int]  # labelled rows of every class
    notes: Sequence[str]
    warnings: Sequence[str]

    def to_dict(self) -> dict[str, object]:
        """Return everything, ready for JSON."""
        return asdict(self)


def describe_dry(summary: DrySummary) -> Iterator[str]:
    """Say what would be read, file by file, and that nothing was written."""
    for file in summary.sources:
        yield f"Source {file.describe(summary.text)}, {count(file.labelled, 'label')}."
    yield f"{len(summary.labels)} classes: {list_counts(summary.labels)}."
    for file in summary.targets:
        labels = f", {count(file.labelled, 'label')}" if file.labelled else ""
        yield f"Target {file.describe(summary.target_text)}{labels}."
    yield from (f"Note: {note}." for note in summary.notes)
    yield "Nothing was fitted or written (--dry-run)."


@dataclass(frozen=True)
class FitFacts:
    """The classes, the vocabulary and the settings of a fit."""

    classes: Sequence[Label]
    vocabulary: int  # terms
    pivots: int  # terms that the first layer reconstructs
    tokens: str
    tokens_reason: str
    chosen: Mapping[str, float]
    rule: str
    n_candidates: int
    form: str

    @classmethod
    def of(cls, adapter: TextAdapter) -> FitFacts:
        """Return the facts of a fitted adapter."""
        classifier, vectorizer = adapter.classifier_, adapter.vectorizer_
        n_candidates = len(classifier.selection_results_)
        return cls(
            classes=adapter.classes_.tolist(),
            vocabulary=len(adapter.terms_),
            pivots=classifier.representation_.layers_[0].coef.shape[1],
            tokens=vectorizer.tokens_,
            tokens_reason=vectorizer.tokens_reason_,
            chosen=dict(classifier.best_params_),
            rule="source-cv" if n_candidates > 1 else "fixed",
            n_candidates=n_candidates,
            form=classifier.representation_.form_,
        )


@dataclass(frozen=True)
class Bridge:
    """Languages that sentence vectors carried labels between."""

    source_language: str
    languages: Mapping[str, str]  # of every target


@dataclass(frozen=True)
class ModelFile:
    """Size of a saved model: by parts, and the bits of a weight that change none of some predictions."""

    bytes: int
    parts: Mapping[str, int]
    bits: int
    n_checked: int


@dataclass(frozen=True)
class Scored:
    """The errors of the baseline and of the predictions on labelled rows of a target, and their classes."""

    errors: Comparison
    shares: Mapping[str, float] | None = None  # of the classes; None if the labels were learnt, or not scored

    def to_dict(self) -> dict[str, object]:
        """Return everything, ready for JSON."""
        shares = {} if self.shares is None else {"labelled_shares": self.shares}
        if not self.errors.n_rows:
            return {**shares, "scored": 0, "baseline_error": None, "adapted_error": None}
        after, gain = self.errors.after, self.errors.gain
        baseline_distance, mean_distance = self.errors.mean_distances or (None, None)
        return shares | {
            "scored": after.n_rows,
            "baseline_error": self.errors.before.error,
            "adapted_error": after.error,
            "adapted_error_interval": [after.low, after.high],
            "gain_interval": [gain.low, gain.high],
            "mean_distance": mean_distance,
            "baseline_distance": baseline_distance,
        }


@dataclass(frozen=True)
class TeacherSummary:
    """A teacher's labels of a target, its probable mistakes, and the rows where the student disagrees.

    With true labels, also the errors of teacher, student and both on the rows that the teacher labelled.
    """

    n_labels: int
    n_disagreeing: int
    noise: float  # share of labels that look exchanged at random
    n_scored: int
    n_probably_wrong: int | None  # None where labels are too few
    errors: Mapping[str, float]  # by who predicts
    surest_rows: Sequence[int]  # from 1, where the student disagrees
    words: Sequence[str]  # that decide these

    def to_dict(self) -> dict[str, object]:
        """Return everything, ready for JSON."""
        known = asdict(self)
        errors = known.pop("errors")
        return known | {f"{name}_error": error for name, error in errors.items()}


@dataclass(frozen=True)
class TargetSummary:
    """What was read, predicted, expected and measured of a target."""

    file: FileRows
    unseen_share: float | None  # of its words, that the source lacks
    counts: Counts
    known: Target
    are_shares_given: bool
    border: str
    scored: Scored | None = None  # None without a column or file of labels
    teacher: TeacherSummary | None = None

    @property
    def name(self) -> str:
        """Name of the file."""
        return Path(self.file.file).name

    @property
    def errors(self) -> Comparison | None:
        """Mistakes on labelled rows; None where no row could be scored."""
        return self.scored.errors if self.scored and self.scored.errors.n_rows else None

    @property
    def has_improved(self) -> bool:
        """Tell whether labels show that adaptation helped."""
        return self.errors is not None and self.errors.gain.answer == "yes"

    @property
    def is_undecided(self) -> bool:
        """Tell whether the readings differ, and nobody gave the class shares."""
        return not self.are_shares_given and is_open(self.known.readings)

    def to_dict(self, *, has_doubtful: bool) -> dict[str, object]:
        """Return everything, ready for JSON."""
        return {
            **asdict(self.file),
            "unseen_share": self.unseen_share,
            **(self.scored.to_dict() if self.scored else {}),
            "predicted_shares": self.counts.predicted_shares,
            **self.known.to_dict(),
            "target_shares_given": self.are_shares_given,
            "border": self.border,
            "unknown_rows": self.counts.unknown_rows,
            **({"n_doubtful": self.counts.n_doubtful} if has_doubtful else {}),
            **({"teacher": self.teacher.to_dict()} if self.teacher else {}),
        }


@dataclass(frozen=True)
class AdaptSummary:
    """What a job read, learnt, predicted and wrote."""

    job: AdaptJob
    sources: Sequence[FileRows]
    targets: Sequence[TargetSummary]
    labels: Mapping[str, int]  # labelled rows of every class
    fit: FitFacts
    notes: Sequence[str]
    n_learnt: int | None = None  # labels of the target; None where none should be learnt
    bridge: Bridge | None = None
    model_file: ModelFile | None = None
    distilled: DistilledFile | None = None
    warnings: Sequence[str] = ()
    seconds: float = 0.0

    def to_dict(self) -> dict[str, object]:
        """Return everything, ready for JSON."""
        job = self.job
        parts = {"bridge": self.bridge, "model_file": self.model_file, "distilled": self.distilled}
        return {
            "sources": [{**asdict(file), "unlabelled": file.rows - file.labelled} for file in self.sources],
            "targets": [
                target.to_dict(has_doubtful=job.min_confidence is not None) for target in self.targets
            ],
            "notes": list(self.notes),
            "text": list(job.text),
            "target_text": list(job.target_text),
            **{
                name: path and str(path)
                for name, path in (("out", job.out), ("model", job.model), ("report", job.report))
            },
            "labels": dict(self.labels),
            "updatable": job.updatable,
            **asdict(self.fit),
            **({} if self.n_learnt is None else {"n_learnt": self.n_learnt}),
            **{name: asdict(part) for name, part in parts.items() if part},
            "warnings": list(self.warnings),
            "seconds": self.seconds,
        }


def compare_words(
    targets: Sequence[JobDomain], words: Sequence[Counter[str]], tokens: str
) -> list[float | None]:
    """Return the share of each target's words that the source lacks; warn where it lacks most.

    `words` are those of every source, and then of every target; without a source nothing is compared.
    """
    n_sources = len(words) - len(targets)
    if n_sources < 1:
        return [None] * len(targets)
    known = set().union(*words[:n_sources])
    shares = [unseen_share(counts, known) for counts in words[n_sources:]]
    for target, share in zip(targets, shares, strict=True):
        if share > FAR_APART:
            warn(
                f"{share:.0%} of the {tokens} of {target.path.name} never occur in the source (overlap "
                f"{1 - share:.0%}): with so few {tokens} in common, expect little from adaptation; add "
                "--bridge if they are in different languages",
                code="far-apart",
            )
    return [None if share != share else share for share in shares]


def list_notes(job: AdaptJob, targets: Sequence[JobDomain], adapter: TextAdapter) -> list[str]:
    """Note columns of labels that are ignored or empty, and the doubts that the fit had."""
    notes = []
    for target in targets:
        name = target.path.name
        labels = [column for column in target.kinds if column.strip().casefold() == job.label.casefold()]
        if target.labels is None and labels:
            remedy = f"add --target-label {shlex.quote(labels[0])} to measure the error"
            notes.append(f"{name} has a column {labels[0]!r}: ignored ({remedy})")
        if target.labels is not None and target.n_labelled == 0:
            notes.append(f"{name} has no label to score with")
    known = adapter.classifier_.targets_.values()
    doubts = [pair for each in known for pair in zip(each["codes"], each["warnings"], strict=True)]
    return notes + list(dict.fromkeys(text for code, text in doubts if code != DIFFERENT))


def keep_warnings(given: Sequence[UndriftWarning], targets: Sequence[TargetSummary]) -> list[str]:
    """Return every warning once. Warnings about adaptation go if labels show that it helped."""
    dropped = {DIFFERENT}  # stories are told instead
    if all(target.has_improved for target in targets):
        dropped.add("far-apart")
    return list(dict.fromkeys(str(warning) for warning in given if warning.code not in dropped))


def summarize_teacher(
    adapter: TextAdapter, X: Rows, target: JobDomain, predicted: Predictions, *, noise: float, is_scored: bool
) -> TeacherSummary:
    """Count a teacher's labels, its probable mistakes, and the rows where the student disagrees.

    Labels that were exchanged at random are wrong, and half of the others that the student contradicts.
    """
    taught = [i for i, answer in enumerate(predicted.disagrees) if answer is not None]
    n_disagreeing, n_exchanged = sum(map(bool, predicted.disagrees)), noise * len(taught)
    truth = target.truth if is_scored and target.n_scored else np.full((target.n_rows, 2), None)
    scored = [i for i in taught if truth[i, 0] is not None]
    views: dict[str, Sequence[Label] | np.ndarray]
    views = {"teacher": target.teacher["teacher"], "student": predicted.student, "both": predicted.labels}
    errors = {}
    for name, labels in views.items() if scored else ():
        wrong = np.array([spell_label(labels[i]) != spell_label(truth[i, 0]) for i in scored])
        errors[name] = Score.measure(wrong, truth[scored, 1].astype(float)).error
    n_wrong = round((n_exchanged + max(n_disagreeing, n_exchanged)) / 2)
    return TeacherSummary(
        len(taught),
        n_disagreeing,
        noise,
        len(scored),
        n_wrong if len(taught) >= FEW_TAUGHT else None,
        errors,
        *explain_disagreement(adapter, X, target, predicted),
    )


def explain_disagreement(
    adapter: TextAdapter, X: Rows, target: JobDomain, predicted: Predictions
) -> tuple[list[int], list[str]]:
    """Return the surest rows where the student disagrees with its teacher, and the words that decide them."""
    classifier, codes = adapter.classifier_, {label: k for k, label in enumerate(adapter.classes_.tolist())}
    rows = [i for i, answer in enumerate(predicted.disagrees) if answer]
    if not rows:
        return [], []
    surest = sorted(rows, key=lambda i: -predicted.student_margin[i])[:EXPLAINED_ROWS]
    taken = sorted(surest)  # rows of a cluster are taken in their order
    unit = np.array([[-1.0], [1.0]]) if len(codes) == 2 else np.eye(len(codes))
    views = predicted.student, target.teacher["teacher"]
    own, other = (unit[[codes[labels[i]] for i in taken]] for labels in views)
    X = gather_rows(X[taken])
    parts = score_contributions(classifier, X, own - other, target=target.name)[1].sum(axis=0)
    order = np.argsort(-parts.round(3), kind="stable")  # terms that always occur together differ by rounding
    words = [adapter.terms_[j] for j in order[:N_WORDS] if parts[j] > 0]
    return [i + 1 for i in surest], words


def describe_summary(summary: AdaptSummary, is_verbose: bool = False) -> Iterator[str]:
    """Say what a job did, and what to do next."""
    yield _describe_files(summary)
    yield from describe_bridge(summary)
    for target in summary.targets:
        yield describe_error(target, summary)
        yield from describe_class_shares(target)
        if summary.job.min_confidence is not None:
            rows = f"{target.counts.n_doubtful:,} of {count(target.file.rows, 'prediction')}"
            yield f"Left empty as doubtful (--min-confidence): {rows} for {target.file.file}."
        if target.is_undecided:
            yield from tell_stories(target.known.readings, target.name)
    yield from describe_teachers(summary)
    for note in summary.notes:
        if not any(warning.startswith(note) for warning in summary.warnings):
            yield f"Note: {note}."
    yield f"Wrote {', '.join(_list_outputs(summary))}."
    if is_verbose:
        yield from describe_details(summary)
    yield from choose_next(summary)


def describe_bridge(summary: AdaptSummary) -> Iterator[str]:
    """Say from which language labels came, and what the model reads."""
    if summary.bridge:
        languages = " and ".join(dict.fromkeys(summary.bridge.languages.values()))
        source = summary.bridge.source_language
        yield (
            f"Labels came from {source} by sentence vectors; the model reads {languages} alone. The expected "
            f"error takes it that the vectors err as on {source}: label some rows to measure it."
        )


def _list_outputs(summary: AdaptSummary) -> Iterator[str]:
    """Name the files that were written, and their sizes; of a model also its parts, and what it can do."""
    job, file = summary.job, summary.model_file
    yield describe_file(str(job.out))
    if file:
        sizes = [f"{name.replace('_', ' ')} {format_size(size)}" for name, size in file.parts.items() if size]
        learns = "" if job.updatable else "; --updatable adds the training rows to learn labels with"
        yield f"{job.model} ({format_size(file.bytes)}: {', '.join(sizes)}{learns})"
    yield from (describe_file(str(path)) for path in (job.report, job.distilled) if path)


def _describe_files(summary: AdaptSummary) -> str:
    job = summary.job
    parts = [f"{file.describe(job.text)}, {file.labelled:,} labels" for file in summary.sources]
    if parts:
        parts[-1] += f" ({list_counts(summary.labels)})"
    parts += [target.file.describe(job.target_text) for target in summary.targets]
    return f"Read {'; '.join(parts)}."


def list_counts(labels: Mapping[str, int]) -> str:
    """Write the number of rows of every class, those of ten classes at most."""
    counts = [f"{write_class(label)} {n:,}" for label, n in sorted(labels.items())]
    rest = [f"{len(counts) - MOST_LABELS:,} more"] if len(counts) > MOST_LABELS else []
    return ", ".join([*counts[:MOST_LABELS], *rest])


def describe_teachers(summary: AdaptSummary) -> Iterator[str]:
    """Say of every target how many labels the teacher gave, and how many are probably wrong."""
    for target in summary.targets:
        said = target.teacher
        if said is None:
            continue
        n_wrong = said.n_probably_wrong
        wrong = (
            "too few to say how many are wrong" if n_wrong is None else f"about {n_wrong:,} probably wrong"
        )
        line = f"Teacher of {target.name}: {count(said.n_labels, 'label')}, {wrong}; "
        line += f"the student disagrees on {count(said.n_disagreeing, 'row')} (teacher_disagrees)."
        if said.words:
            surest = said.surest_rows[:3]
            rows = f"row{'s' if len(surest) > 1 else ''} {', '.join(f'{row:,}' for row in surest)}"
            line += f" It is surest in {rows}, by the words {', '.join(said.words)}."
        if said.n_scored:
            errors = [f"{who} {error:.1%}" for who, error in said.errors.items()]
            line += f" Wrong on {count(said.n_scored, 'labelled row')}: {', '.join(errors)}."
        yield line


def describe_details(summary: AdaptSummary) -> Iterator[str]:
    """Say the rest: the text, the vocabulary, the settings, predictions left empty, notes."""
    fit = summary.fit
    pivots = f", {fit.pivots:,} of them reconstructed" if fit.pivots < fit.vocabulary else ""
    yield f"Vocabulary: {fit.vocabulary:,} terms of {fit.tokens} ({fit.tokens_reason}){pivots}."
    chosen = ", ".join(f"{name} {value:g}" for name, value in fit.chosen.items())
    rule = "fixed" if fit.rule == "fixed" else f"{fit.rule} over {fit.n_candidates}"
    yield f"Settings: {chosen} ({rule}). Took {summary.seconds:.0f} s."
    if summary.n_learnt:
        yield f"Learnt {count(summary.n_learnt, 'label')} of the target too."
    for target in summary.targets:
        file, counts = target.file.file, target.counts
        if target.unseen_share is not None:
            yield f"{file}: {target.unseen_share:.0%} of its words are not in the source."
        if counts.unknown_rows:
            yield f"{file}: {counts.unknown_rows:,} rows have no known word and no prediction."
    if summary.distilled:
        yield summary.distilled.describe()


def name_labels(summary: AdaptSummary) -> str:
    """Name the labels that the baseline is trained on."""
    if summary.bridge:
        return "the bridge's labels"
    return "the source" if summary.sources else "the teacher's labels"


def describe_error(target: TargetSummary, summary: AdaptSummary) -> str:
    """Say in one sentence how many predictions of a target are wrong, measured or expected."""
    n_learnt, errors = summary.n_learnt, target.errors
    if errors is None:
        when = f"measured with {count(n_learnt, 'label')}" if n_learnt else "expected without labels"
        expected = target.known.expected
        return f"{target.name}: {expected.say()}, {when}{_compare_with_chance(expected, target)}."
    how = ", each predicted without its label" if n_learnt else ""
    baseline = f"{errors.before.error:.1%} with a linear SVM trained on {name_labels(summary)}"
    verdict = (
        _compare_with_chance(errors.after, target)
        or {
            "yes": ": adaptation helped",
            "no": ": adaptation hurt",
            "unclear": ": too few labels to tell whether adaptation helped",
        }[errors.gain.answer]
    )
    if errors.mean_distances and len(summary.labels) > 2:
        before, after = errors.mean_distances
        verdict += f"; on average {after:.2f} away from the label, the SVM {before:.2f}"
    n_rows = count(errors.n_rows, "labelled row")
    return f"{target.name}: {errors.after.say()} on {n_rows}{how}, {baseline}{verdict}."


def _compare_with_chance(score: Score, target: TargetSummary) -> str:
    """Say so where predictions are no better than one answer for all rows."""
    shares = target.scored.shares if target.scored else None
    chance = Chance.find(shares or target.known.shares, is_balanced=target.border == "balanced")
    if chance is None or not chance.is_as_good(score.error):
        return ""
    return f": no better than chance (always answering {chance.label} is wrong for {chance.error:.1%})"


def describe_class_shares(target: TargetSummary) -> Iterator[str]:
    """Say which classes were predicted, and which shares they were given or estimated to have.

    More than a few classes are told one a line.
    """
    head, shares, known = f"Class shares of {target.file.file}", target.counts.predicted_shares, target.known
    how, interval = ("given", None) if target.are_shares_given else ("estimated", known.intervals)
    is_unknown = interval and all(high - low > 0.9 for low, high in interval.values())
    if len(shares) <= MOST_TOLD or is_unknown:
        said = "the estimate is uncertain" if is_unknown else f"{how} {list_shares(known.shares, interval)}"
        yield f"{head}: predicted {list_shares(shares)}; {said}."
        return
    yield f"{head}, predicted and {how}:"
    yield from tabulate_shares(shares, known.shares, interval)


def choose_next(summary: AdaptSummary) -> Iterator[str]:
    """Say what to do next, and the command for it: look at the report, label rows, predict new rows."""
    job, target, is_scored = summary.job, summary.targets[0], any(each.errors for each in summary.targets)
    model = job.model or job.distilled
    if job.report and is_scored:
        yield f"Next: open {job.report}"
        return
    is_open_question = any(target.is_undecided for target in summary.targets)
    if is_open_question:
        labels = list(target.known.shares)
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
    domain = ["--domain", target.name] if len(summary.targets) > 1 else []
    if is_scored or not job.model:
        yield "Next: predict new rows:"
        command = ["predict", str(model), "NEW.csv", *domain, "--out", "FILE"]
    else:
        learn = ", and to learn from them" if job.updatable else ""
        decide = "answer five questions, which decide between the readings"
        start = f"Next: {decide}" if is_open_question else "Next: label some rows"
        yield f"{start}, to measure the error{learn}:"
        command = ["label", str(model), target.file.file, *domain]
    yield f"  {shlex.join(['undrift', *command])}"
