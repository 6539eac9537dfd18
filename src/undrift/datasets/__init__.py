"""`make_reviews`: a generated corpus of reviews, and the values that hold one."""

from .reviews import Corpus, Domain, make_reviews

__all__ = ["Corpus", "Domain", "make_reviews"]
