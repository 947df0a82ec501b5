"""The figures and ``summary.html``: the claims beside the numbers, and how it was measured.

Figures have the paper's form: EQ with standard errors, SS with one standard deviation. SS is not drawn where
EQ fails: a short list without enough qualified candidates is no merit.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from string import Template
from typing import Any

import surelist as sl
from paper.claims import Cell, PaperClaim
from paper.experiments import EXPERIMENTS, Experiment
from paper.inputs import writing
from paper.methods import DIVERSITY, NO_DIVERSITY
from paper.screening import GROUPS

FEW_RUNS = 50
VERDICTS = {True: ("holds", "yes"), False: ("does not hold", "no"), None: ("–", "note")}
MADE_UP = (
    "<p class='made-up'><b>Synthetic.</b> These people were made up from margins of a census file. "
    "They show what the methods do; they are not census results.</p>"
)
HALVED = "α/2, as in the paper's Algorithm 3; the authors' released experiment uses α in each"
IN_EACH = "as in the authors' released experiment; the paper's Algorithm 3 says α/2"
PAGE = Path(__file__).with_name("summary.html")

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
TITLES = {"eq": "enough qualified (EQ), higher is better", "ss": "list size (SS), lower is better"}


@dataclass(frozen=True)
class AboutRun:
    """Where the numbers come from."""

    source: str
    synthetic: bool
    people: int
    test_rows: int
    runs: int
    seed: int
    alpha: float
    group_alpha: float
    pools: int
    absent: tuple[str, ...]
    skipped: dict[str, tuple[float, ...]]

    @property
    def few(self) -> bool:
        """Too few runs to tell 0.9 from its neighbours."""
        return self.runs < FEW_RUNS

    @property
    def caption(self) -> str:
        """One line for figures."""
        kind = "SYNTHETIC people, not census records" if self.synthetic else self.source
        return f"{kind} · {self.runs} runs · test half {self.test_rows:,} people · α = {self.alpha:g}"


def render(about: AboutRun, claims: Sequence[PaperClaim], figures: Sequence[Path]) -> str:
    """The whole page; figures are embedded, nothing is fetched."""
    parts = []
    for name in dict.fromkeys(claim.experiment for claim in claims):
        parts.append(f"<h2>{escape(name)}: {escape(EXPERIMENTS[name].axis)} varied</h2>")
        parts.append(_table([claim for claim in claims if claim.experiment == name]))
        for path in figures:
            if path.stem == name:
                image = base64.b64encode(path.read_bytes()).decode()
                parts.append(f"<p><img alt='{escape(name)}' src='data:image/png;base64,{image}'></p>")
    return Template(PAGE.read_text(encoding="utf-8")).substitute(
        caption=escape(about.caption), seed=about.seed, made_up=MADE_UP if about.synthetic else "",
        results="\n".join(parts), test_rows=f"{about.test_rows:,}", pools=f"{about.pools:,}",
        alpha=f"{about.alpha:g}", level=f"{1 - about.alpha:g}", group_alpha=f"{about.group_alpha:g}",
        whose=HALVED if about.group_alpha < about.alpha else IN_EACH,
        notes="\n".join(f"<li>{escape(note)}</li>" for note in _notes(about)),
    )  # fmt: skip


def _notes(about: AboutRun) -> list[str]:
    """What a reader must know of this run alone."""
    notes = [f"Only {about.runs} runs: no verdicts below {FEW_RUNS}."] if about.few else []
    if about.absent:
        notes.append(f"Of the paper's 16 features this source lacks {', '.join(about.absent)}.")
    for name, settings in about.skipped.items():
        listed = ", ".join(f"{setting:,g}" for setting in settings)
        notes.append(f"{name}: the source is too small for {listed} calibration rows; left out.")
    return notes


def _table(claims: Sequence[PaperClaim]) -> str:
    lines = ["<table><tr><th>claim</th><th>measured</th><th>verdict</th></tr>"]
    for claim in claims:
        verdict, kind = VERDICTS[claim.holds]
        says = escape(claim.says) + (" <span class='note'>(surelist)</span>" if claim.own else "")
        lines.append(
            f"<tr><td>{says}</td><td>{escape(claim.measured)}</td><td class='{kind}'>{verdict}</td></tr>"
        )
    return "\n".join([*lines, "</table>"])


def draw_all(cells: Sequence[Cell], alpha: float, caption: str, folder: Path) -> list[Path]:
    """One PNG and one SVG per experiment; returns the PNG files."""
    try:
        import matplotlib as mpl
    except ImportError as error:
        raise sl.MissingDependency(
            "paper: figures need matplotlib; pip install 'surelist[plots]'."
        ) from error
    drawn = []
    for name in dict.fromkeys(cell.experiment for cell in cells):
        figure = _draw(EXPERIMENTS[name], [c for c in cells if c.experiment == name], alpha, caption)
        for kind, metadata in (("png", None), ("svg", {"Date": None})):
            # the same numbers give the same bytes: no date, no random ids
            with writing(folder / f"{name}.{kind}") as path, mpl.rc_context({"svg.hashsalt": "surelist"}):
                figure.savefig(path, format=kind, dpi=130, metadata=metadata)
        drawn.append(folder / f"{name}.png")
    return drawn


def _draw(experiment: Experiment, cells: Sequence[Cell], alpha: float, caption: str) -> Any:
    """The figure of one experiment, as a matplotlib ``Figure``."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    if experiment.grouped:
        panels = [[(value, group, f"{group}: {TITLES[value]}") for group in GROUPS] for value in TITLES]
    else:
        panels = [[(value, "all", TITLES[value]) for value in TITLES]]
    with mpl.rc_context({"font.size": 9, "axes.titlesize": 10}):
        figure = Figure(figsize=(10.5, 3.3 * len(panels) + 0.3), layout="constrained")
        axes = figure.subplots(len(panels), 2, squeeze=False)
        for row, line in zip(axes, panels, strict=True):
            for ax, (value, group, title) in zip(row, line, strict=True):
                ax.set_title(title)
                shown = [cell for cell in cells if cell.group == group]
                _draw_panel(ax, value, experiment, shown, alpha)
        handles, labels = axes[0][0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside right center", frameon=False)
        figure.suptitle(caption, fontsize=8, color="#555555")
    return figure


def _draw_panel(ax: Any, value: str, experiment: Experiment, cells: Sequence[Cell], alpha: float) -> None:
    for method, style in STYLES.items():
        curve = sorted((cell for cell in cells if cell.method == method), key=lambda cell: cell.setting)
        if curve:
            drawn = dict(zip(("color", "linestyle", "marker"), style, strict=True))
            _draw_curve(ax, value, curve, alpha, **drawn, zorder=4 if method in FRONT else 3)
    ax.set_xlabel(experiment.axis)
    ax.grid(color="#eeeeee")
    ax.set_axisbelow(True)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    if experiment.varies_size:
        ax.set_xscale("log")
    if value == "eq":
        ax.axhline(1 - alpha, color="#999999", linewidth=0.8)
        ax.set_ylim(-0.05, 1.05)
    else:
        _sizes_axis(ax)


def _draw_curve(ax: Any, value: str, cells: list[Cell], alpha: float, **style: Any) -> None:
    at = [cell.setting for cell in cells]
    style |= {"markersize": 4, "linewidth": 1.4}
    if value == "eq":
        name = NAMES.get(cells[0].method, cells[0].method)
        ax.errorbar(at, [c.eq for c in cells], [c.eq_se for c in cells], **style, capsize=2, label=name)
        return
    shown = [cell.ss if not cell.fails(1 - alpha) else float("nan") for cell in cells]
    ax.plot(at, shown, **style)
    low, high = ([s + sign * c.ss_sd for s, c in zip(shown, cells, strict=True)] for sign in (-1, 1))
    faint = 0.18 if style["zorder"] > 3 else 0.1
    ax.fill_between(at, low, high, color=style["color"], alpha=faint, linewidth=0)


def _sizes_axis(ax: Any) -> None:
    """Logarithmic, with the numbers written out: UMB lists are several times as long as CSS's."""
    from matplotlib.ticker import FixedLocator, NullLocator, ScalarFormatter

    ax.set_yscale("log")
    ax.yaxis.set_major_locator(FixedLocator([1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100]))
    ax.yaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_major_formatter(ScalarFormatter())
