"""`undrift bench`: run plans, draw and tabulate their results, check them."""

from __future__ import annotations

from pathlib import Path

import typer

from . import options

app = typer.Typer(
    no_args_is_help=True, help="Reproduce the paper's experiments: run a plan, then draw, tabulate and check."
)

RESULTS = typer.Argument(..., metavar="RESULTS", help="JSON lines that `bench run` wrote; may be several.")

RUN = """Run a benchmark plan. Stop it at any time and run it again: it goes on where it was.

Example:

    undrift bench run paper/small.toml --results small.jsonl --data ~/data --device cuda

Every task is a line of the results. A method that fails leaves lines that say why, and the others go on; \
with --retry-failed they are tried again. While tasks of SDA are left, what it has learnt is kept in a file \
beside the results.

Exit status: 0 if every task that was asked for has a result, 1 if some are recorded as failed, 2 if there \
is something to mend first, 130 if it was interrupted.
"""


@app.command("run", help=RUN)
def run_plan(
    plan: Path = typer.Argument(..., metavar="PLAN", help="A plan in TOML, as in paper/."),
    results: Path = typer.Option(..., "--results", metavar="FILE", help="JSON lines, added to."),
    methods: str | None = typer.Option(None, "--methods", help="Names separated by commas. Default: all."),
    tasks: str | None = typer.Option(
        None, "--tasks", help="Patterns such as 'books->*', separated by commas. Default: all."
    ),
    jobs: int | None = typer.Option(
        None, "--jobs", min=1, help="Threads for classifiers. Default: all cores."
    ),
    device: str = typer.Option("cpu", "--device", help="Where stacks are learnt, such as cuda."),
    data: Path | None = typer.Option(
        None, "--data", metavar="DIR", help="Folder of the corpora. Default: UNDRIFT_DATA."
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
    from ..bench.__main__ import STOPPED
    from . import screen

    chosen = load_plan(plan).smaller(max_rows, max_features).seeded(seed)
    with screen.progress_bar() as progress:
        bar = progress.add_task(chosen.name, total=None)

        def show(n_done: int, n_total: int, what: str) -> None:
            progress.update(bar, completed=n_done, total=n_total, description=what or chosen.name)

        request = Request(data, _names(methods), _names(tasks), jobs, device, retry_failed, show)
        try:
            summary = run(chosen, results, request)
        except KeyboardInterrupt:
            screen.messages.print(STOPPED, soft_wrap=True)
            raise typer.Exit(130) from None
    if as_json:
        screen.show_json({"results": str(results), **vars(summary)})
    else:
        failed = f"; {summary.n_failed} failed" if summary.n_failed else ""
        done = f"{summary.n_new} tasks run, {summary.n_before} done before{failed}"
        screen.output.print(f"{done}: {screen.escaped(str(results))}", soft_wrap=True)
    if summary.n_failed:
        raise typer.Exit(1)


@app.command(
    "figures", help="Draw the paper's figures from results, as SVG and PNG, with their data as JSON."
)
def draw_figures(
    results: list[Path] = RESULTS,
    out: Path = typer.Option(..., "--out", metavar="DIR", help="Folder to write to."),
) -> None:
    from ..bench.draw import draw
    from ..bench.figures import ablation_figures, all_figures
    from ..bench.table import results_table
    from . import screen

    records = _records(results)
    figures = [*all_figures(records), *ablation_figures(records)]
    if not figures:
        raise ValueError("the results hold nothing to draw yet")
    for figure in figures:
        draw(figure, out)
    (out / "table.md").write_text(results_table(records), encoding="utf-8")
    screen.output.print(f"{len(figures)} figures and a table: {screen.escaped(str(out))}")


@app.command("check", help="Check results against the bars of paper/expected.toml, and answer its claims.")
def check_results(
    results: list[Path] = RESULTS,
    expected: Path = typer.Option(
        Path("paper/expected.toml"), "--expected", metavar="FILE", help="The bars."
    ),
    into: Path | None = typer.Option(
        None, "--into", metavar="FILE", help="Fill this page's slot '<!-- bench table: check -->'."
    ),
    as_json: bool = options.JSON,
) -> None:
    from ..bench.expected import check, load_bars, verdict_table
    from ..bench.table import filled
    from . import screen

    verdicts = check(load_bars(expected), _records(results))
    if into is not None:
        page = into.read_text(encoding="utf-8")
        into.write_text(filled(page, [], {"check": verdict_table(verdicts)}), encoding="utf-8")
        screen.output.print(f"Filled {screen.escaped(str(into))}")
    elif as_json:
        screen.show_json([{"says": v.bar.says, "verdict": v.word, "found": v.found} for v in verdicts])
    else:
        rows = [[v.bar.says, v.word, v.found] for v in verdicts]
        screen.show_table("Results against what is expected", ["expected", "verdict", "found"], rows)
    if any(v.met is False and not v.bar.claim for v in verdicts):
        raise typer.Exit(1)


@app.command("table", help="Print results as a Markdown table, or fill the slots of a page with them.")
def print_table(
    results: list[Path] = RESULTS,
    plan: str | None = typer.Option(None, "--plan", help="Only this plan."),
    into: Path | None = typer.Option(
        None, "--into", metavar="FILE", help="Fill this page between its 'bench table' comments."
    ),
) -> None:
    from ..bench.table import filled, results_table
    from . import screen

    records = _records(results)
    if into is None:
        print(results_table(records, plan), end="")
        return
    page = into.read_text(encoding="utf-8")
    into.write_text(filled(page, records), encoding="utf-8")
    screen.output.print(f"Filled {screen.escaped(str(into))}")


REGRET = """Print, as Markdown tables, what choosing without target labels costs: regret of every rule.

Example:

    undrift bench regret regret-small.jsonl regret-multi.jsonl --into docs/beyond.md

Results are those of plans of kind "regret". The page's slot is '<!-- bench table: regret -->'.
"""


@app.command("regret", help=REGRET)
def print_regret(
    results: list[Path] = RESULTS,
    self_training: bool = typer.Option(
        True, "--self-training/--no-self-training", help="Which of a candidate's two errors counts."
    ),
    into: Path | None = typer.Option(
        None, "--into", metavar="FILE", help="Fill this page between its 'bench table: regret' comments."
    ),
) -> None:
    from ..bench.regret import MEASURES, regret_table
    from ..bench.table import filled
    from . import screen

    records = [record for record in _records(results) if record.get("kind") == "regret"]
    if not records:
        raise ValueError('the results hold no record of kind "regret"; run paper/regret-small.toml first')
    if into is None:
        print(regret_table(records, MEASURES[0 if self_training else 1]), end="")
        return
    if not self_training:
        raise ValueError("--into fills in errors with self-training; leave out --no-self-training or --into")
    into.write_text(filled(into.read_text(encoding="utf-8"), records), encoding="utf-8")
    screen.output.print(f"Filled {screen.escaped(str(into))}")


@app.command(
    "generate", help="Write made-up reviews of many domains in the public format, for paper/full.toml."
)
def generate(
    folder: Path = typer.Argument(..., metavar="DIR", help="Folder to write sorted_data/ into."),
    domains: int = typer.Option(20, "--domains", min=2, help="Number of domains."),
    reviews: int = typer.Option(1000, "--reviews", min=1, help="Reviews of each."),
    seed: int = typer.Option(0, "--seed", help="Seed of whatever is random."),
) -> None:
    from ..bench.generated import write_domains
    from . import screen

    root = write_domains(folder, domains, reviews, seed)
    screen.output.print(f"{domains} domains of {reviews:,} reviews: {screen.escaped(str(root))}")


def _names(given: str | None) -> list[str] | None:
    return None if given is None else [name.strip() for name in given.split(",")]


def _records(paths: list[Path]) -> list[dict]:
    from ..bench import read

    return [record for path in paths for record in read(path)]
