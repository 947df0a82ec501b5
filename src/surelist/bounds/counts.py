"""The theorems as numbers: (n, rate, alpha) to a critical count, a rate or a band.

A *critical count* is the smallest number of qualified calibration rows scoring at or above a
threshold that certifies a target [theory: one-idea]; one test at the boundary is enough
[theory: boundary-lemma]. Nothing here sees data, policies or random numbers. A count of ``n + 1``
means that no outcome of n rows certifies the target.

Floating point errs to the safe side: a tail within a relative ``_tails.MARGIN`` of alpha counts
as too large, so a count may come out one too large at an exact tie, never one too small.

*Looked at again and again* [theory: reviews]. A campaign looks at its rows n_0 < n_1 < ... times. The number
of qualified rows scoring above the boundary t* is a walk of n steps, each one with probability q <= p0.
``FirstCrossing`` hands out counts c_0, c_1, ... such that the chance that the walk is at or above c_j at
*any* look j is at most alpha. Each count is the smallest one that the budget of its look allows, and what
the looks before could not spend (counts are whole numbers) is carried over. The chance is computed, not
bounded: the distribution of the walk that has not crossed yet is kept and convolved with the binomial steps
to the next look. Probability beyond nine standard deviations, and all rounding, is counted as if it had
crossed. The walk with q < p0 lies below the one with p0 (couple the steps), so p0 is the worst case.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

import numpy as np

from surelist import _check as check
from surelist._arrays import Floats, Ints, special
from surelist.bounds import _tails as tails
from surelist.bounds.simultaneous import MOST_ROWS, equal_local_levels
from surelist.errors import InvalidInput

__all__ = [
    "RULES",
    "bernstein_k",
    "bernstein_worst",
    "binomial_tail",
    "bins_critical_count",
    "certifies",
    "critical_count",
    "dkw_epsilon",
    "exact_interval",
    "excess_count",
    "excess_paper",
    "largest_rate",
    "pac_rate",
    "pool_beside_count",
    "pool_certifies",
    "pool_critical_count",
    "pool_tail",
    "simultaneous_family",
]

Rate = float | Fraction

RULES = ("exact", "dkw", "simultaneous")


def critical_count(n: int, rate: Rate, alpha: float, rule: str = "exact") -> int:
    """Smallest count of qualified rows among ``n`` that certifies P(Y=1, F>=t) >= ``rate``.

    ``exact`` [theory: exact]: the smallest valid count for a target fixed beforehand.
    ``dkw`` [theory: dkw]: the paper's rule (Theorem 4); the target may be chosen after looking.
    ``simultaneous`` [theory: simultaneous]: the target may be chosen after looking; shorter lists than
    ``dkw`` for rates from 1 % to 12 %, longer ones beyond 20 % of up to a million rows.
    All three assume i.i.d. rows and a score fixed independently of them.
    """
    n = check.as_count(n, "n")
    fraction = check.as_rate(rate, "rate")
    alpha = check.as_alpha(alpha)
    rule = check.as_choice(rule, RULES, "rule")
    if rule == "dkw":
        return _dkw_count(n, fraction, alpha)
    if rule == "simultaneous":
        return _simultaneous_count(n, fraction, alpha)
    return _exact_count(n, fraction, alpha)


def certifies(n: int, rate: Rate, alpha: float, count: int) -> bool:
    """Whether ``count`` of ``n`` rows certify ``rate``: one exact tail, no search [theory: exact].

    For verifying a count that was found before: the tail is summed without SciPy, and compared with
    alpha less half the margin that ``critical_count`` keeps, so that no rounding stands between the two.
    """
    n, alpha = check.as_count(n, "n"), check.as_alpha(alpha)
    p = math.nextafter(float(check.as_rate(rate, "rate")), 1.0)
    return 1 <= count <= n and tails.summed_tail(n, p, count) <= alpha * (1 - tails.MARGIN / 2)


def pool_certifies(n: int, k: int, pool_size: int, alpha: float, count: int) -> bool:
    """Whether ``count`` of ``n`` rows certify k in this pool: one tail, no search [theory: per-pool]."""
    return 1 <= count <= n and pool_tail(n, k, pool_size, count) <= tails.safe(check.as_alpha(alpha))


def dkw_epsilon(n: int, alpha: float) -> float:
    """Half-width of the DKW-Massart band: sqrt(ln(2/alpha) / (2n)) [theory: dkw]."""
    return math.sqrt(math.log(2 / check.as_alpha(alpha)) / (2 * check.as_count(n, "n")))


def bins_critical_count(n: int, rate: Rate, alpha: float, bins: int) -> int:
    """Smallest count in the best ``bins`` score bins that certifies ``rate`` [theory: bins].

    ceil(n (rate + 2 bins epsilon)): every score interval is within 2 epsilon of its rate at
    once (Proposition 6), so the bins may be cut after looking at the rows.
    """
    n = check.as_count(n, "n")
    bins = check.as_count(bins, "bins")
    return _dkw_count(n, check.as_rate(rate, "rate"), check.as_alpha(alpha), 2 * bins)


def binomial_tail(n: int, rate: Rate, count: int) -> float:
    """P(Binomial(n, rate) >= count)."""
    return tails.binomial_tail(check.as_count(n, "n"), float(check.as_rate(rate, "rate")), int(count))


def twins_apart(apart: int, pairs: int, rows: int, others: int) -> float:
    """A bound on the chance that of ``pairs`` values that ``rows`` and ``others``, drawn alike, hold exactly
    twice, ``apart`` or more are on both sides [theory: setting]."""
    total = max(1, rows + others)
    return (total + 1) * tails.binomial_tail(pairs, 2 * rows * others / total**2, apart)


def pool_critical_count(n: int, k: int, pool_size: int, alpha: float) -> int:
    """Smallest count that certifies k qualified candidates in *this* pool [theory: per-pool].

    min{c : P(Hypergeometric(n+m, n, c+k-1) >= c) <= alpha}, over calibration rows and pool
    together; exact for untied scores, and ties only help. Holds for a pool of exactly
    ``pool_size`` and for any larger one whose size does not depend on how good it looks.
    """
    n = check.as_count(n, "n")
    alpha = check.as_alpha(alpha)
    pool_size = check.as_count(pool_size, "pool_size")
    return _pool_count(n, check.as_whole_k(k, pool_size), pool_size, alpha)


# equally likely parts of a law, each taken at its worst end: never too small, 1/CELLS too large
CELLS = 20_000


def pool_beside_count(n: int, k: int, pool_size: int, alpha: float, beside: float) -> int:
    """Smallest count that certifies k in *this* pool beside promises at level ``beside`` [theory: no-split].

    min{c : E max(beside, P(Bin(n, U) >= c)) <= alpha}, U the k-th smallest of ``pool_size`` uniform numbers:
    all of them hold together at alpha, for promises whose boundary the population fixes.
    """
    n, pool_size = check.as_count(n, "n"), check.as_count(pool_size, "pool_size")
    alpha, beside = check.as_alpha(alpha), check.as_alpha(beside, "beside")
    return _pool_beside_count(n, check.as_whole_k(k, pool_size), pool_size, alpha, beside)


@lru_cache(maxsize=1024)
def _pool_beside_count(n: int, k: int, pool_size: int, alpha: float, beside: float) -> int:
    ends = _upper_ends(k, pool_size)

    def holds(count: int) -> bool:
        level = float(np.mean(np.maximum(beside, special.betainc(count, n - count + 1, ends))))
        return level <= tails.safe(alpha)

    return tails.smallest(holds, 1, n)


@lru_cache(maxsize=16)
def _upper_ends(k: int, pool_size: int) -> Floats:
    ends = special.betaincinv(k, pool_size - k + 1, np.arange(1, CELLS + 1) / CELLS)
    return np.asarray(np.minimum(ends * (1 + tails.MARGIN), 1.0))


def pool_tail(n: int, k: int, pool_size: int, count: int) -> float:
    """P(the pool's k-th best qualified candidate scores below the count-th best of n rows)."""
    n, count = check.as_count(n, "n"), check.as_count(count, "count")
    pool_size = check.as_count(pool_size, "pool_size")
    return tails.pool_tail(n, check.as_whole_k(k, pool_size), pool_size, count)


def pac_rate(k: int, pool_size: int, alpha: float) -> float:
    """Smallest rate at which a pool holds >= k with probability >= 1-alpha [theory: per-pool]."""
    pool_size = check.as_count(pool_size, "pool_size")
    k = check.as_whole_k(k, pool_size)
    rate = float(special.betainccinv(k, pool_size - k + 1, check.as_alpha(alpha)))
    return min(1.0, rate * (1 + tails.MARGIN))


def bernstein_worst(k: float, alpha: float) -> float:
    """Qualified candidates in a single pool whose expectation is k [theory: bernstein].

    k - L/3 - sqrt(L^2 + 18kL)/3 with L = ln(1/alpha); holds with probability >= 1-alpha for
    a pool of fixed size. It counts qualified candidates, not the length of the list.
    """
    k = check.as_positive(k, "k")
    log = math.log(1 / check.as_alpha(alpha))
    return k - log / 3 - math.sqrt(log * log + 18 * k * log) / 3


def bernstein_k(k_worst: float, alpha: float) -> float:
    """Expectation that ensures ``k_worst`` in a single pool: the inverse of the above.

    k_worst + 4L/3 + sqrt(16L^2/9 + 2 k_worst L): plus before the root (the paper prints
    minus, which would promise more than Proposition 4 gives).
    """
    k_worst = check.as_positive(k_worst, "k_worst")
    log = math.log(1 / check.as_alpha(alpha))
    return k_worst + 4 * log / 3 + math.sqrt(16 * log * log / 9 + 2 * k_worst * log)


def largest_rate(n: int, count: int, alpha: float, rule: str = "exact") -> float:
    """Largest rate that ``count`` qualified rows among ``n`` certify; 0.0 where none."""
    n = check.as_count(n, "n")
    alpha = check.as_alpha(alpha)
    rule = check.as_choice(rule, RULES, "rule")
    if count == 0:
        return 0.0
    count = check.as_count(count, "count")
    if count > n:
        raise InvalidInput("count", expected=f"at most n={n}", got=f"{count}")
    band = max(0.0, count / n - dkw_epsilon(n, alpha) - 1e-12)
    if rule == "dkw":
        return band
    if rule == "simultaneous":
        counts, rates = simultaneous_family(n, alpha)
        reached = int(np.searchsorted(counts, count, side="right"))
        # a hair below, so that k = rate * m, divided by m again, is still certified
        largest = float(rates[reached - 1]) * (1 - 1e-15) if reached else 0.0
        return max(largest, band) if n > MOST_ROWS else largest
    return float(special.betaincinv(count, n - count + 1, tails.safe(tails.safe(alpha))))


def exact_interval(n: int, count: int, alpha: float) -> tuple[float, float]:
    """Clopper-Pearson interval for a share: each side wrong with probability at most alpha/2."""
    if n == 0:
        return 0.0, 1.0
    return largest_rate(n, count, alpha / 2), 1.0 - largest_rate(n, n - count, alpha / 2)


def simultaneous_family(n: int, alpha: float) -> tuple[Ints, Floats]:
    """Counts c_j and rates r_j such that, with probability >= 1-alpha, all hold at once.

    For every threshold t: P(Y=1, F>=t) >= max{r_j : c_j <= N(t)} [theory: simultaneous]. A step
    function: between two counts of the family the rate of the lower one holds, never an
    interpolation. Equal local levels for counts between n/100 and n/5, a hundredth of that
    level outside; the common level is solved so that the crossing probability is alpha. Beyond a million
    rows the family is thinner and spends alpha/2; the other half pays for the ``dkw`` count, and the
    rule takes the better of the two: there it is never looser than ``dkw``.
    """
    return equal_local_levels(check.as_count(n, "n"), check.as_alpha(alpha))


def excess_paper(n: int, pool_size: float, alpha: float) -> float:
    """Proposition 3: the excess over the best policy, m/n + m sqrt(2 ln(2/alpha)/n)."""
    n, alpha = check.as_count(n, "n"), check.as_alpha(alpha)
    pool_size = check.as_positive(pool_size, "pool_size")
    return pool_size / n + pool_size * math.sqrt(2 * math.log(2 / alpha) / n)


def excess_count(
    n: int, count: int, k: float, pool_size: float, alpha: float, *, untied: bool = False
) -> float:
    """The same from the ``count`` of rows that reach the threshold, whatever the ties.

    m (BetaQuantile(1-alpha; count+1, n-count) - k/m); for scores known to be ``untied``, where the count is
    the one that was needed, m (BetaQuantile(1-alpha; count, n-count+1) - k/m) [theory: dkw].
    """
    n, count, alpha = check.as_count(n, "n"), check.as_count(count, "count"), check.as_alpha(alpha)
    if count > n:
        raise InvalidInput("count", expected=f"at most n={n}", got=f"{count}")
    above = count if untied else count + 1
    top = float(special.betainccinv(above, n - above + 1, alpha)) if above <= n else 1.0
    return pool_size * top - k


@lru_cache(maxsize=4096)
def _dkw_count(n: int, rate: Fraction, alpha: float, widths: int = 1) -> int:
    """ceil(n*rate + widths*sqrt(n ln(2/alpha)/2)) in 50 digits, so that no rounding moves it."""
    with localcontext() as context:
        context.prec = 50
        slack = widths * (n * (2 / Decimal(alpha)).ln() / 2).sqrt()
        exact = Decimal(n * rate.numerator) / rate.denominator + slack
        return min(n + 1, math.ceil(exact))


def _exact_count(n: int, rate: Fraction, alpha: float) -> int:
    p = math.nextafter(float(rate), 1.0)
    centre = n * p - special.ndtri(min(alpha, 0.5)) * math.sqrt(n * p * (1 - p))
    guess = min(max(1, round(centre)), n)
    return tails.smallest(lambda c: tails.binomial_tail(n, p, c) <= tails.safe(alpha), 1, n, guess)


@lru_cache(maxsize=4096)
def _pool_count(n: int, k: int, pool_size: int, alpha: float) -> int:
    guess = min(max(1, round(n * special.betaincinv(k, pool_size - k + 1, 1 - alpha))), n)
    return tails.smallest(lambda c: tails.pool_tail(n, k, pool_size, c) <= tails.safe(alpha), 1, n, guess)


def _simultaneous_count(n: int, rate: Fraction, alpha: float) -> int:
    counts, rates = simultaneous_family(n, alpha)
    index = int(np.searchsorted(rates, float(rate) * (1 - 1e-12)))
    while index < len(rates) and Fraction(float(rates[index])) < rate:  # exact at the boundary
        index += 1
    count = int(counts[index]) if index < len(rates) else n + 1
    return min(count, _dkw_count(n, rate, alpha)) if n > MOST_ROWS else count


ROUNDING = 1e-13  # probability set aside per look for what floating point may lose
REACH = 9.0  # standard deviations kept on either side


class FirstCrossing:
    """Counts for one look after another; each depends on the row numbers so far and nothing else.

    ``rate`` is p0. ``next(rows, allowed)`` returns the smallest count c such that the chance
    of having crossed by this look is at most ``allowed``; ``rows + 1`` where no count will do.
    """

    def __init__(self, rate: float | Fraction) -> None:
        self.rate = math.nextafter(float(check.as_rate(rate, "rate")), 1.0)
        self.rows = 0
        self.spent = 0.0  # chance of having crossed so far
        self._alive = np.ones(1)  # _alive[i] = P(walk at _lowest + i, not crossed)
        self._lowest = 0

    def next(self, rows: int, allowed: float) -> int:
        """The critical count at ``rows`` rows in all, with ``allowed`` probability spent by then."""
        if rows < self.rows:
            least = f"at least the {self.rows:,} of the last look"
            raise InvalidInput("rows", expected=least, got=f"{rows:,}")
        self._advance(rows)
        lost = max(0.0, 1.0 - self.spent - float(self._alive.sum())) + ROUNDING
        budget = allowed * (1 - tails.MARGIN) - self.spent - lost
        crossing = np.append(np.cumsum(self._alive[::-1])[::-1], 0.0)  # from each state up
        cut = len(self._alive) if budget < 0 else int(np.argmax(crossing <= budget))
        self.spent += float(crossing[cut])
        self._alive = self._alive[:cut]
        return rows + 1 if budget < 0 else max(1, min(self._lowest + cut, rows + 1))

    def _advance(self, rows: int) -> None:
        first, step = _window(rows - self.rows, self.rate)
        self._alive = np.maximum(tails.convolve(self._alive, step), 0.0)
        self._lowest += first
        self.rows = rows
        spread = REACH * math.sqrt(rows * self.rate) + 12
        low = max(0, int(rows * self.rate - spread) - self._lowest)
        high = max(low, int(rows * self.rate + spread) + 1 - self._lowest)
        self._alive, self._lowest = self._alive[low:high], self._lowest + low


def first_crossing_counts(rows: Sequence[int], rate: float | Fraction, budgets: Sequence[float]) -> list[int]:
    """All counts at once, from the row numbers of the looks and the cumulative budgets."""
    walk = FirstCrossing(rate)
    return [walk.next(n, allowed) for n, allowed in zip(rows, budgets, strict=True)]


def _window(steps: int, rate: float) -> tuple[int, Floats]:
    """P(Binomial(steps, rate) = x) for the x that matter."""
    if steps == 0 or rate >= 1.0:
        return steps, np.ones(1)
    mean = steps * rate
    reach = REACH * math.sqrt(mean) + 12
    first, last = max(0, int(mean - reach)), min(steps, int(mean + reach) + 1)
    x = np.arange(first, last + 1, dtype=np.float64)
    return first, np.exp(tails.log_binomial(x, float(steps), rate))
