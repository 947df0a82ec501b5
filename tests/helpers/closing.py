"""The last line of `make test`: how many tests ran and how long all of it took.

python tests/helpers/closing.py tests.xml 1700000000      pytest's report, and the second the command began
"""

from __future__ import annotations

import sys
import time
from xml.etree import ElementTree


def line(report: str, seconds: int) -> str:
    (suite,) = ElementTree.parse(report).getroot().iter("testsuite")
    skipped, failed = (
        int(suite.attrib["skipped"]),
        int(suite.attrib["failures"]) + int(suite.attrib["errors"]),
    )
    ran = int(suite.attrib["tests"]) - skipped
    took = f"{seconds // 60} min {seconds % 60} s"
    return f"{ran:,} tests ran, {failed:,} failed, {skipped:,} skipped; everything took {took}."


if __name__ == "__main__":
    print(line(sys.argv[1], int(time.time()) - int(sys.argv[2])))
