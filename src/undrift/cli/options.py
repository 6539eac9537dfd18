"""Options that several commands share, and how their values are parsed and checked."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

import typer

TEXT = typer.Option(..., "--text", metavar="COL", help="Column that holds the text.")
SKIP_BAD = typer.Option(False, "--skip-bad", help="Skip rows that cannot be read, and count them.")
ENCODING = typer.Option(
    None, "--encoding", help="Encoding of the files. Default: UTF-8, or Windows-1252 with a warning."
)
PREFIX = typer.Option(
    "", "--prefix", metavar="TEXT", help="Put this before the names of the columns added, if they clash."
)
PROBABILITIES = typer.Option(
    False, "--probabilities", help="Add a column p_LABEL for each class, with its probability."
)
MIN_CONFIDENCE = typer.Option(
    None,
    "--min-confidence",
    metavar="P",
    help="Leave `prediction` empty where its probability is below P, such as 0.8.",
)
JSON = typer.Option(False, "--json", help="Print a machine-readable summary on standard output.")


def parse_numbers(value: str, name: str, kind: type) -> Any:
    """Return the number in an option, or the list of numbers where commas separate several."""
    try:
        numbers = [kind(part) for part in value.split(",")]
    except ValueError:
        raise typer.BadParameter(
            f"{name} {value!r}: write a number, or several separated by commas"
        ) from None
    return numbers if len(numbers) > 1 else numbers[0]


def check_option(name: str, value: str, choices: Iterable[str]) -> None:
    """Refuse a value that is none of the choices."""
    if value not in choices:
        raise typer.BadParameter(f"{name} {value!r}: choose one of {', '.join(choices)}")


def check_confidence(min_confidence: float | None) -> None:
    """Refuse a probability that is none."""
    if min_confidence is not None and not 0 <= min_confidence <= 1:
        raise typer.BadParameter(f"--min-confidence {min_confidence:g}: a probability is between 0 and 1")


def parse_shares(values: Sequence[str], n_targets: int) -> list[dict[str, float]]:
    """Return the class shares in every --target-shares: one for all targets, or one for each."""
    if len(values) > 1 and len(values) != n_targets:
        raise typer.BadParameter(
            f"--target-shares is given {len(values)} times and --target {n_targets} times: "
            "give it once for all, or once for each --target, in their order"
        )
    return [_parse_share_list(value) for value in values]


def _parse_share_list(value: str) -> dict[str, float]:
    """Return the label -> share of one option, written negative=0.2,positive=0.8 or as JSON."""
    import numpy as np

    from ..classifier import check_shares

    try:
        is_json = value.lstrip().startswith("{")
        pairs = _read_json_pairs(value) if is_json else [part.split("=") for part in value.split(",")]
        shares = [(str(label).strip(), float(share)) for label, share in pairs]
    except (TypeError, ValueError):
        raise typer.BadParameter(
            f"--target-shares {value!r}: write label=share for every class, as in negative=0.2,positive=0.8; "
            """labels that contain , or = are written as JSON: '{"a,b": 0.2, "c": 0.8}'"""
        ) from None
    labels = [label for label, _ in shares]
    repeated = [label for label in labels if labels.count(label) > 1]
    if repeated:
        raise typer.BadParameter(f"--target-shares {value!r} names {repeated[0]!r} twice")
    try:
        check_shares(dict(shares), np.array(labels, dtype=object), 1)
    except ValueError as error:
        raise typer.BadParameter(f"--{str(error).replace('_', '-', 1)}") from None
    return dict(shares)


def _read_json_pairs(value: str) -> list[tuple[str, Any]]:
    """Return the pairs of a JSON object, repeated names among them."""
    pairs = json.loads(value, object_pairs_hook=list)
    if not all(isinstance(share, int | float) for _, share in pairs):
        raise ValueError("a share is not a number")
    return pairs
