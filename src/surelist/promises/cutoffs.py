"""From what a rule found to what a policy keeps: cutoffs of single lists, one that serves all groups, and
the best of several scores [theory: best-of].

Of several scores each is certified at its share of alpha, and one is chosen after looking. The choice may
use anything at all, here the length of the list. Every score that was ever looked at on these rows counts,
also those discarded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from msgspec.structs import replace

from surelist import _check as check
from surelist._check import EVERYONE
from surelist.errors import InvalidInput, NotCertifiable
from surelist.promises.evidence import Evidence
from surelist.promises.policy import Policy
from surelist.promises.promise import About, Level, Promise
from surelist.promises.state import Certified, Choice, Cutoff, Everyone, OwnCutoff, Step
from surelist.promises.terms import Terms
from surelist.score_summary import Reached

Found = Mapping[tuple[str | None, Promise], tuple[Evidence, Certified]]


def cutoff_of(rows: Evidence, certified: Certified, promise: Promise, level: Level) -> Cutoff:
    """The thresholds with what is kept of the rows behind them."""
    first, last = certified.steps[0], certified.steps[-1]
    counted = certified.proof.counted
    summary = rows.counts.summary([first.threshold, last.threshold] if counted else [])
    steps, other_rows = certified.steps, promise.whole_pools or promise.about is About.THIS_POOL
    if counted:
        changed = list(steps)
        for at, reached in zip((0, -1), summary.reached, strict=True):
            changed[at] = _with_shares(steps[at], reached, summary.scores.total)
        steps = tuple(changed)
    elif first.share is None and not other_rows and rows.columns is not None:
        steps = (replace(first, share=float(np.mean(rows.scores >= first.threshold))),)
    known = rows.sampled is None and rows.noise is None
    scores = summary.scores if known else replace(summary.scores, auc=None)
    return Cutoff(
        rows.group, promise, level, certified.rows, certified.qualified, steps, certified.proof,
        summary.fingerprint, scores,
    )  # fmt: skip


def _with_shares(step: Step, reached: Reached, total: int) -> Step:
    """With how much of the calibration rows the threshold shortlists, and would if ties were broken."""
    needed = step.critical_count - reached.qualified_above
    part = needed / (reached.qualified - reached.qualified_above)
    untied = (reached.rows_above + part * (reached.rows - reached.rows_above)) / total
    share = reached.rows / total if step.tie_break is None else untied
    return replace(step, reached=reached.qualified, share=share, share_untied=untied)


def lowered(cutoff: Cutoff, threshold: float) -> Cutoff:
    """At a lower threshold nothing is known of how many reach it."""
    step = cutoff.steps[0]
    if step.threshold == threshold:
        return cutoff
    lower = replace(step, threshold=threshold, reached=None, share=None, share_untied=None)
    return replace(cutoff, steps=(lower,))


def common_cutoffs(found: Found, everyone: Evidence, terms: Terms) -> tuple[list[Cutoff], Everyone]:
    """Every group's promise at the lowest of their cutoffs, and all rows under it [theory: common-cutoff]."""
    steps = [certified.steps[0] for _, certified in found.values()]
    lowest = min(steps, key=lambda step: (step.threshold, step.tie_break or 0))
    cutoffs = [_at_common(*each, promise, lowest, terms) for (_, promise), each in found.items()]
    counted = next(iter(found.values()))[1].proof.counted
    summary = everyone.counts.summary([lowest.threshold] if counted else [])
    share = _share(summary.reached[0], summary.scores.total, lowest) if counted else None
    counts = everyone.counts
    return cutoffs, Everyone(counts.rows, counts.qualified, share, summary.fingerprint, summary.scores)


def _at_common(rows: Evidence, certified: Certified, promise: Promise, lowest: Step, terms: Terms) -> Cutoff:
    step = replace(certified.steps[0], threshold=lowest.threshold, tie_break=lowest.tie_break)
    counted = certified.proof.counted
    own = _own(rows, promise, terms) if counted else None
    summary = rows.counts.summary([each.threshold for each in (step, own) if each and counted])
    shares = [_share(each, summary.scores.total, step) for each in summary.reached]
    if counted:
        step = replace(step, reached=summary.reached[0].qualified, share=shares[0])
    kept = None if own is None else OwnCutoff(own.threshold, shares[1])
    return Cutoff(
        rows.group, promise, terms.level, certified.rows, certified.qualified, (step,), certified.proof,
        summary.fingerprint, summary.scores, kept,
    )  # fmt: skip


def _share(reached: Reached, total: int, step: Step) -> float | None:
    """Of the rows, those at or above a threshold; not known where ties at it are broken."""
    return reached.rows / total if step.tie_break is None else None


def _own(rows: Evidence, promise: Promise, terms: Terms) -> Step | None:
    """The group's cutoff if cutoffs differed, which takes shares of alpha; None: it would be refused."""
    if rows.group == EVERYONE:
        return None
    try:
        return promise.certify(replace(rows, salt=None), terms.own_level).steps[0]
    except NotCertifiable:
        return None


Certify = Callable[[Any, Terms, Any], Policy]


def best_of(scores: Mapping[object, object], unlabelled: object, terms: Terms, certify: Certify) -> Policy:
    """The policy with the best list: the shortest, or the longest where that is wanted.

    ``certify`` makes one from scores, terms and unlabelled scores.
    """
    names = [check.group_name(name, "scores") for name in scores]
    if not names or len(set(names)) != len(names):
        raise InvalidInput("scores", expected="one column per name", got=f"the names {names!r}")
    others = _others(unlabelled, list(scores))
    asked = replace(terms, scores=len(names))
    wanted = any(each.others != "refused" for each in terms.all_targets)
    made: list[tuple[float, str, Policy]] = []
    refused: NotCertifiable | None = None
    for name, (key, column) in zip(names, scores.items(), strict=True):
        try:
            policy = certify(column, asked, others.get(key) if wanted else None)
        except NotCertifiable as error:
            refused = refused or error
            continue
        made.append((_length(policy, others.get(key, column)), name, policy))
    if not made:
        assert refused is not None
        raise refused
    best = max if all(each.longest for each in terms.all_targets) else min
    _, name, policy = best(made, key=lambda each: each[0])
    return replace(policy, choice=Choice(tuple(names), name))


def _others(unlabelled: object, keys: list[object]) -> dict[object, object]:
    if unlabelled is None:
        return {}
    if not isinstance(unlabelled, Mapping) or set(unlabelled) != set(keys):
        raise InvalidInput("unlabelled", "with several scores, give a mapping with the same names.")
    return dict(unlabelled)


def _length(policy: Policy, scores: object) -> float:
    """The share of these candidates on the list; by rank, the rank where it ends."""
    threshold = min(cutoff.steps[0].threshold for cutoff in policy.cutoffs)
    if policy.by_rank:
        return -threshold
    return float(np.mean(check.as_scores(scores, "unlabelled") >= threshold))
