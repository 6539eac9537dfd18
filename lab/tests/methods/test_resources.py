"""Time of learning, and the tasks that are fitted at once."""

import time

import numpy as np
import pytest
import scipy.sparse as sp

from undrift.inputs.device import OnHost
from undrift_lab.corpora.corpus import Corpus, Domain
from undrift_lab.methods import resources, stacks, undrift
from undrift_lab.methods.cells import Bench, Cell
from undrift_lab.plan import Setting


def test_time_is_that_of_the_call_and_of_a_level_that_of_the_whole_way_there(set_limits):
    assert 0.05 <= resources.measure_time(time.sleep, 0.05)[1] < 1
    spent = iter([1.0, 2.0, 4.0])
    set_limits(measure_time=lambda function, *arguments: (function(*arguments), next(spent)))
    rows = np.random.default_rng(0).random((20, 4))
    corpus = Corpus("c", {"a": Domain("a", X=rows, y=np.zeros(20))})
    assert [level.seconds for level in stacks.SharedStack(corpus).levels(0.5, 2)] == [0.0, 3.0, 7.0]


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


def test_the_room_is_a_quarter_of_memory(set_limits):
    set_limits(half_of_memory=lambda: 8e9)
    assert resources.find_memory_limit(OnHost()) == 4e9
