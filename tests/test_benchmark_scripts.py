"""Scripts of `benchmarks/` at the smallest sizes: they run, and time or change what they say they do."""

import importlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm

torch = pytest.importorskip("torch")

from undrift._core.denoise import denoise
from undrift._core.scatter import scatter
from undrift._inputs.device import NoDevice
from undrift.classifier.targets import HeldOut

SCRIPTS = Path(__file__).parents[1] / "benchmarks"
NAMES = (
    "approximation", "balance_pairs", "class_spreads", "drift", "family", "family_layers", "harness",
    "many_rows", "precision", "safeguard", "sda_cpu", "selection", "share_constants", "updating",
)  # fmt: skip


@pytest.fixture(autouse=True)
def scripts(monkeypatch):
    monkeypatch.syspath_prepend(SCRIPTS)
    yield
    for name in NAMES:
        sys.modules.pop(name, None)


@pytest.fixture
def call_script(monkeypatch, capsys):
    """Call a function of a script with a command line, and parse the JSON of its last line."""

    def call(script, function, *arguments):
        module = importlib.import_module(script)
        monkeypatch.setattr(sys, "argv", [f"{script}.py", *map(str, arguments)])
        arguments = [] if function == "main" else [module.parse_arguments()]
        getattr(module, function)(*arguments)
        return json.loads(capsys.readouterr().out.splitlines()[-1])

    return call


def test_languages_are_compared(call_script):
    options = ["--languages", "Hindi", "--tokens", "words", "--rows", "60", "--seeds", "1"]
    records = call_script("languages", "main", *options)["records"]
    assert records["Hindi, words"]["chosen"] == "words"
    assert 0 <= records["Hindi, words"]["adapted"] <= 0.6


def test_updates_are_timed_beside_a_refit(call_script):
    sizes = ["--rows", "150", "--features", "250", "--labels", "3", "--layers", "1"]
    record = call_script("updating", "main", *sizes)
    assert record["ratio"] == pytest.approx(record["refit_seconds"] / record["update_seconds"], rel=0.2)
    assert record["file_bytes"] > record["file_bytes_without_state"]


def run_python(*command, **options):
    return subprocess.run([sys.executable, *command], capture_output=True, text=True, check=False, **options)


def test_scripts_measure_the_library_beside_them(tmp_path):
    (tmp_path / "benchmarks").mkdir()
    shutil.copy(SCRIPTS / "harness.py", tmp_path / "benchmarks")
    (tmp_path / "src" / "undrift").mkdir(parents=True)
    (tmp_path / "src" / "undrift" / "__init__.py").write_text("name = 'the one beside'\n")
    program = "import harness, undrift; print(undrift.name)"
    assert run_python("-c", program, cwd=tmp_path / "benchmarks").stdout == "the one beside\n"


@pytest.mark.parametrize("script", ["speed_gpu.py", "selection.py"])
def test_without_a_gpu_a_script_ends_in_one_line(script):
    hidden = {**os.environ, "CUDA_VISIBLE_DEVICES": "-1"}
    done = run_python(SCRIPTS / script, "--device", "cuda", env=hidden)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("device='cuda', but PyTorch sees no CUDA GPU here: install")
    assert done.stderr.count("\n") == 1


TINY = ("--rows", 40, "--terms", 20, "--noises", 0.5, 0.7, "--layers", 2, "--C", 0.3)


@pytest.mark.parametrize("way", ["stacks", "search"])
def test_selection_takes_a_device_and_reports_the_first_run_separately(way, call_script, data_folder):
    arguments = (*TINY, "--data", data_folder / "fdu-mtl", "--contender", way)
    record = call_script("selection", "run", *arguments, "--device", "torch:cpu")
    assert 0 < record["seconds"] <= record["first_seconds"]
    if way == "search":
        assert (record["n_labelled"], record["n_candidates"]) == (40, 4)
    with pytest.raises(NoDevice, match="device='gpu'"):
        call_script("selection", "run", *arguments, "--device", "gpu")


def test_selection_learns_from_all_domains_if_asked(call_script, data_folder):
    arguments = (*TINY, "--data", data_folder / "fdu-mtl", "--contender", "stacks")
    n_domains = len(list((data_folder / "fdu-mtl").glob("*.task.train*")))
    assert call_script("selection", "run", *arguments)["shape"] == "(80, 20)"
    assert (
        call_script("selection", "run", *arguments, "--target", "all")["shape"] == f"({40 * n_domains}, 20)"
    )


def test_sda_is_timed_on_whole_epochs_of_all_rows(call_script, monkeypatch):
    rows = sp.random(60, 12, 0.3, format="csr", dtype="float32", random_state=0)
    monkeypatch.setattr(importlib.import_module("sda_cpu"), "amazon_presence", lambda *_: rows)
    record = call_script("sda_cpu", "run_sda", "--epochs-timed", 3, "--warm-up-rows", 10)
    assert (record["timed_epochs"], record["timed_rows"], record["n_epochs"]) == (3, 60, 30)
    assert len(record["timed_epoch_seconds"]) == 3
    assert min(record["timed_epoch_seconds"]) > 0
    assert_allclose(record["seconds"], 30 * np.mean(record["timed_epoch_seconds"]), rtol=1e-9)


def test_errors_are_printed_for_every_precision(call_script, data_folder):
    arguments = ("--data", data_folder / "amazon-bow", "--device", "cpu", "--max-features", 30, "--rows", 20)
    results = call_script("precision", "main", *arguments)
    assert set(results) == {"high, float32", "highest, float32", "highest, float64"}
    assert all(0 < error < 1 for errors in results.values() for error in errors.values())
    assert results["high, float32"] == results["highest, float32"]  # on NumPy they are the same


@pytest.fixture
def rows(rng):
    return {name: torch.tensor(rng.normal(size=(n, 6))) for name, n in (("a", 30), ("b", 20))}


def weights(layers):
    (layer,) = {id(layer): layer for layer in layers.values()}.values()  # one for all domains
    return layer.coef.numpy()


def test_fewer_rows_are_those_of_the_upper_layers_alone(rows):
    approximation = importlib.import_module("approximation")
    stats = {name: scatter(X) for name, X in rows.items()}
    sample = {"a": np.array([0, 3, 9, 11, 12, 25]), "b": np.array([1, 2, 19])}
    for depth in (0, 1):
        taken = [X if depth == 0 else X[sample[name]] for name, X in rows.items()]
        expected = denoise(scatter(torch.cat(taken).numpy()), noise=0.7)
        ours = weights(approximation.solve_on_fewer_rows(depth, rows, stats, sample))
        assert_allclose(ours, expected.coef, rtol=1e-9)


def test_leading_directions_are_those_of_the_upper_layers_alone(rows):
    approximation = importlib.import_module("approximation")
    stats = {name: scatter(X) for name, X in rows.items()}
    W, cut = weights(approximation.masking(1, rows, stats)), approximation.solve_in_leading_directions
    assert_array_equal(weights(cut(0, rows, stats, 2)), W)
    assert_allclose(weights(cut(1, rows, stats, 6)), W, rtol=1e-9)
    values = np.linalg.svd(W, compute_uv=False)
    left = np.linalg.norm(W - weights(cut(1, rows, stats, 2)))
    assert_allclose(left, np.sqrt((values[2:] ** 2).sum()), rtol=1e-9)  # Eckart and Young


def test_samples_are_as_large_as_asked_and_repeat():
    approximation = importlib.import_module("approximation")
    corpus = SimpleNamespace(domains={"a": range(4000), "b": range(6000)})
    first, again, other = (approximation.draw_rows(corpus, 5000, seed) for seed in (0, 0, 1))
    assert {name: len(set(drawn)) for name, drawn in first.items()} == {"a": 2000, "b": 3000}
    for name, drawn in first.items():
        assert drawn.max() < len(corpus.domains[name])
        assert_array_equal(drawn, again[name])
        assert not np.array_equal(drawn, other[name])


@pytest.fixture
def print_script(monkeypatch, capsys, data_folder):
    """Run a script with a command line, and return what it printed."""

    def call(script, *arguments):
        monkeypatch.setattr(sys, "argv", [f"{script}.py", *map(str, arguments)])
        importlib.import_module(script).main()
        return capsys.readouterr().out

    return call


def test_rows_are_drawn_with_the_share_that_is_asked_for(rng):
    draw_share = importlib.import_module("balance_pairs").draw_share
    y = np.append(rng.permutation([0.0] * 60 + [1.0] * 40), np.full(10, np.nan))
    known = np.flatnonzero(~np.isnan(y))
    for share, most, n in ((0.5, 100, 80), (0.8, 100, 50), (0.1, 100, 66), (0.5, 20, 20), (0.0, 100, 60)):
        drawn = draw_share(y, known, share, most, seed=0)
        assert len(drawn) == len(set(drawn.tolist())) == n
        assert_allclose(y[drawn].mean(), share, atol=1 / n)


SMALL = ("--rows", 120, "--terms", 40, "--layers", 1)


def test_pairs_of_uneven_shares_print_a_row_for_every_cell_and_the_means(print_script):
    options = ("--pairs", "books:dvd", "--shares", 0.2, "--source-shares", 0.8, "--their-targets", 0.5)
    lines = print_script("balance_pairs", *options, *SMALL).splitlines()
    cells = [[cell.strip() for cell in line.split("|")] for line in lines if line.startswith("|")]
    rows, all_means = ([row for row in cells if row[1] == name] for name in ("books -> dvd", "mean of 1"))
    assert [row[3] for row in rows] == ["20%", "50%"]
    assert 78 <= float(rows[1][2].rstrip("%")) <= 82
    for row, mean in zip(rows, all_means, strict=True):
        errors, means = [float(cell) for cell in row[4:9]], [float(cell) for cell in mean[4:9]]
        assert all(0 < error < 100 for error in errors)
        assert_allclose(means, errors, atol=0.06)
    assert sum(line.startswith("default: share off by") for line in lines) == 2


def test_constants_of_another_domain_are_recovered_from_normal_scores(rng):
    script = importlib.import_module("share_constants")
    codes, truth = np.repeat([0, 1], 20_000), np.repeat([0, 1], [14_000, 6_000])
    held_out = HeldOut(rng.normal(4 * codes - 2, 1)[:, None], codes, np.ones(len(codes)), n_domains=2)
    halves = np.array([1.4, 1.6])  # half distances of the classes, in spreads; 2 in the source
    firsts = [rng.normal(0.3 + half * (2 * truth - 1), 1)[:, None] for half in halves]
    fits = [script.Scores(1.25 * first, first, held_out, truth) for first in firsts]
    constants = script.estimate_constants(fits, map)
    transfer = constants.transfer
    assert_allclose(transfer.log_separation_loss, np.log(halves / 2).mean(), atol=0.02)
    assert_allclose(transfer.log_separation_spread, np.log(halves).std(), atol=0.02)
    assert_allclose(transfer.midpoint_spread, 0.3, atol=0.02)
    # a score changes log odds by twice the half distance over the spread, squared
    assert_allclose(1 / transfer.before_self_training, 1.5 / 2, atol=0.03)
    assert_allclose(1 / transfer.after_self_training, 1.5 / 2 / 1.25, atol=0.03)
    off, is_held, error, _ = script.try_constants(fits[0], constants)
    assert off < 2
    assert is_held
    border = np.log(7 / 3) / (2 * halves[0])  # of the least error: 70% of the rows below, 30% above
    least = 0.7 * norm.sf(halves[0] + border) + 0.3 * norm.cdf(border - halves[0])
    assert_allclose(error, 100 * least, atol=0.5)


def test_spreads_of_classes_are_compared(print_script):
    lines = print_script("class_spreads", "--shares", "0.3", "--rows", 400, "--features", 100).splitlines()
    rows = [[float(cell.strip(" %")) for cell in line.split("|")[2:-1]] for line in lines[2:]]
    assert [row[0] for row in rows] == [30] * 3
    assert all(0.5 < ratio < 2 for row in rows for ratio in row[2:4])


def test_batches_of_drift_are_counted_by_kind(print_script):
    text = print_script("drift", "--pairs", "books:dvd", "--batches", 2, "--size", 20, *SMALL)
    rows = [[cell.strip() for cell in line.split("|")] for line in text.splitlines() if line.startswith("|")]
    called = {row[1]: (row[2], row[3]) for row in rows[2:]}
    kinds = ["same domain", "another domain", "another language", "a share changed by 30 points"]
    assert list(called) == kinds
    assert called["another language"] == ("2", "100.0%")


def test_the_safeguard_is_tried_on_uneven_sources_and_targets(print_script):
    options = ("--pairs", 1, "--cases", "--source-shares", 0.2, "--target-shares", 0.9)
    lines = print_script("safeguard", *options, *SMALL).splitlines()
    cases = [line for line in lines if "->" in line]
    assert [line.split(" | ")[0].rpartition(", ")[2] for line in cases[1:]] == ["0.5 -> 0.9", "0.2 -> 0.9"]
    assert any(line.startswith("| real pairs | 3 |") for line in lines)


def test_the_summary_of_the_safeguard_names_the_exceptions():
    script = importlib.import_module("safeguard")
    caught = script.Outcome(script.HOPELESS, "a", 0.3, 0.5, -1.0, falls_back=True)
    missed = script.Outcome(script.HOPELESS, "b", 0.9, None, 2.0, falls_back=False)
    healthy = script.Outcome(script.REAL, "c", 0.8, 0.9, 3.0, falls_back=False)
    harmed = script.Outcome(script.REAL, "d", 0.6, 0.8, 4.0, falls_back=True)
    text = script.summarise([caught, missed, healthy, harmed])
    assert text.endswith("fell back although real: d\nnot caught: b")
    assert "| real pairs | 2 | 1 | 0.60 to 0.80 | 0.80 to 0.90 | +3.5 | +3.0 |" in text
    assert script.summarise([caught, healthy]).endswith("no exceptions")


def test_many_rows_agree_both_ways(monkeypatch):
    script = importlib.import_module("many_rows")
    monkeypatch.setattr(sys, "argv", ["many_rows", "--terms", "60", "--layers", "2", "--target-rows", "300"])
    args = script.parse_arguments()
    records = [script.fit(args, 500, way) for way in ("dual", "primal")]
    labels = [script.take_predictions(record, 300) for record in records]
    assert np.mean(labels[0] == labels[1]) > 0.98
    assert records[0]["rounds"] == records[1]["rounds"] == 6
    assert records[1]["teraflop"] > 0
