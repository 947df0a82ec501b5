"""Campaigns on record: how each began and every step since, in order, as one actor may read and write them.

A step is worked out from all steps before it, so one that somebody else wrote meanwhile is a conflict. Listed
candidates appear as scores without names; who they are is known only as long as their list is kept.
"""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from surelist.service.errors import Conflict, NotFound
from surelist.service.record.access import Actor
from surelist.service.record.chain import Entry
from surelist.service.record.log import COLUMNS, Key, Log, Written
from surelist.service.record.reviews import Outdated, require_open
from surelist.service.record.writer import Batch
from surelist.workflows.campaign_record import REVIEWED, SCREENED, STEPS, Step

STARTED, WITHDRAWN = "campaign.started", "campaign.withdrawn"
ENDED = (
    "campaign: its promise was withdrawn, because the reviews of its pools speak against it; it goes no "
    "further. Start a new one on fresh rows."
)
_KINDS = ", ".join(f"'{each}'" for each in STEPS)


@dataclass(frozen=True)
class StepEntry:
    """A step on record with its facts, read once: a list's scores may be long."""

    entry: Entry
    action: str
    subject: str
    facts: dict[str, Any]

    @staticmethod
    def of(row: tuple[Any, ...]) -> StepEntry:
        entry = Entry(*row)
        return StepEntry(entry, entry.action, entry.subject, entry.facts)


class Campaigns:
    """The campaigns of a record; they concern no one policy, so a token for one policy sees none."""

    def __init__(self, log: Log, actor: Actor) -> None:
        self._log, self._actor = log, actor

    # -- reading

    def one(self, ident: str) -> Entry:
        """The entry that started a campaign."""
        self._actor.require_all_policies()
        return self._log.one(STARTED, ident, "campaign")

    def all(self, limit: int | None = None) -> list[Entry]:
        """Newest first."""
        if self._actor.limited:
            return []
        return self._log.entries(action=STARTED, limit=limit)

    def pool(self, ident: str, pool: str) -> Entry:
        """A pool that this campaign screened."""
        self._actor.require_all_policies()
        entry = self._log.one(SCREENED, pool, "pool")
        if entry.facts["campaign"] != ident:
            raise NotFound(f"pool: the campaign has none named {pool[:80]!r}.")
        return entry

    def steps(self, ident: str) -> list[StepEntry]:
        """All steps so far, oldest first."""
        self._actor.require_all_policies()
        rows = self._log.database.read(f"SELECT {COLUMNS} {self._of_campaign} ORDER BY seq", [ident])
        return [StepEntry.of(row) for row in rows]

    @property
    def _of_campaign(self) -> str:
        return (
            f"FROM log WHERE action IN ({_KINDS}) AND {self._log.database.json_text('campaign')} = ?"
        )  # fmt: skip

    def withdrawn(self, ident: str) -> Entry | None:
        """The entry that withdrew a campaign's promise, if one did."""
        self._actor.require_all_policies()
        return next(iter(self._log.entries(action=WITHDRAWN, subject=ident, limit=1)), None)

    # -- writing

    def start(self, ident: str, facts: dict[str, Any], key: Key | None = None) -> Future[Written]:
        self._require()
        return self._log.append(self._actor.name, STARTED, ident, facts, key=key)

    def add(
        self, ident: str, subject: str, step: Step, before: int, alarm: dict[str, Any] | None, key: Key | None
    ) -> Future[Written]:
        """One more step, worked out after ``before`` others; ``alarm`` withdraws the promise with it.

        ``subject`` is the pool that the step is about, or the campaign itself.
        """
        self._require()
        action, facts = step

        def check(batch: Batch) -> None:
            batch.flush()
            ended = "SELECT 1 FROM log WHERE subject = ? AND action = ?"
            if action != REVIEWED and batch.connection.execute(ended, [ident, WITHDRAWN]):
                raise Conflict(ENDED)
            if action == REVIEWED:
                require_open(batch, subject)
            known = batch.connection.execute(f"SELECT count(*) {self._of_campaign}", [ident])
            if known[0][0] != before:
                raise Outdated("campaign: another step was made at the same moment. Load the page again.")

        also = (WITHDRAWN, ident, alarm) if alarm is not None else None
        return self._log.append(
            self._actor.name, action, subject, {"campaign": ident, **facts}, key=key, before=check, also=also
        )

    def _require(self) -> None:
        self._actor.require("operator")
        self._actor.require_all_policies()
