"""Rows of an adapt job on a Dask cluster, whose workers read the files. Needs the `dask` extra."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import islice
from operator import getitem
from pathlib import Path

import numpy as np
import pandas as pd
from dask.sizeof import sizeof
from scipy import sparse

from ..core import Rows
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
from ..errors import record_warnings, warn
from ..method import MSDAClassifier
from ..results import Baseline, Comparison, Label
from ..text import (
    SAMPLE_DOCUMENTS,
    DocumentFrequencies,
    TermVectorizer,
    TextAdapter,
    count_words,
    hash_text,
    interleave,
)
from .domains import JobDomain, name_domains, open_rows, parse_label
from .job import AdaptJob, ShowStage
from .options import Reading
from .predictions import Predictions, predict_taught
from .rows import LocalRows, compare_words, count_mistakes
from .tables import Table, common_delimiter, join_kinds, list_texts, list_values, shard_paths

sizeof.register(DocumentFrequencies, n_bytes)
sizeof.register(Predictions, n_bytes)


@dataclass(frozen=True)
class Shard:
    """One file of a table; its path must lead to it from every worker."""

    path: Path
    text: Sequence[str]
    labels: Sequence[str] = ()  # columns that must be there
    reading: Reading = field(default_factory=Reading)
    needs_keys: bool = False  # whether the client must tell which texts are the same
    option: str = "--text"  # that names the columns of the text

    def table(self) -> Table:
        """Open the file, once its columns are known to be there."""
        return open_rows(self.path, self.reading, self.text, self.labels, self.option)

    def documents(self) -> Iterator[str]:
        """Read the texts, in bounded memory."""
        for frame in self.table():
            yield from list_texts(frame, self.text)


def _survey_shard(
    shard: Shard, vectorizer: TermVectorizer, n_head: int
) -> tuple[tuple[JobDomain, list[str]], DocumentFrequencies]:
    """On a worker: read a shard once; return it with its first documents, warnings, and frequencies."""
    cells: dict[str | None, list[Label | None]] = {name: [] for name in shard.labels}
    head: list[str] = []
    keys: list[int] = []
    n_empty = 0
    with record_warnings() as caught:
        table = shard.table()

        def documents() -> Iterator[str]:
            nonlocal n_empty
            for frame in table:
                texts = list_texts(frame, shard.text)
                n_empty += sum(not text.strip() for text in texts)
                head.extend(islice(texts, max(0, n_head - len(head))))
                for name in shard.labels:
                    cells[name] += map(parse_label, list_values(frame, name))
                keys.extend(map(hash_text, texts) if shard.needs_keys else [])
                yield from texts

        frequencies = vectorizer.frequencies(documents())
    surveyed = JobDomain(
        shard.path,
        shard.path.name,
        dict(table.kinds),
        frequencies.n_documents,
        n_empty,
        table.n_bad,
        labels=None,
        documents=head,
        stored_keys=keys,
        cells=cells,
        delimiter=table.delimiter,
    )
    return (surveyed, list(map(str, caught))), frequencies


def survey_shards(
    shards: Sequence[Shard], vectorizer: TermVectorizer, n_head: int
) -> tuple[list[JobDomain], DocumentFrequencies]:
    """Read every shard once, on the workers; document frequencies are added in a tree."""
    stage, sent = Stage("survey"), literal(vectorizer, "vectorizer")
    pairs = [stage(_survey_shard, literal(shard, "shard"), sent, n_head) for shard in shards]
    first, second = Stage("survey-facts"), Stage("survey-frequencies")
    *facts, frequencies = compute(
        *(first(getitem, pair, 0) for pair in pairs),
        tree_sum([second(getitem, pair, 1) for pair in pairs], "frequencies"),
    )
    for message in dict.fromkeys(message for _, messages in facts for message in messages):
        warn(message)
    return [surveyed for surveyed, _ in facts], frequencies


def vectorize_shards(
    shards: Sequence[Shard], surveyed: Sequence[JobDomain], vectorizer: TermVectorizer
) -> OnDask:
    """Count the terms of shards on the workers and leave the rows there, in the order of the shards."""
    stage, (sent,) = Stage("count-terms"), persist(literal(vectorizer, "vectorizer"))
    filled = [(shard, each.n_rows) for shard, each in zip(shards, surveyed, strict=True) if each.n_rows]
    workers = assign_workers([n_rows for _, n_rows in filled], [sent])
    blocks = persist(
        *(
            stage(_count_terms, literal(shard, "shard"), sent, worker=worker)
            for (shard, _), worker in zip(filled, workers, strict=True)
        )
    )
    dtype, d = np.dtype(vectorizer.dtype), len(vectorizer.terms_)
    return OnDask(blocks, [BlockFacts(n_rows, d, dtype, True) for _, n_rows in filled])


def _count_terms(shard: Shard, vectorizer: TermVectorizer) -> sparse.csr_array:
    return vectorizer.transform(shard.documents())


HEAD_DOCUMENTS = 20_000  # of each domain, from which the share of unseen words is taken


class ClusterRows(LocalRows):
    """Rows of a job on a cluster: most documents stay with the workers; counts and labels come here."""

    def __init__(self, job: AdaptJob, vectorizer: TermVectorizer, show_stage: ShowStage) -> None:
        self.vectorizer = vectorizer
        super().__init__(job, show_stage)

    def read(self) -> None:
        """Let the workers read every file once; choose the vocabulary."""
        job, vectorizer = self.job, self.vectorizer
        needs_keys = job.labels is not None or job.target_label is not None
        option = "--target-text" if job.sources else "--text"
        shards: list[list[Shard]] = []
        labels: list[str | None] = []  # the column of every domain
        for paths, text, columns, named in (
            (job.sources, job.text, (job.label,), "--text"),
            (job.targets, job.target_text, job.target_labels, option),
        ):
            shared = text, list(dict.fromkeys(filter(None, columns))), job.reading, needs_keys, named
            shards += [[Shard(shard.resolve(), *shared) for shard in shard_paths(path)] for path in paths]
            labels += [columns[0]] * len(paths)
        every_shard = [shard for domain_shards in shards for shard in domain_shards]
        heads = [list(islice(shard[0].documents(), SAMPLE_DOCUMENTS)) for shard in shards]
        vectorizer.choose_tokens(interleave(heads))
        n_head = -(-HEAD_DOCUMENTS // max(map(len, shards)))
        surveyed, frequencies = survey_shards(every_shard, vectorizer, n_head)
        rest = iter(surveyed)
        self.shards = shards
        self.surveyed = [[next(rest) for _ in domain_shards] for domain_shards in shards]
        files = [*job.sources, *job.targets]
        names = [*name_domains(job.sources), *name_domains(job.targets)]
        domains = [_join_shards(*each) for each in zip(files, names, self.surveyed, labels, strict=True)]
        for domain in domains:
            if domain.n_rows == 0:
                open_rows(domain.path, job.reading).require_rows()
        self.sources, self.targets = domains[: len(job.sources)], domains[len(job.sources) :]
        vectorizer.fit_frequencies(frequencies)

    def count_terms(self, adapter: TextAdapter) -> TermVectorizer:
        """Make the rows of every domain on the workers, one block for each shard."""
        each = zip(self.shards, self.surveyed, strict=True)
        self.X = [vectorize_shards(*domain, self.vectorizer) for domain in each]
        domains, tokens = (*self.sources, *self.targets), self.vectorizer.tokens_
        words = [count_words(domain.documents, tokens) for domain in domains]
        self.unseen = compare_words(self.targets, words, tokens)
        return self.vectorizer

    @cached_property
    def source_rows(self) -> Rows:
        """Rows of all sources, after `fit`; without a source, of all targets."""
        return OnDask.stack(self.X[: len(self.sources)] or self.X)

    def count_mistakes(self, i: int, baseline: Baseline, classifier: MSDAClassifier) -> Comparison:
        """Sum the mistakes of both models on the labelled rows of a target."""
        target, sent = self.targets[i], [send_model(model) for model in (baseline, classifier)]
        count = partial(count_mistakes, target=target.name)
        mistakes = self.target_rows[i].map_with_values(count, "mistakes", target.truth, *sent)
        return compute(tree_sum(mistakes, "mistakes"))[0]

    def predict(
        self, classifier: MSDAClassifier
    ) -> Iterator[tuple[int, Predictions, Iterable[pd.DataFrame]]]:
        """Predict all targets shard by shard, on the workers, as :meth:`LocalRows.predict`."""
        sent, n_sources = send_model(classifier), len(self.sources)
        for i, (target, X) in enumerate(zip(self.targets, self.target_rows, strict=True)):
            given = zip(self.shards[n_sources + i], self.surveyed[n_sources + i], strict=True)
            filled = [shard for shard, surveyed in given if surveyed.n_rows]
            predict = partial(predict_taught, target=target.name)
            parts = persist(*X.map_with_values(predict, "predict", target.said, sent))
            for shard, part in zip(filled, parts, strict=True):
                yield i, compute(part)[0], shard.table()


def _join_shards(path: Path, name: str, surveyed: Sequence[JobDomain], label: str | None) -> JobDomain:
    """Add up the workers' counts for the shards of a domain."""
    cells = {name: [cell for item in surveyed for cell in item.cells[name]] for name in surveyed[0].cells}
    return JobDomain(
        path,
        name,
        join_kinds(item.kinds for item in surveyed),
        n_rows=sum(item.n_rows for item in surveyed),
        n_empty=sum(item.n_empty for item in surveyed),
        n_bad=sum(item.n_bad for item in surveyed),
        labels=cells.get(label),
        documents=[document for item in surveyed for document in item.documents],
        stored_keys=[key for item in surveyed for key in item.keys],
        cells=cells,
        delimiter=common_delimiter(item.delimiter for item in surveyed),
    )
