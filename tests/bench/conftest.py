"""Fixtures of the benchmark's tests."""

import pytest

from tests.helpers.bench_corpus import PLAN, records_of_all_tasks, write_corpus


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
    return records_of_all_tasks()
