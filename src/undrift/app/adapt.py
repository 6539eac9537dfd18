"""The adapt job: labelled source files and unlabelled target files in, predictions and a summary out."""

from __future__ import annotations

import hashlib
import time
import warnings
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

import numpy as np
import pandas as pd
from sklearn.base import clone

from ..core import Rows as Matrix
from ..core import stack_rows
from ..errors import UndriftWarning, warn
from ..inputs import gather_rows, spell_label
from ..method import MSDAClassifier, predict_codes
from ..persist import choose_bits, measure_parts, save_model
from ..results import Baseline, Comparison, Label, Target, fitted_svm
from ..text import N_TERMS, TermVectorizer, TextAdapter, cross_languages
from . import terminal
from .distill import DistilledFile, distill_domains
from .domains import (
    JobDomain,
    check_job,
    check_labels,
    check_merges,
    check_texts,
    list_classes,
    match_shares,
    merge_labels,
    read_domains,
    settle_text,
)
from .drift import describe_target
from .job import AdaptJob, ShowStage, Summary, ignore_stage
from .labels import TrainingLabels, attach_labels, cross_fit, gather_labels, learn_labels, read_teacher
from .options import parse_settings
from .predictions import Counts, Predictions, join_predictions, list_added, name_said, predict_taught
from .summary import (
    AdaptSummary,
    Bridge,
    DrySummary,
    FileRows,
    FitFacts,
    ModelFile,
    Scored,
    TargetSummary,
    TeacherSummary,
    compare_words,
    describe_bridge,
    describe_summary,
    describe_teachers,
    keep_warnings,
    list_notes,
    name_labels,
    summarize_teacher,
)
from .tables import Style, common_delimiter, join_kinds, with_added, write_table

if TYPE_CHECKING:
    from ..report import Report

CHECKED_ROWS = 200  # target rows whose predictions fewer bits of a weight must not change
FIT_STAGES = {"counting terms": 0.6, "learning layers": 2.9, "fitting the classifier": 0.2}
MODEL_STAGES = {"describing the target": 0.8, "saving the model": 0.4}
REPORT_STAGES = {"writing the report": 2.6}  # seconds of each stage with 800 + 800 reviews, for the time left


def build_adapter(
    n_terms: int | None,
    tokens: str = "auto",
    is_fast: bool | None = None,
    border: Literal["error", "balanced"] = "error",
    device: str = "cpu",
    settings: Sequence[str] | None = None,
) -> TextAdapter:
    """Return the adapter that options describe; `is_fast` None stands for neither fast nor thorough."""
    n_pivots: Literal["auto", "few", "many"] = "auto" if is_fast is None else "few" if is_fast else "many"
    classifier = MSDAClassifier(border=border, device=device, random_state=0, n_pivots=n_pivots)
    classifier.set_params(**parse_settings(settings, list(classifier.get_params())))
    n_terms = n_terms or (2 * N_TERMS if is_fast is False else N_TERMS)
    return TextAdapter(n_terms, tokens=tokens, classifier=classifier)


def show_adapt(
    run: Callable[[AdaptJob, TextAdapter, ShowStage], AdaptSummary],
    job: AdaptJob,
    adapter: TextAdapter,
    *,
    as_json: bool,
) -> None:
    """Run a job with a progress bar, and show its summary."""
    if not (job.model or job.distilled or as_json):
        terminal.show_hint("predictions alone are kept; --model FILE --updatable keeps the model too")
    stages = FIT_STAGES | (MODEL_STAGES if job.model else {}) | (REPORT_STAGES if job.report else {})
    summary = terminal.run_job(partial(run, job, adapter), stages if run is run_adapt else {})
    for warning in summary.warnings:
        terminal.show_warning(warning)
    told = Summary(summary.to_dict(), [*describe_summary(summary, terminal.output.is_verbose)])
    terminal.show_summary(told, as_json=as_json)


class LocalRows:
    """The rows of a job on this machine: files read whole, one matrix for each domain."""

    baseline: Baseline | None = None  # once a target is scored
    crossed: JobDomain | None = None  # the targets' rows with labels from another language

    def __init__(self, job: AdaptJob, show_stage: ShowStage) -> None:
        self.job, self.show_stage = job, show_stage
        self.predictions: list[Predictions] = []  # of every target, for a report or a teacher's summary
        self.X: list[Matrix] = []  # rows of every domain, after `fit`
        self.unseen: list[float | None] = []  # shares of the words of every target, after `fit`
        self._scores: dict[int, np.ndarray] = {}  # of a target's rows, by its position
        self.read()

    def read(self) -> None:
        """Read the files of every domain."""
        job, show = self.job, self.show_stage
        self.sources = read_domains(job.sources, job.reading, job.text, show, job.label)
        columns, option = job.target_labels, "--target-text" if job.sources else "--text"
        self.targets = read_domains(job.targets, job.reading, job.target_text, show, *columns, option=option)

    def fit(self, adapter: TextAdapter, labels: np.ndarray) -> None:
        """Fit the adapter on all domains; `labels` are those of the source rows, None where there is none."""
        if self.job.bridge:
            self._fit_across(adapter, labels)
            return
        self.show_stage("counting terms", None)
        vectorizer = self.count_terms(adapter)
        self.show_stage("learning", None)
        sizes = [source.n_rows for source in self.sources]
        domain = np.repeat(np.arange(len(sizes)), sizes) if len(sizes) > 1 else None
        targets = {target.name: X for target, X in zip(self.targets, self.target_rows, strict=True)}
        said = {
            name: {target.name: target.teacher[name] for target in self.targets}
            for name in self.targets[0].teacher
        }
        adapter.fit_rows(
            vectorizer,
            self.source_rows if self.sources else None,
            labels if self.sources else None,
            targets,
            sample_domain=domain,
            keeps_state=self.job.needs_state,
            teacher=said.get("teacher"),
            teacher_confidence=said.get("teacher_confidence"),
        )

    def _fit_across(self, adapter: TextAdapter, labels: np.ndarray) -> None:
        """Fit the adapter on the targets alone; sentence vectors carry the labels over from the sources."""
        documents = {target.name: target.documents for target in self.targets}
        texts = [document for source in self.sources for document in source.documents]
        title = ", ".join(source.path.name for source in self.sources)
        crossing = cross_languages(texts, labels, documents, adapter.new_vectorizer(), title, self.show_stage)
        self.show_stage("learning", None)
        adapter.fit_crossing(crossing, is_named=True, keeps_state=self.job.needs_state)
        count_terms = crossing.vectorizer.transform
        self.X = [*(count_terms(source.documents) for source in self.sources), *crossing.rows.values()]
        self.unseen = [None] * len(self.targets)
        taught = [label for told in crossing.list_labels().values() for label in told]
        everything = [document for listed in documents.values() for document in listed]
        path = Path(f"{self.sources[0].name} in {crossing.source_language}")
        self.crossed = replace(
            self.sources[0],
            path=path,
            n_rows=len(taught),
            labels=taught,
            documents=everything,
            frame=None,
            weights=None,
        )

    def count_terms(self, adapter: TextAdapter) -> TermVectorizer:
        """Choose the vocabulary, and make the rows of every domain."""
        documents = [domain.documents for domain in (*self.sources, *self.targets)]
        vectorizer = adapter.new_vectorizer()
        self.X, words = vectorizer.fit_domains(documents)
        self.unseen = compare_words(self.targets, words, vectorizer.tokens_)
        return vectorizer

    @cached_property
    def source_rows(self) -> Matrix:
        """Rows of all sources, after `fit`; of all targets where these were labelled from elsewhere."""
        if self.crossed is not None:
            return stack_rows(self.target_rows)
        return stack_rows(self.X[: len(self.sources)] or self.X)

    @property
    def target_rows(self) -> list[Matrix]:
        """Rows of each target, after `fit`."""
        return self.X[len(self.sources) :]

    def count_mistakes(self, i: int, baseline: Baseline, classifier: MSDAClassifier) -> Comparison:
        """Sum the mistakes of both models on the labelled rows of a target."""
        target = self.targets[i]
        scores = None if target.teacher else self._find_scores(classifier, i)
        return count_mistakes(self.target_rows[i], target.truth, baseline, classifier, target.name, scores)

    def _find_scores(self, classifier: MSDAClassifier, i: int) -> np.ndarray:
        """Return the scores of a target's rows, kept from the fit or computed once."""
        fitted = classifier.target_scores_[i]
        if fitted is not None:
            return fitted
        if i not in self._scores:
            X, name = self.target_rows[i], self.targets[i].name
            self._scores[i] = np.asarray(classifier.decision_function(X, target=name))
        return self._scores[i]

    def predict(
        self, classifier: MSDAClassifier
    ) -> Iterator[tuple[int, Predictions, Iterable[pd.DataFrame]]]:
        """Predict all targets in parts; yield a target's position, predictions, and tables of their rows."""
        for i, (target, X) in enumerate(zip(self.targets, self.target_rows, strict=True)):
            scores = self._find_scores(classifier, i)
            assert target.frame is not None
            yield i, predict_taught(X, target.said, classifier, target.name, scores), [target.frame]

    @contextmanager
    def write_predictions(
        self, adapter: TextAdapter, kinds: Mapping[str, set[Hashable]], added: Sequence[str]
    ) -> Iterator[list[Counts]]:
        """Write predictions, put in place when the context ends, and give the counts of every target.

        `kinds` are all columns of the output, and `added` are those that are not in the files.
        """
        limit, is_kept = self.job.min_confidence, self.job.teacher or self.job.report
        counts = [Counts.none(adapter.classes_.tolist(), limit) for _ in self.targets]
        kept: list[list[Predictions]] = [[] for _ in self.targets]
        style = Style(common_delimiter(t.delimiter for t in self.targets), self.job.reading.safe_cells)
        with write_table(self.job.out, kinds, style) as write:
            for i, predicted, frames in self.predict(adapter.classifier_):
                self.show_stage("writing predictions", None)
                counts[i] = counts[i] + predicted.count(limit)
                kept[i] += [predicted] if is_kept else []
                columns, start = predicted.columns(added, limit, domain=self.targets[i].name), 0
                for frame in frames:
                    rows = slice(start, start + len(frame))
                    write(frame.assign(**{name: values[rows] for name, values in columns.items()}))
                    start = rows.stop
            self.predictions = [join_predictions(parts) for parts in kept if parts]
            yield counts


def run_adapt(
    job: AdaptJob,
    adapter: TextAdapter,
    show_stage: ShowStage = ignore_stage,
    *,
    open_elsewhere: Callable[[AdaptJob, TextAdapter, ShowStage], AbstractContextManager[LocalRows]]
    | None = None,
) -> AdaptSummary:
    """Do the whole job: fit `adapter`, and return a summary.

    Nothing is written unless all can be. `open_elsewhere` opens the rows where they are not on this machine.
    """
    start = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UndriftWarning)
        check_job(job, has_cluster=open_elsewhere is not None)
        job = settle_text(job)
        if open_elsewhere:
            opened = open_elsewhere(job, adapter, show_stage)
        else:
            opened = nullcontext(LocalRows(job, show_stage))
        with opened as rows:
            summary = _adapt(job, adapter, rows)
    given = [item.message for item in caught if isinstance(item.message, UndriftWarning)]
    kept, seconds = keep_warnings(given, summary.targets), round(time.perf_counter() - start, 2)
    summary = replace(summary, warnings=kept, seconds=seconds)
    if job.report is not None:
        show_stage("writing the report", None)
        report_run(adapter, rows, summary).save(job.report)
    return summary


def _settle_rows(job: AdaptJob, rows: LocalRows) -> tuple[list[Label | None], list[str]]:
    """Return the labels of the source, and notes; the rows get their labels, spelt alike, and a teacher's."""
    check_texts(rows.sources, job.text, "--text")
    check_texts(rows.targets, job.target_text, "--target-text" if job.sources else "--text")
    taught = [replace(target, labels=target.cells.get(job.teacher)) for target in rows.targets]
    merged = check_merges(job.merges, [*rows.sources, *(taught if job.teacher else [])])
    rows.sources = [merge_labels(source, [job.label], job.merges) for source in rows.sources]
    columns = [job.target_label, job.teacher]
    rows.targets = [merge_labels(target, columns, job.merges) for target in rows.targets]
    labels, notes = _settle_labels(job, rows)
    return labels, [*merged, *notes]


def _attach_labels(job: AdaptJob, rows: LocalRows, classes: Sequence[Label]) -> list[str]:
    """Give the targets the labels of the job and of a teacher; return notes."""
    notes: list[str] = []
    if job.target_label or job.labels:
        rows.targets, notes = attach_labels(job, rows.sources, rows.targets, classes)
    if job.teacher:
        rows.targets = [replace(t, teacher=read_teacher(job, t, classes)) for t in rows.targets]
    return notes


def run_dry(job: AdaptJob, show_stage: ShowStage = ignore_stage) -> DrySummary:
    """Read the files of a job and check it, without a fit and without output."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UndriftWarning)
        check_job(job)
        job = settle_text(job)
        rows = LocalRows(job, show_stage)
        labels, notes = _settle_rows(job, rows)
        counts = Counter(label for label in labels if label is not None)
        notes += _attach_labels(job, rows, list_classes(labels))
    given = dict.fromkeys(str(item.message) for item in caught if isinstance(item.message, UndriftWarning))
    return DrySummary(
        sources=[FileRows.of(source) for source in rows.sources],
        targets=[FileRows.of(target) for target in rows.targets],
        text=job.text,
        target_text=job.target_text,
        labels={spell_label(label): n for label, n in sorted(counts.items())},
        notes=notes,
        warnings=list(given),
    )


def _adapt(job: AdaptJob, adapter: TextAdapter, rows: LocalRows) -> AdaptSummary:
    labels, notes = _settle_rows(job, rows)
    counts = Counter(label for label in labels if label is not None)
    classes = list_classes(labels)
    added = list_added(job, classes, has_domain=len(rows.targets) > 1)
    for target in rows.targets:
        with_added(target.path, target.kinds, added)  # refuses names that clash
    notes += _attach_labels(job, rows, classes)
    if job.target_shares:
        classifier = clone(adapter.classifier or MSDAClassifier())
        adapter.set_params(classifier=classifier.set_params(target_shares=match_shares(job, classes)))
    rows.fit(adapter, np.array(labels, dtype=object))
    notes += list_notes(job, rows.targets, adapter)
    fit, learnt = FitFacts.of(adapter), None
    if job.use_labels != "score":
        learnt = gather_labels(rows.targets, rows.target_rows, adapter.classes_.tolist())
    scored = _score_targets(adapter, rows, labels, learnt)
    if learnt is not None:
        rows.show_stage("learning the target's labels", None)
        learn_labels(adapter.classifier_, learnt)
    classifier = adapter.classifier_
    kinds = join_kinds(target.kinds for target in rows.targets) | added
    with rows.write_predictions(adapter, kinds, list(added)) as row_counts:
        targets = [
            TargetSummary(
                FileRows.of(target),
                rows.unseen[i],
                row_counts[i],
                Target.of(classifier, target.name),
                classifier.target_shares is not None,
                classifier.border,
                scored[i],
                _summarize_teacher(adapter, rows, i, is_scored=learnt is None) if job.teacher else None,
            )
            for i, target in enumerate(rows.targets)
        ]
        model_file, distilled = _save_models(job, adapter, rows)
    return AdaptSummary(
        job,
        [FileRows.of(source) for source in rows.sources],
        targets,
        {spell_label(label): n for label, n in counts.items()},
        fit,
        notes,
        None if learnt is None else len(learnt.keys),
        Bridge(**adapter.facts_["bridge"]) if job.bridge else None,
        model_file,
        distilled,
    )


def _summarize_teacher(adapter: TextAdapter, rows: LocalRows, i: int, *, is_scored: bool) -> TeacherSummary:
    """Say how good the teacher of a target looks; labels that were learnt score nobody."""
    X, target, predicted = rows.target_rows[i], rows.targets[i], rows.predictions[i]
    noise = cast(float, adapter.classifier_.teacher_noise_[i])  # of one teacher
    return summarize_teacher(adapter, X, target, predicted, noise=noise, is_scored=is_scored)


def _settle_labels(job: AdaptJob, rows: LocalRows) -> tuple[list[Label | None], list[str]]:
    """Return the labels of the source in one spelling, and notes; those of the targets are spelt alike."""
    sources = rows.sources
    files, column = job.sources, job.label
    if not sources:
        sources = [replace(target, labels=target.cells[job.teacher]) for target in rows.targets]
        files, column = job.targets, job.teacher or ""
    labels, rewritten, notes = check_labels(files, column, sources, rows.targets)
    for i, target in enumerate(rows.targets if rewritten else []):
        tidied = [rewritten.get(label, label) for label in target.labels or []]
        rows.targets[i] = replace(target, labels=tidied if target.labels is not None else None)
    return labels, notes


def _save_models(
    job: AdaptJob, adapter: TextAdapter, rows: LocalRows
) -> tuple[ModelFile | None, DistilledFile | None]:
    """Save the model and a distilled one, where they are asked for."""
    if job.model is None and job.distilled is None:
        return None, None
    rows.show_stage("describing the target", None)
    references = {target.name: describe_target(adapter, target.documents) for target in rows.targets}
    merges = {"merges": dict(job.merges)} if job.merges else {}
    columns = {"text_columns": list(job.target_text), "source_columns": list(job.text)}
    adapter.remember(**merges, **columns, references=references)
    model_file = distilled_file = None
    if job.model is not None:
        model_file = _save_adapter(adapter, job.model, rows)
    if job.distilled is not None:
        rows.show_stage("distilling", None)
        distilled = distill_domains(adapter, rows.targets)
        save_model(distilled, job.distilled)
        distilled_file = DistilledFile.of(distilled, job.distilled)
    return model_file, distilled_file


def _save_adapter(adapter: TextAdapter, path: Path, rows: LocalRows) -> ModelFile:
    """Save a model, with the fewest bits that change no prediction of a sample."""
    n_each = -(-CHECKED_ROWS // len(rows.targets))
    targets = zip(rows.targets, rows.target_rows, strict=True)
    samples = {target.name: sample_rows(target_rows, n_each) for target, target_rows in targets}
    bits = choose_bits(adapter.classifier_, samples)
    rows.show_stage("saving the model", None)
    save_model(adapter, path, updatable=rows.job.updatable, bits=bits)
    n_checked = sum(X.shape[0] for X in samples.values())
    return ModelFile(path.stat().st_size, measure_parts(path), bits, n_checked)


def sample_rows(X: Matrix, n_rows: int) -> Matrix:
    """Draw rows that stand for all, without replacement; those on a cluster are brought here."""
    return gather_rows(X[np.sort(np.random.default_rng(0).permutation(X.shape[0])[:n_rows])])


def _score_targets(
    adapter: TextAdapter, rows: LocalRows, labels: Sequence[Label | None], learnt: TrainingLabels | None
) -> list[Scored | None]:
    """Return the errors on every target, None for one without labels.

    Labels that will be learnt from are scored by cross-fitting, or not at all. The rows keep the baseline.
    """
    classifier, classes = adapter.classifier_, adapter.classes_.tolist()
    crossed = None
    if learnt is not None and rows.job.use_labels == "both":
        rows.show_stage("cross-fitting", None)
        crossed = cross_fit(classifier, learnt)
    scored: list[Scored | None] = []
    for i, target in enumerate(rows.targets):
        rows.show_stage(f"measuring {target.path.name}", None)
        if target.labels is None:
            scored.append(None)
            continue
        if target.n_scored == 0 or rows.job.use_labels == "train":
            scored.append(Scored(Comparison()))
            continue
        taught = labels if rows.crossed is None else rows.crossed.labels or []
        rows.baseline = rows.baseline or fit_baseline(rows.source_rows, taught)
        if learnt is not None and crossed is not None:
            scored.append(Scored(_compare_crossed(rows.baseline, learnt, crossed, target.name)))
        else:
            compared = rows.count_mistakes(i, rows.baseline, classifier)
            scored.append(Scored(compared, share_labels(target.truth, classes)))
    return scored


def _compare_crossed(
    baseline: Baseline, learnt: TrainingLabels, crossed: np.ndarray, target: str
) -> Comparison:
    """Compare the baseline with predictions of cross-fitting, on labels of a target that may be scored."""
    mine = np.flatnonzero((learnt.names == target) & (learnt.weights > 0))
    if not len(mine):
        return Comparison()
    before, after = baseline.predict(learnt.X[mine]).tolist(), crossed[mine].tolist()
    return Comparison.of_labels(learnt.y[mine].tolist(), learnt.weights[mine], before, after)


def fit_baseline(X: Matrix, labels: Sequence[Label | None]) -> Baseline:
    """Fit the baseline: a linear SVM on the labelled source rows, its C chosen by cross-validation."""
    is_labelled = np.array([label is not None for label in labels])
    y = np.array([label for label in labels if label is not None])
    return fitted_svm(gather_rows(X[is_labelled]), y)


def count_mistakes(
    X: Matrix,
    truth: np.ndarray,
    baseline: Baseline,
    classifier: MSDAClassifier,
    target: str,
    scores: np.ndarray | None = None,
) -> Comparison:
    """Compare two models on the labelled rows of a target.

    `truth` is that of a `JobDomain`. `scores` are those of the classifier for all rows, if they are known.
    """
    known = np.array([label is not None for label in truth[:, 0]], dtype=bool)
    if not known.any():
        return Comparison()
    if scores is None:
        adapted = classifier.predict(X[known], target=target, **name_said(truth[known, 2:]))
    else:
        adapted = classifier.classes_[predict_codes(scores.reshape(len(truth), -1)[known])]
    labels, weight = truth[known, 0].tolist(), truth[known, 1].astype(float)
    return Comparison.of_labels(labels, weight, baseline.predict(X[known]).tolist(), adapted.tolist())


def share_labels(truth: np.ndarray, classes: Sequence[Label]) -> dict[str, float]:
    """Return the share of every class among the rows with a label, by their weights; `truth` as above.

    Warns where no label of the target is a label of the source.
    """
    sums: dict[str, float] = {}
    for label, weight in truth[:, :2]:
        if label is not None:
            sums[spell_label(label)] = sums.get(spell_label(label), 0.0) + weight
    names = [spell_label(label) for label in classes]
    if not set(sums) & set(names):
        theirs, ours = (", ".join(each[:3]) + ", ..." * (len(each) > 3) for each in (sorted(sums), names))
        which = f"none of the target's labels ({theirs}) is one of the source's ({ours})"
        warn(f"{which}: every prediction counts as wrong")
    return {name: sums.get(name, 0.0) / sum(sums.values()) for name in names}


def report_run(adapter: TextAdapter, rows: LocalRows, summary: AdaptSummary) -> Report:
    """Return the report of a finished job: the rows of every domain, predictions, and facts about the run."""
    from ..report import DomainRows, ReportData, RunFacts, report_adaptation

    job, is_learnt = rows.job, summary.n_learnt is not None
    sources = [rows.crossed] if rows.crossed else rows.sources
    sources = sources or [
        replace(target, path=Path(f"teacher of {target.path.name}"), labels=target.teacher["teacher"])
        for target in rows.targets
    ]
    paths = [domain.path for domain in (*sources, *rows.targets)]
    names = [path.name.split(".")[0] or path.name for path in paths]
    names = names if len(set(names)) == len(names) else list(map(str, paths))
    target_rows = [
        DomainRows(
            name,
            rows.target_rows[k],
            target.documents,
            target.labels,
            rows.predictions[k].labels,
            rows.predictions[k].probabilities,
            [0.0] * target.n_rows if is_learnt else target.weights,  # no label that was learnt is scored
            unseen_share=summary.targets[k].unseen_share,
            errors=summary.targets[k].errors,
        )
        for k, (name, target) in enumerate(zip(names[len(sources) :], rows.targets, strict=True))
    ]
    facts = RunFacts(
        command=job.command,
        seconds=summary.seconds,
        warnings=summary.warnings,
        notes=summary.notes,
        teachers=[*describe_bridge(summary), *describe_teachers(summary)],
        taught_by=name_labels(summary),
        files=[_describe_file(path) for path in (*job.sources, *job.targets)],
        text_columns=list(dict.fromkeys([*job.text, *job.target_text])),
        use_labels=job.use_labels,
        n_learnt=summary.n_learnt or 0,
    )
    read = sum(source.n_rows for source in rows.sources), sum(summary.labels.values())
    data = ReportData(
        adapter.classifier_,
        adapter.terms_,
        [
            DomainRows(
                name,
                X,
                source.documents,
                source.labels,
                weights=source.weights,
                read=read if rows.crossed else None,
            )
            for name, X, source in zip(
                names, [rows.source_rows] if rows.crossed else rows.X, sources, strict=False
            )
        ],
        target_rows,
        facts,
        rows.baseline,
        adapter.vectorizer_,
    )
    return report_adaptation(data)


def _describe_file(path: Path) -> dict[str, object]:
    """Return name, size and SHA-256 of a file."""
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {"file": str(path), "bytes": path.stat().st_size, "sha256": digest}
