"""Decision thresholds of the fallback: of the source, or moved until a target has the source's shares."""

from __future__ import annotations

import warnings
from itertools import permutations

import numpy as np
from harness import draw_share

ROWS = 800  # of each domain
REVIEWS = ("books:kitchen_housewares", "dvd:baby", "electronics:books", "music:electronics")
HALVES = ("comp-rec", "comp-talk", "rec-talk")
CASES = {  # every how many pairs, and the share of class 1 in the target
    "crisis": (1, None),
    "debt": (3, None),
    "natural": (8, None),
    "newsgroups": (1, None),
    "fdu-mtl at 10%": (1, 0.1),
    "fdu-mtl at 50%": (1, 0.5),
    "fdu-mtl at 90%": (1, 0.9),
}


def list_pairs(corpus, name: str, step: int) -> list[tuple[str, str]]:
    """Return pairs of a source and a target."""
    if name.startswith("fdu-mtl"):
        return [tuple(pair.split(":")) for pair in REVIEWS]
    if name == "newsgroups":
        return [pair for topic in HALVES for pair in permutations((f"{topic}-first", f"{topic}-second"))]
    return list(permutations(corpus.domains, 2))[::step]


def draw_rows(domain, share: float | None, seed: int) -> tuple[list[str], np.ndarray]:
    """Draw labelled rows of a domain."""
    rows, y = np.unique(np.concatenate([domain.train, domain.test])), np.asarray(domain.y)
    if share is None:
        drawn = np.random.default_rng(seed).permutation(rows)[:ROWS]
    else:
        drawn = draw_share(y, rows, share, ROWS, seed)
    return [domain.texts[i] for i in drawn], y[drawn].astype(int)


def measure_pair(source, target, share: float | None) -> list[float]:
    """Return the errors of the source-only classifier on a target."""
    from undrift import TermVectorizer
    from undrift.method import MSDAClassifier
    from undrift.method.calibrate import find_border
    from undrift.method.solve import predict_codes

    (texts, y), (target_texts, truth) = draw_rows(source, None, 1), draw_rows(target, share, 2)
    terms = TermVectorizer(5000).fit([*texts, *target_texts])
    X, Z = terms.transform(texts), terms.transform(target_texts)
    model = MSDAClassifier(1, self_training=False, random_state=0).fit(X, y, Z)
    state = model.update_state_
    scores = Z @ state.baseline_weights + state.baseline_intercept
    shares, temperature = np.bincount(y, minlength=2) / len(y), state.held_out.temperature
    shifts = 0.0, temperature * np.log(shares[1] / shares[0]), find_border(scores, temperature, shares)
    return [float(np.mean(predict_codes(scores + shift) != truth)) for shift in shifts]


def main() -> None:
    from undrift import UndriftWarning
    from undrift_lab.corpora import LOADERS

    warnings.simplefilter("ignore", UndriftWarning)
    print("| targets | pairs | classes alike | the source's odds | the source's shares in the target |")
    print("| --- | ---: | ---: | ---: | ---: |")
    means = []
    for name, (step, share) in CASES.items():
        corpus = LOADERS[name.split()[0]]()
        pairs = list_pairs(corpus, name, step)
        errors = [measure_pair(corpus.domains[a], corpus.domains[b], share) for a, b in pairs]
        means.append(np.mean(errors, axis=0))
        print(f"| {name} | {len(pairs)} | {' | '.join(f'{mean:.1%}' for mean in means[-1])} |", flush=True)
    print(f"| mean | | {' | '.join(f'{mean:.1%}' for mean in np.mean(means, axis=0))} |")


if __name__ == "__main__":
    main()
