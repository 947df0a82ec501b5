"""A selection starts at once: what it does not use is not imported."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import surelist as sl
from surelist.examples import population

pytestmark = pytest.mark.slow

UNUSED = {
    "scipy",
    "pydantic",
    "pandas",
    "polars",
    "pyarrow",
    "sklearn",
    "matplotlib",
    "jinja2",
    "fastapi",
    "pyspark",
    "xml",
}
OTHER_PROMISES = {  # and calibration: for a promise that counts rows, none of it is needed
    f"surelist.{name}"
    for name in (
        "promises.calibrate", "promises.terms", "promises.sampled", "promises.shift", "promises.evidence",
        "promises.kinds.betting", "promises.kinds.next_pool", "promises.kinds.few_labels", "promises.kinds.precision",
        "promises.kinds.budget", "promises.kinds.false_share", "promises.kinds.at_least",
        "promises.kinds.rate_proofs", "bounds.control",
        "bounds.rank_chain", "tables.evidence", "tables.order_statistics", "lifecycle",
    )
}  # fmt: skip
CODE = """
import sys
from surelist.cli import run
code = run(sys.argv[1:])
print(code, *sys.modules)
"""


def policies() -> dict[str, sl.Policy]:
    rng = np.random.default_rng(8)
    scores, labels = population(rng, 3_000)
    groups = np.where(rng.random(3_000) < 0.5, "a", "b")
    targets = {"a": sl.Expected(2, 50), "b": sl.Expected(2, 50)}
    return {
        "expected": sl.calibrate(scores, labels, sl.Expected(5, 100)),
        "dkw": sl.calibrate(scores, labels, sl.Expected(5, 100), rule="dkw"),
        "groups": sl.calibrate(scores, labels, targets, groups=sl.Groups(groups, "a test")),
        "per pool": sl.calibrate(scores, labels, sl.PerPool(3, (50, 200))),
        "recall": sl.calibrate(scores, labels, sl.Recall(0.9)),
    }


@pytest.mark.parametrize("name", ["expected", "dkw", "groups", "per pool", "recall"])
def test_a_selection_imports_nothing_that_it_does_not_use(tmp_path: Path, name):
    policies()[name].save(tmp_path / "policy.json")
    rows = [f"{number / 100},{'ab'[number % 2]}" for number in range(100)]
    (tmp_path / "new.csv").write_text("\n".join(["score,group", *rows]) + "\n")
    words = ["select", "new.csv", "--policy", "policy.json", "--score", "score", "-o", "out.csv"]
    words += ["--group", "group"] if name == "groups" else []
    done = subprocess.run(
        [sys.executable, "-c", CODE, *words], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    code, *loaded = done.stdout.split()
    assert code == "0", done.stderr
    assert "duckdb" in loaded
    assert not UNUSED & {each.partition(".")[0] for each in loaded}
    assert OTHER_PROMISES & set(loaded) == set()
    assert (tmp_path / "out.csv").exists()
