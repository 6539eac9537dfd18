"""Faults at chosen points of a command, which is run in a fork.

A point is the n-th thing that the command does to a file of its folder (opens, reads, writes, flushes,
renames or removes it), the n-th call of a function of undrift, or, from the start of Python, the n-th import:
the same in every run, and no matter of timing.
"""

import contextlib
import ctypes
import errno
import mmap
import os
import resource
import shutil
import signal
import struct
import subprocess
import sys
import traceback
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

import undrift

SIGNALS = {"killed": signal.SIGKILL, "terminated": signal.SIGTERM, "interrupted": signal.SIGINT}
ERRORS = {"disk full": errno.ENOSPC, "read-only": errno.EROFS, "input/output error": errno.EIO}
FAULTS = (*SIGNALS, *ERRORS)  # at what is done to a file
CALL_FAULTS = (*SIGNALS, "out of memory")  # at a call
STATUS = {"killed": -9, "terminated": 143, "interrupted": 130, "another run": 0}  # all others: 2
SOURCE = str(Path(undrift.__file__).parent)
# builtins that do something to a file; audit events are raised for opening, renaming and removing
ON_FILES = dict.fromkeys(("read", "read1", "readinto", "readline", "readall"), "r")
ON_FILES |= dict.fromkeys(("write", "writelines"), "w") | {"flush": "f", "truncate": "t", "fsync": "s"}
EVENTS = {"open": "o", "os.rename": "n", "os.remove": "x", "os.truncate": "t", "tempfile.mkstemp": "m"}
EVENTS |= {"os.mkdir": "d", "os.rmdir": "y"}
READING = "r"
LONGEST = 300  # seconds that a command may take on a busy machine
HEAD = 24  # bytes of the counters: points, calls, bytes of address space at the start


@dataclass
class Outcome:
    """How a command ended, what it said, how many points it passed, and what is in its folder."""

    status: int
    said: str
    n_points: int = 0
    n_calls: int = 0
    kinds: str = ""  # a letter for each point
    files: dict[str, bytes] = field(default_factory=dict)

    def choose_points(self, n_most: int, n_changes: int = 2) -> list[int]:
        """Return points of every series of the same kind, thinned to at most `n_most` of all.

        These are the first and last of a series, and `n_changes` of one that changes files.
        """
        points: set[int] = set()
        for kind, series in groupby(range(len(self.kinds)), key=lambda point: self.kinds[point]):
            points.update(thin(series, 2 if kind in READING else n_changes))
        return thin(sorted(points), n_most)

    def list_faults(self, point: int) -> tuple[str, ...]:
        """Return the faults that can happen at a point: a disk is not full to somebody who reads."""
        return (*SIGNALS, "input/output error") if self.kinds[point] in READING else FAULTS


def thin(values, n_most: int) -> list:
    """Return at most so many of the values, evenly spread: from the first to the last, or the middle one."""
    values = list(values)
    if n_most == 1:
        return [values[len(values) // 2]]
    if n_most >= len(values):
        return values
    return [values[round(i * (len(values) - 1) / (n_most - 1))] for i in range(n_most)]


def strike(fault: str) -> None:
    """Let a fault happen to this process."""
    if fault in SIGNALS:
        os.kill(os.getpid(), SIGNALS[fault])
    elif fault == "out of memory":
        raise MemoryError
    else:
        raise OSError(ERRORS[fault], os.strerror(ERRORS[fault]))


def read_files(folder: Path) -> dict[str, bytes]:
    """Return the content of every file of a folder, and b"" for empty folders."""
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file() or not any(path.iterdir())]
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b"" for path in paths}


def run_with_fault(
    arguments,
    folder: Path,
    fault: str | None = None,
    at: int = 0,
    limits=(),
    on_calls: bool = False,
    reads: bool = True,
) -> Outcome:
    """Run `undrift ARGUMENTS` in a fork, in `folder`; let `fault` happen at the point `at`, counted from 0.

    Points are what is done to files, or with `on_calls` calls of functions. The fault "another run" is the
    same command, run from its start to its end. `limits` are pairs for resource.setrlimit: bytes of address
    space beyond what the process starts with, or of a file. Without `reads` the folder is not read then.
    """
    counters = mmap.mmap(-1, HEAD + 65536)  # shared with the fork
    log = folder.parent / "said"
    child = os.fork()
    if child == 0:
        try:
            (folder.parent / "pid").write_text(str(os.getpid()))
            other = prepare_other_run(arguments, folder) if fault == "another run" else None
            watcher = Watcher(folder, counters, fault, at, on_calls, other)
            run_command(arguments, folder, log, watcher, limits)
        finally:
            os._exit(71)
    _, code = os.waitpid(child, 0)
    n_points, n_calls, _ = struct.unpack("QQQ", counters[:HEAD])
    kinds, status = counters[HEAD : HEAD + n_points].decode(), os.waitstatus_to_exitcode(code)
    files = read_files(folder) if reads else {}
    return Outcome(status, log.read_text(errors="replace"), n_points, n_calls, kinds, files)


class Watcher:
    """Counts points, and lets a fault happen at one of them."""

    def __init__(self, folder: Path, counters, fault=None, at=0, on_calls=False, other=None) -> None:
        self.folder, self.counters = folder.resolve(), counters
        self.fault, self.at, self.on_calls, self.other = fault, at, on_calls, other
        self.n_points = self.n_calls = 0
        self.counts_calls = on_calls or fault is None
        self.is_busy = False

    def start(self) -> None:
        size = int(Path("/proc/self/statm").read_text().split()[0]) * mmap.PAGESIZE
        self.counters[16:24] = struct.pack("Q", size)
        sys.addaudithook(self.audit)
        sys.setprofile(self.profile)

    def audit(self, event: str, details: tuple) -> None:
        if event in EVENTS and not self.is_busy and self.is_inside(details[0]):
            self.pass_point(EVENTS[event])

    def profile(self, frame, event: str, function) -> None:
        if event == "c_call":
            if function.__name__ in ON_FILES and not self.is_busy and not self.on_calls:
                path = getattr(getattr(function, "__self__", None), "name", None)
                if function is os.fsync or (path is not None and self.is_inside(path)):
                    self.pass_point(ON_FILES[function.__name__])
        elif event == "call" and self.counts_calls and frame.f_code.co_filename.startswith(SOURCE):
            self.n_calls += 1
            if self.on_calls and self.n_calls - 2 == self.at:  # the first call is that of `main`
                self.strike()

    def pass_point(self, kind: str) -> None:
        number, self.n_points = self.n_points, self.n_points + 1
        self.counters[HEAD + number] = ord(kind)
        self.counters[:8] = struct.pack("Q", self.n_points)
        if not self.on_calls and number == self.at:
            self.strike()
            if not self.counts_calls:
                sys.setprofile(None)  # there is one fault in a run

    def strike(self) -> None:
        if self.other is not None:
            self.other()
        elif self.fault is not None:
            strike(self.fault)

    def is_inside(self, path) -> bool:
        """Tell whether a path, or the file of a descriptor, is in the folder."""
        self.is_busy = True
        try:
            if isinstance(path, int):
                path = os.readlink(f"/proc/self/fd/{path}")
            return Path(os.path.abspath(os.fsdecode(path))).is_relative_to(self.folder)
        except (OSError, TypeError, ValueError):
            return False
        finally:
            self.is_busy = False


def prepare_other_run(arguments, folder: Path):
    """Fork a process that waits; return a function that lets it run the command, to its end."""
    gate, end = os.pipe(), os.pipe()
    if os.fork() == 0:
        os.close(gate[1])
        if not os.read(gate[0], 1):  # the first run ended before it came to that
            os._exit(0)
        run_command(arguments, folder, folder.parent / "said by the other")
    os.close(end[1])

    def run() -> None:
        os.write(gate[1], b"x")
        os.read(end[0], 1)  # the end of the other closes its pipe

    return run


def run_command(arguments, folder: Path, log: Path, watcher: Watcher | None = None, limits=()) -> None:
    """Run the command line in this process, and end it."""
    status: int | str | None = 70
    try:
        out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(out, 1)
        os.dup2(out, 2)
        sys.stdout, sys.stderr = (os.fdopen(number, "w", closefd=False) for number in (1, 2))
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.alarm(LONGEST)  # the end of a command that hangs
        os.chdir(folder)
        from undrift.cli import main

        if watcher is not None:
            watcher.start()
        for name, value in limits:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            if name == resource.RLIMIT_AS:
                value += struct.unpack("Q", watcher.counters[16:24])[0]
            resource.setrlimit(name, (value, value))
        main(list(arguments))
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else 1
    except BaseException:
        traceback.print_exc()
    sys.setprofile(None)
    if watcher is not None:
        watcher.counters[8:16] = struct.pack("Q", max(watcher.n_calls - 1, 0))
    with contextlib.suppress(Exception):
        sys.stdout.flush()
        sys.stderr.flush()
    if log.with_name("modules").exists():
        log.with_name("modules").write_text("\n".join(sorted(sys.modules)))
    os._exit(status or 0)


# -- the first second --------------------------------------------------------------------------------------

FROM_START = """
import os, signal, sys
number, at, counts = int(sys.argv[1]), int(sys.argv[2]), [0]
def watch(event, details):
    if event == "import":
        counts[0] += 1
        if counts[0] - 1 == at and number:
            os.kill(os.getpid(), number)
sys.addaudithook(watch)
from undrift.cli import main
n_before_main = counts[0]
try:
    main(sys.argv[3:])
finally:
    if not number:
        os.write(2, f"{n_before_main} {counts[0]}\\n".encode())
"""


def run_from_start(arguments, folder: Path, fault: str | None = None, at: int = 0) -> Outcome:
    """Run a command as a program, with a signal at the n-th import; there are hundreds in the first second.

    `n_calls` of the outcome is the number of imports before `main` is called.
    """
    number = int(SIGNALS[fault]) if fault else 0
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # which a child inherits
    try:
        command = [sys.executable, "-c", FROM_START, str(number), str(at), *arguments]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    finally:
        signal.signal(signal.SIGINT, before)
    n_before_main, n_points = (0, 0) if fault else map(int, done.stderr.split()[-2:])
    return Outcome(
        done.returncode, done.stdout + done.stderr, n_points, n_before_main, files=read_files(folder)
    )


# -- small and read-only disks -----------------------------------------------------------------------------

_NEW_MOUNTS, _NEW_USER = 0x20000, 0x10000000
_READ_ONLY, _REMOUNT, _PRIVATE = 1, 32, 0x44000
_LIBC = ctypes.CDLL(None, use_errno=True)


def can_mount() -> bool:
    """Tell whether this process may mount a file system that only it sees."""
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            _enter_namespace()
            os._exit(0)
        os._exit(1)
    return os.waitpid(child, 0)[1] == 0


def run_on_disk(arguments, folder: Path, n_free: int | None, outputs: dict[str, bytes]) -> Outcome:
    """Run a command on a file system with so many free bytes; None is a read-only one.

    The files of `folder` are there as links; `outputs` are files that exist already.
    """
    after, log = folder.parent / "after", folder.parent / "said"
    child = os.fork()
    if child == 0:
        try:
            _enter_namespace()
            origin, pages = folder.parent / "origin", sum(-(-len(c) // 4096) for c in outputs.values())
            shutil.copytree(folder, origin)
            _mount("tmpfs", folder, 0, f"size={max(4096 * pages + (n_free or 0), 4096)}")
            for path in origin.iterdir():
                if path.name not in outputs:
                    (folder / path.name).symlink_to(path)
            for name, content in outputs.items():
                (folder / name).write_bytes(content)
            if n_free is None:
                _mount("tmpfs", folder, _REMOUNT | _READ_ONLY, "")
            done = run_with_fault(arguments, folder)
            shutil.copytree(folder, after, symlinks=False)
            os._exit(done.status)
        except BaseException:
            traceback.print_exc()
            os._exit(99)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return Outcome(status, log.read_text(errors="replace"), files=read_files(after))


def _enter_namespace() -> None:
    user, group = os.geteuid(), os.getegid()
    _check(_LIBC.unshare(_NEW_MOUNTS | (_NEW_USER if user else 0)))
    if user:
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"0 {user} 1")
        Path("/proc/self/gid_map").write_text(f"0 {group} 1")
    _mount(None, Path("/"), _PRIVATE, None)


def _mount(kind: str | None, place: Path, flags: int, options: str | None) -> None:
    kind_bytes = kind and kind.encode()
    options_bytes = None if options is None else options.encode()
    _check(_LIBC.mount(kind_bytes, bytes(place), kind_bytes, ctypes.c_ulong(flags), options_bytes))


def _check(status: int) -> None:
    if status:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
