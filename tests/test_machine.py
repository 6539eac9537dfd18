"""Memory is that of the container, read from made-up files of control groups; processors are joblib's."""

import os

import pytest

from undrift import machine
from undrift.inputs import half_of_memory
from undrift.machine import count_processors, measure_memory


def write_files(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


V1 = "12:pids:/docker/ab\n5:memory:/docker/ab\n4:cpu,cpuacct:/docker/ab\n1:name=systemd:/docker/ab\n0::/\n"
HUGE = "9223372036854771712\n"  # what version 1 writes where there is no limit
CASES = {
    "no control groups": ({}, None),
    "version 2, no limit": ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "max\n"}, None),
    "version 2, in a container": (
        {"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "4000000\n"},
        4e6,
    ),
    "version 2, a group around it has less": (
        {
            "proc/self/cgroup": "0::/user/session\n",
            "sys/fs/cgroup/user/session/memory.max": "8000000\n",
            "sys/fs/cgroup/user/memory.max": "2000000\n",
        },
        2e6,
    ),
    "version 1, in a container that sees its own groups only": (
        {"proc/self/cgroup": V1, "sys/fs/cgroup/memory/memory.limit_in_bytes": "3000000\n"},
        3e6,
    ),
    "version 1, one folder for each controller": (
        {
            "proc/self/cgroup": V1,
            "sys/fs/cgroup/memory/docker/ab/memory.limit_in_bytes": "5000000\n",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": HUGE,
        },
        5e6,
    ),
    "version 1, no limit": (
        {"proc/self/cgroup": V1, "sys/fs/cgroup/memory/memory.limit_in_bytes": HUGE},
        None,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_limits_of_a_container_are_seen(case, tmp_path):
    files, n_bytes = CASES[case]
    all_of_it = measure_memory(tmp_path)
    assert all_of_it > 5e6
    assert measure_memory(write_files(tmp_path, files)) == (n_bytes or all_of_it)
    assert half_of_memory() == measure_memory() / 2


def test_processors_that_the_process_is_bound_to_are_counted(monkeypatch):
    before = count_processors()
    assert 1 <= before <= (os.cpu_count() or 1)
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "1")
    assert count_processors() == 1


def test_systems_without_sysconf_have_a_memory_too(tmp_path, monkeypatch):
    monkeypatch.delattr(os, "sysconf_names", raising=False)
    assert measure_memory(tmp_path) == machine.UNKNOWN_MEMORY
