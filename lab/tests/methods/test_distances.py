"""Distances from inner products alone, against those of the rows themselves."""

from itertools import combinations

import numpy as np
import pytest

from lab.tests.helpers.corpus import DOMAINS
from undrift import MSDA
from undrift_lab.metrics import proxy_a_distance
from undrift_lab.parts import load_corpus
from undrift_lab.plan import load_plan
from undrift_lab.results.records import read
from undrift_lab.runner import Request, run

PLAN = """
kind = "distance"
methods = ["msda-2"]
noise = [0.6]
[corpus]
loader = "amazon-bow"
"""


@pytest.mark.parametrize("n_pivots", [None, 9])
def test_distances_are_those_of_the_representation(data, tmp_path, n_pivots, set_limits):
    set_limits(N_ROWS=60)
    path, results = tmp_path / "far.toml", tmp_path / "r.jsonl"
    path.write_text(PLAN if n_pivots is None else f"n_pivots = {n_pivots}\n{PLAN}")
    summary = run(load_plan(path), results, Request(data=data))
    assert (summary.n_new, summary.n_failed) == (3, 0)
    records = read(results)
    assert [(r["source"], r["target"]) for r in records] == list(combinations(DOMAINS, 2))
    assert run(load_plan(path), results, Request(data=data)).n_new == 0

    corpus = load_corpus(load_plan(path).corpus, data, 30)
    X = (corpus.rows()[0] > 0).astype(np.float64).toarray()
    Z = MSDA(2, 0.6, n_pivots=n_pivots, random_state=0).fit(X).transform(X)
    kept = np.linspace(0, 79, 60).round().astype(int)
    C = [10.0**k for k in range(-3, 2)]
    for rows, name in ((X, "distance_before"), (Z, "distance_after")):
        pair = np.concatenate([rows[kept], rows[80 + kept]])
        pair /= np.sqrt(np.mean(np.sum(pair**2, axis=1)))
        found = proxy_a_distance(pair[:60], pair[60:], C=C, random_state=0).distance
        # a row on the boundary may fall to either side when the coordinates are others
        assert records[0][name] == pytest.approx(found, abs=2 * 4 / 60 + 1e-9)
        assert records[0][f"{name}_low"] <= records[0][name] <= records[0][f"{name}_high"]


def test_a_distance_that_fails_is_recorded(data, tmp_path, fail):
    fail("undrift_lab.methods.distances._measure_distance", ValueError("too far"))
    path, results = tmp_path / "far.toml", tmp_path / "r.jsonl"
    path.write_text(PLAN)
    summary = run(load_plan(path), results, Request(data=data))
    assert (summary.n_new, summary.n_failed) == (3, 3)
    assert {r["failed"] for r in read(results)} == {"ValueError: too far"}
