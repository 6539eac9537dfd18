"""What goes into a record: the measured values, and where they come from."""

from __future__ import annotations

import math
import os
import platform
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import sklearn

from undrift._version import METHOD_VERSION, __version__

from ..methods import Bench, GridPoint, Outcome
from ..metrics import transfer_error, transfer_loss, transfer_ratio
from ..parts import part_labels
from ..plan import Plan, Setting


def transfer_record(bench: Bench, outcome: Outcome, baseline_error: float) -> dict[str, Any]:
    """Measure the predictions of a task."""
    cell = outcome.cell
    truth = part_labels(bench.corpus, cell.target, "test")
    error = transfer_error(truth, outcome.predicted)
    return {
        **asdict(cell),
        "params": dict(outcome.params),
        "transfer_error": error,
        "baseline_in_domain_error": baseline_error,
        "transfer_loss": transfer_loss(error, baseline_error),
        "transfer_ratio": _finite_or_none(transfer_ratio(error, baseline_error)),
        "represent_seconds": round(outcome.represent_seconds, 6),
        "classify_seconds": round(outcome.classify_seconds, 6),
        "grid_seconds": round(outcome.grid_seconds, 6),
        "n_train": len(part_labels(bench.corpus, cell.source, "train")),
        "n_test": len(truth),
        "n_features": next(iter(bench.corpus.domains.values())).X.shape[1],
        **_measure_shares(bench, outcome, truth),
        **outcome.details,
    }


def _measure_shares(bench: Bench, outcome: Outcome, truth: np.ndarray) -> dict[str, Any]:
    """Share of the source's last class among the rows predicted, and the mean of the classes' errors."""
    share = bench.setting.target_share
    if share is None:
        share = float(
            np.mean(truth == np.unique(part_labels(bench.corpus, outcome.cell.source, "train"))[-1])
        )
    errors = [
        transfer_error(truth[truth == label], outcome.predicted[truth == label]) for label in np.unique(truth)
    ]
    return {
        "target_share": share,
        "balanced_error": fmean(errors),
    }


def grid_record(point: GridPoint) -> dict[str, Any]:
    """What cross-validation said of a noise level."""
    return {**asdict(point), "score": _finite_or_none(point.score)}


def add_origin(
    kind: str, plan: Plan, variant: Setting, values: Mapping[str, Any], device: str
) -> dict[str, Any]:
    """Add to the values of a record where they come from."""
    return {
        "kind": kind,
        "plan": plan.name,
        "variant": variant.name,
        "corpus": plan.corpus_of(variant).loader,
        **values,
        **({"trial": True} if plan.is_trial else {}),
        "seed": plan.seed,
        "version": __version__,
        "method_version": METHOD_VERSION,
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "machine": describe_machine(device),
        "digest": plan.digest(variant, values.get("method", GridPoint.method)),
    }


@cache
def describe_machine(device: str = "cpu") -> str:
    """Processor, cores, the GPU if one is used, and the versions of what does the arithmetic."""
    parts = [f"{_processor()}, {os.cpu_count()} cores"]
    if device != "cpu":
        import torch

        if device.startswith("cuda"):
            parts.append(torch.cuda.get_device_name(device))
        parts.append(f"torch {torch.__version__}")
    return "; ".join([*parts, f"numpy {np.__version__}", f"scikit-learn {sklearn.__version__}"])


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass  # not Linux
    return platform.processor() or platform.machine()


def _finite_or_none(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
