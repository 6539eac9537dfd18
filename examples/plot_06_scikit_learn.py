"""
In a scikit-learn pipeline, and in blocks
=========================================

`MSDA` is a transformer like any other: it can stand in a pipeline, be searched over, and return data frames. For rows that do not fit
in memory, `MDA.partial_fit` is exact: the order and size of the blocks do not matter.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from undrift import MDA, MSDA
from undrift.datasets import make_reviews

domain = make_reviews(600, domains=["camping"]).domains["camping"]
documents, labels = [domain.texts[row] for row in domain.train], domain.y[domain.train]

pipeline = make_pipeline(
    CountVectorizer(max_features=200, binary=True), MSDA(2, noise=0.5), LogisticRegression(max_iter=500)
)
search = GridSearchCV(pipeline, {"msda__noise": [0.3, 0.6], "msda__n_layers": [1, 2]}, cv=3).fit(
    documents, labels
)
print(search.best_params_, f"accuracy {search.best_score_:.1%}")
search.best_estimator_  # noqa: B018 (shown on the page)

# %%
# Blocks of rows, one after another, give the layer that all rows at once give:

X = CountVectorizer(max_features=200, binary=True).fit_transform(domain.texts).astype(np.float64)
whole, in_blocks = MDA(noise=0.5).fit(X), MDA(noise=0.5)
for start in range(0, X.shape[0], 100):
    in_blocks.partial_fit(X[start : start + 100])

figure, panels = plt.subplots(1, 2, figsize=(6, 3), layout="constrained", sharey=True)
for axes, (title, layer) in zip(
    panels, {"all rows": whole.layer_, "blocks": in_blocks.layer_}.items(), strict=True
):
    axes.imshow(layer.coef[:40, :40], cmap="RdBu", vmin=-0.5, vmax=0.5)
    axes.set(title=title, xlabel="reconstructed term", xticks=[], yticks=[])
panels[0].set_ylabel("term")
print("largest difference of a weight:", np.abs(whole.layer_.coef - in_blocks.layer_.coef).max())

# %%
# Data frames in and out, as scikit-learn does it:

frame = MDA(noise=0.5).set_output(transform="pandas").fit(X.toarray()).transform(X[:3].toarray())
print(frame.iloc[:, :4])
