"""The methods by name: which family each belongs to, and how a family cuts its cells into units."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from inspect import signature
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .cells import Bench, Cell, Unit

# the contract's names; other depths of msda are known too
METHODS = ("svm", "svm-tfidf", "pca", "scl", "coda", "sda", "msda-1", "msda-3", "msda-5", "undrift")
LASTING = ("sda",)  # whose representations take too long to be learnt again when a run goes on


@dataclass(frozen=True)
class Method:
    """A name, and the family that computes it (methods of one family share their representations)."""

    name: str
    family: str


def known_method(name: str) -> Method:
    """Return the method of a name, or say which there are."""
    if re.fullmatch(r"msda-[1-9]\d?", name):
        return Method(name, "msda")
    if name in METHODS:
        return Method(name, name)
    raise ValueError(f"method {name!r} is not known; known are {', '.join(METHODS)}")


def method_parameters(name: str) -> set[str]:
    """Parameters that a plan may give to a method: those of its estimator that the runner does not set."""
    from sklearn.decomposition import PCA

    from ...baselines import CODA, SCL, SDA
    from .ours import parameters

    runners = {"pca": {"n_components"}, "sda": {"device", "callback"}}
    estimators = {"pca": PCA, "scl": SCL, "coda": CODA, "sda": SDA}
    if name == "undrift":
        return parameters(inductive=False)
    if name not in estimators:
        return set()
    taken = signature(estimators[name]).parameters
    return set(taken) - {"random_state"} - runners.get(name, set())


def units(family: str, bench: Bench, cells: Sequence[Cell]) -> list[Unit]:
    """Cut the cells of a family into units of work."""
    from . import denoised, ours, plain

    families: dict[str, Callable[[Bench, Sequence[Cell]], list[Unit]]] = {
        "svm": partial(plain.shared_units, represent=plain.counts),
        "svm-tfidf": partial(plain.shared_units, represent=plain.tfidf),
        "pca": partial(plain.shared_units, represent=plain.principal),
        "scl": partial(plain.source_units, represent=plain.correspondences),
        "coda": plain.coda_units,
        "sda": partial(plain.shared_units, represent=plain.autoencoded, lasting="sda" in LASTING),
        "msda": denoised.msda_units,
        "undrift": ours.ours_units,
    }
    return families[family](bench, cells)
