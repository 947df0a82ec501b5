"""Every promise from every kind of table: the policy, the shortlist and the errors are those of arrays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from msgspec import structs

import surelist as sl
from surelist.examples import population
from surelist.workflows.selection import selection_sql

pytestmark = pytest.mark.slow

EDGE = 0.6
FEW = ("duckdb", "csv")  # where one calibration takes a second


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    """Past candidates of 40 queries, with everything that the promises ask for, in a shuffled order."""
    rng = np.random.default_rng(8)
    scores, labels = population(rng, 1500)
    scores = np.round(scores, 3)  # ties, inside and across queries
    drawn = (scores >= EDGE) | (rng.random(1500) < 0.3)
    return pd.DataFrame({
        "my score": scores, "other": np.round(scores + rng.normal(0, 0.1, 1500), 3), "qualified": labels.astype(int),
        "drawn": np.where(drawn, labels, np.nan), "rate": np.where(scores >= EDGE, 1.0, 0.3),
        "value": labels * rng.integers(1, 20, 1500), "query": [f"q{i:02}" for i in rng.integers(0, 40, 1500)],
        "ratio": rng.choice([0.5, 1.5], 1500), "half": np.arange(1500) % 2,
    })  # fmt: skip


@pytest.fixture(scope="module")
def others() -> pd.DataFrame:
    scores = np.round(population(np.random.default_rng(9), 2000)[0], 3)
    return pd.DataFrame({"my score": scores, "other": scores})


def tables(frame: pd.DataFrame, folder: Path, name: str) -> dict[str, Any]:
    frame.to_csv(folder / f"{name}.csv", index=False)
    frame.to_parquet(folder / f"{name}.parquet")
    arrow = pa.Table.from_pandas(frame)
    return {
        "pandas": frame, "polars": pl.from_pandas(frame), "lazy": pl.from_pandas(frame).lazy(), "arrow": arrow,
        "duckdb": duckdb.from_arrow(arrow), "csv": folder / f"{name}.csv", "parquet": folder / f"{name}.parquet",
    }  # fmt: skip


LABELS = {
    "audited": sl.SampledLabels("drawn", probability=0.3, above=EDGE),
    "rates": sl.SampledLabels("drawn", probability="rate", lowest_rate=0.3),
}
SHIFT = sl.DensityRatio("ratio", 1.5, seed=5)
PROMISES: dict[str, dict[str, Any]] = {
    "next pool": {"target": sl.NextPool(k=2), "pool": "query"},
    "own recall": {"target": sl.NextPool(recall=0.7), "pool": "query"},
    "by rank": {"target": sl.NextPool(k=1, by="rank"), "pool": "query"},
    "average of pools": {"target": sl.PoolAverage(2, spread=3), "pool": "query", "randomised": True},
    "value per pool": {"target": sl.PoolAverage(9, of="value"), "label": "value", "pool": "query", "randomised": True},
    "value per 100": {"target": sl.Value(40, 100), "label": "value", "randomised": True},
    "precision": {"target": sl.Precision(0.5, start=0.1), "unlabelled": True},
    "false share": {"target": sl.FalseShare(0.5), "unlabelled": True},
    "budget": {"target": sl.Budget(10, 100), "unlabelled": True},
    "rank chain": {"target": sl.Expected(5, 100), "unlabelled": True, "kinds": FEW},
    "audited": {"target": sl.Expected(5, 100), "label": LABELS["audited"]},
    "known rates": {"target": sl.Expected(4, 100), "label": LABELS["rates"], "randomised": True},
    "best of two": {"target": sl.Expected(5, 100), "score": ["other", "my score"]},
    "best of two, with others": {"target": sl.Expected(5, 100), "score": ["other", "my score"], "unlabelled": True,
                                 "kinds": FEW},
    "known shift": {"target": sl.Expected(4, 100), "shift": SHIFT},
    "known shift of the next pools": {"target": sl.PerPool(2, (100, 110)), "shift": SHIFT},
    "known shift, kept share": {"target": sl.Recall(0.7), "shift": SHIFT},
    "shift known within a factor": {"target": sl.Expected(2, 100), "shift": sl.DensityRatio("ratio", 1.5, within=1.2, seed=5)},
    "known shift, precision": {"target": sl.Precision(0.4, start=0.1), "shift": SHIFT, "unlabelled": True},
    "known shift, best of two": {"target": sl.Expected(4, 100), "shift": SHIFT, "score": ["other", "my score"]},
    "two promises": {"target": [sl.Expected(5, 100), sl.Precision(0.4, start=0.1)], "unlabelled": True, "kinds": FEW},
}  # fmt: skip


def from_table(table: Any, others: Any, asked: dict[str, Any]) -> sl.Policy:
    given = {name: value for name, value in asked.items() if name not in ("randomised", "kinds")}
    given |= {"unlabelled": others} if "unlabelled" in given else {}
    return sl.calibrate_table(table, **{"score": "my score", "label": "qualified", **given})


def from_arrays(rows: pd.DataFrame, others: pd.DataFrame, asked: dict[str, Any]) -> sl.Policy:
    score, label = asked.get("score", "my score"), asked.get("label", "qualified")
    labels: Any = rows[label] if isinstance(label, str) else None
    if labels is None:
        rate = rows[label.probability] if isinstance(label.probability, str) else label.probability
        labels = sl.SampledLabels(rows["drawn"], rate, label.above, label.lowest_rate)
    one = isinstance(score, str)
    given: dict[str, Any] = {"rule": asked.get("rule", "exact")}
    if "pool" in asked:
        given["pools"] = rows[asked["pool"]]
    if "unlabelled" in asked:
        given["unlabelled"] = others[score] if one else {name: others[name] for name in score}
    if (shift := asked.get("shift")) is not None:
        given["shift"] = structs.replace(shift, ratios=rows[shift.ratios])
    scores = rows[score] if one else {name: rows[name] for name in score}
    return sl.calibrate(scores, labels, asked["target"], **given)


@pytest.mark.parametrize("promise", PROMISES)
def test_every_table_gives_the_policy_and_the_list_of_arrays(rows, others, tmp_path, promise):
    asked = PROMISES[promise]
    arrays = from_arrays(rows, others, asked)
    other_tables = tables(others, tmp_path, "others")
    pool = others.assign(query=[f"n{i % 40}" for i in range(len(others))])
    pools = tables(pool, tmp_path, "pool")
    for kind, table in tables(rows, tmp_path, "rows").items():
        if kind not in asked.get("kinds", (kind,)):
            continue
        policy = from_table(table, other_tables[kind], asked)
        if asked.get("randomised"):  # a fresh draw each time: the same promise from the same rows
            assert policy.cutoffs[0].fingerprint == arrays.cutoffs[0].fingerprint or "rates" in promise, kind
            assert policy.promise.partition(" of the ")[0] == arrays.promise.partition(" of the ")[0], kind
        else:
            assert policy.thresholds == arrays.thresholds, kind
            assert policy.promise == arrays.promise, kind
            assert [each.proof for each in policy.cutoffs] == [each.proof for each in arrays.cutoffs], kind
        policy.save(tmp_path / f"{kind}.json")
        loaded = sl.Policy.load(tmp_path / f"{kind}.json")
        column = "query" if loaded.by_rank else None
        done = sl.select_table(pools[kind], loaded, pool=column, output=tmp_path / "list.csv", reason=True)
        listed = pd.read_csv(tmp_path / "list.csv")
        assert listed["my score"].tolist() == expected_list(loaded, pool), kind
        assert done.shortlisted == len(listed)
        assert done.candidates == len(pool)
        said = "among the best" if loaded.by_rank else "score >="
        assert listed["shortlist_reason"].str.contains(said).all(), kind


def expected_list(policy: sl.Policy, pool: pd.DataFrame) -> list[float]:
    score = pool[(policy.columns or {})["score"]]
    if not policy.by_rank:
        chosen = policy.select({policy.choice.chosen: score} if policy.choice else score)
        return pool["my score"][chosen].tolist()
    chosen = np.zeros(len(pool), dtype=bool)
    for _, part in pool.groupby("query"):
        chosen[part.index] = policy.select(part["my score"])
    return pool["my score"][chosen].tolist()


def test_lists_by_rank_in_one_pool_and_with_rows_dropped(rows, tmp_path):
    policy = from_table(rows, None, PROMISES["by rank"])
    best = int(-policy.threshold)
    pool = pd.DataFrame({"my score": [0.5] * best + [0.4, np.nan, 0.3], "name": range(best + 3)})
    for kind, table in tables(pool, tmp_path, "pool").items():
        done = sl.select_table(table, policy, on_bad_rows="drop")
        assert (done.shortlisted, done.dropped) == (best, 1), kind  # ties at the top count once each
        with pytest.raises(sl.InvalidInput, match="'my score': expected a finite"):
            sl.select_table(table, policy)
    two = pd.concat([pool.fillna(0.1).assign(query=each) for each in "ab"])
    for kind, table in tables(
        two, tmp_path, "two"
    ).items():  # the pools it was calibrated on, not one of both
        assert sl.select_table(table, policy).shortlisted == 2 * best, kind
    with pytest.raises(sl.InvalidInput, match="'query': missing pool: 3 rows"):
        sl.select_table(
            pool.fillna(0.1).assign(query=[None] * 3 + ["a"] * (len(pool) - 3)), policy, pool="query"
        )


def test_a_false_share_policy_selects_from_its_own_pool_alone(rows, others, tmp_path):
    policy = from_table(rows, others, PROMISES["false share"])
    for kind, table in tables(others.iloc[::-1], tmp_path, "again").items():  # in any order
        assert sl.select_table(table, policy).shortlisted == policy.cutoffs[0].proof.listed, kind  # type: ignore[attr-defined]
    with pytest.raises(sl.InvalidInput, match="from no other"):
        sl.select_table(others.iloc[1:], policy)


HALVES = {0: sl.Expected(2, 50), 1: sl.Expected(2, 50)}


@pytest.mark.parametrize("shift", [None, SHIFT], ids=["counted", "known shift"])
@pytest.mark.parametrize("group_rows", ["own", "all"])
def test_groups_named_0_and_1_are_those_of_arrays_on_every_table(rows, tmp_path, shift, group_rows):
    beside = {} if shift is None else {"shift": structs.replace(shift, ratios=rows[shift.ratios])}
    groups = sl.Groups(rows["half"], "a test", rows=group_rows)
    arrays = sl.calibrate(rows["my score"], rows["qualified"], HALVES, groups=groups, **beside)
    asked = {"target": HALVES, "groups": sl.Groups("half", "a test", rows=group_rows), "shift": shift}
    for kind, table in tables(rows, tmp_path, "rows").items():
        policy = from_table(table, None, asked)
        assert policy.thresholds == arrays.thresholds, kind
        assert set(policy.thresholds) == {0, 1}, kind
        assert policy.promise == arrays.promise, kind
        listed = arrays.select(rows["my score"], rows["half"])
        assert sl.select_table(table, policy).shortlisted == listed.sum(), kind


@pytest.mark.parametrize("shift", [None, SHIFT], ids=["counted", "known shift"])
def test_every_group_that_cannot_be_certified_is_named(rows, tmp_path, shift):
    asked = {
        "target": dict.fromkeys(HALVES, sl.Expected(40, 50)),
        "groups": sl.Groups("half", "a test"),
        "shift": shift,
    }
    for kind, table in tables(rows, tmp_path, "rows").items():
        with pytest.raises(sl.NotCertifiable) as caught:
            from_table(table, None, asked)
        short = caught.value.shortfall
        assert [short.group, *(each.group for each in short.others)] == ["0", "1"], kind


def test_errors_name_columns_not_arrays(rows, others, tmp_path):
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"target": sl.NextPool(k=2)}, "pass pool="),
        ({"target": sl.PoolAverage(2, spread=1)}, "pass pool="),
        ({"target": sl.Precision(0.5)}, "pass unlabelled="),
        ({"target": sl.PoolAverage(2, of="value"), "label": "value"}, "pass pool=, one pool id per row"),
        ({"target": {"a": sl.Precision(0.5)}, "groups": sl.Groups("query", "x"), "unlabelled": others},
         "groups have no proof together"),
        ({"target": sl.Expected(5, 100), "label": LABELS["audited"], "pool": "query"}, "^pool: .*Leave the pools out"),
        ({"target": sl.Expected(5, 100), "score": ["my score", "nothing"]}, "no column 'nothing'"),
        ({"target": sl.Expected(5, 100), "label": sl.SampledLabels("drawn", "nothing", lowest_rate=0.1)}, "'nothing'"),
        ({"target": sl.Budget(10, 100), "unlabelled": others.drop(columns="my score")}, "no column 'my score'"),
    ]  # fmt: skip
    for given, said in wrong:
        with pytest.raises(sl.InvalidInput, match=said) as caught:
            sl.calibrate_table(rows, **{"score": "my score", "label": "qualified", **given})
        assert "pools=" not in str(caught.value)
    gap = rows.copy()
    gap.loc[7, "other"] = None
    gap.to_csv(tmp_path / "gap.csv", index=False)
    with pytest.raises(sl.InvalidInput, match="'other': expected a finite"):
        from_table(tmp_path / "gap.csv", None, PROMISES["best of two"])
    gap = rows.assign(rate=rows.rate.astype(object))
    gap.loc[7, "rate"] = "often"
    gap.to_csv(tmp_path / "gap.csv", index=False)
    with pytest.raises(sl.InvalidInput, match="'rate': expected a finite"):
        from_table(tmp_path / "gap.csv", None, PROMISES["known rates"])


@pytest.mark.parametrize("promise", ["next pool", "own recall", "by rank"])
def test_spark_gives_the_policy_and_the_list_of_arrays(rows, others, tmp_path, promise, spark_session):
    asked = PROMISES[promise]
    arrays = from_arrays(rows, others, asked)
    table = spark_session.createDataFrame(rows)
    policy = from_table(table, spark_session.createDataFrame(others), asked)
    if asked.get("randomised"):
        assert policy.promise == arrays.promise
    else:
        assert policy.thresholds == arrays.thresholds
        assert [each.proof for each in policy.cutoffs] == [each.proof for each in arrays.cutoffs]
    pool = others.assign(query=[f"n{i % 40}" for i in range(len(others))])
    column = "query" if policy.by_rank else None
    done = sl.select_table(spark_session.createDataFrame(pool), policy, pool=column)
    listed = sorted(row["my score"] for row in done.table.collect())
    assert listed == sorted(expected_list(policy, pool))


@pytest.mark.parametrize("whole", [False, True], ids=["rows", "pools"])
def test_one_cutoff_for_all_groups_is_the_same_on_every_engine(engine, whole):
    scores, labels = population(np.random.default_rng(6), 600)
    scores, names, pools = scores.round(3), np.arange(600) % 2, np.arange(600) // 12
    site = np.where(names == 0, "north", "south")
    table = engine.table(
        {"score": scores.tolist(), "label": labels.astype(int).tolist(), "group": site.tolist(),
         "pool": [str(each) for each in pools]}
    )  # fmt: skip
    targets: dict[str, Any] = {name: sl.Expected(2, 50) for name in ("north", "south")} | {
        "everyone": sl.Expected(5, 100)
    }
    beside, columns = {}, {}
    if whole:
        targets = {"north": sl.NextPool(recall=0.3), "south": sl.NextPool(recall=0.3)}
        beside, columns = {"pools": pools}, {"pool": "pool"}
    here = sl.calibrate(scores, labels, targets, groups=sl.Groups(site, cutoff="common"), **beside)
    there = sl.calibrate_table(
        table, score="score", label="label", target=targets, groups=sl.Groups("group", cutoff="common"),
        **columns, **engine.options,
    )  # fmt: skip
    for one, two in zip(here.cutoffs, there.cutoffs, strict=True):
        assert (one.steps, one.own, one.rows, one.qualified) == (two.steps, two.own, two.rows, two.qualified)
    assert (there.everyone.share, there.everyone.fingerprint) == (
        here.everyone.share,
        here.everyone.fingerprint,
    )
    listed = sl.select_table(table, there, **engine.options)
    assert listed.shortlisted == int(np.sum(scores >= here.threshold))
    assert "group" not in selection_sql(there, "duckdb")
