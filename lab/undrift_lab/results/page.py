"""Pages with slots for tables and links to figures, all of which are made from the records of a folder."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from .expected import Verdict, check_bars, load_bars, verdict_table
from .frame import find_failures, frame_distances, make_frame
from .kinds import TABLES as KINDS
from .kinds import make_kinds_table
from .records import Record
from .tables import (
    PEERS_PLAN,
    distance_table,
    experiments_table,
    field_table,
    list_reasons,
    plan_table,
    published_table,
    teachers_table,
    write_table,
)

_SLOT = re.compile(r"(<!-- bench table: (\S+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)
_FIGURE = re.compile(r"\]\([^)]*figures/([^)/]+)\.svg\)")
PAGES = ("README.md", "docs/*.md", "lab/*.md", "lab/pages/*.md")


def make_table(
    name: str, records: Sequence[Record], frame: pd.DataFrame, failed: Sequence[Record]
) -> str | None:
    """Return the table of a page's slot, or None where the records have nothing for it."""
    of_plan, its_failed = frame[frame["plan"] == name], [r for r in failed if r["plan"] == name]
    distances = frame_distances(records)
    if name == "distance":
        its_failed = [r for r in failed if r["kind"] == "distance"]
        return distance_table(distances, its_failed) if len(distances) or its_failed else None
    makers: Mapping[str, tuple[Callable[[pd.DataFrame], str | None], pd.DataFrame]] = {
        "paper": (published_table, frame),
        "experiments": (partial(experiments_table, distances=distances), frame),
        "experiments-msda-5": (partial(experiments_table, distances=distances, methods=["msda-5"]), frame),
        "teachers": (teachers_table, of_plan),
    }
    if name in KINDS:
        table = make_kinds_table(name, frame)
        return table and "".join([table, *(f"{line}\n" for line in list_reasons(_of_kinds(failed, name)))])
    if name in makers:
        make, rows = makers[name]
        return make(rows) if len(rows) else None
    if of_plan.empty:
        return None
    if name == PEERS_PLAN:
        return field_table(of_plan, its_failed)
    return plan_table(of_plan, its_failed)


def _of_kinds(failed: Sequence[Record], name: str) -> list[Record]:
    """Return the failures of plan `kinds`, which its table of all methods names."""
    return [r for r in failed if r["plan"] == "kinds" and name == "kinds-methods"]


def show_script(result: Mapping[str, Any]) -> str:
    """Return the rows that a script has stored, and when and where it was run."""
    names = list(result["rows"][0])
    rows = [[str(row[name]) for name in names] for row in result["rows"]]
    return write_table(names, rows, 1, f"`{result['command']}`, {result['date']}: {result['machine']}.")


def fill_page(
    page: str,
    records: Sequence[Record],
    verdicts: Sequence[Verdict] = (),
    scripts: Mapping[str, str] | None = None,
) -> str:
    """Put tables into the slots of a page: ``<!-- bench table: small -->`` up to ``<!-- end -->``.

    The slot `answers` is for verdicts on claims of the paper, `check` for all others; `scripts` are tables of
    their own. A slot without results keeps its content.
    """
    frame, failed = make_frame(records), find_failures(records)
    judged = {
        "check": verdict_table([v for v in verdicts if not v.bar.claim]),
        "answers": verdict_table([v for v in verdicts if v.bar.claim]),
    }
    given = {**(judged if verdicts else dict.fromkeys(judged)), **(scripts or {})}

    def content(slot: re.Match[str]) -> str:
        table = given[slot[2]] if slot[2] in given else make_table(slot[2], records, frame, failed)
        return slot[1] + table + slot[4] if table else slot[0]

    return _SLOT.sub(content, page)


def fill_pages(root: Path, records: Sequence[Record]) -> tuple[dict[Path, str], list[str]]:
    """Fill the pages of a checkout; return those with slots, and the names of the figures that pages show."""
    verdicts = check_bars(load_bars(root / "lab/plans/expected.toml"), records)
    files = (root / "lab/results").glob("*.json")
    scripts = {path.stem: show_script(json.loads(path.read_text(encoding="utf-8"))) for path in files}
    filled, figures = {}, set()
    for path in sorted(path for pattern in PAGES for path in root.glob(pattern)):
        page = path.read_text(encoding="utf-8")
        figures |= set(_FIGURE.findall(page))
        if _SLOT.search(page):
            filled[path] = fill_page(page, records, verdicts, scripts)
    return filled, sorted(figures)
