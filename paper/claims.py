"""From rows to a table of means, and from that to the paper's claims: holds or does not hold.

Nothing here decides what ought to come out. A claim is a sentence (in our words), the number
measured for it, and whether the number bears it out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

import numpy as np
from scipy import special

from paper.experiments import EXPERIMENTS, Measurement
from paper.methods import DIVERSITY, NO_DIVERSITY, UMB
from paper.screening import GROUPS

FAILS = 0.01  # a method fails a setting if so few successes have a chance below this


@dataclass(frozen=True)
class Cell:
    """One method, group and setting over all runs: means, standard error of EQ, deviation of SS."""

    experiment: str
    setting: float
    method: str
    group: str
    runs: int
    eq: float
    eq_se: float
    ss: float
    ss_sd: float
    qualified: float
    k: float
    refused: int
    eq_pools: float
    ss_pools: float

    def fails(self, level: float) -> bool:
        """Too few successes for a method that reaches k with probability ``level``."""
        wins = round(self.eq * self.runs)
        return float(special.bdtr(wins, self.runs, level)) < FAILS


def summarise(rows: Sequence[Measurement]) -> list[Cell]:
    """Means over the runs, in the order of experiments, settings and methods."""

    def key(row: Measurement) -> tuple[int, float, str, str]:
        return EXPERIMENTS[row.experiment].number, row.setting, row.group, row.method

    return [_cell(list(same)) for _, same in groupby(sorted(rows, key=key), key)]


def _cell(rows: list[Measurement]) -> Cell:
    first, runs = rows[0], len(rows)
    averaged = ("eq", "qualified", "k", "eq_pools", "ss_pools")
    means = {name: sum(getattr(row, name) for row in rows) / runs for name in averaged}
    sizes = np.array([row.ss for row in rows])
    return Cell(
        first.experiment, first.setting, first.method, first.group, runs,
        eq_se=math.sqrt(means["eq"] * (1 - means["eq"]) / runs),
        ss=float(sizes.mean()), ss_sd=float(sizes.std(ddof=1)) if runs > 1 else 0.0,
        refused=sum(not row.certified for row in rows), **means,
    )  # fmt: skip


def expected_level(alpha: float, calibration_rows: float, test_rows: float) -> float:
    """How often a rule at exactly 1-alpha is *seen* to hold, judged on this many test rows.

    The test half has an error of its own; on top of the calibration rows' it adds their ratio
    to the variance. Normal approximation.
    """
    z = special.ndtri(1 - alpha)
    return float(special.ndtr(z / math.sqrt(1 + calibration_rows / test_rows)))


@dataclass(frozen=True)
class PaperClaim:
    """One sentence, the number beside it, the verdict. ``own`` marks surelist's, not the paper's.

    ``holds`` is None where too few runs were made for a verdict to be shown.
    """

    experiment: str
    says: str
    measured: str
    holds: bool | None
    own: bool = False


class Results:
    """The cells of one experiment, ordered by setting, and what is said about them."""

    def __init__(self, name: str, cells: Sequence[Cell], alpha: float) -> None:
        self.name, self.alpha, self.level = name, alpha, 1 - alpha
        self.cells = [cell for cell in cells if cell.experiment == name]
        self.claims: list[PaperClaim] = []

    def of(self, *methods: str, group: str = "all") -> list[Cell]:
        """The cells of these methods, a setting each."""
        return [cell for name in methods for cell in self.cells if (cell.method, cell.group) == (name, group)]

    def claim(self, says: str, measured: str, holds: bool, own: bool = False) -> None:
        """One more sentence with its number and verdict."""
        self.claims.append(PaperClaim(self.name, says, measured, holds, own))

    def reaches(self, says: str, cells: list[Cell]) -> None:
        """These lists hold enough in every setting."""
        refused, low = sum(cell.refused for cell in cells), min(_eq(cells))
        note = f"; {refused} of {sum(c.runs for c in cells)} runs refused, counted as listing everyone"
        self.claim(says, f"lowest EQ {low:.2f}{note if refused else ''}", low >= self.level)

    def both_reach(self, says: str) -> None:
        """CSS (Diversity) lists hold enough in both groups."""
        low = {group: min(_eq(self.of(DIVERSITY, group=group))) for group in GROUPS}
        figures = ", ".join(f"{group} {value:.2f}" for group, value in low.items())
        self.claim(says, f"lowest EQ: {figures}", min(low.values()) >= self.level)

    def others_miss(self, groups: Sequence[str] = ("all",)) -> None:
        """Platt and isotonic lists hold enough in no setting."""
        where = " in both groups" if len(groups) > 1 else ""
        for method in ("Platt", "Isotonic"):
            highest = {group: max(_eq(self.of(method, group=group))) for group in groups}
            shown = (f"{group} {value:.2f}" if where else f"{value:.2f}" for group, value in highest.items())
            holds = max(highest.values()) < self.level
            self.claim(f"{method} fails{where}.", f"highest EQ {', '.join(shown)}", holds)

    def shorter(self, says: str, settings: Callable[[float], bool] = lambda setting: True) -> None:
        """CSS lists are shorter than those of every UMB variant, in these settings."""
        pairs = []
        for css in self.of("CSS"):
            if settings(css.setting):
                best = self.shortest_umb(css.setting)
                pairs.append((best.ss - css.ss, css, best))
        lead, css, best = min(pairs, key=lambda pair: pair[0])
        figures = f"closest at {css.setting:,g}: CSS {css.ss:.1f}, {best.method} {best.ss:.1f}"
        self.claim(says, figures, lead > 0)

    def shortest_umb(self, setting: float) -> Cell:
        """The UMB variant with the shortest lists there."""
        return min((c for c in self.of(*UMB) if c.setting == setting), key=lambda cell: cell.ss)

    def moves(self, says: str, cells: list[Cell], value: str, *, up: bool) -> None:
        """List size, or qualified candidates against the target, goes one way with the setting."""
        values = [getattr(cell, value) for cell in cells]
        holds = all(later >= earlier if up else later <= earlier for earlier, later in pairwise(values))
        what = "list size" if value == "ss" else f"qualified (target {cells[0].k:.2f})"
        first, last = cells[0].setting, cells[-1].setting
        figures = f"{what} {values[0]:.2f} at {first:,g}, {values[-1]:.2f} at {last:,g}"
        self.claim(says, figures, holds and values[0] != values[-1])


def claims(
    cells: Sequence[Cell], alpha: float, group_alpha: float, test_rows: int, rows: int
) -> list[PaperClaim]:
    """Every claim about the experiments that were run.

    ``rows`` is the number of calibration rows where it is not what varies.
    """
    makers = {
        "noise": _noise,
        "calibration-size": _size,
        "diversity-noise": _diversity_noise,
        "diversity-size": _diversity_size,
    }
    checked = []
    for name in EXPERIMENTS:
        results = Results(name, cells, alpha)
        if results.cells:
            makers[name](results)
            _exact(results, group_alpha, test_rows, rows)
        checked += results.claims
    return checked


def _noise(results: Results) -> None:
    css, umb, bare = results.of("CSS"), results.of(*UMB), results.of("Uncalibrated")
    results.reaches("CSS lists hold enough qualified candidates whatever the noise.", css)
    results.reaches("So do those of UMB with 1 to 5 bins.", umb)
    lowest, noisy = (min(_eq(css)), min(_eq(umb))), max(_eq(cell for cell in bare if cell.setting > 0))
    results.claim(
        "Both hold enough more often than the promised 1 − α.",
        f"lowest EQ: CSS {lowest[0]:.2f}, UMB {lowest[1]:.2f}; promised {results.level:g}",
        min(lowest) > results.level,
    )
    results.claim(
        "Uncalibrated scores fail as soon as there is noise.",
        f"highest EQ with noise {noisy:.2f}; without noise {bare[0].eq:.2f}",
        noisy < results.level,
    )
    results.others_miss()
    says = "CSS lists are shorter than those of every UMB variant, short of pure noise."
    results.shorter(says, lambda setting: setting != 1)
    for pure in css:
        if pure.setting == 1:
            best = results.shortest_umb(1)
            figures = f"at r = 1: CSS {pure.ss:.1f}, {best.method} {best.ss:.1f}"
            results.claim("On pure noise a UMB variant is shorter.", figures, best.ss < pure.ss)
    results.moves("CSS pays for noise with longer lists.", css, "ss", up=True)


def _size(results: Results) -> None:
    css = results.of("CSS")
    results.reaches("CSS lists hold enough, however few calibration rows.", css)
    results.reaches("So do those of UMB with 1 to 5 bins.", results.of(*UMB))
    results.shorter("CSS lists are shorter than those of every UMB variant at every size.")
    results.moves("More calibration rows mean shorter CSS lists.", css, "ss", up=False)
    results.others_miss()


def _diversity_noise(results: Results) -> None:
    results.both_reach("CSS (Diversity) holds enough in both groups whatever the noise.")
    many, few = (results.of(NO_DIVERSITY, group=group) for group in GROUPS)
    fewer = "CSS (No Diversity) lists fewer and fewer qualified minority candidates as noise grows."
    results.moves(fewer, few, "qualified", up=False)
    results.moves("... and more of the majority.", many, "qualified", up=True)
    results.claim(
        "CSS (No Diversity) ends up without enough minority candidates.",
        f"minority EQ {few[0].eq:.2f} at {few[0].setting:g}, {few[-1].eq:.2f} at {few[-1].setting:g}",
        few[-1].eq < results.level,
    )
    says = "Uncalibrated lists fewer qualified minority candidates as noise grows."
    results.moves(says, results.of("Uncalibrated", group="minority"), "qualified", up=False)
    results.others_miss(GROUPS)


def _diversity_size(results: Results) -> None:
    results.both_reach("CSS (Diversity) holds enough in both groups, however few minority rows.")
    minority = results.of(DIVERSITY, group="minority")
    results.moves("More minority rows mean shorter minority lists.", minority, "ss", up=False)
    results.others_miss(GROUPS)


def _exact(results: Results, group_alpha: float, test_rows: int, rows: int) -> None:
    """surelist's own rule: about 1-alpha, because it uses the whole budget, and shorter lists."""
    grouped = EXPERIMENTS[results.name].grouped
    groups, css_name = (GROUPS, DIVERSITY) if grouped else (("all",), "CSS")
    alpha = group_alpha if grouped else results.alpha
    cells, css = ([c for g in groups for c in results.of(name, group=g)] for name in ("Exact", css_name))
    levels = [_judged(results, cell, alpha, test_rows, rows) for cell in cells]
    spans = sorted({f"{min(levels):.2f}", f"{max(levels):.2f}"})
    shares = [exact.ss / theirs.ss for exact, theirs in zip(cells, css, strict=True)]
    results.claim(
        f"exact uses its whole budget: EQ is about {1 - alpha:g}, not 1.",
        f"EQ {min(_eq(cells)):.2f} to {max(_eq(cells)):.2f}, mean {sum(_eq(cells)) / len(cells):.3f}; "
        f"{' to '.join(spans)} to be expected, given the error of the test half",
        not any(cell.fails(level) for cell, level in zip(cells, levels, strict=True)),
        own=True,
    )
    results.claim(
        "exact lists are shorter than CSS lists in every setting.",
        f"{100 * (1 - max(shares)):.0f} % to {100 * (1 - min(shares)):.0f} % shorter",
        max(shares) < 1,
        own=True,
    )


def _judged(results: Results, cell: Cell, alpha: float, test_rows: int, rows: int) -> float:
    """The level to be expected of a rule at exactly 1-alpha, for this cell's rows."""
    if cell.experiment == "calibration-size":
        return expected_level(alpha, cell.setting, test_rows)
    if cell.experiment == "diversity-size" and cell.group == "minority":
        share = cell.k / results.of("Exact")[0].k
        return expected_level(alpha, cell.setting, share * test_rows)
    return expected_level(alpha, rows, test_rows)  # groups share both alike


def _eq(cells: Iterable[Cell]) -> list[float]:
    return [cell.eq for cell in cells]
