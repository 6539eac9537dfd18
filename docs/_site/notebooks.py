"""Run the notebooks of the gallery by IPython, as a reader does who downloads them, after the site is built.

python docs/_site/notebooks.py
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

GALLERY = Path(__file__).resolve().parents[1] / "gallery"


def run_notebooks(folder: Path) -> list[str]:
    """Run every notebook in a process and an empty folder of its own; return the names of those that fail."""
    failed = []
    for path in sorted(folder.glob("*.ipynb")):
        command = [
            sys.executable,
            "-m",
            "IPython",
            "--colors=NoColor",
            "--HistoryManager.enabled=False",
            str(path),
        ]
        with tempfile.TemporaryDirectory() as place:
            environment = {**os.environ, "MPLBACKEND": "agg", "IPYTHONDIR": place}
            run = subprocess.run(
                command,
                cwd=place,
                env=environment,
                capture_output=True,
                text=True,
                stdin=subprocess.DEVNULL,
                check=False,
            )
        is_bad = run.returncode != 0 or "Traceback (most recent call last)" in run.stdout + run.stderr
        print(f"{path.name}: {'FAILED' if is_bad else 'ran'}", flush=True)
        if is_bad:
            print(run.stdout[-3000:], run.stderr[-3000:], sep="\n")
            failed.append(path.name)
    return failed


if __name__ == "__main__":
    if not any(GALLERY.glob("*.ipynb")):
        raise SystemExit(f"{GALLERY} has no notebooks: run sphinx-build first")
    sys.exit(1 if run_notebooks(GALLERY) else 0)
