"""Loaders: one file per format, each returning a `Corpus`."""

from .addresses import SOURCES
from .amazon_bow import load_amazon_bow
from .amazon_mat import load_amazon_mat
from .download import fetch
from .fdu_mtl import load_fdu_mtl
from .files import data_folder
from .multidomain import load_multidomain_sentiment
from .processed_acl import load_processed_acl
from .reviews import make_reviews

__all__ = [
    "SOURCES",
    "data_folder",
    "fetch",
    "load_amazon_bow",
    "load_amazon_mat",
    "load_fdu_mtl",
    "load_multidomain_sentiment",
    "load_processed_acl",
    "make_reviews",
]
