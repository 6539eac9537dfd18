"""`undrift distill`, `adapt --distilled`, and what takes a distilled model."""

import json

import pytest

from tests.helpers.commands import ADAPT, change_options, check_refused
from tests.helpers.review_files import read_csv, write_csv
from undrift import load_model

DISTILL = ["distill", "--target", "kitchen.csv", "--text", "review", "--out", "small.safetensors"]
PREDICT = ["predict", "--model", "small.safetensors", "--input", "kitchen.csv", "--text", "review"]


@pytest.fixture
def small(undrift, folder, model):
    """The summary of a distillation, whose model is in `folder`."""
    status, out, err = undrift(*DISTILL, "--model", model, "--target-label", "truth", "--json")
    assert (status, err) == (0, "")
    return json.loads(out)


def test_the_summary_says_how_faithful_it_is(small, folder):
    assert small["rows"] == 100
    assert small["bytes"] == (folder / "small.safetensors").stat().st_size
    assert small["fidelity"]["n_held_out"] == 10
    assert small["fidelity"]["n_scored"] > 0
    assert load_model("small.safetensors").fidelity_ == small["fidelity"]


def test_explain_takes_it(small, undrift, succeed, folder):
    out = succeed("explain", "--model", "small.safetensors", "the", "--document", "the best")
    assert "the: in " in out
    assert "suggested by" not in out
    arguments = ["explain", "--model", "small.safetensors", "--document", "the best", "--json"]
    (entry,) = json.loads(undrift(*arguments)[1])["documents"]
    model = load_model("small.safetensors")
    total = sum(term["effect"] for term in entry["terms"])
    scores = model.decision_function(["the best", ""])
    assert total == pytest.approx((scores[0] - scores[1]) * (1 if scores[0] > 0 else -1), rel=1e-5)
    assert {term["n_labelled"] for term in entry["terms"]} - {None}
    assert undrift("explain", "--model", "small.safetensors")[0] == 0


def test_adapt_distills_all_targets(undrift, succeed, folder, model):
    arguments = [*ADAPT, "--target", "camping.csv", "--distilled", "small.safetensors"]
    assert json.loads(succeed(*arguments, "--json"))["distilled"]["fidelity"]["n_held_out"] == 20
    distilled = load_model("small.safetensors")
    assert distilled.classifier_.target_names_ == ["kitchen.csv", "camping.csv"]
    status, _, err = undrift(*PREDICT, "--out", "out.csv")
    assert status == 2
    assert "choose one with --domain: kitchen.csv, camping.csv" in err
    assert undrift(*PREDICT, "--out", "out.csv", "--domain", "camping.csv")[::2] == (0, "")
    texts = [row["review"] for row in read_csv("out.csv")]
    predicted = [row["prediction"] for row in read_csv("out.csv")]
    assert predicted == distilled.predict(texts, target="camping.csv").tolist()
    status, out, _ = undrift(*arguments, "-v")
    assert "Distilled model: small.safetensors, " in out
    assert "of 20 held-out rows" in out


def test_a_model_of_several_targets_is_distilled_by_their_names(undrift, folder, model):
    both = ["--target", "camping.csv", "--model", "both.safetensors"]
    assert undrift(*ADAPT, *both)[0] == 0
    assert undrift(*DISTILL, *both)[0] == 0
    assert load_model("small.safetensors").classifier_.domains_ == ["kitchen.csv", "camping.csv"]
    (folder / "new.csv").write_text((folder / "camping.csv").read_text())
    renamed = ["distill", "--target", "new.csv", "--text", "review", "--out", "small.safetensors"]
    renamed += ["--model", "both.safetensors"]
    said = check_refused(undrift, folder, renamed)
    assert said.startswith("the model has no target domain 'new.csv': its target domains are kitchen.csv, ")
    assert undrift(*renamed, "--domain", "camping.csv")[0] == 0
    assert load_model("small.safetensors").classifier_.domains_ == ["camping.csv"]
    said = check_refused(undrift, folder, [*renamed, "--domain", "camping.csv", "--domain", "kitchen.csv"])
    assert said.startswith("--domain is given 2 times for 1 targets")


def test_two_files_of_one_target_are_both_described(undrift, folder, model):
    named = ["--target", "camping.csv", "--domain", "kitchen.csv", "--domain", "kitchen.csv"]
    assert undrift(*DISTILL, *named, "--model", model)[0] == 0
    references = load_model("small.safetensors").facts_["references"]
    n_rows = [len(read_csv(f"{name}.csv")) for name in ("kitchen", "camping")]
    assert references["kitchen.csv"]["n"] == sum(n_rows)


def test_what_cannot_be_done_is_one_line(small, undrift, folder, model):
    again = [*DISTILL[:-1], "again.safetensors", "--model", "small.safetensors"]
    assert "holds a distilled model" in check_refused(undrift, folder, again)
    replaced = [*DISTILL[:-1], "kitchen.csv", "--model", model]
    assert "would replace another file" in check_refused(undrift, folder, replaced)
    nowhere = [*DISTILL[:-1], "nowhere/p", "--model", model]
    assert "nowhere/p cannot be written" in check_refused(undrift, folder, nowhere)


def test_predictions_have_the_probabilities_of_python(small, succeed, folder):
    succeed(*PREDICT, "--out", "out.csv", "--as-fitted", "--probabilities")
    rows = read_csv("out.csv")
    written = [float(row["probability"]) for row in rows]
    expected = load_model("small.safetensors").predict_proba([row["review"] for row in rows])
    assert max(written) <= 1
    assert written == pytest.approx(expected.max(axis=1).tolist(), abs=1e-4)
    assert [float(row["p_negative"]) for row in rows] == pytest.approx(expected[:, 0].tolist(), abs=1e-4)


def test_new_rows_can_be_checked(small, undrift, succeed, folder):
    same = json.loads(succeed(*PREDICT, "--out", "out.csv", "--fail-on-drift", "--json"))
    assert not same["check"]["drifted"]
    write_csv(folder / "other.csv", {"review": ["ganz andere Wörter", "als drüben"] * 30})
    other = change_options(PREDICT, input="other.csv", out="out.csv")
    status, out, _ = undrift(*other, "--fail-on-drift", "--json")
    assert status == 3
    assert json.loads(out)["check"]["drifted"]
