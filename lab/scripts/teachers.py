"""Scores of an encoder that is taught on each domain of fdu-mtl and natural, for all rows of the corpus.

    python lab/scripts/teachers.py --out lab/results --device cuda

It needs the extra ``encoder``. It fine-tunes one encoder for each domain (four epochs, the best of three
learning rates by a fifth of the labels, then again on all labels), and writes ``teachers-CORPUS.npz`` after
each. Started again, it goes on with the domains that are left. The stored scores were measured by an earlier
form of this script, with the same model, rows and settings.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # this lab, installed or not

from undrift_lab.teachers import KINDS, TeacherScores, fingerprint, read_scores, write_scores

CORPORA = ("fdu-mtl", "natural")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("lab/results"), help="folder of the scores")
    parser.add_argument("--corpora", nargs="+", default=list(CORPORA), choices=CORPORA)
    parser.add_argument("--device", default="cpu")
    return parser.parse_args()


def score_frozen(domains: list[Any], embeddings: np.ndarray, starts: list[int]) -> np.ndarray:
    """Score all rows by logistic regression on frozen embeddings, an encoder's domain after another."""
    from sklearn.linear_model import LogisticRegression

    embeddings = embeddings / np.linalg.norm(embeddings, axis=1, keepdims=True)
    scores = []
    for domain, start in zip(domains, starts, strict=True):
        model = LogisticRegression(max_iter=1000).fit(
            embeddings[start + domain.train], domain.y[domain.train]
        )
        scores.append(model.decision_function(embeddings))
    return np.array(scores)


def teach(name: str, out: Path, device: str) -> None:
    """Teach the encoders of a corpus that are left, and write the scores after each."""
    from undrift_lab.corpora import LOADERS
    from undrift_lab.encoder import choose_rate, embed, fine_tune, load_model, tokenise

    domains, path = list(LOADERS[name]().domains.values()), out / f"teachers-{name}.npz"
    model, tokens = load_model(device), tokenise([text for d in domains for text in d.texts], device)
    starts = np.cumsum([0, *(len(domain) for domain in domains)]).tolist()[:-1]
    if not path.exists():
        about = [
            [d.name for d in domains],
            [len(d) for d in domains],
            [fingerprint(d.texts) for d in domains],
        ]
        frozen = score_frozen(domains, embed(model, tokens).cpu().numpy(), starts)
        scores = dict(zip(KINDS, (frozen, np.full_like(frozen, np.nan)), strict=True))
        write_scores(path, TeacherScores(*map(tuple, about), scores))
    teachers = read_scores(path)
    for i, (domain, start) in enumerate(zip(domains, starts, strict=True)):
        if not np.isnan(teachers.scores["finetuned"][i]).any():
            continue
        began, y = time.time(), domain.y[domain.train].astype(int)
        train = tokens.take(start + domain.train)
        rate, error = choose_rate(model, train, y)
        teachers.scores["finetuned"][i] = fine_tune(model, train, y, rate).score(tokens)
        write_scores(path, teachers)
        says = f"rate {rate:g}, held-out error {error:.3f}, {time.time() - began:.0f} s"
        print(f"{name} {domain.name}: {says}", flush=True)


def main() -> None:
    options = parse_arguments()
    options.out.mkdir(parents=True, exist_ok=True)
    for name in options.corpora:
        teach(name, options.out, options.device)


if __name__ == "__main__":
    main()
