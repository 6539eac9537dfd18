"""The classes that labels in files stand for: joined, spelt alike, checked, and matched to class shares."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from itertools import combinations
from pathlib import Path
from typing import Any, Literal

import numpy as np

from ..errors import UndriftError, count, warn
from ..inputs import spell_label
from ..method import check_shares
from ..results import Label
from .domains import JobDomain, name_domains
from .job import AdaptJob
from .tables import TableError

WHOLE_NUMBER = re.compile(r"0|-?[1-9]\d{0,17}")  # that fits 64 bits
RARE_CLASS = 0.05  # share of another class's labels below which a similar name may be a typo
LEAST_LABELLED = 20  # rows below which a fit is refused
NO_NAMES = ("n/a", "n.a.", "na", "null", "none", "-", "--", "?", "missing", "unknown")  # of a class


def merge_labels(
    domains: Sequence[JobDomain], columns: Collection[str | None], merges: Mapping[str, str]
) -> tuple[list[JobDomain], list[str]]:
    """Return domains with the labels in some columns joined into classes, and a note on these.

    Refuses labels to join that no row has.
    """
    if not merges:
        return list(domains), []
    found: set[str] = set()

    def merge(labels: Iterable[Any]) -> list[Any]:
        spelt = [None if label is None else spell_label(label) for label in labels]
        found.update(filter(None, spelt))
        return [merges.get(text, label) if text else label for text, label in zip(spelt, labels, strict=True)]

    merged = [
        replace(
            domain,
            labels=None if domain.labels is None else merge(domain.labels),
            cells={name: merge(each) if name in columns else each for name, each in domain.cells.items()},
        )
        for domain in domains
    ]
    unknown = [label for label in merges if label not in found]
    if unknown:
        listed = ", ".join(sorted(found)[:10])
        raise UndriftError(f"--merge: no row has the label {unknown[0]!r}; the labels are {listed}")
    names = dict.fromkeys(merges.values())
    joined = (f"{', '.join(label for label in merges if merges[label] == name)} = {name}" for name in names)
    return merged, [f"labels joined: {'; '.join(joined)}"]


def spell_alike(labels: Sequence[Any]) -> tuple[list[Any], dict[Any, Any], list[str]]:
    """Return labels in one spelling: all whole numbers, or all text; None stays.

    Whole numbers of a text file are numbers too, and 1.0 becomes 1. Where numbers and text are mixed, all
    become text. Of texts that differ in case or spaces alone, all get the most frequent spelling: these are
    returned as well, by those that they replace, and noted.
    """
    if {type(label) for label in labels if label is not None} == {bool}:
        return list(labels), {}, []
    spelt = [None if label is None else spell_label(label) for label in labels]
    if all(text is None or WHOLE_NUMBER.fullmatch(text) for text in spelt):
        return [None if text is None else int(text) for text in spelt], {}, []
    counts = Counter(filter(None, spelt))
    spellings: dict[str, list[str]] = {}
    for label, _ in counts.most_common():
        spellings.setdefault(" ".join(label.split()).casefold(), []).append(label)
    several = [names for names in spellings.values() if len(names) > 1]
    shown = "; ".join(", ".join(f"{name!r} ({counts[name]:,})" for name in names) for names in several[:3])
    notes = [f"labels that differ in case or spaces alone count as one: {shown}"] if several else []
    rewritten = {name: names[0] for names in several for name in names}
    return [text and rewritten.get(text, text) for text in spelt], rewritten, notes


def list_classes(labels: Iterable[Label | None]) -> list[Label]:
    """Return the classes among labels of one spelling, in order."""

    def place(label: Label) -> tuple[float, str]:
        return (0.0, label) if isinstance(label, str) else (label, "")

    return sorted({label for label in labels if label is not None}, key=place)


def warn_of_similar(counts: Counter[Any]) -> None:
    """Warn of two classes that look like two spellings of one: a name and its beginning, or a rare typo.

    A beginning is as in neg and negative, or in 5 and 5 stars. A typo has nearly the letters of a frequent
    name; other digits make another name.
    """
    names = sorted(label for label, _ in counts.most_common(50) if isinstance(label, str))
    pairs = []
    for first, second in combinations(names, 2):
        is_short = len(first) >= 3 and first[-1].isalpha() and second.casefold().startswith(first.casefold())
        is_beginning = is_short or (first.isdigit() and second.startswith(f"{first} "))
        few, many = sorted((counts[first], counts[second]))
        digits = [[letter for letter in name if letter.isdigit()] for name in (first, second)]
        is_rare = few < RARE_CLASS * many and digits[0] == digits[1]
        if is_beginning or (is_rare and SequenceMatcher(None, first, second).ratio() > 0.85):
            pairs.append(f"{first!r} ({counts[first]:,}) and {second!r} ({counts[second]:,})")
    if pairs:
        shown = "; ".join(pairs[:3])
        warn(f"labels that look alike count as two classes: {shown}. If they are one class, spell them alike")


def check_labels(
    files: Sequence[Path], column: str, labels: Sequence[Any]
) -> tuple[list[Any], dict[Any, Any], list[str]]:
    """Return what `spell_alike` does; refuse labels that make no classes, or are too few to learn from."""
    labels, rewritten, notes = spell_alike(labels)
    counts = Counter(label for label in labels if label is not None)
    n_labels, fault = counts.total(), None
    if len(counts) < 2:
        what = f"the label {next(iter(counts))!r} alone" if counts else "no label"
        fault = f"has {what}; at least two classes are needed"
    elif len(counts) > max(50, n_labels / 2):
        fault = f"has {len(counts):,} different labels in {n_labels:,} rows; is it the column of labels?"
    elif n_labels < LEAST_LABELLED:
        fault = f"has {count(n_labels, 'label')}; at least {LEAST_LABELLED} are needed: label more rows"
    if fault:
        raise TableError(f"{', '.join(map(str, files))}: column {column!r} {fault}")
    warn_of_similar(counts)
    for name in [label for label in counts if str(label).casefold() in NO_NAMES]:
        what = f"column {column!r}: the label {name!r} ({count(counts[name], 'row')}) counts as a class"
        warn(f"{what}: if these rows have no label, leave their cells empty")
    return labels, rewritten, notes


def match_shares(job: AdaptJob, classes: Sequence[Any]) -> dict[str, dict[Any, float]] | Literal["source"]:
    """Return the class shares that the job is given, by target and class: 1, 1.0 and "1" are the same class.

    Refuses shares that do not sum to one, are negative, or name other classes.
    """
    if job.target_shares == "source":
        return "source"
    names = {spell_label(label): label for label in classes} | {str(label): label for label in classes}
    matched = []
    for given in job.target_shares:
        labels = [names.get(str(name), names.get(spell_label(name), name)) for name in given]
        matched.append(dict(zip(labels, given.values(), strict=True)))
    matched *= len(job.targets) if len(matched) == 1 else 1
    shares = dict(zip(name_domains(job.targets), matched, strict=True))
    try:
        check_shares(shares, np.array(classes, dtype=object), list(shares))
    except ValueError as error:
        raise TableError(f"--{str(error).replace('_', '-', 1)}") from None
    return shares
