"""Runs tests again and again in forks of one process that has NumPy, SciPy and pytest loaded, and nothing of ours.

Started as a script by ``Forks``: a line of JSON in (folder, tests), a line of JSON out (exit code, output).
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

LOADED = (
    "click",
    "duckdb",
    "hypothesis",
    "narwhals",
    "numpy",
    "pydantic",
    "pytest",
    "scipy.special",
    "scipy.stats",
)
OPTIONS = ("-x", "-q", "-p", "no:cacheprovider", "-p", "tests.helpers.randomness")
MOST_SECONDS = 100  # of work, however busy the machine is


class Forks:
    """The process and the way to talk to it."""

    def __init__(self) -> None:
        environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        command = [sys.executable, "-P", __file__]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )

    def run(self, folder: Path, tests: str) -> tuple[int, str]:
        """The exit code and output of pytest, run in ``folder`` with its packages before all others."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([str(folder), tests]) + "\n")
        self._process.stdin.flush()
        code, output = json.loads(self._process.stdout.readline())
        return code, output

    def close(self) -> None:
        self._process.communicate()  # the end of its input is the end of it


def _serve() -> None:
    for name in LOADED:
        __import__(name)
    for line in sys.stdin:
        with tempfile.TemporaryFile() as output:
            folder, tests = json.loads(line)
            code = _run_in_fork(folder, tests, output.fileno())
            output.seek(0)
            print(json.dumps([code, output.read().decode(errors="replace")]), flush=True)


def _run_in_fork(folder: str, tests: str, output: int) -> int:
    child = os.fork()
    if child == 0:
        import pytest

        resource.setrlimit(resource.RLIMIT_CPU, (MOST_SECONDS, MOST_SECONDS))
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.chdir(folder)
        sys.path.insert(0, folder)
        os.environ["PYTHONPATH"] = folder
        code = int(pytest.main([*OPTIONS, tests]))
        sys.stdout.flush()
        os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


if __name__ == "__main__":
    _serve()
