"""Exit statuses of the runner, and what it says of faults that are the user's and of those that are not."""

import json

import pytest

from undrift_lab.cli import main
from undrift_lab.results.records import read


def status_of(function, arguments):
    with pytest.raises(SystemExit) as ended:
        raise SystemExit(function([str(argument) for argument in arguments]))
    return ended.value.code


def test_failed_tasks_are_status_1_until_they_are_mended(
    data, plan_file, tmp_path, capsys, fail, monkeypatch
):
    results = tmp_path / "r.jsonl"
    options = [plan_file, "--results", results, "--data", data, "--methods", "svm", "--tasks", "books->*"]
    command = ["run", *options]

    def check(words, *more):
        assert status_of(main, [*command, *more]) == ("failed" in words)
        assert capsys.readouterr().out == f"{words}: {results}\n"

    fail("undrift_lab.methods.baselines.classify_targets", ValueError("out of luck"))
    check("2 tasks run, 0 done before; 2 failed")
    check("0 tasks run, 2 done before; 2 failed")
    before = results.read_bytes()
    assert status_of(main, [*command, "--retry-failed"]) == 1
    capsys.readouterr()
    assert results.read_bytes() == before
    monkeypatch.undo()
    check("2 tasks run, 0 done before", "--retry-failed")
    check("0 tasks run, 2 done before")
    assert sum("failed" in record for record in read(results)) == 2


@pytest.mark.parametrize("command", ["figures", "report", "check", "merge", "run"])
def test_a_record_that_lacks_something_is_named_by_file_and_line(
    data, plan_file, records, tmp_path, capsys, monkeypatch, command
):
    monkeypatch.chdir(tmp_path)
    lacking = {key: value for key, value in records[0].items() if key != "variant"}
    (tmp_path / "r.jsonl").write_text("".join(json.dumps(each) + "\n" for each in [records[1], lacking]))
    (tmp_path / "bars.toml").write_text(
        '[[bar]]\nsays = "low"\nplan = "tiny"\nmethod = "svm"\nat_most = 1\nn_tasks = 2\n'
    )
    more = {
        "figures": ["r.jsonl", "--out", "figures"],
        "report": ["r.jsonl", "--out", "r.html"],
        "check": ["r.jsonl", "--expected", "bars.toml"],
        "merge": ["r.jsonl", "--out", "m.jsonl"],
        "run": [plan_file, "--results", "r.jsonl", "--data", data],
    }
    before = (tmp_path / "r.jsonl").read_bytes()
    assert status_of(main, [command, *more[command]]) == 2
    said = capsys.readouterr().err
    assert said == "undrift-lab: r.jsonl, line 2: variant is missing; remove that line\n"
    assert (tmp_path / "r.jsonl").read_bytes() == before


def test_a_fault_of_ours_is_not_told_as_the_users(records, tmp_path, fail):
    fail("undrift_lab.results.tables.rank_method", KeyError("variant"))
    (tmp_path / "r.jsonl").write_text(json.dumps(records[0]) + "\n")
    with pytest.raises(KeyError, match="variant"):
        main(["figures", str(tmp_path / "r.jsonl"), "--out", str(tmp_path)])
