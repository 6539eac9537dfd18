"""Tables, figure and bars of results at several class shares, from records made by hand."""

import pytest

from tests.helpers.bench_corpus import transfer
from undrift.bench.results.expected import check_bars, parse_bar
from undrift.bench.results.figures import all_figures
from undrift.bench.results.measures import varies_shares
from undrift.bench.results.page import fill_page
from undrift.bench.results.tables import balance_table, results_table
from undrift.report.figures import standalone_svg

ERRORS = {"source-only": (0.2, 0.3), "undrift": (0.1, 0.15), "centred": (0.4, 0.2)}


def made():
    records = []
    for variant, share, position in (("low", 0.1, 0), ("high", 0.5, 1)):
        for method, errors in ERRORS.items():
            for source, more in (("books", 0.0), ("dvd", 0.02)):
                error, is_ours = errors[position] + more, method == "undrift"
                estimates = {
                    "target_share": share,
                    "balanced_error": error / 2,
                    "estimated_share": share + 0.04 if is_ours else None,
                    "expected_error": error - 0.01 if is_ours and source == "books" else None,
                    "calibration_error": 0.03 if is_ours else None,
                }
                records.append(
                    transfer(method, source, "toys", error, plan="p", variant=variant, **estimates)
                )
    return records


def test_the_table_has_a_row_a_method_and_a_column_a_share():
    table = balance_table(made())
    assert "| corpus | method | tasks | 10% positive | 50% positive | mean | above larger class |" in table
    assert "| amazon-bow | source-only | 4 | 21.0 (10.5) | 31.0 (15.5) | 26.00 | 2 of 4 |" in table
    assert "| amazon-bow | undrift | 4 | 11.0 (5.5) | 16.0 (8.0) | 13.50 | 1 of 4 |" in table
    assert "| amazon-bow | larger class | 4 | 10.0 (50.0) | 50.0 (50.0) | 30.00 | 0 of 4 |" in table
    assert (
        table.index("larger class")
        < table.index("source-only")
        < table.index("centred")
        < table.index("undrift")
    )
    assert "| amazon-bow | undrift | share, off by | 4 | 4.0 / 4.0 | 4.00 | 0 |" in table
    assert "| amazon-bow | undrift | expected error, off by | 4 | 1.0 / 1.0 | 1.00 | 2 |" in table
    assert "| amazon-bow | undrift | calibration error | 4 | 3.0 / 3.0 | 3.00 | 0 |" in table
    assert "a machine" in table


def test_a_share_that_a_method_lacks_leaves_no_mean():
    table = balance_table([r for r in made() if (r["method"], r["variant"]) != ("centred", "high")])
    assert "| amazon-bow | centred | 2 | 41.0 (20.5) |  |  | 2 of 2 |" in table


def test_a_plan_of_one_share_is_not_taken_for_one():
    assert varies_shares(made())
    assert not varies_shares([record for record in made() if record["variant"] == "low"])


def test_the_slot_of_a_page_and_the_printed_table_have_it():
    page = fill_page("<!-- bench table: p -->\n<!-- end -->\n", made())
    assert balance_table(made()) in page
    assert balance_table(made()).strip() in results_table(made())


def test_the_figure_has_a_line_a_method_with_its_name_at_the_end():
    (figure,) = all_figures(made())
    assert figure["name"] == "p-amazon-bow-error-by-share"
    (ours,) = [each for each in figure["series"] if each["label"] == "undrift"]
    assert ours["x"] == pytest.approx([10, 50])
    assert ours["y"] == pytest.approx([11, 16])
    drawn = standalone_svg(figure)
    assert drawn.count(">undrift</text>") == 1
    assert "polyline" in drawn


BAR = {"says": "so", "plan": "p", "method": "undrift", "n_tasks": 4, "variants": ["low", "high"]}


@pytest.mark.parametrize(
    ("keys", "met", "numbers"),
    [
        ({"at_most": 0.1351}, True, "13.50%, at most 13.51%"),
        ({"at_most": 0.134}, False, "13.50%, at most 13.40%"),
        ({"measure": "share_error", "at_most": 0.041}, True, "4.00%, at most 4.10%"),
        ({"measure": "share_error", "at_most": 0.039}, False, "4.00%, at most 3.90%"),
        ({"measure": "expected_error_gap", "at_most": 0.011}, True, "1.00%, at most 1.10%; 2 without"),
        ({"measure": "calibration_error", "at_most": 0.02}, False, "3.00%, at most 2.00%"),
        ({"never_above": ["source-only", "centred"]}, True, "at most -5.00 points, +0.00 allowed"),
        (
            {"method": "centred", "never_above": ["source-only"], "by": 0.19},
            False,
            "at most +20.00 points, +19.00 allowed: low (source-only, +20.00)",
        ),
        (
            {"method": "centred", "never_above": ["source-only"], "by": 0.2},
            True,
            "at most +20.00 points, +20.00 allowed",
        ),
    ],
)
def test_bars_are_about_all_variants_together_or_each(keys, met, numbers):
    (verdict,) = check_bars([parse_bar(BAR | keys)], made())
    assert (verdict.met, verdict.n_tasks, verdict.numbers) == (met, 4, numbers)
    assert verdict.complete
    (verdict,) = check_bars([parse_bar(BAR | keys)], [r for r in made() if r["source"] == "books"])
    assert (verdict.n_tasks, verdict.word) == (2, "incomplete")


def test_variants_of_a_bar_are_a_list_of_names():
    with pytest.raises(ValueError, match="variants='low' must be a list"):
        parse_bar(BAR | {"variants": "low", "at_most": 0.1})
