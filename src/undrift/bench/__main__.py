"""``python -m undrift.bench PLAN --results FILE``: the runner alone, for machines without typer."""

from __future__ import annotations

import argparse
import sys
from typing import Any, NoReturn

from .._processes import exit_process
from ..errors import escape_controls
from .plan import load_plan
from .runner import STOPPED, Request, run

OPTIONS: dict[str, dict[str, Any]] = {
    "methods": {"help": "names separated by commas; default: all of the plan"},
    "tasks": {"help": "patterns such as 'books->*', separated by commas"},
    "variants": {"help": "patterns of their names, separated by commas"},
    "jobs": {"type": int, "help": "threads for classifiers; default: all cores"},
    "device": {"default": "cpu", "help": "where stacks are learnt, such as cuda"},
    "data": {"help": "folder of the corpora; default: UNDRIFT_DATA, else the cache"},
    "max-rows": {"type": int, "help": "rows of each part of each domain, for a trial"},
    "max-features": {"type": int, "help": "columns, for a trial"},
    "seed": {"type": int, "help": "instead of the plan's; results are recorded beside those of others"},
    "retry-failed": {"action": "store_true", "help": "try again what failed"},
}


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line."""

    def error(self, message: str) -> NoReturn:
        """End with status 2."""
        self.exit(2, f"undrift: {message}\n")


def main(arguments: list[str] | None = None) -> int:
    """Run a plan; one line of progress for each task on standard error.

    Status 0: every requested task has a result; 1: some are recorded as failed; 2: there was
    something to fix first; 130: interrupted.
    """
    parser = Parser(prog="python -m undrift.bench", description="Run a benchmark plan.")
    parser.add_argument("plan")
    parser.add_argument("--results", required=True, help="JSON lines; an earlier run is continued")
    for name, about in OPTIONS.items():
        parser.add_argument(f"--{name}", **about)
    options = parser.parse_args(arguments)

    def show(n_done: int, n_total: int, what: str) -> None:
        print(escape_controls(f"{n_done}/{n_total} {what}"), file=sys.stderr, flush=True)

    names = {key: getattr(options, key) for key in ("methods", "tasks", "variants")}
    request: dict[str, Any] = {
        key: value if value is None else value.split(",") for key, value in names.items()
    }
    request |= {key: getattr(options, key) for key in ("data", "jobs", "device", "retry_failed")}
    try:
        plan = load_plan(options.plan).smaller(options.max_rows, options.max_features).seeded(options.seed)
        summary = run(plan, options.results, Request(**request, progress=show))
    except KeyboardInterrupt:
        print(STOPPED, file=sys.stderr)
        return 130
    except (OSError, ValueError, ImportError) as error:
        print(escape_controls(f"undrift: {error}"), file=sys.stderr)
        return 2
    print(f"{summary.n_before} done before, {summary.n_new} new, {summary.n_failed} failed", file=sys.stderr)
    return 1 if summary.n_failed else 0


if __name__ == "__main__":
    exit_process(main())
