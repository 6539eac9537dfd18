"""Saving and loading fitted estimators: safetensors for arrays, JSON for the rest, no pickle.

A file is data and nothing else: loading builds only classes of this library that are registered as savable,
and the plain values listed in :func:`_decode`, so that a hostile file cannot run code.

A class is saved by its name and its fields: an estimator by its parameters and learnt attributes, a dataclass
by its fields. A dataclass may have ``shrink()``, which returns the form that is saved, and ``expand()``, that
undoes it and refuses parts that do not fit together.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import warnings
from collections.abc import Callable
from copy import copy
from pathlib import Path
from textwrap import shorten
from typing import Any

import numpy as np
import safetensors.numpy
import scipy.sparse as sp
from safetensors import SafetensorError, safe_open
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ._version import __version__
from .core import ACTIVATIONS, Layer, RowCoef, Scatter
from .errors import UndriftError
from .files import replace_file
from .inputs import SAVABLE, check_device

FORMAT = "undrift-model"
FORMAT_VERSION = "1"
MAX_DESCRIPTION = 16 << 20  # characters of JSON, arrays not counted
LARGEST_HALF = 65_504.0  # the largest number of half precision

_CORE_CLASSES: dict[str, type] = {cls.__name__: cls for cls in (Layer, RowCoef, Scatter)}
_SCALARS = (bool, int, float, str, type(None))
_OF_THE_SESSION = (
    "_sklearn_output_config", "_metadata_request", "_cached_vectorizer", "target_scores_",
)  # fmt: skip
PARTS = {"layers": "representation_", "training_rows": "update_state_"}  # attributes that make a file large


class ModelFileError(UndriftError):
    """A file that is not a model of this library, or is truncated or changed."""


def save_model(
    estimator: BaseEstimator, path: str | os.PathLike[str], *, updatable: bool = False, half: bool = False
) -> None:
    """Save a fitted estimator of this library, by an atomic write: all of it, or `path` stays as it was.

    Parameters
    ----------
    estimator : MDA, MSDA, MSDAClassifier, TermVectorizer, TextAdapter or DistilledText
        Fitted.
    path : path
        The usual ending is ``.safetensors``.
    updatable : bool, default=False
        Whether to save the rows that `update` and `ask` need. The file is then larger.
    half : bool, default=False
        Whether to save the weights of layers in half precision (11 bits): half of the size, and hardly a
        prediction changes. Weights that were loaded from such a file are saved so in any case.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from undrift import MDA, load_model, save_model
    >>> with TemporaryDirectory() as folder:
    ...     save_model(MDA().fit([[1.0, 0.0], [0.0, 1.0]]), f"{folder}/layer.safetensors")
    ...     load_model(f"{folder}/layer.safetensors").n_features_in_
    2
    """
    check_is_fitted(estimator)
    if not updatable:
        estimator = _change_inside(estimator, "update_state_", lambda state: None)
    if half or _has_half_layers(estimator):
        estimator = round_layers(estimator, np.float16)
    arrays: dict[str, np.ndarray] = {}
    tree = json.dumps(_encode(estimator, "model", arrays), ensure_ascii=False)
    metadata = {"format": FORMAT, "format_version": FORMAT_VERSION, "library_version": __version__}
    metadata["model"] = tree
    metadata["digest"] = _digest(metadata, arrays)
    try:
        with replace_file(path) as new:
            safetensors.numpy.save_file(arrays, new, metadata=metadata)
            _sort_metadata(new)
    except SafetensorError as error:
        raise OSError(f"{path} cannot be written: {error}") from None


def _sort_metadata(path: Path) -> None:
    """Put the fields of a header in order, which safetensors lacks: the same model gives the same bytes."""
    with path.open("r+b") as file:
        n_bytes = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(n_bytes))
        header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
        file.seek(8)
        file.write(json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode().ljust(n_bytes))


def measure_parts(path: str | os.PathLike[str]) -> dict[str, int]:
    """Return the bytes of a model file that its layers, its training rows and the rest take."""
    parts, n_all = dict.fromkeys(PARTS, 0), os.path.getsize(path)
    with open(path, "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
    for name, entry in header.items():
        for part, attribute in PARTS.items():
            if f".{attribute}." in name:
                parts[part] += entry["data_offsets"][1] - entry["data_offsets"][0]
    return {**parts, "rest": n_all - sum(parts.values())}


def round_layers(estimator: Any, dtype: Any = None) -> Any:
    """Return the model that a file in half precision holds: weights of layers rounded to 11 bits.

    Layers with weights above 65,504, which half precision lacks, stay as they are. With a `dtype` rounded
    weights are of that type, else of the type they had.
    """
    return _change_inside(estimator, "layers_", lambda layers: [_round_layer(each, dtype) for each in layers])


def _change_inside(estimator: Any, name: str, change: Callable[[Any], Any]) -> Any:
    """Return a copy in which an attribute, of the estimator or of one inside it, is changed."""
    estimator = copy(estimator)
    for inside in ("classifier_", "representation_"):
        if hasattr(estimator, inside):
            setattr(estimator, inside, _change_inside(getattr(estimator, inside), name, change))
    if hasattr(estimator, name):
        setattr(estimator, name, change(getattr(estimator, name)))
    return estimator


def _round_layer(layer: Layer, dtype: Any) -> Layer:
    if any(max(array.max(initial=0), -array.min(initial=0)) > LARGEST_HALF for array in _list_factors(layer)):
        return layer
    rounded = layer.coef.astype(np.float16)
    return dataclasses.replace(layer, coef=rounded.astype(dtype or layer.coef.dtype, copy=False))


def _has_half_layers(estimator: Any) -> bool:
    """Tell whether half precision holds the weights of all layers, as after loading them from such a file."""
    for name in ("classifier_", "representation_"):
        estimator = getattr(estimator, name, estimator)
    factors = [factor for layer in getattr(estimator, "layers_", []) for factor in _list_factors(layer)]
    with np.errstate(over="ignore"):
        return all(np.array_equal(factor, factor.astype(np.float16)) for factor in factors)


def _list_factors(layer: Layer) -> list[np.ndarray]:
    """Return the arrays of a layer that half precision may hold."""
    return layer.coef.dense_factors if isinstance(layer.coef, RowCoef) else [layer.coef]


def load_model(path: str | os.PathLike[str]) -> Any:
    """Load an estimator that :func:`save_model` wrote to `path`; no code from the file is run.

    A model that was fitted on a GPU has ``device="cpu"`` after loading where there is none. A file that is
    truncated, changed, from elsewhere, or from another version of the format raises a `ModelFileError`.
    """
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder, not a model file")
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            _check_header(path, metadata)
            arrays = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118 (not a dict)
    except ModelFileError:
        raise
    except (SafetensorError, AttributeError, TypeError, ValueError) as error:  # number types NumPy lacks, too
        raise ModelFileError(f"{path} is truncated or not a model file ({error})") from None
    if _digest(metadata, arrays) != metadata.get("digest"):
        raise ModelFileError(f"{path} has been changed since it was saved; save the model again")
    try:
        for name, array in arrays.items():
            if array.dtype.kind == "f" and not np.isfinite(array).all():
                raise ValueError(f"{name} has values that are not finite")
        model = _decode_estimator(json.loads(metadata["model"]), arrays)
        check_is_fitted(model)  # estimators among its parameters need not be
        _try_model(model, path.stat().st_size)
    except (MemoryError, OSError):
        raise
    except Exception as error:  # a forged description can lead to any
        why = shorten(str(error), 300, placeholder=" ...")  # scikit-learn shows values, in several lines
        raise ModelFileError(f"{path} does not describe a model of this library ({why})") from None
    return model


def _check_header(path: Path, metadata: dict[str, str]) -> None:
    """Refuse a file that this release cannot read."""
    if metadata.get("format") != FORMAT or "model" not in metadata:
        raise ModelFileError(f"{path} was not written by undrift's save_model")
    if len(metadata["model"]) > MAX_DESCRIPTION:
        raise ModelFileError(
            f"{path} describes its model in {len(metadata['model']):,} characters, more than "
            f"the {MAX_DESCRIPTION:,} that any model needs"
        )
    version = metadata.get("format_version", "")
    if version != FORMAT_VERSION:
        raise ModelFileError(
            f"{path} has format version {version!r}, and undrift {__version__} reads {FORMAT_VERSION}: "
            f"upgrade undrift (the file was written by {metadata.get('library_version', '?')}), or fit again"
        )


def _digest(metadata: dict[str, str], arrays: dict[str, np.ndarray]) -> str:
    header = {key: value for key, value in metadata.items() if key != "digest"}
    digest = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
    for key in sorted(arrays):
        digest.update(f"{key}{arrays[key].dtype}{arrays[key].shape}".encode())
        digest.update(np.ascontiguousarray(arrays[key]).data)
    return digest.hexdigest()


def _encode(value: Any, key: str, arrays: dict[str, np.ndarray]) -> Any:
    """Turn a value into JSON, its arrays moved to `arrays` under names that start with `key`."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, _SCALARS):
        return value
    if isinstance(value, np.ndarray):
        return _encode_array(value, key, arrays)
    if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
        return {**_encode_array(np.array(value, dtype=object), key, arrays), "dtype": "list"}
    if isinstance(value, list | tuple):
        kind = "list" if isinstance(value, list) else "tuple"
        return {kind: [_encode(item, f"{key}.{i}", arrays) for i, item in enumerate(value)]}
    if isinstance(value, dict):
        return {
            "dict": [[_encode(k, key, arrays), _encode(v, f"{key}.{k}", arrays)] for k, v in value.items()]
        }
    if isinstance(value, type) and issubclass(value, np.generic):
        return np.dtype(value).name
    if sp.issparse(value):
        rows = sp.csr_array(value)
        parts = {"data": rows.data, "indices": rows.indices, "indptr": rows.indptr}
        encoded = {name: _encode(part, f"{key}.{name}", arrays) for name, part in parts.items()}
        return {"csr": {**encoded, "width": rows.shape[1]}}
    return _encode_instance(value, key, arrays)


def _encode_instance(value: Any, key: str, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """Describe an estimator or a dataclass of this library by its name and fields."""
    name = type(value).__name__
    if type(value) not in (SAVABLE.get(name), _CORE_CLASSES.get(name)):
        raise TypeError(f"cannot save {key}: {name} is neither an array, a plain value nor ours")
    if isinstance(value, BaseEstimator):
        params = value.get_params(deep=False)
        learnt = {k: v for k, v in vars(value).items() if k not in (*params, *_OF_THE_SESSION)}
        fields = {"params": params, "fitted": learnt}
        encoded = {part: _encode(field, f"{key}.{part}", arrays) for part, field in fields.items()}
        return {"estimator": name, **encoded}
    value = value.shrink() if hasattr(value, "shrink") else value
    names = [field.name for field in dataclasses.fields(value)]
    return {name: {field: _encode(getattr(value, field), f"{key}.{field}", arrays) for field in names}}


def _encode_array(value: np.ndarray, key: str, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    if value.dtype.kind in "fiub":
        arrays[key] = np.ascontiguousarray(value)
        return {"array": key}
    # names and labels: UTF-8 JSON bytes in a uint8 tensor
    plain = json.dumps([_encode(item, key, arrays) for item in value.ravel()], ensure_ascii=False)
    arrays[key] = np.frombuffer(plain.encode(), dtype=np.uint8)
    return {"strings": key, "shape": list(value.shape), "dtype": "object" if value.dtype == object else "str"}


def _decode(node: Any, arrays: dict[str, np.ndarray]) -> Any:
    """Inverse of :func:`_encode`; it refuses all else.

    An array is taken out of `arrays` when it is used: a file cannot grow by naming one a thousand times.
    """
    if isinstance(node, _SCALARS):
        return node
    if not isinstance(node, dict):
        raise ValueError(f"unexpected {type(node).__name__}")
    if "estimator" in node:
        return _decode_estimator(node, arrays)
    if "strings" in node:
        return _decode_strings(arrays.pop(node["strings"]), node["shape"], node["dtype"])
    ((kind, content),) = node.items()
    if kind == "array":
        return arrays.pop(content)
    if kind in ("list", "tuple"):
        items = [_decode(item, arrays) for item in content]
        return items if kind == "list" else tuple(items)
    if kind == "dict" and all(isinstance(key, _SCALARS) for key, _ in content):
        return {key: _decode(value, arrays) for key, value in content}
    if kind == "csr":
        data, indices, indptr = (arrays.pop(content[name]["array"]) for name in ("data", "indices", "indptr"))
        rows = sp.csr_array((data, indices, indptr), shape=(len(indptr) - 1, content["width"]))
        rows.check_format(full_check=True)
        return rows
    return _decode_dataclass(kind, content, arrays)


def _decode_dataclass(name: str, content: dict[str, Any], arrays: dict[str, np.ndarray]) -> Any:
    """Build a dataclass of this library and refuse parts that do not fit together."""
    cls, fields = (_CORE_CLASSES | SAVABLE)[name], {field: _decode(v, arrays) for field, v in content.items()}
    if not dataclasses.is_dataclass(cls):
        raise ValueError(f"{name} is an estimator")
    for field, value in fields.items():
        _check_temperature(field, value)
    noun: Any = cls(**fields)
    if isinstance(noun, Layer):
        return _check_layer(noun)
    return noun.expand() if hasattr(noun, "expand") else noun


def _decode_strings(encoded: np.ndarray, shape: list[int], dtype: str) -> Any:
    """Return names or labels; an array of fixed width only where padding does not make it large."""
    items = json.loads(encoded.tobytes().decode())
    if dtype == "list":
        return items
    width = max((len(item) for item in items if isinstance(item, str)), default=1)
    is_compact = 4 * width * len(items) <= 16 * encoded.nbytes + 65536
    kind = {"object": object, "str": str if is_compact else object}[dtype]
    strings = np.empty(len(items), dtype=object)
    strings[:] = items
    return strings.astype(kind).reshape(shape)


def _check_layer(layer: Layer) -> Layer:
    """Return a layer in the precision of its intercept; refuse parts that do not fit together."""
    shape = layer.coef.shape
    if len(shape) != 2 or layer.intercept.shape != shape[1:]:
        raise ValueError(f"layer of shapes {shape} and {layer.intercept.shape}")
    if layer.activation not in ACTIVATIONS:
        raise ValueError(f"activation {layer.activation!r}")
    if layer.coef.dtype == np.float16:
        return dataclasses.replace(layer, coef=layer.coef.astype(layer.intercept.dtype))
    return layer


def _check_temperature(name: str, value: Any) -> None:
    """Refuse a temperature that scores cannot be divided by."""
    if name.startswith("temperature") and not np.all(np.isfinite(value) & (np.asarray(value) > 0)):
        raise ValueError(f"{name} must be above 0 and finite")


def _decode_estimator(node: dict[str, Any], arrays: dict[str, np.ndarray]) -> BaseEstimator:
    estimator = SAVABLE[node["estimator"]]()
    params, fitted = (_decode(node[part], arrays) for part in ("params", "fitted"))
    estimator.set_params(**params)
    if not _is_available(getattr(estimator, "device", "cpu")):
        estimator.set_params(device="cpu")
    for name, value in fitted.items():
        if not isinstance(name, str) or name.startswith("__") or hasattr(type(estimator), name):
            raise ValueError(f"unexpected attribute {name!r}")
        _check_temperature(name, value)
        setattr(estimator, name, value)
    return estimator


def _try_model(model: Any, max_width: int) -> None:
    """Apply a model to two small rows, so that parts which do not fit are refused on loading."""
    width = getattr(model, "n_features_in_", 1)
    if not 1 <= width <= max_width:
        raise ValueError("more features than the file has bytes")
    if hasattr(model, "n_features_in_"):
        rows: Any = np.outer([0, 1], np.ones(width, dtype=np.float32))
    else:
        names = getattr(model, "vectorizer_", model).get_feature_names_out()[:50]
        rows = ["", " ".join(names)[:200]]  # n-grams of any length take the cube of this
    learnt = getattr(model, "classifier_", model)
    names = ("transform", "predict", "predict_proba")
    methods = [name for name in names if hasattr(model, name) and hasattr(learnt, name)]
    if not methods:
        raise ValueError("it neither transforms nor predicts")
    targets = getattr(learnt, "target_names_", [])
    if not isinstance(targets, list):
        raise ValueError("the names of its domains are no list")
    options = {"target": targets[0]} if len(targets) > 1 else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        answers = [getattr(model, name)(rows, **options) for name in methods]
        if getattr(learnt, "batch_", None) is not None:
            X = model.vectorizer_.transform(rows) if learnt is not model else rows
            learnt.align(X, **options)
    for answer in answers:
        if isinstance(answer, np.ndarray) and answer.dtype.kind == "f" and not np.isfinite(answer).all():
            raise ValueError("it gives values that are not finite")


def _is_available(device: str) -> bool:
    """Tell whether this machine has the device that a model was saved with; "cpu" does not import torch."""
    try:
        return device == "cpu" or bool(check_device(device))
    except (ImportError, ValueError):
        return False
