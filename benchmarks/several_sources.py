"""Error on a target domain from several labelled sources, by what a labelled row of each source counts.

Targets and sources are domains of fdu-mtl, drawn at random: three sources of unequal size, three of one
size, nine of unequal sizes. Target labels are used for scoring only. The ways to weigh:

    size    every labelled row alike
    near    the mean over a source's rows of the odds of being a target row (source_weight="near")
    equal   every source alike
    means   one over the squared distance between the means of the source and of the target, noise taken out
    rows    the odds of each row, not of its source
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from dataclasses import replace

import numpy as np
from harness import data_folder, report

SETTINGS = {
    "three unequal": (1000, 300, 100),
    "three alike": (500, 500, 500),
    "nine unequal": (600, 400, 300, 200, 150, 100, 80, 60, 40),
}
UNLABELLED, TARGET_ROWS = 300, 1500  # unlabelled rows of every source; rows of the target


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--terms", type=int, default=1500)
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--targets", type=int, default=5, help="drawn for each setting and seed")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--settings", nargs="+", default=list(SETTINGS), choices=list(SETTINGS))
    return parser.parse_args()


def draw_task(X: dict, y: dict, target: str, sizes: tuple[int, ...], rng: np.random.Generator) -> tuple:
    """Rows of all domains, labels (NaN where there are none), domain numbers, and the target's labels."""
    import scipy.sparse as sp

    others = [name for name in X if name != target]
    rows, labels, domain = [], [], []
    for number, (name, size) in enumerate(zip(rng.permutation(others)[: len(sizes)], sizes, strict=True)):
        labelled = rng.permutation(np.flatnonzero(~np.isnan(y[name])))[:size]
        rest = rng.permutation(np.setdiff1d(np.arange(len(y[name])), labelled))[:UNLABELLED]
        rows += [X[name][labelled], X[name][rest]]
        labels += [y[name][labelled], np.full(len(rest), np.nan)]
        domain += [number] * (len(labelled) + len(rest))
    known = rng.permutation(np.flatnonzero(~np.isnan(y[target])))[:TARGET_ROWS]
    rows.append(X[target][known])
    labels.append(np.full(len(known), np.nan))
    domain += [-1] * len(known)
    return sp.vstack(rows, format="csr"), np.concatenate(labels), np.array(domain), y[target][known]


def weigh_rows(rows, anchors) -> dict[str, np.ndarray]:
    """Weights of the labelled rows, in every way."""
    from undrift.classifier.selection import target_odds
    from undrift.classifier.source_weights import nearness

    domain, n = rows.domain, len(rows.domain)
    K = np.asarray((anchors.X @ anchors.X.T).todense(), dtype=float)
    odds = target_odds(K, n, 1 / np.diag(K).mean())
    distance = {
        source: mean_distance(rows.domains[source], rows.domains[-1]) for source in np.unique(domain).tolist()
    }
    weights = {
        "size": np.ones(n),
        "near": nearness(rows, np.random.RandomState(0)),
        "equal": 1 / np.bincount(domain)[domain],
        "means": np.array([1 / distance[source] for source in domain.tolist()]),
        "rows": odds,
    }
    return {name: weight / weight.mean() for name, weight in weights.items()}


def mean_distance(A, B) -> float:
    """Squared distance between the means of two samples, less what their sizes alone bring about."""
    means = [np.asarray(X.mean(axis=0)).ravel() for X in (A, B)]
    noise = [
        (X.multiply(X).sum() / X.shape[0] - m @ m) / (X.shape[0] - 1)
        for X, m in zip((A, B), means, strict=True)
    ]
    return max(float(((means[0] - means[1]) ** 2).sum()) - sum(noise), 1e-6)


def measure_errors(args: argparse.Namespace, task: tuple) -> dict[str, float]:
    """Error on the target with self-training, for every way to weigh, on one and the same stack."""
    from undrift import MSDAClassifier
    from undrift.classifier.linear import winners
    from undrift.classifier.self_training import SelfTraining, self_trained

    class Stack(MSDAClassifier):
        """Learns the representation and the inner products, and leaves the classifier to us."""

        def _keep_classifier(self, rows, codes, weight, search):
            self.rows, self.search = rows, search

    X, y, domain, truth = task
    model = Stack(args.layers, 0.7, 1.0, balance_layers=True, self_training=True, max_upper_rows=3000)
    model.set_params(random_state=0).fit(X, y, sample_domain=domain)
    best, problem = model.search.found, model.search.problem
    n = len(problem.codes)
    scored = {}
    for name, weight in weigh_rows(model.rows, model.search.anchors).items():
        dual, _ = self_trained(best.K, replace(problem, weight=weight), 1 / best.scale, SelfTraining())
        scored[name] = float(np.mean(winners(dual.scores(best.K[n:])) != truth))
    return scored


def main() -> None:
    from undrift.datasets import load_fdu_mtl
    from undrift.text.vectorizer import TermVectorizer

    args = parse_arguments()
    corpus = load_fdu_mtl(data_folder() / "fdu-mtl")
    terms = TermVectorizer(args.terms, length=5.0)
    terms.fit([text for domain in corpus.domains.values() for text in domain.texts[::3]])
    X = {name: terms.transform(domain.texts) for name, domain in corpus.domains.items()}
    y = {name: domain.y for name, domain in corpus.domains.items()}
    for setting in args.settings:
        sizes, errors = SETTINGS[setting], defaultdict(list)
        for seed in range(args.seeds):
            rng = np.random.default_rng(seed)
            for target in rng.permutation(list(X))[: args.targets].tolist():
                for name, error in measure_errors(args, draw_task(X, y, target, sizes, rng)).items():
                    errors[name].append(100 * error)
        gains = {name: np.array(values) - errors["size"] for name, values in errors.items()}
        records = {
            name: {
                "mean_error_percent": float(np.mean(values)),
                "against_size": float(gains[name].mean()),
                "standard_error": float(gains[name].std(ddof=1) / np.sqrt(len(values))),
            }
            for name, values in errors.items()
        }
        report(f"{setting} sources, {len(errors['size'])} tasks", records)


if __name__ == "__main__":
    main()
