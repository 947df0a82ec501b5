"""A campaign as a policy, and for a person: in words and drawn."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from surelist._numerals import about
from surelist._version import __version__
from surelist.drawing import axes
from surelist.drawing.display import Display
from surelist.errors import InvalidInput
from surelist.lifecycle.campaign_state import EVERYONE, Epoch, Update, pool_of
from surelist.promises.kinds.counts import Looks
from surelist.promises.phrases import counted, number, percent
from surelist.promises.policy import Policy
from surelist.promises.promise import Level
from surelist.promises.state import Cutoff, Step

if TYPE_CHECKING:
    from surelist.lifecycle.campaign import Campaign


def policy_of(campaign: Campaign) -> Policy:
    """The threshold in force, with the looks that back it [theory: reviews].

    It promises nothing any more once the monitor has raised an alarm.
    """
    if campaign.chosen is None:
        raise InvalidInput("policy", f"{EVERYONE}")
    looks = Looks(
        rows=tuple(update.rows for update in campaign.updates),
        budgets=tuple(campaign.budgets[: len(campaign.updates)]),
        counts=tuple(update.count for update in campaign.updates),
        chosen=campaign.chosen,
        audit_rate=campaign.audit_rate,
    )
    update = campaign.updates[campaign.chosen]
    assert update.threshold is not None
    share = min(1.0, campaign.updates[-1].list_size / pool_of(campaign.target))
    step = Step(0, update.count, update.threshold, share=share)
    level = Level(campaign.alpha, "exact")
    cutoff = Cutoff(
        None, campaign.target, level, update.rows, update.count, (step,), looks, campaign.fingerprint
    )
    policy = Policy(
        cutoffs=(cutoff,), alpha=campaign.alpha, rule="exact", created=campaign.created, version=__version__,
    )  # fmt: skip
    if campaign.monitor is not None and campaign.monitor.raised is not None:
        return policy.withdraw(campaign.monitor.raised.describe(campaign.monitor_alpha))
    return policy


def describe(campaign: Campaign) -> str:
    """List length per update as bars with the floor as a mark, what comes next, what the monitor says."""
    lines = campaign_lines(campaign.updates, campaign.epochs, pool_of(campaign.target))
    lines.append(next_update(campaign))
    return "\n".join([*lines, *([campaign.monitor.describe()] if campaign.monitor is not None else [])])


def draw(campaign: Campaign, ax: axes.Axes | None, path: str | Path | None) -> axes.Axes:
    """List length over time, with the floor and the alarm."""
    starts = [update.pools for update in campaign.updates]
    ends = [*starts[1:], max(campaign.pools, starts[-1] + 1)]
    spans = [
        axes.Span(update.pools, end, epoch.list_size(pool_of(campaign.target)), update.floor)
        for update, epoch, end in zip(campaign.updates, campaign.epochs, ends, strict=True)
    ]
    raised = campaign.monitor.raised if campaign.monitor is not None else None
    title = f"{campaign.target.describe()}, alpha {campaign.alpha:g}"
    alarm = None if raised is None else raised.pools
    return axes.draw_campaign(spans, alarm, pool_of(campaign.target), title, ax, path)


def display(campaign: Campaign) -> Display:
    """Promise, expected list, rows and pools; the updates folded."""
    size, limit = pool_of(campaign.target), campaign.threshold
    listed = "everyone" if limit is None else f"score >= {limit:.6g}"
    facts = [
        ("shortlisted", listed),
        (
            "list to expect",
            f"about {about(campaign.updates[-1].list_size)} of {number(size)} candidates",
        ),
        ("evidence", _evidence(campaign)),
        ("updates", next_update(campaign)),
    ]
    if campaign.monitor is not None:
        facts.append(("monitor", campaign.monitor._display().line))
    conditions = campaign.policy.conditions if campaign.certified else ()
    state, rests = (", ALARM", "rested") if campaign.alarm else ("", "rests")
    return Display(
        f"{campaign.target.describe()}, alpha {campaign.alpha:g}; "
        f"{counted(campaign.pools, 'pool')}, {listed}{state}",
        campaign.promise,
        facts,
        folded=[
            ("List length over time", campaign_lines(campaign.updates, campaign.epochs, size)),
            (f"The promise {rests} on {len(conditions)} conditions", conditions),
        ],
    )


def _evidence(campaign: Campaign) -> str:
    pools = counted(campaign.pools, "screened pool")
    if campaign.audit_rate is None:
        return f"{campaign.rows:,} rows, those of {pools} among them"
    return f"{campaign.rows:,} rows, {percent(campaign.audit_rate)} of the candidates of {pools} among them"


def next_update(campaign: Campaign) -> str:
    """When the threshold is looked at again."""
    if campaign.alarm:
        return "No further update: the monitor has raised an alarm."
    after = campaign.next_update
    if after is None:
        return "No further update is scheduled."
    left = after - campaign.pools
    when = "before the next pool" if left == 0 else f"after {counted(left, 'more pool')}"
    return f"Next update {when} (pool {after:,} of the schedule {', '.join(map(str, campaign.schedule))})."


def standing(campaign: Campaign) -> str:
    """Is the promise still true? In a sentence, and what to do."""
    if not campaign.certified:
        return campaign.promise
    if campaign.monitor is None:
        return "Too early to say: no pool has all its reviews yet."
    return campaign.monitor.in_a_sentence()


def why_not_due(campaign: Campaign) -> str:
    """Why an update now is refused."""
    if campaign.alarm:
        return "the monitor has raised an alarm; nothing is learned from rows that may have drifted."
    after = campaign.next_update
    when = "all are done" if after is None else f"the next one is due after pool {after}"
    return (
        f"off schedule after {campaign.pools} pools; {when}. A time picked by looking at scores or labels "
        "breaks the promise."
    )


def campaign_lines(updates: Sequence[Update], epochs: Sequence[Epoch], pool_size: float) -> list[str]:
    """The looks so far as a table for a terminal: list length as a bar, the floor as a mark."""
    wide = 40 / max(update.list_size for update in updates)
    lines = [f"{'from pool':>10}  {'rows':>10}  {'score >=':>10}  {'list':>6}  {'seen':>6}  {'floor':>6}"]
    for update, epoch in zip(updates, epochs, strict=True):
        limit = "everyone" if update.threshold is None else f"{update.threshold:.5g}"
        seen, mark = epoch.list_size(pool_size), round(update.floor * wide)
        length = max(mark + 1, round(update.list_size * wide))
        bar = "".join("|" if at == mark else "#" for at in range(length))
        lines.append(
            f"{update.pools + 1:>10,}  {update.rows:>10,}  {limit:>10}  {update.list_size:>6.2f}  "
            f"{'-' if seen is None else format(seen, '.2f'):>6}  {update.floor:>6.2f}  {bar}"
        )
    lines.append(
        "list: expected length; seen: average so far; | and floor: about the shortest list achievable"
    )
    return lines
