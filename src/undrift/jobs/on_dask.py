"""The main job over many files on a Dask cluster: the same options, the same answer."""

from __future__ import annotations

import secrets
import shutil
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from ..baselines import fitted_svm
from ..distributed import (
    OnDask,
    Output,
    Shard,
    Surveyed,
    computed,
    connected,
    exact_frequencies,
    mistakes,
    predicted,
    survey,
    text_rows,
    write_shards,
)
from ..errors import UndriftWarning
from ..persist import save_model
from ..tables import TableError, check_writable, open_table, shard_paths, union_of, with_added, write_table
from ..text import TFIDF_LENGTH, TermVectorizer, TextAdapter, text_classifier, unseen_share
from .adapt import (
    DISTANCE_ROWS,
    FAR_APART,
    Adapted,
    added_columns,
    chosen,
    distance_of,
    error_entries,
    predictions,
    refuse_overwriting,
)
from .inputs import AdaptJob, checked_labels, label_of, name_domains

HEAD_DOCUMENTS = 20_000  # of each domain, from which the share of unseen words is taken

Watch = Callable[[Any], AbstractContextManager[Any]]  # follows a client while it has work


@dataclass(frozen=True)
class ShardedDomain:
    """One file, or the files that a pattern found, as one domain."""

    path: Path
    shards: list[Surveyed]

    @property
    def n_rows(self) -> int:
        """Rows in all shards."""
        return sum(own.n_rows for own in self.shards)

    @property
    def n_bad(self) -> int:
        """Rows that could not be read."""
        return sum(own.n_bad for own in self.shards)

    @property
    def head(self) -> list[str]:
        """Some documents of every shard."""
        return [document for own in self.shards for document in own.head]

    @property
    def labels(self) -> list[Any]:
        """One for each row, None where there is none; empty if no column was asked for."""
        return [label_of(value) for own in self.shards for value in own.labels]


@dataclass(frozen=True)
class Fitted:
    """A fitted adapter, and the rows of every domain on the cluster."""

    adapter: TextAdapter
    sources: list[ShardedDomain]
    targets: list[ShardedDomain]
    source_rows: OnDask
    target_rows: list[OnDask]
    labels: list[Any]  # of the source rows

    @cached_property
    def source_only(self) -> Any:
        """A linear SVM trained on the source's labelled rows, which every target is scored with."""
        known = np.array([label is not None for label in self.labels])
        y = np.array([label for label in self.labels if label is not None])
        return fitted_svm(self.source_rows[known].gather(), y)


def run_adapt_on(address: str, job: AdaptJob, adapter: TextAdapter, watch: Watch | None = None) -> Adapted:
    """Do the whole job on a cluster. Nothing is written unless all of it can be.

    Parameters
    ----------
    address : str
        ``local``, ``local:N`` or ``tcp://host:port``; see :func:`undrift.distributed.connected`. Workers
        read and write the files themselves, under the same absolute paths.
    job : AdaptJob
        `out` is one file, or the folder where each shard of the target gets a file of its own name.
    adapter : TextAdapter
    watch : callable, optional
        Called with the client for a context in which its work may be followed.
    """
    start = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UndriftWarning)
        _check_outputs(job)
        with connected(address) as client, (watch or nullcontext)(client):
            fitted = _fit(job, adapter)
            summary = _summary(job, fitted)
            _write(job, fitted)
            if job.model is not None:
                save_model(adapter, job.model)
    summary["warnings"] = [str(own.message) for own in caught if own.category is UndriftWarning]
    summary["seconds"] = round(time.perf_counter() - start, 2)
    return Adapted(adapter, summary)


def _is_folder(path: Path) -> bool:
    return path.is_dir() or path.suffix == ""


def _check_outputs(job: AdaptJob) -> None:
    if job.report is not None:
        raise TableError("--report needs the documents here, and --dask leaves them on the workers; drop one")
    inputs = [*job.sources, *job.targets]
    if job.model is not None:
        refuse_overwriting(job.model, [*inputs, job.out])
    for out in [job.out / own.name for path in job.targets for own in shard_paths(path)]:
        refuse_overwriting(out if _is_folder(job.out) else job.out, inputs)
    if _is_folder(job.out):
        job.out.mkdir(parents=True, exist_ok=True)
        check_writable(job.out / "trial.csv")
    else:
        check_writable(job.out)
    if job.model is not None and not job.model.parent.is_dir():
        raise TableError(f"cannot write {job.model}: the folder {job.model.parent} does not exist")


def _shards(path: Path, job: AdaptJob, label: str | None) -> list[Shard]:
    return [Shard(own.resolve(), job.text, label, job.encoding, job.skip_bad) for own in shard_paths(path)]


def _surveyed(job: AdaptJob, vectorizer: TermVectorizer) -> tuple[list[ShardedDomain], TermVectorizer]:
    """Read all shards once and choose the vocabulary."""
    paths = [*job.sources, *job.targets]
    columns = [job.label] * len(job.sources) + [job.target_label] * len(job.targets)
    shards = [_shards(path, job, label) for path, label in zip(paths, columns, strict=True)]
    flat = [shard for own in shards for shard in own]
    n_head = -(-HEAD_DOCUMENTS // max(len(own) for own in shards))
    facts, frequencies = survey(flat, vectorizer, n_head)
    for message in dict.fromkeys(message for own in facts for message in own.warnings):
        warnings.warn(message, UndriftWarning, stacklevel=2)
    rest = iter(facts)
    domains = [
        ShardedDomain(path, [next(rest) for _ in own]) for path, own in zip(paths, shards, strict=True)
    ]
    for domain in domains:
        if domain.n_rows == 0:
            open_table(domain.path, skip_bad=job.skip_bad).require_rows()
    return domains, vectorizer.fit_frequencies(exact_frequencies(flat, vectorizer, frequencies))


def _fit(job: AdaptJob, adapter: TextAdapter) -> Fitted:
    """Fit the adapter on all domains; a single source and its targets keep no list of all rows here."""
    vectorizer = adapter.vectorizer or TermVectorizer(length=TFIDF_LENGTH)
    domains, adapter.vectorizer_ = _surveyed(job, clone(vectorizer))
    sources, targets = domains[: len(job.sources)], domains[len(job.sources) :]
    labels = checked_labels(job, [source.labels for source in sources])
    source_rows = text_rows([own for source in sources for own in source.shards], adapter.vectorizer_)
    target_rows = [text_rows(target.shards, adapter.vectorizer_) for target in targets]
    classifier = clone(adapter.classifier or text_classifier())
    for callback in getattr(adapter.classifier, "_skl_callbacks", []):
        classifier.set_callbacks(callback)
    y, domain = np.array(labels, dtype=object), None
    rows, X_target = source_rows, list(target_rows) or None
    if len(sources) > 1:
        numbers = [*range(len(sources)), *(-1 - i for i in range(len(targets)))]
        domain = np.repeat(numbers, [own.n_rows for own in domains])
        y = np.concatenate([y, np.full(len(domain) - len(y), None)])
        rows, X_target = OnDask.stacked([source_rows, *target_rows]), None
    adapter.classifier_ = classifier.fit(rows, y, X_target, sample_domain=domain)
    adapter.classes_ = adapter.classifier_.classes_
    adapter.domain_names_ = name_domains(job.targets)
    return Fitted(adapter, sources, targets, source_rows, target_rows, labels)


def _summary(job: AdaptJob, fitted: Fitted) -> dict[str, Any]:
    """Say what was read, how far apart the domains are, and what was chosen by which rule."""
    summary: dict[str, Any] = {
        "sources": [
            {
                "file": str(own.path),
                "rows": own.n_rows,
                "labelled": sum(label is not None for label in own.labels),
                "unlabelled": sum(label is None for label in own.labels),
                "bad_rows": own.n_bad,
            }
            for own in fitted.sources
        ],
        "targets": [_compared(job, fitted, i) for i in range(len(fitted.targets))],
        "labels": dict(Counter(str(label) for label in fitted.labels if label is not None)),
        "notes": [],
        "out": str(job.out),
        "model": None if job.model is None else str(job.model),
        "report": None,
        **chosen(fitted.adapter),
    }
    for target in fitted.targets:
        if job.target_label is None and any(job.label in own.kinds for own in target.shards):
            summary["notes"].append(
                f"{target.path.name} has a column {job.label!r}: ignored (score with --target-label)"
            )
    return summary


def _compared(job: AdaptJob, fitted: Fitted, i: int) -> dict[str, Any]:
    """Say how far one target is from the source and, where it has labels, what each classifier gets wrong."""
    target, rows = fitted.targets[i], fitted.target_rows[i]
    share = unseen_share(target.head, (text for own in fitted.sources for text in own.head))
    if share > FAR_APART:
        warnings.warn(
            f"{share:.0%} of the words of {target.path.name} never occur in the source: "
            "the vocabularies hardly overlap, and adaptation has little to hold on to",
            UndriftWarning,
            stacklevel=2,
        )
    found = {
        "file": str(target.path),
        "rows": target.n_rows,
        "bad_rows": target.n_bad,
        "unseen_share": None if share != share else share,
        "distance_before": distance_of(_some(fitted.source_rows), _some(rows)),
        "fell_back": fitted.adapter.classifier_.caution_["fell_back"],
    }
    if job.target_label is None:
        return found
    truth = np.array(target.labels, dtype=object)
    models = [(fitted.source_only, {}), (fitted.adapter.classifier_, {"sample_domain": -1 - i})]
    n_scored, by_svm, by_adapted = mistakes(rows, truth, models).tolist()
    errors = error_entries(by_svm / n_scored, by_adapted / n_scored) if n_scored else {}
    return found | {"scored": n_scored} | errors


def _some(rows: OnDask) -> Any:
    """Bring rows here, as many as a distance needs, chosen at random where there are more."""
    chosen = np.random.default_rng(0).permutation(rows.shape[0])[:DISTANCE_ROWS]
    order = np.sort(chosen)
    return rows[order].gather()[np.searchsorted(order, chosen)]


def _answers(
    model: TextAdapter, documents: Sequence[str], number: int, name: str | None, prefix: str
) -> dict[str, list]:
    """On a worker: the columns that predictions add to documents of the target `number`."""
    more = predictions(model, model.vectorizer_.transform(documents), number, prefix)
    return more if name is None else {**more, f"{prefix}domain": [name] * len(documents)}


def _write(job: AdaptJob, fitted: Fitted) -> None:
    """Write predictions: as one file, or a file for each shard of the targets."""
    several = len(fitted.targets) > 1
    kinds = union_of(own.kinds for target in fitted.targets for own in target.shards)
    added = added_columns(job.prefix, len(fitted.targets))
    columns = with_added(fitted.targets[0].path, list(kinds), added)
    hows = [
        partial(_answers, number=-1 - i, name=name if several else None, prefix=job.prefix)
        for i, name in enumerate(fitted.adapter.domain_names_)
    ]
    tasks = [
        (own.shard, how) for how, target in zip(hows, fitted.targets, strict=True) for own in target.shards
    ]
    if _is_folder(job.out):
        _write_folder(job.out, fitted.adapter, tasks, columns, kinds)
        return
    with write_table(job.out, columns, kinds=kinds) as out:
        for how, target in zip(hows, fitted.targets, strict=True):
            shards = [own.shard for own in target.shards]
            for shard, answers in zip(shards, predicted(shards, fitted.adapter, how), strict=True):
                _write_rows(out, shard, computed(answers)[0])


def _write_rows(out: Any, shard: Shard, answers: dict[str, list[Any]]) -> None:
    """Append a shard, with the columns that a worker found for all of its rows."""
    start = 0
    for rows in shard.table():
        stop = start + len(rows)
        out.write(rows.with_columns({name: values[start:stop] for name, values in answers.items()}))
        start = stop


def _write_folder(
    out: Path, model: Any, tasks: list, columns: tuple[str, ...], kinds: dict[str, Any]
) -> None:
    """Let the workers write into a hidden folder, whose files are then put in their places."""
    names = [shard.path.name for shard, _ in tasks]
    repeated = {name for name in names if names.count(name) > 1}
    if repeated:
        raise TableError(f"two shards are called {min(repeated)}, which cannot both be written to {out}")
    with _hidden_folder(out) as hidden:
        outputs = [Output(hidden.resolve() / name, columns, kinds) for name in names]
        for how in dict.fromkeys(how for _, how in tasks):
            own = [
                (shard, output) for (shard, each), output in zip(tasks, outputs, strict=True) if each is how
            ]
            write_shards([shard for shard, _ in own], [output for _, output in own], model, how)
        for name in names:
            (hidden / name).replace(out / name)


@contextmanager
def _hidden_folder(out: Path) -> Iterator[Path]:
    """Yield a new folder inside `out`, gone at the end with whatever a killed worker left in it."""
    hidden = out / f".undrift-{secrets.token_hex(6)}.part"
    hidden.mkdir()
    try:
        yield hidden
    finally:
        shutil.rmtree(hidden, ignore_errors=True)
