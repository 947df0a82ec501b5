"""Requests and responses of the API as types; OpenAPI is made from these."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, create_model

from surelist._check import DecimalMark, MissingLabels
from surelist.promises import kinds, options
from surelist.promises.grammar import drawn_labels, roles_of, target_asked, terms_of
from surelist.promises.proved import proved_from
from surelist.promises.terms import Roles
from surelist.service.calibrating import CalibrationRequest
from surelist.workflows.source import REMEMBERED, Hints

Name = Annotated[str, Field(min_length=1, max_length=200)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
Number = Annotated[float, Field(gt=0, allow_inf_nan=False)]
PoolRange = Annotated[str, Field(pattern="^[0-9]{1,9}-[0-9]{1,9}$")]

FROM_ROWS = [kind for kind, each in zip(kinds.KINDS, kinds.classes(), strict=True) if proved_from(each)]


class Options(BaseModel):
    model_config = ConfigDict(extra="forbid")


def option(name: str, **limits: Any) -> Any:
    """A field as the table of options describes it."""
    option = options.OPTIONS[name]
    default = list(option.default) if option.default == () else option.default
    return Field(default=default, description=option.help, **limits)


class FileOptions(Options):
    """How a file is to be read."""

    sheet: Name | None = option("sheet")
    header_row: Annotated[int, Field(ge=1)] | None = option("header_row")
    decimal: DecimalMark = option("decimal")


class PastOptions(FileOptions):
    """Columns of past candidates, and how they are to be read."""

    score: Name = option("score")
    label: Name = option("label")
    missing_labels: MissingLabels = option("missing_labels")
    pos_label: list[Name] = option("pos_label")
    neg_label: list[Name] = option("neg_label")

    @property
    def hints(self) -> Hints:
        """How the file is to be read; its place was said before."""
        return Hints(None, self.decimal, self.pos_label, self.neg_label)


Model = TypeVar("Model", bound=BaseModel)
# the types of fields of promises, by their kinds; a choice is its own
TYPES: dict[Any, Any] = {
    float: Number | None,
    int: Annotated[int, Field(ge=1)] | None,
    options.Share: Annotated[float, Field(gt=0, lt=1)] | None,
    options.WholeShare: Annotated[float, Field(gt=0, le=1)] | None,
    options.Sizes: Number | PoolRange | None,
}


def with_fields(fields: Mapping[str, options.Option]) -> Callable[[type[Model]], type[Model]]:
    """A model with more fields: those of promises, as their kinds describe them."""
    described: dict[str, Any] = {
        name: (TYPES.get(each.kind, each.kind), Field(default=each.default, description=each.help))
        for name, each in fields.items()
    }

    def extended(model: type[Model]) -> type[Model]:
        return create_model(model.__name__, __base__=model, __doc__=model.__doc__, **described)

    return extended


@with_fields(kinds.fields())
class CalibrateOptions(PastOptions):
    """Columns and promise of a calibration."""

    promise: str = option("promise", json_schema_extra={"enum": FROM_ROWS})
    largest_pool: int | None = option("largest_pool", ge=1, le=10**9)
    pool: Name | None = option("pool")
    also: list[str] = option("also", max_length=4)
    other_score: list[Name] = option("other_score", max_length=20)
    audit_rate: float | None = option("audit_rate", gt=0, le=1)
    audited_below: Finite | None = option("audited_below")
    false_positive: Finite | None = option("false_positive")
    false_negative: Finite | None = option("false_negative")
    longest: Finite | None = option("longest")
    probability: Name | None = option("probability")
    lowest_rate: float | None = option("lowest_rate", gt=0, le=1)
    lowest_score: Finite | None = option("lowest_score")
    alpha: float = option("alpha", gt=0, lt=1)
    rule: options.Rule = option("rule")
    calibration_share: float = option("calibration_share", gt=0, lt=1)
    group: Name | None = option("group")
    target: list[str] = option("target")
    purpose: str | None = option("purpose", max_length=2000)
    group_split: options.GroupSplit = option("group_split")
    group_rows: options.GroupRows = option("group_rows")
    group_cutoff: options.GroupCutoff = option("group_cutoff")
    ties: options.Ties = option("ties")
    id: Name | None = option("id")
    name: Name = Field(default="policy", description="What people call the policy.")

    def request(self) -> CalibrationRequest:
        asked = self.model_dump()
        terms = terms_of(asked, target_asked(asked))
        return CalibrationRequest(roles_of(asked), terms, drawn_labels(asked), self.hints)


class CurveOptions(PastOptions):
    pool_size: Number = option("curve.pool_size")
    alpha: float = option("curve.alpha", gt=0, lt=1)
    rule: options.CurveRule = option("curve.rule")

    def split(self) -> tuple[Roles, dict[str, Any]]:
        """Which column is what, and everything else."""
        return Roles(self.score, self.label), self.model_dump(
            exclude={"score", "label", "header_row", *REMEMBERED}
        )


class PoolColumns(Options):
    """Columns of a table; by default those the policy was calibrated on."""

    score: Name | None = None
    group: Name | None = None
    id: Name | None = None
    pool: Name | None = Field(default=None, description="For tables of many pools: the column with the pool.")


class EvaluateOptions(PoolColumns):
    """Columns of labelled candidates; by default those the policy was calibrated on."""

    label: Name | None = None


class SelectOptions(FileOptions, PoolColumns):
    """Columns of a pool, how its file is read, and what is wanted of it."""

    attribute: list[Name] = Field(
        default=[],
        max_length=2,
        description="Up to two columns to count selection rates by (CSV and Parquet).",
    )
    format: Literal["csv", "jsonl", "parquet", "xlsx", "spreadsheet"] | None = Field(
        default=None,
        description="Of the shortlist, for files; by default that of the pool. `xlsx` has rank and reason. "
        "`spreadsheet` is CSV with cells that a spreadsheet would run as formulas escaped.",
    )
    watch: bool = Field(
        default=False,
        description="Let the reviews of this pool show whether the promise still holds. Decided before any "
        "outcome is known; pools count in the order of screening.",
    )
    audit_rate: float | None = Field(
        default=None,
        gt=0,
        lt=1,
        description="With `watch`, for a share of all qualified and rows in JSON: everyone who is not "
        "shortlisted (of a triage: everyone) is drawn with this probability. The same for all pools.",
    )

    @property
    def columns(self) -> dict[str, Any]:
        return {"score": self.score, "group": self.group, "id": self.id, "pool": self.pool}


class Row(BaseModel):
    """A candidate: column name to value."""

    model_config = ConfigDict(extra="allow")


class Rows(BaseModel):
    """A table as JSON: one object per row."""

    rows: list[Row]


class PastRows(Rows):
    """Past candidates, and rows with the scores of others, without labels, where the promise needs them."""

    unlabelled: list[Row] | None = None


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


class ScoresView(BaseModel):
    """The scores of the calibration rows: `auc` is the chance that a qualified row scores above another."""

    group: str | None
    lowest: float
    highest: float
    auc: float | None


class TwoLinesView(BaseModel):
    """The promise in two lines that a person can repeat, and what they mean."""

    what: str = Field(description="What is promised.")
    sure: str = Field(description="How sure that is; why, where the promise was withdrawn.")
    meaning: list[str]


class PolicyView(BaseModel):
    hash: str
    name: str
    note: str = ""
    file: str | None = Field(default=None, description="What the file of calibration rows was called.")
    promise: str
    two_lines: TwoLinesView
    conditions: list[str]
    alpha: float
    rule: str
    cutoffs: list[CutoffView]
    score_column: str | None
    scores: list[ScoresView]
    warnings: list[str]
    purpose: str | None
    retired: bool
    withdrawn: str | None = Field(description="Why the promise no longer stands, after an alarm.")
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
    checks: list[CheckView]
    receipt: Receipt


class CheckView(BaseModel):
    """The pool compared with what was calibrated; a warning blocks nothing."""

    kind: str
    warns: bool
    message: str
    group: str | None = None


class Shortlist(BaseModel):
    selection: SelectionView
    shortlist: list[Row]
    audit: list[Row] | None = Field(
        default=None, description="With `audit_rate`: whom to review beside the shortlist."
    )
    triage: list[str] | None = Field(default=None, description="Of a triage: the list of each row sent.")


class ShareView(BaseModel):
    """`count` of `of`; the interval covers the true share at least 19 times in 20."""

    count: int
    of: int
    low: float
    high: float


class KeptView(BaseModel):
    """Of all rows, or of a group: listed, qualified and listed, recall, precision."""

    group: str | None
    listed: ShareView
    found: ShareView
    recall: ShareView
    precision: ShareView


class EvaluationView(BaseModel):
    """Whether labelled rows that the policy never saw fit its promise."""

    promise: str
    kept: list[KeptView]
    pools: ShareView | None
    consistent: bool | None
    verdict: str


class CurveView(BaseModel):
    rule: str
    alpha: float
    pool_size: float
    rows: int
    list_size: list[float]
    qualified: list[float]
    threshold: list[float]


class Review(Options):
    candidate: str = Field(min_length=1, max_length=500)
    qualified: bool


class Reviews(Options):
    reviews: list[Review] = Field(min_length=1, max_length=100_000)


class ReviewsView(BaseModel):
    selection: str
    reviewed: int
    qualified: int | None = Field(
        description="null while others have marked candidates whom the caller may mark and has not."
    )
    disagreements: int = 0
    receipt: Receipt | None = None


Count = Annotated[int, Field(ge=0)]


class Finish(Options):
    missing: bool = Field(
        default=False, description="Reviews that are not in will never come; they speak for the promise."
    )
    missed: Count | dict[str, Count] | None = Field(
        default=None,
        description="Where an audit was drawn: how many of those drawn are qualified, by group where "
        "there are groups, by list of a triage.",
    )
    unaudited: Count | dict[str, Count] | None = Field(
        default=None, description="How many of those drawn will never be reviewed."
    )


class StandingView(BaseModel):
    """Is the promise still true? In one sentence, and the evidence against it after each pool."""

    policy: str
    standing: str | None
    sentence: str
    pools: int
    evidence: list[float]
    alarm_at: float
    waiting: str | None
    withdrawn: str | None
    receipt: Receipt | None = None


class Retirement(Options):
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
