"""Results as JSON lines: appended one by one, each complete or absent, whatever happens in between."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import FileIO
from pathlib import Path
from typing import Any

try:
    import fcntl
except ImportError:  # a system without it has no lock: two runners would both go on
    fcntl = None  # type: ignore[assignment]

Record = Mapping[str, Any]


class Damaged(ValueError):
    """Results that cannot be read: which file and line."""


class InUse(OSError):
    """Results that another run is writing to."""


def read(path: str | Path) -> list[dict[str, Any]]:
    """All records of a file, less a last line without its end: a run died while writing it."""
    records = []
    *lines, _ = Path(path).read_bytes().split(b"\n")
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except ValueError as error:
            raise Damaged(f"{path}, line {number} is not a record ({error}); remove that line") from None
        if not isinstance(record, dict):
            raise Damaged(f"{path}, line {number} is not a record but {line[:40]!r}; remove that line")
        records.append(record)
    return records


class Journal:
    """The results file of a run that is under way."""

    def __init__(self, path: Path, file: FileIO) -> None:
        self._path, self._file = path, file
        self.records: list[dict[str, Any]] = read(path)

    def append(self, record: Record) -> None:
        """Add a record: one write of one line, on the disk when this returns."""
        line = json.dumps(record, ensure_ascii=False, allow_nan=False, default=_plain) + "\n"
        rest = memoryview(line.encode())
        while rest:  # a write may be cut short by a signal
            rest = rest[self._file.write(rest) :]
        os.fsync(self._file.fileno())
        self.records.append(json.loads(line))


@contextmanager
def journal(path: str | Path) -> Iterator[Journal]:
    """Open results for one run alone, and cut off a line that an earlier run did not finish."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileIO(path, "a+") as file:
        if fcntl is not None:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise InUse(
                    f"{path} is being written by another run; wait for it, or name another file"
                ) from None
        whole = path.read_bytes()
        end = whole.rfind(b"\n") + 1
        if whole[end:].strip() and not whole[end:].startswith(b"{"):
            raise Damaged(f"{path} does not hold results of a run; name another file")
        file.truncate(end)
        yield Journal(path, file)


def _plain(value: Any) -> Any:
    """NumPy's numbers and arrays as JSON has them."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"a record cannot hold {value!r}")
