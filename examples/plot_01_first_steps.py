"""
From one domain to another
==========================

Reviews of books have labels, reviews of kitchen appliances do not. The corpus is generated: the two domains share some words
of praise and blame, and each has words that the other lacks.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from undrift import TermVectorizer, TextAdapter
from undrift.datasets import make_reviews

corpus = make_reviews()
books, kitchen = corpus.domains["books"], corpus.domains["kitchen"]
documents, labels = [books.texts[i] for i in books.train[:600]], books.y[books.train[:600]]
target = [kitchen.texts[i] for i in kitchen.test[:800]]
truth = kitchen.y[kitchen.test[:800]]

# %%
# A classifier that knows books alone, and one that has also read the kitchen reviews, without their labels:

baseline = make_pipeline(TfidfVectorizer(), LinearSVC()).fit(documents, labels)
adapter = TextAdapter(TermVectorizer(800)).fit(documents, labels, target)

errors = {
    "trained on books": np.mean(baseline.predict(target) != truth),
    "adapted": np.mean(adapter.predict(target) != truth),
}
print({name: f"{error:.1%}" for name, error in errors.items()})

# %%
# The error to expect is estimated without a label of the target:

print(adapter.classifier_.expected_error_)

figure, axes = plt.subplots(figsize=(5, 2), layout="constrained")
bars = axes.barh(list(errors), list(errors.values()), color=["#b0b0b0", "#2a6fbb"])
axes.bar_label(bars, [f"{error:.1%}" for error in errors.values()], padding=3)
axes.set(xlabel="error on kitchen reviews", xlim=(0, 0.6))
axes.spines[["top", "right"]].set_visible(False)
