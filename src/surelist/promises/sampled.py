"""Labels that are not all known, or not all right: drawn with known probabilities, or wrong at most so often.

A row that was not drawn has no label and stays in: dropping such rows makes every promise false
[theory: sampled-labels]. Two rates are certified by the worst split of the target between them; more
are thinned to one, after which the kept rows are ordinary calibration rows.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct

from surelist import _check as check
from surelist._arrays import Column, Floats, Ints, Mask
from surelist._names import option
from surelist._randomness import fresh_bytes
from surelist.errors import InvalidInput
from surelist.promises.state import Thinning

if TYPE_CHECKING:
    from surelist.promises.terms import Terms


BY_CHANCE = 1e-9  # how often labels that were drawn as is said may be refused


class SampledLabels(Struct, frozen=True, eq=False):
    """Labels of rows that were drawn with known probability; missing (None, NaN) where not drawn.

    Rates, edge and lowest score were fixed before labels were drawn, and never come from the labels.

    Parameters
    ----------
    labels : array-like
        0, 1, or missing where a row was not drawn.
    probability : float or array-like
        With which rows were drawn: one number, or one per row. With ``above``: that of each row below it.
    above : float, optional
        Every row with at least this score was labelled.
    lowest_rate : float, optional
        No probability is below this, among the rows that score at least ``lowest_score``.
    lowest_score : float, optional
        Rows that score lower may have been drawn with any probability. Default: none may.

    Examples
    --------
    >>> import numpy as np
    >>> import surelist as sl
    >>> from surelist.examples import population
    >>> scores, labels = population(6, 1_000)
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
            several = f"goes with several probabilities; leave it out with {option('above')}."
            raise InvalidInput("lowest_rate", several)

    def __len__(self) -> int:
        return len(self.labels)

    def read(self, rows: int, *, amounts: bool = False) -> tuple[Mask, Column]:
        """Which rows were drawn, and which of those are qualified; of amounts, what they are worth."""
        if amounts:
            read, _ = check.as_values(self.labels, missing="unqualified")
            drawn = ~np.isnan(check.as_scores(self.labels, "labels", finite=False))
        else:
            known = check.as_known_labels(self.labels)
            drawn, read = ~np.isnan(known), known == 1
        check.require_length(drawn, rows, "labels")
        return drawn, read


class NoisyLabels(Struct, frozen=True, eq=False):
    """Labels that may be wrong, at most so often, whatever the score [theory: noise].

    The promise is about those who really are qualified. The bounds are an assumption that nothing in the
    rows can confirm; the promise is printed with it.

    Parameters
    ----------
    labels : array_like
        1 where a row is labelled qualified, else 0; of a table the name of its column.
    false_positive : float
        At most this share of those who are not qualified is labelled qualified, at every score.
    false_negative : float
        At most this share of the qualified is labelled as not, at every score.
    longest : float, optional
        For ``Expected``: the largest share of candidates that may be listed, fixed beforehand; the smaller,
        the less false positives cost. Longer lists are refused.

    Examples
    --------
    >>> import numpy as np
    >>> import surelist as sl
    >>> from surelist.examples import population
    >>> rng = np.random.default_rng(6)
    >>> scores, truth = population(rng, 2_000)
    >>> labels = np.where(rng.random(2_000) < 0.02, ~truth, truth)
    >>> noisy = sl.NoisyLabels(labels, false_positive=0.02, false_negative=0.02, longest=0.3)
    >>> policy = sl.calibrate(scores, noisy, sl.Expected(5, 100), unlabelled=population(rng, 5_000)[0])
    >>> policy.select([0.2, 0.9]).tolist()
    [False, True]
    """

    labels: Any
    false_positive: float
    false_negative: float
    longest: float | None = None

    def __post_init__(self) -> None:
        for name in ("false_positive", "false_negative"):
            check.as_share(getattr(self, name), name)
        if self.longest is not None:
            check.as_alpha(self.longest, "longest")

    def __len__(self) -> int:
        return len(self.labels)


def require_drawn(missing: Mask, missing_labels: str) -> int:
    """How many labels are ``missing`` although they were certain to be drawn; refused unless allowed.

    They were drawn, so they are kept as not qualified and never taken for rows that were not.
    """
    count = int(np.count_nonzero(missing))
    if count and missing_labels != "unqualified":
        certain = "a label at every row that was certain to be drawn"
        got = f"none at position {int(missing.argmax())} ({count:,} in all)"
        keeps = f"{option('missing_labels', 'unqualified')} keeps them as not qualified"
        remedy = f"Taken for rows that were not drawn they would break the promise; get them, or {keeps}."
        raise InvalidInput("labels", expected=certain, got=got, remedy=remedy)
    return count


def thin(scores: Floats, sampled: SampledLabels, terms: Terms) -> tuple[Mask, Column, Thinning, int]:
    """Rows to keep, who is qualified (of amounts: what they are worth), how many drawn labels are missing.

    Kept flags are i.i.d. with the lowest rate, whatever the label. Below ``lowest_score`` labels are not
    needed: rows are kept at the lowest rate, drawn or not, and count as not qualified.
    """
    rows = len(scores)
    drawn, good = sampled.read(rows, amounts=any(each.amounts for each in terms.all_targets))
    rates = _probabilities(sampled.probability, rows)
    lowest = _lowest_rate(sampled, rates)
    low_score = sampled.lowest_score
    needed = np.ones(rows, dtype=bool) if low_score is None else scores >= float(low_score)
    for each in terms.all_targets if low_score is not None else ():
        if not each.top_only:
            every = f"{type(each).__name__} needs labels at every score; leave lowest_score out."
            raise InvalidInput("lowest_score", every)
    remedy = f"Give {option('lowest_score')} where low scores were drawn less often."
    wanted = f"at least the lowest rate, {lowest:g}"
    check.refuse_where(needed & (rates < lowest), rates, "probability", wanted, remedy)
    require_chance(drawn[needed], rates[needed])
    lost = needed & ~drawn & (rates == 1)
    missing = require_drawn(lost, terms.missing_labels)
    draw = Draw.fresh()
    coins = draw.coins(rows)
    with np.errstate(divide="ignore"):
        chance = np.where(needed, np.where(drawn | lost, lowest / rates, 0.0), lowest)
    kept = coins < chance
    if not kept.any():
        raise InvalidInput("lowest_rate", "no calibration row was kept; the rate is far too small.")
    return kept, good * needed, Thinning(lowest, low_score, rows, draw.key), missing


def _probabilities(values: Any, rows: int) -> Floats:
    if np.ndim(values) == 0:
        return np.full(rows, float(check.as_rate(values, "probability")))
    rates = check.as_scores(values, "probability")
    check.require_length(rates, rows, "probability")
    check.refuse_where((rates < 0) | (rates > 1), rates, "probability", "a number from 0 to 1")
    return rates


def _lowest_rate(sampled: SampledLabels, rates: Floats) -> float:
    if sampled.lowest_rate is not None:
        return float(check.as_rate(sampled.lowest_rate, "lowest_rate"))
    if np.ndim(sampled.probability) == 0:
        return float(rates[0])
    lowest = "the lowest one, fixed beforehand (not the smallest of these rows)"
    raise InvalidInput("lowest_rate", f"several probabilities need {lowest}.")


def require_chance(drawn: Mask, rates: Floats) -> None:
    """Raise where there are far more or far fewer labels than these probabilities give.

    Then labels are missing, or were made, for other reasons than the draw, as of rows that nobody answered.
    By Bernstein's inequality a draw as it was said is refused less than once in 10^9 times.
    """
    by_chance = rates < 1  # of rows that were certain to be drawn each is looked at
    rates, there = rates[by_chance], int(np.count_nonzero(drawn[by_chance]))
    expected, variance = float(rates.sum()), float((rates * (1 - rates)).sum())
    gap = abs(there - expected)
    if gap and gap**2 > -2 * math.log(BY_CHANCE / 2) * (variance + gap / 3):
        about = f"about {expected:,.0f} labels by these probabilities, of {len(rates):,} rows"
        missing = "A label that was drawn and did not come is missing, not undrawn"
        remedy = f"{missing}, and one that came in another way was not drawn: either would break the promise."
        raise InvalidInput("probability", expected=about, got=f"{there:,}", remedy=remedy)


class Draw(Struct, frozen=True):
    """Random numbers of one calibration, from the system's randomness, kept as 64 hexadecimal digits."""

    key: str

    @classmethod
    def fresh(cls) -> Draw:
        return cls(fresh_bytes(32).hex())

    @property
    def uniform(self) -> float:
        """The secret number that decides at the end."""
        return float(self._generator(0).random())

    def order(self, units: int) -> Ints:
        """The order in which the units are counted; a table has none that could be trusted."""
        return self._generator(1).permutation(units)

    def coins(self, rows: int) -> Floats:
        """One number per row, for rows kept by chance."""
        return self._generator(2).random(rows)

    def _generator(self, stream: int) -> np.random.Generator:
        return np.random.default_rng([stream, *bytes.fromhex(self.key)])
