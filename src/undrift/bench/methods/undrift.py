"""Method `undrift`: `text_classifier` on tf-idf rows, as shipped, and what it is compared with.

Layers are learnt once for all tasks. The rows that are predicted are one target, and all other rows of their
domain are a second one: both are unlabelled, and both serve the layers and self-training, but class shares
belong to the rows that are predicted, and the test part of a domain may have other shares than the rest.
Where classes are not aligned (`center` is not "classes") the domain stays whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ..._core import stack_rows
from ..._inputs import is_missing
from ...classifier import SOLVERS, FittedTask, MSDAClassifier, check_grid, fit_together, predict_codes, signs
from ...corpora import Corpus, Domain
from ...text import TFIDF_LENGTH, text_classifier
from ..catalogue import COMPARED
from ..corpora import part_labels, part_rows
from .baselines import weight_tfidf
from .cells import Bench, Cell, Failure, FailureLog, Outcome, Unit, group_cells
from .peers import estimate_prior_ratio
from .resources import measure_time, memory_budget
from .stacks import row_products
from .svm import authors_C, source_codes


def undrift_units(bench: Bench, cells: Sequence[Cell]) -> list[Unit]:
    """All tasks and methods together; those of pairs one by one."""
    pairs = [cell for cell in cells if cell.method.endswith("-pair")]
    rest = [cell for cell in cells if cell not in pairs]
    units = [Unit(rest, partial(_fit_tasks, bench, rest))] if rest else []
    return units + [Unit([cell], partial(_fit_tasks, _take_pair(bench, cell), [cell])) for cell in pairs]


def _take_pair(bench: Bench, cell: Cell) -> Bench:
    """Leave the train rows of the source and all rows of the target: what methods of other packages see."""
    source = bench.corpus.domains[cell.source]
    n = len(source.train)
    alone = Domain(cell.source, X=source.X[source.train], y=source.y[source.train], train=np.arange(n))
    domains = {cell.source: alone, cell.target: bench.corpus.domains[cell.target]}
    return replace(bench, corpus=replace(bench.corpus, domains=domains))


def source_only_units(bench: Bench, cells: Sequence[Cell]) -> list[Unit]:
    """Tasks of each target."""
    groups = group_cells(cells, "target").values()
    return [Unit(group, partial(_fit_source_only, bench, group), parallel=True) for group in groups]


def configure_undrift(bench: Bench, method: str = "undrift", **defaults: Any) -> tuple[MSDAClassifier, float]:
    """Return the classifier with the changes of the plan and the method, and the length of tf-idf rows."""
    changes: dict[str, Any] = {"n_folds": bench.setting.n_folds}
    changes |= {} if bench.setting.n_pivots is None else {"n_pivots": bench.setting.n_pivots}
    changes |= {**defaults, **bench.parameters_of("undrift"), **bench.setting.changes}
    changes |= COMPARED.get(method, {})
    length = changes.pop("length", TFIDF_LENGTH)
    return text_classifier(device=bench.device, random_state=bench.seed, **changes), length


def _fit_source_only(bench: Bench, cells: Sequence[Cell]) -> Iterator[Outcome | Failure]:
    """Fit least squares on the tf-idf rows of each source, and predict the test rows."""
    classifier, length = configure_undrift(bench)
    corpus, failure_log = weight_tfidf(bench.corpus, length, bench.setting.inductive), FailureLog()
    for cell in cells:
        yield from failure_log.capture([cell], _predict_source_only, corpus, classifier, cell)
    yield from failure_log.failures()


def _predict_source_only(corpus: Corpus, classifier: MSDAClassifier, cell: Cell) -> Outcome:
    classes, codes = source_codes(corpus, cell.source)
    train, test = (_part(corpus, part) for part in ((cell.source, "train"), (cell.target, "test")))
    C = check_grid(classifier.noise, classifier.n_layers, classifier.C).preferred[2]

    def predict() -> np.ndarray:
        K = row_products(train, train)
        Y, weight = signs(codes, len(classes)), np.ones(len(codes))
        dual = SOLVERS["least-squares"](K, Y, C * authors_C(K), weight)
        return classes[predict_codes(dual.scores(row_products(test, train)))]

    predicted, seconds = measure_time(predict)
    return Outcome(cell, predicted, {"C": C}, 0.0, seconds)


def _fit_tasks(bench: Bench, cells: Sequence[Cell]) -> Iterator[Outcome | Failure]:
    """Fit groups of tasks whose Gram matrices fit into memory together, and predict their test rows."""
    failure_log = FailureLog()
    for cell in cells:
        failure_log.capture([cell], source_codes, bench.corpus, cell.source)
    _, length = configure_undrift(bench)
    corpus = weight_tfidf(bench.corpus, length, bench.setting.inductive)
    left = [cell for cell in cells if cell not in failure_log]
    classifiers = {cell: configure_undrift(bench, cell.method)[0] for cell in left}
    inductive = bench.setting.inductive
    has_parts = bench.setting.target_share is None and (bench.setting.train_apart or not inductive)
    for is_split in (True, False):
        chosen = [
            cell
            for cell, classifier in classifiers.items()
            if is_split is (classifier.center == "classes" and has_parts)
        ]
        for group in _group_by_memory(bench, corpus, chosen):
            X, tasks = stack_tasks(corpus, group, inductive=inductive, is_split=is_split)
            for cell in group:
                if cell.method == "oracle":
                    shares = _true_shares(corpus, cell, tasks[cell][1], inductive)
                    classifiers[cell].set_params(target_shares=shares)
            for cell, fitted in fit_together(classifiers, X, tasks):
                if isinstance(fitted, Exception):
                    yield Failure(cell, fitted)
                else:
                    yield from failure_log.capture([cell], _predict, corpus, length, cell, fitted)
    yield from failure_log.failures()


def _predict(corpus: Corpus, length: float, cell: Cell, fitted: FittedTask) -> Outcome:
    classifier, number = fitted.classifier, _target_number(corpus, cell)
    test, truth = _part(corpus, (cell.target, "test")), part_labels(corpus, cell.target, "test")
    domain = np.full(len(truth), number)
    p, seconds = measure_time(lambda: classifier.predict_proba(test, sample_domain=domain))
    if cell.method == "uncentred-em-pair":
        p = p * estimate_prior_ratio(p, part_labels(corpus, cell.source, "train"))
        p /= p.sum(axis=1, keepdims=True)
    predicted = classifier.classes_[p.argmax(axis=1)]
    if classifier.border != "error":  # the most probable class is not what is predicted
        predicted, seconds = measure_time(lambda: classifier.predict(test, sample_domain=domain))
    n_candidates = len(classifier.selection_results_)
    return Outcome(
        cell,
        predicted,
        _describe(classifier, length),
        fitted.layer_seconds,
        fitted.seconds + seconds,
        fitted.search_seconds if n_candidates > 1 else 0.0,
        {
            **_estimates(classifier, number, is_known=cell.method == "oracle"),
            "calibration_error": calibration_error(p, classifier.classes_, truth),
        },
    )


def _estimates(classifier: MSDAClassifier, number: int, *, is_known: bool) -> dict[str, Any]:
    """What the classifier says of the target numbered `number`: the last class's share, and its error."""
    i = [k for k in classifier.domains_ if k < 0].index(number)
    shares, expected = classifier.target_shares_[i], classifier.expected_error_[i]
    return {
        "estimated_share": None if shares is None or is_known else shares[classifier.classes_[-1]],
        "expected_error": None if expected is None else expected["error"],
    }


def calibration_error(p: np.ndarray, classes: np.ndarray, truth: np.ndarray) -> float:
    """Expected calibration error: confidence less accuracy of predictions, in ten bins of equal width.

    `p` are class probabilities of shape (n, n_classes).
    """
    confidence, is_right = p.max(axis=1), classes[p.argmax(axis=1)] == truth
    bins = np.minimum((confidence * 10).astype(int), 9)
    gaps = np.bincount(bins, weights=confidence - is_right, minlength=10)
    return float(np.abs(gaps).sum() / len(truth))


def _true_shares(corpus: Corpus, cell: Cell, domain: np.ndarray, inductive: bool) -> list[dict[Any, float]]:
    """Class shares of each part of the target, from its labels; of a part without any, those of the first."""
    labels, shares = np.asarray(corpus.domains[cell.target].y), []
    classes = np.unique(part_labels(corpus, cell.source, "train"))
    is_split = len(np.unique(domain[domain < 0])) > 1
    parts = _domain_parts(corpus, cell.target, inductive=inductive, is_split=is_split)
    for rows in parts:
        known = [label for label in labels[rows] if not is_missing(label)]
        if known:
            shares.append({label: float(np.mean(np.array(known) == label)) for label in classes})
        else:
            shares.append(shares[0])
    return shares


def _describe(classifier: MSDAClassifier, length: float) -> dict[str, Any]:
    chosen = {name: classifier.best_params_[name] for name in ("noise", "n_layers", "C")}
    return chosen | {
        **{name: getattr(classifier, name) for name in ("center", "balance_layers", "classifier")},
        "self_training": bool(classifier.self_training),
        "fallback": classifier.fallback,
        "length": length,
    }


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
) -> tuple[Any, Mapping[Cell, tuple[np.ndarray, np.ndarray]]]:
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
    limit, domains = memory_budget(corpus, bench.place).n_bytes, corpus.domains
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
