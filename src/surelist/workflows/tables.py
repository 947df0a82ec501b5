"""What a person does with tables of candidates: calibrate, evaluate, look them over."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from msgspec.structs import replace

from surelist import _check as check
from surelist._check import MissingLabels, OnBadRows
from surelist.errors import InvalidInput
from surelist.promises import kinds
from surelist.promises.calibrate import calibrate as calibrate_arrays
from surelist.promises.conditions import Groups, Hash, refuse_earlier
from surelist.promises.curve import GuaranteeCurve, guarantee_curve
from surelist.promises.evaluation import Evaluation, evaluate
from surelist.promises.evidence import rows_fingerprint
from surelist.promises.grammar import one_target
from surelist.promises.kinds.this_list import list_curve
from surelist.promises.options import Rule
from surelist.promises.policy import Policy, as_policy
from surelist.promises.sampled import NoisyLabels, SampledLabels
from surelist.promises.shift import DensityRatio, ratios_of
from surelist.promises.terms import Roles, Targets, make_terms
from surelist.promises.wording import warn_of_doubts
from surelist.reports import audit
from surelist.tables.arrays import read_columns, read_text
from surelist.tables.bad_rows import Problem, problem_of
from surelist.tables.engines.duckdb import limit
from surelist.tables.evidence import Census, Checks
from surelist.tables.excel import SheetNeeded
from surelist.tables.hints import LABELS, NO_HINTS, Hints, Origin
from surelist.tables.profile import Column, Profile, category_counts, convert, first_rows, ranked_rows, shape
from surelist.tables.reading import NO_LABEL, Reading
from surelist.tables.sources import adopt_upload
from surelist.workflows.certify import REMEMBERED, certify_source
from surelist.workflows.selection import score_column, select_table
from surelist.workflows.source import Read, Source, words_of_tables

__all__ = [
    "NO_LABEL", "Column", "Problem", "Profile", "SheetNeeded", "convert", "first_rows", "ranked_rows",
    "read_text", "select_table", "shape",
]  # fmt: skip


def calibrate_table(
    table: object, *, score: str | Sequence[str], label: str | SampledLabels | NoisyLabels, target: Targets,
    alpha: float = 0.1,
    rule: Rule = "exact", calibration_share: float = 0.5, groups: Groups | None = None,
    ties: Literal["include"] | Hash = "include", shift: DensityRatio | None = None, pool: str | None = None,
    unlabelled: object = None, missing_labels: MissingLabels = "error", on_bad_rows: OnBadRows = "error",
    read: Read | None = None, progress: Callable[[str], None] | None = None, **earlier: object,
) -> Policy:  # fmt: skip
    """Certify ``target`` from a table of past candidates, where the table is.

    Parameters
    ----------
    table : path, DataFrame, table or relation
        A path, glob or folder of CSV or Parquet, or an Excel file (``excel`` extra); a pandas, polars or
        PySpark DataFrame, a pyarrow table, a DuckDB relation, or anything that streams Arrow.
    score : str or sequence of str
        Names of columns. Several score columns are certified each at its share of alpha and the one with the
        shortest list is kept.
    label : str, SampledLabels or NoisyLabels
        Name of a column; a label column of ``SampledLabels("label", ...)`` is missing where a row was not
        drawn.
    target : Promise, list of Promise, or mapping of str to Promise
        What is promised, as for ``calibrate``.
    groups, ties, shift : Groups, Hash, DensityRatio
        As for ``calibrate``, with the name of a column in each: ``Groups("sex", purpose=...)``,
        ``Hash("id")``, ``DensityRatio("weight", bound=2)``.
    pool : str, optional
        Column that says which pool a row is in: as ``pools`` of ``calibrate``.
    unlabelled : table or array_like, optional
        A table with the score columns of other candidates, or the scores themselves.
    on_bad_rows : {"error", "drop"}
        ``"drop"`` leaves out rows without a finite score, and says so in the policy; the promise
        is then about candidates who have one. Rows without a *label* are never dropped.
    read : Read, optional
        How the file is to be read: sheet, decimal mark, labels, engine. How it was read is in
        ``policy.reading``; ``read_table`` shows it beforehand.
    progress : callable, optional
        Called with a few words at the start of every pass over the data.

    Notes
    -----
    Everything else is as for ``calibrate``. Rows are counted, not collected, where counts decide; other
    promises, and a ``shift``, read their columns into memory.

    Returns
    -------
    Policy
        As from ``calibrate``; it remembers the names of the columns.

    Raises
    ------
    NotCertifiable
        The rows cannot carry the target.
    InvalidInput
        A column or a value does not fit; says which rows.

    Examples
    --------
    >>> import polars as pl
    >>> import surelist as sl
    >>> past = pl.DataFrame({"risk": [i / 500 for i in range(500)], "ill": [i > 300 for i in range(500)]})
    >>> policy = sl.calibrate_table(past, score="risk", label="ill", target=sl.Expected(5, 100))
    >>> policy.threshold
    0.936
    """
    refuse_earlier(earlier, "calibrate_table")
    terms = make_terms(
        target, groups=groups, ties=ties, alpha=alpha, rule=rule, calibration_share=calibration_share,
        missing_labels=missing_labels,
    )  # fmt: skip
    names = (score,) if isinstance(score, str) else tuple(score)
    drawn = label if isinstance(label, (SampledLabels, NoisyLabels)) else None
    column: str = label.labels if isinstance(label, (SampledLabels, NoisyLabels)) else label
    roles = Roles(
        names[0] if names else None, column, None if groups is None else groups.names,
        ties.ids if isinstance(ties, Hash) else None, ratios_of(shift), pool,
        names[1:],
    )  # fmt: skip
    source = Source.of(table, read, on_bad_rows=on_bad_rows, progress=progress)
    policy = certify_source(source, roles, terms, unlabelled, drawn, shift)
    warn_of_doubts(policy, stacklevel=2)
    return policy


def read_table(
    table: object,
    *,
    score: str | None = None,
    label: str | None = None,
    read: Read | None = None,
    **earlier: object,
) -> Reading:
    r"""What would be understood of a file, before anything is done with it; ``sentences`` says it in words.

    The sheet and the text it is read from, how numbers in ``score`` are written and which cells hold
    none, and with ``pos_label`` how often each label occurs. Nothing is said of what is plain.

    Parameters
    ----------
    table : path or table
        As for ``calibrate_table``.
    score, label : str, optional
        Names of columns.
    read : Read, optional
        How a file is to be read.

    Returns
    -------
    Reading
        What was understood, and what was not.

    Raises
    ------
    InvalidInput
        A value that does not fit: the error names it, what was expected and what was found.

    Examples
    --------
    >>> from pathlib import Path
    >>> import surelist as sl
    >>> done = Path("past.csv").write_text("name;risk\nAnn;0,84\nBen;0,31\n")
    >>> sl.read_table("past.csv", score="risk").sentences[-1]
    "risk: '0,31' read as 0.31 (decimal comma)."
    """
    refuse_earlier(earlier, "read_table")
    return Source.of(table, read).reading(score=score, label=label)


def evaluate_table(
    table: object, policy: Policy | str | Path, *, score: str | None = None, label: str | None = None,
    group: str | None = None, id: str | None = None, pool: str | None = None, read: Read | None = None,
    **earlier: object,
) -> Evaluation:  # fmt: skip
    """How a policy did on a table of labelled candidates that took no part in making it.

    ``policy`` may be the path of its file. Columns and the labels that mean qualified are by default those
    it was calibrated on; ``pool`` says which pool a row is in.

    Parameters
    ----------
    table : path or table
        Labelled candidates, as for ``calibrate_table``.
    policy : Policy or path
        What is judged.
    score, label, group, id, pool : str, optional
        Names of columns.
    read : Read, optional
        How a file is to be read.

    Returns
    -------
    Evaluation
        Shares with exact intervals, and a verdict.

    Raises
    ------
    InvalidInput
        A value that does not fit: the error names it, what was expected and what was found.

    Examples
    --------
    >>> import polars as pl
    >>> import surelist as sl
    >>> rows = pl.DataFrame({"risk": [i / 500 for i in range(500)], "ill": [i > 300 for i in range(500)]})
    >>> policy = sl.calibrate_table(rows, score="risk", label="ill", target=sl.Expected(5, 100))
    >>> later = rows.with_columns(risk=pl.col("risk") + 0.0001)
    >>> sl.evaluate_table(later, policy).consistent
    True
    """
    refuse_earlier(earlier, "evaluate_table")
    policy = as_policy(policy)
    given = {"score": score, "label": label, "group": group, "pool": pool, "id": id}
    source = Source.of(table, read)
    if not source.hints.pos_label:
        labels = Hints.of(policy.columns or {}, LABELS)
        said = replace(source.hints, pos_label=labels.pos_label, neg_label=labels.neg_label)
        source = replace(source, hints=said)
    return evaluate_source(source, policy, given)[1]


def evaluate_source(
    source: Source, policy: Policy, given: Mapping[str, str | None]
) -> tuple[str | None, Evaluation]:
    """The rows' fingerprint and the evaluation: for the front ends. ``given``: columns by role."""
    if any(cutoff.target.amounts for cutoff in policy.cutoffs):
        raise InvalidInput(
            "policy", "it is about amounts, and evaluation counts candidates; compare sums instead."
        )
    remembered = policy.columns or {}
    score = score_column(policy, given.get("score"))
    names = {role: given.get(role) or remembered.get(role) for role in ("label", "group", "pool")}
    names |= {"score": score, "group": names["group"] if policy.grouped else None}
    names["id"] = (given.get("id") or remembered.get("id")) if policy.salt_hash is not None else None
    for role in ("score", "label"):
        if names[role] is None:
            raise InvalidInput(role, f"this policy remembers no {role} column; pass {role}=.")
    arrays = read_columns(source.open(), names, any_order=True)
    rows = rows_fingerprint(arrays["score"], arrays["label"])
    if rows is not None and rows == (policy.everyone or policy.cutoffs[0]).fingerprint:
        raise InvalidInput(
            source.name or "table",
            "these are the rows the policy was calibrated on, and prove nothing about it; give labelled "
            "candidates it never saw.",
        )
    scores = arrays["score"] if policy.choice is None else {policy.choice.chosen: arrays["score"]}
    beside = {f"{role}s": arrays.get(role) for role in ("group", "id", "pool")}
    with words_of_tables():
        return rows, evaluate(policy, scores, arrays["label"], **beside)


calibrate, limit_duckdb = calibrate_table, limit  # for the front ends


def problems(source: Source, roles: Roles, missing_labels: MissingLabels = "error") -> tuple[Problem, ...]:
    """What calibration would refuse or warn of with these columns, in the same words."""
    checks = Checks(False, missing_labels, source.on_bad_rows)
    try:
        return Census(source.open(), roles.names(*REMEMBERED), None, checks).problems
    except InvalidInput as error:
        return (problem_of(error),)


def value_problems(source: Source, roles: Roles) -> tuple[Problem, ...]:
    """What calibration would refuse where labels are amounts."""
    try:
        read = read_columns(source.open(), {"score": roles.score}, numbers={"label": roles.label or ""})
        check.as_values(read["label"])
    except InvalidInput as error:
        return (problem_of(error),)
    return ()


def curve(
    table: str | Path, *, score: str, label: str, missing_labels: MissingLabels = "error",
    hints: Hints = NO_HINTS, **options: Any,
) -> GuaranteeCurve:  # fmt: skip
    """The guarantee curve of a table of past candidates; ``options`` are those of ``guarantee_curve``."""
    opened, names = Source(table, hints=hints).open(), {"score": score, "label": label}
    arrays = read_columns(opened, names, every_label=missing_labels == "error")
    return guarantee_curve(arrays["score"], arrays["label"], missing_labels=missing_labels, **options)


def list_of(
    pool: str | Path, past: str | Path, *, score: str, label: str, alpha: float = 0.1,
    size: int | None = None, share: float | None = None, hints: Hints = NO_HINTS,
) -> Any:  # fmt: skip
    """How many of a pool's list are qualified: a curve of every length, or a policy of one that was fixed."""
    rows = read_columns(Source(past, hints=hints).open(), {"score": score, "label": label}, every_label=True)
    others = read_columns(Source(pool, hints=hints).open(), {"score": score}, any_order=True)["score"]
    if size is None:
        return list_curve(rows["score"], rows["label"], others, alpha=alpha)
    kind = kinds.which(lambda each: each.fixed_size)
    target = one_target(kind, {"size": size, "share": share})
    return calibrate_arrays(rows["score"], rows["label"], target, alpha=alpha, unlabelled=others)


def admit(path: Path, hints: Hints, adopted: Path) -> tuple[int, list[str], Origin | None]:
    """Rows and column names of a file that came from outside; what no engine reads goes to ``converted``."""
    origin = adopt_upload(path, hints, adopted)
    rows, names = shape(path if origin is None else adopted)
    return rows, names, origin


def impact(
    pool: str | Path, shortlist: str | Path, attributes: Sequence[str], three_ways: bool = False
) -> list[audit.ImpactTable]:
    """Selection rates by each attribute, and by all of them together where there are several."""
    wanted: list[tuple[str, ...]] = [(name,) for name in attributes]
    if len(attributes) > 1:
        wanted.append(tuple(attributes))
    return [
        audit.impact_table(names, category_counts(Path(pool), Path(shortlist), names, three_ways))
        for names in wanted
    ]
