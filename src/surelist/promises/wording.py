"""The sentences: what a policy promises and what the promise rests on. No arithmetic here.

The promise is part of the policy file's format: change a sentence and the format version.
"""

from __future__ import annotations

from dataclasses import replace

from surelist.promises.phrases import (
    NO_ROW_LEFT_OUT,
    POOL_SIZE_KNOWN,
    ROWS_ALIKE,
    SCORE_FIXED,
    alpha_bounds,
    number,
    percent,
    qualified,
)
from surelist.promises.proofs import Proof
from surelist.promises.state import Certificate, Cutoff
from surelist.promises.targets import AnyTarget, Expected, PerPool, Recall


def promise(policy: Certificate) -> str:
    """One English sentence with the numbers."""
    if policy.withdrawn is not None:
        return f"Nothing is promised any more: {policy.withdrawn}"
    claims = "; ".join(_claim(cutoff, policy) for cutoff in policy.cutoffs)
    together = "these statements together are" if len(policy.cutoffs) > 1 else "this statement is"
    if policy.looks is not None:
        together = (
            "this statement and those of the campaign's other thresholds, earlier and later, together are"
        )
    return f"{claims[0].upper()}{claims[1:]}; {together} {_confidence(policy)}."


def _claim(cutoff: Cutoff, policy: Certificate) -> str:
    target, own = cutoff.target, policy.group_rows == "own"
    if cutoff.proof is not None:
        return _proof(cutoff).claim(target)
    whose = "the shortlist" if cutoff.group is None else f"for group {cutoff.group!r} the shortlist"
    if isinstance(target, Expected):
        size = number(target.pool_size)
        pools = f"pools with {size} candidates of the group" if own else f"pools of {size} candidates"
        return f"{whose} holds at least {qualified(target.k)} on average over {pools}"
    if isinstance(target, PerPool):
        pool = f"a pool of {number(target.sizes[0])} or more candidates{' of the group' if own else ''}"
        return f"{whose} of {pool} holds at least {qualified(target.k)}"
    assert isinstance(target, Recall)
    return f"{whose} keeps at least {percent(target.share)} of all qualified candidates"


def _confidence(policy: Certificate) -> str:
    level, alpha = policy.cutoffs[0].level, percent(policy.alpha)
    if len(policy.cutoffs) > 1 and not policy.grouped:
        drawn = f"the {policy.cutoffs[0].rows:,} calibration rows"
        pool = any(isinstance(each.target, PerPool) for each in policy.cutoffs)
        return f"wrong with probability at most {alpha} over the draw of {drawn}{' and the pool' * pool}"
    if policy.cutoffs[0].proof is not None:
        whole = replace(level, alpha=policy.alpha)
        return _proof(policy.cutoffs[0]).wrong(whole, policy.cutoffs[0].rows)
    rows = _listed([f"{cutoff.rows:,}" for cutoff in policy.cutoffs])
    if policy.group_rows == "all":  # the same rows serve every group
        rows = f"{policy.cutoffs[0].rows:,}"
    if not isinstance(policy.cutoffs[0].target, PerPool):
        drawn = "its rows and pools" if policy.looks is not None else f"the {rows} calibration rows"
        return f"wrong with probability at most {alpha} over the draw of {drawn}"
    if policy.rule == "exact":
        return f"wrong for at most {alpha} of draws of calibration rows and pool together"
    if policy.grouped:
        share = level.calibration_share
        return (
            f"wrong with probability at most {alpha}, {percent(share)} of which is over the draw of the "
            f"{rows} calibration rows and {percent(1 - share)} over the pool"
        )
    return (
        f"right for each pool with probability at least 1 - {percent(level.pool_alpha)}, except with "
        f"probability at most {percent(level.calibration_alpha)} over the draw of the {rows} calibration rows"
    )


def _listed(words: list[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 2 else words)


def _proof(cutoff: Cutoff) -> Proof:
    assert cutoff.proof is not None
    return cutoff.proof


def conditions(policy: Certificate) -> tuple[str, ...]:
    """The conditions [theory: setting], and those of the options in use."""
    said: list[str] = []
    for cutoff in policy.cutoffs:
        if cutoff.proof is not None:
            whole = replace(cutoff.level, alpha=policy.alpha)
            said.extend(_proof(cutoff).conditions(cutoff.target, whole))
    if not all(cutoff.proof for cutoff in policy.cutoffs):
        said.extend(_common(policy))
    said.extend(_about_options(policy))
    return tuple(dict.fromkeys(said))


def _common(policy: Certificate) -> list[str]:
    """The conditions of every count rule."""
    said = [
        SCORE_FIXED,
        ROWS_ALIKE,
        NO_ROW_LEFT_OUT,
        alpha_bounds(policy.alpha),
    ]
    said.append(_looks(policy))
    for cutoff in policy.cutoffs[: 1 if policy.grouped else None]:
        if cutoff.proof is None:
            said.extend(_about_target(policy, cutoff.target))
    return said


def _looks(policy: Certificate) -> str:
    if policy.looks is not None:
        return (
            "The campaign's schedule, target and alpha were fixed beforehand; the sizes of its pools do "
            "not depend on scores or labels; every pool screened is in the evidence, and a review that "
            "has not come counts as not qualified."
        )
    if policy.rule in ("dkw", "simultaneous"):
        return (
            "Every k and every threshold is covered at once: the target may have been chosen "
            "after looking at these rows, alpha and the rule not."
        )
    return (
        "One look: target, alpha and rule were fixed before looking at these rows. Trying again "
        "on the same rows (another k or rule, more rows until it works) is not covered; fresh rows are, "
        "and the simultaneous rule or a campaign where it was chosen before looking."
    )


def _about_target(policy: Certificate, target: AnyTarget) -> list[str]:
    if isinstance(target, Expected):
        said = [POOL_SIZE_KNOWN]
        if policy.grouped and policy.group_rows == "own":
            said.append("The pool sizes per group were known, not estimated from the calibration rows.")
        return said
    if isinstance(target, PerPool):
        said = ["The size of a pool does not depend on how good its candidates look."]
        if policy.rule == "exact":
            said.append(
                "The failure rate is an average over calibration samples: for about a third of "
                'samples the long-run rate lies above alpha. rule="pac" bounds it for this sample.'
            )
        return said
    return [
        "The share is that of the whole population; in a single pool the share kept may lie below it, "
        "about half the time if the promise is only just true."
    ]


def _about_options(policy: Certificate) -> list[str]:
    said = []
    if policy.choice is not None:
        several = len(policy.choice.scores)
        said.append(
            f"The score {policy.choice.chosen!r} was chosen of {several} after looking, each certified at "
            f"alpha/{several}: "
            "every score that was ever looked at on these rows is among them."
        )
    if len(policy.cutoffs) > 1 and not policy.grouped:
        said.append(f"Alpha is split evenly between the {len(policy.cutoffs)} promises.")
    if policy.thinning is not None:
        said.append(policy.thinning.conditions())
    if policy.missing_labels:
        said.append(
            f"{policy.missing_labels:,} calibration rows without a label were counted as not qualified."
        )
    if policy.dropped_rows:
        said.append(
            f"{policy.dropped_rows:,} calibration rows without a usable score were dropped: the promise "
            "is about candidates who have a score."
        )
    if policy.group_split == "sidak":
        said.append("Groups are disjoint and each uses its own calibration rows only.")
    if policy.grouped:
        said.append(
            "Cutoffs differ by group. Some uses of that are unlawful (in the United States, Title VII "
            "section 703(l) forbids different cutoff scores by race, colour, religion, sex or national "
            "origin in employment tests). This is not legal advice. Recorded purpose: "
            f"{policy.purpose or 'none'}."
        )
    if policy.shift is not None:
        kind = "the weights" if policy.shift.weights_exact else "the estimated weights"
        said.append(
            f"Conditional on {kind}: the density ratios of pool to calibration rows are right, their "
            f"bound {policy.shift.weight_bound:g} was fixed beforehand, and the seed was not redrawn."
        )
    if policy.salt_hash is not None:
        said.append(
            "Ties are broken by a secret salt drawn once after the candidate ids were fixed; "
            "ids are unique over calibration rows and pools. An id in both is noticed only where a candidate "
            "scores exactly at a threshold and was a qualified calibration row there."
        )
    return said
