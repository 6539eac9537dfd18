"""`undrift ask`, `undrift update` and the labels of `adapt`, as commands."""

import json
import re
import shlex

import numpy as np
import pytest

from tests.helpers.commands import ADAPT, change_options, check_refused
from tests.helpers.review_files import read_csv, write_csv
from undrift import load_model
from undrift.app.update import describe_measured
from undrift.results import Comparison, Score


def ask(model, **options):
    command = ["ask", "--model", model, "--input", "kitchen.csv", "--text", "review", "--out", "ask.csv"]
    return change_options([*command, "--n", "40"], **options)


def update(model, **options):
    command = ["update", "--model", model, "--labels", "ask.csv", "--text", "review", "--label", "label"]
    return change_options([*command, "--out", "new.safetensors"], **options)


def fill_labels(name="ask.csv"):
    """Label the rows that were asked for, as a person would in a spreadsheet."""
    rows = read_csv(name)
    for row in rows:
        row["label"] = row["truth"]
    write_csv(name, {column: [row[column] for row in rows] for column in rows[0]})


@pytest.mark.parametrize("purpose", ["predictions", "estimate"])
def test_ask_label_update_predict(folder, undrift, succeed, model, purpose):
    status, out, err = undrift(*ask(model), "--for", purpose)
    assert (status, err) == (0, "")
    assert "Wrote ask.csv: 40 of 100 rows to label" in " ".join(out.split())
    assert "undrift update " in out
    suggested = shlex.split(out[out.index("undrift update") :])
    updated = f"{str(model).removesuffix('.safetensors')}-updated.safetensors"
    assert suggested == [
        *("undrift", "update", str(model), "ask.csv", "--out", updated, "--text", "review")
    ], "the text of the rows is named again"
    fill_labels()
    status, out, err = undrift(*update(model))
    assert (status, err) == (0, "")
    n_labels = sum(bool(row["label"]) for row in read_csv("ask.csv"))
    assert f"Learnt {n_labels} labels" in out
    assert re.search(r"Class shares: negative .*[\d.]+% to [\d.]+%.*, positive", " ".join(out.split()))
    said = " ".join(out.split())
    drawn = {r["review"] for r in read_csv("ask.csv") if r["label"] and r["sampled"] == "estimate"}
    given = {row["review"] for row in read_csv("ask.csv") if row["label"]}
    texts = [row["review"] for row in read_csv("kitchen.csv")]
    n_drawn, (n_equal, n_learnt) = len(drawn), (sum(t in each for t in texts) for each in (drawn, given))
    assert [row["sampled"] for row in read_csv("ask.csv")][:5] == [purpose] * 5
    assert ("The error is not measured" in said) == (n_drawn < 20)
    assert (f"measured on {n_drawn} labels" in said) == (n_drawn >= 20)
    assert ("the error" in said.split("without its own.")[-1]) == (n_drawn >= 20)
    assert re.search(r"\d+ of 100 predictions changed", said)
    winner = max(load_model("new.safetensors").readings_["kitchen.csv"], key=lambda own: own["weight"])
    assert said.count(f"Most likely ({winner['weight']:.0%} of the votes): {winner['story']}") == 1
    assert said.endswith("undrift predict new.safetensors NEW.csv --out predicted.csv --text review")
    predict = ["predict", "--input", "kitchen.csv", "--text", "review", "--out", "again.csv"]
    assert undrift(*predict, "--model", "new.safetensors", "--check")[0] == 0
    summary = json.loads(succeed(*update("new.safetensors", out="newer.safetensors"), "--json"))
    assert summary["n_labels"] == n_labels
    more = ["--labels", "ask.csv", "--json"]
    (target,) = json.loads(succeed(*ADAPT, *more))["targets"]
    assert target["scored"] == n_equal
    for uses, n_scored in (("train", 0), ("both", target["scored"])):
        summary = json.loads(succeed(*ADAPT, *more, "--use-labels", uses))
        assert (summary["targets"][0]["scored"], summary["n_learnt"]) == (n_scored, n_learnt)


def test_texts_that_are_not_of_the_fit_are_counted(folder, undrift, model):
    texts = [read_csv("kitchen.csv")[0]["review"], "the best of all", "it is the worst"]
    for given, said in (
        (texts[:2], "; 1 of their texts is not among"),
        (texts[1:], "; 2 of their texts are"),
    ):
        write_csv("own.csv", {"review": given, "label": ["positive", "negative"]})
        status, out, err = undrift("update", model, "own.csv", "--out", "new.safetensors")
        assert (status, err) == (0, "")
        assert f"Learnt 2 labels{said}" in " ".join(out.split())
    write_csv("own.csv", {"review": ["zzz", "qqq xxx"], "label": ["positive", "negative"]})
    command = ["update", model, "own.csv", "--out", "no.safetensors"]
    said = check_refused(undrift, folder, command)
    assert said == "own.csv: no labelled text has a word that the model knows"


@pytest.mark.parametrize(("expected", "is_contradicted"), [(0.05, True), (0.2, False)])
def test_labels_that_contradict_the_expected_error_say_so(expected, is_contradicted):
    """The error that was measured before the labels is compared: that after them is another model's."""
    wrong = np.arange(50)
    errors = Comparison.count(wrong < 15, wrong < 5, np.ones(50))
    said = describe_measured(errors, Score(expected, 0.0, 0.5))
    assert ("Trust this, not the 5% that was expected before" in said) == is_contradicted
    assert "10.0% wrong (95% interval 4.3% to 21.4%), measured on 50 labels, each predicted without" in said
    assert "The labels lowered the error by 20.0 points (7.9 to 30.6)." in said


def test_labels_of_no_weight_measure_no_error(folder, undrift, model):
    assert undrift(*ask(model), "--for", "estimate")[0] == 0
    fill_labels()
    rows = [row | {"weight": "0"} for row in read_csv("ask.csv")]
    write_csv("ask.csv", {column: [row[column] for row in rows] for column in rows[0]})
    status, out, err = undrift(*update(model), "--json")
    assert (status, err) == (0, "")
    assert json.loads(out)["measured"] is None
    status, out, err = undrift(*ADAPT, "--labels", "ask.csv", "--json")
    assert (status, "NaN" in out) == (0, False)


def test_a_batch_of_unknown_words(folder, undrift, model):
    """An update by it is refused, and nothing is said of predictions that are none."""
    write_csv(folder / "may.csv", {"review": [f"wort{i} anders{i}" for i in range(30)]})
    rows = ["--model", model, "--text", "review"]
    command = ["update", *rows, "--target", "may.csv", "--out", "may.safetensors"]
    said = check_refused(undrift, folder, command)
    assert said.startswith("may.csv: no row has a term that the model knows")
    predict = ["predict", *rows, "--input", "may.csv", "--out", "o.csv"]
    status, out, _ = undrift(*predict, "--fail-on-drift", "--json")
    summary = json.loads(out)
    assert (status, summary["check"]["drifted"], summary["unknown_rows"]) == (3, True, 30)
    status, out, err = undrift(*predict, "--check")
    assert status == 0
    assert "Left empty, as they have no known word: 30 of 30 rows." in out
    assert "unknown to the model" in err


def test_a_new_batch_without_labels(folder, undrift, succeed, model):
    out = succeed(*update(model, labels=None, label=None, target="kitchen.csv"))
    assert "Took 100 rows of kitchen.csv as the new batch." in out
    assert load_model("new.safetensors").facts_["references"]["kitchen.csv"]["n"] == 100
    out = succeed(*update(model, labels=None, target="camping.csv", out="c.safetensors"), "--json")
    assert json.loads(out)["target"] == "camping.csv"
    assert undrift(*ADAPT, "--model", "small.safetensors")[0] == 0
    said = check_refused(undrift, folder, ask("small.safetensors", out="other.csv"))
    assert said.startswith("small.safetensors holds no training rows, which `undrift ask` and `undrift")
    assert said.endswith("with --model and --updatable")


def test_several_targets_need_a_name(folder, undrift, succeed):
    two = ["--target", "camping.csv", "--model", "two.safetensors", "--updatable"]
    out = succeed(*change_options(ADAPT, out="both.csv"), *two)
    _, command, *rest = shlex.split(out.splitlines()[-1])
    assert command == "label"
    assert undrift("ask", *rest, "--out", "sample.csv")[0] == 0  # takes the same files and options
    assert (
        undrift(*change_options(ask("two.safetensors"), input="books.csv", out="s.csv"), "--for", "source")[0]
        == 0
    )
    said = check_refused(undrift, folder, ask("two.safetensors"))
    assert said == "the model has 2 target domains: choose one with --domain: kitchen.csv, camping.csv"
    command = ask("two.safetensors", input="camping.csv", domain="camping.csv")
    out = succeed(*command)
    fill_labels()
    assert "--text review --domain camping.csv" in out.splitlines()[-1]
    assert undrift(*update("two.safetensors", domain="camping.csv"))[0] == 0
    before, after = load_model("two.safetensors"), load_model("new.safetensors")
    texts = [row["review"] for row in read_csv("camping.csv")]
    scores = [m.decision_function(texts, target="camping.csv") for m in (before, after)]
    assert abs(scores[0] - scores[1]).max() > 0.01
    more = ["--target", "camping.csv", "--labels", "ask.csv", "--use-labels", "both", "--json"]
    assert json.loads(succeed(*change_options(ADAPT, out="both.csv"), *more))["n_learnt"] > 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"input": "labelled.csv"}, "labelled.csv already has a column 'label', which the output adds"),
        ({"for": "fun"}, "'fun' is not one of 'predictions', 'estimate'"),
        ({"format": "paper"}, "--format 'paper': choose one of csv, tsv, jsonl, encoding="),
        ({"out": "kitchen.csv"}, "would replace another file"),
        ({"model": "kitchen.csv"}, "kitchen.csv is a file of rows, not a model"),
        ({"n": "0"}, "--n"),
    ],
)
def test_bad_questions(folder, undrift, model, options, message):
    write_csv(folder / "labelled.csv", {"review": ["fine"], "label": ["positive"]})
    command = ask(options.pop("model", model), **options)
    assert message in check_refused(undrift, folder, command)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            {"review": ["fine"], "label": ["good"]},
            "row 1 has the label 'good'; the classes are negative, positive",
        ),
        ({"review": ["fine"], "label": [""]}, "ask.csv: no row has a label in column 'label'"),
        (
            {"review": ["fine", "Fine "], "label": ["negative", "positive"]},
            "ask.csv: 1 text with contradicting labels left out: rows 1 and 2 ('Fine')",
        ),
        ({"review": ["fine"], "lable": ["positive"]}, "ask.csv has no column 'label'; did you mean 'lable'?"),
        ({"text": ["fine"], "label": ["positive"]}, "ask.csv has no column 'review'"),
        (
            {"review": ["fine"], "label": ["positive"], "weight": ["many"]},
            "ask.csv: row 1: the column 'weight' holds 'many', which is not a number",
        ),
    ],
)
def test_bad_labels(folder, undrift, model, rows, message):
    write_csv(folder / "ask.csv", rows)
    assert message in check_refused(undrift, folder, update(model))


def test_labels_of_the_source_that_look_wrong_are_written(folder, undrift, model):
    """The file has every column of the source, its row numbers, and what the others say instead."""
    command = ["ask", model, "books.csv", "--for", "source", "--n", "7", "--out", "check.csv"]
    status, out, err = undrift(*command)
    assert (status, err) == (0, "")
    rows, books = read_csv("check.csv"), read_csv("books.csv")
    said = " ".join(out.split())
    assert f"Wrote check.csv: {len(rows)} of 80 labels of books.csv that the other labels contradict" in said
    assert "Next: correct those that are wrong in books.csv" in said
    assert list(rows[0]) == ["review", "stars", "row", "learnt_label", "suggested", "probability"]
    assert 0 < len(rows) <= 7
    for row in rows:
        assert row["review"] == books[int(row["row"]) - 1]["review"]
        assert row["learnt_label"] == row["stars"] != row["suggested"]
        assert 0.5 <= float(row["probability"]) <= 1
    write_csv("other.csv", {"review": ["the best of all", "it is the worst"]})
    said = check_refused(undrift, folder, [*command[:2], "other.csv", *command[3:]])
    assert said == "other.csv: no row is a labelled one of the fit: give a file of the source"
