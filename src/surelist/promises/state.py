"""What a policy knows, as plain frozen values: thresholds, the evidence behind them, its options.

``Policy`` adds what can be done with it, ``policy_file`` writes and reads it, ``wording`` says it.
"""

from __future__ import annotations

from typing import Literal

from surelist._dataclasses import dataclass, field, replace
from surelist._shapes import MAY_BE_ABSENT
from surelist.filters import Threshold
from surelist.promises.groups import joint_alpha, split_alpha
from surelist.promises.options import GroupKey, GroupKeys, GroupRows, GroupSplit
from surelist.promises.phrases import number, percent
from surelist.promises.proofs import Proof
from surelist.promises.targets import AnyTarget, Level
from surelist.score_summary import ScoreSummary
from surelist.ties import Salt

TWO_LEVELS = ("pac", "bernstein")  # one over the calibration rows and one over each pool
SeedFrom = Literal["system", "caller", "version 1"]


@dataclass(frozen=True)
class Step:
    """One threshold: for pools of at least ``pool_size``, shortlist scores >= ``threshold``.

    With randomised ties, candidates exactly at the threshold need a tie number of at least
    ``tie_break``. ``reached`` is how many qualified calibration rows score at least ``threshold``
    (more than the critical count where scores are tied), ``share`` the share of all rows that would
    be shortlisted, ``share_untied`` the same with ties broken at random; all three are known for the
    first and the last step.
    """

    pool_size: int
    critical_count: int
    threshold: float
    tie_break: int | None = None
    reached: int | None = None
    share: float | None = None
    share_untied: float | None = None

    @property
    def tied(self) -> bool:
        """Whether everyone tied at the threshold is let in, and fewer would have been enough."""
        return self.tie_break is None and self.reached is not None and self.reached > self.critical_count


@dataclass(frozen=True)
class Cutoff:
    """What was certified for one group (``group=None``: for everyone), with its evidence.

    ``fingerprint_by`` names the algorithm of ``fingerprint``; None: one of an earlier version.
    """

    group: str | None
    target: AnyTarget
    level: Level
    rows: int
    qualified: int
    steps: tuple[Step, ...]
    fingerprint: str | None = None
    fingerprint_by: str | None = None
    scores: ScoreSummary | None = None  # None in policies of earlier versions and of campaigns
    proof: Proof | None = None  # where more than a count was needed

    @property
    def thresholds(self) -> tuple[Threshold, ...]:
        """The steps without the counts behind them."""
        return tuple(Threshold(each.pool_size, each.threshold, each.tie_break) for each in self.steps)


@dataclass(frozen=True)
class Shift:
    """Calibration rows were thinned by density ratios to look like the pool [theory: shift].

    The promise holds over the draw of the rows *and* of the seed, so the seed must come from the
    system's randomness. ``seed_from`` "version 1": a constant unless the caller gave another.
    ``within``: so much more was certified that the promise holds while the ratios are within this factor
    of the true ones.
    """

    weight_bound: float
    rows_before: int
    seed: int
    weights_exact: bool
    seed_from: SeedFrom = "version 1"
    within: float | None = field(default=None, metadata=MAY_BE_ABSENT)


@dataclass(frozen=True)
class Thinning:
    """Rows were kept at one rate, so that known probabilities no longer matter."""

    lowest_rate: float
    lowest_score: float | None
    rows_before: int
    draw: str

    def conditions(self) -> str:
        where = (
            ""
            if self.lowest_score is None
            else f" among rows that score at least {number(self.lowest_score)}"
        )
        return (
            f"Labels were drawn with known probabilities of at least {percent(self.lowest_rate)}{where}, by "
            "draws that depend on nothing but what the probabilities were computed from, and whoever was "
            "drawn has a label, but for those counted here as not qualified; of "
            f"{self.rows_before:,} rows those were kept that one common rate would have drawn. Coins thrown "
            "once, from the system's randomness; lowest rate and score fixed before."
        )


@dataclass(frozen=True)
class Choice:
    """One of several scores was chosen after looking; each was certified at its share of alpha."""

    scores: tuple[str, ...]
    chosen: str


@dataclass(frozen=True)
class Looks:
    """The looks of a campaign so far [theory: reviews]: rows, cumulative alpha and count at each.

    ``chosen`` is the look whose count gave the threshold in force. With an ``audit_rate`` the rows are
    candidates drawn at it from every pool, listed or not.
    """

    rows: tuple[int, ...]
    budgets: tuple[float, ...]
    counts: tuple[int, ...]
    chosen: int
    audit_rate: float | None = field(default=None, metadata=MAY_BE_ABSENT)


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What a policy and its file say in the same words."""

    alpha: float
    rule: str
    group_split: GroupSplit | None = None
    group_rows: GroupRows | None = None
    overlapping: bool = False
    purpose: str | None = None
    missing_labels: int = 0
    dropped_rows: int = 0
    shift: Shift | None = None
    columns: dict[str, str] | None = None  # by role; and what was said of reading: see Hints
    created: str
    version: str
    looks: Looks | None = field(default=None, metadata=MAY_BE_ABSENT)  # of a campaign
    choice: Choice | None = field(default=None, metadata=MAY_BE_ABSENT)  # best of several scores
    thinning: Thinning | None = field(default=None, metadata=MAY_BE_ABSENT)  # of sampled labels
    reading: tuple[str, ...] | None = field(default=None, metadata=MAY_BE_ABSENT)  # what a file was read as
    group_keys: GroupKeys | None = field(default=None, metadata=MAY_BE_ABSENT)  # None: text
    nested: str | None = field(default=None, metadata=MAY_BE_ABSENT)  # what surrounded the fit that made it
    withdrawn: str | None = field(default=None, metadata=MAY_BE_ABSENT)  # why nothing is promised any more


@dataclass(frozen=True, kw_only=True)
class Certificate(Facts):
    """Everything a policy knows."""

    cutoffs: tuple[Cutoff, ...]
    salt_hash: str | None = None
    salt: Salt | None = None

    @property
    def grouped(self) -> bool:
        return self.cutoffs[0].group is not None

    def group_key(self, group: str | None) -> GroupKey | None:
        """A group as whoever calibrated named it: 0, not "0"."""
        if group is None or self.group_keys is None:
            return group
        return int(group) if self.group_keys == "whole numbers" else group == "True"

    @property
    def each_alpha(self) -> float:
        """The level at which each cutoff is certified: alpha split over scores, groups and promises."""
        alpha = self.alpha / self.chosen_of
        if self.grouped:
            return split_alpha(alpha, len(self.cutoffs), self.group_split or "bonferroni")
        return alpha / len(self.cutoffs)

    @property
    def pool_alpha(self) -> float:
        """By a rule of two levels: how often a pool falls short for any group, if rows did not mislead."""
        level = self.cutoffs[0].level
        if self.group_split == "sidak":
            return joint_alpha(level.pool_alpha, len(self.cutoffs))
        return self.two_levels[1] if len(self.cutoffs) == 1 else replace(level, alpha=self.alpha).pool_alpha

    @property
    def chosen_of(self) -> int:
        """How many scores the one in use was chosen of."""
        return len(self.choice.scores) if self.choice else 1

    @property
    def two_levels(self) -> tuple[float, float]:
        """Of a rule that has two, without groups: over the rows, and over a pool [theory: best-of].

        Over the rows the promise fails where any of the scores would, over a pool where the chosen one does.
        """
        level = self.cutoffs[0].level
        return self.alpha * level.calibration_share, level.pool_alpha

    @property
    def said_level(self) -> Level:
        """The level of the promise as a whole, whichever score was chosen."""
        level = self.cutoffs[0].level
        if level.rule not in TWO_LEVELS:
            return replace(level, alpha=self.alpha)
        rows, pool = self.two_levels
        return Level(rows + pool, level.rule, rows / (rows + pool))
