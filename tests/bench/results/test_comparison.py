"""Methods side by side, from records made by hand."""

import pytest

from tests.helpers.bench_corpus import transfer
from undrift.bench.results.figures import all_figures
from undrift.bench.results.measures import mean_peer_errors
from undrift.bench.results.page import make_table
from undrift.bench.results.tables import headline_table, peers_table

TASKS = [("a", "b"), ("b", "a")]


def made():
    """Two variants of two tasks; self-training is worse than source-only by 5 points on one task of each."""
    errors = {"source-only": (0.2, 0.3), "undrift": (0.1, 0.1), "self-training": (0.25, 0.31)}
    records = [
        transfer(
            method,
            *pair,
            error,
            plan="peers",
            variant=variant,
            peak_gigabytes=0.5,
            target_share=float(variant[2:]),
            balanced_error=0.25 if method == "undrift" else error,
        )
        for variant in ("x .20", "x .50")
        for method, given in errors.items()
        for pair, error in zip(TASKS, given, strict=True)
    ]
    failed = transfer("skada-tca", "a", "b", 0.2, plan="peers", variant="x .20")
    records.append({key: failed[key] for key in ("kind", "plan", "variant", "method", "source", "target")})
    records[-1]["failed"] = "MemoryError: too large"
    shares = {"target_share": 0.2, "balanced_error": 0.01}
    records.append(transfer("skada-ot", "a", "b", 0.01, plan="peers", variant="x .20", **shares))
    return records


def rows(table):
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]


def test_every_method_has_errors_time_memory_harm_and_failures():
    slow = {"machine": "other", "represent_seconds": 100.0, "seed": 1}
    table = rows(peers_table([*made(), {**made()[2], **slow}, {**made()[3], "corpus": "second", "seed": 1}]))
    assert table[0][:6] == ["method", "package", "x .20", "x .50", "mean", "balanced"]
    named = {row[0]: row for row in table[2:8]}
    assert list(named) == ["undrift", "source-only", "self-training", "larger class", "skada-tca", "skada-ot"]
    assert named["undrift"][1:6] == ["undrift", "10.0", "10.0", "10.00", "25.00"]
    assert named["undrift"][6:] == ["2.5 / 2.5", "0.5 / 0.5", "a machine", "0 of 4", "2 of 4", "0"]
    assert named["self-training"][1:5] == ["sklearn", "28.0", "28.0", "28.00"]
    assert named["self-training"][9] == "2 of 4"  # exactly a point more is no harm
    assert named["larger class"][1:5] == ["", "20.0", "50.0", "35.00"]
    assert named["skada-tca"][1:] == ["skada", *[""] * 9, "1"]
    assert named["skada-ot"][2:5] == ["", "", ""]  # a task is missing, so there is no mean of the column
    assert "Failed: skada-tca (MemoryError: too large)." in peers_table(made())
    assert make_table("peers", made()) == peers_table(made())


def test_ours_is_compared_with_the_best_of_others_in_each_column():
    ours = [
        {**r, "method": method, "transfer_error": error}
        for r in made()
        if r["method"] == "undrift"
        for method, error in (("undrift-pair", 0.25), ("balanced-pair", 0.01), ("uncentred-pair", 0.3))
    ]
    table = rows(peers_table([*made(), *ours]))
    start = next(i for i, row in enumerate(table) if row[0] == "column")
    # larger class has 20% in the first column; skada-ot lacks a task of it
    assert [row[:5] for row in table[start + 2 : start + 8]] == [
        ["x .20", "undrift-pair", "larger class", "+5.00", "+5.00 to +5.00"],
        ["x .20", "undrift-pair", "uncentred-pair", "-5.00", "-5.00 to -5.00"],
        ["x .20", "undrift", "larger class", "-10.00", "-10.00 to -10.00"],
        ["x .50", "undrift-pair", "source-only", "+0.00", "-5.00 to +5.00"],
        ["x .50", "undrift-pair", "uncentred-pair", "-5.00", "-5.00 to -5.00"],
        ["x .50", "undrift", "source-only", "-15.00", "-20.00 to -10.00"],
    ]
    assert table[start + 5][5:] == ["", "1 of 2, by up to 5.0"]  # no interval from two domains
    assert mean_peer_errors(made())["skada-ot"] == {}


def test_errors_by_share_are_of_ours_and_of_the_best_method_of_every_package():
    worse = [
        {**r, "method": "nb-features", "transfer_error": 0.4} for r in made() if r["method"] == "undrift"
    ]
    # a method that another corpus lacks is drawn all the same
    other = [
        {**r, "corpus": "other", "variant": f"y{r['variant'][1:]}"}
        for r in made()
        if r["method"] == "undrift"
    ]
    figures = all_figures([*made(), *worse, *other])
    figure, _ = [each for each in figures if each["name"].endswith("-error-by-share")]
    series = {each["label"]: each for each in figure["series"]}
    assert sorted(series) == ["larger class", "self-training", "undrift"]
    assert series["self-training"]["x"] == [20, 50]
    assert series["self-training"]["y"] == pytest.approx([28, 28])


def test_the_headline_has_both_protocols_and_errors_without_duplicates():
    records = [
        transfer(
            method, *pair, error + 0.05 * (variant == "inductive"), plan="small", variant=variant, seed=0,
            n_duplicates=10, n_test=100, error_without_duplicates=error + 0.02,
        )
        for variant in ("shipped", "inductive")
        for method, error in (("svm-tfidf", 0.2), ("undrift", 0.1))
        for pair in TASKS
    ]  # fmt: skip
    table = rows(headline_table(records))
    assert [row[1:7] for row in table[2:6]] == [
        ["inductive", "svm-tfidf", "2", "25.00", "22.00", "10.0%"],
        ["inductive", "undrift", "2", "15.00", "12.00", "10.0%"],
        ["transductive", "svm-tfidf", "2", "20.00", "22.00", "10.0%"],
        ["transductive", "undrift", "2", "10.00", "12.00", "10.0%"],
    ]
    assert table[3][7:] == ["-10.00", "-10.00 to -10.00", "", "0 of 2"]
    assert table[2][7:] == [""] * 4
    assert make_table("headline", records) == headline_table(records)
    assert make_table("headline", made()) is None
