"""Every file is a target of its own: class shares and decision threshold of a file, or of groups in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..text import DistilledText, TextAdapter
from .inputs import ShowStage
from .tables import Table, TableError, list_texts
from .terminal import list_shares

LEAST_KNOWN = 200  # rows with a known term from which a file is aligned
N_SAMPLED = 1500  # rows that stand for a file
MOST_GROUPS = 200


@dataclass(frozen=True)
class Group:
    """The classifier of a file, or of the rows with one value of a column."""

    classifier: Any
    reason: str | None = None  # why it predicts as fitted; None where it was aligned

    def describe(self, target: str) -> dict[str, Any]:
        """Return its class shares and expected error, ready for JSON."""
        classifier = self.classifier
        i = classifier.target_names_.index(target)
        shares, interval = classifier.target_shares_[i], classifier.target_shares_interval_[i]
        return {
            "aligned": self.reason is None,
            "as_fitted_because": self.reason,
            "target_shares": shares and {str(label): share for label, share in shares.items()},
            "target_shares_interval": interval and {str(label): [*ends] for label, ends in interval.items()},
            "expected_error": classifier.expected_error_[i],
        }


class Sample:
    """A random sample of documents, of bounded size."""

    def __init__(self, seed: int = 0) -> None:
        self.documents: list[str] = []
        self.n_rows = 0
        self._rng = np.random.default_rng(seed)

    def add(self, documents: Sequence[str]) -> None:
        """Add documents; each has the same chance to stay."""
        n_free = max(0, N_SAMPLED - len(self.documents))
        self.documents += documents[:n_free]
        self.n_rows += min(n_free, len(documents))
        for document in documents[n_free:]:
            self.n_rows += 1
            place = int(self._rng.integers(self.n_rows))
            if place < N_SAMPLED:
                self.documents[place] = document


def align_groups(
    job: Any,
    adapter: TextAdapter | DistilledText,
    target: str,
    table: Table,
    text: Sequence[str],
    show_stage: ShowStage,
) -> dict[str | None, Group]:
    """Return the classifier of a file, and of every group of its rows if a column makes groups.

    Reads the file once. The classifier of the name None is that of the whole file.
    """
    as_fitted = Group(adapter.classifier_, "--as-fitted")
    if not job.is_aligned:
        return _Same(as_fitted)
    if adapter.classifier_.batch_ is None:
        return _Same(Group(adapter.classifier_, "the model is not aligned with its target"))
    samples: dict[str | None, Sample] = {}
    for frame in table:
        names: Sequence[str | None] = list_texts(frame, job.by) if job.by else [None] * len(frame)
        documents = list_texts(frame, text)
        present = dict.fromkeys(names)
        for name in present:
            own = (
                documents
                if len(present) == 1
                else [d for d, n in zip(documents, names, strict=True) if n == name]
            )
            samples.setdefault(name, Sample()).add(own)
        if len(samples) > MOST_GROUPS:
            raise TableError(
                f"{table.path}: column {job.by!r} has over {MOST_GROUPS} different values: is it the column "
                "of groups?"
            )
        show_stage(f"estimating class shares of {table.path.name}", table.share_read)
    groups = {name: align_sample(adapter, target, sample) for name, sample in samples.items()}
    return {None: as_fitted, **groups}


class _Same(dict[str | None, Group]):
    """The same classifier for every group."""

    def __init__(self, group: Group) -> None:
        super().__init__({None: group})
        self._group = group

    def __missing__(self, name: str | None) -> Group:
        return self._group


def align_sample(adapter: TextAdapter | DistilledText, target: str, sample: Sample) -> Group:
    """Return the classifier that follows a sample of a file, or the one of the fit and a reason."""
    classifier = adapter.classifier_
    X = adapter.vectorizer_.transform(sample.documents)
    known = np.flatnonzero(np.diff(X.indptr) > 0)
    n_known = round(len(known) / max(len(sample.documents), 1) * sample.n_rows)
    if n_known < LEAST_KNOWN:
        return Group(classifier, f"{n_known:,} rows have a known word, and {LEAST_KNOWN} are needed")
    aligned = classifier.align(X[known], target=target)
    expected = aligned.expected_error_[aligned.target_names_.index(target)]
    if expected is None or expected["error"] is None:
        return Group(classifier, "its class shares cannot be known from its words")
    return Group(aligned)


def describe_groups(summary: dict[str, Any]) -> Iterator[str]:
    """Say the class shares and expected error of a file, or of its groups, or why there are none."""
    predicted = f"Predicted: {list_shares(summary['predicted_shares'])}."
    if "groups" not in summary:
        yield f"{predicted} {_describe_group(summary)}"
        return
    yield predicted
    for name, group in summary["groups"].items():
        yield f"{name}: {_describe_group(group)}"


def _describe_group(group: dict[str, Any]) -> str:
    if not group["aligned"]:
        return f"As fitted: {group['as_fitted_because']}."
    error = "about {error:.0%} wrong (90% interval {low:.0%} to {high:.0%}), expected".format(
        **group["expected_error"]
    )
    shares = list_shares(group["target_shares"], group["target_shares_interval"])
    return f"Class shares of this file: {shares}; {error}."
