"""With center="classes": a classifier against all of its steps written out on explicit rows."""

from dataclasses import dataclass

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import softmax
from sklearn.linear_model import Ridge
from sklearn.model_selection import StratifiedKFold

from tests.helpers.exact import ExactClassifier
from tests.helpers.oracles import algorithm_2
from undrift import MSDAClassifier, UndriftWarning
from undrift.method.calibrate import find_border, fit_temperature
from undrift.method.shares import estimate_shares

SEED, NOISE, DEPTH, C = 3, 0.6, 2, 0.7
N_ROUNDS, SHARE, WEIGHT = 5, 0.9, 0.5  # of self-training


def draw_counts(rng, n, shares, shift=0.0, n_features=12):
    """Counts in which every class has words of its own, and their classes, of the given shares."""
    codes = rng.permutation(np.repeat(np.arange(len(shares)), np.round(n * np.array(shares)).astype(int)))
    rate = np.full((len(codes), n_features), 0.4)
    rate[:, -2:] += shift
    for k in range(len(shares)):
        rate[np.ix_(codes == k, [2 * k, 2 * k + 1])] += 1.2
    return rng.poisson(rate).astype(float), codes


@dataclass
class Task:
    """Rows of two sources and of one or two targets, all stacked, with classes."""

    rows: np.ndarray
    codes: np.ndarray
    domain: np.ndarray

    def __post_init__(self):
        self.n_classes = int(self.codes.max()) + 1
        self.is_labelled = self.domain >= 0
        self.targets = [number for number in (-1, -2) if number in self.domain]

    def fit(self, form=np.asarray, kind=ExactClassifier, **options):
        y = np.where(self.is_labelled, self.codes, 9)  # classes of target rows are not told
        model = kind(DEPTH, NOISE, C, random_state=SEED, **options)
        return model.fit(form(self.rows), y, sample_domain=self.domain)

    def predict(self, model, method, number, form=np.asarray):
        members = self.domain == number
        return getattr(model, method)(form(self.rows[members]), target=number)


def make_task(n_classes=2, n_targets=1):
    rng = np.random.default_rng(11)
    shares = {2: [(0.3, 0.7), (0.6, 0.4)], 3: [(0.2, 0.5, 0.3), (0.4, 0.3, 0.3)]}[n_classes]
    shares += {2: [(0.2, 0.8), (0.5, 0.5)], 3: [(0.6, 0.2, 0.2), (0.3, 0.4, 0.3)]}[n_classes][:n_targets]
    sizes, shifts = [60, 40, 50, 40], [0.0, 0.3, 0.8, 1.2]
    parts = [draw_counts(rng, *part) for part in zip(sizes, shares, shifts, strict=False)]
    codes = np.concatenate([part[1] for part in parts])
    domain = np.repeat([0, 1, -1, -2][: len(parts)], [len(part[1]) for part in parts])
    return Task(np.vstack([part[0] for part in parts]), codes, domain)


def mean_square(H, domain):
    """Mean square norm of rows less the mean of their domain."""
    return sum(((H[domain == k] - H[domain == k].mean(axis=0)) ** 2).sum() for k in set(domain)) / len(H)


def concatenate_layers(task):
    """``[h^0, ..., h^l]``, scaled, not centred."""
    layers = [task.rows, *(h for _, h in algorithm_2(task.rows, NOISE, DEPTH))]
    return np.hstack([H / np.sqrt(mean_square(H, task.domain)) for H in layers])


def to_signs(codes, n_classes):
    return np.where(codes == 1, 1.0, -1.0)[:, None] if n_classes == 2 else 2 * np.eye(n_classes)[codes] - 1


class ByHand:
    """The whole fit on explicit rows."""

    def __init__(self, task, is_trained=False, known=None):
        self.task, self.known = task, known
        H, n_classes = concatenate_layers(task), task.n_classes
        self.codes = task.codes[task.is_labelled]
        self.H, self.source = H[task.is_labelled].copy(), task.domain[task.is_labelled]
        self.weight = (len(self.codes) / n_classes / np.bincount(self.codes))[self.codes]
        origin = {}
        for k in (0, 1):
            members = self.source == k
            means = [self.H[members & (self.codes == code)].mean(axis=0) for code in range(n_classes)]
            origin[k] = np.mean(means, axis=0)
            self.H[members] -= origin[k]
        self.alpha = np.mean((self.H**2).sum(axis=1)) / C
        self.center = np.mean([origin[k] for k in self.source], axis=0)
        held_out = self.score_held_out()
        self.temperature = fit_temperature(held_out, self.codes, self.weight)
        start = self.ridge(self.H, to_signs(self.codes, n_classes), self.weight)
        self.shares, moved = [], []
        for i, number in enumerate(task.targets):
            T = H[task.domain == number]
            first = start(T - self.center)
            known_shares = None if known is None else known[i]
            shares = estimate_shares(first, held_out, self.codes, n_classes, known_shares)
            self.shares.append(shares)
            moved.append(T - T.mean(axis=0) + self.move(start, T.mean(axis=0) - self.center, shares.midpoint))
        self.temperature /= 0.75 if is_trained else 0.93
        self.final = self.self_train(start, moved) if is_trained else start
        self.scores = dict(zip(task.targets, map(self.final, moved), strict=True))
        self.scores |= {k: self.final(self.H[self.source == k]) for k in (0, 1)}

    def ridge(self, H, Y, weight):
        model = Ridge(alpha=self.alpha, solver="cholesky").fit(H, Y, sample_weight=weight)
        return lambda T: model.predict(T).reshape(len(T), -1)

    def score_held_out(self):
        Y = to_signs(self.codes, self.task.n_classes)
        scores = np.empty(Y.shape)
        folds = StratifiedKFold(5, shuffle=True, random_state=np.random.RandomState(SEED))
        for train, test in folds.split(self.codes, self.codes):
            scores[test] = self.ridge(self.H[train], Y[train], self.weight[train])(self.H[test])
        return scores

    def move(self, classifier, mean, midpoint):
        """Combine class means so that scores change by what the mean of the target is away from there."""
        means = np.array([self.H[self.codes == code].mean(axis=0) for code in range(self.task.n_classes)])
        means -= means.mean(axis=0)
        zero = classifier(np.zeros((1, means.shape[1])))
        slopes = (classifier(means) - zero).T
        change = (classifier(mean[None]) - zero)[0] - midpoint
        return np.linalg.pinv(slopes, rcond=1e-6) @ change @ means

    def add_border(self, scores, shares):
        return scores + find_border(scores, self.temperature, shares.mean)

    def self_train(self, classifier, moved):
        n_classes = self.task.n_classes
        for r in range(1, N_ROUNDS + 1):
            rows, codes = [self.H], [self.codes]
            for T, shares in zip(moved, self.shares, strict=True):
                p = self.probabilities(self.add_border(classifier(T), shares))
                for code in range(n_classes):
                    members = np.flatnonzero(p.argmax(axis=1) == code)
                    portion = SHARE * r / N_ROUNDS
                    surest = members[np.argsort(-p[members, code])[: int(portion * len(members))]]
                    rows.append(T[surest])
                    codes.append(np.full(len(surest), code))
            n_pseudo = sum(map(len, codes[1:]))
            weight = np.concatenate([self.weight, np.full(n_pseudo, WEIGHT)])
            classifier = self.ridge(np.vstack(rows), to_signs(np.concatenate(codes), n_classes), weight)
        return classifier

    def probabilities(self, scores):
        logits = np.hstack([0 * scores, scores]) if scores.shape[1] == 1 else scores
        return softmax(logits / self.temperature, axis=1)

    def decide(self, number):
        """Scores of the rows of a domain, with the border for its shares."""
        scores = self.scores[number]
        return scores if number >= 0 else self.add_border(scores, self.shares[-1 - number])


CASES = [{}, {"n_classes": 3}, {"n_targets": 2}, {"n_targets": 2, "n_classes": 3}]


@pytest.mark.parametrize(
    "case", CASES, ids=lambda case: "-".join(f"{k}={v}" for k, v in case.items()) or "pair"
)
@pytest.mark.parametrize("is_trained", [False, True])
@pytest.mark.parametrize(
    ("form", "place"), [(np.asarray, "cpu"), (sp.csr_array, "cpu"), (np.asarray, "torch:cpu")]
)
def test_scores_and_probabilities_are_those_of_explicit_rows(case, is_trained, form, place):
    if place != "cpu":
        pytest.importorskip("torch")
    task = make_task(**case)
    model = task.fit(form, self_training=is_trained, device=place)
    expected = ByHand(task, is_trained)
    assert len(model.self_training_rounds_) == (1 + N_ROUNDS if is_trained else 0)
    assert all(r["kept"] for r in model.self_training_rounds_)
    assert_allclose(model.temperature_, expected.temperature, rtol=1e-6)
    for number in (0, 1, *task.targets):
        scores = expected.decide(number)
        actual = task.predict(model, "decision_function", number, form)
        assert_allclose(actual.reshape(scores.shape), scores, rtol=1e-6, atol=1e-6)
        actual = task.predict(model, "predict_proba", number, form)
        loss = 1 if number < 0 else 0.93  # of what scores say, in another domain
        assert_allclose(actual, expected.probabilities(scores / loss), rtol=1e-6, atol=1e-6)
    for i, shares in enumerate(expected.shares):
        assert_allclose(list(model.target_shares_[i].values()), shares.mean, atol=1e-6)
        assert_allclose(list(model.target_shares_interval_[i].values()), shares.interval(), atol=1e-6)


@pytest.mark.parametrize("case", [*CASES, {"center": "domains"}, {"center": False}])
@pytest.mark.parametrize("place", ["cpu", "torch:cpu"])
def test_sums_over_rows_give_the_same_as_inner_products(case, place, request):
    if place != "cpu":
        pytest.importorskip("torch")
    case = dict(case)
    options = {"center": case.pop("center", "classes"), "device": place}
    task = make_task(**case)
    expected = task.fit(**options)
    request.getfixturevalue("sums_over_rows")
    model = task.fit(sp.csr_array, **options)
    assert len(model.self_training_rounds_) == 1 + N_ROUNDS
    for ours, theirs in zip(model.self_training_rounds_, expected.self_training_rounds_, strict=True):
        assert ours == pytest.approx(theirs)
    for number in (0, 1, *task.targets):
        for method in ("decision_function", "predict_proba"):
            actual = task.predict(model, method, number, sp.csr_array)
            assert_allclose(actual, task.predict(expected, method, number), rtol=1e-6, atol=1e-7)
    for ours, theirs in zip(model.expected_error_, expected.expected_error_, strict=True):
        assert ours == (theirs and pytest.approx(theirs, rel=1e-5))
    assert model.caution_["signals"] == pytest.approx(expected.caution_["signals"])


def test_a_fallback_from_many_rows_is_trained_on_all_of_them(rng, set_limits):
    X, _ = draw_uneven(rng, 300, 0.5)
    y, (Z, _) = rng.permutation(np.arange(300) % 2), draw_uneven(rng, 300, 0.1)
    options = {"n_layers": 1, "noise": 0.3, "random_state": 0}
    models = []
    for limit in (300, 299):
        set_limits(GRAM_LIMIT=limit)
        with pytest.warns(UndriftWarning, match="likely not to help"):
            models.append(ExactClassifier(**options).fit(X, y, Z))
    dual, primal = models
    assert primal.caution_["fell_back"]
    assert_allclose(primal.coef_[0], dual.coef_[0], rtol=0.02)
    assert not primal.coef_[1].any()


@pytest.mark.parametrize("n_targets", [1, 2])
@pytest.mark.parametrize("is_named", [False, True])
def test_known_shares_take_the_place_of_estimated_ones(n_targets, is_named):
    task = make_task(n_targets=n_targets)
    named = dict(zip(task.targets, [{1: 0.8, 0: 0.2}, {0: 0.35, 1: 0.65}], strict=False))
    given = named if is_named else {0: 0.2, 1: 0.8}
    model = task.fit(target_shares=given, self_training=False)
    known = [[0.2, 0.8], [0.35, 0.65] if is_named else [0.2, 0.8]]
    expected = ByHand(task, known=known)
    for i, number in enumerate(task.targets):
        assert model.target_shares_[i] == pytest.approx(dict(enumerate(known[i])))
        assert model.target_shares_interval_[i] == {k: (known[i][k], known[i][k]) for k in (0, 1)}
        scores = task.predict(model, "decision_function", number)
        assert_allclose(scores, expected.decide(number)[:, 0], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("case", CASES[:3])
def test_mean_probabilities_are_the_shares_and_the_largest_is_predicted(case):
    task = make_task(**case)
    model = task.fit()
    for i, number in enumerate(task.targets):
        p = task.predict(model, "predict_proba", number)
        assert_allclose(p.mean(axis=0), list(model.target_shares_[i].values()), atol=1e-5)
        assert_array_equal(p.argmax(axis=1), task.predict(model, "predict", number))
        scores = task.predict(model, "decision_function", number).tolist()
        assert_allclose(model.scores_to_proba(scores, target=number), p, rtol=1e-6)
        expected = model.expected_error_[i]
        assert 0 < expected["low"] <= expected["error"] <= expected["high"] < 1
        for low, high in model.target_shares_interval_[i].values():
            assert low < high


@pytest.mark.parametrize("case", CASES[:3])
def test_the_balanced_border_weighs_probabilities_by_the_shares(case):
    """Probabilities stay as they are; what is predicted has the largest one over its share."""
    task = make_task(**case)
    options = {"target_shares": dict(enumerate([0.9, 0.1] if task.n_classes == 2 else [0.8, 0.15, 0.05]))}
    by_error, balanced = task.fit(**options), task.fit(border="balanced", **options)
    for number in task.targets:
        p = task.predict(balanced, "predict_proba", number)
        assert_allclose(p, task.predict(by_error, "predict_proba", number), rtol=1e-6)
        relative = p / list(balanced.target_shares_[0].values())
        predicted = task.predict(balanced, "predict", number)
        assert_array_equal(predicted, relative.argmax(axis=1))
        assert np.mean(predicted != task.predict(by_error, "predict", number)) > 0.05
    assert balanced.expected_error_[0]["error"] > by_error.expected_error_[0]["error"]


def make_pair(source_shares, target_shares, n=300, seed=5, n_target=None):
    """Rows and classes of a source and of a target that has words of its own."""
    rng = np.random.default_rng(seed)
    X, y = draw_counts(rng, n, source_shares)
    Z, z = draw_counts(rng, n_target or n, target_shares, shift=1.0)
    return X, y, Z, z


OPTIONS = {"n_layers": 2, "noise": 0.6, "C": 1.0, "random_state": 0}


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ((0.2, 0.8), (0.9, 0.1)),
        ((0.5, 0.5), (0.1, 0.9)),
        ((0.5, 0.5), (0.9, 0.1)),
        ((0.8, 0.2), (0.1, 0.9)),
    ],
)
def test_unbalanced_domains_lose_less_than_by_centring_domains(source, target):
    X, y, Z, z = make_pair(source, target)
    models = [MSDAClassifier(center=center, **OPTIONS).fit(X, y, Z) for center in ("classes", "domains")]
    errors = [np.mean(model.predict(Z) != z) for model in models]
    assert errors[0] < errors[1]
    assert errors[0] < 0.1
    assert not models[0].caution_["fell_back"]
    assert models[0].target_shares_[0][1] == pytest.approx(target[1], abs=0.08)
    expected = models[0].expected_error_[0]
    assert expected["low"] < errors[0] < expected["high"]
    assert not expected["known"] or expected["error"] == pytest.approx(errors[0], abs=0.06)


@pytest.mark.parametrize("present", [0, 1])
def test_in_a_target_of_one_class_no_other_is_invented(present):
    X, y, Z, _ = make_pair((0.5, 0.5), np.eye(2)[present])
    model = MSDAClassifier(**OPTIONS).fit(X, y, Z)
    assert np.mean(model.predict(Z) == present) > 0.95
    assert model.target_shares_[0][present] > 0.86
    certain = MSDAClassifier(**OPTIONS, target_shares={present: 1.0, 1 - present: 0.0}).fit(X, y, Z)
    assert (certain.predict(Z) == present).all()
    assert certain.expected_error_[0]["error"] < 1e-3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, r" sum to 0.9, not to 1: \{0: 0.5, 1: 0.4\}"),
        ({"target_shares": {0: 0.5, 7: 0.5}}, " names 7, which is not a class; the classes are 0, 1"),
        ({"target_shares": {0: 1.0}}, " lacks 1; give the share of every class: 0, 1"),
        ({"target_shares": {0: -0.2, 1: 1.2}}, " of 0 is -0.2; shares are numbers between 0 and 1"),
        ({"target_shares": {0: float("nan"), 1: 1.0}}, " of 0 is nan; shares are numbers between 0 and 1"),
        ({"target_shares": {0: "half", 1: 0.5}}, " of 0 is 'half'; shares are numbers"),
        (
            {"target_shares": {"kitchen": {0: 0.5, 1: 0.5}}},
            " names 'kitchen', which is not a target; the targets are 'target'",
        ),
        ({"center": "domains"}, ' and border="balanced" need center="classes", but center=\'domains\''),
        ({"center": False, "border": "balanced", "target_shares": None}, " .* need center="),
    ],
)
def test_shares_that_cannot_be_meant_are_refused_in_one_line(options, message):
    X, y, Z, _ = make_pair((0.5, 0.5), (0.5, 0.5), n=40)
    with pytest.raises(ValueError, match=f"^target_shares{message}[^\n]*$"):
        MSDAClassifier(1, **({"target_shares": {0: 0.5, 1: 0.4}} | options)).fit(X, y, Z)


def test_shares_are_nearly_one_in_sum_and_need_a_target():
    X, y, Z, _ = make_pair((0.5, 0.5), (0.5, 0.5), n=40)
    model = MSDAClassifier(1, target_shares={0: 0.333, 1: 0.66}).fit(X, y, Z)
    assert model.target_shares_[0] == pytest.approx({0: 0.333 / 0.993, 1: 0.66 / 0.993})
    X, y, _, _ = make_pair((0.5, 0.5), (0.5, 0.5), n=40)
    with pytest.raises(
        ValueError, match="target_shares needs target rows, and there are none: pass X_target"
    ):
        MSDAClassifier(1, target_shares={0: 0.5, 1: 0.5}).fit(X, y)


def test_without_alignment_shares_are_not_known():
    X, y, Z, _ = make_pair((0.5, 0.5), (0.5, 0.5), n=40)
    for center in ("domains", False):
        model = MSDAClassifier(1, center=center).fit(X, y, {"a": Z, "b": Z})
        assert model.target_shares_ == model.target_shares_interval_ == model.expected_error_ == [None, None]
    model = MSDAClassifier(1).fit(X, y)
    assert model.target_shares_ == model.expected_error_ == []


def draw_uneven(rng, n, share, n_features=6):
    """Rows of two classes that come apart in the first feature."""
    codes = (np.arange(n) < round(share * n)).astype(int)
    X = rng.normal(size=(n, n_features))
    X[:, 0] += 2.5 * (2 * codes - 1)
    return X + 3, codes


def test_a_fallback_uses_shares_that_are_known_and_else_the_odds_of_the_source(rng):
    X, _ = draw_uneven(rng, 300, 0.1)
    y = rng.permutation((np.arange(300) < 30).astype(int))  # labels that cannot be learnt
    Z, _ = draw_uneven(rng, 300, 0.1)
    options = {"n_layers": 1, "noise": 0.3, "random_state": 0}
    for known, share in ((None, 0.1), ({0: 0.3, 1: 0.7}, 0.7)):
        with pytest.warns(UndriftWarning, match="likely not to help"):
            model = MSDAClassifier(**options, target_shares=known).fit(X, y, Z)
        assert model.caution_["fell_back"]
        assert "uncertain-shares" not in model.caution_["codes"]
        assert_allclose(model.predict_proba(Z)[:, 1].mean(), share, atol=1e-3 if known else 0.05)


@pytest.mark.parametrize("case", ["constant", "rare class", "few rows"])
def test_where_scores_say_little_shares_are_assumed_and_no_error_is_expected(rng, case):
    X, y = draw_uneven(rng, 200, 0.3)
    Z, _ = draw_uneven(rng, 100, 0.5)
    if case == "constant":
        Z = np.repeat(Z[:1], 60, axis=0)
    elif case == "rare class":
        y = (np.arange(200) < 4).astype(int)
    else:
        Z = Z[:10]
    model = MSDAClassifier(n_layers=1, noise=0.3, random_state=0).fit(X, y, Z)
    assert_allclose(model.target_shares_[0][1], y.mean())
    assert model.target_shares_interval_[0][1] == (0.0, 1.0)
    assert model.expected_error_ == [None]
    assert "uncertain-shares" in model.caution_["codes"]
