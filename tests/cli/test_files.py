"""Files of every format, folders, patterns and pipes, as commands take them."""

import csv
import io
import json
import os
import shutil
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.helpers.commands import ADAPT, SMALL, change_options, check_refused, predict, run_program
from tests.helpers.review_files import convert_table, read_csv
from undrift import load_model
from undrift.tables import open_table
from undrift.text import TOKENS

FORMATS = ["tsv", "jsonl", "json", "parquet", "xlsx", "csv.gz", "csv.bz2", "json.xz", "jsonl.zst"]


def answers_of(path):
    """What was predicted, from a file of any format."""
    (rows,) = open_table(path)
    return rows.texts("review"), rows.texts("prediction"), [float(score) for score in rows.column("score")]


@pytest.fixture
def expected(undrift, folder, model):
    assert undrift(*predict(model))[0] == 0
    return answers_of("out.csv")


def test_every_format_gives_the_predictions_of_csv(undrift, folder, model, expected):
    for ending in FORMATS:
        convert_table(folder / "kitchen.csv", folder / f"k.{ending}")
        status, _, err = undrift(*predict(model, input=f"k.{ending}", out=f"out.{ending}"))
        assert (status, err) == (0, "")
        assert answers_of(f"out.{ending}") == expected


def check_same_answers(path, abs=1e-5):
    """Compare with out.csv; scores of blocks of other sizes differ in the last digit."""
    *texts, scores = answers_of(path)
    *expected_texts, expected_scores = answers_of("out.csv")
    assert texts == expected_texts
    assert scores == pytest.approx(expected_scores, abs=abs)


def test_adapt_reads_every_format_as_it_does_csv(undrift, folder):
    assert undrift(*ADAPT)[0] == 0
    convert_table(folder / "books.csv", folder / "b.xlsx")
    (folder / "k").mkdir()
    table = open_table("kitchen.csv")
    (rows,) = table
    for i in range(3):  # shards of a folder
        part = {name: rows.column(name)[40 * i : 40 * (i + 1)] for name in table.columns}
        pq.write_table(pa.table(part), folder / "k" / f"train-{i:05}-of-00003.parquet")
    status, out, _ = undrift(*change_options(ADAPT, source="b.xlsx", target="k", out="o.json"), "--json")
    assert status == 0
    check_same_answers("o.json")
    summary = json.loads(out)
    assert summary["tokens"] == "words"
    assert summary["targets"][0]["file"] == "k"
    assert undrift(*change_options(ADAPT, target="k/train-*.parquet", out="p.csv"))[0] == 0
    check_same_answers("p.csv")


@pytest.fixture
def feed(monkeypatch):
    """Put text on standard input."""
    return lambda text: monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))


def test_a_pipe(folder, model, expected):
    text = (folder / "kitchen.csv").read_text()
    done = run_program(*predict(model, input="-", out="-"), "--format", "csv", input=text)
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert [row["prediction"] for row in rows] == expected[1]
    assert [float(row["score"]) for row in rows] == expected[2]
    assert "Wrote standard output." in done.stderr


def test_adapt_in_a_pipe(undrift, folder, feed):
    assert undrift(*ADAPT)[0] == 0
    feed((folder / "kitchen.csv").read_text())
    status, out, err = undrift(*change_options(ADAPT, target="-", out="-"), "--format", "csv")
    assert status == 0
    assert out == (folder / "out.csv").read_text()
    assert "standard input" in err
    assert "Labels:" in undrift(*ADAPT)[1]  # the next command's summary is on standard output again


def test_a_broken_input_leaves_nothing_on_standard_output(undrift, folder, model, feed):
    feed("review,id\na,1\nb\n")
    arguments = [*predict(model, input="-", out="-"), "--format", "csv"]
    assert check_refused(undrift, folder, arguments).startswith("standard input:3: the row has 1 field, the")


def test_what_a_pipe_cannot_do_is_one_line(undrift, folder, model, feed):
    def refuse(arguments):
        feed("")
        return check_refused(undrift, folder, arguments)

    in_csv = ["--format", "csv"]
    assert "standard input has no name that says its format: add --format" in refuse(
        predict(model, input="-")
    )
    assert "standard output has no name" in refuse(predict(model, out="-"))
    assert "--json and --out - would both write" in refuse([*predict(model, out="-"), "--json", *in_csv])
    assert "choose one of csv, tsv, jsonl" in refuse([*predict(model, out="-"), "--format", "xlsx"])
    assert "--format is for standard input and output" in refuse([*predict(model), *in_csv])
    assert "--model -: only rows" in refuse([*predict("-"), *in_csv])
    twice = [*change_options(ADAPT, source="-", target="-"), *in_csv]
    assert "- is given twice" in refuse(twice)
    assert "cannot read or write -" in refuse(
        [*change_options(ADAPT, target="-"), *in_csv, "--dask", "local:1"]
    )
    assert refuse([*predict(model, input="-"), *in_csv]) == "standard input is empty"


def test_several_text_columns_are_joined(undrift, folder, model, expected):
    rows = read_csv("kitchen.csv")
    with open("split.csv", "w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["title", "body"])
        out.writerows(row["review"].split(" ", 1) for row in rows)
    status, _, _ = undrift(*predict(model, input="split.csv", text="title"), "--text", "body")
    assert status == 0
    assert [float(row["score"]) for row in read_csv("out.csv")] == expected[2]
    (folder / "o.toml").write_text('text = "review"')
    arguments = change_options(predict(model, text=None), out="o.csv")
    assert undrift(*arguments, "--config", "o.toml")[0] == 0
    assert answers_of("o.csv") == expected


def test_sheets_are_chosen_by_name(undrift, folder, model, expected):
    import openpyxl

    convert_table(folder / "kitchen.csv", folder / "k.xlsx")
    book = openpyxl.load_workbook("k.xlsx")
    book.create_sheet("other").append(["review"])
    book.save("k.xlsx")
    message = check_refused(undrift, folder, predict(model, input="k.xlsx"))
    assert message == "k.xlsx has 2 sheets: predictions, other; choose one with --sheet"
    assert undrift(*predict(model, input="k.xlsx"), "--sheet", "predictions")[0] == 0
    assert answers_of("out.csv") == expected


def test_an_unquoted_pattern_gets_a_line_that_says_to_quote_it(undrift, folder):
    shutil.copy("kitchen.csv", "kitchen-2.csv")
    place = ADAPT.index("kitchen.csv") + 1
    message = check_refused(undrift, folder, [*ADAPT[:place], "kitchen-2.csv", *ADAPT[place:]])
    assert "kitchen-2.csv" in message
    assert "quote it ('reviews-*.csv')" in message
    message = check_refused(undrift, folder, [*ADAPT, "no-file"])
    assert "quote" not in message


def test_a_folder_with_a_broken_file_is_one_line(undrift, folder):
    (folder / "k").mkdir()
    shutil.copy("kitchen.csv", "k/a.csv")
    (folder / "k" / "b.parquet").write_bytes(b"PAR1 broken")
    assert "k/b.parquet is truncated or not a Parquet file" in check_refused(
        undrift, folder, change_options(ADAPT, target="k")
    )


def test_tokens_are_said_and_checked(undrift, folder):
    arguments = change_options(ADAPT, tokens="characters")
    status, out, _ = undrift(*arguments)
    assert status == 0
    assert "terms of characters (given)" in " ".join(out.split())
    assert ", ".join(TOKENS) in check_refused(undrift, folder, change_options(ADAPT, tokens="letters"))
    assert SMALL[0] in arguments
    assert os.path.exists("out.csv")


def write_vectors(path, table, n=8):
    """Write a table as JSON lines, with a list of `n` numbers that together tell the class."""
    noise = np.random.default_rng(0).normal(size=(200, n))
    with open(path, "w") as file:
        for row, vector in zip(read_csv(table), noise, strict=False):
            sign = {"positive": 1, "negative": -1}.get(row.get("stars") or row.get("truth"), 0)
            print(json.dumps(row | {"v": (vector + sign).tolist()}), file=file)


def test_embeddings_are_features_beside_the_terms(undrift, folder):
    write_vectors("b.jsonl", "books.csv")
    write_vectors("k.jsonl", "kitchen.csv")
    arguments = change_options(ADAPT, source="b.jsonl", target="k.jsonl", target_label="truth", model="m")
    status, out, _ = undrift(*arguments, "--json")
    assert status == 0
    without = json.loads(out)["targets"][0]["adapted_error"]
    status, out, _ = undrift(*arguments, "--embedding", "v", "--json")
    assert status == 0
    assert json.loads(out)["targets"][0]["adapted_error"] < min(without, 0.1)
    convert_table(folder / "k.jsonl", folder / "k.parquet")  # as text
    for name in ("k.jsonl", "k.parquet"):
        assert undrift(*predict("m", input=name, out="p.csv"), "--embedding", "v")[0] == 0
        check_same_answers("p.csv", abs=1e-3)  # a model may be saved in half precision
    assert "fitted with embeddings: name their column with --embedding" in check_refused(
        undrift, folder, predict("m", input="k.jsonl")
    )
    ask = ["ask", "--model", "m", "--input", "k.jsonl", "--text", "review", "--n", "30", "--out", "a.jsonl"]
    update = ["update", "--model", "m", "--text", "review", "--out", "m2"]
    for command in (ask, [*update, "--labels", "k.jsonl"], [*update, "--target", "k.jsonl"]):
        assert "name their column with --embedding" in check_refused(undrift, folder, command)
    status, out, _ = undrift(*ask, "--embedding", "v", "--for", "estimate")
    assert status == 0
    assert "--embedding v" in " ".join(out.split())
    rows = [json.loads(line) for line in (folder / "a.jsonl").read_text().splitlines()]
    with open("labels.jsonl", "w") as file:
        for row in rows:
            print(json.dumps(row | {"label": row["truth"]}), file=file)
    status, out, _ = undrift(*update, "--labels", "labels.jsonl", "--embedding", "v", "--json")
    assert status == 0
    summary = json.loads(out)
    assert summary["n_labels"] == summary["measured"]["rows"] == sum(bool(row["truth"]) for row in rows)
    assert undrift(*update, "--target", "k.jsonl", "--embedding", "v")[0] == 0
    for row in rows[1:]:
        row["v"] = row["v"][:3]
    with open("labels.jsonl", "w") as file:
        for row in rows:
            print(json.dumps(row | {"label": row["truth"] or "positive"}), file=file)
    message = check_refused(undrift, folder, [*update, "--labels", "labels.jsonl", "--embedding", "v"])
    assert "labels.jsonl: row 2 of column 'v' is no list of 8 numbers" in message


def test_labels_of_rows_with_embeddings_are_learnt(undrift, folder):
    write_vectors("b.jsonl", "books.csv")
    write_vectors("k.jsonl", "kitchen.csv")
    arguments = change_options(ADAPT, source="b.jsonl", target="k.jsonl", target_label="truth", model="m")
    for use in ("train", "both"):
        status, out, _ = undrift(*arguments, "--embedding", "v", "--use-labels", use, "--json")
        assert status == 0
        summary = json.loads(out)
        (target,) = summary["targets"]
        assert summary["n_learnt"] == 80
        assert target["scored"] == (80 if use == "both" else 0)
    assert target["adapted_error"] < 0.1
    labelled = load_model("m").classifier_.update_state_.labelled
    rows = [json.loads(line) for line in (folder / "k.jsonl").read_text().splitlines()]
    given = {tuple(np.float32(row["v"]).round(4).tolist()) for row in rows if row["truth"]}
    assert {tuple(v.round(4).tolist()) for v in np.float32(labelled.columns[-1])} <= given  # their vectors


def test_embeddings_that_are_none_are_refused(undrift, folder, model):
    write_vectors("b.jsonl", "books.csv")
    write_vectors("k.jsonl", "kitchen.csv", n=4)
    arguments = [*change_options(ADAPT, source="b.jsonl", target="k.jsonl"), "--embedding", "v"]
    assert "k.jsonl has embeddings of 4 numbers and b.jsonl of 8" in check_refused(undrift, folder, arguments)
    message = check_refused(undrift, folder, change_options(arguments, embedding="review"))
    assert "b.jsonl: row 1 of column 'review' is no list of numbers" in message
    for other in (["--dask", "local:1"], ["--report", "r.html"], ["--distilled", "d"]):
        assert f"--embedding and {other[0]} do not go" in check_refused(undrift, folder, [*arguments, *other])
    message = check_refused(undrift, folder, [*predict(model, input="k.jsonl"), "--embedding", "v"])
    assert message == "the model has none: drop --embedding"
    with open("k.jsonl", "a") as file:
        print(json.dumps({"review": "a", "v": [1, None, 2, 3]}), file=file)
    message = check_refused(undrift, folder, change_options(arguments, source="k.jsonl", label="review"))
    assert "k.jsonl: row 101 of column 'v' is no list of numbers: [1, None, 2, 3]" in message
