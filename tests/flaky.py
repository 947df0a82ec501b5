"""Does any test fail by chance? Runs the fast tests again and again, and those of fresh randomness more often still.

    python tests/flaky.py [--fast 30] [--fresh 200] [--load 4] [--anew] [pytest's arguments for the fast tests]

Beside pytest's two workers, busy processes make up the load; they end with this one. Each run is a line on the screen
and in ``.cache/flaky.jsonl``: after an interruption the same command goes on where it was, as long as no file changed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import time
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest

ROOT = Path(__file__).parents[1]
FIGURES = ROOT / ".cache" / "flaky.jsonl"
PYTEST = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider")
MARK = "fresh_randomness"
TIMES = "SURELIST_TEST_TIMES"
AT_ONCE = 20  # repetitions in one process: starting it takes longer than the tests of fresh randomness
WORKERS = 2
# busy until its parent is gone, at the latest after a day
BUSY = """
import os, time
parent, end = os.getppid(), time.monotonic() + 86400
while os.getppid() == parent and time.monotonic() < end:
    sum(range(1_000_000))
"""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """As a plugin (``-p tests.flaky``): every test so many times."""
    metafunc.fixturenames.append("repetition")
    metafunc.parametrize("repetition", range(int(os.environ[TIMES])))


def with_fresh_randomness() -> list[str]:
    """The files of such tests: collecting all others again and again would take longer than the tests."""
    mark = f"@pytest.mark.{MARK}"
    return [str(each) for each in ROOT.glob("tests/**/test_*.py") if mark in each.read_text(encoding="utf-8")]


def run_once(arguments: list[str], times: int = 0) -> tuple[int, list[str]]:
    """How many passed, and which failed; a run that ends otherwise counts as one that failed."""
    repeated = ["-p", "tests.flaky"] if times else []
    done = subprocess.run(
        [*PYTEST, *repeated, *arguments], cwd=ROOT, capture_output=True, text=True,
        env={**os.environ, TIMES: str(times)},
    )  # fmt: skip
    lines = [each for each in (done.stdout + done.stderr).splitlines() if each.strip()]
    failed = [each for each in lines if each.startswith(("FAILED ", "ERROR "))]
    if done.returncode and not failed:
        failed = [f"exit code {done.returncode}: {lines[-1] if lines else ''}"]
    passed = re.search(r"(\d+) passed", done.stdout)
    return int(passed[1]) if passed else 0, failed


def state() -> str:
    """What is tested: the commit and every change since."""
    say = ["git", "rev-parse", "HEAD"], ["git", "diff", "HEAD"], ["git", "status", "--porcelain"]
    told = b"".join(subprocess.run(each, cwd=ROOT, capture_output=True).stdout for each in say)
    return hashlib.sha256(told).hexdigest()[:16]


def earlier(of: dict[str, Any]) -> list[dict[str, Any]]:
    """The runs on record of the same files, load and arguments."""
    lines = FIGURES.read_text(encoding="utf-8").splitlines() if FIGURES.exists() else []
    runs = [json.loads(each) for each in lines]
    return [each for each in runs if of.items() <= each.items()]


@contextmanager
def load(processes: int) -> Iterator[None]:
    busy = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(processes)]
    try:
        yield
    finally:
        for each in busy:
            each.kill()
            each.wait()


def repeat(
    kind: str, wanted: int, at_once: int, arguments: list[str], of: dict[str, Any]
) -> list[dict[str, Any]]:
    """Until ``wanted`` runs are on record; all of them."""
    of = {**of, "kind": kind}
    runs = earlier(of)
    while (done := sum(each["times"] for each in runs)) < wanted:
        times, began = min(at_once, wanted - done), time.monotonic()
        passed, failed = run_once(arguments, times if at_once > 1 else 0)
        run = {
            **of,
            "times": times,
            "passed": passed,
            "failed": failed,
            "seconds": round(time.monotonic() - began),
        }
        runs.append(run)
        with FIGURES.open("a", encoding="utf-8") as file:
            file.write(json.dumps(run) + "\n")
        told = f"{kind}: {done + times} of {wanted} runs, {passed:,} passed, {len(failed)} failed, {run['seconds']} s"
        print("\n  ".join([told, *failed]), flush=True)
    return runs


def main() -> int:
    """The last line says what ran how often, and how many failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fast", type=int, default=30, help="runs of the fast tests")
    parser.add_argument("--fresh", type=int, default=200, help="runs of the tests of fresh randomness")
    parser.add_argument("--load", type=int, default=4, help="of the machine, pytest's workers among it")
    parser.add_argument("--anew", action="store_true", help="forget what ran before")
    given, more = parser.parse_known_args()
    FIGURES.parent.mkdir(exist_ok=True)
    if given.anew:
        FIGURES.unlink(missing_ok=True)
    workers = ["-n", str(WORKERS)]
    fast = [*(more or [*workers, "--dist", "worksteal"]), "-m", "not slow and not exhaustive"]
    fresh = [*with_fresh_randomness(), *workers, "-m", MARK]
    of = {"state": state(), "load": given.load, "arguments": more}
    with load(max(0, given.load - WORKERS)):
        runs = repeat("fresh randomness", given.fresh, AT_ONCE, fresh, of)
        runs += repeat("fast tests", given.fast, 1, fast, of)
    failed = Counter(name for each in runs for name in each["failed"])
    for name, times in failed.most_common():
        print(f"{times} times: {name}", file=sys.stderr)
    print(
        f"{given.fresh} runs of the tests of fresh randomness and {given.fast} of the fast tests at load {given.load}: "
        f"{sum(each['passed'] for each in runs):,} passed, {failed.total():,} failed, "
        f"in {sum(each['seconds'] for each in runs) / 60:.0f} minutes"
    )
    return min(1, failed.total())


if __name__ == "__main__":
    sys.exit(main())
