"""Plans: what is read from a file, and what is said of a file that cannot be used."""

from pathlib import Path

import pytest

from undrift.bench import PlanError, load_plan
from undrift.bench.expected import load_bars
from undrift.bench.methods import METHODS, known_method

PAPER = Path(__file__).parents[2] / "paper"
PLANS = sorted(path for path in PAPER.glob("*.toml") if path.stem != "expected")


def plan_from(tmp_path, text):
    path = tmp_path / "own.toml"
    path.write_text(text)
    return load_plan(path)


REGRET = 'kind = "regret"\nmethods = ["undrift"]\n'
CORPUS = '[corpus]\nloader = "amazon-bow"\n'


def test_the_paper_has_its_six_plans_and_ours_beyond_it_four():
    of_the_paper = ["claims", "dimensions", "distance", "full", "multi", "small"]
    assert [path.stem for path in PLANS] == sorted(
        ["beyond-multi", "beyond-small", "regret-multi", "regret-small", *of_the_paper]
    )


@pytest.mark.parametrize("path", PLANS, ids=lambda path: path.stem)
def test_plans_of_the_paper_are_valid_and_name_known_methods(path):
    plan = load_plan(path)
    assert plan.name == path.stem
    assert all(known_method(name).name == name for name in plan.methods)


def test_the_small_plan_has_every_method_of_the_contract():
    assert set(load_plan(PAPER / "small.toml").methods) == set(METHODS)


def test_bars_are_about_methods_and_variants_of_the_plans():
    plans = {path.stem: load_plan(path) for path in PLANS}
    n_tasks = {"small": 4 * 3, "claims": 4 * 3, "multi": 10 * 9, "distance": 4 * 3 // 2}
    for bar in load_bars(PAPER / "expected.toml"):
        assert bar.n_tasks == sum(n_tasks[plan] for plan in (bar.plan, *bar.and_plans))
        for method, variant in (
            (bar.method, bar.variant),
            (
                bar.method if bar.than is None else bar.than["method"],
                (bar.than or {}).get("variant", bar.variant),
            ),
            *((name, bar.variant) for name in bar.best_of or []),
        ):
            assert method in plans[bar.plan].methods
            (setting,) = [v for v in plans[bar.plan].variants if v.name == variant]
            assert setting.methods is None or method in setting.methods


def test_what_stands_at_the_top_serves_every_variant(tmp_path):
    plan = plan_from(
        tmp_path,
        'methods = ["svm"]\nnoise = [0.5]\n' + CORPUS
        + '[[variants]]\nname = "a"\n[[variants]]\nname = "b"\nnoise = [0.9]\nc_rule = "searched"\n',
    )  # fmt: skip
    assert [v.noise for v in plan.variants] == [(0.5,), (0.9,)]
    assert [len(v.Cs) for v in plan.variants] == [1, 7]
    assert plan.digest(plan.variants[0]) != plan.digest(plan.variants[1])


def test_a_trial_has_fewer_rows_and_columns_and_another_digest(tmp_path):
    plan = plan_from(tmp_path, 'methods = ["svm"]\n' + CORPUS)
    small = plan.smaller(10, 20)
    assert (small.corpus.max_rows, small.variants[0].max_features) == (10, 20)
    assert small.digest(small.variants[0]) != plan.digest(plan.variants[0])
    assert plan.smaller(None, None) == plan


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("methods = [", "not a TOML file"),
        ('methods = ["svm"]\n', "corpus is missing"),
        (CORPUS, "methods is missing"),
        ('methods = ["svn"]\n' + CORPUS, "method 'svn' is not known; known are svm, "),
        ('methods = ["msda-0"]\n' + CORPUS, "'msda-0' is not known"),
        ('methods = ["svm", "svm"]\n' + CORPUS, "twice"),
        ("methods = []\n" + CORPUS, "at least one"),
        ('methods = "svm"\n' + CORPUS, "must be a list"),
        ('methods = ["svm"]\nnoize = [0.5]\n' + CORPUS, "noize is not known; did you mean noise"),
        ('methods = ["svm"]\nnoise = [1.0]\n' + CORPUS, "below 1"),
        ('methods = ["svm"]\nnoise = 0.5\n' + CORPUS, "noise=0.5 must be a list"),
        ('methods = ["svm"]\nc_rule = "best"\n' + CORPUS, "c_rule='best' is not known"),
        ('methods = ["svm"]\nfit_on = "one"\n' + CORPUS, "fit_on='one' is not known"),
        ('methods = ["svm"]\nseed = -1\n' + CORPUS, "seed=-1"),
        ('methods = ["svm"]\nkind = "race"\n' + CORPUS, "kind='race' is not known"),
        ('methods = ["svm"]\nbaseline_variant = "x"\n' + CORPUS, "baseline_variant='x' is none"),
        ('methods = ["svm"]\n[corpus]\nloader = "imdb"\n', "corpus.loader='imdb' is not known"),
        ('methods = ["svm"]\n' + CORPUS + "max_rows = 0\n", "corpus.max_rows=0"),
        ('methods = ["svm"]\n' + CORPUS + "[[variants]]\n[[variants]]\n", "needs a name"),
        (
            'methods = ["svm"]\n' + CORPUS + '[[variants]]\nmethods = ["pca"]\n',
            "not among the plan's methods",
        ),
        ('methods = ["svm"]\n' + CORPUS + "[parameters]\nsda = 3\n", "one table for each method"),
        ('kind = "regret"\nmethods = ["svm"]\n' + CORPUS, 'give methods = ["undrift"]'),
        (REGRET + "depths = [0]\n" + CORPUS, "depths=0 must be at least 1"),
        (REGRET + "depths = []\n" + CORPUS, "depths must hold at least one value"),
        (REGRET + 'rules = ["luck"]\n' + CORPUS, "rules='luck' is not known"),
        (REGRET + "small_grid = { depth = [1] }\n" + CORPUS, "did you mean small_grid.depths?"),
        (REGRET + "small_grid = { noise = [0.1] }\n" + CORPUS, "holds 0.1, which is not in noise"),
    ],
)
def test_a_bad_plan_is_one_line_that_names_the_file(tmp_path, text, complaint):
    with pytest.raises(PlanError) as caught:
        plan_from(tmp_path, text)
    message = str(caught.value)
    assert message.startswith(str(tmp_path / "own.toml"))
    assert complaint in message
    assert "\n" not in message


def test_a_plan_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError):
        load_plan(tmp_path / "none.toml")
