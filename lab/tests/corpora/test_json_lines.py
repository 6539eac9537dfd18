import gzip
import json

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from undrift_lab.corpora import load_crisis, load_debt, load_natural, load_newsgroups


def write(path, rows):
    with gzip.open(f"{path}.jsonl.gz", "wt", encoding="utf-8") as file:
        file.writelines(f"{json.dumps(row)}\n" for row in rows)


def test_labelled_rows_train_and_test_and_the_others_are_unlabelled(tmp_path):
    write(
        tmp_path / "books",
        [{"text": "a", "label": 1}, {"text": "b", "label": None}, {"text": "c", "label": 0}],
    )
    write(tmp_path / "music", [{"text": "d", "label": 0}])
    corpus = load_natural(tmp_path)
    books, music = corpus.domains["books"], corpus.domains["music"]
    assert books.texts == ["a", "b", "c"]
    assert_array_equal(books.y, [1, np.nan, 0])
    assert_array_equal(books.train, [0, 2])
    assert_array_equal(books.test, [0, 2])
    assert_array_equal(books.unlabelled, [1])
    assert music.y.dtype == np.int64
    assert [task.name for task in corpus.tasks()] == ["books->music", "music->books"]


def test_halves_of_two_topics_are_a_domain(tmp_path):
    for topic in ("comp", "rec", "talk"):
        for half in ("first", "second"):
            write(
                tmp_path / f"{topic}-{half}",
                [{"text": f"{topic} {half} {i}", "group": "g"} for i in range(2)],
            )
    corpus = load_newsgroups(tmp_path)
    assert list(corpus.domains) == [
        f"{pair}-{half}" for pair in ("comp-rec", "comp-talk", "rec-talk") for half in ("first", "second")
    ]
    domain = corpus.domains["rec-talk-second"]
    assert domain.texts == ["rec second 0", "rec second 1", "talk second 0", "talk second 1"]
    assert_array_equal(domain.y, [0, 0, 1, 1])


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('{"text": "a", "label": 2}', "expected a text and a (label|group)"),
        ('{"text": 1, "label": 1}', "expected a text and a (label|group)"),
        ('{"label": 1}', "expected a text and a (label|group)"),
        ("[1]", "expected a text and a (label|group)"),
        ("{", "not JSON"),
    ],
)
def test_a_line_that_cannot_be_read_is_named(tmp_path, line, says):
    (tmp_path / "books.jsonl").write_text(f'{{"text": "a", "label": 1}}\n{line}\n')
    with pytest.raises(ValueError, match=rf"books\.jsonl, line 2: {says}"):
        load_natural(tmp_path)
    (tmp_path / "books.jsonl").write_text("\n")
    with pytest.raises(ValueError, match=r"books\.jsonl has no lines"):
        load_natural(tmp_path)


@pytest.mark.parametrize(
    ("load", "name", "n_domains", "shares"),
    [
        (load_natural, "natural", 8, (0.76, 0.91)),
        (load_crisis, "crisis", 3, (0.48, 0.59)),
        (load_debt, "debt", 5, (0.02, 0.17)),
        (load_newsgroups, "newsgroups", 6, (0.39, 0.61)),
    ],
)
def test_the_real_sets(data_folder, load, name, n_domains, shares):
    corpus = load(data_folder / name)
    found = [domain.y[domain.train].mean() for domain in corpus.domains.values()]
    assert (corpus.name, len(found)) == (name, n_domains)
    assert shares[0] < min(found) <= max(found) < shares[1]
