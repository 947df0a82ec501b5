"""The paper's empirical claims, each with what was measured and whether it holds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from surelist._dataclasses import dataclass
from surelist.paper.experiments import EXPERIMENTS
from surelist.paper.methods import DIVERSITY, NO_DIVERSITY, UMB
from surelist.paper.screening import GROUPS
from surelist.paper.summary import Cell, expected_level


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
    """Look-up of cells by experiment, method and group, ordered by setting."""

    def __init__(self, cells: Sequence[Cell], alpha: float) -> None:
        self.cells = cells
        self.level = 1 - alpha
        self.alpha = alpha

    def of(self, experiment: str, method: str, group: str = "all") -> list[Cell]:
        """One method's cells, a setting each."""
        return [
            cell
            for cell in self.cells
            if (cell.experiment, cell.method, cell.group) == (experiment, method, group)
        ]

    @property
    def experiments(self) -> list[str]:
        """The experiments that were run."""
        present = {cell.experiment for cell in self.cells}
        return [name for name in EXPERIMENTS if name in present]


def claims(
    cells: Sequence[Cell], alpha: float, group_alpha: float, test_rows: int, rows: int
) -> list[PaperClaim]:
    """Every claim about the experiments that were run.

    ``rows`` is the number of calibration rows where it is not what varies.
    """
    results = Results(cells, alpha)
    makers: dict[str, Callable[[Results], list[PaperClaim]]] = {
        "noise": _noise,
        "calibration-size": _size,
        "diversity-noise": _diversity_noise,
        "diversity-size": _diversity_size,
    }
    checked = []
    for name in results.experiments:
        checked += makers[name](results)
        checked += _exact(results, name, group_alpha, test_rows, rows)
    return checked


def _noise(results: Results) -> list[PaperClaim]:
    name = "noise"
    css, umb = results.of(name, "CSS"), _umb(results, name)
    bare = results.of(name, "Uncalibrated")
    noisy = [cell for cell in bare if cell.setting > 0]
    claims = [
        _reaches(name, "CSS lists hold enough qualified candidates whatever the noise.", css, results.level),
        _reaches(name, "So do those of UMB with 1 to 5 bins.", umb, results.level),
        PaperClaim(
            name,
            "Both hold enough more often than the promised 1 − α.",
            f"lowest EQ: CSS {_low(css):.2f}, UMB {_low(umb):.2f}; promised {results.level:g}",
            min(_low(css), _low(umb)) > results.level,
        ),
        PaperClaim(
            name,
            "Uncalibrated scores fail as soon as there is noise.",
            f"highest EQ with noise {_high(noisy):.2f}; without noise {bare[0].eq:.2f}",
            _high(noisy) < results.level,
        ),
    ]
    claims += [_misses(name, method, results) for method in ("Platt", "Isotonic")]
    says = "CSS lists are shorter than those of every UMB variant, short of pure noise."
    claims.append(_shorter(results, name, says))
    pure = [cell for cell in css if cell.setting == 1]
    if pure:
        best = min((cell for cell in umb if cell.setting == 1), key=lambda cell: cell.ss)
        figures = f"at r = 1: CSS {pure[0].ss:.1f}, {best.method} {best.ss:.1f}"
        says = "On pure noise a UMB variant is shorter."
        claims.append(PaperClaim(name, says, figures, best.ss < pure[0].ss))
    claims.append(_moves(name, "CSS pays for noise with longer lists.", css, "ss", "list size", up=True))
    return claims


def _size(results: Results) -> list[PaperClaim]:
    name = "calibration-size"
    css = results.of(name, "CSS")
    return [
        _reaches(name, "CSS lists hold enough, however few calibration rows.", css, results.level),
        _reaches(name, "So do those of UMB with 1 to 5 bins.", _umb(results, name), results.level),
        _shorter(results, name, "CSS lists are shorter than those of every UMB variant at every size."),
        _moves(name, "More calibration rows mean shorter CSS lists.", css, "ss", "list size", up=False),
        *[_misses(name, method, results) for method in ("Platt", "Isotonic")],
    ]


def _diversity_noise(results: Results) -> list[PaperClaim]:
    name = "diversity-noise"
    claims = [_both_reach(results, name, "CSS (Diversity) holds enough in both groups whatever the noise.")]
    few = results.of(name, NO_DIVERSITY, "minority")
    many = results.of(name, NO_DIVERSITY, "majority")
    bare = results.of(name, "Uncalibrated", "minority")
    goal = "qualified (target {:.2f})"
    fewer = "CSS (No Diversity) lists fewer and fewer qualified minority candidates as noise grows."
    claims += [
        _moves(name, fewer, few, "qualified", goal.format(few[0].k), up=False),
        _moves(name, "... and more of the majority.", many, "qualified", goal.format(many[0].k), up=True),
        PaperClaim(
            name,
            "CSS (No Diversity) ends up without enough minority candidates.",
            f"minority EQ {few[0].eq:.2f} at {few[0].setting:g}, {few[-1].eq:.2f} at {few[-1].setting:g}",
            few[-1].eq < results.level,
        ),
    ]
    says = "Uncalibrated lists fewer qualified minority candidates as noise grows."
    claims.append(_moves(name, says, bare, "qualified", goal.format(bare[0].k), up=False))
    return claims + [_misses(name, method, results, GROUPS) for method in ("Platt", "Isotonic")]


def _diversity_size(results: Results) -> list[PaperClaim]:
    name = "diversity-size"
    minority = results.of(name, DIVERSITY, "minority")
    says = "CSS (Diversity) holds enough in both groups, however few minority rows."
    shorter = "More minority rows mean shorter minority lists."
    return [
        _both_reach(results, name, says),
        _moves(name, shorter, minority, "ss", "list size", up=False),
        *[_misses(name, method, results, GROUPS) for method in ("Platt", "Isotonic")],
    ]


def _exact(results: Results, name: str, group_alpha: float, test_rows: int, rows: int) -> list[PaperClaim]:
    """surelist's own rule: about 1-alpha, because it uses the whole budget, and shorter lists."""
    grouped = EXPERIMENTS[name].grouped
    groups = GROUPS if grouped else ("all",)
    alpha = group_alpha if grouped else results.alpha
    cells = [cell for group in groups for cell in results.of(name, "Exact", group)]
    css = [cell for group in groups for cell in results.of(name, DIVERSITY if grouped else "CSS", group)]
    levels = [_judged(results, cell, alpha, test_rows, rows) for cell in cells]
    lowest = min(cells, key=lambda cell: cell.eq)
    shares = [exact.ss / theirs.ss for exact, theirs in zip(cells, css, strict=True)]
    return [
        PaperClaim(
            name, f"exact uses its whole budget: EQ is about {1 - alpha:g}, not 1.",
            f"EQ {lowest.eq:.2f} to {_high(cells):.2f}, mean {_mean(cells):.3f}; "
            f"{_span(levels)} to be expected, given the error of the test half",
            not any(cell.fails(level) for cell, level in zip(cells, levels, strict=True)), own=True,
        ),
        PaperClaim(
            name, "exact lists are shorter than CSS lists in every setting.",
            f"{100 * (1 - max(shares)):.0f} % to {100 * (1 - min(shares)):.0f} % shorter",
            max(shares) < 1, own=True,
        ),
    ]  # fmt: skip


def _span(values: list[float]) -> str:
    low, high = f"{min(values):.2f}", f"{max(values):.2f}"
    return low if low == high else f"{low} to {high}"


def _judged(results: Results, cell: Cell, alpha: float, test_rows: int, rows: int) -> float:
    """The level to be expected of a rule at exactly 1-alpha, for this cell's rows."""
    if cell.experiment == "calibration-size":
        return expected_level(alpha, cell.setting, test_rows)
    if cell.experiment == "diversity-size" and cell.group == "minority":
        share = cell.k / results.of(cell.experiment, "Exact")[0].k
        return expected_level(alpha, cell.setting, share * test_rows)
    return expected_level(alpha, rows, test_rows)  # groups share both alike


def _reaches(name: str, says: str, cells: list[Cell], level: float) -> PaperClaim:
    refused = sum(cell.refused for cell in cells)
    note = f"; {refused} of {sum(c.runs for c in cells)} runs refused, counted as listing everyone"
    return PaperClaim(
        name, says, f"lowest EQ {_low(cells):.2f}{note if refused else ''}", _low(cells) >= level
    )


def _both_reach(results: Results, name: str, says: str) -> PaperClaim:
    low = {group: _low(results.of(name, DIVERSITY, group)) for group in GROUPS}
    figures = ", ".join(f"{group} {value:.2f}" for group, value in low.items())
    return PaperClaim(name, says, f"lowest EQ: {figures}", min(low.values()) >= results.level)


def _misses(name: str, method: str, results: Results, groups: Sequence[str] = ("all",)) -> PaperClaim:
    highest = {group: _high(results.of(name, method, group)) for group in groups}
    where = " in both groups" if len(highest) > 1 else ""
    text = ", ".join(f"{group} {value:.2f}" if where else f"{value:.2f}" for group, value in highest.items())
    return PaperClaim(
        name, f"{method} fails{where}.", f"highest EQ {text}", max(highest.values()) < results.level
    )


def _shorter(results: Results, name: str, says: str) -> PaperClaim:
    leads = {}
    for css in results.of(name, "CSS"):
        if name == "noise" and css.setting == 1:
            continue
        rivals = [cell for cell in _umb(results, name) if cell.setting == css.setting]
        best = min(rivals, key=lambda cell: cell.ss)
        leads[css.setting] = (best.ss - css.ss, css, best)
    lead, css, best = min(leads.values(), key=lambda entry: entry[0])
    figures = f"closest at {css.setting:,g}: CSS {css.ss:.1f}, {best.method} {best.ss:.1f}"
    return PaperClaim(name, says, figures, lead > 0)


def _moves(name: str, says: str, cells: list[Cell], value: str, what: str, *, up: bool) -> PaperClaim:
    """The value goes one way from each setting to the next."""
    values = [getattr(cell, value) for cell in cells]
    steps = [later - earlier for earlier, later in pairwise(values)]
    holds = all(step >= 0 for step in steps) if up else all(step <= 0 for step in steps)
    first, last = cells[0].setting, cells[-1].setting
    figures = f"{what} {values[0]:.2f} at {first:,g}, {values[-1]:.2f} at {last:,g}"
    return PaperClaim(name, says, figures, holds and values[0] != values[-1])


def _umb(results: Results, name: str) -> list[Cell]:
    return [cell for method in UMB for cell in results.of(name, method)]


def _low(cells: list[Cell]) -> float:
    return min(cell.eq for cell in cells)


def _high(cells: list[Cell]) -> float:
    return max(cell.eq for cell in cells)


def _mean(cells: list[Cell]) -> float:
    return sum(cell.eq for cell in cells) / len(cells)
