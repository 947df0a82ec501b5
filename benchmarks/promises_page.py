"""The pictures of docs/promises.md and docs/guide.md, from the figures that promises_cells.py has written.

python benchmarks/promises_page.py
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from matplotlib.ticker import MaxNLocator, NullLocator, ScalarFormatter
from scipy import optimize

from surelist.drawing import axes

ROOT = Path(__file__).parents[1]
FIGURES, DOCS = ROOT / "benchmarks" / "promises_cells.txt", ROOT / "docs"
OURS, OTHER, LIMIT = "#0b6e4f", "#888888", "#c0261c"
ALPHA = 10.0


class Row(NamedTuple):
    """What was promised, how often of so many runs it was false, and a figure in words."""

    name: str
    runs: int
    false: int
    figure: str

    @property
    def number(self) -> float:
        return float(re.match(r"[\d.]+", self.figure)[0])  # type: ignore[index]


def read(path: Path = FIGURES) -> list[Row]:
    cells = [line.strip("|\n ").split(" | ") for line in path.read_text(encoding="utf-8").splitlines()]
    return [Row(c[0], int(c[1]), int(c[2]), c[3]) for c in cells if len(c) >= 4 and c[1].isdigit()]


def ideal(share: float = 0.9) -> float:
    """Of 100 answers, those left to people by the best thresholds for the judge's law: Beta(3, 1) and Beta(1, 3)."""

    def precision(t: float) -> float:
        return float((1 - t**3) / (1 - t**3 + (1 - t) ** 3)) - share

    edge = optimize.brentq(precision, 0.01, 0.99)  # the other one is 1 - edge
    share_below = [(t**3 + 1 - (1 - t) ** 3) / 2 for t in (1 - edge, edge)]
    return float(100 * (share_below[1] - share_below[0]))


def triage(rows: list[Row], path: Path) -> None:
    """How much is left to people, by the number of labelled rows."""
    found = [(re.match(r"Triage, judge, n = ([\d,]+): 0.9 and 0.9", row.name), row) for row in rows]
    points = [(int(n[1].replace(",", "")), row.number) for n, row in found if n and "98" not in row.figure]
    ax = axes.new_axes()
    ax.plot(*zip(*points, strict=True), "o-", color=OURS, label="left to people")
    ax.axhline(ideal(), color=OTHER, ls="--", label="with the population known")
    ax.set_xscale("log")
    ax.set_xticks([n for n, _ in points])
    ax.xaxis.set_major_formatter(ScalarFormatter())
    ax.xaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set(ylim=(0, None), xlabel="labelled rows", ylabel="of 100 answers",
           title="90 % of the accepted qualified, 90 % of the rejected not")  # fmt: skip
    ax.legend(frameon=False)
    axes.save(ax, path)


def common(rows: list[Row], path: Path) -> None:
    """What one cutoff for everybody costs, by full alpha and by shares of it."""
    wanted = {
        "Four groups of 650: cutoffs that differ": ("cutoffs that differ", OTHER),
        "One cutoff for four groups of 650: full alpha": ("one cutoff for everybody", OURS),
        "One cutoff for four groups of 650: shares of alpha": ("the same, alpha shared\nbetween the groups", OTHER),
    }  # fmt: skip
    bars(
        [(*wanted[row.name], row.number) for row in sorted(rows, key=lambda row: row.number if row.name in wanted else 0)
         if row.name in wanted],
        "candidates listed, of 100", "Four groups, at least 5 qualified of 100 for each", path,
    )  # fmt: skip


def noise(rows: list[Row], path: Path) -> None:
    """How often a promise is false where labels are wrong: ignored, and allowed for."""
    ax = axes.new_axes()
    found = [(re.match(r"Expected\(5, 100\), labels: ([\d.]+) % wrong", row.name), row) for row in rows]
    for at, (wrong, row) in enumerate((m[1], row) for m, row in found if m):
        ignored = float(re.search(r"ignored ([\d.]+) %", row.figure)[1])  # type: ignore[index]
        ours = 100 * row.false / row.runs
        for side, value, colour, label in (
            (-0.2, ignored, OTHER, "wrong labels ignored"),
            (0.2, ours, OURS, "allowed for"),
        ):
            ax.bar(at + side, value, 0.36, color=colour, label=label if not at else None)
            ax.annotate(f"{value:.1f} %", (at + side, value), (0, 3), textcoords="offset points", ha="center")
        ax.set_xticks(range(at + 1), [*(t.get_text() for t in ax.get_xticklabels()[:at]), f"{wrong} %"])
    ax.axhline(ALPHA, color=LIMIT, ls="--", label="may be false at most")
    ax.set_ylim(top=1.25 * ax.get_ylim()[1])
    ax.grid(axis="x", visible=False)
    ax.set(xlabel="of those not qualified labelled as qualified", ylabel="promises false, %",
           title="At least 5 qualified of 100, from labels that may be wrong")  # fmt: skip
    ax.legend(frameon=False, loc="upper left", ncols=3)
    axes.save(ax, path)


def bars(rows: list[tuple[str, str, float]], unit: str, title: str, path: Path) -> None:
    ax = axes.new_axes(height=2.6)
    names, colours, values = zip(*rows, strict=True)
    ax.barh(range(len(rows)), values, 0.6, color=colours)
    ax.set_yticks(range(len(rows)), names)
    for at, value in enumerate(values):
        ax.annotate(f"{value:.1f}", (value, at), (4, 0), textcoords="offset points", va="center")
    ax.invert_yaxis()
    ax.grid(axis="y", visible=False)
    ax.set(xlabel=unit, title=title, xlim=(0, 1.1 * max(values)))
    axes.save(ax, path)


def main() -> None:
    rows = read()
    triage(rows, DOCS / "triage.png")
    common(rows, DOCS / "common_cutoff.png")
    noise(rows, DOCS / "noise.png")


if __name__ == "__main__":
    main()
