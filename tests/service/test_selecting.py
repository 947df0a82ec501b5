"""Selections: the short way to their handler answers as the long one through the routes does."""

from __future__ import annotations

import re

import pytest

from surelist.service import bodies
from tests.service.test_api import make_policy

NEVER = re.compile("(?!)")
ROWS = {"rows": [{"score": 0.99, "candidate": "a"}, {"score": 0.01, "candidate": "b"}]}


def asked(client, policy: str) -> list[tuple[str, dict]]:
    select = f"/api/v1/policies/{policy}/select"
    json = {"content-type": "application/json"}
    return [
        (select, {"json": ROWS}),
        (select, {"json": ROWS, "headers": {"Idempotency-Key": "again"}}),
        (select, {"json": ROWS, "headers": {"Idempotency-Key": "again"}}),
        (select, {"json": {"rows": ROWS["rows"][:1]}, "headers": {"Idempotency-Key": "again"}}),
        (select, {"json": ROWS, "headers": {"Idempotency-Key": ""}}),
        (select + "?score=score&id=", {"json": ROWS}),
        (select + "?score=other", {"json": ROWS}),
        (select + "?nonsense=1", {"json": ROWS}),
        (select + "?policy=" + policy, {"json": ROWS}),
        (select + "?attribute=a&attribute=b&attribute=c", {"json": ROWS}),
        (select + "?format=csv", {"json": ROWS}),
        (select, {"content": b"{", "headers": json}),
        (select, {"content": b"candidate,score\nx,0.99\n", "headers": {"content-type": "text/csv"}}),
        (select, {"content": b"?", "headers": {"content-type": "text/plain"}}),
        (select, {"content": b"x" * (65 << 20), "headers": json}),
        (f"/api/v1/policies/{'0' * 64}/select", {"json": ROWS}),
        (f"/api/v1/policies/{policy[:10]}/select", {"json": ROWS}),
        (f"/api/v1/policies/{policy.upper()}/select", {"json": ROWS}),
        (select + "/", {"json": ROWS}),
    ]


def settled(answer) -> tuple:
    """What an answer says, without what is new each time."""
    text = re.sub(rb'"(id|at|hash)":"[^"]*"|"seq":\d+', b"", answer.content)
    passing = {"content-length", "surelist-selection", "surelist-receipt", "etag", "last-modified"}
    passing |= {"connection"}  # closed at once where a body was refused
    headers = {k: v for k, v in answer.headers.items() if k not in passing}
    return answer.status_code, answer.json() if answer.is_error else text, headers


@pytest.mark.slow
def test_the_short_way_answers_as_the_long_one(local_client, past, monkeypatch):
    policy = make_policy(local_client, past)["hash"]
    requests = asked(local_client, policy)
    short = [settled(local_client.post(url, **sent)) for url, sent in requests]
    monkeypatch.setattr(bodies, "ADDRESS", NEVER)
    for (url, sent), answer in zip(requests, short, strict=True):
        if (sent.get("headers") or {}).get("Idempotency-Key") == "again":
            sent["headers"]["Idempotency-Key"] = "anew"
        again = local_client.post(url, **sent)
        assert settled(again) == answer, (url, again.text)
    assert [status for status, *_ in short][:5] == [200, 200, 200, 409, 400]


def test_selections_are_counted_under_their_route(local_client, past):
    policy = make_policy(local_client, past)["hash"]
    local_client.post(f"/api/v1/policies/{policy}/select", json=ROWS)
    text = local_client.get("/metrics").text
    assert re.search(r'method="POST",route="/api/v1/policies/\{policy\}/select",status="200"\} 1\.0', text)


def test_on_the_page_of_the_api_what_is_about_one_thing_stands_together(local_client):
    paths = local_client.get("/api/v1/openapi.json").json()["paths"]
    tags = {path: {each for use in uses.values() for each in use["tags"]} for path, uses in paths.items()}
    assert tags["/api/v1/calibrate"] == tags["/api/v1/policies/{policy}/select"] == {"policies"}
    assert tags["/api/v1/labellings/{ident}/next"] == {"labellings"}
    kinds = {"policies", "selections", "campaigns", "labellings", "log", "operation"}
    assert set.union(*tags.values()) == kinds
    assert paths["/api/v1/log"]["get"]["summary"][0].isupper()
    assert paths["/api/v1/policies/{policy}/select"]["post"]["summary"] == "Shortlist a pool"
