"""Pictures of a policy's life, pool by pool."""

from __future__ import annotations

from collections.abc import Sequence

from surelist.drawing import timeline


def evidence(values: Sequence[float], alarm_at: float) -> str:
    """The evidence against a promise after each pool, with the line at which the alarm is raised."""
    return timeline.logarithmic_chart(
        values, alarm_at, name="evidence", title="Evidence against the promise",
        x_title="Pools with all reviews", y_title="Evidence (e-value)", line_name="Alarm",
    )  # fmt: skip


def lengths(shares: Sequence[float]) -> str:
    """How much of each pool was shortlisted, in percent."""
    return timeline.linear_chart(
        shares, name="lengths", title="List length over time", x_title="Pools in the order of screening",
        y_title="Shortlisted, %",
    )  # fmt: skip
