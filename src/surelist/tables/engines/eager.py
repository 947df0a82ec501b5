"""pandas, pyarrow and polars DataFrames: in memory, asked where they are."""

from __future__ import annotations

from typing import Any

import narwhals as nw
import numpy as np

from surelist.filters import ranks_within
from surelist.tables.engines.base import Engine, Frame, is_missing, plain, tie_digits, unpacked


class Eager(Engine):
    """pandas, pyarrow and polars DataFrames."""

    name = "eager"
    lazy = False

    def rows(self, frame: Frame) -> list[tuple[Any, ...]]:
        return [plain(row) for row in frame.rows()]

    def with_hashes(self, frame: Frame, column: str, key: str) -> Frame:
        texts = frame[column].to_list()
        digits = [None if is_missing(each) else tie_digits(key, each) for each in texts]
        new = nw.new_series(column, digits, nw.String, backend=frame.implementation)
        if frame.implementation.is_pandas():
            new = nw.maybe_set_index(new, index=nw.maybe_get_index(frame))
        return frame.with_columns(new)

    def with_ranks(self, frame: Frame, column: str, within: str) -> Frame:
        """pyarrow has no windows."""
        if not frame.implementation.is_pyarrow():
            return super().with_ranks(frame, column, within)
        values = frame[column].to_numpy().astype(np.float64)
        pools = np.unique(np.asarray(frame[within].to_list()), return_inverse=True)[1]
        ranks = ranks_within(values, pools.astype(np.int64))
        return frame.with_columns(nw.new_series(column, ranks, nw.Float64, backend=frame.implementation))

    def write(self, frame: Frame, output: str, form: str, delimiter: str) -> None:
        native, kind = frame.to_native(), frame.implementation
        with unpacked(output) as target:
            if form == "json":
                _write_lines(frame, target)
            elif form == "parquet":  # an index of pandas is left out
                native.to_parquet(target, index=False) if kind.is_pandas() else frame.write_parquet(target)
            elif kind.is_polars():
                native.write_csv(target, separator=delimiter)
            elif kind.is_pandas():
                native.to_csv(target, sep=delimiter, index=False)
            else:
                from pyarrow import csv

                options = csv.WriteOptions(delimiter=delimiter, quoting_style="needed")
                csv.write_csv(native, target, options)


def _write_lines(frame: Frame, path: str) -> None:
    """One JSON object per row; pandas would round numbers and pyarrow has no writer."""
    import msgspec

    names, encode = frame.columns, msgspec.json.Encoder().encode
    with open(path, "wb") as file:
        for row in frame.iter_rows():
            file.write(encode(dict(zip(names, plain(row), strict=True))) + b"\n")
