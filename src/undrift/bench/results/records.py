"""Results as JSON lines: appended one by one, each complete or absent, whatever happens in between."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import FileIO
from pathlib import Path
from typing import Any

from ...errors import UndriftError

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


# what a record of each kind must have: names, and values unless it is one of a failure
CELL = ("method", "source", "target")
NAMES = {
    "transfer": ("plan", "variant", *CELL),
    "distance": ("plan", "variant", *CELL),
    "regret": ("plan", "variant", "corpus", *CELL),
    "grid": ("plan", "variant", "source", "fitted_on"),
    "in-domain": ("plan", "variant", "target"),
}
DISTANCES = [f"distance_{when}{end}" for when in ("before", "after") for end in ("", "_low", "_high")]
NUMBER = int | float
VALUES: Mapping[str, Mapping[str, Any]] = {
    "transfer": dict.fromkeys(("transfer_error", "baseline_in_domain_error"), NUMBER),
    "distance": dict.fromkeys(DISTANCES, NUMBER),
    "regret": dict.fromkeys(("noise", "n_layers", "n_train"), NUMBER) | {"candidates": list},
    "grid": dict.fromkeys(("noise", "depth", "C", "seconds"), NUMBER) | {"score": NUMBER | None},
    "in-domain": {"error": NUMBER},
}
CANDIDATE: Mapping[str, Any] = {  # of a record of regret
    **dict.fromkeys(("noise", "n_layers", "C", "error", "self_trained_error"), NUMBER),
    "scores": dict,  # by rule
}
WORDS = {
    str: "text", list: "a list", dict: "an object", int: "a whole number", NUMBER: "a number",
    NUMBER | None: "a number or null",
}  # fmt: skip


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
        except ValueError as error:
            raise Damaged(f"{path}, line {number} is not a record ({error}); remove that line") from None
        if not isinstance(record, dict):
            raise Damaged(f"{path}, line {number} is not a record but {line[:40]!r}; remove that line")
        bare = kind is not None and "kind" not in record
        wrong = _wrong({"kind": kind, "plan": "", "variant": ""} | record if bare else record)
        if wrong is not None:
            raise Damaged(f"{path}, line {number}: {wrong}; remove that line")
        records.append(record)
    return records


def _wrong(record: Record) -> str | None:
    """Say what is the matter with a record, if anything is."""
    kind = record.get("kind")
    if not isinstance(kind, str) or kind not in NAMES:
        return None
    must = dict.fromkeys(NAMES[kind], str) | ({} if "failed" in record else dict(VALUES[kind]))
    wrong = _amiss(record, must | {"seed": int} if "seed" in record else must, f"a record of kind {kind!r}")
    if wrong is None and "candidates" in must:
        return _wrong_candidates(record["candidates"])
    return wrong


def _wrong_candidates(candidates: Sequence[Any]) -> str | None:
    """Say what is the matter with candidates, which have numbers, and scores by the same rules."""
    if not candidates:
        return "candidates=[] must hold at least one"
    for i, candidate in enumerate(candidates):
        name = f"candidates[{i}]"
        if not isinstance(candidate, dict):
            return f"{name}={candidate!r} must be an object"
        wrong = _amiss(candidate, CANDIDATE, name, f"{name}.")
        if wrong is None:
            rules = dict.fromkeys([*candidates[0]["scores"], *candidate["scores"]], NUMBER)
            wrong = _amiss(candidate["scores"], rules, f"{name}.scores", f"{name}.scores.")
        if wrong is not None:
            return wrong
    return None


def _amiss(given: Record, must: Mapping[str, Any], what: str, prefix: str = "") -> str | None:
    """Say which name is not there, or has a value of another type than it must have."""
    for name, type_ in must.items():
        if name not in given:
            return f"{what} has no {name}"
        if not isinstance(given[name], type_) or isinstance(given[name], bool):
            return f"{prefix}{name}={given[name]!r} must be {WORDS[type_]}"
    return None


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
