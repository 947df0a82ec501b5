"""Tables in, exact counts and columns out; shortlists as pushed-down filters. No statistics here.

Files are read by DuckDB. CSV columns stay text, so that what is not used is written back as it
came; only the columns a policy needs are turned into numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb

from surelist._files import writing
from surelist.errors import InvalidInput
from surelist.policy import Policy, Step
from surelist.targets import PerPool

FORMATS = {".csv": "csv", ".csv.gz": "csv", ".tsv": "csv", ".parquet": "parquet"}


@dataclass(frozen=True)
class Selection:
    """What a selection did: how many candidates came in and how many are on the shortlist."""

    candidates: int
    shortlisted: int
    groups: dict[str, tuple[int, int]] = field(default_factory=dict)


def file_format(path: Path) -> str:
    """``csv`` or ``parquet``, by extension."""
    for ending, name in FORMATS.items():
        if path.name.lower().endswith(ending):
            return name
    raise InvalidInput(f"file: expected a name ending in {', '.join(FORMATS)}, got {path.name!r}.")


@contextmanager
def _opened(path: Path) -> Iterator[tuple[Any, list[str]]]:
    """A connection with the file as view ``input``, and its column names."""
    if not path.exists():
        raise InvalidInput(f"file: {path} does not exist.")
    reader = {
        "csv": "read_csv(?, all_varchar=true, header=true, null_padding=false)",
        "parquet": "read_parquet(?)",
    }[file_format(path)]
    connection = duckdb.connect(":memory:")
    try:
        source = reader.replace("?", _literal(str(path)))
        connection.execute(f"CREATE VIEW input AS SELECT * FROM {source}")
        described = connection.execute("DESCRIBE input").fetchall()
        yield connection, [row[0] for row in described]
    except duckdb.Error as error:
        raise InvalidInput(f"file: cannot read {path}: {str(error).splitlines()[0]}") from error
    finally:
        connection.close()


def read_columns(path: Path, columns: dict[str, str | None]) -> dict[str, Any]:
    """Columns as arrays, by role: scores and labels as numbers, groups and ids as text."""
    with _opened(path) as (connection, names):
        wanted = {role: _known(name, names, role) for role, name in columns.items() if name}
        for role, name in wanted.items():
            if role == "score":
                _require_finite(connection, name)
            elif role in ("label", "weight"):
                _require_numbers(connection, name)
        parts = []
        for role, name in wanted.items():
            kind = "DOUBLE" if role in ("score", "label", "weight") else "VARCHAR"
            parts.append(f"CAST({_numeric(name) if kind == 'DOUBLE' else _quoted(name)} AS {kind}) AS {role}")
        found = connection.execute(f"SELECT {', '.join(parts)} FROM input").fetchnumpy()
    return {role: _plain(values, role) for role, values in found.items()}


def write_shortlist(path: Path, policy: Policy, output: Path, columns: dict[str, str | None]) -> Selection:
    """Filter the pool by the policy's thresholds into ``output``, complete or not at all."""
    form = file_format(output)
    with _opened(path) as (connection, names):
        score = _known(columns["score"] or "", names, "score")
        group = _known(columns["group"] or "", names, "group") if policy.grouped else None
        ident = _known(columns["id"] or "", names, "id") if policy.salt_hash else None
        _require_finite(connection, score)
        if ident:
            _require_unique(connection, ident)
        sizes = _group_sizes(connection, group, policy)
        chosen = _condition(policy, score, group, ident, sizes)
        counted = connection.execute(
            f"SELECT {_quoted(group) if group else 'NULL'}, count(*) FROM input WHERE {chosen} GROUP BY 1"
        ).fetchall()
        options = "FORMAT csv, HEADER" if form == "csv" else "FORMAT parquet"
        with writing(output) as temporary:
            shortlist = f"SELECT * FROM input WHERE {chosen}"
            connection.execute(f"COPY ({shortlist}) TO {_literal(str(temporary))} ({options})")
    listed = dict(counted)
    return Selection(
        sum(sizes.values()),
        sum(listed.values()),
        {name: (size, listed.get(name, 0)) for name, size in sizes.items() if name is not None},
    )


def _condition(
    policy: Policy, score: str, group: str | None, ident: str | None, sizes: dict[Any, int]
) -> str:
    total, terms = sum(sizes.values()), []
    for cutoff in policy.cutoffs:
        size = total if cutoff.group is None or policy.group_rows == "all" else sizes.get(cutoff.group, 0)
        if size == 0 and not isinstance(cutoff.target, PerPool):
            continue
        term = _at_least(_numeric(score), cutoff.step(size), policy, ident)
        if cutoff.group is not None and group is not None:
            term = f"(CAST({_quoted(group)} AS VARCHAR) = {_literal(cutoff.group)} AND {term})"
        terms.append(term)
    return " OR ".join(terms) or "FALSE"


def _at_least(score: str, step: Step, policy: Policy, ident: str | None) -> str:
    limit = f"CAST({_literal(repr(step.threshold))} AS DOUBLE)"
    if step.tie_break is None:
        return f"{score} >= {limit}"
    if policy.salt is None:
        raise InvalidInput(
            "policy: its salt is missing. Keep the .salt file beside the policy file and load again."
        )
    number = f"substr(sha256({_literal(policy.salt.key)} || CAST({_quoted(ident or '')} AS VARCHAR)), 1, 13)"
    return f"({score} > {limit} OR ({score} = {limit} AND {number} >= {_literal(f'{step.tie_break:013x}')}))"


def _group_sizes(connection: Any, group: str | None, policy: Policy) -> dict[Any, int]:
    if group is None:
        return {None: connection.execute("SELECT count(*) FROM input").fetchone()[0]}
    rows = connection.execute(
        f"SELECT CAST({_quoted(group)} AS VARCHAR), count(*) FROM input GROUP BY 1 ORDER BY 1"
    ).fetchall()
    known = {cutoff.group for cutoff in policy.cutoffs}
    for name, count in rows:
        if name is None:
            raise InvalidInput(f"column {group!r}: {count:,} rows have no group. Map them to a name first.")
        if name not in known:
            raise InvalidInput(
                f"column {group!r}: unknown group {name!r} ({count:,} rows); "
                f"known groups: {', '.join(repr(each) for each in sorted(str(k) for k in known))}."
            )
    return dict(rows)


def _require_numbers(connection: Any, name: str) -> None:
    _require(connection, name, "value IS NOT NULL AND number IS NULL", "a number")


def _require_finite(connection: Any, name: str) -> None:
    _require(connection, name, "number IS NULL OR NOT isfinite(number)", "a finite number")


def _require(connection: Any, name: str, wrong: str, expected: str) -> None:
    row, value, count = connection.execute(
        "SELECT min(row), arg_min(coalesce(value, ''), row), count(*) FROM "
        "(SELECT row_number() OVER () AS row, "
        f"CAST({_quoted(name)} AS VARCHAR) AS value, {_numeric(name)} AS number FROM input) WHERE {wrong}"
    ).fetchone()
    if count:
        shown = repr(value) if value else "nothing"
        raise InvalidInput(
            f"column {name!r}: expected {expected}, got {shown} in data row {row} ({count:,} such rows)."
        )


def _require_unique(connection: Any, name: str) -> None:
    twice = connection.execute(
        f"SELECT {_quoted(name)} AS id, count(*) FROM input GROUP BY 1 HAVING count(*) > 1 OR id IS NULL"
    ).fetchone()
    if twice is not None:
        raise InvalidInput(
            f"column {name!r}: candidate ids must be present and unique, got {twice[0]!r} {twice[1]} times."
        )


def _known(name: str, names: list[str], role: str) -> str:
    if name not in names:
        listed = ", ".join(repr(each) for each in names[:20])
        raise InvalidInput(f"{role}: there is no column {name!r}; the columns are {listed}.")
    return name


def _numeric(name: str) -> str:
    """A number from text, 0/1 from true/false; NULL where it is neither."""
    text = f"CAST({_quoted(name)} AS VARCHAR)"
    return f"coalesce(TRY_CAST({text} AS DOUBLE), TRY_CAST(TRY_CAST({text} AS BOOLEAN) AS DOUBLE))"


def _plain(values: Any, role: str) -> Any:
    filled = getattr(values, "filled", None)  # a masked array where there are NULLs
    if filled is None:
        return values
    return filled(float("nan")) if role in ("score", "label", "weight") else values.tolist()


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
