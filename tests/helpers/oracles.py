"""Slow, obvious answers that share no code with the library.

Weights are returned as one matrix of shape (d_in + 1, d_out): the coefficients, then the intercept
as the last row.
"""

from itertools import product

import numpy as np


def weights(layer):
    """The library's answer in the shape of the oracles'."""
    return np.vstack([layer.coef, layer.intercept])


def relative_error(actual, expected):
    """Frobenius norm of the difference over that of `expected`."""
    return np.linalg.norm(actual - expected) / np.linalg.norm(expected)


def with_constant(X):
    return np.hstack([X, np.ones((len(X), 1))])


def every_mask(X, p):
    """Least squares over all 2**d corruptions, each weighted by its probability: exact."""
    p = np.broadcast_to(p, X.shape[1])
    inputs, targets = [], []
    for mask in product([0.0, 1.0], repeat=X.shape[1]):
        weight = np.sqrt(np.prod([1 - q if kept else q for kept, q in zip(mask, p, strict=True)]))
        inputs.append(weight * with_constant(X * mask))
        targets.append(weight * X)
    return np.linalg.lstsq(np.vstack(inputs), np.vstack(targets), rcond=None)[0]


def sampled_corruption(X, p, n_copies, rng):
    """Least squares over `n_copies` corrupted copies of every row (eq. 2 with finite m)."""
    clean = np.tile(X, (n_copies, 1))
    corrupted = clean * (rng.random(clean.shape) >= p)
    return np.linalg.lstsq(with_constant(corrupted), clean, rcond=None)[0]


def moment_weights(X, keep, variance, ridge=0.0, targets=None):
    """``W = E[P] E[Q]^-1`` for rows of mean ``keep * x`` and the given variance of each entry.

    The moments are summed row by row, with the constant as a feature that is never corrupted.
    """
    Z, d = X if targets is None else targets, X.shape[1]
    P, Q = np.zeros((Z.shape[1], d + 1)), np.diag([ridge] * d + [0.0])
    for x, v, z in zip(X, variance, Z, strict=True):
        mean = np.append(keep * x, 1.0)
        P += np.outer(z, mean)
        Q += np.outer(mean, mean) + np.diag(np.append(v, 0.0))
    return np.linalg.solve(Q.T, P.T)


def penalised_regressions(X, p, ridge):
    """A ridge regression for every feature, whose penalty grows with the energy of its inputs.

    Blankout is ridge regression: the map V with penalty ``p/(1-p) |x_j|^2`` on feature j (and the
    ridge over ``(1-p)^2``) gives ``W = V / (1-p)``. The constant is not penalised.
    """
    d = X.shape[1]
    penalty = p / (1 - p) * (X**2).sum(axis=0) + ridge / (1 - p) ** 2
    inputs = np.vstack([with_constant(X), np.hstack([np.diag(np.sqrt(penalty)), np.zeros((d, 1))])])
    answer = np.empty((d + 1, d))
    for k in range(d):
        target = np.concatenate([X[:, k], np.zeros(d)])
        answer[:, k] = np.linalg.lstsq(inputs, target, rcond=None)[0]
    answer[:d] /= 1 - p
    return answer


def _expectations(S, p):
    """E[P] and E[Q] of eq. (7), from the scatter of rows whose last feature is the constant."""
    d = len(S)
    q = np.array([1 - p] * (d - 1) + [1.0])
    Q = S * np.outer(q, q)
    Q[np.arange(d), np.arange(d)] = q * np.diag(S)
    return S * q, Q


def listing_weights(S, p, ridge=1e-5):
    """The paper's Algorithm 1 from its scatter, with the ridge off the constant feature."""
    P, Q = _expectations(S, p)
    penalty = ridge * np.eye(len(Q))
    penalty[-1, -1] = 0.0
    return np.linalg.solve((Q + penalty).T, P[:-1].T)  # W = P / Q, and W transposed is ours


def algorithm_1(X, p, ridge=1e-5):
    """mDA: weights and hidden rows. The paper's columns are our rows, so its X is ``X.T`` here."""
    samples = np.vstack([X.T, np.ones(len(X))])
    W = listing_weights(samples @ samples.T, p, ridge).T
    return W.T, np.tanh(W @ samples).T


def algorithm_2(X, p, n_layers, ridge=1e-5):
    """mSDA: weights and hidden rows of every layer."""
    stack, h = [], X
    for _ in range(n_layers):
        W, h = algorithm_1(h, p, ridge)
        stack.append((W, h))
    return stack


def section_4(X, p, pivots, parts, ridge=1e-5):
    """Eq. (8) for every part and their average, eq. (9): weights of shape (d + 1, r), before squashing."""
    answer = np.zeros((X.shape[1] + 1, len(pivots)))
    for part in parts:
        samples = np.vstack([X[:, part].T, np.ones(len(X))])
        _, Q = _expectations(samples @ samples.T, p)
        q = np.array([1 - p] * len(part) + [1.0])
        P = (X[:, pivots].T @ samples.T) * q
        penalty = ridge * np.eye(len(Q))
        penalty[-1, -1] = 0.0
        W = np.linalg.solve((Q + penalty).T, P.T)
        for row, feature in enumerate(part):
            answer[feature] += W[row] / len(parts)
        answer[-1] += W[-1] / len(parts)
    return answer
