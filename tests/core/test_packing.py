"""Layers as a file holds them: lossless with 32 bits, small with 8, and the same stack to little."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from undrift import MSDA
from undrift.core import pack_layers, unpack_layers
from undrift.core.packing import PackedRows

# rows, features, pivots, and the forms in which the layers are kept
SHAPES = {
    "rows": (30, 60, 50, ["rows", "rows", "rows"]),
    "rows of all features": (20, 60, None, ["rows", "rows", "rows"]),
    "terms above rows": (50, 60, 50, ["rows", "terms", "terms"]),
    "parts": (150, 60, 20, ["matrix", "terms", "terms"]),
    "terms": (150, 30, None, ["terms", "terms", "terms"]),
}


def fit(n, d, n_pivots, container=sp.csr_array, **options):
    rng = np.random.default_rng(0)
    X = (rng.poisson(0.4, (n, d)) * rng.uniform(0.2, 1, d)).astype(np.float32)
    new = (rng.poisson(0.4, (25, d)) * rng.uniform(0.2, 1, d)).astype(np.float32)
    X[:, 3] = 0  # a feature that no row has
    options = {"noise": 0.6, "n_pivots": n_pivots, "random_state": 0, **options}
    return MSDA(3, **options).fit(container(X)), np.vstack([X, new])


def hidden(model, layers, X):
    changed = MSDA(3)
    vars(changed).update(vars(model), layers_=layers)
    return list(changed.hidden(X))


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_32_bits_lose_nothing(name, container):
    *shape, _ = SHAPES[name]
    model, X = fit(*shape, container)
    again = unpack_layers(pack_layers(model.layers_, 32))
    for h, expected in zip(hidden(model, again, X), model.hidden(X), strict=True):
        assert_array_equal(h, expected)


@pytest.mark.parametrize(("bits", "atol"), [(16, 1e-3), (8, 0.01)])
@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_fewer_bits_change_hidden_rows_by_little(name, container, bits, atol):
    *shape, forms = SHAPES[name]
    model, X = fit(*shape, container)
    packed = pack_layers(model.layers_, bits)
    assert [layer.form for layer in packed] == forms
    assert {layer.bits for layer in packed} == {bits}
    again = unpack_layers(packed)
    assert [type(layer.coef) for layer in again] == [type(layer.coef) for layer in model.layers_]
    for h, expected in zip(hidden(model, again, X), model.hidden(X), strict=True):
        assert expected.std() > 0.05
        assert_allclose(h, expected, atol=atol)
        assert h.dtype == expected.dtype


@pytest.mark.parametrize("name", SHAPES)
def test_layers_that_were_rounded_are_rounded_to_themselves(name):
    *shape, _ = SHAPES[name]
    model, X = fit(*shape)
    once = unpack_layers(pack_layers(model.layers_, 8))
    twice = unpack_layers(pack_layers(once, 8))
    for h, expected in zip(hidden(model, twice, X), hidden(model, once, X), strict=True):
        assert_allclose(h, expected, atol=1e-5)


def count_bytes(packed):
    numbers = packed.numbers
    return numbers.numbers.nbytes + numbers.lower.nbytes


def expect_bytes(n, p, forms):
    """Bytes of the weights of layers with 8 bits: what the page on the format says."""
    for t, form in enumerate(forms):
        triangle = {"rows": n * (n - 1) // 2, "terms": p * (p - 1) // 2}[form]
        yield -(-3 * triangle // 2) if form == "rows" or t < 2 else triangle


@pytest.mark.parametrize("name", ["rows", "terms above rows", "terms"])
def test_sizes_follow_from_the_shapes(name):
    n, d, n_pivots, forms = SHAPES[name]
    model, _ = fit(n, d, n_pivots)
    packed = pack_layers(model.layers_, 8)
    for layer, n_bytes in zip(packed, expect_bytes(n, n_pivots or d, forms), strict=True):
        assert count_bytes(layer) == pytest.approx(n_bytes, abs=1)
    assert all(layer.rows is None for layer in packed[1:])


@pytest.mark.parametrize(
    ("n", "forms", "megabytes"),
    [(2000, ["rows"] * 5, 16), (3000, ["rows"] * 5, 34), (8000, ["rows"] + ["terms"] * 4, 105)],
)
def test_files_of_usual_sizes_are_small(n, forms, megabytes):
    """Training rows come on top: 9 MB for 8,000 reviews."""
    assert sum(expect_bytes(n, 5000, forms)) < megabytes * 1e6


@pytest.mark.parametrize("noise", [0.005, 0.999])
def test_layers_of_little_noise_are_packed_too(noise):
    model, X = fit(30, 60, 50, noise=noise)
    again = unpack_layers(pack_layers(model.layers_, 16))
    for h, expected in zip(hidden(model, again, X), model.hidden(X), strict=True):
        assert_allclose(h, expected, atol=0.01)


@pytest.mark.parametrize("bits", [8, 12, 16])
@pytest.mark.parametrize("lengths", [[], [0], [1], [3, 0, 4], [5, 8, 2]])
def test_rows_of_numbers_are_unpacked_as_they_were(rng, bits, lengths):
    rows = [rng.normal(size=length).astype(np.float32) * 10 ** rng.uniform(-6, 6) for length in lengths]
    found = list(PackedRows.of(rows, bits).unpack(lengths))
    for row, expected in zip(found, rows, strict=True):
        scale = np.abs(expected).max(initial=0)
        atol = {8: 1 / 127, 12: 1 / 2047, 16: 1e-3}[bits] * scale
        assert_allclose(row, expected, atol=atol)
        if len(expected):
            assert np.abs(row).max() == pytest.approx(scale, rel=1e-3)


def test_parts_that_do_not_fit_are_refused():
    model, _ = fit(30, 60, 50)
    first, second, third = pack_layers(model.layers_, 8)
    numbers = second.numbers
    changed = [
        replace(second, diagonal=second.diagonal[:-1]),
        replace(second, scale=second.scale[:-1]),
        replace(second, numbers=replace(numbers, numbers=numbers.numbers[:-2])),
        replace(second, numbers=replace(numbers, lower=numbers.lower[:-2])),
        replace(second, numbers=replace(numbers, scale=numbers.scale[:-2])),
        replace(second, numbers=replace(numbers, numbers=numbers.numbers.astype(np.int64))),
        replace(second, system=None),
        replace(second, system=replace(second.system, keep=0.0)),
        replace(second, system=replace(second.system, centre=second.system.centre[1:])),
        replace(second, intercept=second.intercept[1:]),
        replace(second, activation="cube"),
        replace(second, targets=np.array([90])),
    ]
    for layer in changed:
        with pytest.raises(ValueError, match=r".+"):
            unpack_layers([first, layer, third])
    with pytest.raises(ValueError, match="without the rows"):
        unpack_layers([second, third])
    with pytest.raises(ValueError, match="sparse rows without a mean"):
        unpack_layers([replace(first, mean=None)])
