"""What "on average" means for one list: how many qualified would be usual among those listed [theory: usual].

Said only where it is true: the threshold comes from a count that was fixed beforehand, every row has its
label, and nothing was chosen after looking. Otherwise there is no answer, and nothing is shown.
"""

from __future__ import annotations

from msgspec import Struct

from surelist._numerals import count
from surelist.bounds.this_list import Certifiable, usual_count
from surelist.promises.state import Certificate

FIXED_BEFORE = ("exact", "pac", "bernstein")
MISS = 0.05  # per side
SHORTEST = 5  # candidates on a list; of fewer nearly any number is usual
MOST = 1_000_000  # candidates on a list; beyond, chance is no longer what matters


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
    if not SHORTEST <= listed <= MOST or not _known(policy):
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
