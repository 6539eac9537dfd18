"""An adaptation as plain data, ready for JSON: everything that the page shows, in numbers and words."""

from __future__ import annotations

import platform
import re
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import numpy as np

from .._version import __version__
from ..inputs import spell_label
from ..scoring import (
    count_effective,
    error_interval,
    find_chance,
    gain_interval,
    is_no_better,
    measure_error,
    pick_shares,
)
from .classes import describe_classes
from .data import DomainRows, ReportData, Target
from .evidence import (
    difference_terms,
    explain_changes,
    find_idea,
    make_decks,
    pack_sentence_model,
    shares,
    term_statistics,
)

LEAST_MEASURED = 10  # labelled rows that a point of the curve stands for
COVERAGES = np.arange(1, 21) / 20
AGREEING = 0.9  # share of rows: a reading that agrees with the jury on fewer tells another story
LEAST_WEIGHT = 0.005  # of a reading that is told
MANY_WRONG = 0.3  # error above which predictions are not recommended


def adaptation_data(given: ReportData) -> dict[str, Any]:
    """Gather everything that a report of an adaptation shows."""
    table = term_statistics(given)
    difference, cards = difference_terms(given, table), describe_domains(given)
    source, target = (
        " + ".join(domain.name for domain in domains) for domains in (given.sources, given.target_rows)
    )
    data: dict[str, Any] = {
        "kind": "adaptation",
        "title": f"{source} → {target}",
        "source_name": source,
        "target_name": target,
        "classes": given.classes,
        "verdict": judge(given, [card for card in cards if card["role"] == "target"]),
        "settings": {name: float(value) for name, value in given.classifier.best_params_.items()},
        "seconds": given.facts.seconds,
        "warnings": list(given.facts.warnings),
        "notes": list(dict.fromkeys([*given.doubts, *given.facts.notes])),
        "readings": describe_readings(given),
        "teachers": describe_teachers(given),
        "taught_by": given.facts.taught_by,
        "domains": cards,
        "by_class": describe_classes(given),
        "decks": make_decks(given),
        "difference": difference,
        "idea": find_idea(given, table, difference),
        "changes": explain_changes(given),
        "sentence": pack_sentence_model(given),
        "coverage": measure_coverage(given, cards),
        "reproduce": describe_run(given),
    }
    data["next"] = advise(data)
    return data


def describe_readings(given: ReportData) -> list[dict[str, Any]]:
    """Describe how every target can be read, and whether the readings differ on enough rows to tell."""
    described = []
    for target in given.targets:
        own = [] if target.domain is None else given.classifier.readings_.get(target.domain, [])
        readings = [
            reading | {"shares": {spell_label(label): float(s) for label, s in reading["shares"].items()}}
            for reading in sorted(own, key=lambda reading: -reading["weight"])
            if reading["weight"] >= LEAST_WEIGHT
        ]
        agreement = min((reading["agreement"] for reading in readings), default=1.0)
        told = [r | {"told": shares} for r, shares in zip(readings, pick_shares(readings), strict=True)]
        described.append({"name": target.rows.name, "readings": told, "differ": agreement < AGREEING})
    return described


def describe_teachers(given: ReportData) -> list[str]:
    """Say of every target that it had a teacher, and how good its labels look."""
    noises = getattr(given.classifier, "teacher_noise_", None)
    if given.facts.teachers or noises is None:
        return list(given.facts.teachers)
    sentences = []
    for name, noise in zip(given.classifier.target_names_, noises, strict=True):
        of = noise if isinstance(noise, dict) else {"": noise}
        said = [f"{who} {write_percent(share)}".strip() for who, share in of.items() if share is not None]
        share = ", ".join(said) or "an unknown share"
        sentences.append(f"{name} had a teacher: {share} of its labels look exchanged at random.")
    return sentences


def describe_domains(given: ReportData) -> list[dict[str, Any]]:
    """Describe each domain: rows, labels, vocabulary; of targets new words and class shares too."""
    cards = [_describe_rows(rows) | {"role": "source", "unseen_share": None} for rows in given.sources]
    for target in given.targets:
        card = _describe_rows(target.rows) | {"role": "target", "unseen_share": target.rows.unseen_share}
        predicted = np.bincount(target.codes, minlength=len(given.classes)) / max(len(target.codes), 1)
        labelled, weight = _labelled_shares(given, target)
        card |= {
            **{key: value for key, value in given.estimates_of(target).items() if key != "by_class"},
            "predicted_shares": dict(zip(given.classes, predicted.tolist(), strict=True)),
            "labelled_shares": labelled,
            "weight": weight,
        }
        cards.append(card)
    return cards


def _describe_rows(rows: DomainRows) -> dict[str, Any]:
    n_rows, n_labelled = rows.read or (rows.n_rows or len(rows), int(rows.known.sum()))
    return {
        "name": rows.name,
        "n_rows": n_rows,
        "n_sampled": len(rows) if rows.n_rows else None,
        "n_labelled": n_labelled,
        "n_terms": None if rows.read else int(np.count_nonzero(shares(rows.X))),
    }


def _labelled_shares(given: ReportData, target: Target) -> tuple[dict[str, float] | None, float]:
    """Return the class shares of a target's scored rows, and the sum of their weights."""
    known, n_classes = target.is_scored, len(given.classes)
    sums = np.bincount(target.truth[known], target.weight[known], n_classes + 1)  # the last: other labels
    if not sums[:-1].sum():
        return None, 0.0
    return dict(zip(given.classes, (sums[:-1] / sums.sum()).tolist(), strict=True)), float(sums.sum())


def measure_coverage(given: ReportData, cards: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the error, measured and expected, among growing shares of the surest predictions.

    Expected errors are None where not known.
    """
    p, codes, truth, weight = (
        np.concatenate([getattr(target, name) for target in given.targets])
        for name in ("certainty", "codes", "truth", "weight")
    )
    expected = pool_estimates([card for card in cards if card["role"] == "target"], "expected_error")
    if not (truth >= 0).any() and (mistakes := list(find_mistakes(given).values())):  # of cross-fitting
        expected = measure_error(*(np.concatenate(masks) for masks in list(zip(*mistakes, strict=True))[1:]))
    # the expected error includes the loss from one domain to the other, probabilities do not
    scale: float | None = 1.0
    if expected:
        error = expected["error"]
        scale = None if error is None else error / max(float(np.mean(1 - p)), 1e-9)
    order = np.argsort(-p, kind="stable")
    rows = []
    for coverage in COVERAGES:
        kept = order[: max(1, round(coverage * len(p)))]
        known = kept[truth[kept] >= 0]
        is_enough = len(known) >= LEAST_MEASURED
        rows.append(
            {
                "coverage": float(coverage),
                "threshold": float(p[kept[-1]]),
                "expected": None if scale is None else min(1.0, scale * float(np.mean(1 - p[kept]))),
                "measured": measure_error(codes[known] != truth[known], weight[known]) if is_enough else None,
            }
        )
    return rows


def describe_run(given: ReportData) -> dict[str, Any]:
    """Return the command, settings and files that repeat the run."""
    seed = given.classifier.random_state
    return {
        "command": given.facts.command,
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "seed": seed if seed is None or isinstance(seed, int) else str(seed),
        "versions": {"undrift": __version__, "Python": platform.python_version()}
        | {name: version(name) for name in ("numpy", "scipy", "scikit-learn")},
        "files": list(given.facts.files),
    }


def name_class(label: str) -> str:
    """Return a class name for a sentence: a number stands in backticks, which the page shows as code."""
    return f"`{label}`" if re.fullmatch(r"-?[\d.,]+", label) else label


def write_percent(share: float, size: float | None = None) -> str:
    """Write a share in whole per cent; with one decimal where it, or the `size` beside it, is below 10%."""
    return f"{share:.{int((share if size is None else size) < 0.0995)}%}"


def write_estimate(share: float, low: float, high: float) -> tuple[str, str]:
    """Write a share, and the ends of its interval with as many digits."""
    return write_percent(share), f"{write_percent(low, share)} to {write_percent(high, share)}"


def pool_estimates(cards: list[dict[str, Any]], key: str) -> dict[str, Any] | None:
    """Return the shares or the expected error of all targets together; None where one has none.

    Targets count by their rows. Ends of intervals are averaged too: estimates of several targets are likely
    to be wrong in the same direction. An error that one target does not know is None.
    """
    values = [card[key] for card in cards]
    if not values or None in values:
        return None
    weight = np.array([card["weight" if key == "labelled_shares" else "n_rows"] for card in cards], float)
    columns = {name: [value[name] for value in values] for name in values[0]}
    return {
        name: None if None in column else float(weight @ column / weight.sum())
        for name, column in columns.items()
    }


def compare_mistakes(name: str, before: np.ndarray, after: np.ndarray, weight: np.ndarray) -> dict[str, Any]:
    """Compare the mistakes of two classifiers on the same rows."""
    n, outcomes = count_effective(weight), (before & ~after, after & ~before)
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


def find_mistakes(given: ReportData) -> dict[str, list[np.ndarray]]:
    """Return for each target with labels: the baseline's mistakes, the adapted classifier's, and weights.

    Where labels were learnt, the mistakes are those of classifiers that did not learn the row's label.
    """
    mistakes = {}
    for target in given.targets:
        known = target.is_scored
        if known.any():
            wrong = [codes[known] != target.truth[known] for codes in (target.baseline, target.codes)]
            mistakes[target.rows.name] = [*wrong, target.weight[known]]
        elif target.rows.cross_fitted is not None and len(target.rows.cross_fitted[0]):
            mistakes[target.rows.name] = list(target.rows.cross_fitted)
    return mistakes


def judge(given: ReportData, cards: list[dict[str, Any]]) -> dict[str, Any]:
    """Say how many predictions are wrong and how certain that is: measured with labels, else expected."""
    mistakes = find_mistakes(given)
    n_rows = sum(len(target.rows) for target in given.targets)
    n_changed = sum(int(target.is_changed.sum()) for target in given.targets)
    rows = [compare_mistakes(name, *masks) for name, masks in mistakes.items()]
    pooled = [np.concatenate(masks) for masks in zip(*mistakes.values(), strict=True)]
    shares = {key: pool_estimates(cards, key) for key in ("labelled_shares", "target_shares")}
    data: dict[str, Any] = {
        "agreement": {"n_rows": n_rows, "n_changed": n_changed, "changed": n_changed / max(n_rows, 1)},
        "scored": rows,
        "basis": "measured" if rows else "expected",
        "whole": compare_mistakes("all targets", *pooled) if rows else None,
        "is_cross_fitted": bool(rows) and not any(target.is_scored.any() for target in given.targets),
        "use": given.facts.use_labels,
        "n_learnt": given.facts.n_learnt,
        "expected_error": pool_estimates(cards, "expected_error"),
        "chance": find_chance(shares | {"border": given.classifier.border}),
    }
    if data["whole"]:
        data |= _say_scores(data["whole"], data["agreement"])
    else:
        data |= say_estimate(data)
    return data | _say_chance(data)


def _points(share: float) -> str:
    return f"{100 * share:.1f}".replace("-", "\N{MINUS SIGN}")


def _say_bounds(expected: dict[str, Any]) -> str:
    bounds = f"{write_percent(expected['low'])} to {write_percent(expected['high'])}"
    return f"The error is not known: expect {bounds} of these predictions to be wrong."


def _say_scores(whole: dict[str, Any], changes: dict[str, Any]) -> dict[str, str]:
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
        f"The gain is {_points(gain['gain'])} points, 95% interval {_points(gain['low'])} to "
        f"{_points(gain['high'])}; {whole['n_corrected']:,} predictions were corrected, "
        f"{whole['n_spoilt']:,} became wrong."
    )
    if gain["low"] > 0:
        return {"answer": "yes", "headline": f"Adaptation helped: {errors}.", "sure": sure}
    if gain["high"] < 0:
        return {"answer": "no", "headline": f"Adaptation hurt: {errors}.", "sure": sure}
    sure = f"{sure.partition(';')[0]}, which contains 0: these rows cannot tell which is better."
    return {"answer": "unclear", "headline": f"No clear difference: {errors}.", "sure": sure}


def say_estimate(data: dict[str, Any]) -> dict[str, str]:
    """Say how many predictions are expected to be wrong, or that it is not known."""
    changes, expected = data["agreement"], data["expected_error"]
    changed = f"{changes['changed']:.1%} of the predictions"
    sure = "Adaptation changed no prediction, so it neither helps nor hurts."
    if changes["n_changed"]:
        sure = (
            f"Whether adaptation helped is not known without labels{' to score' if data['n_learnt'] else ''}"
            f": it changed {changed}, and can have lowered or raised the error by no more than that."
        )
    if not expected:
        headline = f"Adaptation changed {changed}; without target labels its gain is unknown."
        return {"answer": "unknown", "headline": headline, "sure": sure}
    if expected["error"] is None:
        sure = "The rows cannot tell how often each class occurs. 30 labels can: label rows on this page."
        return {"answer": "unbounded", "headline": _say_bounds(expected), "sure": sure}
    error, interval = write_estimate(*expected.values())
    headline = f"About {error} of these predictions are expected to be wrong (90% interval {interval})."
    return {"answer": "unknown", "headline": headline, "sure": sure}


def _say_chance(data: dict[str, Any]) -> dict[str, str]:
    """Say so where the predictions are no better than one answer for all rows."""
    chance = data["chance"]
    error = data["whole"]["adapted"] if data["whole"] else data["expected_error"]
    if chance is None or error is None or error["error"] is None or error["high"] < chance["error"]:
        return {}
    guess = f"always answering {name_class(chance['label'])} is wrong for {write_percent(chance['error'])}"
    if not is_no_better(error["error"], chance):
        return {"sure": f"{data['sure']} It is not certain that this is better than chance: {guess}.".strip()}
    written = f"{error['error']:.1%}" if data["whole"] else f"about {write_percent(error['error'])}"
    verb = "are" if data["whole"] else "are expected to be"
    headline = f"No better than chance: {written} of the predictions {verb} wrong; {guess}."
    return {"answer": "chance", "headline": headline}


def advise(data: dict[str, Any]) -> list[str]:
    """List what to do next, the most useful first."""
    verdict, steps = data["verdict"], []
    answer = verdict["answer"]
    if answer == "yes" and verdict["whole"]["adapted"]["error"] > MANY_WRONG:
        steps.append("Do not rely on single predictions: many are wrong, though fewer than without it.")
    elif answer == "yes":
        steps.append("Use the predictions.")
    if verdict["basis"] == "expected":
        steps.append(_advise_sample(data))
        if answer == "unknown":
            steps.append("Or use the predictions as they are.")
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
    return steps


def _advise_sample(data: dict[str, Any]) -> str:
    """Advise to label a random sample, and say how well it would measure the error."""
    deck = data["decks"] and data["decks"]["estimate"]
    n = min(len(deck) if deck else 100, data["verdict"]["agreement"]["n_rows"])
    expected = data["verdict"]["expected_error"] or {"error": None}
    low, high = error_interval(0.25 if expected["error"] is None else expected["error"], n)
    within = f"this measures the error to within about {50 * (high - low):.0f} points, and the gain"
    if deck:
        return f"Label {n} rows on this page: {within}. Or run undrift label, which learns as you go."
    return f"Label {n} target rows drawn at random, and run again with --target-label: {within}."
