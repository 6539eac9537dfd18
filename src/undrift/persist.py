"""Saving and loading fitted estimators: safetensors for arrays, JSON for the rest, no pickle.

A file is data and nothing else: loading builds only the classes of `SAVABLE` and the plain values listed in
:func:`_decode`, so that a hostile file cannot run code.

A class is saved by its name and its fields: an estimator by its parameters and learnt attributes, a dataclass
by its fields. Layers of a stack are packed: see :mod:`undrift.core.packing`.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import warnings
from collections.abc import Callable, Mapping
from copy import copy
from functools import partial
from pathlib import Path
from textwrap import shorten
from typing import Any, BinaryIO, TypeAlias, TypeVar, cast, get_args

import numpy as np
import safetensors.numpy
import scipy.sparse as sp
from safetensors import SafetensorError, safe_open
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ._version import __version__
from .core import (
    ACTIVATIONS,
    Bits,
    Layer,
    PackedLayer,
    PackedRows,
    Rows,
    Scatter,
    System,
    pack_layers,
    unpack_layers,
)
from .errors import UndriftError
from .files import replace_file
from .inputs import check_device
from .method import PARTS as SETTINGS
from .method import Anchors, Facts, Memory, Model, MSDAClassifier, Settings, Stack, Words
from .msda import MDA, MSDA
from .text import DistilledClassifier, DistilledText, TermVectorizer, TextAdapter

FORMAT = "undrift-model"
FORMAT_VERSION = "1"
MAX_DESCRIPTION = 16 << 20  # characters of JSON, arrays not counted
WIDEST_SMALL = 2**16  # columns of sparse rows whose numbers take two bytes

# the classes that a model file may name
SAVABLE: tuple[type, ...] = (
    MDA, MSDA, MSDAClassifier, TermVectorizer, TextAdapter, DistilledText, DistilledClassifier,
    Layer, System, PackedLayer, PackedRows, Scatter, Model, Memory, Stack, Anchors, Facts, Words,
    Settings, *SETTINGS,
)  # fmt: skip
_BY_NAME = {cls.__name__: cls for cls in SAVABLE}
_SCALARS = (bool, int, float, str, type(None))
_OF_THE_SESSION = (
    "_sklearn_output_config", "_metadata_request", "_cached_vectorizer", "_last", "_scores", "layer_bits_",
)  # fmt: skip
PARTS = {"layers": "representation_", "training_rows": "memory_"}  # attributes that make a file large


Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
E = TypeVar("E", bound=BaseEstimator)
Part = TypeVar("Part", bound=BaseEstimator)


class Arrays(dict[str, np.ndarray]):
    """Arrays of a file by name, and the sparse matrices that are made of some: one may be named twice."""

    def __init__(self, arrays: Mapping[str, np.ndarray] | None = None) -> None:
        super().__init__(arrays or {})
        self.matrices: dict[str, sp.csr_array] = {}


class ModelFileError(UndriftError):
    """A file that is not a model of this library, or is truncated or changed."""


def save_model(
    estimator: BaseEstimator, path: str | os.PathLike[str], *, updatable: bool = False, bits: Bits = 32
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
    bits : {32, 16, 8}, default=32
        Bits of a weight of a layer. With 16, and often with 8, hardly a prediction changes. Layers that were
        loaded from a file of fewer bits are saved with as many.

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
    if bits not in get_args(Bits):
        raise ValueError(f"bits={bits!r} is not known; choose one of 32, 16, 8")
    if not updatable:
        estimator = _change_part(estimator, MSDAClassifier, partial(_with, memory_=None))
    estimator = _change_part(estimator, MSDA, partial(_pack_stack, bits=bits))
    arrays = Arrays()
    tree = json.dumps(_encode(estimator, "model", arrays), ensure_ascii=False)
    metadata = {"format": FORMAT, "format_version": FORMAT_VERSION, "library_version": __version__}
    metadata["model"] = tree
    metadata["digest"] = _digest(metadata, arrays)
    try:
        with replace_file(path) as new:
            safetensors.numpy.save_file(arrays, new, metadata=metadata)
            with new.open("r+b") as file:  # in order, which safetensors lacks, so that equal models are equal
                header, n_bytes = _read_header(file)
                header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
                plain = json.dumps(header, ensure_ascii=False, separators=(",", ":"))
                file.seek(8)
                file.write(plain.encode().ljust(n_bytes))
    except SafetensorError as error:
        raise OSError(f"{path} cannot be written: {error}") from None


def _read_header(file: BinaryIO) -> tuple[dict[str, dict[str, Any]], int]:
    """Return the header of a file, and how many bytes it takes."""
    n_bytes = int.from_bytes(file.read(8), "little")
    return json.loads(file.read(n_bytes)), n_bytes


def measure_parts(path: str | os.PathLike[str]) -> dict[str, int]:
    """Return the bytes of a model file that its layers, its training rows and the rest take."""
    parts = dict.fromkeys(PARTS, 0)
    with open(path, "rb") as file:
        header, _ = _read_header(file)
    for name, entry in header.items():
        for part, attribute in PARTS.items():
            if f".{attribute}." in name:
                start, stop = entry["data_offsets"]
                parts[part] += stop - start
    return {**parts, "rest": os.path.getsize(path) - sum(parts.values())}


def choose_bits(classifier: MSDAClassifier, samples: Mapping[str, Rows]) -> Bits:
    """Return the fewest bits of a weight that change no prediction of sampled rows of the targets."""
    expected = {name: classifier.predict(X, target=name) for name, X in samples.items()}
    for bits in (8, 16):
        rounded = round_layers(classifier, bits)
        if all((rounded.predict(X, target=name) == expected[name]).all() for name, X in samples.items()):
            return bits
    return 32


def round_layers(estimator: E, bits: Bits) -> E:
    """Return the model that a file with so many bits of a weight holds."""
    return _change_part(estimator, MSDA, lambda msda: _unpack_stack(_pack_stack(msda, bits)))


def _pack_stack(msda: MSDA, bits: Bits) -> MSDA:
    """Return a stack with its layers packed; those that were loaded with fewer bits have no more."""
    bits = min(bits, getattr(msda, "layer_bits_", bits))
    return _with(msda, layers_=pack_layers(msda.layers_, bits))


def _unpack_stack(msda: MSDA) -> MSDA:
    """Return a stack with its layers unpacked."""
    packed = cast(list[PackedLayer], msda.layers_)
    bits = {"layer_bits_": packed[0].bits} if packed[0].bits < 32 else {}
    return _with(msda, layers_=unpack_layers(packed), **bits)


def _with(estimator: E, **attributes: object) -> E:
    """Return a copy with other attributes."""
    estimator = copy(estimator)
    vars(estimator).update(attributes)
    return estimator


def _change_part(estimator: E, kind: type[Part], change: Callable[[Part], Part]) -> E:
    """Return an estimator with the one of a class, itself or one inside it, changed."""
    if isinstance(estimator, kind):
        return cast(E, change(estimator))
    for name in ("classifier_", "representation_"):
        if hasattr(estimator, name):
            return _with(estimator, **{name: _change_part(getattr(estimator, name), kind, change)})
    return estimator


def load_model(path: str | os.PathLike[str]) -> Any:
    """Load an estimator that :func:`save_model` wrote to `path`; no code from the file is run.

    A model that was fitted on a GPU has ``device="cpu"`` after loading where there is none. A file that is
    truncated, changed, from elsewhere, or from another version of the format raises a `ModelFileError`.

    Returns
    -------
    MDA, MSDA, MSDAClassifier, TermVectorizer, TextAdapter or DistilledText
        What was saved.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from undrift import MDA, load_model, save_model
    >>> with TemporaryDirectory() as folder:
    ...     save_model(MDA(noise=0.3).fit([[1.0, 0.0], [0.0, 1.0]]), f"{folder}/layer.safetensors")
    ...     load_model(f"{folder}/layer.safetensors")
    MDA(noise=0.3)
    """
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder, not a model file")
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            _check_header(path, metadata)
            arrays = Arrays({key: file.get_tensor(key) for key in file.keys()})  # noqa: SIM118 (not a dict)
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


def _digest(metadata: dict[str, str], arrays: Arrays) -> str:
    header = {key: value for key, value in metadata.items() if key != "digest"}
    digest = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
    for key in sorted(arrays):
        digest.update(f"{key}{arrays[key].dtype}{arrays[key].shape}".encode())
        digest.update(np.ascontiguousarray(arrays[key]).data)
    return digest.hexdigest()


def _encode(value: object, key: str, arrays: Arrays) -> Json:
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
        for name, other in arrays.matrices.items():
            if rows.shape == other.shape and rows.nnz == other.nnz and (rows != other).nnz == 0:
                return {"again": name}
        arrays.matrices[key] = rows
        indices = rows.indices.astype(np.uint16) if rows.shape[1] <= WIDEST_SMALL else rows.indices
        parts = {"data": rows.data, "indices": indices, "indptr": rows.indptr}
        encoded = {name: _encode(part, f"{key}.{name}", arrays) for name, part in parts.items()}
        return {"csr": {**encoded, "width": rows.shape[1], "name": key}}
    name = type(value).__name__
    if type(value) not in SAVABLE:
        raise TypeError(f"cannot save {key}: {name} is neither an array, a plain value nor ours")
    if isinstance(value, BaseEstimator):
        params = value.get_params(deep=False)
        learnt = {k: v for k, v in vars(value).items() if k not in (*params, *_OF_THE_SESSION)}
        fields = {"params": params, "fitted": learnt}
        encoded = {part: _encode(field, f"{key}.{part}", arrays) for part, field in fields.items()}
        return {"estimator": name, **encoded}
    names = [field.name for field in dataclasses.fields(cast(Any, value))]
    return {name: {field: _encode(getattr(value, field), f"{key}.{field}", arrays) for field in names}}


def _encode_array(value: np.ndarray, key: str, arrays: Arrays) -> dict[str, Json]:
    if value.dtype.kind in "fiub":
        arrays[key] = np.ascontiguousarray(value)
        return {"array": key}
    # names and labels: UTF-8 JSON bytes in a uint8 tensor
    plain = json.dumps([_encode(item, key, arrays) for item in value.ravel()], ensure_ascii=False)
    arrays[key] = np.frombuffer(plain.encode(), dtype=np.uint8)
    return {"strings": key, "shape": list(value.shape), "dtype": "object" if value.dtype == object else "str"}


def _decode(node: Any, arrays: Arrays) -> Any:
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
        rows = sp.csr_array(
            (data, indices.astype(indptr.dtype), indptr), shape=(len(indptr) - 1, content["width"])
        )
        rows.check_format(full_check=True)
        arrays.matrices[content["name"]] = rows
        return rows
    if kind == "again":
        return arrays.matrices.pop(content)
    cls, fields = _BY_NAME[kind], {name: _decode(value, arrays) for name, value in content.items()}
    if not dataclasses.is_dataclass(cls):
        raise ValueError(f"{kind} is an estimator")
    _check_temperatures(fields)
    noun: Any = cls(**fields)
    if isinstance(noun, Layer):
        shape = noun.coef.shape
        if len(shape) != 2 or noun.intercept.shape != shape[1:] or noun.activation not in ACTIVATIONS:
            raise ValueError(f"layer of {noun.activation!r} and shapes {shape} and {noun.intercept.shape}")
    return noun


def _decode_strings(encoded: np.ndarray, shape: list[int], dtype: str) -> np.ndarray | list[str]:
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


def _check_temperatures(fields: Mapping[str, Any]) -> None:
    """Refuse temperatures that scores cannot be divided by."""
    for name, value in fields.items():
        if name.startswith("temperature") and not np.all(np.isfinite(value) & (np.asarray(value) > 0)):
            raise ValueError(f"{name} must be above 0 and finite")


def _decode_estimator(node: dict[str, Any], arrays: Arrays) -> BaseEstimator:
    estimator = _BY_NAME[node["estimator"]]()
    params, fitted = (_decode(node[part], arrays) for part in ("params", "fitted"))
    estimator.set_params(**params)
    if getattr(estimator, "device", "cpu") != "cpu":  # a check imports torch
        try:
            check_device(estimator.device)
        except (ImportError, ValueError):
            estimator.set_params(device="cpu")
    _check_temperatures(fitted)
    for name, value in fitted.items():
        if not isinstance(name, str) or name.startswith("__") or hasattr(type(estimator), name):
            raise ValueError(f"unexpected attribute {name!r}")
        setattr(estimator, name, value)
    return _unpack_stack(estimator) if isinstance(estimator, MSDA) else estimator


def _try_model(model: BaseEstimator, max_width: int) -> None:
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
        if targets:
            X = model.vectorizer_.transform(rows) if learnt is not model else rows
            learnt.align(X, **options)
    for answer in answers:
        if isinstance(answer, np.ndarray) and answer.dtype.kind == "f" and not np.isfinite(answer).all():
            raise ValueError("it gives values that are not finite")


def load_text_model(path: str | os.PathLike[str]) -> TextAdapter | DistilledText:
    """Load a saved TextAdapter or DistilledText, and nothing else."""
    model = load_model(path)
    if not isinstance(model, TextAdapter | DistilledText):
        kind = type(model).__name__
        raise ModelFileError(f"{path} holds a {kind}, not a text model saved by `undrift adapt`")
    return model


def load_adapter(path: str | os.PathLike[str]) -> TextAdapter:
    """Load a saved TextAdapter, and nothing else."""
    model = load_text_model(path)
    if isinstance(model, DistilledText):
        raise ModelFileError(
            f"{path} holds a distilled model, which can predict and explain and no more: give the model "
            "that it was distilled from"
        )
    return model
