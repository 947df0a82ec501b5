"""Pictures on matplotlib axes (the ``plots`` extra): plain numbers in, axes out, nothing computed.

Objects draw themselves with these (``Plan.plot``, ``Campaign.plot`` ...); SVG for pages and reports
is in ``charts``.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Concatenate, ParamSpec

from msgspec import Struct

from surelist._files import writing
from surelist.errors import InvalidInput, MissingDependency

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes
    from numpy.typing import ArrayLike

BEST, OURS, ALARM = "#444444", "#0b6e4f", "#c1440e"
RULES = {  # the colour of each and its name
    "exact": (OURS, "surelist, exact rule"),
    "simultaneous": ("#1f77b4", "simultaneous rule"),
    "dkw": (ALARM, "the paper's rule"),
    "labelling": ("#7b4ea3", "chosen labels"),
}
Numbers = Sequence[float]
File = str | os.PathLike[str] | None
Titles = tuple[str, str, str]  # of a picture, and of its axes
Given = ParamSpec("Given")


class Band(Struct, frozen=True):
    """List lengths of one rule by number of rows, with their intervals where there are any."""

    rule: str
    rows: Numbers
    sizes: Numbers
    intervals: Sequence[tuple[float, float] | None]


class Span(Struct, frozen=True):
    """From one pool to another: the average list length seen (None: no pool yet) and the floor."""

    start: float
    end: float
    seen: float | None
    floor: float


class Rate(Struct, frozen=True):
    """A rate that was watched: where it lies, and what was promised."""

    name: str
    low: float
    high: float
    promised: float | None


def new_axes(width: float = 7.0, height: float = 4.2, *, shown: bool = False) -> Axes:
    """Axes on a figure of their own, without touching any global state; ``shown``: on one of pyplot's."""
    _require_matplotlib()
    if shown:
        from matplotlib import pyplot

        figure = pyplot.figure(figsize=(width, height), layout="constrained")
    else:
        from matplotlib.figure import Figure

        figure = Figure(figsize=(width, height), layout="constrained")
    axes: Axes = figure.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25)
    return axes


def check_picture(path: str | os.PathLike[str]) -> Path:
    """The name of a picture that can be drawn; the format follows the extension."""
    _require_matplotlib()
    path = Path(path)
    if path.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise InvalidInput("plot", expected="a name ending in .png, .svg or .pdf", got=repr(path.name))
    return path


def _require_matplotlib() -> None:
    if find_spec("matplotlib") is None:
        raise MissingDependency("Pictures need matplotlib: pip install 'surelist[plots]'.")


def save(ax: Axes, path: str | os.PathLike[str], dpi: int = 150) -> None:
    """Write the figure of ``ax``, complete or not at all."""
    path = check_picture(path)
    with writing(path) as temporary:
        ax.figure.figure.savefig(temporary, dpi=dpi, format=path.suffix[1:].lower())


def picture(
    ax: Axes | None, path: File, draw: Callable[Concatenate[Axes, Given], Titles], *given: Given.args,
    **more: Given.kwargs,
) -> Axes:  # fmt: skip
    """Draw on these axes, or on new ones, which are pyplot's for notebooks; to a file if one is named."""
    axes = new_axes(shown=path is None) if ax is None else ax
    title, x_title, y_title = draw(axes, *given, **more)
    axes.set_title(title, loc="left", fontsize=10)
    axes.set_xlabel(x_title)
    axes.set_ylabel(y_title)
    axes.set_ylim(bottom=0)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(frameon=False)
    if path is not None:
        save(axes, path)
    return axes


def draw_curves(
    axes: Axes, curves: Mapping[str, tuple[ArrayLike, ArrayLike]], pool_size: float, alpha: float,
    mark: tuple[float, float] | None,
) -> Titles:  # fmt: skip
    """Certified qualified candidates against list length, one step line per rule; ``mark`` is the choice."""
    for rule, (list_size, qualified) in curves.items():
        colour, name = RULES[rule]
        axes.step(list_size, qualified, where="post", color=colour, label=name)
    together = "Each point holds by itself" if "exact" in curves else "All points hold at once"
    if mark is not None:
        axes.plot(*mark, "o", ms=8, color=ALARM, label=f"{mark[1]:.3g} certified on a list of {mark[0]:.3g}")
    axes.set_xlim(left=0)
    title = f"{together}, wrong at most {100 * alpha:g}% of the time"
    list_title, y_title = f"candidates on the list, of {pool_size:g}", "qualified among them (certified)"
    return title, list_title, y_title


def draw_plan(axes: Axes, bands: Sequence[Band], oracle: float, enough: int | None, title: str) -> Titles:
    """Expected list length against the number of calibration rows, by rule, with the oracle."""
    for band in bands:
        colour, name = RULES.get(band.rule, (ALARM, f"the paper's rule ({band.rule})"))
        axes.plot(band.rows, band.sizes, "o-", ms=3.5, color=colour, label=name)
        known = [(x, *ends) for x, ends in zip(band.rows, band.intervals, strict=True) if ends is not None]
        if known:
            at, low, high = zip(*known, strict=True)
            axes.fill_between(at, low, high, color=colour, alpha=0.15, lw=0)
    if not math.isnan(oracle):
        axes.axhline(oracle, color=BEST, ls="--", lw=1, label="best possible")
    if enough is not None:
        axes.axvline(enough, color="#888888", lw=0.8, ls=":")
        axes.annotate("enough", (enough, axes.get_ylim()[1]), xytext=(3, -10), textcoords="offset points",
                      color="#666666", fontsize=8)  # fmt: skip
    axes.set_xscale("log")
    return title, "calibration rows", "expected list length"


def draw_labels(axes: Axes, points: Sequence[tuple[int, bool]], ends: Sequence[int]) -> Titles:
    """Labels by rank, on a logarithmic scale, and where the list ends."""
    for qualified, name, colour in ((True, "qualified", OURS), (False, "not qualified", ALARM)):
        ranks = [rank for rank, label in points if label is qualified]
        axes.plot(ranks, [int(qualified)] * len(ranks), "|", ms=14, color=colour, label=name)
    for end in ends:
        axes.axvline(end, color=BEST, ls="--", lw=1, label="end of the list")
    axes.set_xscale("log")
    axes.set_yticks([0, 1], ["not qualified", "qualified"])
    return f"{len(points):,} labels", "rank by score, best first", ""


def draw_looks(axes: Axes, hits: Numbers, looks: Numbers, title: str) -> Titles:
    """Hits against items drawn so far, and at each look the most hits that certify."""
    axes.step(range(len(hits)), hits, where="post", color=OURS, label="hits so far")
    axes.plot(looks, range(len(looks)), "v", color=ALARM, label="certified at this look with at most so many")
    return title, "items drawn", "relevant among them"


def draw_campaign(
    axes: Axes, spans: Sequence[Span], alarm: int | None, pool_size: float, title: str
) -> Titles:
    """List length over time, against about the shortest list any valid threshold could have."""
    for at, span in enumerate(spans):
        across = [max(span.start, 0.5), span.end]
        if span.seen is not None:
            axes.plot(across, [span.seen, span.seen], lw=2.5, color=OURS,
                      label=None if at else "list length")  # fmt: skip
        axes.plot(across, [span.floor, span.floor], lw=1.2, ls="--", color=BEST,
                  label=None if at else "about the shortest achievable")  # fmt: skip
    if alarm is not None:
        axes.axvline(alarm, color=ALARM, lw=1.2, label="alarm")
    if spans[-1].end > 100:
        axes.set_xscale("log")
    return title, "pools screened", f"candidates on the list, of {pool_size:g}"


def draw_rates(axes: Axes, rates: Sequence[Rate], title: str, y_title: str) -> Titles:
    """Where each rate lies, as a bar from its lower to its upper end, and the promise as a mark."""
    at = range(len(rates))
    axes.vlines(at, [each.low for each in rates], [each.high for each in rates], lw=6,
                color=OURS, label="where the rate lies")  # fmt: skip
    known = [(number, each.promised) for number, each in enumerate(rates) if each.promised is not None]
    if known:
        numbers, promised = zip(*known, strict=True)
        axes.scatter(numbers, promised, marker="_", s=900, color=ALARM, label="promised")
    axes.set_xticks(at, [each.name.replace("$", r"\$") for each in rates])
    axes.set_xlim(-0.5, len(rates) - 0.5)
    return title, "", y_title


def draw_scores(
    axes: Axes, curves: Mapping[str, tuple[Numbers, Numbers]], thresholds: Mapping[float, float | None]
) -> Titles:
    """The share of rows at or above each score, one line per group; thresholds with the share on the list."""
    for name, (scores, shares) in curves.items():
        axes.plot(scores, shares, label=name.replace("$", r"\$"))
    for at, (threshold, share) in enumerate(sorted(thresholds.items())):
        axes.axvline(threshold, color=ALARM, lw=1, ls=":", label=None if at else "threshold")
        if share is not None:
            axes.plot([threshold], [share], "o", ms=7, color=ALARM)
    return "Calibration rows by score", "score", "share at or above it"


def draw_shares(axes: Axes, shares: Mapping[str, float], title: str, y_title: str) -> Titles:
    """Some shares side by side."""
    bars = axes.bar(range(len(shares)), list(shares.values()), width=0.5, color=OURS)
    beside = 0.5 + max(0, 4 - len(shares)) / 2  # a single bar is not as wide as the picture
    axes.set_xlim(-beside, len(shares) - 1 + beside)
    axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:g}%")
    axes.set_axisbelow(True)
    if len(shares) <= 30:
        axes.bar_label(bars, [f"{100 * share:.3g}%" for share in shares.values()])
        axes.set_xticks(range(len(shares)), [name.replace("$", r"\$") for name in shares])
    return title, "", y_title


def draw_list(axes: Axes, sizes: ArrayLike, at_least: ArrayLike, at_most: ArrayLike) -> Titles:
    """At least and at most how many of each length of a list are qualified."""
    axes.plot(sizes, at_least, color=OURS, drawstyle="steps-post", label="at least")
    axes.plot(sizes, at_most, color=BEST, drawstyle="steps-post", lw=1, label="at most")
    return "Qualified among the first n of this list", "n", "qualified"
