"""A recall watched over HTTP: an audit drawn with each pool, its outcome with the end of the reviews, on record."""

from __future__ import annotations

import json

import numpy as np
import pytest

from surelist import Monitor
from surelist.examples import population
from surelist.service.record.verify import verify
from surelist.workflows.watching import ALPHA
from tests.service.test_api import CSV

RATE = 0.3


@pytest.fixture
def policy(client) -> str:
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
    facts = {each.subject: each.facts for each in registry.entries(action="selection.made")}
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
    registry.append("eve", "reviews.closed", made["selection"]["id"], facts).result()
    problems = verify(registry.database).problems
    assert any("more are counted in its audit than were drawn" in each for each in problems), json.dumps(
        problems
    )
