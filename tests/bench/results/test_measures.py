"""What tables, figures and checks agree on, from records whose numbers are told by hand."""

import pytest

from tests.helpers.bench_corpus import transfer
from undrift.bench.results.measures import (
    Where,
    by_task,
    failures,
    mean_of,
    mean_ratio,
    peak_gigabytes,
    places,
    task,
)

HERE = Where("tiny", "main", "svm")


def failed(method, source, target, **more):
    """A record of a task that failed, which has no numbers."""
    kept = ("kind", "plan", "variant", "method", "source", "target")
    return {name: transfer(method, source, target, 0.0)[name] for name in kept} | {
        "failed": "no luck",
        **more,
    }


def test_a_place_is_plan_variant_and_method():
    elsewhere = [
        transfer("svm", "a", "b", 0.5, plan="other"),
        transfer("svm", "a", "b", 0.5, variant="other"),
        transfer("pca", "a", "b", 0.5),
        {**transfer("svm", "a", "b", 0.5), "kind": "distance"},
        {"kind": "in-domain", "target": "b", "error": 0.5},
    ]
    own = transfer("svm", "a", "b", 0.25)
    assert HERE.of([*elsewhere, own]) == [own]
    assert places([own, *elsewhere, failed("scl", "a", "b")]) == [
        HERE,
        Where("other", "main", "svm"),
        Where("tiny", "other", "svm"),
        Where("tiny", "main", "pca"),
    ]


def test_the_latest_of_each_task_and_seed_counts():
    old, new = transfer("svm", "a", "b", 0.5, seed=0), transfer("svm", "a", "b", 0.25, seed=0)
    back, other_seed = transfer("svm", "b", "a", 0.5, seed=0), transfer("svm", "a", "b", 0.5, seed=1)
    assert HERE.of([old, back, other_seed, new]) == [new, back, other_seed]
    assert task(back) == "b->a"


def test_a_failure_is_no_result_and_leaves_the_one_before():
    done = transfer("svm", "a", "b", 0.25)
    assert HERE.of([done, failed("svm", "a", "b"), failed("svm", "b", "a")]) == [done]


def test_means_are_over_records_that_have_the_number():
    records = [
        transfer("svm", "a", "b", 0.0, baseline=0.25),
        transfer("svm", "b", "a", 0.5, baseline=0.25),
        {**transfer("svm", "a", "c", 0.25), "transfer_ratio": None},  # of a faultless baseline
    ]
    assert mean_of(records, "transfer_error") == pytest.approx(0.25, rel=1e-9)
    assert mean_ratio(records) == pytest.approx(1.0, rel=1e-9)
    assert mean_of(records, "unheard_of") is None
    assert mean_of([], "transfer_error") is None


def test_the_highest_peak_is_told():
    records = [transfer("svm", "a", "b", 0.5, peak_gigabytes=peak) for peak in (1.0, 3.0, 2.0, None)]
    assert peak_gigabytes([*records, transfer("svm", "b", "a", 0.5)]) == 3.0
    assert peak_gigabytes(records[-1:]) is None


def test_numbers_by_task_are_means_over_seeds():
    records = [
        transfer("svm", "a", "b", 0.5, seed=0),
        transfer("svm", "b", "a", 0.125, seed=0),
        transfer("svm", "a", "b", 0.25, seed=1),
    ]
    assert by_task(records) == {"a->b": 0.375, "b->a": 0.125}
    assert by_task(records, "represent_seconds") == {"a->b": 2.0, "b->a": 2.0}


def test_failures_are_those_that_have_not_succeeded_since():
    mended, left = failed("svm", "a", "b", seed=0), failed("svm", "a", "b", seed=1)
    far = {**failed("msda-1", "a", "b", seed=0), "kind": "distance"}
    done = transfer("svm", "a", "b", 0.5, seed=0)
    elsewhere = transfer("svm", "a", "b", 0.5, seed=1, variant="other")
    choosing = {**failed("undrift", "a", "b", seed=0), "kind": "regret"}
    assert failures([mended, left, far, choosing, done, elsewhere]) == [left, far, choosing]
    assert failures([choosing, {**choosing, "failed": "other"}]) == [{**choosing, "failed": "other"}]
    point = {key: value for key, value in choosing.items() if key != "failed"}
    assert failures([choosing, {**point, "noise": 0.5, "n_layers": 1, "candidates": []}]) == []
    assert failures([done, mended]) == [mended]
