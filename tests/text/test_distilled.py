"""Distilled models: ridge regression of the adapter's scores, as a model file and as a pipeline."""

import pickle
import subprocess
import sys
import textwrap
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from scipy.special import expit, softmax
from sklearn.feature_extraction.text import TfidfVectorizer

from tests.helpers.review_files import make_review_texts
from undrift import DistilledText, MSDAClassifier, TextAdapter, load_model, save_model
from undrift.method import Settings
from undrift.text.distill import Taught, distill
from undrift.text.distilled import MOST_BYTES, choose_terms


def make_adapter(**changes):
    settings = {"n_layers": 1, "random_state": 0, "self_training": False, **changes}
    return TextAdapter(150, classifier=MSDAClassifier(**settings))


@pytest.fixture(scope="module")
def reviews():
    return make_review_texts(100, unlabelled_share=0.2, seed=2)


@pytest.fixture(scope="module")
def adapter(reviews):
    (books, labels), (kitchen, _) = reviews["books"], reviews["kitchen"]
    return make_adapter().fit(books, [label or None for label in labels], kitchen)


@pytest.fixture(scope="module")
def distilled(adapter, reviews):
    kitchen, truth = reviews["kitchen"]
    return adapter.distill(kitchen, [label or None for label in truth])


def make_taught(n, n_outputs, n_domains, seed=0):
    """Random rows of length 1, scores that are linear in them but for noise, and probabilities."""
    rng = np.random.default_rng(seed)
    X = np.abs(rng.normal(size=(n, 12)))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    domain = np.arange(n) % n_domains
    scores = 3 * X @ rng.normal(size=(12, n_outputs)) + rng.normal(size=(n_domains, n_outputs))[domain]
    scores += 0.1 * rng.normal(size=scores.shape)
    p = expit(scores[:, 0] / 0.7)
    probabilities = np.column_stack([1 - p, p]) if n_outputs == 1 else softmax(scores / 0.7, axis=1)
    known = {-1 - i: {} for i in range(n_domains)}
    labels = np.array(["a", "b", "c", "d"][: max(2, n_outputs)])
    priors, shares = np.zeros((n_domains, len(labels))), np.full(len(labels), 1 / len(labels))
    return X, Taught(labels, probabilities, known, domain, priors, shares, Settings())


@pytest.mark.parametrize(("n_outputs", "n_domains"), [(1, 1), (1, 2), (3, 2)])
def test_weights_are_those_of_a_ridge_regression_with_an_intercept_for_each_domain(n_outputs, n_domains):
    X, taught = make_taught(300, n_outputs, n_domains)
    model, _, _ = distill(sparse.csr_array(X), taught)
    dummies = np.eye(n_domains)[taught.domain]
    design = np.hstack([X, dummies])
    penalty = model.ridge_ * np.diag([1.0] * 12 + [0.0] * n_domains)
    exact = np.linalg.solve(design.T @ design + penalty, design.T @ taught.scores)
    np.testing.assert_allclose(model.model_.coef[0], exact[:12], atol=2e-3)


@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("is_balanced", [False, True])
def test_scores_alone_give_the_same_probabilities(n_outputs, is_balanced):
    X, taught = make_taught(300, n_outputs, 1)
    if is_balanced:
        taught = replace(taught, prior=np.log(taught.probabilities.mean(axis=0, keepdims=True)))
    model, _, _ = distill(sparse.csr_array(X), taught)
    expected = model.predict_proba(sparse.csr_array(X))
    got = model.scores_to_proba(model.decision_function(sparse.csr_array(X)))
    np.testing.assert_allclose(got.sum(axis=1), 1, rtol=1e-6)
    np.testing.assert_allclose(got, expected, atol=1e-6)


def test_probabilities_and_class_shares_are_carried_over():
    X, taught = make_taught(600, 1, 2)
    model, _, _ = distill(sparse.csr_array(X), taught)
    for i in range(2):
        rows = np.flatnonzero(taught.domain == i)
        got = model.predict_proba(sparse.csr_array(X[rows]), target=-1 - i)
        expected = taught.probabilities[rows]
        np.testing.assert_allclose(got.mean(axis=0), expected.mean(axis=0), atol=1e-4)
        assert np.abs(got - expected).mean() < 0.03
    assert model.model_.temperature[0] == pytest.approx(1.0, rel=0.15)  # of scores in log odds


def test_predictions_of_held_out_rows_do_not_depend_on_what_was_taught_there():
    X, taught = make_taught(300, 1, 1)
    _, held_out, codes = distill(sparse.csr_array(X), taught)
    probabilities = taught.probabilities.copy()
    probabilities[held_out] = [0.001, 0.999]
    _, same, again = distill(sparse.csr_array(X), replace(taught, probabilities=probabilities))
    assert same.tolist() == held_out.tolist()
    assert again.tolist() == codes.tolist()


def test_a_balanced_border_moves_predictions_and_not_probabilities():
    X, taught = make_taught(600, 1, 1)
    shift = 1.2  # in log odds
    balanced = replace(taught, prior=np.array([[0.0, shift]]))
    plain, _, _ = distill(sparse.csr_array(X), taught)
    moved, _, _ = distill(sparse.csr_array(X), balanced)
    rows = sparse.csr_array(X)
    np.testing.assert_allclose(moved.predict_proba(rows), plain.predict_proba(rows), atol=1e-3)
    difference = plain.decision_function(rows) - moved.decision_function(rows)
    np.testing.assert_allclose(difference, shift, atol=1e-5)


def test_it_predicts_what_the_adapter_does_and_measures_its_fidelity(adapter, distilled, reviews):
    kitchen, _ = reviews["kitchen"]
    agreement = np.mean(distilled.predict(kitchen) == adapter.predict(kitchen))
    assert agreement > 0.9
    assert distilled.fidelity_["n_held_out"] == 10
    assert 0 < distilled.fidelity_["n_scored"] <= 10
    assert distilled.fidelity_["agreement"] > 0.5
    np.testing.assert_allclose(
        distilled.predict_proba(kitchen).mean(axis=0), adapter.predict_proba(kitchen).mean(axis=0), atol=1e-3
    )
    assert distilled.target_shares_ == adapter.target_shares_
    kitchen, _ = reviews["kitchen"]
    fidelity = adapter.distill(kitchen, adapter.predict(kitchen).tolist(), random_state=3).fidelity_
    assert fidelity["adapted_error"] == 0
    assert fidelity["error"] == pytest.approx(1 - fidelity["agreement"])
    assert fidelity["n_scored"] == fidelity["n_held_out"]
    without = adapter.distill(kitchen).fidelity_
    assert (without["n_scored"], without["error"], without["adapted_error"]) == (0, None, None)


def test_file_and_pipeline_give_the_same_predictions(distilled, reviews, tmp_path):
    documents = [text for texts, _ in reviews.values() for text in texts] + ["", "Didn’t 5.1 ½ naïve it's"]
    path = tmp_path / "small.safetensors"
    save_model(distilled, path)
    loaded = load_model(path)
    assert isinstance(loaded, DistilledText)
    assert path.stat().st_size < 1e6
    pipeline = pickle.loads(pickle.dumps(distilled.to_sklearn()))
    for method in ("predict", "decision_function", "predict_proba"):
        np.testing.assert_array_equal(
            getattr(loaded, method)(documents), getattr(distilled, method)(documents)
        )
    np.testing.assert_array_equal(pipeline.predict(documents), distilled.predict(documents))
    known = documents[:-2]  # a document without a known term has the class shares, which no pipeline knows
    np.testing.assert_allclose(pipeline.predict_proba(known), distilled.predict_proba(known), atol=1e-12)


def test_a_file_has_room_for_the_terms_of_most_documents():
    """A term takes 52 bytes and 4 for each of its numbers; a file has at most 5 MB."""
    documents = [f"rare{i:04d} often{i % 50:02d}" for i in range(2000)]
    assert MOST_BYTES == 5_000_000
    assert len(choose_terms(documents, {}, 3)[0]) == 2050
    terms, idf = choose_terms(documents, {}, 12_487)  # of 50,000 bytes each
    assert len(terms) == len(idf) == 100
    assert {f"often{i:02d}" for i in range(50)} <= set(terms)


def test_several_classes_and_targets(reviews):
    (books, labels), (kitchen, _), (camping, _) = (reviews[name] for name in ("books", "kitchen", "camping"))
    three = [("ok" if i % 3 == 0 else label) or None for i, label in enumerate(labels)]
    targets = {"kitchen": kitchen, "camping": camping}
    adapter = make_adapter().fit(books, three, targets)
    with pytest.raises(ValueError, match="the model has 2 targets"):
        adapter.distill(kitchen + camping)
    model = adapter.distill(targets)
    assert model.classifier_.coef_[0].shape == (len(model.terms_), 3)
    for name in targets:
        pipeline = model.to_sklearn(name)
        np.testing.assert_array_equal(pipeline.predict(camping), model.predict(camping, target=name))
        np.testing.assert_allclose(
            pipeline.predict_proba(camping), model.predict_proba(camping, target=name), atol=1e-12
        )
    with pytest.raises(ValueError, match="name one of them"):
        model.to_sklearn()
    alone = adapter.distill({"camping": camping})
    assert alone.target_shares_ == adapter.target_shares_[1:]


@pytest.mark.slow
def test_the_pipeline_needs_no_undrift(distilled, reviews, tmp_path):
    kitchen, _ = reviews["kitchen"]
    file = tmp_path / "pipeline.pickle"
    file.write_bytes(pickle.dumps((distilled.to_sklearn(), kitchen)))
    program = """
        import sys, pickle
        sys.modules["undrift"] = None  # importing it fails
        pipeline, documents = pickle.load(open(sys.argv[1], "rb"))
        print(*pipeline.predict(documents))
    """
    command = [sys.executable, "-c", textwrap.dedent(program), str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == distilled.predict(kitchen).tolist()


def test_the_terms_are_those_that_scikit_learn_counts(distilled, reviews):
    kitchen, _ = reviews["kitchen"]
    vectorizer = distilled.vectorizer_
    assert type(vectorizer) is TfidfVectorizer
    reference = TfidfVectorizer(
        ngram_range=(1, 2), sublinear_tf=True, token_pattern=vectorizer.token_pattern
    ).fit(kitchen)
    assert sorted(distilled.terms_) == reference.get_feature_names_out().tolist()
    weights = dict(zip(distilled.terms_, vectorizer.idf_, strict=True))
    np.testing.assert_allclose([weights[term] for term in sorted(weights)], reference.idf_)
    strongest = distilled.terms_[int(np.argmax(distilled.classifier_.coef_[0]))]
    assert distilled.decision_function([strongest])[0] > distilled.decision_function([""])[0]


def test_what_cannot_be_done_is_refused_in_one_line(adapter, distilled, reviews, tmp_path):
    kitchen, _ = reviews["kitchen"]
    save_model(adapter, tmp_path / "full.safetensors")
    loaded = load_model(tmp_path / "full.safetensors")
    refusals = {
        "distill needs documents of the target": loaded.distill,
        "10 at least; got 3": lambda: loaded.distill(kitchen[:3]),
        "labels must be as many as the documents": lambda: loaded.distill(kitchen, ["a"]),
        "no words in the 12 documents": lambda: loaded.distill(["?"] * 12),
        "a distilled model cannot be fitted, updated": lambda: distilled.update(kitchen, kitchen),
        "updated or asked for rows to label": lambda: distilled.ask(kitchen, 3),
    }
    for says, call in refusals.items():
        with pytest.raises(ValueError, match=says) as refusal:
            call()
        assert "\n" not in str(refusal.value)
