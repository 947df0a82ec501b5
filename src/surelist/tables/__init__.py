"""Any table in; exact counts, order statistics and lazy shortlists out. No statistics here.

``opening`` turns paths and DataFrames into one kind of table, ``columns`` finds scores, labels and
groups in it, ``census`` counts rows and problems, ``order`` finds exact order statistics by
counting passes, ``evidence`` hands both to calibration, ``selection`` filters pools. What one
engine does differently from another is in ``engines``, ``duck`` and ``spark``.
"""

from surelist.tables.arrays import read_columns, read_text
from surelist.tables.evidence import calibration_rows
from surelist.tables.shortlist import PoolCount, Selection, select_rows
from surelist.tables.sources import FORMATS, Table, file_format, open_table

__all__ = [
    "FORMATS",
    "PoolCount",
    "Selection",
    "Table",
    "calibration_rows",
    "file_format",
    "open_table",
    "read_columns",
    "read_text",
    "select_rows",
]
