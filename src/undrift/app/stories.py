"""Stories of how a target may differ from its source, told where the readings of them disagree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..scoring import list_shares, pick_shares

MUCH_DISAGREEMENT = 0.1  # share of rows from which readings count as different
SOME_VOTES = 0.1  # of a reading that is heard
MOST_STORIES = 4  # that are told

Readings = Sequence[Mapping[str, Any]]  # as `readings_` has them, for one target


def measure_disagreement(readings: Readings) -> float:
    """Return the largest share of rows on which a reading that is heard differs from all together."""
    return max((1 - each["agreement"] for each in readings if each["weight"] >= SOME_VOTES), default=0.0)


def is_open(readings: Readings) -> bool:
    """Tell whether readings differ on so many rows that labels should decide between them."""
    return measure_disagreement(readings) > MUCH_DISAGREEMENT


def tell_stories(readings: Readings, file: str) -> Iterator[str]:
    """Say which class shares follow from every story, where the readings of a file differ."""
    if not is_open(readings):
        return
    share = measure_disagreement(readings)
    heard = sorted((each for each in readings if each["weight"] >= SOME_VOTES), key=lambda r: -r["weight"])
    told = pick_shares(heard[:MOST_STORIES])
    n_classes = len(heard[0]["shares"])
    rest = f" Of {n_classes} classes these differ most:" if n_classes > len(told[0]) else ""
    yield (
        f"The text of {file} alone does not tell its class shares: readings differ on up to {share:.0%} of "
        f"the rows.{rest}"
    )
    for reading, shares in zip(heard, told, strict=False):
        yield f"- {list_shares(shares)}, if: {reading['story']}"


def name_winner(readings: Readings) -> str:
    """Say which story has most votes, and how many; nothing without readings."""
    if not readings:
        return ""
    winner = max(readings, key=lambda each: each["weight"])
    return f"Most likely ({winner['weight']:.0%} of the votes): {winner['story']}"
