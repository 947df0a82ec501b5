"""Tables come and go with every test; the database that they are read into stays."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import duckdb
import pytest

from surelist.tables import json_lines
from surelist.tables.engines import duckdb as engine


@pytest.fixture(autouse=True, scope="session")
def _one_database_for_all_tables() -> Iterator[None]:
    """To open one is 15 ms of work, and every table does; here each gets connections to the same, as its own would be.

    Processes that tests start open theirs, and so does who asks for other limits.
    """
    opened: dict[tuple[Any, ...], duckdb.DuckDBPyConnection] = {}
    open_one = engine.connect

    def connect() -> duckdb.DuckDBPyConnection:
        terms = os.getpid(), *engine._LIMITS.items()
        if terms not in opened:
            opened[terms] = open_one()
        return opened[terms].cursor()

    with pytest.MonkeyPatch.context() as patch:
        for module in (engine, json_lines):
            patch.setattr(module, "connect", connect)
        yield
    for (process, *_), database in opened.items():
        if process == os.getpid():
            database.close()
