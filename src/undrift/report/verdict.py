"""Whether adaptation helped, how certain that is, and what to try next."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import stats

from ..text import FAR_APART
from .inputs import Evidence
from .shares import explain_expected_error, headline_expected_error, pool_expected_errors

FEW_ROWS = 1_000  # target rows below which advice is given
CLASS_DRIFT = 0.15  # difference of the class shares above which it is worth a word
SHARE_ERROR = 0.1  # of the shares that were used against those of labelled rows, worth a word
SAMPLE_ROWS = 100  # target rows to label for a fair estimate
OPTIONS = {"noise": "--noise", "n_layers": "--layers", "C": "--C"}


def error_interval(n_wrong: int, n: int) -> dict[str, float]:
    """Error with its 95% interval by Wilson's method, which holds for few rows and errors near 0 too."""
    interval = stats.binomtest(n_wrong, n).proportion_ci(method="wilson")
    return {"error": n_wrong / n, "low": float(interval.low), "high": float(interval.high)}


def paired_gain(n_corrected: int, n_spoilt: int, n: int) -> dict[str, float]:
    """Gain of one classifier over another on the same rows, with its 95% interval and McNemar's exact p.

    Only rows on which exactly one of the two is right count.
    """
    differing = n_corrected + n_spoilt
    gain = (n_corrected - n_spoilt) / n
    half = stats.norm.ppf(0.975) * math.sqrt(max(differing - n * gain**2, 0.0)) / n
    p = float(stats.binomtest(n_corrected, differing).pvalue) if differing else 1.0
    return {"gain": gain, "low": float(gain - half), "high": float(gain + half), "p": p}


def compare_mistakes(name: str, before: np.ndarray, after: np.ndarray) -> dict[str, Any]:
    """Compare two classifiers' mistakes on the same rows."""
    n_corrected, n_spoilt = int((before & ~after).sum()), int((after & ~before).sum())
    return _comparison(name, len(before), int(before.sum()), int(after.sum()), n_corrected, n_spoilt)


def _comparison(
    name: str, n: int, n_before: int, n_after: int, n_corrected: int, n_spoilt: int
) -> dict[str, Any]:
    return {
        "name": name,
        "n_rows": n,
        "n_mended": n_corrected,
        "n_broken": n_spoilt,
        "source_only": error_interval(n_before, n),
        "adapted": error_interval(n_after, n),
        "difference": paired_gain(n_corrected, n_spoilt, n),
    }


def pool_comparisons(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Add up the comparisons of several targets."""
    if len(rows) == 1:
        return rows[0]
    n_wrong = [
        sum(round(row[side]["error"] * row["n_rows"]) for row in rows) for side in ("source_only", "adapted")
    ]
    n, *counts = (sum(row[key] for row in rows) for key in ("n_rows", "n_mended", "n_broken"))
    return _comparison("all targets", n, *n_wrong, *counts)


def score_targets(evidence: Evidence) -> list[dict[str, Any]]:
    """Compare both classifiers' mistakes on each target that has labels."""
    rows, classes = [], np.asarray(evidence.classes)
    for target in evidence.targets:
        if target.known.any():
            before, after = (
                classes[codes[target.number][target.known]] != target.known_labels()
                for codes in (evidence.source_only_codes, evidence.adapted_codes)
            )
            rows.append(compare_mistakes(target.name, before, after))
    return rows


def count_changes(evidence: Evidence) -> dict[str, Any]:
    """Count the target rows on which the two classifiers differ, whichever is right."""
    n_rows = sum(len(target) for target in evidence.targets)
    n_changed = sum(
        int((evidence.source_only_codes[target.number] != evidence.adapted_codes[target.number]).sum())
        for target in evidence.targets
    )
    return {"n_rows": n_rows, "n_changed": n_changed, "changed": n_changed / n_rows if n_rows else 0.0}


def held_out_errors(evidence: Evidence) -> dict[str, float | None]:
    """Errors in cross-validation on the labelled source, where they were measured."""
    baseline = getattr(evidence.baseline, "best_score_", None)
    results = evidence.classifier.selection_results_
    (chosen,) = [result["score"] for result in results if result["chosen"]] or [math.nan]
    by_source = evidence.classifier.selection in ("source-cv", "one-se") and not evidence.fell_back
    return {
        "source_only": None if baseline is None else 1 - float(baseline),
        "adapted": 1 - float(chosen) if by_source and not math.isnan(chosen) else None,
    }


def verdict(evidence: Evidence) -> dict[str, Any]:
    """Say whether adaptation helped and how certain that is: scored with labels, else estimated."""
    rows, changes, held_out = score_targets(evidence), count_changes(evidence), held_out_errors(evidence)
    whole = pool_comparisons(rows) if rows else None
    expected = pool_expected_errors(evidence)
    data = {
        "agreement": changes,
        "held_out_source": held_out,
        "scored": rows,
        "basis": "scored" if rows else "estimated",
        "whole": whole,
        "fell_back": evidence.fell_back,
        "predictor": "source-only" if evidence.fell_back else "adapted",
        "expected_error": expected,
        "expected": explain_expected_error(expected, bool(rows), evidence),
    }
    if evidence.fell_back:
        return data | _words_of_fallback(whole, changes)
    return data | (_words_of_scores(whole) if whole else _words_of_estimate(expected, changes, held_out))


def _points(share: float) -> str:
    return f"{100 * share:.1f}"


def _certainty(whole: dict[str, Any]) -> str:
    gain = whole["difference"]
    p = "below 0.001" if gain["p"] < 0.001 else f"{gain['p']:.2g}"
    return (
        f"The gain is {_points(gain['gain'])} points of error, 95% interval {_points(gain['low'])} to "
        f"{_points(gain['high'])} points: {whole['n_mended']:,} predictions were corrected, "
        f"{whole['n_broken']:,} became wrong (McNemar's p {p})."
    )


def _words_of_scores(whole: dict[str, Any]) -> dict[str, str]:
    gain = whole["difference"]
    errors = (
        f"{whole['source_only']['error']:.1%} of target rows were wrong without it, "
        f"{whole['adapted']['error']:.1%} with it"
    )
    sure = (
        f"Scored on {whole['n_rows']:,} target rows whose labels were used for nothing else. "
        + _certainty(whole)
    )
    if gain["low"] > 0:
        return {"answer": "yes", "headline": f"Adaptation helped: {errors}.", "sure": sure}
    if gain["high"] < 0:
        return {"answer": "no", "headline": f"Adaptation hurt: {errors}.", "sure": sure}
    more = " The interval contains 0: these rows cannot tell which of the two is better."
    return {"answer": "unclear", "headline": f"No clear difference: {errors}.", "sure": sure + more}


def _words_of_estimate(
    expected: dict[str, float] | None, changes: dict[str, Any], held_out: dict[str, float | None]
) -> dict[str, str]:
    share = changes["changed"]
    named = (("baseline", held_out["source_only"]), ("adapted", held_out["adapted"]))
    known = [f"{name} {error:.1%}" for name, error in named if error is not None]
    on_source = f" In the source, the errors on held-out rows are: {', '.join(known)}." if known else ""
    changed = f"Adaptation changed {share:.1%} of the predictions; without target labels its gain is unknown."
    return {
        "answer": "unknown",
        "headline": changed if expected is None else headline_expected_error(expected),
        "sure": (
            f"Estimated, not scored. The two classifiers agree on {1 - share:.1%} of "
            f"{changes['n_rows']:,} target rows, so their errors differ by at most {_points(share)} points, "
            "for better or for worse." + on_source
        ),
    }


def _words_of_fallback(whole: dict[str, Any] | None, changes: dict[str, Any]) -> dict[str, str]:
    headline = "Not adapted: the predictions are those of the source-only classifier"
    if whole is None:
        sure = (
            f"Estimated, not scored. The source-only classifier and the baseline, a linear SVM, agree on "
            f"{1 - changes['changed']:.1%} of {changes['n_rows']:,} target rows."
        )
        return {"answer": "fallback", "headline": headline + ".", "sure": sure}
    sure = (
        f"Scored on {whole['n_rows']:,} target rows whose labels were used for nothing else; the baseline, "
        f"a linear SVM trained on the source, errs on {whole['source_only']['error']:.1%}. "
        + _certainty(whole)
    )
    errs = f", {whole['adapted']['error']:.1%} of which are wrong."
    return {"answer": "fallback", "headline": headline + errs, "sure": sure}


def advice(data: dict[str, Any]) -> list[str]:
    """List what to try next, the most useful first."""
    chosen, verdict = data["chosen"], data["verdict"]
    steps = []
    if verdict["answer"] == "fallback":
        steps.append(
            "Read the warning: it says why adaptation was not expected to help, and what to do about it. "
            "--no-fallback adapts all the same."
        )
    if verdict["basis"] == "estimated":
        steps.append(_advise_sample(verdict))
    elif verdict["answer"] == "unclear":
        steps.append("Label more target rows, drawn at random: four times as many halve the interval.")
    elif verdict["answer"] == "no":
        steps.append("Use the baseline's predictions for now, or a source that is closer to the target.")
    if chosen["rule"] == "fixed":
        steps.append(
            "Let it choose: --noise 0.5,0.7,0.9 --layers 1,3,5 --C 0.1,0.3,1. No target label is used."
        )
    elif chosen["rule"] in ("source-cv", "one-se") and verdict["answer"] not in ("yes", "fallback"):
        steps.append("Choose by a round trip through the target: --selection reverse.")
    steps += [
        f"Widen the grid: the chosen {name} is at its edge ({OPTIONS[name]})." for name in chosen["edges"]
    ]
    steps += [step for card in data["domains"] for step in _advice_on_domain(card, chosen["center"])]
    if verdict["answer"] == "yes":
        steps.append(
            "To lower the error further, label the target rows whose score is nearest to 0 and add them to "
            "a source file. Do not measure the error on such rows: they are the hardest."
        )
    return steps


def _advise_sample(verdict: dict[str, Any]) -> str:
    """Advise to label a random sample, and say how well it would measure the error."""
    n = min(SAMPLE_ROWS, verdict["agreement"]["n_rows"])
    error = (verdict["expected_error"] or {"error": 0.25})["error"]
    interval = error_interval(round(error * n), n)
    return (
        f"Label {n} target rows drawn at random from all of them, and run again with --target-label: that "
        f"measures the error to within about {50 * (interval['high'] - interval['low']):.0f} points. Rows "
        "whose prediction changed are no fair sample: errors and gains are more frequent there."
    )


def _advice_on_domain(card: dict[str, Any], center: str | bool) -> list[str]:
    if card["role"] != "target":
        return []
    steps = []
    if (card["unseen_share"] or 0) > FAR_APART:
        steps.append(
            f"{card['name']}: over half of its words are not in the labelled source. Add a source, or "
            "unlabelled documents, of an intermediate domain."
        )
    if card["n_rows"] < FEW_ROWS:
        steps.append(
            f"{card['name']}: add unlabelled rows if there are more; {card['n_rows']:,} are few to learn "
            "which words occur together."
        )
    if center == "domains" and (card["class_drift"] or 0) > CLASS_DRIFT:
        steps.append(
            f"{card['name']}: its class shares differ from the source's. Try --center classes: centring "
            "domains assumes equal shares."
        )
    if center == "classes" and (card["share_error"] or 0) > SHARE_ERROR:
        steps.append(
            f"{card['name']}: its labelled rows have other class shares than those used. If they are a "
            "random sample, give their shares with --target-shares."
        )
    return steps
