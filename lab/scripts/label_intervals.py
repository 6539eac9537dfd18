"""Do intervals of the measured error hold, of rows drawn as `undrift label` draws them, and of random rows?

    undrift-lab run kinds --methods undrift --scores scores.npz --results kinds.jsonl
    python lab/scripts/label_intervals.py scores.npz

A session is simulated on stored probabilities of the readings: five questions, then rows drawn with known
probabilities, learnt every five labels. Learning is the weighing of the readings. The error before any label
is compared with its true value on all rows; so are the error after, each row predicted without its fold's
labels, and their difference. Intervals are of 95%. Families of corpora count alike.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from undrift.method import N_QUESTIONS, find_doubts, list_chances, weigh_draws
from undrift.method.asking import choose_questions
from undrift.method.jury import mix, weigh
from undrift.method.settings import VoteSettings
from undrift.results import Comparison

DOUBT = VoteSettings().doubt
N_LABELS = (10, 30, 100)  # drawn ones
EVERY, N_FOLDS = 5, 5
LEAST_ROWS = 200


def read_tasks(path: Path) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Yield tasks with their readings' probabilities, (n_readings, n_rows, n_classes), and true codes."""
    stored = np.load(path)
    tasks = dict.fromkeys(name.rpartition("|")[0] for name in stored.files)
    for task in tasks:
        logs = [stored[name] for name in stored.files if name.startswith(f"{task}|reading ")]
        p = np.exp(np.array(logs, dtype=float))
        classes, y = stored[f"{task}|classes"], stored[f"{task}|y"]
        codes = np.searchsorted(classes, y) if classes.dtype.kind in "if" else y
        if len(y) >= LEAST_ROWS and len(logs) > 1:
            yield task, p / p.sum(axis=2, keepdims=True), codes


class Session:
    """A simulated session on the rows of a task."""

    def __init__(self, p: np.ndarray, y: np.ndarray, *, is_random: bool, seed: int) -> None:
        self.p, self.y, self.votes = p, y, np.full(len(p), 1 / len(p))
        self.rng, self.is_random = np.random.RandomState(seed), is_random
        asked = [] if is_random else choose_questions(self.votes, p, DOUBT, N_QUESTIONS, self.rng).tolist()
        self.questions: list[int] = asked
        self.drawn: list[int] = []
        self.weights: list[float] = []

    def predict(self, labelled: list[int]) -> tuple[np.ndarray, np.ndarray]:
        """Return probabilities of all rows, and their classes, by the votes after these labels."""
        given = self.p[:, labelled, self.y[labelled]]
        mixed = mix(weigh(self.votes, given, self.p.shape[2], DOUBT), self.p)
        return mixed, mixed.argmax(axis=1)

    def draw(self, n: int) -> None:
        """Draw rows until there are n."""
        while len(self.drawn) < n:
            mixed, codes = self.predict([*self.questions, *self.drawn])
            doubts = find_doubts(mixed, codes)
            for _ in range(min(EVERY, n - len(self.drawn))):
                free = np.setdiff1d(np.arange(len(self.y)), [*self.questions, *self.drawn])
                chances = list_chances(doubts[free], np.ones(len(free)))
                if self.is_random:
                    chances = np.full(len(free), 1 / len(free))
                place = self.rng.choice(len(free), p=chances)
                self.drawn.append(int(free[place]))
                self.weights.append(1 / (chances[place] * len(free)))

    def measure(self) -> dict[str, tuple[dict[str, float], float]]:
        """Return what the session says, and what is true."""
        rows = np.array(self.drawn)
        n_left = len(self.y) - len(self.questions) - len(rows)
        weight = weigh_draws(np.array(self.weights), n_left)
        first, last = self.predict([])[1], self.predict([*self.questions, *self.drawn])[1]
        after, fold = np.empty(len(rows), dtype=int), np.arange(len(rows)) % N_FOLDS
        for k in range(N_FOLDS):
            rest = [*self.questions, *rows[fold != k].tolist()]
            after[fold == k] = self.predict(rest)[1][rows[fold == k]]
        before, learnt = first[rows] != self.y[rows], after != self.y[rows]
        true = float(np.mean(first != self.y)), float(np.mean(last != self.y))
        compared = Comparison.count(before, learnt, weight)
        gain = compared.gain
        return {
            "before": (compared.before.to_dict(), true[0]),
            "after": (compared.after.to_dict(), true[1]),
            "difference": ({"error": gain.gain, "low": gain.low, "high": gain.high}, true[0] - true[1]),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("scores", type=Path, nargs="+")
    parser.add_argument("--repeats", type=int, default=5)
    args, rows = parser.parse_args(), []
    for path in args.scores:
        for task, p, y in read_tasks(path):
            for seed in range(args.repeats):
                for is_random in (False, True):
                    session = Session(p, y, is_random=is_random, seed=seed)
                    for n in N_LABELS:
                        session.draw(n)
                        for what, (said, true) in session.measure().items():
                            rows.append(
                                {
                                    "family": task.split("|")[0].split(" ")[0],
                                    "rows": "random" if is_random else "drawn",
                                    "labels": n,
                                    "what": what,
                                    "holds": said["low"] - 1e-9 <= true <= said["high"] + 1e-9,
                                    "width": said["high"] - said["low"],
                                    "bias": said["error"] - true,
                                    "square": (said["error"] - true) ** 2,
                                }
                            )
    frame = pd.DataFrame(rows)
    by_family = frame.groupby(["what", "labels", "rows", "family"]).mean(numeric_only=True)
    table = by_family.groupby(["what", "labels", "rows"]).mean()
    table["worst family holds"] = by_family["holds"].groupby(["what", "labels", "rows"]).min()
    table["root of square"] = np.sqrt(table.pop("square"))
    print(f"{frame['family'].nunique()} families")
    print(table.round(3).to_string())


if __name__ == "__main__":
    main()
