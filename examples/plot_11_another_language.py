"""
Another language
================

Reviews of restaurants have labels, reviews of phones do not. Both are in Chinese, without spaces between words. Nothing needs to be set.
The sentences are generated. A sentence has an opinion that both domains share, or one of its domain, or both.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from undrift import TextAdapter

SHARED = {"good": ["很好", "喜欢", "值得买", "满意"], "bad": ["很差", "讨厌", "不值", "失望"]}
DOMAINS = {
    "restaurants": {
        "good": ["好吃", "新鲜", "香", "热情"],
        "bad": ["难吃", "太咸", "油腻", "冷淡"],
        "things": ["菜", "汤", "米饭", "服务员"],
    },
    "phones": {
        "good": ["流畅", "清晰", "耐用", "轻薄"],
        "bad": ["卡顿", "模糊", "发热", "笨重"],
        "things": ["屏幕", "电池", "相机", "系统"],
    },
}
rng = np.random.default_rng(0)


def write_clause(words, label):
    """Return a thing and an opinion about it; one opinion in ten contradicts the label."""
    label = label if rng.random() < 0.9 else {"good": "bad", "bad": "good"}[label]
    return rng.choice(words["things"]) + rng.choice((SHARED if rng.random() < 0.4 else words)[label])


def write_reviews(domain, n=600):
    """Return reviews of three clauses, and their labels."""
    labels = rng.choice(["good", "bad"], n)
    return [
        "，".join(write_clause(DOMAINS[domain], label) for _ in range(3)) + "。" for label in labels
    ], labels


restaurants, labels = write_reviews("restaurants")
phones, truth = write_reviews("phones")
print(restaurants[0], phones[0], sep="\n")

# %%
# Words are not separated, so terms are made of characters:

adapter = TextAdapter().fit(restaurants, labels, phones)
print(adapter.vectorizer_.tokens_, "-", adapter.vectorizer_.tokens_reason_)

characters = make_pipeline(TfidfVectorizer(analyzer="char_wb", ngram_range=(1, 3)), LinearSVC())
errors = {
    "trained on restaurants": np.mean(characters.fit(restaurants, labels).predict(phones) != truth),
    "adapted": np.mean(adapter.predict(phones) != truth),
}
for phrase in ("屏幕清晰", "系统卡顿"):  # the screen is clear; the system stutters
    print(phrase, adapter.predict([phrase])[0])

figure, axes = plt.subplots(figsize=(5, 2), layout="constrained")
bars = axes.barh(list(errors), list(errors.values()), color=["#b0b0b0", "#2a6fbb"])
axes.bar_label(bars, [f"{error:.1%}" for error in errors.values()], padding=3)
axes.set(xlabel="error on reviews of phones", xlim=(0, 0.6))
axes.spines[["top", "right"]].set_visible(False)
