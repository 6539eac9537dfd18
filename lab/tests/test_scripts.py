"""Scripts import names that exist, inside functions too, where nothing would notice until one is run."""

import ast
import importlib
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[1] / "scripts"


@pytest.mark.parametrize("script", sorted(SCRIPTS.glob("*.py")), ids=lambda path: path.name)
def test_scripts_import_names_that_exist(script):
    nodes = ast.walk(ast.parse(script.read_text(encoding="utf-8")))
    imports = [node for node in nodes if isinstance(node, ast.ImportFrom)]
    for node in imports:
        if node.module.split(".")[0] == "undrift":
            module = importlib.import_module(node.module)
            assert all(hasattr(module, alias.name) for alias in node.names)
