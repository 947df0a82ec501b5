"""Campaigns: pools screened one after another under one promise, learning from their reviews.

With probability at least 1-alpha *all* thresholds t_0 <= t_1 <= ... are valid at once [theory: reviews].
A review that is late or never comes counts as not qualified. Every pool screened stays in the rows, and the
schedule counts pools, never labels. With an audit the rows are candidates drawn at one rate, listed or not;
then thresholds may fall too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, cast

import msgspec
import numpy as np
from msgspec.structs import replace

from surelist import _check as check
from surelist._arrays import Floats, Mask
from surelist._check import MissingLabels
from surelist.errors import InvalidInput
from surelist.lifecycle import campaign_state as looks, reviewed
from surelist.lifecycle.campaign_so_far import CampaignSoFar
from surelist.lifecycle.campaign_state import CampaignState, Epoch, Update
from surelist.lifecycle.monitor import Monitor
from surelist.lifecycle.reviewed import UNKNOWN, Screened, as_candidates, coins
from surelist.lifecycle.state import as_name
from surelist.promises.evidence import rows_fingerprint
from surelist.promises.kinds.counts import CountPromise, too_few
from surelist.promises.promise import Level

UNCERTIFIED = ("refuse", "everyone")


class Campaign(CampaignSoFar):
    """Screens pools under one promise and learns from reviews [theory: reviews].

    Parameters
    ----------
    scores, labels
        Calibration rows to start from, as for ``calibrate``.
    target
        An ``Expected`` target.
    alpha
        The chance that *any* threshold of the campaign is false is at most this.
    schedule
        After how many screened pools the threshold is updated, e.g. ``(9, 45, 189)``. Fixed
        beforehand. Default: each time the rows have grown fourfold, at the target's pool size.
    monitor_alpha
        How often the built-in monitor may raise a false alarm over the whole campaign.
    uncertified
        What to do if the calibration rows cannot certify the target yet: ``"refuse"`` raises
        ``NotCertifiable``; ``"everyone"`` shortlists everyone, promising nothing, until an
        update certifies a threshold.
    audit_rate
        Draw every candidate of every pool with this probability, shortlisted or not, and learn from the
        reviews of those drawn alone; ``audit`` says whom to review beside the shortlist. The threshold may
        go down again then: an early one that was too high does not stay. Without it thresholds only rise,
        from the reviews of everyone shortlisted, and lists get shorter sooner.

    Examples
    --------
    >>> import surelist as sl
    >>> scores = [i / 1_000 for i in range(1_000)]
    >>> campaign = sl.Campaign(scores, [s > 0.8 for s in scores], sl.Expected(5, 100), schedule=(10, 40))
    >>> campaign.screen([0.1, 0.5, 0.99], pool="monday").tolist()
    [False, False, True]
    >>> campaign.review("monday", [1])
    1
    """

    def __init__(
        self, scores: object, labels: object, target: CountPromise, *, alpha: float = 0.1,
        schedule: Sequence[int] | None = None, monitor_alpha: float = 0.05,
        uncertified: Literal["refuse", "everyone"] = "refuse", missing_labels: MissingLabels = "error",
        audit_rate: float | None = None,
    ) -> None:  # fmt: skip
        array, qualified, missing = check.labelled_rows(scores, labels, missing_labels)
        target = looks.as_target(target, audited=audit_rate is not None)
        state = CampaignState(
            target=msgspec.to_builtins(target),
            alpha=check.as_level(alpha),
            schedule=list(looks.as_schedule(schedule, len(array), target)),
            monitor_alpha=check.as_level(monitor_alpha, "monitor_alpha"),
            uncertified=cast(Any, check.as_choice(uncertified, UNCERTIFIED, "uncertified")),
            fingerprint=rows_fingerprint(array, qualified) or "",
            rows=len(array),
            audit_rate=None if audit_rate is None else check.as_alpha(audit_rate, "audit_rate"),
        )
        state.reviews.missing = missing
        self._resume(state)
        self._qualified.add(array[qualified])
        self._listed.add(array)
        self._look()
        if self.chosen is None and uncertified == "refuse":
            first, level = self.updates[0], Level(self.budgets[0])
            at, good = f"a campaign's first look at alpha={level.alpha:g}", int(np.count_nonzero(qualified))
            raise too_few(target, level, first.rows, good, first.count, at)

    def screen(self, scores: object, *, ids: object = None, pool: object = None) -> Mask:
        """Shortlist a new pool: True for every candidate on the list, who is to be reviewed.

        ``pool`` names it for later reviews (default: its number, from "1"), ``ids`` its
        candidates (default: their row numbers). If an update is due, it comes first. With an audit,
        ``audit`` says who else is to be reviewed.
        """
        array = check.as_scores(scores)
        texts = None if ids is None else as_candidates(ids, scores)
        name = self._new_name(pool)
        if self.due:
            self.update()
        mask = self.filter.select(array)
        drawn = None if self.audit_rate is None else coins(len(array)) < self.audit_rate
        chosen = np.flatnonzero(mask if drawn is None else mask | drawn)
        names = [str(row) if texts is None else texts[row] for row in chosen.tolist()]
        draws = None if drawn is None else reviewed.as_draws(mask[chosen], drawn[chosen])
        self._record(name, len(array), names, array[chosen], draws)
        return mask

    def audit(self, pool: object) -> list[str]:
        """Whom to review of a pool beside its shortlist: the ids of those drawn for the audit.

        They were drawn when the pool was screened, and are recorded; asking again returns the same.
        """
        if self.audit_rate is None:
            raise InvalidInput("audit_rate", "this campaign has none, so there is no audit.")
        return [] if (screened := self._screened(pool)) is None else screened.audit

    def record(
        self, *, pool_size: object, scores: object, ids: object, threshold: object, pool: object = None,
        draws: str | None = None,
    ) -> None:  # fmt: skip
        """Take in a pool that was screened elsewhere with the threshold in force.

        ``scores`` and ``ids`` are those of the shortlist, ``pool_size`` counts everyone. Another threshold
        is refused. With an audit those drawn are among them, each candidate of the pool by a coin of its
        own, thrown once; ``draws`` says of each why: ``l`` listed, ``b`` listed and drawn, ``a`` drawn.
        """
        array = check.as_scores(scores)
        texts = as_candidates(ids, scores)
        name = self._new_name(pool)
        if self.due:
            raise InvalidInput("pool", "an update is due; call update() and screen with its threshold.")
        size = check.as_count(pool_size, "pool_size")
        audit = self.audit_rate is not None
        reviewed.require_list(array, size, threshold, self.threshold, draws, audit=audit)
        self._record(name, size, texts, array, draws)

    def review(self, pool: object, labels: object, *, ids: object = None) -> int:
        """Take in reviews of a pool's shortlist, and of its audit; returns how many were new.

        ``labels`` are 1 (qualified), 0, or missing (not reviewed yet). Without ``ids`` they are
        the whole shortlist (with an audit: shortlist and audit together) in its order; with ``ids`` any
        part of it. Reviews may come late, in any order, and again; a review that contradicts an earlier
        one is an error.
        """
        screened = self._screened(pool)
        if screened is None:
            return 0
        new, scores = self.reviews.add(screened, labels, ids)
        if self.threshold is not None and self.audit_rate is None:
            scores = scores[scores >= self.threshold]
        self._qualified.add(scores)
        self._watch()
        return new

    def close(self, pool: object) -> int:
        """Stop waiting for a pool's missing reviews; returns how many were missing.

        They stay "not qualified" in the evidence, count as qualified in the monitor's alarm, and both
        ways in its interval: on the safe side each time, whatever the reason for giving up.
        """
        if (screened := self._screened(pool)) is not None:
            screened.closed = True
        self._watch()
        return 0 if screened is None else screened.unknown

    def update(self) -> Update:
        """The scheduled update; refused at any other time."""
        if not self.due:
            raise InvalidInput("update", self._why_not_due)
        self._look()
        return self.updates[-1]

    def _screened(self, pool: object) -> Screened | None:
        """The pool, or None if it was screened, is done and no longer kept."""
        name = as_name(pool, "pool")
        if self._memory.recall(name, "pool") is None and name not in self.reviews.kept:
            raise InvalidInput("pool", f"no pool {name!r} was screened in this campaign.")
        return self.reviews.kept.get(name)

    def _new_name(self, pool: object) -> str:
        name = as_name(self.pools + 1 if pool is None else pool, "pool")
        if self._memory.recall(name, "pool") is not None:
            raise InvalidInput(
                "pool", f"{name!r} was screened before, and a pool counts once; give a new pool a new name."
            )
        return name

    def _record(self, name: str, size: int, ids: list[str], scores: Floats, draws: str | None = None) -> None:
        screened = Screened(name, size, self.chosen, ids, scores.tolist(), UNKNOWN * len(ids), draws=draws)
        drawn, epoch = int(np.count_nonzero(screened.evidence)), self.epochs[-1]
        self.pools += 1
        self.rows += size if draws is None else drawn
        epoch.drawn = None if draws is None else (epoch.drawn or 0) + drawn
        self._memory.keep(name)
        self._listed.add(scores[screened.evidence])
        epoch.pools += 1
        epoch.candidates += size
        epoch.shortlisted += len(screened.on_list)
        self.reviews.open(screened)
        self._watch()

    def _watch(self) -> None:
        """Feed the monitor the pools that are complete, in the order of screening."""
        for screened in self.reviews.ready():
            if screened.look is None:
                continue  # nothing was promised for it
            if self.monitor is None:
                self.monitor = Monitor(self.policy, self._state.monitor_alpha)
            elif screened.look != self.reviews.watched:
                self.monitor.threshold_changed(self.policy)
            self.reviews.watched = screened.look
            good, size = screened.qualified, screened.size
            self.monitor.observe(qualified=good, pool_size=size, unreviewed=screened.unreviewed)
            if (alarm := self.monitor.raised) is not None and alarm.pools == self.monitor.pools:
                self.monitor.raised = replace(alarm, review_id=screened.pool)  # whose reviews have no ids

    def _look(self) -> None:
        """Update j: the c_j-th largest score known to be qualified; below the last one with an audit only."""
        look = len(self.updates)
        count = self._walk.next(self.rows, self.budgets[look])
        before = self.updates[-1].threshold if self.updates else None
        certified = self._qualified.nth_largest(count)
        threshold, audit = before, self.audit_rate is not None
        if certified is not None and certified != before and (audit or before is None or certified > before):
            threshold, self.chosen = certified, look
        if threshold is not None and not audit:
            self._qualified.drop_below(threshold)
            self._listed.drop_below(threshold)
        listed = self.rows if threshold is None else self._listed.at_least(threshold)
        size = self.pool_size * listed / self.rows
        rows_at_boundary = looks.surely_at_boundary(self.rows, self.target, self.alpha) - self.reviews.missing
        floor = looks.shortest_list(self._qualified, self._listed, rows_at_boundary, self.rows, self.target)
        self.updates.append(Update(self.pools, self.rows, count, threshold, size, floor))
        self.epochs.append(Epoch(drawn=0 if audit else None))
