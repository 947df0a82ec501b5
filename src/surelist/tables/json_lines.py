"""JSON Lines, one object per row: DuckDB reads them as typed columns, and what was sent keeps its type.

A text is a text, also one of digits; whole numbers that 64 bits do not hold are kept as their digits; a
column of several types is text. ``Origin.not_numbers`` says what a column holds that is no number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import duckdb
import msgspec

from surelist.errors import InvalidInput
from surelist.tables.csv_text import bytes_of
from surelist.tables.engines.duckdb import connect, json_reader, objects_in, quoted
from surelist.tables.hints import NESTED, Origin

_ROW = "__surelist_row"
_LONGEST = 80  # letters of a value that are shown
_KIND = f"""CASE WHEN json_type(value) = 'VARCHAR' THEN 'text'
    WHEN json_type(value) = 'BOOLEAN' THEN 'boolean'
    WHEN json_type(value) IN ('OBJECT', 'ARRAY') THEN 'nested'
    WHEN NOT regexp_full_match(value, '-?[0-9]+') THEN 'fraction'
    WHEN try_cast(value AS BIGINT) BETWEEN {-(1 << 53)} AND {1 << 53} THEN 'whole'
    WHEN try_cast(value AS BIGINT) IS NOT NULL THEN 'long' ELSE 'huge' END"""
First = Mapping[str, tuple[int, str]]  # of each kind of value in a column: row and value


def columns_of(paths: Sequence[str], name: str) -> tuple[dict[str, str], Origin]:
    """The columns of any row, each with a type (as SQL) that holds all its values; reads all rows once."""
    connection = connect()
    try:
        names = _names(connection, paths, name)
        kinds = _kinds(connection, paths, names)
    except duckdb.Error as error:
        reason = _unreadable(paths)
        if reason is None:
            raise
        raise InvalidInput("file", reason) from error
    finally:
        connection.close()
    odd = {each: _odd(kinds.get(each, {})) for each in names}
    origin = Origin("json", header=0, not_numbers={each: said for each, said in odd.items() if said})
    return {each: _type(set(kinds.get(each, {}))) for each in names}, origin


def _names(connection: duckdb.DuckDBPyConnection, paths: Sequence[str], name: str) -> list[str]:
    """In the order in which they come; none twice in a row."""
    rows = connection.execute(
        "SELECT json_type(json) = 'OBJECT', json_keys(json), min(row) FROM "
        f"(SELECT json, row_number() OVER () AS row FROM {objects_in(paths)}) GROUP BY ALL ORDER BY 3"
    ).fetchall()
    if not rows:
        raise InvalidInput("file", f"{name} is empty: expected a JSON object in every line.")
    for is_object, keys, row in rows:
        if not is_object:
            raise InvalidInput("file", f"{name}: expected a JSON object in every line, row {row:,} is none.")
        twice = next((each for at, each in enumerate(keys) if each in keys[:at]), None)
        if twice is not None:
            raise InvalidInput("file", f"{name}: row {row:,} says {twice!r} twice. Say each key once.")
    names = list(dict.fromkeys(each for _, keys, _ in rows for each in keys))
    seen: dict[str, str] = {}
    for each in names:
        if seen.setdefault(each.lower(), each) != each:
            raise InvalidInput(
                "file", f"{name}: {seen[each.lower()]!r} and {each!r} differ in capitals only. Rename one."
            )
    if not names:
        raise InvalidInput("file", f"{name}: expected columns, got empty objects.")
    return names


def _kinds(
    connection: duckdb.DuckDBPyConnection, paths: Sequence[str], names: Sequence[str]
) -> dict[str, dict[str, tuple[int, str]]]:
    """By column: the kinds of its values, with the first of each and its row."""
    reader = json_reader(paths, dict.fromkeys(names, "JSON"))
    rows = connection.execute(
        f"SELECT name, {_KIND} AS kind, min({_ROW}), arg_min(value, {_ROW}) FROM (UNPIVOT "
        f"(SELECT *, row_number() OVER () AS {_ROW} FROM {reader}) ON {', '.join(map(quoted, names))} "
        "INTO NAME name VALUE value) GROUP BY ALL"
    ).fetchall()
    kinds: dict[str, dict[str, tuple[int, str]]] = {}
    for name, kind, row, value in rows:
        kinds.setdefault(name, {})[kind] = (row, value)
    return kinds


def _type(kinds: set[str]) -> str:
    if kinds == {"boolean"}:
        return "BOOLEAN"
    if kinds and kinds <= {"whole", "long"}:
        return "BIGINT"
    return "DOUBLE" if kinds and kinds <= {"whole", "fraction"} else "VARCHAR"


def _odd(first: First) -> str | None:
    """What a column holds that is no number, or none that a float holds; None of one with numbers only."""
    if not first:
        return "nothing but null"
    for kind, words in (("nested", NESTED), ("text", "the text {}"), ("boolean", "{}")):
        if kind in first:
            row, value = first[kind]
            shown = repr(msgspec.json.decode(value)[:_LONGEST]) if kind == "text" else value
            return f"{words.format(shown)} in row {row:,}"
    large = first.get("huge") or (first.get("long") if "fraction" in first else None)
    if large is None:
        return None
    return f"{large[1][:_LONGEST]} in row {large[0]:,}, which loses its order as a float: rescale the numbers"


def _unreadable(paths: Sequence[str]) -> str | None:
    """The first line that is no JSON, if there is one that can be looked at."""
    for path in paths:
        number = 0
        try:
            with bytes_of(path) as file:
                for line in file:
                    number += 1
                    if line.strip():
                        msgspec.json.decode(line)
        except (msgspec.DecodeError, UnicodeError) as error:
            return f"{path}: expected a JSON object in every line, line {number:,} is none ({error})."
        except (OSError, EOFError):
            return None
    return None
