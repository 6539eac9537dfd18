"""Figures as SVG: on the page and as files, with every mark where its number says."""

import json
import re
from xml.etree import ElementTree

import pytest

from tests.helpers.bench_corpus import DISTANCES, dimension_records, records_of_all_tasks, transfer
from undrift.bench.catalogue import METHODS
from undrift.bench.figures.data import ablation_figures, all_figures, figure_1, figure_2, series_numbers
from undrift.report import write_figure
from undrift.report.figures import draw_figure, light_style, look, standalone_svg
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


def test_every_method_of_the_contract_has_its_look_in_every_figure():
    alone, together = series_numbers(["undrift"]), series_numbers([*METHODS, "msda-2", "msda-9"])
    assert alone["undrift"] == together["undrift"]
    shapes = [look(together[name])[0] for name in [*METHODS, "msda-2", "msda-9"]]
    assert len(set(shapes)) == 12
    many = series_numbers([f"variant {i}" for i in range(40)])
    assert len({look(number) for number in many.values()}) == 40 + len(METHODS)


def test_of_many_tasks_each_method_has_a_row_and_a_line_at_the_median():
    errors = [0.2, 0.3, 0.9]
    tasks = [f"a->b{i}" for i in range(60)]
    figure = {
        "kind": "points", "title": "t", "x": tasks, "y_label": "loss", "percent": True,
        "series": [{"label": "svm", "y": [errors[i % 3] for i in range(60)]}],
    }  # fmt: skip
    svg = str(draw_figure(figure))
    assert svg.count("<path") == 60
    assert "a-&gt;b59: 90.0%" in svg
    xs = {
        says: x for x, says in re.findall(r'translate\(([\d.]+) [\d.]+\)"[^>]*><title>[^:]*: ([^<]+)<', svg)
    }
    (zero, middle) = re.findall(r'<line x1="([\d.]+)"[^>]*class="zero"', svg)
    assert middle == xs["30.0%"]
    assert float(zero) < float(middle)


def test_an_ablation_is_drawn_from_the_top_with_its_intervals():
    (figure,) = ablation_figures(ablation_records())
    svg = str(draw_figure(figure))
    labels = re.findall(r'text-anchor="end">([^<]+)<', svg)
    assert labels == ["more", "less"]
    assert "more: -0.5% (-1.0% to 0.0%)" in svg


def test_an_axis_may_start_where_the_figure_says():
    figure = {
        "kind": "lines", "title": "t", "x_label": "x", "y_label": "y", "y_from": 0,
        "series": [{"label": "a", "x": [1, 2], "y": [4.0, 5.0]}],
    }  # fmt: skip
    values = re.findall(r'text-anchor="end" class="tick">([^<]+)<', str(draw_figure(figure)))
    assert values[0] == "0"
    del figure["y_from"]
    assert re.findall(r'text-anchor="end" class="tick">([^<]+)<', str(draw_figure(figure)))[0] != "0"


def test_what_learns_nothing_stands_at_the_left_edge_of_a_log_scale():
    figure = figure_2(
        [transfer("svm", "a", "b", 0.3, represent_seconds=0.0), transfer("msda-5", "a", "b", 0.2)]
    )
    xs = {own["label"]: own["x"] for own in figure["series"]}
    assert xs == {"svm": [0.0], "msda-5": [2.0]}
    svg = str(draw_figure(figure))
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
    assert str(draw_figure(pairs)).count("<path") == 4
    curves = {
        "kind": "lines", "title": "t", "x_label": "x", "y_label": "y", "y_log": True,
        "series": [{"label": "a", "x": [1, 2, 3], "y": [1.0, None, 100.0]}],
    }  # fmt: skip
    svg = str(draw_figure(curves))
    assert svg.count("<path") == 3  # two points, and one mark of the legend
    assert svg.count("<polyline") == 1
