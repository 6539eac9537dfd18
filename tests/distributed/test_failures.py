"""Workers killed in the middle of a stage, a scheduler lost, memory that is short: the answer, or one error.

What happened is read from the scheduler's own record: its events say which tasks a worker took with it,
and the story of a task says how often it was computed.
"""

import os
import signal
import subprocess
import sys
from contextlib import contextmanager

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

pytest.importorskip("distributed")
import dask
from dask import delayed
from distributed import Client, LocalCluster
from distributed.diagnostics.plugin import SchedulerPlugin

from undrift import MSDA, MSDAClassifier, TextAdapter
from undrift.app.adapt import run_adapt
from undrift.app.job import AdaptJob
from undrift.distributed import ClusterLost
from undrift.inputs import follow_steps

pytestmark = pytest.mark.posix  # workers are killed

D = 30
OPTIONS = {"threads_per_worker": 1, "memory_limit": "1GB", "dashboard_address": "127.0.0.1:0"}


def block(seed: int, n: int = 400, d: int = D) -> sp.csr_matrix:
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet([0.3] * 3, size=n) @ np.random.default_rng(0).beta(0.4, 1.2, size=(3, d))
    return sp.csr_matrix((rng.random((n, d)) < topics + 0.03).astype(np.float64))


class Killer(SchedulerPlugin):
    """Kills, once, the worker that has computed the n-th task of a stage."""

    name = "killer"

    def __init__(self, stage: str, n: int, pids: dict[str, int]) -> None:
        self.stage, self.n, self.pids = f"undrift-{stage}-", n, pids
        self.victim: str | None = None

    def transition(self, key, start, finish, *args, **kwargs):
        name = key[0] if isinstance(key, tuple) else key
        if self.victim or (start, finish) != ("processing", "memory") or not name.startswith(self.stage):
            return
        if "-sum-" in name:
            return
        self.n -= 1
        if self.n == 0:
            self.victim = kwargs["worker"]
            os.kill(self.pids[self.victim], signal.SIGKILL)


@contextmanager
def killing(stage: str, n: int = 1):
    """Yield a client of a cluster in which a worker dies in `stage`, and what its scheduler remembers."""
    with (
        dask.config.set({"distributed.admin.low-level-log-length": 100_000}),
        LocalCluster(n_workers=2, silence_logs=60, **OPTIONS) as cluster,
        Client(cluster) as client,
    ):
        killer = Killer(stage, n, client.run(os.getpid))
        cluster.scheduler.add_plugin(killer)
        yield client, Record(client, killer)


class Record:
    """What the scheduler remembers of the worker that was killed."""

    def __init__(self, client: Client, killer: Killer) -> None:
        self._client, self._killer = client, killer

    def taken_along(self) -> set:
        """Tasks that the dead worker was busy with, or had the only result of."""
        removed = [
            event
            for _, event in self._client.get_events("all")
            if event.get("action") == "remove-worker" and event["worker"] == self._killer.victim
        ]
        (event,) = removed
        assert not event["expected"]  # it died; nobody asked it to leave
        return {*event["processing-tasks"], *event["lost-computed-tasks"]}

    def story(self, key) -> list[tuple[str, str]]:
        """The states that a task went through, as pairs."""

        def told(dask_scheduler) -> list[tuple[str, str]]:
            return [(start, finish) for own, start, finish, *_ in dask_scheduler.story(key) if own == key]

        return self._client.run_on_scheduler(told)

    def assert_died_and_ran_again(self, stage: str) -> None:
        lost = [key for key in self.taken_along() if key[0].startswith(f"undrift-{stage}-")]
        assert lost, f"the worker had nothing of the stage {stage} when it died"
        for key in lost:
            story = self.story(key)
            assert sum(finish == "processing" for _, finish in story) >= 2  # given to a worker once more
            assert story.index(("processing", "memory")) >= 0
        assert any(self.story(key).count(("processing", "memory")) == 2 for key in lost)


@pytest.fixture(scope="module")
def alone() -> list:
    return MSDA(4, noise=0.6).fit(sp.vstack([block(i) for i in range(12)], format="csr")).layers_


@pytest.mark.parametrize(
    ("stage", "n", "lost"),
    [
        ("scatter-0", 2, "scatter-0"),  # during a scatter
        ("hidden-2", 2, "hidden-2"),  # while hidden rows are being made
        ("layer", 3, "hidden-2"),  # between layers: the third layer has come, the second's rows are kept
    ],
)
def test_a_worker_killed_during_a_fit_changes_nothing(alone, stage, n, lost):
    with killing(stage, n) as (_, record):
        layers = MSDA(4, noise=0.6).fit([delayed(block)(i) for i in range(12)]).layers_
        record.assert_died_and_ran_again(lost)
    for ours, theirs in zip(layers, alone, strict=True):
        assert np.linalg.norm(ours.coef - theirs.coef) < 1e-9 * np.linalg.norm(theirs.coef)


WORDS = {1: ["good", "fine", "moving"], 0: ["bad", "dull", "broken"]}


def write_reviews(folder, n_shards: int, n: int = 40) -> None:
    rng = np.random.default_rng(3)
    for domain, nouns in (("books", ["page", "plot"]), ("pans", ["lid", "handle"])):
        for i in range(n_shards):
            labels = rng.integers(0, 2, n).tolist()
            texts = [" ".join([*rng.choice(WORDS[y], 2), *rng.choice(nouns, 2)]) for y in labels]
            frame = pd.DataFrame({"text": texts, "label": labels})
            frame.to_csv(folder / f"{domain}-{i}.csv", index=False)


def adapter() -> TextAdapter:
    return TextAdapter(60, classifier=MSDAClassifier(2, random_state=0))


def test_a_worker_killed_while_predicting_changes_nothing(tmp_path):
    write_reviews(tmp_path, 8)
    patterns = [tmp_path / "books-*.csv"], [tmp_path / "pans-*.csv"], ("text",), "label"
    run_adapt(AdaptJob(*patterns, tmp_path / "alone.csv"), adapter())
    with killing("predict", 2) as (client, record):
        run_adapt(AdaptJob(*patterns, tmp_path / "out.csv", device=client.scheduler.address), adapter())
        record.assert_died_and_ran_again("predict")
    paths = tmp_path / "out.csv", tmp_path / "alone.csv"
    answers, expected = (pd.read_csv(path)["prediction"].tolist() for path in paths)
    assert answers == expected
    assert set(answers) == {0, 1}


@pytest.fixture
def lone_scheduler():
    """Address and process id of a scheduler in a process of its own, with one worker."""
    program = (
        "from distributed import LocalCluster; import time, os\n"
        "if __name__ == '__main__':\n"
        "    c = LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address='127.0.0.1:0')\n"
        "    print(c.scheduler_address, flush=True); time.sleep(120)"
    )
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        yield process.stdout.readline().strip(), process.pid
        process.kill()


def test_a_lost_scheduler_is_a_clear_error_and_no_output(tmp_path, lone_scheduler):
    address, pid = lone_scheduler
    write_reviews(tmp_path, 2)
    job = AdaptJob(
        [tmp_path / "books-*.csv"], [tmp_path / "pans-*.csv"], ("text",), "label", tmp_path / "out.csv",
        model=tmp_path / "model.safetensors", device=address,
    )  # fmt: skip

    def strike(n_done, n_layers):
        if n_done == 1:
            os.kill(pid, signal.SIGKILL)

    with follow_steps(strike), pytest.raises(ClusterLost, match="scheduler"):
        run_adapt(job, adapter())
    assert {path.name for path in tmp_path.iterdir()} == {
        f"{domain}-{i}.csv" for domain in ("books", "pans") for i in range(2)
    }


@pytest.mark.parametrize("ask", ["who_has", "nthreads"])
def test_a_scheduler_that_no_longer_answers_questions(cluster, monkeypatch, ask):
    def silent(*_):
        raise OSError("Timed out trying to connect")

    rows = [delayed(block)(i, 30, 5) for i in range(2)]
    monkeypatch.setattr(cluster, ask, silent)
    with pytest.raises(ClusterLost, match=r"scheduler cannot be reached: Timed out.*check its address"):
        MSDA(2).fit(rows)
