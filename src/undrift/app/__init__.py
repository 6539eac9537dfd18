"""The command line. A mistake of the user gives one line on standard error, and exit status 2."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import sys
import traceback
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from types import FrameType

from ..errors import escape_controls, wrap_line


def _describe_interrupt() -> str:
    """Say that the command was interrupted, and what it had written by then."""
    files = sys.modules.get("undrift.files")
    written = ", ".join(files.WRITTEN) if files else ""
    what = f"already written: {written}" if written else "nothing was written"
    return escape_controls(f"undrift: interrupted; {what}")


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run the command line, and exit."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupt)
    try:
        _run(arguments)
    except SystemExit as ended:
        code = ended.code
    except KeyboardInterrupt:
        print(_describe_interrupt(), file=sys.stderr)
        code = 130
    if isinstance(code, str):  # an error, as Python has it
        _complain(str(code))
    status = 1 if isinstance(code, str) else code or 0
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _discard_output()
    except KeyboardInterrupt:  # everything is done
        os._exit(status)
    raise SystemExit(status)


def _run(arguments: list[str] | None) -> NoReturn:
    import typer
    from typer.main import get_command

    from ..files import WRITTEN
    from .cli import app

    # click's class of errors; some versions of typer bring a copy of click
    usage_errors: tuple[type[Exception], ...] = tuple(
        base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException"
    )
    WRITTEN.clear()
    signal.signal(signal.SIGTERM, lambda signum, _: sys.exit(128 + signum))  # unfinished files are removed
    try:
        words = sys.argv[1:] if arguments is None else arguments
        typed = shlex.join(["undrift", *words])  # a report shows it
        command = get_command(app)
        status = command.main(args=words, prog_name="undrift", standalone_mode=False, obj=typed)
    except typer.Abort:
        raise KeyboardInterrupt from None
    except usage_errors as error:
        if type(error).__name__ == "NoArgsIsHelpError":  # the help has been shown
            raise SystemExit(2) from None
        _fail(_format_error(error), 2)
    except (BrokenPipeError, SystemExit) as ended:
        cause = ended.__context__ if isinstance(ended, SystemExit) else ended  # rich and click exit with 1
        if not isinstance(cause, BrokenPipeError):
            raise
        _discard_output()
        raise SystemExit(0) from None
    except MemoryError as error:
        _fail(f"out of memory ({_format_error(error)}); try a smaller --max-features", 2)
    except (KeyError, IndexError) as error:  # nothing that the user can fix
        last = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{os.path.basename(last.filename)}, line {last.lineno}"
        _fail(f"this is a fault of undrift, please report it: {type(error).__name__}: {error} in {where}", 1)
    except (OSError, ValueError, LookupError, ImportError) as error:
        _fail(_format_error(error), 2)
    if status == 130:  # of an interrupt, after which some versions of typer end the command so
        raise KeyboardInterrupt
    raise SystemExit(status if isinstance(status, int) else 0)


def _discard_output() -> None:
    """Send the rest of the output nowhere: its reader has closed the pipe, which is not an error."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(message: str, status: int) -> None:
    _complain(message)
    raise SystemExit(status)


def _complain(message: str) -> None:
    """Print a message in one line, or on a terminal in lines that break between words."""
    line = escape_controls(f"undrift: {message}")
    if sys.stderr.isatty():
        line = wrap_line(line, shutil.get_terminal_size().columns)
    print(line, file=sys.stderr)


def _format_error(error: BaseException) -> str:
    """Return the message of an exception in one line."""
    message = error.args[0] if isinstance(error, LookupError) and error.args else str(error)
    if hasattr(error, "format_message"):  # click's, which names the option
        message = error.format_message()
    line = " ".join(str(message).split()).removeprefix("Invalid value: ") or type(error).__name__
    extra = re.fullmatch(r"Got unexpected extra argument\S* \((.*)\)", line)
    if extra and all(map(os.path.exists, extra[1].split())):
        line += ": if the shell made these of a pattern, quote it ('reviews-*.csv'), so that it is one domain"
    return line


def _interrupt(signum: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt; during an import, which would report it in many lines, end at once."""
    files = sys.modules.get("undrift.files")
    if "asyncio" in sys.modules:  # a client of Dask; it would report each of its tasks that now ends
        sys.modules["logging"].getLogger("asyncio").disabled = True
    inner = frame
    while inner is not None and inner.f_code.co_filename != "<frozen importlib._bootstrap>":
        inner = inner.f_back
    if inner is None or (files and files.UNFINISHED):
        signal.default_int_handler(signum, frame)
    os.write(2, f"{_describe_interrupt()}\n".encode())
    os._exit(130)
