"""Run the notebooks of the gallery in Jupyter, as a reader does who downloads them, after the site is built.

python docs/_site/notebooks.py
"""

import tempfile
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient

GALLERY = Path(__file__).resolve().parents[1] / "gallery"


def run_notebooks(folder: Path) -> int:
    """Run every notebook in a process and an empty folder of its own; return how many there are."""
    paths = sorted(folder.glob("*.ipynb"))
    for path in paths:
        start = time.perf_counter()
        with tempfile.TemporaryDirectory() as place:
            notebook = nbformat.read(path, as_version=4)
            NotebookClient(notebook, timeout=600, resources={"metadata": {"path": place}}).execute()
        print(f"{path.name}: {time.perf_counter() - start:.0f} s", flush=True)
    return len(paths)


if __name__ == "__main__":
    if not run_notebooks(GALLERY):
        raise SystemExit(f"{GALLERY} has no notebooks: run sphinx-build first")
