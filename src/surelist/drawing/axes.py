"""Pictures, with matplotlib (the ``plots`` extra). They draw stored numbers and compute nothing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from surelist._files import writing
from surelist.errors import InvalidInput, MissingDependency
from surelist.promises.curve import GuaranteeCurve

COLOURS = {"oracle": "#444444", "exact": "#0b6e4f", "simultaneous": "#1f77b4", "dkw": "#c1440e"}
NAMES = {
    "oracle": "best possible",
    "exact": "surelist, exact rule",
    "simultaneous": "simultaneous rule",
    "dkw": "the paper's rule",
}


def new_axes(width: float = 7.0, height: float = 4.2) -> Any:
    """Axes on a figure of their own, without touching any global state."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingDependency("Pictures need matplotlib: pip install 'surelist[plots]'.") from error
    axes = Figure(figsize=(width, height), layout="constrained").add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25)
    return axes


def draw_curves(curves: Sequence[GuaranteeCurve], ax: Any = None) -> Any:
    """Certified qualified candidates against list length, one step line per curve."""
    axes = new_axes() if ax is None else ax
    for curve in curves:
        axes.step(curve.list_size, curve.qualified, where="post", color=COLOURS[curve.rule],
                  label=NAMES[curve.rule])  # fmt: skip
    first = curves[0]
    axes.set_xlabel(f"candidates on the list, of {first.pool_size:g}")
    axes.set_ylabel("qualified among them (certified)")
    axes.set_title(f"All points hold at once, wrong at most {100 * first.alpha:g}% of the time", loc="left")
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False)
    return axes


def save(ax: Any, path: Path, dpi: int = 150) -> None:
    """Write the figure of ``ax``, complete or not at all; the format follows the extension."""
    if path.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise InvalidInput(f"plot: expected a name ending in .png, .svg or .pdf, got {path.name!r}.")
    with writing(path) as temporary:
        ax.figure.savefig(temporary, dpi=dpi, format=path.suffix[1:].lower())
