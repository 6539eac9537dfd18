"""Raw text in, predictions out: `TermVectorizer` and `TextAdapter`."""

from .adapter import TFIDF_LENGTH, TextAdapter, load_adapter, text_classifier
from .vectorizer import WEIGHTINGS, DocumentFrequencies, TermVectorizer, unseen_share, unseen_shares, words

__all__ = [
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
