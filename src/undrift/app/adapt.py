"""The adapt job: labelled source files and unlabelled target files in, predictions and a summary out."""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

import numpy as np
from sklearn.base import clone

from ..errors import count, record_warnings, warn
from ..inputs import gather_rows, spell_label
from ..method import MSDAClassifier
from ..persist import choose_bits, measure_parts, save_model
from ..results import Comparison, Label, Target, fitted_svm
from ..text import N_TERMS, TextAdapter
from . import terminal
from .classes import check_labels, list_classes, match_shares, merge_labels
from .distill import DistilledFile, distill_domains
from .domains import check_job, check_texts, settle_text
from .drift import describe_target
from .job import AdaptJob, ShowStage, Summary, ignore_stage
from .labels import TrainingLabels, attach_labels, cross_fit, gather_labels, learn_labels, read_teacher
from .options import parse_settings
from .predictions import list_added
from .rows import LocalRows
from .summary import (
    DIFFERENT,
    AdaptSummary,
    DrySummary,
    FileRows,
    ModelFile,
    TargetSummary,
    list_doubts,
    list_notes,
)
from .tables import TableError, join_kinds, with_added
from .teacher import summarize_teacher

if TYPE_CHECKING:
    from ..report import Report

LEAST_TARGET = 30  # rows of a target below which a fit is refused
CHECKED_ROWS = 200  # target rows whose predictions fewer bits of a weight must not change


def build_adapter(job: AdaptJob) -> TextAdapter:
    """Return the adapter that a job describes; `is_fast` None stands for neither fast nor thorough."""
    n_pivots: dict[bool | None, Literal["auto", "few", "many"]] = {None: "auto", True: "few", False: "many"}
    device = "cpu" if job.on_cluster else job.device
    classifier = MSDAClassifier(
        border=job.border, device=device, random_state=0, n_pivots=n_pivots[job.is_fast]
    )
    classifier.set_params(**parse_settings(job.settings, list(classifier.get_params())))
    n_terms = job.max_features or (2 * N_TERMS if job.is_fast is False else N_TERMS)
    return TextAdapter(n_terms, tokens=job.tokens, classifier=classifier)


def show_adapt(job: AdaptJob, adapter: TextAdapter | None = None, *, as_json: bool) -> None:
    """Do a job with a progress bar, or say what it would read; show its summary, and warnings."""
    if not (job.model or job.distilled or job.dry_run or as_json):
        terminal.show_hint("predictions alone are kept; --model FILE --updatable keeps the model too")
    run = partial(run_dry, job) if job.dry_run else partial(run_adapt, job, adapter or build_adapter(job))
    done = terminal.run_job(run)
    for warning in done.warnings:
        terminal.show_warning(warning)
    told = Summary(done.to_dict(), [*done.describe(is_verbose=terminal.output.is_verbose)])
    terminal.show_summary(told, as_json=as_json)


def run_adapt(job: AdaptJob, adapter: TextAdapter, show_stage: ShowStage = ignore_stage) -> AdaptSummary:
    """Do the whole job: fit `adapter`, and return a summary.

    Nothing is written unless all can be. On a cluster its workers read the files themselves, under the same
    absolute paths.
    """
    start = time.perf_counter()
    with record_warnings() as caught:
        check_job(job)
        job = settle_text(job)
        with open_job(job, adapter, show_stage) as rows:
            summary = predict_rows(job, adapter, rows)
    dropped = {DIFFERENT}  # stories are told instead
    if all(target.errors and target.errors.gain.answer == "yes" for target in summary.targets):
        dropped.add("far-apart")  # labels show that adaptation helped
    kept = list(dict.fromkeys(str(warning) for warning in caught if warning.code not in dropped))
    summary = replace(summary, warnings=kept, seconds=round(time.perf_counter() - start, 2))
    if job.report is not None:
        show_stage("writing the report", None)
        report_run(adapter, rows, summary).save(job.report)
    return summary


@contextmanager
def open_job(job: AdaptJob, adapter: TextAdapter, show_stage: ShowStage) -> Iterator[LocalRows]:
    """Open the rows of a job: on this machine, or on a cluster."""
    if job.on_cluster:
        from ..distributed import connect
        from .on_dask import ClusterRows

        with connect(job.device):
            yield ClusterRows(job, adapter.new_vectorizer(), show_stage)
    else:
        yield LocalRows(job, show_stage)


def settle_rows(job: AdaptJob, rows: LocalRows) -> tuple[list[Label | None], list[str]]:
    """Check the texts and labels of a job; return the labels of the source in one spelling, and notes.

    The targets get their labels, spelt alike, and what a teacher says.
    """
    check_texts(rows.sources, job.text, "--text")
    check_texts(rows.targets, job.target_text, "--target-text" if job.sources else "--text")
    n_sources, columns = len(rows.sources), [job.label, job.target_label, job.teacher]
    merged, notes = merge_labels([*rows.sources, *rows.targets], columns, job.merges)
    rows.sources, rows.targets = merged[:n_sources], merged[n_sources:]
    given = [source.labels or [] for source in rows.sources] or [t.cells[job.teacher] for t in rows.targets]
    files, column = (job.sources, job.label) if job.sources else (job.targets, job.teacher)
    labels, rewritten, tidied = check_labels(files, column or "", [*chain.from_iterable(given)])
    for target in rows.targets:
        if target.n_rows < LEAST_TARGET:
            raise TableError(
                f"{target.path} has {count(target.n_rows, 'row')}; a target needs at least {LEAST_TARGET}: "
                "add unlabelled rows of the same kind, or predict them with a saved model"
            )
    rows.targets = [
        t if t.labels is None else replace(t, labels=[rewritten.get(label, label) for label in t.labels])
        for t in rows.targets
    ]
    attached: list[str] = []
    classes = list_classes(labels)
    if job.target_label or job.labels:
        rows.targets, attached = attach_labels(job, rows.sources, rows.targets, classes)
    if job.teacher:
        rows.targets = [replace(t, teacher=read_teacher(job, t, classes)) for t in rows.targets]
    return labels, [*notes, *tidied, *attached]


def count_labels(labels: Sequence[Label | None]) -> dict[str, int]:
    """Count the labelled rows of every class."""
    counts = Counter(label for label in labels if label is not None)
    return {spell_label(label): counts[label] for label in list_classes(labels)}


def run_dry(job: AdaptJob, show_stage: ShowStage = ignore_stage) -> DrySummary:
    """Read the files of a job and check it, without a fit and without output."""
    with record_warnings() as caught:
        check_job(job)
        job = settle_text(job)
        rows = LocalRows(job, show_stage)
        labels, notes = settle_rows(job, rows)
    return DrySummary(
        sources=[FileRows.of(source) for source in rows.sources],
        targets=[FileRows.of(target) for target in rows.targets],
        text=job.text,
        target_text=job.target_text,
        labels=count_labels(labels),
        notes=[*notes, *list_notes(job, rows.targets)],
        warnings=list(dict.fromkeys(map(str, caught))),
    )


def fit_rows(
    job: AdaptJob, adapter: TextAdapter, rows: LocalRows
) -> tuple[list[Label | None], list[str], dict[str, set[Hashable]]]:
    """Fit the adapter; return the labels of the source, notes, and the columns that predictions add."""
    labels, notes = settle_rows(job, rows)
    classes = list_classes(labels)
    added = list_added(job, classes, has_domain=len(rows.targets) > 1)
    for target in rows.targets:
        with_added(target.path, target.kinds, added)  # refuses names that clash
    if job.target_shares:
        classifier = clone(adapter.classifier or MSDAClassifier())
        adapter.set_params(classifier=classifier.set_params(target_shares=match_shares(job, classes)))
    rows.fit(adapter, np.array(labels, dtype=object))
    notes += [*list_notes(job, rows.targets), *list_doubts(adapter.classifier_)]
    return labels, notes, added


def predict_rows(job: AdaptJob, adapter: TextAdapter, rows: LocalRows) -> AdaptSummary:
    """Fit the adapter, and write predictions and models, all of them or none."""
    labels, notes, added = fit_rows(job, adapter, rows)
    classifier, learnt = adapter.classifier_, None
    if job.use_labels != "score":
        learnt = gather_labels(rows.targets, rows.target_rows, adapter.classes_.tolist())
    scored = score_targets(adapter, rows, labels, learnt)
    if learnt is not None:
        rows.show_stage("learning the target's labels", None)
        learn_labels(classifier, learnt)
    kinds = join_kinds(target.kinds for target in rows.targets) | added
    with rows.write_predictions(adapter, kinds, list(added)) as counts:
        targets = [
            TargetSummary(
                **vars(FileRows.of(target)),
                unseen_share=rows.unseen[i],
                predicted_shares=counts[i].predicted_shares,
                unknown_rows=counts[i].unknown_rows,
                n_doubtful=counts[i].n_doubtful,
                known=Target.of(classifier, target.name),
                target_shares_given=classifier.target_shares is not None,
                border=classifier.border,
                scored=scored[i][0],
                labelled_shares=scored[i][1],
                teacher=summarize_teacher(
                    adapter,
                    rows.target_rows[i],
                    target,
                    rows.predictions[i],
                    noise=cast(float, classifier.teacher_noise_[i]),  # of one teacher
                    is_scored=learnt is None,
                )
                if job.teacher
                else None,
            )
            for i, target in enumerate(rows.targets)
        ]
        model_file, distilled = save_models(job, adapter, rows)
    return AdaptSummary(
        sources=[FileRows.of(source) for source in rows.sources],
        targets=targets,
        text=job.text,
        target_text=job.target_text,
        labels=count_labels(labels),
        notes=notes,
        out=job.out,
        model=job.model,
        report=job.report,
        updatable=job.updatable,
        classes=adapter.classes_.tolist(),
        vocabulary=len(adapter.terms_),
        pivots=classifier.representation_.layers_[0].coef.shape[1],
        tokens=adapter.vectorizer_.tokens_,
        tokens_reason=adapter.vectorizer_.tokens_reason_,
        chosen=dict(classifier.best_params_),
        n_candidates=len(classifier.selection_results_),
        form=classifier.representation_.form_,
        n_learnt=None if learnt is None else len(learnt.keys),
        bridge=adapter.facts_.get("bridge"),
        model_file=model_file,
        distilled=distilled,
    )


def save_models(
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
    if job.model is not None:  # with the fewest bits that change no prediction of a sample
        n_each, rng = -(-CHECKED_ROWS // len(rows.targets)), np.random.default_rng
        samples = {
            target.name: gather_rows(X[np.sort(rng(0).permutation(X.shape[0])[:n_each])])
            for target, X in zip(rows.targets, rows.target_rows, strict=True)
        }
        bits, n_checked = choose_bits(adapter.classifier_, samples), sum(X.shape[0] for X in samples.values())
        rows.show_stage("saving the model", None)
        save_model(adapter, job.model, updatable=job.updatable, bits=bits)
        model_file = ModelFile(job.model.stat().st_size, measure_parts(job.model), bits, n_checked)
    if job.distilled is not None:
        rows.show_stage("distilling", None)
        distilled = distill_domains(adapter, rows.targets)
        save_model(distilled, job.distilled)
        distilled_file = DistilledFile.of(distilled, job.distilled)
    return model_file, distilled_file


def score_targets(
    adapter: TextAdapter, rows: LocalRows, labels: Sequence[Label | None], learnt: TrainingLabels | None
) -> list[tuple[Comparison | None, dict[str, float] | None]]:
    """Return the mistakes on every target, None for one without labels, and the class shares of its labels.

    Labels that will be learnt from are scored by cross-fitting, or not at all. The rows keep the baseline.
    """
    crossed = None
    if learnt is not None and rows.job.use_labels == "both":
        rows.show_stage("cross-fitting", None)
        crossed = cross_fit(adapter.classifier_, learnt)
    scored: list[tuple[Comparison | None, dict[str, float] | None]] = []
    for i, target in enumerate(rows.targets):
        rows.show_stage(f"measuring {target.path.name}", None)
        if target.n_scored == 0 or rows.job.use_labels == "train":
            scored.append((None if target.labels is None else Comparison(), None))
            continue
        if rows.baseline is None:  # a linear SVM on the labelled source rows
            taught = labels if rows.crossed is None else rows.crossed.labels or []
            is_labelled = np.array([label is not None for label in taught])
            y = np.array([label for label in taught if label is not None])
            rows.baseline = fitted_svm(gather_rows(rows.source_rows[is_labelled]), y)
        if learnt is None or crossed is None:
            mistakes = rows.count_mistakes(i, rows.baseline, adapter.classifier_)
            scored.append((mistakes, share_labels(target.truth, adapter.classes_.tolist())))
            continue
        mine, mistakes = np.flatnonzero((learnt.names == target.name) & (learnt.weights > 0)), Comparison()
        if len(mine):
            before, after = rows.baseline.predict(learnt.X[mine]).tolist(), crossed[mine].tolist()
            mistakes = Comparison.of_labels(learnt.y[mine].tolist(), learnt.weights[mine], before, after)
        scored.append((mistakes, None))
    return scored


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
        teachers=[*summary.describe_bridge(), *summary.describe_teachers()],
        taught_by=summary.taught_by,
        files=[
            {
                "file": str(path),
                "bytes": path.stat().st_size,
                "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
            }
            for path in (*job.sources, *job.targets)
        ],
        text_columns=list(dict.fromkeys([*job.text, *job.target_text])),
        use_labels=job.use_labels,
        n_learnt=summary.n_learnt or 0,
    )
    n_read = sum(source.n_rows for source in rows.sources), sum(summary.labels.values())
    read, X = (n_read, [rows.source_rows]) if rows.crossed else (None, rows.X)
    source_rows = [
        DomainRows(name, each, source.documents, source.labels, weights=source.weights, read=read)
        for name, each, source in zip(names, X, sources, strict=False)
    ]
    data = ReportData(
        adapter.classifier_,
        adapter.terms_,
        source_rows,
        target_rows,
        facts,
        rows.baseline,
        adapter.vectorizer_,
    )
    return report_adaptation(data)
