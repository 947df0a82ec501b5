"""What comes in: a collection in memory as ranks, a judge's verdicts as scores, targets, rows and labels as
people give them.

A judge's verdicts are what a language model said about every row, for people to check a few of. They decide
nothing but the order in which rows are listed, so a promise about people's labels stays exact whatever the
judge is worth. Equal verdicts are ties: they are put in an order by a hash of the ids, which is fixed before
anybody labels.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from surelist import _check as check
from surelist._arrays import Floats
from surelist._names import option
from surelist.errors import InvalidInput
from surelist.lifecycle.labelling_design import MISSING, Fetched, Ints
from surelist.promises.conditions import Conditions
from surelist.promises.promise import Promise
from surelist.promises.proved import require_proof

BLOCK = 1 << 16  # rows at a time
SCRAMBLED = np.uint64(0x9E3779B97F4A7C15)
YES = "true yes y pass passed correct c accept accepted positive"
NO = "false no n fail failed incorrect i reject rejected negative"
PARTLY = "p partial partly unsure maybe"
ORDER_ALONE = "Where there is none, no may stand for it: verdicts decide nothing but the order."
VERDICTS = {word: value for words, value in ((YES, 1.0), (NO, 0.0), (PARTLY, 0.5)) for word in words.split()}


class ArrayCollection:
    """A collection in memory."""

    def __init__(self, scores: object, ids: object = None, groups: object = None) -> None:
        check.require_one_index(scores=scores, ids=ids, groups=groups)
        self._scores = check.as_scores(scores)
        check.require_rows(self._scores, "scores")
        self._ids = None if ids is None else check.as_ids(ids, len(self._scores))
        self._members: dict[str, Ints] = {}
        self._rankings: dict[str | None, Ranking] = {}
        self.sizes: dict[str | None, int] = {None: len(self._scores)}
        if groups is not None:
            names = check.as_groups(groups)
            check.require_length(names, len(self._scores), "groups")
            self._members = {name: np.flatnonzero(names == name) for name in np.unique(names).tolist()}
            self.sizes = {name: len(rows) for name, rows in self._members.items()}

    def at(self, group: str | None, ranks: Ints) -> Fetched:
        if group not in self._rankings:
            scores = self._scores if group is None else self._scores[self._members[group]]
            self._rankings[group] = Ranking(scores)
        rows, reaching = self._rankings[group].rows(ranks)
        rows = rows if group is None else self._members[group][rows]
        ids = None if self._ids is None else [self._ids[row] for row in rows.tolist()]
        return Fetched(rows, self._scores[rows], ids, reaching)


class Ranking:
    """Who is at which rank by score, best first; ties are in the order of the rows.

    Scores are sorted without their rows, which is quick. Rows are found by the scores of the ranks asked for:
    those whose scrambled bits are some of theirs, of which few have another score.
    """

    def __init__(self, scores: Floats) -> None:
        self._scores, self._rising = scores, np.sort(scores)

    def rows(self, ranks: Ints) -> tuple[Ints, Ints]:
        """Who is at these ranks, and how many score as high or higher."""
        rising = self._rising
        values, which = np.unique(rising[len(rising) - 1 - ranks], return_inverse=True)
        reaching = len(rising) - rising.searchsorted(values)
        above = len(rising) - rising.searchsorted(values, side="right")
        rows, numbers = self._having(values)
        order = np.argsort(numbers, kind="stable")  # quicker for two bytes
        starts = np.cumsum(reaching - above) - (reaching - above)
        return rows[order[starts[which] + ranks - above[which]]], reaching[which]

    def _having(self, values: Floats) -> tuple[Ints, Ints]:
        """All rows with one of these scores, and the number of that."""
        known, ended = np.zeros(1 << 16, dtype=np.bool_), np.append(values, np.nan)
        known[_scrambled(values)] = True
        rows, numbers = [], []
        for at in range(0, len(self._scores), BLOCK):
            block = self._scores[at : at + BLOCK]
            likely = np.flatnonzero(known.take(_scrambled(block)))
            held = block[likely]
            number = values.searchsorted(held)
            same = ended[number] == held
            rows.append(likely[same] + at)
            numbers.append(number[same].astype(np.uint16 if len(values) < 1 << 16 else np.int64))
        return np.concatenate(rows), np.concatenate(numbers)


def _scrambled(scores: Floats) -> Ints:
    """Sixteen bits made of all of each score's."""
    bits = (scores + 0.0).view(np.uint64)  # of a zero without its sign
    bits *= SCRAMBLED
    bits >>= np.uint64(48)
    return bits.view(np.int64)


def judge_scores(verdicts: Any, ids: Any = None) -> Floats:
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
    values = np.array([verdict_of(each) for each in listed], dtype=np.float64)
    if len(odd := np.flatnonzero(np.isnan(values))):
        got = f"{listed[odd[0]]!r} in row {odd[0]}"
        raise InvalidInput("verdicts", expected="yes, no or a number", got=got, remedy=ORDER_ALONE)
    check.require_rows(values, "verdicts")
    names = [str(row) for row in range(len(values))] if ids is None else check.as_ids(ids, len(values))
    digests = np.array([hashlib.sha256(name.encode()).hexdigest() for name in names])
    order = np.lexsort((digests, values))
    places = np.empty(len(values))
    places[order] = np.arange(len(values))
    levels = np.unique(values, return_inverse=True)[1]
    return np.asarray(levels.ravel() + places / len(values))


def verdict_of(verdict: object) -> float:
    """What a verdict is worth, NaN where it is none; models write Yes. and **no** too."""
    plain = check.plain(verdict)
    if isinstance(plain, str):
        word = plain.strip(" \t\n.!*'\"`").lower()
        try:
            plain = VERDICTS[word] if word in VERDICTS else float(word)
        except ValueError:
            plain = None
    fits = isinstance(plain, (bool, int, float)) and np.isfinite(plain)
    return float(plain) if fits else float("nan")


def as_targets(target: Any, groups: list[str | None]) -> dict[str | None, Promise]:
    """One target per group, of a kind that labelling can promise."""
    named: dict[str | None, Any] = dict.fromkeys(groups, target)
    if isinstance(target, Mapping):
        named = {check.group_name(key, "target"): each for key, each in target.items()}
    for odd in sorted(map(str, set(named) ^ set(groups)))[:1]:
        said = f"expected one target for each group of {option('groups')}; {odd!r} has only one of both."
        raise InvalidInput("target", said)
    for each in named.values():
        if not isinstance(each, Promise):
            raise InvalidInput("target", expected="a promise, such as Expected(5, 100)", got=repr(each))
        require_proof(each, Conditions(evidence="labelling", groups="none" if None in named else "own"))
    return {group: each.of_collection() for group, each in named.items()}


def marks_of(labels: object, length: int | None) -> list[str]:
    """One sign per label: 0, 1 or missing; as many as asked for, or any number."""
    known = check.as_known_labels(labels)
    if length is not None:
        check.require_length(known, length, "labels")
    return ["1" if each == 1 else "0" if each == 0 else MISSING for each in known.tolist()]


def spelled(mark: str) -> str:
    """A label's sign in words."""
    return {"0": "not qualified", "1": "qualified", MISSING: "said not to come"}[mark]


def as_rows(rows: Any, name: str = "rows") -> list[int]:
    """Row numbers, from an array or any sequence."""
    try:
        given = [*map(check.plain, rows.tolist() if hasattr(rows, "tolist") else rows)]
    except TypeError:  # one number is no sequence, nor is None
        raise InvalidInput(name, expected="row numbers", got=repr(rows)) from None
    for each in given:
        if isinstance(each, bool) or not isinstance(each, int):
            raise InvalidInput(name, expected="row numbers", got=repr(each))
    return given
