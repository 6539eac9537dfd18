"""Did it help, how sure are we, and what to try next."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import stats

from .inputs import Evidence

CONFIDENCE = 1.959964  # standard deviations that a 95 % interval reaches to either side
FAR_APART = 0.5


def wilson(n_wrong: int, n: int) -> dict[str, float]:
    """Error with its 95 % interval (Wilson 1927), which holds for few rows and for errors near 0 too."""
    share, z2 = n_wrong / n, CONFIDENCE**2
    middle = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = CONFIDENCE / (1 + z2 / n) * math.sqrt(share * (1 - share) / n + z2 / (4 * n * n))
    return {"error": share, "low": max(0.0, middle - half), "high": min(1.0, middle + half)}


def paired(n_mended: int, n_broken: int, n: int) -> dict[str, float]:
    """Gain of one classifier over another on the same rows, its 95 % interval and McNemar's exact p.

    Only rows on which exactly one of the two is right count: mended ones for, broken ones against.
    """
    gain = (n_mended - n_broken) / n
    half = CONFIDENCE * math.sqrt(max(n_mended + n_broken - n * gain**2, 0.0)) / n
    both = n_mended + n_broken
    p = float(stats.binomtest(n_mended, both).pvalue) if both else 1.0
    return {"gain": gain, "low": gain - half, "high": gain + half, "p": p}


def scored(evidence: Evidence) -> list[dict[str, Any]]:
    """Errors of both classifiers on each target that has labels."""
    found = []
    for own in evidence.targets:
        if not own.known.any():
            continue
        labels = np.asarray(evidence.classes)
        y = own.known_labels()
        before = labels[evidence.source_only_codes[own.number][own.known]] != y
        after = labels[evidence.adapted_codes[own.number][own.known]] != y
        found.append(comparison(own.name, before, after))
    return found


def comparison(name: str, before: np.ndarray, after: np.ndarray) -> dict[str, Any]:
    """Compare two classifiers' mistakes on the same rows."""
    n, mended, broken = len(before), int((before & ~after).sum()), int((after & ~before).sum())
    return {
        "name": name,
        "n_rows": n,
        "n_mended": mended,
        "n_broken": broken,
        "source_only": wilson(int(before.sum()), n),
        "adapted": wilson(int(after.sum()), n),
        "difference": paired(mended, broken, n),
    }


def pooled(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Put several targets' comparisons together."""
    n, mended, broken = (sum(row[key] for row in rows) for key in ("n_rows", "n_mended", "n_broken"))
    errors = {
        side: wilson(sum(round(row[side]["error"] * row["n_rows"]) for row in rows), n)
        for side in ("source_only", "adapted")
    }
    difference = paired(mended, broken, n)
    return {"name": "all targets", "n_rows": n, "n_mended": mended, "n_broken": broken, **errors} | {
        "difference": difference
    }


def agreement(evidence: Evidence) -> dict[str, Any]:
    """Say how often the two classifiers agree on the target, whoever is right."""
    pairs = [
        (evidence.source_only_codes[t.number], evidence.adapted_codes[t.number]) for t in evidence.targets
    ]
    n_rows = sum(len(own) for own in evidence.targets)
    n_changed = int(sum((before != after).sum() for before, after in pairs))
    return {"n_rows": n_rows, "n_changed": n_changed, "changed": n_changed / n_rows if n_rows else 0.0}


def held_out(evidence: Evidence) -> dict[str, float | None]:
    """Errors in cross-validation on the labelled source, where they were measured."""
    best = getattr(evidence.baseline, "best_score_", None)
    chosen = [own["score"] for own in evidence.classifier.selection_results_ if own["chosen"]]
    is_source_cv = (
        evidence.classifier.selection in ("source-cv", "one-se") and chosen and chosen[0] == chosen[0]
    )
    return {
        "source_only": None if best is None else 1 - float(best),
        "adapted": 1 - float(chosen[0]) if is_source_cv else None,
    }


def verdict(evidence: Evidence) -> dict[str, Any]:
    """Say whether adaptation helped and how sure that is: scored with labels, else estimated."""
    rows, changed, source = scored(evidence), agreement(evidence), held_out(evidence)
    base = {"agreement": changed, "held_out_source": source, "scored": rows}
    if rows:
        whole = rows[0] if len(rows) == 1 else pooled(rows)
        return base | {"basis": "scored", "whole": whole} | _scored_words(whole)
    return base | {"basis": "estimated", "whole": None} | _estimated_words(changed, source)


def points(share: float) -> str:
    """Write a difference of fractions in percentage points."""
    return f"{100 * share:.1f}"


def _scored_words(whole: dict[str, Any]) -> dict[str, str]:
    difference = whole["difference"]
    before, after = (points(whole[side]["error"]) for side in ("source_only", "adapted"))
    moved = f"{before} % of target rows were wrong without it, {after} % with it"
    interval = f"{points(difference['low'])} to {points(difference['high'])} points"
    p = "below 0.001" if difference["p"] < 0.001 else f"{difference['p']:.2g}"
    sure = (
        f"Scored on {whole['n_rows']:,} target rows whose labels were used for nothing else. "
        f"The gain is {points(difference['gain'])} points of error, 95 % interval {interval}: "
        f"{whole['n_mended']:,} rows were mended and {whole['n_broken']:,} broken (McNemar's p {p})."
    )
    if difference["low"] > 0:
        return {"answer": "yes", "headline": f"Adaptation helped: {moved}.", "sure": sure}
    if difference["high"] < 0:
        return {"answer": "no", "headline": f"Adaptation hurt: {moved}.", "sure": sure}
    more = " The interval holds 0: with these rows the two cannot be told apart."
    return {"answer": "unclear", "headline": f"No clear difference: {moved}.", "sure": sure + more}


def _estimated_words(changed: dict[str, Any], source: dict[str, float | None]) -> dict[str, str]:
    share = 100 * changed["changed"]
    known = [
        f"{name} {points(own)} %"
        for name, own in (("source-only", source["source_only"]), ("adapted", source["adapted"]))
        if own is not None
    ]
    at_home = f" On held-out rows of the source itself the errors are: {', '.join(known)}." if known else ""
    return {
        "answer": "unknown",
        "headline": (
            f"Adaptation changed {share:.1f} % of the predictions; without target labels its gain is unknown."
        ),
        "sure": (
            f"Estimated, not scored. The two classifiers agree on {100 - share:.1f} % of "
            f"{changed['n_rows']:,} target rows, so their errors differ by at most {share:.1f} points, for "
            "better or for worse." + at_home
        ),
    }


def advice(data: dict[str, Any]) -> list[str]:
    """List what to try next, the most useful first."""
    found, chosen, own = [], data["chosen"], data["verdict"]
    if own["basis"] == "estimated":
        n = own["agreement"]["n_changed"]
        found.append(
            f"Label about {min(50, n) or 50} of the {n:,} changed rows, taken at random: elsewhere the two "
            "classifiers agree, so these alone decide whether adaptation helped. Then run again with "
            "--target-label."
        )
    elif own["answer"] == "unclear":
        found.append("Label more target rows: four times as many halve the interval.")
    elif own["answer"] == "no":
        found.append("Use the source-only predictions for now, or a source that is closer to the target.")
    if chosen["rule"] == "fixed":
        found.append(
            "Let it choose: --noise 0.5,0.7,0.9 --layers 1,3,5 --C 0.1,0.3,1. No target label is used."
        )
    elif chosen["rule"] in ("source-cv", "one-se") and own["answer"] != "yes":
        found.append("Choose by what returns from the target: --selection reverse.")
    found += [f"Widen the grid: {note}." for note in data["notes"] if "edge" in note]
    found += _advice_on_domains(data)
    if own["answer"] == "yes":
        found.append(
            "For the next points of error, label the target rows whose score is nearest to 0 and add them to "
            "a source file."
        )
    return found


def _advice_on_domains(data: dict[str, Any]) -> list[str]:
    found = []
    for card in data["domains"]:
        if card["role"] == "target" and (card["unseen_share"] or 0) > FAR_APART:
            found.append(
                f"{card['name']}: over half of its words are not in the labelled source. Add a source, or "
                "unlabelled documents, from between the two."
            )
        if card["role"] == "target" and card["n_rows"] < 1000:
            found.append(
                f"{card['name']}: add unlabelled rows if there are more; {card['n_rows']:,} are few to learn "
                "how words go together."
            )
        if card["role"] == "target" and data["chosen"]["center"] and (card["class_drift"] or 0) > 0.15:
            found.append(
                f"{card['name']}: its labels come in other proportions than the source's. Try --no-center, "
                "since centring assumes equal ones."
            )
    return found
