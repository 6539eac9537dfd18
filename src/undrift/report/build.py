"""Where reports come from: a finished job, a fitted estimator, benchmark records."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .._files import write_text_atomically
from ..jobs import AdaptJob, AdaptResult
from ..text import TextAdapter
from .benchmark import benchmark_data
from .content import adaptation_data
from .figures import standalone_svg
from .inputs import DomainRows, Evidence
from .page import Report


def job_report(job: AdaptJob, adapted: AdaptResult, command: str | None = None) -> Report:
    """Report a finished `undrift adapt`; the job must have been given its `report` path.

    Parameters
    ----------
    job : AdaptJob
    adapted : AdaptResult
        What `run_adapt` returned.
    command : str, optional
        The command line, to be shown under "how to reproduce".
    """
    kept, summary = adapted.report_inputs, adapted.summary
    if kept is None:
        raise ValueError("the job kept no rows to report on: give it a `report` path before running it")
    names, files = _file_names([*job.sources, *job.targets]), [*kept.sources, *kept.targets]
    domains = []
    for i, (name, X, file) in enumerate(zip(names, kept.X, files, strict=True)):
        k = i - len(kept.sources)  # position among the targets
        more = {} if k < 0 else kept.predictions[k] | {"cross_fitted": kept.cross_fitted.get(k)}
        number, weights = i if k < 0 else -1 - k, getattr(file, "weights", None)
        domains.append(DomainRows(name, number, X, file.documents, file.labels, weights=weights, **more))
    about = {name: summary[name] for name in ("seconds", "warnings", "notes") if name in summary} | {
        "command": command,
        "use_labels": job.use_labels,
        "text_columns": [job.text] if isinstance(job.text, str) else list(job.text),
        "files": [file_record(path) for path in (*job.sources, *job.targets)],
        "summary": summary,
    }
    adapter = adapted.adapter
    evidence = Evidence(adapter.classifier_, adapter.terms_, domains, kept.baseline, about)
    return Report(adaptation_data(evidence))


def adaptation_report(
    model: Any,
    source: Any,
    y: Sequence[Any],
    target: Any,
    *,
    truth: Sequence[Any] | None = None,
    terms: Sequence[str] | None = None,
    names: tuple[str, str] = ("source", "target"),
    max_rows: int = 3_000,
) -> Report:
    """Report a fitted estimator on the data it was fitted on.

    Parameters
    ----------
    model : TextAdapter or MSDAClassifier
        Fitted on `source`, `y` and `target`.
    source, target : sequence of str, or matrix of shape (n, d)
        Documents for a TextAdapter, rows for an MSDAClassifier.
    y : sequence
        Labels of the source; None where there is none.
    truth : sequence, optional
        Labels of the target, to score with.
    terms : sequence of str, optional
        Names of the columns, for an MSDAClassifier.
    names : (str, str), default=("source", "target")
        What to call the two domains.
    max_rows : int, default=3000
        Target rows to predict and show; of more a random sample is taken, and the page says so.

    Returns
    -------
    Report
        Shows itself in a notebook; see `Report.save` and `Report.open`.

    Examples
    --------
    >>> from undrift import TextAdapter, adaptation_report
    >>> books = ["a gripping page turner", "gripping and moving", "dull and boring", "boring prose"]
    >>> kitchen = ["gripping handle, sturdy", "sturdy pan", "boring and flimsy", "flimsy lid"]
    >>> adapter = TextAdapter().fit(books, ["good", "good", "bad", "bad"], kitchen)
    >>> adaptation_report(adapter, books, ["good", "good", "bad", "bad"], kitchen, names=("books", "kitchen"))
    <Report: books → kitchen>
    """
    labels = _plain(y)
    known = None if truth is None else _plain(truth)
    if isinstance(model, TextAdapter):
        source, target = list(source), list(target)
        rows = [model.vectorizer_.transform(documents) for documents in (source, target)]
        texts, classifier, terms = [source, target], model.classifier_, model.terms_
    else:
        rows, texts, classifier = [source, target], [None, None], model
        terms = list(terms) if terms is not None else [f"column {j}" for j in range(rows[0].shape[1])]
    if not hasattr(classifier, "classes_") or getattr(classifier, "multilabel_", False):
        raise ValueError("a report is of classes, and this model predicts ratings or tags")
    number = min(0, *classifier.domains_) or -1
    domains = [
        DomainRows(names[0], 0, rows[0], texts[0], labels),
        _sample_domain(DomainRows(names[1], number, rows[1], texts[1], known), max_rows),
    ]
    return Report(adaptation_data(Evidence(classifier, terms, domains)))


def _sample_domain(domain: DomainRows, max_rows: int) -> DomainRows:
    """Draw `max_rows` rows of a domain at random, where it has more."""
    n = len(domain)
    if n <= max_rows:
        return domain
    keep = np.sort(np.random.default_rng(0).choice(n, max_rows, replace=False)).tolist()
    texts, labels = (
        None if column is None else [column[i] for i in keep] for column in (domain.documents, domain.labels)
    )
    return DomainRows(domain.name, domain.number, domain.X[keep], texts, labels, n_rows=n)


def benchmark_report(results: Any) -> Report:
    """Report benchmark results: a file of records (JSON lines), or the records themselves.

    Parameters
    ----------
    results : path, or sequence of dict
        What `undrift bench run` wrote.

    Returns
    -------
    Report
        Shows itself in a notebook; see `Report.save` and `Report.open`.

    Examples
    --------
    >>> from undrift.report import benchmark_report
    >>> task = {"plan": "small", "variant": "authors", "corpus": "amazon-bow", "source": "books"}
    >>> task |= {"target": "dvd", "method": "msda-5", "params": {}, "n_train": 2000, "n_test": 2000}
    >>> task |= {"transfer_error": 0.2, "baseline_in_domain_error": 0.2, "transfer_ratio": 1.0}
    >>> task |= {"transfer_loss": 0.0, "represent_seconds": 1.0, "classify_seconds": 1.0}
    >>> benchmark_report([task])
    <Report: Benchmark: small>
    """
    return Report(benchmark_data(results))


FIGURE_FORMATS = ("svg", "json")


def write_figure(
    figure: dict[str, Any], folder: str | Path, formats: Sequence[str] = FIGURE_FORMATS
) -> list[Path]:
    """Write a figure of `undrift.bench.results` into `folder`, as SVG and as JSON (its data).

    Parameters
    ----------
    figure : dict
        Its data: ``name``, ``title``, ``kind`` and what that kind needs.
    folder : path
        Made where it does not exist.
    formats : sequence of {"svg", "json"}, default=("svg", "json")
        Which files to write.

    Returns
    -------
    list of Path
        The files, in the order of `formats`.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from undrift.report import write_figure
    >>> with TemporaryDirectory() as folder:
    ...     [path.name for path in write_figure({"name": "errors"}, folder, ["json"])]
    ['errors.json']
    """
    Path(folder).mkdir(parents=True, exist_ok=True)
    paths = [Path(folder) / f"{figure['name']}.{ending}" for ending in formats]
    for path in paths:
        data = json.dumps(figure, indent=1, ensure_ascii=False) + "\n"
        write_text_atomically(path, data if path.suffix == ".json" else standalone_svg(figure))
    return paths


def _plain(values: Any) -> list[Any]:
    return values.tolist() if hasattr(values, "tolist") else list(values)


def _file_names(paths: list[Path]) -> list[str]:
    """Names of files without their endings, where that tells them apart."""
    short = [path.name.split(".")[0] or path.name for path in paths]
    return short if len(set(short)) == len(short) else [str(path) for path in paths]


def file_record(path: Path) -> dict[str, Any]:
    """Name, size and SHA-256 of a file."""
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {"file": str(path), "bytes": path.stat().st_size, "sha256": digest}
