"""What goes into a record: what was found, and where it comes from."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from ... import __version__
from ...metrics import transfer_error, transfer_loss, transfer_ratio
from ..methods import Bench, GridPoint, Outcome, labels
from ..plan import Plan, Setting
from .machine import description


def transfer_record(bench: Bench, outcome: Outcome, baseline_error: float) -> dict[str, Any]:
    """Measure the predictions of a task."""
    cell = outcome.cell
    truth = labels(bench.corpus, cell.target, "test")
    error = transfer_error(truth, outcome.predicted)
    return {
        **asdict(cell),
        "params": dict(outcome.params),
        "transfer_error": error,
        "baseline_in_domain_error": baseline_error,
        "transfer_loss": transfer_loss(error, baseline_error),
        "transfer_ratio": _finite(transfer_ratio(error, baseline_error)),
        "represent_seconds": round(outcome.represent_seconds, 6),
        "classify_seconds": round(outcome.classify_seconds, 6),
        "grid_seconds": round(outcome.grid_seconds, 6),
        "n_train": len(labels(bench.corpus, cell.source, "train")),
        "n_test": len(truth),
        "n_features": next(iter(bench.corpus.domains.values())).X.shape[1],
        **outcome.details,
    }


def grid_record(point: GridPoint) -> dict[str, Any]:
    """What cross-validation said of a noise level."""
    return {**asdict(point), "score": _finite(point.score)}


def stamped(kind: str, plan: Plan, variant: Setting, own: Mapping[str, Any], device: str) -> dict[str, Any]:
    """Add to a record where it comes from."""
    return {
        "kind": kind,
        "plan": plan.name,
        "variant": variant.name,
        "corpus": plan.corpus.folder or plan.corpus.loader,
        **own,
        "seed": plan.seed,
        "version": __version__,
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "machine": description(device),
        "digest": plan.digest(variant),
    }


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
