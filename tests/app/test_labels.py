"""Labels of target rows: matched by text, learnt, and never scored twice."""

from dataclasses import astuple

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from tests.helpers.review_files import make_review_texts, read_csv, write_csv
from tests.report.test_evidence import weighted_interval
from undrift import MSDAClassifier, TextAdapter, UndriftWarning, load_model
from undrift.app.adapt import run_adapt
from undrift.app.ask import run_ask
from undrift.app.domains import parse_label
from undrift.app.job import AdaptJob, AskJob, UpdateJob
from undrift.app.labels import TrainingLabels, cross_fit, read_labels
from undrift.app.tables import TableError, open_table
from undrift.app.update import run_update
from undrift.errors import count
from undrift.results import Comparison
from undrift.text import hash_text

CLASSES = ["negative", "positive"]


@pytest.fixture(scope="module")
def reviews():
    return make_review_texts(120, unlabelled_share=0.0, seed=3)


def build_adapter(**changes):
    classifier = MSDAClassifier(n_layers=1, random_state=0, **changes)
    return TextAdapter(120, classifier=classifier)


@pytest.fixture
def files(tmp_path, reviews):
    (books, stars), (kitchen, truth) = reviews["books"], reviews["kitchen"]
    write_csv(tmp_path / "books.csv", {"text": books, "label": stars})
    write_csv(tmp_path / "kitchen.csv", {"text": kitchen, "id": [str(i) for i in range(len(kitchen))]})
    return {"folder": tmp_path, "texts": kitchen, "truth": truth}


def make_job(files, **options):
    folder = files["folder"]
    columns = ("text",), "label"
    return AdaptJob([folder / "books.csv"], [folder / "kitchen.csv"], *columns, folder / "out.csv", **options)


def write_labels(files, rows, name="labels.csv", **columns):
    """Labels of some rows of the target, the texts written differently."""
    texts = [f"  {files['texts'][i].upper()}\t" for i in rows]
    columns = {"text": texts, "label": [files["truth"][i] for i in rows], **columns}
    return write_csv(files["folder"] / name, columns)


def find_wrong(files, rows):
    out = read_csv(files["folder"] / "out.csv")
    return np.array([out[i]["prediction"] != files["truth"][i] for i in rows])


def error_of(files, rows, weights=None):
    return float(np.average(find_wrong(files, rows), weights=weights))


def test_scores_are_weighted_and_leave_rows_for_predictions_out(files):
    rows, rng = list(range(60)), np.random.default_rng(0)
    sampled = ["estimate"] * 40 + ["predictions"] * 15 + [""] * 5
    weights = rng.integers(1, 9, 40).astype(float)
    columns = {"sampled": sampled, "weight": [*map(str, weights), *[""] * 20]}
    path = write_labels(files, rows, **columns)
    (entry,) = run_adapt(make_job(files, labels=path), build_adapter()).to_dict()["targets"]
    assert entry["scored"] == 40
    assert_allclose(entry["adapted_error"], error_of(files, rows[:40], weights))
    assert entry["adapted_error"] != error_of(files, rows[:40])
    _, *interval = weighted_interval(weights, find_wrong(files, rows[:40]))
    assert_allclose(entry["adapted_error_interval"], interval)
    is_positive = np.array(files["truth"][:40]) == "positive"
    assert_allclose(entry["labelled_shares"]["positive"], weights[is_positive].sum() / weights.sum())
    assert sum(entry["labelled_shares"].values()) == pytest.approx(1)
    for uses in ("train", "both"):
        (entry,) = run_adapt(make_job(files, labels=path, use_labels=uses), build_adapter()).to_dict()[
            "targets"
        ]
        assert entry["scored"] == (0 if uses == "train" else 40)


def test_rows_of_one_text_share_the_weight_of_its_label(files):
    write_csv(files["folder"] / "kitchen.csv", {"text": [*files["texts"], *files["texts"][:10]]})
    rows, weights = list(range(40)), np.repeat([2.0, 1.0], [10, 30])  # the first ten stand for two rows each
    columns = {"sampled": ["estimate"] * 40, "weight": list(map(str, weights))}
    path = write_labels(files, rows, **columns)
    (entry,) = run_adapt(make_job(files, labels=path), build_adapter()).to_dict()["targets"]
    assert entry["scored"] == 50
    assert_allclose(entry["adapted_error"], error_of(files, rows, weights))


def test_rows_that_stand_in_the_source_are_not_scored(files, reviews):
    books, stars = reviews["books"]
    twice = [i for i in range(20) if stars[i]]
    texts = [*files["texts"], *(f" {books[i].upper()} " for i in twice)]
    truth = [*files["truth"], *(stars[i] for i in twice)]
    write_csv(files["folder"] / "kitchen.csv", {"text": texts, "truth": truth})
    summary = run_adapt(make_job(files, target_label="truth"), build_adapter()).to_dict()
    assert summary["targets"][0]["scored"] == sum(map(bool, files["truth"]))
    (note,) = [note for note in summary["notes"] if "in the source too" in note]
    assert note.startswith(f"{len(twice)} labelled rows of kitchen.csv not scored")


@pytest.mark.parametrize("uses", ["train", "both"])
def test_labels_are_learnt(files, uses, tmp_path):
    rows = list(range(0, 120, 2))
    path, model = write_labels(files, rows), tmp_path / "model.safetensors"
    summary = run_adapt(
        make_job(files, labels=path, use_labels=uses, model=model, updatable=True), build_adapter()
    ).to_dict()
    learnt = [row["score"] for row in read_csv(files["folder"] / "out.csv")]
    base = build_adapter()
    run_adapt(make_job(files, model=tmp_path / "base.safetensors", updatable=True), base)
    texts = [files["texts"][i] for i in rows]
    y = np.array([files["truth"][i] for i in rows], dtype=object)
    updated = load_model(tmp_path / "base.safetensors").update(texts, y)
    expected = updated.decision_function(files["texts"])
    assert_allclose(np.array(learnt, dtype=float), expected, atol=1e-3)
    assert np.abs(expected - base.decision_function(files["texts"])).max() > 0.05
    assert summary["n_learnt"] == len(rows)
    (entry,) = summary["targets"]
    if uses == "train":
        assert entry["scored"] == 0
        return
    assert entry["scored"] == len(rows)


def test_cross_fitting_never_sees_the_label_of_a_row_or_of_its_duplicate():
    """Every text stands twice, in different spellings; what each classifier learns is looked at."""
    X = sparse.csr_array(np.repeat(np.eye(12), 2, axis=0))
    keys = np.repeat(np.arange(100, 112), 2).tolist()
    y = np.repeat(np.array(["a", "b"] * 6, dtype=object), 2)
    labels = TrainingLabels(X, y, np.full(24, "k", dtype=object), keys, np.ones(24))
    learnt = []

    class Classifier:
        seen = frozenset()

        def update(self, rows, y, target):
            learnt.append(rows.shape[0])
            self.seen = self.seen | set(rows.indices.tolist())

        def predict(self, rows, target):
            wanted = set(rows.indices.tolist())
            assert not wanted & self.seen
            assert wanted | self.seen == set(range(12))
            assert target == "k"
            return np.array(["a"] * rows.shape[0], dtype=object)

    assert cross_fit(Classifier(), labels).tolist() == ["a"] * 24
    assert len(learnt) == 5
    assert sum(24 - n for n in learnt) == 24


def test_rows_without_a_known_term_are_learnt_if_their_labels_agree(files):
    """To the model they are one row."""
    texts = [*files["texts"], "qwerty", "asdfgh", "zxcvbn"]
    for last, n in (("negative", 3), ("positive", 3)):
        truth = ["negative", "positive"] * 10 + [""] * 100 + ["negative", "negative", last]
        write_csv(files["folder"] / "kitchen.csv", {"text": texts, "truth": truth})
        job = make_job(files, target_label="truth", use_labels="train")
        assert run_adapt(job, build_adapter()).to_dict()["n_learnt"] == 20 + n


def test_contradicting_labels_are_left_out(files):
    texts = [files["texts"][0], files["texts"][0].upper(), *files["texts"][1:20]]
    labels = ["negative", "positive", *files["truth"][1:20]]
    path = write_csv(files["folder"] / "odd.csv", {"text": texts, "label": labels})
    with pytest.warns(UndriftWarning, match=r"1 text with contradicting labels left out"):
        given = read_labels(open_table(path), ("text",), ["label"], CLASSES)
    assert len(given) == 19
    summary = run_adapt(make_job(files, labels=path, use_labels="train"), build_adapter()).to_dict()
    assert summary["n_learnt"] == 19
    assert sum("contradicting" in warning for warning in summary["warnings"]) == 1


def test_labels_have_weights(files, tmp_path):
    texts, truth = files["texts"][:4], files["truth"][:4]
    rows = {"review": texts, "label": truth, "answer": ["yes"] * 4, "weight": ["2.5", "nan", "", "1"]}
    path = write_csv(tmp_path / "questions.csv", rows)
    given = read_labels(open_table(path), ("review",), ["label"], CLASSES).values()
    assert [(g.label, g.weight) for g in given] == list(zip(truth, [2.5, 1.0, 1.0, 1.0], strict=True))


def test_labels_to_learn_from_must_be_there(files):
    write_csv(files["folder"] / "kitchen.csv", {"text": files["texts"], "truth": [""] * 120})
    with pytest.raises(TableError, match=r"kitchen.csv: no row has a label to learn from"):
        run_adapt(make_job(files, use_labels="train", target_label="truth"), build_adapter())
    write_csv(files["folder"] / "kitchen.csv", {"text": files["texts"], "truth": ["good"] * 120})
    with pytest.raises(TableError, match="the label 'good' cannot be learnt; the classes are negative"):
        run_adapt(make_job(files, use_labels="both", target_label="truth"), build_adapter())


def test_mistakes_are_summed_by_weight():
    y, first, second = [0, 0, 1, 1, 1], [0, 1, 1, 0, 0], [0, 0, 0, 1, 0]
    sums = Comparison.of_labels(y, np.ones(5), first, second)
    assert astuple(sums) == (5, 5, 5, 3, 3, 2, 2, 1, 2, 1, 3, 2)
    weight = np.array([1.0, 2, 3, 4, 5])
    sums = Comparison.of_labels(y, weight, first, second)
    assert astuple(sums) == (5, 15, 55, 11, 45, 8, 34, 5, 2, 1, 11, 8)
    parts = (
        Comparison.of_labels(y[own], weight[own], first[own], second[own]) for own in (slice(2), slice(2, 5))
    )
    assert sum(parts, Comparison()) == sums
    stars = Comparison.of_labels(["1", "5"], np.ones(2), ["3", "5"], ["2", "1"])
    assert stars.mean_distances == (1, 2.5)
    words = Comparison.of_labels(["good", "bad"], np.ones(2), ["bad", "bad"], ["bad", "bad"])
    assert words.mean_distances is None


@pytest.fixture
def model(files):
    path = files["folder"] / "model.safetensors"
    run_adapt(make_job(files, model=path, updatable=True), build_adapter())
    return path


@pytest.mark.parametrize("purpose", ["predictions", "estimate"])
def test_ask_writes_rows_with_all_their_columns(files, model, purpose):
    folder = files["folder"]
    job = AskJob(model=model, input=folder / "kitchen.csv", out=folder / "ask.csv", n=12, purpose=purpose)
    summary = run_ask(job).facts
    rows = read_csv(job.out)
    assert list(rows[0]) == ["text", "id", "label", "sampled", "weight"]
    assert summary["asked"] == len(rows) == 12
    assert len({row["id"] for row in rows}) == 12
    assert all(files["texts"][int(row["id"])] == row["text"] for row in rows)
    assert {row["label"] for row in rows} == {""}
    n_questions = 5 if purpose == "predictions" else 0
    assert summary["questions"] == n_questions
    sampled = ["predictions"] * n_questions + ["estimate"] * (12 - n_questions)
    assert [row["sampled"] for row in rows] == sampled
    expected, weights = load_model(model).ask(
        files["texts"], 12, purpose, return_weights=True, random_state=0
    )
    assert [int(row["id"]) for row in rows] == expected.tolist()
    if purpose == "estimate":
        assert_allclose([float(row["weight"]) for row in rows], weights, rtol=1e-5)
        assert_allclose(sum(weights), 120)
    else:
        assert [row["weight"] for row in rows[:5]] == [""] * 5
        assert_allclose([float(row["weight"]) for row in rows[5:]], weights[5:], rtol=1e-5)


def test_update_learns_and_measures_what_was_drawn_for_an_estimate(files, model):
    rows = list(range(0, 120, 3))
    weights = np.where(np.arange(len(rows)) % 2, 1.0, 5.0)
    path = write_labels(files, rows, sampled=["estimate"] * len(rows), weight=[*map(str, weights)])
    out = files["folder"] / "new.safetensors"
    summary = run_update(UpdateJob(model=model, out=out, labels=path)).facts
    old, new = load_model(model), load_model(out)
    texts, truth = (
        [files["texts"][i] for i in rows],
        np.array([files["truth"][i] for i in rows], dtype=object),
    )
    measured = summary["measured_before"]
    assert_allclose(measured["error"], np.average(old.predict(texts) != truth, weights=weights))
    assert measured["rows"] == len(rows)
    assert_allclose(
        new.decision_function(texts), old.update(texts, truth).decision_function(texts), atol=1e-3
    )
    assert summary["n_labels"] == len(rows)
    X, names = old.vectorizer_.transform(texts), np.full(len(rows), "kitchen.csv", dtype=object)
    labels = TrainingLabels(X, truth, names, [hash_text(text) for text in texts], weights)
    again = cross_fit(load_model(model).classifier_, labels)
    assert_allclose(summary["measured"]["error"], np.average(again != truth, weights=weights))
    assert summary["changed"]["rows"] == 120
    assert summary["n_unmatched"] == 0
    assert summary["bytes"] == out.stat().st_size


def test_labels_that_were_learnt_before_are_measured_without_them(files, model):
    """A second update with the same labels says what the first did."""
    path, out = write_labels(files, range(0, 120, 2)), files["folder"] / "new.safetensors"
    adapted = TextAdapter(300, classifier=MSDAClassifier(3, random_state=0))
    run_adapt(make_job(files, model=model, updatable=True), adapted)
    first, second = (run_update(UpdateJob(model=each, out=out, labels=path)).facts for each in (model, out))
    for name in ("measured", "measured_before", "expected_error_before"):
        assert second[name]["error"] == pytest.approx(first[name]["error"], abs=0.02)
    assert second["changed"]["predictions"] == 0


@pytest.mark.filterwarnings("ignore:the error of the new batch is not known")  # it has one class
def test_update_takes_a_new_batch(files, model, reviews):
    kitchen, truth = reviews["kitchen"]
    one = [text for text, label in zip(kitchen, truth, strict=True) if label != "negative"]
    path = write_csv(files["folder"] / "may.csv", {"text": one})
    out = files["folder"] / "new.safetensors"
    summary = run_update(UpdateJob(model=model, out=out, input=path)).facts
    expected = load_model(model).update_target(one)
    new = load_model(out)
    assert_allclose(new.decision_function(one), expected.decision_function(one), atol=1e-3)
    assert summary["rows"] == len(one)
    assert new.facts_["references"]["kitchen.csv"]["n"] == len(one)
    foreign = [f"ganz andere Woerter {i}" for i in range(60)]
    path = write_csv(files["folder"] / "july.csv", {"text": foreign + one[:40]})
    with pytest.warns(UndriftWarning, match="only 40% of the rows have a term that the model knows"):
        run_update(UpdateJob(model=model, out=out, input=path))
    path = files["folder"] / "may.csv"
    run_update(UpdateJob(model=model, out=out, input=path))
    labels = write_labels(files, range(6))
    summary = run_update(UpdateJob(model=out, out=out, labels=labels)).facts
    assert summary["changed"]["rows"] == len(kitchen)  # the rows that the model keeps: those of the fit
    new = {"text": [files["texts"][0], foreign[0]], "label": ["negative", "positive"]}
    path = write_csv(files["folder"] / "odd.csv", new)
    assert run_update(UpdateJob(model=out, out=out, labels=path)).facts["n_unmatched"] == 1
    other = [text for text in reviews["camping"][0] if text not in kitchen]
    run_update(
        UpdateJob(model=model, out=out, input=write_csv(files["folder"] / "camping.csv", {"text": other}))
    )
    new = {"text": [kitchen[0], other[0], "zyxwv"], "label": ["negative", "positive", "positive"]}
    path = write_csv(files["folder"] / "odd.csv", new)
    assert run_update(UpdateJob(model=out, out=out, labels=path)).facts["n_unmatched"] == 2  # not of the fit


def test_missing_cells_are_no_labels_and_one_thing_is_counted_as_one():
    missing = (None, float("nan"), "", "  ", "nan", "NaN", " <NA> ")
    assert [parse_label(cell) for cell in missing] == [None] * 7
    cells = ["NA", "None", "nano", 0, False]
    assert [parse_label(cell) for cell in cells] == cells
    assert [count(n, "label") for n in (0, 1, 2, 1200)] == ["0 labels", "1 label", "2 labels", "1,200 labels"]
