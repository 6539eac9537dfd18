"""Documents in many files, read by the workers: vocabulary, rows and predictions, a shard at a time."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from dask.delayed import Delayed
from dask.sizeof import sizeof
from scipy import sparse

from ..errors import UndriftWarning
from ..tables import Table, open_table, write_table
from ..text import DocumentFrequencies, TermVectorizer
from .cluster import Stage, computed, kept, literal, spread, tree_sum
from .lazy import sent_model
from .rows import Facts, OnDask, n_bytes

sizeof.register(DocumentFrequencies, n_bytes)

BLOCK_DOCUMENTS = 4096  # documents that are rows at the same time in prediction


@dataclass(frozen=True)
class Shard:
    """One file, as a worker finds it: the path must lead to it from every worker."""

    path: Path
    text: str
    label: str | None = None  # a column that must be there, if given
    encoding: str | None = None
    skip_bad: bool = False

    def table(self) -> Table:
        """Open the file, once its columns are known to be there."""
        table = open_table(self.path, text=self.text, encoding=self.encoding, skip_bad=self.skip_bad)
        if self.label is not None:
            table.require_column(self.label)
        return table

    def documents(self) -> Iterator[str]:
        """Read the texts, in bounded memory."""
        for rows in self.table():
            yield from rows.texts(self.text)


@dataclass(frozen=True)
class Surveyed:
    """What the client knows of a shard."""

    shard: Shard
    kinds: dict[str, Any]
    n_rows: int
    n_bad: int
    n_empty: int  # documents without text
    labels: list[Any]  # values of the label column; empty without one
    head: list[str]  # its first documents
    warnings: list[str]


def _surveyed(shard: Shard, vectorizer: TermVectorizer, n_head: int) -> tuple[Surveyed, DocumentFrequencies]:
    """On a worker: read a shard once, for its document frequencies and whatever else the client needs."""
    labels: list[Any] = []
    head: list[str] = []
    n_empty = 0
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UndriftWarning)
        table = shard.table()

        def documents() -> Iterator[str]:
            nonlocal n_empty
            for rows in table:
                texts = rows.texts(shard.text)
                n_empty += sum(not text.strip() for text in texts)
                head.extend(islice(texts, max(0, n_head - len(head))))
                labels.extend(rows.column(shard.label) if shard.label else [])
                yield from texts

        frequencies = vectorizer.frequencies(documents())
    told = [str(own.message) for own in caught if own.category is UndriftWarning]
    n_rows = frequencies.n_documents
    return Surveyed(shard, dict(table.kinds), n_rows, table.n_bad, n_empty, labels, head, told), frequencies


def _first(pair: tuple[Any, Any]) -> Any:
    return pair[0]


def _second(pair: tuple[Any, Any]) -> Any:
    return pair[1]


def survey(
    shards: Sequence[Shard], vectorizer: TermVectorizer, n_head: int
) -> tuple[list[Surveyed], DocumentFrequencies]:
    """Read every shard once, on the workers; document frequencies are added in a tree."""
    stage, sent = Stage("survey"), literal(vectorizer, "vectorizer")
    pairs = [stage(_surveyed, literal(shard, "shard"), sent, n_head) for shard in shards]
    first, second = Stage("survey-facts"), Stage("survey-frequencies")
    *facts, frequencies = computed(
        *(first(_first, pair) for pair in pairs),
        tree_sum([second(_second, pair) for pair in pairs], "frequencies"),
    )
    return facts, frequencies


def exact_frequencies(
    shards: Sequence[Shard], vectorizer: TermVectorizer, found: DocumentFrequencies
) -> DocumentFrequencies:
    """Count again the terms that may be in the vocabulary, if a first pass had to forget some.

    A worker holds at most `max_counted` terms in either pass. A first pass that forgot too much for
    the vocabulary to be certain is left as it is; the vectorizer then warns.
    """
    ranked = found.ranked(vectorizer.max_features)
    if found.n_missed == 0 or found.n_missed >= ranked[-1][1]:
        return found
    only = literal(found.candidates(vectorizer.max_features), "candidates")
    stage, sent = Stage("recount"), literal(vectorizer, "vectorizer")
    recounted = [stage(_counted, literal(shard, "shard"), sent, only) for shard in shards]
    return computed(tree_sum(recounted, "recount"))[0]


def _counted(shard: Shard, vectorizer: TermVectorizer, only: Collection[str]) -> DocumentFrequencies:
    return vectorizer.frequencies(shard.documents(), only)


def text_rows(surveyed: Sequence[Surveyed], vectorizer: TermVectorizer) -> OnDask:
    """Rows of shards, counted on the workers and kept there, in the order of the shards."""
    stage, (sent,) = Stage("count-terms"), kept(literal(vectorizer, "vectorizer"))
    filled = [own for own in surveyed if own.n_rows]
    homes = spread([own.n_rows for own in filled], [sent])
    blocks = kept(
        *(
            stage(_rows, literal(own.shard, "shard"), sent, home=home)
            for own, home in zip(filled, homes, strict=True)
        )
    )
    dtype, d = np.dtype(vectorizer.dtype), len(vectorizer.terms_)
    return OnDask(blocks, [Facts(own.n_rows, d, dtype, True) for own in filled])


def _rows(shard: Shard, vectorizer: TermVectorizer) -> sparse.csr_array:
    return vectorizer.transform(shard.documents())


@dataclass(frozen=True)
class Output:
    """A shard's predictions as a file: where, and with which columns."""

    path: Path
    columns: tuple[str, ...]
    kinds: dict[str, Any]


Predict = Callable[[Any, Sequence[str]], dict[str, list[Any]]]  # model, documents -> columns


def predicted(shards: Sequence[Shard], model: Any, predict: Predict) -> list[Delayed]:
    """Lazy columns that predictions add to each shard."""
    stage, sent, how = Stage("predict"), sent_model(model), literal(predict, "function")
    return list(kept(*(stage(_predicted, literal(shard, "shard"), sent, how) for shard in shards)))


def _predicted(shard: Shard, model: Any, predict: Predict) -> dict[str, list[Any]]:
    answers: dict[str, list[Any]] = {}
    documents = shard.documents()
    while block := list(islice(documents, BLOCK_DOCUMENTS)):
        for name, values in predict(model, block).items():
            answers.setdefault(name, []).extend(values)
    return answers


def write_shards(shards: Sequence[Shard], outputs: Sequence[Output], model: Any, predict: Predict) -> int:
    """Let the workers write the predictions of each shard, whole or not at all; the number of rows."""
    stage, sent, how = Stage("write"), sent_model(model), literal(predict, "function")
    written = [
        stage(_written, literal(shard, "shard"), literal(output, "output"), sent, how)
        for shard, output in zip(shards, outputs, strict=True)
    ]
    return sum(computed(*kept(*written)))


def _written(shard: Shard, output: Output, model: Any, predict: Predict) -> int:
    """On a worker: a shard of predictions. Done again after a failure, it replaces the same file."""
    with write_table(output.path, output.columns, kinds=output.kinds) as out:
        for rows in shard.table():
            out.write(rows.with_columns(predict(model, rows.texts(shard.text))))
        return out.n_rows
