"""Results as Markdown: a table for each plan, what the paper says beside what we get, and a page filled."""

from __future__ import annotations

import re
from collections.abc import Sequence

from . import published
from .measures import Where, failures, mean_error, mean_of, mean_ratio, places, task
from .records import Record
from .regret import regret_table

_SLOT = re.compile(r"(<!-- bench table: (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)


def results_table(records: Sequence[Record], plan: str | None = None) -> str:
    """Mean error, mean ratio and times of every method under every setting."""
    rows = [
        "| plan | variant | method | tasks | mean error, % | mean ratio | learn, s | grid, s | classify, s |",
        "| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    found = [place for place in places(records) if plan in (None, place.plan)]
    for place in found:
        own = place.of(records)
        numbers = [
            str(len(own)),
            _percent(mean_error(own)),
            _number(mean_ratio(own), "{:.3f}"),
            *(
                _number(mean_of(own, name))
                for name in ("represent_seconds", "grid_seconds", "classify_seconds")
            ),
        ]
        rows.append("| " + " | ".join([place.plan, place.variant, place.method, *numbers]) + " |")
    return "\n".join([*rows, "", *_notes(records, found)]) + "\n"


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


def filled(page: str, records: Sequence[Record]) -> str:
    """Put tables into the slots of a page: ``<!-- bench table: small -->`` up to ``<!-- end -->``."""

    def content(slot: re.Match[str]) -> str:
        name = slot[2]
        known = {record.get(key) for record in records for key in ("plan", "kind")}
        if name != "paper" and name not in known:
            return slot[0]  # what an earlier call filled in stays
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


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.2f}"


def _number(value: float | None, form: str = "{:.3g}") -> str:
    return "" if value is None else form.format(value)
