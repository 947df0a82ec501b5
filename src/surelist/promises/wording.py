"""The sentences of a policy as a whole: what it promises, and what that rests on. No arithmetic here.

What one promise says is said by its proof, in ``kinds``; here the parts are put together, with what groups,
weights, drawn labels and ties add.
"""

from __future__ import annotations

from surelist._numerals import about
from surelist._scalars import alpha_meant
from surelist.promises import phrases
from surelist.promises.groups import promise_shares
from surelist.promises.phrases import ROWS_ALIKE, counted, number, percent
from surelist.promises.promise import About
from surelist.promises.score_direction import wrong_way
from surelist.promises.state import Certificate, Cutoff, Shift

OF_NOBODY = "Nothing is promised of a pool without candidates."
THEIR_LIST = "Their own list comes from the labelling."
SOMEWHAT_WRONG = 1.25  # a factor by which estimated ratios may well be wrong
OTHER_POPULATION = (
    "Calibration rows are drawn independently from one population, and the candidates of future pools "
    "from another; the weights are the density ratio of the second to the first, and who is alike in "
    "what the weights depend on is as likely to be qualified in both."
)


def promise(policy: Certificate) -> str:
    """One English sentence with the numbers."""
    if policy.withdrawn is not None:
        return f"Nothing is promised any more: {policy.withdrawn}"
    claims = "; ".join(cutoff.proof.claim(cutoff, policy) for cutoff in policy.cutoffs)
    together = "these statements together are" if len(policy.cutoffs) > 1 else "this statement is"
    first = policy.cutoffs[0]
    return f"{claims[0].upper()}{claims[1:]}; {first.proof.together or together} {_wrong(policy)}."


def _wrong(policy: Certificate) -> str:
    if not policy.several:
        return policy.cutoffs[0].proof.wrong(policy.cutoffs[0], policy)
    pool = " and the pool" if any(each.about is About.POOL for each in policy.cutoffs) else ""
    return (
        f"wrong with probability at most {percent(policy.alpha)} over the draw of {policy.drawn_rows}{pool}"
    )


def threshold(cutoff: Cutoff) -> str:
    """Who is shortlisted, in words."""
    name = f"group {cutoff.group!r}: " if cutoff.group is not None else ""
    first, last = cutoff.steps[0], cutoff.steps[-1]
    span = f"{first.threshold:.10g}"
    if len(cutoff.steps) > 1:
        span = f"{span} (pools of {first.pool_size}) to {last.threshold:.10g} ({last.pool_size} or more)"
    if (low := cutoff.proof.looked_from) is not None:
        return f"accept every score >= {span}, reject every score < {low:.10g}, look at those between"
    if first.tie_break is None:
        return f"{name}shortlist every score >= {span}"
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
        expected = list_length(cutoff, policy)
        lines = [f"list to expect: {expected}"] * (expected is not None) + lines
        lines.append(f"of the calibration rows {percent(round(share, 4))} would be shortlisted")
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
    """What does not break the promise and should be looked at all the same."""
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
            lines.append(
                f"ties at the threshold{whose} let in {first.reached:,} qualified rows where "
                f"{first.critical_count:,} were needed: lists are about {longer} longer than with ties "
                "broken by candidate id."
            )
    return tuple(lines)


def _rows_were(rows: int) -> tuple[str, str]:
    return counted(rows, "calibration row"), "was" if rows == 1 else "were"


def conditions(policy: Certificate) -> tuple[str, ...]:
    """The conditions [theory: setting], and those of the options in use."""
    sentences = [each for cutoff in policy.cutoffs for each in cutoff.proof.conditions(cutoff, policy)]
    sentences.extend(_about_options(policy))
    if policy.shift is not None:  # a proof knows of one population only
        moved = {ROWS_ALIKE: OTHER_POPULATION, phrases.OTHER_SCORES: phrases.SCORES_OF_POOLS}
        sentences = [moved.get(each, each) for each in sentences]
    return tuple(dict.fromkeys(sentences))


def _seed(shift: Shift) -> str:
    if shift.seed_from == "system":
        return "the seed of the thinning was drawn from the system's randomness, once, and not drawn again."
    return (
        f"the seed of the thinning, {shift.seed}, was given by the caller: it has to have been drawn at "
        "random, once, after the rows were fixed. A seed that was chosen, or tried again, is not covered."
    )


def _about_options(policy: Certificate) -> list[str]:
    sentences = [] if policy.nested is None else [policy.nested]
    if policy.choice is not None:
        several = len(policy.choice.scores)
        sentences.append(
            f"The score {policy.choice.chosen!r} was chosen of {several} after looking, each certified at "
            f"alpha/{several}: every score that was ever looked at on these rows is among them."
        )
    if policy.several:
        sentences.append(_about_promises(policy))
    if policy.thinning is not None:
        sentences.append(policy.thinning.conditions())
    if policy.missing_labels:
        rows, were = _rows_were(policy.missing_labels)
        sentences.append(f"{rows} without a label {were} counted as not qualified.")
    if policy.dropped_rows:
        rows, were = _rows_were(policy.dropped_rows)
        sentences.append(
            f"{rows} without a usable score {were} dropped: the promise is about candidates who have a score."
        )
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


def _about_common(policy: Certificate) -> str:
    """How the promises to several groups share one cutoff [theory: common-cutoff]."""
    purpose = "" if policy.purpose is None else f" Recorded purpose: {policy.purpose}."
    if policy.each_alpha * policy.chosen_of < policy.alpha:
        how = f"alpha is split between the {len(policy.cutoffs)} promises"
    elif policy.cutoffs[0].target.whole_pools:
        how = "a pool counts as one that reaches the cutoff where it keeps the promises to all of them"
    else:
        how = (
            "each is certified at alpha, because which of them fails first is fixed by the population, so "
            "they share no alpha"
        )
    return (
        "One cutoff for everybody: the same score decides whatever a candidate's group. The promises to all "
        f"groups hold together; {how}. Groups and targets were fixed before looking at these rows.{purpose}"
    )


def _about_promises(policy: Certificate) -> str:
    """How several promises of one list share alpha."""
    shares = promise_shares([each.target for each in policy.cutoffs], joint=policy.joint is not None)
    if policy.joint is not None:
        rest = "" if shares == 1 else f", at one of {shares} equal parts of alpha"
        return (
            f"The promises of a share or a mean and the one about a single pool hold together{rest}: they "
            "were certified by their joint level, for rows and pools whose candidates are independent draws. "
            "All were fixed before looking at these rows, and nothing of a pool to come was used."
        )
    if shares == 1:
        return (
            "All of these promises hold together, each certified at alpha: which of them fails first is "
            "fixed by the population, so they share no alpha. All were fixed before looking at these rows."
        )
    fixed = [each for each in policy.cutoffs if each.target.fixed_boundary]
    if len(fixed) < 2:
        return f"Alpha is split evenly between the {len(policy.cutoffs)} promises."
    return (
        f"All of these promises hold together; alpha is split into {shares} equal parts, one of them for the "
        f"{len(fixed)} promises that share none between them."
    )


def _about_ratios(policy: Certificate, shift: Shift) -> list[str]:
    """What the density ratios have to be, and what is left of the promise where they are not."""
    kind = "the weights" if shift.weights_exact else "the estimated weights"
    right = "the density ratios of pool to calibration rows are right"
    if shift.within is not None:
        right = (
            f"the promise holds while the true density ratios of pool to calibration rows are within a "
            f"factor of {number(shift.within)} of these, up to one common factor"
        )
    sentences = [
        f"Conditional on {kind}: {right}, their bound {shift.weight_bound:g} was fixed beforehand, and "
        f"{_seed(shift)}"
    ]
    target = policy.cutoffs[0].target
    k = None if target.pool is None else target.held_in(round(target.pool))
    exact = policy.cutoffs[0].proof.counted  # the other scores of a rank chain move with the ratios
    if shift.within is None and not shift.weights_exact and exact and k is not None and not policy.grouped:
        assert target.pool is not None
        left = target.pool * phrases.at_least(k / target.pool, SOMEWHAT_WRONG)
        sentences.append(
            f"Where the true ratios are within a factor of {number(SOMEWHAT_WRONG)} of these, up to one "
            f"common factor, the list still holds at least {left:.3g} on average; DensityRatio(within=...), "
            "fixed beforehand, keeps the whole promise."
        )
    return sentences
