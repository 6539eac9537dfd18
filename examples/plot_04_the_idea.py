"""
The idea in five pictures
=========================

A word that only the target uses gets a weight because it occurs together with words that the source knows.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import CountVectorizer

from undrift import MSDA, MSDAClassifier
from undrift.datasets import make_reviews
from undrift.explain import reconstruction

corpus = make_reviews(1500, domains=["books", "kitchen"])
books, kitchen = corpus.domains["books"], corpus.domains["kitchen"]
vectorizer = CountVectorizer(max_features=300, binary=True, stop_words="english").fit(
    [*books.texts, *kitchen.texts]
)
terms = vectorizer.get_feature_names_out()
X, Z = (vectorizer.transform(domain.texts).astype(np.float32) for domain in (books, kitchen))

# %%
# **1. A row says which words occur.** Some columns are empty in one of the domains. Labels alone teach nothing about them.

figure, panels = plt.subplots(2, 1, figsize=(8, 3), layout="constrained", sharex=True)
order = np.argsort(np.asarray(X.mean(axis=0)).ravel() - np.asarray(Z.mean(axis=0)).ravel())
for axes, rows, name in zip(panels, (X, Z), ("books", "kitchen"), strict=True):
    axes.imshow(rows[:60][:, order].toarray(), aspect="auto", cmap="Greys", interpolation="nearest")
    axes.set(ylabel=name, yticks=[])
panels[1].set_xlabel("terms, from those of kitchen to those of books")

# %%
# **2. A layer fills in words that were removed at random.** The weights are those of infinitely many noisy copies, from one linear
# solve. They say from which words a word is reconstructed:

stack = MSDA(1, noise=0.7).fit(np.vstack([X.toarray(), Z.toarray()]))
word = next(term for term in ("rusted", "leaks", "wobbles", "sturdy") if term in terms)
sources = reconstruction(stack, list(terms), word, 10)
print(word, "<-", sources)

# %%
# **3. A stack repeats this** on the layer's output, squashed by tanh. A reconstructed document has values for words that it does not
# contain:

stack = MSDA(3, noise=0.7, include_input=False).fit(np.vstack([X.toarray(), Z.toarray()]))
hidden = list(stack.hidden(Z[:40].toarray()))
figure, panels = plt.subplots(1, 4, figsize=(9, 3), layout="constrained", sharey=True)
for axes, rows, title in zip(panels, [Z[:40].toarray(), *hidden], ["x", "h1", "h2", "h3"], strict=True):
    axes.imshow(rows[:, order], aspect="auto", cmap="RdBu_r", vmin=-1, vmax=1, interpolation="nearest")
    axes.set(title=title, xticks=[], yticks=[])

# %%
# **4. A linear classifier on x, h1, h2, h3** is trained on the labels of the source. Through the layers, words of the target get weights:

is_labelled = ~np.isnan(books.y)
classifier = MSDAClassifier(3, random_state=0).fit(X[is_labelled], books.y[is_labelled], Z)
scores = classifier.decision_function(np.eye(len(terms), dtype=np.float32))
scores -= classifier.decision_function(np.zeros((1, len(terms)), dtype=np.float32))
is_new = np.asarray(X[is_labelled].sum(axis=0)).ravel() == 0
new = [column for column in np.argsort(scores) if is_new[column]]
chosen = [*new[:6], *new[-6:]]
figure, axes = plt.subplots(figsize=(6, 3.5), layout="constrained")
axes.barh(terms[chosen], scores[chosen], color=np.where(scores[chosen] < 0, "#c44e52", "#2a6fbb"))
axes.set(xlabel="effect of the word alone on the score", title="words that no labelled review contains")
axes.spines[["top", "right"]].set_visible(False)

# %%
# **5. The scores of the target separate**, without one of its labels:

is_known = ~np.isnan(kitchen.y)
scores = classifier.decision_function(Z[is_known])
figure, axes = plt.subplots(figsize=(6, 3), layout="constrained")
for label, color, name in ((0.0, "#c44e52", "negative"), (1.0, "#2a6fbb", "positive")):
    axes.hist(
        scores[kitchen.y[is_known] == label], bins=40, alpha=0.6, color=color, label=f"{name} kitchen reviews"
    )
axes.set(xlabel="score", ylabel="reviews")
axes.legend(frameon=False)
axes.spines[["top", "right"]].set_visible(False)
