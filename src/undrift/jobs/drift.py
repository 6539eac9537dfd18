"""Whether new rows are what a model was adapted to: a batch beside what the fit saw of the target.

The mean of n rows of the target differs from the stored mean of N rows by chance: for a number per row with
standard deviation s by ``s sqrt(1/n + 1/N)``; for whole rows with covariance S the squared distance of the
means has the mean ``tr S (1/n + 1/N)`` and, relative to it, the variance ``2 tr(S^2) / (tr S)^2``. A gamma
distribution with these moments gives the limit. Predicted shares of rows that self-training has seen are not
quite those of new rows, so that a change of them counts only if the mean row has moved too, along the weights
of the classes. A difference counts as drift if it is beyond chance *and*
large enough to matter. `benchmarks/drift.py` measures false alarms, and what is detected.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import stats
from sklearn.preprocessing import normalize

from .._core import Rows as Matrix
from ..explain import effective_weights
from ..text import TextAdapter
from .predict import Predictions
from .tasks import has_classes

FALSE_ALARMS = 0.005  # of every measure, by chance; the measures are several
SHARE_ALARMS = 0.01  # of the class shares, which have the least power
# Differences below these do not count, however certain they are. New rows are also less certain than those
# of the fit, which self-training has seen.
LEAST_UNSEEN, LEAST_EMPTY, LEAST_SHARE, LEAST_ERROR, LEAST_DISTANCE = 0.03, 0.02, 0.05, 0.05, 0.0005
GRAM_ROWS = 1000  # from which the variance of the distance is taken
HEAD_DOCUMENTS = 1000  # from which the share of unseen terms is taken


def describe_target(adapter: TextAdapter, X: Matrix, documents: Sequence[str]) -> dict[str, Any]:
    """Return what a later check needs of a target, from a sample of its rows and of its documents."""
    X, unseen = normalize(X), measure_unseen(adapter, documents[:HEAD_DOCUMENTS])
    mean, few = np.asarray(X.mean(axis=0)).ravel(), X[:GRAM_ROWS]
    gram = (few @ few.T).toarray()
    gram = gram - gram.mean(axis=0) - gram.mean(axis=1)[:, None] + gram.mean()
    n = len(gram)
    trace = float(np.trace(gram)) / max(n - 1, 1)
    directions = effective_weights(adapter.classifier_)
    square = float((gram**2).sum() - (np.diag(gram) ** 2).sum()) / max(n * (n - 1), 1)
    return {
        "n_rows": X.shape[0],
        "mean": mean.astype(np.float32),
        "spread": trace,
        "relative_variance": 2 * square / max(trace, 1e-12) ** 2,
        "directions": directions.astype(np.float32),
        "direction_spread": np.asarray(X @ directions).std(axis=0),
        "empty": float((np.diff(X.indptr) == 0).mean()),
        "n_documents": len(unseen),
        "unseen": float(unseen.mean()) if len(unseen) else 0.0,
        "unseen_spread": float(unseen.std()) if len(unseen) else 0.0,
    }


def add_predictions(
    statistics: dict[str, Any], sums: np.ndarray, n_classes: int, n_rows: int | None = None
) -> dict[str, Any]:
    """Add what was predicted for a target; `sums` are those of :meth:`Predictions.count`.

    The rows of a target are as many as its predictions of all classes; not with tags.
    """
    counts, (doubt, squares) = sums[:n_classes], sums[n_classes + 1 :]
    n = max(counts.sum() if n_rows is None else n_rows, 1)
    variance = max(squares / n - (doubt / n) ** 2, 0.0)
    more = {"n_predicted": int(n), "shares": counts / n, "doubt": doubt / n, "doubt_spread": variance**0.5}
    return {name: float(v) if isinstance(v, np.floating) else v for name, v in (statistics | more).items()}


def measure_unseen(adapter: TextAdapter, documents: Iterable[str]) -> np.ndarray:
    """Share of the terms of every document with terms that are not in the vocabulary."""
    known, vectorizer = set(adapter.terms_), adapter.vectorizer_
    analyse = getattr(vectorizer, "build_analyser", None) or vectorizer.build_analyzer
    analyse = analyse()
    terms = [analyse(document) for document in documents]
    return np.array([sum(term not in known for term in each) / len(each) for each in terms if each])


@dataclass
class Batch:
    """Rows that are compared with the target `number` of the fit: sums, added to block by block."""

    adapter: TextAdapter
    number: int | None = None
    n_rows: int = 0
    n_empty: int = 0
    terms: Any = 0.0  # (d,) sum of the rows, each of length 1
    counts: Any = 0  # of predictions, as in `Predictions.count`
    unseen: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Refuse a model that stored nothing of its target, or stored several and none is chosen."""
        stored = getattr(self.adapter, "target_statistics_", [])
        if not stored:
            raise ValueError(
                "--check compares with what was seen in the fit, and the model holds nothing of it: save it "
                "with `undrift adapt --model` of this version"
            )
        if self.number is None and len(stored) > 1:
            names = ", ".join(self.adapter.domain_names_)
            raise ValueError(
                f"--check needs to know the target of the rows: choose one with --domain: {names}"
            )

    @property
    def position(self) -> int:
        """Position of the target among those of the fit."""
        return 0 if self.number is None else -1 - self.number

    @property
    def statistics(self) -> dict[str, Any]:
        """What was stored of the target."""
        return self.adapter.target_statistics_[self.position]

    def add(self, X: Matrix, documents: Sequence[str], predictions: Predictions) -> None:
        """Add a block of rows."""
        self.n_rows += X.shape[0]
        self.n_empty += int((predictions.n_known == 0).sum())
        self.terms = self.terms + np.asarray(normalize(X).sum(axis=0)).ravel()
        self.counts = self.counts + predictions.count()
        self.unseen += measure_unseen(self.adapter, documents).tolist()


@dataclass(frozen=True)
class Measure:
    """A number of a batch beside that of the fit, and the limit beyond which it is drift."""

    batch: float
    fit: float
    limit: float

    @property
    def is_beyond(self) -> bool:
        """Tell whether the batch is on the other side of the limit than the fit."""
        return self.batch > self.limit if self.limit >= self.fit else self.batch < self.limit


def check_batch(batch: Batch) -> dict[str, Any]:
    """Compare a batch with the target of the fit; JSON-ready, with `drifted` and the `reasons`.

    The error to expect of the batch is that of the target, times how much less probable its predictions are.
    """
    fit, n, labels = batch.statistics, max(batch.n_rows, 1), batch.adapter.classes_.tolist()
    expected = batch.adapter.classifier_.expected_error_[batch.position]
    n_classes = len(labels)
    reach = float(stats.norm.ppf(1 - FALSE_ALARMS))

    def beyond(value: float, spread: float, n_fit: int, least: float) -> float:
        return value + max(least, reach * spread * (1 / n + 1 / max(n_fit, 1)) ** 0.5)

    unseen = float(np.mean(batch.unseen)) if batch.unseen else float(fit["n_documents"] > 0)
    empty_spread = ((fit["empty"] + 1 / fit["n_rows"]) * (1 - fit["empty"])) ** 0.5
    doubt = batch.counts[n_classes + 1] / n
    scale = 1.0 if expected is None else expected["error"] / max(fit["doubt"], 1e-6)
    measures = {
        "unseen_terms": Measure(
            unseen,
            fit["unseen"],
            beyond(fit["unseen"], fit["unseen_spread"], fit["n_documents"], LEAST_UNSEEN),
        ),
        "empty_rows": Measure(
            batch.n_empty / n, fit["empty"], beyond(fit["empty"], empty_spread, fit["n_rows"], LEAST_EMPTY)
        ),
        "distance": _measure_distance(batch, fit),
        "expected_error": Measure(
            min(scale * doubt, 1 - 1 / max(n_classes, 2)),  # no worse than chance
            scale * fit["doubt"],
            scale * beyond(fit["doubt"], fit["doubt_spread"], fit["n_predicted"], LEAST_ERROR),
        ),
    }
    has_known = batch.n_empty < n  # of rows without a known term nothing is predicted
    if not has_classes(batch.adapter.classifier_) or not has_known:
        del measures["expected_error"]
    shares = {
        str(label): measure
        for label, measure in zip(labels, _measure_shares(batch.counts[:n_classes] / n, n, fit), strict=True)
    }
    reasons = [_MESSAGES[name].format(m=measure) for name, measure in measures.items() if measure.is_beyond]
    reasons += [
        f"{measure.batch:.1%} of the predictions are {label!r}, and {measure.fit:.1%} in the fit: "
        "the class shares differ, and predictions assume those of the fit"
        for (label, measure), has_moved in zip(shares.items(), _has_moved(batch, fit, n_classes), strict=True)
        if measure.is_beyond and has_moved and has_known
    ]
    return {
        "drifted": bool(reasons),
        "reasons": reasons,
        "expected_error": None,
        **{name: vars(measure) for name, measure in measures.items()},
        "predicted_shares": {label: vars(measure) for label, measure in shares.items() if has_known},
    }


_MESSAGES = {
    "unseen_terms": "{m.batch:.0%} of the terms are unknown to the model, and {m.fit:.0%} in the fit",
    "empty_rows": "{m.batch:.1%} of the rows have no term that the model knows, and {m.fit:.1%} in the fit",
    "distance": "the rows differ from those of the fit {m.batch:.2f} times as much as chance explains "
    "(limit {m.limit:.2f})",
    "expected_error": "the expected error is {m.batch:.1%}, and {m.fit:.1%} in the fit",
}


def _measure_distance(batch: Batch, fit: dict[str, Any]) -> Measure:
    """Squared distance of the means, over what is expected by chance; 1 stands for the fit."""
    n, shape = max(batch.n_rows, 1), 1 / max(fit["relative_variance"], 1e-9)
    chance = 1 / n + 1 / fit["n_rows"]
    square = float(((batch.terms / n - fit["mean"]) ** 2).sum())
    by_chance = float(stats.gamma.ppf(1 - FALSE_ALARMS, shape, scale=1 / shape))
    return Measure(
        square / max(fit["spread"] * chance, 1e-12), 1.0, max(by_chance, 1 + LEAST_DISTANCE / chance)
    )


def _measure_shares(shares: np.ndarray, n: int, fit: dict[str, Any]) -> list[Measure]:
    """Predicted class shares beside those of the fit, with a limit above or below."""
    smoothed = (fit["shares"] * fit["n_predicted"] + 1) / (fit["n_predicted"] + 2)
    reach = 2 * np.sqrt(smoothed * (1 - smoothed) * (1 / n + 1 / fit["n_predicted"]))
    limits = np.maximum(LEAST_SHARE, reach)
    limits = np.clip(fit["shares"] + np.where(shares >= fit["shares"], limits, -limits), 0, 1)
    return [Measure(*map(float, values)) for values in zip(shares, fit["shares"], limits, strict=True)]


def _has_moved(batch: Batch, fit: dict[str, Any], n_classes: int) -> list[bool]:
    """Tell for every class whether the mean row has moved along its weights, more than by chance."""
    n = max(batch.n_rows, 1)
    moved = (batch.terms / n - fit["mean"]) @ fit["directions"]
    z = np.abs(moved) / np.maximum(fit["direction_spread"], 1e-12) / np.sqrt(1 / n + 1 / fit["n_rows"])
    reach = stats.norm.ppf(1 - SHARE_ALARMS / 2 / len(z))
    return np.broadcast_to(z > reach, n_classes).tolist()
