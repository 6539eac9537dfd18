"""Methods that represent rows once and for all: the SVM on counts or tf-idf, PCA, SCL, SDA; and CODA."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.decomposition import PCA
from sklearn.feature_extraction.text import TfidfTransformer

from undrift.core import Rows

from ..baselines import CODA, SCL, SDA
from ..corpora.corpus import Corpus
from ..parts import part_rows, rows_to_learn_from
from .cells import Bench, Cell, Finding, Outcome, attempt, group_cells
from .resources import measure_time
from .stacks import row_products
from .svm import bench_problem, choose_C, predict_targets

PCA_SIZES = (50, 100, 200, 500, 1000)
SCL_SCALES = (0.5, 1.0, 2.0, 5.0)
SDA_NOISES = (0.6, 0.8, 0.9)  # about the best of the paper's grid

Represent = Callable[[Bench, str | None], "Representation"]


@dataclass(frozen=True)
class Candidate:
    """One form of a representation; one that `extends` the candidate before it has its columns too."""

    params: Mapping[str, Any]
    rows: Mapping[str, Rows]  # by domain
    extends: bool = False


@dataclass(frozen=True)
class Representation:
    """Rows of every domain, in one or several forms to choose from, and the time it took to learn them."""

    candidates: Sequence[Candidate]
    seconds: float
    details: Mapping[str, Any] = field(default_factory=dict)


def classify_shared(bench: Bench, cells: Sequence[Cell], represent: Represent) -> Iterator[Finding]:
    """Learn one representation for all tasks, and classify the tasks of several sources at once."""
    find = partial(_find_outcomes, bench, get_representation(represent, bench, None))
    return bench.spread(group_cells(cells, "source").values(), find)


def classify_by_source(bench: Bench, cells: Sequence[Cell], represent: Represent) -> Iterator[Finding]:
    """Learn one representation for each source, where the labels of the source shape it."""

    def find(group: Sequence[Cell]) -> Iterator[Outcome]:
        return _find_outcomes(bench, get_representation(represent, bench, group[0].source), group)

    for group in group_cells(cells, "source").values():
        yield from attempt(group, find, group)


def get_representation(represent: Represent, bench: Bench, source: str | None) -> Representation:
    """Learn a representation once for all variants that it serves."""
    width = next(iter(bench.corpus.domains.values())).X.shape[1]
    key = (represent, source, width, bench.setting.inductive, bench.setting.tuned)
    if key not in bench.representations:
        bench.representations[key] = represent(bench, source)
    return bench.representations[key]


def _find_outcomes(bench: Bench, given: Representation, cells: Sequence[Cell]) -> Iterator[Outcome]:
    (params, predictions), seconds = measure_time(
        classify_targets, bench, given.candidates, cells[0].source, cells
    )
    for cell in cells:
        yield Outcome(cell, predictions[cell.target], params, given.seconds, seconds, details=given.details)


def classify_targets(
    bench: Bench, candidates: Sequence[Candidate], source: str, cells: Sequence[Cell]
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Choose among the candidates and C on the source, train there, and predict each target's test rows."""
    problem = bench_problem(bench, source)
    K: Any = 0
    tests: dict[str, Any] = {cell.target: 0 for cell in cells}
    best: tuple[float, Any] = (-np.inf, None)
    for candidate in candidates:
        train = candidate.rows[source][part_rows(bench.corpus, (source, "train"))]
        K = row_products(train, train) + (K if candidate.extends else 0)
        for target, before in tests.items():
            rows = candidate.rows[target][part_rows(bench.corpus, (target, "test"))]
            tests[target] = row_products(rows, train) + (before if candidate.extends else 0)
        C, score = choose_C(K, problem, bench.setting.Cs, always=len(candidates) > 1)
        if best[1] is None or score > best[0]:
            best = (score, ({**candidate.params, "C": C}, K, dict(tests)))
    params, K, tests = best[1]
    return params, predict_targets(K, problem, params["C"], tests)


def counts(bench: Bench, source: str | None = None) -> Representation:
    """Rows as they are: the baseline."""
    return Representation([Candidate({}, _rows(bench.corpus))], 0.0)


def tfidf(bench: Bench, source: str | None = None) -> Representation:
    """Log-tf-idf rows of unit length."""
    weighted, seconds = measure_time(weight_tfidf, bench.corpus, 1.0, bench.setting.inductive)
    return Representation([Candidate({}, _rows(weighted))], seconds)


def _rows(corpus: Corpus) -> dict[str, Rows]:
    return {name: domain.X for name, domain in corpus.domains.items()}


def weight_tfidf(corpus: Corpus, length: float = 1.0, inductive: bool = False) -> Corpus:
    """Weight all rows by log-tf-idf, fitted on all domains (`inductive`: without test rows), to `length`."""
    weighting = TfidfTransformer(sublinear_tf=True).fit(rows_to_learn_from(corpus, inductive))
    return corpus.map(lambda X: (weighting.transform(X) * length).astype(X.dtype).tocsr(), terms=corpus.terms)


def _weightings(bench: Bench) -> list[tuple[dict[str, str], Corpus]]:
    """Counts and, where methods are tuned, tf-idf rows as well, with what each adds to the parameters."""
    if not bench.setting.tuned:
        return [({}, bench.corpus)]
    return [({"rows": "counts"}, bench.corpus), ({"rows": "tfidf"}, weight_tfidf(bench.corpus))]


def principal_components(bench: Bench, source: str | None = None) -> Representation:
    """Scores on the leading principal components of all rows, in several numbers to choose from."""
    candidates, seconds = [], 0.0
    for weighting, corpus in _weightings(bench):
        X, domain = corpus.rows()
        sizes = [k for k in PCA_SIZES if k < min(X.shape)] or [max(1, min(X.shape) - 1)]
        solver = "covariance_eigh" if X.shape[1] <= 10_000 else "arpack"
        options = {"svd_solver": solver, **bench.parameters_of("pca")}
        model = PCA(max(sizes), random_state=bench.seed, **options)
        scores, spent = measure_time(model.fit_transform, X)
        seconds += spent
        for before, size in pairwise([0, *sizes]):
            rows = {name: scores[domain == i, before:size] for i, name in enumerate(corpus.domains)}
            candidates.append(Candidate({"n_components": size, **weighting}, rows, before > 0))
    return Representation(candidates, seconds)


def correspondences(bench: Bench, source: str | None) -> Representation:
    """SCL with pivots that tell the source's classes apart, fitted on the rows of all domains.

    Where methods are tuned, negative weights are kept, and the rows beside the projections and their scale
    are chosen.
    """
    names = list(bench.corpus.domains)
    X, domain = bench.corpus.rows()
    y = np.full(X.shape[0], np.nan)
    labelled = bench.corpus.domains[source or names[0]]
    start = int(np.searchsorted(domain, names.index(labelled.name)))
    y[start + labelled.train] = np.unique(labelled.y[labelled.train], return_inverse=True)[1]
    is_source = domain == names.index(labelled.name)
    tuned: dict[str, Any] = {"clip_negative": False} if bench.setting.tuned else {}
    scl = SCL(**(tuned | bench.parameters_of("scl")))
    model, seconds = measure_time(partial(scl.fit, X, y, sample_domain=np.where(is_source, 0, -1)))
    params, candidates = {"n_pivots": len(model.pivots_)}, []
    for weighting, corpus in _weightings(bench):
        for scale in SCL_SCALES if bench.setting.tuned else (model.scale,):
            model.set_params(scale=scale)
            about = {"scale": scale, **weighting} if bench.setting.tuned else {}
            rows = {
                name: sp.hstack([corpus.domains[name].X, model.transform(X)[:, X.shape[1] :]], format="csr")
                for name, X in _rows(bench.corpus).items()
            }
            candidates.append(Candidate({**params, **about}, rows))
    return Representation(candidates, seconds)


def autoencoded(bench: Bench, source: str | None = None) -> Representation:
    """Hidden rows of SDA, alone, as in Glorot et al.; where methods are tuned, of several noise levels."""
    X, _ = bench.corpus.rows()
    parameters = {"n_hidden": min(5000, X.shape[1]), **bench.parameters_of("sda")}
    parameters = {
        key: tuple(value) if isinstance(value, list) else value for key, value in parameters.items()
    }
    device = bench.device.removeprefix("torch:")
    candidates, seconds = [], 0.0
    losses: list[list[float]] = []

    for noise in SDA_NOISES if bench.setting.tuned else (None,):
        tuned = {} if noise is None else {"noise": noise}
        sda = SDA(device=device, random_state=bench.seed, **{**parameters, **tuned})
        model, spent = measure_time(sda.fit, X)
        seconds += spent
        rows = {name: model.transform(X) for name, X in _rows(bench.corpus).items()}
        candidates.append(Candidate({"n_layers": len(model.layers_), **tuned}, rows))
        losses = losses or [[round(float(loss), 4) for loss in layer] for layer in model.losses_]
    return Representation(candidates, seconds, {"losses": losses})


def fit_coda(bench: Bench, cells: Sequence[Cell]) -> Iterator[Finding]:
    """CODA has no representation: its time is that of a task, and includes its classifier."""
    # it holds Python's lock most of the time, so threads would not help
    return bench.spread([[cell] for cell in cells], partial(_fit_coda, bench.detach()), processes=True)


def _fit_coda(bench: Bench, cells: Sequence[Cell]) -> Iterator[Outcome]:
    (cell,), corpus = cells, bench.corpus
    source, target = (corpus.domains[name] for name in (cell.source, cell.target))
    train, test = (part_rows(corpus, part) for part in ((cell.source, "train"), (cell.target, "test")))
    coda = CODA(**bench.parameters_of("coda"), random_state=bench.seed)
    model, fit_seconds = measure_time(coda.fit, source.X[train], source.y[train], target.X)
    predicted, seconds = measure_time(model.predict, target.X[test])
    yield Outcome(cell, predicted, {"n_rounds": len(model.rounds_)}, fit_seconds, seconds)
