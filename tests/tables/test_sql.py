"""The SQL of a policy lists whom ``select`` lists, on every engine that runs here, bit for bit."""

from __future__ import annotations

import itertools
import json
import math
from decimal import Decimal
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import surelist as sl
from surelist.cli import run
from surelist.examples import population
from surelist.filters import Filter
from surelist.tables.thresholds import LARGEST, filter_sql
from surelist.workflows.selection import selection_sql
from tests.helpers.engines import spark_session, write_parquet
from tests.helpers.service import postgres

__all__ = ["postgres", "spark_session"]

ODD = "o'b\\ \"`é"


def policy(target: Any = None, **options: Any) -> sl.Policy:
    rng = np.random.default_rng(3)
    scores, labels = population(rng, 2_000)
    return sl.calibrate(scores, labels, target or sl.Expected(5, 100), **options)


def grouped(first: Any = ODD, second: Any = "b") -> sl.Policy:
    groups = [first if number % 2 else second for number in range(2_000)]
    targets = {first: sl.Expected(1, 50), second: sl.Expected(3, 50)}
    return policy(targets, groups=sl.Groups(groups, purpose="a test"))


def boundary(thresholds: list[float]) -> list[float | None]:
    """Scores at the thresholds, a hair on either side, and everything that is no score."""
    near = [[each, math.nextafter(each, 9), math.nextafter(each, -9), -each] for each in thresholds]
    odd = [None, math.nan, math.inf, -math.inf, 0.0, -0.0, 5e-324, LARGEST, -LARGEST, 1e300, 2.0**60]
    return [*itertools.chain.from_iterable(near), *odd, *np.linspace(0, 1, 40).tolist()]


CASES = {
    "double": (policy, lambda: pa.array(boundary([policy().threshold]), pa.float64()), {}),
    "real": (policy, lambda: pa.array([None, math.nan, math.inf, *np.linspace(0, 1, 300)], pa.float32()), {}),
    "decimal": (policy, lambda: pa.array([Decimal(n) / 1000 for n in range(1000)], pa.decimal128(6, 3)), {}),
    "integer": (
        lambda: shifted(2.0**53 - 4), lambda: pa.array([2**53 + n for n in range(-30, 9)] + [None, 2**62]),
        {"whole_numbers": True},
    ),
}  # fmt: skip


def shifted(by: float) -> sl.Policy:
    """A policy whose threshold is a large whole number."""
    scores = np.arange(2_000) // 500 + by
    return sl.calibrate(scores, np.arange(2_000) % 5 == 0, sl.Expected(5, 100))


def table_of(scores: pa.Array, groups: pa.Array | None = None) -> pa.Table:
    columns = {"row": pa.array(range(len(scores))), 'sc"ore': scores}
    return pa.table(columns | ({} if groups is None else {"group": groups}))


@pytest.mark.parametrize("case", CASES)
def test_duckdb_lists_whom_select_lists(case):
    make, scores, options = CASES[case]
    chosen, table = make(), table_of(scores())
    sql = selection_sql(chosen, "duckdb", score='sc"ore', **options)
    connection = duckdb.connect(":memory:")
    relation = connection.from_arrow(table)
    answers = relation.project(f'"row", {sql} AS listed').fetchall()
    assert {type(answer) for _, answer in answers} == {bool}
    listed = sorted(row for row, answer in answers if answer)
    if case == "integer":  # SQL lists nobody whose score has no exact float, where select refuses
        with pytest.raises(sl.InvalidInput, match=r"beyond 2\^53"):
            sl.select_table(relation, chosen, score='sc"ore', on_bad_rows="drop")
        relation = relation.filter('"sc""ore" IS NULL OR "sc""ore" <= 9007199254740992')
    done = sl.select_table(relation, chosen, score='sc"ore', on_bad_rows="drop").table
    assert listed == sorted(row for row, _ in done.fetchall())
    assert 0 < len(listed) < len(answers)


@pytest.mark.parametrize("names", [(ODD, "b"), (7, -3)], ids=["text", "integer"])
def test_groups_on_duckdb(names):
    chosen = grouped(*names)
    scores = boundary(list(chosen.thresholds.values()))
    usable = [each for each in scores if each is not None and math.isfinite(each)]
    groups = pa.array([names[number % 2] for number in range(2 * len(usable))])
    table = table_of(pa.array([each for each in usable for _ in range(2)], pa.float64()), groups)
    relation = duckdb.connect(":memory:").from_arrow(table)
    sql = selection_sql(chosen, "duckdb", score='sc"ore', group="group")
    listed = sorted(row for row, *_ in relation.filter(sql).fetchall())
    done = sl.select_table(relation, chosen, score='sc"ore', group="group").table
    assert listed == sorted(row for row, *_ in done.fetchall())
    strangers = table_of(pa.array([0.99, 0.99]), pa.array([None, "stranger"]))
    assert not duckdb.connect(":memory:").from_arrow(strangers).filter(sql).fetchall()


def test_postgresql_lists_whom_select_lists(postgres):
    import psycopg

    chosen = grouped()
    scores = boundary(list(chosen.thresholds.values()))
    rows = [(number, score, name) for number, score in enumerate(scores * 2) for name in (ODD, "b", None)]
    sql = selection_sql(chosen, "postgres", score='sc"ore', group="group")
    with psycopg.connect(postgres.new_database()) as connection:
        connection.execute('CREATE TABLE t ("row" int, "sc""ore" double precision, "group" text)')
        with connection.cursor() as cursor:
            cursor.executemany("INSERT INTO t VALUES (%s, %s, %s)", rows)
            cursor.execute(f'SELECT "row", "group", {sql} FROM t'.encode())  # no placeholders in it
            answers = cursor.fetchall()
            cursor.execute('CREATE TABLE d ("sc""ore" numeric(6, 3))')
            cursor.executemany("INSERT INTO d VALUES (%s)", [(Decimal(n) / 1000,) for n in range(1000)])
            plain = selection_sql(policy(), "postgres", score='sc"ore')
            cursor.execute(f"SELECT count(*) FROM d WHERE {plain}".encode())
            (decimals,) = cursor.fetchone()
    finite = [(n, s, g) for n, s, g in rows if g is not None and s is not None and math.isfinite(s)]
    mask = chosen.select([s for _, s, _ in finite], groups=[g for *_, g in finite])
    expected = {(n, g) for (n, _, g), listed in zip(finite, mask, strict=True) if listed}
    assert {(n, g) for n, g, listed in answers if listed} == expected
    assert all(listed is not None for *_, listed in answers)
    assert decimals == int(policy().select([n / 1000 for n in range(1000)]).sum())


def test_spark_lists_whom_select_lists(spark_session, tmp_path):
    chosen = grouped()
    scores = [each for each in boundary(list(chosen.thresholds.values())) for _ in range(2)]
    groups = pa.array([(ODD, "b")[number % 2] for number in range(len(scores))])
    path = write_parquet(tmp_path / "pool.parquet", table_of(pa.array(scores, pa.float64()), groups))
    frame = spark_session.read.parquet(path)
    sql = selection_sql(chosen, "spark", score='sc"ore', group="group")
    answers = frame.selectExpr("row", f"{sql} AS listed").collect()
    assert {type(each.listed) for each in answers} == {bool}
    done = sl.select_table(frame, chosen, score='sc"ore', group="group", on_bad_rows="drop")
    assert sorted(each.row for each in answers if each.listed) == sorted(
        each.row for each in done.table.select("row").collect()
    )
    decimals = spark_session.range(1000).selectExpr("id AS row", "CAST(id / 1000 AS DECIMAL(6, 3)) AS s")
    plain = selection_sql(policy(), "spark", score="s")
    done = sl.select_table(decimals, policy(), score="s")
    assert decimals.filter(plain).count() == done.shortlisted > 0


def test_a_pool_size_chooses_the_threshold():
    chosen = policy(sl.PerPool(3, (50, 200)))
    steps = chosen.cutoffs[0].steps
    for size in (50, 120, 200, 10_000):
        threshold = next(step.threshold for step in reversed(steps) if step.pool_size <= size)
        assert f"'{threshold!r}'" in selection_sql(chosen, score="s", pool_size=size)
    with pytest.raises(sl.InvalidInput, match="covers pools of 50 or more"):
        selection_sql(chosen, score="s", pool_size=49)


def test_everyone_is_everyone_with_a_score():
    sql = filter_sql(Filter.at_least(None), {"score": "s"}, "duckdb")
    table = pa.table({"s": [None, math.nan, math.inf, -math.inf, -LARGEST, LARGEST, 0.0]})
    assert duckdb.connect(":memory:").from_arrow(table).filter(sql).fetchall() == [
        (-LARGEST,),
        (LARGEST,),
        (0.0,),
    ]


def refusals() -> list[tuple[Any, dict[str, Any], str]]:
    rng = np.random.default_rng(5)
    scores, labels = population(rng, 1_500)
    ids = [str(number) for number in range(1_500)]
    hashed = sl.calibrate(np.round(scores, 2), labels, sl.Expected(5, 100), ties=sl.Hash(ids))
    by_rank = sl.calibrate(scores, labels, sl.NextPool(k=1, by="rank"), pools=np.repeat(np.arange(75), 20))
    masks = {"a": scores > -1, "b": scores > -2}
    overlapping = sl.calibrate(
        scores,
        labels,
        {"a": sl.Expected(2, 50), "b": sl.Expected(2, 50)},
        groups=sl.Groups(masks, purpose="x"),
    )
    per_group = sl.calibrate(
        scores, labels, {"a": sl.PerPool(1, 50), "b": sl.PerPool(1, 50)}, groups=sl.Groups(np.array(["a", "b"] * 750), purpose="x"),
    )  # fmt: skip
    one_pool = sl.calibrate(scores, labels, sl.FalseShare(0.7), unlabelled=rng.random(300))
    campaign = sl.Campaign(scores, labels, sl.Expected(5, 100))
    return [
        (hashed, {}, "secret salt"), (by_rank, {}, "by rank"), (overlapping, {}, "overlap"),
        (per_group, {"pool_size": 50}, "of each group"), (one_pool, {}, "from no other"),
        (campaign.policy, {}, "campaign"), (policy().withdraw("x"), {}, "nothing any more"),
        (policy(sl.PerPool(3, 50)), {}, "pool_size"), (policy(), {"pool_size": 100}, "leave it out"),
        (policy(), {"score": None}, "no score column"), (policy(), {"group": "g"}, "one cutoff for everybody"),
        (grouped(), {}, "no group column"), (grouped(True, False), {"group": "g"}, "True and False"),
        (policy(), {"dialect": "mysql"}, "dialect"),
    ]  # fmt: skip


def test_what_sql_cannot_say_is_refused_with_the_reason():
    for chosen, options, reason in refusals():
        given = {"score": "score", "dialect": "duckdb", **options}
        with pytest.raises(sl.InvalidInput, match=reason):
            selection_sql(chosen, **given)


def test_the_command_prints_the_expression_and_refusals_in_flags(tmp_path, capsys):
    chosen = policy().with_columns(score="score")
    chosen.save(tmp_path / "p.json")
    assert run(["sql", str(tmp_path / "p.json"), "--dialect", "postgres"]) == 0
    assert capsys.readouterr().out.strip() == selection_sql(chosen, "postgres")
    assert run(["sql", str(tmp_path / "p.json"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "sql": selection_sql(chosen), "dialect": "duckdb", "promise": chosen.promise
    }  # fmt: skip
    policy(sl.PerPool(3, 50)).with_columns(score="score").save(tmp_path / "pool.json")
    assert run(["sql", str(tmp_path / "pool.json")]) == 2
    assert "--pool-size: this policy's threshold depends" in capsys.readouterr().err
