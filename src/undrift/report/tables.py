"""The tables of an adaptation's report that stand alone, as written cells."""

from __future__ import annotations

from typing import Any

from ..errors import write_shares

MOST_CONFUSED = 8  # classes of which the confusion matrix is shown whole
HEAT_STEP = 0.02  # points of error between two shades of the settings


def adaptation_tables(data: dict[str, Any]) -> dict[str, Any]:
    """Write the rows of every table."""
    again = data["reproduce"]
    return {
        "confusion": _confusion(data),
        "selection": [_selection(grid) for grid in data["selection"]],
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


def _confusion(data: dict[str, Any]) -> dict[str, Any]:
    """Say which classes are taken for which: a matrix, or of many classes the most frequent mistakes."""
    given, classes = data["confidence"]["confusion"], data["classes"]
    counts, is_measured = given["counts"], given["is_measured"]
    totals = [sum(row) or 1 for row in counts]
    pairs = [(n, t, p) for t, row in enumerate(counts) for p, n in enumerate(row)]
    mistakes = sorted(((n, t, p) for n, t, p in pairs if t != p and n > 0), reverse=True)
    share = sum(n for n, _, _ in mistakes) / (sum(totals) or 1)
    title = "No mistakes"
    for n, t, p in mistakes[:1]:
        title = f"Most frequent mistake: {classes[t]} taken for {classes[p]} ({n:,.0f} rows)"
    note = "Counted on the labelled target rows" if is_measured else "Expected, not measured"
    return {
        "title": title,
        "note": f"{note}, {share:.1%} of them wrong. Rows are true classes, columns predictions; shares "
        "are of each row.",
        "head": ["true ↓", *classes],
        "rows": [
            (
                classes[t],
                [
                    (share, f"{n:,.0f}", round(6 * n / totals[t]))
                    for share, n in zip(write_shares((n / totals[t] for n in row), 0), row, strict=True)
                ],
            )
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
        "title": f"Noise {chosen['noise']:g} with {chosen['n_layers']} layers was chosen, by {grid['rule']}"
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
