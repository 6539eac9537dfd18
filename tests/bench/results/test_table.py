"""Tables against hand computation, what others say beside them, and pages that do not lose what they told."""

import re
from pathlib import Path

from tests.helpers.bench_corpus import DISTANCES, transfer
from undrift.bench.results.figures import figure_3_right
from undrift.bench.results.page import fill_page
from undrift.bench.results.regret import regret_table
from undrift.bench.results.tables import distance_table, results_table, side_by_side

PAPER = Path(__file__).parents[3] / "paper"


def test_the_pages_of_the_paper_show_every_figure_of_its_folder():
    pages = [page.read_text(encoding="utf-8") for page in PAPER.glob("*.md")]
    links = {link for page in pages for link in re.findall(r"\]\((?!http)([^)#]+)", page)}
    assert all((PAPER / link).exists() for link in links)
    figures = {str(path.relative_to(PAPER)) for path in (PAPER / "figures").rglob("*.svg")}
    assert figures == {link for link in links if link.startswith("figures/")}
    assert "figures/peers-amazon-bow-error-by-share.svg" in figures


def test_the_table_has_the_means_and_says_what_failed(records):
    failed = {**transfer("coda", "books", "dvd", 0.0), "failed": "ValueError: no"}
    table = results_table([*records, failed])
    assert "| tiny | main | svm | 6 | 32.50 | 1.625 | 0 | 0 | 0.5 |" in table
    assert "| tiny | main | msda-5 | 6 | 25.00 | 1.250 | 2 | 0 | 0.5 |" in table
    assert "2026-11-15: a machine." in table
    assert "Failed: coda on books->dvd (ValueError: no)." in table
    assert "| svm |" not in results_table(records, "another")


def test_every_table_says_what_failed_and_no_other(records):
    failed = {**transfer("undrift", "books", "dvd", 0.0), "plan": "choice", "failed": "no luck"}
    regret, far = {**failed, "kind": "regret", "corpus": "c"}, {**failed, "kind": "distance", "plan": "far"}
    for own, table in ((regret, regret_table), (far, distance_table)):
        assert table([*records, own]).splitlines()[-1] == "Failed: undrift on books->dvd (no luck)."
    assert "Failed" not in regret_table([far]) + distance_table([regret])
    assert results_table([*records, regret]).count("Failed: undrift on books->dvd (no luck).") == 1
    assert "Failed: undrift" in results_table([*records, regret], "choice")
    for plan in ("tiny", "another"):
        assert "Failed" not in results_table([*records, regret, far], plan)


def test_methods_stand_in_the_tables_in_the_contracts_order_too():
    records = [
        transfer(method, "a", "b", 0.3, variant=v) for v in "xy" for method in ("sda", "msda-5", "svm")
    ]
    rows = [
        line.split(" | ")[1:3] for line in results_table(records).splitlines() if line.startswith("| tiny")
    ]
    assert rows == [[v, method] for v in "xy" for method in ("svm", "sda", "msda-5")]


def test_the_table_of_distances_says_how_they_were_measured():
    stamped = {
        "params": {"noise": 0.7, "n_layers": 5, "n_rows": 1000}, "date": "2026-11-15", "machine": "a machine",
    }  # fmt: skip
    table = distance_table([{**record, **stamped} for record in DISTANCES])
    *_, setting, stamp = table.splitlines()
    assert setting.startswith("Of each domain 1,000 rows, evenly spaced, are told apart")
    assert "5 layers, learnt from all rows at noise 0.7 for every pair, not chosen" in setting
    assert stamp == "2026-11-15: a machine."
    (note,) = {figure_3_right([{**record, **stamped} for record in DISTANCES])["note"]}
    assert note == "1,000 rows of each domain; 5 layers at noise 0.7, not chosen; lines are 95% intervals"


def test_a_page_is_filled_again_and_again(records):
    page = "# Title\n<!-- bench table: tiny -->\nold\n<!-- end -->\nkept\n"
    page += "<!-- bench table: distance -->\n<!-- end -->\n"
    once = fill_page(page, [*records, *DISTANCES])
    assert fill_page(once, [*records, *DISTANCES]) == once
    assert "old" not in once
    assert once.startswith("# Title\n")
    assert "kept" in once
    assert results_table([*records, *DISTANCES], "tiny") in once
    assert distance_table(DISTANCES) in once
    assert fill_page(once, DISTANCES) == once  # results of one plan leave the tables of others alone
    assert "| a, b | 1.200 (1.100 to 1.300) | 1.500 (1.400 to 1.600) | yes |" in once


def test_the_paper_and_ours_side_by_side():
    records = [
        transfer("msda-5", "books", "dvd", 0.2, plan="small", represent_seconds=4.0),
        transfer("sda", "books", "dvd", 0.2, plan="small", represent_seconds=400.0),
        transfer("svm", "a", "b", 0.1393, plan="full"),
    ]
    table = side_by_side(records)
    assert "| mSDA, 5 layers, 27,677 documents | < 2 min | 4 s | 1 of 12 |" in table
    assert "| SDA against mSDA-5, time | 180 × | 100 × | 1 of 12 |" in table
    assert "| 380 tasks, baseline, mean error | 13.93% | 13.93% | 1 of 380 |" in table
    assert "| 380 tasks, SDA, mean error | 10.50% |  |  |" in table
    assert "| SVM, 12 tasks (Ganin et al. 2016, table 1) | 24.03% |  |  |" in table


def test_ratios_of_times_are_over_the_same_tasks():
    records = [
        transfer(method, "books", target, 0.2, plan="small", represent_seconds=seconds)
        for method, target, seconds in [
            ("msda-5", "dvd", 4.0),
            ("msda-5", "toys", 8.0),
            ("sda", "dvd", 400.0),
        ]
    ]
    assert "| SDA against mSDA-5, time | 180 × | 100 × | 1 of 12 |" in side_by_side(records)


def test_others_errors_stand_beside_ours_on_all_their_test_rows_and_tasks():
    rows = {"books": 4465, "dvd": 3586, "electronics": 5681, "kitchen": 5945}
    records = [
        transfer(method, source, target, error, plan="small", n_test=n)
        for method, error in (("svm", 0.24), ("msda-5", 0.167))
        for target, n in rows.items()
        for source in rows
        if source != target
    ]
    table = side_by_side(records)
    assert "| SVM, 12 tasks (Ganin et al. 2016, table 1) | 24.03% | 24.00% | 12 |" in table
    assert "| SVM+mSDA, 12 tasks (Ganin et al. 2016, table 1) | 19.82% | 16.70% | 12 |" in table
    assert "| DANN+mSDA, 12 tasks (Ganin et al. 2016, table 1) | 18.68% |  |  |" in table
    trial = [{**record, "n_test": 50} for record in records]
    assert "| SVM, 12 tasks (Ganin et al. 2016, table 1) | 24.03% |  |  |" in side_by_side(trial)


def test_the_papers_times_of_the_full_set_are_stated():
    table = side_by_side([transfer("msda-3", "a", "b", 0.1, plan="full", represent_seconds=0.5)])
    for text, value in [
        ("full set, mSDA-1", "5 min"),
        ("full set, SDA", "> 2 days"),
        ("full set, SDA against mSDA-1, time", "700 ×"),
        ("full set, SDA against mSDA-3, time", "230 ×"),
        ("30,000 features, SDA", "> 1 day"),
    ]:
        assert f"| {text} | {value} |  |  |" in table
    assert "| full set, mSDA-3 | 14 min | 0.5 s | 1 of 380 |" in table
