"""The reference: every public object is on it, is documented, and its module has an example that runs."""

import doctest
import importlib
import inspect
import re
from pathlib import Path

import pytest

import undrift

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
    assert len(listed) >= 15


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_docstrings_are_complete(name):
    """Every parameter is named, in the docstring or in that of the module."""
    value = PUBLIC[name]
    document = inspect.getdoc(value)
    assert document
    if inspect.isfunction(value) or "Parameters" in sections_of(value):
        known = f"{document}\n{inspect.getdoc(inspect.getmodule(value))}"
        for parameter in inspect.signature(value).parameters:
            assert re.search(rf"\b{parameter}\b", known), parameter


INTERNAL = [  # methods that other packages of the library call
    "fill_unknown", "find_readings", "find_target", "list_labelled", "list_rows",
    "make_problem", "make_settings", "predict_kept", "recall", "scores_to_proba", "weigh",
    "fit_crossing", "fit_rows", "new_vectorizer", "remember",  # of TextAdapter
    "build_analyzer", "choose_tokens", "fit_domains", "fit_frequencies", "frequencies",  # of TermVectorizer
]  # fmt: skip


def list_methods() -> list[tuple[type, str]]:
    """List the methods of public classes that this library defines, but for those that only refuse."""
    return [
        (cls, name)
        for cls in filter(inspect.isclass, PUBLIC.values())
        for name, method in inspect.getmembers(cls, inspect.isfunction)
        if name[0] != "_" and name not in INTERNAL and method.__module__.startswith("undrift.")
        if inspect.signature(method).return_annotation != "NoReturn"
    ]


@pytest.mark.parametrize(("cls", "name"), list_methods())
def test_methods_say_what_they_take_and_return(cls, name):
    """Docstring and signature agree, and types are given; a docstring may point to another method's."""
    method = getattr(cls, name)
    document, signature = inspect.getdoc(method), inspect.signature(method)
    pointed = re.findall(r"(?:those of|As for) (?::meth:)?`(MSDAClassifier\.)?(\w+)`", document)
    others = [getattr(undrift.MSDAClassifier if given else cls, other) for given, other in pointed]
    known = "\n".join(map(inspect.getdoc, [method, *others]))
    assert signature.return_annotation not in (inspect.Signature.empty, "Any")
    if signature.return_annotation != "None":
        assert sections_of(method) & {"Returns", "Yields"}
    for parameter in [*signature.parameters.values()][1:]:
        assert parameter.annotation is not inspect.Parameter.empty
        assert re.search(rf"\b{parameter.name}\b", known), parameter


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_every_public_object_has_an_example_and_says_what_it_returns(name):
    """The page shows the docstring of `undrift.explain` above its functions."""
    value = PUBLIC[name]
    is_shown = f"automodule:: {value.__module__}\n" in PAGE
    assert "Examples" in sections_of(inspect.getmodule(value) if is_shown else value)
    if inspect.isfunction(value) and inspect.signature(value).return_annotation != "None":
        assert "Returns" in sections_of(value)


@pytest.mark.parametrize("cls", filter(inspect.isclass, PUBLIC.values()))
def test_learnt_attributes_that_are_computed_are_documented_too(cls):
    for name, _ in inspect.getmembers(cls, lambda member: isinstance(member, property)):
        if name.endswith("_") and name[0] != "_":
            assert re.search(rf"\b{name}\b", inspect.getdoc(cls)), name


def find_examples(module: object) -> list[doctest.DocTest]:
    return [test for test in doctest.DocTestFinder().find(module) if test.examples]


@pytest.mark.parametrize("module", sorted({inspect.getmodule(value).__name__ for value in PUBLIC.values()}))
def test_examples_run(module, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    for test in find_examples(importlib.import_module(module)):
        runner.run(test)
    assert runner.tries > 0  # every module with a public object has an example
    assert runner.failures == 0
