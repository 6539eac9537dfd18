"""`make_reviews`: a generated corpus of reviews, and the values that hold one."""

from .corpus import Corpus, Domain, Task
from .reviews import make_reviews

__all__ = ["Corpus", "Domain", "Task", "make_reviews"]
