"""The one table of what can be asked for: names, defaults, choices and help of every front end.

The command line, the API's models and the tests of signatures and docs read it; the kinds are the
type hints of the Python functions. What the values mean together is checked in ``terms``. The fields of a
promise are described the same way, in its kind; ``kinds.fields`` has those of all.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Literal, NewType, get_args, get_origin, get_type_hints

from msgspec import Struct

from surelist import _check as check
from surelist._check import DecimalMark, EngineName, MissingLabels, OnBadRows

Rule = Literal["exact", "dkw", "simultaneous", "pac", "bernstein"]
CurveRule = Literal["simultaneous", "dkw"]
GroupSplit = Literal["bonferroni", "sidak"]
GroupRows = Literal["own", "all"]
GroupCutoff = Literal["own", "common"]
GroupKey = str | int | bool
GroupKeys = Literal["whole numbers", "true or false"]  # how groups were named, where not by text
Ties = Literal["include", "hash"]
LabelsOf = Literal["count", "value"]
ListedBy = Literal["score", "rank"]


Share = NewType("Share", float)  # above 0, below 1
WholeShare = NewType("WholeShare", float)  # above 0, at most 1
Sizes = NewType("Sizes", str)  # candidates in a pool: a number, or a range such as 50-200


class Option(Struct, frozen=True):
    """One thing that can be asked for. ``kind`` is a type, or a ``Literal`` of its choices.

    ``words`` are what the page calls a field of a promise; of a choice, what stands beside its tick.
    """

    default: Any
    kind: Any
    help: str
    metavar: str | None = None
    words: str = ""


def several(help: str, metavar: str) -> Option:
    """What may be said more than once."""
    return Option((), list[str], f"{help} Repeat.", metavar)


def share_option(help: str, words: str = "", metavar: str = "SHARE") -> Option:
    """A field of a promise that is a share."""
    return Option(None, Share, help, metavar, words)


@cache
def fields_of(promise: type[Struct]) -> dict[str, Option]:
    """The fields of a kind of promise as it describes them."""
    hints = get_type_hints(promise, include_extras=True)
    return {
        name: next(each for each in get_args(hints[name]) if isinstance(each, Option))
        for name in promise.__struct_fields__
    }


def required(promise: type[Struct]) -> tuple[str, ...]:
    """The fields without which a promise says nothing."""
    fields = promise.__struct_fields__
    return fields[: len(fields) - len(promise.__struct_defaults__)]


def checked(value: object, kind: object, name: str) -> Any:
    """A field of a promise as its kind wants it."""
    if get_origin(kind) is Literal:
        return check.as_choice(value, get_args(kind), name)
    if kind is Share or (kind is WholeShare and (isinstance(value, bool) or value != 1)):
        return check.as_alpha(value, name)
    if kind is int:
        return check.as_count(value, name)
    return check.plain(value if kind is WholeShare else check.as_positive(value, name))


# fields that several promises have; where a number has to be whole, replace(K, kind=int)
K = Option(None, float, "Qualified candidates that are promised.", "K", "how many qualified you need")
POOL_SIZE = Option(
    None, Sizes, "Candidates in a pool; for promises per pool also a range, 50-200.", "M", "the pool size"
)
SHARE = share_option("Where a share is promised: that share.", "the share to keep")
LIST_SIZE = Option(
    None, float, "For a budget: candidates that can be reviewed per pool.", "K", "how many you can review"
)

WRONG = "Labels may be wrong: at most this share of"
SHARED = {"k": K, "pool_size": POOL_SIZE, "share": SHARE, "size": LIST_SIZE}

OPTIONS: dict[str, Option] = {
    "score": Option("score", str, "Column with the score."),
    "label": Option("qualified", str, "Column with the label, 1 = qualified."),
    "group": Option(
        None, str, "Column with the group; needs a target per group, and a purpose where cutoffs differ."
    ),
    "id": Option(None, str, "Column with candidate ids, for randomised ties."),
    "pool": Option(
        None, str, "Column with a candidate's pool; without a pool size whole pools are counted, not rows."
    ),
    "promise": Option("expected", str, "What is promised: the name of a kind."),
    "also": several(
        "Another promise of the same list: expect:5/100, pool:3/100, recall:0.9, precision:0.8.", "PROMISE"
    ),
    "other_score": several("Another score column: the best one is kept, alpha is shared.", "COLUMN"),
    "unlabelled": Option(None, str, "File with scores of other candidates, without labels.", "FILE"),
    "audit_rate": share_option("Share of rows below audited_below that were labelled at random.", "", "RATE"),
    "audited_below": Option(None, float, "Every row at or above this score was labelled.", "SCORE"),
    "probability": Option(None, str, "Column with the probability at which each row was labelled.", "COLUMN"),
    "lowest_rate": Option(None, Share, "With probability: the lowest of them, fixed beforehand.", "RATE"),
    "lowest_score": Option(
        None, float, "With probability: rows below this score may have been labelled less often.", "SCORE"
    ),
    "false_positive": Option(None, float, f"{WRONG} the unqualified is labelled qualified.", "SHARE"),
    "false_negative": Option(None, float, f"{WRONG} the qualified is labelled not.", "SHARE"),
    "longest": Option(
        None, float, "With false_positive: the largest share of candidates that may be listed.", "SHARE"
    ),
    "largest_pool": Option(None, int, "For promises per pool: the largest pool, instead of a range."),
    "target": several(
        'Target of a group, e.g. "women=3.8/76", "women=pool:3/76" or "women=recall:0.9".', "NAME=K/M"
    ),
    "alpha": Option(0.1, Share, "How often the promise may be false."),
    "rule": Option("exact", Rule, "Expected: exact, dkw, simultaneous; per pool: exact, pac, bernstein."),
    "calibration_share": Option(
        0.5, Share, "Share of alpha spent on the calibration rows by pac and bernstein."
    ),
    "purpose": Option(None, str, "What cutoffs per group are for; recorded in the policy."),
    "group_split": Option("bonferroni", GroupSplit, "How alpha is split; sidak is for disjoint groups."),
    "group_rows": Option(
        "own", GroupRows, "all: every row counts for every group and M is the whole pool's size."
    ),
    "group_cutoff": Option(
        "own", GroupCutoff, "common: one cutoff for everybody that keeps every group's target."
    ),
    "ties": Option("include", Ties, "At the threshold include everyone, or draw by a hash of the id."),
    "missing_labels": Option(
        "error", MissingLabels, "Rows without a label: stop, or count them as not qualified."
    ),
    "pos_label": several("A value of the label that means qualified, such as yes.", "VALUE"),
    "neg_label": several("A value that means not qualified; needed where there are several.", "VALUE"),
    "sheet": Option(None, str, "Sheet of an Excel file, if several are not empty.", "NAME"),
    "header_row": Option(
        None, int, "Row of a CSV or Excel file with the column names, where it is not found.", "ROW"
    ),
    "decimal": Option(
        "auto", DecimalMark, "The decimal mark of numbers in text; auto: as the whole column shows it."
    ),
    "on_bad_rows": Option("error", OnBadRows, "Stop, or drop rows without a finite score and say how many."),
    "engine": Option(
        "auto", EngineName, "Engine that reads the files; auto: polars for Parquet if installed, else DuckDB."
    ),
    "spark_master": Option(None, str, "With the engine spark: local[*], spark://host:7077.", "URL"),
    "reason": Option(False, bool, "Add a column shortlist_reason: the threshold that was met."),
    "rank": Option(False, bool, "Add a column shortlist_rank: 1 is the best score of the list."),
    # of the curve, where they mean something else
    "curve.pool_size": Option(100.0, float, "Candidates in a pool."),
    "curve.alpha": Option(0.1, Share, "How often the curve may be wrong."),
    "curve.rule": Option("simultaneous", CurveRule, "dkw is the paper's rule."),
}
