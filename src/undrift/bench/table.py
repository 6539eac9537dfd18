"""Results as Markdown: a table for each plan, what the paper says beside what we get, and a page filled."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from . import published
from .differences import REFERENCE, differences
from .measures import (
    Where,
    errors_by_task,
    failures,
    mean_error,
    mean_of,
    mean_ratio,
    peak_gigabytes,
    places,
    task,
)
from .records import Record
from .regret import regret_table

_SLOT = re.compile(r"(<!-- bench table: (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)


def results_table(records: Sequence[Record], plan: str | None = None) -> str:
    """Mean error, mean ratio, times and (where a record has it) memory of every method and setting."""
    found = {place: place.of(records) for place in places(records) if plan in (None, place.plan)}
    peaks = {place: peak_gigabytes(own) for place, own in found.items()}
    with_memory = any(peak is not None for peak in peaks.values())
    names = ["plan", "variant", "method", "tasks", "mean error, %", "mean ratio"]
    names += ["learn, s", "grid, s", "classify, s", *(["peak, GB"] if with_memory else [])]
    rows = [_row(names), _row(["---"] * 3 + ["---:"] * (len(names) - 3))]
    for place, own in found.items():
        numbers = [
            str(len(errors_by_task(own))),
            _percent(mean_error(own)),
            _number(mean_ratio(own), "{:.3f}"),
            *(
                _number(mean_of(own, name))
                for name in ("represent_seconds", "grid_seconds", "classify_seconds")
            ),
            *([_number(peaks[place])] if with_memory else []),
        ]
        rows.append(_row([place.plan, place.variant, place.method, *numbers]))
    lines = [*rows, "", *_notes(records, list(found))]
    for name in dict.fromkeys(place.plan for place in found):
        lines += _differences_section(records, name)
    return "\n".join(lines) + "\n"


def _differences_section(records: Sequence[Record], plan: str) -> list[str]:
    """Lines of every variant against variant "all", where a plan has one and others beside it."""
    found = differences(records, plan)
    if not found:
        return []
    lines = [
        "",
        f"Plan `{plan}`: error of each variant less that of `{REFERENCE}` on the same tasks, in points, "
        "with 95 % bootstrap intervals over tasks (and seeds, where there are several).",
        "",
        _row(["variant", "method", "tasks", "seeds", "difference", "95 % interval", "worse on"]),
        _row(["---"] * 2 + ["---:"] * 5),
    ]
    for own in found:
        mean, low, high = (f"{100 * value:+.2f}" for value in (own.mean, own.low, own.high))
        cells = [own.where.variant, own.where.method, str(own.n_tasks), str(own.n_seeds)]
        lines.append(_row([*cells, mean, f"{low} to {high}", f"{own.n_worse} of {own.n_tasks}"]))
    return lines


def distance_table(records: Sequence[Record]) -> str:
    """Distances of the pairs of domains, before and after."""
    rows = ["| domains | before | after | grows |", "| --- | ---: | ---: | --- |"]
    for r in records:
        if r.get("kind") == "distance" and "failed" not in r:
            before, after = (
                f"{r[name]:.3f} ({r[name + '_low']:.3f} to {r[name + '_high']:.3f})"
                for name in ("distance_before", "distance_after")
            )
            grows = "yes" if r["distance_after"] > r["distance_before"] else "no"
            rows.append(f"| {r['source']}, {r['target']} | {before} | {after} | {grows} |")
    return "\n".join(rows) + "\n"


def side_by_side(records: Sequence[Record]) -> str:
    """What the paper's text says, and what we get in the first variant of the plan."""
    rows = ["| | the paper | here |", "| --- | ---: | ---: |"]
    for said in published.PAPER:
        rows.append(f"| {said.text} | {said.value} | {_ours(records, said)} |")
    for series in published.AMAZON:
        rows.append(f"| {series.label}, 12 tasks ({series.reference}) | {_percent(series.mean)} % | |")
    return "\n".join(rows) + "\n"


def filled(page: str, records: Sequence[Record], tables: Mapping[str, str] | None = None) -> str:
    """Put tables into the slots of a page: ``<!-- bench table: small -->`` up to ``<!-- end -->``.

    `tables` are those that are made already, by the names of their slots.
    """

    def content(slot: re.Match[str]) -> str:
        name = slot[2]
        if tables and name in tables:
            return slot[1] + tables[name] + slot[3]
        known = {record.get(key) for record in records for key in ("plan", "kind")}
        if name == "paper" and not any(_ours(records, said) for said in published.PAPER):
            return slot[0]  # what an earlier call filled in stays
        if name != "paper" and name not in known:
            return slot[0]
        if name == "paper":
            table = side_by_side(records)
        elif name == "distance":
            table = distance_table(records)
        elif name == "regret":
            table = regret_table(records)
        else:
            table = results_table(records, name)
        return slot[1] + table + slot[3]

    return _SLOT.sub(content, page)


def _notes(records: Sequence[Record], found: Sequence[Where]) -> list[str]:
    """When and where the numbers were measured, and what failed."""
    own = [record for place in found for record in place.of(records)]
    stamps = dict.fromkeys((record.get("date"), record.get("machine")) for record in own)
    notes = [f"{date}: {machine}." for date, machine in stamps if machine]
    plans = {place.plan for place in found}
    for record in failures(records):
        if record["plan"] in plans or not found:
            notes.append(f"Failed: {record['method']} on {task(record)} ({record['failed']}).")
    return notes


def _ours(records: Sequence[Record], said: published.Statement) -> str:
    where = [p for p in places(records) if (p.plan, p.method) == (said.plan, said.method)]
    if said.plan == "dimensions":
        where = [p for p in where if p.of(records)[0]["n_features"] == 30_000]
    if not where:
        return ""
    own = where[0].of(records)
    if said.measure == "mean_error":
        return f"{_percent(mean_error(own))} %"
    seconds = mean_of(own, "represent_seconds")
    if said.measure == "represent_seconds" or said.than is None:
        return f"{_number(seconds)} s"
    other = mean_of(Where(said.plan, where[0].variant, said.than).of(records), "represent_seconds")
    return f"{seconds / other:,.0f} ×" if seconds and other else ""


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.2f}"


def _number(value: float | None, form: str = "{:.3g}") -> str:
    return "" if value is None else form.format(value)
