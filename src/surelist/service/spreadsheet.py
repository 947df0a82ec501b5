"""CSV that is safe to open in a spreadsheet: cells that would run as formulas are escaped.

On request only: Parquet and the API's CSV stay exact. The file keeps its separator.
"""

from __future__ import annotations

import csv
from pathlib import Path

STARTERS = ("=", "+", "-", "@", "\t", "\r", "\n")


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


def escape_file(path: Path, separator: str) -> Path:
    """The same table with escaped cells, in place; a byte-order mark tells Excel it is UTF-8."""
    csv.field_size_limit(1 << 30)  # a cell may be as large as an upload
    escaped = path.with_name(f"safe-{path.name}")
    with (
        path.open(newline="", encoding="utf-8-sig") as source,
        escaped.open("w", newline="", encoding="utf-8-sig") as out,
    ):
        rows = csv.reader(source, delimiter=separator)
        writer = csv.writer(out, delimiter=separator)
        writer.writerows([escape_cell(cell) for cell in row] for row in rows)
    path.unlink()
    return escaped
