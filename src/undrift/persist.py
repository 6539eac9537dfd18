"""Saving and loading fitted estimators: safetensors for arrays, JSON for the rest, no pickle.

A file is data and nothing else: loading builds only the classes of this library, two vectorisers of
scikit-learn and the plain values listed in :func:`_decode`, so that a hostile file cannot run code.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import shutil
import warnings
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from textwrap import shorten
from typing import Any

import numpy as np
import safetensors.numpy
import scipy.sparse as sp
from safetensors import SafetensorError, safe_open
from sklearn.base import BaseEstimator
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.utils.validation import check_is_fitted

from ._core import ACTIVATIONS, Layer, Scatter
from ._files import replace_file
from ._inputs import SAVABLE, check_device
from ._version import __version__
from .classifier import HeldOut, LabelledRows, SelfTraining, UpdateState
from .errors import UndriftError

FORMAT = "undrift-model"
FORMAT_VERSION = 4  # 2: extra blocks, caution; 3: vectorisers of scikit-learn; 4: `half`, update state
OLDEST_VERSION = 1  # that can still be read
MAX_DESCRIPTION = 16 << 20  # characters of JSON, arrays not counted


@dataclass(frozen=True)
class Gaussian:
    """A noise that files of format version 2 may name: the model transforms rows but cannot be refitted."""

    scale: float


@dataclass(frozen=True)
class Poisson:
    """As `Gaussian`."""


_NOUNS: dict[str, type] = {
    noun.__name__: noun
    for noun in (Layer, Scatter, SelfTraining, UpdateState, LabelledRows, HeldOut, Gaussian, Poisson)
}
_VECTORIZERS: dict[str, type] = {cls.__name__: cls for cls in (CountVectorizer, TfidfVectorizer)}
_SCALARS = (bool, int, float, str, type(None))


class ModelFileError(UndriftError):
    """A file that is not a model of this library, or is truncated or changed."""


def save_model(
    estimator: BaseEstimator, path: str | os.PathLike[str], *, update_state: bool = True, half: bool = False
) -> None:
    """Save a fitted estimator of this library, by an atomic write: all of it, or `path` stays as it was.

    Parameters
    ----------
    estimator : MDA, MSDA, MSDAClassifier, TermVectorizer, TextAdapter or DistilledText
        Fitted. A `TextAdapter` may hold a vectoriser of scikit-learn whose parameters are plain values.
    path : path
        The usual ending is ``.safetensors``.
    update_state : bool, default=True
        Whether to save what `update` and `ask` need: training rows among it. Without it the file is smaller
        and the model as good, but labels cannot be added to it.
    half : bool, default=False
        Whether to save the weights of layers in half precision (11 bits): half of the size, and hardly a
        prediction changes; `round_layers` gives the model that such a file holds. Weights that were loaded
        from such a file are saved so in any case: nothing is lost.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> from undrift import MDA, load_model, save_model
    >>> X = np.eye(3)
    >>> with TemporaryDirectory() as folder:
    ...     save_model(MDA().fit(X), Path(folder, "layer.safetensors"))
    ...     loaded = load_model(Path(folder, "layer.safetensors"))
    >>> bool((loaded.transform(X) == MDA().fit(X).transform(X)).all())
    True
    """
    check_is_fitted(estimator)
    if not update_state:
        estimator = _drop_update_state(estimator)
    if half or _has_half_layers(estimator):
        estimator = round_layers(estimator, np.float16)
    arrays: dict[str, np.ndarray] = {}
    tree = json.dumps(_encode(estimator, "model", arrays), ensure_ascii=False)
    _check_space(path, len(tree) + sum(array.nbytes for array in arrays.values()))
    metadata = {
        "format": FORMAT,
        "format_version": str(FORMAT_VERSION),
        "library_version": __version__,
        "model": tree,
    }
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


def _check_space(path: str | os.PathLike[str], size: int) -> None:
    """Refuse to write a file for which the disk has no space."""
    folder = Path(os.path.realpath(path)).parent
    free = shutil.disk_usage(folder).free if folder.is_dir() else size
    if free < size:
        raise OSError(
            f"{path} cannot be written: it takes {size:,} bytes, and {free:,} are free; write it elsewhere"
        )


def measure_model(estimator: BaseEstimator, *, half: bool = False) -> int:
    """Return the bytes that a file of the model will have, but for some thousand."""
    arrays: dict[str, np.ndarray] = {}
    tree = _encode(estimator, "model", arrays)
    size = len(json.dumps(tree)) + sum(array.nbytes for array in arrays.values())
    layers = getattr(_find_stack(estimator), "layers_", []) if half else []
    return size - sum(layer.coef.nbytes - 2 * layer.coef.size for layer in layers)


def round_layers(estimator: Any, dtype: Any = None) -> Any:
    """Return the model that a file in half precision holds: weights of layers rounded to 11 bits.

    Weights too large for half precision become infinite. With a `dtype` they are of that type, else of
    the type they had.
    """
    estimator = copy(estimator)
    for name in ("classifier_", "representation_"):
        if hasattr(estimator, name):
            setattr(estimator, name, round_layers(getattr(estimator, name), dtype))
    if hasattr(estimator, "layers_"):
        with np.errstate(over="ignore"):
            estimator.layers_ = [
                dataclasses.replace(
                    layer, coef=layer.coef.astype(np.float16).astype(dtype or layer.coef.dtype, copy=False)
                )
                for layer in estimator.layers_
            ]
    return estimator


def _has_half_layers(estimator: Any) -> bool:
    """Tell whether half precision holds the weights of all layers, as after loading them from such a file."""
    with np.errstate(over="ignore"):
        layers = getattr(_find_stack(estimator), "layers_", [])
        return all(np.array_equal(layer.coef, layer.coef.astype(np.float16)) for layer in layers)


def _find_stack(estimator: Any) -> Any:
    """Return the stack of layers that a model holds, or the model."""
    for name in ("classifier_", "representation_"):
        estimator = getattr(estimator, name, estimator)
    return estimator


def _drop_update_state(estimator: Any) -> Any:
    """Return the same model without training rows."""
    estimator = copy(estimator)
    if hasattr(estimator, "classifier_"):
        estimator.classifier_ = _drop_update_state(estimator.classifier_)
    if hasattr(estimator, "update_state_"):
        estimator.update_state_ = None
    return estimator


def load_model(path: str | os.PathLike[str]) -> Any:
    """Load an estimator saved by :func:`save_model`; no code from the file is run.

    A model that was fitted on a GPU has ``device="cpu"`` after loading where there is none.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    estimator
        Fitted, of the class that was saved.

    Raises
    ------
    ModelFileError
        The file is truncated, changed, from elsewhere, or from a newer version of the library.

    Examples
    --------
    >>> from tempfile import NamedTemporaryFile
    >>> from undrift import UndriftError, load_model
    >>> with NamedTemporaryFile() as file:
    ...     try:
    ...         load_model(file.name)
    ...     except UndriftError:
    ...         print("refused")
    refused
    """
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder, not a model file")
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            version = _check_header(path, metadata)
            arrays = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118 (not a dict)
    except (SafetensorError, AttributeError, TypeError, ValueError) as error:  # number types NumPy lacks, too
        raise ModelFileError(f"{path} is truncated or not a model file ({error})") from None
    if _digest(metadata, arrays) != metadata.get("digest"):
        raise ModelFileError(f"{path} has been changed since it was saved; save the model again")
    try:
        is_earlier = version < FORMAT_VERSION
        model = _decode_estimator(json.loads(metadata["model"]), arrays, is_earlier)
        check_is_fitted(model)  # estimators among its parameters need not be
        methods = ("transform", "predict") if is_earlier else ("transform", "predict", "predict_proba")
        _try_model(model, path.stat().st_size, methods)
    except (MemoryError, OSError):
        raise
    except Exception as error:  # whatever a forged description can lead to
        why = shorten(str(error), 300, placeholder=" ...")  # scikit-learn shows values, in several lines
        raise ModelFileError(f"{path} does not describe a model of this library ({why})") from None
    return model


def _check_header(path: Path, metadata: dict[str, str]) -> int:
    """Return the format version of a file, if this release can read it."""
    if metadata.get("format") != FORMAT or "model" not in metadata:
        raise ModelFileError(f"{path} was not written by undrift's save_model")
    if len(metadata["model"]) > MAX_DESCRIPTION:
        raise ModelFileError(
            f"{path} describes its model in {len(metadata['model']):,} characters, more than "
            f"the {MAX_DESCRIPTION:,} that any model needs"
        )
    version = metadata.get("format_version", "")
    if version.isdecimal() and int(version) < OLDEST_VERSION:
        raise ModelFileError(
            f"{path} has format version {version}, from before the first release: fit and save it again"
        )
    if not version.isdecimal() or int(version) > FORMAT_VERSION:
        raise ModelFileError(
            f"{path} has format version {version!r}, and undrift {__version__} reads up to {FORMAT_VERSION}: "
            f"upgrade undrift (the file was written by {metadata.get('library_version', '?')})"
        )
    return int(version)


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
    if sp.issparse(value):
        rows = sp.csr_array(value)
        parts = {"data": rows.data, "indices": rows.indices, "indptr": rows.indptr}
        encoded = {name: _encode(part, f"{key}.{name}", arrays) for name, part in parts.items()}
        return {"csr": {**encoded, "width": rows.shape[1]}}
    if type(value) in _NOUNS.values():
        value = value.shrink() if isinstance(value, UpdateState) else value
        names = [field.name for field in dataclasses.fields(value)]
        fields = {name: _encode(getattr(value, name), f"{key}.{name}", arrays) for name in names}
        return {type(value).__name__: fields}
    if type(value) in SAVABLE.values():
        fields = {"params": value.get_params(deep=False), "fitted": _learnt_attributes(value)}
        encoded = {name: _encode(field, f"{key}.{name}", arrays) for name, field in fields.items()}
        return {"estimator": type(value).__name__, **encoded}
    if type(value) in _VECTORIZERS.values():
        return _encode_vectorizer(value, key, arrays)
    raise TypeError(f"cannot save {key}: {type(value).__name__} is neither an array, a plain value nor ours")


def _plain_key(key: Any) -> Any:
    return key.item() if isinstance(key, np.generic) else key


def _learnt_attributes(estimator: BaseEstimator) -> dict[str, Any]:
    """Return everything an estimator learnt, by attribute name."""
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


def _decode(node: Any, arrays: dict[str, np.ndarray], is_earlier: bool = False) -> Any:
    """Inverse of :func:`_encode`; whatever it does not know is refused.

    `is_earlier` says that an earlier version wrote the file, whose estimators are brought up to date. An
    array is taken out of `arrays` when it is used: a file cannot grow by naming one a thousand times.
    """
    if isinstance(node, _SCALARS):
        return node
    if not isinstance(node, dict):
        raise ValueError(f"unexpected {type(node).__name__}")
    if "estimator" in node:
        return _decode_estimator(node, arrays, is_earlier)
    if "strings" in node:
        return _decode_strings(arrays.pop(node["strings"]), node["shape"], node["dtype"])
    if "vectorizer" in node:
        return _decode_vectorizer(node, arrays)
    ((kind, content),) = node.items()
    if kind == "array":
        return arrays.pop(content)
    if kind in ("list", "tuple"):
        items = [_decode(item, arrays, is_earlier) for item in content]
        return items if kind == "list" else tuple(items)
    if kind == "dict":
        return {_check_key(k): _decode(v, arrays, is_earlier) for k, v in content}
    if kind == "csr":
        data, indices, indptr = (arrays.pop(content[name]["array"]) for name in ("data", "indices", "indptr"))
        rows = sp.csr_array((data, indices, indptr), shape=(len(indptr) - 1, content["width"]))
        rows.check_format(full_check=True)
        return rows
    noun = _NOUNS[kind](**{name: _decode(v, arrays, is_earlier) for name, v in content.items()})
    if isinstance(noun, Layer):
        _check_layer(noun)
        if noun.coef.dtype == np.float16:
            noun = dataclasses.replace(noun, coef=noun.coef.astype(noun.intercept.dtype))
    if isinstance(noun, UpdateState):
        noun = noun.expand()
    return noun


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


def _check_key(key: Any) -> Any:
    if not isinstance(key, _SCALARS):
        raise ValueError(f"unexpected key {key!r}")
    return key


def _check_layer(layer: Layer) -> None:
    if layer.coef.ndim != 2 or layer.intercept.shape != layer.coef.shape[1:]:
        raise ValueError(f"layer of shapes {layer.coef.shape} and {layer.intercept.shape}")
    if layer.activation not in ACTIVATIONS:
        raise ValueError(f"activation {layer.activation!r}")


def _decode_estimator(node: dict[str, Any], arrays: dict[str, np.ndarray], is_earlier: bool) -> BaseEstimator:
    estimator = SAVABLE[node["estimator"]]()
    params, fitted = (_decode(node[part], arrays, is_earlier) for part in ("params", "fitted"))
    if is_earlier:
        if hasattr(estimator, "_upgrade_saved"):
            params, fitted = estimator._upgrade_saved(params, fitted)
        known = estimator.get_params(deep=False)
        params = {name: value for name, value in params.items() if name in known}
    estimator.set_params(**params)
    if not _is_available(getattr(estimator, "device", "cpu")):
        estimator.set_params(device="cpu")
    for name, value in fitted.items():
        if not isinstance(name, str) or name.startswith("__") or hasattr(type(estimator), name):
            raise ValueError(f"unexpected attribute {name!r}")
        setattr(estimator, name, value)
    return estimator


def _try_model(model: Any, max_width: int, methods: tuple[str, ...]) -> None:
    """Apply a model to two small rows, so that parts which do not fit are refused on loading."""
    widths = list(getattr(getattr(model, "classifier_", model), "n_extra_features_in_", []))
    takes_text = not hasattr(model, "n_features_in_")
    all_widths = [*widths, getattr(model, "n_features_in_", 1)]
    if min(all_widths) < 1 or sum(all_widths) > max_width:
        raise ValueError("more features than the file has bytes")
    if takes_text:
        vectorizer = getattr(model, "vectorizer_", model)
        columns = getattr(vectorizer, "columns", None)  # of a FeatureScaler
        names = vectorizer.get_feature_names_out()[:50]
        text = " ".join(names)[:200]  # n-grams of any length take the cube of this
        rows: Any = ["", text if columns is None else "\t".join("1" for _ in columns)]
    else:
        rows = np.outer([0, 1], np.ones(model.n_features_in_, dtype=np.float32))
    options = {"extra": [np.zeros((2, width)) for width in widths]} if widths else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        learnt = getattr(model, "classifier_", model)
        applicable = [name for name in methods if hasattr(model, name) and hasattr(learnt, name)]
        if not applicable:
            raise ValueError("it neither transforms nor predicts")
        for name in applicable:
            getattr(model, name)(rows, **options)


def _is_available(device: str) -> bool:
    """Tell whether this machine has the device that a model was saved with; "cpu" does not import torch."""
    try:
        return device == "cpu" or bool(check_device(device))
    except (ImportError, ValueError):
        return False


def _encode_vectorizer(vectorizer: Any, key: str, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """Describe a vectoriser of scikit-learn by its parameters, terms and document weights."""
    params = vectorizer.get_params(deep=False)
    for name, value in params.items():
        if callable(value) and name != "dtype":
            raise TypeError(
                f"cannot save a {type(vectorizer).__name__} whose {name} is a function: a model file holds "
                "plain values only; use its other parameters, or TermVectorizer"
            )
    params["dtype"] = np.dtype(params["dtype"]).name
    is_fitted = hasattr(vectorizer, "vocabulary_")
    fields = {
        "params": params,
        "terms": vectorizer.get_feature_names_out().tolist() if is_fitted else None,
        "idf": vectorizer.idf_ if is_fitted and params.get("use_idf") else None,
    }
    encoded = {name: _encode(field, f"{key}.{name}", arrays) for name, field in fields.items()}
    return {"vectorizer": type(vectorizer).__name__, **encoded}


def _decode_vectorizer(node: dict[str, Any], arrays: dict[str, np.ndarray]) -> Any:
    """Build a vectoriser of scikit-learn: fitted on its vocabulary alone, then given the document weights."""
    params, terms, idf = (_decode(node[name], arrays) for name in ("params", "terms", "idf"))
    if params["input"] != "content":
        raise ValueError(f"a vectoriser that reads {params['input']!r}")
    params["dtype"] = np.dtype(params["dtype"]).type
    vectorizer = _VECTORIZERS[node["vectorizer"]](**params)
    if terms is not None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what there is to say of the parameters was said before saving
            vectorizer.set_params(vocabulary=terms).fit([""])
        vectorizer.set_params(vocabulary=params["vocabulary"])
        if idf is not None:
            vectorizer.idf_ = idf
    return vectorizer
