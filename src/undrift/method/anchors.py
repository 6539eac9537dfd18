"""Anchors: the rows whose inner products are kept, labelled rows first, then target rows."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from sklearn.model_selection import StratifiedKFold
from sklearn.utils import check_random_state

from ..core import Rows, stack_rows
from ..inputs import gather_rows, to_host
from .problem import UNLABELLED, Name, Problem, RowKey, Words, find_equal_rows, list_row_keys
from .settings import AnchorSettings

Folds = list[np.ndarray]  # rows that are held out together
Seed = int | np.random.RandomState | None


@dataclass(frozen=True)
class Anchors:
    """Labelled rows, then rows of every target."""

    X: Rows
    domain: np.ndarray  # (n,) position of each row's domain
    position: np.ndarray  # (n,) row number of each row within its domain; ascending for each domain
    labelled: np.ndarray  # (n_labelled,) numbers of the labelled anchors among all labelled rows
    codes: np.ndarray  # (n,) classes, `UNLABELLED` for most of the target rows
    given_weight: np.ndarray  # (n_labelled,) of the labelled rows, as given
    weight: np.ndarray  # the same with classes that count alike

    @property
    def n_labelled(self) -> int:
        """Number of labelled anchors."""
        return len(self.labelled)

    @property
    def target_codes(self) -> np.ndarray:
        """Classes of the target anchors, `UNLABELLED` for most."""
        return self.codes[self.n_labelled :]

    @property
    def is_known(self) -> np.ndarray:
        """Which target anchors have a label."""
        return self.target_codes != UNLABELLED

    def draw_folds(self, n_folds: int, seed: Seed) -> Folds | None:
        """Draw folds of the labelled anchors, equal rows in one; None where a class has one row."""
        codes, first = self.codes[: self.n_labelled], find_equal_rows(self.X[: self.n_labelled])
        return draw_folds(codes, first, n_folds, check_random_state(seed))


@dataclass(frozen=True)
class Facts:
    """What is known of a problem beside its rows."""

    classes: np.ndarray
    source_shares: np.ndarray  # (n_classes,) of the labelled rows
    names: list[Name]  # of the domains, sources first
    n_sources: int
    sizes: list[int]  # of the domains
    shares: list[np.ndarray | None]  # of every target, where the user knows them
    assumes_same: bool  # whether the user says that the mix of classes is the source's
    taught: list[dict[str, Words]]  # of every target, what each teacher says of its anchors
    has_source: bool  # False where the source is target rows that a teacher labelled
    seed: int
    is_balanced: bool = False  # whether predictions are of classes that count alike

    @classmethod
    def of(cls, problem: Problem, anchors: Anchors, seed: Seed) -> Facts:
        """Return the facts of a problem, with the teachers' words for the anchors alone."""
        n, taught = anchors.n_labelled, []
        for k, name in zip(problem.target_positions, problem.targets, strict=True):
            rows = anchors.position[n:][anchors.domain[n:] == k]
            told = problem.taught.get(name, {})
            taught.append({teacher: words.take(rows) for teacher, words in told.items()})
        return cls(
            classes=problem.classes,
            source_shares=np.bincount(problem.y, minlength=len(problem.classes)) / len(problem.y),
            names=problem.names,
            n_sources=problem.n_sources,
            sizes=problem.sizes,
            shares=[problem.shares.get(name) for name in problem.targets],
            assumes_same=problem.assumes_same,
            taught=taught,
            has_source=problem.has_source,
            seed=0 if seed is None else int(check_random_state(seed).randint(2**31)),
            is_balanced=problem.is_balanced,
        )

    @property
    def targets(self) -> list[Name]:
        """Names of the targets."""
        return self.names[self.n_sources :]

    def widen(self, anchors: Anchors) -> Facts:
        """Return the facts with a silent teacher for anchors that were added."""
        taught = []
        for k, told in enumerate(self.taught, start=self.n_sources):
            n = int((anchors.domain[anchors.n_labelled :] == k).sum())
            taught.append({teacher: words.lengthen(n) for teacher, words in told.items()})
        return replace(self, taught=taught)


def set_labels(anchors: Anchors, X: Rows, domain: np.ndarray, codes: np.ndarray) -> Anchors:
    """Return anchors with labels of target rows added, changed, or, where `UNLABELLED`, withdrawn.

    Labelled rows that are no anchors become some.
    """
    wanted = dict[RowKey, tuple[int, int]]()
    for row, (key, code) in enumerate(zip(list_row_keys(X, domain), codes.tolist(), strict=True)):
        if wanted.setdefault(key, (row, code))[1] != code:
            raise ValueError("a row is given twice, with different labels: give it once")
    n, after = anchors.n_labelled, anchors.codes.copy()
    known = list_row_keys(to_host(anchors.X)[n:].astype(X.dtype), anchors.domain[n:])
    matched = set()
    for i, key in enumerate(known, start=n):
        if key in wanted:
            after[i] = UNLABELLED if key in matched else wanted[key][1]
            matched.add(key)
    new = [row for key, (row, code) in wanted.items() if key not in matched and code != UNLABELLED]
    if not new:
        return replace(anchors, codes=after)
    return replace(
        anchors,
        X=stack_rows([to_host(anchors.X), X[new]]),
        domain=np.concatenate([anchors.domain, domain[new]]),
        position=np.concatenate([anchors.position, np.full(len(new), -1)]),
        codes=np.concatenate([after, codes[new]]),
    )


def draw_anchors(problem: Problem, settings: AnchorSettings, seed: Seed) -> Anchors:
    """Draw the anchors at random where there are too many rows.

    Target rows that have a label are always among them, and those that a teacher labelled are preferred.
    Labelled rows and target rows are drawn apart: neither depends on how many the others are.
    """
    labelled = np.arange(len(problem.y))
    if len(labelled) > settings.labelled:
        labelled = draw_labelled_rows(problem.y, settings.labelled, check_random_state(seed))
    allotted, random_state = _allot_targets(problem, settings), check_random_state(seed)
    matrices, domain = [problem.labelled[labelled]], [problem.domain[labelled]]
    position, codes = [problem.position[labelled]], [problem.y[labelled]]
    for k, name in zip(problem.target_positions, problem.targets, strict=True):
        drawn = _draw_target_rows(problem, name, allotted[name], random_state)
        if len(drawn) == 0:
            continue
        matrices.append(gather_rows(problem.rows[name][drawn]))
        domain.append(np.full(len(drawn), k))
        position.append(drawn)
        codes.append(problem.codes[name][drawn])
    parts = np.concatenate(domain), np.concatenate(position), labelled, np.concatenate(codes)
    weights = problem.weight[labelled], problem.balanced_weight()[labelled]
    return Anchors(stack_rows(matrices), *parts, *weights)


def draw_labelled_rows(codes: np.ndarray, n: int, random_state: np.random.RandomState) -> np.ndarray:
    """Draw n rows at random, two of every class among them where there are two; in ascending order."""
    drawn = random_state.permutation(len(codes))
    rank = np.empty(len(codes), dtype=int)  # how many rows of the same class were drawn before
    for code in np.unique(codes):
        same_class = np.flatnonzero(codes[drawn] == code)
        rank[same_class] = np.arange(len(same_class))
    return np.sort(drawn[np.argsort(rank >= 2, kind="stable")[:n]])


def _draw_target_rows(
    problem: Problem, name: Name, n: int, random_state: np.random.RandomState
) -> np.ndarray:
    """Draw n rows of a target, first those that a teacher labelled; and all that have a label."""
    codes = problem.codes[name]
    if len(codes) <= n:
        return np.arange(len(codes))
    if name in problem.taught:
        order = random_state.permutation(len(codes))
        is_silent = np.all([told.codes == UNLABELLED for told in problem.taught[name].values()], axis=0)[
            order
        ]
        drawn = order[np.argsort(is_silent, kind="stable")[:n]]
    else:
        drawn = random_state.choice(len(codes), n, replace=False) if n else np.arange(0)
    return np.union1d(drawn, np.flatnonzero(codes != UNLABELLED))


def _allot_targets(problem: Problem, settings: AnchorSettings) -> dict[Name, int]:
    """Return how many rows of each target become anchors.

    All of a target that is smaller than an equal part, and equal parts of the others. Many targets have more
    together, up to as many as there may be labelled anchors, so that each has some.
    """
    n_left = max(settings.targets, min(settings.least * len(problem.targets), settings.labelled))
    sizes = {name: len(problem.codes[name]) for name in problem.targets}
    allotted: dict[Name, int] = {}
    for i, name in enumerate(sorted(sizes, key=lambda name: sizes[name])):
        allotted[name] = min(sizes[name], n_left // (len(sizes) - i))
        n_left -= allotted[name]
    if not all(allotted.values()):
        raise ValueError(f"{len(sizes)} targets are too many to adapt to one by one: join small ones")
    return allotted


def draw_folds(codes: np.ndarray, first: np.ndarray, n_folds: int, seed: Seed) -> Folds | None:
    """Draw stratified folds, fewer where a class is too small for as many; None with a class of one row.

    `first` is the first row that equals each. Equal rows are in one fold, unless all of a class are equal.
    """
    n_classes = codes.max() + 1
    for groups in (first, np.arange(len(codes))):
        distinct, row = np.unique(groups, return_inverse=True)
        smallest = int(np.bincount(codes[distinct], minlength=n_classes).min())
        if smallest > 1:
            splitter = StratifiedKFold(min(n_folds, smallest), shuffle=True, random_state=seed)
            fold = np.empty(len(distinct), dtype=int)
            for k, (_, test) in enumerate(splitter.split(codes[distinct], codes[distinct])):
                fold[test] = k
            return [np.flatnonzero(fold[row] == k) for k in range(splitter.n_splits)]
    return None


# combinations of labelled anchors: means of classes, and points midway between them


def average_classes(is_class: np.ndarray) -> np.ndarray:
    """Combine rows into the mean of each class that has any: (n, n_classes)."""
    return is_class / np.maximum(is_class.sum(axis=0), 1)


def class_directions(codes: np.ndarray, n_classes: int) -> np.ndarray:
    """Combine labelled rows into the mean of each class less the mean of all class means: (n, n_classes)."""
    means = average_classes(codes[:, None] == np.arange(n_classes))
    return means - means.mean(axis=1, keepdims=True)


def combine_midpoints(codes: np.ndarray, domain: np.ndarray) -> dict[int, np.ndarray]:
    """Combine labelled rows into the point midway between the classes, for every source: (n,).

    That is the mean of the source's class means. Of a source that lacks a class it is the mean over the
    classes that it has, and from there the way to the mean over all classes in the complete sources, or in
    all together.
    """
    is_class = codes[:, None] == np.arange(codes.max() + 1)
    n_classes = is_class.shape[1]
    sources = {k: domain == k for k in np.unique(domain).tolist()}
    has_class = {k: is_class[is_member].any(axis=0) for k, is_member in sources.items()}
    complete = [sources[k] for k, present in has_class.items() if present.all()]
    reference = complete or [np.ones(len(codes), dtype=bool)]
    common = np.zeros(is_class.shape)  # class means of the reference
    if len(complete) < len(sources):
        for is_member in reference:
            common += average_classes(is_class & is_member[:, None]) / len(reference)
    combinations = {}
    for k, is_member in sources.items():
        present = has_class[k] / has_class[k].sum()
        combinations[k] = average_classes(is_class & is_member[:, None]) @ present
        if not has_class[k].all():
            combinations[k] += common @ (1 / n_classes - present)
    return combinations
