"""Text in many files: patterns, the vocabulary of all shards, and the job on a cluster."""

import csv
from collections import Counter
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
from undrift.app.job import AdaptJob, AskJob, UpdateJob
from undrift.app.on_dask import Shard, run_on_cluster, survey_shards, vectorize_shards
from undrift.app.tables import TableError, list_values, open_table, shard_paths, write_table
from undrift.app.update import run_ask, run_update
from undrift.text import words


def write(path, texts, **columns) -> None:
    frame = pd.DataFrame({"text": list(texts), **columns}, dtype=object)
    with write_table(path, {name: {str} for name in frame}) as write_frame:
        write_frame(frame)


adapt = partial(run_command, "adapt")


@pytest.fixture
def messages(tmp_path):
    """Messages to a hotel (with labels) and a garage (the truth apart), whole and in 20 shards each."""
    for name, column in (("hotel", "label"), ("garage", "truth")):
        texts, said = read_domain(name)
        numbers = [str(int(label == "praise")) for label in said]
        labels = ["" if i % 3 == 2 else label for i, label in enumerate(numbers)]
        write(tmp_path / f"{name}.csv", texts, **{column: labels})
        for i in range(20):
            own = slice(15 * i, 15 * i + 15)
            suffix = (".csv", ".jsonl", ".csv.gz")[i % 3] if name == "garage" else ".csv"
            write(tmp_path / f"{name}-{i}{suffix}", texts[own], **{column: labels[own]})
    return tmp_path


def column(path, name) -> list:
    return [value for frame in open_table(path) for value in list_values(frame, name)]


def test_the_command_gives_the_same_answer_on_a_cluster(messages):
    common = ["--text", "text", "--label", "label", "--target-label", "truth"]
    common += ["--max-features", "300", "--set", "layers=1,2"]
    whole = ["--source", messages / "hotel.csv", "--target", messages / "garage.csv"]
    parts = ["--source", messages / "hotel-*.csv", "--target", messages / "garage-*"]
    plain = adapt(*whole, *common, "--out", messages / "plain.csv")
    sharded = adapt(*parts, *common, "--out", messages / "sharded.csv", "--device", "local:2")
    assert column(messages / "sharded.csv", "text") == column(messages / "plain.csv", "text")
    predictions = column(messages / "plain.csv", "prediction")
    assert set(predictions) == {"0", "1"}
    assert column(messages / "sharded.csv", "prediction") == predictions
    for name in ("score", "probability"):
        values = [np.array(column(messages / f"{run}.csv", name), float) for run in ("plain", "sharded")]
        np.testing.assert_allclose(values[1], values[0], atol=1e-4)
    for name in ("chosen", "vocabulary", "classes"):
        assert sharded[name] == plain[name]
    for name in ("rows", "scored", "baseline_error", "adapted_error", "unseen_share", "predicted_shares"):
        assert sharded["targets"][0][name] == plain["targets"][0][name]
    for name in ("target_shares", "expected_error"):
        assert sharded["targets"][0][name] == pytest.approx(plain["targets"][0][name], abs=1e-4)
    assert sharded["sources"][0]["labelled"] == plain["sources"][0]["labelled"] == 200


def test_labels_are_learnt_and_cross_fitted_on_a_cluster_too(messages):
    """One text stands in both domains: workers hash texts, so that it is not scored."""
    texts, truth = column(messages / "garage.csv", "text"), column(messages / "garage.csv", "truth")
    (i,) = [i for i, label in enumerate(column(messages / "hotel.csv", "label")) if label][:1]
    texts[0], truth[0] = column(messages / "hotel.csv", "text")[i].upper(), "1"
    write(messages / "garage.csv", texts)
    write(messages / "few.csv", [f" {text}" for text in texts[:60]], label=truth[:60])
    common = ["--source", messages / "hotel.csv", "--target", messages / "garage.csv", "--text", "text"]
    common += ["--label", "label", "--labels", messages / "few.csv", "--use-labels", "both"]
    common += ["--max-features", "300", "--set", "layers=1"]
    plain = adapt(*common, "--out", messages / "plain.csv")
    model = messages / "model.safetensors"
    sharded = adapt(
        *common, "--out", messages / "sharded.csv", "--model", model, "--updatable", "--device", "local:2"
    )
    job = AskJob(model=model, input=messages / "garage.csv", out=messages / "ask.csv", n=5)
    assert run_ask(job)["asked"] == 5  # a model fitted on a cluster can be asked and updated
    write(messages / "more.csv", texts[60:70], label=["1"] * 10)
    updated = UpdateJob(model=model, out=messages / "new.safetensors", labels=messages / "more.csv")
    assert run_update(updated)["n_labels"] == 10
    assert sharded["n_learnt"] == plain["n_learnt"] == sum(map(bool, truth[:60]))
    assert sharded["targets"][0]["scored"] == plain["targets"][0]["scored"] == plain["n_learnt"] - 1
    assert any(
        "1 labelled row of garage.csv not scored: in the source too" in note for note in sharded["notes"]
    )
    assert sharded["targets"][0]["adapted_error"] == plain["targets"][0]["adapted_error"]
    predictions = [column(messages / f"{run}.csv", "prediction") for run in ("plain", "sharded")]
    assert predictions[0] == predictions[1]


def adapter() -> TextAdapter:
    return TextAdapter(100, classifier=MSDAClassifier(1, random_state=0))


def test_several_domains_of_several_shards(cluster, messages):
    sources = [messages / "hotel-?.csv", messages / "hotel-1?.csv"]
    targets = [messages / "garage-*.csv", messages / "garage-*.jsonl"]
    model = messages / "model.safetensors"
    run_adapt(AdaptJob(sources, targets, ("text",), "label", messages / "plain.csv"), adapter())
    small = messages / "small.safetensors"
    job = AdaptJob(sources, targets, ("text",), "label", messages / "out.csv", model, distilled=small)
    own = adapter()
    summary = run_on_cluster(cluster.scheduler.address, job, own)
    distilled = load_model(small)
    assert distilled.classifier_.domains_ == [path.name for path in targets]
    assert distilled.fidelity_ == summary["distilled"]["fidelity"]
    assert summary["model_file"]["n_checked"] > 0
    for name in ("text", "prediction", "domain"):
        assert column(messages / "out.csv", name) == column(messages / "plain.csv", name)
    assert own.classifier_.domains_ == [0, 1, *(path.name for path in targets)]
    assert model.exists()


def test_a_folder_of_any_formats_and_several_text_columns_on_a_cluster(cluster, tmp_path):
    """In Chinese: the client chooses the tokens, from the first documents of every domain."""
    good, bad = "很好吃，我喜欢", "太难吃，我讨厌"
    for name, n in ("shops", 0), ("phones", 1):
        (tmp_path / name).mkdir()
        for i, ending in enumerate((".csv.xz", ".json", ".xlsx", ".jsonl.zst")):
            texts = [f"{(good, bad)[j % 2]}这{j + i}" for j in range(20)]
            labels = [("good", "bad")[j % 2] for j in range(20)] if not n else texts
            write(tmp_path / name / f"part-{i}{ending}", texts, title=["第一"] * 20, label=labels)
    files = [tmp_path / "shops"], [tmp_path / "phones"], ["title", "text"], "label"
    adapters = adapter(), adapter()
    plain = run_adapt(AdaptJob(*files, tmp_path / "plain.csv"), adapters[0])
    sharded = AdaptJob(*files, tmp_path / "sharded.csv")
    summary = run_on_cluster(cluster.scheduler.address, sharded, adapters[1])
    assert plain["tokens"] == summary["tokens"] == "characters"
    assert adapters[0].terms_ == adapters[1].terms_
    for name in ("text", "prediction"):
        assert column(tmp_path / "plain.csv", name) == column(tmp_path / "sharded.csv", name)
    assert set(column(tmp_path / "plain.csv", "prediction")) == {"good", "bad"}


def test_probabilities_known_shares_and_gaps_on_a_cluster(cluster, messages):
    """The counts are of all shards."""
    files = [messages / "hotel-*.csv"], [messages / "garage-*.csv", messages / "garage-*.jsonl"]
    options = {"probabilities": True, "min_confidence": 0.6}
    options["target_shares"] = [{"0": 0.3, "1": 0.7}, {"0.0": 0.6, "1.0": 0.4}]
    names = ["prediction", "score", "probability", "p_0", "p_1", "domain"]
    plain = run_adapt(AdaptJob(*files, ("text",), "label", messages / "plain.csv", **options), adapter())
    assert [entry["target_shares"]["1"] for entry in plain["targets"]] == [0.7, 0.4]
    job = AdaptJob(*files, ("text",), "label", messages / "one.csv", **options)
    summary = run_on_cluster(cluster.scheduler.address, job, adapter())
    assert all(0 < entry["n_doubtful"] < entry["rows"] for entry in summary["targets"])
    for entry, expected in zip(summary["targets"], plain["targets"], strict=True):
        for name in ("n_doubtful", "predicted_shares", "target_shares"):
            assert entry[name] == expected[name]
    assert open_table(job.out).columns == ("text", "truth", *names)
    for name in ("prediction", "domain"):
        assert column(job.out, name) == column(messages / "plain.csv", name)
    for name in ("probability", "p_0", "p_1"):
        values, expected = (np.array(column(path, name), float) for path in (job.out, messages / "plain.csv"))
        np.testing.assert_allclose(values, expected, atol=1e-4)


def test_the_summary_is_the_same_wherever_the_job_was_computed(cluster, messages):
    """Counts, notes, warnings, distances and errors, of targets with and without labels to score with."""
    write(messages / "empty.csv", ["...", "ganz andere Wörter", ""] * 10, truth=[""] * 30)
    files = [messages / "hotel.csv"], [messages / "garage.csv", messages / "empty.csv"]
    for scored in (None, "truth"):
        job = AdaptJob(*files, ("text",), "label", messages / "o.csv", target_label=scored)
        plain = run_adapt(job, adapter())
        sharded = run_on_cluster(cluster.scheduler.address, job, adapter())
        assert list(sharded) == list(plain)
        for name in ("sources", "targets", "labels", "notes", "warnings", "chosen", "rule", "vocabulary"):
            assert sharded[name] == plain[name]
        assert [list(entry) for entry in sharded["targets"]] == [list(entry) for entry in plain["targets"]]
    assert sharded["targets"][1]["empty"] == 10
    assert sharded["notes"][0] == "empty.csv has no label to score with"
    assert sharded["targets"][1]["unknown_rows"] == 30
    assert any("never occur in the source" in warning for warning in sharded["warnings"])


@pytest.fixture
def taught(tmp_path):
    """Reviews in shards, one empty: a teacher is silent on a fifth of the kitchen's, wrong on a seventh."""
    domains = make_review_texts(1200, unlabelled_share=0.0, seed=3, style="mixed")
    names, (texts, labels) = ["negative", "positive"], domains["kitchen"]
    answers = [names[(names.index(y) + (i % 7 == 0)) % 2] if i % 5 else "" for i, y in enumerate(labels)]
    sure = [0.6 + 0.3 * (i % 7 > 1) if i % 3 else "" for i in range(len(labels))]
    truth = [label if i % 4 else "" for i, label in enumerate(labels)]
    write(tmp_path / "books.csv", domains["books"][0], label=domains["books"][1])
    for i in range(6):
        own = slice(200 * i, 200 * i + 200)
        columns = {"truth": truth[own], "llm": answers[own], "sure": sure[own]}
        write(tmp_path / f"kitchen-{i}{'.csv' if i < 3 else '.jsonl'}", texts[own], **columns)
    write(tmp_path / "kitchen-6.csv", [], truth=[], llm=[], sure=[])
    return tmp_path


TEACHER = {"teacher": "llm", "teacher_confidence": "sure"}


def small_adapter() -> TextAdapter:
    return TextAdapter(400, classifier=MSDAClassifier(1, random_state=0))


@pytest.mark.parametrize("sources", [["books.csv"], []], ids=["with-source", "without-source"])
def test_a_teacher_of_several_targets_on_a_cluster(cluster, taught, sources):
    """Some rows have no label of the teacher, and some no true one."""
    files = [taught / name for name in sources], [taught / "kitchen-*.csv", taught / "kitchen-*.jsonl"]
    options = {"target_label": "truth", "min_confidence": 0.6, **TEACHER}
    jobs = [
        AdaptJob(*files, ("text",), "label", taught / f"{run}.csv", **options) for run in ("plain", "sharded")
    ]
    plain = run_adapt(jobs[0], small_adapter())
    sharded = run_on_cluster(cluster.scheduler.address, jobs[1], small_adapter())
    for name in ("text", "llm", "prediction", "domain", "teacher_disagrees"):
        assert column(jobs[1].out, name) == column(jobs[0].out, name)
    assert set(column(jobs[1].out, "teacher_disagrees")) == {"true", "false", ""}
    for name in ("score", "probability"):
        values, expected = (np.array(column(job.out, name), float) for job in reversed(jobs))
        if name == "score":  # log odds, which are large for sure rows
            values, expected = expit(values), expit(expected)
        np.testing.assert_allclose(values, expected, atol=1e-3)
    assert list(sharded) == list(plain)
    for entry, expected in zip(sharded["targets"], plain["targets"], strict=True):
        assert list(entry) == list(expected)
        for name in ("adapted_error", "baseline_error", "labelled_shares", "predicted_shares", "n_doubtful"):
            assert entry[name] == expected[name]
        said, told = entry["teacher"], expected["teacher"]
        assert said.pop("noise") == pytest.approx(told.pop("noise"), abs=1e-4)
        assert said == told
        assert said["n_labels"] == 480
        assert said["n_probably_wrong"] > 0
        assert 0 < said["n_scored"] < 480
        assert len(said["surest_rows"]) == 2 * len(said["words"]) == 10


def test_a_student_of_a_cluster_is_distilled_and_saved(cluster, taught):
    """Both are the student alone, without the teacher's words."""
    files = [], [taught / "kitchen-*.csv"], ("text",), "label", taught / "out.csv", taught / "m.safetensors"
    job = AdaptJob(*files, distilled=taught / "small.safetensors", **TEACHER)
    run_on_cluster(cluster.scheduler.address, job, small_adapter())
    student, small = load_model(job.model), load_model(job.distilled)
    texts, answers, disagrees = (column(job.out, name) for name in ("text", "llm", "teacher_disagrees"))
    own = student.predict(texts)
    pairs = zip(own, answers, strict=True)
    assert disagrees == [str(label != answer).lower() if answer else "" for label, answer in pairs]
    assert np.mean(small.predict(texts) == own) > 0.9


def test_a_column_may_be_the_teachers_and_the_true_labels(cluster, taught):
    files = [taught / "books.csv"], [taught / "kitchen-*.csv"], ("text",), "label", taught / "out.csv"
    job = AdaptJob(*files, teacher="llm", target_label="llm")
    (entry,) = run_on_cluster(cluster.scheduler.address, job, small_adapter())["targets"]
    assert entry["teacher"]["n_labels"] == entry["teacher"]["n_scored"] == entry["scored"] == 480
    assert entry["teacher"]["teacher_error"] == 0


def test_a_bad_teacher_is_refused_on_a_cluster_as_here(cluster, taught):
    files = [taught / "books.csv"], [taught / "kitchen-*.csv"], ("text",), "label", taught / "out.csv"
    for options, said in (
        ({"teacher": "gpt"}, "has no column 'gpt'"),
        ({"teacher": "truth", "teacher_confidence": "llm"}, "a confidence is a number from 0 to 1"),
        ({"teacher": "sure"}, "has the label .*; the classes are negative, positive"),
    ):
        for run in (run_adapt, partial(run_on_cluster, cluster.scheduler.address)):
            with pytest.raises(TableError, match=said):
                run(AdaptJob(*files, **options), small_adapter())
    assert not (taught / "out.csv").exists()


def test_neither_predictions_nor_model_on_a_cluster_if_one_fails(cluster, messages, fail):
    fail("undrift.app.adapt.save_model", OSError(28, "No space left on device"))
    files = [messages / "hotel.csv"], [messages / "garage.csv"]
    job = AdaptJob(*files, ("text",), "label", messages / "o.csv", messages / "model.safetensors")
    with pytest.raises(OSError, match="No space left"):
        run_on_cluster(cluster.scheduler.address, job, adapter())
    assert not (messages / "o.csv").exists()


def shards_of(folder) -> list[Shard]:
    return [Shard(path, ("text",)) for path in shard_paths(folder / "hotel-*.csv")]


def true_frequencies(folder) -> Counter:
    texts = column(folder / "hotel.csv", "text")
    return Counter(word for text in texts for word in set(words(text)))


@pytest.mark.parametrize("max_counted", [150, 2_000_000])
def test_the_vocabulary_is_counted_in_bounded_memory(messages, max_counted):
    vectorizer = TermVectorizer(20, ngram_range=(1, 1), tokens="words").choose_tokens([])
    vectorizer.max_counted = max_counted
    with dask.config.set(scheduler="synchronous"):
        _, found = survey_shards(shards_of(messages), vectorizer, 0)
        assert len(found.counts) <= max_counted
        assert (found.n_missed > 0) == (max_counted == 150)
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


def test_bad_shards_are_refused_as_single_files_are(cluster, messages):
    patterns = [messages / "hotel-*.csv"], [messages / "garage-*.csv"]
    address = cluster.scheduler.address
    with pytest.raises(TableError, match="has no column 'txt'; did you mean 'text'"):
        run_on_cluster(address, AdaptJob(*patterns, ("txt",), "label", messages / "out.csv"), adapter())
    for path in shard_paths(patterns[0][0]):
        write(path, column(path, "text"), label=[""] * 15)
    with pytest.raises(TableError, match="has no label"):
        run_on_cluster(address, AdaptJob(*patterns, ("text",), "label", messages / "out.csv"), adapter())
    assert not (messages / "out.csv").exists()
    assert not list(messages.glob(".*"))


def test_warnings_of_workers_reach_the_summary(cluster, messages):
    path = messages / "hotel-0.csv"
    with open(path, "w", newline="", encoding="cp1252") as file:
        csv.writer(file).writerows(
            [("text", "label"), ("a café hotel, dull", "0"), ("a café hotel, good", "1")]
        )
    job = AdaptJob(
        [messages / "hotel-*.csv"], [messages / "garage-*.csv"], ("text",), "label", messages / "o.csv"
    )
    summary = run_on_cluster(cluster.scheduler.address, job, adapter())
    assert any("hotel-0.csv" in warning for warning in summary["warnings"])
