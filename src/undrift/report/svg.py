"""Drawing primitives: escaped tags, scales and axes. Charts are strings, made from data and nothing else.

No element carries a `style` attribute: the page's content-security policy would refuse it. Colours are
classes, which light, dark and print define separately.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass

from markupsafe import Markup, escape

NARROW = 400  # charts that fit a telephone as they are, and stand side by side on a desk
N_COLOURS = 8  # of classes; more classes have no colour, but their names beside every mark
LINE = 44  # characters of a line of text that is as wide as a chart


def tag(name: str, *children: str, **attributes: object) -> Markup:
    """Build one element. Text and attributes are escaped; `cls` is `class`, and `_` in a name is `-`."""
    names = {key: "class" if key == "cls" else key.replace("_", "-") for key in attributes}
    shown = "".join(
        f' {names[key]}="{escape(_shortest(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    inside = "".join(escape(child) for child in children)
    return Markup(f"<{name}{shown}>{inside}</{name}>" if inside else f"<{name}{shown}/>")


def _shortest(value: object) -> object:
    """Return a number with one decimal, which is a tenth of a pixel."""
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else value


def text(x: float, y: float, content: object, anchor: str = "start", cls: str | None = None) -> Markup:
    """Write a line of text at a point."""
    return tag("text", str(content), x=float(x), y=float(y), text_anchor=anchor, cls=cls)


def line(x1: float, y1: float, x2: float, y2: float, cls: str) -> Markup:
    """Draw a straight line."""
    return tag("line", x1=float(x1), y1=float(y1), x2=float(x2), y2=float(y2), cls=cls)


def bar(x: float, y: float, width: float, height: float, cls: str, says: str) -> Markup:
    """Draw a rectangle that says what it is."""
    return tag("rect", tag("title", says), x=x, y=y, width=width, height=height, cls=cls)


def dot(x: float, y: float, r: float, cls: str, says: str) -> Markup:
    """Draw a circle that says what it is."""
    return tag("circle", tag("title", says), cx=float(x), cy=float(y), r=r, cls=cls)


def drawing(title: str, height: float, *parts: str) -> Markup:
    """Put parts together as a chart that has a name for those who cannot see it."""
    box = f"0 0 {NARROW} {height:g}"
    return tag("svg", *parts, viewBox=box, role="img", aria_label=title, cls="drawing narrow")


@dataclass(frozen=True)
class Scale:
    """Numbers to places."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """Return the place of a value."""
        span = self.high - self.low or 1.0
        return self.start + (value - self.low) / span * (self.end - self.start)

    def ticks(self, n: int = 5) -> list[float]:
        """Round values to label, about `n` of them."""
        step = nice_step((self.high - self.low) / n)
        start = math.ceil(self.low / step - 1e-9)
        return [k * step for k in range(start, math.floor(self.high / step + 1e-9) + 1)]


def nice_step(step: float) -> float:
    """Round a step up to 1, 2 or 5 times a power of ten."""
    if not step > 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(step))
    return next(k * power for k in (1, 2, 5, 10) if k * power >= step * (1 - 1e-9))


def find_end(values: Iterable[float]) -> float:
    """Return the end of an axis that starts at 0: the largest value, and a margin."""
    return 1.05 * max(values) or 1.0


def percent(value: float) -> str:
    """Write a fraction as per cent, with as many digits as it needs."""
    shown = 100 * value
    return f"{shown:.0f}%" if abs(shown) >= 10 or shown == round(shown) else f"{shown:.2g}%"


def draw_grid(scale: Scale, top: float, bottom: float, n_ticks: int = 5) -> list[Markup]:
    """Draw grid lines from top to bottom."""
    return [line(scale(value), top, scale(value), bottom, "grid") for value in scale.ticks(n_ticks)]


def write_ticks(scale: Scale, bottom: float, n_ticks: int = 5) -> Markup:
    """Write the shares of grid lines below them."""
    ticks = scale.ticks(n_ticks)
    return Markup("").join(text(scale(v), bottom + 18, percent(v), "middle", "tick") for v in ticks)


def horizontal_axis(scale: Scale, top: float, bottom: float, label: str, n_ticks: int = 5) -> Markup:
    """Draw grid lines from top to bottom, their shares below them, and what they measure."""
    middle = min((scale.start + scale.end) / 2, scale.end + 20 - 4 * len(label))  # of a long one: it fits
    middle = max(middle, 3.7 * len(label) + 4)
    axis = text(middle, bottom + 40, label, "middle", "axis")
    return Markup("").join(
        [*draw_grid(scale, top, bottom, n_ticks), write_ticks(scale, bottom, n_ticks), axis]
    )


def vertical_axis(scale: Scale, left: float, right: float, label: str) -> Markup:
    """Draw grid lines from left to right, their shares at the left, and what they measure on top."""
    marks = []
    for value in scale.ticks():
        y = scale(value)
        marks += [line(left, y, right, y, "grid"), text(left - 8, y + 5, percent(value), "end", "tick")]
    return Markup("").join([*marks, text(4, min(scale.start, scale.end) - 12, label, "start", "axis")])


def write_name(
    x: float, y: float, name: str, length: int, anchor: str = "start", cls: str | None = None, after: str = ""
) -> Markup:
    """Write a name, and what comes `after` it; a name too long for its place is whole on hover and focus."""
    if len(name) + len(after) <= length:
        return text(x, y, name + after, anchor, cls)
    cut = f"{name[: length - len(after) - 1]}…{after}"
    return tag("text", tag("title", name), cut, x=float(x), y=float(y), text_anchor=anchor, cls=cls)


def wrap_name(name: str, length: int = LINE) -> list[str]:
    """Break a name into lines, after a space or a sign where one is near the end of the line."""
    lines = []
    while len(name) > length:
        breaks = [match.end() for match in re.finditer(r"[\s\W_]", name[:length])]
        end = breaks[-1] if breaks and breaks[-1] > length // 2 else length
        lines.append(name[:end].rstrip())
        name = name[end:].lstrip()
    return [*lines, name]
