"""What a page shows of a table is what calibration says of it: the same code, word for word."""

from __future__ import annotations

import csv
import datetime
import decimal
import math
import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xlsxwriter

import surelist as sl
from surelist._names import PYTHON
from surelist.promises.terms import Roles, make_terms
from surelist.tables.bad_rows import Problem, refusal_for
from surelist.workflows import tables as workflows
from surelist.workflows.certify import certify_source
from surelist.workflows.source import Source

SCORES = [round(1 - i / 60, 4) for i in range(60)]
LABELS = [int(i % 3 != 2) for i in range(60)]
GROUPS = ["a" if i % 2 else "b" for i in range(60)]
IDS = [f"c{i}" for i in range(60)]
GOOD: dict[str, list[Any]] = {"score": SCORES, "label": LABELS, "group": GROUPS, "id": IDS}


def csv_of(**changes: list[Any]) -> str:
    columns = {**GOOD, **changes}
    rows = zip(*columns.values(), strict=True)
    return "\n".join([",".join(columns), *(",".join(map(str, row)) for row in rows)]) + "\n"


def put(values: list[Any], *new: Any) -> list[Any]:
    """The column with its first values replaced."""
    return [*new, *values[len(new) :]]


def parquet_of(**changes: Any) -> pa.Table:
    return pa.table({**GOOD, **changes})


CSV = {
    "good": csv_of(),
    "a blank score": csv_of(score=put(SCORES, "")),
    "a score of spaces": csv_of(score=put(SCORES, "  ")),
    "a score in words": csv_of(score=put(SCORES, "high", "n/a")),
    "decimal commas": csv_of(score=[f'"{each}"'.replace(".", ",") for each in SCORES]),
    "percent signs": csv_of(score=[f"{each}%" for each in SCORES]),
    "mixed percent signs": csv_of(score=put([f"{each}%" for each in SCORES], "0.5")),
    "ambiguous thousands": csv_of(score=[f'"{1 + i},{i % 10}34"' for i in range(60)]),
    "scores in words": csv_of(score=["high" if i % 2 else "low" for i in range(60)]),
    "mostly blank scores": csv_of(score=[""] * 60),
    "an infinite score": csv_of(score=put(SCORES, "inf", "-Infinity", "1e999")),
    "a NaN score": csv_of(score=put(SCORES, "nan")),
    "scores near 2^60": csv_of(score=put(SCORES, 2**60, 2**60 + 1)),
    "scores in scientific notation": csv_of(score=put(SCORES, "1e-3", "+2.5E1")),
    "labels in words": csv_of(label=["yes" if each else "no" for each in LABELS]),
    "labels true and false": csv_of(label=["True" if each else "FALSE" for each in LABELS]),
    "labels 1.0 and 0.0": csv_of(label=[float(each) for each in LABELS]),
    "a label of 2": csv_of(label=put(LABELS, 2, -1)),
    "a blank label": csv_of(label=put(LABELS, "", " ")),
    "a NaN label": csv_of(label=put(LABELS, "nan")),
    "a blank group": csv_of(group=put(GROUPS, "", '""')),
    "a group of spaces": csv_of(group=put(GROUPS, " ")),
    "a blank id": csv_of(id=put(IDS, "")),
    "repeated ids": csv_of(id=put(IDS, "c5", "c5", "c6")),
    "everything at once": csv_of(
        score=put(SCORES, "x"),
        label=put(LABELS, 0, "maybe", ""),
        group=put(GROUPS, "b", "a", "b", ""),
        id=put(IDS, "c5"),
    ),
    "a header and no rows": "score,label,group,id\n",
    "an empty file": "",
    "a column named twice": csv_of().replace("score,label,group,id", "score,label,score,id", 1),
    "a column missing": csv_of().replace("score,label,group,id", "points,label,group,id", 1),
    "blank lines": csv_of().replace("\n", "\n\n", 3),
    "ragged rows": csv_of() + "1,2,3,4,5,6,7\n",
}
PARQUET = {
    "good": parquet_of(),
    "NaN labels": parquet_of(label=pa.array(put([float(x) for x in LABELS], math.nan), from_pandas=False)),
    "null labels": parquet_of(label=put(LABELS, None, None)),
    "boolean labels": parquet_of(label=[each == 1 for each in LABELS]),
    "text labels": parquet_of(label=["1" if each else "0" for each in LABELS]),
    "decimal labels": parquet_of(label=[decimal.Decimal(each) for each in LABELS]),
    "infinite labels": parquet_of(label=put([float(x) for x in LABELS], math.inf)),
    "labels of 2": parquet_of(label=put(LABELS, 2)),
    "null scores": parquet_of(score=put(SCORES, None)),
    "NaN scores": parquet_of(score=pa.array(put(SCORES, math.nan), from_pandas=False)),
    "infinite scores": parquet_of(score=put(SCORES, math.inf, -math.inf)),
    "scores near 2^60": parquet_of(score=[2**60 + i for i in range(60)]),
    "unsigned scores near 2^64": parquet_of(score=pa.array([2**63 + i for i in range(60)], pa.uint64())),
    "whole scores": parquet_of(score=list(range(60))),
    "decimal scores": parquet_of(score=[decimal.Decimal(str(each)) for each in SCORES]),
    "boolean scores": parquet_of(score=[each > 0.5 for each in SCORES]),
    "text scores": parquet_of(score=put([str(each) for each in SCORES], "n/a")),
    "dates as scores": parquet_of(score=[datetime.date(2020, 1, 1)] * 60),
    "dates as labels": parquet_of(label=[datetime.datetime(2020, 1, 1)] * 60),
    "dates as groups": parquet_of(group=[datetime.date(2020, 1, 1)] * 60),
    "whole numbers as groups": parquet_of(group=[i % 2 for i in range(60)]),
    "null groups": parquet_of(group=put(GROUPS, None)),
    "null ids": parquet_of(id=put(IDS, None)),
    "repeated whole ids": parquet_of(id=put(list(range(60)), 7, 7)),
    "floats as ids": parquet_of(id=[float(i) for i in range(60)]),
    "no rows": parquet_of().slice(0, 0),
}


Sheet = list[list[Any]]


def sheet_of(**changes: list[Any]) -> Sheet:
    columns = {**GOOD, **changes}
    return [list(columns), *map(list, zip(*columns.values(), strict=True))]


COMMAS = [str(each).replace(".", ",") for each in SCORES]
EXCEL = {
    "good": sheet_of(),
    "decimal commas as text": sheet_of(score=COMMAS),
    "numbers among texts": sheet_of(score=put(COMMAS, 0.5, 0.25, "n/a")),
    "ambiguous text among numbers": sheet_of(score=put(SCORES, "1,234")),
    "percent signs": sheet_of(score=[f"{each} %" for each in COMMAS]),
    "labels in words": sheet_of(label=["Ja" if each else "Nein" for each in LABELS]),
    "true and false": sheet_of(label=[bool(each) for each in LABELS]),
    "empty cells": sheet_of(
        score=put(SCORES, None), label=put(LABELS, 1, None), group=put(GROUPS, "a", "a", None)
    ),
    "empty rows": [*sheet_of()[:5], [], *sheet_of(score=put(SCORES, *SCORES[:10], "x"))[5:], [], []],
    "whole numbers as ids": sheet_of(id=put(list(range(60)), 7, 7)),
    "a name twice": [["score", "label", "score", "id"], *sheet_of()[1:]],
    "two header rows": [["all", None, None, None], *sheet_of()],
}
BYTES = {
    "Windows-1252": csv_of(group=["ä" if i % 2 else "ö" for i in range(60)]).encode("cp1252"),
    "UTF-16": csv_of(score=put(SCORES, "n/a")).encode("utf-16"),
}
BYTES["semicolons and decimal commas"] = "\n".join(
    ";".join(map(str, row)) for row in sheet_of(score=put(COMMAS, "hoch"))
).encode()


def write(tmp_path: Path, name: str, table: str | bytes | Sheet | pa.Table) -> Path:
    if isinstance(table, list):
        book = xlsxwriter.Workbook(str(tmp_path / "table.xlsx"))
        page = book.add_worksheet()
        for at, row in enumerate(table):
            for column, cell in enumerate(row):
                if cell is not None:
                    page.write(at, column, cell)
        book.close()
        return tmp_path / "table.xlsx"
    path = tmp_path / ("table.csv" if isinstance(table, (str, bytes)) else "table.parquet")
    if isinstance(table, (str, bytes)):
        path.write_bytes(table.encode() if isinstance(table, str) else table)
    else:
        pq.write_table(table, path)
    return path


def problems(path: Path, missing_labels: Any = "error", **columns: Any) -> tuple[Problem, ...]:
    return workflows.problems(Source(path), Roles("score", "label", **columns), missing_labels)


def by_page(path: Path, **columns: Any) -> tuple[str | None, list[str]]:
    """(what it refuses with, what it warns of), from the code behind the page."""
    try:
        present = problems(path, **columns)
    except sl.InvalidInput as error:
        return str(error), []
    refusal = refusal_for(str(path), present)
    return refusal and PYTHON.said(refusal), [] if refusal else [
        PYTHON.said(each.sentence) for each in present
    ]


def by_calibration(
    path: Path, target: Any, missing_labels: Any = "error", **columns: Any
) -> tuple[str | None, list[str]]:
    """The same from the code behind ``calibrate_table`` and the command line."""
    groups = sl.Groups("group", purpose="test") if "group" in columns else None
    terms = make_terms(target, groups=groups, missing_labels=missing_labels)
    with warnings.catch_warnings(record=True) as noticed:
        warnings.simplefilter("always")
        try:
            certify_source(Source(path), Roles("score", "label", **columns), terms)
            refusal = None
        except sl.NotCertifiable:
            refusal = None
        except sl.InvalidInput as error:
            refusal = str(error)
    return refusal, [str(each.message) for each in noticed if each.category is sl.errors.TableWarning]


KINDS: dict[str, dict[str, Any]] = {"csv": CSV, "parquet": PARQUET, "excel": EXCEL, "bytes": BYTES}
TABLES = [(kind, name, table) for kind, tables in KINDS.items() for name, table in tables.items()]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "table"),
    [(name, table) for _, name, table in TABLES],
    ids=[f"{kind}: {name}" for kind, name, _ in TABLES],
)
def test_page_and_calibration_agree_word_for_word(tmp_path, name, table):
    path = write(tmp_path, name, table)
    one: Any = sl.Expected(1, 100)
    groups = dict.fromkeys(_groups(table), one)
    cases = [
        (one, {"missing_labels": "error"}),
        (one, {"missing_labels": "unqualified", "id": "id"}),
        (groups, {"missing_labels": "error", "group": "group", "id": "id"}),
    ]
    for target, options in cases:
        assert by_page(path, **options) == by_calibration(path, target, **options)


def _groups(table: str | bytes | Sheet | pa.Table) -> list[str]:
    """The groups of a table that have a name."""
    if isinstance(table, bytes):
        return ["ä", "ö"] if b"\xe4" in table else ["a", "b"]
    if isinstance(table, list):
        there = {row[2] for row in table[1:] if len(row) > 2 and row[2]}
        return sorted(there - {"group"}) or ["a"]  # a title may stand above the names of the columns
    if isinstance(table, pa.Table):
        names = [str(each) for each in table["group"].to_pylist() if each is not None]
    else:
        names = [row[2] for row in csv.reader(table.splitlines()[1:]) if len(row) == 4 and row[2]]
    return sorted(set(names)) or ["a"]


def test_a_nan_label_in_parquet_is_missing_to_both(tmp_path):
    path = write(tmp_path, "", PARQUET["NaN labels"])
    (problem,) = problems(path)
    assert (problem.kind, problem.count) == ("missing label", 1)
    with pytest.raises(sl.InvalidInput, match="missing labels"):
        sl.calibrate_table(path, score="score", label="label", target=sl.Expected(1, 100))


def test_scores_near_2_to_the_60_are_refused_by_both(tmp_path):
    path = write(tmp_path, "", PARQUET["scores near 2^60"])
    (problem,) = problems(path)
    assert (problem.kind, problem.count) == ("score", 60)
    assert "2^53" in problem.message


def test_columns_read_whole_are_refused_in_the_same_words(tmp_path):
    path = write(tmp_path, "", CSV["labels in words"])
    (problem,) = problems(path)
    with pytest.raises(sl.InvalidInput) as caught:
        workflows.curve(path, score="score", label="label", pool_size=100)
    assert str(caught.value) == PYTHON.said(problem.sentence)
    assert "label='yes'" in problem.sentence


@pytest.mark.parametrize("name", ["scores in words", "mostly blank scores"])
def test_dropping_most_rows_is_an_error_not_an_empty_list_with_a_promise(tmp_path, name):
    policy = sl.calibrate([0.9, 0.8, 0.7] * 30, [1, 1, 0] * 30, sl.Expected(1, 100))
    path = write(tmp_path, name, CSV[name])
    for use in (
        lambda: sl.select_table(path, policy, score="score", on_bad_rows="drop"),
        lambda: sl.calibrate_table(
            path, score="score", label="label", target=sl.Expected(1, 100), on_bad_rows="drop"
        ),
    ):
        with pytest.raises(sl.InvalidInput, match=r"in at least half of the 60 rows.*: 60 rows"):
            use()


@pytest.mark.parametrize(("bad", "fits"), [(30, True), (31, False)])
def test_dropping_up_to_half_is_what_was_asked_for(tmp_path, bad, fits):
    policy = sl.calibrate([0.9, 0.8, 0.7] * 30, [1, 1, 0] * 30, sl.Expected(1, 100))
    path = write(tmp_path, "", csv_of(score=put(SCORES, *["n/a"] * bad)))
    if fits:
        assert sl.select_table(path, policy, score="score", on_bad_rows="drop").dropped == bad
    else:
        with pytest.raises(sl.InvalidInput, match="at least half"):
            sl.select_table(path, policy, score="score", on_bad_rows="drop")
