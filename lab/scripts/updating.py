"""What `update` costs beside a refit: ten labels on 6,000 rows, as a line of JSON.

    python lab/scripts/updating.py [--rows 6000] [--features 5000] [--labels 10] [--device cpu]

A third of the rows are a labelled source, the others the target. `refit` learns layers and self-trains with
the labels; `update` and `update_new` add as many labels of rows that the fit has seen, and of others;
`loaded` is `update` of the model after saving and loading it, which is timed apart.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from harness import add_store, store

from undrift import MSDAClassifier, load_model, save_model


def make_rows(n: int, d: int, y: np.ndarray, seed: int, shift: int) -> sp.csr_matrix:
    """Rows of about fifty terms of length 5, of which some go with the class; `shift` moves which ones."""
    rng = np.random.RandomState(seed)
    frequency = 1 / np.arange(1, d + 1)
    rows = []
    for label in y:
        terms = rng.choice(d, 45, p=frequency / frequency.sum())
        rows.append(np.concatenate([terms, (rng.randint(100, size=5) * 2 + label + shift) % d]))
    indices = np.concatenate(rows)
    X = sp.csr_matrix((np.ones(len(indices), np.float32), indices, np.arange(n + 1) * 50), shape=(n, d))
    X.sum_duplicates()
    return (X.multiply(5 / np.sqrt(X.multiply(X).sum(axis=1)))).tocsr().astype(np.float32)


def measure(function, *arguments) -> tuple[object, float]:
    """Return what a function returns, and its seconds of the processor, all threads together."""
    began = time.process_time()
    result = function(*arguments)
    return result, time.process_time() - began


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, value in (("rows", 6000), ("features", 5000), ("labels", 10), ("layers", 5)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--device", default="cpu")
    add_store(parser)
    options = parser.parse_args()
    n_source, n_target, k = options.rows // 3, options.rows - options.rows // 3, options.labels
    rng = np.random.RandomState(0)
    y, truth = rng.randint(2, size=n_source), rng.randint(2, size=n_target + k)
    X = make_rows(n_source, options.features, y, 1, 0)
    Z = make_rows(n_target + k, options.features, truth, 2, 40)
    target, new = Z[:n_target], Z[n_target:]
    settings = {"n_layers": options.layers, "device": options.device, "random_state": 0}
    known = rng.permutation(n_target)[: 2 * k]
    labels = np.full(n_target, np.nan)
    labels[known[:k]] = truth[known[:k]]
    model = MSDAClassifier(**settings).fit(X, y, target)
    _, refit = measure(lambda: MSDAClassifier(**settings).fit(X, y, target, y_target=labels))
    _, update = measure(model.update, target[known[:k]], truth[known[:k]])
    _, again = measure(model.update, target[known[k:]], truth[known[k:]])
    _, update_new = measure(model.update, new, truth[n_target:])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.safetensors"
        save_model(model, path, updatable=True)
        n_bytes = os.path.getsize(path)
        save_model(model, path)
        loaded_bytes = os.path.getsize(path)
        save_model(model, path, updatable=True)
        loaded, load = measure(load_model, path)
        _, update_loaded = measure(loaded.update, target[known[:k]], 1 - truth[known[:k]])
    rows = [
        ("a fit with ten labels", refit), ("`update` by them", update), ("by ten more", again),
        ("by ten rows that the fit has not seen", update_new), ("reading the model from a file", load),
        ("`update` of that", update_loaded),
    ]  # fmt: skip
    store("updating", [{"what": what, "seconds of the processor": f"{spent:.3g}"} for what, spent in rows])
    summary = {"refit_seconds": refit, "update_seconds": update, "ratio": refit / update}
    sizes = {"file_bytes": n_bytes, "file_bytes_without_state": loaded_bytes}
    print(json.dumps({"rows": options.rows, "features": options.features, **summary, **sizes}))


if __name__ == "__main__":
    sys.exit(main())
