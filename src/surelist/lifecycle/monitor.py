"""Does the promise still hold? An anytime-valid alarm from reviewed pools.

The bets and their proof live in ``bounds.betting``, what is tested and kept in ``claims``, the check of
scores without labels in ``drift``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Literal, Self

import numpy as np
from msgspec.structs import replace

from surelist import _check as check, _numerals as numerals
from surelist._arrays import Mask
from surelist._files import Versions, hold
from surelist.drawing import Display, axes
from surelist.errors import InvalidInput
from surelist.lifecycle import claims
from surelist.lifecycle.claims import Alarm, Claim, MonitorState, Tally, Watch, claims_of
from surelist.lifecycle.reviewed import coins
from surelist.lifecycle.state import Memory, Saved, as_name, now
from surelist.promises import policy_file
from surelist.promises.phrases import counted, number, percent
from surelist.promises.policy import Policy, as_policy

Standing = Literal["holding", "too early to say", "alarm"]
UNKNOWN = ", whatever the missing reviews would say; in the alarm they speak for the promise."


class Monitor(Saved[MonitorState]):
    """Watches one policy: feed complete reviewed pools in order, read ``e_value`` and ``alarm``.

    Tests "the promised rate holds" for every group by betting [theory: watching]. If it
    does hold, the chance that ``alarm`` *ever* becomes true is at most ``alpha``, however many
    pools follow and however often it is read. Proof: see ``betting``; for several groups the
    average of the groups' e-values is again a non-negative supermartingale that starts at 1, in
    pool order, when all their promises hold.

    The order of pools is fixed before their outcomes are seen (the order of screening), and a
    pool is fed once all its reviews are in: skipping slow pools, feeding them by order of
    completion or counting missing reviews as zeros raises false alarms.

    ``Expected`` targets are tested per candidate. ``PerPool`` targets with ``rule="pac"`` or
    ``"bernstein"`` are tested per pool, against the share of pools that may fall short.
    ``PerPool`` with ``rule="exact"`` is refused: its alpha is an average over calibration
    samples, so a sound policy may have a higher failure rate for its own sample, and an alarm
    would be no news. ``Recall`` targets need an audit of the unlisted, ``audit_rate``, and are
    tested per qualified candidate that reviews or audit have shown. ``Triage`` needs an audit of
    everyone; both its promises are tested, on those drawn [theory: triage-alarm].

    Reviews that never come are told with ``unreviewed=``. In the alarm they count as qualified, in
    the interval both ways: never as an outcome that nobody has seen.

    Parameters
    ----------
    policy
        A ``Policy``, or the path of its file.
    alpha
        How often a false alarm may be raised, over the whole future.
    audit_rate
        For ``Recall``: the probability with which every candidate who is not shortlisted is reviewed
        all the same, independently of everything else; ``draw_audit`` draws them. For ``Triage``: that
        with which every candidate is drawn for the audit, on whichever list.

    Examples
    --------
    >>> import numpy as np
    >>> import surelist as sl
    >>> from surelist.examples import population
    >>> scores, labels = population(np.random.default_rng(6), 1_000)
    >>> monitor = sl.Monitor(sl.calibrate(scores, labels, sl.Expected(5, 100)))
    >>> for pool in range(30):
    ...     new = monitor.observe(qualified=2, pool_size=100)  # far fewer than promised
    >>> monitor.alarm
    True
    """

    _shape = MonitorState

    def __init__(
        self, policy: Policy | str | PathLike[str], alpha: float = 0.05, *, audit_rate: float | None = None
    ) -> None:
        policy = as_policy(policy)
        if policy.withdrawn is not None:
            raise InvalidInput("policy", "it promises nothing any more, so there is nothing to watch.")
        self._policy = policy
        self.alpha = check.as_level(alpha)
        self.claims = claims_of(policy, audit_rate)
        self.audit_rate = None if audit_rate is None else float(audit_rate)
        self.tallies = {claim.group: Tally(claim.group) for claim in self.claims}
        self.bets = {claim.group: claim.bets() for claim in self.claims}
        self.pools = 0
        self.raised: Alarm | None = None
        self._memory, self._versions, self._created = Memory(), Versions(), now()

    def observe(
        self, *, qualified: object, pool_size: object = None, unreviewed: object = 0, missed: object = None,
        unaudited: object = 0, drawn: object = None, review_id: object = None,
    ) -> bool:  # fmt: skip
        """Count one pool; True if it is new, False if this review was counted before.

        qualified
            How many candidates on the pool's shortlist turned out qualified; with groups a
            mapping of group to number.
        pool_size
            How many candidates the pool had, shortlisted or not; with groups a mapping too.
        unreviewed
            How many on the shortlist have no review and will not get one; with groups a mapping.
        missed, unaudited
            With an ``audit_rate``: how many of the audited candidates turned out qualified, and how
            many drawn for the audit have no review and will not get one; with groups mappings.
        drawn
            Of a triage: a mapping of "accept", "look" and "reject" to how many on that list were drawn for
            the audit; ``qualified`` and ``unreviewed`` are mappings too, of those drawn. "look" may be left
            out where the rejected are promised a share of their own.
        review_id
            A name for this pool's review. The same name with the same numbers changes nothing,
            so a job may be run again; with other numbers it is an error.
        """
        given = {"qualified": qualified, "pool_size": pool_size, "unreviewed": unreviewed, "missed": missed,
                 "unaudited": unaudited, "drawn": drawn}  # fmt: skip
        shared = self._policy.group_rows == "all" and not isinstance(pool_size, Mapping)
        reviews = claims.reviews_of(self.claims, shared, given)
        name = None if review_id is None else as_name(review_id, "review_id")
        if name is not None and self._counted_before(name, " ".join(review.note for review in reviews)):
            return False
        for claim, review in zip(self.claims, reviews, strict=True):
            counts = claim.counts(review)
            self.tallies[claim.group].total += counts
            self.bets[claim.group].add(counts.trials, counts.successes + counts.unreviewed)
        self.pools += 1
        if self.raised is None and self.speaks_against:
            self.raised = Alarm(self.pools, name, self.e_value)
        return True

    def _counted_before(self, name: str, note: str) -> bool:
        known = self._memory.recall(name, "review_id")
        if known is None:
            self._memory.keep(name, note)
        elif known != note:
            raise InvalidInput(
                "review_id",
                f"{name!r} was counted before with other numbers ({known} qualified, now {note}). A review "
                "counts once; a correction cannot be taken back into the test.",
            )
        return known is not None

    def draw_audit(self, listed: object) -> Mask:
        """Whom to review though not shortlisted: True with probability ``audit_rate`` each.

        ``listed`` is the shortlist, as ``policy.select`` gives it. Of a triage everyone may be drawn,
        on whichever list. Draw once per pool and keep the
        result: drawing again until it suits breaks the test.
        """
        if self.audit_rate is None:
            raise InvalidInput("audit_rate", "this monitor has none, so there is no audit to draw.")
        lists = np.asarray(listed)
        drawn: Mask = coins(len(lists)) < self.audit_rate
        return drawn if self.claims[0].drawn else drawn & ~lists.astype(np.bool_)

    @property
    def log_e_value(self) -> float:
        logs = [bets.log_e_value for bets in self.bets.values()]
        top = max(logs)
        return top + math.log(sum(math.exp(log - top) for log in logs) / len(logs))

    @property
    def e_value(self) -> float:
        """Evidence against the promise now: 1 is none, 1/alpha raises the alarm."""
        return math.exp(min(700.0, self.log_e_value))

    @property
    def e_values(self) -> dict[str | None, float]:
        """The evidence for each group; their average is ``e_value``."""
        return {group: math.exp(min(700.0, bets.log_e_value)) for group, bets in self.bets.items()}

    @property
    def speaks_against(self) -> bool:
        """Whether the evidence reaches 1/alpha now."""
        return self.log_e_value >= -math.log(self.alpha)

    @property
    def alarm(self) -> bool:
        """True from the moment the e-value first reached 1/alpha."""
        return self.raised is not None

    @property
    def intervals(self) -> dict[str | None, tuple[float, float]]:
        """Confidence sequences: where the rate of every group lies, for all groups and times at once.

        The rate is that of qualified shortlisted candidates per candidate (per pool: of pools
        that hold enough; with an audit: recall) since the threshold last changed. With probability at
        least 1-alpha every interval covers its true rate after every pool, if the rates stay what
        they are: groups share alpha evenly, and missing reviews count as not qualified for the lower
        end, as qualified for the upper.
        """
        return {
            claim.group: claim.interval(self.tallies[claim.group].since, self.each_alpha)
            for claim in self.claims
        }

    @property
    def each_alpha(self) -> float:
        """The share of alpha that each group's interval has: what is said of all of them holds at once."""
        return self.alpha / len(self.claims)

    @property
    def interval(self) -> tuple[float, float]:
        """``intervals`` of a policy without groups."""
        if len(self.claims) > 1:
            raise InvalidInput(
                "interval", "groups, and both ends of a triage, have one each; read intervals."
            )
        return next(iter(self.intervals.values()))

    @property
    def policy(self) -> Policy:
        """The policy watched; after an alarm, the same thresholds without the promise."""
        if self.raised is None:
            return self._policy
        return self._policy.withdraw(self.raised.describe(self.alpha))

    @property
    def standing(self) -> Standing:
        """``"alarm"``; ``"holding"`` where every interval lies at or above what was promised; else early."""
        if self.alarm:
            return "alarm"
        lows = [(self.intervals[claim.group][0], claim.rate) for claim in self.claims]
        return "holding" if self.pools and all(low >= rate for low, rate in lows) else "too early to say"

    def in_a_sentence(self) -> str:
        """Is the promise still true? In words that need no explanation, and what to do."""
        if self.raised is not None:
            return f"Alarm, the promise is withdrawn: {self.raised.describe(self.alpha)}"
        if not self.pools:
            return "Too early to say: no pool has all its reviews yet."
        spans = "; ".join(
            f"{claim.whose and f'{claim.whose}: '}it was promised that at least "
            f"{percent(float(claim.rate))} of {claim.counted}; the reviews show {100 * low:.2f}% to "
            f"{100 * high:.2f}%{claim.whatever(self.tallies[claim.group].since)}"
            for claim in self.claims
            for low, high in [self.intervals[claim.group]]
        )
        seen = counted(self.pools, "pool")
        if self.standing == "holding":
            stays = "the rate stays what it is" if len(self.claims) == 1 else "the rates stay what they are"
            return (
                f"Holding: {spans}, after {seen}. If {stays}, this is wrong with "
                f"probability at most {percent(self.alpha)}, however often one looks."
            )
        return f"Too early to say, and no alarm: {spans}, after {seen}. Go on reviewing."

    def describe(self) -> str:
        """Where things stand, for a person."""
        lines = [self._describe(claim) for claim in self.claims]
        lines.append(
            f"{counted(self.pools, 'pool')}, e-value {self._evidence}: "
            + ("ALARM. " + self.policy.promise if self.alarm else "no alarm.")
        )
        return "\n".join(lines)

    def _display(self) -> Display:
        state = "ALARM" if self.alarm else "no alarm"
        facts = [("pools", number(self.pools)), ("e-value", self._evidence)]
        facts += [(claim.group or "rate", self._describe(claim)) for claim in self.claims]
        line = f"{counted(self.pools, 'pool')}, e-value {numerals.number(self.e_value, 3)}, {state}"
        said = f"ALARM. {self.policy.promise}" if self.alarm else "No alarm."
        return Display(line, said, facts, folded=[("The promise watched", [self._policy.promise])])

    @property
    def _evidence(self) -> str:
        return f"{numerals.number(self.e_value, 3)}, alarm at {numerals.number(1 / self.alpha, 3)}"

    def _describe(self, claim: Claim) -> str:
        who = claim.whose and f"group {claim.whose!r}: "
        total, (low, high) = self.tallies[claim.group].total, self.intervals[claim.group]
        unknown = total.unreviewed + total.unaudited
        return (
            f"{who}{claim.describe(total)}; promised at least {percent(float(claim.rate))}, under this "
            f"threshold {100 * low:.2f}% to {100 * high:.2f}%" + (UNKNOWN if unknown else ".")
        )

    def plot(self, ax: axes.Axes | None = None, *, path: str | Path | None = None) -> axes.Axes:
        """Where the rates lie, and what was promised (needs the ``plots`` extra; ``path``: also a file)."""
        rates = [
            axes.Rate(claim.group or "all candidates", *self.intervals[claim.group], float(claim.rate))
            for claim in self.claims
        ]
        first = self.claims[0]
        per = f"rate per {'candidate' if first.k is None else 'pool'}"
        per = "share" if first.drawn else "recall" if self.audit_rate else per
        return axes.picture(
            ax, path, axes.draw_rates, rates, self._display().line, f"{per}, under this threshold"
        )

    @property
    def watch(self) -> Watch:
        """What it knows, the policy aside."""
        tallies = [
            replace(tally, log_wealth=self.bets[group].logs.tolist()) for group, tally in self.tallies.items()
        ]
        return Watch(self.alpha, self.audit_rate, self.pools, tallies, self.raised, self._memory)

    def resume(self, state: Watch) -> Self:
        """Go on from what another monitor of the same policy knew."""
        same = [tally.group for tally in state.tallies] == list(self.tallies)
        hold(same, "the monitor's groups are not those of the policy")
        for claim, tally in zip(self.claims, state.tallies, strict=True):
            self.tallies[claim.group] = tally
            self.bets[claim.group] = claim.bets(np.asarray(tally.log_wealth), state.pools)
        self.pools, self.raised, self._memory = state.pools, state.alarm, state.memory
        hold(self.alarm or not self.speaks_against, "the alarm was taken out")
        return self

    @property
    def state(self) -> MonitorState:
        """What it knows and the policy it watches, as plain values."""
        return MonitorState(created=self._created, policy=policy_file.to_dict(self._policy), watch=self.watch)

    def _resume(self, state: MonitorState) -> None:
        policy, watch = Policy.loads(json.dumps(state.policy), name="its policy"), state.watch
        Monitor.__init__(self, policy, watch.alpha, audit_rate=watch.audit_rate)
        self._created = state.created
        self.resume(watch)

    def threshold_changed(self, policy: Policy) -> None:
        """Go on under a policy with the same promises and another threshold.

        The alarm's evidence goes on (a threshold fixed before its pools may change between
        them); the confidence sequence starts afresh, since the rate is another.
        """
        if claims_of(policy, self.audit_rate) != self.claims:
            raise InvalidInput("policy", "expected the same promises as before.")
        self._policy = policy
        for tally in self.tallies.values():
            tally.before = tally.total
