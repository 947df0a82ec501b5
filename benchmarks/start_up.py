"""How long ``surelist select`` takes on a hundred rows, against importing NumPy and DuckDB.

    python benchmarks/start_up.py

Both commands in turn, the smallest of each counted (other work on the machine only adds time). Ratios of
processor and of wall-clock time; compiled modules are kept, as after any installation.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from figures import Figure, show


def measured(command: list[str], folder: Path) -> tuple[float, float]:
    """Wall-clock and CPU seconds of a command."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=True)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def figures(rounds: int = 15) -> list[Figure]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        surelist = [sys.executable, "-m", "surelist"]
        subprocess.run([*surelist, "demo", "--folder", "."], cwd=folder, capture_output=True, check=True)
        commands = (
            [sys.executable, "-c", "import numpy, duckdb"],
            [*surelist, "select", "new.csv", "--policy", "policy.json", "-o", "out.csv"],
        )
        turns = [[measured(command, folder) for command in commands] for _ in range(rounds)]
    (base_wall, base_cpu), (wall, cpu) = (
        [min(each) for each in zip(*own, strict=True)] for own in zip(*turns, strict=True)
    )
    where = "100 rows"
    return [
        Figure("surelist select, from the shell", where, cpu / base_cpu, 1.5),
        Figure("surelist select, from the shell, on the wall", where, wall / base_wall),
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=15)
    show(figures(parser.parse_args().rounds))
