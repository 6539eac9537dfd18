"""TextAdapter with the vectorisers of scikit-learn: fitted, saved, explained and reported."""

import json

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer

from tests.helpers.model_files import forge, tree_of
from undrift import MSDAClassifier, TextAdapter, load_model, save_model
from undrift.explain import document_terms
from undrift.persist import ModelFileError

BOOKS = ["A gripping page-turner", "gripping and moving", "dull and boring", "boring prose", "so-so"] * 3
OPINIONS = ["good", "good", "bad", "bad", None] * 3
KITCHEN = ["gripping handle, sturdy", "sturdy pan", "boring and flimsy", "flimsy lid", ""] * 3
NEW = ["a sturdy pot", "flimsy!", "Gripping"]

VECTORIZERS = [
    CountVectorizer(),
    CountVectorizer(binary=True, ngram_range=(1, 2), max_features=9, min_df=2, stop_words=["and"]),
    CountVectorizer(analyzer="char_wb", ngram_range=(2, 3), lowercase=False, dtype=np.float32),
    CountVectorizer(vocabulary=["sturdy", "flimsy", "gripping", "boring"]),
    CountVectorizer(vocabulary={"sturdy": 1, "flimsy": 0, "gripping": 2, "boring": 3}, dtype=float),
    TfidfVectorizer(),
    TfidfVectorizer(
        sublinear_tf=True, norm=None, smooth_idf=False, dtype=np.float32, strip_accents="unicode"
    ),
    TfidfVectorizer(use_idf=False, stop_words="english", token_pattern=r"[a-z]+"),
]


def fit_adapter(vectorizer) -> TextAdapter:
    classifier = MSDAClassifier(1, 0.5, dtype="float64", random_state=0)
    return TextAdapter(vectorizer, classifier).fit(BOOKS, OPINIONS, KITCHEN)


@pytest.mark.parametrize("vectorizer", VECTORIZERS, ids=str)
def test_rows_are_those_of_the_vectorizer_fitted_on_all_documents(vectorizer):
    adapter = fit_adapter(vectorizer)
    alone = clone(vectorizer).fit(BOOKS + KITCHEN)
    assert adapter.terms_ == alone.get_feature_names_out().tolist()
    rows = [alone.transform(documents) for documents in (BOOKS, KITCHEN, NEW)]
    classifier = clone(adapter.classifier).fit(rows[0], OPINIONS, rows[1])
    assert_array_equal(adapter.decision_function(NEW), classifier.decision_function(rows[2]))
    assert adapter.predict(NEW[:2]).tolist() == ["good", "bad"] or vectorizer.analyzer != "word"


@pytest.mark.parametrize("vectorizer", VECTORIZERS, ids=str)
def test_a_loaded_adapter_predicts_and_explains_as_the_saved_one(vectorizer, tmp_path):
    adapter, path = fit_adapter(vectorizer), tmp_path / "model.safetensors"
    save_model(adapter, path)
    loaded = load_model(path)
    assert type(loaded.vectorizer) is type(loaded.vectorizer_) is type(vectorizer)
    assert loaded.terms_ == adapter.terms_
    for saved, again in ((adapter.vectorizer, loaded.vectorizer), (adapter.vectorizer_, loaded.vectorizer_)):
        params = saved.get_params()
        assert {**again.get_params(), "dtype": None} == {**params, "dtype": None}
        assert np.dtype(again.dtype) == np.dtype(saved.dtype)
    rows, expected = loaded.vectorizer_.transform(NEW), adapter.vectorizer_.transform(NEW)
    assert rows.dtype == expected.dtype
    assert_array_equal(rows.toarray(), expected.toarray())
    assert_array_equal(loaded.decision_function(NEW), adapter.decision_function(NEW))
    for model in (adapter, loaded):  # also the parameter can be fitted again
        assert clone(model.vectorizer).fit(BOOKS).transform(NEW).shape[0] == 3
    x = adapter.vectorizer_.transform(["flimsy"])
    assert document_terms(loaded.classifier_, loaded.terms_, x) == document_terms(
        adapter.classifier_, adapter.terms_, x
    )


@pytest.mark.parametrize("name", ["tokenizer", "preprocessor", "analyzer"])
def test_a_function_among_the_parameters_works_but_cannot_be_saved(name, tmp_path):
    functions = {"tokenizer": str.split, "preprocessor": str.lower, "analyzer": str.split}
    pattern = r"\w+" if name == "preprocessor" else None
    adapter = fit_adapter(TfidfVectorizer(**{name: functions[name]}, token_pattern=pattern))
    assert len(adapter.predict(NEW)) == 3
    with pytest.raises(TypeError, match=f"a TfidfVectorizer whose {name} is a function") as caught:
        save_model(adapter, tmp_path / "model.safetensors")
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_without_term_names_nothing_is_explained_by_term(tmp_path):
    from undrift import adaptation_report

    adapter = fit_adapter(HashingVectorizer(n_features=64, alternate_sign=False))
    assert len(adapter.predict(NEW)) == 3
    with pytest.raises(ValueError, match="HashingVectorizer keeps no term names") as caught:
        _ = adapter.terms_
    assert "\n" not in str(caught.value)
    with pytest.raises(ValueError, match="HashingVectorizer keeps no term names"):
        adaptation_report(adapter, BOOKS, OPINIONS, KITCHEN)
    with pytest.raises(TypeError, match="HashingVectorizer is neither"):
        save_model(adapter, tmp_path / "model.safetensors")


@pytest.mark.parametrize("vectorizer", [VECTORIZERS[1], VECTORIZERS[2], VECTORIZERS[5]], ids=str)
def test_a_report_names_the_terms(vectorizer, tmp_path):
    from undrift import adaptation_report

    adapter = fit_adapter(vectorizer)
    report = adaptation_report(adapter, BOOKS, OPINIONS, KITCHEN)
    text = json.dumps(report.to_dict(), default=str)
    assert all(term in text for term in ("sturdy", "flimsy"))
    path = tmp_path / "report.html"
    report.save(path)
    assert "<html" in path.read_text()


@pytest.mark.parametrize(
    ("documents", "complaint"),
    [(["fine", None], "document 1 .* is missing"), (["a", b"b"], "decode it first")],
)
def test_documents_that_are_not_text_are_refused_in_our_words(documents, complaint):
    adapter = TextAdapter(CountVectorizer())
    with pytest.raises(ValueError, match=complaint):
        adapter.fit(documents, [0, 1], KITCHEN)
    with pytest.raises(ValueError, match=complaint):
        fit_adapter(CountVectorizer()).predict(documents)


def change_vectorizer(tree, **changes):
    (vectorizer,) = [value for name, value in tree["fitted"]["dict"] if name == "vectorizer_"]
    for name, value in changes.items():
        if name in vectorizer:
            vectorizer[name] = value
        else:
            vectorizer["params"]["dict"] = [
                [key, value if key == name else old] for key, old in vectorizer["params"]["dict"]
            ]
    return tree


@pytest.mark.parametrize(
    "changes",
    [
        {"vectorizer": "HashingVectorizer"},
        {"vectorizer": "Pipeline"},
        {"input": "filename"},
        {"tokenizer": "os.system"},
        {"dtype": "no type"},
        {"terms": {"list": []}},
        {"terms": {"list": [1, 2]}},
        {"terms": {"list": ["a", "a"]}},
        {"terms": {"list": ["a", "b"]}},  # fewer than the weights
        {"params": {"dict": [["shell", True]]}},
    ],
    ids=str,
)
def test_a_hostile_description_of_a_vectorizer_is_refused(changes, tmp_path):
    path = tmp_path / "model.safetensors"
    save_model(fit_adapter(TfidfVectorizer()), path)
    forge(path, change_vectorizer(tree_of(path), **changes))
    with pytest.raises(ModelFileError, match="does not describe a model"):
        load_model(path)
