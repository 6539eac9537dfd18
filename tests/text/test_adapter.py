import inspect
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.utils import estimator_checks

from undrift import (
    MSDA,
    MSDAClassifier,
    TermVectorizer,
    TextAdapter,
    UndriftWarning,
    load_model,
    save_model,
)
from undrift.persist import load_adapter

BOOKS = ["A gripping page-turner", "gripping and moving", "dull and boring", "boring prose", "so-so"]
OPINIONS = ["good", "good", "bad", "bad", None]
KITCHEN = ["gripping handle, sturdy", "sturdy pan", "boring and flimsy", "flimsy lid", ""]
GARDEN = ["sturdy rake", "flimsy hose", "gripping gloves"]


def small(**options):
    return TextAdapter(60, classifier=MSDAClassifier(2, 0.5, **{"random_state": 0} | options))


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


def test_is_a_vectorizer_and_a_classifier_and_leaves_settings_alone():
    adapter = small().fit(BOOKS, OPINIONS, KITCHEN)
    vectorizer = TermVectorizer(60).fit(BOOKS + KITCHEN)
    rows = [vectorizer.transform(own) for own in (BOOKS, KITCHEN)]
    classifier = MSDAClassifier(2, 0.5, random_state=0).fit(rows[0], OPINIONS, rows[1])
    assert adapter.vectorizer_.terms_ == vectorizer.terms_
    assert_allclose(adapter.decision_function(KITCHEN), classifier.decision_function(rows[1]))
    assert_array_equal(adapter.predict(KITCHEN), classifier.predict(rows[1]))
    assert_array_equal(adapter.classes_, ["bad", "good"])
    with pytest.raises(ValueError, match="at least one row"):
        adapter.predict([])
    vectorizer = small().new_vectorizer().fit(BOOKS + KITCHEN)
    rows = [vectorizer.transform(own) for own in (BOOKS, KITCHEN)]
    halves = small().fit_rows(vectorizer, rows[0], OPINIONS, rows[1])
    assert_array_equal(halves.decision_function(KITCHEN), adapter.decision_function(KITCHEN))
    adapter = small()
    before = str(adapter.get_params())
    adapter.fit(BOOKS, OPINIONS, KITCHEN)
    assert str(adapter.get_params()) == before
    assert not hasattr(adapter.classifier, "classes_")


def test_words_of_the_target_alone_are_understood():
    adapter = small().fit(BOOKS, OPINIONS, KITCHEN)
    assert adapter.predict(["a sturdy pot", "flimsy!"]).tolist() == ["good", "bad"]
    assert adapter.score(["sturdy", "flimsy"], ["good", "bad"]) == 1
    adapter = TextAdapter().fit(BOOKS, OPINIONS, KITCHEN)
    lengths = np.sqrt(adapter.vectorizer_.transform(KITCHEN).power(2).sum(axis=1))
    assert_allclose(lengths, [5, 5, 5, 5, 0], rtol=1e-6)
    assert adapter.classifier_.get_params() == MSDAClassifier().get_params()


def test_several_targets_have_names():
    adapter = small().fit(BOOKS, OPINIONS, {"kitchen": KITCHEN, "garden": GARDEN})
    rows = [adapter.vectorizer_.transform(own) for own in (BOOKS, KITCHEN, GARDEN)]
    targets = {"kitchen": rows[1], "garden": rows[2]}
    classifier = MSDAClassifier(2, 0.5, random_state=0).fit(rows[0], OPINIONS, targets)
    for name in targets:
        scores = classifier.decision_function(rows[2], target=name)
        assert_allclose(adapter.decision_function(GARDEN, target=name), scores)
        assert_array_equal(adapter.predict(GARDEN, target=name), adapter.classes_[(scores > 0).astype(int)])
        assert_allclose(
            adapter.predict_proba(GARDEN, target=name),
            classifier.predict_proba(rows[2], target=name),
        )
    assert not np.allclose(
        *(adapter.decision_function(GARDEN, target=name) for name in ("kitchen", "garden"))
    )
    assert adapter.score(GARDEN, adapter.predict(GARDEN, target="garden"), target="garden") == 1
    with pytest.raises(ValueError, match="2 targets; target='garage' is not among them: 'kitchen', 'garden'"):
        adapter.predict(GARDEN, target="garage")
    one = small().fit(BOOKS, OPINIONS, KITCHEN)
    with pytest.raises(ValueError, match=r"^the model has 1 target; target='garage' is not among them"):
        one.predict(GARDEN, target="garage")
    with pytest.raises(ValueError, match="several targets need names: pass a dict"):
        small().fit(BOOKS, OPINIONS, [KITCHEN, GARDEN])


def test_a_table_is_no_target():
    """Its names of columns would be taken for documents."""
    table = pd.DataFrame({"text": KITCHEN, "stars": 1})
    for target in (table, table[["text"]], {"kitchen": table}):
        with pytest.raises(ValueError, match="documents must be one column of strings; got a table"):
            small().fit(BOOKS, OPINIONS, target)


def test_documents_may_come_from_generators():
    targets = {"kitchen": KITCHEN, "garden": GARDEN}
    expected = small().fit(BOOKS, OPINIONS, targets).decision_function(GARDEN, target="garden")
    adapter = small().fit(iter(BOOKS), OPINIONS, {name: iter(own) for name, own in targets.items()})
    assert_allclose(adapter.decision_function(iter(GARDEN), target="garden"), expected)


@pytest.mark.parametrize("adapter", [TextAdapter(classifier=MSDAClassifier(random_state=0)), small()])
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


@pytest.mark.parametrize(
    "labels", [[1, 1, 0, 0, None], [1.0, 1.0, 0.0, 0.0, np.nan], ["1", "1", "0", "0", None]]
)
def test_labels_keep_their_type_but_for_whole_floats(labels):
    adapter = small().fit(BOOKS, labels, KITCHEN)
    kind = str if isinstance(labels[0], str) else int
    assert [type(label) for label in adapter.classes_.tolist()] == [kind] * 2
    small_model = adapter.distill(KITCHEN * 3)
    for model in (adapter, small_model, small_model.to_sklearn()):
        assert {type(label) for label in model.predict(KITCHEN).tolist()} == {kind}


class Recording(TextAdapter):
    """Remembers how many documents each fit got."""

    seen: ClassVar[list[tuple[int, int]]] = []

    def fit(self, documents, y, target=None, **options):
        self.seen.append((len(documents), len(target["kitchen"])))
        return super().fit(documents, y, target, **options)


def test_cross_validation_cuts_the_source_and_passes_a_target_in_a_dict_whole():
    """Folds are cut from the source alone, even where a target is as long; source documents are scored."""
    documents, y = BOOKS[:4] * 5, OPINIONS[:4] * 5
    Recording.seen.clear()
    adapter = Recording(**small().get_params(deep=False))
    scores = cross_val_score(adapter, documents, y, cv=2, params={"target": {"kitchen": KITCHEN * 4}})
    assert Recording.seen == [(10, 4 * len(KITCHEN))] * 2
    assert scores.tolist() == [1, 1]
    assert cross_val_score(small(), documents, y, cv=2).tolist() == [1, 1]


def test_the_summary_says_the_expected_error_and_the_class_shares():
    adapter = small().fit(BOOKS, OPINIONS, {"kitchen": KITCHEN, "garden": GARDEN})
    for name, warning in (("kitchen", "few rows"), ("garden", "new words")):
        adapter.targets_[name].update(
            shares={"bad": 0.2514, "good": 0.7486},
            shares_interval={"bad": (0.1, 0.39), "good": (0.61, 0.9)},
            expected_error={"error": 0.123, "low": 0.05, "high": 0.2, "known": True},
            warnings=["few rows", warning],
        )
    told = [
        "about 12% wrong (90% interval 5% to 20%), expected",
        "  class shares: bad 25% (10% to 39%), good 75% (61% to 90%)",
    ]
    assert adapter.summary().split("\n") == [
        f"kitchen: {told[0]}",
        told[1],
        f"garden: {told[0]}",
        told[1],
        "warning: few rows",
        "warning: new words",
    ]
    assert list(adapter.targets_) == ["kitchen", "garden"]
    assert small().fit(BOOKS[:4], OPINIONS[:4]).summary() == "no target; classes bad, good"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("one string", ["a", "b"]), "documents must be an iterable of strings; got one str"),
        ((BOOKS, OPINIONS, "one string"), "target must be an iterable of documents"),
        ((BOOKS, OPINIONS, ["fine", 7]), "document 1 .* is 7 of type int"),
        ((BOOKS, OPINIONS[:2]), "inconsistent numbers of samples"),
        ((["", " "], ["a", "b"]), "no words in the 2 documents"),
        ((BOOKS, ["good"] * 5), "only 1 class"),
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises(ValueError, match=message):
        small().fit(*arguments)


def test_target_labels_are_learnt_asked_for_and_updated():
    labels = ["good", None, None, "bad", None]
    adapter = small(center="domains").fit(BOOKS, OPINIONS, KITCHEN, y_target=labels)
    rows = [adapter.vectorizer_.transform(documents) for documents in (BOOKS, KITCHEN)]
    classifier = MSDAClassifier(2, 0.5, center="domains", random_state=0)
    classifier.fit(rows[0], OPINIONS, rows[1], y_target=labels)
    assert_allclose(adapter.decision_function(KITCHEN), classifier.decision_function(rows[1]))
    assert sorted(adapter.ask(KITCHEN, 3)) == [1, 2, 4]  # those without a label
    adapter.update(iter(KITCHEN[1:2]), ["good"])
    classifier.update(rows[1][1:2], ["good"])
    assert_allclose(adapter.decision_function(KITCHEN), classifier.decision_function(rows[1]))
    targets = {"kitchen": KITCHEN, "garden": GARDEN}
    several = small().fit(BOOKS, OPINIONS, targets, y_target={"kitchen": labels})
    several.update(GARDEN[:1], ["good"], target="garden")
    assert several.predict(GARDEN, target="garden").shape == (3,)


def test_fit_says_what_the_target_is_called_and_has_type_hints():
    with pytest.raises(TypeError, match="unexpected keyword argument 'X_target'"):
        TextAdapter().fit(["a b"], [0], X_target=["a"])
    with pytest.raises(TypeError, match="unexpected keyword argument 'target'"):
        MSDAClassifier().fit(np.eye(2), [0, 1], target=np.eye(2))
    for method in (MSDAClassifier.fit, MSDAClassifier.predict, MSDA.fit, MSDA.transform, TextAdapter.fit):
        hints = inspect.get_annotations(inspect.unwrap(method))
        assert set(hints) == set(inspect.signature(method).parameters) - {"self"} | {"return"}


@pytest.mark.parametrize("has_target", [False, True])
def test_documents_without_a_known_term_have_the_class_shares(has_target):
    y = ["bad", "good", "good", "good"] * 5
    adapter = small().fit(BOOKS[:4] * 5, y, KITCHEN if has_target else None)
    shares = list(adapter.target_shares_[0].values()) if has_target else [0.25, 0.75]
    empty = ["", "qqq", "?!", None, np.nan, pd.NA]
    for model in (adapter, adapter.distill(KITCHEN * 3)) if has_target else (adapter,):
        assert_allclose(model.predict_proba(empty), [shares] * 6, rtol=1e-6)
        assert len(set(model.predict(empty))) == 1
        assert model.predict_frame(empty)["prediction"].isna().all()
    if has_target:
        pipeline = model.to_sklearn()
        assert_array_equal(pipeline.predict(empty[:3]), model.predict(empty[:3]))
        with pytest.raises(ValueError, match=r"np\.nan is an invalid document"):
            pipeline.predict(empty[4:5])


@pytest.mark.filterwarnings("ignore::undrift.UndriftWarning")
def test_a_later_batch_is_aligned_on_a_copy():
    """As `undrift predict` takes a file; distilled models do the same."""
    adapter = small(random_state=0).fit(BOOKS * 4, OPINIONS * 4, KITCHEN * 4)
    batch = [KITCHEN[0], KITCHEN[1], GARDEN[0], "zzz"] * 10
    for model in (adapter, adapter.distill(KITCHEN * 8)):
        before = model.predict_proba(batch)
        aligned = model.align(batch)
        rows = model.vectorizer_.transform([text for text in batch if text != "zzz"])
        expected = model.classifier_.align(rows)
        assert aligned.target_shares_ == expected.target_shares_ != model.target_shares_
        assert_array_equal(aligned.predict(batch), expected.predict(model.vectorizer_.transform(batch)))
        assert_array_equal(model.predict_proba(batch), before)
        with pytest.raises(ValueError, match="no document of the batch has a term"):
            model.align(["zzz", ""])


@pytest.mark.filterwarnings("ignore:the target has")
def test_a_batch_too_small_to_be_aligned_is_told():
    """`undrift predict` keeps the class shares of the fit there."""
    adapter = small(random_state=0).fit(BOOKS * 4, OPINIONS * 4, KITCHEN * 4)
    with pytest.warns(UndriftWarning, match="^199 documents of the batch with a known term") as told:
        adapter.align([*KITCHEN[:1] * 199, "zzz"])
    assert told[0].message.code == "small-batch"
    adapter.align(KITCHEN[:1] * 200)


@pytest.mark.filterwarnings("ignore::undrift.UndriftWarning")
def test_predictions_are_a_table_with_the_index_of_the_documents():
    adapter = small(random_state=0).fit(BOOKS * 4, OPINIONS * 4, KITCHEN * 4)
    series = pd.Series([*KITCHEN, "zzz"], index=[f"row {i}" for i in range(len(KITCHEN) + 1)])
    for model in (adapter, adapter.distill(KITCHEN * 8)):
        table = model.predict_frame(series)
        assert list(table) == ["prediction", "probability", "known_terms", "p_bad", "p_good"]
        assert table.index.tolist() == series.index.tolist()
        known, p = table["known_terms"] > 0, model.predict_proba(series)
        assert known.any()
        assert table["prediction"][known].tolist() == model.predict(series[known]).tolist()
        assert table["prediction"][~known].isna().all()
        assert_allclose(table[["p_bad", "p_good"]], p)
        assert_allclose(table["probability"][known], p[known].max(axis=1))
        assert table["known_terms"].iloc[-1] == 0
        assert model.predict_frame(iter(KITCHEN)).index.tolist() == list(range(len(KITCHEN)))
