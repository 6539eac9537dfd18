"""Figures as SVG: on the page and as files, with every mark where its number says."""

import json
import re
from itertools import pairwise
from xml.etree import ElementTree

import pytest

from tests.helpers.bench_corpus import DISTANCES, dimension_records, records_of_all_tasks, transfer
from undrift.bench.results.figures import ablation_figures, all_figures, figure_1, figure_2
from undrift.report import write_figure
from undrift.report.figures import choose_colours, draw_figure, light_style, split_label, standalone_svg
from undrift.report.svg import Scale


@pytest.fixture
def records():
    return records_of_all_tasks()


def many_tasks():
    names = [f"d{i}" for i in range(8)]
    return [transfer("msda-5", a, b, 0.3, plan="wide") for a in names for b in names if a != b]


def ablation_records():
    errors = {"all": (0.10, 0.30), "less": (0.12, 0.34), "more": (0.09, 0.30)}
    return [
        transfer("undrift", "a", target, error, plan="parts", variant=variant)
        for variant, pair in errors.items()
        for target, error in zip("bc", pair, strict=True)
    ]


def test_every_kind_of_figure_is_written_as_svg_and_data(tmp_path):
    records = [
        *records_of_all_tasks(), *many_tasks(), *dimension_records(), *DISTANCES, *ablation_records(),
    ]  # fmt: skip
    figures = [*all_figures(records), *ablation_figures(records)]
    assert {figure["kind"] for figure in figures} == {
        "points", "scatter", "lines", "pairs", "heatmap", "intervals",
    }  # fmt: skip
    for figure in figures:
        svg, data = write_figure(figure, tmp_path / "figures")
        root = ElementTree.parse(svg).getroot()
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        words = " ".join(root.itertext())
        assert all(word in words for word in figure["title"].split())
        assert figure["y_label" if figure["kind"] in ("lines", "scatter", "points") else "x_label"] in words
        assert all(word in words for word in (figure.get("note") or "").split())
        assert all(published["label"] in words for published in figure.get("published", []))
        assert json.loads(data.read_text()) == json.loads(json.dumps(figure))


def test_only_the_files_asked_for_are_written(records, tmp_path):
    assert write_figure(figure_1(records), tmp_path, ["svg"]) == [tmp_path / "tiny-main-figure-1.svg"]
    assert [path.suffix for path in tmp_path.iterdir()] == [".svg"]


def test_a_figure_alone_needs_no_variable_of_a_page_and_is_the_same_every_time(records):
    svg = standalone_svg(figure_1(records))
    assert "var(" not in svg
    assert svg == standalone_svg(figure_1(records))
    assert re.search(r"\.s1 { fill: #[0-9a-f]{6}; }", light_style())


def test_methods_that_matter_have_one_colour_and_many_others_are_grey():
    many = ["svm", "svm-tfidf", "pca", "scl", "coda", "msda-5", "undrift"]
    colours = dict(zip(many, choose_colours(many), strict=True))
    assert [colours[name] for name in ("msda-5", "undrift", "svm")] == [0, 1, 2]
    assert {colours[name] for name in ("svm-tfidf", "pca", "scl", "coda")} == {5}
    few = dict(
        zip(["undrift", "centred", "oracle"], choose_colours(["undrift", "centred", "oracle"]), strict=True)
    )
    assert few["undrift"] == 1
    assert len(set(few.values())) == 3
    assert choose_colours(["a", "b", "a"]) == [0, 1, 0]
    with_labels = ["labels", "asked", "updated", "updated-asked", "none", "second-source", "augmented"]
    assert choose_colours(with_labels) == [1, 3, 0, 2, 5, 5, 5]


def wide(figure):
    """The drawing for a desk; the telephone's follows it."""
    return str(draw_figure(figure)).partition("</svg>")[0]


def test_methods_are_ordered_by_their_mean_with_a_mark_for_each_task():
    errors = {"svm": [0.2, 0.3, 0.7], "undrift": [0.1, 0.15, 0.2], "pca": [0.3, None, 0.5]}
    figure = {
        "kind": "points", "title": "t", "x": ["a->b", "b->c", "c->a"], "y_label": "loss", "percent": True,
        "series": [{"label": name, "y": values} for name, values in errors.items()],
    }  # fmt: skip
    svg = wide(figure)
    assert re.findall(r'text-anchor="end">([^<]+)<', svg) == [
        "undrift",
        "15.0%",
        "svm",
        "40.0%",
        "pca",
        "40.0%",
    ]
    assert svg.count("<path") == 8
    assert "svm, c-&gt;a: 70.0%" in svg
    places = {
        says: float(x) for x, says in re.findall(r'translate\(([\d.]+) [\d.-]+\)"[^>]*><title>([^<]+)<', svg)
    }
    means = [float(x) for x in re.findall(r'<line x1="([\d.]+)"[^>]*class="mean"', svg)]
    assert means[0] == pytest.approx(places["undrift, b-&gt;c: 15.0%"], abs=0.1)
    assert means[1] == pytest.approx(means[2], abs=0.1)


def test_what_was_measured_on_a_gpu_is_a_square_and_published_marks_are_hollow():
    figure = {
        "kind": "scatter", "title": "t", "x_label": "x", "y_label": "y", "x_log": True,
        "series": [
            {"label": "svm", "x": [1.0], "y": [2.0], "device": "CPU"},
            {"label": "undrift", "x": [5.0], "y": [1.0], "device": "GPU"},
        ],
        "published": [{"label": "svm, the paper", "of": "svm", "x": [3.0], "y": [2.1]}],
    }  # fmt: skip
    svg = wide(figure)
    shape = {
        says: (d[:4], cls)
        for d, cls, says in re.findall(r'<path d="([^"]+)"[^>]*class="([^"]+)"><title>([^<]+)<', svg)
    }
    assert shape["undrift: 1 at 5"][0] == shape["GPU"][0] != shape["CPU"][0] == shape["svm: 2 at 1"][0]
    assert shape["svm, the paper: 2.1 at 3"][1].endswith("s2 hollow")
    for name in ("svm", "undrift", "svm, the paper"):
        assert re.search(rf">{name}</text>", svg), "names stand beside their marks"


def test_the_names_at_the_ends_of_lines_do_not_cover_one_another():
    figure = {
        "kind": "lines", "title": "t", "x_label": "x", "y_label": "y",
        "series": [{"label": name, "x": [1, 2], "y": [4.0, 5.0 + i / 100]} for i, name in enumerate("abcd")],
    }  # fmt: skip
    heights = sorted(
        float(y) for y, _ in re.findall(r'y="([\d.]+)" text-anchor="start">([abcd])<', wide(figure))
    )
    assert len(heights) == 4
    assert all(below - above >= 17.9 for above, below in pairwise(heights))


def test_an_ablation_is_drawn_from_the_top_with_its_intervals():
    (figure,) = ablation_figures(ablation_records())
    svg = wide(figure)
    labels = re.findall(r'text-anchor="end">([^<]+)<', svg)
    assert labels == ["more", "less"]
    assert "more: -0.5% (-1.0% to 0.0%)" in svg


def test_an_axis_may_start_where_the_figure_says():
    figure = {
        "kind": "lines", "title": "t", "x_label": "x", "y_label": "y", "y_from": 0,
        "series": [{"label": "a", "x": [1, 2], "y": [4.0, 5.0]}],
    }  # fmt: skip
    values = re.findall(r'text-anchor="end" class="tick">([^<]+)<', wide(figure))
    assert values[0] == "0"
    del figure["y_from"]
    assert re.findall(r'text-anchor="end" class="tick">([^<]+)<', wide(figure))[0] != "0"


def test_what_learns_nothing_stands_at_the_left_edge_of_a_log_scale():
    figure = figure_2(
        [transfer("svm", "a", "b", 0.3, represent_seconds=0.0), transfer("msda-5", "a", "b", 0.2)]
    )
    xs = {own["label"]: own["x"] for own in figure["series"]}
    assert xs == {"svm": [0.0], "msda-5": [2.0]}
    svg = wide(figure)
    places = {
        name: float(x)
        for x, name in re.findall(r'translate\(([\d.]+) [\d.]+\)"[^>]*><title>([^<]+?): [\d.]+ at', svg)
    }
    assert set(places) == {"svm", "msda-5"}
    lines = [float(x) for x in re.findall(r'<line x1="([\d.]+)"', svg)]
    assert places["svm"] == min(lines) < places["msda-5"]
    assert Scale(1.0, 100.0, 10.0, 30.0, log=True)(-1.0) == 10.0
    assert Scale(1.0, 100.0, 10.0, 30.0, log=True)(10.0) == pytest.approx(20.0)


def test_distances_and_curves_are_drawn_with_every_point():
    pairs = {
        "kind": "pairs", "title": "t", "x_label": "x", "y_label": "y",
        "points": [
            {"label": f"p{i}", "x": i / 5, "y": i / 4, "x_interval": [0, 1], "y_interval": [0, 2]}
            for i in range(4)
        ],
    }  # fmt: skip
    assert wide(pairs).count("<path") == 4
    assert str(draw_figure(pairs)).count("<path") == 8  # and again for a telephone
    curves = {
        "kind": "lines", "title": "t", "x_label": "x", "y_label": "y", "y_log": True,
        "series": [{"label": "a", "x": [1, 2, 3], "y": [1.0, None, 100.0]}],
    }  # fmt: skip
    svg = wide(curves)
    assert svg.count("<path") == 3  # two points, and one beside the name
    assert svg.count("<polyline") == 1


def test_long_labels_take_two_lines_and_are_not_cut():
    label = "SVM+mSDA (Ganin et al. 2016, table 1)"
    assert split_label(label, 30) == ["SVM+mSDA", "(Ganin et al. 2016, table 1)"]
    assert split_label(label, 13) == ["SVM+mSDA", "(Ganin et al…"]
    assert split_label("svm (tf-idf)", 30) == ["svm (tf-idf)"]
