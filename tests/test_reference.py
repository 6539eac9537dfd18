"""The reference: every public object is on it, is documented, and has an example that runs."""

import doctest
import importlib
import inspect
import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).parent.parent / "docs/reference/api.md").read_text(encoding="utf-8")
MODULES = ("", ".explain", ".datasets", ".report")


def list_public() -> dict[str, object]:
    """Return the classes and functions that the public modules export, by name."""
    modules = [importlib.import_module(f"undrift{name}") for name in MODULES]
    exported = {name: getattr(module, name) for module in modules for name in module.__all__}
    return {name: value for name, value in exported.items() if callable(value)}


PUBLIC = list_public()


def sections_of(value: object) -> set[str]:
    return set(re.findall(r"^(\w[\w ]*)\n-{3,}$", inspect.getdoc(value) or "", flags=re.MULTILINE))


def test_the_page_lists_every_public_object_once():
    listed = re.findall(r"^   (\w+)$", PAGE, flags=re.MULTILINE)
    assert sorted(listed) == sorted(PUBLIC)
    assert len(listed) >= 20


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_docstrings_are_complete(name):
    value = PUBLIC[name]
    sections = sections_of(value)
    assert "Examples" in sections
    if inspect.isfunction(value):
        signature = inspect.signature(value)
        assert "Parameters" in sections or not signature.parameters
        assert "Returns" in sections or signature.return_annotation in ("None", None)
    document = inspect.getdoc(value)
    if "Parameters" in sections:
        text = document.split("Parameters\n-", 1)[1]
        for parameter in inspect.signature(value).parameters:
            assert re.search(rf"^[\w *,]*\b{parameter}\b", text, flags=re.MULTILINE), parameter
    if inspect.isclass(value):
        methods = [method for key, method in vars(value).items() if key[0] != "_" and callable(method)]
        assert all(inspect.getdoc(method) for method in methods)


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_examples_run(name, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    value = PUBLIC[name]
    tests = doctest.DocTestFinder(recurse=inspect.isclass(value)).find(
        value, name, module=inspect.getmodule(value)
    )
    assert any(test.examples for test in tests)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    for test in tests:
        runner.run(test)
    assert runner.failures == 0
