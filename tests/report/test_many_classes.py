"""Reports with 3, 10 and 30 classes in a real browser, on a desk and on a telephone, light and dark."""

import numpy as np
import pytest

from tests.helpers.topics import NAMES
from tests.report.test_browser import check_layout
from undrift.report.charts import colour_of

pytestmark = pytest.mark.browser
SCREENS = [(1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")]


@pytest.fixture(scope="module")
def files(topic_reports, tmp_path_factory):
    folder = tmp_path_factory.mktemp("topics")
    return {
        (n, is_scored): topic_reports(n, is_scored).save(folder / f"{n}-{is_scored}.html")
        for n in NAMES
        for is_scored in (True, False)
    }


@pytest.fixture
def opened(open_file, files):
    def open_(n_classes, is_scored=True, width=1280, scheme="light"):
        own = open_file(files[n_classes, is_scored], width=width, scheme=scheme)
        assert own.said == []
        return own.page

    return open_


def open_details(page):
    page.evaluate("for (const d of document.querySelectorAll('details')) d.open = true")


@pytest.mark.parametrize("n_classes", NAMES)
@pytest.mark.parametrize(("width", "scheme"), SCREENS)
@pytest.mark.parametrize("is_scored", [True, False])
def test_it_fits_with_any_number_of_classes(opened, n_classes, width, scheme, is_scored):
    page = opened(n_classes, is_scored, width, scheme)
    check_layout(page, width, ["True and predicted classes of phone"] if n_classes == 30 else [])


@pytest.mark.parametrize("n_classes", NAMES)
def test_every_class_has_its_whole_name_with_precision_and_recall(opened, topic_reports, n_classes):
    (target,) = topic_reports(n_classes, True).to_dict()["by_class"]
    page = opened(n_classes, width=390)
    rows = page.locator("#classes-1 tbody tr").all()
    assert [row.locator("th").inner_text() for row in rows] == sorted(NAMES[n_classes])
    for row, rates in zip(rows, target["measured"].values(), strict=True):
        shown = row.locator("td:visible").all_inner_texts()
        for cell, share in ((shown[1], rates["recall"]), (shown[2], rates["precision"])):
            assert cell == "–" if share is None else abs(float(cell[:-1]) - 100 * share) < 0.51
    pair = target["mistakes"][0]
    first = page.locator("#classes .mistakes li").first.inner_text()
    assert first.startswith(f"{pair['truth']} is taken for {pair['predicted']}: ")
    page = opened(n_classes)
    open_details(page)
    crossed = page.locator(".crossed tbody tr")
    assert crossed.count() == n_classes
    for name, row, cells in zip(
        target["measured"], crossed.all(), target["confusion"]["measured"], strict=False
    ):
        assert row.locator("th").inner_text().endswith(name)
        texts = [int(text or 0) for text in row.locator("td").all_inner_texts()]
        assert np.abs(texts - 100 * np.array(cells[:n_classes]) / sum(cells)).max() < 0.51


@pytest.mark.parametrize("n_classes", [10, 30])
def test_the_first_screen_leads_to_all_classes(opened, n_classes):
    page = opened(n_classes)
    page.click("#verdict a[href='#classes']")
    open_details(page)
    drawn = "".join(page.locator("#classes svg.drawing text").all_text_contents())
    assert all(name in drawn for name in NAMES[n_classes])


def test_few_classes_have_colours_with_names(opened):
    page = opened(3, width=390)
    for section in ("words", "documents"):
        assert page.locator(f"#{section} .legend .key").all_inner_texts() == sorted(NAMES[3])
    colours = page.evaluate(
        """[...document.querySelectorAll("#words .key")]
            .map((key) => getComputedStyle(key, "::before").backgroundColor)"""
    )
    assert len(set(colours)) == 3


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colours_of_classes_can_be_told_apart(opened, scheme):
    page = opened(3, scheme=scheme)
    colours = page.evaluate(
        """() => [0, 1, 2, 3, 4, 5, 6, 7].map((k) => getComputedStyle(document.documentElement)
            .getPropertyValue(`--s${k}`).trim()).concat([getComputedStyle(document.documentElement)
            .getPropertyValue("--card").trim()])"""
    )
    rgb = np.array([[int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)] for colour in colours])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    light = linear @ [0.2126, 0.7152, 0.0722] + 0.05
    assert np.maximum(light[:-1] / light[-1], light[-1] / light[:-1]).min() >= 4.5
    # Oklab (Ottosson, 2020), as they are and as those see them who lack the second kind of cones
    lms = np.array([[0.4122, 0.5363, 0.0515], [0.2119, 0.6807, 0.1074], [0.0883, 0.2817, 0.6300]])
    lab = np.array([[0.2105, 0.7936, -0.0041], [1.9780, -2.4286, 0.4506], [0.0259, 0.7828, -0.8087]])
    deuteranopia = np.array([[0.3673, 0.8606, -0.2280], [0.2801, 0.6725, 0.0474], [-0.0118, 0.0429, 0.9689]])
    for seen, least in ((linear, 0.14), (np.clip(linear @ deuteranopia.T, 0, 1), 0.08)):
        places = np.cbrt(seen[:-1] @ lms.T) @ lab.T
        apart = np.linalg.norm(places[:, None] - places, axis=2)
        assert apart[np.triu_indices(8, 1)].min() > least
    assert len({colour_of(code, 8) for code in range(8)}) == 8
    assert len({colour_of(code, 9) for code in range(9)}) == 1, "of many classes each is named, none coloured"


def test_of_many_classes_every_bar_says_its_class(opened):
    page = opened(10)
    lines = page.locator("#words svg.drawing text").all_text_contents()
    rows = page.locator("#table-words tbody tr").all_text_contents()
    assert sum(" → " in line for line in lines) == len(rows) > 5
    assert page.locator("#words .legend").count() == 0


@pytest.mark.parametrize("n_classes", [10, 30])
def test_beyond_nine_classes_one_types_to_find(opened, n_classes):
    page = opened(n_classes, is_scored=False)
    page.click("#verdict a.button[href='#label']")
    assert page.evaluate("document.activeElement.id") == "deck-find"
    wanted = NAMES[n_classes][-1]
    typed = wanted[-9:] if n_classes == 10 else "claim_change"
    page.keyboard.type(typed)
    visible = page.locator("#deck-keys [data-code]:not([data-code='-1']):visible").all_inner_texts()
    assert visible == [f"Enter{wanted}"] or visible == [f"Enter {wanted}"]
    page.keyboard.press("Enter")
    assert page.inner_text("#deck-result").startswith(f"Row 1: {wanted}.")
    assert page.inner_text("#deck-place").startswith("Row 2 of")
    assert page.input_value("#deck-find") == ""
    assert page.locator("#deck-keys [data-code]:visible").count() == n_classes
    page.keyboard.type("zzz")
    page.keyboard.press("Enter")
    assert page.inner_text("#deck-found") == "No class has this in its name."
    assert page.inner_text("#deck-place").startswith("Row 2 of"), "nothing was labelled"
    page.fill("#deck-find", "")
    page.keyboard.press(" ")
    assert page.inner_text("#deck-result").startswith("Row 2: skipped.")
    page.keyboard.press("Backspace")
    page.keyboard.press("Backspace")
    assert page.inner_text("#deck-place").startswith("Row 1 of")
