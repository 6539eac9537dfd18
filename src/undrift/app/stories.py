"""Stories of how a target may differ from its source; they are told where its readings disagree."""

from __future__ import annotations

from collections.abc import Iterator

from ..method import (
    MOST_STORIES,
    MUCH_DISAGREEMENT,
    Readings,
    describe_torn,
    is_open,
    list_heard,
    measure_disagreement,
)
from ..results import list_shares, pick_shares


def tell_stories(readings: Readings, file: str, fitted: str | None = None) -> Iterator[str]:
    """Say which class shares follow from every story, where the readings of a file differ.

    The stories are of the target of the fit, which `fitted` names if the file is another one.
    """
    if not is_open(readings):
        return
    share, heard = measure_disagreement(readings), list_heard(readings)
    told = pick_shares(heard[:MOST_STORIES])
    n_classes = len(heard[0]["shares"])
    rest = f" Of {n_classes} classes these differ most:" if n_classes > len(told[0]) else ""
    what = "its class shares" if share > MUCH_DISAGREEMENT else f"the share of {describe_torn(readings)}"
    yield (
        f"The text of {file} alone does not tell {what}: readings differ on up to {share:.0%} of the "
        f"rows.{rest}"
    )
    condition = f"if this holds of {fitted}" if fitted and fitted != file else "if"
    for reading, shares in zip(heard, told, strict=False):
        yield f"- {list_shares(shares)}, {condition}: {reading['story']}"


def name_winner(readings: Readings) -> str:
    """Say which story has most votes, and how many; nothing without readings."""
    if not readings:
        return ""
    winner = max(readings, key=lambda each: each["weight"])
    return f"Most likely ({winner['weight']:.0%} of the votes): {winner['story']}"
