"""What a few labels settle: ten that undrift asks for and 30 random ones, beside the fit at the true shares.

    python lab/scripts/settled.py --results settled.jsonl [--two 20] [--more 12] [--many 3] [--rows 1000]

Tasks of plan `kinds`, drawn at random, one of every family before a second one of any: of two classes, of
three to nine, and of ten and more. Errors with labels are of the rows without one. Run it again and it goes
on where it was. `--keep` stores what the readings say of every row, before labels and after.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from copy import copy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from harness import data_folder

from undrift import MSDAClassifier
from undrift.method.judge import judge
from undrift.method.jury import mix
from undrift_lab.methods.files import TwoFiles, Weighted, weight_rows
from undrift_lab.parts import load_rows, sample_target, take_labelled
from undrift_lab.plan import Plan, Setting, load_plan
from undrift_lab.results.kinds import FAMILIES

SIZES = {"two classes": (2, 2), "three to nine": (3, 9), "ten and more": (10, 1000)}
LABELS = {"asked": (5, 10), "random": (10, 30)}


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--results", type=Path, required=True, metavar="FILE", help="JSON lines, added to")
    for name, n in zip(("two", "more", "many"), (20, 12, 3), strict=True):
        parser.add_argument(f"--{name}", type=int, default=n, metavar="N", help="tasks of so many classes")
    parser.add_argument("--rows", type=int, default=1_000, help="of each file, at most")
    parser.add_argument("--max-features", type=int, default=6_000)
    parser.add_argument("--pivots", type=int, default=2_000, help="features that the layers reconstruct")
    parser.add_argument("--draws", type=int, default=1, help="of labels")
    parser.add_argument("--keep", type=Path, metavar="FOLDER")
    return parser.parse_args()


def draw_tasks(plan: Plan) -> list[tuple[Setting, str]]:
    """Return all tasks in random order, one of every family before a second one of any."""
    rng = np.random.RandomState(0)
    tasks = [(variant, task) for variant in plan.variants for task in variant.tasks or ()]
    order = pd.DataFrame({"position": rng.permutation(len(tasks))})
    order["family"] = [FAMILIES[plan.corpus_of(tasks[i][0]).loader] for i in order["position"]]
    order["turn"] = order.groupby("family").cumcount()
    return [tasks[i] for i in order.sort_values("turn", kind="stable")["position"]]


def take_files(plan: Plan, variant: Setting, task: str, args: argparse.Namespace) -> Weighted:
    """Return the rows of a task, evenly spaced."""
    source, target = task.split("->")
    corpus = load_rows(plan.corpus_of(variant), data_folder(), args.max_features)
    if variant.target_share is not None:
        corpus, _ = sample_target(corpus, target, variant.target_share, args.rows, plan.seed)
    given, rows = take_labelled(corpus.domains[source], "train", args.rows)
    found, truth = take_labelled(corpus.domains[target], "all", args.rows)
    return weight_rows(TwoFiles((), given, rows, found, truth, args.max_features))


def measure(rows: Weighted, args: argparse.Namespace) -> tuple[dict, dict[str, np.ndarray]]:
    """Return errors and what the fits say of themselves, and what the readings say of every row."""
    source, target = rows.long
    model = MSDAClassifier(n_pivots=min(args.pivots, source.shape[1]), random_state=0).fit(
        source, rows.y, target
    )
    shares = {label: float(np.mean(rows.truth == label)) for label in model.classes_.tolist()}
    nothing, codes = np.zeros(0, dtype=int), np.searchsorted(model.classes_, rows.truth)
    found = {"classes": len(shares), "none": [describe(model, target, rows.truth, nothing)]}
    told = fit_at_shares(model, np.array(list(shares.values())))
    found["true shares"] = [{"error": float(np.mean(told.argmax(axis=1) != codes))}]
    kept = {"y": codes, "told": told, "source": model.source_shares_}
    for kind, sizes in LABELS.items():
        for n in sizes:
            found[f"{n} {kind}"] = []
        for draw in range(args.draws):
            rng, now, labelled = np.random.RandomState(draw), copy(model), nothing
            for n in sizes:
                free = np.setdiff1d(np.arange(len(rows.truth)), labelled)
                more = n - len(labelled)
                if kind == "asked":
                    new = free[now.ask(target[free], more, random_state=draw)]
                else:
                    new = rng.choice(free, more, replace=False)
                labelled = np.concatenate([labelled, new])
                now.update(target[new], rows.truth[new])
                found[f"{n} {kind}"].append(describe(now, target, rows.truth, labelled))
                kept[f"rows {n} {kind} {draw}"] = labelled
                kept[f"p {n} {kind} {draw}"] = now.predict_proba(target).astype(np.float32)
    fitted = now._last
    for reading in fitted.verdict.unlabelled:  # of all stories, before any label
        kept[f"reading {reading.story.name}"] = reading.find_probabilities(fitted.evidence.groups)
    return found, kept


def fit_at_shares(model: MSDAClassifier, shares: np.ndarray) -> np.ndarray:
    """Return the target's class probabilities if its shares are known, with the same layers."""
    evidence = model._last.evidence
    known = replace(evidence, facts=replace(evidence.facts, shares=[shares]))
    verdict = judge(known, model.settings_)
    return mix(verdict.votes[0], verdict.p[0])


def describe(model: MSDAClassifier, target: object, truth: np.ndarray, labelled: np.ndarray) -> dict:
    """Return the error on the rows without a label, what was expected, and whether the intervals hold."""
    is_free = ~np.isin(np.arange(len(truth)), labelled)
    wrong = model.predict(target) != truth
    (about,) = model.targets_.values()
    expected, ends = about["expected_error"], about["shares_interval"]
    shares = {label: float(np.mean(truth == label)) for label in model.classes_.tolist()}
    held = [low <= shares[label] <= high for label, (low, high) in ends.items()]
    error = float(wrong[is_free].mean())
    return {
        "error": error,
        "expected": expected["error"],
        "low": expected["low"],
        "high": expected["high"],
        "holds": float(expected["low"] <= error <= expected["high"]),
        "shares hold": float(np.mean(held)),
        "shares off": sum(abs(about["shares"][label] - shares[label]) for label in shares) / 2,
        "shares width": float(np.mean([high - low for low, high in ends.values()])),
    }


def list_records(args: argparse.Namespace) -> Iterator[dict]:
    """Yield the records of all tasks that were asked for, and measure those that are not stored."""
    plan, done = load_plan("kinds"), {}
    if args.results.exists():
        lines = map(json.loads, args.results.read_text(encoding="utf-8").splitlines())
        done = {(record["variant"], record["task"]): record for record in lines}
    left = dict(zip(SIZES, (args.two, args.more, args.many), strict=True))
    tasks = draw_tasks(plan)
    for variant, task in tasks:
        if not any(left.values()):
            return
        record = done.get((variant.name, task))
        if record is None:
            rows = take_files(plan, variant, task, args)
            if not left.get(find_size(len(np.unique(rows.y)))):
                continue
            try:
                found, kept = measure(rows, args)
            except Exception as error:  # recorded, not lost
                found, kept = {"classes": len(np.unique(rows.y)), "failed": f"{error}"}, {}
            family = FAMILIES[plan.corpus_of(variant).loader]
            record = {"variant": variant.name, "task": task, "family": family, **found}
            with args.results.open("a", encoding="utf-8") as file:
                file.write(json.dumps(record) + "\n")
            if args.keep:
                args.keep.mkdir(parents=True, exist_ok=True)
                np.savez_compressed(args.keep / f"{variant.name} {task}.npz", **kept)
            print(variant.name, task, file=sys.stderr)
        size = find_size(record["classes"])
        if "failed" not in record and left[size]:
            left[size] -= 1
            yield record


def find_size(n_classes: int) -> str:
    """Return which of `SIZES` a number of classes is of."""
    return next(name for name, (least, most) in SIZES.items() if least <= n_classes <= most)


def main() -> None:
    table = []
    for record in list_records(parse_arguments()):
        for what, draws in record.items():
            if isinstance(draws, list):
                means = pd.DataFrame(draws).mean().to_dict()
                task = f"{record['variant']} {record['task']}"
                table.append({"size": find_size(record["classes"]), "task": task, "labels": what, **means})
    frame = pd.DataFrame(table)
    means = frame.drop(columns="task").groupby(["size", "labels"], sort=False).mean()
    means.insert(0, "tasks", frame.groupby(["size", "labels"], sort=False)["task"].nunique())
    print((100 * means.drop(columns="tasks")).round(1).join(means["tasks"]).to_string())


if __name__ == "__main__":
    main()
