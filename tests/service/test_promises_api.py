"""Every promise over HTTP: the policy of the library, a list, an evaluation, a report; refusals that say what to do."""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np
import pandas as pd
import pytest

import surelist as sl
from surelist.examples import population
from surelist.promises.kinds import KINDS, classes, fields
from surelist.promises.options import OPTIONS
from surelist.promises.proved import proved_from
from tests.service.test_api import CSV

EDGE = 0.6


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    rng = np.random.default_rng(8)
    scores, labels = population(rng, 1500)
    drawn = (scores >= EDGE) | (rng.random(1500) < 0.3)
    return pd.DataFrame({
        "score": scores, "bm25": scores + rng.normal(0, 0.1, 1500), "qualified": labels.astype(int),
        "drawn": np.where(drawn, labels, np.nan), "rate": np.where(scores >= EDGE, 1.0, 0.3),
        "value": labels * rng.integers(1, 20, 1500), "query": [f"q{i:02}" for i in rng.integers(0, 40, 1500)],
    })  # fmt: skip


@pytest.fixture(scope="module")
def others() -> pd.DataFrame:
    scores = population(np.random.default_rng(9), 2000)[0]
    return pd.DataFrame({"score": scores, "bm25": scores})


def text(frame: pd.DataFrame) -> str:
    return frame.to_csv(index=False)


PROMISES: dict[str, tuple[dict[str, Any], str]] = {
    "next pool": ({"promise": "next-pool", "k": 2, "pool": "query"}, "the next pool holds at least 2"),
    "own recall": ({"promise": "next-pool", "recall": 0.7, "pool": "query"}, "at least 70% of that pool's own"),
    "by rank": ({"promise": "next-pool", "k": 1, "pool": "query", "by": "rank"}, "by rank"),
    "average of pools": ({"promise": "pool-average", "k": 2, "pool": "query", "spread": 3}, "on average over pools"),
    "value per pool": (
        {"promise": "pool-average", "k": 9, "pool": "query", "of": "value", "label": "value"}, "a value of 9"
    ),
    "value per 100": ({"promise": "value", "k": 40, "pool_size": 100, "label": "value"}, "a value of 40"),
    "precision": ({"promise": "precision", "share": 0.5, "start": 0.1}, "least 50% of those"),
    "false share": ({"promise": "false-share", "share": 0.5}, "false share"),
    "budget": ({"promise": "budget", "size": 10, "pool_size": 100}, "on average over pools of 100"),
    "rank chain": ({"k": 5, "pool_size": 100}, "at least 5 qualified"),
    "audited": ({"k": 5, "pool_size": 100, "label": "drawn", "audit_rate": 0.3, "audited_below": EDGE}, "labelled"),
    "known rates": ({"k": 4, "pool_size": 100, "label": "drawn", "probability": "rate", "lowest_rate": 0.3}, "4 qual"),
    "best of two": ({"k": 5, "pool_size": 100, "other_score": ["bm25"]}, "at least 5 qualified"),
    "two promises": ({"k": 5, "pool_size": 100, "also": ["precision:0.4"], "start": 0.1}, "40%"),
}  # fmt: skip
NEED_OTHERS = {"precision", "false share", "budget", "rank chain", "two promises"}


def calibrate(client, rows, others, query):
    if others is None:
        return client.post("/api/v1/calibrate", params=query, content=text(rows), headers=CSV)
    files = {"past": ("past.csv", text(rows)), "unlabelled": ("others.csv", text(others))}
    return client.post("/api/v1/calibrate", params=query, files=files)


@pytest.mark.slow
@pytest.mark.parametrize("promise", PROMISES)
def test_every_promise_is_made_selects_reports_and_is_evaluated(local_client, rows, others, promise):
    query, said = PROMISES[promise]
    answer = calibrate(local_client, rows, others if promise in NEED_OTHERS else None, query)
    assert answer.status_code == 201, answer.text
    made = answer.json()
    assert said in made["promise"]
    policy = sl.Policy.loads(json.dumps(made["policy"]))
    url = f"/api/v1/policies/{made['hash']}"
    assert local_client.get(url + "/report").status_code == 200
    assert local_client.get(f"/policies/{made['hash']}").status_code == 200
    pool = others.assign(query=[f"n{i % 20}" for i in range(len(others))])
    by_pool = {"pool": "query"} if policy.by_rank else {}
    listed = local_client.post(url + "/select", params=by_pool, content=text(pool), headers=CSV)
    assert listed.status_code == 200, listed.text
    rows_listed = pd.read_csv(io.StringIO(listed.text))
    column = (policy.columns or {})["score"]
    scores = pool[column] if policy.choice is None else {column: pool[column]}
    chosen = policy.select_pools(scores, pool["query"]) if policy.by_rank else policy.select(scores)
    assert rows_listed[column].tolist() == pool[column][chosen].tolist()
    body = {"rows": pool.to_dict("records")}
    by_json = local_client.post(url + "/select", params=by_pool, json=body).json()
    assert [row[column] for row in by_json["shortlist"]] == pool[column][chosen].tolist()
    later = local_client.post(
        url + "/evaluate", params={"label": "qualified"}, content=text(fresh()), headers=CSV
    )
    if promise == "false share" or "value" in promise:
        assert later.status_code == 400
    else:
        assert later.status_code == 200, later.text
        assert later.json()["verdict"]


def fresh() -> pd.DataFrame:
    rng = np.random.default_rng(10)
    scores, labels = population(rng, 900)
    return pd.DataFrame(
        {"score": scores, "bm25": scores, "qualified": labels.astype(int), "query": np.arange(900) // 30}
    )


@pytest.mark.slow
def test_json_takes_unlabelled_rows_too(local_client, rows, others):
    body = {"rows": rows[["score", "qualified"]].to_dict("records"), "unlabelled": others.to_dict("records")}
    by_json = local_client.post("/api/v1/calibrate?promise=budget&size=10&pool_size=100", json=body).json()
    by_form = calibrate(
        local_client, rows, others, {"promise": "budget", "size": 10, "pool_size": 100}
    ).json()
    assert by_json["promise"] == by_form["promise"]
    assert by_json["cutoffs"] == by_form["cutoffs"]


@pytest.mark.slow
def test_what_is_promised_goes_on_record_with_every_look(local_client, rows, others):
    made = calibrate(local_client, rows, others, PROMISES["two promises"][0]).json()
    calibrate(local_client, rows, None, PROMISES["best of two"][0])
    again = calibrate(local_client, rows.drop(columns="score").rename(columns={"bm25": "score"}), None,
                      {"k": 3, "pool_size": 100}).json()  # fmt: skip
    assert again["earlier_looks"] == 1  # the second of two scores, under another name
    looks = [entry for entry in local_client.get("/api/v1/log").json() if entry["action"] == "rows.looked"]
    assert len(looks) == 4
    asked = [look["details"]["asked"]["targets"]["everyone"] for look in looks]
    assert any(
        "on average" in each and "and at least 40% of the shortlist qualified" in each for each in asked
    )
    assert made["earlier_looks"] == 0


def test_a_promise_of_rows_warns_where_pools_are_alike(local_client, rows):
    alike = rows.assign(qualified=(rows["query"].str[1:].astype(int) % 3 == 0).astype(int))
    made = calibrate(local_client, alike, None, {"k": 5, "pool_size": 100, "pool": "query"}).json()
    assert any("resemble one another" in each for each in made["warnings"])
    assert "resemble one another" in local_client.get(f"/policies/{made['hash']}").text


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"promise": "precision", "share": 0.5}, "unlabelled: Precision needs scores of other candidates"),
    ({"promise": "per-pool", "k": 3}, "Of whole pools, whatever their size: promise=next-pool."),
    ({"promise": "budget", "size": 10}, "pool_size: expected a number; a promise of budget needs size, pool_size"),
    ({"promise": "next-pool", "recall": 0.9}, "pass pool="),
    ({"promise": "per-pool", "k": 2, "by": "rank", "pool_size": 100}, "by: does not go with a promise of per-pool"),
    ({"promise": "nothing", "k": 3}, "promise: expected one of expected, per-pool, recall"),
    ({"promise": "at-least", "k": 3}, "AtLeast has no proof from calibration rows, only from a labelling"),
    ({"promise": "recall", "share": 0.9, "of": "value"}, "of: does not go with a promise of recall"),
    ({"k": 5, "pool_size": 100, "start": 0.1}, "start: does not go with"),
    ({"k": 5, "pool_size": 100, "also": ["nothing:3"]}, "also: expected"),
    ({"k": 5, "pool_size": 100, "also": ["expect:3/50"]}, "each of another kind"),
    ({"k": 5, "pool_size": 100, "audit_rate": 0.1}, "audited_below= go together"),
    ({"k": 5, "pool_size": 100, "lowest_rate": 0.1}, "probability= and lowest_rate= go together"),
    ({"k": 5, "pool_size": 100, "probability": "rate", "label": "drawn"}, "lowest_rate: probability= and lowest_rate= go together"),
    ({"promise": "recall", "share": 0.9, "label": "drawn", "audit_rate": 0.3, "audited_below": 0.6}, "probability="),
    ({"k": 5, "pool_size": 100, "other_score": ["nothing"]}, "no column 'nothing'"),
    ({"k": 5, "group": "query", "target": ["a=3/100"], "purpose": "x", "also": ["recall:0.5"]}, "without group="),
]  # fmt: skip


@pytest.mark.parametrize(("query", "said"), REFUSED)
def test_what_is_not_offered_says_which_words_are(local_client, rows, query, said):
    answer = calibrate(local_client, rows, None, query)
    assert answer.status_code == 400, answer.text
    message = answer.json()["error"]["message"]
    assert said in message
    assert "pools=" not in message
    assert "SampledLabels" not in message
    assert "above=" not in message
    assert local_client.get("/api/v1/policies").json() == []
    assert not [each for each in local_client.get("/api/v1/log").json() if each["action"] == "rows.looked"]


def test_forms_of_files_are_two_files_and_leave_nothing_behind(local_client, rows, others):
    url = "/api/v1/calibrate?promise=budget&size=10&pool_size=100"
    two = {"past": ("p.csv", text(rows)), "unlabelled": ("o.csv", text(others))}
    wrong: list[dict[str, Any]] = [
        {"files": {"unlabelled": two["unlabelled"]}},
        {"files": {**two, "third": ("x.csv", "a\n1\n")}},
        {"files": two, "data": {"k": "3"}},
        {"content": b"--x\r\n", "headers": {"content-type": "multipart/form-data"}},
    ]
    for each in wrong:
        answer = local_client.post(url, **each)
        assert answer.status_code == 400, answer.text
        assert "past and unlabelled" in answer.json()["error"]["message"]
    bad = others.assign(score=others["score"].astype(object))
    bad.loc[3, "score"] = "high"
    answer = calibrate(local_client, rows, bad, {"promise": "budget", "size": 10, "pool_size": 100})
    assert answer.status_code == 400
    assert answer.json()["error"]["message"].startswith("unlabelled: column 'score'")
    assert "on_bad_rows" not in answer.json()["error"]["message"]
    assert "/" not in answer.json()["error"]["message"]
    assert not [
        each for each in local_client.app.state.runtime.spool.folder.iterdir() if each.suffix == ".csv"
    ]


def test_rows_that_made_the_policy_prove_nothing_about_it(local_client, rows):
    made = calibrate(local_client, rows, None, {"k": 5, "pool_size": 100}).json()
    url = f"/api/v1/policies/{made['hash']}/evaluate"
    answer = local_client.post(url, content=text(rows.sample(frac=1, random_state=1)), headers=CSV)
    assert answer.status_code == 400
    assert "prove nothing" in answer.json()["error"]["message"]
    assert local_client.post(url, content=text(fresh()), headers=CSV).status_code == 200
    looked = local_client.get("/api/v1/log").json()[0]
    assert (looked["action"], looked["details"]["how"]) == ("rows.looked", "evaluate")


def test_openapi_offers_every_option_that_is_not_of_files(local_client):
    schema = local_client.get("/api/v1/openapi.json").json()["paths"]["/api/v1/calibrate"]["post"]
    offered = {each["name"] for each in schema["parameters"]}
    of_files = {"unlabelled", "on_bad_rows", "engine", "spark_master", "reason", "rank", "header_row"}
    assert {name for name in OPTIONS | fields() if "." not in name} - of_files <= offered
    kinds = next(each["schema"]["enum"] for each in schema["parameters"] if each["name"] == "promise")
    assert kinds[:2] == ["expected", "per-pool"]
    assert set(kinds) == {name for name, kind in zip(KINDS, classes(), strict=True) if proved_from(kind)}
    assert "multipart/form-data" in schema["requestBody"]["content"]
