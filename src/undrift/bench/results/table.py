"""Results as Markdown: a table for each plan, of distances, and of what others say beside what we get."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from . import published
from .differences import REFERENCE, differences
from .measures import (
    Where,
    by_task,
    errors_by_task,
    failures,
    mean_error,
    mean_of,
    mean_ratio,
    ordered,
    peak_gigabytes,
    places,
    task,
)
from .records import Record


def results_table(records: Sequence[Record], plan: str | None = None) -> str:
    """Mean error, mean ratio, times and (where a record has it) memory of every method and setting."""
    found = {place: place.of(records) for place in ordered(places(records)) if plan in (None, place.plan)}
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
    lines = [*rows, "", *_notes(records, list(found), plan)]
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
    """Distances of the pairs of domains, before and after, and how they were measured."""
    own = [r for r in records if r.get("kind") == "distance" and "failed" not in r]
    rows = ["| domains | before | after | grows |", "| --- | ---: | ---: | --- |"]
    for r in own:
        before, after = (
            f"{r[name]:.3f} ({r[name + '_low']:.3f} to {r[name + '_high']:.3f})"
            for name in ("distance_before", "distance_after")
        )
        grows = "yes" if r["distance_after"] > r["distance_before"] else "no"
        rows.append(f"| {r['source']}, {r['target']} | {before} | {after} | {grows} |")
    settings = dict.fromkeys(tuple(sorted(r["params"].items())) for r in own if r.get("params"))
    failed = failure_notes([r for r in records if r.get("kind") == "distance"])
    said = [*(_distance_setting(**dict(setting)) for setting in settings), *_stamps(own), *failed]
    lines = [*rows, "", *said]
    return "\n".join(lines).rstrip("\n") + "\n"


def _distance_setting(noise: float, n_layers: int, n_rows: int) -> str:
    return (
        f"Of each domain {n_rows:,} rows, evenly spaced, are told apart: before, by presence of terms; "
        f"after, by that and {n_layers} layers, learnt from all rows at noise {noise:g} for every pair, "
        "not chosen. Intervals are of 95 %, by bootstrap over the rows held out."
    )


def side_by_side(records: Sequence[Record]) -> str:
    """What others have published, and what we get in the first variant of the plan, over how many tasks."""
    rows = ["| | published | here | tasks |", "| --- | ---: | ---: | ---: |"]
    for said in published.PAPER:
        rows.append(_row([said.text, said.value, *_ours(records, said)]))
    for series in published.AMAZON:
        ours = _ours(records, _as_statement(series)) if _beside_amazon(records) else ("", "")
        rows.append(
            _row([f"{series.label}, 12 tasks ({series.reference})", f"{_percent(series.mean)} %", *ours])
        )
    return "\n".join(rows) + "\n"


def stated(records: Sequence[Record]) -> bool:
    """Tell whether the records measure anything that `side_by_side` has a row for."""
    return any(_ours(records, said)[0] for said in published.PAPER)


def _beside_amazon(records: Sequence[Record]) -> bool:
    return published.same_test_rows(
        r for r in records if (r.get("plan"), r.get("kind")) == ("small", "transfer")
    )


def _as_statement(series: published.Series) -> published.Statement:
    return published.Statement(series.label, "", "small", series.method or "", "mean_error")


def _ours(records: Sequence[Record], said: published.Statement) -> tuple[str, str]:
    """Our number for what the paper states, and over how many tasks it is; empty where there is none."""
    found = [p for p in places(records) if (p.plan, p.method) == (said.plan, said.method)]
    if said.plan == "dimensions":
        found = [p for p in found if p.of(records)[0]["n_features"] == published.HIGH_DIMENSION]
    if not found:
        return "", ""
    here, name = found[0], "transfer_error" if said.measure == "mean_error" else "represent_seconds"
    ours = by_task(here.of(records), name)
    others = by_task(Where(here.plan, here.variant, said.than or here.method).of(records), name)
    common = [own for own in ours if own in others]
    if not common:
        return "", ""
    mine, other = (fmean(values[own] for own in common) for values in (ours, others))
    n_tasks, n_all = len(common), published.N_TASKS[said.plan]
    over = str(n_tasks) if n_tasks >= n_all else f"{n_tasks} of {n_all}"
    if said.measure == "mean_error":
        return f"{_percent(mine)} %", over
    if said.than is None:
        return f"{_number(mine)} s", over
    return (f"{mine / other:,.0f} ×", over) if other else ("", "")


def _notes(records: Sequence[Record], found: Sequence[Where], plan: str | None) -> list[str]:
    """When and where the numbers were measured, and what failed."""
    own = [record for place in found for record in place.of(records)]
    return _stamps(own) + failure_notes([r for r in records if plan in (None, r.get("plan"))])


def failure_notes(records: Sequence[Record]) -> list[str]:
    """A line for each task that failed and has not succeeded since."""
    return [f"Failed: {r['method']} on {task(r)} ({r['failed']})." for r in failures(records)]


def _stamps(records: Sequence[Record]) -> list[str]:
    """Dates and machines of records, each once."""
    found = dict.fromkeys((record.get("date"), record.get("machine")) for record in records)
    return [f"{date}: {machine}." for date, machine in found if machine]


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.2f}"


def _number(value: float | None, form: str = "{:.3g}") -> str:
    return "" if value is None else form.format(value)
