"""Moving the rows of a target: inner products and weights as if the rows themselves had been moved."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from undrift.method.align import choose_move, class_directions, move_rows, undo_moves
from undrift.method.solve import least_squares, signs

N, N_ANCHORS = 30, 52


@pytest.fixture
def rows(rng):
    """Rows of one source and two targets, and their domains."""
    return rng.normal(size=(N_ANCHORS, 8)), np.repeat([0, 1, 2], [N, 12, 10])


@pytest.fixture
def moves(rng):
    """Combinations of the labelled rows for every domain; the source stays where it is."""
    return np.column_stack([np.zeros(N), *rng.normal(size=(2, N))])


def test_inner_products_are_those_of_moved_rows(rows, moves):
    X, domain = rows
    K = X @ X.T
    move_rows(K, moves, domain)
    moved = X + (moves.T @ X[:N])[domain]
    assert_allclose(K, moved @ moved.T, rtol=1e-9, atol=1e-9)
    assert not np.allclose(K, X @ X.T)


def test_weights_on_moved_rows_are_weights_on_the_rows_as_they_were(rng, rows, moves):
    X, domain = rows
    coef = rng.normal(size=(N_ANCHORS, 2))
    moved = X + (moves.T @ X[:N])[domain]
    assert_allclose(X.T @ undo_moves(coef, moves, domain), moved.T @ coef, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_move_changes_scores_by_what_was_asked(rng, n_classes):
    codes = np.arange(N) % n_classes
    X = rng.normal(size=(N, 8)) + 2 * (codes[:, None] == np.arange(8))
    dual = least_squares(X @ X.T, signs(codes, n_classes), 1.0, np.ones(N))
    change = rng.normal(size=dual.intercept.shape)
    change -= (
        change.mean() if n_classes > 2 else 0
    )  # scores of classes against the rest move against each other
    move = choose_move(dual.scores(X @ X.T), codes, n_classes, change)
    w = X.T @ dual.coef
    assert_allclose((move @ X) @ w, change, rtol=1e-6, atol=1e-6)


def test_directions_are_class_means_less_their_mean(rng):
    X, codes = rng.normal(size=(9, 4)), np.array([0, 0, 0, 0, 1, 1, 1, 2, 2])
    means = np.array([X[codes == k].mean(axis=0) for k in range(3)])
    assert_allclose(class_directions(codes, 3).T @ X, means - means.mean(axis=0), rtol=1e-9)
