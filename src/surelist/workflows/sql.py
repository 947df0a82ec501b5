"""A policy's selection as SQL, for dbt models and warehouses: what may leave, and what is refused."""

from __future__ import annotations

from surelist._check import Dialect
from surelist.errors import InvalidInput
from surelist.promises.policy import Policy
from surelist.tables.sql import filter_sql


def selection_sql(
    policy: Policy,
    dialect: Dialect = "duckdb",
    *,
    score: str | None = None,
    group: str | None = None,
    pool_size: int | None = None,
    whole_numbers: bool = False,
) -> str:
    """One boolean expression that is true for exactly the candidates that ``select`` shortlists.

    Columns are by default those the policy was calibrated on. Refused, with the reason, is what SQL cannot
    say: secret ties, ranks, thresholds that go by a pool's own size, a campaign, a promise withdrawn, or one
    about the very candidates it was made from.
    """
    if policy.withdrawn is not None:
        raise InvalidInput("policy", "it promises nothing any more; calibrate on fresh rows.")
    if policy.cutoffs[0].proof.in_campaign:
        raise InvalidInput(
            "policy",
            "it is one threshold of a campaign, which changes at the next update and needs every pool on "
            "record. Screen with the campaign.",
        )
    if policy.of_one_pool:
        raise InvalidInput("policy", "it selects from the pool it was made with, and from no other.")
    if policy.of_collection:
        raise InvalidInput(
            "policy",
            f"{policy.not_of_these}; as SQL it would go to other tables. Write the list of those "
            "candidates instead.",
        )
    remembered = policy.columns or {}
    if policy.choice is not None and score not in (None, policy.choice.chosen):
        raise InvalidInput("score", f"this policy was made for {policy.choice.chosen!r}, got {score!r}.")
    names = {"score": score or remembered.get("score"), "group": group or remembered.get("group")}
    if group is not None and not policy.filter.grouped:
        raise InvalidInput("group", "this policy has one cutoff for everybody; leave it out.")
    return filter_sql(policy.filter, names, dialect, pool_size=pool_size, whole_numbers=whole_numbers)
