"""Tables of plan kinds: groups, families, harm, intervals, labels and readings, from records made by hand."""

import json

import pytest

from lab.tests.helpers.corpus import transfer
from undrift_lab.cli import app
from undrift_lab.results.frame import make_frame
from undrift_lab.results.kinds import TABLES, group_tasks, make_kinds_table


def record(method, corpus, error, *, variant=None, n_classes=2, source="a", target="b", **more):
    return transfer(
        method, source, target, error, plan="kinds", variant=variant or corpus, corpus=corpus,
        n_classes=n_classes, method_version=6, **more,
    )  # fmt: skip


def ours(corpus, error, expected, low, high, **more):
    return record(
        "undrift", corpus, error, expected_error=expected, expected_low=low, expected_high=high, **more
    )


READINGS = {"same mix": 0.2, "unmoved": 0.3, "25% 1": 0.1}
RECORDS = [
    record("svm-tfidf", "emotion", 0.50, n_classes=4),
    record("logistic-tfidf", "emotion", 0.40, n_classes=4),
    ours("emotion", 0.43, 0.05, 0.20, 0.35, n_classes=4, readings={"same mix": 0.39, "unmoved": 0.45}),
    record("updated-asked-5", "emotion", 0.35, n_classes=4, n_target_labels=5, interval_holds=2 / 3),
    record("svm-tfidf", "fdu-mtl", 0.30, variant="fdu-mtl .10"),
    record("logistic-tfidf", "fdu-mtl", 0.30, variant="fdu-mtl .10"),
    ours("fdu-mtl", 0.10, 0.15, 0.05, 0.25, variant="fdu-mtl .10", readings=READINGS),
    record("updated-asked-5", "fdu-mtl", 0.08, variant="fdu-mtl .10"),
    record("svm-tfidf", "natural", 0.12),
    ours("natural", 0.10, 0.15, 0.05, 0.25),
    record("updated-asked-5", "natural", 0.11),
    record("svm-tfidf", "crisis", 0.2),
    record("logistic-tfidf", "crisis", 0.3),
    ours("crisis", 0.22, 0.2, 0.1, 0.3, readings={"same mix": 0.3, "unmoved": 0.2}),
    record("updated-asked-5", "crisis", 0.2),
    record("updated-30", "crisis", 0.1),
]  # fmt: skip


def rows(name, records=RECORDS):
    table = make_kinds_table(name, make_frame(records))
    lines = [line.split("|")[1:-1] for line in table.splitlines() if line.startswith("|")]
    names, _, *cells = [[cell.strip() for cell in line] for line in lines]
    assert len(names) <= 6
    return {line[0]: dict(zip(names[1:], line[1:], strict=True)) for line in cells}


def test_tasks_are_of_the_group_that_corpus_classes_and_share_say():
    about = group_tasks(make_frame(RECORDS)).about
    assert about["group"].to_dict() == {
        "emotion a->b": "three classes and more",
        "fdu-mtl .10 a->b": "uneven reviews",
        "natural a->b": "reviews as written",
        "crisis a->b": "two classes, no Amazon reviews",
    }
    assert about["family"].tolist() == ["emotion", "Amazon reviews", "Amazon reviews", "crisis"]
    equal = group_tasks(make_frame([record("undrift", "amazon-bow", 0.2)])).about
    assert equal["group"].tolist() == ["equal reviews"]


def test_errors_by_group_and_the_mean_over_families():
    table = rows("kinds")
    assert table["three classes and more"] == {
        "tasks": "1", "better of SVM and LR": "40.0", "undrift": "43.0", "difference": "+3.0 ± ?",
        "5 labels asked": "35.0",
    }  # fmt: skip
    assert table["all"]["undrift"] == "25.0"  # of the three tasks that have both plain classifiers
    assert table["mean over families"]["undrift"] == "25.0"  # 43, 10 and 22
    assert table["all but Amazon reviews"]["undrift"] == "32.5"
    assert "reviews as written" not in table  # logistic regression is missing


def test_tasks_of_a_family_or_of_a_target_are_one_observation_of_a_difference():
    errors = {"crisis": (0.1, 0.3), "debt": (0.2, 0.4)}
    pairs = [("a", "b"), ("b", "a")]
    places = [
        (corpus, *pair, e) for corpus, both in errors.items() for pair, e in zip(pairs, both, strict=True)
    ]
    places += [
        ("natural", source, target, e)
        for source, target, e in [("a", "b", 0.1), ("c", "b", 0.2), ("a", "c", 0.3)]
    ]
    found = [
        record(method, corpus, 0.5 if method != "undrift" else error, source=source, target=target)
        for corpus, source, target, error in places
        for method in ("svm-tfidf", "logistic-tfidf", "undrift")
    ]
    table = rows("kinds", found)
    # two families whose means are -.3 and -.2, as many tasks in each: a standard error of .05
    assert table["two classes, no Amazon reviews"]["difference"] == "-25.0 ± 10.0"
    # sums of deviations are -.1 of the target b and .1 of c: (2 (.01 + .01)) ** .5 / 3 is a standard error
    assert table["reviews as written"]["difference"] == "-30.0 ± 13.3"
    # families have means of -.3, -.2 and -.3
    assert table["mean over families"]["difference"] == "-26.7 ± 6.7"


def test_harm_is_over_two_points_above_the_better_of_two():
    table = rows("kinds-harm")
    assert table["three classes and more"]["no label"] == "100"
    assert table["two classes, no Amazon reviews"]["no label"] == "0"  # exactly two points
    assert table["all"]["no label"] == "33"  # of the three tasks that have both
    assert "30 random" not in table["all"]


def test_intervals_hold_have_a_width_and_may_be_sure_and_wrong():
    table = rows("kinds-estimates")
    emotion = table["three classes and more"]
    assert emotion["expected error off by"] == "38.0"
    assert (emotion["intervals hold, %"], emotion["width"], emotion["wrong and sure, %"]) == (
        "0.0", "26.7", "100.0",
    )  # fmt: skip
    assert table["all"]["intervals hold, %"] == "75.0"
    labelled = rows("kinds-labelled-estimates")
    assert labelled["three classes and more"]["5 asked: hold, %"] == "66.7"


def test_readings_stand_beside_the_best_of_each_task():
    table = rows("kinds-readings")
    assert table["same mix"]["three classes and more"] == "39.0"
    assert table["the best of a task"]["uneven reviews"] == "10.0"
    assert "25% 1" not in table
    assert table["unmoved"]["reviews as written"] == ""
    without = [{k: v for k, v in r.items() if k != "readings"} for r in RECORDS]
    assert make_kinds_table("kinds-readings", make_frame(without)) is None


def test_families_methods_and_labels():
    assert list(rows("kinds-families")) == ["Amazon reviews", "crisis", "emotion"]
    controls = [record(m, "stance", 0.6, n_classes=3) for m in ("undrift", "svm-tfidf", "logistic-tfidf")]
    assert list(rows("kinds-families", controls)) == ["stance (control)"]
    asked = rows("kinds-families-asked")
    assert asked["crisis"] == {"no label": "22.0", "5 asked": "20.0"}
    assert make_kinds_table("kinds-families-random", make_frame(RECORDS)) is None  # of one task alone
    labelled = [record(f"updated-{n}", "crisis", 0.1 + 1 / n) for n in (3, 5, 10, 30)]
    random = rows("kinds-families-random", [RECORDS[13], *labelled])
    assert list(random["crisis"].values()) == ["22.0", "43.3", "30.0", "20.0", "13.3"]
    methods = rows("kinds-methods")
    assert list(methods) == ["svm-tfidf", "logistic-tfidf", "undrift"]
    written = {name: own["reviews as written"] for name, own in methods.items()}
    assert written == {"svm-tfidf": "12.0", "logistic-tfidf": "", "undrift": "10.0"}
    labels = rows("kinds-labels")
    assert list(labels) == ["tasks", "none", "5 asked", "30 random"]
    assert {name: own["two classes, no Amazon reviews"] for name, own in labels.items()} == {
        "tasks": "1", "none": "22.0", "5 asked": "20.0", "30 random": "10.0",
    }  # fmt: skip


def test_the_command_prints_every_table(tmp_path, capsys):
    from typer.testing import CliRunner

    path = tmp_path / "kinds.jsonl"
    labelled = [{**r, "method": "updated-30"} for r in RECORDS if r["method"] == "undrift"]
    path.write_text("".join(f"{json.dumps(r)}\n" for r in [*RECORDS, *labelled]))
    said = CliRunner().invoke(app, ["kinds", str(path)])
    assert said.exit_code == 0
    assert all(f"## {name}\n" in said.stdout for name in TABLES)
    other = tmp_path / "other.jsonl"
    other.write_text(json.dumps(transfer("svm", "a", "b", 0.3)) + "\n")
    with pytest.raises(ValueError, match="no record of plan kinds"):
        CliRunner().invoke(app, ["kinds", str(other)], catch_exceptions=False)
