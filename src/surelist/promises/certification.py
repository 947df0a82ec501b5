"""Counts in, a ``Policy`` or ``NotCertifiable`` out: the one place where a promise is made from counts.

``certify`` asks each group's evidence for three things only: how many rows, how many of them qualified, and a
few order statistics of the qualified scores. Arrays supply them in ``calibration``, tables from any engine.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from surelist import _check as check
from surelist._version import __version__
from surelist.errors import InvalidInput, NotCertifiable, Shortfall
from surelist.promises.evidence import Evidence
from surelist.promises.policy import Policy
from surelist.promises.rows_needed import estimate_rows
from surelist.promises.state import Cutoff, Step
from surelist.promises.targets import AnyTarget, Expected, Level, PerPool, Recall, Requirement
from surelist.promises.terms import Terms
from surelist.score_summary import FINGERPRINT, Reached
from surelist.ties import Salt

EVERY_LABEL = "a promise of recall needs every label, so get them or promise a count"


def certify(
    evidence: Mapping[str | None, Evidence],
    terms: Terms,
    *,
    salt: Salt | None = None,
    missing_labels: int = 0,
    **facts: Any,
) -> Policy:
    """Turn evidence into a policy. The only function that makes a promise from counts.

    ``salt`` is for tests; by default it is drawn here, after the ids are fixed.
    """
    require_labels(terms, missing_labels)
    refuse_estimated({name: (each.rows, each.qualified) for name, each in evidence.items()}, terms)
    required = requirements(evidence, terms)  # refuses before a salt is drawn
    if terms.ties == "hash":
        salt = salt or Salt.draw()
    spent: set[int] = set()
    steps = {name: steps_of(evidence[name], each, salt, spent) for name, each in required.items()}
    cutoffs = [
        cutoff_of(evidence[name], name, target, terms, steps[name]) for name, target in terms.targets.items()
    ]
    if salt is not None:
        salt = Salt(salt.key, frozenset(spent))
    return make_policy(cutoffs, terms, missing_labels=missing_labels, salt=salt, **facts)


def refuse_estimated(counts: Mapping[str | None, tuple[int, int]], terms: Terms) -> None:
    """Targets that were estimated from these very rows were chosen after looking at them.

    ``counts``: rows and qualified rows per group; of all rows, also where some of them are kept only.
    """
    seen = terms.estimated_from
    if seen is None or {str(name) for name in counts} != set(seen):
        return
    total = sum(rows for rows, _ in seen.values())
    if all(
        qualified == seen[str(name)][1] and rows in (seen[str(name)][0], total)
        for name, (rows, qualified) in counts.items()
    ):
        raise InvalidInput(
            "target: these targets by group were estimated from rows with the same counts in every group: "
            "from the calibration rows. Estimate them from other rows."
        )


def needs_every_label(terms: Terms) -> bool:
    """Whether one of the targets is a recall."""
    return any(
        isinstance(each, Recall) or getattr(each, "recall", None) is not None for each in terms.all_targets
    )


@contextmanager
def fitting_advice(terms: Terms) -> Iterator[None]:
    """Nobody is told to count missing labels as not qualified where a recall refuses that."""
    try:
        yield
    except InvalidInput as error:
        if check.KEEPING not in str(error) or not needs_every_label(terms):
            raise
        raise InvalidInput(str(error).replace(check.KEEPING, EVERY_LABEL)) from error


def require_labels(terms: Terms, missing: int) -> None:
    """A recall needs every label."""
    if missing and needs_every_label(terms):
        raise InvalidInput(
            f"missing_labels: {missing:,} labels are missing, and Recall needs them all: a qualified "
            "row counted as not qualified would make the share kept look larger than it is. Get them, or "
            "promise a count."
        )


def make_policy(cutoffs: Sequence[Cutoff], terms: Terms, *, salt: Salt | None = None, **facts: Any) -> Policy:
    """The policy that says this much, as of now."""
    return Policy(
        cutoffs=tuple(cutoffs),
        alpha=terms.alpha,
        rule=terms.rule,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        version=__version__,
        group_split=terms.group_split if terms.grouped else None,
        group_rows=terms.group_rows if terms.grouped else None,
        group_keys=terms.group_keys,
        overlapping=terms.overlapping,
        purpose=terms.purpose,
        salt_hash=salt.hash if salt else None,
        salt=salt,
        **facts,
    )


def cutoff_of(
    evidence: Evidence, name: str | None, target: AnyTarget, terms: Terms, steps: tuple[Step, ...]
) -> Cutoff:
    """The thresholds with what is kept of the rows behind them."""
    summary = evidence.summary([steps[0].threshold, steps[-1].threshold])
    total = summary.scores.total
    ends = {
        at: _with_shares(steps[at], each, total)
        for at, each in zip((0, len(steps) - 1), summary.reached, strict=True)
    }
    return Cutoff(
        name, target, terms.level, evidence.rows, evidence.qualified,
        tuple(ends.get(at, step) for at, step in enumerate(steps)), summary.fingerprint, FINGERPRINT,
        summary.scores,
    )  # fmt: skip


def _with_shares(step: Step, reached: Reached, total: int) -> Step:
    """With how much of the calibration rows the threshold shortlists, and would if ties were broken."""
    needed = step.critical_count - reached.qualified_above
    part = needed / (reached.qualified - reached.qualified_above)
    untied = (reached.rows_above + part * (reached.rows - reached.rows_above)) / total
    share = reached.rows / total if step.tie_break is None else untied
    return replace(step, reached=reached.qualified, share=share, share_untied=untied)


def requirements(
    evidence: Mapping[str | None, Evidence], terms: Terms
) -> dict[str | None, tuple[Requirement, ...]]:
    """The counts each group's evidence has to meet, or ``NotCertifiable`` for all that do not."""
    required: dict[str | None, tuple[Requirement, ...]] = {}
    short: list[Shortfall] = []
    for name, target in terms.targets.items():
        try:
            required[name] = required_of(evidence[name], name, target, terms.level)
        except NotCertifiable as refusal:
            short.append(refusal.shortfall)
    if short:
        raise NotCertifiable(replace(short[0], others=tuple(short[1:])))
    return required


def required_of(
    evidence: Evidence, name: str | None, target: AnyTarget, level: Level
) -> tuple[Requirement, ...]:
    """The counts that one group has to meet, or ``NotCertifiable``."""
    if not isinstance(target, (Expected, PerPool, Recall)):
        raise InvalidInput(f"target: {target.describe()} is certified from columns in memory only.")
    rows, qualified = evidence.rows, evidence.qualified
    if rows == 0:
        raise InvalidInput(f"groups: group {name!r} has a target but no calibration rows.")
    required = target.requirements(rows, qualified, level)
    needed = max(each.count for each in required)
    if needed > qualified:
        largest = target.largest(rows, qualified, level)
        recall = isinstance(target, Recall)
        raise NotCertifiable(
            Shortfall(
                target=f"{target.describe()} (alpha={level.alpha:g}, rule={level.rule!r})",
                rows=rows,
                qualified_available=qualified,
                critical_count=needed,
                largest_k=None if recall else largest,
                largest_share=largest if recall else None,
                rows_needed=estimate_rows(target, rows, qualified, level),
                group=name,
                simultaneous_rule="simultaneous" in target.rules,
            )
        )
    return required


def steps_of(
    evidence: Evidence, required: tuple[Requirement, ...], salt: Salt | None, spent: set[int]
) -> tuple[Step, ...]:
    """A threshold for each count, ties broken where there is a salt; their numbers go to ``spent``."""
    thresholds = evidence.nth_largest([each.count for each in required])
    steps = []
    for each, threshold in zip(required, thresholds, strict=True):
        number = None
        if salt is not None:
            above, ids = evidence.tied(threshold)
            numbers = sorted(salt.numbers(ids), reverse=True)
            number = numbers[each.count - above - 1]
            spent.update(numbers)
        steps.append(Step(each.pool_size, each.count, threshold, number))
    return tuple(steps)
