"""Selection on every engine: the in-memory shortlist, in order, with its columns untouched."""

from __future__ import annotations

import datetime
import gzip
import math
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import surelist as sl
from surelist.filters import Salt
from surelist.promises.options import GroupRows
from surelist.tables.arrays import read_columns
from tests.helpers.engines import Engine, arrow, write_csv, write_parquet
from tests.helpers.randomness import seeded
from tests.tables.test_calibrate_tables import BY_GROUP, sample


def policy_for(target: Any, data: dict[str, list[Any]], rows: GroupRows = "own", **options: Any) -> sl.Policy:
    groups = sl.Groups(data["group"], purpose="test", rows=rows) if isinstance(target, dict) else None
    policy = sl.calibrate(data["score"], data["label"], target, groups=groups, **options)
    return policy.with_columns(score="score", group="group" if groups else None)


PAST = sample(2000, seed=3)


def pool_of(rows: int, seed: int = 4, levels: int | None = None) -> dict[str, list[Any]]:
    """A pool with other columns of many types, nulls among them."""
    data = sample(rows, seed, levels)
    del data["label"]
    data["id"] = [each + 100_000 for each in data["id"]]
    data["note"] = [None if each % 3 == 0 else f'é "{each}", x' for each in range(rows)]
    data["count"] = [None if each % 5 == 0 else each for each in range(rows)]
    return data


def listed(data: dict[str, list[Any]], mask: Any) -> list[dict[str, Any]]:
    names = list(data)
    rows = [dict(zip(names, row, strict=True)) for row in zip(*data.values(), strict=True)]
    return [row for row, keep in zip(rows, mask, strict=True) if keep]


def test_one_threshold(engine: Engine) -> None:
    policy, data = policy_for(sl.Expected(5, 100), PAST), pool_of(300)
    done = sl.select_table(engine.table(data), policy, **engine.options)
    mask = policy.select(data["score"])
    assert engine.rows(done.table) == engine.expected(listed(data, mask))
    assert (done.candidates, done.shortlisted, done.dropped) == (300, int(mask.sum()), 0)


def test_groups_and_reason(any_engine: Engine) -> None:
    policy, data = policy_for(BY_GROUP, PAST), pool_of(300, levels=50)
    done = sl.select_table(any_engine.table(data), policy, reason=True, **any_engine.options)
    mask = policy.select(data["score"], data["group"])
    expected = listed(data, mask)
    for row in expected:
        row["shortlist_reason"] = f"group {row['group']}: score >= {policy.thresholds[row['group']]!r}"
    assert any_engine.rows(done.table) == any_engine.expected(expected)
    sizes = {g: (data["group"].count(g), sum(r["group"] == g for r in expected)) for g in "abc"}
    assert done.groups == sizes


def test_everyone_at_the_threshold_is_in(engine: Engine) -> None:
    policy = policy_for(sl.Expected(5, 100), PAST)
    below = math.nextafter(policy.threshold, -math.inf)
    data = {"id": [1, 2, 3], "score": [policy.threshold, below, policy.threshold]}
    done = sl.select_table(engine.table(data), policy, **engine.options)
    assert [int(row["id"]) for row in engine.rows(done.table)] == [1, 3]


def test_types_survive() -> None:
    table = arrow(pool_of(60)).append_column("day", pa.array([datetime.date(2026, 1, 1), None] * 30))
    table = table.append_column("tags", pa.array([["x"], None, []] * 20))
    policy = policy_for(sl.Expected(5, 100), PAST)
    mask = policy.select(table["score"].to_numpy())
    expected = table.filter(pa.array(mask))
    frames: list[Any] = [pl.from_arrow(table), table]
    got, arrowed = (sl.select_table(each, policy).table for each in frames)
    assert isinstance(got, pl.DataFrame)
    assert got.equals(pl.from_arrow(expected))
    assert got.schema == pl.from_arrow(table).schema  # type: ignore[union-attr]
    assert arrowed.equals(expected)
    frame = table.to_pandas(types_mapper=pd.ArrowDtype).set_index(pd.Index(range(100, 160)))
    pd.testing.assert_frame_equal(sl.select_table(frame, policy).table, frame[mask])
    relation = duckdb.connect(":memory:").from_arrow(table)
    shortlist = sl.select_table(relation, policy).table
    assert isinstance(shortlist, duckdb.DuckDBPyRelation)
    assert shortlist.types == relation.types
    lazy = sl.select_table(pl.from_arrow(table).lazy(), policy).table  # type: ignore[union-attr]
    assert isinstance(lazy, pl.LazyFrame)


def test_an_empty_pool(engine: Engine) -> None:
    policy = policy_for(BY_GROUP, PAST)
    empty = arrow({"id": [], "score": [], "group": []})
    if engine.name == "jsonl":
        pytest.skip("a file without rows has no columns")
    done = sl.select_table(engine.table(empty), policy, **engine.options)
    assert (done.candidates, done.shortlisted) == (0, 0)
    assert done.groups == dict.fromkeys("abc", (0, 0))
    assert engine.rows(done.table) == []


def test_a_group_that_is_absent(engine: Engine) -> None:
    policy = policy_for(BY_GROUP, PAST)
    data = {"id": [1, 2], "score": [0.99, 0.01], "group": ["a", "a"]}
    done = sl.select_table(engine.table(data), policy, **engine.options)
    assert (done.shortlisted, done.groups) == (1, {"a": (2, 1), "b": (0, 0), "c": (0, 0)})


@pytest.mark.slow
@pytest.mark.parametrize("value", [math.nan, None, math.inf, -math.inf])
def test_no_engine_shortlists_a_candidate_without_a_score(engine: Engine, value: Any) -> None:
    """NaN >= t is true in some engines; +inf would be on every list."""
    policy = policy_for(BY_GROUP, PAST)
    data = {"id": [1, 2, 3], "score": [0.99, value, 0.01], "group": ["a", "b", "c"]}
    with pytest.raises(sl.InvalidInput, match=r"column 'score': expected a finite number.*: 1 row"):
        sl.select_table(engine.table(data), policy, **engine.options)
    done = sl.select_table(engine.table(data), policy, on_bad_rows="drop", **engine.options)
    assert [int(row["id"]) for row in engine.rows(done.table)] == [1]
    assert (done.candidates, done.shortlisted, done.dropped) == (2, 1, 1)


def test_unknown_and_missing_groups(engine: Engine) -> None:
    policy = policy_for(BY_GROUP, PAST)
    data = {"id": [1, 2, 3], "score": [0.9, 0.9, 0.9], "group": ["a", "z", None]}
    with pytest.raises(sl.InvalidInput) as caught:
        sl.select_table(engine.table(data), policy, **engine.options)
    assert "unknown group 'z'; known groups: 'a', 'b', 'c': 1 row" in str(caught.value)
    assert "missing group" in str(caught.value)


# Randomised ties


def hashed_policy(target: Any, data: dict[str, list[Any]], salt: Salt) -> sl.Policy:
    """A policy whose ties are broken by a salt that is known."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Salt, "draw", classmethod(lambda cls: salt))
        policy = policy_for(target, data, ties=sl.Hash(data["id"]))
    return policy.with_columns(score="score", group="group" if policy.grouped else None, id="id")


SALT = Salt("5a" * 32)


def test_hashed_ties_are_the_same_everywhere(engine: Engine) -> None:
    policy = hashed_policy(BY_GROUP, sample(2000, seed=3, levels=4), SALT)
    data = pool_of(400, levels=4)
    mask = policy.select(data["score"], data["group"], data["id"])
    done = sl.select_table(engine.table(data), policy, **engine.options)
    assert engine.rows(done.table) == engine.expected(listed(data, mask))
    tied = sum(s == policy.thresholds[g] for s, g in zip(data["score"], data["group"], strict=True))
    over = sum(s >= policy.thresholds[g] for s, g in zip(data["score"], data["group"], strict=True))
    assert over - tied < done.shortlisted < over


def test_calibrating_with_hashed_ties(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Salt, "draw", classmethod(lambda cls: SALT))
    data = sample(600, levels=4)
    table = engine.table(data)
    policy = sl.calibrate_table(
        table, score="score", label="label", target=BY_GROUP, groups=sl.Groups("group", purpose="test"),
        ties=sl.Hash("id"), **engine.options,
    )  # fmt: skip
    expected = hashed_policy(BY_GROUP, data, SALT)
    assert [each.steps for each in policy.cutoffs] == [each.steps for each in expected.cutoffs]
    assert policy.salt == expected.salt
    with pytest.raises(sl.InvalidInput, match="is also a calibration row"):
        sl.select_table(table, policy, **engine.options)


def test_hashed_ties_need_ids_that_are_there_once(engine: Engine) -> None:
    policy = hashed_policy(sl.Expected(5, 100), sample(2000, seed=3, levels=4), SALT)
    twice = {"id": [900_001, 900_002, 900_001], "score": [0.1, 0.2, 0.3]}
    with pytest.raises(sl.InvalidInput, match="unique candidate ids, got '900001' 2 times"):
        sl.select_table(engine.table(twice), policy, **engine.options)
    missing = {"id": [900_001, None], "score": [0.1, 0.2]}
    with pytest.raises(
        sl.InvalidInput, match=r"missing candidate id|type Float64"
    ):  # pandas made floats of them
        sl.select_table(engine.table(missing), policy, **engine.options)


def test_hashed_ties_need_ids_that_no_two_pools_share(engine: Engine) -> None:
    """Ids that start again in every pool: calibrated so, false in 30 % at alpha = 10 %, and what such pools
    hold on average was short in 22 %. Without a hash they are no mistake."""
    data = sample(600, levels=4)
    data |= {"id": [row % 50 for row in range(600)], "pool": [f"v{row // 50}" for row in range(600)]}
    table, target = engine.table(data), sl.Expected(5, 100)
    asked: dict[str, Any] = {"score": "score", "label": "label", "target": target, "pool": "pool"}
    with pytest.raises(sl.InvalidInput, match=r"unique candidate ids, got '[0-9]+' 12 times"):
        sl.calibrate_table(table, ties=sl.Hash("id"), **asked, **engine.options)
    policy = hashed_policy(target, sample(2000, seed=3, levels=4) | {"id": list(range(900, 2900))}, SALT)
    with pytest.raises(sl.InvalidInput, match=r"unique candidate ids, got '[0-9]+' 12 times"):
        sl.select_table(table, policy, pool="pool", **engine.options)
    policy = hashed_policy(sl.PerPool(3, 50), sample(2000, seed=3, levels=4), SALT)
    with pytest.raises(sl.InvalidInput, match="expected unique candidate ids, got '0' at positions 0 and 50"):
        policy.select_pools(data["score"], data["pool"], ids=data["id"])
    plain = policy_for(target, PAST)
    assert sl.select_table(table, plain, id="id", pool="pool", **engine.options).repeated_ids == 0


def test_repeated_ids_are_reported(engine: Engine) -> None:
    policy = policy_for(sl.Expected(5, 100), PAST)
    data = {"id": [7, 8, 7, 7], "score": [0.99, 0.1, 0.2, 0.3]}
    with pytest.warns(sl.TableWarning, match="'7' 3 times"):
        done = sl.select_table(engine.table(data), policy, id="id", **engine.options)
    assert (done.repeated_ids, done.shortlisted) == (1, 1)


# Many pools in one table


def many_pools(seed: int = 9) -> dict[str, list[Any]]:
    rng = np.random.default_rng(seed)
    data = pool_of(700, seed)
    sizes = [30, 45, 60, 90, 120, 355]
    names = np.repeat([f"v{i}" for i in range(len(sizes))], sizes)
    data["pool"] = rng.permutation(names).tolist()
    return data


def by_pool(policy: sl.Policy, data: dict[str, list[Any]]) -> np.ndarray:
    mask = np.zeros(len(data["id"]), dtype=bool)
    for name in set(data["pool"]):
        rows = np.flatnonzero(np.array(data["pool"]) == name)
        groups = np.array(data["group"])[rows] if policy.grouped else None
        ids = np.array(data["id"])[rows] if policy.salt_hash else None
        mask[rows] = policy.select(np.array(data["score"])[rows], groups, ids)
    return mask


POOL_TARGETS = {
    "groups": {"a": sl.PerPool(2, (10, 80)), "b": sl.PerPool(1, (4, 40)), "c": sl.PerPool(1, 1)},
    "expected": sl.Expected(5, 100),
    "per-pool": sl.PerPool(3, (30, 90)),
    "all": {"a": sl.PerPool(2, (30, 80)), "b": sl.PerPool(1, (30, 40)), "c": sl.PerPool(1, 30)},
}


@cache
@seeded("policies for many pools")
def pool_policy(kind: str) -> sl.Policy:
    past = sample(5000, seed=3)
    past["label"] = (np.random.default_rng(1).random(5000) < 0.9).astype(int).tolist()
    return policy_for(POOL_TARGETS[kind], past, "all" if kind == "all" else "own", alpha=0.4)


@pytest.mark.slow
@pytest.mark.parametrize("kind", POOL_TARGETS)
def test_many_pools(any_engine: Engine, kind: str) -> None:
    data, policy = many_pools(), pool_policy(kind)
    mask = by_pool(policy, data)
    done = sl.select_table(any_engine.table(data), policy, pool="pool", reason=True, **any_engine.options)
    found = any_engine.rows(done.table)
    reasons = [row.pop("shortlist_reason") for row in found]
    assert found == any_engine.expected(listed(data, mask))
    assert all("score >= 0." in each for each in reasons)
    if kind == "per-pool":
        assert len(set(reasons)) > 2
    pools = np.array(data["pool"])
    assert [(p.pool, p.candidates, p.shortlisted) for p in done.pools] == [
        (name, int((pools == name).sum()), int(mask[pools == name].sum())) for name in sorted(set(pools))
    ]


@pytest.mark.slow
def test_hashed_ties_in_many_pools(engine: Engine) -> None:
    past = sample(4000, seed=3, levels=4)
    policy = hashed_policy(sl.PerPool(3, (30, 90)), past, SALT)
    data = many_pools()
    data["score"] = (np.floor(np.array(data["score"]) * 4) / 4).tolist()
    done = sl.select_table(engine.table(data), policy, pool="pool", **engine.options)
    assert engine.rows(done.table) == engine.expected(listed(data, by_pool(policy, data)))


def test_a_pool_that_is_too_small(engine: Engine) -> None:
    policy = policy_for(sl.PerPool(3, (60, 200)), PAST)
    with pytest.raises(sl.InvalidInput, match=r"pool 'v0': the promise covers pools of 60 or more.*got 30"):
        sl.select_table(engine.table(many_pools()), policy, pool="pool", **engine.options)


def test_the_whole_table_as_one_pool(engine: Engine) -> None:
    policy, data = policy_for(sl.PerPool(3, (60, 200)), PAST), pool_of(150)
    done = sl.select_table(engine.table(data), policy, **engine.options)
    assert done.shortlisted == int(policy.select(data["score"]).sum())
    with pytest.raises(sl.InvalidInput, match="pools of 60 or more candidates, got 59"):
        sl.select_table(engine.table(pool_of(59)), policy, **engine.options)


# Files


@pytest.mark.slow
@pytest.mark.parametrize("ending", [".parquet", ".csv", ".csv.gz", ".tsv"])
def test_every_engine_writes_files(any_engine: Engine, ending: str, tmp_path: Path) -> None:
    policy, data = policy_for(BY_GROUP, PAST), pool_of(120)
    output = tmp_path / f"out{ending}"
    output.write_text("what was there before") if any_engine.ordered else None
    done = sl.select_table(any_engine.table(data), policy, output=output, **any_engine.options)
    assert done.table is None
    assert done.output == str(output)
    assert [each.name for each in tmp_path.iterdir() if ".part" in each.name] == []
    mask = policy.select(data["score"], data["group"])
    wanted = [str(row["id"]) for row in listed(data, mask)]
    again = read_columns(str(output), {"score": "score", "id": "id"})
    assert (again["id"] if any_engine.ordered else sorted(again["id"])) == wanted
    scores = [row["score"] for row in listed(data, mask)]
    assert sorted(again["score"].tolist()) == sorted(scores)
    assert output.is_dir() == (not any_engine.ordered)  # Spark writes a folder where others write a file


CSV = 'id,name,score,empty,last\n007,"a ""q"" b",0.9900,,x\n008,"new\nline",0.98,"",\n009,out,0.01,,\n'


@pytest.mark.parametrize("engine_name", ["duckdb", "polars"])
def test_csv_text_is_untouched(tmp_path: Path, engine_name: str) -> None:
    (tmp_path / "in.csv").write_text(CSV)
    policy = policy_for(sl.Expected(5, 100), PAST)
    sl.select_table(
        tmp_path / "in.csv", policy, output=tmp_path / "out.csv", read=sl.Read(engine=engine_name)
    )
    got = (tmp_path / "out.csv").read_text().replace('""\n', "\n").replace(',"",', ",,")
    assert got == 'id,name,score,empty,last\n007,"a ""q"" b",0.9900,,x\n008,"new\nline",0.98,,\n'


def test_csv_text_is_untouched_by_spark(tmp_path: Path, spark_session: Any) -> None:
    (tmp_path / "in.csv").write_text(CSV)
    policy = policy_for(sl.Expected(5, 100), PAST)
    sl.select_table(tmp_path / "in.csv", policy, output=tmp_path / "out.csv", read=sl.Read(engine="spark"))
    rows = pl.read_csv(tmp_path / "out.csv" / "*.csv", infer_schema=False).rows()
    assert sorted(rows) == [("007", 'a "q" b', "0.9900", None, "x"), ("008", "new\nline", "0.98", None, None)]


@pytest.mark.parametrize("engine_name", ["duckdb", "polars"])
def test_no_line_is_taken_for_a_comment(tmp_path: Path, engine_name: str) -> None:
    lines = [f"#{place},0.99" if place % 2 else f"{place},0.98" for place in range(40)]
    (tmp_path / "in.csv").write_text("\n".join(["#id,score", *lines, ""]))
    policy = policy_for(sl.Expected(5, 100), PAST)
    done = sl.select_table(
        tmp_path / "in.csv", policy, output=tmp_path / "out.csv", read=sl.Read(engine=engine_name)
    )
    assert (done.candidates, done.shortlisted) == (40, 40)
    assert (tmp_path / "out.csv").read_text().replace('"', "") == (tmp_path / "in.csv").read_text()


@pytest.mark.parametrize("delimiter", [";", "\t", "|"])
def test_other_delimiters_come_and_go(tmp_path: Path, delimiter: str) -> None:
    (tmp_path / "in.csv").write_text(f'id{delimiter}"a,b"{delimiter}score\n1{delimiter}x{delimiter}0.99\n')
    policy = policy_for(sl.Expected(5, 100), PAST)
    sl.select_table(tmp_path / "in.csv", policy, output=tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text().splitlines()[1] == f"1{delimiter}x{delimiter}0.99"


def test_globs_and_folders(tmp_path: Path) -> None:
    for place in range(3):
        write_parquet(tmp_path / f"p{place}.parquet", arrow(pool_of(50, seed=place)))
    policy = policy_for(BY_GROUP, PAST)
    assert sl.select_table(str(tmp_path / "p[01].parquet"), policy).candidates == 100
    assert sl.select_table(tmp_path, policy).candidates == 150
    with pytest.raises(sl.InvalidInput, match="no file matches"):
        sl.select_table(str(tmp_path / "q*.parquet"), policy)


def test_a_half_written_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "pool" / "_temporary" / "0").mkdir(parents=True)
    write_parquet(tmp_path / "pool" / "part-0.parquet", arrow(pool_of(5)))
    with pytest.raises(sl.InvalidInput, match="half-written"):
        sl.select_table(tmp_path / "pool", policy_for(BY_GROUP, PAST))


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    policy = policy_for(sl.Expected(5, 100), PAST)
    for name, text in {"a.csv": "id,score\n1,0.5,7,8\n", "b.parquet": "no parquet", "c.csv": ""}.items():
        (tmp_path / name).write_text(text)
        with pytest.raises(sl.InvalidInput):
            sl.select_table(tmp_path / name, policy)
    for name in ("missing.csv", "a.xlsx"):
        with pytest.raises(sl.InvalidInput, match="file: "):
            sl.select_table(tmp_path / name, policy)
    with pytest.raises(sl.InvalidInput, match=r"got 'out.doc'"):
        sl.select_table(arrow(pool_of(5)), policy, output=tmp_path / "out.doc")


def test_an_output_that_cannot_be_written_leaves_nothing(engine: Engine, tmp_path: Path) -> None:
    policy, data = policy_for(BY_GROUP, PAST), pool_of(50)
    with pytest.raises(sl.InvalidInput, match="output: cannot write"):
        sl.select_table(engine.table(data), policy, output=tmp_path / "no" / "out.csv", **engine.options)


ODD_NUMBERS = {
    "0.5": 0.5, " 0.5 ": 0.5, "1e-3": 1e-3, ".5": 0.5, "+0.5": 0.5, "5E-1": 0.5, "0.1000000000000000055511151231257827": 0.1,
    "1": 1.0, "0.25": 0.25, "1e0": 1.0, "00.5": 0.5, "1.": 1.0,
    "1d": None, "0.5f": None, "abc": None, "1,5": None, "": None, "NaN": None, "inf": None, "1e400": None, "--1": None,
    "1_000": None, "+-1": None,
}  # fmt: skip


@pytest.mark.parametrize("reader", ["duckdb", "polars", "spark"])
def test_numbers_in_text_mean_the_same_everywhere(
    reader: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if reader == "spark":
        request.getfixturevalue("spark_session")
    table = pa.table({"id": [str(i) for i in range(len(ODD_NUMBERS))], "score": list(ODD_NUMBERS)})
    path = write_csv(tmp_path / "odd.csv", table)
    policy = policy_for(sl.Expected(5, 100), {"score": [1e-9] * 2000, "label": [1] * 2000})
    done = sl.select_table(path, policy, on_bad_rows="drop", read=sl.Read(engine=reader))
    usable = sum(value is not None for value in ODD_NUMBERS.values())
    assert (done.candidates, done.shortlisted) == (usable, usable)


def test_what_is_not_a_table_is_refused() -> None:
    policy = policy_for(sl.Expected(5, 100), PAST)
    for thing in (5, [1, 2], None):
        with pytest.raises(sl.InvalidInput, match="table: expected a path"):
            sl.select_table(thing, policy)
    with pytest.raises(sl.InvalidInput, match='engine="polars" is for files'):
        sl.select_table(arrow(pool_of(5)), policy, read=sl.Read(engine="polars"))
    with pytest.raises(sl.InvalidInput, match="spark_master"):
        sl.select_table(arrow(pool_of(5)), policy, read=sl.Read(spark_master="local[2]"))


def test_a_stream_that_can_be_read_once() -> None:
    policy, data = policy_for(BY_GROUP, PAST), pool_of(100)
    reader = pa.RecordBatchReader.from_batches(arrow(data).schema, arrow(data).to_batches())
    done = sl.select_table(reader, policy)
    assert done.table.num_rows == done.shortlisted > 0


def test_overlapping_groups_are_for_arrays() -> None:
    masks = {"x": np.ones(2000, bool), "y": np.ones(2000, bool)}
    target = {"x": sl.Expected(5, 100), "y": sl.Expected(5, 100)}
    policy = sl.calibrate(PAST["score"], PAST["label"], target, groups=sl.Groups(masks, purpose="test"))
    with pytest.raises(sl.InvalidInput, match="groups overlap"):
        sl.select_table(arrow(pool_of(5)), policy, score="score", group="group")


def test_gzip_is_gzip(tmp_path: Path) -> None:
    policy = policy_for(sl.Expected(5, 100), PAST)
    for name, table in {
        "duck": write_csv(tmp_path / "in.csv", arrow(pool_of(50))),
        "pa": arrow(pool_of(50)),
    }.items():
        sl.select_table(table, policy, output=tmp_path / f"{name}.csv.gz")
        with gzip.open(tmp_path / f"{name}.csv.gz", "rt") as file:
            assert file.readline().replace('"', "").strip() == "id,score,group,note,count"
