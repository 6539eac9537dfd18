"""The summary of an adapt job: ready for JSON, and the lines that the command prints."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import count
from ..method import MSDAClassifier, is_open
from ..results import (
    MOST_LABELS,
    MOST_TOLD,
    Chance,
    Comparison,
    Label,
    Score,
    Target,
    describe_readings,
    list_shares,
    tabulate_shares,
    write_class,
)
from .distill import DistilledFile
from .domains import JobDomain
from .job import AdaptJob, Facts
from .options import SAME
from .teacher import TeacherSummary
from .terminal import describe_file, format_size

DIFFERENT = "readings-differ"  # code of a warning
MOST_EXAMPLES = 3  # classes in an example of an option


@dataclass(frozen=True)
class FileRows(Facts):
    """Rows of a file."""

    file: str
    rows: int
    empty: int  # without text
    bad_rows: int  # skipped as unreadable
    labelled: int

    @classmethod
    def of(cls, domain: JobDomain) -> FileRows:
        """Count the rows of a domain."""
        return FileRows(str(domain.path), domain.n_rows, domain.n_empty, domain.n_bad, domain.n_labelled)

    def say(self, text: Sequence[str]) -> str:
        """Count the rows, those that are empty or could not be read too, and name the text."""
        empty = f", {self.empty:,} empty" if self.empty else ""
        bad = f", {self.bad_rows:,} skipped as unreadable" if self.bad_rows else ""
        return f"{self.file}: {count(self.rows, 'row')}{empty}{bad}, text = {', '.join(text)}"


@dataclass(frozen=True, kw_only=True)
class DrySummary(Facts):
    """What a job reads."""

    sources: Sequence[FileRows]
    targets: Sequence[FileRows]
    text: Sequence[str]  # columns
    target_text: Sequence[str]
    labels: Mapping[str, int]  # labelled rows of every class
    notes: Sequence[str]
    warnings: Sequence[str] = ()

    def describe(self, *, is_verbose: bool = False) -> Iterator[str]:
        """Say what would be read, file by file, and that nothing was written."""
        for file in self.sources:
            yield f"Source {file.say(self.text)}, {count(file.labelled, 'label')}."
        yield f"{len(self.labels)} classes: {list_counts(self.labels)}."
        for file in self.targets:
            labels = f", {count(file.labelled, 'label')}" if file.labelled else ""
            yield f"Target {file.say(self.target_text)}{labels}."
        yield from (f"Note: {note}." for note in self.notes)
        yield "Nothing was fitted or written (--dry-run)."


@dataclass(frozen=True)
class ModelFile:
    """Size of a saved model: by parts, and the bits of a weight that change none of some predictions."""

    bytes: int
    parts: Mapping[str, int]
    bits: int
    n_checked: int


@dataclass(frozen=True, kw_only=True)
class TargetSummary(FileRows):
    """What was read, predicted, expected and measured of a target."""

    unseen_share: float | None  # of its words, that the source lacks
    predicted_shares: Mapping[str, float]
    unknown_rows: int  # without a known word
    known: Target
    target_shares_given: bool
    border: str
    n_doubtful: int | None = None  # left empty by --min-confidence
    scored: Comparison | None = None  # None without a column or file of labels
    labelled_shares: Mapping[str, float] | None = None  # None if the labels were learnt, or not scored
    teacher: TeacherSummary | None = None

    @property
    def name(self) -> str:
        """Name of the file."""
        return Path(self.file).name

    @property
    def errors(self) -> Comparison | None:
        """Mistakes on labelled rows; None where no row could be scored."""
        return self.scored if self.scored and self.scored.n_rows else None

    @property
    def is_undecided(self) -> bool:
        """Tell whether the readings differ, and nobody gave the class shares."""
        return not self.target_shares_given and is_open(self.known.readings)

    def to_dict(self) -> dict[str, object]:
        """Return everything, ready for JSON."""
        made = {name: value for name, value in super().to_dict().items() if name not in ("known", "scored")}
        made |= self.known.to_dict()
        if self.scored is None:
            return made
        if self.errors is None:
            return made | {"scored": 0, "baseline_error": None, "adapted_error": None}
        after, gain = self.errors.after, self.errors.gain
        baseline_distance, mean_distance = self.errors.mean_distances or (None, None)
        return made | {
            "scored": after.n_rows,
            "baseline_error": self.errors.before.error,
            "adapted_error": after.error,
            "adapted_error_interval": [after.low, after.high],
            "gain_interval": [gain.low, gain.high],
            "mean_distance": mean_distance,
            "baseline_distance": baseline_distance,
        }

    def say_chance(self, score: Score) -> str:
        """Say so where predictions are no better than one answer for all rows."""
        shares = self.labelled_shares or self.known.shares
        chance = Chance.find(shares, is_balanced=self.border == "balanced")
        if chance is None or not chance.is_as_good(score.error):
            return ""
        return f": no better than chance (always answering {chance.label} is wrong for {chance.error:.1%})"

    def describe_shares(self) -> Iterator[str]:
        """Say which classes were predicted, and which shares they were given or estimated to have.

        More than a few classes are told one a line.
        """
        head, predicted, shares = f"Class shares of {self.file}", self.predicted_shares, self.known.shares
        how, interval = ("given", None) if self.target_shares_given else ("estimated", self.known.intervals)
        is_unknown = interval and all(high - low > 0.9 for low, high in interval.values())
        if len(predicted) <= MOST_TOLD or is_unknown:
            said = "the estimate is uncertain" if is_unknown else f"{how} {list_shares(shares, interval)}"
            yield f"{head}: predicted {list_shares(predicted)}; {said}."
            return
        yield f"{head}, predicted and {how}:"
        yield from tabulate_shares(predicted, shares, interval)


@dataclass(frozen=True, kw_only=True)
class AdaptSummary(DrySummary):
    """What a job read, learnt, predicted and wrote."""

    targets: Sequence[TargetSummary]
    out: Path | None
    model: Path | None
    report: Path | None
    updatable: bool
    classes: Sequence[Label]
    vocabulary: int  # terms
    pivots: int  # terms that the first layer reconstructs
    tokens: str
    tokens_reason: str
    chosen: Mapping[str, float]
    n_candidates: int
    form: str
    n_learnt: int | None = None  # labels of the target; None where none should be learnt
    bridge: Mapping[str, str | Mapping[str, str]] | None = None  # languages of the source and of every target
    model_file: ModelFile | None = None
    distilled: DistilledFile | None = None
    seconds: float = 0.0

    @property
    def rule(self) -> str:
        """How settings were chosen."""
        return "source-cv" if self.n_candidates > 1 else "fixed"

    @property
    def taught_by(self) -> str:
        """Labels that the baseline is trained on."""
        if self.bridge:
            return "the bridge's labels"
        return "the source" if self.sources else "the teacher's labels"

    def to_dict(self) -> dict[str, object]:
        """Return everything, ready for JSON."""
        sources = [{**file.to_dict(), "unlabelled": file.rows - file.labelled} for file in self.sources]
        return super().to_dict() | {"rule": self.rule, "sources": sources}

    def describe(self, *, is_verbose: bool = False) -> Iterator[str]:
        """Say what a job did, and what to do next."""
        parts = [f"{file.say(self.text)}, {file.labelled:,} labels" for file in self.sources]
        if parts:
            parts[-1] += f" ({list_counts(self.labels)})"
        yield f"Read {'; '.join([*parts, *(target.say(self.target_text) for target in self.targets)])}."
        yield from self.describe_bridge()
        for target in self.targets:
            yield self.say_error(target)
            yield from target.describe_shares()
            if target.n_doubtful is not None:
                rows = f"{target.n_doubtful:,} of {count(target.rows, 'prediction')}"
                yield f"Left empty as doubtful (--min-confidence): {rows} for {target.file}."
            if target.is_undecided:
                yield from describe_readings(target.known.readings, target.name)
        yield from self.describe_teachers()
        for note in self.notes:
            if not any(warning.startswith(note) for warning in self.warnings):
                yield f"Note: {note}."
        yield f"Wrote {', '.join(self._list_outputs())}."
        if is_verbose:
            yield from self._describe_details()
        yield from self._choose_next()

    def describe_bridge(self) -> Iterator[str]:
        """Say from which language labels came, and what the model reads."""
        if self.bridge:
            source, languages = self.bridge["source_language"], self.bridge["languages"]
            assert isinstance(languages, Mapping)
            yield (
                f"Labels came from {source} by sentence vectors; the model reads "
                f"{' and '.join(dict.fromkeys(languages.values()))} alone. The expected "
                f"error takes it that the vectors err as on {source}: label some rows to measure it."
            )

    def describe_teachers(self) -> Iterator[str]:
        """Say of every target that has a teacher how good its labels look."""
        yield from (target.teacher.say(target.name) for target in self.targets if target.teacher)

    def say_error(self, target: TargetSummary) -> str:
        """Say in one sentence how many predictions of a target are wrong, measured or expected."""
        n_learnt, errors = self.n_learnt, target.errors
        if errors is None:
            when = f"measured with {count(n_learnt, 'label')}" if n_learnt else "expected without labels"
            expected = target.known.expected
            return f"{target.name}: {expected.say()}, {when}{target.say_chance(expected)}."
        how = ", each predicted without its label" if n_learnt else ""
        baseline = f"{errors.before.error:.1%} with a linear SVM trained on {self.taught_by}"
        helped = {"yes": "adaptation helped", "no": "adaptation hurt"}
        unclear = "too few labels to tell whether adaptation helped"
        verdict = target.say_chance(errors.after) or f": {helped.get(errors.gain.answer, unclear)}"
        if errors.mean_distances and len(self.labels) > 2:
            before, after = errors.mean_distances
            verdict += f"; on average {after:.2f} away from the label, the SVM {before:.2f}"
        n_rows = count(errors.n_rows, "labelled row")
        return f"{target.name}: {errors.after.say()} on {n_rows}{how}, {baseline}{verdict}."

    def _list_outputs(self) -> Iterator[str]:
        """Name the files that were written, and their sizes; of a model also its parts."""
        yield describe_file(str(self.out))
        if file := self.model_file:
            parts = {name.replace("_", " "): size for name, size in file.parts.items() if size}
            sizes = ", ".join(f"{name} {format_size(size)}" for name, size in parts.items())
            learns = "" if self.updatable else "; --updatable adds the training rows to learn labels with"
            yield f"{self.model} ({format_size(file.bytes)}: {sizes}{learns})"
        if self.report:
            yield describe_file(str(self.report))
        if self.distilled:
            yield describe_file(self.distilled.out)

    def _describe_details(self) -> Iterator[str]:
        """Say the rest: the vocabulary, the settings, rows that were left empty."""
        pivots = f", {self.pivots:,} of them reconstructed" if self.pivots < self.vocabulary else ""
        yield f"Vocabulary: {self.vocabulary:,} terms of {self.tokens} ({self.tokens_reason}){pivots}."
        chosen = ", ".join(f"{name} {value:g}" for name, value in self.chosen.items())
        rule = "fixed" if self.rule == "fixed" else f"{self.rule} over {self.n_candidates}"
        yield f"Settings: {chosen} ({rule}). Took {self.seconds:.0f} s."
        if self.n_learnt:
            yield f"Learnt {count(self.n_learnt, 'label')} of the target too."
        for target in self.targets:
            if target.unseen_share is not None:
                yield f"{target.file}: {target.unseen_share:.0%} of its words are not in the source."
            if target.unknown_rows:
                yield f"{target.file}: {target.unknown_rows:,} rows have no known word and no prediction."
        if self.distilled:
            yield self.distilled.describe()

    def _choose_next(self) -> Iterator[str]:
        """Say what to do next, and the command for it: look at the report, label rows, predict new rows."""
        target, is_scored = self.targets[0], any(each.errors for each in self.targets)
        model = self.model or (self.distilled and self.distilled.out)
        if self.report and is_scored:
            yield f"Next: open {self.report}"
            return
        is_open_question = any(target.is_undecided for target in self.targets)
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
        domain = ["--domain", target.name] if len(self.targets) > 1 else []
        if is_scored or not self.model:
            yield "Next: predict new rows:"
            command = ["predict", str(model), "NEW.csv", *domain, "--out", "FILE"]
        else:
            learn = ", and to learn from them" if self.updatable else ""
            decide = "answer five questions, which decide between the readings"
            start = f"Next: {decide}" if is_open_question else "Next: label some rows"
            yield f"{start}, to measure the error{learn}:"
            command = ["label", str(model), target.file, *domain]
        yield f"  {shlex.join(['undrift', *command])}"


def list_counts(labels: Mapping[str, int]) -> str:
    """Write the number of rows of every class, those of ten classes at most."""
    counts = [f"{write_class(label)} {n:,}" for label, n in sorted(labels.items())]
    rest = [f"{len(counts) - MOST_LABELS:,} more"] if len(counts) > MOST_LABELS else []
    return ", ".join([*counts[:MOST_LABELS], *rest])


def list_notes(job: AdaptJob, targets: Sequence[JobDomain]) -> list[str]:
    """Note columns of labels that are ignored or empty."""
    notes, name_of_labels = [], (job.label or "label").casefold()
    for target in targets:
        name = target.path.name
        labels = [column for column in target.kinds if column.strip().casefold() == name_of_labels]
        if target.labels is None and labels:
            remedy = f"add --target-label {shlex.quote(labels[0])} to measure the error"
            notes.append(f"{name} has a column {labels[0]!r}: ignored ({remedy})")
        if target.labels is not None and target.n_labelled == 0:
            notes.append(f"{name} has no label to score with")
    return notes


def list_doubts(classifier: MSDAClassifier) -> list[str]:
    """List the doubts that a fit had of its targets."""
    known = classifier.targets_.values()
    doubts = [pair for each in known for pair in zip(each["codes"], each["warnings"], strict=True)]
    return list(dict.fromkeys(text for code, text in doubts if code != DIFFERENT))
