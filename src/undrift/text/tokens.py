r"""Cut documents into tokens, and compare the words of two domains.

*Words* follow Unicode's rules: a mark belongs to its letter, as vowel signs do in Hindi, and an emoji is a
word. In a script written without spaces (Chinese, Japanese, Thai, Lao, Khmer, Burmese) every character is a
word, so that bigrams are pairs of characters. Tokenised text ("did n't", "``well''"), plain text ("didn't")
and typographic text ("didn’t") give the same words: lower-cased, in the compatibility form NFKC, no HTML. A
hyphen separates words, so that "page-turner" and "page turner" are one bigram.

*Characters* are the character n-grams of each run of such characters, for text in which words hardly repeat.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import chain, islice, pairwise

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer

from ..inputs import is_missing

TOKENS = ("auto", "words", "characters")
FAR_APART = 0.5  # share of unseen words above which two vocabularies hardly overlap
CHARACTER_NGRAMS = (2, 4)
SAMPLE_DOCUMENTS = 1000  # that tokens are chosen from, at most
_SAMPLE_CHARACTERS = 1000  # of each of them
_MANY_SPACELESS = 0.5  # share of letters in scripts without spaces, from which on characters are chosen
_MANY_SINGLE = 0.4  # share of words that occur in one document only, from which on characters are chosen ...
_FEW_DOCUMENTS = 200  # ... unless there are fewer documents, in which words of any language are rare

# Letters of Han with its radicals, kana, Thai and Lao, Burmese, Khmer: scripts without spaces.
_SPACELESS = (
    "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff\u0e01-\u0e30\u0e32\u0e33\u0e40-\u0e46"
    "\u0e81-\u0eb0\u0eb2\u0eb3\u0ebd-\u0ec6\u0edc-\u0edf\u1000-\u102a\u103f\u1050-\u1055\u1780-\u17b3"
)
# Marks of all living scripts; re has no name for them.
_MARKS = "".join(
    character
    for character in map(chr, chain(range(0x300, 0x3100), range(0xA660, 0xAC00), range(0xFE20, 0xFE30)))
    if unicodedata.category(character).startswith("M")
)
_EMOJI = "\u2600-\u27bf\u2b50\u2b55\U0001f000-\U0001f1e5\U0001f200-\U0001f3fa\U0001f400-\U0001faff"
_FLAG = "[\U0001f1e6-\U0001f1ff]{2}"
_RUN = rf"[^\W_{_SPACELESS}]+(?:[{_MARKS}]+[^\W_{_SPACELESS}]*)*"

# A decimal number; letters and digits with apostrophes inside; a character of a script without spaces; an
# emoji. Single characters are words too.
WORD_PATTERN = rf"\d+(?:[.,]\d+)+|{_RUN}(?:'{_RUN})*|[{_SPACELESS}][{_MARKS}]*|{_FLAG}|[{_EMOJI}]"
# separators of runs of characters
NO_WORD = re.compile(rf"(?:[^\w{_MARKS}{_EMOJI}\U0001f1e6-\U0001f1ff]|_)+")
_WORDS = re.compile(WORD_PATTERN)
_PLAIN_WORDS = re.compile(r"\d+(?:[.,]\d+)+|[^\W_]+(?:'[^\W_]+)*")  # of text without other letters

_TAG_NAMES = (
    "a abbr address article aside audio b big blockquote body br button center cite code dd div dl dt em "
    "figcaption figure font footer form h[1-6] head header hr html i iframe img input ins label li link main "
    "meta nav ol option p param pre q s section select small source span strike strong sub sup table tbody "
    "td textarea tfoot th thead title tr tt u ul video wbr"
).replace(" ", "|")
_ATTRIBUTE = r"\s+[\w:-]+\s*=\s*(?:\"[^\"]*\"|'[^']*'|[^\s\"'<>]+)"
_TAGS = re.compile(
    r"<!--.*?(?:-->|\Z)|<!doctype\b[^>]*>|<(script|style)\b[^>]*>.*?(?:</\1\s*>|\Z)"
    rf"|</?(?:{_TAG_NAMES})(?:{_ATTRIBUTE})*\s*/?>",
    re.IGNORECASE | re.DOTALL,
)
# Characters typed for an apostrophe (U+0091 and U+0092 are Windows quotes read as latin-1), and characters
# inside a word that nobody sees: soft hyphen, zero-width and direction marks, Arabic stretching, the
# style of an emoji.
_CHARACTERS = str.maketrans(
    dict.fromkeys("’‘ʼ＇´′\x91\x92", "'")
    | dict.fromkeys(
        map(chr, [0xAD, 0x640, *range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x206A)])
    )
    | dict.fromkeys("\ufe0e\ufe0f\ufeff")
)
_QUOTES = re.compile("''+")
# Treebank tokenisers cut clitics off; the gap is closed unless an apostrophe follows, as in "the 's' key".
_CLITIC_GAP = re.compile(r"(?<=\w)\s+(?=(?:n't|'(?:s|m|d|re|ve|ll))(?![\w']))")
# ... and a few words in two. The letters come first, which is three times as fast as the boundary of a word.
_WORD_GAP = re.compile(
    r"([cgw](?:an|on|ot))(?:(?<=\bcan)(?=\s+not\b)|(?:(?<=\bgon)|(?<=\bwan))(?=\s+na\b)|(?<=\bgot)(?=\s+ta\b))"
    r"\s+"
)


def normalise(document: str) -> str:
    """Put a document in lower case and NFKC, without HTML, with whole contractions and no doubled quotes."""
    text = document
    if "<" in text:
        text = _TAGS.sub(" ", text)
    if "&" in text:
        text = html.unescape(text)
    if text.isascii():
        text = text.lower()
    else:
        text = unicodedata.normalize("NFKC", text.translate(_CHARACTERS)).lower().replace("i̇", "i")
    text = text.replace("`", "'")
    if "''" in text:
        text = _QUOTES.sub(" ", text)
    if "'" in text:
        text = _CLITIC_GAP.sub("", text)
    return _WORD_GAP.sub(r"\1", text)


def words(document: str) -> list[str]:
    """List the words of a document, in order."""
    return _list_words(normalise(document))


def _list_words(text: str) -> list[str]:
    return (_PLAIN_WORDS if text.isascii() else _WORDS).findall(text)


def choose_pattern(documents: Iterable[str]) -> str:
    """Return a ``token_pattern`` for raw documents, the simplest that finds their words."""
    is_odd = any(not document.isascii() and _ODD.search(document) for document in documents)
    return (WORD_PATTERN if is_odd else _PLAIN_WORDS.pattern).replace("(?:'", "(?:['’]")


_ODD = re.compile(f"[{_SPACELESS}{_MARKS}{_EMOJI}\U0001f1e6-\U0001f1ff]")


def build_analyser(tokens: str) -> Callable[[str], list[str]]:
    """Return the function that lists the terms of a document: words and pairs of them, or n-grams."""
    if tokens == "words":
        return _list_terms
    return CountVectorizer(
        lowercase=False,
        preprocessor=lambda document: NO_WORD.sub(" ", normalise(document)),
        analyzer="char_wb",
        ngram_range=CHARACTER_NGRAMS,
    ).build_analyzer()


def _list_terms(document: str) -> list[str]:
    found = words(document)
    return found + list(map(" ".join, pairwise(found)))


def choose_tokens(documents: Iterable[str]) -> tuple[str, str]:
    """Choose words, or characters where a script has no spaces or words hardly ever repeat; say why.

    At most 1,000 documents are read, and 1,000 characters of each: give some of every domain.
    """
    sample = islice(documents, SAMPLE_DOCUMENTS)
    texts = [normalise(document[:_SAMPLE_CHARACTERS]) for document in sample]
    n_spaceless = sum(len(_SPACELESS_LETTERS.findall(text)) for text in texts if not text.isascii())
    n_letters = sum(len(_LETTERS.findall(text)) for text in texts) if n_spaceless else 0
    spaceless = n_spaceless / max(n_letters, 1)
    if spaceless >= _MANY_SPACELESS:
        return "characters", f"{spaceless:.0%} of the letters are of scripts without spaces"
    frequencies: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    for text in texts:
        occurring = _list_words(text)
        counts.update(occurring)
        frequencies.update(set(occurring))
    n_single = sum(count for word, count in counts.items() if frequencies[word] == 1)
    single = n_single / max(counts.total(), 1)
    if single >= _MANY_SINGLE and len(texts) >= _FEW_DOCUMENTS:
        return "characters", f"{single:.0%} of the words are in one document only"
    return "words", "words are separated by spaces, and repeat"


_LETTERS = re.compile(r"[^\W\d_]")
_SPACELESS_LETTERS = re.compile(f"[{_SPACELESS}]")


def interleave(domains: Sequence[Iterable[str]]) -> Iterator[str]:
    """Yield the documents of several domains in turn, so that the first ones are of all of them."""
    waiting = [check_documents(domain) for domain in domains]
    while waiting:
        for domain in list(waiting):
            try:
                yield next(domain)
            except StopIteration:
                waiting.remove(domain)


def count_words(documents: Iterable[str], tokens: str = "words") -> Counter[str]:
    """Count the words, or character n-grams, of some documents; each is read once."""
    counts: Counter[str] = Counter()
    analyse = words if tokens == "words" else build_analyser(tokens)
    for document in check_documents(documents):
        counts.update(analyse(document))
    return counts


def unseen_share(target: Mapping[str, int], known: Container[str]) -> float:
    """Return the share of the target's words, each occurrence counted, that are not `known`.

    `target` are counts, as :func:`count_words` returns them. NaN without any word.
    """
    n_words = sum(target.values())
    n_unseen = sum(n for word, n in target.items() if word not in known)
    return n_unseen / n_words if n_words else float("nan")


def hash_text(text: str) -> int:
    """Hash a text, ignoring whitespace and case."""
    key = " ".join(text.split()).casefold().encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(key, digest_size=8).digest(), "big")


def check_documents(documents: Iterable[str]) -> Iterator[str]:
    """Iterate over documents; a missing one is empty text, and what is no string is refused in its turn."""
    if isinstance(documents, (str, bytes)) or not isinstance(documents, Iterable):
        raise ValueError(f"documents must be an iterable of strings; got one {type(documents).__name__}")
    if getattr(documents, "ndim", 1) != 1:
        raise ValueError("documents must be one column of strings; got a table: choose its text column")
    return _only_strings(documents)


def _only_strings(documents: Iterable[str]) -> Iterator[str]:
    for position, document in enumerate(documents):
        if isinstance(document, str):
            yield document
        elif np.ndim(document) == 0 and is_missing(document):
            yield ""
        else:
            kind = f"{document!r} of type {type(document).__name__}, not a string"
            if isinstance(document, bytes | bytearray):
                kind = "bytes, not a string: decode it first"
            raise ValueError(f"document {position} (counting from 0) is {kind}")
