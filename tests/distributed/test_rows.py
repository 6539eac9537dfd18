"""Rows on Dask: the answer of one machine, from a real cluster of two worker processes."""

import numpy as np
import pytest
import scipy.sparse as sp

pytest.importorskip("distributed")
from concurrent.futures import CancelledError

import dask
import dask.array as da
from dask import delayed
from distributed import wait
from distributed.comm.core import CommClosedError
from numpy.testing import assert_allclose, assert_array_equal

from tests.helpers.exact import ExactClassifier
from undrift import MDA, MSDA, MSDAClassifier
from undrift.distributed import ClusterLost, connect
from undrift.distributed.cluster import assign_workers, find_workers, translate_errors, tree_sum
from undrift.distributed.rows import cluster_rows
from undrift.inputs.rows import on_cluster

RTOL = {"float64": 1e-9, "float32": 1e-4}
FORMS = {"dense": np.asarray, "csr_matrix": sp.csr_matrix, "csr_array": sp.csr_array}


@pytest.fixture
def X(rng) -> np.ndarray:
    """Presence of 40 terms in 600 documents of three topics."""
    topics = rng.dirichlet([0.3] * 3, size=600) @ rng.beta(0.4, 1.2, size=(3, 40))
    return (rng.random((600, 40)) < topics + 0.03).astype(np.float64)


def cut(X, n_rows=130):
    return [X[start : start + n_rows] for start in range(0, X.shape[0], n_rows)]


def lazy(X, n_rows=130):
    return [delayed(block) for block in cut(X, n_rows)]


def relative_error(actual, expected) -> float:
    return np.linalg.norm(actual - expected) / np.linalg.norm(expected)


def assert_same_layers(actual, expected, rtol):
    assert len(actual) == len(expected)
    for ours, theirs in zip(actual, expected, strict=True):
        assert ours.coef.dtype == theirs.coef.dtype
        assert np.linalg.norm(theirs.coef) > 0.1
        assert relative_error(ours.coef, theirs.coef) < rtol
        assert relative_error(ours.intercept, theirs.intercept) < rtol


@pytest.mark.parametrize("n_pivots", [None, 12])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", RTOL)
def test_a_cluster_gives_the_weights_of_one_machine(cluster, X, dtype, form, n_pivots):
    rows = FORMS[form](X.astype(dtype))
    options = {"n_layers": 4, "noise": 0.6, "n_pivots": n_pivots, "random_state": 0}
    alone, together = MSDA(**options).fit(rows), MSDA(**options).fit(lazy(rows))
    assert_same_layers(together.layers_, alone.layers_, RTOL[dtype])
    if n_pivots:
        assert_array_equal(together.pivots_, alone.pivots_)


def test_every_form_of_rows_and_blocks_is_accepted(cluster, X):
    expected = MSDA(2).fit(X).layers_
    array = da.from_array(X, chunks=(170, -1))
    unknown = da.concatenate([da.from_delayed(block, (np.nan, 40), dtype=float) for block in lazy(X)])
    sparse = array.map_blocks(sp.csr_matrix)
    futures = cluster.scatter(cut(X))
    for rows in (array, unknown, sparse, futures, [array[:300], array[300:]], lazy(X)):
        assert_same_layers(MSDA(2).fit(rows).layers_, expected, 1e-9)
    blocks = [delayed(X[:0]), *lazy(X), delayed(X[:0])]
    assert_same_layers(MSDA(2).fit(blocks).layers_, MSDA(2).fit(X).layers_, 1e-9)
    coarse, fine = (X[:300] / 3).astype("float32"), X[300:] / 3
    expected = MSDA(2).fit(np.vstack([coarse.astype("float64"), fine])).layers_
    assert_same_layers(MSDA(2).fit([delayed(coarse), delayed(fine)]).layers_, expected, 1e-9)


def test_torch_on_the_workers(cluster, X):
    pytest.importorskip("torch")
    alone = MSDA(3, device="torch:cpu").fit(X).layers_
    assert_same_layers(MSDA(3, device="torch:cpu").fit(lazy(sp.csr_matrix(X))).layers_, alone, 1e-9)


def test_only_sums_and_layers_travel(cluster, X):
    """Bytes that leave the workers: a sum to another worker, one here, and a layer, for each layer."""

    def sent() -> int:
        return sum(cluster.run(lambda dask_worker: dask_worker.transfer_outgoing_bytes_total).values())

    wide = np.tile(X, (10, 1))
    blocks = [cluster.submit(np.copy, block) for block in cut(wide, 500)]
    wait(blocks)
    scatter, layer, rows = 40 * 40 * 8 + 40 * 8, 40 * 40 * 8 + 40 * 8, wide.nbytes
    before = sent()
    MSDA(4).fit(blocks)
    n_bytes = sent() - before
    assert n_bytes > 4 * scatter
    assert n_bytes < 4 * 2 * scatter + 3 * layer + 20_000  # and some hundred bytes a block of facts
    assert n_bytes < rows / 10


def test_hidden_rows_are_dropped_when_the_next_are_there(cluster, X):
    rows = cluster_rows(MSDA(), lazy(sp.csr_matrix(X)), reset=True)
    layers = MSDA(4).fit(X).layers_
    before = rows
    for layer in layers:
        rows = before.map(layer)
        rows.total(np.sum)
        kept_before, before = before._hidden, rows
        assert kept_before is None
    assert len(rows._hidden) == 5  # the sparse blocks are made dense only from the second layer on


def test_output_is_lazy_and_the_same(cluster, X):
    fitted, array = MSDA(2).fit(X), da.from_array(X, chunks=(170, -1))
    output = fitted.transform(array)
    assert on_cluster(output)
    assert output.chunks == ((170, 170, 170, 90), (120,))
    assert_allclose(output.compute(), fitted.transform(X), rtol=1e-12)
    for ours, theirs in zip(fitted.hidden(array), fitted.hidden(X), strict=True):
        assert_allclose(ours.compute(), theirs, rtol=1e-12)
    (first, *_) = fitted.transform(lazy(sp.csr_matrix(X)))
    assert_allclose(first.compute(), fitted.transform(X[:130]), rtol=1e-12)
    one = MDA().fit(X)
    assert_allclose(one.transform(array).compute(), one.transform(X), rtol=1e-12)


def check_targets(model, expected):
    """What two classifiers know of their one target is the same."""
    assert 0 < expected.target_shares_[0]["good"] < 1
    assert model.target_shares_[0] == pytest.approx(expected.target_shares_[0], rel=1e-6)
    for label, interval in expected.target_shares_interval_[0].items():
        assert_allclose(model.target_shares_interval_[0][label], interval, rtol=1e-6)
    assert model.expected_error_[0] == pytest.approx(expected.expected_error_[0], rel=1e-6)


@pytest.mark.parametrize("form", ["dense", "csr_matrix"])
def test_a_classifier_with_its_target_on_the_cluster(cluster, X, form):
    rows, y = FORMS[form](X), np.where(X[:, 0] > 0, "good", "bad")
    options = {"n_layers": [1, 3], "C": [0.3, 1.0], "random_state": 0}
    alone = ExactClassifier(**options).fit(rows[:200], y[:200], {"there": rows[200:]})
    together = ExactClassifier(**options).fit(rows[:200], y[:200], {"there": lazy(rows[200:])})
    assert together.best_params_ == alone.best_params_
    assert list(together.targets_) == ["there"]
    assert_allclose(together.input_mean_, alone.input_mean_, rtol=1e-9)
    scores = alone.decision_function(X)
    assert np.ptp(scores) > 0.5
    array = da.from_array(X, chunks=(170, -1))
    assert_allclose(together.decision_function(array).compute(), scores, rtol=1e-7, atol=1e-9)
    assert_array_equal(together.predict(array, target="there").compute(), alone.predict(X))
    assert_allclose(together.predict_proba(array).compute(), alone.predict_proba(X), rtol=1e-6)
    check_targets(together, alone)


def test_a_classifier_with_all_rows_on_the_cluster(cluster, X):
    y = np.where(np.arange(600) % 3 == 0, None, np.where(X[:, 0] > 0, "good", "bad"))
    domain = np.repeat([0, 1, -1], [250, 130, 220])
    options = {"n_layers": 2, "random_state": 0}
    alone = ExactClassifier(**options).fit(2 * X, y, sample_domain=domain)
    together = ExactClassifier(**options).fit(lazy(sp.csr_matrix(2 * X)), y, sample_domain=domain)
    assert together.domains_ == alone.domains_ == [0, 1, -1]
    assert together.memory_.facts.sizes == alone.memory_.facts.sizes == [250, 130, 220]
    assert_allclose(together.decision_function(X), alone.decision_function(X), rtol=1e-7, atol=1e-9)
    check_targets(together, alone)


def test_rows_are_chosen_by_mask_and_by_number(cluster, X):
    rows = cluster_rows(MSDA(), lazy(X), reset=True)
    mask = np.arange(600) % 7 == 0
    mask[130:260] = False
    assert_array_equal(rows[mask].collect(), X[mask])
    assert_array_equal(rows[np.array([3, 131, 599])].collect(), X[[3, 131, 599]])
    assert rows[np.zeros(600, bool)].shape == (0, 40)
    assert_array_equal(rows[np.zeros(600, bool)].collect(), X[:0])
    assert rows[mask].shape == (mask.sum(), 40)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X: lazy(np.where(np.arange(600)[:, None] == 400, np.nan, X)), "block 4 of X: .*NaN"),
        (lambda X: [delayed(X), delayed(X[:, :9])], "blocks of X have 9 to 40 columns"),
        (lambda X: [delayed(X[:0])], "no blocks with rows"),
        (lambda X: da.from_array(X, chunks=(100, 20)), r"column blocks; .*rechunk\(\{1: -1\}\)"),
        (lambda X: da.from_array(X[:, 0], chunks=100), "1 dimensions"),
    ],
)
def test_bad_rows_are_told_in_one_line(X, change, message):
    with dask.config.set(scheduler="synchronous"), pytest.raises(ValueError, match=message) as caught:
        MSDA(2).fit(change(X))
    assert "\n" not in str(caught.value)


def test_other_bad_input(X):
    with dask.config.set(scheduler="synchronous"):
        with pytest.raises(TypeError, match="block 1 of X is a str"):
            MSDA(2).fit([delayed("rows")])
        fitted = MSDAClassifier(1).fit(X, X[:, 0] > 0)
        with pytest.raises(ValueError, match="one sample_domain"):
            fitted.predict(da.from_array(X, chunks=(100, -1)), sample_domain=np.zeros(600, int))
        with pytest.raises(ValueError, match="3 features, but MSDA is expecting 40"):
            MSDA(1).fit(X).transform(da.zeros((6, 3), chunks=(2, 3))).compute()


@pytest.mark.parametrize("address", ["local:0", "here", "local:two", "http://host"])
def test_addresses_of_no_cluster(address):
    with pytest.raises(ValueError, match="is no cluster: write local"), connect(address):
        pass


def test_failures_of_a_cluster_are_raised_as_clusterlost():
    for error, message in ((CancelledError(), "scheduler was lost"), (CommClosedError("x"), "be reached")):
        with pytest.raises(ClusterLost, match=message), translate_errors():
            raise error
    with pytest.raises(FileNotFoundError), translate_errors():
        raise FileNotFoundError("of the user")


def test_a_tree_adds_everything_once(cluster):
    values = [delayed(2**i) for i in range(23)]
    assert tree_sum(values, "powers").compute() == 2**23 - 1
    assert tree_sum(values, "powers", ["a", "b"] * 11 + ["c"]).compute() == 2**23 - 1


@pytest.mark.filterwarnings("ignore:Running on a single-machine scheduler")  # dask's, before 2025.4
def test_work_is_shared_out_by_size(cluster):
    homes = assign_workers([4, 1, 1, 1, 1], [delayed(1)])
    assert len(set(homes[1:])) == 1
    assert homes[0] not in homes[1:]
    with dask.config.set(scheduler="threads"):
        assert assign_workers([1, 2], [delayed(1)]) == find_workers([delayed(1)] * 2) == [None, None]


def test_labels_of_target_rows_on_the_cluster(cluster, X):
    y = np.where(X[:, 0] > 0, "good", "bad")
    labels = np.where(np.arange(400) < 40, y[200:], None)
    options = {"n_layers": 2, "random_state": 0}
    alone = ExactClassifier(**options).fit(X[:200], y[:200], X[200:], y_target=labels)
    together = ExactClassifier(**options).fit(X[:200], y[:200], lazy(X[200:]), y_target=labels)
    assert_allclose(together.decision_function(X), alone.decision_function(X), rtol=1e-7, atol=1e-8)
    for classifier in (alone, together):
        classifier.update(X[240:260], y[240:260])
    assert_allclose(together.decision_function(X), alone.decision_function(X), rtol=1e-7, atol=1e-8)
    assert_array_equal(together.ask(X[200:], 5), alone.ask(X[200:], 5))


@pytest.mark.parametrize("has_source", [True, False])
def test_a_teacher_of_rows_of_dask(cluster, X, rng, has_source):
    truth = (X[:, :20].sum(axis=1) > X[:, 20:].sum(axis=1)).astype(int)
    said = np.where(rng.random(300) < 0.1, 1 - truth[300:], truth[300:])
    source = (X[:300], truth[:300]) if has_source else (None, None)
    target = da.from_array(X[300:], chunks=(130, -1))
    alone, together = (
        ExactClassifier(2, random_state=0).fit(*source, rows, teacher=said) for rows in (X[300:], target)
    )
    for given in ({}, {"teacher": said}):
        expected = alone.decision_function(X[300:], **given)
        found = together.decision_function(target, **given).compute()
        assert_allclose(found, expected, rtol=1e-7, atol=1e-8)
        predicted = together.predict(target, **given).compute()
        assert_array_equal(predicted, (expected > 0).astype(int))
    with pytest.raises(ValueError, match="known sizes"):
        together.predict(lazy(X[300:]), teacher=said)
    with pytest.raises(ValueError, match="one entry for each of 300 rows"):
        together.predict(target, teacher=said[:9])
