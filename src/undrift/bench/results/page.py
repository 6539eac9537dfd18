"""Pages with slots for tables and links to figures, all of which are made from the records of a folder."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from .expected import check_bars, load_bars, verdict_table
from .measures import PEERS_PLAN
from .records import Record
from .regret import regret_table
from .tables import (
    HEADLINE,
    distance_table,
    has_published,
    headline_table,
    peers_table,
    results_table,
    side_by_side,
    special_table,
)

_SLOT = re.compile(r"(<!-- bench table: (\S+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)
_FIGURE = re.compile(r"\]\([^)]*figures/([^)/]+)\.svg\)")
PAGES = ("README.md", "docs/*.md", "paper/*.md")


def fill_page(page: str, records: Sequence[Record], tables: Mapping[str, str] | None = None) -> str:
    """Put tables into the slots of a page: ``<!-- bench table: small -->`` up to ``<!-- end -->``.

    `tables` are those that are made already, by the names of their slots. What there is no result for stays.
    """

    def content(slot: re.Match[str]) -> str:
        table = (tables or {}).get(slot[2]) or make_table(slot[2], records)
        return slot[0] if table is None else slot[1] + table + slot[4]

    return _SLOT.sub(content, page)


def make_table(name: str, records: Sequence[Record]) -> str | None:
    """Return the table of a slot, or None where the records have nothing for it."""
    if name == "paper":
        return side_by_side(records) if has_published(records) else None
    if name == "headline":
        return headline_table(records) if any(r.get("plan") in HEADLINE for r in records) else None
    if name not in {record.get(key) for record in records for key in ("plan", "kind")}:
        return None
    special = {"distance": distance_table, "regret": regret_table, PEERS_PLAN: peers_table}
    if name in special:
        return special[name](records)
    of_plan = [record for record in records if record.get("plan") == name]
    return special_table(of_plan) or results_table(records, name)


def fill_pages(root: Path, records: Sequence[Record]) -> tuple[dict[Path, str], list[str]]:
    """Fill the pages of a checkout; return those with slots, and the names of the figures that pages show."""
    verdicts = verdict_table(check_bars(load_bars(root / "paper/expected.toml"), records))
    filled, figures = {}, set()
    for path in sorted(path for pattern in PAGES for path in root.glob(pattern)):
        page = path.read_text(encoding="utf-8")
        figures |= set(_FIGURE.findall(page))
        if _SLOT.search(page):
            filled[path] = fill_page(page, records, {"check": verdicts})
    return filled, sorted(figures)
