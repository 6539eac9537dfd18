"""Run the tests with the oldest dependencies that pyproject.toml allows, and with the newest (but torch).

    python lab/scripts/dependency_range.py [oldest|newest] [-- PYTEST-ARGUMENTS]

Each set gets a virtual environment of its own in a temporary folder. Both by default, with ``pytest -n 2``.
"""

import re
import subprocess
import sys
import tempfile
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ("ruff", "mypy", "pytest", "pytest-xdist", "playwright", "axe-playwright-python")  # of the tests


def list_requirements() -> list[str]:
    """Requirements of the core, and of every extra that tests need."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    groups = [project["dependencies"], *[extras[name] for name in extras if name not in ("docs", "peers")]]
    return sorted({requirement for group in groups for requirement in group if "undrift[" not in requirement})


def pin_oldest(requirements: list[str]) -> list[str]:
    """Constraints that choose the lower bound of every requirement of the library and its tests, exactly."""
    bounds = [re.match(r"([\w-]+)(?:\[\w+\])?>=([\d.]+)", requirement) for requirement in requirements]
    return [
        f"{name}=={version}"
        for bound in bounds
        if bound
        for name, version in [bound.groups()]
        if name not in TOOLS
    ]


def run_tests(name: str, pytest_arguments: list[str]) -> int:
    """Make an environment, print what is in it, and run the tests there; return the exit status."""
    with tempfile.TemporaryDirectory() as folder:
        pins = [
            line for line in (ROOT / "constraints.txt").read_text().splitlines() if line.startswith("torch")
        ]
        if name == "oldest":
            pins += [pin for pin in pin_oldest(list_requirements()) if not pin.startswith("torch")]
        constraints = Path(folder, "constraints.txt")
        constraints.write_text("\n".join(pins) + "\n")
        venv.create(Path(folder, "env"), with_pip=True)
        python = str(Path(folder, "env", "bin", "python"))
        install = [
            python,
            "-m",
            "pip",
            "install",
            "-q",
            "-c",
            str(constraints),
            "-e",
            f"{ROOT}[test]",
            "-e",
            f"{ROOT}/lab[test]",
        ]
        if subprocess.run(install, check=False).returncode:
            print(f"{name}: these versions cannot be installed together:", *pins, sep="\n  ")
            return 1
        subprocess.run([python, "-m", "pip", "list"], check=True)
        status = subprocess.run([python, "-m", "pytest", *pytest_arguments], cwd=ROOT, check=False).returncode
        print(f"{name}: {'passed' if status == 0 else 'FAILED'}")
        return status


if __name__ == "__main__":
    words, _, rest = " ".join(sys.argv[1:]).partition("--")
    names = words.split() or ["oldest", "newest"]
    sys.exit(max(run_tests(name, rest.split() or ["-n", "2"]) for name in names))
