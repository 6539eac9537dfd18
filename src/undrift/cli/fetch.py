"""`undrift bench fetch`: download a public data set to where plans look for it."""

from __future__ import annotations

from pathlib import Path

import typer

from . import options

HELP = """Download a public data set: amazon-bow, processed_acl, fdu-mtl, multidomain or multidomain-acl.

Example:

    undrift bench fetch amazon-bow --data ~/data

It becomes a folder of that name in DIR, where `bench run --data DIR` looks for it; one that is there
already is left as it is. docs/data.md has the addresses, and what else can be had.
"""


def fetch_dataset(
    name: str = typer.Argument(..., metavar="NAME", help="Which data set."),
    data: Path | None = typer.Option(
        None, "--data", metavar="DIR", help="Data folder. Default: UNDRIFT_DATA, or the user's cache folder."
    ),
    as_json: bool = options.JSON,
) -> None:
    from ..datasets import SOURCES, fetch
    from . import screen

    if name == "amazon-mat":
        raise ValueError(
            "amazon-mat cannot be fetched: no lasting public address of amazon.mat is known. Put your copy "
            "at DIR/amazon-mat/amazon.mat, or fetch amazon-bow, the same reviews (docs/data.md)"
        )
    if name not in SOURCES:
        raise ValueError(f"there is no data set {name!r} to fetch; choose one of {', '.join(SOURCES)}")
    folder = fetch(SOURCES[name], data, progress=True)
    if as_json:
        screen.show_json({"name": name, "folder": str(folder)})
        return
    screen.output.print(f"{name} is in {screen.escaped(str(folder))}")
