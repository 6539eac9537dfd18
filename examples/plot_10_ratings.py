"""
Ratings
=======

Stars are numbers, not five unrelated classes: an error of four stars is worse than an error of one. ``undrift adapt`` notices stars from 1 to 5 by
itself, ``--task rating`` is for other scales.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import spearmanr
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline

from undrift import TermVectorizer, TextAdapter, text_regressor
from undrift.datasets import make_reviews

corpus = make_reviews(1500, domains=["books", "kitchen"], labels="stars")
books, kitchen = corpus.domains["books"], corpus.domains["kitchen"]
target = [kitchen.texts[row] for row in np.append(kitchen.test, kitchen.unlabelled)]
new, truth = target[: len(kitchen.test)], kitchen.y[kitchen.test]

labelled = [books.texts[row] for row in books.train]
ridge = make_pipeline(TfidfVectorizer(), RidgeCV(np.logspace(-2, 3, 11))).fit(labelled, books.y[books.train])
adapter = TextAdapter(TermVectorizer(1000), text_regressor()).fit(books.texts, books.y, target)
predicted = {"trained on books": ridge.predict(new).clip(1, 5), "adapted": adapter.predict(new).clip(1, 5)}

for name, values in predicted.items():
    print(
        f"{name}: off by {np.abs(values - truth).mean():.2f} stars, rank correlation {spearmanr(values, truth)[0]:.2f}"
    )

# %%
# What is predicted for reviews of each number of stars:

figure, panels = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained", sharey=True)
for axes, (name, values), color in zip(panels, predicted.items(), ["#8c8c8c", "#2a6fbb"], strict=True):
    boxes = axes.boxplot([values[truth == star] for star in range(1, 6)], patch_artist=True, showfliers=False)
    for box in boxes["boxes"]:
        box.set(facecolor=color, alpha=0.6)
    axes.plot(range(1, 6), range(1, 6), color="#b0b0b0", lw=1, zorder=0)
    axes.set(title=name, xlabel="stars of the review", ylim=(0.8, 5.2))
    axes.spines[["top", "right"]].set_visible(False)
panels[0].set_ylabel("predicted")
