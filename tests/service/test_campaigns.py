"""Campaigns by page and API: start, screen, review, update, alarm; every step on record and taken again; on both databases."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec import to_builtins
from msgspec.structs import replace

from surelist import Campaign, Expected
from surelist.service.record.campaigns import CampaignReviewed, CampaignScreened, CampaignStarted
from surelist.service.record.event import KINDS
from surelist.service.record.verify import verify
from surelist.service.settings import Settings
from surelist.workflows import campaign_record
from tests.helpers.furnished import CAMPAIGN
from tests.helpers.record import by, forge
from tests.helpers.service import close, csv_text
from tests.service.test_api import CSV
from tests.service.test_workspace import Person, Team

API = "/api/v1/campaigns"
TERMS = "k=5&pool_size=100&alpha=0.2&schedule=2&schedule=6&score=score&label=qualified&id=candidate"


@pytest.fixture
def team(settings):
    team = Team(replace(settings, login=True))
    yield team
    close(team.app)


@pytest.fixture
def small_team(tmp_path):
    """For what does not depend on the database."""
    team = Team(Settings(database=str(tmp_path / "record.db"), folder=tmp_path / "data", login=True))
    yield team
    close(team.app)


def start(team: Team, **form: str):
    """A campaign by page: the page it leads to."""
    past = {"file": ("past.csv", csv_text(2000, labelled=True))}
    page = team.ann.post("/campaigns", files=past)
    draft = page.url.path
    terms = team.ann.post(draft, score="score", label="qualified", id="candidate", labels="all")
    assert terms.url.path == draft + "/campaign", terms.text
    shown = terms.text.split('name="shown" value="')[1].split('"')[0]
    return team.ann.post(terms.url.path, shown=shown, **{**CAMPAIGN, **form})


def pool_of(seed: int, rows: int = 100) -> tuple[str, dict[str, int]]:
    """A pool's file, and the truth by candidate."""
    text = csv_text(rows, labelled=True, seed=seed)
    lines = [line.split(",") for line in text.splitlines()]
    label, name = lines[0].index("qualified"), lines[0].index("candidate")
    truth = {line[name]: int(line[label]) for line in lines[1:]}
    return "\n".join(",".join(c for at, c in enumerate(line) if at != label) for line in lines) + "\n", truth


def screen(team: Team, address: str, seed: int, name: str | None = None):
    text, _ = pool_of(seed)
    page = team.ann.post(address + "/pool", files={"file": (f"day-{seed}.csv", text)})
    return team.ann.post(page.url.path, score="score", id="candidate", name=name or f"Day {seed}")


def ident_of(page) -> str:
    return page.url.path.split("/")[2]


def review(
    team: Team, pool: str, truth: dict[str, int] | None = None, *, finish: bool = True, leave: int = 0
):
    """Mark the listed candidates by the truth (none: all no), and finish."""
    path = f"/selections/{pool}"
    ids = [line.split(",")[1] for line in team.ann.get(path + "/reviews.csv").text.splitlines()[1:]]
    said = "".join(f"{each},{(truth or {}).get(each, 0)}\n" for each in ids[: len(ids) - leave])
    sent = team.ann.post(
        path + "/reviews",
        files={"file": ("r.csv", "candidate,review\n" + said)},
        id="candidate",
        label="review",
    )
    assert sent.status_code == 200, sent.text
    return team.ann.post(path + "/finish") if finish else sent


@pytest.mark.slow
def test_a_campaign_by_page_is_the_campaign_of_the_library(team):
    page = start(team)
    address = page.url.path
    assert "List to expect" in page.text
    assert "10% of 20%" in page.text  # alpha spent
    past = [line.split(",") for line in csv_text(2000, labelled=True).splitlines()]
    score, label = past[0].index("score"), past[0].index("qualified")
    mine = Campaign(
        [float(line[score]) for line in past[1:]], [int(line[label]) for line in past[1:]],
        Expected(5, 100), alpha=0.2, schedule=(2, 6),
    )  # fmt: skip
    for seed in range(1, 5):
        text, truth = pool_of(seed)
        rows = [line.split(",") for line in text.splitlines()]
        where, who = rows[0].index("score"), rows[0].index("candidate")
        scores, ids = [float(r[where]) for r in rows[1:]], [r[who] for r in rows[1:]]
        if seed == 3:
            shown = team.ann.get(address).text
            assert "An update is due" in shown
            early = screen(team, address, seed)
            assert early.status_code == 409
            steps = shown.split('name="steps" value="')[1].split('"')[0]
            assert team.ann.post(address + "/update", steps=steps).status_code == 200
            again = team.ann.post(address + "/update", steps=steps)  # the other tab
            assert again.status_code == 409
            assert "another step was made meanwhile" in again.text
        listed = mine.screen(scores, ids=ids, pool=f"Day {seed}")
        done = screen(team, address, seed)
        assert done.url.path.endswith("/review"), done.text
        pool = ident_of(done)
        assert by(team.runtime.registry).subject(pool).facts["shortlisted"] == int(listed.sum())
        mine.review(f"Day {seed}", [truth[each] for each in np.asarray(ids)[listed].tolist()])
        review(team, pool, truth)
    state = team.ann.client.get(f"{API}/{address.rpartition('/')[2]}").json()
    assert state["threshold"] == mine.threshold
    assert state["pools"] == 4
    assert state["rows"] == mine.rows == 2400
    assert state["sentence"] == mine.monitor.in_a_sentence()
    assert state["spent"] == pytest.approx(0.15)
    page = team.ann.get(address).text
    assert "List length over time" in page
    assert "Next update after 2 more pools" in page
    for name in ("Day 1", "Day 4"):
        assert name in page
    assert "Campaign" in team.ann.get(f"/selections/{pool}/review").text
    assert verify(team.runtime.registry.database).intact
    log = "".join(
        entry.details for entry in team.runtime.registry.entries(limit=500) if "campaign" in entry.action
    )
    assert not any(each in log for each in truth)  # no candidate is named


@pytest.mark.slow
def test_an_alarm_withdraws_the_campaign(small_team):
    team = small_team
    address = start(team, schedule="50").url.path
    for seed in range(1, 12):
        done = screen(team, address, seed)
        if done.status_code == 409:
            break
        review(team, ident_of(done))
    assert done.status_code == 409
    assert "withdrawn" in done.text
    page = team.ann.get(address).text
    assert "Alarm, the promise is withdrawn" in page
    assert "Start a new one on fresh rows" in page
    assert "withdrawn" in team.ann.get("/campaigns").text
    assert "withdrawn" in team.ann.get("/").text
    state = team.ann.client.get(f"{API}/{address.rpartition('/')[2]}").json()
    assert state["standing"] == "alarm"
    assert state["withdrawn"]
    assert state["next_update"] is None
    assert verify(team.runtime.registry.database).intact


@pytest.mark.slow
def test_the_same_pool_and_the_same_name_count_once(small_team):
    team = small_team
    address = start(team).url.path
    screen(team, address, 1)
    again = screen(team, address, 1)
    assert again.status_code == 409
    assert "counts once" in again.text
    named = screen(team, address, 2, name="Day 1")
    assert named.status_code == 400
    assert "was screened before" in named.text


@pytest.mark.slow
def test_reviews_that_are_missing_have_to_be_said(small_team):
    team = small_team
    address = start(team).url.path
    pool = ident_of(screen(team, address, 2))
    review(team, pool, {}, finish=False, leave=2)
    early = team.ann.post(f"/selections/{pool}/finish")
    assert early.status_code == 400
    assert "count as not qualified when the threshold is updated" in early.text
    page = team.ann.post(f"/selections/{pool}/finish", missing="1")
    assert page.url.path == address
    assert by(team.runtime.registry).reviews_closed(pool).facts["labels"].endswith("??")
    assert team.ann.post(f"/selections/{pool}/finish", missing="1").status_code == 409
    late = team.bob.post(f"/selections/{pool}/marks", rank="1", mark="yes")
    assert late.status_code == 409
    assert verify(team.runtime.registry.database).intact


@pytest.mark.slow
def test_a_list_that_is_gone_leaves_its_reviews_unknown(small_team):
    team = small_team
    address = start(team).url.path
    pool = ident_of(screen(team, address, 2))
    review(team, pool, {}, finish=False)
    team.ann.post(f"/selections/{pool}/forget")
    assert "Finish it without them" in team.ann.get(address).text
    team.ann.post(f"/selections/{pool}/finish", missing="1")
    assert set(by(team.runtime.registry).reviews_closed(pool).facts["labels"]) == {"?"}
    assert verify(team.runtime.registry.database).intact


def begin(team: Team, key: str | None = None, terms: str = TERMS):
    headers = {**CSV, **({"Idempotency-Key": key} if key else {})}
    return team.ann.client.post(f"{API}?{terms}", content=csv_text(2000, labelled=True), headers=headers)


@pytest.mark.slow
def test_a_campaign_by_api_with_keys(team):
    made, again = begin(team, "a"), begin(team, "a")
    assert made.status_code == 201, made.text
    assert made.json()["id"] == again.json()["id"]
    address = f"{API}/{made.json()['id']}"
    text, truth = pool_of(1)
    post = team.ann.client.post
    sent = [
        post(f"{address}/screen?name=one", content=text, headers={**CSV, "Idempotency-Key": "b"})
        for _ in "12"
    ]
    assert sent[0].json()["pool"] == sent[1].json()["pool"]
    assert sent[0].json()["campaign"]["pools"] == 1
    listed, pool = sent[0].json()["shortlist"], sent[0].json()["pool"]
    assert len(listed) == sent[0].json()["shortlisted"]
    off = post(f"{address}/update")
    assert off.status_code == 400
    assert "off schedule" in off.json()["error"]["message"]
    reviews = {"reviews": [{"candidate": each, "qualified": bool(truth[each])} for each in listed]}
    assert post(f"{address}/pools/{pool}/reviews", json=reviews).json()["reviewed"] == len(listed)
    done = [post(f"{address}/pools/{pool}/finish", json={}, headers={"Idempotency-Key": "c"}) for _ in "12"]
    assert done[0].json()["receipt"]["seq"] == done[1].json()["receipt"]["seq"]
    assert done[0].json()["waiting"] == []
    post(f"{address}/screen?name=two", content=pool_of(2)[0], headers=CSV)
    assert team.ann.client.get(address).json()["due"]
    assert post(f"{address}/screen?name=three", content=pool_of(3)[0], headers=CSV).status_code == 409
    risen = [post(f"{address}/update", headers={"Idempotency-Key": "d"}) for _ in "12"]
    assert risen[0].json()["receipt"]["seq"] == risen[1].json()["receipt"]["seq"]
    assert risen[0].json()["threshold"] >= made.json()["threshold"]
    assert [each["id"] for each in team.ann.client.get(API).json()] == [made.json()["id"]]
    assert team.ann.client.get(f"{API}/{'0' * 16}").status_code == 404
    assert verify(team.runtime.registry.database).intact


def test_few_rows_are_refused_or_begin_with_everyone(small_team):
    team = small_team
    few = "score,qualified,candidate\n" + "".join(f"{i / 30},{i % 2},c{i}\n" for i in range(30))
    refused = team.ann.client.post(f"{API}?{TERMS.replace('k=5', 'k=60')}", content=few, headers=CSV)
    assert refused.status_code == 422
    assert team.runtime.registry.entries(KINDS["rows.looked"])[0].facts["how"] == "campaign"
    made = team.ann.client.post(
        f"{API}?{TERMS.replace('k=5', 'k=60')}&everyone=true", content=few, headers=CSV
    )
    assert made.json()["threshold"] is None
    pool = team.ann.client.post(
        f"{API}/{made.json()['id']}/screen?name=a", content=pool_of(1)[0], headers=CSV
    )
    assert pool.json()["shortlisted"] == 100
    assert verify(team.runtime.registry.database).intact


@pytest.mark.slow
def test_only_people_of_all_policies_see_campaigns(small_team):
    team = small_team
    ident = begin(team).json()["id"]
    limited = Person(team.app, "Cy", policy=team.policy)
    viewer = Person(team.app, "Vi", role="viewer")
    for path in (f"{API}/{ident}", f"/campaigns/{ident}", "/campaigns", "/campaigns/new"):
        assert limited.client.get(path).status_code == 403
    assert limited.client.post(f"{API}/{ident}/update").status_code == 403
    assert "campaign" not in limited.get("/").text.lower()
    assert viewer.get(f"/campaigns/{ident}").status_code == 200
    assert "<form" not in viewer.get(f"/campaigns/{ident}").text.partition("<main")[2].partition("</main")[0]
    assert viewer.client.post(f"{API}/{ident}/update").status_code == 403
    assert viewer.post(f"/campaigns/{ident}/pool", files={"file": ("a.csv", "x\n1\n")}).status_code == 403


def forged(team: Team, action: str, subject: str, facts: dict) -> list[str]:
    forge(team.runtime.registry, "eve", action, subject, facts).result()
    return verify(team.runtime.registry.database).problems


def test_false_steps_are_noticed(small_team):
    team = small_team
    ident = begin(team).json()["id"]
    pool = team.ann.client.post(f"{API}/{ident}/screen?name=one", content=pool_of(1)[0], headers=CSV).json()
    (entry,) = team.runtime.registry.entries(CampaignScreened)
    (begun,) = team.runtime.registry.entries(CampaignStarted)
    labels = "1" * pool["shortlisted"]
    reviewed = CampaignReviewed(
        campaign=entry.event.campaign, pool="one", labels=labels, after=entry.event.after
    )
    after = to_builtins(campaign_record.stepped(begun.event.state, [entry.event, reviewed]))
    facts = {"campaign": ident, "pool": "one", "labels": reviewed.labels, "after": after}
    said = forged(team, "campaign.reviewed", pool["pool"], facts)
    assert any("not what they show" in each for each in said)
    said = forged(team, "campaign.updated", ident, {"campaign": ident, "after": after})
    assert any("cannot be read (InvalidInput)" in each for each in said)  # off schedule
    said = forged(team, "campaign.withdrawn", ident, {"reason": "because", "pools": 1, "e_value": 20.0})
    assert any("do not speak against" in each for each in said)
    lower = {**entry.facts, "pool": "two", "pool_sha256": "0", "scores": [], "shortlisted": 0}
    said = forged(team, "campaign.screened", "f" * 16, {**lower, "after": {**after, "rows": 1}})
    assert any("do not lead there: pools, rows" in each or "do not lead there: rows" in each for each in said)


def test_a_threshold_edited_in_the_record_is_noticed(small_team):
    team = small_team
    begin(team)
    registry = team.runtime.registry
    entry = registry.entries(KINDS["campaign.started"])[0]
    facts = entry.facts
    facts["after"]["threshold"] /= 2
    said = forged(team, "campaign.started", "a" * 16, facts)
    assert any("do not lead there: threshold" in each for each in said)
