"""One number per pool, in order, as SVG text; perhaps with a line that means something."""

from __future__ import annotations

import math
from collections.abc import Sequence

from surelist._numerals import number
from surelist.drawing.charts import (
    BOTTOM,
    HEIGHT,
    LEFT,
    POINTER,
    RIGHT,
    WIDTH,
    Frame,
    axes,
    read_out,
    round_up,
    svg,
)

TICKS = (1, 2, 5, 10, 20, 50, 100, 1000, 10**4, 10**6, 10**9)


def linear_chart(values: Sequence[float], *, name: str, title: str, x_title: str, y_title: str) -> str:
    """Values from 0 upwards."""
    frame = Frame(max(1, len(values)), round_up(max(*values, 1e-9) if len(values) > 1 else values[0] or 1))
    spots = [(frame.x(place), frame.y(value)) for place, value in enumerate(values, 1)]
    first, last, most = (number(value, 3) for value in (values[0], values[-1], max(values)))
    said = f"{y_title}: {first} at first, {last} at last, {most} at most."
    return svg(
        name,
        title,
        said,
        [axes(frame, x_title, y_title, whole=True), _path(spots, values, (x_title, y_title))],
    )


def logarithmic_chart(
    values: Sequence[float], line: float, *, name: str, title: str, x_title: str, y_title: str, line_name: str
) -> str:
    """Values from 1 upwards on a scale of ratios; smaller ones are drawn at 1. ``line`` is marked."""
    top = math.log10(max(*values, 1.5 * line))
    frame = Frame(max(1, len(values)), top)

    def height(value: float) -> float:
        return frame.y(math.log10(max(1.0, min(value, 1e300))))

    parts = [axes(frame, x_title, y_title, y_ticks=False, whole=True)]
    for tick in TICKS:
        if math.log10(tick) <= top and tick != line:
            parts.append(_tick(height(tick), number(tick), "grid"))
    parts.append(_tick(height(line), number(line), "alarm-line"))
    parts.append(
        f'<text class="label alarm-word" x="{LEFT + 6}" y="{height(line) - 6:.1f}">{line_name}</text>'
    )
    spots = [(frame.x(0), height(1.0))]
    spots += [(frame.x(place), height(value)) for place, value in enumerate(values, 1)]
    parts.append(_path(spots, (1.0, *values), (x_title, y_title), first=0))
    at = number(line)
    reached = f"the line at {at} was reached" if max(values) >= line else f"the line is at {at}"
    last, most = number(values[-1], 3), number(max(values), 3)
    after = "1 pool" if len(values) == 1 else f"{len(values):,} pools"
    said = f"{y_title} after {after}: {last}, at most {most}; {reached}."
    return svg(name, title, said, parts)


def _path(
    spots: Sequence[tuple[float, float]], values: Sequence[float], titles: tuple[str, str], first: int = 1
) -> str:
    points = [
        (x, y, place, value) for place, ((x, y), value) in enumerate(zip(spots, values, strict=True), first)
    ]
    line = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in spots)
    dots = "".join(
        f'<circle class="mark" cx="{x:.1f}" cy="{y:.1f}" r="4"><title>{number(value, 3)}</title></circle>'
        for x, y, place, value in points
        if place
    )
    said = read_out(titles[1], *titles, points)
    return f'<path class="line line-a" d="{line}" {said}/>{dots if len(spots) <= 60 else ""}{POINTER}'


def _tick(y: float, text: str, style: str) -> str:
    assert y <= HEIGHT - BOTTOM + 1
    return (
        f'<line class="{style}" x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}"/>'
        f'<text class="tick" x="{LEFT - 8}" y="{y:.1f}" dy=".35em" text-anchor="end">{text}</text>'
    )
