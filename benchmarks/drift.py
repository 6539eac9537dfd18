"""False alarms of `undrift predict --check`, and the drift that it detects, on batches of fdu-mtl.

Of every pair the model sees the source and half of the target's labelled rows, without their labels. Batches
come from the other half (the same domain: any alarm is false), from every other domain, from sentences in
other languages, and from the other half with 30 points more or fewer rows of class 1.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator

import numpy as np
from harness import data_folder

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
KINDS = ("same domain", "another domain", "another language", "a share changed by 30 points")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", nargs="+", default=PAIRS, metavar="SOURCE:TARGET")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--batches", type=int, default=20, help="of every kind, for every pair")
    parser.add_argument("--size", type=int, default=300, help="rows of a batch")
    parser.add_argument("--rows", type=int, help="of each domain, at most, for a trial")
    parser.add_argument("--terms", type=int, default=5000)
    parser.add_argument("--layers", type=int, default=5)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def fit_pair(texts, y, target_texts, args):
    """Fit a model as `undrift adapt` does, with what it stores of its target."""
    from undrift import TextAdapter, text_classifier
    from undrift.jobs.drift import add_predictions, describe_target
    from undrift.jobs.predict import predict_rows
    from undrift.text import TFIDF_LENGTH, TermVectorizer

    classifier = text_classifier(n_layers=args.layers, device=args.device, random_state=args.seed)
    adapter = TextAdapter(TermVectorizer(args.terms, length=TFIDF_LENGTH), classifier)
    adapter.fit(texts, y, target_texts)
    X = adapter.vectorizer_.transform(target_texts)
    statistics = describe_target(adapter, X, target_texts)
    counts = predict_rows(adapter, X, -1).count()
    adapter.target_statistics_ = [add_predictions(statistics, counts, len(adapter.classes_))]
    return adapter


class Pool:
    """Rows that batches are drawn from, predicted once."""

    def __init__(self, adapter, documents, y=None):
        from undrift.jobs.predict import predict_rows

        self.adapter, self.documents, self.y = adapter, documents, y
        self.X = adapter.vectorizer_.transform(documents)
        self.predictions = predict_rows(adapter, self.X, -1)

    def check(self, rows: np.ndarray) -> dict:
        """Check a batch of these rows."""
        from dataclasses import replace

        from undrift.jobs import Batch, check_batch

        p = self.predictions
        chosen = replace(
            p,
            codes=p.codes[rows],
            score=p.score[rows],
            probabilities=p.probabilities[rows],
            n_known=p.n_known[rows],
        )
        batch = Batch(self.adapter)
        batch.add(self.X[rows], [self.documents[i] for i in rows], chosen)
        return check_batch(batch)


def draw_shares(y: np.ndarray, share: float, n: int, rng: np.random.Generator) -> np.ndarray:
    """Draw rows of which `share` are of class 1; fewer than n where a class is too small."""
    ones, zeros = np.flatnonzero(y == 1), np.flatnonzero(y == 0)
    n = int(min(n, len(ones) / max(share, 1e-9), len(zeros) / max(1 - share, 1e-9)))
    n_ones = round(n * share)
    return np.append(rng.choice(ones, n_ones, replace=False), rng.choice(zeros, n - n_ones, replace=False))


def write_foreign(n: int, rng: np.random.Generator) -> list[str]:
    """Write documents of a few sentences, all in one language."""
    sentences = SENTENCES[rng.choice(list(SENTENCES))]
    return [" ".join(rng.choice(sentences, rng.integers(2, 6))) for _ in range(n)]


def check_pair(corpus, pair: str, args: argparse.Namespace) -> Iterator[tuple[str, dict]]:
    """Yield the kind of every batch, and its check."""
    rng = np.random.default_rng([args.seed, args.pairs.index(pair)])

    def labelled(name: str) -> tuple[list[str], np.ndarray]:
        domain = corpus.domains[name]
        rows = rng.permutation(np.concatenate([domain.train, domain.test]))[: args.rows]
        return [domain.texts[i] for i in rows], domain.y[rows]

    source, target = pair.split(":")
    (texts, y), (target_texts, target_y) = labelled(source), labelled(target)
    half = len(target_texts) // 2
    adapter = fit_pair(texts, y, target_texts[:half], args)
    same = Pool(adapter, target_texts[half:], target_y[half:])
    size = min(args.size, half // 2)
    n_batches = {kind: args.batches if kind in args.kinds else 0 for kind in KINDS}
    for _ in range(n_batches[KINDS[0]]):
        yield KINDS[0], same.check(rng.choice(half, size, replace=False))
    others = [name for name in corpus.domains if name != target]
    pools: dict[str, Pool] = {}
    for i in range(n_batches[KINDS[1]]):
        name = others[i % len(others)]
        if name not in pools:
            pools[name] = Pool(adapter, labelled(name)[0][: 2 * size])
        pool = pools[name]
        yield KINDS[1], pool.check(rng.choice(len(pool.documents), size, replace=False))
    for _ in range(n_batches[KINDS[2]]):
        yield KINDS[2], Pool(adapter, write_foreign(size, rng)).check(np.arange(size))
    before = float(target_y[:half].mean())
    for i in range(n_batches[KINDS[3]]):
        share = before + (0.3 if i % 2 else -0.3)
        yield KINDS[3], same.check(draw_shares(same.y, share, size, rng))


def main() -> None:
    from undrift import UndriftWarning
    from undrift.datasets import load_fdu_mtl

    warnings.simplefilter("ignore", UndriftWarning)
    args, began = parse_arguments(), time.perf_counter()
    corpus = load_fdu_mtl(data_folder() / "fdu-mtl")
    alarms: dict[str, list[bool]] = {}
    causes: dict[str, dict[str, int]] = {}
    for pair in args.pairs:
        for kind, check in check_pair(corpus, pair, args):
            alarms.setdefault(kind, []).append(check["drifted"])
            for name, value in check.items():
                if name == "predicted_shares":
                    is_cause = any("class shares differ" in reason for reason in check["reasons"])
                else:
                    is_cause = isinstance(value, dict) and value["batch"] > value["limit"]
                if is_cause:
                    causes.setdefault(kind, {}).setdefault(name, 0)
                    causes[kind][name] += 1
        print(f"{pair}: " + ", ".join(f"{kind} {np.mean(v):.1%}" for kind, v in alarms.items()), flush=True)
    print("\n| batches | number | called drift | by |\n| --- | ---: | ---: | --- |")
    for kind, values in alarms.items():
        by = ", ".join(f"{name.replace('_', ' ')} {n}" for name, n in causes.get(kind, {}).items())
        print(f"| {kind} | {len(values)} | {np.mean(values):.1%} | {by} |")
    print(f"\n{time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
