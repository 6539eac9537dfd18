"""Figures as data against hand computation."""

import pytest

from lab.tests.helpers.corpus import DISTANCES, dimension_records, transfer
from lab.tests.results.test_tables import shared, trusted
from undrift_lab.results.draw import GREY, choose_colours, draw_svg
from undrift_lab.results.figures import all_figures, choose_figures, figure_1, figure_2, figure_3_right
from undrift_lab.results.frame import frame_distances, make_frame
from undrift_lab.results.published import ERRORS


def test_figure_1_is_the_loss_of_each_task(records):
    figure = figure_1(make_frame(records[:-1]))  # the last task of msda-5 is missing
    assert figure["x"][:2] == ["books->dvd", "books->toys"]
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


def test_figure_2_is_the_mean_ratio_and_the_time_and_says_of_which_machine(records):
    svm, msda = figure_2(make_frame(records))["series"]
    assert (svm["x"], msda["x"]) == ([0], [2])
    assert svm["y"] == pytest.approx([0.325 / 0.2])
    machines = {"svm": "a CPU; torch 2.11", "msda-1": "a CPU; a GPU; torch 2.11", "coda": "a CPU; numpy 2.5"}
    records = [transfer(m, "books", "dvd", 0.3, plan="small", machine=own) for m, own in machines.items()]
    figure = figure_2(make_frame(records))
    assert [mark["x"] for mark in figure["marks"]] == [25, 120, 18000]
    assert {own["label"]: own["device"] for own in figure["series"]} == {
        "svm": "CPU", "coda": "CPU", "msda-1": "GPU",
    }  # fmt: skip


def test_figure_3_says_what_ratios_are_relative_to_and_counts_pairs():
    (figure,) = all_figures(dimension_records())
    assert figure["name"] == "dimensions-figure-3-left"
    assert [own["x"] for own in figure["series"]] == [[5000, 30_000]] * 3
    figure = figure_3_right(frame_distances(DISTANCES))
    assert "2 of 3" in figure["title"]
    assert [(p["x"], p["y"]) for p in figure["points"]] == [(1.2, 1.5), (1.6, 1.4), (1.1, 1.3)]
    assert figure["name"] == "far-main-figure-3-right"


def test_errors_by_share_have_a_line_a_method():
    errors = {"source-only": (0.2, 0.3), "undrift": (0.1, 0.15)}
    (figure,) = all_figures(shared(errors, "p"))
    assert figure["name"] == "p-amazon-bow-error-by-share"
    lines = {own["label"]: own for own in figure["series"]}
    assert set(lines) == {"source-only", "undrift", "larger class"}
    assert lines["undrift"]["x"] == pytest.approx([10, 50])
    assert lines["undrift"]["y"] == pytest.approx([10, 15])
    assert all_figures(shared(errors, "peers")) == []


def test_the_evidence_has_three_figures():
    corpus, expected, parts = all_figures(trusted())
    assert corpus["series"][0]["y"] == pytest.approx([0.05, 0.05])
    assert corpus["series"][0]["label"] == "trust: tweets, less svm-tfidf"
    assert [(p["x"], p["y"], p["is_known"], p["y_interval"]) for p in expected["points"]] == [
        (0.25, 0.1, True, [0.05, 0.15]),
        (0.25, 0.275, False, [0.05, 0.5]),
    ]
    rows = {row["label"]: row["y"] for row in parts["series"]}
    assert rows["uneven classes: none"] == pytest.approx([0.28])
    assert rows["uneven classes: layers"] == pytest.approx([0.25])
    assert all("tweets" in draw_svg(figure) for figure in (corpus, expected))
    assert "uneven classes: layers" in draw_svg(parts)


def test_figures_are_chosen_by_their_names_and_drawn_alike_each_time(records):
    assert [each["name"] for each in choose_figures(records)] == ["tiny-main-figure-1", "tiny-main-figure-2"]
    (figure,) = choose_figures(records, ["*-figure-1"])
    assert figure["title"].endswith("– tiny, main")
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
