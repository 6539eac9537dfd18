"""Saved models: whole, plain, and safe to load."""

import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
import scipy.sparse as sp
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError

import undrift
from tests.helpers.model_files import forge, parts_of, tree_of
from tests.helpers.oracles import weights
from undrift import MDA, MSDA, MSDAClassifier, load_model, save_model
from undrift.persist import (
    FORMAT_VERSION,
    ModelFileError,
    _decode,
    _digest,
    _encode,
    choose_bits,
    round_layers,
)

MODELS = [
    MDA(noise=0.3),
    MSDA(n_layers=2),
    MSDA(n_layers=2, n_pivots=3, random_state=0, activation="relu"),
    MSDA(n_layers=1, include_input=False),
]


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "model.safetensors"


@pytest.fixture
def saved(counts, path) -> Path:
    save_model(MSDA(n_layers=2).fit(counts), path)
    return path


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("model", MODELS, ids=str)
def test_a_loaded_model_is_the_saved_one(counts, path, model, dtype):
    X = counts.astype(dtype)
    model = sklearn.clone(model).fit(X)
    save_model(model, path)
    loaded = load_model(path)
    assert type(loaded) is type(model)
    assert loaded.get_params() == model.get_params()
    assert vars(loaded).keys() == vars(model).keys()
    assert_array_equal(loaded.transform(X), model.transform(X))
    assert loaded.transform(X).dtype == dtype
    assert_array_equal(loaded.get_feature_names_out(), model.get_feature_names_out())


def test_loaded_layers_go_on_learning_and_settings_do_not_hinder(counts, path):
    save_model(MDA().partial_fit(counts[:20]), path)
    loaded = load_model(path).partial_fit(counts[20:])
    assert_array_equal(weights(loaded.layer_), weights(MDA().fit(counts).layer_))
    with sklearn.config_context(enable_metadata_routing=True):
        model = MSDA(1).set_fit_request(sample_domain=False).set_output(transform="default").fit(counts)
        save_model(model, path)
    assert_array_equal(load_model(path).transform(counts), model.transform(counts))


def test_feature_names_survive(counts, path):
    pd = pytest.importorskip("pandas")
    names = ["good", "énergie", "日本", 'quo"te', "new\nline", "\u0085", "", "🙂", "x" * 1000]
    save_model(MSDA(2).fit(pd.DataFrame(counts, columns=names)), path)
    loaded = load_model(path)
    assert loaded.feature_names_in_.tolist() == names
    assert loaded.feature_names_in_.dtype == object
    with pytest.raises(ValueError, match="feature names"):
        loaded.transform(pd.DataFrame(counts, columns=names[::-1]))


def test_a_refused_file_is_one_short_line_whatever_its_values_are(saved):
    tree = tree_of(saved)
    words = {"list": [f"word{i}" for i in range(500)]}  # which scikit-learn shows in many lines
    params = [[name, words if name == "device" else value] for name, value in tree["params"]["dict"]]
    tree["params"]["dict"] = [*params, ["no_parameter", 1]]
    forge(saved, tree)
    with pytest.raises(ModelFileError, match="does not describe a model") as refused:
        load_model(saved)
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < len(str(saved)) + 400


plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.lists(st.text()).map(lambda texts: np.array(texts, dtype=object))
    | st.lists(st.floats(allow_nan=False, width=32)).map(lambda x: np.array(x, dtype=np.float32)),
    lambda inner: (
        st.lists(inner)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text() | st.integers() | st.booleans(), inner)
    ),
    max_leaves=8,
)


def same(a, b):
    if isinstance(a, np.ndarray):
        return isinstance(b, np.ndarray) and a.dtype == b.dtype and a.tolist() == b.tolist()
    if isinstance(a, list | tuple):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return list(map(repr, a)) == list(map(repr, b)) and all(same(a[k], b[k]) for k in a)
    return type(a) is type(b) and a == b


@settings(deadline=None, derandomize=True)
@given(plain)
def test_every_plain_value_survives(value):
    arrays = {}
    tree = json.loads(json.dumps(_encode(value, "model", arrays)))
    assert same(value, _decode(tree, safetensors.numpy.load(safetensors.numpy.save(arrays))))


def test_the_file_is_plain_and_says_what_it_is(saved):
    metadata, arrays = parts_of(saved)
    assert metadata["format"] == "undrift-model"
    assert metadata["format_version"] == FORMAT_VERSION
    assert metadata["library_version"] == undrift.__version__
    assert json.loads(metadata["model"])["estimator"] == "MSDA"
    assert {a.dtype.kind for a in arrays.values()} <= set("fiub")
    assert pickle.PROTO + b"\x04" not in saved.read_bytes()[:16]


# ------------------------------------------------------------------ what cannot be saved


def test_what_cannot_be_saved_is_refused(path, counts):
    with pytest.raises(NotFittedError):
        save_model(MSDA(), path)
    assert not path.exists()
    from sklearn.decomposition import PCA

    with pytest.raises(TypeError, match="PCA"):
        save_model(PCA().fit(counts), path)
    assert os.listdir(path.parent) == []
    model = MSDA(1, random_state=np.random.RandomState(0)).fit(counts)
    with pytest.raises(TypeError, match=r"cannot save model.params.random_state: RandomState"):
        save_model(model, path)
    assert os.listdir(path.parent) == []


def test_an_unknown_number_of_bits_is_refused(path, counts):
    with pytest.raises(ValueError, match=r"^bits=4 is not known; choose one of 32, 16, 8$"):
        save_model(MSDA(1).fit(counts), path, bits=4)
    assert not path.exists()


# ------------------------------------------------------------------ atomic


@pytest.mark.parametrize("failing", ["safetensors.numpy.save_file", "os.replace"])
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()], ids=repr)
def test_a_failure_while_writing_leaves_the_old_file_and_nothing_else(counts, saved, fail, failing, error):
    before = saved.read_bytes()
    fail(failing, error)
    with pytest.raises(type(error)):
        save_model(MSDA(1).fit(counts), saved)
    assert saved.read_bytes() == before
    assert os.listdir(saved.parent) == [saved.name]


def test_the_same_model_gives_the_same_bytes_each_time(counts, path):
    """Names with every character that JSON escapes: the header, put in order, is as long as it was."""
    names = [f"{number}{chr(number)}" for number in (*range(300), 0x2028, 0xFFFF, 0x1F600)]
    model = MSDA(1).fit(counts)
    model.names_ = names
    model.more_ = "".join(names)
    contents = set()
    for _ in range(5):
        save_model(model, path)
        contents.add(path.read_bytes())
    assert len(contents) == 1
    loaded = load_model(path)
    assert (loaded.names_, loaded.more_) == (model.names_, model.more_)


# ------------------------------------------------------------------ files that are not whole, or not ours


def test_a_truncated_file_or_one_of_another_kind(saved):
    whole = saved.read_bytes()
    others = [b"PK\x03\x04", b"text,label\n", b"\xff" * 64, b"\x00" * 64, pickle.dumps([1, 2])]
    for content in [whole[: int(len(whole) * share)] for share in (0, 0.001, 0.3, 0.9, 0.9999)] + others:
        saved.write_bytes(content)
        with pytest.raises(ModelFileError, match="is truncated or not a model file"):
            load_model(saved)


def test_any_changed_byte_is_noticed(saved):
    content = saved.read_bytes()
    for position in np.linspace(0, len(content) - 1, 200).astype(int):
        changed = bytearray(content)
        changed[position] ^= 1
        saved.write_bytes(changed)
        with pytest.raises(ModelFileError):
            load_model(saved)


@pytest.mark.parametrize("field", ["format", "format_version", "library_version", "model", "digest"])
def test_any_missing_or_changed_field_is_noticed(saved, field):
    metadata, arrays = parts_of(saved)
    value = metadata.pop(field)
    for changed in (metadata, metadata | {field: value + " "}, metadata | {field: "0"}):
        safetensors.numpy.save_file(arrays, saved, metadata=changed)
        with pytest.raises(ModelFileError):
            load_model(saved)
    arrays.pop(next(iter(arrays)))
    safetensors.numpy.save_file(arrays, saved, metadata=metadata | {field: value})
    with pytest.raises(ModelFileError, match="changed since it was saved"):
        load_model(saved)


@pytest.mark.parametrize("version", ["2", "99999999999999999999", "two", "²", "0", ""])
def test_another_or_meaningless_format_version(saved, version):
    forge(saved, tree_of(saved), format_version=version, library_version="9.9")
    with pytest.raises(ModelFileError, match=r"format version .* upgrade undrift .*9\.9"):
        load_model(saved)


def test_files_from_elsewhere_no_file_and_a_folder(path, tmp_path):
    for metadata in (None, {"format": "pt"}):
        safetensors.numpy.save_file({"weight": np.eye(2)}, path, metadata=metadata)
        with pytest.raises(ModelFileError, match="not written by undrift"):
            load_model(path)
    with pytest.raises(FileNotFoundError, match="nothing-here"):
        load_model(tmp_path / "nothing-here")
    with pytest.raises(OSError, match=tmp_path.name):
        load_model(tmp_path)


# ------------------------------------------------------------------ hostile files


class Trap:
    """Fires if it is ever unpickled."""

    def __reduce__(self):
        return (pytest.fail, ("a pickle was run",))


def with_fitted(tree, *pairs):
    return {**tree, "fitted": {"dict": [*tree["fitted"]["dict"], *pairs]}}


def hostile(tree):
    """Descriptions of models that are not, by name."""
    deep = None
    for _ in range(5000):
        deep = {"list": [deep]}
    layer = {"coef": {"array": "a"}, "intercept": {"array": "a"}, "activation": "tanh"}
    return {
        "unknown class": {**tree, "estimator": "Popen"},
        "dotted class": {**tree, "estimator": "os.system"},
        "class of another type": {**tree, "estimator": ["MSDA"]},
        "dunder attribute": with_fitted(tree, ["__class__", "x"]),
        "dunder attribute of nobody": with_fitted(tree, ["__reduce_later__", "x"]),
        "method replaced": with_fitted(tree, ["transform", "x"]),
        "attribute that is no string": with_fitted(tree, [3, "x"]),
        "key that is no scalar": with_fitted(tree, [["a"], "x"]),
        "unknown parameter": {**tree, "params": {"dict": [["command", "rm"]]}},
        "parameters of another type": {**tree, "params": 3},
        "attributes of another type": {**tree, "fitted": {"list": []}},
        "unknown noun": with_fitted(tree, ["x", {"Popen": {"args": "true"}}]),
        "noun with unknown fields": with_fitted(tree, ["x", {"Layer": {"args": "true"}}]),
        "noun with no fields": with_fitted(tree, ["x", {"Layer": [1]}]),
        "layer of strings": with_fitted(tree, ["x", {"Layer": {**layer, "coef": "a", "intercept": "b"}}]),
        "layer of one dimension": with_fitted(tree, ["x", {"Layer": layer}]),
        "unknown activation": with_fitted(tree, ["x", {"Layer": {**layer, "activation": "exec"}}]),
        "array that is not there": with_fitted(tree, ["x", {"array": "nowhere"}]),
        "array under a list": with_fitted(tree, ["x", {"array": ["a"]}]),
        "strings that are not JSON": with_fitted(
            tree, ["x", {"strings": "trap", "shape": [1], "dtype": "object"}]
        ),
        "strings of another shape": with_fitted(
            tree, ["x", {"strings": "names", "shape": [7], "dtype": "object"}]
        ),
        "strings of code": with_fitted(tree, ["x", {"strings": "names", "shape": [1], "dtype": "eval"}]),
        "bare list": [tree],
        "no model": None,
        "a number": 5,
        "an array": {"array": "a"},
        "nothing learnt": {**tree, "fitted": {"dict": []}},
        "very deep": deep,
    }


@pytest.mark.parametrize("name", hostile({"estimator": "MSDA", "params": {}, "fitted": {"dict": []}}))
def test_a_hostile_description_is_refused_and_runs_nothing(saved, name, monkeypatch):
    metadata, arrays = parts_of(saved)
    arrays["a"] = np.ones(3)
    arrays["trap"] = np.frombuffer(pickle.dumps(Trap()), dtype=np.uint8)
    arrays["names"] = np.frombuffer(b'["a"]', dtype=np.uint8)
    safetensors.numpy.save_file(arrays, saved, metadata=metadata)
    for dangerous in ("pickle.loads", "pickle.load", "builtins.eval", "builtins.exec", "os.system"):
        monkeypatch.setattr(dangerous, lambda *args, **kwargs: pytest.fail("code was run"))
    tree = hostile(json.loads(metadata["model"]))[name]
    if name == "very deep":
        metadata["model"] = '{"list": [' * 5000 + "1" + "]}" * 5000
        metadata["digest"] = _digest(metadata, arrays)
        safetensors.numpy.save_file(arrays, saved, metadata=metadata)
    else:
        forge(saved, tree)
    with pytest.raises(ModelFileError, match="does not describe a model"):
        load_model(saved)


def test_a_forged_file_that_says_nothing_wrong_loads(saved):
    """The forger of the tests above works: what they refuse, they refuse for its content."""
    forge(saved, tree_of(saved))
    assert len(load_model(saved).layers_) == 2


@pytest.mark.parametrize("bits", [16, 8])
def test_fewer_bits_round_the_weights_of_layers_alone(tmp_path, bits):
    model = classifier_with()
    path, plain = tmp_path / "small.safetensors", tmp_path / "plain.safetensors"
    save_model(model, path, bits=bits, updatable=True)
    save_model(model, plain, updatable=True)
    loaded = load_model(path)
    for coef, original in zip(loaded.coef_, model.coef_, strict=True):
        assert_array_equal(coef, original)
    X = np.eye(9, dtype=np.float32)
    assert_array_equal(loaded.decision_function(X), round_layers(model, bits).decision_function(X))
    assert_allclose(loaded.predict_proba(X), model.predict_proba(X), atol=0.01)
    assert_array_equal(loaded.predict(X), model.predict(X))
    assert path.stat().st_size < plain.stat().st_size
    save_model(loaded, tmp_path / "again.safetensors", updatable=True)  # so it does not grow
    again = load_model(tmp_path / "again.safetensors")
    assert (tmp_path / "again.safetensors").stat().st_size == path.stat().st_size
    assert_allclose(again.predict_proba(X), loaded.predict_proba(X), atol=1e-5)
    new, labels = np.random.default_rng(1).poisson(0.6, (6, 9)), [0, 1, 0, 1, 0, 1]
    assert_allclose(
        loaded.update(new, labels).predict_proba(X), model.update(new, labels).predict_proba(X), atol=0.02
    )


def test_the_fewest_bits_are_those_that_change_no_prediction():
    model = classifier_with()
    X = np.random.default_rng(0).poisson(0.6, (60, 9)).astype(np.float32)
    assert choose_bits(model, {"target": X}) == 8
    fragile = Fragile(2, random_state=0).fit(X[:40], np.arange(40) % 2, X[40:])
    for bits in (16, 32):
        fragile.needed_bits = bits
        assert choose_bits(fragile, {"target": X}) == bits
    assert_array_equal(round_layers(model, 8).predict(X), model.predict(X))


class Fragile(MSDAClassifier):
    """Predicts one class alone where its layers have fewer bits than it needs."""

    def predict(self, X, **given):
        has_bits = getattr(self.representation_, "layer_bits_", 32) >= self.needed_bits
        return super().predict(X, **given) if has_bits else np.zeros(len(X), dtype=int)


def classifier_with(**changes):
    """Fit a small classifier and change what it learnt."""
    rng = np.random.default_rng(0)
    X = rng.poisson(0.6, (60, 9)).astype(np.float32)
    model = MSDAClassifier(2, random_state=0).fit(X[:40], np.arange(40) % 2, X[40:])
    vars(model).update(changes)
    return model


def test_rows_of_the_first_layer_that_are_the_training_rows_are_saved_once(path):
    X = sp.csr_array(np.random.default_rng(0).poisson(0.4, (40, 60)).astype(np.float32))
    model = MSDAClassifier(2, random_state=0).fit(X[:20], np.arange(20) % 2, X[20:])
    save_model(model, path, updatable=True)
    _, arrays = parts_of(path)
    assert [name for name in arrays if name.endswith(".indptr")] == [
        "model.fitted.representation_.fitted.layers_.0.rows.indptr"
    ]
    loaded = load_model(path)
    assert_array_equal(loaded.memory_.anchors.X.toarray(), X.toarray())
    for each in (loaded, model):
        each.update(X[25:29], [0, 1, 0, 1])
    assert_allclose(loaded.predict_proba(X), model.predict_proba(X), atol=1e-5)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_weights_that_are_not_finite_are_refused(path, bad):
    model = classifier_with()
    model.model_.coef[1][0, 0] = bad
    save_model(model, path)
    with pytest.raises(ModelFileError, match=r"model_.*coef\.1 has values that are not finite"):
        load_model(path)


@pytest.mark.parametrize("temperature", [0.0, -1.0, float("nan"), float("inf")])
def test_temperatures_that_scores_cannot_be_divided_by_are_refused(path, temperature):
    save_model(classifier_with(temperature_=temperature), path)
    with pytest.raises(ModelFileError, match="temperature_ must be above 0"):
        load_model(path)


@pytest.mark.slow
def test_loading_needs_no_other_import(tmp_path):
    """`undrift.persist` knows every class by itself."""
    save_model(MSDA(1).fit(np.eye(3)), tmp_path / "stack.safetensors")
    program = "import sys; from undrift.persist import load_model as load; print(load(sys.argv[1]).n_layers)"
    command = [sys.executable, "-c", program, str(tmp_path / "stack.safetensors")]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "1\n"
