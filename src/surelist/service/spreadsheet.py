"""CSV that is safe to open in a spreadsheet: cells that would run as formulas are escaped.

On request only: Parquet and the API's CSV stay exact. The file keeps its separator.
"""

from __future__ import annotations

import csv
from pathlib import Path

from surelist.workflows.downloads import escape_cell

__all__ = ["escape_cell", "escape_file"]


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
