"""What is promised: ``Expected``, ``PerPool``, ``Recall``, ``Precision``, ``Budget``. Frozen values; no data.

A target knows which rules can certify it, how many qualified calibration rows each rule asks
for, and how to say itself in English.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import ClassVar, Literal

from surelist import _check as check
from surelist import _numerals as numerals
from surelist import bounds
from surelist._dataclasses import dataclass, replace
from surelist.errors import InvalidInput
from surelist.promises import phrases

MOST_SIZES = 2000  # pool sizes with a threshold of their own
MOST_ROWS = 10**9


@dataclass(frozen=True)
class Level:
    """How a target is to be certified: rule, alpha, and alpha's split where a rule has two.

    ``calibration_share`` is the part of alpha spent on the calibration rows by ``pac`` and
    ``bernstein``; the rest is spent on the pool.
    """

    alpha: float
    rule: str = "exact"
    calibration_share: float = 0.5

    @property
    def calibration_alpha(self) -> float:
        return self.alpha * self.calibration_share

    @property
    def pool_alpha(self) -> float:
        return self.alpha - self.calibration_alpha


@dataclass(frozen=True)
class Requirement:
    """Pools of at least ``pool_size`` need ``count`` qualified rows at or above the threshold."""

    pool_size: int
    count: int


@dataclass(frozen=True)
class Expected:
    """At least ``k`` qualified candidates on the shortlist of an average pool.

    With ``pool_size``, the number of candidates in a pool or its expectation where pools vary
    [theory: random-pool-size], rows are the units [theory: exact]; k may be fractional. Without it whole
    pools are the units and their size is what it may be: calibrate with ``pools=`` [theory: pools];
    ``spread`` is a guess, made beforehand, of the standard deviation of what a pool's list holds (a bad
    guess costs length, never validity).
    ``of="value"``: labels are amounts of at least 0 instead of 0 and 1, and k is an amount [theory: value].

    Examples
    --------
    >>> import surelist as sl
    >>> sl.Expected(5, pool_size=100).describe()
    'at least 5 qualified candidates on average in pools of 100'
    """

    k: float
    pool_size: float = None  # type: ignore[assignment]  # None: pools of any size, with pools=
    spread: float | None = None
    of: Literal["count", "value"] = "count"
    rules: ClassVar[tuple[str, ...]] = bounds.RULES

    def __post_init__(self) -> None:
        for name in ("k", "pool_size", "spread"):
            value = getattr(self, name)
            if value is not None or name == "k":
                check.as_positive(value, name)
                object.__setattr__(self, name, check.plain(value))
        check.as_choice(self.of, ("count", "value"), "of")
        if self.pool_size is None:
            return
        if self.of == "count" and self.k > self.pool_size:
            raise InvalidInput(f"k: expected at most pool_size={self.pool_size:g}, got {self.k:g}.")
        if self.of == "count" and self.spread is not None:
            raise InvalidInput(
                "spread: goes with pools of any size or with values; leave pool_size out and give pools=."
            )

    @property
    def rate(self) -> Fraction:
        if self.pool_size is None or self.of == "value":
            raise InvalidInput(
                f"target: {self!r} needs whole pools or values; rows as units need Expected(k, pool_size)."
            )
        return check.as_fraction(self.k, "k") / check.as_fraction(self.pool_size, "pool_size")

    def requirements(self, rows: int, qualified: int, level: Level) -> tuple[Requirement, ...]:
        return (Requirement(0, bounds.critical_count(rows, self.rate, level.alpha, level.rule)),)

    def count_at(self, pool_size: int, rows: int, qualified: int, level: Level) -> int:
        """The smallest valid count for a step of this pool size (there is one, at 0)."""
        return self.requirements(rows, qualified, level)[0].count

    def limit_rate(self, level: Level) -> float:
        """The share of qualified rows below which no number of rows would do."""
        return float(self.rate)

    def largest(self, rows: int, qualified: int, level: Level) -> float:
        """Largest k that ``qualified`` of ``rows`` certify; at most pool_size."""
        return self.pool_size * bounds.largest_rate(rows, qualified, level.alpha, level.rule)

    def describe(self) -> str:
        what = phrases.qualified(self.k) if self.of == "count" else f"{numerals.number(self.k, 10)} of value"
        pools = "per pool" if self.pool_size is None else f"in pools of {numerals.number(self.pool_size, 10)}"
        return f"at least {what} on average {pools}"


@dataclass(frozen=True)
class PerPool:
    """At least ``k`` qualified candidates on the shortlist of every single pool.

    ``pool_size=100`` covers pools of 100 or more whose candidates are independent draws;
    ``pool_size=(50, 200)`` every size from 50, each with its own threshold, and larger ones with
    the threshold of 200 [theory: per-pool]. Without it whole pools are the units: calibrate with
    ``pools=`` [theory: pools]. Then ``recall`` may stand for k (a share of the pool's own qualified),
    and ``by="rank"`` lists each pool's best by rank instead of by score.

    Examples
    --------
    >>> import surelist as sl
    >>> sl.PerPool(recall=0.9).describe()
    "at least 90% of every pool's own qualified candidates kept"
    """

    k: int = None  # type: ignore[assignment]  # None: recall is given
    pool_size: int | tuple[int, int] = None  # type: ignore[assignment]  # None: any size, with pools=
    recall: float | None = None
    by: Literal["score", "rank"] = "score"
    rules: ClassVar[tuple[str, ...]] = ("exact", "pac", "bernstein")

    def __post_init__(self) -> None:
        check.as_choice(self.by, ("score", "rank"), "by")
        if self.pool_size is None:
            self._check_pools()
            return
        if self.recall is not None or self.by != "score":
            raise InvalidInput(
                "pool_size: recall= and by= need whole pools; leave pool_size out, give pools=."
            )
        size = self.pool_size
        if isinstance(size, (tuple, list)):
            if len(size) != 2:
                raise InvalidInput(f"pool_size: expected a size or (smallest, largest), got {size!r}.")
            smallest, largest = (check.as_count(s, "pool_size") for s in size)
            if smallest > largest:
                raise InvalidInput(f"pool_size: expected (smallest, largest), got {tuple(size)!r}.")
            object.__setattr__(self, "pool_size", (smallest, largest))
        else:
            object.__setattr__(self, "pool_size", check.as_count(size, "pool_size"))
        object.__setattr__(self, "k", check.as_whole_k(self.k, self.sizes[0]))

    def _check_pools(self) -> None:
        if (self.k is None) == (self.recall is None):
            raise InvalidInput("k: expected k or recall, one of them.")
        if self.recall is None:
            object.__setattr__(self, "k", check.as_count(self.k, "k"))
        elif isinstance(self.recall, bool) or self.recall != 1:
            object.__setattr__(self, "recall", check.as_alpha(self.recall, "recall"))

    @property
    def sizes(self) -> tuple[int, int]:
        """Smallest and largest pool size with a threshold of its own."""
        size = self.pool_size
        if size is None:
            raise InvalidInput(
                f"target: {self!r} needs whole pools; rows as units need PerPool(k, pool_size)."
            )
        return size if isinstance(size, tuple) else (size, size)

    def requirements(self, rows: int, qualified: int, level: Level) -> tuple[Requirement, ...]:
        """One count per size; a very wide range goes in steps, each valid for the sizes above it."""
        smallest, largest = self.sizes
        sizes: Sequence[int] = range(smallest, largest + 1)
        if len(sizes) > MOST_SIZES:
            ratio = (largest / smallest) ** (1 / (MOST_SIZES - 1))
            grid = {round(smallest * ratio**i) for i in range(MOST_SIZES)} | {largest}
            sizes = sorted(size for size in grid if size <= largest)
        steps: list[Requirement] = []
        self._descend(rows, level, sizes, 0, len(sizes) - 1, steps)
        return tuple(steps)

    def _descend(
        self, rows: int, level: Level, sizes: Sequence[int], low: int, high: int, steps: list[Requirement]
    ) -> None:
        """The count never grows with the pool: bisect until both ends of a stretch agree."""
        first, last = (self._count(rows, sizes[end], level) for end in (low, high))
        if not steps or steps[-1].count != first:
            steps.append(Requirement(sizes[low], first))
        if first == last:
            return
        if high - low == 1:
            steps.append(Requirement(sizes[high], last))
            return
        middle = (low + high) // 2
        self._descend(rows, level, sizes, low, middle, steps)
        self._descend(rows, level, sizes, middle, high, steps)

    def _count(self, rows: int, size: int, level: Level) -> int:
        if level.rule == "exact":
            return bounds.pool_critical_count(rows, self.k, size, level.alpha)
        if level.rule == "pac":
            rate = bounds.pac_rate(self.k, size, level.pool_alpha)
            # several sizes have several thresholds, which must all hold for this sample at once
            rule = "exact" if self.sizes[0] == self.sizes[1] else "simultaneous"
            return bounds.critical_count(rows, rate, level.calibration_alpha, rule)
        rate = bounds.bernstein_k(self.k, level.pool_alpha) / size
        if rate > 1:
            return rows + 1
        return bounds.critical_count(rows, rate, level.calibration_alpha, "dkw")

    def count_at(self, pool_size: int, rows: int, qualified: int, level: Level) -> int:
        """The smallest valid count for pools of this size."""
        return self._count(rows, pool_size, level)

    def limit_rate(self, level: Level) -> float:
        """The share of qualified rows below which no number of rows would do."""
        if level.rule == "bernstein":
            return bounds.bernstein_k(self.k, level.pool_alpha) / self.sizes[0]
        alpha = level.alpha if level.rule == "exact" else level.pool_alpha
        return bounds.pac_rate(self.k, self.sizes[0], alpha)

    def often_above(self, pool_size: int, rows: int, count: int, level: Level) -> float:
        """Of samples of this size, the share whose own long-run failure rate lies above alpha.

        For untied scores: the rate of qualified listed is Beta(count, rows-count+1), and failures
        are too frequent where it is below the rate that ``pac`` asks for [theory: per-pool].
        """
        return bounds.binomial_tail(rows, bounds.pac_rate(self.k, pool_size, level.alpha), count)

    def largest(self, rows: int, qualified: int, level: Level) -> float:
        """Largest whole k certifiable for the smallest pool; 0 where none."""
        low, high = 0, self.sizes[0]
        while low < high:
            middle = (low + high + 1) // 2
            if replace(self, k=middle)._count(rows, self.sizes[0], level) <= qualified:
                low = middle
            else:
                high = middle - 1
        return float(low)

    def describe(self) -> str:
        if self.recall is not None:
            return f"at least {100 * self.recall:g}% of every pool's own qualified candidates kept"
        if self.pool_size is None:
            return f"at least {phrases.qualified(self.k)} in every pool"
        smallest, _ = self.sizes
        return f"at least {phrases.qualified(self.k)} in every pool of {smallest} or more"


@dataclass(frozen=True)
class Recall:
    """The shortlist keeps at least a ``share`` of all qualified candidates [theory: recall].

    The share is the population's, P(F >= t given Y = 1); at the boundary a single pool's own
    recall lies below it about half the time.

    Examples
    --------
    >>> import surelist as sl
    >>> sl.Recall(0.95).describe()
    'at least 95% of all qualified candidates kept'
    """

    share: float
    rules: ClassVar[tuple[str, ...]] = ("exact",)

    def __post_init__(self) -> None:
        object.__setattr__(self, "share", check.as_alpha(self.share, "share"))

    def requirements(self, rows: int, qualified: int, level: Level) -> tuple[Requirement, ...]:
        fewest = self.fewest(level)
        if qualified < fewest:
            return (Requirement(0, fewest),)
        return (Requirement(0, bounds.critical_count(qualified, self.share, level.alpha)),)

    def fewest(self, level: Level) -> int:
        """The smallest number of qualified rows that certify anything: share^number <= alpha."""
        number = max(1, math.floor(math.log(level.alpha) / math.log(self.share)) - 1)
        while number < MOST_ROWS and bounds.critical_count(number, self.share, level.alpha) > number:
            number += 1
        return number

    def count_at(self, pool_size: int, rows: int, qualified: int, level: Level) -> int:
        """The smallest valid count (there is one step, at 0)."""
        return self.requirements(rows, qualified, level)[0].count

    def limit_rate(self, level: Level) -> float:
        """Any share of qualified rows will do, given enough rows."""
        return 0.0

    def largest(self, rows: int, qualified: int, level: Level) -> float:
        """Largest share certifiable: the one where dropping nobody is just enough."""
        return bounds.largest_rate(qualified, qualified, level.alpha) if qualified else 0.0

    def describe(self) -> str:
        return f"at least {100 * self.share:g}% of all qualified candidates kept"


@dataclass(frozen=True)
class Precision:
    """At least a ``share`` of the shortlist is qualified, and the list is as long as can be certified.

    ``start`` is the share of candidates on the first list tested, fixed
    beforehand: about half the list that is hoped for, from a plan or a pilot. Without it four starts share
    alpha. The lists come from ``unlabelled=`` scores [theory: precision]. ``rule="fdr"`` is another
    promise: the false share of one pool's list on average, by conformal selection.

    Examples
    --------
    >>> import surelist as sl
    >>> sl.Precision(0.8, start=0.1).describe()
    'at least 80% of the shortlist qualified'
    """

    share: float
    start: float | None = None
    rules: ClassVar[tuple[str, ...]] = ("exact", "fdr")

    def __post_init__(self) -> None:
        object.__setattr__(self, "share", check.as_alpha(self.share, "share"))
        if self.start is not None:
            start = getattr(self.start, "start", self.start)  # a plan says where
            object.__setattr__(self, "start", check.as_alpha(start, "start"))

    def describe(self) -> str:
        return f"at least {100 * self.share:g}% of the shortlist qualified"


@dataclass(frozen=True)
class Budget:
    """``size`` of ``pool_size`` candidates can be reviewed: how many qualified are certified on that list?

    The list comes from ``unlabelled=`` scores, the number certified is the answer [theory: budget].

    Examples
    --------
    >>> import surelist as sl
    >>> sl.Budget(10, 100).describe()
    'what a list of 10 of 100 candidates holds'
    """

    size: float
    pool_size: float
    rules: ClassVar[tuple[str, ...]] = ("exact",)

    def __post_init__(self) -> None:
        for name in ("size", "pool_size"):
            check.as_positive(getattr(self, name), name)
            object.__setattr__(self, name, check.plain(getattr(self, name)))
        if self.size >= self.pool_size:
            raise InvalidInput(f"size: expected less than pool_size={self.pool_size:g}, got {self.size:g}.")

    def describe(self) -> str:
        size, of = numerals.number(self.size, 10), numerals.number(self.pool_size, 10)
        return f"what a list of {size} of {of} candidates holds"


Target = Expected | PerPool | Recall  # certified by a count of qualified rows


@dataclass(frozen=True)
class AtLeast:
    """At least ``k`` qualified candidates on the list of one collection in hand [theory: few-labels].

    For ``Labelling``: it is about these very candidates and needs no assumption about where they come from.

    Examples
    --------
    >>> import surelist as sl
    >>> sl.AtLeast(50).describe()
    'at least 50 qualified candidates of this collection on the list'
    """

    k: int
    rules: ClassVar[tuple[str, ...]] = ("exact",)

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", check.as_count(self.k, "k"))

    def describe(self) -> str:
        return f"at least {phrases.qualified(self.k)} of this collection on the list"


AnyTarget = Target | Precision | Budget | AtLeast
