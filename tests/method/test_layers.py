"""Pivots, anchors, and running inner products against the concatenation that is never built."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator

from tests.helpers.oracles import algorithm_2
from tests.helpers.watch import watch_layers
from undrift import MSDAClassifier
from undrift.core.blocks import StoredBlocks, StreamedBlocks, take_rows
from undrift.inputs import choose_place
from undrift.inputs.device import Place
from undrift.method.anchors import draw_anchors
from undrift.method.fit import score_centres
from undrift.method.layers import extend_level, grow_levels, learn_layers, limit_pivots, read_level
from undrift.method.problem import check_problem
from undrift.method.settings import AnchorSettings, LayerSettings


@pytest.mark.parametrize("form", [StoredBlocks, StreamedBlocks])
@pytest.mark.parametrize("numbers", [[], [0], [6, 7], [3, 4, 5], [0, 2, 7, 13, 14, 22], list(range(23))])
def test_rows_and_moments_of_one_pass(rng, form, numbers):
    X, out = rng.normal(size=(23, 5)), np.full((40, 5), np.nan)
    places = 1 + np.arange(len(numbers)) * (1 if len(numbers) > 10 else 3)
    blocks = [X[start : start + 7] for start in range(0, 23, 7)]
    found = take_rows(form(blocks), np.array(numbers, dtype=int), out, places)
    assert_array_equal(out[places], X[numbers])
    assert np.isnan(np.delete(out, places, axis=0)).all()
    assert found.n == 23
    assert_allclose(found.mean, X.mean(axis=0), rtol=1e-12)
    assert_allclose(found.energy, (X**2).sum(axis=0), rtol=1e-12)


def draw(X, y, X_target, settings=None, seed=0, **options):
    problem = check_problem(BaseEstimator(), X, y, X_target, dtype="float64", **options)
    return problem, draw_anchors(problem, settings or AnchorSettings(), seed)


def test_anchors_are_the_labelled_rows_and_the_target_rows(counts):
    y = np.where(np.arange(60) % 5, np.arange(60) % 2, np.nan)
    weight = np.linspace(0.5, 2, 60)
    _, anchors = draw(counts, y, {"a": counts[:20], "b": counts[30:]}, sample_weight=weight)
    has_label = ~np.isnan(y)
    assert anchors.n_labelled == 48
    assert_array_equal(anchors.X[:48], counts[has_label])
    assert_array_equal(anchors.X[48:], np.vstack([counts[:20], counts[30:]]))
    assert_array_equal(anchors.domain, np.repeat([0, 1, 2], [48, 20, 30]))
    assert_array_equal(anchors.position[48:], [*range(20), *range(30)])
    assert_array_equal(anchors.given_weight, weight[has_label])
    per_class = np.bincount(y[has_label].astype(int), anchors.weight)
    assert_allclose(per_class, weight[has_label].sum() / 2)
    assert (anchors.target_codes == -1).all()


def test_small_targets_are_anchors_whole_and_the_others_share_the_rest(counts):
    targets = {"a": counts[:50], "b": counts[:5], "c": counts[:40]}
    y, settings = np.arange(60) % 2, AnchorSettings(targets=65)
    _, anchors = draw(counts, y, targets, settings)
    assert_array_equal(np.bincount(anchors.domain), [60, 30, 5, 30])
    for k in (1, 3):
        assert (np.diff(anchors.position[anchors.domain == k]) > 0).all()
    _, anchors = draw(counts, y, targets, replace(settings, least=30))  # of each of three targets: 90 in all
    assert_array_equal(np.bincount(anchors.domain), [60, 45, 5, 40])
    with pytest.raises(ValueError, match="3 targets are too many to adapt to one by one: join small ones"):
        draw(counts, y, targets, AnchorSettings(targets=2, labelled=2))


def test_target_rows_with_a_label_are_always_anchors(counts):
    y_target = [None] * 59 + [1]
    _, anchors = draw(counts, np.arange(60) % 2, counts + 1, AnchorSettings(targets=20), y_target=y_target)
    assert 59 in anchors.position[60:]
    assert anchors.target_codes[list(anchors.position[60:]).index(59)] == 1
    assert (anchors.target_codes >= 0).sum() == 1


def test_of_too_many_labelled_rows_a_sample_is_anchors(counts):
    y, settings = np.arange(60) % 2, AnchorSettings(labelled=12)
    _, anchors = draw(counts, y, counts[:20], settings)
    assert anchors.n_labelled == 12
    assert_array_equal(anchors.X[:12], counts[anchors.labelled])
    assert_array_equal(anchors.codes[:12], y[anchors.labelled])
    _, others = draw(counts, y, counts[:20], settings, seed=1)
    assert not np.array_equal(others.labelled, anchors.labelled)
    _, more = draw(counts, y, counts[:30], settings)  # whatever the target
    assert_array_equal(more.labelled, anchors.labelled)


# -- inner products --


def make_rows(rng, n_classes=2, n_sources=1):
    y = np.arange(30) % n_classes
    words = rng.gamma(0.5, size=(4, 6))  # that occur together: layers do not come down to one point
    X, Z = (rng.poisson(2 * rng.gamma(0.6, size=(n, 4)) @ words).astype(float) for n in (30, 20))
    X[np.arange(30), y] += 1
    return X, y, {"a": Z[:12], "b": Z[12:]}, np.arange(30) // 2 % n_sources


def grow(form, X, y, targets, source, noises=(0.3,), depths=(1, 2), place=None, **options):
    targets = {name: form(Z) for name, Z in targets.items()}
    problem, anchors = draw(form(X), y, targets, sample_domain=source)
    place = place or Place()
    settings = LayerSettings(n_layers=max(depths), n_pivots=None)
    learning = learn_layers(problem, settings, place, 0, noises)
    levels = list(grow_levels(problem, anchors, learning, depths, place, keeps_hidden=True, **options))
    return anchors, levels


def gram_by_hand(anchors, X, y, targets, source, noise, depth):
    """Concatenated layers of anchors and centres, then their inner products."""
    order = np.argsort(source, kind="stable")
    X, y, source = X[order], y[order], source[order]
    n_sources = source.max() + 1
    rows = np.vstack([X, *targets.values()])
    sizes = [len(Z) for Z in targets.values()]
    domain = np.concatenate([source, np.repeat(n_sources + np.arange(len(sizes)), sizes)])
    assert_array_equal(domain, anchors.domain)
    pieces, weights = [], np.bincount(source) / len(source)
    for H in [rows, *(h for _, h in algorithm_2(rows, noise, depth))]:
        means = np.array([H[domain == k].mean(axis=0) for k in range(domain.max() + 1)])
        size = np.mean(((H - means[domain]) ** 2).sum(axis=1))
        centres = means.copy()
        for k in range(n_sources):
            of_classes = [H[:30][(source == k) & (y == label)].mean(axis=0) for label in np.unique(y)]
            centres[k] = np.mean(of_classes, axis=0)
        origin = weights @ centres[:n_sources]
        pieces.append(np.vstack([H - centres[domain], centres - origin]) / np.sqrt(size))
    F = np.hstack(pieces)
    return F @ F.T


@pytest.mark.parametrize("form", [np.array, sp.csr_array])
@pytest.mark.parametrize(("n_classes", "n_sources"), [(2, 1), (3, 2)])
def test_inner_products_are_those_of_concatenated_layers(rng, form, n_classes, n_sources):
    given = make_rows(rng, n_classes, n_sources)
    anchors, levels = grow(form, *given, noises=(0.1, 0.2), depths=(1, 3))
    seen = [(level.noise, level.depth) for level in levels if level is not None]
    assert [level is None for level in levels] == [False, True, False] * 2
    assert seen == [(0.1, 1), (0.1, 3), (0.2, 1), (0.2, 3)]
    for level in filter(None, levels):
        expected = gram_by_hand(anchors, *given, level.noise, level.depth)
        assert_allclose(level.gram.products, expected, rtol=1e-7, atol=1e-9)
        assert level.gram.n_labelled == 30
        assert level.gram.scale == pytest.approx(np.diagonal(expected)[:30].mean())
        again = read_level(anchors, level.stack, level.noise, level.form, Place())
        assert_allclose(again.gram.products, expected, rtol=1e-7, atol=1e-9)
        assert (again.depth, again.noise, again.hidden) == (level.depth, level.noise, None)
        rows = np.vstack([given[0][np.argsort(given[3], kind="stable")], *given[2].values()])
        centres = level.stack.means[1:]
        for layer, H, means in zip(level.stack.layers, level.hidden, centres, strict=True):
            rows = np.tanh(rows @ layer.coef + layer.intercept)
            assert_allclose(np.vstack(H), rows - means[anchors.domain], rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("form", [np.array, sp.csr_array])
@pytest.mark.parametrize("keeps_hidden", [True, False])
def test_anchors_are_added_to_a_level_without_reading_the_others(rng, form, keeps_hidden):
    """A level that is extended twice is one that is read at once; a kept anchor passes no layer."""
    anchors, levels = grow(form, *make_rows(rng, 3, 2))
    layers, read = watch_layers(levels[-1].stack.layers)
    stack = replace(levels[-1].stack, layers=tuple(layers))
    parts = [anchors.X[:40], anchors.X[:44], anchors.X]
    some = [
        replace(anchors, X=X, domain=anchors.domain[: X.shape[0]], codes=anchors.codes[: X.shape[0]])
        for X in parts
    ]
    level = read_level(some[0], stack, 0.3, levels[-1].form, Place(), keeps_hidden=keeps_hidden)
    read.clear()
    for longer in some[1:]:
        level = extend_level(level, longer, Place())
    assert_allclose(level.gram.products, levels[-1].gram.products, rtol=1e-7, atol=1e-9)
    assert level.gram.n_targets == levels[-1].gram.n_targets
    assert sorted(read) == ([4, 4, 6, 6] if keeps_hidden else [4, 4, 6, 6, 40, 40, 44, 44])
    if keeps_hidden:
        for (H, _), (expected, _) in zip(
            *(each.read(anchors.X, Place()) for each in (level, levels[-1])), strict=True
        ):
            assert_allclose(*(each.toarray() if sp.issparse(each) else each for each in (H, expected)))


def test_anchors_that_are_not_kept_are_combined_block_by_block(rng, set_limits):
    anchors, levels = grow(sp.csr_array, *make_rows(rng, 3, 2))
    dual = rng.normal(size=(len(anchors.domain), 2))
    expected = levels[-1].combine(anchors, dual, Place())
    set_limits(BLOCK_ENTRIES=9 * 8)
    found = replace(levels[-1], hidden=None).combine(anchors, dual, Place())
    for each, same in zip(found, expected, strict=True):
        assert_allclose(each, same, rtol=1e-6, atol=1e-9)


def test_inner_products_on_torch_are_those_on_the_host(rng, device):
    pytest.importorskip("torch")
    given = make_rows(rng, 3, 2)
    place = choose_place([given[0]], device)
    expected = grow(np.array, *given)[1][-1]
    with place.set_precision():
        anchors, levels = grow(np.array, *given, place=place)
    products = np.asarray(levels[-1].gram.products.cpu())
    assert_allclose(products, expected.gram.products, rtol=1e-6, atol=1e-8)
    again = read_level(anchors, levels[-1].stack, 0.3, levels[-1].form, place)
    assert_allclose(np.asarray(again.gram.products.cpu()), products, rtol=1e-6, atol=1e-8)
    some = replace(anchors, X=anchors.X[:40], domain=anchors.domain[:40], codes=anchors.codes[:40])
    short = read_level(some, levels[-1].stack, 0.3, levels[-1].form, place, keeps_hidden=True)
    longer = extend_level(short, anchors, place)
    assert_allclose(np.asarray(longer.gram.products.cpu()), products, rtol=1e-6, atol=1e-8)


def test_rows_of_one_point_have_no_inner_products(rng):
    """A domain without any spread divides by 1 instead of 0."""
    X = np.ones((10, 3))
    _, levels = grow(np.array, X, np.arange(10) % 2, {"a": X[:4]}, np.zeros(10, dtype=int), depths=(1,))
    assert_allclose(levels[0].gram.products, 0, atol=1e-12)
    assert levels[0].gram.scale in (1.0, pytest.approx(0, abs=1e-12))


def test_centres_are_scored_over_all_layers(rng):
    centres, weights = [rng.normal(size=(3, d)) for d in (4, 2)], [rng.normal(size=(d, 2)) for d in (4, 2)]
    expected = np.hstack(centres) @ np.vstack(weights)
    assert_allclose(score_centres(centres, weights), expected)


# -- pivots --


@pytest.mark.parametrize(
    ("most", "d", "n_rows", "memory", "expected"),
    [
        (5000, 20_000, 8000, 12e9, 5000),
        (5000, 20_000, 1000, 12e9, 4000),  # no more than four a row
        (5000, 20_000, 100, 12e9, 2500),  # but not very few
        (2500, 20_000, 8000, 12e9, 2500),
        (2500, 20_000, 100, 12e9, 2500),  # nor fewer by name
        (8000, 20_000, 100, 12e9, 2500),
        (5000, 300, 8000, 12e9, 5000),  # which is every feature
    ],
)
def test_pivots_are_limited_by_rows(most, d, n_rows, memory, expected):
    assert limit_pivots(LayerSettings(), most, d, n_rows, memory) == expected


@pytest.mark.parametrize("d", [5000, 20_000, 100_000])
def test_pivots_are_limited_by_memory(d):
    """Layers and systems take half of it."""
    p = limit_pivots(LayerSettings(), 10**6, d, 10**6, 2e9)
    numbers = [d * p, *[p * p] * 4, *[p * p] * 4]  # layers, and what solving the largest system holds
    assert 0.99e9 < 4 * sum(numbers) <= 1e9


class FewPivots(MSDAClassifier):
    """Reconstructs eight features by default."""

    def make_settings(self):
        settings = super().make_settings()
        return replace(settings, layers=replace(settings.layers, most_pivots=8))


@pytest.mark.parametrize(("n_pivots", "most"), [("auto", 8), ("few", 4), ("many", 13)])
def test_pivots_chosen_by_name(n_pivots, most):
    """As with their number; with no more features than that, every feature is reconstructed."""
    rng = np.random.default_rng(0)
    X, y, Z = rng.poisson(0.4, (40, 16)), np.arange(40) % 2, rng.poisson(0.4, (30, 16))
    options = {"n_layers": 2, "random_state": 0}
    chosen = FewPivots(n_pivots=n_pivots, **options).fit(X, y, Z)
    given = MSDAClassifier(n_pivots=most, **options).fit(X, y, Z)
    assert chosen.representation_.n_pivots == most
    assert_array_equal(chosen.decision_function(Z), given.decision_function(Z))
    whole = FewPivots(n_pivots=n_pivots, **options).fit(X[:, :most], y, Z[:, :most])
    assert whole.representation_.n_pivots is None
    with pytest.raises(ValueError, match="n_pivots='some' is not known"):
        MSDAClassifier(n_pivots="some").fit(X, y, Z)
