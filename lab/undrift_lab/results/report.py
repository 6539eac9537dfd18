"""Benchmark results as one HTML page: means, figures, failures, and every record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import pandas as pd

from .draw import draw_svg
from .figures import all_figures
from .frame import find_failures, make_frame
from .records import Record
from .tables import list_reasons, summarise

STYLE = """
body { font-family: system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; font-size: .85rem; } td, th { padding: .15rem .6rem; text-align: left; }
tr:nth-child(even) { background: #8881; } figure { margin: 2rem 0; } svg { max-width: 100%; height: auto; }
"""


def write_page(records: Sequence[Mapping[str, Any]]) -> str:
    """Return the page of some records, those that only keep to the contract's fields included."""
    given: list[Record] = [
        {"plan": record.get("corpus", "results"), "variant": "default", "kind": "transfer"} | dict(record)
        for record in records
    ]
    measured = pd.DataFrame(
        [record for record in given if "transfer_error" in record and "failed" not in record]
    )
    if measured.empty and not any("distance_after" in record for record in given):
        raise ValueError("no result to report on: the records hold neither errors nor distances")
    title = "Benchmark: " + ", ".join(dict.fromkeys(str(record["plan"]) for record in given))
    parts = [f"<h1>{escape(title)}</h1>"]
    if not measured.empty:
        parts += ["<h2>Means over the tasks</h2>", _show(summarise(make_frame(given)))]
    for figure in all_figures(given):
        parts.append(f"<figure>{draw_svg(figure).partition('?>')[2].partition('>')[2]}</figure>")
    failed = [f"<li>{escape(reason)}</li>" for reason in list_reasons(find_failures(given))]
    parts += [f"<h2>Failed</h2><ul>{''.join(failed)}</ul>"] if failed else []
    head = f'<meta charset="utf-8"><title>{escape(title)}</title><style>{STYLE}</style>'
    return f"<!doctype html><html lang='en'><head>{head}</head><body>{''.join(parts)}</body></html>\n"


def _show(table: pd.DataFrame) -> str:
    return table.to_html(index=False, border=0, na_rep="", float_format=lambda value: f"{value:.4g}")
