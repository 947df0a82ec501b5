"""Excel and OpenDocument workbooks as rows of plain values (``excel`` extra). No table is made here.

A workbook is a zip file from anywhere: how much it unfolds to, and how far its cells reach, is looked at
before any of it is read. The reader gives 84 % as 0.84: which columns show percent and currencies is looked
for in the XML of the sheet.
"""

from __future__ import annotations

import datetime
import posixpath
import re
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from surelist._names import option
from surelist.errors import InvalidInput, MissingDependency
from surelist.tables.csv_text import MOST_TITLES, NUMBER, require_no_total
from surelist.tables.hints import Origin
from surelist.tables.numbers import Ambiguous, decide, shapes_of

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

    from python_calamine import CalamineSheet, CalamineWorkbook

ENDINGS = (".xlsx", ".xlsm", ".xls", ".ods")
MOST_BYTES = 2 << 30  # unfolded
MOST_CELLS = 50_000_000
MOST_FOLDED = 250  # times smaller; ordinary sheets are 5 to 60 times smaller than unfolded
SMALL = 64 << 20
_CELL = re.compile(rb"""\br\s*=\s*["']([A-Za-z]{0,3})([0-9]{1,9})["']""")
_REPEATED = re.compile(rb"""number-(?:rows|columns)-repeated\s*=\s*["']([0-9]+)["']""")
_OLD = b"\xd0\xcf\x11\xe0"  # both .xls and a workbook with a password
_ENCRYPTED = "EncryptedPackage".encode("utf-16-le")  # a part of an old-style container
_LOCKED = "{path} is protected by a password. Save it without one, then try again."
_PIECE = 1 << 20
_SHEETS, _LINKS, _STYLES = "xl/workbook.xml", "xl/_rels/workbook.xml.rels", "xl/styles.xml"
_ANY_CELL = re.compile(r"<(?:\w+:)?c\s([^>]*)>")
_ATTRIBUTE = re.compile(r"""(\w+)\s*=\s*["']([^"']*)["']""")
_KEPT = re.compile(r"%|[$€£¥₹]")  # percent and currencies
_BUILT_IN = {each: each for each in ("5", "6", "7", "8", "9", "10", "42", "44")}


class SheetNeeded(InvalidInput):
    """Several sheets hold something, and none was named; ``sheets`` are their names."""

    sheets: tuple[str, ...] = ()


class Sheet(Struct, frozen=True):
    """One sheet: its columns with their types as SQL, and the rows below the names, without empty ones."""

    kinds: dict[str, str]
    rows: list[tuple[object, ...]]
    origin: Origin


def read_sheet(path: str | Path, sheet: str | None = None, header_row: int | None = None) -> Sheet:
    """The sheet named, or the only one that is visible and holds something."""
    try:
        import python_calamine as calamine
    except ImportError as error:
        raise MissingDependency('Excel files need python-calamine: pip install "surelist[excel]".') from error
    _require_workbook(Path(path))
    try:
        with (
            open(path, "rb") as file,  # by what it holds, not by its ending
            calamine.CalamineWorkbook.from_filelike(file) as book,
        ):
            name, names = _chosen(book, path, sheet)
            return _parsed(book.get_sheet_by_name(name), name, names, path, header_row)
    except InvalidInput:
        raise
    except calamine.PasswordError as error:
        raise InvalidInput("file", _LOCKED.format(path=path)) from error
    except Exception as error:  # whatever the reader stumbles over in a damaged file
        raise InvalidInput("file", f"cannot read {path} as a workbook: {error}.") from error


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
            if _ENCRYPTED in file.read(4 << 20):
                raise InvalidInput("file", _LOCKED.format(path=path))
    else:
        what = "empty" if not start else "a Parquet file" if start.startswith(b"PAR1") else "no workbook"
        raise InvalidInput(
            "file",
            f"{path} is {what}, whatever its ending says. If it is text, rename it to .csv; else save it "
            "again as .xlsx.",
        )


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
                columns = max(columns, reduce(lambda at, each: at * 26 + each - 64, letters.upper(), 0))
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
    from xlsxwriter.utility import xl_col_to_name

    where = f"sheet {name!r} of {path}"
    cells = ([_plain(cell) for cell in row] for row in sheet.iter_rows())
    filled = {number: row for number, row in enumerate(cells, 1) if _any_filled(row)}
    if not filled:
        raise InvalidInput("file", f"{where} is empty: expected a row of column names, and rows.")
    if header_row is not None and header_row not in filled:
        raise InvalidInput("header_row", f"{where} has no column names in row {header_row}.")
    top = header_row or _row_of_names(filled)
    above = tuple(
        _text(next(cell for cell in row if cell is not None)).strip()
        for number, row in filled.items()
        if number < top
    )
    rows = [row for number, row in filled.items() if number > top]
    kept = [at for at, cells in enumerate(zip(filled[top], *rows, strict=True)) if _any_filled(cells)]
    first = sheet.start[1] if sheet.start else 0
    letters = [xl_col_to_name(first + at) for at in kept]
    titles = _titles([filled[top][at] for at in kept], [f"{each}{top}" for each in letters], where)
    columns = [[row[at] for row in rows] for at in kept]
    if len(rows) > 1:
        require_no_total([rows[-1][at] for at in kept], f"{where}, row {max(filled):,}")
    skipped = tuple(number for number in range(top + 1, max(filled)) if number not in filled)
    shown = _formats(path, name, top)
    formats = {title: shown[each] for title, each in zip(titles, letters, strict=True) if each in shown}
    origin = Origin("excel", name, names, header=top, above=above, skipped=skipped, formats=formats)
    typed = [_typed(cells) for cells in columns]
    kinds = {title: kind for title, (kind, _) in zip(titles, typed, strict=True)}
    return Sheet(kinds, list(zip(*(cells for _, cells in typed), strict=True)), origin)


def _plain(cell: object) -> object:
    if isinstance(cell, str):
        return cell if cell.strip() else None
    return str(cell) if isinstance(cell, datetime.timedelta) else cell


def _any_filled(cells: Iterable[object]) -> bool:
    """Whether there is something in one of these cells."""
    return any(cell is not None for cell in cells)


def _row_of_names(filled: Mapping[int, Sequence[object]]) -> int:
    """The first row, or the one below titles: what stands alone in its row above a name for every column."""
    start = {number: [cell for cell in row if cell is not None] for number, row in filled.items()}
    first = next(iter(filled))
    names = next((number for number in list(start)[: MOST_TITLES + 1] if len(start[number]) > 1), first)
    width = max(at + 1 for row in filled.values() for at, cell in enumerate(row) if cell is not None)
    named = all(isinstance(name, str) and not NUMBER.match(name) for name in filled[names][:width])
    return names if named else first


def _titles(cells: Sequence[object], addresses: Sequence[str], where: str) -> list[str]:
    """The names of the columns: one for each that holds something, none twice."""
    seen: dict[str, str] = {}
    for cell, address in zip(cells, addresses, strict=True):
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
                f"the column name {name!r} appears twice, in {seen[name.lower()]} and {address}. Give each "
                "column its own name.",
            )
        seen[name.lower()] = address
    return [_text(cell).strip() for cell in cells]


def _text(cell: object, mark: str | None = ".") -> str:
    """A cell as people see it: whole numbers without a point, dates as in ISO 8601; without a mark too."""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, datetime.datetime):
        return cell.isoformat(sep=" ")
    if not isinstance(cell, float):
        return str(cell)
    if cell.is_integer():
        return str(int(cell)) if abs(cell) < 1e15 else repr(cell)
    if mark is not None:
        return repr(cell).replace(".", mark)
    _, digits, exponent = Decimal(repr(cell)).as_tuple()
    return f"{'-' if cell < 0 else ''}{''.join(map(str, digits))}e{exponent}"


def _typed(cells: Sequence[object]) -> tuple[str, Sequence[object]]:
    """The type of a column as SQL, what all its cells are, else text; and its cells as such."""
    kinds = {type(cell) for cell in cells if cell is not None}
    if kinds == {float}:
        whole = all(each.is_integer() and abs(each) < 1 << 53 for each in cells if isinstance(each, float))
        return "BIGINT" if whole else "DOUBLE", cells
    for kind, name in _SQL.items():
        if kinds == {kind}:
            return name, cells
    if kinds == {datetime.date, datetime.datetime}:
        return "TIMESTAMP", cells
    mark: str | None = "."
    if {float, str} <= kinds:  # a number of Excel's is one, and changes nothing about how "0,84" is read
        try:
            mark = decide(shapes_of(cells)).style.decimal
        except Ambiguous:
            mark = None
    return "VARCHAR", [None if cell is None else _text(cell, mark) for cell in cells]


_SQL: dict[type, str] = {
    int: "BIGINT",
    bool: "BOOLEAN",
    datetime.date: "DATE",
    datetime.datetime: "TIMESTAMP",
}


def _formats(path: str | Path, sheet: str, header: int) -> dict[str, str]:
    """Percent and currencies, by the letters of a column, as the first number below the names has them."""
    from xml.etree.ElementTree import ParseError

    if not zipfile.is_zipfile(path):  # an old workbook, in which this cannot be seen
        return {}
    with zipfile.ZipFile(path) as file:
        if not {_SHEETS, _LINKS, _STYLES} <= {*file.namelist()}:
            return {}
        try:
            part, styles = _part(file, sheet), _styles(file)
        except ParseError as error:
            raise InvalidInput("file", f"{path} is damaged: sheet {sheet!r} is no XML ({error}).") from error
        if part is None:
            return {}
        with file.open(part) as stream:
            start = stream.read(_PIECE).decode(errors="replace")
    formats: dict[str, str | None] = {}
    for cell in _ANY_CELL.finditer(start):
        given = dict(_ATTRIBUTE.findall(cell[1]))
        place = re.fullmatch("([A-Z]+)([0-9]+)", given.get("r", ""))
        if place is not None and int(place[2]) > header and given.get("t", "n") == "n":
            formats.setdefault(place[1], styles.get(given.get("s", "0")))
    return {letters: code for letters, code in formats.items() if code is not None}


def _styles(file: zipfile.ZipFile) -> dict[str, str | None]:
    """The format of numbers of each style of cells."""
    codes = {each.get("numFmtId"): each.get("formatCode", "") for each in _all(file, _STYLES, "numFmt")}
    known = {number: code for number, code in codes.items() if _KEPT.search(code)} | _BUILT_IN
    listed = next(iter(_all(file, _STYLES, "cellXfs")), ())
    return {str(at): known.get(each.get("numFmtId")) for at, each in enumerate(listed)}


def _part(file: zipfile.ZipFile, sheet: str) -> str | None:
    """Where in the file a sheet lies."""
    sheets = [each for each in _all(file, _SHEETS, "sheet") if each.get("name") == sheet]
    links = {value for each in sheets for name, value in each.attrib.items() if _bare(name) == "id"}
    for each in _all(file, _LINKS, "Relationship"):
        if each.get("Id") in links:
            part = posixpath.normpath(posixpath.join("/xl", each.get("Target", "")))[1:]
            return part if part in file.namelist() else None
    return None


def _all(file: zipfile.ZipFile, part: str, tag: str) -> list[Element]:
    from xml.etree.ElementTree import fromstring

    return [each for each in fromstring(file.read(part)).iter() if _bare(each.tag) == tag]


def _bare(name: str) -> str:
    return re.split("[}:]", name)[-1]
