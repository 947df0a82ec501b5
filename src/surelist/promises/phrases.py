"""The words that every promise shares: numbers as people write them, and the common conditions.

Which of these a policy says is decided in ``wording`` and by each proof. No arithmetic here.
"""

from __future__ import annotations

import math

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
POOL_SIZE_KNOWN = (
    "The pool size is the number of candidates in a pool, or its known average; if it was "
    "estimated, the promise is conditional on it. A calibration row is a candidate drawn "
    "at random, not drawn pool by pool."
)
DRAWN_ONCE = (
    "The random numbers behind it were drawn once, from the system's randomness, after the rows were "
    "fixed; drawing again until the result pleases is not covered."
)


def percent(share: float) -> str:
    """A share as people write it."""
    return f"{100 * share:.6g}%"


def number(value: float) -> str:
    """A number as people write it."""
    return f"{value:,.10g}"


def number_down(value: float) -> str:
    """Four digits, never more than the value."""
    digits = 3 - math.floor(math.log10(value))
    return number(math.floor(value * 10**digits * (1 + 1e-12)) / 10**digits)


def counted(value: float, what: str) -> str:
    """``1 pool``, ``20 pools``."""
    return f"{number(value)} {what}{'' if value == 1 else 's'}"


def qualified(k: float) -> str:
    """``5 qualified candidates``."""
    return counted(k, "qualified candidate")


def on_average(k: float, pool_size: float) -> str:
    """The claim of ``Expected`` with rows as units."""
    pools = f"pools of {counted(pool_size, 'candidate')}"
    return f"the shortlist holds at least {qualified(k)} on average over {pools}"


def alpha_bounds(alpha: float) -> str:
    """What alpha says and what it does not."""
    return (
        f"At most {percent(alpha)} bounds the chance that a promise is made and false, "
        "not the share of false ones among promises made."
    )


def wrong_over_rows(alpha: float, rows: int) -> str:
    """How often a promise from independent rows may be wrong."""
    drawn = counted(rows, "calibration row")
    return f"wrong with probability at most {percent(alpha)} over the draw of the {drawn}"


def common_conditions(alpha: float, *of_the_rule: str) -> tuple[str, ...]:
    """What every promise rests on, around what its rule needs."""
    return (SCORE_FIXED, *of_the_rule, alpha_bounds(alpha), ONE_LOOK)
