"""Model files of earlier versions, some with parameters that are gone, load and predict what they did."""

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from undrift import load_model, save_model

FOLDER = Path(__file__).parents[1] / "data" / "earlier_models"
EXPECTED = json.loads((FOLDER / "expected.json").read_text())
X, E = np.array(EXPECTED["rows"]), np.array(EXPECTED["extra"])
SHIFTED = np.hstack([X, np.zeros_like(X)])  # target rows, from the 24th on, are over other columns
SHIFTED[24:] = SHIFTED[24:, ::-1]


def load_as_saved_or_resaved(name, is_resaved, tmp_path):
    model = load_model(FOLDER / f"{name}.safetensors")
    if not is_resaved:
        return model
    save_model(model, tmp_path / "again.safetensors")
    return load_model(tmp_path / "again.safetensors")


@pytest.mark.parametrize("is_resaved", [False, True])
@pytest.mark.parametrize(
    ("name", "rows", "extra"), [("denoised-blocks", X, {"extra": [E]}), ("fell-back", SHIFTED, {})]
)
def test_scores_and_probabilities_are_what_they_were(name, rows, extra, is_resaved, tmp_path):
    model = load_as_saved_or_resaved(name, is_resaved, tmp_path)
    assert_allclose(model.decision_function(rows, **extra), EXPECTED[name]["scores"], rtol=1e-5, atol=1e-6)
    assert_allclose(model.predict_proba(rows, **extra), EXPECTED[name]["probabilities"], rtol=1e-5, atol=1e-6)
    assert {"source_weight", "probability", "denoise_blocks"}.isdisjoint(model.get_params())
    assert model.center == "domains"
    n_targets = sum(number < 0 for number in model.domains_)
    assert n_targets > 0
    assert model.target_shares_ == model.target_shares_interval_ == [None] * n_targets
    assert model.expected_error_ == [None] * n_targets


def test_a_model_without_probabilities_says_so():
    model = load_model(FOLDER / "no-probabilities.safetensors")
    assert_allclose(model.decision_function(X), EXPECTED["no-probabilities"]["scores"], rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError, match="saved by an earlier version without probabilities"):
        model.predict_proba(X)


@pytest.mark.parametrize("name", ["fell-back", "no-probabilities"])
def test_earlier_models_refuse_labels_in_one_line(name):
    model = load_model(FOLDER / f"{name}.safetensors")
    for call in (
        lambda: model.update(X, [0] * len(X)),
        lambda: model.update_target(X),
        lambda: model.ask(X, 2),
    ):
        with pytest.raises(ValueError, match="no update state") as refusal:
            call()
        assert "\n" not in str(refusal.value)
