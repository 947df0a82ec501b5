"""One number per pool, in order, as SVG text; perhaps with a line that means something."""

from __future__ import annotations

import math
from collections.abc import Sequence

from surelist.drawing.charts import BOTTOM, HEIGHT, LEFT, RIGHT, WIDTH, Frame, axes, round_up, svg

TICKS = (1, 2, 5, 10, 20, 50, 100, 1000, 10**4, 10**6, 10**9)


def linear_chart(values: Sequence[float], *, name: str, title: str, x_title: str, y_title: str) -> str:
    """Values from 0 upwards."""
    frame = Frame(max(1, len(values)), round_up(max(*values, 1e-9) if len(values) > 1 else values[0] or 1))
    spots = [(frame.x(place), frame.y(value)) for place, value in enumerate(values, 1)]
    said = f"{y_title}: {values[0]:.3g} at first, {values[-1]:.3g} at last, {max(values):.3g} at most."
    return svg(name, title, said, [axes(frame, x_title, y_title), _path(spots, values)])


def logarithmic_chart(
    values: Sequence[float], line: float, *, name: str, title: str, x_title: str, y_title: str, line_name: str
) -> str:
    """Values from 1 upwards on a scale of ratios; smaller ones are drawn at 1. ``line`` is marked."""
    top = math.log10(max(*values, 1.5 * line))
    frame = Frame(max(1, len(values)), top)

    def height(value: float) -> float:
        return frame.y(math.log10(max(1.0, min(value, 1e300))))

    parts = [axes(frame, x_title, y_title, y_ticks=False)]
    for tick in TICKS:
        if math.log10(tick) <= top and tick != line:
            parts.append(_tick(height(tick), f"{tick:g}", "grid"))
    parts.append(_tick(height(line), f"{line:g}", "alarm-line"))
    parts.append(
        f'<text class="label alarm-word" x="{LEFT + 6}" y="{height(line) - 6:.1f}">{line_name}</text>'
    )
    spots = [(frame.x(0), height(1.0))]
    spots += [(frame.x(place), height(value)) for place, value in enumerate(values, 1)]
    parts.append(_path(spots, (1.0, *values)))
    reached = f"the line at {line:g} was reached" if max(values) >= line else f"the line is at {line:g}"
    said = f"{y_title} after {len(values)} pools: {values[-1]:.3g}, at most {max(values):.3g}; {reached}."
    return svg(name, title, said, parts)


def _path(spots: Sequence[tuple[float, float]], values: Sequence[float]) -> str:
    line = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in spots)
    dots = "".join(
        f'<circle class="mark" cx="{x:.1f}" cy="{y:.1f}" r="4"><title>{value:.3g}</title></circle>'
        for (x, y), value in zip(spots, values, strict=True)
    )
    return f'<path class="line line-a" d="{line}"/>{dots if len(spots) <= 60 else ""}'


def _tick(y: float, text: str, style: str) -> str:
    assert y <= HEIGHT - BOTTOM + 1
    return (
        f'<line class="{style}" x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}"/>'
        f'<text class="tick" x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{text}</text>'
    )
