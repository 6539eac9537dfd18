"""Small tasks with pinned results: predictions, scores, shares and expected errors of the whole method.

`python -m tests.helpers.pin_tasks` estimates the pins again and writes `tests/data/pins.json`. Do so only
where a change of the method is meant, and say in the commit which numbers moved and why. It needs the
public corpora, in the folder that UNDRIFT_DATA names.
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
from sklearn.feature_extraction.text import CountVectorizer

from undrift import TermVectorizer, TextAdapter
from undrift.datasets import make_reviews

from .corpus import PAIRS, read_domain
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
    documents, y = read_documents(folder, source, 800, 0.5)
    targets = {name: read_documents(folder, name, 600, share)[0] for name, share in shares.items()}
    model = new_adapter()
    return model.fit(documents, y, name_targets(targets)), targets


def fit_messages(pair: str) -> tuple[Any, dict[str, Any]]:
    """Fit messages to one company of the small corpus, with those to another as the target."""
    source, target = PAIRS[pair]
    documents, labels = read_domain(source)
    targets = {target: read_domain(target)[0]}
    model = new_adapter()
    return model.fit(documents, labels, name_targets(targets)), targets


def fit_uneven_messages() -> tuple[Any, dict[str, Any]]:
    """Fit counts of terms of messages to a hotel, with a garage as it is and with few complaints."""
    documents, labels = read_domain("hotel")
    texts, said = read_domain("garage")
    complaints = [text for text, label in zip(texts, said, strict=True) if label == "complaint"]
    praise = [text for text, label in zip(texts, said, strict=True) if label == "praise"]
    domains = [documents, texts, complaints[:25] + praise]
    vectorizer = CountVectorizer(max_features=150).fit(documents + texts)
    X, *rows = (sparse.csr_array(vectorizer.transform(domain), dtype=float) for domain in domains)
    targets = dict(zip(("garage", "praised"), rows, strict=True))
    return new_classifier().fit(X, labels, targets), targets


def fit_reviews() -> tuple[Any, dict[str, Any]]:
    """Fit generated reviews of books, with camping gear as the target."""
    corpus = make_reviews(1000, domains=("books", "camping"), random_state=3)
    books, camping = corpus.domains["books"], corpus.domains["camping"]
    documents = [books.texts[i] for i in books.train]
    targets = {"camping": list(camping.texts)}
    model = new_adapter()
    return model.fit(documents, books.y[books.train], name_targets(targets)), targets


# tasks on rows of this repository, and on the public corpora of a folder
TASKS = {
    "two classes": lambda: fit_messages("two classes"),
    "three classes": lambda: fit_messages("three classes"),
    "counts, two targets": fit_uneven_messages,
    "generated": fit_reviews,
}
CORPUS_TASKS = {
    "counts": fit_counts,
    "two targets": lambda folder: fit_texts(folder, "books", {"dvd": 0.5, "music": 0.4}),
    "uneven": lambda folder: fit_texts(folder, "electronics", {"kitchen_housewares": 0.85}),
}


def measure(model: Any, targets: dict[str, Any]) -> dict[str, Any]:
    """Return the numbers of a fitted task, JSON-ready."""
    scores = {name: score_target(model, rows, targets, name) for name, rows in targets.items()}
    return {
        "predictions": {name: number_classes(scores[name]) for name in scores},
        "scores": {name: scores[name][:40].tolist() for name in scores},
        "sum_of_squares": {name: float(np.sum(scores[name] ** 2)) for name in scores},
        "shares": [list(shares.values()) for shares in model.target_shares_],
        "intervals": [[list(pair) for pair in shares.values()] for shares in model.target_shares_interval_],
        "expected_error": model.expected_error_,
    }


def number_classes(scores: np.ndarray) -> str:
    """Return the number of the predicted class of every row, one digit each."""
    numbers = scores.argmax(axis=1) if scores.ndim == 2 else (scores > 0).astype(int)
    return "".join(map(str, numbers))


def measure_demo() -> dict[str, Any]:
    """Run `undrift demo` and return the numbers that it tells."""
    with TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "undrift", "demo", "--json", "--out", folder]
        printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    (target,) = json.loads(printed)["targets"]
    exact = ("scored", "adapted_error", "baseline_error")
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


def read_documents(folder: Path, domain: str, n: int, share: float) -> tuple[list[str], np.ndarray]:
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
    pins = {task: measure(*fit()) for task, fit in TASKS.items()}
    pins |= {task: measure(*fit(folder)) for task, fit in CORPUS_TASKS.items()}
    pins["demo"] = measure_demo()
    PINS.write_text(json.dumps(pins, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
