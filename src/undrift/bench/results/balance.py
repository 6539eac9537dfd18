"""Results at several class shares of the target: errors by method and share, and how good estimates are."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from .measures import Where, by_task, failure_notes, places, stamps, table_lines
from .records import Record

ORDER = ("source-only", "uncentred", "centred", "undrift", "oracle")
ESTIMATES = {
    "share_error": "share, off by",
    "expected_error_gap": "expected error, off by",
    "calibration_error": "calibration error",
}


def varies_shares(records: Sequence[Record]) -> bool:
    """Tell whether the records are of a plan in which the same target comes with several class shares."""
    seen: dict[tuple[str, str, str], set[float]] = {}
    for record in records:
        if record.get("target_share") is not None:
            key = record["plan"], record["corpus"], record["target"]
            seen.setdefault(key, set()).add(record["target_share"])
    return any(len(shares) > 1 for shares in seen.values())


def measure_estimate(record: Record, name: str) -> float | None:
    """How far an estimate of a record is off, as a fraction; None where there is no estimate."""
    if name == "share_error":
        return _distance(record.get("estimated_share"), record.get("target_share"))
    if name == "expected_error_gap":
        return _distance(record.get("expected_error"), record.get("transfer_error"))
    return record.get(name)


def _distance(estimate: float | None, truth: float | None) -> float | None:
    return None if estimate is None or truth is None else abs(estimate - truth)


def group_by_share(records: Sequence[Record]) -> dict[str, dict[str, dict[float, list[Record]]]]:
    """Group successful records by corpus, method (as `ORDER` has them) and share of the target."""
    groups: dict[str, dict[str, dict[float, list[Record]]]] = {}
    for place in sorted(places(records), key=_rank):
        for record in place.of(records):
            by_share = groups.setdefault(record["corpus"], {}).setdefault(place.method, {})
            by_share.setdefault(record["target_share"], []).append(record)
    return groups


def _rank(place: Where) -> tuple[int, str]:
    return (ORDER.index(place.method) if place.method in ORDER else len(ORDER), place.method)


def balance_table(records: Sequence[Record]) -> str:
    """Errors by method and share of the target, and how good the estimates without target labels are."""
    lines = []
    for corpus, methods in group_by_share(records).items():
        shares = sorted({share for groups in methods.values() for share in groups})
        names = [f"{share:.0%} positive" for share in shares]
        lines += [
            f"{corpus}: mean error over the tasks, %, in brackets the mean of the two classes' errors.",
            "",
            *table_lines(
                ["corpus", "method", "tasks", *names, "mean"],
                [[corpus, name, _n_tasks(each), *_errors(each, shares)] for name, each in methods.items()],
                2,
            ),
            "",
        ]
    lines += [
        "Estimates without target labels, in points, on the mean over tasks; calibration: 10 bins.",
        "",
        *_estimates(records),
        "",
        *stamps(records),
        *failure_notes(records),
    ]
    return "\n".join(lines) + "\n"


def _errors(groups: dict[float, list[Record]], shares: Sequence[float]) -> list[str]:
    cells, means = [], []
    for share in shares:
        if share not in groups:
            cells.append("")
            continue
        error, balanced = (
            fmean(by_task(groups[share], name).values()) for name in ("transfer_error", "balanced_error")
        )
        means.append(error)
        cells.append(f"{100 * error:.1f} ({100 * balanced:.1f})")
    return [*cells, f"{100 * fmean(means):.2f}" if len(means) == len(shares) else ""]


def _estimates(records: Sequence[Record]) -> list[str]:
    lines = []
    for corpus, methods in group_by_share(records).items():
        for method, groups in methods.items():
            every = [record for group in groups.values() for record in group]
            for name, says in ESTIMATES.items():
                means = {share: _mean(group, name) for share, group in sorted(groups.items())}
                known = [value for value in means.values() if value is not None]
                if known:
                    values = " / ".join("" if m is None else f"{100 * m:.1f}" for m in means.values())
                    cells = [corpus, method, says, _n_tasks(groups), values, f"{100 * fmean(known):.2f}"]
                    lines.append([*cells, str(sum(measure_estimate(r, name) is None for r in every))])
    return table_lines(["corpus", "method", "expected", "tasks", "by share", "mean", "without"], lines, 3)


def _mean(records: Sequence[Record], name: str) -> float | None:
    values = [value for record in records if (value := measure_estimate(record, name)) is not None]
    return fmean(values) if values else None


def _n_tasks(groups: dict[float, list[Record]]) -> str:
    return str(sum(len(by_task(group, "transfer_error")) for group in groups.values()))
