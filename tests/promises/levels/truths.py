"""What each promise asks for at the boundary of a world, and whether a list keeps it: worked out, not simulated.

``CASES`` has every kind; one that is missing here turns the matrix red.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import binom

import surelist as sl
from surelist.promises.conditions import Conditions
from tests.promises.levels.worlds import TOP, Floats, PoolWorld, World, ranks

ALPHA = 0.25
HAIR = 1 + 1e-9
CLOSE = 1e-12


@dataclass(frozen=True)
class Case:
    """One promise of a kind from rows: ``rows`` calibration rows for each group, ``fine`` scores or tied ones."""

    rows: int = 50
    others: int = 150
    fine: bool = False

    def fits(self, asked: Conditions) -> bool:
        """Whether this form of the promise can be asked for with these conditions."""
        return True

    def ask(self, found: World, asked: Conditions, group: str | None) -> Any:
        """The promise that the list of the top misses by a hair."""
        raise NotImplementedError

    def false(
        self, found: World, asked: Conditions, cutoff: Any, score: str, listed: Any, extra: Any
    ) -> float:
        """The chance that it is false, given the policy; ``listed(size)`` is the share of each type on the list."""
        raise NotImplementedError


def top(found: World, asked: Conditions) -> Floats:
    """The list that falls short; where ties are broken, half of the top, all of whom have one score."""
    return (found.a >= TOP).astype(np.float64) * (0.5 if asked.ties == "hash" else 1.0)


def of_group(found: World, group: str | None) -> Floats:
    return np.ones(len(found.a)) if group is None else found.member[group].astype(float)


def held(found: World, asked: Conditions, group: str | None, listed: Floats, worth: Any = None) -> float:
    """Qualified and listed, as a share of all candidates (of the group)."""
    own, what = of_group(found, group), found.good if worth is None else worth
    whole = 1.0 if group is None or asked.groups.startswith("all") else float((found.pool * own).sum())
    return float((found.pool * own * listed * what).sum()) / whole


@dataclass(frozen=True)
class ExpectedCase(Case):
    def ask(self, found, asked, group):
        return sl.Expected(100 * held(found, asked, group, top(found, asked)) * HAIR, 100)

    def false(self, found, asked, cutoff, score, listed, extra):
        return float(held(found, asked, cutoff.group, listed()) < float(cutoff.target.rate) - CLOSE)


def kept(found: World, group: str | None, listed: Floats) -> float:
    mine = found.pool * of_group(found, group) * found.good
    return float((mine * listed).sum() / mine.sum())


@dataclass(frozen=True)
class RecallCase(Case):
    def ask(self, found, asked, group):
        return sl.Recall(kept(found, group, top(found, asked)) * HAIR)

    def false(self, found, asked, cutoff, score, listed, extra):
        return float(kept(found, cutoff.group, listed()) < cutoff.target.share - CLOSE)


@dataclass(frozen=True)
class PrecisionCase(Case):
    start: float | None = 0.12

    def ask(self, found, asked, group):
        return sl.Precision(self._share(found, top(found, asked)) * HAIR, start=self.start)

    def false(self, found, asked, cutoff, score, listed, extra):
        return float(self._share(found, listed()) < cutoff.target.share - CLOSE)

    @staticmethod
    def _share(found, listed):
        return float((found.pool * listed * found.good).sum() / (found.pool * listed).sum())


@dataclass(frozen=True)
class TriageCase(Case):
    """One side at its boundary; the other passes all its steps and hands its half of alpha over."""

    rows: int = 100
    fine: bool = True
    side: str = "accept"

    def ask(self, found, asked, group):
        if self.side == "accept":
            return sl.Triage(PrecisionCase._share(found, top(found, asked)) * HAIR, reject=0.3)
        if self.side == "reject":
            return sl.Triage(0.2, reject=self._bad(found, found.a < TOP) * HAIR)
        return sl.Triage(0.2, reject_recall=kept(found, None, top(found, asked)) * HAIR)

    def false(self, found, asked, cutoff, score, listed, extra):
        target, looked = cutoff.target, found.a >= cutoff.proof.reject_below
        wrong = PrecisionCase._share(found, listed()) < target.accept - CLOSE
        if target.reject is not None:
            return float(wrong or self._bad(found, ~looked) < target.reject - CLOSE)
        return float(wrong or kept(found, None, looked.astype(float)) < target.reject_recall - CLOSE)

    @staticmethod
    def _bad(found, rejected):
        """Of those rejected, who are not qualified; everyone where nobody is rejected."""
        mine = found.pool * rejected
        return float((mine * ~found.good).sum() / mine.sum()) if mine.sum() else 1.0


@dataclass(frozen=True)
class BudgetCase(Case):
    def ask(self, found, asked, group):
        return sl.Budget(100 * float((found.pool * top(found, asked)).sum()), 100)

    def false(self, found, asked, cutoff, score, listed, extra):
        return float(cutoff.proof.k > 100 * held(found, asked, None, listed()) + CLOSE)


@dataclass(frozen=True)
class ValueCase(Case):
    rows: int = 80

    def ask(self, found, asked, group):
        return sl.Value(100 * held(found, asked, None, top(found, asked), found.worth) * HAIR, 100)

    def false(self, found, asked, cutoff, score, listed, extra):
        return float(held(found, asked, None, listed(), found.worth) < cutoff.target.k / 100 - CLOSE)


@dataclass(frozen=True)
class FalseShareCase(Case):
    rows: int = 200
    others: int = 25
    fine: bool = True

    def ask(self, found, asked, group):
        return sl.FalseShare(ALPHA)

    def false(self, found, asked, cutoff, score, listed, extra):
        """The expected share of this pool's list, given its scores."""
        own = found.a[extra]
        shares = [found.pool[(found.a == each)] for each in own]
        bad = [(found.pool * ~found.good)[found.a == each].sum() for each in own]
        chance = np.array([b / s.sum() for b, s in zip(bad, shares, strict=True)])
        on = own >= cutoff.steps[0].threshold
        return float(chance[on].mean()) if on.any() else 0.0


@dataclass(frozen=True)
class ThisListCase(Case):
    others: int = 25
    fine: bool = True

    def ask(self, found, asked, group):
        return sl.ThisList(8)

    def false(self, found, asked, cutoff, score, listed, extra):
        """The chance that the pool's list holds fewer, given its scores: candidates are independent."""
        counts, own = np.ones(1), found.a[extra]
        for each in own[own >= cutoff.steps[0].threshold]:
            here = found.a == each
            good = (found.pool * found.good)[here].sum() / found.pool[here].sum()
            counts = np.convolve(counts, [1 - good, good])
        return float(counts[: cutoff.proof.held].sum())


@dataclass(frozen=True)
class PerPoolCase(Case):
    rows: int = 120
    fine: bool = True
    sizes: Any = 60

    def fits(self, asked):
        return self.sizes == 60 or (asked.promises == "one" and asked.cutoff == "own")

    def ask(self, found, asked, group):
        return sl.PerPool(2, self.sizes)

    def false(self, found, asked, cutoff, score, listed, extra):
        sizes = [60] if self.sizes == 60 else [40, 50, 60]
        short = [float(binom.cdf(1, m, held(found, asked, cutoff.group, listed(m)))) for m in sizes]
        if asked.rule == "exact":
            return short[len(short) // 2]
        # two levels: false of the sample, where pools of any size fail more often than is said
        return float(max(short) > cutoff.level.pool_alpha + CLOSE)


@dataclass(frozen=True)
class PoolCase:
    """A promise whose units are whole pools."""

    target: Any
    pools: int = 23
    fixed: bool = True  # what is asked for is known beforehand, and not worked out at a boundary

    def fits(self, asked: Conditions) -> bool:
        if asked.labels == "missing" and self.target.every_label:
            return False
        return not (asked.bad_rows == "dropped" and self.target.amounts)

    def ask(self, found: PoolWorld) -> Any:
        if self.fixed:
            return self.target
        best = found.scored & (found.a >= np.quantile(found.a, 0.6))
        what = found.worth if self.target.amounts else found.good
        return sl.PoolAverage(float((what * best).sum(axis=1).mean()) * HAIR, of=self.target.of)

    def false(self, found: PoolWorld, asked: Conditions, policy: Any, scores: Floats) -> float:
        """Of the next pool, whether it keeps every group's promise."""
        cutoff = policy.cutoffs[0]
        target, at = (
            cutoff.target,
            ranks(np.where(found.scored, scores, -np.inf)) if cutoff.target.by_rank else scores,
        )
        listed = found.scored & (at >= cutoff.steps[0].threshold)
        if not self.fixed:
            what = found.worth if target.amounts else found.good
            return float((what * listed).sum(axis=1).mean() < target.k - CLOSE)
        short = ~found.scored.any(axis=1)  # nobody can be listed: it reaches nothing
        for each in policy.cutoffs:
            good = found.good & found.scored & (True if each.group is None else found.member[each.group])
            short |= (good & listed).sum(axis=1) < each.target.needed(good.sum(axis=1))
        chance = float(short.mean())
        return chance if asked.rule == "exact" else float(chance > cutoff.level.pool_alpha + CLOSE)


CASES: dict[type, tuple[Any, ...]] = {
    sl.Expected: (ExpectedCase(),),
    sl.PerPool: (PerPoolCase(), PerPoolCase(sizes=(40, 60))),
    sl.Recall: (RecallCase(),),
    sl.Precision: (PrecisionCase(), PrecisionCase(start=None)),
    sl.Triage: (TriageCase(), TriageCase(side="reject"), TriageCase(side="recall")),
    sl.Budget: (BudgetCase(),),
    sl.NextPool: (
        PoolCase(sl.NextPool(k=1)), PoolCase(sl.NextPool(recall=0.5)), PoolCase(sl.NextPool(k=2, by="rank")),
    ),
    sl.PoolAverage: (PoolCase(sl.PoolAverage(1), fixed=False), PoolCase(sl.PoolAverage(1, of="value"), fixed=False)),
    sl.Value: (ValueCase(),),
    sl.FalseShare: (FalseShareCase(),),
    sl.ThisList: (ThisListCase(),),
    sl.AtLeast: (Case(),),
}  # fmt: skip
