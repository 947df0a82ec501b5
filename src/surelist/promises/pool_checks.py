"""Is this the kind of pool that the promise is about? Checks that warn and never block.

Pool size, share shortlisted, range and drift of scores, and calibration rows that came back in the
pool, each against what the policy keeps of its calibration rows. None of them proves the promise
broken or intact. Policies of earlier versions keep less, and get fewer checks.

Do candidates of one pool resemble one another? A test, and what it costs a promise made from rows: a
diagnosis too. Rows as units are right only where pools are no more alike inside than draws at random [theory:
pools].
"""

from __future__ import annotations

import math
import warnings
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import lru_cache

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from surelist import _check as check, _numerals as numerals
from surelist._arrays import Floats, Ints, Mask, special
from surelist._randomness import fresh_generator
from surelist.errors import PoolWarning
from surelist.promises.phrases import percent
from surelist.promises.promise import Promise
from surelist.promises.state import Certificate, Cutoff
from surelist.score_summary import PoolCheck, PoolCounts, ScoreSummary, count_scores

MARKS = 16  # intervals of about equally many calibration rows that a pool is counted in
SMALL = 0.8  # of the promised pool size: smaller pools are pointed out
SURPRISE = 4.0  # standard deviations between two shares
RATIO = 1.25  # between two shares, either way
GAP = 0.1  # between the shares of pool and calibration rows that reach some score
LEVEL = 1e-4  # of the gap's test: false warnings of every 10,000 pools at most

Sizes = Mapping[str | None, tuple[int, int]]  # (candidates, shortlisted) per group; None: everyone
Counts = Mapping[str | None, PoolCounts]
PoolSizes = Mapping[str | None, Sequence[int]]  # of each pool, where there are several; per group as well


class _Reference(Struct, frozen=True):
    """What pools are compared with: ``marks``, the shares of calibration rows at or above them, and how
    many scores of one candidate would be exactly a mark by chance."""

    rows: int
    marks: tuple[float, ...]
    shares: dict[float, float]
    coincidence: float


def marks_of(policy: Certificate) -> dict[str | None, tuple[float, ...]]:
    """Scores of the calibration rows to count a pool against, per group that has a summary of them."""
    return {each.group: _reference(each.scores).marks for each in _parts(policy) if each.scores is not None}


def check_arrays(
    policy: Certificate, scores: object, groups: object, listed: object, pools: object = None
) -> tuple[PoolCheck, ...]:
    """The checks of a pool in memory; ``listed`` marks its shortlist, ``groups`` is None or one name each.

    ``pools`` says which one a candidate is in, where there are several.
    """
    array, chosen = np.asarray(scores, dtype=np.float64), np.asarray(listed, dtype=np.bool_)
    sizes: dict[str | None, tuple[int, int]] = {}
    counts: dict[str | None, PoolCounts] = {}
    names = None if groups is None else check.as_groups(groups)
    codes, number = (None, 0) if pools is None else check.as_codes(pools, len(array))
    in_pools: dict[str | None, list[int]] = {}
    marks = marks_of(policy)
    for group in dict.fromkeys((None, *(cutoff.group for cutoff in _parts(policy)))):
        inside = slice(None) if names is None or group is None else names == group
        sizes[group] = (len(array[inside]), int(np.count_nonzero(chosen[inside])))
        if group in marks:
            counts[group] = count_scores(array[inside], marks[group])
        if codes is not None:
            in_pools[group] = np.bincount(codes[inside], minlength=number).tolist()
    return check_pool(policy, len(array), sizes, counts, in_pools)


def check_pool(
    policy: Certificate, candidates: int, sizes: Sizes, counts: Counts, pools: PoolSizes | None = None
) -> tuple[PoolCheck, ...]:
    """All checks that the policy's summary allows."""
    checks: list[PoolCheck] = []
    pools = pools or {}
    several = len(pools.get(None, ())) > 1
    by_group = policy.grouped and policy.group_rows == "own" and not policy.common
    for cutoff in _parts(policy):
        size = sizes.get(cutoff.group, (candidates, 0))[0] if by_group else candidates
        if by_group or (not checks and not (policy.common and policy.group_rows == "own")):
            checks += _pool_size(cutoff, size, pools.get(cutoff.group if by_group else None, ()), several)
        if cutoff.scores is None or not counts.get(cutoff.group) or not counts[cutoff.group].candidates:
            continue
        counted = counts[cutoff.group]
        if not several:
            checks += _share(cutoff, size, *sizes[cutoff.group])
        known = _reference(cutoff.scores)
        checks += [_range(cutoff, known, counted), _drift(cutoff, known, counted)]
        checks += _calibration_rows(cutoff, known, counted)
    return tuple(checks)


def drift_checks(policy: Certificate, counts: Counts) -> tuple[PoolCheck, ...]:
    """How far the scores of one pool lie from those of the calibration rows, per group that was counted."""
    return tuple(
        _drift(cutoff, _reference(cutoff.scores), counts[cutoff.group])
        for cutoff in _parts(policy)
        if cutoff.scores is not None and cutoff.group in counts and counts[cutoff.group].candidates
    )


def _parts(policy: Certificate) -> tuple[Cutoff, ...]:
    """One cutoff per group; of several promises to everyone, the first; a common one as that of all rows."""
    first, everyone = policy.cutoffs[0], policy.everyone
    if everyone is not None:
        step = replace(first.steps[0], share=everyone.share, reached=None, share_untied=None)
        return (replace(first, group=None, steps=(step,), scores=everyone.scores),)
    return policy.cutoffs if policy.grouped else policy.cutoffs[:1]


@lru_cache(maxsize=1024)
def _reference(scores: ScoreSummary) -> _Reference:
    """Worked out once: a policy meets many pools."""
    marks, shares = _marks(scores), dict(zip(*scores.shares(), strict=True))
    return _Reference(scores.total, marks, shares, _coincidence(marks, shares, scores.highest))


def _marks(scores: ScoreSummary) -> tuple[float, ...]:
    before, total = 0, scores.total
    wanted: list[float] = []
    for edge, rows in zip(scores.scores, scores.rows, strict=True):
        if before * MARKS >= len(wanted) * total:
            wanted.append(edge)
        before += rows
    return tuple(dict.fromkeys((*wanted, scores.highest)))


def _who(cutoff: Cutoff) -> str:
    return f" of group {cutoff.group}" if cutoff.group is not None else ""


def _pool_size(cutoff: Cutoff, size: int, pools: Sequence[int], several: bool) -> list[PoolCheck]:
    target = cutoff.target
    promised, who = target.pool, _who(cutoff)
    if promised is None or target.held_in(size) is None:
        return []
    asked = numerals.number(promised, 10)
    if pools:
        small = [each for each in pools if each < SMALL * promised]
        message = f"{len(small):,} of {len(pools):,} pools{who} are much smaller than the promised {asked}"
        if small:
            message += f"; the smallest has {min(small):,}: {_average(target, min(small))}"
        return [PoolCheck("pool size", bool(small), f"{message}.", cutoff.group)]
    if several:  # of which nothing is known for this group
        return []
    held = "" if size == promised else f": {_average(target, size)}"
    message = f"The pool has {size:,} candidates{who}; the promise is about pools of {asked}{held}."
    return [PoolCheck("pool size", size < SMALL * promised, message, cutoff.group)]


def _average(target: Promise, size: int) -> str:
    held = numerals.number(target.held_in(size), 3)
    return f"in one of {size:,} that is at least {held} on average"


def _share(cutoff: Cutoff, size: int, candidates: int, listed: int) -> list[PoolCheck]:
    number = bisect_right([each.pool_size for each in cutoff.steps], size)
    before = cutoff.steps[number - 1].share if number else None
    if before is None or cutoff.scores is None:
        return []
    now, rows = listed / candidates, cutoff.scores.total
    pooled = (listed + before * rows) / (candidates + rows)
    spread = math.sqrt(pooled * (1 - pooled) * (1 / candidates + 1 / rows))
    far = abs(now - before) > SURPRISE * spread
    warns = far and not before / RATIO <= now <= before * RATIO
    auc = "" if cutoff.scores.auc is None else f" (AUC {cutoff.scores.auc:.2f} on them)"
    listed_as = "shortlisted" if cutoff.proof.looked_from is None else "accepted"
    here = f"{_percent(now)} of {candidates:,} candidates{_who(cutoff)} are {listed_as}"
    message = f"{here}; of the calibration rows {_percent(before)} would be{auc}."
    return [PoolCheck("share", warns, message, cutoff.group)]


def _range(cutoff: Cutoff, known: _Reference, counted: PoolCounts) -> PoolCheck:
    scores = cutoff.scores
    assert scores is not None
    expected = 2 * counted.candidates / (known.rows + 1)
    here = f"{counted.outside:,} of {counted.candidates:,} candidates{_who(cutoff)} score outside the range"
    ends = f"{numerals.number(scores.lowest, 6)} to {numerals.number(scores.highest, 6)}"
    message = f"{here} of the calibration rows, {ends}."
    return PoolCheck("range", counted.outside > 3 + 10 * expected, message, cutoff.group)


def _drift(cutoff: Cutoff, known: _Reference, counted: PoolCounts) -> PoolCheck:
    """The largest gap between the shares that reach a mark, by the two-sample Kolmogorov bound."""
    shares = known.shares
    gap, mark, count = max(
        (abs(count / counted.candidates - shares[mark]), mark, count)
        for mark, count in zip(known.marks, counted.at_least, strict=True)
        if mark in shares
    )
    noise = math.sqrt(math.log(2 / LEVEL) / 2 * (1 / counted.candidates + 1 / known.rows))
    here = f"{_percent(count / counted.candidates)} of {counted.candidates:,} candidates{_who(cutoff)}"
    reach = f"score at least {numerals.number(mark, 6)}"
    rows = f"{_percent(shares[mark])} of {known.rows:,} calibration rows"
    message = f"{here} {reach}, and {rows}: the largest gap between them."
    return PoolCheck("drift", gap > max(noise, GAP), message, cutoff.group, round(gap, 6))


def _calibration_rows(cutoff: Cutoff, known: _Reference, counted: PoolCounts) -> list[PoolCheck]:
    """Scores with many digits that occur again are the same rows, unless scores repeat anyway.

    Rounded scores repeat; of those only the whole of the calibration rows is recognised, by its counts.
    """
    if any(step.tied for step in cutoff.steps) or len(known.marks) <= MARKS // 2:
        return _all_calibration_rows(cutoff, known, counted)
    chance = counted.candidates * known.coincidence
    warns = counted.met >= 3 and counted.equal == counted.met and chance < 0.05 * counted.met
    kept = f"{counted.met} of {len(known.marks)} scores that the policy keeps of its calibration rows"
    occur = f"{'occurs' if counted.met == 1 else 'occur'} in the pool, digit for digit."
    message = f"{kept}{_who(cutoff)} {occur}"
    if warns:
        message += " Calibration rows in a pool break the promise: take them out."
    said = [PoolCheck("calibration rows", warns, message, cutoff.group)]
    return said if warns else _all_calibration_rows(cutoff, known, counted) or said


def _all_calibration_rows(cutoff: Cutoff, known: _Reference, counted: PoolCounts) -> list[PoolCheck]:
    chance = _alike_by_chance(known, counted)
    if chance >= LEVEL:
        return []
    size = f"The pool has {counted.candidates:,} candidates{_who(cutoff)}, as many as there were calibration"
    alike = "rows, and as many of them reach each score that the policy keeps; another pool is so alike with"
    rows = f"probability {numerals.chance(chance)}. These seem to be the calibration rows themselves"
    message = f"{size} {alike} {rows}, and those in a pool break the promise."
    return [PoolCheck("calibration rows", True, message, cutoff.group)]


def _alike_by_chance(known: _Reference, counted: PoolCounts) -> float:
    """At most how likely other rows have the calibration rows' counts in every range; 1 where they differ.

    Of independent rows, whatever their law, so many in each range are never more likely than where these
    counts are the expected ones.
    """
    at_least = [
        (round(known.shares[mark] * known.rows), count)
        for mark, count in zip(known.marks, counted.at_least, strict=True)
        if mark in known.shares
    ]
    if counted.candidates != known.rows or counted.outside or any(a != b for a, b in at_least):
        return 1.0
    reached = [each for each, _ in at_least]
    cells = [more - fewer for more, fewer in zip(reached, [*reached[1:], 0], strict=True)]
    rows = known.rows
    log = math.lgamma(rows + 1) + sum(
        each * math.log(each / rows) - math.lgamma(each + 1) for each in cells if each
    )
    return math.exp(min(log, 0.0))


def _coincidence(marks: Sequence[float], shares: Mapping[float, float], highest: float) -> float:
    """How likely a candidate scores exactly a mark by chance, from how many decimals scores have."""
    decimals = max(-int(Decimal(repr(mark)).as_tuple().exponent) for mark in marks)
    known = [mark for mark in marks if mark in shares]
    mass = 0.0
    for low, high in zip(known, [*known[1:], highest], strict=True):
        if high > low:
            mass += (shares[low] - shares.get(high, 0.0)) / (high - low)
    return mass * 10.0**-decimals


def _percent(share: float) -> str:
    return percent(round(share, 4))


SURE = 0.01  # p-value below which the warning is given
TURNS = 50  # of each half of the rows: the test compares TURNS * TURNS arrangements
MOST_POOLS, MOST_ROWS = 50_000, 500_000  # looked at; of larger tables a part drawn at random


class PoolEffect(Struct, frozen=True):
    """How much the count of listed qualified rows varies between pools, relative to independent rows.

    ``inflation`` is the factor of its variance, 1 for independent rows; ``p_value`` of an exact permutation
    test that there is none; ``failure_rate``, by normal approximation, what alpha really is for rows as
    units.
    """

    pools: int
    inflation: float
    p_value: float
    failure_rate: float


def pool_effect(sizes: Ints, totals: Ints, alpha: float) -> PoolEffect:
    """Test whether listed qualified rows, ``totals`` of the ``sizes`` of each pool, cluster in pools."""
    pools, rows = len(sizes), int(sizes.sum())
    rate = float(totals.sum()) / rows
    if pools < 2 or not 0 < rate < 1:
        return PoolEffect(pools, 1.0, 1.0, alpha)
    deviation = (totals - sizes * rate) ** 2
    inflation = float(deviation.sum()) / (rows * rate * (1 - rate)) * pools / (pools - 1)
    failure = float(special.ndtr(special.ndtri(min(alpha, 0.5)) / math.sqrt(max(inflation, 1.0))))
    return PoolEffect(pools, inflation, chance_of_spread(sizes, totals), failure)


def chance_of_spread(sizes: Ints, totals: Ints, rng: np.random.Generator | None = None) -> float:
    """An exact p-value for "rows are independent", by permutation; small where totals spread between pools.

    Given its total, every place of the flags among independent rows is equally likely, whatever the sizes
    of pools and however few flags they hold. So the rows are put in a random order, the two halves of the
    flags are turned against the pools, each by every step of a circle, and the p-value is the share of these
    arrangements that spread at least as much as the one at hand. The turns form a group with the identity in
    it: such a share is at most x with probability at most x.
    """
    rng = fresh_generator() if rng is None else rng
    sizes, totals = _part(np.asarray(sizes), np.asarray(totals), rng)
    rows, pools = int(sizes.sum()), len(sizes)
    turns = min(TURNS, rows // 2)
    if turns < 2:
        return 1.0
    order = rng.permutation(rows)
    pool = np.repeat(np.arange(pools), sizes)[order]
    flags = (np.arange(rows) - np.repeat(np.cumsum(sizes) - sizes, sizes) < np.repeat(totals, sizes))[order]
    step = rows // (2 * turns)
    size, middle = step * turns, rows // 2
    first = _turned(pool[:size], flags[:size], step, turns, pools)
    second = _turned(pool[middle : middle + size], flags[middle : middle + size], step, turns, pools)
    fixed = np.r_[size:middle, middle + size : rows]  # at most a few rows, which stay where they are
    first += np.bincount(pool[fixed][flags[fixed]], minlength=pools) - sizes * (totals.sum() / rows)
    spread = (first**2).sum(axis=1)[:, None] + (second**2).sum(axis=1)[None, :] + 2 * first @ second.T
    return float(np.mean(spread >= spread[0, 0] * (1 - 1e-9)))


def _turned(pool: Ints, flags: Mask, step: int, turns: int, pools: int) -> Floats:
    """Flags in each pool after each turn of the flags against the pools, the first turn by nothing."""
    at = np.flatnonzero(flags)
    counts = [np.bincount(pool[(at + step * turn) % len(pool)], minlength=pools) for turn in range(turns)]
    return np.array(counts, dtype=np.float64)


def _part(sizes: Ints, totals: Ints, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """No more pools and rows than are looked at, drawn without regard to flags."""
    if len(sizes) > MOST_POOLS:
        drawn = rng.choice(len(sizes), MOST_POOLS, replace=False)
        sizes, totals = sizes[drawn], totals[drawn]
    if sizes.sum() > MOST_ROWS:
        kept = np.minimum(sizes, 1 + sizes * MOST_ROWS // sizes.sum())
        totals, sizes = rng.hypergeometric(totals, sizes - totals, kept), kept
    return sizes, totals


def warn_of_pools(effect: PoolEffect, alpha: float, target: Promise) -> None:
    """Say it where it matters."""
    if effect.p_value >= SURE or effect.inflation <= 1:
        return
    other = target.in_whole_pools
    instead = f"{other} takes whole pools as the units."
    instead = instead if other else "No rule for whole pools is known for it."
    warnings.warn(
        f"Candidates of one pool resemble one another (variance {effect.inflation:.1f} times that of "
        f"independent rows over {effect.pools:,} pools, p = {numerals.chance(effect.p_value)}), and this "
        "promise treats rows as independent: it would be false about "
        f"{percent(round(effect.failure_rate, 2))} of the time instead of {percent(alpha)}. {instead}",
        PoolWarning,
        stacklevel=5,
    )
