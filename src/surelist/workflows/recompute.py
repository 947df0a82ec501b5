"""Whether rows are those of a policy: everything that follows from them is worked out anew and compared.

So a report vouches for no policy that was changed by hand, and for no rows but its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from surelist import tables
from surelist.errors import InvalidInput, NotCertifiable
from surelist.promises.policy import Policy
from surelist.promises.terms import Roles, Terms
from surelist.workflows.certify import certify_source
from surelist.workflows.source import Source


def can_recompute(policy: Policy) -> bool:
    """Whether the columns a policy remembers are all it was made from."""
    special = policy.shift or policy.looks or policy.choice or policy.thinning
    return not special and all(cutoff.proof is None for cutoff in policy.cutoffs)


def require_rows_of(policy: Policy, source: Source) -> None:
    """Raise where the rows of ``source`` do not give ``policy``, and say what differs."""
    source = replace(source, on_bad_rows="drop" if policy.dropped_rows else "error")
    names = policy.columns or {}
    roles = Roles(names.get("score"), names.get("label"), names.get("group"), names.get("id"))
    try:
        again = certify_source(source, roles, _terms(policy))
    except NotCertifiable as error:
        raise _not_these(f"these rows certify nothing of the kind: {error}") from error
    if any(cutoff.fingerprint_by is None for cutoff in policy.cutoffs):
        again = _with_old_fingerprints(again, source, roles)
    for what, says, given in _differences(policy, again):
        raise _not_these(f"it says {what} {says}, these rows give {given}")


def _terms(policy: Policy) -> Terms:
    targets = {cutoff.group: cutoff.target for cutoff in policy.cutoffs}
    also = () if policy.grouped else tuple(cutoff.target for cutoff in policy.cutoffs[1:])
    if also:
        targets = {None: policy.cutoffs[0].target}
    given = {"group_split": policy.group_split, "group_rows": policy.group_rows}
    return Terms(
        targets, alpha=policy.alpha, rule=policy.rule, purpose=policy.purpose, also=also,  # type: ignore[arg-type]
        calibration_share=policy.cutoffs[0].level.calibration_share,
        ties="hash" if policy.salt_hash is not None else "include",
        missing_labels="unqualified" if policy.missing_labels else "error",
        **{name: value for name, value in given.items() if value is not None},  # type: ignore[arg-type]
    )  # fmt: skip


def _with_old_fingerprints(again: Policy, source: Source, roles: Roles) -> Policy:
    """The same with the fingerprints that earlier versions took of tables."""
    rows = tables.calibration_rows(
        source.open(), [cutoff.group for cutoff in again.cutoffs], on_bad_rows=source.on_bad_rows,
        names=roles.names("score", "label", "group", "id"), group_rows=again.group_rows or "own",
        ties="include", missing_labels="unqualified",
    )  # fmt: skip
    cutoffs = (replace(each, fingerprint=rows.evidence[each.group].old_fingerprint) for each in again.cutoffs)
    return replace(again, cutoffs=tuple(cutoffs))


def _differences(policy: Policy, again: Policy) -> Iterator[tuple[str, Any, Any]]:
    for name in ("missing_labels", "dropped_rows"):
        if getattr(policy, name) != getattr(again, name):
            yield name.replace("_", " "), getattr(policy, name), getattr(again, name)
    for before, now in zip(policy.cutoffs, again.cutoffs, strict=True):
        who = f" of group {before.group!r}" if before.group is not None else ""
        pairs = [
            ("rows", before.rows, now.rows),
            ("qualified rows", before.qualified, now.qualified),
            ("counts", _each(before, "critical_count"), _each(now, "critical_count")),
            ("thresholds", _each(before, "threshold"), _each(now, "threshold")),
            ("qualified rows at or above them", _each(before, "reached"), _each(now, "reached")),
            ("fingerprint", before.fingerprint, now.fingerprint),
        ]
        for what, says, given in pairs:
            if says != given and says is not None and says != [None] * len(before.steps):
                yield f"{what}{who}", says, given


def _each(cutoff: Any, name: str) -> Any:
    values = [getattr(step, name) for step in cutoff.steps]
    return values if len(values) > 1 else values[0]


def _not_these(difference: str) -> InvalidInput:
    return InvalidInput(
        f"past: the policy was not calibrated on these rows, or was changed since: {difference}. No report "
        "is made; give the rows it was calibrated on, as they were."
    )
