"""Does any test fail by chance? Runs the fast tests again and again, and those of fresh randomness more often still.

    python tests/flaky.py [--fast 30] [--fresh 200] [--load 4] [pytest's arguments for the fast tests]

All the while as many processes as ``--load`` says keep the machine busy; they end with this one.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
PYTEST = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider")
MARK = "fresh_randomness"
# busy until its parent is gone, at the latest after a day
BUSY = """
import os, time
parent, end = os.getppid(), time.monotonic() + 86400
while os.getppid() == parent and time.monotonic() < end:
    sum(range(1_000_000))
"""


def with_fresh_randomness() -> list[str]:
    """The files of such tests: collecting all others 200 times would take longer than the tests."""
    mark = f"@pytest.mark.{MARK}"
    return [str(each) for each in ROOT.glob("tests/**/test_*.py") if mark in each.read_text(encoding="utf-8")]


def run_once(arguments: list[str]) -> list[str]:
    """The tests that failed; a run that ends otherwise counts as one."""
    done = subprocess.run([*PYTEST, *arguments], cwd=ROOT, capture_output=True, text=True)
    lines = (done.stdout + done.stderr).splitlines()
    failed = [each for each in lines if each.startswith(("FAILED ", "ERROR "))]
    if done.returncode and not failed:
        failed = [f"exit code {done.returncode}: {lines[-1] if lines else ''}"]
    return failed


def main() -> int:
    """One line: what ran how often, and what failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fast", type=int, default=30, help="runs of the fast tests")
    parser.add_argument("--fresh", type=int, default=200, help="runs of the tests of fresh randomness")
    parser.add_argument("--load", type=int, default=4, help="busy processes beside them")
    given, more = parser.parse_known_args()
    fast = [*(more or ["-n", "2", "--dist", "worksteal"]), "-m", "not slow and not exhaustive"]
    busy = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(given.load)]
    began, failed = time.monotonic(), Counter[str]()
    try:
        for times, arguments in ((given.fresh, [*with_fresh_randomness(), "-m", MARK]), (given.fast, fast)):
            for _ in range(times):
                failed.update(run_once(arguments))
    finally:
        for each in busy:
            each.kill()
            each.wait()
    for name, times in failed.most_common():
        print(f"{times} times: {name}", file=sys.stderr)
    print(
        f"{given.fresh} runs of the tests of fresh randomness and {given.fast} of the fast tests "
        f"at load {given.load} in {(time.monotonic() - began) / 60:.0f} minutes: {failed.total()} failures"
    )
    return min(1, failed.total())


if __name__ == "__main__":
    sys.exit(main())
