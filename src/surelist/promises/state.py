"""What a policy knows, as plain frozen values: thresholds, the evidence behind them, its options.

``Policy`` adds what can be done with it, ``policy_file`` writes and reads it, ``wording`` says it.
"""

from __future__ import annotations

from typing import Annotated, Generic, Literal, Protocol, TypeVar

from msgspec import Meta, Struct
from msgspec.structs import replace

from surelist._check import EVERYONE
from surelist._files import Chance, Count, Digest, Part, hold
from surelist.errors import NotCertifiable, Shortfall
from surelist.filters import Salt, Threshold
from surelist.promises.conditions import group_alpha, joint_alpha, promise_shares
from surelist.promises.options import GroupCutoff, GroupKey, GroupKeys, GroupRows, GroupSplit
from surelist.promises.phrases import counted, number, percent
from surelist.promises.promise import About, Level, Promise, Proof
from surelist.score_summary import ScoreSummary

SeedFrom = Literal["system", "caller"]
P = TypeVar("P", bound=Promise)
Target = TypeVar("Target")
Why = TypeVar("Why")


class Stored(Struct, frozen=True, forbid_unknown_fields=True):
    """A value that is kept in files as it is."""


class Step(Stored, frozen=True):
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
    share: Part | None = None
    share_untied: Part | None = None

    @property
    def tied(self) -> bool:
        """Whether everyone tied at the threshold is let in, and fewer would have been enough."""
        return self.tie_break is None and self.reached is not None and self.reached > self.critical_count


class Requirement(Struct, frozen=True):
    """Pools of at least ``pool_size`` need ``count`` qualified rows at or above the threshold."""

    pool_size: int
    count: int


class Counted(Protocol):
    """Rows, and how many of them are qualified."""

    @property
    def rows(self) -> int: ...
    @property
    def qualified(self) -> int: ...


class Certified(Struct, frozen=True):
    """What a rule found: who is listed, from how much, and why that is enough."""

    steps: tuple[Step, ...]
    rows: int
    qualified: int
    proof: Proof


def refuse(
    promise: Promise, level: Level, evidence: Counted, reason: str, *, count: int = 0
) -> NotCertifiable:
    """The refusal of a rule that counts something other than rows; ``reason`` says what and the way out."""
    return NotCertifiable(
        Shortfall(
            target=f"{promise.describe()} (alpha={level.alpha:g}, rule={level.rule!r})",
            rows=evidence.rows, qualified_available=evidence.qualified, critical_count=count, largest_k=None,
            largest_share=None, rows_needed=None, reason=reason,
        )
    )  # fmt: skip


class ExcessBound(Struct, frozen=True):
    """Qualified candidates beyond the target, each bound holding with probability >= 1-alpha."""

    paper: float | None
    count: float | None


class OwnCutoff(Stored, frozen=True):
    """Where a group's cutoff would lie if cutoffs differed, and the share of its rows that it lists.

    For comparison with the common cutoff; nothing is promised of it.
    """

    threshold: float
    share: float | None


class Everyone(Stored, frozen=True):
    """All calibration rows, whatever their group, and the share of them that the common cutoff lists."""

    rows: int
    qualified: int
    share: float | None
    fingerprint: str | None
    scores: ScoreSummary


class StoredCutoff(Stored, Generic[Target, Why], frozen=True):
    """What was certified for one group (``group=None``: for everyone), with its evidence."""

    group: str | None
    target: Target
    level: Level
    rows: int
    qualified: int
    steps: Annotated[tuple[Step, ...], Meta(min_length=1, max_length=2_001)]
    proof: Why
    fingerprint: Digest | None = None
    scores: ScoreSummary | None = None  # None for campaigns and collections, which keep no scores
    own: OwnCutoff | None = None  # under one cutoff for all groups; None where it could not be certified


class Cutoff(StoredCutoff[Promise, Proof], frozen=True):
    """The same with the promise and its proof themselves."""

    @property
    def about(self) -> About:
        """What the promise is about."""
        return self.proof.about or self.target.about

    def promised(self, kind: type[P]) -> P:
        """The promise, which has to be of this kind for its proof."""
        hold(isinstance(self.target, kind), "its proof does not go with its target")
        assert isinstance(self.target, kind)
        return self.target

    @property
    def thresholds(self) -> tuple[Threshold, ...]:
        """The steps without the counts behind them."""
        return tuple(Threshold(each.pool_size, each.threshold, each.tie_break) for each in self.steps)


class Shift(Stored, frozen=True):
    """Calibration rows were thinned by density ratios to look like the pool [theory: shift].

    The promise holds over the draw of the rows *and* of the seed, so the seed must come from the
    system's randomness. ``within``: so much more was certified that the promise holds while the ratios are
    within this factor
    of the true ones.
    """

    weight_bound: Annotated[float, Meta(gt=0)]
    rows_before: Annotated[int, Meta(gt=0)]
    seed: Count
    weights_exact: bool
    seed_from: SeedFrom
    within: Annotated[float, Meta(gt=1)] | None = None


class Thinning(Stored, frozen=True):
    """Rows were kept at one rate, so that known probabilities no longer matter."""

    lowest_rate: float
    lowest_score: float | None
    rows_before: int
    draw: str

    def conditions(self) -> str:
        low = self.lowest_score
        where = "" if low is None else f" among rows that score at least {number(low)}"
        return (
            f"Labels were drawn with known probabilities of at least {percent(self.lowest_rate)}{where}, by "
            "draws that depend on nothing but what the probabilities were computed from, and whoever was "
            "drawn has a label, but for those counted here as not qualified; of "
            f"{self.rows_before:,} rows those were kept that one common rate would have drawn. Coins thrown "
            "once, from the system's randomness; lowest rate and score fixed before."
        )


class Choice(Stored, frozen=True):
    """One of several scores was chosen after looking; each was certified at its share of alpha."""

    scores: tuple[str, ...]
    chosen: str


class Stated(Stored, dict=True, kw_only=True, frozen=True):
    """What a policy and its file say in the same words."""

    alpha: Chance
    rule: str
    group_split: GroupSplit | None = None
    group_rows: GroupRows | None = None
    group_cutoff: GroupCutoff | None = None  # None: each its own
    everyone: Everyone | None = None  # under one cutoff for all groups
    overlapping: bool = False
    purpose: str | None = None
    missing_labels: Count = 0
    dropped_rows: Count = 0
    shift: Shift | None = None
    choice: Choice | None = None  # best of several scores
    thinning: Thinning | None = None  # of sampled labels
    columns: dict[str, str] | None = None  # by role; and what was said of reading: see Hints
    reading: tuple[str, ...] | None = None  # what a file was read as
    group_keys: GroupKeys | None = None  # None: text
    nested: str | None = None  # what surrounded the fit that made it
    withdrawn: str | None = None  # why nothing is promised any more
    created: str
    version: str
    salt_hash: str | None = None


class Certificate(Stated, frozen=True):
    """Everything a policy knows."""

    cutoffs: tuple[Cutoff, ...]
    salt: Salt | None = None

    @property
    def grouped(self) -> bool:
        return self.cutoffs[0].group is not None

    @property
    def common(self) -> bool:
        """Whether one cutoff keeps the promises to all groups: pools need no groups then."""
        return self.group_cutoff == "common"

    def group_of(self, cutoff: Cutoff) -> str | None:
        """The group that a cutoff's promise is about; None where it is about everyone."""
        return None if self.common and cutoff.group == EVERYONE else cutoff.group

    def group_key(self, group: str | None) -> GroupKey | None:
        """A group as whoever calibrated named it: 0, not "0"."""
        if group is None or self.group_keys is None:
            return group
        return int(group) if self.group_keys == "whole numbers" else group == "True"

    @property
    def several(self) -> bool:
        """Whether it makes several promises of one list."""
        return len(self.cutoffs) > 1 and not self.grouped

    @property
    def each_alpha(self) -> float:
        """The level at which a cutoff is certified: alpha split over scores, groups and promises."""
        alpha, promises = self.alpha / self.chosen_of, [each.target for each in self.cutoffs]
        if self.grouped:
            return group_alpha(alpha, promises, self.group_split or "bonferroni", common=self.common)
        return alpha / promise_shares(promises, joint=self.joint is not None)

    @property
    def joint(self) -> float | None:
        """The level of promises with a fixed boundary beside one that has a joint level with them."""
        return next((each.level.beside for each in self.cutoffs if each.level.beside is not None), None)

    def alpha_of(self, cutoff: Cutoff) -> float:
        """The level that a cutoff has to have: its share of alpha, or that of those beside a joint one."""
        fixed = self.joint is not None and cutoff.target.fixed_boundary
        return self.joint if fixed and self.joint is not None else self.each_alpha

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
    def pool_alpha(self) -> float:
        """By a rule of two levels: how often a pool falls short for any group, if rows did not mislead."""
        level = self.cutoffs[0].level
        if self.group_split == "sidak":
            return joint_alpha(level.pool_alpha, len(self.cutoffs))
        return self.two_levels[1] if len(self.cutoffs) == 1 else replace(level, alpha=self.alpha).pool_alpha

    @property
    def drawn_rows(self) -> str:
        """What was drawn, in words: the rows, and the thinning where they were thinned."""
        if self.shift is not None:
            return f"{counted(self.shift.rows_before, 'calibration row')} and their thinning"
        if self.group_rows != "own" or self.everyone:  # the same rows serve every group, or every promise
            rows = self.everyone.rows if self.everyone else self.cutoffs[0].rows
            return f"the {counted(rows, 'calibration row')}"
        words = [f"{cutoff.rows:,}" for cutoff in self.cutoffs]
        listed = " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 2 else words)
        return f"the {listed} calibration rows"

    @property
    def of_collection(self) -> bool:
        """Whether it promises something of the candidates it was made from, and of no others."""
        return any(each.about is About.COLLECTION for each in self.cutoffs)

    @property
    def not_of_these(self) -> str:
        """Why other rows say nothing about a promise of a collection."""
        of = counted(sum(each.proof.collection_size or 0 for each in self.cutoffs), "candidate")
        return f"it is about the {of} it was made from, and about no others"

    def looked_per(self, cutoff: Cutoff) -> float | None:
        """Of a triage, how many of as many candidates as ``listed_per`` counts are left to people."""
        low, listed = cutoff.proof.looked_from, self.listed_per(cutoff)
        if low is None or listed is None or cutoff.scores is None:
            return None
        reached = sum(cutoff.scores.share_at_least(low)) / 2
        return max(0.0, reached * listed[1] - listed[0])

    def listed_per(self, cutoff: Cutoff) -> tuple[float, float] | None:
        """How many of how many will be listed, estimated from the calibration rows; None: not known."""
        share, asked = cutoff.steps[0].share, cutoff.target.listed
        if share is None or self.group_rows == "all":
            return asked
        size = float(cutoff.target.pool or cutoff.proof.collection_size or 100.0)
        # as long as was asked for, or shorter where scores are tied at its end
        return share * size if asked is None else min(share * size, asked[0]), size
