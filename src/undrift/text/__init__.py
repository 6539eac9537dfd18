"""Raw text in, predictions out: `TermVectorizer` and `TextAdapter`."""

from .adapter import (
    MANY_TERMS,
    N_TERMS,
    TFIDF_LENGTH,
    TextAdapter,
    load_adapter,
    load_text_model,
    text_classifier,
    text_regressor,
)
from .distilled import DistilledText
from .features import FeatureScaler, parse_numbers
from .tokens import (
    FAR_APART,
    SAMPLE_DOCUMENTS,
    TOKENS,
    collect_words,
    hash_text,
    interleave,
    unseen_share,
    words,
)
from .vectorizer import WEIGHTINGS, DocumentFrequencies, TermVectorizer
