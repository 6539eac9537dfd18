"""The first layer has one form for its shapes, and the same numbers, on NumPy, torch, streams and Dask."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

from undrift import MSDA, load_model, save_model
from undrift.core import RowCoef, choose_form, hidden_form

# rows, features, pivots and the form: on both sides of every limit
LIMITS = [
    (40, 40, None, "rows"),
    (41, 40, None, "terms"),
    (20, 40, 10, "rows"),
    (21, 40, 10, "parts"),
    (21, 40, 12, "rows"),
    (40, 40, 40, "rows"),
    (41, 40, 40, "terms"),
    (39, 40, 39, "rows"),
    (40, 40, 39, "parts"),
]


@pytest.mark.parametrize(("n", "d", "n_pivots", "form"), LIMITS)
def test_the_form_is_in_the_rows_where_the_inverse_is_no_larger_than_the_coefficients(n, d, n_pivots, form):
    assert choose_form(n, d, n_pivots) == form


def test_large_tasks_have_the_form_of_the_documentation():
    assert choose_form(8000, 20_000, 5000) == "rows"
    assert choose_form(10_001, 20_000, 5000) == "parts"
    assert choose_form(5001, 5000) == "terms"


@pytest.mark.parametrize(
    ("n", "form"), [(2000, "rows"), (3000, "rows"), (3090, "rows"), (3091, "terms"), (8000, "terms")]
)
def test_hidden_rows_are_part_of_the_factors(n, form):
    assert hidden_form(n, 5000) == form


def make_rows(n, d=40, seed=0):
    rng = np.random.default_rng(seed)
    rows = sp.csr_array(rng.poisson(0.3, (n, d)) * rng.uniform(0.2, 1, d), dtype=np.float32)
    return rows


def fit(backend, X, n_pivots, **options):
    """Fit on rows that are where `backend` says; a stream's blocks and Dask's are of unequal sizes."""
    device = "torch:cpu" if "torch" in backend else "cpu"
    if "torch" in backend:
        pytest.importorskip("torch")
    n = X.shape[0]
    blocks = [X[: n // 3], X[n // 3 : n - 1], X[n - 1 :]]
    rows = X.toarray() if "dense" in backend else X
    if "stream" in backend:
        rows = [blocks[0], blocks[1].toarray(), blocks[2]] if "dense" in backend else blocks
    if "dask" in backend:
        dask = pytest.importorskip("dask")
        rows = [dask.delayed(block) for block in blocks]
    options = {"n_layers": 3, "noise": 0.6, "n_pivots": n_pivots, "random_state": 0, **options}
    return MSDA(device=device, **options).fit(rows)


BACKENDS = ["dense", "torch", "torch dense", "stream", "stream dense", "torch stream", "dask", "torch dask"]


@pytest.mark.slow
@pytest.mark.parametrize("noise", [0.6, 0.005])
@pytest.mark.parametrize(("n", "d", "n_pivots", "form"), LIMITS)
def test_every_backend_learns_the_layers_of_numpy(n, d, n_pivots, form, noise):
    X, new = make_rows(n, d), make_rows(7, d, seed=1)
    expected = fit("numpy", X, n_pivots, noise=noise)
    assert expected.form_ == form
    assert isinstance(expected.layers_[0].coef, RowCoef) == (form == "rows" and noise > 0.01)
    for backend in BACKENDS:
        model = fit(backend, X, n_pivots, noise=noise)
        assert model.form_ == form, backend
        assert type(model.layers_[0].coef) is type(expected.layers_[0].coef), backend
        for rows in (X, new):
            for h, known in zip(model.hidden(rows), expected.hidden(rows), strict=True):
                assert h.dtype == np.float32
                assert_allclose(h, known, atol=1e-4, err_msg=backend)


@pytest.mark.parametrize("device", ["cpu", "torch:cpu"])
def test_hidden_rows_beyond_the_memory_leave_the_form_as_it_is(device):
    if device != "cpu":
        pytest.importorskip("torch")
    X = make_rows(20)
    small, large = MSDA(3, n_pivots=10, random_state=0, device=device), fit("numpy", X, 10, noise=0.5)
    small._memory_budget = 100
    assert small.fit(X).form_ == large.form_ == "rows"
    assert_allclose(small.transform(X), large.transform(X), atol=1e-4)


def test_a_stream_is_read_up_to_the_first_row_too_many():
    """Blocks of ten rows; the form is found out at the third, the other passes read all ten."""

    class Counting:
        read = 0

        def __iter__(self):
            for start in range(0, 100, 10):
                self.read += 1
                yield make_rows(100)[start : start + 10]

    source = Counting()
    model = MSDA(2, n_pivots=10, random_state=0).fit(source)
    assert model.form_ == "parts"
    # the check of the first block, the pivots, the form, four parts and one layer
    assert source.read == 1 + 10 + 3 + 4 * 10 + 10


@pytest.mark.parametrize("device", ["cpu", "torch:cpu"])
def test_a_model_file_says_which_form_ran(device, tmp_path):
    if device != "cpu":
        pytest.importorskip("torch")
    for n, form in ((20, "rows"), (21, "parts")):
        X = make_rows(n)
        model = MSDA(2, n_pivots=10, random_state=0, device=device).fit(X)
        save_model(model, tmp_path / "stack.safetensors")
        loaded = load_model(tmp_path / "stack.safetensors")
        assert loaded.form_ == form
        assert_allclose(loaded.transform(X), model.transform(X), atol=1e-6)
