"""
Noise and depth, chosen without target labels
=============================================

Several values of a parameter are compared at the price of a few fits: all depths share one stack of layers. The choice sees the labels of
the source alone.
"""

import matplotlib.pyplot as plt
import numpy as np

from undrift import TextAdapter, text_classifier
from undrift.datasets import make_reviews

corpus = make_reviews(1200, domains=["electronics", "kitchen"])
source, kitchen = corpus.domains["electronics"], corpus.domains["kitchen"]
target = [kitchen.texts[row] for row in np.append(kitchen.test, kitchen.unlabelled)]
truth = kitchen.y[kitchen.test]  # for scoring alone

classifier = text_classifier(noise=[0.5, 0.7, 0.9], n_layers=[1, 3, 5], C=[0.3, 1.0], selection="reverse")
adapter = TextAdapter(800, classifier=classifier).fit(source.texts, source.y, target)
print("chosen:", adapter.classifier_.best_params_)
for result in adapter.classifier_.selection_results_[:4]:
    print(result)

# %%
# What the choice did not see: the target's error at every depth.

errors = {}
for noise in (0.5, 0.7, 0.9):
    errors[noise] = []
    for depth in (1, 3, 5):
        fixed = text_classifier(noise=noise, n_layers=depth)
        fixed = TextAdapter(800, classifier=fixed).fit(source.texts, source.y, target)
        errors[noise].append(np.mean(fixed.predict(target[: len(truth)]) != truth))

figure, axes = plt.subplots(figsize=(6, 3.5), layout="constrained")
for (noise, values), color in zip(errors.items(), ["#9ecae1", "#4292c6", "#084594"], strict=True):
    axes.plot([1, 3, 5], values, "o-", color=color, label=f"noise {noise}")
axes.set(xlabel="layers", ylabel="error on kitchen reviews", ylim=(0, None), xticks=[1, 3, 5])
axes.legend(frameon=False)
axes.spines[["top", "right"]].set_visible(False)
