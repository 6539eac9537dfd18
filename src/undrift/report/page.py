"""A report as one self-contained HTML page."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import jinja2
import numpy as np
from markupsafe import Markup, escape

from .._version import __version__
from ..files import write_text_atomically
from ..text import TextAdapter, count_words, unseen_share
from .batches import PredictCharts, PredictPage, chart_batches
from .charts import Charts, adaptation_charts
from .content import AdaptationPage, describe_adaptation, to_plain, write_percent
from .data import DomainRows, ReportData


class Report:
    """Report of an adaptation or of new rows, as data and as one self-contained HTML page.

    It shows itself in a notebook. :func:`adaptation_report`, ``undrift adapt --report`` and ``undrift predict
    --report`` make it.
    """

    def __init__(self, page: AdaptationPage | PredictPage) -> None:
        self._page = page

    def to_dict(self) -> dict[str, Any]:
        """Return everything that the page shows, as plain data.

        Returns
        -------
        dict
            As the file of `save` with the ending ``.json``.
        """
        return json.loads(json.dumps(to_plain(self._page)))

    def to_html(self) -> str:
        """Return the page.

        Returns
        -------
        str
            HTML, whole in itself.
        """
        page = self._page
        charts = chart_batches(page) if isinstance(page, PredictPage) else adaptation_charts(page)
        return render_page(page, charts)

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
        return f"<Report: {self._page.title}>"


def adaptation_report(
    model: Any,
    source: Any,
    y: Sequence[Any],
    target: Any,
    *,
    truth: Sequence[Any] | None = None,
    terms: Sequence[str] | None = None,
    names: tuple[str, str] = ("source", "target"),
    max_rows: int = 3_000,
) -> Report:
    """Report a fitted estimator on the data it was fitted on.

    Parameters
    ----------
    model : TextAdapter or MSDAClassifier
        Fitted on `source`, `y` and `target`.
    source, target : sequence of str, or matrix of shape (n, d)
        Documents for a TextAdapter, rows for an MSDAClassifier.
    y, truth : sequence
        Labels of the source, None where there is none; and, to score with, of the target.
    terms : sequence of str, optional
        Names of the columns, for an MSDAClassifier.
    names : (str, str), default=("source", "target")
        Names of the two domains.
    max_rows : int, default=3000
        Target rows to predict and show; of more a random sample is taken, and the page says so.

    Examples
    --------
    >>> from undrift import TextAdapter, adaptation_report
    >>> from undrift.datasets import make_reviews
    >>> books, kitchen = make_reviews(60, domains=("books", "kitchen"), random_state=0).domains.values()
    >>> adapter = TextAdapter().fit(books.texts, books.y, kitchen.texts)
    >>> adaptation_report(adapter, books.texts, books.y, kitchen.texts, names=("books", "kitchen"))
    <Report: books → kitchen>
    """
    labels, known = _to_list(y), None if truth is None else _to_list(truth)
    if isinstance(model, TextAdapter):
        texts: list[Any] = [list(source), list(target)]
        rows = [model.vectorizer_.transform(documents) for documents in texts]
        classifier, terms, vectorizer = model.classifier_, model.terms_, model.vectorizer_
        tokens = vectorizer.tokens_
        words = [count_words(documents, tokens) for documents in texts]
        unseen = unseen_share(words[1], words[0])
    else:
        rows, texts, classifier, vectorizer, unseen = [source, target], [None, None], model, None, None
        terms = list(terms) if terms is not None else [f"column {j}" for j in range(rows[0].shape[1])]
    if not hasattr(classifier, "classes_"):
        raise ValueError("a report shows classes, and this model predicts numbers: use a classifier")
    sources = [DomainRows(names[0], rows[0], texts[0], labels)]
    targets = [_sample_rows(DomainRows(names[1], rows[1], texts[1], known, unseen_share=unseen), max_rows)]
    given = ReportData(classifier, terms, sources, targets, vectorizer=vectorizer)
    return Report(describe_adaptation(given))


def _sample_rows(domain: DomainRows, max_rows: int) -> DomainRows:
    """Draw `max_rows` rows of a domain at random, where it has more."""
    n = len(domain)
    if n <= max_rows:
        return domain
    keep = np.sort(np.random.default_rng(0).choice(n, max_rows, replace=False)).tolist()
    texts, labels = (
        None if column is None else [column[i] for i in keep] for column in (domain.documents, domain.labels)
    )
    return replace(domain, X=domain.X[keep], documents=texts, labels=labels, n_rows=n)


def _to_list(values: Any) -> list[Any]:
    return values.tolist() if hasattr(values, "tolist") else list(values)


@dataclass(frozen=True)
class LabelSetup:
    """What the script of the label page has to know of its session."""

    classes: Sequence[str]
    can_learn: bool
    goal: int


@dataclass(frozen=True)
class LabelPage:
    """The page of `undrift label`, which asks the server for everything else."""

    title: str
    labels_file: str
    session: LabelSetup
    kind: str = "label"


def render_page(
    page: AdaptationPage | PredictPage | LabelPage, charts: Charts | PredictCharts | None = None
) -> str:
    """Render a page. It loads nothing and sends nothing; a label page may talk to its own server."""
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
    ) + ("; connect-src 'self'" if isinstance(page, LabelPage) else "")
    parts = {name: getattr(page, name, None) for name in ("decks", "sentence", "session")}  # for the script
    return (
        _make_environment()
        .get_template(f"{page.kind}.html")
        .render(
            data=page,
            charts=charts,
            embedded=to_plain(parts),
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
        "count": lambda value: "–" if value is None else f"{value:,}",
        "marked": mark_code,
        "class": mark_class,
        "signed": lambda value: f"{value:+.3f}".replace("-", "\N{MINUS SIGN}"),
    }
    return environment


def mark_code(sentence: str) -> Markup:
    """Set commands, options and numeric class names in a sentence as code, which lines do not break."""
    pattern = r"((?:undrift \w+ )?--[a-zA-Z][\w-]*(?: (?=[\w.]*\d)[\w.,]+)?|\bundrift label\b)"
    marked = re.sub(pattern, r"<code>\1</code>", str(escape(sentence)))
    return Markup(re.sub(r"`(-?[\d.,]+)`", r"<code>\1</code>", marked))


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
