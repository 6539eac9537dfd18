"""Raw reviews of many domains, in the FDU-MTL format (Liu, Qiu and Huang 2017)."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from .corpus import Corpus, Domain
from .files import corpus_of, dataset_folder, find_file, make_line_error, numbered_lines, optional_file, stems

_Document = tuple[float, str]  # label (NaN where unknown), text


def load_fdu_mtl(folder: str | os.PathLike[str] | None = None) -> Corpus:
    """Load reviews of sixteen domains as texts (Liu, Qiu and Huang 2017).

    Reads ``<domain>.task.train`` and ``<domain>.task.test``, whose lines are ``label<TAB>text`` with label 0
    or 1, and ``<domain>.task.unlabel``, whose lines are text alone (all plain or ``.gz``). The default folder
    is ``fdu-mtl`` in the data folder. The train and test parts are tokenised ("did n't"), the unlabelled part
    is not, so a tokeniser must make them meet. `y` is NaN for unlabelled rows. Blank lines are left out.
    """
    folder = dataset_folder(folder, "fdu-mtl")
    return corpus_of("fdu-mtl", [_domain(folder, name) for name in stems(folder, ".task.train")])


def _domain(folder: Path, name: str) -> Domain:
    train = _read_labelled(find_file(folder, f"{name}.task.train"))
    test = _read_labelled(find_file(folder, f"{name}.task.test"))
    unlabelled = _read_unlabelled(optional_file(folder, f"{name}.task.unlabel"))
    documents = [*train, *test, *unlabelled]
    y = np.array([label for label, _ in documents])
    bounds = [len(train), len(train) + len(test)]
    parts = np.split(np.arange(len(documents)), bounds)
    return Domain(
        name,
        texts=[text for _, text in documents],
        y=y if unlabelled else y.astype(np.int64),
        train=parts[0],
        test=parts[1],
        unlabelled=parts[2],
    )


def _read_labelled(path: Path) -> list[_Document]:
    documents = []
    for number, line in numbered_lines(path):
        if not line.strip():
            continue
        label, tab, text = line.partition("\t")
        if not tab or label not in ("0", "1"):
            raise make_line_error(path, number, f"expected '0<TAB>text' or '1<TAB>text', got {line[:40]!r}.")
        documents.append((float(label), text))
    if not documents:
        raise ValueError(f"{path} has no lines.")
    return documents


def _read_unlabelled(path: Path | None) -> list[_Document]:
    if path is None:
        return []
    return [(np.nan, text) for _, text in numbered_lines(path) if text.strip()]
