"""A promise from a table of past candidates: which way to certify it, and what to read for that.

Counts and whole pools are asked of the engine where the table is; other promises read their columns into
memory. Front ends and ``calibrate_table`` come here with values.

Whether rows are those of a policy: everything that follows from them is worked out anew and compared, so that
a report vouches for no policy that was changed by hand, and for no rows but its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Any

import numpy as np
from msgspec.structs import replace

from surelist._check import EVERYONE
from surelist._names import Marked, option
from surelist.errors import InvalidInput, NotCertifiable
from surelist.filters import pool_members, refuse_everyone
from surelist.promises.calibrate import Arrays, Facts, certify, certify_arrays, require_proofs
from surelist.promises.evidence import Evidence, PoolRows, RowColumns, rows_fingerprint
from surelist.promises.kinds.counts import counts_of
from surelist.promises.policy import Policy
from surelist.promises.pool_checks import pool_effect, warn_of_pools
from surelist.promises.promise import Needs
from surelist.promises.sampled import NoisyLabels, SampledLabels
from surelist.promises.shift import DensityRatio
from surelist.promises.state import Cutoff
from surelist.promises.terms import Roles, Terms, fitting_advice
from surelist.tables.arrays import plain_rows, read_columns
from surelist.tables.evidence import Checks, PooledRows, calibration_rows, pool_totals, pooled_rows
from surelist.tables.reading import reading_of
from surelist.workflows.source import Source, words_of_tables

REMEMBERED = ("score", "label", "group", "id")  # the columns that a policy remembers
WITH_POOLS = (*REMEMBERED, "pool")


def certify_source(
    source: Source,
    roles: Roles,
    terms: Terms,
    unlabelled: object = None,
    drawn: SampledLabels | NoisyLabels | None = None,
    shift: DensityRatio | None = None,
) -> Policy:
    """What ``calibrate_table`` does, from values: for the front ends. ``drawn``: how labels came about."""
    asked = Arrays(
        dict.fromkeys(roles.scores), drawn, roles.group, roles.id, shift, roles.pool, unlabelled,
        bad_rows="dropped" if source.on_bad_rows == "drop" else "none",
    )  # fmt: skip
    opened, needs = replace(source, table=source.open()), {each.needs for each in terms.all_targets}
    beside = any(each is not None for each in (drawn, unlabelled, shift))
    with words_of_tables(), fitting_advice(terms):
        if terms.hashed and roles.id is None:
            raise InvalidInput("ties", f"ties are broken by candidate id; pass {option('ties', 'hash')}.")
        require_proofs(asked, terms)
        if beside or roles.other_score or terms.also or Needs.COLUMNS in needs:
            policy = _certify_columns(opened, roles, terms, asked)
        elif Needs.POOLS in needs:
            policy = _certify_pools(opened, roles.names(*WITH_POOLS), terms)
        else:
            policy = _certify_counts(opened, roles, terms)
    table, columns = opened.open(), policy.columns or {}
    understood = reading_of(table, {"score": columns.get("score"), "label": roles.label})
    return policy.with_columns(**columns | table.hints.remembered()).read_from(*understood.sentences)


def _certify_counts(source: Source, roles: Roles, terms: Terms) -> Policy:
    """Rows as units: counted where the table is."""
    names = roles.names(*WITH_POOLS)
    checks = Checks(terms.hashed, terms.missing_labels, source.on_bad_rows)
    plain = None if terms.common or terms.hashed else plain_rows(source.open(), names, list(terms.targets))
    if plain is not None:
        return certify(_in_memory(*plain, terms), terms, Facts()).with_columns(**names)
    whole = terms.common and EVERYONE in terms.targets
    rows = calibration_rows(
        source.open(), list(terms.targets), names, checks, group_rows=terms.group_rows, more_groups=whole
    )
    evidence = {name: Evidence(each, name) for name, each in rows.evidence.items()}
    if terms.common:
        everyone = calibration_rows(source.open(), [None], {**names, "group": None}, checks)
        evidence[None] = Evidence(everyone.evidence[None])
    if whole:
        refuse_everyone(rows.evidence[EVERYONE].raw is not None)
        evidence[EVERYONE] = replace(evidence[None], group=EVERYONE)
    counts = counts_of(evidence, terms)
    if whole and (all_rows := counts.pop(EVERYONE, None)):
        everyone.expect({None: all_rows})
    rows.expect(counts)
    policy = certify(evidence, terms, Facts(rows.missing_labels, rows.dropped))
    if roles.pool is not None and not terms.grouped:
        sizes, totals = pool_totals(rows, policy.cutoffs[0].steps[0].threshold)
        warn_of_pools(pool_effect(sizes, totals, terms.alpha), terms.alpha, terms.all_targets[0])
    return policy.with_columns(**names)


def _in_memory(scores: Any, good: Any, codes: Any, terms: Terms) -> dict[str | None, Evidence]:
    """Rows by group, from arrays; ``codes`` are the places of their groups among the targets."""
    rows = RowColumns(scores, good, among=len(scores) if terms.group_rows == "all" else None)
    return {
        name: Evidence(rows.part(codes == at if terms.grouped else None), name)
        for at, name in enumerate(terms.targets)
    }


def _certify_pools(source: Source, names: dict[str, str | None], terms: Terms) -> Policy:
    """Whole pools as units: one pass counts them, another fetches the qualified rows."""
    checks = Checks(False, terms.missing_labels, source.on_bad_rows)
    read = pooled_rows(source.open(), names, checks, by_rank=terms.all_targets[0].by_rank)
    evidence: dict[str | None, Evidence] = {None: _pooled(read, None)}
    if terms.common:
        known = [str(name) for name in terms.targets]
        members = pool_members(read.groups, known, len(read.scores), overlapping=False, everyone=True)
        evidence |= {name: _pooled(read, name, mask) for name, mask in members.items()}
    policy = certify(evidence, terms, Facts(read.counted.missing_labels, read.counted.dropped))
    return policy.with_columns(**names)


def _pooled(read: PooledRows, group: str | None, mask: Any = slice(None)) -> Evidence:
    """Whole pools, of whose qualified rows those of a group count."""
    rows = PoolRows.of_qualified(
        read.counts.rows, read.pools, read.scores[mask], read.codes[mask], read.unscored
    )
    return Evidence(read.counts, group, pooled=rows)


def _certify_columns(source: Source, roles: Roles, terms: Terms, asked: Arrays) -> Policy:
    """Promises that need every row: the columns are read into memory, all in one pass."""
    if source.on_bad_rows != "error":
        raise InvalidInput("on_bad_rows", 'this promise goes with "error" only; clean the table first.')
    drawn, shift = asked.labels, asked.shift
    read = _read_rows(source, roles, terms, drawn)
    labels = read["amount" if "amount" in read else "label"]
    if drawn is not None:
        rates = {"probability": read["probability"]} if "probability" in read else {}
        labels = replace(drawn, labels=labels, **rates)
    scores = {name: read["score" if at == 0 else f"score_{at - 1}"] for at, name in enumerate(roles.scores)}
    others = _other_scores(asked.unlabelled, roles.scores)
    one = not roles.other_score
    given = Arrays(
        read["score"] if one else scores, labels, read.get("group"), read.get("id"),
        None if shift is None else replace(shift, ratios=read["weight"]), read.get("pool"),
        others.get(roles.scores[0]) if one else others or None,
    )  # fmt: skip
    policy = certify_arrays(given, terms)
    chosen = roles.scores[0] if policy.choice is None else policy.choice.chosen
    return policy.with_columns(score=chosen, label=roles.label, **roles.names("group", "id", "pool"))


NONE_DROPPED = Marked({"on_bad_rows": None})  # not offered where every row is read


def _read_rows(
    source: Source, roles: Roles, terms: Terms, drawn: SampledLabels | NoisyLabels | None
) -> dict[str, Any]:
    """Columns by role: scores and labels (or values) as numbers, and what is beside them."""
    values = any(each.amounts for each in terms.all_targets)
    rate = drawn.probability if isinstance(drawn, SampledLabels) else None
    numbers = {f"score_{at}": name for at, name in enumerate(roles.other_score)}
    numbers |= {"amount": roles.label or ""} if values else {}
    numbers |= {"probability": rate} if isinstance(rate, str) else {}
    opened = source.open()
    names = roles.names("score", "group", "id", "pool", "weight") | {"label": None if values else roles.label}
    needed = not isinstance(drawn, SampledLabels) and terms.missing_labels == "error"
    any_order = roles.weight is None  # which rows a seed keeps depends on their order
    read = read_columns(opened, names, numbers=numbers, any_order=any_order, every_label=needed)
    for role, name in numbers.items():
        if role != "amount" and np.isnan(read[role]).any():
            read_columns(opened, {"score": name}, any_order=True)  # says which rows have no number
    return read


def _other_scores(unlabelled: object, names: Sequence[str]) -> dict[str, Any]:
    if unlabelled is None:
        return {}
    if isinstance(unlabelled, (np.ndarray, list, tuple)) and len(names) == 1:
        return {names[0]: unlabelled}
    if isinstance(unlabelled, Source):
        unlabelled = unlabelled.open()
    try:
        return {name: read_columns(unlabelled, {"score": name}, any_order=True)["score"] for name in names}
    except InvalidInput as error:
        raise InvalidInput("unlabelled", error.said(NONE_DROPPED)) from error


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
    given = {name: getattr(policy, name) for name in ("group_split", "group_rows", "group_cutoff")}
    return Terms(
        targets, alpha=policy.alpha, rule=policy.rule, purpose=policy.purpose, also=also,  # type: ignore[arg-type]
        group_keys=policy.group_keys,
        calibration_share=policy.cutoffs[0].level.calibration_share,
        hashed=policy.salt_hash is not None,
        missing_labels="unqualified" if policy.missing_labels else "error",
        **{name: value for name, value in given.items() if value is not None},
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
