"""`undrift bench fetch` and `generate`: data to where plans look for it."""

import json
import re

import pytest

pytest.importorskip("typer")

from tests.helpers.web_site import Site
from undrift.bench.generated import write_domains
from undrift.datasets import addresses, load_multidomain_sentiment

TAGS = ["unique_id", "asin", "product_name", "product_type", "helpful", "rating", "title", "date"]
TAGS += ["reviewer", "reviewer_location", "review_text"]
REVIEWS = b"1\tgood one\n0\tbad one\n" * 10


@pytest.fixture
def site(monkeypatch):
    """A web site that has fdu-mtl, of two domains."""
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    with Site() as site:
        names = [f"{domain}.task.{part}" for domain in ("baby", "toys") for part in ("train", "test")]
        site.pages = {f"/{name}": REVIEWS for name in names}
        monkeypatch.setitem(addresses.SOURCES, "fdu-mtl", site.source(*names, name="fdu-mtl"))
        yield site


def test_what_is_fetched_is_where_a_run_looks(undrift, site, tmp_path):
    data = tmp_path / "data"
    status, printed, said = undrift("bench", "fetch", "fdu-mtl", "--data", data, "--json")
    assert (status, said) == (0, "")
    assert json.loads(printed) == {"name": "fdu-mtl", "folder": str(data / "fdu-mtl")}
    assert (data / "fdu-mtl" / "baby.task.test").read_bytes() == REVIEWS
    plan = tmp_path / "one.toml"
    plan.write_text('methods = ["svm"]\n[corpus]\nloader = "fdu-mtl"\n')
    run = ("bench", "run", plan, "--results", tmp_path / "r.jsonl")
    status, printed, _ = undrift(*run, "--data", data)
    assert status == 0
    assert printed.startswith("2 tasks run")
    status, _, said = undrift(*run, "--data", tmp_path)
    assert status == 2
    assert f"`undrift bench fetch fdu-mtl --data {tmp_path}`" in "".join(said.splitlines())


def test_by_default_it_goes_to_undrift_data_once(undrift, site, tmp_path, monkeypatch):
    monkeypatch.setenv("UNDRIFT_DATA", str(tmp_path))
    for _ in range(2):
        status, printed, _ = undrift("bench", "fetch", "fdu-mtl")
        assert status == 0
        assert f"fdu-mtl is in {tmp_path}/fdu-mtl" in "".join(printed.splitlines())
    assert len(site.requests) == 4  # of four files, not eight


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("amazon-mat", "Put your copy at DIR/amazon-mat/amazon.mat"),
        ("amazon", "choose one of amazon-bow, processed_acl, fdu-mtl, multidomain, multidomain-acl"),
        ("fdu-mtl", "Cannot download http"),
    ],
)
def test_what_cannot_be_fetched_is_one_line(undrift, site, tmp_path, name, complaint):
    site.pages = {}
    status, printed, said = undrift("bench", "fetch", name, "--data", tmp_path)
    assert (status, printed) == (2, "")
    assert said.startswith("undrift: ")
    assert complaint in said
    assert said.count("\n") == 1


def test_generate_tells_of_the_loaders_bound(undrift):
    status, printed, _ = undrift("bench", "generate", "--help")
    assert status == 0
    assert re.search(r"fewer\s+than\s+1000", re.sub(r"[^\w\s]", " ", printed))
    assert "min_reviews" in printed


def test_generated_records_have_the_tags_of_the_public_files_in_their_order(tmp_path):
    write_domains(tmp_path, 2, 12)
    content = (tmp_path / "sorted_data" / "domain_00" / "all.review").read_text(encoding="latin-1")
    records = re.findall(r"<review>\n(.*?)</review>\n", content, re.DOTALL)
    assert len(records) == 12
    for record in records:
        opened = re.findall(r"^<(\w+)>$", record, re.MULTILINE)
        assert list(dict.fromkeys(opened)) == TAGS
        assert len(opened) > len(TAGS)  # some occur twice
        assert opened == re.findall(r"^</(\w+)>$", record, re.MULTILINE)
    corpus = load_multidomain_sentiment(tmp_path, min_reviews=12)
    assert [len(domain) for domain in corpus.domains.values()] == [12, 12]
    texts = corpus.domains["domain_00"].texts
    assert texts == [re.search(r"<review_text>\n(.*)\n</review_text>", record)[1] for record in records]
