"""Saving and loading fitted estimators: safetensors for arrays, JSON for the rest, no pickle.

A file is data and nothing else: loading builds only the classes of this library and the plain
values listed in :func:`_decode`, so that a hostile file cannot run code.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
from safetensors import SafetensorError, safe_open
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ._core import ACTIVATIONS, Gaussian, Layer, Poisson, Scatter
from ._files import replacing
from ._inputs import SAVABLE, checked_device
from ._version import __version__
from .classifier import SelfTraining

FORMAT = "undrift-model"
FORMAT_VERSION = 2  # 2: extra blocks, caution

_NOUNS: dict[str, type] = {noun.__name__: noun for noun in (Layer, Scatter, SelfTraining, Gaussian, Poisson)}
_SCALARS = (bool, int, float, str, type(None))


class ModelFileError(ValueError):
    """A file that is not a model of this library, or no longer a whole one."""


def save_model(estimator: BaseEstimator, path: str | os.PathLike[str]) -> None:
    """Save a fitted estimator of this library.

    The file is written beside its final name and then renamed, so that `path` holds the whole
    model or what it held before.

    Parameters
    ----------
    estimator : MDA, MSDA, MSDAClassifier, TermVectorizer or TextAdapter
        Fitted.
    path : path
        The usual ending is ``.safetensors``.
    """
    check_is_fitted(estimator)
    arrays: dict[str, np.ndarray] = {}
    tree = json.dumps(_encode(estimator, "model", arrays), ensure_ascii=False)
    metadata = {
        "format": FORMAT,
        "format_version": str(FORMAT_VERSION),
        "library_version": __version__,
        "model": tree,
    }
    metadata["digest"] = _digest(metadata, arrays)
    try:
        with replacing(path) as new:
            safetensors.numpy.save_file(arrays, new, metadata=metadata)
    except SafetensorError as error:
        raise OSError(f"{path} cannot be written: {error}") from None


def load_model(path: str | os.PathLike[str]) -> Any:
    """Load an estimator saved by :func:`save_model`; no code from the file is run.

    A model that was fitted on a GPU has ``device="cpu"`` after loading where there is none.

    Raises
    ------
    ModelFileError
        The file is truncated, changed, from elsewhere, or from a newer version of the library.
    """
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder, not a model file")
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            tree = _checked_header(path, metadata)
            arrays = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118 (not a dict)
    except SafetensorError as error:
        raise ModelFileError(f"{path} is not a model file, or only a part of one ({error})") from None
    if _digest(metadata, arrays) != metadata.get("digest"):
        raise ModelFileError(f"{path} has been changed since it was saved; save the model again")
    try:
        model = _decode_estimator(json.loads(tree), arrays)
        check_is_fitted(model)  # estimators among its parameters need not be
        return model
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise ModelFileError(f"{path} does not describe a model of this library ({error})") from None


def _checked_header(path: Path, metadata: dict[str, str]) -> str:
    if metadata.get("format") != FORMAT or "model" not in metadata:
        raise ModelFileError(f"{path} was not written by undrift's save_model")
    version = metadata.get("format_version", "")
    if version.isdecimal() and int(version) < FORMAT_VERSION:
        raise ModelFileError(
            f"{path} has format version {version}, from before the first release: fit and save it again"
        )
    if not version.isdecimal() or int(version) > FORMAT_VERSION:
        raise ModelFileError(
            f"{path} has format version {version!r}, and undrift {__version__} reads up to {FORMAT_VERSION}: "
            f"upgrade undrift (the file was written by {metadata.get('library_version', '?')})"
        )
    return metadata["model"]


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
        return {"dict": [[_plain_key(k), _encode(v, f"{key}.{k}", arrays)] for k, v in value.items()]}
    if isinstance(value, type) and issubclass(value, np.generic):
        return np.dtype(value).name
    if type(value) in _NOUNS.values():
        fields = {name: _encode(v, f"{key}.{name}", arrays) for name, v in vars(value).items()}
        return {type(value).__name__: fields}
    if type(value) in SAVABLE.values():
        fields = {"params": value.get_params(deep=False), "fitted": _fitted(value)}
        fields = {part: _encode(own, f"{key}.{part}", arrays) for part, own in fields.items()}
        return {"estimator": type(value).__name__, **fields}
    raise TypeError(f"cannot save {key}: {type(value).__name__} is neither an array, a plain value nor ours")


def _plain_key(key: Any) -> Any:
    return key.item() if isinstance(key, np.generic) else key


def _fitted(estimator: BaseEstimator) -> dict[str, Any]:
    """Everything an estimator learnt, by attribute name."""
    learnt = dict(vars(estimator))
    settings = ["_skl_callbacks", "_sklearn_output_config", "_metadata_request"]  # of this session
    for name in [*estimator.get_params(deep=False), *settings]:
        learnt.pop(name, None)
    return learnt


def _encode_array(value: np.ndarray, key: str, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    if value.dtype.kind in "fiub":
        arrays[key] = np.ascontiguousarray(value)
        return {"array": key}
    # names and labels: UTF-8 JSON bytes in a uint8 tensor
    plain = json.dumps([_encode(item, key, arrays) for item in value.ravel()], ensure_ascii=False)
    arrays[key] = np.frombuffer(plain.encode(), dtype=np.uint8)
    return {"strings": key, "shape": list(value.shape), "dtype": "object" if value.dtype == object else "str"}


def _decode(node: Any, arrays: dict[str, np.ndarray]) -> Any:
    """Inverse of :func:`_encode`; whatever it does not know is refused."""
    if isinstance(node, _SCALARS):
        return node
    if not isinstance(node, dict):
        raise ValueError(f"unexpected {type(node).__name__}")
    if "estimator" in node:
        return _decode_estimator(node, arrays)
    if "strings" in node:
        items = json.loads(arrays[node["strings"]].tobytes().decode())
        if node["dtype"] == "list":
            return items
        return np.array(items, dtype={"object": object, "str": str}[node["dtype"]]).reshape(node["shape"])
    ((kind, own),) = node.items()
    if kind == "array":
        return arrays[own]
    if kind in ("list", "tuple"):
        items = [_decode(item, arrays) for item in own]
        return items if kind == "list" else tuple(items)
    if kind == "dict":
        return {_hashable(k): _decode(v, arrays) for k, v in own}
    noun = _NOUNS[kind](**{name: _decode(v, arrays) for name, v in own.items()})
    return _checked_layer(noun) if isinstance(noun, Layer) else noun


def _hashable(key: Any) -> Any:
    if not isinstance(key, _SCALARS):
        raise ValueError(f"unexpected key {key!r}")
    return key


def _checked_layer(layer: Layer) -> Layer:
    if layer.coef.ndim != 2 or layer.intercept.shape != layer.coef.shape[1:]:
        raise ValueError(f"layer of shapes {layer.coef.shape} and {layer.intercept.shape}")
    if layer.activation not in ACTIVATIONS:
        raise ValueError(f"activation {layer.activation!r}")
    return layer


def _decode_estimator(node: dict[str, Any], arrays: dict[str, np.ndarray]) -> BaseEstimator:
    estimator = SAVABLE[node["estimator"]]()
    params, fitted = (_decode(node[part], arrays) for part in ("params", "fitted"))
    if hasattr(estimator, "_upgrade_saved"):
        params, fitted = estimator._upgrade_saved(params, fitted)
    estimator.set_params(**params)
    if not _is_available(getattr(estimator, "device", "cpu")):
        estimator.set_params(device="cpu")
    for name, value in fitted.items():
        if not isinstance(name, str) or name.startswith("__") or hasattr(type(estimator), name):
            raise ValueError(f"unexpected attribute {name!r}")
        setattr(estimator, name, value)
    return estimator


def _is_available(device: str) -> bool:
    """Tell whether this machine has the device that a model was saved with; "cpu" does not import torch."""
    try:
        return device == "cpu" or bool(checked_device(device))
    except (ImportError, ValueError):
        return False
