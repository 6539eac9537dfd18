"""What finds the outcomes of each family of methods, and the corpus that it is given."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from ..catalogue import find_family, sees_pair
from ..parts import rank_columns, sample_target, take_pair
from . import baselines
from .cells import Bench, Cell, Finding, attempt, group_cells
from .distances import measure_distances
from .encoders import score_by_encoders
from .msda import classify_stacks
from .peers import fit_peers
from .undrift import fit_source_only, fit_undrift

Find = Callable[[Bench, Sequence[Cell]], Iterator[Finding]]


FAMILIES: dict[str, Find] = {
    "svm": partial(baselines.classify_shared, represent=baselines.counts),
    "svm-tfidf": partial(baselines.classify_shared, represent=baselines.tfidf),
    "pca": partial(baselines.classify_shared, represent=baselines.principal_components),
    "scl": partial(baselines.classify_by_source, represent=baselines.correspondences),
    "coda": baselines.fit_coda,
    "sda": partial(baselines.classify_shared, represent=baselines.autoencoded),
    "msda": classify_stacks,
    "undrift": fit_undrift,
    "source-only": fit_source_only,
    "peers": fit_peers,
    "encoders": score_by_encoders,
}
Part = tuple[Bench, list[Cell], Iterator[Finding]]  # with the rows that the cells see


def find_outcomes(kind: str, bench: Bench, cells: Sequence[Cell]) -> Iterator[Part]:
    """Yield parts of the work one after another: the rows, the cells, and their findings.

    Parameters
    ----------
    kind : {"transfer", "distance"}
        That of the plan.
    """
    if kind == "distance":
        for method in dict.fromkeys(cell.method for cell in cells):
            group = [cell for cell in cells if cell.method == method]
            yield bench, group, measure_distances(bench, group)
        return
    for name in dict.fromkeys(find_family(cell.method) for cell in cells):
        family = [cell for cell in cells if find_family(cell.method) == name]
        pairs = [cell for cell in family if bench.setting.fit_on == "pair" or sees_pair(cell.method)]
        rest = [cell for cell in family if cell not in pairs]
        groups = [*group_cells(pairs, "source", "target").values()]
        is_by_target = bench.setting.target_share is not None
        groups += group_cells(rest, "target").values() if is_by_target else [rest] if rest else []
        for group in groups:
            try:
                part = _choose_rows(bench, group[0], is_pair=group[0] in pairs)
            except ValueError as error:
                yield bench, group, iter(attempt(group, error))
            else:
                yield part, group, FAMILIES[name](part, group)


def _choose_rows(bench: Bench, cell: Cell, *, is_pair: bool) -> Bench:
    """Put a sample in place of the target, and leave two domains, where the setting or the method says so."""
    setting, corpus, numbers = bench.setting, bench.corpus, dict(bench.row_numbers)
    if setting.target_share is not None:
        sampled = cell.target, setting.target_share, setting.max_target_rows, bench.seed
        corpus, numbers[cell.target] = sample_target(corpus, *sampled)
    if is_pair:
        corpus = take_pair(corpus, cell.source, cell.target, has_whole_source=setting.fit_on == "pair")
        corpus = rank_columns(corpus, setting.max_features) if setting.fit_on == "pair" else corpus
    if corpus is bench.corpus:
        return bench
    return replace(bench, corpus=corpus, row_numbers=numbers, representations={})
