"""Fixtures of the benchmark's tests."""

import pytest

from lab.tests.helpers.corpus import PLAN, records_of_all_tasks, write_corpus
from tests.conftest import counts, data_folder, fail, rng, set_limits, spy, torch_device  # noqa: F401


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


@pytest.fixture
def command(capsys):
    """Run `undrift-lab` in this process: exit status, what it printed, what it complained of."""
    from undrift_lab.cli import main

    def run(*arguments):
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        printed = capsys.readouterr()
        return ended.value.code, printed.out, printed.err

    return run
