"""A value that holds until the next one comes, by pool, as SVG text. Values may lie anywhere."""

from __future__ import annotations

from collections.abc import Sequence

from surelist._numerals import number
from surelist.drawing.charts import LEFT, POINTER, RIGHT, WIDTH, Frame, axes, read_out, svg


def step_chart(
    changes: Sequence[tuple[float, float]], end: float, *, name: str, title: str, x_title: str, y_title: str
) -> str:
    """``changes`` are (after how many pools, the value from then on); the last one holds up to ``end``."""
    values = [value for _, value in changes]
    low, high = min(values), max(values)
    margin = 0.1 * (high - low) or max(abs(high), 1e-9) / 10
    low, high = low - margin, high + margin
    frame = Frame(max(end, 1), high - low)

    def height(value: float) -> float:
        return frame.y(value - low)

    parts = [axes(frame, x_title, y_title, y_ticks=False, whole=True)]
    for value in sorted(set(values)) if len(set(values)) <= 6 else (min(values), max(values)):
        y = height(value)
        parts.append(
            f'<line class="grid" x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}"/>'
            f'<text class="tick" x="{LEFT + 6}" y="{y - 6:.1f}">{number(value)}</text>'
        )
    path = f"M{frame.x(changes[0][0]):.1f} {height(values[0]):.1f}"
    path += "".join(f"H{frame.x(at):.1f}V{height(value):.1f}" for at, value in changes[1:])
    points = [(frame.x(at), height(value), at, value) for at, value in changes]
    said = read_out(y_title, x_title, y_title, points)
    parts.append(f'<path class="line line-a" d="{path}H{frame.x(frame.x_max):.1f}" {said}/>')
    parts += [
        f'<circle class="mark" cx="{frame.x(at):.1f}" cy="{height(value):.1f}" r="4">'
        f"<title>{number(value)}</title></circle>"
        for at, value in changes
    ]
    parts.append(POINTER)
    spoken = "; ".join(
        f"{number(value)} after {at:,.0f} {'pool' if at == 1 else 'pools'}" for at, value in changes
    )
    return svg(name, title, f"{y_title}: {spoken}.", parts)
