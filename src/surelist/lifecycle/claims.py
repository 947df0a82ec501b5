"""What a monitor tests, is fed and keeps: claims about rates, reviews of pools in numbers, its state.

Missing reviews are never taken for an outcome: they count as whatever speaks for the promise in the
alarm, and both ways in the interval [theory: watching, recall-alarm].
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct, field
from msgspec.structs import asdict, astuple

from surelist import _check as check, _numerals as numerals
from surelist._files import Chance, Count, hold
from surelist._names import option
from surelist.bounds import betting
from surelist.errors import InvalidInput
from surelist.filters import LISTS
from surelist.lifecycle.state import Memory, Rate, State
from surelist.promises.phrases import counted, percent
from surelist.promises.policy import Policy
from surelist.promises.promise import Watched
from surelist.promises.state import Cutoff

TRIAGE_UNSEEN = (
    "a triage cannot be watched without an audit: those accepted and rejected are never reviewed. Review "
    "each candidate with a fixed probability, on whichever list"
)
UNLISTED_UNSEEN = (
    "a promise to keep a share cannot be watched without an audit: qualified candidates who were not "
    "shortlisted are never reviewed. Review each unlisted candidate with a fixed probability"
)


class Outcomes(Struct, frozen=True, forbid_unknown_fields=True):
    """What reviews have shown. Missing reviews are counted apart, never taken for an outcome.

    ``successes`` are known, ``unreviewed`` might be. Of an audit: ``missed`` candidates turned out
    qualified though unlisted, ``unaudited`` ones were drawn and not reviewed.
    """

    trials: int = 0
    successes: int = 0
    unreviewed: int = 0
    missed: int = 0
    unaudited: int = 0

    def __add__(self, other: Outcomes) -> Outcomes:
        return Outcomes(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))

    def __sub__(self, other: Outcomes) -> Outcomes:
        return Outcomes(*(a - b for a, b in zip(astuple(self), astuple(other), strict=True)))


class Tally(Struct, forbid_unknown_fields=True):
    """The counts of one group: in all, and before the threshold last changed."""

    group: str | None
    total: Outcomes = field(default_factory=Outcomes)
    before: Outcomes = field(default_factory=Outcomes)
    log_wealth: list[float] = field(default_factory=list)  # of the bets, where this is in a file

    @property
    def since(self) -> Outcomes:
        """The counts since the threshold last changed."""
        return self.total - self.before


class Alarm(Struct, frozen=True, forbid_unknown_fields=True):
    """When the alarm was raised; it stays raised."""

    pools: int
    review_id: str | None
    e_value: float

    def describe(self, alpha: float) -> str:
        last = f", the last one {self.review_id!r}," if self.review_id is not None else ""
        return (
            f"the reviews of {counted(self.pools, 'pool')}{last} speak against it (evidence "
            f"{numerals.number(self.e_value, 3)}, alarm at {numerals.number(1 / alpha, 3)}; a false alarm "
            f"has probability at most {percent(alpha)}). Something has changed, or the calibration was among "
            "the rare ones that fail. Recalibrate on fresh rows."
        )


class Watch(Struct, forbid_unknown_fields=True):
    """All that a monitor knows, the policy aside."""

    alpha: Chance
    audit_rate: Rate | None
    pools: Count
    tallies: list[Tally]
    alarm: Alarm | None
    memory: Memory

    def verify(self) -> None:
        """What can be checked without the policy."""
        for tally in self.tallies:
            whole = min(astuple(tally.before) + astuple(tally.since)) >= 0
            fitting = tally.total.successes + tally.total.unreviewed <= tally.total.trials
            possible = whole and fitting and len(tally.log_wealth) == len(betting.DROPS)
            hold(possible, "the monitor's counts are impossible")
        if self.alarm is not None:
            hold(self.alarm.e_value * self.alpha >= 1 - 1e-9, "the alarm's e-value is below its level")


class MonitorState(State, kw_only=True, forbid_unknown_fields=True):
    """What a monitor knows, and the policy it watches."""

    kind: Literal["surelist monitor"] = "surelist monitor"
    policy: dict[str, Any]
    watch: Watch

    def verify(self) -> None:
        self.watch.verify()


class PoolReview(Struct, frozen=True):
    """What was seen of one pool, for one group."""

    qualified: int
    pool_size: int
    unreviewed: int = 0
    missed: int = 0
    unaudited: int = 0

    @property
    def note(self) -> str:
        """All of it, to tell a replay from a correction."""
        more = (self.unreviewed, self.missed, self.unaudited)
        return f"{self.qualified}/{self.pool_size}" + ("+" + "+".join(map(str, more)) if any(more) else "")


class Claim(Watched, kw_only=True, frozen=True):
    """What is tested for one group, and with which probability a trial that is audited was seen.

    A trial is a candidate of a pool (1 = qualified and on the shortlist) for ``Expected`` targets, a
    whole pool (1 = at least ``k`` of them) for ``PerPool`` targets, and for ``Recall`` a qualified
    candidate, seen on the list (1) or, with probability ``audit_rate``, in the audit (0). Of ``drawn`` lists
    of a triage it is a candidate drawn for the audit [theory: triage-alarm].
    """

    group: str | None
    audit_rate: float | None

    @property
    def whose(self) -> str:
        """The group that it is about, where there are groups."""
        return "" if self.group is None or self.drawn else self.group

    @property
    def counted(self) -> str:
        """What the rate is a share of, and what they do, in words."""
        if self.drawn:
            return self.words
        if self.audit_rate is not None:
            return "qualified candidates are on the list"
        if self.k is None:
            return "candidates are qualified and shortlisted"
        return f"pools list {counted(self.k, 'qualified candidate')} or more"

    def describe(self, counts: Outcomes) -> str:
        """What was seen, and what was not, for a person."""
        unreviewed = f"{counts.unreviewed:,} more on the shortlists have no review" * bool(counts.unreviewed)
        unaudited = ""
        if self.drawn:
            missing = counts.unreviewed + counts.unaudited
            seen, what = counts.trials - counts.unreviewed, self.words.removeprefix("the ")
            known = f"of those drawn {counts.successes:,} of {seen:,} {what}"
            unreviewed = f"{missing:,} drawn have no review" * bool(missing)
        elif self.audit_rate is not None:
            among = f"the {percent(self.audit_rate)} of the others who were audited"
            known = f"{counts.successes:,} qualified candidates on the lists, {counts.missed:,} among {among}"
            unaudited = f"{counts.unaudited:,} drawn for the audit have no review" * bool(counts.unaudited)
        elif self.k is None:
            known = f"{counts.successes:,} of {counts.trials:,} candidates qualified and shortlisted"
        else:
            known = f"{counts.successes:,} of {counts.trials:,} pools with enough"
            unreviewed = f"{counts.unreviewed:,} more for lack of reviews unknown" * bool(counts.unreviewed)
        return ", ".join(filter(None, (known, unreviewed, unaudited)))

    def whatever(self, counts: Outcomes) -> str:
        """How much is not known, to go behind an interval that allows for all of it."""
        missing = counts.unreviewed + counts.unaudited
        if self.k is None:
            return f", whatever {counted(missing, 'missing review')} would say" * bool(missing)
        return f", whatever the missing reviews of {counted(missing, 'pool')} would say" * bool(missing)

    def counts(self, review: PoolReview) -> Outcomes:
        """Trials and successes of one reviewed pool; what is not known stays unknown."""
        if self.audit_rate is not None:
            seen = review.qualified + review.unreviewed + review.missed
            return Outcomes(seen, review.qualified, review.unreviewed, review.missed, review.unaudited)
        if self.k is None:
            return Outcomes(review.pool_size, review.qualified, review.unreviewed)
        enough, perhaps = review.qualified >= self.k, review.qualified + review.unreviewed >= self.k
        return Outcomes(1, int(enough), int(perhaps) - int(enough))

    def bets(self, logs: Any = None, pools: int = 0) -> betting.Bets:
        return betting.Bets(self.rate, logs, pools, self.audit_rate)

    def interval(self, counts: Outcomes, alpha: float) -> tuple[float, float]:
        """Where the rate lies, whatever the missing reviews would have said."""
        least, most = counts.successes, counts.successes + counts.unreviewed
        if self.audit_rate is not None:
            missed = counts.missed, counts.missed + counts.unaudited
            return betting.recall_interval(self.audit_rate, (least, most), missed, alpha)
        low, _ = betting.interval(self.rate, counts.trials, least, alpha)
        _, high = betting.interval(self.rate, counts.trials, most, alpha)
        return low, high


def claims_of(policy: Policy, audit_rate: float | None) -> tuple[Claim, ...]:
    """What can be tested of a policy; raises where nothing can."""
    if policy.of_collection:
        raise InvalidInput(
            "policy",
            f"no later pool can show whether it holds: {policy.not_of_these}. Watch a promise about future "
            "pools, made from labelled rows.",
        )
    if why := next((each.proof.unjudged for each in policy.cutoffs if each.proof.unjudged), None):
        raise InvalidInput("policy", f"no review can show whether it holds: {why}.")
    if not policy.grouped and len(policy.cutoffs) > 1:
        raise InvalidInput("policy", "it makes several promises of one list; watch each on its own.")
    pairs = ((cutoff, watched) for cutoff in policy.cutoffs for watched in cutoff.target.watched(policy))
    claims = tuple(_claim(cutoff, watched, audit_rate) for cutoff, watched in pairs)
    if audit_rate is not None and not all(cutoff.target.needs_audit for cutoff in policy.cutoffs):
        raise InvalidInput("audit_rate", "an audit goes with Recall and Triage promises only; leave it out.")
    return claims


def _claim(cutoff: Cutoff, watched: Watched, audit_rate: float | None) -> Claim:
    rate = None
    if watched.audited or watched.drawn:
        if audit_rate is None:
            why = TRIAGE_UNSEEN if watched.drawn else UNLISTED_UNSEEN
            raise InvalidInput("audit_rate", f"{why}{option('audit_rate', '0.05', before=', e.g. ')}.")
        rate = check.as_alpha(audit_rate, "audit_rate")
    if watched.drawn:
        # on every list one was drawn with the same probability: among those drawn nobody is seen more rarely
        rate = 1.0 if watched.audited else None
    return Claim(**asdict(watched), group=watched.part or cutoff.group, audit_rate=rate)


def reviews_of(claims: Sequence[Claim], shared_size: bool, given: Mapping[str, object]) -> list[PoolReview]:
    """One review per claim from what ``Monitor.observe`` was given; mappings where there are groups."""
    if claims[0].drawn:
        for name, nothing in (("pool_size", None), ("missed", None), ("unaudited", 0)):
            if given[name] != nothing:
                remedy = "give drawn= and qualified= by list; missing reviews are unreviewed={...}."
                raise InvalidInput(name, f"goes with no triage: {remedy}")
        return [_fitting(claim, _drawn(claim, given)) for claim in claims]
    if given["drawn"] is not None:
        raise InvalidInput("drawn", "goes with a triage, whose three lists are audited; leave it out.")
    given = {name: value for name, value in given.items() if name != "drawn"}
    audited = claims[0].audit_rate is not None
    if audited != (given["missed"] is not None):
        if not audited:
            raise InvalidInput("missed", "this monitor has no audit rate, so no audit; leave it out.")
        wanted = "how many of the audited candidates turned out qualified"
        raise InvalidInput("missed", expected=wanted, got="nothing")
    reviews = []
    for claim in claims:
        numbers = {}
        for name, value in given.items():
            if audited or name != "missed":
                mine = value if shared_size and name == "pool_size" else _of(value, claims, claim, name)
                whose = name if claim.group is None else f"{name}[{claim.group!r}]"
                numbers[name] = check.as_count(mine, whose, least=0)
        reviews.append(_fitting(claim, PoolReview(**numbers)))
    return reviews


def _drawn(claim: Claim, given: Mapping[str, Any]) -> PoolReview:
    """Of a triage: those drawn for the audit, by the list that they are on."""
    numbers: dict[str, dict[str, int]] = {}
    for name in ("drawn", "qualified", "unreviewed"):
        value = {} if name == "unreviewed" and given[name] == 0 else given[name]
        if not isinstance(value, Mapping) or not set(value) <= set(LISTS):
            raise InvalidInput(name, expected=f"a mapping of {', '.join(LISTS)} to numbers", got=repr(value))
        if missing := [each for each in claim.drawn if each not in value and name != "unreviewed"]:
            raise InvalidInput(name, expected=f"a number for {missing[0]!r}", got=repr(dict(value)))
        numbers[name] = {
            each: check.as_count(value.get(each, 0), f"{name}[{each!r}]", least=0) for each in claim.drawn
        }
    *kept, last = claim.drawn
    seen, good, unknown = numbers["drawn"], numbers["qualified"], numbers["unreviewed"]
    for each in claim.drawn:
        if good[each] + unknown[each] > seen[each]:
            most = f"at least all who are counted, {good[each] + unknown[each]}"
            raise InvalidInput(f"drawn[{each!r}]", expected=most, got=str(seen[each]))
    if kept:
        held, perhaps = sum(good[each] for each in kept), sum(unknown[each] for each in kept)
        return PoolReview(held, sum(seen.values()), perhaps, good[last], unknown[last])
    right = seen[last] - good[last] - unknown[last] if claim.unqualified else good[last]
    return PoolReview(right, seen[last], unknown[last])


def _fitting(claim: Claim, review: PoolReview) -> PoolReview:
    """The review, if its numbers go together and with the promise."""
    size = review.pool_size
    counted = review.qualified + review.unreviewed + review.missed + review.unaudited
    if review.qualified > size:
        raise InvalidInput("qualified", expected=f"at most the pool size, {size}", got=f"{review.qualified}")
    if counted > size:
        raise InvalidInput("pool_size", expected=f"at least all who are counted, {counted}", got=f"{size}")
    if size < claim.smallest_pool:
        raise InvalidInput(
            "pool_size", f"the promise covers pools of {claim.smallest_pool} or more, got {size}."
        )
    return review


def _of(value: object, claims: Sequence[Claim], claim: Claim, name: str) -> Any:
    if claim.group is None or (value == 0 and name != "qualified" and not isinstance(value, Mapping)):
        return value
    groups = sorted(str(each.group) for each in claims)
    if not isinstance(value, Mapping):
        raise InvalidInput(name, expected=f"a mapping with the groups {groups}", got=repr(value))
    given = {check.group_name(key, name): each for key, each in value.items()}
    if sorted(given) != groups:
        raise InvalidInput(name, expected=f"the groups {groups}", got=f"{sorted(given)}")
    return given[claim.group]
