"""`undrift bench`: run plans, draw and tabulate their results, check them."""

from __future__ import annotations

from pathlib import Path

import typer

from ..errors import escape_controls
from . import options, terminal

app = typer.Typer(
    no_args_is_help=True, help="Reproduce the paper's experiments: run a plan, then draw, tabulate and check."
)

RESULTS = typer.Argument(..., metavar="RESULTS", help="JSON lines that `bench run` wrote; may be several.")
RUN = """Run a benchmark plan. Stop it at any time and run it again: it resumes where it was.

Example:

    undrift bench run paper/small.toml --results small.jsonl --data ~/data --device cuda

Every task is a line of the results. A method that fails leaves lines that say why, and the others go on; \
with --retry-failed they are tried again. While tasks of SDA are left, what it has learnt is kept in a file \
beside the results.

Exit status: 0 if every task that was asked for has a result, 1 if some are recorded as failed, 2 if \
something must be fixed first, 130 if it was interrupted.
"""


@app.command("run", help=RUN)
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
        None, "--jobs", min=1, help="Threads for classifiers. Default: all cores."
    ),
    device: str = typer.Option("cpu", "--device", help="Where stacks are learnt, such as cuda."),
    data: Path | None = typer.Option(
        None,
        "--data",
        metavar="DIR",
        help="Folder of the corpora. Default: UNDRIFT_DATA, or where `bench fetch` puts them.",
    ),
    max_rows: int | None = typer.Option(
        None, "--max-rows", min=1, help="Rows of each part of each domain, for a trial."
    ),
    max_features: int | None = typer.Option(None, "--max-features", min=1, help="Columns, for a trial."),
    seed: int | None = typer.Option(
        None, "--seed", min=0, help="Instead of the plan's. Results of several seeds may share a file."
    ),
    retry_failed: bool = typer.Option(False, "--retry-failed", help="Try again what failed before."),
    as_json: bool = options.JSON,
) -> None:
    from ..bench import Request, load_plan, run
    from ..bench.runner import STOPPED

    chosen = load_plan(plan).smaller(max_rows, max_features).seeded(seed)
    with terminal.show_progress() as progress:
        bar = progress.add_task(terminal.escape(chosen.name), total=None)

        def show(n_done: int, n_total: int, what: str) -> None:
            progress.update(
                bar, completed=n_done, total=n_total, description=terminal.escape(what or chosen.name)
            )

        which = (_split_names(methods), _split_names(tasks), _split_names(variants))
        request = Request(data, *which, jobs, device, retry_failed, show)
        try:
            summary = run(chosen, results, request)
        except KeyboardInterrupt:
            terminal.messages.print(STOPPED, soft_wrap=True)
            raise SystemExit(130) from None
    if as_json:
        terminal.show_json({"results": str(results), **vars(summary)})
    else:
        failed = f"; {summary.n_failed} failed" if summary.n_failed else ""
        done = f"{summary.n_new} tasks run, {summary.n_before} done before{failed}"
        terminal.say_line(f"{done}: {results}")
    if summary.n_failed:
        raise typer.Exit(1)


FIGURES = """Draw the paper's figures from results: SVG, their data as JSON, and a Markdown table.

Example:

    undrift bench figures small.jsonl --out figures --formats svg --only "small-authors-figure-?"
"""


@app.command("figures", help=FIGURES)
def draw_figures(
    results: list[Path] = RESULTS,
    out: Path = typer.Option(..., "--out", metavar="DIR", help="Folder to write to."),
    only: str | None = typer.Option(
        None, "--only", help="Patterns of names such as '*-figure-1', separated by commas. Default: all."
    ),
    formats: str = typer.Option(
        "svg,json,md", "--formats", help="Which files, separated by commas; md is the table."
    ),
) -> None:
    from .._files import write_text_atomically
    from ..bench.results import ablation_figures, all_figures, choose_figures, results_table
    from ..report import FIGURE_FORMATS, write_figure

    wanted = _split_names(formats) or []
    unknown = set(wanted) - {*FIGURE_FORMATS, "md"}
    if unknown:
        raise ValueError(f"--formats: {', '.join(sorted(unknown))} is not known; choose of svg, json, md")
    drawn = [name for name in wanted if name in FIGURE_FORMATS]
    records = _read_records(results)
    every = [*all_figures(records), *ablation_figures(records)] if drawn else []
    figures = choose_figures(every, _split_names(only))
    if not (figures if drawn else records):
        raise ValueError(
            "the results hold nothing to draw yet" + (f" that --only {only} names" if only else "")
        )
    out.mkdir(parents=True, exist_ok=True)
    for figure in figures:
        write_figure(figure, out, drawn)
    if "md" in wanted:
        write_text_atomically(out / "table.md", results_table(records))
    made = [f"{len(figures)} figures"] * bool(drawn) + ["a table"] * ("md" in wanted)
    terminal.say_line(f"{' and '.join(made)}: {out}")


CHECK = """Check results against the bars of paper/expected.toml, and answer its claims.

Every bar is about a number of tasks. The exit status is 1 if one is missed, or if tasks of one are not there:
records of a trial, run with --max-rows or --max-features, do not count.
"""


@app.command("check", help=CHECK)
def check_results(
    results: list[Path] = RESULTS,
    expected: Path = typer.Option(
        Path("expected"), "--expected", metavar="FILE", help="The bars; by default those of undrift."
    ),
    partial: bool = typer.Option(False, "--partial", help="What is incomplete does not count."),
    as_json: bool = options.JSON,
) -> None:
    from ..bench.results import are_met, check_bars, load_bars

    verdicts = check_bars(load_bars(expected), _read_records(results))
    if as_json:
        terminal.show_json(
            [
                {
                    "says": v.bar.says, "verdict": v.word, "found": v.summary,
                    "n_tasks": v.n_tasks, "n_tasks_expected": v.bar.n_tasks,
                }
                for v in verdicts
            ]
        )  # fmt: skip
    else:
        rows = [[v.bar.says, v.word, v.summary] for v in verdicts]
        terminal.show_table("Results against what is expected", ["expected", "verdict", "measured"], rows)
    if not are_met(verdicts, partial):
        raise typer.Exit(1)


@app.command("table", help="Print results as Markdown tables.")
def print_table(
    results: list[Path] = RESULTS,
    plan: str | None = typer.Option(None, "--plan", help="Only this plan."),
) -> None:
    from ..bench.results import make_table, results_table

    records = [record for record in _read_records(results) if plan in (None, record.get("plan"))]
    if not records:
        raise ValueError("the results hold no record" + (f" of plan {plan}" if plan else ""))
    names = [name for name in ("distance", "regret") if name in {record.get("kind") for record in records}]
    tables = [make_table(name, records) or "" for name in names]
    if any(record.get("kind") == "transfer" for record in records):
        tables.insert(0, results_table(records))
    print(escape_controls("\n".join(tables)), end="")


MERGE = """Write results of several files as one compact file: the last record of everything measured.

Example:

    undrift bench merge small-*.jsonl --out paper/results/small.jsonl
"""


@app.command("merge", help=MERGE)
def merge_results(
    results: list[Path] = RESULTS,
    out: Path = typer.Option(..., "--out", metavar="FILE", help="Where the records go."),
) -> None:
    from .._files import write_text_atomically
    from ..bench.results import merge_records

    text = merge_records(_read_records(results))
    write_text_atomically(out, text)
    terminal.say_line(f"{text.count(chr(10)):,} records: {out}")


PAGES = """Fill the tables and draw the figures of a checkout's pages from paper/results, all at once.

Tables go between comments such as '<!-- bench table: small -->' and '<!-- end -->' in README.md, docs and \
paper; figures that these pages show are drawn in paper/figures. The same results give the same bytes.
"""


@app.command("pages", help=PAGES)
def fill_all(
    root: Path = typer.Option(Path(), "--root", metavar="DIR", help="The checkout."),
) -> None:
    from .._files import write_text_atomically
    from ..bench.results import ablation_figures, all_figures, choose_figures, fill_pages
    from ..report import write_figure

    paths = sorted((root / "paper/results").glob("*.jsonl"))
    if not paths:
        raise ValueError(f"there are no results in {root / 'paper/results'}: give the checkout with --root")
    records = _read_records(paths)
    pages, names = fill_pages(root, records)
    figures = choose_figures([*all_figures(records), *ablation_figures(records)], names)
    (root / "paper/figures").mkdir(exist_ok=True)
    for figure in figures:
        write_figure(figure, root / "paper/figures", ["svg"])
    for path, page in pages.items():
        write_text_atomically(path, page)
    terminal.say_line(f"{len(pages)} pages and {len(figures)} figures from {len(paths)} files of results")


REPORT = """Show benchmark results as one HTML page: the paper's figures, the task matrix, every record.

Example:

    undrift bench report results.jsonl --out results.html
"""


@app.command("report", help=REPORT)
def write_report(
    results: list[Path] = RESULTS,
    out: Path = typer.Option(..., "--out", metavar="FILE", help="Where the page goes."),
) -> None:
    from ..report import benchmark_report

    benchmark_report(results).save(out)
    terminal.say_line(f"Report: {out}")


FETCH = """Download a public data set: amazon-bow, processed_acl, fdu-mtl, multidomain or multidomain-acl.

Example:

    undrift bench fetch amazon-bow --data ~/data

It becomes a folder of that name in DIR, where `bench run --data DIR` looks for it; one that is there
already is left as it is. docs/data.md has the addresses, and what else can be had.
"""


@app.command("fetch", help=FETCH)
def fetch_dataset(
    name: str = typer.Argument(..., metavar="NAME", help="Which data set."),
    data: Path | None = typer.Option(
        None, "--data", metavar="DIR", help="Data folder. Default: UNDRIFT_DATA, or the user's cache folder."
    ),
    as_json: bool = options.JSON,
) -> None:
    from ..datasets import fetch

    folder = fetch(name, data, progress=True)
    if as_json:
        terminal.show_json({"name": name, "folder": str(folder)})
        return
    terminal.say_line(f"{name} is in {folder}")


@app.command(
    "generate", help="Write made-up reviews of many domains in the public format, for paper/full.toml."
)
def generate(
    folder: Path = typer.Argument(..., metavar="DIR", help="Folder to write sorted_data/ into."),
    domains: int = typer.Option(20, "--domains", min=2, help="Number of domains."),
    reviews: int = typer.Option(
        1000,
        "--reviews",
        min=1,
        help="Reviews of each; with fewer than 1000 a plan needs options = { min_reviews = ... }.",
    ),
    seed: int = typer.Option(0, "--seed", help="Seed of the random numbers."),
) -> None:
    from ..bench import write_domains

    root = write_domains(folder, domains, reviews, seed)
    terminal.say_line(f"{domains} domains of {reviews:,} reviews: {root}")


def _split_names(given: str | None) -> list[str] | None:
    return None if given is None else [name.strip() for name in given.split(",")]


def _read_records(paths: list[Path]) -> list[dict]:
    from ..bench import read

    return [record for path in paths for record in read(path)]
