"""The safeguard: its signals, the reasons drawn from them, and what the fallback predicts."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from tests.helpers.exact import ExactClassifier
from undrift import MSDAClassifier, UndriftWarning
from undrift.datasets import make_reviews
from undrift.method.doubts import (
    Signals,
    compare_with_source_only,
    decide_fallback,
    find_reasons,
    measure_rows,
)
from undrift.method.shares import Shares
from undrift.method.source_only import SourceOnly
from undrift.persist import load_model, save_model
from undrift.text import TermVectorizer

WELL = Signals(1000, 0.0, 0.05, 0.08, 0.66, 0.58, 0.8)  # the worst seen on real pairs


def with_changes(**changes):
    return Signals(**(vars(WELL) | changes))


@pytest.mark.parametrize("as_rows", [np.array, sp.csr_array])
def test_rows_alone_say_how_much_is_unseen_and_empty(as_rows):
    first = as_rows(np.array([[1.0, 0, 0, 2], [0, 0, 0, 0], [0, -3, 3, 0]]))
    second = as_rows(np.array([[0.0, 0, 0, 0], [5, 0, 1, 0]]))
    signals = measure_rows([first, second], np.array([4, 1, 0, 0]))
    # entries: (0,0) (0,3) (2,1) (2,2) (1,0) (1,2); unseen are columns 2 and 3: three of six
    assert signals == Signals(n_target=2, empty=2 / 5, unseen=0.5)
    assert measure_rows([], np.array([1])) is None


def test_disagreement_is_counted_by_hand():
    before = np.array([[3.0], [-2.0], [0.5], [-0.1]])
    after = np.array([[-1.0], [-1.0], [0.5], [1.0]])
    source_only = SourceOnly(np.zeros((1, 1)), np.zeros(1), np.zeros(1), before, 0.25, 1.0)
    signals = compare_with_source_only(Signals(4, 0.0, 0.0), after, 0.75, source_only)
    # rows 0 and 3 differ; the surer half is rows 0 and 1
    surest = compare_with_source_only(
        Signals(4, 0.0, 0.0), -before * [[1], [1], [0], [-1]], 0.75, source_only
    )
    assert surest.sure_disagreement == 1.0
    assert signals.sure_disagreement == 0.5
    assert (signals.retained, signals.source_only_retained) == (0.75, 0.25)


@pytest.mark.parametrize(
    ("changes", "word", "is_blocking"),
    [
        ({"unseen": 0.96}, "share almost no vocabulary", True),
        ({"retained": 0.64}, "recovers only 64%", True),
        ({"held_out_auc": 0.64}, "rows is 0.64, and 0.5 is chance", True),
        ({"n_target": 99}, "99 rows", False),
        ({"empty": 0.31}, "31% of the target's rows are empty", False),
        ({"unseen": 0.51}, "rows of an intermediate domain", False),
        ({"sure_disagreement": 0.16}, "disagree on 16%", False),
    ],
)
def test_each_reason_is_given_alone(changes, word, is_blocking):
    (reason,) = find_reasons(with_changes(**changes))
    assert word in reason.text
    assert reason.is_blocking is is_blocking


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"unseen": 0.5},
        {"retained": 0.65},
        {"held_out_auc": 0.65},
        {"source_only_retained": 0.1},
        {"n_target": 100},
        {"empty": 0.3},
        {"sure_disagreement": 0.15},
    ],
)
def test_nothing_is_said_up_to_the_thresholds(changes):
    assert find_reasons(with_changes(**changes)) == []


@pytest.mark.parametrize(("source_only_retained", "is_blocking"), [(0.64, False), (0.65, True)])
def test_far_away_a_failed_round_trip_counts_where_source_only_makes_it(source_only_retained, is_blocking):
    far = with_changes(unseen=0.8, retained=0.3, source_only_retained=source_only_retained)
    assert any(reason.is_blocking for reason in find_reasons(far)) is is_blocking
    signals = with_changes(held_out_auc=0.5, unseen=0.99, retained=0.0)
    assert [reason.code for reason in find_reasons(signals) if reason.is_blocking] == ["not-learnable"]


def test_a_round_trip_through_few_rows_does_not_block():
    (few,) = find_reasons(with_changes(n_target=99, retained=0.1))
    assert ("99 rows" in few.text, few.is_blocking) == (True, False)
    (lost,) = find_reasons(with_changes(n_target=100, retained=0.1))
    assert ("recovers only 10%" in lost.text, lost.is_blocking) == (True, True)


@pytest.mark.parametrize(("unseparated", "codes"), [(0.5, ["error-not-known"]), (0.49, [])])
def test_classes_that_scores_do_not_tell_apart_are_a_doubt(unseparated, codes):
    shares = Shares(np.array([[0.5, 0.5]]), np.zeros(1), unseparated=unseparated)
    assert [reason.code for reason in find_reasons(WELL, [shares])] == codes
    unknown = replace(shares, correlation=0.79, shift=2.6)
    (reason,) = find_reasons(WELL, [unknown], "'on'")
    assert (reason.code, reason.is_blocking) == ("not-known", True)
    assert reason.text.startswith("either hardly any row is 'on'")
    assert [reason.code for reason in find_reasons(WELL, [unknown, shares])] == ["error-not-known"]


def test_where_shares_cannot_be_known_source_only_keeps_those_of_the_source(rng):
    words = rng.permutation(40)  # one class has words of its own in the target
    y, z = np.arange(600) % 3 == 0, np.arange(400) % 2 == 0
    X, Z = (rng.poisson(0.4, size=(len(codes), 40)).astype(float) for codes in (y, z))
    X[y] += 2 * rng.poisson(0.5, size=(y.sum(), 40)) * (words < 8)
    Z[z] += 4 * rng.poisson(0.5, size=(z.sum(), 40)) * (words > 31)
    Z[:, words < 8] *= rng.random((400, 8)) < 0.3
    with pytest.warns(UndriftWarning, match="either hardly any row is True, or the words of True"):
        model = MSDAClassifier(2, 0.6, random_state=0).fit(X, y, Z)
    assert model.caution_["codes"][0] == "not-known"
    assert model.target_shares_[0][True] == pytest.approx(1 / 3)
    assert model.target_shares_interval_[0][True] == (0, 1)
    assert_allclose(model.predict_proba(Z)[:, 1].mean(), 1 / 3, atol=1e-3)
    expected, predicted = model.expected_error_[0], model.predict(Z).mean()
    assert (expected["error"], expected["known"]) == (None, False)
    assert expected["high"] == pytest.approx(1 - predicted / 3 - (1 - predicted) * 2 / 3)
    assert 0 < expected["low"] < expected["high"] / 2


def test_of_aligned_targets_only_uncertain_shares_are_a_doubt():
    signals = with_changes(source_only_retained=0.0)

    def shares(width):
        draws = np.linspace(0.5 - width / 2, 0.5 + width / 2, 25)
        return Shares(np.column_stack([1 - draws, draws]), np.zeros(1))

    assert find_reasons(signals, [shares(0.3)]) == []
    (reason,) = find_reasons(signals, [shares(0.3), shares(0.6)])
    assert (reason.code, reason.is_blocking) == ("uncertain-shares", False)
    assert "target_shares, --target-shares" in reason.text
    assert "about 30 rows" in reason.text


@pytest.mark.parametrize(("can", "fell_back"), [(True, True), (False, False)])
def test_caution_remembers_what_was_done(can, fell_back):
    caution = decide_fallback(with_changes(retained=0.1, empty=0.5), can)
    assert caution["fell_back"] is fell_back
    assert (len(caution["reasons"]), len(caution["blocking"])) == (2, 1)
    assert decide_fallback(WELL, can)["fell_back"] is False
    caution = decide_fallback(with_changes(empty=0.5), can)
    assert (len(caution["reasons"]), caution["blocking"], caution["fell_back"]) == (1, [], False)
    assert find_reasons(Signals(1000, 0.0, 0.1)) == []  # what is not measured says nothing


# --- fits ---


@pytest.fixture(scope="module")
def reviews():
    """Rows and labels of books, rows of kitchen ware."""
    corpus = make_reviews(400, domains=["books", "kitchen"], unlabelled_share=0.0)
    books, kitchen = corpus.domains.values()
    vectorizer = TermVectorizer(300, length=5.0).fit([*books.texts, *kitchen.texts])
    X, Z = (vectorizer.transform(domain.texts).astype(np.float64) for domain in (books, kitchen))
    return X, books.y.astype(int), Z


@pytest.fixture(scope="module")
def halves():
    """Rows and labels of books, and other rows of books."""
    books = make_reviews(800, domains=["books", "kitchen"], unlabelled_share=0.0).domains["books"]
    X = TermVectorizer(300, length=5.0).fit_transform(books.texts).astype(np.float64)
    return X[:400], books.y[:400].astype(int), X[400:]


def disjoint(X, Z):
    """The same rows, with no column in common."""
    return sp.hstack([X, 0 * X], format="csr"), sp.hstack([0 * Z, Z], format="csr")


def settings(**changes):
    return ExactClassifier(**({"n_layers": 1, "random_state": 0} | changes))


@pytest.mark.parametrize("center", ["classes", "domains"])
def test_of_rows_that_are_alike_nothing_is_said(halves, center):
    X, y, Z = halves
    model = settings(center=center).fit(X, y, Z)  # a warning would be an error
    assert model.caution_["reasons"] == []
    assert model.caution_["fell_back"] is False
    signals = model.caution_["signals"]
    assert signals["n_target"] == 400
    assert 0 <= signals["sure_disagreement"] < 0.15
    assert signals["held_out_auc"] > 0.9
    assert model.coef_[1].any()


def test_what_no_labelled_row_has_is_measured_on_the_rows(reviews):
    X, y, Z = reviews
    with pytest.warns(UndriftWarning, match="recovers only"):
        signals = settings().fit(X, y, Z).caution_["signals"]
    seen = np.asarray((X != 0).sum(axis=0)).ravel() > 0
    assert_allclose(signals["unseen"], 1 - Z[:, np.flatnonzero(seen)].nnz / Z.nnz)


def test_disagreement_is_that_of_predictions(halves):
    X, y, Z = halves
    Z = Z[source_only_scores(X, y, Z, "domains") > -0.2]  # centring exchanges labels of many of these
    model = settings(center="domains", self_training=False).fit(X, y, Z)
    scores = source_only_scores(X, y, Z, "domains")
    surer = np.argsort(-np.abs(scores), kind="stable")[: len(scores) // 2]
    differs = model.predict(Z) != (scores > 0).astype(int)
    assert 0 < differs[surer].mean() < differs.mean()
    assert_allclose(model.caution_["signals"]["sure_disagreement"], differs[surer].mean())


def source_only_scores(X, y, Z, center):
    """Least-squares SVM with an intercept on the source's rows as they are: its optimality conditions."""
    X, Z, n = X.toarray(), Z.toarray(), X.shape[0]
    midpoint = (X[y == 0].mean(axis=0) + X[y == 1].mean(axis=0)) / 2
    origin = {"classes": midpoint, "domains": X.mean(axis=0), False: 0}[center]
    weight = n / (2 * np.bincount(y))[y] if center == "classes" else np.ones(n)
    penalty = np.diag(np.mean(np.sum((X - origin) ** 2, axis=1)) / weight)
    system = np.block([[X @ X.T + penalty, np.ones((n, 1))], [np.ones((1, n)), np.zeros((1, 1))]])
    solved = np.linalg.solve(system, np.append(np.where(y == 1, 1.0, -1.0), 0.0))
    return Z @ X.T @ solved[:n] + solved[n]


@pytest.mark.parametrize("center", ["classes", "domains", False])
@pytest.mark.parametrize("self_training", [True, False])
def test_the_fallback_is_a_classifier_of_the_source_alone(reviews, center, self_training):
    X, Z = disjoint(reviews[0], reviews[2])
    known = sp.hstack([reviews[2][:8], 0 * reviews[2][:8]])  # rows for which the scores are not all alike
    Z, y = sp.vstack([known, Z[8:]], format="csr"), reviews[1] * (np.arange(400) % 3 > 0)  # unbalanced
    with pytest.warns(UndriftWarning, match="used the source-only classifier instead"):
        model = settings(center=center, self_training=self_training).fit(X, y, Z)
    assert model.caution_["fell_back"] is True
    assert model.target_shares_ == model.target_shares_interval_ == model.expected_error_ == [None]
    assert not model.coef_[1].any()
    assert len(np.unique(model.decision_function(Z[:8]))) == 8
    scores = source_only_scores(X, y, Z, center)
    if center == "classes":  # trained with classes that count alike: the source's odds are added
        scores = scores + model.temperature_ * np.log(y.mean() / (1 - y.mean()))
    assert_allclose(model.decision_function(Z), scores, rtol=1e-8, atol=1e-6)
    assert_allclose(
        model.decision_function(X, target="source"),
        source_only_scores(X, y, X, center),
        rtol=1e-8,
        atol=1e-9,
    )


def test_a_fallback_is_saved(reviews, tmp_path):
    X, Z = disjoint(reviews[0], reviews[2])
    y, path = reviews[1], tmp_path / "model.safetensors"
    with pytest.warns(UndriftWarning):
        model = MSDAClassifier(1, random_state=0).fit(X, y, Z)
    with pytest.warns(UndriftWarning):
        twin = MSDAClassifier(2, 0.2, random_state=0).fit(X, y, Z)
    assert model.temperature_ == pytest.approx(twin.temperature_)  # no layer has a say in it
    save_model(model, path)
    again = load_model(path)
    assert again.caution_ == model.caution_
    assert_array_equal(again.predict_proba(Z), model.predict_proba(Z))
