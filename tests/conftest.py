"""Fixtures that several test modules share."""

import os
import sys
from pathlib import Path

import pytest

# both are read when NumPy and SciPy are imported: workers side by side take one thread each, and
# scikit-learn's checks of array-API input want SciPy's support for it
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("SCIPY_ARRAY_API", "1")

import numpy as np

from tests.helpers.browser import open_browser


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """Folder of the public corpora; without it the tests that need them are skipped."""
    folder = os.environ.get("UNDRIFT_DATA")
    if not folder:
        pytest.skip("set UNDRIFT_DATA to the folder that holds amazon-bow, processed_acl and fdu-mtl")
    return Path(folder)


# below `tests`: tests that write files and pages, run commands and clusters, or try every device or language
SLOW = (
    "app", "distributed", "inputs/test_device.py", "method/test_equal_rows.py",
    "method/test_lacking_classes.py", "method/test_teacher.py", "report", "test_hostile_models.py",
    "text/test_languages.py",
)  # fmt: skip


def pytest_collection_modifyitems(items) -> None:
    """Mark tests of commands, clusters, pages and devices as slow; skip those of POSIX elsewhere."""
    folder = Path(__file__).parent
    for item in items:
        if os.name != "posix" and item.get_closest_marker("posix"):
            item.add_marker(pytest.mark.skip(reason="signals, terminals and files are those of POSIX"))
        in_folder = any(item.path.is_relative_to(folder / name) for name in SLOW)
        if in_folder or item.get_closest_marker("browser"):
            item.add_marker(pytest.mark.slow)


def pytest_sessionfinish(session) -> None:
    """Let the run fail where a test was skipped and UNDRIFT_NO_SKIPS is set."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("UNDRIFT_NO_SKIPS") and reporter and reporter.stats.get("skipped"):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(7)


@pytest.fixture
def counts(rng) -> np.ndarray:
    """Term counts of 60 documents over 9 terms: correlated, skewed, none of them empty."""
    topics = rng.gamma(0.5, size=(60, 3)) @ rng.gamma(0.4, size=(3, 9))
    return rng.poisson(topics + 0.1).astype(np.float64)


@pytest.fixture
def set_limits(monkeypatch):
    """Set constants, such as limits of sizes, in every module of the library that uses them."""

    def set_values(**values):
        modules = [module for name, module in sys.modules.items() if name.startswith("undrift")]
        for name, value in values.items():
            users = [module for module in modules if name in vars(module)]
            assert users, name
            for module in users:
                monkeypatch.setattr(module, name, value)

    return set_values


@pytest.fixture
def fail(monkeypatch):
    """Let a function, given by its dotted name, raise an error."""

    def replace(target, error):
        def raise_error(*args, **options):
            raise error

        monkeypatch.setattr(target, raise_error, raising=False)

    return replace


@pytest.fixture
def spy(monkeypatch):
    """Let a function or method record its calls; returns the list of their positional arguments."""

    def watch(owner, name):
        calls, original = [], getattr(owner, name)

        def call(*args, **options):
            calls.append(args)
            return original(*args, **options)

        monkeypatch.setattr(owner, name, call)
        return calls

    return watch


@pytest.fixture
def undrift(capsys):
    """Run a command in this process: exit status, what it printed, what it complained of."""
    from undrift.app import main

    def command(*arguments):
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        printed = capsys.readouterr()
        return ended.value.code, printed.out, printed.err

    return command


@pytest.fixture
def succeed(undrift):
    """Run a command that has to succeed; returns what it printed."""

    def command(*arguments):
        status, out, err = undrift(*arguments)
        assert status == 0, err
        return out

    return command


@pytest.fixture(scope="module")
def browser():
    """A real browser; closed with the module, since its loop would be in the way of others."""
    with open_browser() as own:
        yield own


def pytest_addoption(parser) -> None:
    parser.addoption("--device", default="cpu", help="device of torch that the torch tests run on, e.g. cuda")


@pytest.fixture
def torch_device(request) -> str:
    """Name of a device of torch."""
    return request.config.getoption("--device", "cpu")  # the lab's tests have no such option


@pytest.fixture
def device(torch_device) -> str:
    """The same as an estimator's `device`."""
    return f"torch:{torch_device}"


@pytest.fixture(scope="session")
def two_workers():
    """A real cluster of two worker processes."""
    distributed = pytest.importorskip("distributed")
    options = {"threads_per_worker": 1, "memory_limit": "2GB", "dashboard_address": "127.0.0.1:0"}
    with distributed.LocalCluster(n_workers=2, **options) as cluster:
        yield cluster


@pytest.fixture
def cluster(two_workers):
    """Client of that cluster, which computes whatever the test asks of Dask."""
    with two_workers.get_client() as client:
        yield client
