"""The adapt job: labelled source files and unlabelled target files in, predictions and a summary out."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from sklearn.base import clone

from .._core import Rows as Matrix
from .._core import stack_rows
from ..classifier import MSDAClassifier
from ..errors import UndriftWarning
from ..persist import measure_model, round_layers, save_model
from ..tables import TableError, write_table
from ..text import FeatureScaler, TextAdapter, interleave, text_classifier
from .distill import distill_domains, summarize_distilled
from .drift import add_predictions, describe_target
from .inputs import (
    AdaptJob,
    AddedColumns,
    JobDomain,
    ShowStage,
    Watch,
    check_labels,
    check_outputs,
    find_features,
    ignore_stage,
    match_shares,
    name_domains,
    number_rows,
    plan_columns,
    read_domain,
    refuse_many_classes,
    stack_vectors,
)
from .labels import TrainingLabels, attach_labels, count_update_rows, cross_fit, gather_labels, learn_labels
from .predict import Predictions, WrittenPredictions, predict_rows, score_rows
from .scoring import (
    count_mistakes,
    fit_baseline,
    measure_distance,
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
    summarize_features,
    summarize_shares,
)
from .tasks import (
    LabelTask,
    average_shares,
    build_regressor,
    choose_task,
    count_same,
    fit_task_baseline,
    parse_ratings,
    score_task,
    tidy_labels,
)

HALF_ROWS = 500  # target rows whose predictions half precision must not change


@dataclass(frozen=True, eq=False)
class ReportInputs:
    """What a report shows and a summary does not: it holds every document."""

    sources: Sequence[JobDomain]
    targets: Sequence[JobDomain]
    X: Sequence[Matrix]  # rows of every source, then of every target
    baseline: Any  # the fitted SVM; None where nothing was scored
    # by target, of labels that were learnt: the baseline's mistakes, those of cross-fitting, and weights
    cross_fitted: dict[int, tuple[np.ndarray, np.ndarray, np.ndarray]]
    predictions: Sequence[dict[str, Any]]  # `prediction` and `probabilities` of every target's rows


@dataclass(frozen=True, eq=False)
class AdaptResult:
    """The fitted model, a JSON-ready summary and, if the job has a `report`, what the report needs."""

    adapter: TextAdapter
    summary: dict[str, Any]
    report_inputs: ReportInputs | None = None


def run_adapt(
    job: AdaptJob,
    adapter: TextAdapter,
    show_stage: ShowStage = ignore_stage,
    *,
    cluster: str | None = None,
    watch: Watch | None = None,
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
    watch : callable, optional
        Called with the cluster's client for a context in which its work may be followed.
    """
    start = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UndriftWarning)
        check_outputs(job, has_cluster=cluster is not None)
        if not job.text:
            job = _use_features(job, adapter, cluster is not None)
        if cluster is None:
            result = _adapt(job, adapter, LocalRows(job, show_stage), show_stage)
        else:
            from .on_dask import open_cluster_rows

            with open_cluster_rows(cluster, job, adapter, watch) as rows:
                result = _adapt(job, adapter, rows, show_stage)
    given = [item.message for item in caught if isinstance(item.message, UndriftWarning)]
    result.summary["warnings"] = keep_warnings(given, result.summary["targets"])
    result.summary["seconds"] = round(time.perf_counter() - start, 2)
    return result


def _use_features(job: AdaptJob, adapter: TextAdapter, has_cluster: bool) -> AdaptJob:
    """Return the job with columns of numbers in place of a column of text; the adapter scales them."""
    for option, is_given in (
        ("--report", job.report is not None),
        ("--distilled", job.distilled is not None),
        ("--dask", has_cluster),
        ("--labels", job.labels is not None),
    ):
        if is_given:
            raise TableError(f"{option} needs a column of text: drop it, or name one with --text")
    columns = find_features(job)
    adapter.vectorizer = FeatureScaler(list(columns))
    return replace(job, text=columns)


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
        """Fit the adapter on all domains; `labels` are those of the source rows, as `fit` takes them."""

    def count_mistakes(self, i: int, baseline: Any, classifier: Any) -> np.ndarray:
        """Sum over the labelled rows of a target, and over those that each model gets wrong."""

    def write_predictions(
        self, adapter: TextAdapter, added: AddedColumns, kinds: dict[str, Any]
    ) -> AbstractContextManager[WrittenPredictions]:
        """Write predictions, put in place when the context ends; `kinds` are of all columns."""


def _adapt(job: AdaptJob, adapter: TextAdapter, rows: JobRows, show_stage: ShowStage) -> AdaptResult:
    task, labels, notes = _settle_labels(job, rows, check_labels(job, rows.sources))
    classes = task.classes
    added, kinds = plan_columns(job, rows.targets, classes, task.name)
    if task.name == "classes":
        rows.targets, more = attach_labels(job, rows.sources, rows.targets, classes)
        notes += more
    _settle_model(job, adapter, task)
    rows.fit(adapter, task.encode(labels))
    if task.name != "classes":
        adapter.classes_, adapter.separator_ = np.array(classes), task.separator
    if task.name == "tags":
        adapter.classifier_.classes_ = adapter.classes_
    show_stage("comparing words", None)
    tokens = getattr(adapter.vectorizer_, "tokens_", "words")
    summary = summarize_domains(job, rows.sources, rows.targets, tokens)
    summary["task"], summary["labels"] = task.name, count_labels(task, labels)
    summary["notes"] = [*notes, *summary["notes"]]
    if isinstance(adapter.vectorizer_, FeatureScaler):
        summary |= summarize_features(adapter.vectorizer_)
    adapter.domain_names_, adapter.target_statistics_ = name_domains(job.targets), []
    summary |= summarize_choices(adapter)
    learnt = None
    if job.use_labels != "score":
        learnt = gather_labels(rows.targets, rows.target_rows, adapter.classes_.tolist())
        summary["n_learnt"] = len(learnt.keys)
    baseline, mistakes = _score_targets(
        summary["targets"], job, adapter, rows, task, labels, learnt, show_stage
    )
    if learnt is not None:
        show_stage("learning the target's labels", None)
        adapter.classifier_ = learn_labels(adapter.classifier_, learnt)
        summary["caution"] = dict(adapter.classifier_.caution_)  # labels end a fallback
    with rows.write_predictions(adapter, added, kinds) as written:
        summarize_shares(summary, adapter, written.counts, job)
        if job.model is not None:
            for X, counts, target in zip(rows.target_rows, written.counts, rows.targets, strict=True):
                statistics = describe_target(adapter, sample_rows(X), target.documents)
                statistics = add_predictions(statistics, counts, len(classes), target.n_rows)
                adapter.target_statistics_.append(statistics)
            if not job.update_state:
                adapter.classifier_.update_state_ = None
            summary["model_file"] = _save_adapter(adapter, job.model, rows, show_stage)
            summary["update_rows"] = count_update_rows(adapter)
        if job.distilled is not None:
            show_stage("distilling", None)
            numbers = [-1 - i for i in range(len(rows.targets))]
            distilled = distill_domains(adapter, rows.targets, numbers)
            save_model(distilled, job.distilled)
            summary["distilled"] = summarize_distilled(distilled, job.distilled)
    if job.report is None or not isinstance(rows, LocalRows):
        return AdaptResult(adapter, summary)
    targets = rows.targets
    if learnt is not None:  # a report scores no prediction of a label that was learnt
        targets = [replace(target, weights=[0.0] * target.n_rows) for target in targets]
    inputs = ReportInputs(rows.sources, targets, rows.X, baseline, mistakes, written.predictions)
    return AdaptResult(adapter, summary, inputs)


def _save_adapter(adapter: TextAdapter, path: Path, rows: JobRows, show_stage: ShowStage) -> dict[str, Any]:
    """Save a model, in half precision if that changes no prediction of some target rows; say what it took."""
    n_each = -(-HALF_ROWS // len(rows.targets))
    rounded, n_checked, n_same = round_layers(adapter.classifier_), 0, 0
    for i, target in enumerate(rows.targets):
        options: dict[str, Any] = {"sample_domain": -1 - i}
        if target.vectors is None:
            X = sample_rows(rows.target_rows[i])[:n_each]
        else:
            X, options["extra"] = rows.target_rows[i][:n_each], target.vectors[:n_each]
        predicted = [model.predict(X, **options) for model in (adapter.classifier_, rounded)]
        n_checked, n_same = n_checked + len(predicted[0]), n_same + count_same(*predicted)
    is_half = n_same == n_checked
    size = measure_model(adapter, half=is_half)
    show_stage(f"saving the model, {size / 1e6:,.0f} MB", None)
    save_model(adapter, path, half=is_half)
    return {"bytes": path.stat().st_size, "half": is_half, "n_checked": n_checked, "n_same": n_same}


def _settle_labels(job: AdaptJob, rows: JobRows, labels: list[Any]) -> tuple[LabelTask, list[Any], list[str]]:
    """Tell what the labels are, tidy them if that is asked for, and refuse what does not go with them."""
    separator = job.separator if job.task == "tags" else None
    rewritten, spellings = tidy_labels(labels, job.tidy_labels, separator)
    task, labels, guess = choose_task(
        [rewritten.get(label, label) for label in labels], job.task, job.separator
    )
    for i, target in enumerate(rows.targets if rewritten else []):
        tidied = [rewritten.get(label, label) for label in target.labels or []]
        rows.targets[i] = replace(target, labels=tidied if target.labels is not None else None)
    if task.name == "classes":
        refuse_many_classes(job, labels)
        return task, labels, [note for note in (spellings,) if note]
    if not isinstance(rows, LocalRows):
        raise TableError(f"--dask is for classes: drop it for --task {task.name}, or say --task classes")
    for option, is_given in (
        ("--report", job.report is not None),
        ("--labels", job.labels is not None),
        ("--use-labels", job.use_labels != "score"),
        ("--distilled", job.distilled is not None),
        ("--probabilities", task.name == "rating" and job.probabilities),
        ("--min-confidence", task.name == "rating" and job.min_confidence is not None),
        ("--target-shares", task.name == "tags" and bool(job.target_shares)),
    ):
        if is_given:
            raise TableError(f"{option} does not go with --task {task.name}: drop it, or say --task classes")
    if task.name == "rating":
        rows.targets[:] = [
            replace(target, labels=target.labels and parse_ratings(target.labels)) for target in rows.targets
        ]
    return task, labels, [note for note in (guess, spellings) if note]


def _settle_model(job: AdaptJob, adapter: TextAdapter, task: LabelTask) -> None:
    """Set what is fitted: a classifier that knows the class shares given, or a regressor."""
    given = adapter.classifier or text_classifier()
    if task.name == "rating" and isinstance(given, MSDAClassifier):
        adapter.classifier = build_regressor(given, average_shares(job.target_shares))
        if hasattr(given, "_skl_callbacks"):
            adapter.classifier.set_callbacks(*given._skl_callbacks)
    elif job.target_shares:
        adapter.classifier = clone(given).set_params(target_shares=match_shares(job, task.classes))


def _score_targets(
    entries: list[dict[str, Any]],
    job: AdaptJob,
    adapter: TextAdapter,
    rows: JobRows,
    task: LabelTask,
    labels: Sequence[Any],
    learnt: TrainingLabels | None,
    show_stage: ShowStage,
) -> tuple[Any, dict[int, tuple[np.ndarray, np.ndarray, np.ndarray]]]:
    """Add to every target's entry its distance, whether it fell back and, if it has labels, the errors.

    Labels that will be learnt from are scored by cross-fitting, or not at all. Returns the baseline, None if
    no target is scored, and the mistakes of cross-fitting as `ReportInputs` has them.
    """
    baseline, classifier, mistakes = None, adapter.classifier_, {}
    source_sample = sample_rows(rows.source_rows)
    if job.use_labels == "both" and learnt is not None:
        show_stage("cross-fitting", None)
        cross_fitted = cross_fit(classifier, learnt)
    for i, (entry, target) in enumerate(zip(entries, rows.targets, strict=True)):
        show_stage(f"measuring {target.path.name}", None)
        entry["distance_before"] = measure_distance(source_sample, sample_rows(rows.target_rows[i]))
        entry["fell_back"] = bool(classifier.caution_["fell_back"]) and learnt is None
        if target.labels is None:
            continue
        if target.n_scored == 0 or job.use_labels == "train":
            entry |= summarize_errors()
            continue
        if task.name != "classes":
            X, y = rows.source_rows, task.encode([label for label in labels if label is not None])
            is_labelled = np.array([label is not None for label in labels])
            baseline = baseline or fit_task_baseline(task, X[is_labelled], y)
            Z = rows.target_rows[i]
            extra = {} if target.vectors is None else {"extra": target.vectors}
            predicted = baseline.predict(Z), classifier.predict(Z, sample_domain=-1 - i, **extra)
            entry |= score_task(task, target.labels, *predicted)
            continue
        baseline = baseline or fit_baseline(rows.source_rows, labels)
        if learnt is None:
            warn_of_other_labels(target.labels, classifier.classes_.tolist())
            counts = rows.count_mistakes(i, baseline, classifier)
            entry["labelled_shares"] = share_labels(target.truth, classifier.classes_.tolist())
        else:
            mine = np.flatnonzero((learnt.numbers == -1 - i) & (learnt.weights > 0))
            first = baseline.predict(learnt.X[mine]).tolist() if len(mine) else []
            counts = sum_mistakes(
                learnt.y[mine].tolist(), learnt.weights[mine], first, cross_fitted[mine].tolist()
            )
            wrong = (np.array(codes, dtype=object) != learnt.y[mine] for codes in (first, cross_fitted[mine]))
            mistakes[i] = (*wrong, learnt.weights[mine])
        entry |= summarize_errors(counts.tolist())
    return baseline, mistakes


class LocalRows:
    """The rows of a job on this machine: files read whole, one matrix for each domain."""

    def __init__(self, job: AdaptJob, show_stage: ShowStage) -> None:
        self.job, self.show_stage = job, show_stage
        self.sources = [read_domain(path, job, job.label, show_stage) for path in job.sources]
        self.targets = [read_domain(path, job, job.target_label, show_stage) for path in job.targets]
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
        """Fit the adapter on all domains; `labels` are those of the source rows, as `fit` takes them."""
        domains = [*self.sources, *self.targets]
        self.show_stage("counting terms", None)
        adapter.fit_vocabulary(interleave([domain.documents for domain in domains]))
        self.X = [adapter.vectorizer_.transform(domain.documents) for domain in domains]
        sample_domain = number_rows(self.sources, self.targets)
        nothing = np.full((len(sample_domain) - len(labels), *labels.shape[1:]), None, dtype=labels.dtype)
        y = np.concatenate([labels, nothing])
        self.show_stage("learning", None)
        extra = None
        if self.job.embedding is not None:
            vectors = [domain.vectors for domain in domains if domain.vectors is not None]
            extra = stack_vectors([domain.path for domain in domains], vectors)
        adapter.fit_rows(
            stack_rows(self.X), y, sample_domain=sample_domain, extra=extra, keeps_state=self.job.needs_state
        )

    def count_mistakes(self, i: int, baseline: Any, classifier: Any) -> np.ndarray:
        """Sum over the labelled rows of a target, and over those that each model gets wrong.

        The scores of all of its rows are kept, to be written.
        """
        X, target = self.target_rows[i], self.targets[i]
        self._scores[i] = scores = score_rows(classifier, X, -1 - i, target.vectors)
        models = baseline, classifier, -1 - i
        return count_mistakes(X, target.truth, *models, scores.reshape(X.shape[0], -1))

    @contextmanager
    def write_predictions(
        self, adapter: TextAdapter, added: AddedColumns, kinds: dict[str, Any]
    ) -> Iterator[WrittenPredictions]:
        """Write predictions, put in place when the context ends; keeps them if there is to be a report."""
        counts: list[Any] = []
        predictions = []
        with write_table(self.job.out, tuple(kinds), kinds=kinds) as out:
            for i, (target, X) in enumerate(zip(self.targets, self.target_rows, strict=True)):
                written: list[Predictions] = []
                start = 0
                for rows in target.table or []:
                    stop = start + len(rows)
                    vectors = None if target.vectors is None else target.vectors[start:stop]
                    scores = self._scores[i][start:stop] if i in self._scores else None
                    written.append(predict_rows(adapter, X[start:stop], -1 - i, vectors, scores))
                    out.write(rows.with_columns(written[-1].columns(added, adapter.domain_names_[i])))
                    start = stop
                    self.show_stage("writing predictions", rows.share_read)
                counts.append(sum(block.count(added.min_confidence) for block in written))
                kept = written if self.job.report else []
                predictions.append(
                    {
                        "prediction": [label for block in kept for label in block.labels],
                        "probabilities": np.concatenate([block.probabilities for block in kept] or [[]]),
                    }
                )
            yield WrittenPredictions(counts, predictions)
