"""A campaign as it stands: its state as attributes, its policy, and what it says to a person, also drawn.

``campaign`` has the steps that take it further.
"""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from surelist._numerals import about
from surelist._version import __version__
from surelist.drawing import Display, axes
from surelist.errors import InvalidInput
from surelist.filters import Filter
from surelist.lifecycle import campaign_state as looks
from surelist.lifecycle.campaign_state import EVERYONE, CampaignState, pool_of
from surelist.lifecycle.monitor import Monitor
from surelist.lifecycle.state import Saved, ScoreCounts
from surelist.promises import kinds
from surelist.promises.kinds.counts import Looks
from surelist.promises.phrases import counted, number, percent
from surelist.promises.policy import Policy
from surelist.promises.promise import Level, Promise
from surelist.promises.state import Cutoff, Step


class CampaignSoFar(Saved[CampaignState]):
    """All that is known of a campaign."""

    _shape = CampaignState

    def _resume(self, state: CampaignState) -> None:
        super()._resume(state)
        audited = state.audit_rate is not None
        self.target = looks.as_target(kinds.read(state.target, Promise), audited=audited)
        self._walk = looks.replay(state, self.target.rate)
        self.alpha, self.schedule = state.alpha, tuple(state.schedule)
        self.audit_rate = state.audit_rate
        self.rows, self.pools, self.chosen = state.rows, state.pools, state.chosen
        self.updates, self.epochs, self._memory = state.updates, state.epochs, state.memory
        self.reviews = state.reviews
        self._qualified, self._listed = ScoreCounts(state.qualified), ScoreCounts(state.listed)
        self.monitor: Monitor | None = None
        if state.watch is not None:
            self.monitor = Monitor(self.policy, state.monitor_alpha).resume(state.watch)

    @property
    def state(self) -> CampaignState:
        """All that is needed to go on later, as plain values."""
        return replace(
            self._state, version=__version__, promise=self.promise, rows=self.rows, pools=self.pools,
            chosen=self.chosen, qualified=self._qualified.state, listed=self._listed.state,
            watch=None if self.monitor is None else self.monitor.watch,
        )  # fmt: skip

    @property
    def threshold(self) -> float | None:
        """Scores at or above it are shortlisted; None while everyone is."""
        return self.updates[-1].threshold

    @property
    def filter(self) -> Filter:
        """What is applied to the next pool; everyone passes until a threshold is certified."""
        return Filter.at_least(self.threshold)

    @property
    def certified(self) -> bool:
        return self.chosen is not None

    @property
    def alarm(self) -> bool:
        """True once the reviews speak against the promise; it is withdrawn then."""
        return self.monitor is not None and self.monitor.alarm

    @property
    def due(self) -> bool:
        """Whether the schedule asks for an update before the next pool."""
        return self.next_update == self.pools

    @property
    def next_update(self) -> int | None:
        """After how many pools the next update comes; None where none is to come."""
        done = len(self.updates) - 1
        return self.schedule[done] if done < len(self.schedule) and not self.alarm else None

    @property
    def promise(self) -> str:
        """What is promised now, or why nothing is."""
        return EVERYONE if self.chosen is None else self.policy.promise

    @property
    def pool_size(self) -> float:
        """That of the promise."""
        return pool_of(self.target)

    @property
    def budgets(self) -> list[float]:
        """Cumulative alpha by look, from the schedule."""
        return looks.spending(self.alpha, len(self.schedule))

    @property
    def policy(self) -> Policy:
        """The threshold in force, with the looks that back it [theory: reviews].

        It promises nothing any more once the monitor has raised an alarm.
        """
        if self.chosen is None:
            raise InvalidInput("policy", EVERYONE)
        updates, kept = self.updates, self._state
        rows, counts = (tuple(getattr(each, name) for each in updates) for name in ("rows", "count"))
        taken = Looks(rows, tuple(self.budgets[: len(updates)]), counts, self.chosen, self.audit_rate)
        update, level = updates[self.chosen], Level(self.alpha, "exact")
        assert update.threshold is not None
        share = min(1.0, updates[-1].list_size / self.pool_size)
        step = Step(0, update.count, update.threshold, share=share)
        cutoff = Cutoff(None, self.target, level, update.rows, update.count, (step,), taken, kept.fingerprint)
        policy = Policy((cutoff,), alpha=self.alpha, rule="exact", created=kept.created, version=__version__)
        if self.monitor is not None and self.monitor.raised is not None:
            return policy.withdraw(self.monitor.raised.describe(kept.monitor_alpha))
        return policy

    def describe(self) -> str:
        """List length per update as bars with the floor as a mark, and what the monitor says."""
        said = [] if self.monitor is None else [self.monitor.describe()]
        return "\n".join([*self._lines(), self.coming, *said])

    def plot(self, ax: axes.Axes | None = None, *, path: str | Path | None = None) -> axes.Axes:
        """List length over time (needs the ``plots`` extra), to a file if given; returns the axes."""
        starts = [update.pools for update in self.updates]
        ends = [*starts[1:], max(self.pools, starts[-1] + 1)]
        seen = [epoch.list_size(self.pool_size) for epoch in self.epochs]
        floors = [update.floor for update in self.updates]
        spans = [axes.Span(*each) for each in zip(starts, ends, seen, floors, strict=True)]
        raised = self.monitor.raised if self.monitor is not None else None
        title = f"{self.target.describe()}, alpha {self.alpha:g}"
        alarm = None if raised is None else raised.pools
        return axes.picture(ax, path, axes.draw_campaign, spans, alarm, self.pool_size, title)

    def _display(self) -> Display:
        """Promise, expected list, rows and pools; the updates folded."""
        limit, pools = self.threshold, counted(self.pools, "screened pool")
        listed = "everyone" if limit is None else f"score >= {limit:.6g}"
        length = f"about {about(self.updates[-1].list_size)} of {number(self.pool_size)} candidates"
        those = f"{percent(self.audit_rate)} of the candidates" if self.audit_rate is not None else "those"
        evidence = f"{self.rows:,} rows, {those} of {pools} among them"
        facts = [("shortlisted", listed), ("list to expect", length), ("evidence", evidence)]
        facts.append(("updates", self.coming))
        if self.monitor is not None:
            facts.append(("monitor", self.monitor._display().line))
        conditions = self.policy.conditions if self.certified else ()
        state, rests = (", ALARM", "rested") if self.alarm else ("", "rests")
        return Display(
            f"{self.target.describe()}, alpha {self.alpha:g}; {counted(self.pools, 'pool')}, {listed}{state}",
            self.promise,
            facts,
            folded=[
                ("List length over time", self._lines()),
                (f"The promise {rests} on {len(conditions)} conditions", conditions),
            ],
        )

    @property
    def coming(self) -> str:
        """When the threshold is looked at again."""
        if self.alarm:
            return "No further update: the monitor has raised an alarm."
        after = self.next_update
        if after is None:
            return "No further update is scheduled."
        left = after - self.pools
        when = "before the next pool" if left == 0 else f"after {counted(left, 'more pool')}"
        return f"Next update {when} (pool {after:,} of the schedule {', '.join(map(str, self.schedule))})."

    @property
    def sentence(self) -> str:
        """Is the promise still true? In a sentence, and what to do."""
        if not self.certified:
            return self.promise
        if self.monitor is None:
            return "Too early to say: no pool has all its reviews yet."
        return self.monitor.in_a_sentence()

    @property
    def _why_not_due(self) -> str:
        """Why an update now is refused."""
        if self.alarm:
            return "the monitor has raised an alarm; nothing is learned from rows that may have drifted."
        after = self.next_update
        when = "all are done" if after is None else f"the next one is due after pool {after}"
        return (
            f"off schedule after {self.pools} pools; {when}. A time picked by looking at scores or labels "
            "breaks the promise."
        )

    def _lines(self) -> list[str]:
        """The looks so far as a table for a terminal: list length as a bar, the floor as a mark."""
        wide = 40 / max(update.list_size for update in self.updates)
        lines = [f"{'from pool':>10}  {'rows':>10}  {'score >=':>10}  {'list':>6}  {'seen':>6}  {'floor':>6}"]
        for update, epoch in zip(self.updates, self.epochs, strict=True):
            limit = "everyone" if update.threshold is None else f"{update.threshold:.5g}"
            seen, mark = epoch.list_size(self.pool_size), round(update.floor * wide)
            length = max(mark + 1, round(update.list_size * wide))
            bar = "".join("|" if at == mark else "#" for at in range(length))
            lines.append(
                f"{update.pools + 1:>10,}  {update.rows:>10,}  {limit:>10}  {update.list_size:>6.2f}  "
                f"{'-' if seen is None else format(seen, '.2f'):>6}  {update.floor:>6.2f}  {bar}"
            )
        lines.append(
            "list: expected length; seen: average so far; | and floor: about the shortest list achievable"
        )
        return lines
