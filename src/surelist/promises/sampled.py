"""Labels that were drawn: everyone above a score and an audit of the rest, or any known probabilities.

A row that was not drawn has no label and stays in: dropping such rows makes every promise false
[theory: sampled-labels]. Two rates are certified by the worst split of the target between them; more
are thinned to one, after which the kept rows are ordinary calibration rows.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from surelist import _check as check
from surelist._dataclasses import dataclass
from surelist._files import hold
from surelist.bounds.sampled import audit_count, edge_count
from surelist.errors import InvalidInput
from surelist.promises import phrases
from surelist.promises.draws import Draw
from surelist.promises.phrases import number, percent
from surelist.promises.proofs import Certified, refuse
from surelist.promises.state import Thinning
from surelist.promises.targets import Expected, Level
from surelist.promises.terms import Terms

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class SampledLabels:
    """Labels of rows that were drawn with known probability; missing (None, NaN) where not drawn.

    ``above=a``: every row with a score of at least ``a`` was labelled, each of the others with the one
    ``probability``. Without ``above``, ``probability`` is one number or one per row, none below
    ``lowest_rate`` among the rows that score at least ``lowest_score`` (default: all). Rates, edge and
    lowest score were fixed before labels were drawn, and never come from the labels.

    Examples
    --------
    >>> import numpy as np
    >>> import surelist as sl
    >>> from surelist.examples import population
    >>> scores, labels = population(np.random.default_rng(6), 1_000)
    >>> drawn = (scores >= 0.4) | (np.random.default_rng(1).random(1_000) < 0.2)
    >>> sampled = sl.SampledLabels(np.where(drawn, labels, np.nan), probability=0.2, above=0.4)
    >>> sl.calibrate(scores, sampled, sl.Expected(5, 100)).select([0.1, 0.9]).tolist()
    [False, True]
    """

    labels: Any
    probability: Any
    above: float | None = None
    lowest_rate: float | None = None
    lowest_score: float | None = None

    def __post_init__(self) -> None:
        if self.above is None:
            return
        check.as_rate(self.probability, "probability (with above=, one rate for all rows below)")
        if self.lowest_rate is not None or self.lowest_score is not None:
            raise InvalidInput("lowest_rate: goes with several probabilities; leave it out with above=.")

    def __len__(self) -> int:
        return len(self.labels)

    def read(self, rows: int) -> tuple[Mask, Mask]:
        """Which rows were drawn, and which of those are qualified."""
        known = check.as_drawn_labels(self.labels, "labels")
        check.require_length(known, rows, "labels")
        return ~np.isnan(known), known == 1


@dataclass(frozen=True)
class Audited:
    """``above`` qualified rows at or above ``edge``, where all labels are known; ``needed`` audited below.

    Below the edge a row was labelled with probability ``audit_rate``; ``available`` of the labelled ones
    there are qualified. With ``enough`` qualified rows above the edge none is needed below.
    """

    kind: Literal["audited"]
    edge: float
    audit_rate: float
    above: int
    enough: int
    needed: int
    available: int
    unlabelled: int

    def claim(self, target: Expected) -> str:
        return phrases.on_average(target.k, target.pool_size)

    def wrong(self, level: Level, rows: int) -> str:
        return f"{phrases.wrong_over_rows(level.alpha, rows)} and of those of them that were labelled"

    def conditions(self, target: Expected, level: Level) -> tuple[str, ...]:
        labelled = (
            f"Every row that scores at least {number(self.edge)} was to be labelled, and each of the others "
            f"with probability {percent(self.audit_rate)}, by a draw of its own that depends on nothing "
            "else; whoever was drawn has a label, but for those counted here as not qualified. Edge and rate "
            "were fixed before."
        )
        every = f"All {number(self.unlabelled)} rows without a label are in: none was left out."
        return phrases.common_conditions(
            level.alpha, phrases.ROWS_ALIKE, phrases.POOL_SIZE_KNOWN, labelled, every
        )

    def evidence(self, level: Level) -> str:
        if self.needed == 0:
            return (
                f"{number(self.enough)} qualified rows at or above the threshold, all of whose labels are "
                f"known, of {number(self.above)} at or above {number(self.edge)}"
            )
        return (
            f"{number(self.above)} qualified rows at or above {number(self.edge)}, and {number(self.needed)} "
            f"audited ones below it, of {number(self.available)}"
        )

    def check(self, target: Expected, level: Level, rows: int, qualified: int, threshold: float) -> None:
        hold(self.above + self.available == qualified, "the qualified rows do not add up")
        hold(min(self.above, self.needed) >= 0 and self.needed <= self.available, "too few audited rows")
        hold(0 <= self.unlabelled <= rows - qualified, "the number without a label is impossible")
        needed = audit_count(rows, self.above, target.rate, self.audit_rate, level.alpha)
        hold(self.needed >= needed, f"{self.needed} audited rows are less than the {needed} needed")
        if threshold >= self.edge:
            enough = edge_count(rows, target.rate, self.audit_rate, level.alpha)
            hold(self.above >= self.enough >= enough, "too few qualified rows for a threshold above the edge")


def certify_audited(scores: Floats, sampled: SampledLabels, target: Expected, level: Level) -> Certified:
    """Two rates: the needed-th best audited qualified score below the edge, or enough above it."""
    drawn, good = sampled.read(len(scores))
    edge = float(check.as_scores([sampled.above], "above")[0])
    top = scores >= edge
    above, below = int(np.count_nonzero(good & top)), scores[good & ~top]
    rows, available = len(scores), len(below)
    audit_rate = check.as_rate(sampled.probability, "probability")
    needed = audit_count(rows, above, target.rate, audit_rate, level.alpha)
    if needed > available:
        raise refuse(
            target.describe(), level, rows, above + available,
            f"{above:,} qualified rows at or above {edge:g} ask for {_or_none(needed, rows)} audited "
            f"qualified rows below it, and there are {available:,}: audit more rows, or ask for less.",
            count=needed,
        )  # fmt: skip
    enough = edge_count(rows, target.rate, audit_rate, level.alpha)
    if needed == 0:  # every label above the edge is known: no audited row decides
        known = scores[good & top]
        threshold = float(np.partition(known, above - enough)[above - enough])
    else:
        threshold = float(np.partition(below, available - needed)[available - needed])
    proof = Audited(
        "audited",
        edge,
        float(sampled.probability),
        above,
        enough,
        needed,
        available,
        int(np.count_nonzero(~drawn)),
    )
    count = above + needed if needed else enough
    return Certified(threshold, count, rows, above + available, proof)


def _or_none(needed: int, rows: int) -> str:
    return f"{needed:,}" if needed <= rows else f"more than the {rows:,} rows there are, as"


def require_drawn(missing: Mask, missing_labels: str) -> int:
    """How many labels are ``missing`` although they were certain to be drawn; refused unless allowed.

    They were drawn, so they are kept as not qualified and never taken for rows that were not.
    """
    count = int(np.count_nonzero(missing))
    if count and missing_labels != "unqualified":
        raise InvalidInput(
            f"labels: expected a label at every row that was certain to be drawn, got none at row "
            f"{int(missing.argmax())} ({count:,} in all). Taken for rows that were not drawn they would "
            'break the promise; get them, or missing_labels="unqualified" keeps them as not qualified.'
        )
    return count


def thin(scores: Floats, sampled: SampledLabels, terms: Terms) -> tuple[Mask, Mask, Thinning, int]:
    """Rows to keep, who is qualified, and how many drawn labels are missing.

    Kept flags are i.i.d. with the lowest rate, whatever the label. Below ``lowest_score`` labels are not
    needed: rows are kept at the lowest rate, drawn or not, and count as not qualified.
    """
    rows = len(scores)
    drawn, good = sampled.read(rows)
    rates = _probabilities(sampled.probability, rows)
    lowest = _lowest_rate(sampled, rates)
    low_score = sampled.lowest_score
    needed = np.ones(rows, dtype=bool) if low_score is None else scores >= float(low_score)
    if low_score is not None and not all(isinstance(each, Expected) for each in terms.all_targets):
        raise InvalidInput(
            "lowest_score: goes with Expected only, other promises need labels at every score; leave it out."
        )
    _require_rates(rates, needed, lowest)
    lost = needed & ~drawn & (rates == 1)
    missing = require_drawn(lost, terms.missing_labels)
    draw = Draw.fresh()
    coins = draw.coins(rows)
    with np.errstate(divide="ignore"):
        chance = np.where(needed, np.where(drawn | lost, lowest / rates, 0.0), lowest)
    kept = coins < chance
    if not kept.any():
        raise InvalidInput("lowest_rate: no calibration row was kept; the rate is far too small.")
    return kept, good & needed, Thinning(lowest, low_score, rows, draw.key), missing


def _probabilities(values: Any, rows: int) -> Floats:
    if np.ndim(values) == 0:
        return np.full(rows, float(check.as_rate(values, "probability")))
    rates = check.as_scores(values, "probability")
    check.require_length(rates, rows, "probability")
    wrong = (rates < 0) | (rates > 1)
    if wrong.any():
        at = int(wrong.argmax())
        raise InvalidInput(f"probability: expected a number from 0 to 1, got {rates[at]:g} at row {at}.")
    return rates


def _lowest_rate(sampled: SampledLabels, rates: Floats) -> float:
    if sampled.lowest_rate is not None:
        return float(check.as_rate(sampled.lowest_rate, "lowest_rate"))
    if np.ndim(sampled.probability) == 0:
        return float(rates[0])
    raise InvalidInput(
        "lowest_rate: several probabilities need the lowest one, fixed beforehand (not the smallest of "
        "these rows)."
    )


def _require_rates(rates: Floats, needed: Mask, lowest: float) -> None:
    small = needed & (rates < lowest)
    if small.any():
        at = int(small.argmax())
        raise InvalidInput(
            f"probability: expected at least lowest_rate={lowest:g}, got {rates[at]:g} at row {at}. Give "
            "lowest_score= where low scores were drawn less often."
        )
