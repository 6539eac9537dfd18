"""Every command, in process and as a program of its own: what it says, writes, leaves and returns."""

import csv
import gzip
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from undrift import MDA, __version__, load_model, save_model
from undrift.cli import main
from undrift.datasets import make_reviews

SMALL = ["--max-features", "120", "--layers", "2"]


@pytest.fixture(scope="module")
def reviews():
    corpus = make_reviews(100, unlabelled_share=0.2, random_state=2)
    names = ["negative", "positive"]
    return {
        name: (list(own.texts), ["" if y != y else names[int(y)] for y in own.y])
        for name, own in corpus.domains.items()
    }


def written(path, columns, delimiter=","):
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "wt", newline="", encoding="utf-8") as file:
        out = csv.writer(file, delimiter=delimiter)
        out.writerow(columns)
        out.writerows(zip(*columns.values(), strict=True))
    return path


@pytest.fixture
def folder(tmp_path, reviews, monkeypatch):
    """A folder to work in: books.csv with labels, kitchen.csv and camping.csv with the truth apart."""
    monkeypatch.chdir(tmp_path)
    for name, (texts, labels) in reviews.items():
        column = "stars" if name == "books" else "truth"
        written(tmp_path / f"{name}.csv", {"review": texts, column: labels})
    return tmp_path


@pytest.fixture(scope="module")
def model(tmp_path_factory, reviews):
    """A model file saved by `adapt`, and the folder it was made in."""
    folder = tmp_path_factory.mktemp("model")
    (books, labels), (kitchen, _) = reviews["books"], reviews["kitchen"]
    written(folder / "books.csv", {"review": books, "stars": labels})
    written(folder / "kitchen.csv", {"review": kitchen})
    arguments = ["adapt", "--source", folder / "books.csv", "--target", folder / "kitchen.csv"]
    arguments += ["--text", "review", "--label", "stars", "--out", folder / "out.csv"]
    with pytest.raises(SystemExit) as done:
        main([str(a) for a in [*arguments, "--model", folder / "model.safetensors", *SMALL]])
    assert done.value.code == 0
    return folder / "model.safetensors"


ADAPT = ["adapt", "--source", "books.csv", "--target", "kitchen.csv", "--text", "review", "--label", "stars"]
ADAPT += ["--out", "out.csv", *SMALL]


def rows_of(path):
    opened = gzip.open if str(path).endswith(".gz") else open
    with opened(path, "rt", newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def changed(arguments, **options):
    """The same command with other values; None takes an option out."""
    arguments = list(arguments)
    for name, value in options.items():
        option = f"--{name.replace('_', '-')}"
        if option in arguments:
            place = arguments.index(option)
            del arguments[place : place + 2]
        if value is not None:
            arguments += [option, value]
    return arguments


# -- adapt -------------------------------------------------------------------------------------------


def test_adapt_writes_predictions_and_says_where(folder, undrift):
    status, out, err = undrift(*ADAPT)
    assert (status, err) == (0, "")
    rows = rows_of("out.csv")
    assert list(rows[0]) == ["review", "truth", "prediction", "score"]
    assert len(rows) == 100
    assert {row["prediction"] for row in rows} == {"negative", "positive"}
    assert all((float(row["score"]) > 0) == (row["prediction"] == "positive") for row in rows)
    for fact in ("out.csv", "books.csv", "120 terms", "80", "20"):
        assert fact in out
    assert "Chosen: noise 0.7, n_layers 2, C 1 (one-se over 3)." in out
    assert "Error on the target" not in out


def test_one_value_is_no_choice(folder, undrift):
    status, out, _ = undrift(*ADAPT, "--noise", "0.6")
    assert status == 0
    assert "Chosen: noise 0.6, n_layers 2, C 1 (fixed)." in out


def test_adapt_scores_where_the_target_has_labels(folder, undrift):
    status, out, _ = undrift(*ADAPT, "--target-label", "truth")
    assert status == 0
    assert "source only" in out
    assert "adapted" in out


def test_adapt_in_json(folder, undrift):
    status, out, err = undrift(*ADAPT, "--json", "--target-label", "truth", "--model", "m.safetensors")
    assert (status, err) == (0, "")
    summary = json.loads(out)
    assert summary["sources"][0]["unlabelled"] == 20
    assert 0 <= summary["targets"][0]["adapted_error"] <= 1
    assert summary["model"] == "m.safetensors"
    assert load_model("m.safetensors").classes_.tolist() == ["negative", "positive"]


def test_several_sources_and_targets(folder, undrift, reviews):
    texts, labels = reviews["electronics"]
    written(folder / "electronics.csv", {"review": texts, "stars": labels})
    more = ["--source", "electronics.csv", "--target", "camping.csv", "--json"]
    status, out, _ = undrift(*ADAPT, *more)
    assert status == 0
    assert [own["file"] for own in json.loads(out)["sources"]] == ["books.csv", "electronics.csv"]
    rows = rows_of("out.csv")
    assert [row["domain"] for row in rows] == ["kitchen.csv"] * 100 + ["camping.csv"] * 100
    assert [row["review"] for row in rows] == reviews["kitchen"][0] + reviews["camping"][0]


@pytest.mark.parametrize("ending", ["tsv", "jsonl", "parquet", "csv.gz", "jsonl.gz"])
def test_formats_give_the_same_predictions(folder, undrift, reviews, ending):
    undrift(*ADAPT)
    expected = [row["prediction"] for row in rows_of("out.csv")]
    for name in ("books", "kitchen"):
        converted = undrift_table(folder / f"{name}.csv", folder / f"{name}.{ending}")
        assert converted.exists()
    arguments = changed(ADAPT, source=f"books.{ending}", target=f"kitchen.{ending}", out=f"out.{ending}")
    status, _, err = undrift(*arguments)
    assert (status, err) == (0, "")
    from undrift.tables import open_table

    found = [value for rows in open_table(f"out.{ending}") for value in rows.column("prediction")]
    assert found == expected


def undrift_table(path, other):
    """The same table in another format."""
    from undrift.tables import open_table, write_table

    table = open_table(path)
    with write_table(other, table.columns, kinds=table.kinds) as out:
        for rows in table:
            out.write(rows)
    return other


def test_quotes_and_newlines_in_cells_survive(folder, undrift):
    texts = ['He said "good",\nthen left', "bad,\r\nvery bad", "", "good; great"] * 3
    written(folder / "kitchen.csv", {"review": texts, "note": ["a\tb"] * 12})
    assert undrift(*ADAPT)[0] == 0
    rows = rows_of("out.csv")
    assert [row["review"] for row in rows] == texts
    assert [row["note"] for row in rows] == ["a\tb"] * 12


def test_near_sources_count_more(folder, undrift, reviews):
    """Two sources, one of which is in the words of the target."""
    written(folder / "near.csv", {"review": reviews["kitchen"][0], "stars": reviews["kitchen"][1]})
    command = [*ADAPT, "--source", "near.csv", "--json"]
    weights = {}
    for name in ("size", "near"):
        status, out, _ = undrift(*command, "--source-weight", name)
        assert status == 0
        weights[name] = json.loads(out)["source_weights"]
    assert weights["size"] == [1, 1]
    far, near = weights["near"]
    assert near > 1.2 * far


def test_choosing_names_the_rule_and_warns_at_edges(folder, undrift):
    status, out, err = undrift(*changed(ADAPT, noise="0.5,0.7", layers="1,2", C="0.1,1", selection="reverse"))
    assert status == 0
    assert "reverse over 8" in out
    assert "at the edge" in err
    assert err.startswith("warning: ")


def test_labels_in_the_target_are_ignored_and_said_so(folder, undrift, reviews):
    written(folder / "kitchen.csv", {"review": reviews["kitchen"][0], "stars": ["positive"] * 100})
    status, out, _ = undrift(*ADAPT)
    assert status == 0
    assert "kitchen.csv has a column 'stars': ignored" in " ".join(out.split())


def test_disjoint_vocabularies_are_warned_of_and_not_adapted_to(folder, undrift):
    written(folder / "kitchen.csv", {"review": ["ganz andere Wörter", "als drüben"] * 10})
    status, out, err = undrift(*ADAPT)
    assert status == 0
    words, features = err.splitlines()
    assert "never occur in the source (overlap 0%)" in words
    assert "used the source-only classifier instead" in features
    assert "Fell back" in out
    assert "a target of 20 rows" in " ".join(out.split())
    status, out, err = undrift(*ADAPT, "--no-fallback", "--json")
    assert json.loads(out)["caution"]["fell_back"] is False
    assert len(json.loads(out)["caution"]["grave"]) == err.count("\n") == 1


def test_windows_text_is_read_and_said_so(folder, undrift, reviews):
    text = "review\n" + "\n".join(f'"{t} caf\u00e9"' for t in reviews["kitchen"][0]) + "\n"
    (folder / "kitchen.csv").write_bytes(text.encode("cp1252"))
    status, _, err = undrift(*ADAPT)
    assert status == 0
    assert "Windows-1252" in err
    assert rows_of("out.csv")[0]["review"].endswith("café")


def test_help_is_enough(undrift):
    status, out, _ = undrift("adapt", "--help")
    text = " ".join(out.split())
    assert status == 0
    names = "source target text label out model target-label noise layers C max-features classifier"
    names += " selection source-weight center device encoding skip-bad json prefix"
    for name in names.split():
        assert f"--{name}" in text
    for fact in ("undrift adapt --source books.csv", "prediction", "score", ".parquet", "unlabelled rows"):
        assert fact in text
    assert "--report" in text


# -- bad input ---------------------------------------------------------------------------------------


def refused(undrift, folder, arguments):
    """The one line with which a command is refused; it must leave nothing behind."""
    before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    status, out, err = undrift(*arguments)
    assert status == 2
    assert out == ""
    assert err.startswith("undrift: ")
    assert err.count("\n") == 1, err
    assert "Traceback" not in err
    assert {path.name: path.stat().st_mtime_ns for path in folder.iterdir()} == before
    return err.removeprefix("undrift: ").rstrip("\n")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"source": "bokos.csv"}, "bokos.csv does not exist"),
        ({"target": "none.csv"}, "none.csv does not exist"),
        ({"text": "reviw"}, "books.csv has no column 'reviw'; did you mean 'review'? Columns: review, stars"),
        ({"label": "star"}, "books.csv has no column 'star'; did you mean 'stars'?"),
        ({"target_label": "truht"}, "kitchen.csv has no column 'truht'; did you mean 'truth'?"),
        ({"out": "kitchen.csv"}, "kitchen.csv would replace another file"),
        ({"out": "none/out.csv"}, "none/out.csv cannot be written: there is no folder"),
        ({"out": "out.xlsx"}, "out.xlsx: cannot tell the format from the name"),
        ({"model": "none/m.safetensors"}, "none/m.safetensors cannot be written: No such file or directory"),
        ({"noise": "1.0"}, "noise=1.0 must be at least 0 and below 1"),
        ({"noise": "half"}, "--noise 'half': write a number"),
        ({"layers": "0"}, "n_layers=0 must be at least 1"),
        ({"C": "-1"}, "C=-1.0 must be above 0"),
        ({"max_features": "0"}, "--max-features 0: at least one term is needed"),
        ({"classifier": "forest"}, "--classifier 'forest': choose one of least-squares, hinge"),
        ({"selection": "luck"}, "--selection 'luck': choose one of source-cv, reverse"),
        ({"source_weight": "loud"}, "--source-weight 'loud': choose one of size, near"),
        ({"weighting": "loud"}, "--weighting 'loud': choose one of tfidf, counts, binary"),
        ({"encoding": "klingon"}, "klingon"),
        ({"text": None}, "Missing option '--text'"),
        ({"sauce": "x"}, "No such option: --sauce"),
    ],
)
def test_what_the_user_can_mend_is_one_line(folder, undrift, options, message):
    assert message in refused(undrift, folder, changed(ADAPT, **options))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "books.csv is empty"),
        (b"review,stars\n", "books.csv has a header but no rows"),
        (b"review,stars\ngood,\nbad,\n", "books.csv: no row has a label in column 'stars'"),
        (b"review,stars\ngood,1\nbad,1\n", "books.csv: every label in column 'stars' is '1'"),
        (b"review,stars\ngood,1\nbad\n", "books.csv:3: the row has 1 field, the header 2 fields"),
        (b"\x00\x01\x02\xff" * 200, "books.csv"),
        (b"PK\x03\x04" + bytes(100), "books.csv is a zip archive or a spreadsheet"),
        (b"review,review\na,b\n", "books.csv has two columns called 'review'"),
    ],
)
def test_bad_source_files(folder, undrift, content, message):
    (folder / "books.csv").write_bytes(content)
    assert message in refused(undrift, folder, ADAPT)


def test_a_malformed_json_line_is_named_or_skipped(folder, undrift, reviews):
    lines = [json.dumps({"review": text}) for text in reviews["kitchen"][0][:20]]
    lines[4] = '{"review": "cut off'
    (folder / "kitchen.jsonl").write_text("\n".join(lines))
    arguments = changed(ADAPT, target="kitchen.jsonl")
    said = refused(undrift, folder, arguments)
    assert said.startswith("kitchen.jsonl:5: ")
    assert said.endswith("; mend it, or skip such rows with --skip-bad")
    status, out, _ = undrift(*arguments, "--skip-bad")
    assert status == 0
    assert "Left out 1 rows" in out
    assert len(rows_of("out.csv")) == 19


def test_a_line_of_200_megabytes_is_refused_in_bounded_memory(folder, model):
    with (folder / "long.csv").open("wb") as file:
        file.write(b"review\nfine\n")
        for _ in range(200):
            file.write(b"x" * 1_000_000)
    done = program("predict", "--model", model, "--input", "long.csv", "--text", "review", "--out", "o.csv")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "long.csv:3: " in done.stderr
    assert not (folder / "o.csv").exists()


def test_an_unwritable_output(folder, undrift, monkeypatch):
    """As the system refuses it to anyone but root, and when the disk is full."""
    from undrift.tables import writing

    for error in (PermissionError(13, "Permission denied"), OSError(28, "No space left on device")):

        def refuse(*args, error=error, **options):
            raise error

        monkeypatch.setattr(writing, "open", refuse, raising=False)
        assert refused(undrift, folder, ADAPT) == f"out.csv cannot be written: {error.strerror}"


def test_a_disk_that_fills_up_while_saving(folder, undrift, monkeypatch):
    from safetensors import SafetensorError

    from undrift import persist

    def full(*args, **options):
        raise SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")

    monkeypatch.setattr(persist.safetensors.numpy, "save_file", full)
    message = refused(undrift, folder, [*ADAPT, "--model", "m.safetensors"])
    assert message.startswith("m.safetensors cannot be written: ")
    assert "No space left" in message


@pytest.mark.parametrize(
    ("code", "status", "says"),
    [(None, 0, ""), (0, 0, ""), (3, 3, ""), ("no luck", 1, "undrift: no luck\n"), ("", 1, "undrift: \n")],
)
def test_a_text_to_exit_with_is_an_error_and_is_told(undrift, monkeypatch, code, status, says):
    def ended(*args, **options):
        raise SystemExit(code)

    monkeypatch.setattr("undrift.bench.write_domains", ended)
    assert undrift("bench", "generate", "anywhere") == (status, "", says)


def test_out_of_memory_is_one_line(folder, undrift, monkeypatch):
    from undrift import TextAdapter

    def no_memory(*args, **options):
        raise MemoryError("Unable to allocate 74.5 GiB")

    monkeypatch.setattr(TextAdapter, "fit_rows", no_memory)
    assert "74.5 GiB" in refused(undrift, folder, ADAPT)


def test_a_missing_extra_is_one_line(folder, undrift, monkeypatch):
    undrift_table(folder / "kitchen.csv", folder / "kitchen.parquet")
    for name in [name for name in sys.modules if name.split(".")[0] == "pyarrow"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    message = refused(undrift, folder, changed(ADAPT, target="kitchen.parquet"))
    assert "pip install 'undrift[data]'" in message


# -- predict -----------------------------------------------------------------------------------------


def predict(model, /, **options):
    arguments = [
        "predict",
        "--model",
        model,
        "--input",
        "kitchen.csv",
        "--text",
        "review",
        "--out",
        "out.csv",
    ]
    return changed(arguments, **options)


def test_predict_gives_what_adapt_gave(folder, undrift, model):
    status, out, err = undrift(*predict(model))
    assert (status, err) == (0, "")
    assert "100 rows" in out
    kept = [{key: row[key] for key in ("review", "prediction", "score")} for row in rows_of("out.csv")]
    assert kept == rows_of(model.parent / "out.csv")


def test_predict_in_json_and_with_bad_rows(folder, undrift, model):
    with (folder / "kitchen.csv").open("a") as file:
        file.write("a,b,c,d\n")
    assert "kitchen.csv:102: " in refused(undrift, folder, predict(model))
    status, out, _ = undrift(*predict(model), "--json", "--skip-bad")
    assert status == 0
    assert json.loads(out) == {"input": "kitchen.csv", "out": "out.csv", "rows": 100, "bad_rows": 1}


def test_predict_again_needs_a_prefix(folder, undrift, model):
    undrift(*predict(model))
    again = predict(model, input="out.csv", out="again.csv")
    said = refused(undrift, folder, again)
    assert "out.csv already has a column 'prediction', 'score'" in said
    assert said.endswith("; rename it, or pass --prefix")
    assert undrift(*again, "--prefix", "second_")[0] == 0
    rows = rows_of("again.csv")
    assert [row["second_prediction"] for row in rows] == [row["prediction"] for row in rows]


def test_predict_warns_of_windows_text(folder, undrift, model):
    (folder / "kitchen.csv").write_bytes("review\ncafé\n".encode("cp1252"))
    status, _, err = undrift(*predict(model))
    assert status == 0
    assert err.startswith("warning: ")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"input": "none.csv"}, "none.csv does not exist"),
        ({"text": "revue"}, "kitchen.csv has no column 'revue'; did you mean 'review'?"),
        ({"out": "kitchen.csv"}, "would replace another file"),
        ({"out": "none/out.csv"}, "there is no folder"),
        ({"model": "none.safetensors"}, "none.safetensors"),
        ({"model": "kitchen.csv"}, "kitchen.csv is not a model file"),
    ],
)
def test_bad_predictions(folder, undrift, model, options, message):
    assert message in refused(undrift, folder, predict(model, **options))


def test_models_from_elsewhere(folder, undrift, model):
    import safetensors.numpy

    safetensors.numpy.save_file({"a": np.zeros(3)}, "other.safetensors")
    assert "was not written by undrift" in refused(undrift, folder, predict("other.safetensors"))
    save_model(MDA().fit(np.eye(3)), "mda.safetensors")
    assert "holds a MDA, not a text model" in refused(undrift, folder, predict("mda.safetensors"))
    whole = model.read_bytes()
    (folder / "half.safetensors").write_bytes(whole[: len(whole) // 2])
    assert "half.safetensors is not a model file, or only a part" in refused(
        undrift, folder, predict("half.safetensors")
    )
    (folder / "touched.safetensors").write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    assert "has been changed since it was saved" in refused(undrift, folder, predict("touched.safetensors"))
    for command in (
        ["explain", "good", "--model", "half.safetensors"],
        ["explain", "--model", "kitchen.csv"],
    ):
        assert "not a model file" in refused(undrift, folder, command)


def test_a_file_without_rows(folder, undrift, model):
    (folder / "kitchen.csv").write_text("review\n")
    assert "kitchen.csv has a header but no rows" in refused(undrift, folder, predict(model))


# -- explain -----------------------------------------------------------------------------------------


def test_explain_words(folder, undrift, model):
    terms = load_model(model).vectorizer_.terms_
    bigram = next(term for term in terms if " " in term)
    status, out, _ = undrift("explain", "--model", model, bigram.upper(), "the", "--top", "3")
    assert status == 0
    assert f"{bigram}: " in out
    assert "is expected from" in out
    status, out, _ = undrift("explain", "--model", model, "the", "--top", "3", "--json")
    (word,) = json.loads(out)["words"]
    assert word["term"] == "the"
    assert len(word["from"]) == len(word["to"]) == 3
    assert word["outputs"][0]["class"] == "positive"


def test_explain_documents(folder, undrift, model):
    text = "Excellent, [bold]highly[/bold] recommended"
    status, out, _ = undrift("explain", "--model", model, "--document", text, "--document", "zzz")
    assert status == 0
    assert text in out  # markup in data is data
    assert "none of its words" in out
    _, out, _ = undrift("explain", "--model", model, "--document", text, "--json")
    (found,) = json.loads(out)["documents"]
    adapter = load_model(model)
    assert found["prediction"] == adapter.predict([text])[0]
    assert {own["term"] for own in found["terms"]} <= set(adapter.vectorizer_.terms_)


def test_explain_alone_lists_the_strongest_terms(folder, undrift, model):
    _, out, _ = undrift("explain", "--model", model, "--top", "4", "--json")
    top = json.loads(out)["top"]
    assert [own["class"] for own in top] == ["negative"] * 4 + ["positive"] * 4
    status, out, _ = undrift("explain", "--model", model)
    assert status == 0
    assert top[0]["term"] in out


def test_explain_unknown_words(folder, undrift, model):
    assert "'excelent' is not among the 120 terms" in refused(
        undrift, folder, ["explain", "--model", model, "excelent"]
    )


# -- the rest ----------------------------------------------------------------------------------------


def test_demo(folder, undrift):
    status, out, err = undrift("demo", "--out", "here")
    assert status == 0
    assert all("is at the edge of" in line for line in err.splitlines())
    written = ["books.csv", "kitchen.csv", "model.safetensors", "predictions.csv", "report.html"]
    assert sorted(os.listdir("here")) == written
    text = " ".join(out.split())
    for fact in ("source only", "adapted", "here/predictions.csv", "Words of kitchen", "Try next"):
        assert fact in text
    section = out[out.index("Words of kitchen") :]
    assert "negative" in section
    assert "positive" in section
    rows = [row for row in rows_of("here/predictions.csv") if row["truth"]]
    assert np.mean([row["truth"] != row["prediction"] for row in rows]) < 0.15
    word = section.rsplit(" ", 1)[1].strip()
    assert undrift("explain", "--model", "here/model.safetensors", word)[0] == 0


def test_demo_of_unknown_products(folder, undrift):
    assert "the built-in corpus has books, kitchen" in refused(undrift, folder, ["demo", "--source", "cars"])


def test_version_and_help(undrift):
    assert undrift("--version") == (0, f"undrift {__version__}\n", "")
    status, out, _ = undrift("--help")
    assert status == 0
    for command in ("adapt", "demo", "explain", "predict"):
        assert command in out
        assert undrift(command, "--help")[0] == 0
    assert refused_outright(undrift("adpat"))


def refused_outright(result):
    status, out, err = result
    return status == 2 and out == "" and err.count("\n") == 1


def program(*arguments, **options):
    """Run the command line as a program of its own."""
    command = [sys.executable, "-m", "undrift", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def test_as_a_program(folder):
    done = program(*ADAPT, "--json")
    assert (done.returncode, done.stderr) == (0, "")  # quiet where there is no terminal
    summary = json.loads(done.stdout)
    assert (summary["rule"], summary["n_candidates"]) == ("one-se", 3)
    wrong = program(*changed(ADAPT, text="no such"))
    assert wrong.returncode == 2
    assert wrong.stdout == ""
    assert wrong.stderr.count("\n") == 1
    assert "Traceback" not in wrong.stderr


@pytest.fixture
def heeded_interrupts():
    """Children heed SIGINT, which those of a job in a shell's background inherit as ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_interrupted_predictions_leave_nothing(folder, model, number, status, heeded_interrupts):
    with (folder / "big.csv").open("w") as file:
        file.write("review\n")
        file.writelines(f"a good pan that is number {i}\n" for i in range(400_000))
    arguments = ["predict", "--model", model, "--input", "big.csv", "--text", "review", "--out", "out.csv"]
    command = [sys.executable, "-m", "undrift", *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        deadline = time.monotonic() + 60
        while not list(folder.glob(".undrift-*")):  # it has begun to write
            assert running.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.02)
        running.send_signal(number)
        out, err = running.communicate(timeout=60)
    assert running.returncode == status
    assert out == ""
    assert "Traceback" not in err
    assert not (folder / "out.csv").exists()
    assert not list(folder.glob(".undrift-*"))


def test_a_reader_that_has_seen_enough_is_no_error(folder, model):
    command = f'"{sys.executable}" -m undrift explain --model "{model}" --top 100 | head -1'
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr
    assert "Errno" not in done.stderr


MEASURED = """
import resource, sys
from undrift.cli import main
try:
    main(sys.argv[1:])
finally:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)
"""


def test_predict_streams(folder, model):
    """Ten times the rows, the same memory."""
    peaks = []
    for n in (10_000, 100_000):
        with (folder / "big.csv").open("w") as file:
            file.write("review\n")
            file.writelines(f"a good pan that is number {i} of many and sturdy\n" for i in range(n))
        arguments = [sys.executable, "-c", MEASURED, *map(str, predict(model, input="big.csv", out="o.csv"))]
        done = subprocess.run(arguments, capture_output=True, text=True, check=True)
        peaks.append(int(done.stderr.split()[-1]) * 1024)
        assert (folder / "o.csv").read_bytes().count(b"\n") == n + 1
    assert peaks[1] - peaks[0] < 10_000_000  # the file itself has grown by 4.6 MB, its rows by much more
