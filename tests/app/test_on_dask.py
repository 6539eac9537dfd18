"""A job on a cluster gives what it gives on this machine; how shards are read and counted there."""

import csv
from collections import Counter
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy.special import expit

pytest.importorskip("distributed")
pytest.importorskip("typer")
import dask
import pandas as pd

from tests.helpers.commands import run_command
from tests.helpers.corpus import read_domain
from tests.helpers.review_files import make_review_texts
from undrift import MSDAClassifier, TermVectorizer, TextAdapter, load_model
from undrift.app.adapt import run_adapt
from undrift.app.ask import run_ask
from undrift.app.job import AdaptJob, AskJob, UpdateJob
from undrift.app.on_dask import Shard, survey_shards, vectorize_shards
from undrift.app.tables import TableError, list_values, open_table, shard_paths, write_table
from undrift.app.update import run_update
from undrift.text.tokens import build_analyser


def write(path, texts, **columns) -> None:
    frame = pd.DataFrame({"text": list(texts), **columns}, dtype=object)
    with write_table(path, {name: {str} for name in frame}) as write_frame:
        write_frame(frame)


def column(path, name) -> list:
    return [value for frame in open_table(path) for value in list_values(frame, name)]


@pytest.fixture
def messages(tmp_path):
    """Messages to a hotel (with labels) and a garage (the truth apart), whole and in 20 shards each.

    One text stands in both domains. Another target has no word of the source.
    """
    rows = {name: read_domain(name) for name in ("hotel", "garage")}
    rows["garage"][0][0] = rows["hotel"][0][0].upper()
    for name, column_name in (("hotel", "label"), ("garage", "truth")):
        texts, said = rows[name]
        labels = ["" if i % 3 == 2 else str(int(label == "praise")) for i, label in enumerate(said)]
        write(tmp_path / f"{name}.csv", texts, **{column_name: labels})
        for i in range(20):
            own = slice(15 * i, 15 * i + 15)
            suffix = (".csv", ".jsonl", ".csv.gz")[i % 3] if name == "garage" else ".csv"
            write(tmp_path / f"{name}-{i}{suffix}", texts[own], **{column_name: labels[own]})
        if name == "garage":
            write(tmp_path / "few.csv", [f" {text}" for text in texts[:60]], label=labels[:60])
    write(tmp_path / "foreign.csv", ["...", "ganz andere Wörter", ""] * 10, truth=[""] * 30)
    return tmp_path


@pytest.fixture
def taught(messages):
    """Reviews in shards, one empty: a teacher is silent on a fifth of the kitchen's, wrong on a seventh."""
    domains = make_review_texts(1200, unlabelled_share=0.0, seed=3, style="mixed")
    names, (texts, labels) = ["negative", "positive"], domains["kitchen"]
    answers = [names[(names.index(y) + (i % 7 == 0)) % 2] if i % 5 else "" for i, y in enumerate(labels)]
    sure = [0.6 + 0.3 * (i % 7 > 1) if i % 3 else "" for i in range(len(labels))]
    truth = [label if i % 4 else "" for i, label in enumerate(labels)]
    write(messages / "books.csv", domains["books"][0], label=domains["books"][1])
    for i in range(6):
        own = slice(200 * i, 200 * i + 200)
        columns = {"truth": truth[own], "llm": answers[own], "sure": sure[own]}
        write(messages / f"kitchen-{i}{'.csv' if i < 3 else '.jsonl'}", texts[own], **columns)
    write(messages / "kitchen-6.csv", [], truth=[], llm=[], sure=[])
    return messages


def build_adapter(n_layers=1, n_terms=100) -> TextAdapter:
    return TextAdapter(n_terms, classifier=MSDAClassifier(n_layers, random_state=0))


def make_job(folder, sources, targets, **options) -> AdaptJob:
    """Return a job on files of a folder."""
    for name in ("labels", "model", "distilled"):
        options |= {name: folder / options[name]} if name in options else {}
    files = ([folder / name for name in names.split()] for names in (sources, targets))
    return AdaptJob(*files, options.pop("text", ("text",)), "label", folder / "out.csv", **options)


def flatten(value, path="") -> dict:
    """Return the leaves of nested dicts and lists by their paths."""
    if isinstance(value, dict | list | tuple):
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        return {key: leaf for name, own in pairs for key, leaf in flatten(own, f"{path}/{name}").items()}
    return {path: value}


def run_both(cluster, job, build=build_adapter, atol=1e-4) -> dict:
    """Do a job here and on a cluster: summaries and predictions are the same; return the cluster's."""
    here, there = (replace(job, out=job.out.with_name(f"{name}.csv")) for name in ("here", "there"))
    plain = run_adapt(replace(here, model=None, distilled=None), build()).to_dict()
    summary = run_adapt(replace(there, device=cluster.scheduler.address), build()).to_dict()
    check_same_rows(here.out, there.out, atol, is_taught=job.teacher is not None)
    of_files = {"out", "seconds", "model", "updatable", "model_file", "distilled"}
    kept = [flatten({k: v for k, v in each.items() if k not in of_files}) for each in (summary, plain)]
    assert kept[0] == pytest.approx(kept[1], abs=atol)
    return summary


def check_same_rows(here, there, atol=1e-4, *, is_taught=False) -> None:
    columns = open_table(here).columns
    assert open_table(there).columns == columns
    for name in columns:
        values, expected = column(there, name), column(here, name)
        if name in ("score", "probability") or name.startswith("p_"):
            values, expected = np.array(values, dtype=float), np.array(expected, dtype=float)
            if name == "score" and is_taught:  # log odds, which are large for sure rows
                values, expected = expit(values), expit(expected)
            np.testing.assert_allclose(values, expected, atol=atol)
        else:
            assert values == expected, name
    assert len(set(column(here, "prediction"))) > 1


def test_the_command_gives_the_same_answer_on_a_cluster(messages):
    common = ["adapt", "--text", "text", "--label", "label", "--max-features", "300", "--set", "layers=1,2"]
    whole = ["--source", messages / "hotel.csv", "--target", messages / "garage.csv"]
    parts = ["--source", messages / "hotel-*.csv", "--target", messages / "garage-*"]
    here, there = (messages / f"{name}.csv" for name in ("here", "there"))
    plain = run_command(*common, *whole, "--out", here)
    sharded = run_command(*common, *parts, "--out", there, "--device", "local:2")
    check_same_rows(here, there)
    for name in ("chosen", "vocabulary", "classes"):
        assert sharded[name] == plain[name]
    assert sharded["sources"][0]["labelled"] == plain["sources"][0]["labelled"] == 200


SHARES = [{"0": 0.3, "1": 0.7}, {"0.0": 0.6, "1.0": 0.4}]
TEACHER = {"teacher": "llm", "teacher_confidence": "sure", "target_label": "truth", "min_confidence": 0.6}
TEACHERS = "kitchen-*.csv kitchen-*.jsonl", TEACHER
CASES = {
    "several domains of several shards": ("hotel-?.csv hotel-1?.csv", "garage-*.csv garage-*.jsonl", {}),
    "known shares, probabilities and gaps": (
        "hotel-*.csv",
        "garage-*.csv garage-*.jsonl",
        {"target_shares": SHARES, "probabilities": True, "min_confidence": 0.6},
    ),
    "foreign words": ("hotel.csv", "garage.csv foreign.csv", {}),
    "scored": ("hotel.csv", "garage.csv foreign.csv", {"target_label": "truth"}),
    "learnt and cross-fitted": ("hotel.csv", "garage.csv", {"labels": "few.csv", "use_labels": "both"}),
    "a teacher": ("books.csv", *TEACHERS),
    "a teacher alone": ("", *TEACHERS),
    "a teacher that is right": ("books.csv", "kitchen-*.csv", {"teacher": "llm", "target_label": "llm"}),
}


@pytest.mark.parametrize("name", CASES)
def test_a_job_gives_the_same_on_a_cluster(cluster, taught, name):
    """Counts, notes, warnings, distances, errors and all columns of predictions."""
    sources, targets, options = CASES[name]
    n_terms, atol = (400, 1e-3) if "teacher" in options else (100, 1e-4)
    job = make_job(taught, sources, targets, **options)
    summary = run_both(cluster, job, partial(build_adapter, n_terms=n_terms), atol)
    first, *others = summary["targets"]
    if name == "known shares, probabilities and gaps":
        assert [entry["target_shares"]["1"] for entry in summary["targets"]] == [0.7, 0.4]
        assert all(0 < entry["n_doubtful"] < entry["rows"] for entry in summary["targets"])
    elif name == "scored":
        twice = "1 labelled row of garage.csv not scored: in the source too, whitespace and case aside"
        assert summary["notes"][:2] == [twice, "foreign.csv has no label to score with"]
        assert (others[0]["empty"], others[0]["unknown_rows"]) == (10, 30)
        assert any("never occur in the source" in warning for warning in summary["warnings"])
    elif name == "learnt and cross-fitted":
        assert (
            first["scored"] == summary["n_learnt"] - 1 == 39
        )  # one text is in the source: workers hash texts
    elif name == "a teacher that is right":
        assert first["teacher"]["n_labels"] == first["teacher"]["n_scored"] == first["scored"] == 480
        assert first["teacher"]["teacher_error"] == 0
    elif name.startswith("a teacher"):
        assert set(column(taught / "there.csv", "teacher_disagrees")) == {"true", "false", ""}
        assert first["teacher"]["n_labels"] == 480
        assert 0 < first["teacher"]["n_scored"] < 480
        assert len(first["teacher"]["surest_rows"]) == 2 * len(first["teacher"]["words"]) == 10


def test_a_folder_of_any_formats_and_several_text_columns(cluster, tmp_path):
    """In Chinese: the client chooses the tokens, from the first documents of every domain."""
    good, bad = "很好吃，我喜欢", "太难吃，我讨厌"
    for name, n in ("shops", 0), ("phones", 1):
        (tmp_path / name).mkdir()
        for i, ending in enumerate((".csv.xz", ".json", ".xlsx", ".jsonl.zst")):
            texts = [f"{(good, bad)[j % 2]}这{j + i}" for j in range(20)]
            labels = [("good", "bad")[j % 2] for j in range(20)] if not n else texts
            write(tmp_path / name / f"part-{i}{ending}", texts, title=["第一"] * 20, label=labels)
    job, adapters = (
        make_job(tmp_path, "shops", "phones", text=["title", "text"]),
        [build_adapter() for _ in "ab"],
    )
    plain = run_adapt(replace(job, out=tmp_path / "here.csv"), adapters[0]).to_dict()
    sharded = run_adapt(replace(job, device=cluster.scheduler.address), adapters[1]).to_dict()
    assert plain["tokens"] == sharded["tokens"] == "characters"
    assert adapters[0].terms_ == adapters[1].terms_
    for name in ("text", "prediction"):
        assert column(job.out, name) == column(tmp_path / "here.csv", name)
    assert set(column(job.out, "prediction")) == {"good", "bad"}


def test_a_model_of_a_cluster_is_distilled_asked_and_updated(cluster, taught):
    """Both files hold the student alone, without the teacher's words."""
    files = {"model": "m.safetensors", "distilled": "small.safetensors"}
    job = make_job(taught, "", "kitchen-*.csv", teacher="llm", updatable=True, **files)
    summary = run_adapt(replace(job, device=cluster.scheduler.address), build_adapter(n_terms=400)).to_dict()
    assert summary["model_file"]["n_checked"] > 0
    student, small = load_model(job.model), load_model(job.distilled)
    texts, answers, disagrees = (column(job.out, name) for name in ("text", "llm", "teacher_disagrees"))
    own = student.predict(texts)
    pairs = zip(own, answers, strict=True)
    assert disagrees == [str(label != answer).lower() if answer else "" for label, answer in pairs]
    assert np.mean(small.predict(texts) == own) > 0.9
    assert small.classifier_.domains_ == ["kitchen-*.csv"]
    assert small.fidelity_ == summary["distilled"]["fidelity"]
    rows = taught / "kitchen-0.csv"
    assert run_ask(AskJob(model=job.model, input=rows, out=taught / "ask.csv", n=5)).facts["asked"] == 5
    write(taught / "more.csv", texts[:10], label=["positive"] * 10)
    updated = UpdateJob(model=job.model, out=taught / "new.safetensors", labels=taught / "more.csv")
    assert run_update(updated).facts["n_labels"] == 10


def refuse(cluster, job, said) -> None:
    """Check that a job is refused on a cluster as here, and leaves nothing."""
    for device in ("cpu", cluster.scheduler.address):
        with pytest.raises(TableError, match=said):
            run_adapt(replace(job, device=device), build_adapter())
    assert not job.out.exists()
    assert not list(job.out.parent.glob(".*"))


def test_bad_files_and_teachers_are_refused_as_here(cluster, taught):
    for options, said in (
        ({"teacher": "gpt"}, "has no column 'gpt'"),
        ({"teacher": "truth", "teacher_confidence": "llm"}, "a confidence is a number from 0 to 1"),
        ({"teacher": "sure"}, "has the label .*; the classes are negative, positive"),
        ({"text": ("txt",)}, "has no column 'txt'; did you mean 'text'"),
    ):
        refuse(cluster, make_job(taught, "books.csv", "kitchen-*.csv", **options), said)
    for path in shard_paths(taught / "hotel-*.csv"):
        write(path, column(path, "text"), label=[""] * 15)
    refuse(cluster, make_job(taught, "hotel-*.csv", "garage-*.csv"), "has no label")


def test_neither_predictions_nor_model_if_one_fails(cluster, messages, fail):
    fail("safetensors.numpy.save_file", OSError(28, "No space left on device"))
    job = make_job(messages, "hotel.csv", "garage.csv", model="m.safetensors")
    with pytest.raises(OSError, match="No space left"):
        run_adapt(replace(job, device=cluster.scheduler.address), build_adapter())
    assert not job.out.exists()


def shards_of(folder) -> list[Shard]:
    return [Shard(path, ("text",)) for path in shard_paths(folder / "hotel-*.csv")]


def true_frequencies(folder) -> Counter:
    texts = column(folder / "hotel.csv", "text")
    analyse = build_analyser("words")
    return Counter(term for text in texts for term in set(analyse(text)))


@pytest.mark.parametrize("max_counted", [600, 2_000_000])
def test_the_vocabulary_is_counted_in_bounded_memory(messages, max_counted):
    vectorizer = TermVectorizer(20, tokens="words").choose_tokens([])
    vectorizer.max_counted = max_counted
    with dask.config.set(scheduler="synchronous"):
        _, found = survey_shards(shards_of(messages), vectorizer, 0)
        assert len(found.counts) <= max_counted
        assert (found.n_missed > 0) == (max_counted == 600)
        vectorizer.fit_frequencies(found)
    truth = true_frequencies(messages)
    expected = sorted(truth.items(), key=lambda item: (-item[1], item[0]))[:20]
    assert vectorizer.terms_ == [term for term, _ in expected]
    assert vectorizer.document_frequency_.tolist() == [count for _, count in expected]
    assert vectorizer.n_documents_ == 300


def test_rows_of_shards_are_those_of_the_documents(cluster, messages):
    vectorizer = TermVectorizer(50, tokens="words").choose_tokens([])
    facts, found = survey_shards(shards_of(messages), vectorizer, 2)
    assert [own.n_rows for own in facts] == [15] * 20
    assert facts[3].documents == column(messages / "hotel.csv", "text")[45:47]
    rows = vectorize_shards(shards_of(messages), facts, vectorizer.fit_frequencies(found))
    expected = vectorizer.transform(column(messages / "hotel.csv", "text"))
    assert abs(rows.collect() - expected).max() == 0


def test_patterns_find_files_in_the_order_of_their_numbers(tmp_path):
    for i in (10, 2, 1):
        write(tmp_path / f"part-{i}.csv", [f"text {i}"])
    names = [path.name for path in shard_paths(tmp_path / "part-*.csv")]
    assert names == ["part-1.csv", "part-2.csv", "part-10.csv"]
    assert column(tmp_path / "part-*.csv", "text") == ["text 1", "text 2", "text 10"]
    assert shard_paths("plain.csv")[0].name == "plain.csv"
    with pytest.raises(TableError, match=r"no file matches .*other-"):
        shard_paths(tmp_path / "other-*.csv")
    write(tmp_path / "part[1].csv", ["this one"])
    write(tmp_path / "part1.csv", ["not this one"])
    assert column(tmp_path / "part[1].csv", "text") == ["this one"]


def test_a_table_in_many_files_has_the_columns_of_all(tmp_path):
    write(tmp_path / "part-1.csv", ["one"], label=["a"])
    write(tmp_path / "part-2.csv", ["two", "three"], stars=["5", "4"])
    (tmp_path / "part-3.csv").write_text("text,stars\nfour,3\nbad,1,1,1\n")
    table = open_table(tmp_path / "part-*.csv", text="text", skip_bad=True)
    assert table.columns == ("text", "label", "stars")
    assert column(tmp_path / "part-[12].csv", "label") == ["a", None, None]
    assert [table.share_read for _ in table][-1] == 1.0
    assert table.n_bad == 1
    assert "part-3.csv:3" in table.first_bad
    with pytest.raises(TableError, match=r"part-1.csv has no column 'stars'"):
        open_table(tmp_path / "part-*.csv", text="stars")


def test_warnings_of_workers_reach_the_summary(cluster, messages):
    with open(messages / "hotel-0.csv", "w", newline="", encoding="cp1252") as file:
        rows = [("text", "label"), ("a café hotel, dull", "0"), ("a café hotel, good", "1")]
        csv.writer(file).writerows(rows)
    job = make_job(messages, "hotel-*.csv", "garage-*.csv")
    summary = run_adapt(replace(job, device=cluster.scheduler.address), build_adapter()).to_dict()
    assert any("hotel-0.csv" in warning for warning in summary["warnings"])
