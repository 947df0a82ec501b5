"""What a workbook holds that its reader passes over: cells with errors, rows and columns that are hidden.

The reader gives an error such as #DIV/0! as an empty cell. Here it is looked for in the XML of the one
sheet that is read; nothing else of the sheet is read here.
"""

from __future__ import annotations

import posixpath
import re
import zipfile
from collections.abc import Iterator
from dataclasses import field
from pathlib import Path
from typing import Any, Protocol

from surelist._dataclasses import dataclass
from surelist.errors import InvalidInput

SHOWN = 20
_PIECE = 1 << 20
_CANDIDATES = re.compile(
    rb"""\bt\s*=\s*["']e["']|\bhidden\s*=\s*["'](?:1|true)["']|["']error["']|["'](?:collapse|filter)["']"""
)
_SHEETS, _LINKS = "xl/workbook.xml", "xl/_rels/workbook.xml.rels"


@dataclass
class Remarks:
    """How many cells hold errors, the first as ``B4: #DIV/0!``; how many rows with content are hidden.

    ``columns`` are ranges of hidden ones, from 0.
    """

    errors: int = 0
    shown: list[str] = field(default_factory=list)
    hidden: int = 0
    columns: list[range] = field(default_factory=list)

    def hides(self, column: int) -> bool:
        """Whether a column is hidden."""
        return any(column in each for each in self.columns)

    def add_error(self, address: str, text: str) -> None:
        self.errors += 1
        if len(self.shown) < SHOWN:
            self.shown.append(f"{address}: {text.strip() or 'an error'}")


def remarks_on(path: str | Path, sheet: str, letters: Any) -> Remarks | None:
    """What there is to say about one sheet; None of an old workbook, in which this cannot be seen.

    ``letters`` gives the name of a column by its number from 0.
    """
    from xml.parsers.expat import ExpatError

    if not zipfile.is_zipfile(path):
        return None
    with zipfile.ZipFile(path) as file:
        opened = "content.xml" in file.namelist()
        part = "content.xml" if opened else _part(file, sheet)
        if part is None or not _is_worth_reading(file, part):
            return Remarks()
        reader: _Handlers = _OpenDocument(sheet, letters) if opened else _Excel()
        try:
            _read(file, part, reader)
        except ExpatError as error:
            raise InvalidInput(f"file: {path} is damaged: sheet {sheet!r} is no XML ({error}).") from error
        return reader.remarks


def _part(file: zipfile.ZipFile, sheet: str) -> str | None:
    """Where in the file a sheet lies."""
    from xml.etree import ElementTree

    if _SHEETS not in file.namelist() or _LINKS not in file.namelist():
        return None
    link = next(
        (
            value
            for each in ElementTree.fromstring(file.read(_SHEETS)).iter()
            if _bare(each.tag) == "sheet" and each.get("name") == sheet
            for name, value in each.attrib.items()
            if _bare(name) == "id"
        ),
        None,
    )
    for each in ElementTree.fromstring(file.read(_LINKS)).iter():
        if each.get("Id") == link and link is not None:
            part = posixpath.normpath(posixpath.join("/xl", each.get("Target", "")))[1:]
            return part if part in file.namelist() else None
    return None


def _bare(name: str) -> str:
    return re.split("[}:]", name)[-1]


def _pieces(file: zipfile.ZipFile, part: str) -> Iterator[bytes]:
    with file.open(part) as stream:
        while piece := stream.read(_PIECE):
            yield piece


def _is_worth_reading(file: zipfile.ZipFile, part: str) -> bool:
    """Most sheets have neither; to see that is much faster than to read them."""
    before = b""
    for piece in _pieces(file, part):
        if _CANDIDATES.search(before + piece):
            return True
        before = piece[-32:]
    return False


class _Handlers(Protocol):
    remarks: Remarks

    def start(self, name: str, attributes: dict[str, str]) -> None: ...
    def end(self, name: str) -> None: ...
    def text(self, data: str) -> None: ...


def _read(file: zipfile.ZipFile, part: str, handlers: _Handlers) -> None:
    from xml.parsers.expat import ParserCreate

    parser = ParserCreate()
    parser.StartElementHandler = handlers.start
    parser.EndElementHandler = handlers.end
    parser.CharacterDataHandler = handlers.text
    for piece in _pieces(file, part):
        parser.Parse(piece)
    parser.Parse(b"", True)


class _Excel:
    """``<col min="2" max="3" hidden="1">``, ``<row hidden="1">``, ``<c r="B4" t="e"><v>#DIV/0!</v></c>``."""

    def __init__(self) -> None:
        self.remarks = Remarks()
        self._hidden = self._filled = self._value = False
        self._cell: str | None = None
        self._text = ""

    def start(self, name: str, attributes: dict[str, str]) -> None:
        name = _bare(name)
        if name == "col" and attributes.get("hidden") in ("1", "true"):
            self.remarks.columns.append(range(int(attributes["min"]) - 1, int(attributes["max"])))
        elif name == "row":
            self._hidden, self._filled = attributes.get("hidden") in ("1", "true"), False
        elif name == "c":
            self._cell = attributes.get("r", "?") if attributes.get("t") == "e" else None
            self._text = ""
        elif name in ("v", "is"):
            self._filled, self._value = True, name == "v"

    def end(self, name: str) -> None:
        name = _bare(name)
        if name == "row":
            self.remarks.hidden += self._hidden and self._filled
        elif name == "c" and self._cell is not None:
            self.remarks.add_error(self._cell, self._text)
            self._cell = None
        elif name == "v":
            self._value = False

    def text(self, data: str) -> None:
        if self._value and self._cell is not None:
            self._text += data


class _OpenDocument:
    """``<table-row visibility="collapse">``, columns likewise, cells of the type ``error``; in one table."""

    def __init__(self, sheet: str, letters: Any) -> None:
        self.remarks = Remarks()
        self._sheet, self._letters, self._inside = sheet, letters, False
        self._row = self._column = self._columns = 0
        self._hidden = self._filled = self._error = False
        self._text = ""

    def start(self, name: str, attributes: dict[str, str]) -> None:
        name = _bare(name)
        given = {_bare(key): value for key, value in attributes.items()}
        if name == "table":
            self._inside = given.get("name") == self._sheet
        elif self._inside and name == "table-column":
            end = self._columns + int(given.get("number-columns-repeated", "1"))
            if given.get("visibility") in ("collapse", "filter"):
                self.remarks.columns.append(range(self._columns, end))
            self._columns = end
        elif self._inside and name == "table-row":
            self._row, self._column = self._row + 1, 0
            self._times = int(given.get("number-rows-repeated", "1"))
            self._hidden, self._filled = given.get("visibility") in ("collapse", "filter"), False
        elif self._inside and name in ("table-cell", "covered-table-cell"):
            self._error, self._text = "error" in attributes.get("calcext:value-type", ""), ""
            self._wide = int(given.get("number-columns-repeated", "1"))
            self._filled = self._filled or "value-type" in given

    def end(self, name: str) -> None:
        name = _bare(name)
        if name == "table":
            self._inside = False
        elif self._inside and name in ("table-cell", "covered-table-cell"):
            for at in range(min(self._wide, SHOWN) if self._error else 0):
                self.remarks.add_error(f"{self._letters(self._column + at)}{self._row}", self._text)
            self._column += self._wide
        elif self._inside and name == "table-row":
            self.remarks.hidden += self._times if self._hidden and self._filled else 0
            self._row += self._times - 1

    def text(self, data: str) -> None:
        if self._error:
            self._text += data
