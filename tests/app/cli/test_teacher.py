"""`undrift adapt --teacher`: labels of target rows by another model, some of them wrong."""

import json
import re

import numpy as np
import pytest

from tests.helpers.commands import SMALL, change_options, check_refused
from tests.helpers.review_files import convert_table, make_review_texts, read_csv, write_csv
from undrift import load_model

N_ROWS = 400
FLIPPED = {"negative": "positive", "positive": "negative"}
TAUGHT = ["adapt", "--target", "kitchen.csv", "--text", "review", "--teacher", "llm", "--out", "out.csv"]
TAUGHT = change_options([*TAUGHT, *SMALL], max_features="1000")
WITH_SOURCE = [*TAUGHT, "--source", "books.csv", "--label", "stars"]


@pytest.fixture(scope="module")
def columns():
    """Reviews of two products; the teacher is wrong on 15% of the rows, which it is less sure of."""
    texts = make_review_texts(N_ROWS, unlabelled_share=0.0, seed=3, style="mixed")
    books, kitchen, rng = texts["books"], texts["kitchen"], np.random.default_rng(0)
    is_wrong = rng.random(N_ROWS) < 0.15
    answers = [FLIPPED[y] if wrong else y for y, wrong in zip(kitchen[1], is_wrong, strict=True)]
    sure = np.where(is_wrong, 0.6, 0.95).tolist()
    target = {"review": kitchen[0], "truth": kitchen[1], "llm": answers, "sure": sure}
    return {"books": {"review": books[0], "stars": books[1]}, "kitchen": target}


@pytest.fixture
def folder(tmp_path, columns, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, own in columns.items():
        write_csv(tmp_path / f"{name}.csv", own)
    return tmp_path


def write_target(columns, **changes):
    write_csv("kitchen.csv", {**columns["kitchen"], **changes})


def summarize(undrift, *command):
    status, out, err = undrift(*command, "--target-label", "truth", "--json")
    assert status == 0, err
    return json.loads(out, parse_constant=pytest.fail)  # no NaN, which is not JSON


def share_wrong(rows, column="prediction"):
    return np.mean([row[column] != row["truth"] for row in rows])


@pytest.mark.parametrize("command", [TAUGHT, WITH_SOURCE], ids=["without-source", "with-source"])
def test_predictions_are_better_than_the_teacher(folder, undrift, columns, command):
    summary = summarize(undrift, *command)
    rows, (entry,) = read_csv("out.csv"), summary["targets"]
    assert list(rows[0])[-4:] == ["prediction", "score", "probability", "teacher_disagrees"]
    assert summary["classes"] == ["negative", "positive"]
    assert [source["file"] for source in summary["sources"]] == ["books.csv"] * (command is WITH_SOURCE)
    assert share_wrong(rows) < share_wrong(rows, "llm") - 0.01
    assert entry["adapted_error"] == pytest.approx(share_wrong(rows))
    said = entry["teacher"]
    assert said["n_labels"] == said["n_scored"] == N_ROWS
    assert said["n_disagreeing"] == sum(row["teacher_disagrees"] == "true" for row in rows)
    assert {row["teacher_disagrees"] for row in rows} == {"true", "false"}
    assert said["teacher_error"] == pytest.approx(share_wrong(rows, "llm"))
    assert said["both_error"] == pytest.approx(share_wrong(rows))
    student = [FLIPPED[row["llm"]] if row["teacher_disagrees"] == "true" else row["llm"] for row in rows]
    assert said["student_error"] == pytest.approx(np.mean(np.array(student) != columns["kitchen"]["truth"]))
    assert all(rows[i - 1]["teacher_disagrees"] == "true" for i in said["surest_rows"])
    texts = [re.sub(r"\W", " ", rows[i - 1]["review"].lower()) for i in said["surest_rows"]]
    assert len(texts) == min(10, said["n_disagreeing"])
    assert said["words"]
    assert all(any(set(word.split()) <= set(text.split()) for text in texts) for word in said["words"])
    n_exchanged = said["noise"] * N_ROWS
    assert said["n_probably_wrong"] == round((n_exchanged + max(said["n_disagreeing"], n_exchanged)) / 2)


def test_a_column_filled_for_some_rows_is_enough(folder, undrift, columns):
    answers = [label if i % 2 else "" for i, label in enumerate(columns["kitchen"]["llm"])]
    write_target(columns, llm=answers)
    summary = summarize(undrift, *WITH_SOURCE, "--distilled", "small.safetensors", "--model", "m.safetensors")
    rows, said = read_csv("out.csv"), summary["targets"][0]["teacher"]
    assert [row["teacher_disagrees"] == "" for row in rows] == [not answer for answer in answers]
    assert all(row["prediction"] for row in rows)
    assert said["n_labels"] == said["n_scored"] == N_ROWS // 2
    assert said["n_probably_wrong"] is None  # few labels: the prior decides about noise
    assert "too few to say how many are wrong" in " ".join(undrift(*WITH_SOURCE)[1].split())
    model, small = load_model("m.safetensors"), load_model("small.safetensors")
    texts = columns["kitchen"]["review"]
    student = model.predict(texts)  # a saved model is the student alone
    disagrees = [
        str(own != label).lower() if label else "" for own, label in zip(student, answers, strict=True)
    ]
    assert [row["teacher_disagrees"] for row in rows] == disagrees
    assert np.mean(small.predict(texts) == student) > 0.9
    both = model.predict(texts, teacher=[answer or None for answer in answers])
    assert [row["prediction"] for row in rows] == both.tolist()
    assert (both != student).any()


def test_some_files_of_a_pattern_may_lack_the_teachers_column(folder, undrift, columns):
    """The rows of the other files are silent."""
    for k in range(2):
        names, own = ["review", "truth", "llm"][: 3 - k], slice(200 * k, 200 * k + 200)
        write_csv(f"part-{k}.csv", {name: columns["kitchen"][name][own] for name in names})
    summary = summarize(undrift, *change_options(WITH_SOURCE, target="part-*.csv"))
    assert summary["targets"][0]["teacher"]["n_labels"] == 200
    assert [row["teacher_disagrees"] == "" for row in read_csv("out.csv")] == [False] * 200 + [True] * 200


def test_confidences_weigh_the_labels(folder, undrift):
    plain = summarize(undrift, *TAUGHT)["targets"][0]["teacher"]
    weighed = summarize(undrift, *TAUGHT, "--teacher-confidence", "sure")["targets"][0]["teacher"]
    assert weighed["both_error"] < plain["both_error"]


def test_summary_and_report_have_one_line_on_the_teacher(folder, undrift):
    status, out, _ = undrift(*TAUGHT, "--report", "report.html")
    said = " ".join(out.split())
    assert status == 0
    assert said.startswith("Read kitchen.csv: 400 rows, text = review. kitchen.csv: about ")
    assert "Teacher of kitchen.csv: 400 labels, about " in said
    assert "Wrong on" not in said
    line = said[said.index("Teacher of") : said.index(" Wrote")]
    assert line in (folder / "report.html").read_text(encoding="utf-8")
    out = " ".join(undrift(*TAUGHT, "--target-label", "truth")[1].split())
    assert "with a linear SVM trained on the teacher's labels" in out
    assert "Wrong on 400 labelled rows: teacher 1" in out


def test_labels_are_spelt_like_the_source_and_files_of_any_format_work(folder, undrift, columns):
    write_target(columns, llm=[f" {label.upper()}" for label in columns["kitchen"]["llm"]])
    convert_table(folder / "kitchen.csv", folder / "kitchen.jsonl")
    command = change_options(WITH_SOURCE, target="kitchen.jsonl", out="out.jsonl")
    assert summarize(undrift, *command)["classes"] == ["negative", "positive"]
    lines = (folder / "out.jsonl").read_text(encoding="utf-8").splitlines()
    assert {json.loads(line)["teacher_disagrees"] for line in lines} == {True, False}


def test_every_target_needs_the_column(folder, undrift, columns):
    write_csv("camping.csv", {"review": columns["kitchen"]["review"]})
    command = [*TAUGHT, "--target", "camping.csv"]
    said = check_refused(undrift, folder, command)
    assert said.startswith("camping.csv has no column 'llm'")
    half = {name: values[: N_ROWS // 2] for name, values in columns["kitchen"].items()}
    write_csv("camping.csv", half)
    entries = summarize(undrift, *command)["targets"]
    assert [entry["teacher"]["n_labels"] for entry in entries] == [N_ROWS, N_ROWS // 2]


@pytest.mark.parametrize("command", [TAUGHT, WITH_SOURCE], ids=["without-source", "with-source"])
def test_teachers_that_say_too_little_are_refused(folder, undrift, columns, command):
    write_target(columns, llm=["positive"] * N_ROWS)
    said = check_refused(undrift, folder, command)
    assert said.startswith("kitchen.csv: column 'llm' has the label 'positive' alone; ")
    write_target(columns, llm=["positive", "negative", "positive"] + [""] * (N_ROWS - 3))
    said = check_refused(undrift, folder, command)
    assert said.startswith("kitchen.csv: column 'llm' has 3 labels; ")


def test_a_class_that_the_source_lacks_is_refused(folder, undrift, columns):
    write_target(columns, llm=[*columns["kitchen"]["llm"][:-1], "neutral"])
    said = check_refused(undrift, folder, WITH_SOURCE)
    place = "kitchen.csv: column 'llm': row 400 has the label 'neutral'"
    assert said == f"{place}; the classes are negative, positive"


@pytest.mark.parametrize("cell", ["high", "1.2", "-0.1", "inf"])
def test_confidences_that_are_no_probability_are_refused(folder, undrift, columns, cell):
    write_target(columns, sure=[0.9, "", cell, *[0.8] * (N_ROWS - 3)])
    said = check_refused(undrift, folder, [*TAUGHT, "--teacher-confidence", "sure"])
    fault = f"row 3 has '{cell}'; a confidence is a number from 0 to 1"
    assert said == f"kitchen.csv: column 'sure': {fault}"


def test_options_that_do_not_go_together_are_refused(folder, undrift):
    confidence = [*change_options(WITH_SOURCE, teacher=None), "--teacher-confidence", "sure"]
    assert check_refused(undrift, folder, confidence).endswith(": add --teacher COL")
    report = [*TAUGHT, "--device", "local", "--report", "report.html"]
    assert check_refused(undrift, folder, report).startswith("--report needs the documents here")
    both = [*TAUGHT, "--target-label", "truth", "--use-labels", "both"]
    assert "choose score or train" in check_refused(undrift, folder, both)
    said = check_refused(undrift, folder, change_options(WITH_SOURCE, label=None))
    assert said == "Missing option '--label': books.csv has the columns review, stars"
    said = check_refused(undrift, folder, change_options(TAUGHT, target=None))
    assert said == "Missing option '--target' (or the file as an argument)"


def test_files_without_a_name_are_source_and_target_or_the_target_alone(folder, undrift):
    unnamed = change_options(TAUGHT, target=None)
    assert summarize(undrift, *unnamed, "kitchen.csv")["sources"] == []
    summary = summarize(undrift, *unnamed, "books.csv", "kitchen.csv", "--label", "stars")
    assert [source["file"] for source in summary["sources"]] == ["books.csv"]


def test_a_row_without_words_disagrees_with_no_teacher(folder, undrift, columns):
    """Its student knows nothing: a label against the larger class is no mistake."""
    reviews = [*columns["kitchen"]["review"][:-20], *[""] * 20]
    answers = [*columns["kitchen"]["llm"][:-20], *["negative", "positive"] * 10]
    write_target(columns, review=reviews, llm=answers)
    entry = summarize(undrift, *TAUGHT)["targets"][0]["teacher"]
    rows = read_csv("out.csv")
    assert {row["teacher_disagrees"] for row in rows[-20:]} == {"false"}
    assert entry["n_labels"] == N_ROWS
    assert entry["n_disagreeing"] == sum(row["teacher_disagrees"] == "true" for row in rows[:-20])
