"""Model files that say something wrong under a digest that is right."""

import copy
import json
import random

import numpy as np

from undrift.persist import _digest

VALUES = [
    None, True, 0, -1, 7, 2**31, 2**63, 10**30, 0.5, -0.0, 1e308, float("inf"), float("nan"), "", "x",
    "x" * 4096, "\ud800", [], {}, [[]], {"list": []}, {"tuple": [1, 2]}, {"dict": []}, {"dict": [["a", 1]]},
]  # fmt: skip
DTYPES = [np.float16, np.float32, np.float64, np.int8, np.int64, np.uint8, np.bool_]


def list_places(node, path=()):
    """Yield the path of every node of a description."""
    yield path
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, child in items:
        yield from list_places(child, (*path, key))


def look_up(node, path):
    for key in path:
        node = node[key]
    return node


def change_description(rng: random.Random, tree, arrays):
    """Return the description with one node replaced, removed, doubled or exchanged for another."""
    tree = copy.deepcopy(tree)
    places = list(list_places(tree))
    path = rng.choice(places[1:])
    parent, key = look_up(tree, path[:-1]), path[-1]
    action = rng.randrange(6)
    if action == 0:
        del parent[key]
    elif action == 1:
        parent[key] = copy.deepcopy(look_up(tree, rng.choice(places)))
    elif action == 2:
        parent[key] = {"array": rng.choice(sorted(arrays))}
    elif action == 3:
        shape = rng.choice([[1], [2**40], [-1], [0, 2**62], "x", [2.5]])
        parent[key] = {
            "strings": rng.choice(sorted(arrays)),
            "shape": shape,
            "dtype": rng.choice(["str", "list", "object"]),
        }
    else:
        parent[key] = copy.deepcopy(rng.choice(VALUES))
    return tree


def change_array(rng: random.Random, arrays):
    """Return the arrays with one of them of another shape, type or content."""
    arrays = dict(arrays)
    key = rng.choice(sorted(arrays))
    array = arrays[key]
    action = rng.randrange(7)
    if action == 0:
        array = array.T
    elif action == 1:
        array = array.ravel()[: array.size // 2]
    elif action == 2:
        array = array.reshape(-1)
    elif action == 3:
        array = np.zeros((0, *array.shape[1:]), dtype=array.dtype)
    elif action == 4:
        with np.errstate(invalid="ignore"):
            array = array.astype(rng.choice(DTYPES))
    elif action == 5:
        array = np.frombuffer(rng.randbytes(array.nbytes), dtype=array.dtype).reshape(array.shape)
    else:
        array = np.concatenate([array.ravel(), array.ravel()])
    arrays[key] = np.ascontiguousarray(array)
    return arrays


def change_model(rng: random.Random, metadata, arrays):
    """Return metadata and arrays of a file with one to three changes, signed again."""
    tree = json.loads(metadata["model"])
    for _ in range(rng.randint(1, 3)):
        if rng.random() < 0.6:
            tree = change_description(rng, tree, arrays)
        else:
            arrays = change_array(rng, arrays)
    metadata = {**metadata, "model": json.dumps(tree, ensure_ascii=True)}
    metadata["digest"] = _digest(metadata, arrays)
    return metadata, arrays
