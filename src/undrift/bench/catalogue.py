"""The methods that a plan may name, and the parameters that it may give them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict
from inspect import signature
from typing import Any

from sklearn.decomposition import PCA

from ..baselines import CODA, SCL, SDA
from ..classifier import SelfTraining
from ..text import TFIDF_LENGTH, text_classifier

# the contract's names; other depths of msda are known too
METHODS = ("svm", "svm-tfidf", "pca", "scl", "coda", "sda", "msda-1", "msda-3", "msda-5", "undrift")
# methods that `undrift` is compared with where class shares differ: what each changes of it
COMPARED: Mapping[str, Mapping[str, Any]] = {
    "source-only": {},  # least squares on tf-idf rows of the source: no layers, and no part for the target
    "uncentred": {"center": False, "self_training": False, "fallback": False},
    "centred": {"center": "domains"},
    "oracle": {},  # is given the true class shares of the target
}
LASTING = ("sda",)  # methods whose representations take too long to be learnt again when a run is resumed

_ESTIMATORS = {"pca": PCA, "scl": SCL, "coda": CODA, "sda": SDA}
_SET_BY_RUNNER = {"random_state", "n_components:pca", "device:sda", "callback:sda"}
_RUNNERS = ("device", "memory_budget", "random_state", "verbose")  # not the plan's to decide


def find_family(method: str) -> str:
    """Return the family of a method, whose members share representations; refuse an unknown name."""
    if re.fullmatch(r"msda-[1-9]\d?", method):
        return "msda"
    if method in COMPARED:
        return method if method == "source-only" else "undrift"
    if method in METHODS:
        return method
    raise ValueError(f"method {method!r} is not known; known are {', '.join([*METHODS, *COMPARED])}")


def list_parameters(method: str) -> set[str]:
    """Parameters that a plan may give to a method: those of its estimator that the runner does not set."""
    if method == "undrift":
        return {*text_classifier().get_params(deep=False), "length"} - set(_RUNNERS)
    if method not in _ESTIMATORS:
        return set()
    names = signature(_ESTIMATORS[method]).parameters
    return {name for name in names if not {name, f"{name}:{method}"} & _SET_BY_RUNNER}


def resolve_undrift(changes: Mapping[str, Any]) -> dict[str, Any]:
    """All that makes method `undrift` what it is: `changes`, and the defaults of everything else."""
    changes = {"length": TFIDF_LENGTH, **changes}
    length = changes.pop("length")
    values = text_classifier(**changes).get_params(deep=False)
    if values["self_training"] is True:
        values["self_training"] = asdict(SelfTraining())
    return {"length": length, **{name: values[name] for name in sorted(set(values) - set(_RUNNERS))}}
