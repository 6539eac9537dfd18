"""Resuming a run: what its results hold of a plan, and so what is left to do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from undrift._version import METHOD_VERSION

from ..catalogue import depends_on_method
from ..methods import Cell, GridPoint
from ..plan import Plan, Setting
from ..results.records import Journal

Entry = tuple[str, Cell]  # name of a variant, and a cell


class Resume:
    """What the journal of a run holds of a plan at its seed; it grows with the journal."""

    def __init__(self, plan: Plan, journal: Journal, methods: Sequence[str]) -> None:
        _check_same_plan(plan, journal, methods)
        self._plan, self._journal = plan, journal

    def done(self, retry_failed: bool = False) -> set[Entry]:
        """Cells that need not be run; those that failed are among them, unless they are to be tried again."""
        recorded = set(self._last_errors())
        return recorded - set(self.failed()) if retry_failed else recorded | set(self.failed())

    def failed(self) -> dict[Entry, str]:
        """Cells whose last record is a failure, and its message."""
        return {entry: error for entry, error in self._last_errors().items() if error is not None}

    def grid(self, variant: Setting) -> list[GridPoint]:
        """What cross-validation said of noise levels."""
        names = [field.name for field in fields(GridPoint)]
        return [
            GridPoint(**{name: record[name] for name in names})
            for record in self._records("grid", variant.name)
        ]

    def in_domain_errors(self, variant: str) -> dict[str, float]:
        """In-domain errors of the baseline, by target."""
        return {record["target"]: record["error"] for record in self._records("in-domain", variant)}

    def _records(self, kind: str, variant: str | None = None) -> list[dict[str, Any]]:
        return [
            record
            for record in self._journal.records
            if record.get("kind") == kind
            and record.get("plan") == self._plan.name
            and record.get("seed") == self._plan.seed
            and variant in (None, record.get("variant"))
            and is_current(record)
        ]

    def _last_errors(self) -> dict[Entry, str | None]:
        """Cells with a record, and the error in the last one."""
        return {
            (r["variant"], Cell(r["method"], r["source"], r["target"])): r.get("failed")
            for r in self._records(self._plan.kind)
        }


def is_current(record: Mapping[str, Any]) -> bool:
    """Tell whether a record is of this version of the method; those of methods without a part in it are."""
    is_of_method = depends_on_method(record.get("method", GridPoint.method))
    return not is_of_method or record.get("method_version") == METHOD_VERSION


def _check_same_plan(plan: Plan, journal: Journal, methods: Sequence[str]) -> None:
    """Refuse results of these methods from a plan of the same name that said something else but the seed."""
    variants = {variant.name: variant for variant in plan.variants}
    used, digests = {*methods, GridPoint.method, "svm"}, {}
    for record in journal.records:
        method, name = record.get("method", GridPoint.method), record.get("variant", "")
        if record.get("plan") != plan.name or method not in used:
            continue
        key = name, record.get("seed"), method
        if key not in digests and name in variants:
            digests[key] = plan.seeded(key[1]).digest(variants[name], method)
        if record.get("digest") != digests.get(key):
            raise ValueError(
                f"the results hold records of {method} from another version of plan {plan.name} "
                f"(variant {name}): name another results file, or move this one away"
            )
