"""Corpora of one file a domain, ``<domain>.jsonl``: an object with a text and a label a line.

Labels are 0 and 1 in some corpora, and names of classes in others.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from .corpus import Corpus, Domain
from .files import corpus_of, dataset_folder, find_file, make_line_error, numbered_lines, stems

Folder = str | os.PathLike[str] | None
TOPICS = ("comp", "rec", "talk")  # of newsgroups
HALVES = ("first", "second")  # of a topic's groups


def load_natural(folder: Folder = None) -> Corpus:
    """Load reviews of eight products, with classes as frequent as they were written.

    The default folder is ``natural`` in the data folder. Labelled rows are both the train and the test part;
    `y` is 0, 1 or NaN.
    """
    return _load("natural", folder)


def load_crisis(folder: Folder = None) -> Corpus:
    """Load tweets of three disasters; label 1 is a tweet about the disaster. Otherwise as `load_natural`."""
    return _load("crisis", folder)


def load_debt(folder: Folder = None) -> Corpus:
    """Load comments of five programs; label 1 admits technical debt. Otherwise as `load_natural`."""
    return _load("debt", folder)


def load_amazon_20(folder: Folder = None) -> Corpus:
    """Load reviews of twenty products, the paper's large experiment. Otherwise as `load_natural`."""
    return _load("amazon-20", folder)


def load_named(name: str, folder: Folder = None) -> Corpus:
    """Load a corpus whose labels are names of classes, the same in every domain; null is an unlabelled row.

    The default folder is `name` in the data folder. `y` has the numbers of the classes in `classes`, which
    are those of all domains, sorted. Labelled rows are both the train and the test part.
    """
    path = dataset_folder(folder, name)
    rows = {stem: _read(path, stem, "label", _is_name) for stem in stems(path, ".jsonl")}
    classes = sorted({row["label"] for own in rows.values() for row in own} - {None})
    if len(classes) < 2:
        raise ValueError(f"{path}: labels are {', '.join(classes) or 'all null'}; two classes are needed.")
    code = {None: np.nan} | {label: float(i) for i, label in enumerate(classes)}
    domains = [
        _make_domain(stem, [row["text"] for row in own], np.array([code[row["label"]] for row in own]))
        for stem, own in rows.items()
    ]
    return replace(corpus_of(name, domains), classes=classes)


def load_newsgroups(folder: Folder = None) -> Corpus:
    """Load posts of two topics at a time: ``comp-rec-first`` has the posts of half of their groups.

    The second topic is label 1. Tasks go from one half of two topics to the other half; other pairs of
    domains share posts. The files are such as ``comp-first.jsonl``. Otherwise as `load_natural`.
    """
    path = dataset_folder(folder, "newsgroups")
    names = [f"{topic}-{half}" for topic in TOPICS for half in HALVES]
    posts = {name: [row["text"] for row in _read(path, name, "group", _is_name)] for name in names}
    domains = []
    for topics in combinations(TOPICS, 2):
        for half in HALVES:
            parts = [posts[f"{topic}-{half}"] for topic in topics]
            y = np.repeat([0, 1], [len(part) for part in parts])
            domains.append(_make_domain(f"{'-'.join(topics)}-{half}", [*parts[0], *parts[1]], y))
    return corpus_of("newsgroups", domains)


def _load(name: str, folder: Folder) -> Corpus:
    path, domains = dataset_folder(folder, name), []
    for stem in stems(path, ".jsonl"):
        rows = _read(path, stem, "label", _is_binary)
        y = np.array([np.nan if row["label"] is None else row["label"] for row in rows])
        domains.append(_make_domain(stem, [row["text"] for row in rows], y))
    return corpus_of(name, domains)


def _make_domain(name: str, texts: list[str], y: np.ndarray) -> Domain:
    """Return a domain whose labelled rows train and test."""
    is_unknown = np.isnan(y)
    labelled, unlabelled = np.flatnonzero(~is_unknown), np.flatnonzero(is_unknown)
    if not len(unlabelled):
        y = y.astype(np.int64)
    return Domain(name, texts=texts, y=y, train=labelled, test=labelled, unlabelled=unlabelled)


def _is_binary(label: Any) -> bool:
    return label is None or (type(label) is int and label in (0, 1))


def _is_name(label: Any) -> bool:
    return label is None or (isinstance(label, str) and label != "")


def _read(folder: Path, stem: str, key: str, is_valid: Callable[[Any], bool]) -> list[dict[str, Any]]:
    """Read the objects of a file, one a line; each has a text, and a `key`: "label" or "group"."""
    path, rows = find_file(folder, f"{stem}.jsonl"), []
    for number, line in numbered_lines(path):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            raise make_line_error(path, number, f"not JSON ({error}).") from None
        is_row = isinstance(row, dict) and isinstance(row.get("text"), str) and key in row
        if not is_row or not is_valid(row[key]):
            raise make_line_error(path, number, f"expected a text and a {key}, got {line[:60]!r}.")
        rows.append(row)
    if not rows:
        raise ValueError(f"{path} has no lines.")
    return rows
