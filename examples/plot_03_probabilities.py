"""
Probabilities, and predictions left open
========================================

Probabilities are calibrated for the target, without its labels. Leaving the least certain predictions open lowers the error of the others:
``undrift adapt --min-confidence 0.9`` does the same with files.
"""

import matplotlib.pyplot as plt
import numpy as np

from undrift import TextAdapter
from undrift.datasets import make_reviews

corpus = make_reviews(2000, domains=["books", "camping"], positive_share=0.6)
books, camping = corpus.domains["books"], corpus.domains["camping"]
target = [camping.texts[row] for row in np.append(camping.test, camping.unlabelled)]
truth = camping.y[camping.test]

adapter = TextAdapter(1000).fit(books.texts, books.y, target)
probability = adapter.predict_proba(target[: len(truth)])
confidence = probability.max(axis=1)
is_right = adapter.classes_[probability.argmax(axis=1)] == truth

# %%
# On the left: among predictions of similar confidence, how many are right. On the right: the error among those predictions that are at
# least so confident, against how many there are.

figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.5), layout="constrained")
bins = np.array_split(np.argsort(confidence), 6)
left.plot([0.5, 1], [0.5, 1], color="#b0b0b0", lw=1)
left.plot(
    [confidence[rows].mean() for rows in bins],
    [is_right[rows].mean() for rows in bins],
    "o-",
    color="#2a6fbb",
)
left.set(xlabel="mean confidence", ylabel="share that is right", xlim=(0.5, 1.01), ylim=(0.4, 1.02))
order = np.argsort(-confidence)
coverage = np.arange(1, len(order) + 1) / len(order)
error = np.cumsum(~is_right[order]) / np.arange(1, len(order) + 1)
right.plot(coverage[20:], error[20:], color="#2a6fbb")
right.set(xlabel="share of rows that get a prediction", ylabel="error among them", ylim=(0, None))
for axes in (left, right):
    axes.spines[["top", "right"]].set_visible(False)

expected = adapter.classifier_.expected_error_[0]
print(
    f"error {1 - is_right.mean():.1%}; expected without labels {expected['error']:.1%}, {expected['low']:.1%} to {expected['high']:.1%}"
)
