import gzip

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from undrift.errors import UndriftWarning
from undrift_lab.corpora import load_multidomain_sentiment


def record(text="Fine.", rating="5.0", extra=""):
    return (
        f"<review>\n<unique_id>\n0123:fine:me\n</unique_id>\n<asin>\n0123\n</asin>\n{extra}"
        f"<product_name>\nSalt & Pepper Mill\n</product_name>\n<rating>\n{rating}\n</rating>\n"
        "<title>\nok\n</title>\n"
        f"<review_text>\n{text}\n</review_text>\n</review>\n"
    )


def balanced(n):
    """`n` records, half of them positive, with texts "0", "1", ..."""
    return "".join(record(str(i), "4.0" if i % 2 else "1.0") for i in range(n))


def write(folder, name="books", inner="sorted_data", encoding="latin-1", **files):
    path = folder / inner / name
    path.mkdir(parents=True, exist_ok=True)
    for file, content in files.items():
        (path / f"{file}.review").write_bytes(content.encode(encoding))
    return folder


def load(folder, **kwargs):
    return load_multidomain_sentiment(folder, **{"min_reviews": 4, **kwargs})


def one_file(folder, *records):
    """The texts of `records`, read together with ten ordinary ones that follow them."""
    return load(write(folder, all="".join(records) + balanced(10))).domains["books"].texts[:-10]


def test_split_is_stratified_seeded_and_complete(tmp_path):
    content = "".join(record(str(i), "1.0" if i < 20 else "5.0") for i in range(100))
    write(tmp_path, all=content)
    write(tmp_path, "dvd", all=content)
    first, again, other = (load(tmp_path, random_state=seed).domains["books"] for seed in (0, 0, 1))
    assert (len(first.train), len(first.test)) == (80, 20)
    assert (first.y[first.train] == 0).sum() == 16
    assert sorted([*first.train, *first.test]) == list(range(100))
    assert_array_equal(first.test, again.test)
    assert first.test.tolist() != other.test.tolist()
    alone = load(tmp_path / "sorted_data" / "..", test_size=0.5).domains["dvd"]
    assert len(alone.test) == 50


def test_small_domains_are_dropped(tmp_path):
    for name, n in (("books", 10), ("tools", 8), ("magazines", 9)):
        write(tmp_path, name, all=balanced(n))
    assert list(load(tmp_path, min_reviews=9).domains) == ["books", "magazines"]
    with pytest.raises(ValueError, match=r"no domain with 1000 reviews or more \(the largest has 10\)"):
        load_multidomain_sentiment(tmp_path)


def test_ratings_above_three_are_positive_and_gz_is_read(tmp_path):
    ratings = ["1.0", "2.0", "3.0", "4.0", "5.0", "3.5"]
    content = "".join(record(rating=rating) for rating in ratings).encode()
    (write(tmp_path) / "sorted_data" / "books" / "all.review.gz").write_bytes(gzip.compress(content))
    books = load(tmp_path).domains["books"]
    assert_array_equal(books.y, [0, 0, 0, 1, 1, 1])
    assert books.y.dtype == np.int64


def test_the_folder_may_be_the_inner_one(tmp_path):
    write(tmp_path, all=balanced(10))
    (tmp_path / "sorted_data" / "summary.txt").write_text("not a domain")
    (tmp_path / "sorted_data" / "stopwords").mkdir()
    assert load(tmp_path / "sorted_data").domains["books"].texts == list("0123456789")


def test_markup_stray_bytes_and_open_records(tmp_path):
    texts = one_file(tmp_path, record("R&B, AT&T &amp; <b>&quot;soul&#34;</b> &notanentity x < y"))
    assert texts == ['R&B, AT&T & <b>"soul"</b> &notanentity x < y']
    line = "<review>\n<rating>5.0</rating><review_text>short</review_text>\n</review>\n"
    twice = "<rating>\n\n</rating>\n<unique_id>\nagain\n</unique_id>\n<review_text>\nfirst\n</review_text>\n"
    assert one_file(tmp_path, line, record("second", "4.0", extra=twice)) == ["short", "first"]
    assert one_file(tmp_path, record("caf\xe9\x85<review>\x85\ntwo lines")) == [
        "caf\xe9\x85<review>\x85\ntwo lines"
    ]
    path = write(tmp_path, encoding="utf-8", all=record("caf\xe9") + balanced(10))
    assert load(path).domains["books"].texts[0] == "caf\xe9"
    assert one_file(tmp_path, record("open").replace("</review>\n", ""), record("next")) == ["open", "next"]
    write(tmp_path, all=balanced(10) + record("last").replace("</review>\n", ""))
    assert load(tmp_path).domains["books"].texts[-1] == "last"


@pytest.mark.parametrize(
    "fault",
    [
        record(rating=""),
        record(rating="five"),
        record(rating="nan"),
        record(rating="55"),
        record(text=""),
        record().replace("</rating>", ""),
        record()[: record().index("</review_text>")],
    ],
)
def test_records_that_cannot_be_used_are_named_and_left_out(tmp_path, fault):
    good = record("kept")
    line = good.count("\n") + 1
    with pytest.warns(
        UndriftWarning, match=rf"all\.review, line {line}: record without .* 2 of 13 records left out"
    ):
        texts = one_file(tmp_path, good, fault, fault)
    assert texts == ["kept"]


def test_files_without_records_and_domains_of_one_class(tmp_path):
    with pytest.raises(ValueError, match=r"all\.review has no <review>"):
        load(write(tmp_path, all="rating,text\n5,fine\n"))
    with pytest.raises(ValueError, match=r"Domain 'books' cannot be split with test_size=0\.2"):
        load(write(tmp_path, all=record(rating="5.0") * 5 + record(rating="1.0")))
    with pytest.raises(ValueError, match="Domain 'books' cannot be split"):
        load(write(tmp_path, all=record(rating="5.0") * 9 + record(rating="1.0")))
