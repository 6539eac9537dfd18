"""Plans: what is read from a file, and what is said of a file that cannot be used."""

import tomllib
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from undrift.bench import PlanError, load_plan
from undrift.bench.catalogue import METHODS, find_family
from undrift.bench.results.expected import load_bars

PAPER = Path(__file__).parents[2] / "paper"
PLANS = sorted(path for path in PAPER.glob("*.toml") if path.stem != "expected")


def plan_from(tmp_path, text):
    path = tmp_path / "own.toml"
    path.write_text(text)
    return load_plan(path)


REGRET = 'kind = "regret"\nmethods = ["undrift"]\n'
CORPUS = '[corpus]\nloader = "amazon-bow"\n'
SVM = 'methods = ["svm"]\n'
MULTI = '[corpus]\nloader = "multidomain"\noptions = '
REVIEWS = '[corpus]\nloader = "reviews"\noptions = '
CODA = 'methods = ["coda"]\n' + CORPUS + "[parameters.coda]\n"
UNDRIFT = 'methods = ["undrift"]\n' + CORPUS


def test_the_paper_has_its_six_plans_and_ours_beyond_it_eight():
    of_the_paper = ["claims", "dimensions", "distance", "full", "multi", "small"]
    ours = ["balance", "balance-terms", "beyond-multi", "beyond-small", "labels", "peers"]
    ours += ["regret-multi", "regret-small"]
    assert sorted(path.stem for path in PLANS) == sorted(of_the_paper + ours)


def test_plans_that_come_with_undrift_have_names(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert load_plan("small") == load_plan(PAPER / "small.toml")
    with pytest.raises(FileNotFoundError, match=r"no plan smal: .* multi, .* small"):
        load_plan("smal")


def test_the_wheel_holds_every_plan():
    project = tomllib.loads((PAPER.parent / "pyproject.toml").read_text())
    included = project["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    assert set(included) == {f"paper/{path.name}" for path in PAPER.glob("*.toml")}
    assert all(place == name.replace("paper", "undrift/bench/plans") for name, place in included.items())


@pytest.mark.parametrize("path", PLANS, ids=lambda path: path.stem)
def test_plans_of_the_paper_are_valid_and_name_known_methods(path):
    plan = load_plan(path)
    assert plan.name == path.stem
    assert all(find_family(name) in (name, "msda", "undrift", "peers", "labels") for name in plan.methods)


def test_the_small_plan_has_every_method_of_the_contract():
    assert set(load_plan(PAPER / "small.toml").methods) >= set(METHODS)


def test_bars_are_about_methods_and_variants_of_the_plans():
    plans = {path.stem: load_plan(path) for path in PLANS}
    n_tasks = {"small": 4 * 3, "claims": 4 * 3, "multi": 10 * 9, "distance": 4 * 3 // 2}
    n_tasks |= {"beyond-small": n_tasks["small"], "beyond-multi": n_tasks["multi"]}
    bars = tomllib.loads((PAPER / "expected.toml").read_text(encoding="utf-8"))["bar"]
    load_bars("expected")
    for bar in bars:
        if "variants" in bar:
            variants = {variant.name: variant for variant in plans[bar["plan"]].variants}
            sources = [9 if variants[name].corpus else 3 for name in bar["variants"]]
            n_targets = [len(variants[name].targets or range(4)) for name in bar["variants"]]
            assert bar["n_tasks"] == sum(map(int.__mul__, sources, n_targets))
            assert {bar["method"], *bar.get("never_above", [])} <= set(plans[bar["plan"]].methods)
            continue
        own = {"plan": bar["plan"], "variant": bar.get("variant", "main"), "method": bar["method"]}
        assert bar["n_tasks"] == n_tasks[bar["plan"]]
        methods = [*bar.get("best_of", []), bar.get("worse_than", bar["method"])]
        others = [own | bar.get("than", {}), *(own | {"method": name} for name in methods)]
        for place in (own, *others):
            plan = plans[place["plan"]]
            assert place["method"] in plan.methods
            (setting,) = [v for v in plan.variants if v.name == place["variant"]]
            assert setting.methods is None or place["method"] in setting.methods


def test_what_stands_at_the_top_serves_every_variant(tmp_path):
    plan = plan_from(
        tmp_path,
        'methods = ["svm"]\nnoise = [0.5]\n' + CORPUS
        + '[[variants]]\nname = "a"\n[[variants]]\nname = "b"\nnoise = [0.9]\nc_rule = "searched"\n',
    )  # fmt: skip
    assert [v.noise for v in plan.variants] == [(0.5,), (0.9,)]
    assert [len(v.Cs) for v in plan.variants] == [1, 7]
    assert plan.digest(plan.variants[0], "svm") != plan.digest(plan.variants[1], "svm")


def test_a_trial_has_fewer_rows_and_columns_and_another_digest(tmp_path):
    plan = plan_from(tmp_path, 'methods = ["svm"]\n' + CORPUS)
    small = plan.smaller(10, 20)
    assert (small.corpus.max_rows, small.variants[0].max_features) == (10, 20)
    assert small.digest(small.variants[0], "svm") != plan.digest(plan.variants[0], "svm")
    assert plan.smaller(None, None) == plan


def test_what_is_changed_is_checked_as_what_is_read(tmp_path):
    plan = plan_from(tmp_path, SVM + CORPUS)
    assert (plan.seeded(2**32 - 1).seed, plan.seeded(None).seed) == (2**32 - 1, 0)
    for seed in (2**32, -1, True, 1.0):
        with pytest.raises(ValueError, match=rf"^seed={seed} must be a whole number, at least 0 and below"):
            plan.seeded(seed)
    with pytest.raises(ValueError, match=r"^max_rows=0 must be at least 1$"):
        plan.smaller(0, None)
    with pytest.raises(ValueError, match=r"^max_features=0 must be at least 1$"):
        plan.smaller(None, 0)
    with pytest.raises(ValueError, match=r"^max_features=-1 must be at least 1$"):
        replace(plan.corpus, max_features=-1)


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
        ('methods = ["svm"]\n' + CORPUS + "max_rows = 0\n", "corpus.max_rows=0 must be at least 1"),
        (SVM + CORPUS + "max_rows = 1.5\n", "corpus.max_rows must be an integer, got 1.5"),
        (SVM + CORPUS + "max_features = -2\n", "corpus.max_features=-2 must be at least 1"),
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
        (REGRET + "small_grid = 3\n" + CORPUS, "small_grid must be a table, got 3"),
        (REGRET + "rules = []\n" + CORPUS, "rules must hold at least one value"),
        (SVM + CORPUS + 'options = "x"\n', "corpus.options='x' must be a table"),
        (SVM + CORPUS + "folder = 3\n", "corpus.folder=3 must be a string"),
        (SVM + CORPUS + 'options = { folder = "x" }\n', "corpus.options.folder is not known; nothing can be"),
        (
            SVM + MULTI + "{ tset_size = 0.2 }\n",
            "options.tset_size is not known; did you mean corpus.options.test",
        ),
        (SVM + MULTI + '{ test_size = "a" }\n', "corpus.options.test_size='a' must be a number"),
        (SVM + MULTI + "{ min_reviews = 1.5 }\n", "corpus.options.min_reviews=1.5 must be an integer"),
        (SVM + MULTI + "{ random_state = true }\n", "corpus.options.random_state=True must be an integer"),
        (SVM + REVIEWS + '{ domains = "books" }\n', "corpus.options.domains='books' must be a list"),
        (SVM + CORPUS + "[parameters.svm]\nC = 3\n", "parameters.svm.C is not known; nothing can be set"),
        (
            'methods = ["msda-5"]\n' + CORPUS + "[parameters.msda-5]\nnoise = 0.1\n",
            "parameters.msda-5.noise is",
        ),
        (CODA + "max_rownds = 3\n", "did you mean parameters.coda.max_rounds?"),
        (CODA + "random_state = 3\n", "parameters.coda.random_state is not known"),
        (CODA + "max_rounds = 2020-01-01\n", "parameters.coda.max_rounds=datetime.date(2020, 1, 1) must be"),
        (SVM + CORPUS + "[parameters.coda]\nmax_rounds = 3\n", "coda is not among the plan's methods"),
        (UNDRIFT + "[parameters.undrift]\ndevice = 'cuda'\n", "parameters.undrift.device is not known"),
        (UNDRIFT + "[[variants]]\nchanges = { n_layer = 1 }\n", "did you mean changes.n_layers?"),
        (UNDRIFT + "[[variants]]\nchanges = { verbose = true }\n", "changes.verbose is not known"),
        (
            UNDRIFT + "[[variants]]\nchanges = { C = 2020-01-01 }\n",
            "changes.C=datetime.date(2020, 1, 1) must be",
        ),
        (UNDRIFT + "[[variants]]\nchanges = 3\n", "changes must be a table, got 3"),
        (UNDRIFT + '[[variants]]\ninductive = "yes"\n', "inductive='yes' must be true or false"),
        (UNDRIFT + "[[variants]]\nname = 3\n", "name=3 must be a string"),
        (UNDRIFT + "[[variants]]\nmethods = []\n", "variants.methods=[] must be a list of names"),
        (UNDRIFT + '[[variants]]\nname = "a"\nnoise = [2]\n', "variant 'a': noise=2 must be at least 0"),
        (SVM + "variants = [3]\n" + CORPUS, "variants must be a table, got 3"),
        (SVM + "changes = { C = 1.0 }\n" + CORPUS, "changes is about method undrift"),
        (SVM + "n_folds = 1\n" + CORPUS, "n_folds=1 must be at least 2"),
        (SVM + "seed = 4294967296\n" + CORPUS, "seed=4294967296 must be a whole number"),
        ('kind = "distance"\nnoise = [0.7]\n' + SVM + CORPUS, 'methods: kind="distance" is about msda-1'),
        ('kind = "distance"\nmethods = ["msda-5"]\n' + CORPUS, 'noise: kind="distance" takes one level'),
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


def test_options_and_parameters_that_are_known_pass(tmp_path):
    plan = plan_from(
        tmp_path,
        'methods = ["pca", "scl", "coda", "sda", "undrift"]\n'
        + MULTI + "{ test_size = 0.3, min_reviews = 10, random_state = 2 }\n"
        + "[parameters.pca]\nwhiten = true\n[parameters.scl]\nn_components = 3\n"
        + "[parameters.coda]\nmax_rounds = 2\n[parameters.sda]\nn_hidden = [3, 4]\n"
        + "[parameters.undrift]\nlength = 2.0\n"
        + '[[variants]]\nname = "a"\n[[variants]]\nname = "b"\ninductive = true\nmethods = ["undrift"]\n'
        + "changes = { fallback = false }\n",
    )  # fmt: skip
    assert plan.corpus.options == {"test_size": 0.3, "min_reviews": 10, "random_state": 2}
    assert plan.parameters["sda"]["n_hidden"] == [3, 4]
    assert [variant.changes for variant in plan.variants] == [{}, {"fallback": False}]


def digests(tmp_path, method, **changes):
    given = ", ".join(f"{name} = {value}" for name, value in changes.items())
    plan = plan_from(
        tmp_path, 'methods = ["svm", "undrift"]\n' + (f"changes = {{ {given} }}\n" if given else "") + CORPUS
    )
    return plan.digest(plan.variants[0], method)


@pytest.mark.parametrize(
    ("name", "value"), [("TEXT_NOISE", 0.5), ("TFIDF_LENGTH", 4.0), ("SelfTraining", "rounds")]
)
def test_other_defaults_of_undrift_are_another_version_of_its_plans(tmp_path, monkeypatch, name, value):
    from undrift.bench import catalogue
    from undrift.classifier.self_training import SelfTraining
    from undrift.text import adapter

    before = [digests(tmp_path, method) for method in ("undrift", "svm")]
    if value == "rounds":
        value = partial(SelfTraining, n_rounds=2)
    monkeypatch.setattr(adapter if name == "TEXT_NOISE" else catalogue, name, value)
    after = [digests(tmp_path, method) for method in ("undrift", "svm")]
    assert before[0] != after[0]
    assert before[1] == after[1]


def test_a_default_that_a_plan_sets_itself_is_not_its_version(tmp_path, monkeypatch):
    from undrift.text import adapter

    before = digests(tmp_path, "undrift", noise=0.6)
    monkeypatch.setattr(adapter, "TEXT_NOISE", 0.5)
    assert digests(tmp_path, "undrift", noise=0.6) == before


def test_results_of_plans_without_undrift_stay_valid():
    claims, small = load_plan(PAPER / "claims.toml"), load_plan(PAPER / "small.toml")
    claimed = [claims.digest(variant, "msda-5") for variant in claims.variants[:3]]
    assert claimed == ["cea323a0313c", "af03f3c27092", "e3552002b3fe"]
    assert small.digest(small.variants[1], "svm") == "b936b6e9e131"  # its methods are those of the paper
