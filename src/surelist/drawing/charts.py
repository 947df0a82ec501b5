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

from msgspec import Struct

from surelist._numerals import about, number, percent

WIDTH, HEIGHT = 720, 380
LEFT, RIGHT, TOP, BOTTOM = 96, 44, 20, 76
X_TITLE = "Candidates on the shortlist"
TICKS = (1, 2, 5, 10, 20, 50, 100, 1000, 10**4, 10**6, 10**9)
POINTER = (  # moved by a script, to the point that is read out
    '<g class="hover" visibility="hidden"><line class="hover-line"/><circle class="hover-dot" r="6"/></g>'
)


class Line(Struct, frozen=True):
    """A named step line; ``style`` is one of a, b, c; ``ring`` marks a point of it."""

    name: str
    style: str
    x: Sequence[float]
    y: Sequence[float]
    ring: tuple[float, float] | None = None


class Frame(Struct, frozen=True):
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
        points = [(frame.x(x), frame.y(y), x, y) for x, y in zip(line.x, line.y, strict=True)]
        end = f"H{frame.x(frame.x_max):.1f}" if points else ""
        steps = "".join(f"H{x:.1f}V{y:.1f}" for x, y, *_ in points)
        path = f"M{frame.x(0):.1f} {frame.y(0):.1f}{steps}{end}"
        said = _read_out(line.name, X_TITLE, y_title, points)
        parts.append(f'<path class="line line-{line.style}" d="{path}" {said}/>')
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


def reliability_chart(bins: Sequence[dict[str, float]]) -> str:
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
    return svg("reliability", "How labels follow scores", f"Share qualified by score. {spoken}.", parts)


def linear_chart(values: Sequence[float], *, name: str, title: str, x_title: str, y_title: str) -> str:
    """One number per pool, in order, from 0 upwards."""
    frame = Frame(max(1, len(values)), round_up(max(*values, 1e-9) if len(values) > 1 else values[0] or 1))
    points = [(frame.x(place), frame.y(value), place, value) for place, value in enumerate(values, 1)]
    first, last, most = (number(value, 3) for value in (values[0], values[-1], max(values)))
    said = f"{y_title}: {first} at first, {last} at last, {most} at most."
    parts = [axes(frame, x_title, y_title, whole=True), _connected(points, points, x_title, y_title)]
    return svg(name, title, said, parts)


def logarithmic_chart(
    values: Sequence[float], line: float, *, name: str, title: str, x_title: str, y_title: str, line_name: str
) -> str:
    """One number per pool on a scale of ratios, from 1; smaller ones are drawn at 1. ``line`` is marked."""
    top = math.log10(max(*values, 1.5 * line))
    frame = Frame(max(1, len(values)), top)

    def height(value: float) -> float:
        return frame.y(math.log10(max(1.0, min(value, 1e300))))

    shown = [tick for tick in TICKS if math.log10(tick) <= top and tick != line]
    points = [(frame.x(place), height(value), place, value) for place, value in enumerate((1.0, *values))]
    parts = [
        axes(frame, x_title, y_title, y_ticks=False, whole=True),
        *(_ruled(height(tick), number(tick)) for tick in shown),
        _ruled(height(line), number(line), "alarm-line"),
        f'<text class="label alarm-word" x="{LEFT + 6}" y="{height(line) - 6:.1f}">{line_name}</text>',
        _connected(points, points[1:], x_title, y_title),
    ]
    at = number(line)
    reached = f"the line at {at} was reached" if max(values) >= line else f"the line is at {at}"
    last, most = number(values[-1], 3), number(max(values), 3)
    after = "1 pool" if len(values) == 1 else f"{len(values):,} pools"
    return svg(name, title, f"{y_title} after {after}: {last}, at most {most}; {reached}.", parts)


def _connected(
    points: Sequence[tuple[float, ...]], pools: Sequence[tuple[float, ...]], x_title: str, y_title: str
) -> str:
    """A line through all points, with a dot for each pool unless they are many; its value is shown when it
    is pointed at."""
    path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y, *_ in points)
    dots = "".join(
        f'<circle class="mark" cx="{x:.1f}" cy="{y:.1f}" r="4"><title>{number(value, 3)}</title></circle>'
        for x, y, _, value in (pools if len(points) <= 60 else ())
    )
    said = _read_out(y_title, x_title, y_title, points)
    return f'<path class="line line-a" d="{path}" {said}/>{dots}{POINTER}'


def _spoken(line: Line) -> str:
    if not len(line.x):
        return f"{line.name}: nothing is certified"
    shown = sorted({0, len(line.x) // 4, len(line.x) // 2, len(line.x) - 1})
    spots = ", ".join(f"{number(line.y[i], 3)} on a list of {number(line.x[i], 3)}" for i in shown)
    marked = "" if line.ring is None else f", marked at {number(line.ring[1], 3)} on {about(line.ring[0])}"
    return f"{line.name}: {spots}{marked}"


def _read_out(name: str, x_title: str, y_title: str, points: Sequence[tuple[float, ...]]) -> str:
    """What a script needs to read a line out: where its points are drawn, and their numbers."""
    places = [[round(x, 1), round(y, 1), float(f"{a:.4g}"), float(f"{b:.4g}")] for x, y, a, b in points]
    words = {"name": name, "x": x_title, "y": y_title}
    said = " ".join(f'data-{key}="{escape(word, quote=True)}"' for key, word in words.items())
    return f'{said} data-points="{json.dumps(places, separators=(",", ":"))}"'


def axes(
    frame: Frame, x_title: str, y_title: str, x_ticks: bool = True, y_ticks: bool = True, whole: bool = False
) -> str:
    """Grid, ticks and titles; ``whole``: the horizontal axis counts."""
    base = HEIGHT - BOTTOM
    parts = [_ruled(frame.y(value), number(value)) for value in _ticks(frame.y_max)] if y_ticks else []
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


def _ruled(y: float, text: str, style: str = "grid") -> str:
    """A line across the picture, with its value beside the axis."""
    beside = f'<text class="tick" x="{LEFT - 8}" y="{y:.1f}" dy=".35em" text-anchor="end">{text}</text>'
    return f'<line class="{style}" x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}"/>{beside}'


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
