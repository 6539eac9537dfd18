"""A report as one self-contained HTML page."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup, escape

from .._version import __version__
from ..files import write_text_atomically
from ..results import write_share
from .verdict import write_percent


class Report:
    """Report of an adaptation or of new rows, as data and as one self-contained HTML page.

    It shows itself in a notebook. :func:`adaptation_report`, ``undrift adapt --report`` and ``undrift predict
    --report`` make it.

    Examples
    --------
    >>> import numpy as np
    >>> from undrift import MSDAClassifier, adaptation_report
    >>> X, y = np.array([[1.0, 0, 1, 0], [0, 1, 0, 1]] * 20), ["yes", "no"] * 20
    >>> report = adaptation_report(MSDAClassifier(1).fit(X, y, X), X, y, X)
    >>> report.to_dict()["verdict"]["basis"]
    'expected'
    """

    def __init__(self, data: Mapping[str, object], charts: Mapping[str, object]) -> None:
        self._data = json.dumps(data, default=_to_plain)
        self._charts = charts

    def to_dict(self) -> dict[str, Any]:
        """Return everything that the page shows, as plain data.

        Returns
        -------
        dict
            As the file of `save` with the ending ``.json``.
        """
        return json.loads(self._data)

    def to_html(self) -> str:
        """Return the page.

        Returns
        -------
        str
            HTML, whole in itself.
        """
        return render_page(self.to_dict(), self._charts)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the page, complete or not at all; a name that ends in ``.json`` gets the data instead.

        Parameters
        ----------
        path : path
            The file; one that exists is replaced.

        Returns
        -------
        Path
            The same.
        """
        path = Path(path)
        as_json = path.suffix == ".json"
        content = json.dumps(self.to_dict(), ensure_ascii=False) if as_json else self.to_html()
        write_text_atomically(path, content)
        return path

    def _repr_html_(self) -> str:
        """Return the page inside a frame, so that neither it nor the notebook can touch the other."""
        return (
            '<iframe sandbox="allow-scripts allow-downloads" title="undrift report" width="100%" '
            f'height="720" frameborder="0" srcdoc="{escape(self.to_html())}"></iframe>'
        )

    def __repr__(self) -> str:
        return f"<Report: {self.to_dict()['title']}>"


def _to_plain(value: object) -> object:
    """Return what JSON holds of a result: what it says itself, else its fields."""
    return value.to_dict() if hasattr(value, "to_dict") else vars(value)


def render_page(data: Mapping[str, Any], charts: Mapping[str, object] | None = None) -> str:
    """Render a page, which loads and sends nothing; one of the kind "label" may talk to its own server."""
    folder = files("undrift.report") / "templates"
    scripts = "script.js", "labelling.js", "decks.js", "sentence.js", "session.js"
    style, code = (
        "".join((folder / name).read_text(encoding="utf-8") for name in names)
        for names in (("style.css", "chart.css"), scripts)
    )
    script = f'"use strict";\n(() => {{\n{code}}})();\n'
    policy = (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; "
        f"img-src data:; base-uri 'none'; form-action 'none'"
    ) + ("; connect-src 'self'" if data["kind"] == "label" else "")
    return (
        _make_environment()
        .get_template(f"{data['kind']}.html")
        .render(
            data=data,
            charts=charts,
            embedded={name: data.get(name) for name in ("decks", "sentence", "session")},  # for the script
            style=Markup(style),
            script=Markup(script),
            policy=policy,
            version=__version__,
        )
    )


def _make_environment() -> jinja2.Environment:
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
        "rate": lambda share: "–" if share is None else write_percent(share),
        "rates": lambda ends: "–" if ends is None else "{} to {}".format(*map(write_percent, ends)),
        "share": write_share,
        "count": lambda value: "–" if value is None else f"{value:,}",
        "marked": mark_code,
        "class": mark_class,
        "code": set_code,
        "signed": lambda value: f"{value:+.3f}".replace("-", "\N{MINUS SIGN}"),
    }
    return environment


def mark_code(sentence: str) -> Markup:
    """Set commands, options and numeric class names in a sentence as code."""
    pattern = r"((?:undrift \w+ )?--[a-zA-Z][\w-]*(?: (?=[\w.]*\d)[\w.,]+)?|\bundrift label\b)"
    marked = re.sub(pattern, lambda match: set_code(Markup(match[0])), str(escape(sentence)))
    return Markup(re.sub(r"`(-?[\d.,]+)`", r"<code>\1</code>", marked))


def set_code(command: str) -> Markup:
    """Set a command as code; lines break between its words, not after a hyphen."""
    words = [Markup("<span>{}</span>").format(word) for word in command.split(" ")]
    return Markup("<code>{}</code>").format(Markup(" ").join(words))


def mark_class(label: str) -> Markup:
    """Set a numeric class name as code; let lines break after signs in another."""
    if _is_quantity(label):
        return Markup("<code>{}</code>").format(label)
    return Markup("<wbr>").join(re.split(r"(?<=[^\w\s])(?=\w)|(?<=_)", label))


def _is_quantity(cell: Any) -> bool:
    """Tell whether a table's cell is a number, with its unit or without."""
    return not isinstance(cell, str) or re.fullmatch(r"[+-]?[\d.,]+(e[+-]?\d+)?(%| s)?", cell) is not None


def _hash(text: str) -> str:
    """Return the name of a text in a content-security policy that allows it."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
