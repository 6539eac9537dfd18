"""The Multi-Domain Sentiment Dataset of 2007: reviews of 25 product types, almost in XML."""

from __future__ import annotations

import html
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.model_selection import train_test_split

from undrift.datasets import Corpus, Domain
from undrift.errors import warn

from .files import corpus_of, dataset_folder, numbered_lines, optional_file

# Labelled and unlabelled files of a domain, in the order in which they are looked for.
_FORMS = ((("all.review",), ()), (("positive.review", "negative.review"), ("unlabeled.review",)))
_FIELD = re.compile(r"<(rating|review_text)>(.*?)</\1>", re.DOTALL)
_ENTITY = re.compile(r"&#?\w+;")
_LABELS = {"negative.review": 0.0, "positive.review": 1.0}


@dataclass(frozen=True)
class _Review:
    text: str
    label: float  # 1 positive, 0 negative, NaN unknown


def load_multidomain_sentiment(
    folder: str | os.PathLike[str] | None = None,
    *,
    min_reviews: int = 1000,
    test_size: float = 0.2,
    random_state: int = 0,
) -> Corpus:
    """Load the public full set as texts (section 5: 20 domains, 380 tasks).

    Reads ``sorted_data/<domain>/all.review``, or ``{positive,negative,unlabeled}.review`` where a domain has
    no such file (``sorted_data_acl``), plain or ``.gz``. The files are not well-formed XML, so they are read
    by their tags alone: bare ``&``, stray latin-1 bytes, fields that occur twice (the first that is not empty
    counts) and records that are not closed are no obstacle. Records without a text or a rating are left out,
    with a warning that names the first one's file and line.

    The default folder is ``multidomain`` in the data folder. Domains with fewer than `min_reviews` are
    dropped. A share `test_size` of each domain's labelled reviews, drawn by classes, are test rows. `y` is 1
    where the rating is above 3, else 0 (the paper's rule); reviews of ``unlabeled.review`` are `unlabelled`
    rows even where their rating is known.
    """
    folder = _domains_folder(dataset_folder(folder, "multidomain"))
    domains, n_most = [], 0
    for path in sorted(path for path in folder.iterdir() if path.is_dir()):
        files = _domain_files(path)
        if files is None:
            continue
        labelled, unlabelled = ([review for file in part for review in _read_reviews(file)] for part in files)
        n_most = max(n_most, len(labelled) + len(unlabelled))
        if len(labelled) + len(unlabelled) >= min_reviews:
            domains.append(_domain(path, labelled, unlabelled, test_size, random_state))
    if not domains:
        raise ValueError(
            f"{folder} has no domain with {min_reviews} reviews or more (the largest has {n_most}); "
            "is it the folder of <domain>/all.review? min_reviews sets the bound"
        )
    return corpus_of("multidomain", domains)


def _domains_folder(folder: Path) -> Path:
    """`folder` itself, or the folder in it that the public archives unpack to."""
    inner = (folder / name for name in ("sorted_data", "sorted_data_acl"))
    return next((path for path in inner if path.is_dir()), folder)


def _domain_files(folder: Path) -> tuple[list[Path], list[Path]] | None:
    """Labelled and unlabelled files of a domain, or None for another kind of folder."""
    for form in _FORMS:
        labelled, unlabelled = ([p for name in part if (p := optional_file(folder, name))] for part in form)
        if len(labelled) == len(form[0]):
            return labelled, unlabelled
    return None


def _domain(
    path: Path, labelled: list[_Review], unlabelled: list[_Review], test_size: float, random_state: int
) -> Domain:
    name = path.name
    y = np.array([review.label for review in (*labelled, *unlabelled)])
    rows, rest = np.split(np.arange(len(y)), [len(labelled)])
    if len(np.unique(y[rows])) < 2:
        raise ValueError(
            f"{path}: its {len(rows)} labelled reviews are not of both classes; "
            "complete its files, or take its folder away."
        )
    try:
        train, test = train_test_split(rows, test_size=test_size, stratify=y[rows], random_state=random_state)
    except ValueError as error:  # too few reviews of a class, or a test_size that is no share
        raise ValueError(f"Domain {name!r} cannot be split with test_size={test_size}: {error}") from error
    return Domain(
        name,
        texts=[review.text for review in (*labelled, *unlabelled)],
        y=y if np.isnan(y).any() else y.astype(np.int64),
        train=np.sort(train),
        test=np.sort(test),
        unlabelled=rest,
    )


def _read_reviews(path: Path) -> list[_Review]:
    """Reviews of one file; those that cannot be read are reported once and left out."""
    name = path.name.removesuffix(".gz")
    reviews, faults, n_records = [], [], 0
    for line, record in _records(path):
        n_records += 1
        text, rating = _text_and_rating(record)
        label = _LABELS.get(name, np.nan) if rating is None else float(rating > 3)
        if not text or (np.isnan(label) and name != "unlabeled.review"):
            faults.append(line)
        else:
            reviews.append(_Review(text, label))
    if not n_records:
        raise ValueError(f"{path} has no <review> ... </review> records; is it in the public format?")
    if faults:
        message = (
            f"{path}, line {faults[0]}: record without a text or a rating; "
            f"{len(faults)} of {n_records} records left out."
        )
        warn(message)
    return reviews


def _records(path: Path) -> Iterator[tuple[int, str]]:
    """First line and text of each record; one that is not closed ends where the next begins."""
    start = 0
    lines: list[str] = []
    for number, line in numbered_lines(path):
        mark = line.strip()
        if mark == "<review>":
            if start:
                yield start, "\n".join(lines)
            start, lines = number, []
        elif mark == "</review>" and start:
            yield start, "\n".join(lines)
            start = 0
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
