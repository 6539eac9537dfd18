"""Representations outlive a run, if they are those of the same plan, data and machine."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from undrift import UndriftWarning
from undrift.bench.methods.representation import Candidate, Representation, RepresentationCache


class Learner:
    """Learns two candidates of two domains, and counts how often."""

    def __init__(self):
        self.n_times = 0

    def __call__(self):
        self.n_times += 1
        rng = np.random.default_rng(self.n_times)
        candidates = [
            Candidate({"size": size}, {name: rng.normal(size=(3, size)) for name in ("a", "b/c")})
            for size in (2, 1)
        ]
        return Representation(candidates, 1.25 + self.n_times, {"losses": [[3.5, 2.0]]})


@pytest.fixture
def learn():
    return Learner()


@pytest.fixture
def beside(tmp_path):
    return tmp_path / "r.jsonl.tiny-0"


def test_without_a_name_it_is_known_to_this_run_alone(learn, beside):
    cache = RepresentationCache(beside, "plan")
    assert cache.get("key", learn) is cache.get("key", learn)
    cache.get("other", learn)
    assert learn.n_times == 2
    assert list(beside.parent.iterdir()) == []


def test_with_a_name_it_is_as_it_was(learn, beside):
    first = RepresentationCache(beside, "plan").get(1, learn, "sda-5")
    again = RepresentationCache(beside, "plan").get(2, learn, "sda-5")
    assert learn.n_times == 1
    assert (again.seconds, again.details) == (first.seconds, first.details)
    assert [own.params for own in again.candidates] == [{"size": 2}, {"size": 1}]
    for one, other in zip(first.candidates, again.candidates, strict=True):
        assert list(other.rows) == ["a", "b/c"]
        for name in one.rows:
            assert_array_equal(other.rows[name], one.rows[name])
    assert [path.name for path in beside.parent.iterdir()] == ["r.jsonl.tiny-0.sda-5.npz"]
    RepresentationCache(beside).remove("sda-5")
    assert list(beside.parent.iterdir()) == []
    RepresentationCache(beside).remove("sda-5")


@pytest.mark.parametrize("damage", ["origin", "cut", "empty", "other"])
def test_what_is_not_the_same_is_learnt_again(learn, beside, damage):
    RepresentationCache(beside, "plan").get(1, learn, "sda-5")
    path = beside.with_name("r.jsonl.tiny-0.sda-5.npz")
    if damage == "other":
        np.savez(path, rows=np.zeros(2))
    elif damage != "origin":
        path.write_bytes(path.read_bytes()[: 300 if damage == "cut" else 0])
    origin = "another" if damage == "origin" else "plan"
    assert RepresentationCache(beside, origin).get(1, learn, "sda-5").seconds == 3.25
    assert RepresentationCache(beside, origin).get(1, learn, "sda-5").seconds == 3.25


def test_a_closed_one_writes_nothing(learn, beside):
    cache = RepresentationCache(beside, "plan")
    cache.close()
    cache.get(1, learn, "sda-5")
    assert list(beside.parent.iterdir()) == []


def test_where_it_cannot_be_written_the_run_goes_on(learn, tmp_path, monkeypatch):
    def full(file, **arrays):
        file.write(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", full)
    cache = RepresentationCache(tmp_path / "r", "plan")
    with pytest.warns(UndriftWarning, match=r"sda-5\.npz cannot be written \(No space left on device\)"):
        assert cache.get(1, learn, "sda-5").seconds == 2.25
    assert list(tmp_path.iterdir()) == []
