"""The list of commands."""

from __future__ import annotations

import typer

from .. import __version__
from . import adapt, ask, bench, demo, distill, explain, predict, update

app = typer.Typer(
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    help="Train here, predict there: closed-form domain adaptation for text.",
)


@app.callback(invoke_without_command=True)
def version(
    show: bool = typer.Option(False, "--version", "-V", help="Print the version and stop.", is_eager=True),
) -> None:
    if show:
        print(f"undrift {__version__}")
        raise typer.Exit


commands = (demo.demo, adapt.adapt, predict.predict, ask.ask, update.update, distill.distill, explain.explain)
for run in commands:
    app.command(**run.settings)(run)
app.add_typer(bench.app, name="bench")
