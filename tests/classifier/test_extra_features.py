"""Extra features against the concatenation that the library never builds, written out with NumPy alone."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.model_selection import cross_validate
from sklearn.svm import SVC

from tests.helpers.oracles import algorithm_2
from undrift import MSDAClassifier, TextAdapter, load_model, save_model
from undrift._core import blocks as blocks_module
from undrift.classifier import selection
from undrift.errors import UndriftDeprecationWarning
from undrift.explain import document_terms

DOMAIN = np.repeat([0, -1], [80, 50])


@pytest.fixture
def words(rng):
    """Term counts of 80 source and 50 target rows."""
    topics = rng.gamma(0.5, size=(130, 3)) @ rng.gamma(0.4, size=(3, 9))
    return rng.poisson(topics + 0.1).astype(float)


@pytest.fixture
def dense(words, rng):
    """Embeddings of the same rows: shifted in the target, far from zero, of another size."""
    shift = np.where(DOMAIN[:, None] < 0, 0.4, 0.0)
    return 0.03 * (np.tanh(words @ rng.normal(size=(9, 4))) + rng.normal(size=(130, 4)) + shift) + 0.1


@pytest.fixture
def sparse(rng):
    """A second block, mostly of zeros."""
    return rng.gamma(2, size=(130, 6)) * (rng.uniform(size=(130, 6)) < 0.3)


@pytest.fixture
def y(words, dense, rng):
    return np.where(words[:, 0] + 60 * dense[:, 1] + rng.normal(size=130) > 8, 1, -1)


def centred(H, domain):
    return np.vstack([H[i] - H[domain == domain[i]].mean(axis=0) for i in range(len(H))])


def mean_square(H):
    return np.mean((H**2).sum(axis=1))


def hidden(X, noise, depth):
    return [X, *(h for _, h in algorithm_2(X, noise, depth))] if depth else [X]


def standard(E, length=5.0):
    """Rows around zero whose root mean square length is `length`."""
    around = E - E.mean(axis=0)
    return around * length / np.sqrt(mean_square(around))


def concatenation(stacks, domain, *, center=True, balance=False):
    """All columns side by side. Each stack is [h^0, h^1, ...]; the first is that of X."""
    ready = [[centred(H, domain) if center else H for H in stack] for stack in stacks]
    sizes = [mean_square(H) for H in ready[0]]
    columns = [H / np.sqrt(size) if balance else H for H, size in zip(ready[0], sizes, strict=True)]
    for stack in ready[1:]:
        for H, size in zip(stack, sizes, strict=False):
            columns.append(H * np.sqrt((1 if balance else size) / mean_square(H)))
    return np.hstack(columns)


def ridge_scores(H, y, T, C):
    """Least squares with a free intercept; C is relative to the mean square norm of the rows."""
    middle, balance = H.mean(axis=0), y.mean()
    penalty = mean_square(H) / C * np.eye(H.shape[1])
    w = np.linalg.solve((H - middle).T @ (H - middle) + penalty, (H - middle).T @ (y - balance))
    return (T - middle) @ w + balance


def fitted(model, words, y, *matrices, **options):
    extra = {"extra": [E[:80] for E in matrices], "extra_target": [E[80:] for E in matrices]}
    return model.fit(words[:80], y[:80], words[80:], **extra, **options)


@pytest.mark.parametrize("center", ["domains", False])
@pytest.mark.parametrize("balance", [True, False])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, sp.csc_matrix])
def test_scores_are_those_of_the_concatenation(words, dense, sparse, y, center, balance, form):
    options = {"center": center, "balance_layers": balance, "dtype": "float64"}
    model = fitted(MSDAClassifier(2, 0.6, 0.7, **options), words, y, dense, form(sparse))
    stacks = [hidden(words, 0.6, 2), [dense], [sparse]]
    H = concatenation(stacks, DOMAIN, center=center, balance=balance)
    expected = ridge_scores(H[:80], y[:80], H[80:], 0.7)
    scores = model.decision_function(words[80:], extra=[dense[80:], form(sparse[80:])])
    assert_allclose(scores, expected, rtol=1e-8, atol=1e-9)
    assert_array_equal(model.predict(words[80:], extra=(dense[80:], sparse[80:])), np.sign(expected))
    assert [weights.shape for weights in model.extra_coef_] == [(4, 1), (6, 1)]
    assert model.n_extra_features_in_ == [4, 6]


def test_hinge_on_the_concatenation(words, dense, y):
    model = MSDAClassifier(1, 0.5, 1.0, classifier="hinge", center="domains", dtype="float64")
    fitted(model, words, y, dense)
    H = concatenation([hidden(words, 0.5, 1), [dense]], DOMAIN)
    svm = SVC(kernel="linear", C=1 / mean_square(H[:80])).fit(H[:80], y[:80])
    scores = model.decision_function(words[80:], extra=[dense[80:]])
    assert_allclose(scores, svm.decision_function(H[80:]), rtol=1e-6, atol=1e-6)


@pytest.mark.filterwarnings("ignore:.*at the edge:undrift.UndriftWarning")
def test_every_rule_sees_extra_features(words, dense, y, monkeypatch):
    """Source and target rows, at every noise and depth."""
    seen = []

    def rule(K, problem, Cs):
        seen.append(K.copy())
        return np.zeros(len(Cs))

    monkeypatch.setitem(selection.RULES, "reverse", rule)
    model = MSDAClassifier([1, 2], [0.3, 0.6], selection="reverse", center="domains", dtype="float64")
    fitted(model, words, y, dense)
    for K, (noise, depth) in zip(seen, [(0.3, 1), (0.3, 2), (0.6, 1), (0.6, 2)], strict=True):
        H = concatenation([hidden(words, noise, depth), [dense]], DOMAIN)
        assert_allclose(K, H @ H.T, rtol=1e-8, atol=1e-9)


def test_units_and_origin_of_extra_features_do_not_matter(words, dense, y):
    options = {"dtype": "float64", "random_state": 0}
    plain = fitted(MSDAClassifier(2, 0.5, **options), words, y, dense)
    other = fitted(MSDAClassifier(2, 0.5, **options), words, y, 1000 * dense - 30)
    expected = plain.decision_function(words, extra=dense)
    assert_allclose(other.decision_function(words, extra=1000 * dense - 30), expected, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("there", [[0.3, 7.1], [0.1, 2.7]])
def test_a_constant_matrix_changes_nothing(words, y, dtype, there):
    constant = np.where(DOMAIN[:, None] < 0, there, [0.1, 2.7])
    options = {"balance_layers": True, "dtype": dtype, "random_state": 0}
    model = fitted(MSDAClassifier(1, 0.5, **options), words, y, constant)
    without = MSDAClassifier(1, 0.5, **options).fit(words[:80], y[:80], words[80:])
    scores = model.decision_function(words[80:], extra=constant[80:])
    assert_allclose(scores, without.decision_function(words[80:]), rtol=1e-5, atol=1e-6)


def test_stacked_and_plain_form_agree(words, dense, sparse, y):
    plain = MSDAClassifier(2, center="domains", dtype="float64")
    plain.fit(
        words[:80],
        y[:80],
        [words[80:100], words[100:]],
        extra=[dense[:80], sparse[:80]],
        extra_target=[[dense[80:100], sparse[80:100]], (dense[100:], sparse[100:])],
    )
    order = np.random.default_rng(0).permutation(130)
    domain = np.repeat([0, -1, -2], [80, 20, 30])[order]
    stacked = MSDAClassifier(2, center="domains", dtype="float64")
    stacked.fit(words[order], y[order], sample_domain=domain, extra=[dense[order], sparse[order]])
    for number in (-1, -2, 0):
        given = {"sample_domain": number, "extra": [dense, sparse]}
        expected = plain.decision_function(words, **given)
        assert_allclose(stacked.decision_function(words, **given), expected, rtol=1e-8, atol=1e-10)
    halves = hidden(words, 0.7, 2)
    H = concatenation([halves, [dense], [sparse]], np.repeat([0, -1, -2], [80, 20, 30]))
    expected = ridge_scores(H[:80], y[:80], H[100:], 0.3)
    given = {"sample_domain": -2, "extra": [dense[100:], sparse[100:]]}
    assert_allclose(plain.decision_function(words[100:], **given), expected, rtol=1e-8, atol=1e-9)


def test_one_matrix_for_each_of_several_targets_needs_no_inner_list(words, dense, y):
    given = {"extra": dense[:80], "extra_target": [dense[80:100], dense[100:]]}
    bare = MSDAClassifier(1, random_state=0).fit(words[:80], y[:80], [words[80:100], words[100:]], **given)
    given = {"extra": [dense[:80]], "extra_target": [[dense[80:100]], [dense[100:]]]}
    listed = MSDAClassifier(1, random_state=0).fit(words[:80], y[:80], [words[80:100], words[100:]], **given)
    assert_array_equal(
        bare.decision_function(words, extra=dense), listed.decision_function(words, extra=[dense])
    )


def test_unlabelled_rows_keep_their_extra_features(words, dense, y):
    labels = y.astype(object)
    labels[DOMAIN < 0] = None
    options = {"dtype": "float64", "random_state": 0}
    model = MSDAClassifier(1, 0.5, **options).fit(words, labels, extra=dense)
    other = fitted(MSDAClassifier(1, 0.5, **options), words, y, dense)
    expected = other.decision_function(words, extra=dense)
    assert_allclose(model.decision_function(words, extra=dense), expected, rtol=1e-9)


def test_self_training_learns_from_extra_features_of_target_rows(rng):
    """The class shows in the block alone; its direction turns a little from source to target."""
    y = rng.permutation(np.resize([0, 1], 300))
    E = rng.normal(size=(300, 2)) * 0.3 + np.column_stack([2 * y - 1, np.zeros(300)])
    E[200:, 1] += 4 * y[200:]  # what no labelled row tells
    X = rng.poisson(1.0, size=(300, 5)).astype(float)
    options = {"dtype": "float64", "random_state": 0}
    model = MSDAClassifier(1, 0.5, self_training=True, **options)
    given = {
        "extra": [E[:200]] * 4,
        "extra_target": [E[200:]] * 4,
    }  # counts four times
    model.fit(X[:200], y[:200], X[200:], **given)
    assert model.self_training_rounds_[-1]["kept"]
    assert model.score(X[200:], y[200:], extra=[E[200:]] * 4) > 0.95
    alone = MSDAClassifier(1, 0.5, **options).fit(X[:200], y[:200], X[200:], **given)
    (before,), (after,) = alone.extra_coef_[0][1], model.extra_coef_[0][1]
    assert after > 2 * abs(before)


def test_many_labelled_rows_are_solved_in_the_primal(words, dense, sparse, y, monkeypatch):
    options = {"dtype": "float64", "random_state": 0}
    dual = fitted(MSDAClassifier(2, 0.5, **options), words, y, dense, sparse)
    K = concatenation([hidden(words, 0.5, 2), [dense], [sparse]], DOMAIN)
    monkeypatch.setattr("undrift.classifier.two_stage.GRAM_LIMIT", 40)
    monkeypatch.setattr(blocks_module, "BLOCK_ENTRIES", 9 * 30)
    primal = fitted(MSDAClassifier(2, 0.5, **options), words, y, dense, sp.csr_array(sparse))
    scores, expected = (
        model.decision_function(words[80:], extra=[dense[80:], sparse[80:]]) for model in (primal, dual)
    )
    assert K.shape == (130, 37)
    # C is relative to the mean square norm of the labelled rows, of which the primal sees a sample
    assert np.corrcoef(scores, expected)[0, 1] > 0.999
    assert [w.shape for w in primal.extra_coef_] == [w.shape for w in dual.extra_coef_]


def test_the_primal_is_the_least_value_over_the_concatenation(words, dense, y, monkeypatch):
    monkeypatch.setattr("undrift.classifier.two_stage.GRAM_LIMIT", 79)
    model = MSDAClassifier(1, 0.5, 1.0, center="domains", dtype="float64", random_state=0)
    fitted(model, words, y, dense)
    H = concatenation([hidden(words, 0.5, 1), [dense]], DOMAIN)
    candidates = [np.delete(np.arange(80), left_out) for left_out in range(80)]  # one row is in no anchor
    scores = model.decision_function(words[80:], extra=dense[80:])
    distances = []
    for anchors in candidates:
        C = mean_square(H[:80]) / mean_square(H[anchors])
        distances.append(np.abs(ridge_scores(H[:80], y[:80], H[80:], C) - scores).max())
    assert min(distances) < 1e-4


def test_saved_and_loaded(words, dense, y, tmp_path):
    model = MSDAClassifier(2, 0.5, random_state=0)
    fitted(model, words, y, dense)
    save_model(model, tmp_path / "model.safetensors")
    loaded = load_model(tmp_path / "model.safetensors")
    expected = model.predict_proba(words, extra=dense)
    assert_array_equal(loaded.predict_proba(words, extra=dense), expected)
    assert expected[:, 1].std() > 0.01
    with pytest.raises(ValueError, match="fit saw 1 matrices of extra"):
        loaded.predict(words)


def test_float32_by_default(words, dense, y):
    models = [
        fitted(MSDAClassifier(2, dtype=dtype, random_state=0), words, y, dense)
        for dtype in ("float32", "float64")
    ]
    single, double = (model.decision_function(words, extra=dense) for model in models)
    assert [w.dtype for w in models[0].extra_coef_] == [np.dtype("float32")]
    assert_allclose(single, double, atol=1e-3 * np.abs(double).max())


def test_on_torch(words, dense, sparse, y):
    pytest.importorskip("torch")
    options = {"balance_layers": True, "dtype": "float64", "random_state": 0}
    here, there = (
        fitted(MSDAClassifier(2, 0.5, device=device, **options), words, y, dense, sp.csr_array(sparse))
        for device in ("cpu", "torch:cpu")
    )
    extra = [dense, sp.csr_array(sparse)]
    expected = here.decision_function(words, extra=extra)
    assert_allclose(there.decision_function(words, extra=extra), expected, rtol=1e-7, atol=1e-9)
    assert isinstance(there.extra_coef_[0], np.ndarray)


def test_prediction_in_row_blocks(words, dense, y, monkeypatch):
    model = fitted(MSDAClassifier(1, dtype="float64"), words, y, dense)
    whole, sizes = model.decision_function(words, extra=dense), []
    layer = type(model.representation_.layers_[0])
    original = layer.__call__

    def spy(self, rows, out=None):
        sizes.append(rows.shape[0])
        return original(self, rows, out)

    monkeypatch.setattr(blocks_module, "BLOCK_ENTRIES", 9 * 8)
    monkeypatch.setattr(layer, "__call__", spy)
    assert_allclose(model.decision_function(words, extra=dense), whole, rtol=1e-9)
    assert max(sizes) <= 8
    assert sum(sizes) == 130


def test_arguments_are_left_alone(words, dense, y):
    before = dense.copy()
    dense.flags.writeable = False
    fitted(MSDAClassifier(1, dtype="float64"), words, y, dense)
    assert_array_equal(dense, before)


def test_routed_to_the_folds_of_others(words, dense, y):
    with config_context(enable_metadata_routing=True):
        with_extra = cross_validate(
            MSDAClassifier(1, random_state=0), words[:80], y[:80], params={"extra": dense[:80]}, cv=4
        )
    without = cross_validate(MSDAClassifier(1, random_state=0), words[:80], y[:80], cv=4)
    assert np.isfinite(with_extra["test_score"]).all()
    assert with_extra["test_score"].tolist() != without["test_score"].tolist()


def test_a_document_is_explained_with_its_extra_features(words, dense, y):
    model = fitted(MSDAClassifier(1, 0.5, dtype="float64"), words, y, dense)
    row, block = words[[90]], dense[[90]]
    j = int(np.flatnonzero(row[0])[0])
    terms = [f"term {i}" for i in range(9)]
    effects = {entry["term"]: entry["effect"] for entry in document_terms(model, terms, row, extra=block)}
    less = row.copy()
    less[0, j] = 0
    whole, part = (model.decision_function(x, extra=block)[0] for x in (row, less))
    assert_allclose(effects[terms[j]], np.sign(whole) * (whole - part), rtol=1e-9)
    with pytest.raises(ValueError, match="fit saw 1 matrices of extra"):
        document_terms(model, terms, row)


@pytest.mark.parametrize("several", [False, True])
def test_text_with_embeddings(several, rng):
    """Words that say nothing, embeddings that say it all."""
    y = np.resize(["good", "bad"], 40)
    E = np.where(y == "good", 1.0, -1.0)[:, None] + rng.normal(size=(40, 2)) * 0.2
    documents = [" ".join(rng.choice(["a", "the", "of", "and", "to"], 4)) for _ in range(40)]
    target, there = documents[24:], E[24:]
    if several:
        target, there = [documents[24:32], documents[32:]], [E[24:32], E[32:]]
    adapter = TextAdapter().fit(documents[:24], y[:24], target, extra=E[:24], extra_target=there)
    assert adapter.predict(documents[24:], extra=E[24:]).tolist() == y[24:].tolist()
    assert ((adapter.decision_function(documents, extra=[E]) > 0) == (y == "good")).all()


class TestRefusals:
    """One line that names the matrix, what was seen and what to do."""

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (lambda E: E[1:], "^extra.1. of X has 79 rows, but there are 80 to go with"),
            (lambda E: E[:, 0], "^extra.1. of X: Expected 2D array, got 1D"),
            (lambda E: np.where(E.max() - 1e-9 < E, np.nan, E), r"^extra.1. of X: Input contains NaN \(row "),
            (lambda E: E.astype(str).astype(object) + "?", "^extra.1. of X: could not convert string"),
            (lambda E: E[:, :0], "^extra.1. of X: .*0 feature"),
        ],
    )
    def test_of_a_matrix_of_fit(self, words, dense, y, change, message):
        with pytest.raises(ValueError, match=message) as refusal:
            MSDAClassifier(1).fit(words[:80], y[:80], extra=[dense[:80], change(dense[:80])])
        assert "\n" not in str(refusal.value)

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            ({}, "fit saw 1 .*extra.* X_target comes with 0: pass as many in extra_target"),
            (
                {"extra_target": np.ones((50, 3))},
                "extra_target.0. of X_target has 3 columns, but 4",
            ),
            ({"extra_target": np.ones((49, 4))}, "extra_target.0. of X_target has 49 rows, but there are 50"),
        ],
    )
    def test_of_extra_features_of_the_target(self, words, dense, y, given, message):
        with pytest.raises(ValueError, match=message):
            MSDAClassifier(1).fit(words[:80], y[:80], words[80:], extra=dense[:80], **given)

    def test_of_extra_features_that_match_no_target(self, words, dense, y):
        with pytest.raises(ValueError, match=r"list of 2 domains, so extra_target .* got 1 entries"):
            MSDAClassifier(1).fit(
                words[:80], y[:80], [words[80:90], words[90:]], extra=dense[:80], extra_target=[dense[80:]]
            )
        with pytest.raises(ValueError, match=r"list of 2 domains, so extra_target .* got a ndarray"):
            MSDAClassifier(1).fit(
                words[:80], y[:80], [words[80:90], words[90:]], extra=dense[:80], extra_target=dense[80:]
            )
        with pytest.raises(ValueError, match="extra_target goes with X_target"):
            MSDAClassifier(1).fit(words[:80], y[:80], extra=dense[:80], extra_target=dense[80:])

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            ({}, "fit saw 1 matrices of extra .* X comes with 0: pass as many in extra"),
            ({"extra": np.ones((130, 5))}, "extra.0. of X has 5 columns, but 4 in fit's X"),
            ({"extra": np.ones((3, 4))}, "extra.0. of X has 3 rows, but there are 130"),
            ({"extra": [np.ones((130, 4))] * 2}, "fit saw 1 matrices of extra .* X comes with 2"),
        ],
    )
    @pytest.mark.parametrize("method", ["predict", "decision_function", "predict_proba"])
    def test_of_a_prediction(self, words, dense, y, given, message, method):
        model = fitted(MSDAClassifier(1, random_state=0), words, y, dense)
        with pytest.raises(ValueError, match=message):
            getattr(model, method)(words, **given)

    def test_of_extra_features_that_fit_had_not(self, words, dense, y):
        with pytest.raises(ValueError, match=r"fit saw 0 .* X comes with 1: leave extra out"):
            MSDAClassifier(1).fit(words, y).predict(words, extra=dense)

    def test_of_what_is_no_list(self, words, dense, y):
        with pytest.raises(TypeError, match="extra must be a matrix or a list of matrices, got a generator"):
            MSDAClassifier(1).fit(words, y, extra=(E for E in [dense]))

    def test_of_rows_of_dask(self, words, dense, y):
        array = pytest.importorskip("dask.array")
        rows = array.from_array(words, chunks=(65, 9))
        with pytest.raises(ValueError, match="rows of Dask cannot have extra features"):
            MSDAClassifier(1).fit(rows, y, extra=dense)
        with pytest.raises(TypeError, match=r"extra.0. of X is a Array of Dask"):
            MSDAClassifier(1).fit(words, y, extra=array.from_array(dense))
        model = fitted(MSDAClassifier(1), words, y, dense)
        with pytest.raises(ValueError, match="rows of Dask cannot have extra features"):
            model.predict(rows)


def test_old_names_work_with_a_warning(words, dense, y):
    expected = fitted(MSDAClassifier(1, random_state=0), words, y, dense).predict_proba(words, extra=dense)
    with pytest.warns(UndriftDeprecationWarning, match="blocks is now called extra"):
        model = MSDAClassifier(1, random_state=0).fit(
            words[:80], y[:80], words[80:], blocks=dense[:80], extra_target=dense[80:]
        )
    with pytest.warns(FutureWarning, match="blocks is now called extra"):
        assert_array_equal(model.predict_proba(words, blocks=dense), expected)
