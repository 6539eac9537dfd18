"""The page of `undrift label` in a real browser, against the real server."""

import errno
import os
import re
import threading

import pytest

from tests.app.conftest import QUESTIONS
from tests.helpers.review_files import read_csv
from tests.helpers.topics import NAMES
from undrift.app.label_server import LabelServer
from undrift.app.labelling import LabelSession

HOSTILE = '<img src=x onerror="window.hacked=1"></script><script>window.hacked=1</script>'

pytestmark = pytest.mark.browser


@pytest.fixture
def serve(adapted, tmp_path):
    """Start a server on the file of labels, as often as asked; all end with the test.

    A finished one writes its files when `may_write` is set.
    """
    running = []

    def start(texts=adapted[1], adapter=adapted[0], **options):
        own = LabelServer(LabelSession(adapter, texts, tmp_path / "labels.csv", **options), "kitchen")
        own.may_write = threading.Event()

        def work():
            with own.serve(opens_browser=False):
                if own.may_write.wait(30):
                    own.written = ["Wrote kitchen.predictions.csv."]

        thread = threading.Thread(target=work)
        thread.start()
        running.append((own, thread))
        return own

    yield start
    for own, thread in running:
        own.is_finished.set()
        own.is_told.set()
        own.may_write.set()
        thread.join()


@pytest.fixture
def opened(browser):
    """Open the page of a server; says what it said and asked for."""
    contexts = []

    def open_(server, **options):
        options.setdefault("viewport", {"width": 1280, "height": 800})
        context = browser.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.said, page.asked = [], []
        page.on("console", lambda message: page.said.append(message.text))
        page.on("pageerror", lambda error: page.said.append(str(error)))
        page.on("request", lambda request: page.asked.append(request.url))
        page.goto(server.address)
        wait_for_row(page)
        return page

    yield open_
    for context in contexts:
        context.close()


def wait_for_row(page, before=None):
    """Wait until a row is shown, another than before."""
    page.wait_for_function(
        "(before) => { const t = document.getElementById('deck-place').textContent;"
        " return t && t !== before; }",
        arg=before,
    )


def wait_for_word(page, place, word):
    page.wait_for_function(
        "([place, word]) => document.querySelector(place).textContent.includes(word)", arg=[place, word]
    )


def press(page, key):
    before = page.inner_text("#deck-place")
    page.locator("#deck-text").focus()
    page.keyboard.press(key)
    wait_for_row(page, before)


def label_rows(page, truth, n):
    for _ in range(n):
        press(page, {"negative": "1", "positive": "2"}[truth[page.text_content("#deck-text")]])


def test_keys_label_and_everything_follows(opened, serve, adapted):
    server, truth = serve(), adapted[2]
    server.session.least_measured = 6
    page = opened(server)
    assert page.inner_text("#basis") == "expected"
    assert page.inner_text("#deck-place").endswith(", 5 questions left")
    assert page.inner_text("#deck-help").startswith("The stories disagree on this row")
    label_rows(page, truth, QUESTIONS)
    assert page.inner_text("#basis") == "expected", "questions measure nothing"
    assert page.inner_text("#deck-help").startswith("Rows are drawn at random, doubtful ones more often.")
    label_rows(page, truth, 6)
    lines = read_csv(server.session.file.path)
    assert [line["label"] for line in lines] == [truth[line["text"]] for line in lines]
    state = server.session.state()
    error = state["error"]
    assert page.inner_text("#basis") == "measured on 6 labels"
    wrong = f"So far about {100 * error['error']:.1f}% of the predictions are wrong (95% interval "
    assert page.inner_text("h1").startswith(wrong)
    shown = [f"now, measured: {100 * error['error']:.1f}% (", "before your labels: "]
    shown += ["expected before: "]
    texts = page.locator("#errors-chart text:not(.tick)").all_text_contents()
    assert [text.startswith(begin) for text, begin in zip(texts, shown, strict=True)] == [True] * 3
    assert page.inner_text("#advice") == state["advice"]
    assert page.inner_text("#learnt").startswith("11 labels saved, 10 labels learnt.")
    row = page.locator("#shares tbody tr").all()[1]
    assert row.locator("th").inner_text() == "positive"
    cells = row.locator("td").all_inner_texts()
    assert cells[0].startswith(f"{100 * state['shares']['positive']:.1f}%")
    rates = state["by_class"]["measured"]["positive"]
    said = ["–" if rates[of] is None else f"{100 * rates[of]:.0f}%" for of in ("recall", "precision")]
    assert cells[1:] == said
    assert page.inner_text("#changed-count").startswith(f"{state['changed']['n']} of")
    assert page.locator("#changed li").count() == len(state["changed"]["rows"])
    assert page.said == []
    assert {url.split("/api")[0].split("?")[0].rstrip("/") for url in page.asked} <= {
        f"http://127.0.0.1:{server.server_port}", "data:,",
    }  # fmt: skip


def test_few_labels_say_nothing_of_the_error(opened, serve, adapted):
    server, truth = serve(), adapted[2]
    page = opened(server)
    headline = page.inner_text("h1")
    label_rows(page, truth, QUESTIONS + 2)
    assert server.session.state()["error"]["measured"]
    assert (page.inner_text("h1"), page.inner_text("#basis")) == (headline, "expected")
    assert page.locator("#errors-chart text:not(.tick)").count() == 1
    assert page.inner_text("#shares-basis") == "Recall and precision expected"
    assert page.locator("#mistakes li").count() == 0
    assert page.inner_text("#difference").startswith("2 labels of rows drawn at random: ")
    assert page.inner_text("#difference").endswith("the error is told from 20 labels on.")
    assert page.locator("#goal").evaluate("(goal) => goal.value") == 2


def test_keys_do_not_wait_until_labels_are_learnt(opened, serve, adapted, monkeypatch):
    server, truth, may_learn = serve(learns_at_once=False), adapted[2], threading.Event()
    study = server.session.study
    monkeypatch.setattr(server.session, "study", lambda: may_learn.wait(30) and study())
    page = opened(server)
    label_rows(page, truth, QUESTIONS + 1)
    assert page.inner_text("#learnt").startswith("6 labels saved, 0 labels learnt; learning")
    assert len(read_csv(server.session.file.path)) == 6
    may_learn.set()
    wait_for_word(page, "#learnt", "6 labels saved, 6 labels learnt. ")
    assert re.match(r"\d+ of \d+ predictions changed", page.inner_text("#changed-count"))
    assert page.said == []


def test_keys_work_wherever_the_focus_is(opened, serve):
    server = serve()
    page = opened(server)
    before = page.inner_text("#deck-place")
    page.keyboard.press("1")  # nothing was clicked yet
    wait_for_row(page, before)
    page.click("#shares-title")
    before = page.inner_text("#deck-place")
    page.keyboard.press("2")
    wait_for_row(page, before)
    assert [line["label"] for line in read_csv(server.session.file.path)] == ["negative", "positive"]
    assert opened(server).inner_text("#deck-result") == "2 labels saved before."


def test_undo_and_skip(opened, serve):
    server = serve()
    page = opened(server)
    first = page.text_content("#deck-text")
    press(page, "1")
    press(page, "u")
    assert page.text_content("#deck-text") == first
    assert page.inner_text("#deck-result").endswith("answer withdrawn.")
    press(page, " ")
    assert page.text_content("#deck-text") != first
    assert page.inner_text("#deck-result").endswith(": skipped.")
    assert server.session.answers == {}
    assert page.locator("[data-mode]").count() == 0, "there is one kind of labelling"


def test_two_tabs_share_the_session_and_not_the_row(opened, serve):
    server = serve()
    one, two = opened(server), opened(server)
    assert one.text_content("#deck-text") != two.text_content("#deck-text")
    press(one, "1")
    press(two, "2")
    assert [line["label"] for line in read_csv(server.session.file.path)] == ["negative", "positive"]
    press(one, "u")
    assert [line["label"] for line in read_csv(server.session.file.path)] == ["positive"]


def test_a_server_that_is_gone_is_said_and_another_goes_on(opened, serve, adapted):
    server, truth = serve(), adapted[2]
    page = opened(server)
    label_rows(page, truth, QUESTIONS + 3)
    shown = page.text_content("#deck-text")
    server.shutdown()
    server.server_close()
    page.keyboard.press("1")
    page.wait_for_function(
        "() => document.getElementById('deck-result').textContent.includes('does not answer')"
    )
    assert "Your labels are saved" in page.inner_text("#deck-result")
    assert page.text_content("#deck-text") == shown, "the row stays"
    other = serve()
    other.session.least_measured = 3
    again = opened(other)
    assert again.inner_text("#basis") == "measured on 3 labels"
    assert again.inner_text("#deck-result") == "8 labels saved before."


def test_a_full_disk_is_said_and_the_key_can_be_pressed_again(opened, serve, fail, monkeypatch):
    server = serve()
    page = opened(server)
    shown = page.text_content("#deck-text")
    fail("os.replace", OSError(errno.ENOSPC, "No space left on device"))
    page.keyboard.press("1")
    wait_for_word(page, "#deck-result", "Not saved: No space left on device. Free some space")
    assert page.text_content("#deck-text") == shown, "the row stays"
    assert not server.session.file.path.exists()
    monkeypatch.undo()
    press(page, "1")
    assert [line["label"] for line in read_csv(server.session.file.path)] == ["negative"]


def test_a_screen_reader_has_a_name_for_everything_and_hears_every_result(opened, serve):
    page = opened(serve())
    place = page.inner_text("#deck-place")
    for role, names in {
        "button": ["negative", "positive", "skip", "undo", "Finish"],
        "group": [place],
        "heading": ["How frequent is each class, and how often right?", "Which predictions changed?"],
        "article": ["How many predictions are wrong?", "Which story is winning?"],
    }.items():
        for name in names:
            assert page.get_by_role(role, name=name, exact=True).count() == 1, name
    assert page.get_by_label("Text to label").text_content() == page.text_content("#deck-text")
    press(page, "1")
    assert page.get_by_role("status").first.inner_text() == f"{place.split(',')[0]}: negative, saved."


def test_a_key_that_comes_too_early_labels_no_unseen_row(opened, serve):
    server = serve()
    page = opened(server)
    place = page.inner_text("#deck-place")
    page.locator("#deck-text").focus()
    page.evaluate(
        """() => { for (const key of "1111") document.getElementById("deck-text").dispatchEvent(
            new KeyboardEvent("keydown", { key, bubbles: true })); }"""
    )
    wait_for_row(page, place)
    assert len(server.session.answers) == 1


def test_the_end_of_rows_and_of_the_session_is_said(opened, serve, adapted):
    page = opened(serve(adapted[1][:2]))
    press(page, "1")
    press(page, "2")
    assert page.inner_text("#deck-place") == "All rows are done"
    assert page.locator("[data-code='0']").is_disabled()
    server = serve()
    page = opened(server)
    press(page, "1")
    page.click("#finish")
    wait_for_word(page, "#finished", "Saving")
    assert page.locator("[data-code='0']").is_disabled()
    server.may_write.set()
    wait_for_word(page, "#finished", "Saved. Wrote kitchen.predictions.csv. You can close this page.")
    assert page.said == []


def test_files_that_cannot_be_written_are_said(opened, serve):
    server = serve()
    page = opened(server)
    press(page, "1")
    server.may_write.wait = lambda seconds: False
    page.click("#finish")
    wait_for_word(page, "#finished", "Not written: the terminal says why. Your labels are in ")


def test_an_answer_is_called_saved_when_it_is(opened, serve, monkeypatch):
    server, may_save = serve(), threading.Event()
    replace = os.replace

    def replace_slowly(*given):
        assert may_save.wait(30)
        replace(*given)

    monkeypatch.setattr(os, "replace", replace_slowly)
    page = opened(server)
    assert page.evaluate("document.activeElement.id") == "deck-text", "keys count at once"
    page.keyboard.press("1")
    wait_for_word(page, "#deck-result", "Saving")
    assert not server.session.file.path.exists()
    may_save.set()
    wait_for_word(page, "#deck-result", "negative, saved.")


def test_the_goal_stays_and_no_number_says_worse_by_chance(opened, serve, adapted):
    server, truth = serve(), adapted[2]
    server.session.least_measured = 4
    page = opened(server)
    goal = server.session.goal
    said = []
    label_rows(page, truth, QUESTIONS)
    for _ in range(6):
        label_rows(page, truth, 1)
        said.append(page.inner_text("h1"))
        assert page.locator("#goal").get_attribute("max") == str(goal)
        assert f"of {goal} rows are labelled" in page.inner_text("#advice")
    assert [line.split()[0] for line in said] == ["About"] * 3 + ["So"] * 3
    assert page.inner_text("#difference") == ""
    server.session.goal = 8
    server.session.next_row()
    page = opened(server)
    label_rows(page, truth, 2)
    low, high = (server.session.state()["difference"][end] for end in ("low", "high"))
    assert low <= 0 <= high, "eight labels are not enough to tell"
    assert page.inner_text("#difference").startswith("Whether your labels lowered the error is not certain")
    assert page.inner_text("#advice").startswith("The goal of 8 rows is reached: you can stop.")


def test_texts_and_labels_are_never_markup(opened, serve, adapted):
    page = opened(serve([HOSTILE + text for text in adapted[1][:40]]))
    assert HOSTILE in page.text_content("#deck-text")
    for _ in range(10):
        press(page, "1")
    assert page.evaluate("window.hacked") is None
    assert page.locator("img").count() == 0
    assert page.said == []


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_nothing_is_hard_to_reach_on_any_screen(opened, serve, adapted, width, scheme):
    from axe_playwright_python.sync_playwright import Axe

    truth = {f"{text} " * 40: label for text, label in adapted[2].items()}  # long ones scroll
    page = opened(serve(list(truth)), viewport={"width": width, "height": 844}, color_scheme=scheme)
    label_rows(page, truth, 6)
    results = Axe().run(page, options={"resultTypes": ["violations", "passes"]}).response
    assert len(results["passes"]) > 10
    assert [(v["id"], [n["target"] for n in v["nodes"]][:3]) for v in results["violations"]] == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    acts = page.locator("#deck-acts").bounding_box()
    assert acts["y"] + acts["height"] < 844, "keys are on the first screen"


@pytest.mark.parametrize("n_classes", NAMES)
def test_the_page_fits_with_any_number_of_classes(opened, serve, adapt_topics, n_classes):
    adapter, texts, truth = adapt_topics(n_classes)
    server = serve(texts, adapter)
    for width, scheme in ((1280, "light"), (390, "dark")):
        page = opened(server, viewport={"width": width, "height": 844}, color_scheme=scheme)
        for _ in range(3):
            label = truth[page.text_content("#deck-text")]
            if n_classes <= 9:
                press(page, str(sorted(NAMES[n_classes]).index(label) + 1))
                continue
            before = page.inner_text("#deck-place")
            assert page.evaluate("document.activeElement.id") == "deck-find"
            page.keyboard.type(label)
            page.keyboard.press("Enter")
            wait_for_row(page, before)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        hidden = "[...document.querySelectorAll('.some')].filter((c) => c.scrollWidth > c.clientWidth).length"
        assert page.evaluate(hidden) == 0, "the table of classes is not cut"
        names = page.locator("#shares tbody th").all_inner_texts()
        assert names == sorted(NAMES[n_classes])
        for told in page.locator("#shares tbody td:first-of-type").all_inner_texts():
            share, low, high = (float(number) for number in re.findall(r"[\d.]+", told))
            assert low - 0.5 <= share <= high + 0.5, told
            assert high - low > 2 or low <= share <= high, told  # rounded alike
        acts = page.locator("#deck-acts").bounding_box()
        assert acts["y"] + acts["height"] <= 844, "all keys are on the first screen"
        keys = page.locator("#deck-keys")
        is_cut = keys.evaluate("(list) => list.scrollHeight > list.clientHeight")
        assert is_cut == ("gradient" in keys.evaluate("(list) => getComputedStyle(list).backgroundImage"))
        edges = "(b) => parseFloat(getComputedStyle(b).borderBottomWidth)"
        assert keys.locator("button").first.evaluate(edges) > 3
    lines = read_csv(server.session.file.path)
    assert [line["label"] for line in lines] == [truth[line["text"]] for line in lines]
    assert len(lines) == 6
