"""How each family of methods cuts its cells into units of work."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from ..catalogue import LASTING
from . import denoised, ours, plain
from .cells import Bench, Cell, Unit


def units(family: str, bench: Bench, cells: Sequence[Cell]) -> list[Unit]:
    """Cut the cells of a family into units of work."""
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
