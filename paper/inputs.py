"""What comes in, as arrays and numbers, and files that appear under their name only when complete."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

import surelist as sl

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


def as_scores(values: ArrayLike, name: str = "scores") -> Floats:
    """Finite numbers, one per candidate."""
    array = np.asarray(values)
    if array.ndim != 1 or array.dtype.kind not in "biuf":
        raise sl.InvalidInput(
            name, expected="a column of numbers", got=f"shape {array.shape}, type {array.dtype}"
        )
    wrong = np.flatnonzero(~np.isfinite(array))
    if len(wrong):
        raise sl.InvalidInput(
            name, expected="finite numbers", got=str(array[wrong[0]]), row=int(wrong[0]), in_all=len(wrong)
        )
    return array.astype(np.float64, copy=False)


def as_pools(values: ArrayLike, name: str = "scores") -> Floats:
    """Finite scores of one pool, or of several equally large ones as rows."""
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise sl.InvalidInput(name, "expected pools of one size, one per row.") from error
    if array.ndim not in (1, 2):
        raise sl.InvalidInput(
            name, expected="one pool, or one pool per row", got=f"an array of shape {array.shape}"
        )
    return as_scores(array.ravel(), name).reshape(array.shape)


def labelled_rows(scores: ArrayLike, labels: ArrayLike) -> tuple[Floats, Mask]:
    """Scores and who is qualified, one of each per row."""
    array, found = as_scores(scores), as_scores(labels, "labels")
    if not len(array):
        raise sl.InvalidInput("scores", "expected at least one row.")
    require_length(found, len(array), "labels")
    wrong = np.flatnonzero((found != 0) & (found != 1))
    if len(wrong):
        raise sl.InvalidInput("labels", expected="0 or 1", got=f"{found[wrong[0]]:g}", row=int(wrong[0]))
    return array, found == 1


def require_length(array: NDArray[np.generic], rows: int, name: str) -> None:
    """As many values as there are rows."""
    if len(array) != rows:
        raise sl.InvalidInput(name, expected=f"{rows:,} values, one per row", got=f"{len(array):,}")


def as_count(value: int, name: str) -> int:
    """A whole number of at least 1."""
    if value != int(value) or value < 1:
        raise sl.InvalidInput(name, expected="a whole number of at least 1", got=f"{value:g}")
    return int(value)


def as_positive(value: float, name: str) -> float:
    """A number above 0."""
    if not 0 < value < np.inf:
        raise sl.InvalidInput(name, expected="a number above 0", got=f"{value:g}")
    return float(value)


def as_alpha(value: float) -> float:
    """A number between 0 and 1."""
    if not 0 < value < 1:
        raise sl.InvalidInput("alpha", expected="a number between 0 and 1", got=f"{value:g}")
    return float(value)


def as_choice(value: str, choices: Iterable[str], name: str) -> str:
    """One of the choices."""
    if value not in choices:
        raise sl.InvalidInput(name, expected=f"one of {', '.join(choices)}", got=repr(value))
    return value


@contextmanager
def writing(path: Path) -> Iterator[Path]:
    """A temporary file that becomes ``path`` when the block ends well; else what was there stays."""
    part = path.with_name(f".{path.name}.part{path.suffix}")
    try:
        yield part
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
