"""`undrift label` as a process: labels survive a kill, Ctrl-C writes all files, running again goes on."""

import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager

import pytest

from tests.helpers.review_files import read_csv
from undrift import load_model, save_model

pytestmark = pytest.mark.usefixtures("heeded_interrupts")


@pytest.fixture(scope="module")
def folder(adapted, tmp_path_factory):
    """A model that can be updated, and the rows of its target."""
    adapter, texts, _ = adapted
    folder = tmp_path_factory.mktemp("label")
    save_model(adapter, folder / "kitchen.model", updatable=True)
    save_model(adapter, folder / "fixed.model")
    with open(folder / "kitchen.csv", "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("id", "text"), *enumerate(texts)])
    return folder


@contextmanager
def run_label(folder, *arguments):
    """Start the command; yields the process and the address that it prints. Nothing of it is left."""
    command = [sys.executable, "-m", "undrift", "label", *arguments, "--no-browser"]
    process = subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, text=True, stderr=subprocess.STDOUT
    )
    try:
        line = process.stdout.readline()
        assert "http://127.0.0.1:" in line, line + process.stdout.read()
        yield process, re.search(r"http://\S+", line)[0]
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def ask(address, path, body=None):
    base, token = address.split("/?token=")
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"{base}/api/{path}", data, {"X-Undrift-Token": token})
    with urllib.request.urlopen(request, timeout=60) as response:
        return json.load(response)


def label_rows(address, truth, n):
    for _ in range(n):
        row = ask(address, "next")
        state = ask(address, "label", {"row": row["row"], "label": truth[row["text"]]})
    return state


@pytest.mark.posix
def test_killed_and_run_again_it_goes_on_and_ctrl_c_writes_everything(folder, adapted):
    truth, labels = adapted[2], folder / "kitchen.labels.csv"
    with run_label(folder, "kitchen.model", "kitchen.csv") as (process, address):
        label_rows(address, truth, 7)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert len(read_csv(labels)) == 7
    with run_label(folder, "kitchen.model", "kitchen.csv") as (process, address):
        assert ask(address, "state")["n_labels"] == 7
        label_rows(address, truth, 20)
        while (state := ask(address, "state"))["is_learning"]:
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=120)
    assert process.returncode == 0, said
    assert state["error"]["n"] == 22  # all but the questions
    assert f"Error, measured on 22 labels: {state['error']['error']:.1%}" in said
    assert [line["label"] for line in read_csv(labels)] == [truth[line["text"]] for line in read_csv(labels)]
    updated = load_model(folder / "kitchen-labelled.model")
    rows = read_csv(folder / "kitchen.predictions.csv")
    texts = [row["text"] for row in rows]
    assert texts == adapted[1]
    assert [row["prediction"] for row in rows] == updated.predict(texts).tolist()
    assert {"kitchen-labelled.model", "kitchen.predictions.csv"} <= set(re.findall(r"Wrote (\S+)", said))
    assert said.endswith("  undrift predict kitchen-labelled.model NEW.csv --out FILE\n")


def test_an_updated_model_measures_as_the_first_one_did(folder, adapted):
    """It has learnt the labels, which must not count when they are scored."""
    errors = []
    for model in ("kitchen.model", "kitchen-labelled.model"):
        with run_label(folder, model, "kitchen.csv") as (_, address):
            errors.append(ask(address, "state")["error"])
    assert errors[0] == pytest.approx(errors[1])


def test_finish_on_the_page_ends_the_command(folder, adapted):
    with run_label(folder, "kitchen.model", "kitchen.csv", "--labels", "other.csv") as (process, address):
        label_rows(address, adapted[2], 1)
        ask(address, "finish", {})
        said, _ = process.communicate(timeout=120)
    assert process.returncode == 0, said
    assert "other.csv" in said


@pytest.mark.posix
def test_a_model_that_cannot_learn_says_how_to_get_one_that_can(folder, adapted):
    with run_label(folder, "fixed.model", "kitchen.csv", "--labels", "more.csv") as (process, address):
        assert "Answers are saved to more.csv" in process.stdout.readline()
        assert process.stdout.readline().startswith("Labels measure the error. fixed.model cannot learn")
        label_rows(address, adapted[2], 3)
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=120)
    assert process.returncode == 0, said
    assert "fixed.model cannot learn them: run `undrift adapt` with --updatable" in said
    assert not (folder / "fixed-labelled.model").exists()


@pytest.mark.posix
def test_it_ends_quietly_when_it_is_told_to(folder):
    with run_label(folder, "kitchen.model", "kitchen.csv", "--labels", "none.csv") as (process, _):
        process.send_signal(signal.SIGTERM)
        said, _ = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM
    assert "Traceback" not in said


@pytest.mark.posix
def test_without_a_label_nothing_is_written(folder, tmp_path):
    before = sorted(os.listdir(folder))
    with run_label(folder, "kitchen.model", "kitchen.csv", "--labels", "none.csv") as (process, _):
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=60)
    assert "nothing was written" in said
    assert sorted(os.listdir(folder)) == before


@pytest.mark.parametrize("labels", ["kitchen.csv", "labels.json"])
def test_labels_have_a_file_of_their_own(undrift, folder, labels):
    status, _, said = undrift(
        "label", folder / "kitchen.model", folder / "kitchen.csv", "--labels", folder / labels, "--no-browser"
    )
    assert status == 2
    assert "ends in .csv" in said
    assert len(said.strip().splitlines()) == 1
