import gzip

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from undrift_lab.corpora import load_fdu_mtl

TRAIN = b"1\tdid n't break\n0\tbad\n"
TEST = b"0\tawful , really\n"


def write(folder, train=TRAIN, test=TEST, unlabel=b"I like it.\n"):
    for name, content in (("train", train), ("test", test), ("unlabel", unlabel)):
        if content is not None:
            (folder / f"baby.task.{name}").write_bytes(content)
    return folder


def test_texts_labels_and_parts(tmp_path):
    baby = load_fdu_mtl(write(tmp_path)).domains["baby"]
    assert baby.texts == ["did n't break", "bad", "awful , really", "I like it."]
    assert_array_equal(baby.y, [1, 0, 0, np.nan])
    assert_array_equal(baby.train, [0, 1])
    assert_array_equal(baby.test, [2])
    assert_array_equal(baby.unlabelled, [3])
    odd = load_fdu_mtl(write(tmp_path, train=b"1\ta\tb\n0\t\n", unlabel=b"c\n \n\nd\n")).domains["baby"]
    assert odd.texts == ["a\tb", "", "awful , really", "c", "d"]  # only the first tab separates


def test_lines_end_at_newlines_alone_and_have_their_own_encoding(tmp_path):
    odd = "a\x85b\u2028c\x0bd\x1ce\rf"
    write(tmp_path, train=f"1\t{odd}\r\n0\tx\n".encode(), unlabel=odd.encode())
    baby = load_fdu_mtl(tmp_path).domains["baby"]
    assert baby.texts == [odd, "x", "awful , really", odd]
    train = "1\tna\u00efve".encode() + b"\n" + "0\tclich\u00e9".encode("latin-1") + b"\n"
    baby = load_fdu_mtl(write(tmp_path, train=b"\xef\xbb\xbf" + train)).domains["baby"]
    assert baby.texts[:2] == ["na\u00efve", "clich\u00e9"]


@pytest.mark.parametrize("line", [b"1 no tab", b"2\ttext", b"\ttext", b"positive\ttext"])
def test_malformed_line_is_named(tmp_path, line):
    with pytest.raises(ValueError, match=r"baby\.task\.test, line 2: expected '0<TAB>text'"):
        load_fdu_mtl(write(tmp_path, test=b"1\tfine\n" + line + b"\n0\tfine\n"))


def test_blank_lines_are_left_out_but_counted(tmp_path):
    baby = load_fdu_mtl(write(tmp_path, train=b"1\tgood\n\n0\tbad\r\n \r\n\n")).domains["baby"]
    assert baby.texts[:2] == ["good", "bad"]
    assert_array_equal(baby.train, [0, 1])
    with pytest.raises(ValueError, match=r"baby\.task\.train, line 3: expected"):
        load_fdu_mtl(write(tmp_path, train=b"1\tgood\n\nbad\n"))
    with pytest.raises(ValueError, match=r"baby\.task\.train has no lines"):
        load_fdu_mtl(write(tmp_path, train=b"\n\n"))


def test_incomplete_folders_and_damaged_files(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no \*\.task\.train"):
        load_fdu_mtl(tmp_path)
    write(tmp_path, test=None)
    with pytest.raises(FileNotFoundError, match=r"neither baby\.task\.test"):
        load_fdu_mtl(tmp_path)
    with pytest.raises(ValueError, match=r"baby\.task\.test has no lines"):
        load_fdu_mtl(write(tmp_path, test=b""))
    (tmp_path / "baby.task.test").unlink()
    whole = gzip.compress(TEST * 100)
    for content in (whole[:-20], b"no gzip at all", whole[:10] + b"\xff" * 20 + whole[30:]):
        (tmp_path / "baby.task.test.gz").write_bytes(content)
        with pytest.raises(OSError, match=r"baby\.task\.test\.gz is damaged"):
            load_fdu_mtl(tmp_path)


def test_the_real_set(data_folder):
    real = load_fdu_mtl(data_folder / "fdu-mtl")
    texts, domain = real.rows()
    assert len(real.domains) == 10
    assert len(texts) == 39_895
    assert len(real.tasks()) == 90
    assert [len(d.train) for d in real.domains.values()] == [1500, 1600, 1597, 1600, 1598, *[1600] * 5]
    assert {(len(d.test), len(d.unlabelled)) for d in real.domains.values()} == {(400, 2000)}
    assert np.bincount(domain)[0] == 3900
