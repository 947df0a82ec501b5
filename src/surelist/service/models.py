"""Requests and responses of the API as types; OpenAPI is made from these."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from surelist.errors import InvalidInput
from surelist.promises.calibration import Targets
from surelist.promises.targets import Expected, PerPool, Recall, Target
from surelist.service.jobs import CalibrationRequest

Name = Annotated[str, Field(min_length=1, max_length=200)]
Number = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Options(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Promise(Options):
    """What is to be promised, to whom, and how it is certified."""

    promise: Literal["expected", "per-pool", "recall"] = Field(
        default="expected",
        description="`expected`: k qualified in an average pool; `per-pool`: k in every single pool; "
        "`recall`: a share of all qualified candidates is kept.",
    )
    k: Number | None = Field(default=None, description="Qualified candidates that are promised.")
    pool_size: Number | None = Field(default=None, description="Candidates in a pool.")
    largest_pool: int | None = Field(
        default=None, ge=1, le=10**9, description="For `per-pool`: the largest pool."
    )
    share: float | None = Field(default=None, gt=0, lt=1, description="For `recall`: the share that is kept.")
    alpha: float = Field(default=0.1, gt=0, lt=1, description="How often the promise may be false.")
    rule: Literal["exact", "dkw", "simultaneous", "pac", "bernstein"] = "exact"
    group: Name | None = Field(
        default=None, description="Column with the group; cutoffs then differ by group."
    )
    target: list[str] = Field(
        default=[], description='Target of a group as NAME=K/M, or NAME=SHARE for `recall`: "women=3/60".'
    )
    purpose: str | None = Field(default=None, max_length=2000, description="What cutoffs by group are for.")
    group_split: Literal["bonferroni", "sidak"] = "bonferroni"
    group_rows: Literal["own", "all"] = "own"
    missing_labels: Literal["error", "unqualified"] = "error"

    def targets(self) -> Targets:
        """The targets these options describe."""
        if self.group is None:
            if self.target:
                raise InvalidInput("target: targets by group need group=, the column with the group.")
            return self._one(self.k, self.pool_size, self.share)
        found: dict[str, Target] = {}
        for text in self.target:
            name, sep, amount = text.rpartition("=")
            if not sep or not name or name in found:
                raise InvalidInput(f"target: expected NAME=K/M once per group, got {text!r}.")
            found[name] = self._parsed(amount, text)
        if not found:
            raise InvalidInput("target: with group=, give one target=NAME=K/M per group.")
        return found

    def _parsed(self, amount: str, text: str) -> Target:
        try:
            if self.promise == "recall":
                return self._one(None, None, float(amount))
            k, _, size = amount.partition("/")
            return self._one(float(k), float(size) if size else self.pool_size, None)
        except ValueError as error:
            if isinstance(error, InvalidInput):
                raise
            raise InvalidInput(f"target: expected numbers as in NAME=K/M, got {text!r}.") from error

    def _one(self, k: float | None, size: float | None, share: float | None) -> Target:
        if self.promise == "recall":
            if share is None:
                raise InvalidInput("share: expected a number between 0 and 1 for a recall promise.")
            return Recall(share)
        if k is None or size is None:
            missing = "k" if k is None else "pool_size"
            raise InvalidInput(f"{missing}: expected a number; k and pool_size go together.")
        if self.promise == "expected":
            return Expected(k, size)
        whole = [int(v) if v == int(v) and abs(v) < 1e15 else v for v in (k, size)]
        pools: Any = whole[1] if self.largest_pool is None else (whole[1], self.largest_pool)
        return PerPool(whole[0], pools)  # type: ignore[arg-type]


class CalibrateOptions(Promise):
    """Columns and promise of a calibration."""

    score: Name = "score"
    label: Name = "qualified"
    id: Name | None = Field(default=None, description="Column with candidate ids, for `ties=hash`.")
    ties: Literal["include", "hash"] = "include"
    calibration_share: float = Field(default=0.5, gt=0, lt=1)
    name: Name = Field(default="policy", description="What people call the policy.")

    def request(self) -> CalibrationRequest:
        names = CalibrationRequest.__dataclass_fields__.keys() - {"target"}
        return CalibrationRequest(target=self.targets(), **{name: getattr(self, name) for name in names})


class CurveOptions(Options):
    score: Name = "score"
    label: Name = "qualified"
    pool_size: Number = 100.0
    alpha: float = Field(default=0.1, gt=0, lt=1)
    rule: Literal["simultaneous", "dkw"] = "simultaneous"
    missing_labels: Literal["error", "unqualified"] = "error"


class SelectOptions(Options):
    """Columns of a pool; by default those the policy was calibrated on."""

    score: Name | None = None
    group: Name | None = None
    id: Name | None = None
    attribute: list[Name] = Field(
        default=[],
        max_length=2,
        description="Up to two columns to count selection rates by (CSV and Parquet).",
    )
    format: Literal["csv", "parquet", "spreadsheet"] | None = Field(
        default=None,
        description="Of the shortlist, for CSV and Parquet bodies; by default that of the pool. "
        "`spreadsheet` is CSV with cells that a spreadsheet would run as formulas escaped.",
    )

    @property
    def columns(self) -> dict[str, str | None]:
        return {"score": self.score, "group": self.group, "id": self.id}


class Row(BaseModel):
    """A candidate: column name to value."""

    model_config = ConfigDict(extra="allow")


class Rows(BaseModel):
    """A table as JSON: one object per row."""

    rows: list[Row]


class Receipt(BaseModel):
    """Where on record something is; `surelist verify-log --receipt seq:hash` proves it later."""

    seq: int
    hash: str
    at: str
    by: str
    replayed: bool = False


class CutoffView(BaseModel):
    group: str | None
    threshold: float
    rows: int
    qualified: int
    critical_count: int


class PolicyView(BaseModel):
    hash: str
    name: str
    promise: str
    conditions: list[str]
    alpha: float
    rule: str
    cutoffs: list[CutoffView]
    purpose: str | None
    retired: bool
    earlier_looks: int
    receipt: Receipt


class PolicyFile(PolicyView):
    policy: dict[str, Any]


class SelectionView(BaseModel):
    id: str
    policy: str
    candidates: int
    shortlisted: int
    groups: dict[str, tuple[int, int]]
    pool_sha256: str
    result_sha256: str
    result_format: str
    receipt: Receipt


class Shortlist(BaseModel):
    selection: SelectionView
    shortlist: list[Row]


class CurveView(BaseModel):
    rule: str
    alpha: float
    pool_size: float
    rows: int
    list_size: list[float]
    qualified: list[float]
    threshold: list[float]


class Review(BaseModel):
    model_config = ConfigDict(extra="forbid")
    candidate: str = Field(min_length=1, max_length=500)
    qualified: bool


class Reviews(BaseModel):
    model_config = ConfigDict(extra="forbid")
    reviews: list[Review] = Field(min_length=1, max_length=100_000)


class ReviewsView(BaseModel):
    selection: str
    reviewed: int
    qualified: int
    receipt: Receipt | None = None


class Retirement(BaseModel):
    model_config = ConfigDict(extra="forbid")
    reason: str = Field(min_length=1, max_length=2000)


class EntryView(BaseModel):
    seq: int
    at: str
    actor: str
    action: str
    subject: str
    details: dict[str, Any]
    previous: str
    hash: str


class ErrorBody(BaseModel):
    model_config = ConfigDict(extra="allow")
    type: str
    message: str


class ErrorView(BaseModel):
    """Every error has this shape; `NotCertifiable` carries its numbers beside the message."""

    error: ErrorBody
