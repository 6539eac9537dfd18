"""Pages of the site that are made from other files of the project, and links that work in both places."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import typer.main
from sphinx.errors import SphinxError

ROOT = Path(__file__).resolve().parents[2]
# documents outside the folder of the site: file -> page
COPIES = {
    "lab/README.md": "benchmarks/paper",
    **{f"lab/pages/{path.name}": f"benchmarks/{path.stem}" for path in (ROOT / "lab/pages").glob("*.md")},
    "CONTRIBUTING.md": "project/contributing",
    "CHANGELOG.md": "project/changelog",
    "README.md": "project/readme",
    "SECURITY.md": "project/security",
    "RELEASING.md": "project/releasing",
    "CODE_OF_CONDUCT.md": "project/conduct",
}
COMMAND_LINE = "reference/command-line"
DEMO = "demo/report.html"  # on the site, where it is copied to from docs/_demo


def write_pages(docs: Path) -> None:
    """Write every page that is made: copies of documents, and the command line's reference."""
    texts = {page: (ROOT / name).read_text(encoding="utf-8") for name, page in COPIES.items()}
    texts = {
        page: rewrite_links(texts[page], ROOT / name, docs / f"{page}.md") for name, page in COPIES.items()
    }
    texts[COMMAND_LINE] = describe_commands()
    for page, text in texts.items():
        path = docs / f"{page}.md"
        path.parent.mkdir(exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
    write_demo(docs / "_demo" / DEMO)


def write_demo(path: Path) -> None:
    """Run `undrift demo` and keep its report, unless there is one already that is newer than the code."""
    newest = max(
        file.stat().st_mtime for file in (ROOT / "src").rglob("*.*") if "__pycache__" not in file.parts
    )
    if path.exists() and path.stat().st_mtime > newest:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "undrift", "demo", "--out", "demo"]
        subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
        shutil.copy(Path(folder, DEMO), path)


def link_demo(text: str, page: Path) -> str:
    """Make the file that `undrift demo` writes a link to the one that it wrote for the site."""
    target = os.path.relpath(ROOT / "docs" / DEMO, page.parent)
    return text.replace(f"`{DEMO}`", f'<a href="{target}"><code>{DEMO}</code></a>')


def rewrite_page(app: Any, name: str, source: list[str]) -> None:
    """Rewrite the links of a page when Sphinx reads it."""
    path = Path(app.srcdir, f"{name}.md")
    if path.exists() and name not in COPIES.values():
        source[0] = rewrite_links(source[0], path, path)


def skip_routing(app: Any, kind: str, name: str, value: Any, skip: bool, options: Any) -> bool | None:
    """Leave out scikit-learn's methods for metadata routing, which every estimator has."""
    return True if name.startswith("set_") and name.endswith("_request") else None


def rewrite_links(text: str, origin: Path, page: Path) -> str:
    """Turn links to files of the project into links of the site, or into plain text if it lacks the page.

    The report of the demo becomes one as well.

    `origin` is the file that the text is from, `page` the one that it becomes.
    """
    docs = ROOT / "docs"

    def rewrite(match: re.Match[str]) -> str:
        mark, label, target, part = match.groups(default="")
        if re.match(r"[a-z]+:", target) or not target:
            return match[0]
        path = (origin.parent / target).resolve()
        name = path.relative_to(ROOT).as_posix()
        name = f"{name}/README.md" if path.is_dir() else name
        path = docs / f"{COPIES[name]}.md" if name in COPIES else path
        if name.startswith("examples/"):
            path = docs / f"gallery/{path.stem if path.suffix == '.py' else 'index'}.rst"
        if mark or (path.suffix in (".md", ".rst") and path.is_relative_to(docs)):
            return f"{mark}[{label}]({os.path.relpath(path, page.parent)}{part})"
        return label

    return re.sub(
        r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)#\s]*)(#[^)\s]*)?\)", rewrite, link_demo(text, page)
    )


def check_links(app: Any, error: Exception | None) -> None:
    """Fail if a link of the finished site leads to a page, or a part of one, that is not there."""
    if error or app.builder.name != "html":
        return
    site = Path(app.outdir).resolve()
    texts = {
        path: path.read_text(encoding="utf-8") for path in site.rglob("*.html") if "_static" not in path.parts
    }
    parts = {path: set(re.findall(r'\b(?:id|name)="([^"]+)"', text)) for path, text in texts.items()}
    broken = []
    for path, text in texts.items():
        for link, part in re.findall(
            r'<(?:a|img|link|script)\b[^>]*?\b(?:href|src)="([^"#?]*)[^"#]*#?([^"]*)"', text
        ):
            target = (path.parent / unquote(link)).resolve() if link else path
            if re.match(r"[a-z]+:|//", link):
                continue
            target = target / "index.html" if target.is_dir() else target
            if not target.exists() or (part and target in parts and unquote(part) not in parts[target]):
                broken.append(f"{path.relative_to(site)}: {link}{'#' * bool(part)}{part}")
    if broken:
        raise SphinxError("links that lead nowhere:\n" + "\n".join(sorted(set(broken))))


def describe_commands() -> str:
    """Return the help of every command as a page."""
    from undrift.app.cli import app

    parts = [
        "# Command line",
        "Written from `undrift --help`; `undrift COMMAND --help` shows the same in a terminal.",
    ]
    for name, command in list_commands(typer.main.get_command(app), "undrift"):
        parts += [f"## `{name}`", command.help or "", describe_options(command)]
    return "\n\n".join(parts) + "\n"


def list_commands(command: Any, name: str) -> list[tuple[str, Any]]:
    """Return every command below one, with its full name."""
    if not hasattr(command, "commands"):
        return [(name, command)]
    return [
        pair for child, below in command.commands.items() for pair in list_commands(below, f"{name} {child}")
    ]


def describe_options(command: Any) -> str:
    """Return the options of a command as a table."""
    rows = []
    for parameter in command.params:
        if getattr(parameter, "hidden", False) or parameter.name == "help":
            continue
        names = [*parameter.opts, *parameter.secondary_opts]
        title = (
            " / ".join(f"`{name}`" for name in names)
            if names[0].startswith("-")
            else f"`{parameter.metavar}`"
        )
        text = (
            " ".join((getattr(parameter, "help", None) or "").split()).replace("|", r"\|").replace("[", r"\[")
        )
        rows.append(f"| {title} | {text} |")
    return "\n".join(["| option | does |", "| --- | --- |", *rows])
