"""The sentences of a policy as a whole: what it promises, in one sentence and in two lines that a person can
repeat, what that rests on, and what to look at. No arithmetic here.

What one promise says is said by its kind and its proof; here the parts are put together, with what groups,
weights, drawn labels and ties add. The two lines are true of the same case as the sentence and say less: how
long lists will be is estimated from the calibration rows and is called "about".
"""

from __future__ import annotations

import math
from warnings import warn

from msgspec import Struct

from surelist._numerals import about, count, one_in
from surelist._scalars import alpha_meant
from surelist.errors import ScoreWarning
from surelist.promises import phrases
from surelist.promises.conditions import promise_shares
from surelist.promises.phrases import ROWS_ALIKE, at_most, counted, number, percent
from surelist.promises.promise import About
from surelist.promises.state import Certificate, Cutoff, Shift

OF_NOBODY = "Nothing is promised of a pool without candidates."
SCORED = " It is about candidates who have a score."
THEIR_LIST = "Their own list comes from the labelling."
SOMEWHAT_WRONG = 1.25  # a factor by which estimated ratios may well be wrong
OTHER_POPULATION = (
    "Calibration rows are drawn independently from one population, and the candidates of future pools "
    "from another; the weights are the density ratio of the second to the first, and who is alike in "
    "what the weights depend on is as likely to be qualified in both."
)


def promise(policy: Certificate) -> str:
    """What is promised, in one sentence, with the numbers."""
    if policy.withdrawn is not None:
        return f"Nothing is promised any more: {policy.withdrawn}"
    claims = "; ".join(cutoff.proof.claim(cutoff, policy) for cutoff in policy.cutoffs)
    together = "these statements together are" if len(policy.cutoffs) > 1 else "this statement is"
    first = policy.cutoffs[0]
    scored = SCORED if policy.dropped_rows else ""
    return f"{claims[0].upper()}{claims[1:]}; {first.proof.together or together} {_wrong(policy)}.{scored}"


def _wrong(policy: Certificate) -> str:
    if not policy.several:
        return policy.cutoffs[0].proof.wrong(policy.cutoffs[0], policy)
    pool = " and the pool" if any(each.about is About.POOL for each in policy.cutoffs) else ""
    over = f"{policy.drawn_rows}{pool}"
    return f"wrong with probability at most {percent(policy.alpha)} over the draw of {over}"


def compared(score: float, digits: int, *, below: bool = False) -> str:
    """At or above a score, or below it; where it is the next number after a short one, by that one."""
    before = math.nextafter(score, -math.inf)
    known = before == 0 or len(repr(before)) + 4 < len(repr(score))
    sign = ("<=" if known else "<") if below else (">" if known else ">=")
    return f"{sign} {before if known else score:.{digits}g}"


def threshold(cutoff: Cutoff) -> str:
    """Who is shortlisted, in words."""
    name = f"group {cutoff.group!r}: " if cutoff.group is not None else ""
    first, last = cutoff.steps[0], cutoff.steps[-1]
    span = f"{first.threshold:.10g}"
    if len(cutoff.steps) > 1:
        span = f"{span} (pools of {first.pool_size}) to {last.threshold:.10g} ({last.pool_size} or more)"
    if (low := cutoff.proof.looked_from) is not None:
        rejected = compared(low, 10, below=True)
        return f"accept every score >= {span}, reject every score {rejected}, look at those between"
    if first.tie_break is None:
        listed = compared(first.threshold, 10) if len(cutoff.steps) == 1 else f">= {span}"
        return f"{name}shortlist every score {listed}"
    return f"{name}shortlist every score > {span}, and those at it whom the hash of their id lets in"


def about_scores(cutoff: Cutoff, policy: Certificate) -> list[str]:
    """The list to expect, and the score column with its range and AUC on the calibration rows."""
    scores, share = cutoff.scores, cutoff.steps[0].share
    if scores is None:
        return []
    column = (policy.columns or {}).get("score")
    name = f"score column {column!r}" if column is not None else "scores"
    auc = "AUC not known" if scores.auc is None else f"AUC {scores.auc:.2f}"
    lines = [f"{name}: {scores.lowest:.6g} to {scores.highest:.6g} on the calibration rows, {auc}"]
    if share is not None:
        expected, looked = list_length(cutoff, policy), policy.looked_per(cutoff)
        what, listed = ("list", "shortlisted") if looked is None else ("lists", "accepted")
        people = "" if looked is None else f" accepted, about {about(looked)} left to people"
        lines = [f"{what} to expect: {expected}{people}"] * (expected is not None) + lines
        lines.append(f"of the calibration rows {percent(round(share, 4))} would be {listed}")
    if policy.shift is not None:
        of = "" if policy.grouped else f" of {policy.shift.rows_before:,}"
        lines.append(f"weights: counted are the {cutoff.rows:,} calibration rows that they kept{of}")
    return lines


def list_length(cutoff: Cutoff, policy: Certificate) -> str | None:
    """How many of how many will be listed, in words."""
    if (listed := policy.listed_per(cutoff)) is None:
        return None
    who = "candidates" if policy.group_of(cutoff) is None else "candidates of the group"
    return f"about {about(listed[0])} of {number(listed[1])} {who}"


def warnings(policy: Certificate) -> tuple[str, ...]:
    """What a person should look at: a score that ranks the wrong way, labels that are all alike, ties."""
    doubt = alpha_meant(policy.alpha)
    lines = [] if doubt is None else [doubt]
    for cutoff in policy.cutoffs:
        whose = f" of group {cutoff.group!r}" if cutoff.group is not None else ""
        scores, first = cutoff.scores, cutoff.steps[0]
        if (backwards := wrong_way(cutoff)) is not None:
            lines.append(backwards)
        if scores is not None and cutoff.qualified == scores.total:
            lines.append(f"every calibration row{whose} is qualified: is it the right label column?")
        if first.tied and first.share and first.share_untied:
            longer = percent(round(first.share / first.share_untied - 1, 3))
            let_in = f"ties at the threshold{whose} let in {first.reached:,} qualified rows where"
            needed = f"{first.critical_count:,} were needed"
            than = "than with ties broken by candidate id"
            lines.append(f"{let_in} {needed}: lists are about {longer} longer {than}.")
    return tuple(lines)


def _were(rows: int, without: str, done: str) -> list[str]:
    said = f"{counted(rows, 'calibration row')} without {without} {'was' if rows == 1 else 'were'} {done}."
    return [said] * (rows > 0)


def conditions(policy: Certificate) -> tuple[str, ...]:
    """What the promise rests on, in plain words [theory: setting]."""
    sentences = [each for cutoff in policy.cutoffs for each in cutoff.proof.conditions(cutoff, policy)]
    sentences.extend(_about_options(policy))
    moved = {phrases.WHOLE_POOLS: phrases.SCORED_POOLS} if policy.dropped_rows else {}
    if policy.shift is not None:  # a proof knows of one population only
        moved |= {ROWS_ALIKE: OTHER_POPULATION, phrases.OTHER_SCORES: phrases.SCORES_OF_POOLS}
    return tuple(dict.fromkeys(moved.get(each, each) for each in sentences))


def _seed(shift: Shift) -> str:
    if shift.seed_from == "system":
        return "the seed of the thinning was drawn from the system's randomness, once, and not drawn again."
    drawn = "it has to have been drawn at random, once, after the rows were fixed"
    given = f"the seed of the thinning, {shift.seed}, was given by the caller: {drawn}."
    return f"{given} A seed that was chosen, or tried again, is not covered."


def _about_options(policy: Certificate) -> list[str]:
    sentences = [] if policy.nested is None else [policy.nested]
    if policy.choice is not None:
        several = len(policy.choice.scores)
        chosen = f"The score {policy.choice.chosen!r} was chosen of {several} after looking"
        every = "every score that was ever looked at on these rows is among them"
        sentences.append(f"{chosen}, each certified at alpha/{several}: {every}.")
    if policy.several:
        sentences.append(_about_promises(policy))
    if policy.thinning is not None:
        sentences.append(policy.thinning.conditions())
    sentences += _were(policy.missing_labels, "a label", "counted as not qualified")
    scored = "dropped: the promise is about candidates who have a score"
    sentences += _were(policy.dropped_rows, "a usable score", scored)
    if policy.group_split == "sidak":
        sentences.append("Groups are disjoint and each uses its own calibration rows only.")
    if policy.common:
        sentences.append(_about_common(policy))
    elif policy.grouped:
        sentences.append(
            "Cutoffs differ by group. Some uses of that are unlawful (in the United States, Title VII "
            "section 703(l) forbids different cutoff scores by race, colour, religion, sex or national "
            "origin in employment tests). This is not legal advice. Recorded purpose: "
            f"{policy.purpose or 'none'}."
        )
    if policy.shift is not None:
        sentences += _about_ratios(policy, policy.shift)
    if policy.salt_hash is not None:
        sentences.append(
            "Ties are broken by a secret salt drawn once after the candidate ids were fixed; "
            "ids are unique over calibration rows and pools. An id in both is noticed only where a candidate "
            "scores exactly at a threshold and was a qualified calibration row there."
        )
    return sentences


FIRST_FAILS = "which of them fails first is fixed by the population, so they share no alpha"
ALL_FIXED = "All were fixed before looking at these rows"


def _about_common(policy: Certificate) -> str:
    """How the promises to several groups share one cutoff [theory: common-cutoff]."""
    purpose = "" if policy.purpose is None else f" Recorded purpose: {policy.purpose}."
    if policy.each_alpha * policy.chosen_of < policy.alpha:
        how = f"alpha is split between the {len(policy.cutoffs)} promises"
    elif policy.cutoffs[0].target.whole_pools:
        how = "a pool counts as one that reaches the cutoff where it keeps the promises to all of them"
    else:
        how = f"each is certified at alpha, because {FIRST_FAILS}"
    one = "One cutoff for everybody: the same score decides whatever a candidate's group."
    fixed = f"Groups and targets were fixed before looking at these rows.{purpose}"
    return f"{one} The promises to all groups hold together; {how}. {fixed}"


def _about_promises(policy: Certificate) -> str:
    """How several promises of one list share alpha."""
    shares = promise_shares([each.target for each in policy.cutoffs], joint=policy.joint is not None)
    if policy.joint is not None:
        rest = "" if shares == 1 else f", at one of {shares} equal parts of alpha"
        both = f"The promises of a share or a mean and the one about a single pool hold together{rest}"
        how = "they were certified by their joint level, for rows and pools whose candidates are independent"
        return f"{both}: {how} draws. {ALL_FIXED}, and nothing of a pool to come was used."
    if shares == 1:
        each = "All of these promises hold together, each certified at alpha"
        return f"{each}: {FIRST_FAILS}. {ALL_FIXED}."
    fixed = [each for each in policy.cutoffs if each.target.fixed_boundary]
    if len(fixed) < 2:
        return f"Alpha is split evenly between the {len(policy.cutoffs)} promises."
    split = f"alpha is split into {shares} equal parts, one of them for the {len(fixed)} promises"
    return f"All of these promises hold together; {split} that share none between them."


def _about_ratios(policy: Certificate, shift: Shift) -> list[str]:
    """What the density ratios have to be, and what is left of the promise where they are not."""
    kind = "the weights" if shift.weights_exact else "the estimated weights"
    right = "the density ratios of pool to calibration rows are right"
    if shift.within is not None:
        factor = f"within a factor of {number(shift.within)} of these, up to one common factor"
        right = f"the promise holds while the true density ratios of pool to calibration rows are {factor}"
    bound = f"their bound {shift.weight_bound:g} was fixed beforehand"
    sentences = [f"Conditional on {kind}: {right}, {bound}, and {_seed(shift)}"]
    target = policy.cutoffs[0].target
    k = None if target.pool is None else target.held_in(round(target.pool))
    exact = policy.cutoffs[0].proof.counted  # the other scores of a rank chain move with the ratios
    if shift.within is None and not shift.weights_exact and exact and k is not None and not policy.grouped:
        assert target.pool is not None
        left = target.pool * phrases.at_least(k / target.pool, SOMEWHAT_WRONG)
        where = f"Where the true ratios are within a factor of {number(SOMEWHAT_WRONG)} of these, up to one"
        holds = f"common factor, the list still holds at least {left:.3g} on average"
        keeps = "DensityRatio(within=...), fixed beforehand, keeps the whole promise"
        sentences.append(f"{where} {holds}; {keeps}.")
    return sentences


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
    """The promise in two lines that a person can repeat, and what they mean."""
    if policy.withdrawn is not None:
        return TwoLines("Nothing is promised any more.", f"Why: {policy.withdrawn}", ())
    what = _what(policy)
    scored = SCORED if policy.dropped_rows else ""
    return TwoLines(f"{what[0].upper()}{what[1:]}.{scored}", f"How sure: {_sure(policy)}.", _meaning(policy))


def _what(policy: Certificate) -> str:
    cutoffs = sorted(policy.cutoffs, key=lambda each: policy.group_of(each) is not None)  # everyone first
    claims = [cutoff.proof.plainly(cutoff, policy) for cutoff in cutoffs]
    if not policy.grouped:
        return ", and ".join(claims)
    shown = [
        said if policy.group_of(each) is None else f"for group {each.group!r}, {said}"
        for each, said in zip(cutoffs[:SHOWN], claims, strict=False)
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
    misleads = at_most(over_rows, "calibration", "misleads", "mislead")
    return f"{misleads}; after any other, a list falls short in at most {one_in(over_pool, 'pool')}"


def _meaning(policy: Certificate) -> tuple[str, ...]:
    first = policy.cutoffs[0]
    lines = [*dict.fromkeys(each.target.single_list for each in policy.cutoffs if each.about in OF_MANY)]
    if any(policy.listed_per(each) for each in policy.cutoffs):
        of_these = TIED if first.target.sample == "block" else ""  # by name nothing is said to be "about"
        estimated = ESTIMATED.format(first.proof.estimated_from)
        lines.append(of_these if first.about is About.COLLECTION else estimated)
    return (*filter(None, lines), *_about_sure(policy), *_about(policy))


def _about_sure(policy: Certificate) -> list[str]:
    first = policy.cutoffs[0]
    if first.about is About.THIS_POOL:
        return []
    drawn = "pools that came by chance" if first.target.whole_pools else first.proof.drawn_by
    return [
        f"How sure: the promise is worked out from {drawn}. Whoever works in this way, again and again from "
        f"fresh ones, makes a promise that turns out false at most {one_in(policy.alpha, 'time')}. That is "
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


SURPRISE = 4.0  # standard deviations of the rank-sum test


def wrong_way(cutoff: Cutoff) -> str | None:
    """The sentence for a group whose qualified rows score lower than the others."""
    auc = cutoff.scores.auc if cutoff.scores is not None else None
    if auc is None or auc >= 0.5:
        return None
    whose = f" of group {cutoff.group!r}" if cutoff.group is not None else ""
    lower = f"qualified rows{whose} score lower than the others (AUC {auc:.2f}, 0.5 is chance)"
    return f"{lower}: is it the right score column, and is a higher score better?"


def warn_of_doubts(policy: Certificate, stacklevel: int) -> None:
    """One ``ScoreWarning`` for the caller who is ``stacklevel`` calls away; and where alpha was mistaken."""
    if (doubt := alpha_meant(policy.alpha)) is not None:
        warn(doubt, UserWarning, stacklevel + 1)
    for cutoff in policy.cutoffs:
        message = wrong_way(cutoff)
        if message is not None and _surely(cutoff):
            warn(f"scores: {message}", ScoreWarning, stacklevel + 1)
            return


def _surely(cutoff: Cutoff) -> bool:
    scores = cutoff.scores
    if scores is None or scores.auc is None or not 0 < cutoff.qualified < scores.total:
        return False
    pairs = cutoff.qualified * (scores.total - cutoff.qualified)
    return 0.5 - scores.auc > SURPRISE * math.sqrt((scores.total + 1) / (12 * pairs))
