"""
Classes that are not equally frequent
=====================================

The source is balanced. Of the target's reviews 10% to 90% are positive. Subtracting each domain's mean, as is common, moves the decision
threshold into the larger class. By default that is one of the readings that vote, and five labels show which of them is right.
"""

from copy import deepcopy

import matplotlib.pyplot as plt
import numpy as np

from undrift import MSDAClassifier, TextAdapter
from undrift.datasets import make_reviews

shares = [0.1, 0.5, 0.9]
titles = {"classes": "readings that vote (default)", "domains": "means subtracted", False: "as they come"}
errors = {title: [] for title in [*titles.values(), "and five labels"]}
estimates = []
for share in shares:
    corpus = make_reviews(700, domains=["books", "kitchen"], positive_share=share)
    books, kitchen = corpus.domains["books"], corpus.domains["kitchen"]
    target = [kitchen.texts[row] for row in np.append(kitchen.test, kitchen.unlabelled)]
    truth = kitchen.y[kitchen.test]
    for center, title in titles.items():
        classifier = MSDAClassifier(center=center, random_state=0)
        adapter = TextAdapter(600, classifier=classifier).fit(books.texts, books.y, target)
        errors[title].append(np.mean(adapter.predict(target[: len(truth)]) != truth))
        if center == "classes":
            estimates.append(adapter.target_shares_[0][1.0])
            asked = adapter.ask(target[: len(truth)], 5)
            updated = deepcopy(adapter).update([target[row] for row in asked], truth[asked])
            is_free = ~np.isin(np.arange(len(truth)), asked)
            is_wrong = updated.predict(target[: len(truth)]) != truth
            errors["and five labels"].append(np.mean(is_wrong[is_free]))

# %%
# The shares are those that the readings have on average. No label of the target is used:

for share, estimate in zip(shares, estimates, strict=True):
    print(f"positive in the target: {share:.0%}, estimated {estimate:.0%}")

figure, axes = plt.subplots(figsize=(6, 3.5), layout="constrained")
for (title, values), color in zip(errors.items(), ["#2a6fbb", "#c44e52", "#8c8c8c", "#3a923a"], strict=True):
    axes.plot(shares, values, "o-", color=color, label=title)
axes.set(xlabel="share of positive reviews in the target", ylabel="error", ylim=(0, None))
axes.legend(frameon=False)
axes.spines[["top", "right"]].set_visible(False)
