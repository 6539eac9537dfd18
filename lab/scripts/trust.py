"""Judge class shares and expected errors on stored scores, and write ``lab/pages/trust.md``.

    python lab/scripts/trust.py [FOLDER]

FOLDER holds the files of `lab/scripts/trust_scores.py score`, which are put into
``lab/results/trust-scores.npz``. Without it that file is read. Shares and bounds are estimated anew by the
code of this checkout. The error is that of the stored predictions at the nearest share. Errors of SVMs are
from ``lab/results/trust.jsonl``. ``undrift-lab pages`` then adds the table of ``lab/scripts/tweets.py``.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
from sklearn.metrics import f1_score
from trust_scores import SHARES

from undrift._version import METHOD_VERSION
from undrift.method import calibrate, constants
from undrift.method.align import correlate_scores
from undrift.method.calibrate import ExpectedError, HeldOut, expect_chance, expect_error, find_border
from undrift.method.constants import LEAST_CORRELATION, PSEUDO_WEIGHT
from undrift.method.shares import Shares, estimate_shares

LAB = Path(__file__).resolve().parents[1]
STORED, PAGE, RECORDS = LAB / "results/trust-scores.npz", LAB / "pages/trust.md", LAB / "results/trust.jsonl"
SPREADS, RATIOS, ODDS = (0.15, 0.2, 0.3, 0.4), (1.0, 0.8, 0.6, 0.5), (0.0, 0.2, 0.3, 0.4, 0.5)
WANTED = 0.85  # share of the tasks of every corpus whose interval holds the truth
SHIFTS = (1.5, 2.0, 2.5)  # of SHARE_SHIFT
TWEETS = "crisis"
Arrays = Mapping[str, np.ndarray]


def join_files(folder: Path) -> None:
    """Put the tasks of a folder's files into the stored ones."""
    with np.load(STORED) as stored:
        arrays = {key: stored[key] for key in stored.files}
    for path in sorted(folder.glob("scores-*.npz")):
        with np.load(path) as stored:
            arrays |= {key: stored[key] for key in stored.files}
    np.savez_compressed(STORED, **arrays)


def read_tasks(kind: str) -> Iterator[tuple[list[str], Arrays]]:
    """Yield corpus, source, target and share of every stored task of a kind, and its arrays."""
    tasks: dict[str, dict[str, np.ndarray]] = {}
    with np.load(STORED) as stored:
        for key in stored.files:
            name, _, field = key.partition("|")
            if name.startswith(f"{kind}/"):
                tasks.setdefault(name, {})[field] = stored[key]
    for name, arrays in tasks.items():
        yield name.split("/")[1:], arrays


def judge_task(arrays: Arrays) -> dict[str, Any]:
    """Estimate shares and error of a task, and compare them with the truth."""
    first, source_only = (arrays[name].astype(float)[:, None] for name in ("first", "source_only"))
    codes, is_test = arrays["codes"].astype(int), arrays["is_test"]
    held_out = HeldOut(
        arrays["held_out"].astype(float)[:, None], codes, np.ones(len(codes)), int(arrays["n_domains"])
    )
    truth, n = arrays["truth"][is_test], len(first)
    correlation, source = correlate_scores(first, source_only), codes.mean()
    shares = estimate_shares(first, held_out.scores, codes, 2, transfer=held_out.transfer)
    shares = shares.compare(held_out.class_shares, correlation, unseen=0.0)  # which is not stored
    unseparated, shift, has_fallen_back = shares.unseparated, shares.shift, shares.is_unknown
    temperature = held_out.target_temperature()
    first_codes = (first[:, 0] + find_border(first, temperature, shares.mean)[0] > 0).astype(int)
    nearest = int(np.argmin(np.abs(np.array([source, *SHARES]) - shares.mean[1])))
    predicted = np.unpackbits(arrays["predicted"][nearest], count=n).astype(int)
    ratio = calibrate.expect_error_ratio(
        int(arrays["n_labelled"]), PSEUDO_WEIGHT * int(arrays["n_pseudo"][nearest])
    )
    expected = expect_error(first, temperature, shares, first_codes).scale(ratio)
    expected = expected.allow_doubts(shares, first_codes, held_out)
    if has_fallen_back:
        border = find_border(source_only, temperature, np.array([1 - source, source]))
        predicted = (source_only[:, 0] + border[0] > 0).astype(int)
        chance = max(expect_chance(predicted, each) for each in (held_out.class_shares, shares.mean))
        expected = ExpectedError(None, held_out.error, chance)
        shares = Shares(np.array([[1 - source, source]]), np.zeros(1), is_assumed=True)
    low, high = shares.interval()[1]
    error, share = float(np.mean(predicted[is_test] != truth)), float(truth.mean())
    return {
        "error": error,
        "f1": f1_score(truth, predicted[is_test], pos_label=int(share < 0.5)),
        "expected": expected.error,
        "off": None if expected.error is None else abs(expected.error - error),
        "not_known": expected.error is None,
        "fell_back": has_fallen_back,
        "holds": expected.low <= error <= expected.high,
        "confidently_wrong": error > expected.high + 0.05,
        "share_off": abs(shares.mean[1] - share),
        "share_holds": low - 0.005 <= share <= high + 0.005,
        "correlation": correlation,
        "unseparated": unseparated,
        "shift": shift,
    }


def judge_all() -> pd.DataFrame:
    """Judge all pairs; corpora of given shares are named with them."""
    rows = []
    for (corpus, source, target, share), arrays in read_tasks("pair"):
        name = corpus if share == "0" else f"{corpus}, {float(share):.0%} positive"
        rows.append({"corpus": name, "source": source, "target": target, **judge_task(arrays)})
    return pd.DataFrame(rows).sort_values(["corpus", "source", "target"], ignore_index=True)


def read_svms() -> pd.DataFrame:
    """Return the errors of both SVMs on every task of the records."""
    rows = [json.loads(line) for line in RECORDS.read_text(encoding="utf-8").splitlines()]
    names = {"pairs .10": "fdu-mtl, 10% positive", "pairs .50": "fdu-mtl, 50% positive"}
    names |= {"pairs .90": "fdu-mtl, 90% positive", "fdu-mtl .50": "fdu-mtl, 50% positive"}
    kept = [
        row for row in rows if row.get("method") in ("svm-tfidf", "svm-balanced") and "transfer_error" in row
    ]
    frame = pd.DataFrame(kept)
    frame["corpus"] = frame["variant"].replace(names)
    table = frame.pivot_table(["transfer_error", "f1"], ["corpus", "source", "target"], "method")
    table.columns = [name if what == "transfer_error" else f"f1 {name}" for what, name in table.columns]
    return table.reset_index()


def choose_spreads(left_out: str) -> tuple[float, float, float]:
    """Choose the narrowest intervals that hold the truth often enough in all corpora but one."""
    chosen = []
    for grid, column in (
        (list(product(SPREADS, RATIOS, [0.0])), "holds"),
        (list(product([0.15], [1.0], ODDS)), "share_holds"),
    ):
        for values in grid:
            frame = judge_with(*values)
            held = frame[(frame["corpus"] != left_out) & ~frame["fell_back"]].groupby("corpus")[column].mean()
            if held.min() >= WANTED or values == grid[-1]:
                chosen.append(values)
                break
    return chosen[0][0], chosen[0][1], chosen[1][2]


_judged: dict[tuple[float, float, float], pd.DataFrame] = {}


def judge_with(spread: float, ratio: float, odds: float) -> pd.DataFrame:
    """Judge all pairs with other constants of the intervals."""
    key = spread, ratio, odds
    if key not in _judged:
        changed = {"LOG_TEMPERATURE_SPREAD": spread, "BEST_ERROR_RATIO": ratio, "SHARE_SPREAD": odds}
        with patch.multiple(constants, **changed):
            _judged[key] = judge_all()
    return _judged[key]


def write_table(frame: pd.DataFrame) -> str:
    """Write a data frame as Markdown; numbers on the right."""
    heads = [*frame.columns]
    lines = [f"| {' | '.join(heads)} |", f"| --- |{' ---: |' * (len(heads) - 1)}"]
    lines += [f"| {' | '.join(map(str, row))} |" for row in frame.itertuples(index=False)]
    return "\n".join(lines)


def percent(values: pd.Series) -> str:
    """Write the mean of fractions in per cent; nothing without any."""
    values = values.dropna().astype(float)
    return f"{100 * values.mean():.1f}" if len(values) else ""


def summarise(frame: pd.DataFrame) -> pd.DataFrame:
    """Return one row for each corpus."""
    rows = []
    for corpus, part in frame.groupby("corpus"):
        best = part[["svm-tfidf", "svm-balanced"]].mean().min() if part["svm-tfidf"].notna().all() else None
        harm = part["error"] > part[["svm-tfidf", "svm-balanced"]].min(axis=1) + 0.02
        rows.append({
            "corpus": corpus,
            "tasks": len(part),
            "better SVM": "" if best is None else f"{100 * best:.1f}",
            "undrift": percent(part["error"]),
            "F1 of the rarer class, balanced SVM": percent(part["f1 svm-balanced"]),
            "F1, undrift": percent(part["f1"]),
            "worse than both SVMs by over 2 points": int(harm.sum()) if best is not None else "",
            "not known": int(part["not_known"].sum()),
            "expected, where known": percent(part["expected"]),
            "absolute error of it": percent(part["off"]),
            "interval holds the error, %": percent(part["holds"]),
            "error over 5 points above it": int(part["confidently_wrong"].sum()),
            "absolute error of the share": percent(part["share_off"]),
            "interval holds the share, %": percent(part["share_holds"]),
        })  # fmt: skip
    return pd.DataFrame(rows)


def leave_one_out(frame: pd.DataFrame) -> pd.DataFrame:
    """Return, for each corpus, the constants that the others choose, and the intervals that they give."""
    rows = []
    for corpus in dict.fromkeys(frame["corpus"]):
        values = choose_spreads(corpus)
        part = judge_with(*values)
        part = part[part["corpus"] == corpus]
        rows.append({
            "left out": corpus,
            "spread of the log temperature": values[0],
            "error ratio at the lower end": values[1],
            "spread of the log odds": values[2],
            "interval holds the error, %": percent(part["holds"]),
            "interval holds the share, %": percent(part["share_holds"]),
        })  # fmt: skip
    return pd.DataFrame(rows)


def judge_shifts() -> pd.DataFrame:
    """Return the error of each corpus by SHARE_SHIFT, and with the one that the other corpora choose."""
    errors = {}
    for shift in SHIFTS:
        with patch.multiple(constants, SHARE_SHIFT=shift):
            errors[shift] = judge_all().groupby("corpus")["error"].mean()
    table = pd.DataFrame(errors)
    rows = []
    for corpus, own in table.iterrows():
        chosen = table.drop(index=corpus).mean().idxmin()
        rows.append({
            "corpus": corpus,
            **{f"error with {shift:g}": f"{100 * own[shift]:.1f}" for shift in SHIFTS},
            "chosen on the others": f"{chosen:g}",
            "error with it": f"{100 * own[chosen]:.1f}",
        })  # fmt: skip
    return pd.DataFrame(rows)


def describe_limits(frame: pd.DataFrame) -> str:
    """Say how far pairs of other corpora than the tweets are from the limits of a fallback."""
    others = frame[frame["corpus"] != TWEETS]
    low, far = others[others["correlation"] < LEAST_CORRELATION], others[others["shift"] > SHIFTS[1]]
    tweets = frame[frame["corpus"] == TWEETS]
    found = [
        f"{len(low)} of their {len(others)} pairs have a correlation below {LEAST_CORRELATION}. "
        f"Their shares moved by at most {low['shift'].max():.2f} in log odds.",
        f"{len(far)} pairs have shares that moved by more than {SHIFTS[1]:g}. "
        f"Their correlations are at least {far['correlation'].min():.2f}.",
        f"{int(others['fell_back'].sum())} of the {len(others)} pairs falls back, since scores do not tell "
        "its classes apart.",
        f"All pairs of tweets have correlations of at most {tweets['correlation'].max():.2f}, and shares "
        f"that moved by at least {tweets['shift'].min():.2f}.",
    ]
    return "\n".join(f"* {says}" for says in found)


TAUGHT = {
    "teacher": "the encoder",
    "teacher-flipped": "its labels, a fifth exchanged at random",
    "teacher-right": "true labels, 2% exchanged at random",
    "teacher-few": "the encoder, for 1,500 rows alone",
}


def judge_teachers() -> pd.DataFrame:
    """Compare every kind of teacher with the student, the distilled student, and both together."""
    rows = []
    for kind, says in TAUGHT.items():
        errors = pd.DataFrame([
            {"share": float(share)} | {
                view: np.mean((scores[view] > 0) != (scores["truth"] == 1))
                for view in ("teacher", "student", "distilled", "both")
            }
            for (*_, share), scores in read_tasks(kind)
        ])  # fmt: skip
        for share, own in errors.groupby("share"):
            above = 100 * (own["both"] - own["teacher"])
            row = {
                "teacher": says,
                "positive rows": f"{share:.0%}" if share else "as they come",
                "tasks": len(own),
                **{f"{view}, %": percent(own[view]) for view in own.columns[1:]},
                "both below the teacher": f"{(above < 0).sum()} of {len(own)}",
                "above it by over 0.3": f"{(above > 0.3).sum()} of {len(own)}",
                "at most by": f"{above.max():+.1f}",
            }
            if kind == "teacher-few":  # it is silent on most rows
                row |= dict.fromkeys(["teacher, %", *list(row)[-3:]], "")
            rows.append(row)
    return pd.DataFrame(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, nargs="?", help="with the files of trust_scores.py")
    arguments = parser.parse_args()
    if arguments.folder:
        join_files(arguments.folder)
    frame = judge_all().merge(read_svms(), "left", ["corpus", "source", "target"])
    tables = {"corpora": summarise(frame), "left out": leave_one_out(frame), "shifts": judge_shifts()}
    tables["teachers"] = judge_teachers()
    written = {name: write_table(table) for name, table in tables.items()}
    spreads = constants.LOG_TEMPERATURE_SPREAD, constants.BEST_ERROR_RATIO, constants.SHARE_SPREAD
    text = f"""# Can the predictions and the expected error be trusted?

`python lab/scripts/trust.py` writes this page from stored scores. `undrift-lab pages` adds one table.
The tasks are pairs of domains, as a user has two files. The target's rows are at hand without labels
(transductive). Figures are in per cent.

**Scores and predictions were stored by version 3 of undrift. Shares and intervals are of version
{METHOD_VERSION}.** So errors differ a little from those of the
[records](tables.md#corpora-that-are-not-balanced-reviews), which are of one version. Quote the records.

## By corpus

{written["corpora"]}

*Not known* counts tasks whose expected error is given as bounds alone. The better SVM is the better of a
plain and a balanced tf-idf SVM, by the mean error of the corpus. The column of harm compares with both on
every task. It is empty where SVMs lack tasks.

## When it falls back

The source's scores do not tell the classes of the tweets (*{TWEETS}*) apart. The classifier of the source is
then used, with the source's class shares. A fallback needs two signs. Adapted and source-only scores
correlate by less than {LEAST_CORRELATION}. And shares moved by more than {constants.FAR_SHIFT:g} in log odds,
or scores do not tell the classes apart. On the other corpora:

{describe_limits(frame)}

So the limits of correlation and of moved shares can be found without the tweets. They were set with the
tweets in view all the same. No other corpus with changed words tests them.

## The scale of moved shares

`SHARE_SHIFT`, which is {constants.SHARE_SHIFT:g}, is the scale of the difference of log odds of other shares.
The last columns choose it by the mean error of the other corpora.

{written["shifts"]}

The others choose another value, which errs less on one corpus by 0.7 points and elsewhere the same.

## Intervals, with constants chosen on the other corpora

Rule: the narrowest intervals that hold the truth in {WANTED:.0%} of the tasks of every other corpus, else
the widest. The values of undrift are {spreads[0]:g}, {spreads[1]:g} and {spreads[2]:g}.
They were chosen with version 3. The rule now chooses other values, and no spread
of the log odds. So undrift's intervals of shares are wider than these corpora ask for.

{written["left out"]}

## Tweets with a few labels

Tweets of one event are the source of another. There are 800 random rows of each. The target has no label, or
30 random ones. The draws of a pair have other rows and other labels.

<!-- bench table: tweets -->
<!-- end -->

## A teacher

[An encoder, alone and as a teacher](tables.md#an-encoder-alone-and-as-a-teacher) has the records. This table
has other teachers, and distilled students, by version 5 of undrift. Each task is a pair of fdu-mtl. Errors
are of the test rows. The teacher labelled them too, but in the last row of the table. *Both* adds the scores
of teacher and student. With many wrong labels, or few positive rows, the student alone errs less.

{written["teachers"]}

Rows with 30 tasks have every third pair.
"""
    PAGE.write_text(text, encoding="utf-8")
    print(PAGE.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
