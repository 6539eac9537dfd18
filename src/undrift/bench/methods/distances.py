"""Proxy A-distance between domains, before and after the layers (figure 3 right)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
from scipy.linalg import eigh

from ..._inputs import binarize_rows
from ...corpora import Corpus
from ...metrics import DistanceInterval, proxy_a_distance_interval
from .cells import Bench
from .denoised import depth_of
from .stacks import Part, RunningGrams, SharedStack

Pair = tuple[str, str]


def domain_pairs(corpus_domains: Sequence[str]) -> list[Pair]:
    """Every pair of domains, once."""
    return list(combinations(corpus_domains, 2))


def measure_distances(bench: Bench, method: str, pairs: Sequence[Pair]) -> Iterator[Mapping[str, Any]]:
    """Yield the distance of each pair on binary rows, and on ``[x, h^1, ..., h^l]`` of the same rows.

    The stack is fitted on all rows; `n_rows` of each domain, evenly spaced, are told apart.
    """
    noise, depth = bench.setting.noise[0], depth_of(method)
    corpus = bench.corpus.map(binarize_rows, terms=bench.corpus.terms)
    sampled = _sampled(corpus, bench.setting.n_rows)
    stack = SharedStack(sampled, place=bench.place, n_pivots=bench.setting.n_pivots, seed=bench.seed)
    blocks = [block for pair in pairs for block in _blocks(pair)]
    grams = RunningGrams(sampled, dict.fromkeys(blocks))
    levels = stack.levels(noise, depth)
    grams.add(next(levels))
    before = [bench.pool.submit(_distance, _joint(grams, pair), bench.seed) for pair in pairs]
    for level in levels:
        grams.add(level)
    after = [bench.pool.submit(_distance, _joint(grams, pair), bench.seed) for pair in pairs]
    for pair, old, new in zip(pairs, before, after, strict=True):
        yield {
            "source": pair[0],
            "target": pair[1],
            "params": {"noise": noise, "n_layers": depth, "n_rows": bench.setting.n_rows},
            "represent_seconds": level.seconds,
            **_named("distance_before", old.result()),
            **_named("distance_after", new.result()),
        }


def _sampled(corpus: Corpus, n_rows: int) -> Corpus:
    """Mark `n_rows` of each domain as its test rows: those that a distance is measured on."""
    domains = {}
    for name, own in corpus.domains.items():
        rows = np.unique(np.linspace(0, len(own) - 1, min(n_rows, len(own))).round().astype(int))
        domains[name] = replace(own, y=np.zeros(len(own)), train=rows[:0], test=rows, unlabelled=rows[:0])
    return Corpus(corpus.name, domains, corpus.terms)


def _blocks(pair: Pair) -> tuple[tuple[Part, Part], ...]:
    a, b = ((name, "test") for name in pair)
    return (a, a), (b, a), (b, b)


def _joint(grams: RunningGrams, pair: Pair) -> tuple[np.ndarray, int]:
    within, across, other = (grams[block] for block in _blocks(pair))
    return np.block([[within, across.T], [across, other]]), len(within)


def _distance(joint: tuple[np.ndarray, int], seed: int) -> DistanceInterval:
    """Distance of rows known by their inner products: any coordinates with these will do."""
    K, n = joint
    values, vectors = eigh(K.astype(np.float64))
    kept = values > values[-1] * 1e-7
    rows = vectors[:, kept] * np.sqrt(values[kept])
    rows /= np.sqrt(np.mean(np.sum(rows**2, axis=1)))  # so that one grid of C suits all
    C = tuple(10.0**k for k in range(-3, 2))
    return proxy_a_distance_interval(rows[:n], rows[n:], C=C, random_state=seed)


def _named(name: str, interval: DistanceInterval) -> dict[str, float]:
    return {name: interval.distance, f"{name}_low": interval.low, f"{name}_high": interval.high}
