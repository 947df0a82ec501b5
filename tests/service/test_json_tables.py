"""JSON rows and JSON Lines become typed columns on their way to a calibration: API, page, and what comes back."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from surelist import examples
from tests.service.test_any_file import send, text, upload

SCORES, LABELS = examples.population(np.random.default_rng(0), 400)
ROWS = [
    {"id": f"{n:04}", "score": float(s), "qualified": bool(q), "big": 10**30 + n}
    for n, (s, q) in enumerate(zip(SCORES, LABELS, strict=True))
]
CALIBRATE = "/api/v1/calibrate?k=5&pool_size=100"
LINES = {"content-type": "application/x-ndjson"}


def lines(rows: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def refusal(answer: Any) -> str:
    assert answer.status_code == 400, answer.text
    return str(answer.json()["error"]["message"])


def test_rows_and_lines_give_one_policy(local_client):
    policies = [
        local_client.post(CALIBRATE, json={"rows": ROWS}),
        local_client.post(CALIBRATE, content=json.dumps({"rows": ROWS}, indent=2), headers={"content-type": "application/json"}),
        local_client.post(CALIBRATE, content=lines(ROWS), headers=LINES),
        local_client.post(CALIBRATE, content=lines(ROWS), headers={"content-type": "application/octet-stream"}),
    ]  # fmt: skip
    assert [each.status_code for each in policies] == [201] * 4, policies[0].text
    assert len({json.dumps(each.json()["policy"]["cutoffs"]) for each in policies}) == 1


@pytest.mark.parametrize(
    ("column", "value", "said"),
    [
        ("score", "0.5", "column 'score': expected numbers, got the text '0.5' in row 3."),
        ("score", "1,5", "column 'score': expected numbers, got the text '1,5' in row 3."),
        ("score", True, "column 'score': expected numbers, got true in row 3."),
        ("score", {"a": 1}, "column 'score': expected numbers, got a list or an object in row 3."),
        ("score", 10**30, f"column 'score': expected numbers, got {10**30} in row 3, which loses its order"),
        ("qualified", [1], "column 'qualified': expected plain values, got a list or an object in row 3."),
        ("qualified", "yes", "column 'qualified': expected 0 or 1 (1 = qualified), got text"),
    ],
)
def test_what_is_no_number_is_refused_in_its_row(local_client, column, value, said):
    rows = [*ROWS[:2], {**ROWS[2], column: value}, *ROWS[3:]]
    for answer in (
        local_client.post(CALIBRATE, json={"rows": rows}),
        local_client.post(CALIBRATE, content=lines(rows), headers=LINES),
    ):
        assert refusal(answer).startswith(said)


def test_a_missing_score_is_counted_from_the_first_row(local_client):
    rows = [{**ROWS[0], "score": None}, *ROWS[1:]]
    assert "1 row (row 1: score=empty, qualified=" in refusal(
        local_client.post(CALIBRATE, json={"rows": rows})
    )


def test_scores_that_look_like_thousands_are_numbers(local_client):
    rows = [{"score": 1 + n / 1000, "qualified": n % 2} for n in range(200)]
    assert local_client.post(CALIBRATE, json={"rows": rows}).status_code == 201


@pytest.mark.parametrize("other", [5, [], [5], "x", {}])
def test_unlabelled_rows_are_rows_too(local_client, other):
    said = refusal(local_client.post(CALIBRATE, json={"rows": ROWS, "unlabelled": other}))
    assert "unlabelled" in said
    assert said.startswith(("body: expected", "unlabelled: expected at least one row"))


def test_a_list_of_lines_is_lines_of_the_same_types(local_client):
    policy = local_client.post(CALIBRATE, json={"rows": ROWS}).json()["hash"]
    pool = [{key: row[key] for key in ("id", "score", "big")} for row in ROWS[:100]]
    answer = local_client.post(f"/api/v1/policies/{policy}/select", content=lines(pool), headers=LINES)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/x-ndjson"
    listed = [json.loads(line) for line in answer.text.splitlines()]
    same = local_client.post(f"/api/v1/policies/{policy}/select", json={"rows": pool}).json()["shortlist"]
    assert same == [row for row in pool if row in same]
    assert listed == [{**row, "big": str(row["big"])} for row in same]  # beyond 64 bits: its digits
    assert listed


@pytest.mark.slow
def test_the_page_takes_json_lines_from_past_to_list(local_client):
    page = upload(local_client, "past.jsonl", lines(ROWS).encode())
    assert "past.jsonl" in text(page)
    assert "0001" in text(page)
    promise = send(local_client, page, score="score", label="qualified", decimal="auto", labels="all")
    assert str(promise.url).endswith("/promise"), text(promise)
    policy = local_client.post(CALIBRATE, json={"rows": ROWS}).json()["hash"]
    where = f"/policies/{policy}"
    pool = lines([{"id": row["id"], "score": row["score"]} for row in ROWS[:100]]).encode()
    asked = upload(local_client, "pool.ndjson", pool, f"{where}/pool", where)
    made = send(local_client, asked, score="score", id="id", name="Monday")
    for ending in ("jsonl", "csv", "csv?safe=true", "parquet", "xlsx"):
        assert local_client.get(f"{made.url.path}/shortlist.{ending}").status_code == 200, ending
    first = local_client.get(f"{made.url.path}/shortlist.jsonl").text.splitlines()[0]
    assert [type(each) for each in json.loads(first).values()] == [str, float]
