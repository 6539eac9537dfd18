"""Whether predictions can be trusted: errors with intervals, measured or expected, and what to do next."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..classifier import EXPECTED_ERROR_RECORD
from ..jobs import error_interval, find_chance, gain_interval, is_no_better
from ..text import FAR_APART
from .inputs import Evidence
from .shares import pool_targets, write_estimate, write_percent

FEW_ROWS = 1_000  # target rows below which advice is given
CLASS_DRIFT = 0.15  # difference of the class shares above which it is worth a word
SHARE_ERROR = 0.1  # of the shares that were used against those of labelled rows, worth a word
MANY_WRONG = 0.3  # error above which predictions are not recommended
OPTIONS = {"noise": "--noise", "n_layers": "--layers", "C": "--C"}


def measure_error(is_wrong: np.ndarray, weight: np.ndarray) -> dict[str, float]:
    """Weighted share of mistakes, with its 95% interval.

    Rows of unequal weight count as fewer: as many as Kish's formula says, or as the variance of the weighted
    mean does, whichever is fewer. The page's script does the same for labels given there.
    """
    p = float(np.average(is_wrong, weights=weight))
    variance = float(np.sum((weight * (is_wrong - p)) ** 2) / weight.sum() ** 2)
    n = float(weight.sum() ** 2 / np.sum(weight**2))
    low, high = error_interval(p, min(n, p * (1 - p) / variance) if variance > 0 else n)
    return {"error": p, "low": low, "high": high}


def compare_mistakes(name: str, before: np.ndarray, after: np.ndarray, weight: np.ndarray) -> dict[str, Any]:
    """Compare two classifiers' mistakes on the same rows."""
    n, outcomes = float(weight.sum() ** 2 / np.sum(weight**2)), (before & ~after, after & ~before)
    corrected, spoilt = (float(np.average(rows, weights=weight)) for rows in outcomes)
    low, high = gain_interval(corrected, spoilt, n)
    return {
        "name": name,
        "n_rows": len(before),
        "n_corrected": int(outcomes[0].sum()),
        "n_spoilt": int(outcomes[1].sum()),
        "source_only": measure_error(before, weight),
        "adapted": measure_error(after, weight),
        "difference": {"gain": corrected - spoilt, "low": low, "high": high},
    }


def find_mistakes(evidence: Evidence) -> dict[str, list[np.ndarray]]:
    """Return for each target with labels: the baseline's mistakes, the adapted classifier's, and weights.

    Where labels were learnt, the mistakes are those of classifiers that did not learn the row's label.
    """
    mistakes = {}
    for target in evidence.targets:
        truth = evidence.truth[target.number]
        known, both = truth >= 0, (evidence.source_only_codes, evidence.adapted_codes)
        if known.any():
            wrong = [codes[target.number][known] != truth[known] for codes in both]
            mistakes[target.name] = [*wrong, evidence.weight_of(target)[known]]
        elif target.cross_fitted is not None and len(target.cross_fitted[0]):
            mistakes[target.name] = list(target.cross_fitted)
    return mistakes


def count_changes(evidence: Evidence) -> dict[str, Any]:
    """Count the target rows on which the two classifiers differ, whichever is right."""
    n_rows = sum(len(target) for target in evidence.targets)
    n_changed = sum(
        int((evidence.source_only_codes[target.number] != evidence.adapted_codes[target.number]).sum())
        for target in evidence.targets
    )
    return {"n_rows": n_rows, "n_changed": n_changed, "changed": n_changed / n_rows if n_rows else 0.0}


def verdict(evidence: Evidence) -> dict[str, Any]:
    """Say how many predictions are wrong and how certain that is: measured with labels, else expected."""
    mistakes, changes = find_mistakes(evidence), count_changes(evidence)
    names = ("labelled_shares", "target_shares")
    shares: dict[str, Any] = {name: pool_targets(evidence, name) for name in names}
    rows = [compare_mistakes(name, *masks) for name, masks in mistakes.items()]
    pooled = [np.concatenate(masks) for masks in zip(*mistakes.values(), strict=True)]
    whole = compare_mistakes("all targets", *pooled) if rows else None
    expected = pool_targets(evidence, "expected_error")
    data: dict[str, Any] = {
        "agreement": changes,
        "scored": rows,
        "basis": "measured" if rows else "expected",
        "whole": whole,
        "is_cross_fitted": bool(rows) and all(not (truth >= 0).any() for truth in evidence.truth.values()),
        "use": evidence.about.get("use_labels", "score"),
        "n_learnt": (evidence.about.get("summary") or {}).get("n_learnt", 0),
        "fell_back": evidence.fell_back,
        "predictor": "source-only" if evidence.fell_back else "adapted",
        "expected_error": expected,
        "record": EXPECTED_ERROR_RECORD,
        "chance": find_chance(shares | {"border": evidence.classifier.border}),
    }
    if evidence.fell_back:
        headline = "Not adapted: the predictions are those of the source-only classifier."
        if whole:
            headline = (
                f"Not adapted: {whole['adapted']['error']:.1%} of the source-only predictions are wrong."
            )
        data |= {"answer": "fallback", "headline": headline, "sure": ""}
    else:
        data |= (
            _words_of_scores(whole, changes)
            if whole
            else _words_of_estimate(expected, changes, data["n_learnt"])
        )
    return data | _words_of_chance(data)


def _points(share: float) -> str:
    return f"{100 * share:.1f}".replace("-", "\N{MINUS SIGN}")


def _words_of_scores(whole: dict[str, Any], changes: dict[str, Any]) -> dict[str, str]:
    gain, before, after = whole["difference"], whole["source_only"]["error"], whole["adapted"]["error"]
    errors = f"{after:.1%} of the predictions are wrong, {before:.1%} would be without it"
    if changes["n_changed"] == 0:
        headline = f"Adaptation changed no prediction: {after:.1%} are wrong, with it and without."
        return {"answer": "same", "headline": headline, "sure": ""}
    if whole["n_corrected"] + whole["n_spoilt"] == 0:
        sure = (
            f"On none of the labelled rows is only one of the two right, though {changes['n_changed']:,} "
            "other predictions changed: these labels cannot tell which is better."
        )
        return {"answer": "unclear", "headline": f"No difference was measured: {errors}.", "sure": sure}
    sure = (
        f"How sure: the gain is {_points(gain['gain'])} points, 95% interval {_points(gain['low'])} to "
        f"{_points(gain['high'])}; {whole['n_corrected']:,} predictions were corrected, "
        f"{whole['n_spoilt']:,} became wrong."
    )
    if gain["low"] > 0:
        return {"answer": "yes", "headline": f"Adaptation helped: {errors}.", "sure": sure}
    if gain["high"] < 0:
        return {"answer": "no", "headline": f"Adaptation hurt: {errors}.", "sure": sure}
    sure = f"{sure.partition(';')[0]}, which contains 0: these rows cannot tell which is better."
    return {"answer": "unclear", "headline": f"No clear difference: {errors}.", "sure": sure}


def _words_of_estimate(
    expected: dict[str, float] | None, changes: dict[str, Any], n_learnt: int
) -> dict[str, str]:
    changed = f"{changes['changed']:.1%} of the predictions"
    sure = "Adaptation changed no prediction, so it neither helps nor hurts."
    if changes["n_changed"]:
        sure = (
            f"Whether adaptation helped is not known without labels{' to score' if n_learnt else ''}: it "
            f"changed {changed}, and can have lowered or raised the error by no more than that."
        )
    headline = f"Adaptation changed {changed}; without target labels its gain is unknown."
    if expected:
        error, interval = write_estimate(*expected.values())
        headline = f"About {error} of these predictions are expected to be wrong (90% interval {interval})."
    return {"answer": "unknown", "headline": headline, "sure": sure}


def _words_of_chance(data: dict[str, Any]) -> dict[str, str]:
    """Say so where the predictions are no better than one answer for all rows."""
    chance = data["chance"]
    error = data["whole"]["adapted"] if data["whole"] else data["expected_error"]
    if chance is None or error is None or error["high"] < chance["error"]:
        return {}
    guess = f"always answering {chance['label']} is wrong for {write_percent(chance['error'])}"
    if not is_no_better(error["error"], chance):
        return {"sure": f"{data['sure']} It is not certain that this is better than chance: {guess}.".strip()}
    if data["fell_back"]:
        return {
            "headline": f"{data['headline'].rstrip('.')}, no better than chance.",
            "sure": f"{guess[0].upper()}{guess[1:]}.",
        }
    written = f"{error['error']:.1%}" if data["whole"] else f"about {write_percent(error['error'])}"
    is_measured = "are" if data["whole"] else "are expected to be"
    headline = f"No better than chance: {written} of the predictions {is_measured} wrong; {guess}."
    return {"answer": "chance", "headline": headline}


def advice(data: dict[str, Any]) -> list[str]:
    """List what to do next, the most useful first."""
    chosen, verdict = data["chosen"], data["verdict"]
    answer, steps = verdict["answer"], []
    if answer == "fallback":
        steps.append(
            "Act on the reason for the fallback, which stands above; --no-fallback adapts all the same."
        )
    if answer == "yes" and verdict["whole"]["adapted"]["error"] > MANY_WRONG:
        steps.append("Better than the baseline, yet many are wrong: do not rely on single predictions.")
    elif answer == "yes":
        steps.append(f"Use the predictions. {_advise_surest(data)}")
    if verdict["basis"] == "expected":
        steps.append(_advise_sample(data))
        if answer == "unknown":
            steps.append(f"Or use the predictions as they are. {_advise_surest(data)}")
    elif answer == "unclear" and verdict["whole"]["n_corrected"] + verdict["whole"]["n_spoilt"]:
        steps.append("Label more target rows, drawn at random: four times as many halve the interval.")
    elif answer == "no":
        steps.append("Use the baseline's predictions for now, or a source that is closer to the target.")
    elif answer == "chance":
        steps.append("Do not use these predictions. Add a source whose words the target shares.")
    if data["decks"] and answer in ("yes", "no", "unclear", "chance", "same"):
        steps.append(
            "To lower the error, label the doubtful rows on this page and give the saved file to "
            "undrift update --labels."
        )
    if chosen["rule"] == "fixed" and answer not in ("yes", "unknown"):
        steps.append(
            "Let it choose: --noise 0.5,0.7,0.9 --layers 1,3,5 --C 0.1,0.3,1. No target label is used."
        )
    elif chosen["rule"] in ("source-cv", "one-se") and answer in ("no", "unclear", "chance"):
        steps.append("Choose by a round trip through the target: --selection reverse.")
    steps += [
        f"Widen the grid: the chosen {name} is at its edge ({OPTIONS[name]})." for name in chosen["edges"]
    ]
    return steps + [
        step for card in data["domains"] for step in _advice_on_domain(card, chosen["center"], answer)
    ]


def _advise_surest(data: dict[str, Any]) -> str:
    """Say how many of the surest predictions are wrong, and how to keep these alone."""
    row = next(row for row in data["confidence"]["coverage"] if row["coverage"] > 0.79)
    share = (row["measured"] or {"error": row["expected"]})["error"]
    how = "are wrong" if data["verdict"]["basis"] == "measured" else "are expected to be wrong"
    keep = f"--min-confidence {row['threshold']:.2f} keeps these alone."
    return f"Of the surest 80%, {write_percent(share)} {how}: {keep}"


def _advise_sample(data: dict[str, Any]) -> str:
    """Advise to label a fair sample, and say how well it would measure the error."""
    deck = data["decks"] and data["decks"]["estimate"]
    n = min(len(deck) if deck else 100, data["verdict"]["agreement"]["n_rows"])
    error = (data["verdict"]["expected_error"] or {"error": 0.25})["error"]
    low, high = error_interval(error, n)
    within = f"error and gain are then measured, the error to within about {50 * (high - low):.0f} points"
    if deck:
        return f"Label {n} rows on this page, with the keys 1, 2, …: {within}."
    return f"Label {n} target rows drawn at random, and run again with --target-label: {within}."


def _advice_on_domain(card: dict[str, Any], center: str | bool, answer: str) -> list[str]:
    if card["role"] != "target":
        return []
    causes = {
        "over half of its words are not in the labelled source. Add a source, or unlabelled documents, of an "
        "intermediate domain.": (card["unseen_share"] or 0) > FAR_APART and answer != "yes",
        f"add unlabelled rows if there are more; {card['n_rows']:,} are few to learn which words occur "
        "together.": card["n_rows"] < FEW_ROWS,
        "its class shares differ from the source's. Try --center classes: centring domains assumes equal "
        "shares.": center == "domains" and (card["class_drift"] or 0) > CLASS_DRIFT,
        "its labelled rows have other class shares than those used. If they are a random sample, give their "
        "shares with --target-shares.": center == "classes" and (card["share_error"] or 0) > SHARE_ERROR,
    }
    return [f"{card['name']}: {step}" for step, is_given in causes.items() if is_given]
