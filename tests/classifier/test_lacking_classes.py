"""Sources that lack a class, such as a file for each class: centring must not take the label away."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from undrift import MSDAClassifier, MSDARegressor
from undrift.classifier import alignment, weights
from undrift.classifier.alignment import combine_midpoints, group_outputs
from undrift.classifier.search import SearchSpec


def draw(n, seed, n_classes=2, shift=0.0):
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=n)
    X = rng.poisson(0.5, size=(n, 14)).astype(float)
    X[np.arange(n), y] += 2 * rng.random(n) + 1.5
    X[:, 7:9] += shift
    return X, y


def stack(X, source, Z):
    return np.vstack([X, Z]), np.r_[source, np.full(len(Z), -1)]


@pytest.mark.parametrize("counts_alike", [True, False])
@pytest.mark.parametrize("has_complete", [True, False])
def test_a_source_is_centred_where_it_would_be_with_all_classes(has_complete, counts_alike):
    rng = np.random.default_rng(1)
    X, codes, domain = rng.normal(size=(60, 4)), rng.permutation(60) % 3, np.repeat([0, 1, 2], 20)
    codes[domain == 2] = 1
    if not has_complete:
        codes[(domain == 0) & (codes == 0)] = 1
        codes[(domain == 1) & (codes == 2)] = 1
    combinations = combine_midpoints(codes, domain, counts_alike=counts_alike)
    combined = {k: combination @ X for k, combination in combinations.items()}

    def list_means(rows, present=(0, 1, 2)):
        return np.array([X[rows & (codes == code)].mean(axis=0) for code in present])

    every, groups = domain < 9, [domain == 0, domain == 1]
    shares = np.bincount(codes[groups[0] | groups[1]] if has_complete else codes) / (
        40 if has_complete else 60
    )
    shares = np.full(3, 1 / 3) if counts_alike else shares
    means = np.mean([list_means(rows) for rows in groups], axis=0) if has_complete else list_means(every)
    shift = X[domain == 2].mean(axis=0) - means[1]
    assert_allclose(combined[2], shares @ means + shift)
    assert list(combined) == ([2] if has_complete and not counts_alike else [0, 1, 2])
    if has_complete and counts_alike:
        assert_allclose(combined[0], shares @ list_means(groups[0]))
    elif not has_complete:
        shift = shares[1:] / shares[1:].sum() @ (list_means(groups[0], (1, 2)) - means[1:])
        assert_allclose(combined[0], shares @ means + shift)


@pytest.mark.parametrize("counts_alike", [True, False])
def test_work_grows_with_the_number_of_sources_not_its_square(counts_alike, monkeypatch):
    calls, average_classes = [], alignment.average_classes
    monkeypatch.setattr(
        alignment, "average_classes", lambda is_class: calls.append(1) or average_classes(is_class)
    )
    domain, codes = np.repeat(np.arange(40), 4), np.tile([0, 1], 80)
    codes[domain % 2 == 1] = 1
    combine_midpoints(codes, domain, counts_alike=counts_alike)
    assert len(calls) <= 60  # 20 complete sources once for those that lack a class, and every source once


@pytest.mark.parametrize("place", ["cpu", "torch:cpu", "many rows", "dask"])
@pytest.mark.parametrize("center", ["classes", "domains"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_source_for_each_class_is_as_good_as_one_source(center, place, n_classes, monkeypatch):
    (X, y), (Z, z) = draw(240, 1, n_classes), draw(200, 2, n_classes, shift=1.0)
    options = {"n_layers": 2, "center": center, "dtype": "float64", "random_state": 0, "C": 1.0}
    wrap = np.asarray
    if place == "many rows":
        monkeypatch.setattr("undrift.classifier.estimator.fit_readout", weights._fit_primal_readout)
    elif place == "dask":
        wrap = pytest.importorskip("dask.array").from_array
    elif place != "cpu":
        pytest.importorskip("torch")
        options["device"] = place
    scores = []
    for source in (np.zeros(240, dtype=int), y):
        rows, domain = stack(X, source, Z)
        model = MSDAClassifier(**options).fit(wrap(rows), np.r_[y, z], sample_domain=domain)
        scores.append(model.decision_function(Z))
        assert np.mean(model.predict(Z) != z) < 0.2
    if center == "domains":
        assert_allclose(*scores, rtol=1e-6, atol=1e-6)
    else:  # but for constants, which are others for layers of more than two domains
        assert np.corrcoef(scores[0].ravel(), scores[1].ravel())[0, 1] > 0.9999


def test_without_a_target():
    X, y = draw(200, 3)
    models = [
        MSDAClassifier(1, random_state=0, dtype="float64").fit(X, y, sample_domain=source)
        for source in (np.zeros(200, dtype=int), y)
    ]
    scores = [model.decision_function(X, sample_domain=0) for model in models]
    assert_allclose(*scores, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("center", ["classes", "domains"])
def test_one_of_three_sources_lacks_a_class(center):
    """Its shift is removed, its label is not: the rows of its one class come to that class of the others."""
    parts = [draw(120, 1), draw(120, 2, shift=1.0), draw(300, 3, shift=3.0)]
    X, y = (np.concatenate(values) for values in zip(*parts, strict=True))
    source = np.repeat([0, 1, 2], [120, 120, 300])
    kept = (source < 2) | (y == 1)
    Z, z = draw(200, 4, shift=0.5)
    rows, domain = stack(X[kept], source[kept], Z)
    model = MSDAClassifier(1, center=center, random_state=0, dtype="float64")
    model.fit(rows, np.r_[y[kept], z], sample_domain=domain)
    assert np.mean(model.predict(Z) != z) < 0.1
    assert np.mean(model.predict(X[source == 2], sample_domain=2) != y[source == 2]) < 0.1
    scores = [model.decision_function(X[(source == k) & (y == 1)], sample_domain=k).mean() for k in range(3)]
    assert np.ptp(scores) < 0.2


def test_sums_over_rows_give_the_same_where_every_source_lacks_a_class(monkeypatch):
    parts = [draw(90, seed, 3, shift=seed) for seed in range(3)]
    X, y = (np.concatenate(values) for values in zip(*parts, strict=True))
    source, (Z, z) = np.repeat([0, 1, 2], 90), draw(100, 4, 3, shift=0.5)
    kept = y != source
    rows, domain = stack(X[kept], source[kept], Z)
    model = MSDAClassifier(1, random_state=0, dtype="float64")
    expected = model.fit(rows, np.r_[y[kept], z], sample_domain=domain).decision_function(Z)
    monkeypatch.setattr("undrift.classifier.estimator.fit_readout", weights._fit_primal_readout)
    actual = model.fit(rows, np.r_[y[kept], z], sample_domain=domain).decision_function(Z)
    assert_allclose(actual, expected, rtol=1e-6, atol=1e-6)
    assert np.mean(model.predict(Z) != z) < 0.15


def test_high_and_low_ratings_in_a_source_each():
    X, y = draw(240, 1)
    Z, z = draw(200, 2, shift=1.0)
    stars = 1 + 3 * y + np.arange(240) % 2
    predicted = []
    for source in (np.zeros(240, dtype=int), y):
        rows, domain = stack(X, source, Z)
        model = MSDARegressor(2, random_state=0, C=1.0).fit(rows, np.r_[stars, z], sample_domain=domain)
        predicted.append(model.predict(Z))
    assert_allclose(*predicted, rtol=1e-6)
    assert np.corrcoef(predicted[1], z)[0, 1] > 0.6


def test_a_source_for_each_tag():
    X, y = draw(240, 1, 3)
    Z, z = draw(200, 2, 3, shift=1.0)
    tags, scores = np.c_[np.eye(3)[y], np.arange(240) % 2].astype(int), []
    for source in (np.zeros(240, dtype=int), y):
        rows, domain = stack(X, source, Z)
        model = MSDAClassifier(2, random_state=0, dtype="float64")
        model.fit(rows, np.r_[tags, np.zeros((200, 4), dtype=int)], sample_domain=domain)
        scores.append(model.decision_function(Z))
    assert_allclose(scores[1], scores[0], rtol=1e-6, atol=1e-6)
    assert np.mean(scores[1][:, :3].argmax(axis=1) == z) > 0.8


@pytest.mark.parametrize("center", ["classes", "domains"])
@pytest.mark.parametrize("n_complete", [1, 2])
def test_a_tag_in_every_row_of_one_source_leaves_the_means_of_the_others(n_complete, center, monkeypatch):
    X, y = draw(300, 1)
    Z, _ = draw(100, 2, shift=1.0)
    source = np.minimum(np.repeat([0, 1, 2], 100), n_complete)
    y[source == 0] |= np.arange(100) % 3 > 0  # more frequent than in the second source
    y[source == n_complete] = 1
    tags, seen = np.c_[y, np.arange(300) % 2], []
    find_means = SearchSpec.find_means

    def record(spec, totals, anchors):
        means = find_means(spec, totals, anchors)
        seen.append((np.array(anchors[:300]), means))  # a copy: anchors are centred in place
        return means

    monkeypatch.setattr(SearchSpec, "find_means", record)
    rows, domain = stack(X, source, Z)
    model = MSDAClassifier(2, center=center, random_state=0, dtype="float64")
    model.fit(rows, np.r_[tags, np.zeros((100, 2), dtype=int)], sample_domain=domain)
    assert len(seen) == 3  # the input and two layers
    for labelled, means in seen:
        for k in range(n_complete):
            assert_allclose(means[k], labelled[source == k].mean(axis=0), rtol=1e-9, atol=1e-12)
        assert np.abs(means[n_complete] - labelled[source == n_complete].mean(axis=0)).max() > 0.01


def test_only_outputs_that_a_source_lacks_are_counted():
    domain = np.repeat([0, 1], 4)
    numbers = np.array([1, 2, 4, 5, 1, 2, 4, 5.0])[:, None]
    assert group_outputs(numbers, domain).max() == 0
    assert group_outputs(np.sort(numbers, axis=0), domain).tolist() == [0] * 4 + [1] * 4
    assert group_outputs(numbers[[2, 3, 2, 3, 0, 1, 2, 3]], domain).tolist() == [1] * 4 + [0, 0, 1, 1]
    tags = np.where([[1, 0, 1]] * 4 + [[0, 1, 0], [1, 0, 0], [0, 0, 0], [0, 0, 0]], 1, -1)
    assert len(np.unique(group_outputs(tags, domain))) == 3  # not the second: it is in no row of one source
