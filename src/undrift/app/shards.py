"""Documents in many files, read by the workers: vocabulary, rows and predictions, a shard at a time."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
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
    literal,
    n_bytes,
    persist,
    send_model,
    tree_sum,
)
from ..errors import UndriftWarning
from ..text import DocumentFrequencies, TermVectorizer, hash_text
from .inputs import open_rows
from .options import Reading
from .tables import Table, list_texts, list_values, write_table

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
        table = open_rows(self.path, self.reading, self.text)
        if self.label is not None:
            table.require_column(self.label)
        return table

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


def count_exact_frequencies(
    shards: Sequence[Shard], vectorizer: TermVectorizer, frequencies: DocumentFrequencies
) -> DocumentFrequencies:
    """Count again the terms that may be in the vocabulary, if a first pass had to forget some.

    A worker holds at most `max_counted` terms in either pass. A first pass that forgot too much for
    the vocabulary to be certain is left as it is; the vectorizer then warns.
    """
    ranked = frequencies.rank(vectorizer.n_terms)
    if frequencies.n_missed == 0 or frequencies.n_missed >= ranked[-1][1]:
        return frequencies
    only = literal(frequencies.candidates(vectorizer.n_terms), "candidates")
    stage, sent = Stage("recount"), literal(vectorizer, "vectorizer")
    recounted = [stage(_recount_shard, literal(shard, "shard"), sent, only) for shard in shards]
    return compute(tree_sum(recounted, "recount"))[0]


def _recount_shard(shard: Shard, vectorizer: TermVectorizer, only: Collection[str]) -> DocumentFrequencies:
    return vectorizer.frequencies(shard.documents(), only)


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


@dataclass(frozen=True)
class Output:
    """A shard's predictions as a file: where, and with which columns."""

    path: Path
    kinds: dict[str, set[Any]]


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


def write_shards(shards: Sequence[Shard], outputs: Sequence[Output], model: Any, predict: Predict) -> Any:
    """Let the workers write the predictions of each shard, whole or not at all; returns all counts added."""
    stage, sent, how = Stage("write"), send_model(model), literal(predict, "function")
    written = [
        stage(_write_shard, literal(shard, "shard"), literal(output, "output"), sent, how)
        for shard, output in zip(shards, outputs, strict=True)
    ]
    return sum(compute(*persist(*written)))


def _write_shard(shard: Shard, output: Output, model: Any, predict: Predict) -> Any:
    """On a worker: a shard of predictions. Done again after a failure, it replaces the same file."""
    total: Any = 0
    with write_table(output.path, output.kinds) as write:
        for frame in shard.table():
            columns, counts = predict(model, list_texts(frame, shard.text))
            write(frame.assign(**columns))
            total = total + counts
    return total
