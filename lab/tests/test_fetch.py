"""`undrift-lab fetch`: data to where plans look for it."""

import pytest

from lab.tests.helpers.web_site import Site
from undrift_lab.corpora import addresses

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


def test_what_is_fetched_is_where_a_run_looks(command, site, tmp_path):
    data = tmp_path / "data"
    status, printed, said = command("fetch", "fdu-mtl", "--data", data)
    assert (status, said.count("Downloading http")) == (0, 4)
    assert printed == f"fdu-mtl is in {data / 'fdu-mtl'}\n"
    assert (data / "fdu-mtl" / "baby.task.test").read_bytes() == REVIEWS
    plan = tmp_path / "one.toml"
    plan.write_text('methods = ["svm"]\n[corpus]\nloader = "fdu-mtl"\n')
    run = ("run", plan, "--results", tmp_path / "r.jsonl")
    status, printed, _ = command(*run, "--data", data)
    assert status == 0
    assert printed.startswith("2 tasks run")
    status, _, said = command(*run, "--data", tmp_path)
    assert status == 2
    assert f"`undrift-lab fetch fdu-mtl --data {tmp_path}`" in "".join(said.splitlines())


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("amazon", "choose one of amazon-bow, processed_acl, fdu-mtl, multidomain"),
        ("fdu-mtl", "Cannot download http"),
    ],
)
def test_what_cannot_be_fetched_is_one_line(command, site, tmp_path, name, complaint):
    site.pages = {}
    status, printed, said = command("fetch", name, "--data", tmp_path)
    assert (status, printed) == (2, "")
    said = said.removeprefix(f"Downloading {site.source('baby.task.train').urls[0]}\n")
    assert said.startswith("undrift-lab: ")
    assert complaint in said
    assert said.count("\n") == 1
