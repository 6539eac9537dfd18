"""Small tasks with pinned results: predictions, scores, shares and expected errors of the whole method.

`python -m tests.helpers.pin_tasks` estimates the pins again and writes `tests/data/pins.json`. Do so only
where a change of the method is meant, and say in the commit which numbers moved and why.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from scipy import sparse

from undrift import TermVectorizer, TextAdapter
from undrift.datasets import make_reviews

from .exact import ExactClassifier

PINS = Path(__file__).parent.parent / "data" / "pins.json"


def new_classifier() -> Any:
    """Return the default classifier in float64."""
    return ExactClassifier(random_state=0)


class ExactAdapter(TextAdapter):
    """The adapter with rows in float64."""

    def new_vectorizer(self) -> TermVectorizer:
        """Return the vectoriser with this adapter's settings, not fitted."""
        return super().new_vectorizer().set_params(dtype="float64")


def new_adapter() -> Any:
    """Return that classifier behind a vectoriser of 400 terms."""
    return ExactAdapter(400, tokens="words", classifier=new_classifier())


def name_targets(targets: dict[str, Any]) -> Any:
    """Return targets as `fit` takes them."""
    return targets if len(targets) > 1 else next(iter(targets.values()))


def score_target(model: Any, rows: Any, targets: dict[str, Any], name: str) -> np.ndarray:
    """Return the decision scores of rows of the target `name`."""
    return model.decision_function(rows, target=name if len(targets) > 1 else None)


def fit_counts(folder: Path) -> tuple[Any, dict[str, Any]]:
    """Fit reviews of books as counts of 300 terms, with kitchen reviews as the target."""
    X, y = _read_counts(folder, "books_train", 300)
    target, _ = _read_counts(folder, "kitchen_train", 300)
    targets = {"kitchen": target}
    return new_classifier().fit(X, y, name_targets(targets)), targets


def fit_texts(folder: Path, source: str, shares: dict[str, float]) -> tuple[Any, dict[str, Any]]:
    """Fit documents of `source`, with targets that have the given share of positive documents."""
    documents, y = _read_documents(folder, source, 800, 0.5)
    targets = {name: _read_documents(folder, name, 600, share)[0] for name, share in shares.items()}
    model = new_adapter()
    return model.fit(documents, y, name_targets(targets)), targets


def fit_reviews(folder: Path) -> tuple[Any, dict[str, Any]]:
    """Fit generated reviews of books, with camping gear as the target."""
    del folder
    corpus = make_reviews(1000, domains=("books", "camping"), random_state=3)
    books, camping = corpus.domains["books"], corpus.domains["camping"]
    documents = [books.texts[i] for i in books.train]
    targets = {"camping": list(camping.texts)}
    model = new_adapter()
    return model.fit(documents, books.y[books.train], name_targets(targets)), targets


TASKS = {
    "counts": fit_counts,
    "two targets": lambda folder: fit_texts(folder, "books", {"dvd": 0.5, "music": 0.4}),
    "uneven": lambda folder: fit_texts(folder, "electronics", {"kitchen_housewares": 0.85}),
    "generated": fit_reviews,
}


def measure(task: str, folder: Path) -> dict[str, Any]:
    """Fit one task and return its numbers, JSON-ready."""
    model, targets = TASKS[task](folder)
    scores = {name: score_target(model, rows, targets, name) for name, rows in targets.items()}
    return {
        "predictions": {name: "".join("01"[int(score > 0)] for score in scores[name]) for name in scores},
        "scores": {name: scores[name][:40].tolist() for name in scores},
        "sum_of_squares": {name: float(scores[name] @ scores[name]) for name in scores},
        "shares": [list(shares.values()) for shares in model.target_shares_],
        "intervals": [[list(pair) for pair in shares.values()] for shares in model.target_shares_interval_],
        "expected_error": model.expected_error_,
    }


def measure_demo() -> dict[str, Any]:
    """Run `undrift demo` and return the numbers that it tells."""
    with TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "undrift", "demo", "--json", "--out", folder]
        printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    (target,) = json.loads(printed)["targets"]
    exact = ("scored", "adapted_error", "source_only_error", "baseline_error", "fell_back")
    estimated = ("predicted_shares", "target_shares", "expected_error")
    return {
        "exact": {name: target[name] for name in exact},
        "estimated": {name: target[name] for name in estimated},
    }


def _read_counts(folder: Path, part: str, n_terms: int) -> tuple[sparse.csr_array, np.ndarray]:
    """Return the first 500 rows of a file of amazon-bow: counts of its `n_terms` most frequent terms."""
    cells, labels = [], []
    with gzip.open(folder / "amazon-bow" / f"{part}.svmlight.gz", "rt") as lines:
        for i, line in zip(range(500), lines, strict=False):
            label, *pairs = line.split()
            labels.append(int(label))
            cells += [(i, *map(int, pair.split(":"))) for pair in pairs]
    rows, columns, counts = np.array([cell for cell in cells if cell[1] < n_terms]).T
    X = sparse.csr_array((counts.astype(float), (rows, columns)), shape=(len(labels), n_terms))
    return X, np.array(labels)


def _read_documents(folder: Path, domain: str, n: int, share: float) -> tuple[list[str], np.ndarray]:
    """Return `n` documents of a domain of fdu-mtl and their labels, `share` of them positive."""
    with gzip.open(
        folder / "fdu-mtl" / f"{domain}.task.train.gz", "rt", encoding="utf-8", errors="replace"
    ) as lines:
        pairs = [line.rstrip("\n").split("\t", 1) for line in lines if "\t" in line]
    n_positive = round(n * share)
    positive = [text for label, text in pairs if label == "1"][:n_positive]
    negative = [text for label, text in pairs if label == "0"][: n - n_positive]
    return positive + negative, np.repeat([1, 0], [len(positive), len(negative)])


def main() -> None:
    """Estimate all pins and write them."""
    folder = Path(os.environ["UNDRIFT_DATA"])
    pins = {task: measure(task, folder) for task in TASKS} | {"demo": measure_demo()}
    PINS.write_text(json.dumps(pins, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
