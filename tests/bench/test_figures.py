"""Figures as data against hand computation; drawings that are what they claim; tables and bars."""

import json
from itertools import pairwise
from xml.etree import ElementTree

import pytest
from bench_corpus import DOMAINS, transfer

from undrift.bench.expected import Bar, check, load_bars
from undrift.bench.figures import (
    all_figures,
    dimension_times,
    figure_1,
    figure_2,
    figure_3_left,
    figure_3_right,
    training_losses,
)
from undrift.bench.published import AMAZON
from undrift.bench.table import distance_table, filled, results_table, side_by_side


def distance(source, target, before, after):
    ends = {
        f"distance_{name}_{end}": value + shift
        for name, value in (("before", before), ("after", after))
        for end, shift in (("low", -0.1), ("high", 0.1))
    }
    return {
        "kind": "distance", "plan": "far", "variant": "main", "method": "msda-5",
        "source": source, "target": target, "distance_before": before, "distance_after": after, **ends,
    }  # fmt: skip


DISTANCES = [distance("a", "b", 1.2, 1.5), distance("a", "c", 1.6, 1.4), distance("b", "c", 1.1, 1.3)]


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
    assert [own["label"].split(" ")[0] for own in figure["published"]] == ["SVM+mSDA", "DANN+mSDA"]
    assert figure["published"][0]["y"] == pytest.approx([0.17 - 0.15])
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


def many_tasks():
    names = [f"d{i}" for i in range(6)]
    return [transfer("msda-5", a, b, 0.3, plan="wide") for a in names for b in names if a != b]


def test_every_kind_of_figure_is_drawn_as_svg_png_and_data(records, tmp_path):
    pytest.importorskip("matplotlib")
    from undrift.bench.draw import draw

    widths = [transfer("svm", "a", "b", 0.3, plan="dim", variant=str(n), n_features=n) for n in (10, 20)]
    figures = all_figures([*records, *many_tasks(), *widths, *DISTANCES])
    assert {figure["kind"] for figure in figures} == {"points", "scatter", "lines", "pairs", "heatmap"}
    for figure in figures:
        svg, png, data = draw(figure, tmp_path / "figures")
        root = ElementTree.parse(svg).getroot()
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        words = "".join(root.itertext())
        assert figure["title"] in words
        assert figure["y_label"] in words
        assert png.read_bytes().startswith(b"\x89PNG")
        assert json.loads(data.read_text()) == json.loads(json.dumps(figure))


def test_the_same_figure_gives_the_same_svg(records, tmp_path):
    pytest.importorskip("matplotlib")
    from undrift.bench.draw import draw

    first, second = (draw(figure_1(records), tmp_path / name)[0].read_bytes() for name in "ab")
    assert first == second


def test_every_method_of_the_contract_has_its_own_look():
    from undrift.bench.draw import STYLES, _styles
    from undrift.bench.methods import METHODS

    assert set(STYLES) == set(METHODS)
    more = _styles([*METHODS, "msda-2", "msda-4", "msda-9", "msda-10"])
    assert len({marker for _, marker in more.values()}) == len({colour for colour, _ in more.values()}) == 14
    assert len(set(_styles([*METHODS, "msda-2", "msda-4"]).values())) == len(METHODS) + 2


def test_methods_stand_in_the_contracts_order_whichever_was_run_first():
    methods = ["undrift", "msda-10", "sda", "msda-2", "svm", "msda-5"]
    for i in range(2):
        records = [transfer(method, "a", "b", 0.3) for method in methods[:: 1 - 2 * i]]
        records += [transfer("svm", "a", "a2", 0.3)]
        labels = [own["label"] for own in figure_1(records)["series"]]
        assert labels == ["svm", "sda", "msda-2", "msda-5", "msda-10", "undrift"]
        assert [own["label"] for own in figure_2(records)["series"]] == labels
        assert figure_1(records)["x"] == ["a->a2", "a->b"]


def test_figures_say_which_plan_and_variant_they_are_of(records):
    figures = all_figures(records)
    assert all(figure["title"].endswith("– tiny, main") for figure in figures)
    spaced = all_figures([{**record, "variant": "a b"} for record in records])
    assert spaced[0]["name"] == "tiny-a-b-figure-1"


def log_labels(times):
    figures = pytest.importorskip("matplotlib.figure")
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    from undrift.bench.draw import _scatter

    methods = ["msda-1", "msda-3", "msda-5"]
    records = [transfer(m, "a", "b", 0.3, represent_seconds=t) for m, t in zip(methods, times, strict=True)]
    canvas = figures.Figure(figsize=(7.5, 4.6))
    axes = canvas.subplots()
    _scatter(figure_2(records), axes)
    renderer = FigureCanvasAgg(canvas).get_renderer()
    canvas.draw(renderer)
    low, high = axes.get_xlim()
    ticks = [
        t for t in axes.xaxis.get_major_ticks() + axes.xaxis.get_minor_ticks() if low <= t.get_loc() <= high
    ]
    shown = sorted((t for t in ticks if t.label1.get_text()), key=lambda t: t.get_loc())
    boxes = [t.label1.get_window_extent(renderer) for t in shown]
    assert all(left.x1 < right.x0 for left, right in pairwise(boxes))
    return [t.label1.get_text() for t in shown]


@pytest.mark.parametrize(
    ("times", "labels"),
    [
        ((0.015, 0.1, 0.6), ["0.02", "0.05", "0.1", "0.2", "0.5"]),
        ((0.1, 10, 2000), ["0.1", "1", "10", "100", "1,000"]),
        ((3.0, 4.0, 6.0), ["3", "3.5", "4", "4.5", "5", "5.5", "6"]),  # as on a linear scale
    ],
)
def test_log_scales_name_a_few_values_that_do_not_overlap(times, labels):
    assert log_labels(times) == labels


@pytest.mark.parametrize(
    ("lengths", "width", "n"),
    [
        ([3] * 6, 10.0, 6),
        ([3] * 6, 3.0, 4),  # a column takes 0.695 inches
        ([3, 3, 40, 40], 4.0, 2),  # 0.695 + 3.1
        ([3, 3, 40, 40], 3.7, 1),
        ([100], 1.0, 1),
    ],
)
def test_legends_are_no_wider_than_their_figure(lengths, width, n):
    pytest.importorskip("matplotlib")
    from undrift.bench.draw import _n_columns

    assert _n_columns(lengths, width) == n


def test_the_table_has_the_means_and_says_what_failed(records):
    failed = {**transfer("coda", "books", "dvd", 0.0), "failed": "ValueError: no"}
    table = results_table([*records, failed])
    assert "| tiny | main | svm | 6 | 32.50 | 1.625 | 0 | 0 | 0.5 |" in table
    assert "| tiny | main | msda-5 | 6 | 25.00 | 1.250 | 2 | 0 | 0.5 |" in table
    assert "2026-11-15: a machine." in table
    assert "Failed: coda on books->dvd (ValueError: no)." in table
    assert "| svm |" not in results_table(records, "another")


def test_a_page_is_filled_again_and_again(records):
    page = "# Title\n<!-- bench table: tiny -->\nold\n<!-- end -->\nkept\n"
    page += "<!-- bench table: distance -->\n<!-- end -->\n"
    once = filled(page, [*records, *DISTANCES])
    assert filled(once, [*records, *DISTANCES]) == once
    assert "old" not in once
    assert once.startswith("# Title\n")
    assert "kept" in once
    assert results_table([*records, *DISTANCES], "tiny") in once
    assert distance_table(DISTANCES) in once
    assert filled(once, DISTANCES) == once  # results of one plan leave the tables of others alone
    assert "| a, b | 1.200 (1.100 to 1.300) | 1.500 (1.400 to 1.600) | yes |" in once


def test_the_paper_and_ours_side_by_side():
    records = [
        transfer("msda-5", "books", "dvd", 0.2, plan="small", represent_seconds=4.0),
        transfer("sda", "books", "dvd", 0.2, plan="small", represent_seconds=400.0),
        transfer("svm", "a", "b", 0.1393, plan="full"),
    ]
    table = side_by_side(records)
    assert "| mSDA, 5 layers, 27,677 documents | < 2 min | 4 s |" in table
    assert "| SDA against mSDA-5, time | 180 × | 100 × |" in table
    assert "| 380 tasks, baseline, mean error | 13.93 % | 13.93 % |" in table
    assert "| 380 tasks, SDA, mean error | 10.50 % |  |" in table


def judged(records, **bar):
    (verdict,) = check([Bar("it", "tiny", **{"method": "msda-5", **bar})], records)
    return verdict


@pytest.mark.parametrize(
    ("bar", "met"),
    [
        ({"at_most": 0.2501}, True),
        ({"at_most": 0.2499}, False),
        ({"at_least": 0.2499}, True),
        ({"value": 0.26, "tolerance": 0.0101}, True),
        ({"value": 0.26, "tolerance": 0.0099}, False),
        ({"than": {"method": "svm"}}, True),
        ({"than": {"method": "svm"}, "margin": 0.08}, False),
        ({"than": {"method": "svm"}, "near": 0.07}, False),
        ({"than": {"method": "svm"}, "near": 0.08}, True),
        ({"than": {"method": "svm"}, "n_tasks": 5}, True),
        ({"than": {"method": "svm"}, "n_tasks": 6}, False),
        ({"best_of": ["svm"], "n_tasks": 5}, True),
        ({"best_of": ["svm"], "n_tasks": 6}, False),
        ({"best_of": ["pca"], "n_tasks": 1}, None),
        ({"worse_than": "svm", "by": 0.04, "at_most_tasks": 0}, False),
        ({"worse_than": "svm", "by": 0.05, "at_most_tasks": 0}, True),  # 0.35 - 0.30 is not more than 0.05
        ({"worse_than": "svm", "by": 0.04, "at_most_tasks": 1}, True),
        ({"worse_than": "svm", "by": -0.2, "at_most_tasks": 5}, False),
        ({"worse_than": "svm", "by": -0.2, "at_most_tasks": 6}, True),
        ({"worse_than": "pca", "at_most_tasks": 6}, None),
        ({"worse_than": "svm", "at_most_tasks": 6, "and_plans": ["none"]}, None),
        ({"method": "pca", "at_most": 0.5}, None),
        ({"than": {"method": "pca"}}, None),
        ({"variant": "other", "at_most": 0.5}, None),
        ({"measure": "represent_seconds", "at_most": 2.0}, True),
        ({"measure": "represent_seconds", "than": {"method": "svm"}}, False),
    ],
)
def test_bars(records, bar, met):
    verdict = judged(records, **bar)
    assert verdict.met is met
    assert verdict.word == {True: "pass", False: "FAIL", None: "no results"}[met]


def test_so_many_times_faster():
    records = [transfer("msda-5", "a", "b", 0.2), transfer("sda", "a", "b", 0.2, represent_seconds=21.0)]
    for times, met in ((10, True), (11, False)):
        verdict = judged(records, measure="represent_seconds", than={"method": "sda"}, times=times)
        assert verdict.met is met


def test_tasks_made_worse_are_counted_over_several_plans(records):
    more = [{**record, "plan": "wide"} for record in records]
    for at_most, met in ((1, False), (2, True)):
        verdict = judged(
            [*records, *more], worse_than="svm", by=0.01, at_most_tasks=at_most, and_plans=["wide"]
        )
        assert verdict.met is met
        assert verdict.found == (
            "worse by more than 1 points on 2 of 12 tasks: tiny books->dvd, wide books->dvd"
        )


def test_exactly_a_point_is_not_more_than_a_point():
    records = [transfer("msda-5", "a", "b", 0.26), transfer("svm", "a", "b", 0.25)]
    assert 0.26 - 0.25 > 0.01  # in floating point
    assert judged(records, worse_than="svm", by=0.01, at_most_tasks=0).met


def test_claims_are_answered_yes_or_no(records):
    assert judged(records, at_most=0.1, claim=True).word == "no"
    assert judged(records, at_most=0.3, claim=True).word == "yes"
    (verdict,) = check(
        [Bar("grows", "far", "msda-5", measure="distances_grown", at_least=1.0, claim=True)], DISTANCES
    )
    assert (verdict.word, verdict.found) == ("no", "66.67 %, at least 100.00 %")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[[bar", "not a TOML file"),
        ('[[bar]]\nsays = "x"\nplan = "p"\nmethod = "m"\n', "give one of at_most"),
        ('[[bar]]\nsays = "x"\nplan = "p"\nmethod = "m"\nat_most = 1\nvalue = 2\n', "give one of"),
        ('[[bar]]\nsays = "x"\nplan = "p"\nmethod = "m"\natmost = 1\n', "bar 1: atmost is not known"),
        ('[[bar]]\nsays = "x"\nat_most = 1\n', "bar 1: "),
        (
            '[[bar]]\nsays = "x"\nplan = "p"\nmethod = "m"\nmeasure = "luck"\nat_most = 1\n',
            "'luck' is not known",
        ),
        ('[[bar]]\nsays = "x"\nplan = "p"\nmethod = "m"\nbest_of = ["svm"]\n', "needs n_tasks"),
        ('[[bar]]\nsays = "x"\nplan = "p"\nmethod = "m"\nworse_than = "svm"\n', "need each other"),
        (
            '[[bar]]\nsays = "x"\nplan = "p"\nmethod = "m"\nat_most = 1\nat_most_tasks = 1\n',
            "need each other",
        ),
    ],
)
def test_bad_bars(tmp_path, text, complaint):
    path = tmp_path / "expected.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=complaint):
        load_bars(path)


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
