"""Distances from inner products alone, against those of the rows themselves."""

from itertools import combinations

import numpy as np
import pytest

from lab.tests.helpers import oracles as by_hand
from lab.tests.helpers.corpus import DOMAINS
from lab.tests.helpers.oracles import SEED, made_corpus
from undrift import MSDA
from undrift.inputs.device import OnHost
from undrift_lab.methods.cells import Bench, Cell
from undrift_lab.methods.distances import domain_pairs, measure_distances
from undrift_lab.metrics import DistanceInterval, proxy_a_distance
from undrift_lab.parts import load_corpus
from undrift_lab.plan import Setting, load_plan
from undrift_lab.results import read
from undrift_lab.runner import Request, run

PLAN = """
kind = "distance"
methods = ["msda-2"]
noise = [0.6]
n_rows = 60
[corpus]
loader = "amazon-bow"
"""


def test_distances_are_those_of_the_representation(data, tmp_path):
    path, results = tmp_path / "far.toml", tmp_path / "r.jsonl"
    path.write_text(PLAN)
    summary = run(load_plan(path), results, Request(data=data))
    assert (summary.n_new, summary.n_failed) == (3, 0)
    records = read(results)
    assert [(r["source"], r["target"]) for r in records] == list(combinations(DOMAINS, 2))
    assert run(load_plan(path), results, Request(data=data)).n_new == 0

    corpus = load_corpus(load_plan(path).corpus, data, 30)
    X = (corpus.rows()[0] > 0).astype(np.float64).toarray()
    Z = MSDA(2, 0.6).fit(X).transform(X)
    kept = np.linspace(0, 79, 60).round().astype(int)
    C = [10.0**k for k in range(-3, 2)]
    for rows, name in ((X, "distance_before"), (Z, "distance_after")):
        pair = np.concatenate([rows[kept], rows[80 + kept]])
        pair /= np.sqrt(np.mean(np.sum(pair**2, axis=1)))
        found = proxy_a_distance(pair[:60], pair[60:], C=C, random_state=0)
        # a row on the boundary may fall to either side when the coordinates are others
        assert records[0][name] == pytest.approx(found, abs=2 * 4 / 60 + 1e-9)
        assert records[0][f"{name}_low"] <= records[0][name] <= records[0][f"{name}_high"]


@pytest.mark.parametrize("n_pivots", [None, 9])
def test_rows_told_apart_are_those_of_one_stack_for_all_domains(monkeypatch, n_pivots):
    corpus, told = made_corpus(), []

    def told_apart(A, B, C, random_state):
        told.append((A, B))
        assert (C, random_state) == ((1e-3, 1e-2, 1e-1, 1.0, 10.0), SEED)
        return DistanceInterval(float(len(told)), -1.0, 9.0)

    monkeypatch.setattr("undrift_lab.metrics.proxy_a_distance_interval", told_apart)
    setting = Setting(noise=(0.8,), n_rows=60, n_pivots=n_pivots)
    bench = Bench(corpus, setting, OnHost(), "cpu", SEED, {})
    pairs = domain_pairs(list(corpus.domains))
    cells = [Cell("msda-2", *pair) for pair in pairs]
    records = list(measure_distances(bench, cells))
    present = {name: (X > 0).astype(float) for name, X in by_hand.dense(corpus).items()}
    if n_pivots is None:
        Z = by_hand.joined(by_hand.msda_layers(corpus, present, 0.8, 2))
    else:
        X = np.vstack(list(present.values()))
        model = MSDA(2, 0.8, n_pivots=n_pivots, random_state=SEED).fit(X)
        Z = by_hand.split_by_domain(corpus, model.transform(X))
    for (A, B), pair, rows in zip(told, np.repeat(pairs, 2, axis=0), [present, Z] * 3, strict=True):
        kept = [rows[name][np.linspace(0, len(rows[name]) - 1, 60).round().astype(int)] for name in pair]
        expected = np.vstack(kept) / np.sqrt(np.mean(np.sum(np.vstack(kept) ** 2, axis=1)))
        found = np.vstack([A, B])
        assert len(A) == len(B) == 60
        # directions of less than 1e-7 of the largest are left out
        np.testing.assert_allclose(found @ found.T, expected @ expected.T, atol=1e-4)
    for k, (cell, record) in enumerate(zip(cells, records, strict=True), start=1):
        assert record.cell == cell
        assert (record.values["distance_before"], record.values["distance_after"]) == (2 * k - 1, 2 * k)
        assert (record.values["distance_after_low"], record.values["distance_after_high"]) == (-1, 9)
        assert record.values["params"] == {"noise": 0.8, "n_layers": 2, "n_rows": 60}


def test_a_distance_that_fails_is_recorded(data, tmp_path, monkeypatch):
    def broken(*arguments):
        raise ValueError("too far")

    monkeypatch.setattr("undrift_lab.methods.distances._measure_distance", broken)
    path, results = tmp_path / "far.toml", tmp_path / "r.jsonl"
    path.write_text(PLAN)
    summary = run(load_plan(path), results, Request(data=data))
    assert (summary.n_new, summary.n_failed) == (3, 3)
    assert {r["failed"] for r in read(results)} == {"ValueError: too far"}
