"""Saved models: whole, plain, and safe to load."""

import json
import os
import pickle
import stat
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import safetensors.numpy
import scipy.special
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from sklearn.exceptions import NotFittedError

import undrift
from tests.helpers.model_files import forge, parts_of, tree_of
from tests.helpers.oracles import weights
from undrift import MDA, MSDA, MSDAClassifier, load_model, save_model
from undrift._core import ACTIVATIONS
from undrift.persist import (
    FORMAT_VERSION,
    OLDEST_VERSION,
    ModelFileError,
    _decode,
    _digest,
    _encode,
    measure_model,
    round_layers,
)

MODELS = [
    MDA(noise=0.3),
    MSDA(n_layers=2),
    MSDA(n_layers=2, n_pivots=3, random_state=0, activation="relu"),
    MSDA(n_layers=1, binarize=True, include_input=False, memory_budget="1 GB"),
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


def test_a_loaded_layer_goes_on_learning(counts, path):
    save_model(MDA().partial_fit(counts[:20]), path)
    loaded = load_model(path).partial_fit(counts[20:])
    assert_array_equal(weights(loaded.layer_), weights(MDA().fit(counts).layer_))


def test_feature_names_survive(counts, path):
    pd = pytest.importorskip("pandas")
    names = ["good", "énergie", "日本", 'quo"te', "new\nline", "\u0085", "", "🙂", "x" * 1000]
    save_model(MSDA(2).fit(pd.DataFrame(counts, columns=names)), path)
    loaded = load_model(path)
    assert loaded.feature_names_in_.tolist() == names
    assert loaded.feature_names_in_.dtype == object
    with pytest.raises(ValueError, match="feature names"):
        loaded.transform(pd.DataFrame(counts, columns=names[::-1]))


def test_split_and_pivots_survive(counts, path):
    model = MSDA(1, n_pivots=3, random_state=0).fit(counts)
    save_model(model, path)
    loaded = load_model(path)
    assert_array_equal(loaded.pivots_, model.pivots_)
    assert [part.tolist() for part in loaded.parts_] == [part.tolist() for part in model.parts_]


def test_routing_requests_output_settings_and_callbacks_do_not_hinder(counts, path):
    with sklearn.config_context(enable_metadata_routing=True):
        model = MSDA(1).set_fit_request(sample_domain=False).set_output(transform="default").fit(counts)
        save_model(model, path)
    assert_array_equal(load_model(path).transform(counts), model.transform(counts))


def test_numpy_scalars_as_parameters(counts, path):
    save_model(MSDA(np.int64(1), np.float32(0.5), binarize=np.True_).fit(counts), path)
    params = load_model(path).get_params()
    assert (params["n_layers"], params["noise"], params["binarize"]) == (1, 0.5, True)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_a_loaded_model_applies_the_activation_it_was_saved_with(counts, path, activation):
    save_model(MSDA(n_layers=1, activation=activation).fit(counts), path)
    loaded = load_model(path)
    (layer,) = loaded.layers_
    assert layer.activation == loaded.activation == activation
    functions = {"tanh": np.tanh, "relu": lambda rows: np.maximum(rows, 0), "identity": lambda rows: rows}
    function = {**functions, "sigmoid": scipy.special.expit}[activation]
    hidden = loaded.transform(counts)[:, counts.shape[1] :]
    np.testing.assert_allclose(hidden, function(counts @ layer.coef + layer.intercept), rtol=1e-6)


LEGACY = Path(__file__).parent / "data" / "models-0.x"
LEGACY_CASES = json.loads((LEGACY / "expected.json").read_text())


@pytest.mark.parametrize("name", LEGACY_CASES)
def test_a_model_file_of_version_0_1_loads_and_predicts_the_same(name):
    """The parameters that some of the files name have since been removed."""
    case, model = LEGACY_CASES[name], load_model(LEGACY / f"{name}.safetensors")
    assert type(model).__name__ == case["class"]
    rows = case["input"] if name == "text" else np.array(case["input"])
    if "transformed" in case:
        np.testing.assert_allclose(model.transform(rows), case["transformed"], rtol=1e-6)
        return
    options = {"extra": [np.array(case["blocks"])]} if "blocks" in case else {}
    for domain, scores in case["scores"].items():
        numbers = np.full(len(rows), int(domain))
        loaded = model.decision_function(rows, sample_domain=numbers, **options)
        np.testing.assert_allclose(loaded, scores, rtol=1e-6, atol=1e-9)
    assert model.predict(rows, **options).tolist() == case["prediction"]
    if "probabilities" in case:
        np.testing.assert_allclose(model.predict_proba(rows), case["probabilities"], rtol=1e-6)


def test_every_model_file_of_version_0_1_is_checked():
    assert {file.stem for file in LEGACY.glob("*.safetensors")} == set(LEGACY_CASES)
    versions = {parts_of(file)[0]["format_version"] for file in LEGACY.glob("*.safetensors")}
    assert versions == {"2"}


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


@pytest.mark.parametrize("version", [OLDEST_VERSION, FORMAT_VERSION])
def test_unknown_parameters_are_dropped_from_earlier_formats_alone(counts, saved, version):
    tree = tree_of(saved)
    tree["params"]["dict"].append(["removed_since", 0.5])
    forge(saved, tree, format_version=str(version))
    if version == FORMAT_VERSION:
        with pytest.raises(ModelFileError, match="does not describe a model"):
            load_model(saved)
    else:
        assert load_model(saved).transform(counts).shape[0] == len(counts)


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
    assert metadata["format_version"] == str(FORMAT_VERSION)
    assert metadata["library_version"] == undrift.__version__
    assert json.loads(metadata["model"])["estimator"] == "MSDA"
    assert {a.dtype.kind for a in arrays.values()} <= set("fiub")
    assert pickle.PROTO + b"\x04" not in saved.read_bytes()[:16]


@pytest.mark.skipif(os.name != "posix", reason="permissions are those of POSIX")
def test_the_file_has_the_usual_permissions(saved):
    (saved.parent / "other").touch()
    assert stat.S_IMODE(saved.stat().st_mode) == stat.S_IMODE((saved.parent / "other").stat().st_mode)


# ------------------------------------------------------------------ what cannot be saved


def test_an_unfitted_model_is_refused(path):
    with pytest.raises(NotFittedError):
        save_model(MSDA(), path)
    assert not path.exists()


def test_a_model_of_another_library_is_refused(counts, path):
    from sklearn.decomposition import PCA

    with pytest.raises(TypeError, match="PCA"):
        save_model(PCA().fit(counts), path)
    assert os.listdir(path.parent) == []


def test_a_value_that_is_not_plain_is_named(counts, path):
    model = MSDA(1, random_state=np.random.RandomState(0)).fit(counts)
    with pytest.raises(TypeError, match=r"cannot save model.params.random_state: RandomState"):
        save_model(model, path)
    assert os.listdir(path.parent) == []


# ------------------------------------------------------------------ atomic


@pytest.mark.parametrize("failing", ["safetensors.numpy.save_file", "os.replace"])
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()], ids=repr)
def test_a_failure_while_writing_leaves_the_old_file_and_nothing_else(
    counts, saved, monkeypatch, failing, error
):
    before = saved.read_bytes()

    def fail(arrays, name, *args, **kwargs):
        if failing == "safetensors.numpy.save_file":
            Path(name).write_bytes(b"half")
        raise error

    monkeypatch.setattr(failing, fail)
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


def test_saving_replaces_the_old_file(counts, saved):
    save_model(MSDA(3).fit(counts), saved)
    assert len(load_model(saved).layers_) == 3
    assert os.listdir(saved.parent) == [saved.name]


def test_a_folder_that_is_not_there(counts, tmp_path):
    with pytest.raises(FileNotFoundError, match="missing"):
        save_model(MSDA(1).fit(counts), tmp_path / "missing" / "model")


# ------------------------------------------------------------------ files that are not whole, or not ours


@pytest.mark.parametrize("share", [0.0, 0.001, 0.3, 0.9, 0.9999])
def test_a_truncated_file(saved, share):
    content = saved.read_bytes()
    saved.write_bytes(content[: int(len(content) * share)])
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


def test_a_missing_array(saved):
    metadata, arrays = parts_of(saved)
    arrays.pop(next(iter(arrays)))
    safetensors.numpy.save_file(arrays, saved, metadata=metadata)
    with pytest.raises(ModelFileError, match="changed since it was saved"):
        load_model(saved)


@pytest.mark.parametrize("version", [str(FORMAT_VERSION + 1), "99999999999999999999", "two", "²", "-1", ""])
def test_a_newer_or_meaningless_format_version(saved, version):
    forge(saved, tree_of(saved), format_version=version, library_version="9.9")
    with pytest.raises(ModelFileError, match=r"format version .* upgrade undrift .*9\.9"):
        load_model(saved)


def test_a_safetensors_file_from_elsewhere(path):
    for metadata in (None, {"format": "pt"}):
        safetensors.numpy.save_file({"weight": np.eye(2)}, path, metadata=metadata)
        with pytest.raises(ModelFileError, match="not written by undrift"):
            load_model(path)


@pytest.mark.parametrize(
    "content", [b"", b"PK\x03\x04", b"text,label\n", b"\xff" * 64, b"\x00" * 64, pickle.dumps([1, 2])]
)
def test_a_file_of_another_kind(path, content):
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match="not a model file"):
        load_model(path)


def test_no_file_and_a_folder(tmp_path):
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


def test_a_format_from_before_the_release(saved):
    forge(saved, tree_of(saved), format_version=str(OLDEST_VERSION - 1))
    with pytest.raises(ModelFileError, match=r"format version 0, .* fit and save it again"):
        load_model(saved)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_half_precision_rounds_the_weights_of_layers_alone(counts, tmp_path, dtype):
    y = np.arange(len(counts)) % 2
    model = MSDAClassifier(2, dtype=dtype, random_state=0).fit(counts, y, counts + 1)
    path, plain = tmp_path / "half.safetensors", tmp_path / "plain.safetensors"
    save_model(model, path, half=True)
    save_model(model, plain)
    loaded = load_model(path)
    layers = loaded.representation_.layers_
    for layer, original in zip(layers, model.representation_.layers_, strict=True):
        assert layer.coef.dtype == np.dtype(dtype)
        np.testing.assert_array_equal(layer.coef, original.coef.astype(np.float16).astype(dtype))
        np.testing.assert_array_equal(layer.intercept, original.intercept)
    for coef, original in zip(loaded.coef_, model.coef_, strict=True):
        np.testing.assert_array_equal(coef, original)
    np.testing.assert_array_equal(
        loaded.decision_function(counts), round_layers(model).decision_function(counts)
    )
    n_weights = sum(layer.coef.size for layer in layers)
    saved = plain.stat().st_size - path.stat().st_size
    assert saved == pytest.approx(n_weights * (np.dtype(dtype).itemsize - 2), abs=64)
    assert measure_model(model, half=True) == pytest.approx(path.stat().st_size, abs=5000)
    save_model(load_model(path), tmp_path / "again.safetensors")  # loses nothing, so it does not grow
    assert (tmp_path / "again.safetensors").stat().st_size == path.stat().st_size
    assert measure_model(model) - measure_model(model, half=True) == pytest.approx(saved, abs=64)


def test_a_full_disk_is_noticed_before_anything_is_written(counts, tmp_path, monkeypatch):
    model = MSDA(1).fit(counts)
    usage = SimpleNamespace(free=100)
    monkeypatch.setattr("undrift.persist.shutil.disk_usage", lambda folder: usage)
    with pytest.raises(OSError, match=r"cannot be written: it takes [\d,]{5,} bytes, and 100 are free"):
        save_model(model, tmp_path / "model.safetensors")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["msda", "classifier", "text"])
def test_a_model_file_of_format_1_gives_the_same(name):
    folder = Path(__file__).parent / "data" / "models-format-1"
    expected = json.loads((folder / "expected.json").read_text())
    model = load_model(folder / f"{name}.safetensors")
    rows = expected["documents"] if name == "text" else np.array(expected["rows"])
    given = (model.transform if name == "msda" else model.decision_function)(rows)
    np.testing.assert_allclose(given, expected[name], rtol=1e-6, atol=1e-8)


def test_a_model_file_of_format_3_predicts_the_same():
    model = load_model(Path(__file__).parent / "data" / "models-format-3" / "classifier.safetensors")
    rows = np.eye(20)[:6]
    assert model.predict(rows).tolist() == ["b"] * 6
    expected = [
        0.341298,
        0.325367,
        0.325465,
        0.343056,
        0.335037,
        0.340763,
    ]  # what the version that wrote it gave
    assert np.round(model.predict_proba(rows)[:, 0], 6).tolist() == expected
