"""Pictures as SVG text, drawn from plain numbers: the same on the page and in the report.

Colours and the size of letters come from the style sheet around them (classes ``line-a``, ``tick`` ...), so
that dark mode, phones and print need nothing else; room is left for letters twice as large. Every picture
has a text alternative; the numbers that a script reads out are in ``data-points``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from html import escape

from surelist._dataclasses import dataclass
from surelist._numerals import about, number, percent

WIDTH, HEIGHT = 720, 380
LEFT, RIGHT, TOP, BOTTOM = 96, 44, 20, 76


X_TITLE = "Candidates on the shortlist"
POINTER = (  # moved by a script, to the point that is read out
    '<g class="hover" visibility="hidden"><line class="hover-line"/><circle class="hover-dot" r="6"/></g>'
)


@dataclass(frozen=True)
class Line:
    """A named step line; ``style`` is one of a, b, c; ``ring`` marks a point of it."""

    name: str
    style: str
    x: Sequence[float]
    y: Sequence[float]
    ring: tuple[float, float] | None = None


@dataclass(frozen=True)
class Frame:
    """The axes: data to pixels."""

    x_max: float
    y_max: float

    def x(self, value: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * value / self.x_max

    def y(self, value: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * value / self.y_max


def guarantee_chart(
    lines: Sequence[Line], pool_size: float, mark: tuple[float, float] | None = None, name: str = "curve",
    *, y_title: str = "Qualified, at least", axis: str | None = None, most: float | None = None,
) -> str:  # fmt: skip
    """List length against what is certified; ``mark`` shows the promise, ``most`` ends the scale.

    ``axis`` stands beside the axis in the place of a title that is too long for it.
    """
    highest = max((max(line.y, default=0.0) for line in lines), default=0.0)
    frame = Frame(pool_size, most or round_up(max(highest, mark[1] if mark else 0.0, 1e-9)))
    parts = [axes(frame, X_TITLE, axis or y_title)]
    for line in lines:
        parts.append(
            f'<path class="line line-{line.style}" d="{_steps(frame, line)}" '
            f"{read_out(line.name, X_TITLE, y_title, _points(frame, line))}/>"
        )
    parts += [
        f'<circle class="ring line-{line.style}" cx="{frame.x(line.ring[0]):.1f}" '
        f'cy="{frame.y(line.ring[1]):.1f}" r="7"/>'
        for line in lines
        if line.ring is not None
    ]
    if mark is not None:
        x, y = frame.x(mark[0]), frame.y(mark[1])
        parts.append(
            f'<line class="mark-guide" x1="{x:.1f}" y1="{y:.1f}" x2="{x:.1f}" y2="{HEIGHT - BOTTOM}"/>'
            f'<line class="mark-guide" x1="{LEFT}" y1="{y:.1f}" x2="{x:.1f}" y2="{y:.1f}"/>'
            f'<circle class="mark" data-at="{x:.1f}" data-x="{about(mark[0])}" data-y="{number(mark[1], 3)}" '
            f'cx="{x:.1f}" cy="{y:.1f}" r="6"/>'
        )
    parts.append(POINTER)
    spoken = "; ".join(_spoken(line) for line in lines)
    if mark is not None:
        spoken += f"; the promise is marked at {number(mark[1], 3)} on a list of {about(mark[0])}"
    return svg(name, "What each list length carries", f"{y_title}, by list length. {spoken}.", parts)


def reliability_chart(bins: Sequence[dict[str, float]], name: str = "reliability") -> str:
    """Share of qualified calibration rows by score, with exact 95 % intervals."""
    frame = Frame(max(1, len(bins)), round_up(max((b["share_high"] for b in bins), default=1.0)))
    parts = [axes(frame, "Rows from lowest to highest score", "Share qualified", x_ticks=False)]
    for i, each in enumerate(bins):
        left, right = frame.x(i + 0.2), frame.x(i + 0.8)
        top, base, middle = frame.y(each["share"]), frame.y(0), frame.x(i + 0.5)
        low, high = frame.y(each["share_low"]), frame.y(each["share_high"])
        parts.append(
            f'<rect class="bar" x="{left:.1f}" y="{top:.1f}" width="{right - left:.1f}" '
            f'height="{base - top:.1f}"/><path class="whisker" d="M{middle:.1f} {low:.1f}V{high:.1f}'
            f'M{middle - 5:.1f} {low:.1f}h10M{middle - 5:.1f} {high:.1f}h10"/>'
            f'<text class="tick{" between" if i % 3 else ""}" x="{middle:.1f}" y="{HEIGHT - BOTTOM + 4}" '
            f'dy="1em" text-anchor="middle">'
            f"{number(each['high'], 3)}</text>"
        )
    spoken = "; ".join(f"scores up to {number(b['high'], 3)}: {percent(b['share'])}" for b in bins)
    return svg(name, "How labels follow scores", f"Share qualified by score. {spoken}.", parts)


def _spoken(line: Line) -> str:
    if not len(line.x):
        return f"{line.name}: nothing is certified"
    shown = sorted({0, len(line.x) // 4, len(line.x) // 2, len(line.x) - 1})
    spots = ", ".join(f"{number(line.y[i], 3)} on a list of {number(line.x[i], 3)}" for i in shown)
    marked = "" if line.ring is None else f", marked at {number(line.ring[1], 3)} on {about(line.ring[0])}"
    return f"{line.name}: {spots}{marked}"


def _steps(frame: Frame, line: Line) -> str:
    """A step function: what is certified for a list holds until the next longer one."""
    if not len(line.x):
        return f"M{frame.x(0):.1f} {frame.y(0):.1f}"
    parts = [f"M{frame.x(0):.1f} {frame.y(0):.1f}"]
    for x, y in zip(line.x, line.y, strict=True):
        parts.append(f"H{frame.x(x):.1f}V{frame.y(y):.1f}")
    return "".join(parts) + f"H{frame.x(frame.x_max):.1f}"


def _points(frame: Frame, line: Line) -> list[tuple[float, ...]]:
    return [(frame.x(x), frame.y(y), x, y) for x, y in zip(line.x, line.y, strict=True)]


def read_out(name: str, x_title: str, y_title: str, points: Sequence[tuple[float, ...]]) -> str:
    """What a script needs to read a line out: where its points are drawn, and their numbers."""
    places = [[round(x, 1), round(y, 1), float(f"{a:.4g}"), float(f"{b:.4g}")] for x, y, a, b in points]
    words = {"name": name, "x": x_title, "y": y_title}
    said = " ".join(f'data-{key}="{escape(word, quote=True)}"' for key, word in words.items())
    return f'{said} data-points="{json.dumps(places, separators=(",", ":"))}"'


def axes(
    frame: Frame,
    x_title: str,
    y_title: str,
    *,
    x_ticks: bool = True,
    y_ticks: bool = True,
    whole: bool = False,
) -> str:
    """Grid, ticks and titles; ``whole``: the horizontal axis counts."""
    base, parts = HEIGHT - BOTTOM, []
    for value in _ticks(frame.y_max) if y_ticks else ():
        y = frame.y(value)
        parts.append(
            f'<line class="grid" x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}"/>'
            f'<text class="tick" x="{LEFT - 8}" y="{y:.1f}" dy=".35em" text-anchor="end">'
            f"{number(value)}</text>"
        )
    for value in _ticks(frame.x_max, whole) if x_ticks else ():
        x = frame.x(value)
        parts.append(
            f'<text class="tick" x="{x:.1f}" y="{base + 4}" dy="1em" text-anchor="middle">'
            f"{number(value)}</text>"
        )
    parts.append(
        f'<line class="axis" x1="{LEFT}" y1="{base}" x2="{WIDTH - RIGHT}" y2="{base}"/>'
        f'<text class="label under" x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 8}" text-anchor="middle">'
        f"{escape(x_title)}</text>"
        f'<text class="label" transform="translate(6 {(TOP + base) / 2}) rotate(-90)" dy=".8em" '
        f'text-anchor="middle">'
        f"{escape(y_title)}</text>"
    )
    return "".join(parts)


def _ticks(largest: float, whole: bool = False) -> list[float]:
    step = _nice(largest / 5)
    step = math.ceil(step) if whole else step
    return [round(i * step, 10) for i in range(int(largest / step + 1e-9) + 1)]


def _nice(value: float) -> float:
    power = 10.0 ** math.floor(math.log10(value))
    return next(f * power for f in (1, 2, 2.5, 5, 10) if f * power >= value - 1e-12)


def round_up(value: float) -> float:
    """The next number that is easy to read on an axis."""
    step = _nice(value / 5)
    return step * math.ceil(value / step - 1e-9)


def svg(name: str, title: str, description: str, parts: Sequence[str]) -> str:
    """A picture with its text alternative."""
    return (
        f'<svg class="chart" id="{name}" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-labelledby="{name}-title {name}-desc"><title id="{name}-title">{escape(title)}</title>'
        f'<desc id="{name}-desc">{escape(description)}</desc>{"".join(parts)}</svg>'
    )
