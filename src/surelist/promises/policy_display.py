"""A policy as it shows itself in a prompt and in a notebook, and beside one list.

Its sentences are those of ``wording``. Beside a list stands what "on average" means for it: how many
qualified would be usual among those listed [theory: usual]. Said only where it is true: the threshold comes
from a count that was fixed beforehand, every row has its label, and nothing was chosen after looking.
Otherwise there is no answer, and nothing is shown.
"""

from __future__ import annotations

from msgspec import Struct

from surelist._numerals import count
from surelist.bounds.this_list import Certifiable, usual_count
from surelist.drawing import Display
from surelist.promises import wording
from surelist.promises.state import Certificate, Cutoff

MOST = 6  # groups that are shown one by one, not folded
FIXED_BEFORE = ("exact", "pac", "bernstein")
MISS = 0.05  # per side
SHORTEST = 5  # candidates on a list; of fewer nearly any number is usual
LONGEST = 1_000_000  # candidates on a list; beyond, chance is no longer what matters


def policy_display(policy: Certificate) -> Display:
    """The promise in two lines, list to expect, evidence; the exact sentence and its conditions folded."""
    cutoffs = [(cutoff, _facts(cutoff, policy)) for cutoff in policy.cutoffs]
    facts = [fact for _, values in cutoffs[:MOST] for fact in values]
    more = [" · ".join(f"{label}: {value}" for label, value in values) for _, values in cutoffs[MOST:]]
    facts.append(("made", f"{policy.created} with surelist {policy.version}"))
    conditions = wording.conditions(policy)
    rests = "rested" if policy.withdrawn is not None else "rests"
    lines = wording.two_lines(policy)
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
    whose = [f"{each.group!r}: " if each.group is not None else "" for each in policy.cutoffs[:3]]
    shown = zip(whose, policy.cutoffs, strict=False)
    asked = "; ".join(f"{who}{each.target.describe()}, {listed(each)}" for who, each in shown)
    more = f"; and {len(policy.cutoffs) - 3} more" if len(policy.cutoffs) > 3 else ""
    level = f"; alpha {policy.alpha:g}, rule {policy.rule}" if policy.cutoffs[0].proof.uses_alpha else ""
    return f"{asked}{more}{level}"


def listed(cutoff: Cutoff) -> str:
    """Who is on the list, in a few words."""
    first, last = cutoff.steps[0].threshold, cutoff.steps[-1].threshold
    if cutoff.target.by_rank:
        return f"the best {-first:.0f} of each pool"
    span = f"{first:.6g}" if first == last else f"{first:.6g} to {last:.6g}"
    if (low := cutoff.proof.looked_from) is not None:
        rejected = wording.compared(low, 6, below=True)
        return f"accepted from a score of {span} on, rejected where it is {rejected}"
    if cutoff.steps[0].tie_break is not None:
        return f"score > {span}, or at it and let in by the hash of the id"
    return f"score {wording.compared(first, 6)}" if first == last else f"score >= {span}"


def backed(cutoff: Cutoff, rule: str = "") -> str:
    """What a threshold rests on, in numbers, and at which level."""
    level = f"; alpha {cutoff.level.alpha:g}{rule and f', rule {rule}'}" if cutoff.proof.uses_alpha else ""
    return f"{cutoff.proof.evidence(cutoff)}{level}"


def _facts(cutoff: Cutoff, policy: Certificate) -> list[tuple[str, str]]:
    facts = [] if cutoff.group is None else [("group", cutoff.group)]
    lists = "shortlisted" if cutoff.proof.looked_from is None else "lists"
    facts += [(lists, listed(cutoff)), ("evidence", backed(cutoff))]
    for sentence in wording.about_scores(cutoff, policy):
        label, _, value = sentence.partition(": ")
        facts.append((label, value) if value else ("share", sentence))
    return facts


class Usual(Struct, frozen=True):
    """From ``low`` to ``high`` of ``listed`` candidates are qualified, for about 9 lists in 10.

    ``qualified`` of ``rows`` calibration rows at or above the threshold are.
    """

    listed: int
    low: int
    high: int
    rows: int
    qualified: int

    @property
    def sentence(self) -> str:
        if (self.low, self.high) == (0, self.listed):
            return f"{count(self.listed)} listed here; any number of them qualified would be usual."
        span = count(self.low) if self.low == self.high else f"{count(self.low)} to {count(self.high)}"
        return f"{count(self.listed)} listed here; about {span} qualified would be usual."

    @property
    def meaning(self) -> str:
        """How it is worked out, and when it holds."""
        return (
            f"{count(self.rows)} calibration rows score high enough to be listed, and "
            f"{count(self.qualified)} of them are qualified. A list of {count(self.listed)} drawn from "
            "candidates of the same kind holds a number in this range about 9 times in 10: the chance in "
            "this list, in those rows and in whether they sufficed is counted in. It rests on what the "
            "promise rests on, and is no promise: a number outside it proves nothing yet, and is a reason to "
            "look."
        )


def usual(policy: Certificate, candidates: int, listed: int) -> Usual | None:
    """How many qualified would be usual on this list; None where that cannot be said."""
    if not SHORTEST <= listed <= LONGEST or not _known(policy):
        return None
    cutoff = policy.cutoffs[0]
    step = cutoff.steps[0]
    if len(cutoff.steps) > 1 or step.pool_size > candidates or step.tie_break is not None:
        return None
    if step.share is None or step.reached is None:
        return None
    rows = round(step.share * cutoff.rows)
    # how many qualified rows there had to be for the promise to be certified at all
    fewest = cutoff.target.fewest_qualified(cutoff.level) or step.critical_count
    given = Certifiable(cutoff.rows, fewest, cutoff.qualified)
    low, high = usual_count(listed, step.critical_count, step.reached, rows - step.reached, MISS, given)
    return Usual(listed, low, high, rows, step.reached)


def _known(policy: Certificate) -> bool:
    """Whether nothing but a count of labelled rows, fixed beforehand, decided the threshold."""
    chosen = policy.choice or policy.shift or policy.thinning or len(policy.cutoffs) > 1
    cutoff = policy.cutoffs[0]
    whole = not policy.missing_labels and not policy.grouped and policy.withdrawn is None
    return cutoff.proof.counted and whole and not chosen and policy.rule in FIXED_BEFORE
