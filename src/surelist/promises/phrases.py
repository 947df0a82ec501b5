"""The words that every promise shares: numbers as people write them, and the common conditions.

Which of these a policy says is decided in ``wording`` and by each proof. No arithmetic here.
"""

from __future__ import annotations

from surelist import _numerals as numerals

SCORE_FIXED = (
    "The score was fixed before, and independently of, the calibration rows: "
    "none of them was used to train, tune or choose it. It is computed in the same way, and in the "
    "same precision, for calibration rows and pools."
)
ROWS_ALIKE = (
    "Calibration rows and the candidates of future pools are drawn independently from the same population."
)
NO_ROW_LEFT_OUT = (
    "The number of calibration rows did not depend on their labels or scores, and no row "
    "was left out because its label is missing."
)
ALL_ROWS = (ROWS_ALIKE, NO_ROW_LEFT_OUT)
ONE_LOOK = (
    "One look: target, alpha and rule were fixed before looking at these rows. Trying again "
    "on the same rows (another target or rule, more rows until it works) is not covered; fresh rows are."
)
OTHER_SCORES = (
    "The unlabelled scores come from the same population and from other candidates than the calibration rows."
)
SCORES_OF_POOLS = (
    "The unlabelled scores come from the population of future pools, not from that of the calibration rows, "
    "and from other candidates."
)
ROWS_APART = "No calibration row is among the candidates of this pool."
POOL_SIZE_KNOWN = (
    "The pool size is the number of candidates in a pool, or its known average; if it was "
    "estimated, the promise is conditional on it. A calibration row is a candidate drawn "
    "at random, not drawn pool by pool."
)
DRAWN_ONCE = (
    "The random numbers behind it were drawn once, from the system's randomness, after the rows were "
    "fixed; drawing again until the result pleases is not covered."
)


ANY_SIZE = "The size of a pool does not depend on how good its candidates look."
ANY_LIST = "A single list may hold fewer or more; it is their average that is at least so large."
LONG_RUN = "In the long run: over many pools taken together. A single pool may lie below it, or above."
WHOLE_POOLS = (
    "Every pool of the calibration rows is there as a whole, with all of its candidates, and no pool was "
    "left out because of its scores or labels."
)
SCORED_POOLS = (
    "Every pool of the calibration rows is there, with all of its candidates who have a score; one in which "
    "nobody has a score counts as a pool that reaches nothing. No pool was left out because of its scores or "
    "labels."
)
POOLS_ALIKE = (
    "Pools, past and future, are independent draws from one population of pools; a shock common to the "
    "past ones is not covered. Inside a pool anything may depend on anything."
)


def percent(share: float) -> str:
    """A share as people write it."""
    return f"{100 * share:.6g}%"


def percent_down(share: float) -> str:
    """A share as people write it, never rounded up."""
    return percent(int(share * 1000) / 1000)


def number(value: float) -> str:
    """A number as people write it."""
    return f"{value:,.10g}"


def number_down(value: float) -> str:
    """Four digits, never more than the value."""
    return number(numerals.floored(value * (1 + 1e-12), 4))


def counted(value: float, what: str) -> str:
    """``1 pool``, ``20 pools``."""
    return f"{number(value)} {what}{'' if value == 1 else 's'}"


def qualified(k: float) -> str:
    """``5 qualified candidates``."""
    return counted(k, "qualified candidate")


def many_qualified(k: float) -> str:
    """``5 qualified candidates``, for a person who repeats it."""
    return f"{numerals.number(k, 10)} qualified {'candidate' if k == 1 else 'candidates'}"


def of_listed(k: str, length: float, per: str) -> str:
    """So many of those listed per so many, on average."""
    listed = f"about {numerals.about(length)} candidates listed per {per}"
    return f"on average at least {k} of {listed} will be qualified"


def at_most(share: float, what: str, one: str = "ends", several: str = "end") -> str:
    """``at most 1 calibration in 10 ends``."""
    often = numerals.one_in(share, what)
    return f"at most {often} {one if often.startswith('1 ') else several}"


def alpha_bounds(alpha: float) -> str:
    """What alpha says and what it does not."""
    chance = f"At most {percent(alpha)} bounds the chance that a promise is made and false"
    return f"{chance}, not the share of false ones among promises made."


def right_for_each_pool(over_rows: float, over_pool: float, over: str) -> str:
    """How often a promise of two levels may be wrong."""
    right = f"right for each pool with probability at least 1 - {percent(over_pool)}"
    return f"{right}, except with probability at most {percent(over_rows)} over {over}"


def common_conditions(alpha: float, *of_the_rule: str) -> tuple[str, ...]:
    """What every promise rests on, around what its rule needs."""
    return (SCORE_FIXED, *of_the_rule, alpha_bounds(alpha), ONE_LOOK)


def at_least(share: float, within: float) -> float:
    """What is left of a share certified among kept rows if density ratios are wrong by this factor.

    The odds fall by at most within squared [theory: shift].
    """
    return share / (share + within**2 * (1 - share))


def more_odds(share: float, within: float) -> float:
    """The share whose odds are within squared times these; a hair more, so that rounding takes nothing
    from it."""
    return min(1.0, at_least(share, 1 / within) * (1 + 1e-12))
