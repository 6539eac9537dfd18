"""SDA against a numpy transcription of one step, and its promises on seeds, precision and devices."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.utils.estimator_checks import parametrize_with_checks

from undrift_lab.baselines import SDA
from undrift_lab.baselines.autoencoder import (
    Autoencoder,
    Recipe,
    draw_importance,
    draw_weights,
    mask,
    sgd_step,
)

RNG = np.random.default_rng(0)
X = RNG.poisson(0.6, (50, 12)).astype(np.float64)


@parametrize_with_checks([SDA(n_hidden=6, n_epochs=2), SDA(2, n_hidden=(6, 4), n_epochs=2, sampling=0.5)])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def loss_of(parameters, noisy, clean, importance, decoder, sparsity):
    """The loss from its definition, with probabilities rather than logits; parameters as one flat vector."""
    d, h = clean.shape[1], 6
    W, b, V, c = np.split(parameters, np.cumsum([d * h, h, d * h]))
    hidden = np.maximum(noisy @ W.reshape(d, h) + b, 0)
    out = hidden @ V.reshape(d, h).T + c
    if decoder == "sigmoid":
        probability = 1 / (1 + np.exp(-out))
        entries = -(clean * np.log(probability) + (1 - clean) * np.log(1 - probability))
    else:
        entries = (np.log(1 + np.exp(out)) - clean) ** 2
    return np.mean(np.sum(importance * entries, axis=1) + sparsity * np.sum(np.abs(hidden), axis=1))


@pytest.mark.parametrize("decoder", ["sigmoid", "softplus"])
@pytest.mark.parametrize("density", [0.15, 0.9], ids=["few-columns", "all-columns"])
@pytest.mark.parametrize("sampled", [False, True])
def test_a_step_descends_the_gradient_of_the_loss(decoder, density, sampled):
    rng, step = np.random.default_rng(5), 1e-6
    clean = (rng.random((3, 12)) < density).astype(float)
    noisy = clean * (rng.random((3, 12)) < 0.7)
    importance = np.where(clean > 0, 1.0, 4.0 * (rng.random((3, 12)) < 0.1)) if sampled else np.ones((3, 12))
    parameters = rng.normal(size=12 * 6 * 2 + 6 + 12) * 0.5
    shapes = [(12, 6), (6,), (12, 6), (12,)]
    parts = np.split(parameters, np.cumsum([72, 6, 72]))
    net = Autoencoder(*(torch.from_numpy(p.copy().reshape(s)) for p, s in zip(parts, shapes, strict=True)))
    recipe = Recipe(6, 0.5, 0.1, 0.02, 1, 5, decoder)
    given = torch.from_numpy(importance) if sampled else None
    loss = sgd_step(net, *map(torch.from_numpy, (noisy, clean)), given, recipe)
    arguments = (noisy, clean, importance, decoder, 0.02)
    assert_allclose(float(loss), loss_of(parameters, *arguments), rtol=1e-9)
    after = [t.numpy().ravel() for t in (net.encoder, net.hidden_bias, net.decoder, net.output_bias)]
    ends = [[loss_of(parameters + s * e, *arguments) for s in (-step, step)] for e in np.eye(len(parameters))]
    gradient = np.diff(ends, axis=1).ravel() / (2 * step)
    assert np.abs(gradient).max() > 0.05
    assert_allclose((parameters - np.concatenate(after)) / 0.1, gradient, atol=1e-7)


def test_sampling_is_unbiased_and_noise_masks_its_share():
    clean = torch.from_numpy((RNG.random((4, 10)) < 0.3).astype(float))
    generator = torch.Generator().manual_seed(0)
    draws = torch.stack([draw_importance(clean, 0.2, generator) for _ in range(20000)])
    assert_array_equal(draws[:, clean > 0].numpy(), 1.0)
    assert set(np.unique(draws[:, clean == 0].numpy())) == {0.0, 5.0}
    deviation = np.sqrt((1 - 0.2) / 0.2 / 20000)
    assert_allclose(draws.mean(dim=0).numpy(), 1.0, atol=5 * deviation)
    kept = mask(torch.ones(400, 500), 0.8, torch.Generator().manual_seed(0)).numpy()
    assert set(np.unique(kept)) == {0.0, 1.0}
    assert_allclose(kept.mean(), 0.2, atol=5 * np.sqrt(0.16 / kept.size))


def test_fit_is_the_steps_it_promises():
    """One epoch without noise, transcribed: same order, same start, plain gradient steps."""
    settings = {"n_hidden": 6, "noise": 0.0, "learning_rate": 0.05, "sparsity": 0.01, "n_epochs": 1}
    fitted = SDA(**settings, batch_size=8, random_state=3).fit(X)
    rng = np.random.RandomState(3)
    net = draw_weights(12, 6, torch.float64, torch.Generator().manual_seed(int(rng.randint(2**31 - 1))))
    W, V = net.encoder.numpy().copy(), net.decoder.numpy().copy()
    assert 0.95 * np.sqrt(6 / 18) < np.abs(W).max() <= np.sqrt(6 / 18)
    b, c, losses = np.zeros(6), np.zeros(12), []
    B = (X > 0).astype(float)[rng.permutation(50)]
    for x in (B[i : i + 8] for i in range(0, 50, 8)):
        h = np.maximum(x @ W + b, 0)
        p = 1 / (1 + np.exp(-(h @ V.T + c)))
        losses.append(-np.sum(x * np.log(p) + (1 - x) * np.log(1 - p)) + 0.01 * h.sum())
        error = (p - x) / len(x)
        back = (error @ V + 0.01 / len(x)) * (h > 0)
        V, c = V - 0.05 * error.T @ h, c - 0.05 * error.sum(axis=0)
        W, b = W - 0.05 * x.T @ back, b - 0.05 * back.sum(axis=0)
    assert_allclose(fitted.layers_[0].coef, W, rtol=1e-9)
    assert_allclose(fitted.layers_[0].intercept, b, rtol=1e-9)
    assert_allclose(fitted.losses_[0], [sum(losses) / 50], rtol=1e-9)
    assert_allclose(fitted.transform(X), np.maximum((X > 0) @ W + b, 0), rtol=1e-9)


def test_losses_fall_and_are_kept_for_each_epoch_of_each_layer():
    rows = np.kron(RNG.integers(0, 2, (50, 3)), np.ones((1, 4)))  # what is masked can be told from the rest
    settings = {"n_epochs": (30, 5), "noise": 0.4, "learning_rate": (0.05, 0.01)}
    fitted = SDA(2, n_hidden=(20, 8), random_state=0, **settings).fit(rows)
    assert [len(curve) for curve in fitted.losses_] == [30, 5]
    assert fitted.losses_[0][-1] < 0.5 * fitted.losses_[0][0]
    assert fitted.losses_[1][-1] < fitted.losses_[1][0]
    assert [layer.coef.shape for layer in fitted.layers_] == [(12, 20), (20, 8)]
    first, second = fitted.hidden(rows)
    by_hand = np.maximum(first @ fitted.layers_[1].coef + fitted.layers_[1].intercept, 0)
    assert_allclose(second, by_hand, rtol=1e-9)
    assert_array_equal(fitted.transform(rows), second)


def test_the_seed_settles_everything_and_the_first_layer_knows_nothing_of_those_above():
    fits = [SDA(n_hidden=5, n_epochs=3, random_state=s).fit(X).transform(X) for s in (0, 0, 1)]
    assert_array_equal(fits[0], fits[1])
    assert not np.allclose(fits[0], fits[2])
    deep = SDA(2, n_hidden=5, n_epochs=3, random_state=0).fit(X)
    assert_array_equal(next(deep.hidden(X)), fits[0])


@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csc_array])
def test_sparse_rows_give_the_same_and_precision_follows_the_input(kind):
    dense, sparse = (SDA(n_hidden=5, n_epochs=2, random_state=0).fit(rows) for rows in (X, kind(X)))
    assert_allclose(sparse.transform(kind(X)), dense.transform(X), rtol=1e-9)
    assert dense.transform(X).dtype == np.float64
    single = SDA(n_hidden=5, n_epochs=2, random_state=0).fit(X.astype(np.float32))
    assert single.transform(X.astype(np.float32)).dtype == single.layers_[0].coef.dtype == np.float32


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"noise": 1.0}, "noise"),
        ({"n_hidden": (5, 0)}, "n_hidden"),
        ({"n_layers": 2, "learning_rate": 1e200}, "SDA diverged in layer"),
        ({"device": "fpga"}, "device='fpga' is not known to the PyTorch"),
    ],
)
def test_bad_input_is_refused_in_one_line(changes, message):
    with np.errstate(all="ignore"), pytest.raises(ValueError, match=message) as caught:
        SDA(**{"n_hidden": 5, "n_epochs": 3, **changes}).fit(X)
    assert "\n" not in str(caught.value)


def test_a_device_trains_as_well_as_the_cpu_and_the_same_each_time(torch_device):
    settings = {"n_hidden": (16, 8), "n_epochs": 20, "learning_rate": 0.05, "random_state": 0}
    rows = X.astype(np.float32)
    cpu, first, again = (SDA(2, **settings, device=d).fit(rows) for d in ("cpu", torch_device, torch_device))
    assert_array_equal(first.transform(rows), again.transform(rows))
    assert_allclose(first.losses_[0][-1], cpu.losses_[0][-1], rtol=0.15)
