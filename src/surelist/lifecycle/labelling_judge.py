"""A judge's verdicts as scores: what a language model said about every row, for people to check a few of.

Verdicts decide nothing but the order in which rows are listed, so a promise about people's labels stays
exact whatever the judge is worth. Equal verdicts are ties: they are put in an order by a hash of the ids,
which is fixed before anybody labels.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surelist import _check as check
from surelist.errors import InvalidInput

YES = ("1", "1.0", "true", "yes", "y", "pass", "passed", "correct", "c", "accept", "accepted", "positive")
NO = ("0", "0.0", "false", "no", "n", "fail", "failed", "incorrect", "i", "reject", "rejected", "negative")
PARTLY = ("p", "partial", "partly", "unsure", "maybe")


def judge_scores(verdicts: Any, ids: Any = None) -> NDArray[np.float64]:
    """Scores from a judge's verdicts, for ``Labelling``: the better the verdict, the higher; no two alike.

    Parameters
    ----------
    verdicts
        One for each row: yes or no in words, booleans, 0 and 1, or any numbers (higher is better).
    ids
        One for each row, all different; row numbers otherwise. They break ties.

    Returns
    -------
    numpy.ndarray
        One number for each row: the rank of its verdict among all, and below 1 its place among equal ones.

    Raises
    ------
    InvalidInput
        A verdict is neither yes nor no nor a number; says in which row.

    Examples
    --------
    >>> import surelist as sl
    >>> scores = sl.judge_scores(["yes", "no", "yes"])
    >>> bool(scores[0] > scores[1] < scores[2] != scores[0])
    True
    """
    listed = verdicts.tolist() if hasattr(verdicts, "tolist") else list(verdicts)
    values = np.array([_value(each, row) for row, each in enumerate(listed)], dtype=np.float64)
    check.require_rows(values, "verdicts")
    names = [str(row) for row in range(len(values))] if ids is None else check.as_ids(ids, len(values))
    digests = np.array([hashlib.sha256(name.encode()).hexdigest() for name in names])
    order = np.lexsort((digests, values))
    places = np.empty(len(values))
    places[order] = np.arange(len(values))
    levels = np.unique(values, return_inverse=True)[1]
    return np.asarray(levels.ravel() + places / len(values))


def _value(verdict: Any, row: int) -> float:
    plain = check.plain(verdict)
    if isinstance(plain, str):
        word = plain.strip().lower()
        for words, value in ((YES, 1.0), (NO, 0.0), (PARTLY, 0.5)):
            if word in words:
                return value
        try:
            plain = float(word)
        except ValueError:
            plain = None
    if not isinstance(plain, (bool, int, float)) or not np.isfinite(plain):
        raise InvalidInput("verdicts", f"expected yes, no or a number, got {verdict!r} in row {row}.")
    return float(plain)
