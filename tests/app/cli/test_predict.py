"""`undrift predict`: the same predictions as `adapt`, in bounded memory, whole or not at all."""

import json
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from tests.helpers.commands import ADAPT, change_options, check_refused, predict
from tests.helpers.review_files import read_csv, write_csv
from undrift import MDA, load_model, save_model

COLUMNS = ("review", "prediction", "score", "probability")


def check_same(rows, expected):
    """The same rows, numbers up to the half precision of model files."""
    assert len(rows) == len(expected) > 0
    for row, other in zip(rows, expected, strict=True):
        assert list(row) == list(other)
        for name, value in row.items():
            if name in ("score", "probability") or name.startswith("p_"):
                assert float(value) == pytest.approx(float(other[name]), abs=1e-3)
            else:
                assert value == other[name]


@pytest.mark.parametrize("device", ["cpu", "torch:cpu"])
def test_predict_gives_what_adapt_gave(folder, undrift, model, device):
    if device != "cpu":
        pytest.importorskip("torch")
    status, out, err = undrift(*predict(model, device=device))
    assert (status, err) == (0, "")
    assert "100 rows" in out
    kept = [{key: row[key] for key in COLUMNS} for row in read_csv("out.csv")]
    check_same(kept, read_csv(model.parent / "out.csv"))
    said = check_refused(undrift, folder, predict(model, input="out.csv", out="again.csv"))
    assert "out.csv already has a column 'prediction', 'score', 'probability'" in said
    assert said.endswith("; rename it")


def test_predict_gives_the_probabilities_and_the_gaps_of_adapt(folder, undrift, model_of_two):
    options = ["--probabilities", "--min-confidence", "0.7"]
    more = ["--target", "camping.csv", "--json", *options]
    status, said, _ = undrift(*change_options(ADAPT, out="both.csv"), *more)
    assert status == 0
    for entry in json.loads(said)["targets"]:
        name = entry["file"]
        status, said, _ = undrift(*predict(model_of_two, input=name, domain=name), *options, "--json")
        assert status == 0
        assert 0 < json.loads(said)["n_doubtful"] == entry["n_doubtful"] < 100
        expected = [row for row in read_csv("both.csv") if row.pop("domain") == name]
        check_same([row for row in read_csv("out.csv") if row.pop("known_terms")], expected)
        status, said, _ = undrift(*predict(model_of_two, input=name, domain=name), *options)
        left_empty = f"{entry['n_doubtful']} of 100 predictions for {name}."
        assert f"Left empty as doubtful (--min-confidence): {left_empty}" in " ".join(said.split())
    said = check_refused(undrift, folder, predict(model_of_two, min_confidence="2"))
    assert "'--min-confidence': Input should be less than or equal to 1" in said


def test_predict_in_json_and_with_bad_rows(folder, undrift, succeed, model):
    with (folder / "kitchen.csv").open("a") as file:
        file.write("a,b,c,d\n")
    assert "kitchen.csv:102: " in check_refused(undrift, folder, predict(model))
    summary = json.loads(succeed(*predict(model), "--json", "--format", "skip-bad"))
    assert (summary["input"], summary["out"]) == ("kitchen.csv", "out.csv")
    assert (summary["rows"], summary["bad_rows"], summary["unknown_rows"]) == (100, 1, 0)


def test_a_check_of_the_target_itself_finds_no_drift(folder, undrift, model):
    status, out, err = undrift(*predict(model), "--check")
    assert (status, err) == (0, "")
    assert "No drift" in out
    assert undrift(*predict(model), "--fail-on-drift")[0] == 0


def test_rows_of_another_domain_and_language_are_drift(folder, undrift, succeed, model):
    status, out, err = undrift(*predict(model, input="books.csv"), "--fail-on-drift")
    assert status == 3
    assert "Drift: " in out
    assert all(line.startswith("warning: ") for line in err.splitlines())
    assert "the words are not those of the fit" in err
    assert len(read_csv("out.csv")) == 100  # written all the same
    write_csv(folder / "new.csv", {"review": ["孩子很喜欢", "a good pan", ""] * 40})
    check = json.loads(succeed(*predict(model, input="new.csv"), "--check", "--json"))["check"]
    assert check["drifted"] is True
    assert check["reasons"]
    first, second, third = read_csv("out.csv")[:3]
    assert [first["known_terms"], third["known_terms"]] == ["0", "0"]
    assert [first["prediction"], third["prediction"]] == ["", ""]
    assert int(second["known_terms"]) > 0
    assert second["prediction"]


def test_models_that_cannot_be_checked(folder, undrift, model_of_two, model):
    said = check_refused(undrift, folder, [*predict(model_of_two), "--check"])
    assert said == "the model has 2 target domains: choose one with --domain: kitchen.csv, camping.csv"
    own = predict(model_of_two, input="camping.csv", domain="camping.csv")
    assert undrift(*own, "--fail-on-drift")[0] == 0
    assert undrift(*predict(model_of_two, domain="camping.csv"), "--fail-on-drift")[0] == 3
    adapter = load_model(model)
    adapter.remember(references={})
    save_model(adapter, "bare.safetensors")
    said = check_refused(undrift, folder, [*predict("bare.safetensors"), "--check", "--out", "again.csv"])
    assert "the model holds none of them" in said


@pytest.fixture
def model_of_two(folder, undrift):
    """A model of two targets, kitchen.csv and camping.csv."""
    more = ["--target", "camping.csv", "--model", "two.safetensors"]
    assert undrift(*change_options(ADAPT, out="both.csv"), *more)[0] == 0
    return "two.safetensors"


def test_help_says_that_the_model_names_the_text(succeed):
    said = " ".join(succeed("predict", "--help").replace("│", " ").split())
    assert "may be repeated. Default: that of the model." in said


def test_an_unknown_domain_is_one_line_with_the_known_ones(folder, undrift, model, model_of_two):
    said = check_refused(undrift, folder, predict(model_of_two, domain="dvd.csv"))
    assert said == (
        "the model has no target domain 'dvd.csv': its target domains are kitchen.csv, camping.csv"
    )
    said = check_refused(undrift, folder, predict(model, domain="dvd.csv"))
    assert said.endswith("its target domains are kitchen.csv")


def test_targets_of_one_name_are_told_apart_by_their_folders(folder, undrift):
    for place in ("a", "b"):
        (folder / place).mkdir()
    (folder / "kitchen.csv").rename("a/new.csv")
    (folder / "camping.csv").rename("b/new.csv")
    command = change_options(ADAPT, target="a/new.csv", out="both.csv", model="two.safetensors")
    assert undrift(*command, "--target", "b/new.csv")[0] == 0
    assert {row["domain"] for row in read_csv("both.csv")} == {"a/new.csv", "b/new.csv"}
    assert undrift(*predict("two.safetensors", input="b/new.csv", domain="b/new.csv"))[0] == 0
    both = read_csv("out.csv"), read_csv("both.csv")[100:]
    check_same(*([{"score": row["score"]} for row in rows] for rows in both))


def test_a_model_saved_on_a_gpu_predicts_without_one(folder, undrift, model, monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    adapter = load_model(model)
    for estimator in (adapter.classifier, adapter.classifier_, adapter.classifier_.representation_):
        estimator.set_params(device="cuda")
    save_model(adapter, "gpu.safetensors")
    assert undrift(*predict("gpu.safetensors"))[0] == 0
    kept = [{key: row[key] for key in COLUMNS} for row in read_csv("out.csv")]
    check_same(kept, read_csv(model.parent / "out.csv"))
    loaded = load_model("gpu.safetensors")
    texts = [row["review"] for row in kept]
    assert loaded.predict(texts).tolist() == [row["prediction"] for row in kept]
    assert loaded.classifier_.representation_.device == loaded.classifier.device == "cpu"
    said = check_refused(undrift, folder, predict(model, device="cuda", out="again.csv"))
    assert "PyTorch sees no CUDA GPU here" in said


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"input": "none.csv"}, "none.csv does not exist"),
        ({"text": "revue"}, "kitchen.csv has no column 'revue'; did you mean 'review'?"),
        ({"out": "kitchen.csv"}, "would replace another file"),
        ({"out": "none/out.csv"}, "there is no folder"),
        ({"model": "none.safetensors"}, "none.safetensors"),
        (
            {"model": "kitchen.csv"},
            "kitchen.csv is a file of rows, not a model: give the model first, then the rows",
        ),
    ],
)
def test_bad_predictions(folder, undrift, model, options, message):
    assert message in check_refused(undrift, folder, predict(model, **options))


def test_a_model_of_rows_is_refused(folder, undrift):
    save_model(MDA().fit(np.eye(3)), "mda.safetensors")
    assert "holds a MDA, not a text model" in check_refused(undrift, folder, predict("mda.safetensors"))


@pytest.mark.posix
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_interrupted_predictions_leave_nothing(folder, model, number, status, heeded_interrupts):
    with (folder / "big.csv").open("w") as file:
        file.write("review\n")
        file.writelines(f"a good pan that is number {i}\n" for i in range(400_000))
    arguments = ["predict", "--model", model, "--input", "big.csv", "--text", "review", "--out", "out.csv"]
    command = [sys.executable, "-m", "undrift", *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        deadline = time.monotonic() + 60
        while not list(folder.glob(".out.csv*")):  # it has begun to write
            assert running.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.02)
        running.send_signal(number)
        out, err = running.communicate(timeout=600)
    assert running.returncode == status
    assert out == ""
    assert "Traceback" not in err
    assert not (folder / "out.csv").exists()
    assert not list(folder.glob(".out.csv*"))


MEASURED = """
import resource, sys
from undrift.app import main
try:
    main(sys.argv[1:])
finally:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)
"""


@pytest.mark.parametrize(
    ("header", "row"),
    [("review\n", "a good pan of {} which is sturdy\n"), ("", '{{"review": "a good pan of {}, sturdy"}}\n')],
    ids=["csv", "jsonl"],
)
@pytest.mark.posix
def test_predict_streams(folder, model, header, row):
    """Ten times the rows, the same memory."""
    ending, peaks = "csv" if header else "jsonl", []
    for n in (8_000, 80_000):
        with (folder / f"big.{ending}").open("w") as file:
            file.write(header)
            file.writelines(row.format(i) for i in range(n))
        command = predict(model, input=f"big.{ending}", out=f"o.{ending}")
        arguments = [sys.executable, "-c", MEASURED, *map(str, command)]
        done = subprocess.run(arguments, capture_output=True, text=True, check=True)
        peaks.append(int(done.stderr.split()[-1]) * 1024)
        assert (folder / f"o.{ending}").read_bytes().count(b"\n") == n + bool(header)
    assert peaks[1] - peaks[0] < 10_000_000  # the file itself has grown by 3 MB, its rows by much more


@pytest.fixture
def months(folder, reviews):
    """A model's target in three files: two of 240 rows with uneven classes, and a small one."""
    (texts, labels), paths = reviews["kitchen"], {}
    for name, many in {"m-1": "negative", "m-2": "positive"}.items():
        chosen = [t for t, label in zip(texts, labels, strict=True) for _ in range(4 if label == many else 1)]
        paths[name] = write_csv(folder / f"{name}.csv", {"review": (chosen * 2)[:240], "n": range(240)})
    paths["m-10"] = write_csv(folder / "m-10.csv", {"review": texts[:10], "n": range(10)})
    return paths


def test_every_file_of_a_pattern_is_a_batch(folder, succeed, model, months):
    summary = json.loads(succeed(*predict(model, input="m-*.csv"), "--json"))
    assert list(summary["files"]) == ["m-1.csv", "m-2.csv", "m-10.csv"]
    rows = read_csv("out.csv")
    assert list(rows[0]) == [*("review", "n", "prediction", "score", "probability", "file", "known_terms")]
    assert summary["rows"] == len(rows) == 490
    for name in months:
        file = f"{name}.csv"
        alone = json.loads(succeed(*predict(model, input=file, out="alone.csv"), "--json"))
        assert {key: alone[key] for key in summary["files"][file]} == summary["files"][file]
        mine = [{k: v for k, v in row.items() if k != "file"} for row in rows if row["file"] == file]
        assert mine == read_csv("alone.csv")
    shares = [summary["files"][f"{name}.csv"]["target_shares"] for name in ("m-1", "m-2")]
    assert shares[0] != shares[1]
    assert summary["files"]["m-10.csv"]["as_fitted_because"].startswith("10 rows have a known word")


def test_files_of_a_pattern_are_told_apart_on_the_terminal_and_joined_on_request(succeed, model, months):
    said = " ".join(succeed(*predict(model, input="m-*.csv")).split())
    assert said.startswith("Read m-*.csv: 490 rows, text = review, 3 files, each a batch of its own. ")
    assert "m-2.csv: 240 rows; predicted: negative " in said
    assert "m-10.csv: 10 rows; predicted: " in said
    together = json.loads(succeed(*predict(model, input="m-*.csv"), "--together", "--json"))
    assert "files" not in together
    assert (together["rows"], together["aligned"]) == (490, True)
    assert {row["file"] for row in read_csv("out.csv")} == {"m-1.csv", "m-2.csv", "m-10.csv"}


def test_no_error_is_stated_for_rows_that_are_foreign(folder, undrift, succeed, model, reviews):
    write_csv(folder / "foreign.csv", {"review": [*reviews["books"][0], *reviews["books"][0]] * 2})
    known = json.loads(succeed(*predict(model, input="foreign.csv"), "--json"))
    assert known["expected_error"] is not None
    checked = json.loads(succeed(*predict(model, input="foreign.csv"), "--check", "--json"))
    assert checked["check"]["drifted"] is True
    assert checked["expected_error"] is checked["by_class"] is None
    out = undrift(*predict(model, input="foreign.csv"), "--check")[1]
    assert "Class shares of these rows: " in " ".join(out.split())
    assert "wrong" not in out
