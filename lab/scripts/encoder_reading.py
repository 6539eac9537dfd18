"""Sentence vectors as one more reading inside one language: would their vote help?

For every pair of domains: the error of undrift, of logistic regression on the vectors of the source, and of
undrift with the latter as one more reading, of one vote as `source only` has, or of half of all votes.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
from harness import add_store, report, store

from undrift import MSDAClassifier, TextAdapter
from undrift.method import Settings
from undrift.text.bridge import new_learner
from undrift.text.languages import encode_texts
from undrift_lab.corpora import load_fdu_mtl, load_named

PAIRS = (
    ("reviews", "fdu-mtl:books:kitchen_housewares"),
    ("reviews", "fdu-mtl:electronics:music"),
    ("airlines", "airline:delta:american"),
    ("airlines", "airline:southwest:delta"),
    ("sentiment, 3 classes", "hutto_sentiment3:amazon:tweets"),
    ("sentiment, 3 classes", "hutto_sentiment3:movies:nyt_editorials"),
    ("emotions", "emotion:isear:reddit_goemotions"),
    ("emotions", "emotion:reddit_goemotions:isear"),
    ("newsgroups", "newsgroups4:groups_a:groups_b"),
    ("questions", "question_types:mrda_meetings:swda_phone"),
    ("headlines", "clickbait:chakraborty2016:downs2014"),
    ("spam", "youtube_spam:eminem:katyperry"),
)


def load(corpus: str):
    return load_fdu_mtl() if corpus == "fdu-mtl" else load_named(corpus)


def draw(domain, n: int, seed: int) -> tuple[list[str], np.ndarray]:
    """Return n texts with a label."""
    known = np.flatnonzero([label is not None and label == label for label in domain.y.tolist()])
    rows = np.random.default_rng(seed).permutation(known)[:n]
    return [domain.texts[i] for i in rows], domain.y[rows]


def measure(source, target, n: int, seed: int) -> dict[str, float]:
    (texts, y), (new, truth) = draw(source, n, seed), draw(target, n, seed)
    adapter = TextAdapter(classifier=MSDAClassifier(random_state=0)).fit(texts, y, new)
    jury, classes = adapter.predict_proba(new), adapter.classes_
    vectors, others = (np.nan_to_num(encode_texts(each)) for each in (texts, new))
    alone = new_learner().fit(vectors, y).predict_proba(others)
    votes = Settings().votes
    if len(classes) == 2:
        total = votes.source_only + votes.unmoved + votes.centred + votes.estimated + votes.near + votes.flat
    else:
        total = votes.source_only + votes.unmoved + votes.centred + votes.estimated + votes.near
    kinds = {"undrift": jury, "vectors": alone}
    kinds |= {"one": (total * jury + alone) / (total + 1), "half": (jury + alone) / 2}
    return {kind: float(np.mean(classes[p.argmax(axis=1)] != truth)) for kind, p in kinds.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=500, help="of the source, and of the target")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--pairs", nargs="+", default=[pair for _, pair in PAIRS])
    add_store(parser)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    families = {pair: family for family, pair in PAIRS}
    by_family: dict[str, list[dict[str, float]]] = {}
    for pair in args.pairs:
        corpus, *names = pair.split(":")
        source, target = (load(corpus).domains[name] for name in names)
        records = [measure(source, target, args.rows, seed) for seed in range(args.seeds)]
        print(pair, records, flush=True)
        by_family.setdefault(families.get(pair, corpus), []).extend(records)
    table = {family: average(records) for family, records in by_family.items()}
    table["mean of families"] = average(list(table.values()))
    columns = {
        "undrift": "undrift, %",
        "vectors": "vectors alone, %",
        "one": "with their vote, %",
        "half": "with half of the votes, %",
    }
    rows = [
        {"family": name} | {says: f"{100 * own[kind]:.1f}" for kind, says in columns.items()}
        for name, own in table.items()
    ]
    store("encoder-reading", rows)
    report("Sentence vectors as one more reading in one language", table, rows=args.rows, seeds=args.seeds)


def average(records: list[dict[str, float]]) -> dict[str, float]:
    return {kind: float(np.mean([record[kind] for record in records])) for kind in records[0]}


if __name__ == "__main__":
    main()
