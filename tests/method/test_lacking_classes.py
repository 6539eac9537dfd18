"""Sources that lack a class, such as a file for each class: centring must not take the label away."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tests.helpers.exact import ExactClassifier
from undrift.method.anchors import combine_midpoints


def draw(n, seed, n_classes=2, shift=0.0):
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=n)
    X = rng.poisson(0.5, size=(n, 14)).astype(float)
    X[np.arange(n), y] += 2 * rng.random(n) + 1.5
    X[:, 7:9] += shift
    return X, y


def stack(X, source, Z):
    return np.vstack([X, Z]), np.r_[source, np.full(len(Z), -1)]


@pytest.mark.parametrize("has_complete", [True, False])
def test_a_source_is_centred_where_it_would_be_with_all_classes(has_complete):
    rng = np.random.default_rng(1)
    X, codes, domain = rng.normal(size=(60, 4)), rng.permutation(60) % 3, np.repeat([0, 1, 2], 20)
    codes[domain == 2] = 1
    if not has_complete:
        codes[(domain == 0) & (codes == 0)] = 1
        codes[(domain == 1) & (codes == 2)] = 1
    combinations = combine_midpoints(codes, domain)
    combined = {k: combination @ X for k, combination in combinations.items()}

    def list_means(rows, present=(0, 1, 2)):
        return np.array([X[rows & (codes == code)].mean(axis=0) for code in present])

    every, groups = domain < 9, [domain == 0, domain == 1]
    means = np.mean([list_means(rows) for rows in groups], axis=0) if has_complete else list_means(every)
    shift = X[domain == 2].mean(axis=0) - means[1]
    assert_allclose(combined[2], means.mean(axis=0) + shift)
    assert list(combined) == [0, 1, 2]
    if has_complete:
        assert_allclose(combined[0], list_means(groups[0]).mean(axis=0))
    else:
        shift = (list_means(groups[0], (1, 2)) - means[1:]).mean(axis=0)
        assert_allclose(combined[0], means.mean(axis=0) + shift)


@pytest.mark.parametrize("place", ["cpu", "torch:cpu", "dask"])
@pytest.mark.parametrize("center", ["classes", "domains"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_source_for_each_class_is_as_good_as_one_source(center, place, n_classes):
    (X, y), (Z, z) = draw(240, 1, n_classes), draw(200, 2, n_classes, shift=1.0)
    options = {"n_layers": 2, "center": center, "random_state": 0, "C": 1.0}
    wrap = np.asarray
    if place == "dask":
        wrap = pytest.importorskip("dask.array").from_array
    elif place != "cpu":
        pytest.importorskip("torch")
        options["device"] = place
    scores = []
    for source in (np.zeros(240, dtype=int), y):
        rows, domain = stack(X, source, Z)
        model = ExactClassifier(**options).fit(wrap(rows), np.r_[y, z], sample_domain=domain)
        scores.append(model.decision_function(Z))
        assert np.mean(model.predict(Z) != z) < 0.2
    # but for constants and the scale of layers, which are others for more than two domains
    assert np.corrcoef(scores[0].ravel(), scores[1].ravel())[0, 1] > 0.998
