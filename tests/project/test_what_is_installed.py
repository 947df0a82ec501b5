"""Without the extras: the core reads files by itself, and errors say what to install."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import surelist as sl
from tests.helpers.engines import arrow, write_csv, write_parquet
from tests.tables.test_calibrate_tables import sample
from tests.tables.test_select_tables import SALT, hashed_policy, pool_of

pytestmark = pytest.mark.slow

BLOCK = "import sys; sys.modules.update(dict.fromkeys({missing}));"
WORK = """
import surelist as sl
for path in sys.argv[1:3]:
    policy = sl.calibrate_table(path, score="score", label="label", target=sl.Expected(5, 100))
    done = sl.select_table(path, policy, output=path + ".out.csv")
    print(repr(policy.threshold), done.shortlisted)
"""


def python(code: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )


def test_the_core_needs_no_dataframe_library(tmp_path: Path) -> None:
    table = arrow(sample(500))
    files = write_csv(tmp_path / "a.csv", table), write_parquet(tmp_path / "b.parquet", table)
    bare = BLOCK.format(missing=["pandas", "polars", "pyarrow", "pyspark"])
    done = python(bare + WORK, *files)
    assert done.returncode == 0, done.stderr
    policy = sl.calibrate_table(files[1], score="score", label="label", target=sl.Expected(5, 100))
    assert done.stdout.splitlines()[0].startswith(repr(policy.threshold))
    assert len(set(done.stdout.splitlines())) == 1


ASK = """
import surelist as sl
sl.calibrate_table(sys.argv[1], score="score", label="label", target=sl.Expected(5, 100),
                   read=sl.Read(engine=sys.argv[2]))
"""


@pytest.mark.parametrize(("engine", "package"), [("spark", "pyspark"), ("polars", "polars")])
def test_a_missing_package_is_named(engine: str, package: str, tmp_path: Path) -> None:
    path = write_parquet(tmp_path / "a.parquet", arrow(sample(5)))
    done = python(BLOCK.format(missing=[package]) + ASK, path, engine)
    assert "MissingDependency" in done.stderr
    assert "pip install" in done.stderr


def test_missing_java_is_named(tmp_path: Path) -> None:
    path = write_parquet(tmp_path / "a.parquet", arrow(sample(5)))
    done = python("import sys;" + ASK, path, "spark", PATH=str(tmp_path), JAVA_HOME="")
    assert "MissingDependency" in done.stderr
    assert "openjdk-17-jre-headless" in done.stderr


def test_spark_plans_do_not_show_the_salt(tmp_path: Path, spark_session: Any) -> None:
    policy = hashed_policy(sl.Expected(5, 100), sample(2000, seed=3, levels=4), SALT)
    pool = write_parquet(tmp_path / "pool.parquet", arrow(pool_of(50, levels=4)))
    done = sl.select_table(spark_session.read.parquet(pool), policy)
    plan = done.table._jdf.queryExecution().toString()
    assert "sha2" in plan
    assert SALT.key[:16] not in plan
