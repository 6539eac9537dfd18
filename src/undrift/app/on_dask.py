"""Rows of an adapt job on a Dask cluster, whose workers read and write the files. Needs the `dask` extra."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import islice
from operator import getitem
from pathlib import Path
from typing import Any

import numpy as np
from dask.delayed import Delayed
from dask.sizeof import sizeof
from scipy import sparse

from ..distributed import (
    BlockFacts,
    OnDask,
    Stage,
    assign_workers,
    compute,
    connect,
    literal,
    n_bytes,
    persist,
    send_model,
    tree_sum,
)
from ..errors import UndriftWarning, warn
from ..text import (
    SAMPLE_DOCUMENTS,
    DocumentFrequencies,
    TermVectorizer,
    TextAdapter,
    hash_text,
    interleave,
)
from .domains import JobDomain, name_domains, open_rows, parse_label
from .job import Job, Reading, ShowStage
from .predict import predict_rows
from .rows import LocalRows, count_mistakes
from .tables import Table, join_kinds, list_texts, list_values, shard_paths, write_table

sizeof.register(DocumentFrequencies, n_bytes)

BLOCK_DOCUMENTS = 4096  # documents that are rows at the same time in prediction


@dataclass(frozen=True)
class Shard:
    """One file of a table; its path must lead to it from every worker."""

    path: Path
    text: Sequence[str]
    label: str | None = None  # a column that must be there, if given
    reading: Reading = field(default_factory=Reading)
    needs_keys: bool = False  # whether the client must tell which texts are the same

    def table(self) -> Table:
        """Open the file, once its columns are known to be there."""
        return open_rows(self.path, self.reading, [*self.text, *filter(None, [self.label])])

    def documents(self) -> Iterator[str]:
        """Read the texts, in bounded memory."""
        for frame in self.table():
            yield from list_texts(frame, self.text)


@dataclass(frozen=True)
class ShardSummary:
    """What one reading of a shard gave, as far as the client needs it."""

    shard: Shard
    kinds: dict[str, Any]
    n_rows: int
    n_bad: int
    n_empty: int  # documents without text
    labels: list[Any]  # values of the label column; empty without one
    head: list[str]  # its first documents
    warnings: list[str]
    keys: list[int]  # `hash_text` of every document, if the shard needs it


def _survey_shard(
    shard: Shard, vectorizer: TermVectorizer, n_head: int
) -> tuple[ShardSummary, DocumentFrequencies]:
    """On a worker: read a shard once, for its document frequencies and whatever else the client needs."""
    labels: list[Any] = []
    head: list[str] = []
    keys: list[int] = []
    n_empty = 0
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UndriftWarning)
        table = shard.table()

        def documents() -> Iterator[str]:
            nonlocal n_empty
            for frame in table:
                texts = list_texts(frame, shard.text)
                n_empty += sum(not text.strip() for text in texts)
                head.extend(islice(texts, max(0, n_head - len(head))))
                labels.extend(list_values(frame, shard.label) if shard.label else [])
                keys.extend(map(hash_text, texts) if shard.needs_keys else [])
                yield from texts

        frequencies = vectorizer.frequencies(documents())
    messages = [str(warning.message) for warning in caught if warning.category is UndriftWarning]
    n_rows = frequencies.n_documents
    counts = n_rows, table.n_bad, n_empty
    summary = ShardSummary(shard, dict(table.kinds), *counts, labels, head, messages, keys)
    return summary, frequencies


def survey_shards(
    shards: Sequence[Shard], vectorizer: TermVectorizer, n_head: int
) -> tuple[list[ShardSummary], DocumentFrequencies]:
    """Read every shard once, on the workers; document frequencies are added in a tree."""
    stage, sent = Stage("survey"), literal(vectorizer, "vectorizer")
    pairs = [stage(_survey_shard, literal(shard, "shard"), sent, n_head) for shard in shards]
    first, second = Stage("survey-facts"), Stage("survey-frequencies")
    *facts, frequencies = compute(
        *(first(getitem, pair, 0) for pair in pairs),
        tree_sum([second(getitem, pair, 1) for pair in pairs], "frequencies"),
    )
    return facts, frequencies


def vectorize_shards(summaries: Sequence[ShardSummary], vectorizer: TermVectorizer) -> OnDask:
    """Count the terms of shards on the workers and leave the rows there, in the order of the shards."""
    stage, (sent,) = Stage("count-terms"), persist(literal(vectorizer, "vectorizer"))
    filled = [summary for summary in summaries if summary.n_rows]
    workers = assign_workers([summary.n_rows for summary in filled], [sent])
    blocks = persist(
        *(
            stage(_count_terms, literal(summary.shard, "shard"), sent, worker=worker)
            for summary, worker in zip(filled, workers, strict=True)
        )
    )
    dtype, d = np.dtype(vectorizer.dtype), len(vectorizer.terms_)
    return OnDask(blocks, [BlockFacts(summary.n_rows, d, dtype, True) for summary in filled])


def _count_terms(shard: Shard, vectorizer: TermVectorizer) -> sparse.csr_array:
    return vectorizer.transform(shard.documents())


# model, documents -> columns, and counts that add up over documents
Predict = Callable[[Any, Sequence[str]], tuple[dict[str, list[Any]], np.ndarray]]


def predict_shards(shards: Sequence[Shard], model: Any, predict: Predict) -> list[Delayed]:
    """Predict every shard on the workers; returns the columns to add to each and its counts, lazily."""
    stage, sent, how = Stage("predict"), send_model(model), literal(predict, "function")
    return list(persist(*(stage(_predict_shard, literal(shard, "shard"), sent, how) for shard in shards)))


def _predict_shard(shard: Shard, model: Any, predict: Predict) -> tuple[dict[str, list[Any]], Any]:
    answers: dict[str, list[Any]] = {}
    total: Any = 0
    documents = shard.documents()
    while block := list(islice(documents, BLOCK_DOCUMENTS)):
        columns, counts = predict(model, block)
        total = total + counts
        for name, values in columns.items():
            answers.setdefault(name, []).extend(values)
    return answers, total


HEAD_DOCUMENTS = 20_000  # of each domain, from which the share of unseen words is taken


@contextmanager
def open_cluster_rows(
    address: str, job: Job, vectorizer: TermVectorizer, show_stage: ShowStage
) -> Iterator[ClusterRows]:
    """Connect to a cluster, and let its workers read the files of a job."""
    with connect(address):
        yield ClusterRows(job, vectorizer, show_stage)


class ClusterRows(LocalRows):
    """Rows of a job on a cluster: most documents stay with the workers; counts and labels come here."""

    def __init__(self, job: Job, vectorizer: TermVectorizer, show_stage: ShowStage) -> None:
        self.job, self.vectorizer, self.show_stage = job, vectorizer, show_stage
        paths = [*job.sources, *job.targets]
        names = [*name_domains(job.sources), *name_domains(job.targets)]
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
            _describe_domain(path, name, items, label)
            for path, name, items, label in zip(paths, names, self.surveyed, columns, strict=True)
        ]
        for domain in domains:
            if domain.n_rows == 0:
                open_rows(domain.path, job.reading).require_rows()
        self.sources, self.targets = domains[: len(job.sources)], domains[len(job.sources) :]
        vectorizer.fit_frequencies(frequencies)

    def count_terms(self, adapter: TextAdapter) -> TermVectorizer:
        """Make the rows of every domain on the workers, one block for each shard."""
        self.X = [vectorize_shards(items, self.vectorizer) for items in self.surveyed]
        return self.vectorizer

    @cached_property
    def source_rows(self) -> Any:
        """Rows of all sources, after `fit`."""
        return OnDask.stack(self.X[: len(self.sources)])

    def count_mistakes(self, i: int, *models: Any) -> np.ndarray:
        """Sum over the labelled rows of a target, and over those that each model gets wrong."""
        target, sent = self.targets[i], [send_model(model) for model in models]
        count = partial(count_mistakes, target=target.name)
        return compute(self.target_rows[i].sum_with_values(count, "mistakes", target.truth, *sent))[0]

    @contextmanager
    def write_predictions(
        self, adapter: TextAdapter, kinds: dict[str, Any], added: Sequence[str]
    ) -> Iterator[list[np.ndarray]]:
        """Write predictions shard by shard, put in place when the context ends."""
        counts, limit = [], self.job.min_confidence
        with write_table(self.job.out, kinds) as write:
            for target, surveyed in zip(self.targets, self.surveyed[len(self.sources) :], strict=True):
                shards, total = [item.shard for item in surveyed], np.zeros(1)
                how = partial(_predict_documents, name=target.name, added=added, min_confidence=limit)
                for shard, predicted in zip(shards, predict_shards(shards, adapter, how), strict=True):
                    columns, shard_counts = compute(predicted)[0]
                    _write_rows(write, shard, columns)
                    total = total + shard_counts
                counts.append(total)
            yield counts


def _list_shards(path: Path, job: Job, label: str | None) -> list[Shard]:
    needs_keys = job.labels is not None or job.target_label is not None
    return [Shard(shard.resolve(), job.text, label, job.reading, needs_keys) for shard in shard_paths(path)]


def _describe_domain(path: Path, name: str, surveyed: Sequence[ShardSummary], label: str | None) -> JobDomain:
    """Add up what the workers say of the shards of a domain."""
    labels = [parse_label(value) for item in surveyed for value in item.labels]
    return JobDomain(
        path,
        name,
        join_kinds(item.kinds for item in surveyed),
        n_rows=sum(item.n_rows for item in surveyed),
        n_empty=sum(item.n_empty for item in surveyed),
        n_bad=sum(item.n_bad for item in surveyed),
        labels=None if label is None else labels,
        documents=[document for item in surveyed for document in item.head],
        stored_keys=[key for item in surveyed for key in item.keys],
    )


def _predict_documents(
    model: TextAdapter,
    documents: Sequence[str],
    added: Sequence[str],
    min_confidence: float | None,
    name: str,
) -> tuple[dict[str, list[Any]], np.ndarray]:
    """On a worker: return the columns that predictions add to documents of a target, and counts."""
    predictions = predict_rows(model.classifier_, model.vectorizer_.transform(documents), name)
    return predictions.columns(added, min_confidence, name), predictions.count(min_confidence)


def _write_rows(write: Any, shard: Shard, added: dict[str, list[Any]]) -> None:
    """Append a shard, with the columns that a worker predicted for all of its rows."""
    start = 0
    for frame in shard.table():
        stop = start + len(frame)
        write(frame.assign(**{name: values[start:stop] for name, values in added.items()}))
        start = stop
