"""A plan as text, for a terminal."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from surelist.promises.targets import Recall

if TYPE_CHECKING:
    from surelist.lifecycle.planning import Needed, Plan, PlanRow


def describe(plan: Plan) -> str:
    """What is asked, what it rests on, the table, and what is enough."""
    per = "per 100 candidates" if isinstance(plan.target, Recall) else "per pool"
    lines = [f"{plan.target.describe()}, alpha {plan.alpha:g}.", plan.basis, ""]
    if math.isnan(plan.oracle):
        lines.append("Not even everyone on the list would do: the target exceeds the qualified there are.")
    else:
        lines.append(f"Oracle list (the population known): {plan.oracle:.2f} {per}.")
    lines += ["", *_table(plan), ""]
    lines += [_needs(each) for each in plan.needed]
    if plan.enough is not None:
        lines.append(
            f"From about {plan.enough:,} rows on, one more label saves less than one review over "
            f"{plan.pools:,} pools (exact rule)."
        )
    return "\n".join(lines)


def _table(plan: Plan) -> list[str]:
    rules = list(dict.fromkeys(row.rule for row in plan.table))
    lines = [f"{'rows':>9}" + "".join(f"  {rule + ': certifiable':>22}  {'list':>24}" for rule in rules)]
    for n in dict.fromkeys(row.rows for row in plan.table):
        cells = [_cell(row) for row in plan.table if row.rows == n]
        lines.append(f"{n:>9,}" + "".join(cells))
    return lines


def _cell(row: PlanRow) -> str:
    size = "-" if row.list_size is None else f"{row.list_size:.2f}"
    if row.excess is not None:
        size += f" ({100 * row.excess:+.0f}%)"
    if row.interval is not None:
        size += f" {row.interval[0]:.1f}-{row.interval[1]:.1f}"
    return f"  {row.assurance:>22.0%}  {size:>24}"


def _needs(each: Needed) -> str:
    rows = "no number of rows" if each.rows is None else f"{each.rows:,} rows"
    span = ""
    if each.interval is not None:
        low, high = (("never" if end is None else f"{end:,}") for end in each.interval)
        span = f" ({low} to {high} by the pilot's base rate)"
    return f"Certifiable with probability {each.assurance:.0%} under rule {each.rule}: {rows}{span}."
