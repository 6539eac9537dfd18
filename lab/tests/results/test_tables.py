"""Tables against hand computation, and pages that do not lose what they told."""

import re
from pathlib import Path

import pytest

from lab.tests.helpers.corpus import DISTANCES, transfer
from undrift_lab.plan import check_table
from undrift_lab.results.expected import Bar, check_bars
from undrift_lab.results.frame import find_failures, make_frame
from undrift_lab.results.page import fill_page, make_table, show_script
from undrift_lab.results.tables import plan_table, published_table, table_lines

LAB = Path(__file__).parents[2]
TASKS = [("a", "b"), ("b", "a")]


def show(name, records):
    return make_table(name, records, make_frame(records), find_failures(records))


def cells(table):
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]


def test_the_pages_show_every_figure_of_the_folder():
    links = {
        (page.parent / link).resolve()
        for page in (*LAB.glob("*.md"), *LAB.glob("pages/*.md"))
        for link in re.findall(r"\]\((?!http)([^)#]+)", page.read_text(encoding="utf-8"))
    }
    assert all(link.exists() for link in links)
    figures = {path.resolve() for path in (LAB / "figures").rglob("*.svg")}
    assert figures == {link for link in links if link.is_relative_to(LAB / "figures")}


def test_a_plan_s_table_has_means_failures_and_the_contract_s_order(records):
    failed = {**transfer("coda", "books", "dvd", 0.0), "failed": "ValueError: no"}
    table = show("tiny", [*records, failed])
    assert "| main | svm | 6 | 32.50 | 1.625 | 0 |" in table
    assert "| main | msda-5 | 6 | 25.00 | 1.250 | 2 |" in table
    assert "2026-11-15: a machine." in table
    assert "Failed: coda on books->dvd (ValueError: no)." in table
    assert show("another", records) is None
    records = [
        transfer(method, "a", "b", 0.3, variant=v)
        for v in "xy"
        for method in ("sda", "msda-10", "svm", "msda-5")
    ]
    rows = [line.strip("| ").split(" | ")[:2] for line in show("tiny", records).splitlines()[2:10]]
    assert rows == [[v, method] for v in "xy" for method in ("svm", "sda", "msda-5", "msda-10")]


def shared(errors, plan, **more):
    """Records at two shares: errors by method and share, the same for both tasks."""
    return [
        transfer(
            method, *pair, error, plan=plan, variant=f"x {share}",
            target_share=share, balanced_error=error / 2, **more,
        )
        for method, given in errors.items()
        for share, error in zip((0.1, 0.5), given, strict=True)
        for pair in TASKS
    ]  # fmt: skip


def test_a_field_of_methods_has_errors_by_corpus_and_harm():
    errors = {"source-only": (0.2, 0.3), "undrift-pair": (0.1, 0.1), "self-training": (0.25, 0.31)}
    records = [{**r, "variant": f"amazon {r['target_share']}"} for r in shared(errors, "peers")]
    records += [{**r, "variant": f"fdu-mtl {r['target_share']}", "transfer_error": 0.4} for r in records]
    records += [{**r, "method": "skada-ot"} for r in records[:1]]  # it lacks a task of either variant
    failed = {k: records[0][k] for k in ("kind", "plan", "variant", "source", "target")}
    records.append({**failed, "method": "skada-tca", "failed": "MemoryError: too large"})
    table = show("peers", records)
    assert cells(table)[2:5] == [
        ["undrift-pair", "undrift", "10.0", "40.0", "0 of 8"],
        ["source-only", "undrift", "25.0", "40.0", "0 of 8"],
        ["self-training", "sklearn", "28.0", "40.0", "2 of 8"],
    ]
    assert "Failed: skada-tca (MemoryError: too large)." in table


def test_rows_are_as_long_as_the_names():
    with pytest.raises(ValueError, match=r"rows of the table a, b \.\.\. differ"):
        table_lines(["a", "b"], [["1"]])


def test_a_teacher_stands_beside_what_it_taught():
    errors = {"undrift": 0.2, "minilm-finetuned": 0.15, "undrift+teacher": 0.1}
    records = [
        transfer(method, *pair, error, plan="teachers", variant="x", method_version=4)
        for method, error in errors.items()
        for pair in TASKS
    ]
    records[-1]["transfer_error"] = 0.17
    table = show("teachers", records)
    alone = show("teachers", [r for r in records if r["method"] == "minilm-finetuned"])
    assert cells(alone)[2] == ["x", "2", "no record", "15.0", "no record", ""]
    assert "| x | 2 | 20.0 | 15.0 | 13.5 | +2.0 |" in table
    assert "Version 4 of undrift." in table


def test_a_table_of_distances_says_how_they_were_measured_and_what_failed(records):
    about = {"params": {"noise": 0.7, "n_layers": 5, "n_rows": 1000}}
    failed = {**DISTANCES[0], "source": "x", "failed": "no luck"}
    table = show("distance", [*({**record, **about} for record in DISTANCES), failed, *records])
    assert "| a, b | 1.200 (1.100 to 1.300) | 1.500 (1.400 to 1.600) | yes |" in table
    assert "5 layers, learnt from all rows at noise 0.7, not chosen" in table
    assert table.splitlines()[-1] == "Failed: msda-5 on x->b (no luck)."
    assert show("distance", records) is None


def test_a_page_is_filled_again_and_again(records):
    page = "# Title\n<!-- bench table: tiny -->\nold\n<!-- end -->\nkept\n"
    page += "".join(
        f"<!-- bench table: {name} -->\n<!-- end -->\n" for name in ("distance", "check", "answers")
    )
    bar = {"says": "ours", "plan": "tiny", "method": "svm", "n_tasks": 1, "at_most": 1.0}
    bars = [check_table(Bar, each) for each in (bar, {**bar, "says": "it is low", "claim": True})]
    verdicts = check_bars(bars, records)
    once = fill_page(page, [*records, *DISTANCES], verdicts)
    assert fill_page(once, [*records, *DISTANCES], verdicts) == once
    assert "old" not in once
    assert once.startswith("# Title\n")
    assert "kept" in once
    assert once.index("| ours | pass |") < once.index("| it is low | yes |")
    assert once.count("| ours |") == once.count("| it is low |") == 1
    assert plan_table(make_frame(records)) in once
    assert fill_page(once, DISTANCES) == once  # results of one plan leave the tables of others alone


def test_what_a_script_stored_is_a_table():
    about = {"command": "python x.py", "date": "2026-11-18", "machine": "a machine"}
    table = show_script({**about, "rows": [{"pair": "a", "error, %": 1.5}, {"pair": "b", "error, %": 2}]})
    assert table.splitlines()[2:] == ["| a | 1.5 |", "| b | 2 |", "", "`python x.py`, 2026-11-18: a machine."]


def test_the_paper_s_experiments_stand_beside_ours_with_times_of_a_gpu():
    about = {"plan": "full", "variant": "main", "machine": "8 cores; NVIDIA H200"}
    records = [transfer("msda-3", *pair, 0.12, represent_seconds=0.4, **about) for pair in TASKS]
    records += [transfer("svm", *pair, 0.15, represent_seconds=0.0, **about) for pair in TASKS]
    files = {**about, "variant": "files"}
    records += [transfer("undrift", *pair, 0.13, represent_seconds=0.1, **files) for pair in TASKS]
    about["machine"] = "2 cores"
    records += [transfer("msda-5", *pair, 0.11, represent_seconds=900.0, **about) for pair in TASKS]
    few = f" ({len(TASKS)} of 380 tasks)"
    assert cells(show("experiments", [*records, *DISTANCES]))[2:] == [
        ["380 tasks", "svm", "13.9", f"15.0{few}", "", ""],
        ["380 tasks", "svm-tfidf", "", "not measured", "", ""],
        ["380 tasks", "sda", "10.5", "not measured", "> 2 days", "not measured"],
        ["380 tasks", "msda-1", "11.5", "not measured", "5 min", "not measured"],
        ["380 tasks", "msda-3", "10.5", f"12.0{few}", "14 min", "0.4 s"],
        ["380 tasks", "msda-5", "10.3", f"11.0{few}", "", ""],
        ["380 tasks, all domains", "undrift", "", "not measured", "", ""],
        ["380 tasks, two files each", "svm-tfidf", "", "not measured", "", ""],
        ["380 tasks, two files each", "undrift", "", f"13.0{few}", "", ""],
        ["proxy A-distance", "msda-5", "grows", "grows for 2 of 3 pairs, beyond the intervals for 1", "", ""],
    ]
    assert [row[:2] for row in cells(show("experiments-msda-5", [*records, *DISTANCES]))[2:]] == [
        ["380 tasks", "msda-5"], ["proxy A-distance", "msda-5"],
    ]  # fmt: skip


def test_the_paper_others_and_ours_side_by_side():
    rows = {"books": 4465, "dvd": 3586, "electronics": 5681, "kitchen": 5945}
    own = [("small", "authors", "svm", 0.24, 1.0), ("claims", "published", "msda-5", 0.172, 1.0)]
    own += [("small", "authors", "msda-5", 0.167, 4.0), ("small", "authors", "sda", 0.18, 400.0)]
    records = [
        transfer(method, source, target, error, plan=plan, variant=v, n_test=n, represent_seconds=seconds)
        for plan, v, method, error, seconds in own
        for target, n in rows.items()
        for source in rows
        if source != target
    ]
    table = published_table(make_frame(records))
    assert "| mSDA, 5 layers, 27,677 documents |  | < 2 min | 4 s |  |" in table
    assert "| SDA against mSDA-5, time |  | 180 × | 100 × |  |" in table
    assert "| SVM (Ganin et al. 2016, table 1) | unseen | 24.03% | 24.00% | unseen |" in table
    assert "| SVM+mSDA (Ganin et al. 2016, table 1) | unseen | 19.82% | 17.20% | unseen |" in table
    assert "| DANN+mSDA (Ganin et al. 2016, table 1) | unseen | 18.68% |  |  |" in table
    trial = published_table(make_frame([{**record, "n_test": 50} for record in records]))
    assert "| SVM (Ganin et al. 2016, table 1) | unseen | 24.03% |  |  |" in trial
    few = published_table(make_frame(records[1:]))
    assert "| SVM (Ganin et al. 2016, table 1) | unseen | 24.03% |  |  |" in few
