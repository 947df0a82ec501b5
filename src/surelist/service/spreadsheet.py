"""CSV that is safe to open in a spreadsheet: cells that would run as formulas are escaped.

On request only: Parquet and the API's CSV stay exact.
"""

from __future__ import annotations

import csv
from pathlib import Path

STARTERS = ("=", "+", "-", "@", "\t", "\r")


def escape_cell(text: str) -> str:
    """A leading apostrophe makes a spreadsheet show the cell as text; plain numbers stay numbers."""
    if not text.startswith(STARTERS):
        return text
    try:
        float(text)
    except ValueError:
        return "'" + text
    return text if text[0] in "+-" else "'" + text


def escape_file(path: Path) -> Path:
    """The same table with escaped cells, in place; a byte-order mark tells Excel it is UTF-8."""
    csv.field_size_limit(1 << 30)  # a cell may be as large as an upload
    escaped = path.with_name(f"safe-{path.name}")
    with (
        path.open(newline="", encoding="utf-8") as source,
        escaped.open("w", newline="", encoding="utf-8-sig") as out,
    ):
        csv.writer(out).writerows([escape_cell(cell) for cell in row] for row in csv.reader(source))
    path.unlink()
    return escaped
