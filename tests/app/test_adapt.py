import json
import os

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.svm import LinearSVC

from tests.helpers.exact import FewAnchors
from tests.helpers.review_files import build_adapter, read_csv, write_csv
from undrift import MSDAClassifier, TermVectorizer
from undrift.app.adapt import run_adapt
from undrift.app.classes import spell_alike
from undrift.app.job import AdaptJob
from undrift.app.tables import TableError
from undrift.text import tokens


@pytest.fixture
def files(tmp_path, reviews):
    """A source with a few labels missing, and targets with the true labels in the column `truth`."""
    paths = {}
    for name, (texts, labels) in reviews.items():
        ids = [f"{name}-{i}" for i in range(len(texts))]
        label = "label" if name == "books" else "truth"
        paths[name] = write_csv(tmp_path / f"{name}.csv", {"id": ids, "text": texts, label: labels})
    return paths


def job_of(files, tmp_path, *targets, **options):
    paths = [files[name] for name in targets or ("kitchen",)]
    return AdaptJob([files["books"]], paths, ("text",), "label", tmp_path / "out.csv", **options)


@pytest.mark.parametrize(
    ("options", "has_state"),
    [
        ({}, False),
        ({"model": "m"}, False),
        ({"model": "m", "updatable": True}, True),
        ({"report": "r"}, True),
    ],
)
def test_what_updating_needs_is_computed_where_something_reads_it(files, tmp_path, options, has_state):
    options = {name: tmp_path / value if isinstance(value, str) else value for name, value in options.items()}
    adapter = build_adapter()
    run_adapt(job_of(files, tmp_path, **options), adapter)
    assert (adapter.classifier_.memory_ is not None) == has_state


def test_predictions_are_those_of_the_estimator(files, tmp_path, reviews):
    summary = run_adapt(job_of(files, tmp_path), build_adapter()).to_dict()
    (books, labels), (kitchen, _) = reviews["books"], reviews["kitchen"]
    expected = build_adapter().fit(books, [label or None for label in labels], kitchen)
    rows = read_csv(tmp_path / "out.csv")
    assert list(rows[0]) == ["id", "text", "truth", "prediction", "score", "probability"]
    assert [row["text"] for row in rows] == kitchen
    assert [row["id"] for row in rows] == [f"kitchen-{i}" for i in range(len(kitchen))]
    assert [row["prediction"] for row in rows] == expected.predict(kitchen).tolist()
    scores = expected.classifier_.target_scores_[0]
    assert_allclose([float(row["score"]) for row in rows], scores, atol=1e-6)
    probability = expected.classifier_.scores_to_proba(scores).max(axis=1)
    assert_allclose([float(row["probability"]) for row in rows], probability, atol=1e-6)
    assert summary["out"] == str(tmp_path / "out.csv")
    assert sorted(os.listdir(tmp_path)) == sorted(["out.csv", *(path.name for path in files.values())])


def test_summary_counts_and_is_json(files, tmp_path, reviews):
    job = job_of(
        files, tmp_path, "kitchen", "camping", target_label="truth", model=tmp_path / "m.safetensors"
    )
    summary = run_adapt(job, build_adapter()).to_dict()
    assert json.loads(json.dumps(summary)) == summary
    n_unlabelled = reviews["books"][1].count("")
    (source,) = summary["sources"]
    assert source["rows"] == 120
    assert source["unlabelled"] == n_unlabelled > 0
    assert source["labelled"] == 120 - n_unlabelled
    assert sum(summary["labels"].values()) == 120 - n_unlabelled
    assert summary["classes"] == ["negative", "positive"]
    assert summary["vocabulary"] == 150
    assert summary["rule"] == "fixed"
    assert summary["chosen"] == {"noise": 0.7, "n_layers": 2, "C": 0.3}
    for target, name in zip(summary["targets"], ("kitchen", "camping"), strict=True):
        assert 0 < target["unseen_share"] < 1
        assert target["scored"] == 120 - reviews[name][1].count("")


def test_errors_are_of_the_labelled_rows(files, tmp_path, reviews):
    job = job_of(files, tmp_path, "kitchen", "camping", target_label="truth")
    summary = run_adapt(job, build_adapter()).to_dict()
    rows = read_csv(tmp_path / "out.csv")
    for target, name in zip(summary["targets"], ("kitchen.csv", "camping.csv"), strict=True):
        scored = [row for row in rows if row["domain"] == name and row["truth"]]
        assert_allclose(target["adapted_error"], np.mean([r["truth"] != r["prediction"] for r in scored]))
    (books, labels), (kitchen, truth) = reviews["books"], reviews["kitchen"]
    vectorizer = TermVectorizer(150).fit(books + kitchen + reviews["camping"][0])
    labelled = [i for i, label in enumerate(labels) if label]
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    svm = GridSearchCV(
        LinearSVC(dual="auto", random_state=0, max_iter=5000), {"C": np.logspace(-4, 0.5, 10)}, cv=folds
    )
    svm.fit(vectorizer.transform(books)[labelled], np.array(labels)[labelled])
    scored = np.array([bool(label) for label in truth])
    guesses = svm.predict(vectorizer.transform(kitchen)[scored])
    expected = np.mean(guesses != np.array(truth)[scored])
    assert_allclose(summary["targets"][0]["baseline_error"], expected)


@pytest.mark.parametrize(("kind", "n_rows"), [(MSDAClassifier, []), (FewAnchors, [120, 120])])
def test_target_rows_pass_the_layers_once_at_most(files, tmp_path, kind, n_rows):
    """Not at all where the fit knows their scores."""
    scored = []

    class Counting(kind):
        def decision_function(self, X, **options):
            scored.append(X.shape[0])
            return super().decision_function(X, **options)

    adapter = build_adapter().set_params(classifier=Counting(2, C=0.3, self_training=False, random_state=0))
    run_adapt(job_of(files, tmp_path, "kitchen", "camping", target_label="truth"), adapter)
    assert scored == n_rows


def test_several_sources_and_targets_with_other_columns(files, tmp_path, reviews):
    texts, labels = reviews["electronics"]
    extra = write_csv(tmp_path / "extra.csv", {"label": labels, "text": texts, "seller": ["x"] * 120})
    out = tmp_path / "out.csv"
    job = AdaptJob([files["books"], extra], [files["kitchen"], extra], ("text",), "label", out)
    summary = run_adapt(job, build_adapter()).to_dict()
    rows = read_csv(out)
    columns = ["id", "text", "truth", "label", "seller", "prediction", "score", "probability", "domain"]
    assert list(rows[0]) == columns
    assert [row["domain"] for row in rows] == ["kitchen.csv"] * 120 + ["extra.csv"] * 120
    assert [row["text"] for row in rows] == reviews["kitchen"][0] + texts
    assert [row["seller"] for row in rows] == [""] * 120 + ["x"] * 120
    remedy = "add --target-label label to measure the error"
    assert summary["notes"] == [f"extra.csv has a column 'label': ignored ({remedy})"]


def test_labels_in_the_target_change_nothing(files, tmp_path, reviews):
    run_adapt(job_of(files, tmp_path), build_adapter())
    before = [row["score"] for row in read_csv(tmp_path / "out.csv")]
    texts, _ = reviews["kitchen"]
    for labels in (["positive"] * 120, ["?"] * 120):
        files["kitchen"] = write_csv(tmp_path / "kitchen.csv", {"text": texts, "label": labels})
        summary = run_adapt(job_of(files, tmp_path), build_adapter()).to_dict()
        assert [row["score"] for row in read_csv(tmp_path / "out.csv")] == before
        assert any("ignored" in note for note in summary["notes"])


def test_every_document_is_analysed_four_times_at_most(files, tmp_path, spy):
    """For unseen words, vocabulary and rows; the first thousand for tokens and to describe a target."""
    seen = spy(tokens, "normalise")
    run_adapt(job_of(files, tmp_path, target_label="truth"), build_adapter())
    assert 0 < len(seen) <= 4 * 240 + 120


def test_neither_predictions_nor_model_if_one_fails(files, tmp_path, fail):
    fail("safetensors.numpy.save_file", OSError(28, "No space left on device"))
    job = job_of(files, tmp_path, model=tmp_path / "model.safetensors")
    with pytest.raises(OSError, match="No space left"):
        run_adapt(job, build_adapter())
    assert sorted(os.listdir(tmp_path)) == sorted(path.name for path in files.values())


@pytest.mark.parametrize("name", ["score", "probability", "p_negative", "domain"])
def test_a_clash_of_columns_is_seen_before_the_fit(files, tmp_path, reviews, name):
    adapter = build_adapter()
    write_csv(files["kitchen"], {"text": reviews["kitchen"][0], name: [1] * 120})
    with pytest.raises(TableError, match=rf"kitchen.csv already has a column '{name}'.*; rename it"):
        run_adapt(job_of(files, tmp_path, "kitchen", "camping", probabilities=True), adapter)
    assert not hasattr(adapter, "classifier_")


def test_a_target_without_truth_or_with_truth_of_other_names(files, tmp_path, reviews):
    write_csv(files["kitchen"], {"text": reviews["kitchen"][0], "truth": [""] * 120})
    summary = run_adapt(job_of(files, tmp_path, target_label="truth"), build_adapter()).to_dict()
    assert summary["targets"][0]["scored"] == 0
    assert summary["targets"][0]["adapted_error"] is None
    assert "kitchen.csv has no label to score with" in summary["notes"]
    write_csv(files["kitchen"], {"text": reviews["kitchen"][0], "truth": ["1", "0"] * 60})
    summary = run_adapt(job_of(files, tmp_path, target_label="truth"), build_adapter()).to_dict()
    assert summary["targets"][0]["adapted_error"] == 1
    (warning,) = summary["warnings"]
    assert "none of the target's labels (0, 1) is one of the source's (negative, positive)" in warning


def test_numbers_and_texts_of_one_label_are_equal(tmp_path, reviews):
    """The source is JSON with numbers, the target CSV."""
    texts, labels = reviews["books"]
    source = tmp_path / "books.jsonl"
    lines = [
        {"text": text, "label": None if not label else float(label == "positive")}
        for text, label in zip(texts, labels, strict=True)
    ]
    source.write_text("".join(json.dumps(line) + "\n" for line in lines))
    texts, labels = reviews["kitchen"]
    target = write_csv(
        tmp_path / "kitchen.csv",
        {"text": texts, "truth": ["" if not label else int(label == "positive") for label in labels]},
    )
    job = AdaptJob([source], [target], ("text",), "label", tmp_path / "out.jsonl", target_label="truth")
    summary = run_adapt(job, build_adapter()).to_dict()
    assert summary["classes"] == [0, 1]
    assert summary["warnings"] == []
    assert summary["targets"][0]["scored"] == 120 - labels.count("")
    assert summary["targets"][0]["adapted_error"] < 0.6  # 1 if numbers and texts differed
    first = json.loads((tmp_path / "out.jsonl").read_text().splitlines()[0])
    assert first["prediction"] in (0, 1)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["a", None, "b"], ["a", None, "b"]),
        ([1, None, 2], [1, None, 2]),
        ([1.0, 2, None], [1, 2, None]),
        ([0.5, 1.0], ["0.5", "1"]),
        ([1, "b"], ["1", "b"]),
        ([1.0, "1", 2, "2.0"], [1, 1, 2, 2]),
        (["0", None, "-3"], [0, None, -3]),
        (["01", "2"], ["01", "2"]),
        (["1" * 19, "2"], ["1" * 19, "2"]),
        ([True, False], [True, False]),
        ([True, 2], ["True", "2"]),
    ],
)
def test_labels_get_one_spelling(labels, expected):
    spelt, rewritten, notes = spell_alike(labels)
    assert (spelt, rewritten, notes) == (expected, {}, [])
    assert [type(label) for label in spelt] == [type(label) for label in expected]


def test_every_stage_is_shown(files, tmp_path):
    shown = []
    job = job_of(files, tmp_path, model=tmp_path / "m.safetensors")
    run_adapt(job, build_adapter(), lambda stage, share: shown.append((stage, share)))
    stages = list(dict.fromkeys(stage for stage, _ in shown))
    assert stages[:2] == ["reading books.csv", "reading kitchen.csv"]
    assert stages[-3:] == ["writing predictions", "describing the target", "saving the model"]
    assert ("reading books.csv", 1.0) in shown
