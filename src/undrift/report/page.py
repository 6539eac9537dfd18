"""A report as one self-contained HTML page."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import tempfile
import webbrowser
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup, escape

from .._files import write_text_atomically
from .._version import __version__
from .benchmark import benchmark_charts
from .charts import adaptation_charts
from .shares import write_percent
from .svg import read_asset
from .tables import adaptation_tables


class Report:
    """What happened and why, as data and as one HTML page that needs nothing else.

    Shows itself in a notebook. Made by :func:`adaptation_report`, :func:`benchmark_report` and
    ``undrift adapt --report``.

    Parameters
    ----------
    data : dict
        JSON-ready; its ``kind`` says which page is made of it.

    Examples
    --------
    >>> from undrift import TextAdapter, adaptation_report
    >>> books = ["a gripping page turner", "gripping and moving", "dull and boring", "boring prose"]
    >>> kitchen = ["gripping handle, sturdy", "sturdy pan", "boring and flimsy", "flimsy lid"]
    >>> adapter = TextAdapter().fit(books, ["good", "good", "bad", "bad"], kitchen)
    >>> report = adaptation_report(adapter, books, ["good", "good", "bad", "bad"], kitchen)
    >>> report.to_dict()["kind"], report.to_html()[:15]
    ('adaptation', '<!doctype html>')
    """

    def __init__(self, data: dict[str, Any]) -> None:
        self._data = data

    def to_dict(self) -> dict[str, Any]:
        """Everything that the page shows, as plain data."""
        return json.loads(json.dumps(self._data))

    def to_html(self) -> str:
        """Return the page."""
        return _page(self._data)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the page, complete or not at all; a name that ends in ``.json`` gets the data instead."""
        path = Path(path)
        content = json.dumps(self._data, ensure_ascii=False) if path.suffix == ".json" else self.to_html()
        write_text_atomically(path, content)
        return path

    def open(self) -> Path:
        """Write the page to a temporary file and show it in the browser."""
        path = self.save(Path(tempfile.mkdtemp(prefix="undrift-")) / "report.html")
        webbrowser.open(path.as_uri())
        return path

    def _repr_html_(self) -> str:
        """Return the page inside a frame, so that neither it nor the notebook can touch the other."""
        return (
            '<iframe sandbox="allow-scripts allow-downloads" title="undrift report" width="100%" '
            f'height="720" frameborder="0" srcdoc="{escape(self.to_html())}"></iframe>'
        )

    def __repr__(self) -> str:
        return f"<Report: {self._data['title']}>"


def _page(data: dict[str, Any]) -> str:
    is_adaptation = data["kind"] == "adaptation"
    charts = adaptation_charts(data) | adaptation_tables(data) if is_adaptation else benchmark_charts(data)
    style = read_asset("style.css") + read_asset("chart.css")
    script = f'"use strict";\n(() => {{\n{read_asset("script.js")}{read_asset("decks.js")}}})();\n'
    policy = (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    template = _environment().get_template(f"{data['kind']}.html")
    return template.render(
        data=data,
        charts=charts,
        embedded={name: data.get(name) for name in ("terms", "decks")},  # what the script needs
        style=Markup(style),
        script=Markup(script),
        policy=policy,
        version=__version__,
    )


def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("undrift.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.policies["json.dumps_kwargs"] = {"ensure_ascii": False, "separators": (",", ":")}
    environment.tests["quantity"] = _is_quantity
    environment.filters |= {
        "percent": "{:.{}%}".format,
        "about": write_percent,
        "count": lambda value: "–" if value is None else f"{value:,}",
        "options": _mark_options,
        "signed": lambda value: f"{value:+.3f}".replace("-", "\N{MINUS SIGN}"),
    }
    return environment


def _mark_options(sentence: str) -> Markup:
    """Set commands and options in a sentence as code, which lines do not break."""
    pattern = r"((?:undrift \w+ )?--[a-zA-Z][\w-]*(?: (?=[\w.]*\d)[\w.,]+)?)"
    return Markup(re.sub(pattern, r"<code>\1</code>", str(escape(sentence))))


def _is_quantity(cell: Any) -> bool:
    """Whether a table's cell is a number, with its unit or without."""
    return not isinstance(cell, str) or re.fullmatch(r"[+-]?[\d.,]+(e[+-]?\d+)?(%| s)?", cell) is not None


def _hash(text: str) -> str:
    """Return what the content-security policy calls a text that it allows."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
