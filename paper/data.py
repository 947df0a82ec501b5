"""Census people as arrays: the paper's employment task from PUMS files of any state and year.

Reads the American Community Survey's person files as the Census Bureau publishes them
(``psam_pNN.csv``, zipped or not) and Parquet tables with the same column names.
"""

from __future__ import annotations

import hashlib
import tempfile
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
from numpy.typing import NDArray

import surelist as sl

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
        raise sl.InvalidInput("data", expected="at least one file", got="none")
    with tempfile.TemporaryDirectory() as folder:
        files = [unpacked for path in paths for unpacked in _unpack(path, Path(folder))]
        parts = [_read(file, origin) for file, origin in files]
    names = parts[0][1]
    for (_, origin), (_, other, _) in zip(files, parts, strict=True):
        if other != names:
            raise sl.InvalidInput(
                "data",
                f"{origin.name} has the features {', '.join(other)}; {files[0][1].name} has "
                f"{', '.join(names)}. Read files of the same years together.",
            )
    features = np.concatenate([part[0] for part in parts])
    if not len(features):
        raise sl.InvalidInput("data", f"no people in {', '.join(str(path) for path in paths)}.")
    qualified = np.concatenate([part[2] for part in parts])
    minority = features[:, names.index(RACE)] != 1
    return People(features, qualified, minority, names, ", ".join(path.name for path in paths))


def require_task(columns: Sequence[str], file: str, fewest: int = FEWEST_FEATURES) -> dict[str, str]:
    """The paper's features, each with its name among these columns; an error says what a person file has."""
    known = {name: next((c for c in (name, RENAMED.get(name)) if c in columns), None) for name in FEATURES}
    features = {name: column for name, column in known.items() if column is not None}
    lacking = [name for name in ("AGEP", RACE, LABEL) if name not in columns]
    if lacking or len(features) < fewest:
        missing = lacking or [name for name in FEATURES if name not in features]
        shown = ", ".join(list(columns)[:8]) + (", ..." if len(columns) > 8 else "")
        raise sl.InvalidInput(
            "data",
            f"{file} is not a PUMS person file: expected the columns {', '.join(missing)}, found {shown}. "
            "Person files are named psam_pNN.csv (psam_hNN.csv are households).",
        )
    return features


def _unpack(path: Path, folder: Path) -> list[tuple[Path, Path]]:
    """(readable file, where it came from) for a file or for every person file in an archive."""
    if not path.is_file():
        raise sl.InvalidInput("data", f"no such file: {path}.")
    if path.suffix.lower() != ".zip":
        return [(path, path)]
    try:
        with zipfile.ZipFile(path) as archive:
            inside = [name for name in archive.namelist() if is_person_file(name)]
            if not inside:
                raise sl.InvalidInput("data", f"{path.name} holds no person file (psam_pNN.csv).")
            return [(Path(archive.extract(name, folder / path.stem)), path) for name in sorted(inside)]
    except zipfile.BadZipFile as error:
        raise sl.InvalidInput(
            "data", f"{path.name} is not a complete ZIP archive ({error}). Fetch it again."
        ) from error


def is_person_file(name: str) -> bool:
    """Whether a name in an archive is that of a PUMS person file."""
    base = name.rsplit("/", 1)[-1].lower()
    return base.startswith("psam_p") and base.endswith(".csv")


def _read(file: Path, origin: Path) -> tuple[NDArray[np.int16], tuple[str, ...], NDArray[np.bool_]]:
    """Features, their names and who is employed. A blank is 0; what else is no number is an error."""
    name = str(file).replace("'", "''")
    table = f"read_csv('{name}', header=true, all_varchar=true)"
    if file.suffix.lower() == ".parquet":
        table = f"read_parquet('{name}')"
    try:
        with duckdb.connect() as engine:
            described = engine.execute(f"DESCRIBE SELECT * FROM {table}").fetchall()
            features = require_task([str(row[0]).upper() for row in described], origin.name)
            columns = features | {LABEL: LABEL}
            for column in columns.values():
                wrong = engine.execute(
                    f"SELECT row, found FROM (SELECT row_number() OVER () AS row, "
                    f'trim(CAST("{column}" AS VARCHAR)) AS found FROM {table}) '
                    "WHERE found <> '' AND TRY_CAST(found AS SMALLINT) IS NULL LIMIT 1"
                ).fetchone()
                if wrong:
                    raise sl.InvalidInput(
                        "data",
                        f"{origin.name}, column {column}: expected whole numbers or blanks, got {wrong[1]!r} "
                        f"at row {wrong[0] - 1}.",
                    )
            wanted = [f'TRY_CAST("{column}" AS SMALLINT) AS "{each}"' for each, column in columns.items()]
            read = engine.execute(f"SELECT {', '.join(wanted)} FROM {table}").fetchnumpy()
    except duckdb.Error as error:
        first = str(error).strip().splitlines()[0]
        raise sl.InvalidInput("data", f"cannot read {origin.name}: {first}") from error
    # -1 marks a blank in prepared files
    filled = {each: np.maximum(np.ma.filled(column, 0).astype(np.int16), 0) for each, column in read.items()}
    return np.stack([filled[each] for each in features], axis=1), tuple(features), filled[LABEL] == 1
