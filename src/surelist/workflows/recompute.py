"""Whether rows are those of a policy: everything that follows from them is worked out anew and compared.

So a report vouches for no policy that was changed by hand, and for no rows but its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from typing import Any

import numpy as np

from surelist._dataclasses import replace
from surelist.errors import InvalidInput, NotCertifiable
from surelist.promises.evidence import rows_fingerprint
from surelist.promises.policy import Policy
from surelist.promises.state import Cutoff
from surelist.promises.terms import Roles, Terms
from surelist.tables.arrays import read_columns
from surelist.workflows.certify import certify_source
from surelist.workflows.source import Source

ROUNDING = 1e-9  # of shares that are the same


def rests_beyond_rows(policy: Policy) -> str | None:
    """What a policy's thresholds rest on that its columns do not hold; None where that is nothing."""
    if policy.shift is not None:
        return "density ratios, by which rows were kept"
    if policy.thinning is not None:
        return "the probabilities with which labels were drawn"
    if policy.choice is not None and len(policy.choice.scores) > 1:
        return "the other scores that were looked at"
    return next(filter(None, (each.proof.rests_on for each in policy.cutoffs)), None)


def require_rows_of(policy: Policy, source: Source) -> None:
    """Raise where the rows of ``source`` do not give ``policy``, and say what differs.

    Where thresholds rest on more than the rows, what can be is compared: rows, qualified rows, fingerprint.
    """
    source = replace(source, on_bad_rows="drop" if policy.dropped_rows else "error")
    names = policy.columns or {}
    roles = Roles(names.get("score"), names.get("label"), names.get("group"), names.get("id"))
    if rests_beyond_rows(policy) is not None:
        _require_fingerprint(policy, source, roles)
        return
    if policy.of_pools:
        if names.get("pool") is None:
            raise InvalidInput(
                "past", "the policy does not say which column its pools are in; leave the rows out."
            )
        roles = replace(roles, pool=names["pool"])
    try:
        again = certify_source(source, roles, _terms(policy))
    except NotCertifiable as error:
        raise _not_these(f"these rows certify nothing of the kind: {error}") from error
    for what, says, given in _differences(policy, again):
        raise _not_these(f"it says {what} {says}, these rows give {given}")


def _require_fingerprint(policy: Policy, source: Source, roles: Roles) -> None:
    """The same rows, by number, labels and fingerprint, where the policy keeps one of all its rows."""
    first = policy.everyone or policy.cutoffs[0]
    if policy.shift is not None or policy.thinning is not None or first.scores is None:
        return  # what was kept is some of the rows, or more than them
    if policy.cutoffs[0].target.amounts:
        raise InvalidInput(
            "past", "labels of this policy are amounts, which a report does not show; leave it out."
        )
    columns = read_columns(
        source.open(), {"score": roles.score, "label": roles.label}, source.on_bad_rows, any_order=True
    )
    qualified = int(np.count_nonzero(columns["label"] == 1))
    pairs = [
        ("rows", first.rows, len(columns["score"])),
        ("qualified rows", first.qualified, qualified),
        ("fingerprint", first.fingerprint, rows_fingerprint(columns["score"], columns["label"])),
    ]
    for what, says, given in pairs:
        if says != given:
            raise _not_these(f"it says {what} {says}, these rows give {given}")


def _terms(policy: Policy) -> Terms:
    targets = {cutoff.group: cutoff.target for cutoff in policy.cutoffs}
    also = () if policy.grouped else tuple(cutoff.target for cutoff in policy.cutoffs[1:])
    if also:
        targets = {None: policy.cutoffs[0].target}
    given = {
        "group_split": policy.group_split,
        "group_rows": policy.group_rows,
        "group_cutoff": policy.group_cutoff,
    }
    return Terms(
        targets, alpha=policy.alpha, rule=policy.rule, purpose=policy.purpose, also=also,  # type: ignore[arg-type]
        group_keys=policy.group_keys,
        calibration_share=policy.cutoffs[0].level.calibration_share,
        hashed=policy.salt_hash is not None,
        missing_labels="unqualified" if policy.missing_labels else "error",
        **{name: value for name, value in given.items() if value is not None},  # type: ignore[arg-type]
    )  # fmt: skip


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
            ("shares shortlisted", _each(before, "share"), _each(now, "share")),
            *_sketches(before, now),
        ]
        for what, says, given in pairs:
            if says != given and says is not None and says != [None] * len(before.steps):
                yield f"{what}{who}", says, given


def _sketches(before: Cutoff, now: Cutoff) -> Iterator[tuple[str, Any, Any]]:
    """What a report shows and pool checks use.

    Arrays and tables put the rows of a group into different bins: there, what the one says is refused only
    where the other leaves no room for it.
    """
    old, new = before.scores, now.scores
    if old is None or new is None:
        return
    exact = before.group is None
    yield "lowest and highest score", (old.lowest, old.highest), (new.lowest, new.highest)
    if exact or old.surely_another_auc(new):
        yield "AUC", old.auc, new.auc
    if exact:
        yield from (
            (f"sketch of scores, {name}:", says, given)
            for name in ("scores", "rows")
            for says, given in zip_longest(getattr(old, name), getattr(new, name))
        )
    for score, share in zip(*old.shares(), strict=True):
        low, high = new.share_at_least(score)
        if not low - ROUNDING <= share <= high + ROUNDING:
            yield f"sketch of scores, share at or above {score!r}:", share, high


def _each(cutoff: Any, name: str) -> Any:
    values = [getattr(step, name) for step in cutoff.steps]
    return values if len(values) > 1 else values[0]


def _not_these(difference: str) -> InvalidInput:
    return InvalidInput(
        "past",
        f"the policy was not calibrated on these rows, or was changed since: {difference}. No report is "
        "made; give the rows it was calibrated on, as they were.",
    )
