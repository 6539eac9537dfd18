"""How many predictions are wrong, in numbers and in the words of a report's headline."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import add

import numpy as np

from ..results import Chance, Comparison, Score, error_interval
from .data import PredictedRows, ReportData

MANY_WRONG = 0.3  # error above which predictions are not recommended


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


def say_expected(score: Score) -> str:
    """Say how many predictions are expected to be wrong."""
    error, interval = write_score(score)
    return f"About {error} of these predictions are expected to be wrong (90% interval {interval})."


@dataclass(frozen=True)
class Verdict:
    """How many predictions of all targets are wrong: measured with labels, else expected."""

    n_rows: int
    n_changed: int  # predictions that are not the baseline's
    scored: Mapping[str, Comparison]  # mistakes on the labelled rows of every target that has some
    expected: Score | None
    chance: Chance | None
    is_cross_fitted: bool = False
    use: str = "score"  # of target labels
    n_learnt: int = 0

    @cached_property
    def errors(self) -> Comparison | None:
        """Mistakes on the labelled rows of all targets."""
        return reduce(add, self.scored.values()) if self.scored else None

    @cached_property
    def said(self) -> tuple[str, str, str]:
        """Say yes, no, unclear, same, chance or unknown, the headline, and how sure that is."""
        errors, chance = self.errors, self.chance
        answer, headline, sure = self._say_scores(errors) if errors else self._say_estimate()
        score = errors.after if errors else self.expected
        if chance is None or score is None or score.high < chance.error:
            return answer, headline, sure
        guess = f"always answering {name_class(chance.label)} is wrong for {write_percent(chance.error)}"
        if chance.is_as_good(score.error):
            wrong = f"about {write_percent(score.error)} of the predictions are expected to be wrong"
            if errors:
                wrong = f"{score.error:.1%} of the predictions are wrong"
            return "chance", f"No better than chance: {wrong}; {guess}.", sure
        if errors:  # an interval without labels is wide on any page
            sure = f"{sure} It is not certain that this is better than chance: {guess}.".strip()
        return answer, headline, sure

    def _say_scores(self, errors: Comparison) -> tuple[str, str, str]:
        """Say what labels tell."""
        gain, before, after = errors.gain, errors.before.error, errors.after.error
        said = f"{after:.1%} of the predictions are wrong, {before:.1%} would be without it"
        if self.n_changed == 0:
            headline = f"Adaptation changed no prediction: {after:.1%} are wrong, with it and without."
            return "same", headline, ""
        if errors.n_corrected + errors.n_spoilt == 0:
            sure = (
                f"On none of the labelled rows is only one of the two right, though {self.n_changed:,} "
                "other predictions changed: these labels cannot tell which is better."
            )
            return "unclear", f"No difference was measured: {said}.", sure
        points = (
            f"{100 * share:.1f}".replace("-", "\N{MINUS SIGN}") for share in (gain.gain, gain.low, gain.high)
        )
        sure = "The gain is {} points, 95% interval {} to {}".format(*points)
        if gain.answer == "unclear":
            sure += ", which contains 0: these rows cannot tell which is better."
        else:
            sure += f"; {errors.n_corrected:,} predictions were corrected, {errors.n_spoilt:,} became wrong."
        starts = {"yes": "Adaptation helped", "no": "Adaptation hurt", "unclear": "No clear difference"}
        return gain.answer, f"{starts[gain.answer]}: {said}.", sure

    def _say_estimate(self) -> tuple[str, str, str]:
        """Say what is known without labels."""
        changed = f"{write_percent(self.n_changed / max(self.n_rows, 1))} of the predictions"
        sure = "Adaptation changed no prediction, so it neither helps nor hurts."
        if self.n_changed:
            sure = (
                f"Whether adaptation helped is not known without labels{' to score' if self.n_learnt else ''}"
                f": it changed {changed}, and can have lowered or raised the error by no more than that."
            )
        headline = f"Adaptation changed {changed}; without target labels its gain is unknown."
        return "unknown", say_expected(self.expected) if self.expected else headline, sure

    def to_dict(self) -> dict[str, object]:
        """Return everything, ready for JSON."""
        answer, headline, sure = self.said
        return {
            "answer": answer,
            "headline": headline,
            "sure": sure,
            "basis": "measured" if self.errors else "expected",
            "expected_error": self.expected,
            "whole": self.errors and _describe_errors("all targets", self.errors),
            "scored": [_describe_errors(name, errors) for name, errors in self.scored.items()],
            "agreement": {
                "n_rows": self.n_rows,
                "n_changed": self.n_changed,
                "changed": self.n_changed / max(self.n_rows, 1),
            },
            "chance": self.chance,
            "is_cross_fitted": self.is_cross_fitted,
            "use": self.use,
            "n_learnt": self.n_learnt,
        }

    def advise(self, n_deck: int) -> list[str]:
        """List what to do next, the most useful first; `n_deck` rows can be labelled on the page."""
        (answer, *_), errors, steps = self.said, self.errors, []
        if answer == "yes" and errors:
            is_bad = errors.after.error > MANY_WRONG
            bad = "Do not rely on single predictions: many are wrong, though fewer than without it."
            steps.append(bad if is_bad else "Use the predictions.")
        if errors is None:
            n = min(n_deck or 100, self.n_rows)
            low, high = error_interval(self.expected.error if self.expected else 0.25, n)
            within = f"this measures the error to within about {50 * (high - low):.0f} points, and the gain"
            if n_deck:
                steps.append(
                    f"Label {n} rows on this page: {within}. Or run undrift label, which learns as you go."
                )
            else:
                steps.append(
                    f"Label {n} target rows drawn at random, and run again with --target-label: {within}."
                )
            if answer == "unknown":
                steps.append("Or use the predictions as they are.")
        elif answer == "unclear" and errors.n_corrected + errors.n_spoilt:
            steps.append("Label more target rows, drawn at random: four times as many halve the interval.")
        elif answer == "no":
            steps.append("Use the baseline's predictions for now, or a source that is closer to the target.")
        elif answer == "chance":
            steps.append("Do not use these predictions. Add a source whose words the target shares.")
        if n_deck and answer != "unknown":
            steps.append(
                "To lower the error, label the doubtful rows on this page and give the saved file to "
                "undrift update --labels."
            )
        return steps


def _describe_errors(name: str, errors: Comparison) -> dict[str, object]:
    """Describe mistakes of the baseline and of the predictions, ready for JSON."""
    return {
        "name": name,
        "n_rows": errors.n_rows,
        "n_corrected": errors.n_corrected,
        "n_spoilt": errors.n_spoilt,
        "source_only": errors.before,
        "adapted": errors.after,
        "difference": errors.gain,
    }


def judge(given: ReportData) -> Verdict:
    """Say how many predictions are wrong and how certain that is."""
    targets = given.targets
    scored = {target.name: target.errors for target in targets if target.errors}
    sizes = [target.rows.size for target in targets]
    weights = [float(target.weight[target.is_scored].sum()) for target in targets]
    shares = pool_shares([target.labelled_shares for target in targets], weights)
    shares = shares or pool_shares(
        [target.known.shares if target.known else None for target in targets], sizes
    )
    return Verdict(
        n_rows=sum(len(target.rows) for target in targets),
        n_changed=sum(int(target.is_changed.sum()) for target in targets),
        scored=scored,
        expected=pool_errors(targets),
        chance=Chance.find(shares, is_balanced=given.classifier.border == "balanced"),
        is_cross_fitted=bool(scored) and not any(target.is_scored.any() for target in targets),
        use=given.facts.use_labels,
        n_learnt=given.facts.n_learnt,
    )


def pool_shares(
    shares: Sequence[Mapping[str, float] | None], weights: Sequence[float]
) -> dict[str, float] | None:
    """Return the class shares of all targets together; None where one has none."""
    known = [own for own in shares if own is not None]
    if not known or len(known) < len(shares):
        return None
    return {name: float(np.average([own[name] for own in known], weights=weights)) for name in known[0]}


def pool_errors(targets: Sequence[PredictedRows]) -> Score | None:
    """Return the expected error of all targets together; None where one has none.

    Targets count by their rows. Ends of intervals are averaged too: estimates of several targets are likely
    to be wrong in the same direction.
    """
    known = [target.known.expected for target in targets if target.known]
    if not known or len(known) < len(targets):
        return None
    ends = [(score.error, score.low, score.high) for score in known]
    return Score(*np.average(ends, axis=0, weights=[target.rows.size for target in targets]).tolist())
