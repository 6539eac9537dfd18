"""Files of made-up reviews, for tests of jobs and commands."""

import csv
from pathlib import Path

from undrift import MSDAClassifier, TextAdapter
from undrift.app.tables import open_table, write_table
from undrift.datasets import make_reviews


def make_review_texts(
    n: int, unlabelled_share: float, seed: int, style: str = "clear"
) -> dict[str, tuple[list[str], list[str]]]:
    """Texts and labels (empty where there is none) of every domain."""
    corpus = make_reviews(n, unlabelled_share=unlabelled_share, style=style, random_state=seed)
    names = ["negative", "positive"]
    return {
        name: (list(domain.texts), ["" if y != y else names[int(y)] for y in domain.y])
        for name, domain in corpus.domains.items()
    }


def build_adapter(**options) -> TextAdapter:
    """Return a small adapter of two layers, not fitted."""
    settings = {"C": 0.3, "self_training": False, "random_state": 0, **options}
    return TextAdapter(150, classifier=MSDAClassifier(2, 0.7, **settings))


def write_csv(path: Path, columns: dict) -> Path:
    """Write columns by name; returns the path."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        out = csv.writer(file)
        out.writerow(columns)
        out.writerows(zip(*columns.values(), strict=True))
    return path


def read_csv(path: Path | str) -> list[dict[str, str]]:
    """Read the rows of a CSV file."""
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def convert_table(path: Path, other: Path) -> Path:
    """Write the same table in another format."""
    table = open_table(path)
    with write_table(other, table.kinds) as write:
        for frame in table:
            write(frame)
    return other
