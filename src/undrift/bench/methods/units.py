"""How the cells of a plan are cut into units of work, by the kind of the plan and the families of methods."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from ..catalogue import LASTING, find_family
from . import baselines, msda
from .candidates import candidate_records
from .cells import Bench, Cell, Unit
from .distances import measure_distances
from .undrift import source_only_units, undrift_units

FAMILIES: dict[str, Callable[[Bench, Sequence[Cell]], list[Unit]]] = {
    "svm": partial(baselines.shared_units, represent=baselines.counts),
    "svm-tfidf": partial(baselines.shared_units, represent=baselines.tfidf),
    "pca": partial(baselines.shared_units, represent=baselines.principal_components),
    "scl": partial(baselines.source_units, represent=baselines.correspondences),
    "coda": baselines.coda_units,
    "sda": partial(baselines.shared_units, represent=baselines.autoencoded, lasting="sda" in LASTING),
    "msda": msda.msda_units,
    "undrift": undrift_units,
    "source-only": source_only_units,
}


def cut_into_units(kind: str, bench: Bench, cells: Sequence[Cell]) -> Iterator[list[Unit]]:
    """Yield units of work, in lists to be done one after the other.

    Parameters
    ----------
    kind : {"transfer", "distance", "regret"}
        That of the plan.
    """
    if kind == "regret":
        yield [Unit(cells, partial(candidate_records, bench, cells))]
        return
    group_of = find_family if kind == "transfer" else str
    for name in dict.fromkeys(group_of(cell.method) for cell in cells):
        group = [cell for cell in cells if group_of(cell.method) == name]
        if kind == "transfer":
            yield FAMILIES[name](bench, group)
        else:
            yield [Unit(group, partial(measure_distances, bench, group))]
