"""The documents and scripts: what they say is what is run, and what they name exists."""

import importlib
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from sklearn import config_context

import undrift
from tests.helpers.transcripts import PAGES, PROGRAM, PROGRAMS, check_shown
from undrift._version import METHOD_VERSION

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


DOCUMENTS = [
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "lab/README.md",
    *sorted(f"lab/pages/{path.name}" for path in (ROOT / "lab/pages").glob("*.md")),
    *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")),
    *sorted(f"docs/how-to/{path.name}" for path in (ROOT / "docs/how-to").glob("*.md")),
    *sorted(f"docs/decisions/{path.name}" for path in (ROOT / "docs/decisions").glob("*.md")),
]


def code_blocks(language: str, page: str = "README.md") -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", read(page), flags=re.DOTALL)


def run_programs(text: str, names: dict, capsys) -> int:
    """Run the programs of a page; what stands below one is what it prints. Returns how many show that."""
    n_shown = 0
    for part in PROGRAM.finditer(text):
        exec(compile(part["program"], "a program of the page", "exec"), names)
        printed = capsys.readouterr().out
        if part["shown"]:
            check_shown(part["shown"], f"```text {printed} ```")
            n_shown += 1
    return n_shown


def test_ci_runs_the_very_line_of_the_readme():
    demo, tests = code_blocks("bash")
    assert demo.strip().endswith("undrift demo")
    assert "pytest" in tests
    assert tests.strip() in read(".ci/run").splitlines()


def test_ci_names_tests_that_exist():
    (names,) = re.findall(r"^core_tests=\(core.*?\)$", read(".ci/run"), flags=re.MULTILINE | re.DOTALL)
    program = names + '; printf "%s\\n" "${core_tests[@]}"'  # bash expands the braces
    listed = subprocess.run(
        ["bash", "-c", program], capture_output=True, text=True, check=True
    ).stdout.split()
    assert len(listed) > 5
    assert not [name for name in listed if not (ROOT / "tests" / f"{name}.py").exists()]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::undrift.UndriftWarning")
def test_the_quick_start_runs(tmp_path, monkeypatch, capsys):
    """What README shows below its program is what that prints."""
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    assert run_programs(read("README.md"), names, capsys) == 1
    assert names["predictions"].shape == (400,)


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
@pytest.mark.filterwarnings("ignore::undrift.UndriftWarning")
def test_the_python_parts_of_the_first_pages_run(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    n_shown = run_programs(read(page).partition("## The same in Python")[2], {}, capsys)
    assert n_shown == {"docs/tutorial.md": 2, "docs/day-after.md": 1}[page]


def test_commands_of_the_documents_have_the_options_they_name():
    from typer.main import get_command

    from undrift.app.cli import app

    options = {
        name: {option for parameter in command.params for option in parameter.opts}
        for name, command in get_command(app).commands.items()
    }
    pages = [block for page in DOCUMENTS for block in code_blocks("text", page)]
    commands = re.findall(r"undrift (\w+)((?:[^\n]|\\\n)*)", "\n".join(pages))
    assert len(commands) > 5
    for name, rest in commands:
        assert set(re.findall(r"(--[\w-]+)", rest)) <= options[name]


def headings(page: Path) -> set[str]:
    """Anchors of the headings of a page, as GitHub makes them."""
    titles = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in titles}


def test_links_of_the_documents_lead_somewhere():
    for page in DOCUMENTS:
        for target, part in re.findall(r"\]\((?!http)([^)#]*)#?([^)]*)", read(page)):
            path = (ROOT / page).parent / target if target else ROOT / page
            assert path.exists(), f"{page} links to {target}"
            assert not part or part in headings(path), f"{page} links to {target}#{part}"


def test_tools_and_actions_are_pinned_alike_everywhere():
    pins = dict(line.split("==") for line in read("constraints.txt").split("\n") if "==" in line)
    for tool in ("ruff", "mypy", "codespell"):
        assert f"{tool}=={pins[tool]}" in PROJECT["optional-dependencies"]["test"]
        assert f"{tool} {pins[tool]}" in read(".pre-commit-config.yaml")
    workflows = "".join(path.read_text() for path in (ROOT / ".github/workflows").glob("*.yml"))
    actions = re.findall(r"uses: (\S+)( # v[\d.]+)?", workflows)
    assert len(actions) > 5
    assert all(re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", action) and version for action, version in actions)


def test_extras_and_the_eight_core_dependencies():
    extras = PROJECT["optional-dependencies"]
    (everything,) = extras["all"]
    named = re.fullmatch(r"undrift\[(.*)\]", everything)[1].split(",")
    assert set(named) == set(extras) - {"all", "test", "docs"}
    names = {re.match(r"[a-z0-9-]+", requirement)[0] for requirement in PROJECT["dependencies"]}
    assert names == {"numpy", "scipy", "scikit-learn", "pandas", "safetensors", "typer", "rich", "jinja2"}


def resolve(dotted: str) -> object:
    """Import the longest prefix of a dotted name that is a module, and get the rest as attributes."""
    parts = dotted.split(".")
    for n in range(len(parts), 0, -1):
        try:
            value = importlib.import_module(".".join(parts[:n]))
        except ModuleNotFoundError:
            continue
        for part in parts[n:]:
            value = getattr(value, part)
        return value
    raise ModuleNotFoundError(dotted)


EQUATIONS = read("docs/equations.md")


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`((?:undrift|tests)\.[\w.]+)`", EQUATIONS))))
def test_every_name_beside_an_equation_exists(name):
    assert callable(resolve(name))


@pytest.mark.parametrize("number", ["(2)", "(5)", "(7)", "(8)", "(9)", "Algorithm 1", "Algorithm 2"])
def test_every_equation_has_its_row(number):
    (row,) = [line for line in EQUATIONS.splitlines() if line.startswith(f"| {number} |")]
    assert "`undrift." in row
    assert "`tests.helpers.oracles." in row


def test_the_documents_name_what_exists_in_undrift():
    pages = [page for page in DOCUMENTS if page != "CHANGELOG.md"]  # which names what is gone too
    names = {name for page in pages for name in re.findall(r"`(undrift(?:\.\w+)+)", read(page))}
    assert len(names) > 10
    assert all(resolve(name) is not None for name in names)


@pytest.mark.parametrize("page", DOCUMENTS)
def test_the_documents_name_files_that_exist(page):
    for path in re.findall(r"`((?:tests|benchmarks|paper|docs|src)/[\w./-]+)`", read(page)):
        assert (ROOT / path).exists(), path


SOURCE = Path(undrift.__file__).parent
DESIGN = read("docs/design.md")


def test_the_design_page_names_paths_and_names_that_exist():
    paths = re.findall(r"`([\w.-]*/[\w./-]*|[\w-]+\.(?:py|toml|md))`", DESIGN)
    assert len(paths) > 10
    for path in paths:
        assert (SOURCE / path).exists() or (ROOT / path).exists(), path
    files = [*SOURCE.rglob("*.py"), *(ROOT / "lab/undrift_lab").rglob("*.py")]
    code = "\n".join(path.read_text(encoding="utf-8") for path in files)
    for name in set(re.findall(r"`([a-zA-Z_]\w*)(?:\(\w*\))?`", DESIGN)):
        assert re.search(rf"\b{name}\b", code), name


@pytest.mark.parametrize("word", ["own", "found"])
def test_variables_are_named_for_what_they_hold(word):
    """Few uses are left for ordinary English such as "was not found"."""
    files = [path for path in SOURCE.rglob("*") if path.suffix in {".py", ".html", ".js", ".css"}]
    uses = {path: len(re.findall(rf"\b{word}\b", path.read_text(encoding="utf-8"))) for path in files}
    assert sum(uses.values()) <= 60, sorted((n, str(path)) for path, n in uses.items() if n)


def test_every_version_of_the_method_has_a_page():
    """It says what was decided and why, what it gained, and what was dropped."""
    pages = sorted((ROOT / "docs/decisions").glob("[0-9]*.md"))
    numbers = [path.stem for path in pages]
    assert numbers == [f"{number:03}" for number in range(1, METHOD_VERSION + 1)]
    listed = re.findall(r"^(\d{3})$", read("docs/decisions/index.md"), flags=re.MULTILINE)
    assert listed == numbers
    for path in pages:
        text = path.read_text(encoding="utf-8")
        assert text.startswith(f"# Version {int(path.stem)}: ")
        assert all(
            f"**{part}" in text for part in ("Problem", "Decision", "What it gained", "What was dropped")
        )


def test_the_citation_names_the_version():
    assert f"\nversion: {undrift.__version__}\n" in read("CITATION.cff")


def test_the_recipe_has_the_version_and_the_requirements_of_the_project():
    yaml = pytest.importorskip("yaml")
    recipe = yaml.safe_load(read("recipe/recipe.yaml"))
    assert recipe["context"]["version"] == undrift.__version__
    assert f">={recipe['context']['python_min']}" == PROJECT["requires-python"]
    python, *needed = recipe["requirements"]["run"]
    assert python == "python >=${{ python_min }}"
    assert [name.replace(" ", "") for name in needed] == PROJECT["dependencies"]
    (build,) = tomllib.loads(read("pyproject.toml"))["build-system"]["requires"]
    assert build in [name.replace(" ", "") for name in recipe["requirements"]["host"]]
    ((name, function),) = PROJECT["scripts"].items()
    assert recipe["build"]["python"]["entry_points"] == [f"{name} = {function}"]


@pytest.mark.slow
@pytest.mark.parametrize("page", PROGRAMS, ids=lambda page: Path(page).stem)
@pytest.mark.filterwarnings("ignore::undrift.UndriftWarning")
def test_programs_of_the_pages_run_and_print_what_is_shown(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert code_blocks("python", page)
    # importing skada changes scikit-learn's configuration, and another test may have imported it
    with config_context(enable_metadata_routing="skada" in page):
        run_programs(read(page), {}, capsys)


USER_PAGES = [
    "README.md",
    *(page for page in DOCUMENTS if page.startswith("docs/") and "/decisions/" not in page),
    *(f"docs/reference/{name}.md" for name in ("file-formats", "json-fields", "model-format")),
]
MOST_WORDS = 28  # in a sentence


def list_sentences(page: str) -> list[str]:
    """Return the sentences of a page: its prose without code, links' addresses and markup."""
    text = re.sub(r"```.*?```|<!--.*?-->", "\n\n", read(page), flags=re.DOTALL)
    text = re.sub(r"!\[[^]]*\]\([^)]*\)|(?<=\])\([^)]*\)|https?://\S+", "", text)
    blocks = re.split(r"\n\s*\n|\n(?=\s*(?:[*|#-]|\d+\.) ?)|\|", text)
    return [part for block in blocks for part in re.split(r"(?<=[.!?])\**\s+", " ".join(block.split()))]


@pytest.mark.parametrize("page", USER_PAGES)
def test_no_sentence_of_a_user_page_is_long(page):
    sentences = list_sentences(page)
    assert len(sentences) > 1
    assert not [sentence for sentence in sentences if len(sentence.split()) > MOST_WORDS]


def test_pages_keep_to_their_lengths():
    words = {page: len(read(page).split()) for page in USER_PAGES}
    assert len(read("README.md").splitlines()) <= 110
    assert len(read("CHANGELOG.md").splitlines()) <= 80
    assert sum(words.values()) <= 22_000
    prose = {page: re.sub(r"```.*?```", "", read(page), flags=re.DOTALL) for page in USER_PAGES}
    assert {page for page in prose if "/how-to/" in page and len(prose[page].split()) > 500} == set()


@pytest.mark.slow
def test_a_skipped_test_fails_where_none_may_be(tmp_path):
    """`.ci/run` asks for that, so that nothing is missed for want of data."""
    skipped = "import pytest\n\ndef test_it():\n    pytest.skip()\n"
    (tmp_path / "test_skipped.py").write_text(skipped, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-c", ROOT / "pyproject.toml", "-p", "tests.conftest"]
    for value, status in (("", 0), ("1", 1)):
        environment = os.environ | {"UNDRIFT_NO_SKIPS": value}
        done = subprocess.run([*command, tmp_path], cwd=ROOT, env=environment, capture_output=True)
        assert done.returncode == status
