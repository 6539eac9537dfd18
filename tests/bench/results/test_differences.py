"""Variants against variant "all" on the same tasks, with intervals; results of several seeds side by side."""

from itertools import product

import numpy as np
import pytest

from tests.helpers.bench_corpus import transfer
from undrift.bench import Request, load_plan, read, run
from undrift.bench.__main__ import main
from undrift.bench.plan import parse_plan
from undrift.bench.results.figures import ablation_figures, all_figures, figure_1
from undrift.bench.results.measures import (
    MIN_DOMAINS,
    Where,
    bootstrap_interval,
    by_task,
    difference,
    differences,
    failures,
)
from undrift.bench.results.page import fill_page
from undrift.bench.results.tables import results_table


def ablation(errors, seed=0):
    """Records of method undrift, from the errors of each variant on tasks a->b, b->a, ..."""
    tasks = [("a", "b"), ("b", "a"), ("a", "c")]
    return [
        transfer("undrift", *pair, error, variant=variant, seed=seed)
        for variant, own in errors.items()
        for pair, error in zip(tasks, own, strict=False)
    ]


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


def test_intervals_are_the_same_every_time_and_wider_than_those_over_tasks():
    names = [f"d{i}" for i in range(8)]
    tasks = [f"{a}->{b}" for a in names for b in names if a != b]
    by_source = np.random.default_rng(0).normal(size=8)
    D = np.array([[by_source[names.index(task.split("->")[0])]] for task in tasks])  # tasks of a source agree
    assert bootstrap_interval(D, tasks) == bootstrap_interval(D, tasks)
    assert bootstrap_interval(D, tasks) != bootstrap_interval(D, tasks, seed=1)
    low, high = bootstrap_interval(D, tasks)
    assert high - low > 2 * 2 * 1.96 * D.std() / np.sqrt(len(tasks))


def test_the_difference_is_paired_by_task():
    records = ablation({"all": [0.10, 0.20, 0.30], "less": [0.12, 0.19]})
    found = difference(records, Where("tiny", "less", "undrift"), Where("tiny", "all", "undrift"))
    assert found.mean == pytest.approx(0.005)  # of the two tasks that both have
    assert (found.low, found.high) == (pytest.approx(0.005), pytest.approx(0.005))  # of the same two domains
    assert (found.n_tasks, found.n_seeds, found.n_worse) == (2, 1, 1)
    assert found.worst == pytest.approx(0.02)


def test_nothing_in_common_is_no_difference():
    records = [*ablation({"all": [0.1]}), transfer("undrift", "x", "y", 0.2, variant="less", seed=0)]
    assert differences(records, "tiny") == []
    other_seed = [*ablation({"all": [0.1]}), *ablation({"less": [0.2]}, seed=1)]
    assert differences(other_seed, "tiny") == []


def test_several_seeds_are_paired_too():
    first = ablation({"all": [0.10, 0.20], "less": [0.12, 0.22]})
    second = ablation({"all": [0.10, 0.30], "less": [0.16, 0.36]}, seed=1)
    (found,) = differences([*first, *second], "tiny")
    assert found.mean == pytest.approx(0.04)
    assert (found.low, found.high) == (pytest.approx(0.02), pytest.approx(0.06))  # seeds differ, tasks do not
    assert (found.n_tasks, found.n_seeds) == (2, 2)
    (found,) = differences([*first, *second[:1], *second[2:]], "tiny")  # b->a was not run to the end
    assert (found.n_tasks, found.n_seeds, found.mean) == (1, 2, pytest.approx(0.04))


def test_the_table_says_how_each_variant_differs():
    records = ablation({"all": [0.10, 0.20, 0.30], "less": [0.12, 0.22, 0.32], "more": [0.10, 0.19, 0.30]})
    table = results_table(records)
    assert "| less | undrift | 3 | 1 | +2.00 | +2.00 to +2.00 |  | 3 of 3, by up to 2.0 |" in table
    assert "| more | undrift | 3 | 1 | -0.33 | -1.00 to +0.00 |  | 0 of 3 |" in table
    assert "| all | undrift | 3 | 1 |" not in table
    names = [f"d{i}" for i in range(MIN_DOMAINS)]
    many = [
        transfer("undrift", a, b, error, variant=variant, seed=0)
        for variant, error in (("all", 0.1), ("less", 0.2))
        for a in names
        for b in names
        if a != b
    ]
    assert "| +10.00 | +10.00 to +10.00 | +10.00 to +10.00 | 90 of 90, by up to 10.0 |" in results_table(many)
    page = fill_page("<!-- bench table: tiny -->\n<!-- end -->\n", records)
    assert "| less | undrift | 3 | 1 | +2.00 |" in page
    assert "interval" not in results_table(records, "another")
    assert "interval" not in results_table(ablation({"some": [0.1], "less": [0.2]}))


def test_an_ablation_has_one_figure_for_all_its_variants(tmp_path):
    records = ablation({"all": [0.10, 0.20, 0.30], "less so": [0.12, 0.22, 0.32], "more": [0.10, 0.19, 0.30]})
    assert [figure["name"] for figure in all_figures(records)] == [
        "tiny-all-figure-1",
        "tiny-all-matrix-undrift",
    ]
    (figure,) = ablation_figures(records)
    assert figure["name"] == "tiny-ablation"
    assert [point["label"] for point in figure["points"]] == ["more", "less so"]  # the lowest first
    assert [point["x"] for point in figure["points"]] == pytest.approx([-0.01 / 3, 0.02])
    assert figure["points"][0]["x_interval"] == [pytest.approx(-0.005), pytest.approx(0)]
    assert ablation_figures(ablation({"some": [0.1], "less": [0.2]})) == []
    several = [*records, *({**record, "method": "svm"} for record in records)]
    assert {p["label"] for p in ablation_figures(several)[0]["points"]} >= {"more, undrift", "more, svm"}


def test_seeds_are_averaged_and_are_not_tasks():
    records = [*ablation({"all": [0.10, 0.20]}), *ablation({"all": [0.16, 0.26]}, seed=1)]
    assert "| tiny | all | undrift | 2 | 18.00 |" in results_table(records)
    own = Where("tiny", "all", "undrift").of(records)
    assert by_task(own) == {"a->b": pytest.approx(0.13), "b->a": pytest.approx(0.23)}
    assert figure_1(records)["series"][0]["y"] == pytest.approx([-0.07, 0.03])
    failed = [{**records[0], "failed": "x", "seed": 2}]
    assert len(failures([*failed, *records])) == 1  # no other seed makes up for it


PLAN = """
methods = ["svm", "msda-1"]
noise = [0.5, 0.8]
n_folds = 3
[corpus]
loader = "amazon-bow"
max_features = 30
"""


def test_a_file_holds_results_of_several_seeds(data, tmp_path):
    path, results = tmp_path / "tiny.toml", tmp_path / "r.jsonl"
    path.write_text(PLAN)
    plan, request = load_plan(path), Request(data=data, tasks=["books->*"], jobs=1)
    assert run(plan, results, request).n_new == 4
    arguments = [
        str(path),
        "--results",
        str(results),
        "--data",
        str(data),
        "--tasks",
        "books->*",
        "--jobs",
        "1",
    ]
    assert main([*arguments, "--seed", "7"]) == 0
    records = read(results)
    half = len(records) // 2
    assert [r["seed"] for r in records] == [0] * half + [7] * half  # all anew, with a grid of its own
    assert [r["kind"] for r in records[:half]] == [r["kind"] for r in records[half:]]
    assert len({r["digest"] for r in records}) == 2
    again = run(plan.seeded(7), results, request)
    assert (again.n_before, again.n_new) == (4, 0)
    assert (run(plan, results, request).n_new, len(read(results))) == (0, 2 * half)
    path.write_text(PLAN.replace("0.8", "0.9"))
    with pytest.raises(ValueError, match="another version of plan tiny"):
        run(load_plan(path).seeded(8), results, request)


def test_a_seed_is_a_whole_number(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["plan.toml", "--results", "r", "--seed=one"])
    assert ended.value.code == 2
    assert capsys.readouterr().err == "undrift: argument --seed: invalid int value: 'one'\n"


def test_no_seed_is_the_plans_own():
    table = {"methods": ["svm"], "seed": 4, "corpus": {"loader": "amazon-bow"}}
    assert parse_plan("p", table).seeded(None).seed == 4
    assert parse_plan("p", table).seeded(0).seed == 0


def test_what_errors_are_compared_with_leaves_the_results_of_a_plan_valid():
    table = {"methods": ["svm"], "corpus": {"loader": "amazon-bow"}, "variants": [{"name": "all"}]}
    with_baseline = parse_plan("p", {**table, "baseline_variant": "all"})
    without = parse_plan("p", table)
    assert with_baseline.digest(with_baseline.variants[0], "svm") == without.digest(
        without.variants[0], "svm"
    )
