"""Fixtures of the benchmark's tests."""

from itertools import permutations

import pytest

from tests.helpers.bench_corpus import DOMAINS, PLAN, transfer, write_corpus


@pytest.fixture(scope="session")
def data(tmp_path_factory):
    """Data folder with the tiny corpus as its amazon-bow."""
    folder = tmp_path_factory.mktemp("data")
    write_corpus(folder / "amazon-bow")
    return folder


@pytest.fixture
def plan_file(tmp_path):
    path = tmp_path / "tiny.toml"
    path.write_text(PLAN)
    return path


@pytest.fixture
def records():
    """Two methods on six tasks; msda-5 is a tenth better, but on books->dvd."""
    made = []
    for i, (source, target) in enumerate(permutations(DOMAINS, 2)):
        made.append(transfer("svm", source, target, 0.30 + 0.01 * i, represent_seconds=0.0))
        made.append(transfer("msda-5", source, target, 0.35 if i == 0 else 0.20 + 0.01 * i))
    return made
