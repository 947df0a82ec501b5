"""A recall watched over HTTP: an audit drawn with each pool, its outcome with the end of the reviews, on record."""

from __future__ import annotations

import json

import numpy as np
import pytest
from msgspec import structs

from surelist import Groups, Monitor, Recall, calibrate
from surelist.examples import population
from surelist.service.record import access
from surelist.service.record.event import KINDS
from surelist.service.record.events import ReviewsClosed
from surelist.service.record.verify import verify
from surelist.workflows.watching import ALPHA, audit_of
from tests.helpers.record import by, forge
from tests.service.test_api import CSV

RATE = 0.3


@pytest.fixture
def policy(client) -> str:
    return recall_policy(client)


def recall_policy(client) -> str:
    scores, labels = population(np.random.default_rng(2), 3000)
    text = "score,qualified\n" + "".join(f"{s},{int(y)}\n" for s, y in zip(scores, labels, strict=True))
    made = client.post(
        "/api/v1/calibrate", params={"promise": "recall", "share": 0.8}, content=text, headers=CSV
    )
    return str(made.json()["hash"])


def screen(client, policy, seed, size=300, headers=None, **query):
    """A pool as JSON: the answer, and who is qualified by id."""
    scores, labels = population(np.random.default_rng(seed), size)
    rows = [{"id": f"c{at}", "score": float(score)} for at, score in enumerate(scores)]
    answer = client.post(
        f"/api/v1/policies/{policy}/select", json={"rows": rows}, headers=headers or {},
        params={name: each for name, each in {"watch": True, "audit_rate": RATE, **query}.items() if each is not None},
    )  # fmt: skip
    return answer, {f"c{at}": bool(label) for at, label in enumerate(labels)}


def review(client, made, truth):
    ident = made["selection"]["id"]
    sent = [{"candidate": row["id"], "qualified": truth[row["id"]]} for row in made["shortlist"]]
    client.post(f"/api/v1/selections/{ident}/reviews", json={"reviews": sent})
    return f"/api/v1/selections/{ident}/finish"


def standing(client, policy):
    return client.get(f"/api/v1/policies/{policy}/standing").json()


def test_the_audit_is_drawn_once_counts_with_the_list_and_raises_the_alarm(client, policy):
    assert "Review each unlisted candidate" in standing(client, policy)["sentence"]
    answer, truth = screen(client, policy, 5, headers={"Idempotency-Key": "first"})
    made = answer.json()
    listed, drawn = ({row["id"] for row in made[name]} for name in ("shortlist", "audit"))
    assert drawn
    assert not listed & drawn
    assert 0.15 < len(drawn) / (300 - len(listed)) < 0.45
    again, _ = screen(client, policy, 5, headers={"Idempotency-Key": "first"})
    assert again.json()["audit"] == made["audit"]
    assert standing(client, policy)["standing"] == "too early to say"
    finish, missed = review(client, made, truth), sum(truth[each] for each in drawn)
    for body, said in (({}, "missed: expected"), ({"missed": len(drawn) + 1}, "were drawn for the audit")):
        refused = client.post(finish, json=body)
        assert refused.status_code == 400
        assert said in refused.text
    known = client.post(
        finish, json={"missed": missed, "unaudited": 0}, headers={"Idempotency-Key": "end"}
    ).json()
    monitor = Monitor(client.app.state.runtime.registry.policy(policy).policy, ALPHA, audit_rate=RATE)
    monitor.observe(qualified=sum(truth[each] for each in listed), missed=missed, pool_size=300)
    assert known["evidence"] == [pytest.approx(monitor.e_value)]
    assert client.post(
        finish, json={"missed": missed, "unaudited": 0}, headers={"Idempotency-Key": "end"}
    ).json()["receipt"]["replayed"]
    seed = 100
    while standing(client, policy)["standing"] != "alarm":
        answer, truth = screen(client, policy, seed, size=2000)
        made = answer.json()
        finish = review(
            client, made, dict.fromkeys(truth, False) | {r["id"]: True for r in made["shortlist"][:9]}
        )
        client.post(finish, json={"missed": len(made["audit"]) // 4})
        seed += 1
        assert seed < 110
    assert standing(client, policy)["withdrawn"] is not None
    assert verify(client.app.state.runtime.registry.database).problems == []


def test_what_an_audit_does_not_go_with_is_said(client, policy):
    without, _ = screen(client, policy, 1, watch=False)
    assert without.status_code == 400
    assert "give watch=true too" in without.text
    file = client.post(
        f"/api/v1/policies/{policy}/select", content="id,score\na,0.5\n", headers=CSV,
        params={"watch": True, "audit_rate": RATE},
    )  # fmt: skip
    assert "goes with rows in JSON" in file.text
    first = screen(client, policy, 2)[0].json()
    other = screen(client, policy, 3, audit_rate=0.1)[0].json()
    registry = client.app.state.runtime.registry
    facts = {each.subject: each.facts for each in registry.entries(KINDS["selection.made"])}
    assert facts[first["selection"]["id"]]["watched"]
    assert "audited at 0.3, and this one at 0.1" in facts[other["selection"]["id"]]["not_watched"]
    plain, truth = screen(client, policy, 4, audit_rate=None, watch=None)
    finish = review(client, plain.json(), truth)
    assert "no audit was drawn" in client.post(finish, json={"missed": 0}).text


def test_a_record_that_counts_more_than_were_drawn_is_found_out(client, policy):
    answer, truth = screen(client, policy, 6)
    made = answer.json()
    review(client, made, truth)
    registry = client.app.state.runtime.registry
    qualified = sum(truth[row["id"]] for row in made["shortlist"])
    counts = {"pool_size": 300, "qualified": qualified, "unreviewed": 0, "missed": 200, "unaudited": 0}
    facts = {"policy": policy, "counts": counts}
    forge(registry, "eve", "reviews.closed", made["selection"]["id"], facts).result()
    problems = verify(registry.database).problems
    assert any("more are counted in its audit than were drawn" in each for each in problems), json.dumps(
        problems
    )


def page_of(client):
    client.headers["accept"] = "text/html"
    client.get("/")
    return {"csrf": access.csrf_token(client.cookies["surelist"])}


def screen_on_the_page(client, csrf, policy, seed, group=False, **form):
    scores, labels = population(np.random.default_rng(seed), 300)
    text = "id,score,sex\n" + "".join(f"c{at},{float(s)!r},{'fm'[at % 2]}\n" for at, s in enumerate(scores))
    draft = client.post(f"/policies/{policy}/pool", data=csrf, files={"file": (f"{seed}.csv", text)}).url.path
    chosen = {"score": "score", "id": "id", "watch": "1", **({"group": "sex"} if group else {}), **form}
    page = client.post(draft, data={**csrf, **chosen})
    return page, {f"c{at}": bool(label) for at, label in enumerate(labels)}


def finish_on_the_page(client, csrf, path, truth, yes=None):
    ids = [line.split(",")[1] for line in client.get(path + "/reviews.csv").text.splitlines()[1:]]
    said = "".join(f"{each},{int(truth[each])}\n" for each in ids)
    client.post(
        path + "/reviews",
        data={**csrf, "id": "id", "label": "review"},
        files={"file": ("r.csv", "id,review\n" + said)},
    )
    return ids, client.post(path + "/finish", data=csrf)


def closing(client, ident):
    return structs.asdict(client.app.state.runtime.registry.newest(ReviewsClosed, subject=ident).event.counts)


@pytest.mark.slow
def test_a_recall_is_watched_on_the_page(local_client):
    client = local_client
    policy, csrf = recall_policy(client), page_of(local_client)
    shown = client.get(f"/policies/{policy}").text
    assert "let a random share of them be reviewed" in shown
    page, truth = screen_on_the_page(client, csrf, policy, 5, audit_rate="30")
    path = page.url.path
    facts = by(client.app.state.runtime.registry).selection(path.rpartition("/")[2]).facts
    assert facts["audit_rate"] == RATE
    assert 0.15 < len(facts["audit"]) / (300 - facts["shortlisted"]) < 0.45
    ids, done = finish_on_the_page(client, csrf, path, truth)
    assert len(ids) == facts["shortlisted"] + len(facts["audit"])
    assert {f"c{row}" for row in facts["audit"]} == set(ids[facts["shortlisted"] :])
    assert "Not listed; drawn at random" in client.get(f"{path}/review?show=all&at={len(ids)}").text
    counts = closing(client, path.rpartition("/")[2])
    listed = ids[: facts["shortlisted"]]
    assert counts["qualified"] == sum(truth[each] for each in listed)
    assert counts["missed"] == sum(truth[each] for each in ids) - counts["qualified"]
    assert counts["unreviewed"] == counts["unaudited"] == 0
    assert "qualified candidates on the list" in done.text
    again, _ = screen_on_the_page(client, csrf, policy, 6)  # the rate is that of the first pool
    later = by(client.app.state.runtime.registry).selection(again.url.path.rpartition("/")[2]).facts
    assert later["audit_rate"] == RATE
    assert later["watched"]
    client.post(f"{again.url.path}/forget", data=csrf)
    client.post(f"{again.url.path}/finish", data={**csrf, "missing": "1"})
    gone = closing(client, again.url.path.rpartition("/")[2])
    assert (gone["qualified"], gone["missed"], gone["unaudited"]) == (0, 0, len(later["audit"]))
    assert verify(client.app.state.runtime.registry.database).intact


def test_an_audit_by_group_counts_each_group():
    scores, labels = population(np.random.default_rng(2), 3000)
    sexes = np.where(np.arange(3000) % 2, "m", "f")
    made = calibrate(scores, labels, {"f": Recall(0.7), "m": Recall(0.6)}, groups=Groups(sexes, "a test"))
    who = {"a": "f", "b": "f", "c": "m"}
    counts = audit_of(made, 6, {"f": 4, "m": 2}, {"a": True, "b": False, "c": False}, who)
    assert counts == ({"f": 1, "m": 0}, {"f": 2, "m": 1})
    assert audit_of(made, 6, {"f": 4, "m": 2}, {}, {})[1] == {"f": 4, "m": 2}


def test_an_audit_needs_ids_and_a_share(local_client):
    client = local_client
    policy, csrf = recall_policy(client), page_of(local_client)
    page, _ = screen_on_the_page(client, csrf, policy, 5, id="", audit_rate="5")
    assert page.status_code == 400
    assert "reviews go by candidate ids" in page.text
    page, _ = screen_on_the_page(client, csrf, policy, 5, audit_rate="")
    assert page.status_code == 400
    assert "this field is empty" in page.text
    page, _ = screen_on_the_page(client, csrf, policy, 5, id="", watch="")
    assert page.status_code == 200


@pytest.mark.slow
def test_missed_candidates_on_the_page_raise_the_alarm(local_client):
    client = local_client
    policy, csrf = recall_policy(client), page_of(local_client)
    for seed in range(5, 25):
        page, truth = screen_on_the_page(client, csrf, policy, seed, audit_rate="30")
        if page.status_code == 409:
            break
        facts = by(client.app.state.runtime.registry).selection(page.url.path.rpartition("/")[2]).facts
        turned = {**truth, **{f"c{row}": True for row in facts["audit"][:20]}}
        finish_on_the_page(client, csrf, page.url.path, turned)
    assert page.status_code == 409
    assert "Alarm, the promise is withdrawn" in client.get(f"/policies/{policy}").text
    assert verify(client.app.state.runtime.registry.database).intact
