"""Rows of an adapt job on a Dask cluster, whose workers read and write the files. Needs the `dask` extra."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from ..distributed import OnDask, compute, connect, send_model
from ..errors import warn
from ..files import make_hidden_folder
from ..text import SAMPLE_DOCUMENTS, TermVectorizer, TextAdapter, interleave
from .inputs import (
    AdaptJob,
    AddedColumns,
    JobDomain,
    ShowStage,
    is_folder,
    name_domains,
    number_sources,
    open_rows,
    parse_label,
)
from .predict import WrittenPredictions, predict_rows
from .scoring import count_mistakes
from .shards import (
    Output,
    Shard,
    ShardSummary,
    count_exact_frequencies,
    predict_shards,
    survey_shards,
    vectorize_shards,
    write_shards,
)
from .tables import TableError, join_kinds, shard_paths, write_table

HEAD_DOCUMENTS = 20_000  # of each domain, from which the share of unseen words is taken


@contextmanager
def open_cluster_rows(
    address: str, job: AdaptJob, adapter: TextAdapter, show_stage: ShowStage
) -> Iterator[ClusterRows]:
    """Connect to a cluster, and let its workers read the files of a job."""
    follow = getattr(show_stage, "follow", nullcontext)
    with connect(address) as client, follow(client):
        yield ClusterRows(job, adapter.new_vectorizer())


class ClusterRows:
    """Rows of a job on a cluster: most documents stay with the workers; counts and labels come here."""

    source_rows: OnDask
    target_rows: list[OnDask]

    def __init__(self, job: AdaptJob, vectorizer: TermVectorizer) -> None:
        self.job, self.vectorizer = job, vectorizer
        paths = [*job.sources, *job.targets]
        columns = [job.label] * len(job.sources) + [job.target_label] * len(job.targets)
        shards = [_list_shards(path, job, label) for path, label in zip(paths, columns, strict=True)]
        every_shard = [shard for domain_shards in shards for shard in domain_shards]
        heads = [islice(domain_shards[0].documents(), SAMPLE_DOCUMENTS) for domain_shards in shards]
        vectorizer.choose_tokens(interleave(heads))
        n_head = -(-HEAD_DOCUMENTS // max(map(len, shards)))
        surveyed, frequencies = survey_shards(every_shard, vectorizer, n_head)
        for message in dict.fromkeys(message for item in surveyed for message in item.warnings):
            warn(message)
        rest = iter(surveyed)
        self.surveyed = [[next(rest) for _ in domain_shards] for domain_shards in shards]
        domains = [
            _describe_domain(path, items, label)
            for path, items, label in zip(paths, self.surveyed, columns, strict=True)
        ]
        for domain in domains:
            if domain.n_rows == 0:
                open_rows(domain.path, job.reading).require_rows()
        self.sources, self.targets = domains[: len(job.sources)], domains[len(job.sources) :]
        vectorizer.fit_frequencies(count_exact_frequencies(every_shard, vectorizer, frequencies))

    def fit(self, adapter: TextAdapter, labels: np.ndarray) -> None:
        """Fit the adapter on all domains; a single source and its targets keep no list of all rows here."""
        n_sources = len(self.sources)
        of_sources = [item for items in self.surveyed[:n_sources] for item in items]
        self.source_rows = vectorize_shards(of_sources, self.vectorizer)
        self.target_rows = [vectorize_shards(items, self.vectorizer) for items in self.surveyed[n_sources:]]
        adapter.vectorizer_ = self.vectorizer
        targets = dict(zip(name_domains(self.job.targets), self.target_rows, strict=True))
        options = {"sample_domain": number_sources(self.sources), "keeps_state": self.job.needs_state}
        adapter.fit_rows(self.source_rows, labels, targets, **options)

    def count_mistakes(self, i: int, *models: Any) -> np.ndarray:
        """Sum over the labelled rows of a target, and over those that each model gets wrong."""
        truth = self.targets[i].truth
        count = partial(count_mistakes, target=name_domains(self.job.targets)[i])
        sent = [send_model(model) for model in models]
        return compute(self.target_rows[i].sum_with_values(count, "mistakes", truth, *sent))[0]

    @contextmanager
    def write_predictions(
        self, adapter: TextAdapter, added: AddedColumns, kinds: dict[str, Any]
    ) -> Iterator[WrittenPredictions]:
        """Write predictions, to one file or a file for each shard, put in place when the context ends."""
        tasks = []  # shards of each target, and how they are predicted
        for i, surveyed in enumerate(self.surveyed[len(self.sources) :]):
            name = name_domains(self.job.targets)[i]
            predict = partial(_predict_documents, added=added, name=name)
            tasks.append(([item.shard for item in surveyed], predict))
        if is_folder(self.job.out):
            with _write_folder(self.job.out, adapter, tasks, kinds) as counts:
                yield WrittenPredictions(counts)
            return
        counts = []
        with write_table(self.job.out, kinds) as write:
            for shards, predict in tasks:
                total: Any = 0
                for shard, predicted in zip(shards, predict_shards(shards, adapter, predict), strict=True):
                    columns, shard_counts = compute(predicted)[0]
                    _write_rows(write, shard, columns)
                    total = total + shard_counts
                counts.append(total)
            yield WrittenPredictions(counts)


def _list_shards(path: Path, job: AdaptJob, label: str | None) -> list[Shard]:
    needs_keys = job.labels is not None or job.target_label is not None
    return [Shard(shard.resolve(), job.text, label, job.reading, needs_keys) for shard in shard_paths(path)]


def _describe_domain(path: Path, surveyed: Sequence[ShardSummary], label: str | None) -> JobDomain:
    """Add up what the workers say of the shards of a domain."""
    labels = [parse_label(value) for item in surveyed for value in item.labels]
    return JobDomain(
        path,
        join_kinds(item.kinds for item in surveyed),
        n_rows=sum(item.n_rows for item in surveyed),
        n_empty=sum(item.n_empty for item in surveyed),
        n_bad=sum(item.n_bad for item in surveyed),
        labels=None if label is None else labels,
        documents=[document for item in surveyed for document in item.head],
        stored_keys=[key for item in surveyed for key in item.keys],
    )


def _predict_documents(
    model: TextAdapter, documents: Sequence[str], added: AddedColumns, name: str
) -> tuple[dict[str, list[Any]], np.ndarray]:
    """On a worker: return the columns that predictions add to documents of a target, and counts."""
    predictions = predict_rows(model.classifier_, model.vectorizer_.transform(documents), name)
    return predictions.columns(added, name), predictions.count(added.min_confidence)


def _write_rows(write: Any, shard: Shard, added: dict[str, list[Any]]) -> None:
    """Append a shard, with the columns that a worker predicted for all of its rows."""
    start = 0
    for frame in shard.table():
        stop = start + len(frame)
        write(frame.assign(**{name: values[start:stop] for name, values in added.items()}))
        start = stop


@contextmanager
def _write_folder(out: Path, model: Any, tasks: list, kinds: dict[str, Any]) -> Iterator[list[np.ndarray]]:
    """Let the workers write into a hidden folder, whose files are moved to `out` when the context ends.

    Gives the counts of every target. The hidden folder is removed in any case, with whatever a killed
    worker left in it.
    """
    names = [shard.path.name for shards, _ in tasks for shard in shards]
    repeated = {name for name in names if names.count(name) > 1}
    if repeated:
        raise TableError(f"two shards are called {min(repeated)}, which cannot both be written to {out}")
    with make_hidden_folder(out) as hidden:
        counts = []
        for shards, predict in tasks:
            outputs = [Output(hidden.resolve() / shard.path.name, kinds) for shard in shards]
            counts.append(write_shards(shards, outputs, model, predict))
        yield counts
        for name in names:
            (hidden / name).replace(out / name)
