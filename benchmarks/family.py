"""The closed-form family: mean error of all tasks with each kind of layer in place of masking.

    python benchmarks/family.py --data FOLDER --device cuda

Everything else is as in `text_classifier`: tf-idf of length 5, centred domains, balanced layers, least
squares, self-training. Differences to masking at 0.7 are paired; their intervals come from a bootstrap over
tasks.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import permutations
from pathlib import Path

import numpy as np
import torch
from family_layers import (
    N_LAYERS,
    NOISE,
    Rows,
    Scatters,
    Solve,
    Task,
    gaussian,
    masking,
    mmd,
    per_feature,
    poisson,
    source_alone,
    structured,
    target_regularised,
    within,
)

from undrift import SelfTraining
from undrift._core.scatter import moments, scatter
from undrift._inputs.device import Place, check_place
from undrift.bench.corpora import CorpusSpec, load_corpus, part_labels, part_rows
from undrift.bench.methods.baselines import weight_tfidf
from undrift.bench.methods.candidates import predict_target_codes
from undrift.bench.methods.resources import Cost
from undrift.bench.methods.stacks import Level, RunningGrams, join_blocks
from undrift.bench.methods.svm import authors_C, source_problem
from undrift.classifier.grams import layer_share
from undrift.classifier.linear import SOLVERS
from undrift.corpora import Corpus
from undrift.text.adapter import TFIDF_LENGTH, text_classifier

FALLING, RISING = (0.8, 0.8, 0.7, 0.6, 0.5), (0.5, 0.6, 0.7, 0.8, 0.9)


# -- what terms are like, from counts ----------------------------------------------------------------


def document_rates(corpus: Corpus) -> dict[str, np.ndarray]:
    """Share of the rows of each domain that have a term."""
    return {name: np.asarray((domain.X > 0).mean(axis=0)).ravel() for name, domain in corpus.domains.items()}


def frequency_rank(corpus: Corpus) -> np.ndarray:
    """Rank of each term by the number of its rows, from 0 for the rarest to 1."""
    counts = sum(np.asarray((domain.X > 0).sum(axis=0)).ravel() for domain in corpus.domains.values())
    return np.argsort(np.argsort(counts, kind="stable"), kind="stable") / max(1, len(counts) - 1)


def specificity(rates: Mapping[str, np.ndarray]) -> np.ndarray:
    """1 for a term of one domain, 0 for one that is as frequent in all: 1 - entropy / log n_domains."""
    share = np.stack(list(rates.values()))
    share = share / np.maximum(share.sum(axis=0), 1e-12)
    entropy = -(share * np.log(np.maximum(share, 1e-12))).sum(axis=0)
    return np.clip(1 - entropy / math.log(len(share)), 0, 1)


# -- variants ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Variant:
    name: str
    solve: Solve
    n_layers: int = N_LAYERS
    per_task: bool = False  # `solve` takes a task, and each task has its stack


def list_variants(corpus: Corpus, per_task: bool) -> list[Variant]:
    rates = document_rates(corpus)
    rank, specific = frequency_rank(corpus), specificity(rates)

    def by_feature(probability: np.ndarray, **options: bool) -> Solve:
        return partial(per_feature, probability=np.clip(probability, 0.05, 0.95), **options)

    variants = [
        Variant("masking 0.7", masking),
        Variant("per layer, falling", partial(masking, noise=FALLING)),
        Variant("per layer, rising", partial(masking, noise=RISING)),
        Variant("less on frequent terms", by_feature(NOISE - 0.4 * (rank - 0.5))),
        Variant("more on frequent terms", by_feature(NOISE + 0.4 * (rank - 0.5))),
        Variant("less on specific terms", by_feature(0.75 - 0.35 * specific)),
        Variant("less, in all layers", by_feature(0.75 - 0.35 * specific, in_all_layers=True)),
        Variant("more on specific terms", by_feature(0.6 + 0.35 * specific)),
        Variant("Gaussian", partial(gaussian, share=1.0)),
        Variant("Poisson", poisson),
        Variant("structured dropout, 1 layer", structured, 1),
        Variant("structured dropout, 3 layers", structured, 3),
        *(Variant(f"MMD {weight:g}", partial(mmd, weight=weight)) for weight in (0.1, 1.0, 10.0)),
        Variant("intercept per domain", within),
    ]
    if per_task:
        variants += [
            Variant(f"target {eta:g}", partial(target_regularised, eta=eta), per_task=True)
            for eta in (0.1, 1.0)
        ]
        as_published = partial(target_regularised, eta=1.0, free=False)
        variants += [
            Variant("target 1, no intercept", as_published, per_task=True),
            Variant(
                "more on source-only terms", partial(source_alone, rates=rates, slope=0.25), per_task=True
            ),
        ]
    return variants


# -- measuring ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Input:
    """Rows of a corpus on the device, and their scatters, which all variants share."""

    corpus: Corpus
    rows: Rows
    stats: Scatters
    place: Place


def place_rows(corpus: Corpus, place: Place) -> Input:
    weighted = weight_tfidf(corpus, TFIDF_LENGTH)
    rows = {name: place.move_rows(domain.X) for name, domain in weighted.domains.items()}
    with place.set_precision():
        stats = {name: scatter(X) for name, X in rows.items()}
    return Input(weighted, rows, stats, place)


def make_level(depth: int, rows: Rows) -> Level:
    sums = {name: moments(X) for name, X in rows.items()}
    means = {name: domain.total / domain.n for name, domain in sums.items()}
    return Level(
        depth,
        Cost(),
        lambda name, index: rows[name][torch.as_tensor(index, device=rows[name].device)],
        means,
        layer_share([*sums.values()], True),
    )


def grow_levels(data: Input, solve: Solve, n_layers: int) -> Iterator[Level]:
    rows, stats = data.rows, data.stats
    yield make_level(0, rows)
    for depth in range(n_layers):
        layers = solve(depth, rows, stats)
        rows = {name: layers[name](X) for name, X in rows.items()}
        yield make_level(depth + 1, rows)
        if depth + 1 < n_layers:
            stats = {name: scatter(X) for name, X in rows.items()}


def pairs(task: Task) -> tuple:
    source, target = (task.source, "train"), (task.target, "all")
    return (source, source), (target, source), (target, target)


def measure_errors(data: Input, variant: Variant, tasks: Sequence[Task]) -> np.ndarray:
    """Measure the errors of all tasks, before and after self-training, of shape (n_tasks, 2)."""
    if variant.per_task:
        variants = [
            replace(variant, per_task=False, solve=partial(variant.solve, task=task)) for task in tasks
        ]
        return np.concatenate(
            [measure_errors(data, v, [task]) for v, task in zip(variants, tasks, strict=True)]
        )
    grams = RunningGrams(data.corpus, dict.fromkeys(pair for task in tasks for pair in pairs(task)))
    with data.place.set_precision():
        for level in grow_levels(data, variant.solve, variant.n_layers):
            grams.add(level, balance=True)
        return np.array([measure_task(data.corpus, grams, task) for task in tasks])


def measure_task(corpus: Corpus, grams: RunningGrams, task: Task) -> list[float]:
    model = text_classifier()
    problem, classes = source_problem(corpus, task.source, 2, 0)
    problem = replace(problem, solver=SOLVERS[model.classifier])
    K = join_blocks(*(grams.peek(pair) for pair in pairs(task)))
    test, y = part_rows(corpus, (task.target, "test")), part_labels(corpus, task.target, "test")
    n = len(problem.codes)
    C = model.C * authors_C(K[:n, :n])
    predictions = (
        classes[predict_target_codes(K, problem, C, test, self_training)]
        for self_training in (None, SelfTraining())
    )
    return [float(np.mean(predicted != y)) for predicted in predictions]


def interval(difference: np.ndarray, n_draws: int = 10_000) -> list[float]:
    """95% interval of the mean of paired differences: a bootstrap over tasks."""
    drawn = np.random.default_rng(0).integers(len(difference), size=(n_draws, len(difference)))
    return np.quantile(difference[drawn].mean(axis=1), [0.025, 0.975]).tolist()


def measure_variant(data: Input, variant: Variant, tasks: Sequence[Task], base: np.ndarray | None) -> tuple:
    began = time.perf_counter()
    errors = measure_errors(data, variant, tasks)
    seconds = time.perf_counter() - began
    difference = (errors - (errors if base is None else base))[:, 1]
    record = {
        "variant": variant.name,
        "n_tasks": len(tasks),
        "before": float(errors[:, 0].mean()),
        "after": float(errors[:, 1].mean()),
        "difference": float(difference.mean()),
        "interval": interval(difference),
        "n_better": int((difference < 0).sum()),
        "n_worse": int((difference > 0).sum()),
        "seconds": seconds,
    }
    return errors, record


def format_table(name: str, records: Sequence[Mapping]) -> str:
    head = (
        f"| {name} | before, % | after, % | difference, points | 95% interval | better, worse | s |\n"
        "| --- | ---: | ---: | ---: | --- | ---: | ---: |"
    )
    return "\n".join([head, *(format_line(record) for record in records)])


def format_line(record: Mapping) -> str:
    low, high = (f"{100 * value:+.2f}" for value in record["interval"])
    return (
        f"| {record['variant']} | {100 * record['before']:.2f} | {100 * record['after']:.2f} "
        f"| {100 * record['difference']:+.2f} | {low} to {high} "
        f"| {record['n_better']}, {record['n_worse']} | {record['seconds']:.1f} |"
    )


def compare_variants(corpus: Corpus, place: Place, variants: Sequence[Variant]) -> list[dict]:
    """Measure variants, and compare them with the first."""
    data, base, records = place_rows(corpus, place), None, []
    tasks = [Task(*pair) for pair in permutations(corpus.domains, 2)]
    for variant in variants:
        errors, record = measure_variant(data, variant, tasks, base)
        base = errors if base is None else base
        records.append({**record, "errors": errors[:, 1].round(5).tolist()})
        print(format_line(record), flush=True)
    return records


def make_parser(description: str | None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of the corpora; UNDRIFT_DATA by default")
    parser.add_argument("--corpora", default="amazon-bow,fdu-mtl")
    parser.add_argument("--device", default="torch:cpu", help="torch:cpu, cuda, ...")
    parser.add_argument("--precision", default="high", choices=["high", "highest"])
    parser.add_argument("--rows", type=int, help="of each part of each domain; all by default. For trials")
    parser.add_argument("--terms", type=int, default=5000)
    return parser


def parse_arguments() -> argparse.Namespace:
    parser = make_parser(__doc__)
    parser.add_argument(
        "--only", help="parts of names of variants, with commas between; the base always runs"
    )
    return parser.parse_args()


def choose_variants(variants: Sequence[Variant], only: str | None) -> list[Variant]:
    """Choose the base, and the variants that `--only` names."""
    base, *rest = variants
    return [base, *(v for v in rest if only is None or any(part in v.name for part in only.split(",")))]


def main() -> None:
    args = parse_arguments()
    place = check_place(args.device, args.precision)
    results: dict[str, list[dict]] = {}
    for name in args.corpora.split(","):
        began = time.perf_counter()
        corpus = load_corpus(CorpusSpec(name, max_rows=args.rows), args.data, args.terms)
        print(f"{name}: loaded in {time.perf_counter() - began:.0f} s", flush=True)
        # a stack for each task is affordable where tasks are few
        variants = list_variants(corpus, per_task=len(corpus.domains) <= 4)
        results[name] = compare_variants(corpus, place, choose_variants(variants, args.only))
        print(f"\n{format_table(name, results[name])}\n", flush=True)
    print(json.dumps(results))


if __name__ == "__main__":
    main()
