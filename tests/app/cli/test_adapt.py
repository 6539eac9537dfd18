"""`undrift adapt`: predictions, summary, warnings, and one line for whatever the user can fix."""

import inspect
import json
import re
import warnings
from collections import Counter
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from safetensors import SafetensorError

from tests.helpers.commands import ADAPT, change_options, check_refused
from tests.helpers.review_files import read_csv, write_csv
from undrift import load_model, save_model
from undrift.app.classes import warn_of_similar
from undrift.app.summary import AdaptSummary, FileRows, TargetSummary
from undrift.results import Comparison, Score, Target

JSON_SHARES = '{"negative": 0.1, "positive": 0.9}'


def unwrap(out):
    """The lines that were printed, before they were wrapped: those that begin with no word of their own."""
    starts = "Read|Left empty|The text of|- |Do you know|Vocabulary:|Settings:|Class shares|Note:|Wrote|Next:"
    starts = rf"(?:{starts}|  undrift|[\w.]+\.csv: (?!\d+ rows, text))"
    return [" ".join(part.split()) for part in re.split(rf"\n(?=\n|{starts})", out) if part and part.strip()]


def test_adapt_writes_predictions_and_says_where(folder, undrift):
    status, out, err = undrift(*ADAPT)
    assert (status, err) == (0, "")
    rows = read_csv("out.csv")
    assert list(rows[0]) == ["review", "truth", "prediction", "score", "probability"]
    assert len(rows) == 100
    assert {row["prediction"] for row in rows} == {"negative", "positive"}
    assert all((float(row["score"]) > 0) == (row["prediction"] == "positive") for row in rows)
    read, error, shares, *stories, wrote, ways, following = unwrap(out)
    assert read == (
        "Read books.csv: 100 rows, text = review, 80 labels (negative 40, positive 40); "
        "kitchen.csv: 100 rows, text = review."
    )
    assert error.startswith("kitchen.csv: about ")
    assert "% wrong (90% interval " in error
    assert error.endswith(", expected without labels.")
    assert shares.startswith("Class shares of kitchen.csv: predicted ")
    assert "; estimated negative " in shares
    assert re.search(r"estimated negative \d+% to \d+%, positive ", shares)  # few rows: a wide interval
    assert stories[0].startswith("The text of kitchen.csv alone does not tell its class shares: ")
    assert all(line.startswith("- negative ") for line in stories[1:])
    assert ways.startswith("Do you know the class shares? Add --target-shares same")
    assert wrote == f"Wrote out.csv ({round(Path('out.csv').stat().st_size / 1000)} kB)."
    assert following.startswith("Next: add --model FILE --updatable")
    assert all(len(line) <= 80 for line in out.splitlines())
    more = unwrap(undrift(*ADAPT, "--min-confidence", "0.7", "-v")[1])
    n_empty = sum(row["prediction"] == "" for row in read_csv("out.csv"))
    assert f"Left empty as doubtful (--min-confidence): {n_empty} of 100 predictions for kitchen.csv." in more
    assert "Left empty as doubtful" in undrift(*ADAPT, "--min-confidence", "0.7")[1]
    assert any(line.startswith("Vocabulary: 120 terms of words") for line in more)
    assert any(line.startswith("Settings: noise 0.7, n_layers 2, C 1 (fixed).") for line in more)


def test_the_only_column_of_text_is_taken_and_several_are_refused(folder, undrift, reviews):
    for name, column in (("books", "stars"), ("kitchen", "truth")):
        texts, labels = reviews[name]
        write_csv(folder / f"{name}.csv", {"id": range(100), "review": texts, column: labels})
    command = change_options(ADAPT, text=None)
    status, out, _ = undrift(*command, "--json")
    assert (status, json.loads(out)["text"]) == (0, ["review"])
    texts, labels = reviews["books"]
    write_csv(folder / "books.csv", {"review": texts, "answer": texts, "stars": labels})
    said = check_refused(undrift, folder, command)
    assert said == "books.csv has columns of text: review, answer; name the text with --text COL"
    write_csv(folder / "books.csv", {"id": range(100), "stars": labels})
    said = check_refused(undrift, folder, command)
    assert said == "books.csv has no column of text: id; name the text with --text COL"


def test_too_few_rows_are_refused_with_what_to_do(folder, undrift, reviews):
    texts, labels = reviews["books"]
    write_csv(folder / "books.csv", {"review": texts, "stars": [*labels[:10], *[""] * 90]})
    assert "; at least 20 are needed: label more rows" in check_refused(undrift, folder, ADAPT)
    write_csv(folder / "books.csv", {"review": texts, "stars": labels})
    write_csv(folder / "kitchen.csv", {"review": texts[:20]})
    said = check_refused(undrift, folder, ADAPT)
    assert said.startswith("kitchen.csv has 20 rows; a target needs at least 30: add unlabelled rows")


def test_labels_that_differ_in_case_or_spaces_count_as_one(folder, undrift, reviews):
    texts, labels = reviews["books"]
    spelt = [label.upper() if i % 9 == 0 else label for i, label in enumerate(labels)]
    write_csv(folder / "books.csv", {"review": texts, "stars": spelt})
    status, out, _ = undrift(*ADAPT, "--json")
    summary = json.loads(out)
    assert (status, summary["classes"]) == (0, ["negative", "positive"])
    assert any("'negative' (" in note and "count as one" in note for note in summary["notes"])


def test_labels_that_look_alike_are_warned_of(folder, undrift, reviews):
    texts, labels = reviews["books"]
    spelt = ["neg" if label == "negative" and i % 9 == 0 else label for i, label in enumerate(labels)]
    write_csv(folder / "books.csv", {"review": texts, "stars": spelt})
    status, _, err = undrift(*ADAPT)
    counts = [spelt.count(label) for label in ("neg", "negative")]
    assert status == 0
    assert "'neg' ({}) and 'negative' ({})".format(*counts) in err
    for names, is_warned in (
        (["positive", "postive"], True),
        (["unhappy", "happy"], False),
        (["class 1", "class 2"], False),
        (["pos", "position"], True),
        (["5", "5 stars"], True),
        (["5", "50 stars"], False),
    ):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            warn_of_similar(Counter({names[0]: 900, names[1]: 3}))
        assert bool(caught) is is_warned, names


def test_a_model_of_a_target_with_empty_rows_can_be_used(folder, undrift, reviews):
    write_csv(folder / "kitchen.csv", {"review": ["", "  ", *reviews["kitchen"][0]]})
    outputs = ["--model", "m.safetensors", "--distilled", "d.safetensors"]
    status, out, _ = undrift(*ADAPT, *outputs)
    assert status == 0
    assert "kitchen.csv: 102 rows, 2 empty" in " ".join(out.split())
    for name in outputs[1::2]:
        status, out, err = undrift("predict", name, "kitchen.csv", "--out", "new.csv", "--check")
        assert (status, err) == (0, "")
        assert "no known word: 2 of 102 rows" in out
        assert [row["prediction"] for row in read_csv("new.csv")][:2] == ["", ""]


def read_predictions(path):
    """Return the rows of a file, with scores and probabilities as numbers."""
    numbers = "score", "probability"
    return [{k: float(v) if k in numbers and v else v for k, v in row.items()} for row in read_csv(path)]


def is_same(path, expected):
    """Tell whether a file has these predictions, up to the rounding of float32."""
    rows = read_predictions(path)
    pairs = zip(rows, expected, strict=True)
    return all(row == pytest.approx(other, abs=1e-4) for row, other in pairs)


def test_files_without_an_option_are_source_and_target(folder, undrift):
    assert undrift(*ADAPT)[0] == 0
    expected = read_predictions("out.csv")
    command = change_options(ADAPT, source=None, target=None, text=None, out="again.csv")
    status, _, err = undrift(command[0], "books.csv", "kitchen.csv", *command[1:], "--report", "r.html")
    assert (status, err) == (0, "")
    assert is_same("again.csv", expected)
    page = re.sub("<[^>]+>", "", Path("r.html").read_text())
    assert "undrift adapt books.csv kitchen.csv --label stars --" in page
    mixed = change_options(command, out="third.csv", target="kitchen.csv")
    assert undrift(*mixed, "books.csv")[0] == 0
    assert is_same("third.csv", expected)
    assert check_refused(undrift, folder, command) == "Missing option '--source' (or the file as an argument)"
    said = check_refused(undrift, folder, [*command, "books.csv"])
    assert said == "Missing option '--target' (or the file as an argument)"


def test_the_model_file_says_what_it_holds(folder, undrift):
    outputs = ["--model", "m.safetensors"]
    said = " ".join(undrift(*ADAPT, *outputs)[1].split())
    assert re.search(
        r"m\.safetensors \([\d.]+ [kM]B: layers [\d.]+ [kM]B, rest [\d.]+ [kM]B; --updatable", said
    )
    assert said.endswith(", to measure the error: undrift label m.safetensors kitchen.csv")
    _, out, _ = undrift(*ADAPT, *outputs, "--updatable", "--json")
    file = json.loads(out)["model_file"]
    assert sum(file["parts"].values()) == file["bytes"] == Path("m.safetensors").stat().st_size
    assert file["parts"]["training_rows"] > file["bytes"] / 5
    said = " ".join(undrift(*ADAPT, *outputs, "--updatable")[1].split())
    assert ", training rows " in said
    assert "to measure the error, and to learn from them: undrift label" in said
    assert "--updatable" not in said.partition("Do you know")[0]


def test_examples_of_help_can_be_pasted(undrift, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    from undrift.app.cli import app

    examples = {}
    for command in app.registered_commands:
        name = command.callback.__name__
        lines = undrift(name, "--help")[1].splitlines()
        examples[name] = [line.strip() for line in lines if line.startswith("     undrift")]
        for line in inspect.cleandoc(command.callback.__doc__).splitlines():
            assert not line.startswith("    undrift") or line.strip() in examples[name]
    assert {name for name, lines in examples.items() if lines} == set(examples) - {"demo"}


def test_options_are_at_most_30():
    from typer.main import get_command

    from undrift.app.cli import app

    options = [each for each in get_command(app).commands["adapt"].params if each.opts[0].startswith("-")]
    assert 20 < len([option for option in options if option.name != "help"]) <= 30


def test_adapt_scores_where_the_target_has_labels(folder, undrift, succeed):
    out = succeed(*ADAPT, "--target-label", "truth")
    (line,) = [line for line in unwrap(out) if line.startswith("kitchen.csv: ")]
    assert " wrong (95% interval " in line
    assert " on 80 labelled rows, " in line
    assert " with a linear SVM trained on the source: " in line
    assert "not adapted" not in out
    assert "expected without labels" not in out
    assert "Class shares of kitchen.csv: predicted" in out
    status, out, err = undrift(*ADAPT, "--json", "--target-label", "truth", "--model", "m.safetensors")
    assert (status, err) == (0, "")
    summary = json.loads(out)
    assert summary["sources"][0]["unlabelled"] == 20
    (target,) = summary["targets"]
    assert 0 <= target["adapted_error"] <= 1
    assert target["expected_error"]["low"] <= target["expected_error"]["error"]
    assert 0 <= target["baseline_error"] <= 1
    assert summary["model"] == "m.safetensors"
    assert load_model("m.safetensors").classes_.tolist() == ["negative", "positive"]


def say_error(adapted=None, shares=None, border="error", expected=0.2):
    """Say an error that was measured on 90 rows, or expected without labels."""
    known = Target({"no": 0.7, "yes": 0.3}, {}, Score(expected, 0.1, 0.5), {}, [])
    errors = Comparison(90, 90.0, 90.0, wrong_before=54.0, squares_before=54.0)
    target = TargetSummary(
        **vars(FileRows("a/b.csv", 90, 0, 0, 90)),
        **dict.fromkeys(("unseen_share", "predicted_shares", "unknown_rows", "target_shares_given")),
        known=known,
        border=border,
        scored=adapted and replace(errors, wrong_after=90 * adapted, distance_after=np.nan),
        labelled_shares=shares,
    )
    facts = dict.fromkeys(each.name for each in fields(AdaptSummary))
    facts |= {"sources": [target], "targets": [target], "labels": {"no": 5, "yes": 5}}
    return AdaptSummary(**facts).say_error(target)


def test_an_error_of_the_best_single_answer_is_called_chance():
    shares, guess = (
        {"no": 0.7, "yes": 0.3},
        ": no better than chance (always answering no is wrong for 30.0%)",
    )
    assert say_error(0.3, shares).endswith(f"60.0% with a linear SVM trained on the source{guess}.")
    assert say_error(0.29, shares).endswith(": adaptation helped.")
    # that border gives up errors for classes that count alike
    assert say_error(0.3, shares, border="balanced").endswith(": adaptation helped.")
    # one answer is right for all rows
    assert say_error(0.01, {"no": 1.0, "yes": 0.0}).endswith(": adaptation helped.")
    for error, words in ((0.31, guess), (0.29, "")):
        line = say_error(expected=error)
        assert line.endswith(f"(90% interval 10% to 50%), expected without labels{words}.")


def test_known_shares_are_predicted_by(folder, succeed):
    shares = {}
    for name, value in {"few": "positive=0.1,negative=0.9", "json": JSON_SHARES}.items():
        (shares[name],) = json.loads(succeed(*ADAPT, "--target-shares", value, "--json"))["targets"]
    assert shares["few"]["target_shares"] == pytest.approx({"negative": 0.9, "positive": 0.1})
    assert shares["json"]["target_shares"] == pytest.approx({"negative": 0.1, "positive": 0.9})
    assert shares["few"]["predicted_shares"]["positive"] < 0.3
    assert shares["json"]["predicted_shares"]["positive"] > 0.7
    out = succeed(*ADAPT, "--target-shares", " negative = 0.3 , positive = 0.7 ")
    assert "; given negative 30.0%, positive 70.0%." in " ".join(unwrap(out))
    out = succeed(*ADAPT, "--target-shares", JSON_SHARES, "--border", "balanced", "--json")
    (balanced,) = json.loads(out)["targets"]
    assert balanced["predicted_shares"]["negative"] > shares["json"]["predicted_shares"]["negative"]


@pytest.mark.parametrize(
    ("given", "center", "name"), [("domains", "domains", "same mix"), ("false", False, "unmoved")]
)
def test_centring_is_chosen(folder, succeed, given, center, name):
    out = succeed(*ADAPT, "--set", f"center={given}", "--json", "--model", "m.safetensors")
    assert [each["name"] for each in json.loads(out)["targets"][0]["readings"]] == [name]
    assert load_model("m.safetensors").classifier_.center == center


def test_shares_are_given_once_or_once_for_each_target(folder, undrift):
    more = ["--target", "camping.csv", *["--target-shares", "negative=1,positive=0"] * 3]
    said = check_refused(undrift, folder, [*ADAPT, *more])
    assert "--target-shares is given 3 times and --target 2 times" in said


def test_labels_with_commas_and_equals_signs_are_quoted_in_json(folder, undrift, succeed, reviews):
    texts, labels = reviews["books"]
    names = {"negative": "a,b", "positive": "c=d", "": ""}
    write_csv(folder / "books.csv", {"review": texts, "stars": [names[label] for label in labels]})
    said = check_refused(undrift, folder, [*ADAPT, "--target-shares", "a,b=0.2,c=d=0.8"])
    assert said.endswith("""labels that contain , or = are written as JSON: '{"a,b": 0.2, "c": 0.8}'""")
    out = succeed(*ADAPT, "--target-shares", '{"a,b": 0.2, "c=d": 0.8}', "--probabilities", "--json")
    assert json.loads(out)["targets"][0]["target_shares"] == pytest.approx({"a,b": 0.2, "c=d": 0.8})
    assert {"p_a,b", "p_c=d"} <= set(read_csv("out.csv")[0])


def test_an_output_s_name_is_no_pattern(folder, undrift):
    names = {"out": "out[1].csv", "model": "m*.safetensors"}
    status, _, err = undrift(*change_options(ADAPT, **names))
    assert status == 0, err
    assert {path.name for path in folder.iterdir()} > set(names.values())


def test_a_target_without_a_word_of_the_source_is_warned_of(folder, undrift):
    texts = ["ganz andere Wörter", "als drüben"] * 20
    write_csv(folder / "kitchen.csv", {"review": texts, "truth": ["negative", "positive"] * 20})
    status, out, err = undrift(*ADAPT, "--target-label", "truth")
    assert status == 0
    assert "never occur in the source (overlap 0%)" in err
    assert "the domains share almost no vocabulary" in err
    (line,) = [line for line in unwrap(out) if "linear SVM" in line]
    assert not line.endswith(": adaptation helped.")


SHARES = "write label=share once for every class"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target_shares": "negative=0.2,positive=0.9"}, "--target-shares sum to 1.1, not to 1"),
        ({"target_shares": "negative=-0.2,positive=1.2"}, "of 'negative' is -0.2; shares are numbers"),
        ({"target_shares": "negative=nan,positive=1"}, "shares are numbers between 0 and 1"),
        ({"target_shares": "negative=0.2,good=0.8"}, "'good', which is not a class; the classes are"),
        ({"target_shares": "negative=1"}, "lacks 'positive'; give the share of every class: 'negative'"),
        ({"target_shares": "negative=0.2,negative=0.8"}, SHARES),
        ({"target_shares": "negative=20%,positive=80%"}, f"'negative=20%,positive=80%': {SHARES}"),
        ({"target_shares": "0.2,0.8"}, f"{SHARES}, as in negative=0.2,positive=0.8"),
        ({"target_shares": ""}, SHARES),
        ({"target_shares": '{"negative": "0.2", "positive": 0.8}'}, SHARES),
        ({"target_shares": '{"negative": 0.2, "positive": 0.8'}, SHARES),
        ({"target_shares": '{"negative": {"positive": 0.8}}'}, SHARES),
        ({"target_shares": '{"negative": 0.2, "negative": 0.8}'}, SHARES),
        ({"set": "center=means"}, "center"),
        ({"set": "depth=3"}, "--set 'depth=3': write NAME=VALUE; names are C, "),
        ({"set": "layers"}, "--set 'layers': write NAME=VALUE"),
        ({"border": "fair"}, "'fair' is not one of 'error', 'balanced'"),
        ({"tokens": "letters"}, "'letters' is not one of 'auto', 'words', 'characters'"),
        ({"min_confidence": "80"}, "'--min-confidence': Input should be less than or equal to 1"),
        ({"min_confidence": "much"}, "--min-confidence"),
        ({"use_labels": "train"}, "--use-labels train needs labels: add --labels FILE or --target-label COL"),
        ({"use_labels": "all"}, "'all' is not one of 'score', 'train', 'both'"),
        ({"labels": "none.csv"}, "none.csv does not exist"),
        ({"labels": "books.csv"}, "books.csv: 80 labelled texts, none in a target file"),
        ({"source": "bokos.csv"}, "bokos.csv does not exist"),
        ({"target": "none.csv"}, "none.csv does not exist"),
        ({"text": "reviw"}, "books.csv has no column 'reviw'; did you mean 'review'? Columns: review, stars"),
        ({"label": "star"}, "books.csv has no column 'star'; did you mean 'stars'?"),
        ({"label": "review"}, "100 different labels in 100 rows; is it the column of labels"),
        ({"target_label": "truht"}, "kitchen.csv has no column 'truht'; did you mean 'truth'?"),
        ({"out": "kitchen.csv"}, "kitchen.csv would replace another file"),
        ({"out": "none/out.csv"}, "none/out.csv cannot be written: there is no folder"),
        ({"out": "out.docx"}, "out.docx: cannot tell the format from the name"),
        ({"out": "books.csv"}, "books.csv would replace another file"),
        ({"model": "out.csv"}, "out.csv would replace another file"),
        ({"model": "."}, "is a folder"),
        ({"model": "none/m.safetensors"}, "none/m.safetensors cannot be written: there is no folder"),
        ({"set": "noise=1.0"}, "noise=1.0 must be at least 0 and below 1"),
        ({"set": "noise=half"}, "--set 'noise=half': write a number"),
        ({"set": "layers=0"}, "n_layers=0 must be at least 1"),
        ({"set": "C=-1"}, "C=-1 must be above 0"),
        ({"max_features": "0"}, "'--max-features': Input should be greater than or equal to 1"),
        ({"format": "encoding=klingon"}, "klingon"),
        ({"format": "loud"}, "--format 'loud': choose one of csv, tsv, jsonl, encoding=NAME, sheet=NAME"),
        ({"sauce": "x"}, "--sauce"),
    ],
)
def test_what_the_user_can_fix_is_one_line(folder, undrift, options, message):
    assert message in check_refused(undrift, folder, change_options(ADAPT, **options))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"review,stars\ngood,\nbad,\n", "books.csv: column 'stars' has no label"),
        (b"review,stars\ngood,1\nbad,1\n", "books.csv: column 'stars' has the label 1 alone"),
    ],
)
def test_bad_source_files(folder, undrift, content, message):
    (folder / "books.csv").write_bytes(content)
    assert message in check_refused(undrift, folder, ADAPT)


def test_a_malformed_json_line_is_named_or_skipped(folder, undrift, succeed, reviews):
    lines = [json.dumps({"review": text}) for text in reviews["kitchen"][0][:40]]
    lines[4] = '{"review": "cut off'
    (folder / "kitchen.jsonl").write_text("\n".join(lines))
    arguments = change_options(ADAPT, target="kitchen.jsonl")
    said = check_refused(undrift, folder, arguments)
    assert said.startswith("kitchen.jsonl:5: ")
    assert said.endswith("; fix it, or skip such rows (--format skip-bad)")
    out = succeed(*arguments, "--format", "skip-bad")
    assert "kitchen.jsonl: 39 rows, 1 skipped as unreadable" in " ".join(out.split())
    assert len(read_csv("out.csv")) == 39


def test_a_disk_that_fills_up_while_saving(folder, undrift, fail):
    full = SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")
    fail("safetensors.numpy.save_file", full)
    message = check_refused(undrift, folder, [*ADAPT, "--model", "m.safetensors"])
    assert message.startswith("m.safetensors cannot be written: ")
    assert "No space left" in message


def test_out_of_memory_is_one_line(folder, undrift, fail):
    fail(
        "undrift.text.terms.TermVectorizer.fit_domains",
        MemoryError("Unable to allocate 74.5 GiB"),
    )
    assert "74.5 GiB" in check_refused(undrift, folder, ADAPT)


@pytest.mark.parametrize(
    ("options", "terms", "pivots"),
    [((), 20_000, "auto"), (("--fast",), 20_000, "few"), (("--thorough",), 40_000, "many")],
)
def test_more_terms_than_pivots(folder, succeed, options, terms, pivots):
    """The sizes are said; here there are fewer terms than that."""
    command = change_options(ADAPT, max_features=None, set="layers=1", model="m.safetensors")
    out = succeed(*command, *options, "--json")
    adapter = load_model("m.safetensors")
    assert (adapter.n_terms, adapter.classifier.n_pivots) == (terms, pivots)
    summary = json.loads(out)
    assert summary["vocabulary"] == len(adapter.terms_)
    assert summary["pivots"] == summary["vocabulary"] < 2500


def test_a_model_is_saved_with_the_fewest_bits_that_change_no_prediction(folder, succeed):
    file = json.loads(succeed(*ADAPT, "--model", "small.safetensors", "--json"))["model_file"]
    assert file["bytes"] == (folder / "small.safetensors").stat().st_size
    assert (file["bits"], file["n_checked"]) == (8, 100)
    save_model(load_model("small.safetensors"), "again.safetensors", bits=32)  # no more than were loaded
    assert (folder / "again.safetensors").stat().st_size == file["bytes"]


def test_stories_are_told_where_readings_differ_with_the_ways_to_settle_it(folder, succeed, undrift, reviews):
    """The mix of classes of the target is not the source's, and the files are small."""
    texts, labels = reviews["kitchen"]
    kept = [text for text, label in zip(texts, labels, strict=True) if label == "positive"]
    write_csv(folder / "kitchen.csv", {"review": kept})
    outputs = ["--model", "m.safetensors", "--updatable"]
    (target,) = json.loads(succeed(*ADAPT, *outputs, "--json"))["targets"]
    for reading in target["readings"]:
        assert set(reading) == {"name", "story", "weight", "shares", "agreement"}
        assert sum(reading["shares"].values()) == pytest.approx(1)
    assert sum(reading["weight"] for reading in target["readings"]) == pytest.approx(1)
    status, out, err = undrift(*ADAPT, *outputs)
    assert status == 0
    assert "readings" not in err  # the stories say what the warning would
    said = " ".join(out.split())
    assert "The text of kitchen.csv alone does not tell its class shares: readings differ" in said
    told = [r for r in target["readings"] if r["weight"] >= 0.1]
    assert all(f", if: {reading['story']}" in said for reading in told)
    assert "Add --target-shares same (as in the source), or numbers: --target-shares negative=..." in said
    assert "Next: answer five questions, which decide between the readings" in said
    assert out.endswith("  undrift label m.safetensors kitchen.csv\n")
    given = succeed(*ADAPT, "--target-shares", "positive=0.99,negative=0.01")
    assert "readings differ" not in given


def test_the_target_may_have_the_mix_of_the_source(folder, succeed, undrift):
    (target,) = json.loads(succeed(*ADAPT, "--target-shares", "same", "--json"))["targets"]
    assert target["target_shares_given"] is True
    assert {reading["name"] for reading in target["readings"]} == {"given mix", "same mix"}
    twice = [*ADAPT, "--target-shares", "same", "--target-shares", "same"]
    said = check_refused(undrift, folder, [*twice, "--out", "new.csv"])
    assert said == "--target-shares same is for all targets: give it once, and nothing else"
