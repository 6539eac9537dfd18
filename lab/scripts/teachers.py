"""Scores of an encoder that is taught on each domain of fdu-mtl and natural, for all rows of the corpus.

Two steps, which may run on two machines:

    python lab/scripts/teachers.py bundle teachers.npz
    python lab/scripts/teachers.py train teachers.npz --out lab/results --device cuda

The first needs the data and the extra ``encoder``: it stores token ids, labels and weights in one file. The
second needs that file, torch and scikit-learn alone. It fine-tunes one encoder for each domain (four epochs,
the best of three learning rates by a fifth of the labels, then again on all labels), and writes
``teachers-CORPUS.npz`` after each. Started again, it goes on with the domains that are left.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # this lab, installed or not

from undrift_lab.teachers import KINDS, TeacherScores, fingerprint, read_scores, write_scores

CORPORA = ("fdu-mtl", "natural")
UNKNOWN = -1  # label


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("step", choices=["bundle", "train"])
    parser.add_argument("bundle", type=Path, help="the file of token ids, labels and weights")
    parser.add_argument("--out", type=Path, default=Path("lab/results"), help="folder of the scores")
    parser.add_argument("--corpora", nargs="+", default=list(CORPORA), choices=CORPORA)
    parser.add_argument("--rows", type=int, help="of each part of a domain, for a trial")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--jobs", type=int, default=1, help="encoders that are trained at once")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="after which none is begun")
    return parser.parse_args()


def write_bundle(path: Path, corpora: list[str], n_rows: int | None) -> None:
    """Store token ids, labels and the weights that they need. Rows of unused tokens are left out."""
    from undrift_lab.corpora import LOADERS
    from undrift_lab.encoder import MAX_TOKENS, load_weights, tokenise

    arrays: dict[str, Any] = {}
    ids: list[np.ndarray] = []
    for name in corpora:
        domains = LOADERS[name]().domains.values()
        parts = [(domain, _choose_rows(domain, n_rows)) for domain in domains]
        texts = [[domain.texts[i] for i in rows] for domain, rows in parts]
        ids += [each for part in texts for each in tokenise(part)]
        arrays[f"{name}/domains"] = np.array([domain.name for domain, _ in parts])
        arrays[f"{name}/sizes"] = np.array([len(part) for part in texts])
        arrays[f"{name}/digests"] = np.array([fingerprint(part) for part in texts])
        labels = [np.where(np.isin(rows, domain.train), domain.y[rows], UNKNOWN) for domain, rows in parts]
        arrays[f"{name}/y"] = np.concatenate(labels).astype(np.int8)  # of train rows alone
    used, recoded = np.unique(np.concatenate(ids), return_inverse=True)
    weights = load_weights()
    words, places = "embeddings.word_embeddings.weight", "embeddings.position_embeddings.weight"
    weights |= {words: weights[words][used], places: weights[places][:MAX_TOKENS]}
    arrays |= {f"weights/{name}": value.astype(np.float16) for name, value in weights.items()}
    arrays |= {"ids": recoded.astype(np.uint16), "lengths": np.array([len(each) for each in ids], np.uint16)}
    np.savez_compressed(path, **arrays)
    print(f"{path}: {len(ids):,} documents, {len(used):,} tokens, {path.stat().st_size / 2**20:.1f} MiB")


def _choose_rows(domain: Any, n_rows: int | None) -> np.ndarray:
    """Return all rows, or the first ones of each part."""
    parts = (domain.train, domain.test, domain.unlabelled)
    return np.unique(np.concatenate([part[:n_rows] for part in parts]))


@dataclass(frozen=True)
class Lessons:
    """What a process needs to teach the encoders of one corpus."""

    bundle: Path
    name: str
    device: str
    deadline: float  # as `time.time` counts

    def load(self) -> tuple[Mapping[str, Any], Any, np.ndarray]:
        """Return weights, tokens and labels on the device."""
        import torch

        from undrift_lab.encoder import pad

        with np.load(self.bundle) as stored:
            names = [name for name in stored.files if name.startswith("weights/")]
            corpora = [name.removesuffix("/sizes") for name in stored.files if name.endswith("/sizes")]
            first = sum(int(stored[f"{c}/sizes"].sum()) for c in corpora[: corpora.index(self.name)])
            last = first + int(stored[f"{self.name}/sizes"].sum())
            ends = np.cumsum(stored["lengths"].astype(int))
            documents = np.split(stored["ids"], ends[:-1])[first:last]
            weights = {
                name.removeprefix("weights/"): torch.as_tensor(stored[name], device=self.device).float()
                for name in names
            }
            return weights, pad(documents, self.device), stored[f"{self.name}/y"]

    def teach(self, source: int, rows: slice) -> tuple[int, np.ndarray | None, str]:
        """Fine-tune the encoder of a domain, and score all rows of the corpus."""
        from undrift_lab.encoder import choose_rate, fine_tune

        began = time.time()
        if began > self.deadline:
            return source, None, "not begun: time is up"
        weights, tokens, y = self.load()
        train = np.arange(rows.start, rows.stop)[y[rows] != UNKNOWN]
        rate, error = choose_rate(weights, tokens.take(train), y[train])
        classifier = fine_tune(weights, tokens.take(train), y[train], rate)
        scores = classifier.score(tokens)
        return source, scores, f"rate {rate:g}, held-out error {error:.3f}, {time.time() - began:.0f} s"


def train(lessons: Lessons, out: Path, jobs: int) -> None:
    """Teach the encoders of a corpus that are left, and write the scores after each."""
    from joblib import Parallel, delayed

    path = out / f"teachers-{lessons.name}.npz"
    if not path.exists():
        write_scores(path, _score_frozen(lessons))
    teachers = read_scores(path)
    ends = np.cumsum(teachers.sizes)
    left = [i for i in range(len(ends)) if np.isnan(teachers.scores["finetuned"][i]).any()]
    tasks = (delayed(lessons.teach)(i, slice(ends[i] - teachers.sizes[i], ends[i])) for i in left)
    for i, scores, message in Parallel(n_jobs=jobs, return_as="generator_unordered")(tasks):
        print(f"{lessons.name} {teachers.domains[i]}: {message}", flush=True)
        if scores is not None:
            teachers.scores["finetuned"][i] = scores
            write_scores(path, teachers)


def _score_frozen(lessons: Lessons) -> TeacherScores:
    """Score all rows by logistic regression on frozen embeddings, the encoder's own not yet."""
    from sklearn.linear_model import LogisticRegression

    from undrift_lab.encoder import embed

    with np.load(lessons.bundle) as stored:
        about = [tuple(stored[f"{lessons.name}/{part}"].tolist()) for part in ("domains", "sizes", "digests")]
    weights, tokens, y = lessons.load()
    embeddings = embed(weights, tokens).cpu().numpy()
    embeddings /= np.linalg.norm(embeddings, axis=1, keepdims=True)
    scores = np.full((len(KINDS), len(about[0]), len(y)), np.nan)
    for i, end in enumerate(np.cumsum(about[1])):
        rows = np.arange(end - about[1][i], end)
        rows = rows[y[rows] != UNKNOWN]
        model = LogisticRegression(max_iter=1000).fit(embeddings[rows], y[rows])
        scores[0, i] = model.decision_function(embeddings)
    return TeacherScores(*about, dict(zip(KINDS, scores, strict=True)))


def main() -> None:
    options = parse_arguments()
    if options.step == "bundle":
        write_bundle(options.bundle, options.corpora, options.rows)
        return
    options.out.mkdir(parents=True, exist_ok=True)
    lessons = Lessons(options.bundle, "", options.device, time.time() + options.seconds)
    for name in options.corpora:
        train(replace(lessons, name=name), options.out, options.jobs)


if __name__ == "__main__":
    main()
