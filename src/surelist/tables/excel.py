"""Excel and OpenDocument workbooks as rows of plain values (``excel`` extra). No table is made here.

A workbook is a zip file from anywhere: how much it unfolds to, and how far its cells reach, is looked at
before any of it is read.
"""

from __future__ import annotations

import datetime
import re
import zipfile
from collections.abc import Iterable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

from surelist._dataclasses import dataclass, replace
from surelist._names import option
from surelist.errors import InvalidInput, MissingDependency
from surelist.tables.csv_text import MOST_TITLES, NUMBER
from surelist.tables.hints import Origin
from surelist.tables.numbers import Ambiguous, decide, shapes_of
from surelist.tables.sheet_remarks import remarks_on
from surelist.tables.total_row import require_no_sum, require_no_total

if TYPE_CHECKING:
    from python_calamine import CalamineSheet, CalamineWorkbook

ENDINGS = (".xlsx", ".xlsm", ".xls", ".ods")
MOST_BYTES = 2 << 30  # unfolded
MOST_CELLS = 50_000_000
MOST_FOLDED = 250  # times smaller; ordinary sheets are 5 to 60 times smaller than unfolded
SMALL = 64 << 20
_CELL = re.compile(rb"""\br\s*=\s*["']([A-Za-z]{0,3})([0-9]{1,9})["']""")
_REPEATED = re.compile(rb"""number-(?:rows|columns)-repeated\s*=\s*["']([0-9]+)["']""")
_OLD = b"\xd0\xcf\x11\xe0"  # both .xls and a workbook with a password
_PIECE = 1 << 20


class SheetNeeded(InvalidInput):
    """Several sheets hold something, and none was named; ``sheets`` are their names."""

    sheets: tuple[str, ...] = ()


@dataclass(frozen=True)
class Sheet:
    """One sheet: the names in its header and the rows below it, without empty ones."""

    names: list[str]
    rows: list[list[object]]
    origin: Origin


def read_sheet(path: str | Path, sheet: str | None = None, header_row: int | None = None) -> Sheet:
    """The sheet named, or the only one that is visible and holds something."""
    book = _opened(path)
    try:
        name, names = _chosen(book, path, sheet)
        return _parsed(book.get_sheet_by_name(name), name, names, path, header_row)
    except InvalidInput:
        raise
    except Exception as error:  # whatever the reader stumbles over in a damaged file
        raise InvalidInput("file", f"cannot read {path} as a workbook: {error}.") from error
    finally:
        book.close()


def _opened(path: str | Path) -> CalamineWorkbook:
    try:
        import python_calamine as calamine
    except ImportError as error:
        raise MissingDependency('Excel files need python-calamine: pip install "surelist[excel]".') from error
    _require_workbook(Path(path))
    try:
        with open(path, "rb") as file:  # by what it holds, not by its ending
            return calamine.CalamineWorkbook.from_filelike(file)
    except calamine.PasswordError as error:
        raise InvalidInput("file", _LOCKED.format(path=path)) from error
    except Exception as error:
        raise InvalidInput("file", f"cannot read {path} as a workbook: {error}.") from error


_LOCKED = "{path} is protected by a password. Save it without one, then try again."


def _require_workbook(path: Path) -> None:
    """What the file is, whatever it is called; and how much it would unfold to."""
    try:
        with path.open("rb") as file:
            start = file.read(8)
    except OSError as error:
        raise InvalidInput("file", f"cannot read {path}: {error.strerror}.") from error
    if start.startswith(b"PK\x03\x04"):
        _require_harmless(path)
    elif start.startswith(_OLD):
        with path.open("rb") as file:
            if _is_locked(file.read(4 << 20)):
                raise InvalidInput("file", _LOCKED.format(path=path))
    else:
        what = "empty" if not start else "a Parquet file" if start.startswith(b"PAR1") else "no workbook"
        raise InvalidInput(
            "file",
            f"{path} is {what}, whatever its ending says. If it is text, rename it to .csv; else save it "
            "again as .xlsx.",
        )


def _is_locked(start: bytes) -> bool:
    """An encrypted workbook is an old-style container with a part of this name."""
    return "EncryptedPackage".encode("utf-16-le") in start


def _require_harmless(path: Path) -> None:
    try:
        with zipfile.ZipFile(path) as file:
            parts = file.infolist()
            unfolded, folded = sum(p.file_size for p in parts), max(1, sum(p.compress_size for p in parts))
            if unfolded > MOST_BYTES or (unfolded > SMALL and unfolded > MOST_FOLDED * folded):
                raise InvalidInput(
                    "file",
                    f"{path} unfolds to {unfolded >> 20:,} MiB, {unfolded // folded:,} times its size: "
                    f"more than {MOST_BYTES >> 20:,} MiB or {MOST_FOLDED} times is not read. Save the "
                    "table as CSV.",
                )
            for part in parts:
                if part.flag_bits & 1:
                    raise InvalidInput("file", _LOCKED.format(path=path))
                if re.search(r"worksheets/[^/]+\.xml$|^content\.xml$", part.filename):
                    _require_reach(path, file, part)
            if not any(re.search(r"^xl/|^content\.xml$", part.filename) for part in parts):
                raise InvalidInput("file", f"{path} is a zip file without a workbook in it.")
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, OSError) as error:
        raise InvalidInput("file", f"{path} is damaged: it cannot be unfolded ({error}).") from error


def _require_reach(path: Path, file: zipfile.ZipFile, part: zipfile.ZipInfo) -> None:
    """Two cells in far corners make a rectangle that no memory holds: a reader fills all of it."""
    rows = columns = read = 0
    before = b""
    with file.open(part) as stream:
        while piece := stream.read(_PIECE):
            read += len(piece)
            if read > part.file_size:
                raise InvalidInput("file", f"{path} is damaged: a part of it is longer than it says.")
            text = before + piece
            for letters, digits in _CELL.findall(text):
                rows = max(rows, int(digits))
                columns = max(columns, _column(letters))
            for times in _REPEATED.findall(text):
                if int(times) > 1 << 24:
                    rows, columns = 1 << 20, 1 << 14
            before = text[-64:]
    if rows * max(columns, 1) > MOST_CELLS:
        raise InvalidInput(
            "file",
            f"a sheet of {path} reaches to row {rows:,} and column {columns:,}: more than {MOST_CELLS:,} "
            "cells are not read. Delete what lies far out, or save the table as CSV.",
        )


def _column(letters: bytes) -> int:
    number = 0
    for each in letters.upper():
        number = number * 26 + each - 64
    return number


def _chosen(book: CalamineWorkbook, path: str | Path, wanted: str | None) -> tuple[str, tuple[str, ...]]:
    from python_calamine import SheetTypeEnum, SheetVisibleEnum

    known = [each for each in book.sheets_metadata if each.typ == SheetTypeEnum.WorkSheet]
    names = tuple(each.name for each in known)
    listed = ", ".join(repr(name) for name in names)
    if wanted is not None:
        close = [name for name in names if name == wanted] or [
            name for name in names if name.strip().lower() == str(wanted).strip().lower()
        ]
        if len(close) != 1:
            raise InvalidInput("sheet", f"{path} has no sheet {wanted!r}; its sheets are {listed}.")
        return close[0], names
    visible = [each.name for each in known if each.visible == SheetVisibleEnum.Visible]
    filled = [name for name in visible if book.get_sheet_by_name(name).height > 0]
    if len(filled) == 1:
        return filled[0], names
    if not filled:
        hidden = [name for name in names if name not in visible]
        more = f" Hidden: {', '.join(map(repr, hidden))}; name one with {option('sheet')}." if hidden else ""
        raise InvalidInput("file", f"{path} is empty: expected a row of column names, and rows.{more}")
    question = SheetNeeded(
        "sheet",
        f"{path} has {len(filled)} sheets with content: {', '.join(map(repr, filled))}. "
        f"Say which one with {option('sheet')}.",
    )
    question.sheets = tuple(filled)
    raise question


def _parsed(
    sheet: CalamineSheet, name: str, names: tuple[str, ...], path: str | Path, header_row: int | None
) -> Sheet:
    numbered = list(_filled_rows(sheet))
    if not numbered:
        raise InvalidInput(
            "file", f"sheet {name!r} of {path} is empty: expected a row of column names, and rows."
        )
    where = f"sheet {name!r} of {path}"
    above = _titles_above(numbered) if header_row is None else _rows_above(numbered, header_row, where)
    top, cells = numbered[len(above)]
    rows: list[list[object]] = []
    skipped: list[int] = []
    expected = top + 1
    for number, row in numbered[len(above) + 1 :]:
        skipped += range(expected, number)
        expected = number + 1
        rows.append(row)
    first = sheet.start[1] if sheet.start else 0
    everything = [cells, *rows]
    kept = [at for at in range(_width(everything)) if any(_at(row, at) is not None for row in everything)]
    titles = _titles(cells, kept, first, where, top)
    rows = [[_at(row, at) for at in kept] for row in rows]
    if len(rows) > 1:
        require_no_total(rows[-1], f"{where}, row {expected - 1:,}")
        require_no_sum(rows, f"{where}, row {expected - 1:,}")
    seen = remarks_on(path, name, top, _letters)
    origin = Origin("excel", name, names, header=top, above=above, skipped=tuple(skipped), errors=None)
    if seen is not None:
        columns = tuple(title for at, title in zip(kept, titles, strict=True) if seen.hides(first + at))
        origin = replace(
            origin, errors=seen.errors, error_cells=tuple(seen.shown), hidden=seen.hidden,
            hidden_columns=columns,
            formats={
                title: seen.formats[letters]
                for at, title in zip(kept, titles, strict=True)
                if (letters := _letters(first + at)) in seen.formats
            },
        )  # fmt: skip
    return Sheet(titles, rows, origin)


def _titles_above(numbered: list[tuple[int, list[object]]]) -> tuple[str, ...]:
    """What stands alone in its row above a row with a name for every column: a title, and no column name."""
    filled = [[cell for cell in row if cell is not None] for _, row in numbered[: MOST_TITLES + 1]]
    first = next((at for at, cells in enumerate(filled) if len(cells) > 1), 0)
    names = numbered[first][1][: _width(row for _, row in numbered)]
    if not all(isinstance(name, str) and not NUMBER.match(name) for name in names):
        return ()
    return tuple(_text(cells[0]).strip() for cells in filled[:first])


def _rows_above(numbered: list[tuple[int, list[object]]], row: int, where: str) -> tuple[str, ...]:
    """The first cell of every row above the one with the names."""
    if row not in dict(numbered):
        raise InvalidInput("header_row", f"{where} has no column names in row {row}.")
    above = [cells for number, cells in numbered if number < row]
    return tuple(_text(next(cell for cell in cells if cell is not None)).strip() for cells in above)


def _filled_rows(sheet: CalamineSheet) -> Iterator[tuple[int, list[object]]]:
    """Rows that hold something, with their numbers as a spreadsheet shows them; None in empty cells."""
    for number, row in enumerate(sheet.iter_rows(), 1):
        cells = [_plain(cell) for cell in row]
        if any(cell is not None for cell in cells):
            yield number, cells


def _plain(cell: object) -> object:
    if isinstance(cell, str):
        return cell if cell.strip() else None
    if isinstance(cell, datetime.timedelta):
        return str(cell)
    return cell


def _at(row: list[object], at: int) -> object:
    return row[at] if at < len(row) else None


def _titles(cells: list[object], kept: list[int], first: int, where: str, top: int) -> list[str]:
    """The names of the columns: one for each that holds something, none twice."""
    names: list[str] = []
    seen: dict[str, int] = {}
    for at in kept:
        cell = _at(cells, at)
        address = f"{_letters(first + at)}{top}"
        if cell is None:
            raise InvalidInput(
                where,
                f"{address} has no column name, and cells below it are filled. Expected one row of names "
                "above the data, one per column: remove title rows and a second header, unmerge cells.",
            )
        name = _text(cell).strip()
        if name.lower() in seen:
            raise InvalidInput(
                where,
                f"the column name {name!r} appears twice, in {_letters(first + seen[name.lower()])}{top} "
                f"and {address}. Give each column its own name.",
            )
        seen[name.lower()] = at
        names.append(name)
    return names


def _width(rows: Iterable[list[object]]) -> int:
    """As many columns as hold anything."""
    return max((at + 1 for row in rows for at, cell in enumerate(row) if cell is not None), default=0)


def _letters(column: int) -> str:
    text = ""
    column += 1
    while column:
        column, rest = divmod(column - 1, 26)
        text = chr(65 + rest) + text
    return text


def _text(cell: object) -> str:
    """A cell as people see it: whole numbers without a point, dates as in ISO 8601."""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, float):
        return str(int(cell)) if cell.is_integer() and abs(cell) < 1e15 else repr(cell)
    return cell.isoformat(sep=" ") if isinstance(cell, datetime.datetime) else str(cell)


def kinds_of(sheet: Sheet) -> list[str]:
    """The type of each column as SQL: what all its cells are, else text."""
    return [_kind([row[at] for row in sheet.rows]) for at in range(len(sheet.names))]


def _kind(cells: list[object]) -> str:
    kinds = {type(cell) for cell in cells if cell is not None}
    if kinds == {float}:
        numbers = [cell for cell in cells if isinstance(cell, float)]
        whole = all(each.is_integer() and abs(each) < 1 << 53 for each in numbers)
        return "BIGINT" if whole else "DOUBLE"
    if kinds == {int}:
        return "BIGINT"
    if kinds == {bool}:
        return "BOOLEAN"
    if kinds == {datetime.date}:
        return "DATE"
    if kinds and kinds <= {datetime.date, datetime.datetime}:
        return "TIMESTAMP"
    return "VARCHAR"


def values_of(sheet: Sheet) -> Iterator[list[object]]:
    """The rows, with text in every cell of a column of texts."""
    marks = [_mark([row[at] for row in sheet.rows]) for at in range(len(sheet.names))]
    texts = [kind == "VARCHAR" for kind in kinds_of(sheet)]
    for row in sheet.rows:
        yield [
            cell if cell is None or not text else _text(cell) if mark == "." else _number(cell, mark)
            for cell, mark, text in zip(row, marks, texts, strict=True)
        ]


def _mark(cells: list[object]) -> str | None:
    """How numbers among texts are written so that they change nothing about how the texts are read.

    A number of Excel's is a number, and "0,84" beside it a text that somebody typed.
    """
    kinds = {type(cell) for cell in cells if cell is not None}
    if not {float, str} <= kinds:
        return "."
    try:
        return decide(shapes_of(cells)).style.decimal
    except Ambiguous:
        return None


def _number(cell: object, mark: str | None) -> str:
    if not isinstance(cell, float) or cell.is_integer():
        return _text(cell)
    if mark is not None:
        return repr(cell).replace(".", mark)
    _, digits, exponent = Decimal(repr(cell)).as_tuple()
    return f"{'-' if cell < 0 else ''}{''.join(map(str, digits))}e{exponent}"  # without any mark
