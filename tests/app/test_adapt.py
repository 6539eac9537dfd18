import json
import os
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.svm import LinearSVC

from tests.helpers.review_files import make_review_texts, read_csv, write_csv
from undrift import MSDAClassifier, TermVectorizer, TextAdapter
from undrift.app import adapt as adapt_module
from undrift.app.adapt import run_adapt
from undrift.app.inputs import AdaptJob, unify_labels
from undrift.app.options import Reading
from undrift.app.predict import PredictJob, run_predict
from undrift.app.tables import TableError


@pytest.fixture(scope="module")
def reviews():
    return make_review_texts(120, unlabelled_share=0.25, seed=1)


@pytest.fixture
def files(tmp_path, reviews):
    """A source with a few labels missing, and targets with the true labels in the column `truth`."""
    paths = {}
    for name, (texts, labels) in reviews.items():
        ids = [f"{name}-{i}" for i in range(len(texts))]
        label = "label" if name == "books" else "truth"
        paths[name] = write_csv(tmp_path / f"{name}.csv", {"id": ids, "text": texts, label: labels})
    return paths


def small(**options):
    settings = {"C": 0.3, "self_training": False, "random_state": 0, **options}
    return TextAdapter(150, classifier=MSDAClassifier(2, 0.7, **settings))


def job_of(files, tmp_path, *targets, **options):
    targets = targets or ("kitchen",)
    return AdaptJob(
        [files["books"]],
        [files[name] for name in targets],
        ("text",),
        "label",
        tmp_path / "out.csv",
        **options,
    )


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
    adapted = run_adapt(job_of(files, tmp_path, **options), small())
    assert (adapted.adapter.classifier_.update_state_ is not None) == has_state


def test_predictions_are_those_of_the_estimator(files, tmp_path, reviews):
    adapted = run_adapt(job_of(files, tmp_path), small())
    (books, labels), (kitchen, _) = reviews["books"], reviews["kitchen"]
    expected = small().fit(books, [label or None for label in labels], kitchen)
    rows = read_csv(tmp_path / "out.csv")
    assert list(rows[0]) == ["id", "text", "truth", "prediction", "score", "probability"]
    assert [row["text"] for row in rows] == kitchen
    assert [row["id"] for row in rows] == [f"kitchen-{i}" for i in range(len(kitchen))]
    assert [row["prediction"] for row in rows] == expected.predict(kitchen).tolist()
    scores = expected.classifier_.target_scores_[0]
    assert_allclose([float(row["score"]) for row in rows], scores[:, 0], atol=1e-6)
    probability = expected.classifier_.scores_to_proba(scores).max(axis=1)
    assert_allclose([float(row["probability"]) for row in rows], probability, atol=1e-6)
    assert adapted.summary["out"] == str(tmp_path / "out.csv")
    assert sorted(os.listdir(tmp_path)) == sorted(["out.csv", *(path.name for path in files.values())])


def test_summary_counts_and_is_json(files, tmp_path, reviews):
    job = job_of(
        files, tmp_path, "kitchen", "camping", target_label="truth", model=tmp_path / "m.safetensors"
    )
    summary = run_adapt(job, small()).summary
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
    assert [entry["n_labelled"] for entry in summary["self_training"]] in ([], [0])
    for target, name in zip(summary["targets"], ("kitchen", "camping"), strict=True):
        assert 0 < target["unseen_share"] < 1
        assert target["scored"] == 120 - reviews[name][1].count("")


def test_errors_are_of_the_labelled_rows(files, tmp_path, reviews):
    job = job_of(files, tmp_path, "kitchen", "camping", target_label="truth")
    adapted = run_adapt(job, small())
    rows = read_csv(tmp_path / "out.csv")
    for target, name in zip(adapted.summary["targets"], ("kitchen.csv", "camping.csv"), strict=True):
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
    assert_allclose(adapted.summary["targets"][0]["source_only_error"], expected)


def test_target_rows_that_are_scored_and_written_pass_the_layers_once_at_most(files, tmp_path, monkeypatch):
    n_rows, real = [], MSDAClassifier.decision_function

    def spy(self, X, **options):
        n_rows.append(X.shape[0])
        return real(self, X, **options)

    monkeypatch.setattr(MSDAClassifier, "decision_function", spy)
    run_adapt(job_of(files, tmp_path, "kitchen", "camping", target_label="truth"), small())
    assert n_rows == []  # the fit knows their scores
    for name in ("TARGET_ROWS", "COMPARED_ROWS"):
        monkeypatch.setattr(f"undrift.method.layers.{name}", 200)
    run_adapt(job_of(files, tmp_path, "kitchen", "camping", target_label="truth"), small())
    assert n_rows == [120, 120]


def test_several_sources_and_targets_with_other_columns(files, tmp_path, reviews):
    texts, labels = reviews["electronics"]
    extra = write_csv(tmp_path / "extra.csv", {"label": labels, "text": texts, "seller": ["x"] * 120})
    out = tmp_path / "out.csv"
    job = AdaptJob([files["books"], extra], [files["kitchen"], extra], "text", "label", out)
    summary = run_adapt(job, small()).summary
    rows = read_csv(out)
    columns = ["id", "text", "truth", "label", "seller", "prediction", "score", "probability", "domain"]
    assert list(rows[0]) == columns
    assert [row["domain"] for row in rows] == ["kitchen.csv"] * 120 + ["extra.csv"] * 120
    assert [row["text"] for row in rows] == reviews["kitchen"][0] + texts
    assert [row["seller"] for row in rows] == [""] * 120 + ["x"] * 120
    assert summary["notes"] == ["extra.csv has a column 'label': ignored (score with --target-label)"]


def test_labels_in_the_target_change_nothing(files, tmp_path, reviews):
    run_adapt(job_of(files, tmp_path), small())
    before = [row["score"] for row in read_csv(tmp_path / "out.csv")]
    texts, _ = reviews["kitchen"]
    for labels in (["positive"] * 120, ["?"] * 120):
        files["kitchen"] = write_csv(tmp_path / "kitchen.csv", {"text": texts, "label": labels})
        summary = run_adapt(job_of(files, tmp_path), small()).summary
        assert [row["score"] for row in read_csv(tmp_path / "out.csv")] == before
        assert any("ignored" in note for note in summary["notes"])


def test_every_document_is_analysed_four_times_at_most(files, tmp_path, monkeypatch):
    """For unseen words, vocabulary and rows; the first thousand for tokens and to describe a target."""
    from undrift.text import tokens

    seen, original = [], tokens.normalise
    monkeypatch.setattr(tokens, "normalise", lambda document: seen.append(document) or original(document))
    run_adapt(job_of(files, tmp_path, target_label="truth"), small())
    assert 0 < len(seen) <= 4 * 240 + 120


def test_a_saved_model_predicts_the_same(files, tmp_path):
    job = job_of(files, tmp_path, model=tmp_path / "model.safetensors")
    run_adapt(job, small())
    again = PredictJob(model=job.model, input=files["kitchen"], out=tmp_path / "again.csv")
    assert run_predict(again)["rows"] == 120
    again = [row for row in read_csv(tmp_path / "again.csv") if row.pop("known_terms")]
    written = read_csv(tmp_path / "out.csv")
    assert [row["prediction"] for row in again] == [row["prediction"] for row in written]
    scores = [[float(row["score"]) for row in rows] for rows in (again, written)]
    assert_allclose(*scores, atol=1e-3)  # the file is in half precision


def test_neither_predictions_nor_model_if_one_fails(files, tmp_path, monkeypatch):
    def full(estimator, path, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(adapt_module, "save_model", full)
    job = job_of(files, tmp_path, model=tmp_path / "model.safetensors")
    with pytest.raises(OSError, match="No space left"):
        run_adapt(job, small())
    assert sorted(os.listdir(tmp_path)) == sorted(path.name for path in files.values())


def test_a_failed_job_leaves_an_older_output_alone(files, tmp_path):
    (tmp_path / "out.csv").write_text("precious")

    def interrupt_writing(stage, share):
        if stage == "writing predictions":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_adapt(job_of(files, tmp_path), small(), interrupt_writing)
    assert (tmp_path / "out.csv").read_text() == "precious"
    assert not [name for name in os.listdir(tmp_path) if name.startswith(".")]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: {"sources": [t / "none.csv"]}, "none.csv does not exist"),
        (lambda t: {"targets": [t / "none.csv"]}, "none.csv does not exist"),
        (lambda t: {"text": "txt"}, r"books.csv has no column 'txt'; did you mean 'text'\?"),
        (lambda t: {"label": "lable"}, r"books.csv has no column 'lable'; did you mean 'label'\?"),
        (lambda t: {"target_label": "trouth"}, r"kitchen.csv has no column 'trouth'; did you mean 'truth'"),
        (lambda t: {"label": "id"}, "120 different labels in 120 rows; is it the column of labels"),
        (lambda t: {"out": t / "books.csv"}, "books.csv would replace another file of this job"),
        (lambda t: {"out": t / "kitchen.csv"}, "kitchen.csv would replace another file of this job"),
        (lambda t: {"out": t / "no" / "out.csv"}, "there is no folder"),
        (lambda t: {"out": t / "out.doc"}, "cannot tell the format from the name"),
        (lambda t: {"out": t}, "cannot tell the format|is a folder"),
        (lambda t: {"model": t / "out.csv"}, "would replace another file"),
        (lambda t: {"model": t / "no" / "model"}, "model cannot be written: No such file"),
        (lambda t: {"model": t}, "is a folder"),
    ],
)
def test_what_is_wrong_with_a_job_is_said_before_the_work(files, tmp_path, change, message, monkeypatch):
    fields = {**vars(job_of(files, tmp_path)), **change(tmp_path)}
    monkeypatch.setattr(TextAdapter, "fit_rows", None)  # would fail otherwise
    before = sorted(os.listdir(tmp_path))
    with pytest.raises(TableError, match=message) as caught:
        run_adapt(AdaptJob(**fields), small())
    assert "\n" not in str(caught.value)
    assert sorted(os.listdir(tmp_path)) == before


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([""] * 4, r"books.csv: column 'label' has no label"),
        (["a", "a", "", "a"], r"books.csv: column 'label' has the label 'a' alone"),
    ],
)
def test_labels_that_teach_nothing(files, tmp_path, labels, message):
    write_csv(files["books"], {"text": ["one", "two", "three", "four"], "label": labels})
    with pytest.raises(TableError, match=message):
        run_adapt(job_of(files, tmp_path), small())


def test_files_without_rows(files, tmp_path):
    write_csv(files["kitchen"], {"text": []})
    with pytest.raises(TableError, match=r"kitchen.csv has a header but no rows"):
        run_adapt(job_of(files, tmp_path), small())
    write_csv(files["books"], {"text": [], "label": []})
    with pytest.raises(TableError, match=r"books.csv has a header but no rows"):
        run_adapt(job_of(files, tmp_path), small())


def test_documents_without_words(files, tmp_path):
    write_csv(files["books"], {"text": ["...", "!", "", "?"] * 6, "label": ["a", "b", "a", "b"] * 6})
    write_csv(files["kitchen"], {"text": ["", "--"] * 15})
    with pytest.raises(ValueError, match="no words in the 54 documents"):
        run_adapt(job_of(files, tmp_path), small())


def test_a_clash_of_columns_is_seen_early(files, tmp_path, reviews, monkeypatch):
    texts, _ = reviews["kitchen"]
    names = ["score", "probability", "p_negative", "domain"]
    with monkeypatch.context() as patch:
        patch.setattr(TextAdapter, "fit_rows", None)
        for name in names:
            write_csv(files["kitchen"], {"text": texts, name: [1] * 120})
            with pytest.raises(TableError, match=rf"kitchen.csv already has a column '{name}'.*; rename it"):
                run_adapt(job_of(files, tmp_path, "kitchen", "camping", probabilities=True), small())


def test_disjoint_vocabularies_are_a_warning(files, tmp_path):
    words = ["gut", "schlecht", "toll", "mies"]
    write_csv(files["kitchen"], {"text": [f"{word} wirklich {word}" for word in words * 10]})
    summary = run_adapt(job_of(files, tmp_path), small()).summary
    told = "100% of the words of kitchen.csv never occur in the source (overlap 0%)"
    assert sum(told in warning for warning in summary["warnings"]) == 1
    assert (tmp_path / "out.csv").exists()


def test_a_target_without_any_truth(files, tmp_path, reviews):
    write_csv(files["kitchen"], {"text": reviews["kitchen"][0], "truth": [""] * 120})
    summary = run_adapt(job_of(files, tmp_path, target_label="truth"), small()).summary
    assert summary["targets"][0]["scored"] == 0
    assert summary["targets"][0]["adapted_error"] is None
    assert "kitchen.csv has no label to score with" in summary["notes"]


def test_truth_of_other_names_is_a_warning(files, tmp_path, reviews):
    write_csv(files["kitchen"], {"text": reviews["kitchen"][0], "truth": ["1", "0"] * 60})
    summary = run_adapt(job_of(files, tmp_path, target_label="truth"), small()).summary
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
    summary = run_adapt(job, small()).summary
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
        ([1.0, "1", 2, "2.0"], ["1", "1", "2", "2"]),
        ([True, False], [True, False]),
        ([True, 2], ["True", "2"]),
    ],
)
def test_labels_become_unify_labels(labels, expected):
    assert unify_labels(labels) == expected
    assert [type(label) for label in unify_labels(labels)] == [type(label) for label in expected]


def test_bad_rows_are_counted(files, tmp_path):
    with files["kitchen"].open("a") as file:
        file.write("only one field\n")
    with pytest.raises(TableError, match=r"kitchen.csv:122: the row has 1 field, the header 3"):
        run_adapt(job_of(files, tmp_path), small())
    summary = run_adapt(job_of(files, tmp_path, reading=Reading(skip_bad=True)), small()).summary
    assert summary["targets"][0]["bad_rows"] == 1
    assert summary["targets"][0]["rows"] == len(read_csv(tmp_path / "out.csv")) == 120


def test_another_encoding_is_a_warning(files, tmp_path):
    text = files["kitchen"].read_text().replace("The ", "Thé ")
    files["kitchen"].write_bytes(text.encode("latin-1"))
    summary = run_adapt(job_of(files, tmp_path), small()).summary
    assert any("Windows-1252" in warning for warning in summary["warnings"])
    summary = run_adapt(job_of(files, tmp_path, reading=Reading(encoding="latin-1")), small()).summary
    assert summary["warnings"] == []


def test_the_rule_is_named_where_there_was_a_choice(files, tmp_path):
    summary = run_adapt(job_of(files, tmp_path), small(C=[0.01, 0.3, 30.0], random_state=0)).summary
    assert (summary["rule"], summary["n_candidates"]) == ("source-cv", 3)


def test_every_stage_is_shown(files, tmp_path):
    shown = []
    job = job_of(files, tmp_path, model=tmp_path / "m.safetensors")
    run_adapt(job, small(), lambda stage, share: shown.append((stage, share)))
    stages = list(dict.fromkeys(stage for stage, _ in shown))
    assert stages[:2] == ["reading books.csv", "reading kitchen.csv"]
    assert stages[-3:] == ["writing predictions", "describing the target", "saving the model"]
    assert ("reading books.csv", 1.0) in shown


def test_other_warnings_stay_where_they_are(files, tmp_path):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run_adapt(job_of(files, tmp_path), small())
    assert caught == []
