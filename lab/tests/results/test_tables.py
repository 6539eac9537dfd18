"""Tables against hand computation, and pages that do not lose what they told."""

import re
from pathlib import Path

import pytest

from lab.tests.helpers.corpus import DISTANCES, transfer
from undrift_lab.plan import check_table
from undrift_lab.results.expected import Bar, check_bars
from undrift_lab.results.frame import find_failures, make_frame
from undrift_lab.results.page import fill_page, make_table, show_script
from undrift_lab.results.tables import plan_table, published_table, table_lines, varies_shares

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
    assert "| tiny | main | svm | 6 | 32.50 | 1.625 | 0 | 0 | 0.5 |" in table
    assert "| tiny | main | msda-5 | 6 | 25.00 | 1.250 | 2 | 0 | 0.5 |" in table
    assert "2026-11-15: a machine." in table
    assert "Failed: coda on books->dvd (ValueError: no)." in table
    assert show("another", records) is None
    records = [
        transfer(method, "a", "b", 0.3, variant=v)
        for v in "xy"
        for method in ("sda", "msda-10", "svm", "msda-5")
    ]
    rows = [
        line.split(" | ")[1:3] for line in show("tiny", records).splitlines() if line.startswith("| tiny")
    ]
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


def test_a_table_by_class_shares():
    records = shared({"source-only": (0.2, 0.3), "centred": (0.4, 0.2)}, "p")
    says = {"estimated_share": 0.14, "expected_error": 0.08, "calibration_error": 0.03}
    records += shared({"undrift": (0.1, 0.15)}, "p", **says)
    table = show("p", records)
    assert "| amazon-bow | source-only | 4 | 20.0 (10.0) | 30.0 (15.0) | 25.00 | 2 of 4 |  |  |  |" in table
    assert (
        "| amazon-bow | undrift | 4 | 10.0 (5.0) | 15.0 (7.5) | 12.50 | 0 of 4 | 20.0 | 4.5 | 3.0 |" in table
    )
    assert "| amazon-bow | larger class | 4 | 10.0 (50.0) | 50.0 (50.0) | 30.00 | 0 of 4 |" in table
    fewer = [r for r in records if (r["method"], r["target_share"]) != ("centred", 0.5)]
    assert "| amazon-bow | centred | 2 | 40.0 (20.0) |  |  | 2 of 2 |" in show("p", fewer)
    assert varies_shares(make_frame(records))
    assert not varies_shares(make_frame([r for r in records if r["target_share"] == 0.1]))


def test_a_field_of_methods_has_errors_f1_time_and_harm():
    records = shared(
        {"source-only": (0.2, 0.3), "undrift-pair": (0.1, 0.1), "uncentred-pair": (0.15, 0.2)}, "peers"
    )
    records += shared({"self-training": (0.25, 0.31)}, "peers", f1=0.5)
    records += [{**r, "method": "skada-ot"} for r in records[:1]]
    records.append(
        {**{k: records[0][k] for k in ("kind", "plan", "variant", "source", "target")}, "method": "skada-tca"}
    )
    records[-1]["failed"] = "MemoryError: too large"
    table = show("peers", records)
    rows = {row[0]: row for row in cells(table)[2:7]}  # skada-ot lacks a task of either variant
    first = ["undrift-pair", "uncentred-pair", "source-only", "self-training", "larger class"]
    assert list(rows) == first
    assert rows["undrift-pair"][1:7] == ["undrift", "10.0", "10.0", "10.00", "5.00", ""]
    assert rows["self-training"][1:5] == ["sklearn", "25.0", "31.0", "28.00"]
    assert rows["self-training"][6:] == ["50.00", "2.5", "2 of 4", "2 of 4"]
    assert "skada-ot |" not in table
    assert "Failed: skada-tca (MemoryError: too large)." in table


def test_rows_are_as_long_as_the_names():
    with pytest.raises(ValueError, match=r"rows of the table a, b \.\.\. differ"):
        table_lines(["a", "b"], [["1"]])


def trusted():
    about = {"plan": "trust", "variant": "tweets"}
    says = {"target_share": 0.2, "balanced_error": 0.3, "f1": 0.4}
    sure = {"estimated_share": 0.1, "share_low": 0.05, "share_high": 0.3}
    sure |= {"expected_error": 0.1, "expected_low": 0.05, "expected_high": 0.15}
    unknown = {**sure, "expected_error": None, "expected_high": 0.5, "fell_back": True}
    errors = {"svm-tfidf": 0.2, "svm-balanced": 0.3, "uncentred": 0.25, "undrift": 0.25, "source-only": 0.28}
    records = [
        transfer(method, *pair, error, **about, **says, **(given if method == "undrift" else {}))
        for method, error in errors.items()
        for pair, given in zip(TASKS, (sure, unknown), strict=True)
    ]
    return records + [transfer("atc", *pair, 0.25, **about, **says, expected_error=0.2) for pair in TASKS]


def test_estimates_of_shares_and_errors_stand_side_by_side():
    table = show("estimates", trusted())
    assert "| class shares | undrift | 10.0 | 10.0 |" in table
    assert "| error | undrift | 15.0 | 15.0 |" in table
    assert "| error | `uncentred`, atc | 5.0 | 5.0 |" in table


def test_each_question_has_a_table():
    about = "| trust | tweets | seen | 2 "
    assert f"{about}| 1 | 4 | svm-tfidf | 20.0 | 25.0 |  | +5.0 |  |" in show("strongest", trusted())
    table = show("harm", trusted())
    assert f"{about}| svm-tfidf | 2 of 2 | 2 of 2 | +5.0 | 0 of 2 | 2 of 2 |  |" in table
    assert "| all |  | seen | 2 |  | 2 of 2 (100.0%) | 2 of 2 (100.0%) | +5.0 |  |  |  |" in table
    table = show("expected", trusted())
    assert (
        "| trust | tweets | seen | undrift | 0 | 2 | 25.0 | 10.0 | 15.0 | 15.0 | 100 | 50 | 50 | 1 | 1 |"
        in table
    )
    assert "atc" not in table
    assert "| trust | tweets | uneven | 0 | 2 | 28.0 | 25.0 | 25.0 |" in show("parts", trusted())


def test_versions_are_never_mixed():
    errors = {"source-only": (0.2, 0.3), "uncentred": (0.15, 0.25), "undrift": (0.1, 0.2)}
    newer = {**errors, "undrift": (0.04, 0.2)}
    records = shared(errors, "balance", method_version=2, expected_error=0.1)
    again = shared(newer, "balance", method_version=4, expected_error=0.1)
    records += [r for r in again if r["target_share"] == 0.1 and r["method"] != "source-only"]
    assert [row[3:] for row in cells(show("parts", records))[2:4]] == [
        ["4", "2", "20.0", "15.0", "4.0"],
        ["2", "2", "30.0", "25.0", "20.0"],
    ]
    assert sorted(row[4:7] for row in cells(show("expected", records))[2:4]) == [
        ["2", "2", "20.0"],
        ["4", "2", "4.0"],
    ]
    table = show("balance", records)
    assert "| amazon-bow | undrift | 4 | 4.0 (2.0) | 20.0 (10.0) |  |  |  |  |  |" in table
    assert "Versions of undrift: version 2 in x 0.5; version 4 in x 0.1." in table


def test_a_teacher_stands_beside_what_it_taught():
    errors = {"undrift": 0.2, "minilm-frozen": 0.3, "minilm-finetuned": 0.15, "undrift+teacher": 0.1}
    says = {"expected_error": 0.12, "expected_low": 0.11, "expected_high": 0.2}
    records = [
        transfer(method, *pair, error, plan="teachers", variant="x", method_version=4, **says)
        for method, error in errors.items()
        for pair in TASKS
    ]
    records[-1]["transfer_error"] = 0.17
    table = show("teachers", records)
    assert "| x | 2 | 20.0 | 30.0 | 15.0 | 13.5 | 50.0 | 1 of 2 | +2.0 | 3.5 | 50 |  |" in table
    assert "Version 4 of undrift." in table


def test_baselines_lack_no_task_and_protocols_stand_apart():
    errors = {"svm-tfidf": 0.3, "nb-features": 0.2, "undrift-pair": 0.25, "undrift": 0.1}
    records = [
        transfer(method, *pair, error, plan="small", variant=variant, expected_error=0.2)
        for variant in ("shipped", "inductive")
        for method, error in errors.items()
        for pair in TASKS
    ]
    records.remove(next(r for r in records if r["method"] == "nb-features"))
    rows = cells(show("strongest", records))[2:4]
    assert [row[2:11] for row in rows] == [
        ["seen", "2", "1", "1", "svm-tfidf", "30.0", "25.0", "10.0", "-5.0"],
        ["unseen", "2", "1", "2", "nb-features", "20.0", "25.0", "10.0", "+5.0"],
    ]
    batches = [{**r, "method": "batch-pair"} for r in records if r["method"] == "undrift-pair"]
    (row,) = [row for row in cells(show("strongest", records + batches)) if "unseen, a batch" in row]
    assert row[6:9] == ["nb-features", "20.0", "25.0"]
    assert [row[2:4] for row in cells(show("expected", records + batches))[2:7]] == [
        ["seen", "undrift-pair"],
        ["seen", "undrift"],
        ["unseen", "undrift-pair"],
        ["unseen", "undrift"],
        ["unseen, a batch", "batch-pair"],
    ]


@pytest.mark.parametrize("n_test", [40, 4000])
def test_the_headline_has_both_protocols(n_test):
    more = {"n_test": n_test, "n_duplicates": 4, "error_without_duplicates": 0.1}
    records = [
        transfer(method, *pair, error, plan="small", variant=variant, **more)
        for variant in ("shipped", "inductive")
        for method, error in (("svm-tfidf", 0.3), ("undrift", 0.2))
        for pair in TASKS
    ]
    rows = cells(show("headline", records))
    assert rows[2][:5] == ["amazon-bow", "inductive", "svm-tfidf", "2", "1"]
    assert rows[2][5:8] == ["30.00", "10.00", f"{4 / n_test:.1%}"]
    assert rows[5][1:3] == ["transductive", "undrift"]
    assert rows[5][8:] == ["-10.00", "-10.00 to -10.00", "", "0 of 2"]


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
    bar = {"says": "section 5: it is low", "plan": "tiny", "method": "svm", "n_tasks": 1, "at_most": 1.0}
    verdicts = check_bars([check_table(Bar, each) for each in (bar, bar | {"says": "ours"})], records)
    once = fill_page(page, [*records, *DISTANCES], verdicts)
    assert fill_page(once, [*records, *DISTANCES], verdicts) == once
    assert "old" not in once
    assert once.startswith("# Title\n")
    assert "kept" in once
    assert once.count("| section 5: it is low |") == 2
    assert once.count("| ours |") == 1
    assert plan_table(make_frame(records)) in once
    assert fill_page(once, DISTANCES) == once  # results of one plan leave the tables of others alone


def test_what_a_script_stored_is_a_table():
    about = {"command": "python x.py", "date": "2026-11-18", "machine": "a machine"}
    table = show_script({**about, "rows": [{"pair": "a", "error, %": 1.5}, {"pair": "b", "error, %": 2}]})
    assert table.splitlines()[2:] == ["| a | 1.5 |", "| b | 2 |", "", "`python x.py`, 2026-11-18: a machine."]


def test_the_first_page_has_a_table_once_all_its_records_are_there():
    places = {("small", "shipped"): ("svm-tfidf", "undrift-pair"), ("multi", "20000 terms"): ("svm-tfidf",)}
    places[("multi", "20000 terms")] += ("undrift-pair",)
    places[("teachers", "fdu-mtl")] = ("minilm-finetuned", "undrift+teacher")
    records = [
        transfer(method, *pair, error, plan=plan, variant=variant)
        for (plan, variant), methods in places.items()
        for method in methods
        for pair, error in zip(TASKS, (0.1, 0.2), strict=True)
    ]
    assert "| undrift with that encoder as teacher |  | 15.0% |" in show("readme", records)
    assert show("readme", records[:-2]) is None


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
    assert "| mSDA, 5 layers, 27,677 documents | < 2 min |  | 4 s |  | small, authors, msda-5 |" in table
    assert "| SDA against mSDA-5, time | 180 × |  | 100 × |  |" in table
    assert "| SVM (Ganin et al. 2016, table 1) | 24.03% | unseen | 24.00% | unseen |" in table
    assert "| SVM+mSDA (Ganin et al. 2016, table 1) | 19.82% | unseen | 17.20% | unseen |" in table
    assert "| DANN+mSDA (Ganin et al. 2016, table 1) | 18.68% | unseen |  |  |" in table
    trial = published_table(make_frame([{**record, "n_test": 50} for record in records]))
    assert "| SVM (Ganin et al. 2016, table 1) | 24.03% | unseen |  |  |" in trial
    few = published_table(make_frame(records[1:]))
    assert "| SVM (Ganin et al. 2016, table 1) | 24.03% | unseen |  |  |" in few
