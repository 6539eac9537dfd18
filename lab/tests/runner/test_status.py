"""Exit statuses of the runner, and what it says of faults that are the user's and of those that are not."""

import json

import pytest

from undrift_lab.cli import main
from undrift_lab.results import read


def status_of(function, arguments):
    with pytest.raises(SystemExit) as ended:
        raise SystemExit(function([str(argument) for argument in arguments]))
    return ended.value.code


@pytest.mark.parametrize("as_json", [False, True])
def test_failed_tasks_are_status_1_until_they_are_mended(
    data, plan_file, tmp_path, capsys, fail, monkeypatch, as_json
):
    results = tmp_path / "r.jsonl"
    options = [plan_file, "--results", results, "--data", data, "--methods", "svm", "--tasks", "books->*"]
    command = ["run", *options, *(["--json"] if as_json else [])]
    said = {
        "failed": (0, 2, 2, "2 tasks run, 0 done before; 2 failed"),
        "still failed": (2, 0, 2, "0 tasks run, 2 done before; 2 failed"),
        "mended": (0, 2, 0, "2 tasks run, 0 done before"),
        "done": (2, 0, 0, "0 tasks run, 2 done before"),
    }

    def check(what, *more):
        n_before, n_new, n_failed, words = said[what]
        assert status_of(main, [*command, *more]) == (1 if n_failed else 0)
        printed = capsys.readouterr().out
        if as_json:
            assert json.loads(printed) == {
                "results": str(results), "n_before": n_before, "n_new": n_new, "n_failed": n_failed,
            }  # fmt: skip
        else:
            assert printed == f"{words}: {results}\n"

    fail("undrift_lab.methods.baselines.classify_targets", ValueError("out of luck"))
    check("failed")
    check("still failed")
    before = results.read_bytes()
    assert status_of(main, [*command, "--retry-failed"]) == 1
    capsys.readouterr()
    assert results.read_bytes() == before
    monkeypatch.undo()
    check("mended", "--retry-failed")
    check("done")
    assert sum("failed" in record for record in read(results)) == 2


@pytest.mark.parametrize("command", ["table", "figures", "report", "check", "merge", "run"])
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
    assert status_of(main, [command, *more.get(command, ["r.jsonl"])]) == 2
    said = capsys.readouterr().err
    assert said == "undrift-lab: r.jsonl, line 2: variant is missing; remove that line\n"
    assert (tmp_path / "r.jsonl").read_bytes() == before


def test_a_fault_of_ours_is_not_told_as_the_users(records, tmp_path, fail):
    fail("undrift_lab.results.tables.rank_method", KeyError("variant"))
    (tmp_path / "r.jsonl").write_text(json.dumps(records[0]) + "\n")
    with pytest.raises(KeyError, match="variant"):
        main(["table", str(tmp_path / "r.jsonl")])
