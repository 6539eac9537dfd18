"""Options that several commands share, and how they become estimators."""

from __future__ import annotations

import typer

from ..classifier import SELECTIONS, SOLVERS
from ..text import TFIDF_LENGTH, WEIGHTINGS, TermVectorizer, TextAdapter, text_classifier

TEXT = typer.Option(..., "--text", metavar="COL", help="Column that holds the text.")
SKIP_BAD = typer.Option(False, "--skip-bad", help="Leave out rows that cannot be read, and count them.")
ENCODING = typer.Option(
    None, "--encoding", help="Encoding of the files. Default: UTF-8; else Windows-1252, and say so."
)
PREFIX = typer.Option(
    "", "--prefix", metavar="TEXT", help="Put this before the names of the columns added, if they clash."
)
JSON = typer.Option(False, "--json", help="Print a machine-readable summary on standard output.")


def numbers(value: str, name: str, kind: type) -> list:
    """One number, or several separated by commas."""
    try:
        found = [kind(part) for part in value.split(",")]
    except ValueError:
        raise typer.BadParameter(
            f"{name} {value!r}: write a number, or several separated by commas"
        ) from None
    return found if len(found) > 1 else found[0]


def text_adapter(
    noise: str,
    layers: str,
    C: str,
    max_features: int,
    weighting: str,
    classifier: str,
    selection: str,
    center: bool,
    self_training: bool,
    device: str,
    seed: int,
    fallback: bool = True,
) -> TextAdapter:
    """Build the estimator that the options describe."""
    if max_features < 1:
        raise typer.BadParameter(f"--max-features {max_features}: at least one term is needed")
    for name, value, choices in (
        ("classifier", classifier, SOLVERS),
        ("selection", selection, SELECTIONS),
        ("weighting", weighting, WEIGHTINGS),
    ):
        if value not in choices:
            raise typer.BadParameter(f"--{name} {value!r}: choose one of {', '.join(choices)}")
    return TextAdapter(
        TermVectorizer(max_features, weighting=weighting, length=TFIDF_LENGTH),
        text_classifier(
            n_layers=numbers(layers, "--layers", int),
            noise=numbers(noise, "--noise", float),
            C=numbers(C, "--C", float),
            classifier=classifier,
            selection=selection,
            center=center,
            self_training=self_training,
            fallback=fallback,
            device=device,
            random_state=seed,
        ),
    )
