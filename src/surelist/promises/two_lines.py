"""The promise in two lines that a person can repeat, and what they mean. For every kind of promise.

The sentence for the auditor, with all numbers, is ``wording.promise``; this one is true of the same case
and says less. How long lists will be is estimated from the calibration rows and is called "about".
"""

from __future__ import annotations

from msgspec import Struct

from surelist._numerals import count, one_in
from surelist.promises.phrases import at_most
from surelist.promises.promise import About
from surelist.promises.state import Certificate

OF_MANY = (About.POPULATION, About.AVERAGE)
SHOWN = 3  # groups that are named; the exact sentence has all
TIED = "“About”: whoever scores as much as the last one on the list is on it too."
LIKE_THEM = "It is about candidates who come as those of the calibration rows came, with the same score."
POOLS_LIKE_THEM = "It is about pools that come as those of the calibration rows came, with the same score."
ESTIMATED = "“About” is an estimate of how long lists will be, from {}. What is promised is no estimate."


class TwoLines(Struct, frozen=True):
    """What is promised, how sure that is, and what both mean."""

    what: str
    sure: str
    meaning: tuple[str, ...]


def two_lines(policy: Certificate) -> TwoLines:
    """The promise as a person would repeat it."""
    if policy.withdrawn is not None:
        return TwoLines("Nothing is promised any more.", f"Why: {policy.withdrawn}", ())
    what = _what(policy)
    return TwoLines(f"{what[0].upper()}{what[1:]}.", f"How sure: {_sure(policy)}.", _meaning(policy))


def _what(policy: Certificate) -> str:
    claims = [cutoff.proof.plainly(cutoff, policy) for cutoff in policy.cutoffs]
    if not policy.grouped:
        return ", and ".join(claims)
    shown = [
        said if policy.group_of(each) is None else f"for group {each.group!r}, {said}"
        for each, said in zip(policy.cutoffs[:SHOWN], claims, strict=False)
    ]
    more = len(claims) - SHOWN
    return "; ".join(shown) + (f"; and so on for {count(more)} more" if more > 0 else "")


def _sure(policy: Certificate) -> str:
    proof, several = policy.cutoffs[0].proof, len(policy.cutoffs) > 1
    if (said := proof.sure(policy)) is not None:
        return said
    if any(each.about is About.POOL for each in policy.cutoffs):
        return _sure_of_pools(policy, several)
    if several:
        one = "a promise that is false for some group" if policy.grouped else "one of its promises false"
        return f"{at_most(policy.alpha, proof.work)} with {one}"
    return f"{at_most(policy.alpha, proof.work)} in a false promise"


def _sure_of_pools(policy: Certificate, several: bool) -> str:
    if policy.rule == "exact" or several:
        what = "one of its promises" if several and not policy.grouped else "a list"
        falls = "is broken" if what != "a list" else "falls short"
        work = f"{policy.cutoffs[0].proof.work}s"
        return f"over {work} and pools together, {what} {falls} at most {one_in(policy.alpha, 'time')}"
    over_rows, over_pool = policy.two_levels
    return (
        f"{at_most(over_rows, 'calibration', 'misleads', 'mislead')}; after any other, a list "
        f"falls short in at most {one_in(over_pool, 'pool')}"
    )


def _meaning(policy: Certificate) -> tuple[str, ...]:
    first = policy.cutoffs[0]
    lines = [*dict.fromkeys(each.target.single_list for each in policy.cutoffs if each.about in OF_MANY)]
    if any(policy.listed_per(each) for each in policy.cutoffs):
        lines.append(
            TIED if first.about is About.COLLECTION else ESTIMATED.format(first.proof.estimated_from)
        )
    return (*filter(None, lines), *_about_sure(policy), *_about(policy))


def _about_sure(policy: Certificate) -> list[str]:
    proof = policy.cutoffs[0].proof
    if policy.cutoffs[0].about is About.THIS_POOL:
        return []
    return [
        f"How sure: the promise is worked out from {proof.drawn_by}. Whoever works in this way, again and "
        "again "
        f"from fresh ones, makes a promise that turns out false at most {one_in(policy.alpha, 'time')}. "
        "That is "
        "not the share of false ones among the promises made: a refusal is never false."
    ]


def _about(policy: Certificate) -> list[str]:
    """Whom it is about, and what was done to get there."""
    moved = "It is about pools that differ from the calibration rows as the weights say."
    first = policy.cutoffs[0]
    like_them = POOLS_LIKE_THEM if first.target.whole_pools else LIKE_THEM
    lines = [first.proof.whom(policy) or (like_them if policy.shift is None else moved)]
    if policy.choice is not None:
        several = len(policy.choice.scores)
        lines.append(f"Of {count(several)} scores {policy.choice.chosen!r} was taken, which is counted in.")
    if len(policy.cutoffs) > 1:
        shared = policy.each_alpha * policy.chosen_of < policy.alpha
        split = ": the chance of an error is shared between the parts" if shared else ""
        lines.append(f"All of it holds at once{split}.")
    return lines
