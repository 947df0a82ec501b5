"""What reports show of calibration rows and of a shortlist, as typed values that the record stores."""

from __future__ import annotations

from msgspec import Struct

from surelist.promises.curve import CurveOf
from surelist.reports.audit import ImpactTable, ScoreBin
from surelist.score_summary import PoolCheck

RULE_NAMES = {
    "exact": "Exact rule (target fixed beforehand)",
    "dkw": "Rule of the paper (DKW)",
    "simultaneous": "Simultaneous rule (target chosen after looking)",
    "pac": "Two-level rule (pac)",
    "bernstein": "Rule of the paper, per pool (Bernstein)",
}


class CurvePoints(Struct, frozen=True):
    """Some points of a guarantee curve."""

    list_size: list[float]
    qualified: list[float]
    threshold: list[float]


OwnCurve = CurveOf[list[float]]  # what each list length carries in the terms of one kind of promise


class GroupFinding(Struct, frozen=True):
    """Whether better candidates of a group are passed over, in a sentence."""

    group: str
    says: str
    passed_over: bool


class RowsEvidence(Struct, frozen=True, omit_defaults=True):
    """Curves by rule, how labels follow scores, and curves in the terms of the promise.

    ``recomputed`` says whether the policy's numbers were worked out anew from the rows, ``beyond`` what they
    rest on beside the rows; None where nobody tried.
    """

    unlabelled: int
    pool_size: float
    curves: dict[str, CurvePoints]
    bins: list[ScoreBin]
    own: OwnCurve | None = None
    by_group: dict[str, OwnCurve] = {}
    recomputed: bool | None = None
    beyond: str | None = None
    within_groups: list[GroupFinding] = []

    @property
    def in_order(self) -> dict[str, CurvePoints]:
        """The curves, the rule in force first."""
        rules = ("exact", "simultaneous", "dkw")
        return {rule: self.curves[rule] for rule in rules if rule in self.curves}


class SelectionFacts(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Sizes and hashes of a pool and its shortlist; ``groups`` are (candidates, shortlisted)."""

    pool_sha256: str
    pool_format: str
    candidates: int
    shortlisted: int
    groups: dict[str, tuple[int, int]] = {}
    lists: dict[str, int] = {}  # of a triage, how many are on each of its three
    result_sha256: str
    result_format: str
    version: str
    checks: list[PoolCheck] = []
    impact: list[ImpactTable] = []


class Question(Struct, frozen=True, omit_defaults=True):
    """What was asked of rows."""

    targets: dict[str, str]
    alpha: float
    rule: str
    scores: list[str] = []


class Look(Struct, frozen=True):
    """An earlier look at the same rows, and what was asked."""

    seq: int
    at: str
    how: str
    asked: Question
