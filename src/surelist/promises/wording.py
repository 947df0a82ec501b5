"""The sentences: what a policy promises and what the promise rests on. No arithmetic here.

The promise is part of the policy file's format: change a sentence and the format version.
"""

from __future__ import annotations

from dataclasses import replace

from surelist._numerals import about
from surelist._scalars import alpha_meant
from surelist.promises import phrases
from surelist.promises.direction import wrong_way
from surelist.promises.groups import joint_alpha
from surelist.promises.phrases import ROWS_ALIKE, counted, number, percent, qualified
from surelist.promises.proofs import Proof
from surelist.promises.shift import at_least
from surelist.promises.state import Certificate, Cutoff, Shift
from surelist.promises.targets import AnyTarget, AtLeast, Budget, Expected, PerPool, Recall

OF_NOBODY = "Nothing is promised of a pool without candidates."
THEIR_LIST = "Their own list comes from the labelling."
SOMEWHAT_WRONG = 1.25  # a factor by which estimated ratios may well be wrong


def promise(policy: Certificate, *, before: bool = False) -> str:
    """One English sentence with the numbers; ``before``: as files of version 1 say it."""
    if policy.withdrawn is not None:
        return f"Nothing is promised any more: {policy.withdrawn}"
    claims = "; ".join(_claim(cutoff, policy, before) for cutoff in policy.cutoffs)
    together = "these statements together are" if len(policy.cutoffs) > 1 else "this statement is"
    if policy.looks is not None:
        together = (
            "this statement and those of the campaign's other thresholds, earlier and later, together are"
        )
    return f"{claims[0].upper()}{claims[1:]}; {together} {_confidence(policy, before)}."


def promise_before(policy: Certificate) -> str:
    """The sentence in older files; another one for sidak with a rule of two levels, and recall by group."""
    return promise(policy, before=True)


def _claim(cutoff: Cutoff, policy: Certificate, before: bool) -> str:
    target, by_group = cutoff.target, policy.group_rows == "own"
    if cutoff.proof is not None:
        return _proof(cutoff).claim(target)
    whose = "the shortlist" if cutoff.group is None else f"for group {cutoff.group!r} the shortlist"
    if isinstance(target, Expected):
        size = counted(target.pool_size, "candidate")
        pools = f"pools with {size} of the group" if by_group else f"pools of {size}"
        return f"{whose} holds at least {qualified(target.k)} on average over {pools}"
    if isinstance(target, PerPool):
        pool = f"a pool of {number(target.sizes[0])} or more candidates{' of the group' if by_group else ''}"
        return f"{whose} of {pool} holds at least {qualified(target.k)}"
    assert isinstance(target, Recall)
    of_whom = " of the group" if by_group and not before else ""
    return f"{whose} keeps at least {percent(target.share)} of all qualified candidates{of_whom}"


def _confidence(policy: Certificate, before: bool) -> str:
    level, alpha = policy.cutoffs[0].level, percent(policy.alpha)
    if len(policy.cutoffs) > 1 and not policy.grouped:
        drawn = _rows(policy)
        pool = any(isinstance(each.target, PerPool) for each in policy.cutoffs)
        return f"wrong with probability at most {alpha} over the draw of {drawn}{' and the pool' * pool}"
    if policy.cutoffs[0].proof is not None:
        return _proof(policy.cutoffs[0]).wrong(policy.said_level, policy.cutoffs[0].rows)
    rows = _rows(policy)
    if not isinstance(policy.cutoffs[0].target, PerPool):
        drawn = "its rows and pools" if policy.looks is not None else rows
        return f"wrong with probability at most {alpha} over the draw of {drawn}"
    if policy.rule == "exact":
        thinned = ", their thinning" if policy.shift is not None and covered(policy) else ""
        return f"wrong for at most {alpha} of draws of calibration rows{thinned} and pool together"
    if policy.group_split == "sidak" and not before:
        joint = [
            joint_alpha(each, len(policy.cutoffs)) for each in (level.calibration_alpha, level.pool_alpha)
        ]
        both = [percent(joint[0] * policy.chosen_of), percent(joint[1])]
        return (
            f"wrong with probability at most {alpha}, and with at most {both[0]} over the draw of {rows}, "
            f"{both[1]} over the pool"
        )
    if policy.grouped:
        share = level.calibration_share
        return (
            f"wrong with probability at most {alpha}, {percent(share)} of which is over the draw of "
            f"{rows} and {percent(1 - share)} over the pool"
        )
    over_rows, over_pool = policy.two_levels
    return (
        f"right for each pool with probability at least 1 - {percent(over_pool)}, except with "
        f"probability at most {percent(over_rows)} over the draw of {rows}"
    )


def _rows(policy: Certificate) -> str:
    """What was drawn: the rows, and the thinning where they were thinned."""
    if policy.shift is not None and covered(policy):
        return f"{counted(policy.shift.rows_before, 'calibration row')} and their thinning"
    if policy.group_rows != "own":  # the same rows serve every group, or every promise
        return f"the {counted(policy.cutoffs[0].rows, 'calibration row')}"
    return f"the {_listed([f'{cutoff.rows:,}' for cutoff in policy.cutoffs])} calibration rows"


def _rows_were(rows: int) -> tuple[str, str]:
    return counted(rows, "calibration row"), "was" if rows == 1 else "were"


def threshold(cutoff: Cutoff) -> str:
    """Who is shortlisted, in words."""
    name = f"group {cutoff.group!r}: " if cutoff.group is not None else ""
    first, last = cutoff.steps[0], cutoff.steps[-1]
    span = f"{first.threshold:.10g}"
    if len(cutoff.steps) > 1:
        span = f"{span} (pools of {first.pool_size}) to {last.threshold:.10g} ({last.pool_size} or more)"
    if first.tie_break is None:
        return f"{name}shortlist every score >= {span}"
    return f"{name}shortlist every score > {span}, and those at it whom the hash of their id lets in"


def evidence(cutoff: Cutoff) -> str:
    """The count that was needed, and the count there is."""
    first = cutoff.steps[0]
    of = f"of {cutoff.qualified:,} qualified calibration rows (of {cutoff.rows:,})"
    if first.reached is None:
        return f"at least {first.critical_count:,} {of} score at or above it, as many as needed"
    if first.reached == first.critical_count:
        return f"{first.critical_count:,} {of} score at or above it, as many as needed"
    if first.tie_break is not None:
        return (
            f"{first.reached:,} {of} score at or above it; ties at it were broken so that "
            f"{first.critical_count:,} count, as many as needed"
        )
    return f"{first.reached:,} {of} score at or above it, and {first.critical_count:,} were needed"


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


def listed_per(cutoff: Cutoff, policy: Certificate) -> tuple[float, float] | None:
    """How many of how many will be listed, estimated from the calibration rows; None: not known."""
    target, share = cutoff.target, cutoff.steps[0].share
    if isinstance(target, Budget):  # as long as was asked for, or shorter where scores are tied at its end
        size = float(target.pool_size)
        return float(target.size) if share is None else min(share * size, float(target.size)), size
    if share is None or policy.group_rows == "all":
        return None
    size = 100.0
    if isinstance(target, AtLeast):
        size = float(getattr(cutoff.proof, "collection", size))
    elif isinstance(target, PerPool) and target.pool_size is not None:
        size = float(target.sizes[0])
    elif isinstance(target, Expected) and target.pool_size is not None:
        size = float(target.pool_size)
    return share * size, size


def list_length(cutoff: Cutoff, policy: Certificate) -> str | None:
    """The same in words."""
    if (listed := listed_per(cutoff, policy)) is None:
        return None
    who = "candidates" if cutoff.group is None else "candidates of the group"
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
                'broken by candidate id, ties="hash".'
            )
    return tuple(lines)


def covered(policy: Certificate) -> bool:
    """False for promises of an earlier version that are known not to hold."""
    return policy.shift is None or policy.shift.seed_from != "version 1"


def _listed(words: list[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 2 else words)


def _proof(cutoff: Cutoff) -> Proof:
    assert cutoff.proof is not None
    return cutoff.proof


def conditions(policy: Certificate) -> tuple[str, ...]:
    """The conditions [theory: setting], and those of the options in use."""
    sentences: list[str] = []
    for cutoff in policy.cutoffs:
        if cutoff.proof is not None:
            whole = replace(cutoff.level, alpha=policy.alpha)
            sentences.extend(_proof(cutoff).conditions(cutoff.target, whole))
    if not all(cutoff.proof for cutoff in policy.cutoffs):
        sentences.extend(_common(policy))
    sentences.extend(_about_options(policy))
    if policy.shift is not None:  # a proof knows of one population only
        moved = {ROWS_ALIKE: _populations(policy), phrases.OTHER_SCORES: phrases.SCORES_OF_POOLS}
        sentences = [moved.get(each, each) for each in sentences]
    return tuple(dict.fromkeys(sentences))


def _common(policy: Certificate) -> list[str]:
    """The conditions of every count rule."""
    bounds = phrases.alpha_bounds(policy.alpha)
    sentences = [phrases.SCORE_FIXED, _populations(policy), phrases.NO_ROW_LEFT_OUT, bounds, _looks(policy)]
    for cutoff in policy.cutoffs[: 1 if policy.grouped else None]:
        if cutoff.proof is None:
            sentences.extend(_about_target(policy, cutoff.target))
    return sentences


def _populations(policy: Certificate) -> str:
    if policy.shift is None:
        return ROWS_ALIKE
    return (
        "Calibration rows are drawn independently from one population, and the candidates of future pools "
        "from another; the weights are the density ratio of the second to the first, and who is alike in "
        "what the weights depend on is as likely to be qualified in both."
    )


def _looks(policy: Certificate) -> str:
    if policy.looks is not None:
        fixed = (
            "The campaign's schedule, target and alpha were fixed beforehand; the sizes of its pools do "
            "not depend on scores or labels; "
        )
        if policy.looks.audit_rate is not None:
            return (
                f"{fixed}beside the calibration rows the evidence is candidates of every pool screened, each "
                f"drawn with probability {percent(policy.looks.audit_rate)}, shortlisted or not, by a draw "
                "that depends on nothing else; one whose review has not come counts as not qualified."
            )
        return (
            f"{fixed}every pool screened is in the evidence, and a review that has not come counts as not "
            "qualified."
        )
    if policy.rule in ("dkw", "simultaneous"):
        return (
            "Every k and every threshold is covered at once: the target may have been chosen "
            "after looking at these rows, alpha and the rule not."
        )
    if isinstance(policy.cutoffs[0].target, Expected):
        again = ", and the simultaneous rule or a campaign where it was chosen before looking."
        return phrases.ONE_LOOK.removesuffix(".") + again
    return phrases.ONE_LOOK


def _about_target(policy: Certificate, target: AnyTarget) -> list[str]:
    if isinstance(target, Expected):
        sentences = [phrases.POOL_SIZE_KNOWN]
        if policy.grouped and policy.group_rows == "own":
            sentences.append("The pool sizes per group were known, not estimated from the calibration rows.")
        return sentences
    if isinstance(target, PerPool):
        sentences = ["The size of a pool does not depend on how good its candidates look."]
        if policy.rule == "exact":
            sentences.append(
                f"The failure rate is an average over calibration samples: for {_often_above(policy)}. "
                'rule="pac" bounds it for this sample.'
            )
        return sentences
    return [
        "The share is that of the whole population; in a single pool the share kept may lie below it, "
        "about half the time if the promise is only just true."
    ]


def _often_above(policy: Certificate) -> str:
    """How often the long-run rate lies above alpha; of several scores any may be the one that does."""
    alpha = policy.each_alpha * policy.chosen_of if policy.grouped else policy.alpha
    shares = [
        cutoff.target.often_above(
            step.pool_size, cutoff.rows, step.critical_count, replace(cutoff.level, alpha=alpha)
        )
        for cutoff in policy.cutoffs
        for step in (cutoff.steps[0], cutoff.steps[-1])
        if isinstance(cutoff.target, PerPool)
    ]
    ends = [min(1.0, policy.chosen_of * share) for share in (min(shares), max(shares))]
    low, high = (f"{100 * share:.0f}%" for share in ends)
    exactly = policy.chosen_of == 1 and (policy.grouped or len(policy.cutoffs) == 1)
    often = f"{'about' if exactly else 'at most about'} {low if low == high else f'{low} to {high}'}"
    whose, bound = (" of a group", "its share of alpha") if policy.grouped else ("", "alpha")
    return f"{often} of samples the long-run rate{whose} lies above {bound}"


def _seed(shift: Shift) -> str:
    if shift.seed_from == "system":
        return "the seed of the thinning was drawn from the system's randomness, once, and not drawn again."
    if shift.seed_from == "caller":
        return (
            f"the seed of the thinning, {shift.seed}, was given by the caller: it has to have been drawn at "
            "random, once, after the rows were fixed. A seed that was chosen, or tried again, is not covered."
        )
    return (
        f"but this promise is NOT covered: an earlier version thinned the rows by a seed ({shift.seed}) that "
        "was the same for everyone unless another was given. Given a fixed seed the kept rows are no sample "
        "of the pool's population (up to 61% of such promises at 10% were false). Calibrate again."
    )


def _about_options(policy: Certificate) -> list[str]:
    sentences = [] if policy.nested is None else [policy.nested]
    if policy.choice is not None:
        several = len(policy.choice.scores)
        sentences.append(
            f"The score {policy.choice.chosen!r} was chosen of {several} after looking, each certified at "
            f"alpha/{several}: every score that was ever looked at on these rows is among them."
        )
    if len(policy.cutoffs) > 1 and not policy.grouped:
        sentences.append(f"Alpha is split evenly between the {len(policy.cutoffs)} promises.")
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
    if policy.grouped:
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
    asked = policy.cutoffs[0].target
    exact = policy.cutoffs[0].proof is None  # the other scores of a rank chain move with the ratios
    counts = exact and isinstance(asked, Expected) and asked.pool_size is not None
    if shift.within is None and not shift.weights_exact and counts and not policy.grouped:
        assert isinstance(asked, Expected)
        left = asked.pool_size * at_least(asked.k / asked.pool_size, SOMEWHAT_WRONG)
        sentences.append(
            f"Where the true ratios are within a factor of {number(SOMEWHAT_WRONG)} of these, up to one "
            f"common factor, the list still holds at least {left:.3g} on average; DensityRatio(within=...), "
            "fixed beforehand, keeps the whole promise."
        )
    return sentences
