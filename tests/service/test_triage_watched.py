"""A triage watched in the app: an audit of everyone drawn with each pool, the band reviewed anyway, on record."""

from __future__ import annotations

import csv
import io
import json
import re

import numpy as np
import pytest
from msgspec import structs

from surelist import Monitor
from surelist.service.record import access
from surelist.service.record.events import ReviewsClosed
from surelist.service.record.verify import verify
from surelist.workflows.watching import ALPHA
from tests.helpers.record import by, forge
from tests.service.test_triage import judged, text

RATE = 0.3
LISTS = ("accept", "look", "reject")


@pytest.fixture(params=["reject", "reject_recall"])
def policy(local_client, request) -> str:
    return triage_policy(local_client, request.param)


def triage_policy(client, side: str = "reject_recall") -> str:
    scores, labels = judged(1, 1_000)
    past, others = text(score=scores, qualified=labels.astype(int)), text(score=judged(2, 3_000)[0])
    files = {"past": ("past.csv", past, "text/csv"), "unlabelled": ("others.csv", others, "text/csv")}
    query = {"promise": "triage", "accept": 0.9, side: 0.9}
    return str(client.post("/api/v1/calibrate", params=query, files=files).json()["hash"])


def page_of(client) -> dict[str, str]:
    client.headers["accept"] = "text/html"
    client.get("/")
    return {"csrf": access.csrf_token(client.cookies["surelist"])}


def screen(client, csrf, policy, seed, size=300, **form):
    """A pool on the page: where it went, and who is qualified by id."""
    scores, labels = judged(seed, size)
    pool = text(id=np.array([f"c{at}" for at in range(size)]), score=scores)
    draft = client.post(f"/policies/{policy}/pool", data=csrf, files={"file": (f"{seed}.csv", pool)}).url.path
    page = client.post(draft, data={**csrf, "score": "score", "id": "id", "watch": "1", **form})
    return page, {f"c{at}": bool(label) for at, label in enumerate(labels)}


def facts_of(client, path: str) -> dict:
    return by(client.app.state.runtime.registry).selection(path.rpartition("/")[2]).facts


def closing(client, path: str) -> dict:
    ident = path.rpartition("/")[2]
    return structs.asdict(client.app.state.runtime.registry.newest(ReviewsClosed, subject=ident).event.counts)


def to_review(client, path: str) -> list[str]:
    return [
        row["id"]
        for row in csv.DictReader(io.StringIO(client.get(path + "/reviews.csv").text.lstrip("\ufeff")))
    ]


def reviewed(client, csrf, path, truth, ids):
    said = "".join(f"{each},{int(truth[each])}\n" for each in ids)
    sent = {"file": ("r.csv", "id,review\n" + said)}
    client.post(path + "/reviews", data={**csrf, "id": "id", "label": "review"}, files=sent)


def lists_of(client, policy: str, seed: int, size: int = 300) -> dict[str, str]:
    made = client.app.state.runtime.registry.policy(policy).policy
    return {f"c{at}": name for at, name in enumerate(made.triage(judged(seed, size)[0]).tolist())}


def standing(client, policy):
    return client.get(f"/api/v1/policies/{policy}/standing", headers={"accept": "application/json"}).json()


def intact(client) -> bool:
    found = verify(client.app.state.runtime.registry.database)
    return found.intact or pytest.fail(str(found.problems))


@pytest.mark.slow
def test_a_triage_is_watched_on_the_page(local_client, policy):
    client, csrf = local_client, page_of(local_client)
    assert "who is accepted or rejected is never seen" in client.get(f"/policies/{policy}").text
    page, truth = screen(client, csrf, policy, 5, audit_rate="30")
    path, lists = page.url.path, lists_of(client, policy, 5)
    facts = facts_of(client, path)
    drawn = {f"c{row}" for row in facts["audit"]}
    assert facts["watched"]
    assert facts["audit_rate"] == RATE
    assert facts["audit_groups"] == {name: sum(lists[each] == name for each in drawn) for name in LISTS}
    assert min(facts["audit_groups"].values()) > 0, "on whichever list"
    ids, band = to_review(client, path), {each for each, name in lists.items() if name == "look"}
    assert set(ids) == band | drawn
    assert set(ids[len(band - drawn) :]) == drawn
    assert "on whichever list" in client.get(f"{path}/review?show=all&at={len(ids)}").text
    assert "neither accepted nor rejected" in client.get(f"{path}/review?show=all&at=1").text
    reviewed(client, csrf, path, truth, ids[1:])
    refused = client.post(path + "/finish", data=csrf)
    assert refused.status_code == 400
    assert "1 candidates have none that counts" in refused.text
    reviewed(client, csrf, path, truth, ids[:1])
    done = client.post(path + "/finish", data=csrf)
    counts = closing(client, path)
    qualified = {name: sum(truth[each] for each in drawn if lists[each] == name) for name in LISTS}
    assert counts["missed"] == qualified
    assert counts["drawn"] == facts["audit_groups"]
    assert counts["qualified"] == sum(truth[each] for each in band - drawn)
    assert counts["unreviewed"] == 0
    assert counts["unaudited"] == dict.fromkeys(LISTS, 0)
    monitor = Monitor(client.app.state.runtime.registry.policy(policy).policy, ALPHA, audit_rate=RATE)
    monitor.observe(drawn=counts["drawn"], qualified=qualified)
    assert standing(client, policy)["evidence"] == [pytest.approx(monitor.e_value)]
    assert "of the accepted are qualified" in done.text
    assert intact(client)


@pytest.mark.slow
def test_whoever_reviews_does_not_see_who_is_on_which_list(local_client):
    client, csrf, policy = local_client, page_of(local_client), triage_policy(local_client)
    path = screen(client, csrf, policy, 5, audit_rate="30")[0].url.path
    drawn = facts_of(client, path)["audit_groups"]
    assert min(drawn.values()) > 0
    shown = [
        client.get(f"{path}/review?show=all&at={at}").text
        for at in range(1, len(to_review(client, path)) + 1)
    ]
    for page in shown:
        columns = re.findall(r"<dt>([^<]+)</dt>", page)
        assert columns == ["id", "score"]
        assert ("drawn" in page.lower()) == ("<dt>score</dt><dd>–</dd>" in page)
        assert re.findall(r'<option value="([^"]*)"', page)[-3:] == ["", "id", "score"]
    assert {
        at for name in LISTS for at, page in enumerate(shown) if re.search(rf">\s*{name}\s*<", page)
    } == set()
    order = [int(each[1:]) for each in to_review(client, path)][-sum(drawn.values()) :]
    assert order != sorted(order)
    assert order != sorted(order, key=lambda row: -judged(5, 300)[0][row])
    for word in LISTS:
        assert "No candidate fits what is shown" in client.get(f"{path}/review?show=all&q={word}").text
    assert client.get(f"{path}/review?show=all&sort=surelist_list").status_code == 400
    header = client.get(path + "/reviews.csv").text.splitlines()[0]
    assert header.endswith("rank,id,review,reviewers,last,notes,score")


@pytest.mark.slow
def test_the_rate_is_that_of_the_first_pool_and_a_list_that_is_gone_says_nothing(local_client):
    client, csrf, policy = local_client, page_of(local_client), triage_policy(local_client)
    screen(client, csrf, policy, 5, audit_rate="30")
    page, truth = screen(client, csrf, policy, 6)
    path, later = page.url.path, facts_of(client, page.url.path)
    assert later["audit_rate"] == RATE
    assert later["watched"]
    reviewed(client, csrf, path, truth, to_review(client, path)[-3:])
    client.post(f"{path}/forget", data=csrf)
    client.post(f"{path}/finish", data={**csrf, "missing": "1"})
    gone = closing(client, path)
    assert (gone["qualified"], gone["missed"]) == (0, dict.fromkeys(LISTS, 0))
    assert gone["unaudited"] == gone["drawn"] == later["audit_groups"]
    assert intact(client)


@pytest.mark.slow
def test_missing_reviews_of_those_drawn_are_told_by_list(local_client):
    client, csrf, policy = local_client, page_of(local_client), triage_policy(local_client)
    page, truth = screen(client, csrf, policy, 5, audit_rate="30")
    path, lists = page.url.path, lists_of(client, policy, 5)
    ids, drawn = to_review(client, path), {f"c{row}" for row in facts_of(client, page.url.path)["audit"]}
    left = {
        next(each for each in ids if each in drawn and lists[each] == name) for name in ("accept", "reject")
    }
    left.add(next(each for each in ids if each not in drawn))
    reviewed(client, csrf, path, truth, [each for each in ids if each not in left])
    client.post(path + "/finish", data={**csrf, "missing": "1"})
    counts = closing(client, path)
    assert counts["unaudited"] == {"accept": 1, "look": 0, "reject": 1}
    assert counts["unreviewed"] == 1
    assert intact(client)


@pytest.mark.slow
def test_without_watching_the_band_alone_is_reviewed(local_client):
    client, csrf, policy = local_client, page_of(local_client), triage_policy(local_client)
    page, truth = screen(client, csrf, policy, 5, watch="")
    lists, ids = lists_of(client, policy, 5), to_review(client, page.url.path)
    assert set(ids) == {each for each, name in lists.items() if name == "look"}
    facts = facts_of(client, page.url.path)
    assert "audit" not in facts or facts["audit"] is None
    reviewed(client, csrf, page.url.path, truth, ids)
    assert client.post(page.url.path + "/finish", data=csrf).status_code == 200
    assert closing(client, page.url.path)["qualified"] == sum(truth[each] for each in ids)
    assert standing(client, policy)["pools"] == 0
    assert intact(client)


@pytest.mark.slow
@pytest.mark.parametrize("wrong", ["accept", "reject"])
def test_either_end_raises_the_alarm(local_client, policy, wrong):
    client, csrf = local_client, page_of(local_client)
    for seed in range(5, 25):
        page, truth = screen(client, csrf, policy, seed, size=600, audit_rate="30")
        if page.status_code == 409:
            break
        lists, ids = lists_of(client, policy, seed, 600), to_review(client, page.url.path)
        turned = {each: (wrong == "reject") if lists[each] == wrong else truth[each] for each in ids}
        reviewed(client, csrf, page.url.path, turned, ids)
        client.post(page.url.path + "/finish", data=csrf)
    assert page.status_code == 409
    assert "Alarm, the promise is withdrawn" in client.get(f"/policies/{policy}").text
    assert intact(client)


def sent(client, policy, seed, **query):
    scores, labels = judged(seed, 300)
    rows = [{"id": f"c{at}", "score": float(score)} for at, score in enumerate(scores)]
    answer = client.post(
        f"/api/v1/policies/{policy}/select", json={"rows": rows}, params={"watch": True, **query}
    )
    return answer, labels


def test_by_api_those_drawn_are_told_in_numbers_by_list(local_client, policy):
    client = local_client
    answer, labels = sent(client, policy, 5, audit_rate=RATE)
    made, rows = answer.json(), [int(row["id"][1:]) for row in answer.json()["audit"]]
    finish = f"/api/v1/selections/{made['selection']['id']}/finish"
    drawn = {name: sum(made["triage"][row] == name for row in rows) for name in LISTS}
    qualified = {
        name: sum(bool(labels[row]) for row in rows if made["triage"][row] == name) for name in LISTS
    }
    for body, said in (
        ({}, "missed: expected"),
        ({"missed": 3}, "a number for each list"),
        ({"missed": {"accept": 1, "reject": 1}}, "a number for each list"),
        ({"missed": qualified | {"look": drawn["look"] + 1}}, "were drawn for the audit"),
        ({"missed": qualified, "unaudited": drawn}, "were drawn for the audit"),
    ):
        refused = client.post(finish, json=body)
        assert refused.status_code == 400, said
        assert said in refused.text
    known = client.post(finish, json={"missed": qualified}).json()
    monitor = Monitor(client.app.state.runtime.registry.policy(policy).policy, ALPHA, audit_rate=RATE)
    monitor.observe(drawn=drawn, qualified=qualified)
    assert known["evidence"] == [pytest.approx(monitor.e_value)]
    assert intact(client)


def test_without_an_audit_a_triage_does_not_count(local_client, policy):
    answer, _ = sent(local_client, policy, 5)
    facts = facts_of(local_client, "/" + answer.json()["selection"]["id"])
    assert "without an audit" in facts["not_watched"]
    assert "without an audit" in standing(local_client, policy)["sentence"]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"drawn": {"accept": 1, "look": 1, "reject": 1}}, "others are counted in its audit than were drawn"),
        ({"drawn": None, "missed": 0, "unaudited": 0}, "others are counted in its audit than were drawn"),
        (
            {"missed": {"accept": 200, "look": 0, "reject": 0}},
            "more are counted in its audit than were drawn",
        ),
        (  # not more than were drawn in all
            {"missed": dict.fromkeys(LISTS, 0) | {"reject": 51}, "unaudited": dict.fromkeys(LISTS, 0)},
            "more are counted in its audit than were drawn",
        ),
    ],
)
def test_a_record_that_counts_others_than_were_drawn_is_found_out(local_client, changed, said):
    client, policy = local_client, triage_policy(local_client)
    made = sent(client, policy, 6, audit_rate=RATE)[0].json()["selection"]["id"]
    registry, drawn = client.app.state.runtime.registry, facts_of(client, "/" + made)["audit_groups"]
    band = facts_of(client, "/" + made)["lists"]["look"]
    counts = {"pool_size": 300, "qualified": 0, "unreviewed": band, "missed": dict.fromkeys(LISTS, 0),
              "unaudited": dict.fromkeys(LISTS, 0), "drawn": drawn}  # fmt: skip
    facts = {"policy": policy, "counts": counts | changed}
    forge(registry, "eve", "reviews.closed", made, facts).result()
    problems = verify(registry.database).problems
    assert any(said in each for each in problems), json.dumps(problems)


@pytest.mark.parametrize(
    "by_list", [{"accept": 9, "look": 0, "reject": 0}, {"accept": 1, "look": 99, "reject": 0}]
)
def test_an_audit_that_is_not_of_its_lists_is_found_out(local_client, by_list):
    client, policy = local_client, triage_policy(local_client)
    made = sent(client, policy, 6, audit_rate=RATE)[0].json()["selection"]["id"]
    registry, facts = client.app.state.runtime.registry, facts_of(client, "/" + made)
    facts = {**facts, "audit_groups": by_list, "audit": list(range(10)), "watched": False}
    forge(registry, "eve", "selection.made", "f" * 16, facts).result()
    problems = verify(registry.database).problems
    assert any("its audit is not of its three lists" in each for each in problems), json.dumps(problems)


@pytest.mark.slow
@pytest.mark.parametrize(("scores", "held"), [((0.99, 0.999), "accept"), ((0.0, 0.001), "reject")])
def test_a_pool_with_nobody_to_look_at_has_its_audit_alone(local_client, scores, held):
    client, csrf, policy = local_client, page_of(local_client), triage_policy(local_client)
    pool = text(id=np.array([f"c{at}" for at in range(60)]), score=np.linspace(scores[0], scores[1], 60))
    draft = client.post(f"/policies/{policy}/pool", data=csrf, files={"file": ("p.csv", pool)}).url.path
    page = client.post(draft, data={**csrf, "score": "score", "id": "id", "watch": "1", "audit_rate": "50"})
    path, facts = page.url.path, facts_of(client, page.url.path)
    assert facts["lists"] == {**dict.fromkeys(LISTS, 0), held: 60}
    ids = to_review(client, path)
    assert sorted(ids) == sorted(f"c{row}" for row in facts["audit"])
    reviewed(client, csrf, path, dict.fromkeys(ids, held == "accept"), ids)
    client.post(path + "/finish", data=csrf)
    assert closing(client, path)["missed"] == {**dict.fromkeys(LISTS, 0), held: len(ids) * (held == "accept")}
    assert intact(client)


@pytest.mark.slow
def test_rates_by_attribute_count_those_accepted(local_client):
    client, csrf, policy = local_client, page_of(local_client), triage_policy(local_client)
    scores, sex = judged(7, 300)[0], np.where(np.arange(300) % 3, "f", "m")
    pool = text(id=np.array([f"c{at}" for at in range(300)]), score=scores, sex=sex)
    draft = client.post(f"/policies/{policy}/pool", data=csrf, files={"file": ("p.csv", pool)}).url.path
    page = client.post(draft, data={**csrf, "score": "score", "id": "id", "attribute1": "sex"})
    table = facts_of(client, page.url.path)["impact"][0]
    accepted = client.app.state.runtime.registry.policy(policy).policy.triage(scores) == "accept"
    expected = {name: (int((sex == name).sum()), int(accepted[sex == name].sum())) for name in "fm"}
    assert {
        row["names"][0]: (row["candidates"], row["shortlisted"]) for row in table["categories"]
    } == expected
    report = client.get(page.url.path + "/report").text
    assert "For people to look at" in report
    assert "A candidate is accepted when" in report


@pytest.mark.slow
def test_a_rate_of_many_digits_stays_the_same(local_client):
    client, csrf, policy = local_client, page_of(local_client), triage_policy(local_client)
    screen(client, csrf, policy, 5, audit_rate="33.3333333")
    later = facts_of(client, screen(client, csrf, policy, 6)[0].url.path)
    assert (later["audit_rate"], later.get("watched")) == (33.3333333 / 100, True)


@pytest.mark.slow
@pytest.mark.parametrize("finished", [True, False])
def test_a_pool_whose_reviews_are_known_does_not_count_later(local_client, finished):
    client, csrf, policy = local_client, page_of(local_client), triage_policy(local_client)
    screen(client, csrf, policy, 5, watch="")  # a trial run, and nothing is known
    path = screen(client, csrf, policy, 6, watch="")[0].url.path
    if finished:
        client.post(path + "/finish", data={**csrf, "missing": "1"})
    else:
        reviewed(
            client, csrf, path, dict.fromkeys(to_review(client, path), True), to_review(client, path)[:1]
        )
    trial, known = (
        facts_of(client, screen(client, csrf, policy, seed, audit_rate="30")[0].url.path) for seed in (5, 6)
    )
    assert trial["watched"]
    assert "its reviews are known" in known["not_watched"]
    assert intact(client)


def test_numbers_that_do_not_go_together_are_refused_though_an_earlier_pool_waits(local_client):
    client = local_client
    scores, labels = judged(1, 1_000)
    past = ("past.csv", text(score=scores, qualified=labels.astype(int)), "text/csv")
    query = {"promise": "recall", "share": 0.8}
    policy = client.post("/api/v1/calibrate", params=query, files={"past": past}).json()["hash"]
    first, second = (
        f"/api/v1/selections/{sent(client, policy, seed, audit_rate=RATE)[0].json()['selection']['id']}/finish"
        for seed in (5, 6)
    )
    refused = client.post(second, json={"missed": {"nobody": 1}, "missing": True})
    assert refused.status_code == 400
    assert "a whole number" in refused.text
    for each in (second, first):
        assert client.post(each, json={"missed": 1, "missing": True}).status_code == 200
    assert standing(client, policy)["pools"] == 2


def test_the_record_tells_what_the_audit_showed(local_client):
    client, csrf, policy = local_client, page_of(local_client), triage_policy(local_client)
    made = sent(client, policy, 6, audit_rate=RATE)[0].json()["selection"]["id"]
    finish, none = f"/api/v1/selections/{made}/finish", dict.fromkeys(LISTS, 0)
    for unaudited in (3, {}, none | {"look": 99}):
        refused = client.post(finish, json={"missed": none, "unaudited": unaudited})
        assert refused.json()["error"]["field"] == "unaudited"
    told = {"missed": none | {"accept": 30}, "unaudited": none | {"reject": 2}}
    assert client.post(finish, json=told).status_code == 200
    assert "; in the audit 30 qualified, 2 without a review." in client.get("/record", params=csrf).text


@pytest.mark.slow
def test_a_pool_of_which_nobody_is_to_be_reviewed_says_so(local_client):
    client, csrf, policy = local_client, page_of(local_client), triage_policy(local_client)
    pool = text(id=np.array(["c0"]), score=np.array([0.99]))
    draft = client.post(f"/policies/{policy}/pool", data=csrf, files={"file": ("p.csv", pool)}).url.path
    form = {**csrf, "score": "score", "id": "id", "watch": "1", "audit_rate": "1e-9"}
    page = client.post(draft, data=form)
    assert "To review: 0 drawn at random, on whichever list, and 0 others between" in page.text
    assert "waits to be finished: nobody is to be reviewed" in client.get(f"/policies/{policy}").text
    assert client.post(page.url.path + "/finish", data=csrf).status_code == 200
    assert standing(client, policy)["pools"] == 1
