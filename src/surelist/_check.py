"""The only place where raw input becomes arrays and numbers, and the wording of its errors.

One sentence pattern: what was expected, what was found, what to do. Columns of pandas,
polars and pyarrow come in through NumPy's own protocol; no dataframe library is imported.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping, Sized
from contextlib import suppress
from typing import Any, Literal, get_args

import numpy as np
from msgspec import Struct
from msgspec.structs import force_setattr

from surelist._arrays import Column, Floats, Ints, Mask
from surelist._names import option
from surelist._scalars import (
    EXACT_INTEGER,
    as_alpha as as_alpha,
    as_choice as as_choice,
    as_count as as_count,
    as_flag as as_flag,
    as_fraction as as_fraction,
    as_level as as_level,
    as_positive as as_positive,
    as_rate as as_rate,
    as_share as as_share,
    as_text as as_text,
    as_whole_k as as_whole_k,
    real as real,
    share_meant as share_meant,
    shown as shown,
)
from surelist.errors import InvalidInput

# choices that several packages offer
EVERYONE = "everyone"  # a target of this name, beside those of groups under one cutoff, is about all rows
MissingLabels = Literal["error", "unqualified"]
Dialect = Literal["duckdb", "postgres", "spark", "snowflake", "bigquery"]
OnBadRows = Literal["error", "drop"]
EngineName = Literal["auto", "duckdb", "polars", "spark"]
DecimalMark = Literal["auto", ".", ","]

# what to do about rows without a label
KEEP = option("missing_labels", "unqualified", before=", or ", after=" keeps them as not qualified")
KEEPING = f"get them{KEEP}"

_BLOCK, _COPIED = 1 << 19, 1 << 16  # rows at a time; fewer where they become float64
_LONG_NAME = 100
LOST = "integers beyond 2^53 lose their order as floats"
_DROPPED = "Dropping such rows would break the promise"
_NAMED = 'Map missing values to a name of their own, for example "unknown".'
_MISSING = ("NoneType", "NAType", "NaTType")
_TURN = "Turn words into 0 and 1, missing ones left missing"
_NO_WORDS = f"{_TURN}; calibrate_table takes them with {option('pos_label')}."


def as_scores(values: object, name: str = "scores", *, finite: bool = True) -> Floats:
    """A one-dimensional float64 array of numbers, checked to be ``finite``; no copy of float64 input."""
    return np.ascontiguousarray(as_numbers(values, name, finite=finite), dtype=np.float64)


def as_numbers(values: object, name: str = "scores", *, finite: bool = True) -> Column:
    """Numbers in the type they came in: to be compared with a number only once they are float64."""
    array = _numeric(values, name)
    if getattr(values, "dtype", None) != np.float64:
        _require_exact(values, array, name)
    if finite and array.dtype.kind == "f":
        require_finite(array, name)
    return np.ascontiguousarray(array)


def _require_exact(values: object, array: Column, name: str) -> None:
    """Whole numbers, among others too, keep their order as floats."""
    if len(array) and max(float(array.max()), -float(array.min())) >= EXACT_INTEGER:
        sent = np.asarray(_unmasked(values), dtype=object).ravel()
        large = max((int(n) for n in sent if isinstance(n, numbers.Integral)), key=abs, default=0)
        if abs(large) > EXACT_INTEGER:
            raise InvalidInput(name, f"{LOST}, got {large}. Rescale them.")


def require_finite(scores: Column, name: str = "scores") -> None:
    """Raise for the first NaN or infinity. One pass and no temporary array where all is well."""
    if not math.isfinite(_total(scores)):
        _report_not_finite(scores, name, 0)


def finite_at_least(scores: Column, threshold: float, name: str = "scores") -> Mask:
    """``scores >= threshold`` with the check for NaN and infinity in the same pass; as float64, in blocks."""
    mask = np.empty(len(scores), dtype=np.bool_)
    step = _BLOCK if scores.dtype == np.float64 else _COPIED
    for start in range(0, len(scores), step):
        block = scores[start : start + step].astype(np.float64, copy=False)
        if not math.isfinite(_total(block)):
            _report_not_finite(block, name, start)
        np.greater_equal(block, threshold, out=mask[start : start + step])
    return mask


def _total(scores: Column) -> float:
    """A sum that is finite only if all are: einsum adds up faster than ``sum``, and less precisely."""
    return float(np.einsum("i->", scores))


def _report_not_finite(scores: Column, name: str, offset: int) -> None:
    """The sum was not finite: an offending value, or finite values that merely overflow."""
    bad = np.flatnonzero(~np.isfinite(scores))
    if len(bad):
        row = int(bad[0])
        more = f" ({len(bad):,} such rows here)" if len(bad) > 1 else ""
        found = f"got {scores[row]} at position {row + offset}{more}"
        raise InvalidInput(name, f"expected finite numbers, {found}. Every row needs a finite value.")


def as_labels(values: object, name: str = "labels", missing: str | None = None) -> tuple[Mask, int]:
    """A boolean array (True = qualified) and how many missing labels were counted as False.

    ``missing`` is the ``missing_labels`` that the caller was given; None where it takes none.
    """
    if missing is not None:
        as_choice(missing, get_args(MissingLabels), "missing_labels")
    if isinstance(values, Struct):
        what = type(values).__name__
        raise InvalidInput(name, f"{what} have no proof here; a label of every row is needed, as it is.")
    array = _numeric(values, name, "0 or 1 (1 = qualified)", _NO_WORDS)
    if array.dtype.kind == "b":
        return array, 0
    absent = np.isnan(array) if array.dtype.kind == "f" else np.zeros(0, dtype=bool)
    remedy = "Every row needs one." if missing is None else f"{_DROPPED}; {KEEPING}."
    count = _count_missing(absent, missing, name, "0 or 1", "a missing label", remedy)
    qualified = array == 1
    wrong = len(array) - int(np.count_nonzero(qualified)) - int(np.count_nonzero(array == 0)) - count
    if wrong:
        row = int(np.argmax(~(qualified | (array == 0) | (array != array))))
        raise InvalidInput(name, expected="0 or 1 (1 = qualified)", got=shown(array[row]), row=row)
    return qualified, count


def labelled_rows(
    scores: object, labels: object, missing: str | None = None, prefix: str = ""
) -> tuple[Floats, Mask, int]:
    """Scores, who is qualified, and how many missing labels were counted as not; one of each per row."""
    require_one_index(scores=scores, labels=labels)
    array = as_scores(scores, f"{prefix}scores")
    qualified, count = as_labels(labels, f"{prefix}labels", missing)
    require_rows(array, f"{prefix}scores")
    require_length(qualified, len(array), f"{prefix}labels")
    return array, qualified, count


def as_known_labels(values: object, name: str = "labels") -> Floats:
    """0, 1, or NaN where there is none."""
    labels = _numeric(values, name, "0, 1 or missing", _NO_WORDS).astype(np.float64)
    refuse_where(~((labels == 0) | (labels == 1) | np.isnan(labels)), labels, name, "0, 1 or missing")
    return labels


def as_values(values: object, name: str = "labels", missing: str = "error") -> tuple[Floats, int]:
    """Amounts of at least 0, and how many missing ones were counted as 0."""
    as_choice(missing, get_args(MissingLabels), "missing_labels")
    amounts = as_scores(values, name, finite=False)
    absent = np.isnan(amounts)
    remedy = f"{option('missing_labels', 'unqualified')} counts them as 0."
    count = _count_missing(absent, missing, name, "an amount", "a missing one", remedy)
    amounts = np.where(absent, 0.0, amounts) if count else amounts
    refuse_where(~((amounts >= 0) & (amounts < np.inf)), amounts, name, "an amount of at least 0")
    return amounts, count


def _count_missing(absent: Mask, missing: str | None, name: str, expected: str, got: str, remedy: str) -> int:
    """How many are missing; refused unless that is allowed."""
    count = int(absent.sum())
    if count and missing != "unqualified":
        at = int(absent.argmax())
        raise InvalidInput(name, expected=expected, got=got, row=at, in_all=count, remedy=remedy)
    return count


def as_codes(values: object, rows: int, name: str = "pools") -> tuple[Ints, int]:
    """Pool ids as numbers 0, 1, ... in the order of the ids, and how many pools there are."""
    array = _column(_objects(values), name)
    require_length(array, rows, name)
    if array.dtype.kind in "iu" and rows:
        low, high = int(array.min()), int(array.max())
        if high - low < 4 * rows + 1000:  # one pass instead of a sort
            used = np.bincount(array - low) > 0
            numbers = np.cumsum(used) - 1
            return numbers[array - low], int(numbers[-1]) + 1
        unique, codes = np.unique(array, return_inverse=True)
        return codes.astype(np.int64), len(unique)
    unique, codes = np.unique(as_groups(values, name), return_inverse=True)
    return codes.astype(np.int64), len(unique)


def as_groups(values: object, name: str = "groups") -> Column:
    """One name per row, of its group or pool, as text. A missing name is an error that names the row."""
    array = _column(_objects(values), name)
    if array.dtype.kind in "OfT":
        absent = np.fromiter((_is_missing(v) for v in array), dtype=bool, count=len(array))
        if absent.any():
            at, remedy = int(absent.argmax()), _NAMED if name == "groups" else "Every candidate is in one."
            what = f"missing {name.removesuffix('s')} at position {at} ({int(absent.sum()):,} in all)"
            raise InvalidInput(name, f"{what}. {remedy}")
    if array.dtype.kind not in "OTUbiu" and len(array):
        raise InvalidInput(name, expected="names or whole numbers", got=_first(array))
    if array.dtype.kind not in "OT":
        return array.astype(np.str_)
    names = [group_name(v, name) for v in array]
    # an array of text pads every row to the longest name, and drops a NUL at its end
    short = all(len(each) <= _LONG_NAME and not each.endswith("\0") for each in names)
    return np.array(names, dtype=np.str_ if short else object)


def group_name(value: object, name: str = "groups") -> str:
    """The text under which a group is known in policies, whatever type it came in."""
    if isinstance(value, (str, bool, np.bool_, numbers.Integral)):
        return str(value)
    raise InvalidInput(name, expected="names or whole numbers", got=shown(value))


def as_masks(values: Mapping[object, object], rows: int, name: str = "groups") -> dict[str, Mask]:
    """Overlapping groups: name to boolean mask, each as long as the scores."""
    masks = {}
    for key, mask in values.items():
        group, field = group_name(key, name), f"{name}[{key!r}]"
        array = _column(mask, field)
        if array.dtype.kind != "b" and len(array):
            got = f"{_first(array)} of type {array.dtype}"
            raise InvalidInput(field, expected="a boolean mask", got=got)
        require_length(array, rows, field)
        if group in masks:
            raise InvalidInput(name, f"group {group!r} appears twice.")
        masks[group] = array.astype(np.bool_, copy=False)
    return masks


def as_ids(values: object, rows: int, name: str = "ids") -> list[str]:
    """Candidate ids as text: strings or whole numbers, present and unique."""
    array = _column(_objects(values), name)
    require_length(array, rows, name)
    ids = [_id_text(v, row, name) for row, v in enumerate(array.tolist())]
    seen: dict[str, int] = {}
    for row, key in enumerate(ids):
        if key in seen:
            got = f"{key!r} at positions {seen[key]} and {row}"
            remedy = "Randomised ties are valid only when every candidate has one id."
            raise InvalidInput(name, expected="unique candidate ids", got=got, remedy=remedy)
        seen[key] = row
    return ids


def _id_text(value: object, row: int, name: str) -> str:
    if _is_missing(value):
        raise InvalidInput(name, f"missing candidate id at position {row}. Give every candidate an id.")
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        raise InvalidInput(name, expected="text or whole numbers", got=shown(value), row=row)
    return as_text(str(value), name)


def set_value(struct: Struct, name: str, value: object) -> None:
    """Set a field of a frozen struct, in its ``__post_init__``: a value that was checked, or is plainer."""
    force_setattr(struct, name, value)


def plain(value: object) -> Any:
    """A NumPy scalar as Python's own; anything else as it is."""
    return value.item() if isinstance(value, np.generic) else value


def as_weights(values: object, rows: int, bound: float, name: str = "weights") -> Floats:
    weights = as_scores(values, name)
    require_length(weights, rows, name)
    refuse_where(weights < 0, weights, name, "at least 0")
    refuse_where(weights > bound, weights, name, f"at most the bound, {bound:g}")
    return weights


def refuse_where(wrong: Mask, array: Column, name: str, expected: str, remedy: str = "") -> None:
    """Raise for the first value that does not fit."""
    if wrong.any():
        row = int(wrong.argmax())
        got = f"{array[row]:g}" if array.dtype == np.float64 else shown(array[row])
        raise InvalidInput(name, expected=expected, got=got, row=row, remedy=remedy)


def require_length(array: Sized, rows: int, name: str) -> None:
    if len(array) != rows:
        raise InvalidInput(name, expected=f"{rows:,} values, one per score", got=f"{len(array):,}")


def require_one_index(**columns: object) -> None:
    """Columns of pandas are paired by position: where their indexes differ, other pairs were meant."""
    parts: list[tuple[str, Any]] = []
    for name, values in columns.items():
        if isinstance(values, Mapping):
            parts += [(f"{name}[{key!r}]", each) for key, each in values.items()]
        else:
            parts.append((name, values))
    indexed = [(name, each.index) for name, each in parts if hasattr(getattr(each, "index", 0), "equals")]
    for name, index in indexed[1:]:
        first, expected = indexed[0]
        if len(index) == len(expected) and not index.equals(expected):
            row = int(np.argmax(np.asarray(index, dtype=object) != np.asarray(expected, dtype=object)))
            here, there = f"at position {row} it is {shown(index[row])}", f"there {shown(expected[row])}"
            order = f"bring both into one order, {name}.loc[{first}.index]"
            way_out = f"{order}, or pass {name}.to_numpy() where the positions are right."
            differs = f"its pandas index is not that of {first}: {here}, {there}."
            raise InvalidInput(name, f"{differs} Rows are paired by position; {way_out}")


def require_rows(array: Sized, name: str) -> None:
    if len(array) == 0:
        raise InvalidInput(name, expected="at least one row", got="none")


def _column(values: object, name: str) -> Column:
    """One-dimensional array of whatever came in, or an error about its shape."""
    if isinstance(values, (str, bytes, Mapping)) or values is None:
        raise InvalidInput(name, expected="a column of values", got=shown(values))
    kinds = set(map(type, values)) if isinstance(values, (list, tuple)) else set()
    numeric = all(issubclass(kind, (int, float, np.number, np.bool_)) for kind in kinds)
    try:  # of text NumPy would make rows as long as the longest
        array = np.asarray(_unmasked(values), dtype=None if numeric else object)
    except (ValueError, TypeError) as error:
        raise InvalidInput(name, expected="a column of values", got=shown(values)) from error
    if array.ndim == 2 and array.shape[1] == 1:
        array = array.ravel()
    if array.ndim != 1:
        two = array.ndim == 2 and array.shape[1] == 2 and array.dtype.kind == "f"
        hint = f"The second column of predict_proba is {name}[:, 1]." if two else ""
        raise InvalidInput(name, expected="one column", got=f"an array of shape {array.shape}", remedy=hint)
    return array


def _numeric(values: object, name: str, wanted: str = "numbers", remedy: str = "") -> Column:
    """Numbers or flags, in the type they came in where that is one of NumPy's."""
    array = _column(values, name)
    if array.dtype.kind in "OUST":
        return _numbers(array, name, wanted, remedy)
    if array.dtype.kind not in "biuf" or array.dtype.itemsize > 8:
        raise InvalidInput(name, expected=wanted, got=f"{_first(array)} of type {array.dtype}")
    return array


def _numbers(values: Column, name: str, wanted: str = "numbers", remedy: str = "") -> Floats:
    """Python objects to float64, missing values to NaN; text is an error that shows it."""
    array = values.astype(object)
    kinds = set(map(type, array))
    other = {kind for kind in kinds if not issubclass(kind, (numbers.Real, np.bool_))}
    wrong = {kind for kind in other if kind.__name__ not in _MISSING}
    if wrong:
        row = next(row for row, value in enumerate(array) if type(value) in wrong)
        raise InvalidInput(name, expected=f"{wanted}", got=shown(array[row]), row=row, remedy=remedy)
    if kinds <= {int, float, bool, type(None)}:
        with suppress(OverflowError):
            return array.astype(np.float64)
    plain_ones = (float(value) if isinstance(value, bool | np.bool_) else value for value in array)
    return np.array([math.nan if _is_missing(value) else real(value, name) for value in plain_ones])


def _unmasked(values: Any) -> Any:
    """What is masked is missing, not what lies beneath."""
    if not np.ma.is_masked(values):
        return values
    visible = np.array(values.data, dtype=object)
    visible[np.ma.getmaskarray(values)] = None
    return visible


def _objects(values: object) -> object:
    """A list as it is: NumPy would turn a missing value among names into the text 'nan'."""
    return np.array(values, dtype=object) if isinstance(values, (list, tuple)) else values


def _first(array: Column) -> str:
    return shown(array[0]) if len(array) else "an empty column"


def _is_missing(value: object) -> bool:
    return type(value).__name__ in _MISSING or (isinstance(value, float) and math.isnan(value))
