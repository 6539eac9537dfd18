"""Files of every format, folders, patterns and pipes, as commands take them."""

import csv
import io
import json
import shutil
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.helpers.commands import ADAPT, change_options, check_refused, predict, run_program
from tests.helpers.review_files import convert_table
from undrift.app.tables import list_texts, open_table

FORMATS = ["tsv", "jsonl", "json", "parquet", "xlsx", "csv.gz", "csv.bz2", "json.xz", "jsonl.zst"]


def answers_of(path):
    """What was predicted, from a file of any format."""
    (frame,) = open_table(path)
    return list_texts(frame, "review"), list_texts(frame, "prediction"), [float(x) for x in frame["score"]]


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


def test_adapt_reads_every_format_as_it_does_csv(undrift, succeed, folder):
    assert undrift(*ADAPT)[0] == 0
    convert_table(folder / "books.csv", folder / "b.xlsx")
    (folder / "k").mkdir()
    table = open_table("kitchen.csv")
    (frame,) = table
    for i in range(3):  # shards of a folder
        part = frame.iloc[40 * i : 40 * (i + 1)]
        pq.write_table(
            pa.Table.from_pandas(part, preserve_index=False), folder / "k" / f"train-{i:05}-of-00003.parquet"
        )
    out = succeed(*change_options(ADAPT, source="b.xlsx", target="k", out="o.json"), "--json")
    check_same_answers("o.json")
    summary = json.loads(out)
    assert summary["tokens"] == "words"
    assert summary["targets"][0]["file"] == "k"
    assert undrift(*change_options(ADAPT, target="k/train-*.parquet", out="p.csv"))[0] == 0
    check_same_answers("p.csv")
    command = change_options(ADAPT, source="b.xlsx", target="b.xlsx", format="sheet=predictions")
    assert json.loads(undrift(*command, "--text", "stars", "--json")[1])["text"] == ["review", "stars"]


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
    assert "Read books.csv" in undrift(*ADAPT)[1]  # the next command's summary is on standard output again


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
    assert "--format csv is for standard input and output" in refuse([*predict(model), *in_csv])
    assert "--model -: only rows" in refuse([*predict("-"), *in_csv])
    twice = [*change_options(ADAPT, source="-", target="-"), *in_csv]
    assert "- is given twice" in refuse(twice)
    assert "cannot read or write -" in refuse(
        [*change_options(ADAPT, target="-"), *in_csv, "--device", "local:1"]
    )
    assert refuse([*predict(model, input="-"), *in_csv]) == "standard input is empty"


def test_an_unquoted_pattern_gets_a_line_that_says_to_quote_it(undrift, folder):
    shutil.copy("kitchen.csv", "kitchen-2.csv")
    place = ADAPT.index("kitchen.csv") + 1
    message = check_refused(undrift, folder, [*ADAPT[:place], "kitchen-2.csv", *ADAPT[place:]])
    assert "kitchen-2.csv" in message
    assert "quote it ('reviews-*.csv')" in message
    message = check_refused(undrift, folder, [*ADAPT, "no-file"])
    assert "quote" not in message


def test_tokens_are_said(succeed, folder):
    out = succeed(*change_options(ADAPT, tokens="characters"), "-v")
    assert "terms of characters (given)" in " ".join(out.split())


def test_what_comes_with_semicolons_goes_with_semicolons(undrift, folder, model):
    """In `adapt`, `predict` and `ask`; two files that differ give commas."""
    for name in ("books", "kitchen"):
        rows = list(csv.reader((folder / f"{name}.csv").read_text().splitlines()))
        with (folder / f"{name}-2.csv").open("w", newline="") as file:
            csv.writer(file, delimiter=";").writerows(rows)
    assert undrift(*change_options(ADAPT, source="books-2.csv", target="kitchen-2.csv"))[0] == 0
    assert (folder / "out.csv").read_text().startswith("review;truth;prediction;score;probability\n")
    assert undrift(*predict(model, input="kitchen-2.csv"))[0] == 0
    assert (folder / "out.csv").read_text().startswith("review;truth;prediction;")
    assert undrift("ask", model, "kitchen-2.csv", "--out", "ask.csv", "--n", "5")[0] == 0
    assert (folder / "ask.csv").read_text().startswith("review;truth;label;sampled;weight\n")
    assert undrift(*predict(model, input="kitchen*.csv"))[0] == 0
    assert (folder / "out.csv").read_text().startswith("review,truth,prediction,")


def test_safe_cells_are_asked_for_by_format(undrift, folder, model):
    (folder / "kitchen.csv").write_text('review,n\n"=HYPERLINK(""x"")",-1\na good pan,2\n')
    for options, cell in (([], '=HYPERLINK("x")'), (["--format", "safe-cells"], '\'=HYPERLINK("x")')):
        assert undrift(*predict(model), *options)[0] == 0
        first = next(csv.DictReader(io.StringIO((folder / "out.csv").read_text())))
        assert (first["review"], first["n"]) == (cell, "-1")
