"""Use cases of plan, watch and campaign on files: the only code their front ends call."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct

from surelist._check import MissingLabels
from surelist._files import refuse_inputs, updating
from surelist.errors import InvalidInput, NotCertifiable
from surelist.lifecycle.campaign import Campaign as Campaign
from surelist.lifecycle.campaign_state import Update
from surelist.lifecycle.drift import Drift, drift as drift_of_arrays
from surelist.lifecycle.monitor import Monitor
from surelist.lifecycle.plan import Plan
from surelist.lifecycle.planning import plan as plan_arrays
from surelist.promises.kinds.counts import CountPromise
from surelist.promises.policy import Policy
from surelist.promises.promise import Promise
from surelist.tables.arrays import read_columns, read_text
from surelist.tables.output import rows_with_ids, write_sheet
from surelist.tables.shortlist import select_rows
from surelist.tables.sources import Table, open_table
from surelist.workflows import campaign_record
from surelist.workflows.source import NO_HINTS, Hints, Source

UNREVIEWED = ("unreviewed", "unaudited")  # columns of reviews that never came
IF_THERE = (*UNREVIEWED, "drawn")
YES = ("1", "1.0", "1,0", "yes", "y", "true", "ja", "j", "wahr", "oui", "vrai", "si", "sí", "qualified")
NO = ("0", "0.0", "0,0", "no", "n", "false", "nein", "falsch", "non", "faux", "not qualified")
LABELS = dict.fromkeys(NO, 0.0) | dict.fromkeys(YES, 1.0)  # as people fill sheets in, by casefold


def plan(
    target: Promise, *, pilot: Path | None = None, score: str, label: str,
    missing_labels: MissingLabels = "error", hints: Hints = NO_HINTS, **options: Any,
) -> Plan:  # fmt: skip
    """A plan from a pilot table, or from the base rate and AUC in ``options``."""
    if pilot is None:
        return plan_arrays(target, **options)
    opened, names = Source(pilot, hints=hints).open(), {"score": score, "label": label}
    columns = read_columns(opened, names, every_label=missing_labels == "error")
    return plan_arrays(target, pilot=(columns["score"], np.nan_to_num(columns["label"])), **options)


def drift(
    past: Path, pool: Path, *, score: str, pool_score: str | None = None, hints: Hints = NO_HINTS
) -> Drift:
    """How far the scores of a pool's table lie from those of the calibration rows'."""
    before, now = (
        read_columns(Source(table, hints=hints).open(), {"score": name}, any_order=True)["score"]
        for table, name in ((past, score), (pool, pool_score or score))
    )
    return drift_of_arrays(before, now)


def watch(
    state: Path, reviews: Path, *, policy: Path | None, alpha: float | None, audit_rate: float | None = None,
    pool: str, group: str | None = None, **columns: str | None,
) -> tuple[Monitor, int, int, str | None]:  # fmt: skip
    """Feed the pools of a table to the monitor in ``state``, in the order of the table.

    Returns it with the number of new pools and of known ones, and the first that still waits for reviews.

    ``columns`` say where ``Monitor.observe`` finds its numbers. Stops at the first pool whose number
    of qualified candidates (or of missed ones, with an audit) is missing: pools count in order. A column
    ``unreviewed`` or ``unaudited`` is read without being named: reviews that never came are no outcomes. A
    column ``drawn`` likewise: of a triage, how many on each list were drawn; ``group`` names the list.
    The state is made from ``policy`` the first time, and written when all went well.
    """
    there = open_table(reviews).columns
    columns |= {name: name for name in IF_THERE if columns.get(name) is None and name in there}
    if columns.get("drawn") is not None:
        columns["pool_size"] = None  # of a triage those drawn count, not the pool
    table = read_text(reviews, {"pool": pool, "group": group, **columns})
    reviewed = _pools(table, [name for name in columns if columns[name]], grouped=group is not None)
    counted = []
    blocked = None
    with updating(state):
        monitor = _monitor(state, policy, alpha, audit_rate)
        for name, numbers in reviewed.items():
            if numbers is None:
                blocked = name
                break
            counted.append(monitor.observe(**numbers, review_id=name))
        monitor.save(state)
    return monitor, sum(counted), len(counted) - sum(counted), blocked


def start_campaign(
    past: Path, state: Path, target: CountPromise, *, score: str, label: str,
    missing_labels: MissingLabels = "error", hints: Hints = NO_HINTS, **options: object,
) -> Campaign:  # fmt: skip
    """Start a campaign from a table of calibration rows; an existing state is not overwritten."""
    if state.exists():
        why = "Starting again on the same rows is not covered by the promise"
        raise InvalidInput(
            "output", f"{state} exists. {why}; give another name for a campaign on fresh rows."
        )
    source, options = Source(past, hints=hints), {**options, "missing_labels": missing_labels}
    _, campaign = campaign_record.begun_from(source, score, label, target, **options)
    if isinstance(campaign, NotCertifiable):
        raise campaign
    campaign.save(state)
    return campaign


class ScreenedPool(Struct, frozen=True):
    """What ``screen_pool`` did."""

    campaign: Campaign
    candidates: int
    shortlisted: int
    update: Update | None
    audited: int | None = None  # drawn for the audit, where there is one


def screen_pool(
    state: Path, pool: Path, output: Path, *, name: str, score: str, id: str, audit: Path | None = None
) -> ScreenedPool:
    """Shortlist a pool and remember it. Shortlist and audit are complete before the state counts it."""
    for each in (output,) if audit is None else (output, audit):
        refuse_inputs(each, (state, pool))
    columns = read_columns(pool, {"score": score, "id": id})
    with updating(state):
        campaign = Campaign.load(state)
        _require_audit(campaign, output, audit)
        looks = len(campaign.updates)
        mask = campaign.screen(columns["score"], ids=columns["id"], pool=name)
        with campaign.saving(state):
            table = open_table(pool)
            select_rows(table, campaign.filter, names={"score": score}, output=output)
            drawn = None if audit is None else campaign.audit(name)
            if audit is not None and drawn is not None:
                rows = rows_with_ids(table, id, drawn)
                write_sheet(audit, table.columns, rows, [str(pool), str(state)])
    update = campaign.updates[-1] if len(campaign.updates) > looks else None
    audited = None if drawn is None else len(drawn)
    return ScreenedPool(campaign, len(mask), int(mask.sum()), update, audited)


def _require_audit(campaign: Campaign, output: Path, audit: Path | None) -> None:
    if campaign.audit_rate is not None and audit is None:
        raise InvalidInput("audit", "this campaign draws an audit of every pool; say where to write it.")
    if campaign.audit_rate is None and audit is not None:
        raise InvalidInput("audit", "this campaign has none; it was started without an audit rate.")
    if audit is not None and audit.absolute() == output.absolute():
        raise InvalidInput("audit", expected="another file than the shortlist", got=f"{audit} for both")


def review_pool(
    state: Path, reviews: Path, *, name: str, label: str, id: str, final: bool
) -> tuple[Campaign, int, int]:
    """Take in reviews of a pool's shortlist; blank labels are reviews that have not come yet.

    Returns the campaign, how many reviews are new and, with ``final``, how many were given up.
    """
    table = open_table(reviews)
    labels, names = read_labels(table, label), read_text(table, {"id": id})["id"]
    with updating(state):
        campaign = Campaign.load(state)
        new = campaign.review(name, labels, ids=names)
        closed = campaign.close(name) if final else 0
        campaign.save(state)
    return campaign, new, closed


def _monitor(state: Path, policy: Path | None, alpha: float | None, audit_rate: float | None) -> Monitor:
    if not state.exists():
        if policy is None:
            raise InvalidInput("state", f"{state} does not exist yet; give --policy to start watching one.")
        return Monitor(Policy.load(policy), 0.05 if alpha is None else alpha, audit_rate=audit_rate)
    monitor = Monitor.load(state)
    if policy is not None and Policy.load(policy).cutoffs != monitor._policy.cutoffs:
        raise InvalidInput(
            "policy", f"{state} watches another policy than {policy}; give each its own state."
        )
    pairs = (("alpha", alpha, monitor.alpha), ("audit_rate", audit_rate, monitor.audit_rate))
    for name, asked, begun in pairs:
        if asked is not None and asked != begun:
            began = "without one" if begun is None else f"at {begun:g}"
            raise InvalidInput(
                name, f"{state} was started {began}, got {asked:g}. It cannot change on the way."
            )
    return monitor


def _pools(table: dict[str, Any], roles: list[str], *, grouped: bool) -> dict[str, dict[str, Any] | None]:
    """The numbers of each pool, in the order of first appearance; by group as mappings.

    None for a pool that waits for reviews: its number of qualified or of missed candidates is blank.
    """
    pools: dict[str, dict[str, dict[str, int | None]]] = {}
    for row, name in enumerate(table["pool"]):
        group = table["group"][row] if grouped else ""
        if name is None or group is None:
            raise InvalidInput("pools", f"row {row} has no name; every pool needs one.")
        groups = pools.setdefault(str(name), {})
        if str(group) in groups:
            raise InvalidInput("pools", f"pool {str(name)!r} appears twice, the second time in row {row}.")
        groups[str(group)] = {role: _number(table[role][row], role, row) for role in roles}
    numbers: dict[str, dict[str, Any] | None] = {}
    for name, groups in pools.items():
        held = {role: {group: values[role] for group, values in groups.items()} for role in roles}
        waits = any(None in held.get(role, {}).values() for role in ("qualified", "missed"))
        shown = held if grouped else {role: values[""] for role, values in held.items()}
        numbers[name] = None if waits else shown
    return numbers


def read_labels(table: Table, column: str, role: str = "label") -> list[float | None]:
    """The labels in a column that people fill in; None for a blank one."""
    texts = read_text(table, {role: column})[role]
    words = [(text or "").strip().casefold() for text in texts]
    odd = next((row for row, word in enumerate(words) if word and word not in LABELS), None)
    if odd is not None:
        got = f"{texts[odd]!r} in {table.place(odd)}"
        raise InvalidInput(f"column {column!r}", expected="1 or yes, 0 or no, or blank", got=got)
    return [LABELS.get(word) for word in words]


def _number(text: object, role: str, row: int) -> int | None:
    """Blank means nobody for those whose reviews never came, and unknown for everything else."""
    if text is None or str(text).strip() == "":
        return 0 if role in UNREVIEWED else None
    try:
        number = float(str(text))
    except ValueError:
        number = -1.0
    if number < 0 or not number.is_integer():
        raise InvalidInput(role, expected="a whole number of at least 0", got=f"{text!r} in row {row}")
    return int(number)
