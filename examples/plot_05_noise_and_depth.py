"""
Noise and depth, chosen without target labels
=============================================

Cross-validation on the source chooses noise and depth. All depths share one stack of layers, so the search is cheap. No label of the
target is read.
"""

import matplotlib.pyplot as plt
import numpy as np

from undrift import MSDAClassifier, TextAdapter
from undrift.datasets import make_reviews

corpus = make_reviews(600, domains=["electronics", "kitchen"])
source, kitchen = corpus.domains["electronics"], corpus.domains["kitchen"]
target = [kitchen.texts[row] for row in np.append(kitchen.test, kitchen.unlabelled)]
truth = kitchen.y[kitchen.test]  # for scoring alone

classifier = MSDAClassifier(noise=[0.5, 0.7, 0.9], n_layers=[1, 3, 5], C=[0.3, 1.0], random_state=0)
adapter = TextAdapter(400, classifier=classifier).fit(source.texts, source.y, target)
print("chosen:", adapter.classifier_.best_params_)
for result in adapter.classifier_.selection_results_[:4]:
    print(result)

# %%
# The error on the target, which the choice did not see:

errors = {}
for noise in (0.5, 0.7, 0.9):
    errors[noise] = []
    for depth in (1, 3, 5):
        fixed = MSDAClassifier(noise=noise, n_layers=depth, random_state=0)
        fixed = TextAdapter(400, classifier=fixed).fit(source.texts, source.y, target)
        errors[noise].append(np.mean(fixed.predict(target[: len(truth)]) != truth))

figure, axes = plt.subplots(figsize=(6, 3.5), layout="constrained")
for (noise, values), color in zip(errors.items(), ["#9ecae1", "#4292c6", "#084594"], strict=True):
    axes.plot([1, 3, 5], values, "o-", color=color, label=f"noise {noise}")
axes.set(xlabel="layers", ylabel="error on kitchen reviews", ylim=(0, None), xticks=[1, 3, 5])
axes.legend(frameon=False)
axes.spines[["top", "right"]].set_visible(False)
