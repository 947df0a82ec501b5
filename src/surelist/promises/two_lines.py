"""The promise in two lines that a person can repeat, and what they mean. For every kind of promise.

The sentence for the auditor, with all numbers, is ``wording.promise``; this one is true of the same case
and says less. How long lists will be is estimated from the calibration rows and is called "about".
"""

from __future__ import annotations

from typing import Any

from surelist._dataclasses import dataclass
from surelist._numerals import about, count, floored, number, of_every, one_in
from surelist.promises.about import about as about_what
from surelist.promises.about import of_collection
from surelist.promises.proofs import Proof
from surelist.promises.state import Certificate, Cutoff
from surelist.promises.targets import AnyTarget, AtLeast, Budget, Expected, PerPool, Precision, Recall
from surelist.promises.wording import covered, listed_per

SHOWN = 3  # groups that are named; the exact sentence has all
ANY_LIST = "A single list may hold fewer or more; it is their average that is at least so large."
TIED = "“About”: whoever scores as much as the last one on the list is on it too."
LIKE_THEM = "It is about candidates who come as those of the calibration rows came, with the same score."
POOLS_LIKE_THEM = "It is about pools that come as those of the calibration rows came, with the same score."
LONG_RUN = "In the long run: over many pools taken together. A single pool may lie below it, or above."


@dataclass(frozen=True)
class TwoLines:
    """What is promised, how sure that is, and what both mean."""

    what: str
    sure: str
    meaning: tuple[str, ...]


def two_lines(policy: Certificate) -> TwoLines:
    """The promise as a person would repeat it."""
    if policy.withdrawn is not None:
        return TwoLines("Nothing is promised any more.", f"Why: {policy.withdrawn}", ())
    return TwoLines(_sentence(_what(policy)), f"How sure: {_sure(policy)}.", _meaning(policy))


def _is(proof: Proof | None, *kinds: str) -> bool:
    return proof is not None and proof.kind in kinds


def _of_pools(proof: Proof | None) -> bool:
    return _is(proof, "next-pool") or getattr(proof, "unit", None) == "pool"


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _what(policy: Certificate) -> str:
    if not policy.grouped:
        return ", and ".join(_claim(cutoff, policy) for cutoff in policy.cutoffs)
    claims = [f"for group {each.group!r}, {_claim(each, policy)}" for each in policy.cutoffs[:SHOWN]]
    more = len(policy.cutoffs) - SHOWN
    return "; ".join(claims) + (f"; and so on for {count(more)} more" if more > 0 else "")


def _claim(cutoff: Cutoff, policy: Certificate) -> str:
    target: AnyTarget = cutoff.target
    proof: Any = cutoff.proof
    if isinstance(target, AtLeast):
        of, k, long = count(proof.collection), count(target.k), listed_per(cutoff, policy)
        these = f" of these {of} candidates"
        these = these if long is None else f", about {about(long[0])}{these},"
        return f"the list{these} holds at least {k} qualified ones"
    if isinstance(target, Budget):
        long = listed_per(cutoff, policy)
        length = target.size if long is None else long[0]
        return _of_listed(number(floored(proof.k)), length, number(target.pool_size))
    if isinstance(target, Precision):
        return _share_of_list(target, proof, listed_per(cutoff, policy))
    if isinstance(target, Recall):
        return _kept(cutoff, target, policy)
    if isinstance(target, Expected):
        return _average(cutoff, target, policy)
    return _every(cutoff, target, policy)


def _of_listed(k: str, length: float, per: str) -> str:
    return f"on average at least {k} of about {about(length)} candidates listed per {per} will be qualified"


def _share_of_list(target: Precision, proof: Proof | None, long: tuple[float, float] | None) -> str:
    if _is(proof, "false-share"):
        false = of_every(round(1 - float(target.share), 12))
        return f"on lists made in this way at most {false} candidates are not qualified, on average"
    tail = "" if long is None else f", with about {about(long[0])} listed per {number(long[1])}"
    return f"in the long run at least {of_every(target.share)} candidates listed will be qualified{tail}"


def _kept(cutoff: Cutoff, target: Recall, policy: Certificate) -> str:
    keeps = f"at least {of_every(target.share)} qualified candidates"
    proof: Any = cutoff.proof
    if _is(proof, "control-sample"):
        drawn, of = count(proof.drawn), count(proof.collection)
        return f"the list, with the {drawn} candidates that were labelled, keeps {keeps} among these {of}"
    long = listed_per(cutoff, policy)
    part = "" if long is None else f", about {about(long[0])} of {number(long[1])} candidates,"
    return f"in the long run the list{part} will keep {keeps}"


def _average(cutoff: Cutoff, target: Expected, policy: Certificate) -> str:
    if target.of == "value":
        pool, long = "a pool", listed_per(cutoff, policy)
        if target.pool_size is not None:
            pool += f" of {number(target.pool_size)} candidates"
            pool += "" if long is None else f", about {about(long[0])} of them,"
        return f"on average the list of {pool} will be worth at least {number(target.k, 10)}"
    k = number(target.k, 10)
    if target.pool_size is None:
        return f"on average the list of a pool will hold at least {_qualified(target.k)}"
    long, per = listed_per(cutoff, policy), number(target.pool_size, 10)
    if long is not None and long[0] >= target.k:
        per += "" if cutoff.group is None else " of the group"
        return _of_listed(k, long[0], per)
    who = "qualified ones" if cutoff.group is None else "qualified ones of this group"
    return f"on average the list of a pool of {per} candidates will hold at least {k} {who}"


def _every(cutoff: Cutoff, target: PerPool, policy: Certificate) -> str:
    if _is(cutoff.proof, "next-pool"):
        by = f", its best {count(-cutoff.steps[0].threshold)} candidates," if target.by == "rank" else ""
        if target.recall is not None:
            kept = f"{of_every(target.recall)} of its qualified candidates"
            return f"the list of the next pool{by} will keep at least {kept}"
        return f"the list of the next pool{by} will hold at least {_qualified(target.k)}"
    of_group = " of the group" if cutoff.group is not None and policy.group_rows == "own" else ""
    whose = " of this group" if cutoff.group is not None and not of_group else ""
    long = listed_per(cutoff, policy)
    tail = f", of about {about(long[0])} listed per {number(long[1])}" if long and long[0] >= target.k else ""
    pool = f"a pool of {number(target.sizes[0])} or more candidates{of_group}"
    return f"the list of {pool} will hold at least {_qualified(target.k)}{whose}{tail}"


def _qualified(k: float) -> str:
    return f"{number(k, 10)} qualified {'candidate' if k == 1 else 'candidates'}"


def _sure(policy: Certificate) -> str:
    alpha, proof = policy.alpha, policy.cutoffs[0].proof
    if not covered(policy):
        return "not at all, the chance numbers behind it were the same for everyone; calibrate again"
    if _is(proof, "false-share"):
        return "it is true on average over calibrations and pools, and says nothing about this one list"
    if policy.looks is not None:
        return f"{_at_most(alpha, 'campaign', 'ever makes', 'ever make')} a false promise"
    several = len(policy.cutoffs) > 1
    if any(isinstance(each.target, PerPool) for each in policy.cutoffs):
        return _sure_of_pools(policy, several)
    work = "labelling" if _is(proof, "block-sample", "control-sample") else "calibration"
    if several:
        one = "a promise that is false for some group" if policy.grouped else "one of its promises false"
        return f"{_at_most(alpha, work)} with {one}"
    return f"{_at_most(alpha, work)} in a false promise"


def _at_most(share: float, what: str, one: str = "ends", several: str = "end") -> str:
    often = one_in(share, what)
    return f"at most {often} {one if often.startswith('1 ') else several}"


def _sure_of_pools(policy: Certificate, several: bool) -> str:
    proof = policy.cutoffs[0].proof
    work = "labellings" if _is(proof, "block-sample") else "calibrations"
    if policy.rule == "exact" or several:
        what = "one of its promises" if several and not policy.grouped else "a list"
        falls = "is broken" if what != "a list" else "falls short"
        return f"over {work} and pools together, {what} {falls} at most {one_in(policy.alpha, 'time')}"
    over_rows, over_pool = policy.two_levels
    return (
        f"{_at_most(over_rows, 'calibration', 'misleads', 'mislead')}; after any other, a list "
        f"falls short in at most {one_in(over_pool, 'pool')}"
    )


def _meaning(policy: Certificate) -> tuple[str, ...]:
    target = policy.cutoffs[0].target
    kinds = [cutoff.target for cutoff in policy.cutoffs]
    lines = []
    if any(isinstance(each, Expected | Budget) for each in kinds):
        lines.append(ANY_LIST)
    shares = [each for each in policy.cutoffs if isinstance(each.target, Recall | Precision)]
    if any(about_what(each) == "population" for each in shares):
        lines.append(LONG_RUN)
    if isinstance(target, Budget) or any(listed_per(each, policy) for each in policy.cutoffs):
        lines.append(TIED if isinstance(target, AtLeast) else _estimated(policy))
    return (*lines, *_about_sure(policy), *_about(policy))


def _estimated(policy: Certificate) -> str:
    rows = "the calibration rows"
    if policy.looks is not None:
        rows = "the rows that were known at the last update"
    elif _is(policy.cutoffs[0].proof, "block-sample"):
        rows = "the candidates that labels were drawn from"
    elif _is(policy.cutoffs[0].proof, "budget"):
        rows = "the unlabelled scores"
    return f"“About” is an estimate of how long lists will be, from {rows}. What is promised is no estimate."


def _about_sure(policy: Certificate) -> list[str]:
    proof = policy.cutoffs[0].proof
    if _is(proof, "false-share") or not covered(policy):
        return []
    often, rows = one_in(policy.alpha, "time"), "rows that came by chance"
    if _is(proof, "block-sample", "control-sample"):
        rows = "labels of candidates who were drawn by chance"
    elif _of_pools(proof):
        rows = "pools that came by chance"
    return [
        f"How sure: the promise is worked out from {rows}. Whoever works in this way, again and again from "
        f"fresh ones, makes a promise that turns out false at most {often}. That is not the share of false "
        "ones among the promises made: a refusal is never false."
    ]


def _about(policy: Certificate) -> list[str]:
    """Whom it is about, and what was done to get there."""
    proof, lines = policy.cutoffs[0].proof, []
    if of_collection(policy):
        lines.append("It is about these very candidates and this list; nothing is assumed about scores.")
    elif about_what(policy.cutoffs[0]) == "this pool":
        lines.append("It is about lists of this one pool, on average over all that was left to chance.")
    elif policy.shift is not None:
        lines.append("It is about pools that differ from the calibration rows as the weights say.")
    elif _is(proof, "block-sample"):
        lines.append("It is about candidates who come as those of the collection came, with the same score.")
    else:
        lines.append(POOLS_LIKE_THEM if _of_pools(proof) else LIKE_THEM)
    if policy.choice is not None:
        several = len(policy.choice.scores)
        lines.append(f"Of {count(several)} scores {policy.choice.chosen!r} was taken, which is counted in.")
    if len(policy.cutoffs) > 1:
        lines.append("All of it holds at once: the chance of an error is shared between the parts.")
    return lines
