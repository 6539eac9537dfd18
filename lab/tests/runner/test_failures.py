"""What fails costs as little as it can, is recorded once, and no more is lost than was under way."""

import threading
from itertools import permutations

import pytest

from lab.tests.helpers.corpus import DOMAINS
from undrift_lab.methods import baselines, svm
from undrift_lab.plan import load_plan
from undrift_lab.results.records import Journal, Unwritable, read
from undrift_lab.runner import Request, run


def transfers(path):
    return [record for record in read(path) if record["kind"] == "transfer"]


def failures(path):
    return {(r["method"], r["source"], r["target"]): r["failed"] for r in transfers(path) if "failed" in r}


@pytest.fixture
def no_dvd(set_limits):
    """The baseline fails on the rows of one domain."""
    at_home = svm.in_domain_error

    def broken(bench, target):
        if target == "dvd":
            raise ArithmeticError("no such luck\nand more")
        return at_home(bench, target)

    set_limits(in_domain_error=broken)


def test_a_failed_baseline_costs_the_tasks_of_its_target_alone(
    data, plan_file, tmp_path, no_dvd, monkeypatch
):
    plan, results = load_plan(plan_file), tmp_path / "r.jsonl"
    request = Request(data=data, methods=["svm", "msda-1"])
    summary = run(plan, results, request)
    assert (summary.n_before, summary.n_new, summary.n_failed) == (0, 12, 4)
    why = "in-domain baseline of dvd: ArithmeticError: no such luck"
    assert failures(results) == {
        (method, source, "dvd"): why for method in ("svm", "msda-1") for source in ("books", "toys")
    }
    found = {(r["method"], r["source"], r["target"]) for r in transfers(results) if "transfer_error" in r}
    assert found == {
        (method, *pair)
        for method in ("svm", "msda-1")
        for pair in permutations(DOMAINS, 2)
        if pair[1] != "dvd"
    }
    assert {r["target"] for r in read(results) if r["kind"] == "in-domain"} == {"books", "toys"}
    again = run(plan, results, request)
    assert (again.n_before, again.n_new, again.n_failed) == (12, 0, 4)
    monkeypatch.undo()
    mended = run(plan, results, Request(data=data, methods=["svm", "msda-1"], retry_failed=True))
    assert (mended.n_before, mended.n_new, mended.n_failed) == (8, 4, 0)


def test_a_failure_is_not_recorded_twice_but_another_one_is(data, plan_file, tmp_path, fail):
    plan, results = load_plan(plan_file), tmp_path / "r.jsonl"
    request = Request(data=data, methods=["svm"], tasks=["books->dvd"], retry_failed=True)
    for message in ("one", "one", "other", "other"):
        fail("undrift_lab.methods.baselines.classify_targets", ValueError(message))
        summary = run(plan, results, request)
        assert (summary.n_before, summary.n_new, summary.n_failed) == (0, 1, 1)
    assert [r["failed"] for r in transfers(results)] == ["ValueError: one", "ValueError: other"]


def test_records_are_written_as_units_finish(data, plan_file, tmp_path, set_limits):
    """The first unit waits for the records of all the others."""
    others_are_written, classified = threading.Event(), baselines.classify_targets

    def patient(bench, candidates, source, *rest):
        if source == "books":
            assert others_are_written.wait(600), "the others wait for this one"
        return classified(bench, candidates, source, *rest)

    def progress(n_done, n_total, what):
        if n_done == 4:
            assert {r["source"] for r in transfers(results)} == {"dvd", "toys"}
            others_are_written.set()

    set_limits(classify_targets=patient)
    results = tmp_path / "r.jsonl"
    summary = run(
        load_plan(plan_file), results, Request(data=data, methods=["svm"], jobs=3, progress=progress)
    )
    assert (summary.n_new, summary.n_failed) == (6, 0)


def test_a_full_disk_is_nobodys_failure(data, plan_file, tmp_path, monkeypatch):
    append, was_full = Journal.append, []

    def full(self, record):
        if record["kind"] == "transfer" and not was_full:
            was_full.append(True)
            raise Unwritable("r.jsonl cannot be written: No space left on device")
        append(self, record)

    results = tmp_path / "r.jsonl"
    with monkeypatch.context() as patch:
        patch.setattr(Journal, "append", full)
        with pytest.raises(Unwritable, match="No space left"):
            run(load_plan(plan_file), results, Request(data=data, methods=["svm"]))
    assert {r["kind"] for r in read(results)} == {"in-domain"}
