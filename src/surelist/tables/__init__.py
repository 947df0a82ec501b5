"""Any table in; exact counts, order statistics and lazy shortlists out. No statistics here.

``sources`` turns paths and DataFrames into one kind of table, ``roles`` says which column is what,
``bad_rows`` counts rows and what is wrong with them, ``order_statistics`` finds exact order
statistics by counting passes, ``evidence`` hands all three to calibration, ``thresholds`` and
``shortlist`` apply filters to pools, ``pools`` fetches whole pools, ``arrays`` reads whole columns,
``profile`` looks a file over.
What one engine does differently from another is in ``engines``.
"""

from surelist.tables.arrays import read_columns, read_text
from surelist.tables.bad_rows import Problem
from surelist.tables.evidence import calibration_problems, calibration_rows
from surelist.tables.pools import pool_totals, pooled_rows
from surelist.tables.shortlist import PoolCount, Selection, select_rows
from surelist.tables.sources import FORMATS, Table, file_format, files_of, open_table

__all__ = [
    "FORMATS",
    "PoolCount",
    "Problem",
    "Selection",
    "Table",
    "calibration_problems",
    "calibration_rows",
    "file_format",
    "files_of",
    "open_table",
    "pool_totals",
    "pooled_rows",
    "read_columns",
    "read_text",
    "select_rows",
]
