"""How long ``surelist select`` takes on a hundred rows, against importing NumPy and DuckDB.

    python benchmarks/start_up.py

One run: both commands in turn, the smallest of each counted (other work on the machine only adds time).
Wall-clock and CPU time, and their ratios; compiled modules are kept, as after any installation.
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


def measured(command: list[str], folder: Path) -> tuple[float, float]:
    """Wall-clock and CPU seconds of a command."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=True)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        surelist = [sys.executable, "-m", "surelist"]
        subprocess.run([*surelist, "demo", "--folder", "."], cwd=folder, capture_output=True, check=True)
        commands = {
            "import numpy, duckdb": [sys.executable, "-c", "import numpy, duckdb"],
            "surelist select": [*surelist, "select", "new.csv", "--policy", "policy.json", "-o", "out.csv"],
        }
        taken = {
            what: [measured(command, folder) for _ in range(rounds)] for what, command in commands.items()
        }
    print(f"{'':24}{'wall':>10}{'CPU':>10}   (seconds, smallest of {rounds})")
    best = {what: [min(each[at] for each in own) for at in (0, 1)] for what, own in taken.items()}
    for what, (wall, cpu) in best.items():
        print(f"{what:24}{wall:>10.3f}{cpu:>10.3f}")
    base, ours = best.values()
    print(f"{'ratio':24}{ours[0] / base[0]:>10.2f}{ours[1] / base[1]:>10.2f}")


if __name__ == "__main__":
    main()
