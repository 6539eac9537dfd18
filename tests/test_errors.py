"""Every exception that users may meet is an `UndriftError`."""

import ast
import importlib
from pathlib import Path

import pytest

import undrift

SOURCE = Path(undrift.__file__).parent
# those that never leave the package: they end a loop, or are turned into another error where they arise
INTERNAL = {"NotPositiveDefinite", "Stopped", "OverlongError"}


def exceptions_of(path: Path) -> list[type]:
    """The public exceptions that a file defines."""
    names = [node.name for node in ast.parse(path.read_text()).body if isinstance(node, ast.ClassDef)]
    dotted = ".".join(["undrift", *path.relative_to(SOURCE).with_suffix("").parts]).removesuffix(".__init__")
    classes = [getattr(importlib.import_module(dotted), name) for name in names if not name.startswith("_")]
    return [cls for cls in classes if issubclass(cls, Exception) and not issubclass(cls, Warning)]


def test_all_exceptions_have_one_base():
    paths = [path for path in SOURCE.rglob("*.py") if "Error" in path.read_text() and path.stem != "__main__"]
    classes = [cls for path in paths for cls in exceptions_of(path) if cls.__name__ not in INTERNAL]
    assert len(classes) >= 8
    for cls in classes:
        assert issubclass(cls, undrift.UndriftError), cls


def test_the_base_is_a_value_error():
    assert issubclass(undrift.UndriftError, ValueError)


def test_a_system_without_an_answer_is_one():
    with pytest.raises(undrift.UndriftError, match="zero in all"):
        undrift.MDA(ridge=0).fit([[1.0, 0.0], [2.0, 0.0]])
