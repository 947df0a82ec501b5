"""At least a share of the shortlist is qualified, by a fixed sequence of tests [theory: precision].

Thresholds come from unlabelled scores, so that they can be tested on the labelled rows one after another.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Annotated

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from surelist import _check as check, bounds
from surelist._arrays import Floats, Ints, Mask
from surelist._files import hold
from surelist._numerals import about, number, of_every
from surelist.bounds._tails import safe
from surelist.bounds.precision import chances, passing
from surelist.errors import InvalidInput, NotCertifiable
from surelist.promises import phrases
from surelist.promises.conditions import BESIDE, GIVEN, OF_LABELLING, ONE_LIST, Proved
from surelist.promises.curve import PromiseCurve, count_at_least, drawn
from surelist.promises.evidence import Evidence, RowColumns
from surelist.promises.judging import RowsSeen, ShareSeen
from surelist.promises.options import SHARE, share_option
from surelist.promises.phrases import counted, percent
from surelist.promises.promise import Level, PageChoice, Promise, Proof
from surelist.promises.state import Certificate, Certified, Cutoff, Step, refuse

STARTS = (0.02, 0.05, 0.12, 0.3)  # list shares where the walk begins if no plan says so
START = share_option(
    "For precision: the share of candidates on the first list tested.", "the list to begin with"
)
SHIFTS = ("known", "within")
RATIO = 1.05  # a step of the walk makes the list this much longer


class Precision(Promise, tag="precision", frozen=True):
    """At least a ``share`` of the shortlist is qualified, and the list is as long as can be certified.

    The lists come from ``unlabelled=`` scores [theory: precision]; of a collection in hand, from
    ``Labelling`` [theory: collection-precision].

    Parameters
    ----------
    share : float
        Between 0 and 1.
    start : float, optional
        The share of candidates on the first list tested, fixed beforehand: about half the list that is hoped
        for, from a plan (which may be given itself) or a pilot. Without it four first lists share alpha.

    Examples
    --------
    >>> import surelist as sl
    >>> sl.Precision(0.8, start=0.1).describe()
    'at least 80% of the shortlist qualified'
    """

    page = (
        PageChoice(
            "precision",
            "Of those listed",
            "At least {precision=share:80|Percent of the list that is qualified} % of those listed are "
            "qualified, in the long run. Begin with a list of {start?|Percent of candidates on the first "
            "list} % of candidates: about half of what is hoped for, from a pilot, never from these labels "
            "(may stay empty, at a price).",
        ),
    )
    labelled = PageChoice(
        "precision",
        "A list that is mostly right",
        "A list of these very candidates of which at least {purity=share:90|Percent of the list that is "
        "qualified} % are qualified, as long as can be certified.",
    )
    help = "At least this share of the list is qualified; needs unlabelled scores."
    flags = (("precision", "share"),)
    alias = "precision"
    sample = "prefix"
    others = "needed"
    planned = True
    longest = True
    certified = ("Of the list qualified, at least, %", "Qualified, %", True)
    single_list = phrases.LONG_RUN

    proved_with = (
        Proved("precision", labels=("missing", "thinned"), others=GIVEN, **ONE_LIST),
        Proved("shift", labels=("missing",), shift=SHIFTS, others=GIVEN, pools=BESIDE, **ONE_LIST),
        replace(OF_LABELLING, section="collection-precision"),
    )

    share: Annotated[float, replace(SHARE, words="the share of the list")]
    start: Annotated[float | None, START] = None

    def __post_init__(self) -> None:
        check.set_value(self, "start", getattr(self.start, "start", self.start))  # a plan says where
        super().__post_init__()

    @property
    def starts(self) -> tuple[float, ...]:
        return STARTS if self.start is None else (self.start,)

    def describe(self) -> str:
        return f"at least {100 * self.share:g}% of the shortlist qualified"

    @property
    def kept_share(self) -> Fraction:
        return check.as_fraction(self.share, "share")

    def of_collection(self) -> Precision:
        if self.start is not None:
            chosen = "a labelling's own pilot chooses the first list tested; leave it out."
            raise InvalidInput("start", chosen)
        return self

    def widened(self, within: float) -> Precision:
        return replace(self, share=phrases.more_odds(self.share, within))

    def claim(self, cutoff: Cutoff, policy: Certificate) -> str:
        listed = "of those whom this policy shortlists are qualified, in the long run"
        return f"at least {percent(self.share)} {listed}"

    def plainly(self, cutoff: Cutoff, policy: Certificate) -> str:
        listed = policy.listed_per(cutoff)
        tail = "" if listed is None else f", with about {about(listed[0])} listed per {number(listed[1])}"
        return f"in the long run at least {of_every(self.share)} candidates listed will be qualified{tail}"

    def shares_seen(self, cutoff: Cutoff, policy: Certificate, seen: RowsSeen) -> tuple[ShareSeen, ...]:
        words, nobody = "of the list is qualified", "none of the rows is listed"
        return (ShareSeen(seen.listed & seen.good, seen.listed, self.share, words, nobody),)

    def certify(self, evidence: Evidence, level: Level, most: float = math.inf) -> Certified:
        """The longest list that passes; under another promise the first that is long enough for it."""
        others = evidence.require_others()
        thresholds, levels, places = grid(others, self.starts, (1,) * len(self.starts), level.alpha)
        tested = Tested.of(evidence.scores, evidence.good, thresholds, self.share)
        passed = passing(tested.chances, levels)
        fitting = np.flatnonzero(passed & (thresholds <= most))
        if not len(fitting):
            raise self._refusal(evidence, level, float(thresholds[0]), most)
        at = int(fitting[0] if most < math.inf else fitting[-1])  # the list just long enough, or the longest
        begun = at + 1 - in_a_row(passed, at)
        start = self.starts[int(np.argmax(places == begun))]  # ties may have made several first lists one
        listed, held = int(tested.listed[at]), int(tested.right[at])
        parts = _parts(float(tested.chances[at]), level.alpha, len(self.starts))
        proof = FixedSequence(len(others), start, len(self.starts), at + 1 - begun, listed, held, parts)
        step = Step(0, held, float(thresholds[at]))
        return Certified((step,), evidence.rows, evidence.qualified, proof)

    def _refusal(self, evidence: Evidence, level: Level, first: float, most: float) -> NotCertifiable:
        listed, reach = evidence.scores >= first, float(np.mean(evidence.other_scores >= first))
        held, of = int(np.count_nonzero(evidence.good & listed)), int(np.count_nonzero(listed))
        holds = f"The first list, {percent(reach)} of candidates, holds {held:,} qualified of {of:,}"
        few = f"calibration rows, which is not enough to be sure of {percent(self.share)}: start where"
        reason = f"{holds} {few} the list is surer, ask for a smaller share, or bring more rows."
        if most < math.inf:
            reason = "No list that is long enough for the other promise passed: ask for less of one of them."
        return refuse(self, level, evidence, reason)


def grid(
    others: Floats, starts: Sequence[float], weights: Sequence[float], alpha: float, ratio: float = RATIO
) -> tuple[Floats, Floats, Ints]:
    """Thresholds from a list of the first of ``starts`` of the unlabelled scores on, each list a little
    longer, the alpha of each, by ``weights`` of the starts that it is, and the places of the starts."""
    total = len(others)
    firsts = [max(1, math.ceil(check.as_fraction(start, "start") * total)) for start in starts]
    ranks = firsts[:1]
    while ranks[-1] < total:
        ranks.append(min(total, max(ranks[-1] + 1, math.floor(ranks[-1] * ratio))))
    lists = np.union1d(ranks, firsts)
    thresholds: Floats = np.partition(others, total - lists)[total - lists]
    another = np.append(True, np.diff(thresholds) < 0)
    levels = np.zeros(np.count_nonzero(another))
    places = (np.cumsum(another) - 1)[np.searchsorted(lists, firsts)]
    np.add.at(levels, places, alpha * np.asarray(weights) / sum(weights))
    return np.asarray(thresholds[another]), levels, places


class Tested(Struct, frozen=True):
    """Of lists of scores that reach thresholds: rows, those as claimed, and the chance of so many."""

    listed: Ints
    right: Ints
    chances: Floats

    @classmethod
    def of(cls, scores: Floats, right: Mask, thresholds: Floats, share: float) -> Tested:
        listed, held = (count_at_least(each, thresholds) for each in (scores, scores[right]))
        return cls(listed, held, chances(listed, held, share))


def in_a_row(passed: Mask, at: int) -> int:
    """How many lists passed without a gap, the one at this place last."""
    failed = np.flatnonzero(~passed[:at])
    return at - (int(failed[-1]) if len(failed) else -1)


def _parts(chance: float, alpha: float, starts: int) -> int:
    """How many parts of alpha it takes to pass."""
    return next((parts for parts in range(1, starts) if chance <= safe(alpha * parts / starts)), starts)


class FixedSequence(Proof, tag="fixed-sequence", frozen=True):
    """The walk ended at a list of ``listed`` calibration rows, ``good`` of them qualified.

    ``start`` is the share of unlabelled scores where these lists began; with ``starts`` of them alpha has as
    many parts, and the list passed with ``parts`` of them. ``steps`` lists passed in a row, this one last.
    """

    unlabelled: int
    start: float
    starts: int
    steps: int
    listed: int
    good: int
    parts: int = 1

    def of_the_rule(self, cutoff: Cutoff) -> tuple[str, ...]:
        plan = f"No plan said where to begin, so {self.starts} first lists share alpha."
        if self.starts == 1:
            plan = f"The first list tested was the best {percent(self.start)} of candidates, with all who tie"
            plan += " with the last of them, fixed before looking at these rows."
        long_run = (
            "The share is that of all who are ever shortlisted by this policy; a single list may hold less."
        )
        return *phrases.ALL_ROWS, phrases.OTHER_SCORES, plan, long_run

    def evidence(self, cutoff: Cutoff) -> str:
        held = f"{phrases.number(self.good)} of {counted(self.listed, 'calibration row')} on the list"
        passed = f"{counted(self.steps, 'list')} in a row passed, from the shortest on"
        return f"{held} are qualified; {passed}"

    def check(self, cutoff: Cutoff) -> None:
        promise = cutoff.promised(Precision)
        possible = 0 <= self.good <= self.listed <= cutoff.rows and self.good <= cutoff.qualified
        hold(possible and self.unlabelled >= 1, "the row counts are impossible")
        planned = self.starts == len(promise.starts) and self.start in promise.starts
        hold(planned, "the start is not the one planned")
        hold(self.steps >= 1, "no list passed")
        chance = float(chances(np.array([self.listed]), np.array([self.good]), promise.share)[0])
        fits = _parts(chance, cutoff.level.alpha, self.starts) == self.parts
        hold(fits and chance <= safe(cutoff.level.alpha), "its list does not pass")

    def curve(self, cutoff: Cutoff, rows: RowColumns) -> PromiseCurve:
        alpha = cutoff.level.alpha * self.parts / self.starts

        def certified(listed: Ints, held: Ints) -> Floats:
            pairs = zip(listed.tolist(), held.tolist(), strict=True)
            return np.asarray([bounds.largest_rate(of, n, alpha) if of else 0.0 for of, n in pairs])

        return drawn(cutoff, rows, cutoff.promised(Precision).share, certified)
