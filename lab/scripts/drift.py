"""False alarms of `undrift predict --check`, and the drift that it detects, on batches of a corpus.

The vocabulary is that of the source and of some of the target's labelled rows. Batches come from the other
rows (the same domain: any alarm is false), from every other domain, from sentences in other languages, and
from the other rows with 30 points more or fewer rows of class 1, which are no drift of words.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
from harness import add_store, draw_share, store
from sklearn.linear_model import LogisticRegression

PAIRS = [
    "books:kitchen_housewares", "dvd:baby", "electronics:books", "music:electronics", "baby:camera_photo",
    "kitchen_housewares:dvd", "video:health_personal_care", "camera_photo:music",
    "sports_outdoors:video", "health_personal_care:sports_outdoors",
]  # fmt: skip
SENTENCES = {
    "German": [
        "Das Gerät ist leider nach zwei Wochen kaputt gegangen.",
        "Ich bin sehr zufrieden und würde es wieder kaufen.",
        "Die Lieferung war schnell, aber die Qualität enttäuscht.",
        "Für den Preis kann man nichts Besseres erwarten.",
        "Meine Tochter hat sich riesig darüber gefreut.",
        "Der Klang ist in Ordnung, der Bass etwas schwach.",
        "Nie wieder, das Geld war völlig verschwendet.",
        "Ein tolles Buch, das man nicht aus der Hand legt.",
    ],
    "Spanish": [
        "El producto llegó roto y nadie contesta a mis mensajes.",
        "Estoy muy contento con la compra y lo recomiendo.",
        "La batería dura poco, pero la pantalla es buena.",
        "Es una película aburrida con un final absurdo.",
        "Mi hijo juega con esto todos los días.",
        "Por este precio no se puede pedir más.",
        "No funciona como dice la descripción.",
        "La calidad es excelente y el envío fue rápido.",
    ],
    "Chinese": [
        "这个产品质量很好，我很满意。",
        "用了两天就坏了，非常失望。",
        "物流很快，包装也不错。",
        "声音太小，不值这个价钱。",
        "孩子很喜欢，每天都在玩。",
        "说明书看不懂，客服也不回答。",
        "这本书写得非常精彩。",
        "下次还会再买，推荐给大家。",
    ],
}  # fmt: skip
MEASURES = ("unseen_terms", "difference")
KINDS = ("same domain", "another domain", "another language", "a share changed by 30 points")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", default="fdu-mtl")
    parser.add_argument("--pairs", nargs="+", default=PAIRS, metavar="SOURCE:TARGET")
    parser.add_argument("--batches", type=int, default=20, help="of every kind, for every pair")
    parser.add_argument("--sizes", type=int, nargs=2, default=(100, 1000), help="least and most rows of one")
    parser.add_argument("--fit", type=int, default=1000, help="rows of the target that the fit sees")
    parser.add_argument("--rows", type=int, help="of each domain, at most, for a trial")
    parser.add_argument("--terms", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0)
    add_store(parser)
    return parser.parse_args()


def start_pair(texts: list[str], y: np.ndarray, target_texts: list[str], n_terms: int):
    """Return the vocabulary of a pair, what a model keeps of its target, and the directions of its classes.

    The classes are those of a logistic regression on the source, in place of the model.
    """
    from undrift import TermVectorizer
    from undrift.app.drift import describe_target, keep_terms, span_classes

    vectorizer = TermVectorizer(n_terms).fit([*texts, *target_texts])
    adapter = SimpleNamespace(vectorizer_=vectorizer, terms_=vectorizer.terms_)
    reference = describe_target(adapter, target_texts)
    rows = keep_terms(vectorizer.transform(texts), reference["is_known"])
    p = LogisticRegression(C=25).fit(rows, y).predict_proba(reference["rows"])
    return adapter, reference, span_classes(reference["rows"], p)


def check_batch(adapter, reference, directions: np.ndarray, documents: list[str]):
    """Check a batch as `undrift predict --check` does."""
    from undrift.app.drift import check_drift

    return check_drift(adapter, reference, documents, directions)


def write_foreign(n: int, rng: np.random.Generator) -> list[str]:
    """Write documents of a few sentences, all in one language."""
    sentences = SENTENCES[rng.choice(list(SENTENCES))]
    return [" ".join(rng.choice(sentences, rng.integers(2, 6))) for _ in range(n)]


def draw_batches(corpus, pair: str, args: argparse.Namespace) -> Iterator[tuple[str, Any]]:
    """Yield the kind of every batch, and its check."""
    rng = np.random.default_rng([args.seed, args.pairs.index(pair)])

    def labelled(name: str) -> tuple[list[str], np.ndarray]:
        domain = corpus.domains[name]
        rows = rng.permutation(np.union1d(domain.train, domain.test))[: args.rows]
        return [domain.texts[i] for i in rows], domain.y[rows]

    source, target = pair.split(":")
    (texts, y_source), (target_texts, y) = labelled(source), labelled(target)
    n_fit = min(args.fit, len(target_texts) * 3 // 4)
    check = partial(check_batch, *start_pair(texts, y_source, target_texts[:n_fit], args.terms))
    same, y = target_texts[n_fit:], y[n_fit:]
    others = {name: labelled(name)[0] for name in corpus.domains if name != target}
    least, most = args.sizes
    for i in range(args.batches):
        size = int(rng.integers(min(least, len(same) // 2), min(most, len(same) * 4 // 5)))
        yield KINDS[0], check([same[j] for j in rng.choice(len(same), size, replace=False)])
        other = list(others.values())[i % len(others)]
        drawn = rng.choice(len(other), min(size, len(other)), replace=False)
        yield KINDS[1], check([other[j] for j in drawn])
        yield KINDS[2], check(write_foreign(size, rng))
        share = float(y.mean()) + (0.3 if i % 2 else -0.3)
        rows = draw_share(y, np.arange(len(y)), share, size, int(rng.integers(2**31)))
        yield KINDS[3], check([same[j] for j in rows])


def main() -> None:
    from undrift import UndriftWarning
    from undrift_lab.corpora import LOADERS

    warnings.simplefilter("ignore", UndriftWarning)
    args, began = parse_arguments(), time.perf_counter()
    corpus = LOADERS[args.corpus]()
    alarms: dict[str, list[bool]] = {}
    causes: dict[str, Counter] = {}
    for pair in args.pairs:
        for kind, check in draw_batches(corpus, pair, args):
            alarms.setdefault(kind, []).append(check.drifted)
            differing = [name for name in MEASURES if check.measures[name].drifted]
            causes.setdefault(kind, Counter()).update(differing)
        print(f"{pair}: " + ", ".join(f"{kind} {np.mean(v):.1%}" for kind, v in alarms.items()), flush=True)
    rows = []
    for kind, values in alarms.items():
        by = ", ".join(f"{name.replace('_', ' ')} {n}" for name, n in causes[kind].items())
        called = f"{100 * np.mean(values):.1f}"
        rows.append({"batches": kind, "number": len(values), "called drift, %": called, "by": by})
        print(" | ".join(["", *map(str, rows[-1].values()), ""]).strip())
    store("drift", rows)
    print(f"\n{time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
