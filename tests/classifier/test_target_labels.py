"""Labels of target rows: learnt in fit and by update, against systems that are solved from scratch."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import expit

from undrift import MSDAClassifier, SelfTraining, load_model, save_model
from undrift.classifier import updating
from undrift.classifier.asking import choose_for_estimate, choose_for_predictions
from undrift.classifier.posterior import (
    LABEL_WEIGHTS,
    TARGET_PART,
    Evidence,
    Posterior,
    choose_label_weight,
    learn_evidence,
    remove_rows,
    take_source_rows,
    weigh_evidence,
)
from undrift.classifier.shares import Labelled, Rescored, estimate_shares
from undrift.errors import UndriftWarning


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


def make_classifier(**changes):
    settings = {"n_layers": 2, "noise": 0.4, "C": 1.0, "dtype": "float64", "random_state": 0}
    return MSDAClassifier(**(settings | changes))


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
        particular = np.sqrt(TARGET_PART) * self.rows
        is_labelled = np.concatenate([np.zeros(n, dtype=bool), has_label])
        both = np.hstack([self.rows, np.where(is_labelled[:, None], particular, 0.0)])
        weight = np.concatenate([state.weight[:n], np.where(has_label, 0.0, pseudo[1])])
        wanted = np.where(np.concatenate([y, pseudo[0]]) == 1, 1.0, -1.0)

        def solve(A):
            # minimise |w|^2 / 2 + C / 2 sum weight (wanted - w.h - b)^2 over w and b together
            train = weight > 0
            B = np.hstack([A, np.ones((len(A), 1))])[train] * np.sqrt(state.C * weight[train])[:, None]
            penalty = np.diag([1.0] * A.shape[1] + [0.0])
            return np.linalg.solve(B.T @ B + penalty, B.T @ (np.sqrt(state.C * weight) * wanted)[train])

        solution = solve(self.rows)
        before = (self.rows @ solution[:-1] + solution[-1])[is_labelled]
        # a step of Newton's method on the log loss of the labels; weight 1 is that of an undecided row
        p = expit((before + border) / state.temperature)
        variance = np.maximum(p * (1 - p), 0.01)
        weight[is_labelled] = 4 * label_weight * variance
        wanted[is_labelled] = before + state.temperature * (labels[has_label] - p) / variance
        solution = solve(both)
        self.scores = np.hstack([self.rows, particular]) @ solution[:-1] + solution[-1]  # as target rows


def find_border_of(state, rows, codes):
    """The border of the only target, whose shares are estimated from first scores and labels."""
    seen = Labelled(state.first_scores[rows], codes)
    held_out = state.held_out
    given = state.first_scores, held_out.scores, held_out.codes, 2, None, seen, held_out.transfer
    return updating.find_border(state.scores, state.temperature, estimate_shares(*given).mean)[0]


@pytest.mark.parametrize("self_training", [False, SelfTraining(n_rounds=2)])
@pytest.mark.parametrize("center", ["classes", "domains", False])
def test_update_equals_solving_again_with_the_labels(center, self_training):
    X, y, X_target, y_target = make_domains(shift=0.95)
    rows = np.arange(0, 120, 2)
    classifier = make_classifier(center=center, self_training=self_training).fit(X, y, X_target)
    classifier.update(X_target[rows], y_target[rows])
    assert classifier.label_weight_ > 0  # or the test would be about nothing
    border = find_border_of(classifier.update_state_, rows, y_target[rows]) if center == "classes" else 0.0
    labels = give_labels(y_target, rows)
    oracle = Oracle(classifier, X, y, X_target, labels, classifier.label_weight_, border)
    shift = classifier.decision_function(X_target) - oracle.scores[len(X) :]
    assert np.ptp(shift) < 1e-8  # up to the border, one number for the target
    if center != "classes":
        assert np.abs(shift).max() < 1e-8


def test_shares_are_estimated_again_with_labels_left_out():
    X, y, X_target, y_target = make_domains(shift=0.95, share=0.3)
    rows = np.arange(0, 90, 3)
    classifier = make_classifier(self_training=False).fit(X, y, X_target)
    classifier.update(X_target[rows], y_target[rows])
    state, labels = classifier.update_state_, give_labels(y_target, rows)
    given = classifier.label_weight_, find_border_of(state, rows, y_target[rows])
    left_out = []
    for row in rows:
        others = np.where(np.arange(len(labels)) == row, np.nan, labels)
        left_out.append(Oracle(classifier, X, y, X_target, others, *given).scores[len(X) + row])
    scores = Oracle(classifier, X, y, X_target, labels, *given).scores[len(X) :, None] / state.temperature
    seen = Rescored(np.array(left_out)[:, None] / state.temperature, y_target[rows], scores)
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
    assert refit.label_weight_ == updated.label_weight_ > 0
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
    assert classifier.label_weight_ == 0
    classifier.update(X_target[:10], None)  # nothing is left to withdraw
    np.testing.assert_allclose(classifier.decision_function(X_target), before, atol=1e-8)


def test_rows_of_another_precision_are_the_same_rows():
    X, y, X_target, y_target = make_domains()
    X_target += 0.1  # which float32 rounds
    classifier = make_classifier(dtype="float32").fit(X, y, X_target).update(X_target[:5], y_target[:5])
    has_label = classifier.update_state_.find_labelled([X_target], np.ones(len(X_target), dtype=int))
    assert np.flatnonzero(has_label).tolist() == [0, 1, 2, 3, 4]


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
    assert classifier.label_weight_ > 0


def test_few_labels_correct_the_shares():
    X, y, X_target, y_target = make_domains(600, 600, share=0.2, shift=0.8)
    before = make_classifier().fit(X, y, X_target)
    rows = np.arange(40)
    after = make_classifier().fit(X, y, X_target, y_target=give_labels(y_target, rows))
    truth = y_target.mean()
    assert abs(after.target_shares_[0][1] - truth) < abs(before.target_shares_[0][1] - truth) + 0.01
    low, high = (np.ptp(model.target_shares_interval_[0][1]) for model in (after, before))
    assert low < high  # labels make the shares more certain
    after.update(X_target[:40], None)
    assert after.target_shares_[0][1] != before.target_shares_[0][1] or after.label_weight_ == 0


def test_labels_help_where_domains_differ():
    errors = {0: [], 60: []}
    for seed in range(5):
        X, y, X_target, y_target = make_domains(200, 400, seed=seed, shift=0.95)
        for n, values in errors.items():
            labels = {"y_target": give_labels(y_target, np.arange(n))} if n else {}
            classifier = make_classifier(self_training=True).fit(X, y, X_target, **labels)
            values.append(np.mean(classifier.predict(X_target[60:]) != y_target[60:]))
    assert np.mean(errors[60]) < np.mean(errors[0]) - 0.02


def test_three_classes_and_two_targets():
    X, y, X_target, y_target = make_domains(150, 160, n_classes=3)
    targets, labels = [X_target[:80], X_target[80:]], [give_labels(y_target[:80], np.arange(30)), None]
    classifier = make_classifier(self_training=True).fit(X, y, targets, y_target=labels)
    assert classifier.predict(targets[1], sample_domain=-2).shape == (80,)
    classifier.update(targets[1][:9], y_target[80:89], sample_domain=-2)
    assert set(classifier.update_state_.labelled.domain.tolist()) == {1, 2}
    with pytest.raises(ValueError, match=r"has 2 targets, .*say by sample_domain"):
        classifier.update(targets[1][:9], y_target[80:89])
    with pytest.raises(ValueError, match=r"sample_domain holds \[-7\]"):
        classifier.update(targets[1][:9], y_target[80:89], sample_domain=-7)
    assert len(classifier.ask(targets[1], 5, sample_domain=-2)) == 5


def test_extra_features_are_updated():
    X, y, X_target, y_target = make_domains()
    extra, extra_target = X[:, :4] ** 2, X_target[:, :4] ** 2
    classifier = make_classifier().fit(X, y, X_target, extra=extra, extra_target=extra_target)
    classifier.update(X_target[:40], y_target[:40], extra=extra_target[:40])
    assert classifier.label_weight_ > 0
    before = classifier.decision_function(X_target, extra=extra_target)
    again = make_classifier().fit(X, y, X_target, extra=extra, extra_target=extra_target)
    again.update(X_target[:40], y_target[:40], extra=extra_target[:40])
    np.testing.assert_allclose(before, again.decision_function(X_target, extra=extra_target), atol=1e-8)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_rows_that_differ_in_extra_features_alone_are_labelled_apart(form):
    X, y, X_target, _ = make_domains()
    X_target[1] = X_target[2] = X_target[0]
    extra, extra_target = X[:, :4] ** 2, X_target[:, :4] ** 2
    extra_target[1] += 1  # and row 2 equals row 0
    classifier = make_classifier().fit(
        X, y, X_target, extra=[extra, X], extra_target=[extra_target, X_target]
    )

    def update(rows, labels):
        given = [form(extra_target[rows]), X_target[rows]]
        return classifier.update(X_target[rows], labels, extra=given).update_state_.labelled

    labelled = update([0, 1, 2], [0, 1, 0])
    assert labelled.codes.tolist() == [0, 1]
    assert (labelled.anchor - len(y)).tolist() == [0, 1]
    asked = classifier.ask(X_target, 150, extra=[form(extra_target), X_target])
    assert not np.isin([0, 1, 2], asked).any()
    assert update([1], [0]).codes.tolist() == [0, 0]
    assert update([0], [np.nan]).codes.tolist() == [0]
    asked = classifier.ask(X_target, 150, extra=[form(extra_target), X_target])
    assert np.isin([0, 1, 2], asked).tolist() == [True, False, False]
    with pytest.raises(ValueError, match="given twice, with different labels"):
        update([0, 2], [0, 1])


@pytest.mark.parametrize("largest", [1, 5])
def test_saved_rows_are_known_by_their_extra_features(largest, tmp_path, monkeypatch):
    monkeypatch.setattr(updating, "LARGE_COLUMNS", 0)
    X, y, X_target, y_target = make_domains()
    rng = np.random.RandomState(0)
    extra, extra_target = rng.uniform(size=(120, 4)), rng.uniform(size=(150, 4))
    extra[0] = largest  # 16 bits are for rows that are bounded by 1
    classifier = make_classifier().fit(X, y, X_target, extra=extra, extra_target=extra_target)
    classifier.update(X_target[:30], y_target[:30], extra=extra_target[:30])
    save_model(classifier, tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert (loaded.update_state_.columns[-1].dtype == np.float16) == (largest == 1)
    loaded.update(X_target[:30], 1 - y_target[:30], extra=extra_target[:30])
    assert loaded.update_state_.labelled.codes.tolist() == (1 - y_target[:30]).tolist()


def test_hinge_learns_labels_but_is_not_updated():
    X, y, X_target, y_target = make_domains()
    labels = give_labels(y_target, np.arange(80))
    with_labels = make_classifier(classifier="hinge", center=False).fit(X, y, X_target, y_target=labels)
    without = make_classifier(classifier="hinge", center=False).fit(X, y, X_target)
    both = make_classifier(classifier="hinge", center=False).fit(
        np.vstack([X, X_target[:80]]), np.concatenate([y, y_target[:80]]), X_target
    )
    assert np.abs(with_labels.decision_function(X) - without.decision_function(X)).max() > 0.01
    assert with_labels.coef_[0].shape == both.coef_[0].shape
    with pytest.raises(ValueError, match="no update state"):
        with_labels.update(X_target[:3], y_target[:3])


@pytest.mark.parametrize(("large", "tolerance"), [(2**23, 1e-4), (0, 1e-3)])
def test_saved_models_are_updated(large, tolerance, tmp_path, monkeypatch):
    monkeypatch.setattr(updating, "LARGE_COLUMNS", large)  # hidden rows of 32 or 16 bits
    X, y, X_target, y_target = make_domains(shift=0.95)
    classifier = make_classifier(dtype="float32", self_training=True)
    classifier.fit(
        sp.csr_matrix(X), y, sp.csr_matrix(X_target), y_target=give_labels(y_target, np.arange(20))
    )
    save_model(classifier, tmp_path / "model")
    save_model(classifier, tmp_path / "small", update_state=False)
    assert (tmp_path / "small").stat().st_size < (tmp_path / "model").stat().st_size
    assert classifier.update_state_ is not None  # saving without it takes nothing away
    loaded, new = load_model(tmp_path / "model"), sp.csr_matrix(X_target[20:50])
    inverse = classifier.update_state_.inverse
    np.testing.assert_array_equal(loaded.update_state_.inverse, np.float32(inverse))
    assert classifier.update_state_.shrink().inverse.size == len(inverse) * (len(inverse) + 1) // 2
    for model in (loaded, classifier):
        model.update(new, y_target[20:50])
    assert classifier.label_weight_ > 0
    assert (loaded.update_state_.labelled.anchor >= 0).all()  # rows of the fit are recognised
    np.testing.assert_allclose(
        loaded.decision_function(X_target), classifier.decision_function(X_target), atol=tolerance
    )
    save_model(loaded, tmp_path / "again")
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
    with pytest.warns(UndriftWarning, match="harder than the target of the fit"):
        classifier.update_target(np.random.RandomState(0).poisson(1.0, size=batch.shape).astype(float))


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


def test_labels_after_a_batch_are_weighed_at_its_border(monkeypatch):
    X, y, X_target, y_target = make_domains(600, 600, shift=0.2)
    batch = make_domains(600, 600, shift=0.2, share=0.15)[2]
    classifier = make_classifier().fit(X, y, X_target).update_target(batch)
    seen = []
    monkeypatch.setattr(
        updating, "weigh_evidence", lambda *given: seen.append(given[0]) or weigh_evidence(*given)
    )
    monkeypatch.setattr(
        updating, "Rescored", lambda scores, codes, target: None
    )  # the last shares: no labels
    monkeypatch.setattr(updating, "Labelled", lambda scores, codes: None)  # the first ones likewise
    monkeypatch.setattr(updating, "choose_label_weight", lambda measure: 0.0)
    classifier.update(X_target[:30], y_target[:30])
    # labels of weight 0 leave the classifier as it was, and the border is what its scores are shifted by
    np.testing.assert_allclose(seen[0], classifier.decision_function(X_target[:30])[:, None], atol=1e-8)


@pytest.mark.parametrize(
    ("y_target", "message"),
    [
        ([1.0, 0.0], "y_target has 2 entries for 150 target rows"),
        (["x"] * 150, "y_target holds 'x', which is not a class of the source; the classes are 0, 1"),
    ],
)
def test_bad_labels_are_refused(y_target, message):
    X, y, X_target, _ = make_domains()
    with pytest.raises(ValueError, match=message):
        make_classifier().fit(X, y, X_target, y_target=y_target)


def test_labels_need_target_rows_and_no_sample_domain():
    X, y, X_target, y_target = make_domains()
    with pytest.raises(ValueError, match="y_target goes with X_target, which is missing"):
        make_classifier().fit(X, y, y_target=y_target)
    with pytest.raises(ValueError, match="not with sample_domain"):
        make_classifier().fit(X, y, y_target=y, sample_domain=np.where(y, 0, -1))
    with pytest.raises(ValueError, match="y_target holds classes, but y holds tags"):
        make_classifier().fit(X, np.column_stack([y, 1 - y]), X_target, y_target=y_target)
    with pytest.raises(ValueError, match="y_target must be one too"):
        make_classifier().fit(X, y, [X_target], y_target=y_target)
    classifier = make_classifier().fit(X, y, X_target)
    with pytest.raises(ValueError, match="given twice, with different labels"):
        classifier.update(X_target[[0, 0]], [0, 1])
    with pytest.raises(ValueError, match="purpose"):
        classifier.ask(X_target, 3, "fun")


def test_posterior_is_that_of_a_gaussian_process():
    rng = np.random.RandomState(0)
    H, other, noise = rng.normal(size=(30, 5)), rng.normal(size=(4, 5)), rng.uniform(0.5, 2, size=30)
    large = 1e7  # a wide prior of the intercept stands for a free one
    K = H @ H.T + large
    P = np.linalg.inv(H @ H.T + np.diag(noise))
    rows = Posterior(P).condition(H @ other.T)
    cross = other @ H.T + large
    expected = other @ other.T + large - cross @ np.linalg.solve(K + np.diag(noise), cross.T)
    np.testing.assert_allclose(rows.covariance(rows, other @ other.T), expected, rtol=1e-3, atol=1e-3)


def test_labels_leave_one_row_out():
    rng = np.random.RandomState(1)
    A, precision, residual = rng.normal(size=(8, 8)), rng.uniform(0.5, 2, (8, 2)), rng.normal(size=(8, 2))
    S, f = A @ A.T, rng.normal(size=(8, 2))
    learning = learn_evidence(S, f, Evidence(precision, residual), 0.7)
    for k in range(2):
        noise = np.diag(1 / (0.7 * precision[:, k]))
        np.testing.assert_allclose((S + noise) @ learning.g[:, k], residual[:, k])
        for i in range(8):
            others = np.delete(np.arange(8), i)
            M = (S + noise)[np.ix_(others, others)]
            expected = f[i, k] + S[i, others] @ np.linalg.solve(M, residual[others, k])
            np.testing.assert_allclose(learning.left_out[i, k], expected)


@pytest.mark.parametrize("code", [0, 1])
def test_evidence_is_the_log_loss_to_second_order(code):
    f, temperature, C, h = 0.4, 0.7, 1.3, 1e-4
    seen = weigh_evidence(np.array([[f]]), np.array([code]), temperature, C)

    def loss(score):
        return -np.log(expit(score / temperature if code else -score / temperature))

    # precision / 2 (residual - change)^2 has the slope and the curvature of the loss, times a constant
    slope = (loss(f + h) - loss(f - h)) / (2 * h)
    curvature = (loss(f + h) - 2 * loss(f) + loss(f - h)) / h**2
    assert seen.residual[0, 0] == pytest.approx(-slope / curvature, rel=1e-5)
    undecided = weigh_evidence(np.array([[0.0]]), np.array([code]), temperature, C)
    assert undecided.precision[0, 0] == pytest.approx(C)  # that of a labelled source row
    assert seen.precision[0, 0] / C == pytest.approx(4 * temperature**2 * curvature, rel=1e-5)


def test_evidence_of_several_classes_is_that_of_each_against_the_rest():
    scores, codes = np.random.RandomState(5).normal(size=(4, 3)), np.array([0, 1, 2, 1])
    seen = weigh_evidence(scores, codes, 0.6, 1.0)
    p = np.exp(scores / 0.6) / np.exp(scores / 0.6).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(seen.precision, 4 * np.maximum(p * (1 - p), 0.01))
    np.testing.assert_allclose(seen.precision * seen.residual / 4, 0.6 * (np.eye(3)[codes] - p))


def test_source_rows_are_left_out_exactly():
    rng = np.random.RandomState(4)
    n, m, part = 20, 5, 0.3
    H, wanted, J = rng.normal(size=(n + 8, 3)), rng.normal(size=(n + 8, 1)), n + np.arange(m)
    weight = np.concatenate([rng.uniform(0.5, 2, n), [0.5] * 8])  # the last 8 rows have pseudo-labels
    posterior = Posterior(np.linalg.inv(H @ H.T + np.diag(1 / weight)))
    rows = posterior.condition(H @ H[J].T)
    covariance, K = rows.covariance(rows, H[J] @ H[J].T), H[J] @ H[J].T

    def solve(without=None, pseudo=True, labels=None):
        """Explicit features: shared ones, those of labelled target rows, an intercept."""
        H_all, w, z = np.hstack([H, np.zeros((n + 8, 3))]), weight.copy(), wanted[:, 0].copy()
        if not pseudo:
            w[J] = 0
        if labels is not None:
            w[J], z[J], H_all[J, 3:] = labels[0], labels[1], np.sqrt(part) * H[J]
        if without is not None:
            w[without] = 0
        A, penalty = np.hstack([H_all, np.ones((n + 8, 1))]), np.diag([1.0] * 6 + [0.0])
        solution = np.linalg.solve(A.T @ (w[:, None] * A) + penalty, A.T @ (w * z))
        return np.hstack([H, np.zeros((n + 8, 3)), np.ones((n + 8, 1))]) @ solution  # as source rows

    before = weight[J]
    apart = remove_rows(covariance, solve()[J][:, None], before, before[:, None] * wanted[J])
    np.testing.assert_allclose(apart.scores[:, 0], solve(pseudo=False)[J], atol=1e-8)
    seen = Evidence(rng.uniform(0.5, 2, (m, 1)), rng.normal(size=(m, 1)))
    source = take_source_rows(posterior, rows, wanted, n)
    for strength in (0.0, 0.7):
        learning = learn_evidence(apart.covariance + part * K, apart.scores, seen, strength)
        scores = source.score_left_out(apart, learning)
        labels = strength * seen.precision[:, 0], (apart.scores + seen.residual)[:, 0]
        expected = [solve(without=i, labels=labels)[i] for i in range(n)]
        np.testing.assert_allclose(scores[:, 0], expected, atol=1e-8)


def test_rows_are_removed_exactly():
    rng = np.random.RandomState(2)
    A = rng.normal(size=(6, 6))
    prior, precision, Y = A @ A.T, rng.uniform(0.1, 2, 6), rng.normal(size=(6, 1))
    precision[2] = 0.0
    after = np.linalg.inv(np.linalg.inv(prior) + np.diag(precision))
    mean = after @ (precision[:, None] * Y)
    removed = remove_rows(after, mean, precision, precision[:, None] * Y)
    np.testing.assert_allclose(removed.covariance, prior, atol=1e-8)
    np.testing.assert_allclose(removed.scores, 0, atol=1e-8)
    g = rng.normal(size=(6, 1))  # coefficients in terms of the prior covariance
    np.testing.assert_allclose(mean + after @ removed.restore(g), prior @ g, atol=1e-8)


def test_weight_of_labels_is_chosen_by_labels_left_out():
    noise = np.random.RandomState(3).normal(size=(2, 40))

    def choose(target, source, n_source=4000):
        """Losses of both domains by weight, those of the first weight are around 1."""

        def measure(weight):
            means = target.get(weight, 1.0), source.get(weight, 1.0)
            spread = 0.3 if weight == 4 else 0.0
            return means[0] + spread * noise[0], np.full(n_source, means[1])

        return choose_label_weight(measure)

    assert choose({}, {}) == 4
    assert choose({1.0: 0.95}, {}) == 4  # within what chance does
    assert choose({1.0: 0.5}, {}) == 1
    assert choose({1.0: 0.5, 8.0: 0.6}, {1.0: 1.3}) == 8  # the source has a say
    assert choose({1.0: 0.5}, {1.0: 1.6}) == 4
    assert choose({}, {0.0: 0.5}) == 0
    # both count alike, however many rows there are
    assert choose({1.0: 0.5}, {1.0: 1.3}, n_source=40) == choose({1.0: 0.5}, {1.0: 1.3}) == 1


def test_few_labels_have_no_weight():
    X, y, X_target, y_target = make_domains()
    classifier = make_classifier().fit(X, y, X_target).update(X_target[:24], y_target[:24])
    assert classifier.label_weight_ == 0
    assert classifier.update(X_target[24:25], y_target[24:25]).label_weight_ > 0


def test_labels_are_learnt_once_with_every_weight(monkeypatch):
    X, y, X_target, y_target = make_domains()
    classifier, weights = make_classifier().fit(X, y, X_target), []

    def learn(*given):
        weights.append(given[-1])
        return learn_evidence(*given)

    monkeypatch.setattr(updating, "learn_evidence", learn)
    classifier.update(X_target[:30], y_target[:30])
    assert classifier.label_weight_ > 0
    assert sorted(weights) == sorted(LABEL_WEIGHTS)


def test_held_out_rows_of_both_domains_choose_the_weight(monkeypatch):
    X, y, X_target, y_target = make_domains(200, 200, shift=0.2)
    seen = []

    def choose(measure):
        seen.append([measure(weight) for weight in (4.0, 0.0)])
        return 4.0

    classifier = make_classifier().fit(X, y, X_target)
    monkeypatch.setattr(updating, "choose_label_weight", choose)
    classifier.update(X_target[:60], y_target[:60])
    (of_target, of_source), (_, of_source_alone) = seen[0]
    assert (len(of_target), len(of_source)) == (60, 200)
    # without weight a source row is scored as one that was held out
    held_out = classifier.update_state_.held_out
    p = expit(np.where(held_out.codes == 1, 1, -1) * held_out.scores[:, 0] / held_out.temperature)
    assert of_source_alone.mean() == pytest.approx(-np.log(p).mean(), rel=0.2)
    assert of_source.mean() != of_source_alone.mean()


def test_chosen_rows_are_undecided_and_apart():
    S = np.kron(np.eye(3), np.ones((4, 4))) + 1e-3 * np.eye(12)
    p = np.tile([0.5, 0.5], (12, 1))
    p[:4] = [0.999, 0.001]
    chosen = choose_for_predictions(S, p, 0.5, 2)
    assert sorted(chosen // 4) == [1, 2]  # one of either undecided group


def test_estimates_are_stratified():
    is_changed = np.arange(100) < 10
    rows, weights = choose_for_estimate(is_changed, np.ones(100), 20, np.random.RandomState(0))
    assert (rows < 10).sum() == 10
    assert weights.sum() == pytest.approx(100)
    assert set(weights.tolist()) == {1.0, 9.0}
    rows, weights = choose_for_estimate(None, np.ones(100), 20, np.random.RandomState(0))
    assert len(rows) == 20
    assert (weights == 5).all()


def test_rows_in_16_bits_are_multiplied_as_32():
    assert updating._lift(np.ones((2, 2), dtype=np.float16)).dtype == np.float32


@pytest.mark.parametrize("many", [False, True])
def test_a_sample_of_rows_is_drawn_once_for_all_parts_of_the_state(monkeypatch, many):
    X, y, X_target, _ = make_domains(300, 300)
    monkeypatch.setattr("undrift.classifier.update_state.ANCHOR_LIMIT", 100)
    monkeypatch.setattr("undrift.classifier.update_state.STATE_ROWS", 80)
    if many:
        monkeypatch.setattr("undrift.classifier.two_stage.GRAM_LIMIT", 200)
    random_state = np.random.RandomState(0)  # a second draw would be another one
    state = make_classifier(random_state=random_state).fit(X, y, X_target).update_state_
    assert (len(state.domain), state.n_source) == (160, 80)
    columns = [A[80:] for A in state.columns]
    means = np.sum([m[1] @ w for m, w in zip(state.means, state.weights, strict=True)], axis=0)
    scores = updating.score_columns(columns, state.weights) + state.intercept - means
    np.testing.assert_allclose(scores, state.scores, atol=1e-8)


@pytest.mark.parametrize("form", ["list", "table"])
def test_rows_may_be_lists_or_tables_as_for_predict(form):
    X, y, X_target, y_target = make_domains()
    pandas = pytest.importorskip("pandas")
    make = {"list": np.ndarray.tolist, "table": lambda X: pandas.DataFrame(X).add_prefix("column ")}[form]
    expected = make_classifier().fit(X, y, X_target)
    classifier = make_classifier().fit(make(X), y, [pandas.DataFrame(make(X_target))])
    for model, rows in ((expected, np.asarray), (classifier, make)):
        model.update(rows(X_target[:30]), y_target[:30])
        model.update_target(rows(X_target[30:]))
    np.testing.assert_allclose(classifier.coef_[0], expected.coef_[0], atol=1e-8)
    assert classifier.expected_error_ == expected.expected_error_
    for purpose in ("predictions", "estimate"):
        assert (
            classifier.ask(make(X_target), 5, purpose).tolist() == expected.ask(X_target, 5, purpose).tolist()
        )


@pytest.mark.parametrize("purpose", ["predictions", "estimate"])
def test_nothing_is_asked_where_every_row_has_a_label(purpose):
    X, y, X_target, y_target = make_domains(60, 40)
    classifier = make_classifier().fit(X, y, X_target).update(X_target, y_target)
    rows, weights = classifier.ask(X_target, 5, purpose, return_weights=True)
    assert len(rows) == len(weights) == 0


@pytest.mark.parametrize("n_targets", [1, 2])
def test_probabilities_of_the_source_have_the_temperature_of_held_out_rows(n_targets):
    X, y, X_target, _ = make_domains()
    classifier = make_classifier().fit(X, y, [X_target] * n_targets)
    assert classifier.temperatures_[0, 0] == pytest.approx(classifier.update_state_.held_out.temperature)


@pytest.mark.parametrize("self_training", [False, True])
@pytest.mark.parametrize("center", ["classes", "domains"])
def test_more_labelled_rows_than_a_gram_matrix_holds(monkeypatch, center, self_training):
    X, y, X_target, y_target = make_domains(300, 300, shift=0.95)
    rows = np.arange(0, 120, 2)
    options = {"center": center, "self_training": self_training}
    exact = make_classifier(**options).fit(X, y, X_target).update(X_target[rows], y_target[rows])
    monkeypatch.setattr("undrift.classifier.two_stage.GRAM_LIMIT", 200)
    many = make_classifier(**options).fit(X, y, X_target)
    before = many.decision_function(X_target)
    many.update(X_target[rows], y_target[rows])
    changed, wanted = many.decision_function(X_target) - before, exact.decision_function(X_target) - before
    assert many.label_weight_ > 0
    assert np.corrcoef(changed, wanted)[0, 1] > 0.8  # a sample of the labelled rows stands for all
    assert len(many.ask(X_target, 7)) == 7
    many.update(X_target[rows], None)
    np.testing.assert_allclose(many.decision_function(X_target), before, atol=1e-8)
    labels = give_labels(y_target, rows)
    given = make_classifier(**options).fit(X, y, X_target, y_target=labels)
    assert not set(given.ask(X_target, 50)) & set(rows.tolist())
    with pytest.raises(ValueError, match="can be changed but not withdrawn"):
        given.update(X_target[rows[:2]], None)


def test_labels_end_a_fallback():
    X, y, X_target, y_target = make_domains(200, 200)
    X, X_target = np.hstack([X, 0 * X]), np.hstack([0 * X_target, X_target])  # no column in common
    options = {"self_training": True, "fallback": True}
    with pytest.warns(UndriftWarning, match="used the source-only classifier"):
        classifier = make_classifier(**options).fit(X, y, X_target)
    assert not any(w.any() for w in classifier.coef_[1:])
    assert len(classifier.ask(X_target, 5)) == 5
    with pytest.raises(ValueError, match="fell back to the source-only classifier"):
        classifier.update_target(X_target)  # which would end it without evidence
    classifier.update(X_target[:80], y_target[:80])
    assert not classifier.caution_["fell_back"]
    assert any(w.any() for w in classifier.coef_[1:])
    with pytest.warns(UndriftWarning, match="adapted nevertheless"):
        given = make_classifier(**options).fit(X, y, X_target, y_target=give_labels(y_target, np.arange(80)))
    assert not given.caution_["fell_back"]


def test_a_model_fitted_on_another_device_is_updated_alike():
    pytest.importorskip("torch")
    X, y, X_target, y_target = make_domains(shift=0.95)
    here, there = (
        make_classifier(self_training=True, device=device).fit(sp.csr_matrix(X), y, sp.csr_matrix(X_target))
        for device in ("cpu", "torch:cpu")
    )
    np.testing.assert_array_equal(here.ask(X_target, 6), there.ask(X_target, 6))
    for classifier in (here, there):
        classifier.update(X_target[:40], y_target[:40])
    np.testing.assert_allclose(there.decision_function(X_target), here.decision_function(X_target), atol=1e-9)
