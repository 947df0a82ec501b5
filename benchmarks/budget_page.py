"""The table and the picture of docs/budget.md, from the figures that budget.py has written.

python benchmarks/budget_page.py
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
FIGURES, PAGE = ROOT / "benchmarks" / "budget.txt", ROOT / "docs" / "budget.md"
BEGIN, END = "<!-- from here on: python benchmarks/budget_page.py -->", "<!-- up to here -->"
RULES = {  # as they are shown: name, colour, marker, how far to the side, where false runs are told
    "surelist": ("surelist", "#0b6e4f", "o", 1.0, (0, 11)),
    "bargain": ("BARGAIN", "#1f77b4", "s", 0.94, (0, 11)),
    "SUPG": ("SUPG", "#b07800", "^", 1.08, (10, -9)),
    "lotus": ("LOTUS", "#7b4fa3", "D", 0.88, (0, -15)),
    "top b": ("label the best", "#888888", "x", 1.15, (0, 11)),
}
FALSE = {"ms": 13, "mfc": "none", "mec": "#c0261c", "mew": 1.5, "ls": "none", "marker": "o"}
PANELS = [  # set, promise, what is shown
    ("onto", "precision 0.9", "recall"),
    ("census", "precision 0.8", "recall"),
    ("onto", "recall 0.9", "listed"),
]


class Line(NamedTuple):
    """One rule on one set with one promise and so many labels, over some runs."""

    data: str
    promise: str
    labels: int
    rule: str
    runs: int
    false: int
    recall: float
    listed: float
    oracle: int
    floor: str


def lines(text: str) -> list[Line]:
    rows = [
        line.replace(",", "").split(" | ") for line in text.replace(", hidden", "; hidden").splitlines()[1:]
    ]
    return [
        Line(
            data,
            promise,
            int(labels),
            rule,
            int(runs),
            int(false),
            float(recall),
            float(listed),
            int(oracle),
            floor,
        )
        for data, promise, labels, rule, runs, false, recall, listed, oracle, _, _, floor in rows
    ]


def table(figures: list[Line]) -> str:
    """A line for each set, promise and budget; what each rule reached, and in how many runs it was false."""
    cells = dict.fromkeys((each.data.partition(";")[0], each.promise, each.labels) for each in figures)
    made = [
        "| set, promise, labels | " + " | ".join(name for name, *_ in RULES.values()) + " | oracle | floor |",
        "|---" * 8 + "|",
    ]
    for data, promise, labels in cells:
        by = {
            (each.data, each.rule): each
            for each in figures
            if (each.promise, each.labels) == (promise, labels)
        }
        shown = [_cell(by.get((data, rule)), by.get((f"{data}; hidden", rule))) for rule in RULES]
        one = by[data, "surelist"]
        least = f"{one.oracle:,} | {int(one.floor):,}" if one.floor != "-" else " | "
        made.append(f"| {data}, {promise}, {labels:,} | {' | '.join(shown)} | {least} |")
    return "\n".join(made)


def _cell(plain: Line | None, hidden: Line | None) -> str:
    if plain is None or hidden is None:
        return "–"
    if plain.rule == "top b" and plain.promise.startswith("recall"):
        return "everyone"  # nothing is said of those not looked at
    reached = f"{plain.recall:.3f}" if plain.promise.startswith("precision") else f"{plain.listed:,.0f}"
    return f"{reached}; {plain.false}, {hidden.false} of {plain.runs}"


def draw(figures: list[Line], path: Path) -> None:
    """Budget against recall or list length; the sets as they are above, with positives hidden low below."""
    from matplotlib.figure import Figure

    sheet = Figure(figsize=(10.5, 6.6), layout="constrained")
    grid = sheet.subplots(2, 3, sharey="col")
    for row, hidden in enumerate(("", "; hidden")):
        for axes, (data, promise, what) in zip(grid[row], PANELS, strict=True):
            chosen = [each for each in figures if (each.data, each.promise) == (data + hidden, promise)]
            _panel(axes, chosen, what)
            said = f"{data}: {promise.replace('0.', '.')}{', positives hidden low' if hidden else ''}"
            axes.set_title(said, loc="left", fontsize=10)
            axes.set_ylabel(
                "share of all qualified on the list" if what == "recall" else "candidates on the list"
            )
            axes.set_xlabel("labels" if row else "")
    grid[0, 0].plot([], [], **FALSE, label="false in so many of so many runs")
    handles, names = grid[0, 0].get_legend_handles_labels()
    sheet.legend(handles, names, loc="outside upper left", ncols=6, frameon=False, fontsize=9)
    sheet.savefig(path, dpi=110)


def _panel(axes: Any, chosen: list[Line], what: str) -> None:
    for rule, (name, colour, marker, aside, where) in RULES.items():
        own = sorted((each for each in chosen if each.rule == rule), key=lambda each: each.labels)
        if not own or (rule == "top b" and what == "listed"):
            continue
        points = [(each.labels * aside, getattr(each, what)) for each in own]
        thick = {"lw": 2.4, "zorder": 3} if rule == "surelist" else {"lw": 1.2}
        axes.plot(*zip(*points, strict=True), color=colour, marker=marker, ms=6, label=name, **thick)
        for each, point in zip(own, points, strict=True):
            if each.false:
                axes.plot(*point, **FALSE, zorder=4)
                axes.annotate(
                    f"{each.false} of {each.runs}", point, xytext=where, textcoords="offset points",
                    fontsize=8, color=FALSE["mec"], ha="left" if where[0] else "center",
                )  # fmt: skip
    budgets = sorted({each.labels for each in chosen})
    axes.set_xscale("log")
    axes.set_xticks(budgets, [f"{each:,}" for each in budgets])
    axes.set_xticks([], minor=True)
    axes.set_xlim(budgets[0] / 1.3, budgets[-1] * 1.5)
    axes.set_ylim(0, 1.08 if what == "recall" else 12_000)
    if what == "listed":
        axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25)


def main() -> None:
    figures = lines(FIGURES.read_text(encoding="utf-8"))
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    PAGE.write_text(f"{before}{BEGIN}\n\n{table(figures)}\n\n{END}{after}", encoding="utf-8")
    draw(figures, PAGE.with_suffix(".png"))


if __name__ == "__main__":
    main()
