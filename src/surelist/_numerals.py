"""Numbers as people write them, for pages, reports, pictures and notebooks; never an exponent.

The sentences of a policy file have a form of their own (``promises.phrases``), which is part of the format.
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

NEAR = 0.05  # an estimate that is rounded by less than this reads better rounded
MOST_DIGITS = 17  # of a float that is written out


def count(value: float) -> str:
    """A whole number with thousands apart: ``1,000,000``."""
    return f"{value:,.0f}"


def number(value: float | None, digits: int = 4) -> str:
    """A number to some significant digits, thousands apart: ``1,320``, ``0.00012``; a dash for none."""
    if value is None:
        return "–"
    if not math.isfinite(value) or value == 0:
        return "0" if value == 0 else f"{value:g}"
    places = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    rounded = float(f"{value:.{digits}g}")
    if not places:
        return f"{int(Decimal(repr(rounded))):,}"  # as it reads, not as it is stored
    text = f"{rounded:,.{min(places, MOST_DIGITS)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def about(value: float) -> str:
    """An estimate, without digits that mean nothing: ``7``, ``42``, ``1,320``, ``0.4``."""
    if value >= 10 or value <= 0:
        return number(value, 3) if value >= 100 else count(value)
    digits = next(d for d in range(MOST_DIGITS) if abs(round(value, d) - value) <= NEAR * value)
    return number(round(value, digits), 10)


def floored(value: float, digits: int = 2) -> float:
    """A number to some significant digits, never more than it is: ``6.7`` of 6.799."""
    if value <= 0:
        return 0.0
    unit = Fraction(10) ** (math.floor(math.log10(value)) - digits + 1)
    return float(math.floor(Fraction(value) / unit) * unit)


def at_least(value: float, digits: int = 2) -> str:
    """A rough number of rows to gather, never less than it is: ``34``, ``240`` of 231, ``4,900`` of 4,816."""
    unit = 10 ** max(0, math.floor(math.log10(max(value, 1))) - digits + 1)
    return count(unit * math.ceil(value / unit))


def chance(value: float) -> str:
    """A small probability: ``0.03``, ``less than 0.0001``."""
    return number(value, 2) if value >= 1e-4 else "less than 0.0001"


def percent(value: float | None, digits: int = 3) -> str:
    """A share as a percentage: ``7.5%``."""
    return "–" if value is None else f"{number(100 * value, digits)}%"


def plain(value: float) -> str:
    """A number as a form field wants it: no commas, no exponent."""
    return number(value, 10).replace(",", "")


def moment(value: str) -> str:
    """An ISO time, shortened for reading."""
    return value[:16].replace("T", " ") + " UTC"


def one_in(share: float, what: str) -> str:
    """How often, never less often than it is: ``1 calibration in 10``, ``3 calibrations in 100``."""
    exact = Fraction(repr(float(share)))
    if exact.numerator == 1:
        return f"1 {what} in {exact.denominator:,}"
    for of in (100, 1_000, 10_000, 1_000_000):
        if (exact * of).denominator == 1:
            return f"{int(exact * of):,} {what}s in {of:,}"
    return f"{math.ceil(exact * 1_000_000):,} {what}s in 1,000,000"


def of_every(share: float) -> str:
    """A share as so many of so many: ``95 of every 100``."""
    exact = Fraction(repr(float(share)))
    for of in (100, 1_000, 10_000):
        if (exact * of).denominator == 1:
            return f"{int(exact * of):,} of every {of:,}"
    return f"{number(100 * share, 8)} of every 100"


def duration(seconds: int) -> str:
    """A span of time in the largest unit that it is a whole number of."""
    for size, name in ((86_400, "day"), (3600, "hour"), (60, "minute"), (1, "second")):
        if seconds >= size and seconds % size == 0:
            many = seconds // size
            return f"{count(many)} {name}{'s' * (many != 1)}"
    return f"{seconds} seconds"


FILTERS = {
    "plain": plain, "count": count, "number": number, "percent": percent, "moment": moment, "about": about,
    "duration": duration,
}  # fmt: skip
