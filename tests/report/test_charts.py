"""Class shares of the targets and the error to expect, as numbers, words and a chart."""

import re
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from undrift import MSDAClassifier
from undrift.report import adaptation_report
from undrift.report.charts import chart_shares, draw_shares
from undrift.report.data import DomainRows, PredictedRows, ReportData
from undrift.report.verdict import judge, pool_errors, pool_shares
from undrift.results import Score, Target

pytestmark = pytest.mark.filterwarnings("ignore::undrift.UndriftWarning")


def make_rows(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.poisson(0.5, (n, 30)).astype(float)
    y = np.where(X[:, 0] + X[:, 1] + rng.normal(0, 1, n) > 1, "yes", "no")
    return X, y


@pytest.fixture(scope="module")
def few_rows():
    """A source whose classes hardly come apart, and a target too small to tell their shares."""
    X, y = make_rows(200, 0)
    return X, y.tolist(), make_rows(40, 1)[0]


def shown_text(report):
    page = re.sub(r"<(script|style)\b.*?</\1>", "", report.to_html(), flags=re.DOTALL)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", re.sub("</?code>", "", page)))


def target_of(report):
    (card,) = [card for card in report.to_dict()["domains"] if card["role"] == "target"]
    return card


def test_shares_and_expected_error_are_those_of_the_fit(report, adapter, reviews):
    card, classifier = target_of(report), adapter.classifier_
    assert card["target_shares"] == classifier.target_shares_[0]
    assert card["target_shares_interval"] == {
        label: list(interval) for label, interval in classifier.target_shares_interval_[0].items()
    }
    assert card["expected_error"] | {"known": True} == classifier.expected_error_[0]
    predicted = adapter.predict(reviews[2])
    shares = {label: np.mean(predicted == label) for label in ("negative", "positive")}
    assert card["predicted_shares"] == pytest.approx(shares)
    truth = [label for label in reviews[3] if label is not None]
    assert card["labelled_shares"]["positive"] == pytest.approx(truth.count("positive") / len(truth))


READINGS = [
    {
        "name": "a",
        "story": "Words kept.",
        "weight": 0.3,
        "shares": {"no": 0.88, "yes": 0.12},
        "agreement": 0.85,
    },
    {"name": "b", "story": "Mix kept.", "weight": 0.7, "shares": {"no": 0.5, "yes": 0.5}, "agreement": 0.97},
    {"name": "c", "story": "Nobody.", "weight": 0.0, "shares": {"no": 0.0, "yes": 1.0}, "agreement": 0.1},
]


def test_stories_are_told_where_readings_differ_and_only_there(few_rows):
    X, y, Z = few_rows
    model = MSDAClassifier(1, 0.5, random_state=0).fit(X, y, Z)
    model.readings_ = {"target": READINGS}
    report = adaptation_report(model, X, y, Z)
    (told,) = report.to_dict()["readings"]
    readings = [reading | {"told": reading["shares"]} for reading in (READINGS[1], READINGS[0])]
    assert told == {"name": "target", "readings": readings, "differ": True}
    text = shown_text(report)
    assert "Mix kept. Weight 70% . Then: no 50% , yes 50% ." in text
    assert "Words kept. Weight 30% . Then: no 88% , yes 12% ." in text
    assert "Nobody." not in text
    assert "--target-shares same, or numbers. Or answer five questions with undrift label" in text
    model.readings_ = {"target": [{**READINGS[0], "agreement": 0.91}, READINGS[1]]}
    report = adaptation_report(model, X, y, Z)
    assert not report.to_dict()["readings"][0]["differ"]
    assert "Which is closer to what you know" not in shown_text(report)


def test_readings_of_a_fit_are_those_of_the_report(report, adapter):
    (told,) = report.to_dict()["readings"]
    (readings,) = adapter.classifier_.readings_.values()
    weights = {own["name"]: own["weight"] for own in told["readings"]}
    assert weights == {own["name"]: own["weight"] for own in readings if own["weight"] >= 0.1}
    assert list(weights.values()) == sorted(weights.values(), reverse=True)


def test_a_teacher_is_on_the_first_screen(few_rows):
    X, y, Z = few_rows
    said = np.where(Z[:, 0] + Z[:, 1] > 1, "yes", "no")
    model = MSDAClassifier(1, 0.5, random_state=0).fit(X, y, Z, teacher=said)
    text = shown_text(adaptation_report(model, X, y, Z))
    first = text[: text.index("How many predictions are wrong?")]
    assert "target had a teacher: " in first
    assert "of its labels look exchanged at random." in first
    alone = MSDAClassifier(1, 0.5, random_state=0).fit(X, y, Z)
    assert "had a teacher" not in shown_text(adaptation_report(alone, X, y, Z))


def test_several_targets_are_pooled_by_rows(few_rows):
    """Shares of labels count those that the source lacks too, as the terminal does: such rows are wrong."""
    X, y, Z = few_rows
    more = make_rows(160, 2)[0]
    model = MSDAClassifier(1, 0.5, random_state=0).fit(X, y, {"a": Z, "b": more})
    labels = ["yes"] * 10 + ["no"] * 5 + ["other"] * 5 + [None] * 20, ["no"] * 5 + [None] * 155
    targets = [DomainRows("a", Z, labels=labels[0]), DomainRows("b", more, labels=labels[1])]
    given = ReportData(model, [str(j) for j in range(30)], [DomainRows("s", X, labels=y)], targets)
    verdict = judge(given)
    for name, error in verdict.expected.to_dict().items():
        a, b = (entry[name] for entry in model.expected_error_)
        assert_allclose(error, 0.2 * a + 0.8 * b)
    assert pool_errors([given.targets[0], replace(given.targets[1], known=None)]) is None
    shares = [target.labelled_shares for target in given.targets]
    assert shares == [{"no": 0.25, "yes": 0.5}, {"no": 1.0, "yes": 0.0}]
    assert pool_shares(shares, [20, 5]) == pytest.approx({"no": 0.4, "yes": 0.4})
    assert (verdict.chance.label, verdict.chance.error) == ("no", pytest.approx(0.6))


def make_target(counts, intervals):
    """A target whose estimated shares are those of its predictions."""
    n = sum(counts.values())
    known = Target({label: k / n for label, k in counts.items()}, intervals, Score(0.1, 0.0, 0.2), {}, [])
    codes = np.repeat(np.arange(len(counts)), list(counts.values()))
    rows, none, once = DomainRows("t", np.zeros((n, 1))), np.full(n, -1), np.ones(n)
    return PredictedRows(rows, None, known, False, list(counts), codes, codes, np.eye(n), none, once)


@pytest.mark.parametrize(
    ("a", "b", "title"),
    [
        ([0.2, 0.4], [0.6, 0.8], "b is the most frequent class of t: about 70% of its rows (60% to 80%)"),
        ([0.2, 0.6], [0.4, 0.8], "No class of t is clearly the most frequent: about 70% of its rows"),
        ([0.2, 0.502], [0.504, 0.8], "No class of t is clearly"),  # both ends are written 50%
    ],
)
def test_a_class_is_the_most_frequent_if_its_interval_lies_above_the_others(a, b, title):
    assert chart_shares(make_target({"a": 3, "b": 7}, {"a": a, "b": b})).title.startswith(title)


def test_without_an_estimate_shares_are_called_predicted():
    target = replace(make_target({"a": 3, "b": 7}, {}), known=None)
    assert chart_shares(target).title == "Predicted class shares of t"


def test_bars_and_intervals_are_where_their_shares_say():
    labels = ["a<b", *"bcdefg", "h"]
    known = Target(
        dict.fromkeys(labels, 0.0) | {"a<b": 0.5, "h": 0.5},
        {key: [0.0, 0.0] for key in labels} | {"a<b": [0.3, 1.0], "h": [0.0, 0.7]},
        Score(0.1, 0.0, 0.2), {}, [],
    )  # fmt: skip
    predicted = dict.fromkeys(labels, 0.0) | {"a<b": 0.25, "h": 0.75}
    svg = str(draw_shares("t", predicted, known, most=2))
    assert "a<b" not in svg
    assert "style=" not in svg
    ticks = re.findall(r'<text x="([\d.]+)" y="\d+" text-anchor="middle" class="tick">(\d+)%', svg)
    left, middle = (float(x) for x, _ in ticks[:2])
    assert [int(share) for _, share in ticks] == [0, 50, 100]
    thirds = dict.fromkeys("abc", 1 / 3)
    of_thirds = Target(thirds, {key: [0.3, 0.4] for key in "abc"}, known.expected, {}, [])
    written = re.findall(r">(\d\d)%(?: \(|<)", str(draw_shares("t", thirds, of_thirds)))
    assert (written.count("33"), written.count("34")) == (4, 2), "they add up to 100%"
    widths = [float(width) for width in re.findall(r'width="([\d.]+)" height="11" class="mark s[07]"', svg)]
    assert widths[1] == pytest.approx(3 * widths[0], abs=0.2)
    whole = 4 * widths[0]
    assert whole == pytest.approx(2 * (middle - left), abs=0.4), "the axis has the scale of the bars"
    lines = re.findall(r'<line x1="([\d.]+)" y1="[\d.]+" x2="([\d.]+)"[^>]*class="whisker', svg)
    shown = [[(float(end) - left) / whole for end in ends] for ends in lines]
    assert_allclose(shown, [[0.3, 1.0], [0.0, 0.7]], atol=2e-3)
    dots = [float(x) + 2 for x in re.findall(r'<rect x="([\d.]+)"[^>]*class="ink"', svg)]
    assert_allclose([(x - left) / whole for x in dots], [0.5, 0.5], atol=2e-3)


def test_of_many_classes_the_chart_shows_the_most_frequent_and_the_table_all():
    labels = [f"class {i:02d}" for i in range(20)]
    counts = {label: i + 1 for i, label in enumerate(labels)}
    target = make_target(counts, {label: [0.0, 0.2] for label in labels})
    chart = chart_shares(target)
    assert len(chart.rows) == 20
    assert "class 19" in chart.svg
    assert "class 07" not in chart.svg
    assert re.findall(r">(class \d\d)<", chart.svg) == [f"class {i}" for i in (19, 18, 17, 16, 15)]
    assert "All 20 classes are below" in chart.note
    whole = chart_shares(target, most=20)
    assert all(label in whole.svg for label in labels)
    for column in (1, 2):
        assert sum(float(row[column][:-1]) for row in chart.rows) == pytest.approx(100)
