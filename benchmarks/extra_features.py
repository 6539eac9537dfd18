"""Error on a target domain with and without extra features beside 1,500 terms.

The extra features are 100 latent dimensions of character n-grams and of 40,000 uni- and bigrams of the same
documents, and, where the package `wordllama` is installed, its embeddings: 256 numbers a document, the mean
of the vectors of its tokens, which were learnt elsewhere. Eight pairs of fdu-mtl, the labelled rows of each
domain (1,200 at most); target labels are used for scoring only.
"""

from __future__ import annotations

import argparse
from importlib.util import find_spec

import numpy as np
from harness import data_folder, report

PAIRS = (
    ("books", "kitchen_housewares"),
    ("dvd", "electronics"),
    ("health_personal_care", "music"),
    ("camera_photo", "video"),
    ("baby", "books"),
    ("video", "sports_outdoors"),
    ("electronics", "dvd"),
    ("music", "health_personal_care"),
)
WAYS = {
    "none": ((), {}),
    "characters": (("characters",), {}),
    "terms": (("terms",), {}),
    "both": (("characters", "terms"), {}),
    "embeddings": (("embeddings",), {}),
    "embeddings and terms": (("embeddings", "terms"), {}),
}


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=int, default=1200)
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--dimensions", type=int, default=100)
    parser.add_argument("--ways", default=",".join(WAYS), help="some of these, separated by commas")
    return parser.parse_args()


def make_features(documents: list[str], n_dimensions: int) -> dict[str, np.ndarray]:
    """Reduce the documents to latent dimensions, of two kinds, and embed them."""
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    common = {"sublinear_tf": True, "dtype": np.float32}
    kinds = {
        "characters": TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 4), max_features=20_000, **common),
        "terms": TfidfVectorizer(ngram_range=(1, 2), min_df=2, max_features=40_000, **common),
    }
    reduce = TruncatedSVD(n_dimensions, random_state=0).fit_transform
    features = {name: reduce(kind.fit_transform(documents)) for name, kind in kinds.items()}
    if find_spec("wordllama"):
        from undrift.bench.methods.peers import embed_terms

        features["embeddings"] = embed_terms(documents).astype(np.float32)
    return features


def main() -> None:
    from undrift.datasets import load_fdu_mtl
    from undrift.text.adapter import text_classifier
    from undrift.text.vectorizer import TermVectorizer

    args = parse_arguments()
    domains = load_fdu_mtl(data_folder() / "fdu-mtl").domains
    names = sorted({name for pair in PAIRS for name in pair})
    labelled = {name: np.flatnonzero(~np.isnan(domains[name].y))[: args.rows] for name in names}
    documents = [domains[name].texts[i] for name in names for i in labelled[name]]
    edges = np.cumsum([0, *(len(labelled[name]) for name in names)])
    place = {name: slice(*edges[i : i + 2]) for i, name in enumerate(names)}
    X = TermVectorizer(1500, length=5.0).fit(documents).transform(documents)
    E = make_features(documents, args.dimensions)
    for self_training in (False, True):
        records = {}
        for way in args.ways.split(","):
            kinds, options = WAYS[way]
            if not set(kinds) <= set(E):
                continue
            settings = {"n_layers": args.layers, "max_upper_rows": 2000, "random_state": 0, **options}
            errors = []
            for source, target in PAIRS:
                here, there = ([E[kind][place[name]] for kind in kinds] for name in (source, target))
                model = text_classifier(self_training=self_training, **settings)
                y = domains[source].y[labelled[source]]
                model.fit(X[place[source]], y, X[place[target]], extra=here, extra_target=there)
                truth = domains[target].y[labelled[target]]
                errors.append(100 * (1 - model.score(X[place[target]], truth, extra=there)))
            records[way] = {"mean_error_percent": float(np.mean(errors)), "errors_percent": errors}
        report(f"self-training: {self_training}", records)


if __name__ == "__main__":
    main()
