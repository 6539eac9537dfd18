"""Store scores of many tasks, so that estimates of shares and errors can be judged without new fits.

Two steps. The second may run on another machine, which needs torch and scikit-learn alone:

    python lab/scripts/trust_scores.py bundle trust-rows.npz
    python lab/scripts/trust_scores.py score trust-rows.npz --out FOLDER --device cuda --workers 8

For every task `score` learns the layers once. It stores held-out scores of the source, scores of the target
before any alignment, and predictions after self-training at each of several class shares. With the stored
scores of an encoder it also fits a student. `lab/scripts/trust.py` judges them.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
import zlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "lab")]  # this checkout, installed or not

SHARES = (0.01, 0.03, 0.06, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.94, 0.97, 0.99)
WIDTHS = {"amazon-bow": 5_000, "newsgroups": 60_000}  # columns of a corpus; others have more than any pair
WIDTH, PAIR_TERMS, SEVERAL_TERMS = 60_000, 20_000, 5_000
UNEVEN = ("baby", "dvd", "kitchen_housewares")
NINE = (("books", "kitchen_housewares"), ("music", "electronics"), ("baby", "dvd"))
SEVEN = (0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9)
SECONDS_BETWEEN = 15.0  # two writes of the results


@dataclass(frozen=True)
class Task:
    """A source and a target of a corpus, a share of positives in the target, and the rows that are seen."""

    kind: str  # "pair", "several", or "teacher" and how its labels were changed
    corpus: str
    source: str
    target: str
    share: float | None = None

    @property
    def name(self) -> str:
        return f"{self.kind}/{self.corpus}/{self.source}/{self.target}/{self.share or 0:g}"


def list_tasks(domains: dict[str, list[str]]) -> list[Task]:
    """List all tasks, the most telling first."""
    tasks = []
    for corpus in ("crisis", "debt", "natural"):
        tasks += [Task("pair", corpus, *pair) for pair in _pairs(domains[corpus])]
    halves = sorted({name.rsplit("-", 1)[0] for name in domains["newsgroups"]})
    for topics in halves:
        names = f"{topics}-first", f"{topics}-second"
        tasks += [Task("pair", "newsgroups", *names), Task("pair", "newsgroups", *names[::-1])]
    tasks += [Task("pair", "fdu-mtl", *pair, share) for pair in NINE for share in (0.1, 0.5, 0.9)]
    reviews = _pairs(domains["fdu-mtl"])
    tasks += [Task("teacher", "fdu-mtl", *pair) for pair in reviews]
    for share in (0.1, 0.5, 0.9):
        tasks += [Task("pair", "fdu-mtl", *pair, share) for pair in reviews if pair[1] in UNEVEN]
    tasks += [
        Task("several", "amazon-bow", *p, share) for share in SEVEN for p in _pairs(domains["amazon-bow"])
    ]
    for kind in ("teacher-flipped", "teacher-right", "teacher-few"):
        tasks += [Task(kind, "fdu-mtl", *pair) for pair in reviews[::3]]
    tasks += [Task("teacher", "fdu-mtl", *pair, share) for share in (0.2, 0.8) for pair in reviews[::3]]
    for share in (0.1, 0.5, 0.9):
        tasks += [Task("several", "fdu-mtl", *pair, share) for pair in reviews if pair[1] in UNEVEN]
    return list(dict.fromkeys(tasks))


def _pairs(names: list[str]) -> list[tuple[str, str]]:
    return [(a, b) for a in names for b in names if a != b]


def write_bundle(path: Path) -> None:
    """Store counts, labels and samples of all corpora."""
    from undrift_lab.parts import load_corpus, sample_target
    from undrift_lab.plan import CorpusSpec

    arrays: dict[str, Any] = {}
    for name in ("crisis", "debt", "natural", "newsgroups", "fdu-mtl", "amazon-bow"):
        corpus = load_corpus(CorpusSpec(loader=name, max_features=WIDTH), None, WIDTHS.get(name, WIDTH))
        arrays[f"{name}/domains"] = np.array(list(corpus.domains))
        for domain in corpus.domains.values():
            key, X = f"{name}/{domain.name}", sp.csr_array(domain.X)
            arrays[f"{key}/indices"] = X.indices.astype(np.uint16)
            arrays[f"{key}/data"] = np.minimum(X.data, 255).astype(np.uint8)
            arrays[f"{key}/lengths"] = np.diff(X.indptr).astype(np.uint16)
            arrays[f"{key}/shape"] = np.array(X.shape)
            y = np.asarray(domain.y, dtype=float)
            labels = np.full(len(y), np.nan)
            labels[np.union1d(domain.train, domain.test)] = y[np.union1d(domain.train, domain.test)]
            arrays[f"{key}/y"] = (labels == np.nanmax(labels)).astype(np.int8) - 2 * np.isnan(labels)
            arrays[f"{key}/train"], arrays[f"{key}/test"] = domain.train, domain.test
            if name in ("fdu-mtl", "amazon-bow"):
                for share in (*SEVEN,):
                    sampled = sample_target(corpus, domain.name, share, 2500, 0)[1]
                    arrays[f"{key}/sample{share:g}"] = sampled
    np.savez_compressed(path, **arrays)
    print(f"{path}: {path.stat().st_size / 2**20:.1f} MiB")


class Rows:
    """The rows of a bundle, read when they are first needed."""

    def __init__(self, path: Path) -> None:
        self._stored, self._counts = np.load(path), dict[tuple[str, str], sp.csr_array]()

    def domains(self, corpus: str) -> list[str]:
        return self._stored[f"{corpus}/domains"].tolist()

    def counts(self, corpus: str, domain: str) -> sp.csr_array:
        key = f"{corpus}/{domain}"
        if (corpus, domain) not in self._counts:
            indptr = np.concatenate([[0], np.cumsum(self._stored[f"{key}/lengths"].astype(np.int64))])
            data, indices = self._stored[f"{key}/data"], self._stored[f"{key}/indices"]
            parts = data.astype(np.float32), indices.astype(np.int32), indptr.astype(np.int32)
            self._counts[corpus, domain] = sp.csr_array(parts, shape=tuple(self._stored[f"{key}/shape"]))
        return self._counts[corpus, domain]

    def values(self, corpus: str, domain: str, what: str) -> np.ndarray:
        return self._stored[f"{corpus}/{domain}/{what}"]


@dataclass(frozen=True)
class Problem:
    """Rows and labels of a task: X, y (NaN where unknown), domain numbers; truth and rows of the target."""

    X: Any
    y: np.ndarray
    domain: np.ndarray
    number: int
    truth: np.ndarray  # of the target's rows, -1 where unknown
    is_test: np.ndarray
    rows: np.ndarray  # of the target, in its domain


def make_problem(rows: Rows, task: Task) -> Problem:
    """Stack the rows of a task as tf-idf, with the vocabulary of the domains that it sees."""
    from sklearn.feature_extraction.text import TfidfTransformer

    from undrift.text import TFIDF_LENGTH

    names = rows.domains(task.corpus) if task.kind == "several" else [task.source, task.target]
    blocks, labels, numbers = [], [], []
    for k, name in enumerate(names):
        X, y = rows.counts(task.corpus, name), rows.values(task.corpus, name, "y").astype(float)
        known = np.where(np.isin(np.arange(len(y)), rows.values(task.corpus, name, "train")), y, -1.0)
        number = k
        if name == task.target:
            number, chosen = -1 - k, np.arange(len(y))
            is_test = np.isin(chosen, rows.values(task.corpus, name, "test"))
            if task.share is not None:
                chosen = rows.values(task.corpus, name, f"sample{task.share:g}")
                is_test = np.ones(len(chosen), dtype=bool)
            X, truth, known = X[chosen], y[chosen].astype(int), np.full(len(chosen), -1.0)
            target_number, target_rows = number, chosen
        elif name != task.source:
            known = np.full(len(y), -1.0)
        blocks.append(X)
        labels.append(np.where(known < 0, np.nan, known))
        numbers.append(np.full(X.shape[0], number))
    X = sp.vstack(blocks, format="csr")
    frequency = np.bincount(X.indices, minlength=X.shape[1])
    n_terms = SEVERAL_TERMS if task.kind == "several" else PAIR_TERMS
    order = np.argsort(-frequency, kind="stable")[:n_terms]
    X = sp.csr_array(X[:, order[frequency[order] > 0]])
    X = sp.csr_array(TfidfTransformer(sublinear_tf=True).fit_transform(X) * TFIDF_LENGTH).astype(np.float32)
    y, domain = np.concatenate(labels), np.concatenate(numbers)
    return Problem(X, y, domain, target_number, truth, is_test, target_rows)


def score_shares(problem: Problem, device: str) -> dict[str, np.ndarray]:
    """Learn the layers, and return scores at every class share."""
    from undrift import MSDAClassifier
    from undrift.method import check_domains
    from undrift.method.align import align_targets
    from undrift.method.calibrate import find_border, score_held_out
    from undrift.method.self_train import PLAN, make_rule, self_train
    from undrift.method.train import make_trainer

    classifier = MSDAClassifier(device=device, random_state=0)
    grid = classifier._check_parameters()
    given = {"sample_domain": problem.domain, "dtype": classifier._dtype}
    domains = check_domains(classifier, problem.X, problem.y, **given)
    search = classifier._start_search(domains, grid)
    with search.place.set_precision():
        for _ in search.steps():
            pass
        base = search.result()
        kept = _copy(base.chosen.K)
        source = float(base.labels.codes.mean())
        found: dict[str, Any] = {"predicted": [], "n_pseudo": []}
        for share in (source, *SHARES):
            base = replace(base, chosen=replace(base.chosen, K=_copy(kept)))
            trainer = make_trainer(base)
            parts = trainer.posterior, base.labels, trainer.labelled_scores
            held_out = score_held_out(*parts, 0, len(domains.rows))
            aligned = align_targets(base, trainer, held_out, [[1 - share, share]])
            assert aligned is not None
            trained = self_train(base, trainer, make_rule(held_out, aligned), PLAN)
            border = find_border(trained.scores, held_out.target_temperature(True), aligned.shares[0].mean)
            found["predicted"].append(np.packbits(trained.scores[:, 0] + border[0] > 0))
            found["n_pseudo"].append(trained.n_pseudo_labels)
    position = base.anchors.position[base.anchors.n_labelled :]
    assert base.source_only is not None
    return {
        **{key: np.array(values) for key, values in found.items()},
        "held_out": held_out.scores[:, 0].astype(np.float16),
        "codes": held_out.codes.astype(np.int8),
        "first": aligned.scores[:, 0].astype(np.float16),
        "source_only": base.source_only.scores[:, 0].astype(np.float16),
        "truth": problem.truth[position].astype(np.int8),
        "is_test": problem.is_test[position],
        "n_domains": np.array(len(domains.rows)),
        "n_labelled": np.array(len(domains.y)),
    }


def _copy(K: Any) -> Any:
    return K.clone() if hasattr(K, "clone") else K.copy()


def score_taught(problem: Problem, task: Task, device: str) -> dict[str, np.ndarray]:
    """Fit with the stored scores of an encoder as teacher; return scores of student, distilled and both."""
    from scipy.special import expit
    from sklearn.preprocessing import normalize

    from undrift import MSDAClassifier
    from undrift.text.distill import ask_teacher, distill
    from undrift_lab.teachers import read_scores

    stored = read_scores(ROOT / "lab" / "results" / f"teachers-{task.corpus}.npz")
    odds = stored.find("finetuned", task.source, task.target)[problem.rows]
    is_target, test = problem.domain < 0, problem.is_test
    X, y, Z = problem.X[~is_target], problem.y[~is_target], problem.X[is_target]
    p, truth = np.column_stack([expit(-odds), expit(odds)]), problem.truth
    if task.kind == "teacher-right":  # of the rows whose class is known
        known = truth >= 0
        Z, truth, test = Z[known], truth[known], test[known]
        p = _exchange(truth, 0.02, task)
    if task.kind == "teacher-flipped":
        p = _exchange(odds > 0, 0.2, task)
    if task.kind == "teacher-few":
        p[np.random.default_rng(0).permutation(len(p))[1_500:]] = np.nan
    began = time.perf_counter()
    classifier = MSDAClassifier(device=device, random_state=0)
    classifier.fit(X, y, Z, teacher=p, keeps_state=False)
    seconds = time.perf_counter() - began
    (expected,) = classifier.expected_error_
    (shares,) = classifier.target_shares_
    distilled = distill(normalize(Z), ask_teacher(classifier, Z))[0]
    return {
        "student": classifier.decision_function(Z[test]).astype(np.float16),
        "both": classifier.decision_function(Z[test], teacher=p[test]).astype(np.float16),
        "distilled": distilled.decision_function(normalize(Z[test])).astype(np.float16),
        "teacher": np.log((p[test, 1] + 1e-4) / (p[test, 0] + 1e-4)).astype(np.float16),
        "truth": truth[test].astype(np.int8),
        "expected": np.array([expected["error"], expected["low"], expected["high"]]),
        "share": np.array(shares[1]),
        "noise": np.array(classifier.teacher_noise_[0]),
        "seconds": np.array(seconds),
    }


def _exchange(codes: np.ndarray, share: float, task: Task) -> np.ndarray:
    """Return labels as probabilities, a share of them exchanged at random."""
    rng = np.random.default_rng(zlib.crc32(task.name.encode()))
    changed = np.where(rng.random(len(codes)) < share, 1 - codes.astype(int), codes)
    return (changed[:, None] == np.arange(2)).astype(float)


def score_tasks(arguments: argparse.Namespace) -> None:
    """Score the tasks of one worker until the time is up."""
    import warnings

    warnings.simplefilter("ignore")
    rows = Rows(arguments.path)
    domains = {corpus: rows.domains(corpus) for corpus in ("crisis", "debt", "natural", "newsgroups")}
    domains |= {corpus: rows.domains(corpus) for corpus in ("fdu-mtl", "amazon-bow")}
    tasks = [task for task in list_tasks(domains) if arguments.only in task.name]
    arrays: dict[str, np.ndarray] = {}
    written = began = time.time()
    path = arguments.out / f"scores-{arguments.worker}.npz"
    for task in tasks[arguments.worker :: arguments.workers][: arguments.most]:
        if time.time() > arguments.deadline:
            break
        start = time.time()
        try:
            problem = make_problem(rows, task)
            is_taught = task.kind.startswith("teacher")
            found = (
                score_taught(problem, task, arguments.device)
                if is_taught
                else score_shares(problem, arguments.device)
            )
        except Exception as error:
            print(f"{task.name}: {type(error).__name__}: {error}", flush=True)
            continue
        arrays |= {f"{task.name}|{key}": value for key, value in found.items()}
        if arguments.worker == 0:
            print(f"{time.time() - began:6.1f} s {time.time() - start:5.1f} s {task.name}", flush=True)
        if time.time() - written > SECONDS_BETWEEN:
            write_scores(path, arrays)
            written = time.time()
    write_scores(path, arrays)
    print(f"worker {arguments.worker}: {len({key.split('|')[0] for key in arrays})} tasks", flush=True)


def write_scores(path: Path, arrays: dict[str, np.ndarray]) -> None:
    partial = path.with_suffix(".part.npz")
    np.savez(partial, **arrays)
    partial.replace(path)


def start_workers(arguments: argparse.Namespace) -> None:
    """Run all workers at once."""
    command = [sys.executable, *sys.argv, "--deadline", str(arguments.deadline)]
    processes = [subprocess.Popen([*command, "--worker", str(worker)]) for worker in range(arguments.workers)]
    for process in processes:
        process.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("step", choices=["bundle", "score"])
    parser.add_argument("path", type=Path)
    parser.add_argument("--out", type=Path, default=Path("trust-scores"))
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--worker", type=int)
    parser.add_argument("--most", type=int)
    parser.add_argument("--only", default="")
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--deadline", type=float)
    arguments = parser.parse_args()
    arguments.deadline = arguments.deadline or time.time() + arguments.seconds
    if arguments.step == "bundle":
        write_bundle(arguments.path)
    elif arguments.worker is None:
        arguments.out.mkdir(parents=True, exist_ok=True)
        start_workers(arguments)
    else:
        score_tasks(arguments)


if __name__ == "__main__":
    main()
