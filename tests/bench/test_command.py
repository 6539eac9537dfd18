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


def written(path, records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


BAR = '[[bar]]\nsays = "low"\nplan = "tiny"\nmethod = "svm"\nn_tasks = 6\nat_most = 0.9\n'


@pytest.fixture
def checkout(records, tmp_path):
    """A checkout with results, and pages that have slots and show a figure."""
    root = tmp_path / "checkout"
    for folder in ("paper/results", "docs"):
        (root / folder).mkdir(parents=True)
    written(root / "paper/results/tiny.jsonl", records)
    (root / "paper/expected.toml").write_text(BAR)
    (root / "paper/README.md").write_text(
        "<!-- bench table: tiny -->\nold\n<!-- end -->\n<!-- bench table: other -->\nkept\n<!-- end -->\n"
        "![one](figures/tiny-main-figure-1.svg)\n"
    )
    (root / "docs/all.md").write_text("<!-- bench table: check -->\n<!-- end -->\n")
    (root / "docs/none.md").write_text("no slot\n")
    return root


def contents(root):
    return {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_one_command_fills_all_pages_and_a_second_run_changes_no_byte(undrift, checkout):
    status, printed, _ = undrift("bench", "pages", "--root", checkout)
    assert (status, printed) == (0, "2 pages and 1 figures from 1 files of results\n")
    page = (checkout / "paper/README.md").read_text()
    assert "| tiny | main | svm | 6 |" in page
    assert "old" not in page
    assert "kept" in page  # a slot without results stays
    assert "| low | pass | 6 | 32.50%, at most 90.00% |" in (checkout / "docs/all.md").read_text()
    assert [path.name for path in (checkout / "paper/figures").iterdir()] == ["tiny-main-figure-1.svg"]
    before = contents(checkout)
    assert undrift("bench", "pages", "--root", checkout)[0] == 0
    assert contents(checkout) == before


def test_pages_without_results_are_refused_in_one_line(undrift, tmp_path):
    status, _, said = undrift("bench", "pages", "--root", tmp_path)
    assert status == 2
    assert "there are no results in" in said


def half_written(path, text, *arguments, **options):
    path.write_bytes(text[: len(text) // 2].encode())
    raise OSError(28, "No space left on device")


def test_a_full_disk_leaves_pages_and_tables_as_they_were(undrift, checkout, monkeypatch):
    results, out = checkout / "paper/results/tiny.jsonl", checkout / "out"
    out.mkdir()
    (out / "table.md").write_text("old")
    before = contents(checkout)
    monkeypatch.setattr(Path, "write_text", half_written)
    assert undrift("bench", "pages", "--root", checkout)[0] == 2
    assert undrift("bench", "figures", results, "--out", out, "--formats", "md")[0] == 2
    assert contents(checkout) == before


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
def test_only_the_formats_that_are_named_are_written(undrift, records, tmp_path, formats, says, files):
    results, out = written(tmp_path / "r.jsonl", records), tmp_path / "out" / "new"
    arguments = ("bench", "figures", results, "--out", out, "--only", "*-figure-1", "--formats")
    status, printed, _ = undrift(*arguments, formats)
    assert status == 0
    assert printed.startswith(says)
    assert {path.name for path in out.iterdir()} == files


def test_check_wants_every_task_of_a_bar(undrift, records, tmp_path):
    bars = tmp_path / "expected.toml"
    bars.write_text(BAR)
    files = {n: written(tmp_path / f"{n}.jsonl", records[:n]) for n in (0, 4, 12)}
    for n, n_tasks, word, status, if_partial in (
        (12, 6, "pass", 0, 0), (4, 2, "incomplete", 1, 0), (0, 0, "no results", 1, 1),
    ):  # fmt: skip
        arguments = ("bench", "check", files[n], "--expected", bars)
        found, printed, _ = undrift(*arguments, "--json")
        assert found == status
        (verdict,) = json.loads(printed)
        assert (verdict["verdict"], verdict["n_tasks"], verdict["n_tasks_expected"]) == (word, n_tasks, 6)
        assert undrift(*arguments, "--partial")[0] == if_partial


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
    assert not (tmp_path / "r.jsonl").exists()


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
