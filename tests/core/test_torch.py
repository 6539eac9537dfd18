"""The torch verbs, rows on a device, and MSDA there. `pytest --device cuda` runs all of it on a GPU."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import undrift
from tests.helpers.exact import SpillingMSDA
from undrift import MSDA
from undrift.core import numpy_ops
from undrift.core.array import NotPositiveDefinite, array_ops
from undrift.core.blocks import StoredBlocks
from undrift.core.denoise import Layer, System
from undrift.core.scatter import scatter
from undrift.inputs.device import NoDevice, Place, check_place

torch = pytest.importorskip("torch")

from undrift.core.torch import ops as torch_ops
from undrift.core.torch.blocks import (
    DeviceShelf,
    TensorBlock,
    split_for_device,
    to_device,
    to_host,
)

RTOL = {"float64": 1e-9, "float32": 1e-4}


@pytest.fixture(params=["float64", "float32"])
def dtype(request):
    return request.param


def positive_definite(rng, d, dtype="float64"):
    B = rng.normal(size=(d, 2 * d))
    return (B @ B.T / d + np.eye(d)).astype(dtype)


def close(ours, expected, dtype):
    ours = torch_ops.to_numpy(ours)
    scale = np.abs(expected).max()
    assert scale > 0
    np.testing.assert_allclose(ours, expected, rtol=RTOL[dtype], atol=RTOL[dtype] * scale)


def device_blocks(blocks, device, memory_budget=None):
    return StoredBlocks(blocks, DeviceShelf(device, memory_budget))


def sparse_rows(n=60, d=30, dtype="float64", seed=0):
    return sp.random(n, d, 0.2, format="csr", random_state=seed, dtype=dtype)


# -- the verbs ---------------------------------------------------------------------------------------


def verb_calls(X, Z, mean):
    """Every verb that takes arrays and returns one, with a plain NumPy oracle."""
    C = X.T @ X
    return {
        "column_sums": ((X,), X.sum(axis=0)),
        "nonzero_counts": ((X,), (X != 0).sum(axis=0)),
        "cross": ((X, Z), X.T @ Z),
        "affine": ((X, C, mean), X @ C + mean),
    }


@pytest.mark.parametrize("verb", sorted(verb_calls(*[np.ones((9, 9))] * 2, np.ones(9))))
def test_verb_agrees_with_its_formula(verb, dtype, rng, torch_device):
    X, Z = rng.normal(size=(40, 70)), rng.normal(size=(40, 6))
    X[X < 0] = 0
    args, expected = verb_calls(X, Z, rng.normal(size=70))[verb]

    def moved(arg):  # indices and float64 vectors stay what they are, as in the library
        if not isinstance(arg, np.ndarray) or arg.dtype.kind != "f":
            return arg
        keeps_float64 = arg.ndim == 1 and verb != "affine"
        return torch.tensor(arg if keeps_float64 else arg.astype(dtype), device=torch_device)

    result = getattr(torch_ops, verb)(*map(moved, args))
    assert result.device.type == torch_device.split(":")[0]
    close(result, expected, dtype)


def test_verbs_are_those_of_numpy():
    public = {name for name in vars(numpy_ops) if callable(getattr(numpy_ops, name)) and name.islower()}
    here = {name for name in public if getattr(numpy_ops, name).__module__ == numpy_ops.__name__}
    inner = {"in_threads", "stripes", "mirror"}  # of numpy_ops's own
    assert {name for name in here if not name.startswith("_")} - inner <= set(vars(torch_ops))
    assert torch_ops.float64 is torch.float64
    assert array_ops(torch.ones(1)) is torch_ops
    assert array_ops(np.ones(1)) is numpy_ops


def test_long_sums_do_not_stall(torch_device):
    # one by one, float32 would stop counting at 2^24
    X = torch.ones((1, 1), device=torch_device).expand(2**25 + 1, 1)
    assert float(torch_ops.column_sums(X)) == 2**25 + 1
    rare = torch.cat([torch.full((64, 1), 2.0**30), torch.ones(64, 1)]).to(torch_device)
    assert float(torch_ops.column_sums(rare)) == 2**36 + 64


def test_gram_fills_the_lower_triangle(dtype, rng, torch_device):
    X = rng.normal(size=(33, 70)).astype(dtype)
    G = torch_ops.gram(torch.tensor(X, device=torch_device))
    assert str(G.dtype) == f"torch.{dtype}"
    close(G.tril(), np.tril(X.astype("float64").T @ X), dtype)


@pytest.mark.parametrize("place", [np.asarray, torch.from_numpy])
def test_the_system_subtracts_in_float64(place, torch_device):
    # the covariance is the last digit of float32's second moment
    def move(array):
        return array if place is np.asarray else place(array).to(torch_device)

    G = np.array([[4e6 + 1, 0], [8e6, 16e6 + 2]], dtype=np.float32)
    system = System(0.5, move(np.array([0.25, 0.75])), 0.0, move(np.array([1000.0, 2000.0])))
    A = system.fill(move(G), 4)
    assert "float32" in str(A.dtype)
    np.testing.assert_array_equal(np.tril(array_ops(A).to_numpy(A)), [[0.75, 0], [0, 1.75]])


@pytest.mark.parametrize(
    ("activation", "function"),
    [
        ("tanh", np.tanh),
        ("sigmoid", lambda h: 1 / (1 + np.exp(-h))),
        ("relu", lambda h: np.where(h > 0, h, 0)),
        ("identity", lambda h: h),
    ],
)
def test_squash_in_place(activation, function, dtype, rng, torch_device):
    H = rng.normal(size=(7, 5)).astype(dtype)
    ours = torch.tensor(H, device=torch_device)
    assert torch_ops.squash(ours, activation) is ours
    close(ours, function(H), dtype)


def test_affine_promotes(rng, torch_device):
    X, C = rng.normal(size=(6, 5)), rng.normal(size=(5, 3)).astype("float32")
    out = torch_ops.affine(*(torch.tensor(part, device=torch_device) for part in (X, C, C[0])))
    close(out, X @ C + C[0], "float64")


# -- the inverse -------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [1, 2, 90, 300])
def test_inverse_of_the_lower_triangle(d, dtype, rng, torch_device):
    A = positive_definite(rng, d, dtype)
    half = A.copy()
    half[np.triu_indices(d, 1)] = np.nan
    close(
        torch_ops.inverse(torch_ops.factor(torch.tensor(half, device=torch_device))),
        np.linalg.inv(A.astype("float64")),
        dtype,
    )


@pytest.mark.parametrize("d", [1, 2, 90, 300])
def test_a_system_is_solved_from_its_lower_triangle(d, dtype, rng, torch_device):
    A, B = positive_definite(rng, d, dtype), rng.normal(size=(d, 7)).astype(dtype)
    expected = np.linalg.solve(A.astype("float64"), B.astype("float64"))
    A[np.triu_indices(d, 1)] = np.nan
    ours, right = (torch.tensor(part, device=torch_device) for part in (A, B))
    close(torch_ops.solve(torch_ops.factor(ours), right), expected, dtype)
    close(torch.tensor(numpy_ops.solve(numpy_ops.factor(A), B)), expected, dtype)


@pytest.mark.parametrize("column", [0, 5, 149])
@pytest.mark.parametrize("pivot", [-1.0, 0.0, 1e-16])
def test_inverse_names_the_column_without_a_pivot(column, pivot, rng, torch_device):
    L = np.tril(rng.normal(size=(150, 150)), -1) / 20 + np.eye(150)
    D = np.ones(150)
    D[column] = pivot if column else min(pivot, 0)  # small beside its diagonal, which has no more in column 0
    A = torch.tensor(L * D @ L.T, device=torch_device)
    with pytest.raises(NotPositiveDefinite) as caught:
        torch_ops.factor(A)
    assert caught.value.column == column


# -- rows on a device --------------------------------------------------------------------------------


def test_held_rows_become_dense(dtype, torch_device):
    X = sparse_rows(dtype=dtype)
    X = sp.vstack([X[:7], sp.csr_matrix((3, 30), dtype=dtype), X[7:]]).tocsr()  # some rows are empty
    held = TensorBlock.of(X).to(torch_device)
    np.testing.assert_array_equal(torch_ops.to_numpy(held.dense()), X.toarray())
    assert held.n_bytes == X.data.nbytes + X.indices.nbytes + X.indptr.nbytes


def test_rows_nobody_may_write_to_are_taken_without_a_copy(torch_device):
    X = np.arange(12.0).reshape(4, 3)
    X.setflags(write=False)
    assert TensorBlock.of(X).tensors[0].data_ptr() == X.ctypes.data
    np.testing.assert_array_equal(TensorBlock.of(X[::-1]).dense(), X[::-1])
    device_blocks([X], torch_device).map(layers(1, 3, torch_device)[0]).total(scatter)
    np.testing.assert_array_equal(X, np.arange(12.0).reshape(4, 3))


def layers(n_layers, d, device="cpu", seed=3):
    rng = np.random.default_rng(seed)
    made = [Layer(rng.normal(size=(d, d)) / d**0.5, rng.normal(size=d)) for _ in range(n_layers)]
    return [to_device(layer, device) for layer in made]


@pytest.mark.parametrize("memory_budget", [None, float("inf"), 0, 9000, 16000])
@pytest.mark.parametrize("kind", ["csr", "dense", "tensor"])
def test_device_rows_are_kept_rows(kind, memory_budget, torch_device):
    X = sparse_rows(n=60, d=30)
    whole = [X[:25], X[25:40], X[40:]]
    make = {"csr": lambda B: B, "dense": sp.csr_matrix.toarray, "tensor": lambda B: torch.tensor(B.toarray())}
    ours = device_blocks([make[kind](B) for B in whole], torch_device, memory_budget=memory_budget)
    kept = StoredBlocks(whole)
    first, second = layers(2, 30, torch_device)

    def check(ours, kept):
        mine, theirs = ours.total(scatter), kept.total(scatter)
        assert mine.n == theirs.n == 60
        close(mine.total, theirs.total, "float64")
        close(mine.gram.tril(), np.tril(theirs.gram), "float64")
        np.testing.assert_allclose(
            np.vstack([torch_ops.to_numpy(block) for block in ours]), np.vstack([as_dense(b) for b in kept])
        )

    check(ours, kept)
    one, kept_one = ours.map(first), kept.map(to_host(first))
    check(one, kept_one)
    check(one, kept_one)  # from the store
    two, kept_two = one.map(second), kept_one.map(to_host(second))
    check(two, kept_two)
    check(one, kept_one)  # overwritten: computed again
    check(two, kept_two)
    check(ours.map(second), kept.map(to_host(second)))  # another stack on the same rows


def as_dense(block):
    return block.toarray() if sp.issparse(block) else block


@pytest.fixture
def moves(spy):
    return spy(TensorBlock, "to")


def left_on_host(moves):
    """Shapes of blocks of hidden rows that are left on the host."""
    return [block.shape for block, device in moves if isinstance(device, str) and device == "cpu"]


def test_rows_stay_on_the_host_beyond_the_budget(moves, torch_device):
    X = np.ones((40, 10))
    budget = 1.5 * X.nbytes  # rows, and half of the hidden
    ours = device_blocks([X[:20], X[20:]], torch_device, memory_budget=budget)
    ours.map(layers(1, 10, torch_device)[0]).total(scatter)
    assert left_on_host(moves) == (
        [(20, 10)] if torch_device != "cpu" else []
    )  # on the CPU the rows are there already


def test_a_pass_broken_off_is_done_again(torch_device):
    X = sparse_rows(n=60)
    first, second = layers(2, 30, torch_device)
    one = device_blocks([X[:20], X[20:40], X[40:]], torch_device).map(first)
    one.total(scatter)
    two = one.map(second)
    next(iter(two))
    expected = to_host(second)(to_host(first)(X))
    np.testing.assert_allclose(np.vstack([torch_ops.to_numpy(block) for block in two]), expected, rtol=1e-9)


@pytest.fixture
def blocks_seen(spy, set_limits):
    """Blocks of at most seven rows of thirty; all that are made dense."""
    set_limits(BLOCK_ENTRIES=7 * 30)
    return spy(TensorBlock, "dense")


@pytest.mark.parametrize("memory_budget", [None, 0, 9000])
@pytest.mark.parametrize("kind", ["csr", "dense", "tensor"])
def test_hidden_rows_pass_in_blocks(kind, memory_budget, blocks_seen, torch_device):
    X = sparse_rows(n=40, d=30)
    rows = {"csr": X, "dense": X.toarray(), "tensor": torch.tensor(X.toarray(), device=torch_device)}[kind]
    made = layers(3, 30, torch_device)
    expected = X.toarray()
    found = Place(torch_device, memory_budget=memory_budget).hidden(made, rows)
    for layer, H in zip(map(to_host, made), found, strict=True):
        expected = np.tanh(expected @ layer.coef + layer.intercept)
        np.testing.assert_allclose(H, expected, rtol=1e-9)
        H[:] = np.nan  # it is the caller's
    assert len(blocks_seen) == 3 * 6
    assert max(block.shape[0] for (block,) in blocks_seen) <= 7


@pytest.mark.usefixtures("blocks_seen")
def test_hidden_rows_heed_the_budget(moves, device):
    X = sparse_rows(n=14)
    for kind, n_left in [(MSDA, 0), (SpillingMSDA, 3 * 2)]:
        model = kind(n_layers=3, device=device).fit(X)
        moves.clear()
        list(model.hidden(X))
        assert len(left_on_host(moves)) == n_left


@pytest.mark.usefixtures("blocks_seen")
@pytest.mark.parametrize("width", [0, 10, 30, 60])
def test_blocks_are_cut_for_the_wider_of_input_and_hidden_rows(width):
    blocks = split_for_device(sparse_rows(n=42, d=30), width)
    assert len(blocks) == 42 * max(width, 30) / (7 * 30)


# -- MSDA --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"n_pivots": 11, "random_state": 0}, {"noise": 0.005}])
@pytest.mark.parametrize("form", ["csr", "dense", "blocks", "tensor"])
def test_msda_on_torch_is_msda_on_numpy(options, form, dtype, device, torch_device):
    X = sparse_rows(n=90, d=30, dtype=dtype)
    X.data -= np.float64(0.3).astype(dtype)
    rows = {
        "csr": X,
        "dense": X.toarray(),
        "blocks": [X[:40], X[40:].toarray()],
        "tensor": torch.tensor(X.toarray(), device=torch_device),
    }[form]
    ours = MSDA(n_layers=3, device=device, ridge=0.1, **options).fit(rows)
    theirs = MSDA(n_layers=3, ridge=0.1, **options).fit(X)
    for mine, other in zip(ours.layers_, theirs.layers_, strict=True):
        for part in ("coef", "intercept"):
            assert type(getattr(mine, part)) is np.ndarray
            assert getattr(mine, part).dtype == dtype
        close(torch.tensor(mine.coef), other.coef, dtype)
        close(torch.tensor(mine.intercept), other.intercept, dtype)
    new = sparse_rows(n=7, d=30, dtype=dtype, seed=5)
    output = ours.transform(new)
    assert output.dtype == dtype
    close(torch.tensor(output), theirs.transform(new), dtype)
    for mine, other in zip(ours.hidden(new), theirs.hidden(new), strict=True):
        close(torch.tensor(mine), other, dtype)


def test_products_are_not_rounded_whatever_the_process_allows(monkeypatch, device):
    seen, X = [], sparse_rows(dtype="float32")
    real = torch_ops.gram
    monkeypatch.setattr(
        torch_ops, "gram", lambda X: seen.append(torch.get_float32_matmul_precision()) or real(X)
    )
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        model = MSDA(n_layers=1, device=device).fit(X)
        assert seen == ["highest"]
        steps = model.hidden(X)
        next(steps)
        assert torch.get_float32_matmul_precision() == "high"
    finally:
        torch.set_float32_matmul_precision(before)
    expected = MSDA(n_layers=1).fit(X)
    np.testing.assert_allclose(model.transform(X), expected.transform(X), atol=1e-4)


def test_threads_ask_for_a_precision_together(torch_device):
    """The setting is the process's: rows of Dask are computed by threads that start and end in any order."""

    def ask(name):
        asked = torch_ops.precision(name)
        asked.__enter__()
        return asked

    def found():
        return torch.get_float32_matmul_precision()

    assert found() == "highest"
    first, second = ask("high"), ask("high")
    assert found() == "high"
    with torch_ops.full_precision():
        assert found() == "highest"
        first.__exit__(None, None, None)
        assert found() == "highest"
    assert found() == "high"
    second.__exit__(None, None, None)
    assert found() == "highest"


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"device": "gpu"}, NoDevice, "device='gpu' is not known to the PyTorch .* pass 'cpu', 'cuda'"),
        ({"device": "meta"}, NoDevice, "device='meta' is not known to the PyTorch that is installed"),
        ({"device": "cuda:99"}, NoDevice, "device='cuda:99', but .* GPU"),
        ({"device": 1}, TypeError, "device must be a string"),
    ],
)
def test_bad_places(options, error, message):
    with pytest.raises(error, match=message):
        MSDA(**options).fit(np.eye(3))


def test_without_cuda_or_torch_the_error_says_what_to_do(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(NoDevice, match=r"no CUDA GPU here: install .* or pass device='cpu'"):
        MSDA(device="cuda").fit(np.eye(3))
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match=r"pip install 'undrift\[torch\]'"):
        MSDA(device="cuda").fit(np.eye(3))


def test_gpus_are_counted_from_zero_and_rows_there_are_worked_on_there(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert check_place("cuda:1") == Place("cuda:1")
    with pytest.raises(NoDevice, match="there are 2 GPUs, counted from 0"):
        check_place("cuda:2")
    assert check_place("cpu", there="cuda:0") == Place("cuda:0")
    assert check_place("torch:cpu", there="cuda:0") == Place("cpu")
    assert check_place("cpu") == Place()


@pytest.mark.slow
def test_core_and_torch_need_no_scikit_learn():
    program = (
        "import sys, types\n"
        "sys.modules |= {'sklearn': None, 'safetensors': None, 'undrift': types.ModuleType('undrift')}\n"
        f"sys.modules['undrift'].__path__ = [{str(Path(undrift.__file__).parent)!r}]\n"
        "import undrift.core.torch.blocks, undrift.core.torch.ops\n"
        "assert 'torch' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
