"""How the cells of a plan are cut into units of work, by the kind of the plan and the families of methods."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from ..catalogue import LASTING, find_family
from ..corpora import sample_target
from . import baselines, msda
from .candidates import candidate_records
from .cells import Bench, Cell, Finding, Outcome, Unit, group_cells
from .distances import measure_distances
from .labels import label_units
from .peers import peer_units
from .representation import RepresentationCache
from .resources import Cost, meter_memory
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
    "peers": peer_units,
    "labels": label_units,
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
        if kind == "distance":
            yield [Unit(group, partial(measure_distances, bench, group))]
        elif bench.setting.target_share is None:
            yield [_with_peak(bench, unit) for unit in FAMILIES[name](bench, group)]
        else:
            targets = group_cells(group, "target").values()
            units = [unit for cells in targets for unit in _sampled_units(name, bench, cells)]
            yield [_with_peak(bench, unit) for unit in units]


def _with_peak(bench: Bench, unit: Unit) -> Unit:
    """Let outcomes that lack it have the peak of memory of their unit, unless others run beside it."""
    if unit.parallel and bench.jobs > 1:
        return unit
    is_on_device = find_family(unit.cells[0].method) in ("undrift", "labels")
    return replace(unit, run=partial(_add_peak, bench.device if is_on_device else "cpu", unit.run))


def _add_peak(device: str, run: Callable[[], Iterator[Finding]]) -> Iterator[Finding]:
    reset, peak = meter_memory(device)
    is_known = reset()
    for finding in run():
        if is_known and isinstance(finding, Outcome):
            finding = replace(finding, details={**Cost(0.0, peak()).memory, **finding.details})
        yield finding


def _sampled_units(family: str, bench: Bench, cells: Sequence[Cell]) -> list[Unit]:
    """Units of the cells of one target, of which a sample takes the place."""
    share, max_rows = bench.setting.target_share, bench.setting.max_target_rows
    try:
        corpus = sample_target(bench.corpus, cells[0].target, share or 0.5, max_rows, bench.seed)
    except ValueError as error:
        return [Unit(cells, partial(_raise_error, error))]
    # files beside the results are for whole corpora
    sampled = replace(bench, corpus=corpus, representations=RepresentationCache())
    return [replace(unit, corpus=unit.corpus or corpus) for unit in FAMILIES[family](sampled, cells)]


def _raise_error(error: Exception) -> Iterator[Finding]:
    raise error
