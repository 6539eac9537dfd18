"""Corpora whose labels are names, the visual words, the paper's twenty products; families."""

import json

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from undrift_lab.corpora import FAMILIES, LOADERS, NAMED, load_amazon_20
from undrift_lab.corpora.json_lines import load_named
from undrift_lab.corpora.surf import load_office_caltech_surf

CLASSES = {
    "news_topics": 4,
    "newsgroups4": 4,
    "intents": 26,
    "intents4": 4,
    "crisis_types": 6,
    "airline": 3,
    "hutto_sentiment3": 3,
    "emotion": 4,
    "question_types": 4,
    "youtube_spam": 2,
    "chinese_reviews": 2,
    "arabic_binary": 2,
    "clickbait": 2,
    "sarcasm": 2,
    "stance": 3,
}


def write(path, rows):
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")


def test_names_of_classes_have_the_same_number_in_every_domain(tmp_path):
    write(tmp_path / "a.jsonl", [{"text": "x", "label": "sport"}, {"text": "y", "label": None}])
    write(tmp_path / "b.jsonl", [{"text": "z\u0085z", "label": "art"}, {"text": "w", "label": "sport"}])
    corpus = load_named("news", tmp_path)
    assert corpus.classes == ["art", "sport"]
    a, b = corpus.domains["a"], corpus.domains["b"]
    assert_array_equal(a.y, [1, np.nan])
    assert_array_equal(a.unlabelled, [1])
    assert b.y.tolist() == [0, 1]
    assert b.texts == ["z\u0085z", "w"]
    assert corpus.map(lambda texts: texts).classes == ["art", "sport"]


@pytest.mark.parametrize("label", [1, 0.5, "", ["sport"], True])
def test_a_label_that_is_no_name_is_refused_with_its_line(tmp_path, label):
    write(tmp_path / "a.jsonl", [{"text": "x", "label": "sport"}, {"text": "y", "label": label}])
    with pytest.raises(ValueError, match=r"a\.jsonl, line 2: expected a text and a label"):
        load_named("news", tmp_path)


def test_one_class_is_refused(tmp_path):
    write(tmp_path / "a.jsonl", [{"text": "x", "label": "sport"}, {"text": "y", "label": None}])
    with pytest.raises(ValueError, match="labels are sport; two classes are needed"):
        load_named("news", tmp_path)


@pytest.mark.parametrize("label", [True, 1.0, "1", -1])
def test_numbers_of_reviews_are_0_1_or_null(tmp_path, label):
    write(tmp_path / "a.jsonl", [{"text": "x", "label": label}])
    with pytest.raises(ValueError, match=r"a\.jsonl, line 1"):
        load_amazon_20(tmp_path)


def parts(**changes):
    X = np.array([[0, 2, 0], [1, 0, 3]])
    csr = {"data": np.array([2.0, 1, 3]), "indices": np.array([1, 0, 2]), "indptr": np.array([0, 1, 3])}
    return {**csr, "shape": np.array(X.shape), "y": np.array(["mug", "bike"]), **changes}


def test_visual_words_are_sparse_rows_with_names_of_classes(tmp_path):
    np.savez(tmp_path / "dslr.npz", **parts())
    np.savez(tmp_path / "webcam.npz", **parts(y=np.array(["pan", "mug"])))
    corpus = load_office_caltech_surf(tmp_path)
    assert corpus.classes == ["bike", "mug", "pan"]
    assert_array_equal(corpus.domains["dslr"].X.toarray(), [[0, 2, 0], [1, 0, 3]])
    assert corpus.domains["dslr"].X.dtype == np.float32
    assert_array_equal(corpus.domains["webcam"].y, [2, 1])
    assert_array_equal(corpus.domains["webcam"].test, [0, 1])


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"indices": np.array([1, 0, 3])}, "no sparse matrix"),
        ({"indptr": np.array([0, 4, 3])}, "no sparse matrix"),
        ({"shape": np.array(["two", "three"])}, "no sparse matrix"),
        ({"data": np.array([2.0, np.nan, 3])}, "no counts"),
        ({"data": np.array([2.0, -1, 3])}, "no counts"),
        ({"y": np.array(["mug"])}, "a name a row"),
        ({"y": np.array([1, 2])}, "a name a row"),
        ({"y": np.array(["mug", None], dtype=object)}, "not a NumPy archive of plain arrays"),
    ],
)
def test_an_archive_that_holds_something_else_is_refused(tmp_path, changes, says):
    np.savez(tmp_path / "dslr.npz", **parts(**changes))
    with pytest.raises(ValueError, match=rf"dslr\.npz.*{says}"):
        load_office_caltech_surf(tmp_path)


def test_an_archive_that_lacks_a_part_or_is_none_is_refused(tmp_path):
    given = parts()
    del given["y"]
    np.savez(tmp_path / "dslr.npz", **given)
    with pytest.raises(ValueError, match=r"dslr\.npz lacks y"):
        load_office_caltech_surf(tmp_path)
    with open(tmp_path / "dslr.npz", "wb") as file:
        np.save(file, np.arange(3))
    with pytest.raises(ValueError, match=r"dslr\.npz is not a NumPy archive"):
        load_office_caltech_surf(tmp_path)
    (tmp_path / "dslr.npz").write_bytes(b"PK\x03\x04 no archive")
    with pytest.raises(ValueError, match=r"dslr\.npz is not a NumPy archive"):
        load_office_caltech_surf(tmp_path)


def test_every_corpus_has_a_family():
    assert set(FAMILIES) == set(LOADERS)
    amazon = {name for name, family in FAMILIES.items() if family == "Amazon reviews"}
    assert {"amazon-bow", "processed_acl", "fdu-mtl", "natural", "amazon-20"} <= amazon
    assert FAMILIES["newsgroups"] == FAMILIES["newsgroups4"]
    assert FAMILIES["emotion"] == "emotion"


@pytest.mark.parametrize("name", NAMED)
def test_the_real_sets(data_folder, name):
    corpus = LOADERS[name](data_folder / name)
    assert len(corpus.classes) == CLASSES[name]
    assert len(corpus.domains) >= 2
    for domain in corpus.domains.values():
        assert len(domain.train) == len(domain) <= 4000
        assert set(np.unique(domain.y)) <= set(range(CLASSES[name]))


def test_the_real_photographs(data_folder):
    corpus = load_office_caltech_surf(data_folder / "office_caltech_surf")
    assert list(corpus.domains) == ["amazon", "caltech", "dslr", "webcam"]
    assert [len(domain) for domain in corpus.domains.values()] == [958, 1123, 157, 295]
    assert {domain.X.shape[1] for domain in corpus.domains.values()} == {800}
    assert len(corpus.classes) == 10


def test_the_real_twenty_products(data_folder):
    corpus = load_amazon_20(data_folder / "amazon-20")
    assert len(corpus.domains) == 20
    assert len(corpus.tasks()) == 380
    assert sum(len(domain) for domain in corpus.domains.values()) == 85873
    assert sum(len(domain.train) for domain in corpus.domains.values()) == 30681
    shares = [domain.y[domain.train].mean() for domain in corpus.domains.values()]
    assert 0.62 < min(shares) < max(shares) < 0.91
