"""What reports and the record say of calibration rows, pools and shortlists, as plain values.

Curves and score bins of the rows, sizes and hashes of a selection. Numbers are computed by the
packages below; here a table is read once for all of them. ``write`` makes the audit report from files alone,
with no service and no record.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from msgspec import Struct
from msgspec.structs import asdict, replace

from surelist import _check as check
from surelist._check import MissingLabels
from surelist._files import refuse_inputs, temporary_folder, writing
from surelist._version import __version__
from surelist.errors import InvalidInput, NotCertifiable, PoolWarning
from surelist.filters import ranks_within
from surelist.promises import curve as of_rows
from surelist.promises.curve import GuaranteeCurve, PromiseCurve
from surelist.promises.evidence import rows_fingerprint
from surelist.promises.kinds.this_list import ListCurve, curve_of_best
from surelist.promises.policy import Policy
from surelist.promises.promise import Promise
from surelist.promises.sampled import NoisyLabels, SampledLabels
from surelist.promises.terms import Roles, Terms
from surelist.reports import audit
from surelist.reports.evidence import CurvePoints, GroupFinding, OwnCurve, RowsEvidence, SelectionFacts
from surelist.reports.report import render, summarise, write_pdf
from surelist.tables.arrays import read_columns
from surelist.tables.hints import Hints
from surelist.tables.shortlist import Selection
from surelist.tables.sources import Table
from surelist.workflows import tables as workflows
from surelist.workflows.certify import certify_source, require_rows_of, rests_beyond_rows
from surelist.workflows.source import Source

CURVE_POINTS = 240


class MadePolicy(Struct, frozen=True):
    """A policy, what a report shows of its rows (None: nothing that would be true of them), the share of
    candidates it would shortlist, and what a person should know before saving it."""

    policy: Policy
    evidence: RowsEvidence | None
    share: float
    warnings: list[str]


def _limits(policy: Policy) -> dict[str | None, float]:
    """The threshold of each group, by the text that tables know it by."""
    return {each.group: each.steps[0].threshold for each in policy.cutoffs}


def certify(
    source: Source,
    roles: Roles,
    terms: Terms,
    unlabelled: Source | None = None,
    drawn: SampledLabels | NoisyLabels | None = None,
) -> tuple[tuple[str, ...], MadePolicy | NotCertifiable]:
    """The rows' fingerprints, one per score, and what came of them.

    The table is opened once. A refusal is returned and not raised: it is a look at the rows too.
    """
    rows = _Rows(source, roles, values=any(each.amounts for each in terms.all_targets))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", PoolWarning)
        try:
            policy = certify_source(rows.source, roles, terms, unlabelled, drawn)
        except NotCertifiable as refusal:
            return rows.fingerprints, refusal
    columns = rows.of_score((policy.columns or {})["score"])
    own, by_group = _promise_curves(columns, policy)
    evidence = None
    if has_curves(policy) or own is not None or by_group:
        evidence = replace(_evidence(columns, policy), own=own, by_group=by_group)
    messages = [str(each.message) for each in caught if issubclass(each.category, PoolWarning)]
    return rows.fingerprints, MadePolicy(policy, evidence, _listed_share(columns, policy), messages)


def curve(source: Source, roles: Roles, **options: Any) -> tuple[str, GuaranteeCurve]:
    """The rows' fingerprint and their guarantee curve."""
    rows = _Rows(source, roles)
    return rows.fingerprint, of_rows.guarantee_curve(rows.columns["score"], rows.columns["label"], **options)


def list_curve(
    source: Source, roles: Roles, best: Source, score: str, candidates: int | None, alpha: float
) -> tuple[str, ListCurve]:
    """The rows' fingerprint, and how many are qualified of a pool's best, or of the best of all of it."""
    rows = _Rows(source, roles)
    listed = read_columns(best.open(), {"score": score}, any_order=True)["score"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PoolWarning)  # its conditions say so
        known = rows.columns["score"], rows.columns["label"]
        made = curve_of_best(*known, listed, candidates, alpha, "unlabelled")
    return rows.fingerprint, made


def evidence_at(source: Source, roles: Roles, **options: Any) -> tuple[str, RowsEvidence]:
    """The rows' fingerprint and what a report shows of them, with no policy yet."""
    rows = _Rows(source, roles)
    return rows.fingerprint, _shown(rows.columns, **options)


def rows_at_a_glance(
    source: Source, roles: Roles, *, values: bool = False
) -> tuple[str, tuple[float, float]]:
    """What rows are known by, whatever their file is called, and the range of their scores."""
    rows = _Rows(source, roles, values=values)
    scores = rows.columns["score"]
    finite = scores[np.isfinite(scores)]
    if not len(finite):
        raise InvalidInput("score", f"{roles.score!r} holds no finite number. Choose another column.")
    return rows.fingerprint, (float(finite.min()), float(finite.max()))


class _Rows:
    """An opened table of past candidates, its columns read once."""

    def __init__(self, source: Source, roles: Roles, *, values: bool = False) -> None:
        self.source, self._scores = replace(source, table=source.open()), roles.scores
        names = {**roles.names("score", "group", "pool"), "label": None if values else roles.label}
        numbers = {f"score_{at}": name for at, name in enumerate(roles.other_score)}
        numbers |= {"label": roles.label or ""} if values else {}
        self.columns = read_columns(self.source.table, names, numbers=numbers)

    def of_score(self, name: str) -> dict[str, Any]:
        """The columns with this score as theirs."""
        at = self._scores.index(name)
        return self.columns if at == 0 else {**self.columns, "score": self.columns[f"score_{at - 1}"]}

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the multiset of (score, label): the same rows in any order, with any other columns."""
        return self.fingerprints[0]

    @property
    def fingerprints(self) -> tuple[str, ...]:
        """The same for each of several scores."""
        columns = [self.of_score(name)["score"] for name in self._scores]
        known = [rows_fingerprint(each, self.columns["label"] > 0) for each in columns]
        return tuple(each or hashlib.sha256(b"no rows").hexdigest() for each in known)


def evidence_for(policy: Policy, source: Path, attributes: Sequence[str] = ()) -> RowsEvidence:
    """What a report shows of the rows a policy was calibrated on; other rows are refused.

    Counts, thresholds and fingerprints are worked out anew from the rows and compared; ``recomputed``
    says whether that was possible, and ``beyond`` what the thresholds rest on beside the rows. Groups,
    the policy's own or by an attribute, are looked at one by one.
    """
    if not {"score", "label"} <= (policy.columns or {}).keys():
        raise InvalidInput("past", "the policy does not say which columns it was calibrated on.")
    beyond = rests_beyond_rows(policy)
    table = Source(source, hints=Hints.of(policy.columns or {})).open()
    require_rows_of(policy, Source(table))
    if policy.thinning is not None or policy.cutoffs[0].proof.drawn_labels:
        raise InvalidInput(
            "past", "labels of this policy were drawn, and curves of them would mislead; leave the rows out."
        )
    columns = _columns(table, policy)
    own, by_group = _promise_curves(columns, policy)
    shown = replace(
        _evidence(columns, policy), recomputed=beyond is None, beyond=beyond, own=own, by_group=by_group
    )
    by = next((name for name in attributes if name in table.columns), None)
    if "group" not in columns and by is not None:
        columns = {**columns, **_columns(table, policy, group=by)}
    if "group" not in columns or policy.by_rank:
        return shown
    orders = audit.orders_within_groups(columns["score"], columns["label"], columns["group"], _limits(policy))
    found = [GroupFinding(each.group, each.describe(), each.passed_over) for each in orders]
    return replace(shown, within_groups=found)


def has_curves(policy: Policy) -> bool:
    """Whether curves of the rows are about this promise: counts of rows as they were drawn, and nothing was
    chosen after looking or shared by several promises."""
    several = policy.choice is not None or policy.several
    as_drawn = policy.thinning is None and policy.shift is None
    return not several and as_drawn and all(each.proof.many_steps for each in policy.cutoffs)


def _shown(
    columns: dict[str, Any], *, pool_size: float, alpha: float, rule: str, missing_labels: MissingLabels
) -> RowsEvidence:
    """Curves by the rule in force and by the paper's, and how labels follow scores."""
    rows = (columns["score"], columns["label"])
    mine = rule if rule == "simultaneous" else "exact"  # point by point
    curves = [of_rows.curve_by(each, *rows, pool_size, alpha, missing_labels) for each in (mine, "dkw")]
    bins = audit.score_bins(*rows, missing_labels=missing_labels)
    labelled = int(np.count_nonzero(~np.isnan(rows[1])))
    return RowsEvidence(
        len(rows[1]) - labelled, pool_size,
        {each.rule: CurvePoints(**_thinned(each)) for each in curves}, _shortened(bins),
    )  # fmt: skip


def selection_facts(
    done: Selection, pool: tuple[str, str], result: tuple[str, str], impact: Sequence[audit.ImpactTable] = ()
) -> SelectionFacts:
    """What goes on record of a selection; pool and result as (SHA-256, format)."""
    return SelectionFacts(
        pool_sha256=pool[0], pool_format=pool[1], candidates=done.candidates, shortlisted=done.shortlisted,
        groups=done.groups, result_sha256=result[0], result_format=result[1], version=__version__,
        checks=list(done.checks), impact=list(impact), lists=done.triage or {},
    )  # fmt: skip


def sha256_of(path: Path) -> str:
    """SHA-256 of a file."""
    if not path.is_file():
        raise InvalidInput("file", f"{path} does not exist.")
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _columns(table: Table, policy: Policy, group: str | None = None) -> dict[str, Any]:
    names = policy.columns or {}
    roles = {role: names.get(role) for role in ("score", "label", "group", "pool")}
    roles |= {"group": group} if group else {}
    return read_columns(table, roles, "drop" if policy.dropped_rows else "error")


def _evidence(columns: dict[str, object], policy: Policy) -> RowsEvidence:
    """Curves of counts where they are about the promise, and how labels follow scores, of rows that are units
    and labels that are 0 or 1."""
    targets, counted = [cutoff.target for cutoff in policy.cutoffs], has_curves(policy)
    size = _pool_size(targets, counted and policy.group_rows == "own")
    if counted:
        missing_labels: MissingLabels = "unqualified" if policy.missing_labels else "error"
        how: dict[str, Any] = {"alpha": policy.alpha, "rule": policy.rule, "missing_labels": missing_labels}
        return _shown(columns, pool_size=size, **how)
    of_labels = not policy.of_pools and not any(each.amounts for each in targets)
    bins = audit.score_bins(columns["score"], columns["label"]) if of_labels else ()
    return RowsEvidence(0, size, {}, _shortened(bins))


def _promise_curves(
    columns: dict[str, object], policy: Policy
) -> tuple[OwnCurve | None, dict[str, OwnCurve]]:  # fmt: skip
    """What each list length carries in the terms of this kind of promise, where there is such a curve."""
    rows = (columns["score"], columns["label"])
    if "group" in columns:
        by_group = of_rows.group_curves(*rows, columns["group"], policy)
        return None, {name: _own(each) for name, each in by_group.items()}
    made = of_rows.promise_curve(*rows, policy, pools=columns.get("pool"))
    return None if made is None else _own(made), {}


def _own(made: PromiseCurve) -> OwnCurve:
    length, promised = made.chosen
    points = _thinned(made, ("list_size", "value", "threshold"))
    return OwnCurve(**{**asdict(made), **points, "chosen": (_short(length), _short(promised))})


def _pool_size(targets: Sequence[Promise], by_group: bool) -> float:
    """For drawing curves: the pool size of the promise, else a pool of 100."""
    sizes = [target.pool or 0.0 for target in targets]
    return sum(sizes) if by_group and all(sizes) else max(sizes) or 100.0


def _listed_share(columns: dict[str, Any], policy: Policy) -> float:
    """How long lists will be, estimated; with a threshold per pool size, by that of the smallest."""
    chosen = np.zeros(len(columns["score"]), dtype=np.bool_)
    if policy.by_rank:
        codes, _ = check.as_codes(columns["pool"], len(chosen))
        return float((ranks_within(columns["score"], codes) >= policy.threshold).mean())
    for name, threshold in _limits(policy).items():
        above = columns["score"] >= threshold
        chosen |= above if name is None else above & (np.asarray(columns["group"]).astype(str) == name)
    return float(chosen.mean())


def _thinned(
    curve: GuaranteeCurve | PromiseCurve, parts: Sequence[str] = ("list_size", "qualified", "threshold")
) -> dict[str, list[float]]:
    """At most a few hundred points, each a true point of the curve."""
    stride = -(-len(curve.list_size) // CURVE_POINTS)
    return {name: [_short(float(value)) for value in getattr(curve, name)[::stride]] for name in parts}


def _shortened(bins: Sequence[audit.ScoreBin]) -> list[audit.ScoreBin]:
    """With as many digits as a picture shows."""
    parts = ("low", "high", "share", "share_low", "share_high")
    return [replace(each, **{name: _short(getattr(each, name)) for name in parts}) for each in bins]


def _short(value: float) -> float:
    return float(f"{value:.6g}")


ENDINGS = (".html", ".pdf", ".json")


def write(
    policy: Path,
    output: Path,
    *,
    past: Path | None = None,
    pool: Path | None = None,
    attributes: tuple[str, ...] = (),
    name: str = "policy",
) -> None:
    """Write the report of a policy file, its calibration rows and one pool; the ending is the format."""
    ending = output.suffix.lower()
    if ending not in ENDINGS:
        raise InvalidInput("output", expected="a name ending in .html, .pdf or .json", got=repr(output.name))
    inputs = [each for each in (policy, past, pool) if each is not None]
    refuse_inputs(output, inputs)
    if len(attributes) > 2:
        raise InvalidInput("attribute", expected="at most two", got=f"{len(attributes)}")
    made = Policy.load(policy)
    summary = summarise(
        made,
        name=name,
        policy_sha256=sha256_of(policy),
        rows_sha256=sha256_of(past) if past else None,
        evidence=evidence_for(made, past, attributes) if past else None,
        selection=_selection(made, pool, attributes) if pool else None,
    )
    with writing(output, inputs=inputs) as temporary:
        if ending == ".pdf":
            write_pdf(render(summary), temporary)
        elif ending == ".html":
            temporary.write_text(render(summary), encoding="utf-8")
        else:
            temporary.write_bytes(msgspec.json.format(msgspec.json.encode(summary), indent=1))


def _selection(policy: Policy, pool: Path, attributes: tuple[str, ...]) -> SelectionFacts:
    kind = pool.suffix[1:]
    with temporary_folder() as folder:
        output = folder / f"shortlist.{kind}"
        done = workflows.select_table(pool, policy, output=output)
        impact = workflows.impact(pool, output, attributes, policy.three_ways) if attributes else ()
        return selection_facts(done, (sha256_of(pool), kind), (sha256_of(output), kind), impact)
