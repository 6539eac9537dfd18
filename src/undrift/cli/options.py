"""Options that several commands share, and how their values are parsed and checked."""

from __future__ import annotations

from collections.abc import Iterable
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
