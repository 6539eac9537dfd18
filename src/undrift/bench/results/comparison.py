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
    """Mean error of every method in every variant of the plan of peers in which it has all tasks."""
    errors = {
        place: errors_by_task(place.of(records)) for place in places(records) if place.plan == PEERS_PLAN
    }
    means: dict[str, dict[str, float]] = {}
    for place, by_name in errors.items():
        n_tasks = max(len(other) for there, other in errors.items() if there.variant == place.variant)
        of_method = means.setdefault(place.method, {})
        if len(by_name) == n_tasks:
            of_method[place.variant] = fmean(by_name.values())
    return means


def peers_table(records: Sequence[Record]) -> str:
    """Every method's error by corpus and class share, time, memory, and the tasks that it made worse."""
    records = [record for record in records if record.get("plan") == PEERS_PLAN]
    means = mean_errors(records)
    variants = sorted({place.variant for place in places(records)})
    failed = failures(records)
    every_method = {**{record["method"]: {} for record in failed}, **means}
    ranked = sorted(every_method.items(), key=lambda item: (-len(item[1]), sum(item[1].values())))
    rows = []
    for method, by_variant in ranked:
        every = [r for name in variants for r in Where(PEERS_PLAN, name, method).of(records)]
        complete = len(by_variant) == len(variants)
        rows.append([
            method,
            PEERS[method].package.partition(".")[0] if method in PEERS else "undrift",
            *(f"{100 * by_variant[name]:.1f}" if name in by_variant else "" for name in variants),
            f"{100 * fmean(by_variant.values()):.2f}" if complete else "",
            format_number(fmean(map(_task_seconds, every)) if every else None),
            format_number(peak_gigabytes(every)),
            _count_harm(records, method, variants),
            str(sum(record["method"] == method for record in failed)),
        ])  # fmt: skip
    names = ["method", "package", *variants, "mean", "seconds", "peak, GB", "harm", "failed"]
    notes = [
        "Mean error over the tasks, %. Seconds and peak of memory are those of a task, without reading "
        "files; `undrift` learns its layers once for all sources of a target, on the GPU named below. "
        f"Harm: tasks on which the error is above that of {SOURCE_ONLY} by more than a point.",
        *stamps(records),
        *dict.fromkeys(f"Failed: {r['method']} ({r['failed']})." for r in failed),
    ]
    return "\n".join([*table_lines(names, rows, 2), "", *notes]) + "\n"


def _task_seconds(record: Record) -> float:
    return record["represent_seconds"] + record["classify_seconds"]


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
