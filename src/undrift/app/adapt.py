"""The adapt job: labelled source files and unlabelled target files in, predictions and a summary out."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from sklearn.base import clone

from ..core import Rows as Matrix
from ..core import stack_rows
from ..errors import UndriftWarning
from ..method import MSDAClassifier
from ..persist import round_layers, save_model
from ..text import N_TERMS, TextAdapter, interleave
from .distill import distill_domains, summarize_distilled
from .drift import describe_target
from .inputs import (
    AdaptJob,
    AddedColumns,
    JobDomain,
    ShowStage,
    check_labels,
    check_outputs,
    check_targets,
    find_text,
    ignore_stage,
    match_shares,
    name_domains,
    number_sources,
    plan_columns,
    read_domain,
)
from .labels import TrainingLabels, attach_labels, cross_fit, gather_labels, learn_labels
from .options import parse_settings
from .predict import Predictions, WrittenPredictions, predict_rows
from .scoring import (
    count_mistakes,
    fit_baseline,
    sample_rows,
    share_labels,
    sum_mistakes,
    warn_of_other_labels,
)
from .summary import (
    count_labels,
    keep_warnings,
    summarize_choices,
    summarize_domains,
    summarize_errors,
    summarize_shares,
)
from .tables import write_table

if TYPE_CHECKING:
    from ..report import ReportData

HALF_ROWS = 200  # target rows whose predictions half precision must not change
Mistakes = dict[int, tuple[np.ndarray, np.ndarray, np.ndarray]]  # by target: two models' mistakes, weights


@dataclass(frozen=True, eq=False)
class AdaptResult:
    """The fitted model, a summary ready for JSON and, if the job has a `report`, its data."""

    adapter: TextAdapter
    summary: dict[str, Any]
    report_data: ReportData | None = None


def build_adapter(
    n_terms: int | None,
    tokens: str = "auto",
    is_fast: bool | None = None,
    border: str = "error",
    device: str = "cpu",
    settings: Sequence[str] | None = None,
) -> TextAdapter:
    """Return the adapter that options describe; `is_fast` None stands for neither fast nor thorough."""
    changes = {"border": border, "device": device, "random_state": 0}
    changes["n_pivots"] = {None: "auto", True: "few", False: "many"}[is_fast]
    changes |= parse_settings(settings, list(MSDAClassifier().get_params()))
    n_terms = n_terms or (2 * N_TERMS if is_fast is False else N_TERMS)
    return TextAdapter(n_terms, tokens=tokens, classifier=MSDAClassifier(**changes))


def run_adapt(
    job: AdaptJob,
    adapter: TextAdapter,
    show_stage: ShowStage = ignore_stage,
    *,
    cluster: str | None = None,
) -> AdaptResult:
    """Do the whole job, here or on a Dask cluster. Nothing is written unless all of it can be.

    Parameters
    ----------
    job : AdaptJob
    adapter : TextAdapter
        Is fitted.
    show_stage : callable, optional
        Called with the name of the stage, and the share of it that is done or None.
    cluster : str, optional
        ``local``, ``local:N`` or ``tcp://host:port``. Workers read and write the files themselves, under
        the same absolute paths. Needs the `dask` extra.
    """
    start = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UndriftWarning)
        check_outputs(job, has_cluster=cluster is not None)
        if not job.text:
            job = replace(job, text=find_text(job.sources[0], job.reading, (job.label, job.target_label)))
        if cluster is None:
            result = _adapt(job, adapter, LocalRows(job, show_stage), show_stage)
        else:
            from .on_dask import open_cluster_rows

            with open_cluster_rows(cluster, job, adapter, show_stage) as rows:
                result = _adapt(job, adapter, rows, show_stage)
    given = [item.message for item in caught if isinstance(item.message, UndriftWarning)]
    result.summary["warnings"] = keep_warnings(given, result.summary["targets"])
    result.summary["seconds"] = round(time.perf_counter() - start, 2)
    if job.report is not None and result.report_data is not None:
        from .report import write_report

        show_stage("writing the report", None)
        write_report(job, result.report_data, result.summary)
    return result


class JobRows(Protocol):
    """The rows of a job, on this machine or on a cluster."""

    sources: list[JobDomain]
    targets: list[JobDomain]

    @property
    def source_rows(self) -> Any:
        """Rows of all sources, after `fit`."""

    @property
    def target_rows(self) -> Sequence[Any]:
        """Rows of each target, after `fit`."""

    def fit(self, adapter: TextAdapter, labels: np.ndarray) -> None:
        """Fit the adapter on all domains; `labels` are those of the source rows, None where there is none."""

    def count_mistakes(self, i: int, baseline: Any, classifier: Any) -> np.ndarray:
        """Sum over the labelled rows of a target, and over those that each model gets wrong."""

    def write_predictions(
        self, adapter: TextAdapter, added: AddedColumns, kinds: dict[str, Any]
    ) -> AbstractContextManager[WrittenPredictions]:
        """Write predictions, put in place when the context ends; `kinds` are of all columns."""


def _adapt(job: AdaptJob, adapter: TextAdapter, rows: JobRows, show_stage: ShowStage) -> AdaptResult:
    labels, notes = _settle_labels(job, rows)
    classes = sorted({label for label in labels if label is not None})
    added, kinds = plan_columns(job, rows.targets, classes)
    rows.targets, more = attach_labels(job, rows.sources, rows.targets, classes)
    if job.target_shares:
        classifier = clone(adapter.classifier or MSDAClassifier())
        adapter.set_params(classifier=classifier.set_params(target_shares=match_shares(job, classes)))
    rows.fit(adapter, np.array(labels, dtype=object))
    show_stage("comparing words", None)
    summary = summarize_domains(job, rows.sources, rows.targets, adapter.vectorizer_.tokens_)
    summary |= {"labels": count_labels(labels), "updatable": job.updatable}
    summary["notes"] = [*notes, *more, *summary["notes"]]
    summary |= summarize_choices(adapter)
    learnt = None
    if job.use_labels != "score":
        learnt = gather_labels(rows.targets, rows.target_rows, adapter.classes_.tolist())
        summary["n_learnt"] = len(learnt.keys)
    baseline, mistakes = _score_targets(summary["targets"], job, adapter, rows, labels, learnt, show_stage)
    if learnt is not None:
        show_stage("learning the target's labels", None)
        learn_labels(adapter.classifier_, learnt)
        summary["caution"] = dict(adapter.classifier_.caution_)  # labels end a fallback
    with rows.write_predictions(adapter, added, kinds) as written:
        summarize_shares(summary, adapter, written.counts, job)
        summary |= _save_models(job, adapter, rows, show_stage)
    if job.report is None or not isinstance(rows, LocalRows):
        return AdaptResult(adapter, summary)
    targets = rows.targets
    if learnt is not None:  # a report scores no prediction of a label that was learnt
        targets = [replace(target, weights=[0.0] * target.n_rows) for target in targets]
    from .report import gather_report

    data = gather_report(adapter, job, rows.sources, targets, rows.X, written.predictions, mistakes)
    return AdaptResult(adapter, summary, replace(data, given_baseline=baseline))


def _settle_labels(job: AdaptJob, rows: JobRows) -> tuple[list[Any], list[str]]:
    """Return the labels of the source in one spelling, and notes; those of the targets are spelt alike."""
    labels, rewritten, notes = check_labels(job, rows.sources)
    check_targets(rows.targets)
    for i, target in enumerate(rows.targets if rewritten else []):
        tidied = [rewritten.get(label, label) for label in target.labels or []]
        rows.targets[i] = replace(target, labels=tidied if target.labels is not None else None)
    return labels, notes


def _save_models(job: AdaptJob, adapter: TextAdapter, rows: JobRows, show_stage: ShowStage) -> dict[str, Any]:
    """Save the model and a distilled one, where they are asked for."""
    summary: dict[str, Any] = {}
    if job.model is None and job.distilled is None:
        return summary
    show_stage("describing the target", None)
    adapter.remember(
        text_columns=list(job.text),
        references={
            name: describe_target(adapter, target.documents)
            for name, target in zip(name_domains(job.targets), rows.targets, strict=True)
        },
    )
    if job.model is not None:
        summary["model_file"] = _save_adapter(adapter, job, job.model, rows, show_stage)
    if job.distilled is not None:
        show_stage("distilling", None)
        distilled = distill_domains(adapter, rows.targets, name_domains(job.targets))
        save_model(distilled, job.distilled)
        summary["distilled"] = summarize_distilled(distilled, job.distilled)
    return summary


def _save_adapter(
    adapter: TextAdapter, job: AdaptJob, path: Path, rows: JobRows, show_stage: ShowStage
) -> dict[str, Any]:
    """Save a model, in half precision if that changes no prediction of some target rows; say what it took."""
    n_each = -(-HALF_ROWS // len(rows.targets))
    rounded, n_checked, n_same = round_layers(adapter.classifier_), 0, 0
    for name, target_rows in zip(name_domains(job.targets), rows.target_rows, strict=True):
        X = sample_rows(target_rows)[:n_each]
        first, second = (model.predict(X, target=name) for model in (adapter.classifier_, rounded))
        n_checked, n_same = n_checked + len(first), n_same + int((first == second).sum())
    is_half = n_same == n_checked
    show_stage("saving the model", None)
    save_model(adapter, path, updatable=job.updatable, half=is_half)
    return {"bytes": path.stat().st_size, "half": is_half, "n_checked": n_checked, "n_same": n_same}


def _score_targets(
    entries: list[dict[str, Any]],
    job: AdaptJob,
    adapter: TextAdapter,
    rows: JobRows,
    labels: Sequence[Any],
    learnt: TrainingLabels | None,
    show_stage: ShowStage,
) -> tuple[Any, Mistakes]:
    """Add to every target's entry whether it fell back and, if it has labels, the errors.

    Labels that will be learnt from are scored by cross-fitting, or not at all. Returns the baseline, None if
    no target is scored, and the mistakes of cross-fitting.
    """
    baseline, classifier, mistakes = None, adapter.classifier_, {}
    if job.use_labels == "both" and learnt is not None:
        show_stage("cross-fitting", None)
        cross_fitted = cross_fit(classifier, learnt)
    names = name_domains(job.targets)
    for i, (entry, target) in enumerate(zip(entries, rows.targets, strict=True)):
        show_stage(f"measuring {target.path.name}", None)
        entry["fell_back"] = bool(classifier.caution_["fell_back"]) and learnt is None
        if target.labels is None:
            continue
        if target.n_scored == 0 or job.use_labels == "train":
            entry |= summarize_errors()
            continue
        baseline = baseline or fit_baseline(rows.source_rows, labels)
        if learnt is None:
            warn_of_other_labels(target.labels, classifier.classes_.tolist())
            counts = rows.count_mistakes(i, baseline, classifier)
            entry["labelled_shares"] = share_labels(target.truth, classifier.classes_.tolist())
        else:
            mine = np.flatnonzero((learnt.names == names[i]) & (learnt.weights > 0))
            first = baseline.predict(learnt.X[mine]).tolist() if len(mine) else []
            second, truth, weight = cross_fitted[mine].tolist(), learnt.y[mine], learnt.weights[mine]
            counts = sum_mistakes(truth.tolist(), weight, first, second)
            wrong = (np.array(answers, dtype=object) != truth for answers in (first, second))
            mistakes[i] = (*wrong, weight)
        entry |= summarize_errors(counts.tolist())
    return baseline, mistakes


class LocalRows:
    """The rows of a job on this machine: files read whole, one matrix for each domain."""

    def __init__(self, job: AdaptJob, show_stage: ShowStage) -> None:
        self.job, self.show_stage = job, show_stage
        given = job.reading, job.text
        self.sources = [read_domain(path, *given, job.label, show_stage) for path in job.sources]
        self.targets = [read_domain(path, *given, job.target_label, show_stage) for path in job.targets]
        self.X: list[Matrix] = []
        self._scores: dict[int, np.ndarray] = {}  # of a target's rows, where they are known before writing

    @cached_property
    def source_rows(self) -> Matrix:
        """Rows of all sources, after `fit`."""
        return stack_rows(self.X[: len(self.sources)])

    @property
    def target_rows(self) -> list[Matrix]:
        """Rows of each target, after `fit`."""
        return self.X[len(self.sources) :]

    def fit(self, adapter: TextAdapter, labels: np.ndarray) -> None:
        """Fit the adapter on all domains; `labels` are those of the source rows, None where there is none."""
        domains = [*self.sources, *self.targets]
        self.show_stage("counting terms", None)
        adapter.fit_vocabulary(interleave([domain.documents for domain in domains]))
        self.X = [adapter.vectorizer_.transform(domain.documents) for domain in domains]
        self.show_stage("learning", None)
        targets = dict(zip(name_domains(self.job.targets), self.target_rows, strict=True))
        options = {"sample_domain": number_sources(self.sources), "keeps_state": self.job.needs_state}
        adapter.fit_rows(self.source_rows, labels, targets, **options)

    def count_mistakes(self, i: int, baseline: Any, classifier: Any) -> np.ndarray:
        """Sum over the labelled rows of a target, and over those that each model gets wrong.

        The scores of all of its rows are kept, to be written.
        """
        X, target = self.target_rows[i], self.targets[i]
        name = name_domains(self.job.targets)[i]
        scores = self._find_scores(classifier, i)
        if scores is None:
            scores = self._scores[i] = np.asarray(classifier.decision_function(X, target=name))
        return count_mistakes(X, target.truth, baseline, classifier, name, scores.reshape(X.shape[0], -1))

    def _find_scores(self, classifier: Any, i: int) -> np.ndarray | None:
        """Return the scores of a target's rows that the fit, or the count of mistakes, has left."""
        fitted = classifier.target_scores_
        return self._scores.get(i) if fitted is None or fitted[i] is None else fitted[i]

    @contextmanager
    def write_predictions(
        self, adapter: TextAdapter, added: AddedColumns, kinds: dict[str, Any]
    ) -> Iterator[WrittenPredictions]:
        """Write predictions, put in place when the context ends; keeps them if there is to be a report."""
        counts: list[Any] = []
        predictions = []
        names = name_domains(self.job.targets)
        with write_table(self.job.out, kinds) as write:
            for i, (target, X) in enumerate(zip(self.targets, self.target_rows, strict=True)):
                written: list[Predictions] = []
                start, known = 0, self._find_scores(adapter.classifier_, i)
                for frame in target.rows:
                    stop = start + len(frame)
                    scores = None if known is None else known[start:stop]
                    written.append(predict_rows(adapter.classifier_, X[start:stop], names[i], scores))
                    write(frame.assign(**written[-1].columns(added, names[i])))
                    start = stop
                    self.show_stage("writing predictions", start / target.n_rows)
                counts.append(sum(block.count(added.min_confidence) for block in written))
                kept = written if self.job.report else []
                blocks = [block.probabilities for block in kept] or [np.zeros(0)]
                predictions.append(
                    {
                        "prediction": [label for block in kept for label in block.labels],
                        "probabilities": np.concatenate(blocks),
                    }
                )
            yield WrittenPredictions(counts, predictions)
