"""Labels of target rows: learnt in fit and by update, withdrawn, asked for."""

from copy import copy
from dataclasses import FrozenInstanceError, fields, is_dataclass, replace
from importlib import import_module

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import softmax

from tests.helpers.exact import ExactClassifier
from tests.helpers.watch import watch_layers
from undrift import MSDAClassifier, UndriftWarning, load_model, save_model
from undrift.method import classifier as module
from undrift.method.asking import (
    choose_for_estimate,
    choose_questions,
    draw_rows,
    list_chances,
    weigh_draws,
)
from undrift.method.jury import estimate, leave_one_out, measure_information, mix, weigh
from undrift.method.settings import Settings
from undrift.results import find_suspects

judge_module = import_module("undrift.method.judge")


def make_domains(n_source=90, n_target=70, seed=0, shift=0.6, share=0.5, n_classes=2):
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


def make(kind=ExactClassifier, **changes):
    return kind(**({"n_layers": 2, "noise": 0.4, "random_state": 0} | changes))


def check_equal(first, second, rows, atol=1e-5, **options):
    assert_allclose(first.predict_proba(rows, **options), second.predict_proba(rows, **options), atol=atol)
    for name, known in first.targets_.items():
        other = second.targets_[name]
        assert known["shares"] == pytest.approx(other["shares"], abs=atol)
        assert known["expected_error"] == pytest.approx(other["expected_error"], abs=atol)
        weights = [[r["weight"] for r in each.readings_[name]] for each in (first, second)]
        assert_allclose(*weights, atol=atol)
        assert [r["name"] for r in first.readings_[name]] == [r["name"] for r in second.readings_[name]]


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("is_copied", [False, True])
def test_update_equals_fit_with_the_same_labels(n_classes, is_copied):
    X, y, Z, z = make_domains(n_classes=n_classes)
    refit = make().fit(X, y, Z, y_target=give_labels(z, np.arange(16)))
    updated = make().fit(X, y, Z, y_target=give_labels(z, np.arange(6)))
    before = updated.predict_proba(Z)
    changed = (copy(updated) if is_copied else updated).update(Z[6:16], z[6:16])
    check_equal(changed, refit, Z)
    assert np.abs(changed.predict_proba(Z) - before).max() > 0.01
    if is_copied:
        assert_array_equal(updated.predict_proba(Z), before)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_what_labels_do_not_change_is_read_once(n_classes, tmp_path):
    X, y, Z, z = make_domains(n_classes=n_classes)
    save_model(make(MSDAClassifier).fit(X, y, Z), tmp_path / "model", updatable=True)
    loaded = load_model(tmp_path / "model").update(Z[:6], None)
    first = loaded._last
    assert first.learnt.level.hidden is not None
    for n in (6, 9):
        each = copy(loaded).update(Z[:n], z[:n])
        last = each._last
        assert last.evidence.conditioned is first.evidence.conditioned
        assert last.verdict.stories is first.verdict.stories
        known = {id(reading) for reading in first.verdict.unlabelled}
        assert sum(id(reading) in known for reading in last.verdict.unlabelled) == len(known)
        again = [reading.story.name for reading in last.verdict.readings if id(reading) not in known]
        assert "source only" not in again
        assert len(again) == len(last.verdict.readings) - 1  # all but that of the source alone learn labels
        check_equal(each, load_model(tmp_path / "model").update(Z[:n], z[:n]), Z, atol=1e-12)


def test_a_loaded_model_and_its_copies_read_every_row_once(tmp_path):
    X, y, Z, _ = make_domains()
    new, z_new = make_domains(seed=3)[2:]
    model = make(MSDAClassifier).fit(X, y, Z).update_target(Z[:30])
    save_model(model, tmp_path / "model", updatable=True)
    loaded = load_model(tmp_path / "model")
    before, expected = loaded.predict_proba(Z), loaded.predict(Z)
    loaded.representation_.layers_, read = watch_layers(loaded.representation_.layers_)
    assert loaded.recall() is loaded.recall()
    assert_array_equal(loaded.predict_kept(), expected)
    assert read == [len(X) + len(Z)] * 2
    read.clear()
    updated = [copy(loaded).update(new[:n], z_new[:n]) for n in (6, 9)]
    assert read == [6, 6, 9, 9]
    assert_array_equal(loaded.predict_proba(Z), before)
    for n, each in zip((6, 9), updated, strict=True):
        check_equal(each, load_model(tmp_path / "model").update(new[:n], z_new[:n]), Z, atol=2e-4)
        assert_array_equal(each.predict_kept(), each.predict(np.vstack([Z, new[:n]])))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_kept_rows_of_every_target_are_predicted_as_others_where_classes_count_alike(n_classes):
    X, y, Z, z = make_domains(n_classes=n_classes)
    uneven = np.concatenate([np.flatnonzero(z == 0), np.flatnonzero(z > 0)[:10]])
    shares = dict(enumerate([0.94, *[0.06 / (n_classes - 1)] * (n_classes - 1)]))
    model = make(border="balanced", target_shares={"uneven": shares})
    model.fit(X, y, {"even": Z, "uneven": Z[uneven]})
    for name in ("even", "uneven"):
        rows = model.list_rows(name)
        assert_array_equal(model.predict_kept(name), model.predict(rows, target=name))
    likeliest = model.classes_[model.predict_proba(rows, target=name).argmax(axis=1)]
    assert (model.predict_kept(name) != likeliest).any()


def test_a_label_of_a_class_that_the_source_lacks_stops_no_other():
    X, y, Z, z = make_domains(n_classes=3)
    expected, model = (make().fit(X, y, Z) for _ in range(2))
    expected.update(Z[:8], z[:8])
    with pytest.warns(UndriftWarning, match=r"y: 2 labels left out, .* source lacks \(7, 9\)"):
        model.update(Z[:10], [*z[:8], 7, 9])
    check_equal(model, expected, Z)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_saved_models_are_updated(n_classes, tmp_path):
    X, y, Z, z = make_domains(n_classes=n_classes)
    model = make(MSDAClassifier).fit(X, y, Z, y_target=give_labels(z, np.arange(5)))
    save_model(model, tmp_path / "model", updatable=True)
    save_model(model, tmp_path / "small")
    assert (tmp_path / "small").stat().st_size < (tmp_path / "model").stat().st_size
    assert model.memory_ is not None  # saving without it takes nothing away
    loaded = load_model(tmp_path / "model")
    assert_array_equal(loaded.ask(Z, 9), model.ask(Z, 9))
    for each in (loaded, model):
        each.update(Z[5:15], z[5:15])
    check_equal(loaded, model, Z, atol=2e-4)  # inner products are summed again, in float32
    assert len(loaded.list_labelled()[1]) == 15
    assert len(loaded.memory_.anchors.codes) == len(X) + len(Z)  # rows of the fit are recognised
    with pytest.raises(ValueError, match=r"no memory of its rows.*save it with updatable=True$"):
        load_model(tmp_path / "small").update(Z[5:15], z[5:15])


@pytest.mark.parametrize("n_classes", [2, 3])
def test_labels_are_changed_and_withdrawn(n_classes):
    X, y, Z, z = make_domains(n_classes=n_classes)
    model = make().fit(X, y, Z)
    first = copy(model)
    model.update(Z[:20], (z[:20] + 1) % n_classes).update(Z[:20], z[:20])
    check_equal(model, copy(first).update(Z[:20], z[:20]), Z)
    model.update(Z[:8], None).update(Z[8:20], [None] * 12)
    check_equal(model, first, Z)
    assert len(model.list_labelled()[1]) == 0
    check_equal(model.update(Z[:10], None), first, Z)  # nothing is left to withdraw


def test_rows_that_the_fit_has_not_seen_are_added():
    X, y, Z, z = make_domains()
    new, z_new = make_domains(seed=3)[2:]
    model = make().fit(X, y, Z)
    joined = copy(model).update(np.vstack([Z[:10], new[:12]]), np.concatenate([z[:10], z_new[:12]]))
    one_by_one = copy(model).update(new[:12], z_new[:12]).update(Z[:10], z[:10])
    check_equal(joined, one_by_one, Z)
    assert len(joined.memory_.anchors.codes) == len(X) + len(Z) + 12
    rows, labels = joined.list_labelled()
    assert_array_equal(labels, np.concatenate([z[:10], z_new[:12]]))
    assert_array_equal(rows, np.vstack([Z[:10], new[:12]]))
    assert len(model.list_rows()) == len(Z)
    # against everything above the layers written out again with the rows in the target
    memory = joined.memory_
    n, domain = len(X), memory.anchors.domain
    assert_array_equal(domain[n:], 1)
    layers = [memory.anchors.X, *joined.representation_.hidden(memory.anchors.X)]
    centred = [H - np.asarray(means)[domain] for H, means in zip(layers, memory.stack.means, strict=True)]
    K = sum(share * H @ H.T for share, H in zip(memory.stack.shares, centred, strict=True))
    products = joined._last.learnt.level.gram.products
    assert_allclose(np.asarray(products)[: len(domain), : len(domain)], K, rtol=1e-6, atol=1e-8)


def test_one_of_two_targets_has_labels():
    X, y, Z, z = make_domains(90, 80, n_classes=3)
    targets = {"a": Z[:40], "b": Z[40:]}
    model = make().fit(X, y, targets, y_target={"a": give_labels(z[:40], np.arange(12))})
    assert len(model.list_labelled("a")[1]) == 12
    assert len(model.list_labelled("b")[1]) == 0
    names = [reading["name"] for reading in model.readings_["b"]]
    weights = {k: [reading["weight"] for reading in model.readings_[k]] for k in "ab"}
    assert weights["b"][names.index("labels")] == 0  # nobody has seen labels of it
    assert weights["a"][names.index("labels")] == pytest.approx(12 / (12 + 25))
    for own in weights.values():
        assert sum(own) == pytest.approx(1)
    model.update(targets["b"][:9], z[40:49], target="b")
    known = {"a": give_labels(z[:40], np.arange(12)), "b": give_labels(z[40:], np.arange(9))}
    both = make().fit(X, y, targets, y_target=known)
    for name, rows in targets.items():
        check_equal(model, both, rows, target=name)
    for options, message in (
        ({}, "has 2 targets; name one of them: target='a', 'b'"),
        ({"target": "c"}, "target='c' is not among them"),
        ({"target": "source"}, r"names a source, but the targets are \['a', 'b'\]"),
    ):
        with pytest.raises(ValueError, match=message):
            model.update(targets["b"][:9], z[40:49], **options)
    with pytest.raises(ValueError, match="given twice, with different labels"):
        model.update(targets["b"][[0, 0]], [0, 1], target="b")


def test_a_reading_that_one_target_hears_is_kept_for_all():
    X, y, Z, z = make_domains(90, 80, n_classes=3)
    targets, known = {"a": Z[:40], "b": Z[40:]}, {"a": give_labels(z[:40], np.arange(12))}
    before = make().fit(X, y, targets)
    weighed = before.weigh(Z[:12], z[:12], target="a")
    told = {reading["name"]: reading["weight"] for reading in before.readings_["b"]}
    votes = np.array([[reading["weight"], told[reading["name"]]] for reading in weighed])
    highest, mean = votes.max(axis=1), votes.mean(axis=1)
    only = np.argmax(highest - mean)
    least = (highest[only] + mean[only]) / 2

    class Narrow(ExactClassifier):
        def make_settings(self):
            settings = super().make_settings()
            return replace(settings, votes=replace(settings.votes, least=least))

    after = make(Narrow).fit(X, y, targets, y_target={**known, "b": np.full(40, np.nan)})
    names = {reading["name"] for reading in after.readings_["b"]} - {"labels"}
    heard = {weighed[i]["name"] for i in np.flatnonzero(highest >= least)}
    assert names == heard
    assert weighed[only]["name"] in names
    assert len(names) < len(weighed)


def test_votes_after_labels_are_those_of_bayes_rule_and_leave_the_model_alone():
    X, y, Z, z = make_domains(shift=0.9)
    model = make().fit(X, y, Z)
    before, readings = model.predict_proba(Z), model.readings_["target"]
    weighed = model.weigh(Z[:8], [*z[:7], None])
    p, votes = model.find_readings(Z[:7]), model.model_.votes[1]
    likelihood = np.prod(0.8 * p[:, np.arange(7), z[:7]] + 0.1, axis=1)
    expected = votes * likelihood / (votes @ likelihood)
    assert_allclose([reading["weight"] for reading in weighed], expected, rtol=1e-6)
    assert [reading["name"] for reading in weighed] == model.model_.names
    assert_array_equal(model.predict_proba(Z), before)
    assert model.readings_["target"] is readings
    updated = copy(model).update(Z[:7], z[:7]).readings_["target"]
    assert updated[-1]["name"] == "labels"
    assert updated[-1]["weight"] == pytest.approx(7 / (7 + 25))
    assert sum(reading["weight"] for reading in updated) == pytest.approx(1)


@pytest.mark.parametrize("is_own_seen", [False, True])
def test_a_labelled_row_is_scored_by_votes_that_have_not_seen_its_label(is_own_seen):
    X, y, Z, z = make_domains(n_classes=3, shift=0.9)
    model, rows = make().fit(X, y, Z), np.arange(12)
    verdict = model._last.verdict
    (prior,), (p,) = verdict.votes, verdict.p
    given = p[:, rows, z[:12]]
    after = weigh(prior, given, 3, 0.2)
    votes = np.tile(after, (12, 1)) if is_own_seen else leave_one_out(prior, given, 3, 0.2)
    labelled = np.einsum("lr,rlc->lc", votes, p[:, rows])
    expected = estimate(mix(after, p), labelled, z[:12], Settings().votes)
    model.update(Z[:12], z[:12])
    is_told = np.isclose(model.expected_error_[0]["error"], expected.error, atol=1e-6)
    assert is_told != is_own_seen
    if is_told:
        assert_allclose(list(model.target_shares_[0].values()), expected.shares, atol=1e-6)


# -- labels move what is said the right way --


def test_labels_win_over_the_expected_error():
    """Labels contradict the scores: the error is near what they say, within its interval."""
    X, y, Z, z = make_domains(150, 400, shift=0.2)
    model = make(n_layers=1).fit(X, y, Z)
    expected = model.expected_error_[0]["error"]
    rng = np.random.RandomState(1)
    labels = np.where(rng.uniform(size=400) < 0.4, 1 - z, z)
    model.update(Z[:150], labels[:150])
    truth = np.mean(model.predict(Z[150:]) != labels[150:])
    measured = model.expected_error_[0]
    assert truth > expected + 0.05
    assert measured["error"] > expected + 0.05
    assert measured["low"] < truth < measured["high"]


def test_a_few_labels_bring_the_shares_of_an_uneven_target():
    X, y, Z, z = make_domains(150, 300, shift=0.8, share=0.15, seed=2)
    model = make(n_layers=1).fit(X, y, Z)
    far = abs(model.target_shares_[0][1] - z.mean())
    error = np.mean(model.predict(Z[40:]) != z[40:])
    model.update(Z[:40], z[:40])
    assert abs(model.target_shares_[0][1] - z.mean()) < max(far, 0.06)
    assert np.mean(model.predict(Z[40:]) != z[40:]) <= error + 0.01
    low, high = model.target_shares_interval_[0][1]
    assert low < z.mean() < high


def test_wrong_labels_of_classes_far_apart_cost_little():
    rng = np.random.RandomState(0)
    y = np.arange(300) % 2
    rates = rng.uniform(0.2, 1.2, size=(2, 30))
    other = rates * rng.uniform(0.4, 1.6, size=rates.shape)
    X, Z = rng.poisson(2 * rates[y]).astype(float), rng.poisson(2 * other[y]).astype(float)
    model = make(MSDAClassifier).fit(X, y, Z)
    rows, labels = rng.permutation(300)[:30], y.copy()
    labels[rows[:6]] = 1 - y[rows[:6]]
    rest = np.setdiff1d(np.arange(300), rows)
    before = np.mean(model.predict(Z)[rest] != y[rest])
    model.update(Z[rows], labels[rows])
    assert before < 0.05
    assert np.mean(model.predict(Z)[rest] != y[rest]) < before + 0.06


# -- which rows are asked about --


def test_the_first_five_questions_decide_between_readings():
    X, y, Z, z = make_domains(shift=0.9)
    model = make().fit(X, y, Z)
    votes, p = model.model_.votes[1], model.find_readings(Z)
    information = measure_information(votes, p, Settings().votes.doubt)
    telling = np.argsort(-information)[:20]

    def ask(n):
        """Return the rows, of which those that decide between readings stand for none."""
        rows, weights = model.ask(Z, n, return_weights=True)
        return rows, int(np.sum(weights == 0))

    asked, n_questions = ask(5)
    assert len(set(asked.tolist())) == n_questions == 5
    assert np.isin(asked, telling).all()
    rows, n_questions = ask(12)
    assert n_questions == 5
    assert np.isin(rows[:5], telling).all()
    model.update(Z[asked[:3]], z[asked[:3]])
    assert ask(9)[1] == 2
    model.update(Z[asked], z[asked])
    more, n_questions = ask(4)
    assert n_questions == 0
    assert not np.isin(more, asked).any()


def test_questions_are_drawn_among_the_most_telling(rng):
    p = softmax(rng.normal(size=(4, 60, 3)), axis=2)
    votes = np.array([0.4, 0.3, 0.2, 0.1])
    telling = np.argsort(-measure_information(votes, p, 0.2))[:20]
    drawn = {tuple(choose_questions(votes, p, 0.2, 5, np.random.RandomState(seed))) for seed in range(9)}
    assert len(drawn) > 5
    assert np.isin(np.concatenate(list(drawn)), telling).all()
    assert len(choose_questions(votes, p, 0.2, 40, np.random.RandomState(0))) == 40


def test_rows_drawn_at_once_have_the_probability_that_is_said(rng):
    chances = list_chances(rng.uniform(0.01, 0.5, size=12), rng.integers(1, 5, size=12))
    counts, said = np.zeros(12), np.zeros(12)
    for seed in range(4000):
        rows, probability = draw_rows(chances, 5, np.random.RandomState(seed))
        assert len(set(rows.tolist())) == 5
        counts[rows] += 1
        said[rows] = probability
    assert said.sum() == pytest.approx(5)
    assert_allclose(counts / 4000, said, atol=0.04)
    rows, probability = draw_rows(chances, 40, np.random.RandomState(0))
    assert sorted(rows.tolist()) == list(range(12))
    assert (probability == 1).all()
    rows, probability = draw_rows(np.array([0.9, 0.05, 0.05]), 2, np.random.RandomState(0))
    assert_allclose(probability, np.where(rows == 0, 1.0, 0.5))


def test_rows_that_were_asked_for_measure_the_error_by_their_weights():
    """Over many draws the weighted mistakes are those of all rows but the questions."""
    X, y, Z, z = make_domains(shift=0.9)
    model = make().fit(X, y, Z)
    wrong, errors = model.predict(Z) != z, []
    for seed in range(150):
        rows, weights = model.ask(Z, 25, return_weights=True, random_state=seed)
        assert (weights[:5] == 0).all()
        assert (weights[5:] > 0).all()
        rest = np.setdiff1d(np.arange(len(Z)), rows[:5])
        errors.append(weights[5:] @ wrong[rows[5:]] - wrong[rest].sum())
        assert weights.sum() == pytest.approx(len(rest), rel=0.35)
    assert abs(np.mean(errors)) < 4 * np.std(errors) / np.sqrt(len(errors)) + 1e-9


@pytest.mark.slow
def test_a_mean_over_drawn_rows_has_no_bias(rng):
    """Doubtful rows are drawn more often, one after another; the weighted mean is that of all rows."""
    doubts = rng.uniform(0.02, 0.5, size=30)
    value = (rng.uniform(size=30) < doubts).astype(float)
    means, doubtful = [], []
    for _ in range(3000):
        free, drawn, weights = list(range(30)), [], []
        for _ in range(12):
            chances = list_chances(doubts[free], np.ones(len(free)))
            assert chances.sum() == pytest.approx(1)
            assert chances.min() >= 0.5 / len(free)
            k = rng.choice(len(free), p=chances)
            weights.append(1 / (chances[k] * len(free)))
            drawn.append(free.pop(k))
        counts = weigh_draws(np.array(weights), len(free))
        means.append(np.mean(counts * value[drawn]))
        doubtful.append(doubts[drawn].mean())
    assert abs(np.mean(means) - value.mean()) < 4 * np.std(means) / np.sqrt(len(means))
    assert np.mean(doubtful) > doubts.mean() + 0.01
    assert_array_equal(weigh_draws(np.array([0.5, 3.0]), 0), [1, 1])
    assert_allclose(list_chances(np.zeros(3), np.array([1, 1, 2])), [0.25, 0.25, 0.5])


def test_estimates_are_stratified():
    is_changed = np.arange(100) < 10
    rows, weights = choose_for_estimate(is_changed, np.ones(100), 20, np.random.RandomState(0))
    assert (rows < 10).sum() == 10
    assert weights.sum() == pytest.approx(100)
    assert set(weights.tolist()) == {1.0, 9.0}
    rows, weights = choose_for_estimate(None, np.ones(100), 20, np.random.RandomState(0))
    assert len(rows) == 20
    assert (weights == 5).all()


def test_rows_to_estimate_from_are_half_those_that_source_only_predicts_otherwise():
    X, y, Z, _ = make_domains(shift=0.95, seed=4)
    model = make().fit(X, y, Z)
    p, votes = model.find_readings(Z), model.model_.votes[1]
    is_changed = p[-1].argmax(axis=1) != mix(votes, p).argmax(axis=1)
    rows, weights = model.ask(Z, 8, "estimate", return_weights=True)
    assert is_changed.sum() > 4
    assert is_changed[rows].sum() == 4
    assert weights.sum() == pytest.approx(len(Z))


def test_asked_rows_have_no_label_and_differ():
    X, y, Z, z = make_domains()
    model = make().fit(X, y, Z, y_target=give_labels(z, np.arange(30)))
    asked = model.ask(Z, 20)
    assert len(set(asked.tolist())) == 20
    assert asked.min() >= 30
    rows, weights = model.ask(Z, 20, "estimate", return_weights=True)
    assert rows.min() >= 30
    assert weights.sum() == pytest.approx(40)  # rows without a label
    assert (model.ask(Z, 20, return_weights=True)[1] > 0).all(), "five labels have decided"
    assert len(model.ask(Z, 10_000)) == 40
    model.update(Z, z)
    for purpose in module.PURPOSES:
        rows, weights = model.ask(Z, 5, purpose, return_weights=True)
        assert len(rows) == len(weights) == 0
    with pytest.raises(ValueError, match="purpose='fun' is not known"):
        model.ask(Z, 3, "fun")


def test_of_equal_rows_the_first_is_asked_for():
    X, y, Z, z = make_domains()
    copies = np.vstack([Z[:20], Z[:20], Z[:20], Z[20:40]])
    model = make().fit(X, y, Z).update(Z[:5], z[:5])
    distinct = {row.tobytes(): i for i, row in reversed(list(enumerate(copies)))}
    unlabelled = set(distinct.values()) - {distinct[row.tobytes()] for row in Z[:5]}
    assert set(model.ask(copies, 200).tolist()) == unlabelled
    rows, weights = model.ask(copies, 200, "estimate", return_weights=True)
    assert set(rows.tolist()) == unlabelled
    counts = [(copies == copies[row]).all(axis=1).sum() for row in rows]
    assert_allclose(weights, counts)  # what each stands for, now that all were drawn


# -- settings --


def test_settings_cannot_be_changed():
    settings = Settings()
    for group in fields(settings):
        own = getattr(settings, group.name)
        assert is_dataclass(own)
        for field in fields(own):
            with pytest.raises(FrozenInstanceError):
                setattr(own, field.name, 0)
        with pytest.raises(FrozenInstanceError):
            setattr(settings, group.name, own)
    assert Settings() == settings


# -- labels of the source --


def test_labels_of_the_source_are_predicted_without_themselves(tmp_path):
    """A label that is exchanged does not change the prediction of its own row, and others do."""
    X, y, Z, _ = make_domains(120)
    model = make(MSDAClassifier).fit(X, y, Z)
    labels, p = model.predict_held_out(X)
    assert labels.tolist() == y.tolist()
    assert_allclose(p.sum(axis=1), 1)
    assert np.mean(p.argmax(axis=1) != y) < 0.35
    assert_allclose(p.mean(axis=0), [0.5, 0.5], atol=1e-6)  # the shares of the source
    y_none, p_none = model.predict_held_out(X[:3] + 0.5)
    assert y_none.tolist() == [None] * 3
    assert np.isnan(p_none).all()
    save_model(model, tmp_path / "model", updatable=True)
    loaded, again = load_model(tmp_path / "model").predict_held_out(X)
    assert loaded.tolist() == y.tolist()
    assert_allclose(again, p, atol=2e-3)


def test_equal_rows_of_the_source_have_their_own_labels():
    X, y, Z, _ = make_domains(120)
    X, y = np.vstack([X, X[:1], X[:1]]), np.append(y, [1 - y[0], y[0]])
    labels, p = make(MSDAClassifier).fit(X, y, Z).predict_held_out(X)
    assert labels.tolist() == y.tolist()
    assert_allclose(p[0], p[-1], rtol=1e-4)


def test_exchanged_labels_of_the_source_are_the_first_suspects():
    """Of 400 labels 40 are exchanged; of the first 25 suspects three in five and more are among them."""
    rng = np.random.RandomState(0)
    y = np.arange(400) % 2
    rates = rng.uniform(0.2, 1.6, size=(2, 40))
    X, Z = rng.poisson(rates[y]).astype(float), rng.poisson(1.2 * rates[y]).astype(float)
    exchanged, given = rng.permutation(400)[:40], y.copy()
    given[exchanged] = 1 - y[exchanged]
    model = make(MSDAClassifier).fit(X, given, Z)
    labels, p = model.predict_held_out(X)
    suspects = find_suspects(labels.tolist(), p, model.classes_.tolist())
    assert np.isin(suspects[:25], exchanged).mean() > 0.6
    own = p[suspects, given[suspects]]
    assert (np.diff(own) >= 0).all()
    assert (own < 0.5).all()
