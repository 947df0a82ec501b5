"""Which shortlisted candidates of a campaign have been reviewed, in bounded space."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from surelist import _check as check
from surelist._arrays import Floats, Mask
from surelist._files import Count
from surelist._names import option
from surelist._randomness import fresh_generator
from surelist.errors import InvalidInput, UnreviewedWarning

CHARACTERS = 300_000  # of ids and scores that are kept; older pools are closed and forgotten
LONGEST = 100
UNKNOWN, QUALIFIED, OTHER = "?", "1", "0"  # the mark of each candidate to review
LISTED, BOTH, AUDITED = "l", "b", "a"  # with an audit: on the list, on the list and drawn, drawn alone


class Screened(Struct, forbid_unknown_fields=True, dict=True):
    """A pool's shortlist and its reviews; ``labels`` has one mark per candidate.

    With an audit the candidates drawn for it are here too, and ``draws`` says for each why.
    """

    pool: str
    size: int
    look: int | None  # the look that gave the threshold; None while everyone is shortlisted
    ids: list[str]
    scores: list[float]
    labels: str
    closed: bool = False
    draws: str | None = None

    @property
    def unknown(self) -> int:
        return self.labels.count(UNKNOWN)

    @property
    def done(self) -> bool:
        return self.closed or self.unknown == 0

    @property
    def on_list(self) -> str:
        """The marks of those on the shortlist."""
        if self.draws is None:
            return self.labels
        return "".join(mark for mark, draw in zip(self.labels, self.draws, strict=True) if draw != AUDITED)

    @property
    def qualified(self) -> int:
        """How many on the shortlist are known to be qualified."""
        return self.on_list.count(QUALIFIED)

    @property
    def unreviewed(self) -> int:
        """How many on the shortlist have no review."""
        return self.on_list.count(UNKNOWN)

    @property
    def audit(self) -> list[str]:
        """Whom to review beside the shortlist."""
        draws = self.draws or ""
        return [name for name, draw in zip(self.ids, draws, strict=False) if draw == AUDITED]

    @property
    def evidence(self) -> Mask:
        """Whose reviews the threshold is learned from: everyone's, or those drawn where there is an audit."""
        if self.draws is None:
            return np.ones(len(self.ids), dtype=np.bool_)
        return np.asarray(np.frombuffer(self.draws.encode(), dtype=np.uint8) != ord(LISTED))

    @property
    def missing(self) -> int:
        """How many reviews of the evidence have not come."""
        unknown = np.frombuffer(self.labels.encode(), dtype=np.uint8) == ord(UNKNOWN)
        return int(np.count_nonzero(unknown & self.evidence))

    @cached_property
    def cost(self) -> int:
        return 60 + sum(map(len, self.ids)) + 30 * len(self.ids)


def as_candidates(ids: Any, scores: Any) -> list[str]:
    """Candidate ids as text, one for each of the scores, unique and short enough to be kept."""
    check.require_one_index(scores=scores, ids=ids)
    texts = check.as_ids(ids, len(scores))
    for text in texts:
        if len(text) > LONGEST:
            raise InvalidInput("ids", expected=f"at most {LONGEST} characters", got=repr(text))
    return texts


def as_draws(listed: Mask, drawn: Mask) -> str:
    """Why each of these candidates is to be reviewed."""
    signs = np.where(listed, np.where(drawn, BOTH, LISTED), AUDITED)
    return "".join(signs.tolist())


def coins(candidates: int) -> Floats:
    """One number from 0 to 1 per candidate, fresh at every call; drawn are those below the audit rate.

    Whoever draws records it.
    """
    return fresh_generator().random(candidates)


def require_list(
    scores: Floats, size: int, threshold: Any, in_force: float | None, draws: str | None = None, *,
    audit: bool = False,
) -> None:  # fmt: skip
    """Refuse a list that was made elsewhere unless it is that of the threshold in force, and says who was
    drawn for the audit where there is one."""
    if draws is not None and not audit:
        raise InvalidInput("draws", "this campaign has no audit_rate, so there is no audit; leave it out.")
    if draws is None and audit:
        raise InvalidInput(
            "audit_rate", f"the audit is drawn while screening; use screen(), or pass {option('draws')}."
        )
    if draws is not None and (len(draws) != len(scores) or not set(draws) <= {LISTED, BOTH, AUDITED}):
        wanted = f"one of {LISTED}, {BOTH} and {AUDITED} for each of {len(scores)} candidates"
        raise InvalidInput("draws", expected=wanted, got=repr(draws[:60]))
    if threshold != in_force:
        side = "below" if in_force is None or threshold < in_force else "above"
        raise InvalidInput(
            "threshold",
            expected=f"the one in force, {in_force!r}",
            got=f"{threshold!r}, {side} it",
            remedy="It changes at scheduled updates only; screen with campaign.policy as it is now.",
        )
    if len(scores) > size:
        raise InvalidInput("scores", expected=f"at most {size:,} values, the pool size", got=f"{len(scores)}")
    alone = np.asarray([each == AUDITED for each in draws or LISTED * len(scores)], dtype=np.bool_)
    listed = np.ones(len(scores), dtype=np.bool_) if threshold is None else scores >= threshold
    for row in np.flatnonzero(listed == alone)[:1]:
        side = "of a candidate drawn alone, though it" if alone[row] else "of a listed candidate, which"
        passes = "passes" if alone[row] else "does not pass"
        raise InvalidInput("scores", f"got {scores[row]!r} at position {row}, {side} {passes} {threshold!r}.")


class PoolReviews(Struct, forbid_unknown_fields=True, dict=True):
    """The latest pools of a campaign, by name; ``waiting`` are those the monitor has not seen yet.

    The oldest pools are dropped when all together take too much space. One that still waits for
    reviews is closed first; it stays in the evidence with them as not qualified.
    """

    kept: dict[str, Screened] = field(default_factory=dict)
    waiting: list[str] = field(default_factory=list)
    missing: Count = 0  # labels and reviews that have not come, of all rows so far
    watched: int | None = None  # the look under which the monitor's last pool was screened

    def __post_init__(self) -> None:
        self._cost = sum(each.cost for each in self.kept.values())

    def open(self, screened: Screened) -> None:
        self.kept[screened.pool] = screened
        self.waiting.append(screened.pool)
        self.missing += screened.missing
        self._cost += screened.cost

    def add(self, screened: Screened, labels: object, ids: object) -> tuple[int, Floats]:
        """How many reviews are new, and the scores of the qualified ones that are evidence."""
        check.require_one_index(labels=labels, ids=ids)
        known = check.as_known_labels(labels)
        present = ~np.isnan(known)
        rows = _rows(screened, ids, len(known))[present]
        given = np.where(known[present] == 1, ord(QUALIFIED), ord(OTHER)).astype(np.uint8)
        marks = np.frombuffer(screened.labels.encode(), dtype=np.uint8).copy()
        before = marks[rows]
        new = before == ord(UNKNOWN)
        for row in rows[~new & (before != given)][:1]:
            raise InvalidInput(
                "labels",
                f"candidate {screened.ids[row]!r} of pool {screened.pool!r} was reviewed as "
                f"{screened.labels[row]} before. Evidence that was used cannot be taken back; start a new "
                "campaign on fresh rows if earlier reviews were wrong.",
            )
        if new.any() and screened.closed:
            raise InvalidInput(
                "pool", f"{screened.pool!r} was closed; its late reviews are not counted any more."
            )
        marks[rows] = given
        screened.labels = marks.tobytes().decode()
        used = new & screened.evidence[rows]
        self.missing -= int(np.count_nonzero(used))
        good = rows[used & (given == ord(QUALIFIED))]
        return int(np.count_nonzero(new)), np.asarray(screened.scores)[good]

    def ready(self) -> Iterator[Screened]:
        """Complete pools, in the order of screening; stops at the first that is not."""
        self._make_room()
        while self.waiting and self.kept[self.waiting[0]].done:
            yield self.kept[self.waiting.pop(0)]
        self._drop()

    def _make_room(self) -> None:
        """Close what is too old to be waited for."""
        cost = self._cost
        for screened in islice(self.kept.values(), len(self.kept) - 1):
            if cost <= CHARACTERS:
                break
            cost -= screened.cost
            if not screened.done:
                screened.closed = True
                warnings.warn(
                    f"pool {screened.pool!r} is closed to make room for newer ones: {screened.unknown} of "
                    "its reviews have not come. They stay not qualified in the evidence, and unknown to the "
                    "monitor.",
                    UnreviewedWarning,
                    stacklevel=5,
                )

    def _drop(self) -> None:
        while self._cost > CHARACTERS and len(self.kept) > 1:
            oldest = next(iter(self.kept.values()))
            if self.waiting and oldest.pool == self.waiting[0]:  # both are in the order of screening
                break
            self._cost -= oldest.cost
            del self.kept[oldest.pool]


def _rows(screened: Screened, ids: object, labels: int) -> NDArray[np.intp]:
    who = "shortlisted candidate" if screened.draws is None else "shortlisted or audited candidate"
    if ids is None:
        if labels != len(screened.ids):
            raise InvalidInput(
                "labels",
                expected=f"{len(screened.ids)} values, one per {who} of pool {screened.pool!r}",
                got=f"{labels}",
                remedy=f"Pass {option('ids')} for a part of them.",
            )
        return np.arange(labels)
    row_of = {text: row for row, text in enumerate(screened.ids)}
    texts = check.as_ids(ids, labels)
    unknown = [text for text in texts if text not in row_of]
    if unknown:
        where = "on the shortlist" if screened.draws is None else "on the shortlist or in the audit"
        raise InvalidInput(
            "ids",
            f"{unknown[0]!r} is not {where} of pool {screened.pool!r} ({len(unknown)} such). Only "
            f"{who}s are reviewed.",
        )
    return np.asarray([row_of[text] for text in texts], dtype=np.intp)
