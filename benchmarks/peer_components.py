"""What skada's and adapt's methods start from: logistic regression on the components they get, not adapted.

    python benchmarks/peer_components.py [--components 100] [--variants 'amazon*']

Samples, rows, components and the search for C are those of paper/peers.toml; `all` are the tf-idf rows.
The last line is the mean error over the tasks of each variant, as JSON.
"""

from __future__ import annotations

import argparse
import json
from fnmatch import fnmatchcase
from statistics import fmean

import numpy as np

from undrift.bench import load_plan
from undrift.bench.corpora import load_corpus, part_labels, part_rows, sample_target
from undrift.bench.methods.baselines import weight_tfidf
from undrift.bench.methods.peers import C_GRID, WIDE_GRID, ChosenLogistic, reduce_rows


def measure_error(corpus, source: str, target: str, n_components: int | None) -> float:
    """Train on the source's rows, test on all rows of the target; both as they are, or their components."""
    X = corpus.domains[source].X[part_rows(corpus, (source, "train"))]
    X_target, y = corpus.domains[target].X, part_labels(corpus, source, "train")
    if n_components is not None:
        _, X, X_target = reduce_rows(n_components, X, X_target, seed=0)
    model = ChosenLogistic(C_GRID if n_components is None else WIDE_GRID).fit(X, y)
    return float(np.mean(model.predict(X_target) != np.asarray(corpus.domains[target].y)))


def main() -> None:
    """Print the error of every task, and the means."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--components", type=int, default=100)
    parser.add_argument("--variants", default="amazon*", help="pattern of their names")
    parser.add_argument("--plan", default="peers")
    parser.add_argument("--data", help="folder of the corpora; default: UNDRIFT_DATA")
    options = parser.parse_args()
    plan, means = load_plan(options.plan), {}
    for variant in plan.variants:
        if not fnmatchcase(variant.name, options.variants):
            continue
        whole = load_corpus(plan.corpus_of(variant), options.data, plan.corpus_of(variant).max_features)
        errors: dict[str, list[float]] = {"components": [], "all": []}
        for target in variant.targets or whole.domains:
            sample = sample_target(whole, target, variant.target_share, variant.max_target_rows, plan.seed)
            rows = weight_tfidf(sample)
            for source in [name for name in rows.domains if name != target]:
                errors["components"].append(measure_error(rows, source, target, options.components))
                errors["all"].append(measure_error(rows, source, target, None))
                last = {name: round(100 * values[-1], 1) for name, values in errors.items()}
                print(f"{variant.name} {source}->{target}: {last}", flush=True)
        means[variant.name] = {name: round(100 * fmean(values), 2) for name, values in errors.items()}
    print(json.dumps(means))


if __name__ == "__main__":
    main()
