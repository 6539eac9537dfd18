"""Anchors: the rows whose inner products are kept, labelled rows first, then target rows."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from sklearn.utils import check_random_state

from ..core import Rows, stack_rows
from ..inputs import gather_rows, to_host
from .problem import UNLABELLED, Name, Problem, RowKey, list_row_keys
from .settings import AnchorSettings


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


def draw_anchors(problem: Problem, settings: AnchorSettings, seed: object) -> Anchors:
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
        is_silent = problem.is_silent(name)[order]
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
