"""Inner products in groups that fit into memory: the same numbers, and no more blocks for more sources."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp

from undrift._inputs.device import OnHost, check_place
from undrift.bench.methods import candidates, msda, svm, undrift
from undrift.bench.methods.cells import Bench, Cell, CellRecord, Failure, GridPoint, Outcome, Unit
from undrift.bench.methods.resources import MemoryBudget, TooLarge, memory_budget
from undrift.bench.methods.stacks import RunningGrams
from undrift.bench.plan import Setting
from undrift.corpora import Corpus, Domain

N_TRAIN, N_TEST = 12, 8
N_ROWS = N_TRAIN + N_TEST


def corpus_of(n_domains):
    rng, domains = np.random.default_rng(5), {}
    for i in range(n_domains):
        y = np.arange(N_TRAIN + N_TEST) % 2
        rate = np.where(y[:, None] == np.arange(10) % 2, 1.0, 0.5)
        rate[:, i] += 1.0
        X = sp.csr_array(rng.poisson(rate).astype(np.float32))
        rows = np.arange(N_TRAIN + N_TEST)
        domains[f"d{i}"] = Domain(f"d{i}", X=X, y=y, train=rows[:N_TRAIN], test=rows[N_TRAIN:])
    return Corpus("c", domains)


@pytest.fixture
def pool():
    with ThreadPoolExecutor(1) as threads:
        yield threads


@pytest.fixture
def held(monkeypatch):
    """Numbers of blocks held by each sum of inner products, level by level."""
    numbers, add = [], RunningGrams.add

    def counting(self, level, **options):
        add(self, level, **options)
        numbers.append(len(self._sums))

    monkeypatch.setattr(RunningGrams, "add", counting)
    return numbers


def bench_of(corpus, pool, **options):
    return Bench(corpus, Setting(n_folds=2, **options), OnHost(), "cpu", 0, {}, pool)


def limited(monkeypatch, n_bytes):
    for module in (msda, candidates, undrift):
        monkeypatch.setattr(module, "memory_budget", lambda corpus, place: MemoryBudget(corpus, n_bytes))


def outcomes(units):
    """What units give: predictions by cell, and errors by cell."""
    findings = [finding for unit in units for finding in unit.run()]
    predictions = {each.cell: each.predicted.tolist() for each in findings if isinstance(each, Outcome)}
    for each in findings:
        if isinstance(each, CellRecord):
            predictions[each.cell] = [candidate["error"] for candidate in each.values["candidates"]]
    return predictions, {each.cell: each.error for each in findings if isinstance(each, Failure)}


SOURCE = 4 * N_TRAIN * (N_TRAIN + N_TEST)  # bytes of one source with itself and one target
TASK = 4 * (N_TRAIN**2 + N_TRAIN * N_ROWS + N_ROWS**2)  # of one source and all rows of one target


def regret_units(bench, cells):
    bench = replace(bench, setting=replace(bench.setting, depths=(2,), C=(1.0,)))
    return [Unit(cells, partial(candidates.candidate_records, bench, cells))]


CASES = [(msda.msda_units, "msda-2", SOURCE, 2), (regret_units, "undrift", TASK, 3)]


@pytest.mark.parametrize(("units", "method", "n_bytes", "n_blocks"), CASES, ids=["msda", "regret"])
def test_more_sources_hold_no_more_blocks(pool, held, monkeypatch, units, method, n_bytes, n_blocks):
    peaks, whole_peaks = [], []
    for n_sources in (2, 5):
        corpus = corpus_of(n_sources + 1)
        cells = [Cell(method, f"d{i}", f"d{n_sources}") for i in range(n_sources)]
        bench = bench_of(corpus, pool, noise=(0.5, 0.8))
        limited(monkeypatch, 1e9)
        held.clear()
        whole, _errors = outcomes(units(bench, cells))
        whole_peaks.append(max(held))
        limited(monkeypatch, n_bytes)
        held.clear()
        grouped, errors = outcomes(units(bench, cells))
        peaks.append(max(held))
        assert errors == {}
        assert grouped == whole
        assert len(whole) == n_sources
    assert peaks == [n_blocks, n_blocks]
    assert whole_peaks[0] < whole_peaks[1]


@pytest.mark.parametrize(("units", "method", "n_bytes", "n_blocks"), CASES, ids=["msda", "regret"])
def test_what_fits_no_machine_is_refused_beforehand(
    pool, held, monkeypatch, units, method, n_bytes, n_blocks
):
    limited(monkeypatch, n_bytes - 1)
    cells = [Cell(method, "d0", "d2"), Cell(method, "d1", "d2")]
    found, errors = outcomes(units(bench_of(corpus_of(3), pool, noise=(0.5,)), cells))
    assert found == {}
    assert list(errors) == cells
    assert all(isinstance(error, TooLarge) for error in errors.values())
    assert "d0" in str(errors[cells[0]])
    assert "set corpus.max_rows in the plan" in str(errors[cells[0]])
    assert held == []


@pytest.mark.filterwarnings("ignore::undrift.UndriftWarning")
def test_tasks_of_undrift_are_fitted_in_groups_that_fit_into_memory(pool, monkeypatch):
    cells = [Cell("undrift", f"d{i}", "d3") for i in range(3)]
    bench = bench_of(corpus_of(4), pool, changes={"noise": 0.5, "n_layers": 1})
    sizes, fit_together = [], undrift.fit_together

    def counted(classifier, X, tasks):
        sizes.append(len(tasks))
        return fit_together(classifier, X, tasks)

    monkeypatch.setattr(undrift, "fit_together", counted)
    limited(monkeypatch, 1e9)
    whole, _ = outcomes(undrift.undrift_units(bench, cells))
    limited(monkeypatch, 1.0)
    alone, _ = outcomes(undrift.undrift_units(bench, cells))
    assert sizes == [3, 1, 1, 1]
    assert alone == whole
    assert len(whole) == 3


def test_a_larger_source_alone_is_refused(pool, monkeypatch):
    corpus = corpus_of(3)
    d0 = corpus.domains["d0"]
    less = Domain("d0", X=d0.X, y=d0.y, train=d0.train[:6], test=d0.test)
    corpus = Corpus("c", {**corpus.domains, "d0": less})
    limited(monkeypatch, SOURCE - 1)
    cells = [Cell("msda-1", "d0", "d2"), Cell("msda-1", "d1", "d2")]
    found, errors = outcomes(msda.msda_units(bench_of(corpus, pool, noise=(0.5,)), cells))
    assert list(found) == cells[:1]
    assert list(errors) == cells[1:]


def test_blocks_go_with_the_deepest_layer_that_needs_them(pool, held):
    cells = [Cell("msda-1", "d0", "d2"), Cell("msda-3", "d1", "d2")]
    outcomes(msda.msda_units(bench_of(corpus_of(3), pool, noise=(0.5,)), cells))
    assert held == [4, 4, 2, 2]


def test_groups_fill_the_room_in_order_and_count_shared_blocks_once():
    t, a, b, c = (f"d{i}" for i in range(4))
    budget = MemoryBudget(corpus_of(4), 0.0)
    own = {source: [((source, "train"), (source, "train")), ((t, "all"), (t, "all"))] for source in (a, b, c)}
    within, target = 4 * N_TRAIN**2, 4 * (N_TRAIN + N_TEST) ** 2
    assert budget.count_bytes([*own[a], *own[b]]) == 2 * within + target
    for n_bytes, expected in (
        (3 * within + target, [[a, b, c]]),
        (3 * within + target - 1, [[a, b], [c]]),
        (2 * within + target - 1, [[a], [b], [c]]),
    ):
        assert MemoryBudget(budget.corpus, n_bytes).group(own) == expected
    assert MemoryBudget(budget.corpus, 3 * (2 * within + target)).group(own, n_copies=3) == [[a, b], [c]]
    assert MemoryBudget(budget.corpus, 1.0).group({}) == []


def test_the_room_is_a_quarter_of_memory_wherever_rows_are(monkeypatch):
    from undrift.bench.methods import resources

    monkeypatch.setattr(resources, "check_memory", lambda value: {None: 8e9}[value])
    assert memory_budget(corpus_of(1), OnHost()).n_bytes == 4e9
    pytest.importorskip("torch")
    assert memory_budget(corpus_of(1), check_place("torch:cpu")).n_bytes == 4e9


def test_an_svm_on_too_many_rows_is_refused(monkeypatch):
    monkeypatch.setattr(svm, "check_memory", lambda value: 8.0 * N_TRAIN**2)
    svm.source_problem(corpus_of(1), "d0", 2, 0)
    monkeypatch.setattr(svm, "check_memory", lambda value: 8.0 * N_TRAIN**2 - 1)
    with pytest.raises(TooLarge, match=r"the train rows of domain d0 take 1\.15e-06 GB"):
        svm.source_problem(corpus_of(1), "d0", 2, 0)


def test_the_time_of_a_pairs_grid_is_that_of_its_own_source(pool):
    """On going on: grids of other sources with the same target, and of other depths, are not its own."""
    points = [
        GridPoint(source, "d2", noise, depth, 1.0, 0.9, seconds)
        for source, depth, base in (("d0", 1, 10.0), ("d1", 1, 100.0), ("d0", 3, 1000.0))
        for noise, seconds in ((0.5, base), (0.8, 2 * base))
    ]
    bench = replace(bench_of(corpus_of(3), pool, noise=(0.5, 0.8), fit_on="pair"), grid=points)
    (unit,) = msda.msda_units(bench, [Cell("msda-1", "d0", "d2")])
    (outcome,) = unit.run()
    assert outcome.grid_seconds == 30.0
