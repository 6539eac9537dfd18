"""What tables, figures and checks agree on, from records whose numbers are told by hand."""

from itertools import product

import numpy as np
import pytest

from lab.tests.helpers.corpus import transfer
from undrift_lab.plan import load_plan, parse_plan
from undrift_lab.results.frame import (
    LARGER_CLASS,
    Where,
    add_larger_class,
    average_tasks,
    bootstrap_interval,
    compare,
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
    assert np.isnan(mean_over_tasks(own, "f1"))  # none has it
    assert len(make_frame([])) == 0


def test_estimates_are_compared_with_the_truth():
    says = {"target_share": 0.5, "estimated_share": 0.4, "share_low": 0.3, "share_high": 0.45}
    error = {"expected_error": 0.2, "expected_low": 0.1, "expected_high": 0.25}
    unknown = {"expected_error": None, "expected_low": 0.1, "expected_high": 0.4}
    frame = make_frame([
        transfer("undrift", "a", "b", 0.25, **says, **error),
        transfer("undrift", "b", "a", 0.31, **{**says, "share_high": 0.5}, **error),
        transfer("undrift", "a", "c", 0.3, **says, **unknown),
        transfer("svm", "a", "b", 0.3),
    ])  # fmt: skip
    assert frame["share_gap"].tolist()[:3] == pytest.approx([0.1] * 3)
    assert frame["error_gap"].tolist()[:2] == pytest.approx([0.05, 0.11])
    assert frame["share_held"].tolist()[:3] == [0, 1, 0]
    assert frame["error_held"].tolist()[:3] == [1, 0, 1]
    assert frame["is_sure"].tolist()[:3] == [0, 1, 0]
    assert frame.loc[3, ["share_gap", "error_gap", "share_held", "error_held", "is_sure"]].isna().all()
    assert frame.loc[2, "error_gap"] != frame.loc[2, "error_gap"]


def test_failures_are_those_that_have_not_succeeded_since():
    mended, left = failed("svm", "a", "b", seed=0), failed("svm", "a", "b", seed=1)
    far = {**failed("msda-1", "a", "b", seed=0), "kind": "distance"}
    done = transfer("svm", "a", "b", 0.5, seed=0)
    elsewhere = transfer("svm", "a", "b", 0.5, seed=1, variant="other")
    assert find_failures([mended, left, far, done, elsewhere]) == [left, far]
    assert find_failures([mended, {**mended, "failed": "other"}]) == [{**mended, "failed": "other"}]
    assert find_failures([done, mended]) == [mended]


def test_the_larger_class_and_harm():
    frame = add_larger_class(make_frame([
        transfer("svm", "a", "b", 0.3, target_share=0.8),
        transfer("pca", "a", "b", 0.3, target_share=0.8),
        transfer("svm", "b", "a", 0.3),
    ]))  # fmt: skip
    (row,) = frame[frame["method"] == LARGER_CLASS].to_dict("records")
    assert (row["task"], row["transfer_error"], row["balanced_error"]) == ("a->b", pytest.approx(0.2), 0.5)
    ours = make_frame(
        [transfer("a", "a", "b", 0.26), transfer("a", "b", "a", 0.3), transfer("a", "c", "a", 0.9)]
    )
    theirs = make_frame([transfer("b", "a", "b", 0.25), transfer("b", "b", "a", 0.25)])
    assert 0.26 - 0.25 > 0.01  # in floating point
    assert count_harm(ours, theirs) == "1 of 2"
    assert count_harm(ours, theirs.iloc[:0]) == ""


def exact_interval(D, tasks):
    """Quantiles of the mean over every way to draw domains and seeds with replacement."""
    D, pairs = np.asarray(D), [name.split("->") for name in tasks]
    names = sorted({name for pair in pairs for name in pair})
    draws = []
    for domains in product(names, repeat=len(names)):
        weights = np.array([domains.count(source) * domains.count(target) for source, target in pairs])
        for seeds in product(range(D.shape[1]), repeat=D.shape[1]) if weights.sum() else ():
            draws.append(np.average(D[:, seeds].mean(axis=1), weights=weights))
    return np.quantile(draws, [0.025, 0.975], method="inverted_cdf")


@pytest.mark.parametrize(
    ("tasks", "D"),
    [
        (["a->b", "b->a", "a->c"], [[0.0], [0.0], [0.3]]),
        (["a->b", "c->d", "a->d", "b->c"], [[0.01], [-0.02], [0.06], [0.10]]),
        (["a->b", "b->a"], [[0.0, 0.6], [0.1, 0.9]]),
        (["a->b"], [[0.0, 0.3, 0.6]]),
    ],
)
def test_intervals_are_those_of_all_draws_of_domains_and_seeds(tasks, D):
    # these quantiles fall inside steps of the distribution, so that random draws find them exactly
    interval = bootstrap_interval(np.array(D), tasks, 40_000)
    np.testing.assert_allclose(interval, exact_interval(D, tasks), atol=1e-12)


def errors_of(variant, given, seed=0):
    """Records of one variant, from errors on tasks a->b, b->a, a->c."""
    pairs = [("a", "b"), ("b", "a"), ("a", "c")]
    return [
        transfer("undrift", *pair, error, variant=variant, seed=seed)
        for pair, error in zip(pairs, given, strict=False)
    ]


def compare_variants(records):
    frame = make_frame(records)
    return compare(*(Where("tiny", name, "undrift").of(frame) for name in ("less", "all")))


def test_differences_are_paired_by_task_and_seed():
    found = compare_variants([*errors_of("all", [0.10, 0.20, 0.30]), *errors_of("less", [0.12, 0.19])])
    assert found.mean == pytest.approx(0.005)  # of the two tasks that both have
    assert (found.low, found.high) == (pytest.approx(0.005), pytest.approx(0.005))  # of the same two domains
    assert (found.n_domains, found.n_tasks, found.seeds, found.n_worse) == (2, 2, (0,), 1)
    assert (found.worst, *found.by_target) == pytest.approx((0.02, -0.01, 0.02))
    first = [*errors_of("all", [0.10, 0.20]), *errors_of("less", [0.12, 0.22])]
    second = [*errors_of("all", [0.10, 0.30], 1), *errors_of("less", [0.16, 0.36], 1)]
    found = compare_variants([*first, *second])
    assert found.mean == pytest.approx(0.04)
    assert (found.low, found.high) == (pytest.approx(0.02), pytest.approx(0.06))  # seeds differ, tasks do not
    assert found.seeds == (0, 1)
    found = compare_variants([*first, *second[:1], *second[2:]])  # b->a was not run with the second seed
    assert (found.n_tasks, found.seeds, found.mean) == (2, (0,), pytest.approx(0.02))
    assert compare_variants([*errors_of("all", [0.1]), *errors_of("less", [0.2], 1)]) is None


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
