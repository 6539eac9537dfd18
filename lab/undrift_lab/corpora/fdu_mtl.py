"""Raw reviews of many domains, in the FDU-MTL format (Liu, Qiu and Huang 2017)."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from undrift.datasets import Corpus, Domain

from .files import corpus_of, dataset_folder, find_file, make_line_error, numbered_lines, optional_file, stems

_Document = tuple[float, str]  # label (NaN where unknown), text


def load_fdu_mtl(folder: str | os.PathLike[str] | None = None) -> Corpus:
    r"""Load reviews as texts, with a train, a test and an unlabelled part in every domain.

    Reads ``<domain>.task.train`` and ``<domain>.task.test``, whose lines are ``label<TAB>text`` with
    label 0 or 1, and ``<domain>.task.unlabel``, whose lines are text alone (all plain or ``.gz``).

    Parameters
    ----------
    folder : path, optional
        Default: ``fdu-mtl`` in the folder named by the environment variable ``UNDRIFT_DATA``, or, where
        that is not set, where `fetch` puts it.

    Returns
    -------
    Corpus
        Domains hold `texts` as they are in the files: the train and test parts are tokenised ("did
        n't"), the unlabelled part is not, so a tokeniser must make them meet. `y` is 0 or 1, NaN for
        unlabelled rows. Blank lines are left out.

    See Also
    --------
    undrift_lab.corpora.fetch : Download ten domains.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from undrift_lab.corpora import load_fdu_mtl
    >>> with TemporaryDirectory() as folder:
    ...     for domain in ("books", "dvd"):
    ...         for part in ("train", "test"):
    ...             text = "1\tgripping\n0\tdull\n"
    ...             _ = Path(folder, f"{domain}.task.{part}").write_text(text)
    ...     corpus = load_fdu_mtl(folder)
    >>> corpus.domains["books"].texts, corpus.domains["books"].y.tolist()
    (['gripping', 'dull', 'gripping', 'dull'], [1, 0, 1, 0])
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
