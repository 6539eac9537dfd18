"""
From one domain to another
==========================

Reviews of books have labels, reviews of kitchen appliances do not. The corpus is generated. The two domains share some words of praise
and blame, and each has words that the other lacks.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from undrift import TextAdapter
from undrift.datasets import make_reviews

corpus = make_reviews(1500)
books, kitchen = corpus.domains["books"], corpus.domains["kitchen"]
target = [kitchen.texts[row] for row in np.append(kitchen.test, kitchen.unlabelled)]
truth = kitchen.y[kitchen.test]  # for scoring alone

# %%
# A classifier that knows books alone, and one that has also read the kitchen reviews, without their labels:

labelled = [books.texts[row] for row in books.train]
baseline = make_pipeline(TfidfVectorizer(), LinearSVC()).fit(labelled, books.y[books.train])
adapter = TextAdapter(1000).fit(books.texts, books.y, target)  # y is NaN where there is no label

new = target[: len(truth)]

errors = {
    "trained on books": np.mean(baseline.predict(new) != truth),
    "adapted": np.mean(adapter.predict(new) != truth),
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
