"""A policy as it shows itself in a prompt and in a notebook. Its sentences are those of ``wording``."""

from __future__ import annotations

from surelist.drawing.display import Display
from surelist.promises import wording
from surelist.promises.state import Certificate, Cutoff
from surelist.promises.wording import two_lines

MOST = 6  # groups that are shown one by one, not folded


def policy_display(policy: Certificate) -> Display:
    """The promise in two lines, list to expect, evidence; the exact sentence and its conditions folded."""
    cutoffs = [(cutoff, _facts(cutoff, policy)) for cutoff in policy.cutoffs]
    facts = [fact for _, values in cutoffs[:MOST] for fact in values]
    more = [" · ".join(f"{label}: {value}" for label, value in values) for _, values in cutoffs[MOST:]]
    facts.append(("made", f"{policy.created} with surelist {policy.version}"))
    conditions = wording.conditions(policy)
    rests = "rested" if policy.withdrawn is not None else "rests"
    lines = two_lines(policy)
    return Display(
        _line(policy),
        f"{lines.what}\n{lines.sure}",
        facts,
        wording.warnings(policy),
        (
            ("What this means", lines.meaning),
            ("The exact sentence", (wording.promise(policy),)),
            (f"{len(more)} more", more),
            (f"The promise {rests} on {len(conditions)} conditions", conditions),
        ),
    )


def _line(policy: Certificate) -> str:
    if policy.withdrawn is not None:
        return "nothing is promised any more"
    asked = "; ".join(_short(cutoff) for cutoff in policy.cutoffs[:3])
    more = f"; and {len(policy.cutoffs) - 3} more" if len(policy.cutoffs) > 3 else ""
    level = f"; alpha {policy.alpha:g}, rule {policy.rule}" if policy.cutoffs[0].proof.uses_alpha else ""
    return f"{asked}{more}{level}"


def _short(cutoff: Cutoff) -> str:
    who = f"{cutoff.group!r}: " if cutoff.group is not None else ""
    return f"{who}{cutoff.target.describe()}, {listed(cutoff)}"


def listed(cutoff: Cutoff) -> str:
    """Who is on the list, in a few words."""
    first, last = cutoff.steps[0].threshold, cutoff.steps[-1].threshold
    if cutoff.target.by_rank:
        return f"the best {-first:.0f} of each pool"
    span = f"{first:.6g}" if first == last else f"{first:.6g} to {last:.6g}"
    if (low := cutoff.proof.looked_from) is not None:
        return (
            f"accepted from a score of {span} on, rejected where it is {wording.compared(low, 6, below=True)}"
        )
    if cutoff.steps[0].tie_break is not None:
        return f"score > {span}, or at it and let in by the hash of the id"
    return f"score {wording.compared(first, 6)}" if first == last else f"score >= {span}"


def backed(cutoff: Cutoff, rule: str = "") -> str:
    """What a threshold rests on, in numbers, and at which level."""
    level = f"; alpha {cutoff.level.alpha:g}{rule and f', rule {rule}'}" if cutoff.proof.uses_alpha else ""
    return f"{cutoff.proof.evidence(cutoff)}{level}"


def _facts(cutoff: Cutoff, policy: Certificate) -> list[tuple[str, str]]:
    facts = [] if cutoff.group is None else [("group", cutoff.group)]
    facts += [
        ("shortlisted" if cutoff.proof.looked_from is None else "lists", listed(cutoff)),
        ("evidence", backed(cutoff)),
    ]
    for sentence in wording.about_scores(cutoff, policy):
        label, _, value = sentence.partition(": ")
        facts.append((label, value) if value else ("share", sentence))
    return facts
