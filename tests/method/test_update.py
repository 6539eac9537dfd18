"""Labels of target rows: learnt in fit and by update, against systems that are solved from scratch."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import expit

from tests.helpers.exact import ExactClassifier
from undrift import MSDAClassifier, load_model, save_model
from undrift.errors import UndriftWarning
from undrift.method import labels as labels_module
from undrift.method.calibrate import find_border
from undrift.method.constants import LEARNT_WEIGHT
from undrift.method.shares import Labelled, Rescored, estimate_shares
from undrift.method.state import score_columns
from undrift.method.update import choose_for_estimate, choose_for_predictions


def make_domains(n_source=120, n_target=150, seed=0, shift=0.6, share=0.5, n_classes=2):
    """Counts of 12 features in a source and a target, whose classes have other features."""
    rng = np.random.RandomState(seed)
    y = np.arange(n_source) % n_classes
    y_target = (rng.uniform(size=n_target) < share).astype(int) if n_classes == 2 else np.arange(n_target) % 3
    rates = rng.uniform(0.3, 1.5, size=(n_classes, 12))
    other = rates * rng.uniform(1 - shift, 1 + shift, size=rates.shape)
    X, X_target = rng.poisson(rates[y]).astype(float), rng.poisson(other[y_target]).astype(float)
    return X, y, X_target, y_target


def give_labels(y_target, rows):
    labels = np.full(len(y_target), np.nan)
    labels[rows] = y_target[rows]
    return labels


def make_classifier(kind=ExactClassifier, **changes):
    settings = {"n_layers": 2, "noise": 0.4, "self_training": False, "random_state": 0}
    return kind(**(settings | changes))


class Oracle:
    """The classifier that a state stands for, from explicit rows: one dense system with every row in it."""

    def __init__(self, classifier, X, y, X_target, labels, label_weight, border=0.0):
        state = classifier.update_state_
        n = state.n_source
        assert n == len(y)
        columns = [np.vstack([X, X_target]), *classifier.representation_.hidden(np.vstack([X, X_target]))]
        domain = np.repeat([0, 1], [len(X), len(X_target)])
        self.rows = np.hstack(
            [
                np.sqrt(share) * (np.asarray(A) - means[domain])
                for A, means, share in zip(columns, state.means, state.shares, strict=True)
            ]
        )
        has_label, has_anchors = ~np.isnan(labels), len(state.codes) > n
        pseudo = (state.codes[n:], state.weight[n:]) if has_anchors else np.zeros((2, len(labels)))
        # features for all domains, and again, of smaller variance, for labelled target rows alone
        particular = np.sqrt(0.15) * self.rows
        is_labelled = np.concatenate([np.zeros(n, dtype=bool), has_label])
        both = np.hstack([self.rows, np.where(is_labelled[:, None], particular, 0.0)])
        weight = np.concatenate([state.weight[:n], np.where(has_label, 0.0, pseudo[1])])
        wanted = np.where(np.concatenate([y, pseudo[0]]) == 1, 1.0, -1.0)

        self._target, self._weight, self._wanted = np.hstack([self.rows, particular]), weight, wanted
        self._features, self._C = both, state.C
        self.scores = self._solve()
        for _ in range(30):  # Newton's method on the log loss; weight 1 is that of an undecided row
            before = self.scores[is_labelled]
            p = expit((before + border) / state.readout.temperature)
            weight[is_labelled] = 4 * label_weight * p * (1 - p)
            wanted[is_labelled] = before + state.readout.temperature * (labels[has_label] - p) / (p * (1 - p))
            self.scores = self._solve()

    def _solve(self, without=None):
        """Minimise |w|^2 / 2 + C / 2 sum weight (wanted - w.h - b)^2; score rows as those of the target."""
        weight = np.where(np.arange(len(self._weight)) == without, 0.0, self._weight)
        B = np.hstack([self._features, np.ones((len(weight), 1))]) * np.sqrt(self._C * weight)[:, None]
        penalty = np.diag([1.0] * self._features.shape[1] + [0.0])
        solution = np.linalg.solve(B.T @ B + penalty, B.T @ (np.sqrt(self._C * weight) * self._wanted))
        return self._target @ solution[:-1] + solution[-1]

    def leave_out(self, row):
        """Score a row without its label; the others count as they do with it."""
        return self._solve(without=row)[row]


def find_border_of(state, rows, codes):
    """The border of the only target, whose shares are estimated from first scores and labels."""
    seen = Labelled(state.first_scores[rows], codes)
    held_out = state.held_out
    given = state.first_scores, held_out.scores, held_out.codes, 2, None, seen, held_out.transfer
    return find_border(state.scores, state.readout.temperature, estimate_shares(*given).mean)[0]


@pytest.mark.parametrize("self_training", [False, True])
@pytest.mark.parametrize("center", ["classes", "domains", False])
def test_update_equals_solving_again_with_the_labels(center, self_training):
    X, y, X_target, y_target = make_domains(shift=0.95)
    rows = np.arange(0, 120, 2)
    classifier = make_classifier(center=center, self_training=self_training).fit(X, y, X_target)
    classifier.update(X_target[rows], y_target[rows])
    border = find_border_of(classifier.update_state_, rows, y_target[rows]) if center == "classes" else 0.0
    labels = give_labels(y_target, rows)
    oracle = Oracle(classifier, X, y, X_target, labels, LEARNT_WEIGHT, border)
    shift = classifier.decision_function(X_target) - oracle.scores[len(X) :]
    assert np.ptp(shift) < 1e-8  # up to the border, one number for the target
    if center != "classes":
        assert np.abs(shift).max() < 1e-8


def test_shares_are_estimated_again_with_labels_left_out():
    X, y, X_target, y_target = make_domains(shift=0.95, share=0.3)
    rows = np.arange(0, 90, 3)
    classifier = make_classifier().fit(X, y, X_target)
    classifier.update(X_target[rows], y_target[rows])
    state, labels = classifier.update_state_, give_labels(y_target, rows)
    given = LEARNT_WEIGHT, find_border_of(state, rows, y_target[rows])
    oracle = Oracle(classifier, X, y, X_target, labels, *given)
    left_out = [oracle.leave_out(len(X) + row) for row in rows]
    scores = oracle.scores[len(X) :, None] / state.readout.temperature
    seen = Rescored(np.array(left_out)[:, None] / state.readout.temperature, y_target[rows], scores)
    held_out = state.held_out
    shares = state.first_scores, held_out.scores, held_out.codes, 2, None, seen, held_out.transfer
    assert classifier.target_shares_[0][1] == pytest.approx(estimate_shares(*shares).mean[1], abs=1e-6)


@pytest.mark.parametrize("center", ["domains", False])
def test_update_equals_fit(center):
    X, y, X_target, y_target = make_domains()
    first, all_rows = np.arange(20), np.arange(40)
    refit = make_classifier(center=center).fit(X, y, X_target, y_target=give_labels(y_target, all_rows))
    updated = make_classifier(center=center).fit(X, y, X_target, y_target=give_labels(y_target, first))
    updated.update(X_target[20:40], y_target[20:40])
    np.testing.assert_allclose(updated.decision_function(X), refit.decision_function(X), atol=1e-8)
    np.testing.assert_allclose(updated.intercept_, refit.intercept_, atol=1e-8)


def test_labels_are_changed_and_withdrawn():
    X, y, X_target, y_target = make_domains()
    classifier = make_classifier(self_training=True).fit(X, y, X_target)
    before = classifier.decision_function(X_target)
    classifier.update(X_target[:30], 1 - y_target[:30])
    classifier.update(X_target[:30], y_target[:30])
    changed = classifier.decision_function(X_target)
    once = make_classifier(self_training=True).fit(X, y, X_target).update(X_target[:30], y_target[:30])
    np.testing.assert_allclose(changed, once.decision_function(X_target), atol=1e-8)
    classifier.update(X_target[:10], None).update(X_target[10:30], [None] * 20)
    np.testing.assert_allclose(classifier.decision_function(X_target), before, atol=1e-8)
    classifier.update(X_target[:10], None)  # nothing is left to withdraw
    np.testing.assert_allclose(classifier.decision_function(X_target), before, atol=1e-8)


def test_new_rows_may_be_added():
    X, y, X_target, y_target = make_domains()
    new, y_new = make_domains(seed=3)[2:]
    classifier = make_classifier(self_training=True).fit(X, y, X_target)
    classifier.update(np.vstack([X_target[:20], new[:30]]), np.concatenate([y_target[:20], y_new[:30]]))
    joined = make_classifier(self_training=True).fit(X, y, X_target)
    joined.update(new[:30], y_new[:30]).update(X_target[:20], y_target[:20])
    np.testing.assert_allclose(
        classifier.decision_function(X_target), joined.decision_function(X_target), atol=1e-8
    )
    assert (classifier.update_state_.labelled.anchor == -1).sum() == 30


def test_three_classes_and_two_targets():
    X, y, X_target, y_target = make_domains(150, 160, n_classes=3)
    targets, labels = (
        {"a": X_target[:80], "b": X_target[80:]},
        {"a": give_labels(y_target[:80], np.arange(30))},
    )
    classifier = make_classifier(self_training=True).fit(X, y, targets, y_target=labels)
    assert classifier.predict(targets["b"], target="b").shape == (80,)
    classifier.update(targets["b"][:9], y_target[80:89], target="b")
    assert set(classifier.update_state_.labelled.domain.tolist()) == {1, 2}
    with pytest.raises(ValueError, match="has 2 targets; name one of them: target='a', 'b'"):
        classifier.update(targets["b"][:9], y_target[80:89])
    with pytest.raises(ValueError, match="target='c' is not among them"):
        classifier.update(targets["b"][:9], y_target[80:89], target="c")
    with pytest.raises(ValueError, match=r"names a source, but the targets are \['a', 'b'\]"):
        classifier.update(targets["b"][:9], y_target[80:89], target="source")
    assert len(classifier.ask(targets["b"], 5, target="b")) == 5
    classifier.update_target(targets["b"][::-1], target="b")
    assert list(classifier.update_state_.batches) == [2]


@pytest.mark.parametrize(("large", "tolerance"), [(2**23, 1e-4), (0, 1e-3)])
def test_saved_models_are_updated(large, tolerance, tmp_path, set_limits):
    set_limits(LARGE_COLUMNS=large)  # hidden rows of 32 or 16 bits
    X, y, X_target, y_target = make_domains(shift=0.95)
    classifier = make_classifier(MSDAClassifier, self_training=True)
    classifier.fit(
        sp.csr_matrix(X), y, sp.csr_matrix(X_target), y_target=give_labels(y_target, np.arange(20))
    )
    save_model(classifier, tmp_path / "model", updatable=True)
    save_model(classifier, tmp_path / "small")
    assert (tmp_path / "small").stat().st_size < (tmp_path / "model").stat().st_size
    assert classifier.update_state_ is not None  # saving without it takes nothing away
    loaded, new = load_model(tmp_path / "model"), sp.csr_matrix(X_target[20:50])
    inverse = classifier.update_state_.inverse
    np.testing.assert_array_equal(loaded.update_state_.inverse, np.float32(inverse))
    assert classifier.update_state_.shrink().inverse.size == len(inverse) * (len(inverse) + 1) // 2
    for model in (loaded, classifier):
        model.update(new, y_target[20:50])
    assert {A.dtype for A in loaded.update_state_.columns} == {np.dtype(np.float32)}  # 16 bits are slow
    assert (loaded.update_state_.labelled.anchor >= 0).all()  # rows of the fit are recognised
    np.testing.assert_allclose(
        loaded.decision_function(X_target), classifier.decision_function(X_target), atol=tolerance
    )
    save_model(loaded, tmp_path / "again", updatable=True)
    np.testing.assert_array_equal(load_model(tmp_path / "again").ask(X_target, 5), loaded.ask(X_target, 5))
    with pytest.raises(ValueError, match="no update state"):
        load_model(tmp_path / "small").update(new, y_target[20:50])


def test_a_new_batch_has_its_shares_and_border():
    X, y, X_target, y_target = make_domains(600, 600, shift=0.2)
    batch, y_batch = make_domains(600, 600, shift=0.2, share=0.15)[2:]
    classifier = make_classifier().fit(X, y, X_target)
    before = np.mean(classifier.predict(batch) != y_batch)
    classifier.update_target(batch)
    assert abs(classifier.target_shares_[0][1] - y_batch.mean()) < 0.08
    assert np.mean(classifier.predict(batch) != y_batch) <= before
    classifier.update(X_target[:30], y_target[:30])  # keeps the batch's border
    assert abs(classifier.target_shares_[0][1] - y_batch.mean()) < 0.15


def test_a_batch_that_is_harder_than_the_last_one_is_warned_of():
    X, y, X_target, _ = make_domains()
    classifier = make_classifier().fit(X, y, X_target)
    classifier.expected_error_ = [{"error": 0.03, "low": 0.02, "high": 0.04, "known": True}]
    with pytest.warns(UndriftWarning, match=r"harder than the target of the fit: .* 3\.0% before"):
        classifier.update_target(X_target)


def test_asked_rows_have_no_label_and_differ():
    X, y, X_target, y_target = make_domains()
    classifier = make_classifier(self_training=True)
    classifier.fit(X, y, X_target, y_target=give_labels(y_target, np.arange(50)))
    asked = classifier.ask(X_target, 20)
    assert len(set(asked.tolist())) == 20
    assert asked.min() >= 50
    rows, weights = classifier.ask(X_target, 20, "estimate", return_weights=True)
    assert rows.min() >= 50
    assert weights.sum() == pytest.approx(100)  # rows without a label
    assert (classifier.ask(X_target, 20, return_weights=True)[1] == 0).all()
    assert len(classifier.ask(X_target, 10_000)) == 100


def test_of_equal_rows_the_first_is_asked_for():
    X, y, X_target, y_target = make_domains()
    copies = np.vstack([X_target[:30], X_target[:30], X_target[:30], X_target[30:60]])
    classifier = make_classifier().fit(X, y, X_target).update(X_target[:5], y_target[:5])
    distinct = {row.tobytes(): i for i, row in reversed(list(enumerate(copies)))}
    unlabelled = set(distinct.values()) - {distinct[row.tobytes()] for row in X_target[:5]}
    assert set(classifier.ask(copies, 200).tolist()) == unlabelled
    rows, weights = classifier.ask(copies, 200, "estimate", return_weights=True)
    assert set(rows.tolist()) == unlabelled
    counts = [(copies == copies[row]).all(axis=1).sum() for row in rows]
    np.testing.assert_allclose(weights, counts)  # what each stands for, now that all were drawn


def test_labels_after_a_batch_are_weighed_at_its_border(set_limits, spy):
    X, y, X_target, y_target = make_domains(600, 600, shift=0.2)
    batch = make_domains(600, 600, shift=0.2, share=0.15)[2]
    classifier = make_classifier().fit(X, y, X_target).update_target(batch)
    calls = spy(labels_module, "Seen")
    set_limits(Rescored=lambda *given: None, Labelled=lambda *given: None)  # no labels count for shares
    set_limits(LEARNT_WEIGHT=1e-12)
    classifier.update(X_target[:30], y_target[:30])
    # such labels leave the classifier as it was, and the border is what its scores are shifted by
    at_border = calls[0][1] + calls[0][2]
    np.testing.assert_allclose(at_border, classifier.decision_function(X_target[:30])[:, None], atol=1e-8)


def test_what_cannot_be_meant_is_refused():
    X, y, X_target, _ = make_domains()
    classifier = make_classifier().fit(X, y, X_target)
    with pytest.raises(ValueError, match="given twice, with different labels"):
        classifier.update(X_target[[0, 0]], [0, 1])
    with pytest.raises(ValueError, match="purpose"):
        classifier.ask(X_target, 3, "fun")


@pytest.mark.parametrize("n_labels", [1, 24, 25])
def test_any_number_of_labels_is_learnt(n_labels):
    X, y, X_target, y_target = make_domains()
    classifier = make_classifier().fit(X, y, X_target).update(X_target[:n_labels], y_target[:n_labels])
    assert classifier.update_state_.labelled.codes.shape == (n_labels,)


def learn_random_labels(n_classes, share_wrong, seeds=range(3)):
    """Return the errors before, and after 30 labels of which a share is wrong; of classes far apart."""
    before, after = [], []
    for seed in seeds:
        rng = np.random.RandomState(seed)
        y = np.arange(400) % n_classes
        rates = rng.uniform(0.2, 1.2, size=(n_classes, 30))
        other = rates * rng.uniform(0.4, 1.6, size=rates.shape)
        X, X_target = rng.poisson(2 * rates[y]).astype(float), rng.poisson(2 * other[y]).astype(float)
        classifier = make_classifier(MSDAClassifier, self_training=True).fit(X, y, X_target)
        rows, labels = rng.permutation(400)[:30], y.copy()
        wrong = rows[: round(30 * share_wrong)]
        labels[wrong] = (y[wrong] + 1) % n_classes
        rest = np.setdiff1d(np.arange(400), rows)
        before.append(np.mean(classifier.predict(X_target)[rest] != y[rest]))
        classifier.update(X_target[rows], labels[rows])
        after.append(np.mean(classifier.predict(X_target)[rest] != y[rest]))
    return np.mean(before), np.mean(after)


def test_correct_labels_of_three_classes_do_not_cost():
    before, after = learn_random_labels(3, 0.0)
    assert after <= before


def test_wrong_labels_of_classes_far_apart_cost_little():
    before, after = learn_random_labels(2, 0.2)
    assert before < 0.03
    assert after < before + 0.06  # one step of Newton's method: 0.28


def test_labels_win_over_the_expected_error():
    """Labels of half of the rows contradict the scores: the error is what they say, within an interval."""
    X, y, X_target, y_target = make_domains(600, 800, shift=0.2)
    classifier = make_classifier().fit(X, y, X_target)
    expected = classifier.expected_error_[0]["error"]
    rng = np.random.RandomState(1)
    labels = np.where(rng.uniform(size=800) < 0.4, 1 - y_target, y_target)
    classifier.update(X_target[:400], labels[:400])
    truth = np.mean(classifier.predict(X_target[400:]) != labels[400:])
    measured = classifier.expected_error_[0]
    assert truth > expected + 0.1
    assert measured["error"] == pytest.approx(truth, abs=0.04)
    assert measured["low"] < truth < measured["high"]


def test_estimates_are_stratified_and_chosen_rows_are_undecided():
    is_changed = np.arange(100) < 10
    rows, weights = choose_for_estimate(is_changed, np.ones(100), 20, np.random.RandomState(0))
    assert (rows < 10).sum() == 10
    assert weights.sum() == pytest.approx(100)
    assert set(weights.tolist()) == {1.0, 9.0}
    rows, weights = choose_for_estimate(None, np.ones(100), 20, np.random.RandomState(0))
    assert len(rows) == 20
    assert (weights == 5).all()
    S = np.kron(np.eye(3), np.ones((4, 4))) + 1e-3 * np.eye(12)
    p = np.tile([0.5, 0.5], (12, 1))
    p[:4] = [0.999, 0.001]
    chosen = choose_for_predictions(S, p, 0.5, 2)
    assert sorted(chosen // 4) == [1, 2]  # one of either undecided group


@pytest.mark.parametrize("many", [False, True])
def test_a_sample_of_rows_is_drawn_once_for_all_parts_of_the_state(set_limits, many):
    X, y, X_target, _ = make_domains(300, 300)
    set_limits(ANCHOR_LIMIT=100, STATE_ROWS=80)
    if many:
        set_limits(GRAM_LIMIT=200)
    random_state = np.random.RandomState(0)  # a second draw would be another one
    state = make_classifier(random_state=random_state).fit(X, y, X_target).update_state_
    assert (len(state.domain), state.n_source) == (160, 80)
    columns = [A[80:] for A in state.columns]
    means = np.sum([m[1] @ w for m, w in zip(state.means, state.readout.weights, strict=True)], axis=0)
    scores = score_columns(columns, state.readout.weights) + state.readout.intercept - means
    np.testing.assert_allclose(scores, state.scores, atol=1e-8)


@pytest.mark.parametrize("purpose", ["predictions", "estimate"])
def test_nothing_is_asked_where_every_row_has_a_label(purpose):
    X, y, X_target, y_target = make_domains(60, 40)
    classifier = make_classifier().fit(X, y, X_target).update(X_target, y_target)
    rows, weights = classifier.ask(X_target, 5, purpose, return_weights=True)
    assert len(rows) == len(weights) == 0


@pytest.mark.parametrize("n_targets", [1, 2])
def test_probabilities_of_the_source_have_the_temperature_of_held_out_rows(n_targets):
    X, y, X_target, _ = make_domains()
    classifier = make_classifier().fit(X, y, {f"target {i}": X_target for i in range(n_targets)})
    assert classifier.temperatures_[0, 0] == pytest.approx(classifier.update_state_.held_out.temperature)


@pytest.mark.parametrize("self_training", [False, True])
@pytest.mark.parametrize("center", ["classes", "domains"])
def test_more_labelled_rows_than_a_gram_matrix_holds(set_limits, center, self_training):
    X, y, X_target, y_target = make_domains(300, 300, shift=0.95)
    rows = np.arange(0, 120, 2)
    options = {"center": center, "self_training": self_training}
    exact = make_classifier(**options).fit(X, y, X_target).update(X_target[rows], y_target[rows])
    set_limits(GRAM_LIMIT=200)
    many = make_classifier(**options).fit(X, y, X_target)
    before = many.decision_function(X_target)
    many.update(X_target[rows], y_target[rows])
    changed, wanted = many.decision_function(X_target) - before, exact.decision_function(X_target) - before
    assert np.corrcoef(changed, wanted)[0, 1] > 0.8  # a sample of the labelled rows stands for all
    assert len(many.ask(X_target, 7)) == 7
    many.update(X_target[rows], None)
    np.testing.assert_allclose(many.decision_function(X_target), before, atol=1e-8)
    labels = give_labels(y_target, rows)
    given = make_classifier(**options).fit(X, y, X_target, y_target=labels)
    assert not set(given.ask(X_target, 50)) & set(rows.tolist())
    given.update(X_target[rows], None)  # labels of the fit can be withdrawn too
    assert len(given.update_state_.labelled.codes) == 0


def test_labels_end_a_fallback():
    X, y, X_target, y_target = make_domains(200, 200)
    X, X_target = np.hstack([X, 0 * X]), np.hstack([0 * X_target, X_target])  # no column in common
    options = {"self_training": True}
    with pytest.warns(UndriftWarning, match="used the source-only classifier"):
        classifier = make_classifier(**options).fit(X, y, X_target)
    assert not any(w.any() for w in classifier.coef_[1:])
    assert len(classifier.ask(X_target, 5)) == 5
    with pytest.raises(ValueError, match="fell back to the source-only classifier"):
        classifier.update_target(X_target)  # which would end it without evidence
    assert classifier.update(X_target[:2], [None, None]).caution_["fell_back"]
    classifier.update(X_target[:1], y_target[:1])  # one label is enough
    assert not classifier.caution_["fell_back"]
    assert any(w.any() for w in classifier.coef_[1:])
    with pytest.warns(UndriftWarning, match="adapted nevertheless"):
        given = make_classifier(**options).fit(X, y, X_target, y_target=give_labels(y_target, np.arange(80)))
    assert not given.caution_["fell_back"]
