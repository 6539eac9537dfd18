"""The fields that `--json` prints are those of docs/reference/json-fields.md."""

import json
import re
from pathlib import Path

from tests.helpers.commands import ADAPT

PAGE = (Path(__file__).parents[3] / "docs/reference/json-fields.md").read_text(encoding="utf-8")
BY_LABEL = {"labels", "signals", "groups", "files", "shares", "by_class", "target_shares_interval"}
BY_LABEL |= {f"{name}_shares" for name in ("predicted", "target", "labelled")}


def list_fields(value, name="") -> set[str]:
    """Names of all fields, without the labels that some objects have as keys."""
    if isinstance(value, list):
        return set().union(*(list_fields(item, name) for item in value), set())
    if not isinstance(value, dict):
        return set()
    names = set() if name in BY_LABEL else set(value)
    return names.union(*(list_fields(item, key) for key, item in value.items()))


def fields_on_page(command: str) -> set[str]:
    (section,) = re.findall(
        rf"^## `{command} --json`.*?\n(.*?)(?=^## )", PAGE, flags=re.MULTILINE | re.DOTALL
    )
    return set(re.findall(r"`([a-zA-Z_0-9]+)`", section))


def test_the_page_names_every_field(folder, undrift, model):
    text = ["--text", "review", "--json"]
    new = ["--model", model, "--input", "kitchen.csv", "--out"]
    updated = ["update", "--model", model, "--out", "u.safetensors"]
    outputs = ["--model", "m.safetensors", "--distilled", "s.safetensors", "--min-confidence", "0.8"]
    commands = [
        [*ADAPT, "--target-label", "truth", *outputs, "--json"],
        [*ADAPT, "--target-label", "truth", "--teacher", "truth", "--json"],
        ["predict", *new, "new.csv", *text, "--check", "--min-confidence", "0.8"],
        ["predict", "--model", model, "--input", "[ck]*n*.csv", "--out", "new2.csv", *text],
        ["ask", *new, "ask.csv", *text, "--n", "20", "--for", "estimate"],
        [*updated, "--labels", "kitchen.csv", "--label", "truth", *text],
        [*updated, "--target", "kitchen.csv", *text],
        ["distill", "--model", model, "--target", "kitchen.csv", "--out", "d.safetensors", *text],
        ["explain", "--model", model, "the", "--document", "it rusted", "--json"],
        ["explain", "--model", model, "--json"],
    ]
    shown: dict[str, set[str]] = {}
    for command in commands:
        status, out, err = undrift(*command)
        assert status == 0, err
        shown.setdefault(command[0], set()).update(list_fields(json.loads(out)))
    of_distilled = fields_on_page("distill")
    for name, fields in shown.items():
        known = fields_on_page(name) | (of_distilled if name == "adapt" else set())
        assert fields <= known, f"{name}: {sorted(fields - known)}"
        assert len(fields) >= 6
    unseen = fields_on_page("predict") | fields_on_page("ask") | fields_on_page("update") | of_distilled
    assert not unseen - set().union(*shown.values()) - {"error", "low", "high"}
