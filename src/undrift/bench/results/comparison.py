"""Methods side by side: other packages' on the same samples, and the headline with and without test rows."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from ..catalogue import PEERS
from .measures import (
    Where,
    by_task,
    difference,
    errors_by_task,
    failures,
    format_number,
    mean_of,
    peak_gigabytes,
    places,
    stamps,
    table_lines,
)
from .records import Record

PEERS_PLAN = "peers"
SOURCE_ONLY = "source-only"
HARM = 0.01  # more error than source-only by more than this is harm
# plans of the headline: the variants that may see the test rows, unlabelled, and that may not
HEADLINE = {"small": ("shipped", "inductive"), "multi": ("20000 terms", "inductive")}


def mean_errors(records: Sequence[Record]) -> dict[str, dict[str, float]]:
    """Mean error of every method in every variant of the plan of peers."""
    means: dict[str, dict[str, float]] = {}
    for place in places(records):
        if place.plan == PEERS_PLAN:
            errors = errors_by_task(place.of(records)).values()
            means.setdefault(place.method, {})[place.variant] = fmean(errors)
    return means


def peers_table(records: Sequence[Record]) -> str:
    """Every method's error by corpus and class share, time, memory, and the tasks that it made worse."""
    records = [record for record in records if record.get("plan") == PEERS_PLAN]
    means = mean_errors(records)
    variants = list(dict.fromkeys(place.variant for place in places(records)))
    n_failed = {method: 0 for method in means}
    for record in failures(records):
        n_failed[record["method"]] = n_failed.get(record["method"], 0) + 1
    rows = []
    for method in sorted(
        n_failed, key=lambda name: (-len(means.get(name, {})), _overall(means.get(name, {})))
    ):
        groups = {name: Where(PEERS_PLAN, name, method).of(records) for name in variants}
        every = [record for group in groups.values() for record in group]
        cells = [
            f"{100 * fmean(errors_by_task(group).values()):.1f}" if group else "" for group in groups.values()
        ]
        package = PEERS[method].package.partition(".")[0] if method in PEERS else "undrift"
        overall = (
            f"{100 * _overall(means[method]):.2f}" if len(means.get(method, {})) == len(variants) else ""
        )
        seconds = [record["represent_seconds"] + record["classify_seconds"] for record in every]
        rows.append([
            method, package, *cells, overall, format_number(fmean(seconds) if seconds else None),
            format_number(peak_gigabytes(every)), _count_harm(records, method, variants),
            str(n_failed[method]),
        ])  # fmt: skip
    names = ["method", "package", *variants, "mean", "seconds", "peak, GB", "harm", "failed"]
    notes = [
        "Mean error over the tasks, %. Seconds and peak of memory are those of a task, without reading "
        "files; `undrift` learns its layers once for all sources of a target, on the GPU named below. "
        f"Harm: tasks on which the error is above that of {SOURCE_ONLY} by more than a point.",
        *stamps(records),
        *dict.fromkeys(f"Failed: {r['method']} ({r['failed']})." for r in failures(records)),
    ]
    return "\n".join([*table_lines(names, rows, 2), "", *notes]) + "\n"


def _overall(means: dict[str, float]) -> float:
    return fmean(means.values()) if means else 1.0


def _count_harm(records: Sequence[Record], method: str, variants: Sequence[str]) -> str:
    """Tasks that are worse than source-only by more than a point, of those that both have."""
    gaps = []
    for variant in variants:
        ours, theirs = (
            errors_by_task(Where(PEERS_PLAN, variant, m).of(records)) for m in (method, SOURCE_ONLY)
        )
        gaps += [ours[name] - theirs[name] for name in ours if name in theirs]
    return f"{sum(gap > HARM + 1e-9 for gap in gaps)} of {len(gaps)}" if gaps else ""


def headline_table(records: Sequence[Record]) -> str:
    """The tf-idf SVM and undrift, without the test rows and with them; errors with and without duplicates."""
    rows = []
    for plan, (transductive, inductive) in HEADLINE.items():
        for protocol, variant in (("inductive", inductive), ("transductive", transductive)):
            for method in ("svm-tfidf", "undrift"):
                here = Where(plan, variant, method)
                group = here.of(records)
                if not group:
                    continue
                compared = difference(records, here, Where(plan, variant, "svm-tfidf"))
                unique = mean_of(group, "error_without_duplicates")
                n_duplicates = {record["target"]: record.get("n_duplicates") or 0 for record in group}
                n_rows = {record["target"]: record["n_test"] for record in group}
                share = sum(n_duplicates.values()) / sum(n_rows.values())
                gain = ""
                if compared is not None and method == "undrift":
                    mean, low, high = (
                        f"{100 * v:+.2f}" for v in (compared.mean, compared.low, compared.high)
                    )
                    gain = f"{mean} ({low} to {high})"
                rows.append([
                    group[0]["corpus"], protocol, method, str(len(by_task(group, "transfer_error"))),
                    f"{100 * fmean(errors_by_task(group).values()):.2f}",
                    "" if unique is None else f"{100 * unique:.2f}", f"{share:.1%}", gain,
                    "" if not gain or compared is None else f"{compared.n_worse} of {compared.n_tasks}",
                ])  # fmt: skip
    names = ["corpus", "protocol", "method", "tasks", "mean error, %", "without duplicates, %", "duplicates"]
    names += ["against svm-tfidf, points", "worse on"]
    notes = [
        "Inductive: no test row is seen before it is predicted; amazon-bow's columns are given. "
        "Transductive: test rows are among the unlabelled ones. Duplicates are test rows that equal a row of "
        "another part or domain. Intervals are 95%, by bootstrap over domains.",
    ]
    return "\n".join([*table_lines(names, rows, 3), "", *notes]) + "\n"
