"""Campaigns as the page and the API show them: where they stand, and their history."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from msgspec import structs
from pydantic import BaseModel, Field

from surelist.reports import history
from surelist.service import answers, reviewing
from surelist.service.campaigns import Standing
from surelist.service.choices import until
from surelist.service.models import Receipt
from surelist.service.record import events
from surelist.service.record.chain import Entry, of_kind
from surelist.service.record.view import View
from surelist.service.uploads import Spool, list_of
from surelist.service.worklist import Worklist
from surelist.workflows.campaign_record import CampaignStatus


class CampaignView(BaseModel):
    """Where a campaign stands."""

    id: str
    name: str
    target: str
    alpha: float
    spent: float = Field(description="Of alpha, by the updates so far.")
    schedule: list[int]
    audit_rate: float | None = Field(description="With which everyone is drawn for an audit, if at all.")
    promise: str
    threshold: float | None = Field(description="In force for the next pool; null while everyone is listed.")
    list_size: float = Field(description="Candidates to expect on the list of a pool of the promised size.")
    pools: int
    rows: int
    next_update: int | None = Field(description="After how many pools the threshold is updated again.")
    due: bool = Field(description="Whether that comes before the next pool.")
    standing: str
    sentence: str
    withdrawn: str | None
    waiting: list[str] = Field(description="Pools whose reviews are not finished.")
    receipt: Receipt


@dataclass(frozen=True)
class ScreenedLine:
    """A pool of a campaign, as its page shows it."""

    id: str
    at: str
    made: events.CampaignScreened
    progress: dict[str, int]
    finished: bool
    until: str | None


@dataclass(frozen=True)
class RunningCampaign:
    """A campaign with what is due."""

    entry: Entry[events.CampaignStarted]
    now: CampaignStatus
    waiting: list[Entry[events.CampaignScreened]]
    withdrawn: str | None


def shown(view: View, spool: Spool, ident: str) -> dict[str, Any]:
    """A campaign with its history."""
    now = Standing(view, ident)
    pools = _pools(view, spool, now.steps)
    updates: list[Entry[events.CampaignStarted | events.CampaignUpdated]] = [now.entry]
    updates += of_kind(now.steps, events.CampaignUpdated)
    return {
        "entry": now.entry, "facts": now.begun, "now": now.after, "steps": len(now.steps),
        "withdrawn": now.withdrawn, "pools": pools[::-1],
        "open": [each for each in pools if not each.finished], "updates": updates,
        "pictures": _pictures([each.event.after for each in updates], [each.made for each in pools]),
    }  # fmt: skip


def _finished(steps: Sequence[Entry[events.CampaignStep]]) -> dict[str, str]:
    """The labels of pools whose reviews have ended."""
    return {each.subject: each.event.labels for each in of_kind(steps, events.CampaignReviewed)}


def _pools(view: View, spool: Spool, steps: Sequence[Entry[events.CampaignStep]]) -> list[ScreenedLine]:
    finished, lines = _finished(steps), []
    for each in of_kind(steps, events.CampaignScreened):
        if each.subject in finished:
            counts = _counted(finished[each.subject])
        else:
            marks, reviewer = view.marks(each.subject), view.reviewer(each.subject)
            counts = reviewing.progress(marks, each.event.to_review, reviewer)
        kept = spool.result(each.subject)
        lines.append(
            ScreenedLine(
                each.subject, each.at, each.event, counts,
                finished=each.subject in finished or not each.event.to_review,
                until=until(kept.until) if kept else None,
            )
        )  # fmt: skip
    return lines


def _counted(labels: str) -> dict[str, int]:
    """What finished reviews say."""
    return {"reviewed": len(labels) - labels.count("?"), "yes": labels.count("1"), "seen": 0}


def _pictures(
    updates: Sequence[CampaignStatus], pools: Sequence[events.CampaignScreened]
) -> dict[str, str | None]:
    """List length and threshold by pool, once there is something to compare."""
    shares = [100 * each.shortlisted / each.candidates for each in pools if each.candidates]
    values = [(float(each.pools), each.threshold) for each in updates if each.threshold is not None]
    return {
        "lengths": history.lengths(shares) if len(shares) > 1 else None,
        "thresholds": history.thresholds(values, len(pools)) if values and len(pools) > 1 else None,
    }


def as_answer(view: View, ident: str) -> CampaignView:
    """Where a campaign stands, for the API."""
    now = Standing(view, ident)
    begun, after = now.begun, now.after
    return CampaignView(  # of what is known, what the answer has
        **{**structs.asdict(begun), **structs.asdict(after)}, id=ident,
        withdrawn=now.withdrawn.event.reason if now.withdrawn else None,
        waiting=[each.subject for each in _waiting(now.steps)],
        receipt=answers.receipt(now.steps[-1] if now.steps else now.entry),
    )  # fmt: skip


def _waiting(steps: Sequence[Entry[events.CampaignStep]]) -> list[Entry[events.CampaignScreened]]:
    """Pools whose reviews are not finished."""
    finished = _finished(steps)
    return [
        each
        for each in of_kind(steps, events.CampaignScreened)
        if each.event.to_review and each.subject not in finished
    ]


def to_review(spool: Spool, pool: str) -> tuple[list[str], list[str]]:
    """Who is to be reviewed of a pool, by id and the best score first: its list, and those drawn besides."""
    kept = spool.result(pool)
    if kept is None:
        return [], []
    with Worklist(list_of(kept.upload)) as work:
        names = list(work.ranked())
        return names[: work.listed], names[work.listed :]


def running(view: View, limit: int | None = None) -> list[RunningCampaign]:
    """Campaigns with what is due, newest first; those that were withdrawn come with why."""
    found = [Standing(view, each.subject) for each in view.all_campaigns(limit)]
    return [
        RunningCampaign(
            now.entry, now.after, _waiting(now.steps), now.withdrawn.event.reason if now.withdrawn else None
        )
        for now in found
    ]
