"""Figures as data against hand computation."""

import pytest

from tests.helpers.bench_corpus import DISTANCES, DOMAINS, dimension_records, transfer
from undrift.bench.results.figures import (
    all_figures,
    choose_figures,
    dimension_times,
    figure_1,
    figure_2,
    figure_3_left,
    figure_3_right,
    training_losses,
)
from undrift.bench.results.published import AMAZON


def test_figure_1_is_the_loss_of_each_task(records):
    figure = figure_1(records[:-1])  # the last task of msda-5 is missing
    assert figure["x"][:2] == ["books->dvd", "books->toys"]
    svm, msda = figure["series"]
    assert (svm["label"], msda["label"]) == ("svm", "msda-5")
    assert svm["y"] == pytest.approx([0.10, 0.11, 0.12, 0.13, 0.14, 0.15])
    assert msda["y"][:5] == pytest.approx([0.15, 0.01, 0.02, 0.03, 0.04])
    assert msda["y"][5] is None
    assert figure["published"] == []  # 40 test rows are not those of the benchmark


def test_published_errors_stand_beside_ours_where_the_test_rows_are_the_same():
    figure = figure_1([transfer("svm", "books", "dvd", 0.25, baseline=0.15, n_test=3586)])
    labels = [own["label"].split(" ")[0] for own in figure["published"]]
    assert labels == ["SVM", "SVM+mSDA", "DANN+mSDA"]  # MDA+TR has other terms
    assert figure["published"][0]["y"] == pytest.approx([0.201 - 0.15])
    assert figure["published"][1]["y"] == pytest.approx([0.17 - 0.15])
    assert [100 * (1 - own.mean) for own in AMAZON] == pytest.approx([75.97, 80.17, 81.32, 81.39], abs=0.0051)


def test_figure_2_is_the_mean_ratio_and_the_time(records):
    svm, msda = figure_2(records)["series"]
    assert svm["x"] == [0]
    assert msda["x"] == [2]
    assert svm["y"] == pytest.approx([0.325 / 0.2])
    assert msda["y"] == pytest.approx([(0.35 + 0.21 + 0.22 + 0.23 + 0.24 + 0.25) / 6 / 0.2])


def test_the_papers_times_mark_the_axis_of_its_own_benchmark():
    (small,) = all_figures([transfer("svm", "books", "dvd", 0.3, plan="small")])[1:2]
    assert [mark["x"] for mark in small["marks"]] == [25, 120, 18000]


def test_figure_2_says_which_times_are_of_which_machine():
    gpu, cpu = "a CPU, 16 cores; a GPU; torch 2.11; numpy 2.5; scikit-learn 1.9", "a CPU, 2 cores; numpy 2.5"
    machines = {"svm": gpu, "msda-1": gpu, "scl": gpu, "coda": cpu, "sda": gpu}
    records = [
        transfer(
            method, "books", "dvd", 0.3, plan="small", machine=own, represent_seconds=float(method != "svm")
        )
        for method, own in machines.items()
    ]
    assert figure_2(records)["note"] == (
        "learnt: scl on a CPU, 16 cores; coda on a CPU, 2 cores; sda, msda-1 on a GPU; "
        "the paper's times are of twelve cores at 2.66 GHz"
    )


def test_figure_3_left_says_what_ratios_are_relative_to_and_that_the_setting_is_another():
    figure = figure_3_left(dimension_records())
    assert figure["y_label"] == "mean transfer ratio, relative to the baseline at 5,000"
    assert figure["note"] == "not the paper's exact setting: processed_acl has no unlabelled part"
    assert figure_3_left(dimension_records(corpus="public"))["note"] == ""
    each_its_own = [
        *dimension_records(),
        {"kind": "in-domain", "plan": "dimensions", "variant": "30000", "error": 0.2},
    ]
    assert figure_3_left(each_its_own)["y_label"] == "mean transfer ratio"


def test_the_papers_times_stand_in_the_figure_of_times():
    figure = dimension_times(dimension_records())
    assert [(own["label"], own["x"], own["y"]) for own in figure["published"]] == [
        ("sda, the paper: > 1 day", [30_000], [24 * 3600]),
        ("msda-5, the paper: 3 min", [30_000], [180]),
    ]
    assert "learnt: sda, msda-5 on a GPU; the paper's times" in figure["note"]
    assert dimension_times(dimension_records(plan="another"))["published"] == []


def test_figure_3_left_has_a_point_for_each_width():
    records = [
        transfer(method, "a", "b", error, variant=str(n), n_features=n, represent_seconds=seconds)
        for method, n, error, seconds in [
            ("svm", 10, 0.3, 0.0), ("msda-5", 20, 0.2, 4.0),
            ("msda-5", 10, 0.24, 1.0), ("svm", 20, 0.28, 0.0),
        ]
    ]  # fmt: skip
    svm, msda = figure_3_left(records)["series"]
    assert (svm["x"], msda["x"]) == ([10, 20], [10, 20])
    assert msda["y"] == pytest.approx([1.2, 1.0])
    (times,) = dimension_times(records)["series"]  # the SVM learns no representation
    assert times["y"] == [1.0, 4.0]
    assert [figure["name"] for figure in all_figures(records)] == [
        "tiny-figure-3-left",
        "tiny-dimension-times",
    ]


def test_figure_3_right_counts_the_pairs_that_grow():
    figure = figure_3_right(DISTANCES)
    assert "2 of 3" in figure["title"]
    assert [(p["x"], p["y"]) for p in figure["points"]] == [(1.2, 1.5), (1.6, 1.4), (1.1, 1.3)]


def test_a_matrix_has_sources_down_and_targets_across(records):
    (figure,) = [f for f in all_figures(records) if f["name"] == "tiny-main-matrix-svm"]
    assert figure["x"] == figure["y"] == list(DOMAINS)
    assert figure["values"][0] == [None, pytest.approx(0.30), pytest.approx(0.31)]
    assert figure["values"][2] == [pytest.approx(0.34), pytest.approx(0.35), None]


def test_failures_are_not_drawn_and_later_records_replace_earlier(records):
    failure = {key: records[0][key] for key in ("kind", "plan", "variant", "method", "source", "target")}
    again = transfer("svm", "books", "dvd", 0.4)
    svm = figure_1([{**failure, "failed": "x"}, *records, again])["series"][0]
    assert svm["y"][0] == pytest.approx(0.2)
    assert len(svm["y"]) == 6


def test_methods_stand_in_the_contracts_order_whichever_was_run_first():
    methods = ["undrift", "msda-10", "sda", "msda-2", "svm", "msda-5"]
    for i in range(2):
        records = [transfer(method, "a", "b", 0.3) for method in methods[:: 1 - 2 * i]]
        records += [transfer("svm", "a", "a2", 0.3)]
        labels = [own["label"] for own in figure_1(records)["series"]]
        assert labels == ["svm", "sda", "msda-2", "msda-5", "msda-10", "undrift"]
        assert [own["label"] for own in figure_2(records)["series"]] == labels
        assert figure_1(records)["x"] == ["a->a2", "a->b"]


def test_figures_are_chosen_by_their_names(records):
    figures = all_figures(records)
    assert choose_figures(figures, None) == figures
    chosen = choose_figures(figures, ["*-figure-?", "tiny-main-matrix-svm"])
    assert [own["name"].removeprefix("tiny-main-") for own in chosen] == [
        "figure-1",
        "figure-2",
        "matrix-svm",
    ]
    assert choose_figures(figures, ["figure-1"]) == []


def test_figures_say_which_plan_and_variant_they_are_of(records):
    figures = all_figures(records)
    assert all(figure["title"].endswith("– tiny, main") for figure in figures)
    spaced = all_figures([{**record, "variant": "a b"} for record in records])
    assert spaced[0]["name"] == "tiny-a-b-figure-1"


def test_training_losses_have_a_line_for_each_run():
    shared = {"plan": "p", "kind": "transfer", "method": "sda", "losses": [[3.0, 2.0], [1.0, 0.5]]}
    records = [
        {**shared, "variant": "a", "source": "x"},
        {**shared, "variant": "a", "source": "y"},  # the same representation
        {**shared, "variant": "b"},  # shared between variants
        {**shared, "variant": "c", "losses": [[4.0, 1.0, 0.5]]},
        {"plan": "p", "kind": "transfer", "method": "svm", "variant": "a"},
    ]
    first, second = training_losses(records)
    assert [(own["label"], own["x"], own["y"]) for own in first["series"]] == [
        ("sda, a", [1, 2], [3.0, 2.0]),
        ("sda, c", [1, 2, 3], [4.0, 1.0, 0.5]),
    ]
    assert [own["y"] for own in second["series"]] == [[1.0, 0.5]]
    assert (first["name"], second["name"]) == ("p-training-loss-sda-1", "p-training-loss-sda-2")
