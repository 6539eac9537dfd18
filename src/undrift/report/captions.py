"""Which charts and tables a report has: a title that says what to see, a drawing, and the table behind it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from .charts import (
    Chart,
    coverage_chart,
    histogram,
    idea_picture,
    interval_chart,
    reliability_chart,
    share_chart,
    term_map,
    word_chart,
)
from .shares import most_frequent, write_estimate, write_percent
from .svg import shorten

MOST_CLASSES = 6  # that a chart of shares shows
MOST_CONFUSED = 8  # classes of which the confusion matrix is shown whole
HEAT_STEP = 0.02  # points of error between two shades of the settings


def adaptation_charts(data: dict[str, Any]) -> dict[str, Any]:
    """Draw all charts of an adaptation's report, and make its tables."""
    confidence = data["confidence"]
    return {
        "errors": _errors(data) if data["verdict"]["scored"] else None,
        "shares": list(share_charts(data)),
        "words": _words(data) if data["difference"]["terms"] else None,
        "map": _map(data),
        "idea": idea_picture(data["idea"]) if data["idea"] else None,
        "coverage": _coverage(data) if confidence else None,
        "certainty": (_reliability(data) if confidence["reliability"] else _histogram(data))
        if confidence
        else None,
        "confusion": confidence and _confusion(data),
        "selection": [_selection(grid) for grid in data["selection"]],
        **_tables(data),
    }


def _tables(data: dict[str, Any]) -> dict[str, list[tuple[Any, ...]]]:
    """Rows of the tables that stand alone."""
    again = data["reproduce"]
    return {
        "strongest": [
            (
                ("" if row["n_labelled"] else "★ ") + row["term"], row["class"], f"{row['weight']:.3g}",
                row["n_labelled"], f"{row['source']:.2%}", f"{row['target']:.2%}", ", ".join(row["from"]),
            )
            for row in data["strongest"]
        ],
        "domains": [
            (
                card["name"], card["role"], card["n_rows"], card["n_labelled"], card["n_terms"],
                "" if card["unseen_share"] is None else f"{card['unseen_share']:.1%}",
            )
            for card in data["domains"]
        ],
        "files": [(row["file"], row["bytes"], row["sha256"]) for row in again["files"]],
        "parameters": [(name, str(value)) for name, value in again["parameters"].items()],
    }  # fmt: skip


def _errors(data: dict[str, Any]) -> Chart:
    verdict, rows, table = data["verdict"], [], []
    adapted = verdict["predictor"]
    for scored in verdict["scored"]:
        suffix = f", {shorten(scored['name'], 12)}" if len(verdict["scored"]) > 1 else ""
        for kind, name in (("adapted", adapted), ("source_only", "baseline")):
            rows.append({"label": name + suffix, "kind": kind, **scored[kind]})
            table.append(
                (scored["name"], name, scored["n_rows"], *map("{:.2%}".format, scored[kind].values()))
            )
    p = verdict["whole"]["difference"]["p"]
    return Chart(
        "errors",
        f"Measured on {verdict['whole']['n_rows']:,} labelled target rows",
        "Intervals are Wilson's, 95%; McNemar's p of the difference is "
        + ("below 0.001." if p < 0.001 else f"{p:.2g}."),
        interval_chart(f"Error of the {adapted} classifier and of the baseline", rows),
        ("target", "classifier", "rows scored", "error", "low", "high"),
        table,
    )


def share_charts(data: dict[str, Any]) -> Iterator[Chart]:
    """Draw the class shares of every target."""
    for i, card in enumerate(card for card in data["domains"] if card["role"] == "target"):
        rows, measured = _share_rows(card), card["labelled_shares"]
        has_shares = card["target_shares"] is not None
        name = ("given" if card["are_shares_given"] else "estimated") if has_shares else None
        columns = ["class", "predicted", *(("share", "low", "high") if has_shares else ())]
        table = [[row["label"], *(f"{row[key]:.1%}" for key in list(row)[2:])] for row in rows]
        if measured:
            columns.append("of labelled rows")
            table = [[*cells, f"{measured.get(cells[0], 0.0):.1%}"] for cells in table]
        shown = sorted(rows, key=lambda row: -row.get("share", row["predicted"]))[:MOST_CLASSES]
        yield Chart(
            f"shares-{i + 1}",
            _shares_title(card),
            _explain_shares(card, data),
            share_chart(
                f"Class shares of {card['name']}", rows if len(rows) <= MOST_CLASSES else shown, name
            ),
            tuple(columns),
            [tuple(cells) for cells in table],
        )


def _share_rows(card: dict[str, Any]) -> list[dict[str, Any]]:
    """Return label, code, predicted share and, where they are known, share, low and high of every class."""
    shares, intervals = card["target_shares"], card["target_shares_interval"]
    rows = []
    for code, (label, predicted) in enumerate(card["predicted_shares"].items()):
        known = {}
        if shares:
            known = dict(zip(("share", "low", "high"), (shares[label], *intervals[label]), strict=True))
        rows.append({"label": label, "code": code, "predicted": predicted, **known})
    return rows


def _shares_title(card: dict[str, Any]) -> str:
    top, name = most_frequent(card), card["name"]
    if top is None:
        return f"Predicted class shares of {name}"
    if card["are_shares_given"]:
        return f"Class shares of {name}, as given"
    if not top["is_clear"]:
        return f"No class of {name} is clearly the most frequent"
    share, interval = write_estimate(top["share"], top["low"], top["high"])
    return f"{top['label']} is the most frequent class of {name}: about {share} ({interval})"


def _explain_shares(card: dict[str, Any], data: dict[str, Any]) -> str:
    """Say what was estimated of a target's class shares, and how sure that is."""
    if not card["target_shares"]:
        how = "there are none after a fallback" if data["verdict"]["fell_back"] else "use --center classes"
        return f"Shares among the predictions; those among the rows were not estimated ({how})."
    more = (
        f" {len(card['target_shares'])} classes in the table."
        if len(card["target_shares"]) > MOST_CLASSES
        else ""
    )
    if card["are_shares_given"]:
        return "Given, not estimated. Predictions are made for these shares." + more
    return (
        "Bars are predictions; lines are estimates from the scores, without labels, with 90% intervals."
        + more
    )


def _words(data: dict[str, Any]) -> Chart:
    rows, share = data["difference"]["terms"][:14], data["difference"]["new_share"]
    title = f"{share:.0%} of what moved predictions is words that labelled rows never or rarely contain"
    return Chart(
        "words",
        title if share >= 0.05 else "What moved predictions is words that labelled rows contain too",
        "Terms that moved changed predictions most, beyond what they do in the baseline. ★ is in no labelled "
        "row, ☆ in few.",
        word_chart("Terms by their part in the changed predictions", rows, data["classes"]),
        ("term", "moves toward", "share of effect", "labelled rows with it", "share of target rows"),
        [(r["term"], r["class"], f"{r['push']:.2%}", r["n_labelled"], f"{r['target']:.2%}") for r in rows],
    )


def _map(data: dict[str, Any]) -> Chart:
    points, n_terms, classes = data["map"]["points"], data["map"]["n_terms"], data["classes"]
    far = sorted(points, key=lambda p: -abs(p["target"] - p["source"]))[:60]
    drawn = f"{len(points):,} of {n_terms:,} terms" if len(points) < n_terms else f"All {n_terms:,} terms"
    return Chart(
        "map",
        f"{data['source_name']} and {data['target_name']} use different words",
        f"{drawn}, in the colour of the class they speak for; diamonds are in no labelled row. On the dashed "
        "line a term is equally frequent in both.",
        term_map(
            "Share of documents with each term, source against target", points, data["source_name"],
            data["target_name"], classes,
        ),
        ("term", "share of source", "share of target", "speaks for", "labelled rows"),
        [
            (p["term"], f"{p['source']:.2%}", f"{p['target']:.2%}", classes[p["code"]], p["n_labelled"])
            for p in far
        ],
    )  # fmt: skip


def _coverage(data: dict[str, Any]) -> Chart:
    rows = data["confidence"]["coverage"]
    row = next((row for row in rows if row["coverage"] >= 0.8 - 1e-9), rows[-1])
    error, how = row["expected"], "are expected to be"
    if row["measured"]:
        error, how = row["measured"]["error"], "are"
    return Chart(
        "coverage",
        f"Of the surest 80%, {write_percent(error)} {how} wrong",
        f"Keep fewer, and fewer are wrong: --min-confidence {row['threshold']:.2f} keeps these and leaves "
        "the other predictions empty.",
        coverage_chart("Error of the surest predictions, by how many are kept", rows),
        ("kept", "probability from", "expected error", "measured", "low", "high"),
        [
            (
                f"{r['coverage']:.0%}", f"{r['threshold']:.3f}", f"{r['expected']:.1%}",
                *(f"{r['measured'][k]:.1%}" if r["measured"] else "" for k in ("error", "low", "high")),
            )
            for r in rows
        ],
    )  # fmt: skip


def _reliability(data: dict[str, Any]) -> Chart:
    rows = data["confidence"]["reliability"]
    above = sum(r["low"] > r["probability"] for r in rows)
    below = sum(r["high"] < r["probability"] for r in rows)
    title = "Probabilities hold: predictions are right as often as they say"
    if above + below > len(rows) / 4:
        title = "Predictions are " + (
            "right more often than their probabilities say"
            if above > below
            else "wrong more often than their probabilities say"
        )
    return Chart(
        "reliability",
        title,
        "Labelled target rows in groups of similar probability, with 95% intervals.",
        reliability_chart("Share of predictions that is right, by their probability", rows),
        ("probability", "right", "low", "high", "rows"),
        [(*(f"{r[k]:.1%}" for k in ("probability", "right", "low", "high")), r["n_rows"]) for r in rows],
    )


def _histogram(data: dict[str, Any]) -> Chart:
    histogram_data, classes = data["confidence"]["histogram"], data["classes"]
    counts, edges = histogram_data["counts"], histogram_data["edges"]
    sure = sum(n for row in counts for n, edge in zip(row, edges, strict=False) if edge >= 0.9 - 1e-9)
    total = sum(map(sum, counts)) or 1
    return Chart(
        "certainty",
        f"{write_percent(sure / total)} of the predictions have a probability of 90% or more",
        "How sure the predictions are. With labels, this page also shows whether that can be relied on.",
        histogram("Predictions by the probability of their label", histogram_data, classes),
        ("from", "to", *classes),
        [
            (f"{start:.0%}", f"{end:.0%}", *(row[b] for row in counts))
            for b, (start, end) in enumerate(pairwise(edges))
        ],
    )


def _confusion(data: dict[str, Any]) -> dict[str, Any]:
    """Say which classes are taken for which: a matrix, or of many classes the most frequent mistakes."""
    given, classes = data["confidence"]["confusion"], data["classes"]
    counts, is_measured = given["counts"], given["is_measured"]
    totals = [sum(row) or 1 for row in counts]
    mistakes = sorted(
        ((n, t, p) for t, row in enumerate(counts) for p, n in enumerate(row) if t != p and n > 0),
        reverse=True,
    )
    share = sum(n for n, _, _ in mistakes) / (sum(totals) or 1)
    title = "No mistakes" if not mistakes else (
        f"Most frequent mistake: {classes[mistakes[0][1]]} taken for {classes[mistakes[0][2]]} "
        f"({mistakes[0][0]:,.0f} rows)"
    )  # fmt: skip
    note = (
        "Counted on the labelled target rows"
        if is_measured
        else "Expected from the probabilities, not measured"
    )
    return {
        "title": title,
        "note": f"{note}, {share:.1%} of them wrong. Shares are of each true class.",
        "head": ["true class", *(f"predicted {name}" for name in classes)],
        "rows": [
            (classes[t], [(f"{n / totals[t]:.0%}", f"{n:,.0f}", round(6 * n / totals[t])) for n in row])
            for t, row in enumerate(counts)
        ]
        if len(classes) <= MOST_CONFUSED
        else [],
        "mistakes": [(classes[t], classes[p], f"{n:,.0f}") for n, t, p in mistakes[:12]],
    }


RULE_MEASURES = {
    "source-cv": "Error in cross-validation on the labelled source",
    "one-se": "Error in cross-validation on the source; the first values are kept unless clearly beaten",
    "reverse": "Error on held-out source rows, after labelling the target and training back",
    "importance-cv": "Error in cross-validation on the source, rows that look like the target counting more",
}


def _selection(grid: dict[str, Any]) -> dict[str, Any]:
    """Show what a rule gave to each noise and depth; shades are steps of two points, never stretched."""
    chosen = next((cell for cell in grid["cells"] if cell["chosen"]), None)
    best = min(grid["cells"], key=lambda cell: cell["value"] if grid["is_error"] else -cell["value"])["value"]
    cells = {(cell["noise"], cell["n_layers"]): cell for cell in grid["cells"]}
    return {
        "title": f"{grid['rule']} chose noise {chosen['noise']:g} with {chosen['n_layers']} layers"
        if chosen
        else f"{grid['rule']} chose nothing",
        "note": f"{RULE_MEASURES.get(grid['rule'], grid['rule'])}, at the best C of each cell. ◆ is chosen; "
        f"each shade is {100 * HEAT_STEP:.0f} points worse than the best. No target label is used.",
        "head": ["layers", *(f"noise {noise:g}" for noise in grid["noise"])],
        "rows": [
            (str(depth), [_selection_cell(grid, cells.get((noise, depth)), best) for noise in grid["noise"]])
            for depth in grid["n_layers"]
        ],
    }


def _selection_cell(grid: dict[str, Any], cell: dict[str, Any] | None, best: float) -> tuple[str, str, int]:
    """Return what a cell shows, smaller text beside it, and its shade."""
    if cell is None:
        return "", "", 0
    shown = f"{cell['value']:.1%}" if grid["is_error"] else f"{cell['value']:.3g}"
    shade = min(6, int(abs(cell["value"] - best) / HEAT_STEP + 1e-9))
    return shown + (" ◆" if cell["chosen"] else ""), f"C {cell['C']:g}", shade
