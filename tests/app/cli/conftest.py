"""Review files to run commands on, and a model that `adapt` saved."""

import signal

import pytest

from tests.helpers.commands import SMALL
from tests.helpers.review_files import make_review_texts, write_csv
from undrift.app import main


@pytest.fixture(scope="package")
def reviews():
    return make_review_texts(100, unlabelled_share=0.2, seed=2)


@pytest.fixture
def folder(tmp_path, reviews, monkeypatch):
    """A folder to work in: books.csv with labels, kitchen.csv and camping.csv with the truth apart."""
    monkeypatch.chdir(tmp_path)
    for name, (texts, labels) in reviews.items():
        column = "stars" if name == "books" else "truth"
        write_csv(tmp_path / f"{name}.csv", {"review": texts, column: labels})
    return tmp_path


@pytest.fixture(scope="package")
def model(tmp_path_factory, reviews):
    """A model file saved by `adapt`, beside the files that it was made from."""
    folder = tmp_path_factory.mktemp("model")
    (books, labels), (kitchen, _) = reviews["books"], reviews["kitchen"]
    write_csv(folder / "books.csv", {"review": books, "stars": labels})
    write_csv(folder / "kitchen.csv", {"review": kitchen})
    arguments = ["adapt", "--source", folder / "books.csv", "--target", folder / "kitchen.csv"]
    arguments += ["--text", "review", "--label", "stars", "--out", folder / "out.csv"]
    with pytest.raises(SystemExit) as done:
        main([str(a) for a in [*arguments, "--model", folder / "model.safetensors", "--updatable", *SMALL]])
    assert done.value.code == 0
    return folder / "model.safetensors"


@pytest.fixture
def heeded_interrupts():
    """Children heed SIGINT, which those of a job in a shell's background inherit as ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
