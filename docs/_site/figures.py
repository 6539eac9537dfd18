"""Draw the figures of the user pages: ``python docs/_site/figures.py [NAME...]``.

They are drawn from fits on generated reviews.
``report`` is a photograph of the demo's report, and needs Chromium.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import numpy as np

from undrift import MSDAClassifier, TextAdapter
from undrift.datasets import make_reviews
from undrift.explain import term_weight
from undrift.report.svg import Scale, horizontal_axis, line, tag, text, vertical_axis

ROOT = Path(__file__).resolve().parents[2]
IMAGES = ROOT / "docs" / "images"

STYLE = """
svg { --ink: #1b1d21; --soft: #565b63; --line: #d9dbdf; --card: #f6f6f4; --s0: #b84a00; --s1: #0067a5; }
@media (prefers-color-scheme: dark) {
  svg { --ink: #e9eaec; --soft: #a9afb8; --line: #383d45; --card: #24272c; --s0: #f59a4c; --s1: #62b5ee; }
}
text { fill: var(--ink); font: 14px system-ui, -apple-system, "Segoe UI", "Liberation Sans", sans-serif; }
.tick, .axis, .soft { fill: var(--soft); font-size: 13px; } .axis, .strong { font-weight: 600; }
.grid { stroke: var(--line); } .rule { stroke: var(--soft); stroke-dasharray: 5 5; }
.card { fill: var(--card); stroke: var(--line); }
.s0 { fill: var(--s0); } .s1 { fill: var(--s1); } .s2 { fill: var(--soft); }
.c0 { fill: none; stroke: var(--s0); } .c1 { fill: none; stroke: var(--s1); }
.c2 { fill: none; stroke: var(--soft); }
.curve { fill: none; stroke-width: 2.5; } .faint { opacity: .55; }
.arrow { fill: none; stroke: var(--soft); stroke-width: 2; }
"""


def save_figure(name: str, title: str, width: int, height: int, *parts: str) -> None:
    """Write a figure that follows the light or dark scheme of its page."""
    style = f"<style>{STYLE}</style>"
    body = "".join([f"<title>{title}</title>", style, *parts]).replace("><", ">\n<")
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" role="img"'
    )
    (IMAGES / f"{name}.svg").write_text(f'{head} aria-label="{title}">{body}</svg>\n', encoding="utf-8")


# how a word without labels gets its weight


def draw_idea() -> None:
    """Draw three reviews: one that teaches *awful*, one with both words, one with *rusted* alone."""
    corpus = make_reviews(2000, domains=["books", "kitchen"])
    books, kitchen = corpus.domains["books"], corpus.domains["kitchen"]
    adapter = TextAdapter(3000).fit(books.texts, books.y, kitchen.texts)
    labelled = [books.texts[row] for row in books.train if books.y[row] == 0]
    known, new = (describe_weight(adapter, word) for word in ("awful", "rusted"))
    alone = find_sentence(kitchen.texts, "rusted")
    verdict = ("negative", "positive")[int(adapter.predict([alone])[0])]
    steps = [
        ("A labelled book review", find_sentence(labelled, "awful"), ["Label: negative.", f"awful: {known}"]),
        (
            "A kitchen review, no label",
            find_sentence(kitchen.texts, "rusted", "awful"),
            ["Both words in one review:", "the layers learn that rusted", "goes with awful."],
        ),
        (
            "Another kitchen review",
            alone,
            ["No labelled review says rusted.", f"rusted: {new}", f"Prediction: {verdict}."],
        ),
    ]
    parts = [part for i, step in enumerate(steps) for part in draw_step(i, *step)]
    title = "Labels of books teach awful. Kitchen reviews say rusted and awful. So rusted gets a weight."
    save_figure("idea", title, 640, 330, *parts)


def describe_weight(adapter: TextAdapter, word: str) -> str:
    """Say how much a word speaks for the negative class, through all layers."""
    (output,) = term_weight(adapter.classifier_, adapter.terms_, word)["outputs"]
    return f"weight {-output['weight']:+.2f} for negative"


def find_sentence(texts: list[str], *words: str) -> str:
    """Return the shortest sentences of a review in which all words stand, without contrary opinions."""
    pieces = []
    for review in texts:
        if "Others may say" in review or not all(re.search(rf"\b{word}\b", review.lower()) for word in words):
            continue
        sentences = re.findall(r"[^.]+\.", review)
        pieces.append(" ".join(s.strip() for s in sentences if any(word in s.lower() for word in words)))
    return min((piece for piece in pieces if len(piece) > 20), key=lambda piece: (len(piece), piece))


def draw_step(i: int, title: str, quote: str, notes: list[str]) -> list[str]:
    """Draw a review as a card, and what it teaches beside it."""
    y = 8 + 108 * i
    parts = [
        tag("rect", x=4, y=y, width=330, height=92, rx=8, cls="card"),
        text(20, y + 24, title, cls="axis"),
    ]
    for k, row in enumerate(textwrap.wrap(f"“{quote}”", 42)):
        parts.append(tag("text", *mark_words(row), x=20, y=y + 50 + 20 * k))
    for k, note in enumerate(notes):
        parts.append(tag("text", *mark_words(note), x=356, y=y + 28 + 22 * k))
    if i < 2:
        parts.append(tag("path", d=f"M170 {y + 93}v12m-5 -5l5 5l5 -5", cls="arrow"))
    return parts


def mark_words(row: str) -> list[str]:
    """Set the two words of the idea in the colour of their class."""
    pieces = re.split(r"(awful|rusted)", row)
    return [
        tag("tspan", piece, cls="s0 strong") if piece in ("awful", "rusted") else piece for piece in pieces
    ]


# readings that vote


def draw_jury() -> None:
    """Draw the votes of the readings before and after five labels, and how many rows each gets wrong."""
    corpus = make_reviews(700, domains=["books", "kitchen"], positive_share=0.8)
    books, kitchen = corpus.domains["books"], corpus.domains["kitchen"]
    y, truth = (np.where(domain.y == 1, "positive", "negative") for domain in (books, kitchen))
    labels = np.where(np.isnan(books.y), None, y.astype(object))
    adapter = TextAdapter(1000, classifier=MSDAClassifier(random_state=0))
    adapter.fit(books.texts, labels, kitchen.texts)
    model, X = adapter.classifier_, adapter.vectorizer_.transform(kitchen.texts)
    rows = np.append(kitchen.train, kitchen.test)
    asked = rows[model.ask(X[rows], 5)]
    scored = np.setdiff1d(rows, asked)

    def measure(predicted: np.ndarray) -> float:
        return float(np.mean(predicted[scored] != truth[scored]))

    before = {reading["name"]: reading["weight"] for reading in model.readings_["target"]}
    after = {reading["name"]: reading["weight"] for reading in model.weigh(X[asked], truth[asked])}
    guesses = model.classes_[model.find_readings(X).argmax(axis=2)]
    errors = dict(zip(model.model_.names, map(measure, guesses), strict=True))
    jury, expected = [measure(model.predict(X))], [model.expected_error_[0]["error"]]
    model.update(X[asked], truth[asked])
    jury.append(measure(model.predict(X)))
    expected.append(model.expected_error_[0]["error"])
    most = max(*before.values(), *after.values())
    parts = [
        text(230, 24, "votes before any label", cls="axis"),
        text(410, 24, "after five labels", cls="axis"),
        text(632, 24, "wrong", "end", "axis"),
    ]
    for i, (name, votes) in enumerate(before.items()):
        y = 36.0 + 24 * i
        parts.append(text(4, y + 15, name))
        for x, weight, cls in ((230.0, votes, "s2"), (410.0, after[name], "s1")):
            parts.append(tag("rect", x=x, y=y + 3, width=max(1.0, 140 * weight / most), height=14, cls=cls))
        parts.append(text(632, y + 15, f"{errors[name]:.0%}", "end"))
    y = 52.0 + 24 * len(before)
    parts.append(line(4, y - 8, 636, y - 8, "grid"))
    parts.append(text(4, y + 15, "all of them together", cls="strong"))
    for x, wrong, guess in zip((230, 410), jury, expected, strict=True):
        parts.append(text(x, y + 15, f"{wrong:.0%} wrong", cls="strong"))
        parts.append(text(x, y + 35, f"{guess:.0%} expected", cls="soft"))
    title = "Votes of the readings before and after five labels, and how many rows each gets wrong"
    save_figure("jury", title, 640, int(y + 48), *parts)


def draw_teacher() -> None:
    """Draw the error of a student against that of its teacher, whose labels are wrong at random."""
    domain = make_reviews(2000, domains=["kitchen"], style="mixed").domains["kitchen"]
    rows = np.append(domain.train, domain.test)
    texts, truth = [domain.texts[row] for row in rows], domain.y[rows]
    rng, noises = np.random.default_rng(0), (0.05, 0.1, 0.15, 0.2, 0.25, 0.3)
    errors: dict[str, list[float]] = {"student alone": [], "student with teacher": []}
    adapter = TextAdapter(1500, classifier=MSDAClassifier(random_state=0))
    for noise in noises:
        labels = np.where(rng.random(len(truth)) < noise, 1 - truth, truth)
        student = adapter.fit(None, None, texts, teacher=labels)
        predictions = student.predict(texts), student.predict(texts, teacher=labels)
        for values, predicted in zip(errors.values(), predictions, strict=True):
            values.append(float(np.mean(predicted != truth)))
    across, up = Scale(0.0, 0.32, 56, 460), Scale(0.0, 0.32, 300, 44)
    parts = [
        vertical_axis(up, 56, 460, "predictions wrong"),
        horizontal_axis(across, 300, 300, "labels of the teacher that are wrong"),
        line(across(0), up(0), across(0.32), up(0.32), "rule"),
        text(across(0.25) - 8, up(0.27), "the teacher alone", "end", "soft"),
    ]
    for i, (title, values) in enumerate(errors.items()):
        points = [(across(noise), up(error)) for noise, error in zip(noises, values, strict=True)]
        parts += [
            draw_curve(points, f"c{i}"),
            line(300, 250 + 22 * i, 324, 250 + 22 * i, f"curve c{i}"),
            text(332, 255 + 22 * i, title),
        ]
    save_figure("teacher", "Error of a student against the error of its teacher", 500, 352, *parts)


def draw_curve(points: list[tuple[float, float]], cls: str) -> str:
    """Draw a line through points."""
    return tag("polyline", points=" ".join(f"{x:.1f},{y:.1f}" for x, y in points), cls=f"curve {cls}")


# the design

PACKAGES = {
    "app": "commands, their jobs, files of rows",
    "report": "an adaptation as one HTML page",
    "datasets": "generated reviews",
    "distributed": "rows on a Dask cluster",
    "persist": "model files",
    "text": "raw text in, predictions out",
    "results, explain": "errors with intervals, reasons",
    "method": "MSDAClassifier: readings that vote",
    "msda": "MDA and MSDA, scikit-learn transformers",
    "inputs": "checks of everything that a user may pass",
    "core": "the paper: arrays in, arrays out",
    "errors, files, machine": "messages, atomic writes, memory and processors",
}
FLOW = [
    ("app/domains.py", "read the files", "documents and labels by domain"),
    ("text/terms.py", "count terms", "sparse rows over one vocabulary"),
    ("method/problem.py, anchors.py", "check, draw anchors", "Problem, Anchors"),
    ("method/layers.py", "learn the layers", "Stack, Gram"),
    ("method/least_squares.py", "least squares on labels", "LeastSquares, Conditioned, Evidence"),
    ("method/stories.py, scores.py", "tell the stories", "Story with its votes"),
    ("method/readings.py", "read the target under each", "Reading"),
    ("method/judge.py, jury.py", "vote, weigh by labels", "Verdict: votes, shares, error"),
    ("method/model.py, fit.py", "keep", "Model, Memory"),
    ("app/adapt.py, report/", "write", "predictions, model, report"),
]


def draw_packages() -> None:
    """Draw the packages in their order: each imports only from packages below it."""
    parts = []
    for i, (name, holds) in enumerate(PACKAGES.items()):
        y = 4 + 36 * i
        parts += [
            tag("rect", x=4, y=y, width=560, height=32, rx=6, cls="card"),
            text(16, y + 21, name, cls="strong"),
            text(230, y + 21, holds, cls="soft"),
        ]
    parts.append(tag("path", d="M590 12v408m-6 -6l6 6l6 -6", cls="arrow"))
    parts.append(text(604, 218, "imports", cls="soft"))
    save_figure("packages", "The packages; each imports only from packages below it", 670, 440, *parts)


def draw_flow() -> None:
    """Draw how data flows through `undrift adapt`: a module, its step, its result."""
    parts = []
    for i, (module, step, result) in enumerate(FLOW):
        y = 4 + 58 * i
        parts += [
            tag("rect", x=4, y=y, width=240, height=40, rx=6, cls="card"),
            text(16, y + 17, step, cls="strong"),
            text(16, y + 34, module, cls="soft"),
            text(266, y + 25, f"→ {result}"),
        ]
        if i + 1 < len(FLOW):
            parts.append(tag("path", d=f"M124 {y + 41}v14m-5 -5l5 5l5 -5", cls="arrow"))
    save_figure("flow", "How data flows through undrift adapt", 580, 574, *parts)


def photograph_report() -> None:
    """Run the demo and photograph the first screen of its report."""
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as player:
        subprocess.run([sys.executable, "-m", "undrift", "demo", "--out", folder], check=True)
        browser = player.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1080, "height": 700}, device_scale_factor=1.25)
        page.goto(Path(folder, "report.html").as_uri())
        page.screenshot(path=str(IMAGES / "report.png"))
        browser.close()


DRAWINGS = {
    "idea": draw_idea,
    "jury": draw_jury,
    "teacher": draw_teacher,
    "packages": draw_packages,
    "flow": draw_flow,
    "report": photograph_report,
}

if __name__ == "__main__":
    for name in sys.argv[1:] or DRAWINGS:
        DRAWINGS[name]()
