"""Model files with a right digest over something wrong: refused in one line, in little memory."""

import json
import random
import re
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy

import undrift
from tests.helpers.hostile_models import change_model
from tests.helpers.model_files import forge, parts_of, tree_of
from undrift import MSDA, MSDAClassifier, TextAdapter, load_model, save_model
from undrift.persist import MAX_DESCRIPTION, ModelFileError, _digest

FILES_PER_MODEL = 150


@pytest.fixture(scope="module")
def saved_models(tmp_path_factory):
    """Small model files, one of each kind."""
    rng = np.random.default_rng(0)
    X = rng.poisson(0.6, (60, 12)).astype(np.float32)
    y = np.array(["a", "b", "c"])[np.arange(30) % 3]
    words = [f"word{number}" for number in range(12)]
    documents = [" ".join(np.repeat(words, row.astype(int))) for row in X]
    models = {
        "layers": MSDA(2, n_pivots=5).fit(X),
        "classifier": MSDAClassifier(n_layers=2).fit(X[:30], y, X[30:]),
        "text": TextAdapter().fit(documents[:30], y, {"a": documents[30:45], "b": documents[45:]}),
    }
    folder = tmp_path_factory.mktemp("models")
    for name, model in models.items():
        save_model(model, folder / name)
    return folder


def write_signed(path, metadata, arrays):
    metadata = {**metadata, "digest": _digest(metadata, arrays)}
    safetensors.numpy.save_file(arrays, path, metadata=metadata)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["layers", "classifier", "text"])
def test_a_changed_model_is_refused_or_works(saved_models, tmp_path, name):
    metadata, arrays = parts_of(saved_models / name)
    n_refused = 0
    for seed in range(FILES_PER_MODEL):
        write_signed(tmp_path / "model", *change_model(random.Random(seed), metadata, arrays))
        try:
            model = load_model(tmp_path / "model")
        except ModelFileError:
            n_refused += 1
            continue
        rows = ["word1 word2", "", "unknown"] if name == "text" else np.eye(3, model.n_features_in_)
        options = {"target": "a"} if name == "text" else {}
        (model.transform if name == "layers" else model.predict)(rows, **options)
    assert FILES_PER_MODEL / 2 < n_refused < FILES_PER_MODEL


def test_no_pickle_is_read():
    source = Path(undrift.__file__).parent
    pattern = r"\bpickle\.loads?\(|= joblib\.load\(|allow_pickle=True"
    assert not [path for path in source.rglob("*.py") if re.search(pattern, path.read_text("utf-8"))]


def peak_of_loading(path):
    """Bytes that loading a file takes at most, and the message if it is refused."""
    tracemalloc.start()
    message = ""
    try:
        load_model(path)
    except ModelFileError as error:
        message = str(error)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak, message


def test_one_long_name_does_not_widen_the_others(saved_models, tmp_path):
    metadata, arrays = parts_of(saved_models / "classifier")
    key = tree_of_strings(json.loads(metadata["model"]))
    names = ["x" * 100_000] + [f"{number}" for number in range(10_000)]
    arrays[key] = np.frombuffer(json.dumps(names).encode(), dtype=np.uint8)
    metadata["model"] = metadata["model"].replace('"shape": [3]', '"shape": [10001]')
    write_signed(tmp_path / "model", metadata, arrays)
    peak, _ = peak_of_loading(tmp_path / "model")
    assert peak < 40 * (tmp_path / "model").stat().st_size


def tree_of_strings(node):
    """Name of the first array of strings of fixed width in a description."""
    if isinstance(node, dict):
        if node.get("dtype") == "str":
            return node["strings"]
        node = list(node.values())
    return next(filter(None, map(tree_of_strings, node)), None) if isinstance(node, list) else None


def test_an_array_may_be_named_once(saved_models, tmp_path):
    metadata, arrays = parts_of(saved_models / "layers")
    arrays["names"] = np.frombuffer(json.dumps(["x" * 100_000] * 10).encode(), dtype=np.uint8)
    tree = json.loads(metadata["model"])
    again = {"strings": "names", "shape": [10], "dtype": "list"}
    tree["fitted"]["dict"].append(["names_", {"list": [again] * 1000}])
    write_signed(tmp_path / "model", {**metadata, "model": json.dumps(tree)}, arrays)
    peak, message = peak_of_loading(tmp_path / "model")
    assert peak < 10 * (tmp_path / "model").stat().st_size
    assert "names" in message


def test_n_grams_of_any_length_take_no_memory(tmp_path):
    """A model is tried on some of its terms; all n-grams of all of them would be the cube of the file."""
    documents = [" ".join(f"w{j}" for j in range(i, i + 40)) for i in range(0, 1200, 40)]
    path = tmp_path / "model"
    model = TextAdapter(classifier=MSDAClassifier(1)).fit(documents, ["a", "b"] * 15, documents)
    save_model(model.distill(documents), path)
    tree = json.dumps(tree_of(path))
    longer = re.sub(r'(\["ngram_range", {"tuple": \[1), \d\]', r"\1, 10000]", tree)
    assert longer != tree
    forge(path, json.loads(longer))
    peak, message = peak_of_loading(path)
    assert peak < 10 * path.stat().st_size
    assert message == ""


def test_a_long_description_is_refused_unread(saved_models, tmp_path):
    metadata, arrays = parts_of(saved_models / "layers")
    metadata["model"] = "[" + "[]," * (MAX_DESCRIPTION // 3) + "[]]"
    write_signed(tmp_path / "model", metadata, arrays)
    peak, message = peak_of_loading(tmp_path / "model")
    assert peak < 5 * (tmp_path / "model").stat().st_size
    assert "characters" in message


@pytest.mark.parametrize("n_features", [0, -1, 10**12, 2**70])
def test_a_number_of_features_that_the_file_cannot_hold(saved_models, tmp_path, n_features):
    path = tmp_path / "model"
    path.write_bytes((saved_models / "layers").read_bytes())
    tree = tree_of(path)
    fitted = dict(tree["fitted"]["dict"]) | {"n_features_in_": n_features}
    forge(path, {**tree, "fitted": {"dict": list(map(list, fitted.items()))}})
    with pytest.raises(ModelFileError, match="features"):
        load_model(path)


@pytest.mark.parametrize(
    ("number_type", "shape"),
    [
        *((number_type, [0]) for number_type in ("BF16", "F8_E4M3", "F8_E5M2", "X99")),
        *(("F32", shape) for shape in ([2**40, 2**40], [2**63], [-1], [1.5])),
    ],
)
def test_number_types_that_numpy_lacks_and_shapes_that_overflow(tmp_path, number_type, shape):
    n_bytes = 0 if shape == [0] else 4
    entry = {"dtype": number_type, "shape": shape, "data_offsets": [0, n_bytes]}
    header = json.dumps({"__metadata__": {}, "a": entry})
    path = tmp_path / "model"
    path.write_bytes(len(header).to_bytes(8, "little") + header.encode() + bytes(n_bytes))
    with pytest.raises(ModelFileError):
        load_model(path)
