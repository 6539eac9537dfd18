"""Rows and labels in other libraries' arrays. `pytest --device cuda` puts them on a GPU."""

import sys
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from tests.helpers.exact import ExactClassifier
from tests.helpers.oracles import algorithm_2
from undrift import MDA, MSDA
from undrift.inputs.device import find_accelerator, to_host
from undrift.inputs.rows import check_fit_rows, check_matrix, choose_place

torch = pytest.importorskip("torch")

from undrift.core.torch import ops as torch_ops

pytestmark = pytest.mark.filterwarnings("ignore:.*at the edge:undrift.UndriftWarning")
D = 9


class Elsewhere(torch.Tensor):
    """A tensor that says it is on a GPU, and that NumPy cannot see until it has been brought to the host."""

    def __dlpack_device__(self):
        return (2, 0)

    def __array__(self, *args, **kwargs):
        raise TypeError("can't convert cuda:0 device type tensor to numpy")

    numpy = __array__

    def cpu(self):
        return self.as_subclass(torch.Tensor)


@pytest.fixture
def there(torch_device, monkeypatch):
    """Bring an array to a GPU; where there is none, make it look so."""
    if torch_device != "cpu":
        return partial(torch.as_tensor, device=torch_device)
    monkeypatch.setattr("undrift.inputs.device.check_device", lambda name: "cpu")
    return lambda X: torch.as_tensor(X).as_subclass(Elsewhere)


def strict(X):
    return pytest.importorskip("array_api_strict").asarray(X)


@pytest.fixture(params=["there", "here", "strict"])
def form(request, there):
    """Make a tensor of a GPU, a tensor of the host, or an array of nothing but the array API."""
    return {"there": there, "here": torch.as_tensor, "strict": strict}[request.param]


@pytest.fixture
def shifted(rng):
    """Source rows, labels of 3 and 5, target rows with another mix of features, and their labels."""
    words, topics = rng.gamma(0.4, size=(3, D)), rng.gamma(0.5, size=(330, 3))
    X = rng.poisson(topics @ words + 0.1).astype(float)
    y = np.where(topics[:, 0] > topics[:, 1], 5, 3)
    return X[:180], y[:180], X[180:] + (rng.uniform(size=(150, D)) < 0.2), y[180:]


def close(ours, expected):
    assert type(ours) is np.ndarray
    scale = np.abs(expected).max()
    assert scale > 0
    assert_allclose(ours, expected, rtol=1e-9, atol=1e-9 * scale)


def classifier(n_layers=2, noise=0.5, **options):
    return ExactClassifier(n_layers, noise, **{"random_state": 0, "self_training": False, **options})


# -- the same as with NumPy's arrays -----------------------------------------------------------------

SETTINGS = {
    "plain": {},
    "grid": {"n_layers": [1, 2], "noise": [0.4, 0.6], "C": [0.3, 3.0]},
    "domains": {"center": "domains"},
    "default": {"self_training": True},
    "pivots": {"n_pivots": 4},
}


@pytest.mark.parametrize("name", SETTINGS)
def test_a_classifier_learns_and_predicts_the_same(name, form, shifted):
    X, y, Z, truth = shifted
    ours = classifier(**SETTINGS[name]).fit(form(X), form(y), form(Z))
    theirs = classifier(**SETTINGS[name]).fit(X, y, Z)
    assert ours.best_params_ == theirs.best_params_
    for mine, other in zip(ours.readings_["target"], theirs.readings_["target"], strict=True):
        assert (mine["name"], mine["story"]) == (other["name"], other["story"])
        assert [mine["weight"], mine["agreement"]] == pytest.approx(
            [other["weight"], other["agreement"]], abs=1e-3
        )
    assert_array_equal(ours.classes_, [3, 5])
    expected = theirs.decision_function(Z)
    close(ours.decision_function(form(Z)), expected)
    close(ours.decision_function(Z), expected)  # rows of the host, to what was learnt elsewhere
    assert_array_equal(ours.predict(form(Z)), theirs.predict(Z))
    weight = np.arange(150.0)
    assert ours.score(form(Z), form(truth), form(weight)) == theirs.score(Z, truth, weight)
    for attribute in ("input_mean_", "labelled_counts_", "intercept_"):
        close(getattr(ours, attribute), getattr(theirs, attribute))
    for mine, other in zip(ours.coef_, theirs.coef_, strict=True):
        close(mine, other)
    close(ours.predict_proba(form(Z)), theirs.predict_proba(Z))


# -- where the work is done --------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["plain", "grid", "default"])
def test_rows_there_do_not_come_to_the_host(name, there, shifted, monkeypatch):
    """But for those that the model keeps, so that it can be updated."""
    fetched_shapes, real = [], torch_ops.to_numpy
    monkeypatch.setattr(torch_ops, "to_numpy", lambda A: fetched_shapes.append(tuple(A.shape)) or real(A))
    for module in ("readings", "fit"):
        monkeypatch.setattr(
            f"undrift.method.{module}.to_host", lambda A: real(A) if isinstance(A, torch.Tensor) else A
        )
    X, y, Z, _ = map(there, shifted)
    classifier(**SETTINGS[name]).fit(X, y, Z).predict(Z)
    assert fetched_shapes
    assert not [
        shape for shape in fetched_shapes if shape[1:] == (D,) and shape != (D, D)
    ]  # rows, given or hidden


def test_rows_there_are_worked_on_there_unless_told_otherwise(there, shifted, monkeypatch):
    places = []

    def spy(*args):
        places.append(choose_place(*args))
        return places[-1]

    for module in ("classifier", "predictor"):
        monkeypatch.setattr(f"undrift.method.{module}.choose_place", spy)
    X, y, Z, _ = shifted
    classifier(1).fit(there(X), y)
    classifier(1, device="torch:cpu").fit(there(X), y).predict(there(Z))
    classifier(1).fit(X, y, there(Z))  # of a mixture all come here
    assert [place.device is None for place in places] == [False, False, False, True]
    assert places[1].device == places[2].device == "cpu"


@pytest.mark.parametrize("mixture", [("there", "here"), ("here", "there"), ("csr", "there")])
def test_domains_in_different_places(mixture, there, shifted):
    X, y, Z, _ = shifted
    forms = {"there": there, "here": np.asarray, "csr": sp.csr_array}
    source, target = (forms[own] for own in mixture)
    ours = classifier(noise=[0.4, 0.6], self_training=True).fit(source(X), y, target(Z))
    theirs = classifier(noise=[0.4, 0.6], self_training=True).fit(X, y, Z)
    close(ours.decision_function(target(Z)), theirs.decision_function(Z))


# -- MDA and MSDA ------------------------------------------------------------------------------------


def test_a_layer(form, shifted):
    X, Z = shifted[0], shifted[2]
    ((W, h),) = algorithm_2(X, 0.5, 1)
    model = MDA(0.5).fit(form(X))
    close(model.layer_.coef, W[:-1])
    close(model.scatter_.total, X.sum(axis=0))
    close(model.transform(form(X)), h)
    parts = MDA(0.5).partial_fit(form(X[:50])).partial_fit(X[50:90]).partial_fit(form(X[90:]))
    close(parts.transform(form(Z)), model.transform(Z))
    single = MDA(0.5).fit(form(X.astype("float32"))).transform(form(X.astype("float32")))
    assert single.dtype == np.float32
    assert_allclose(single, h, atol=1e-4)


@pytest.mark.parametrize("kinds", ["tt", "tn", "nt"])
def test_blocks_of_rows(kinds, there, shifted):
    X = shifted[0]
    forms = {"t": there, "n": np.asarray}
    blocks = [forms[kind](part) for kind, part in zip(kinds, (X[:70], X[70:]), strict=True)]
    place = choose_place([check_fit_rows(MSDA(), blocks)], "cpu", "high")
    assert (place.device is None) == (kinds[0] == "n")
    expected = MSDA(2).fit(X)
    for model in (MSDA(2).fit(blocks), MSDA(2).fit(there(X))):
        close(model.transform(X), expected.transform(X))
        close(model.transform(there(X)), expected.transform(X))
        assert type(model.layers_[0].coef) is np.ndarray
    close(MDA().fit(blocks).transform(X), MDA().fit(X).transform(X))


# -- kinds of tensors --------------------------------------------------------------------------------

KINDS = {
    "float16": lambda X: X.to(torch.float16),
    "bfloat16": lambda X: X.to(torch.bfloat16),
    "int32": lambda X: X.to(torch.int32),
    "uint8": lambda X: X.to(torch.uint8),
    "gradient": lambda X: X.clone().requires_grad_(),
    "transposed": lambda X: X.T.contiguous().T,
    "strided": lambda X: torch.cat([X, X], dim=1)[:, :D],
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("place", ["there", "here"])
def test_kinds_of_tensors(kind, place, there, shifted):
    X, y, Z, _ = shifted
    form = {"there": there, "here": torch.as_tensor}[place]
    rows, target = (KINDS[kind](form(own)) for own in (X, Z))
    ours, theirs = classifier().fit(rows, y, target), classifier().fit(X, y, Z)
    close(ours.decision_function(target), theirs.decision_function(Z))
    assert not torch.is_grad_enabled() or rows.grad is None


@pytest.mark.parametrize("place", ["there", "here"])
@pytest.mark.parametrize(
    ("X", "message"),
    [
        (torch.ones(3), "Expected 2D array.*one row is X.reshape"),
        (torch.ones(0, 3), r"0 sample\(s\).*at least one row"),
        (torch.ones(3, 0), r"0 feature\(s\).*at least one column"),
        (
            torch.tensor([[1.0, 2.0], [1.0, float("nan")]]),
            r"contains NaN \(row 1, column 1\); drop or replace",
        ),
        (torch.tensor([[1.0, float("inf")], [0.0, 2.0]]), r"infinity .* \(row 0, column 1\)"),
        (torch.ones(3, 2, dtype=torch.complex64), "Complex data not supported.*say X.real"),
    ],
)
def test_bad_rows(place, X, message, there):
    X = there(X) if place == "there" else X
    for call in (MSDA(1).fit, lambda X: classifier(1).fit(X, [0, 1])):
        with pytest.raises(ValueError, match=message):
            call(X)


@pytest.mark.filterwarnings("ignore:Sparse:UserWarning")
def test_sparse_tensors_are_refused_in_one_line(torch_device):
    X = torch.eye(3).to_sparse_csr().to(torch_device)
    with pytest.raises(TypeError, match=r"sparse tensor .* pass a SciPy sparse matrix, or X.to_dense\(\)"):
        classifier(1).fit(X, [0, 1, 1])


def test_rows_there_must_have_the_columns_of_fit(there, shifted):
    X, y, Z, _ = shifted
    model = classifier(1).fit(X, y)
    with pytest.raises(ValueError, match=r"8 features, .* pass the columns of fit"):
        model.predict(there(Z[:, 1:]))
    with pytest.raises(ValueError, match=r"shape \(149,\)"):
        model.predict(there(Z), sample_domain=there(np.zeros(149, int)))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.fit(there(X), there(y[1:]))


def test_which_arrays_numpy_sees(there):
    assert find_accelerator(there(np.eye(2))) == "cuda:0"
    for own in (np.eye(2), torch.eye(2), strict(np.eye(2)), [[1.0]], sp.eye(2), None):
        assert find_accelerator(own) is None
    assert find_accelerator(Foreign(torch.eye(2), (3, 0))) is None
    assert find_accelerator(Foreign(torch.eye(2), (2, 1))) == "cuda:1"
    assert find_accelerator(Foreign(torch.eye(2), (13, 1))) == "cuda:1"  # memory that host and GPU share
    assert find_accelerator(check_matrix(MSDA(), there(torch.full((2, 1), 3e38)), reset=True)) is not None


class Foreign:
    """An array of a library that torch has to be handed."""

    def __init__(self, tensor, device):
        self.tensor, self.device = tensor, device

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **options):
        return self.tensor.__dlpack__(**options)


def test_other_libraries_hand_over_what_is_on_a_gpu(there, shifted, monkeypatch):
    X, y, Z, _ = shifted
    rows, labels, target = (Foreign(there(own), (2, 0)) for own in (X, y, Z))
    if isinstance(rows.tensor, Elsewhere):
        monkeypatch.setattr(torch, "from_dlpack", lambda A: A.tensor)
    ours = classifier().fit(rows, labels, target)
    close(ours.decision_function(target), classifier().fit(X, y, Z).decision_function(Z))


def test_without_torch_the_error_says_what_to_install(monkeypatch):
    X = Foreign(None, (2, 0))
    monkeypatch.setitem(sys.modules, "torch", None)
    for call in (MSDA().fit, to_host):
        with pytest.raises(ImportError, match=r"a Foreign on a GPU needs .* pip install 'undrift\[torch\]'"):
            call(X)
