"""Loaders of research corpora: one file per format, each returning a `Corpus`."""

from collections.abc import Callable

from undrift.datasets import make_reviews

from .addresses import SOURCES
from .amazon_bow import load_amazon_bow
from .amazon_mat import load_amazon_mat
from .corpus import Corpus, Domain
from .download import fetch
from .fdu_mtl import load_fdu_mtl
from .files import data_folder
from .json_lines import load_crisis, load_debt, load_natural, load_newsgroups
from .multidomain import load_multidomain_sentiment
from .processed_acl import load_processed_acl


def load_reviews() -> Corpus:
    """Return the generated reviews of the library."""
    domains = make_reviews().domains.values()
    return Corpus("reviews", {domain.name: Domain(**vars(domain)) for domain in domains})


# what a plan may name: a loader takes a folder (or None, for the data folder's) and returns a corpus
LOADERS: dict[str, Callable[..., Corpus]] = {
    "amazon-bow": load_amazon_bow,
    "processed_acl": load_processed_acl,
    "fdu-mtl": load_fdu_mtl,
    "multidomain": load_multidomain_sentiment,
    "amazon-mat": load_amazon_mat,
    "natural": load_natural,
    "crisis": load_crisis,
    "debt": load_debt,
    "newsgroups": load_newsgroups,
    "reviews": load_reviews,
}
