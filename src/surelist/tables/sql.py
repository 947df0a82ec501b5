"""A filter as one SQL expression, for whoever selects inside a database; sqlglot writes the dialects.

The expression is true for candidates on the shortlist and false for all others, rows without a finite score
included: what ``select`` with ``on_bad_rows="drop"`` lists, bit for bit. SQL cannot refuse a table: what
``select`` refuses (an unknown group, a pool that is too small) is false or cannot be said, and a filter that
needs more than the row at hand is refused here.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from typing import Any, get_args

from surelist import _check as check
from surelist._check import Dialect
from surelist._names import option
from surelist.errors import InvalidInput, MissingDependency
from surelist.filters import ACCEPT, LOOK, REJECT, Filter, GroupFilter
from surelist.tables.roles import EXACT_INTEGER

LARGEST = sys.float_info.max


def filter_sql(
    filter: Filter,
    names: Mapping[str, str | None],
    dialect: Dialect,
    *,
    pool_size: int | None = None,
    whole_numbers: bool = False,
) -> str:
    """The expression in ``dialect``; ``names`` are the columns ``score`` and, with groups, ``group``.

    ``pool_size`` says how many candidates with a score every pool has, for thresholds that depend on it. Of
    a triage it is a text, "accept", "look" or "reject" (NULL without a finite score);
    ``whole_numbers`` says that the score is an integer column, where those beyond 2^53 have no exact float.
    """
    check.as_choice(dialect, get_args(Dialect), "dialect")
    _require_expressible(filter, names, pool_size)
    exp = _sqlglot()
    score = exp.column(names["score"], quoted=True)
    number = exp.cast(score, "double")
    conditions = [
        _both(_member(exp, names.get("group"), each), number >= _float(exp, _threshold(each, pool_size)))
        for each in filter.groups
    ]
    listed = exp.and_(exp.or_(*conditions), number <= _float(exp, LARGEST))
    if whole_numbers:
        listed = exp.and_(listed, score.between(-EXACT_INTEGER, EXACT_INTEGER))
    if filter.three_ways and filter.looked_from is not None:
        low = _float(exp, filter.looked_from)
        finite = number.between(_float(exp, -LARGEST), _float(exp, LARGEST))
        three = exp.case().when(listed, exp.Literal.string(ACCEPT))
        three = three.when(finite.and_(number < low), exp.Literal.string(REJECT))
        three = three.when(finite, exp.Literal.string(LOOK))
        return str(three.sql(dialect=dialect, identify=True))
    return str(exp.func("coalesce", listed, exp.false()).sql(dialect=dialect, identify=True))


def _require_expressible(filter: Filter, names: Mapping[str, str | None], pool_size: int | None) -> None:
    if filter.hashed:
        raise InvalidInput(
            "policy",
            "its ties are broken by a secret salt, which SQL would print for everyone to see. Use select, "
            f"or calibrate with {option('ties', 'include')}.",
        )
    if filter.by_rank:
        raise InvalidInput(
            "policy", "it lists each pool's best by rank, not by a threshold of the score; use select."
        )
    if filter.overlapping:
        raise InvalidInput(
            "policy", "its groups overlap, so one group column cannot say them; use policy.select."
        )
    if filter.by_size and pool_size is None:
        raise InvalidInput(
            "pool_size",
            "this policy's threshold depends on how many candidates a pool has, and SQL would not refuse "
            "a pool that is too small. Give the pool_size that every pool has, or use select.",
        )
    if pool_size is not None and not filter.by_size:
        raise InvalidInput("pool_size", "this policy's threshold is the same for every pool; leave it out.")
    if filter.grouped and filter.size_by_group and filter.by_size:
        raise InvalidInput(
            "policy", "its thresholds depend on how many candidates of each group a pool has; use select."
        )
    if names.get("score") is None:
        raise InvalidInput("score", f"the policy remembers no score column; pass {option('score')}.")
    if filter.grouped and names.get("group") is None:
        raise InvalidInput(
            "group", f"this policy has groups and remembers no group column; pass {option('group')}."
        )
    if filter.grouped and any(each.group in ("True", "False") for each in filter.groups):
        raise InvalidInput(
            "group",
            "its groups are called True and False, and every database writes booleans in its own way; "
            "calibrate on a column of text.",
        )


def _threshold(group: GroupFilter, pool_size: int | None) -> float:
    return group.thresholds[-1].score if pool_size is None else group.threshold(pool_size).score


def _float(exp: Any, value: float) -> Any:
    """A float that every engine reads back to the last bit: its shortest text, cast there."""
    return exp.cast(exp.Literal.string(repr(-LARGEST if value == -math.inf else value)), "double")


def _member(exp: Any, column: str | None, group: GroupFilter) -> Any:
    if group.group is None or column is None:
        return None
    return exp.cast(exp.column(column, quoted=True), "text").eq(exp.Literal.string(group.group))


def _both(member: Any, condition: Any) -> Any:
    return condition if member is None else member.and_(condition)


def _sqlglot() -> Any:
    try:
        from sqlglot import exp
    except ImportError as error:
        raise MissingDependency("SQL needs sqlglot: pip install 'surelist[sql]'.") from error
    return exp
