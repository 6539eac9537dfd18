"""Plans: what is read from a file, and what is said of a file that cannot be used."""

import hashlib
import json
import tomllib
from pathlib import Path

import pytest

from undrift_lab.catalogue import METHODS, find_family
from undrift_lab.plan import PlanError, load_plan
from undrift_lab.results.expected import load_bars

PAPER = Path(__file__).parents[1] / "plans"
RESULTS = Path(__file__).parents[1] / "results"
PLANS = sorted(path for path in PAPER.glob("*.toml") if path.stem != "expected")


def plan_from(tmp_path, text):
    path = tmp_path / "own.toml"
    path.write_text(text)
    return load_plan(path)


CORPUS = '[corpus]\nloader = "amazon-bow"\n'
SVM = 'methods = ["svm"]\n'
CODA = 'methods = ["coda"]\n' + CORPUS + "[parameters.coda]\n"
UNDRIFT = 'methods = ["undrift"]\n' + CORPUS


def test_plans_come_with_the_wheel_and_have_names(tmp_path, monkeypatch):
    of_the_paper = ["claims", "dimensions", "distance", "full", "multi", "small"]
    ours = ["balance", "kinds", "labels", "peers", "teachers"]
    assert sorted(path.stem for path in PLANS) == sorted(of_the_paper + ours)
    monkeypatch.chdir(tmp_path)
    assert load_plan("small") == load_plan(PAPER / "small.toml")
    with pytest.raises(FileNotFoundError, match=r"no plan smal: .* multi, .* small"):
        load_plan("smal")
    project = tomllib.loads((PAPER.parent / "pyproject.toml").read_text())
    included = project["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    assert included == {"plans": "undrift_lab/plans"}


@pytest.mark.parametrize("path", PLANS, ids=lambda path: path.stem)
def test_plans_of_the_paper_are_valid_and_name_known_methods(path):
    plan = load_plan(path)
    assert plan.name == path.stem
    known = ("msda", "undrift", "peers", "labels", "encoders")
    assert all(find_family(name) in (name, *known) for name in plan.methods)
    assert path.stem != "small" or set(plan.methods) >= set(METHODS)


def test_bars_are_about_methods_and_variants_of_the_plans():
    plans = {path.stem: load_plan(path) for path in PLANS}
    n_tasks = {"small": 4 * 3, "claims": 4 * 3, "multi": 10 * 9, "distance": 4 * 3 // 2}
    n_tasks |= {"dimensions": 4 * 3, "full": 20 * 19}
    bars = tomllib.loads((PAPER / "expected.toml").read_text(encoding="utf-8"))["bar"]
    load_bars("expected")
    for bar in bars:
        own = {"plan": bar["plan"], "variant": bar.get("variant", "main"), "method": bar["method"]}
        assert bar["n_tasks"] == n_tasks[bar["plan"]]
        methods = bar.get("worse_than", [])
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


def test_a_trial_has_another_digest_and_is_checked_as_what_is_read(tmp_path):
    plan = plan_from(tmp_path, 'methods = ["svm"]\n' + CORPUS)
    small = plan.smaller(10, 20)
    assert (small.corpus.max_rows, small.variants[0].max_features) == (10, 20)
    assert small.digest(small.variants[0], "svm") != plan.digest(plan.variants[0], "svm")
    assert plan.smaller(None, None) == plan
    plan = plan_from(tmp_path, SVM + CORPUS)
    assert (plan.seeded(2**32 - 1).seed, plan.seeded(None).seed) == (2**32 - 1, 0)
    for seed in (2**32, -1, True, 1.0):
        with pytest.raises(ValueError, match=rf"^seed={seed}: input"):
            plan.seeded(seed)
    with pytest.raises(ValueError, match=r"^max_rows=0: input"):
        plan.smaller(0, None)
    with pytest.raises(ValueError, match=r"^max_features=0: input"):
        plan.smaller(None, 0)


AT_THE_TOP = [
    ("noize = [0.5]", "noize is not known; did you mean noise"),
    ("noise = [1.0]", "variants.noise=1.0: input"),
    ("noise = 0.5", "variants.noise=0.5: input"),
    ('c_rule = "best"', "variants.c_rule='best': input should be 'authors' or 'searched'"),
    ('fit_on = "one"', "variants.fit_on='one': input should be 'all', 'pair' or 'files'"),
    ('kind = "race"', "kind='race': input should be 'transfer' or 'distance'"),
    ('baseline_variant = "x"', "baseline_variant='x' is none"),
    ("variants = [3]", "variants=3: input should be"),
    ("seed = -1", "seed=-1: input"),
    ("seed = 4294967296", "seed=4294967296: input"),
    ('kind = "distance"\nnoise = [0.7]', 'methods: kind="distance" is about msda-1'),
]
BELOW = [
    ("max_rows = 0", "corpus.max_rows=0: input should be greater than or equal to 1"),
    ("max_features = -2", "corpus.max_features=-2: input should be greater than or equal to 1"),
    ("folder = 3", "corpus.folder is not known"),
    ("[[variants]]\n[[variants]]", "variants has a name twice"),
    ('[[variants]]\nmethods = ["pca"]', "not among the plan's methods"),
    ("[parameters]\nsda = 3", "parameters.sda=3: input should be an object"),
    ("[parameters.svm]\nC = 3", "parameters.svm.C is not known; nothing can be set"),
    ("[parameters.coda]\nmax_rounds = 3", "coda is not among the plan's methods"),
]
OF_UNDRIFT = [
    ("[parameters.undrift]\ndevice = 'cuda'", "parameters.undrift.device is not known"),
    ("[parameters.undrift]\nn_layer = 1", "parameters.undrift.n_layer is not known; did you mean"),
    ('[[variants]]\ninductive = "yes"', "variants.inductive='yes': input should be a valid boolean"),
    ("[[variants]]\nmethods = []", "variants.methods=[]: "),
    ("[[variants]]\ntarget_share = 1.0", "target_share=1.0: input"),
    ("[[variants]]\ntarget_share = 0.5\ninductive = true", "inductive does not go with target_share"),
    ("[[variants]]\nmax_target_rows = 0", "max_target_rows=0"),
    ('[[variants]]\ncorpus = { loader = "amazon" }', "corpus: loader='amazon'"),
]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("methods = [", "not a TOML file"),
        (SVM, "corpus is missing"),
        (CORPUS, "methods is missing"),
        ('methods = ["svn"]\n' + CORPUS, "method 'svn' is not known; known are svm, "),
        ('methods = ["msda-0"]\n' + CORPUS, "'msda-0' is not known"),
        ('methods = ["svm", "svm"]\n' + CORPUS, "methods has a name twice"),
        ("methods = []\n" + CORPUS, "methods=[]: "),
        ('methods = ["pca"]\ninductive = true\n' + CORPUS, "inductive: method pca learns from the test rows"),
        *((f"{SVM}{line}\n{CORPUS}", complaint) for line, complaint in AT_THE_TOP),
        *((f"{SVM}{CORPUS}{lines}\n", complaint) for lines, complaint in BELOW),
        *((f"{UNDRIFT}{lines}\n", complaint) for lines, complaint in OF_UNDRIFT),
        (SVM + '[corpus]\nloader = "imdb"\n', "corpus: loader='imdb' is not known"),
        (CODA + "max_rownds = 3\n", "parameters.coda.max_rownds is not known; did you mean max_rounds?"),
        (CODA + "random_state = 3\n", "parameters.coda.random_state is not known"),
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


def test_parameters_that_are_known_pass(tmp_path):
    plan = plan_from(
        tmp_path,
        'methods = ["pca", "scl", "coda", "sda", "undrift"]\n'
        + CORPUS
        + "[parameters.pca]\nwhiten = true\n[parameters.scl]\nn_components = 3\n"
        + "[parameters.coda]\nmax_rounds = 2\n[parameters.sda]\nn_hidden = [3, 4]\n"
        + "[parameters.undrift]\nself_training = false\n"
        + '[[variants]]\nname = "a"\n[[variants]]\nname = "b"\ninductive = true\nmethods = ["undrift"]\n',
    )  # fmt: skip
    assert plan.parameters["sda"]["n_hidden"] == [3, 4]
    assert plan.parameters["undrift"] == {"self_training": False}


def test_a_digest_is_of_the_values_that_are_not_defaults(tmp_path):
    plans = [plan_from(tmp_path, f"{SVM}{line}{CORPUS}") for line in ("noise = [0.6]\n", "")]
    ours, other = (plan.digest(plan.variants[0], "svm") for plan in plans)
    decisive = [{"loader": "amazon-bow"}, {"noise": [0.6]}, "transfer", 0, {}]
    assert ours == hashlib.sha256(json.dumps(decisive).encode()).hexdigest()[:12] != other


@pytest.mark.parametrize("path", sorted(RESULTS.glob("*.jsonl")), ids=lambda path: path.stem)
def test_every_record_is_of_the_plan_as_it_stands(path):
    known = set()
    for line in path.read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        own = (record[name] for name in ("plan", "variant", "seed", "digest"))
        known.add((*own, record.get("method", "msda-1")))
    for name, variant, seed, digest, method in known:
        plan = load_plan(name).seeded(seed)
        setting = next(each for each in plan.variants if each.name == variant)
        assert plan.digest(setting, method) == digest, (variant, method)
