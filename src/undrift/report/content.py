"""An adaptation as data: everything that the page shows, in numbers and words."""

from __future__ import annotations

import platform
import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from datetime import UTC, datetime
from functools import reduce
from importlib.metadata import version
from operator import add
from typing import Protocol, runtime_checkable

import numpy as np

from .._version import __version__
from ..method import ReadingFacts, Readings
from ..results import Chance, Comparison, Gain, Score, Target, error_interval, pick_shares
from .classes import ClassErrors, describe_classes
from .data import DomainRows, InputFile, PredictedRows, ReportData
from .evidence import (
    Change,
    Decks,
    Difference,
    Idea,
    SentenceModel,
    difference_terms,
    explain_changes,
    find_idea,
    make_decks,
    pack_sentence_model,
    shares,
    term_statistics,
)
from .suspects import Suspects, list_suspects

LEAST_MEASURED = 10  # labelled rows that a point of the curve stands for
COVERAGES = np.arange(1, 21) / 20
AGREEING = 0.9  # share of rows: a reading that agrees with the jury on fewer tells another story
LEAST_WEIGHT = 0.005  # of a reading that is told
MANY_WRONG = 0.3  # error above which predictions are not recommended


@runtime_checkable
class HasDict(Protocol):
    """Something that says itself how it is written as JSON."""

    def to_dict(self) -> dict[str, object]:
        """Return it as plain data."""
        ...


def to_plain(value: object) -> object:
    """Return data ready for JSON: a dataclass as its fields, whose names may end in _ to be no keyword."""
    if isinstance(value, HasDict):
        return to_plain(value.to_dict())
    if is_dataclass(value):
        return {each.name.rstrip("_"): to_plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Mapping):
        return {key: to_plain(each) for key, each in value.items()}
    return [to_plain(each) for each in value] if isinstance(value, list | tuple) else value


@dataclass(frozen=True)
class Card:
    """Rows, labels and vocabulary of a domain."""

    name: str
    role: str  # source or target
    n_rows: int
    n_sampled: int | None  # rows that are reported on, where these are not all
    n_labelled: int
    n_terms: int | None  # None if it is in another language
    unseen_share: float | None  # of a target's words, that the source lacks


@dataclass(frozen=True)
class TargetCard(Card):
    """A target's class shares too: predicted, estimated or given, and those of its labels."""

    known: Target | None  # None if the classifier was fitted without a target
    are_shares_given: bool
    predicted_shares: Mapping[str, float]
    labelled_shares: Mapping[str, float] | None
    weight: float  # of the labelled rows

    def to_dict(self) -> dict[str, object]:
        """Return everything, ready for JSON."""
        known = self.known
        made = {each.name: getattr(self, each.name) for each in fields(self) if each.name != "known"}
        return made | {
            "target_shares": known and known.shares,
            "target_shares_interval": known and known.intervals,
            "expected_error": known and known.expected.to_dict(),
        }


class ToldReading(ReadingFacts):
    """A reading, and its shares of the few classes that stories differ on."""

    told: dict[Hashable, float]


@dataclass(frozen=True)
class TargetReadings:
    """How a target can be read, and whether the readings differ on enough rows to tell."""

    name: str
    readings: Sequence[ToldReading]
    differ: bool


@dataclass(frozen=True)
class ScoredTarget:
    """Mistakes of the baseline and of the predictions on the labelled rows of a target."""

    name: str
    errors: Comparison

    def to_dict(self) -> dict[str, object]:
        """Return everything, ready for JSON."""
        return {
            "name": self.name,
            "n_rows": self.errors.n_rows,
            "n_corrected": self.errors.n_corrected,
            "n_spoilt": self.errors.n_spoilt,
            "source_only": self.errors.before,
            "adapted": self.errors.after,
            "difference": self.errors.gain,
        }


@dataclass(frozen=True)
class Agreement:
    """On how many rows the predictions are not the baseline's."""

    n_rows: int
    n_changed: int
    changed: float


@dataclass(frozen=True)
class Verdict:
    """How many predictions are wrong, and how certain that is: measured with labels, else expected."""

    agreement: Agreement
    scored: Sequence[ScoredTarget]
    basis: str  # measured or expected
    whole: ScoredTarget | None  # all targets together
    is_cross_fitted: bool
    use: str  # of target labels
    n_learnt: int
    expected_error: Score | None
    chance: Chance | None
    answer: str = ""  # yes, no, unclear, same, chance or unknown
    headline: str = ""
    sure: str = ""

    @property
    def errors(self) -> Comparison | None:
        """Mistakes on the labelled rows of all targets."""
        return self.whole.errors if self.whole else None


@dataclass(frozen=True)
class CoveragePoint:
    """The error among a share of the predictions, the surest."""

    coverage: float
    threshold: float  # probability from which these predictions are kept
    expected: float
    measured: Score | None


@dataclass(frozen=True)
class Run:
    """The command, settings and files that repeat the run."""

    command: str | None
    date: str
    seed: int | str | None
    versions: Mapping[str, str]
    files: Sequence[InputFile]


@dataclass(frozen=True)
class AdaptationPage:
    """Everything that the report of an adaptation shows."""

    kind: str
    title: str
    source_name: str
    target_name: str
    classes: Sequence[str]
    verdict: Verdict
    settings: Mapping[str, float]
    seconds: float | None
    warnings: Sequence[str]
    notes: Sequence[str]
    readings: Sequence[TargetReadings]
    teachers: Sequence[str]
    taught_by: str  # labels that the baseline is trained on
    domains: Sequence[Card]
    by_class: Sequence[ClassErrors]
    decks: Decks | None
    difference: Difference
    idea: Idea | None
    changes: Sequence[Change]
    sentence: SentenceModel | None
    coverage: Sequence[CoveragePoint]
    suspects: Suspects | None
    reproduce: Run
    next: Sequence[str]

    @property
    def targets(self) -> list[TargetCard]:
        """The cards of the targets."""
        return [card for card in self.domains if isinstance(card, TargetCard)]


def describe_adaptation(given: ReportData) -> AdaptationPage:
    """Gather everything that a report of an adaptation shows."""
    table = term_statistics(given)
    difference, targets = difference_terms(given, table), describe_targets(given)
    verdict, decks = judge(given, targets), make_decks(given)
    source, target = (
        " + ".join(domain.name for domain in domains) for domains in (given.sources, given.target_rows)
    )
    return AdaptationPage(
        kind="adaptation",
        title=f"{source} → {target}",
        source_name=source,
        target_name=target,
        classes=given.classes,
        verdict=verdict,
        settings={name: float(value) for name, value in given.classifier.best_params_.items()},
        seconds=given.facts.seconds,
        warnings=list(given.facts.warnings),
        notes=list(dict.fromkeys([*given.doubts, *given.facts.notes])),
        readings=describe_readings(given),
        teachers=describe_teachers(given),
        taught_by=given.facts.taught_by,
        domains=[*(_describe_rows(rows, "source") for rows in given.sources), *targets],
        by_class=describe_classes(given),
        decks=decks,
        difference=difference,
        idea=find_idea(given, table, difference),
        changes=explain_changes(given),
        sentence=pack_sentence_model(given),
        coverage=measure_coverage(given, verdict),
        suspects=list_suspects(given),
        reproduce=describe_run(given),
        next=advise(verdict, decks),
    )


def describe_readings(given: ReportData) -> list[TargetReadings]:
    """Describe how every target can be read, and whether the readings differ on enough rows to tell."""
    known = [(target.rows.name, given.known_of(target)) for target in given.targets]
    return [tell_readings(name, each.readings if each else []) for name, each in known]


def tell_readings(name: str, readings: Readings) -> TargetReadings:
    """Describe the readings of a target that have some weight, the heaviest first."""
    heard = [reading for reading in readings if reading["weight"] >= LEAST_WEIGHT]
    heard.sort(key=lambda reading: -reading["weight"])
    differ = min((reading["agreement"] for reading in heard), default=1.0) < AGREEING
    told = zip(heard, pick_shares(heard), strict=True)
    return TargetReadings(name, [ToldReading(**reading, told=shares) for reading, shares in told], differ)


def describe_teachers(given: ReportData) -> list[str]:
    """Say of every target that it had a teacher, and how good its labels look."""
    if given.facts.teachers:
        return list(given.facts.teachers)
    sentences = []
    for name, known in given.classifier.targets_.items():
        if "teacher_noise" not in known:
            continue
        noise = known["teacher_noise"]
        of = noise if isinstance(noise, dict) else {"": noise}
        share = ", ".join(f"{who} {write_percent(part)}".strip() for who, part in of.items())
        sentences.append(f"{name} had a teacher: {share} of its labels look exchanged at random.")
    return sentences


def _describe_rows(rows: DomainRows, role: str) -> Card:
    n_rows, n_labelled = rows.read or (rows.n_rows or len(rows), int(rows.known.sum()))
    n_sampled = len(rows) if rows.n_rows else None
    n_terms = None if rows.read else int(np.count_nonzero(shares(rows.X)))
    return Card(rows.name, role, n_rows, n_sampled, n_labelled, n_terms, rows.unseen_share)


def describe_targets(given: ReportData) -> list[TargetCard]:
    """Describe each target: rows, labels, vocabulary, new words and class shares."""
    cards = []
    for target in given.targets:
        card = _describe_rows(target.rows, "target")
        predicted = np.bincount(target.codes, minlength=len(given.classes)) / max(len(target.codes), 1)
        labelled, weight = _labelled_shares(given, target)
        cards.append(
            TargetCard(
                **vars(card),
                known=given.known_of(target),
                are_shares_given=target.domain is not None and given.classifier.target_shares is not None,
                predicted_shares=dict(zip(given.classes, predicted.tolist(), strict=True)),
                labelled_shares=labelled,
                weight=weight,
            )
        )
    return cards


def _labelled_shares(given: ReportData, target: PredictedRows) -> tuple[dict[str, float] | None, float]:
    """Return the class shares of a target's scored rows, and the sum of their weights."""
    known, n_classes = target.is_scored, len(given.classes)
    sums = np.bincount(target.truth[known], target.weight[known], n_classes + 1)  # the last: other labels
    if not sums[:-1].sum():
        return None, 0.0
    return dict(zip(given.classes, (sums[:-1] / sums.sum()).tolist(), strict=True)), float(sums.sum())


def measure_coverage(given: ReportData, verdict: Verdict) -> list[CoveragePoint]:
    """Return the error, measured and expected, among growing shares of the surest predictions."""
    p, codes, truth, weight = (
        np.concatenate([getattr(target, name) for target in given.targets])
        for name in ("certainty", "codes", "truth", "weight")
    )
    expected = verdict.errors.after if verdict.errors and verdict.is_cross_fitted else verdict.expected_error
    # the expected error includes the loss from one domain to the other, probabilities do not
    scale = expected.error / max(float(np.mean(1 - p)), 1e-9) if expected else 1.0
    order = np.argsort(-p, kind="stable")
    points = []
    for coverage in COVERAGES:
        kept = order[: max(1, round(coverage * len(p)))]
        known = kept[truth[kept] >= 0]
        is_enough = len(known) >= LEAST_MEASURED
        points.append(
            CoveragePoint(
                float(coverage),
                float(p[kept[-1]]),
                min(1.0, scale * float(np.mean(1 - p[kept]))),
                Score.measure(codes[known] != truth[known], weight[known]) if is_enough else None,
            )
        )
    return points


def describe_run(given: ReportData) -> Run:
    """Return the command, settings and files that repeat the run."""
    seed = given.classifier.random_state
    named = seed if seed is None or isinstance(seed, int) else str(seed)
    return record_run(given.facts.command, named, given.facts.files)


def record_run(command: str | None, seed: int | str | None = None, files: Sequence[InputFile] = ()) -> Run:
    """Return a run that ends now, with the versions of what it used."""
    versions = {"undrift": __version__, "Python": platform.python_version()}
    return Run(
        command,
        datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        seed,
        versions | {name: version(name) for name in ("numpy", "scipy", "scikit-learn")},
        list(files),
    )


def name_class(label: str) -> str:
    """Return a class name for a sentence: a number stands in backticks, which the page shows as code."""
    return f"`{label}`" if re.fullmatch(r"-?[\d.,]+", label) else label


def write_percent(share: float, size: float | None = None) -> str:
    """Write a share in whole per cent; with one decimal where it, or the `size` beside it, is below 10%."""
    return f"{share:.{int((share if size is None else size) < 0.0995)}%}"


def write_estimate(share: float, low: float, high: float) -> tuple[str, str]:
    """Write a share, and the ends of its interval with as many digits."""
    return write_percent(share), f"{write_percent(low, share)} to {write_percent(high, share)}"


def write_score(score: Score) -> tuple[str, str]:
    """Write an error, and the ends of its interval, as `write_estimate`."""
    return write_estimate(score.error, score.low, score.high)


def pool_shares(
    shares: Sequence[Mapping[str, float] | None], weights: Sequence[float]
) -> dict[str, float] | None:
    """Return the class shares of all targets together; None where one has none."""
    known = [own for own in shares if own is not None]
    if not known or len(known) < len(shares):
        return None
    return {name: float(np.average([own[name] for own in known], weights=weights)) for name in known[0]}


def pool_errors(cards: Sequence[TargetCard]) -> Score | None:
    """Return the expected error of all targets together; None where one has none.

    Targets count by their rows. Ends of intervals are averaged too: estimates of several targets are likely
    to be wrong in the same direction.
    """
    known = [card.known.expected for card in cards if card.known]
    if not known or len(known) < len(cards):
        return None
    ends = [(score.error, score.low, score.high) for score in known]
    return Score(*np.average(ends, axis=0, weights=[card.n_rows for card in cards]).tolist())


def judge(given: ReportData, cards: Sequence[TargetCard]) -> Verdict:
    """Say how many predictions are wrong and how certain that is: measured with labels, else expected."""
    scored = [ScoredTarget(target.rows.name, target.errors) for target in given.targets if target.errors]
    whole = ScoredTarget("all targets", reduce(add, (each.errors for each in scored))) if scored else None
    n_rows = sum(len(target.rows) for target in given.targets)
    n_changed = sum(int(target.is_changed.sum()) for target in given.targets)
    shares = pool_shares([card.labelled_shares for card in cards], [card.weight for card in cards])
    estimated = [card.known.shares if card.known else None for card in cards]
    shares = shares or pool_shares(estimated, [card.n_rows for card in cards])
    verdict = Verdict(
        agreement=Agreement(n_rows, n_changed, n_changed / max(n_rows, 1)),
        scored=scored,
        basis="measured" if scored else "expected",
        whole=whole,
        is_cross_fitted=bool(scored) and not any(target.is_scored.any() for target in given.targets),
        use=given.facts.use_labels,
        n_learnt=given.facts.n_learnt,
        expected_error=pool_errors(cards),
        chance=Chance.find(shares, is_balanced=given.classifier.border == "balanced"),
    )
    answer, (headline, sure) = "unknown", _say_estimate(verdict)
    if whole:
        answer, headline, sure = _say_scores(whole.errors, verdict.agreement)
    return _compare_with_chance(replace(verdict, answer=answer, headline=headline, sure=sure))


def _points(share: float) -> str:
    return f"{100 * share:.1f}".replace("-", "\N{MINUS SIGN}")


def _say_scores(errors: Comparison, changes: Agreement) -> tuple[str, str, str]:
    """Return the answer, the headline, and how sure that is, by labels."""
    gain: Gain = errors.gain
    before, after = errors.before.error, errors.after.error
    said = f"{after:.1%} of the predictions are wrong, {before:.1%} would be without it"
    if changes.n_changed == 0:
        headline = f"Adaptation changed no prediction: {after:.1%} are wrong, with it and without."
        return "same", headline, ""
    if errors.n_corrected + errors.n_spoilt == 0:
        sure = (
            f"On none of the labelled rows is only one of the two right, though {changes.n_changed:,} "
            "other predictions changed: these labels cannot tell which is better."
        )
        return "unclear", f"No difference was measured: {said}.", sure
    sure = (
        f"The gain is {_points(gain.gain)} points, 95% interval {_points(gain.low)} to {_points(gain.high)}; "
        f"{errors.n_corrected:,} predictions were corrected, {errors.n_spoilt:,} became wrong."
    )
    if gain.answer == "unclear":
        sure = f"{sure.partition(';')[0]}, which contains 0: these rows cannot tell which is better."
    starts = {"yes": "Adaptation helped", "no": "Adaptation hurt", "unclear": "No clear difference"}
    return gain.answer, f"{starts[gain.answer]}: {said}.", sure


def _say_estimate(verdict: Verdict) -> tuple[str, str]:
    """Return the headline, and how sure that is, without labels."""
    expected, changed = verdict.expected_error, f"{verdict.agreement.changed:.1%} of the predictions"
    sure = "Adaptation changed no prediction, so it neither helps nor hurts."
    if verdict.agreement.n_changed:
        sure = (
            f"Whether adaptation helped is not known without labels{' to score' if verdict.n_learnt else ''}"
            f": it changed {changed}, and can have lowered or raised the error by no more than that."
        )
    headline = f"Adaptation changed {changed}; without target labels its gain is unknown."
    if expected:
        headline = say_expected(expected)
    return headline, sure


def say_expected(score: Score) -> str:
    """Say how many predictions are expected to be wrong."""
    error, interval = write_score(score)
    return f"About {error} of these predictions are expected to be wrong (90% interval {interval})."


def _compare_with_chance(verdict: Verdict) -> Verdict:
    """Say so where the predictions are no better than one answer for all rows."""
    chance, errors = verdict.chance, verdict.errors
    score = errors.after if errors else verdict.expected_error
    if chance is None or score is None or score.high < chance.error:
        return verdict
    guess = f"always answering {name_class(chance.label)} is wrong for {write_percent(chance.error)}"
    if not chance.is_as_good(score.error):
        if not errors:  # an interval without labels is wide on any page
            return verdict
        sure = f"{verdict.sure} It is not certain that this is better than chance: {guess}."
        return replace(verdict, sure=sure.strip())
    written, verb = f"about {write_percent(score.error)}", "are expected to be"
    if errors:
        written, verb = f"{score.error:.1%}", "are"
    headline = f"No better than chance: {written} of the predictions {verb} wrong; {guess}."
    return replace(verdict, answer="chance", headline=headline)


def advise(verdict: Verdict, decks: Decks | None) -> list[str]:
    """List what to do next, the most useful first."""
    answer, errors, steps = verdict.answer, verdict.errors, []
    if answer == "yes" and errors and errors.after.error > MANY_WRONG:
        steps.append("Do not rely on single predictions: many are wrong, though fewer than without it.")
    elif answer == "yes":
        steps.append("Use the predictions.")
    if verdict.basis == "expected":
        steps.append(_advise_sample(verdict, decks))
        if answer == "unknown":
            steps.append("Or use the predictions as they are.")
    elif answer == "unclear" and errors and errors.n_corrected + errors.n_spoilt:
        steps.append("Label more target rows, drawn at random: four times as many halve the interval.")
    elif answer == "no":
        steps.append("Use the baseline's predictions for now, or a source that is closer to the target.")
    elif answer == "chance":
        steps.append("Do not use these predictions. Add a source whose words the target shares.")
    if decks and answer != "unknown":
        steps.append(
            "To lower the error, label the doubtful rows on this page and give the saved file to "
            "undrift update --labels."
        )
    return steps


def _advise_sample(verdict: Verdict, decks: Decks | None) -> str:
    """Advise to label a random sample, and say how well it would measure the error."""
    n = min(len(decks.estimate) if decks else 100, verdict.agreement.n_rows)
    low, high = error_interval(verdict.expected_error.error if verdict.expected_error else 0.25, n)
    within = f"this measures the error to within about {50 * (high - low):.0f} points, and the gain"
    if decks:
        return f"Label {n} rows on this page: {within}. Or run undrift label, which learns as you go."
    return f"Label {n} target rows drawn at random, and run again with --target-label: {within}."
