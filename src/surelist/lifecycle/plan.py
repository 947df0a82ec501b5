"""A plan: a table of calibration sizes, as a value that prints and draws itself. ``planning`` makes it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from surelist import _numerals as numerals
from surelist._dataclasses import dataclass
from surelist.drawing import axes
from surelist.drawing.display import Display, Displayed
from surelist.errors import InvalidInput
from surelist.promises.promise import Promise

PAPER_RULES = ("dkw", "bernstein")
HOPELESS_ADVICE = "Ask for less, or look for a better score."
HOPELESS = "Not even everyone on the list would do: the target exceeds the qualified there are."


@dataclass(frozen=True)
class PlanRow:
    """What n calibration rows would give under one rule.

    ``assurance`` is the chance that the target is certifiable; ``list_size`` the expected list
    length if it is, and ``excess`` how far that lies above the oracle's, as a share. Intervals
    are those of a pilot, None without one or where nothing is certifiable.
    """

    rows: int
    rule: str
    critical_count: int
    assurance: float
    list_size: float | None
    excess: float | None
    interval: tuple[float, float] | None = None


@dataclass(frozen=True)
class Needed:
    """The n from which on any number certifies with this assurance; ``interval`` from a pilot's base rate.

    Counts are whole numbers, so that a few numbers below it may do as well, and some between them do not.
    """

    assurance: float
    rule: str
    rows: int | None
    interval: tuple[int | None, int | None] | None = None


@dataclass(frozen=True, repr=False)
class Plan(Displayed):
    """A table of calibration sizes; ``describe`` prints it, ``plot`` draws it.

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
        rows = self.recommended
        needed = self.needs(0.9) if self.needed else rows
        if rows is None or needed is None:
            number = "No number" if self.needed else "None of these numbers"
            return (
                f"{number} of calibration {self.unit} makes it certifiable with probability 90%. "
                f"{HOPELESS_ADVICE}"
            )
        more = ""
        if rows > needed:
            more = (
                f" {needed:,} or more make it certifiable with probability 90%; the others save more reviews "
                "than they cost."
            )
        return f"Gather about {numerals.at_least(rows)} calibration {self.unit}.{more}"

    def describe(self, paper: bool = False) -> str:
        """The recommendation, what it rests on, the table, and what is enough; ``paper``: its rule too."""
        per = "per pool" if self.target.pool or self.target.whole_pools else "per 100 candidates"
        lines = [
            self.recommendation(),
            "",
            f"{self.target.describe()}, alpha {self.alpha:g}.",
            self.basis,
            "",
        ]
        if math.isnan(self.oracle):
            lines.append(HOPELESS)
        elif self.measure == "certified":
            lines.append(f"Such a list holds {self.oracle:.2f} qualified candidates {per}.")
        elif self.measure == "band":
            lines.append(f"Left to people with the population known: {self.oracle:.2f} {per}.")
        else:
            lines.append(f"Oracle list (the population known): {self.oracle:.2f} {per}.")
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

    @property
    def rules(self) -> list[str]:
        """The rules that are planned for, in the order of the table."""
        return list(dict.fromkeys(row.rule for row in self.table))

    def _display(self) -> Display:
        needed = [_needs(each, self.unit) for each in self.needed if each.rule not in PAPER_RULES]
        oracle = HOPELESS if math.isnan(self.oracle) else f"{self.oracle:.2f} candidates"
        known = {"certified": "such a list holds", "band": "left to people at best"}
        best = known.get(self.measure, "best possible list")
        facts = [("for", f"{self.target.describe()}, alpha {self.alpha:g}"), (best, oracle)]
        rows = "no number of" if self.recommended is None else f"about {self.recommended:,}"
        return Display(
            f"{self.target.describe()}, alpha {self.alpha:g}: {rows} {self.unit}",
            self.recommendation(),
            [*facts, ("basis", self.basis)],
            folded=[("Calibration sizes", _table(self, self.rules)), ("Certifiable", needed)],
        )

    def plot(self, ax: Any = None, *, path: str | Path | None = None) -> Any:
        """Expected list length against n, and how many are enough (``plots`` extra; ``path``: a file)."""
        bands = []
        for rule in self.rules:
            rows = [row for row in self.table if row.rule == rule and row.list_size is not None]
            sizes = [row.list_size or 0.0 for row in rows]
            bands.append(axes.Band(rule, [row.rows for row in rows], sizes, [row.interval for row in rows]))
        title = f"{self.target.describe()}, alpha {self.alpha:g}"
        return axes.draw_plan(bands, self.oracle, self.enough, title, ax, path)


def _table(plan: Plan, rules: list[str]) -> list[str]:
    heads = (f"  {rule + ': certifiable':>22}  {plan.measure:>24}" for rule in rules)
    lines = [f"{plan.unit:>9}" + "".join(heads)]
    for n in dict.fromkeys(row.rows for row in plan.table):
        cells = [_cell(row) for row in plan.table if row.rows == n and row.rule in rules]
        lines.append(f"{n:>9,}" + "".join(cells))
    return lines


def _cell(row: PlanRow) -> str:
    size = "-" if row.list_size is None else f"{row.list_size:.2f}"
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
