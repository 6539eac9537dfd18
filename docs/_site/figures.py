"""Draw the figures of the user pages: ``python docs/_site/figures.py [NAME...]``.

Figures of the method are drawn from fits on generated reviews, figures of errors from the records of the lab.
``report`` is a photograph of the demo's report, and needs Chromium.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.decomposition import PCA
from sklearn.linear_model import RidgeClassifier

from undrift import MSDAClassifier, TermVectorizer, TextAdapter
from undrift.datasets import make_reviews
from undrift.explain import term_weight
from undrift.report.svg import Scale, horizontal_axis, line, tag, text, vertical_axis

ROOT = Path(__file__).resolve().parents[2]
IMAGES = ROOT / "docs" / "images"
RECORDS = ROOT / "lab" / "results" / "balance.jsonl"

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


# a fit, step by step


def draw_steps() -> None:
    """Draw source and target rows in two dimensions: as they come, and after each step of the fit."""
    corpus = make_reviews(1500, domains=["books", "kitchen"], style="mixed", positive_share=0.75)
    books, kitchen = corpus.domains["books"], corpus.domains["kitchen"]
    rows = np.append(kitchen.test, kitchen.unlabelled)
    vectorizer = TermVectorizer(1500).fit([*books.texts, *kitchen.texts])
    X = vectorizer.transform([books.texts[row] for row in books.train])
    Z = vectorizer.transform([kitchen.texts[row] for row in rows])
    y, truth = books.y[books.train], kitchen.y[kitchen.test]
    raw = RidgeClassifier().fit(X, y)
    frames = [("1. Words as they are", raw, X, Z)]
    settings: list[tuple[str, dict[str, Any]]] = [
        ("2. Layers", {"center": False, "self_training": False}),
        ("3. Classes aligned", {"self_training": False}),
        ("4. Self-training", {}),
    ]
    for title, changes in settings:
        model = MSDAClassifier(random_state=0, **changes).fit(X, y, Z)
        hidden = [np.hstack(list(model.representation_.hidden(part))) for part in (X, Z)]
        frames.append((title, model, *hidden))
    parts = []
    for i, (title, model, *spaces) in enumerate(frames):
        scores = [model.decision_function(X, **in_source(model)), model.decision_function(Z)]
        parts += draw_frame(i, title, scores, find_heights(spaces, scores), y, truth)
    title = "Source and target rows before the fit, after the layers, after alignment and after self-training"
    save_figure("steps", title, 640, 556, *parts, *draw_legend())


def in_source(model: Any) -> dict[str, Any]:
    """Return the option that scores rows as source rows, of a model that knows domains."""
    return {"target": model.domains_[0]} if hasattr(model, "domains_") else {}


def find_heights(spaces: list[Any], scores: list[np.ndarray]) -> list[np.ndarray]:
    """Return the first principal component of the rows that the scores do not explain."""
    rows = np.vstack([space.toarray() if hasattr(space, "toarray") else space for space in spaces])
    score = np.concatenate(scores) - np.concatenate(scores).mean()
    rows = rows - rows.mean(axis=0)
    rows = rows - np.outer(score, score @ rows) / (score @ score)
    heights = PCA(1, random_state=0).fit_transform(rows)[:, 0]
    return np.split(heights, [len(scores[0])])


def draw_frame(
    i: int, title: str, scores: list[np.ndarray], heights: list[np.ndarray], y: np.ndarray, truth: np.ndarray
) -> list[str]:
    """Draw 120 source rows and 240 target rows by score and principal component, and the threshold."""
    left, top = 4 + 320 * (i % 2), 4 + 256 * (i // 2)
    spread = np.concatenate(scores).std()
    across = Scale(-3.0, 3.0, left + 10, left + 302)
    every = np.concatenate(heights)
    up = Scale(*np.quantile(every, [0.01, 0.99]), top + 232, top + 50)
    error = np.mean((scores[1][: len(truth)] > 0) != truth)
    parts = [
        tag("rect", x=left, y=top, width=312, height=246, rx=8, cls="card"),
        text(left + 12, top + 24, title, cls="strong"),
        text(left + 300, top + 24, f"{error:.0%} wrong", "end", "soft"),
        line(across(0), top + 38, across(0), top + 238, "rule"),
    ]
    for place, labels, n, r in ((0, y, 120, 2.5), (1, truth, 240, 3.0)):
        for score, height, label in zip(
            scores[place][:n] / spread, heights[place][:n], labels[:n], strict=False
        ):
            x, h = (
                across(float(np.clip(score, -3, 3))),
                up(float(np.clip(height, *sorted((up.low, up.high))))),
            )
            colour = "s" if place else "c"
            parts.append(tag("circle", cx=x, cy=h, r=r, cls=f"{colour}{int(label)}{' faint' * place}"))
    return parts


def draw_legend() -> list[str]:
    """Say which marks are which rows."""
    entries = [
        (14, "c0", "source, negative"),
        (160, "c1", "source, positive"),
        (306, "s0", "target, negative"),
        (452, "s1", "target, positive"),
    ]
    marks = [tag("circle", cx=x, cy=534.0, r=5, cls=cls) for x, cls, _ in entries]
    names = [text(x + 12, 539, name, cls="soft") for x, _, name in entries]
    return [*marks, *names]


# errors of the lab's records


def read_cells(corpus: str) -> list[dict[str, Any]]:
    """Return the records of one corpus with other class shares in the target."""
    records = [json.loads(row) for row in RECORDS.read_text(encoding="utf-8").splitlines()]
    return [r for r in records if r.get("corpus") == corpus and "target_share" in r and "transfer_error" in r]


def draw_shares() -> None:
    """Draw the mean error against the share of positives in the target."""
    across, up = Scale(0.1, 0.9, 56, 540), Scale(0.0, 0.32, 300, 44)
    parts = [
        vertical_axis(up, 56, 540, "predictions wrong"),
        horizontal_axis(across, 300, 300, "positive reviews in the target"),
    ]
    titles = {
        "source-only": ("c2", "trained on the source"),
        "uncentred": ("c0", "layers alone"),
        "undrift": ("c1", "undrift"),
    }
    cells = read_cells("amazon-bow")
    for method, (cls, title) in titles.items():
        errors = defaultdict(list)
        for record in cells:
            if record["method"] == method:
                errors[record["target_share"]].append(record["transfer_error"])
        points = [(across(share), up(float(np.mean(errors[share])))) for share in sorted(errors)]
        x, y = points[-1]
        parts += [draw_curve(points, cls), text(x + 8, y + 5, title, cls=f"s{cls[1]}")]
    title = "Error against the share of positive reviews in the target, mean of twelve tasks of amazon-bow"
    save_figure("shares", title, 700, 352, *parts)


def draw_expected() -> None:
    """Draw the expected error of every run against the error measured with its labels."""
    across, up = Scale(0.0, 0.36, 56, 460), Scale(0.0, 0.36, 420, 44)
    parts = [
        vertical_axis(up, 56, 460, "measured error"),
        horizontal_axis(across, 420, 420, "expected error, without labels"),
        line(across(0), up(0), across(0.36), up(0.36), "rule"),
    ]
    for corpus, cls in (("amazon-bow", "s0"), ("fdu-mtl", "s1")):
        for record in read_cells(corpus):
            if record["method"] == "undrift" and record["expected_error"] is not None:
                x, y = across(record["expected_error"]), up(record["transfer_error"])
                parts.append(tag("circle", cx=x, cy=y, r=4.0, cls=f"{cls} faint"))
    for y, (corpus, cls) in enumerate((("amazon-bow", "s0"), ("fdu-mtl", "s1"))):
        parts += [tag("circle", cx=80.0, cy=64.0 + 22 * y, r=5, cls=cls), text(92, 69 + 22 * y, corpus)]
    save_figure("expected", "Expected error against measured error of 165 runs", 500, 472, *parts)


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
    "text": "raw text in, predictions out",
    "persist, scoring, explain": "model files, errors with intervals, reasons",
    "method": "MSDAClassifier, one module for each step",
    "msda": "MDA and MSDA, scikit-learn transformers",
    "inputs": "checks of everything that a user may pass",
    "core": "the paper: arrays in, arrays out",
    "errors, files": "messages, atomic writes",
}
FLOW = [
    ("app/domains.py", "read the files", "documents and labels by domain"),
    ("text/terms.py", "count terms", "sparse rows over one vocabulary"),
    ("method/layers.py", "learn the layers", "layers, and the Gram matrix of anchors"),
    ("method/solve.py", "least squares on labels", "a classifier, and held-out scores"),
    ("method/shares.py, align.py", "class shares, alignment", "shares with intervals, moved rows"),
    ("method/self_train.py", "rounds of pseudo-labels", "the final weights"),
    ("method/calibrate.py", "calibrate", "threshold, probabilities, expected error"),
    ("method/doubts.py", "warnings, fallback", "a fitted classifier"),
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
    parts.append(tag("path", d="M590 12v372m-6 -6l6 6l6 -6", cls="arrow"))
    parts.append(text(604, 200, "imports", cls="soft"))
    save_figure("packages", "The packages; each imports only from packages below it", 670, 404, *parts)


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
    save_figure("flow", "How data flows through undrift adapt", 580, 516, *parts)


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
    "steps": draw_steps,
    "shares": draw_shares,
    "expected": draw_expected,
    "teacher": draw_teacher,
    "packages": draw_packages,
    "flow": draw_flow,
    "report": photograph_report,
}

if __name__ == "__main__":
    for name in sys.argv[1:] or DRAWINGS:
        DRAWINGS[name]()
