"""Checks of results against bars, and of the paper's claims: paper/expected.toml."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any

from ..keys import check_keys, check_list
from .criteria import About, Asked, AtLeast, AtMost, BestOf, Expected, Lower, LowerOnTasks, Near, SeldomWorse
from .measures import Where
from .records import Record

# the key that says what is asked, and the nouns of it, by their own keys: of several, the last needs none
KINDS: Mapping[str, Mapping[str, type[Any]]] = {
    "at_most": {"at_most": AtMost},
    "at_least": {"at_least": AtLeast},
    "value": {"value": Expected},
    "than": {"at_least_tasks": LowerOnTasks, "near": Near, "than": Lower},
    "best_of": {"best_of": BestOf},
    "worse_than": {"worse_than": SeldomWorse},
}


@dataclass(frozen=True)
class Bar:
    """One line that results must reach (or, of a claim of the paper, may or may not).

    It is about `n_tasks` tasks (of distances: pairs of domains); with fewer there is no verdict.
    """

    says: str
    n_tasks: int
    about: About
    asked: Asked
    claim: bool = False

    def __post_init__(self) -> None:
        if not (isinstance(self.n_tasks, int) and self.n_tasks >= 1):
            raise ValueError(f"n_tasks={self.n_tasks!r} is not a number of tasks; give a whole number from 1")


@dataclass(frozen=True)
class Verdict:
    """What came of a bar: whether the tasks at hand meet it (None: there are none), how many, the numbers."""

    bar: Bar
    met: bool | None
    n_tasks: int
    numbers: str

    @property
    def complete(self) -> bool:
        """Whether all tasks that the bar is about are there; if not, `met` says nothing of it."""
        return self.n_tasks >= self.bar.n_tasks

    @property
    def word(self) -> str:
        """Verdict in a word: bars pass or fail, claims hold or do not, and neither with tasks missing."""
        if self.met is None:
            return "no results"
        if not self.complete:
            return "incomplete"
        words = ("no", "yes") if self.bar.claim else ("FAIL", "pass")
        return words[self.met]

    @property
    def found(self) -> str:
        """The numbers, and how much is missing."""
        if self.met is None or self.complete:
            return self.numbers
        kind = "pairs" if self.bar.about.measure == "distances_grown" else "tasks"
        return f"{self.numbers}; incomplete, {self.n_tasks} of {self.bar.n_tasks} {kind}"


def load_bars(path: str | Path) -> list[Bar]:
    """Read the bars of a TOML file, ``[[bar]]`` by ``[[bar]]``; there must be one."""
    try:
        table = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{path} is not a TOML file: {error}") from None
    try:
        check_keys(table, {"bar"}, "")
        given = check_list(table.get("bar", []), "bar")
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    if not given:
        raise ValueError(f"{path} has no bars: give what is expected, each in a table [[bar]]")
    bars = []
    for number, own in enumerate(given, start=1):
        try:
            bars.append(bar_of(own))
        except ValueError as error:
            raise ValueError(f"{path}, bar {number}: {error}") from None
    return bars


def bar_of(table: Any) -> Bar:
    """Make the bar that a table ``[[bar]]`` describes."""
    if not isinstance(table, Mapping):
        raise ValueError(f"it must be a table, got {table!r}")
    nouns = [Bar, About, *(noun for kind in KINDS.values() for noun in kind.values())]
    check_keys(table, {name for noun in nouns for name in _names(noun)} - {"about", "asked"}, "")
    kinds = [key for key in KINDS if key in table]
    if len(kinds) != 1:
        raise ValueError(f"give one of {', '.join(KINDS)}; got {', '.join(kinds) or 'none'}")
    about = _made(About, table, "a bar")
    shared = {*_names(Bar), *_names(About)}
    asked = _asked(kinds[0], {key: value for key, value in table.items() if key not in shared}, about)
    return _made(Bar, {**table, "about": about, "asked": asked}, "a bar")


def _asked(kind: str, given: Mapping[str, Any], about: About) -> Asked:
    """Make what is asked from the keys that are left for it."""
    noun = next(noun for key, noun in KINDS[kind].items() if key in given)
    foreign = [key for key in given if key not in _names(noun)]
    if foreign:
        raise ValueError(f"{kind} does not go with {', '.join(foreign)}")
    if kind == "than":
        check_keys(given["than"], set(_names(Where)), "than.")
        place = {"plan": about.plan, "variant": about.variant, **given["than"]}
        given = {**given, "than": _made(Where, place, "than")}
    return _made(noun, given, kind)


def _made(noun: type[Any], given: Mapping[str, Any], what: str) -> Any:
    """Make a noun from those keys that are its own."""
    missing = [own.name for own in fields(noun) if own.default is MISSING and own.name not in given]
    if missing:
        raise ValueError(f"{what} needs {', '.join(missing)}")
    return noun(**{name: given[name] for name in _names(noun) if name in given})


def _names(noun: type[Any]) -> list[str]:
    return [own.name for own in fields(noun)]


def verdict_table(verdicts: Sequence[Verdict]) -> str:
    """Return verdicts as a Markdown table."""
    rows = [f"| {own.bar.says} | {own.word} | {own.n_tasks} | {own.found} |" for own in verdicts]
    return "\n".join(["| expected | verdict | tasks | found |", "| --- | --- | ---: | --- |", *rows]) + "\n"


def satisfied(verdicts: Sequence[Verdict], partial: bool = False) -> bool:
    """Tell whether no bar is missed and none is without all its tasks.

    With `partial`, what is incomplete is let pass, as long as anything at all could be judged.
    """
    if any(own.word == "FAIL" for own in verdicts):
        return False
    if partial:
        return any(own.met is not None for own in verdicts)
    return all(own.complete for own in verdicts)


def check(bars: Sequence[Bar], records: Sequence[Record]) -> list[Verdict]:
    """Judge every bar by the records."""
    found = [(bar, bar.asked.judged(bar.about, records)) for bar in bars]
    return [Verdict(bar, own.met, own.n_tasks, own.numbers) for bar, own in found]
