import numpy as np
import pytest
from numpy.testing import assert_array_equal

from undrift_lab.corpora import LOADERS
from undrift_lab.methods.encoders import RESULTS
from undrift_lab.teachers import TeacherScores, fingerprint, read_scores, write_scores

TEXTS = {"books": ["dull", "fine"], "music": ["loud", "soft", "odd"]}


@pytest.fixture
def teachers(tmp_path):
    scores = {"frozen": np.arange(10.0).reshape(2, 5), "finetuned": -np.arange(10.0).reshape(2, 5)}
    scores["finetuned"][1] = np.nan
    digests = tuple(fingerprint(texts) for texts in TEXTS.values())
    write_scores(tmp_path / "teachers.npz", TeacherScores(("books", "music"), (2, 3), digests, scores))
    assert [path.name for path in tmp_path.iterdir()] == ["teachers.npz"]
    return read_scores(tmp_path / "teachers.npz")


def test_scores_are_of_the_target_s_rows_by_the_source_s_encoder(teachers):
    assert_array_equal(teachers.find("frozen", "books", "music"), [2, 3, 4])
    assert_array_equal(teachers.find("frozen", "music", "books"), [5, 6])
    assert_array_equal(teachers.find("finetuned", "books", "music"), [-2, -3, -4])
    with pytest.raises(ValueError, match="no scores of toys; known are books, music"):
        teachers.find("frozen", "books", "toys")
    with pytest.raises(ValueError, match="encoder of music was not trained"):
        teachers.find("finetuned", "music", "books")


@pytest.mark.parametrize("name", ["fdu-mtl", "natural"])
def test_the_stored_scores_are_of_these_texts(data_folder, name):
    corpus, stored = LOADERS[name](data_folder / name), read_scores(RESULTS / f"teachers-{name}.npz")
    assert stored.domains == tuple(corpus.domains)
    assert stored.digests == tuple(fingerprint(domain.texts) for domain in corpus.domains.values())
    assert not any(np.isnan(scores).any() for scores in stored.scores.values())
