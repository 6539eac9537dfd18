"""Values of options and arguments, turned into what a job holds; mistakes are one line."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ..errors import UndriftError

SAME = "same"  # class shares as in the source
FORMATS = ("csv", "tsv", "jsonl")
NUMBERS = ("noise", "layers", "n_layers", "C", "ridge", "seed", "random_state")  # settings


@dataclass(frozen=True)
class Reading:
    """How files of rows are read and written."""

    encoding: str | None = None
    sheet: str | None = None  # of a spreadsheet that has several
    skip_bad: bool = False
    safe_cells: bool = False  # whether cells of CSV output that look like a formula get an apostrophe
    stream: str | None = None  # format of standard input and output


def parse_reading(values: Sequence[str]) -> Reading:
    """Return how files are read, from the values of --format."""
    given: dict[str, Any] = {}
    for value in [part.strip() for item in values for part in item.split(",")]:
        name, _, setting = value.partition("=")
        if value in FORMATS:
            given["stream"] = value
        elif value == "skip-bad":
            given["skip_bad"] = True
        elif value == "safe-cells":
            given["safe_cells"] = True
        elif name in ("encoding", "sheet") and setting:
            given[name] = setting
        else:
            listed = ", ".join(FORMATS)
            raise UndriftError(
                f"--format {value!r}: choose one of {listed}, encoding=NAME, sheet=NAME, skip-bad, safe-cells"
            )
    return Reading(**given)


def parse_settings(values: Sequence[str], known: Sequence[str]) -> dict[str, Any]:
    """Return the parameters of the classifier in values of --set, such as noise=0.5,0.7."""

    def parse(text: str) -> Any:
        """Return a number, true, false or none as such, and other text as it is."""
        try:
            return json.loads("null" if text.lower() == "none" else text.lower())
        except ValueError:
            return text

    settings: dict[str, Any] = {}
    names = {"layers": "n_layers", "seed": "random_state", **{name: name for name in known}}
    for value in values:
        name, sign, text = value.partition("=")
        if not sign or name not in names:
            listed = ", ".join(sorted(set(names) - {"n_layers", "random_state"}))
            raise UndriftError(f"--set {value!r}: write NAME=VALUE; names are {listed}")
        parts = [parse(part) for part in text.split(",")]
        if name in NUMBERS and not all(isinstance(part, int | float) for part in parts):
            raise UndriftError(f"--set {value!r}: write a number, or several that are separated by commas")
        settings[names[name]] = parts if len(parts) > 1 else parts[0]
    return settings


def parse_merges(values: Sequence[str]) -> dict[str, str]:
    """Return label -> the class that it is joined into, from values of --merge such as 1,2,3=bad."""
    merges: dict[str, str] = {}
    if not values:
        return merges
    from ..inputs import spell_label  # brings scikit-learn: the first sign of a command comes before

    for value in values:
        listed, sign, name = value.rpartition("=")
        labels = [label.strip() for label in listed.split(",")]
        if not sign or not name.strip() or not all(labels):
            raise UndriftError(f"--merge {value!r}: write LABEL,LABEL=CLASS, as in 1,2,3=bad")
        for label in map(spell_label, labels):
            if merges.setdefault(label, name.strip()) != name.strip():
                raise UndriftError(f"--merge: the label {label!r} is joined into two classes")
    return merges


def parse_target_shares(values: Sequence[str]) -> list[dict[str, float]] | Literal["source"]:
    """Return the class shares of the values of --target-shares; `same` says those of the source."""
    if SAME not in values:
        return [parse_shares(value) for value in values]
    if len(values) > 1:
        raise UndriftError(f"--target-shares {SAME} is for all targets: give it once, and nothing else")
    return "source"


def parse_shares(value: str) -> dict[str, float]:
    """Return the label -> share of one --target-shares, written negative=0.2,positive=0.8 or as JSON."""
    is_json = value.lstrip().startswith("{")
    try:
        pairs = [part.split("=") for part in value.split(",")]
        if is_json:
            pairs = json.loads(value, object_pairs_hook=list)
        shares = [(str(label).strip(), float(share)) for label, share in pairs]
        is_text = is_json and any(isinstance(share, str) for _, share in pairs)
        if is_text or len(dict(shares)) < len(shares):
            raise ValueError("a share is not a number, or a class is there twice")
    except (TypeError, ValueError):
        raise UndriftError(
            f"--target-shares {value!r}: write label=share once for every class, as in "
            "negative=0.2,positive=0.8; "
            """labels that contain , or = are written as JSON: '{"a,b": 0.2, "c": 0.8}'"""
        ) from None
    return dict(shares)
