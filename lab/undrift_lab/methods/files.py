"""Two files a task, as a user has them: labelled rows of a source, and rows of a target without labels.

Terms, their weights and all that is learnt come from these two files. All rows of the target are seen, and
all are predicted. Methods other than undrift get the same rows at unit length.

updated-N, updated-asked-N
    undrift after N labels of target rows, drawn at random or asked for; means over draws, and over the rows
    that have no label.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.metrics import f1_score
from sklearn.model_selection import cross_val_predict
from sklearn.svm import LinearSVC

from undrift.core import Rows, choose_form
from undrift.method import MSDAClassifier
from undrift.text import TFIDF_LENGTH, TermVectorizer

from ..catalogue import PEERS, split_label_method
from ..metrics import calibration_error, transfer_error, transfer_loss, transfer_ratio
from .cells import Cell, CellRecord, Finding, attempt
from .peers import fit_task
from .resources import measure_time
from .svm import choose_linear_C

N_DRAWS = 3


@dataclass(frozen=True)
class TwoFiles:
    """The cells of a task, and its rows: features or texts."""

    cells: tuple[Cell, ...]
    source: Any
    y: np.ndarray
    target: Any
    truth: np.ndarray
    max_features: int
    device: str = "cpu"
    seed: int = 0


@dataclass(frozen=True)
class Weighted:
    """The same task as tf-idf rows of unit length; `error` is a linear SVM's inside the target."""

    source: Rows
    y: np.ndarray
    target: Rows
    truth: np.ndarray
    seconds: float
    error: float
    device: str
    seed: int

    @property
    def long(self) -> tuple[Rows, Rows]:
        """Both files' rows as undrift's layers take them."""
        return self.source * np.float32(TFIDF_LENGTH), self.target * np.float32(TFIDF_LENGTH)


@dataclass(frozen=True)
class Answer:
    """Predictions of the target's rows that `is_scored` marks, and what else a record says of them."""

    predicted: np.ndarray
    is_scored: np.ndarray
    details: Mapping[str, Any]


def solve(task: TwoFiles) -> list[Finding]:
    """Run the methods of a task."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            rows = weight_rows(task)
        except Exception as error:
            return attempt(task.cells, error)
        ours = [cell for cell in task.cells if _is_ours(cell.method)]
        findings = attempt(ours, _run_ours, rows, ours) if ours else []
        for cell in task.cells:
            if cell not in ours:
                findings += attempt([cell], _run_other, rows, cell)
    return findings


def weight_rows(task: TwoFiles) -> Weighted:
    """Weight the terms of the two files; of texts, the vocabulary is theirs too."""

    def weight() -> tuple[Rows, Rows]:
        if isinstance(task.source, list):
            vectorizer = TermVectorizer(task.max_features, length=1.0)
            (source, target), _ = vectorizer.fit_domains([task.source, task.target])
            return source, target
        files = [sp.csr_array(X) for X in (task.source, task.target)]
        weighting = TfidfTransformer(sublinear_tf=True).fit(sp.vstack(files))
        source, target = (sp.csr_array(weighting.transform(X)).astype(np.float32) for X in files)
        return source, target

    (source, target), seconds = measure_time(weight)
    predicted = cross_val_predict(LinearSVC(), target, task.truth, cv=5)
    error = transfer_error(task.truth, predicted)
    return Weighted(source, task.y, target, task.truth, seconds, error, task.device, task.seed)


def _is_ours(method: str) -> bool:
    return method == "undrift" or split_label_method(method)[1] > 0


def _run_other(rows: Weighted, cell: Cell) -> CellRecord:
    """Fit a linear SVM or a method of another package."""
    if cell.method == "svm-tfidf":
        (predicted, params), seconds = measure_time(_fit_svm, rows)
    else:
        given = rows.source, rows.y, rows.target, rows.target, rows.seed
        predicted, params, *spent = fit_task(PEERS[cell.method], *given)
        seconds = sum(spent)
    answer = Answer(predicted, np.ones(len(rows.truth), dtype=bool), {})
    return make_record(rows, cell, params, seconds, [answer])


def _fit_svm(rows: Weighted) -> tuple[np.ndarray, dict[str, Any]]:
    C = choose_linear_C(rows.source, rows.y)
    return LinearSVC(C=C).fit(rows.source, rows.y).predict(rows.target), {"C": C}


def _run_ours(rows: Weighted, cells: Sequence[Cell]) -> Iterator[Finding]:
    """Fit undrift once, then let copies of it learn labels."""
    source, target = rows.long
    classifier = MSDAClassifier(device=rows.device, random_state=rows.seed)
    fitted, seconds = measure_time(classifier.fit, source, rows.y, target)
    no_rows = np.array([], dtype=int)
    first = describe_fit(fitted, target, rows.truth, no_rows)
    n, d = len(rows.y) + len(rows.truth), source.shape[1]
    form = choose_form(n, d, fitted.representation_.n_pivots)
    first = replace(first, details={"form": form, **first.details})
    for cell in cells:
        if split_label_method(cell.method)[1] <= 0:
            yield make_record(rows, cell, {}, seconds, [first])
    for kind in ("updated", "updated-asked"):
        group = [cell for cell in cells if split_label_method(cell.method)[0] == kind]
        if group:
            yield from attempt(group, _learn_labels, rows, target, fitted, group, kind == "updated-asked")


def _learn_labels(
    rows: Weighted, target: Rows, fitted: MSDAClassifier, cells: Sequence[Cell], is_asked: bool
) -> Iterator[CellRecord]:
    """Learn more and more labels, in several draws; each step adds to the labels before it."""
    sizes = sorted({split_label_method(cell.method)[1] for cell in cells})
    answers: dict[int, list[Answer]] = {n: [] for n in sizes}
    seconds: dict[int, list[float]] = {n: [] for n in sizes}
    for draw in range(N_DRAWS):
        rng = np.random.RandomState([rows.seed, draw])
        order, model = rng.permutation(len(rows.truth)), copy(fitted)
        labelled, spent = np.array([], dtype=int), 0.0
        for n in sizes:
            new = order[len(labelled) : n]
            if is_asked:
                free = np.setdiff1d(np.arange(len(rows.truth)), labelled)
                new = free[model.ask(target[free], n - len(labelled), random_state=draw)]
            labelled = np.concatenate([labelled, new])
            _, passed = measure_time(model.update, target[new], rows.truth[new])
            spent += passed
            answers[n].append(describe_fit(model, target, rows.truth, labelled))
            seconds[n].append(spent)
    for cell in cells:
        n = split_label_method(cell.method)[1]
        record = make_record(rows, cell, {"n_draws": N_DRAWS}, fmean(seconds[n]), answers[n])
        more = {"n_target_labels": n, "asked": is_asked}
        yield CellRecord(cell, {**record.values, **more})


def describe_fit(model: MSDAClassifier, target: Rows, truth: np.ndarray, labelled: np.ndarray) -> Answer:
    """Predict the rows without a label, and say what the model says of them."""
    p = model.predict_proba(target)
    is_scored = ~np.isin(np.arange(len(truth)), labelled)
    predicted = model.classes_[p.argmax(axis=1)]
    (about,) = model.targets_.values()
    error = transfer_error(truth[is_scored], predicted[is_scored])
    expected = about["expected_error"] or dict.fromkeys(("error", "low", "high"))
    low, high = expected["low"], expected["high"]
    details: dict[str, Any] = {
        "expected_error": expected["error"],
        "expected_low": low,
        "expected_high": high,
        "interval_holds": None if low is None or high is None else float(low <= error <= high),
        "calibration_error": calibration_error(p[is_scored], model.classes_, truth[is_scored]),
        **_compare_shares(about, truth),
    }
    readings = zip(model.model_.names, model.find_readings(target), strict=True)
    said = {name: model.classes_[own.argmax(axis=1)] for name, own in readings}
    details["readings"] = {
        name: transfer_error(truth[is_scored], read[is_scored]) for name, read in said.items()
    }
    return Answer(predicted, is_scored, details)


def _compare_shares(about: Mapping[str, Any], truth: np.ndarray) -> dict[str, Any]:
    """Total variation distance of the estimated class shares, and how many of their intervals hold."""
    shares, intervals = about["shares"], about["shares_interval"]
    if shares is None:
        return {"share_distance": None, "share_intervals_hold": None}
    true = {label: float(np.mean(truth == label)) for label in {*shares, *np.unique(truth).tolist()}}
    gaps = [abs(shares.get(label, 0.0) - share) for label, share in true.items()]
    holds = None
    if intervals is not None:
        holds = fmean(float(low <= true[label] <= high) for label, (low, high) in intervals.items())
    return {"share_distance": sum(gaps) / 2, "share_intervals_hold": holds}


def make_record(
    rows: Weighted, cell: Cell, params: Mapping[str, Any], seconds: float, answers: Sequence[Answer]
) -> CellRecord:
    """Measure the answers of one or several draws; a record has their means."""
    scored = [(rows.truth[a.is_scored], a.predicted[a.is_scored]) for a in answers]
    error = fmean(transfer_error(truth, predicted) for truth, predicted in scored)
    macro = fmean(f1_score(truth, said, average="macro", zero_division=0.0) for truth, said in scored)
    ratio = transfer_ratio(error, rows.error)
    values = {
        "params": dict(params),
        "transfer_error": error,
        "macro_f1": macro,
        "baseline_in_domain_error": rows.error,
        "transfer_loss": transfer_loss(error, rows.error),
        "transfer_ratio": ratio if np.isfinite(ratio) else None,
        "represent_seconds": round(rows.seconds, 3),
        "classify_seconds": round(seconds, 3),
        "n_train": len(rows.y),
        "n_test": len(rows.truth),
        "n_features": rows.source.shape[1],
        "n_classes": len(np.unique(np.concatenate([rows.y, rows.truth]))),
    }
    names = answers[0].details
    return CellRecord(cell, values | {name: _average([a.details[name] for a in answers]) for name in names})


def _average(values: Sequence[Any]) -> Any:
    """Return the mean of numbers, or of dicts of numbers by name; a single value stays; None is left out."""
    known = [value for value in values if value is not None]
    if len(known) == 1:
        return known[0]
    if known and isinstance(known[0], Mapping):
        names = dict.fromkeys(name for value in known for name in value)
        return {name: _average([value.get(name) for value in known]) for name in names}
    return fmean(known) if known else None
