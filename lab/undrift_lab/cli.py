"""`undrift-lab`: run plans, draw and tabulate their results, check them."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import NoReturn

import typer

from undrift.errors import escape_controls
from undrift.files import write_text_atomically

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    help="Reproduce the paper's experiments: run a plan, then draw, tabulate and check.",
)

RESULTS = typer.Argument(..., metavar="RESULTS", help="JSON lines of `undrift-lab run`; may be several.")
DATA = typer.Option(
    None, "--data", metavar="DIR", help="Folder of the corpora. Default: UNDRIFT_DATA, or the cache folder."
)


@app.command("run")
def run_plan(
    plan: Path = typer.Argument(
        ..., metavar="PLAN", help="A plan in TOML, or the name of one of undrift: small, multi, ..."
    ),
    results: Path = typer.Option(..., "--results", metavar="FILE", help="JSON lines, added to."),
    methods: str | None = typer.Option(None, "--methods", help="Names separated by commas. Default: all."),
    tasks: str | None = typer.Option(
        None, "--tasks", help="Patterns such as 'books->*', separated by commas. Default: all."
    ),
    variants: str | None = typer.Option(
        None, "--variants", help="Patterns of their names, separated by commas. Default: all."
    ),
    jobs: int | None = typer.Option(
        None, "--jobs", min=1, help="Tasks at once, where they keep to one core. Default: all cores."
    ),
    device: str = typer.Option("cpu", "--device", help="Where stacks are learnt, such as cuda."),
    data: Path | None = DATA,
    max_rows: int | None = typer.Option(
        None, "--max-rows", min=1, help="Rows of each part of each domain, for a trial."
    ),
    max_features: int | None = typer.Option(None, "--max-features", min=1, help="Columns, for a trial."),
    seed: int | None = typer.Option(
        None, "--seed", min=0, help="Instead of the plan's. Results of several seeds may share a file."
    ),
    retry_failed: bool = typer.Option(False, "--retry-failed", help="Try again what failed before."),
    log: bool = typer.Option(False, "--log", help="Write one line a task, also where no terminal shows it."),
) -> None:
    """Run a benchmark plan. Stop it at any time and run it again: it resumes where it was.

    Example:

        undrift-lab run small --results small.jsonl --data ~/data --device cuda

    Every task is a line of the results. A method that fails leaves lines that say why, and the others go on;
    with --retry-failed they are tried again.

    Exit status: 0 if every task that was asked for has a result, 1 if some are recorded as failed, 2 if
    something must be fixed first, 130 if it was interrupted.
    """
    from .plan import load_plan
    from .runner import Request, run

    def show(n_done: int, n_total: int, what: str) -> None:
        if log or sys.stderr.isatty():
            print(escape_controls(f"{n_done}/{n_total} {what}"), file=sys.stderr, flush=True)

    chosen = load_plan(plan).smaller(max_rows, max_features).seeded(seed)
    names = (_split_names(methods), _split_names(tasks), _split_names(variants))
    summary = run(chosen, results, Request(data, *names, jobs, device, retry_failed, show))
    failed = f"; {summary.n_failed} failed" if summary.n_failed else ""
    _say(f"{summary.n_new} tasks run, {summary.n_before} done before{failed}: {results}")
    if summary.n_failed:
        raise typer.Exit(1)


@app.command("figures")
def draw_figures(
    results: list[Path] = RESULTS,
    out: Path = typer.Option(..., "--out", metavar="DIR", help="Folder to write to."),
    only: str | None = typer.Option(
        None, "--only", help="Patterns of names such as '*-figure-1', separated by commas. Default: all."
    ),
) -> None:
    """Draw the paper's figures from results as SVG, and write a Markdown table of all means.

    Example:

        undrift-lab figures small.jsonl --out figures --only "small-authors-figure-?"
    """
    from .results.draw import write_figure
    from .results.figures import choose_figures
    from .results.frame import find_failures, make_frame
    from .results.tables import plan_table

    records = _read_records(results)
    figures = choose_figures(records, _split_names(only))
    if not figures:
        raise ValueError(
            "the results hold nothing to draw yet" + (f" that --only {only} names" if only else "")
        )
    for figure in figures:
        write_figure(figure, out)
    write_text_atomically(out / "table.md", plan_table(make_frame(records), find_failures(records)))
    _say(f"{len(figures)} figures and a table: {out}")


@app.command("check")
def check_results(
    results: list[Path] = RESULTS,
    expected: Path = typer.Option(
        Path("expected"), "--expected", metavar="FILE", help="The bars; by default those of the lab."
    ),
    partial: bool = typer.Option(False, "--partial", help="What is incomplete does not count."),
) -> None:
    """Check results against the bars of the plan file expected.toml, and answer its claims.

    Every bar is about a number of tasks. The exit status is 1 if one is missed, or if tasks of one are not
    there: records of a trial, run with --max-rows or --max-features, do not count. Results of several
    versions of undrift are refused.
    """
    from .results.expected import are_met, check_bars, check_versions, load_bars, verdict_table

    records = _read_records(results)
    check_versions(records)
    verdicts = check_bars(load_bars(expected), records)
    _say(verdict_table(verdicts).rstrip())
    if not are_met(verdicts, partial):
        raise typer.Exit(1)


@app.command("merge")
def merge_results(
    results: list[Path] = RESULTS,
    out: Path = typer.Option(..., "--out", metavar="FILE", help="Where the records go."),
) -> None:
    """Write results of several files as one compact file: the last record of everything measured.

    Example:

        undrift-lab merge small-*.jsonl --out lab/results/small.jsonl
    """
    from .results.records import merge_records

    text = merge_records(_read_records(results))
    write_text_atomically(out, text)
    _say(f"{text.count(chr(10)):,} records: {out}")


@app.command("pages")
def fill_all(
    root: Path = typer.Option(Path(), "--root", metavar="DIR", help="The checkout."),
) -> None:
    """Fill the tables and draw the figures of a checkout's pages from lab/results, all at once.

    Tables go between comments such as '<!-- bench table: small -->' and '<!-- end -->' in README.md, docs
    and lab; figures that these pages show are drawn in lab/figures. The same results give the same bytes.
    """
    from .results.draw import write_figure
    from .results.expected import check_versions
    from .results.figures import choose_figures
    from .results.page import fill_pages

    paths = sorted((root / "lab/results").glob("*.jsonl"))
    if not paths:
        raise ValueError(f"there are no results in {root / 'lab/results'}: give the checkout with --root")
    records = _read_records(paths)
    check_versions(records)
    pages, names = fill_pages(root, records)
    figures = choose_figures(records, names)
    for figure in figures:
        write_figure(figure, root / "lab/figures")
    for path, page in pages.items():
        write_text_atomically(path, page)
    _say(f"{len(pages)} pages and {len(figures)} figures from {len(paths)} files of results")


@app.command("kinds")
def show_kinds(results: list[Path] = RESULTS) -> None:
    """Print the tables of plan kinds: errors, harm, estimates and labels, by group and by family.

    Example:

        undrift-lab kinds kinds.jsonl
    """
    from .results.frame import make_frame
    from .results.kinds import TABLES, make_kinds_table

    frame = make_frame(_read_records(results))
    tables = {name: make_kinds_table(name, frame) for name in TABLES}
    if not any(tables.values()):
        raise ValueError("the results hold no record of plan kinds")
    _say("\n".join(f"## {name}\n\n{table}" for name, table in tables.items() if table))


@app.command("report")
def write_report(
    results: list[Path] = RESULTS,
    out: Path = typer.Option(..., "--out", metavar="FILE", help="Where the page goes."),
) -> None:
    """Show benchmark results as one HTML page: means, the paper's figures, every record.

    Example:

        undrift-lab report results.jsonl --out results.html
    """
    from .results.report import write_page

    write_text_atomically(out, write_page(_read_records(results, "transfer")))
    _say(f"Report: {out}")


@app.command("fetch")
def fetch_dataset(
    name: str = typer.Argument(..., metavar="NAME", help="Which data set."),
    data: Path | None = DATA,
) -> None:
    """Download a public data set: amazon-bow, processed_acl, fdu-mtl or multidomain.

    Example:

        undrift-lab fetch amazon-bow --data ~/data

    It becomes a folder of that name in DIR, where `undrift-lab run --data DIR` looks for it; one that is
    there already is left as it is.
    """
    from .corpora import fetch

    _say(f"{name} is in {fetch(name, data, progress=True)}")


def _split_names(given: str | None) -> list[str] | None:
    return None if given is None else [name.strip() for name in given.split(",")]


def _read_records(paths: list[Path], kind: str | None = None) -> list[dict]:
    from .results.records import read

    return [record for path in paths for record in read(path, kind)]


def _say(text: str) -> None:
    print("\n".join(map(escape_controls, text.split("\n"))))


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run the lab's command line and exit. What the user can fix is one line, and exit status 2."""
    from typer.main import get_command

    from .runner import STOPPED

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        status = get_command(app).main(args=arguments, prog_name="undrift-lab", standalone_mode=False)
    except SystemExit as ended:
        status = ended.code
    except (KeyboardInterrupt, typer.Abort):
        status = 130
    except Exception as error:
        status = _tell(error)
    if status == 130:  # some versions of typer end an interrupted command so
        print(STOPPED, file=sys.stderr)
    raise SystemExit(status if isinstance(status, int) else 0)


def _tell(error: Exception) -> int:
    """Print an error that the user can fix in one line and return the exit status; raise any other."""
    if hasattr(error, "format_message"):  # an error of click, of which typer may bring a copy
        message = "" if type(error).__name__ == "NoArgsIsHelpError" else error.format_message()
    elif isinstance(error, OSError | ValueError | ImportError) and not isinstance(error, BrokenPipeError):
        message = " ".join(str(error).split())
    else:
        raise error
    if message:
        print(escape_controls(f"undrift-lab: {message}"), file=sys.stderr)
    return 2


if __name__ == "__main__":
    main()
