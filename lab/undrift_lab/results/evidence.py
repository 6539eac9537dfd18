"""Tables of the lab's front page: one for each question, all from the same settings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pandas as pd

from ..catalogue import METHODS, OURS
from .frame import (
    LARGER_CLASS,
    MIN_DOMAINS,
    SURE,
    add_larger_class,
    average_tasks,
    compare,
    count_harm,
    first_seed,
    mean_over_tasks,
)
from .tables import (
    HEADLINE,
    PEERS_PLAN,
    SOURCE_ONLY,
    TRUST_PLAN,
    format_points,
    list_stamps,
    say_versions,
    write_table,
)

PLAIN = ("svm-tfidf", "svm-balanced")  # the stronger of them is the SVM of a setting
EQUAL = 0.05  # a share this close to one half is equal
# parts that are added to tf-idf rows of the source and least squares
PARTS = {
    "source-only": "none",
    "uncentred": "layers",
    "uncentred-em": "layers, EM",
    "aligned": "layers, classes aligned",
    "uncentred-self": "layers, self-training",
    "uncentred-em-self": "layers, self-training, EM",
    "centred": "layers, self-training, domains centred",
    "undrift": "layers, self-training, classes aligned",
}
TAUGHT = {
    "undrift": "undrift",
    "minilm-frozen": "encoder, frozen",
    "minilm-finetuned": "encoder, fine-tuned",
    "undrift+teacher": "undrift with the teacher",
}
NAMES = ["plan", "setting", "test rows", "tasks"]


@dataclass(frozen=True)
class Setting:
    """Tasks of one corpus under one protocol, and the records of every method on them."""

    plan: str
    name: str
    test_rows: str  # seen: among the unlabelled ones; else whether the model is aligned to them
    method: str  # ours
    rows: pd.DataFrame

    @property
    def ours(self) -> pd.DataFrame:
        """Records of undrift that has the files of two domains and nothing else."""
        return self.of(self.method)

    @property
    def wide(self) -> pd.DataFrame:
        """Records of undrift that has the rows of all domains."""
        return self.of(self.method.removesuffix("-pair") if self.plan != TRUST_PLAN else "none")

    def of(self, method: str) -> pd.DataFrame:
        """Return the records of a method."""
        return self.rows[self.rows["method"] == method]

    def find_best(self, methods: list[str]) -> pd.DataFrame:
        """Return the method of the lowest mean error, of those that have all tasks of undrift."""
        tasks = list(set((self.ours if len(self.ours) else self.rows)["task"]))
        errors = {method: average_tasks(self.of(method)).reindex(tasks) for method in methods}
        means = {method: e.mean() for method, e in errors.items() if e.notna().all()}
        return self.of(min(means, key=lambda method: means[method]) if means else "none")

    @property
    def baselines(self) -> list[str]:
        """Methods that are neither ours nor of the paper, and have all tasks of undrift."""
        papers, tasks = {method for method in METHODS if method not in PLAIN}, set(self.ours["task"])
        methods = self.rows.groupby("method", sort=False)["task"].unique()
        is_complete = methods.map(lambda own: tasks <= set(own))
        return [m for m in methods[is_complete].index if m.removesuffix("-pair") not in {*OURS, *papers}]

    @property
    def cells(self) -> list[str]:
        """Plan, name and protocol, and the number of tasks."""
        n_tasks = (self.ours if len(self.ours) else self.rows)["task"].nunique()
        return [self.plan, self.name, self.test_rows, self.count(n_tasks)]

    def count(self, n_tasks: int) -> str:
        """Write a number of tasks, and of how many where records are missing."""
        n_all = self.rows["task"].nunique()
        return str(n_tasks) if n_tasks == n_all else f"{n_tasks} of {n_all}"


def list_settings(frame: pd.DataFrame) -> list[Setting]:
    """List the settings that undrift and baselines were measured in."""
    frame = add_larger_class(frame)
    chosen = []
    for plan, (seen, unseen) in HEADLINE.items():
        chosen += [(plan, seen, "seen", "undrift-pair"), (plan, unseen, "unseen", "undrift-pair")]
        chosen.append((plan, unseen, "unseen, a batch", "batch-pair"))
    for plan, method in ((PEERS_PLAN, "undrift-pair"), (TRUST_PLAN, "undrift")):
        variants = sorted(set(frame[frame["plan"] == plan]["variant"]))
        chosen += [(plan, variant, "seen", method) for variant in variants]
    settings = []
    for plan, variant, test_rows, method in chosen:
        rows = frame[(frame["plan"] == plan) & (frame["variant"] == variant)]
        if len(rows) and (method != "batch-pair" or method in set(rows["method"])):
            name = str(rows["corpus"].iloc[0]) if plan in HEADLINE else variant
            settings.append(Setting(plan, name, test_rows, method, rows))
    return settings


def strongest_table(frame: pd.DataFrame) -> str:
    """Undrift against the strongest baseline of every setting."""
    rows = []
    for setting in list_settings(frame):
        theirs, ours = setting.find_best(setting.baselines), setting.ours
        gap = compare(ours, theirs)
        if gap is None:
            continue
        interval = f"{format_points(gap.low, '+.1f')} to {format_points(gap.high, '+.1f')}"
        same = [rows[rows["seed"].isin(gap.seeds)] for rows in (theirs, ours, setting.wide)]
        rows.append([
            *setting.cells, str(len(gap.seeds)), str(len(setting.baselines)), str(theirs["method"].iloc[0]),
            *(format_points(mean_over_tasks(group)) for group in same),
            format_points(gap.mean, "+.1f"), interval if gap.n_domains >= MIN_DOMAINS else "",
        ])  # fmt: skip
    names = [*NAMES, "seeds", "baselines", "strongest", "its error, %", "undrift, two files, %"]
    names += ["undrift, all domains, %", "two files less baseline, points", "95% interval"]
    says = (
        f"Baselines are all methods without our layers, and *{LARGER_CLASS}*. Intervals come from a "
        f"bootstrap over domains and seeds; with fewer than {MIN_DOMAINS} domains there is none. "
        "Errors are of the seeds that both methods have."
    )
    return write_table(names, rows, 3, says, *_say_versions(frame))


def _say_versions(frame: pd.DataFrame) -> list[str]:
    return say_versions(pd.concat([setting.ours for setting in list_settings(frame)]))


def harm_table(frame: pd.DataFrame) -> str:
    """Tasks on which undrift errs more than the tf-idf SVM, and by how much."""
    rows = []
    gaps_of: dict[str, list[float]] = {}
    for setting in list_settings(frame):
        theirs, ours = setting.find_best(list(PLAIN)), setting.ours
        if theirs.empty or ours.empty:
            continue
        gaps = (average_tasks(ours) - average_tasks(theirs)).dropna()
        gaps_of.setdefault(setting.test_rows, []).extend(gaps)
        rows.append([
            *setting.cells, str(theirs["method"].iloc[0]), count_harm(ours, theirs),
            count_harm(ours, theirs, by=0.02), format_points(gaps.max(), "+.1f"),
            count_harm(ours, theirs, "balanced_error"), count_harm(ours, setting.of(LARGER_CLASS), by=0.0),
            count_harm(setting.wide, theirs),
        ])  # fmt: skip
    names = [*NAMES, "SVM", "worse by over 1 point", "by over 2", "worst task, points"]
    names += ["balanced error worse by over 1", "above the larger class", "all domains: worse by over 1"]
    for test_rows, gaps in gaps_of.items():
        counts = [_count_above(gaps, by) for by in (0.01, 0.02)]
        rows.append(
            ["all", "", test_rows, str(len(gaps)), "", *counts, format_points(max(gaps), "+.1f"), *[""] * 3]
        )
    says = (
        "Undrift has the files of two domains, but in the last column. The SVM is the better of those with a "
        "record, by the mean error of the setting. Settings overlap in domains. An empty cell has no record."
    )
    return write_table(names, rows, 3, says, *_say_versions(frame))


def _count_above(gaps: list[float], by: float) -> str:
    n_above = sum(gap > by + 1e-9 for gap in gaps)
    return f"{n_above} of {len(gaps)} ({n_above / len(gaps):.1%})"


def expected_table(frame: pd.DataFrame) -> str:
    """Expected against measured error, and how often the 90% intervals hold the truth."""
    rows = []
    for plan, name, test_rows, version, own in list_estimates(frame):
        known = own[own["expected_error"].notna()]
        n_unknown = int((own["expected_error"].isna() & own["expected_low"].notna()).sum())
        says = own[["share_held", "error_held", "is_sure"]].mean()
        rows.append([
            plan, name, test_rows, str(own["method"].iloc[0]), f"{version:g}", str(len(own)),
            *known[["transfer_error", "expected_error", "error_gap"]].mean().map(format_points),
            format_points(known["error_gap"].max()), *says.map(lambda held: format_points(held, ".0f")),
            str(n_unknown), str(int(own["fell_back"].eq(True).sum())),
        ])  # fmt: skip
    names = [*NAMES[:3], "method", "version", "runs", "error, %", "expected, %", "off by", "at worst"]
    names += ["share intervals that hold, %", "error intervals that hold, %", "confidently wrong, %"]
    says = (
        "Off by: mean absolute error in points. Intervals are of 90%. "
        f"Confidently wrong: the error is above the interval by more than {100 * SURE:g} points. "
        "Not known: undrift gives bounds and no number; errors are those of the other runs. Where it falls "
        "back it predicts by the classifier of the source alone."
    )
    return write_table([*names, "not known", "fell back"], rows, 4, says)


def list_estimates(frame: pd.DataFrame) -> Iterator[tuple[str, str, str, float, pd.DataFrame]]:
    """Give plan, corpus or variant, protocol, version and records wherever undrift estimated its error."""
    own = frame[frame["method"].isin(["undrift", "undrift-pair", "batch", "batch-pair", "undrift+teacher"])]
    own = own[own["expected_error"].notna() | own["expected_low"].notna()]
    own = own[own["plan"].isin([*HEADLINE, PEERS_PLAN, TRUST_PLAN, "balance", "teachers"])]
    names = own["variant"].where(own["plan"] == TRUST_PLAN, own["corpus"])
    is_batch = own["method"].str.startswith("batch")
    test_rows = own["variant"].eq("inductive").map({True: "unseen", False: "seen"})
    protocols = test_rows.mask(is_batch, "unseen, a batch")
    keys = [own["plan"], names, protocols, own["method"], own["method_version"]]
    for (plan, name, protocol, _, version), group in own.groupby(keys, sort=False, dropna=False):
        yield str(plan), str(name), str(protocol), float(version), group


def parts_table(frame: pd.DataFrame) -> str:
    """Mean errors with and without each part, by plan, corpus and class shares."""
    groups = list(list_parts(frame))
    shown = [part for part in PARTS if any(part in means for *_, means in groups)]
    rows = [
        [plan, corpus, shares, f"{version:g}", str(n_runs), *(format_points(means.get(p)) for p in shown)]
        for plan, corpus, shares, version, n_runs, means in groups
    ]
    says = "Mean error over the tasks, %. An empty cell has no record."
    names = ["plan", "corpus", "classes", "version", "runs", *(PARTS[part] for part in shown)]
    return write_table(names, rows, 3, says)


def list_parts(frame: pd.DataFrame) -> Iterator[tuple[str, str, str, float, int, dict[str, float]]]:
    """Give plan, corpus, classes, version, number of runs, and the mean error with some parts.

    Classes are equal or uneven. The classifier without parts is the same in all versions.
    """
    parts = frame["method"].str.removesuffix("-pair")
    is_pair = frame["method"].str.endswith("-pair") | frame["method"].eq("source-only")
    own = frame.assign(part=parts)[parts.isin(list(PARTS)) & (is_pair | (frame["plan"] != PEERS_PLAN))]
    own = first_seed(own[own["plan"].isin(["balance", PEERS_PLAN, TRUST_PLAN])])
    is_equal = (own["target_share"] - 0.5).abs().le(EQUAL)
    corpora = own["variant"].where(own["plan"] == TRUST_PLAN, own["corpus"])
    keys = [own["plan"], corpora, is_equal.map({True: "equal", False: "uneven"})]
    versions = own["method_version"].mask(own["part"] == SOURCE_ONLY)
    newest = versions.groupby([own["plan"], own["variant"]]).transform("max")
    keys.append(versions.fillna(newest))
    for (plan, corpus, shares, version), group in own.groupby(keys, sort=False):
        tasks = group.groupby(["part", "variant", "task"])["transfer_error"].mean()
        n_runs = tasks.groupby("part").size()
        means = tasks.groupby("part").mean()[n_runs == n_runs.max()]
        if len(means) > 2:
            yield str(plan), str(corpus), str(shares), float(version), int(n_runs.max()), means.to_dict()


def teachers_table(frame: pd.DataFrame) -> str:
    """An encoder alone and as a teacher, by variant: errors, and tasks above the teacher."""
    rows = []
    for variant, own in frame.groupby("variant", sort=False):
        by_method = {method: own[own["method"] == method] for method in TAUGHT}
        taught, teacher = by_method["undrift+teacher"], by_method["minilm-finetuned"]
        gaps = (average_tasks(taught) - average_tasks(teacher)).dropna()
        rows.append([
            str(variant), str(len(gaps)),
            *(format_points(mean_over_tasks(rows_of)) for rows_of in by_method.values()),
            format_points((gaps < -1e-9).mean()), count_harm(taught, teacher),
            format_points(gaps.max(), "+.1f"), format_points(taught["error_gap"].mean()),
            *(format_points(taught[name].mean(), ".0f") for name in ("error_held", "share_held")),
        ])  # fmt: skip
    names = ["corpus", "tasks", *TAUGHT.values(), "below the teacher, % of tasks", "above by over 1 point"]
    names += ["worst task, points", "expected error off by", "error intervals that hold, %"]
    says = "Errors are means over the tasks, %. The teacher is the fine-tuned encoder."
    return write_table([*names, "share intervals that hold, %"], rows, 1, says, *list_stamps(frame))
