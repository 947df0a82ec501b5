"""Does the promise still hold? An anytime-valid alarm from reviewed pools.

The bets and their proof live in ``bounds.betting``, state and its file in ``monitor_file``, the
check of scores without labels in ``drift``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from surelist import _check as check
from surelist._files import Versions, hold
from surelist.bounds import betting
from surelist.drawing import axes
from surelist.errors import InvalidInput
from surelist.lifecycle import monitor_file
from surelist.lifecycle.monitor_file import Alarm, Tally, Watch, in_file
from surelist.lifecycle.seen import Memory, as_name
from surelist.promises.phrases import number, percent
from surelist.promises.policy import Policy
from surelist.promises.state import Cutoff
from surelist.promises.targets import Expected, PerPool, Recall


@dataclass(frozen=True)
class Claim:
    """What is tested for one group: the mean of its trials is at least ``rate``.

    A trial is a candidate of a pool (1 = qualified and on the shortlist) for ``Expected``
    targets, and a whole pool (1 = at least ``k`` of them) for ``PerPool`` targets.
    """

    group: str | None
    rate: Fraction
    k: int | None = None
    smallest_pool: int = 0

    def trials(self, qualified: int, pool_size: int) -> tuple[int, int]:
        """Trials and successes of one reviewed pool."""
        if self.k is None:
            return pool_size, qualified
        return 1, int(qualified >= self.k)


class Monitor:
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
    would be no news. ``Recall`` is refused: who was not shortlisted is not reviewed.

    alpha
        How often a false alarm may be raised, over the whole future.
    """

    def __init__(self, policy: Policy, alpha: float = 0.05) -> None:
        if not isinstance(policy, Policy):
            raise InvalidInput(f"policy: expected a Policy, got {type(policy).__name__}.")
        if policy.withdrawn is not None:
            raise InvalidInput("policy: it promises nothing any more, so there is nothing to watch.")
        self._policy = policy
        self.alpha = check.as_alpha(alpha)
        self.claims = tuple(_claim(cutoff, policy) for cutoff in policy.cutoffs)
        self.tallies = {claim.group: Tally(claim.group) for claim in self.claims}
        self.bets = {claim.group: betting.Bets(claim.rate) for claim in self.claims}
        self.pools = 0
        self.raised: Alarm | None = None
        self._memory = Memory()
        self._versions = Versions()

    def observe(self, *, qualified: Any, pool_size: Any, review_id: Any = None) -> bool:
        """Count one complete pool; True if it is new, False if this review was counted before.

        qualified
            How many candidates on the pool's shortlist turned out qualified; with groups a
            mapping of group to number.
        pool_size
            How many candidates the pool had, shortlisted or not; with groups a mapping too.
        review_id
            A name for this pool's review. The same name with the same numbers changes nothing,
            so a job may be run again; with other numbers it is an error.
        """
        counts = self._counts(qualified, pool_size)
        name = None if review_id is None else as_name(review_id, "review_id")
        if name is not None:
            note = " ".join(f"{count}/{size}" for count, size in counts.values())
            known = self._memory.recall(name, "review_id")
            if known == note:
                return False
            if known is not None:
                raise InvalidInput(
                    f"review_id: {name!r} was counted before with other numbers ({known} qualified, now "
                    f"{note}). A review counts once; a correction cannot be taken back into the test."
                )
            self._memory.keep(name, note)
        for claim in self.claims:
            trials = claim.trials(*counts[claim.group])
            self.tallies[claim.group].add(*trials)
            self.bets[claim.group].add(*trials)
        self.pools += 1
        if self.raised is None and self.speaks_against:
            self.raised = Alarm(self.pools, name, self.e_value)
        return True

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
        """The same for each group; their average is ``e_value``."""
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
        """Confidence sequence per group: where the rate lies, at every time at once.

        The rate is that of qualified shortlisted candidates per candidate (per pool: of pools
        that hold enough) since the threshold last changed. It covers the true rate after every
        pool at once with probability at least 1-alpha, if the rate stays what it is.
        """
        return {
            claim.group: betting.interval(claim.rate, *self.tallies[claim.group].since, self.alpha)
            for claim in self.claims
        }

    @property
    def interval(self) -> tuple[float, float]:
        """``intervals`` of a policy without groups."""
        if len(self.claims) > 1:
            raise InvalidInput("interval: this policy has groups; read intervals.")
        return next(iter(self.intervals.values()))

    @property
    def policy(self) -> Policy:
        """The policy watched; after an alarm, the same thresholds without the promise."""
        if self.raised is None:
            return self._policy
        return self._policy.withdraw(self.raised.describe(self.alpha))

    def describe(self) -> str:
        """Where things stand, for a person."""
        lines = []
        for claim in self.claims:
            who = "" if claim.group is None else f"group {claim.group!r}: "
            tally, (low, high) = self.tallies[claim.group], self.intervals[claim.group]
            what = "candidates qualified and shortlisted" if claim.k is None else "pools with enough"
            lines.append(
                f"{who}{tally.successes:,} of {tally.trials:,} {what}; promised at least "
                f"{percent(float(claim.rate))}, under this threshold {100 * low:.2f}% to {100 * high:.2f}%."
            )
        lines.append(
            f"{number(self.pools)} pools, e-value {self.e_value:.3g}, alarm at {1 / self.alpha:.3g}: "
            + ("ALARM. " + self.policy.promise if self.alarm else "no alarm.")
        )
        return "\n".join(lines)

    def plot(self, ax: Any = None, *, path: str | Path | None = None) -> Any:
        """Where the rates lie, and what was promised (needs the ``plots`` extra; ``path``: also a file)."""
        rates = [
            axes.Rate(claim.group or "all candidates", *self.intervals[claim.group], float(claim.rate))
            for claim in self.claims
        ]
        state = "ALARM" if self.alarm else "no alarm"
        title = f"{number(self.pools)} pools, e-value {self.e_value:.3g}, {state}"
        per = "candidate" if self.claims[0].k is None else "pool"
        return axes.draw_rates(rates, title, f"rate per {per}, under this threshold", ax, path)

    @property
    def state(self) -> Watch:
        """All that is needed to go on later, as plain values."""
        tallies = [
            replace(tally, log_wealth=self.bets[group].logs.tolist()) for group, tally in self.tallies.items()
        ]
        return Watch(self.alpha, self.pools, tallies, self.raised, self._memory)

    def resume(self, state: Watch) -> Monitor:
        """Go on from ``state``, which another monitor of the same policy had."""
        hold([tally.group for tally in state.tallies] == list(self.tallies),
             "the monitor's groups are not those of the policy")  # fmt: skip
        for tally in state.tallies:
            self.tallies[tally.group] = tally
            rate = self.bets[tally.group].rate
            self.bets[tally.group] = betting.Bets(rate, np.asarray(tally.log_wealth), state.pools)
        self.pools, self.raised, self._memory = state.pools, state.alarm, state.memory
        hold(self.alarm or not self.speaks_against, "the alarm was taken out")
        return self

    def save(self, path: str | Path) -> None:
        """Write the state as JSON; never half-written, and never over what someone else wrote."""
        with self._versions.replacing(Path(path), monitor_file.dumps(self._policy, self.state)):
            pass

    @staticmethod
    def load(path: str | Path) -> Monitor:
        """Go on where ``save`` stopped; anything unknown or contradictory is an error."""
        versions = Versions()
        with in_file(path):
            policy, state = monitor_file.loads(versions.read(Path(path)), Path(path))
            monitor = Monitor(policy, state.alpha).resume(state)
        monitor._versions = versions
        return monitor

    def threshold_changed(self, policy: Policy) -> None:
        """Go on under a policy with the same promises and another threshold.

        The alarm's evidence goes on (a threshold fixed before its pools may change between
        them); the confidence sequence starts afresh, since the rate is another.
        """
        if tuple(_claim(cutoff, policy) for cutoff in policy.cutoffs) != self.claims:
            raise InvalidInput("policy: expected the same promises as before.")
        self._policy = policy
        for tally in self.tallies.values():
            tally.trials_before, tally.successes_before = tally.trials, tally.successes

    def name_alarm(self, name: str) -> None:
        """Say which pool raised the alarm, where reviews have no ids of their own."""
        assert self.raised is not None
        self.raised = Alarm(self.raised.pools, name, self.raised.e_value)

    def _counts(self, qualified: Any, pool_size: Any) -> dict[str | None, tuple[int, int]]:
        shared = self._policy.group_rows == "all" and not isinstance(pool_size, Mapping)
        counts = {}
        for claim in self.claims:
            count = _whole(self._of(qualified, claim, "qualified"), "qualified", claim)
            size = pool_size if shared else self._of(pool_size, claim, "pool_size")
            size = _whole(size, "pool_size", claim)
            if count > size:
                raise InvalidInput(f"qualified: expected at most pool_size={size}, got {count}.")
            if size < claim.smallest_pool:
                raise InvalidInput(
                    f"pool_size: the promise covers pools of {claim.smallest_pool} or more, got {size}."
                )
            counts[claim.group] = count, size
        return counts

    def _of(self, value: Any, claim: Claim, name: str) -> Any:
        if claim.group is None:
            return value
        groups = sorted(str(claim.group) for claim in self.claims)
        if not isinstance(value, Mapping):
            raise InvalidInput(f"{name}: expected a mapping with the groups {groups}, got {value!r}.")
        given = {check.group_name(key, name): each for key, each in value.items()}
        if sorted(given) != groups:
            raise InvalidInput(f"{name}: expected the groups {groups}, got {sorted(given)}.")
        return given[claim.group]


def _claim(cutoff: Cutoff, policy: Policy) -> Claim:
    target = cutoff.target
    if isinstance(target, Expected):
        return Claim(cutoff.group, target.rate)
    if isinstance(target, Recall):
        raise InvalidInput(
            "policy: a Recall promise cannot be watched: qualified candidates who were not shortlisted are "
            "never reviewed. Review a random sample of the others and calibrate again."
        )
    assert isinstance(target, PerPool)
    if policy.rule == "exact":
        raise InvalidInput(
            'policy: a PerPool promise of rule="exact" cannot be watched: its alpha is an average over '
            "calibration samples, and for about a third of them a sound policy fails more often than that. "
            'Calibrate with rule="pac", which bounds the failure rate of this policy.'
        )
    rate = 1 - check.as_fraction(cutoff.level.pool_alpha, "alpha")
    return Claim(cutoff.group, rate, target.k, target.sizes[0])


def _whole(value: Any, name: str, claim: Claim) -> int:
    ok = isinstance(value, (int, np.integer)) and not isinstance(value, bool) and value >= 0
    if not ok:
        who = "" if claim.group is None else f"[{claim.group!r}]"
        raise InvalidInput(f"{name}{who}: expected a whole number of at least 0, got {value!r}.")
    return int(value)
