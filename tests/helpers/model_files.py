"""What tests look at, and change, in a model file."""

import json

import safetensors.numpy
from safetensors import safe_open

from undrift.persist import _digest


def parts_of(path):
    """Metadata and arrays of a safetensors file."""
    with safe_open(path, framework="numpy") as file:
        return dict(file.metadata()), {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118


def forge(path, tree, **changes):
    """Rewrite the file with another description of the model and a digest that fits it."""
    metadata, arrays = parts_of(path)
    metadata["model"] = json.dumps(tree)
    metadata.update(changes)
    metadata["digest"] = _digest(metadata, arrays)
    safetensors.numpy.save_file(arrays, path, metadata=metadata)


def tree_of(path):
    return json.loads(parts_of(path)[0]["model"])
