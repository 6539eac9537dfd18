"""Estimate the constants of class shares and expected errors on each corpus, and try them on the other one.

What another domain does to scores (`Transfer` of method/constants.py, and what self-training leaves of the
errors) is estimated with the target labels of one corpus: once where layers are those of a pair of domains,
with uneven sources among them, once where they are those of several domains. Shares and expected errors are
then computed from the same scores with the constants of either corpus, and with those in the code.

Two more constants, `EFFECTIVE_ROWS` and `SAME`, are chosen on the pairs of each corpus by a rule: the most
rows whose 90% intervals hold the true share in at least 90% of the cells; then the probability of equal
shares that puts the shares least off. Cells whose source and target have the same shares count as much there
as all others together: half of the users' problems are such, says the prior, and no benchmark can tell.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import lru_cache, partial
from multiprocessing import get_context
from typing import Any
from unittest.mock import patch

import numpy as np
from harness import data_folder, draw_share

ROWS, SAME = (100, 300, 1000), (0.25, 0.5, 0.75)
FACTORS = np.arange(0.5, 1.2, 0.01)  # of temperatures, inverted
PSEUDO_WEIGHT = 0.45  # of target rows with pseudo-labels, over all target rows
AMAZON_BOW = ("books", "dvd", "electronics", "kitchen")
FDU_MTL = [
    ("books", "kitchen_housewares"),
    ("music", "electronics"),
    ("baby", "dvd"),
    ("electronics", "baby"),
    ("kitchen_housewares", "music"),
    ("health_personal_care", "books"),
    ("dvd", "camera_photo"),
    ("camera_photo", "health_personal_care"),
]
PAIRS = {"amazon-bow": [(a, b) for a in AMAZON_BOW for b in AMAZON_BOW if a != b], "fdu-mtl": FDU_MTL}
SEVERAL = {
    "amazon-bow": (AMAZON_BOW, (0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9)),
    "fdu-mtl": (("baby", "dvd", "kitchen_housewares"), (0.1, 0.5, 0.9)),
}


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shares", nargs="+", type=float, default=[0.1, 0.3, 0.5, 0.7, 0.9], help="of pairs")
    parser.add_argument("--source-shares", nargs="*", type=float, default=[0.2, 0.8])
    parser.add_argument("--their-targets", nargs="*", type=float, default=[0.2, 0.5, 0.8])
    parser.add_argument("--pairs", type=int, default=12, help="of each corpus, at most")
    parser.add_argument("--targets", type=int, default=4, help="of several domains, at most")
    parser.add_argument("--terms", type=int, default=5000)
    parser.add_argument("--layers", type=int, default=5)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--jobs", type=int, default=1)
    return parser.parse_args()


@dataclass(frozen=True)
class Scores:
    """Scores of one fit, and the classes of its target rows."""

    final: np.ndarray  # (n_target, 1) after self-training
    first: np.ndarray  # (n_target, 1) before it
    held_out: Any  # HeldOut of the source
    truth: np.ndarray  # (n_target,) of 0 and 1
    is_same: bool = False  # shares of source and target

    @property
    def pseudo_per_label(self) -> float:
        return PSEUDO_WEIGHT * len(self.truth) / len(self.held_out.codes)


@dataclass(frozen=True)
class Constants:
    """Everything that shares and expected errors are computed with."""

    transfer: Any
    gain: float = 0.2  # what a pseudo-label beside a label removes of the errors
    rows: int = 300
    same: float = 0.5


class Spy:
    """Keep the scores that targets are described from."""

    def __init__(self) -> None:
        from undrift.method import train

        self.seen: list[tuple] = []
        self.describe = train.describe_target
        self.patched = patch.object(train, "describe_target", self)

    def __call__(self, *args, **options):
        final, _, first, held_out, *_ = args
        self.seen.append((final, first, held_out))
        return self.describe(*args, **options)


@lru_cache(maxsize=2)
def load(corpus: str, terms: int):
    """Load a corpus as rows of tf-idf."""
    from undrift.text import TFIDF_LENGTH
    from undrift_lab.methods.baselines import weight_tfidf
    from undrift_lab.parts import CorpusSpec, load_corpus

    return weight_tfidf(load_corpus(CorpusSpec(corpus), data_folder(), terms), TFIDF_LENGTH)


def fit_pair(cell: tuple, args: argparse.Namespace) -> list[Scores]:
    """Fit a pair of domains whose target, and perhaps source, has a given share of positives."""
    from undrift import MSDAClassifier

    warnings.simplefilter("ignore")
    name, pair, source_share, target_share = cell
    source, target = (load(name, args.terms).domains[domain] for domain in pair)
    train, y, truth = source.train, (source.y > 0).astype(float), (target.y > 0).astype(int)
    if source_share is not None:
        train = draw_share(y, train, source_share, len(train), 0)
    chosen = draw_share(truth, np.append(target.train, target.test), target_share, 1100, 0)
    rows = np.append(train, np.append(source.test, source.unlabelled)[:2400])
    labels = np.append(y[train], np.full(len(rows) - len(train), np.nan))
    spy = Spy()
    with spy.patched:
        model = MSDAClassifier(args.layers, device=args.device, random_state=0)
        model.fit(source.X[rows], labels, target.X[chosen])
    return [Scores(*spy.seen[-1], truth[chosen], target_share == (source_share or 0.5))]


def fit_several(cell: tuple, args: argparse.Namespace) -> list[Scores]:
    """Fit all tasks of a target with a given share of positives; layers are those of all domains."""
    from undrift import MSDAClassifier
    from undrift_lab.methods.cells import Cell
    from undrift_lab.methods.together import fit_together
    from undrift_lab.methods.undrift import stack_tasks
    from undrift_lab.parts import sample_target

    warnings.simplefilter("ignore")
    name, target, share = cell
    corpus = sample_target(load(name, args.terms), target, share, 2500, 0)
    cells = [Cell("undrift", source, target) for source in corpus.domains if source != target]
    X, tasks = stack_tasks(corpus, cells, inductive=False)
    settings = {"n_layers": args.layers, "device": args.device, "random_state": 0}
    truth = np.asarray(corpus.domains[target].y)
    truth = (truth == truth.max()).astype(int)
    fits, spy = [], Spy()
    with spy.patched:
        for _ in fit_together({task: MSDAClassifier(**settings) for task in cells}, X, tasks):
            fits.append(Scores(*spy.seen[-1], truth, share == 0.5))
            if len(spy.seen) != len(fits):
                raise RuntimeError("scores cannot be matched with tasks")
    return fits


def estimate_constants(fits: Sequence[Scores], spread_work: Callable) -> Constants:
    """Estimate what another domain does to scores, from the labels of the targets."""
    from undrift.method.constants import Transfer

    losses, midpoints, before, after, gains = np.array(list(spread_work(measure, fits))).T
    spread = float(np.sqrt(np.mean(midpoints**2)))
    gain = float(np.mean(1 - gains) / np.mean([fit.pseudo_per_label for fit in fits]))
    transfer = Transfer(losses.mean(), 0.0, losses.std(), spread, 1 / before.mean(), 1 / after.mean())
    return Constants(transfer, gain)


def measure(fit: Scores) -> tuple[float, ...]:
    """Compare scores of a target, before and after self-training, with held-out ones of the source."""
    upper, lower = fit.first[fit.truth == 1, 0], fit.first[fit.truth == 0, 0]
    codes, scores = fit.held_out.codes, fit.held_out.scores[:, 0]
    there = scores[codes == 1], scores[codes == 0]
    spread = np.sqrt((upper.var() + lower.var()) / 2)
    first, final = (scores / fit.held_out.temperature for scores in (fit.first, fit.final))
    errors = [best_error(part, fit.truth) for part in (first, final)]
    return (
        float(np.log(separation(upper, lower) / separation(*there))),
        float((upper.mean() + lower.mean() - there[0].mean() - there[1].mean()) / 2 / spread),
        fit_factor(first, fit.truth),
        fit_factor(final, fit.truth),
        errors[1] / max(errors[0], 1e-9),
    )


def separation(upper: np.ndarray, lower: np.ndarray) -> float:
    return (upper.mean() - lower.mean()) / 2 / np.sqrt((upper.var() + lower.var()) / 2)


def probabilities(scores: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Probabilities of class 1, shifted to have its true share as their mean."""
    from undrift.method.calibrate import class_probabilities, find_border

    border = find_border(scores, 1.0, np.array([1 - truth.mean(), truth.mean()]))
    return class_probabilities(scores + border, 1.0)[:, 1]


def best_error(scores: np.ndarray, truth: np.ndarray) -> float:
    """Error of predictions with the true share."""
    return float(np.mean((probabilities(scores, truth) > 0.5) != truth))


def fit_factor(scores: np.ndarray, truth: np.ndarray) -> float:
    """Return what to multiply scores by to explain the labels best."""
    losses = []
    for factor in FACTORS:
        p = np.clip(probabilities(scores * factor, truth), 1e-9, 1 - 1e-9)
        losses.append(-np.mean(np.where(truth == 1, np.log(p), np.log(1 - p))))
    return float(FACTORS[int(np.argmin(losses))])


def try_constants(fit: Scores, constants: Constants) -> tuple[float, ...]:
    """Return how far the share is off, whether its interval holds the true one, error, and that expected."""
    from undrift.method import constants as module
    from undrift.method.calibrate import expect_error, find_border
    from undrift.method.constants import LEAST_ERROR_RATIO
    from undrift.method.shares import estimate_shares
    from undrift.method.solve import predict_codes

    held_out, transfer = fit.held_out, constants.transfer
    with patch.multiple(module, EFFECTIVE_ROWS=constants.rows, SAME=constants.same):
        shares = estimate_shares(fit.first, held_out.scores, held_out.codes, 2, transfer=transfer)
    low, high = shares.interval()[1]
    before, after = (
        held_out.temperature * factor
        for factor in (transfer.before_self_training, transfer.after_self_training)
    )
    predicted = predict_codes(fit.final + find_border(fit.final, after, shares.mean))
    first_codes = predict_codes(fit.first + find_border(fit.first, before, shares.mean))
    gain = max(LEAST_ERROR_RATIO, 1 - constants.gain * fit.pseudo_per_label)
    expected = expect_error(fit.first, before, shares, first_codes).scale(gain)
    share, error = fit.truth.mean(), np.mean(predicted != fit.truth)
    off = abs(shares.mean[1] - share), abs(expected.error - error)
    return tuple(100 * value for value in (off[0], low <= share <= high, error, off[1]))


def print_both_directions(kind: str, fits: dict[str, list[Scores]], shipped, spread_work: Callable) -> None:
    """Print the constants of each corpus, and what they give on both."""
    columns = "log d | its spread | midpoint | before | after | self-training"
    print(f"## {kind}\n\n| constants of | fits | {columns} |\n| --- |{' ---: |' * 7}")
    all_constants = {corpus: estimate_constants(its_fits, spread_work) for corpus, its_fits in fits.items()}
    all_constants["the code"] = Constants(shipped)
    for name, constants in all_constants.items():
        transfer, n = constants.transfer, len(fits.get(name, []))
        values = transfer.log_separation_loss, transfer.log_separation_spread, transfer.midpoint_spread
        values += 1 / transfer.before_self_training, 1 / transfer.after_self_training, constants.gain
        print(f"| {name} | {n or ''} | {' | '.join(f'{value:.3f}' for value in values)} |")
    columns = "share off by | intervals that hold it, % | error, % | expected error off by"
    print(f"\n| reported on | constants of | {columns} |\n| --- | --- |{' ---: |' * 4}")
    for corpus, its_fits in fits.items():
        for name, constants in all_constants.items():
            values = list(spread_work(partial(try_constants, constants=constants), its_fits))
            print(f"| {corpus} | {name} | {' | '.join(f'{mean:.2f}' for mean in np.mean(values, axis=0))} |")
    print(flush=True)


def choose_rows_and_same(corpus: str, fits: Sequence[Scores], shipped, spread_work: Callable) -> None:
    """Print how good every value of `EFFECTIVE_ROWS` and `SAME` is, and those that the rule chooses."""
    is_same, means = np.array([fit.is_same for fit in fits]), {}
    print(f"{corpus}, {len(fits)} pairs, {is_same.sum()} of equal shares\n")
    print("| rows | probability of equal shares | share off by | intervals that hold it, % | error, % |")
    print("| ---: | ---: | ---: | ---: | ---: |")
    for rows in ROWS:
        for same in SAME:
            constants = Constants(shipped, rows=rows, same=same)
            values = np.array(list(spread_work(partial(try_constants, constants=constants), fits)))
            groups = [values[group].mean(axis=0) for group in (is_same, ~is_same) if group.any()]
            off, held, error, _ = means[rows, same] = np.mean(groups, axis=0)
            print(f"| {rows} | {same} | {off:.2f} | {held:.0f} | {error:.2f} |")
    rows = max([rows for rows in ROWS if means[rows, 0.5][1] >= 90], default=min(ROWS))
    same = min(SAME, key=lambda value: means[rows, value][0])
    print(f"\nchosen on {corpus}: {rows} rows, probability {same}\n", flush=True)


def list_pairs(corpus: str, args: argparse.Namespace) -> Iterator[tuple]:
    for pair in PAIRS[corpus][: args.pairs]:
        yield from ((corpus, pair, None, share) for share in args.shares)
        yield from ((corpus, pair, s, t) for s in args.source_shares for t in args.their_targets)


def list_several(corpus: str, args: argparse.Namespace) -> Iterator[tuple]:
    targets, shares = SEVERAL[corpus]
    yield from ((corpus, target, share) for target in targets[: args.targets] for share in shares)


def main() -> None:
    from undrift.method.constants import PAIR, SEVERAL_DOMAINS

    args = parse_arguments()
    with ProcessPoolExecutor(args.jobs, mp_context=get_context("spawn")) as pool:
        spread_work = partial(pool.map, chunksize=1)

        def fit_all(fit, cells) -> list[Scores]:
            return [scores for group in spread_work(partial(fit, args=args), cells) for scores in group]

        pairs = {corpus: fit_all(fit_pair, list_pairs(corpus, args)) for corpus in PAIRS}
        print_both_directions("Pairs of domains", pairs, PAIR, spread_work)
        for corpus, fits in pairs.items():
            choose_rows_and_same(corpus, fits, PAIR, spread_work)
        if args.targets:
            several = {corpus: fit_all(fit_several, list_several(corpus, args)) for corpus in SEVERAL}
            print_both_directions("Several domains", several, SEVERAL_DOMAINS, spread_work)


if __name__ == "__main__":
    main()
