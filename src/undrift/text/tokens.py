r"""Documents to tokens, and what tokens tell of two domains.

*Words* follow Unicode's rules: a mark belongs to its letter, as vowel signs do in Hindi, and an emoji is a
word. In a script written without spaces (Chinese, Japanese, Thai, Lao, Khmer, Burmese) every character is a
word, so that bigrams are pairs of characters. Tokenised text ("did n't", "``well''"), plain text ("didn't")
and typographic text ("didn’t") give the same words: lower-cased, in the compatibility form NFKC, no HTML. A
hyphen separates words, so that "page-turner" and "page turner" are one bigram.

*Characters* are the character n-grams of each run of such characters, for text whose words hardly repeat.

Scikit-learn's vectorisers can do all of it by functions of the standard library: `STEPS` in their order, then
`WORD_PATTERN` as ``token_pattern``; or the same and ``NO_WORD.sub(" ", text)``, then ``analyzer="char_wb"``
with ``ngram_range=CHARACTER_NGRAMS``. Both with ``lowercase=False``.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from hashlib import blake2b
from itertools import chain, islice
from operator import methodcaller
from typing import Any, NamedTuple

from sklearn.feature_extraction.text import CountVectorizer

TOKENS = ("auto", "words", "characters")
FAR_APART = 0.5  # share of unseen words above which two vocabularies hardly overlap
CHARACTER_NGRAMS = (2, 4)
SAMPLE_DOCUMENTS = 1000  # that tokens are chosen from, at most
_SAMPLE_CHARACTERS = 1000  # of each of them
_MANY_SPACELESS = 0.5  # share of letters in scripts without spaces, from which on characters are chosen
_MANY_SINGLE = 0.4  # share of words that occur in one document only, from which on characters are chosen ...
_FEW_DOCUMENTS = (
    200  # ... unless there are fewer documents than this, in which words of any language are rare
)

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
NO_WORD = re.compile(
    rf"(?:[^\w{_MARKS}{_EMOJI}\U0001f1e6-\U0001f1ff]|_)+"
)  # what separates runs of characters
_WORDS = re.compile(WORD_PATTERN)
_PLAIN_WORDS = re.compile(
    r"\d+(?:[.,]\d+)+|[^\W_]+(?:'[^\W_]+)*"
)  # the same words of text without other letters

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
# What people type for an apostrophe (U+0091 and U+0092 are Windows quotes read as latin-1), and what may
# stand inside a word without being seen: soft hyphen, zero-width and direction marks, Arabic stretching, the
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
# ... and a few words in two. The letters come first, which is three times as fast as the border of a word.
_WORD_GAP = re.compile(
    r"([cgw](?:an|on|ot))(?:(?<=\bcan)(?=\s+not\b)|(?:(?<=\bgon)|(?<=\bwan))(?=\s+na\b)|(?<=\bgot)(?=\s+ta\b))"
    r"\s+"
)

STEPS: tuple[Callable[[str], str], ...] = (
    partial(_TAGS.sub, " "),
    html.unescape,
    methodcaller("translate", _CHARACTERS),
    partial(unicodedata.normalize, "NFKC"),
    str.lower,
    methodcaller("replace", "i̇", "i"),  # İ lower-cases to i and a combining dot
    methodcaller("replace", "`", "'"),
    partial(_QUOTES.sub, " "),
    partial(_CLITIC_GAP.sub, ""),
    partial(_WORD_GAP.sub, r"\1"),
)
"""What is done to a document before it is cut into tokens, one function after the other."""


def normalise(document: str) -> str:
    """Put a document in lower case and NFKC, without HTML, with whole contractions and no doubled quotes.

    The same as all `STEPS`, of which those are left out that change nothing in most documents.

    Examples
    --------
    >>> normalise("It ca n't be") == normalise("It can’t<br>be") == "it can't be"
    True
    """
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
    """List the words of a document, in order.

    Examples
    --------
    >>> words("A 5.1 system; it was n't cheap")
    ['a', '5.1', 'system', 'it', "wasn't", 'cheap']
    >>> words("很好 👍")
    ['很', '好', '👍']
    """
    return _list_words(normalise(document))


def _list_words(text: str) -> list[str]:
    return (_PLAIN_WORDS if text.isascii() else _WORDS).findall(text)


def choose_pattern(documents: Iterable[str]) -> str:
    """Return a ``token_pattern`` for raw documents, the simplest that finds their words."""
    is_odd = any(not document.isascii() and _ODD.search(document) for document in documents)
    return (WORD_PATTERN if is_odd else _PLAIN_WORDS.pattern).replace("(?:'", "(?:['’]")


_ODD = re.compile(f"[{_SPACELESS}{_MARKS}{_EMOJI}\U0001f1e6-\U0001f1ff]")


def separate_runs(document: str) -> str:
    """Return a normalised document with one blank in place of all that is in no word."""
    return NO_WORD.sub(" ", normalise(document))


def earlier_words(document: str) -> list[str]:
    """List the words of a document as models did that were saved before tokens could be chosen."""
    text = document
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text.translate(_EARLIER_CHARACTERS))
    text = text.lower().replace("i̇", "i").replace("`", "'")
    if "'" in text:
        text = _CLITIC_GAP.sub("", _QUOTES.sub(" ", text))
    return _PLAIN_WORDS.findall(_WORD_GAP.sub(r"\1", text))


_EARLIER_CHARACTERS = str.maketrans(
    dict.fromkeys("’‘ʼ＇´′\x91\x92", "'") | dict.fromkeys("\u00ad\u200b\u200d\ufeff")
)


def build_analyser(tokens: str | None, ngram_range: Sequence[int]) -> Callable[[str], list[str]]:
    """Return the function that lists the terms of a document; None means those of models saved earlier.

    Terms are n-grams of words, `ngram_range` words long; or n-grams of characters, whatever `ngram_range` is.
    """
    options: dict[str, Any] = {"tokenizer": earlier_words if tokens is None else words, "token_pattern": None}
    options["ngram_range"] = tuple(ngram_range)
    if tokens == "characters":
        options = {"preprocessor": separate_runs, "analyzer": "char_wb", "ngram_range": CHARACTER_NGRAMS}
    return CountVectorizer(lowercase=False, **options).build_analyzer()


class TokenChoice(NamedTuple):
    """Words or characters, and why."""

    tokens: str
    reason: str


def choose_tokens(documents: Iterable[str]) -> TokenChoice:
    """Choose words, or characters where a script has no spaces or words hardly ever repeat.

    At most 1,000 documents are read, and 1,000 characters of each: give some of every domain.
    """
    sample = islice(documents, SAMPLE_DOCUMENTS)
    texts = [normalise(document[:_SAMPLE_CHARACTERS]) for document in sample]
    n_letters = sum(len(_LETTERS.findall(text)) for text in texts)
    spaceless = sum(len(_SPACELESS_LETTERS.findall(text)) for text in texts) / max(n_letters, 1)
    if spaceless >= _MANY_SPACELESS:
        return TokenChoice("characters", f"{spaceless:.0%} of the letters are of scripts without spaces")
    frequencies: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    for text in texts:
        occurring = _list_words(text)
        counts.update(occurring)
        frequencies.update(set(occurring))
    n_single = sum(count for word, count in counts.items() if frequencies[word] == 1)
    single = n_single / max(counts.total(), 1)
    if single >= _MANY_SINGLE and len(texts) >= _FEW_DOCUMENTS:
        return TokenChoice("characters", f"{single:.0%} of the words are in one document only")
    return TokenChoice("words", "words are separated by spaces, and repeat")


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


def collect_words(documents: Iterable[str], tokens: str | None = "words") -> set[str]:
    """Return the words, or character n-grams, that occur in some documents; each is read once."""
    analyse = build_analyser(tokens, (1, 1))
    return {word for document in check_documents(documents) for word in analyse(document)}


def unseen_share(
    target: Iterable[str], source: Iterable[str] | set[str], tokens: str | None = "words"
) -> float:
    """Share of the target's words, each occurrence counted, that never occur in the source.

    Parameters
    ----------
    target : iterable of str
        Documents; each is read once.
    source : iterable of str, or set
        Documents; or, as a set, the words of them, as :func:`collect_words` returns them.
    tokens : {"words", "characters"}, default="words"
        What documents are cut into.

    Returns
    -------
    float
        In [0, 1]; NaN if the target has no words at all.
    """
    known = source if isinstance(source, set) else collect_words(source, tokens)
    analyse = build_analyser(tokens, (1, 1))
    n_words = n_unseen = 0
    for document in check_documents(target):
        occurring = analyse(document)
        n_words += len(occurring)
        n_unseen += sum(word not in known for word in occurring)
    return n_unseen / n_words if n_words else float("nan")


def hash_text(text: str) -> int:
    """Return a number that texts share which differ in whitespace and case alone.

    Examples
    --------
    >>> hash_text(" A sturdy  pan") == hash_text("a sturdy pan") != hash_text("a pan")
    True
    """
    key = " ".join(text.split()).casefold().encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(key, digest_size=8).digest(), "big")


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
