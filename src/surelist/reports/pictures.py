"""The picture of a promise, one per kind, with its numbers for whoever cannot see it; a policy by its pools.

Nothing is computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from msgspec import Struct

from surelist._numerals import about, count, number
from surelist.drawing import charts
from surelist.promises.policy import Policy
from surelist.reports.evidence import RULE_NAMES, OwnCurve, RowsEvidence

LINE_STYLES = {"exact": "a", "simultaneous": "a", "dkw": "b"}
EXPECTED = "Qualified, at least"
TABLE_ROWS = 12


class Chart(Struct, frozen=True):
    """A picture as SVG, and some of its points as text under headings. ``guarantee``: it is the guarantee
    curve.

    ``group`` is whom it is about, None for everyone; ``pools`` what pools its list lengths are averages of.
    """

    guarantee: bool
    svg: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    marked: bool
    group: str | None = None
    pools: str | None = None


def promise_charts(
    evidence: RowsEvidence | None, policy: Policy | None = None, *, by_rank: bool = False
) -> tuple[Chart, ...]:
    """The picture of a promise, or of each group's; none where nothing true can be drawn.

    ``by_rank`` says what a ``policy`` that is not there would: thresholds are ranks.
    """
    by_rank = by_rank if policy is None else policy.by_rank
    if evidence and (by_group := evidence.by_group):
        numbered = enumerate(by_group.items(), 1)
        return tuple(_own_chart(own, f"curve-{at}", group, by_rank) for at, (group, own) in numbered)
    if policy is not None and policy.grouped:
        return ()  # a curve of everyone says nothing of a group
    only = promise_chart(evidence, policy, by_rank=by_rank)
    return () if only is None else (only,)


def promise_chart(
    evidence: RowsEvidence | None, policy: Policy | None = None, *, by_rank: bool = False
) -> Chart | None:
    """What each list length carries, in the terms of the promise; None where nothing true can be drawn."""
    if not evidence:
        return None
    if evidence.own:
        return _own_chart(evidence.own, by_rank=by_rank)
    if not evidence.curves:
        return None
    curve = next(iter(evidence.in_order.values()))
    mark = None if policy is None else promised_point(policy)
    line = charts.Line("certified", "a", curve.list_size, curve.qualified)
    svg = charts.guarantee_chart([line], evidence.pool_size, mark)
    rows = _rows(curve.list_size, curve.threshold, curve.qualified)
    return Chart(True, svg, _heads(EXPECTED), rows, mark is not None)


def _own_chart(own: OwnCurve, name: str = "curve", group: str | None = None, by_rank: bool = False) -> Chart:
    scale = 100 if own.share else 1
    values = [scale * value for value in own.value]
    length, promised = own.chosen
    svg = charts.guarantee_chart(
        [charts.Line("certified", "a", own.list_size, values)], own.per, (length, scale * promised),
        name, y_title=own.title, axis=own.axis, most=100.0 if own.share else None,
    )  # fmt: skip
    thresholds = [-each for each in own.threshold] if by_rank else own.threshold
    rows, heads = _rows(own.list_size, thresholds, values), _heads(own.title, by_rank)
    return Chart(False, svg, heads, rows, True, group, about(own.per) if own.of_pools else None)


def list_chart(points: Sequence[tuple[int, int, int]]) -> Chart:
    """How many of one list are qualified, at least and at most, by its length."""
    sizes, least, most = zip(*points, strict=True)
    lines = [charts.Line("at least", "a", sizes, least), charts.Line("at most", "b", sizes, most)]
    svg = charts.guarantee_chart(lines, sizes[-1], name="counts-chart", y_title="Qualified")
    shown = range(len(points) - 1, -1, -max(1, len(points) // TABLE_ROWS))
    rows = tuple(tuple(count(each) for each in points[at]) for at in reversed(shown))
    return Chart(False, svg, ("The first", "Qualified, at least", "Qualified, at most"), rows, False)


def promised_point(policy: Policy) -> tuple[float, float] | None:
    """List length and promise of a policy that promises an average to everyone."""
    rate, listed = policy.cutoffs[0].target.rate, policy.listed_per(policy.cutoffs[0])
    if policy.grouped or len(policy.cutoffs) > 1 or rate is None or listed is None:
        return None
    return listed[0], float(rate * Fraction(listed[1]))


def _heads(title: str, by_rank: bool = False) -> tuple[str, ...]:
    return "List length", "Listed of each pool, at most" if by_rank else "Threshold", title


def _rows(*columns: Sequence[float]) -> tuple[tuple[str, ...], ...]:
    shown = range(0, len(columns[0]), max(1, len(columns[0]) // TABLE_ROWS))
    return tuple(tuple(number(column[at]) for column in columns) for at in shown)


def curve_chart(evidence: RowsEvidence) -> Chart:
    """The guarantee curve of recorded evidence by each rule, for the auditor."""
    curves = evidence.in_order
    lines = [
        charts.Line(RULE_NAMES[rule], LINE_STYLES[rule], each.list_size, each.qualified)
        for rule, each in curves.items()
    ]
    first = next(iter(curves.values()))
    rows = _rows(first.list_size, first.threshold, *(each.y for each in lines))
    heads = ("List length", "Threshold", *(each.name for each in lines))
    return Chart(True, charts.guarantee_chart(lines, evidence.pool_size), heads, rows, False)


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


def curves(named: Sequence[tuple[str, RowsEvidence, tuple[float, float] | None]]) -> str:
    """The guarantee curves of several policies in one picture, per 100 candidates."""
    lines = []
    for (name, evidence, mark), style in zip(named, STYLES, strict=False):
        curve, scale = next(iter(evidence.in_order.values())), 100 / evidence.pool_size
        x, y = ([scale * value for value in values] for values in (curve.list_size, curve.qualified))
        ring = None if mark is None else (scale * mark[0], scale * mark[1])
        lines.append(charts.Line(name, style, x, y, ring))
    return charts.guarantee_chart(lines, 100.0, name="curves")
