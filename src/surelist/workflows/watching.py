"""Is a promise still true? The monitor, fed with the pools on record in the order of their screening."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from msgspec import Struct, structs

from surelist._arrays import Floats
from surelist._names import OptionNames
from surelist.errors import InvalidInput
from surelist.filters import LISTS as LISTS, LOOK as LOOK
from surelist.lifecycle.monitor import Monitor, Standing
from surelist.lifecycle.reviewed import coins
from surelist.promises.evidence import scores_fingerprint
from surelist.promises.policy import Policy
from surelist.tables.arrays import read_columns
from surelist.tables.output import refuse_columns, rows_at, write_sheet
from surelist.workflows.source import Source

LIST = "surelist_list"  # the column that says on which list of a triage a candidate is
MANY = 20  # different scores; two pools with the same ones are then the same, but for a chance of 10**-7
ALPHA = 0.05  # how often a sound policy is withdrawn by mistake, over its whole life


Count = int | dict[str, int]  # a number, or one for each group


def total_of(count: Count | None) -> int:
    """Over all groups."""
    return sum(count.values()) if isinstance(count, dict) else count or 0


class PoolNumbers(Struct, frozen=True, omit_defaults=True):
    """What a pool's reviews show; ``missed`` where there is an audit: how many of those drawn are qualified.

    Of a triage ``drawn``, ``missed`` and ``unaudited`` are by list, and the reviews of the others in the band
    stand in ``qualified`` and ``unreviewed``: they are kept, and count neither for nor against it.
    """

    pool_size: Count
    qualified: Count
    unreviewed: Count = 0
    missed: Count | None = None
    unaudited: Count = 0
    drawn: dict[str, int] | None = None

    def observed(self) -> dict[str, object]:
        """The same as ``Monitor.observe`` takes it."""
        if self.drawn is None:
            return structs.asdict(self)
        return {"drawn": self.drawn, "qualified": self.missed, "unreviewed": self.unaudited}


class WatchedPool(Struct, frozen=True):
    """A pool that was to count when it was screened, and what its reviews showed once they are finished."""

    name: str
    reviewed: PoolNumbers | None = None
    audit_rate: float | None = None  # that of the first pool holds for all


class WatchedPromise(Struct, frozen=True):
    """What the reviews say of a promise."""

    standing: Standing | None  # None: nothing watches this promise
    sentence: str
    details: str = ""
    evidence: tuple[float, ...] = ()  # the e-value after each pool that counts
    alarm_at: float = 1 / ALPHA
    alarm: str | None = None  # why the promise is withdrawn
    waiting: str | None = None  # the first pool whose reviews are not finished; later ones wait for it


def draw_audit(candidates: int, listed: Sequence[int], audit_rate: float) -> list[int]:
    """Row numbers of those not listed, each drawn with this probability by the system's randomness."""
    drawn = coins(candidates) < audit_rate
    drawn[list(listed)] = False
    numbers: list[int] = np.flatnonzero(drawn).tolist()
    return numbers


def pool_scores(scores: Floats) -> str | None:
    """A fingerprint of a pool's scores in any order; None where there are too few to tell it from others."""
    return scores_fingerprint(scores) if len(np.unique(scores)) >= MANY else None


def pool_scores_in(source: Source, score: str | None) -> str | None:
    """The same of a table's column."""
    return pool_scores(read_columns(source.open(), {"score": score}, any_order=True)["score"])


def needs_audit(policy: Policy) -> bool:
    """Whether this promise can be watched here only with an audit."""
    return all(cutoff.target.needs_audit for cutoff in policy.cutoffs)


def drawn_by_list(lists: Sequence[str], drawn: Sequence[int]) -> dict[str, int]:
    """Of a triage: how many on each list were drawn."""
    return {name: sum(lists[row] == name for row in drawn) for name in LISTS}


def write_audit(
    source: Source, policy: Policy, names: Mapping[str, str | None], audit_rate: float | None, output: Path,
    band: Path,
) -> tuple[list[int], dict[str, int]]:  # fmt: skip
    """Draw the audit of a pool and write those drawn, with all columns; row numbers, and counts by group.

    Of a triage counts are by list, which a column names, and the others whom people look at go to ``band``.
    Those drawn are then in random order and without their scores, which would tell the list.
    """
    table = source.open()
    columns = read_columns(table, {role: names.get(role) for role in ("score", "group", "id")})
    rate = audit_rate or 0.0
    if not policy.three_ways:
        listed = policy.filter.select(columns["score"], columns.get("group"), columns.get("id"))
        drawn = draw_audit(len(listed), np.flatnonzero(listed).tolist(), rate)
        write_sheet(output, table.columns, rows_at(table, drawn), [])
        groups = columns.get("group")
        return drawn, {} if groups is None else dict(Counter(str(groups[row]) for row in drawn))
    lists: list[str] = policy.triage(columns["score"]).tolist()
    refuse_columns(table, LIST)
    drawn = draw_audit(len(lists), (), rate)  # on whichever list
    taken = set(drawn)
    looked = [row for row, name in enumerate(lists) if name == LOOK and row not in taken]
    mixed = [drawn[at] for at in np.argsort(coins(len(drawn)))]
    for path, numbers, hidden in ((output, mixed, names["score"]), (band, looked, None)):
        rows = [(*cells, lists[row]) for row, cells in zip(numbers, rows_at(table, numbers), strict=True)]
        shown = [name != hidden for name in table.columns] + [True]
        rows = [tuple(cell if seen else None for cell, seen in zip(row, shown, strict=True)) for row in rows]
        write_sheet(path, [*table.columns, LIST], rows, [])
    return drawn, drawn_by_list(lists, drawn) if audit_rate is not None else {}


def audit_of(
    policy: Policy, drawn: int, groups: Mapping[str, int], outcomes: Mapping[str, bool],
    group_of: Mapping[str, str],
) -> tuple[Count, Count]:  # fmt: skip
    """How many of an audit are qualified, and how many have no review; ``groups`` counts those drawn."""
    if not policy.grouped and not policy.three_ways:
        return sum(outcomes.values()), drawn - len(outcomes)
    missed, seen = _by_group(policy, outcomes, group_of)
    return missed, {name: groups.get(name, 0) - count for name, count in seen.items()}


def _by_group(
    policy: Policy, outcomes: Mapping[str, bool], group_of: Mapping[str, str]
) -> tuple[dict[str, int], dict[str, int]]:
    """Reviews that say qualified, and all reviews, by group or by list of a triage."""
    seen = dict.fromkeys(LISTS if policy.three_ways else (str(each.group) for each in policy.cutoffs), 0)
    qualified = dict(seen)
    for candidate, outcome in outcomes.items():
        seen[group_of[candidate]] += 1
        qualified[group_of[candidate]] += outcome
    return qualified, seen


_ANYWHERE = OptionNames({"rule": None, "audit_rate": None})  # goes on record, whoever asked


def cannot_be_watched(policy: Policy, audit_rate: float | None = None) -> str | None:
    """Why no alarm watches this promise; None where one does."""
    if policy.common:
        return (
            "it is made to groups, and pools come without them. Count reviews by group, with Monitor in "
            "Python."
        )
    try:
        Monitor(policy, ALPHA, audit_rate=audit_rate)
    except InvalidInput as error:
        return _ANYWHERE.said(error.problem)
    return None


def cannot_count(
    policy: Policy, candidates: int, groups: Mapping[str, tuple[int, int]], audit_rate: float | None = None
) -> str | None:
    """Why a pool of this size cannot count for or against the promise; None where it can.

    Known before any review, so leaving it out says nothing about outcomes.
    """
    reason = cannot_be_watched(policy, audit_rate)
    if reason is not None:
        return reason
    nobody = {name: (size, 0) for name, (size, _) in groups.items()}
    counts = counts_of(policy, candidates, nobody, 0, {}, {})
    if audit_rate is not None:
        none = audit_of(policy, 0, {}, {}, {})[0]
        drawn = drawn_by_list([], []) if policy.three_ways else None
        counts = structs.replace(counts, missed=none, drawn=drawn)
    try:
        Monitor(policy, ALPHA, audit_rate=audit_rate).observe(**counts.observed())
    except InvalidInput as error:
        return error.said(_ANYWHERE)
    return None


def counts_of(
    policy: Policy, candidates: int, groups: Mapping[str, tuple[int, int]], shortlisted: int,
    outcomes: Mapping[str, bool], group_of: Mapping[str, str],
) -> PoolNumbers:  # fmt: skip
    """A reviewed pool in numbers.

    ``groups`` are (candidates, shortlisted) by group, ``outcomes`` the reviews that are in, by candidate.
    """
    if not policy.grouped:
        return PoolNumbers(candidates, sum(outcomes.values()), shortlisted - len(outcomes))
    qualified, seen = _by_group(policy, outcomes, group_of)
    sizes = {name: groups.get(name, (0, 0)) for name in seen}
    own = {name: each[0] for name, each in sizes.items()}
    left = {name: each[1] - seen[name] for name, each in sizes.items()}
    return PoolNumbers(candidates if policy.group_rows == "all" else own, qualified, left)


def watch(policy: Policy, pools: Sequence[WatchedPool]) -> WatchedPromise:
    """Feed the pools in order, up to the first that waits for reviews, or that raises the alarm."""
    audit_rate = pools[0].audit_rate if pools else None
    reason = cannot_be_watched(policy, audit_rate)
    if reason is not None:
        return WatchedPromise(None, f"No alarm watches this promise: {reason}")
    monitor, evidence = Monitor(policy, ALPHA, audit_rate=audit_rate), []
    waiting = None
    for pool in pools:
        if pool.audit_rate != audit_rate:
            continue  # known before any review, and no part of this test
        if pool.reviewed is None:
            waiting = pool.name
            break
        monitor.observe(**pool.reviewed.observed())
        evidence.append(monitor.e_value)
        if monitor.alarm:
            break
    alarm = monitor.raised.describe(ALPHA) if monitor.raised is not None else None
    said = (monitor.standing, monitor.in_a_sentence(), monitor.describe())
    return WatchedPromise(*said, tuple(evidence), 1 / ALPHA, alarm, waiting)
