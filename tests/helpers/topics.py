"""Texts of several classes with long names, in two domains that share some of their words."""

import numpy as np

GROUPS = [
    "talk.politics.mideast", "talk.politics.guns", "talk.politics.misc", "talk.religion.misc",
    "comp.graphics.opengl", "comp.sys.ibm.pc.hardware", "comp.sys.mac.hardware", "rec.sport.baseball",
    "rec.sport.hockey", "sci.crypt",
]  # fmt: skip
INTENTS = [
    f"{topic}_{wish}"
    for topic in ("account", "payment_problem", "card", "travel", "smart_home_devices", "insurance_claim")
    for wish in ("cancel", "open_a_new_one", "question", "fees_and_charges", "change_details")
]
NAMES = {3: GROUPS[:3], 10: GROUPS, 30: INTENTS}


def make_topics(n_classes: int, domain: str, n_rows: int) -> tuple[list[str], list[str]]:
    """Return texts and labels; a text may have words of a second class, so that some are hard."""
    rng, names = np.random.default_rng([n_classes, len(domain)]), NAMES[n_classes]
    texts, labels = [], []
    for i in range(n_rows):
        k = i % n_classes
        words = [f"{domain}word{k}{letter}" for letter in rng.choice(list("abc"), 2)]
        words += [f"topic{k}{letter}" for letter in rng.choice(list("abcdefgh"), rng.integers(0, 4))]
        other = (k + 1) % n_classes
        words += [f"topic{other}{letter}" for letter in rng.choice(list("abcdefgh"), rng.integers(0, 2))]
        words += [f"noise{number}" for number in rng.integers(0, 60, 6)]
        texts.append(" ".join(rng.permutation(words).tolist()))
        labels.append(names[k])
    return texts, labels
