"""The commands: one tiny plan from end to end, and errors in one line."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("typer")

from tests.helpers.bench_corpus import DOMAINS
from undrift.bench import read
from undrift.bench.__main__ import main as main_alone
from undrift.datasets import load_multidomain_sentiment


def test_a_plan_from_end_to_end(undrift, data, plan_file, tmp_path):
    results, out = tmp_path / "r.jsonl", tmp_path / "figures"
    arguments = ("bench", "run", plan_file, "--results", results, "--data", data)
    status, printed, _ = undrift(*arguments, "--methods", "svm,msda-1", "--tasks", "books->*", "--json")
    assert status == 0
    assert json.loads(printed) == {"results": str(results), "n_before": 0, "n_new": 4, "n_failed": 0}
    status, printed, _ = undrift(*arguments, "--methods", "svm", "--jobs", "1")
    assert "4 tasks run, 2 done before" in printed
    assert status == 0

    status, printed, _ = undrift("bench", "figures", results, "--out", out)
    assert status == 0
    assert {path.suffix for path in out.iterdir()} == {".svg", ".json", ".md"}
    assert (out / "tiny-main-figure-1.svg").exists()

    status, printed, _ = undrift("bench", "table", results)
    assert printed == (out / "table.md").read_text()
    assert "| tiny | main | svm | 6 |" in printed

    some = tmp_path / "some"
    arguments = ("bench", "figures", results, "--out", some, "--only", "*-figure-1", "--formats", "svg")
    assert undrift(*arguments)[0] == 0
    assert [path.name for path in some.iterdir()] == ["tiny-main-figure-1.svg"]

    page = tmp_path / "page.md"
    page.write_text("<!-- bench table: tiny -->\n<!-- end -->\n")
    assert undrift("bench", "table", results, "--into", page)[0] == 0
    assert "| tiny | main | svm | 6 |" in page.read_text()


def written(path, records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def test_a_page_does_not_lose_tasks_unless_told_to(undrift, records, tmp_path):
    whole, some = written(tmp_path / "all.jsonl", records), written(tmp_path / "some.jsonl", records[:2])
    page = tmp_path / "page.md"
    page.write_text("<!-- bench table: tiny -->\n<!-- end -->\n")
    assert undrift("bench", "table", some, "--into", page)[0] == 0  # nothing to lose yet
    assert undrift("bench", "table", whole, "--into", page)[0] == 0
    before = page.read_text()
    status, _, said = undrift("bench", "table", some, "--into", page)
    assert status == 2
    assert said.count("\n") == 1
    assert (
        "fewer tasks than now: tiny, main, svm (1 instead of 6); tiny, main, msda-5 (1 instead of 6)" in said
    )
    assert page.read_text() == before
    assert undrift("bench", "table", some, "--into", page, "--partial")[0] == 0
    assert "| tiny | main | svm | 1 |" in page.read_text()


def half_written(path, text, *arguments, **options):
    path.write_bytes(text[: len(text) // 2].encode())
    raise OSError(28, "No space left on device")


def test_a_full_disk_leaves_pages_and_tables_as_they_were(undrift, records, tmp_path, monkeypatch):
    results, page, out = written(tmp_path / "r.jsonl", records), tmp_path / "page.md", tmp_path / "out"
    page.write_text("<!-- bench table: tiny -->\nold\n<!-- end -->\n")
    out.mkdir()
    (out / "table.md").write_text("old")
    before = {path: path.read_text() for path in (page, out / "table.md")}
    monkeypatch.setattr(Path, "write_text", half_written)
    assert undrift("bench", "table", results, "--into", page)[0] == 2
    assert undrift("bench", "figures", results, "--out", out, "--formats", "md")[0] == 2
    assert {path: path.read_text() for path in before} == before
    assert {path.name for path in tmp_path.rglob("*")} == {"r.jsonl", "page.md", "out", "table.md"}


@pytest.mark.parametrize("ending", ["svg", "json"])
def test_a_full_disk_leaves_figures_as_they_were(undrift, records, tmp_path, monkeypatch, ending):
    results, out = written(tmp_path / "r.jsonl", records), tmp_path / "out"
    arguments = ("bench", "figures", results, "--out", out, "--only", "*-figure-1", "--formats", ending)
    assert undrift(*arguments)[0] == 0
    (figure,) = out.iterdir()
    before = figure.read_bytes()
    monkeypatch.setattr(Path, "write_text", half_written)
    assert undrift(*arguments)[0] == 2
    assert list(out.iterdir()) == [figure]
    assert figure.read_bytes() == before


@pytest.mark.parametrize(
    ("formats", "says", "files"),
    [
        ("md", "a table: ", {"table.md"}),
        ("json,md", "1 figures and a table: ", {"table.md", "tiny-main-figure-1.json"}),
    ],
)
def test_what_needs_no_drawing_needs_no_extra(undrift, records, tmp_path, monkeypatch, formats, says, files):
    monkeypatch.setitem(sys.modules, "markupsafe", None)
    monkeypatch.delitem(sys.modules, "undrift.report.figures", raising=False)
    results, out = written(tmp_path / "r.jsonl", records), tmp_path / "out" / "new"
    arguments = ("bench", "figures", results, "--out", out, "--only", "*-figure-1", "--formats")
    status, printed, _ = undrift(*arguments, formats)
    assert status == 0
    assert printed.startswith(says)
    assert {path.name for path in out.iterdir()} == files
    assert undrift(*arguments, "svg")[0] == 2


def test_check_wants_every_task_of_a_bar(undrift, records, tmp_path):
    bars = tmp_path / "expected.toml"
    bars.write_text('[[bar]]\nsays = "low"\nplan = "tiny"\nmethod = "svm"\nn_tasks = 6\nat_most = 0.9\n')
    files = {n: written(tmp_path / f"{n}.jsonl", records[:n]) for n in (0, 4, 12)}
    page = tmp_path / "page.md"
    page.write_text("<!-- bench table: check -->\n<!-- end -->\n")
    for n, n_tasks, word, status, if_partial in (
        (12, 6, "pass", 0, 0), (4, 2, "incomplete", 1, 0), (0, 0, "no results", 1, 1),
    ):  # fmt: skip
        arguments = ("bench", "check", files[n], "--expected", bars)
        found, printed, _ = undrift(*arguments, "--json")
        assert found == status
        (verdict,) = json.loads(printed)
        assert (verdict["verdict"], verdict["n_tasks"], verdict["n_tasks_expected"]) == (word, n_tasks, 6)
        assert undrift(*arguments, "--partial")[0] == if_partial
        # nor does a page lose a verdict for want of tasks
        assert undrift(*arguments, "--into", page)[0] == (0 if n == 12 else 2)
        assert "| low | pass | 6 | 32.50%, at most 90.00% |" in page.read_text()
    page.write_text("<!-- bench table: check -->\n<!-- end -->\n")
    status, printed, said = undrift("bench", "check", files[12], "--expected", bars, "--into", page, "--json")
    assert status == 0
    assert [verdict["verdict"] for verdict in json.loads(printed)] == ["pass"]
    assert said.startswith("Filled ")
    assert "| low | pass | 6 |" in page.read_text()


def test_stopped_by_hand_it_says_that_nothing_is_lost(undrift, data, plan_file, tmp_path, monkeypatch):
    from undrift.bench.methods import undrift as method

    def stopped(*arguments):
        raise KeyboardInterrupt

    results = tmp_path / "r.jsonl"
    arguments = ("bench", "run", plan_file, "--results", results, "--data", data, "--methods", "svm,undrift")
    with monkeypatch.context() as patch:
        patch.setattr(method, "_predict", stopped)
        status, _, said = undrift(*arguments)
    assert status == 130
    assert "what is done is kept" in said
    assert {record["method"] for record in read(results)} == {"svm"}
    assert "6 tasks run, 6 done before" in undrift(*arguments)[1]


@pytest.mark.parametrize(("bound", "status", "word"), [(0.9, 0, "pass"), (0.0, 1, "FAIL")])
def test_check_fails_where_a_bar_is_missed(undrift, records, tmp_path, bound, status, word):
    results, bars = tmp_path / "r.jsonl", tmp_path / "expected.toml"
    results.write_text("".join(json.dumps(record) + "\n" for record in records))
    bars.write_text(
        f'[[bar]]\nsays = "low"\nplan = "tiny"\nmethod = "svm"\nn_tasks = 6\nat_most = {bound}\n'
        '[[bar]]\nsays = "claimed"\nplan = "tiny"\nmethod = "svm"\nn_tasks = 6\nat_most = 0.0\nclaim = true\n'
        '[[bar]]\nsays = "unknown"\nplan = "tiny"\nmethod = "pca"\nn_tasks = 6\nat_most = 0.0\n'
    )
    arguments = ("bench", "check", results, "--expected", bars, "--partial")
    found, printed, _ = undrift(*arguments, "--json")
    assert found == status
    verdicts = json.loads(printed)
    assert [verdict["verdict"] for verdict in verdicts] == [word, "no", "no results"]
    page = tmp_path / "page.md"
    page.write_text(
        "<!-- bench table: paper -->\nkept\n<!-- end -->\n<!-- bench table: check -->\nold\n<!-- end -->\n"
    )
    assert undrift(*arguments, "--into", page)[0] == status
    rows = [f"| {own['says']} | {own['verdict']} | {own['n_tasks']} | {own['found']} |" for own in verdicts]
    table = "\n".join(["| expected | verdict | tasks | found |", "| --- | --- | ---: | --- |", *rows])
    assert page.read_text() == (
        "<!-- bench table: paper -->\nkept\n<!-- end -->\n"
        f"<!-- bench table: check -->\n{table}\n<!-- end -->\n"
    )


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("run", "none.toml", "--results", "r.jsonl"), "none.toml"),
        (("run", "bad.toml", "--results", "r.jsonl"), "bad.toml: corpus is missing"),
        (
            ("run", "tiny.toml", "--results", "r.jsonl", "--methods", "pca"),
            "method 'pca' is not in plan tiny",
        ),
        (("run", "tiny.toml", "--results", "r.jsonl", "--data", "nowhere"), "nowhere"),
        (("figures", "bad.toml", "--out", "figures"), "bad.toml, line 1 is not a record"),
        (("figures", "empty.jsonl", "--out", "figures"), "nothing to draw"),
        (("figures", "empty.jsonl", "--out", "figures", "--formats", "md"), "nothing to draw"),
        (("figures", "empty.jsonl", "--out", "figures", "--formats", "gif"), "--formats: gif is not known"),
        (("check", "none.jsonl", "--expected", "good.toml"), "none.jsonl"),
        (("check", "empty.jsonl", "--expected", "bad.toml"), "bad.toml: methods is not known; known are bar"),
        (("check", "empty.jsonl", "--expected", "empty.jsonl"), "empty.jsonl has no bars"),
    ],
)
def test_what_the_user_can_mend_is_one_line(undrift, plan_file, tmp_path, monkeypatch, arguments, complaint):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("UNDRIFT_DATA", raising=False)
    (tmp_path / "bad.toml").write_text('methods = ["svm"]\n')
    (tmp_path / "good.toml").write_text(
        '[[bar]]\nsays = "low"\nplan = "tiny"\nmethod = "svm"\nn_tasks = 6\nat_most = 0.9\n'
    )
    (tmp_path / "empty.jsonl").write_text("")
    status, _, said = undrift("bench", *arguments)
    assert status == 2
    assert complaint in said
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("option", "value", "complaint"),
    [
        ("--seed", "4294967296", "seed=4294967296 must be a whole number, at least 0 and below 2^32"),
        ("--seed", "-1", "seed=-1 must be a whole number, at least 0 and below 2^32"),
        ("--max-rows", "0", "max_rows=0 must be at least 1"),
        ("--max-features", "0", "max_features=0 must be at least 1"),
        ("--jobs", "0", "jobs=0 must be at least 1; leave it out for all cores"),
        ("--jobs", "-1", "jobs=-1 must be at least 1; leave it out for all cores"),
    ],
)
def test_a_number_out_of_bounds_is_refused_before_anything_is_run(
    undrift, data, plan_file, tmp_path, capsys, option, value, complaint
):
    arguments = [str(plan_file), "--results", str(tmp_path / "r.jsonl"), "--data", str(data), option, value]
    assert main_alone(arguments) == 2
    assert capsys.readouterr().err == f"undrift: {complaint}\n"
    status, _, said = undrift("bench", "run", *arguments)
    assert status == 2
    assert said.count("\n") == 1
    assert option.strip("-") in said.replace("_", "-")
    assert not (tmp_path / "r.jsonl").exists()


def test_generated_domains_are_in_the_public_format(undrift, tmp_path):
    status, _, _ = undrift("bench", "generate", tmp_path / "generated", "--domains", 3, "--reviews", 50)
    assert status == 0
    corpus = load_multidomain_sentiment(tmp_path / "generated", min_reviews=50)
    assert list(corpus.domains) == ["domain_00", "domain_01", "domain_02"]
    for domain in corpus.domains.values():
        assert (len(domain.train), len(domain.test)) == (40, 10)
        assert set(domain.y) == {0, 1}
    words = [set(" ".join(domain.texts).split()) for domain in corpus.domains.values()]
    assert "excellent" in words[0] & words[1] & words[2]
    assert len(words[0] - words[1]) >= 50  # each domain has words of its own


def test_the_runner_alone_needs_no_command_line_extra(data, plan_file, tmp_path):
    """A machine with torch, numpy, scipy and scikit-learn is enough."""
    program = (
        "import sys; sys.modules.update(dict.fromkeys(['typer', 'rich', 'matplotlib', 'pooch'])); "
        "from undrift.bench.__main__ import main; sys.exit(main(sys.argv[1:]))"
    )
    results = tmp_path / "r.jsonl"
    arguments = [str(plan_file), "--results", str(results), "--data", str(data), "--methods", "svm,msda-1"]
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments, "--max-rows", "20"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "0 done before, 12 new, 0 failed" in done.stderr
    transfers = [record for record in read(results) if record["kind"] == "transfer"]
    assert {record["n_train"] for record in transfers} == {20}
    assert {record["source"] for record in transfers} == set(DOMAINS)
    failed = subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=False
    )
    assert failed.returncode == 2
    assert "another version of plan tiny" in failed.stderr
