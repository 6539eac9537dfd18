"""
A small model to ship
=====================

The full model has layers. A linear model on words, taught by it, predicts nearly as well. It leaves as a scikit-learn pipeline that needs
no undrift.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from undrift import TextAdapter, save_model
from undrift.datasets import make_reviews

corpus = make_reviews(1500, domains=["books", "kitchen"])
books, kitchen = corpus.domains["books"], corpus.domains["kitchen"]
unlabelled = [kitchen.texts[row] for row in np.append(kitchen.unlabelled, kitchen.train)]
new, truth = [kitchen.texts[row] for row in kitchen.test], kitchen.y[kitchen.test]

adapter = TextAdapter(1000).fit(books.texts, books.y, unlabelled)
small = adapter.distill(unlabelled)  # no label of the target is used
pipeline = small.to_sklearn()
print(pipeline)

# %%
# Reviews that neither has seen:

full_score, small_score = adapter.decision_function(new), small.decision_function(new)
for name, model in {"full": adapter, "distilled": small, "pipeline": pipeline}.items():
    print(f"{name}: {np.mean(model.predict(new) != truth):.1%} wrong")
print(f"full and distilled agree on {np.mean(adapter.predict(new) == small.predict(new)):.1%}")

with tempfile.TemporaryDirectory() as folder:
    for name, model in {"full": adapter, "distilled": small}.items():
        path = Path(folder, f"{name}.safetensors")
        save_model(model, path)
        print(f"{name}: {path.stat().st_size / 1e6:.2f} MB")

# %%
# The scores of the two, and the words with the largest weights in the small one:

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
for label, color in ((0, "#c44e52"), (1, "#2a6fbb")):
    left.scatter(
        full_score[truth == label],
        small_score[truth == label],
        s=8,
        color=color,
        label=["negative", "positive"][label],
    )
left.axhline(0, color="#b0b0b0", lw=1)
left.axvline(0, color="#b0b0b0", lw=1)
left.set(xlabel="score of the full model", ylabel="score of the distilled model")
left.legend(frameon=False)
order = np.argsort(small.classifier_.coef_[0].ravel())
chosen = np.append(order[:8], order[-8:])
weights = small.classifier_.coef_[0].ravel()[chosen]
right.barh([small.terms_[i] for i in chosen], weights, color=np.where(weights > 0, "#2a6fbb", "#c44e52"))
right.set(xlabel="weight, positive for a good review")
for axes in (left, right):
    axes.spines[["top", "right"]].set_visible(False)
