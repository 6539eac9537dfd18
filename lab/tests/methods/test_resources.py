"""Time and memory of learning: peaks that are those of the thing measure_cost, on the host and on a GPU."""

import time

import numpy as np
import pytest
import scipy.sparse as sp

from undrift.datasets import Corpus, Domain
from undrift.inputs.device import OnHost, OnTorch
from undrift_lab.methods import resources, stacks, svm, undrift
from undrift_lab.methods.cells import Bench, Cell
from undrift_lab.methods.resources import Cost, device_of, measure_cost
from undrift_lab.plan import Setting, load_plan
from undrift_lab.results import read
from undrift_lab.runner import Request, run

needs_linux = pytest.mark.skipif(
    not resources.PROCESS.exists(), reason="only Linux can reset a process's peak"
)


def held(n_bytes):
    """Hold memory for a moment and let it go."""
    block = np.ones(n_bytes // 8)
    return int(block[-1])


def test_costs_add_times_and_keep_the_higher_peak_of_their_device():
    assert Cost(1.0, 3.0) + Cost(0.5, 2.0) == Cost(1.5, 3.0)
    assert Cost(1.0, 2.0) + Cost(0.5, 3.0) == Cost(1.5, 3.0)
    assert Cost(1.0) + Cost(2.0, 0.25) == Cost(3.0, 0.25)
    assert Cost(1.0) + Cost(2.0) == Cost(3.0, None)
    assert Cost(1.0, 0.123456).memory == {"peak_gigabytes": 0.1235}
    assert Cost(1.0).memory == {}
    assert device_of(OnHost()) == "cpu"
    assert device_of(OnTorch("cuda:1")) == "cuda:1"
    _, taken = measure_cost("cpu", time.sleep, 0.05)
    assert 0.05 <= taken.seconds < 1


@needs_linux
def test_the_peak_on_the_host_is_what_was_held_and_is_forgotten_again():
    _, nothing = measure_cost("cpu", held, 8)
    value, much = measure_cost("cpu", held, 300_000_000)
    _, after = measure_cost("cpu", held, 8)
    assert value == 1
    assert 0.29 < much.peak_gigabytes - nothing.peak_gigabytes < 0.33
    assert after.peak_gigabytes < nothing.peak_gigabytes + 0.03
    rows = np.ones(25_000_000)  # 0.2 GB that the process holds already
    _, beside = measure_cost("cpu", held, 8)
    assert 0.19 < beside.peak_gigabytes - after.peak_gigabytes < 0.23
    assert rows[0] == 1


def test_where_the_system_cannot_forget_a_peak_there_is_none(tmp_path, set_limits):
    set_limits(PROCESS=tmp_path / "nowhere")
    assert measure_cost("cpu", held, 8)[1].peak_gigabytes is None
    set_limits(PROCESS=tmp_path)  # a kernel that tells no peak
    (tmp_path / "status").write_text("Name:\tpython\nVmRSS:\t 100 kB\n")
    assert measure_cost("cpu", held, 8)[1].peak_gigabytes is None
    (tmp_path / "status").write_text("Name:\tpython\nVmHWM:\t 2000000 kB\nVmRSS:\t 100 kB\n")
    assert measure_cost("cpu", held, 8)[1].peak_gigabytes == 2.048
    assert (tmp_path / "clear_refs").read_text() == "5"


def test_on_a_gpu_the_peak_is_that_of_its_allocations(monkeypatch):
    import torch

    calls = []
    monkeypatch.setattr(torch.cuda, "reset_peak_memory_stats", lambda device: calls.append(("reset", device)))

    def allocated(device):
        calls.append(("read", device))
        return 3_500_000_000

    monkeypatch.setattr(torch.cuda, "max_memory_allocated", allocated)
    _, taken = measure_cost("cuda:1", calls.append, "work")
    assert calls == [("reset", "cuda:1"), "work", ("read", "cuda:1")]
    assert taken.peak_gigabytes == 3.5


def test_the_cost_of_a_level_is_that_of_the_whole_way_there(set_limits):
    def told(device, function, *arguments):
        return function(*arguments), taken[function.__name__].pop()

    taken = {
        "_make_solver": [Cost(5.0, 7.0)],
        "_grow_layer": [Cost(8.0, 9.0), Cost(2.0, 5.0)],  # the second layer's, the first's
    }
    set_limits(measure_cost=told)
    rows = np.random.default_rng(0).random((20, 4))
    corpus = Corpus("c", {"a": Domain("a", X=rows, y=np.zeros(20))})
    levels = stacks.SharedStack(corpus).levels(0.5, 2)
    assert [level.cost for level in levels] == [Cost(), Cost(7.0, 7.0), Cost(15.0, 9.0)]


LEARNERS = """
methods = ["svm", "pca", "scl", "sda", "msda-1", "msda-2", "undrift"]
noise = [0.5]
n_folds = 3
[corpus]
loader = "amazon-bow"
[parameters.sda]
n_hidden = 4
n_epochs = 1
[parameters.scl]
n_components = 3
n_pivots = 8
"""


@needs_linux
def test_records_of_learnt_representations_have_their_peak(data, tmp_path):
    (tmp_path / "learners.toml").write_text(LEARNERS)
    results = tmp_path / "r.jsonl"
    run(load_plan(tmp_path / "learners.toml"), results, Request(data=data, tasks=["books->dvd"]))
    peaks = {r["method"]: r.get("peak_gigabytes") for r in read(results) if r["kind"] == "transfer"}
    assert peaks.pop("svm") is None
    assert set(peaks) == {"pca", "scl", "sda", "msda-1", "msda-2", "undrift"}
    assert all(0.05 < peak < 50 for peak in peaks.values())  # Python alone has as much
    assert peaks["msda-1"] <= peaks["msda-2"]  # the way to the second layer leads through the first


def made_corpus(n_domains):
    rng, domains = np.random.default_rng(5), {}
    for name in (f"d{i}" for i in range(n_domains)):
        y = np.arange(20) % 2
        X = sp.csr_array(rng.poisson(np.where(y[:, None] == np.arange(10) % 2, 1.0, 0.5)).astype(np.float32))
        domains[name] = Domain(name, X=X, y=y, train=np.arange(12), test=np.arange(12, 20))
    return Corpus("c", domains)


@pytest.mark.filterwarnings("ignore::undrift.UndriftWarning")
def test_tasks_of_undrift_are_fitted_in_groups_that_fit_into_memory(spy, set_limits):
    cells = [Cell("undrift", f"d{i}", "d3") for i in range(3)]
    setting = Setting(changes={"noise": 0.5, "n_layers": 1})
    bench = Bench(made_corpus(4), setting, OnHost(), "cpu", 0, {})
    calls, found = spy(undrift, "fit_together"), []
    for limit in (1e9, 1.0):
        set_limits(find_memory_limit=lambda place, limit=limit: limit)
        found.append({own.cell: own.predicted.tolist() for own in undrift.fit_undrift(bench, cells)})
    assert [len(tasks) for _, _, tasks in calls] == [3, 1, 1, 1]
    assert found[0] == found[1]
    assert len(found[0]) == 3


def test_the_room_is_a_quarter_of_memory_and_an_svm_on_too_many_rows_is_refused(set_limits):
    set_limits(half_of_memory=lambda: 8e9)
    assert resources.find_memory_limit(OnHost()) == 4e9
    set_limits(half_of_memory=lambda: 8.0 * 12**2)
    svm.source_problem(made_corpus(1), "d0", 2, 0)
    set_limits(half_of_memory=lambda: 8.0 * 12**2 - 1)
    with pytest.raises(resources.TooLarge, match=r"the train rows of domain d0 take 1\.15e-06 GB"):
        svm.source_problem(made_corpus(1), "d0", 2, 0)
