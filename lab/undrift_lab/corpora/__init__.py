"""Loaders of research corpora: one file per format, each returning a `Corpus`."""

from collections.abc import Callable
from functools import partial

from undrift.datasets import make_reviews

from .addresses import SOURCES
from .amazon_bow import load_amazon_bow
from .amazon_mat import load_amazon_mat
from .corpus import Corpus, Domain
from .download import fetch
from .fdu_mtl import load_fdu_mtl
from .files import data_folder
from .json_lines import (
    load_amazon_20,
    load_crisis,
    load_debt,
    load_named,
    load_natural,
    load_newsgroups,
)
from .multidomain import load_multidomain_sentiment
from .processed_acl import load_processed_acl
from .surf import load_office_caltech_surf


def load_reviews() -> Corpus:
    """Return the generated reviews of the library."""
    domains = make_reviews().domains.values()
    return Corpus("reviews", {domain.name: Domain(**vars(domain)) for domain in domains})


NAMED = (  # corpora whose labels are names of classes
    "news_topics",
    "newsgroups4",
    "intents",
    "intents4",
    "crisis_types",
    "airline",
    "hutto_sentiment3",
    "emotion",
    "question_types",
    "youtube_spam",
    "chinese_reviews",
    "arabic_binary",
    "clickbait",
    "sarcasm",
    "stance",
)
# what a plan may name: a loader takes a folder (or None, for the data folder's) and returns a corpus
LOADERS: dict[str, Callable[..., Corpus]] = {
    "amazon-bow": load_amazon_bow,
    "processed_acl": load_processed_acl,
    "fdu-mtl": load_fdu_mtl,
    "multidomain": load_multidomain_sentiment,
    "amazon-mat": load_amazon_mat,
    "natural": load_natural,
    "amazon-20": load_amazon_20,
    "crisis": load_crisis,
    "debt": load_debt,
    "newsgroups": load_newsgroups,
    **{name: partial(load_named, name) for name in NAMED},
    "office_caltech_surf": load_office_caltech_surf,
    "reviews": load_reviews,
}
# corpora of one family share texts or their kind: what was chosen on one says nothing new of another
FAMILIES: dict[str, str] = {
    **{name: name for name in LOADERS},
    **dict.fromkeys(("amazon-bow", "processed_acl", "fdu-mtl", "multidomain"), "Amazon reviews"),
    **dict.fromkeys(("amazon-mat", "natural", "amazon-20"), "Amazon reviews"),
    **dict.fromkeys(("newsgroups", "newsgroups4"), "newsgroups"),
}
