"""
A few labels of the target
==========================

A fitted model says which rows are most worth labelling, and learns their labels at once. ``undrift ask`` and ``undrift update`` do the
same with files. One half of the target's labels may be used here, the other half is for scoring.

This is a hard case: 400 reviews of each domain, and 80% of the target are positive. Without labels nobody knows that.
"""

from copy import deepcopy

import matplotlib.pyplot as plt
import numpy as np

from undrift import TextAdapter
from undrift.datasets import make_reviews

corpus = make_reviews(400, domains=["books", "camping"], positive_share=0.8)
books, camping = corpus.domains["books"], corpus.domains["camping"]
adapter = TextAdapter(600).fit(books.texts, books.y, camping.texts)

rng = np.random.default_rng(0)
labelled = rng.permutation(np.append(camping.test, camping.train))
may_be_labelled, scored = np.array_split(labelled, 2)
texts, truth = np.array(camping.texts, dtype=object), camping.y


def measure_error(model):
    return np.mean(model.predict(texts[scored]) != truth[scored])


print(
    f"positive: {np.mean(truth[scored]):.0%}; estimated without labels {adapter.target_shares_[0][1.0]:.0%}"
)

# %%
# ``ask`` names first five rows that decide between the readings, then draws rows, doubtful ones more often:

asked = may_be_labelled[adapter.ask(texts[may_be_labelled], 100)]
for text in list(dict.fromkeys(texts[asked]))[:3]:
    print("-", text[:100], "...")

# %%
# Labels are learnt in a second, without learning the layers again. A label may be changed later, or withdrawn (None).

counts = [0, 5, 10, 25, 50, 100]
errors = {"asked for": [], "drawn at random": []}
for title, rows in zip(errors, (asked, may_be_labelled[:100]), strict=True):
    model = deepcopy(adapter)
    for n in counts:
        if n:
            model.update(texts[rows[:n]], truth[rows[:n]])
        errors[title].append(measure_error(model))
    print(f"{title}: 100 labels, positive estimated {model.target_shares_[0][1.0]:.0%}")
    print([f"{error:.1%}" for error in errors[title]])

figure, axes = plt.subplots(figsize=(6, 3.2), layout="constrained")
for (title, values), color in zip(errors.items(), ["#2a6fbb", "#8c8c8c"], strict=True):
    axes.plot(counts, values, "o-", color=color, label=title)
axes.set(xlabel="labels of the target", ylabel="error on the other half", ylim=(0, None))
axes.legend(frameon=False)
axes.spines[["top", "right"]].set_visible(False)
