"""Results as Markdown: tables of plans, of distances, of peers, and of published numbers beside ours."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import fmean

from ..catalogue import COMPARED, PEERS
from .measures import (
    ESTIMATES,
    LARGER_CLASS,
    MIN_DOMAINS,
    PEERS_PLAN,
    REFERENCE,
    Difference,
    Where,
    add_larger_class,
    by_task,
    difference,
    differences,
    failures,
    group_by_labels,
    group_by_share,
    list_hardware,
    mean_of,
    mean_over_tasks,
    mean_peer_errors,
    mean_ratio,
    measure_estimate,
    peak_gigabytes,
    places,
    sort_places,
    task,
    varies_labels,
    varies_shares,
)
from .published import AMAZON, HIGH_DIMENSION, N_TASKS, PAPER, Statement, same_test_rows
from .records import Record

SECONDS = ("represent_seconds", "grid_seconds", "classify_seconds")
SOURCE_ONLY = "source-only"
HARM = 0.01  # more error than source-only by more than this is harm
# plans of the headline: the variants that may see the test rows, unlabelled, and that may not
HEADLINE = {"small": ("shipped", "inductive"), "multi": ("20000 terms", "inductive")}


def table_lines(names: Sequence[str], rows: Sequence[Sequence[str]], n_left: int = 1) -> list[str]:
    """Lines of a Markdown table whose first columns are words and whose others are numbers."""
    rules = ["---"] * n_left + ["---:"] * (len(names) - n_left)
    return ["| " + " | ".join(cells) + " |" for cells in (names, rules, *rows)]


def format_number(value: float | None, form: str = "{:.3g}") -> str:
    """Write a number, or nothing where there is none."""
    return "" if value is None else form.format(value)


def format_points(fraction: float | None, form: str = ".2f") -> str:
    """Write a fraction in per cent, without the sign for it; nothing where there is none."""
    return "" if fraction is None else f"{100 * fraction:{form}}"


def stamps(records: Sequence[Record]) -> list[str]:
    """Dates and machines of records, each once."""
    stamps = dict.fromkeys((record.get("date"), record.get("machine")) for record in records)
    return [f"{date}: {machine}." for date, machine in stamps if machine]


def failure_notes(records: Sequence[Record]) -> list[str]:
    """A line for each task that failed and has not succeeded since."""
    return [f"Failed: {r['method']} on {task(r)} ({r['failed']})." for r in failures(records)]


def _page(lines: Sequence[str], *notes: str) -> str:
    return "\n".join([*lines, "", *notes]) + "\n"


def results_table(records: Sequence[Record], plan: str | None = None) -> str:
    """Mean error, mean ratio, times and (where a record has it) memory of every method and setting."""
    given = {place: place.of(records) for place in sort_places(places(records)) if plan in (None, place.plan)}
    has_memory = any(peak_gigabytes(group) is not None for group in given.values())
    names = ["plan", "variant", "method", "tasks", "mean error, %", "mean ratio"]
    names += ["learn, s", "grid, s", "classify, s", *(["peak, GB"] if has_memory else [])]
    rows = []
    for place, group in given.items():
        cells = [place.plan, place.variant, place.method, str(len(by_task(group)))]
        cells += [format_points(mean_of(group, "transfer_error")), format_number(mean_ratio(group), "{:.3f}")]
        cells += [format_number(mean_of(group, name)) for name in SECONDS]
        rows.append([*cells, *([format_number(peak_gigabytes(group))] if has_memory else [])])
    shown = [record for group in given.values() for record in group]
    failed = failure_notes([r for r in records if plan in (None, r.get("plan"))])
    lines = [*table_lines(names, rows, 3), "", *stamps(shown), *failed]
    for name in dict.fromkeys(place.plan for place in given):
        lines += _differences_section(records, name)
        more = special_table([record for record in records if record.get("plan") == name])
        lines += [] if more is None else ["", *more.splitlines()]
    return "\n".join(lines) + "\n"


def special_table(records: Sequence[Record]) -> str | None:
    """Return the table of a plan that varies the number of target labels, or class shares."""
    if varies_labels(records):
        return labels_table(records)
    return balance_table(records) if varies_shares(records) else None


def _differences_section(records: Sequence[Record], plan: str) -> list[str]:
    """Lines of every variant against variant "all", where a plan has one and others beside it."""
    rows = []
    for each in differences(records, plan):
        cells = [each.where.variant, each.where.method, str(each.n_tasks), str(each.n_seeds)]
        rows.append([*cells, *_difference_cells(each)])
    says = (
        f"Plan `{plan}`: error of each variant less that of `{REFERENCE}` on the same tasks, in points. "
        f"{_ABOUT_INTERVALS}"
    )
    names = ["variant", "method", "tasks", "seeds", "difference", *_BESIDE_A_DIFFERENCE]
    return ["", says, "", *table_lines(names, rows, 2)] if rows else []


_BESIDE_A_DIFFERENCE = ("by target", "95% interval", "worse on")
_ABOUT_INTERVALS = (
    "By target: the least and the greatest mean of a target's tasks. Intervals are those of a bootstrap over "
    f"domains (and seeds, where there are several); with fewer than {MIN_DOMAINS} domains there is none."
)


def _difference_cells(each: Difference) -> list[str]:
    mean, *ends = (format_points(v, "+.2f") for v in (each.mean, *each.by_target, each.low, each.high))
    by = f", by up to {format_points(each.worst, '.1f')}" if each.n_worse else ""
    interval = "{} to {}".format(*ends[2:]) if each.n_domains >= MIN_DOMAINS else ""
    return [mean, "{} to {}".format(*ends[:2]), interval, f"{each.n_worse} of {each.n_tasks}{by}"]


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
    return _page(lines, *notes, *failure_notes(every)).rstrip("\n") + "\n"


def _distance_setting(noise: float, n_layers: int, n_rows: int) -> str:
    return (
        f"Of each domain {n_rows:,} rows, evenly spaced, are told apart: before, by presence of terms; "
        f"after, by that and {n_layers} layers, learnt from all rows at noise {noise:g} for every pair, "
        "not chosen. Intervals are 95%, by bootstrap over the rows held out."
    )


def balance_table(records: Sequence[Record]) -> str:
    """Errors by method and share of the target, and how good the estimates without target labels are."""
    lines, estimates = [], []
    for corpus, methods in group_by_share(records).items():
        shares = sorted({share for groups in methods.values() for share in groups})
        rows = []
        for method, groups in methods.items():
            n_tasks = str(sum(len(by_task(group)) for group in groups.values()))
            rows.append([corpus, method, n_tasks, *_error_cells(groups, shares), _count_above_share(groups)])
            estimates += [[corpus, method, says, n_tasks, *cells] for says, cells in _estimate_cells(groups)]
        says = f"{corpus}: mean error over the tasks, %, in brackets the mean of the two classes' errors."
        names = ["corpus", "method", "tasks", *(f"{share:.0%} positive" for share in shares), "mean"]
        names.append("above larger class")
        lines += [says, "", *table_lines(names, rows, 2), ""]
    lines += ["Estimates without target labels, in points, on the mean over tasks; calibration: 10 bins.", ""]
    names = ["corpus", "method", "expected", "tasks", "by share", "mean", "without"]
    return _page([*lines, *table_lines(names, estimates, 3)], *stamps(records), *failure_notes(records))


def _count_above_share(groups: dict[float, list[Record]]) -> str:
    """Tasks with more errors than calling every row the more frequent class would make."""
    above = [
        error > min(share, 1 - share) + 1e-9
        for share, group in groups.items()
        for error in by_task(group).values()
    ]
    return f"{sum(above)} of {len(above)}"


def _error_cells(groups: dict[float, list[Record]], shares: Sequence[float]) -> list[str]:
    """Errors at each share and, where none is missing, their mean."""
    errors = {share: mean_over_tasks(group) for share, group in groups.items()}
    balanced = {share: mean_over_tasks(group, "balanced_error") for share, group in groups.items()}
    cells = [
        f"{format_points(errors[s], '.1f')} ({format_points(balanced[s], '.1f')})" if s in errors else ""
        for s in shares
    ]
    return [*cells, format_points(fmean(errors[s] for s in shares)) if len(errors) == len(shares) else ""]


def _estimate_cells(groups: dict[float, list[Record]]) -> list[tuple[str, list[str]]]:
    """How far each kind of estimate is off at every share, on the mean, and how many records have none."""
    cells = []
    for name, says in ESTIMATES.items():
        gaps = {share: [measure_estimate(r, name) for r in group] for share, group in sorted(groups.items())}
        known = {share: [gap for gap in given if gap is not None] for share, given in gaps.items()}
        means = {share: fmean(given) for share, given in known.items() if given}
        if means:
            values = " / ".join(format_points(means.get(share), ".1f") for share in gaps)
            n_without = sum(len(gaps[share]) - len(known[share]) for share in gaps)
            cells.append((says, [values, format_points(fmean(means.values())), str(n_without)]))
    return cells


def labels_table(records: Sequence[Record]) -> str:
    """Errors by method and number of target labels, for every corpus and share of positives."""
    numbers, rows = sorted({r["n_target_labels"] for r in records if r.get("n_target_labels")}), []
    for (corpus, share), methods in group_by_labels(records).items():
        for name, by_number in methods.items():
            groups = [by_number.get(0 if name == "none" else n, []) for n in numbers]
            cells = [format_points(mean_over_tasks(group)) if group else "" for group in groups]
            n_tasks = len(by_task(max(by_number.values(), key=len)))
            rows.append([corpus, f"{share:.0%}", name, str(n_tasks), *cells])
    says = "Mean error over the tasks and draws, %, by the number of target labels."
    lines = table_lines(["corpus", "positive", "method", "tasks", *map(str, numbers)], rows, 3)
    return _page([says, "", *lines], *stamps(records), *failure_notes(records))


def peers_table(records: Sequence[Record]) -> str:
    """Every method's error by corpus and class share, time, memory, and the tasks that it made worse."""
    records = add_larger_class([record for record in records if record.get("plan") == PEERS_PLAN])
    variants = sorted({place.variant for place in places(records)})
    failed, balanced = failures(records), mean_peer_errors(records, "balanced_error")
    every_method = {**{record["method"]: {} for record in failed}, **mean_peer_errors(records)}
    ranked = sorted(every_method.items(), key=lambda item: (-len(item[1]), sum(item[1].values())))
    rows = []
    for method, errors in ranked:
        rows.append([
            method,
            _find_package(method),
            *(format_points(errors.get(name), ".1f") for name in variants),
            *(
                format_points(fmean(each.values())) if len(each) == len(variants) else ""
                for each in (errors, balanced.get(method, {}))
            ),
            *_cost_cells(records, method),
            *(_count_harm(records, method, variants, name) for name in ("transfer_error", "balanced_error")),
            str(sum(record["method"] == method for record in failed)),
        ])  # fmt: skip
    names = ["method", "package", *variants, "mean", "balanced", "seconds", "peak, GB", "on"]
    names += ["harm", "harm, balanced", "failed"]
    says = (
        "Mean error over the tasks, %; balanced: the mean over the columns of the mean of the two classes' "
        "errors. Seconds, on the mean, and the highest peak of memory: of a task, by corpus, without reading "
        "files, on the machine that most of a method's records are of. Harm: of the tasks that were run, "
        f"those whose error, or balanced error, is above that of {SOURCE_ONLY} by more than a point. "
        f"The row {LARGER_CLASS} calls every row of the target the more frequent class."
    )
    reasons = dict.fromkeys(f"Failed: {r['method']} ({r['failed']})." for r in failed)
    lines = [*table_lines(names, rows, 2), "", says, "", *_compare_with_best(records, every_method, variants)]
    return _page(lines, *stamps(records), *reasons)


def _cost_cells(records: Sequence[Record], method: str) -> list[str]:
    """Seconds and gigabytes of a task of each corpus, on the machine that a method has most records of."""
    given = [
        r for r in records if r.get("method") == method and "represent_seconds" in r and list_hardware(r)
    ]
    if not given:
        return [""] * 3
    counts = Counter(list_hardware(r)[-1] for r in given)
    place = max(counts, key=lambda name: counts[name])
    spent: dict[str, list[Record]] = {}
    for r in given:
        if list_hardware(r)[-1] == place:
            spent.setdefault(r["corpus"], []).append(r)
    groups = [spent[corpus] for corpus in sorted(spent)]
    seconds = [fmean(r["represent_seconds"] + r["classify_seconds"] for r in group) for group in groups]
    peaks = [format_number(peak_gigabytes(group)) for group in groups]
    return [" / ".join(map(format_number, seconds)), " / ".join(peaks) if any(peaks) else "", place]


def _compare_with_best(
    records: Sequence[Record], means: Mapping[str, Mapping[str, float]], variants: Sequence[str]
) -> list[str]:
    """Lines of ours less the best method of others, and less the best of layers alone, column by column."""
    rows = []
    for name in variants:
        errors = {method: given[name] for method, given in means.items() if name in given}
        ours = {*COMPARED, "undrift"} - {SOURCE_ONLY}
        others = min((m for m in errors if m not in ours), key=lambda method: errors[method], default="")
        layers = min(
            (m for m in errors if m.startswith("uncentred")), key=lambda method: errors[method], default=""
        )
        for method, there in (("undrift-pair", others), ("undrift-pair", layers), ("undrift", others)):
            compared = difference(records, *(Where(PEERS_PLAN, name, each) for each in (method, there)))
            if compared:
                rows.append([name, method, there, *_difference_cells(compared)])
    says = (
        "Ours less the best method of others in each column, and less the best of those that take our layers "
        f"without alignment, in points. {_ABOUT_INTERVALS}"
    )
    names = ["column", "method", "less", "difference", *_BESIDE_A_DIFFERENCE]
    return [*table_lines(names, rows, 3), "", says] if rows else []


def _find_package(method: str) -> str:
    if method == LARGER_CLASS:
        return ""
    return PEERS[method].package.partition(".")[0] if method in PEERS else "undrift"


def _count_harm(records: Sequence[Record], method: str, variants: Sequence[str], error: str) -> str:
    """Tasks that are worse than source-only by more than a point, of those that both have."""
    gaps = []
    for variant in variants:
        both = (Where(PEERS_PLAN, variant, name).of(records) for name in (method, SOURCE_ONLY))
        ours, theirs = (by_task(group, error) for group in both)
        gaps += [ours[name] - theirs[name] for name in ours if name in theirs]
    return f"{sum(gap > HARM + 1e-9 for gap in gaps)} of {len(gaps)}" if gaps else ""


def headline_table(records: Sequence[Record]) -> str:
    """The tf-idf SVM and undrift, without the test rows and with them; errors with and without duplicates."""
    settings = [
        (plan, protocol, variant, method)
        for plan, variants in HEADLINE.items()
        for protocol, variant in zip(("inductive", "transductive"), reversed(variants), strict=True)
        for method in ("svm-tfidf", "nb-features", "undrift-pair", "undrift")
    ]
    rows = []
    for plan, protocol, variant, method in settings:
        here = Where(plan, variant, method)
        group = here.of(records)
        if not group:
            continue
        compared = None
        if method != "svm-tfidf":
            compared = difference(records, here, Where(plan, variant, "svm-tfidf"))
        n_duplicates = {record["target"]: record.get("n_duplicates") or 0 for record in group}
        n_rows = {record["target"]: record["n_test"] for record in group}
        rows.append([
            group[0]["corpus"], protocol, method, str(len(by_task(group))),
            format_points(mean_over_tasks(group)),
            format_points(mean_of(group, "error_without_duplicates")),
            f"{sum(n_duplicates.values()) / sum(n_rows.values()):.1%}",
            *(_difference_cells(compared) if compared else [""] * 4),
        ])  # fmt: skip
    names = ["corpus", "protocol", "method", "tasks", "mean error, %", "without duplicates, %", "duplicates"]
    says = (
        "Inductive: no test row is seen before it is predicted; amazon-bow's columns are given. "
        "Transductive: test rows are among the unlabelled ones. Duplicates are test rows that equal a row of "
        "another part or domain. `undrift-pair` sees the source's labelled rows and those of the target, "
        "`undrift` all rows of all domains too; `svm-tfidf` and `nb-features` are not adapted. "
        f"{_ABOUT_INTERVALS}"
    )
    names += ["against svm-tfidf, points", *_BESIDE_A_DIFFERENCE]
    return _page(table_lines(names, rows, 3), says)


def side_by_side(records: Sequence[Record]) -> str:
    """Published numbers beside ours, as a Markdown table."""
    return "\n".join(table_lines(["", "published", "here", "tasks"], published_rows(records))) + "\n"


def published_rows(records: Sequence[Record]) -> list[list[str]]:
    """List published numbers: what it is, theirs, ours in the plan's first variant, over how many tasks."""
    rows = [[said.text, said.value, *_ours(records, said)] for said in PAPER]
    is_same = same_test_rows(r for r in records if (r.get("plan"), r.get("kind")) == ("small", "transfer"))
    for series in AMAZON:
        said = Statement(series.label, "", "small", series.method or "", "mean_error")
        ours = _ours(records, said) if is_same else ("", "")
        rows.append([f"{series.label}, 12 tasks ({series.reference})", f"{series.mean:.2%}", *ours])
    return rows


def has_published(records: Sequence[Record]) -> bool:
    """Tell whether the records measure anything that the paper states."""
    return any(_ours(records, said)[0] for said in PAPER)


def _ours(records: Sequence[Record], said: Statement) -> tuple[str, str]:
    """Our number for what the paper states, and over how many tasks it is; empty where there is none."""
    real = [
        record for record in records if record.get("corpus") != "generated"
    ]  # of others no one has stated
    given = [p for p in places(real) if (p.plan, p.method) == (said.plan, said.method)]
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
