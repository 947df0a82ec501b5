"""The threshold in force of a campaign as a policy, with the looks that back it [theory: reviews]."""

from __future__ import annotations

from typing import TYPE_CHECKING

from surelist._version import __version__
from surelist.errors import InvalidInput
from surelist.lifecycle.schedule import EVERYONE, pool_of
from surelist.promises.kinds.counts import Looks
from surelist.promises.policy import Policy
from surelist.promises.promise import Level
from surelist.promises.state import Cutoff, Step

if TYPE_CHECKING:
    from surelist.lifecycle.campaign import Campaign


def policy_of(campaign: Campaign) -> Policy:
    """It promises nothing any more once the monitor has raised an alarm."""
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
