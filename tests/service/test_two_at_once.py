"""Two people at the same moment: what is worked out rests on everything that is on record when it counts; on both databases."""

from __future__ import annotations

import numpy as np
import pytest

from surelist import Expected, calibrate, examples
from surelist.service import policy_watch
from surelist.service.record.campaigns import CampaignReviewed
from surelist.service.record.events import SelectionMade
from surelist.service.record.marks import Marks
from surelist.service.record.verify import verify
from surelist.service.reviewing import KnownList
from surelist.workflows import watching
from surelist.workflows.watching import PoolNumbers, WatchedPool
from tests.helpers.record import by, save, selection
from tests.service.test_campaigns import ident_of, review, screen, small_team, start  # noqa: F401

LISTED = [str(n) for n in range(1, 31)]


@pytest.fixture
def digest(registry) -> str:
    rows = examples.population(np.random.default_rng(0), 2000)
    return save(registry, calibrate(*rows, Expected(5, 100))).entry.subject


def pools(registry, digest: str, many: int, qualified: int = 0) -> list[str]:
    """Pools that count, with all their reviews."""
    idents = [f"{n:016x}" for n in range(many)]
    for ident in idents:
        made = selection(digest, 100, len(LISTED), watched=True, pool_sha256=ident)
        by(registry).record_selection(ident, made).result()
        marks = {each: n < qualified for n, each in enumerate(LISTED)}
        by(registry).record_reviews(ident, marks).result()
    return idents


def meanwhile(monkeypatch, owner, name: str, other) -> None:
    """``other`` happens right after the first call of a function."""
    function, calls = getattr(owner, name), []

    def called(*args, **named):
        done = function(*args, **named)
        calls.append(name)
        if len(calls) == 1:
            other()
        return done

    monkeypatch.setattr(owner, name, called)


def finish(registry, ident: str, missing: bool = False):
    return policy_watch.finish(by(registry), ident, KnownList(), missing=missing)


def test_a_mark_that_comes_while_reviews_are_finished_counts(registry, digest, monkeypatch):
    (ident,) = pools(registry, digest, 1, qualified=5)

    def bob_marks() -> None:
        by(registry, "bob").record_reviews(ident, {"1": False}).result()
        by(registry, "bob").marks(ident)  # whoever looks at the page shares what was read

    meanwhile(monkeypatch, Marks, "outcomes", bob_marks)
    finish(registry, ident, missing=True)
    assert by(registry).closings(digest)[ident] == PoolNumbers(100, 4, 1)
    assert verify(registry.database).problems == []


def test_two_pools_finished_at_once_raise_the_alarm_that_both_together_raise(registry, digest, monkeypatch):
    policy = registry.policy(digest).policy
    empty = [WatchedPool(str(n), PoolNumbers(100, 0)) for n in range(20)]
    needed = next(n for n in range(1, 20) if watching.watch(policy, empty[:n]).alarm)
    idents = pools(registry, digest, needed)
    for ident in idents[:-2]:
        finish(registry, ident)
    meanwhile(monkeypatch, policy_watch, "watched_pools", lambda: finish(registry, idents[-1]))
    finish(registry, idents[-2])
    assert registry.policy(digest).withdrawn is not None
    assert verify(registry.database).problems == []


def test_the_same_pool_screened_twice_at_once_counts_once(registry, digest, monkeypatch):
    made = selection(digest, 100, len(LISTED), pool_sha256="p" * 64)

    def other() -> None:
        policy_watch.record_watched(by(registry, "bob"), "b" * 16, made)

    meanwhile(monkeypatch, watching, "cannot_count", other)
    mine = policy_watch.record_watched(by(registry, "ann"), "a" * 16, made).entry.event
    assert (mine.watched, mine.not_watched) == (False, "this very pool was screened before, and counts once.")
    assert [each.subject for each in by(registry).watched(digest)] == ["b" * 16]
    assert verify(registry.database).problems == []


def test_a_pool_that_was_made_to_count_twice_is_noticed(registry, digest):
    for ident, more in {"a": {}, "b": {}, "c": {"pool_sha256": "q" * 64, "audit_rate": 0.5}}.items():
        made = selection(digest, 100, 3, **{"watched": True, "pool_sha256": "p" * 64, **more})
        by(registry, "eve").record_selection(ident * 16, made).result()
    seq = registry.newest(SelectionMade, subject="b" * 16).seq
    assert verify(registry.database).problems == [
        f"entry {seq}: the same pool counts before",
        f"entry {seq + 1}: the pools before were audited at another rate",
    ]


@pytest.mark.slow
def test_a_mark_that_comes_while_a_campaigns_pool_is_finished_counts(small_team, monkeypatch):  # noqa: F811
    registry = small_team.runtime.registry
    page = start(small_team)
    pool = ident_of(screen(small_team, page.url.path, 1))
    review(small_team, pool, finish=False)
    name = small_team.ann.get(f"/selections/{pool}/reviews.csv").text.splitlines()[1].split(",")[1]
    settled = {name: 5}  # as qualified
    meanwhile(
        monkeypatch, Marks, "outcomes", lambda: by(registry, "bob").record_reviews(pool, settled).result()
    )
    done = small_team.ann.post(f"/selections/{pool}/finish")
    assert done.status_code == 200, done.text
    ended = registry.newest(CampaignReviewed, subject=pool)
    assert ended.event.labels.count("1") == 1
    assert verify(registry.database).problems == []
