"""What tables, figures and checks agree on, from records whose numbers are told by hand."""

import numpy as np
import pytest

from lab.tests.helpers.corpus import transfer
from undrift_lab.plan import load_plan, parse_plan
from undrift_lab.results.frame import (
    Where,
    average_tasks,
    count_harm,
    find_failures,
    make_frame,
    mean_over_tasks,
)
from undrift_lab.results.records import read
from undrift_lab.runner import Request, run

HERE = Where("tiny", "main", "svm")


def failed(method, source, target, **more):
    """A record of a task that failed, which has no numbers."""
    kept = ("kind", "plan", "variant", "method", "source", "target")
    record = transfer(method, source, target, 0.0)
    return {name: record[name] for name in kept} | {"failed": "no luck", **more}


def test_the_latest_success_of_each_task_and_seed_counts():
    records = [
        transfer("svm", "a", "b", 0.5),
        transfer("svm", "b", "a", 0.125),
        transfer("svm", "a", "b", 0.25, seed=1),
        transfer("svm", "a", "b", 0.75),
        failed("svm", "a", "b"),
        transfer("svm", "a", "b", 0.5, plan="other"),
        transfer("svm", "a", "b", 0.5, variant="other"),
        transfer("pca", "a", "b", 0.5),
        {**transfer("svm", "a", "c", 0.5), "kind": "distance"},
        {"kind": "in-domain", "target": "b", "error": 0.5},
    ]
    own = HERE.of(make_frame(records))
    assert average_tasks(own).to_dict() == {"b->a": 0.125, "a->b": 0.5}
    assert mean_over_tasks(own) == 0.3125
    assert np.isnan(mean_over_tasks(own, "expected_error"))  # none has it
    assert len(make_frame([])) == 0


def test_estimates_are_compared_with_the_truth():
    error = {"expected_error": 0.2, "expected_low": 0.1, "expected_high": 0.25}
    unknown = {"expected_error": None, "expected_low": 0.1, "expected_high": 0.4}
    frame = make_frame([
        transfer("undrift", "a", "b", 0.25, **error),
        transfer("undrift", "b", "a", 0.31, **error),
        transfer("undrift", "a", "c", 0.3, **unknown),
        transfer("svm", "a", "b", 0.3),
    ])  # fmt: skip
    assert frame["error_gap"].tolist()[:2] == pytest.approx([0.05, 0.11])
    assert frame["error_held"].tolist()[:3] == [1, 0, 1]
    assert frame["is_sure"].tolist()[:3] == [0, 1, 0]
    assert frame.loc[3, ["error_gap", "error_held", "is_sure"]].isna().all()
    assert np.isnan(frame.loc[2, "error_gap"])


def test_failures_are_those_that_have_not_succeeded_since():
    mended, left = failed("svm", "a", "b", seed=0), failed("svm", "a", "b", seed=1)
    far = {**failed("msda-1", "a", "b", seed=0), "kind": "distance"}
    done = transfer("svm", "a", "b", 0.5, seed=0)
    elsewhere = transfer("svm", "a", "b", 0.5, seed=1, variant="other")
    assert find_failures([mended, left, far, done, elsewhere]) == [left, far]
    assert find_failures([mended, {**mended, "failed": "other"}]) == [{**mended, "failed": "other"}]
    assert find_failures([done, mended]) == [mended]


def test_harm_is_more_error_by_over_a_point():
    ours = make_frame(
        [transfer("a", "a", "b", 0.26), transfer("a", "b", "a", 0.3), transfer("a", "c", "a", 0.9)]
    )
    theirs = make_frame([transfer("b", "a", "b", 0.25), transfer("b", "b", "a", 0.25)])
    assert 0.26 - 0.25 > 0.01  # in floating point
    assert count_harm(ours, theirs) == "1 of 2"
    assert count_harm(ours, theirs.iloc[:0]) == ""


PLAN = 'methods = ["svm", "msda-1"]\nnoise = [0.5, 0.8]\n[corpus]\nloader = "amazon-bow"\n'


def test_a_file_holds_results_of_several_seeds(command, data, tmp_path):
    path, results = tmp_path / "tiny.toml", tmp_path / "r.jsonl"
    path.write_text(PLAN)
    plan, request = load_plan(path), Request(data=data, tasks=["books->*"], jobs=1)
    assert run(plan, results, request).n_new == 4
    arguments = ("run", path, "--results", results, "--data", data, "--tasks", "books->*", "--jobs", 1)
    assert command(*arguments, "--seed", 7)[0] == 0
    records = read(results)
    half = len(records) // 2
    assert [r["seed"] for r in records] == [0] * half + [7] * half  # all anew, with a grid of its own
    assert len({r["digest"] for r in records}) == 2
    assert run(plan.seeded(7), results, request).n_new == 0
    path.write_text(PLAN.replace("0.8", "0.9"))
    with pytest.raises(ValueError, match="another version of plan tiny"):
        run(load_plan(path).seeded(8), results, request)
    table = {"methods": ["svm"], "seed": 4, "corpus": {"loader": "amazon-bow"}}
    assert parse_plan("p", table).seeded(None).seed == 4
