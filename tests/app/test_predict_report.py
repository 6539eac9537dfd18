"""`undrift predict --report`: a page on every batch, which states no more than is known."""

import html
import json
import re

import pytest

from tests.app.conftest import BAD
from tests.helpers.commands import check_refused
from tests.helpers.review_files import write_csv

EVIL = "a<b onload='x'>&.csv"


@pytest.fixture
def model(batch_models):
    return batch_models / "m.st"


@pytest.fixture
def reviews(mixed_reviews):
    return mixed_reviews


@pytest.fixture
def folder(tmp_path, monkeypatch, reviews):
    """A batch like the fit, one of fewer rows than are needed, and a foreign one with a hostile name."""
    monkeypatch.chdir(tmp_path)
    write_csv("may.csv", {"review": [*reviews["kitchen"][0][300:], "", ""]})
    write_csv("june.csv", {"review": reviews["kitchen"][0][300:360]})
    write_csv(EVIL, {"review": reviews["camping"][0][:400]})
    return tmp_path


@pytest.fixture
def make_page(undrift, model):
    """Run a command with a report; return its JSON, the page, and the text of the page."""

    def make(file, *more):
        given = ["predict", model, file, "--out", "out.csv", "--report", "page.html", *more]
        status, out, err = undrift(*given, "--json")
        assert status == 0, err
        summary = json.loads(out)
        assert summary["report"] == "page.html"
        with open("page.html", encoding="utf-8") as lines:
            page = lines.read()
        body = re.sub(r"<(script|style|svg)\b.*?</\1>", " ", page, flags=re.DOTALL)
        return summary, page, " ".join(html.unescape(re.sub(r"<[^>]*>", "", body)).split())

    return make


def test_a_page_on_one_batch(folder, make_page, model, undrift):
    summary, page, text = make_page("may.csv", "--check", "--min-confidence", "0.7")
    error = summary["expected_error"]
    ends = f"(90% interval {error['low']:.0%} to {error['high']:.0%})."
    assert f"About {error['error']:.0%} of these predictions are expected to be wrong {ends}" in text
    assert "The check found no drift: the rows are like those of kitchen.csv." in text
    assert "322 rows read 2 without a known word, left empty" in text
    assert f"{summary['n_doubtful']} left empty as doubtful, by --min-confidence" in text
    for label, (low, high) in summary["target_shares_interval"].items():
        rates = summary["by_class"][label]
        predicted, recall = summary["predicted_shares"][label], rates["recall"]
        row = f"{predicted:.0%}{low:.0%} to {high:.0%}"
        assert f"{label}{row}" in text
        assert f"{recall:.0%}{rates['precision']:.0%}" in text
    told = max(summary["readings"], key=lambda reading: reading["weight"])
    said = "Which is closer to what you know of kitchen.csv? The stories are of the target of the fit, and "
    assert f"{said}the numbers of may.csv." in text
    assert told["story"] in text
    assert f"undrift predict {model} may.csv --out out.csv --report page.html --check" in text
    assert not re.search(r"(?:https?:)?//[\w.-]+\.\w", page)
    out = undrift("predict", model, "may.csv", "--out", "out.csv", "--report", "page.html")[1]
    assert re.search(r"Wrote out\.csv \(\d+ kB\), page\.html \(\d+ kB\)\.", out)


def test_no_error_is_stated_of_a_foreign_batch_or_one_as_fitted(folder, make_page):
    summary, _, text = make_page(EVIL, "--check")
    assert summary["check"]["drifted"] is True
    assert "These rows are not like those of kitchen.csv: how many are wrong is not known." in text
    assert summary["check"]["reasons"][0] in text
    assert "expected" not in text
    assert "recall" not in text.lower()
    for file, more, why in (("june.csv", [], "60 rows have a known word"), (EVIL, ["--as-fitted"], "--as-")):
        _, _, text = make_page(file, *more)
        assert "Predicted as fitted: the error is not estimated." in text
        assert f"Predicted as fitted ({why}" in text
        assert "expected" not in text


def test_a_page_on_three_files_begins_with_a_table(folder, make_page):
    summary, page, text = make_page("*.csv", "--check")
    assert text.count("Which class is more frequent?") == 3
    assert "In 1 of 3 files about " in text
    assert text.count("fit: those of kitchen.csv.") == text.count("Recall, expected: ") == 1
    assert "; 1 is not like kitchen.csv." in text
    table = html.unescape(re.search(r'<table id="batches".*?</table>', page, flags=re.DOTALL)[0])
    for name, rows, said in ((EVIL, 400, "not like the fit"), ("june.csv", 60, "as fitted")):
        assert f'<td>{name}</td><td class="number">{rows}</td><td>unknown: {said}</td>' in table
    error = summary["files"]["may.csv"]["expected_error"]
    assert f'<td>may.csv</td><td class="number">322</td><td>{error["error"]:.0%} (' in table


def test_an_empty_file_among_others_is_a_batch_without_rows(folder, make_page):
    write_csv("mars.csv", {"review": []})
    summary, _, text = make_page("ma*.csv", "--check")
    assert summary["files"]["mars.csv"]["rows"] == 0
    assert "0 rows read" in text
    assert "Predicted as fitted (there is no row)." in text
    assert text.count("The check found no drift") == 1


def test_names_are_escaped(folder, make_page):
    _, page, text = make_page("*.csv", "--check")
    assert "<img" not in page
    assert "<b onload" not in page
    assert BAD in text
    assert EVIL in text
    assert page.count("<script") == 2


def test_a_report_replaces_no_input_and_needs_a_folder(folder, undrift, model):
    for report, said in (
        ("may.csv", "would replace another file"),
        ("out.csv", "would replace another file"),
        (model, "would replace another file"),
        ("no/page.html", "there is no folder"),
        ("-", "--report -: only rows are read or written by -; give a file"),
    ):
        given = ["predict", model, "may.csv", "--out", "out.csv", "--report", report]
        assert said in check_refused(undrift, folder, given)


@pytest.mark.browser
@pytest.mark.parametrize("width", [390, 1280])
def test_it_fits_a_telephone_and_a_desk(folder, make_page, browser, width):
    make_page("*.csv", "--check")
    opened = browser.new_context(offline=True, viewport={"width": width, "height": 800}).new_page()
    said = []
    opened.on("console", lambda message: said.append(message.text))
    opened.on("pageerror", lambda error: said.append(str(error)))
    opened.goto((folder / "page.html").as_uri())
    assert said == []
    assert opened.evaluate("document.documentElement.scrollWidth") == width
    assert opened.evaluate("window.hacked") is None
    opened.click("#theme")
    assert opened.evaluate("document.documentElement.dataset.theme") in ("dark", "light")
