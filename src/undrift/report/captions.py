"""Which charts a report has: a title that says what to see, a drawing, and the table behind it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from .charts import (
    Chart,
    heat_map,
    heat_value,
    histogram,
    interval_chart,
    label_bar,
    push_chart,
    share_chart,
    shift_chart,
)
from .shares import explain_shares, most_frequent, write_estimate

MOST_CLASSES = 12  # that a chart of shares shows


def adaptation_charts(data: dict[str, Any]) -> dict[str, Any]:
    """Draw all charts of an adaptation's report, and make its tables."""
    return {
        "errors": _errors(data) if data["verdict"]["scored"] else None,
        "shares": list(share_charts(data)),
        "frequent": _single_frequent(data),
        "difference": _difference(data) if data["difference"]["terms"] else None,
        "shift": _shift(data),
        "selection": list(_selection(data)),
        "scores": list(_scores(data)),
        "labels": [label_bar(card["labels"] or card["predicted"]) for card in data["domains"]],
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
        "files": [(row["file"], row["bytes"], row["sha256"]) for row in again["files"]],
        "parameters": [(name, str(value)) for name, value in again["parameters"].items()],
    }  # fmt: skip


def _errors(data: dict[str, Any]) -> Chart:
    verdict, rows, table = data["verdict"], [], []
    adapted = verdict["predictor"]
    for scored in verdict["scored"]:
        suffix = f", {scored['name']}" if len(verdict["scored"]) > 1 else ""
        for kind, name in (("source_only", "baseline"), ("adapted", adapted)):
            rows.append({"label": name + suffix, "kind": kind, **scored[kind]})
            table.append(
                (scored["name"], name, scored["n_rows"], *map("{:.2%}".format, scored[kind].values()))
            )
    return Chart(
        "errors",
        _errors_title(verdict["answer"]),
        "Dots and squares are errors on the labelled target rows, lines their 95% intervals (Wilson). "
        "The baseline is a linear SVM trained on the labelled source rows.",
        interval_chart(f"Error of the baseline and of the {adapted} classifier", rows),
        ("target", "classifier", "rows scored", "error", "low", "high"),
        table,
    )


def share_charts(data: dict[str, Any]) -> Iterator[Chart]:
    """Draw the class shares of every target."""
    for i, card in enumerate(_targets(data)):
        rows, measured = _share_rows(card), card["labelled_shares"]
        has_shares = card["target_shares"] is not None
        name = ("given" if card["are_shares_given"] else "estimated, 90% interval") if has_shares else None
        columns = ["class", "predicted", *(("share", "low", "high") if has_shares else ())]
        table = [[row["label"], *(f"{row[key]:.1%}" for key in list(row)[1:])] for row in rows]
        if measured:
            columns.append("of labelled rows")
            table = [[*cells, f"{measured.get(cells[0], 0.0):.1%}"] for cells in table]
        shown = sorted(rows, key=lambda row: -row.get("share", row["predicted"]))[:MOST_CLASSES]
        yield Chart(
            f"shares-{i + 1}",
            _shares_title(card),
            explain_shares(card, data),
            share_chart(
                f"Class shares of {card['name']}", rows if len(rows) <= MOST_CLASSES else shown, name
            ),
            tuple(columns),
            [tuple(cells) for cells in table],
        )


def _share_rows(card: dict[str, Any]) -> list[dict[str, Any]]:
    """Return label, predicted share and, where they are known, share, low and high of every class."""
    shares, intervals = card["target_shares"], card["target_shares_interval"]
    rows = []
    for label, predicted in card["predicted_shares"].items():
        known = {}
        if shares:
            known = dict(zip(("share", "low", "high"), (shares[label], *intervals[label]), strict=True))
        rows.append({"label": label, "predicted": predicted, **known})
    return rows


def _targets(data: dict[str, Any]) -> list[dict[str, Any]]:
    return [card for card in data["domains"] if card["role"] == "target"]


def _single_frequent(data: dict[str, Any]) -> dict[str, Any] | None:
    """Return the most frequent class where there is one target."""
    targets = _targets(data)
    return most_frequent(targets[0]) if len(targets) == 1 else None


def _shares_title(card: dict[str, Any]) -> str:
    top, name = most_frequent(card), card["name"]
    if top is None:
        return f"Predicted class shares of {name}"
    if card["are_shares_given"]:
        return f"Class shares of {name}, as given"
    if not top["is_clear"]:
        return f"No class of {name} is clearly the most frequent"
    share, interval = write_estimate(top["share"], top["low"], top["high"])
    return f"About {share} of {name} are {top['label']} (90% interval {interval})"


def _errors_title(answer: str) -> str:
    return {
        "yes": "The adapted classifier errs less than the baseline",
        "no": "The adapted classifier errs more than the baseline",
        "unclear": "The adapted classifier and the baseline err about equally",
        "fallback": "The source-only classifier beside the baseline: nothing was adapted",
    }[answer]


def _difference(data: dict[str, Any]) -> Chart:
    rows, share = data["difference"]["terms"], data["difference"]["new_share"]
    title = f"{share:.0%} of what moved predictions is words that labelled rows never or rarely contain"
    return Chart(
        "difference",
        title if share >= 0.05 else "What moved predictions is words that labelled rows contain too",
        f"The {len(rows)} terms that moved changed predictions most, beyond what they do in the baseline. "
        "★ occurs in no labelled row, ☆ in few. Of terms that always occur together one is shown.",
        push_chart("Terms by their part in the changed predictions", rows, "share of the whole effect"),
        ("term", "moves toward", "share of effect", "labelled rows with it", "share of target rows"),
        [(r["term"], r["class"], f"{r['push']:.2%}", r["n_labelled"], f"{r['target']:.2%}") for r in rows],
    )


def _shift(data: dict[str, Any]) -> Chart:
    points, shift = data["shift"]["points"], data["shift"]
    far = sorted(points, key=lambda p: -abs(p["target"] - p["source"]))[:100]
    n_new = sum(1 for row in data["terms"]["rows"] if not row[2])
    drawn = (
        f"{len(points):,} of {shift['n_terms']:,} terms are drawn: the strongest, the most frequent and the "
        "most shifted."
        if len(points) < shift["n_terms"]
        else f"All {len(points):,} terms are drawn."
    )
    return Chart(
        "shift",
        f"{data['source_name']} and {data['target_name']} use different words",
        f"Each point is a term; on the diagonal it is equally frequent in both. {n_new:,} terms "
        f"(larger, purple) occur in no labelled row. {drawn} Arrow keys move from point to point.",
        shift_chart(
            "Share of documents with each term, source against target", points, data["source_name"],
            data["target_name"],
        ),
        (
            "term", f"share of {data['source_name']}", f"share of {data['target_name']}", "speaks for",
            "labelled rows",
        ),
        [(p["term"], f"{p['source']:.2%}", f"{p['target']:.2%}", p["class"], p["n_labelled"]) for p in far],
    )  # fmt: skip


RULE_MEASURES = {
    "source-cv": "Error in cross-validation on the labelled source",
    "one-se": "Error in cross-validation on the source; the first values are kept unless clearly beaten",
    "reverse": "Error on held-out source rows, after labelling the target and training back",
    "importance-cv": "Error in cross-validation on the source, rows that look like the target counting more",
}


def _selection(data: dict[str, Any]) -> Iterator[Chart]:
    for grid in data["selection"]:
        chosen = next((cell for cell in grid["cells"] if cell["chosen"]), None)
        best = f"noise {chosen['noise']:g} with {chosen['n_layers']} layers" if chosen else "none"
        yield Chart(
            f"selection-{grid['rule']}",
            f"{grid['rule']} chose {best}",
            f"{RULE_MEASURES.get(grid['rule'], grid['rule'])}, at the best C of each cell; the fainter the "
            "better, ◆ is chosen. No target label is used.",
            heat_map(f"{grid['rule']} by noise and number of layers", grid),
            ("noise", "layers", "C", "error" if grid["is_error"] else "score", "chosen"),
            [
                (
                    f"{c['noise']:g}",
                    c["n_layers"],
                    f"{c['C']:g}",
                    heat_value(grid, c),
                    "yes" if c["chosen"] else "",
                )
                for c in grid["cells"]
            ],
        )


def _scores(data: dict[str, Any]) -> Iterator[Chart]:
    for scores in data["scores"]:
        names = [series["name"] for series in scores["series"]]
        wrong = "wrong" in names
        title = f"Most mistakes on {scores['name']} have scores near 0" if _wrong_near_zero(scores) else None
        yield Chart(
            f"scores-{scores['name']}",
            title or f"How certain the predictions on {scores['name']} are",
            "The farther from 0, the more certain."
            + ("" if wrong else " Rows near 0 are the doubtful ones."),
            histogram(f"Scores of the rows of {scores['name']}", scores),
            ("score from", "to", *names),
            [
                (f"{start:.3f}", f"{end:.3f}", *(series["counts"][b] for series in scores["series"]))
                for b, (start, end) in enumerate(pairwise(scores["edges"]))
            ],
        )


def _wrong_near_zero(scores: dict[str, Any]) -> bool:
    """Whether more than half of the mistakes lie in the middle half of the scores' range."""
    wrong = next((series["counts"] for series in scores["series"] if series["name"] == "wrong"), None)
    if not wrong or not sum(wrong) or not scores["edges"][0] < 0 < scores["edges"][-1]:
        return False
    reach = max(-scores["edges"][0], scores["edges"][-1]) / 3
    middles = [(a + b) / 2 for a, b in pairwise(scores["edges"])]
    near = sum(n for n, middle in zip(wrong, middles, strict=True) if abs(middle) < reach)
    return near > sum(wrong) / 2
