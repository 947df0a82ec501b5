"""Campaigns with an audit in the app: who is drawn is recorded once, reviewed beside the list, and taken again."""

from __future__ import annotations

import re

import numpy as np
import pytest

from surelist import Campaign, Expected
from surelist.lifecycle import campaign as campaigns
from surelist.service.record.verify import verify
from surelist.service.settings import Settings
from tests.helpers.record import by
from tests.helpers.service import close, csv_text
from tests.service.test_api import CSV
from tests.service.test_campaigns import API, TERMS, begin, forged, ident_of, pool_of, review, screen, start
from tests.service.test_workspace import Team


@pytest.fixture
def team(tmp_path):
    team = Team(Settings(database=str(tmp_path / "record.db"), folder=tmp_path / "data", login=True))
    yield team
    close(team.app)


def columns(text: str, *names: str) -> list[list[str]]:
    rows = [line.split(",") for line in text.splitlines()]
    return [[row[rows[0].index(name)] for row in rows[1:]] for name in names]


def coins_on_record(facts: dict, scores: np.ndarray) -> np.ndarray:
    """Coins that would have drawn whom the record says: 0 for those drawn, 1 for the others."""
    coins = np.ones(len(scores))
    coins[facts["audit"]] = 0
    listed = np.argsort(-scores, kind="stable")[: facts["shortlisted"]]
    coins[listed[[each == "b" for each in facts["draws"][: facts["shortlisted"]]]]] = 0
    return coins


@pytest.mark.slow
def test_an_audited_campaign_by_page_is_that_of_the_library_with_the_draws_on_record(team, monkeypatch):
    page = start(team, one_in="4")
    address = page.url.path
    assert "1 in 4" in page.text
    scores, labels = columns(csv_text(2000, labelled=True), "score", "qualified")
    mine = Campaign(
        [float(each) for each in scores], [int(each) for each in labels], Expected(5, 100), alpha=0.2,
        schedule=(2, 6), audit_rate=0.25,
    )  # fmt: skip
    rows = 2000
    for seed in range(1, 4):
        if seed == 3:
            steps = team.ann.get(address).text.split('name="steps" value="')[1].split('"')[0]
            assert team.ann.post(address + "/update", steps=steps).status_code == 200
        text, truth = pool_of(seed)
        given, ids = columns(text, "score", "candidate")
        numbers = np.array([float(each) for each in given])
        done = screen(team, address, seed)
        pool = ident_of(done)
        facts = by(team.runtime.registry).subject(pool).facts
        drawn = coins_on_record(facts, numbers)
        monkeypatch.setattr(campaigns, "coins", lambda _, drawn=drawn: drawn)
        listed = mine.screen(numbers, ids=ids, pool=f"Day {seed}")
        audited = mine.audit(f"Day {seed}")
        assert (facts["shortlisted"], len(facts["audit"])) == (int(listed.sum()), len(audited))
        assert 0 < len(audited) < 60
        shown = [
            line.split(",")[1]
            for line in team.ann.get(f"/selections/{pool}/reviews.csv").text.splitlines()[1:]
        ]
        assert set(shown[facts["shortlisted"] :]) == set(audited)
        assert f"Review {len(shown)} candidates" in done.text
        last = team.ann.get(f"/selections/{pool}/review?show=all&at={len(shown)}").text
        assert "Not listed; drawn at random" in last
        review(team, pool, truth)
        mine.review(f"Day {seed}", [truth[each] for each in shown], ids=shown)
        rows += sum(each in "ab" for each in facts["draws"])
    state = team.ann.client.get(f"{API}/{address.rpartition('/')[2]}").json()
    assert state["threshold"] == mine.threshold
    assert state["rows"] == mine.rows == rows
    assert state["audit_rate"] == 0.25
    assert state["sentence"] == mine.monitor.in_a_sentence()
    page = team.ann.get(address).text
    assert "The threshold changes at updates, and may fall." in page
    assert "Drawn besides" in page
    assert "of the others for an audit, in the campaign" in team.ann.get("/record").text
    assert verify(team.runtime.registry.database).intact


@pytest.mark.slow
def test_the_audit_by_api_is_drawn_once_and_reviewed_with_the_list(team):
    made = begin(team, terms=TERMS + "&audit_rate=0.2")
    assert made.json()["audit_rate"] == 0.2
    address, (text, truth) = f"{API}/{made.json()['id']}", pool_of(1)
    post, headers = team.ann.client.post, {**CSV, "Idempotency-Key": "b"}
    sent = [post(f"{address}/screen?name=one", content=text, headers=headers).json() for _ in "12"]
    assert sent[0]["audit"] == sent[1]["audit"] != []
    assert not set(sent[0]["audit"]) & set(sent[0]["shortlist"])
    assert len(sent[0]["shortlist"]) == sent[0]["shortlisted"]
    everyone = [*sent[0]["shortlist"], *sent[0]["audit"]]
    reviews = {"reviews": [{"candidate": each, "qualified": bool(truth[each])} for each in everyone]}
    pools = f"{address}/pools/{sent[0]['pool']}"
    assert post(f"{pools}/reviews", json=reviews).json()["reviewed"] == len(everyone)
    other = next(each for each in truth if each not in everyone)
    stranger = post(f"{pools}/reviews", json={"reviews": [{"candidate": other, "qualified": True}]})
    assert stranger.status_code == 400
    assert post(f"{pools}/finish", json={}).json()["waiting"] == []
    two = post(f"{address}/screen?name=two", content=pool_of(2)[0], headers=CSV).json()
    early = post(f"{address}/pools/{two['pool']}/finish", json={})
    assert f"{len(two['shortlist']) + len(two['audit'])} candidates have none" in early.text
    assert post(f"{address}/pools/{two['pool']}/finish", json={"missing": True}).status_code == 200
    assert set(by(team.runtime.registry).reviews_closed(two["pool"]).facts["labels"]) == {"?"}
    assert verify(team.runtime.registry.database).intact
    assert post(f"{API}?{TERMS}&audit_rate=1", content=text, headers=CSV).status_code == 400


def other_coins(draws: str) -> str:
    """All who are listed in the draw, or none where all were: with two on the list that happens."""
    return draws.replace("l", "b") if "l" in draws else draws.replace("b", "l")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda facts: {"audit_rate": 0.5}, "at another rate"),
        (lambda facts: {"audit": facts["audit"][1:]}, "not the one it counts"),
        (lambda facts: {"draws": facts["draws"].replace("a", "b")}, "cannot be read|not the one it counts"),
        (lambda facts: {"draws": None}, "cannot be read|not the one it counts"),
        (lambda facts: {"draws": other_coins(facts["draws"])}, "do not lead there: rows"),
    ],
)
def test_an_audit_edited_in_the_record_is_noticed(team, change, message):
    ident = begin(team, terms=TERMS + "&audit_rate=0.2").json()["id"]
    made = team.ann.client.post(f"{API}/{ident}/screen?name=one", content=pool_of(1)[0], headers=CSV).json()
    facts = by(team.runtime.registry).subject(made["pool"]).facts
    later = {**facts, "pool": "two", "pool_sha256": "0", **change(facts)}
    after = {**facts["after"], "pools": 2, "rows": 2 * facts["after"]["rows"] - 2000}
    problems = forged(team, "campaign.screened", "f" * 16, {**later, "after": after})
    assert any(re.search(message, each) for each in problems), problems


@pytest.mark.slow
@pytest.mark.parametrize("one_in", ["1", "0.5", "x", "-3"])
def test_one_in_so_many_has_to_be_more_than_one(team, one_in):
    page = start(team, one_in=one_in)
    assert page.status_code == 400
    assert "1 in so many of the others: expected" in page.text
    assert 'aria-invalid="true"' in page.text
