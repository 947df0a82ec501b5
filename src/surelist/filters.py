"""Who is shortlisted: thresholds by group and pool size, applied to arrays.

A ``Filter`` is all that shortlisting needs. Policies and campaigns make filters, ``tables`` applies
them to tables; what the thresholds promise, and the evidence for it, is none of a filter's business.

Ties are broken by a keyed hash [theory: ties]: every candidate id gets a number u from SHA-256(salt, id),
the first 52 bits, as an integer. Candidates are compared by (score, u). The salt is secret and drawn once,
after the ids are fixed; drawing it again until the list looks good breaks the promise. Any engine with
SHA-256 can compute the same numbers: u is the first 13 hexadecimal digits of the hash of the salt's
64 hexadecimal digits followed by the id's UTF-8 bytes.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from surelist import _check as check
from surelist._arrays import Floats, Ints, Mask
from surelist._check import EVERYONE
from surelist._names import option
from surelist._randomness import fresh_bytes
from surelist.errors import InvalidInput

HEX_DIGITS = 13


class Salt(Struct, frozen=True):
    """The secret behind the ties of one policy. Never printed, logged or returned by an API.

    ``spent`` holds the numbers of the calibration ids that decided a threshold: a pool id
    with the same number is the same candidate, who may not be counted twice.
    """

    key: str
    spent: frozenset[int] = frozenset()

    def __repr__(self) -> str:
        return f"Salt(hash={self.hash[:12]}..., key=<secret>)"

    @classmethod
    def draw(cls) -> Salt:
        return cls(fresh_bytes(32).hex())

    @property
    def hash(self) -> str:
        """What a policy file says of its salt."""
        return hashlib.sha256(b"surelist salt " + self.key.encode()).hexdigest()

    def numbers(self, ids: Iterable[str]) -> list[int]:
        prefix = hashlib.sha256(self.key.encode())
        return [_number(prefix, candidate) for candidate in ids]


def _number(prefix: hashlib._Hash, candidate: str) -> int:
    digest = prefix.copy()
    digest.update(candidate.encode())
    return int(digest.hexdigest()[:HEX_DIGITS], 16)


LISTS = ACCEPT, LOOK, REJECT = "accept", "look", "reject"  # the lists of a triage
TRIAGE = "triage"  # the column that names them


class Threshold(Struct, frozen=True):
    """In pools of at least ``pool_size`` candidates, scores >= ``score`` are shortlisted.

    With randomised ties, candidates exactly at ``score`` need a tie number of at least ``tie_break``.
    """

    pool_size: int
    score: float
    tie_break: int | None = None


class GroupFilter(Struct, frozen=True):
    """The thresholds of one group (``group=None``: of everyone), by rising pool size."""

    group: str | None
    thresholds: tuple[Threshold, ...]

    def threshold(self, pool_size: int) -> Threshold:
        """The threshold in force for a pool of this many candidates."""
        fitting = [each for each in self.thresholds if each.pool_size <= pool_size]
        if not fitting:
            who = f" of group {self.group!r}" if self.group is not None else ""
            covered = f"the promise covers pools of {self.thresholds[0].pool_size} or more candidates{who}"
            remedy = "Pool more candidates, or calibrate for smaller pools."
            raise InvalidInput("pool", f"{covered}, got {pool_size}. {remedy}")
        return fitting[-1]

    def reason(self, threshold: Threshold) -> str:
        """Why a candidate let in by this threshold is on the shortlist."""
        if threshold.score == -math.inf:
            return "everyone is shortlisted"
        whose = f"group {self.group}: " if self.group is not None else ""
        return f"{whose}score >= {threshold.score!r}"


class Filter(Struct, frozen=True):
    """Thresholds by group, how pool size is counted, and the salt that breaks ties.

    With ``size_by_group`` the size that decides a group's threshold counts that group's candidates,
    else everyone in the pool. With ``by_rank`` a threshold of -5 lists a
    pool's best five. ``hashed`` ties are broken by candidate id; ``salt`` is None
    where its file was not at hand.
    """

    groups: tuple[GroupFilter, ...]
    size_by_group: bool = False
    overlapping: bool = False
    by_rank: bool = False
    hashed: bool = False
    salt: Salt | None = None
    looked_from: float | None = None  # three lists: those below it are rejected, those between are looked at

    @classmethod
    def at_least(cls, score: float | None) -> Filter:
        """One threshold for everyone, whatever the pool's size; None lists every candidate with a score."""
        return cls((GroupFilter(None, (Threshold(0, -math.inf if score is None else score),)),))

    @property
    def grouped(self) -> bool:
        return self.groups[0].group is not None

    @property
    def three_ways(self) -> bool:
        """Whether it makes three lists. With groups they are those of a collection, by name."""
        if self.looked_from is not None and self.grouped:
            lists = "the three lists of its groups are those of the labelled collection; the labelling"
            raise InvalidInput("policy", f"{lists} writes them, and scores alone do not say who is on which.")
        return self.looked_from is not None

    @property
    def by_size(self) -> bool:
        """Whether the pool's size matters."""
        return any(each.thresholds[0].pool_size > 0 for each in self.groups)

    def select(self, scores: object, groups: object = None, ids: object = None) -> Mask:
        """True for every candidate of the pool who is on the shortlist."""
        plain = not (self.by_rank or self.hashed or self.grouped)  # then blocks become float64, not the whole
        array = check.as_numbers(scores, finite=self.by_rank)
        array = array if plain else array.astype(np.float64, copy=False)
        if self.by_rank:
            array = ranks_within(array, np.zeros(len(array), dtype=np.int64))
        texts = self._tie_ids(ids, len(array)) if self.hashed else None
        if self.grouped:
            return self._select_groups(array, groups, texts)
        if groups is not None:
            raise InvalidInput("groups", "this policy has one cutoff for everybody; leave them out.")
        return self._at_least(array, self.groups[0].threshold(len(array)), texts)

    def triage(self, scores: Floats) -> NDArray[np.str_]:
        """Which of three lists each candidate is on."""
        low = self.looked_from if self.three_ways else None
        assert low is not None
        accepted = scores >= self.groups[0].thresholds[0].score
        return np.where(accepted, ACCEPT, np.where(scores < low, REJECT, LOOK))

    def reason(self, group: str | None, candidates: int, sizes: Mapping[str, int]) -> str:
        """Why a shortlisted candidate of ``group`` is there, in a pool with these sizes by group."""
        if self.by_rank:
            return self.rank_reason
        if self.looked_from is not None:
            return "see the column triage"
        part = next(each for each in self.groups if each.group in (None, group))
        size = sizes.get(part.group or "", 0) if self.size_by_group else candidates
        return part.reason(part.threshold(size))

    @property
    def rank_reason(self) -> str:
        """Who is shortlisted where the list goes by rank."""
        return f"among the best {-self.groups[0].thresholds[0].score:.0f} of its pool"

    def require_salt(self) -> None:
        """Raise where ties cannot be broken for want of the salt."""
        if self.hashed and self.salt is None:
            remedy = "Keep the .salt file beside the policy file and load again."
            raise InvalidInput("policy", f"its salt is missing. {remedy}")

    def _select_groups(self, scores: Floats, groups: object, ids: list[str] | None) -> Mask:
        check.require_finite(scores)
        known = [str(each.group) for each in self.groups]
        members = pool_members(groups, known, len(scores), overlapping=self.overlapping)
        chosen = np.zeros(len(scores), dtype=np.bool_)
        for each in self.groups:
            rows = np.flatnonzero(members[str(each.group)])
            threshold = each.threshold(len(rows) if self.size_by_group else len(scores))
            texts = [ids[row] for row in rows] if ids is not None else None
            chosen[rows] |= self._at_least(scores[rows], threshold, texts)
        return chosen

    def _at_least(self, scores: Floats, threshold: Threshold, ids: list[str] | None) -> Mask:
        mask = check.finite_at_least(scores, threshold.score)
        if threshold.tie_break is not None and ids is not None:
            self._break_ties(mask, scores, threshold, ids)
        return mask

    def _break_ties(self, mask: Mask, scores: Floats, threshold: Threshold, ids: list[str]) -> None:
        assert self.salt is not None
        assert threshold.tie_break is not None
        tied = np.flatnonzero(scores == threshold.score)
        numbers = self.salt.numbers([ids[row] for row in tied])
        for row, number in zip(tied.tolist(), numbers, strict=True):
            if number in self.salt.spent:
                unique = "Randomised ties need ids that are unique over calibration and pool."
                raise InvalidInput("ids", f"candidate {ids[row]!r} is also a calibration row. {unique}")
            mask[row] = number >= threshold.tie_break

    def _tie_ids(self, ids: object, rows: int) -> list[str]:
        if ids is None:
            raise InvalidInput("ids", f"this policy breaks ties by candidate id; pass {option('ids')}.")
        self.require_salt()
        return check.as_ids(ids, rows)


def ranks_within(scores: Floats, pools: Ints) -> Floats:
    """Minus the rank of each row in its pool, 1 for the best; tied rows share the best of their ranks."""
    order = np.lexsort((-scores, pools))
    ordered, groups = scores[order], pools[order]
    first = np.empty(len(order), dtype=bool)  # of a pool, or of a run of ties in it
    first[:1] = True
    first[1:] = (groups[1:] != groups[:-1]) | (ordered[1:] != ordered[:-1])
    begins = np.flatnonzero(first)
    of_pool = np.searchsorted(groups, groups[begins], side="left")
    ranks = np.repeat(begins - of_pool + 1, np.diff(np.append(begins, len(order))))
    minus: Floats = np.empty(len(order))
    minus[order] = -ranks.astype(np.float64)
    return minus


def pool_members(
    groups: Any, known: list[str], rows: int, *, overlapping: bool, everyone: bool = False
) -> dict[str, Mask]:
    """Row mask per known group; unknown or missing groups are errors that name them.

    With ``everyone``, a known group of that name has all rows, and others need not have a known group.
    """
    if everyone and EVERYONE in known:
        return _with_everyone(groups, known, rows, overlapping=overlapping)
    if groups is None:
        raise InvalidInput("groups", f"this policy has groups ({_listed(known)}); pass {option('groups')}.")
    if isinstance(groups, Mapping) != overlapping:
        form = "a mapping of name to boolean mask" if overlapping else "one group name per candidate"
        raise InvalidInput("groups", f"this policy takes {form}, got {type(groups).__name__}.")
    if overlapping:
        masks = check.as_masks(groups, rows)
        unknown = sorted(set(masks) - set(known))
        missing = sorted(set(known) - set(masks))
        if missing:
            raise InvalidInput("groups", f"no mask for group {missing[0]!r}.")
    else:
        names = check.as_groups(groups)
        check.require_length(names, rows, "groups")
        masks = {name: names == name for name in known}
        covered = sum(int(np.count_nonzero(mask)) for mask in masks.values())
        unknown = sorted(set(np.unique(names).tolist()) - set(known)) if covered < rows else []
    if unknown:
        found = f"unknown group {check.shown(unknown[0])}; known groups: {_listed(known)}."
        remedy = "calibrate with rows of it, or merge small groups beforehand (merge_groups)."
        raise InvalidInput("groups", f"{found} Nothing is promised for it: {remedy}")
    return masks


def refuse_everyone(known: bool) -> None:
    """Raise where a group has the name that stands for all rows."""
    if known:
        both = f"the target of {EVERYONE!r} is about all rows, and there is a group of that name"
        raise InvalidInput("groups", f"{both}; give the group another name, or leave its mask out.")


def _with_everyone(groups: Any, known: list[str], rows: int, *, overlapping: bool) -> dict[str, Mask]:
    mine = [name for name in known if name != EVERYONE]
    names = check.as_groups(groups) if not overlapping and groups is not None else groups
    refuse_everyone(names is not None and EVERYONE in names)
    if not overlapping and names is not None:
        check.require_length(names, rows, "groups")
        groups, overlapping = {name: names == name for name in mine}, True
    masks = pool_members(groups, mine, rows, overlapping=overlapping)
    return {name: masks.get(name, np.ones(rows, dtype=np.bool_)) for name in known}


def _listed(names: list[str]) -> str:
    return ", ".join(repr(name) for name in sorted(names))
