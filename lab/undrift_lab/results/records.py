"""Results as JSON lines: appended one by one, each complete or absent, whatever happens in between."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from io import FileIO
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, TypeAdapter, ValidationError, create_model

from undrift.errors import UndriftError

from ..plan import describe_error

try:
    import fcntl
except ImportError:  # a system without it has no lock: two runners would both go on
    fcntl = None  # type: ignore[assignment]

Record = Mapping[str, Any]


class Damaged(UndriftError):
    """Results that cannot be read: which file and line."""


class Unwritable(OSError, UndriftError):
    """Results that cannot be added to."""


class InUse(OSError, UndriftError):
    """Results that another run is writing to."""


CELL = ("method", "source", "target")
DISTANCES = [f"distance_{when}{end}" for when in ("before", "after") for end in ("", "_low", "_high")]
# what a record of each kind must have: names, and values unless it is one of a failure
NAMES: Mapping[str, Sequence[str]] = {
    "transfer": ("plan", "variant", *CELL),
    "distance": ("plan", "variant", *CELL),
    "grid": ("plan", "variant", "source", "fitted_on"),
    "in-domain": ("plan", "variant", "target"),
}
VALUES: Mapping[str, Mapping[str, Any]] = {
    "transfer": dict.fromkeys(("transfer_error", "baseline_in_domain_error"), float),
    "distance": dict.fromkeys(DISTANCES, float),
    "grid": {**dict.fromkeys(("noise", "depth", "C", "seconds"), float), "score": float | None},
    "in-domain": {"error": float},
}


@cache
def _make_checks(kind: str, is_failure: bool) -> TypeAdapter:
    """Return what checks a record of a kind; further fields may hold anything."""
    must: dict[str, Any] = {**dict.fromkeys(NAMES[kind], str), **({} if is_failure else VALUES[kind])}
    checks: dict[str, Any] = {"seed": (int, 0), **{name: (type_, ...) for name, type_ in must.items()}}
    return TypeAdapter(create_model(kind, __config__=ConfigDict(strict=True, extra="ignore"), **checks))


def read(path: str | Path, kind: str | None = None) -> list[dict[str, Any]]:
    """All records of a file, less a last line without its end: a run died while writing it.

    Records of a known kind are checked for what they must have. With `kind`, those that name none are taken
    for such, except that they need no plan and no variant.
    """
    records = []
    *lines, _ = Path(path).read_bytes().split(b"\n")
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
            if not isinstance(record, dict):
                raise ValueError(f"{line[:40]!r} is no object")
        except ValueError as error:
            raise Damaged(f"{path}, line {number} is not a record ({error}); remove that line") from None
        is_bare = kind is not None and "kind" not in record
        whole = {"kind": kind, "plan": "", "variant": ""} | record if is_bare else record
        try:
            if whole.get("kind") in NAMES:
                _make_checks(whole["kind"], "failed" in whole).validate_python(whole)
        except ValidationError as error:
            raise Damaged(f"{path}, line {number}: {describe_error(error)}; remove that line") from None
        records.append(record)
    return records


def merge_records(records: Sequence[Record]) -> str:
    """Return the last record of everything that was measured, as short lines; numbers keep six digits."""
    names = ("kind", "plan", "variant", "seed", *CELL, "fitted_on", "noise", "depth", "n_layers")
    last = {json.dumps([record.get(name) for name in names]): _shorten(record) for record in records}
    lines = (json.dumps(record, ensure_ascii=False, separators=(",", ":")) for record in last.values())
    return "".join(f"{line}\n" for line in lines)


def _shorten(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _shorten(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_shorten(each) for each in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value


class Journal:
    """The results file of a run that is under way."""

    def __init__(self, path: Path, file: FileIO) -> None:
        self.path, self._file = path, file
        self.records: list[dict[str, Any]] = read(path)

    def append(self, record: Record) -> None:
        """Add a record: one write of one line, on the disk when this returns, or nothing at all."""
        line = json.dumps(record, ensure_ascii=False, allow_nan=False, default=_plain) + "\n"
        rest, end = memoryview(line.encode()), self._file.seek(0, os.SEEK_END)
        try:
            try:
                while rest:  # a write may be cut short by a signal
                    rest = rest[self._file.write(rest) :]
                os.fsync(self._file.fileno())
            except BaseException:
                self._file.truncate(end)  # where that fails too, the next run does it
                raise
        except OSError as error:
            raise Unwritable(f"{self.path} cannot be written: {error.strerror}") from error
        self.records.append(json.loads(line))


@contextmanager
def journal(path: str | Path) -> Iterator[Journal]:
    """Open results for one run alone, and cut off a line that an earlier run did not finish.

    A new file in which a run that fails has put no record does not remain.
    """
    path = Path(path)
    is_new = not path.exists()
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
        try:
            yield Journal(path, file)
        except BaseException:
            if is_new and not os.fstat(file.fileno()).st_size:
                path.unlink(missing_ok=True)
            raise


def _plain(value: Any) -> Any:
    """NumPy's numbers and arrays as JSON has them."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"a record cannot hold {value!r}")
