r"""Documents to words, and what words tell of two domains.

Tokenised text ("did n't", "``well''"), plain text ("didn't") and typographic text ("didn’t") give the
same words: runs of letters and digits of any script that ``\w`` knows, lower-cased, in the compatibility
form NFKC. A hyphen separates words, so that "page-turner" and "page turner" are one bigram.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator

FAR_APART = 0.5  # share of unseen words above which two vocabularies hardly overlap

# A decimal number, or letters and digits with apostrophes inside. Single characters are words too.
_WORDS = re.compile(r"\d+(?:[.,]\d+)+|[^\W_]+(?:'[^\W_]+)*")

# What people type for an apostrophe (U+0091 and U+0092 are Windows quotes read as latin-1), and what
# may stand inside a word without being seen (soft hyphen, zero-width marks).
_CHARACTERS = str.maketrans(dict.fromkeys("’‘ʼ＇´′\x91\x92", "'") | dict.fromkeys("\u00ad\u200b\u200d\ufeff"))
_QUOTES = re.compile("''+")
# Treebank tokenisers cut clitics off; the gap is closed unless an apostrophe follows, as in "the 's' key".
_CLITIC_GAP = re.compile(r"(?<=\w)\s+(?=(?:n't|'(?:s|m|d|re|ve|ll))(?![\w']))")
# ... and a few words in two.
_WORD_GAP = re.compile(r"\b(?:can\s+(?=not\b)|(?:gon|wan)\s+(?=na\b)|got\s+(?=ta\b))")


def normalise(document: str) -> str:
    """Put a document in lower case and NFKC, with whole contractions and no doubled quotes.

    Examples
    --------
    >>> normalise("It ca n't be") == normalise("It can’t be") == "it can't be"
    True
    """
    text = document
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text.translate(_CHARACTERS))
    text = text.lower().replace("i̇", "i").replace("`", "'")  # İ lower-cases to i and a combining dot
    if "'" in text:
        text = _CLITIC_GAP.sub("", _QUOTES.sub(" ", text))
    return _WORD_GAP.sub(lambda gap: gap.group().rstrip(), text)


def words(document: str) -> list[str]:
    """List the words of a document, in order.

    Examples
    --------
    >>> words("A 5.1 system; it was n't cheap")
    ['a', '5.1', 'system', 'it', "wasn't", 'cheap']
    """
    return _WORDS.findall(normalise(document))


def collect_words(documents: Iterable[str]) -> set[str]:
    """Return the words that occur in some documents; each is read once."""
    return {word for document in check_documents(documents) for word in words(document)}


def unseen_share(target: Iterable[str], source: Iterable[str] | set[str]) -> float:
    """Share of the target's words, each occurrence counted, that never occur in the source.

    Parameters
    ----------
    target : iterable of str
        Documents; each is read once.
    source : iterable of str, or set
        Documents; or, as a set, the words of them, as :func:`collect_words` returns them.

    Returns
    -------
    float
        In [0, 1]; NaN if the target has no words at all.
    """
    known = source if isinstance(source, set) else collect_words(source)
    n_words = n_unseen = 0
    for document in check_documents(target):
        occurring = words(document)
        n_words += len(occurring)
        n_unseen += sum(word not in known for word in occurring)
    return n_unseen / n_words if n_words else float("nan")


def check_documents(documents: Iterable[str]) -> Iterator[str]:
    """Iterate over documents; one that is not a string is refused when its turn comes."""
    if isinstance(documents, (str, bytes)) or not isinstance(documents, Iterable):
        raise ValueError(f"documents must be an iterable of strings; got one {type(documents).__name__}")
    if getattr(documents, "ndim", 1) != 1:
        raise ValueError("documents must be one column of strings; got a table: choose its text column")
    return _only_strings(documents)


def _only_strings(documents: Iterable[str]) -> Iterator[str]:
    for position, document in enumerate(documents):
        if not isinstance(document, str):
            raise ValueError(f"document {position} (counting from 0) is {_describe(document)}")
        yield document


def _describe(document: object) -> str:
    """Say what a document is that is not a string, and what to do."""
    if isinstance(document, (bytes, bytearray)):
        return "bytes, not a string: decode it first"
    if document is None or (isinstance(document, float) and document != document):
        return f"missing ({document!r}): give an empty string or leave it out"
    return f"{document!r} of type {type(document).__name__}, not a string"
