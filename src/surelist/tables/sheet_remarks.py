"""What a workbook holds that its reader passes over: cells with errors, hidden rows and columns, formats.

The reader gives an error such as #DIV/0! as an empty cell, and 84 % as 0.84. Here they are looked for in the
XML of the one sheet that is read.
"""

from __future__ import annotations

import posixpath
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING

from msgspec import Struct, field

from surelist.errors import InvalidInput

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

SHOWN = 20
_PIECE = 1 << 20
_CANDIDATES = re.compile(
    rb"""\bt\s*=\s*["']e["']|\bhidden\s*=\s*["'](?:1|true)["']|["']error["']|["'](?:collapse|filter)["']"""
)
_SHEETS, _LINKS, _STYLES = "xl/workbook.xml", "xl/_rels/workbook.xml.rels", "xl/styles.xml"
_CELL = re.compile(r"<(?:\w+:)?c\s([^>]*)>")
_ATTRIBUTE = re.compile(r"""(\w+)\s*=\s*["']([^"']*)["']""")
_KEPT = re.compile(r"%|[$€£¥₹]")  # percent and currencies
_BUILT_IN = {each: each for each in ("5", "6", "7", "8", "9", "10", "42", "44")}


def letters_of(column: int) -> str:
    """The name of a column by its number from 0."""
    text, column = "", column + 1
    while column:
        column, rest = divmod(column - 1, 26)
        text = chr(65 + rest) + text
    return text


class Remarks(Struct):
    """How many cells hold errors, the first as ``B4: #DIV/0!``; how many rows with content are hidden.

    ``columns`` are ranges of hidden ones, from 0; ``formats`` of numbers go by the letters of a column.
    """

    errors: int = 0
    shown: list[str] = field(default_factory=list)
    hidden: int = 0
    columns: list[range] = field(default_factory=list)
    formats: dict[str, str] = field(default_factory=dict)

    def hides(self, column: int) -> bool:
        """Whether a column is hidden."""
        return any(column in each for each in self.columns)

    def add_error(self, address: str, text: str) -> None:
        self.errors += 1
        if len(self.shown) < SHOWN:
            self.shown.append(f"{address}: {text.strip() or 'an error'}")


def remarks_on(path: str | Path, sheet: str, header: int) -> Remarks | None:
    """What there is to say about one sheet; None of an old workbook, in which this cannot be seen."""
    from xml.etree.ElementTree import ParseError

    if not zipfile.is_zipfile(path):
        return None
    remarks = Remarks()
    with zipfile.ZipFile(path) as file:
        opened = "content.xml" in file.namelist()
        part = "content.xml" if opened else _part(file, sheet)
        if part is None:
            return remarks
        try:
            if not opened:
                remarks.formats = _formats(file, part, header)
            if _is_worth_reading(file, part):
                with file.open(part) as stream:
                    _open_document(stream, remarks, sheet) if opened else _excel(stream, remarks)
        except ParseError as error:
            raise InvalidInput("file", f"{path} is damaged: sheet {sheet!r} is no XML ({error}).") from error
    return remarks


def _part(file: zipfile.ZipFile, sheet: str) -> str | None:
    """Where in the file a sheet lies."""
    if _SHEETS not in file.namelist() or _LINKS not in file.namelist():
        return None
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


def _formats(file: zipfile.ZipFile, part: str, header: int) -> dict[str, str]:
    """Percent and currencies, by column, as the first number below the names has them."""
    if _STYLES not in file.namelist():
        return {}
    codes = {each.get("numFmtId"): each.get("formatCode", "") for each in _all(file, _STYLES, "numFmt")}
    known = {number: code for number, code in codes.items() if _KEPT.search(code)} | _BUILT_IN
    listed = next(iter(_all(file, _STYLES, "cellXfs")), ())
    styles = {str(at): known.get(each.get("numFmtId")) for at, each in enumerate(listed)}
    with file.open(part) as stream:
        start = stream.read(_PIECE).decode(errors="replace")
    formats: dict[str, str | None] = {}
    for cell in _CELL.finditer(start):
        given = dict(_ATTRIBUTE.findall(cell[1]))
        place = re.fullmatch("([A-Z]+)([0-9]+)", given.get("r", ""))
        if place is not None and int(place[2]) > header and given.get("t", "n") == "n":
            formats.setdefault(place[1], styles.get(given.get("s", "0")))
    return {letters: code for letters, code in formats.items() if code is not None}


def _is_worth_reading(file: zipfile.ZipFile, part: str) -> bool:
    """Most sheets have neither; to see that is much faster than to read them."""
    before = b""
    with file.open(part) as stream:
        while piece := stream.read(_PIECE):
            if _CANDIDATES.search(before + piece):
                return True
            before = piece[-32:]
    return False


def _nodes(stream: IO[bytes]) -> Iterator[tuple[str, str, Element, dict[str, str]]]:
    """Events with the bare names of element and attributes; a row is forgotten when it was looked at."""
    from xml.etree.ElementTree import iterparse

    for event, node in iterparse(stream, ("start", "end")):
        tag = _bare(node.tag)
        yield event, tag, node, {_bare(name): value for name, value in node.attrib.items()}
        if event == "end" and tag in ("row", "table-row"):
            node.clear()


def _excel(stream: IO[bytes], remarks: Remarks) -> None:
    """``<col min="2" max="3" hidden="1">``, ``<row hidden="1">``, ``<c r="B4" t="e"><v>#DIV/0!</v></c>``."""
    for event, tag, node, given in _nodes(stream):
        hidden = given.get("hidden") in ("1", "true")
        if event == "end" and tag == "col" and hidden:
            remarks.columns.append(range(int(given["min"]) - 1, int(given["max"])))
        elif event == "end" and tag == "row":
            remarks.hidden += hidden and any(_bare(each.tag) in ("v", "is") for each in node.iter())
            for cell in node:
                if cell.get("t") == "e":
                    text = "".join(each.text or "" for each in cell if _bare(each.tag) == "v")
                    remarks.add_error(cell.get("r", "?"), text)


def _open_document(stream: IO[bytes], remarks: Remarks, sheet: str) -> None:
    """``<table-row visibility="collapse">``, columns likewise, cells of the type ``error``; in one table."""
    inside, row, columns = False, 0, 0
    for event, tag, node, given in _nodes(stream):
        hidden = given.get("visibility") in ("collapse", "filter")
        if tag == "table":
            inside = event == "start" and given.get("name") == sheet
        elif inside and event == "end" and tag == "table-column":
            end = columns + int(given.get("number-columns-repeated", "1"))
            remarks.columns += [range(columns, end)] if hidden else []
            columns = end
        elif inside and event == "end" and tag == "table-row":
            times = int(given.get("number-rows-repeated", "1"))
            filled, at = False, 0
            for cell in node:
                about = {_bare(name): value for name, value in cell.attrib.items()}
                kinds = [value for name, value in cell.attrib.items() if _bare(name) == "value-type"]
                wide = int(about.get("number-columns-repeated", "1"))
                filled = filled or bool(kinds)
                for each in range(min(wide, SHOWN) if "error" in kinds else 0):
                    remarks.add_error(f"{letters_of(at + each)}{row + 1}", "".join(cell.itertext()))
                at += wide
            remarks.hidden += times if hidden and filled else 0
            row += times
