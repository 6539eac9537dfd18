"""The report in a real browser: from a file, with the network off."""

import base64
import csv
import json
import re

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tests.helpers.commands import run_command
from tests.report.test_evidence import weighted_interval
from undrift.report import Report
from undrift.results import gain_interval
from undrift.text import TermVectorizer

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def files(report, unscored, tmp_path_factory):
    """Every kind of report, saved."""
    folder = tmp_path_factory.mktemp("reports")
    made = {"scored": report, "unscored": unscored}
    return {name: own.save(folder / f"{name}.html") for name, own in made.items()} | write_jobs(folder)


def write_jobs(folder):
    """Report jobs with classes that are digits, with several targets, and with labels that are learnt."""
    from undrift.datasets import make_reviews

    words = make_reviews(400, domains=("books", "kitchen", "camping"), random_state=0).domains
    rows = {}
    for ending, names in {"": ["negative", "positive"], "-digits": ["0", "1"]}.items():
        for name, of in words.items():
            labels = ["" if np.isnan(y) else names[int(y)] for y in of.y]
            rows[name + ending] = list(zip(of.texts, labels, strict=True))
    for name, pairs in rows.items():
        with open(folder / f"{name}.csv", "w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([("text", "label"), *pairs])
    jobs = {
        "digits": ("books-digits", ["kitchen-digits"], []),
        "several": ("books", ["kitchen", "camping"], []),
        "learnt": ("books", ["kitchen"], ["--target-label", "label", "--use-labels", "both"]),
    }
    for name, (source, targets, more) in jobs.items():
        given = [part for target in targets for part in ("--target", folder / f"{target}.csv")]
        summary = run_command(
            "adapt", "--source", folder / f"{source}.csv", *given, "--text", "text", "--label", "label",
            "--set", "layers=1", "--max-features", 300, "--out", folder / "out.csv",
            "--report", folder / f"{name}.html", *more,
        )  # fmt: skip
        (folder / f"{name}.json").write_text(json.dumps(summary))
    return {name: folder / f"{name}.html" for name in jobs}


@pytest.fixture
def opened(open_file, files):
    """Open a report of the given kind."""
    return lambda kind="scored", **options: open_file(files[kind], **options)


KINDS = ["scored", "unscored"]


@pytest.mark.parametrize("kind", KINDS)
def test_it_opens_from_a_file_with_the_network_off_and_nothing_to_say(opened, files, kind):
    own = opened(kind)
    assert own.page.evaluate("document.documentElement.classList.contains('js')"), "the script did not run"
    assert own.said == []
    assert own.asked == [files[kind].as_uri()]


@pytest.mark.parametrize(
    ("kind", "scheme", "width"),
    [
        ("scored", "light", 1280),
        ("unscored", "dark", 390),
        ("digits", "dark", 1280),
        ("several", "light", 390),
    ],
)
def test_nothing_is_hard_to_reach(opened, kind, scheme, width):
    from axe_playwright_python.sync_playwright import Axe

    own = opened(kind, scheme=scheme, width=width)
    own.page.evaluate("for (const d of document.querySelectorAll('details')) d.open = true")
    results = Axe().run(own.page, options={"resultTypes": ["violations", "passes"]}).response
    assert len(results["passes"]) > 10, "the check did not run"
    assert [(v["id"], [n["target"] for n in v["nodes"]][:3]) for v in results["violations"]] == []


# texts of every drawing that is shown, with their boxes, the ends of the drawing, and the size of letters
TEXTS = """() => [...document.querySelectorAll("svg.drawing")].filter((s) => s.checkVisibility()).map((s) => {
    const edge = s.getBoundingClientRect();
    return [...s.querySelectorAll("text")].map((t) => {
        const box = t.getBoundingClientRect();
        const size = parseFloat(getComputedStyle(t).fontSize) * t.getScreenCTM().a;
        return [t.textContent, box.left, box.top, box.right, box.bottom, edge.left, edge.right, size];
    });
})"""
COVERED = """() => [...document.querySelectorAll("svg.drawing")].filter((s) => s.checkVisibility())
    .flatMap((svg) => [...svg.querySelectorAll("text:not(.on-box)")].flatMap((text) => {
        const t = text.getBoundingClientRect();
        return [...svg.querySelectorAll("line, rect.mark, circle")].filter((mark) => {
            const m = mark.getBoundingClientRect();
            const isBeside = m.left >= t.right - 1 || t.left >= m.right - 1;
            return !isBeside && m.top < t.bottom - 4 && t.top < m.bottom - 4;
        }).map(() => text.textContent);
    }))"""
CUT = """() => ["#verdict, #classes .scroll, .chart", "#deck-keys, .scroll:has(#domains), .suspects, pre"]
    .flatMap((selectors) => [...document.querySelectorAll(selectors)])
    .filter((c) => c.checkVisibility() && c.scrollWidth > c.clientWidth + 1)
    .map((c) => c.id || c.ariaLabel || c.className)"""
BROKEN = """() => {
    const walk = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
    const broken = [];
    while (walk.nextNode()) for (const match of walk.currentNode.data.matchAll(/[\\d.,]+%|--[a-z]+/g)) {
        const range = document.createRange();
        range.setStart(walk.currentNode, match.index);
        range.setEnd(walk.currentNode, match.index + match[0].length);
        if (new Set([...range.getClientRects()].map((r) => r.top)).size > 1) broken.push(match[0]);
    }
    return broken;
}"""


def check_layout(page, width, may_scroll=()):
    """Nothing scrolls sideways; no text of a chart covers another or a mark, is cut off or small."""
    page.evaluate("for (const d of document.querySelectorAll('details')) d.open = true")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert set(page.evaluate(CUT)) <= set(may_scroll)
    assert page.evaluate(COVERED) == []
    assert page.evaluate(BROKEN) == [], "no number and no option is on two lines"
    drawings = page.evaluate(TEXTS)
    assert sum(map(len, drawings)) > 20
    for texts in drawings:
        for i, (text, left, top, right, bottom, start, end, size) in enumerate(texts):
            assert start - 1 <= left <= right <= end + 1, text
            assert size > 9, text
            for other, a, b, c, d, *_ in texts[i + 1 :]:
                is_apart = right <= a + 1 or c <= left + 1 or bottom <= b + 4 or d <= top + 4
                assert is_apart or not text or not other, (text, other)


@pytest.mark.parametrize("kind", ["scored", "unscored", "digits", "several"])
@pytest.mark.parametrize("width", [390, 1280])
def test_it_fits_a_telephone_and_a_desk(opened, kind, width):
    check_layout(opened(kind, width=width).page, width)


@pytest.mark.parametrize("kind", ["scored", "unscored", "several", "learnt"])
def test_every_section_fits_a_screen_and_the_first_answers_all_questions(opened, kind):
    page = opened(kind).page
    sections = page.evaluate(
        "[...document.querySelectorAll('main section')].map((s) => [s.id, s.getBoundingClientRect().height])"
    )
    if kind in KINDS:
        names = [
            "verdict",
            "stories1",
            "label",
            "classes",
            "words",
            "idea",
            "try",
            "documents",
            "confidence",
            "suspects",
            "reproduce",
        ]
        assert [name for name, _ in sections] == names
    assert {name: height for name, height in sections if height > 800 and name != "verdict"} == {}
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280
    assert page.evaluate("document.documentElement.scrollHeight") < 6_000
    first = page.locator(".used").bounding_box()
    assert first["y"] + first["height"] <= 800, "the first screen answers all questions"


def test_labels_that_were_learnt_are_measured_by_cross_fitting(opened, files):
    page, summary = opened("learnt").page, json.loads(files["learnt"].with_suffix(".json").read_text())
    (target,) = summary["targets"]
    shown = page.inner_text("#verdict")
    assert page.locator("#verdict").get_attribute("data-basis") == "measured"
    assert f"Measured on {target['scored']} labelled target rows, each predicted" in shown
    low, high = target["adapted_error_interval"]
    assert f"adapted: {target['adapted_error']:.1%} ({low:.1%} to {high:.1%})" in page.text_content(
        "#verdict svg"
    )
    assert f"{target['scored']} labels, learnt and measured" in shown
    gain = [f"{100 * end:.1f}".replace("-", "\N{MINUS SIGN}") for end in target["gain_interval"]]
    assert f"95% interval {gain[0]} to {gain[1]}" in page.inner_text("#verdict .sure")


def column(page, table, i):
    return page.locator(f"#{table} tbody tr:visible td:nth-child({i})").all_inner_texts()


def test_sorting_sorts_numbers_as_numbers_and_says_so(opened):
    page = opened().page
    page.locator("#chart-words details summary").click()
    numbers = [float(cell[:-1]) for cell in column(page, "table-words", 3)]
    assert numbers != sorted(numbers)
    head = page.locator("#table-words th").nth(2)
    head.locator("button").click()
    assert [float(cell[:-1]) for cell in column(page, "table-words", 3)] == sorted(numbers)
    assert head.get_attribute("aria-sort") == "ascending"
    head.locator("button").press("Enter")
    assert [float(cell[:-1]) for cell in column(page, "table-words", 3)] == sorted(numbers)[::-1]
    assert head.get_attribute("aria-sort") == "descending"


def test_the_keyboard_reaches_marks_and_everything_else(opened):
    page = opened().page
    page.locator("#chart-words .chart").focus()
    page.keyboard.press("ArrowRight")
    first = page.inner_text("#tip")
    page.keyboard.press("ArrowRight")
    assert first
    assert page.inner_text("#tip") != first
    page.keyboard.press("Escape")
    assert page.locator("#tip").is_hidden()
    reached = set()
    for _ in range(90):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.id || document.activeElement.className"))
    assert {"skip", "theme", "chart", "deck-text", "save"} <= reached


@pytest.mark.parametrize("way", ["link", "address"])
def test_keys_count_at_once_when_one_goes_to_the_rows(opened, files, way):
    page = opened("unscored").page
    if way == "link":
        page.click("#verdict a.button[href='#label']")
    else:
        page.goto("about:blank")
        page.goto(f"{files['unscored'].as_uri()}#label")
    page.wait_for_function("() => document.activeElement.id === 'deck-text'")
    page.keyboard.press("1")
    assert page.inner_text("#deck-place").startswith("Row 2 of")


def paper(page):
    return page.evaluate("getComputedStyle(document.body).backgroundColor")


def test_dark_mode_follows_the_system_and_the_button_and_print_is_white(opened):
    dark = opened(scheme="dark").page
    light = opened(scheme="light").page
    assert paper(light) == "rgb(251, 251, 249)"
    assert paper(dark) == "rgb(21, 23, 27)"
    light.click("#theme")
    assert paper(light) == paper(dark)
    light.click("#theme")
    assert paper(light) != paper(dark)
    dark.emulate_media(media="print", color_scheme="dark")
    assert paper(dark) == "rgb(255, 255, 255)"
    assert [dark.locator(place).is_hidden() for place in ("header.top", "#label")] == [True, True]
    assert dark.locator("#chart-words svg").is_visible()
    assert 3 <= len(re.findall(rb"/Type\s*/Page\b", dark.pdf(format="A4"))) <= 6


@pytest.fixture
def decks(unscored):
    return unscored.to_dict()["decks"]


def label_rows(page, decks, name, n):
    """Label rows of the deck that is open, with the keyboard alone; says what was chosen."""
    page.locator("#deck-text").focus()
    codes = [int("not" in row[0] or i % 3 == 0) for i, row in enumerate(decks[name][:n])]
    for code in codes:
        page.keyboard.press(str(code + 1))
    return codes


def test_the_verdict_follows_every_key_with_the_right_weights(opened, decks):
    page = opened("unscored").page
    before = page.inner_text("h1")
    page.locator("#deck-text").focus()
    codes, seen = [], set()
    for i, row in enumerate(decks["estimate"][:24]):
        code = (row[1] + (i % 5 == 0)) % 2  # wrong on every fifth row
        page.keyboard.press(str(code + 1))
        codes.append(code)
        rows = decks["estimate"][: len(codes)]
        weight, wrong = np.array([r[3] for r in rows]), np.array([r[1] for r in rows]) != codes
        shown = [float(x) / 100 for x in re.findall(r"([\d.]+)%", page.inner_text("h1").replace("95% ", ""))]
        assert_allclose(shown, weighted_interval(weight, wrong.astype(float)), atol=6e-4)
        seen.add(page.inner_text("h1"))
    assert len(seen) == 24
    assert page.inner_text("h1").startswith("By your 24 labels, ")
    assert page.inner_text("#was") == f"Before: {before}"
    assert page.inner_text("#live-shares").startswith("By your 24 labels, ")
    assert page.locator("#estimated-shares").is_hidden()
    assert page.inner_text("#next-label").startswith(f"Label {len(decks['estimate']) - 24} more of the ")
    changed = [(r, c) for r, c in zip(decks["estimate"], codes, strict=False) if r[1] != r[2]]
    n, outcomes = len(changed), [(r[1] == c, r[2] == c) for r, c in changed]
    corrected, spoilt = (outcomes.count(pair) / n for pair in ((True, False), (False, True)))
    gain = [corrected - spoilt, *gain_interval(corrected, spoilt, n)]
    says = re.search(r"gain (\S+) points \((\S+) to (\S+)\)", page.inner_text("#sure").replace("−", "-"))
    share = decks["changed_share"]
    assert_allclose([float(x) for x in says.groups()], 100 * share * np.array(gain), atol=0.06)
    for _ in range(24):
        page.keyboard.press("u")
    assert page.inner_text("h1") == before
    assert page.locator("#live-shares").is_hidden()
    assert page.locator("#estimated-shares").is_visible()
    assert page.inner_text("#next-label").startswith(f"Label {len(decks['estimate'])} rows on this page")


def test_twenty_labels_given_by_keyboard_are_saved_as_the_commands_take_them(opened, decks, tmp_path):
    from undrift.app.tables import open_table

    page = opened("unscored").page
    codes = label_rows(page, decks, "estimate", 20)
    assert page.inner_text("#deck-place") == f"Row 21 of {len(decks['estimate'])}"
    page.keyboard.press(" ")  # skipped
    headline = page.inner_text("h1")
    page.locator("[data-mode=predictions]").focus()
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "deck-text"
    more = label_rows(page, decks, "predictions", 3)
    assert page.inner_text("h1") == headline, "this deck does not move the verdict"
    assert "the verdict does not move" in page.inner_text("#deck-result")
    page.locator("#save").focus()
    with page.expect_download() as download:
        page.keyboard.press("Enter")
    path = tmp_path / "labels.csv"
    download.value.save_as(path)
    with open(path, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    drawn = [*decks["estimate"][:20], *decks["predictions"][:3]]
    assert [row["text"] for row in rows] == [row[0] for row in drawn]
    assert [row["label"] for row in rows] == [decks["classes"][code] for code in [*codes, *more]]
    assert [row["sampled"] for row in rows] == ["estimate"] * 20 + ["predictions"] * 3
    assert_allclose([float(row["weight"]) for row in rows], [row[3] for row in drawn])
    (block,) = open_table(path, text="text")
    assert block["text"].tolist() == [row[0] for row in drawn]


def test_a_screen_reader_is_told_of_every_row_and_result(opened, decks):
    page = opened("unscored").page
    assert page.locator("#deck-result").get_attribute("role") == "status"
    assert page.locator("#deck").get_attribute("aria-labelledby") == "deck-place"
    page.locator("#deck-keys button").nth(1).focus()
    page.keyboard.press("Space")  # on a button this is a click, as everywhere
    assert page.inner_text("#deck-place").startswith("Row 2 of")
    assert page.evaluate("document.activeElement.id") == "deck-text"
    assert page.inner_text("#deck-result").startswith("Row 1: positive. By your 1 label: ")
    assert page.text_content("#deck-text") == decks["estimate"][1][0]
    assert page.get_by_role("button", name=decks["classes"][0], exact=True).count() == 1


def test_with_measured_errors_labels_are_told_beside_them(opened):
    page = opened().page
    headline = page.inner_text("h1")
    page.locator("#deck-text").focus()
    page.keyboard.press("1")
    assert page.inner_text("h1") == headline
    assert page.inner_text("#live").startswith("By your 1 label: ")


def test_labels_survive_a_closed_tab_until_they_are_saved(opened, decks, files, tmp_path):
    own = opened("unscored")
    codes = label_rows(own.page, decks, "estimate", 7)
    headline = own.page.inner_text("h1")
    own.page.close()
    page = own.context.new_page()
    page.goto(files["unscored"].as_uri())
    assert page.inner_text("#deck-place").startswith("Row 8 of")
    assert page.inner_text("h1") == headline
    assert page.inner_text("#deck-result").startswith("7 answers of an earlier visit restored.")
    page.locator("#deck-text").focus()
    page.keyboard.press("u")
    assert page.inner_text("#deck-place").startswith("Row 7 of")
    page.keyboard.press(str(codes[6] + 1))
    with page.expect_download():
        page.click("#save")
    page.reload()
    assert page.inner_text("#deck-place").startswith("Row 1 of"), "saved labels are not restored"


def test_where_the_browser_keeps_nothing_unsaved_labels_are_guarded(opened):
    page = opened("unscored").page
    page.evaluate("() => { Storage.prototype.setItem = () => { throw new Error('no storage'); }; }")
    page.locator("#deck-text").focus()
    page.keyboard.press("1")
    guarded = "!window.dispatchEvent(new Event('beforeunload', { cancelable: true }))"
    assert page.evaluate(guarded)
    with page.expect_download():
        page.click("#save")
    assert not page.evaluate(guarded)


@pytest.mark.parametrize(
    ("classes", "keys"),
    [
        (["negative", "positive"], "1 2"),
        (["-1", "1"], "a 1"),
        (["0", "1"], "0 1"),
        (["1", "2", "3", "4", "5"], "1 2 3 4 5"),
        (["0", "10", "20"], "0 a s"),
        ([f"c{i}" for i in range(9)], "1 2 3 4 5 6 7 8 9"),
    ],
)
def test_every_class_has_a_key_of_its_own(open_file, unscored, classes, keys, tmp_path):
    data = unscored.to_dict()
    page = Report(data | {"decks": data["decks"] | {"classes": classes}}, unscored._charts)
    own = open_file(page.save(tmp_path / "keys.html"))
    shown = own.page.locator("#deck-keys [data-code]:not([data-code='-1']) kbd").all_inner_texts()
    assert " ".join(shown) == keys
    assert own.page.locator("#deck-find").is_hidden(), "only many classes are found by typing"
    own.page.locator("#deck-text").focus()
    own.page.keyboard.press(keys.split()[-1])
    assert own.page.inner_text("#deck-result").startswith(f"Row 1: {classes[-1]}.")
    assert own.page.locator("#deck-result code").count() == classes[-1].isdigit()


REVIEWS = [
    "The lid is flimsy and it does n't close. I hate it!",
    "It’s sturdy, a joy; I can not fault it. Sturdy sturdy.",
    "Costs 12.50, browns bread to a golden crisp",
]
TOPICS = ["topic1a topic1b shopword1a noise3", "phoneword2a phoneword2b topic2c"]


@pytest.mark.parametrize(("n_classes", "texts"), [(2, REVIEWS), (3, TOPICS), (10, TOPICS), (30, TOPICS)])
def test_a_sentence_is_scored_as_the_distilled_weights_score_it(
    open_file, unscored, topic_reports, n_classes, texts, tmp_path
):
    """Independently: scikit-learn weighs the terms, and the packed weights are multiplied in Python."""
    own = unscored if n_classes == 2 else topic_reports(n_classes, False)
    page, packed = open_file(own.save(tmp_path / "page.html")).page, own.to_dict()["sentence"]
    assert len(json.dumps(packed)) < 400_000
    assert packed["agreement"] > 0.6
    for text in texts:
        scores = score_sentence(packed, text)
        P = np.exp((scores - scores.max()) / packed["temperature"])
        page.fill("#try-text", text)
        said = page.inner_text("#try-result")
        label, chance = re.match(r"(.+?), probability ([\d.]+)%", said).groups()
        assert label == packed["classes"][scores.argmax()]
        assert float(chance) / 100 == pytest.approx(P.max() / P.sum(), abs=1e-3)
        assert (f"Then {packed['classes'][np.argsort(-scores)[1]]} " in said) == (n_classes > 2)
        assert page.locator("#try-words .chip").count() > 2


def score_sentence(packed, text):
    """Scores of the classes; that of the first of two is 0."""
    terms = packed["terms"].split("\n")
    vectorizer = TermVectorizer(length=1.0, tokens="words", dtype="float64")
    frequencies = [n for n, size in packed["runs"] for _ in range(size)]
    vectorizer.fit(["a"])
    vectorizer.terms_, vectorizer.n_documents_ = terms, packed["n_documents"]
    vectorizer.idf_ = 1 + np.log((1 + packed["n_documents"]) / (1 + np.array(frequencies)))
    X = vectorizer.transform([text])
    weights = np.frombuffer(base64.b64decode(packed["weights"]), "<i2").reshape(packed["n_outputs"], -1)
    scores = (X @ (packed["step"] * weights.astype(float).T))[0] + packed["intercept"]
    return np.array([0.0, *scores]) if len(scores) == 1 else scores


def test_a_sentence_without_a_known_word_gets_no_answer(opened):
    page = opened("unscored").page
    page.fill("#try-text", "xyzzy <b>qwfp</b>")
    assert page.inner_text("#try-result").startswith("No word of it is known")
    page.fill("#try-text", "")
    assert page.inner_text("#try-result") == ""


@pytest.mark.parametrize("kind", KINDS)
def test_it_can_be_read_without_a_script(opened, kind):
    page = opened(kind, java_script_enabled=False).page
    assert page.locator("h1").is_visible()
    assert page.locator("svg.drawing").first.is_visible()
    assert page.locator("table").first.count()
    assert page.locator(".needs-js").first.is_hidden()
    page.locator("details summary").last.click()
    assert page.locator("details > :not(summary)").last.is_visible()


def test_a_hostile_document_does_nothing_and_is_shown_as_it_is(opened):
    own = opened()
    assert own.page.evaluate("window.hacked") is None
    assert own.page.locator("img").count() == 0
    assert "onerror=" in own.page.inner_text("#documents")
    own.page.locator("#deck-text").focus()
    for _ in range(30):
        own.page.keyboard.press("1")
    assert own.page.evaluate("window.hacked") is None
    assert own.said == []


def test_hostile_files_and_columns_do_nothing(open_file, tmp_path):
    """What a command is given: names of files and columns, labels, texts and JSON among them."""
    bad = "<img src=x onerror=window.hacked=1><script>window.hacked=1<\u2215script>&lt;'\"`"
    rows = {"books": ("page plot", "good", "bad"), "pans": ("lid handle", "fine good", "dull bad")}
    for name, (nouns, good, poor) in rows.items():
        with open(tmp_path / f"{name}{bad}.jsonl", "w", encoding="utf-8") as file:
            for i in range(60):
                text = f"{nouns} {poor if i % 2 else good} {bad}"
                json.dump({f"text{bad}": text, f"label{bad}": f"{'no' if i % 2 else 'yes'}{bad}"}, file)
                file.write("\n")
    run_command(
        "adapt", "--source", tmp_path / f"books{bad}.jsonl", "--target", tmp_path / f"pans{bad}.jsonl",
        "--text", f"text{bad}", "--label", f"label{bad}", "--target-label", f"label{bad}",
        "--set", "layers=1",
        "--out", tmp_path / f"out{bad}.csv", "--report", tmp_path / f"page{bad}.html",
    )  # fmt: skip
    path = tmp_path / f"page{bad}.html"
    own = open_file(path)
    assert own.page.evaluate("window.hacked") is None
    assert own.page.locator("img").count() == 0
    assert bad in own.page.evaluate("document.body.textContent")
    assert own.asked == [path.as_uri()]
    assert own.said == []


@pytest.mark.parametrize("kind", KINDS)
def test_the_policy_lets_nothing_out(opened, kind):
    """A page that was taken over could not send anything, nor load, nor lead elsewhere."""
    own = opened(kind)
    own.page.evaluate(
        """async () => {
            window.refused = new Set();
            addEventListener("securitypolicyviolation", (event) => refused.add(event.effectiveDirective));
            const add = (name, values) =>
                document.body.append(Object.assign(document.createElement(name), values));
            await fetch("http://127.0.0.1:9/fetch").catch(() => null);
            try { new WebSocket("ws://127.0.0.1:9/socket"); } catch { /* refused at once */ }
            navigator.sendBeacon("http://127.0.0.1:9/beacon", "text");
            add("img", { src: "http://127.0.0.1:9/image" });
            add("iframe", { src: "http://127.0.0.1:9/frame" });
            add("object", { data: "http://127.0.0.1:9/object" });
            add("base", { href: "http://127.0.0.1:9/" });
            add("link", { rel: "stylesheet", href: "http://127.0.0.1:9/style" });
            add("script", { src: "http://127.0.0.1:9/script" });
            add("form", { id: "sent", action: "http://127.0.0.1:9/form", method: "post" });
            document.getElementById("sent").submit();
            setTimeout("window.hacked = 1", 0);
        }"""
    )
    wanted = ["connect-src", "img-src", "frame-src", "object-src", "base-uri", "style-src-elem"]
    wanted += ["script-src-elem", "form-action", "script-src"]
    own.page.wait_for_function("(wanted) => wanted.every((each) => refused.has(each))", arg=wanted)
    assert own.page.evaluate("window.hacked") is None


def test_a_notebook_shows_it_in_a_frame_of_its_own(open_file, report, tmp_path):
    notebook = tmp_path / "notebook.html"
    notebook.write_text(
        f"<!doctype html><meta charset=utf-8><p>cell</p>{report._repr_html_()}", encoding="utf-8"
    )
    own = open_file(notebook)
    frame = own.page.frame_locator("iframe")
    frame.locator("#deck-keys button").first.wait_for()
    assert frame.locator("h1").inner_text().startswith("Adaptation helped")
    assert own.page.evaluate("window.hacked") is None


def test_labels_given_in_a_report_are_learnt_by_update_and_scored_by_adapt(open_file, reviews, tmp_path):
    """The whole way: adapt, label 20 rows with the keyboard, save, update, adapt with the labels."""
    books, y, kitchen, truth = reviews
    for name, texts, labels in (("books", books, y), ("kitchen", kitchen, [None] * len(kitchen))):
        rows = [{"text": t, "label": label} for t, label in zip(texts, labels, strict=True)][:400]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    known = dict(zip(kitchen, truth, strict=True))
    columns = ("--text", "text", "--label", "label")
    adapt = (
        "adapt", "--source", tmp_path / "books.jsonl", "--target", tmp_path / "kitchen.jsonl", *columns,
        "--set", "layers=1", "--max-features", 200, "--out", tmp_path / "out.csv",
    )  # fmt: skip
    run_command(
        *adapt, "--model", tmp_path / "m.safetensors", "--updatable", "--report", tmp_path / "report.html"
    )
    opened = open_file(tmp_path / "report.html")
    opened.page.locator("#deck-text").focus()
    for _ in range(20):
        label = known[opened.page.text_content("#deck-text")] or "positive"
        opened.page.keyboard.press({"negative": "1", "positive": "2"}[label])
    shown = opened.page.inner_text("#headline")
    opened.page.locator("#save").focus()
    with opened.page.expect_download() as download:
        opened.page.keyboard.press("Enter")
    download.value.save_as(tmp_path / "labels.csv")
    updated = run_command(
        "update", "--model", tmp_path / "m.safetensors", "--labels", tmp_path / "labels.csv", *columns,
        "--out", tmp_path / "new.safetensors",
    )  # fmt: skip
    assert (tmp_path / "new.safetensors").exists()
    assert "20" in str(updated)
    scored = run_command(*adapt, "--labels", tmp_path / "labels.csv", "--report", tmp_path / "again.html")
    error = scored["targets"][0]["adapted_error"]
    assert shown.startswith(f"By your 20 labels, {error:.1%} of the predictions are wrong")
    assert f"adapted: {error:.1%}" in (tmp_path / "again.html").read_text(encoding="utf-8")
