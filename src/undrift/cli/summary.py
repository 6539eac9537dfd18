"""What `undrift adapt` says: what was read, the verdict, class shares, what was written, what to do next."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..errors import count, write_shares
from . import terminal

MOST_LABELS = 10  # that a line names
LARGE_FILE = 50e6  # bytes of a model file above which a smaller one is suggested


def show_summary(summary: dict[str, Any], as_json: bool) -> None:
    """Print the summary of a job."""
    for warning in summary["warnings"]:
        terminal.show_warning(warning)
    if as_json:
        terminal.show_json(summary)
        return
    for line in [*_describe_files(summary), *_describe_fit(summary)]:
        terminal.say(line)
    terminal.say("")
    targets = summary["targets"]
    for target in targets:
        terminal.say(describe_error(target, summary, has_record=target is targets[-1]), style="bold")
        for line in _describe_shares(target, summary["task"]):
            terminal.say(line)
    for note in list_notes(summary):
        terminal.say(f"Note: {note}.")
    terminal.say("")
    terminal.say(describe_file(summary["out"]))
    if summary["model"]:
        terminal.say(_describe_model(summary))
    if summary["report"]:
        terminal.say(describe_file(summary["report"]))
    if "distilled" in summary:
        from .distill import format_distilled

        terminal.say(format_distilled(summary["distilled"]))
    advice, command = choose_next(summary)
    terminal.say(f"Next: {advice}")
    if command:
        terminal.say_line(f"  {command}")


def _describe_model(summary: dict[str, Any]) -> str:
    """Say where the model is, in which precision, and how to get a smaller one."""
    file, line = summary["model_file"], describe_model(summary["model"], summary["update_rows"])[:-1]
    if file["half"]:
        line += f". Half precision changed none of {file['n_checked']:,} predictions"
    if file["bytes"] > LARGE_FILE and "distilled" not in summary:
        line += "; --distilled saves one of a few MB, to predict with"
    return f"{line}."


def _describe_files(summary: dict[str, Any]) -> Iterator[str]:
    """Say what was read, one line a file."""
    for source in summary["sources"]:
        n_rows, odd = count(source["rows"], "row"), _count_odd(source)
        yield f"Read {source['file']}: {n_rows}, {source['labelled']:,} labelled{odd}"
    for target in summary["targets"]:
        share, tokens = target["unseen_share"], summary["tokens"] or "words"
        unseen = "" if share is None else f", {share:.0%} of {tokens} not in the source"
        yield f"Read {target['file']}: {count(target['rows'], 'row')}{_count_odd(target)}{unseen}"


def _count_odd(entry: dict[str, Any]) -> str:
    """Count the rows of a file that are empty, or could not be read."""
    empty = f", {entry['empty']:,} empty" if entry["empty"] else ""
    return empty + (f", {entry['bad_rows']:,} skipped as unreadable" if entry["bad_rows"] else "")


def _describe_fit(summary: dict[str, Any]) -> Iterator[str]:
    labels = [f"{label} {n:,}" for label, n in sorted(summary["labels"].items())]
    labels[MOST_LABELS:] = [f"{len(labels) - MOST_LABELS:,} more"] if len(labels) > MOST_LABELS else []
    chosen = ", ".join(f"{name} {value:g}" for name, value in summary["chosen"].items())
    rule = "fixed" if summary["rule"] == "fixed" else f"{summary['rule']} over {summary['n_candidates']}"
    is_usual = summary.get("tokens") in (None, "words")
    tokens = "" if is_usual else f" of {summary['tokens']} ({summary['tokens_reason']})"
    is_less = summary["pivots"] < summary["vocabulary"]
    pivots = f", {summary['pivots']:,} of them reconstructed" if is_less else ""
    kind = {"rating": " (a rating)", "tags": " (tags)"}.get(summary["task"], "")
    size = f"Vocabulary: {summary['vocabulary']:,} terms{tokens}{pivots}"
    if "features" in summary:
        more = ", ..." if len(summary["features"]) > MOST_LABELS else ""
        names = ", ".join(summary["features"][:MOST_LABELS])
        size = f"Features: {len(summary['features']):,} columns of {summary['feature_kind']} ({names}{more})"
    yield f"Labels{kind}: {', '.join(labels)}. {size}."
    if summary.get("n_learnt"):
        yield f"Learnt {count(summary['n_learnt'], 'label')} of the target too."
    yield f"Chosen: {chosen} ({rule}). Took {summary['seconds']:.0f} s."


def describe_error(t: dict[str, Any], summary: dict[str, Any], has_record: bool = True) -> str:
    """Say in one sentence how many predictions of a target are wrong, measured or expected.

    How good such expectations were is added where `has_record` asks for it.
    """
    from ..classifier import EXPECTED_ERROR_RECORD

    name = Path(t["file"]).name
    how = ", each predicted without its label" if summary.get("n_learnt") else ""
    fell_back = " (not adapted: source only)" if t["fell_back"] else ""
    if t.get("scored") and summary["task"] != "classes":
        return f"{name}: {describe_scores(t, summary['task'])}."
    if t.get("scored"):
        low, high = t["adapted_error_interval"]
        baseline = f"{t['baseline_error']:.1%} with a linear SVM trained on the source"
        verdict = "" if t["fell_back"] else f": {_judge(t)}"
        verdict = _compare_with_chance(t["adapted_error"], t) or verdict
        return (
            f"{name}{fell_back}: {t['adapted_error']:.1%} wrong (95% interval {low:.1%} to {high:.1%}) on "
            f"{count(t['scored'], 'labelled row')}{how}, {baseline}{verdict}."
        )
    if t["expected_error"]:
        between = "90% interval {low:.0%} to {high:.0%}".format(**t["expected_error"])
        when = "before its labels were learnt" if summary.get("n_learnt") else "without labels"
        when += _compare_with_chance(t["expected_error"]["error"], t)
        record = f"; {EXPECTED_ERROR_RECORD}" if has_record else ""
        return (
            f"{name}{fell_back}: about {t['expected_error']['error']:.0%} wrong ({between}), expected "
            f"{when}{record}."
        )
    return f"{name}{fell_back}: how many predictions are wrong cannot be said without labels."


MEASURES = {  # of a task that has no error: their names, and the baseline
    "rating": ({"mae": "mean absolute error", "rank_correlation": "rank correlation"}, "ridge"),
    "tags": ({"macro_f1": "macro F1", "micro_f1": "micro F1"}, "a linear SVM for each tag"),
}


def describe_scores(t: dict[str, Any], task: str) -> str:
    """Say how good predictions of ratings or tags are, beside the baseline's."""
    names, baseline = MEASURES[task]
    shown = [
        f"{name} {adapted:.3f} ({before:.3f} with {baseline})"
        for measure, name in names.items()
        if None not in (adapted := t[f"adapted_{measure}"], before := t[f"baseline_{measure}"])
    ]
    return f"{', '.join(shown)} trained on the source, on {count(t['scored'], 'labelled row')}"


def _compare_with_chance(error: float, target: dict[str, Any]) -> str:
    """Say so where predictions are no better than one answer for all rows."""
    from ..jobs import find_chance, is_no_better

    chance = find_chance(target)
    if chance is None or not is_no_better(error, chance):
        return ""
    return f": no better than chance (always answering {chance['label']} is wrong for {chance['error']:.1%})"


def _judge(t: dict[str, Any]) -> str:
    low, high = t["gain_interval"]
    if low > 0:
        return "adaptation helped"
    return "adaptation hurt" if high < 0 else "too few labels to tell whether adaptation helped"


def _describe_shares(t: dict[str, Any], task: str) -> Iterator[str]:
    """Say which classes were predicted, which shares they were expected to have, and what was left empty."""
    what = {"rating": "Ratings", "tags": "Shares of tags"}.get(task, "Class shares")
    line = f"{what} of {t['file']}: predicted {list_shares(t['predicted_shares'])}"
    if t["target_shares_given"]:
        line += f"; given {list_shares(t['target_shares'])}"
    elif t["target_shares"] and task == "tags":
        line += f"; assumed as in the source {list_shares(t['target_shares'])}"
    elif t["target_shares"]:
        line += f"; estimated {list_shares(t['target_shares'], t['target_shares_interval'])}"
    yield f"{line}."
    if "n_doubtful" in t:
        yield format_doubtful(t["n_doubtful"], t["rows"], t["file"])


def list_shares(shares: dict[str, float], interval: dict[str, list[float]] | None = None) -> str:
    """Write class shares in words, those of ten classes at most."""
    parts = []
    for label, share in list(zip(shares, write_shares(shares.values()), strict=True))[:MOST_LABELS]:
        between = ""
        if interval is not None:
            low, high = interval[label]
            digits = int(high - low < 0.02)  # the ends of a narrow one would be equal
            between = f" ({low:.{digits}%} to {high:.{digits}%})"
        parts.append(f"{label} {share}{between}")
    return ", ".join([*parts, *([f"{len(shares) - len(parts):,} more"] if len(shares) > MOST_LABELS else [])])


def format_doubtful(n_doubtful: int, n_rows: int, file: str) -> str:
    """Say how many predictions were left empty."""
    return f"Left empty as doubtful (--min-confidence): {n_doubtful:,} of {n_rows:,} predictions for {file}."


def list_notes(summary: dict[str, Any]) -> list[str]:
    """Return what else there is to say, without what a warning has said."""
    notes = [*summary["selection_notes"], *summary["notes"], *list_doubts(summary)]
    return [note for note in notes if not any(warning.startswith(note) for warning in summary["warnings"])]


def list_doubts(summary: dict[str, Any]) -> list[str]:
    """Return the reasons against adapting that no warning has shown.

    Where labels show that it helped on every target, those of its rows alone are left.
    """
    caution, targets = summary["caution"], summary["targets"]
    has_helped = all(
        t.get("scored") and t["adapted_error"] is not None and t["adapted_error"] <= t["baseline_error"]
        for t in targets
    )
    return [
        text
        for text, code in zip(caution["reasons"], caution["codes"], strict=True)
        if not (caution["fell_back"] and text in caution["blocking"])
        and not (has_helped and code not in ("few-rows", "empty-rows"))
    ]


def describe_file(path: str) -> str:
    """Say where a file was written and how large it is; of a folder, how many files it has."""
    place = Path(path)
    if place.is_dir():
        return f"Wrote {path}: {sum(1 for _ in place.iterdir()):,} files."
    return f"Wrote {path}: {format_size(place.stat().st_size)}." if place.exists() else f"Wrote {path}."


def describe_model(path: str, n_rows: int) -> str:
    """Say where a model was written, how large it is, and that it holds training rows if it does."""
    line = describe_file(path)
    if not n_rows:
        return line
    return f"{line[:-1]}, {n_rows:,} training rows among it for `update` (--no-update-state leaves them out)."


def format_size(n_bytes: int) -> str:
    """Format a size in bytes, kB or MB."""
    if n_bytes < 1000:
        return f"{n_bytes} bytes"
    return f"{n_bytes / 1e3:.0f} kB" if n_bytes < 1e6 else f"{n_bytes / 1e6:.1f} MB"


def choose_next(summary: dict[str, Any]) -> tuple[str, str]:
    """Say what to do next, and the command for it: look at the report, label a sample, predict new rows."""
    target, is_scored = summary["targets"][0], any(t.get("scored") for t in summary["targets"])
    if summary["report"] and is_scored:
        return f"open {summary['report']}", ""
    if not summary["model"]:
        return "save the model with --model FILE, for `undrift ask` and `undrift predict`", ""
    from ..jobs import name_domains

    more = []
    for name in summary["text"] if isinstance(summary["text"], list) else [summary["text"]]:
        more += ["--text", name]
    if len(summary["targets"]) > 1:
        more += ["--domain", name_domains([Path(entry["file"]) for entry in summary["targets"]])[0]]
    model = ["--model", summary["model"], "--input"]
    if is_scored or summary["task"] != "classes":
        command = ["predict", *model, "NEW.csv", *more, "--out", "FILE", "--check"]
        return "predict new rows:", shlex.join(["undrift", *command])
    command = ["ask", *model, target["file"], *more, "--for", "estimate", "--out", "sample.csv"]
    return "label 50 rows, to measure how many predictions are wrong:", shlex.join(["undrift", *command])
