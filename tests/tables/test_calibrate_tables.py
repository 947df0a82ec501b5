"""Calibration on every engine gives the in-memory result, bit for bit."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import surelist as sl
from surelist.promises.options import GroupRows
from surelist.tables.engines.base import Engine as Base
from surelist.tables.engines.spark import Spark
from tests.helpers.engines import Engine, arrow

NAN, INF = math.nan, math.inf


def sample(rows: int, seed: int = 1, levels: int | None = None) -> dict[str, list[Any]]:
    rng = np.random.default_rng(seed)
    score = rng.random(rows)
    if levels:
        score = np.floor(score * levels) / levels
    return {
        "id": list(range(rows)),
        "score": score.tolist(),
        "label": (rng.random(rows) < score).astype(int).tolist(),
        "group": rng.choice(["a", "b", "c"], rows, p=[0.6, 0.3, 0.1]).tolist(),
    }


def same(
    policy: sl.Policy, data: dict[str, list[Any]], target: Any, rows: GroupRows = "own", **options: Any
) -> None:
    groups = sl.Groups(data["group"], purpose="test", rows=rows) if isinstance(target, dict) else None
    expected = sl.calibrate(data["score"], data["label"], target, groups=groups, **options)
    for ours, theirs in zip(policy.cutoffs, expected.cutoffs, strict=True):
        assert ours.steps == theirs.steps
        assert (ours.group, ours.rows, ours.qualified) == (theirs.group, theirs.rows, theirs.qualified)
        assert ours.level == theirs.level


def calibrate(engine: Engine, data: Any, target: Any, **options: Any) -> sl.Policy:
    if isinstance(target, dict):
        options.setdefault("groups", sl.Groups("group", purpose="test"))
    return sl.calibrate_table(
        engine.table(data), score="score", label="label", target=target, **engine.options, **options
    )


BY_GROUP = {"a": sl.Expected(4, 60), "b": sl.Expected(2, 30), "c": sl.Expected(0.5, 10)}


def test_one_target(engine: Engine) -> None:
    data = sample(1000)
    same(calibrate(engine, data, sl.Expected(5, 100)), data, sl.Expected(5, 100))


def test_groups(any_engine: Engine) -> None:
    data = sample(1000)
    same(calibrate(any_engine, data, BY_GROUP), data, BY_GROUP)


def test_ties_in_every_group(engine: Engine) -> None:
    data = sample(1000, levels=5)
    same(calibrate(engine, data, BY_GROUP), data, BY_GROUP)


def test_one_row(engine: Engine) -> None:
    data: dict[str, list[Any]] = {"id": [1], "score": [0.25], "label": [1], "group": ["a"]}
    target = sl.Expected(0.05, 100)
    policy = calibrate(engine, data, target, alpha=0.9)
    assert policy.threshold == 0.25
    same(policy, data, target, alpha=0.9)


def test_no_rows(engine: Engine) -> None:
    data = arrow({"id": [], "score": [], "label": [], "group": []})
    said = r"in0\.jsonl is empty" if engine.name == "jsonl" else "at least one calibration row"
    with pytest.raises(sl.InvalidInput, match=said):
        calibrate(engine, data, sl.Expected(5, 100))


def test_an_empty_group(engine: Engine) -> None:
    data = sample(300)
    with pytest.raises(sl.InvalidInput, match="group 'd' has a target but no calibration rows"):
        calibrate(engine, data, {**BY_GROUP, "d": sl.Expected(1, 10)})


def test_a_group_without_qualified_rows(engine: Engine) -> None:
    data = sample(300)
    data["label"] = [0 if g == "c" else y for g, y in zip(data["group"], data["label"], strict=True)]
    with pytest.raises(sl.NotCertifiable) as caught:
        calibrate(engine, data, BY_GROUP)
    assert (caught.value.group, caught.value.qualified_available) == ("c", 0)


LOCAL_TARGETS = [
    {"a": sl.PerPool(3, (40, 46)), "b": sl.PerPool(1, 30), "c": sl.PerPool(1, 30)},
    sl.PerPool(3, (40, 46)),
    sl.Recall(0.9),
]


@pytest.mark.parametrize("target", LOCAL_TARGETS, ids=["per-pool-groups", "per-pool", "recall"])
def test_targets(engine: Engine, target: Any) -> None:
    data = sample(1000)
    same(calibrate(engine, data, target), data, target)


def test_group_rows_all(engine: Engine) -> None:
    data, target = sample(1000), {name: sl.Expected(1, 100) for name in "abc"}
    policy = calibrate(engine, data, target, groups=sl.Groups("group", purpose="test", rows="all"))
    same(policy, data, target, rows="all")


SPREADS = {
    "many magnitudes": lambda u: 10.0 ** ((u - 0.5) * 600),
    "unbounded": lambda u: (u - 0.5) * 1e6,
    "negative magnitudes": lambda u: -(10.0 ** ((u - 0.5) * 600)),
    "one outlier": lambda u: np.where(u == u.max(), 1e308, u),
    "subnormal": lambda u: np.floor(u * 1000) * 5e-324,
    "credit": lambda u: np.round(300 + 550 * u),
    "constant": lambda u: np.full(len(u), 0.1),
    "neighbours": lambda u: 1.0 + np.floor(u * 4000) * 2.0**-52,
}


@pytest.mark.slow
@pytest.mark.parametrize("spread", SPREADS)
def test_any_finite_score(engine: Engine, spread: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when almost nothing may be fetched, so that intervals are split again and again."""
    if "csv" in engine.name or "parquet" in engine.name or engine.name in ("capsule", "pandas-nullable"):
        pytest.skip("its arithmetic is another engine's")
    monkeypatch.setattr(Base, "few", 40)
    monkeypatch.setattr(Spark, "few", 40)
    rng = np.random.default_rng(7)
    data = sample(1000)
    data["score"] = SPREADS[spread](rng.random(1000)).tolist()
    same(calibrate(engine, data, BY_GROUP), data, BY_GROUP)


def test_float32_scores_are_compared_as_float64(engine: Engine) -> None:
    """0.7 as float32 is below 0.7; DuckDB alone would say otherwise."""
    if engine.text:
        pytest.skip("text has no float32")
    data = sample(400)
    table = arrow(data).set_column(1, "score", pa.array(np.full(400, 0.7, dtype=np.float32)))
    policy = calibrate(engine, table, sl.Expected(5, 100))
    assert policy.threshold == float(np.float32(0.7)) != 0.7
    pool = arrow({"id": [1, 2], "score": [float(np.float32(0.7)), 0.7]})
    pool32 = pool.set_column(1, "score", pool["score"].cast(pa.float32()))
    assert sl.select_table(engine.table(pool32), policy, **engine.options).shortlisted == 2


@pytest.mark.parametrize("kind", [pa.int32(), pa.uint8(), pa.bool_(), pa.decimal128(9, 4)], ids=str)
def test_other_numbers(engine: Engine, kind: Any) -> None:
    if (
        engine.text
        or ("spark" in engine.name and kind == pa.uint8())
        or ("pandas" in engine.name and "decimal" in str(kind))
        or (engine.name == "jsonl" and kind in (pa.bool_(), pa.decimal128(9, 4)))
    ):
        pytest.skip("the file has no such type")
    data = sample(400, levels=2)
    data["score"] = [round(each * 4) for each in data["score"]]
    if kind == pa.bool_():
        data["score"] = [bool(each) for each in data["score"]]
    elif kind == pa.decimal128(9, 4):
        import decimal

        data["score"] = [decimal.Decimal(each) for each in data["score"]]
    table = arrow(data, score=kind)
    numbers = {**data, "score": [float(each) for each in data["score"]]}
    same(calibrate(engine, table, sl.Expected(5, 100)), numbers, sl.Expected(5, 100))


@pytest.mark.parametrize("kind", [pa.int64(), pa.bool_(), pa.dictionary(pa.int32(), pa.string())], ids=str)
def test_groups_of_other_types(engine: Engine, kind: Any) -> None:
    data = sample(600)
    if kind == pa.bool_():
        data["group"] = [g == "a" for g in data["group"]]
        target = {"True": sl.Expected(2, 60), "False": sl.Expected(2, 40)}
    elif kind == pa.int64():
        data["group"] = ["abc".index(g) for g in data["group"]]
        target = {0: sl.Expected(2, 60), 1: sl.Expected(1, 30), "2": sl.Expected(0.5, 10)}  # type: ignore[dict-item]
    else:
        target = BY_GROUP
    table = arrow(data, group=None if kind == pa.dictionary(pa.int32(), pa.string()) else kind)
    if pa.types.is_dictionary(kind):
        place = table.column_names.index("group")
        table = table.set_column(place, "group", table["group"].dictionary_encode())
    policy = calibrate(engine, table, target)
    same(policy, data, target)
    pool = sl.select_table(engine.table(table), policy, **engine.options)
    assert pool.shortlisted == int(policy.select(data["score"], data["group"]).sum())


BAD = {
    "id": [1, 2, 3, 4, 5, 6, 7, 8],
    "score": [0.5, None, NAN, INF, -INF, 0.6, 0.7, 0.8],
    "label": [1, 1, 0, 1, None, None, 1, 3],
    "group": ["a", "b", "c", "a", "a", "b", "z", "a"],
}


def test_bad_rows_are_counted_and_shown_together(any_engine: Engine) -> None:
    with pytest.raises(sl.InvalidInput) as caught:
        calibrate(any_engine, BAD, BY_GROUP)
    said = str(caught.value)
    assert "4 problems" in said
    assert "column 'score': expected a finite number" in said
    assert "4 rows" in said
    assert "column 'label': expected 0 or 1" in said
    assert "column 'label': missing labels" in said
    assert "unknown group 'z'; known groups: 'a', 'b', 'c': 1 row" in said
    if any_engine.ordered:
        row = {"csv": "spreadsheet row 9", "parquet": "row 8", "jsonl": "row 8"}.get(
            any_engine.name.partition("-")[0], "position 7"
        )
        assert f"{row}: score=" in said


@pytest.mark.parametrize("value", [NAN, None, INF, -INF])
def test_one_bad_score_is_found(engine: Engine, value: Any) -> None:
    """NaN alone too: Parquet statistics leave it out, and DuckDB believes them."""
    data = sample(30)
    data["score"][7] = value
    with pytest.raises(sl.InvalidInput, match=r"column 'score': expected a finite number.*: 1 row"):
        calibrate(engine, data, sl.Expected(5, 100))


def test_at_most_five_examples(engine: Engine) -> None:
    data = sample(30)
    data["score"] = [None] * 20 + [0.5] * 10
    with pytest.raises(sl.InvalidInput, match="20 rows") as caught:
        calibrate(engine, data, sl.Expected(5, 100))
    assert str(caught.value).count("label=") == 5


def test_missing_groups_are_refused(engine: Engine) -> None:
    data = sample(30)
    data["group"][3] = None
    with pytest.raises(sl.InvalidInput, match="missing group"):
        calibrate(engine, data, BY_GROUP)


def test_dropping_rows_without_a_score(engine: Engine) -> None:
    data = sample(500)
    for row, value in enumerate([None, NAN, INF, -INF]):
        data["score"][row] = value
        data["label"][row] = 1
    policy = calibrate(engine, data, sl.Expected(5, 100), on_bad_rows="drop")
    kept = {name: values[4:] for name, values in data.items()}
    same(policy, kept, sl.Expected(5, 100))
    assert policy.dropped_rows == 4
    assert any("4 calibration rows without a usable score were dropped" in c for c in policy.conditions)


def test_missing_labels_are_never_dropped(engine: Engine) -> None:
    data = sample(500)
    data["label"][:5] = [None] * 5
    target = sl.Expected(5, 100)
    with pytest.raises(sl.InvalidInput, match='missing_labels="unqualified"'):
        calibrate(engine, data, target, on_bad_rows="drop")
    policy = calibrate(engine, data, target, missing_labels="unqualified")
    assert (policy.cutoffs[0].rows, policy.missing_labels) == (500, 5)
    same(policy, data, target, missing_labels="unqualified")


def test_labels_that_are_nan_are_missing(engine: Engine) -> None:
    data, target = sample(500), sl.Expected(5, 100)
    table = arrow({**data, "label": [NAN, NAN, *data["label"][2:]]}, label=pa.float64())
    with pytest.raises(sl.InvalidInput, match=r"missing labels.*: 2 rows"):
        calibrate(engine, table, target)
    policy = calibrate(engine, table, target, missing_labels="unqualified")
    same(policy, {**data, "label": [0, 0, *data["label"][2:]]}, target)
    assert policy.missing_labels == 2


def test_labels_as_floats_and_booleans(engine: Engine) -> None:
    data, target = sample(500), sl.Expected(5, 100)
    same(calibrate(engine, arrow(data, label=pa.float64()), target), data, target)
    truth = {**data, "label": [each == 1 for each in data["label"]]}
    same(calibrate(engine, arrow(truth, label=pa.bool_()), target), data, target)


def test_the_fingerprint_is_the_same_on_every_engine_and_for_arrays(any_engine: Engine) -> None:
    data = sample(500)
    cutoff = calibrate(any_engine, data, sl.Expected(5, 100)).cutoffs[0]
    arrays = sl.calibrate(data["score"], data["label"], sl.Expected(5, 100)).cutoffs[0]
    assert cutoff.fingerprint == arrays.fingerprint
    assert (cutoff.scores, cutoff.steps) == (arrays.scores, arrays.steps)
    other = calibrate(any_engine, sample(500, seed=2), sl.Expected(5, 100))
    assert other.cutoffs[0].fingerprint != arrays.fingerprint


@pytest.mark.parametrize("scale", [1.0, 850.0, 1e9, 1e-9])
def test_the_summary_of_scores_is_the_same_on_every_engine_and_for_arrays(
    engine: Engine, scale: float
) -> None:
    data = sample(500)
    data["score"] = [each * each * scale for each in data["score"]]
    groups = [("a", "b")[row % 2] for row in range(500)]
    targets = {"a": sl.Expected(2, 50), "b": sl.Expected(2, 50)}
    arrays = sl.calibrate(data["score"], data["label"], targets, groups=sl.Groups(groups, purpose="x"))
    policy = calibrate(engine, {**data, "group": groups}, targets)
    for ours, theirs in zip(policy.cutoffs, arrays.cutoffs, strict=True):
        assert ours.fingerprint == theirs.fingerprint
        assert ours.steps == theirs.steps
        assert ours.scores is not None
        assert ours.scores == theirs.scores


def test_unknown_columns_are_named(engine: Engine) -> None:
    with pytest.raises(sl.InvalidInput, match=r"no column 'scor'.*Did you mean 'score'"):
        sl.calibrate_table(
            engine.table(sample(5)), score="scor", label="label", target=sl.Expected(5, 100), **engine.options
        )


def test_a_known_shift(engine: Engine) -> None:
    data, target = sample(500), sl.Expected(5, 100)
    weights = (np.arange(500) % 3).astype(float).tolist()
    table = arrow({**data, "w": weights})
    options = {"shift": sl.DensityRatio("w", 2.0, seed=5)}
    if not engine.ordered:
        with pytest.raises(sl.InvalidInput, match="no row order"):
            calibrate(engine, table, target, **options)
        return
    policy = calibrate(engine, table, target, **options)
    ratios = sl.DensityRatio(weights, 2.0, seed=5)
    expected = sl.calibrate(data["score"], data["label"], target, shift=ratios)
    assert policy.cutoffs[0].steps == expected.cutoffs[0].steps
    assert policy.shift == expected.shift


@pytest.mark.parametrize(("names", "said"), [(10_000, "unknown group"), (10_001, "no column of groups")])
def test_a_column_of_groups_has_at_most_ten_thousand_names(names, said):
    """However many of their rows are qualified, are not, or have no label."""
    groups = np.tile(np.arange(names), 3)
    labels = [1] * names + [0] * names + [None] * names
    frame = pa.table({"score": np.linspace(0, 1, 3 * names), "group": groups, "qualified": labels})
    with pytest.raises(sl.InvalidInput, match=said):
        sl.calibrate_table(
            frame, score="score", label="qualified", target={0: sl.Expected(1, 10)},
            groups=sl.Groups("group", purpose="a test"), missing_labels="unqualified",
        )  # fmt: skip
