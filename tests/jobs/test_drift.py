"""Checks of new rows against the target of the fit: every number against its definition, alarms by chance."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from scipy import stats

from undrift.jobs.drift import Batch, Measure, add_predictions, check_batch, describe_target, measure_unseen
from undrift.jobs.predict import Predictions
from undrift.text import TermVectorizer


class Classifier:
    """Linear, with one weight for the even terms and another for the odd ones."""

    def __init__(self, expected, terms):
        self.expected_error_, self.classes_ = [expected], np.array(["no", "yes"])
        self.weights = np.where(np.arange(terms) % 2, 1.0, -1.0)[:, None]


@pytest.fixture(autouse=True)
def read_weights(monkeypatch):
    monkeypatch.setattr("undrift.jobs.drift.effective_weights", lambda classifier: classifier.weights)


class Adapter:
    """What a check needs of a model: terms, classes, and what was stored of its targets."""

    def __init__(self, terms=40, expected=None):
        self.terms_ = [f"t{j}" for j in range(terms)]
        self.vectorizer_ = TermVectorizer(weighting="counts").fit([" ".join(self.terms_)])
        self.classes_ = np.array(["no", "yes"])
        self.domain_names_ = ["a.csv"]
        self.classifier_ = Classifier(expected, terms)


def draw_rows(rng, n, tilt=0.0, terms=40, lean=0.0):
    """Draw rows; `tilt` changes what they are about, `lean` what speaks for the classes."""
    odd = np.where(np.arange(terms) % 2, 1.0, -1.0)
    rates = np.linspace(0.1, 0.9, terms) + tilt * np.cos(np.arange(terms)) + lean * odd
    return sp.csr_array((rng.random((n, terms)) < np.clip(rates, 0, 1)).astype(float))


def draw_predictions(rng, X, share=0.5):
    codes = (rng.random(X.shape[0]) < share).astype(int)
    p = rng.uniform(0.6, 1.0, len(codes))
    probabilities = np.where(codes[:, None] == [0, 1], p[:, None], 1 - p[:, None])
    return Predictions(["no", "yes"], codes, 2.0 * codes - 1, probabilities, np.diff(X.indptr))


def write_documents(X):
    return [" ".join(f"t{j}" for j in row) for row in np.split(X.indices, X.indptr[1:-1])]


@pytest.fixture
def adapter(rng):
    adapter = Adapter(expected={"error": 0.2, "low": 0.1, "high": 0.3})
    X = draw_rows(rng, 6000)
    statistics = describe_target(adapter, X, write_documents(X))
    adapter.target_statistics_ = [add_predictions(statistics, draw_predictions(rng, X).count(), 2)]
    return adapter


def check(adapter, rng, n=300, share=0.5, **options):
    X = draw_rows(rng, n, **options)
    batch = Batch(adapter)
    batch.add(X, write_documents(X), draw_predictions(rng, X, share))
    return check_batch(batch)


def test_what_is_stored_of_a_target_is_what_it_says(rng):
    adapter, X = Adapter(), draw_rows(rng, 60)
    documents = [*write_documents(X)[:-1], "t0 unheard of"]  # bigrams of neighbours are known too
    stored = describe_target(adapter, X, documents)
    rows = X.toarray() / np.linalg.norm(X.toarray(), axis=1, keepdims=True)
    assert_allclose(stored["mean"], rows.mean(axis=0), rtol=1e-5)
    assert_allclose(stored["spread"], np.trace(np.cov(rows.T)))
    centred = rows - rows.mean(axis=0)
    products = [(centred[i] @ centred[j]) ** 2 for i in range(60) for j in range(60) if i != j]
    assert_allclose(stored["relative_variance"], 2 * np.mean(products) / stored["spread"] ** 2)
    assert stored["empty"] == 0
    known = set(adapter.terms_)
    terms = [
        d.split() + [f"{a} {b}" for a, b in zip(d.split(), d.split()[1:], strict=False)] for d in documents
    ]
    unseen = [sum(t not in known for t in each) / len(each) for each in terms]
    assert_allclose(measure_unseen(adapter, [*documents, "", "?!"]), unseen)
    assert_allclose([stored["unseen"], stored["unseen_spread"]], [np.mean(unseen), np.std(unseen)])


def test_sums_of_predictions_are_kept(rng, adapter):
    X = draw_rows(rng, 50)
    predictions = draw_predictions(rng, X, 0.3)
    stored = add_predictions({}, predictions.count(), 2)
    wrong = 1 - predictions.probabilities.max(axis=1)
    assert_allclose(stored["shares"], np.bincount(predictions.codes, minlength=2) / 50)
    assert_allclose([stored["doubt"], stored["doubt_spread"]], [wrong.mean(), wrong.std()])
    assert stored["n_predicted"] == 50


def test_few_batches_of_the_same_rows_are_called_drift(rng, adapter):
    checks = [check(adapter, rng) for _ in range(200)]
    assert np.mean([c["drifted"] for c in checks]) <= 0.05
    distances = [c["distance"]["batch"] for c in checks]
    assert 0.93 < np.mean(distances) < 1.07  # 1 is what chance gives
    shape = 1 / adapter.target_statistics_[0]["relative_variance"]
    tail = np.mean(np.array(distances) > stats.gamma.ppf(0.8, shape, scale=1 / shape))
    assert 0.1 < tail < 0.3
    assert len({c["distance"]["limit"] for c in checks}) == 1


def test_the_spread_of_the_distance_is_the_one_that_limits_it(rng, adapter):
    distances = [check(adapter, rng, n)["distance"]["batch"] for n in (40, 160) for _ in range(200)]
    expected = adapter.target_statistics_[0]["relative_variance"] ** 0.5
    assert 0.75 < np.std(distances[:200]) / expected < 1.25
    assert 0.75 < np.std(distances[200:]) / expected < 1.25


@pytest.mark.parametrize(
    ("options", "name"),
    [({"tilt": 0.15}, "differ from those of the fit"), ({"share": 0.8, "lean": 0.05}, "class shares")],
)
def test_other_rows_and_other_shares_are_drift(rng, adapter, options, name):
    checks = [check(adapter, rng, **options) for _ in range(40)]
    assert np.mean([c["drifted"] for c in checks]) >= 0.95
    assert all(name in " ".join(c["reasons"]) for c in checks if c["drifted"])


def test_predicted_shares_alone_are_not_drift_if_no_term_has_moved(rng, adapter):
    """Rows that self-training has seen are predicted a little differently than new ones."""
    checks = [check(adapter, rng, share=0.65) for _ in range(40)]
    assert np.mean([c["drifted"] for c in checks]) <= 0.1
    assert all(
        c["predicted_shares"]["yes"]["batch"] > c["predicted_shares"]["yes"]["limit"] for c in checks[:3]
    )
    moved = [check(adapter, rng, lean=0.05) for _ in range(40)]  # terms, and not the shares
    assert np.mean(["class shares differ" in " ".join(c["reasons"]) for c in moved]) <= 0.2


def test_rows_without_known_terms(rng, adapter):
    batch, X = Batch(adapter), sp.csr_array((10, 40))
    batch.add(X, ["völlig fremd"] * 9 + [""], draw_predictions(rng, X))
    result = check_batch(batch)
    assert result["empty_rows"]["batch"] == result["unseen_terms"]["batch"] == 1
    assert result["drifted"]
    assert any("have no term that the model knows" in reason for reason in result["reasons"])


def test_blocks_give_what_the_whole_gives(rng, adapter):
    X, whole, parts = draw_rows(rng, 90), Batch(adapter, -1), Batch(adapter)
    documents, p = write_documents(X), draw_predictions(rng, X)
    whole.add(X, documents, p)
    for rows in (slice(0, 50), slice(50, 90)):
        part = Predictions(p.classes, p.codes[rows], p.score[rows], p.probabilities[rows], p.n_known[rows])
        parts.add(X[rows], documents[rows], part)
    first, second = check_batch(whole), check_batch(parts)
    assert first["reasons"] == second["reasons"]
    for name in ("unseen_terms", "empty_rows", "distance", "expected_error"):
        assert_allclose(list(first[name].values()), list(second[name].values()))
    doubt = np.mean(1 - p.probabilities.max(axis=1))
    ratio = doubt / adapter.target_statistics_[0]["doubt"]
    assert_allclose(first["expected_error"]["batch"], 0.2 * ratio)  # the target's, scaled
    assert_allclose(first["expected_error"]["fit"], 0.2)


def test_small_differences_do_not_count_however_certain(rng, adapter):
    adapter.target_statistics_[0] |= {"n_rows": 10**9, "n_predicted": 10**9, "n_documents": 10**9}
    result = check(adapter, rng, 300_000 // 100)
    fit = adapter.target_statistics_[0]
    assert result["predicted_shares"]["no"]["limit"] == pytest.approx(
        fit["shares"][0] + (0.05 if result["predicted_shares"]["no"]["batch"] >= fit["shares"][0] else -0.05)
    )
    assert result["empty_rows"]["limit"] == pytest.approx(fit["empty"] + 0.02)
    assert result["unseen_terms"]["limit"] == pytest.approx(fit["unseen"] + 0.03)


def test_limits_of_shares_are_shares(rng, adapter):
    shares = check(adapter, rng, n=1)["predicted_shares"]
    assert all(0 <= share["limit"] <= 1 for share in shares.values())
    assert {share["limit"] for share in shares.values()} == {0.0, 1.0}


def test_a_limit_below_is_crossed_downward():
    assert Measure(0.1, 0.5, 0.3).is_beyond
    assert not Measure(0.4, 0.5, 0.3).is_beyond
    assert Measure(0.8, 0.5, 0.7).is_beyond


def test_models_that_stored_nothing_or_several_are_refused(adapter):
    with pytest.raises(ValueError, match="the model holds nothing of it"):
        Batch(Adapter())
    adapter.target_statistics_, adapter.domain_names_ = adapter.target_statistics_ * 2, ["a.csv", "b.csv"]
    with pytest.raises(ValueError, match=r"choose one with --domain: a.csv, b.csv"):
        Batch(adapter)
    adapter.target_statistics_[1] = {**adapter.target_statistics_[0], "empty": 0.5}
    assert Batch(adapter, -2).statistics["empty"] == 0.5
