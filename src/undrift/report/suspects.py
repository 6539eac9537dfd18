"""Labels of the sources that look wrong: other labels contradict them."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass

import numpy as np

from ..inputs import on_cluster, spell_label
from ..results import find_suspects
from .data import ReportData

DOUBTED = 0.1  # probability of a label below which it is shown
MOST_SHOWN, SNIPPET = 20, 160  # such labels, and characters of each text


@dataclass(frozen=True)
class Suspect:
    """A labelled row of a source, and what models say that have not seen its label."""

    source: str
    row: int  # from 1
    label: str
    suggested: str
    probability: float  # of the suggested class
    own: float  # of the label
    text: str  # its beginning


@dataclass(frozen=True)
class Suspects:
    """How many labels of the sources look wrong, and the most doubtful ones."""

    n: int
    of: int
    rows: list[Suspect]


def list_suspects(given: ReportData) -> Suspects | None:
    """List the labels that look wrong; None where they came from elsewhere, or the rows are not here."""
    memory = given.classifier.memory_
    if memory is None or not memory.facts.has_source:
        return None
    found, n_labels = list[Suspect](), 0
    for source in given.sources:
        if source.documents is None or on_cluster(source.X) or len(source.documents) != len(source):
            return None
        places = np.flatnonzero(source.known)
        y, p = given.classifier.predict_held_out(source.X[places])
        n_labels += len(places)
        for i in find_suspects(y.tolist(), p, given.classes).tolist():
            row, label, best = int(places[i]), spell_label(y[i]), int(p[i].argmax())
            own = float(p[i, given.classes.index(label)])
            if own > DOUBTED:
                break
            text = textwrap.shorten(source.documents[row], SNIPPET, placeholder=" …")
            said = given.classes[best], float(p[i, best])
            found.append(Suspect(source.name, row + 1, label, *said, own, text))
    found.sort(key=lambda suspect: suspect.own)
    return Suspects(len(found), n_labels, found[:MOST_SHOWN])
