"""What looks like a slip of the user is refused or warned of, and the message says what to do."""

import json

from tests.helpers.commands import ADAPT, change_options, check_refused, predict
from tests.helpers.review_files import read_csv, write_csv


def say(text: str) -> str:
    """Return what was printed as one line."""
    return " ".join(text.split())


def test_the_target_may_call_its_text_otherwise(folder, undrift, succeed, reviews):
    succeed(*ADAPT)
    expected = [row["prediction"] for row in read_csv("out.csv")]
    texts, truth = reviews["kitchen"]
    write_csv(folder / "kitchen.csv", {"comment": texts, "truth": truth})
    said = check_refused(undrift, folder, change_options(ADAPT, out="new.csv"))
    assert said == (
        "kitchen.csv has no column 'review'. Columns: comment, truth; name the text with --target-text COL"
    )
    model = ["--model", "m.safetensors"]
    out = say(succeed(*ADAPT, "--target-text", "comment", *model))
    assert "books.csv: 100 rows, text = review, 80 labels" in out
    assert "kitchen.csv: 100 rows, text = comment." in out
    assert [row["prediction"] for row in read_csv("out.csv")] == expected
    out = say(succeed("predict", "m.safetensors", "kitchen.csv", "--out", "new.csv"))
    assert out.startswith("Read kitchen.csv: 100 rows, text = comment. ")
    found = json.loads(succeed(*change_options(ADAPT, text=None), "--json"))
    assert (found["text"], found["target_text"]) == (["review"], ["comment"])
    write_csv(folder / "kitchen.csv", {"comment": texts, "answer": texts})
    said = check_refused(undrift, folder, change_options(ADAPT, text=None, out="new.csv"))
    assert said.endswith("columns of text: comment, answer; name the text with --target-text COL")
    said = check_refused(undrift, folder, ["predict", "m.safetensors", "books.csv", "--out", "new.csv"])
    assert said.endswith("Columns: review, stars; name the text with --text COL")


def test_labels_of_a_file_are_matched_by_the_targets_own_column(folder, succeed, reviews):
    texts, truth = reviews["kitchen"]
    write_csv(folder / "kitchen.csv", {"comment": texts})
    write_csv(folder / "labels.csv", {"comment": texts, "label": truth})
    labels = ["--target-text", "comment", "--labels", "labels.csv", "--json"]
    assert json.loads(succeed(*ADAPT, *labels))["targets"][0]["scored"] >= 80


def test_a_file_that_is_given_twice(folder, undrift, succeed):
    said = check_refused(undrift, folder, [*ADAPT, "--target", "./kitchen.csv"])
    assert said == "--target has kitchen.csv twice: give it once"
    status, _, err = undrift(*change_options(ADAPT, target="books.csv"))
    assert status == 0
    assert err.startswith("warning: books.csv is source and target: there is nothing to adapt to")


def test_files_without_text(folder, undrift, reviews):
    texts, _ = reviews["kitchen"]
    write_csv(folder / "kitchen.csv", {"comment": [""] * 100})
    said = check_refused(undrift, folder, change_options(ADAPT, text=None))
    assert said == "kitchen.csv has no text: every row is empty"
    write_csv(folder / "kitchen.csv", {"review": [""] * 100, "n": range(100)})
    said = check_refused(undrift, folder, ADAPT)
    assert said == "kitchen.csv: column review is empty in every row; name the text with --target-text COL"
    write_csv(folder / "kitchen.csv", {"review": [*texts[:40], *[" "] * 60], "n": range(100)})
    status, _, err = undrift(*ADAPT)
    assert status == 0
    assert "kitchen.csv: column review is empty in 60 of 100 rows" in err


def test_a_column_that_looks_like_labels_is_no_text(folder, undrift, reviews):
    texts, _ = reviews["kitchen"]
    write_csv(
        folder / "kitchen.csv", {"comment": texts, "truth": ["positive", "not good"] * (len(texts) // 2)}
    )
    dry = [*ADAPT, "--dry-run", "--target-text"]
    status, _, err = undrift(*dry, "truth")
    assert status == 0
    assert say(err) == (
        "warning: kitchen.csv: column truth looks like labels (2 values, such as 'positive', 'not good'): "
        "is it the text? Else name it with --target-text COL"
    )
    assert undrift(*dry, "comment")[2] == ""


def test_a_column_without_known_words_is_warned_of(folder, undrift, model, reviews):
    texts, _ = reviews["kitchen"]
    write_csv(folder / "shops.csv", {"review": texts, "shop": ["zyxwv 17"] * len(texts)})
    status, _, err = undrift(*predict(model, input="shops.csv", text="shop"))
    assert status == 0
    assert err == (
        "warning: shops.csv: 100 of 100 rows have no word that the model knows: is shop the text? "
        "Else name it with --text COL\n"
    )
    assert undrift(*predict(model, input="shops.csv"))[2] == ""


def test_a_label_column_in_another_case_is_noticed(folder, succeed, reviews):
    texts, truth = reviews["kitchen"]
    write_csv(folder / "kitchen.csv", {"review": texts, "Stars": truth})
    note = "kitchen.csv has a column 'Stars': ignored (add --target-label Stars to measure the error)"
    assert f"Note: {note}." in say(succeed(*ADAPT))
    assert "Note: " not in succeed(*ADAPT, "--target-label", "Stars")


def test_a_class_that_says_there_is_no_label_is_warned_of(folder, undrift, reviews):
    texts, labels = reviews["books"]
    write_csv(folder / "books.csv", {"review": texts, "stars": [label or "n/a" for label in labels]})
    status, _, err = undrift(*ADAPT)
    assert status == 0
    assert "column 'stars': the label 'n/a' (20 rows) counts as a class" in err
