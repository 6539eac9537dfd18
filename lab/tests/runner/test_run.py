"""The runner: what it records, that it goes on where it was, and that failures are not lost."""

import json
import signal
import subprocess
import sys
from collections import Counter
from itertools import permutations

import pytest

from lab.tests.helpers.corpus import DOMAINS, PLAN
from undrift._version import METHOD_VERSION
from undrift_lab.plan import C_MULTIPLES, load_plan
from undrift_lab.results.records import read
from undrift_lab.runner import Request, run

CONTRACT = {
    "corpus", "source", "target", "method", "params", "transfer_error", "baseline_in_domain_error",
    "transfer_loss", "transfer_ratio", "represent_seconds", "classify_seconds", "n_train", "n_test", "seed",
    "version",
}  # fmt: skip


def of_kind(path, kind):
    return [record for record in read(path) if record["kind"] == kind]


def task(record):
    return f"{record['source']}->{record['target']}"


def errors(path):
    return {(r["variant"], r["method"], task(r)): r["transfer_error"] for r in of_kind(path, "transfer")}


@pytest.fixture(scope="module")
def finished(data, tmp_path_factory):
    """Results of the tiny plan, run at one go."""
    folder = tmp_path_factory.mktemp("finished")
    (folder / "tiny.toml").write_text(PLAN)
    seen = []
    request = Request(data=data, jobs=2, progress=lambda *step: seen.append(step))
    summary = run(load_plan(folder / "tiny.toml"), folder / "results.jsonl", request)
    assert (summary.n_before, summary.n_new, summary.n_failed) == (0, 24, 0)
    assert [n_done for n_done, _, _ in seen] == list(range(25))
    assert {n_total for _, n_total, _ in seen} == {24}
    return folder / "results.jsonl"


def test_every_cell_has_one_record_with_the_contracts_fields(finished):
    records = of_kind(finished, "transfer")
    cells = Counter((r["method"], r["source"], r["target"]) for r in records)
    methods = ("svm", "msda-1", "msda-3", "undrift")
    assert cells == Counter((m, *pair) for m in methods for pair in permutations(DOMAINS, 2))
    for record in records:
        assert set(record) >= CONTRACT
        assert record["transfer_loss"] == record["transfer_error"] - record["baseline_in_domain_error"]
        assert (record["n_train"], record["n_test"]) == (40, 40)
        assert record["machine"]


def test_a_second_run_has_nothing_to_do_and_another_plan_is_refused(finished, data, plan_file):
    before = finished.read_bytes()
    summary = run(load_plan(plan_file), finished, Request(data=data))
    assert (summary.n_before, summary.n_new) == (24, 0)
    assert finished.read_bytes() == before
    plan_file.write_text(plan_file.read_text().replace("0.8", "0.9"))
    with pytest.raises(ValueError, match="another version of plan tiny"):
        run(load_plan(plan_file), finished, Request(data=data))


KILLED = """
import os, signal, sys
from undrift_lab.results import records
from undrift_lab.cli import main

append, n_left, torn = records.Journal.append, [int(sys.argv[1])], sys.argv[2] == "torn"

def append_or_die(self, record):
    if not n_left[0]:
        if torn:
            self._file.write(b'{"kind": "transfer", "plan": "ti')
        os.kill(os.getpid(), signal.SIGKILL)
    n_left[0] -= 1
    append(self, record)

records.Journal.append = append_or_die
main(["run", *sys.argv[3:]])
"""


@pytest.mark.posix
def test_killed_at_any_moment_it_goes_on_and_repeats_nothing(finished, data, plan_file, tmp_path):
    results = tmp_path / "results.jsonl"
    arguments = [str(plan_file), "--results", str(results), "--data", str(data), "--jobs", "1"]
    n_whole = 0
    # among the in-domain errors, in the middle of the grid, and between two depths of one stack
    for n, how in (("2", "whole"), ("12", "torn"), ("8", "whole")):
        done = subprocess.run(
            [sys.executable, "-c", KILLED, n, how, *arguments], capture_output=True, check=False
        )
        assert done.returncode == -signal.SIGKILL, done.stderr.decode()
        n_whole += int(n)
        assert len(read(results)) == n_whole
        assert results.read_bytes().endswith(b"\n") == (how == "whole")
    summary = run(load_plan(plan_file), results, Request(data=data))
    assert summary.n_before + summary.n_new == 24
    assert 0 < summary.n_before < 24
    cells = Counter((r["method"], task(r)) for r in of_kind(results, "transfer"))
    assert set(cells.values()) == {1}
    assert errors(results) == errors(finished)
    grid = Counter((p["source"], p["depth"], p["noise"]) for p in of_kind(results, "grid"))
    assert set(grid.values()) == {1}
    assert len(grid) == 12


def test_a_failing_method_is_a_record_and_the_others_go_on(data, plan_file, tmp_path, fail, monkeypatch):
    fail("undrift_lab.methods.undrift._predict", ArithmeticError("no such luck\nand more"))
    plan, results = load_plan(plan_file), tmp_path / "results.jsonl"
    request = Request(data=data, methods=["undrift", "svm"], tasks=["books->*"])
    summary = run(plan, results, request)
    assert (summary.n_new, summary.n_failed) == (4, 2)
    failed = [r for r in of_kind(results, "transfer") if "failed" in r]
    assert {(r["method"], r["target"], r["failed"]) for r in failed} == {
        ("undrift", target, "ArithmeticError: no such luck") for target in ("dvd", "toys")
    }
    assert all("transfer_error" not in r for r in failed)
    assert run(plan, results, request).n_new == 0
    monkeypatch.undo()
    again = run(plan, results, Request(data=data, methods=["undrift"], tasks=["books->*"], retry_failed=True))
    assert (again.n_new, again.n_failed) == (2, 0)


def test_the_corpus_is_read_once_though_the_baseline_is_of_another_variant(data, tmp_path, spy):
    (tmp_path / "two.toml").write_text(
        'methods = ["svm"]\nbaseline_variant = "20"\n[corpus]\nloader = "amazon-bow"\n'
        '[[variants]]\nname = "10"\nmax_features = 10\n[[variants]]\nname = "20"\nmax_features = 20\n'
    )
    results = tmp_path / "r.jsonl"
    calls = spy(sys.modules["undrift_lab.runner.run"], "load_corpus")
    assert run(load_plan(tmp_path / "two.toml"), results, Request(data=data)).n_failed == 0
    assert [max_features for _, _, max_features, _ in calls] == [20]
    assert {r["variant"] for r in of_kind(results, "in-domain")} == {"20"}
    assert {(r["variant"], r["n_features"]) for r in of_kind(results, "transfer")} == {("10", 10), ("20", 20)}


def test_another_version_of_one_method_leaves_results_of_others_valid(finished, data, plan_file, tmp_path):
    records = [json.loads(line) for line in finished.read_text().splitlines()]
    old = [r | {"digest": "old"} if r.get("method") == "msda-3" else r for r in records]
    results = tmp_path / "old.jsonl"
    results.write_text("".join(f"{json.dumps(record)}\n" for record in old))
    assert run(load_plan(plan_file), results, Request(data=data, methods=["svm"])).n_new == 0
    with pytest.raises(ValueError, match=r"records of msda-3 from another version of plan tiny \(variant"):
        run(load_plan(plan_file), results, Request(data=data, methods=["msda-3"]))


def test_records_of_another_version_of_the_method_are_run_again(finished, data, plan_file, tmp_path):
    records = [json.loads(line) for line in finished.read_text().splitlines()]
    assert {record["method_version"] for record in records} == {METHOD_VERSION}
    old = [record | {"method_version": METHOD_VERSION - 1} for record in records]
    results = tmp_path / "old.jsonl"
    results.write_text("".join(f"{json.dumps(record)}\n" for record in old))
    assert run(load_plan(plan_file), results, Request(data=data, methods=["svm", "msda-3"])).n_new == 0
    assert run(load_plan(plan_file), results, Request(data=data, methods=["undrift"])).n_new == 6
    assert run(load_plan(plan_file), results, Request(data=data)).n_new == 0


@pytest.mark.parametrize(
    ("request_", "complaint"),
    [
        ({"methods": ["pca"]}, "method 'pca' is not in plan tiny, which has svm"),
        ({"tasks": ["kitchen->*"]}, "no task is like kitchen->*; the domains are books, dvd, toys"),
        ({"device": "abacus"}, "device='abacus' is not known"),
    ],
)
def test_what_cannot_be_asked_for(data, plan_file, tmp_path, request_, complaint):
    with pytest.raises(ValueError, match=complaint.replace("*", r"\*")):
        run(load_plan(plan_file), tmp_path / "r.jsonl", Request(data=data, **request_))


TRAINED_ONCE = """
methods = ["svm-tfidf", "sda"]
[corpus]
loader = "amazon-bow"
[[variants]]
name = "authors"
[[variants]]
name = "searched"
c_rule = "searched"
[parameters.sda]
n_hidden = 12
n_epochs = 2
"""


def test_a_variant_that_changes_C_alone_trains_no_autoencoder(data, tmp_path):
    (tmp_path / "all.toml").write_text(TRAINED_ONCE)
    results = tmp_path / "r.jsonl"
    summary = run(load_plan(tmp_path / "all.toml"), results, Request(data=data, tasks=["books->dvd"]))
    assert (summary.n_new, summary.n_failed) == (4, 0)
    records = {(r["variant"], r["method"]): r for r in of_kind(results, "transfer")}
    assert all(r["transfer_error"] < 0.5 for r in records.values())  # better than guessing
    (losses,) = records["authors", "sda"]["losses"]
    assert len(losses) == 2
    assert records["searched", "sda"]["represent_seconds"] == records["authors", "sda"]["represent_seconds"]
    assert records["searched", "svm-tfidf"]["params"]["C"] in C_MULTIPLES
