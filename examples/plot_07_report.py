"""
The report
==========

``undrift adapt ... --report report.html`` and ``undrift demo`` write a page that answers one question: can these predictions be trusted? In
a notebook it is displayed as it is here.
"""

# sphinx_gallery_thumbnail_path = "images/report.png"
import numpy as np

from undrift import TextAdapter, adaptation_report
from undrift.datasets import make_reviews

corpus = make_reviews(1500, domains=["books", "kitchen"])
books, kitchen = corpus.domains["books"], corpus.domains["kitchen"]
target = [kitchen.texts[row] for row in np.append(kitchen.test, kitchen.unlabelled)]
adapter = TextAdapter(1000).fit(books.texts, books.y, target)

report = adaptation_report(adapter, books.texts, books.y, target)
report  # noqa: B018 (shown on the page)
