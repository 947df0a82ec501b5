"""A plan: a table of calibration sizes, as a value that prints and draws itself. ``planning`` makes it.

From a guess of the population: the binormal model, or a pilot sample resampled.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct

from surelist import _check as check, _numerals as numerals
from surelist._arrays import Floats, Mask, special
from surelist._names import option
from surelist.drawing import Display, Displayed, axes
from surelist.errors import InvalidInput
from surelist.promises.promise import Promise

REPLICATES = 200
PER = 100.0  # lists of promises without a pool size are counted per 100 candidates
COVERAGE = 0.95
ASSUMED = (
    "Assumption: scores of qualified and other candidates are normal with equal variance (binormal "
    "model), base rate {base_rate:g} and AUC {auc:g}. A pilot sample replaces this guess."
)
RESAMPLED = (
    "From a pilot of {rows:,} rows, {qualified:,} of them qualified; intervals hold {coverage:.0%} of "
    "{replicates} resamples of it. Do not use the pilot rows for calibration: they chose n."
)
PAPER_RULES = ("dkw", "bernstein")
LIKELY = "certifiable with probability 90%"
HOPELESS = "Not even everyone on the list would do: the target exceeds the qualified there are."


class PlanRow(Struct, frozen=True):
    """What n calibration rows would give under one rule.

    ``assurance`` is the chance that the target is certifiable; ``list_size`` the expected list
    length if it is, and ``excess`` how far that lies above the oracle's, as a share. Intervals
    are those of a pilot, None without one or where nothing is certifiable. ``shortest``: of a recall of a
    collection, the list that no rule which ends it at a score can be sure to better.
    """

    rows: int
    rule: str
    critical_count: int
    assurance: float
    list_size: float | None
    excess: float | None
    interval: tuple[float, float] | None = None
    shortest: int | None = None


class Needed(Struct, frozen=True):
    """The n from which on any number certifies with this assurance; ``interval`` from a pilot's base rate.

    Counts are whole numbers, so that a few numbers below it may do as well, and some between them do not.
    """

    assurance: float
    rule: str
    rows: int | None
    interval: tuple[int | None, int | None] | None = None


class Plan(Displayed, Struct, frozen=True):
    """A table of calibration sizes; ``describe`` prints it, ``plot`` draws it.

    Parameters
    ----------
    target : promise
        What is planned for.
    alpha : float
        How often it may be wrong.
    basis, base_rate
        What the plan supposes of the candidates, and the share of them that qualifies.
    oracle : float
        The list, or what it holds, if the population were known; NaN where no list would do.
    table : tuple
        One row for each calibration size: how often it certifies, and what lists to expect.
    needed : tuple
        From which size on it is certified half of the time, and in 9 of 10.
    pools : int
        For how many pools the policy is to be used.
    enough : int, optional
        The size from which on one more label saves less than one review over these pools.
    unit, measure : str
        What calibration sizes count, and what the table measures.
    start : float, optional
        Of a precision: where its walk should begin.
    collection : int, optional
        Candidates, where the promise is about these alone.
    said : tuple of str
        Of a collection: what each number of labels is expected to give.

    Examples
    --------
    >>> import surelist as sl
    >>> plan = sl.plan(sl.Expected(5, 100), base_rate=0.19, auc=0.85, sizes=[300, 1_000])
    >>> plan.needs(0.9)
    40
    """

    target: Promise
    alpha: float
    basis: str
    base_rate: float
    oracle: float
    table: tuple[PlanRow, ...]
    needed: tuple[Needed, ...]
    pools: int
    enough: int | None
    unit: str = "rows"  # of calibration: rows, or whole pools
    measure: str = "list"  # in the table: how long lists are, how many are certified, or left to people
    start: float | None = None  # of a precision promise: where its walk should begin
    collection: int | None = None  # candidates, where the promise is about these alone
    said: tuple[str, ...] = ()  # of a collection: what each number of labels is expected to give, and at best

    def needs(self, assurance: float, rule: str = "exact") -> int | None:
        """The n from which on one of the assurances planned is reached, by every larger number too."""
        for each in self.needed:
            if each.assurance == assurance and each.rule == rule:
                return each.rows
        raise InvalidInput("assurance", f"this plan has 0.5 and 0.9, got {assurance!r} for {rule!r}.")

    @property
    def recommended(self) -> int | None:
        """What to gather: certifiable with probability 90 %, and as many as pay for themselves."""
        if not self.needed:  # by simulation: the smallest size of the table that will do
            short = [at for at, row in enumerate(self.table) if row.assurance < 0.9]
            after = self.table[short[-1] + 1 :] if short else self.table
            return after[0].rows if after else None
        rows = self.needs(0.9)
        return None if rows is None else max(rows, self.enough or 0)

    def recommendation(self) -> str:
        """What to do, in a sentence or two."""
        if self.said:
            return "\n".join(self.said)
        rows = self.recommended
        needed = self.needs(0.9) if self.needed else rows
        if rows is None or needed is None:
            none = f"{'No number' if self.needed else 'None of these numbers'} of calibration {self.unit}"
            return f"{none} makes it {LIKELY}. Ask for less, or look for a better score."
        more = f" {needed:,} or more make it {LIKELY}; the others save more reviews than they cost."
        return f"Gather about {numerals.at_least(rows)} calibration {self.unit}.{more * (rows > needed)}"

    def describe(self, paper: bool = False) -> str:
        """The recommendation, what it rests on, the table, and what is enough; ``paper``: its rule too."""
        per = "per pool" if self.target.pool or self.target.whole_pools else "per 100 candidates"
        if self.collection is not None:
            per = f"of {self.collection:,} candidates"
        asked = f"{self.target.describe()}, alpha {self.alpha:g}."
        best = f"Oracle list (the population known): {self.length(self.oracle)} {per}."
        if self.measure == "certified":
            best = f"Such a list holds {self.oracle:.2f} qualified candidates {per}."
        elif self.measure == "band":
            best = f"Left to people with the population known: {self.oracle:.2f} {per}."
        best = HOPELESS if math.isnan(self.oracle) else best
        lines = [self.recommendation(), "", asked, self.basis, "", best]
        if self.start is not None:
            lines.append(f"Begin the walk at half of that, at a start of {self.start:g}.")
        shown = [each for each in self.rules if paper or each not in PAPER_RULES]
        lines += ["", *_table(self, shown), ""]
        lines += [_needs(each, self.unit) for each in self.needed if each.rule in shown]
        if self.enough is not None:
            lines.append(
                f"From about {numerals.at_least(self.enough)} rows on, one more label saves less than one "
                f"review over {self.pools:,} pools (exact rule)."
            )
        return "\n".join(lines)

    def length(self, candidates: float) -> str:
        """The length of a list: on average per pool, or of this collection."""
        return f"{candidates:.2f}" if self.collection is None else f"{candidates:,.0f}"

    @property
    def rules(self) -> list[str]:
        """The rules that are planned for, in the order of the table."""
        return list(dict.fromkeys(row.rule for row in self.table))

    def _display(self) -> Display:
        needed = [_needs(each, self.unit) for each in self.needed if each.rule not in PAPER_RULES]
        oracle = HOPELESS if math.isnan(self.oracle) else f"{self.length(self.oracle)} candidates"
        known = {"certified": "such a list holds", "band": "left to people at best"}
        best = known.get(self.measure, "best possible list")
        asked = f"{self.target.describe()}, alpha {self.alpha:g}"
        rows = "no number of" if self.recommended is None else f"about {self.recommended:,}"
        facts = [("for", asked), (best, oracle), ("basis", self.basis)]
        folded = [("Calibration sizes", _table(self, self.rules)), ("Certifiable", needed)]
        return Display(f"{asked}: {rows} {self.unit}", self.recommendation(), facts, folded=folded)

    def plot(self, ax: axes.Axes | None = None, *, path: str | Path | None = None) -> axes.Axes:
        """Expected list length against n, and how many are enough (``plots`` extra; ``path``: a file)."""
        bands = []
        for rule in self.rules:
            rows = [row for row in self.table if row.rule == rule and row.list_size is not None]
            sizes = [row.list_size or 0.0 for row in rows]
            bands.append(axes.Band(rule, [row.rows for row in rows], sizes, [row.interval for row in rows]))
        title = f"{self.target.describe()}, alpha {self.alpha:g}"
        return axes.picture(ax, path, axes.draw_plan, bands, self.oracle, self.enough, title)


def _table(plan: Plan, rules: list[str]) -> list[str]:
    heads = (f"  {rule + ': certifiable':>22}  {plan.measure:>24}" for rule in rules)
    lines = [f"{plan.unit:>9}" + "".join(heads)]
    for n in dict.fromkeys(row.rows for row in plan.table):
        cells = [_cell(plan, row) for row in plan.table if row.rows == n and row.rule in rules]
        lines.append(f"{n:>9,}" + "".join(cells))
    return lines


def _cell(plan: Plan, row: PlanRow) -> str:
    size = "-" if row.list_size is None else plan.length(row.list_size)
    if row.excess is not None:
        size += f" ({100 * row.excess:+.0f}%)"
    if row.interval is not None:
        size += f" {row.interval[0]:.1f}-{row.interval[1]:.1f}"
    return f"  {row.assurance:>22.0%}  {size:>24}"


def _needs(each: Needed, unit: str) -> str:
    rows = f"no number of {unit}" if each.rows is None else f"{each.rows:,} {unit} or more"
    span = ""
    if each.interval is not None:
        low, high = (("never" if end is None else f"{end:,}") for end in each.interval)
        span = f" ({low} to {high} by the pilot's base rate)"
    if each.rule == "labelling":
        chosen = rows.removesuffix(" or more").replace("rows", "labels")
        return f"Certifiable with probability {each.assurance:.0%} from chosen labels: about {chosen}."
    return f"Certifiable with probability {each.assurance:.0%} under rule {each.rule}: {rows}{span}."


class Binormal(Struct, frozen=True):
    """Scores N(0, 1) for others and N(d, 1) for qualified candidates, d = sqrt(2) z(AUC)."""

    base_rate: float
    auc: float

    def listed(self, rates: Floats) -> Floats:
        """Share of candidates listed when a share ``rates`` is qualified and listed."""
        distance = math.sqrt(2) * special.ndtri(self.auc)
        share = np.clip(rates / self.base_rate, 0.0, 1.0)
        others = special.ndtr(special.ndtri(share) - distance)
        listed: Floats = np.minimum(rates, self.base_rate) + (1 - self.base_rate) * others
        return listed


class Empirical(Struct, frozen=True):
    """A sample as a population: cumulative shares of everyone and of qualified, best first."""

    everyone: Floats
    qualified: Floats

    @property
    def base_rate(self) -> float:
        return float(self.qualified[-1])

    def listed(self, rates: Floats) -> Floats:
        rank = np.searchsorted(self.qualified, rates * (1 - 1e-12))
        listed: Floats = self.everyone[np.minimum(rank, len(self.everyone) - 1)]
        return listed


Population = Binormal | Empirical  # what a plan needs to know: who is qualified, and how long the list is


class PlanRequest(Struct, frozen=True):
    """What is to be planned, and from what: ``sizes`` that somebody asked for, a guess or a pilot."""

    target: Any
    alpha: float
    sizes: list[int] | None
    pools: int
    seed: int
    base_rate: float | None
    auc: float | None
    pilot: Any

    def populations(self) -> tuple[Population, list[Empirical], tuple[float, float] | None, str]:
        """The best guess, its resamples, an interval for the base rate, and what they rest on."""
        base_rate, auc, pilot = self.base_rate, self.auc, self.pilot
        if pilot is None:
            if base_rate is None or auc is None:
                raise InvalidInput(
                    "plan",
                    f"give {option('base_rate')} and {option('auc')}, a guess; or {option('pilot')}, "
                    "labelled rows instead.",
                )
            rate = check.as_alpha(base_rate, "base_rate")
            if not 0.5 <= check.as_alpha(auc, "auc") < 1:
                raise InvalidInput("auc", expected="a number from 0.5 to below 1", got=repr(auc))
            return Binormal(rate, float(auc)), [], None, ASSUMED.format(base_rate=rate, auc=auc)
        if base_rate is not None or auc is not None:
            raise InvalidInput(
                "plan", f"a pilot replaces {option('base_rate')} and {option('auc')}; give one or the other."
            )
        if not isinstance(pilot, (tuple, list)) or len(pilot) != 2:
            raise InvalidInput("pilot", "expected (scores, labels).")
        scores, labels, _ = check.labelled_rows(pilot[0], pilot[1], prefix="pilot ")
        rows, qualified = len(scores), int(np.count_nonzero(labels))
        if qualified < 10 or qualified == rows:
            raise InvalidInput(
                "pilot",
                expected="at least 10 qualified rows and some others",
                got=f"{qualified:,} of {rows:,}",
                remedy=f"Label more rows, or guess with {option('base_rate')} and {option('auc')}.",
            )
        tail = (1 - COVERAGE) / 2
        interval = (
            float(special.betaincinv(qualified, rows - qualified + 1, tail)),
            float(special.betaincinv(qualified + 1, rows - qualified, 1 - tail)),
        )
        best, resamples = _resample(scores, labels, self.seed)
        note = RESAMPLED.format(rows=rows, qualified=qualified, coverage=COVERAGE, replicates=len(resamples))
        return best, resamples, interval, note


def _resample(scores: Floats, labels: Mask, seed: int) -> tuple[Empirical, list[Empirical]]:
    """The pilot, and bootstrap resamples of it; tied scores stand or fall together."""
    values, index = np.unique(-scores, return_inverse=True)
    rng = np.random.default_rng(seed)
    replicates = max(40, min(REPLICATES, 4_000_000 // len(scores)))

    def shares(weights: Any) -> Empirical:
        everyone = np.cumsum(np.bincount(index, weights=weights, minlength=len(values)))
        qualified = np.cumsum(np.bincount(index, weights=labels * weights, minlength=len(values)))
        return Empirical(everyone / everyone[-1], qualified / everyone[-1])

    resamples = [shares(rng.poisson(1.0, len(scores)).astype(float)) for _ in range(replicates)]
    return shares(np.ones(len(scores))), resamples


class RateByShare:
    """The population as a curve: the share qualified and listed at any share listed."""

    def __init__(self, population: Population) -> None:
        rates = np.linspace(0.0, population.base_rate, 4001)
        self.listed = np.maximum.accumulate(population.listed(rates))
        self.rates = rates

    def rate(self, share: Floats) -> Floats:
        return np.interp(share, self.listed, self.rates)

    def longest(self, precision: float) -> float:
        """The share of candidates on the longest list of this precision; nan where there is none."""
        shares = np.linspace(0.0, 1.0, 20_001)[1:]
        good = self.rate(shares) >= precision * shares
        return float(shares[good].max()) if good.any() else math.nan

    def cells(self, edges: Floats) -> Floats:
        """The same at these shares; what a small pilot has too much of in a cell goes to the next."""
        return np.asarray(edges + np.minimum.accumulate(self.rate(edges) - edges))
