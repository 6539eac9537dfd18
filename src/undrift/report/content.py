"""An adaptation as plain data, ready for JSON: everything that the page shows."""

from __future__ import annotations

import platform
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import zip_longest
from typing import Any

import numpy as np

from .._version import __version__
from ..scoring import measure_error
from .data import DomainRows, ReportData, Target
from .evidence import (
    difference_terms,
    explain_changes,
    find_idea,
    make_decks,
    map_points,
    pack_sentence_model,
    shares,
    term_statistics,
)
from .verdict import advise, find_mistakes, judge, pool_estimates

LEAST_MEASURED = 10  # labelled rows that a point of the curve stands for
COVERAGES = np.arange(1, 21) / 20


def adaptation_data(given: ReportData) -> dict[str, Any]:
    """Gather everything that a report of an adaptation shows."""
    table, (share_doubt, notes) = term_statistics(given), split_doubts(given)
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
        "notes": notes,
        "share_doubt": share_doubt,
        "blocking": list(given.caution.get("blocking", [])),
        "domains": cards,
        "decks": make_decks(given),
        "difference": difference,
        "idea": find_idea(given, table, difference),
        "map": {"n_terms": len(given.terms), "points": map_points(given, table)},
        "changes": explain_changes(given),
        "sentence": pack_sentence_model(given),
        "confidence": describe_confidence(given, cards),
        "reproduce": describe_run(given),
    }
    data["next"] = advise(data)
    return data


def split_doubts(given: ReportData) -> tuple[str | None, list[str]]:
    """Return the doubt about class shares, if there is one, and other doubts with the notes of the run.

    The reasons for a fallback are in neither: they stand apart.
    """
    doubts = dict(zip_longest(given.caution.get("reasons", []), given.caution.get("codes", [])))
    apart = given.caution.get("blocking", []) if given.fell_back else []
    of_shares = [reason for reason, code in doubts.items() if code == "uncertain-shares"]
    others = [reason for reason in doubts if reason not in (*of_shares, *apart)]
    doubt = of_shares[0] if of_shares and not given.fell_back else None
    return doubt, list(dict.fromkeys([*others, *given.facts.notes]))


def describe_domains(given: ReportData) -> list[dict[str, Any]]:
    """Describe each domain: rows, labels, vocabulary; of targets new words and class shares too."""
    cards = [_describe_rows(rows) | {"role": "source", "unseen_share": None} for rows in given.sources]
    for target in given.targets:
        card = _describe_rows(target.rows) | {"role": "target", "unseen_share": _unseen_share(given, target)}
        predicted = np.bincount(target.codes, minlength=len(given.classes)) / max(len(target.codes), 1)
        labelled, weight = _labelled_shares(given, target)
        estimates = given.estimates_of(target)
        used = estimates["target_shares"]
        both = used and labelled and [abs(used[label] - labelled[label]) for label in used]
        card |= {
            **estimates,
            "predicted_shares": dict(zip(given.classes, predicted.tolist(), strict=True)),
            "labelled_shares": labelled,
            "weight": weight,
            "share_error": sum(both) / 2 if both else None,  # total variation distance
        }
        cards.append(card)
    return cards


def _describe_rows(rows: DomainRows) -> dict[str, Any]:
    return {
        "name": rows.name,
        "n_rows": rows.n_rows or len(rows),
        "n_sampled": len(rows) if rows.n_rows else None,
        "n_labelled": int(rows.known.sum()),
        "n_terms": int(np.count_nonzero(shares(rows.X))),
    }


def _labelled_shares(given: ReportData, target: Target) -> tuple[dict[str, float] | None, float]:
    """Return the class shares of a target's scored rows, and the sum of their weights."""
    known, n_classes = target.is_scored, len(given.classes)
    sums = np.bincount(target.truth[known], target.weight[known], n_classes + 1)  # the last: other labels
    if not sums[:-1].sum():
        return None, 0.0
    return dict(zip(given.classes, (sums[:-1] / sums.sum()).tolist(), strict=True)), float(sums.sum())


def _unseen_share(given: ReportData, target: Target) -> float | None:
    """Return the share of a target's words, or of its terms where there are no documents, that are new."""
    if target.rows.unseen_share is not None:
        return target.rows.unseen_share
    is_word = np.array([target.rows.documents is None or " " not in term for term in given.terms])
    counts = shares(target.rows.X) * is_word
    is_new = np.asarray(given.classifier.labelled_counts_) == 0
    return float(counts[is_new].sum() / counts.sum()) if counts.sum() else None


def describe_confidence(given: ReportData, cards: list[dict[str, Any]]) -> dict[str, Any]:
    """Describe the probabilities of all targets' predictions; expected errors are None where not known."""
    P, codes, truth, weight = (
        np.concatenate([getattr(target, name) for target in given.targets])
        for name in ("P", "codes", "truth", "weight")
    )
    p = np.concatenate([target.certainty for target in given.targets])
    expected = pool_estimates([card for card in cards if card["role"] == "target"], "expected_error")
    if not (truth >= 0).any() and (mistakes := list(find_mistakes(given).values())):  # of cross-fitting
        expected = measure_error(*(np.concatenate(masks) for masks in list(zip(*mistakes, strict=True))[1:]))
    # the expected error includes the loss from one domain to the other, probabilities do not
    scale: float | None = 1.0
    if expected:
        error = expected["error"]
        scale = None if error is None else error / max(float(np.mean(1 - p)), 1e-9)
    return {
        "coverage": _measure_coverage(p, codes, truth, weight, scale),
        "confusion": _count_confusion(P, codes, truth, weight, scale),
    }


def _measure_coverage(
    p: np.ndarray, codes: np.ndarray, truth: np.ndarray, weight: np.ndarray, scale: float | None
) -> list[dict[str, Any]]:
    """Return the error, measured and expected, among growing shares of the surest predictions."""
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


def _count_confusion(
    P: np.ndarray, codes: np.ndarray, truth: np.ndarray, weight: np.ndarray, scale: float | None
) -> dict[str, Any] | None:
    """Count rows by true and predicted class; without labels, by the probabilities of the true class."""
    known = (truth >= 0) & (truth < P.shape[1])
    counts = np.zeros((P.shape[1], P.shape[1]))
    if known.any():
        np.add.at(counts, (truth[known], codes[known]), weight[known] / weight[known].mean())
    elif scale is None:
        return None
    else:
        for code in range(len(counts)):
            counts[:, code] = scale * P[codes == code].sum(axis=0)
            counts[code, code] += (codes == code).sum() - counts[:, code].sum()
    rounded = [[round(float(n), 1) for n in row] for row in counts]
    return {"is_measured": bool(known.any()), "counts": rounded}


def describe_run(given: ReportData) -> dict[str, Any]:
    """Return what it takes to do the same again."""
    plain = {
        name: value if isinstance(value, int | float | str | None) else str(value)
        for name, value in given.classifier.get_params(deep=False).items()
    }
    return {
        "command": given.facts.command,
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "seed": plain["random_state"],
        "parameters": plain,
        "versions": {"undrift": __version__, "Python": platform.python_version()}
        | {name: version(name) for name in ("numpy", "scipy", "scikit-learn")},
        "files": list(given.facts.files),
    }
