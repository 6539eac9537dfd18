"""An adaptation as plain data, ready for JSON: everything that the page shows."""

from __future__ import annotations

import platform
from collections import Counter
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import zip_longest
from typing import Any

import numpy as np

from .._version import __version__
from ..classifier import SELECTIONS
from .confidence import confidence_data
from .decks import make_decks
from .documents import changed_documents
from .inputs import DomainRows, Evidence
from .shares import describe_target, find_share_doubt
from .terms import (
    difference_terms,
    find_idea,
    map_points,
    shares,
    strongest_terms,
    term_browser,
    term_statistics,
)
from .verdict import advice, verdict


def adaptation_data(evidence: Evidence) -> dict[str, Any]:
    """Gather everything that a report of an adaptation shows."""
    table = term_statistics(evidence)
    browser, difference = term_browser(evidence, table), difference_terms(evidence, table)
    data: dict[str, Any] = {
        "kind": "adaptation",
        "title": f"{_names(evidence.sources)} → {_names(evidence.targets)}",
        "source_name": _names(evidence.sources),
        "target_name": _names(evidence.targets),
        "classes": evidence.classes,
        "verdict": verdict(evidence),
        "chosen": describe_choice(evidence),
        "seconds": evidence.about.get("seconds"),
        "warnings": list(evidence.about.get("warnings", [])),
        "notes": _notes(evidence),
        "share_doubt": find_share_doubt(evidence),
        "blocking": list((evidence.classifier.caution_ or {}).get("blocking", [])),
        "domains": domain_cards(evidence),
        "decks": make_decks(evidence),
        "difference": difference,
        "idea": find_idea(evidence, table, difference),
        "map": {"n_terms": len(evidence.terms), "points": map_points(evidence, table)},
        "selection": selection_grids(evidence),
        "changes": changed_documents(evidence),
        "terms": browser,
        "strongest": strongest_terms(evidence, table, browser),
        "confidence": confidence_data(evidence),
        "reproduce": reproduction(evidence),
    }
    data["next"] = advice(data)
    return data


def describe_choice(evidence: Evidence) -> dict[str, Any]:
    """Return the settings that were used, and how they were chosen."""
    classifier = evidence.classifier
    return {
        **classifier.best_params_,
        "rule": classifier.selection if len(classifier.selection_results_) > 1 else "fixed",
        "n_candidates": len(classifier.selection_results_),
        "classifier": classifier.classifier,
        "center": "domains" if classifier.center is True else classifier.center,
        "border": classifier.border,
        "edges": list(classifier.selection_edges_),
    }


def _notes(evidence: Evidence) -> list[str]:
    """Return notes on the choice, reasons against adapting and the job's notes, each once.

    Doubts about class shares stand apart, and so do the reasons for a fallback.
    """
    classifier = evidence.classifier
    caution = classifier.caution_ or {}
    pairs = zip_longest(caution.get("reasons", []), caution.get("codes", []))
    apart = caution.get("blocking", []) if evidence.fell_back else []
    reasons = [reason for reason, code in pairs if code != "uncertain-shares" and reason not in apart]
    return list(dict.fromkeys([*classifier.selection_notes_, *reasons, *evidence.about.get("notes", [])]))


def _names(domains: list[DomainRows]) -> str:
    return " + ".join(domain.name for domain in domains)


def domain_cards(evidence: Evidence) -> list[dict[str, Any]]:
    """Describe each domain: rows, labels, vocabulary, unseen words; of targets the class shares too."""
    counts = Counter(evidence.labelled()[1].tolist())
    home = {label: n / counts.total() for label, n in counts.items()}
    return [
        {
            "name": domain.name,
            "role": "source" if domain.number >= 0 else "target",
            "n_rows": domain.n_rows or len(domain),
            "n_sampled": len(domain) if domain.n_rows else None,
            "n_labelled": int(domain.known.sum()),
            "n_terms": int(np.count_nonzero(shares(domain.X))),
            "unseen_share": _unseen_share(evidence, domain) if domain.number < 0 else None,
            **(_describe_shares(evidence, domain, home) if domain.number < 0 else {}),
        }
        for domain in evidence.domains
    ]


def _describe_shares(evidence: Evidence, target: DomainRows, home: dict[str, float]) -> dict[str, Any]:
    """Add to a target's class shares how far its labelled rows' are from the source's and those used."""
    described = describe_target(evidence, target)
    measured, used = described["labelled_shares"], described["target_shares"]
    return described | {
        "class_drift": _drift(home, measured) if measured else None,
        "share_error": _drift(used, measured) if used and measured else None,
    }


def _drift(a: dict[str, float], b: dict[str, float]) -> float:
    """Share of rows whose label would have to change for the proportions to be equal."""
    return sum(abs(a.get(label, 0) - b.get(label, 0)) for label in {*a, *b}) / 2


def _unseen_share(evidence: Evidence, target: DomainRows) -> float | None:
    """Return the share of a target's words, or of its terms where there are no documents, that are new."""
    entries = (evidence.about.get("summary") or {}).get("targets", [])
    if entries:
        return entries[-1 - target.number]["unseen_share"]
    is_word = np.array([target.documents is None or " " not in term for term in evidence.terms])
    counts = shares(target.X) * is_word
    is_new = np.asarray(evidence.classifier.labelled_counts_) == 0
    return float(counts[is_new].sum() / counts.sum()) if counts.sum() else None


def selection_grids(evidence: Evidence) -> list[dict[str, Any]]:
    """Return what the rule gave to each noise and depth, at its best C; nothing if there was no choice.

    A rule of this version gives errors; one that only an earlier version had, scores.
    """
    scored = [row for row in evidence.classifier.selection_results_ if row["score"] == row["score"]]
    if len(scored) < 2:
        return []
    rule = evidence.classifier.selection
    is_error = rule in SELECTIONS
    in_order = sorted(scored, key=lambda row: (row["score"], row["chosen"]))
    best = {(row["noise"], row["n_layers"]): row for row in in_order}  # the last of each is the best
    cells = [
        {name: result[name] for name in ("noise", "n_layers", "C", "chosen")}
        | {"value": 1 - float(result["score"]) if is_error else float(result["score"])}
        for result in best.values()
    ]
    noise, depth = (sorted({cell[name] for cell in cells}) for name in ("noise", "n_layers"))
    return [{"rule": rule, "is_error": is_error, "noise": noise, "n_layers": depth, "cells": cells}]


def reproduction(evidence: Evidence) -> dict[str, Any]:
    """Say what it takes to do the same again."""
    classifier = evidence.classifier
    plain = {
        name: value if isinstance(value, int | float | str | None) else str(value)
        for name, value in classifier.get_params(deep=False).items()
    }
    return {
        "command": evidence.about.get("command"),
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "seed": plain["random_state"],
        "parameters": plain,
        "versions": {"undrift": __version__, "Python": platform.python_version()}
        | {name: version(name) for name in ("numpy", "scipy", "scikit-learn")},
        "files": list(evidence.about.get("files", [])),
        "summary": evidence.about.get("summary"),
    }
