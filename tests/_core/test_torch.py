"""The torch verbs, rows on a device, and MSDA there. `pytest --device cuda` runs all of it on a GPU."""

import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import undrift
from undrift import MSDA
from undrift._core import numpy_ops
from undrift._core.array import NotPositiveDefinite, array_ops
from undrift._core.blocks import StoredBlocks
from undrift._core.denoise import Layer, SingularSystem, denoise
from undrift._core.scatter import scatter
from undrift._core.stack import fit_layers, pooled_scatter
from undrift._inputs.device import NoDevice, OnHost, OnTorch, check_place

torch = pytest.importorskip("torch")

from undrift._core.torch import fetch as torch_fetch
from undrift._core.torch import half as torch_half
from undrift._core.torch import inverse as torch_inverse
from undrift._core.torch import ops as torch_ops
from undrift._core.torch.fetch import to_host
from undrift._core.torch.rows import (
    BlockCopier,
    DeviceBlocks,
    StreamToDevice,
    TensorBlock,
    device_hidden_rows,
    split_for_device,
    to_device,
)

RTOL = {"float64": 1e-9, "float32": 1e-4}


@pytest.fixture(params=["float64", "float32"])
def dtype(request):
    return request.param


@pytest.fixture
def narrow(monkeypatch):
    """Several stripes, factorisations and batches at the width of a test."""
    monkeypatch.setattr(torch_inverse, "STRIPE", 24)
    monkeypatch.setattr(torch_inverse, "FACTOR", 90)
    monkeypatch.setattr(torch_inverse, "BLOCK", 8)


def positive_definite(rng, d, dtype="float64"):
    B = rng.normal(size=(d, 2 * d))
    return (B @ B.T / d + np.eye(d)).astype(dtype)


def close(ours, expected, dtype):
    ours = torch_ops.to_numpy(ours)
    scale = np.abs(expected).max()
    assert scale > 0
    np.testing.assert_allclose(ours, expected, rtol=RTOL[dtype], atol=RTOL[dtype] * scale)


def sparse_rows(n=60, d=30, dtype="float64", seed=0):
    return sp.random(n, d, 0.2, format="csr", random_state=seed, dtype=dtype)


# -- the verbs ---------------------------------------------------------------------------------------


def verb_calls(X, Z, mean, damping):
    """Every verb that takes arrays and returns one, with a plain NumPy oracle."""
    d = X.shape[1]
    C = X.T @ X
    return {
        "column_sums": ((X,), X.sum(axis=0)),
        "nonzero_counts": ((X,), (X != 0).sum(axis=0)),
        "cross": ((X, Z), X.T @ Z),
        "columns": ((X, np.array([4, 1, 7])), X[:, [4, 1, 7]]),
        "diagonal": ((C,), np.diag(C)),
        "centred": ((C, 5, mean, 2 * mean), C - 10 * mean[:, None] * mean[None, :]),
        "affine": ((X, C, mean), X @ C + mean),
        "denoising_coef": ((C, 0.4, damping), (np.eye(d) - C * damping) / 0.4),
    }


@pytest.mark.parametrize("verb", sorted(verb_calls(*[np.ones((9, 9))] * 2, *[np.ones(9)] * 2)))
def test_verb_agrees_with_its_formula(verb, dtype, rng, torch_device):
    X, Z = rng.normal(size=(40, 70)), rng.normal(size=(40, 6))
    X[X < 0] = 0
    args, expected = verb_calls(X, Z, rng.normal(size=70), rng.random(70))[verb]

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


@pytest.mark.parametrize("n", [1, 63, 64, 1000])
def test_sums_of_float32_are_added_in_float64(n, rng, torch_device):
    X = (1 + rng.random((n, 5))).astype("float32")
    total = torch_ops.column_sums(torch.tensor(X, device=torch_device))
    assert total.dtype is torch.float64
    np.testing.assert_allclose(torch_ops.to_numpy(total), X.sum(axis=0, dtype="float64"), rtol=1e-6)


def test_long_sums_do_not_stall(torch_device):
    # one by one, float32 would stop counting at 2^24
    X = torch.ones((1, 1), device=torch_device).expand(2**25 + 1, 1)
    assert float(torch_ops.column_sums(X)) == 2**25 + 1
    rare = torch.cat([torch.full((64, 1), 2.0**30), torch.ones(64, 1)]).to(torch_device)
    assert float(torch_ops.column_sums(rare)) == 2**36 + 64


@pytest.mark.usefixtures("narrow")
@pytest.mark.parametrize("d", [1, 24, 25, 70])
def test_gram_fills_the_lower_triangle(d, dtype, rng, torch_device):
    X = rng.normal(size=(33, d)).astype(dtype)
    G = torch_ops.gram(torch.tensor(X, device=torch_device))
    assert str(G.dtype) == f"torch.{dtype}"
    close(G.tril(), np.tril(X.astype("float64").T @ X), dtype)


def test_gram_leaves_out_the_tiles_above_the_diagonal(monkeypatch, rng):
    shapes, mm = [], torch.mm
    monkeypatch.setattr(torch_inverse, "STRIPE", 10)
    monkeypatch.setattr(
        torch, "mm", lambda A, B, out: shapes.append((*A.shape, B.shape[1])) or mm(A, B, out=out)
    )
    torch_ops.gram(torch.tensor(rng.normal(size=(5, 30))))
    assert sorted(shapes) == [(10, 5, 10), (10, 5, 20), (10, 5, 30)]


def test_denoising_system_subtracts_in_float64(torch_device):
    # the covariance is the last digit of float32's second moment
    mean = np.array([1000.0, 2000.0])
    G = np.array([[4e6 + 1, 0], [8e6, 16e6 + 2]])
    A = torch_ops.denoising_system(
        torch.tensor(G, dtype=torch.float32, device=torch_device),
        4,
        torch.tensor(mean, device=torch_device),
        0.5,
        torch.tensor([0.25, 0.75], dtype=torch.float64, device=torch_device),
        torch.float32,
    )
    np.testing.assert_array_equal(np.tril(torch_ops.to_numpy(A)), [[0.75, 0], [0, 1.75]])


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


def test_affine_writes_into_out_and_promotes(rng, torch_device):
    X, C = rng.normal(size=(6, 5)), rng.normal(size=(5, 3)).astype("float32")
    here = partial(torch.tensor, device=torch_device)
    out = torch.full((6, 3), float("nan"), dtype=torch.float64, device=torch_device)
    assert torch_ops.affine(here(X), here(C), here(C[0]), out) is out
    close(out, X @ C + C[0], "float64")


def test_empty_like_and_cast_keep_the_device(torch_device):
    A = torch.ones(3, dtype=torch.float32, device=torch_device)
    B = torch_ops.empty_like(A, (2, 5))
    assert (B.shape, B.dtype, B.device) == ((2, 5), A.dtype, A.device)
    assert torch_ops.cast(A, torch.float32) is A
    assert torch_ops.cast(A, "float32") is A
    assert torch_ops.cast(A, torch.float64).dtype is torch.float64
    assert torch_ops.cast(A, np.float64).dtype is torch.float64


@pytest.mark.parametrize("name", torch_ops.PRECISIONS)
def test_precision_is_put_back(name):
    before = torch.get_float32_matmul_precision()
    with torch_ops.precision(name):
        assert torch.get_float32_matmul_precision() == name
    assert torch.get_float32_matmul_precision() == before
    with pytest.raises(ZeroDivisionError), torch_ops.precision(name):
        _ = 1 / 0
    assert torch.get_float32_matmul_precision() == before


# -- the inverse -------------------------------------------------------------------------------------


@pytest.mark.usefixtures("narrow")
@pytest.mark.parametrize("d", [1, 2, 7, 8, 9, 23, 64, 89, 90, 91, 181, 300])
def test_inverse_of_the_lower_triangle(d, dtype, rng, torch_device):
    A = positive_definite(rng, d, dtype)
    half = A.copy()
    half[np.triu_indices(d, 1)] = np.nan
    close(
        torch_ops.spd_inverse(torch.tensor(half, device=torch_device)),
        np.linalg.inv(A.astype("float64")),
        dtype,
    )


def test_inverse_at_its_own_sizes(rng, torch_device):
    A = positive_definite(rng, 1100)
    close(torch_ops.spd_inverse(torch.tensor(A, device=torch_device)), np.linalg.inv(A), "float64")


@pytest.mark.usefixtures("narrow")
@pytest.mark.parametrize("column", [0, 5, 89, 90, 130, 149])
@pytest.mark.parametrize("pivot", [-1.0, 0.0, 1e-16])
def test_inverse_names_the_column_without_a_pivot(column, pivot, rng, torch_device):
    L = np.tril(rng.normal(size=(150, 150)), -1) / 20 + np.eye(150)
    D = np.ones(150)
    D[column] = pivot if column else min(pivot, 0)  # small beside its diagonal, which has no more in column 0
    A = torch.tensor(L * D @ L.T, device=torch_device)
    with pytest.raises(NotPositiveDefinite) as caught:
        torch_ops.spd_inverse(A)
    assert caught.value.column == column


@pytest.mark.usefixtures("narrow")
def test_lower_inverse_of_padded_blocks(rng, torch_device):
    L = np.tril(rng.normal(size=(45, 45))) / 9 + 2 * np.eye(45)
    ours = torch_inverse.lower_inverse(torch.tensor(L, device=torch_device))
    close(ours, np.linalg.inv(L), "float64")
    assert ours._base.shape[0] > 45
    assert bool(torch.isfinite(ours._base).all())  # nothing was divided by zero in the padding


@pytest.mark.usefixtures("narrow")
def test_a_pivot_lost_to_rounded_products_is_looked_for_again(monkeypatch, rng):
    A, seen, real = positive_definite(rng, 20), [], torch_ops.symmetric_inverse

    def lossy(A):
        seen.append(torch.get_float32_matmul_precision())
        found = real(A)
        return found if seen[-1] == "highest" else replace(found, failed=torch.tensor(3))

    monkeypatch.setattr(torch_ops, "symmetric_inverse", lossy)
    with torch_ops.precision("high"):
        close(torch_ops.spd_inverse(torch.tensor(A)), np.linalg.inv(A), "float64")
    assert seen == ["high", "highest"]


def test_careful_products_are_made_of_leading_bits(rng, torch_device):
    A, B = rng.normal(size=(30, 40)).astype("float32"), rng.normal(size=(40, 20)).astype("float32")
    exact = A.astype("float64") @ B
    here = partial(torch.tensor, device=torch_device)
    with torch_ops.precision("high"):
        product = torch_inverse.careful_product(here(A), here(B).T.contiguous().T)
    np.testing.assert_allclose(torch_ops.to_numpy(product), exact, atol=2e-6 * np.abs(exact).max())
    leading = torch_ops.to_numpy(torch_inverse.leading_bits(here(A)))
    assert not (leading.view("int32") & 0x1FFF).any()
    np.testing.assert_array_equal(leading, rounded(A))


# -- 16-bit products ---------------------------------------------------------------------------------


def rounded(X):
    """Round to 11 significant bits, as the definition says: independent of any format of 16 bits."""
    mantissa, exponent = np.frexp(np.asarray(X, "float64"))
    return np.ldexp(np.round(mantissa * 2**11), exponent - 11)


@pytest.fixture
def in_half(monkeypatch, torch_device):
    """The 16-bit products of a GPU, wherever the test runs."""
    monkeypatch.setattr(torch_half, "DEVICES", {torch_device.split(":")[0]})
    monkeypatch.setattr(torch_half, "KNOWN", True)
    with torch_ops.precision("high"):
        yield


def uneven(rng, n, d):
    """Columns of very different size, and one of zeros."""
    X = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-12, 12, size=d)
    X[:, d // 2] = 0
    return X.astype("float32")


@pytest.mark.usefixtures("in_half", "narrow")
def test_half_gram_is_the_gram_of_rounded_entries(rng, torch_device):
    X = uneven(rng, 50, 70)
    G = np.tril(torch_ops.to_numpy(torch_ops.gram(torch.tensor(X, device=torch_device))))
    K = rounded(X)
    scale = np.sqrt(np.outer(*[(K**2).sum(axis=0)] * 2))
    assert (np.abs(G - np.tril(K.T @ K)) <= 5e-6 * scale).all()
    assert (np.abs(G - np.tril(X.astype("float64").T @ X)) > 1e-5 * scale).any()  # it is not float32's


@pytest.mark.usefixtures("in_half")
@pytest.mark.parametrize("into", [False, True])
def test_half_affine_is_that_of_rounded_operands(into, rng, torch_device):
    X = uneven(rng, 50, 30)
    size = np.abs(X).max(axis=0) + (X == 0).all(axis=0)
    W = (rng.normal(size=(30, 20)) / size[:, None] * 10.0 ** rng.integers(-12, 12, size=20)).astype("float32")
    b = (W * size[:, None]).max(axis=0)
    here = partial(torch.tensor, device=torch_device)
    out = torch.empty((50, 20), device=torch_device) if into else None
    H = torch_ops.affine(here(X), here(W).T.contiguous().T, here(b), out)
    assert (H is out) == into
    expected = rounded(X) @ rounded(W) + b
    assert (np.abs(torch_ops.to_numpy(H) - expected) <= 1e-5 * np.abs(expected).max(axis=0)).all()


@pytest.mark.usefixtures("in_half")
@pytest.mark.parametrize("size", [0.0, 1e-45, 1e-38, 1e-20, 1.0, 1.9999999, 65520.0, 3e38])
def test_halved_columns_neither_vanish_nor_overflow(size, torch_device):
    X = torch.tensor([[size], [-size / 2]], dtype=torch.float32, device=torch_device)
    K = torch_half.halve(X)
    assert bool(torch.isfinite(K.values).all())
    back = torch_ops.to_numpy(K.values.double() * K.undo)
    np.testing.assert_allclose(back, torch_ops.to_numpy(X.double()), rtol=2.0**-11)
    if size >= 1e-20:
        assert 2**14 <= float(K.values.float().max()) <= 2**15
    assert float(torch.frexp(K.undo)[0]) == 0.5  # a power of two


@pytest.mark.usefixtures("in_half", "narrow")
def test_bounded_rows_are_rounded_once_for_scatter_and_layer(rng, torch_device, monkeypatch):
    here = partial(torch.tensor, device=torch_device, dtype=torch.float32)
    X = 2.0 ** rng.integers(-30, 3, size=70) * rng.normal(size=(50, 70))
    W, b = rng.normal(size=(70, 20)).astype("float32"), rng.normal(size=20).astype("float32")
    H = torch_ops.squash(here(X), "tanh")
    exact, G = np.tanh(X.astype("float32")).astype("float64"), torch_ops.gram(H)
    monkeypatch.setattr(torch, "mul", None)  # what rounds rows; those of `coef` are rounded by the other way
    assert torch_half.halve(H) is torch_half.halve(H)
    monkeypatch.undo()
    step = np.maximum(2.0**-11 * np.abs(exact), 2.0**-39)  # twice the rounding of an entry
    size = np.linalg.norm(exact, axis=0)
    bound = np.abs(exact).T @ step + step.T @ np.abs(exact) + 1e-6 * np.outer(size, size)
    assert (np.abs(np.tril(torch_ops.to_numpy(G)) - np.tril(exact.T @ exact)) <= bound).all()
    expected, scale = exact @ W + b, np.abs(exact) @ np.abs(W)
    assert (
        np.abs(torch_ops.to_numpy(torch_ops.affine(H, here(W), here(b))) - expected) <= 2e-3 * scale
    ).all()
    H *= 3  # no longer what was rounded, nor bounded
    np.testing.assert_allclose(
        torch_ops.to_numpy(torch_half.halve(H).values.double() * torch_half.halve(H).undo),
        3 * exact,
        rtol=2e-3,
        atol=1e-30,
    )


@pytest.mark.usefixtures("in_half")
@pytest.mark.parametrize(
    ("budget", "n_kept"), [(float("inf"), 2), (40 * 30 * 4, 0), (50 * 30 * 4, 1), (0, 0)]
)
def test_rounded_rows_are_kept_where_there_is_room(budget, n_kept, torch_device):
    X = np.random.default_rng(0).normal(size=(40, 30)).astype("float32")
    given = torch.tensor(X, device=torch_device)
    layer = to_device(Layer(np.eye(30, dtype="float32"), np.zeros(30, dtype="float32")), torch_device)
    rows = DeviceBlocks([given[:20], given[20:]], torch_device, memory_budget=budget).map(layer)
    rows.total(scatter)
    kept = [getattr(block.tensors[0], "kept_half", (0, None))[1] for block in rows._store.blocks]
    assert sum(half is not None for half in kept) == n_kept


@pytest.mark.usefixtures("in_half")
def test_counts_are_exact_in_half(rng, torch_device):
    X = rng.poisson(3.0, size=(90, 40)).astype("float32")
    G = torch_ops.gram(torch.tensor(X, device=torch_device))
    np.testing.assert_array_equal(np.tril(torch_ops.to_numpy(G)), np.tril(X.T @ X))


def test_half_only_where_it_was_asked_for(monkeypatch, torch_device):
    X = torch.ones(2, 2, device=torch_device)
    monkeypatch.setattr(torch_half, "DEVICES", {X.device.type})
    monkeypatch.setattr(torch_half, "KNOWN", True)
    with torch_ops.precision("high"):
        assert torch_half.pays(X, X)
        assert not torch_half.pays(X, X.double())
        monkeypatch.setattr(torch_half, "KNOWN", False)
        assert not torch_half.pays(X)
        monkeypatch.setattr(torch_half, "KNOWN", True)
        monkeypatch.setattr(torch_half, "DEVICES", {"elsewhere"})
        assert not torch_half.pays(X)
        monkeypatch.setattr(torch_half, "DEVICES", {X.device.type})
    with torch_ops.precision("highest"):
        assert not torch_half.pays(X)


@pytest.mark.usefixtures("in_half")
def test_msda_in_half_is_msda_to_a_few_in_a_thousand(device):
    X = sparse_rows(n=200, d=30, dtype="float32")
    ours, theirs = MSDA(n_layers=3, device=device).fit(X), MSDA(n_layers=3).fit(X.astype("float64"))
    for mine, other in zip(ours.layers_, theirs.layers_, strict=True):
        error = np.linalg.norm(mine.coef - other.coef) / np.linalg.norm(other.coef)
        assert error < 5e-3
    assert error > 1e-5  # the upper layers saw rounded rows


# -- layers that come back ---------------------------------------------------------------------------


@pytest.mark.parametrize("chunk", [2**25, 64, 240])
def test_arrays_come_back_in_chunks(chunk, dtype, rng, monkeypatch, torch_device):
    monkeypatch.setattr(torch_fetch, "CHUNK", chunk)
    monkeypatch.setattr(torch_fetch, "_BUFFERS", [])
    A = rng.normal(size=(11, 7)).astype(dtype)
    for matrix in (A, A[:, 0], A[:0]):
        here = torch.tensor(matrix, device=torch_device)
        np.testing.assert_array_equal(torch_fetch.copy_in_chunks(here), matrix)
    turned = torch_fetch.copy_in_chunks(torch.tensor(A, device=torch_device).T)
    np.testing.assert_array_equal(turned, A.T)
    assert turned.flags.c_contiguous


def test_a_layer_is_copied_to_the_host_as_it_was_when_the_copy_began(torch_device):
    (layer,) = layers(1, 30, torch_device)
    expected = layer.coef.cpu().numpy().copy()
    wait = torch_fetch.start_copy_to_host(layer)
    np.testing.assert_array_equal(wait().coef, expected)
    np.testing.assert_array_equal(wait().intercept, layer.intercept.cpu().numpy())
    assert wait().activation == layer.activation
    assert wait() is not layer


# -- rows on a device --------------------------------------------------------------------------------


def test_held_rows_become_dense(dtype, torch_device):
    X = sparse_rows(dtype=dtype)
    X = sp.vstack([X[:7], sp.csr_matrix((3, 30), dtype=dtype), X[7:]]).tocsr()  # some rows are empty
    held = TensorBlock.of(X).map_tensors(lambda part: part.to(torch_device))
    np.testing.assert_array_equal(torch_ops.to_numpy(held.dense()), X.toarray())
    assert held.n_bytes == X.data.nbytes + X.indices.nbytes + X.indptr.nbytes


def test_rows_nobody_may_write_to_are_taken_without_a_copy(torch_device):
    X = np.arange(12.0).reshape(4, 3)
    X.setflags(write=False)
    assert TensorBlock.of(X).tensors[0].data_ptr() == X.ctypes.data
    np.testing.assert_array_equal(TensorBlock.of(X[::-1]).dense(), X[::-1])
    DeviceBlocks([X], torch_device).map(layers(1, 3, torch_device)[0]).total(scatter)
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
    ours = DeviceBlocks([make[kind](B) for B in whole], torch_device, memory_budget=memory_budget)
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


def test_rows_stay_on_the_host_beyond_the_budget(monkeypatch, torch_device):
    left = []
    X = np.ones((40, 10))
    ours = DeviceBlocks(
        [X[:20], X[20:]], torch_device, memory_budget=1.5 * X.nbytes
    )  # rows, and half of the hidden
    monkeypatch.setattr(ours._copier, "to_host", lambda block: left.append(block.shape) or block)
    ours.map(layers(1, 10, torch_device)[0]).total(scatter)
    assert left == ([(20, 10)] if torch_device != "cpu" else [])  # on the CPU the rows are there already


def test_stacks_on_the_same_rows_do_not_mix(torch_device):
    X = sparse_rows(n=50)
    first, *others = layers(3, 30, torch_device)
    rows = DeviceBlocks([X], torch_device)
    for layer in others:
        (hidden,) = rows.map(layer)
        close(hidden, to_host(layer)(X), "float64")
    one = rows.map(first)
    one.total(scatter)
    for layer in others:
        (hidden,) = one.map(layer)
        close(hidden, to_host(layer)(to_host(first)(X)), "float64")


def test_every_layer_is_computed_once(torch_device):
    calls = []

    class Counted(Layer):
        def __call__(self, X, out=None):
            calls.append(X.shape[0])
            return super().__call__(X, out)

    X = sparse_rows(n=50)
    rows = DeviceBlocks([X[:20], X[20:]], torch_device)
    for layer in layers(3, 30, torch_device):
        rows = rows.map(Counted(layer.coef, layer.intercept))
        rows.total(scatter)
        rows.total(scatter)
    assert calls == [20, 30] * 3


def test_a_pass_broken_off_is_done_again(torch_device):
    X = sparse_rows(n=60)
    first, second = layers(2, 30, torch_device)
    one = DeviceBlocks([X[:20], X[20:40], X[40:]], torch_device).map(first)
    one.total(scatter)
    two = one.map(second)
    next(iter(two))
    expected = to_host(second)(to_host(first)(X))
    np.testing.assert_allclose(np.vstack([torch_ops.to_numpy(block) for block in two]), expected, rtol=1e-9)


def test_carried_blocks_can_be_read_again(torch_device):
    blocks = [sparse_rows(n=9), np.ones((4, 30)), sparse_rows(n=5, seed=1)]
    carried = StreamToDevice(blocks, torch_device)
    for _ in range(2):
        for ours, block in zip(carried, blocks, strict=True):
            assert ours.device.type == torch_device.split(":")[0]
            np.testing.assert_array_equal(torch_ops.to_numpy(ours), as_dense(block))


def test_growing_over_domains_is_growing_over_their_rows(torch_device):
    X = sparse_rows(n=80, d=20)
    domains = [DeviceBlocks([X[:30]], torch_device), DeviceBlocks([X[30:50], X[50:]], torch_device)]
    close(pooled_scatter(domains).mean, np.asarray(X.mean(axis=0)).ravel(), "float64")
    solve = partial(denoise, noise=0.4)
    ours = [grown.layer for grown in fit_layers(domains, 3, solve)]
    theirs = [grown.layer for grown in fit_layers([StoredBlocks([X])], 3, solve)]
    for mine, other in zip(ours, theirs, strict=True):
        close(mine.coef, other.coef, "float64")
        close(mine.intercept, other.intercept, "float64")


@pytest.fixture
def blocks_seen(monkeypatch):
    """Blocks of at most seven rows of thirty; the shapes of all that are made dense."""
    seen, dense = [], TensorBlock.dense
    monkeypatch.setattr("undrift._core.torch.rows.BLOCK_ENTRIES", 7 * 30)
    monkeypatch.setattr(TensorBlock, "dense", lambda self: seen.append(self.shape) or dense(self))
    return seen


@pytest.mark.parametrize("memory_budget", [None, 0, 9000])
@pytest.mark.parametrize("kind", ["csr", "dense", "tensor"])
def test_hidden_rows_pass_in_blocks(kind, memory_budget, blocks_seen, torch_device):
    X = sparse_rows(n=40, d=30)
    rows = {"csr": X, "dense": X.toarray(), "tensor": torch.tensor(X.toarray(), device=torch_device)}[kind]
    made = layers(3, 30, torch_device)
    expected = X.toarray()
    found = device_hidden_rows(made, rows, torch_device, memory_budget=memory_budget)
    for layer, H in zip(map(to_host, made), found, strict=True):
        expected = np.tanh(expected @ layer.coef + layer.intercept)
        np.testing.assert_allclose(H, expected, rtol=1e-9)
        H[:] = np.nan  # it is the caller's
    assert len(blocks_seen) == 3 * 6
    assert max(n for n, _ in blocks_seen) <= 7


@pytest.mark.usefixtures("blocks_seen")
def test_hidden_rows_of_the_last_layer_are_not_kept(monkeypatch, torch_device):
    kept, real = [], BlockCopier.to_host
    monkeypatch.setattr(BlockCopier, "to_host", lambda self, block: kept.append(block) or real(self, block))
    for _ in device_hidden_rows(
        layers(3, 30, torch_device), np.ones((14, 30)), torch_device, memory_budget=0
    ):
        pass
    assert len(kept) == 2 * 2  # blocks of the first and of the second


def test_msda_cuts_the_rows_of_hidden(blocks_seen, device):
    X = sparse_rows(n=50)
    model = MSDA(n_layers=2, device=device).fit(X)
    blocks_seen.clear()
    for ours, theirs in zip(model.hidden(X), MSDA(n_layers=2).fit(X).hidden(X), strict=True):
        close(torch.tensor(ours), theirs, "float64")
    assert max(n for n, _ in blocks_seen) <= 7


@pytest.mark.usefixtures("blocks_seen")
def test_hidden_rows_heed_the_budget(monkeypatch, device):
    X = sparse_rows(n=14)
    left, real = [], BlockCopier.to_host
    for budget, n_left in [(None, 0), (1, 2 * 2)]:
        model = MSDA(n_layers=3, device=device, memory_budget=budget).fit(X)
        monkeypatch.setattr(
            BlockCopier, "to_host", lambda self, block: left.append(block) or real(self, block)
        )
        left.clear()
        list(model.hidden(X))
        assert len(left) == n_left


@pytest.mark.usefixtures("blocks_seen")
@pytest.mark.parametrize("width", [0, 10, 30, 60])
def test_blocks_are_cut_for_the_wider_of_input_and_hidden_rows(width):
    blocks = split_for_device(sparse_rows(n=42, d=30), width)
    assert len(blocks) == 42 * max(width, 30) / (7 * 30)


# -- MSDA --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options", [{}, {"n_pivots": 11, "random_state": 0}, {"binarize": True, "noise": 0.005}]
)
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
    ours = MSDA(n_layers=3, device=device, precision="highest", ridge=0.1, **options).fit(rows)
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


def test_transform_cuts_rows_and_takes_tensors(monkeypatch, device, torch_device):
    X = sparse_rows(n=50)
    model = MSDA(n_layers=2, device=device).fit(X)
    expected = MSDA(n_layers=2).fit(X).transform(X)
    monkeypatch.setattr(
        "undrift.representation.msda.row_slices", lambda n, width: [slice(0, 30), slice(30, n)]
    )
    close(torch.tensor(model.transform(X)), expected, "float64")
    close(torch.tensor(model.transform(torch.tensor(X.toarray(), device=torch_device))), expected, "float64")


def test_high_precision_is_tf32_inside_and_nowhere_else(monkeypatch, device):
    seen, X = [], sparse_rows(dtype="float32")
    real = torch_ops.gram
    monkeypatch.setattr(
        torch_ops, "gram", lambda X: seen.append(torch.get_float32_matmul_precision()) or real(X)
    )
    before = torch.get_float32_matmul_precision()
    assert before == "highest"
    model = MSDA(n_layers=1, device=device).fit(X)
    assert seen == ["high"]
    steps = model.hidden(X)
    next(steps)
    assert torch.get_float32_matmul_precision() == before
    expected = MSDA(n_layers=1).fit(X)
    np.testing.assert_allclose(model.transform(X), expected.transform(X), atol=5e-3)


def test_singular_systems_are_told_as_on_numpy(device):
    X = sparse_rows(n=120).toarray()
    X[:, 4] = 0
    with pytest.raises(SingularSystem, match=r"zero in all 120 rows \(features 4\)"):
        MSDA(ridge=0, device=device).fit(X)
    X[:, 4] = X[:, 9]
    with pytest.raises(SingularSystem, match="linear combination of others"):
        MSDA(ridge=0, noise=0, device=device).fit(X)


def test_a_small_budget_changes_nothing(device):
    X = sparse_rows(n=50)
    ours = MSDA(n_layers=3, device=device, memory_budget=1).fit(X)
    close(torch.tensor(ours.transform(X)), MSDA(n_layers=3).fit(X).transform(X), "float64")


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"device": "gpu"}, NoDevice, "device='gpu' is not known to the PyTorch .* pass 'cpu', 'cuda'"),
        ({"device": "meta"}, NoDevice, "device='meta' is not known to the PyTorch that is installed"),
        ({"device": "cuda:99"}, NoDevice, "device='cuda:99', but .* GPU"),
        ({"device": 1}, TypeError, "device must be a string"),
        ({"device": "torch:cpu", "precision": "low"}, ValueError, "precision='low' is not known"),
        ({"device": "torch:cpu", "memory_budget": "some"}, ValueError, "memory_budget='some' is not a size"),
    ],
)
def test_bad_places(options, error, message):
    with pytest.raises(error, match=message):
        MSDA(**options).fit(np.eye(3))


def test_without_cuda_the_error_says_what_to_do(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(NoDevice, match=r"no CUDA GPU here: install .* or pass device='cpu'"):
        MSDA(device="cuda").fit(np.eye(3))


def test_gpus_are_counted_from_zero(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert check_place("cuda:1") == OnTorch("cuda:1")
    with pytest.raises(NoDevice, match="there are 2 GPUs, counted from 0"):
        check_place("cuda:2")


def test_rows_on_a_gpu_are_worked_on_there(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    assert check_place("cpu", there="cuda:0") == OnTorch("cuda:0")
    assert check_place("torch:cpu", there="cuda:0") == OnTorch("cpu")
    assert check_place("cpu") == OnHost()


def test_without_torch_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match=r"pip install 'undrift\[torch\]'"):
        MSDA(device="cuda").fit(np.eye(3))


def test_seam_knows_tensors():
    assert array_ops(torch.ones(1)) is torch_ops
    assert array_ops(np.ones(1)) is numpy_ops


def test_core_and_torch_need_no_scikit_learn():
    program = (
        "import sys, types\n"
        "sys.modules |= {'sklearn': None, 'safetensors': None, 'undrift': types.ModuleType('undrift')}\n"
        f"sys.modules['undrift'].__path__ = [{str(Path(undrift.__file__).parent)!r}]\n"
        "import undrift._core.torch.rows, undrift._core.torch.ops\n"
        "assert 'torch' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_importing_the_estimators_does_not_import_torch():
    code = "import sys, undrift.representation.msda; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
