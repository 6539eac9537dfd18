"""Figures as data against hand computation."""

import numpy as np
import pytest

from lab.tests.helpers.corpus import DISTANCES, dimension_records, transfer
from lab.tests.results.test_kinds import RECORDS
from undrift_lab.results.draw import GREY, choose_colours, draw_svg
from undrift_lab.results.figures import all_figures, choose_figures, figure_1, figure_2, figure_3_right
from undrift_lab.results.frame import frame_distances, make_frame
from undrift_lab.results.published import ERRORS


def test_figure_1_is_the_loss_of_each_task(records):
    figure = figure_1(make_frame(records[:-1]))  # the last task of msda-5 is missing
    assert figure["kind"] == "tasks"
    assert figure["tasks"][:2] == ["books->dvd", "books->toys"]
    svm, msda = figure["series"]
    assert (svm["label"], msda["label"]) == ("svm", "msda-5")
    assert svm["y"] == pytest.approx([0.10, 0.11, 0.12, 0.13, 0.14, 0.15])
    assert msda["y"][:5] == pytest.approx([0.15, 0.01, 0.02, 0.03, 0.04])
    assert msda["y"][5] is None
    assert figure["published"] == []  # 40 test rows are not those of the benchmark


def test_published_errors_stand_beside_ours_where_the_test_rows_are_the_same():
    figure = figure_1(make_frame([transfer("svm", "books", "dvd", 0.25, baseline=0.15, n_test=3586)]))
    labels = [own["label"].split(" ")[0] for own in figure["published"]]
    assert labels == ["SVM", "SVM+mSDA", "DANN+mSDA"]  # MDA+TR has other terms
    assert figure["published"][0]["y"] == pytest.approx([0.201 - 0.15])
    assert [100 * (1 - own.mean) for own in ERRORS] == pytest.approx([75.97, 80.17, 81.32, 81.39], abs=0.0051)


def test_figure_2_is_the_mean_ratio_and_the_time_with_levels_of_what_learns_nothing_on_the_gpu(records):
    figure = figure_2(make_frame(records))
    (msda,), (svm,) = figure["series"], figure["levels"]
    assert (msda["label"], msda["x"]) == ("msda-5", [2])
    assert msda["y"] == pytest.approx([0.25 / 0.2])
    assert svm == {"label": "svm", "y": pytest.approx(0.325 / 0.2)}
    assert figure["x_label"] == "seconds to learn a representation on a shared processor, log"
    drawn = draw_svg(figure)
    assert ">svm<" in drawn
    assert ">msda-5<" in drawn
    of_gpu = [{**r, "machine": "8 cores; NVIDIA H200"} for r in records]
    assert "on one GPU" in figure_2(make_frame(of_gpu))["x_label"]


def test_figure_3_says_what_ratios_are_relative_to_and_counts_pairs():
    (figure,) = all_figures(dimension_records())
    assert figure["name"] == "dimensions-figure-3-left"
    assert [own["x"] for own in figure["series"]] == [[5000, 30_000]] * 3
    figure = figure_3_right(frame_distances(DISTANCES))
    assert "2 of 3" in figure["title"]
    assert [(p["x"], p["y"]) for p in figure["points"]] == [(1.2, 1.5), (1.6, 1.4), (1.1, 1.3)]
    assert figure["name"] == "far-main-figure-3-right"


def test_kinds_have_figures_by_family_part_share_and_expected_error():
    figures = {figure["name"]: figure for figure in all_figures(RECORDS)}
    assert list(figures) == ["kinds", "gain-by-part", "uneven", "expected-error"]
    gaps = {each["label"]: each["y"] for each in figures["kinds"]["series"]}
    assert gaps["emotion"] == pytest.approx([0.03])
    assert gaps["Amazon reviews"] == pytest.approx([-0.2])
    lines = {each["label"]: (each["x"], each["y"]) for each in figures["uneven"]["series"]}
    assert lines["undrift"] == (pytest.approx([10]), pytest.approx([10]))
    panels = {panel["title"]: panel["points"] for panel in figures["expected-error"]["panels"]}
    (point,) = panels["crisis"]
    assert (point["x"], point["y"]) == (0.22, 0.2)
    factor = np.exp(1.2 * 1.6448536)  # of the odds, 1 to 4: 5% of a normal prior are beyond it
    odds = np.array([0.25 / factor, 0.25 * factor])
    assert point["y_interval"] == pytest.approx(odds / (1 + odds))
    assert [e["of"] for e in figures["gain-by-part"]["series"]] == ["unmoved", "same mix", "undrift"]
    (part,) = [each for each in figures["gain-by-part"]["series"] if each["of"] == "undrift"]
    assert dict(zip(part["rows"], part["x"], strict=True))["emotion"] == pytest.approx(43)
    for figure in figures.values():
        assert ("emotion" in draw_svg(figure)) == (figure["name"] != "uneven")


def test_plans_on_two_files_have_no_figure_of_one_representation():
    files = [transfer("undrift", *pair, 0.2, n_features=n) for n, pair in ((30, "ab"), (31, "ba"))]
    assert all_figures(files) == []


def test_figures_are_chosen_by_their_names_and_drawn_alike_each_time(records):
    assert [each["name"] for each in choose_figures(records)] == ["tiny-main-figure-1", "tiny-main-figure-2"]
    (figure,) = choose_figures(records, ["*-figure-1"])
    assert figure["title"].endswith(", 6 tasks (plan tiny, main)")
    assert choose_figures(records, ["figure-1"]) == []
    assert draw_svg(figure) == draw_svg(figure)


@pytest.mark.parametrize("n_methods", [2, 8])
def test_methods_that_matter_keep_their_colours_and_many_others_are_grey(n_methods):
    labels = ["undrift", *(f"other-{i}" for i in range(n_methods - 1))]
    colours = choose_colours(labels)
    assert colours[0] == choose_colours(["svm", "undrift"])[1]
    assert (colours[1] == GREY) == (n_methods > 5)
    assert colours[0] not in colours[1:]


@pytest.mark.parametrize("kind", ["points", "scatter", "lines", "estimates"])
def test_a_drawing_has_every_name(kind):
    series = [{"label": f"name-{i}", "x": [1, 2], "y": [i, None]} for i in range(3)]
    ends = {"x_interval": [-1, 4], "y_interval": [0, 2], "is_known": True}
    points = [{"label": f"name-{i}", "x": i, "y": 1.0, **ends} for i in range(3)]
    figure = {"name": "f", "kind": kind, "title": "A title", "x_label": "along", "y_label": "up"}
    figure |= {"points": points} if kind == "estimates" else {"series": series}
    drawn = draw_svg(figure | {"note": "a note", "published": []})
    for word in ("A title", "a note", "name-0", "name-1", "name-2"):
        assert word in drawn
