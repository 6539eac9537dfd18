"""The same rows in memory, in a temporary file and in a stream give the same answer."""

import gc
import os
import tempfile
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from tests.helpers.exact import SpillingMSDA
from tests.helpers.oracles import relative_error, weights
from undrift import MDA, MSDA
from undrift.core.blocks import HostShelf, StoredBlocks, row_slices, split_rows
from undrift.core.denoise import Layer


class Reread:
    """Blocks that can be read again and again, and a count of how often they were."""

    def __init__(self, *parts):
        self.parts, self.n_passes = parts, 0

    def __iter__(self):
        self.n_passes += 1
        yield from self.parts


@pytest.fixture
def small_blocks(set_limits):
    """Blocks of 7 rows of 9 features, so that 60 rows make many."""
    set_limits(BLOCK_ENTRIES=63)


@pytest.fixture
def spill_folder(monkeypatch, spy, tmp_path):
    """Where temporary files go, and how many were opened."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path, spy(tempfile, "TemporaryFile")


def mapped_files(folder: Path) -> list[str]:
    """Files of `folder` that this process still maps, deleted ones included."""
    gc.collect()
    maps = Path("/proc/self/maps")
    return [line for line in maps.read_text().splitlines() if str(folder) in line] if maps.exists() else []


def resident_bytes(folder: Path) -> int:
    """Memory that the pages of mapped files of `folder` take in this process."""
    total, inside = 0, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if "-" in line.split()[0] and ":" not in line.split()[0]:
            inside = str(folder) in line
        elif inside and line.startswith("Rss:"):
            total += int(line.split()[1]) * 1024
    return total


@pytest.mark.slow
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("options", [{}, {"n_pivots": 4, "random_state": 0}])
def test_spilled_is_streamed_is_in_memory(counts, small_blocks, spill_folder, container, options):
    X = container(counts)
    stream = Reread(X[:11], X[11:12], X[12:])
    kept = MSDA(n_layers=3, **options).fit(X)
    assert not spill_folder[1]
    spilled = SpillingMSDA(n_layers=3, **options).fit(X)
    n_blocks = len(split_rows(counts, options.get("n_pivots", 0)))
    assert len(spill_folder[1]) == 2 * n_blocks  # the output of the last layer is not asked for
    assert os.listdir(spill_folder[0]) == mapped_files(spill_folder[0]) == []
    streamed = MSDA(n_layers=3, **options).fit(stream)
    for a, b, c in zip(kept.layers_, spilled.layers_, streamed.layers_, strict=True):
        assert_array_equal(weights(b), weights(a))  # the same blocks in the same order
        assert relative_error(weights(c), weights(a)) < 1e-9


def test_streams_of_matrices_and_lists_of_rows(counts):
    whole = MDA().fit(counts).layer_.coef
    assert_allclose(MDA().fit([counts[:20], sp.csr_array(counts[20:])]).layer_.coef, whole, rtol=1e-9)
    assert_allclose(MDA().fit(list(counts)).layer_.coef, whole, rtol=1e-9)
    assert_allclose(MDA().fit(counts.tolist()).layer_.coef, whole, rtol=1e-9)
    model = MSDA(n_layers=2).fit([counts[:20].astype(np.float32), counts[20:]])
    assert {layer.coef.dtype for layer in model.layers_} == {np.dtype(np.float32)}
    stream = Reread(counts[:30], counts[30:])
    MSDA(n_layers=3).fit(stream)
    assert stream.n_passes == 1 + 1 + 3  # the check, a search for few rows that stops early, and the layers


def test_the_temporary_file_is_gone_after_a_failure(counts, spill_folder):
    folder, opened = spill_folder
    kept = StoredBlocks(split_rows(counts, 0, 63), HostShelf(1)).map(Layer(np.eye(9), np.zeros(9)))

    def fail_on_the_third(block, seen=[]):  # noqa: B006
        seen.append(block)
        if len(seen) == 3:
            raise RuntimeError("interrupted")
        return 0

    with pytest.raises(RuntimeError, match="interrupted"):
        kept.total(fail_on_the_third)
    assert opened
    assert os.listdir(folder) == []
    fail_on_the_third.__defaults__[0].clear()
    del kept
    assert mapped_files(folder) == []


def test_rows_are_right_after_a_pass_that_was_interrupted(counts):
    layers = [Layer(np.eye(9) * c, np.full(9, c)) for c in (0.5, 0.3)]
    one = StoredBlocks(split_rows(counts, 0, 63)).map(layers[0])
    one.total(len)
    two = one.map(layers[1])
    next(iter(two))  # overwrites the first block, and stops
    assert_allclose(np.vstack(list(two)), layers[1](layers[0](counts)))
    assert_allclose(np.vstack(list(one)), layers[0](counts))


@pytest.mark.parametrize("memory_budget", [float("inf"), 1])
def test_rows_that_a_deeper_layer_has_overwritten_are_computed_again(counts, memory_budget):
    layers = [Layer(np.eye(9) * c, np.full(9, c)) for c in (0.5, 0.3)]
    kept = StoredBlocks(split_rows(counts, 0, 63), HostShelf(memory_budget))
    one = kept.map(layers[0])
    two, other = one.map(layers[1]), one.map(layers[0])
    h1, h2, h3 = layers[0](counts), layers[1](layers[0](counts)), layers[0](layers[0](counts))
    for rows, expected in [(one, h1), (two, h2), (one, h1), (other, h3), (two, h2), (kept, counts)]:
        assert_allclose(np.vstack(list(rows)), expected)


def test_rows_after_a_layer_take_the_place_of_those_before(rng):
    X, layer = rng.normal(size=(4000, 40)), Layer(np.eye(40) / 2, np.zeros(40))
    one = StoredBlocks(split_rows(X, 0, X.size // 10)).map(layer)
    two = one.map(layer)
    tracemalloc.start()
    one.total(len)
    two.total(len)
    assert X.nbytes < tracemalloc.get_traced_memory()[1] < 1.3 * X.nbytes  # a block of one, one of the other
    assert sum(map(len, two.drain())) == 4000
    assert tracemalloc.get_traced_memory()[0] < 0.2 * X.nbytes
    tracemalloc.stop()
    assert_allclose(np.vstack(list(two)), layer(layer(X)))
    assert_array_equal(np.vstack(list(StoredBlocks([X]).drain())), X)


def test_a_budget_keeps_hidden_rows_out_of_memory(set_limits, rng):
    set_limits(BLOCK_ENTRIES=2**14)
    X = sp.csr_array(rng.poisson(0.05, size=(6000, 40)).astype(float))
    hidden_bytes = 6000 * 40 * 8
    peaks = {}
    for kind in (MSDA, SpillingMSDA):
        tracemalloc.start()
        kind(n_layers=3).fit(X)
        peaks[kind] = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peaks[MSDA] > hidden_bytes
    assert peaks[SpillingMSDA] < 0.6 * hidden_bytes


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="needs the system's account of memory")
def test_pages_of_the_temporary_file_are_given_back(rng, spill_folder):
    X = rng.random((40_000, 8))
    rows = StoredBlocks(split_rows(X, 0, 2**15), HostShelf(1)).map(Layer(np.eye(8), np.zeros(8)))
    resident = []

    def read(block):
        assert block.sum() > 0
        resident.append(resident_bytes(spill_folder[0]))
        return 0

    for _ in range(2):  # the first pass writes the file, the second reads it
        rows.total(read)
    assert max(resident) > 0
    assert max(resident) < X.nbytes / 2
    assert_allclose(np.vstack(list(rows)), np.tanh(X))


@pytest.mark.posix
def test_a_full_disk_is_an_error_and_leaves_nothing(counts, spill_folder, fail):
    folder, _ = spill_folder
    fail("os.posix_fallocate", OSError(28, "No space left on device"))
    with pytest.raises(OSError, match=r"No space left on device.*a larger disk"):
        SpillingMSDA(n_layers=2).fit(counts)
    assert os.listdir(folder) == []


@pytest.mark.parametrize(("n", "width"), [(1, 5), (60, 9), (61, 9), (3, 10**9), (0, 4)])
def test_slices_cover_every_row_once_and_stay_small(n, width):
    slices = row_slices(n, width, 63)
    assert [i for rows in slices for i in range(n)[rows]] == list(range(n))
    assert all(rows.stop - rows.start <= max(1, 63 // width) for rows in slices)
