"""Pictures of plans, campaigns and monitors. They draw stored numbers and compute nothing."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from surelist.drawing.axes import COLOURS, NAMES, new_axes

if TYPE_CHECKING:
    from surelist.lifecycle.campaign import Campaign
    from surelist.lifecycle.planning import Plan

PAPER_COLOUR = COLOURS["dkw"]


def draw_plan(plan: Plan, ax: Any = None) -> Any:
    """Expected list length against the number of calibration rows, by rule, with the oracle."""
    axes = new_axes() if ax is None else ax
    for rule in dict.fromkeys(row.rule for row in plan.table):
        rows = [row for row in plan.table if row.rule == rule and row.list_size is not None]
        colour = COLOURS.get(rule, PAPER_COLOUR)
        name = NAMES.get(rule, f"the paper's rule ({rule})")
        axes.plot([row.rows for row in rows], [row.list_size for row in rows], "o-", ms=3.5, color=colour,
                  label=name)  # fmt: skip
        spans = [row for row in rows if row.interval is not None]
        if spans:
            ends = [row.interval or (0.0, 0.0) for row in spans]
            axes.fill_between([row.rows for row in spans], [end[0] for end in ends], [end[1] for end in ends],
                              color=colour, alpha=0.15, lw=0)  # fmt: skip
    if not math.isnan(plan.oracle):
        axes.axhline(plan.oracle, color=COLOURS["oracle"], ls="--", lw=1, label=NAMES["oracle"])
    if plan.enough is not None:
        axes.axvline(plan.enough, color="#888888", lw=0.8, ls=":")
        axes.annotate("enough", (plan.enough, axes.get_ylim()[1]), xytext=(3, -10),
                      textcoords="offset points", color="#666666", fontsize=8)  # fmt: skip
    axes.set_xscale("log")
    axes.set_ylim(bottom=0)
    axes.set_xlabel("calibration rows")
    axes.set_ylabel("expected list length")
    axes.set_title(f"{plan.target.describe()}, alpha {plan.alpha:g}", loc="left", fontsize=10)
    axes.legend(frameon=False)
    return axes


def draw_campaign(campaign: Campaign, ax: Any = None) -> Any:
    """List length over time, against about the shortest list any valid threshold could have."""
    axes = new_axes() if ax is None else ax
    starts = [update.pools for update in campaign.updates]
    ends = [*starts[1:], max(campaign.pools, starts[-1] + 1)]
    for place, (update, epoch, start, end) in enumerate(
        zip(campaign.updates, campaign.epochs, starts, ends, strict=True)
    ):
        if epoch.candidates:
            seen = campaign.target.pool_size * epoch.shortlisted / epoch.candidates
            axes.plot([max(start, 0.5), end], [seen, seen], lw=2.5, color=COLOURS["exact"],
                      label=None if place else "list length")  # fmt: skip
        axes.plot([max(start, 0.5), end], [update.floor, update.floor], lw=1.2, ls="--",
                  color=COLOURS["oracle"],
                  label=None if place else "about the shortest achievable")  # fmt: skip
    if campaign.monitor is not None and campaign.monitor.raised is not None:
        axes.axvline(campaign.monitor.raised.pools, color=PAPER_COLOUR, lw=1.2, label="alarm")
    if campaign.pools > 100:
        axes.set_xscale("log")
    axes.set_ylim(bottom=0)
    axes.set_xlabel("pools screened")
    axes.set_ylabel(f"candidates on the list, of {campaign.target.pool_size:g}")
    axes.set_title(f"{campaign.target.describe()}, alpha {campaign.alpha:g}", loc="left", fontsize=10)
    axes.legend(frameon=False)
    return axes
