"""For every list size, what is certified: how many qualified candidates on average, at once or each by
itself; and what each length would carry in the terms of any other promise (recall, precision, every pool,
groups).

Each point of the curve of a promise holds by itself, for a promise fixed beforehand: it shows where the
chosen one lies, and is not for choosing another. What is certified at a point is worked out by the proof, in
``kinds``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar, get_args

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from surelist import _check as check, bounds
from surelist._arrays import Floats, Ints
from surelist._check import MissingLabels
from surelist._numerals import floored
from surelist.drawing import Display, Displayed, axes
from surelist.errors import InvalidInput
from surelist.promises.options import CurveRule
from surelist.promises.phrases import percent
from surelist.promises.state import Certificate, Cutoff

if TYPE_CHECKING:
    from surelist.promises.evidence import RowColumns

POINTS = 1000


class GuaranteeCurve(Displayed, Struct, frozen=True, eq=False):
    """List sizes and what is certified for each, all at once with probability >= 1-alpha.

    ``list_size[i]`` candidates of an average pool score at least ``threshold[i]`` (estimated
    from the calibration rows); at least ``qualified[i]`` of them are qualified on average
    (certified). Any point may be picked after looking [theory: simultaneous].

    Parameters
    ----------
    list_size, qualified, threshold : array
        One point for each list size.
    pool_size : float
        Candidates in a pool.
    alpha : float
        How often any point may be wrong.
    rule : str
        "simultaneous" or "dkw".
    rows : int
        Calibration rows behind it.

    Examples
    --------
    >>> import numpy as np
    >>> import surelist as sl
    >>> from surelist.examples import population
    >>> scores, labels = population(6, 1_000)
    >>> curve = sl.guarantee_curve(scores, labels, pool_size=100)
    >>> bool((np.diff(curve.qualified) >= 0).all())
    True
    """

    list_size: Floats
    qualified: Floats
    threshold: Floats
    pool_size: float
    alpha: float
    rule: str
    rows: int

    def plot(
        self, ax: axes.Axes | None = None, *, k: float | None = None, path: str | Path | None = None
    ) -> axes.Axes:
        """Draw the curve (needs the ``plots`` extra), on ``ax`` and to a file if given; returns the axes.

        ``k`` marks the shortest list on which that many are certified.
        """
        points = {self.rule: (self.list_size, self.qualified)}
        mark = None if k is None else self.shortest(k)
        return axes.picture(ax, path, axes.draw_curves, points, self.pool_size, self.alpha, mark)

    def shortest(self, k: float) -> tuple[float, float]:
        """The shortest list with at least ``k`` certified, and how many are certified on it."""
        reached = np.flatnonzero(self.qualified >= check.as_positive(k, "k"))
        if not len(reached):
            most = f"{floored(float(self.qualified.max(initial=0.0)), 4):g} of {self.pool_size:g}"
            raise InvalidInput("k", f"these rows certify at most {most}, got {k:g}.")
        return float(self.list_size[reached[0]]), float(self.qualified[reached[0]])

    @property
    def suggested(self) -> float:
        """A k to begin with: about half of what everyone on the list would certify; 0 where nothing is."""
        half = float(self.qualified.max(initial=0.0)) / 2
        return float(np.floor(half)) if half >= 1 else float(np.floor(half * 1000) / 1000)

    def _display(self) -> Display:
        holds = "each point by itself" if self.rule == "exact" else "all points at once"
        line = f"{len(self.list_size):,} list sizes, pools of {self.pool_size:g}, {holds}"
        wrong = f"{holds}, wrong with probability at most {percent(self.alpha)}"
        lead = f"For every list size, how many qualified candidates are certified: {wrong}."
        facts = [("calibration rows", f"{self.rows:,}"), ("pool size", f"{self.pool_size:g}")]
        points = self.describe(most=20).splitlines()[3:]
        line += f"; alpha {self.alpha:g}"
        return Display(line, lead, [*facts, ("rule", self.rule)], folded=[("The curve", points)])

    def describe(self, most: int = 40) -> str:
        """About ``most`` points of the curve as a table."""
        together = "holds by itself" if self.rule == "exact" else "holds at once"
        every = f"Every line {together} with probability at least {1 - self.alpha:g} (rule {self.rule})."
        lines = [every, "", f"{'list size':>10}  {'qualified (certified)':>21}  {'score at least':>14}"]
        shown = min(most, len(self.list_size))
        for i in np.linspace(0, len(self.list_size) - 1, shown).round().astype(int):
            certified = math.floor(100 * float(self.qualified[i])) / 100  # never more than it is
            lines.append(f"{self.list_size[i]:>10.1f}  {certified:>21.2f}  {self.threshold[i]:>14.6g}")
        return "\n".join(lines)


def guarantee_curve(
    scores: object,
    labels: object,
    pool_size: float = 100,
    alpha: float = 0.1,
    rule: CurveRule = "simultaneous",
    missing_labels: MissingLabels = "error",
) -> GuaranteeCurve:
    """For every list size: qualified candidates certified, simultaneously.

    With probability >= 1-alpha every point of the curve is true, so k may be chosen from it
    after looking; ``calibrate`` with the same rows, alpha and ``rule="simultaneous"`` then
    gives the matching policy. A step function: nothing is interpolated.

    Parameters
    ----------
    scores, labels : array_like
        Of the calibration rows, as for ``calibrate``.
    pool_size : float
        Candidates in a pool.
    alpha : float
        How often the curve may be wrong anywhere.
    rule : {"simultaneous", "dkw"}
        ``dkw`` is the paper's rule.
    missing_labels : {"error", "unqualified"}
        Whether missing labels count as not qualified.

    Returns
    -------
    GuaranteeCurve
        List sizes, thresholds, and what is certified for each.

    Raises
    ------
    InvalidInput
        A value that does not fit: the error names it, what was expected and what was found.

    Examples
    --------
    >>> import numpy as np
    >>> import surelist as sl
    >>> from surelist.examples import population
    >>> scores, labels = population(6, 1_000)
    >>> curve = sl.guarantee_curve(scores, labels, pool_size=100)
    >>> at = int(np.searchsorted(curve.list_size, 10))
    >>> f"review {curve.list_size[at]:.0f}, at least {curve.qualified[at]:.1f} qualified on average"
    'review 10, at least 5.3 qualified on average'
    """
    check.as_choice(rule, get_args(CurveRule), "rule")
    return curve_by(rule, scores, labels, pool_size, alpha, missing_labels)


def curve_by(
    rule: str, scores: object, labels: object, pool_size: float = 100, alpha: float = 0.1,
    missing_labels: MissingLabels = "error",
) -> GuaranteeCurve:  # fmt: skip
    """The curve by any rule; by the exact one what each list size certifies for a target fixed beforehand.

    Then each point holds by itself, not together with the others: this shows what was gained by
    fixing the target; it is not for choosing one [theory: simultaneous].
    """
    array, qualified, _ = check.labelled_rows(scores, labels, missing_labels)
    pool_size = check.as_positive(pool_size, "pool_size")
    if pool_size < 1:
        raise InvalidInput("pool_size", expected="at least 1", got=f"{pool_size:g}")
    alpha = check.as_level(alpha, calls=2)
    n, thresholds = len(array), list_thresholds(array, pool_size)
    lengths = count_at_least(array, thresholds).astype(np.float64) * (pool_size / n)
    certified = certified_rates(n, count_at_least(array[qualified], thresholds), alpha, rule)
    return GuaranteeCurve(lengths, certified * pool_size, thresholds, pool_size, alpha, rule, n)


def list_thresholds(scores: Floats, pool_size: float) -> Floats:
    """The scores at which lists of each size end, best first."""
    n, most = len(scores), min(pool_size, POINTS)  # every size up to the pool, or a thousand of a large one
    sizes = np.arange(1, most + 1, dtype=float) * max(1.0, pool_size / POINTS)
    ranks = np.unique(np.clip(np.ceil(sizes * n / pool_size).astype(np.int64), 1, n))
    ordered = np.partition(scores, n - ranks)
    thresholds: Floats = np.unique(ordered[n - ranks])[::-1]
    return thresholds


def count_at_least(values: Floats, thresholds: Floats) -> Ints:
    """#{values >= t} for descending thresholds, without sorting the values."""
    rising = thresholds[::-1]
    rank = np.searchsorted(rising, values, side="right")
    return np.cumsum(np.bincount(rank, minlength=len(rising) + 1)[::-1])[: len(rising)]


def certified_rates(n: int, counts: Ints, alpha: float, rule: str) -> Floats:
    """The largest rate that each count of n rows certifies by itself, or by the rule's band."""
    distinct, index = np.unique(counts, return_inverse=True)
    rates = [bounds.largest_rate(n, int(count), alpha, rule) for count in distinct]
    return np.asarray(rates)[index]


MOST_GROUPS = 6  # that are drawn
Numbers = TypeVar("Numbers")  # arrays, or lists where the curve is kept


class CurveOf(Struct, Generic[Numbers], frozen=True, eq=False):
    """For lists of ``list_size`` of ``per`` candidates the ``value`` certified, and the point ``chosen``.

    ``title`` and ``axis`` say what is certified, in more and in fewer words; ``share``: values are shares.
    ``of_pools``: list lengths are averages over whole pools.
    """

    title: str
    axis: str
    share: bool
    of_pools: bool
    per: float
    list_size: Numbers
    value: Numbers
    threshold: Numbers
    chosen: tuple[float, float]


PromiseCurve = CurveOf[Floats]


def curve_of(cutoff: Cutoff, per: float, *numbers: Any) -> PromiseCurve:
    """With the title and axis of its promise."""
    title, axis, share = cutoff.target.certified
    return PromiseCurve(title, axis, share, cutoff.target.whole_pools, per, *numbers)


def drawn(
    cutoff: Cutoff, rows: RowColumns, promised: float, certified: Callable[[Ints, Ints], Floats]
) -> PromiseCurve:
    """The curve of what is ``certified`` of (listed rows, qualified ones among them), per length."""
    per = float(cutoff.target.pool or 100.0)
    thresholds = list_thresholds(rows.scores, per)
    listed, held = (count_at_least(each, thresholds) for each in (rows.scores, rows.scores[rows.good]))
    on_list = float(np.count_nonzero(rows.scores >= cutoff.steps[0].threshold)) * (per / rows.rows)
    lengths, values = listed * (per / rows.rows), certified(listed, held)
    return curve_of(cutoff, per, lengths, values, thresholds, (on_list, promised))


def promise_curve(
    scores: object, labels: object, policy: Certificate, *, pools: object = None
) -> PromiseCurve | None:
    """The curve of a policy's promise on its calibration rows; None for kinds that have none, or another
    one."""
    if policy.grouped or policy.several or not _of_all_rows(policy):
        return None
    return policy.cutoffs[0].proof.curve(policy.cutoffs[0], _rows(scores, labels, pools))


def _rows(scores: object, labels: object, pools: object = None) -> RowColumns:
    from surelist.promises.evidence import RowColumns

    return RowColumns(np.asarray(scores, dtype=np.float64), np.asarray(labels, dtype=np.float64), pools)


def group_curves(
    scores: object, labels: object, groups: object, policy: Certificate
) -> dict[str, PromiseCurve]:
    """The curve of each group's promise, of the first few; empty where there are none.

    Each at the group's share of the chance of error.
    """
    if not policy.grouped or not _of_all_rows(policy):
        return {}
    rows, names = _rows(scores, labels), check.as_groups(groups)
    among = replace(rows, among=rows.rows) if policy.group_rows == "all" else rows
    made = {}
    for each in policy.cutoffs[:MOST_GROUPS]:
        group = policy.group_of(each)
        mine = among.part(None if group is None else np.asarray(names == str(group)))
        made[str(each.group)] = each.proof.curve(each, mine)
    return {group: curve for group, curve in made.items() if curve is not None}


def _of_all_rows(policy: Certificate) -> bool:
    """Whether every row counts as it is, with its label."""
    return not (policy.shift or policy.thinning or policy.missing_labels)
