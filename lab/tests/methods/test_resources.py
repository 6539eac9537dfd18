"""Time of learning, and tasks that share what is learnt."""

import time

import numpy as np
import pytest
import scipy.sparse as sp

from undrift.inputs.device import Place
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
def test_a_task_of_undrift_is_the_same_whichever_others_share_its_layers():
    cells = [Cell("undrift", f"d{i}", "d3") for i in range(3)]
    parameters = {"undrift": {"noise": 0.5, "n_layers": 1}}
    bench = Bench(made_corpus(4), Setting(), Place(), "cpu", 0, parameters)
    together = {own.cell: own for own in undrift.fit_undrift(bench, cells)}
    assert list(together) == cells
    for cell in cells:
        (alone,) = undrift.fit_undrift(bench, [cell])
        np.testing.assert_array_equal(together[cell].predicted, alone.predicted)
        for name in ("expected_error", "estimated_share"):
            assert together[cell].details[name] == pytest.approx(alone.details[name], abs=1e-5)
