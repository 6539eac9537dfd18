"""A user's script, for type checkers: a line that ends in `# refused` is an error, and no other line is."""

from typing import assert_type

import numpy as np
from sklearn.pipeline import Pipeline

from undrift import (
    MDA,
    MSDA,
    DistilledText,
    MSDAClassifier,
    TermVectorizer,
    TextAdapter,
    adaptation_report,
    load_model,
    save_model,
)

X = np.eye(4)
y = ["good", "bad", "good", None]
texts = ["gripping prose", "dull prose", "gripping end", "dull end"]

assert_type(MDA(0.5).fit(X), MDA)
assert_type(MSDA(2, noise=0.7).fit(X), MSDA)
assert_type(TextAdapter(400).fit(texts, y, texts), TextAdapter)
assert_type(TextAdapter(tokens="words").fit(texts, y, {"kitchen": texts}).terms_, list[str])

hidden: np.ndarray = MSDA(2).fit(X).transform(X)
MSDA(n_pivots=2, random_state=0, noise=0.5)
MSDA(n_layer=2)  # refused
MDA(ridges=0.1)  # refused
MDA(noise="much")  # refused
MSDA("two")  # refused
MSDA().fit(X, sample_domains=[0, 0, 1, 1])  # refused

classifier = MSDAClassifier(noise=[0.5, 0.7], n_layers=[1, 2], C=1.0)
assert_type(classifier.fit(X, y, {"kitchen": X}, y_target={"kitchen": y}), MSDAClassifier)
MSDAClassifier(centre="classes")  # refused
classifier.fit(X, [0, 1, 0, 1], X, target=X)  # refused
adapter = TextAdapter(classifier=classifier).fit(texts, y, texts, y_target=[None, None, None, "bad"])
adapter.fit(texts, y, texts, sample_weight=np.ones(4))
adapter.fit(texts, y, X_target=texts)  # refused
adapter.fit(texts, y, texts, y_targets=y)  # refused
adapter.predict(texts, targets="kitchen")  # refused
TextAdapter(n_term=400)  # refused
TextAdapter(n_terms="many")  # refused

assert_type(adapter.expected_error_[0] is None, bool)
save_model(adapter, "model.safetensors")
save_model(adapter)  # refused
load_model(path=3)  # refused
adapter.predict_frame(texts)["prediction"].tolist()
adapter.predict_frame(texts, index=[0, 1, 2, 3])  # refused
assert_type(adapter.predict_held_out(texts), tuple[np.ndarray, np.ndarray])
assert_type(adapter.predict(texts), np.ndarray)
assert_type(adapter.predict_proba(texts), np.ndarray)
assert_type(adapter.align(texts), TextAdapter)
assert_type(adapter.update(texts, y), TextAdapter)
assert_type(adapter.ask(texts, 2), np.ndarray)
assert_type(adapter.ask(texts, 2, return_weights=True), tuple[np.ndarray, np.ndarray])
adapter.ask(texts, 2, "everything")  # refused
adaptation_report(adapter, texts, np.array([1, 0, 1, 0]), texts)
small = adapter.distill(texts)
assert_type(small, DistilledText)
assert_type(small.predict(texts), np.ndarray)
assert_type(small.to_sklearn(), Pipeline)
small.to_sklearn(targets="kitchen")  # refused
assert_type(classifier.predict(X), np.ndarray)
assert_type(classifier.predict_proba(X, target="kitchen"), np.ndarray)
assert_type(classifier.decision_function(X), np.ndarray)
assert_type(TermVectorizer().fit(texts), TermVectorizer)
