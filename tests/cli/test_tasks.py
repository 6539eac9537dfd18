"""Ratings and tags from files: what labels are, what is predicted, scored and refused."""

import csv
import json
import shlex

import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn.metrics import f1_score

from tests.helpers.commands import check_refused
from undrift import MSDARegressor, adaptation_report, text_classifier, text_regressor
from undrift.datasets import make_reviews
from undrift.jobs.tasks import (
    LabelTask,
    build_regressor,
    choose_task,
    count_same,
    list_scale,
    score_task,
    tidy_labels,
)
from undrift.tables import TableError


@pytest.mark.parametrize(
    ("labels", "task"),
    [
        ([1, 5], "classes"),  # two values are always classes
        (["a|b", "c"], "classes"),
        ([1, 2, 3, 4, 5], "rating"),
        (["1", "3", "5", None], "rating"),
        (["1", "4.5", "5"], "rating"),
        ([1, 4, 10], "rating"),
        ([0, 1, 2], "classes"),
        ([1, 2, 3], "classes"),
        ([1, 2, 3, 4, 5, 6], "classes"),
        ([1.0, 2.37, 5.0], "classes"),
        (["good", "bad", "1"], "classes"),
        (["a", "b", "a|b", "b|c"], "tags"),
        (["a|b", "c", "d"], "classes"),
        (["x|1", "y|2", "z|3"], "classes"),  # every part is met once: no tags
        ([True, False, None], "classes"),
    ],
)
def test_guesses_what_is_plain(labels, task):
    chosen, _, note = choose_task(labels)
    assert chosen.name == task
    assert (note is None) == (task == "classes")
    if note is not None:
        assert f"--task {task}" in note


def test_what_is_given_is_not_guessed():
    assert choose_task([1, 2, 3, 4, 5], "classes")[0].classes == [1, 2, 3, 4, 5]
    task, labels, note = choose_task(["2", 3.5, None], "rating")
    assert (task.classes, labels, note) == (list_scale([2.0, 3.5]), [2.0, 3.5, None], None)
    task, labels, _ = choose_task(["b; a", "a", None], "tags", ";")
    assert task.classes == ["a", "b"]
    np.testing.assert_array_equal(task.encode(labels), [[1, 1], [1, 0], [np.nan] * 2])
    with pytest.raises(TableError, match="'good' is none"):
        choose_task(["good", 1, 2], "rating")
    with pytest.raises(TableError, match="at least two tags"):
        choose_task(["a", "a|"], "tags")


def test_counts_of_predictions_that_are_the_same():
    assert count_same(np.array([1.0, 2.0]), np.array([1.001, 2.1])) == 1
    assert count_same(np.array([[0, 1], [1, 1]]), np.array([[0, 1], [1, 0]])) == 1
    assert count_same(np.array(["a", "b"]), np.array(["a", "b"])) == 2


def test_scales():
    assert list_scale([1.0, 5.0, 2.5]) == [1, 2, 3, 4, 5]
    assert list_scale([0.0, 100.0]) == [0, 25, 50, 75, 100]


def test_spellings_are_counted_and_made_one():
    labels = ["negative"] * 3 + ["NEGATIVE", "positive", "Negative", 7, None]
    rewritten, note = tidy_labels(labels, False)
    assert rewritten == {}
    assert "'negative' (3), 'NEGATIVE' (1), 'Negative' (1) (--tidy-labels makes them one)" in note
    rewritten, note = tidy_labels(labels, True)
    assert rewritten == {
        "negative": "negative",
        "NEGATIVE": "negative",
        "Negative": "negative",
        "positive": "positive",
    }
    assert "made one by --tidy-labels" in note
    rewritten, _ = tidy_labels(["a|b", "A|c", "a"], True, "|")
    assert rewritten["A|c"] == "a|c"
    assert tidy_labels(["a", "b"], True) == ({}, None)


def test_scores_of_ratings_and_tags():
    truth = [1.0, None, 4.0, 5.0]
    predicted = np.array([2.0, 3.0, 3.0, 9.0])
    scores = score_task(LabelTask("rating", [1.0, 5.0]), truth, predicted, np.array([1.0, 0, 4, 5]))
    assert scores["scored"] == 3
    assert scores["baseline_mae"] == pytest.approx(2 / 3)  # 9 is cut off at 5
    assert scores["adapted_mae"] == 0
    assert scores["baseline_rank_correlation"] == pytest.approx(spearmanr([1, 4, 5], [2, 3, 5])[0])
    assert scores["adapted_error"] is None
    tags = LabelTask("tags", ["a", "b"])
    predicted = np.array([[1, 0], [1, 1]])
    scores = score_task(tags, ["a", "b"], predicted, np.array([[1, 0], [0, 1]]))
    assert scores["baseline_macro_f1"] == f1_score([[1, 0], [0, 1]], predicted, average="macro")
    assert scores["adapted_micro_f1"] == 1


def write_rows(path, columns, rows):
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([columns, *rows])


def read_rows(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def stars(tmp_path, monkeypatch):
    """A folder to work in, with two files of reviews with stars."""
    monkeypatch.chdir(tmp_path)
    corpus = make_reviews(160, labels="stars", domains=["kitchen", "electronics"], unlabelled_share=0)
    for name, domain in corpus.domains.items():
        write_rows(
            tmp_path / f"{name}.csv",
            ["review", "stars"],
            zip(domain.texts, domain.y.astype(int), strict=True),
        )
    return tmp_path


@pytest.fixture
def tags(tmp_path, monkeypatch):
    """Two files of tagged documents; some words of every tag are the same in both."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    for domain in ("a", "b"):
        rows = []
        for _ in range(150):
            chosen = [tag for tag in ("price", "size", "colour") if rng.random() < 0.5]
            words = [f"word{rng.integers(30)}" for _ in range(4)]
            for tag in chosen:
                words += [f"{tag}{rng.integers(4)}", f"{domain}{tag}{rng.integers(4)}"]
            rows.append([" ".join(rng.permutation(words)), "|".join(chosen)])
        write_rows(tmp_path / f"{domain}.csv", ["text", "tags"], rows)
    return tmp_path


FAST = ["--max-features", "400", "--layers", "2"]


STARS = ["adapt", "--source", "kitchen.csv", "--target", "electronics.csv", "--text", "review"]
STARS += ["--label", "stars", "--out", "out.csv", *FAST]
TAGS = ["adapt", "--source", "a.csv", "--target", "b.csv", "--text", "text", "--label", "tags"]
TAGS += ["--out", "out.csv", *FAST]


def run(undrift, *arguments):
    """Return the summary of a command that succeeds."""
    status, out, err = undrift(*arguments, "--json")
    assert status == 0, err
    return json.loads(out)


def test_ratings_from_files(undrift, stars):
    summary = run(undrift, *STARS, "--target-label", "stars", "--model", "model.safetensors")
    (target,) = summary["targets"]
    assert summary["task"] == "rating"
    assert summary["classes"] == [1, 2, 3, 4, 5]
    assert any("so that this is --task rating" in note for note in summary["notes"])
    assert target["adapted_mae"] < target["baseline_mae"]
    assert target["adapted_rank_correlation"] > target["baseline_rank_correlation"]
    assert target["expected_error"] is target["target_shares"] is None
    assert sum(target["predicted_shares"].values()) == pytest.approx(1)
    rows = read_rows("out.csv")
    assert list(rows[0]) == ["review", "stars", "prediction", "score"]
    predicted = np.array([float(row["prediction"]) for row in rows])
    assert 1 <= predicted.min() < predicted.max() <= 5
    truth = np.array([float(row["stars"]) for row in rows])
    assert target["adapted_mae"] == pytest.approx(np.abs(predicted - truth).mean(), abs=1e-4)

    command = ["predict", "--model", "model.safetensors", "--input", "electronics.csv", "--text", "review"]
    check = run(undrift, *command, "--out", "again.csv", "--check")["check"]
    assert not check["drifted"]
    assert check["expected_error"] is None
    again = [float(row["prediction"]) for row in read_rows("again.csv")]
    np.testing.assert_allclose(again, predicted, atol=0.01)  # the model may be saved in half precision
    line = check_refused(undrift, stars, [*command, "--out", "p.csv", "--probabilities"])
    assert "ratings have no probabilities" in line
    explained = run(undrift, "explain", "--model", "model.safetensors", "--document", "a sturdy handle")
    assert isinstance(explained["documents"][0]["prediction"], float)
    assert explained["documents"][0]["terms"]
    explained = run(undrift, "explain", "--model", "model.safetensors", "handle")
    assert [output["class"] for output in explained["words"][0]["outputs"]] == ["higher"]


def test_a_c_that_is_given_is_taken_for_ratings(undrift, stars):
    assert run(undrift, *STARS)["n_candidates"] == 5
    for C in ("1", "0.5"):
        summary = run(undrift, *STARS, "--C", C)
        assert (summary["n_candidates"], summary["chosen"]["C"]) == (1, float(C))
    assert "--C" in check_refused(undrift, stars, [*STARS, "--C", ""])


def test_a_regressor_has_the_settings_of_the_classifier():
    changes = {
        "balance_layers": False,
        "memory_budget": 2.5,
        "max_upper_rows": 99,
        "n_folds": 3,
        "ridge": 0.1,
    }
    regressor = build_regressor(text_classifier(**changes, C=[0.3, 1.0]), [3.5])
    assert {name: getattr(regressor, name) for name in changes} == changes
    assert (regressor.C, regressor.target_mean, regressor.center) == ([0.3, 1.0], [3.5], True)
    assert build_regressor(text_classifier(), []).get_params() == text_regressor().get_params()


def test_scores_of_ratings_on_a_terminal(undrift, stars):
    _, out, _ = undrift(*STARS, "--target-label", "stars")
    for words in (
        "mean absolute error",
        "rank correlation",
        "Labels (a rating)",
        "Ratings of electronics.csv",
    ):
        assert words in out


def test_reports_are_of_classes(rng):
    X = rng.normal(size=(30, 3))
    model = MSDARegressor(1).fit(X, X[:, 0], X)
    with pytest.raises(ValueError, match="predicts ratings or tags"):
        adaptation_report(model, X, X[:, 0], X)


def test_known_shares_of_stars_give_the_mean(undrift, stars):
    run(undrift, *STARS, "--target-shares", "1=0,2=0,3=0,4=0.5,5=0.5", "--no-self-training")
    predicted = [float(row["prediction"]) for row in read_rows("out.csv")]
    assert np.mean(predicted) == pytest.approx(4.5, abs=0.15)  # those above 5 are cut off


def test_stars_as_unrelated_classes(undrift, stars):
    assert run(undrift, *STARS, "--task", "classes")["task"] == "classes"
    assert {row["prediction"] for row in read_rows("out.csv")} <= set("12345")


def test_tags_from_files(undrift, tags):
    given = ["--target-label", "tags", "--model", "model.safetensors", "--probabilities"]
    summary = run(undrift, *TAGS, *given)
    (target,) = summary["targets"]
    assert (summary["task"], summary["classes"]) == ("tags", ["colour", "price", "size"])
    assert target["adapted_macro_f1"] > 0.6
    assert set(target["target_shares"]) == set(target["predicted_shares"]) == {"colour", "price", "size"}
    assert target["expected_error"] is None
    rows = read_rows("out.csv")
    assert list(rows[0])[2:] == ["prediction", "score", "probability", "p_colour", "p_price", "p_size"]
    for row in rows[:20]:
        has_tag = [tag in row["prediction"].split("|") for tag in summary["classes"]]
        p = np.array([float(row[f"p_{tag}"]) for tag in summary["classes"]])
        assert float(row["probability"]) == pytest.approx(np.where(has_tag, p, 1 - p).prod(), abs=1e-5)
    share = np.mean(["price" in row["prediction"].split("|") for row in rows])
    assert target["predicted_shares"]["price"] == pytest.approx(share)

    command = ["predict", "--model", "model.safetensors", "--input", "b.csv", "--text", "text"]
    assert not run(undrift, *command, "--out", "again.csv", "--check")["check"]["drifted"]
    assert [row["prediction"] for row in read_rows("again.csv")] == [row["prediction"] for row in rows]
    explained = run(undrift, "explain", "--model", "model.safetensors")
    assert {entry["class"] for entry in explained["top"]} == {"colour", "price", "size"}
    command = ["distill", "--model", "model.safetensors", "--target", "b.csv", "--text", "text"]
    line = check_refused(undrift, tags, [*command, "--out", "small.safetensors"])
    assert "only models of classes can be distilled" in line
    command = ["ask", "--model", "model.safetensors", "--input", "b.csv", "--text", "text", "--n", "5"]
    line = check_refused(undrift, tags, [*command, "--out", "ask.csv"])
    assert "`undrift ask` and `undrift update` are for classes" in line


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--report", "report.html"], "--report does not go with --task rating"),
        (["--distilled", "small.safetensors"], "--distilled does not go with --task rating"),
        (["--probabilities"], "--probabilities does not go with --task rating"),
        (["--min-confidence", "0.8"], "--min-confidence does not go with --task rating"),
        (["--border", "balanced"], "ratings are learnt by least squares"),
        (["--selection", "reverse"], "ratings are chosen by cross-validation: drop --selection reverse"),
        (["--task", "stars"], "choose one of classes, rating, tags"),
        (["--task", "tags", "--separator", " "], "--separator must be a sign"),
        (["--target-shares", "a=0.5,b=0.5"], "'a', which is no number of stars"),
    ],
)
def test_what_does_not_go_with_ratings_is_one_line(undrift, stars, options, message):
    assert message in check_refused(undrift, stars, [*STARS, *options])


def test_tidied_labels_are_predicted_and_scored_as_one(undrift, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ["good fine" if i % 2 else "bad poor" for i in range(60)]
    labels = [("Yes", "yes", "YES")[i % 3] if i % 2 else "no" for i in range(60)]
    for name in ("a", "b"):
        texts = [f"{opinion} {name}word{i % 7}" for i, opinion in enumerate(words)]
        write_rows(f"{name}.csv", ["text", "tags"], zip(texts, labels, strict=True))
    noted = run(undrift, *TAGS, "--target-label", "tags")
    assert len(noted["classes"]) == 4
    assert any("--tidy-labels makes them one" in note for note in noted["notes"])
    tidied = run(undrift, *TAGS, "--target-label", "tags", "--tidy-labels")
    assert len(tidied["classes"]) == 2
    assert tidied["targets"][0]["adapted_error"] == 0


@pytest.fixture
def baskets(tmp_path, monkeypatch):
    """Two shops' baskets: a few goods are sold in both, most in one."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    for shop, start in (("north", 10), ("south", 25)):
        rows = []
        for i in range(200):
            likes = np.arange(40) % 2 == i % 2
            sold = np.where(np.arange(40) < 10, 0.3, 0.0) + 1.2 * np.isin(
                np.arange(40), start + np.arange(15)
            )
            counts = rng.poisson(sold * np.where(likes, 0.3, 0.05))
            rows.append([i, *counts, "family" if i % 2 else "single"])
        write_rows(f"{shop}.csv", ["id", *(f"good{j}" for j in range(40)), "kind"], rows)
    return tmp_path


BASKETS = ["adapt", "--source", "north.csv", "--target", "south.csv", "--label", "kind", "--out", "out.csv"]
BASKETS += ["--layers", "2"]


def test_columns_of_numbers_in_place_of_text(undrift, baskets):
    given = ["--features", "good*", "--target-label", "kind", "--model", "model.safetensors"]
    summary = run(undrift, *BASKETS, *given)
    assert summary["features"] == [f"good{j}" for j in range(40)]
    assert summary["feature_kind"] == "counts"
    (target,) = summary["targets"]
    assert target["unseen_share"] is None
    assert target["adapted_error"] < target["baseline_error"]
    rows = read_rows("out.csv")
    command = ["predict", "--model", "model.safetensors", "--input", "south.csv", "--out", "again.csv"]
    assert not run(undrift, *command, "--check")["check"]["drifted"]
    run(undrift, *command)
    assert [row["prediction"] for row in read_rows("again.csv")] == [row["prediction"] for row in rows]
    assert "drop --text" in check_refused(undrift, baskets, [*command[:-1], "p.csv", "--text", "kind"])


def test_columns_of_numbers_are_asked_for_and_updated(undrift, baskets):
    _, out, _ = undrift(*BASKETS, "--features", "good*", "--model", "model.safetensors")
    command = shlex.split(out.splitlines()[-1])
    assert command[:2] == ["undrift", "ask"]
    status, out, _ = undrift(*command[1:], "--prefix", "my ")
    assert status == 0
    rows = [
        {**row, "my label": "family" if int(row["id"]) % 2 else "single"} for row in read_rows("sample.csv")
    ]
    write_rows("sample.csv", list(rows[0]), [list(row.values()) for row in rows])
    command = shlex.split(out.splitlines()[-1])  # the next command, as it is written
    assert undrift(*command[1:])[0] == 0
    assert undrift("update", "--model", "model.safetensors", "--target", "south.csv", "--out", "b.st")[0] == 0


def test_a_cell_that_is_no_number_is_named_by_file_and_row(undrift, baskets):
    assert undrift(*BASKETS, "--features", "good*", "--model", "model.safetensors")[0] == 0
    lines = (baskets / "south.csv").read_text().splitlines()
    cells = lines[3].split(",")
    lines[3] = ",".join([cells[0], "many", *cells[2:]])
    (baskets / "bad.csv").write_text("\n".join([lines[0], *lines[1:3] * 3000, *lines[3:]]) + "\n")
    said = "bad.csv: row 6001: column 'good0' holds 'many', which is no finite number"
    target = [*BASKETS[:4], "bad.csv", *BASKETS[5:-4], "--out", "p.csv", "--features", "good*"]
    assert check_refused(undrift, baskets, target).startswith(said)
    command = ["predict", "--model", "model.safetensors", "--input", "bad.csv", "--out", "p.csv"]
    assert check_refused(undrift, baskets, command).startswith(said)


def test_every_column_of_numbers_where_none_is_named(undrift, baskets):
    assert run(undrift, *BASKETS)["features"][:2] == ["id", "good0"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--features", "bad*"], "north.csv has no column like bad*"),
        (["--features", "kind"], "north.csv has no column like kind besides the labels"),
        (["--features", "good*", "--text", "kind"], "drop --text or --features"),
        (["--features", "good*", "--report", "report.html"], "--report needs a column of text"),
    ],
)
def test_features_that_cannot_be_meant_are_one_line(undrift, baskets, options, message):
    assert message in check_refused(undrift, baskets, [*BASKETS, *options])
