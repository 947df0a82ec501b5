"""``Source``: a table that somebody named, and who is to read it."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from surelist import tables
from surelist._check import EngineName, OnBadRows
from surelist._files import refuse_inputs
from surelist.tables.sources import Table


@dataclass(frozen=True)
class Source:
    """A path or table, who reads it, what to do with bad rows, and the name a person knows it by."""

    table: Any
    engine: EngineName = "auto"
    spark_master: str | None = None
    on_bad_rows: OnBadRows = "error"
    progress: Callable[[str], None] | None = None
    name: str | None = None

    def open(self) -> Table:
        """The table, ready to be asked."""
        opened = tables.open_table(self.table, self.engine, self.spark_master, self.progress)
        return replace(opened, name=self.name) if self.name is not None else opened

    def refuse_as_output(self, output: str) -> None:
        """Raise where writing ``output`` would replace a file of this table."""
        if isinstance(self.table, (str, os.PathLike)):
            refuse_inputs(output, tables.files_of(self.table))
