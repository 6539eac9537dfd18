"""Pages with slots for tables and links to figures, all of which are made from the records of a folder."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from .expected import check_bars, load_bars, verdict_table
from .frame import find_failures, make_frame
from .records import Record
from .tables import make_table

_SLOT = re.compile(r"(<!-- bench table: (\S+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)
_FIGURE = re.compile(r"\]\([^)]*figures/([^)/]+)\.svg\)")
PAGES = ("README.md", "docs/*.md", "lab/*.md", "lab/pages/*.md")


def fill_page(page: str, records: Sequence[Record], verdicts: str = "") -> str:
    """Put tables into the slots of a page: ``<!-- bench table: small -->`` up to ``<!-- end -->``.

    `verdicts` is the table of the slot `check`. What there is no result for stays.
    """
    frame, failed = make_frame(records), find_failures(records)

    def content(slot: re.Match[str]) -> str:
        table = verdicts if slot[2] == "check" else make_table(slot[2], records, frame, failed)
        return slot[1] + table + slot[4] if table else slot[0]

    return _SLOT.sub(content, page)


def fill_pages(root: Path, records: Sequence[Record]) -> tuple[dict[Path, str], list[str]]:
    """Fill the pages of a checkout; return those with slots, and the names of the figures that pages show."""
    verdicts = verdict_table(check_bars(load_bars(root / "lab/plans/expected.toml"), records))
    filled, figures = {}, set()
    for path in sorted(path for pattern in PAGES for path in root.glob(pattern)):
        page = path.read_text(encoding="utf-8")
        figures |= set(_FIGURE.findall(page))
        if _SLOT.search(page):
            filled[path] = fill_page(page, records, verdicts)
    return filled, sorted(figures)
