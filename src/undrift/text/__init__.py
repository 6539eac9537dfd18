"""Raw text in, predictions out: `TermVectorizer` and `TextAdapter`."""

from .adapter import TextAdapter, load_adapter, load_text_model
from .distill import ask_teacher, distill
from .distilled import DistilledText
from .terms import N_TERMS, TFIDF_LENGTH, DocumentFrequencies, TermVectorizer
from .tokens import (
    FAR_APART,
    SAMPLE_DOCUMENTS,
    collect_words,
    hash_text,
    interleave,
    unseen_share,
    words,
)
