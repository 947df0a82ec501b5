"""Tables written for people: CSV as the input was written, and Excel workbooks with their types.

In a workbook a text is a text, whatever it begins with: no cell of ours is ever a formula.
"""

from __future__ import annotations

import csv
import datetime
import errno
import io
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import narwhals as nw

from surelist._files import refuse_inputs, writing
from surelist.errors import InvalidInput, MissingDependency, SurelistError
from surelist.filters import ACCEPT, LOOK, REJECT, TRIAGE
from surelist.tables.csv_text import delimiter_of
from surelist.tables.engines import Beside, Frame, is_remote
from surelist.tables.hints import Origin
from surelist.tables.numbers import Ambiguous, NumberStyle, decide, shapes_of
from surelist.tables.paths import FORMATS, file_format
from surelist.tables.roles import ID, ROW, find_columns
from surelist.tables.sources import Table

if TYPE_CHECKING:
    from xlsxwriter.format import Format
    from xlsxwriter.worksheet import Worksheet

Row = tuple[Any, ...]
Styles = Mapping[str, NumberStyle]
NO_STYLES: Styles = {}
NO_FORMATS: Mapping[str, str] = {}
MOST_ROWS = 1_048_575  # of a sheet, below the header
LONGEST_TEXT = 32_767  # characters in a cell
EXACT = 10**15  # Excel keeps fifteen digits
STARTERS = ("=", "+", "-", "@", "\t", "\r", "\n")  # what spreadsheets take for formulas
OUTPUTS = (*(ending for ending, form in FORMATS.items() if form != "excel"), ".xlsx")


def output_format(path: str | os.PathLike[str]) -> str:
    """``csv``, ``parquet`` or ``excel``, by extension, where we write such files."""
    if not os.fspath(path).lower().endswith(OUTPUTS):
        name = Path(path).name
        raise InvalidInput("output", expected=f"a name ending in {', '.join(OUTPUTS)}", got=repr(name))
    return file_format(path)


def write_like(
    table: Table, frame: Frame, output: str, styles: Styles | None = None, beside: Beside | None = None
) -> None:
    """Write rows of a table, in the table's manner.

    ``styles`` says how columns write numbers where that was decided before; ``beside`` what the same pass
    answers too.
    """
    form = output_format(output)
    delimiter = delimiter_of(output, table.origin.delimiter)
    with table.reading():
        if form == "excel":
            names = frame.collect_schema().names()
            rows = table.engine.rows(frame.head(MOST_ROWS + 1))
            shown = table.origin.formats
            write_workbook(output, names, rows, texts=table.text, styles=styles or {}, formats=shown)
            return
        with _to_a_store(table, output):
            if beside is None:
                table.engine.write(frame, output, form, delimiter)
            else:
                table.engine.write_beside(frame, output, form, delimiter, beside)
    if form == "csv" and os.path.isfile(output) and not output.lower().endswith(".gz"):
        _as_it_was(Path(output), table.origin)


@contextmanager
def _to_a_store(table: Table, output: str) -> Iterator[None]:
    """What goes wrong at an address, or with a full disk, is no fault of the table."""
    try:
        yield
    except Exception as error:
        if (full := os.strerror(errno.ENOSPC)) in str(error):
            raise OSError(errno.ENOSPC, full, output) from error
        ours = isinstance(error, SurelistError) or table.engine.was_interrupted(error)
        if ours or not is_remote(output):
            raise
        first = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise InvalidInput("output", f"cannot write {output}: {first}") from error


def _as_it_was(path: Path, origin: Origin) -> None:
    """From UTF-8 with plain line ends to those of the input; what it has no sign for stays readable."""
    encoding = "utf-16" if origin.encoding.startswith("utf-16") else origin.encoding
    if encoding == "utf-8" and not (origin.marked or origin.crlf):
        return
    encoding = "utf-8-sig" if origin.marked else encoding
    with (
        writing(path) as temporary,
        path.open(encoding="utf-8", newline="") as source,
        open(temporary, "w", encoding=encoding, errors="replace", newline="") as out,
    ):
        quoted = False
        for piece in iter(lambda: source.read(1 << 20), ""):
            for number, part in enumerate(piece.split('"')):
                if number:
                    out.write('"')
                    quoted = not quoted
                out.write(part.replace("\n", "\r\n") if origin.crlf and not quoted else part)


def write_workbook(
    output: str | os.PathLike[str],
    names: Sequence[str],
    rows: Sequence[Sequence[object]],
    *,
    texts: bool = False,
    styles: Styles = NO_STYLES,
    sheet: str = "shortlist",
    formats: Mapping[str, str] = NO_FORMATS,
) -> None:
    """One sheet with a header; ``texts``: columns of nothing but numbers in text become numbers.

    ``formats`` says how columns show their numbers.
    """
    try:
        import xlsxwriter
    except ImportError as error:
        raise MissingDependency('Excel files need xlsxwriter: pip install "surelist[excel]".') from error
    _require_fits(names, rows)
    columns = [[row[at] for row in rows] for at in range(len(names))]
    columns = [
        _numbers(each, styles.get(name)) if texts or name in styles else each
        for name, each in zip(names, columns, strict=True)
    ]
    with writing(Path(output)) as temporary:
        whole = io.BytesIO()  # a full disk is met by us alone
        book = xlsxwriter.Workbook(whole, {"strings_to_formulas": False, "strings_to_urls": False})
        shown = {
            "head": book.add_format({"bold": True, "bottom": 1}),
            "date": book.add_format({"num_format": "yyyy-mm-dd"}),
            "time": book.add_format({"num_format": "yyyy-mm-dd hh:mm:ss"}),
        }
        page = book.add_worksheet(sheet)
        for at, (name, cells) in enumerate(zip(names, columns, strict=True)):
            page.write_string(0, at, name, shown["head"])
            code = formats.get(name)
            number = code and book.add_format({"num_format": int(code) if code.isdigit() else code})
            for line, cell in enumerate(cells, 1):
                _write_cell(page, line, at, cell, {**shown, "number": number})
            page.set_column(at, at, _width(name, cells))
        page.freeze_panes(1, 0)
        if names:
            page.autofilter(0, 0, max(1, len(rows)), len(names) - 1)
        book.close()
        temporary.write_bytes(whole.getbuffer())


def _write_cell(
    sheet: Worksheet, line: int, at: int, cell: object, formats: Mapping[str, Format | None]
) -> None:
    if cell is None:
        return
    if isinstance(cell, bool):
        sheet.write_boolean(line, at, cell)
    elif isinstance(cell, (int, float)) and abs(cell) < EXACT:
        sheet.write_number(line, at, cell, formats["number"])
    elif isinstance(cell, datetime.datetime) and cell.tzinfo is None and cell.year >= 1900:
        sheet.write_datetime(line, at, cell, formats["time"])
    elif isinstance(cell, datetime.date) and not isinstance(cell, datetime.datetime) and cell.year >= 1900:
        sheet.write_datetime(line, at, cell, formats["date"])
    elif str(cell):
        sheet.write_string(line, at, str(cell))


def _require_fits(names: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    if len(rows) > MOST_ROWS:
        raise InvalidInput("output", f"a sheet holds {MOST_ROWS:,} rows; write .csv or .parquet instead.")
    if len(names) > 16_384:
        raise InvalidInput(
            "output", f"a sheet holds 16,384 columns, got {len(names):,}; write .csv or .parquet."
        )
    for number, row in enumerate(rows, 2):
        for name, cell in zip(names, row, strict=True):
            if isinstance(cell, str) and len(cell) > LONGEST_TEXT:
                raise InvalidInput(
                    "output",
                    f"a cell of Excel holds {LONGEST_TEXT:,} characters; column {name!r} has {len(cell):,} "
                    f"in row {number:,} of the list. Write .csv or .parquet instead.",
                )


def _numbers(cells: list[object], style: NumberStyle | None) -> list[object]:
    """A text column as numbers, where every cell is one and none would lose anything, as 007 would."""
    if style is None:
        try:
            made = decide(shapes_of(cells))
        except Ambiguous:
            return cells
        kept = all(_keeps(each) for each in cells if isinstance(each, str))
        if made.others or not made.numbers or not kept:
            return cells
        style = made.style
    return [_as_number(cell, style) if isinstance(cell, str) else cell for cell in cells]


def _as_number(text: str, style: NumberStyle) -> float | str | None:
    if not text.strip():
        return None
    value = style.value(text)
    return text if value is None else value


def _keeps(text: str) -> bool:
    """Whether a number stays what it was: no leading zeros, and few enough digits."""
    digits = text.strip(" +-")
    zeros = len(digits) > 1 and digits[0] == "0" and digits[1].isdigit()
    return not zeros and sum(each.isdigit() for each in digits) <= 15 and not text.strip().startswith("+")


def _width(name: str, cells: Sequence[object]) -> float:
    longest = max((len(str(cell)) for cell in cells[:200] if cell is not None), default=0)
    return min(60, max(8, len(name) + 3, longest + 2))


def escape_cell(text: str) -> str:
    """A leading apostrophe makes a spreadsheet show the cell as text; plain numbers stay numbers."""
    if not text.startswith(STARTERS):
        return text
    return text if text[0] in "+-" and _is_number(text) else "'" + text


def _is_number(text: str) -> bool:
    """Also with the decimal comma of half the world's spreadsheets."""
    try:
        float(text.replace(",", ".", 1))
    except ValueError:
        return False
    return "_" not in text  # Python reads 1_000, spreadsheets do not


def meant_by(names: Collection[str]) -> Callable[[str], str | None]:
    """Whose name a cell is that came back from a spreadsheet: these drop zeros in front, and keep apostrophes
    of ours."""
    exact = {escape_cell(name): name for name in names} | {name: name for name in names}
    numbers: dict[float, str | None] = {}
    for name in names:
        if (value := _short_number(name)) is not None:
            numbers[value] = None if value in numbers else name

    def meant(text: str) -> str | None:
        value = _short_number(text)
        return exact.get(text) or exact.get(text.strip()) or (None if value is None else numbers.get(value))

    return meant


def _short_number(text: str) -> float | None:
    """A number of so few digits that no two are alike as floats."""
    return float(text.replace(",", ".", 1)) if len(text) <= 15 and _is_number(text) else None


def rows_at(table: Table, rows: Sequence[int], columns: Sequence[str] | None = None) -> list[Row]:
    """The rows with these numbers (from 0), with all their columns or those named, in the order asked for."""
    if not rows:
        return []
    if not table.engine.ordered:
        raise InvalidInput(
            table.name,
            "has no row order, which drawing rows needs. Name the Parquet files instead, read with "
            "another engine.",
        )
    found = _by_key(table, table.engine.numbered(table.frame, ROW), ROW, rows, columns)
    gone = next((row for row in rows if row not in found), None)
    if gone is not None:
        raise InvalidInput(table.name, f"row {gone + 1:,} is not there any more; the table has changed.")
    return [found[row][0] for row in rows]


def rows_with_ids(
    table: Table, column: str, ids: Sequence[str], columns: Sequence[str] | None = None
) -> list[Row]:
    """The rows of these candidates, with all their columns or those named, in the order asked for."""
    column = table.engine.column(column)
    named = table.frame.with_columns(nw.col(column).cast(nw.String).alias(ID))
    found = _by_key(table, named, ID, ids, columns) if ids else {}
    for name in ids:
        if len(found.get(name, ())) > 1:
            raise InvalidInput(f"column {column!r}", expected="unique candidate ids", got=f"{name!r} twice")
        if name not in found:
            raise InvalidInput(
                table.name, f"candidate {name!r} is not there any more; the table has changed."
            )
    return [found[name][0] for name in ids]


def _by_key(
    table: Table, frame: Frame, key: str, wanted: Sequence[object], columns: Sequence[str] | None
) -> dict[Any, list[Row]]:
    kept = frame.filter(nw.col(key).is_in(list(wanted))).select(key, *(columns or table.columns))
    found: dict[Any, list[Row]] = {}
    for first, *rest in table.rows(kept, "fetching the drawn rows"):
        found.setdefault(first, []).append(tuple(rest))
    return found


def write_sheet(
    output: str | os.PathLike[str],
    header: Sequence[str],
    rows: Sequence[Sequence[object]],
    inputs: Sequence[str],
) -> None:
    """A small sheet for a person to fill in, CSV or Excel, complete or not at all."""
    form = output_format(output)
    if form not in ("csv", "excel") or os.fspath(output).endswith(".gz"):
        raise InvalidInput(
            "output", expected="a name ending in .csv, .tsv or .xlsx", got=repr(os.fspath(output))
        )
    refuse_inputs(os.fspath(output), inputs)
    if form == "excel":
        write_workbook(output, header, rows)
        return
    with writing(Path(output)) as temporary, open(temporary, "w", newline="", encoding="utf-8") as file:
        sheet = csv.writer(file, delimiter=delimiter_of(os.fspath(output)))
        sheet.writerow(header)
        sheet.writerows([["" if value is None else value for value in row] for row in rows])


def refuse_columns(table: Table, *added: str, left_out: str = "") -> None:
    """Raise where the table has a column that is to be added; engines differ in whether case matters."""
    there = {name.lower(): name for name in table.columns}
    for name in added:
        if name in there:
            raise InvalidInput(f"column {there[name]!r}", f"the table has one already; rename it{left_out}.")


def write_listed(
    table: Table,
    output: str | os.PathLike[str],
    thresholds: Mapping[str | None, float],
    roles: Mapping[str, str | None],
    *,
    named: Sequence[int | str],
    without: Sequence[int | str],
    looks: Sequence[int | str] | None,
    accept: Callable[[int], None],
) -> None:
    """Everyone at or above their group's threshold and the rows ``named``, but for those ``without``: all
    columns, in the table's order. With ``looks``, rows to be looked at, it is everyone, and a column says
    which of three lists they are on.

    ``thresholds`` by group, None without groups; ``roles`` names the columns of score, group and id. Rows are
    known by number, or by id on an engine without an order of rows.
    """
    target = os.fspath(output)
    refuse_inputs(target, table.paths)
    columns = find_columns(table, **roles)
    kept, engine = nw.lit(False), table.engine
    for group, threshold in thresholds.items():
        listed, member = columns.usable & (columns.score >= threshold), columns.member(group)
        kept = kept | (listed if member is None else listed & member)
    frame = engine.numbered(columns.frame, ROW) if engine.ordered else columns.frame
    place = nw.col(ROW) if engine.ordered else columns.ident
    assert place is not None
    kept = kept | place.is_in(list(named)) if named else kept
    kept = kept & ~place.is_in(list(without)) if without else kept
    accept(table.count(frame.filter(kept), "counting the list"))
    names = list(table.columns)
    if looks is None:
        frame = frame.filter(kept)
    else:
        refuse_columns(table, TRIAGE)
        rest = nw.when(place.is_in(list(looks))).then(nw.lit(LOOK)).otherwise(nw.lit(REJECT))
        frame = frame.with_columns(nw.when(kept).then(nw.lit(ACCEPT)).otherwise(rest).alias(TRIAGE))
        names.append(TRIAGE)
    if engine.lazy and engine.ordered:
        frame = frame.sort(ROW)
    table.say("writing the list")
    write_like(table, frame.select(*names), target)
