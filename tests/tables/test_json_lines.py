"""JSON Lines become typed columns: a text stays a text, a score is a number or an error, no key is said twice."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings, strategies as st

import surelist as sl
from surelist.cli import run
from surelist.tables.arrays import read_columns
from surelist.tables.profile import profile
from surelist.tables.sources import open_table

ROWS: list[dict[str, Any]] = [
    {"id": f"{n:03}", "score": n / 200, "label": n % 2, "who": "ab"[n % 2]} for n in range(200)
]
TARGET = sl.Expected(5, 100)
POLICY = sl.calibrate([row["score"] for row in ROWS], [row["label"] for row in ROWS], TARGET)


def lines(path: Path, rows: list[Any]) -> Path:
    text = "".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


def calibrate(table: object, **options: Any) -> sl.Policy:
    return sl.calibrate_table(table, score="score", label="label", target=TARGET, **options)


def refused(tmp_path: Path, *rows: Any, **columns: str) -> str:
    path = lines(tmp_path / "odd.jsonl", list(rows))
    names: dict[str, Any] = {"score": "score", "label": "label", **columns}
    with pytest.raises(sl.InvalidInput) as caught:
        sl.calibrate_table(path, target=TARGET, **names)
    return str(caught.value).replace(str(tmp_path) + "/", "")


@pytest.mark.parametrize("ending", [".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz"])
def test_every_ending_is_read_as_the_arrays_are(tmp_path: Path, ending: str) -> None:
    path = lines(tmp_path / f"past{ending}", ROWS)
    assert calibrate(path).threshold == POLICY.threshold
    output = tmp_path / f"list{ending}"
    done = sl.select_table(path, POLICY, score="score", output=output, rank=True)
    text = gzip.decompress(output.read_bytes()) if ending.endswith("gz") else output.read_bytes()
    listed = [json.loads(line) for line in text.splitlines()]
    expected = [row for row in ROWS if row["score"] >= POLICY.threshold]
    assert [{name: row[name] for name in ROWS[0]} for row in listed] == expected
    assert done.shortlisted == len(expected)
    assert listed[-1]["shortlist_rank"] == 1


def test_several_files_are_one_table(tmp_path: Path) -> None:
    lines(tmp_path / "a.jsonl", ROWS[:50])
    lines(tmp_path / "b [1].jsonl", ROWS[50:])
    assert calibrate(tmp_path).threshold == POLICY.threshold
    assert calibrate(f"{tmp_path}/*.jsonl").threshold == POLICY.threshold
    lines(tmp_path / "c.csv", ["score,label", "0.5,1"])
    with pytest.raises(sl.InvalidInput, match=r"holds both .* and .*; give files of one kind"):
        calibrate(tmp_path)


def test_folders_named_column_value_hold_a_column(tmp_path: Path) -> None:
    for site in "ab":
        (tmp_path / f"site={site}").mkdir()
        lines(tmp_path / f"site={site}" / "x.jsonl", ROWS[:3])
    assert open_table(str(tmp_path)).columns == ["id", "score", "label", "who", "site"]
    assert open_table(f"{tmp_path}/site=a/x.jsonl").columns == ["id", "score", "label", "who"]


@pytest.mark.parametrize(
    ("values", "read", "sql"),
    [
        (["007", "7"], ["007", "7"], "VARCHAR"),
        (["2024-01-01", "1e5"], ["2024-01-01", "1e5"], "VARCHAR"),
        ([2**53 + 1, -(2**63)], [2**53 + 1, -(2**63)], "BIGINT"),
        ([2**63, 12], [str(2**63), "12"], "VARCHAR"),
        ([10**40, -(10**30)], [str(10**40), str(-(10**30))], "VARCHAR"),
        ([1, 0.5], [1.0, 0.5], "DOUBLE"),
        ([1.0, 2.0], [1.0, 2.0], "DOUBLE"),
        ([True, None], [True, None], "BOOLEAN"),
        ([None, None], [None, None], "VARCHAR"),
        (["a", 1], ["a", "1"], "VARCHAR"),
        ([True, 1], ["true", "1"], "VARCHAR"),
        (["", " x"], ["", " x"], "VARCHAR"),
        ([0.1, 1e-320], [0.1, 1e-320], "DOUBLE"),
        (["ä\U0001f600", "\u0000"], ["ä\U0001f600", "\u0000"], "VARCHAR"),
    ],
)
def test_values_are_what_was_sent(tmp_path: Path, values: Any, read: list[Any], sql: str) -> None:
    path = lines(tmp_path / "x.jsonl", [{"x": each} for each in values])
    table = open_table(str(path))
    assert [row[0] for row in table.engine.rows(table.frame)] == read
    assert [str(each) for each in table.frame.to_native().types] == [sql]


PLAIN = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False), st.text(st.characters(exclude_categories=["Cs"])),
)  # fmt: skip


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.lists(st.fixed_dictionaries({"x": PLAIN}, optional={"y": PLAIN}), min_size=1, max_size=5))
def test_columns_of_one_type_keep_every_value(tmp_path_factory: Any, rows: list[dict[str, Any]]) -> None:
    path = lines(tmp_path_factory.mktemp("json") / "x.jsonl", rows)
    table = open_table(str(path))
    read = table.engine.rows(table.frame)
    for at, name in enumerate(table.columns):
        sent = [row.get(name) for row in rows]
        if len({type(each) for each in sent if each is not None}) == 1:
            assert [row[at] for row in read] == sent
            assert {type(row[at]) for row in read} == set(map(type, sent))


def test_a_column_may_begin_in_any_row_and_a_row_may_lack_one(tmp_path: Path) -> None:
    path = lines(tmp_path / "x.jsonl", [{"b": 1}, "", {"a": "x", "b": 2}, {"c": [1, {"d": 2}], "b": None}])
    table = open_table(str(path))
    assert table.columns == ["b", "a", "c"]
    assert table.engine.rows(table.frame) == [
        (1, None, None),
        (2, "x", None),
        (None, None, '[1,{"d":2}]'),
    ]


@pytest.mark.parametrize(
    ("score", "said"),
    [
        ("0.5", "column 'score': expected numbers, got the text '0.5' in row 2."),
        ("0,5", "column 'score': expected numbers, got the text '0,5' in row 2."),
        (True, "column 'score': expected numbers, got true in row 2."),
        ([1], "column 'score': expected numbers, got a list or an object in row 2."),
        (2**64, f"column 'score': expected numbers, got {2**64} in row 2, which loses its order as a float"),
        (2**53 + 1, f"column 'score': expected numbers, got {2**53 + 1} in row 2, which loses its order"),
        (None, "spreadsheet"),
    ],
)
def test_a_score_is_a_number_or_an_error(tmp_path: Path, score: Any, said: str) -> None:
    refusal = refused(tmp_path, {"score": 0.5, "label": 1}, {"score": score, "label": 0})
    if score is None:
        assert "column 'score': expected a finite number in every row" in refusal
        assert "1 row (row 2: score=empty, label=0)" in refusal
    else:
        assert refusal.startswith(said)


def test_whole_scores_beyond_what_floats_order_are_refused_in_their_row(tmp_path: Path) -> None:
    said = refused(tmp_path, {"score": 3, "label": 1}, {"score": 2**60, "label": 0})
    assert "integers beyond 2^53 lose their order as floats; rescale them: 1 row (row 2:" in said


def test_what_has_a_role_is_no_list_and_labels_are_no_text(tmp_path: Path) -> None:
    path = lines(tmp_path / "p.jsonl", [{"score": 1, "id": [1]}])
    with pytest.raises(sl.InvalidInput, match="column 'id': expected plain values, got a list or an object"):
        sl.select_table(path, POLICY, score="score", id="id")
    said = refused(tmp_path, {"score": 1, "label": "1"}, {"score": 2, "label": "0"})
    assert (
        "column 'label': expected 0 or 1 (1 = qualified), got text; the values are '0' (1 row), '1'" in said
    )
    path = lines(tmp_path / "past.jsonl", [{**row, "label": str(row["label"])} for row in ROWS])
    assert calibrate(path, read=sl.Read(pos_label="1")).threshold == POLICY.threshold
    path = lines(tmp_path / "past.jsonl", [{**row, "label": bool(row["label"])} for row in ROWS])
    assert calibrate(path).threshold == POLICY.threshold


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (['{"score": 1, "label": 1}', '{"score": 1, "label": 1, "score": 2}'], "row 2 says 'score' twice"),
        (['{"score": 1, "sc\\u006fre": 2}'], "row 1 says 'score' twice"),
        (['{"score": 1, "Score": 2}'], "'score' and 'Score' differ in capitals only. Rename one."),
        (['{"score": 1}', "", "[1]"], "expected a JSON object in every line, row 2 is none."),
        (['{"score": 1}', "5"], "row 2 is none"),
        (['{"score": 1}', '{"score": }'], "expected a JSON object in every line, line 2 is none ("),
        (['{"score": 1}', "", '{"score": 1} {"score": 2}'], "line 3 is none ("),
        (["[", '{"score": 1}', "]"], "line 1 is none ("),
        (["{}"], "expected columns, got empty objects."),
        ([""], "is empty: expected a JSON object in every line."),
    ],
)
def test_what_is_no_json_lines_is_refused(tmp_path: Path, rows: list[str], said: str) -> None:
    refusal = refused(tmp_path, *rows)
    assert refusal.startswith("file: odd.jsonl")
    assert said in refusal


def test_bytes_that_are_no_text_are_refused_with_their_line(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'{"score": 1}\n{"score": 2, "t": "\xff"}\n')
    with pytest.raises(sl.InvalidInput, match="line 2 is none"):
        calibrate(path)


def test_other_engines_are_not_asked_to_read_it(tmp_path: Path) -> None:
    path = lines(tmp_path / "past.jsonl", ROWS)
    with pytest.raises(sl.InvalidInput, match=r"engine: .* is JSON Lines, which DuckDB reads. Leave it out"):
        calibrate(path, read=sl.Read(engine="polars"))


def test_every_kind_of_table_is_written_as_json_lines(tmp_path: Path) -> None:
    data = {"id": ["007", None], "score": [0.1 + 0.9, 0.2], "n": [2**60, 1], "yes": [True, False]}
    frame = pd.DataFrame(data)
    expected = {"id": "007", "score": 0.1 + 0.9, "n": 2**60, "yes": True}
    output = tmp_path / "list.jsonl"
    tables = [frame, pl.DataFrame(data), pl.DataFrame(data).lazy(), pl.DataFrame(data).to_arrow()]
    for table in [*tables, duckdb.connect().from_df(frame)]:
        sl.select_table(table, POLICY, score="score", output=output)
        assert [json.loads(line) for line in output.read_text().splitlines()] == [expected], type(table)


def test_a_text_of_digits_is_no_candidate_for_the_score(tmp_path: Path) -> None:
    rows = [{"score": str(row["score"]), "risk": row["score"], "label": row["label"]} for row in ROWS]
    seen = profile(lines(tmp_path / "past.jsonl", rows))
    assert seen.format == "json"
    assert seen.guesses["score"] is None
    assert {each.name: each.kind for each in seen.columns} == {
        "score": "text",
        "risk": "numbers",
        "label": "0 and 1",
    }


def test_commands_take_json_lines_from_files_and_from_standard_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, policy = lines(tmp_path / "past.jsonl", ROWS), tmp_path / "policy.json"
    asked = ["--score", "score", "--label", "label", "--expect", "5", "--pool-size", "100", "-o", str(policy)]
    assert run(["calibrate", str(path), *asked]) == 0
    listed = tmp_path / "list.jsonl"
    stdin = io.TextIOWrapper(io.BytesIO(path.read_bytes()))
    monkeypatch.setattr("sys.stdin", stdin)
    assert run(["select", "-", "--policy", str(policy), "-o", str(listed)]) == 0
    assert json.loads(listed.read_text().splitlines()[0])["id"] == "171"


def test_scores_are_read_to_the_last_bit(tmp_path: Path) -> None:
    scores = np.random.default_rng(5).standard_normal(2000) * 10.0 ** np.arange(2000).clip(0, 300)
    path = lines(tmp_path / "x.jsonl", [{"score": float(each)} for each in scores])
    read = read_columns(str(path), {"score": "score"})["score"]
    np.testing.assert_array_equal(read, scores)
