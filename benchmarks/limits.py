"""Every limit of speed in one table: what was measured, the limit beside it; exit 1 where one is broken.

    make bench                                     # what fits into five minutes
    make bench-large                               # also 50 million rows, longer turns, and 100 million rows on Spark
    python benchmarks/limits.py --write            # the same, and docs/performance.md with its plot

Ratios are of processor seconds, ours over bare, both sides in turns in one run, the best of several; see each
benchmark for what it compares. "On the wall" is told beside them and held to nothing: other work on the
machine changes it.
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import core
import scale
import service
import spark_cluster
import start_up
from figures import Figure, show

DOCS = Path(__file__).parent.parent / "docs"
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"


def measured(large: bool) -> Iterator[Figure]:
    yield from core.figures()
    yield from start_up.figures(15 if large else 7)
    yield from scale.figures([20, 50] if large else [20], rounds=3)
    yield from service.figures(10 if large else 3)
    if large:
        yield from spark_cluster.figures(100)


def machine() -> str:
    model = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    name = model[1] if model else platform.processor()
    load = os.getloadavg()[0]
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    return f"{today}, {os.cpu_count()} cores ({name}), Python {platform.python_version()}, load {load:.1f} at the end"


def table(figures: Sequence[Figure]) -> str:
    lines = ["| what | where | measured | limit | |", "|---|---|---|---|---|"]
    for each in figures:
        limit = "" if each.limit is None else f"{each.limit:g}"
        verdict = "" if each.limit is None else "**broken**" if each.broken else "kept"
        lines.append(f"| {each.what} | {each.where} | {each.measured} | {limit} | {verdict} |")
    return "\n".join(lines)


def plot(figures: Sequence[Figure], path: Path) -> None:
    """Each measured figure as a share of its limit."""
    from matplotlib.figure import Figure as Sheet

    held = [each for each in figures if each.limit is not None][::-1]
    sheet = Sheet(figsize=(9, 0.28 * len(held) + 1), layout="constrained")
    axes = sheet.subplots()
    shares = [each.value / each.limit for each in held if each.limit]
    axes.barh(range(len(held)), shares, color=["#b3402a" if each.broken else "#2a6f97" for each in held])
    axes.axvline(1, color="black", linewidth=1)
    axes.set_yticks(range(len(held)), [f"{each.what}, {each.where}" for each in held], fontsize=8)
    axes.set_xlabel("measured, as a share of its limit")
    axes.margins(y=0.01)
    sheet.savefig(path, dpi=110)


def write(figures: Sequence[Figure], command: str) -> None:
    page = DOCS / "performance.md"
    before, _, rest = page.read_text().partition(BEGIN)
    after = rest.partition(END)[2]
    block = f"{BEGIN}\n`{command}`, {machine()}:\n\n{table(figures)}\n{END}"
    page.write_text(before + block + after)
    plot(figures, DOCS / "performance.png")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--large", action="store_true", help="also what takes longer")
    parser.add_argument("--write", action="store_true", help="put the table into docs/performance.md")
    options = parser.parse_args()
    figures = show(measured(options.large))
    if options.write:
        write(figures, "make bench-large" if options.large else "make bench")
    sys.exit(any(each.broken for each in figures))


if __name__ == "__main__":
    main()
