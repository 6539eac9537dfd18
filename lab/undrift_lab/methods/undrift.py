"""Method `undrift`: `MSDAClassifier` on tf-idf rows, as shipped, and what it is compared with.

Layers are learnt once for all tasks. The rows that are predicted are one target, and all other rows of their
domain are a second one: both are unlabelled, and both serve the layers and self-training, but class shares
belong to the rows that are predicted, and the test part of a domain may have other shares than the rest.
The domain stays whole where classes are not aligned (`center` is not "classes"), and where a task is fitted
on its two domains alone (``fit_on = "pair"``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from scipy.special import expit

from undrift.core import stack_rows
from undrift.method import MSDAClassifier
from undrift.method.constants import LEAST_SHARE
from undrift.text import TFIDF_LENGTH

from ..catalogue import OURS, Ours
from ..corpora.corpus import Corpus
from ..parts import part_labels, part_rows
from .baselines import weight_tfidf
from .cells import Bench, Cell, Finding, Outcome, attempt
from .encoders import take_scores
from .estimates import ESTIMATES, NO_ERROR, estimate_prior_ratio
from .resources import find_memory_limit, measure_time
from .stacks import row_products
from .svm import check_source, predict_by_least_squares
from .together import FittedTask, fit_together


class WithoutFallback(MSDAClassifier):
    """The method without its safeguard: it never keeps the source-only classifier."""

    _may_fall_back = False


def find_ours(cell: Cell) -> Ours:
    """Return the changes that a cell's method makes to `undrift`."""
    return OURS[cell.method.removesuffix("-pair")]


def configure_undrift(bench: Bench, ours: Ours | None = None) -> tuple[MSDAClassifier, float]:
    """Return the classifier with the changes of the plan and the method, and the length of tf-idf rows."""
    changes: dict[str, Any] = {} if bench.setting.n_pivots is None else {"n_pivots": bench.setting.n_pivots}
    changes |= {**bench.parameters_of("undrift"), **bench.setting.changes}
    changes |= {} if ours is None else ours.changes
    length = changes.pop("length", TFIDF_LENGTH)
    kind = MSDAClassifier if changes.pop("fallback", True) else WithoutFallback
    return kind(device=bench.device, random_state=bench.seed, **changes), length


def fit_source_only(bench: Bench, cells: Sequence[Cell]) -> Iterator[Finding]:
    """Fit least squares on the tf-idf rows of each source, and predict the test rows."""
    classifier, length = configure_undrift(bench)
    corpus = weight_tfidf(bench.corpus, length, bench.setting.inductive)
    find = partial(_predict_source_only, corpus, float(np.atleast_1d(classifier.C)[0]))
    return bench.spread([[cell] for cell in cells], find)


def _predict_source_only(corpus: Corpus, C: float, cells: Sequence[Cell]) -> Iterator[Outcome]:
    (cell,), y = cells, check_source(corpus, cells[0].source)
    train, test = (_part(corpus, part) for part in ((cell.source, "train"), (cell.target, "test")))

    def predict() -> np.ndarray:
        return predict_by_least_squares(row_products(train, train), y, C, row_products(test, train))

    predicted, seconds = measure_time(predict)
    yield Outcome(cell, predicted, {"C": C}, 0.0, seconds)


def fit_undrift(bench: Bench, cells: Sequence[Cell]) -> Iterator[Finding]:
    """Fit groups of tasks whose Gram matrices fit into memory together, and predict their test rows."""
    setting, left = bench.setting, []
    for cell in cells:
        try:
            check_source(bench.corpus, cell.source)
            left.append(cell)
        except ValueError as error:
            yield from attempt([cell], error)
    _, length = configure_undrift(bench)
    corpus = weight_tfidf(bench.corpus, length, setting.inductive)
    classifiers = {cell: configure_undrift(bench, find_ours(cell))[0] for cell in left}
    has_parts = setting.target_share is None and setting.fit_on == "all" and not setting.inductive
    for is_split in (True, False):
        chosen = [
            cell
            for cell, classifier in classifiers.items()
            if is_split is (classifier.center == "classes" and has_parts)
        ]
        for group in _group_by_memory(bench, corpus, chosen):
            yield from _fit_group(bench, corpus, {c: classifiers[c] for c in group}, length, is_split)


def _fit_group(
    bench: Bench,
    corpus: Corpus,
    classifiers: Mapping[Cell, MSDAClassifier],
    length: float,
    is_split: bool,
) -> Iterator[Finding]:
    """Fit tasks that share their layers; methods that share a classifier read it one after another."""
    inductive, teachers = bench.setting.inductive, {}
    readers: dict[Any, list[Cell]] = {}
    for cell in classifiers:
        ours = find_ours(cell)
        key = cell.source, cell.target, str(ours.changes), ours.shares == "known", ours.teacher
        readers.setdefault(key, []).append(cell)
    leaders = {group[0]: group for group in readers.values()}
    X, tasks = stack_tasks(corpus, list(leaders), inductive=inductive, is_split=is_split)
    for cell in leaders:
        classifier, ours = classifiers[cell], find_ours(cell)
        if ours.shares == "known":
            truth = part_labels(corpus, cell.target, "test")
            classes, counts = np.unique(truth, return_counts=True)
            shares = dict(zip(classes.tolist(), (counts / len(truth)).tolist(), strict=True))
            classifier.set_params(target_shares={_target_number(corpus, cell): shares})
        if ours.teacher:
            try:
                scores = take_scores(bench, cell, ours.teacher)
            except (OSError, ValueError) as error:
                yield from attempt(leaders[cell], error)
                del tasks[cell]
            else:
                said = np.column_stack([expit(-scores), expit(scores)])
                teachers[cell] = {_target_number(corpus, cell): said}
    for cell, fitted in fit_together(classifiers, X, tasks, teachers=teachers):
        if isinstance(fitted, Exception):
            yield from attempt(leaders[cell], fitted)
            continue
        words = teachers.get(cell, {}).get(_target_number(corpus, cell))
        for reader in leaders[cell]:
            yield from attempt([reader], _predict, corpus, length, reader, fitted, words)


def _predict(
    corpus: Corpus, length: float, cell: Cell, fitted: FittedTask, words: np.ndarray | None
) -> Outcome:
    classifier, ours, number = fitted.classifier, find_ours(cell), _target_number(corpus, cell)
    rows = part_rows(corpus, (cell.target, "test"))
    test, truth = corpus.domains[cell.target].X[rows], part_labels(corpus, cell.target, "test")
    where: dict[str, Any] = {"sample_domain": np.full(len(truth), number)}
    if words is not None:
        where["teacher"] = words[rows]
    if ours.shares == "batch" and classifier.batch_ is not None:
        classifier = classifier.align(test, target=number)
    p, seconds = measure_time(lambda: classifier.predict_proba(test, **where))
    says = describe_target(classifier, number, is_known=ours.shares == "known")
    weights = np.ones(p.shape[1])
    if ours.shares == "em":
        p = p * estimate_prior_ratio(p, part_labels(corpus, cell.source, "train"))
        p /= p.sum(axis=1, keepdims=True)
    elif ours.shares == "balanced":
        shares, says = classifier.targets_[number]["shares"] or {}, says | NO_ERROR
        weights = np.array([1 / max(shares.get(label, 1.0), LEAST_SHARE) for label in classifier.classes_])
    if ours.estimate:
        says |= ESTIMATES[ours.estimate](fitted.held_out, p)
    return Outcome(
        cell,
        classifier.classes_[(p * weights).argmax(axis=1)],
        _describe(classifier, length),
        fitted.layer_seconds,
        fitted.seconds + seconds,
        details={**says, "calibration_error": calibration_error(p, classifier.classes_, truth)},
    )


def describe_target(classifier: MSDAClassifier, number: int, *, is_known: bool = False) -> dict[str, Any]:
    """What the classifier says of the target numbered `number`: the last class's share, and its error."""
    known, label = classifier.targets_[number], classifier.classes_[-1]
    shares, error = known["shares"], known["expected_error"]
    has_shares = shares is not None and not is_known
    low, high = known["shares_interval"][label] if has_shares else (None, None)
    caution = classifier.caution_ or {}
    return {
        "estimated_share": shares[label] if has_shares else None,
        "share_low": low,
        "share_high": high,
        "expected_error": None if error is None else error["error"],
        "expected_low": None if error is None else error["low"],
        "expected_high": None if error is None else error["high"],
        "known": error is not None and error["error"] is not None,
        "warnings": list(caution.get("codes", [])),
        "fell_back": bool(caution.get("fell_back", False)),
    }


def calibration_error(p: np.ndarray, classes: np.ndarray, truth: np.ndarray) -> float:
    """Expected calibration error: confidence less accuracy of predictions, in ten bins of equal width.

    `p` are class probabilities of shape (n, n_classes).
    """
    confidence, is_right = p.max(axis=1), classes[p.argmax(axis=1)] == truth
    bins = np.minimum((confidence * 10).astype(int), 9)
    gaps = np.bincount(bins, weights=confidence - is_right, minlength=10)
    return float(np.abs(gaps).sum() / len(truth))


def _describe(classifier: MSDAClassifier, length: float) -> dict[str, Any]:
    chosen = {name: classifier.best_params_[name] for name in ("noise", "n_layers", "C")}
    about = {"center": classifier.center, "self_training": bool(classifier.self_training)}
    return {**chosen, **about, "length": length}


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


def _group_by_memory(bench: Bench, corpus: Corpus, cells: Sequence[Cell]) -> list[list[Cell]]:
    """Cut tasks into groups whose Gram matrices and rows fit into memory together, at least one in each."""
    limit, domains = find_memory_limit(bench.place), corpus.domains
    row_bytes = sum(8 * getattr(domain.X, "nnz", np.size(domain.X)) for domain in domains.values())
    groups: list[list[Cell]] = []
    n_bytes = 0
    for cell in cells:
        n_anchors = len(domains[cell.source].train) + len(domains[cell.target])
        task_bytes = 8 * n_anchors**2 + row_bytes
        n_bytes += task_bytes
        if not groups or n_bytes > limit:
            groups.append([])
            n_bytes = task_bytes
        groups[-1].append(cell)
    return groups
