"""Pictures of a policy's life, pool by pool."""

from __future__ import annotations

from collections.abc import Sequence

from surelist.drawing import charts
from surelist.reports.evidence import RowsEvidence

STYLES = "abcdefgh"  # of lines, in the order of the legend


def evidence(values: Sequence[float], alarm_at: float) -> str:
    """The evidence against a promise after each pool, with the line at which the alarm is raised."""
    return charts.logarithmic_chart(
        values, alarm_at, name="evidence", title="Evidence against the promise",
        x_title="Pools with all reviews", y_title="Evidence against it", line_name="Alarm",
    )  # fmt: skip


def lengths(shares: Sequence[float], listed: str = "Shortlisted") -> str:
    """How much of each pool was shortlisted, or accepted, in percent."""
    return charts.linear_chart(
        shares, name="lengths", title="List length over time", x_title="Pools in the order of screening",
        y_title=f"{listed}, %",
    )  # fmt: skip


def drifts(gaps: Sequence[float]) -> str:
    """How far the scores of each pool lie from those of the calibration rows, in percentage points."""
    return charts.linear_chart(
        gaps, name="drifts", title="Drift of scores", x_title="Pools in the order of screening",
        y_title="Largest gap, points",
    )  # fmt: skip


def thresholds(changes: Sequence[tuple[float, float]], pools: int) -> str:
    """The threshold of a campaign: after how many pools it changed, and to what."""
    return charts.step_chart(
        changes, pools, name="thresholds", title="Threshold over time",
        x_title="Pools in the order of screening", y_title="Listed from score",
    )  # fmt: skip


def curves(named: Sequence[tuple[str, RowsEvidence, tuple[float, float] | None]]) -> str:
    """The guarantee curves of several policies in one picture, per 100 candidates."""
    lines = []
    for (name, evidence, mark), style in zip(named, STYLES, strict=False):
        curve, scale = next(iter(evidence.in_order.values())), 100 / evidence.pool_size
        x, y = ([scale * value for value in values] for values in (curve.list_size, curve.qualified))
        ring = None if mark is None else (scale * mark[0], scale * mark[1])
        lines.append(charts.Line(name, style, x, y, ring))
    return charts.guarantee_chart(lines, 100.0, name="curves")
