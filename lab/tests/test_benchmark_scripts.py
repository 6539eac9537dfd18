"""Scripts of `lab/scripts/` at the smallest sizes: they run, and time or change what they say they do."""

import ast
import importlib
import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

from tests.helpers.bilingual import write_reviews

SCRIPTS = Path(__file__).parents[1] / "scripts"
NAMES = ("bridge", "drift", "harness", "languages", "sda_cpu")


@pytest.fixture(autouse=True)
def scripts(monkeypatch):
    monkeypatch.syspath_prepend(SCRIPTS)
    yield
    for name in NAMES:
        sys.modules.pop(name, None)


@pytest.fixture
def print_script(monkeypatch, capsys):
    """Call a function of a script with a command line, and return what it printed."""

    def call(script, *arguments, function="main"):
        module = importlib.import_module(script)
        monkeypatch.setattr(sys, "argv", [f"{script}.py", *map(str, arguments)])
        arguments = [] if function == "main" else [module.parse_arguments()]
        getattr(module, function)(*arguments)
        return capsys.readouterr().out

    return call


def read_last_line(printed):
    return json.loads(printed.splitlines()[-1])


def test_languages_are_compared(print_script):
    options = ["--languages", "Hindi", "--tokens", "words", "--rows", "60", "--seeds", "1"]
    records = read_last_line(print_script("languages", *options))["records"]
    assert records["Hindi, words"]["chosen"] == "words"
    assert 0 <= records["Hindi, words"]["adapted"] <= 0.6


def test_languages_are_crossed(print_script, monkeypatch, tmp_path):
    monkeypatch.setenv("UNDRIFT_DATA", str(tmp_path))
    monkeypatch.setenv("UNDRIFT_CACHE", str(tmp_path / "cache"))
    for folder in ("fdu-mtl", "chinese_reviews"):
        (tmp_path / folder).mkdir()
    for seed, name in enumerate(("electronics", "kitchen_housewares")):
        texts, labels = write_reviews("English", 40, seed)
        lines = [f"{int(label == 'good')}\t{text}\n" for text, label in zip(texts, labels, strict=True)]
        for part in ("train", "test"):
            (tmp_path / "fdu-mtl" / f"{name}.task.{part}").write_text("".join(lines), encoding="utf-8")
    names = {"good": "positive", "bad": "negative"}
    pairs = zip(*write_reviews("Chinese", 80), strict=True)
    rows = [json.dumps({"text": text, "label": names[label]}) for text, label in pairs]
    (tmp_path / "chinese_reviews" / "phones.jsonl").write_text("\n".join(rows), encoding="utf-8")
    options = ["--corpora", "chinese_reviews", "--rows", "80", "--seeds", "1"]
    record = read_last_line(print_script("bridge", *options))["records"]["chinese_reviews, phones"]
    assert record["bridge"] <= record["vectors"] + 0.1
    assert 0 <= record["asked"] <= 0.2
    assert 0.3 <= record["positive"] <= 0.7


def test_a_result_is_stored_where_it_is_asked_for(monkeypatch, tmp_path):
    harness = importlib.import_module("harness")
    monkeypatch.setattr(harness, "RESULTS", tmp_path)
    for arguments, n_files in (([], 0), (["--store", "--rows", "3"], 1)):
        monkeypatch.setattr(sys, "argv", ["a/try.py", *arguments])
        harness.store("try", [{"error, %": "1.5"}])
        assert len(list(tmp_path.iterdir())) == n_files
    stored = json.loads((tmp_path / "try.json").read_text())
    assert (stored["command"], stored["rows"]) == (
        "python lab/scripts/try.py --rows 3",
        [{"error, %": "1.5"}],
    )


def run_python(*command, **options):
    return subprocess.run([sys.executable, *command], capture_output=True, text=True, check=False, **options)


def test_scripts_measure_the_library_beside_them(tmp_path):
    (tmp_path / "lab" / "scripts").mkdir(parents=True)
    shutil.copy(SCRIPTS / "harness.py", tmp_path / "lab" / "scripts")
    (tmp_path / "src" / "undrift").mkdir(parents=True)
    (tmp_path / "src" / "undrift" / "__init__.py").write_text("name = 'the one beside'\n")
    program = "import harness, undrift; print(undrift.name)"
    assert run_python("-c", program, cwd=tmp_path / "lab" / "scripts").stdout == "the one beside\n"


def test_sda_is_timed_on_whole_epochs_of_all_rows(print_script, monkeypatch):
    rows = sp.random(60, 12, 0.3, format="csr", dtype="float32", random_state=0)
    monkeypatch.setattr(importlib.import_module("sda_cpu"), "amazon_presence", lambda *_: rows)
    options = ["--epochs-timed", 3, "--warm-up-rows", 10]
    record = read_last_line(print_script("sda_cpu", *options, function="run_sda"))
    assert (record["timed_epochs"], record["timed_rows"], record["n_epochs"]) == (3, 60, 30)
    assert_allclose(record["seconds"], 10 * record["timed_seconds"], rtol=1e-9)


def test_rows_are_drawn_with_the_share_that_is_asked_for(rng):
    draw_share = importlib.import_module("harness").draw_share
    y = np.append(rng.permutation([0.0] * 60 + [1.0] * 40), np.full(10, np.nan))
    known = np.flatnonzero(~np.isnan(y))
    for share, most, n in ((0.5, 100, 80), (0.8, 100, 50), (0.1, 100, 66), (0.5, 20, 20), (0.0, 100, 60)):
        drawn = draw_share(y, known, share, most, seed=0)
        assert len(drawn) == len(set(drawn.tolist())) == n
        assert_allclose(y[drawn].mean(), share, atol=1 / n)


def test_batches_of_drift_are_counted_by_kind(print_script, data_folder):
    text = print_script(
        "drift", "--pairs", "books:dvd", "--batches", 2, "--sizes", 10, 20, "--rows", 120, "--terms", 40
    )
    rows = [[cell.strip() for cell in line.split("|")] for line in text.splitlines() if line.startswith("|")]
    called = {row[1]: (row[2], row[3]) for row in rows}
    kinds = ["same domain", "another domain", "another language", "a share changed by 30 points"]
    assert list(called) == kinds
    assert called["another language"] == ("2", "100.0")


@pytest.mark.parametrize("script", sorted(SCRIPTS.glob("*.py")), ids=lambda path: path.name)
def test_scripts_import_names_that_exist(script):
    """Inside functions too, where nothing would notice until one is run."""
    nodes = ast.walk(ast.parse(script.read_text(encoding="utf-8")))
    imports = [node for node in nodes if isinstance(node, ast.ImportFrom)]
    for node in imports:
        if node.module.split(".")[0] == "undrift":
            module = importlib.import_module(node.module)
            assert all(hasattr(module, alias.name) for alias in node.names)
