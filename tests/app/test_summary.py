"""What a summary says of class shares: predicted, estimated or given, and what error to expect."""

import json

import pytest

from tests.helpers.review_files import build_adapter, read_csv, write_csv
from undrift.app.adapt import run_adapt
from undrift.app.job import AdaptJob
from undrift.app.summary import FileRows, TargetSummary
from undrift.results import Score, Target


@pytest.fixture
def job_of(tmp_path, reviews):
    """Return a function that describes a job from books to the targets named."""

    def describe(*targets, **options):
        texts, labels = reviews["books"]
        source = write_csv(tmp_path / "books.csv", {"text": texts, "label": labels})
        for name in targets:
            texts, labels = reviews[name]
            write_csv(tmp_path / f"{name}.csv", {"text": texts, "truth": labels})
        paths = [tmp_path / f"{name}.csv" for name in targets]
        return AdaptJob([source], paths, ("text",), "label", tmp_path / "out.csv", **options)

    return describe


def test_every_target_has_its_shares_and_its_expected_error(job_of):
    adapter = build_adapter()
    summary = run_adapt(job_of("kitchen", "camping"), adapter).to_dict()
    classifier = adapter.classifier_
    assert json.loads(json.dumps(summary)) == summary
    rows = read_csv(summary["out"])
    for i, entry in enumerate(summary["targets"]):
        predicted = [row["prediction"] for row in rows[120 * i : 120 * i + 120]]
        expected = {label: predicted.count(label) / 120 for label in ("negative", "positive")}
        assert entry["predicted_shares"] == expected
        assert entry["target_shares"] == classifier.target_shares_[i]
        interval = classifier.target_shares_interval_[i]
        assert entry["target_shares_interval"] == {label: list(ends) for label, ends in interval.items()}
        assert entry["expected_error"] == classifier.expected_error_[i]
        assert entry["expected_error"]["low"] <= entry["expected_error"]["error"]
        assert entry["target_shares_given"] is False


def test_the_classifier_that_is_passed_keeps_its_parameters(job_of):
    shares = {"negative": 0.1, "positive": 0.9}
    adapter = build_adapter()
    classifier = adapter.classifier
    run_adapt(job_of("kitchen", target_shares=[shares]), adapter)
    assert classifier.target_shares is None
    (entry,) = run_adapt(job_of("kitchen"), build_adapter(target_shares=shares)).to_dict()["targets"]
    assert entry["target_shares_given"] is True


def test_every_target_may_have_its_shares(job_of):
    few, many = {"negative": 0.9, "positive": 0.1}, {"negative": 0.1, "positive": 0.9}
    entries = run_adapt(job_of("kitchen", "camping", target_shares=[few, many]), build_adapter()).to_dict()
    kitchen, camping = entries["targets"]
    assert kitchen["target_shares"] == pytest.approx(few)
    assert camping["target_shares"] == pytest.approx(many)
    assert kitchen["target_shares_interval"] == {label: [share] * 2 for label, share in few.items()}
    assert kitchen["predicted_shares"]["positive"] < 0.3 < 0.7 < camping["predicted_shares"]["positive"]
    both = run_adapt(job_of("kitchen", "camping", target_shares=[many]), build_adapter()).to_dict()
    assert all(entry["target_shares"] == pytest.approx(many) for entry in both["targets"])


@pytest.mark.parametrize("names", [("0", "1"), ("0.0", "1.0"), (0, 1)])
@pytest.mark.parametrize("as_json", [False, True])
def test_shares_name_numbers_as_any_file_spells_them(job_of, tmp_path, reviews, names, as_json):
    """The labels are whole numbers in JSON, text in CSV."""
    job = job_of("kitchen", target_shares=[dict(zip(names, (0.25, 0.75), strict=True))])
    texts, labels = reviews["books"]
    values = [None if not label else int(label == "positive") for label in labels]
    if as_json:
        job.sources[0] = tmp_path / "books.jsonl"
        lines = [
            json.dumps({"text": text, "label": value}) for text, value in zip(texts, values, strict=True)
        ]
        job.sources[0].write_text("\n".join(lines))
    else:
        write_csv(
            job.sources[0],
            {"text": texts, "label": ["" if value is None else f"{value}.0" for value in values]},
        )
    adapter = build_adapter()
    summary = run_adapt(job, adapter).to_dict()
    assert list(adapter.classifier_.target_shares_[0].values()) == pytest.approx([0.25, 0.75])
    assert set(summary["targets"][0]["target_shares"]) == set(map(str, adapter.classes_))


def test_more_than_a_few_classes_are_told_one_a_line():
    names = [f"group.{k}" for k in range(12)]
    shares = {name: (k + 1) / 78 for k, name in enumerate(names)}
    interval = {name: [share / 2, 2 * share] for name, share in shares.items()}

    def tell(n=12, are_given=False):
        known = Target(dict(list(shares.items())[:n]), interval, Score(0.1, 0.0, 0.2), {}, [])
        facts = {"known": known, "target_shares_given": are_given, "border": "error", "unseen_share": None}
        facts |= {"predicted_shares": dict.fromkeys(names[:n], 1 / n), "unknown_rows": 0}
        target = TargetSummary(**vars(FileRows("new.csv", 600, 0, 0, 0)), **facts)
        return [*target.describe_shares()]

    head, *lines, rest = tell()
    assert head == "Class shares of new.csv, predicted and estimated:"
    assert [line.split()[0] for line in lines] == names[2:], "the most frequent ones, in their order"
    assert lines[0] == "  group.2     8.4%  4% (2% to 8%)"
    assert lines[-1] == "  group.11    8.3%  15% (8% to 31%)"
    assert rest == "  and 2 more classes (--json has all)"
    *_, last = tell(are_given=True)
    assert last == rest
    (line,) = tell(3)
    predicted = "group.0: 33.4%, group.1: 33.3%, group.2: 33.3%"
    estimated = "group.0: 1.3% (0.6% to 2.6%), group.1: 3% (1% to 5%), group.2: 4% (2% to 8%)"
    assert line == f"Class shares of new.csv: predicted {predicted}; estimated {estimated}."


def test_the_surest_row_of_many_classes_has_the_highest_score(tmp_path):
    """All scores of an unsure row are below zero, and the farther the more classes there are."""
    names = ["apple", "bread", "cheese", "dates", "eggs", "figs", "grapes", "honey"]
    labels = [name for name in names for _ in range(20)]
    texts = [f"{name} number {i % 5}" for i, name in enumerate(labels)]
    source = write_csv(tmp_path / "food.csv", {"text": texts, "label": labels})
    sure, unsure = [3, 57, 101], [20, 75, 140]
    texts = [f"number {i}" if i in unsure else text for i, text in enumerate(texts)]
    llm = [names[(names.index(y) + 3) % 8] if i in sure + unsure else y for i, y in enumerate(labels)]
    target = write_csv(tmp_path / "new.csv", {"text": texts, "llm": llm})
    job = AdaptJob([source], [target], ("text",), "label", tmp_path / "out.csv", teacher="llm")
    (entry,) = run_adapt(job, build_adapter()).to_dict()["targets"]
    assert {row - 1 for row in entry["teacher"]["surest_rows"][:3]} == set(sure)
