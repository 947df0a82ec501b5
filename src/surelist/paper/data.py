"""Census people as arrays: the paper's employment task from PUMS files of any state and year.

Reads the American Community Survey's person files as the Census Bureau publishes them
(``psam_pNN.csv``, zipped or not) and Parquet tables with the same column names.
"""

from __future__ import annotations

import hashlib
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray

from surelist._dataclasses import dataclass
from surelist.errors import InvalidInput

FEATURES = (
    "AGEP", "SCHL", "MAR", "RELP", "DIS", "ESP", "CIT", "MIG",
    "MIL", "ANC", "NATIVITY", "DEAR", "DEYE", "DREM", "SEX", "RAC1P",
)  # fmt: skip
RENAMED = {"RELP": "RELSHIPP"}  # since 2019 the Census publishes RELP under another name
LABEL = "ESR"  # employment status; 1 is a civilian at work
RACE = "RAC1P"  # 1 is white alone
FEWEST_FEATURES = 8


@dataclass(frozen=True)
class People:
    """People to draw experiments from: features (blanks are 0), who is employed, who is minority.

    White alone is the majority and everyone else the minority, as in the paper.
    """

    features: NDArray[np.int16]
    qualified: NDArray[np.bool_]
    minority: NDArray[np.bool_]
    names: tuple[str, ...]
    source: str
    synthetic: bool = False

    def __len__(self) -> int:
        return len(self.qualified)

    @property
    def absent(self) -> tuple[str, ...]:
        """The paper's features that this source does not have."""
        return tuple(name for name in FEATURES if name not in self.names)

    def fingerprint(self) -> str:
        """SHA-256 of everything the experiments depend on."""
        digest = hashlib.sha256(repr(self.names).encode())
        for array in (self.features, self.qualified, self.minority):
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()

    def first(self, rows: int) -> People:
        """The first ``rows`` people."""
        return People(
            self.features[:rows], self.qualified[:rows], self.minority[:rows],
            self.names, self.source, self.synthetic,
        )  # fmt: skip


def load(paths: Sequence[Path]) -> People:
    """Read people from PUMS CSV files, ZIP archives of them, or Parquet files, one after another."""
    if not paths:
        raise InvalidInput("data", expected="at least one file", got="none")
    with tempfile.TemporaryDirectory() as folder:
        files = [unpacked for path in paths for unpacked in _unpack(path, Path(folder))]
        parts = [_read(file, origin) for file, origin in files]
    names = parts[0][1]
    for (_, origin), (_, other, _) in zip(files, parts, strict=True):
        if other != names:
            raise InvalidInput(
                "data",
                f"{origin.name} has the features {', '.join(other)}; {files[0][1].name} has "
                f"{', '.join(names)}. Read files of the same years together.",
            )
    features = np.concatenate([part[0] for part in parts])
    if not len(features):
        raise InvalidInput("data", f"no people in {', '.join(str(path) for path in paths)}.")
    qualified = np.concatenate([part[2] for part in parts])
    minority = features[:, names.index(RACE)] != 1
    return People(features, qualified, minority, names, ", ".join(path.name for path in paths))


def columns_of(file: Path) -> list[str]:
    """Column names of a CSV or Parquet file, in capitals."""
    try:
        with duckdb.connect() as engine:
            columns = engine.execute(f"DESCRIBE SELECT * FROM {_table(file)}").fetchall()
    except duckdb.Error as error:
        raise InvalidInput("data", f"cannot read {file.name}: {_first_line(error)}") from error
    return [str(row[0]).upper() for row in columns]


def features_in(columns: Sequence[str]) -> dict[str, str]:
    """The paper's features among these columns, each with the name it has there."""
    features = {}
    for name in FEATURES:
        for column in (name, RENAMED.get(name, name)):
            if column in columns:
                features[name] = column
                break
    return features


def require_task(columns: Sequence[str], file: str, fewest: int = FEWEST_FEATURES) -> dict[str, str]:
    """The features in these columns, or an error that says what a person file would have."""
    features = features_in(columns)
    lacking = [name for name in ("AGEP", RACE, LABEL) if name not in columns]
    if lacking or len(features) < fewest:
        missing = lacking or [name for name in FEATURES if name not in features]
        shown = ", ".join(list(columns)[:8]) + (", ..." if len(columns) > 8 else "")
        raise InvalidInput(
            "data",
            f"{file} is not a PUMS person file: expected the columns {', '.join(missing)}, found {shown}. "
            "Person files are named psam_pNN.csv (psam_hNN.csv are households).",
        )
    return features


def _unpack(path: Path, folder: Path) -> list[tuple[Path, Path]]:
    """(readable file, where it came from) for a file or for every person file in an archive."""
    if not path.is_file():
        raise InvalidInput("data", f"no such file: {path}.")
    if path.suffix.lower() != ".zip":
        return [(path, path)]
    try:
        with zipfile.ZipFile(path) as archive:
            inside = [name for name in archive.namelist() if is_person_file(name)]
            if not inside:
                raise InvalidInput("data", f"{path.name} holds no person file (psam_pNN.csv).")
            return [(Path(archive.extract(name, folder / path.stem)), path) for name in sorted(inside)]
    except zipfile.BadZipFile as error:
        raise InvalidInput(
            "data", f"{path.name} is not a complete ZIP archive ({error}). Fetch it again."
        ) from error


def is_person_file(name: str) -> bool:
    """Whether a name in an archive is that of a PUMS person file."""
    base = name.rsplit("/", 1)[-1].lower()
    return base.startswith("psam_p") and base.endswith(".csv")


def _read(file: Path, origin: Path) -> tuple[NDArray[np.int16], tuple[str, ...], NDArray[np.bool_]]:
    features = require_task(columns_of(file), origin.name)
    wanted = [f'TRY_CAST("{column}" AS SMALLINT) AS "{name}"' for name, column in features.items()]
    wanted.append(f'TRY_CAST("{LABEL}" AS SMALLINT) AS "{LABEL}"')
    try:
        with duckdb.connect() as engine:
            _require_numbers(engine, file, origin, [*features.values(), LABEL])
            table = engine.execute(f"SELECT {', '.join(wanted)} FROM {_table(file)}").fetchnumpy()
    except duckdb.Error as error:
        raise InvalidInput("data", f"cannot read {origin.name}: {_first_line(error)}") from error
    filled = {name: _blank_as_zero(column) for name, column in table.items()}
    matrix = np.stack([filled[name] for name in features], axis=1)
    return matrix, tuple(features), filled[LABEL] == 1


def _require_numbers(engine: Any, file: Path, origin: Path, columns: list[str]) -> None:
    """A blank is a blank; anything else that is not a number is an error with its row."""
    for column in columns:
        text = f'trim(CAST("{column}" AS VARCHAR))'
        wrong = engine.execute(
            f"SELECT row, found FROM (SELECT row_number() OVER () AS row, {text} AS found "
            f"FROM {_table(file)}) WHERE found <> '' AND TRY_CAST(found AS SMALLINT) IS NULL LIMIT 1"
        ).fetchone()
        if wrong:
            raise InvalidInput(
                "data",
                f"{origin.name}, column {column}: expected whole numbers or blanks, got {wrong[1]!r} at "
                f"row {wrong[0] - 1}.",
            )


def _blank_as_zero(column: Any) -> NDArray[np.int16]:
    values = np.ma.filled(column, 0).astype(np.int16)
    return np.maximum(values, 0)  # -1 marks a blank in prepared files


def _table(file: Path) -> str:
    name = str(file).replace("'", "''")
    if file.suffix.lower() == ".parquet":
        return f"read_parquet('{name}')"
    return f"read_csv('{name}', header=true, all_varchar=true)"


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0]
