"""The report in a real browser: from a file, with the network off."""

import re

import pytest

from undrift.classifier import EXPECTED_ERROR_RECORD
from undrift.report import Report
from undrift.report.svg import NARROW, read_asset

playwright = pytest.importorskip("playwright.sync_api", reason="needs the `test` extra")

ARGUMENTS = [
    f"--{name}"
    for name in (
        "no-sandbox", "disable-gpu", "disable-quic", "no-first-run", "disable-background-networking",
        "disable-component-update", "disable-sync",
    )
]  # fmt: skip
RECORD = {
    "corpus": "amazon-bow", "plan": "small", "variant": "default", "kind": "transfer", "params": {},
    "transfer_loss": 0.1, "transfer_ratio": 1.5, "baseline_in_domain_error": 0.12, "represent_seconds": 20.0,
    "classify_seconds": 0.5, "n_train": 2000, "n_test": 100, "seed": 0, "version": "0.1.0",
    "n_features": 5000, "machine": "two cores",
}  # fmt: skip


def benchmark_records():
    errors = {"svm": 0.24, "scl": 0.22, "msda-5": 0.17}
    for method, error in errors.items():
        for i, (source, target) in enumerate((s, t) for s in "abc" for t in "abc" if s != t):
            own = {"source": source, "target": target, "method": method, "transfer_error": error + i / 100}
            nothing = {"represent_seconds": 0.0} if method == "svm" else {}
            yield RECORD | own | nothing


@pytest.fixture(scope="module")
def browser(chromium):
    with playwright.sync_playwright() as started:
        own = started.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        yield own
        own.close()


@pytest.fixture(scope="module")
def files(report, unscored, tmp_path_factory):
    """Every kind of report, saved."""
    from undrift.report import benchmark_report

    folder = tmp_path_factory.mktemp("reports")
    made = {"scored": report, "unscored": unscored, "benchmark": benchmark_report(list(benchmark_records()))}
    return {name: own.save(folder / f"{name}.html") for name, own in made.items()}


class Opened:
    """A page, with what it said and what it asked for."""

    def __init__(self, browser, path, **options):
        options.setdefault("viewport", {"width": 1100, "height": 800})
        self.context = browser.new_context(offline=True, **options)
        self.page = self.context.new_page()
        self.said, self.asked = [], []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.on("dialog", lambda dialog: (self.said.append("dialog"), dialog.dismiss()))
        self.page.goto(path.as_uri())


@pytest.fixture
def opened(browser, files):
    """Open a report of the given kind; closed afterwards."""
    contexts = []

    def open_(kind="scored", **options):
        own = Opened(browser, files[kind], **options)
        contexts.append(own.context)
        return own

    yield open_
    for context in contexts:
        context.close()


KINDS = ["scored", "unscored", "benchmark"]


@pytest.mark.parametrize("kind", KINDS)
def test_it_opens_from_a_file_with_the_network_off_and_nothing_to_say(opened, files, kind):
    own = opened(kind)
    assert own.page.evaluate("document.documentElement.classList.contains('js')"), "the script did not run"
    assert own.said == []
    assert own.asked == [files[kind].as_uri()]


@pytest.mark.parametrize(
    ("kind", "scheme"),
    [("scored", "light"), ("scored", "dark"), ("unscored", "light"), ("benchmark", "dark")],
)
def test_nothing_is_hard_to_reach(opened, kind, scheme):
    from axe_playwright_python.sync_playwright import Axe

    own = opened(kind, color_scheme=scheme)
    own.page.evaluate("for (const d of document.querySelectorAll('details')) d.open = true")
    apart_from_dots = {"exclude": [["circle.dot"]]}  # a thousand of them, and no text in any
    results = Axe().run(own.page, apart_from_dots, options={"resultTypes": ["violations", "passes"]}).response
    assert len(results["passes"]) > 10, "the check did not run"
    serious = [
        (v["id"], [n["target"] for n in v["nodes"]][:3])
        for v in results["violations"]
        if v["impact"] in ("serious", "critical")
    ]
    assert serious == []


def test_the_verdict_comes_first(opened):
    page = opened().page
    assert page.locator("h1").first.inner_text().startswith("Adaptation helped")
    assert page.locator("h1").bounding_box()["y"] < 300


def test_without_labels_the_expected_error_comes_first(opened):
    page = opened("unscored").page
    assert re.match(r"About \d[\d.]*% of these predictions are expected to be wrong", page.inner_text("h1"))
    assert EXPECTED_ERROR_RECORD in page.inner_text("#verdict .expected")


def test_no_text_of_the_chart_of_shares_is_cut_off(browser, tmp_path):
    from undrift.report.charts import share_chart

    rows = [
        {"label": "m" * 60, "predicted": 1.0, "share": 1.0, "low": 0.11, "high": 1.0},
        {"label": "b", "predicted": 0.0, "share": 0.0, "low": 0.0, "high": 0.89},
    ]
    page = tmp_path / "chart.html"
    style = read_asset("chart.css") + ":root { --ink: #000 }"
    drawn = share_chart("shares", rows, "estimated, 90% interval")
    page.write_text(f"<meta charset=utf-8><style>body {{ font-family: sans-serif }}{style}</style>{drawn}")
    own = Opened(browser, page)
    ends = own.page.evaluate(
        "[...document.querySelectorAll('text')].map(t => [t.getBBox().x, t.getBBox().x + t.getBBox().width])"
    )
    assert len(ends) > 8
    assert min(start for start, _ in ends) >= 0
    assert max(end for _, end in ends) <= NARROW, ends
    own.context.close()


def test_search_finds_a_term_on_the_map(opened, report):
    page = opened().page
    term = report.to_dict()["shift"]["points"][7]["term"]
    page.fill("#find-term", term)
    assert term in page.locator("#chart-shift .match-name").all_inner_texts() or term in page.locator(
        "#chart-shift .match-name"
    ).evaluate_all("all => all.map(one => one.textContent)")
    assert re.match(r"\d+ matches", page.inner_text("#find-status"))
    page.fill("#find-term", "no such term")
    assert page.locator("#chart-shift .match").count() == 0
    assert page.inner_text("#find-status").startswith("Not among")


def test_the_browser_of_terms_shows_what_reconstructs_a_word(opened, report):
    page, terms = opened().page, report.to_dict()["terms"]
    i = next(i for i, row in enumerate(terms["rows"]) if not row[2] and row[5])
    page.fill("#pick-term", terms["names"][i])
    assert page.inner_text("#picked") == terms["names"][i]
    shown = page.inner_text("#pick-panel")
    assert "never seen in the labelled source" in shown
    assert terms["names"][terms["rows"][i][5][0]] in shown
    page.locator("#pick-panel li button").first.click()
    assert page.inner_text("#picked") == terms["names"][terms["rows"][i][5][0]]


def test_only_new_terms_are_listed_when_asked(opened):
    page = opened().page
    page.check("#only-new")
    listed = page.locator("#pick-list button").all_inner_texts()
    assert listed
    assert all(name.startswith("★") for name in listed)


def column(page, table, i):
    return page.locator(f"#{table} tbody tr:visible td:nth-child({i})").all_inner_texts()


def test_sorting_sorts_numbers_as_numbers_and_says_so(opened):
    page = opened().page
    numbers = [int(cell.replace(",", "")) for cell in column(page, "strongest", 4)]
    assert numbers != sorted(numbers)
    head = page.locator("#strongest th").nth(3)
    head.locator("button").click()
    assert [int(cell.replace(",", "")) for cell in column(page, "strongest", 4)] == sorted(numbers)
    assert head.get_attribute("aria-sort") == "ascending"
    head.locator("button").press("Enter")
    assert [int(cell.replace(",", "")) for cell in column(page, "strongest", 4)] == sorted(numbers)[::-1]
    assert head.get_attribute("aria-sort") == "descending"


def test_a_benchmark_sorts_and_filters(opened):
    page = opened("benchmark").page
    page.fill("[data-filters=records-table]", "msda-5")
    assert set(column(page, "records-table", 3)) == {"msda-5"}
    assert page.inner_text("#records-table-status") == "6 of 18 rows"
    page.locator("#records-table th button").nth(5).click()
    errors = [float(cell.removesuffix("%")) for cell in column(page, "records-table", 6)]
    assert errors == sorted(errors)
    assert "msda-5 has the lowest mean error: 19.5%" in page.inner_text("h1")


def test_a_series_of_a_benchmark_can_be_hidden(opened):
    page = opened("benchmark").page
    figure = page.locator("figure").first
    figure.locator("details.series summary").click()
    figure.locator("details.series input").first.click()
    assert figure.locator("g[data-series]").first.get_attribute("visibility") == "hidden"
    assert not figure.locator("g[data-series] path").first.is_visible()


def test_hovering_shows_what_a_mark_is(opened):
    page = opened().page
    assert page.locator("#tip").is_hidden()
    page.locator("#chart-difference .mark").first.hover()
    term = page.locator("#table-difference tbody td").first.text_content()
    assert page.inner_text("#tip").startswith(term)
    page.mouse.move(2, 2)
    assert page.locator("#tip").is_hidden()


def test_a_point_of_the_map_shows_examples(opened, report):
    page, points = opened().page, report.to_dict()["shift"]["points"]
    point = next(p for p in points if "in target" in p and "in source" in p)
    page.locator(f'#chart-shift [data-term="{point["term"]}"]').dispatch_event(
        "pointermove", {"bubbles": True, "clientX": 100, "clientY": 100}
    )
    tip = page.locator("#tip").text_content()
    assert point["in target"] in tip
    assert point["in source"] in tip


def test_the_keyboard_reaches_marks_and_leaves_them(opened):
    page = opened().page
    page.locator("#chart-difference .chart").focus()
    page.keyboard.press("ArrowRight")
    first = page.inner_text("#tip")
    page.keyboard.press("ArrowRight")
    assert first
    assert page.inner_text("#tip") != first
    page.keyboard.press("Escape")
    assert page.locator("#tip").is_hidden()


def test_the_keyboard_reaches_everything(opened):
    page, reached = opened().page, set()
    for _ in range(40):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.id || document.activeElement.className"))
    assert {"skip", "theme", "chart", "find-term"} <= reached


def paper(page):
    return page.evaluate("getComputedStyle(document.body).backgroundColor")


def test_dark_mode_follows_the_system_and_the_button(opened):
    dark = opened(color_scheme="dark").page
    light = opened(color_scheme="light").page
    assert paper(light) == "rgb(251, 251, 249)"
    assert paper(dark) == "rgb(21, 23, 27)"
    light.click("#theme")
    assert paper(light) == paper(dark)
    light.click("#theme")
    assert paper(light) != paper(dark)


def test_print_is_white_and_without_controls(opened):
    page = opened(color_scheme="dark").page
    page.emulate_media(media="print", color_scheme="dark")
    assert paper(page) == "rgb(255, 255, 255)"
    assert page.locator("header.top").is_hidden()
    assert page.locator("#find-term").is_hidden()
    assert page.locator("#chart-shift svg").is_visible()
    assert len(page.pdf(format="A4")) > 20_000


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("width", [360, 1100])
def test_nothing_is_wider_than_the_screen(opened, kind, width):
    page = opened(kind, viewport={"width": width, "height": 740}).page
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("kind", KINDS)
def test_it_can_be_read_without_a_script(opened, kind):
    page = opened(kind, java_script_enabled=False).page
    assert page.locator("h1").is_visible()
    assert page.locator("svg.drawing").first.is_visible()
    assert page.locator("table").first.count()
    assert page.locator(".needs-js").first.is_hidden()
    page.locator("details summary").last.click()
    assert page.locator("details table").last.is_visible()


def test_a_hostile_document_does_nothing_and_is_shown_as_it_is(opened):
    own = opened()
    assert own.page.evaluate("window.hacked") is None
    assert own.page.locator("img").count() == 0
    assert "onerror=" in own.page.inner_text("#changed")
    own.page.fill("#pick-term", "<script>window.hacked=1</script>")
    own.page.fill("#find-term", "<img src=x onerror=window.hacked=1>")
    assert own.page.evaluate("window.hacked") is None
    assert own.said == []


def test_hostile_names_do_nothing(browser, tmp_path):
    """Everything that a user names, named to do harm: terms, labels, domains."""
    import numpy as np

    from undrift import MSDAClassifier
    from undrift.report import adaptation_report

    bad = '</script></title><img src=x onerror="window.hacked=1">'
    rng = np.random.default_rng(0)
    X, Z = rng.poisson(0.6, (60, 8)).astype(float), rng.poisson(0.6, (50, 8)).astype(float)
    y = [bad + "yes" if row[0] > row[1] else bad + "no" for row in X]
    model = MSDAClassifier(1, 0.5, 1.0).fit(X, y, Z)
    terms = [f"{bad}{j}" for j in range(8)]
    report = adaptation_report(model, X, y, Z, terms=terms, names=(bad + "here", bad + "there"))
    own = Opened(browser, report.save(tmp_path / "hostile.html"))
    own.page.fill("#pick-term", bad)
    own.page.locator("#chart-shift .dot[data-tip]").first.hover()
    assert own.page.evaluate("window.hacked") is None
    assert own.page.locator("img").count() == 0
    assert bad in own.page.inner_text("#picked")
    assert own.said == []
    own.context.close()


def test_injected_code_would_be_refused_by_the_policy(opened):
    """Were something ever not escaped, the policy still stands."""
    own = opened()
    own.page.evaluate(
        """() => {
            const script = document.createElement("script");
            script.textContent = "window.hacked = 1";
            document.body.append(script);
            document.body.insertAdjacentHTML("beforeend", '<img src="x:y" onerror="window.hacked = 1">');
        }"""
    )
    own.page.wait_for_timeout(100)
    assert own.page.evaluate("window.hacked") is None
    assert any("Content Security Policy" in said for said in own.said)


def test_a_notebook_shows_it_in_a_frame_of_its_own(browser, report, tmp_path):
    notebook = tmp_path / "notebook.html"
    notebook.write_text(
        f"<!doctype html><meta charset=utf-8><p>cell</p>{report._repr_html_()}", encoding="utf-8"
    )
    own = Opened(browser, notebook)
    frame = own.page.frame_locator("iframe")
    frame.locator("#pick-panel h3").wait_for()
    assert frame.locator("h1").inner_text().startswith("Adaptation helped")
    assert own.page.evaluate("window.hacked") is None
    own.context.close()


def test_open_shows_the_page_in_the_browser(report, monkeypatch):
    asked = []
    monkeypatch.setattr("webbrowser.open", asked.append)
    path = report.open()
    assert asked == [path.as_uri()]
    assert path.read_text(encoding="utf-8") == Report(report.to_dict()).to_html()
