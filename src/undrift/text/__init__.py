"""Raw text in, predictions out: `TermVectorizer` and `TextAdapter`."""

from .adapter import TFIDF_LENGTH, TextAdapter, load_adapter, text_classifier
from .tokens import FAR_APART, unseen_share, unseen_shares, words
from .vectorizer import WEIGHTINGS, DocumentFrequencies, TermVectorizer

__all__ = [
    "FAR_APART",
    "TFIDF_LENGTH",
    "WEIGHTINGS",
    "DocumentFrequencies",
    "TermVectorizer",
    "TextAdapter",
    "load_adapter",
    "text_classifier",
    "unseen_share",
    "unseen_shares",
    "words",
]
