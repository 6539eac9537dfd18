"""The Multi-Domain Sentiment Dataset of 2007: reviews of 25 product types, almost in XML."""

from __future__ import annotations

import html
import os
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from sklearn.model_selection import train_test_split

from undrift.errors import warn

from .corpus import Corpus, Domain
from .files import corpus_of, dataset_folder, numbered_lines, optional_file

_FIELD = re.compile(r"<(rating|review_text)>(.*?)</\1>", re.DOTALL)
_ENTITY = re.compile(r"&#?\w+;")
_Review = tuple[str, int]  # text; 1 positive, 0 negative


def load_multidomain_sentiment(
    folder: str | os.PathLike[str] | None = None,
    *,
    min_reviews: int = 1000,
    test_size: float = 0.2,
    random_state: int = 0,
) -> Corpus:
    """Load the public full set as texts (section 5: 20 domains, 380 tasks).

    Reads ``sorted_data/<domain>/all.review``, plain or ``.gz``. The files are not well-formed XML, so they
    are read by their tags alone: bare ``&``, stray latin-1 bytes, fields that occur twice (the first that is
    not empty counts) and records that are not closed are no obstacle. Records without a text or a rating are
    left out, with a warning that names the first one's file and line.

    The default folder is ``multidomain`` in the data folder. Domains with fewer than `min_reviews` are
    dropped. A share `test_size` of each domain's reviews, drawn by classes, are test rows. `y` is 1 where the
    rating is above 3, else 0 (the paper's rule).
    """
    folder = dataset_folder(folder, "multidomain")
    folder = folder / "sorted_data" if (folder / "sorted_data").is_dir() else folder
    files = [optional_file(path, "all.review") for path in sorted(folder.iterdir()) if path.is_dir()]
    reviews = {file.parent.name: _read_reviews(file) for file in files if file is not None}
    n_most = max(map(len, reviews.values()), default=0)
    if n_most < min_reviews:
        raise ValueError(
            f"{folder} has no domain with {min_reviews} reviews or more (the largest has {n_most}); "
            "is it the folder of <domain>/all.review? min_reviews sets the bound"
        )
    kept = {name: own for name, own in reviews.items() if len(own) >= min_reviews}
    domains = [_make_domain(name, own, test_size, random_state) for name, own in kept.items()]
    return corpus_of("multidomain", domains)


def _make_domain(name: str, reviews: list[_Review], test_size: float, random_state: int) -> Domain:
    y = np.array([label for _, label in reviews])
    split = {"test_size": test_size, "stratify": y, "random_state": random_state}
    try:
        train, test = train_test_split(np.arange(len(y)), **split)
    except ValueError as error:  # too few reviews of a class, or a test_size that is no share
        raise ValueError(f"Domain {name!r} cannot be split with test_size={test_size}: {error}") from error
    return Domain(name, texts=[text for text, _ in reviews], y=y, train=np.sort(train), test=np.sort(test))


def _read_reviews(path: Path) -> list[_Review]:
    """Reviews of one file; those that cannot be read are reported once and left out."""
    reviews, faults, n_records = [], [], 0
    for line, record in _records(path):
        n_records += 1
        text, rating = _text_and_rating(record)
        if text and rating is not None:
            reviews.append((text, int(rating > 3)))
        else:
            faults.append(line)
    if not n_records:
        raise ValueError(f"{path} has no <review> ... </review> records; is it in the public format?")
    if faults:
        left_out = f"{len(faults)} of {n_records} records left out."
        warn(f"{path}, line {faults[0]}: record without a text or a rating; {left_out}")
    return reviews


def _records(path: Path) -> Iterator[tuple[int, str]]:
    """First line and text of each record; one that is not closed ends where the next begins."""
    start = 0
    lines: list[str] = []
    for number, line in numbered_lines(path):
        mark = line.strip()
        if mark in ("<review>", "</review>"):
            if start:
                yield start, "\n".join(lines)
            start, lines = number if mark == "<review>" else 0, []
        elif start:
            lines.append(line)
    if start:
        yield start, "\n".join(lines)


def _text_and_rating(record: str) -> tuple[str, float | None]:
    """Text (perhaps empty) and rating (None if there is no number) of a record."""
    fields: dict[str, str] = {}
    for tag, value in _FIELD.findall(record):
        fields[tag] = fields.get(tag) or value.strip()
    # Bare ampersands are common, so only what ends in a semicolon is an entity.
    text = _ENTITY.sub(lambda entity: html.unescape(entity[0]), fields.get("review_text", ""))
    try:
        rating = float(fields.get("rating", ""))
    except ValueError:
        return text, None
    return text, rating if 0 <= rating <= 5 else None
