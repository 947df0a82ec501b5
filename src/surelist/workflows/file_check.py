"""A file looked over before anything is decided: columns, what was understood, the rows that do not fit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from surelist._check import MissingLabels
from surelist.promises.terms import Roles
from surelist.tables import bad_rows
from surelist.tables.output import write_workbook
from surelist.tables.profile import Profile, group_names
from surelist.tables.profile import profile as profile_table
from surelist.tables.roles import find_columns
from surelist.workflows.source import Source
from surelist.workflows.tables import problems

__all__ = ["Profile", "group_names", "problems"]  # and what is here

MOST_ROWS = 100_000


def profile(source: Source) -> Profile:
    """What is in a file."""
    return profile_table(replace(source, engine="duckdb").open())  # asked in SQL, Parquet files too


def reading(source: Source, score: str, label: str) -> tuple[str, ...]:
    """What is understood of these columns, in sentences."""
    return source.reading(score=score, label=label).sentences


def write_problem_rows(source: Source, roles: Roles, missing_labels: MissingLabels, output: Path) -> None:
    """All rows that stand in the way of a calibration, whole, with their row in the file and why."""
    table = source.open()
    columns = find_columns(table, **roles.names("score", "label", "group", "id"))
    rows: list[tuple[int, str, *tuple[object, ...]]] = [
        (table.sheet_rows([number])[0], why, *cells)
        for why, number, cells in bad_rows.rows_that_stop(
            columns, unlabelled=missing_labels == "error", most=MOST_ROWS
        )
    ]
    names = ["row in the file", "problem", *table.columns]
    rows.sort(key=lambda row: row[0])
    write_workbook(output, names, rows, sheet="problems")
