import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.utils import estimator_checks

from undrift import MDA, MSDAClassifier, TermVectorizer, TextAdapter, load_model, save_model
from undrift.persist import ModelFileError
from undrift.text.adapter import load_adapter, text_classifier, text_regressor

BOOKS = ["A gripping page-turner", "gripping and moving", "dull and boring", "boring prose", "so-so"]
OPINIONS = ["good", "good", "bad", "bad", None]
KITCHEN = ["gripping handle, sturdy", "sturdy pan", "boring and flimsy", "flimsy lid", ""]
GARDEN = ["sturdy rake", "flimsy hose", "gripping gloves"]


def small(**options):
    return TextAdapter(TermVectorizer(60), MSDAClassifier(2, 0.5, dtype="float64", **options))


@pytest.mark.parametrize(
    "check",
    [
        estimator_checks.check_no_attributes_set_in_init,
        estimator_checks.check_get_params_invariance,
        estimator_checks.check_set_params,
        estimator_checks.check_parameters_default_constructible,
        estimator_checks.check_estimator_repr,
    ],
)
def test_keeps_the_part_of_scikit_learns_contract_that_texts_can(check):
    check("TextAdapter", TextAdapter())


def test_is_a_vectorizer_and_a_classifier():
    adapter = small().fit(BOOKS, OPINIONS, KITCHEN)
    vectorizer = TermVectorizer(60).fit(BOOKS + KITCHEN)
    rows = [vectorizer.transform(own) for own in (BOOKS, KITCHEN)]
    classifier = MSDAClassifier(2, 0.5, dtype="float64").fit(rows[0], OPINIONS, rows[1])
    assert adapter.vectorizer_.terms_ == vectorizer.terms_
    assert_allclose(adapter.decision_function(KITCHEN), classifier.decision_function(rows[1]))
    assert_array_equal(adapter.predict(KITCHEN), classifier.predict(rows[1]))
    assert_array_equal(adapter.classes_, ["bad", "good"])


def test_words_of_the_target_alone_are_understood():
    adapter = small().fit(BOOKS, OPINIONS, KITCHEN)
    assert adapter.predict(["a sturdy pot", "flimsy!"]).tolist() == ["good", "bad"]
    assert adapter.score(["sturdy", "flimsy"], ["good", "bad"]) == 1


def test_default_rows_are_tfidf_of_length_5():
    adapter = TextAdapter().fit(BOOKS, OPINIONS, KITCHEN)
    lengths = np.sqrt(adapter.vectorizer_.transform(KITCHEN).power(2).sum(axis=1))
    assert_allclose(lengths, [5, 5, 5, 5, 0], rtol=1e-6)
    assert adapter.classifier_.get_params() == text_classifier().get_params()


def test_several_targets_and_the_stacked_form():
    plain = small(center="domains").fit(BOOKS, OPINIONS, [KITCHEN, GARDEN])
    domain = np.repeat([0, -1, -2], [5, 5, 3])
    stacked = small(center="domains").fit(
        BOOKS + KITCHEN + GARDEN, OPINIONS + ["good"] * 8, sample_domain=domain
    )
    assert plain.classifier_.domains_ == stacked.classifier_.domains_ == [0, -1, -2]
    for options in ({}, {"sample_domain": -2}, {"recenter": True}):
        assert_allclose(
            plain.decision_function(GARDEN, **options), stacked.decision_function(GARDEN, **options)
        )
        assert_array_equal(plain.predict(GARDEN, **options), stacked.predict(GARDEN, **options))
    assert not np.allclose(plain.decision_function(GARDEN), plain.decision_function(GARDEN, sample_domain=-2))


def test_documents_may_come_from_generators():
    expected = small().fit(BOOKS, OPINIONS, [KITCHEN, GARDEN]).decision_function(GARDEN)
    adapter = small().fit(iter(BOOKS), OPINIONS, iter([iter(KITCHEN), iter(GARDEN)]))
    assert_allclose(adapter.decision_function(iter(GARDEN)), expected)


def test_in_two_halves():
    whole = small().fit(BOOKS, OPINIONS, KITCHEN)
    halves = small().fit_vocabulary(BOOKS + KITCHEN)
    rows = [halves.vectorizer_.transform(own) for own in (BOOKS, KITCHEN)]
    halves.fit_rows(rows[0], OPINIONS, rows[1])
    assert_array_equal(halves.decision_function(KITCHEN), whole.decision_function(KITCHEN))


def test_probabilities():
    books, opinions = BOOKS[:4] * 3, OPINIONS[:4] * 3
    adapter = small(random_state=0).fit(books, opinions, KITCHEN)
    assert_array_equal(adapter.predict_proba(KITCHEN).argmax(axis=1), adapter.decision_function(KITCHEN) > 0)


@pytest.mark.parametrize("adapter", [TextAdapter(), small()])
def test_saved_and_loaded_with_its_vocabulary(tmp_path, adapter):
    adapter.fit(BOOKS, OPINIONS, KITCHEN)
    path = tmp_path / "model.safetensors"
    save_model(adapter, path)
    for loaded in (load_model(path), load_adapter(path)):
        assert isinstance(loaded, TextAdapter)
        assert loaded.vectorizer_.terms_ == adapter.vectorizer_.terms_
        assert_array_equal(loaded.decision_function(KITCHEN), adapter.decision_function(KITCHEN))
        again = clone(loaded).fit(BOOKS, OPINIONS, KITCHEN)  # its settings came along
        assert_array_equal(again.decision_function(KITCHEN), adapter.decision_function(KITCHEN))


def test_other_models_are_no_adapters(tmp_path):
    save_model(MDA().fit(np.eye(3)), tmp_path / "model.safetensors")
    with pytest.raises(ModelFileError, match="holds a MDA, not a text model saved by `undrift adapt`"):
        load_adapter(tmp_path / "model.safetensors")


def test_settings_are_left_alone():
    adapter = small()
    before = str(adapter.get_params())
    adapter.fit(BOOKS, OPINIONS, KITCHEN)
    assert str(adapter.get_params()) == before
    assert not hasattr(adapter.vectorizer, "terms_")
    assert not hasattr(adapter.classifier, "classes_")


def test_sample_domain_is_routed():
    domain = np.repeat([0, -1], [5, 5])
    with config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(small())
        pipeline.fit(BOOKS + KITCHEN, OPINIONS + [None] * 5, sample_domain=domain)
        own = pipeline.predict(KITCHEN, sample_domain=np.full(5, -1))
    assert_array_equal(own, small().fit(BOOKS, OPINIONS, KITCHEN).predict(KITCHEN, sample_domain=-1))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("one string", ["a", "b"]), "documents must be an iterable of strings; got one str"),
        ((BOOKS, OPINIONS, "one string"), "target must be a sequence of documents"),
        ((BOOKS, OPINIONS, ["fine", None]), "document 1 .* is missing"),
        ((BOOKS, OPINIONS[:2]), "inconsistent numbers of samples"),
        ((["", " "], ["a", "b"]), "no words in the 2 documents"),
        ((BOOKS, ["good"] * 5), "only 1 class"),
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises(ValueError, match=message):
        small().fit(*arguments)


def test_nothing_to_predict():
    with pytest.raises(ValueError, match="at least one row"):
        small().fit(BOOKS, OPINIONS, KITCHEN).predict([])


def test_target_labels_are_learnt_asked_for_and_updated():
    labels = ["good", None, None, "bad", None]
    adapter = small(center="domains").fit(BOOKS, OPINIONS, KITCHEN, y_target=labels)
    rows = [adapter.vectorizer_.transform(documents) for documents in (BOOKS, KITCHEN)]
    classifier = MSDAClassifier(2, 0.5, dtype="float64", center="domains")
    classifier.fit(rows[0], OPINIONS, rows[1], y_target=labels)
    assert_allclose(adapter.decision_function(KITCHEN), classifier.decision_function(rows[1]))
    assert sorted(adapter.ask(KITCHEN, 3)) == [1, 2, 4]  # those without a label
    adapter.update(iter(KITCHEN[1:2]), ["good"])
    classifier.update(rows[1][1:2], ["good"])
    assert_allclose(adapter.decision_function(KITCHEN), classifier.decision_function(rows[1]))
    several = small().fit(BOOKS, OPINIONS, [KITCHEN, GARDEN], y_target=[labels, None])
    assert several.update(GARDEN[:1], ["good"], sample_domain=-2).predict(GARDEN).shape == (3,)


def test_an_adapter_of_ratings_is_scored_as_a_regressor_and_not_updated():
    adapter = TextAdapter(classifier=text_regressor(n_layers=1, self_training=False))
    adapter.fit(BOOKS, [5, 4, 1, 2, None], KITCHEN)
    X = adapter.vectorizer_.transform(KITCHEN)
    y = np.arange(len(KITCHEN)) % 5.0
    assert adapter.score(KITCHEN, y) == adapter.classifier_.score(X, y)
    for act in (adapter.update, adapter.ask):
        with pytest.raises(ValueError, match="only models of classes can be updated"):
            act(KITCHEN, 3)
    with pytest.raises(ValueError, match="only models of classes can be updated"):
        adapter.update_target(KITCHEN)
