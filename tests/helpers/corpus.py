"""A small corpus that lies in the repository, so that tests on text run anywhere.

Its rows are messages of customers to four companies, generated from the phrases of `messages.json`. Hotel
and garage have two classes, complaint and praise. Bank and parcels have questions as well.
`python -m tests.helpers.corpus` writes the files again. Tests read the files, so their rows do not depend
on the random numbers of a version of Python.
"""

from __future__ import annotations

import csv
import json
import random
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent.parent / "data" / "corpus"
PHRASES = json.loads((FOLDER / "messages.json").read_text(encoding="utf-8"))
PAIRS = {"two classes": ("hotel", "garage"), "three classes": ("bank", "parcels")}


def read_domain(name: str) -> tuple[list[str], list[str]]:
    """Return the texts of a domain and their labels."""
    with open(FOLDER / f"{name}.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return [row["text"] for row in rows], [row["label"] for row in rows]


def write_domain(name: str) -> list[tuple[str, str]]:
    """Return 300 messages to a company, no two alike, and their labels."""
    rng, company = random.Random(f"messages to {name}"), PHRASES["companies"][name]
    labels = [label for label, n_rows in company["rows"].items() for _ in range(n_rows)]
    rng.shuffle(labels)
    rows: dict[str, str] = {}
    for label in labels:
        text = _write_message(rng, company, label)
        while text in rows:
            text = _write_message(rng, company, label)
        rows[text] = label
    return list(rows.items())


def _write_message(rng: random.Random, company: dict[str, Any], label: str) -> str:
    """Write one message: sentences of its class, facts, and at times a sentence of any class."""
    shared = PHRASES["shared"]
    sentences = rng.sample(company[label], rng.randint(1, 2))
    sentences += rng.sample(shared[label], rng.choice((0, 0, 1, 2)))
    sentences += rng.sample(company["facts"], rng.randint(0, 2))
    if rng.random() < 0.25:
        sentences.append(rng.choice(shared[rng.choice(sorted(company["rows"]))]))
    sentences = list(dict.fromkeys(sentences))
    rng.shuffle(sentences)
    return " ".join(sentences).format(thing=rng.choice(company["things"]), year=rng.randint(2009, 2024))


def main() -> None:
    """Write the files of all domains."""
    for name in PHRASES["companies"]:
        with open(FOLDER / f"{name}.csv", "w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([("text", "label"), *write_domain(name)])


if __name__ == "__main__":
    main()
