"""Raw text in, predictions out: `TermVectorizer` and `TextAdapter`."""

from .adapter import TextAdapter
from .bridge import cross_languages
from .distill import DistilledClassifier, ask_teacher, distill
from .distilled import DistilledText
from .model import LEAST_KNOWN
from .terms import N_TERMS, TFIDF_LENGTH, DocumentFrequencies, TermVectorizer
from .tokens import (
    FAR_APART,
    SAMPLE_DOCUMENTS,
    count_words,
    hash_text,
    interleave,
    unseen_share,
    words,
)
from .vector_cache import clear_vectors, find_cache, list_vectors
