"""Tables of plan `kinds`: every kind of text, by group and by family."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ..catalogue import split_label_method
from ..corpora import FAMILIES
from .frame import HARM, SURE, reach_error, tell_sure
from .tables import format_points, list_stamps, say_versions, write_table

PLAN = "kinds"
REVIEWS = "Amazon reviews"
SIMPLE = ("svm-tfidf", "logistic-tfidf")  # harm is measured against the better of the two on a task
MUCH = 2 * HARM  # more error than that by more than this is harm
MANY, TWO, UNEVEN, EQUAL, WRITTEN = GROUPS = (
    "three classes and more", "two classes, no Amazon reviews", "uneven reviews", "equal reviews",
    "reviews as written",
)  # fmt: skip
OUTSIDE, ALL, BY_FAMILY = "all but Amazon reviews", "all", "mean over families"
AS_WRITTEN = ("natural", "amazon-20")  # corpora with the class shares of their writers
CONTROLS = ("sarcasm", "stance")  # families in which the meaning of labels changes between domains
LABELS = (3, 5, 10, 30)
MOST = 0.9  # part of the tasks that a method has a record of, to stand beside others
LR = "Errors in per cent. LR is logistic regression on tf-idf."


@dataclass(frozen=True)
class Tasks:
    """Records of the plan by task and method, and the group and family of every task."""

    records: pd.DataFrame
    about: pd.DataFrame

    def take(self, method: str, name: str = "transfer_error") -> pd.Series:
        """Return a number of one method by task, NaN where there is no record."""
        own = self.records[self.records["method"] == method].set_index("task_of_variant")
        return own[name].reindex(self.about.index).astype(float)

    def take_most(self, method: str, name: str = "transfer_error") -> pd.Series:
        """Return the same, all NaN for a method that lacks more than a tenth of the tasks.

        Means of the others would be of other tasks than those of the columns beside it.
        """
        values = self.take(method, name)
        has_most = self.take(method).notna().mean() >= MOST
        return values if has_most else values * np.nan

    @property
    def simple(self) -> pd.Series:
        """Error of the better of a linear SVM and logistic regression by task."""
        return pd.concat([self.take(name) for name in SIMPLE], axis=1).min(axis=1, skipna=False)

    def compared(self) -> Tasks:
        """Return the tasks that undrift and both of the plain classifiers have a record of."""
        is_known = (self.simple + self.take("undrift")).notna()
        return Tasks(self.records, self.about[is_known])

    def reduce(self, values: pd.Series) -> dict[str, float]:
        """Return means of a number over the tasks of every group, over all, and over families."""
        known = values.dropna()
        group, family = (self.about.loc[known.index, name] for name in ("group", "family"))
        means = known.groupby(group).mean().to_dict()
        means[OUTSIDE], means[ALL] = known[family != REVIEWS].mean(), known.mean()
        return means | {BY_FAMILY: known.groupby(family).mean().mean()}

    def bound(self, values: pd.Series) -> dict[str, float]:
        """Return two standard errors of the means of the same parts.

        Tasks that share texts are one observation: those of a family, and those of a target where a part
        has one family.
        """
        known = values.dropna()
        about, own = self.about.loc[known.index], {}
        for group, ours in known.groupby(about["group"]):
            own[str(group)] = ours
        own |= {OUTSIDE: known[about["family"] != REVIEWS], ALL: known}
        bounds = {}
        for part, ours in own.items():
            family = about["family"][ours.index]
            shared = family if family.nunique() > 1 else about["target"][ours.index]
            gaps = (ours - ours.mean()).groupby(shared).sum()
            n = len(gaps)
            bounds[part] = 2 * float(((gaps**2).sum() * n / (n - 1)) ** 0.5) / len(ours) if n > 1 else np.nan
        return bounds | {BY_FAMILY: 2 * known.groupby(about["family"]).mean().sem()}

    def count(self) -> dict[str, int]:
        """Return the number of tasks in every part."""
        counts = self.about["group"].value_counts().to_dict()
        n = len(self.about)
        return counts | {OUTSIDE: int((self.about["family"] != REVIEWS).sum()), ALL: n, BY_FAMILY: n}


def group_tasks(frame: pd.DataFrame) -> Tasks:
    """Put the tasks of the plan into groups and families, with intervals as the library says them now.

    An interval without labels follows from the expected error alone, so that of a record is not needed.
    """
    rows = frame[frame["plan"] == PLAN].copy()
    ours = rows[rows["method"] == "undrift"]
    low, high = reach_error(ours["expected_error"])
    error = ours["transfer_error"]
    held = error.between(low, high).where(low.notna()).astype(float)
    said = {"expected_low": low, "expected_high": high, "error_held": held, "is_sure": tell_sure(error, high)}
    rows.loc[ours.index, list(said)] = pd.DataFrame(said)
    rows["task_of_variant"] = rows["variant"] + " " + rows["task"]
    rows["width"] = rows["expected_high"] - rows["expected_low"]
    about = rows.drop_duplicates("task_of_variant").set_index("task_of_variant")
    family = about["corpus"].map(FAMILIES)
    is_review, is_uneven = family == REVIEWS, about["variant"].str.fullmatch(r".* \.\d+")
    group = np.select(
        [~is_review & (about["n_classes"] > 2), ~is_review, is_uneven, about["corpus"].isin(AS_WRITTEN)],
        [MANY, TWO, UNEVEN, WRITTEN],
        EQUAL,
    )
    target = about["corpus"] + " " + about["target"]
    columns = {"group": group, "family": family, "target": target}
    return Tasks(rows, pd.DataFrame(columns, index=about.index))


def _list_by_part(tasks: Tasks, columns: Mapping[str, pd.Series], form: str = ".1f") -> list[list[str]]:
    """Return a row of cells for every part of the tasks."""
    counts, found = tasks.count(), [tasks.reduce(values) for values in columns.values()]
    parts = [part for part in (*GROUPS, OUTSIDE, ALL, BY_FAMILY) if counts.get(part)]
    return [[p, str(counts[p]), *(format_points(means.get(p), form) for means in found)] for p in parts]


def _list_by_group(tasks: Tasks, lines: Mapping[str, pd.Series]) -> list[list[str]]:
    """Return a row of cells for every line that has a number."""
    found = {name: tasks.reduce(values) for name, values in lines.items() if values.notna().any()}
    return [[name, *(format_points(means.get(group)) for group in GROUPS)] for name, means in found.items()]


def kinds_table(tasks: Tasks) -> str | None:
    """Errors: the better of SVM and logistic regression, undrift, and undrift with labels."""
    columns = {
        "better of SVM and LR": tasks.simple,
        "undrift": tasks.take("undrift"),
        "5 labels asked": tasks.take_most("updated-asked-5"),
    }
    gaps = columns["undrift"] - columns["better of SVM and LR"]
    means, bounds = tasks.reduce(gaps), tasks.bound(gaps)
    rows = _list_by_part(tasks, columns)
    for row in rows:
        row.insert(4, f"{format_points(means[row[0]], '+.1f')} ± {format_points(bounds[row[0]]) or '?'}")
    names = list(columns)
    names.insert(2, "difference")
    note = "The better is chosen on each task by its test error, which favours it."
    return _write("kind of text", dict.fromkeys(names), rows, f"{LR} {note} {_DRAWS} {_BOUNDS}")


def readme_table(tasks: Tasks) -> str | None:
    """Errors for the first page of the project, which says itself what they are."""
    columns = {
        "plain classifier": tasks.simple,
        "undrift": tasks.take("undrift"),
        "after 5 labels": tasks.take_most("updated-asked-5"),
    }
    rows = [row for row in _list_by_part(tasks, columns) if row[0] not in (OUTSIDE, ALL)]
    return _write("kind of text, wrong in %", columns, rows)


def kinds_harm_table(tasks: Tasks) -> str | None:
    """Tasks that are worse than the better of SVM and logistic regression."""
    methods = {"no label": "undrift", "5 asked": "updated-asked-5", "10 asked": "updated-asked-10"}
    methods["30 random"] = "updated-30"
    columns = {says: find_harm(tasks, tasks.take_most(method)) for says, method in methods.items()}
    note = f"Per cent of tasks with more error than the better of SVM and LR by over {100 * MUCH:g} points."
    return _write("kind of text", columns, _list_by_part(tasks, columns, ".0f"), note)


def kinds_estimates_table(tasks: Tasks) -> str | None:
    """How far expected errors are off, and what their intervals hold."""
    columns = {
        "expected error off by": tasks.take("undrift", "error_gap"),
        "intervals hold, %": tasks.take("undrift", "error_held"),
        "width": tasks.take("undrift", "width"),
        "wrong and sure, %": tasks.take("undrift", "is_sure"),
    }
    note = (
        "Without labels, in points. Intervals of 90% follow from the recorded expected errors. "
        f"Wrong and sure: the error is above the upper end by more than {100 * SURE:g} points."
    )
    return _write("kind of text", columns, _list_by_part(tasks, columns), note)


def kinds_labelled_estimates_table(tasks: Tasks) -> str | None:
    """What intervals hold after labels."""
    columns = {}
    for says, method in {"5 asked": "updated-asked-5", "30 random": "updated-30"}.items():
        columns[f"{says}: hold, %"] = tasks.take_most(method, "interval_holds")
        columns[f"{says}: width"] = tasks.take_most(method, "width")
    note = "Intervals of the error are of 90%; means of three draws, widths in points."
    return _write("kind of text", columns, _list_by_part(tasks, columns), note)


def kinds_families_table(tasks: Tasks) -> str | None:
    """Errors and intervals of every family."""
    columns = {
        "better of SVM and LR": tasks.simple,
        "undrift": tasks.take("undrift"),
        "intervals hold, %": tasks.take("undrift", "error_held"),
        "width": tasks.take("undrift", "width"),
    }
    note = f"{LR} In a control the meaning of labels changes."
    return _write("family", columns, _list_by_family(tasks, columns), note)


def kinds_families_asked_table(tasks: Tasks) -> str | None:
    """Errors of every family by number of labels that were asked for."""
    return _write_families(tasks, {f"{n} asked": f"updated-asked-{n}" for n in LABELS})


def kinds_families_random_table(tasks: Tasks) -> str | None:
    """Errors of every family by number of random labels."""
    return _write_families(tasks, {f"{n} random": f"updated-{n}" for n in LABELS})


def _write_families(tasks: Tasks, methods: Mapping[str, str]) -> str | None:
    labelled = {says: tasks.take_most(method) for says, method in methods.items()}
    if pd.DataFrame(labelled).isna().all(axis=None):
        return None
    columns = {"no label": tasks.take("undrift"), **labelled}
    rows = [[family, *cells] for family, _, *cells in _list_by_family(tasks, columns)]
    return _write("family", columns, rows, f"Errors in per cent. {_DRAWS}", with_tasks=False)


def _list_by_family(tasks: Tasks, columns: Mapping[str, pd.Series]) -> list[list[str]]:
    """Return a row of cells for every family, in the order of their names."""
    rows = []
    for family, own in sorted(tasks.about.groupby("family"), key=lambda item: str(item[0]).lower()):
        cells = [format_points(values[own.index].mean()) for values in columns.values()]
        rows.append([name_family(family), str(len(own)), *cells])
    return rows


def name_family(family: object) -> str:
    """Return the name of a family, with a mark where it is a control."""
    return f"{family} (control)" if family in CONTROLS else str(family)


def kinds_methods_table(tasks: Tasks) -> str | None:
    """Errors of every method without labels."""
    methods = [name for name in dict.fromkeys(tasks.records["method"]) if split_label_method(name)[1] < 0]
    ordered = sorted(methods, key=lambda name: name == "undrift")
    group, lines = tasks.about["group"], {}
    for name in ordered:
        errors = tasks.take(name)
        lines[name] = errors.where(errors.notna().groupby(group).transform("mean") >= MOST)
    note = f"{LR} A cell is empty where a method lacks a tenth of the tasks."
    return _write(
        "method", None, _list_by_group(tasks, lines), "\n".join([note, *list_stamps(tasks.records)])
    )


def kinds_labels_table(tasks: Tasks) -> str | None:
    """Errors by number of labels, asked and random, on the tasks that have all of them."""
    lines = {"none": tasks.take("undrift")}
    lines |= {f"{n} asked": tasks.take(f"updated-asked-{n}") for n in LABELS}
    lines |= {f"{n} random": tasks.take(f"updated-{n}") for n in LABELS}
    table = pd.DataFrame(lines).dropna(axis=1, how="all").dropna()
    own = Tasks(tasks.records, tasks.about.loc[table.index])
    counts = own.count()
    n_tasks = ["tasks", *(str(counts.get(group, "")) for group in GROUPS)]
    rows = [n_tasks, *_list_by_group(own, {str(name): table[name] for name in table})]
    return _write("labels", None, rows, f"Errors in per cent. {_DRAWS}")


def kinds_uneven_table(tasks: Tasks) -> str | None:
    """Errors by the share of positives in the target."""
    lines = list_by_share(tasks)
    rows = [
        [f"{share:.0%}", str(n), *(format_points(mean) for mean in means.values())]
        for share, (n, means) in lines.items()
    ]
    columns = dict.fromkeys(next(iter(lines.values()))[1]) if lines else {}
    return _write("positive", columns, rows, "Reviews of amazon-bow and fdu-mtl.")


def list_by_share(tasks: Tasks) -> dict[float, tuple[int, dict[str, float]]]:
    """Return the number of tasks and mean errors by the share of positives in the target."""
    shares = pd.Series(
        tasks.about.index.str.extract(r" (\.\d+) ")[0].astype(float).to_numpy(), tasks.about.index
    )
    is_equal = tasks.about["group"].eq(EQUAL) & ~tasks.about.index.str.startswith("processed_acl")
    shares = shares.where(~is_equal, 0.5)
    columns = {
        "better of SVM and LR": tasks.simple,
        "undrift": tasks.take("undrift"),
        "5 labels asked": tasks.take_most("updated-asked-5"),
        "30 random labels": tasks.take_most("updated-30"),
    }
    found = {}
    for share, own in shares.dropna().groupby(shares):
        found[float(share)] = len(own), {says: values[own.index].mean() for says, values in columns.items()}
    return found


def kinds_readings_table(tasks: Tasks) -> str | None:
    """Errors of every reading, and of the best one of a task."""
    ours = tasks.records[tasks.records["method"] == "undrift"].set_index("task_of_variant")
    given = ours["readings"].dropna() if "readings" in ours else pd.Series(dtype=object)
    table = pd.DataFrame(given.tolist(), index=given.index).reindex(tasks.about.index).astype(float)
    if table.empty:
        return None
    lines = {str(name): table[name] for name in table if "%" not in str(name)}
    lines |= {"the best of a task": table.min(axis=1), "undrift": tasks.take("undrift")}
    note = "Errors in per cent. The best is known afterwards, readings at single shares of a grid among them."
    return _write("reading", None, _list_by_group(tasks, lines), note)


def find_harm(tasks: Tasks, errors: pd.Series) -> pd.Series:
    """Tell which errors are harm against the better of SVM and logistic regression; NaN without a record."""
    gap = errors - tasks.simple
    return (gap > MUCH + 1e-9).astype(float).where(gap.notna())


_BOUNDS = "± two standard errors, a family as one observation, in reviews a target."
_DRAWS = "Errors with labels are of the rows without one, means of three draws."
COMPARE = (
    "readme",
    "kinds",
    "kinds-families",
    "kinds-uneven",
)  # tables of tasks that plain classifiers have too
TABLES: Mapping[str, Callable[[Tasks], str | None]] = {
    "readme": readme_table,
    "kinds": kinds_table,
    "kinds-harm": kinds_harm_table,
    "kinds-estimates": kinds_estimates_table,
    "kinds-labelled-estimates": kinds_labelled_estimates_table,
    "kinds-families": kinds_families_table,
    "kinds-families-asked": kinds_families_asked_table,
    "kinds-families-random": kinds_families_random_table,
    "kinds-methods": kinds_methods_table,
    "kinds-labels": kinds_labels_table,
    "kinds-uneven": kinds_uneven_table,
    "kinds-readings": kinds_readings_table,
}


def _write(
    first: str,
    columns: Mapping[str, object] | None,
    rows: list[list[str]],
    note: str = "",
    *,
    with_tasks: bool = True,
) -> str | None:
    """Return the table, without empty columns, and its note; None where no cell has a number.

    The columns are those of the groups where none are given.
    """
    words = [first, "tasks"] if with_tasks and columns is not None else [first]
    names = [*words, *(GROUPS if columns is None else columns)]
    kept = [i for i in range(len(names)) if i < len(words) or any(row[i] for row in rows)]
    if len(kept) == len(words):
        return None
    lines = [[row[i] for i in kept] for row in rows]
    return write_table([names[i] for i in kept], lines, 1, *filter(None, [note]))


def make_kinds_table(name: str, frame: pd.DataFrame) -> str | None:
    """Return one of `TABLES`, the first of the page with the version of undrift; None without records."""
    own = frame[frame["plan"] == PLAN]
    if own.empty:
        return None
    tasks = group_tasks(own)
    tasks = tasks.compared() if name in COMPARE else tasks
    table = TABLES[name](tasks) if len(tasks.about) else None
    if table is None or name != "kinds":
        return table
    return "\n".join([table.rstrip("\n"), *say_versions(own)]) + "\n"
