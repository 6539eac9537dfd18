"""Results with several numbers of target labels: errors by what is done with the labels."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from ..catalogue import WITH_LABELS, split_label_method
from .measures import by_task, failure_notes, stamps, table_lines
from .records import Record

# corpus and share of positives -> name of the method -> number of target labels -> records
LabelGroups = dict[tuple[str, float], dict[str, dict[int, list[Record]]]]


def varies_labels(records: Sequence[Record]) -> bool:
    """Tell whether the records are of a plan with several numbers of target labels."""
    return len({record["n_target_labels"] for record in records if "n_target_labels" in record}) > 1


def group_by_labels(records: Sequence[Record]) -> LabelGroups:
    """Group successful records; "none" is ours without labels."""
    groups: LabelGroups = {}
    for record in records:
        if "n_target_labels" not in record or "failed" in record:
            continue
        name, n = split_label_method(record["method"])
        methods = groups.setdefault((record["corpus"], record["target_share"]), {})
        methods.setdefault(name if n else "none", {}).setdefault(n, []).append(record)
    ranks = ("none", *WITH_LABELS)
    return {
        key: dict(sorted(methods.items(), key=lambda item: ranks.index(item[0])))
        for key, methods in sorted(groups.items())
    }


def mean_label_error(records: Sequence[Record]) -> float:
    """Mean over tasks of the mean over draws."""
    return fmean(by_task(records, "transfer_error").values())


def labels_table(records: Sequence[Record]) -> str:
    """Errors by method and number of target labels, for every corpus and share of positives."""
    numbers, rows = sorted({r["n_target_labels"] for r in records if r.get("n_target_labels")}), []
    for (corpus, share), methods in group_by_labels(records).items():
        for name, by_number in methods.items():
            n_tasks = len(by_task(max(by_number.values(), key=len), "transfer_error"))
            cells = [corpus, f"{share:.0%}", name, str(n_tasks)]
            for n in numbers:
                group = by_number.get(0 if name == "none" else n, [])
                cells.append(f"{100 * mean_label_error(group):.2f}" if group else "")
            rows.append(cells)
    lines = ["Mean error over the tasks and draws, %, by the number of target labels.", ""]
    lines += table_lines(["corpus", "positive", "method", "tasks", *map(str, numbers)], rows, 3)
    return "\n".join([*lines, "", *stamps(records), *failure_notes(records)]) + "\n"
