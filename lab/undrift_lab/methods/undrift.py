"""Method `undrift`: `MSDAClassifier` on tf-idf rows, as shipped, and what it is compared with.

On all domains, layers are learnt once for all tasks. The rows that are predicted are one target, and all
other rows of their domain are a second one: both are unlabelled, and both serve the layers and the readings,
but class shares belong to the rows that are predicted, and the test part of a domain may have other shares
than the rest. The domain stays whole where all of it is predicted, and where a task is fitted on its two
domains alone (``fit_on = "pair"``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from scipy.special import expit

from undrift.core import stack_rows
from undrift.method import MSDAClassifier, describe_target
from undrift.text import TFIDF_LENGTH

from ..catalogue import OURS, Ours, sees_pair
from ..corpora.corpus import Corpus
from ..metrics import calibration_error, transfer_error
from ..parts import part_labels, part_rows
from .baselines import weight_tfidf
from .cells import Bench, Cell, Finding, Outcome, attempt
from .encoders import take_scores
from .resources import measure_time
from .stacks import row_products
from .svm import check_source, predict_by_least_squares
from .together import FittedTask, fit_together


def find_ours(cell: Cell) -> Ours:
    """Return the changes that a cell's method makes to `undrift`."""
    return OURS[cell.method.removesuffix("-pair")]


def configure_undrift(bench: Bench, ours: Ours | None = None) -> MSDAClassifier:
    """Return the classifier with the changes of the plan and the method."""
    changes: dict[str, Any] = {} if bench.setting.n_pivots is None else {"n_pivots": bench.setting.n_pivots}
    changes |= {**bench.parameters_of("undrift"), **({} if ours is None else ours.changes)}
    return MSDAClassifier(device=bench.device, random_state=bench.seed, **changes)


def fit_source_only(bench: Bench, cells: Sequence[Cell]) -> Iterator[Finding]:
    """Fit least squares on the tf-idf rows of each source, and predict the test rows."""
    corpus = weight_tfidf(bench.corpus, TFIDF_LENGTH, bench.setting.inductive)
    find = partial(_predict_source_only, corpus, float(np.atleast_1d(configure_undrift(bench).C)[0]))
    return bench.spread([[cell] for cell in cells], find)


def _predict_source_only(corpus: Corpus, C: float, cells: Sequence[Cell]) -> Iterator[Outcome]:
    (cell,), y = cells, check_source(corpus, cells[0].source)
    train, test = (_part(corpus, part) for part in ((cell.source, "train"), (cell.target, "test")))

    def predict() -> np.ndarray:
        return predict_by_least_squares(row_products(train, train), y, C, row_products(test, train))

    predicted, seconds = measure_time(predict)
    yield Outcome(cell, predicted, {"C": C}, 0.0, seconds)


def fit_undrift(bench: Bench, cells: Sequence[Cell]) -> Iterator[Finding]:
    """Fit tasks on two domains one by one, and tasks on all domains with the same layers."""
    setting, left = bench.setting, []
    for cell in cells:
        try:
            check_source(bench.corpus, cell.source)
            left.append(cell)
        except ValueError as error:
            yield from attempt([cell], error)
    corpus = weight_tfidf(bench.corpus, TFIDF_LENGTH, setting.inductive)
    pairs = [cell for cell in left if setting.fit_on == "pair" or sees_pair(cell.method)]
    for cell in pairs:
        yield from attempt([cell], _fit_pair, bench, corpus, cell)
    together = [cell for cell in left if cell not in pairs]
    if together:
        yield from _fit_together(bench, corpus, together)


def _fit_pair(bench: Bench, corpus: Corpus, cell: Cell) -> Outcome:
    """Fit the public estimator on the rows of two domains."""
    ours = find_ours(cell)
    classifier = configure_undrift(bench, ours)
    source, target = corpus.domains[cell.source], corpus.domains[cell.target]
    y = np.where(np.isin(np.arange(len(source)), source.train), np.asarray(source.y, dtype=float), np.nan)
    own, rows = _seen_rows(corpus, cell.source, bench), _seen_rows(corpus, cell.target, bench)
    test, truth = part_rows(corpus, (cell.target, "test")), part_labels(corpus, cell.target, "test")
    given: dict[str, Any] = {}
    if ours.knows_shares:
        classifier.set_params(target_shares=_count_shares(truth))
    if ours.teacher:
        scores = take_scores(bench, cell, ours.teacher)[rows]
        given["teacher"] = np.column_stack([expit(-scores), expit(scores)])
    fitted, seconds = measure_time(partial(classifier.fit, source.X[own], y[own], target.X[rows], **given))
    told = {"teacher": given["teacher"]} if np.array_equal(rows, test) and given else {}
    if ours.teacher and not told:
        scores = take_scores(bench, cell, ours.teacher)[test]
        told = {"teacher": np.column_stack([expit(-scores), expit(scores)])}
    p, spent = measure_time(partial(fitted.predict_proba, target.X[test], **told))
    (about,) = fitted.targets_.values()
    readings = dict(zip(fitted.model_.names, fitted.find_readings(target.X[test]), strict=True))
    details = _describe_target(about, fitted.classes_, truth, p, readings, is_known=ours.knows_shares)
    predicted = fitted.predict(target.X[test], **told)
    return Outcome(cell, predicted, _describe(classifier), 0.0, seconds + spent, details=details)


def _seen_rows(corpus: Corpus, name: str, bench: Bench) -> np.ndarray:
    """Rows of a domain that may be seen: all, or those that are no test rows."""
    rows = np.arange(len(corpus.domains[name]))
    return np.setdiff1d(rows, corpus.domains[name].test) if bench.setting.inductive else rows


def _count_shares(truth: np.ndarray) -> dict[Any, float]:
    classes, counts = np.unique(truth, return_counts=True)
    return dict(zip(classes.tolist(), (counts / len(truth)).tolist(), strict=True))


def _fit_together(bench: Bench, corpus: Corpus, cells: Sequence[Cell]) -> Iterator[Finding]:
    """Fit tasks that share their layers, and predict their test rows."""
    setting = bench.setting
    is_split = setting.target_share is None and not setting.inductive
    X, tasks = stack_tasks(corpus, cells, inductive=setting.inductive, is_split=is_split)
    classifiers = {}
    for cell in cells:
        classifiers[cell] = configure_undrift(bench, find_ours(cell))
        if find_ours(cell).knows_shares:
            shares = _count_shares(part_labels(corpus, cell.target, "test"))
            classifiers[cell].set_params(target_shares={_target_number(corpus, cell): shares})
    for cell, fitted in fit_together(classifiers, X, tasks):
        if isinstance(fitted, Exception):
            yield from attempt([cell], fitted)
        else:
            yield from attempt([cell], _predict, corpus, cell, classifiers[cell], fitted)


def _predict(corpus: Corpus, cell: Cell, classifier: MSDAClassifier, fitted: FittedTask) -> Outcome:
    number, facts = _target_number(corpus, cell), fitted.facts
    test, truth = _part(corpus, (cell.target, "test")), part_labels(corpus, cell.target, "test")
    p, seconds = measure_time(fitted.predict_proba, test, number)
    estimate = fitted.fitted.verdict.estimates[facts.targets.index(number)]
    about, weights = describe_target(facts.classes.tolist(), estimate), np.ones(p.shape[1])
    if classifier.border == "balanced":
        weights = np.array([1 / max(about["shares"][label], 1e-3) for label in facts.classes.tolist()])
    readings = fitted.find_readings(test, number)
    is_known = find_ours(cell).knows_shares
    details = _describe_target(about, facts.classes, truth, p, readings, is_known=is_known)
    predicted = facts.classes[(p * weights).argmax(axis=1)]
    spent = fitted.layer_seconds, fitted.seconds + seconds
    return Outcome(cell, predicted, _describe(classifier), *spent, details=details)


def _describe_target(
    about: Mapping[str, Any],
    classes: np.ndarray,
    truth: np.ndarray,
    p: np.ndarray,
    readings: Mapping[str, np.ndarray],
    *,
    is_known: bool,
) -> dict[str, Any]:
    """What a fit says of a target: the last class's share, and its error; and the errors of the readings."""
    label, error = classes[-1].item(), about["expected_error"] or {}
    has_shares = about["shares"] is not None and not is_known
    low, high = about["shares_interval"][label] if has_shares else (None, None)
    return {
        "estimated_share": about["shares"][label] if has_shares else None,
        "share_low": low,
        "share_high": high,
        "expected_error": error.get("error"),
        "expected_low": error.get("low"),
        "expected_high": error.get("high"),
        "calibration_error": calibration_error(p, classes, truth),
        "readings": {
            name: transfer_error(truth, classes[own.argmax(axis=1)]) for name, own in readings.items()
        },
    }


def _describe(classifier: MSDAClassifier) -> dict[str, Any]:
    names = ("noise", "n_layers", "C", "center", "self_training")
    return {name: getattr(classifier, name) for name in names}


def _part(corpus: Corpus, part: tuple[str, str]) -> Any:
    return corpus.domains[part[0]].X[part_rows(corpus, part)]


def _target_number(corpus: Corpus, cell: Cell) -> int:
    """Number of the target that holds the test rows."""
    return -1 - list(corpus.domains).index(cell.target)


def _domain_parts(
    corpus: Corpus, name: str, *, inductive: bool = False, is_split: bool = False
) -> list[np.ndarray]:
    """Rows of the parts of a domain: all that may be seen; or those like the predicted ones, and the rest."""
    domain = corpus.domains[name]
    rows, alike = np.arange(len(domain)), domain.test
    if inductive:
        rows, alike = np.setdiff1d(rows, domain.test), np.setdiff1d(domain.train, domain.test)
    if not is_split:
        return [rows]
    return [part for part in (np.unique(alike), np.setdiff1d(rows, alike)) if len(part)]


def stack_tasks(
    corpus: Corpus, cells: Sequence[Cell], *, inductive: bool, is_split: bool = False
) -> tuple[Any, dict[Cell, tuple[np.ndarray, np.ndarray]]]:
    """Stack the rows of all domains; for each task, return labels and domains of these rows.

    The labels are those of the source's train rows, all others NaN. An `inductive` task has no rows of the
    test parts. With `is_split` every domain k becomes two: number k has its test rows (`inductive`: its train
    rows), and number ``n_domains + k`` all others; both are targets where the domain is the target.
    """
    blocks, labels, numbers, names = [], [], [], list(corpus.domains)
    for k, (name, domain) in enumerate(corpus.domains.items()):
        y = np.where(np.isin(np.arange(len(domain)), domain.train), np.asarray(domain.y, dtype=float), np.nan)
        parts = _domain_parts(corpus, name, inductive=inductive, is_split=is_split)
        for i, rows in enumerate(parts):
            blocks.append(domain.X[rows])
            labels.append(y[rows])
            numbers.append(np.full(len(rows), k + i * len(names)))
    y, number = np.concatenate(labels), np.concatenate(numbers)
    domain_of = number % len(names)
    tasks = {
        cell: (
            np.where(domain_of == names.index(cell.source), y, np.nan),
            np.where(domain_of == names.index(cell.target), -1 - number, number),
        )
        for cell in cells
    }
    return stack_rows(blocks), tasks
