"""The layout as a test: imports point downward, names are where they are said to be, imports are cheap."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import undrift

SOURCE = Path(undrift.__file__).parent
MODULES = sorted(SOURCE.rglob("*.py"))

RANK = {
    **dict.fromkeys(["_core", "_version", "_warnings"], 0),
    **dict.fromkeys(["noise", "parameters", "placement", "progress", "rows", "sampling", "mda", "msda"], 1),
    **dict.fromkeys(["arrivals", "classifier", "linear", "prediction", "primal", "readout", "search"], 1),
    **dict.fromkeys(["caution", "extra_blocks", "selection", "self_training", "settings", "sources"], 1),
    **dict.fromkeys(["adapter", "distributed", "explain", "persist", "text", "tables", "training"], 1),
    **dict.fromkeys(["domains", "grid", "metrics", "replacing", "staging", "tensors", "workers"], 1),
    **dict.fromkeys(["baselines", "datasets"], 2),
    **dict.fromkeys(["reading", "jobs", "sharded", "bench"], 3),
    "report": 4,
    **dict.fromkeys(["cli", "__main__"], 5),
}
OPTIONAL = {"torch", "dask", "distributed", "matplotlib", "pandas", "polars", "pyarrow"}
OPTIONAL |= {"pooch", "typer", "rich", "jinja2"}


def name_of(path: Path) -> str:
    return str(path.relative_to(SOURCE))


def imported(path: Path) -> set[str]:
    """Full names of the modules that a file imports, anywhere in it."""
    package = ["undrift", *path.relative_to(SOURCE).parent.parts]
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            start = ".".join([*above, *filter(None, [node.module])])
            names |= {f"{start}.{alias.name}" for alias in node.names}
    return names


def of_ours(path: Path) -> set[str]:
    """First parts, below `undrift`, of what a file imports."""
    return {name.split(".")[1] for name in imported(path) if name.startswith("undrift.")}


def test_imports_are_seen_at_all():
    assert "_core" in of_ours(SOURCE / "msda.py")
    assert "_core" in of_ours(SOURCE / "_core" / "stack.py")
    assert "msda" in of_ours(SOURCE / "persist.py")  # inside a function


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_imports_point_downward(path):
    own = path.relative_to(SOURCE).parts[0].removesuffix(".py")
    if own == "__init__":
        return
    assert own in RANK, f"give {own} a rank in this test, and a place in docs/design.md"
    upward = {name for name in of_ours(path) if RANK.get(name, 0) > RANK[own]}
    assert not upward, f"{path} imports {upward}: move the shared part to a lower layer"


@pytest.mark.parametrize("path", sorted((SOURCE / "_core").glob("*.py")), ids=name_of)
def test_the_core_knows_arrays_and_nothing_else(path):
    torch = {"torch"} if path.stem in {"on_torch", "on_device"} or path.stem.startswith("torch_") else set()
    allowed = {"numpy", "scipy", "undrift", *sys.stdlib_module_names} | torch
    assert {name.split(".")[0] for name in imported(path)} <= allowed
    assert of_ours(path) <= {"_core"}


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_files_and_functions_stay_short(path):
    text = path.read_text()
    assert path.stem not in {"utils", "base", "common", "helpers", "misc"}
    assert text.count("\n") <= 400
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            documented = ast.get_docstring(node) is not None
            first = node.body[min(1, len(node.body) - 1)] if documented else node.body[0]
            n_lines = node.end_lineno - first.lineno + 1
            assert n_lines <= 60, f"{node.name} has {n_lines} lines of code: it is doing two jobs"


def test_all_is_what_exists():
    public = {
        name
        for name, value in vars(undrift).items()
        if not name.startswith("_") and not isinstance(value, ModuleType)
    }
    assert set(undrift.__all__) == public | {"__version__"}
    assert undrift.__all__ == sorted(undrift.__all__)


PACKAGES = [path for path in MODULES if path.name == "__init__.py" and path.parent != SOURCE]


@pytest.mark.parametrize("path", PACKAGES, ids=name_of)
def test_every_package_exports_what_it_says(path):
    name = ".".join(["undrift", *path.relative_to(SOURCE).parent.parts])
    try:
        package = importlib.import_module(name)
    except ImportError as error:  # an extra that is not installed
        pytest.skip(str(error))
    for public in getattr(package, "__all__", []):
        assert getattr(package, public) is not None


def output_of(program: str) -> list[str]:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return done.stdout.split()


def loaded_by(*names: str) -> set[str]:
    program = (
        f"import sys; old = set(sys.modules); import {', '.join(names)}; print(*(set(sys.modules) - old))"
    )
    return set(output_of(program))


@pytest.fixture(scope="module")
def modules() -> set[str]:
    """Every module that importing the library loads."""
    return loaded_by("undrift")


@pytest.fixture(scope="module")
def foundations(modules) -> list[str]:
    """The public modules of scikit-learn, SciPy and safetensors among them."""
    names = [name for name in modules if name.split(".")[0] in {"sklearn", "scipy", "safetensors"}]
    return sorted(name for name in names if "._" not in name and name.count(".") <= 2)


def test_importing_brings_nothing_optional(modules, foundations):
    roots = {name.split(".")[0] for name in modules}
    assert "sklearn" in roots
    assert not roots & {"torch", "dask", "distributed", "matplotlib"}
    brought_by_others = {name.split(".")[0] for name in loaded_by(*foundations)}
    assert not roots & OPTIONAL - brought_by_others


def test_importing_brings_nothing_but_what_it_stands_on(modules, foundations):
    """The rest are its own modules, but for those behind an extra, and the standard library's."""
    beyond = {name.split(".")[0] for name in modules - loaded_by(*foundations)}
    assert beyond - sys.stdlib_module_names == {"undrift"}
    own = {name.split(".")[1] for name in modules if name.startswith("undrift.")}
    assert not own & {"baselines", "bench", "cli", "distributed", "report"}
