"""A page with slots for tables: filled from results, and what filling it again would lose."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from .balance import balance_table, varies_shares
from .labels import labels_table, varies_labels
from .records import Record
from .regret import regret_table
from .table import distance_table, has_published, results_table, side_by_side

_SLOT = re.compile(r"(<!-- bench table: (\S+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)
# columns that say what a row is about; the others are results
_NAMES = {"", "plan", "variant", "method", "expected", "domains"}
_NAMES |= {"corpus", "candidates", "chosen by", "chosen on", "reported on"}  # of regret


def fill_page(page: str, records: Sequence[Record], tables: Mapping[str, str] | None = None) -> str:
    """Put tables into the slots of a page: ``<!-- bench table: small -->`` up to ``<!-- end -->``.

    `tables` are those that are made already, by the names of their slots. What there is no result for stays.
    """

    def content(slot: re.Match[str]) -> str:
        table = (tables or {}).get(slot[2]) or _table(slot[2], records)
        return slot[0] if table is None else slot[1] + table + slot[4]

    return _SLOT.sub(content, page)


def _table(name: str, records: Sequence[Record]) -> str | None:
    """Table of a slot, or None where the records have nothing for it."""
    if name == "paper":
        return side_by_side(records) if has_published(records) else None
    if name not in {record.get(key) for record in records for key in ("plan", "kind")}:
        return None
    special = {"distance": distance_table, "regret": regret_table}
    if name in special:
        return special[name](records)
    shares = [record for record in records if record.get("plan") == name]
    if varies_labels(shares):
        return labels_table(shares)
    return balance_table(shares) if varies_shares(shares) else results_table(records, name)


def find_losses(before: str, after: str) -> list[str]:
    """List the rows of a page's tables that would be of fewer tasks afterwards, or gone."""
    new, losses = dict(_slots(after)), []
    for slot, table in _slots(before):
        now = _n_tasks(new.get(slot, ""))
        for row, n in _n_tasks(table).items():
            if now[row] < n:
                losses.append(f"{', '.join(row) or slot} ({now[row]} instead of {n})")
    return losses


def _slots(page: str) -> Iterator[tuple[str, str]]:
    return ((slot[2], slot[3]) for slot in _SLOT.finditer(page))


def _n_tasks(tables: str) -> Counter[tuple[str, ...]]:
    """Number of tasks behind each row, 1 where a table does not say; rows are known by their names."""
    counts: Counter[tuple[str, ...]] = Counter()
    header: list[str] | None = None
    for line in tables.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not line.startswith("|"):
            header = None
        elif header is None:
            header = cells
        elif set(line) - set("|-: "):
            row = dict(zip(header, cells, strict=False))
            # what chose is known without the values, which other tasks may change: "fixed: noise 0.7, ..."
            about = tuple(row[name].split(": noise ")[0] for name in header if name in _NAMES)
            counts[about] += int((row.get("tasks", "1") or "0").split()[0])  # "3", or "3 of 12"
    return counts
