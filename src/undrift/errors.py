"""The base of every exception this library defines, the category of its warnings, and text for a screen."""

import re
import sys
import textwrap
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def escape_controls(text: str) -> str:
    """Return text that a terminal shows and does not obey: its control characters as JSON writes them.

    Line ends and tabs stay; so JSON is still JSON. Half of a surrogate pair cannot be printed at all.
    """
    return _CONTROLS.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def wrap_line(line: str, width: int) -> str:
    """Break a line between words, so that a terminal does not break it inside one; long words stay whole."""
    return textwrap.fill(line, width, break_long_words=False, break_on_hyphens=False)


class UndriftError(ValueError):
    """The base class of this library's exceptions.

    Examples
    --------
    >>> import undrift
    >>> try:
    ...     undrift.load_model("no.model")
    ... except (undrift.UndriftError, OSError) as error:
    ...     print(type(error).__name__)
    FileNotFoundError
    """


class UndriftWarning(UserWarning):
    """Something worked, but probably not as intended.

    Some have a `code`, which names their subject: "far-apart", "unknown-class".

    Examples
    --------
    >>> import warnings
    >>> from undrift import UndriftWarning
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", UndriftWarning)
    """

    code = ""


def warn(message: str, code: str = "") -> None:
    """Warn at the line of the caller, outside of this library and of scikit-learn."""
    warning = UndriftWarning(message)
    warning.code = code
    frame, level = sys._getframe(1), 2
    while frame.f_back and frame.f_globals.get("__name__", "").startswith(
        ("undrift.", "sklearn.", "joblib.")
    ):
        frame, level = frame.f_back, level + 1
    warnings.warn(warning, stacklevel=level)


@contextmanager
def record_warnings() -> Iterator[list[UndriftWarning]]:
    """Give a list, which holds the warnings of this library when the context ends."""
    given: list[UndriftWarning] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UndriftWarning)
        yield given
    given += [item.message for item in caught if isinstance(item.message, UndriftWarning)]


def count(n: int, noun: str) -> str:
    """Write a number of things: "1 label", "1,200 labels"."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def write_shares(shares: Iterable[float], digits: int = 1) -> list[str]:
    """Write shares in per cent; those of a whole add up to 100%, the largest remainders being rounded up."""
    exact = [100 * 10**digits * share for share in shares]
    units = [round(value) for value in exact]
    if abs(sum(exact) - 100 * 10**digits) < 1e-6:
        units = [int(value) for value in exact]
        by_remainder = sorted(range(len(units)), key=lambda i: units[i] - exact[i])
        for i in by_remainder[: 100 * 10**digits - sum(units)]:
            units[i] += 1
    return [f"{unit / 10**digits:.{digits}f}%" for unit in units]
