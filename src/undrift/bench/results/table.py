"""Results as Markdown: a table for each plan, of distances, and of what others say beside what we get."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from .balance import balance_table, varies_shares
from .labels import labels_table, varies_labels
from .measures import (
    REFERENCE,
    Where,
    by_task,
    differences,
    errors_by_task,
    failure_notes,
    format_number,
    mean_error,
    mean_of,
    mean_ratio,
    peak_gigabytes,
    places,
    sort_places,
    stamps,
    table_lines,
)
from .published import AMAZON, HIGH_DIMENSION, N_TASKS, PAPER, Series, Statement, same_test_rows
from .records import Record

SECONDS = ("represent_seconds", "grid_seconds", "classify_seconds")


def results_table(records: Sequence[Record], plan: str | None = None) -> str:
    """Mean error, mean ratio, times and (where a record has it) memory of every method and setting."""
    given = {place: place.of(records) for place in sort_places(places(records)) if plan in (None, place.plan)}
    has_memory = any(peak_gigabytes(group) is not None for group in given.values())
    names = ["plan", "variant", "method", "tasks", "mean error, %", "mean ratio"]
    names += ["learn, s", "grid, s", "classify, s", *(["peak, GB"] if has_memory else [])]
    rows = []
    for place, group in given.items():
        error = mean_error(group)
        cells = [place.plan, place.variant, place.method, str(len(errors_by_task(group)))]
        cells += ["" if error is None else f"{100 * error:.2f}", format_number(mean_ratio(group), "{:.3f}")]
        cells += [format_number(mean_of(group, name)) for name in SECONDS]
        rows.append([*cells, *([format_number(peak_gigabytes(group))] if has_memory else [])])
    shown = [record for group in given.values() for record in group]
    failed = failure_notes([r for r in records if plan in (None, r.get("plan"))])
    lines = [*table_lines(names, rows, 3), "", *stamps(shown), *failed]
    for name in dict.fromkeys(place.plan for place in given):
        lines += _differences_section(records, name)
        of_plan = [record for record in records if record.get("plan") == name]
        if varies_labels(of_plan):
            lines += ["", *labels_table(of_plan).splitlines()]
        elif varies_shares(of_plan):
            lines += ["", *balance_table(of_plan).splitlines()]
    return "\n".join(lines) + "\n"


def _differences_section(records: Sequence[Record], plan: str) -> list[str]:
    """Lines of every variant against variant "all", where a plan has one and others beside it."""
    compared = differences(records, plan)
    if not compared:
        return []
    lines = [
        "",
        f"Plan `{plan}`: error of each variant less that of `{REFERENCE}` on the same tasks, in points, "
        "with 95% bootstrap intervals over domains (and seeds, where there are several).",
        "",
    ]
    rows = []
    for each in compared:
        mean, low, high = (f"{100 * value:+.2f}" for value in (each.mean, each.low, each.high))
        cells = [each.where.variant, each.where.method, str(each.n_tasks), str(each.n_seeds)]
        rows.append([*cells, mean, f"{low} to {high}", f"{each.n_worse} of {each.n_tasks}"])
    names = ["variant", "method", "tasks", "seeds", "difference", "95% interval", "worse on"]
    return [*lines, *table_lines(names, rows, 2)]


def distance_table(records: Sequence[Record]) -> str:
    """Distances of the pairs of domains, before and after, and how they were measured."""
    every = [r for r in records if r.get("kind") == "distance"]
    measured = [r for r in every if "failed" not in r]
    rows = []
    for r in measured:
        before, after = (
            f"{r[name]:.3f} ({r[name + '_low']:.3f} to {r[name + '_high']:.3f})"
            for name in ("distance_before", "distance_after")
        )
        grows = "yes" if r["distance_after"] > r["distance_before"] else "no"
        rows.append([f"{r['source']}, {r['target']}", before, after, grows])
    settings = dict.fromkeys(tuple(sorted(r["params"].items())) for r in measured if r.get("params"))
    notes = [*(_distance_setting(**dict(setting)) for setting in settings), *stamps(measured)]
    lines = table_lines(["domains", "before", "after", "grows"], rows)
    return "\n".join([*lines, "", *notes, *failure_notes(every)]).rstrip("\n") + "\n"


def _distance_setting(noise: float, n_layers: int, n_rows: int) -> str:
    return (
        f"Of each domain {n_rows:,} rows, evenly spaced, are told apart: before, by presence of terms; "
        f"after, by that and {n_layers} layers, learnt from all rows at noise {noise:g} for every pair, "
        "not chosen. Intervals are 95%, by bootstrap over the rows held out."
    )


def side_by_side(records: Sequence[Record]) -> str:
    """Published numbers beside ours, as a Markdown table."""
    return "\n".join(table_lines(["", "published", "here", "tasks"], published_rows(records))) + "\n"


def published_rows(records: Sequence[Record]) -> list[list[str]]:
    """List published numbers: what it is, theirs, ours in the plan's first variant, over how many tasks."""
    rows = [[said.text, said.value, *_ours(records, said)] for said in PAPER]
    small = [r for r in records if (r.get("plan"), r.get("kind")) == ("small", "transfer")]
    is_same = same_test_rows(small)
    for series in AMAZON:
        ours = _ours(records, _as_statement(series)) if is_same else ("", "")
        rows.append([f"{series.label}, 12 tasks ({series.reference})", f"{series.mean:.2%}", *ours])
    return rows


def has_published(records: Sequence[Record]) -> bool:
    """Tell whether the records measure anything that the paper states."""
    return any(_ours(records, said)[0] for said in PAPER)


def _as_statement(series: Series) -> Statement:
    return Statement(series.label, "", "small", series.method or "", "mean_error")


def _ours(records: Sequence[Record], said: Statement) -> tuple[str, str]:
    """Our number for what the paper states, and over how many tasks it is; empty where there is none."""
    given = [p for p in places(records) if (p.plan, p.method) == (said.plan, said.method)]
    if said.plan == "dimensions":
        given = [p for p in given if p.of(records)[0]["n_features"] == HIGH_DIMENSION]
    if not given:
        return "", ""
    here, name = given[0], "transfer_error" if said.measure == "mean_error" else "represent_seconds"
    ours = by_task(here.of(records), name)
    theirs = by_task(Where(here.plan, here.variant, said.than or here.method).of(records), name)
    common = [task for task in ours if task in theirs]
    if not common:
        return "", ""
    mean, other = (fmean(values[task] for task in common) for values in (ours, theirs))
    n_tasks, n_all = len(common), N_TASKS[said.plan]
    over = str(n_tasks) if n_tasks >= n_all else f"{n_tasks} of {n_all}"
    if said.measure == "mean_error":
        return f"{mean:.2%}", over
    if said.than is None:
        return f"{format_number(mean)} s", over
    return (f"{mean / other:,.0f} ×", over) if other else ("", "")
