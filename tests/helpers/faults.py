"""Faults at chosen points of a command: it is run in a fork, and stopped at the n-th thing it does to a file.

Points are Python's audit events about files of a folder (opened, renamed, removed), so that they are the same
in every run, and none is a matter of timing.
"""

import contextlib
import errno
import os
import resource
import signal
import sys
import traceback
from dataclasses import dataclass, field
from pathlib import Path

FAULTS = {
    "killed": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "terminated": lambda: os.kill(os.getpid(), signal.SIGTERM),
    "interrupted": lambda: os.kill(os.getpid(), signal.SIGINT),
    "disk full": lambda: _raise(errno.ENOSPC),
    "read-only": lambda: _raise(errno.EROFS),
    "input/output error": lambda: _raise(errno.EIO),
}
STATUS = {"killed": -9, "terminated": 143, "interrupted": 130}  # all others: 2


def _raise(number: int) -> None:
    raise OSError(number, os.strerror(number))


@dataclass
class Outcome:
    """How a command ended, what it said, and how many points it passed."""

    status: int
    said: str
    n_points: int = 0
    files: dict[str, bytes] = field(default_factory=dict)


def run_with_fault(arguments, folder: Path, fault: str | None = None, at: int = 0, limits=()) -> Outcome:
    """Run `undrift ARGUMENTS` in a fork, in `folder`; let `fault` happen at the point `at`, counted from 0.

    `limits` are pairs for resource.setrlimit: a number of bytes of address space, or of a file.
    """
    read, write = os.pipe()
    log = folder.parent / "said"
    child = os.fork()
    if child == 0:
        os.close(read)
        _run_child(arguments, folder, fault, at, limits, write, log)
    os.close(write)
    with os.fdopen(read) as pipe:
        counted = pipe.read().split()
    _, code = os.waitpid(child, 0)
    files = {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file()}
    return Outcome(os.waitstatus_to_exitcode(code), log.read_text(errors="replace"), len(counted), files)


def _run_child(arguments, folder, fault, at, limits, pipe, log) -> None:
    try:
        out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(out, 1)
        os.dup2(out, 2)
        sys.stdout, sys.stderr = (os.fdopen(number, "w", closefd=False) for number in (1, 2))
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.chdir(folder)
        count = [0]
        is_busy = [False]

        def watch(event: str, details: tuple) -> None:
            if is_busy[0] or not _is_point(event, details, folder):
                return
            is_busy[0] = True
            os.write(pipe, b"x ")
            number, count[0] = count[0], count[0] + 1
            is_busy[0] = False
            if fault is not None and number == at:
                FAULTS[fault]()

        sys.addaudithook(watch)
        for name, value in limits:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(name, (value, value))
        from undrift.cli import main

        main(list(arguments))
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else 1
    except BaseException:
        traceback.print_exc()
        status = 70
    with contextlib.suppress(Exception):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(status or 0)


def _is_point(event: str, details: tuple, folder: Path) -> bool:
    """Tell whether an audit event is about a file of the folder that is to be changed, or read."""
    if event not in ("open", "os.rename", "os.remove", "os.truncate", "tempfile.mkstemp"):
        return False
    path = details[0]
    if not isinstance(path, str | bytes | os.PathLike):
        return False
    path = Path(os.fsdecode(path))
    return path.resolve().parent == folder.resolve() if path.is_absolute() else path.parent == Path()
