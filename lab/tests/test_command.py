"""The commands: one tiny plan from end to end, and errors in one line."""

import json
from pathlib import Path

import pytest


def test_a_plan_from_end_to_end(command, data, plan_file, tmp_path):
    results, out = tmp_path / "r.jsonl", tmp_path / "figures"
    arguments = ("run", plan_file, "--results", results, "--data", data)
    status, printed, _ = command(*arguments, "--methods", "svm,msda-1", "--tasks", "books->*")
    assert (status, printed) == (0, f"4 tasks run, 0 done before: {results}\n")
    status, printed, _ = command(*arguments, "--methods", "svm", "--jobs", "1")
    assert "4 tasks run, 2 done before" in printed
    assert status == 0

    status, printed, _ = command("figures", results, "--out", out)
    assert status == 0
    assert {path.suffix for path in out.iterdir()} == {".svg", ".md"}
    assert (out / "tiny-main-figure-1.svg").exists()

    assert "| main | svm | 6 |" in (out / "table.md").read_text()

    some = tmp_path / "some"
    arguments = ("figures", results, "--out", some, "--only", "*-figure-1")
    assert command(*arguments)[0] == 0
    assert {path.name for path in some.iterdir()} == {"table.md", "tiny-main-figure-1.svg"}


def written(path, records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


BAR = '[[bar]]\nsays = "low"\nplan = "tiny"\nmethod = "svm"\nn_tasks = 6\nat_most = 0.9\n'


@pytest.fixture
def checkout(records, tmp_path):
    """A checkout with results, and pages that have slots and show a figure."""
    root = tmp_path / "checkout"
    for folder in ("lab/results", "lab/plans", "docs"):
        (root / folder).mkdir(parents=True)
    written(root / "lab/results/tiny.jsonl", records)
    (root / "lab/plans/expected.toml").write_text(BAR)
    (root / "lab/README.md").write_text(
        "<!-- bench table: tiny -->\nold\n<!-- end -->\n<!-- bench table: other -->\nkept\n<!-- end -->\n"
        "![one](figures/tiny-main-figure-1.svg)\n"
    )
    (root / "docs/all.md").write_text("<!-- bench table: check -->\n<!-- end -->\n")
    (root / "docs/none.md").write_text("no slot\n")
    return root


def contents(root):
    return {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_one_command_fills_all_pages_and_a_second_run_changes_no_byte(command, checkout, tmp_path):
    status, printed, _ = command("pages", "--root", checkout)
    assert (status, printed) == (0, "2 pages and 1 figures from 1 files of results\n")
    page = (checkout / "lab/README.md").read_text()
    assert "| main | svm | 6 |" in page
    assert "old" not in page
    assert "kept" in page  # a slot without results stays
    assert "| low | pass | 6 | 32.50%, at most 90.00% |" in (checkout / "docs/all.md").read_text()
    assert [path.name for path in (checkout / "lab/figures").iterdir()] == ["tiny-main-figure-1.svg"]
    before = contents(checkout)
    assert command("pages", "--root", checkout)[0] == 0
    assert contents(checkout) == before
    status, _, said = command("pages", "--root", tmp_path)
    assert status == 2
    assert "there are no results in" in said


def half_written(path, text, *arguments, **options):
    path.write_bytes(text[: len(text) // 2].encode())
    raise OSError(28, "No space left on device")


def test_a_full_disk_leaves_pages_and_tables_as_they_were(command, checkout, monkeypatch):
    results, out = checkout / "lab/results/tiny.jsonl", checkout / "out"
    out.mkdir()
    (out / "table.md").write_text("old")
    before = contents(checkout)
    monkeypatch.setattr(Path, "write_text", half_written)
    assert command("pages", "--root", checkout)[0] == 2
    assert command("figures", results, "--out", out)[0] == 2
    assert contents(checkout) == before


def test_the_report_is_one_page_that_shows_hostile_records_as_text(command, records, tmp_path):
    bad = "</svg><script>window.hacked = 1</script>"
    hostile = [{**record, "method": record["method"] + bad, "machine": bad} for record in records]
    failed = {**hostile[0], "method": f"coda{bad}", "failed": bad}
    out = tmp_path / "page.html"
    assert command("report", written(tmp_path / "r.jsonl", [*hostile, failed]), "--out", out)[0] == 0
    page = out.read_text(encoding="utf-8")
    assert "<script" not in page
    assert page.count("<svg") == page.count("</svg>") == 2
    assert "msda-5&lt;/svg&gt;" in page
    status, _, said = command("report", written(tmp_path / "none.jsonl", []), "--out", out)
    assert (status, "no result to report on" in said) == (2, True)


def test_check_wants_every_task_of_a_bar(command, records, tmp_path):
    bars = tmp_path / "expected.toml"
    bars.write_text(BAR)
    files = {n: written(tmp_path / f"{n}.jsonl", records[:n]) for n in (0, 4, 12)}
    for n, words, status, if_partial in (
        (12, "pass | 6", 0, 0), (4, "incomplete | 2", 1, 0), (0, "no results | 0", 1, 1),
    ):  # fmt: skip
        arguments = ("check", files[n], "--expected", bars)
        found, printed, _ = command(*arguments)
        assert (found, f"| low | {words} |" in printed) == (status, True)
        assert command(*arguments, "--partial")[0] == if_partial


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("run", "none.toml", "--results", "r.jsonl"), "none.toml"),
        (("run", "bad.toml", "--results", "r.jsonl"), "bad.toml: corpus is missing"),
        (("run", "tiny.toml", "--results", "r.jsonl", "--methods", "pca"), "'pca' is not in plan tiny"),
        (("run", "tiny.toml", "--results", "r.jsonl", "--data", "nowhere"), "nowhere"),
        (("run", "tiny.toml", "--results", "r.jsonl", "--seed", 2**32), "seed=4294967296"),
        (("run", "tiny.toml", "--results", "r.jsonl", "--seed", -1), "--seed"),
        (("run", "tiny.toml", "--results", "r.jsonl", "--max-rows", 0), "--max-rows"),
        (("run", "tiny.toml", "--results", "r.jsonl", "--max-features", 0), "--max-features"),
        (("run", "tiny.toml", "--results", "r.jsonl", "--jobs", 0), "--jobs"),
        (("figures", "bad.toml", "--out", "figures"), "bad.toml, line 1 is not a record"),
        (("figures", "empty.jsonl", "--out", "figures"), "nothing to draw"),
        (("check", "none.jsonl", "--expected", "good.toml"), "none.jsonl"),
        (("check", "empty.jsonl", "--expected", "bad.toml"), "bad.toml: bar is missing"),
        (("check", "empty.jsonl", "--expected", "empty.jsonl"), "empty.jsonl: bar is missing"),
    ],
)
def test_what_the_user_can_mend_is_one_line(command, plan_file, tmp_path, monkeypatch, arguments, complaint):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("UNDRIFT_DATA", raising=False)
    (tmp_path / "bad.toml").write_text('methods = ["svm"]\n')
    (tmp_path / "good.toml").write_text(BAR)
    (tmp_path / "empty.jsonl").write_text("")
    status, _, said = command(*arguments)
    assert status == 2
    assert complaint in said
    assert said.count("\n") == 1
    assert not (tmp_path / "r.jsonl").exists()
