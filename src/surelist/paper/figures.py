"""The figures, in the paper's form: EQ with standard errors, SS with one standard deviation.

SS is not drawn where EQ fails: a short list without enough qualified candidates is no merit.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from surelist._dataclasses import dataclass
from surelist._files import writing
from surelist.errors import MissingDependency
from surelist.paper.experiments import EXPERIMENTS, Experiment
from surelist.paper.methods import DIVERSITY, NO_DIVERSITY
from surelist.paper.screening import GROUPS
from surelist.paper.summary import Cell

# colour, line style, marker; certified methods are solid, those without guarantee dashed
STYLES = {
    "CSS": ("#c1440e", "-", "o"),
    DIVERSITY: ("#c1440e", "-", "o"),
    NO_DIVERSITY: ("#8e44ad", "-.", "s"),
    "Exact": ("#0b6e4f", "-", "D"),
    "UMB 1": ("#bfd0ea", "-", "v"),
    "UMB 2": ("#93b2dd", "-", "^"),
    "UMB 3": ("#6893cf", "-", "<"),
    "UMB 4": ("#3f73b8", "-", ">"),
    "UMB 5": ("#1f4e8c", "-", "p"),
    "Uncalibrated": ("#8c8c8c", "--", "x"),
    "Platt": ("#d4a106", "--", "+"),
    "Isotonic": ("#5bb8b0", "--", "1"),
    "Oracle": ("#444444", ":", ""),
}
FRONT = ("CSS", DIVERSITY, "Exact")  # drawn over the others where they coincide
NAMES = {"Exact": "exact (surelist)", "Oracle": "oracle threshold", "CSS": "CSS (dkw)"}


@dataclass(frozen=True)
class Panel:
    """One set of axes: which value of which group."""

    value: str
    group: str
    title: str


def draw_all(cells: Sequence[Cell], alpha: float, caption: str, folder: Path) -> list[Path]:
    """One PNG and one SVG per experiment; returns the PNG files."""
    drawn = []
    for name in dict.fromkeys(cell.experiment for cell in cells):
        figure = draw(EXPERIMENTS[name], [c for c in cells if c.experiment == name], alpha, caption)
        for kind in ("png", "svg"):
            with writing(folder / f"{name}.{kind}") as path:
                _save(figure, path, kind)
        drawn.append(folder / f"{name}.png")
    return drawn


def _save(figure: Any, path: Path, kind: str) -> None:
    """The same numbers give the same bytes: no date, no random ids."""
    import matplotlib as mpl

    with mpl.rc_context({"svg.hashsalt": "surelist"}):
        figure.savefig(path, format=kind, dpi=130, metadata={"Date": None} if kind == "svg" else None)


def draw(experiment: Experiment, cells: Sequence[Cell], alpha: float, caption: str) -> Any:
    """The figure of one experiment, as a matplotlib ``Figure``."""
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingDependency("paper: figures need matplotlib; pip install 'surelist[plots]'.") from error
    panels = _panels(experiment)
    columns = len(panels[0])
    with mpl.rc_context({"font.size": 9, "axes.titlesize": 10}):
        figure = Figure(figsize=(4.3 * columns + 1.9, 3.3 * len(panels) + 0.3), layout="constrained")
        axes = figure.subplots(len(panels), columns, squeeze=False)
        for row, line in zip(axes, panels, strict=True):
            for ax, panel in zip(row, line, strict=True):
                _draw_panel(ax, panel, experiment, cells, alpha)
        handles, labels = axes[0][0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside right center", frameon=False)
        figure.suptitle(caption, fontsize=8, color="#555555")
    return figure


def _panels(experiment: Experiment) -> list[list[Panel]]:
    eq, ss = "enough qualified (EQ), higher is better", "list size (SS), lower is better"
    if not experiment.grouped:
        return [[Panel("eq", "all", eq), Panel("ss", "all", ss)]]
    return [
        [Panel(value, group, f"{group}: {title}") for group in GROUPS]
        for value, title in (("eq", eq), ("ss", ss))
    ]


def _draw_panel(ax: Any, panel: Panel, experiment: Experiment, cells: Sequence[Cell], alpha: float) -> None:
    for method, style in STYLES.items():
        curve = [cell for cell in cells if cell.method == method and cell.group == panel.group]
        if curve:
            curve.sort(key=lambda cell: cell.setting)
            drawer = _draw_eq if panel.value == "eq" else _draw_ss
            drawer(ax, curve, style, alpha, 4 if method in FRONT else 3)
    ax.set_title(panel.title)
    ax.set_xlabel(experiment.axis)
    ax.grid(color="#eeeeee")
    ax.set_axisbelow(True)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    if experiment.varies_size:
        ax.set_xscale("log")
    if panel.value == "eq":
        ax.axhline(1 - alpha, color="#999999", linewidth=0.8)
        ax.set_ylim(-0.05, 1.05)
    else:
        _sizes_axis(ax)


def _draw_eq(ax: Any, cells: list[Cell], style: tuple[str, str, str], alpha: float, order: int) -> None:
    colour, line, marker = style
    ax.errorbar(
        [cell.setting for cell in cells], [cell.eq for cell in cells], [cell.eq_se for cell in cells],
        color=colour, linestyle=line, marker=marker, markersize=4, linewidth=1.4, capsize=2, zorder=order,
        label=NAMES.get(cells[0].method, cells[0].method),
    )  # fmt: skip


def _draw_ss(ax: Any, cells: list[Cell], style: tuple[str, str, str], alpha: float, order: int) -> None:
    colour, line, marker = style
    at = [cell.setting for cell in cells]
    shown = [cell.ss if not cell.fails(1 - alpha) else float("nan") for cell in cells]
    ax.plot(at, shown, color=colour, linestyle=line, marker=marker, markersize=4, linewidth=1.4, zorder=order)
    low = [value - cell.ss_sd for value, cell in zip(shown, cells, strict=True)]
    high = [value + cell.ss_sd for value, cell in zip(shown, cells, strict=True)]
    ax.fill_between(at, low, high, color=colour, alpha=0.18 if order > 3 else 0.1, linewidth=0)


def _sizes_axis(ax: Any) -> None:
    """Logarithmic, with the numbers written out: UMB lists are several times as long as CSS's."""
    from matplotlib.ticker import FixedLocator, NullLocator, ScalarFormatter

    ax.set_yscale("log")
    ax.yaxis.set_major_locator(FixedLocator([1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100]))
    ax.yaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_major_formatter(ScalarFormatter())
