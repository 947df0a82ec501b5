"""The file that is read is the file that was named; what cannot be read is explained in our words."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import surelist as sl
from surelist.tables.arrays import read_columns
from surelist.tables.sources import open_table
from surelist.workflows import tables as workflows

ENGINES = ["auto", "duckdb", "polars"]
NAMES = ["pool[1]", "pool*", "po?l", "p{a,b}", "a b", "back\\slash", "[!x]"]


def write(path: Path, scores: list[float], **columns: list[Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.table({"score": scores, **columns})
    if path.suffix == ".parquet":
        pq.write_table(table, path)
    else:
        rows = zip(*table.to_pydict().values(), strict=True)
        lines = [",".join(table.column_names), *(",".join(map(str, row)) for row in rows)]
        path.write_text("\n".join(lines) + "\n")
    return path


def scores_of(table: Any) -> list[float]:
    return sorted(read_columns(table, {"score": "score"})["score"].tolist())


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("name", NAMES)
def test_a_path_that_exists_is_that_file(tmp_path, name, ending, engine):
    """The others would match the name, read as a pattern."""
    for other in ("pool1", "pool2", "pool", "pa", "pb", "y"):
        write(tmp_path / f"{other}.{ending}", [0.95, 0.96])
    path = write(tmp_path / f"{name}.{ending}", [0.99, 0.98, 0.5])
    table = open_table(path, engine)
    assert scores_of(table) == [0.5, 0.98, 0.99]


def test_spark_never_reads_another_file_than_the_one_named(tmp_path, spark_session):
    write(tmp_path / "pool1.csv", [0.95, 0.96])
    for name in set(NAMES) - {"a b"}:
        path = write(tmp_path / f"{name}.csv", [0.99, 0.98, 0.5])
        with pytest.raises(sl.InvalidInput, match="for a pattern"):
            open_table(path, "spark")
    table = open_table(write(tmp_path / "a b.csv", [0.99, 0.98, 0.5]), "spark")
    assert len(table.engine.rows(table.frame)) == 3


def test_a_pattern_matches_files_and_reads_each_as_it_is_called(tmp_path):
    write(tmp_path / "pool[1].csv", [0.99])
    write(tmp_path / "pool[2].csv", [0.98])
    write(tmp_path / "pool1.csv", [0.5])
    assert scores_of(str(tmp_path / "pool[[]?].csv")) == [0.98, 0.99]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_folder_above_a_named_file_overrides_no_column(tmp_path, engine):
    for ending in ("csv", "parquet"):
        path = write(tmp_path / "score=9" / f"pool.{ending}", [0.1, 0.2])
        table = open_table(path, engine)
        assert table.columns == ["score"]
        assert scores_of(table) == [0.1, 0.2]


@pytest.mark.parametrize("engine", ENGINES)
def test_folders_below_a_named_folder_override_no_column(tmp_path, engine):
    write(tmp_path / "pools" / "score=9" / "a.parquet", [0.1])
    write(tmp_path / "pools" / "score=8" / "b.parquet", [0.2])
    assert scores_of(open_table(tmp_path / "pools", engine)) == [0.1, 0.2]


@pytest.mark.parametrize("engine", ENGINES)
def test_folders_below_a_named_folder_are_columns_and_those_above_are_not(tmp_path, engine):
    top = tmp_path / "run=7" / "pools"
    write(top / "site=north" / "a.parquet", [0.1])
    write(top / "site=south" / "b.parquet", [0.2])
    table = open_table(top, engine)
    assert sorted(table.columns) == ["score", "site"]
    assert sorted(table.engine.rows(table.frame.select("site", "score"))) == [("north", 0.1), ("south", 0.2)]


def test_a_column_both_in_the_files_and_in_some_folders_is_refused(tmp_path):
    write(tmp_path / "site=north" / "score=9" / "a.parquet", [0.1])
    with pytest.raises(sl.InvalidInput, match=r"folders named score=\.\.\. and the files both have"):
        open_table(tmp_path)


def test_folders_are_columns_on_spark_too(tmp_path, spark_session):
    top = tmp_path / "run=7" / "pools"
    write(top / "site=north" / "a.parquet", [0.1])
    write(top / "site=south" / "b.parquet", [0.2])
    table = open_table(top, "spark")
    assert sorted(table.engine.rows(table.frame.select("site", "score"))) == [("north", 0.1), ("south", 0.2)]
    path = write(tmp_path / "score=9" / "pool.parquet", [0.1])
    assert open_table(path, "spark").columns == ["score"]


GOOD = "score,label,name\n" + "0.5,1,x\n" * 20
UNREADABLE = {
    "neither UTF-8 nor Windows-1252": (
        GOOD.encode() + b"0.5,1,Jos\xe9\x81\n",
        "expected UTF-8 text, got the byte 0xe9 in line 22 ('0.5,1,José\\x81' if it is Latin-1). Save it as",
    ),
    "long rows": (
        (GOOD + "0.5,1,x,y\n" + "0.5,1,x\n" * 9).encode(),
        "expected 3 values in every row, as in the header, got 4 in line 22.",
    ),
    "an open quote": (
        (GOOD + '"0.5,1,x\n' + "0.5,1,x\n" * 9).encode(),
        "the row that begins in line 22 has quotes that do not match.",
    ),
    "empty": (b"", "is empty: expected a line of column names, and rows."),
    "blank lines": (b"\r\n\n  \n", "is empty: expected a line of column names, and rows."),
    "a mark alone": (b"\xff\xfe", "is empty: expected a line of column names, and rows."),
    "Excel": (b"PK\x03\x04" + b"\x00" * 100, "is an Excel workbook or a zip file, expected CSV."),
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("kind", UNREADABLE)
def test_unreadable_files_are_explained_in_our_words(tmp_path, kind, packed, engine):
    content, expected = UNREADABLE[kind]
    if kind == "long rows" and engine == "polars":
        pytest.skip("polars reads the columns it needs, and those are there")
    path = tmp_path / ("past.csv.gz" if packed else "past.csv")
    path.write_bytes(gzip.compress(content) if packed else content)
    with pytest.raises(sl.InvalidInput) as caught:
        sl.calibrate_table(
            path, score="score", label="label", target=sl.Expected(1, 100), read=sl.Read(engine=engine)
        )
    assert expected in str(caught.value)
    assert str(path) in str(caught.value)


TWO_LINE_ENDS = (
    GOOD.replace("name", '"na""me"').replace("\n", "\r\n") + "0.5,1,\xe4\n"
)  # written on two systems


def test_two_kinds_of_line_ends_are_explained_in_our_words(tmp_path):
    """A row appended on Linux to a file from Windows; with quotes in the names DuckDB gives up."""
    path = tmp_path / "past.csv"
    path.write_text(TWO_LINE_ENDS, encoding="utf-8", newline="")
    with pytest.raises(sl.InvalidInput) as caught:
        sl.calibrate_table(
            path, score="score", label="label", target=sl.Expected(1, 100), read=sl.Read(engine="duckdb")
        )
    assert str(caught.value) == (
        f"{path}: line 22 ends in LF and line 1 in CR LF. Save it with one kind of line ends."
    )


def test_two_kinds_of_line_ends_are_read_where_a_file_is_translated_anyway(tmp_path):
    path = tmp_path / "past.csv"
    path.write_text(TWO_LINE_ENDS, encoding="latin-1", newline="")
    policy = sl.calibrate_table(path, score="score", label="label", target=sl.Expected(1, 100))
    assert policy.cutoffs[0].rows == 21


def test_short_rows_are_explained_in_our_words(tmp_path):
    path = tmp_path / "past.csv"
    path.write_text(GOOD + "0.5\n" + GOOD.partition("\n")[2])
    with pytest.raises(sl.InvalidInput, match=r"expected 3 values in every row.*, got 1 in line 22"):
        sl.calibrate_table(path, score="score", label="label", target=sl.Expected(1, 100))


def test_a_header_cell_beyond_131072_characters_is_refused(tmp_path):
    path = tmp_path / "past.csv"
    path.write_text("score," + "x" * 131_073 + "\n0.5,1\n")
    with pytest.raises(sl.InvalidInput, match="column names of at most 131,072 characters"):
        workflows.shape(path)
    path.write_text("score," + "x" * 131_072 + "\n0.5,1\n")
    assert len(workflows.shape(path)[1][1]) == 131_072
